"""SVMlight/LETOR text: ``<label> qid:<query> <feature>:<value> ... # <comment>``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rankinite.core.progress import Progress
from rankinite.data.ranking_data import RankingData
from rankinite.data.stream import GZIP_MAGIC
from rankinite.data.svmlight.read import read_svmlight
from rankinite.data.svmlight.write import write_svmlight

__all__ = ["GzipSvmlight", "Svmlight", "read_svmlight", "write_svmlight"]

FIRST_BYTES = b"+-.0123456789#"  # of a label, or of a comment


class Svmlight:
    """SVMlight/LETOR text as a `FileFormat`."""

    name = "txt"
    title = "text"
    suffixes: Sequence[str] = (".txt", ".svm", ".svmlight", ".libsvm", ".letor")
    options = frozenset({"labels", "group", "top_grade", "n_features", "query_file", "comments"})

    def recognise(self, head: bytes) -> bool:
        """Return whether the first bytes are those of a label or a comment."""
        return head.lstrip()[:1] in FIRST_BYTES

    def read(
        self, path: str | Path, *, progress: Progress | None = None, **options: Any
    ) -> RankingData:
        """Read a file; see `read_svmlight`."""
        return read_svmlight(path, progress=progress, **options)

    def write(
        self, data: RankingData, path: str | Path, *, progress: Progress | None = None
    ) -> None:
        """Write a file; see `write_svmlight`."""
        write_svmlight(data, path, progress=progress)


class GzipSvmlight(Svmlight):
    """SVMlight/LETOR text, compressed by gzip, as a `FileFormat`."""

    name = "txt.gz"
    title = "compressed text"
    suffixes = (".gz",)

    def recognise(self, head: bytes) -> bool:
        """Return whether the file begins as gzip files do."""
        return head.startswith(GZIP_MAGIC)
