"""What the tasks of a run read: its data sets, and results of other tasks.

Data sets and their bins are written into the store once (`share`). All tasks map these files into
memory (`TaskInputs`): processes on one machine share the pages, and nothing is sent to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from rankinite.core.checksums import Checksums
from rankinite.core.errors import ModelFileError
from rankinite.core.npy import read_array
from rankinite.core.progress import Progress
from rankinite.core.types import Floats
from rankinite.data.memmap import fingerprint, open_shared, save_shared, with_features
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.average import Average
from rankinite.ensembles.score_features import WithScoreFeatures
from rankinite.models import RANKERS, load_model
from rankinite.rankers.ranker import Ranker
from rankinite.runs.store import (
    ADDED,
    MODEL,
    MORE_NAMES,
    SCORES,
    TRAIN,
    WIDE,
    DamageError,
    Store,
    remove_damaged,
)
from rankinite.trees.binning import BinnedData

if TYPE_CHECKING:
    from rankinite.models import TrainedRanker

T = TypeVar("T")


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
        # Each is opened once, as the whole of it is read to compare its checksums.
        self.train_with = cache(self._train_with)
        self.data = cache(self._data)
        self._bins = cache(self._open_bins)

    @property
    def train(self) -> RankingData:
        """The training data."""
        return self.data(TRAIN)

    def _data(self, name: str) -> RankingData:
        """Return one of the data sets."""
        return _opened(self.store.data(name), open_shared)

    def _train_with(self, features: str | None) -> RankingData:
        """Return the training data with the score features of a task, unless that is None."""
        if features is None:
            return self.train
        matrix = self.store.result_file(features, WIDE)
        return with_features(self.train, matrix, matrix.with_name(MORE_NAMES))

    def _open_bins(self, most_bins: int | None) -> BinnedData:
        binned = _opened(self.store.binned(most_bins), BinnedData.open)
        if (binned.n_rows, binned.feature_names) != (self.train.n_docs, self.train.feature_names):
            folder = self.store.binned(most_bins)
            raise DamageError(f"{folder}: its bins are not of the training data")
        return binned

    def binned(self, most_bins: int | None, features: str | None) -> BinnedData:
        """Return the binned training data with the score features of a task, unless None."""
        shared = self._bins(most_bins)
        if features is None:
            return shared
        # Only the new columns are binned; the others are mapped, and the same for all models.
        added = self._array(features, ADDED)
        names = self.train_with(features).feature_names[-added.shape[1] :]
        return shared.append(added, names)

    def fitted(self, key: str, scoring: Mapping[str, Any]) -> TrainedRanker:
        """Return the ranker that a task has fitted, with parameters that only affect scores."""
        try:
            loaded: Any = load_model(self.store.result_file(key, MODEL))
        except ModelFileError as problem:
            raise DamageError(str(problem)) from None
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

    def scores(self, key: str, data: RankingData) -> Floats:
        """Return the scores that a task has written for the documents of a data set."""
        scores = self._array(key, SCORES)
        if scores.shape != (data.n_docs,) or scores.dtype != np.float64:
            path = self.store.task(key) / SCORES
            raise DamageError(f"{path}: are not the scores of {data.n_docs:,} documents")
        return scores

    def _array(self, key: str, name: str) -> NDArray[Any]:
        content = self.store.result(key, name)
        try:
            return read_array(content)
        except ValueError as problem:
            raise DamageError(f"{self.store.task(key) / name}: {problem}") from None


def inputs_of(store: Store) -> TaskInputs:
    """Return the inputs of a store; a process that executes many tasks opens the data once."""
    # The fingerprints are part of what is cached, and so is the run: a process may outlive the data
    # of a folder, and files may be damaged between two runs.
    return _inputs(store.path.absolute(), tuple(store.digests.items()), store.run)


@lru_cache(maxsize=2)
def _inputs(path: Path, digests: tuple[tuple[str, str], ...], run: str) -> TaskInputs:
    return TaskInputs(Store(path, dict(digests), run))


def _opened(folder: Path, function: Callable[[Path], T]) -> T:
    """Open a folder of arrays, which checks them; refuse one of another name."""
    try:
        Checksums.of(folder).require_name()
        return function(folder)
    except ValueError as problem:  # a DataError, too
        raise DamageError(str(problem)) from None


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
    inputs = inputs_of(store)
    with progress.start("sharing data", len(sets) + len(bins), "sets") as bar:
        for name, data in sets.items():
            if not _is_sound(store.data(name), partial(inputs.data, name)):
                save_shared(data, store.data(name))
            bar.advance(1)
        for most_bins in bins:
            if not _is_sound(store.binned(most_bins), partial(inputs.binned, most_bins, None)):
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


def _is_sound(folder: Path, opened: Callable[[], object]) -> bool:
    """Tell whether a shared folder can be opened; remove one that is damaged."""
    if not folder.is_dir():
        return False
    try:
        opened()
    except DamageError as damage:
        remove_damaged(folder, damage.problem)
        return False
    return True
