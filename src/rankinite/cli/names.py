"""Short names for files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the stems of different files, with as many folders as make them differ.

    Whole names take the place of stems where only the ends of names differ. Bytes that are no
    text are shown escaped.

    Examples
    --------
    >>> short_names([Path("runs/bm25.scores.gz"), Path("runs/tree.scores")])
    ['bm25', 'tree']
    >>> short_names([Path("runs/bm25.txt"), Path("runs/bm25.run")])
    ['bm25.txt', 'bm25.run']
    """
    names: list[str] = []
    for shown in ([_without_ending(path) for path in paths], paths):
        for length in range(1, max([1, *(len(path.parts) for path in shown)]) + 1):
            names = [_as_text(Path(*path.parts[-length:])) for path in shown]
            if len(set(names)) == len(names):
                return names
    return names


def _without_ending(path: Path) -> Path:
    """Return a path without the end of its name; the current folder and the root have no name."""
    name = path.name.removesuffix(".gz") or path.name
    return path.with_name(Path(name).stem) if name else path


def _as_text(path: Path) -> str:
    return str(path).encode("utf-8", "backslashreplace").decode("utf-8")
