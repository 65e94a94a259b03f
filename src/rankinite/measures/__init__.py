"""What a ranking is worth: measures as values, their text, and their kernels."""

from rankinite.measures.graded import GradedMeasure
from rankinite.measures.measure import CNDCG, DCG, ERR, MAP, MEASURES, MRR, NDCG, Measure, P, PFound
from rankinite.measures.text import parse_measure, parse_measures

__all__ = [
    "CNDCG",
    "DCG",
    "ERR",
    "MAP",
    "MEASURES",
    "MRR",
    "NDCG",
    "GradedMeasure",
    "Measure",
    "P",
    "PFound",
    "parse_measure",
    "parse_measures",
]
