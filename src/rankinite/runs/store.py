"""The store of a run: the layout of its folder, its lock, and what tasks read from it.

Data sets and their bins are written into it once (`share`). All tasks map these files into memory
(`TaskInputs`): processes on one machine share the pages, and nothing is sent to them.
"""

from __future__ import annotations

import contextlib
import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.cached import cached_property
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.files import atomic_write, remove_unfinished
from rankinite.core.progress import Progress
from rankinite.core.types import Floats
from rankinite.data.memmap import fingerprint, open_shared, save_shared
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.average import Average
from rankinite.ensembles.score_features import WithScoreFeatures
from rankinite.models import RANKERS, load_model
from rankinite.rankers.ranker import Ranker
from rankinite.runs.recipe import Recipe
from rankinite.trees.binning import BinnedData

if TYPE_CHECKING:
    from rankinite.models import TrainedRanker

try:
    import fcntl
except ImportError:  # where folders cannot be locked
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("rankinite")

TRAIN = "train"
STATE = "run.json"
# The keys of the state.
NAME, DATA, FILES, SETS, VERSIONS = "recipe", "data", "files", "sets", "versions"
# Only the folder of a sweep has this file; that of a run has not.
SETTINGS = "settings.json"
# In the folder of a task: its name, how it went, and the sizes of its other files.
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
ADDED, WIDE = "added.npy", "features.npy"


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
    """

    def __init__(self, path: str | Path, digests: Mapping[str, str] | None = None) -> None:
        self.path = Path(path)
        self.digests = dict(digests or {})

    def make(self) -> None:
        """Make the folders that are missing."""
        for name in ("data", "tasks", "checkpoints"):
            (self.path / name).mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the folder; refuse it while another process holds it.

        The operating system releases the lock of a process that was killed.
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
            self._remove_unfinished()
            yield

    def _remove_unfinished(self) -> None:
        """Remove unfinished files of a killed run; other people's folders stay untouched."""
        names = ("data", "tasks", "checkpoints", "models", "measures")
        for folder in (self.path, *(self.path / name for name in names)):
            remove_unfinished(folder)
        for folder in (self.path / "scores").glob("*"):
            remove_unfinished(folder)

    def absolute(self) -> Store:
        """Return the same store for other processes, whatever their working directory is."""
        return Store(self.path.absolute(), self.digests)

    def task(self, key: str) -> Path:
        """Return the folder of a task."""
        return self.path / "tasks" / key

    def is_finished(self, key: str) -> bool:
        """Tell whether a task is finished: all its files are there, with their sizes."""
        folder = self.task(key)
        try:
            # The record is written last, into a folder that appears whole. Sizes tell of files that
            # were cut or removed since.
            sizes = json.loads((folder / RECORD).read_text("utf-8"))["sizes"]
            return all((folder / name).stat().st_size == size for name, size in sizes.items())
        # Whatever is wrong with the record, the task is executed again.
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return False

    def remove(self, key: str) -> None:
        """Remove the remains of a task that is not finished."""
        shutil.rmtree(self.task(key), ignore_errors=True)

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
        write_json(self.path / STATE, state)
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
        for path in (self.path / name for name in (RECIPE, *names)):
            is_same = path.name == RECIPE and recipe is not None
            if not path.exists() or (is_same and path.read_bytes() == str(recipe).encode()):
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
        write_json(self.path / STATE, state)

    def read_state(self) -> dict[str, Any]:
        """Return the state of the run: fingerprints of data, files, and versions of packages."""
        path = self.path / STATE
        state: dict[str, Any] = {DATA: {}, FILES: [], SETS: [], VERSIONS: {}}
        if not path.exists():
            return state
        try:
            content = json.loads(path.read_text("utf-8"))
            state |= content
            kinds = {DATA: dict, FILES: list, SETS: list, VERSIONS: dict}
            # A file of another tool could have this name.
            if DATA in content and all(isinstance(state[name], kinds[name]) for name in kinds):
                return state
        except (ValueError, TypeError):
            pass
        raise DataError(
            f"{path}: is not the state of a run, or is damaged; name another folder, or delete it: "
            "then the run resumes with the data that you give"
        )


def share(
    sets: Mapping[str, RankingData],
    bins: Sequence[int | None],
    store: Store,
    progress: Progress,
    digests: Mapping[str, str] | None = None,
) -> None:
    """Write data sets, and bins of the training data, into the store for all tasks.

    Sets that are there under the same fingerprint, undamaged, are not written again.
    """
    store.digests = dict(digests or {name: fingerprint(data) for name, data in sets.items()})
    with progress.start("sharing data", len(sets) + len(bins), "sets") as bar:
        for name, data in sets.items():
            if not _is_sound(store.data(name), open_shared):
                save_shared(data, store.data(name))
            bar.advance(1)
        for most_bins in bins:
            if not _is_sound(store.binned(most_bins), BinnedData.open):
                train = sets[TRAIN]
                # Without the seed of a recipe, as all recipes of one store share the bins.
                binned = BinnedData.make(
                    train.X,
                    train.feature_names,
                    most_bins=most_bins,
                    categorical=[train.feature_names.index(name) for name in train.categories],
                )
                binned.save(store.binned(most_bins))
            bar.advance(1)


def _is_sound(folder: Path, opened: Callable[[Path], object]) -> bool:
    """Tell whether a shared folder can be opened; remove one that is damaged."""
    if not folder.is_dir():
        return False
    try:
        opened(folder)
    except DataError:
        shutil.rmtree(folder)
        return False
    return True


def numbers_of_bins(models: Iterable[tuple[str, Mapping[str, Any]]]) -> list[int | None]:
    """Return the different values of ``most_bins`` of rankers of trees.

    Parameters
    ----------
    models
        Name of each ranker's class, and its parameters.
    """
    different = {
        parameters["most_bins"] for ranker, parameters in models if RANKERS[ranker].takes_binned
    }
    return sorted(different, key=lambda most_bins: most_bins or 0)


@dataclass(frozen=True)
class ModelKeys:
    """A model of a stage, as tasks refer to it.

    Attributes
    ----------
    fits
        Keys of its trainings.
    scorer
        Key of the training whose scores it sees as features, if any.
    scoring
        Parameters that only affect scores.
    """

    fits: tuple[str, ...]
    scorer: str | None
    scoring: Mapping[str, Any]


class TaskInputs:
    """What tasks read: the data of a run, mapped into memory once, and results of other tasks.

    Parameters
    ----------
    store
        The store of the run.
    """

    def __init__(self, store: Store) -> None:
        self.store = store

    @cached_property
    def train(self) -> RankingData:
        """The training data."""
        return self.data(TRAIN)

    def data(self, name: str) -> RankingData:
        """Return one of the data sets."""
        return open_shared(self.store.data(name))

    def train_with(self, features: str | None) -> RankingData:
        """Return the training data with the score features of a task, unless that is None."""
        if features is None:
            return self.train
        return open_shared(self.store.data(TRAIN), self.store.task(features) / WIDE)

    def binned(self, most_bins: int | None, features: str | None) -> BinnedData:
        """Return the binned training data with the score features of a task, unless None."""
        shared = BinnedData.open(self.store.binned(most_bins))
        if features is None:
            return shared
        # Only the new columns are binned; the others are mapped, and the same for all models.
        added = _read_array(self.store.task(features) / ADDED)
        names = self.train_with(features).feature_names[-added.shape[1] :]
        return shared.append(added, names)

    def fitted(self, key: str, scoring: Mapping[str, Any]) -> TrainedRanker:
        """Return the ranker that a task has fitted, with parameters that only affect scores."""
        path = self.store.task(key) / MODEL
        try:
            loaded: Any = load_model(path)
        except ModelFileError as problem:
            raise unreadable(path, problem) from None
        ranker: TrainedRanker = loaded.set_params(**scoring)
        return ranker

    def ranker(self, model: ModelKeys) -> Ranker:
        """Return all trainings of a model as one ranker."""
        bags = [self.fitted(key, model.scoring) for key in model.fits]
        ranker: Ranker = bags[0]
        if len(bags) > 1:
            # Without standardisation: bags are trainings of one model and share its scale.
            ranker = Average.from_members({str(k): bag for k, bag in enumerate(bags, 1)})
        if model.scorer is None:
            return ranker
        return WithScoreFeatures.from_fitted(self.fitted(model.scorer, {}), ranker)

    def scores(self, key: str) -> Floats:
        """Return the scores that a task has written."""
        return _read_array(self.store.task(key) / SCORES)


def inputs_of(store: Store) -> TaskInputs:
    """Return the inputs of a store; a process that executes many tasks opens the data once."""
    # The fingerprints are part of what is cached: a process may outlive the data of a folder.
    return _inputs(store.path.absolute(), tuple(store.digests.items()))


@lru_cache(maxsize=2)
def _inputs(path: Path, digests: tuple[tuple[str, str], ...]) -> TaskInputs:
    return TaskInputs(Store(path, dict(digests)))


def _read_array(path: Path) -> NDArray[Any]:
    try:
        # Reading a result executes nothing.
        array: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError) as problem:
        raise unreadable(path, problem) from None
    return array


def unreadable(path: Path, problem: Exception) -> DataError:
    """Return the error for a damaged result file of a task."""
    text = str(problem)
    sentence = text if text.startswith(f"{path}: ") else f"{path}: cannot be read: {text}"
    return DataError(
        f"{sentence}; delete the folder {path.parent}, and run the command again to make it anew"
    )


def read_json(path: Path) -> dict[str, Any]:
    """Return the content of a JSON file of a task."""
    try:
        content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as problem:
        raise unreadable(path, problem) from None
    return content


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
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")
