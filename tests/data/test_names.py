import pickle
import tracemalloc

import numpy as np
import pytest

import rankinite as rk
from rankinite.data.names import MOST_TEXTS, NumberedNames, numbered_names


@pytest.mark.parametrize(("n", "first"), [(0, 1), (1, 1), (12, 0), (12, 1)])
def test_they_are_like_the_tuple(n, first):
    names, texts = NumberedNames(n, first), tuple(str(first + j) for j in range(n))
    assert tuple(names) == texts
    assert names == texts
    assert texts == names
    assert names == NumberedNames(n, first)
    assert names != (*texts, "x")
    assert names != NumberedNames(n + 1, first)
    assert hash(names) == hash(texts)
    assert len(names) == n
    assert [names[j] for j in range(-n, n)] == [*texts, *texts]
    assert names[2:9:3] == texts[2:9:3]
    for name in ("0", "1", "11", "12", "13", "-1", "01", "+1", "\u0661", "x", "", 1, None):
        assert (name in names) == (name in texts)
    assert pickle.loads(pickle.dumps(names)) == names
    with pytest.raises(IndexError):
        names[n]


def test_few_names_are_a_tuple():
    assert numbered_names(3) == ("1", "2", "3")
    assert isinstance(numbered_names(3), tuple)
    assert isinstance(numbered_names(MOST_TEXTS + 1), NumberedNames)


def test_a_short_file_with_a_large_feature(tmp_path):
    path = tmp_path / "wide.txt"
    path.write_text("1 qid:1 3000000:1\n")
    tracemalloc.start()
    try:
        data = rk.load(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert data.n_features == 3_000_000
    assert data.feature_names[-1] == "3000000"
    assert np.flatnonzero(data.X).tolist() == [2_999_999]
    # Two rows of 32-bit floats; a text for each feature would take 150 MB more.
    assert peak < 60e6
