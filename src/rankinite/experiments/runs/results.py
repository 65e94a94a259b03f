"""What a run has come to: the numbers behind tables and report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.combine.subsets import SubsetSearch
from rankinite.data.describe import Description
from rankinite.data.ranking_data import RankingData
from rankinite.evaluation.evaluate import Evaluation
from rankinite.experiments.recipes.recipe import Recipe

Floats = NDArray[np.float64]

ENSEMBLE = "ensemble"


@dataclass(frozen=True)
class Selection:
    """The first stage: models trained on some parts, measured on the others.

    Attributes
    ----------
    data
        The queries that models were measured on, which none of them has seen.
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
        How long its trainings took in all, both stages; 0 if another model's were taken.
    """

    curves: tuple[Curve, ...]
    importances: Mapping[str, float]
    seconds: float


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

    def as_json(self) -> dict[str, Any]:
        """Return the means of all models, as JSON can hold them."""
        selection = self.selection
        return {
            "recipe": self.recipe.name,
            "chosen": list(selection.chosen),
            "best_member": selection.best_member,
            "members": _means(selection.members),
            "subsets": _means(selection.subsets),
            "final": {name: _means(one.members) for name, one in self.outcomes.items()},
        }


def _means(found: Mapping[str, Evaluation]) -> dict[str, dict[str, float | None]]:
    return {
        name: {m: None if value != value else value for m, value in one.mean.items()}
        for name, one in found.items()
    }
