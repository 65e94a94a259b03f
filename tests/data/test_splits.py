"""Parts and folds: every query once, and never apart from its samples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import DataError, UsageError
from rankinite.core.random import generator
from rankinite.data.concat import concat
from rankinite.data.ranking_data import RankingData
from tests.data.cases import simple


@settings(deadline=None)
@given(n_queries=st.integers(1, 30), parts=st.integers(1, 30), seed=st.integers(0, 99))
def test_split_into_equal_parts(n_queries, parts, seed):
    data = simple(n_queries)
    if parts > n_queries:
        with pytest.raises(UsageError, match="too few"):
            data.split(parts, seed=seed)
        return
    pieces = data.split(parts, seed=seed)
    sizes = [len(piece) for piece in pieces]
    assert len(pieces) == parts
    assert max(sizes) - min(sizes) <= 1
    assert sorted(q for piece in pieces for q in piece.qids) == data.qids.tolist()
    assert all(piece.matrix is data.matrix for piece in pieces)
    again = data.split(np.int64(parts), seed=seed)
    assert all(piece.equals(repeated) for piece, repeated in zip(pieces, again, strict=True))


def test_split_is_seeded_and_proportional():
    data = simple(100)
    orders = {tuple(concat(data.split(4, seed=seed)).qids) for seed in range(20)}
    assert len(orders) == 20
    proportions = np.array([6.0, 2, 2])
    for shares in ([0.6, 0.2, 0.2], [3, 1, 1], proportions):
        assert [len(part) for part in data.split(shares)] == [60, 20, 20]
    assert proportions.tolist() == [6, 2, 2]


@pytest.mark.parametrize(
    "parts", [0, -1, True, 2.0, None, [], [0.5, 0], [1, np.nan], "ab", [9, 1], [1e308, 1e308]]
)
def test_bad_splits(parts):
    with pytest.raises(UsageError, match=r"^split: "):
        simple(4).split(parts)


def test_folds():
    data = simple(7)
    pairs = list(data.folds(3, seed=5))
    parts = data.split(3, seed=5)
    assert [valid.qids.tolist() for _, valid in pairs] == [part.qids.tolist() for part in parts]
    for train, valid in pairs:
        assert sorted([*train.qids, *valid.qids]) == data.qids.tolist()
        assert train.matrix is valid.matrix is data.matrix
    with pytest.raises(UsageError, match="folds: n must be a whole number of at least 2"):
        next(data.folds(1))


def test_ten_folds_unless_asked_otherwise():
    pairs = list(simple(20).folds())
    assert [(len(train), len(valid)) for train, valid in pairs] == [(18, 2)] * 10


@pytest.mark.parametrize("qids", [[3, 1, 2, 9, 5, 7, 4], list("cabxyzw")])
def test_a_split_is_a_permutation_cut_in_pieces(qids):
    """Without samples it is queries that are shuffled: seed and name give the permutation."""
    data = RankingData(np.zeros((7, 1)), np.zeros(7), qids)
    order = generator(4, "split").permutation(7)
    # 7 queries by 0.5, 0.3, 0.2: the cuts are at 3.5 (half to even: 4) and 5.6.
    expected = [order[:4], order[4:6], order[6:]]
    parts = data.split([0.5, 0.3, 0.2], seed=4)
    for part, queries in zip(parts, expected, strict=True):
        assert part.equals(data[queries])
    for k, (train, valid) in enumerate(data.folds(3, seed=4)):
        parts = data.split(3, seed=4)
        assert valid.equals(parts[k])
        assert train.equals(concat(parts[:k] + parts[k + 1 :]))


def sampled(n_queries: int, n_samples: int = 3) -> RankingData:
    """Return queries q0, q1, ... of two documents, with samples of one anywhere among them."""
    qids = [f"q{k}" for k in range(n_queries) for _ in range(2)]
    qids += [f"q{k}~{s}" for s in range(1, n_samples + 1) for k in range(n_queries)]
    return RankingData(np.arange(float(len(qids)))[:, None], np.zeros(len(qids)), qids)


def origin_of(qid: str) -> str:
    return str(qid).partition("~")[0]


@settings(deadline=None)
@given(n_queries=st.integers(2, 20), parts=st.integers(2, 20), seed=st.integers(0, 99))
def test_splits_keep_samples_with_their_query(n_queries, parts, seed):
    data = sampled(n_queries)
    data = data[np.random.default_rng(seed).permutation(len(data))]
    if parts > n_queries:
        with pytest.raises(UsageError, match=f"split: {n_queries} queries are too few"):
            data.split(parts, seed=seed)
        return
    pieces = data.split(parts, seed=seed)
    held = [{origin_of(qid) for qid in piece.qids} for piece in pieces]
    assert sum(len(names) for names in held) == n_queries
    assert set().union(*held) == {f"q{k}" for k in range(n_queries)}
    assert max(len(names) for names in held) - min(len(names) for names in held) <= 1
    assert sorted(q for piece in pieces for q in piece.qids) == sorted(data.qids)
    for piece in pieces:
        # A query, then its samples as they stood in the data, then the next.
        names = [origin_of(qid) for qid in piece.qids]
        for name in dict.fromkeys(names):
            samples = [qid for qid in data.qids if origin_of(qid) == name and qid != name]
            place = names.index(name)
            assert piece.qids[place : place + 1 + len(samples)].tolist() == [name, *samples]


@settings(deadline=None)
@given(n_queries=st.integers(3, 20), seed=st.integers(0, 99))
def test_folds_validate_on_originals(n_queries, seed):
    data = sampled(n_queries)
    seen: list[str] = []
    for train, valid in data.folds(3, seed=seed):
        assert not any("~" in qid for qid in valid.qids)
        origins = {origin_of(qid) for qid in train.qids}
        assert origins.isdisjoint(valid.qids)
        assert len(train) == 4 * len(origins)
        assert len(origins) + len(valid) == n_queries
        assert train.matrix is valid.matrix is data.matrix
        seen += valid.qids.tolist()
    assert sorted(seen) == sorted(data.originals.qids)


def test_folds_of_samples_alone_are_refused():
    data = sampled(6)
    sentence = r"fold \d of 3 has only samples to validate on.* the data lack the original queries"
    with pytest.raises(DataError, match=sentence):
        data[6:].folds(3)
    with pytest.raises(DataError, match=sentence):
        data[4:].folds(3)  # two originals for three folds
