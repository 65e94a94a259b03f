"""Documents that share rows are the same as documents with rows of their own, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from rankinite.trees.forest import Forest
from rankinite.trees.grower import Grower
from tests.trees.cases import bin_all, boost, bytes_of, growth, mixed_features

N_FEATURES = 11


def both(rows, n_rows: int, how, seed: int = 0, most_bins: int = 255):
    """Return a grower on rows and an index, one on the copied-out matrix, and that matrix."""
    X = mixed_features(np.random.default_rng(seed), n_rows, N_FEATURES)
    shared = bin_all(X, docs=rows, most_bins=most_bins)
    copied = bin_all(X[rows], most_bins=most_bins)
    assert shared.main.cuts.tobytes() == copied.main.cuts.tobytes()
    return Grower(shared, rows, how), Grower(copied, None, how), X[rows]


def aug_rows(rng, n_rows: int, n_docs: int) -> np.ndarray:
    """Return an index with every row, some of them many times, in no order."""
    return rng.permutation(
        np.append(np.arange(n_rows), rng.integers(n_rows // 2, size=n_docs - n_rows))
    )


@pytest.mark.kernel
@pytest.mark.parametrize("criterion", ["mse", "newton"])
@pytest.mark.parametrize("sample", [1.0, 0.3])
def test_a_few_rows(criterion, sample):
    rng = np.random.default_rng(0)
    rows = aug_rows(rng, 12, 30)
    shared, copied, _ = both(rows, 12, growth(5, criterion=criterion, min_docs=2))
    target, hessians = rng.normal(size=30), rng.random(30) + 0.5
    for options in ({}, {"n_features": 4}):
        ours, scores = boost(shared, target, 3, hessians=hessians, sample=sample, **options)
        theirs, their_scores = boost(copied, target, 3, hessians=hessians, sample=sample, **options)
        assert bytes_of(ours) == bytes_of(theirs)
        assert scores.tobytes() == their_scores.tobytes()


@pytest.mark.parametrize("criterion", ["mse", "newton"])
@pytest.mark.parametrize("step", ["newton", "gradient"])
@pytest.mark.parametrize("sample", [1.0, 0.5])
@pytest.mark.parametrize("most_bins", [255, 20])
def test_many_rows(criterion, step, sample, most_bins):
    rng = np.random.default_rng(1)
    rows = aug_rows(rng, 700, 4000)
    how = growth(31, min_docs=5, criterion=criterion, step=step)
    shared, copied, X = both(rows, 700, how, most_bins=most_bins)
    target, hessians = rng.normal(size=4000), rng.random(4000) + 0.1
    ours, scores = boost(shared, target, 6, hessians=hessians, sample=sample, n_features=7)
    theirs, their_scores = boost(copied, target, 6, hessians=hessians, sample=sample, n_features=7)
    assert all(tree.n_leaves == 31 for tree in ours)
    assert bytes_of(ours) == bytes_of(theirs)
    assert scores.tobytes() == their_scores.tobytes()
    assert Forest(ours, np.zeros(1), N_FEATURES).scores(X)[0].tobytes() == scores.tobytes()


def test_rows_without_documents_change_nothing():
    """A fold of a larger matrix: the other rows are binned but have no document."""
    rng = np.random.default_rng(2)
    rows = rng.choice(900, size=500, replace=True)
    shared, copied, _ = both(rows, 900, growth(15))
    target = rng.normal(size=500)
    ours, scores = boost(shared, target, 4)
    theirs, their_scores = boost(copied, target, 4)
    assert bytes_of(ours) == bytes_of(theirs)
    assert scores.tobytes() == their_scores.tobytes()


def test_one_row_for_all_documents():
    rows = np.zeros(50, np.int64)
    shared, copied, _ = both(rows, 3, growth(4))
    target = np.arange(50.0)
    ours, scores = boost(shared, target, 2)
    theirs, _ = boost(copied, target, 2)
    assert bytes_of(ours) == bytes_of(theirs)
    assert [tree.n_leaves for tree in ours] == [1, 1]
    assert ours[0].leaf_docs.tolist() == [50]
    assert scores.tolist() == [24.5] * 50


def test_the_smaller_child_by_rows_may_have_more_documents():
    """One row with 90 documents against nine rows with one each; min_docs then stops the nine."""
    rows = np.append(np.zeros(90, np.int64), np.arange(1, 10))
    rng = np.random.default_rng(3)
    for min_docs in (1, 5, 9):
        how = growth(6, min_docs=min_docs)
        shared, copied, _ = both(rows, 10, how)
        target = np.where(rows == 0, 5.0, 0.0) + rng.normal(size=99)
        ours, scores = boost(shared, target, 3)
        theirs, their_scores = boost(copied, target, 3)
        assert bytes_of(ours) == bytes_of(theirs)
        assert scores.tobytes() == their_scores.tobytes()
        assert min(tree.leaf_docs.min() for tree in ours) >= min_docs


def test_all_trees_are_added_again_by_rows():
    rng = np.random.default_rng(4)
    rows = aug_rows(rng, 60, 200)
    shared, _, X = both(rows, 60, growth(9))
    trees, scores = boost(shared, rng.normal(size=200), 5)
    again = np.zeros(200)
    for tree in trees:
        shared.add_again(tree, again)
    assert again.tobytes() == scores.tobytes()
    elsewhere, scratch = np.zeros(200), None
    for tree in trees:
        columns = shared.binned.columns_of(X)
        scratch = shared.add_elsewhere(tree, columns, scratch, elsewhere)
    assert elsewhere.tobytes() == scores.tobytes()
