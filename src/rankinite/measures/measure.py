"""Measures of a ranking, as immutable values.

A measure defines the value of a document (`Measure.document_values`), the weight of a rank
(`Measure.rank_weights`), and by its `form` how the two combine. Lambda gradients use the same
measure, so gain, discount and depth cannot drift apart. Its text, ``NAME(option=value)@depth
[source]``, is what the command line takes, the name of a column and what a model file stores.

A measure of one's own is a subclass, which either has a form, document values and discounts, and
is then compiled like the others, or computes any function of ranked labels; see `Measure`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from rankinite.core.errors import DataError
from rankinite.core.format import plain_number
from rankinite.core.params import Constraint, OneOf, Real, SourceName, Whole, check, or_none
from rankinite.core.types import Floats

# Gains up to here can be added up without overflow, however many documents there are.
LARGEST_EXPONENT = 900
LARGEST_GAIN = 1e270

# The largest depth that can be given, longer than any list; kernels take it for "all ranks".
DEEPEST = 999_999_999


class Form(IntEnum):
    """How the values of documents and the weights of ranks combine; selects the kernel."""

    CUMULATED = 0  # sum of value x weight
    NORMALISED = 1  # the same, over that of the best order
    CASCADE = 2  # a user goes down the list and stops at a document with its value as chance
    AVERAGE_PRECISION = 3
    RECIPROCAL_RANK = 4
    PRECISION = 5
    FUNCTION = 6  # any function of ranked labels, `Measure.ranked_value`; not compiled


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure of a ranking; an immutable value with a text.

    A subclass with a ``form`` defines `document_values` and, unless all ranks count alike,
    `discounts`: it is compiled, and exact where scores tie. A subclass without one defines
    `ranked_value`; where scores tie, it gets the mean over a few orders of the tied documents.

    Parameters
    ----------
    depth
        Number of ranks that count; all if None.
    source
        The label source; the data set's labels if None.
    empty
        Value of a query without a relevant document: 0, 1, or ``"skip"`` to leave it out. Measures
        without a form return NaN for queries to leave out.

    Examples
    --------
    >>> import numpy as np
    >>> class SquareDCG(Measure):
    ...     form = Form.CUMULATED
    ...     def document_values(self, labels, top_grade):
    ...         return labels**2
    ...     def discounts(self, ranks):
    ...         return 1 / ranks
    >>> str(SquareDCG(depth=5)), SquareDCG(depth=2).rank_weights(3)
    ('SquareDCG@5', array([1. , 0.5, 0. ]))
    """

    depth: int | None = None
    source: str | None = None
    empty: int | str = "skip"

    name: ClassVar[str] = "Measure"
    form: ClassVar[Form] = Form.FUNCTION
    constraints: ClassVar[dict[str, Constraint]] = {
        "depth": or_none(Whole(1, DEEPEST)),
        "source": or_none(SourceName()),
        "empty": OneOf([0, 1, "skip"]),
    }

    def __init_subclass__(cls) -> None:
        # A measure of one's own need not repeat the name of its class.
        if "name" not in cls.__dict__:
            cls.name = cls.__name__

    def __post_init__(self) -> None:
        for option, constraint in self.constraints.items():
            # Python's own words end in an underscore, as ``break_``; texts know them without.
            check(self.name, option.rstrip("_"), getattr(self, option), constraint)

    def __str__(self) -> str:
        options = [
            f"{item.name.rstrip('_')}={_text(getattr(self, item.name))}"
            for item in fields(self)
            if item.name not in ("depth", "source") and getattr(self, item.name) != item.default
        ]
        return (
            self.name
            + (f"({', '.join(options)})" if options else "")
            + (f"@{self.depth}" if self.depth is not None else "")
            + (f"[{self.source}]" if self.source is not None else "")
        )

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the options that may be given in parentheses."""
        names = [item.name.rstrip("_") for item in fields(cls)]
        return [name for name in names if name not in ("depth", "source")]

    def check_labels(self, labels: Floats, top_grade: float) -> None:
        """Raise `DataError` for labels that the measure cannot use; NaN means no label."""
        limit, reason = self._largest_label(top_grade)
        # fmax passes over NaN, which means no label.
        if np.fmax.reduce(labels) > limit:
            doc = int((labels > limit).argmax())
            raise DataError(f"{self}: document {doc} has the label {labels[doc]:g}, {reason}")

    def _largest_label(self, top_grade: float) -> tuple[float, str]:
        """Return the largest label that can be used, and the error message for larger ones."""
        return np.inf, ""

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return the value of each document, at least 0; 0 for one that is not relevant."""
        raise NotImplementedError(f"{self.name}: a measure with a form defines document_values")

    def ranked_value(self, labels: Floats) -> float:
        """Return the value of a query from its labels in ranked order, down to the depth.

        NaN leaves the query out. Only for measures without a form.
        """
        raise NotImplementedError(f"{self.name}: a measure without a form defines ranked_value")

    def values_key(self, top_grade: float) -> Hashable:
        """Return a key of the document values: measures with equal keys share them."""
        return replace(self, depth=None), top_grade

    def rank_weights(self, n: int) -> Floats:
        """Return the weights of ranks 1 to n; 0 beyond the depth."""
        weights = self.discounts(np.arange(1, n + 1, dtype=np.float64))
        if self.depth is not None:
            weights[self.depth :] = 0.0
        return weights

    def discounts(self, ranks: Floats) -> Floats:
        """Return the weights of ranks, whatever the depth; all 1 by default."""
        return np.ones_like(ranks)


@dataclass(frozen=True, kw_only=True)
class DCG(Measure):
    """Discounted cumulated gain: gain 2^y - 1 (or y), discount 1/log2(1 + rank).

    Parameters
    ----------
    gain
        ``"exp2"`` for 2^y - 1, ``"linear"`` for y itself.
    """

    gain: str = "exp2"
    empty: int | str = 0

    name: ClassVar[str] = "DCG"
    form: ClassVar[Form] = Form.CUMULATED
    constraints: ClassVar[dict[str, Constraint]] = {
        **Measure.constraints,
        "gain": OneOf(["exp2", "linear"]),
    }

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return the gain of each document."""
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
        return np.asarray(1.0 / np.log2(1.0 + ranks))


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
        return np.asarray(1.0 / np.log2(1.0 + ranks))


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
        return np.asarray(np.exp2(labels - top) - np.exp2(-top))

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
        return np.asarray((1.0 - self.break_) ** (ranks - 1.0))


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


MEASURES: dict[str, type[Measure]] = {
    kind.name: kind for kind in (NDCG, DCG, ERR, MAP, MRR, P, CNDCG, PFound)
}


def _exponential_gain(labels: Floats) -> Floats:
    return np.asarray(np.exp2(labels) - 1.0)


def _top_grade(of_measure: float | None, of_data: float) -> float:
    return float(of_data if of_measure is None else of_measure)


def _text(value: Any) -> str:
    return plain_number(value) if isinstance(value, float) else str(value)
