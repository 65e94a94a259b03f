"""Names of the array types that signatures use; shapes are documented where arrays are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
