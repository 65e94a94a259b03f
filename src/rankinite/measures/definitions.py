"""The measures that there are, and their registry by name.

Apart from `rankinite.measures.measure`, which the kernels import: to change or add a definition
compiles no kernel anew.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from rankinite.core.elementary import exp2, log2, power
from rankinite.core.errors import DataError
from rankinite.core.params import Constraint, Either, OneOf, Real, or_none
from rankinite.core.types import Floats
from rankinite.measures.measure import Form, Measure

# Gains up to here can be added up without overflow, however many documents there are.
LARGEST_EXPONENT = 900
LARGEST_GAIN = 1e270


@dataclass(frozen=True)
class GainTable:
    """A gain for each label from 0 on: 0 and further numbers, none below the one before it."""

    def allows(self, value: Any) -> bool:
        """Tell whether the value is such a table."""
        if not isinstance(value, tuple) or len(value) < 2 or value[0] != 0:
            return False
        bound = Real(0, LARGEST_GAIN)
        # Otherwise a better label could be worth less, and pairs of labels would have no sense.
        return all(map(bound.allows, value)) and all(a <= b for a, b in pairwise(value))

    def __str__(self) -> str:
        return (
            "a list of gains such as [0, 1, 3, 7], one for each label: 0 for the label 0, then "
            "none below the one before it"
        )


@dataclass(frozen=True, kw_only=True)
class DCG(Measure):
    """Discounted cumulated gain: gain 2^y - 1, y or of a table; discount 1/log2(1 + rank).

    Parameters
    ----------
    gain
        ``"exp2"`` for 2^y - 1, ``"linear"`` for y itself; or a table, such as [0, 1, 3, 10], with
        the gain of each label from 0 on.

    Examples
    --------
    >>> str(DCG(gain=[0, 1, 3, 10], depth=5))
    'DCG(gain=[0,1,3,10])@5'
    """

    gain: str | Sequence[float] = "exp2"
    empty: int | str = 0

    name: ClassVar[str] = "DCG"
    form: ClassVar[Form] = Form.CUMULATED
    constraints: ClassVar[dict[str, Constraint]] = {
        **Measure.constraints,
        "gain": Either(OneOf(["exp2", "linear"]), GainTable()),
    }

    def __post_init__(self) -> None:
        # A list cannot be part of an immutable value.
        if isinstance(self.gain, list | np.ndarray):
            object.__setattr__(self, "gain", tuple(self.gain))
        super().__post_init__()

    def check_labels(self, labels: Floats, top_grade: float) -> None:
        """Raise `DataError` for labels without a gain; NaN means no label."""
        if isinstance(self.gain, str):
            super().check_labels(labels, top_grade)
            return
        top = len(self.gain) - 1
        known = np.where(np.isnan(labels), 0.0, labels)
        bad = (known != np.floor(known)) | (known > top)
        if bad.any():
            doc = int(bad.argmax())
            raise DataError(
                f"{self}: document {doc} has the label {labels[doc]:g}, and the table has gains of "
                f"the labels 0 to {top}; give a gain for each grade, or gain=exp2, gain=linear"
            )

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return the gain of each document."""
        if not isinstance(self.gain, str):
            table = np.array(self.gain, np.float64)
            return np.asarray(table[np.nan_to_num(labels).astype(np.int64)])
        return labels if self.gain == "linear" else _exponential_gain(labels)

    def _largest_label(self, top_grade: float) -> tuple[float, str]:
        if self.gain == "linear":
            return LARGEST_GAIN, "too large for gains that can be added up"
        return LARGEST_EXPONENT, (
            "too large for a gain of 2^label; use grades such as 0 to 4, or NDCG(gain=linear)"
        )

    def values_key(self, top_grade: float) -> Hashable:
        """Return a key of the gains."""
        return "gain", self.gain, self.source

    def discounts(self, ranks: Floats) -> Floats:
        """Return 1 / log2(1 + rank)."""
        return np.asarray(1.0 / log2(1.0 + ranks))


@dataclass(frozen=True, kw_only=True)
class NDCG(DCG):
    """DCG over the best DCG that any order gives at the same depth."""

    empty: int | str = "skip"

    name: ClassVar[str] = "NDCG"
    form: ClassVar[Form] = Form.NORMALISED


@dataclass(frozen=True, kw_only=True)
class CNDCG(Measure):
    """NDCG of click rates in [0, 1]: gain 2^(top_grade c) - 1 (Objectives, Eq. 9).

    Parameters
    ----------
    top_grade
        The grade that a click rate of 1 counts as; the data set's top grade if None.
    """

    top_grade: float | None = None

    name: ClassVar[str] = "CNDCG"
    form: ClassVar[Form] = Form.NORMALISED
    constraints: ClassVar[dict[str, Constraint]] = {
        **Measure.constraints,
        "top_grade": or_none(Real(0)),
    }

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return the gain of each document's click rate."""
        return _exponential_gain(labels * _top_grade(self.top_grade, top_grade))

    def _largest_label(self, top_grade: float) -> tuple[float, str]:
        top = _top_grade(self.top_grade, top_grade)
        if top > LARGEST_EXPONENT:  # the label does not matter then
            return 0.0, f"and a top grade of {top:g} is too large for a gain of 2^(top grade)"
        return 1.0, "and click rates lie in [0, 1]; name their source, as in CNDCG@3[clicks]"

    def values_key(self, top_grade: float) -> Hashable:
        """Return a key of the gains."""
        return "click gain", _top_grade(self.top_grade, top_grade), self.source

    def discounts(self, ranks: Floats) -> Floats:
        """Return 1 / log2(1 + rank)."""
        return np.asarray(1.0 / log2(1.0 + ranks))


@dataclass(frozen=True, kw_only=True)
class ERR(Measure):
    """Expected reciprocal rank: a document satisfies with chance R = (2^y - 1) / 2^top_grade.

    Parameters
    ----------
    top_grade
        The top grade; that of the data set if None.
    """

    top_grade: float | None = None
    empty: int | str = 0

    name: ClassVar[str] = "ERR"
    form: ClassVar[Form] = Form.CASCADE
    constraints: ClassVar[dict[str, Constraint]] = CNDCG.constraints

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return the chance that each document satisfies."""
        # Divided before the subtraction: 2^label alone would overflow for very high grades.
        top = _top_grade(self.top_grade, top_grade)
        return np.asarray(exp2(labels - top) - exp2(-top))

    def _largest_label(self, top_grade: float) -> tuple[float, str]:
        top = _top_grade(self.top_grade, top_grade)
        return top, (
            f"above the top grade {top:g}; give the data set a larger top_grade "
            f"(--top-grade), or the measure: {self.name}(top_grade=4)"
        )

    def values_key(self, top_grade: float) -> Hashable:
        """Return a key of the chances."""
        return "chance", _top_grade(self.top_grade, top_grade), self.source

    def discounts(self, ranks: Floats) -> Floats:
        """Return 1 / rank."""
        return np.asarray(1.0 / ranks)


@dataclass(frozen=True, kw_only=True)
class PFound(ERR):
    """The chance that a user finds a satisfying document, if at each rank some give up.

    Parameters
    ----------
    break_
        The chance to give up after a document that did not satisfy.
    """

    break_: float = 0.15

    name: ClassVar[str] = "pFound"
    constraints: ClassVar[dict[str, Constraint]] = {
        **ERR.constraints,
        "break_": Real(0, 1, high_open=True),
    }

    def discounts(self, ranks: Floats) -> Floats:
        """Return the chance not to have given up before each rank."""
        return np.asarray(power(1.0 - self.break_, ranks - 1.0))


@dataclass(frozen=True, kw_only=True)
class _Binary(Measure):
    """A measure of relevant documents, without grades.

    Parameters
    ----------
    relevant
        Labels of at least this count as relevant.
    """

    relevant: float = 1

    constraints: ClassVar[dict[str, Constraint]] = {
        **Measure.constraints,
        "relevant": Real(0, low_open=True),
    }

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return 1 for relevant documents and 0 for others."""
        return (labels >= self.relevant).astype(np.float64)

    def values_key(self, top_grade: float) -> Hashable:
        """Return a key of which documents are relevant."""
        return "relevant", float(self.relevant), self.source


@dataclass(frozen=True, kw_only=True)
class MAP(_Binary):
    """Average precision (Optimality, Eq. 1): precisions at relevant ranks over all relevant."""

    name: ClassVar[str] = "MAP"
    form: ClassVar[Form] = Form.AVERAGE_PRECISION


@dataclass(frozen=True, kw_only=True)
class MRR(_Binary):
    """The reciprocal of the first relevant rank (Optimality, Eq. 2)."""

    name: ClassVar[str] = "MRR"
    form: ClassVar[Form] = Form.RECIPROCAL_RANK


@dataclass(frozen=True, kw_only=True)
class P(_Binary):
    """Precision: the share of relevant documents among the first ``depth``, or among all."""

    empty: int | str = 0

    name: ClassVar[str] = "P"
    form: ClassVar[Form] = Form.PRECISION
    needs_depth: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Recall(_Binary):
    """The share of all relevant documents that are among the first ``depth``."""

    name: ClassVar[str] = "Recall"
    form: ClassVar[Form] = Form.RECALL
    needs_depth: ClassVar[bool] = True


@dataclass(frozen=True, kw_only=True)
class Hit(_Binary):
    """1 if a relevant document is among the first ``depth``, 0 if not; also called success."""

    name: ClassVar[str] = "Hit"
    form: ClassVar[Form] = Form.RECIPROCAL_RANK
    needs_depth: ClassVar[bool] = True

    def discounts(self, ranks: Floats) -> Floats:
        """Return the ranks, which over the rank of the first relevant document are 1."""
        return ranks.copy()


@dataclass(frozen=True, kw_only=True)
class RBP(_Binary):
    """Rank-biased precision: the rate at which a user sees relevant documents (Moffat & Zobel).

    Parameters
    ----------
    p
        The chance to go on to the next rank.
    """

    p: float = 0.8
    empty: int | str = 0

    name: ClassVar[str] = "RBP"
    form: ClassVar[Form] = Form.CUMULATED
    constraints: ClassVar[dict[str, Constraint]] = {
        **_Binary.constraints,
        "p": Real(0, 1, low_open=True, high_open=True),
    }

    def discounts(self, ranks: Floats) -> Floats:
        """Return the chance that a user stops at each rank."""
        return np.asarray((1.0 - self.p) * power(self.p, ranks - 1.0))


@dataclass(frozen=True, kw_only=True)
class Judged(Measure):
    """The share of documents with a label among the first ``depth``, or among all."""

    empty: int | str = 0

    name: ClassVar[str] = "Judged"
    form: ClassVar[Form] = Form.COVERAGE
    needs_depth: ClassVar[bool] = True
    is_of_grades: ClassVar[bool] = False

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return 1 for documents with a label and 0 for others."""
        return (~np.isnan(labels)).astype(np.float64)

    def known_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return the same: no label is what it is about."""
        return self.document_values(labels, top_grade)

    def values_key(self, top_grade: float) -> Hashable:
        """Return a key of which documents have a label."""
        return "judged", self.source


MEASURES: dict[str, type[Measure]] = {
    kind.name: kind
    for kind in (NDCG, DCG, ERR, MAP, MRR, P, Recall, Hit, RBP, CNDCG, PFound, Judged)
}


def _exponential_gain(labels: Floats) -> Floats:
    return np.asarray(exp2(labels) - 1.0)


def _top_grade(of_measure: float | None, of_data: float) -> float:
    return float(of_data if of_measure is None else of_measure)
