"""What a command may write where.

One rule for all commands: a file that the command reads is never overwritten, by whatever path it
is named; and a file that exists is replaced only if rankinite made it, or with ``--force``.
Rankinite knows a model file and a file of scores by their content. In a folder that a command
fills it keeps the list ``.rankinite`` of the files that it made, with their digests: a file that
was changed since is no longer its own. Data sets and tables that a command writes under a name
of your choice are yours as soon as they are written. Runs and sweeps know their own folders
(``runs/store.py``).

All of this is checked before the work begins: hours of training must not end with a folder that
does not exist, or with a model in the place of the data that it was trained on.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rankinite.cli.pipes import STANDARD
from rankinite.core.errors import UsageError
from rankinite.core.files import atomic_write, remove_unfinished_of
from rankinite.data.formats import FormatName

# In a folder that a command fills: the files that rankinite made there, and their digests.
LIST = ".rankinite"
# As `save_scores` writes numbers: with a point or an exponent, which grades and group sizes lack.
SCORE = re.compile(rb"-?\d+(\.\d+(e[+-]\d+)?|e[+-]\d+)")
RUN_FIELDS = 6
# Classes of other things that the container of models holds: cut points, and unfinished fits.
NO_MODELS = ("RankNormaliser", "checkpoint")


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """The files that a command writes: checked before its work, listed after it."""

    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Replace existing files, even if rankinite did not make them."
        ),
    ] = False

    def check(
        self,
        command: str,
        inputs: Iterable[Path | None],
        *,
        models: Sequence[Path] = (),
        scores: Sequence[Path] = (),
        files: Sequence[Path] = (),
    ) -> None:
        """Refuse what must not be written: models, scores, and other files.

        Folders that do not exist yet are for the caller to refuse, or to make.
        """
        targets = [path for path in (*models, *scores, *files) if path != STANDARD]
        refuse_twice(command, targets)
        refuse_overwriting(command, targets, inputs)
        for target in targets:
            if target.is_dir():
                raise IsADirectoryError(
                    errno.EISDIR, "this is a directory; expected a file", str(target)
                )
        remove_unfinished_of(*targets)
        self._refuse_existing(command, models, is_model, " and is not a model file")
        self._refuse_existing(command, scores, _holds_scores, " and does not hold scores")
        self._refuse_existing(command, files, _is_listed, "")

    def _refuse_existing(
        self, command: str, targets: Iterable[Path], is_ours: Callable[[Path], bool], why: str
    ) -> None:
        for target in targets:
            # Pipes and devices keep nothing, and an empty file has nothing to lose.
            if self.force or not target.is_file() or not target.stat().st_size:
                continue
            if not (is_ours(target) or _is_listed(target)):
                changed = " and was changed since rankinite made it" if _is_named(target) else why
                raise UsageError(
                    f"{command}: {target} exists{changed}; write to another place, or add --force "
                    "to replace it"
                )

    def record(self, written: Iterable[Path]) -> None:
        """List files of a folder that the command has filled, so that it may replace them."""
        for path in written:
            # A file of this name that is somebody else's, or a link to one, stays as it is.
            if _is_foreign_list(path.parent / LIST):
                continue
            listed = {**_list_of(path.parent), path.name: _digest(path)}
            text = json.dumps({"files": dict(sorted(listed.items()))}, indent=1)
            with atomic_write(path.parent / LIST) as file:
                file.write(f"{text}\n".encode())

    @contextlib.contextmanager
    def recording(self, targets: Sequence[Path]) -> Iterator[None]:
        """List those of some files that are written in the block, also if it fails.

        The same command may then write them again. Files that cannot be listed are removed.
        """
        before = [_state(path) for path in targets]

        def written() -> list[Path]:
            pairs = zip(targets, before, strict=True)
            return [path for path, state in pairs if _state(path) not in (None, state)]

        try:
            yield
            self.record(written())
        except BaseException:
            try:
                self.record(written())
            except OSError:
                for path in written():
                    path.unlink(missing_ok=True)
            raise


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is replaced; None if there is none."""
    if not path.is_file():
        return None
    status = path.stat()
    return status.st_ino, status.st_mtime_ns, status.st_size


# What rankinite made


def is_model(path: Path) -> bool:
    """Tell whether a file is a model file, also one that is damaged or of another version."""
    from rankinite.core.container import read_manifest
    from rankinite.core.errors import ModelFileError

    try:
        return read_manifest(path).get("class") not in NO_MODELS
    except ModelFileError:
        return False


def _holds_scores(path: Path) -> bool:
    """Tell whether a file begins like one of scores: numbers as we write them, or a TREC run."""
    from rankinite.core.errors import FileFormatError
    from rankinite.core.progress import Silent
    from rankinite.data.stream import read_blocks_of_lines

    try:
        block = next(read_blocks_of_lines(path, Silent()))
    except FileFormatError:
        return False
    lines = block.text[: block.n_bytes].tobytes().splitlines()
    if all(len(line.split()) == RUN_FIELDS and line.split()[1] == b"Q0" for line in lines):
        return True
    numbers = all(SCORE.fullmatch(line) for line in lines)
    # Grades that some tool wrote as 2.0 are no scores: labels must not be lost.
    return numbers and any(not float(line).is_integer() for line in lines)


def _is_listed(path: Path) -> bool:
    return _is_named(path) and _list_of(path.parent)[path.name] == _digest(path)


def _is_named(path: Path) -> bool:
    return path.name in _list_of(path.parent)


def _list_of(folder: Path) -> dict[str, Any]:
    """Return the files that rankinite made in a folder; a list that is damaged names none."""
    try:
        files = json.loads((folder / LIST).read_text("utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return files if isinstance(files, dict) else {}


def _is_foreign_list(path: Path) -> bool:
    """Tell whether there is something of the list's name that is no list of ours."""
    if not path.exists() and not path.is_symlink():
        return False
    return path.is_symlink() or not _has_files(path)


def _has_files(path: Path) -> bool:
    try:
        return isinstance(json.loads(path.read_text("utf-8"))["files"], dict)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Names


def folder_targets(sources: Sequence[Path], out: Path, suffix: FormatName | None) -> list[Path]:
    """Return a file in a folder for every source: its name, with the suffix of another format."""
    return [out / target_name(source, suffix) for source in sources]


def target_name(source: Path, suffix: FormatName | None) -> str:
    """Return the name of the file that is made of a source.

    Examples
    --------
    >>> target_name(Path("data/train.txt.gz"), None)
    'train.txt.gz'
    >>> target_name(Path("data/train.txt.gz"), "parquet")
    'train.parquet'
    """
    if source == STANDARD:
        return f"stdin.{suffix or 'txt'}"
    if suffix is None:
        return source.name
    return f"{Path(source.name.removesuffix('.gz')).stem}.{suffix}"


# What is refused in any case


def refuse_twice(command: str, targets: Sequence[Path]) -> None:
    """Refuse to write two files with the same name."""
    resolved = [target.resolve() for target in targets]
    for target, place in zip(targets, resolved, strict=True):
        if resolved.count(place) > 1:
            raise UsageError(
                f"{command}: two files would be written to {target}; choose different names"
            )


def refuse_overwriting(
    command: str, targets: Iterable[Path], sources: Iterable[Path | None]
) -> None:
    """Refuse to overwrite a file that the command reads, even with --force."""
    targets, sources = list(targets), list(sources)
    if sources.count(STANDARD) > 1:
        raise UsageError(f"{command}: - was given twice; the standard input is one file")
    for source in _with_group_sizes(sources):
        if any(_are_same(target, source) for target in targets):
            raise UsageError(f"{command}: this would overwrite {source}; write to another place")


def _with_group_sizes(sources: Iterable[Path | None]) -> Iterator[Path]:
    """Iterate over the files that a command reads, also the group sizes beside a data set."""
    from rankinite.data.svmlight.parse import group_sizes_beside

    for source in sources:
        if source is not None:
            yield source
            sizes = group_sizes_beside(source) if source.is_file() else None
            if sizes is not None:
                yield sizes


def _are_same(path: Path, other: Path) -> bool:
    # By inode, not by name: links and ./ make other names for the same file, and so does the other
    # case of letters on some file systems. Writing to a pipe, or to a terminal, overwrites nothing.
    return path.is_file() and other.exists() and path.samefile(other)


def refuse_missing_folders(targets: Sequence[Path]) -> None:
    """Refuse targets in folders that do not exist, before any work is done."""
    for target in targets:
        folder = target.parent
        if not folder.exists():
            raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(folder))
        refuse_file_as_folder(folder)


def refuse_file_as_folder(folder: Path) -> None:
    """Refuse a file where a folder is expected; a missing folder can be created."""
    if folder.exists() and not folder.is_dir():
        raise FileExistsError(errno.EEXIST, "this is a file; expected a folder", str(folder))
