"""Splits and folds of queries; a query and its samples stay together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError, UsageError
from rankinite.core.params import Real, Whole, check
from rankinite.core.random import generator
from rankinite.core.types import Integers
from rankinite.data.samples import are_samples, origins

PROPORTION = Real(0, 1e100, low_open=True)  # bounded so that sums are finite


def split_queries(qids: NDArray[Any], parts: int | Sequence[float], seed: int) -> list[Integers]:
    """Return the queries of each part: origins in shuffled order, samples behind their query."""
    origin = origins(qids)
    n_origins = int(origin.max()) + 1
    order = generator(seed, "split").permutation(n_origins)
    bounds = _bounds(parts, n_origins)
    place = np.argsort(order)[origin]
    queries = np.lexsort((are_samples(qids), place))
    return np.split(queries, np.searchsorted(place[queries], bounds[:-1]))


def _bounds(parts: int | Sequence[float], n_origins: int) -> Integers:
    """Return the end of each part; no part may be empty."""
    shares = _shares(parts)
    bounds: Integers = np.rint(np.cumsum(shares) / shares.sum() * n_origins).astype(np.int64)
    if (np.diff(bounds, prepend=0) == 0).any():
        raise UsageError(
            f"split: {n_origins} queries are too few to give each of {len(shares)} parts "
            "at least one; ask for fewer parts, or for other proportions"
        )
    return bounds


def _shares(parts: int | Sequence[float]) -> NDArray[np.float64]:
    if not isinstance(parts, (Sequence, np.ndarray)):
        check("split", "parts", parts, Whole(1))
        return np.full(int(parts), 1.0)
    for share in parts:
        check("split", "a proportion", share, PROPORTION)
    if len(parts) == 0:
        raise UsageError("split: parts is empty; give a number or proportions")
    return np.asarray(parts, dtype=np.float64)


def fold_queries(qids: NDArray[Any], n: int, seed: int) -> list[tuple[Integers, Integers]]:
    """Return n pairs: the queries to train on, and the original queries to validate on."""
    check("folds", "n", n, Whole(2))
    parts = split_queries(qids, n, seed)
    sampled = are_samples(qids)
    held_out = [part[~sampled[part]] for part in parts]
    for number, originals in enumerate(held_out, 1):
        if len(originals) == 0:
            raise DataError(
                f"folds: fold {number} of {n} has only samples to validate on, and validation data "
                "is never augmented; the data lack the original queries: add them, or ask for "
                "fewer folds"
            )
    return [(np.concatenate(parts[:k] + parts[k + 1 :]), held_out[k]) for k in range(n)]
