"""Subset search: a naive search of all subsets, and the held-out test."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel

import rankinite as rk
from rankinite.core.progress import ProgressBar
from tests.ensembles.cases import members, scores_of
from tests.rankers.cases import VALID


def some_data(seed: int, n_queries: int = 20, n_docs: int = 6):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, n_docs * n_queries)
    y[:n_docs] = 0  # a query that counts for nothing
    sizes = np.full(n_queries, n_docs)
    return rk.RankingData(np.zeros((len(y), 1)), y, group_sizes=sizes, top_grade=4), rng


def noisy(data, rng, spreads):
    """Return members whose scores are labels with more or less noise."""
    return {
        f"m{k}": data.y + rng.normal(0, spread, data.n_docs) for k, spread in enumerate(spreads)
    }


def naive(scores, data, measure):
    """Return the mean and the values per query of every subset, one by one, by evaluate."""
    scaled = {name: (s - s.mean()) / s.std() for name, s in scores.items()}
    evaluations = {}
    for size in range(1, len(scores) + 1):
        for chosen in itertools.combinations(scores, size):
            total = np.sum([scaled[name] for name in chosen], axis=0)
            evaluations[chosen] = rk.evaluate(total, data, measure)
    return evaluations


@pytest.mark.parametrize("measure", ["NDCG@10", "ERR", "MAP"])
@pytest.mark.parametrize("seed", range(3))
def test_every_subset_is_measured(seed, measure):
    data, rng = some_data(seed)
    scores = noisy(data, rng, rng.uniform(0.5, 4, 5))
    search = rk.best_subset(scores, data, measure)
    expected = {
        chosen: evaluation.mean[measure]
        for chosen, evaluation in naive(scores, data, measure).items()
    }
    assert search.method == "every subset"
    assert {row.members: row.values[measure] for row in search.table} == pytest.approx(expected)
    values = [row.values[measure] for row in search.table]
    assert values == sorted(values, reverse=True)
    assert expected[search.best.members] == pytest.approx(max(expected.values()))
    assert search.full.members == tuple(scores)


@pytest.mark.parametrize("seed", range(4))
def test_the_guarded_test_by_hand(seed):
    """The best of one half is compared on the other half, and scipy tests all differences."""
    data, rng = some_data(seed, 30)
    scores = noisy(data, rng, [0.5, 1.0, 6.0, 6.0][: 3 + seed % 2])
    search = rk.best_subset(scores, data, "NDCG", seed=seed)
    values = {
        s: evaluation.per_query["NDCG"] for s, evaluation in naive(scores, data, "NDCG").items()
    }
    full = values[tuple(scores)]
    halves = [[int(qid) - 1 for qid in part.qids] for part in data.split(2, seed=seed)]
    held_out = full.copy()
    for chosen_by, tested_on in (halves, halves[::-1]):
        best = max(values, key=lambda s: np.nanmean(values[s][chosen_by]))
        held_out[tested_on] = values[best][tested_on]
    counts = ~np.isnan(full)
    assert counts.sum() == 29
    p = ttest_rel(held_out[counts], full[counts]).pvalue
    assert search.p_value == pytest.approx(1.0 if np.isnan(p) else p, rel=1e-6)
    assert search.gain == pytest.approx((held_out - full)[counts].mean(), abs=1e-12)
    best = values[search.best.members]
    if search.best.members != search.full.members:
        naive_p = ttest_rel(best[counts], full[counts]).pvalue
        assert search.naive_p_value == pytest.approx(naive_p, rel=1e-6)
    assert search.naive_gain == pytest.approx((best - full)[counts].mean(), abs=1e-12)
    better = search.p_value < 0.05 and search.gain > 0
    assert search.chosen == (search.best if better else search.full).members


def test_what_is_clearly_better_is_chosen():
    data, rng = some_data(1, 100)
    scores = noisy(data, rng, [0.3, 0.3]) | {
        f"noise{k}": rng.normal(0, 1, data.n_docs) for k in range(3)
    }
    search = rk.best_subset(scores, data)
    assert search.chosen == search.best.members == ("m0", "m1")
    assert search.p_value < 1e-6
    assert search.gain > 0
    assert "chosen: the best subset" in str(search)
    assert "best by NDCG@10: m0, m1 at" in str(search)


def test_luck_is_not_chosen():
    """Members that are equally good: some subset looks better, and the search is not taken in."""
    misled, chosen = 0, 0
    for seed in range(20):
        data, rng = some_data(100 + seed, 40)
        search = rk.best_subset(noisy(data, rng, [2.0] * 6), data)
        misled += search.naive_p_value < 0.05 and search.best != search.full
        chosen += search.chosen != search.full.members
    assert chosen <= 2  # one in twenty, if every choice were by chance
    assert misled >= chosen


def test_ties_prefer_all_members_and_then_fewer():
    data, rng = some_data(2)
    good = data.y + rng.normal(0, 0.5, data.n_docs)
    same = rk.best_subset({"a": good, "b": 3 * good, "c": good + 5}, data)
    assert same.best.members == same.chosen == ("a", "b", "c")
    assert (same.p_value, same.gain, same.naive_p_value, same.naive_gain) == (1.0, 0.0, 1.0, 0.0)
    perfect = data.y.astype(float)
    noise = rng.normal(0, 1, data.n_docs)
    two = rk.best_subset({"noise": noise, "a": perfect, "b": 2 * perfect}, data)
    assert two.best.members == ("a",)


def test_further_measures_are_in_the_table():
    data, rng = some_data(4)
    scores = noisy(data, rng, [1, 2, 3])
    search = rk.best_subset(scores, data, ["ERR", "NDCG@10"])
    assert all(list(row.values) == ["ERR", "NDCG@10"] for row in search.table)
    for chosen, evaluation in naive(scores, data, ["ERR", "NDCG@10"]).items():
        (row,) = [row for row in search.table if row.members == chosen]
        assert dict(row.values) == pytest.approx(evaluation.mean)


def test_rankers_are_asked_for_scores():
    by_rankers = rk.best_subset(members(), VALID)
    assert by_rankers == rk.best_subset(scores_of(VALID), VALID)
    assert by_rankers == rk.best_subset(np.stack(list(scores_of(VALID).values())), VALID)
    for row in by_rankers.table:
        chosen = [members()[int(name) - 1] for name in row.members]
        average = rk.Average(chosen).fit(VALID).predict(VALID)
        # The average of the subset, to the last bit.
        assert rk.evaluate(average, VALID, "NDCG@10").mean == dict(row.values)


def test_the_chosen_are_members_of_an_average():
    data, rng = some_data(1, 40)
    scores = noisy(data, rng, [0.3, 0.3, 5.0])
    search = rk.best_subset(scores, data)
    chosen = {name: scores[name] for name in search.chosen}
    assert rk.Average().fit(data, member_scores=chosen).member_names_ == search.chosen


def best_on_the_way(values, full):
    """Return the best of the subsets on the way up from none and down from all, by plain loops."""
    path, current = [full], ()
    while len(current) < len(full) - 1:
        options = [
            tuple(n for n in full if n in (*current, new)) for new in full if new not in current
        ]
        current = max(options, key=values.__getitem__)
        path.append(current)
    current = full
    while len(current) > 1:
        current = max(
            [tuple(n for n in current if n != out) for out in current], key=values.__getitem__
        )
        path.append(current)
    return max(path, key=values.__getitem__)


@pytest.mark.parametrize("seed", range(6))
def test_forward_and_backward(seed):
    data, rng = some_data(seed)
    scores = noisy(data, rng, rng.uniform(0.5, 4, 6))
    search = rk.best_subset(scores, data, "NDCG", most_exhaustive=5)
    values = {s: evaluation.mean["NDCG"] for s, evaluation in naive(scores, data, "NDCG").items()}
    assert search.method == "forward and backward"
    assert search.best.members == best_on_the_way(values, tuple(scores))
    for row in search.table:
        assert row.values["NDCG"] == pytest.approx(values[row.members])
    assert rk.best_subset(scores, data, "NDCG").best.values["NDCG"] >= search.best.values["NDCG"]


def test_the_halves_of_a_greedy_search_are_searched_by_themselves():
    data, rng = some_data(8, 30)
    scores = noisy(data, rng, [0.5, 1.0, 3.0, 6.0])
    search = rk.best_subset(scores, data, "NDCG", most_exhaustive=3)
    values = {
        s: evaluation.per_query["NDCG"] for s, evaluation in naive(scores, data, "NDCG").items()
    }
    full = values[tuple(scores)]
    held_out = full.copy()
    halves = [[int(qid) - 1 for qid in part.qids] for part in data.split(2, seed=0)]
    for chosen_by, tested_on in (halves, halves[::-1]):
        means = {subset: np.nanmean(row[chosen_by]) for subset, row in values.items()}
        best = best_on_the_way(means, tuple(scores))
        held_out[tested_on] = values[best][tested_on]
    assert search.gain == pytest.approx(np.nanmean(held_out - full), abs=1e-12)


def test_many_members():
    data, rng = some_data(3, 12)
    scores = noisy(data, rng, np.linspace(0.5, 6, 20))
    search = rk.best_subset(scores, data)
    assert search.method == "forward and backward"
    assert len(search.table) <= 3 * 20 * 21
    assert search.best.values["NDCG@10"] >= search.full.values["NDCG@10"]


def test_it_repeats_and_the_seed_cuts_other_halves():
    data, rng = some_data(6)
    scores = noisy(data, rng, [1.0, 2.0, 3.0, 4.0])
    assert rk.best_subset(scores, data) == rk.best_subset(scores, data)
    others = {rk.best_subset(scores, data, seed=seed).p_value for seed in range(5)}
    assert len(others) > 1


def test_one_query_tells_nothing():
    data, rng = some_data(7, 2)
    scores = noisy(data, rng, [0.1, 5.0])
    for part in (data[1], data):  # alone, and beside one that does not count
        docs = np.isin(data.qid, part.qids)
        search = rk.best_subset({n: s[docs] for n, s in scores.items()}, part)
        assert search.chosen == search.full.members
        assert (search.p_value, search.gain) == (1.0, 0.0)


def test_progress_is_told():
    class Counting(ProgressBar):
        done = 0

        def start(self, name, total, unit):
            self.total = total
            return self

        def advance(self, amount):
            self.done += amount

    progress = Counting()
    rk.best_subset(scores_of(VALID), VALID, progress=progress)
    assert (progress.total, progress.done) == (7, 7)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 4))
def test_properties(seed, n_members):
    data, rng = some_data(seed, 6, 4)
    if not data.y.any():
        return
    scores = noisy(data, rng, [1.0] * n_members)
    search = rk.best_subset(scores, data, "NDCG")
    assert len(search.table) == 2**n_members - 1
    assert search.naive_gain >= 0
    assert 0 < search.p_value <= 1
    assert search.chosen in (search.best.members, search.full.members)


@pytest.mark.parametrize(
    ("scores", "options", "sentence"),
    [
        ({"a": np.zeros(47)}, {}, "best_subset: the member 'a' has 47 scores for 48 documents"),
        ({"a": np.full(48, np.nan)}, {}, "best_subset: the member 'a' has nan for document 0"),
        ([rk.MART()], {}, "best_subset: the member '1', a MART, is not fitted yet"),
        ({}, {}, "member_scores is empty; give at least one member"),
        ("scores.txt", {}, "member_scores is a str"),
        (None, {}, "member_scores is a NoneType"),
        ({"a": np.zeros(48)}, {"measure": "NDGC"}, "there is no measure 'NDGC'"),
        ({"a": np.zeros(48)}, {"most_exhaustive": 0}, "most_exhaustive must be a whole number"),
        ({"a": np.zeros(48)}, {"level": 2}, "level must be a finite number, at least 0 and"),
    ],
)
def test_wrong_input(scores, options, sentence):
    with pytest.raises(ValueError) as caught:
        rk.best_subset(scores, VALID, **options)
    assert sentence in str(caught.value)


def test_no_data_set():
    with pytest.raises(rk.UsageError):
        rk.best_subset({"a": [0.0]}, [1.0])
