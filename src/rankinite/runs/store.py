"""The store of a run: the layout of its folder, its lock, and what damage does to its files.

Nothing of the folder is computed with before its checksum was compared (`core/checksums.py`), by
every process once in a run. The process of the run does so with all results that it needs, before
it hands out tasks: what is damaged is made anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import re
import secrets
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from rankinite.core.checksums import (
    SUMS,
    Checksums,
    json_text,
    read_with_checksum,
    with_checksum,
)
from rankinite.core.errors import DataError, UsageError
from rankinite.core.files import atomic_write, remove_unfinished
from rankinite.runs.recipe import Recipe
from rankinite.runs.recipe_reader import recipe_of

try:
    import fcntl
except ImportError:  # where folders cannot be locked
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("rankinite")

TRAIN = "train"
STATE = "run.json"
# The keys of the state.
NAME, TEXT, DATA = "recipe", "recipe sha256", "data"
FILES, SETS, VERSIONS = "files", "sets", "versions"
# Only the folder of a sweep has this file; that of a run has not.
SETTINGS = "settings.json"
# In the folder of a task: its name, and how it went.
RECORD = "task.json"
# Digits of a fingerprint in the names of folders.
DIGITS = 16
RECIPE = "recipe.toml"
REPORT = "report.html"
# Pages that the report links to: of so many queries that are lost, and as many that are won.
EXPLAINED, MOST_EXPLAINED = "explained", 3
ENSEMBLE_FILE = "ensemble.rk"
LOG = "log.txt"

# The result files of tasks.
MODEL, SCORES = "model.rk", "scores.npy"
# Score features: the four columns alone, and the whole matrix with them.
ADDED, WIDE, MORE_NAMES = "added.npy", "features.npy", "features.npy.json"
SPREAD, CURVE = "spread.json", "curve.json"
# Files in the folders of tasks, of data sets and of bins; others are not of rankinite.
RESULTS = {RECORD, MODEL, SCORES, ADDED, WIDE, MORE_NAMES, SPREAD, CURVE, SUMS, "manifest.json"}
ARRAYS = re.compile(r"(features|y|offsets|qids|query_weight|label-[0-9]+|(main|more)-\w+)\.npy")


class DamageError(DataError):
    """A file in the folder of a run is not as it was written.

    Parameters
    ----------
    problem
        The file, and what is wrong with it.
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"{self.problem}; run the recipe or the sweep again there, which makes it anew"


class Store:
    """The folder in which a run keeps its data and the results of its tasks.

    ::

        recipe.toml  run.json  log.txt      the recipe, its data, versions and files, and a log
        data/NAME-FINGERPRINT               data sets and bins, shared by all tasks
        tasks/KEY/                          result files of a task; the folder appears whole
        checkpoints/                        unfinished trainings
        models/  ensemble.rk                every member, and the ensemble
        scores/SET/  measures/              scores, and measures by query, of members and ensemble
        tables.md  tables.json  report.html
        explained/                          pages of queries that the ensemble wins or loses

    Parameters
    ----------
    path
        The folder.
    digests
        The fingerprint of every data set, by name; known as soon as the data are checked.
    run
        Stands for one run of all its processes; drawn if None.
    """

    def __init__(
        self,
        path: str | Path,
        digests: Mapping[str, str] | None = None,
        run: str | None = None,
    ) -> None:
        self.path = Path(path)
        self.digests = dict(digests or {})
        self.run = run or secrets.token_hex(8)

    def make(self) -> None:
        """Make the folders that are missing."""
        for name in ("data", "tasks", "checkpoints"):
            (self.path / name).mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self, files: Iterable[str] = ()) -> Iterator[None]:
        """Hold the lock of the folder; refuse it while another process holds it.

        The operating system releases the lock of a process that was killed.

        Parameters
        ----------
        files
            Files that are written into the folder itself, besides its state and recipe. Unfinished
            ones of killed processes are removed; those of commands that write others there stay.
        """
        self.make()
        # Appended to, as somebody else's file of this name must not be emptied.
        with (self.path / "lock").open("ab") as file:
            if fcntl is not None:
                try:
                    # Without waiting, which might take hours.
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    raise UsageError(
                        f"{self.path}: another run works in this folder; wait for it, or name "
                        "another folder"
                    ) from None
                except OSError as problem:
                    # Some network file systems have no locks, and are used all the same.
                    log.info(
                        "%s cannot be locked (%s); make sure that no other run works there",
                        self.path,
                        problem.strerror,
                    )
            # Under the lock: nobody else can be writing these files now.
            self._remove_unfinished({STATE, SETTINGS, RECIPE, *files})
            yield

    def _remove_unfinished(self, files: Container[str]) -> None:
        """Remove unfinished files of a killed run; other people's folders stay untouched."""
        remove_unfinished(self.path, files)
        for name in ("data", "tasks", "checkpoints", "models", "measures"):
            remove_unfinished(self.path / name)
        for folder in (self.path / "scores").glob("*"):
            remove_unfinished(folder)

    def absolute(self) -> Store:
        """Return the same store for other processes, whatever their working directory is."""
        return Store(self.path.absolute(), self.digests, self.run)

    def task(self, key: str) -> Path:
        """Return the folder of a task."""
        return self.path / "tasks" / key

    def is_finished(self, key: str) -> bool:
        """Tell whether a task is finished, and no file of it was damaged or removed since."""
        return self.task(key).is_dir() and not self.damage(key)

    def damage(self, key: str) -> str:
        """Return what is wrong with the files of a finished task; empty if nothing is."""
        checked, folder = _checked(self.run), self.task(key).absolute()
        try:
            # Else of an earlier run in this process, or of nobody.
            if folder not in checked:
                sums = Checksums.of(self.task(key))
                sums.require_name()
                sums.check(RECORD)
                sums.check()
                checked.add(folder)
        except ValueError as problem:
            return str(problem)
        return ""

    def remove(self, key: str) -> None:
        """Remove what is left of a task that is not finished."""
        if self.task(key).is_dir():
            remove_damaged(self.task(key), self.damage(key))

    def result(self, key: str, name: str) -> bytes:
        """Return the content of a file of a finished task."""
        try:
            return Checksums.of(self.task(key)).read(name)
        except ValueError as problem:
            raise DamageError(str(problem)) from None

    def result_file(self, key: str, name: str) -> Path:
        """Return a file of a finished task, of which nothing was changed."""
        if problem := self.damage(key):
            raise DamageError(problem)
        return self.task(key) / name

    def read_json(self, key: str, name: str) -> dict[str, Any]:
        """Return the content of a JSON file of a finished task."""
        content = self.result(key, name)
        try:
            value: dict[str, Any] = json.loads(content)
        except (ValueError, RecursionError) as problem:
            raise DamageError(f"{self.task(key) / name}: {problem}") from None
        return value

    def checkpoint(self, key: str) -> Path:
        """Return the checkpoint file of a task that trains."""
        return self.path / "checkpoints" / key

    def data(self, name: str) -> Path:
        """Return the folder of a data set that tasks share."""
        return self.path / "data" / f"{name}-{self.digests[name][:DIGITS]}"

    def binned(self, most_bins: int | None) -> Path:
        """Return the folder of the binned training data."""
        shared = self.data(TRAIN)
        number = "default" if most_bins is None else most_bins
        return shared.with_name(f"{shared.name}-{number}-bins")

    def check_data(self, digests: Mapping[str, str], recipe: Recipe, file: str = RECIPE) -> None:
        """Record the data of the run; refuse other data, which the finished tasks do not fit.

        Parameters
        ----------
        digests
            The fingerprint of every data set, by name; valid and test may come later.
        recipe
            The recipe.
        file
            Name of the file that gets its text.
        """
        state = self.read_state()
        known = state[DATA]
        for name, digest in digests.items():
            if known.get(name, digest) != digest:
                raise DataError(
                    f"{self.path}: the {name} data are not those that this run began with "
                    f"({known[name][:DIGITS]}, now {digest[:DIGITS]}): documents, labels, queries, "
                    "names of features or the top grade differ; bring them back, or name another "
                    "folder for a new run"
                )
        state[DATA] = {**known, **digests}
        # A recipe may take its name from its file, which has another name here.
        state[NAME] = recipe.name
        state[TEXT] = hashlib.sha256(recipe.text.encode()).hexdigest()
        write_json(self.path / STATE, with_checksum(state))
        write_text(self.path / file, recipe.text)

    @property
    def is_used(self) -> bool:
        """Whether a run or a sweep has worked in the folder, which has its state or tasks."""
        return (self.path / STATE).exists() or any(self.path.glob(f"tasks/*/{RECORD}"))

    def refuse_others(self, names: Iterable[str], recipe: str | None = None) -> None:
        """Refuse a folder with files of others that a run or a sweep would replace.

        Parameters
        ----------
        names
            The files that it will write, besides ``recipe.toml``.
        recipe
            The text of its recipe: a ``recipe.toml`` with this text may stay.
        """
        for path in (self.path / name for name in (RECIPE, *names, LOG)):
            is_same = path.name == RECIPE and recipe is not None
            if not path.exists() or (is_same and path.read_bytes() == str(recipe).encode()):
                continue
            # What a run wrote that ended before it had done anything.
            if path.name == LOG and _is_log(path):
                continue
            raise UsageError(
                f"{path}: is there already and would be overwritten; name another folder, move the "
                "file, or replace it with --force (force=True)"
            )

    def record_finished(
        self, written: Iterable[Path], sets: Iterable[str], versions: Mapping[str, str]
    ) -> None:
        """Record that a run is finished, and its files; remove files of an earlier recipe.

        Parameters
        ----------
        written
            The files for people.
        sets
            Names of its data sets; an earlier run in the folder may have had others.
        versions
            The versions of the packages that made them, by name.
        """
        state = self.read_state()
        names = sorted(path.relative_to(self.path).as_posix() for path in written)
        # They would be taken for results of this recipe.
        for name in {*state[FILES]} - {*names}:
            # The state is a file that anybody can edit: nothing outside of the folder is removed.
            if ".." not in Path(name).parts and not Path(name).is_absolute():
                (self.path / name).unlink(missing_ok=True)
        state |= {FILES: names, SETS: list(sets), VERSIONS: dict(versions)}
        write_json(self.path / STATE, with_checksum(state))

    def read_state(self) -> dict[str, Any]:
        """Return the state of the run: fingerprints of data, files, and versions of packages."""
        path = self.path / STATE
        state: dict[str, Any] = {DATA: {}, FILES: [], SETS: [], VERSIONS: {}}
        if not path.exists():
            return state
        try:
            content = read_with_checksum(path)
            # A file of another tool could have this name.
            if content.keys() >= {NAME, TEXT, *state}:
                return content
        except (OSError, ValueError):
            pass
        raise DataError(
            f"{path}: is not the state of a run of this version, or is damaged; name another "
            "folder, or delete it: then the run resumes with the data that you give"
        )

    def read_recipe(self, state: Mapping[str, Any], file: str = RECIPE) -> Recipe:
        """Return the recipe of the run, from the file that has its text."""
        path = self.path / file
        content = path.read_bytes()
        if hashlib.sha256(content).hexdigest() != state[TEXT]:
            raise DamageError(f"{path}: was changed, or is damaged")
        return recipe_of(f"{state[NAME]}.toml", content.decode())


@lru_cache(maxsize=2)
def _checked(run: str) -> set[Path]:
    """Return the folders of tasks that this process has checked in a run."""
    return set()


def _is_log(path: Path) -> bool:
    """Tell whether a file begins as the log of a run does; a link is none, whatever it leads to."""
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return re.match(rb"\d{4}-\d\d-\d\d |$", file.read(len("2000-01-01 "))) is not None


def remove_damaged(folder: Path, problem: str) -> None:
    """Remove a damaged folder, whose files are made anew, and say so; keep files of others."""
    log.warning("%s; it is made anew", problem)
    for path in list(folder.iterdir()):
        is_known = path.name in RESULTS or ARRAYS.fullmatch(path.name) is not None
        if path.is_dir() or not is_known:
            raise DataError(
                f"{path}: is not of rankinite, and in a folder of it that has to be made anew; "
                "move it elsewhere"
            )
        path.unlink()
    folder.rmdir()


def explained_pages() -> list[str]:
    """Return the names of the pages that a report may link to."""
    numbers = range(1, MOST_EXPLAINED + 1)
    return [f"{EXPLAINED}/{kind}-{k}.html" for kind in ("loss", "win") for k in numbers]


def write_text(path: Path, text: str) -> None:
    """Write a file, which appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON."""
    write_text(path, json_text(value))
