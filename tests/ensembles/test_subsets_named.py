"""Subset search among given subsets only."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from tests.ensembles.cases import members, scores_of
from tests.ensembles.test_subsets import naive, noisy, some_data
from tests.rankers.cases import VALID


def test_only_given_subsets_and_all_members_are_measured():
    data, rng = some_data(2, 30)
    scores = noisy(data, rng, [0.5, 1.0, 3.0, 6.0])
    candidates = [("m1", "m0"), ["m2"], ("m0", "m1")]
    search = rk.best_subset(scores, data, "NDCG", candidates=candidates)
    values = {
        s: evaluation.per_query["NDCG"] for s, evaluation in naive(scores, data, "NDCG").items()
    }
    subsets = [("m0", "m1"), ("m2",), tuple(scores)]
    assert search.method == "given subsets"
    assert {row.members: row.values["NDCG"] for row in search.table} == pytest.approx(
        {subset: np.nanmean(values[subset]) for subset in subsets}
    )
    assert search.best.members == ("m0", "m1")
    full = values[tuple(scores)]
    held_out = full.copy()
    halves = [[int(qid) - 1 for qid in part.qids] for part in data.split(2, seed=0)]
    for chosen_by, tested_on in (halves, halves[::-1]):
        best = max(subsets, key=lambda s: np.nanmean(values[s][chosen_by]))
        held_out[tested_on] = values[best][tested_on]
    assert search.gain == pytest.approx(np.nanmean(held_out - full), abs=1e-12)
    assert "3 subsets (given subsets)" in str(search)


def test_the_same_as_every_subset_if_all_are_given():
    every = rk.best_subset(members(), VALID)
    search = rk.best_subset(members(), VALID, candidates=[row.members for row in every.table])
    assert search.method != every.method
    assert (search.table, search.p_value, search.chosen) == (
        every.table,
        every.p_value,
        every.chosen,
    )


def test_no_candidates_leave_all_members():
    search = rk.best_subset(scores_of(VALID), VALID, candidates=())
    assert search.chosen == search.best.members == ("1", "2", "3")
    assert len(search.table) == 1


@pytest.mark.parametrize(
    ("candidates", "sentence"),
    [
        ([("1", "x")], "candidates has the subset ('1', 'x'); the members are '1', '2', '3'"),
        ([()], "candidates has the subset (); expected some, each once"),
        ([("1", "1")], "candidates has the subset ('1', '1'); expected some, each once"),
        (["12"], "a subset of candidates is the text '12'; expected a list"),
        ("12", "candidates is the text '12'"),
    ],
)
def test_wrong_candidates(candidates, sentence):
    with pytest.raises(rk.UsageError) as caught:
        rk.best_subset(scores_of(VALID), VALID, candidates=candidates)
    assert sentence in str(caught.value)
