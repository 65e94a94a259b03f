"""Files that are refused: the message says where, what stands there and what was expected."""

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from rankinite.core import memory
from rankinite.core.errors import FileFormatError, UsageError
from rankinite.data import stream
from rankinite.data.svmlight import read_svmlight

GOOD = "1 qid:1 1:1\n"
PATH = Path("bad.txt")
SOURCES = '#rankinite {"documents": ["a"]}\n'


def refusal(text: str | bytes, **options: Any) -> FileFormatError:
    PATH.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(FileFormatError) as caught:
        read_svmlight(PATH, **options)
    return caught.value


def check_place(error: FileFormatError, path: Path, line: int | None, column: int | None) -> None:
    assert (error.path, error.line, error.column) == (path, line, column)
    place = ":".join(str(part) for part in (path, line, column) if part is not None)
    assert str(error).startswith(f"{place}: ")


def short(value: Any) -> str | None:
    """Name a test by the start of a text that may be very long."""
    return ascii(value)[:30] if isinstance(value, str | bytes) else None


BAD_LINES = [
    # the line, the column, and words of the message: first of all the text in question
    ("good qid:1 1:1", 1, "'good' is not a label"),
    ("  \tgood qid:1 1:1", 4, "'good' is not a label"),
    ("qid:x 1:1", 5, "'x' is not a query id"),
    ("qid:1 qid:1 1:1", 7, "unexpected qid"),
    ("1.5:1 2:1", 1, "'1.5:1' is not a feature"),
    ("-1 qid:1 1:1", 1, "'-1' is negative"),
    ("-1e-300 qid:1 1:1", 1, "'-1e-300' is negative"),
    ("1e309 qid:1 1:1", 1, "'1e309' does not fit in a 64-bit float"),
    ("nan qid:1 1:1", 1, "'nan' is not a label"),
    ("inf qid:1 1:1", 1, "'inf' is not a label"),
    ("1_0 qid:1 1:1", 1, "'1_0' is not a label"),
    ("0x1 qid:1 1:1", 1, "'0x1' is not a label"),
    ("1.2.3 qid:1 1:1", 1, "'1.2.3' is not a label"),
    ("1: qid:1 1:1", 3, "'' is not a value of feature 1"),
    ("1 qid:x 1:1", 7, "'x' is not a query id; expected a whole number"),
    ("1 qid: 1:1", 7, "'' is not a query id"),
    ("1 qid:1.0 1:1", 7, "'1.0' is not a query id"),
    ("1 qid:+1 1:1", 7, "'+1' is not a query id"),
    ("1 qid:-- 1:1", 7, "'--' is not a query id"),
    ("1 qid:9223372036854775808 1:1", 7, "'9223372036854775808' does not fit in a 64-bit integer"),
    ("1 qid:-9223372036854775809 1:1", 7, "'-9223372036854775809' does not fit"),
    ("1 qid:" + "9" * 5000 + " 1:1", 7, "'" + "9" * 30 + "...' does not fit"),
    ("1 qid:1 qid:1 1:1", 9, "unexpected qid; expected it once, directly behind the label"),
    ("1 1:1 qid:1", 7, "unexpected qid; expected it once, directly behind the label"),
    ("1 QID:1 1:1", 3, "'QID:1' is not a feature"),
    ("1 qid 1:1", 3, "qid"),
    ("1 qid:1 3", 9, "'3' is not a feature; expected number:value"),
    ("1 qid:1 1:1 3 : 4", 13, "'3' is not a feature"),
    ("1 qid:1 x:1", 9, "'x:1' is not a feature"),
    ("1 qid:1 :1", 9, "':1' is not a feature"),
    ("1 qid:1 -1:1", 9, "'-1:1' is not a feature"),
    ("1 qid:1 1.0:1", 9, "'1.0:1' is not a feature"),
    ("1 qid:1 1:", 11, "'' is not a value of feature 1; expected a number or nan"),
    ("1 qid:1 1:#", 11, "'' is not a value of feature 1"),
    ("1 qid:1 2: 3", 11, "'' is not a value of feature 2"),
    ("1 qid:1 1:1 2:high", 15, "'high' is not a value of feature 2"),
    ("1 qid:1 1:-", 11, "'-' is not a value of feature 1"),
    ("1 qid:1 1:-.", 11, "'-.' is not a value"),
    ("1 qid:1 1:.", 11, "'.' is not a value"),
    ("1 qid:1 1:1e", 11, "'1e' is not a value"),
    ("1 qid:1 1:--1", 11, "'--1' is not a value"),
    ("1 qid:1 1:1:2", 11, "'1:2' is not a value"),
    ("1 qid:1 1:1,5", 11, "'1,5' is not a value"),
    ("1 qid:1 1:inf", 11, "'inf' is not a value"),
    ("1 qid:1 1:-Infinity", 11, "'-Infinity' is not a value"),
    ("1 qid:1 1:nan0", 11, "'nan0' is not a value"),
    ("1 qid:1 1:0x1p3", 11, "'0x1p3' is not a value"),
    ("1 qid:1 1:1_000", 11, "'1_000' is not a value"),
    ("1 qid:1 1:\u0661", 11, "'\u0661' is not a value"),
    ("1 qid:1 1:1\0", 11, "'1\\x00' is not a value"),
    ("1 qid:1 1:1 \0", 13, "'\\x00' is not a feature"),
    ("\0", 1, "'\\x00' is not a label"),
    ("1 qid:1 1:1e39", 11, "'1e39' of feature 1 does not fit in a 32-bit float"),
    ("1 qid:1 1:-3.4028236e38", 11, "'-3.4028236e38' of feature 1 does not fit"),
    ("1 qid:1 1:1e400", 11, "'1e400' of feature 1 does not fit"),
    ("1 qid:1 1:" + "9" * 50, 11, "'" + "9" * 30 + "...' of feature 1 does not fit"),
    ("1 qid:1 1:1 2:1 1:1", 17, "feature 1 occurs twice"),
    ("1 qid:1 5:1 05:1", 13, "feature 5 occurs twice"),
    ("1 qid:1 0:1 0:1", 13, "feature 0 occurs twice"),
    ("1 qid:1 99:nan 99:nan", 16, "feature 99 occurs twice"),
    ("1 qid:1 2147483647:1", 9, "'2147483647' is too large; expected at most 2147483646"),
    ("1 qid:1 1:1 " + "9" * 18 + ":1", 13, "'" + "9" * 18 + "' is too large"),
    ("1 qid:1 1:1 " + "1" * 30 + ":1", 13, "'" + "1" * 30 + "' is too large"),
    ("1 qid:1 1:1 " + "1" * 5000 + ":1", 13, "is too large"),
    ("1 qid:1 \xe9:1", 9, "'\xe9:1' is not a feature"),
    (b"1 qid:1 1:\xff", 11, "'\\\\xff' is not a value"),
]


@pytest.mark.parametrize(("line", "column", "words"), BAD_LINES, ids=short)
@pytest.mark.parametrize("block", [32, stream.BLOCK])
def test_the_first_bad_line_is_blamed(
    line: str | bytes, column: int, words: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCK", block)
    raw = line.encode() if isinstance(line, str) else line
    for ending in (b"\n", b"\r\n", b""):
        error = refusal(b"# a file\n" + GOOD.encode() * 3 + raw + ending)
        check_place(error, PATH, 5, column)
        assert words in str(error)
    error = refusal(raw + b"\n" + GOOD.encode() + b"worse\n1 qid:1 1:1 #\xff\n")
    check_place(error, PATH, 1, column)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("", None, "the file is empty"),
        ("\n \n\n", None, "there are no documents"),
        ("# a\n#b", None, "there are no documents"),
        ("1 qid:1\n0 qid:1 # 1:1\n", None, "no line has a feature; expected number:value"),
        ("1 1:1\n", None, "no line has a qid, and there are no group sizes"),
        ("1 1:1\n", None, "bad.txt.query"),
        (GOOD + "\n1 1:1\n" + GOOD, 3, "this line has no qid"),
        ("1 1:1\n" + GOOD, 1, "this line has no qid"),
        (GOOD + "\nqid:1 1:1\n" + GOOD, 3, "this line has no label, and others have one"),
        ("qid:1 1:1\n" + GOOD, 1, "this line has no label, and others have one"),
        ("1:1 2:1\n", None, "no line has a qid, and there are no group sizes"),
        (GOOD + "0 qid:2\n#\n" + GOOD, 4, "query 1 comes again after others (it began in line 1)"),
        (GOOD + "1 qid:2 1:1\n" + GOOD, 3, "--group"),
        (b"1 qid:1 1:1 # ok\n1 qid:1 1:1 #\xff\n1 qid:1 1:1 #\xfe\n", 2, "not UTF-8 (byte 0xff)"),
        (b"1 qid:1 1:1 #\xed\xa0\x80\n", 1, "--no-comments"),
        (b"1 qid:1 1:1 #\xc3\n", 1, "not UTF-8 (byte 0xc3)"),
        (SOURCES + GOOD, 2, "does not fit the header"),
        (SOURCES + '1 qid:1 1:1 #["", ""]\n', 2, "0 labels for 1 sources"),
        (SOURCES + '1 qid:1 1:1 #{"a": 1, "b": 2, "c": 3}\n', 2, "is not a list"),
        (SOURCES + '1 qid:1 1:1 #["", 5, 1]\n', 2, "5 is not a text"),
        (SOURCES + '1 qid:1 1:1 #["", "", "1"]\n', 2, "'1' is not a number"),
        (SOURCES + '1 qid:1 1:1 #["", "\\ud800", 1]\n', 2, "does not fit the header"),
        (SOURCES + '1 qid:1 1:1 #["", "", 1' + "0" * 400 + "]\n", 2, "does not fit the header"),
        (SOURCES + "1 qid:1 1:1 #" + "[" * 100_000 + "\n", 2, "does not fit the header"),
        (SOURCES + '1 qid:1 1:1 #["", "", -1]\n', None, "expected at least 0"),
        ('#rankinite {"feature_names": ["a"]}\n1 qid:1 2:1\n', None, "1 names for 2 features"),
        ('#rankinite {"feature_names": []}\n1 qid:1 2:1\n', None, "0 names for 2 features"),
        ('#rankinite {"top_grade": 1}\n2 qid:1 1:1\n', None, "below the label 2"),
    ],
    ids=short,
)
def test_files_that_do_not_hold_together(text: str | bytes, line: int | None, words: str) -> None:
    error = refusal(text)
    check_place(error, PATH, line, None)
    assert words in str(error)


@pytest.mark.parametrize(
    "header",
    [
        *("{", "", "[]", "3", "{}}", "[" * 100_000, '{"unknown": 1}', '{"top_grade": "4"}'),
        *('{"top_grade": -1}', '{"top_grade": NaN}', '{"top_grade": true}', '{"top_grade": 1e999}'),
        *('{"feature_names": 5}', '{"feature_names": "a"}', '{"feature_names": [1]}'),
        *('{"qids": ["a", "b"]}', '{"qids": [1]}', '{"qids": {}}', '{"qids": ["\\ud800"]}'),
        *('{"query_weight": 0}', '{"query_weight": [-1]}', '{"query_weight": [0]}'),
        *('{"query_weight": [1, 2]}', '{"query_weight": ["1"]}', '{"has_comments": 1}'),
        *('{"documents": 5}', '{"documents": [5]}', '{"documents": ["a", "a"]}', "\xff"),
        '{"top_grade": 1' + "0" * 400 + "}",
        '{"query_weight": [1' + "0" * 400 + "]}",
    ],
    ids=short,
)
def test_damaged_headers(header: str) -> None:
    error = refusal(f"#rankinite {header}\n{GOOD}".encode("latin-1"))
    check_place(error, PATH, 1, 1)
    assert "header" in str(error)


def test_a_damaged_header_is_blamed_before_a_bad_line() -> None:
    check_place(refusal("#rankinite {\nbad\n"), PATH, 1, 1)


@pytest.mark.parametrize("block", [16, stream.BLOCK])
@pytest.mark.parametrize(
    ("bad", "column", "options", "words"),
    [
        (
            "1 qid:1 1:1 90000:1 2:1",
            13,
            {},
            "feature number 90000 is too large: a data set of about",
        ),
        ("1 qid:1 0090000:1", 9, {}, "documents x 90,000 features takes"),
        ("1 qid:1 2147483646:1", 9, {}, "features takes"),
        ("1 qid:1 2:1 3:1", 13, {"n_features": 2}, "number 3 is too large: n_features is 2"),
        ("1 qid:1 0:1 2:1", 13, {"n_features": 2}, "number 2 is too large: n_features is 2"),
    ],
)
def test_too_many_features(
    bad: str, column: int, options: Any, words: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCK", block)
    monkeypatch.setattr(memory, "available_memory", lambda: 300_000)
    error = refusal(f"# a file\n{GOOD}{bad}\n{GOOD}{bad}\nworse\n", **options)
    check_place(error, PATH, 3, column)
    assert words in str(error)
    if not options:
        assert "300.0 kB are free" in str(error)
    check_place(refusal(f"{bad}\n{GOOD}", **options), PATH, 1, column)


def test_a_matrix_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 300_000)
    error = refusal("1 qid:1 1000:1\n" + GOOD * 200)
    # 4 bytes x 1,000 features x 201 documents and a few spare ones: at least 804 kB.
    check_place(error, PATH, 1, 9)
    assert "documents x 1,000 features takes 8" in str(error)
    assert "n_features" not in str(error)
    error = refusal(GOOD, n_features=10**9)
    assert "documents x 1,000,000,000 features takes 1,108.0 GB" in str(error)


def test_a_short_file_cannot_take_all_memory() -> None:
    # However much memory there is: so many features take more besides their values.
    error = refusal("1 qid:1 2147483646:1\n")
    check_place(error, PATH, 1, 9)
    assert "feature number 2147483646 is too large" in str(error)
    assert "leave out or renumber rare features, or give scipy.sparse" in str(error)


def test_feature_0_after_the_last_column_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK", 16)
    error = refusal("1 qid:1 2:1\n1 qid:1 0:1\n", n_features=2)
    check_place(error, PATH, 2, None)
    assert "feature 0 here and feature 2 before, n_features is 2" in str(error)


def test_a_bad_comment_is_blamed_before_a_later_feature() -> None:
    check_place(refusal(b"1 qid:1 1:1 #\xff\n1 qid:1 9:1\n", n_features=2), PATH, 1, None)


@pytest.mark.parametrize("n_features", [0, -1, 2.0, "3", True])
def test_n_features_that_cannot_be_meant(n_features: Any) -> None:
    PATH.write_text(GOOD)
    with pytest.raises(UsageError, match="n_features"):
        read_svmlight(PATH, n_features=n_features)


PACKED = gzip.compress(GOOD.encode() * 500, mtime=0)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (PACKED[:-1], "cut off"),
        (PACKED[:40], "cut off"),
        (PACKED[:2], "cut off"),
        (PACKED + PACKED[:15], "cut off"),
        (PACKED[:-8] + b"\0\0\0\0" + PACKED[-4:], "damaged"),
        (PACKED[:-4] + b"\0\0\0\1", "damaged"),
        (PACKED[:15] + b"\xff" * 8 + PACKED[23:], "damaged"),
        (PACKED + b"rest", "damaged"),
        (b"\x1f\x8b\x07" + PACKED[3:], "damaged"),
        (gzip.compress(b"", mtime=0), "no documents"),
    ],
)
@pytest.mark.parametrize("block", [64, stream.BLOCK])
def test_damaged_gzip(
    content: bytes, words: str, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "BLOCK", block)
    error = refusal(content)
    check_place(error, PATH, None, None)
    assert words in str(error)


@pytest.mark.parametrize(
    ("sizes", "line", "words"),
    [
        (b"1\n1\n", None, "add up to 2, and bad.txt has 3 documents"),
        (b"3\n1\n", None, "add up to 4"),
        (b"1\n\ntwo\n", 3, "'two' is not a group size; expected a whole number above 0"),
        (b"0\n3\n", 1, "'0' is not a group size"),
        (b"-1\n", 1, "'-1' is not a group size"),
        (b"3.0\n", 1, "'3.0' is not a group size"),
        (b"1 2\n", 1, "'1 2' is not a group size"),
        (b"9" * 30, 1, "'" + "9" * 30 + "' is not a group size"),
        (b"\xff\n", 1, "is not a group size"),
        (b"", None, "the file is empty"),
        (b"\n\n", None, "no group sizes"),
    ],
)
def test_group_sizes_that_do_not_fit(sizes: bytes, line: int | None, words: str) -> None:
    beside = Path("bad.txt.query")
    beside.write_bytes(sizes)
    error = refusal("1 1:1\n" * 3)
    check_place(error, beside, line, None if line is None else 1)
    assert words in str(error)


def test_group_sizes_and_query_ids() -> None:
    Path("sizes").write_text("1\n")
    assert "the lines have a qid, and sizes has group sizes" in str(
        refusal(GOOD, query_file="sizes")
    )
    error = refusal("1 1:1\n", query_file="nowhere")
    check_place(error, Path("nowhere"), None, None)


@pytest.mark.parametrize(
    ("remark", "line", "words"),
    [
        ("", None, "no comment holds x = <number>"),
        ("#y = 1", None, "no comment holds x = <number>"),
        ("#x = high", 1, "x = 'high' in the comment is not a number"),
        ("#x = 1_0", 1, "x = '1_0'"),
        ("#x = inf", 1, "x = 'inf'"),
        ("#x = 1e999", None, "infinite"),
        ("#x = -1", None, "expected at least 0"),
    ],
)
def test_label_sources_that_are_not_there(remark: str, line: int | None, words: str) -> None:
    error = refusal(f"1 qid:1 1:1 {remark}\n", labels=["x"])
    check_place(error, PATH, line, None)
    assert words in str(error)


def test_label_sources_of_our_own_files() -> None:
    text = SOURCES + '1 qid:1 1:1 #["", "", 2]\n'
    assert "no label source 'b'" in str(refusal(text, labels=["b"]))
    assert "keep comments" in str(refusal(text, comments=False))
    assert read_svmlight(PATH, labels=["a"]).labels["a"].tolist() == [2]


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path, words in [(tmp_path, "directory"), (tmp_path / "none.txt", "no such file")]:
        with pytest.raises(FileFormatError, match=words) as caught:
            read_svmlight(path)
        check_place(caught.value, path, None, None)
    Path("secret.txt").write_text(GOOD)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileFormatError, match="cannot be opened: Permission denied"):
        read_svmlight("secret.txt")


@pytest.mark.skipif(os.name == "nt", reason="there are no named pipes")
def test_pipes_are_refused_at_once() -> None:
    os.mkfifo("pipe")  # nobody writes to it
    with pytest.raises(FileFormatError, match="pipe"):
        read_svmlight("pipe")


def test_reading_that_fails_midway() -> None:
    class Failing:
        def readinto(self, _: Any) -> int:
            raise OSError(5, "Input/output error")

    with pytest.raises(FileFormatError, match="x: cannot be read: Input/output error"):
        next(stream._blocks(Path("x"), Failing()))


def test_a_line_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "BLOCK", 64)
    monkeypatch.setattr(stream, "LONGEST_LINE", 1000)
    assert "a line is longer than 1.0 kB" in str(refusal("1 " * 2000))
