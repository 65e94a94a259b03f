"""Packed gradients, and their histograms by bin: exact integer sums, one addition per document.

A document's gradient, scaled to an integer, is in the high bits of an int64, its hessian, if splits
are chosen by hessians, in the middle and the number of documents in the low bits. A single addition
counts all three, and sums of integers do not depend on their order, hence not on the number of
threads. Gradients are packed once per tree; then, leaf by leaf, they are added to the histograms in
which splits are found. The more documents there are, the fewer bits each of them has: where too few
would be left, hessians have histograms of their own, which takes nearly twice as long.

A row has a byte for each bundle of columns (trees/bundles.py), most of which are one column, and
eight bundles make a word. Rows are gathered a tile at a time and transposed, so that the bins of
one word (16 KB) stay in the first-level cache while the whole tile is added to them: four times as
fast as adding row by row. Columns that may not be split have no bins in the histogram, and bundles
of such columns are not counted; the others of their word are, four, two or one at a time. The codes
of several columns are counted in scratch behind the histograms of all leaves.

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
BUNDLES_PER_WORD = 8
MOST_CODES = 256  # of a bundle: the values of a byte
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
    bundled, more_bundled
        Bundles of the main and of the appended columns, row by row, flattened: histograms read
        whole rows.
    n_bundles, n_more_bundles
        Bytes of such a row.
    bundle_columns
        First column of each bundle, and the number of all columns behind the last.
    bundle_codes
        Number of codes of each bundle of several columns; 0 for one of a single column.
    bundle_offsets
        Position of each bundle's first code: in a histogram if it is a single column, otherwise in
        the scratch behind all histograms; -1 if none of its columns may be split.
    strides
        What a bin of each column counts in the code of its bundle.
    columns, more_columns
        Bins column by column: a split reads a single column.
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

    bundled: NDArray[np.uint8]
    more_bundled: NDArray[np.uint8]
    n_bundles: int
    n_more_bundles: int
    bundle_columns: NDArray[np.int64]
    bundle_codes: NDArray[np.int64]
    bundle_offsets: NDArray[np.int64]
    strides: NDArray[np.int64]
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
        Pools with one histogram per leaf, and rows for the codes of bundles behind them; that of
        hessians has no columns unless it is used.
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
def add_eight_bundles(
    words: NDArray[np.uint64],
    values: NDArray[np.int64],
    offsets: NDArray[np.uint64],
    histogram: NDArray[np.int64],
) -> None:
    """Add values to the codes of all bundles of a word, which begin at ``offsets``."""
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
def add_some_bundles(
    words: NDArray[np.uint64],
    values: NDArray[np.int64],
    offsets: NDArray[np.uint64],
    shifts: NDArray[np.uint64],
    n_bundles: int,
    histogram: NDArray[np.int64],
) -> None:
    """Add values to the codes of some bundles of a word, whose bytes begin at bits ``shifts``."""
    done = 0
    while n_bundles - done >= 4:
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
    if n_bundles - done >= 2:
        o0, o1, s0, s1 = offsets[done], offsets[done + 1], shifts[done], shifts[done + 1]
        for k in range(len(words)):
            word = words[k]
            value = values[k]
            histogram[o0 + ((word >> s0) & BYTE)] += value
            histogram[o1 + ((word >> s1) & BYTE)] += value
        done += 2
    if done < n_bundles:
        o0, s0 = offsets[done], shifts[done]
        for k in range(len(words)):
            histogram[o0 + ((words[k] >> s0) & BYTE)] += values[k]


@kernel
def add_rows(
    bundled: NDArray[np.uint8],
    row_bytes: int,
    first_byte: int,
    last_byte: int,
    rows: NDArray[np.int32],
    values: NDArray[np.int64],
    codes: NDArray[np.int64],
    offsets: NDArray[np.int64],
    start: int,
    scratch_start: int,
    histograms: NDArray[np.int64],
    tile: NDArray[np.uint64],
    tile_values: NDArray[np.int64],
) -> None:
    """Add the values of some rows to the codes of the bundles from first to last byte.

    ``bundled`` holds rows of ``row_bytes`` bundles one behind the other. The codes of the bundle in
    byte c begin ``offsets[c]`` behind ``start`` if ``codes[c]`` is 0, else behind
    ``scratch_start``; a bundle with a negative offset is not counted.
    """
    n = len(rows)
    word_offsets = np.empty(BUNDLES_PER_WORD, np.uint64)
    shifts = np.empty(BUNDLES_PER_WORD, np.uint64)
    for first in range(0, n, TILE_ROWS):
        size = min(TILE_ROWS, n - first)
        for k in range(size):
            # Rows of a node are far apart in memory: ask for those that come soon.
            ahead = min(first + k + PREFETCH_ROWS, n - 1)
            row_start = np.int64(rows[ahead]) * row_bytes
            for byte in range(first_byte, last_byte, CACHE_LINE):
                prefetch(bundled, row_start + byte)
            # Rows do not begin at cache lines, so the steps above may miss the last line.
            prefetch(bundled, row_start + last_byte - 1)
            # In 64 bits, because the position of its bytes may be beyond 2^31.
            row = np.int64(rows[first + k])
            tile_values[k] = values[row]
            row_start = row * row_bytes
            # Transposed: a tile has the words of one place of all rows behind each other.
            target = k
            for byte in range(first_byte, last_byte, BUNDLES_PER_WORD):
                tile[target] = load_word(bundled, row_start + byte)
                target += TILE_STRIDE
        source = 0
        for byte in range(first_byte, last_byte, BUNDLES_PER_WORD):
            # A bundle is written down in any case, and overwritten if it is not counted.
            n_bundles = 0
            for c in range(BUNDLES_PER_WORD):
                offset = offsets[byte + c] + (start if codes[byte + c] == 0 else scratch_start)
                # Unsigned, because a signed index is first checked for counting from the end.
                word_offsets[n_bundles] = np.uint64(offset)
                shifts[n_bundles] = np.uint64(8 * c)
                n_bundles += offsets[byte + c] >= 0
            words = tile[source : source + size]
            if n_bundles == BUNDLES_PER_WORD:
                add_eight_bundles(words, tile_values, word_offsets, histograms)
            else:
                add_some_bundles(words, tile_values, word_offsets, shifts, n_bundles, histograms)
            source += TILE_STRIDE


@inlined_kernel
def clear(sums: NDArray[np.int64]) -> None:
    """Write zeros.

    Into a slice, because indexes from 0 on need not be checked for counting from the end, which
    would keep the loop from being vectorised.
    """
    for k in range(len(sums)):
        sums[k] = 0


@kernel
def add_digit(
    codes: NDArray[np.int64], stride: int, n_values: int, histogram: NDArray[np.int64]
) -> None:
    """Add the sums over all codes with the same digit in one place to a histogram."""
    period = stride * n_values
    for begin in range(0, len(codes), period):
        for value in range(n_values):
            first = begin + value * stride
            total = np.int64(0)
            for code in range(first, first + stride):
                total += codes[code]
            histogram[value] += total


@kernel
def count_bundles(
    data: TreeData,
    values: NDArray[np.int64],
    rows: NDArray[np.int32],
    first: int,
    last: int,
    pool: NDArray[np.int64],
    leaf: int,
    n_leaves: int,
    tile: NDArray[np.uint64],
    tile_values: NDArray[np.int64],
) -> None:
    """Make the histogram of some rows in the bundles first to last, which may be in both blocks.

    The histogram is the row ``leaf`` of the pool; behind ``n_leaves`` of them is scratch.
    """
    offsets, codes, bundle_columns = data.bundle_offsets, data.bundle_codes, data.bundle_columns
    n_bundles, n_more = data.n_bundles, data.n_more_bundles
    bin_offsets, split_bins, strides = data.bin_offsets, data.split_bins, data.strides
    flat = pool.reshape(pool.size)
    start, scratch_start = leaf * pool.shape[1], n_leaves * pool.shape[1]
    histogram = pool[leaf]
    # The bins of other columns belong to other threads.
    clear(histogram[bin_offsets[bundle_columns[first]] : bin_offsets[bundle_columns[last]]])
    for bundle in range(first, last):
        if codes[bundle] > 0 and offsets[bundle] >= 0:
            begin = scratch_start + offsets[bundle]
            clear(flat[begin : begin + codes[bundle]])
    if first < n_bundles:
        end = min(last, n_bundles)
        add_rows(
            data.bundled, n_bundles, first, end, rows, values, codes, offsets, start,
            scratch_start, flat, tile, tile_values,
        )  # fmt: skip
    if last > n_bundles:
        begin = max(first, n_bundles) - n_bundles
        add_rows(
            data.more_bundled, n_more, begin, last - n_bundles, rows, values, codes[n_bundles:],
            offsets[n_bundles:], start, scratch_start, flat, tile, tile_values,
        )  # fmt: skip
    for bundle in range(first, last):
        if codes[bundle] == 0 or offsets[bundle] < 0:
            continue
        begin = scratch_start + offsets[bundle]
        counted = flat[begin : begin + codes[bundle]]
        # A column's digit ends where the next one's stride begins.
        period = codes[bundle]
        for column in range(bundle_columns[bundle + 1] - 1, bundle_columns[bundle] - 1, -1):
            if strides[column] == 0:
                continue
            if split_bins[column] > 0:
                begin = bin_offsets[column]
                add_digit(
                    counted, strides[column], period // strides[column],
                    histogram[begin : bin_offsets[column + 1]],
                )  # fmt: skip
            period = strides[column]


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
    """Make the histograms of two new leaves in the bundles first to last.

    The smaller leaf is counted; the larger, which has its parent's histogram, is parent minus
    smaller. A leaf that cannot be split needs no histogram. ``larger`` is -1 for the root.
    """
    larger_counts = larger >= 0 and leaves[larger, SPLITTABLE] == 1
    if not larger_counts and leaves[smaller, SPLITTABLE] == 0:
        return
    rows = workspace.rows[leaves[smaller, START] : leaves[smaller, END]]
    counted = leaves[smaller, HISTOGRAM]
    histograms, hessian_histograms = workspace.histograms, workspace.hessian_histograms
    n_leaves = len(leaves)
    count_bundles(
        data, data.gradients, rows, first, last, histograms, counted, n_leaves, tile, tile_values
    )
    if data.separate_hessians:
        count_bundles(
            data, data.hessians, rows, first, last, hessian_histograms, counted, n_leaves, tile,
            tile_values,
        )  # fmt: skip
    if larger_counts:
        # Exact, since these are sums of integers: no rounding errors add up from level to level.
        inherited = leaves[larger, HISTOGRAM]
        begin = data.bin_offsets[data.bundle_columns[first]]
        end = data.bin_offsets[data.bundle_columns[last]]
        subtract(histograms[inherited], histograms[counted], begin, end)
        if data.separate_hessians:
            subtract(hessian_histograms[inherited], hessian_histograms[counted], begin, end)
