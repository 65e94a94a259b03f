"""Preparation of a run: data sets are checked, and written once with their bins for all tasks."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rankinite.core.errors import DataError, UsageError
from rankinite.core.progress import Progress
from rankinite.data import checks
from rankinite.data.memmap import fingerprint, open_shared, save_shared
from rankinite.data.ranking_data import RankingData
from rankinite.data.splits import refuse_samples
from rankinite.ensembles.score_features import FEATURE_NAMES
from rankinite.models import RANKERS
from rankinite.rankers.inputs import check_features
from rankinite.runs.graph import Graph
from rankinite.runs.recipe import Recipe
from rankinite.runs.store import SETTINGS, TRAIN, Store
from rankinite.trees.binning import BinnedData

# What to do about samples in the data.
ORIGINALS = "give the original data, and let the recipe augment it"


def prepare(
    recipe: Recipe, sets: Mapping[str, RankingData], store: Store, progress: Progress
) -> dict[str, str]:
    """Check the data sets, write those that are not in the store yet; return their fingerprints.

    Parameters
    ----------
    recipe
        The recipe, which needs enough queries.
    sets
        ``train``, and ``valid`` and ``test`` if present.
    store
        The store of the run.
    progress
        Progress reporter.
    """
    if (store.path / SETTINGS).exists():
        raise UsageError(f"{store.path}: is the folder of a sweep; name another one for a run")
    _check(recipe, sets)
    digests = {name: fingerprint(data) for name, data in sets.items()}
    store.check_data(digests, recipe)
    models = [(model.ranker, model.parameters) for model in recipe.models.values()]
    share(sets, numbers_of_bins(models), store, progress, digests)
    return digests


def share(
    sets: Mapping[str, RankingData],
    bins: Sequence[int],
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
                binned = BinnedData.make(train.X, train.feature_names, most_bins=most_bins)
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


def numbers_of_bins(models: Iterable[tuple[str, Mapping[str, Any]]]) -> list[int]:
    """Return the different values of ``most_bins`` of rankers of trees.

    Parameters
    ----------
    models
        Name of each ranker's class, and its parameters.
    """
    return sorted(
        {
            int(parameters["most_bins"])
            for ranker, parameters in models
            if RANKERS[ranker].takes_binned
        }
    )


def _check(recipe: Recipe, sets: Mapping[str, RankingData]) -> None:
    train = sets[TRAIN]
    for name, data in sets.items():
        check_features(f"the {name} data", data.feature_names, train.feature_names)
        if data.top_grade != train.top_grade:
            raise DataError(
                f"the top grade of the {name} data is {data.top_grade:g}, that of the training "
                f"data {train.top_grade:g}; set top_grade, the largest possible label, in [data] "
                "of the recipe"
            )
        refuse_samples(name, data.qids, ORIGINALS)
    clashing = sorted({*FEATURE_NAMES} & {*train.feature_names})
    if recipe.features and clashing:
        raise DataError(
            f"the training data have a feature {clashing[0]!r}, as score features are called; give "
            "it another name"
        )
    _check_size(recipe, train)


def with_top_grade(recipe: Recipe, data: RankingData) -> RankingData:
    """Return a data set with the top grade of the recipe, if the recipe sets one."""
    if recipe.top_grade is None or recipe.top_grade == data.top_grade:
        return data
    return data.replace(top_grade=checks.top_grade(recipe.top_grade, data.y))


def _check_size(recipe: Recipe, train: RankingData) -> None:
    """Refuse training data with too few queries for all parts and folds."""
    folds = [recipe.folds, *(features.folds for features in recipe.features.values())]
    smallest = train.n_queries // recipe.parts * recipe.train_parts
    # For score features, one fold is left out and the rest is split once more.
    left = smallest - -(-smallest // min(folds)) if recipe.features else smallest
    if train.n_queries < recipe.parts or left < max(folds):
        raise UsageError(
            f"the training data have {train.n_queries:,} queries, too few for {recipe.parts} parts "
            f"of which {recipe.train_parts} are split into {max(folds)} folds; ask for fewer parts "
            "and folds in [data] of the recipe, or give more data"
        )
    # Splitting raises its own error for data that cannot be split.
    Graph(recipe, "").first.inside(train)
