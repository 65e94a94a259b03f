"""How many bins features have: what fits into a byte. Forests, binning and kernels agree on it."""

from __future__ import annotations

import numpy as np

# Of a feature, without the bin for missing values.
MOST_BINS = 255
# Cut points of a column are padded with infinity to a power of two, for binary search.
PADDED_CUTS = 256
# A set of bins, one bit for each.
SET_BYTES = 32
# No index: row i is document i.
EVERY_ROW = np.zeros(0, np.int64)
EVERY_ROW.flags.writeable = False
