"""The folder of a run: where everything is, and who may write to it."""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rankinite.core.errors import DataError, UsageError
from rankinite.core.files import atomic_write, remove_unfinished

try:
    import fcntl
except ImportError:  # where folders cannot be locked
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("rankinite")

TRAIN = "train"
FILES = "files"
STATE = "run.json"
# What a folder of a sweep has, and that of a run has not.
SETTINGS = "settings.json"
# In the folder of a unit: what it is, how it went, and the sizes of its other files.
DONE = "unit.json"
# Of a fingerprint, in names.
DIGITS = 16
RECIPE = "recipe.toml"
REPORT = "report.html"
MODEL = "ensemble.rk"
LOG = "log.txt"


class RunFolder:
    """Where a run keeps what it has, and which data it is on.

    ::

        recipe.toml  run.json  log.txt      what is done, to which data, and when
        data/NAME-FINGERPRINT               the data sets and bins that units share
        units/KEY/                          what a unit of work has made; it appears whole
        checkpoints/                        trainings on their way
        models/  ensemble.rk                every member, and all as one
        scores/SET/  measures/              of members and ensemble: scores, and measures by query
        tables.md  tables.json  report.html

    Parameters
    ----------
    path
        The folder.
    digests
        The fingerprint of every data set, by name; known as soon as the data are checked.
    """

    def __init__(self, path: str | Path, digests: Mapping[str, str] | None = None) -> None:
        self.path = Path(path)
        self.digests = dict(digests or {})

    def make(self) -> None:
        """Make the folders that are not there."""
        for name in ("data", "units", "checkpoints"):
            (self.path / name).mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Refuse to go on while another process works here; a killed one has no lock any more."""
        self.make()
        with (self.path / "lock").open("wb") as file:
            if fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise UsageError(
                        f"{self.path}: another run works in this folder; wait for it, or name "
                        "another folder"
                    ) from None
                except OSError as problem:
                    log.info(
                        "%s cannot be locked (%s); see to it that no other run works there",
                        self.path,
                        problem.strerror,
                    )
            self._remove_unfinished()
            yield

    def _remove_unfinished(self) -> None:
        """Remove what a killed run has left half done; folders of others below stay untouched."""
        own = ("data", "units", "checkpoints", "models", "measures")
        for folder in (self.path, *(self.path / name for name in own)):
            remove_unfinished(folder)
        for folder in (self.path / "scores").glob("*"):
            remove_unfinished(folder)

    def absolute(self) -> RunFolder:
        """Return the same folder as other processes find it, wherever they were started."""
        return RunFolder(self.path.absolute(), self.digests)

    def unit(self, key: str) -> Path:
        """Return the folder of a unit."""
        return self.path / "units" / key

    def is_done(self, key: str) -> bool:
        """Tell whether a unit is done: all its files are there, as large as they were."""
        folder = self.unit(key)
        try:
            sizes = json.loads((folder / DONE).read_text("utf-8"))["sizes"]
            return all((folder / name).stat().st_size == size for name, size in sizes.items())
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False

    def forget(self, key: str) -> None:
        """Remove what is left of a unit that is not whole."""
        shutil.rmtree(self.unit(key), ignore_errors=True)

    def checkpoint(self, key: str) -> Path:
        """Return the file that keeps a training on its way."""
        return self.path / "checkpoints" / key

    def data(self, name: str) -> Path:
        """Return the folder of a data set that units share."""
        return self.path / "data" / f"{name}-{self.digests[name][:DIGITS]}"

    def binned(self, most_bins: int) -> Path:
        """Return the folder of the bins of the training data."""
        shared = self.data(TRAIN)
        return shared.with_name(f"{shared.name}-{most_bins}-bins")

    def check_data(self, digests: Mapping[str, str], recipe: str | None = None) -> None:
        """Remember which data the run is on; refuse others, which would not fit what is there.

        Parameters
        ----------
        digests
            The fingerprint of every data set, by name; valid and test may come later.
        recipe
            The text of the recipe, which is kept if it is given.
        """
        state = self._read_state()
        known = state["data"]
        if recipe is not None and not (self.path / STATE).exists():
            self.refuse_recipe(recipe)
        for name, digest in digests.items():
            if known.get(name, digest) != digest:
                raise DataError(
                    f"{self.path}: the {name} data are not those that this run began with "
                    f"({known[name][:DIGITS]}, now {digest[:DIGITS]}): documents, labels, queries, "
                    "names of features or the top grade differ; bring them back, or name another "
                    "folder for a new run"
                )
        write_json(self.path / STATE, {**state, "data": {**known, **digests}})
        if recipe is not None:
            write_text(self.path / RECIPE, recipe)

    def refuse_recipe(self, besides: str | None = None) -> None:
        """Refuse to write over a recipe that is in the folder, but for one of the same text."""
        path = self.path / RECIPE
        if path.exists() and (besides is None or path.read_bytes() != besides.encode()):
            raise UsageError(
                f"{path}: is there already and would be written over; name another folder, or "
                "move the file"
            )

    def keep_files(self, written: Iterable[Path]) -> None:
        """Remember the files for people; those of an earlier recipe, which this lacks, go."""
        state = self._read_state()
        names = sorted(path.relative_to(self.path).as_posix() for path in written)
        for name in {*state[FILES]} - {*names}:
            if ".." not in Path(name).parts and not Path(name).is_absolute():
                (self.path / name).unlink(missing_ok=True)
        write_json(self.path / STATE, {**state, FILES: names})

    def _read_state(self) -> dict[str, Any]:
        path = self.path / STATE
        if not path.exists():
            return {"data": {}, FILES: []}
        try:
            found = json.loads(path.read_text("utf-8"))
            if isinstance(found["data"], dict) and isinstance(found[FILES], list):
                return dict(found)
        except (ValueError, KeyError, TypeError):
            pass
        raise DataError(
            f"{path}: is damaged; delete it, and the run goes on with the data that you give then"
        )


def unreadable(path: Path, problem: Exception) -> DataError:
    """Return the error of a file of a unit that is damaged."""
    text = str(problem)
    told = text if text.startswith(f"{path}: ") else f"{path}: cannot be read: {text}"
    return DataError(
        f"{told}; delete the folder {path.parent}, and the same command makes it again"
    )


def read_json(path: Path) -> dict[str, Any]:
    """Return what a JSON file of a unit holds."""
    try:
        found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise unreadable(path, problem) from None
    return found


def write_text(path: Path, text: str) -> None:
    """Write a file, which appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
