"""The simulated challenge has the shape that the paper tells of (Challenge, Sec. 4)."""

import numpy as np
import pytest

from rankinite.core.errors import UsageError
from rankinite.data.augment import augment
from rankinite.data.simulate import markets
from rankinite.data.simulate.challenge import BM25F, PARTS, challenge, layout_of
from rankinite.data.simulate.markets import MARKETS
from rankinite.evaluation.evaluate import evaluate

# Table 2: queries and documents of train, valid and test.
TABLE_2 = {
    1: [(19_944, 473_134), (2_994, 71_083), (6_983, 165_660)],
    2: [(1_266, 34_815), (1_266, 34_881), (3_798, 103_174)],
}
# Table 3, from bad to perfect, in per cent.
TABLE_3 = {
    1: [21.92, 50.22, 22.30, 3.88, 1.67],
    2: [26.09, 35.80, 28.55, 7.67, 1.89],
}


@pytest.fixture(scope="module")
def sets():
    return {market: challenge(1_200, market=market) for market in MARKETS}


@pytest.mark.parametrize("market", MARKETS)
def test_queries_and_documents_of_every_part_are_those_of_table_2(market):
    for part, (n_queries, n_docs) in zip(PARTS, TABLE_2[market], strict=True):
        sizes = MARKETS[market].sizes(part, seed=3)
        assert (len(sizes), sizes.sum()) == (n_queries, n_docs)
        assert (sizes.min() >= 1, sizes.max() > 100) == (True, True)


@pytest.mark.parametrize(("n_queries", "n_docs"), [(100, 100), (100, 400), (1_000, 139_000)])
def test_missing_documents_are_added_and_surplus_ones_taken_away(n_queries, n_docs):
    market = markets.Market(1, {"train": n_queries}, {"train": n_docs}, (0.5, 0.5), {})
    sizes = market.sizes("train", seed=0)
    assert (len(sizes), sizes.sum()) == (n_queries, n_docs)
    assert (sizes.min() >= 1, sizes.max() <= 139) == (True, True)


@pytest.mark.parametrize("market", MARKETS)
def test_grades_have_the_shares_of_table_3(sets, market):
    shares = np.bincount(sets[market].y.astype(int), minlength=5) / sets[market].n_docs
    # Grades of one query go together: the shares of 1,200 queries are off by up to a tenth.
    assert shares * 100 == pytest.approx(TABLE_3[market], rel=0.12)


@pytest.mark.parametrize("market", MARKETS)
def test_only_destinations_are_perfect(sets, market):
    data = sets[market]
    perfect = np.add.reduceat(data.y == 4, data.offsets[:-1])
    assert set(perfect.tolist()) == {0, 1}


def test_features_are_shared_and_undefined_as_in_the_paper(sets):
    used = {m: sets[m].X.max(axis=0) > sets[m].X.min(axis=0) for m in MARKETS}
    assert (used[1].sum(), used[2].sum(), (used[1] & used[2]).sum()) == (519, 596, 415)
    for market, data in sets.items():
        assert (data.X[:, ~used[market]] == 0).all()
        assert (data.X.min(), data.X.max() <= 1) == (0, True)
        assert data.n_features == 700
        assert used[market][BM25F]


def test_kinds_of_features(sets):
    kinds = [np.unique(np.concatenate([s.X[:, j] for s in sets.values()])) for j in range(700)]
    counts = np.array([len(values) for values in kinds])
    # A value that few documents have can be absent among 60,000.
    assert (counts == 2).sum() >= 48
    assert (counts[counts != 2] > 2).all()
    assert (counts < 1_000).sum() >= 200
    assert (counts > 10_000).sum() >= 250


def test_continuous_features_are_ranks(sets):
    """The share of documents with a smaller value is the value itself, as in Sec. 4.3."""
    X, features = sets[1].X, layout_of(1).features
    n_continuous = 0
    for j, feature in enumerate(features):
        if feature is None or feature.levels is not None or feature.of_query:
            continue
        for value in (0.25, 0.5, 0.9):
            if value > feature.zeros:
                n_continuous += 1
                assert (X[:, j] < value).mean() == pytest.approx(value, abs=0.05), (j, value)
    assert n_continuous > 500


def test_counts_are_ranks_too(sets):
    X = sets[1].X
    for j, feature in enumerate(layout_of(1).features):
        if feature is None or feature.levels is None or feature.of_query:
            continue
        for level in feature.levels:
            assert (X[:, j] < level).mean() == pytest.approx(level, abs=0.05), (j, level)


def test_features_go_together(sets):
    X = sets[1].X[:20_000, [j for j in range(700) if layout_of(1).features[j] is not None]]
    together = np.abs(np.corrcoef(X.T))
    np.fill_diagonal(together, 0)
    assert (together.max(axis=1) > 0.3).mean() > 0.7
    assert together.max() < 0.99


def test_bm25f_is_the_strongest_single_feature(sets):
    data = sets[1]
    worth = {
        j: evaluate(data.X[:, j].astype(float), data, "NDCG@10").mean["NDCG@10"]
        for j in range(0, 700, 7)
    }
    best = evaluate(data.X[:, BM25F].astype(float), data, ["NDCG@10", "ERR"]).mean
    assert best["NDCG@10"] > max(worth.values())
    # Table 5: 0.732 and 0.428 on Set 1.
    assert best["NDCG@10"] == pytest.approx(0.732, abs=0.03)
    assert best["ERR"] == pytest.approx(0.428, abs=0.03)


@pytest.mark.parametrize(
    ("fraction", "times", "n_queries"), [(0.7, 5, 119_305), (0.5, 10, 217_175)]
)
def test_as_many_samples_teach_nothing_as_in_the_winners_data(sets, fraction, times, n_queries):
    """The number that 19,944 queries became, original ones included (Ensemble, Sec. 2)."""
    missing = 1 - (n_queries - 19_944) / (times * 19_944)
    more = augment(sets[1], fraction, times)
    left_out = 1 - (more.n_queries - sets[1].n_queries) / (times * sets[1].n_queries)
    # 359 of 99,720 and 2,209 of 199,440 there; some 20 and 140 of a few queries here.
    assert left_out == pytest.approx(missing, rel=0.5)


@pytest.mark.parametrize("n_queries", [1, 199, 200, 201])
def test_a_smaller_set_is_the_beginning_of_a_larger_one(n_queries):
    large = challenge(260, part="valid", market=2, seed=4)
    assert challenge(n_queries, part="valid", market=2, seed=4).equals(large[:n_queries])


def test_parts_markets_and_seeds_differ_and_ids_never_meet():
    sets = [
        challenge(5, part=part, market=market, seed=seed)
        for market in MARKETS
        for part in PARTS
        for seed in (0, 1)
    ]
    rows = [{row.tobytes() for row in data.X} for data in sets]
    assert all(not a & b for i, a in enumerate(rows) for b in rows[:i])
    # Ids count on through the parts: 1 + 19,944, and so on.
    assert [int(data.qids[0]) for data in sets[::2]] == [1, 19_945, 22_939, 29_922, 31_188, 32_454]


def test_the_same_bits_for_any_number_of_threads(on_threads):
    def bytes_of_data():
        data = challenge(450, part="test", seed=2)
        return data.X.tobytes() + data.y.tobytes()

    assert len(set(on_threads(bytes_of_data).values())) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"market": 3}, "market must be a whole number from 1 to 2; got 3"),
        ({"part": "dev"}, "part must be one of 'train', 'valid', 'test'; got 'dev'"),
        ({"n_queries": 0}, "n_queries must be a whole number from 1 to 19944; got 0"),
        ({"n_queries": 19_945}, "n_queries must be a whole number from 1 to 19944"),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1"),
    ],
)
def test_wrong_arguments(options, sentence):
    with pytest.raises(UsageError, match=sentence):
        challenge(**({"n_queries": 3} | options))
