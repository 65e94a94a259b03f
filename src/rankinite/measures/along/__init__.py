"""A measure along a line of scores: s1 + alpha s2, from one crossing to the next."""

from rankinite.measures.along.following import Following
from rankinite.measures.along.found import Along, Course, Peak
from rankinite.measures.along.way import Way, mixed

__all__ = ["Along", "Course", "Following", "Peak", "Way", "mixed"]
