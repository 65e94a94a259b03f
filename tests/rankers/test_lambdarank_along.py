"""A measure along directions is that of a net whose weights were moved by hand."""

from dataclasses import replace

import numpy as np
import pytest

import rankinite as rk
from tests.rankers.cases import TEST, TRAIN, background, bytes_of

STEPS = np.array([0.0, 0.1, 0.7, 3.0])


def by_hand(model, data, measure, direction, step):
    """Move the weights, predict and evaluate."""
    moved = model.net_.weights + np.append(step * direction, 0.0).astype(np.float32)
    scores = model._start_scores(data, None, data.n_docs, None)[0]
    scores = replace(model.net_, weights=moved).add_to(scores, data.matrix, data.rows)
    return rk.evaluate(scores, data, measure).mean[measure]


@pytest.mark.parametrize("measure", ["NDCG", "NDCG@3", "MAP(relevant=2)", "MRR", "ERR"])
@pytest.mark.parametrize("hidden", [0, 3, (5, 2)], ids=str)
def test_values_are_those_of_moved_weights(hidden, measure):
    model = rk.LambdaRank("NDCG", hidden=hidden, n_epochs=3).fit(TRAIN)
    along = model.along(TEST, measure)
    directions = np.random.default_rng(3).standard_normal((4, along.n_weights))
    rows = along(directions, STEPS)
    for direction, values in zip(directions, rows, strict=True):
        for step, value in zip(STEPS, values, strict=True):
            assert value == pytest.approx(by_hand(model, TEST, measure, direction, step), abs=1e-12)


def test_the_bias_of_the_score_is_not_moved():
    model = rk.LambdaRank("NDCG", preset="paper", hidden=0, n_epochs=2).fit(TRAIN)
    assert model.along(TRAIN).n_weights == TRAIN.n_features == len(model.net_.weights) - 1


def test_a_base_counts():
    model = rk.LambdaRank("NDCG", hidden=2, n_epochs=2, base=background()).fit(TRAIN)
    start = rk.evaluate(model.predict(TEST), TEST, "NDCG").mean["NDCG"]
    along = model.along(TEST, "NDCG")
    assert along(np.zeros((1, along.n_weights)), np.zeros(1))[0, 0] == pytest.approx(start)


def test_rows_of_a_part_count():
    part = TRAIN[3:9]
    model = rk.LambdaRank("NDCG", hidden=2, n_epochs=2).fit(TRAIN)
    along = model.along(part, "NDCG")
    direction = np.random.default_rng(0).standard_normal(along.n_weights)
    value = along(direction[np.newaxis], np.array([0.5]))[0, 0]
    assert value == pytest.approx(by_hand(model, part, "NDCG", direction, 0.5), abs=1e-12)


def test_random_weights_are_no_optimum_and_learned_ones_nearly():
    """Figures 6 and 1: moved at random, random weights often get better, learned ones hardly."""
    random = np.random.default_rng(0)
    X, slope = random.standard_normal((6000, 20)), random.standard_normal(20)
    noisy = X @ slope / np.linalg.norm(slope) + 0.7 * random.standard_normal(6000)
    grades = np.searchsorted([0.0, 0.8, 1.5, 2.2], noisy)
    data = rk.RankingData(X=X, y=grades, qid=np.repeat(np.arange(300), 20), top_grade=4)
    rising = []
    for settings in ({"n_epochs": 1, "learning_rate": 1e-9}, {"n_epochs": 60, "weight_decay": 0.0}):
        model = rk.LambdaRank("NDCG", preset="paper", hidden=0, **settings).fit(data)
        along = model.along(data, "NDCG")
        rising.append(rk.stats.local_optimality(along, along.n_weights, epsilon=0.1).n_rising)
    # Of 44 directions; from weights that know nothing, about half go up.
    assert rising[0] > 11
    assert rising[1] < 8


@pytest.mark.parametrize("wrong", [np.zeros((3, 4)), None], ids=["array", "nothing"])
def test_only_data_sets_can_be_measured(wrong):
    model = rk.LambdaRank("NDCG", hidden=0, n_epochs=1).fit(TRAIN)
    with pytest.raises(rk.RankiniteError, match=r"LambdaRank\.along"):
        model.along(wrong)


def test_several_measures_are_one_too_many():
    model = rk.LambdaRank("NDCG", hidden=0, n_epochs=1).fit(TRAIN)
    with pytest.raises(rk.RankiniteError, match="one measure"):
        model.along(TRAIN, "NDCG,ERR")


def test_training_begins_with_other_weights():
    first = rk.LambdaRank("MRR", hidden=3, n_epochs=4).fit(TRAIN)
    still = rk.LambdaRank("NDCG", hidden=3, n_epochs=1, learning_rate=1e-12)
    still.fit(TEST, begin_with=first)
    np.testing.assert_allclose(still.predict(TEST), first.predict(TEST), rtol=1e-5, atol=1e-6)


def test_begin_with_is_part_of_a_checkpoint(tmp_path):
    first, other = (
        rk.LambdaRank("MRR", hidden=3, n_epochs=2, random_state=k).fit(TRAIN) for k in (1, 2)
    )
    new = rk.LambdaRank("NDCG", hidden=3, n_epochs=3)
    whole = bytes_of(new.fit(TRAIN, begin_with=first))
    kept = tmp_path / "fit.ckpt"
    new.fit(TRAIN, begin_with=first, checkpoint=kept, callbacks=[lambda done: done.number == 2])
    with pytest.raises(rk.RankiniteError, match="other data"):
        new.fit(TRAIN, begin_with=other, checkpoint=kept)
    assert bytes_of(new.fit(TRAIN, begin_with=first, checkpoint=kept)) == whole


@pytest.mark.parametrize(
    ("begin_with", "message"),
    [
        (rk.LambdaMART(), "begin_with is a LambdaMART; expected a fitted LambdaRank"),
        (rk.LambdaRank(hidden=3), "is not fitted yet"),
        (rk.LambdaRank(hidden=4, n_epochs=1), "give both the same"),
        (rk.LambdaRank(hidden=3, n_epochs=1, activation="tanh"), "give both the same"),
        (rk.LambdaRank(hidden=3, n_epochs=1, rank_inputs=False), "give both the same"),
    ],
    ids=["trees", "unfitted", "layers", "activation", "inputs"],
)
def test_what_cannot_be_begun_with(begin_with, message):
    if message == "give both the same":
        begin_with.fit(TRAIN)
    with pytest.raises(rk.RankiniteError, match=message):
        rk.LambdaRank(hidden=3, n_epochs=1).fit(TRAIN, begin_with=begin_with)
