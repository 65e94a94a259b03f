"""The results of a run: the numbers behind its tables and its report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import stdtrit

from rankinite.core.types import Floats
from rankinite.data.describe import Description
from rankinite.data.ranking_data import RankingData
from rankinite.ensembles.ensemble import Scaling, weighted_sum
from rankinite.ensembles.subsets import SubsetSearch
from rankinite.evaluation.compare import compare_evaluations
from rankinite.evaluation.comparison import Comparison
from rankinite.evaluation.evaluate import Evaluation, evaluate_all
from rankinite.models import TrainedRanker
from rankinite.rankers.tree_ranker import TreeRanker
from rankinite.runs.graph import Graph, StageModel
from rankinite.runs.recipe import ENSEMBLE, Recipe
from rankinite.runs.store import TaskInputs
from rankinite.runs.tasks import Task, read_record
from rankinite.stats.paired_tests import gain_and_p

HELD_OUT = "held-out"
# Names of data sets in sentences.
PLACES = {"test": "the test set", "valid": "the validation set", HELD_OUT: "the held-out parts"}
# Significance level of tests; intervals have the coverage 1 - LEVEL.
LEVEL = 0.05


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


@dataclass(frozen=True)
class Gain:
    """The difference between two systems.

    Attributes
    ----------
    mean, low, high
        The mean difference over queries, and the ends of its interval by the t distribution.
    p
        The p-value of the paired t-test.
    """

    mean: float
    low: float
    high: float
    p: float

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant at `LEVEL`."""
        return self.p <= LEVEL


def compare_ensemble(results: Results) -> EnsembleComparison:
    """Compare on the test set; without labels there on the validation set or the held-out parts."""
    first, selection = results.recipe.measures[0], results.selection
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
        results.averages[results.whole],
        selection.best_member,
    )


def _title(subset: str, members: Mapping[str, Evaluation]) -> str:
    """Return the title of a subset among members, one of which may have its name."""
    return subset if subset not in members else f"average of {subset}"


def counts(evaluations: Iterable[Evaluation], measure: str) -> bool:
    """Tell whether there is a query that counts for a measure."""
    return any(evaluation.n_queries.get(measure, 0) > 0 for evaluation in evaluations)


def gain_over(evaluation: Evaluation, baseline: Evaluation, measure: str) -> Gain | None:
    """Return the gain of an evaluation over a baseline; None if no query counts."""
    if measure not in evaluation.per_query or measure not in baseline.per_query:
        return None
    gain, p = gain_and_p(evaluation.per_query[measure], baseline.per_query[measure])
    if np.isnan(gain):
        return None
    differences = evaluation.per_query[measure] - baseline.per_query[measure]
    differences = differences[~np.isnan(differences)]
    half = half_width(differences)
    return Gain(gain, gain - half, gain + half, p)


def half_width(differences: Floats) -> float:
    """Return half the width of the interval of a mean, by the t distribution.

    Examples
    --------
    Three values have a standard error of 1 / sqrt(3) and a t of 4.303.

    >>> round(half_width(np.array([1.0, 2.0, 3.0])), 3)
    2.484
    """
    n_queries = len(differences)
    if n_queries < 2:
        return float("inf")
    error = differences.std(ddof=1) / np.sqrt(n_queries)
    return float(error * stdtrit(n_queries - 1, 1 - LEVEL / 2))


def p_against(
    evaluations: Mapping[str, Evaluation], baseline: str, measure: str
) -> dict[str, float | None]:
    """Return p-values against one of the systems; None for itself, and without a test."""
    p_values = {}
    for name, evaluation in evaluations.items():
        gain = None if name == baseline else gain_over(evaluation, evaluations[baseline], measure)
        p_values[name] = None if gain is None else gain.p
    return p_values


def comparison_of(
    evaluations: Mapping[str, Evaluation], measures: Iterable[str]
) -> Comparison | None:
    """Compare every two systems by the measures that count; None if there is nothing to test."""
    values = list(evaluations.values())
    shown = [measure for measure in measures if counts(values, measure)]
    if len(values) < 2 or not shown:
        return None
    alike = {
        name: Evaluation(evaluation.qids, {m: evaluation.per_query[m] for m in shown})
        for name, evaluation in evaluations.items()
    }
    # Only p-values and the oracle are used, neither of which needs bootstrap resamples.
    return compare_evaluations(alike, resamples=1, level=LEVEL)


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
    return {name: without_nan(evaluation.mean) for name, evaluation in evaluations.items()}


def without_nan(means: Mapping[str, float]) -> dict[str, float | None]:
    """Return means with None for NaN, which JSON does not have."""
    return {measure: None if value != value else value for measure, value in means.items()}


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
