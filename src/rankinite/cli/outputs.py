"""The data sets that a command writes."""

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
    """Refuse to write two files of one name."""
    for target in targets:
        if targets.count(target) > 1:
            raise UsageError(
                f"{command}: two files would be written to {target}; choose different names"
            )


def refuse_overwriting(command: str, targets: Sequence[Path], sources: Sequence[Path]) -> None:
    """Refuse to write over a file that is read: nobody can want to lose it."""
    for source in sources:
        if any(_are_one(target, source) for target in targets):
            raise UsageError(f"{command}: this would overwrite {source}; write to another place")


def refuse_missing_folders(targets: Sequence[Path]) -> None:
    """Refuse to write files into folders that are not there, before any work is done."""
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
    """Refuse a file where a folder is to be; what is not there can be made."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(errno.EEXIST, "this is a file; expected a folder", str(folder))


def _are_one(one: Path, other: Path) -> bool:
    return one.exists() and other.exists() and one.samefile(other)


def save_all(
    sets: Iterable[tuple[Path, RankingData]], terminal: Terminal, others: Sequence[Path] = ()
) -> None:
    """Save data sets one after the other, in folders that need not be there, and show them.

    Other files, which have been written already, are shown with them.
    """
    from rankinite.data.formats import save

    written = []
    for path, found in sets:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(found, path, progress=terminal.progress())
        written.append((path, found.n_queries, found.n_docs))
        del found  # the next one may need the memory while it is made
    terminal.show_written(written, others)
