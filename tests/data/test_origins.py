"""Which queries are samples of the same one."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.data.origins import origins

CASES = [
    ([3, 1, 2], [0, 1, 2]),
    (["a", "b", "c"], [0, 1, 2]),
    (["a", "a~1", "a~2", "b", "b~10"], [0, 0, 0, 1, 1]),
    (["a~1", "b~1", "a~2"], [0, 1, 0]),  # a and b themselves are in another part
    (["a~1~2", "a~1", "a"], [0, 1, 1]),  # the second sample of the first sample
    (["~1", "~2", "1~", "a~b", "a~-1", "a~1 "], [0, 1, 2, 3, 4, 5]),  # no samples at all
    (["a\n~1", "a\n"], [0, 0]),
]


@pytest.mark.parametrize(("qids", "expected"), CASES, ids=str)
def test_samples_have_the_number_of_their_query(qids, expected):
    assert origins(np.array(qids)).tolist() == expected
    assert origins(np.array(qids, dtype=object)).tolist() == expected


def test_data_sets_tell_them():
    data = rk.RankingData(np.zeros((5, 1)), np.zeros(5), qid=["7", "7", "9", "7~1", "7~1"])
    assert data.origins.tolist() == [0, 1, 0]
    assert data[1:].origins.tolist() == [0, 1]
    assert data[[0, 2]].origins.tolist() == [0, 0]
