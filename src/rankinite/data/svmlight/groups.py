"""Group sizes in a file of their own, as LightGBM (``.query``) and XGBoost (``.group``) use."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import FileFormatError
from rankinite.core.progress import Silent
from rankinite.data.stream import read_blocks_of_lines

SUFFIXES = (".query", ".group")


def group_sizes_beside(path: Path) -> Path | None:
    """Return the file of group sizes that belongs to a file of documents, if there is one."""
    names = [path.name, path.name.removesuffix(".gz")]
    for name in dict.fromkeys(names):
        for suffix in SUFFIXES:
            if path.with_name(name + suffix).is_file():
                return path.with_name(name + suffix)
    return None


def read_group_sizes(path: Path) -> NDArray[np.int64]:
    """Read one whole number above 0 a line."""
    sizes: list[int] = []
    number = 0
    for block in read_blocks_of_lines(path, Silent()):
        for line in block.text[: block.n_bytes].tobytes().splitlines():
            number += 1
            text = line.strip()
            if not text:
                continue
            digits = text.lstrip(b"0")
            if not digits.isdigit() or len(digits) > 15:
                shown = text[:30].decode("utf-8", "backslashreplace")
                problem = f"{shown!r} is not a group size; expected a whole number above 0"
                raise FileFormatError(path, problem, number, 1)
            sizes.append(int(digits))
    if not sizes:
        raise FileFormatError(path, "there are no group sizes in this file")
    return np.array(sizes, np.int64)
