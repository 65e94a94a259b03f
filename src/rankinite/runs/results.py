"""The results of a run: the numbers behind its tables and its report.

`Results` holds what both stages gave: the `Selection` of the first, the `Outcome` of the second on
every further data set, and `MemberFacts` that `facts_of` reads from the store. `compare_ensemble`
says on which data the ensemble is compared with its members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rankinite.core.types import Floats
from rankinite.data.describe import Description
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.selection import Selection, counts, means_without_nan
from rankinite.evaluation.evaluate import Evaluation
from rankinite.objectives.position_bias import PositionBias
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.runs.graph import Graph, StageModel
from rankinite.runs.inputs import TaskInputs
from rankinite.runs.recipe import ENSEMBLE, Recipe
from rankinite.runs.tasks import Task, read_record

if TYPE_CHECKING:
    from rankinite.models import TrainedRanker

HELD_OUT = "held-out"
# Names of data sets in sentences.
PLACES = {"test": "the test set", "valid": "the validation set", HELD_OUT: "the held-out parts"}
# Name of the average of all models, unless a subset of the recipe consists of them.
ALL_MODELS = "all models"


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
        The first stage: models trained on some parts, measured on the others. No model has seen
        their labels; their features count in the bins of trees, which are made of all training
        queries.
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

    @property
    def whole(self) -> str:
        """Which of the averages of the first stage is that of all models."""
        every = set(self.recipe.models)
        return next(name for name in self.selection.subsets if set(self.models_of(name)) == every)

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
            "members": means_without_nan(selection.members),
            "subsets": means_without_nan(selection.subsets),
            "final": {
                name: means_without_nan(final.members) for name, final in self.outcomes.items()
            },
        }


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
    position_bias
        Estimates of its trainings, one a bag, if clicks were corrected for positions.
    """

    curves: tuple[Curve, ...]
    importances: Mapping[str, float]
    seconds: float
    is_final: bool = True
    position_bias: tuple[PositionBias, ...] = ()


def measured_subsets(recipe: Recipe) -> dict[str, tuple[str, ...]]:
    """Return the subsets of models whose averages are measured; all models are among them.

    They are what other subsets are compared with.
    """
    subsets = dict(recipe.subsets)
    if any(set(models) == set(recipe.models) for models in subsets.values()):
        return subsets
    name = ALL_MODELS
    while name in subsets:
        name = f"average of {name}"
    return {name: tuple(recipe.models), **subsets}


@dataclass(frozen=True)
class EnsembleComparison:
    """An ensemble and its members on one data set.

    Attributes
    ----------
    name
        Name of the data set: ``test``, ``valid``, or `HELD_OUT`.
    data
        The data set.
    scores, members
        The scores and the evaluation of every member.
    title, ensemble
        Name and evaluation of the ensemble. On the held-out parts, which chose the models, it is
        the average of all models.
    best
        The best member by the first measure on the held-out parts, chosen without the data set.
    """

    name: str
    data: RankingData
    scores: Mapping[str, Floats]
    members: Mapping[str, Evaluation]
    title: str
    ensemble: Evaluation
    best: str

    @property
    def place(self) -> str:
        """The data set, as sentences speak of it."""
        return PLACES.get(self.name, self.name)

    @property
    def systems(self) -> dict[str, Evaluation]:
        """The members, and the ensemble as the last."""
        return {**self.members, self.title: self.ensemble}


def compare_ensemble(results: Results) -> EnsembleComparison:
    """Compare on the test set; without labels there on the validation set or the held-out parts."""
    first, selection = results.recipe.measures[0], results.selection
    # Data that nothing was learned from come first. The held-out parts have chosen the members:
    # there the ensemble would look better than it is, and the average of all models is shown.
    for name in ("test", "valid"):
        outcome = results.outcomes.get(name)
        if outcome is not None and counts(outcome.members.values(), first):
            members = {n: e for n, e in outcome.members.items() if n != ENSEMBLE}
            return EnsembleComparison(
                name,
                outcome.data,
                {n: outcome.scores[n] for n in members},
                members,
                ENSEMBLE,
                outcome.members[ENSEMBLE],
                selection.best_member,
            )
    return EnsembleComparison(
        HELD_OUT,
        selection.data,
        selection.scores,
        selection.members,
        _title(results.whole, selection.members),
        selection.subsets[results.whole],
        selection.best_member,
    )


def _title(subset: str, members: Mapping[str, Evaluation]) -> str:
    """Return the title of a subset among members, one of which may have its name."""
    return subset if subset not in members else f"average of {subset}"


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
        # Without parameters of scoring, which change neither curves nor importances.
        rankers = [inputs.fitted(task.key, {}) for task in last.fits]
        seconds = sum(read_record(inputs.store, task).seconds for task in trainings[name].values())
        curves = tuple(_curve(ranker) for ranker in rankers)
        biases = (getattr(ranker, "position_bias_", None) for ranker in rankers)
        facts[name] = MemberFacts(
            curves,
            _importances(rankers),
            seconds,
            name in final,
            tuple(bias for bias in biases if bias is not None),
        )
    return facts


def _trainings(graph: Graph, final: Mapping[str, StageModel]) -> dict[str, dict[str, Task]]:
    """Return all trainings by model and key; those for score features belong to the scorer."""
    trainings: dict[str, dict[str, Task]] = {name: {} for name in graph.recipe.models}
    for staged in (*(graph.model(name, graph.first) for name in trainings), *final.values()):
        model = staged.model
        # Else it would count the trainings of another model as its own.
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
    return Curve(measure, model.rounds, tuple(float(v) for v in values), model.best_round_)


def _importances(models: Sequence[TrainedRanker]) -> dict[str, float]:
    """Return the mean share of every feature, the largest first; nothing for nets."""
    trees = [model for model in models if isinstance(model, TreeRanker)]
    if not trees:
        return {}
    shares = np.mean([model.feature_importances_ for model in trees], axis=0)
    # Stable: features without any gain stay in the order of the data.
    order = np.argsort(-shares, kind="stable")
    return {trees[0].feature_names_[j]: float(shares[j]) for j in order}
