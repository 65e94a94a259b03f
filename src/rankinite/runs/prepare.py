"""What comes before the first unit: data that can be used, shared once, with bins."""

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
from rankinite.data.samples import first_sample
from rankinite.ensembles.score_features import FEATURE_NAMES
from rankinite.models import RANKERS
from rankinite.rankers.inputs import check_features
from rankinite.runs.graph import Plan
from rankinite.runs.recipe import Recipe
from rankinite.runs.store import SETTINGS, TRAIN, RunFolder
from rankinite.trees.binning import BinnedData


def prepare(
    recipe: Recipe, sets: Mapping[str, RankingData], folder: RunFolder, progress: Progress
) -> dict[str, str]:
    """Check the data sets, and share those that are not shared yet; return their fingerprints.

    Parameters
    ----------
    recipe
        What is to be done with them.
    sets
        ``train``, and ``valid`` and ``test`` where there are such.
    folder
        The folder of the run.
    progress
        Who wants to know how far it is.
    """
    if (folder.path / SETTINGS).exists():
        raise UsageError(f"{folder.path}: is the folder of a sweep; name another one for a run")
    _check(recipe, sets)
    digests = {name: fingerprint(data) for name, data in sets.items()}
    folder.check_data(digests, recipe.text)
    models = [(model.ranker, model.parameters) for model in recipe.models.values()]
    share(sets, numbers_of_bins(models), folder, progress, digests)
    return digests


def share(
    sets: Mapping[str, RankingData],
    bins: Sequence[int],
    folder: RunFolder,
    progress: Progress,
    digests: Mapping[str, str] | None = None,
) -> None:
    """Write data sets, and bins of the training data, where all units find them.

    What is there under the same fingerprint, and whole, is not written again.
    """
    folder.digests = dict(digests or {name: fingerprint(data) for name, data in sets.items()})
    with progress.start("sharing data", len(sets) + len(bins), "sets") as bar:
        for name, data in sets.items():
            if not _is_whole(folder.data(name), open_shared):
                save_shared(data, folder.data(name))
            bar.advance(1)
        for most_bins in bins:
            if not _is_whole(folder.binned(most_bins), BinnedData.open):
                train = sets[TRAIN]
                # Bins do not go by the seed of a recipe: recipes of one folder share them.
                made = BinnedData.make(train.X, train.feature_names, most_bins=most_bins)
                made.save(folder.binned(most_bins))
            bar.advance(1)


def _is_whole(shared: Path, open_it: Callable[[Path], object]) -> bool:
    """Tell whether a folder can be opened; one that is damaged goes, and is made anew."""
    if not shared.is_dir():
        return False
    try:
        open_it(shared)
    except DataError:
        shutil.rmtree(shared)
        return False
    return True


def numbers_of_bins(models: Iterable[tuple[str, Mapping[str, Any]]]) -> list[int]:
    """Return the different numbers of bins that rankers of trees ask for.

    Parameters
    ----------
    models
        The name of each ranker's class, and its parameters.
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
                f"data {train.top_grade:g}; say how large labels can be: top_grade, in [data] of "
                "the recipe"
            )
        refuse_samples(name, data)
    twice = sorted({*FEATURE_NAMES} & {*train.feature_names})
    if recipe.features and twice:
        raise DataError(
            f"the training data have a feature {twice[0]!r}, as score features are called; give it "
            "another name"
        )
    _check_size(recipe, train)


def with_top_grade(recipe: Recipe, data: RankingData) -> RankingData:
    """Return a data set with the top grade that the recipe says, if it says one."""
    if recipe.top_grade is None or recipe.top_grade == data.top_grade:
        return data
    return data._with(top_grade=checks.grade(recipe.top_grade, data.y))


def refuse_samples(name: str, data: RankingData) -> None:
    """Refuse data that are augmented already."""
    sample = first_sample(data.qids)
    if sample is not None:
        raise UsageError(
            f"the {name} data hold samples, such as {sample!r}; give the original data, and "
            "let the recipe augment it"
        )


def _check_size(recipe: Recipe, train: RankingData) -> None:
    """Refuse training data of too few queries for all the cuts that will be made."""
    folds = [recipe.folds, *(features.folds for features in recipe.features.values())]
    smallest = train.n_queries // recipe.parts * recipe.train_parts
    # After one fold is left out, the rest is cut once more.
    left = smallest - -(-smallest // min(folds)) if recipe.features else smallest
    if train.n_queries < recipe.parts or left < max(folds):
        raise UsageError(
            f"the training data have {train.n_queries:,} queries, too few for {recipe.parts} parts "
            f"of which {recipe.train_parts} are cut into {max(folds)} folds; ask for fewer parts "
            "and folds in [data] of the recipe, or give more data"
        )
    Plan(recipe, "").first.inside(train)
