"""Packed gradients, and their histograms by bin: exact integer sums, one addition per document.

A document's gradient, scaled to an integer, is in the high bits of an int64, its hessian, if splits
are chosen by hessians, in the middle and the number of documents in the low bits. A single addition
counts all three, and sums of integers do not depend on their order, hence not on the number of
threads. Gradients are packed once per tree; then, leaf by leaf, they are added to the histograms in
which splits are found. The more documents there are, the fewer bits each of them has: where too few
would be left, hessians have histograms of their own, which takes nearly twice as long.

Eight columns make a word. Rows are gathered a tile at a time and transposed, so that the bins of
one word's columns (16 KB) stay in the first-level cache while the whole tile is added to them:
four times as fast as adding row by row. Columns that may not be split have no bins in the histogram
and are not counted; the others of their word are, four, two or one at a time.

Arguments of the tree kernels are bundled in named tuples. Numba compiles a named tuple of arrays
like its members, so a bundle costs nothing when it is passed on. Reading a member in an inner loop
would cost a reference count each time; kernels therefore take the arrays they need out of a bundle
before their loops begin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.jit import inlined_kernel, kernel, load_word, prefetch
from rankinite.core.lanes import in_all_lanes, load_lanes, n_lanes, select, sum_of_lanes

# Floats are summed over a fixed number of blocks, then block by block, so that sums do not depend
# on the number of threads.
SUM_BLOCKS = 64
# Sums side by side in each block.
SUMS = n_lanes(np.float64)
COLUMNS_PER_WORD = 8
# The words and values of a tile, 4 KB each, are in the cache beside the bins of a word.
TILE_ROWS = 512
# A distance between words that is no power of two spreads them over the sets of the cache.
TILE_STRIDE = 520
CACHE_LINE = 64
# Far enough for memory to answer in time, near enough that the line is still cached when needed.
PREFETCH_ROWS = 8
BYTE = np.uint64(255)

# Columns of the table of leaves: the range of rows, the depth, the sums of packed gradients and of
# hessians, the row of the histogram pool, the split and the side that the leaf hangs on, and
# whether the leaf is large and shallow enough to be split.
START, END, DEPTH, GRADIENT, HESSIAN, HISTOGRAM, PARENT, SIDE, SPLITTABLE = range(9)
LEAF_FIELDS = 9


class Packing(NamedTuple):
    """Which bits of a packed gradient are what; the gradient is in those above all others.

    Attributes
    ----------
    count_bits
        The lowest bits hold the number of documents.
    hessian_bits
        The bits above these hold the hessian; 0 if it is not packed.
    separate_hessians
        Whether hessians have histograms of their own. If they are neither there nor packed, every
        document has a hessian of 1.
    """

    count_bits: int
    hessian_bits: int
    separate_hessians: bool


class TreeData(NamedTuple):
    """Binned features and packed gradients of all rows. All arrays are contiguous.

    Attributes
    ----------
    bins, more_bins
        Bins of the main and of the appended columns, row by row, flattened: histograms read whole
        rows.
    columns, more_columns
        The same bins column by column: a split reads a single column.
    n_bins
        Number of bins of each column, without the bin for missing values.
    split_bins
        The same, but 0 for columns that this tree may not split.
    categorical
        Whether the bins of each column are categories, which have no order.
    bin_offsets
        Position of each column's first bin in a histogram. Columns that may not be split take no
        space.
    gradients
        Packed gradient of each row, with its number of documents and perhaps its hessian.
    hessians
        Hessian of each row as an integer; read only if they have histograms of their own.
    count_bits, hessian_bits, separate_hessians
        The `Packing` of gradients; not as a tuple, because parallel loops take none in a tuple.
    noise
        Random numbers that are added to the scores of splits, a row per depth, over and over, and
        one number per column; no columns if there is no noise.
    directions
        Monotone constraint of each column: 1, 0 or -1; empty if there is none.
    groups
        Whether each column is in each group of an interaction constraint, a row per group; no rows
        if there is none.
    """

    bins: NDArray[np.uint8]
    more_bins: NDArray[np.uint8]
    columns: NDArray[np.uint8]
    more_columns: NDArray[np.uint8]
    n_bins: NDArray[np.int64]
    split_bins: NDArray[np.int64]
    categorical: NDArray[np.bool_]
    bin_offsets: NDArray[np.int64]
    gradients: NDArray[np.int64]
    hessians: NDArray[np.int64]
    count_bits: int
    hessian_bits: int
    separate_hessians: bool
    noise: NDArray[np.float64]
    directions: NDArray[np.int64]
    groups: NDArray[np.bool_]


class Workspace(NamedTuple):
    """Memory that is used again for each tree.

    Attributes
    ----------
    rows
        Rows of the tree; growing brings them into the order of the leaves.
    right_rows
        Scratch of the same length for partitioning.
    histograms, hessian_histograms
        Pools with one histogram per leaf; that of hessians has no columns unless it is used.
    tiles, tile_values
        Bins of some rows, transposed, and their gradients or hessians; one row per thread.
    sides
        The side of each row by a categorical split; empty if no column is categorical.
    """

    rows: NDArray[np.int32]
    right_rows: NDArray[np.int32]
    histograms: NDArray[np.int64]
    hessian_histograms: NDArray[np.int64]
    tiles: NDArray[np.uint64]
    tile_values: NDArray[np.int64]
    sides: NDArray[np.uint8]


@inlined_kernel
def docs_in(packed: int, count_bits: int) -> int:
    """Return the number of documents in a packed gradient, or in a sum of them."""
    return packed & ((np.int64(1) << count_bits) - 1)


@inlined_kernel
def packing_of(data: TreeData) -> Packing:
    """Return where the parts of a packed gradient are."""
    return Packing(data.count_bits, data.hessian_bits, data.separate_hessians)


@inlined_kernel
def absolute_sum_between(
    values: NDArray[np.float64], chosen: NDArray[np.bool_], first: int, last: int
) -> float:
    """Return the sum of the absolute values of the chosen documents from first to last - 1.

    Several sums side by side, so that an addition need not wait for the one before.
    """
    if len(chosen) == 0:
        whole = first + (last - first) // SUMS * SUMS
        total = in_all_lanes(0.0)
        for i in range(first, whole, SUMS):
            total = total + abs(load_lanes(values, i))
        rest = 0.0
        for i in range(whole, last):
            rest += abs(values[i])
        return sum_of_lanes(total) + rest
    a = b = c = d = 0.0
    whole = first + (last - first) // 4 * 4
    for i in range(first, whole, 4):
        a += size_if(chosen[i], values[i])
        b += size_if(chosen[i + 1], values[i + 1])
        c += size_if(chosen[i + 2], values[i + 2])
        d += size_if(chosen[i + 3], values[i + 3])
    for i in range(whole, last):
        a += size_if(chosen[i], values[i])
    return (a + b) + (c + d)


@inlined_kernel
def size_if(is_chosen: bool, value: float) -> float:
    """Return the absolute value if the document is chosen, otherwise 0.

    Chance chooses documents: no processor could predict a branch.
    """
    return select(is_chosen, abs(value), 0.0)


@kernel
def absolute_sums(
    first_block: int,
    last_block: int,
    values: NDArray[np.float64],
    chosen: NDArray[np.bool_],
    out: NDArray[np.float64],
) -> None:
    """Write the sums of the absolute values of the chosen documents, or of all, in each block."""
    n_docs, n_blocks = len(values), len(out)
    for block in range(first_block, last_block):
        first, last = n_docs * block // n_blocks, n_docs * (block + 1) // n_blocks
        out[block] = absolute_sum_between(values, chosen, first, last)


@kernel
def square_sum(values: NDArray[np.float64], scale: float, chosen: NDArray[np.bool_]) -> float:
    """Return the sum of the squares of scaled values of the chosen documents; of all if empty.

    Document by document, and not row by row: documents that share a row count like copies.
    """
    total = 0.0
    for i in range(len(values)):
        if len(chosen) == 0 or chosen[i]:
            total += (values[i] * scale) ** 2
    return total


@inlined_kernel
def quantise(value: float, scale: float, shift: int) -> int:
    """Return a scaled value as an integer; above ``shift`` lower bits, with a count of 1 there."""
    integer = np.int64(np.rint(value * scale))
    # The count of all documents together has fewer bits: no sum of counts reaches the gradient.
    return (integer << shift) + 1 if shift > 0 else integer


@kernel
def pack_docs(
    first_doc: int,
    last_doc: int,
    values: NDArray[np.float64],
    scale: float,
    shift: int,
    chosen: NDArray[np.bool_],
    out: NDArray[np.int64],
) -> None:
    """Write the packed value of each document; 0 for one not chosen."""
    every = len(chosen) == 0
    for i in range(first_doc, last_doc):
        packed = quantise(values[i], scale, shift)
        out[i] = packed if every or chosen[i] else 0


@kernel
def sum_shares(
    first_share: int,
    last_share: int,
    values: NDArray[np.float64],
    scale: float,
    shift: int,
    chosen: NDArray[np.bool_],
    rows: NDArray[np.int32],
    out: NDArray[np.int64],
) -> None:
    """Write the sum of the packed values of each row's documents, for each share of the documents.

    Shares have sums of their own, because several of them may have documents of the same row.
    """
    n_docs, n_shares = len(values), len(out)
    every = len(chosen) == 0
    for share in range(first_share, last_share):
        sums = out[share]
        sums[:] = 0
        for i in range(n_docs * share // n_shares, n_docs * (share + 1) // n_shares):
            if every or chosen[i]:
                sums[rows[i]] += quantise(values[i], scale, shift)


@kernel
def rows_with_docs(gradients: NDArray[np.int64], count_bits: int, out: NDArray[np.int32]) -> int:
    """Write the rows that have a document, by their packed gradients; return how many there are.

    Each row is written and the position advances only if it counts, so ``out`` is longer than the
    rows by one.
    """
    n = 0
    for row in range(len(gradients)):
        out[n] = row
        n += docs_in(gradients[row], count_bits) > 0
    return n


@kernel
def add_eight_columns(
    words: NDArray[np.uint64],
    values: NDArray[np.int64],
    offsets: NDArray[np.uint64],
    histogram: NDArray[np.int64],
) -> None:
    """Add values to the bins of all columns of a word, which begin at ``offsets``."""
    # Local variables stay in registers; elements of an array would be loaded for every row, as
    # the compiler cannot know that the histogram does not overlap them.
    o0, o1, o2, o3 = offsets[0], offsets[1], offsets[2], offsets[3]
    o4, o5, o6, o7 = offsets[4], offsets[5], offsets[6], offsets[7]
    for k in range(len(words)):
        word = words[k]
        value = values[k]
        histogram[o0 + (word & BYTE)] += value
        histogram[o1 + ((word >> np.uint64(8)) & BYTE)] += value
        histogram[o2 + ((word >> np.uint64(16)) & BYTE)] += value
        histogram[o3 + ((word >> np.uint64(24)) & BYTE)] += value
        histogram[o4 + ((word >> np.uint64(32)) & BYTE)] += value
        histogram[o5 + ((word >> np.uint64(40)) & BYTE)] += value
        histogram[o6 + ((word >> np.uint64(48)) & BYTE)] += value
        histogram[o7 + (word >> np.uint64(56))] += value


@kernel
def add_some_columns(
    words: NDArray[np.uint64],
    values: NDArray[np.int64],
    offsets: NDArray[np.uint64],
    shifts: NDArray[np.uint64],
    n_columns: int,
    histogram: NDArray[np.int64],
) -> None:
    """Add values to the bins of some columns of a word, whose bytes begin at bits ``shifts``."""
    done = 0
    while n_columns - done >= 4:
        o0, o1, o2, o3 = offsets[done], offsets[done + 1], offsets[done + 2], offsets[done + 3]
        s0, s1, s2, s3 = shifts[done], shifts[done + 1], shifts[done + 2], shifts[done + 3]
        for k in range(len(words)):
            word = words[k]
            value = values[k]
            histogram[o0 + ((word >> s0) & BYTE)] += value
            histogram[o1 + ((word >> s1) & BYTE)] += value
            histogram[o2 + ((word >> s2) & BYTE)] += value
            histogram[o3 + ((word >> s3) & BYTE)] += value
        done += 4
    if n_columns - done >= 2:
        o0, o1, s0, s1 = offsets[done], offsets[done + 1], shifts[done], shifts[done + 1]
        for k in range(len(words)):
            word = words[k]
            value = values[k]
            histogram[o0 + ((word >> s0) & BYTE)] += value
            histogram[o1 + ((word >> s1) & BYTE)] += value
        done += 2
    if done < n_columns:
        o0, s0 = offsets[done], shifts[done]
        for k in range(len(words)):
            histogram[o0 + ((words[k] >> s0) & BYTE)] += values[k]


@kernel
def add_rows(
    bins: NDArray[np.uint8],
    row_bytes: int,
    first_byte: int,
    last_byte: int,
    rows: NDArray[np.int32],
    values: NDArray[np.int64],
    bin_offsets: NDArray[np.int64],
    histogram: NDArray[np.int64],
    tile: NDArray[np.uint64],
    tile_values: NDArray[np.int64],
) -> None:
    """Add the values of some rows to the histograms of the columns from first to last byte.

    ``bins`` holds rows of ``row_bytes`` columns one behind the other. The bins of the column in
    byte c begin at ``bin_offsets[c]`` and end at ``bin_offsets[c + 1]``; a column without bins is
    not counted.
    """
    n = len(rows)
    offsets = np.empty(COLUMNS_PER_WORD, np.uint64)
    shifts = np.empty(COLUMNS_PER_WORD, np.uint64)
    for start in range(0, n, TILE_ROWS):
        size = min(TILE_ROWS, n - start)
        for k in range(size):
            # Rows of a node are far apart in memory: ask for those that come soon.
            ahead = min(start + k + PREFETCH_ROWS, n - 1)
            row_start = np.int64(rows[ahead]) * row_bytes
            for byte in range(first_byte, last_byte, CACHE_LINE):
                prefetch(bins, row_start + byte)
            # Rows do not begin at cache lines, so the steps above may miss the last line.
            prefetch(bins, row_start + last_byte - 1)
            # In 64 bits, because the position of its bins may be beyond 2^31.
            row = np.int64(rows[start + k])
            tile_values[k] = values[row]
            row_start = row * row_bytes
            # Transposed: a tile has the words of one place of all rows behind each other.
            target = k
            for byte in range(first_byte, last_byte, COLUMNS_PER_WORD):
                tile[target] = load_word(bins, row_start + byte)
                target += TILE_STRIDE
        source = 0
        for byte in range(first_byte, last_byte, COLUMNS_PER_WORD):
            # A column is written down in any case, and overwritten by the next if it has no bins.
            n_columns = 0
            for c in range(COLUMNS_PER_WORD):
                # Unsigned, because a signed index is first checked for counting from the end.
                offsets[n_columns] = np.uint64(bin_offsets[byte + c])
                shifts[n_columns] = np.uint64(8 * c)
                n_columns += bin_offsets[byte + c] < bin_offsets[byte + c + 1]
            words = tile[source : source + size]
            if n_columns == COLUMNS_PER_WORD:
                add_eight_columns(words, tile_values, offsets, histogram)
            else:
                add_some_columns(words, tile_values, offsets, shifts, n_columns, histogram)
            source += TILE_STRIDE


@kernel
def count_columns(
    data: TreeData,
    values: NDArray[np.int64],
    rows: NDArray[np.int32],
    first: int,
    last: int,
    histogram: NDArray[np.int64],
    tile: NDArray[np.uint64],
    tile_values: NDArray[np.int64],
) -> None:
    """Make the histogram of some rows in the columns first to last, which may be in both blocks."""
    offsets = data.bin_offsets
    row_bytes, more_bytes = data.columns.shape[0], data.more_columns.shape[0]
    # The bins of other columns belong to other threads. A slice, because indexes from 0 on need not
    # be checked for counting from the end, which would keep the loop from being vectorised.
    cleared = histogram[offsets[first] : offsets[last]]
    for k in range(len(cleared)):
        cleared[k] = 0
    if first < row_bytes:
        end = min(last, row_bytes)
        add_rows(
            data.bins, row_bytes, first, end, rows, values, offsets, histogram, tile, tile_values
        )
    if last > row_bytes:
        start = max(first, row_bytes) - row_bytes
        add_rows(
            data.more_bins, more_bytes, start, last - row_bytes, rows, values,
            offsets[row_bytes:], histogram, tile, tile_values,
        )  # fmt: skip


@kernel
def subtract(parent: NDArray[np.int64], child: NDArray[np.int64], first: int, last: int) -> None:
    """Subtract a child's histogram from its parent's, which becomes that of the other child."""
    whole = parent[first:last]
    part = child[first:last]
    for k in range(len(whole)):
        whole[k] -= part[k]


@kernel
def count_siblings(
    data: TreeData,
    workspace: Workspace,
    leaves: NDArray[np.int64],
    smaller: int,
    larger: int,
    first: int,
    last: int,
    tile: NDArray[np.uint64],
    tile_values: NDArray[np.int64],
) -> None:
    """Make the histograms of two new leaves in the columns first to last.

    The smaller leaf is counted; the larger, which has its parent's histogram, is parent minus
    smaller. A leaf that cannot be split needs no histogram. ``larger`` is -1 for the root.
    """
    larger_counts = larger >= 0 and leaves[larger, SPLITTABLE] == 1
    if not larger_counts and leaves[smaller, SPLITTABLE] == 0:
        return
    rows = workspace.rows[leaves[smaller, START] : leaves[smaller, END]]
    counted = leaves[smaller, HISTOGRAM]
    histogram = workspace.histograms[counted]
    count_columns(data, data.gradients, rows, first, last, histogram, tile, tile_values)
    if data.separate_hessians:
        hessians = workspace.hessian_histograms[counted]
        count_columns(data, data.hessians, rows, first, last, hessians, tile, tile_values)
    if larger_counts:
        # Exact, since these are sums of integers: no rounding errors add up from level to level.
        inherited = leaves[larger, HISTOGRAM]
        begin, end = data.bin_offsets[first], data.bin_offsets[last]
        subtract(workspace.histograms[inherited], histogram, begin, end)
        if data.separate_hessians:
            pool = workspace.hessian_histograms
            subtract(pool[inherited], pool[counted], begin, end)
