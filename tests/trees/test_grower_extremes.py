"""Trees on data and gradients at the edge: no crash, no warning, a sensible model."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rankinite.core.errors import UsageError
from rankinite.trees.forest import Forest
from rankinite.trees.grower import Grower
from rankinite.trees.scoring import find_levels
from tests.trees.cases import bin_all, boost, bytes_of, grow_tree, growth, mixed_features

NAN = math.nan
BOTH = pytest.mark.parametrize("criterion", ["mse", "newton"])


def grow(X, gradients, how=None, hessians=None):
    how = how or growth(8)
    X = np.asarray(X, np.float32)
    gradients = np.asarray(gradients, np.float64)
    hessians = np.ones(len(X)) if hessians is None else np.asarray(hessians, np.float64)
    split_hessians = hessians if how.criterion == "newton" else None
    return Grower(bin_all(X), None, how).grow(gradients, hessians, split_hessians=split_hessians)


def assert_sound(tree, n_docs: int) -> None:
    assert tree.is_sound(1000)
    assert find_levels(tree.first, tree.right, np.array([tree.n_leaves])).unsound == -1
    assert np.isfinite(tree.gain).all()
    assert (tree.gain >= 0.0).all()
    assert tree.leaf_docs.sum() == n_docs


@BOTH
def test_gradients_from_very_small_to_very_large(criterion):
    """The largest gradients decide the splits; values are exact sums all the same."""
    rng = np.random.default_rng(0)
    X = mixed_features(rng, 500, 9)
    gradients = 10.0 ** rng.uniform(-12, 6, size=500) * rng.choice([-1, 1], size=500)
    hessians = 10.0 ** rng.uniform(-6, 2, size=500)
    tree = grow(X, gradients, growth(31, criterion=criterion), hessians)
    assert_sound(tree, 500)
    assert tree.n_leaves == 31


def test_small_gradients_beside_a_large_one_still_have_their_values():
    """1e6 and -1e6 go apart; their leaves aside, the mean of 1e-12 and 3e-12 is 2e-12."""
    tree = grow([[0], [1], [1], [2]], [-1e6, 1e-12, 3e-12, 1e6], growth(3))
    assert tree.value.tolist() == [-1e6, pytest.approx(2e-12, rel=1e-12), 1e6]


@pytest.mark.parametrize("size", [1e-100, 1e-30, 1e-12, 1e6, 1e30, 1e100])
@BOTH
def test_the_unit_of_gradients_does_not_matter(size, criterion):
    """Four documents +-1 and +-3: the same splits in any unit, and values in that unit."""
    tree = grow(
        [[1], [2], [3], [4]],
        np.array([-3.0, -1.0, 1.0, 3.0]) * size,
        growth(4, criterion=criterion),
    )
    assert tree.threshold.tolist() == [2.5, 1.5, 3.5]
    np.testing.assert_allclose(tree.value, np.array([-3.0, -1.0, 1.0, 3.0]) * size, rtol=1e-12)
    assert_sound(tree, 4)


@pytest.mark.parametrize("size", [1e-100, 1e-12, 1e12, 1e100])
def test_the_unit_of_hessians_does_not_matter(size):
    X = [[1], [2], [3], [4]]
    hessians = np.array([1.0, 2.0, 2.0, 1.0])
    how = growth(2, criterion="newton")
    tree = grow(X, [-1, -2, 2, 1], how, hessians * size)
    assert tree.threshold.tolist() == [2.5]
    # -3 / 3 and 3 / 3, in units of the hessian.
    np.testing.assert_allclose(tree.value, np.array([-1.0, 1.0]) / size, rtol=1e-12)


@BOTH
@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-300, 1e-200, 1e-150])
def test_gradients_that_all_but_vanish(size, criterion):
    """Pairs that are hundreds apart push like this; their squares are no numbers any more."""
    X = [[1], [2], [3], [4]]
    gradients = np.array([-3.0, -1.0, 1.0, 3.0]) * size
    for hessians in (np.ones(4), np.ones(4) * size):
        tree = grow(X, gradients, growth(4, criterion=criterion), hessians)
        assert_sound(tree, 4)
        assert np.abs(tree.value).max() <= 3.0


@BOTH
def test_zero_gradients_are_a_leaf_of_nothing(criterion):
    X = np.arange(10)[:, None]
    tree = grow(X, np.zeros(10), growth(8, criterion=criterion))
    assert tree.value.tolist() == [0.0]
    assert tree.leaf_docs.tolist() == [10]
    tree = grow(X, np.zeros(10), growth(8, criterion=criterion), np.zeros(10))
    assert tree.value.tolist() == [0.0]


@BOTH
def test_equal_gradients_are_one_leaf(criterion):
    tree = grow(np.arange(10)[:, None], np.full(10, 3.0), growth(8, criterion=criterion))
    assert tree.value.tolist() == [3.0]


@BOTH
@pytest.mark.parametrize("step", ["newton", "gradient"])
def test_hessians_of_zero_do_not_divide(criterion, step):
    how = growth(4, criterion=criterion, step=step)
    tree = grow([[1], [2], [3], [4]], [1, -1, 2, -2], how, np.zeros(4))
    assert_sound(tree, 4)
    if step == "newton":
        assert not tree.value.any()


def test_a_hessian_too_small_to_divide_by():
    """A Newton step beyond the largest number is no step."""
    tree = grow([[1], [2]], [1e10, -1e10], growth(2), np.full(2, 5e-324))
    assert_sound(tree, 2)
    assert tree.value.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("bad", [NAN, math.inf, -math.inf])
@BOTH
def test_gradients_that_are_no_numbers_are_refused(bad, criterion):
    with pytest.raises(UsageError, match="not finite"):
        grow([[1], [2]], [1.0, bad], growth(2, criterion=criterion))


def test_hessians_that_are_no_numbers_are_refused():
    with pytest.raises(UsageError, match="not finite"):
        grow([[1], [2]], [1.0, 2.0], growth(2, criterion="newton"), [1.0, NAN])


@BOTH
@pytest.mark.parametrize("n_leaves", [1, 2, 31, 300])
def test_one_document(criterion, n_leaves):
    tree = grow([[1.0, NAN]], [6.0], growth(n_leaves, criterion=criterion), [2.0])
    assert tree.value.tolist() == [3.0]
    assert tree.leaf_docs.tolist() == [1]


@BOTH
def test_fewer_documents_than_leaves(criterion):
    tree = grow([[3], [1], [2]], [30, 10, 20], growth(31, criterion=criterion))
    assert tree.value.tolist() == [10.0, 20.0, 30.0]


def test_constant_columns_are_never_split():
    rng = np.random.default_rng(1)
    X = np.full((50, 9), 7.0)
    X[:, 3] = NAN
    tree = grow(X, rng.normal(size=50))
    assert tree.n_leaves == 1
    X[:, 5] = rng.normal(size=50)
    assert set(grow(X, rng.normal(size=50)).feature.tolist()) == {5}


def test_a_constant_with_missing_values_is_split():
    tree = grow([[7], [7], [NAN], [7]], [0, 0, 3, 0], growth(4))
    assert tree.threshold.tolist() == [math.inf]
    assert tree.value.tolist() == [0.0, 3.0]


def test_of_equal_columns_the_first_is_split():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(80, 1))
    for n_copies in (2, 9, 20):
        tree = grow(np.repeat(x, n_copies, axis=1), rng.normal(size=80), growth(16))
        assert tree.n_leaves == 16
        assert not tree.feature.any()


def test_a_copy_of_a_column_changes_nothing_else():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(100, 7)).astype(np.float32)
    gradients = rng.normal(size=100)
    assert bytes_of([grow(X, gradients)]) == bytes_of([grow(np.hstack([X, X, X]), gradients)])


def test_the_largest_values():
    X = [[-3e38], [3e38], [NAN], [0.0], [1e-45], [-0.0]]
    tree = grow(X, [1, 2, 4, 8, 16, 8], growth(6))
    scores = Forest((tree,), np.zeros(1), 1).scores(np.array(X, np.float32))
    assert scores.tolist() == [[1.0, 2.0, 4.0, 8.0, 16.0, 8.0]]


def test_more_leaves_than_a_byte_can_number():
    """Two columns tell all of 300 documents apart, in 300 leaves."""
    X = np.stack([np.arange(300) % 255, np.arange(300) // 255], axis=1).astype(np.float32)
    gradients = np.random.default_rng(4).permutation(300).astype(np.float64)
    grower = Grower(bin_all(X), None, growth(300))
    trees, scores = boost(grower, gradients, 1)
    assert trees[0].n_leaves == 300
    assert grower.leaves.dtype == np.uint16
    assert scores.tolist() == gradients.tolist()
    assert Forest(trees, np.zeros(1), 2).scores(X)[0].tolist() == gradients.tolist()


@pytest.mark.parametrize("n_leaves", [255, 256, 257])
def test_numbers_of_leaves_around_a_byte(n_leaves):
    X = np.stack([np.arange(400) % 200, np.arange(400) // 200], axis=1).astype(np.float32)
    gradients = np.random.default_rng(5).permutation(400).astype(np.float64)
    trees, scores = boost(Grower(bin_all(X), None, growth(n_leaves)), gradients, 2)
    assert [tree.n_leaves for tree in trees] == [n_leaves, n_leaves]
    assert len(set(trees[0].value.tolist())) > n_leaves - 20
    assert Forest(trees, np.zeros(1), 2).scores(X)[0].tobytes() == scores.tobytes()


def test_a_chain_of_splits():
    """Each split cuts off the largest that is left: the deepest tree there is."""
    gradients = 4.0 ** np.arange(12)
    tree = grow(np.arange(12)[:, None], gradients, growth(12))
    assert tree.threshold.tolist() == [10.5 - k for k in range(11)]
    assert tree.value.tolist() == gradients.tolist()
    mirrored = grow(-np.arange(12)[:, None], gradients, growth(12))
    assert mirrored.threshold.tolist() == [-10.5 + k for k in range(11)]
    assert mirrored.value.tolist() == gradients[::-1].tolist()


def test_documents_in_another_order_grow_the_same_tree():
    """Whole numbers are summed exactly, so that their order cannot matter."""
    rng = np.random.default_rng(6)
    X = mixed_features(rng, 200, 9)
    gradients = rng.integers(-99, 99, size=200).astype(np.float64)
    tree = grow(X, gradients, growth(20))
    for _ in range(3):
        order = rng.permutation(200)
        assert bytes_of([grow(X[order], gradients[order], growth(20))]) == bytes_of([tree])


def test_the_sign_of_gradients_is_that_of_values():
    rng = np.random.default_rng(7)
    X, gradients = mixed_features(rng, 100, 5), rng.normal(size=100)
    up, down = grow(X, gradients, growth(9)), grow(X, -gradients, growth(9))
    assert up.threshold.tobytes() == down.threshold.tobytes()
    assert up.value.tolist() == (-down.value).tolist()


def test_boosting_comes_near_any_target():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    target = rng.normal(size=300)
    _, scores = boost(Grower(bin_all(X), None, growth(31)), target, 40)
    assert np.abs(scores - target).max() < 0.1


def test_a_tree_of_one_leaf():
    tree = grow_tree([[1], [2], [3]], [1, 2, 6], growth(1))
    assert tree.value.tolist() == [3.0]
