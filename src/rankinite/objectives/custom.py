"""Objectives of one's own: functions that give gradients, and objects that follow the protocol.

>>> import numpy as np
>>> def squared_error(scores, labels, offsets):
...     return labels - scores, np.ones_like(scores)
>>> str(FunctionObjective(squared_error))
'squared_error'
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankinite.core.elementary import exp, log2
from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import SourceName, check, or_none
from rankinite.core.types import Floats, Integers, Mask
from rankinite.measures.custom import NAME, checked_value, name_of
from rankinite.measures.measure import DEEPEST, Measure
from rankinite.measures.text import is_measure_name
from rankinite.objectives.objective import (
    EVERY_QUERY,
    FROM_ZERO,
    OBJECTIVES,
    Gradients,
    GradientsByQuery,
    Objective,
    Targets,
    doc_weights,
    labels_of,
    pair_labels,
)

# From scores, labels and offsets to gradients and hessians, or to gradients alone.
GradientFunction = Callable[[Floats, Floats, Integers], Any]

# Registered objectives by name.
CUSTOM: dict[str, Objective] = {}


@dataclass(frozen=True)
class FunctionObjective(Objective):
    """A function that gives gradients as an objective.

    Parameters
    ----------
    function
        From (scores, labels, offsets) to (gradients, hessians), one number per document each; or
        to gradients alone, and then there is no Newton step. A positive gradient pushes a document
        up, and hessians are at least 0. Query q has the documents ``offsets[q]`` to ``offsets[q +
        1] - 1``; the function is also called with some of the queries. A label is NaN where there
        is none. Both results are multiplied by the weights of queries and documents.
    source
        The label source; the data set's labels if None.
    """

    function: GradientFunction
    source: str | None = None

    def __post_init__(self) -> None:
        check("FunctionObjective", "source", self.source, or_none(SourceName()))
        # A model file holds the name only, which must not be taken for another objective.
        if _is_taken(str(self)):
            raise UsageError(
                f"FunctionObjective: the function {str(self)!r} has the name of another objective; "
                "rename it"
            )

    def __str__(self) -> str:
        return name_of(self.function)

    def prepare(self, targets: Targets) -> FunctionGradients:
        """Call the function once, with scores of 0, to see what it returns."""
        return FunctionGradients(self, targets)


class FunctionGradients(GradientsByQuery):
    """What a function gives for one data set."""

    def __init__(self, objective: FunctionObjective, targets: Targets) -> None:
        self._name = str(objective)
        self._function = objective.function
        self._labels = labels_of(self._name, objective.source, targets)
        self._offsets = np.asarray(targets.offsets)
        self._weights = doc_weights(targets)
        # Before the first round: a function that returns something else is refused at once, and
        # rankers ask for the reason that there is no Newton step.
        _, hessian = self._call(np.zeros(targets.n_docs), EVERY_QUERY)
        if hessian is None:
            self.no_newton = f"{self._name} returns no hessians, by which a Newton step divides"

    def gradients_of(
        self,
        queries: Mask,
        scores: Floats,
        round: int,
        out_gradient: Floats,
        out_hessian: Floats,
    ) -> None:
        """Write gradients of the documents of some queries, calling the function with these."""
        docs = self._docs(queries)
        gradient, hessian = self._call(scores[0], queries)
        out_gradient[0, docs] = gradient * self._weights[docs]
        out_hessian[0, docs] = 0.0 if hessian is None else hessian * self._weights[docs]

    def _docs(self, queries: Mask) -> Any:
        return np.repeat(queries, np.diff(self._offsets)) if len(queries) else slice(None)

    def _call(self, scores: Floats, queries: Mask) -> tuple[Floats, Floats | None]:
        docs, offsets = self._docs(queries), self._offsets
        if len(queries):  # of some queries, the function sees them as a data set of their own
            offsets = np.concatenate([[0], np.cumsum(np.diff(offsets)[queries])])
        # Copies: a function that writes into its arguments must not change the ranker's scores.
        result = self._function(scores[docs].copy(), self._labels[docs].copy(), offsets)
        both = result if isinstance(result, tuple) else (result, None)
        if len(both) != 2:
            raise UsageError(
                f"{self._name}: it returned {len(both)} arrays; expected gradients and hessians, "
                "or gradients alone"
            )
        n_docs = int(offsets[-1])
        gradient = self._numbers("gradients", both[0], n_docs)
        hessian = None if both[1] is None else self._numbers("hessians", both[1], n_docs)
        if hessian is not None and (hessian < 0.0).any():
            raise DataError(
                f"{self._name}: a hessian is {hessian.min():g}; expected at least 0, or return "
                "gradients alone"
            )
        return gradient, hessian

    def _numbers(self, what: str, values: Any, n_docs: int) -> Floats:
        try:
            numbers = np.asarray(values, np.float64)
        except (TypeError, ValueError) as problem:
            raise UsageError(f"{self._name}: the {what} are not numbers: {problem}") from None
        if numbers.shape != (n_docs,):
            raise UsageError(
                f"{self._name}: the {what} have the shape {numbers.shape}; expected ({n_docs},), "
                "one number per document"
            )
        if not np.isfinite(numbers).all():
            raise DataError(f"{self._name}: some {what} are not finite; expected finite numbers")
        return numbers


class SwapGradients(GradientsByQuery):
    """Lambda gradients of a measure without a form, from real swaps of its ranked labels.

    The measure is evaluated once for every pair of documents with different labels, in Python:
    that takes far longer than with the measures that are compiled.

    Parameters
    ----------
    measure
        A measure without a form.
    targets
        The data set.
    shuffle
        The documents of each query in the order in which ties are ranked.
    truncation, normalise
        As in `Lambdas`.
    """

    def __init__(
        self,
        measure: Measure,
        targets: Targets,
        shuffle: Integers,
        truncation: int | None,
        normalise: str,
    ) -> None:
        self._measure = measure
        self._labels = pair_labels(str(measure), measure.source, targets)
        self._offsets = targets.offsets
        self._weights = targets.query_weight
        self._doc_weights = (
            np.ones(targets.n_docs) if targets.doc_weight is None else targets.doc_weight
        )
        self._shuffle = shuffle
        self._n_top = min(truncation or DEEPEST, measure.depth or DEEPEST)
        self._normalise = normalise

    def gradients_of(
        self,
        queries: Mask,
        scores: Floats,
        round: int,
        out_gradient: Floats,
        out_hessian: Floats,
    ) -> None:
        """Write gradients of the documents of some queries."""
        every = range(len(self._offsets) - 1)
        for q in np.flatnonzero(queries) if len(queries) else every:
            docs = self._shuffle[self._offsets[q] : self._offsets[q + 1]]
            # Stable: ties keep the order of the shuffle, as in kernels.
            ranked = docs[np.argsort(-scores[0, docs], kind="stable")]
            gradient, hessian = self._of_query(
                scores[0, ranked], self._labels[ranked], self._doc_weights[ranked]
            )
            weight = 1.0 if self._weights is None else self._weights[q]
            out_gradient[0, ranked] = gradient * weight
            out_hessian[0, ranked] = hessian * weight

    def _of_query(
        self, scores: Floats, labels: Floats, doc_weights: Floats
    ) -> tuple[Floats, Floats]:
        """Return gradients and hessians by rank."""
        gradient, hessian = np.zeros((2, len(labels)))
        known = np.flatnonzero(~np.isnan(labels))
        ranked = np.nan_to_num(labels, nan=0.0)
        value = checked_value(self._measure, ranked)
        if np.isnan(value):  # a query that is left out
            return gradient, hessian
        # Where all scores are equal there is no distance to divide by.
        by_distance = self._normalise == "distance" and np.ptp(scores[known]) > 0.0
        total = 0.0
        for u in known[known < self._n_top]:
            for v in known[known > u]:
                if ranked[u] == ranked[v]:
                    continue
                better, worse = (u, v) if ranked[u] > ranked[v] else (v, u)
                change = abs(self._swapped(ranked, u, v) - value)
                if by_distance:
                    change /= 0.01 + scores[u] - scores[v]
                change *= doc_weights[u] * doc_weights[v]
                # The clip keeps exp from overflowing; rho is 0 there to the last bit.
                rho = 1.0 / (1.0 + exp(min(scores[better] - scores[worse], 700.0)))
                gradient[better] += change * rho
                gradient[worse] -= change * rho
                hessian[[u, v]] += change * rho * (1.0 - rho)
                total += 2.0 * change * rho
        factor = self._factor(gradient, total)
        return gradient * factor, hessian * factor

    def _swapped(self, ranked: Floats, u: int, v: int) -> float:
        swapped = ranked.copy()
        swapped[u], swapped[v] = ranked[v], ranked[u]
        return checked_value(self._measure, swapped)

    def _factor(self, gradient: Floats, total: float) -> float:
        """Return the factor of a query's gradients by which they are normalised."""
        if self._normalise == "deviation":
            deviation = float(gradient.std())
            return 1.0 / deviation if deviation > 0.0 else 0.0
        if self._normalise == "distance" and total > 0.0:
            return float(log2(1.0 + total) / total)
        return 1.0


class ProtocolObjective(Objective):
    """An object with a `prepare` method that is no `Objective`, with all defaults."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.measure = getattr(inner, "measure", None)
        self.no_newton = getattr(inner, "no_newton", "")

    def __str__(self) -> str:
        text = str(self._inner)
        return type(self._inner).__name__ if text == object.__repr__(self._inner) else text

    def prepare(self, targets: Targets) -> Gradients:
        """Return what the object prepares, with all defaults."""
        prepared = self._inner.prepare(targets)
        return prepared if isinstance(prepared, Gradients) else ProtocolGradients(prepared)


class ProtocolGradients(Gradients):
    """An object with a `gradients` method that is no `Gradients`, with all defaults."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.start = np.asarray(getattr(inner, "start", FROM_ZERO), np.float64)
        self.no_newton = getattr(inner, "no_newton", "")

    def gradients(
        self, scores: Floats, round: int, out_gradient: Floats, out_hessian: Floats
    ) -> None:
        """Write gradient and hessian of every document at these scores."""
        self._inner.gradients(scores, round, out_gradient, out_hessian)


def as_objective(value: Any) -> Objective | None:
    """Return an objective, a function of gradients or an object with `prepare` as an objective.

    None for anything else.
    """
    if is_gradient_function(value):
        return FunctionObjective(value)
    if isinstance(value, Objective):
        return value
    return ProtocolObjective(value) if hasattr(value, "prepare") else None


def is_gradient_function(value: Any) -> bool:
    """Tell whether a value is a function of scores, labels and offsets: by its three parameters."""
    # A function of ranked labels, which is a measure, has one parameter.
    if not callable(value) or isinstance(value, type):
        return False
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):  # some compiled functions do not tell
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in positional and p.default is p.empty for p in parameters) == 3


def register(objective: Any, name: str | None = None) -> Any:
    """Give an objective of one's own a name in texts.

    Parameters
    ----------
    objective
        An objective, a class of objectives that needs no arguments, or a function of (scores,
        labels, offsets); see `FunctionObjective`.
    name
        The name; by default that of the class or function. Upper and lower case are the same.

    Returns
    -------
    The objective itself, so that this can be used as a decorator.
    """
    value = as_objective(objective() if isinstance(objective, type) else objective)
    if value is None:
        raise UsageError(
            f"objectives.register: {objective!r} is no objective; give an Objective, or a "
            "function of (scores, labels, offsets) that returns gradients and hessians"
        )
    title = name or (objective.__name__ if isinstance(objective, type) else str(value))
    if not NAME.fullmatch(title):
        raise UsageError(
            f"objectives.register: {title!r} cannot be a name in texts; give one of letters and "
            "underscores, as in register(objective, 'my_objective')"
        )
    if _is_taken(title):
        raise UsageError(
            f"objectives.register: there is a measure or an objective {title!r} already; give "
            "another name"
        )
    CUSTOM[title.lower()] = value
    return objective


def _is_taken(name: str) -> bool:
    return is_measure_name(name) or name.lower() in {known.lower() for known in OBJECTIVES}
