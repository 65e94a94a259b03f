"""The graph of a recipe: the tasks that train and score its models, and their dependencies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rankinite.core.random import child_seed
from rankinite.runs.inputs import ModelKeys
from rankinite.runs.recipe import ORIGINAL, Model, Recipe, Samples
from rankinite.runs.store import TRAIN
from rankinite.runs.tasks import (
    Fit,
    Fold,
    GatherScores,
    Score,
    Split,
    Spread,
    Stage,
    Task,
)

# Cost of tasks that train nothing, compared with one round of training on the original data.
SMALL = 1.0
# Seeds of trainings depend on these names: another name gives other models.
FIRST, FINAL = "first stage", "final"


@dataclass(frozen=True)
class StageModel:
    """A model of the recipe as one stage trains it.

    Attributes
    ----------
    model
        The model of the recipe.
    fits
        Its trainings, one a bag.
    scorer, features
        The training whose scores it sees as features, and the task that made them for training
        documents; None if it sees none.
    scoring
        Parameters that only affect its scores.
    """

    model: Model
    fits: tuple[Task, ...]
    scorer: Task | None
    features: Task | None
    scoring: Mapping[str, Any]

    @property
    def keys(self) -> ModelKeys:
        """The model as other tasks refer to it."""
        scorer = None if self.scorer is None else self.scorer.key
        return ModelKeys(tuple(task.key for task in self.fits), scorer, self.scoring)

    @property
    def dependencies(self) -> tuple[Task, ...]:
        """The tasks that must be finished before it can score."""
        return self.fits if self.scorer is None else (*self.fits, self.scorer)


class Graph:
    """All tasks of a recipe for some training data.

    Parameters
    ----------
    recipe
        The recipe.
    digest
        Fingerprint of the training data.
    """

    def __init__(self, recipe: Recipe, digest: str) -> None:
        self.recipe = recipe
        self.digest = digest
        self.first = Stage(FIRST, recipe.train_parts, recipe.parts, recipe.seed)
        self.final = Stage(FINAL, recipe.parts, recipe.parts, recipe.seed)
        # The same objects for all who ask: the key of a task is a hash that is computed once for
        # each object.
        self.model = cache(self._model)

    def _model(self, name: str, stage: Stage) -> StageModel:
        """Return a model of the recipe as a stage trains it."""
        model = self.recipe.models[name]
        if model.trained_as is not None:
            other = self.model(model.trained_as, stage)
            trained = self.recipe.models[model.trained_as].parameters
            scoring = {k: v for k, v in model.parameters.items() if trained.get(k) != v}
            return StageModel(model, other.fits, other.scorer, other.features, scoring)
        features = None if model.features is None else self._features(model.features, stage)
        # The first stage compares models, for which one bag is enough.
        bags = model.bags if stage == self.final else 1
        fits = tuple(
            self._fit(
                model,
                Split(stage, Fold(bag, self.recipe.folds)),
                features,
                f"{name} bag {bag + 1} of {bags}" if bags > 1 else name,
                ("bag", bag),
            )
            for bag in range(bags)
        )
        scorer = None
        if model.features is not None:
            scorer = self.model(self.recipe.features[model.features].scores_of, stage).fits[0]
        return StageModel(model, fits, scorer, features, {})

    def _fit(
        self, model: Model, split: Split, features: Task | None, name: str, seed: tuple[str, int]
    ) -> Task:
        # By the names of model, stage and bag: to add a model or a bag changes no other seed.
        child = child_seed(self.recipe.seed, "model", model.name, split.stage.name, *seed)
        samples = self.recipe.training_sets.get(model.train) if model.train != ORIGINAL else None
        function = Fit(
            ranker=model.ranker,
            parameters={**model.parameters, "random_state": int(child.generate_state(1)[0])},
            # Tables compute all measures from scores: another one there trains nothing again.
            measures=self.recipe.measures[:1],
            split=split,
            samples=samples,
            features=None if features is None else features.key,
            data=self.digest,
        )
        dependencies = () if features is None else (features,)
        return Task(name, function, dependencies, cost_of(model, samples, split.stage))

    def _features(self, name: str, stage: Stage) -> Task:
        spec = self.recipe.features[name]
        model = self.recipe.models[spec.scores_of]
        splits = tuple(
            Split(stage, Fold(0, self.recipe.folds), Fold(k, spec.folds)) for k in range(spec.folds)
        )
        fits = tuple(
            self._fit(
                model,
                split,
                None,
                f"{model.name} fold {k + 1} of {spec.folds}",
                (f"features {name}", k),
            )
            for k, split in enumerate(splits)
        )
        gather = GatherScores(tuple(task.key for task in fits), splits)
        return Task(f"features {name}", gather, fits, SMALL)

    def selection_scores(self) -> dict[str, Task]:
        """Return the tasks that score the queries outside of the first stage, by model."""
        return {
            name: self.score(self.model(name, self.first), TRAIN, self.digest, self.first)
            for name in self.recipe.models
        }

    def score(
        self, model: StageModel, data: str, digest: str, outside: Stage | None = None
    ) -> Task:
        """Return the task that scores a data set with a model."""
        # Names are for people; the key tells tasks apart.
        where = data if outside is None else "held out"
        function = Score(model.keys, data, digest, outside)
        name = f"scores of {model.model.name} ({where})"
        return Task(name, function, model.dependencies, SMALL)

    def spread(self, model: StageModel) -> Task:
        """Return the task that measures the spread of a model's scores."""
        splits = tuple(task.function.split for task in model.fits if isinstance(task.function, Fit))
        features = None if model.features is None else model.features.key
        function = Spread(model.keys, splits, features)
        dependencies = model.dependencies
        if model.features is not None:  # it reads training documents with their features
            dependencies = (*dependencies, model.features)
        return Task(f"spread of {model.model.name}", function, dependencies, SMALL)


def with_dependencies(tasks: Iterable[Task]) -> dict[str, Task]:
    """Return tasks and all their dependencies, by key, in an order of execution."""
    ordered: dict[str, Task] = {}
    for task in tasks:
        if task.key not in ordered:
            before = with_dependencies(task.dependencies)
            ordered |= {key: other for key, other in before.items() if key not in ordered}
            ordered[task.key] = task
    return ordered


def cost_of(model: Model, samples: Samples | None, stage: Stage) -> float:
    """Return the number of rounds of a training, each weighted by the size of its data."""
    # Time is roughly proportional to rounds and documents. Trees and nets differ by a factor that
    # is left out: an order of execution is all that follows from it.
    rounds = model.parameters.get("n_trees") or model.parameters.get("n_epochs") or SMALL
    more = 0.0 if samples is None else samples.fraction * samples.times
    return float(rounds) * (1.0 + more) * stage.n_parts / stage.parts
