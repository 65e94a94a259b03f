"""Average: zero mean and unit variance over all documents, weight 1 (Ensemble, Sec. 4.3)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rankinite as rk
from rankinite.ensembles.members import Scaling, weighted_sum
from tests.ensembles.cases import members, scores_of
from tests.rankers.cases import TEST, VALID

DATA = rk.RankingData(np.zeros((4, 1)), [0, 1, 2, 0], [1, 1, 2, 2])


def test_by_hand():
    """Means 2 and 0; the deviations are -1, 1, -1, 1 and -3, 3, 0, 0, whose variance is 4.5."""
    scores = {"a": [1.0, 3.0, 1.0, 3.0], "b": [-3.0, 3.0, 0.0, 0.0]}
    model = rk.Average().fit(DATA, member_scores=scores)
    np.testing.assert_array_equal(model.means_, [2.0, 0.0])
    np.testing.assert_allclose(model.scales_, [1.0, 4.5**0.5], rtol=1e-15)
    np.testing.assert_array_equal(model.weights_, [1.0, 1.0])
    expected = [-1 - 3 / 4.5**0.5, 1 + 3 / 4.5**0.5, -1.0, 1.0]
    np.testing.assert_allclose(model.predict(None, member_scores=scores), expected, rtol=1e-14)
    # Another query is on the same scale.
    alone = model.predict(None, member_scores={"a": [7.0], "b": [4.5]})
    np.testing.assert_allclose(alone, [5.0 + 4.5**0.5], rtol=1e-14)


def test_it_is_the_sum_of_what_numpy_standardises():
    model = rk.Average(members()).fit(VALID)
    expected = sum(
        (scores_of(TEST)[name] - s.mean()) / s.std() for name, s in scores_of(VALID).items()
    )
    np.testing.assert_allclose(model.predict(TEST), expected, rtol=1e-12, atol=1e-12)


def test_names_are_kept():
    model = rk.Average(dict(zip("cab", members(), strict=True))).fit(VALID)
    assert model.member_names_ == ("c", "a", "b")


@pytest.mark.parametrize("constant", [0.0, 0.1, -7.0, 1e300, 5e-324])
def test_a_member_that_says_nothing(constant):
    scores = {"a": [1.0, 3.0, 1.0, 3.0], "b": np.full(4, constant)}
    model = rk.Average().fit(DATA, member_scores=scores)
    assert model.scales_[1] == 1.0
    average = model.predict(None, member_scores=scores)
    np.testing.assert_allclose(average, [-1.0, 1.0, -1.0, 1.0])


def test_rounding_is_no_opinion():
    """0.1 + 0.2 is not 0.3, but the difference says nothing about documents."""
    scores = {"a": [0.3, 0.1 + 0.2, 0.3, 0.3]}
    assert rk.Average().fit(DATA, member_scores=scores).scales_[0] == 1.0


def test_large_and_small_scores():
    row = np.array([1.0, 3.0, 1.0, 3.0])
    for factor in (1e-300, 1e-8, 1e8, 1e300):
        scaling = Scaling.fit(row[None] * factor)
        np.testing.assert_allclose([scaling.means[0], scaling.scales[0]], [2 * factor, factor])
    model = rk.Average().fit(DATA, member_scores=[row * 1e-300])
    with pytest.raises(rk.DataError, match="the score 1 of the member '1' for document 0 is too f"):
        model.predict(None, member_scores=[[1.0]])


ROWS = st.lists(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=6), min_size=1, max_size=4).map(
    np.array
)


@given(ROWS)
def test_scaled_scores_have_mean_0_and_variance_1(rows):
    scaling = Scaling.fit(rows)
    scaled = scaling.apply("test", [str(k) for k in range(len(rows))], rows)
    for row, before in zip(scaled, rows, strict=True):
        np.testing.assert_allclose(row.mean(), 0.0, atol=1e-6 + 1e-12 * np.abs(before).max())
        if before.std() > 1e-6 * np.abs(before).max():
            np.testing.assert_allclose(row.std(), 1.0, rtol=1e-6)
    total = weighted_sum(scaled, np.arange(1.0, len(rows) + 1))
    np.testing.assert_allclose(total, np.arange(1.0, len(rows) + 1) @ scaled, atol=1e-6)


@given(ROWS, st.floats(0.5, 4.0), st.floats(-10, 10))
def test_the_scale_of_a_member_does_not_matter(rows, factor, shift):
    """Moved and stretched scores are the same member."""
    if rows[0].std() <= 1e-6 * max(1.0, np.abs(rows[0]).max()):
        return
    moved = rows.copy()
    moved[0] = factor * moved[0] + shift
    names = [str(k) for k in range(len(rows))]
    first, second = (
        Scaling.fit(scores).apply("test", names, scores)[0] for scores in (rows, moved)
    )
    np.testing.assert_allclose(first, second, atol=1e-5)
