"""Constraints of tree rankers: whole models obey them, features are found, mistakes are told."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import rankinite as rk
from tests.naive.trees import Node, unfold

TRAIN = rk.polynomials(25, part="train", n_features=4)
VALID = rk.polynomials(15, part="valid", n_features=4)
SMALL = {"n_trees": 12, "n_leaves": 8, "min_docs_in_leaf": 3}
# The target rises and falls with every feature, so each of these is violated somewhere.
DIRECTIONS = [1, -1, 0, 1]
RANKERS = {
    "LambdaMART": rk.LambdaMART("NDCG@10", **SMALL),
    "leaf-wise": rk.LambdaMART("NDCG@10", symmetric=False, **SMALL),
    "gradient": rk.LambdaMART("NDCG@10", step="gradient", **SMALL),
    "line search": rk.LambdaMART("NDCG@10", step="line-search", symmetric=False, **SMALL),
    "limits": rk.LambdaMART("NDCG@10", max_delta_step=0.5, path_smooth=3.0, **SMALL),
    "paper": rk.LambdaMART("NDCG@10", preset="paper", **SMALL),
    "MART": rk.MART(**SMALL),
    "logistic": rk.MART("logistic", symmetric=False, **SMALL),
}


def with_missing(data):
    """Return the data with some missing values."""
    X = np.where(np.random.default_rng(0).random(data.matrix.shape) < 0.1, np.nan, data.matrix)
    return X.astype(np.float32)


def steps_of(model, feature, n_points):
    """Return scores of random inputs (rows) as a feature takes all values that trees tell apart."""
    cuts = [tree.threshold[tree.feature == feature] for tree in model.forest_.trees]
    grid = np.unique(np.concatenate(cuts))
    grid = np.append(grid[np.isfinite(grid)], np.float32(1e6))
    rng = np.random.default_rng(feature)
    points = with_missing(TRAIN)[rng.integers(0, TRAIN.n_docs, n_points)]
    inputs = np.repeat(points, len(grid), axis=0)
    inputs[:, feature] = np.tile(grid, n_points)
    return model.predict(inputs).reshape(n_points, len(grid))


@pytest.mark.parametrize("name", RANKERS)
def test_scores_are_monotone_in_constrained_features(name):
    model = clone(RANKERS[name]).set_params(monotone_constraints=DIRECTIONS)
    model.fit(with_missing(TRAIN), TRAIN.y, qid=TRAIN.qid, valid=VALID)
    moved = 0
    for feature, direction in enumerate(DIRECTIONS):
        differences = np.diff(steps_of(model, feature, 40), axis=1)
        if direction:
            # To the last bit: sums of values in order are in order, too.
            assert (direction * differences >= 0.0).all()
        moved += (differences != 0.0).any()
    assert moved >= 3


def test_without_constraints_scores_are_not_monotone():
    model = rk.LambdaMART("NDCG@10", **SMALL).fit(TRAIN)
    against = [
        (direction * np.diff(steps_of(model, feature, 40), axis=1) < 0.0).any()
        for feature, direction in enumerate(DIRECTIONS)
        if direction
    ]
    assert any(against)


def paths(node: Node, tree, path=frozenset()):
    if not node.children:
        yield path
        return
    for child in node.children:
        yield from paths(child, tree, path | {int(tree.feature[node.number])})


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("kind", [rk.LambdaMART, rk.MART, rk.McRank])
def test_features_share_a_path_only_within_a_group(kind, symmetric):
    groups = [["1", "2"], ["2", "3"]]
    model = kind(interaction_constraints=groups, symmetric=symmetric, **SMALL).fit(TRAIN)
    allowed = [{0, 1}, {1, 2}, {3}]
    together = {path for tree in model.forest_.trees for path in paths(unfold(tree), tree)}
    assert all(any(path <= group for group in allowed) for path in together)
    assert {frozenset({0, 1}), frozenset({1, 2}), frozenset({3})} & together


def same_trees(first, second):
    return first.forest_.to_arrays().keys() == second.forest_.to_arrays().keys() and all(
        array.tobytes() == second.forest_.to_arrays()[name].tobytes()
        for name, array in first.forest_.to_arrays().items()
    )


@pytest.mark.parametrize(
    "form",
    [
        {"1": 1, "2": -1, "4": 1},
        {0: 1, 1: -1, 3: 1},
        "1=1, 2=-1, 4=1",
        "1,-1,0,1",
        "(1,-1,0,1)",
        np.array(DIRECTIONS),
        [["1", 1], [1, -1], [3, 1]],
    ],
)
def test_every_form_of_directions_means_the_same(form, tmp_path):
    ranker = rk.MART(n_trees=2, n_leaves=4)
    ours = rk.MART(n_trees=2, n_leaves=4, monotone_constraints=DIRECTIONS).fit(TRAIN)
    other = ranker.set_params(monotone_constraints=form).fit(TRAIN)
    assert same_trees(ours, other)
    # What a file holds means the same, too.
    other.save(tmp_path / "model.rk")
    again = rk.load_model(tmp_path / "model.rk")
    assert same_trees(ours, type(again)(**again.get_params(deep=False)).fit(TRAIN))


def test_every_form_of_groups_means_the_same(tmp_path):
    fitted = [
        rk.MART(n_trees=2, n_leaves=4, interaction_constraints=form).fit(TRAIN)
        for form in ([["1", "2"], ["3"]], [[0, 1], [2]], ((0, "2"), ["3"]), "[1, 2],[3]")
    ]
    assert all(same_trees(fitted[0], other) for other in fitted[1:])
    fitted[1].save(tmp_path / "model.rk")
    assert rk.load_model(tmp_path / "model.rk").interaction_constraints == [[0, 1], [2]]


def refused(**parameters):
    with pytest.raises(rk.UsageError) as caught:
        rk.MART(n_trees=1, **parameters).fit(TRAIN)
    return str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [3, True, [2], ["1"], "price", "price=2", {"a": 0.5}, {"": 1}, {-1: 1}, {1.5: 1}, [[1]]],
)
def test_what_is_no_direction_is_refused(wrong):
    message = refused(monotone_constraints=wrong)
    assert message.startswith("MART: monotone_constraints must be 1, 0 or -1 for every feature")


@pytest.mark.parametrize("wrong", [3, "1,2", "[1],2", "[]", [["1"], "2"], [[]], {"1": 1}, [[1.5]]])
def test_what_are_no_groups_is_refused(wrong):
    assert refused(interaction_constraints=wrong).startswith(
        "MART: interaction_constraints must be groups of features, such as [['price', 'bm25'],"
    )


def test_features_that_are_not_there_are_named():
    assert refused(monotone_constraints={"prize": 1}) == (
        "MART: monotone_constraints: there is no feature 'prize'; the features are '1', '2', '3', "
        "'4'"
    )
    assert refused(interaction_constraints=[[0, 4]]) == (
        "MART: interaction_constraints: there is no feature 4; the data have 4, which are numbered "
        "from 0 to 3"
    )
    assert refused(monotone_constraints=[1, 0]) == (
        "MART: monotone_constraints has 2 directions, and the data have 4 features; give one for "
        "each, or directions by name"
    )


def test_what_cannot_be_monotone_is_refused():
    assert refused(monotone_constraints={}, n_leaves=2000) == (
        "MART with monotone_constraints: n_leaves must be a whole number from 2 to 1024; got 2000"
    )
    with pytest.raises(rk.UsageError, match=r"McRank: monotone_constraints are not possible"):
        rk.McRank(monotone_constraints=DIRECTIONS).fit(TRAIN)


def test_limits_bound_every_tree():
    for kind in (rk.LambdaMART, rk.MART, rk.McRank):
        model = kind(max_delta_step=0.01, learning_rate=0.5, **SMALL).fit(TRAIN)
        assert max(abs(tree.value).max() for tree in model.forest_.trees) == 0.005
        plain, smooth = (
            kind(path_smooth=path_smooth, average_rounds=False, **{**SMALL, "n_trees": 1})
            .fit(TRAIN)
            .forest_.trees[0]
            for path_smooth in (0.0, 1000.0)
        )
        assert np.ptp(smooth.value) < np.ptp(plain.value)
