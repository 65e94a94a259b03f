"""Forests: scores, parts, importances, and the arrays of a model file."""

from __future__ import annotations

import math
from dataclasses import fields, replace

import numpy as np
import pytest

from rankinite.core.errors import ModelFileError
from rankinite.trees import forest as forests
from rankinite.trees import scoring
from rankinite.trees.forest import Forest, Tree
from rankinite.trees.grower import Grower
from tests.naive import trees as naive_trees
from tests.trees.cases import bin_all, boost, bytes_of, growth, leaf, mixed_features, random_tree

N_FEATURES = 12


@pytest.fixture(autouse=True, params=["numpy", "compiled"])
def tier(request, monkeypatch) -> None:
    """Score by numpy, and by kernels."""
    is_compiled = request.param == "compiled"
    monkeypatch.setattr(scoring, "_is_worth_compiled_code", lambda _seconds: is_compiled)


@pytest.fixture(scope="module")
def documents() -> np.ndarray:
    return mixed_features(np.random.default_rng(0), 1500, N_FEATURES)


@pytest.fixture(scope="module")
def grown(documents) -> tuple[Forest, np.ndarray]:
    """Return a forest and the scores that training ended with."""
    rng = np.random.default_rng(1)
    trees, scores = boost(
        Grower(bin_all(documents), None, growth(31)), rng.normal(size=len(documents)), 12
    )
    return Forest(trees, np.zeros(1), N_FEATURES), scores


def stump(feature: int, threshold: float, low: float, high: float, gain: float = 1.0) -> Tree:
    return Tree(
        feature=np.array([feature], np.int32),
        threshold=np.array([threshold], np.float32),
        missing_left=np.array([True]),
        first=np.array([0], np.uint16),
        right=np.array([1], np.uint16),
        gain=np.array([gain]),
        docs=np.array([4]),
        value=np.array([low, high]),
        leaf_docs=np.array([1, 3]),
    )


def test_scores_are_those_of_training(documents, grown):
    forest, scores = grown
    assert forest.scores(documents)[0].tobytes() == scores.tobytes()


@pytest.mark.parametrize(
    "how",
    [
        growth(2),
        growth(31, criterion="newton"),
        growth(31, step="gradient", max_depth=4),
        growth(256),
        growth(257),
        growth(300),
    ],
    ids=["2", "newton", "gradient", "256", "257", "300"],
)
@pytest.mark.parametrize("sample", [1.0, 0.5])
def test_scores_are_those_of_training_however_trees_grow(documents, how, sample):
    rng = np.random.default_rng(2)
    grower = Grower(bin_all(documents), None, how)
    hessians = rng.integers(1, 5, size=len(documents)).astype(np.float64)
    target = rng.normal(size=len(documents))
    trees, scores = boost(grower, target, 3, hessians=hessians, sample=sample, n_features=9)
    assert max(tree.n_leaves for tree in trees) == how.n_leaves or how.max_depth
    assert Forest(trees, np.zeros(1), N_FEATURES).scores(documents)[0].tobytes() == scores.tobytes()


@pytest.mark.parametrize("n_leaves", [[1, 2, 31], [256], [300, 5]])
def test_leaves_are_those_of_walking_through_every_tree(n_leaves, monkeypatch):
    rng = np.random.default_rng(7)
    trees = tuple(leaf(1.0) if n == 1 else random_tree(rng, n, 3) for n in n_leaves)
    forest = Forest(trees, np.zeros(1), 3)
    X = rng.normal(size=(60, 3)).astype(np.float32)
    X[rng.random(X.shape) < 0.2] = np.nan
    walked = [[naive_trees.leaf_of(tree, document) for tree in trees] for document in X]
    assert forest.leaves(X).tolist() == walked
    rows = rng.integers(60, size=100)
    monkeypatch.setattr(forests, "VALUES_PER_PART", 7)  # many parts
    assert forest.leaves(X, rows).tolist() == [walked[row] for row in rows]
    assert forest.leaves(X).dtype == np.int32
    assert forest.first(0).leaves(X).shape == (60, 0)


def test_scores_are_those_of_walking_through_every_tree(documents, grown):
    forest, _ = grown
    for document, score in zip(documents[:40], forest.scores(documents[:40])[0], strict=True):
        walked = 0.0
        for tree in forest.trees:
            walked += tree.value[naive_trees.leaf_of(tree, document)]
        assert score == walked


@pytest.mark.parametrize(
    "n_docs", [0, 1, 2, 31, 32, 33, 64, 127, 128, 129, 255, 256, 257, 700, 1024, 1025, 1300]
)
def test_a_batch_does_not_matter(documents, grown, n_docs):
    forest, scores = grown
    chosen = np.random.default_rng(n_docs).permutation(len(documents))[:n_docs]
    assert forest.scores(documents[chosen])[0].tobytes() == scores[chosen].tobytes()
    assert forest.scores(documents, chosen)[0].tobytes() == scores[chosen].tobytes()


def test_rows_may_repeat(documents, grown):
    forest, scores = grown
    rows = np.array([5, 5, 0, 1499, 5])
    assert forest.scores(documents, rows)[0].tobytes() == scores[rows].tobytes()


def test_scores_are_added_to_those_of_a_base(documents, grown):
    forest, _ = grown
    base = np.random.default_rng(3).normal(size=(1, len(documents)))
    expected = base.copy()[0]
    for tree in forest.trees:
        expected += Forest((tree,), np.zeros(1), N_FEATURES).scores(documents)[0]
    assert forest.add_to(base, documents) is base
    assert base[0].tobytes() == expected.tobytes()


@pytest.mark.kernel
def test_trees_take_turns_with_the_outputs():
    """Trees 0 and 2 add to the first output, 1 and 3 to the second."""
    trees = tuple(stump(0, 0.5, low, 10 * low) for low in (1.0, 2.0, 3.0, 4.0))
    forest = Forest(trees, np.array([100.0, 200.0]), 1)
    scores = forest.scores(np.array([[0.5], [0.6], [math.nan]], np.float32))
    assert scores.tolist() == [[104.0, 140.0, 104.0], [206.0, 260.0, 206.0]]
    assert forest.first(1).scores(np.zeros((1, 1), np.float32)).tolist() == [[101.0], [202.0]]


def test_the_first_rounds(documents, grown):
    forest, _ = grown
    total = np.zeros(len(documents))
    for n in range(len(forest)):
        assert len(forest.first(n)) == n
        assert forest.first(n).scores(documents)[0].tobytes() == total.tobytes()
        total += Forest(forest.trees[n : n + 1], np.zeros(1), N_FEATURES).scores(documents)[0]
    assert forest.first(12) is forest
    assert forest.first(99) is forest


@pytest.mark.kernel
def test_a_forest_without_splits():
    X = np.array([[1.0], [math.nan]], np.float32)
    assert Forest((), np.array([0.25]), 1).scores(X).tolist() == [[0.25, 0.25]]
    assert Forest((leaf(2.0), leaf(3.0)), np.array([0.25]), 1).scores(X).tolist() == [[5.25, 5.25]]
    mixed = Forest((leaf(2.0), stump(0, 1.0, 1.0, 4.0), leaf(8.0)), np.zeros(1), 1)
    assert mixed.scores(np.array([[1.0], [2.0]], np.float32)).tolist() == [[11.0, 14.0]]


@pytest.mark.kernel
def test_a_threshold_belongs_to_the_left():
    above = float(np.nextafter(np.float32(0.1), np.float32(1)))
    forest = Forest((stump(0, 0.1, 1.0, 2.0),), np.zeros(1), 1)
    scores = forest.scores(np.array([[0.1], [above], [-3e38], [3e38]], np.float32))
    assert scores.tolist() == [[1.0, 2.0, 1.0, 2.0]]


@pytest.mark.kernel
def test_254_thresholds_of_one_feature_and_missing_against_the_rest():
    """As many as 255 bins can have; missing values go to one side in some, to the other in some."""
    trees = [stump(0, float(cut), 0.0, 1.0) for cut in range(254)]
    trees[1::2] = [replace(tree, missing_left=np.array([False])) for tree in trees[1::2]]
    apart = replace(stump(0, math.inf, 0.0, 0.5), missing_left=np.array([False]))
    forest = Forest((*trees, apart), np.zeros(1), 1)
    forest = Forest.from_arrays(forest.to_arrays(), 1)
    X = np.array([[-1], [0], [0.5], [100], [253], [254], [math.nan]], np.float32)
    # A value passes the thresholds below it; a missing one the 127 that send it right, and 0.5.
    assert forest.scores(X).tolist() == [[0.0, 0.0, 1.0, 100.0, 253.0, 254.0, 127.5]]


def test_importances_are_sums_over_splits():
    trees = (
        stump(2, 1.0, 0, 1, 8.0),
        stump(0, 1.0, 0, 1, 4.0),
        leaf(1.0),
        stump(2, 3.0, 0, 1, 0.5),
    )
    forest = Forest(trees, np.zeros(1), 4)
    assert forest.importances("gain").tolist() == [4.0, 0.0, 8.5, 0.0]
    assert forest.importances("count").tolist() == [1.0, 0.0, 2.0, 0.0]
    assert Forest((), np.zeros(1), 2).importances("gain").tolist() == [0.0, 0.0]


def test_importances_of_a_grown_forest(grown):
    forest, _ = grown
    gain, count = [0.0] * N_FEATURES, [0] * N_FEATURES
    for tree in forest.trees:
        for feature, split_gain in zip(tree.feature.tolist(), tree.gain.tolist(), strict=True):
            gain[feature] += split_gain
            count[feature] += 1
    np.testing.assert_allclose(forest.importances("gain"), gain, rtol=1e-12)
    assert forest.importances("count").tolist() == count
    assert sum(count) == 12 * 30


@pytest.mark.parametrize("n_outputs", [1, 2])
def test_arrays_and_back(grown, n_outputs):
    forest = replace(grown[0], start=np.arange(n_outputs) + 0.5)
    again = Forest.from_arrays(forest.to_arrays(), N_FEATURES)
    assert bytes_of(again.trees) == bytes_of(forest.trees)
    assert again.start.tobytes() == forest.start.tobytes()
    assert again.n_features == N_FEATURES
    for tree in again.trees:
        assert [getattr(tree, field.name).dtype for field in fields(Tree)] == [
            getattr(forest.trees[0], field.name).dtype for field in fields(Tree)
        ]


@pytest.mark.parametrize("trees", [(), (leaf(1.0),), (leaf(1.0), stump(0, 1.0, 2.0, 3.0))])
def test_arrays_of_small_forests_and_back(trees):
    forest = Forest(trees, np.array([0.5]), 1)
    again = Forest.from_arrays(forest.to_arrays(), 1)
    assert bytes_of(again.trees) == bytes_of(trees)
    assert len(again) == len(trees)


def put(name: str, index: int, value: float):
    """Return a function that changes one number of one array."""

    def change(arrays):
        array = arrays[name].copy()
        array[index] = value
        return arrays | {name: array}

    return change


SPLIT_ARRAYS = ("feature", "threshold", "missing_left", "first", "right", "gain", "docs")
LEAF_ARRAYS = ("value", "leaf_docs")
EVERY_ARRAY = (*SPLIT_ARRAYS, *LEAF_ARRAYS, "n_leaves", "start")
DAMAGES = {
    "a feature below 0": put("feature", 3, -1),
    "a feature too many": put("feature", 3, N_FEATURES),
    "a feature far out": put("feature", 0, 2**31 - 1),
    "no threshold": put("threshold", 5, math.nan),
    "a threshold below all values": put("threshold", 5, -math.inf),
    "no value": put("value", 5, math.nan),
    "an infinite value": put("value", 0, math.inf),
    "no start": put("start", 0, math.nan),
    "no gain": put("gain", 2, math.nan),
    "first leaf of the root": put("first", 0, 1),
    "right leaf of the root is the first": put("right", 0, 0),
    "right leaf of the root is behind the last": put("right", 0, 31),
    "right leaf far out": put("right", 7, 65535),
    "first leaf far out": put("first", 7, 65535),
    "a tree without leaves": put("n_leaves", 0, 0),
    "a tree of less than no leaves": put("n_leaves", 0, -5),
    "a tree of more leaves": put("n_leaves", 0, 32),
    "a tree of fewer leaves": put("n_leaves", 0, 30),
    "a tree of very many leaves": put("n_leaves", 0, 2**63 - 1),
    "leaves moved to another tree": lambda arrays: put("n_leaves", 0, 30)(
        put("n_leaves", 1, 32)(arrays)
    ),
    "leaf counts that overflow to the right sum": lambda arrays: put("n_leaves", 0, 2**62 + 31)(
        put("n_leaves", 1, 2**62 + 31)(
            put("n_leaves", 2, 2**62 + 31)(put("n_leaves", 3, 2**62 + 31)(arrays))
        )
    ),
    "no outputs": lambda arrays: arrays | {"start": np.zeros(0)},
    "more outputs than trees can serve": lambda arrays: arrays | {"start": np.zeros(5)},
    "a tree too few": lambda arrays: arrays | {"n_leaves": arrays["n_leaves"][:-1]},
    "no splits": lambda arrays: arrays | {name: arrays[name][:0] for name in SPLIT_ARRAYS},
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_damaged_arrays_are_refused(grown, damage):
    arrays = damage(grown[0].to_arrays())
    with pytest.raises(ModelFileError, match="file"):
        Forest.from_arrays(arrays, N_FEATURES)


@pytest.mark.parametrize("name", EVERY_ARRAY)
def test_every_array_is_needed_whole_and_of_its_kind(grown, name):
    arrays = grown[0].to_arrays()
    array = arrays[name]
    other = np.float16 if array.dtype != np.bool_ else np.uint8
    damaged = {
        "lacking": {key: value for key, value in arrays.items() if key != name},
        "shorter": arrays | {name: array[:-1]},
        "longer": arrays | {name: np.append(array, array[-1:]).astype(array.dtype)},
        "a table": arrays | {name: array.reshape(1, -1)},
        "a number": arrays | {name: array[0]},
        "of another kind": arrays | {name: array.astype(other, casting="unsafe")},
        "of text": arrays | {name: array.astype(str)},
    }
    if name == "start":  # as many outputs as there are trees to share
        del damaged["longer"]
    for wrong in damaged.values():
        with pytest.raises(ModelFileError, match="file"):
            Forest.from_arrays(wrong, N_FEATURES)


def test_wrong_shapes_are_no_trees(grown):
    """Any other first leaf or right leaf of any split makes the tree another one, or none."""
    tree = grown[0].trees[0]
    rng = np.random.default_rng(4)
    for _ in range(300):
        name = ("first", "right")[rng.integers(2)]
        array = getattr(tree, name).copy()
        k = rng.integers(len(array))
        array[k] = rng.integers(33)
        if array[k] != getattr(tree, name)[k]:
            changed = Forest((replace(tree, **{name: array}),), np.zeros(1), N_FEATURES)
            with pytest.raises(ModelFileError, match="tree 0 in the file is no tree"):
                Forest.from_arrays(changed.to_arrays(), N_FEATURES)


@pytest.mark.parametrize("n_thresholds", [254, 255, 256, 508, 509, 700])
def test_a_feature_may_have_more_thresholds_than_bins(n_thresholds):
    """255 bins have 254 cut points; a feature with more is several columns."""
    trees = tuple(
        stump(0, cut, 1.0 if cut < np.inf else 0.25, 0.0) for cut in (*range(n_thresholds), np.inf)
    )
    forest = Forest.from_arrays(Forest(trees, np.zeros(1), 1).to_arrays(), 1)
    X = np.array([[-1.0], *([float(k)] for k in range(n_thresholds + 1)), [np.nan]], np.float32)
    expected = [n_thresholds, *range(n_thresholds, -1, -1), n_thresholds]
    assert forest.scores(X)[0].tolist() == [0.25 + count for count in expected]
