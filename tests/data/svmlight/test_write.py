"""Writing SVMlight text: what is written is read back to the bit, by us and by others."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_svmlight_file

from rankinite.data.formats import load, save
from rankinite.data.ranking_data import RankingData
from rankinite.data.svmlight import kernels, read_svmlight, write, write_svmlight

NAN = float("nan")
# Zeros, the smallest numbers, the largest denormal, the smallest normal, the largest, and NaN.
EXTREMES = np.array(
    [0x0, 0x80000000, 0x1, 0x80000001, 0x7FFFFF, 0x800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7FC00000],
    np.uint32,
).view(np.float32)


def written(data: RankingData, name: str = "out.txt") -> RankingData:
    write_svmlight(data, name)
    return read_svmlight(name)


def plain(X: Any, **more: Any) -> RankingData:
    n_docs = len(X)
    return RankingData(X=X, **({"y": [1] * n_docs, "qid": [1] * n_docs} | more))


def random_bits(seed: int, n: int) -> np.ndarray:
    bits = np.random.default_rng(seed).integers(0, 2**32, n, dtype=np.uint32)
    values = bits.view(np.float32)
    return np.where(np.isfinite(values), values, np.float32(0))


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_every_bit_of_the_features_survives(name: str) -> None:
    X = np.concatenate([EXTREMES, -EXTREMES[:-1], random_bits(1, 40_000)])[:40_000].reshape(-1, 8)
    back = written(plain(X), name)
    np.testing.assert_array_equal(back.X.view(np.uint32), X.view(np.uint32))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(st.floats(width=32, allow_infinity=False), min_size=1, max_size=30))
def test_any_float32_survives(values: list[float]) -> None:
    X = np.array([values], np.float32)
    X[np.isnan(X)] = np.nan
    assert written(plain(X)).equals(plain(X))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(st.lists(st.floats(min_value=0, allow_infinity=False), min_size=1, max_size=30))
def test_any_label_survives(labels: list[float]) -> None:
    data = plain(np.ones((len(labels), 2)), y=labels)
    back = written(data)
    np.testing.assert_array_equal(back.y.view(np.uint64), data.y.view(np.uint64))
    assert back.equals(data)


@pytest.mark.parametrize(
    "X",
    [
        [[0, 0, 0]],
        [[0, 1, 0], [0, 0, 0]],
        [[-0.0, 0, -0.0], [1, 2, 0]],
        [[0, 0, 0], [0, 0, 5]],
        [[NAN, 0], [0, NAN]],
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_features_that_are_all_zero_survive(X: Any, first: int) -> None:
    data = plain(X, feature_names=[str(first + j) for j in range(len(X[0]))])
    assert written(data).equals(data)
    assert not Path("out.txt").read_text().startswith("#")


def test_the_text_is_plain_and_short() -> None:
    rows = [[0.5, 0, 3], [0, 0, -0.25]]
    write_svmlight(plain(rows, y=[2, 0.1], qid=[7, -3], comments=[" a x", ""]), "out.txt")
    expected = b"2 qid:7 1:0.5 3:3 # a x\n0.1 qid:-3 3:-0.25\n"
    assert Path("out.txt").read_bytes() == expected


@pytest.mark.parametrize(
    "more",
    [
        {"doc_ids": ["a", "b", "c"]},
        {"doc_ids": ["a", "", "c"]},
        {"doc_ids": ["a b", "#", "\n"]},
        {"comments": ["x", "", " y # z "]},
        {"comments": ["", "", ""]},
        {"comments": ["docid = 1", "", ""]},
        {"comments": ["a\nb", "c\r", "\0"]},
        {"comments": ["\xe9\u2028", "\v", '["", ""]']},
        {"comments": ["x", "y", "z"], "doc_ids": ["1", "2", "3"]},
        {"labels": {"clicks": [0.1, NAN, 3e-300]}},
        {"labels": {"a b": [1, 2, 3], "\xe9": [NAN, NAN, NAN]}, "doc_ids": ["1", "2", "3"]},
        {"query_weight": [0.1, 2]},
        {"feature_names": ["b", "a"]},
        {"feature_names": ["2", "1"]},
        {"feature_names": ["\xe9\n", '"']},
        {"top_grade": 4.1},
        {"qid": ["x", "x", "y\n"]},
        {"qid": [-(2**63), -(2**63), 2**63 - 1]},
        {"qid": [5, 3, 5], "group": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_what_svmlight_cannot_hold_survives(more: dict[str, Any], name: str) -> None:
    rows = [[0, 1], [2, 0], [0, 0]]
    data = plain(rows, **({"y": [0, 1, 2], "qid": [1, 1, 2]} | more))
    back = written(data, name)
    assert back.equals(data)
    assert back.qids.dtype.kind == data.qids.dtype.kind


def test_parts_of_a_set_are_written_by_themselves() -> None:
    X = random_bits(2, 60).reshape(20, 3)
    data = plain(X, qid=np.repeat([4, 9, 2, 7], 5), doc_ids=[f"d{i}" for i in range(20)])
    part = data[[2, 0]]
    assert written(part).equals(part)
    assert written(part).qids.tolist() == [2, 4]


def test_the_blocks_of_the_writer_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    data = plain(random_bits(3, 300).reshape(60, 5), comments=[str(i) for i in range(60)])
    save(data, "whole.txt")
    monkeypatch.setattr(write, "VALUES_A_BLOCK", 7)
    save(data, "blocks.txt")
    assert Path("blocks.txt").read_bytes() == Path("whole.txt").read_bytes()
    assert load("blocks.txt").equals(data)


def test_gzip_is_the_same_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    data = plain(random_bits(4, 3000).reshape(300, 10))
    write_svmlight(data, "one.txt.gz")
    monkeypatch.setattr("time.time", lambda: 1e9)
    write_svmlight(data, "two.gz")
    write_svmlight(data, "plain.txt")
    assert Path("one.txt.gz").read_bytes() == Path("two.gz").read_bytes()
    assert gzip.decompress(Path("two.gz").read_bytes()) == Path("plain.txt").read_bytes()


class StopError(Exception):
    """Somebody pulls the plug."""


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("stop", [StopError, KeyboardInterrupt])
def test_an_interrupted_write_leaves_the_old_file(
    name: str, after: int, stop: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = plain(random_bits(5, 40).reshape(20, 2))
    write_svmlight(data[:1], name)
    before = Path(name).read_bytes()
    calls = []
    original = kernels.write_lines

    def failing(*arguments: Any) -> None:
        calls.append(1)
        if len(calls) > after:
            raise stop
        original(*arguments)

    monkeypatch.setattr(write, "VALUES_A_BLOCK", 8)
    monkeypatch.setattr(kernels, "write_lines", failing)
    with pytest.raises(stop):
        write_svmlight(data, name)
    assert len(calls) == after + 1
    assert Path(name).read_bytes() == before
    assert [path.name for path in Path().iterdir()] == [name]


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_sklearn_reads_the_same(name: str) -> None:
    rng = np.random.default_rng(6)
    X = random_bits(7, 2000).reshape(200, 10) * (rng.random((200, 10)) < 0.6)
    data = plain(X, y=rng.random(200).round(3), qid=np.arange(200) // 9, doc_ids=[*"ab"] * 100)
    write_svmlight(data, name)
    features, labels, qids = load_svmlight_file(
        name, n_features=10, query_id=True, dtype=np.float64, zero_based=False
    )
    np.testing.assert_array_equal(features.toarray().astype(np.float32), data.X)
    np.testing.assert_array_equal(labels, data.y)
    np.testing.assert_array_equal(qids, data.qid)
