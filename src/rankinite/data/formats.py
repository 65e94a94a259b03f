"""The formats of data sets, and how the name of a file tells its own."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

Format = Literal["txt", "txt.gz", "parquet"]

PARQUET = (".parquet", ".pq")


def format_of(path: str | Path) -> Format:
    """Tell the format of a data set by the name of its file."""
    suffix = Path(path).suffix.lower()
    if suffix in PARQUET:
        return "parquet"
    return "txt.gz" if suffix == ".gz" else "txt"
