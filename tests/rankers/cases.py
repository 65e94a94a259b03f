"""Every ranker of the registry in small settings, for tests that hold for all of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rankinite as rk

TRAIN = rk.polynomials(12, part="train", n_features=4, n_docs=8)
VALID = rk.polynomials(6, part="valid", n_features=4, n_docs=8)
TEST = rk.polynomials(6, part="test", n_features=4, n_docs=8)

SMALL: dict[str, Any] = {
    "n_trees": 6,
    "n_leaves": 4,
    "learning_rate": 0.3,
    "min_docs_in_leaf": 2,
    "docs_per_tree": 0.7,
    "features_per_tree": 0.75,
    "random_state": 3,
    # The best round is kept; the mean over rounds has tests of its own.
    "average_rounds": False,
}
WHOLE = {
    "docs_per_tree": 1.0,
    "queries_per_tree": 1.0,
    "features_per_tree": 1.0,
    "random_strength": 0.0,
}
SMALL_NET: dict[str, Any] = {"n_epochs": 6, "hidden": 8, "learning_rate": 0.01, "random_state": 3}
# Documents that are not of grade 3 or 4 are all alike to the first tier.
GRADED = "MAP(relevant=3) > NDCG@5"
TRANSITION = "Transition(NDCG, SigmoidCost(NDCG@3), linear(start=0, eta=0.25))"


def background() -> rk.MART:
    """Return a fitted ranker to start from."""
    return rk.MART(**SMALL | {"n_trees": 2, "random_state": 8}).fit(VALID)


@dataclass(frozen=True)
class Case:
    """A ranker, its settings, and what it starts from."""

    kind: Any
    params: dict[str, Any] = field(default_factory=dict)
    base: str = ""

    @property
    def is_net(self) -> bool:
        """Whether it is a net, and not trees."""
        return self.kind is rk.LambdaRank

    @property
    def small(self) -> dict[str, Any]:
        """The settings that it has unless it says otherwise."""
        return SMALL_NET if self.is_net else SMALL

    @property
    def whole(self) -> dict[str, Any]:
        """Settings by which every round sees all data."""
        return {} if self.is_net else WHOLE

    @property
    def size(self) -> str:
        """The parameter that says how large it is."""
        return "hidden" if self.is_net else "n_leaves"

    def settings(self, *, rounds: int | None = None, **settings: Any) -> dict[str, Any]:
        """Return parameters, where trees and epochs are both called rounds."""
        name = "n_epochs" if self.is_net else "n_trees"
        return settings if rounds is None else {name: rounds} | settings

    def new(self, **changes: Any) -> Any:
        """Return the ranker unfitted; without a base that is given as scores."""
        params = self.small | self.params | self.settings(**changes)
        if self.base == "ranker":
            params = {"base": background()} | params
        return self.kind(**params)

    def fit(self, data: rk.RankingData = TRAIN, *, changes: Any = (), **options: Any) -> Any:
        """Return the ranker fitted."""
        model = self.new(**dict(changes))
        if self.base == "scores":
            model.set_params(base=self.scores(data))
            valid = options.get("valid")
            if isinstance(valid, rk.RankingData):
                options = {"valid_base": self.scores(valid)} | options
        return model.fit(data, **options)

    def scores(self, data: rk.RankingData) -> np.ndarray:
        """Return the scores of some ranker that is not ours."""
        return np.nan_to_num(np.asarray(data.X[:, 0], np.float64))

    def predict(self, model: Any, data: rk.RankingData = TEST, **options: Any) -> np.ndarray:
        """Return the scores of the fitted ranker."""
        if self.base == "scores":
            options["base_scores"] = self.scores(data)
        return model.predict(data, **options)

    def staged(self, model: Any, data: rk.RankingData = TEST, **options: Any) -> list[np.ndarray]:
        """Return the scores after every round."""
        if self.base == "scores":
            options["base_scores"] = self.scores(data)
        return list(model.staged_predict(data, **options))


CASES = {
    "NDCG": Case(rk.LambdaMART),
    "NDCG-deviation": Case(
        rk.LambdaMART, {"measure": "NDCG@5", "normalise": "deviation", "step": "gradient"}
    ),
    "NDCG-distance": Case(
        rk.LambdaMART, {"truncation": 3, "normalise": "distance", "queries_per_tree": 0.7}
    ),
    "NDCG-newton": Case(rk.LambdaMART, {"criterion": "newton", "max_depth": 2}),
    "NDCG-symmetric": Case(rk.LambdaMART, {"symmetric": True, "n_leaves": 8}),
    "NDCG-line-search": Case(rk.LambdaMART, {"step": "line-search"}),
    "ERR": Case(rk.LambdaMART, {"measure": "ERR"}),
    "MAP": Case(rk.LambdaMART, {"measure": rk.MAP(relevant=2)}),
    "MRR": Case(rk.LambdaMART, {"measure": "MRR@5"}),
    "RankNet": Case(rk.LambdaMART, {"measure": "RankNet"}),
    "graded": Case(rk.LambdaMART, {"measure": GRADED}),
    "graded-newton": Case(
        rk.LambdaMART,
        {
            "measure": rk.objectives.Tiered(GRADED, weights=0.5, pairs_of="labelled"),
            "criterion": "newton",
        },
    ),
    "transition": Case(rk.LambdaMART, {"measure": TRANSITION, "step": "gradient"}),
    "NDCG-base": Case(rk.LambdaMART, base="ranker"),
    "ERR-scores": Case(rk.LambdaMART, {"measure": "ERR"}, base="scores"),
    "squared": Case(rk.MART),
    "squared-base": Case(rk.MART, base="ranker"),
    "centred": Case(rk.MART, {"loss": "centred"}),
    "logistic": Case(rk.MART, {"loss": "logistic"}),
    "per-query": Case(rk.MART, {"loss": "logistic", "per_query": True}),
    "McRank": Case(rk.McRank, {"n_trees": 3}),
    "net": Case(rk.LambdaRank),
    "net-MAP": Case(rk.LambdaRank, {"hidden": 0, "measure": rk.MAP(relevant=2)}),
    "net-ERR": Case(
        rk.LambdaRank,
        {"hidden": (4, 2), "measure": "ERR", "weight_decay": 0.1, "activation": "tanh"},
    ),
    "net-MRR": Case(rk.LambdaRank, {"measure": "MRR@5", "queries_per_step": 5}),
    "net-RankNet": Case(rk.LambdaRank, {"measure": "RankNet", "queries_per_step": "all"}),
    # Weights are drawn anew in the midst of six epochs.
    "net-sgd": Case(
        rk.LambdaRank,
        {"optimiser": "sgd", "learning_rate": 0.1, "patience": 1, "rank_inputs": False},
    ),
    "net-graded": Case(rk.LambdaRank, {"measure": rk.objectives.Tiered(GRADED, train_depth=5)}),
    "net-transition": Case(rk.LambdaRank, {"measure": TRANSITION, "queries_per_step": 5}),
    "net-base": Case(rk.LambdaRank, base="ranker"),
    "net-scores": Case(rk.LambdaRank, {"hidden": [2], "optimiser": "sgd"}, base="scores"),
    "net-value": Case(rk.LambdaRank, {"measure": rk.objectives.Lambdas("NDCG@5", truncation=4)}),
    "net-value-RankNet": Case(rk.LambdaRank, {"hidden": 0, "measure": rk.objectives.RankNet()}),
}
TREES = {name: case for name, case in CASES.items() if not case.is_net}
NETS = {name: case for name, case in CASES.items() if case.is_net}
every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_case_of_trees = pytest.mark.parametrize("case", TREES.values(), ids=TREES)
every_net = pytest.mark.parametrize("case", NETS.values(), ids=NETS)
# The first case of each class, where a class is what matters.
CLASSES = {case.kind.__name__: case for case in reversed(CASES.values())}
every_ranker = pytest.mark.parametrize("case", CLASSES.values(), ids=CLASSES)


def bytes_of(model: Any) -> bytes:
    """Return the bytes of the model's file."""
    model.save("bytes.rk")
    return Path("bytes.rk").read_bytes()


def copied(data: rk.RankingData, **changes: Any) -> rk.RankingData:
    """Return the same set with a matrix of its own, in the order of its documents."""
    parts = {
        "X": np.array(data.X),
        "y": data.y,
        "qid": data.qid,
        "query_weight": data.query_weight,
        "feature_names": data.feature_names,
        "top_grade": data.top_grade,
    }
    return rk.RankingData(**parts | changes)
