"""Diagnostics: every curve against its naive twin, by hand, and what they must leave alone."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.container import Content, read_container, write_container
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import RankNet
from rankinite.objectives.tiers import Tiered
from rankinite.rankers.observed import Observed
from tests.naive import diagnostics as naive_diagnostics
from tests.naive import pairwise as naive_lambdas
from tests.naive import tiers as naive_graded
from tests.rankers.cases import CASES, SMALL, TRAIN, VALID, bytes_of, every_case

pytestmark = pytest.mark.usefixtures("one_thread")

TOP_GRADE = 4.0
GRADES = [0.0, 1.0, 2.0, 3.0, 4.0]
KEPT = Path("fit.ckpt")
CLICKED = TRAIN.with_labels(
    {"clicks": np.random.default_rng(5).choice([0, 0.25, 0.5, 1, np.nan], TRAIN.n_docs)}
)
GRADED = {**SMALL, "measure": Tiered("NDCG@3 > CNDCG@3[clicks]", weights=0.4)}


def ties_of(targets):
    """Return the order in which ties of every query are ranked, counted in the query."""
    shuffle = RankNet().prepare(targets).arrays.shuffle
    parts = np.split(shuffle, targets.offsets[1:-1])
    return [(part - first).tolist() for part, first in zip(parts, targets.offsets, strict=False)]


class Expected:
    """The curves of a fit by the naive twins, from the scores after every round."""

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
                for found, make in zip(both, (lambdas, other), strict=True):
                    found += make(scores[a:b].tolist(), q, rankings[q])[0]
            yield naive_diagnostics.agreement(*both)


def columns(diagnostics, beginning):
    found = [curve for name, curve in diagnostics.curves.items() if name.startswith(beginning)]
    return np.array(found).T


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
        np.testing.assert_allclose(curve, [found.mean[measure] for found in values])
    assert columns(diagnostics, "lambda share").shape == (6, 5)
    assert (np.abs(columns(diagnostics, "lambda share")).sum(axis=1) <= 1.0 + 1e-12).all()


def test_documents_without_a_label_are_told_apart():
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


def test_a_net_is_looked_at_with_its_last_weights():
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


def test_a_transition_is_told_by_its_objectives():
    transition = rk.LambdaMART(
        "Transition(NDCG, SigmoidCost(NDCG@3), 0.5)", **SMALL, step="gradient"
    )
    diagnostics = rk.Diagnostics()
    transition.fit(TRAIN, diagnostics=diagnostics)
    assert next(iter(diagnostics.curves)) == "agreement of SigmoidCost(NDCG@3)"
    agreed = diagnostics.curves["agreement of SigmoidCost(NDCG@3)"]
    assert all(0.5 < share < 1.0 for share in agreed)


@every_case
def test_models_are_the_same_bytes(case):
    plain = bytes_of(case.fit(valid=VALID))
    assert bytes_of(case.fit(valid=VALID, diagnostics=rk.Diagnostics())) == plain


def test_a_graded_model_is_the_same_bytes():
    plain = bytes_of(rk.LambdaMART(**GRADED).fit(CLICKED))
    assert bytes_of(rk.LambdaMART(**GRADED).fit(CLICKED, diagnostics=rk.Diagnostics())) == plain


def told(case, **options):
    """Return the rounds and curves of a fit."""
    diagnostics = options.pop("diagnostics", None) or rk.Diagnostics()
    case.fit(diagnostics=diagnostics, **options)
    return diagnostics.rounds, diagnostics.curves


def interrupt_after(k):
    def callback(done):
        if done.number == k:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("name", ["NDCG", "MRR", "ERR-scores", "logistic", "McRank", "net-sgd"])
def test_an_interrupted_fit_goes_on_to_the_same_curves(name):
    case = CASES[name]
    undisturbed = told(case)
    for k in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            told(case, checkpoint=KEPT, callbacks=[interrupt_after(k)])
        assert told(case, checkpoint=KEPT) == undisturbed
        assert told(case, checkpoint=KEPT) == undisturbed
        KEPT.unlink()


def test_an_interrupt_between_a_round_and_the_look_at_it(monkeypatch):
    case = CASES["NDCG"]
    undisturbed = told(case)
    look, calls = Observed._look, []

    def interrupted(self):
        calls.append(self.n_rounds)
        if len(calls) == 3:
            raise KeyboardInterrupt
        look(self)

    with monkeypatch.context() as patched:
        patched.setattr(Observed, "_look", interrupted)
        with pytest.raises(KeyboardInterrupt):
            told(case, checkpoint=KEPT)
    assert calls == [1, 2, 3, 3]
    assert told(case, checkpoint=KEPT) == undisturbed


@pytest.mark.parametrize("name", ["NDCG", "net"])
def test_switched_on_and_off_in_between(name, caplog):
    case = CASES[name]
    rounds, curves = told(case)
    with pytest.raises(KeyboardInterrupt):
        case.fit(checkpoint=KEPT, callbacks=[interrupt_after(2)])
    with caplog.at_level(logging.INFO, logger="rankinite"), pytest.raises(KeyboardInterrupt):
        told(case, checkpoint=KEPT, callbacks=[interrupt_after(4)])
    assert "curves lack 2 of 2" in caplog.text
    assert told(case, checkpoint=KEPT) == (rounds[2:], {k: v[2:] for k, v in curves.items()})
    assert bytes_of(case.fit(checkpoint=KEPT)) == bytes_of(case.fit())


def test_fewer_trees_have_shorter_curves():
    case = CASES["NDCG"]
    told(case, checkpoint=KEPT)
    fewer = {"n_trees": 2}
    assert told(case, checkpoint=KEPT, changes=fewer) == told(case, changes=fewer)


def test_other_diagnostics_begin_anew():
    case = CASES["NDCG"]
    with pytest.raises(KeyboardInterrupt):
        told(case, checkpoint=KEPT, callbacks=[interrupt_after(2)])
    rounds, curves = told(case, checkpoint=KEPT, diagnostics=rk.Diagnostics(top=4))
    assert rounds == [3, 4, 5, 6]
    assert "top 4 share of grade 0" in curves


def test_a_second_fit_forgets_the_first():
    diagnostics = rk.Diagnostics()
    told(CASES["NDCG"], diagnostics=diagnostics)
    again = told(CASES["McRank"], diagnostics=diagnostics)
    assert again == told(CASES["McRank"])


@pytest.mark.parametrize(
    "damage",
    [
        {"rounds": [2, 1]},
        {"rounds": ["1", "2"]},
        {"rows": [[0.0], [0.0]]},
        {"rows": None},
        {"names": 3},
    ],
    ids=str,
)
def test_a_damaged_checkpoint_is_refused(damage):
    with pytest.raises(KeyboardInterrupt):
        told(CASES["NDCG"], checkpoint=KEPT, callbacks=[interrupt_after(2)])
    content = read_container(KEPT)
    manifest = dict(content.manifest)
    manifest["diagnostics"] = {**manifest["diagnostics"], **damage}
    write_container(KEPT, Content(manifest, content.arrays))
    with pytest.raises(ModelFileError, match="holds diagnostics that are not understood"):
        told(CASES["NDCG"], checkpoint=KEPT)


def test_what_is_refused():
    with pytest.raises(UsageError, match="top must be a whole number of at least 1"):
        rk.Diagnostics(top=0)
    with pytest.raises(UsageError, match="highly_relevant must be"):
        rk.Diagnostics(highly_relevant=-1)
    with pytest.raises(UsageError, match="diagnostics is a bool; give a Diagnostics"):
        CASES["NDCG"].fit(diagnostics=True)
    with pytest.raises(
        UsageError, match="highly_relevant is 5, and the largest label of the training data is 4"
    ):
        CASES["NDCG"].fit(diagnostics=rk.Diagnostics(highly_relevant=5))
    many = TRAIN.with_labels({"rates": np.arange(TRAIN.n_docs) / TRAIN.n_docs})
    with pytest.raises(DataError, match="'rates' have 96 different values"):
        rk.LambdaMART("NDCG[rates]", **SMALL).fit(many, diagnostics=rk.Diagnostics())
