"""Queries of documents by qid, by group, or all in one."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.data.queries import query_ids, query_numbers


def test_the_three_ways():
    assert query_ids("it", 3, ["b", "a", "b"]).tolist() == ["b", "a", "b"]
    assert query_ids("it", 5, None, [2, 1, 2]).tolist() == [1, 1, 2, 3, 3]
    assert query_ids("it", 3, 0).tolist() == [0, 0, 0]
    assert query_ids("it", 2, np.int64(7)).tolist() == [7, 7]


@pytest.mark.parametrize(
    ("qid", "group", "sentence"),
    [
        (None, None, "it: requires qid, the query of every document; give qid, or group, the siz"),
        ([1, 1, 2], [2, 1], "it: qid and group were both given; give one of the two"),
        ("query", None, "it: qid is the text 'query'; give the column itself"),
        (None, [2, 2], "it: group: they add up to 4, but there are 3 documents"),
        (None, [3, 0], "it: group: query 1 has size 0; expected a whole number above 0"),
        (None, 3, "it: group: expected one size per query"),
    ],
)
def test_what_is_refused(qid, group, sentence):
    with pytest.raises((rk.DataError, rk.UsageError), match=sentence):
        query_ids("it", 3, qid, group)


def test_numbers_of_queries():
    data = rk.RankingData([[1.0]] * 3, [0, 1, 0], ["b", "a", "a"])
    assert query_numbers("it", data, 3, None).tolist() == [0, 1, 1]
    assert query_numbers("it", data.X, 3, data.qid).tolist() == [1, 0, 0]
    assert query_numbers("it", data.X, 3, 0).tolist() == [0, 0, 0]
    with pytest.raises(rk.UsageError, match="it: a score depends on the whole query; give predi"):
        query_numbers("it", data.X, 3, None)
    with pytest.raises(rk.UsageError, match="it: qid has 2 values for 3 documents"):
        query_numbers("it", data.X, 3, [1, 2])
