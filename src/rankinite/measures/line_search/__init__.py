"""A measure along a line of scores: s1 + alpha s2, from one crossing to the next."""

from rankinite.measures.line_search.line import Way, mixed
from rankinite.measures.line_search.search import Along, Course, Following, Peak

__all__ = ["Along", "Course", "Following", "Peak", "Way", "mixed"]
