"""Sparse feature matrices: rows of SciPy's compressed format (CSR), whose absent entries are 0.

A data set may hold one in place of an array. Trees bin and score it without a dense copy; what
needs a dense matrix asks for some rows at a time (`dense_rows`), or for all of it
(`RankingData.dense`), which is refused where it would not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import DataError
from rankinite.core.lazy import LazyModule, is_instance
from rankinite.core.types import Floats32, Integers

sparse: Any = LazyModule("scipy.sparse")

# Bytes of a dense block of rows.
BLOCK_BYTES = 32 << 20


def is_sparse(matrix: Any) -> bool:
    """Return whether a matrix is one of SciPy's sparse matrices or arrays."""
    return is_instance(matrix, "scipy.sparse", "sparray") or is_instance(
        matrix, "scipy.sparse", "spmatrix"
    )


def to_csr(matrix: Any) -> Any:
    """Return a sparse matrix in CSR format with float32 values, each entry once and in order.

    Values, and a matrix that is so already, are not copied. The caller's matrix stays as it is.
    """
    if matrix.ndim != 2:
        raise DataError(f"X: has {matrix.ndim} dimensions; expected 2, documents x features")
    if matrix.dtype.kind not in "fiub":
        raise DataError(f"X: cannot be made a matrix of numbers: it holds {matrix.dtype}")
    # Kernels and SciPy's own routines do not check indexes.
    rows = matrix.tocsr()
    try:
        rows.check_format(full_check=True)
    except ValueError as problem:
        raise DataError(f"X: the sparse matrix is damaged: {problem}") from None
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused later
        values = np.asarray(rows.data, np.float32)
    csr = sparse.csr_array((values, rows.indices, rows.indptr), shape=rows.shape)
    if not csr.has_canonical_format:
        csr = csr.copy()
        csr.sum_duplicates()  # and sorts
    return csr


def require_finite_entries(matrix: Any, names: Any) -> None:
    """Refuse infinite entries of a CSR matrix; NaN, a missing value, is allowed."""
    infinite = np.isinf(matrix.data)
    if infinite.any():
        k = int(infinite.argmax())
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        raise DataError(
            f"X: feature {names[matrix.indices[k]]!r} of document {row} is infinite "
            "(or too large for a 32-bit float); expected a finite number, or NaN for missing"
        )


def dense_rows(matrix: Any, rows: slice | Integers) -> Floats32:
    """Return some rows of a matrix, dense or sparse, as an array."""
    chosen = matrix[rows]
    return chosen.toarray() if is_sparse(chosen) else chosen  # type: ignore[no-any-return]


def dense_column(matrix: Any, j: int) -> Floats32:
    """Return a column of a matrix, dense or sparse, as an array of one dimension."""
    column: Floats32 = matrix[:, [j]].toarray()[:, 0] if is_sparse(matrix) else matrix[:, j]
    return column


def row_blocks(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Iterate over blocks of rows that are small when they are dense."""
    step = max(64, BLOCK_BYTES // (4 * max(1, n_columns)))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def stored_arrays(matrix: Any) -> list[NDArray[Any]]:
    """Return the arrays that a matrix consists of, for digests and comparisons."""
    if not is_sparse(matrix):
        return [matrix]
    return [np.array(matrix.shape), matrix.data, matrix.indices, matrix.indptr]


def same_entries(left: Any, right: Any) -> bool:
    """Return whether two matrices, of which one is sparse, have the same values."""
    if left.shape != right.shape:
        return False
    ours, theirs = (sparse.csr_array(matrix) for matrix in (left, right))
    for matrix in (ours, theirs):
        if not matrix.data.all():
            matrix.eliminate_zeros()
    return (
        np.array_equal(ours.indptr, theirs.indptr)
        and np.array_equal(ours.indices, theirs.indices)
        and np.array_equal(ours.data, theirs.data, equal_nan=True)
    )
