"""The files that a command writes: their names, and what they must not overwrite."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.data.formats import FormatName

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData


def folder_targets(
    command: str, sources: Sequence[Path], out: Path, suffix: FormatName | None
) -> list[Path]:
    """Return a file in a folder for every source: its name, with the ending of another format."""
    targets = [out / target_name(source, suffix) for source in sources]
    refuse_twice(command, targets)
    refuse_overwriting(command, targets, sources)
    return targets


def target_name(source: Path, suffix: FormatName | None) -> str:
    """Return the name of the file that is made of a source.

    Examples
    --------
    >>> target_name(Path("data/train.txt.gz"), None)
    'train.txt.gz'
    >>> target_name(Path("data/train.txt.gz"), "parquet")
    'train.parquet'
    """
    if suffix is None:
        return source.name
    return f"{Path(source.name.removesuffix('.gz')).stem}.{suffix}"


def refuse_twice(command: str, targets: Sequence[Path]) -> None:
    """Refuse to write two files with the same name."""
    for target in targets:
        if targets.count(target) > 1:
            raise UsageError(
                f"{command}: two files would be written to {target}; choose different names"
            )


def refuse_overwriting(command: str, targets: Sequence[Path], sources: Sequence[Path]) -> None:
    """Refuse to overwrite a file that the command reads."""
    for source in sources:
        if any(_are_same(target, source) for target in targets):
            raise UsageError(f"{command}: this would overwrite {source}; write to another place")


def refuse_missing_folders(targets: Sequence[Path]) -> None:
    """Refuse targets in folders that do not exist, before any work is done."""
    for target in targets:
        folder = target.parent
        if not folder.exists():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(folder))
        refuse_file_as_folder(folder)
        if target.is_dir():
            raise IsADirectoryError(
                errno.EISDIR, "this is a directory; expected a file", str(target)
            )


def refuse_file_as_folder(folder: Path) -> None:
    """Refuse a file where a folder is expected; a missing folder can be created."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(errno.EEXIST, "this is a file; expected a folder", str(folder))


def _are_same(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def save_all(
    sets: Iterable[tuple[Path, RankingData]], terminal: Terminal, others: Sequence[Path] = ()
) -> None:
    """Save data sets one after the other, creating folders, and list them on the terminal.

    ``others`` are files that have been written already and are listed with them.
    """
    from rankinite.data.formats import save

    written = []
    for path, data in sets:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(data, path, progress=terminal.progress())
        written.append((path, data.n_queries, data.n_docs))
        del data  # the next set may need the memory while it is being made
    terminal.show_written(written, others)
