"""Which queries are samples of the same one."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.data.splits import are_samples, first_sample, origins

CASES = [
    ([3, 1, 2], [0, 1, 2]),
    (["a", "b", "c"], [0, 1, 2]),
    (["a", "a~1", "a~2", "b", "b~10"], [0, 0, 0, 1, 1]),
    (["a~1", "b~1", "a~2"], [0, 1, 0]),  # a and b themselves are in another part
    (["a~1~2", "b", "a~1", "a"], [0, 1, 0, 0]),  # a sample of a sample shares documents with a
    (["12~٣", "12"], [0, 0]),  # three
    (["~1", "~2", "1~", "a~b", "a~-1", "a~1 "], [0, 1, 2, 3, 4, 5]),  # no samples at all
    (["a\n~1", "a\n"], [0, 0]),
]


@pytest.mark.parametrize(("qids", "expected"), CASES, ids=str)
def test_samples_have_the_number_of_their_query(qids, expected):
    assert origins(np.array(qids)).tolist() == expected
    assert origins(np.array(qids, dtype=object)).tolist() == expected


@pytest.mark.parametrize(
    ("qids", "expected"),
    [
        ([3, 1], [False, False]),
        (["a", "a~1", "b~10", "a~1~2"], [False, True, True, True]),
        (["~1", "1~", "a~b", "a~-1", "a~1 ", ""], [False] * 6),
    ],
)
def test_samples_are_known_by_their_id(qids, expected):
    assert are_samples(np.array(qids)).tolist() == expected
    assert first_sample(np.array(qids)) == ("a~1" if any(expected) else None)


def test_data_sets_tell_them():
    data = rk.RankingData(np.zeros((5, 1)), np.zeros(5), qid=["7", "7", "9", "7~1", "7~1"])
    assert data.origins.tolist() == [0, 1, 0]
    assert data[1:].origins.tolist() == [0, 1]
    assert data[[0, 2]].origins.tolist() == [0, 0]
    assert data.origin.tolist() == [0, 0, 1, 0, 0]
    assert data[1:].origin.tolist() == [0, 1, 1]


def test_originals():
    plain = rk.RankingData(np.zeros((3, 1)), np.zeros(3), qid=[7, 7, 9])
    assert plain.originals is plain
    more = rk.RankingData(np.zeros((5, 1)), np.zeros(5), qid=["7~1", "7", "7", "9", "9~2"])
    assert more.originals.equals(more[[1, 2]])
    assert more.originals.matrix is more.matrix
    sentence = "originals: all queries are samples, such as '7~1'; the queries that they"
    with pytest.raises(rk.DataError, match=sentence):
        _ = more[[0, 3]].originals
