"""Reading SVMlight text: every number to the bit, whatever the blocks, endings and companions."""

import gzip
import logging
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import UsageError
from rankinite.data import stream
from rankinite.data.formats import load
from rankinite.data.ranking_data import RankingData
from rankinite.data.svmlight import read, read_svmlight
from tests.naive import svmlight as naive_svmlight
from tests.naive.svmlight import float32s, random_numbers

NAN = float("nan")


def read_text(text: str | bytes, name: str = "data.txt", **options: Any) -> RankingData:
    path = Path(name)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_svmlight(path, **options)


def same_bits(values: np.ndarray, expected: Any) -> None:
    wanted = np.array(expected, values.dtype)
    integer = np.dtype(f"u{values.dtype.itemsize}")
    np.testing.assert_array_equal(values.view(integer), wanted.view(integer))


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("1:1 2:2 3:3", [1, 2, 3]),
        ("2:5", [0, 5]),
        ("3:0.25 1:-1.5", [-1.5, 0, 0.25]),
        ("1:1\t\t2:2 \f3:3\v\r", [1, 2, 3]),
        ("1:1#comment", [1]),
        ("1:nan 2:NaN 3:-NAN 4:+nan", [NAN, NAN, NAN, NAN]),
        ("1:1e3 2:1E-3 3:1e+2 4:1.5e0 5:1e00000", [1000, 0.001, 100, 1.5, 1]),
        ("1:.5 2:5. 3:-.5 4:+.5 5:-5.", [0.5, 5, -0.5, 0.5, -5]),
        ("1:007 2:-00.50 3:+1", [7, -0.5, 1]),
        ("01:1 0002:2 00000000000000000000003:3", [1, 2, 3]),
        ("1:-0 2:-0.0 3:0 4:-0e5 5:-1e-60 6:-1e-999", [-0.0, -0.0, 0, -0.0, -0.0, -0.0]),
        ("1:1e-45 2:1.1754942e-38 3:-1e-40", [1e-45, 1.1754942e-38, -1e-40]),
        # 7.006e-46 is just under half of the smallest float32, 2^-149 = 1.4013e-45.
        ("1:7.006e-46 2:7.007e-46", [0, 2.0**-149]),
        # The largest float32 is (2 - 2^-23) 2^127; what rounds to it may be a little larger.
        ("1:3.4028235677973362e38", [(2 - 2.0**-23) * 2.0**127]),
        ("1:" + "9" * 30 + " 2:0." + "3" * 30, [1e30, 1 / 3]),
        ("1:0." + "0" * 40 + "1e41 2:1" + "0" * 40 + "e-40", [1, 1]),
        # 2^24 + 1 lies in the middle of two float32s and goes to the even one.
        ("1:16777217 2:16777219 3:16777217.0000001", [2**24, 2**24 + 4, 2**24 + 2]),
        # Within 2^-54 of the middle, float64 rounds onto it, and float32 goes to the even one.
        ("1:1.00000005960464477539062500000001", [1]),
        ("1:0e99999 2:12345678 3:1234567.1234567", [0, 12345678, 1234567.125]),
    ],
)
def test_values(line: str, row: list[float]) -> None:
    data = read_text(f"0 qid:1 {line}\n")
    same_bits(data.X, [row])
    assert data.feature_names == tuple(str(j + 1) for j in range(len(row)))


@pytest.mark.parametrize("block", [64, 200, stream.BLOCK])
def test_numbers_in_many_forms(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK", block)
    texts = random_numbers(block, 6000)[:5000]
    rows = [texts[i : i + 10] for i in range(0, 5000, 10)]
    lines = [" ".join(f"{j}:{text}" for j, text in enumerate(row, 1)) for row in rows]
    data = read_text("".join(f"1 qid:1 {line}\n" for line in lines))
    same_bits(data.X, float32s(texts).reshape(500, 10))


DIGITS = st.text("0123456789", min_size=1, max_size=25)
DECIMALS = st.builds(
    "{}{}{}".format,
    st.sampled_from(["", "-", "+"]),
    DIGITS | st.builds("{}.{}".format, DIGITS, DIGITS) | DIGITS.map(".{}".format),
    st.just("")
    | st.integers(-70, 12).map("e{}".format)
    | st.integers(-400, 12).map("E{:+}".format),
)


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(DECIMALS, min_size=1, max_size=40))
def test_any_decimal_is_what_python_and_numpy_make_of_it(texts: list[str]) -> None:
    pairs = " ".join(f"{j}:{text}" for j, text in enumerate(texts, 1))
    same_bits(read_text(f"0 qid:1 {pairs}").X[0], float32s(texts))


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1))
def test_every_float32_survives(values: list[float]) -> None:
    texts = [f(value) for value in values for f in (repr, "{:.9g}".format, "{:.30e}".format)]
    pairs = " ".join(f"{j}:{text}" for j, text in enumerate(texts, 1))
    same_bits(read_text(f"0 qid:1 {pairs}").X[0], np.repeat(values, 3))


def test_labels_are_python_floats() -> None:
    texts = ["0", "4", "0.5", "1e-3", "+2", "-0", "1e300", "5e-324", "007", ".5", "3.", "1e-400"]
    texts += ["0.12345678901234567", "1.7976931348623157e308", "9007199254740993", "0." + "1" * 30]
    texts += [text.lstrip("-") for text in random_numbers(3, 4000)]
    data = read_text("".join(f"{text} qid:1 1:1\n" for text in texts))
    same_bits(data.y, [float(text) for text in texts])
    assert data.top_grade == max(map(float, texts))


@pytest.mark.parametrize("ending", ["\n", "\r\n", " \t\n", "\r\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_line_endings_blank_lines_and_comment_lines(ending: str, last: bool) -> None:
    lines = [
        "",
        "# a file",
        "1 qid:3 1:1",
        " \t",
        "0 qid:3 2:2",
        " # more \xe9",
        "2 qid:-1 1:3",
        "#",
    ]
    data = read_text(ending.join(lines[:-1]) + (ending + lines[-1] + ending if last else ""))
    same_bits(data.X, [[1, 0], [0, 2], [3, 0]])
    same_bits(data.y, [1, 0, 2])
    assert data.qids.tolist() == [3, -1]
    assert data.offsets.tolist() == [0, 2, 3]
    assert data.comments is None
    assert data.doc_ids is None


def test_comment_lines_may_hold_any_bytes() -> None:
    assert read_text(b"# \xff\n1 qid:1 1:1 # fine\n#\xff").comments.tolist() == [" fine"]


@pytest.mark.parametrize(
    ("remarks", "comments", "doc_ids"),
    [
        (["", ""], None, None),
        (["#", "#"], None, None),
        (["# a # b ", ""], [" a # b ", ""], None),
        (["#x\r", "#\xe9\0\u2028"], ["x", "\xe9\0\u2028"], None),
        (["#docid = A", "# docid=B \t"], None, ["A", "B"]),
        (["#docid = A", ""], ["docid = A", ""], ["A", ""]),
        (["#docid = A inc = 1", "#docid = B"], ["docid = A inc = 1", "docid = B"], ["A", "B"]),
        (["#mydocid = A docid =\tB", "#docid ="], ["mydocid = A docid =\tB", "docid ="], ["B", ""]),
        (["#\vdocid\v=\vA\vx", "#"], ["\vdocid\v=\vA\vx", ""], ["A", ""]),
        (["#docidA", "#DOCID = A"], ["docidA", "DOCID = A"], None),
    ],
)
@pytest.mark.parametrize("block", [20, stream.BLOCK])
def test_comments_and_document_ids(
    remarks: list[str], comments: Any, doc_ids: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCK", block)
    text = "".join(f"1 qid:1 1:1 {remark}\n" for remark in remarks)
    data = read_text(text)
    assert (None if data.comments is None else data.comments.tolist()) == comments
    assert (None if data.doc_ids is None else data.doc_ids.tolist()) == doc_ids
    without = read_text(text, comments=False)
    assert without.comments is None
    assert without.doc_ids is None
    same_bits(without.X, data.X)


def test_without_comments_any_bytes_may_stand_there() -> None:
    assert read_text(b"1 qid:1 1:1 # \xff\xfe\n", comments=False).n_docs == 1


@pytest.mark.parametrize("name", ["inc", "a-b", "x.y", "\xe9", "a b"])
def test_label_sources_from_comments(name: str) -> None:
    lines = [f"1 qid:1 1:1 #docid = A {name} = 2.5 prob = 0.1", "0 qid:1 1:2 # other = 1"]
    data = read_text("\n".join([*lines, f"0 qid:2 1:3 #{name}=nan", f"2 qid:2 1:4 # {name}\t=.5 "]),
                     labels=[name])  # fmt: skip
    np.testing.assert_array_equal(data.labels[name], [2.5, NAN, NAN, 0.5])
    assert read_text(lines[0], labels=[name, "prob"]).labels["prob"].tolist() == [0.1]


def test_documents_apart_are_brought_together() -> None:
    lines = [
        "1 qid:7 1:1 #a",
        "2 qid:5 1:2 #b",
        "3 qid:7 1:3 #c x = 1",
        "0 qid:5 1:4 #d",
        "0 qid:6 1:5",
    ]
    data = read_text("\n".join(lines), group=True, labels=["x"])
    assert data.qids.tolist() == [7, 5, 6]
    assert data.offsets.tolist() == [0, 2, 4, 5]
    same_bits(data.X, [[1], [3], [2], [4], [5]])
    same_bits(data.y, [1, 3, 2, 0, 0])
    assert data.comments.tolist() == ["a", "c x = 1", "b", "d", ""]
    np.testing.assert_array_equal(data.labels["x"], [NAN, 1, NAN, NAN, NAN])


def test_feature_0_makes_columns_start_there(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "rankinite"):
        data = read_text("1 qid:1 0:5 2:7\n2 qid:1 1:6\n")
    same_bits(data.X, [[5, 0, 7], [0, 6, 0]])
    assert data.feature_names == ("0", "1", "2")
    assert "numbered from 0" in caplog.text
    same_bits(read_text("1 qid:1 0:5\n").X, [[5]])


@pytest.mark.parametrize("block", [16, 64, 200, stream.BLOCK])
@pytest.mark.parametrize("late", ["0:9", "40:9", "0:9 40:8", "1000:1 0:3"])
def test_features_that_come_late(block: int, late: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK", block)
    text = "".join(f"1 qid:1 1:{i} 3:-{i} # {i}\n" for i in range(60)) + f"2 qid:1 {late}\n"
    text = "\n# nothing yet\n2 qid:1\n" + text + "".join(f"0 qid:2 2:{i}\n\n" for i in range(60))
    naive_svmlight.assert_same(read_text(text), naive_svmlight.read(text.encode()))


@pytest.mark.parametrize(
    ("text", "n_features", "expected"),
    [
        ("1 qid:1 1:5\n", 3, [[5, 0, 0]]),
        ("1 qid:1\n2 qid:1\n", 2, [[0, 0], [0, 0]]),
        ("1 qid:1 0:5 2:6\n", 3, [[5, 0, 6]]),
        ("1 qid:1 1:5\n1 qid:1 0:6 2:7\n", 4, [[0, 5, 0, 0], [6, 0, 7, 0]]),
        ("1 qid:1 2:5 # a line that fills a block\n1 qid:1 0:6\n", 3, [[0, 0, 5], [6, 0, 0]]),
    ],
)
@pytest.mark.parametrize("block", [16, stream.BLOCK])
def test_n_features(
    text: str, n_features: int, expected: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCK", block)
    same_bits(read_text(text, n_features=n_features).X, expected)


def test_top_grade(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "rankinite"):
        assert read_text("1 qid:1 1:5\n3 qid:1 1:5").top_grade == 3
    assert "top grade is taken to be 3" in caplog.text
    assert read_text("1 qid:1 1:5", top_grade=4).top_grade == 4
    with pytest.raises(UsageError, match="top_grade"):
        read_text("1 qid:1 1:5", top_grade=-1)


@pytest.mark.parametrize(
    "qid", [-(2**63), -(2**63) + 1, -1, 0, 10**18, 2**63 - 1, "0" * 30 + "7", "-0"]
)
def test_query_ids_are_64_bit_integers(qid: Any) -> None:
    assert read_text(f"1 qid:{qid} 1:5\n0 qid:33 1:1").qids.tolist() == [int(qid), 33]


SIX = "".join(f"{i} 1:{i} 2:0.5\n" for i in range(6))


@pytest.mark.parametrize("sizes", ["1\n2\n3\n", "1\r\n2\r\n\r\n3", " 1 \n002\n3"])
@pytest.mark.parametrize(
    ("name", "companion"),
    [
        ("a.train", "a.train.query"),
        ("a.txt", "a.txt.group"),
        ("a.gz", "a.gz.query"),
        ("a.txt.gz", "a.txt.query"),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_group_sizes_beside_the_file(sizes: str, name: str, companion: str, packed: bool) -> None:
    Path(companion).write_bytes(gzip.compress(sizes.encode()) if packed else sizes.encode())
    data = read_text(gzip.compress(SIX.encode()) if name.endswith(".gz") else SIX, name)
    assert data.offsets.tolist() == [0, 1, 3, 6]
    assert data.qids.tolist() == [1, 2, 3]


def test_group_sizes_in_a_file_of_any_name() -> None:
    Path("data.txt.query").write_text("6\n")
    Path("sizes").write_text("4\n2\n")
    assert read_text(SIX, query_file="sizes").offsets.tolist() == [0, 4, 6]
    assert load("data.txt").offsets.tolist() == [0, 6]
    assert read_text("1 qid:4 1:1\n").qids.tolist() == [4], "a qid in the lines goes first"


def sample(seed: int, n_lines: int) -> bytes:
    """Build a file with a bit of everything."""
    rng = random.Random(seed)
    texts = random_numbers(seed, 2000)
    lines = []
    for i in range(n_lines):
        features = sorted(rng.sample(range(1, 60), rng.randrange(1, 20)))
        pairs = " ".join(f"{feature}:{rng.choice(texts)}" for feature in features)
        remark = rng.choice(["", f" #docid = D{i}", f" # remark {i} \xe9"])
        lines.append(f"{rng.choice([0, 1, 2.5])} qid:{i // 7} {pairs}{remark}")
        lines += rng.choice([[], [], [""], ["# between"]])
    return rng.choice(["\n", "\r\n"]).join(lines).encode()


@pytest.mark.parametrize("packing", ["plain", "gzip", "members"])
@pytest.mark.parametrize(
    ("block", "piece"), [(1, 4096), (64, 16), (200, 50), (5000, 300), (1 << 20, 4096)]
)
def test_blocks_do_not_matter(
    packing: str, block: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = sample(block, 120)
    expected = naive_svmlight.read(text)
    if packing == "gzip":
        text = gzip.compress(text)
    elif packing == "members":
        text = b"".join(gzip.compress(text[i : i + 1000]) for i in range(0, len(text), 1000))
    monkeypatch.setattr(stream, "BLOCK", block)
    monkeypatch.setattr(read, "SMALLEST_BLOCK", piece)
    naive_svmlight.assert_same(read_text(text, "data.bin"), expected)


def test_plain_text_may_be_called_gz() -> None:
    assert read_text("1 qid:1 1:5\n", "data.txt.gz").n_docs == 1


def test_same_bits_for_any_number_of_threads(on_threads) -> None:
    path = Path("data.txt")
    path.write_bytes(sample(1, 1500))

    def parts_of_data():
        data = read_svmlight(path)
        arrays = (data.X, data.y, data.qids, data.offsets)
        return [*(array.tobytes() for array in arrays), repr(data.comments.tolist())]

    results = on_threads(parts_of_data)
    assert all(result == results[1] for result in results.values())
    naive_svmlight.assert_same(read_svmlight(path), naive_svmlight.read(path.read_bytes()))


@pytest.mark.parametrize("block", [16, stream.BLOCK])
def test_a_byte_order_mark_is_no_part_of_the_first_line(monkeypatch, block):
    monkeypatch.setattr(stream, "BLOCK", block)
    mark = b"\xef\xbb\xbf"
    lines = b'#rankinite {"feature_names": ["a", "b"]}\n2 qid:1 1:1 2:3\n0 qid:1 1:4\n'
    Path("plain.txt").write_bytes(lines)
    Path("marked.txt").write_bytes(mark + lines)
    Path("packed.txt.gz").write_bytes(gzip.compress(mark + lines))
    plain = read_svmlight("plain.txt")
    assert plain.feature_names == ("a", "b")
    assert read_svmlight("marked.txt").equals(plain)
    assert read_svmlight("packed.txt.gz").equals(plain)
