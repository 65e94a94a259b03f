"""Samples of queries' documents."""

from __future__ import annotations

import itertools
import logging
import math
from decimal import ROUND_HALF_UP, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankinite as rk
from rankinite.core.random import generator
from rankinite.data import augment as module
from rankinite.data.augment import augment


def make(grades, qids=None, **more) -> rk.RankingData:
    """Return a data set of one list of labels a query; the feature counts the documents."""
    sizes = [len(own) for own in grades]
    y = list(itertools.chain(*grades))
    names = list(range(1, len(grades) + 1)) if qids is None else qids
    X = np.arange(float(len(y)))[:, None]
    return rk.RankingData(X, y, np.repeat(np.array(names), sizes), **more)


def rounded(fraction: float, n: int) -> int:
    return int((Decimal(str(fraction)) * n).quantize(Decimal(1), ROUND_HALF_UP))


def naive(data: rk.RankingData, fraction: float, times: int, seed: int) -> dict[str, list[int]]:
    """Return the documents of every query and sample by id, drawn one by one."""
    found = {}
    for q, qid in enumerate(data.qids.tolist()):
        docs = list(range(data.offsets[q], data.offsets[q + 1]))
        found[str(qid)] = docs
        size = rounded(fraction, len(docs))
        rng = generator(seed, "augment", str(fraction), str(qid))
        for k in range(1, times + 1):
            draws = rng.random(len(docs)).tolist()
            smallest = sorted(zip(draws, docs, strict=True))[:size]
            sample = sorted(doc for _, doc in smallest)
            if len({data.y[doc] for doc in sample}) > 1:
                found[f"{qid}~{k}"] = sample
    return found


def docs_of(data: rk.RankingData) -> dict[str, list[int]]:
    """Return the documents of every query, which the feature tells, by id."""
    return {str(query.qids[0]): query.X[:, 0].astype(int).tolist() for query in data}


queries = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=12), min_size=1, max_size=8)
fractions = st.floats(0.01, 0.99).map(lambda share: round(share, 2))


@settings(deadline=None)
@given(queries, fractions, st.integers(1, 6), st.integers(0, 9), st.booleans())
def test_the_naive_twin_draws_the_same(labels, fraction, times, seed, as_texts):
    data = make(labels, [f"q {k}" for k in range(len(labels))] if as_texts else None)
    more = augment(data, fraction, times, seed=seed)
    expected = naive(data, fraction, times, seed)
    assert more.qids.tolist() == list(expected)  # the order, too: samples behind their query
    assert docs_of(more) == expected
    assert more.matrix is data.matrix
    first = more.X[more.offsets[:-1], 0]
    assert more.origins.tolist() == (np.searchsorted(data.offsets, first, "right") - 1).tolist()


def test_blocks_of_queries_change_nothing(monkeypatch):
    data = make([[0, 1, 2, 0, 1]] * 9 + [[0, 1, 1]] * 9)
    whole = augment(data, 0.6, 4)
    monkeypatch.setattr(module, "DRAWS_A_BLOCK", 50)
    assert augment(data, 0.6, 4).equals(whole)


@pytest.mark.parametrize(
    ("fraction", "n", "size"),
    # Halves go up: 3.5, 4.5, 14.5; and 14.5 is what 0.29 of 50 is, though not in doubles.
    [(0.7, 5, 4), (0.5, 9, 5), (0.29, 50, 15), (0.7, 10, 7), (0.34, 10, 3), (0.5, 4, 2)],
)
def test_sizes(fraction, n, size):
    more = augment(make([range(n)]), fraction, 3)
    assert more.sizes.tolist() == [n, size, size, size]


@settings(deadline=None)
@given(queries, fractions, st.integers(0, 9))
def test_samples_are_parts_of_their_query(labels, fraction, seed):
    data = make(labels)
    whole = docs_of(data)
    for qid, docs in docs_of(augment(data, fraction, 4, seed=seed)).items():
        own = whole[qid.partition("~")[0]]
        assert docs == own or "~" in qid
        assert set(docs) <= set(own)
        assert docs == sorted(set(docs))  # each once, in the order of the query


def test_what_teaches_nothing_is_left_out_and_counted(caplog):
    caplog.set_level(logging.INFO, "rankinite")
    # Half of the first and second query is one document; the third has one label. The last has
    # no label three times, so that any three documents of it differ.
    data = make([[1], [0, 1], [2, 2, 2, 2], [0, 0, 1, 1, 2]])
    more = augment(data, 0.5, 3)
    assert more.qids.tolist() == ["1", "2", "3", "4", "4~1", "4~2", "4~3"]
    sentence = "augment: 9 of 12 samples are left out: fewer than two documents, or one label only"
    assert sentence in caplog.text
    caplog.clear()
    augment(data[3], 0.5, 3)
    assert "left out" not in caplog.text


def test_a_left_out_sample_leaves_a_gap():
    data = make([[0, 1, 1, 1]])  # half of the samples of two lack the 0
    numbers = [int(qid.partition("~")[2]) for qid in augment(data, 0.5, 40).qids[1:]]
    assert len(numbers) < 40
    assert max(numbers) > len(numbers)
    assert numbers == sorted(numbers)


def test_so_many_are_left_out_as_chance_says():
    """Of n documents, k of them drawn, C(n_0, k) / C(n, k) have label 0 only, and so on."""
    labels, size, n_queries, times = [0] * 6 + [1] * 3 + [4], 3, 200, 10
    chance = sum(math.comb(labels.count(grade), size) for grade in (0, 1, 4)) / math.comb(10, size)
    n_drawn = n_queries * times
    more = augment(make([labels] * n_queries), 0.3, times)
    left_out = n_drawn - (more.n_queries - n_queries)
    # (20 + 1 + 0) / 120 of 2,000 are 350, with a standard deviation of 17.
    assert abs(left_out - n_drawn * chance) < 5 * math.sqrt(n_drawn * chance * (1 - chance))


def test_every_document_is_drawn_as_often():
    data = make([[0, 1, 2, 3, 4, 5]] * 500)
    samples = np.concatenate([q.X[:, 0] for q in augment(data, 0.5, 8) if "~" in q.qids[0]])
    counts = np.bincount(samples.astype(int) % 6, minlength=6)
    # 4,000 samples have each document with a chance of 1/2: a standard deviation of 32.
    assert (np.abs(counts - 2000) < 5 * 32).all()


@pytest.mark.parametrize(("fraction", "times"), [(0.7, 5), (0.5, 10)])
def test_the_sizes_of_aug70_and_aug50(fraction, times):
    """Queries with no label on more than a third of 24 documents lose no sample."""
    more = augment(make([[0, 1, 2] * 8] * 50), fraction, times)
    assert more.n_queries == 50 + 50 * times
    assert more.n_docs == 50 * (24 + times * rounded(fraction, 24))


def test_the_same_whatever_other_queries_there_are():
    data = make([[0, 1, 2, 3, 4, 0, 1]] * 6, list("abcdef"))
    whole = docs_of(augment(data, 0.6, 5, seed=3))
    for chosen in ([4], [5, 0, 2], slice(None, None, -1)):
        part = docs_of(augment(data[chosen], 0.6, 5, seed=3))
        assert part == {qid: docs for qid, docs in whole.items() if qid in part}
        assert len(part) == 6 * len(data[chosen])


def test_the_same_for_numbers_and_texts():
    labels = [[0, 1, 2, 3]] * 5
    one, other = make(labels), make(labels, [str(k) for k in range(1, 6)])
    assert augment(one, 0.5, 3).equals(augment(other, 0.5, 3))


def test_more_samples_keep_the_first():
    data = make([[0, 1, 2, 3, 4, 0, 1]] * 3)
    few, many = docs_of(augment(data, 0.6, 2)), docs_of(augment(data, 0.6, 7))
    assert few.items() <= many.items()


def test_seeds_and_fractions_draw_anew():
    data = make([range(20)] * 5)
    drawn = {s: docs_of(augment(data, 0.5, 4, seed=s)) for s in range(5)}
    assert docs_of(augment(data, 0.5, 4)) == drawn[0]
    assert len({str(found) for found in drawn.values()}) == 5
    assert not any(
        set(docs) <= set(docs_of(augment(data, 0.7, 4))[qid])
        for qid, docs in drawn[0].items()
        if "~" in qid
    )


def test_everything_goes_along():
    data = make(
        [[0, 1, 2], [3, 0, 1, 2], [1]],
        labels={"clicks": np.arange(10, 18)},
        query_weight=[1, 2, 3],
        doc_ids=list("abcdefgh"),
        comments=list("ABCDEFGH"),
        feature_names=["bm25"],
        top_grade=7,
    )
    turned = data[::-1]  # an index into the matrix, and so is what is made of it
    for given_data in (data, turned):
        more = augment(given_data, 0.7, 3)
        docs = more.X[:, 0].astype(int)
        assert (more.y == data.y[docs]).all()
        assert (more.labels["clicks"] == docs + 10).all()
        assert "".join(more.doc_ids) == "".join("abcdefgh"[doc] for doc in docs)
        assert "".join(more.comments) == "".join("ABCDEFGH"[doc] for doc in docs)
        weight_of = {"1": 1, "2": 2, "3": 3}
        assert more.query_weight.tolist() == [weight_of[qid[0]] for qid in more.qids]
        assert (more.feature_names, more.top_grade) == (("bm25",), 7)
        assert more.matrix is data.matrix
        assert more.originals.X.tolist() == given_data.X.tolist()
    assert docs_of(augment(turned, 0.7, 3)) == docs_of(augment(data, 0.7, 3))


@pytest.mark.parametrize("suffix", ["txt", "txt.gz", "parquet"])
def test_saving_goes_by_blocks_and_comes_back(suffix, monkeypatch):
    more = augment(make([[0, 1, 2, 3]] * 20, query_weight=np.arange(20)), 0.5, 5)

    def refused(_data):
        raise AssertionError("the whole matrix was copied out")

    with monkeypatch.context() as patched:
        patched.setattr(rk.RankingData, "X", property(refused))
        rk.save(more, f"more.{suffix}")
    back = rk.load(f"more.{suffix}")
    assert back.equals(more)
    assert back.origins.tolist() == more.origins.tolist()


def test_samples_are_not_sampled_again():
    more = augment(make([[0, 1, 2, 3]] * 3))
    sentence = r"augment: the data hold samples, such as '1~1' .*; augment the original data"
    with pytest.raises(rk.DataError, match=sentence):
        augment(more)
    assert augment(more.originals).equals(more)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        *(({"fraction": f}, "fraction must be") for f in (0, 1, 1.0, -0.1, 70, math.nan, "0.5")),
        *(({"times": t}, "times must be a whole number of at least 1") for t in (0, -1, 2.0, None)),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_wrong_parameters(wrong, sentence):
    with pytest.raises(rk.UsageError, match=sentence):
        augment(make([[0, 1, 2, 3]]), **wrong)
