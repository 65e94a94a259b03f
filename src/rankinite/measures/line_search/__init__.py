"""A measure along a line of scores, s1 + alpha s2: its exact optimum, from crossing to crossing."""

from rankinite.measures.line_search.line import ScoreLine, mixed
from rankinite.measures.line_search.search import Course, LineOptimum, MeasureAlongLine, Peak

__all__ = ["Course", "LineOptimum", "MeasureAlongLine", "Peak", "ScoreLine", "mixed"]
