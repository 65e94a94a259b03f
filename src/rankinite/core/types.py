"""Type aliases of numpy arrays; shapes are documented with each array."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
