"""Lambda gradients of given scores, for whoever trains a model of their own."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rankinite.core.errors import DataError
from rankinite.core.params import Real, check
from rankinite.measures.measure import GradedMeasure, Measure
from rankinite.objectives.lambdas import Lambdas
from rankinite.objectives.objective import Floats, Targets


def lambda_gradients(
    measure: str | Measure | GradedMeasure,
    scores: ArrayLike,
    y: ArrayLike,
    offsets: ArrayLike,
    *,
    top_grade: float | None = None,
    query_weight: ArrayLike | None = None,
    truncation: int | None = None,
    normalise: str = "none",
    gain_only: bool = False,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Return where each document should move to improve a measure, and how sure that is.

    Documents with equal scores are ranked in an order drawn from the seed.

    Parameters
    ----------
    measure
        Such as ``"NDCG@10"`` or ``"ERR"``. Whatever label source it names, ``y`` is used.
    scores
        One finite score a document.
    y
        One label a document, at least 0; NaN for a document without one.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    top_grade
        The largest grade there can be; the largest label if None.
    query_weight
        One weight a query; all 1 if None.
    truncation, normalise, gain_only
        As in `Lambdas`.
    seed
        For the order of documents with equal scores.

    Returns
    -------
    lam : array
        One lambda a document; positive pushes it up.
    weight : array
        How fast lambda falls when the document's score rises; at least 0.

    Examples
    --------
    The better document stands at rank 2. A swap is worth 1 - 1 / log2(3) = 0.369, and the
    scores differ by log(3), so that 1 / (1 + exp(s_i - s_j)) is 3 / 4.

    >>> import numpy as np
    >>> lam, weight = lambda_gradients("NDCG", np.log([1, 3]), [1, 0], [0, 2])
    >>> lam.round(3)
    array([ 0.277, -0.277])
    >>> weight.round(3)
    array([0.069, 0.069])
    """
    objective = Lambdas(measure, truncation=truncation, normalise=normalise, gain_only=gain_only)
    cuts = _offsets(offsets)
    labels = _labels(y, int(cuts[-1]))
    targets = Targets(
        labels={objective.measure.source: labels},
        offsets=cuts,
        top_grade=_top_grade(top_grade, labels),
        query_weight=_weights(query_weight, len(cuts) - 1),
        seed=seed,
    )
    given = _scores(scores, targets.n_docs)
    out = np.empty((2, 1, targets.n_docs))
    objective.prepare(targets).gradients(given[np.newaxis], 0, out[0], out[1])
    return out[0, 0], out[1, 0]


def _offsets(offsets: ArrayLike) -> NDArray[np.int64]:
    given = _column("offsets", offsets, None, "queries + 1")
    whole = np.isfinite(given).all() and (np.floor(given) == given).all()
    if len(given) < 2 or not whole or given[0] != 0.0 or np.diff(given).min() <= 0.0:
        raise DataError(
            "offsets: expected whole numbers that start at 0, rise from query to query and end "
            "at the number of documents"
        )
    return given.astype(np.int64)


def _labels(y: ArrayLike, n_docs: int) -> Floats:
    labels = _column("y", y, n_docs, "documents, the last of the offsets")
    bad = np.isinf(labels) | (labels < 0.0)
    if bad.any():
        doc = int(bad.argmax())
        raise DataError(
            f"y: the label of document {doc} is {labels[doc]:g}; "
            "expected a finite number of at least 0, or NaN for none"
        )
    if np.isnan(labels).all():
        raise DataError("y: no document has a label; expected at least one that is not NaN")
    return labels


def _scores(scores: ArrayLike, n_docs: int) -> Floats:
    given = _column("scores", scores, n_docs, "documents, the last of the offsets")
    if not np.isfinite(given).all():
        doc = int(np.isfinite(given).argmin())
        raise DataError(f"scores: document {doc} has {given[doc]}; expected a finite number")
    return given


def _weights(query_weight: ArrayLike | None, n_queries: int) -> Floats | None:
    if query_weight is None:
        return None
    weights = _column("query_weight", query_weight, n_queries, "queries")
    bad = ~np.isfinite(weights) | (weights < 0.0)
    if bad.any():
        query = int(bad.argmax())
        raise DataError(
            f"query_weight: query {query} has {weights[query]}; "
            "expected a finite number of at least 0"
        )
    return weights


def _top_grade(top_grade: float | None, labels: Floats) -> float:
    if top_grade is None:
        return float(np.nanmax(labels))
    check("lambda_gradients", "top_grade", top_grade, Real(0))
    return float(top_grade)


def _column(name: str, values: ArrayLike, n: int | None, what: str) -> Floats:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise DataError(f"{name}: cannot be made an array of numbers: {problem}") from None
    if column.ndim != 1:
        raise DataError(f"{name}: has {column.ndim} dimensions; expected 1")
    if n is not None and len(column) != n:
        raise DataError(f"{name}: there are {len(column)}; expected {n}, as many as {what}")
    return column
