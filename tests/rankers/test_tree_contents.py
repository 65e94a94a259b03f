"""Leaves of documents, tables of nodes and drawings of fitted rankers; and of those without."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest

import rankinite as rk
from rankinite.core.unfitted import UnfittedError

N_TREES = 4


@pytest.fixture(scope="module")
def data() -> rk.RankingData:
    made = rk.polynomials(20, part="train", n_features=4)
    X = made.X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return rk.RankingData(X, made.y, made.qid, feature_names=["bm25", "age", "a <b> & c", "d"])


@pytest.fixture(scope="module")
def model(data) -> rk.LambdaMART:
    options = {"n_leaves": 6, "symmetric": False, "docs_per_tree": 1}
    return rk.LambdaMART(n_trees=N_TREES, **options).fit(data)


def test_the_values_of_leaves_add_up_to_the_score(data, model):
    leaves = model.predict_leaf(data)
    assert leaves.shape == (data.n_docs, N_TREES)
    assert leaves.dtype == np.int32
    values = model.trees().set_index("node_index")["value"]
    scores = np.full(data.n_docs, model.forest_.start[0])
    for tree in range(N_TREES):
        scores += [values[f"{tree}-L{leaf}"] for leaf in leaves[:, tree]]
    assert scores.tolist() == model.predict(data).tolist()


def test_leaves_of_parts_of_the_documents_and_of_the_trees(data, model):
    leaves = model.predict_leaf(data.X)
    assert (model.predict_leaf(data[3:5]) == leaves[data.offsets[3] : data.offsets[5]]).all()
    assert (model.predict_leaf(data, n_trees=2) == leaves[:, :2]).all()
    with pytest.raises(rk.UsageError, match="n_trees must be a whole number from 0 to 4"):
        model.predict_leaf(data, n_trees=5)
    with pytest.raises(rk.DataError, match="X has 3 features"):
        model.predict_leaf(data.X[:, :3])


def test_counts_of_the_table_are_documents(data, model):
    """Without sampling every document took part, and is in the leaf that predict_leaf says."""
    frame = model.trees()
    assert (frame[frame.parent_index.isna()]["count"] == data.n_docs).all()
    leaves = model.predict_leaf(data)
    for tree in range(N_TREES):
        of_tree = frame[(frame.tree_index == tree) & frame.split_feature.isna()]
        counted = np.bincount(leaves[:, tree], minlength=len(of_tree))
        assert of_tree["count"].tolist() == counted.tolist()


def test_the_table_has_names_and_gains(model):
    frame = model.trees()
    assert frame.tree_index.unique().tolist() == list(range(N_TREES))
    gains = frame.groupby("split_feature").split_gain.sum()
    expected = model.importances()
    assert gains.to_dict() == pytest.approx({name: expected[name] for name in gains.index})
    some = model.trees([2, 0])
    assert some.tree_index.unique().tolist() == [2, 0]
    assert model.trees(1).equals(frame[frame.tree_index == 1].reset_index(drop=True))


def test_columns_are_those_of_lightgbm(data, model):
    table = lightgbm.train(
        {"objective": "regression", "verbose": -1, "num_threads": 1},
        lightgbm.Dataset(data.X, data.y),
        num_boost_round=1,
    ).trees_to_dataframe()
    ours = model.trees(0)
    # It has the sums of hessians, which files here do not hold, and kinds of missing values.
    left_out = {"weight", "missing_type"}
    assert [name for name in table.columns if name not in left_out] == list(ours.columns)
    assert table.node_index[0] == ours.node_index[0] == "0-S0"
    assert table.node_depth[0] == ours.node_depth[0] == 1
    assert set(ours.decision_type.dropna()) == set(table.decision_type.dropna()) == {"<="}
    assert set(ours.missing_direction.dropna()) <= {"left", "right"}


def test_a_drawing_names_the_tree(model):
    drawing = model.plot_tree(3)
    assert "Tree 3 of a LambdaMART: 6 leaves" in drawing.svg
    assert drawing.svg.count("</g>") == 11


@pytest.mark.parametrize("tree", [-1, N_TREES, 1.5, "0"])
def test_trees_that_there_are_not_are_refused(model, tree):
    with pytest.raises(rk.UsageError, match="tree must be a whole number from 0 to 3"):
        model.plot_tree(tree)
    with pytest.raises(rk.UsageError, match="tree must be a whole number from 0 to 3"):
        model.trees([tree])


def test_an_unfitted_ranker_has_no_trees():
    for ask in (rk.LambdaMART().trees, rk.LambdaMART().plot_tree):
        with pytest.raises(UnfittedError, match="is not fitted yet"):
            ask()


def test_several_trees_a_round(data):
    model = rk.McRank(n_trees=2, n_leaves=3).fit(data)
    n_trees = 2 * len(model.forest_.start)
    assert model.predict_leaf(data).shape == (data.n_docs, n_trees)
    assert model.trees().tree_index.nunique() == n_trees
    assert model.predict_leaf(data, n_trees=1).shape == (data.n_docs, n_trees // 2)


@pytest.mark.parametrize("name", ["predict_leaf", "trees", "plot_tree"])
def test_rankers_without_trees_say_what_to_do(data, model, name):
    ensemble = rk.Average({"small": model, "other": model}).fit(data)
    assert not hasattr(ensemble, name)
    words = r"has no trees of its own; .* 'small', 'other', as in inner_rankers\['small'\]"
    with pytest.raises(AttributeError, match=words):
        getattr(ensemble, name)
    assert ensemble.inner_rankers["small"].plot_tree(0).svg == model.plot_tree(0).svg
    with pytest.raises(AttributeError, match="LambdaRank: has no trees; those of LambdaMART"):
        getattr(rk.LambdaRank(), name)
    with pytest.raises(AttributeError, match="object has no attribute 'leafs'"):
        _ = ensemble.leafs
    # The error of a property is an AttributeError, too, and must not get lost.
    with pytest.raises(UnfittedError, match="is not fitted yet"):
        _ = rk.LambdaMART().feature_importances_
