"""What a run has come to: the numbers behind tables and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from rankinite.core.types import Floats
from rankinite.data.describe import Description
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.ensemble import Scaling, weighted_sum
from rankinite.ensembles.subsets import SubsetSearch
from rankinite.evaluation.evaluate import Evaluation, evaluate_all
from rankinite.models import TrainedRanker
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.runs.graph import Member, Plan
from rankinite.runs.inputs import Bench
from rankinite.runs.recipe import ENSEMBLE, Recipe
from rankinite.runs.tasks import Unit, read_done

# What the average of all models is called if no subset of the recipe is it.
ALL_MODELS = "all models"


@dataclass(frozen=True)
class Selection:
    """The first stage: models trained on some parts, measured on the others.

    Attributes
    ----------
    data
        The queries that models were measured on, whose labels none of them has seen; their
        features count in the bins of trees, which are made of all training queries.
    scores, members
        The scores and the evaluation of every model, by name.
    subsets
        The evaluation of the average of every named subset.
    search
        What a search over subsets found, if there was one.
    chosen
        The models of the ensemble.
    best_member
        The model with the largest mean of the first measure.
    """

    data: RankingData
    scores: Mapping[str, Floats]
    members: Mapping[str, Evaluation]
    subsets: Mapping[str, Evaluation]
    search: SubsetSearch | None
    chosen: tuple[str, ...]
    best_member: str


@dataclass(frozen=True)
class Outcome:
    """What the final models are worth on a data set of their own.

    Attributes
    ----------
    data
        The data set.
    scores, members
        The scores and the evaluation of every model that was trained again, and of the ensemble
        under `ENSEMBLE`, which is the last.
    """

    data: RankingData
    scores: Mapping[str, Floats]
    members: Mapping[str, Evaluation]


@dataclass(frozen=True)
class Curve:
    """The learning curve of one training.

    Attributes
    ----------
    measure
        What was measured on the validation fold, as a text.
    rounds
        What rounds are called: trees, or epochs.
    values
        One value a round.
    kept
        How many rounds were kept.
    """

    measure: str
    rounds: str
    values: tuple[float, ...]
    kept: int


@dataclass(frozen=True)
class MemberFacts:
    """What is known of a model besides its scores.

    Attributes
    ----------
    curves
        The learning curves of its final trainings, one a bag; of the first stage if there are no
        others.
    importances
        The share of every feature in the gain of splits, by name, the largest first; empty for
        nets.
    seconds
        How long its trainings took in all, both stages, with those that made score features for
        others; 0 if another model's were taken.
    is_final
        Whether it was trained again on all training queries.
    """

    curves: tuple[Curve, ...]
    importances: Mapping[str, float]
    seconds: float
    is_final: bool = True


@dataclass(frozen=True)
class Results:
    """All that a run has come to.

    Attributes
    ----------
    recipe
        What was carried out.
    descriptions
        What the data sets look like: ``train``, and ``valid`` and ``test`` where there are such.
    selection
        The first stage.
    outcomes
        The second, by data set: ``valid`` and ``test`` where there are such.
    facts
        What else is known, by model.
    seconds
        Of every kind of work, by name, for the report alone: no table depends on it.
    versions
        Of the packages that matter, by name.
    digests
        Of the data sets, by name.
    """

    recipe: Recipe
    descriptions: Mapping[str, Description]
    selection: Selection
    outcomes: Mapping[str, Outcome]
    facts: Mapping[str, MemberFacts]
    seconds: Mapping[str, float]
    versions: Mapping[str, str]
    digests: Mapping[str, str]

    @cached_property
    def averages(self) -> dict[str, Evaluation]:
        """The averages of subsets on the held-out parts; that of all models is always there."""
        found, recipe = dict(self.selection.subsets), self.recipe
        if any(set(self.models_of(name)) == set(recipe.models) for name in found):
            return found
        scores = self.selection.scores
        average = averages_of(scores, {ALL_MODELS: tuple(scores)})[ALL_MODELS]
        (whole,) = evaluate_all([average], self.selection.data, recipe.measures,
                                drop_single_label=False)  # fmt: skip
        name = ALL_MODELS
        while name in found:
            name = f"average of {name}"
        return {name: whole, **found}

    @property
    def whole(self) -> str:
        """Which of the averages is that of all models."""
        every = set(self.recipe.models)
        return next(name for name in self.averages if set(self.models_of(name)) == every)

    def models_of(self, average: str) -> tuple[str, ...]:
        """Return the models of an average."""
        return self.recipe.subsets.get(average, tuple(self.recipe.models))

    def as_json(self) -> dict[str, Any]:
        """Return the means of all models, as JSON can hold them."""
        selection = self.selection
        return {
            "recipe": self.recipe.name,
            "chosen": list(selection.chosen),
            "best_member": selection.best_member,
            "members": _means(selection.members),
            "subsets": _means(self.averages),
            "final": {name: _means(one.members) for name, one in self.outcomes.items()},
        }


def averages_of(
    scores: Mapping[str, Floats], subsets: Mapping[str, tuple[str, ...]]
) -> dict[str, Floats]:
    """Return the average of every subset, of scores on one scale."""
    rows = np.stack(list(scores.values()))
    scaled = dict(zip(scores, Scaling.fit(rows).apply(ENSEMBLE, list(scores), rows), strict=True))
    return {
        name: weighted_sum(np.stack([scaled[one] for one in members]), np.ones(len(members)))
        for name, members in subsets.items()
    }


def _means(found: Mapping[str, Evaluation]) -> dict[str, dict[str, float | None]]:
    return {
        name: {m: None if value != value else value for m, value in one.mean.items()}
        for name, one in found.items()
    }


def facts_of(plan: Plan, bench: Bench, members: Mapping[str, Member]) -> dict[str, MemberFacts]:
    """Return the facts of every model of a recipe.

    Parameters
    ----------
    plan, bench
        The units of the recipe, and where they are.
    members
        The models that were trained again on all training queries.
    """
    trainings = _trainings(plan, members)
    found = {}
    for name in plan.recipe.models:
        first = plan.member(name, plan.first)
        last = members.get(name, first)
        models = [bench.model(unit.key, {}) for unit in last.fits]
        seconds = sum(read_done(bench.folder, unit).seconds for unit in trainings[name].values())
        curves = tuple(_curve(one) for one in models)
        found[name] = MemberFacts(curves, _importances(models), seconds, name in members)
    return found


def _trainings(plan: Plan, members: Mapping[str, Member]) -> dict[str, dict[str, Unit]]:
    """Return all trainings by model and key; those that made score features are the scorer's."""
    found: dict[str, dict[str, Unit]] = {name: {} for name in plan.recipe.models}
    for member in (*(plan.member(name, plan.first) for name in found), *members.values()):
        model = member.model
        if model.trained_as is None:
            found[model.name] |= {unit.key: unit for unit in member.fits}
        if model.features is not None and member.features is not None:
            scorer = plan.recipe.features[model.features].scores_of
            found[scorer] |= {unit.key: unit for unit in member.features.needs}
    return found


def _curve(model: TrainedRanker) -> Curve:
    """Return the curve of the measure that decided which round was kept."""
    measure = str(model.validation_measures()[0])
    values = model.history_["valid"][measure]
    return Curve(measure, model.rounds, tuple(float(v) for v in values), model.kept_rounds_)


def _importances(models: Sequence[TrainedRanker]) -> dict[str, float]:
    """Return the mean share of every feature, the largest first; nothing for nets."""
    trees = [model for model in models if isinstance(model, TreeRanker)]
    if not trees:
        return {}
    shares = np.mean([model.feature_importances_ for model in trees], axis=0)
    order = np.argsort(-shares, kind="stable")
    return {trees[0].feature_names_[j]: float(shares[j]) for j in order}
