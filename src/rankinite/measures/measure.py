"""Measures of a ranking, as immutable values.

A measure defines the value of a document (`Measure.document_values`), the weight of a rank
(`Measure.rank_weights`), and by its `form` how the two combine. Lambda gradients use the same
measure, so gain, discount and depth cannot drift apart. Its text, ``NAME(option=value)@depth
[source]``, is what the command line takes, the name of a column and what a model file stores.

The measures that there are stand in `rankinite.measures.definitions`. One of your own is a
subclass, which either has a form, document values and discounts, and is then compiled like the
others, or computes any function of ranked labels; see `Measure`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from typing import Any, ClassVar

import numpy as np

from rankinite.core.errors import DataError
from rankinite.core.format import plain_number
from rankinite.core.params import (
    Constraint,
    OneOf,
    SourceName,
    Whole,
    check,
    or_none,
)
from rankinite.core.types import Floats

# The largest depth that can be given, longer than any list; kernels take it for "all ranks".
DEEPEST = 999_999_999


class Form(IntEnum):
    """How the values of documents and the weights of ranks combine; selects the kernel."""

    CUMULATED = 0  # sum of value x weight
    NORMALISED = 1  # the same, over that of the best order
    CASCADE = 2  # a user goes down the list and stops at a document with its value as chance
    AVERAGE_PRECISION = 3
    RECIPROCAL_RANK = 4  # weight / rank of the first relevant document
    PRECISION = 5  # relevant documents over the depth
    RECALL = 6  # the same over all relevant documents
    COVERAGE = 7  # documents with a value over the ranks that there are
    FUNCTION = 8  # any function of ranked labels, `Measure.ranked_value`; not compiled


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
    # Whether all orders of a whole list have the same value, so that only a depth makes it one to
    # train on; and whether it depends on grades at all.
    needs_depth: ClassVar[bool] = False
    is_of_grades: ClassVar[bool] = True
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

    def known_values(self, labels: Floats, top_grade: float) -> Floats:
        """Return the value of each document; one without a label (NaN) counts as of label 0."""
        missing = np.isnan(labels)
        known = np.where(missing, 0.0, labels) if missing.any() else labels
        return self.document_values(known, top_grade)

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


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{','.join(map(_text, value))}]"
    return plain_number(value) if isinstance(value, float) else str(value)
