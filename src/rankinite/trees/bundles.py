"""Bundles: neighbouring columns of few bins share a byte of a row, and are counted together.

The byte of a bundle is a number with a digit for each column, as the hours, minutes and seconds of
a day make one number of seconds. A document is added to the histogram once per bundle instead of
once per column; sums over the other digits then give the histogram of each column, exactly, since
these are sums of integers. Columns whose values are all the same are in no bundle.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankinite.core.threads import parallel_for
from rankinite.trees.kernels.binning import write_bundles
from rankinite.trees.kernels.histogram import BUNDLES_PER_WORD, MOST_CODES

# The sums over digits take longer than what is saved if a bundle has more codes for fewer rows.
ROWS_PER_CODE = 64
# Fewer rows are written by one thread before another has woken up.
ROWS_PER_THREAD = 4096


class Bundles(NamedTuple):
    """Which columns share a byte.

    Attributes
    ----------
    columns
        First column of each bundle, and the number of all columns behind the last. Padding to
        whole words are bundles without columns.
    strides
        What a bin of each column counts in its byte; 0 for a column that is in no bundle.
    n_codes
        Number of values of each bundle's byte.
    """

    columns: NDArray[np.int64]
    strides: NDArray[np.int64]
    n_codes: NDArray[np.int64]

    @classmethod
    def of(cls, n_codes: NDArray[np.int64], n_rows: int) -> Bundles:
        """Bundle as many neighbours as fit, from the first column on.

        Parameters
        ----------
        n_codes
            Number of values that each column's bins have, missing values included.
        n_rows
            Number of rows.
        """
        most = min(MOST_CODES, n_rows // ROWS_PER_CODE)
        first: list[int] = []
        codes: list[int] = []
        strides = np.zeros(len(n_codes), np.int64)
        for column in np.flatnonzero(n_codes > 1).tolist():
            size = int(n_codes[column])
            if codes and codes[-1] * size <= most:
                strides[column] = codes[-1]
                codes[-1] *= size
            else:
                strides[column] = 1
                first.append(column)
                codes.append(size)
        n_padding = -len(codes) % BUNDLES_PER_WORD
        ends = [len(n_codes)] * (n_padding + 1)
        return cls(
            columns=np.array([*first, *ends], np.int64),
            strides=strides,
            n_codes=np.array([*codes, *[1] * n_padding], np.int64),
        )

    def append(self, other: Bundles) -> Bundles:
        """Return these bundles and those of the columns behind."""
        return Bundles(
            columns=np.concatenate([self.columns[:-1], other.columns + len(self.strides)]),
            strides=np.concatenate([self.strides, other.strides]),
            n_codes=np.concatenate([self.n_codes, other.n_codes]),
        )

    @property
    def shared_codes(self) -> NDArray[np.int64]:
        """Number of codes of each bundle of several columns; 0 for one of a single column."""
        n_columns = np.bincount(self._bundle_of_varying, minlength=len(self.n_codes))
        return np.where(n_columns > 1, self.n_codes, 0)

    def offsets(
        self, split_bins: NDArray[np.int64], bin_offsets: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return where each bundle is counted.

        Parameters
        ----------
        split_bins
            Number of bins of each column; 0 for one that may not be split.
        bin_offsets
            Where each column's bins begin in a histogram.

        Returns
        -------
        NDArray
            For a bundle of a single column where its bins begin in a histogram; for others, where
            they have a place in scratch; -1 for those of which no column may be split.
        """
        shared = self.shared_codes
        is_split = split_bins[self.strides > 0] > 0
        n_split = np.bincount(self._bundle_of_varying[is_split], minlength=len(self.n_codes))
        in_scratch = np.cumsum(shared) - shared
        offsets = np.where(shared > 0, in_scratch, bin_offsets[self.columns[:-1]])
        return np.where(n_split > 0, offsets, -1)

    @property
    def _bundle_of_varying(self) -> NDArray[np.int64]:
        """Bundle of each column that is in one; the last of those that begin at or before it."""
        return np.searchsorted(self.columns[:-1], np.flatnonzero(self.strides), "right") - 1

    def bytes_of(self, columns: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the bytes of all rows, row by row, from the bins column by column."""
        out = np.zeros((columns.shape[1], len(self.n_codes)), np.uint8)
        arguments = columns, self.columns, self.strides, out
        parallel_for(write_bundles, len(out), *arguments, grain=ROWS_PER_THREAD)
        return out
