"""Choosing members, and gains over a baseline: by hand, and against `Average` and `best_subset`."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.ensembles.selection import gain_over, p_against, select_members
from rankinite.evaluation.evaluate import Evaluation, evaluate
from tests.ensembles.cases import scores_of
from tests.rankers.cases import VALID

MEASURES = ("NDCG@10", "ERR")


def evaluation_of(*values):
    return Evaluation(np.arange(len(values)), {"ERR": np.array(values)})


def test_members_and_averages_are_measured():
    scores = scores_of(VALID)
    names = tuple(scores)
    # One subset has the name of a member.
    subsets = {"all": names, names[0]: names[1:]}
    selection = select_members(scores, VALID, MEASURES, subsets, None)
    assert selection.search is None
    assert selection.chosen == names
    for name in names:
        assert selection.members[name].mean == evaluate(scores[name], VALID, MEASURES).mean
    whole = rk.Average().fit(VALID, member_scores=scores)
    average = whole.predict(None, member_scores=scores)
    assert selection.subsets["all"].mean == evaluate(average, VALID, MEASURES).mean
    assert selection.subsets[names[0]].mean != selection.members[names[0]].mean
    means = {name: selection.members[name].mean["NDCG@10"] for name in names}
    assert means[selection.best_member] == max(means.values())


def test_a_search_chooses():
    scores = scores_of(VALID)
    options = {"level": 1.0, "seed": 2}
    selection = select_members(scores, VALID, MEASURES, {}, options)
    search = rk.best_subset(scores, VALID, MEASURES, **options)
    assert selection.search == search
    assert selection.chosen == search.chosen


def test_a_gain_by_hand():
    """Differences 0.1, 0.2 and 0.3: standard error 0.1 / sqrt(3), t = sqrt(12), 4.303 at 95 %."""
    better, worse = evaluation_of(0.2, 0.3, np.nan, 0.4), evaluation_of(0.1, 0.1, np.nan, 0.1)
    gain = gain_over(better, worse, "ERR")
    assert gain.mean == pytest.approx(0.2)
    assert gain.high - gain.mean == pytest.approx(4.303 * 0.1 / np.sqrt(3), rel=1e-3)
    assert gain.low == pytest.approx(2 * gain.mean - gain.high)
    assert gain.p == pytest.approx(1 - np.sqrt(12 / 14))
    assert not gain.is_significant
    p_values = p_against({"a": better, "b": worse}, "b", ["ERR"])
    assert p_values == {"a": {"ERR": gain.p}, "b": {"ERR": None}}


def test_without_queries_that_count_there_is_no_gain():
    nothing = evaluation_of(np.nan, np.nan)
    assert gain_over(nothing, nothing, "ERR") is None
    assert gain_over(nothing, nothing, "NDCG") is None
