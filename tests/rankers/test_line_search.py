"""Boosting with the exact best weight of each tree, and backfitting of the weights."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankinite as rk
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.core.progress import ProgressBar
from rankinite.rankers.boosting import IDLE_ROUNDS, TreeLearner
from rankinite.rankers.line_search import MOST_DOCS, Backfitting, LineSearch, measure_along_line
from rankinite.trees.forest import Forest
from tests.rankers.cases import TRAIN, VALID

PARAMS = {"n_trees": 8, "n_leaves": 4, "min_docs_in_leaf": 2, "queries_per_tree": 1.0}
PARAMS |= {"step": "line-search", "learning_rate": 1.0, "measure": "NDCG@5", "preset": "paper"}


def ndcg(scores: np.ndarray, data: rk.RankingData) -> float:
    return rk.evaluate(scores, data, "NDCG@5").mean["NDCG@5"]


@pytest.mark.parametrize("on", ["train", "valid"])
def test_no_other_weight_of_a_tree_is_better(on):
    model = rk.LambdaMART(**PARAMS, line_search_on=on).fit(TRAIN, valid=VALID)
    data = {"train": TRAIN, "valid": VALID}[on]
    assert len(model.alphas_) == model.n_rounds_
    before = np.zeros(data.n_docs)
    for number, alpha in enumerate(model.alphas_[: model.n_trees_]):
        tree_scores = Forest((model.forest_.trees[number],), np.zeros(1), 4).scores(data.X)[0]
        best = ndcg(before + tree_scores, data)
        for factor in (0.11 / alpha, 0.3, 0.8, 0.97, 1.02, 1.3, 3.0, 90 / alpha):
            if 0.1 <= factor * alpha <= 100:
                assert ndcg(before + factor * tree_scores, data) <= best + 1e-12
        before += tree_scores


def test_leaves_are_mean_lambdas_times_the_weight():
    searched = rk.LambdaMART(**PARAMS | {"n_trees": 1}).fit(TRAIN)
    plain = rk.LambdaMART(**PARAMS | {"n_trees": 1, "step": "gradient"}).fit(TRAIN)
    (alpha,) = searched.alphas_
    assert searched.forest_.trees[0].value == pytest.approx(alpha * plain.forest_.trees[0].value)
    assert plain.alphas_ == []


def test_shrinkage_comes_on_top_of_the_weight():
    whole = rk.LambdaMART(**PARAMS | {"n_trees": 1}).fit(TRAIN)
    tenth = rk.LambdaMART(**PARAMS | {"n_trees": 1, "learning_rate": 0.1}).fit(TRAIN)
    assert tenth.alphas_ == whole.alphas_
    assert tenth.forest_.trees[0].value == pytest.approx(0.1 * whole.forest_.trees[0].value)


def test_weights_stay_within_their_bounds():
    model = rk.LambdaMART(**PARAMS, alpha_bounds=(0.5, 2)).fit(TRAIN)
    assert min(model.alphas_) >= 0.5
    assert max(model.alphas_) <= 2


def test_training_never_falls_without_shrinkage_and_with_a_weight_of_nearly_zero():
    model = rk.LambdaMART(**PARAMS, alpha_bounds=(1e-9, 100)).fit(TRAIN)
    values = [ndcg(scores, TRAIN) for scores in model.staged_predict(TRAIN)]
    # A weight of nearly zero leaves the order as it is, but for documents that tied before.
    untied = values[2:]
    assert all(b >= a - 1e-12 for a, b in pairwise(untied))


def test_a_checkpoint_keeps_weights(tmp_path):
    whole = rk.LambdaMART(**PARAMS).fit(TRAIN)
    path = tmp_path / "half.ckpt"
    rk.LambdaMART(**PARAMS | {"n_trees": 4}).fit(TRAIN, checkpoint=path)
    resumed = rk.LambdaMART(**PARAMS).fit(TRAIN, checkpoint=path)
    assert resumed.alphas_ == whole.alphas_
    assert (resumed.predict(VALID) == whole.predict(VALID)).all()


def test_a_model_file_keeps_weights(tmp_path):
    model = rk.LambdaMART(**PARAMS).fit(TRAIN, valid=VALID)
    model.save(tmp_path / "model.rk")
    assert rk.load_model(tmp_path / "model.rk").alphas_ == model.alphas_


def test_a_file_without_its_weights_is_refused(tmp_path):
    model = rk.LambdaMART(**PARAMS).fit(TRAIN)
    model.alphas_ = model.alphas_[:-1]
    model.save(tmp_path / "model.rk")
    with pytest.raises(ModelFileError, match="'alphas' in the file"):
        rk.load_model(tmp_path / "model.rk")


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"alpha_bounds": (5, 1)}, "the smaller first; got \\(5, 1\\)"),
        ({"alpha_bounds": (-1, 1)}, "of at least 0"),
        ({"alpha_bounds": 3}, "two numbers of at least 0"),
        ({"alpha_bounds": (0.1, float("nan"))}, "two numbers of at least 0"),
        ({"line_search_on": "test"}, "'train', 'valid'"),
        ({"line_search_on": "valid"}, "no validation set"),
    ],
)
def test_wrong_parameters_are_refused(bad, words):
    with pytest.raises(UsageError, match=words):
        rk.LambdaMART(**PARAMS | bad).fit(TRAIN)


def test_only_lambdamart_searches():
    with pytest.raises(UsageError, match="step must be one of 'newton', 'gradient'"):
        rk.MART(step="line-search").fit(TRAIN)


@pytest.mark.parametrize("step", ["newton", "line-search"])
def test_backfitting_never_loses_on_its_data(step):
    model = rk.LambdaMART(**PARAMS | {"step": step, "learning_rate": 0.3}).fit(TRAIN)
    values = [ndcg(model.predict(TRAIN), TRAIN)]
    for _ in range(4):
        model.backfit(TRAIN)
        values.append(ndcg(model.predict(TRAIN), TRAIN))
    assert values == sorted(values)
    assert values[-1] > values[0]


def test_backfitting_ends_when_nothing_is_gained():
    model = rk.LambdaMART(**PARAMS).fit(TRAIN).backfit(TRAIN, sweeps=50)
    again = [tree.value.copy() for tree in model.forest_.trees]
    model.backfit(TRAIN)
    assert all((a == tree.value).all() for a, tree in zip(again, model.forest_.trees, strict=True))


def test_backfitting_takes_arrays_and_a_base():
    base = rk.MART(n_trees=2, n_leaves=3, min_docs_in_leaf=2).fit(VALID)
    model = rk.LambdaMART(**PARAMS, base=base).fit(TRAIN)
    on_scores = rk.LambdaMART(**PARAMS, base=base.predict(TRAIN)).fit(TRAIN)
    model.backfit(TRAIN.X, TRAIN.y, qid=TRAIN.qid)
    on_scores.backfit(TRAIN, base_scores=base.predict(TRAIN))
    expected = on_scores.predict(VALID, base_scores=base.predict(VALID))
    assert model.predict(VALID) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"sweeps": 0}, "sweeps"),
        ({"bounds": (2, 1)}, "smaller first"),
        ({"measure": "X"}, "X"),
        ({"measure": "NDCG,ERR"}, "2 measures; give one"),
    ],
)
def test_backfitting_refuses_what_makes_no_sense(bad, words):
    model = rk.LambdaMART(**PARAMS).fit(TRAIN)
    with pytest.raises(UsageError, match=words):
        model.backfit(TRAIN, **bad)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_sweeps_never_lose_whatever_the_trees(seed, n_trees):
    """Trees of random values, on random data: the measure of the new trees is no lower."""
    rng = np.random.default_rng(seed)
    trees = rk.LambdaMART(**PARAMS | {"n_trees": n_trees, "random_state": seed}).fit(TRAIN).forest_
    drawn = tuple(
        replace(tree, value=np.round(rng.normal(size=tree.n_leaves), 1)) for tree in trees.trees
    )

    forest = Forest(drawn, np.zeros(1), 4)
    measure = measure_along_line(rk.parse_measure("NDCG@5"), TRAIN)
    fitting = Backfitting(measure, TRAIN.X, None, np.zeros((1, TRAIN.n_docs)), (0.0, 5.0))
    before = ndcg(forest.scores(TRAIN.X)[0], TRAIN)
    for _ in range(2):
        forest, old, new = fitting.sweep(forest, ProgressBar())
        assert old == before
        assert new == ndcg(forest.scores(TRAIN.X)[0], TRAIN)
        assert new >= old
        before = new


def test_an_interrupt_within_a_round_leaves_a_checkpoint_to_resume_from(tmp_path, monkeypatch):
    path = tmp_path / "half.ckpt"
    added = TreeLearner._add
    calls = []

    def interrupted(self, tree, output, *, grown):
        calls.append(tree)
        if len(calls) == 4:
            raise KeyboardInterrupt
        added(self, tree, output, grown=grown)

    monkeypatch.setattr(TreeLearner, "_add", interrupted)
    with pytest.raises(KeyboardInterrupt):
        rk.LambdaMART(**PARAMS).fit(TRAIN, checkpoint=path)
    monkeypatch.undo()
    resumed = rk.LambdaMART(**PARAMS).fit(TRAIN, checkpoint=path)
    whole = rk.LambdaMART(**PARAMS).fit(TRAIN)
    assert resumed.alphas_ == whole.alphas_
    assert (resumed.predict(VALID) == whole.predict(VALID)).all()


def test_a_query_without_weight_does_not_count_in_the_search():
    weights = np.ones(TRAIN.n_queries)
    weights[3:] = 0.0
    rng = np.random.default_rng(0)
    scores, direction = rng.normal(size=(2, TRAIN.n_docs))
    measure = rk.parse_measure("NDCG@5")
    weighted = measure_along_line(measure, TRAIN, weights).best_step(scores, direction, 0.1, 100)
    alone = TRAIN[:3]
    expected = measure_along_line(measure, alone).best_step(
        scores[: alone.n_docs], direction[: alone.n_docs], 0.1, 100
    )
    assert (weighted.alpha, weighted.value) == (expected.alpha, pytest.approx(expected.value))


def test_trees_of_weight_zero_are_the_last(monkeypatch):
    """Every later tree would be the same: training ends."""
    monkeypatch.setattr(LineSearch, "alpha", lambda *_scores: 0.0)
    model = rk.LambdaMART(**PARAMS | {"n_trees": 60}).fit(TRAIN)
    assert model.n_rounds_ == IDLE_ROUNDS


@pytest.mark.parametrize("base_scores", [np.zeros(3), np.zeros(500), ["a"] * TRAIN.n_docs])
def test_backfitting_refuses_scores_of_other_documents(base_scores):
    model = rk.LambdaMART(**PARAMS, base=np.zeros(TRAIN.n_docs)).fit(TRAIN)
    with pytest.raises((DataError, UsageError), match=r"LambdaMART\.backfit: base_scores"):
        model.backfit(TRAIN, base_scores=base_scores)


def test_backfitting_refuses_data_that_say_nothing():
    model = rk.LambdaMART(**PARAMS).fit(TRAIN)
    with pytest.raises(DataError, match=r"LambdaMART\.backfit: no query of the data counts"):
        model.backfit(TRAIN.X, np.zeros(TRAIN.n_docs), qid=TRAIN.qid)


def test_queries_with_too_many_documents_are_refused():
    n = MOST_DOCS + 1
    data = rk.RankingData(np.zeros((n, 1)), np.arange(n) % 3, np.full(n, "q\x1b"))
    with pytest.raises(
        rk.DataError, match=r"has 32,769 documents, .* keep the first ones of another"
    ):
        rk.best_mix(np.arange(n), -np.arange(n), data)
