"""Simulated clicks follow the cascade user of Challenge, Algorithm 2."""

import numpy as np
import pytest

from rankinite.core.errors import DataError, UsageError
from rankinite.data.ranking_data import RankingData
from rankinite.data.simulate import clicks as simulator
from rankinite.data.simulate.clicks import clicks

MANY = 1e7


def one_page(grades, **options):
    """Return a query of one page, ranked as it stands, that very many users ask."""
    n = len(grades)
    data = RankingData(np.zeros((n, 1)), grades, group_sizes=[n], top_grade=4)
    return clicks(data, scores=-np.arange(n), users=MANY, **options).labels["clicks"]


@pytest.fixture
def plain_users(monkeypatch):
    """Users without preferences, who never give up, and one order of documents."""
    names = {
        "SLIP": 0.0,
        "PATIENCE": 1.0,
        "PREFERENCE": 0.0,
        "RANDOM_PREFERENCE": 0.0,
        "SPREAD_OF_USERS": 0.0,
    }
    for name, value in names.items():
        monkeypatch.setattr(simulator, name, value)
    monkeypatch.setattr(simulator, "SOURCES", (simulator.ClickSource("clicks", 1.0, 0.0, 0.0),))


@pytest.mark.usefixtures("plain_users")
def test_users_are_those_of_algorithm_2():
    # R is 3/16, 15/16 and 1/16 for grades 2, 4 and 1; users come so far whom nothing satisfied.
    rates = one_page([2, 0, 4, 1])
    expected = [3 / 16, 0, (13 / 16) * (15 / 16), (13 / 16) * (1 / 16) * (1 / 16)]
    assert rates == pytest.approx(expected, abs=0.001)


@pytest.mark.usefixtures("plain_users")
def test_impatient_users_make_equal_documents_earn_less_further_down(monkeypatch):
    monkeypatch.setattr(simulator, "PATIENCE", 0.5)
    # R is 7/16; half of the unsatisfied 9/16 look at the next document.
    assert one_page([3, 3, 3]) == pytest.approx([7 / 16, 63 / 512, 567 / 16_384], abs=0.001)


@pytest.mark.usefixtures("plain_users")
def test_slips_click_without_cause(monkeypatch):
    monkeypatch.setattr(simulator, "SLIP", 0.1)
    assert one_page([0, 0]) == pytest.approx([0.1, 0.09], abs=0.001)


@pytest.mark.usefixtures("plain_users")
def test_only_ten_documents_are_shown():
    rates = one_page([1] * 13)
    assert not np.isnan(rates[:10]).any()
    assert np.isnan(rates[10:]).all()


def simulated(n_queries=600, n_docs=25, **options):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_queries * n_docs, 30)).astype(np.float32)
    y = rng.integers(0, 5, len(X))
    data = RankingData(X, y, group_sizes=np.full(n_queries, n_docs), top_grade=4)
    return clicks(data, **options)


def test_two_sources_of_different_reach():
    data = simulated()
    exact, similar = data.labels["clicks"], data.labels["similar_clicks"]
    assert np.isnan(exact).sum() > 1.25 * np.isnan(similar).sum() > 0
    seen = ~np.isnan(exact) & ~np.isnan(similar)
    together = np.corrcoef(exact[seen], similar[seen])[0, 1]
    assert 0.3 < together < 0.95
    for rates in (exact, similar):
        known = rates[~np.isnan(rates)]
        assert (known.min() >= 0, known.max() <= 1) == (True, True)
        by_grade = [np.nanmean(rates[data.y == grade]) for grade in range(5)]
        assert by_grade == sorted(by_grade)


def test_few_users_leave_queries_without_clicks():
    data = simulated(users=0.5)
    unseen = np.logical_and.reduceat(np.isnan(data.labels["clicks"]), data.offsets[:-1])
    assert 0.2 < unseen.mean() < 0.9


def test_preference_can_be_learned_within_grades():
    """A linear function of the features goes with the rates among documents of one grade."""
    data = simulated(users=1_000, seed=3)
    seen = ~np.isnan(data.labels["similar_clicks"]) & (data.y == 3)
    X, rates = data.X[seen], data.labels["similar_clicks"][seen]
    half = len(X) // 2
    weights = np.linalg.lstsq(X[:half], rates[:half] - rates[:half].mean(), rcond=None)[0]
    assert np.corrcoef(X[half:] @ weights, rates[half:])[0, 1] > 0.15


def test_preference_is_the_same_for_sets_that_belong_together():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 30))
    query = np.repeat([0, 1], 20)
    whole = RankingData(X, np.ones(40), qid=query, top_grade=4)
    other = RankingData(X[20:], np.ones(20), qid=query[20:], top_grade=4)
    preferences = [
        simulator._preference(whole, query, 5)[20:],
        simulator._preference(other, query[20:] - 1, 5),
    ]
    assert preferences[0] == pytest.approx(preferences[1])


def test_seeds():
    first, again, other = (simulated(100, seed=s).labels["clicks"] for s in (0, 0, 1))
    assert np.array_equal(first, again, equal_nan=True)
    assert not np.array_equal(first, other, equal_nan=True)


@pytest.mark.usefixtures("plain_users")
def test_blocks_of_queries_keep_their_own_documents(monkeypatch):
    monkeypatch.setattr(simulator, "QUERIES_A_BLOCK", 2)
    grades = [4, 0, 2, 3, 1, 4, 2, 0, 1]
    sizes = [2, 1, 3, 1, 2]
    data = RankingData(np.zeros((9, 1)), grades, group_sizes=sizes, top_grade=4)
    rates = clicks(data, scores=[1, 2, 0, 1, 3, 2, 0, 5, 6], users=MANY).labels["clicks"]
    # By hand, in the order of scores: (0, 4), (2), (1, 4, 3), (2) and (1, 0).
    expected = [15 / 16, 0, 3 / 16, 15 / 16 / 16 * 7 / 16, 1 / 16, 15 / 16 * 15 / 16]
    assert rates == pytest.approx([*expected, 3 / 16, 0, 1 / 16], abs=0.001)


@pytest.mark.usefixtures("plain_users")
@pytest.mark.parametrize("lowest", [-2.0, -6.8e38, -1e300])
def test_only_the_order_of_scores_counts(lowest):
    # R is 7/16: the second of three equal documents earns 9/16 of that, the last one 81/256.
    data = RankingData(np.zeros((3, 1)), [3, 3, 3], group_sizes=[3], top_grade=4)
    rates = clicks(data, scores=[1e-9, lowest, 0.0], users=MANY).labels["clicks"]
    assert rates == pytest.approx([7 / 16, 567 / 4096, 63 / 256], abs=0.001)


def test_tied_scores_have_no_order_of_their_own():
    scores = np.array([2.0, 1.0, 1.0, 0.0, 5.0, 5.0])
    query, offsets = np.array([0, 0, 0, 0, 1, 1]), np.array([0, 4, 6])
    assert simulator._n_below(scores, query, offsets).tolist() == [3, 1, 1, 0, 0, 0]


@pytest.mark.usefixtures("plain_users")
def test_documents_that_no_user_got_to_have_no_rate():
    """Perfect documents at the top stop nearly everybody: the tenth is shown, but not looked at."""
    data = RankingData(np.zeros((10, 1)), [4] * 10, group_sizes=[10], top_grade=4)
    rates = clicks(data, scores=-np.arange(10), users=200).labels["clicks"]
    assert rates[0] == pytest.approx(15 / 16, abs=0.06)
    # One in 16 ** 4 users gets to the fifth.
    assert np.isnan(rates[5:]).all()


def test_other_sets_with_the_same_ids_have_other_users():
    def rates(seed):
        X = np.random.default_rng(seed).normal(size=(5_000, 5))
        data = RankingData(X, np.ones(5_000), group_sizes=[10] * 500, top_grade=4)
        return clicks(data, scores=-np.tile(np.arange(10), 500), users=20).labels["clicks"]

    # All first documents have the same chance; how many users there were makes the rates differ.
    first, second = rates(0)[::10], rates(1)[::10]
    seen = ~np.isnan(first) & ~np.isnan(second)
    assert seen.sum() > 100
    assert abs(np.corrcoef(first[seen], second[seen])[0, 1]) < 0.2


@pytest.mark.usefixtures("plain_users")
def test_more_users_of_similar_queries_see_more(monkeypatch):
    few = simulator.ClickSource("clicks", 1.0, 0.5, 0.0)
    many = simulator.ClickSource("similar_clicks", 8.0, 0.5, 0.0)
    monkeypatch.setattr(simulator, "SOURCES", (few, many))
    monkeypatch.setattr(simulator, "PATIENCE", 0.7)
    data = simulated(200, users=5)
    seen = {name: (~np.isnan(rates)).mean() for name, rates in data.labels.items()}
    assert seen["similar_clicks"] > 1.2 * seen["clicks"]


@pytest.mark.usefixtures("plain_users")
def test_another_meaning_makes_rates_go_less_with_grades(monkeypatch):
    same = simulator.ClickSource("clicks", 1.0, 0.5, 0.0)
    other = simulator.ClickSource("similar_clicks", 1.0, 0.5, 1.5)
    monkeypatch.setattr(simulator, "SOURCES", (same, other))
    data = simulated(300, users=2_000)
    together = {}
    for name, rates in data.labels.items():
        seen = ~np.isnan(rates)
        together[name] = np.corrcoef(rates[seen], 2 ** data.y[seen])[0, 1]
    assert together["similar_clicks"] < together["clicks"] - 0.05


def test_the_engine_knows_something_of_grades():
    data = simulated(300)
    shown = ~np.isnan(data.labels["clicks"])
    assert shown[data.y == 4].mean() > shown[data.y == 0].mean() + 0.2


def test_the_rest_of_the_set_stays_and_clicks_are_replaced():
    data = simulated(10)
    again = clicks(data.with_labels({"dwell": np.arange(data.n_docs)}), seed=7)
    assert list(again.labels) == ["clicks", "similar_clicks", "dwell"]
    assert again.matrix is data.matrix
    assert not np.array_equal(again.labels["clicks"], data.labels["clicks"], equal_nan=True)


def test_missing_and_constant_features_and_odd_grades():
    X = np.full((6, 3), np.nan)
    X[:, 1] = 0.1
    X[:3, 2] = [1, np.nan, 1e30]
    data = RankingData(X, [0, 0.5, 1, 1, 0, 0], qid=[1, 1, 1, 2, 3, 3], top_grade=1)
    rates = clicks(data, users=1_000).labels["clicks"]
    assert (np.nanmin(rates) >= 0, np.nanmax(rates) <= 1) == (True, True)
    zeros = RankingData(X[:1], [0], qid=[1], top_grade=0)
    assert clicks(zeros, users=1_000).labels["clicks"][0] == pytest.approx(0.01, abs=0.02)


def test_wrong_arguments():
    data = simulated(2)
    with pytest.raises(
        UsageError, match="users must be a finite number, above 0 and at most 1e\\+09; got 0"
    ):
        clicks(data, users=0)
    with pytest.raises(DataError, match="expected one score per document"):
        clicks(data, scores=[1.0])
    with pytest.raises(UsageError, match="clicks: a list is no data set; expected a RankingData"):
        clicks([1, 2])
