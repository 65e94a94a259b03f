from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import DataError, FileFormatError, UsageError
from rankinite.data import stream
from rankinite.data.ranking_data import RankingData
from rankinite.data.scores import (
    check_scores,
    feature_scores,
    load_scores,
    save_qrels,
    save_scores,
)

FILE = Path("scores.txt")
NAMED = RankingData(
    np.zeros((5, 1)), [0, 2, 1, 0, 4], ["x", "x", "x", "y", "y"], doc_ids=["a", "b", "c", "a", "ü"]
)
BARE = RankingData(np.zeros((5, 1)), [0, 2, 1, 0, 4], [7, 7, 7, -1, -1])
SETS = {"named": NAMED, "bare": BARE}
FINITE = st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=5, max_size=5)


@pytest.mark.parametrize("data", SETS.values(), ids=SETS)
@pytest.mark.parametrize("run", [None, "mine"])
@pytest.mark.parametrize("path", ["s.txt", "s.txt.gz"])
@settings(deadline=None)
@given(scores=FINITE)
def test_round_trip(data, run, path, scores):
    save_scores(scores, data, path, run=run)
    assert load_scores(path, data).tobytes() == np.array(scores, float).tobytes()
    assert (Path(path).read_bytes()[:2] == b"\x1f\x8b") == path.endswith(".gz")


def test_a_run_ranks_by_score_and_ties_in_order_of_the_data():
    save_scores([0.5, 2, 0.5, 1e-7, 1e300], NAMED, FILE, run="mine")
    assert FILE.read_text("utf-8").splitlines() == [
        "x Q0 b 1 2.0 mine",
        "x Q0 a 2 0.5 mine",
        "x Q0 c 3 0.5 mine",
        "y Q0 ü 1 1e+300 mine",
        "y Q0 a 2 1e-07 mine",
    ]
    save_scores([0, 0, 0, 1, 1], BARE, FILE, run="r")
    positions = [line.split()[:4] for line in FILE.read_text().splitlines()]
    assert [" ".join(fields) for fields in positions] == [
        *("7 Q0 1 1", "7 Q0 2 2", "7 Q0 3 3", "-1 Q0 1 1", "-1 Q0 2 2"),
    ]


def test_one_number_a_line_is_the_shortest_that_reads_back():
    save_scores(np.array([0.1, -0.0, 1e22, 3, 5e-324]), BARE, FILE)
    assert FILE.read_text() == "0.1\n-0.0\n1e+22\n3.0\n5e-324\n"


@pytest.mark.parametrize(
    "text", ["1\n2\n3\n4\n5", " 1 \r\n\n+2.0\n3e0\n\t4.\n.5e1\n\n", "1\n2\n3\n4\n5\n" + "\n" * 9]
)
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_numbers_as_people_write_them(text, compress):
    FILE.write_bytes(compress(text.encode()))
    assert load_scores(FILE, NAMED).tolist() == [1, 2, 3, 4, 5]


RUN = "x Q0 b 1 9 t\nx Q0 a 2 8 t\ny Q0 ü 1 7 t\nx Q0 c 3 6 t\ny Q0 a 2 5 t\n"


WORDS = [
    "1",
    "-1",
    "+2",
    "1e5",
    "1E-5",
    "0x10",
    "1_0",
    "nan",
    "-inf",
    "1e999",
    "3.",
    ".",
    ".5",
    "1e-400",
    "1,5",
    "--1",
    "infinity",
    "1\0",
    "٣",
]


PLAIN = set("0123456789+-.eE")


@settings(deadline=None)
@given(lines=st.lists(st.sampled_from([*WORDS, "", "  ", "\t7", "8\r", "1 2"]), max_size=4))
def test_what_is_read_at_once_is_what_is_read_one_by_one(lines):
    """What Python's float says of ASCII digits, signs, points and exponents is right."""
    FILE.write_text("\n".join([*lines, "0"]))
    expected = [line.split() for line in [*lines, "0"] if line.split()]
    try:
        scores = [float(word) if set(word) <= PLAIN else np.nan for (word,) in expected]
    except ValueError:
        scores = [np.nan]
    data = RankingData(
        np.zeros((len(expected), 1)), np.zeros(len(expected)), np.zeros(len(expected), int)
    )
    if np.isfinite(scores).all():
        assert load_scores(FILE, data).tolist() == scores
    else:
        with pytest.raises(FileFormatError):
            load_scores(FILE, data)


def test_a_run_is_matched_by_name_not_by_order():
    FILE.write_text("\n" + RUN.replace(" Q0 ", "\tQ0\t\t"), "utf-8")
    assert load_scores(str(FILE), NAMED).tolist() == [8, 9, 6, 5, 7]


@pytest.mark.parametrize(
    ("text", "where", "sentence"),
    [
        ("", "", "the file is empty"),
        ("\n \n", "", "there are no scores in this file"),
        ("1\n2\n3\n4\n", "", "4 scores for 5 documents; expected one per document"),
        ("1\n" * 6, "", "6 scores for 5 documents; expected one per document"),
        ("\n1 2\n", ":2", "2 fields; expected a score alone, or the 6 fields of a TREC run"),
        ("1\n2\n3 4\n", ":3", "2 fields; expected a score alone"),
        ("1\n\nx\n", ":3", "'x' is not a score; expected a number"),
        ("nan\n", ":1", "'nan' is not a score; expected a number"),
        ("1\n-inf\n", ":2", "'-inf' is not a score; expected a number"),
        ("1e400\n", ":1", "'1e400' is not a score; expected a number"),
        (f"{'9' * 400}x\n", ":1", f"'{'9' * 30}...' is not a score; expected a number"),
        (RUN + "x Q0 a\n", ":6", "3 fields; expected: query Q0 document rank score tag"),
        (RUN + "x Q0 z 1 1 t\n", ":6", "the data set has no document 'z' in a query 'x'"),
        ("z Q0 a 1 1 t\n", ":1", "the data set has no document 'a' in a query 'z'"),
        (RUN + "x Q0 b 1 9 t\n", ":6", "document 'b' of query 'x' occurs a second time"),
        (RUN.replace(" 8 ", " nan "), ":2", "'nan' is not a score; expected a number"),
        (RUN.replace(" 6 ", " 1,5 "), ":4", "'1,5' is not a score; expected a number"),
        (
            "x Q0 a 1 1 t\ny Q0 a 1 1 t\nx Q0 c 1 1 t\n",
            "",
            "the run lacks 2 of 5 documents, such as 'b' of query x; "
            "rank them last (missing='last', --missing last) or complete the run",
        ),
    ],
)
def test_files_that_are_refused(text, where, sentence):
    FILE.write_text(text, "utf-8")
    with pytest.raises(FileFormatError) as caught:
        load_scores(FILE, NAMED)
    assert str(caught.value) == f"scores.txt{where}: {sentence}"


@pytest.mark.parametrize(
    ("prepare", "sentence"),
    [
        (lambda: None, "there is no such file"),
        (FILE.mkdir, "this is a directory; expected a file"),
        (lambda: FILE.write_bytes(gzip.compress(b"1\n2\n")[:-9]), "the compressed file is cut off"),
    ],
)
def test_files_that_cannot_be_opened(prepare, sentence):
    prepare()
    with pytest.raises(FileFormatError, match=f"^scores.txt: {sentence}"):
        load_scores(FILE, NAMED)


@settings(deadline=None)
@given(
    scores=st.lists(st.floats(-1e300, 1e300), min_size=5, max_size=5),
    kept=st.sets(st.integers(0, 4)),
)
def test_missing_documents_can_be_last(scores, kept):
    save_scores(scores, NAMED, FILE, run="mine")
    place = {("x", "a"): 0, ("x", "b"): 1, ("x", "c"): 2, ("y", "a"): 3, ("y", "ü"): 4}
    lines = FILE.read_text("utf-8").splitlines(keepends=True)
    some = [line for line in lines if place[line.split()[0], line.split()[2]] in kept | {0}]
    FILE.write_text("".join(some), "utf-8")
    loaded = load_scores(FILE, NAMED, missing="last")
    assert np.isfinite(loaded).all()
    for docs in ({0, 1, 2}, {3, 4}):
        there, gone = docs & (kept | {0}), docs - kept - {0}
        assert all(loaded[doc] == scores[doc] for doc in there)
        assert len({loaded[doc] for doc in gone}) <= 1
        assert all(loaded[low] < loaded[high] for low in gone for high in there)


@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        ([1, 2], r"an array of shape \(2,\) for 5 documents; expected one score per document"),
        (np.ones((5, 1)), r"an array of shape \(5, 1\) for 5 documents"),
        (1.0, r"an array of shape \(\) for 5 documents|an array of shape \(1,\) for 5 documents"),
        ([1, 2, np.nan, 4, 5], "the score of document 2 is nan; expected a finite number"),
        ([1, 2, 3, 4, -np.inf], "the score of document 4 is -inf; expected a finite number"),
        (list("abcde"), "scores: cannot be made numbers"),
        ([[1], [2, 3]], "scores: cannot be made numbers"),
    ],
)
def test_scores_that_are_none(scores, sentence):
    with pytest.raises(DataError, match=sentence):
        check_scores(scores, NAMED)
    with pytest.raises(DataError, match=sentence):
        save_scores(scores, NAMED, FILE)
    assert not FILE.exists()


def test_check_scores_gives_float64():
    scores = check_scores(np.arange(5, dtype=np.float32)[::1], NAMED)
    assert (scores.dtype, scores.tolist()) == (np.float64, [0, 1, 2, 3, 4])


@pytest.mark.parametrize("run", ["", "two words", "a\n", " a"])
def test_names_of_runs(run):
    FILE.write_text("old")
    with pytest.raises(UsageError, match="is no name for a run; use one word"):
        save_scores(np.ones(5), NAMED, FILE, run=run)
    assert FILE.read_text() == "old"


def test_missing_must_be_known():
    with pytest.raises(UsageError, match="missing must be one of 'refuse', 'last'; got 'first'"):
        load_scores(FILE, NAMED, missing="first")


def one_document(**names) -> RankingData:
    return RankingData([[1]], [0], **({"qid": ["q"]} | names))


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (one_document(doc_ids=["a b"]), "document 0 has the id 'a b'; TREC files need one word"),
        (one_document(doc_ids=[""]), "document 0 has the id ''; TREC files need one word"),
        (one_document(qid=["a b"]), "query 0 has the id 'a b'; TREC files need one word"),
        (one_document(doc_ids=[" a"]), "document 0 has the id ' a'; TREC files need one word"),
        (one_document(qid=["a\n"]), "query 0 has the id 'a.n'; TREC files need one word"),
        (one_document(qid=[""]), "query 0 has the id ''; TREC files need one word"),
    ],
)
def test_names_that_are_not_one_word(data, sentence):
    for save in (lambda: save_scores([1], data, FILE, run="r"), lambda: save_qrels(data, FILE)):
        with pytest.raises(DataError, match=sentence):
            save()
    save_scores([1], data, FILE)
    assert load_scores(FILE, data).tolist() == [1]


def test_a_document_id_twice_in_a_query():
    data = RankingData([[1], [2]], [0, 1], [1, 1], doc_ids=["a", "a"])
    FILE.write_text("1 Q0 a 1 1 t\n")
    with pytest.raises(DataError, match="a document id twice in a query"):
        load_scores(FILE, data)


def test_qrels():
    save_qrels(NAMED, FILE)
    assert FILE.read_text("utf-8") == "x 0 a 0\nx 0 b 2\nx 0 c 1\ny 0 a 0\ny 0 ü 4\n"
    save_qrels(BARE, "bare.gz")
    text = gzip.decompress(Path("bare.gz").read_bytes()).decode()
    assert text == "7 0 1 0\n7 0 2 2\n7 0 3 1\n-1 0 1 0\n-1 0 2 4\n"
    halves = RankingData([[1], [2]], [1, 0.5], [1, 1])
    with pytest.raises(DataError, match=r"document 1 has label 0\.5"):
        save_qrels(halves, FILE)


def test_documents_without_a_value_of_a_feature_rank_last():
    lowest = float(np.finfo(np.float32).min)
    X = np.array([[1.0], [np.nan], [lowest], [-3.0]], np.float32)
    scores = feature_scores(RankingData(X, [0, 1, 0, 1], [1, 1, 1, 1]), "1")
    assert np.isfinite(scores).all()
    assert np.argsort(-scores).tolist() == [0, 3, 2, 1]
    assert len(set(scores.tolist())) == 4


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("1_0", "'1_0'"),
        ("1\0", "'1\\x00'"),
        ("\u0661", "'\u0661'"),
        ("1\u00a0", r"'1\xa0'"),
        ("9" * 100_000 + "x", f"'{'9' * 30}...'"),
    ],
)
def test_other_digits_and_damage_are_no_numbers(text, sentence):
    FILE.write_text("1\n2\n3\n4\n" + text)
    with pytest.raises(FileFormatError) as caught:
        load_scores(FILE, NAMED)
    assert str(caught.value) == f"scores.txt:5: {sentence} is not a score; expected a number"


@pytest.mark.parametrize("piece", [1, 3, 1 << 18])
def test_pieces_of_a_file_do_not_matter(piece, monkeypatch):
    monkeypatch.setattr(stream, "PIECE", piece)
    FILE.write_text("1\n\n 2\n3.25 \n\n4\r\n-5e-3")
    assert load_scores(FILE, NAMED).tolist() == [1, 2, 3.25, 4, -0.005]
    FILE.write_text("1\n\n2\n\nthree")
    with pytest.raises(FileFormatError, match=r"^scores\.txt:5: 'three'"):
        load_scores(FILE, NAMED)
    FILE.write_text("1\n" * 9)
    with pytest.raises(FileFormatError, match="9 scores for 5 documents"):
        load_scores(FILE, NAMED)
