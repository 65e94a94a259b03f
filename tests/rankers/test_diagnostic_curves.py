"""Curves of diagnostics: every curve against its naive reference, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rankinite as rk
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import RankNet
from rankinite.objectives.tiers import Tiered
from tests.naive import diagnostics as naive_diagnostics
from tests.naive import pairwise as naive_lambdas
from tests.naive import tiers as naive_graded
from tests.rankers.cases import CASES, SMALL, TRAIN

TOP_GRADE = 4.0
GRADES = [0.0, 1.0, 2.0, 3.0, 4.0]
CLICKED = TRAIN.with_labels(
    {"clicks": np.random.default_rng(5).choice([0, 0.25, 0.5, 1, np.nan], TRAIN.n_docs)}
)
GRADED = {"preset": "paper", **SMALL, "measure": Tiered("NDCG@3 > CNDCG@3[clicks]", weights=0.4)}


def ties_of(targets):
    """Return the order in which ties of every query are ranked, counted in the query."""
    shuffle = RankNet().prepare(targets).arrays.shuffle
    parts = np.split(shuffle, targets.offsets[1:-1])
    return [(part - first).tolist() for part, first in zip(parts, targets.offsets, strict=False)]


class Expected:
    """The curves of a fit by the naive references, from the scores after every round."""

    def __init__(self, data, seed, start, stages, top):
        self.data = data
        self.top = top
        self.parts = list(zip(data.offsets[:-1], data.offsets[1:], strict=True))
        self.targets = Targets(data.all_labels, data.offsets, data.top_grade, seed=seed)
        self.ties = ties_of(self.targets)
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        self.queries = np.flatnonzero(weight)
        self.stages = stages
        self.rankings = [self._rankings(scores) for scores in [start, *stages]]

    def _rankings(self, scores):
        return [
            naive_diagnostics.ranking_of(scores[a:b].tolist(), ties)
            for (a, b), ties in zip(self.parts, self.ties, strict=True)
        ]

    def labels(self, q, source=None):
        a, b = self.parts[q]
        return self.data.all_labels[source][a:b].tolist()

    def top_shares(self):
        return [
            naive_diagnostics.mean(
                [
                    naive_diagnostics.top_shares(r[q], self.labels(q), GRADES, self.top)
                    for q in self.queries
                ]
            )
            for r in self.rankings[1:]
        ]

    def rank_changes(self):
        return [
            naive_diagnostics.mean(
                [naive_diagnostics.rank_changes(old[q], new[q], self.top) for q in self.queries]
            )
            for old, new in zip(self.rankings, self.rankings[1:], strict=False)
        ]

    def agreement(self, lambdas, other):
        """Go through the rounds; both make lambdas of the scores, number and ranking of a query."""
        for scores, rankings in zip(self.stages, self.rankings[1:], strict=True):
            both = [[], []]
            for q in self.queries:
                a, b = self.parts[q]
                for collected, make in zip(both, (lambdas, other), strict=True):
                    collected += make(scores[a:b].tolist(), q, rankings[q])[0]
            yield naive_diagnostics.agreement(*both)


def columns(diagnostics, beginning):
    curves = [curve for name, curve in diagnostics.curves.items() if name.startswith(beginning)]
    return np.array(curves).T


def test_all_curves_of_a_graded_fit():
    weighted = CLICKED.with_query_weight(np.arange(CLICKED.n_queries) % 4)
    diagnostics = rk.Diagnostics(top=2)
    model = rk.LambdaMART(**GRADED).fit(weighted, diagnostics=diagnostics)
    stages = list(model.staged_predict(weighted))
    expected = Expected(weighted, model.seed_, np.zeros(weighted.n_docs), stages, top=2)
    measures = [replace(tier, depth=None) for tier in GRADED["measure"].measure.tiers]

    def first(scores, q, ranking):
        return naive_lambdas.lambdas(
            measures[0], scores, expected.labels(q), TOP_GRADE, ranking=ranking, truncation=30
        )

    def tied(scores, q, ranking):
        labels = [expected.labels(q), expected.labels(q, "clicks")]
        return naive_graded.tier(measures, labels, scores, TOP_GRADE, ranking=ranking)

    def all_pairs(scores, q, ranking):
        labels = np.nan_to_num(expected.labels(q, "clicks")).tolist()
        return naive_lambdas.lambdas(measures[1], scores, labels, TOP_GRADE, ranking=ranking)

    assert diagnostics.rounds == [1, 2, 3, 4, 5, 6]
    name = "agreement of CNDCG@3[clicks]"
    np.testing.assert_allclose(diagnostics.curves[name], [*expected.agreement(first, tied)])
    curve = diagnostics.curves[f"{name}, all pairs"]
    np.testing.assert_allclose(curve, [*expected.agreement(first, all_pairs)])
    tops = np.array(expected.top_shares())
    np.testing.assert_allclose(columns(diagnostics, "top 2 share of"), tops[:, :-1], atol=1e-12)
    np.testing.assert_allclose(columns(diagnostics, "rank changes"), expected.rank_changes())
    counted = weighted[expected.queries]
    for measure in ("NDCG@3", "CNDCG@3[clicks]"):
        values = [
            rk.evaluate(
                scores[np.repeat(weighted.query_weight > 0, weighted.sizes)], counted, measure
            )
            for scores in stages
        ]
        curve = diagnostics.curves[f"{measure} of the training set"]
        np.testing.assert_allclose(curve, [evaluation.mean[measure] for evaluation in values])
    assert columns(diagnostics, "lambda share").shape == (6, 5)
    assert (np.abs(columns(diagnostics, "lambda share")).sum(axis=1) <= 1.0 + 1e-12).all()


def test_documents_without_a_label_have_a_curve():
    labels = np.where(np.arange(TRAIN.n_docs) % 5 == 0, np.nan, TRAIN.y)
    data = TRAIN.with_labels({"some": labels})
    diagnostics = rk.Diagnostics()
    model = rk.LambdaMART("NDCG[some]", **SMALL).fit(data, diagnostics=diagnostics)
    stages = list(model.staged_predict(data))
    expected = Expected(data, model.seed_, np.zeros(data.n_docs), stages, top=3)
    expected.labels = lambda q: labels[slice(*expected.parts[q])].tolist()
    assert [*diagnostics.curves][5:11] == [
        *(f"top 3 share of grade {grade}" for grade in range(5)),
        "top 3 share of no label",
    ]
    np.testing.assert_allclose(columns(diagnostics, "top 3"), expected.top_shares(), atol=1e-12)


def test_curves_of_a_net_are_those_of_its_last_weights():
    diagnostics = rk.Diagnostics()
    model = rk.LambdaRank(n_epochs=1, hidden=3).fit(TRAIN, diagnostics=diagnostics)
    expected = Expected(TRAIN, model.seed_, np.zeros(TRAIN.n_docs), [model.predict(TRAIN)], top=3)
    np.testing.assert_allclose(
        columns(diagnostics, "top 3"), np.array(expected.top_shares())[:, :-1], atol=1e-12
    )
    assert diagnostics.curves["NDCG of the training set"] == model.history_["train"]["NDCG"]


def test_the_first_round_is_compared_with_the_base():
    base = np.arange(TRAIN.n_docs, dtype=float)
    diagnostics = rk.Diagnostics()
    model = rk.LambdaMART(**SMALL, base=base).fit(TRAIN, diagnostics=diagnostics)
    stages = list(model.staged_predict(TRAIN, base_scores=base))
    expected = Expected(TRAIN, model.seed_, base, stages, top=3)
    np.testing.assert_allclose(columns(diagnostics, "rank changes"), expected.rank_changes())


@pytest.mark.parametrize("name", ["squared", "logistic", "McRank"])
def test_without_pairs_there_are_no_lambdas(name):
    diagnostics = rk.Diagnostics()
    model = CASES[name].fit(diagnostics=diagnostics)
    kinds = {curve.split(" of ")[0].split(" in ")[0] for curve in diagnostics.curves}
    assert kinds == {"top 3 share", "rank changes", "NDCG@10"}
    stages = list(model.staged_predict(TRAIN))
    expected = Expected(TRAIN, model.seed_, np.zeros(TRAIN.n_docs), stages, top=3)
    np.testing.assert_allclose(columns(diagnostics, "rank changes"), expected.rank_changes())


def test_a_transition_is_named_by_its_objectives():
    transition = rk.LambdaMART(
        "Transition(NDCG, SigmoidCost(NDCG@3), 0.5)", **SMALL, step="gradient"
    )
    diagnostics = rk.Diagnostics()
    transition.fit(TRAIN, diagnostics=diagnostics)
    assert next(iter(diagnostics.curves)) == "agreement of SigmoidCost(NDCG@3)"
    agreed = diagnostics.curves["agreement of SigmoidCost(NDCG@3)"]
    assert all(0.5 < share < 1.0 for share in agreed)
