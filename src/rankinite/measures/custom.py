"""Measures of one's own: functions of ranked labels, and names for the text grammar.

>>> def first_is_relevant(labels):
...     return float(labels[0] >= 1)
>>> str(FunctionMeasure(first_is_relevant))
'first_is_relevant'
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from rankinite.core.errors import UsageError
from rankinite.core.params import Constraint, OneOf
from rankinite.core.random import generator
from rankinite.core.types import Floats, Integers
from rankinite.measures.definitions import MEASURES
from rankinite.measures.measure import Form, Measure

# A query with ties gets the mean over this many orders of its tied documents. The number of all
# orders grows without bound, and a function can only be evaluated order by order.
ORDERS_OF_TIES = 10

RankedFunction = Callable[[Floats], float]

# Registered functions by name; classes are in MEASURES.
FUNCTIONS: dict[str, RankedFunction] = {}
NAME = re.compile(r"[A-Za-z_]+")


@dataclass(frozen=True, kw_only=True)
class FunctionMeasure(Measure):
    """A function of ranked labels as a measure.

    Parameters
    ----------
    function
        From the labels of a query, from the first rank to the last, to its value; NaN leaves the
        query out. Documents without a label have 0. With a depth it gets the first labels only.
    depth, source
        As in `Measure`.
    """

    function: RankedFunction = field(kw_only=False)

    form: ClassVar[Form] = Form.FUNCTION
    constraints: ClassVar[dict[str, Constraint]] = {
        **Measure.constraints,
        "empty": OneOf(["skip"]),  # the function itself decides
    }

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise UsageError(
                f"FunctionMeasure: {self.function!r} is not a function; give one from the labels "
                "of a query in ranked order to its value"
            )
        # Files and columns hold the name only, which must not be taken for another measure.
        if self._title.lower() in {name.lower() for name in MEASURES}:
            raise UsageError(
                f"FunctionMeasure: the function {self._title!r} has the name of another measure; "
                "rename it"
            )
        super().__post_init__()

    @property
    def _title(self) -> str:
        """The name under which the function is registered, or its own."""
        titles = (name for name, function in FUNCTIONS.items() if function is self.function)
        return next(titles, name_of(self.function))

    def __str__(self) -> str:
        depth = "" if self.depth is None else f"@{self.depth}"
        source = "" if self.source is None else f"[{self.source}]"
        return f"{self._title}{depth}{source}"

    @classmethod
    def option_names(cls) -> list[str]:
        """Return the options that may be given in parentheses: none."""
        return []

    def ranked_value(self, labels: Floats) -> float:
        """Return the value of a query from its labels in ranked order."""
        return self.function(labels)


def name_of(function: Any) -> str:
    """Return the name by which a function is shown and stored."""
    return str(getattr(function, "__name__", type(function).__name__))


def register(measure: type[Measure] | RankedFunction, name: str | None = None) -> Any:
    """Give a measure of one's own a name in texts, such as ``"MyMeasure@5"``.

    Parameters
    ----------
    measure
        A subclass of `Measure`, or a function of ranked labels.
    name
        The name; by default that of the class or function. Letters and underscores; upper and
        lower case are the same.

    Returns
    -------
    The measure itself, so that this can be used as a decorator.
    """
    if isinstance(measure, type) and issubclass(measure, Measure):
        title = measure.name if name is None else name
        _check_name(title, measure)
        measure.name = title
        MEASURES[title] = measure
    elif callable(measure) and not isinstance(measure, type):
        title = name_of(measure) if name is None else name
        _check_name(title, measure)
        FUNCTIONS[title] = measure
    else:
        raise UsageError(
            f"measures.register: {measure!r} is neither a subclass of Measure nor a function of "
            "ranked labels"
        )
    return measure


def _check_name(name: str, measure: Any) -> None:
    if not NAME.fullmatch(name):
        raise UsageError(
            f"measures.register: {name!r} cannot be a name in texts; give one of letters and "
            "underscores, as in register(measure, 'my_measure')"
        )
    for known, other in {**MEASURES, **FUNCTIONS}.items():
        if known.lower() == name.lower() and other is not measure:
            raise UsageError(
                f"measures.register: there is a measure {known!r} already; give another name"
            )


def function_values(measure: Measure, scores: Floats, labels: Floats, offsets: Integers) -> Floats:
    """Return the value of each query by a measure without a form.

    Where scores tie, the value is the mean over some orders of the tied documents, drawn from a
    fixed seed: the same scores always give the same value.
    """
    values = np.empty(len(offsets) - 1)
    for q in range(len(values)):
        docs = slice(offsets[q], offsets[q + 1])
        values[q] = _query_value(measure, scores[docs], labels[docs], q)
    return values


def _query_value(measure: Measure, scores: Floats, labels: Floats, query: int) -> float:
    order = np.argsort(-scores, kind="stable")
    if (np.diff(scores[order]) != 0.0).all():  # no ties: one order is all there is
        return checked_value(measure, labels[order])
    # By the number of the query, so that its value does not depend on ties in others.
    random = generator(0, "orders of ties", query)
    orders = (np.lexsort((random.random(len(scores)), -scores)) for _ in range(ORDERS_OF_TIES))
    return float(np.mean([checked_value(measure, labels[order]) for order in orders]))


def checked_value(measure: Measure, ranked: Floats) -> float:
    """Return the value of ranked labels, or raise `UsageError` if it is not a number."""
    value: Any = measure.ranked_value(ranked[: measure.depth])
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(
            f"{measure}: the value of a query is {value!r}; expected a number, or NaN to leave "
            "the query out"
        ) from None
