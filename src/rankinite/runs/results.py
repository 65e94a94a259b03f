"""The results of a run: the numbers behind its tables and its report."""

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
from rankinite.runs.graph import Graph, StageModel
from rankinite.runs.recipe import ENSEMBLE, Recipe
from rankinite.runs.store import TaskInputs
from rankinite.runs.tasks import Task, read_record

# Name of the average of all models, unless a subset of the recipe consists of them.
ALL_MODELS = "all models"


@dataclass(frozen=True)
class Selection:
    """The first stage: models trained on some parts, measured on the others.

    Attributes
    ----------
    data
        The queries that models were measured on. No model has seen their labels; their features
        count in the bins of trees, which are made of all training queries.
    scores, members
        The scores and the evaluation of every model, by name.
    subsets
        The evaluation of the average of every named subset.
    search
        The search over subsets, if there was one.
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
    """The final models on a data set that nothing was learned from.

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
        The measure of the validation fold, as a text.
    rounds
        Name of the rounds: trees, or epochs.
    values
        One value a round.
    kept
        The best round: number of rounds that were kept.
    """

    measure: str
    rounds: str
    values: tuple[float, ...]
    kept: int


@dataclass(frozen=True)
class MemberFacts:
    """Facts on a model besides its scores.

    Attributes
    ----------
    curves
        Learning curves of its final trainings, one a bag; of the first stage if it was not
        trained again.
    importances
        Share of every feature in the gain of splits, by name, the largest first; empty for
        nets.
    seconds
        Duration of its trainings in both stages, with those that made score features for others;
        0 if it takes the trainings of another model.
    is_final
        Whether it was trained again on all training queries.
    """

    curves: tuple[Curve, ...]
    importances: Mapping[str, float]
    seconds: float
    is_final: bool = True


@dataclass(frozen=True)
class Results:
    """The results of a run.

    Attributes
    ----------
    recipe
        The recipe.
    descriptions
        Descriptions of the data sets: ``train``, and ``valid`` and ``test`` if present.
    selection
        The first stage.
    outcomes
        The final models, by data set: ``valid`` and ``test`` if present.
    facts
        Other facts, by model.
    seconds
        Duration of the tasks of each stage, one after the other, as they were recorded when they
        were executed: the report shows the same times whenever it is rendered.
    versions
        Versions of the packages that scores depend on, by name.
    digests
        Fingerprints of the data sets, by name.
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
        subsets, recipe = dict(self.selection.subsets), self.recipe
        if any(set(self.models_of(name)) == set(recipe.models) for name in subsets):
            return subsets
        scores = self.selection.scores
        average = averages_of(scores, {ALL_MODELS: tuple(scores)})[ALL_MODELS]
        (whole,) = evaluate_all([average], self.selection.data, recipe.measures,
                                drop_single_label=False)  # fmt: skip
        name = ALL_MODELS
        while name in subsets:
            name = f"average of {name}"
        return {name: whole, **subsets}

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
            "final": {name: _means(final.members) for name, final in self.outcomes.items()},
        }


def averages_of(
    scores: Mapping[str, Floats], subsets: Mapping[str, tuple[str, ...]]
) -> dict[str, Floats]:
    """Return the average of every subset of models, each of whose scores is standardised."""
    rows = np.stack(list(scores.values()))
    scaled = dict(zip(scores, Scaling.fit(rows).apply(ENSEMBLE, list(scores), rows), strict=True))
    return {
        name: weighted_sum(np.stack([scaled[member] for member in members]), np.ones(len(members)))
        for name, members in subsets.items()
    }


def _means(evaluations: Mapping[str, Evaluation]) -> dict[str, dict[str, float | None]]:
    return {
        # JSON has no NaN.
        name: {m: None if value != value else value for m, value in evaluation.mean.items()}
        for name, evaluation in evaluations.items()
    }


def facts_of(
    graph: Graph, inputs: TaskInputs, final: Mapping[str, StageModel]
) -> dict[str, MemberFacts]:
    """Return the facts on every model of a recipe.

    Parameters
    ----------
    graph, inputs
        The tasks of the recipe, and where their results are.
    final
        The models that were trained again on all training queries.
    """
    trainings = _trainings(graph, final)
    facts = {}
    for name in graph.recipe.models:
        last = final.get(name, graph.model(name, graph.first))
        rankers = [inputs.fitted(task.key, {}) for task in last.fits]
        seconds = sum(read_record(inputs.store, task).seconds for task in trainings[name].values())
        curves = tuple(_curve(ranker) for ranker in rankers)
        facts[name] = MemberFacts(curves, _importances(rankers), seconds, name in final)
    return facts


def _trainings(graph: Graph, final: Mapping[str, StageModel]) -> dict[str, dict[str, Task]]:
    """Return all trainings by model and key; those for score features belong to the scorer."""
    trainings: dict[str, dict[str, Task]] = {name: {} for name in graph.recipe.models}
    for staged in (*(graph.model(name, graph.first) for name in trainings), *final.values()):
        model = staged.model
        if model.trained_as is None:
            trainings[model.name] |= {task.key: task for task in staged.fits}
        if model.features is not None and staged.features is not None:
            scorer = graph.recipe.features[model.features].scores_of
            trainings[scorer] |= {task.key: task for task in staged.features.dependencies}
    return trainings


def _curve(model: TrainedRanker) -> Curve:
    """Return the curve of the measure that chose the best round."""
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
