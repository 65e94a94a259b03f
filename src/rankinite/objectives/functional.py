"""Lambda gradients as a function, for models outside of the library; how many pairs have them.

The objective itself is `Lambdas` in pairwise.py, its sums over pairs are in kernels/pairwise.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Real, check
from rankinite.core.threads import parallel_for
from rankinite.core.types import Floats, Integers
from rankinite.measures.text import MeasureLike
from rankinite.objectives.kernels.arrays import PAIRS
from rankinite.objectives.kernels.diagnostics import count_pairs
from rankinite.objectives.objective import Gradients, Objective, Targets, read_only
from rankinite.objectives.pairwise import Lambdas
from rankinite.objectives.parse import parse_objective


def lambda_gradients(
    measure: MeasureLike | Objective,
    scores: ArrayLike,
    y: ArrayLike | Mapping[str | None, ArrayLike],
    offsets: ArrayLike,
    *,
    top_grade: float | None = None,
    query_weight: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    truncation: int | None = None,
    normalise: str = "none",
    gain_only: bool = False,
    iteration: int = 0,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """Return the gradient of each document that improves a measure, and its hessian.

    Documents with equal scores are ranked in an order drawn from the seed.

    Parameters
    ----------
    measure
        A measure such as ``"NDCG@10"`` or ``"ERR"``; or whatever else rankers take, such as
        ``"NDCG@3 > CNDCG@3[clicks]"`` or an objective.
    scores
        One finite score per document.
    y
        One label per document, at least 0; NaN for a document without one. Several label sources
        are given by name, the data set's own under None; if there is only one, it is used
        whatever source a measure names.
    offsets
        Query q has the documents ``offsets[q]`` to ``offsets[q + 1] - 1``.
    top_grade
        The top grade; the largest label if None, of those under None if there are several
        sources.
    query_weight, sample_weight
        One weight per query, and one per document; all 1 if None. A pair counts the product of the
        weights of its documents.
    truncation, normalise, gain_only
        As in `Lambdas`.
    iteration
        Number of rounds before, for objectives that change.
    seed
        For the order of documents with equal scores.

    Returns
    -------
    gradient : array
        One number per document; positive pushes it up.
    hessian : array
        How fast the gradient falls when the document's score rises; at least 0.

    Examples
    --------
    The better document is at rank 2. A swap changes NDCG by 1 - 1 / log2(3) = 0.369, and the
    scores differ by log(3), so that 1 / (1 + exp(s_i - s_j)) is 3 / 4.

    >>> import numpy as np
    >>> gradient, hessian = lambda_gradients("NDCG", np.log([1, 3]), [1, 0], [0, 2])
    >>> gradient.round(3)
    array([ 0.277, -0.277])
    >>> hessian.round(3)
    array([0.069, 0.069])
    """
    options: dict[str, Any] = {"truncation": truncation, "normalise": normalise}
    gain: Any = measure
    objective = parse_objective(
        Lambdas(gain, **options, gain_only=True) if gain_only else measure, **options
    )
    cuts = _offsets(offsets)
    labels = _sources(y, objective, int(cuts[-1]))
    targets = Targets(
        labels=labels,
        offsets=cuts,
        top_grade=_top_grade(top_grade, next(iter(labels.values()))),
        query_weight=_weights("query_weight", query_weight, len(cuts) - 1, "queries"),
        doc_weight=_weights("sample_weight", sample_weight, int(cuts[-1]), "documents"),
        seed=seed,
    )
    column = _scores(scores, targets.n_docs)
    out = np.empty((2, 1, targets.n_docs))
    objective.prepare(targets).gradients(column[np.newaxis], iteration, out[0], out[1])
    return out[0, 0], out[1, 0]


def effective_pairs(gradients: Gradients, scores: ArrayLike) -> int:
    """Return how many pairs of documents have a lambda that is not 0, in all queries together.

    These are the pairs whose documents differ in value and whose swap changes the measure, one of
    them being above the truncation. A query of weight 0 has none.

    Parameters
    ----------
    gradients
        Gradients prepared by `Lambdas` or `RankNet`.
    scores
        One finite score per document.

    Examples
    --------
    Of three documents the second is relevant. It can swap with two others; the precision among the
    first two changes only if it moves to rank 3.

    >>> from rankinite.objectives.pairwise import Lambdas
    >>> from rankinite.objectives.objective import Targets
    >>> targets = Targets({None: np.array([0.0, 1.0, 0.0])}, np.array([0, 3]), top_grade=1.0)
    >>> [
    ...     effective_pairs(Lambdas(measure).prepare(targets), [3.0, 2.0, 1.0])
    ...     for measure in ("MAP", "P@2")
    ... ]
    [2, 1]
    """
    pairs = gradients.pairs
    if pairs is None or pairs.arrays.kind != PAIRS:
        raise UsageError(
            f"effective_pairs: {type(gradients).__name__} are not sums over all pairs; "
            "give gradients prepared by Lambdas or RankNet"
        )
    column = read_only(scores)
    n_docs = int(pairs.arrays.offsets[-1])
    if column.shape != (n_docs,):
        raise DataError(
            f"effective_pairs: the scores have the shape {column.shape}; expected ({n_docs},), "
            "one per document"
        )
    if not np.isfinite(column).all():
        doc = int(np.isfinite(column).argmin())
        raise DataError(
            f"effective_pairs: document {doc} has the score {column[doc]}; expected a finite number"
        )
    counts = np.empty(len(pairs.blocks) - 1, np.int64)
    parallel_for(count_pairs, len(counts), column, pairs.blocks, pairs.arrays, counts)
    return int(counts.sum())


def _sources(
    y: ArrayLike | Mapping[str | None, ArrayLike], objective: Objective, n_docs: int
) -> dict[str | None, Floats]:
    """Return the labels by source, those of the data set itself first."""
    if isinstance(y, Mapping):
        # None cannot be compared with texts. It comes first, for its labels tell the top grade.
        names = sorted(y, key=lambda name: (name is not None, name))
        if not names:
            raise DataError("y: there are no labels; expected those of one source at least")
        return {
            name: _labels("y" if name is None else f"y[{name!r}]", y[name], n_docs)
            for name in names
        }
    return {objective.source: _labels("y", y, n_docs)}


def _offsets(offsets: ArrayLike) -> Integers:
    # Read as floats, so that fractions are refused rather than rounded.
    cuts = _column("offsets", offsets, None, "queries + 1")
    whole = np.isfinite(cuts).all() and (np.floor(cuts) == cuts).all()
    if len(cuts) < 2 or not whole or cuts[0] != 0.0 or np.diff(cuts).min() <= 0.0:
        raise DataError(
            "offsets: expected whole numbers that start at 0, rise from query to query and end "
            "at the number of documents"
        )
    return cuts.astype(np.int64)


def _labels(name: str, y: ArrayLike, n_docs: int) -> Floats:
    labels = _column(name, y, n_docs, "documents, the last of the offsets")
    bad = np.isinf(labels) | (labels < 0.0)
    if bad.any():
        doc = int(bad.argmax())
        raise DataError(
            f"{name}: the label of document {doc} is {labels[doc]:g}; "
            "expected a finite number of at least 0, or NaN for none"
        )
    if np.isnan(labels).all():
        raise DataError(f"{name}: no document has a label; expected at least one that is not NaN")
    return labels


def _scores(scores: ArrayLike, n_docs: int) -> Floats:
    column = _column("scores", scores, n_docs, "documents, the last of the offsets")
    if not np.isfinite(column).all():
        doc = int(np.isfinite(column).argmin())
        raise DataError(f"scores: document {doc} has {column[doc]}; expected a finite number")
    return column


def _weights(name: str, values: ArrayLike | None, n: int, what: str) -> Floats | None:
    if values is None:
        return None
    weights = _column(name, values, n, what)
    bad = ~np.isfinite(weights) | (weights < 0.0)
    if bad.any():
        place = int(bad.argmax())
        raise DataError(
            f"{name}: {'query' if what == 'queries' else 'document'} {place} has "
            f"{weights[place]}; expected a finite number of at least 0"
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
