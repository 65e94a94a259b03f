"""Every ensemble of the closed table over a few small members, for tests that hold for all."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest

import rankinite as rk
from tests.rankers.cases import SMALL, SMALL_NET, TEST, TRAIN, VALID

NAMES = ("1", "2", "3")


@cache
def members() -> list[Any]:
    """Return three fitted rankers whose scores have different scales."""
    return [
        rk.MART(**SMALL | {"n_trees": 3}).fit(TRAIN),
        rk.LambdaMART("ERR", **SMALL | {"n_trees": 4}).fit(TRAIN),
        rk.LambdaRank(**SMALL_NET | {"n_epochs": 2}).fit(TRAIN),
    ]


def scores_of(data: rk.RankingData) -> dict[str, np.ndarray]:
    """Return what the members predict, by name."""
    return {name: one.predict(data) for name, one in zip(NAMES, members(), strict=True)}


@dataclass(frozen=True)
class Case:
    """An ensemble, its settings, and whether its members are rankers or scores."""

    kind: Any
    params: dict[str, Any] = field(default_factory=dict)
    by_scores: bool = False

    def new(self, **changes: Any) -> Any:
        """Return the ensemble unfitted."""
        return self.kind(
            **{"members": None if self.by_scores else members()} | self.params | changes
        )

    def fit(self, data: rk.RankingData = VALID, **changes: Any) -> Any:
        """Return the ensemble fitted."""
        return self.new(**changes).fit(data, **self.options(data))

    def options(self, data: rk.RankingData) -> dict[str, Any]:
        """Return what fit and predict need besides the data."""
        return {"member_scores": scores_of(data)} if self.by_scores else {}

    def predict(self, model: Any, data: rk.RankingData = TEST) -> np.ndarray:
        """Return the scores of the fitted ensemble."""
        return model.predict(data, **self.options(data))


LINEAR = {"ranker": rk.LambdaRank(hidden=0, n_epochs=3, random_state=3)}
TWO_LAYERS = {"ranker": rk.LambdaRank("ERR", hidden=3, n_epochs=3, random_state=3)}
TREES = {"ranker": rk.LambdaMART(**SMALL | {"n_trees": 3, "features_per_tree": 1.0})}

CASES = {
    "average": Case(rk.Average),
    "average-plain": Case(rk.Average, {"scaled": False}),
    "average-scores": Case(rk.Average, by_scores=True),
    "mix": Case(rk.BestMix),
    "mix-tree": Case(rk.BestMix, {"tree": "((1 3)2)", "measure": rk.ERR()}),
    "mix-scores": Case(rk.BestMix, {"tree": "(3(1 2))", "measure": "MAP"}, by_scores=True),
    "powell": Case(rk.Interpolation),
    "powell-scores": Case(rk.Interpolation, {"measure": "ERR"}, by_scores=True),
    "powell-short": Case(rk.Interpolation, {"most_evaluations": 2}),
    "linear": Case(rk.Stacked, LINEAR),
    "two-layers": Case(rk.Stacked, TWO_LAYERS),
    "stacked-trees": Case(rk.Stacked, TREES),
    "stacked-scores": Case(rk.Stacked, LINEAR, by_scores=True),
}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
WITH_RANKERS = {name: case for name, case in CASES.items() if not case.by_scores}
every_case_of_rankers = pytest.mark.parametrize("case", WITH_RANKERS.values(), ids=WITH_RANKERS)
# One a class, where a class is what matters.
CLASSES = {
    CASES[name].kind.__name__: CASES[name] for name in ("average", "mix", "powell", "linear")
}
every_ensemble = pytest.mark.parametrize("case", CLASSES.values(), ids=CLASSES)
