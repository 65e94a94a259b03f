"""Arrays in files of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.files import atomic_write


def save_array(path: str | Path, array: NDArray[Any]) -> None:
    """Write an array to a file, which appears whole or not at all."""
    with atomic_write(path) as file:
        np.save(file, array)
