"""What a unit works with: the data that all share, and what other units have made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.errors import ModelFileError
from rankinite.core.types import Floats
from rankinite.data.memmap import open_shared
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.average import Average
from rankinite.ensembles.score_features import WithScoreFeatures
from rankinite.models import TrainedRanker, load_model
from rankinite.rankers.ranker import Ranker
from rankinite.runs.store import TRAIN, RunFolder, unreadable
from rankinite.trees.binning import BinnedData

MODEL, SCORES = "model.rk", "scores.npy"
# Of score features: the four columns, and the whole matrix with them.
ADDED, WIDE = "added.npy", "features.npy"


class Bench:
    """The data of a run, mapped into memory once a process.

    Parameters
    ----------
    folder
        The folder of the run.
    """

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder

    @cached_property
    def train(self) -> RankingData:
        """The training data."""
        return self.data(TRAIN)

    def data(self, name: str) -> RankingData:
        """Return one of the data sets."""
        return open_shared(self.folder.data(name))

    def train_with(self, features: str | None) -> RankingData:
        """Return the training data, with the score features of a unit if there is one."""
        if features is None:
            return self.train
        return open_shared(self.folder.data(TRAIN), self.folder.unit(features) / WIDE)

    def binned(self, most_bins: int, features: str | None) -> BinnedData:
        """Return the bins of the training data, with score features if there are such."""
        shared = BinnedData.open(self.folder.binned(most_bins))
        if features is None:
            return shared
        added = _read(self.folder.unit(features) / ADDED)
        names = self.train_with(features).feature_names[-added.shape[1] :]
        return shared.append(added, names)

    def model(self, key: str, scoring: Mapping[str, Any]) -> TrainedRanker:
        """Return the model of a training, with what is said of its scores alone."""
        path = self.folder.unit(key) / MODEL
        try:
            found: Any = load_model(path)
        except ModelFileError as problem:
            raise unreadable(path, problem) from None
        fitted: TrainedRanker = found.set_params(**scoring)
        return fitted

    def member(self, fits: Sequence[str], scorer: str | None, scoring: Mapping[str, Any]) -> Ranker:
        """Return what several trainings of a model have come to, as one ranker.

        Parameters
        ----------
        fits
            The trainings.
        scorer
            That of the model whose scores it sees as features, if it does.
        scoring
            Parameters that only matter for scores.
        """
        models = [self.model(key, scoring) for key in fits]
        ranker: Ranker = models[0]
        if len(models) > 1:
            ranker = Average.made_of({str(k): one for k, one in enumerate(models, 1)})
        if scorer is None:
            return ranker
        return WithScoreFeatures.made_of(self.model(scorer, {}), ranker)

    def scores(self, key: str) -> Floats:
        """Return the scores that a unit has made."""
        return _read(self.folder.unit(key) / SCORES)


def bench_of(folder: RunFolder) -> Bench:
    """Return the bench of a run's folder; a process that does many units opens the data once."""
    return _bench(folder.path.absolute(), tuple(folder.digests.items()))


@lru_cache(maxsize=2)
def _bench(path: Path, digests: tuple[tuple[str, str], ...]) -> Bench:
    return Bench(RunFolder(path, dict(digests)))


def _read(path: Path) -> NDArray[Any]:
    try:
        found: NDArray[Any] = np.load(path, allow_pickle=False)
    except (OSError, EOFError, ValueError) as problem:
        raise unreadable(path, problem) from None
    return found
