"""The units of a recipe: what has to be trained and scored, and in which order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from rankinite.core.random import child_seed
from rankinite.runs.folds import Cut, Fold, Stage
from rankinite.runs.recipe import ORIGINAL, Model, Recipe, Samples
from rankinite.runs.store import TRAIN
from rankinite.runs.tasks import Fit, GatherScores, Parts, Score, Spread, Unit

# Of units that train nothing, compared with a round of training on the original data.
SMALL = 1.0
FIRST, FINAL = "first stage", "final"


@dataclass(frozen=True)
class Member:
    """A model in a stage.

    Attributes
    ----------
    model
        The model of the recipe.
    fits
        Its trainings.
    scorer, features
        The training whose scores it sees as features, and the unit that made them for training
        documents; None if it sees none.
    scoring
        Parameters that only matter for its scores.
    """

    model: Model
    fits: tuple[Unit, ...]
    scorer: Unit | None
    features: Unit | None
    scoring: Mapping[str, Any]

    @property
    def parts(self) -> Parts:
        """What it consists of, as units know it."""
        scorer = None if self.scorer is None else self.scorer.key
        return Parts(tuple(unit.key for unit in self.fits), scorer, self.scoring)

    @property
    def needs(self) -> tuple[Unit, ...]:
        """The units without which it is not there."""
        return self.fits if self.scorer is None else (*self.fits, self.scorer)


class Plan:
    """All units of a recipe for training data of some fingerprint.

    Parameters
    ----------
    recipe
        What is to be done.
    digest
        The fingerprint of the training data.
    """

    def __init__(self, recipe: Recipe, digest: str) -> None:
        self.recipe = recipe
        self.digest = digest
        self.first = Stage(FIRST, recipe.train_parts, recipe.parts, recipe.seed)
        self.final = Stage(FINAL, recipe.parts, recipe.parts, recipe.seed)
        self.member = cache(self._member)

    def _member(self, name: str, stage: Stage) -> Member:
        """Return a model in a stage."""
        model = self.recipe.models[name]
        if model.trained_as is not None:
            other = self.member(model.trained_as, stage)
            trained = self.recipe.models[model.trained_as].parameters
            scoring = {k: v for k, v in model.parameters.items() if trained.get(k) != v}
            return Member(model, other.fits, other.scorer, other.features, scoring)
        features = None if model.features is None else self._features(model.features, stage)
        bags = model.bags if stage == self.final else 1
        fits = tuple(
            self._fit(
                model,
                Cut(stage, Fold(bag, self.recipe.folds)),
                features,
                f"{name} bag {bag + 1} of {bags}" if bags > 1 else name,
                ("bag", bag),
            )
            for bag in range(bags)
        )
        scorer = None
        if model.features is not None:
            scorer = self.member(self.recipe.features[model.features].scores_of, stage).fits[0]
        return Member(model, fits, scorer, features, {})

    def _fit(
        self, model: Model, cut: Cut, features: Unit | None, name: str, seed: tuple[str, int]
    ) -> Unit:
        child = child_seed(self.recipe.seed, "model", model.name, cut.stage.name, *seed)
        samples = self.recipe.training_sets.get(model.train) if model.train != ORIGINAL else None
        work = Fit(
            ranker=model.ranker,
            parameters={**model.parameters, "random_state": int(child.generate_state(1)[0])},
            measures=self.recipe.measures[:1],  # tables measure all, from scores
            cut=cut,
            samples=samples,
            features=None if features is None else features.key,
            data=self.digest,
        )
        needs = () if features is None else (features,)
        return Unit(name, work, needs, cost_of(model, samples, cut.stage))

    def _features(self, name: str, stage: Stage) -> Unit:
        spec = self.recipe.features[name]
        model = self.recipe.models[spec.scores_of]
        cuts = tuple(
            Cut(stage, Fold(0, self.recipe.folds), Fold(k, spec.folds)) for k in range(spec.folds)
        )
        fits = tuple(
            self._fit(
                model,
                cut,
                None,
                f"{model.name} fold {k + 1} of {spec.folds}",
                (f"features {name}", k),
            )
            for k, cut in enumerate(cuts)
        )
        gather = GatherScores(tuple(unit.key for unit in fits), cuts)
        return Unit(f"features {name}", gather, fits, SMALL)

    def selection_scores(self) -> dict[str, Unit]:
        """Return the units that score the queries outside of the first stage, by model."""
        return {name: self.score(self.member(name, self.first), TRAIN, self.digest, self.first)
                for name in self.recipe.models}  # fmt: skip

    def score(self, member: Member, data: str, digest: str, outside: Stage | None = None) -> Unit:
        """Return the unit that scores a data set with a model."""
        where = data if outside is None else "held out"
        work = Score(member.parts, data, digest, outside)
        return Unit(f"scores of {member.model.name} ({where})", work, member.needs, SMALL)

    def spread(self, member: Member) -> Unit:
        """Return the unit that measures the spread of a model's scores."""
        cuts = tuple(unit.work.cut for unit in member.fits if isinstance(unit.work, Fit))
        features = None if member.features is None else member.features.key
        work = Spread(member.parts, cuts, features)
        needs = member.needs if member.features is None else (*member.needs, member.features)
        return Unit(f"spread of {member.model.name}", work, needs, SMALL)


def all_needed(units: Iterable[Unit]) -> dict[str, Unit]:
    """Return units and all that they need, by key, what comes first in front."""
    found: dict[str, Unit] = {}
    for unit in units:
        if unit.key not in found:
            found |= {key: one for key, one in all_needed(unit.needs).items() if key not in found}
            found[unit.key] = unit
    return found


def cost_of(model: Model, samples: Samples | None, stage: Stage) -> float:
    """Return rounds of training, each as long as its data are large."""
    rounds = model.parameters.get("n_trees") or model.parameters.get("n_epochs") or SMALL
    more = 0.0 if samples is None else samples.fraction * samples.times
    return float(rounds) * (1.0 + more) * stage.n_parts / stage.parts
