"""Measures as values: what a ranking is worth.

A measure says what a document is worth (`Measure.document_values`), what a rank is worth
(`Measure.rank_weights`), and by its `form` how the two combine. Lambda gradients ask the same
measure, so gain, discount and depth cannot drift apart. Its text, ``NAME(option=value)@depth
[source]``, is what the command line takes, what a column is called and what a model file stores.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Constraint, Either, OneOf, Real, SourceName, Whole, check

Floats = NDArray[np.float64]

DEEPEST = 999_999_999


class Form(IntEnum):
    """How the values of documents and the weights of ranks combine; the kernels' choice."""

    CUMULATED = 0  # sum of value x weight
    NORMALISED = 1  # the same over the best that any order gives
    CASCADE = 2  # a user goes down the list and stops at a document with its value as chance
    AVERAGE_PRECISION = 3
    RECIPROCAL_RANK = 4
    PRECISION = 5


@dataclass(frozen=True, kw_only=True)
class Measure:
    """What a ranking is worth; an immutable value with a text.

    Parameters
    ----------
    depth
        How many ranks count; all if None.
    source
        The label source; the data set's labels if None.
    empty
        What a query without a relevant document counts: 0, 1, or ``"skip"`` to leave it out.
    """

    depth: int | None = None
    source: str | None = None
    empty: int | str = "skip"

    name: ClassVar[str]
    form: ClassVar[Form]
    constraints: ClassVar[dict[str, Constraint]] = {
        "depth": Either(Whole(1, DEEPEST), OneOf([None])),
        "source": Either(SourceName(), OneOf([None])),
        "empty": OneOf([0, 1, "skip"]),
    }

    def __post_init__(self) -> None:
        for option, constraint in self.constraints.items():
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
        """Return the options that may stand in parentheses."""
        names = [item.name.rstrip("_") for item in fields(cls)]
        return [name for name in names if name not in ("depth", "source")]

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return what each document is worth; 0 for one that is not relevant."""
        raise NotImplementedError(f"{self.name} gives no values")  # an abstract method

    def values_key(self, top_grade: float) -> Hashable:
        """Return what the values depend on: measures with equal keys share them."""
        raise NotImplementedError(f"{self.name} gives no key")  # an abstract method

    def rank_weights(self, n: int) -> Floats:
        """Return what ranks 1 to n are worth; 0 beyond the depth."""
        weights = self._weights(np.arange(1, n + 1, dtype=np.float64))
        if self.depth is not None:
            weights[self.depth :] = 0.0
        return weights

    def _weights(self, ranks: Floats) -> Floats:
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
        if self.gain == "exp2":
            return _exponential_gain(labels, self)
        _check_sum(labels, labels, self, "; use smaller labels")
        return labels.copy()

    def values_key(self, top_grade: float) -> Hashable:
        """Return what the gains depend on."""
        return "gain", self.gain, self.source

    def _weights(self, ranks: Floats) -> Floats:
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
        What a click rate of 1 is worth in grades; the data set's top grade if None.
    """

    top_grade: float | None = None

    name: ClassVar[str] = "CNDCG"
    form: ClassVar[Form] = Form.NORMALISED
    constraints: ClassVar[dict[str, Constraint]] = {
        **Measure.constraints,
        "top_grade": Either(Real(0), OneOf([None])),
    }

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return the gain of each document's click rate."""
        if labels.max(initial=0.0) > 1.0:
            doc = int(labels.argmax())
            raise DataError(
                f"{self}: document {doc} has the label {labels[doc]:g}, and click rates lie in "
                "[0, 1]; name their source, as in CNDCG@3[clicks]"
            )
        return _exponential_gain(labels * _given(self.top_grade, top_grade), self)

    def values_key(self, top_grade: float) -> Hashable:
        """Return what the gains depend on."""
        return "click gain", _given(self.top_grade, top_grade), self.source

    def _weights(self, ranks: Floats) -> Floats:
        return np.asarray(1.0 / np.log2(1.0 + ranks))


@dataclass(frozen=True, kw_only=True)
class ERR(Measure):
    """Expected reciprocal rank: a document satisfies with chance R = (2^y - 1) / 2^top_grade.

    Parameters
    ----------
    top_grade
        The largest grade there can be; the data set's if None.
    """

    top_grade: float | None = None
    empty: int | str = 0

    name: ClassVar[str] = "ERR"
    form: ClassVar[Form] = Form.CASCADE
    constraints: ClassVar[dict[str, Constraint]] = CNDCG.constraints

    def document_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return the chance that each document satisfies."""
        top = _given(self.top_grade, top_grade)
        if labels.max(initial=0.0) > top:
            doc = int(labels.argmax())
            raise DataError(
                f"{self}: document {doc} has the label {labels[doc]:g}, above the top grade {top:g}"
            )
        return np.asarray(_exponential_gain(labels, self) * np.exp2(-top))

    def values_key(self, top_grade: float) -> Hashable:
        """Return what the chances depend on."""
        return "chance", _given(self.top_grade, top_grade), self.source

    def _weights(self, ranks: Floats) -> Floats:
        return np.asarray(1.0 / ranks)


@dataclass(frozen=True, kw_only=True)
class PFound(ERR):
    """The chance that a user finds what satisfies, if at each rank some give up.

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

    def _weights(self, ranks: Floats) -> Floats:
        return np.asarray((1.0 - self.break_) ** (ranks - 1.0))


@dataclass(frozen=True, kw_only=True)
class _Binary(Measure):
    """A measure that knows relevant documents and others only.

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
        """Return what makes a document relevant."""
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


@dataclass(frozen=True)
class GradedMeasure:
    """Measures in order of importance (Objectives, Sec. 1); its text joins them with `` > ``."""

    tiers: tuple[Measure, ...]

    def __post_init__(self) -> None:
        if len(self.tiers) < 2 or not all(isinstance(tier, Measure) for tier in self.tiers):
            raise UsageError("GradedMeasure: give two measures or more, the most important first")

    def __str__(self) -> str:
        return " > ".join(str(tier) for tier in self.tiers)


MEASURES: dict[str, type[Measure]] = {
    kind.name: kind for kind in (NDCG, DCG, ERR, MAP, MRR, P, CNDCG, PFound)
}


def _exponential_gain(labels: Floats, measure: Measure) -> Floats:
    with np.errstate(over="ignore"):
        gain = np.exp2(labels) - 1.0
    advice = " of 2^label; use grades such as 0 to 4, or NDCG(gain=linear)"
    _check_sum(gain, labels, measure, advice)
    return np.asarray(gain)


def _check_sum(gain: Floats, labels: Floats, measure: Measure, advice: str) -> None:
    """Refuse gains that overflow when added: their NDCG would be NaN, as if left out."""
    with np.errstate(over="ignore"):
        if np.isfinite(gain.sum()):
            return
    doc = int(labels.argmax())
    raise DataError(
        f"{measure}: the label {labels[doc]:g} of document {doc} is too large for a gain{advice}"
    )


def _given(own: float | None, of_data: float) -> float:
    return float(of_data if own is None else own)


def _text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
