"""Short names for files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def short_names(paths: Sequence[Path]) -> list[str]:
    """Return the stems of different files, with as many folders as make them differ.

    Whole names take the place of stems where only the ends of names differ.

    Examples
    --------
    >>> short_names([Path("runs/bm25.scores.gz"), Path("runs/tree.scores")])
    ['bm25', 'tree']
    >>> short_names([Path("runs/bm25.txt"), Path("runs/bm25.run")])
    ['bm25.txt', 'bm25.run']
    """
    names: list[str] = []
    for shown in ([_without_ending(path) for path in paths], paths):
        for length in range(1, max((len(path.parts) for path in shown), default=0) + 1):
            names = [str(Path(*path.parts[-length:])) for path in shown]
            if len(set(names)) == len(names):
                return names
    return names


def _without_ending(path: Path) -> Path:
    name = path.name.removesuffix(".gz") or path.name
    return path.with_name(Path(name).stem)
