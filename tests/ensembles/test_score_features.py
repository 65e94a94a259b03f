"""Four features of a query, made of scores (Ensemble, Sec. 4.2), against a twin in plain loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankinite as rk
from rankinite.ensembles.score_features import FEATURE_NAMES, score_features, with_score_features
from tests.rankers.cases import TEST, TRAIN


def naive(queries):
    rows = []
    for scores in queries:
        top = sorted(scores, reverse=True)[:3]
        four = [max(scores), sum(scores) / len(scores), max(top), sum(top) / len(top)]
        rows += [four] * len(scores)
    return np.array(rows)


def test_by_hand():
    """The mean of 1, 4, 2, 3 is 2.5, that of the best three 3; of two documents all are taken."""
    found = score_features([1.0, 4.0, 2.0, 3.0, -1.0, -2.0, 5.0], [0, 4, 6, 7])
    assert found.dtype == np.float32
    assert found.tolist() == [[4, 2.5, 4, 3]] * 4 + [[-1, -1.5, -1, -1.5]] * 2 + [[5, 5, 5, 5]]
    assert len(FEATURE_NAMES) == 4


QUERIES = st.lists(
    st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=9), min_size=1, max_size=6
)  # fmt: skip


@given(QUERIES)
def test_as_the_naive_twin(queries):
    offsets = np.cumsum([0, *map(len, queries)])
    found = score_features(np.concatenate(queries), offsets)
    np.testing.assert_allclose(found, naive(queries), rtol=1e-6, atol=1e-6)
    np.testing.assert_array_equal(found[:, 0], found[:, 2])


@given(QUERIES, st.randoms(use_true_random=False))
def test_neither_the_order_of_documents_nor_other_queries_matter(queries, random):
    offsets = np.cumsum([0, *map(len, queries)])
    found = score_features(np.concatenate(queries), offsets)
    for query, first in zip(queries, offsets, strict=False):
        turned = random.sample(query, len(query))
        alone = score_features(turned, [0, len(query)])
        np.testing.assert_array_equal(alone, found[first : first + len(query)])


def test_queries_without_documents_and_extreme_scores():
    assert score_features([1.0, 2.0], [0, 0, 2, 2]).tolist() == [[2, 1.5, 2, 1.5]] * 2
    assert score_features([], [0]).shape == (0, 4)
    assert np.isfinite(score_features([1e300, 1e300, -1e300], [0, 3])).all()


@pytest.mark.parametrize(
    ("scores", "offsets", "sentence"),
    [
        ([1.0, np.nan], [0, 2], "the score of document 1 is nan; expected finite scores"),
        ([[1.0]], [0, 1], "scores have the shape (1, 1)"),
        ([1.0, 2.0], [0, 1], "offsets must go from 0 to the number of documents, 2"),
        ([1.0, 2.0], [1, 2], "offsets must go from 0"),
        ([1.0, 2.0], [0, 2, 1, 2], "never decrease"),
        ([1.0, 2.0], [], "offsets must go from 0"),
        ([1.0, 2.0], [0.0, 2.0], "offsets must go from 0"),
    ],
)
def test_wrong_input(scores, offsets, sentence):
    with pytest.raises(rk.DataError) as caught:
        score_features(scores, offsets)
    assert sentence in str(caught.value)


def test_a_set_with_score_features():
    scores = np.linspace(0, 1, TRAIN.n_docs)
    indexed = TRAIN[[3, 0, 5]]
    for data in (TRAIN, indexed):
        some = scores[: data.n_docs]
        found = with_score_features(data, some, "M11: ")
        assert found.feature_names == (*"1234", *(f"M11: {name}" for name in FEATURE_NAMES))
        np.testing.assert_array_equal(found.X[:, :4], data.X)
        np.testing.assert_array_equal(found.X[:, 4:], score_features(some, data.offsets))
        assert found.select_features(list("1234")).equals(data)


def test_a_set_that_has_them_already():
    found = with_score_features(TEST, TEST.y)
    with pytest.raises(rk.UsageError, match=r"'max of scores', .* already; give another"):
        with_score_features(found, TEST.y)
    with pytest.raises(rk.DataError, match="offsets must go"):
        with_score_features(TEST, TEST.y[1:])
    with pytest.raises(rk.UsageError, match="no data set"):
        with_score_features(TEST.X, TEST.y)
