"""A measure along a line of scores: s1 + alpha s2, from one crossing to the next."""

from rankinite.measures.along.following import Along, Course, Following, Peak, Way, mixed

__all__ = ["Along", "Course", "Following", "Peak", "Way", "mixed"]
