"""Concatenation of data sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rankinite.core.errors import DataError, UsageError
from rankinite.core.lazy import LazyModule
from rankinite.core.types import Floats
from rankinite.data import checks
from rankinite.data.categories import codes_by_text, joined_tables, match_codes
from rankinite.data.ranking_data import RankingData, rows_of
from rankinite.data.sparse import is_sparse

sparse: Any = LazyModule("scipy.sparse")


def concat(parts: Sequence[RankingData]) -> RankingData:
    """Concatenate data sets with the same features.

    Parts of one data set keep sharing its matrix; others are copied into a new one.

    Parameters
    ----------
    parts
        Data sets with the same feature names and label sources, and distinct queries.
    """
    if not parts:
        raise UsageError("concat: there is nothing to concatenate; give at least one data set")
    for part in parts:
        checks.require_data_set("concat", part)
    first = parts[0]
    for part in parts[1:]:
        refuse_other_features("concat", first.feature_names, part.feature_names)
        _refuse_other_sources(first, part)
    parts = _with_same_categories(parts)
    first = parts[0]
    qids = np.concatenate([part.qids for part in parts])
    checks.require_distinct_queries(qids)
    # Parts of one data set need new indexes only; matrices can be larger than memory allows twice.
    shared = all(part.matrix is first.matrix for part in parts)
    sizes = np.concatenate([part.sizes for part in parts])
    n_docs = [part.n_docs for part in parts]
    return first.replace(
        matrix=first.matrix if shared else _concat_features(parts),
        rows=np.concatenate([rows_of(part) for part in parts]) if shared else None,
        y=np.concatenate([part.y for part in parts]),
        offsets=np.concatenate([[0], np.cumsum(sizes)]),
        qids=qids,
        labels={n: np.concatenate([part.labels[n] for part in parts]) for n in first.labels},
        query_weight=_concat_weights(parts),
        # A part may lack the highest grade, by chance or because it is small.
        top_grade=max(part.top_grade for part in parts),
        doc_id_column=checks.concat_texts([part.doc_id_column for part in parts], n_docs),
        comment_column=checks.concat_texts([part.comment_column for part in parts], n_docs),
    )


def _concat_features(parts: Sequence[RankingData]) -> Any:
    matrices = [part.X for part in parts]
    if any(is_sparse(matrix) for matrix in matrices):
        return sparse.csr_array(sparse.vstack(matrices, format="csr"))
    return np.concatenate(matrices)


def _with_same_categories(parts: Sequence[RankingData]) -> list[RankingData]:
    """Return data sets whose codes mean the same."""
    tables = joined_tables(part.categories for part in parts)
    if all(part.categories == tables for part in parts):
        return list(parts)
    codes = codes_by_text(tables)
    return [
        part.replace(
            matrix=match_codes("concat", part.matrix, part.feature_names, part.categories, codes),
            categories=tables,
        )
        for part in parts
    ]


def refuse_other_features(owner: str, first: Sequence[str], other: Sequence[str]) -> None:
    """Refuse data sets that do not have the same features in the same order."""
    if tuple(first) != tuple(other):
        raise DataError(
            f"{owner}: the sets have different features: {_difference(first, other)}; "
            "choose the same with select_features"
        )


def _difference(first: Sequence[str], other: Sequence[str]) -> str:
    if len(first) != len(other):
        return f"{len(first)} and {len(other)} of them"
    pairs = zip(first, other, strict=True)
    ours, theirs = next(pair for pair in pairs if pair[0] != pair[1])
    return f"{ours!r} in one where the other has {theirs!r}"


def _refuse_other_sources(first: RankingData, part: RankingData) -> None:
    if part.labels.keys() != first.labels.keys():
        raise DataError(
            f"concat: the sets have different label sources: {sorted(first.labels)} "
            f"and {sorted(part.labels)}"
        )


def _concat_weights(parts: Sequence[RankingData]) -> Floats | None:
    if all(part.query_weight is None for part in parts):
        return None
    # A part without weights counts as if all of its weights were 1.
    weights = [np.ones(p.n_queries) if p.query_weight is None else p.query_weight for p in parts]
    return np.concatenate(weights)
