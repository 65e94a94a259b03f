from __future__ import annotations

import gzip
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import DataError, FileFormatError, UsageError
from rankinite.core.params import SourceName
from rankinite.data.formats import load, save
from rankinite.data.frames import from_frame, read_parquet, write_parquet
from rankinite.data.ranking_data import RankingData

FILE = Path("data.parquet")
FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}
TABLE = {
    "bm25": [0.5, None, -1.5],
    "clicks": [3, None, 0],
    "docid": ["a", "b c", None],
    "grade": [2, 0, 1],
    "note": ["", "#1", "ü"],
    "query": ["x", "x", "y"],
    "spam": [True, False, None],
    "weight": [2.0, 2.0, 0.5],
}
ROLES = {
    "label": "grade",
    "qid": "query",
    "labels": ["clicks"],
    "query_weight": "weight",
    "doc_id": "docid",
    "comment": "note",
}
PLAIN = {"qid": [1, 1, 2], "label": [0, 1, 2], "a": [0.5, 0.25, 4.0]}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
@pytest.mark.parametrize("through_file", [False, True])
def test_every_kind_of_frame(make, through_file):
    if through_file:
        pq.write_table(pa.table(make(TABLE)), FILE)
        data = read_parquet(FILE, **ROLES, top_grade=4)
    else:
        data = from_frame(make(TABLE), **ROLES, top_grade=4)
    expected = RankingData(
        [[0.5, 1], [np.nan, 0], [-1.5, np.nan]],
        [2, 0, 1],
        ["x", "x", "y"],
        labels={"clicks": [3, np.nan, 0]},
        query_weight=[2, 0.5],
        doc_ids=["a", "b c", ""],
        comments=["", "#1", "ü"],
        feature_names=["bm25", "spam"],
        top_grade=4,
    )
    assert data.equals(expected)


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_features_can_be_named_and_documents_grouped(make):
    frame = make(
        {"b": [1, 2, 3], "qid": [7, 8, 7], "a": [4, 5, 6], "w": [1, 2, 1], "label": [0] * 3}
    )
    data = from_frame(frame, features=["a", "b"], query_weight="w", group=True)
    assert data.X.tolist() == [[4, 1], [6, 3], [5, 2]]
    assert (data.qids.tolist(), data.query_weight.tolist()) == ([7, 8], [1, 2])


NUMBERS = [
    (pa.array([1, None, -3], pa.int8()), [1, None, -3]),
    (pa.array([2**64 - 1, 0, None], pa.uint64()), [2.0**64, 0, None]),
    (pa.array(np.array([0.5, 1, 2], np.float16)), [0.5, 1, 2]),
    (pa.array([0.1, 1e-45, -0.0]), [np.float32(0.1), 2.0**-149, -0.0]),
    (pa.array([True, None, False]), [1, None, 0]),
    (pa.array([Decimal("1.25"), None, Decimal("-7.5")]), [1.25, None, -7.5]),
    (pa.array([2.5, None, 2.5]).dictionary_encode(), [2.5, None, 2.5]),
    (pa.array([None, None, None]), [None] * 3),
]


@pytest.mark.parametrize(("column", "expected"), NUMBERS, ids=[str(c.type) for c, _ in NUMBERS])
def test_all_kinds_of_numbers(column, expected):
    data = from_frame(pa.table(PLAIN | {"a": column}))
    wanted = np.array(expected, np.float32)
    assert np.array_equal(data.X[:, 0], wanted, equal_nan=True)
    assert (np.signbit(data.X[:, 0]) == np.signbit(wanted))[~np.isnan(wanted)].all()


TEXTS = pa.array(["x", "x", "y"])
FRAMES_WITH_TEXTS = {
    "dictionary": pa.table(PLAIN | {"qid": TEXTS.dictionary_encode()}),
    "large": pa.table(PLAIN | {"qid": TEXTS.cast(pa.large_string())}),
    "view": pa.table(PLAIN | {"qid": TEXTS.cast(pa.string_view())}),
    "chunks": pa.table(PLAIN | {"qid": pa.chunked_array([TEXTS[:1], TEXTS[1:]])}),
    "pandas object": pd.DataFrame(PLAIN | {"qid": np.array(["x", "x", "y"], object)}),
    "pandas category": pd.DataFrame(PLAIN | {"qid": pd.Categorical(["x", "x", "y"])}),
    "polars category": pl.DataFrame(PLAIN).with_columns(
        qid=pl.Series(["x", "x", "y"], dtype=pl.Categorical)
    ),
}


@pytest.mark.parametrize("frame", FRAMES_WITH_TEXTS.values(), ids=FRAMES_WITH_TEXTS)
def test_all_kinds_of_texts(frame):
    data = from_frame(frame, doc_id="qid")
    assert data.qids.tolist() == ["x", "y"]
    assert data.doc_ids.tolist() == ["x", "x", "y"]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame(PLAIN, index=[9, 3, 4]),
        pd.DataFrame(PLAIN, index=pd.Index([9, 3, 4], name="row")),
        pd.DataFrame(PLAIN, index=pd.Index(["r", "s", "t"], name="row")),
        pd.DataFrame(PLAIN).rename_axis("row"),
        pd.DataFrame(PLAIN).set_index("qid"),
        pd.DataFrame(PLAIN).set_index(["qid", "label"], append=True),
        pd.DataFrame(PLAIN | {"b": 1})[["qid", "label", "a"]].sample(frac=1).sort_index(),
        pd.DataFrame(PLAIN | {"zero": 0}, index=[1, 0, 2])[lambda f: f.zero == 0].drop(
            columns="zero"
        ),
    ],
)
def test_the_index_of_a_pandas_frame_is_no_feature(frame):
    expected = from_frame(pa.table(PLAIN))
    assert from_frame(frame).equals(expected)
    frame.to_parquet(FILE)
    assert read_parquet(FILE).equals(expected)


@pytest.mark.parametrize(
    ("change", "roles", "sentence"),
    [
        ({}, {"label": "grade"}, "no label column 'grade'; the columns are 'qid', 'label', 'a'"),
        ({}, {"qid": "query"}, "there is no qid column 'query'"),
        ({}, {"labels": ["clicks"]}, "there is no label source column 'clicks'"),
        ({}, {"features": ["a", "b"]}, "there is no feature column 'b'"),
        ({}, {"query_weight": "w"}, "there is no query weight column 'w'"),
        ({}, {"doc_id": "d"}, "there is no document id column 'd'"),
        ({}, {"comment": "c"}, "there is no comment column 'c'"),
        ({}, {"doc_id": "a"}, "there are no feature columns"),
        ({}, {"features": []}, "there are no feature columns"),
        ({}, {"features": ["a", "a"]}, "'a' occurs twice"),
        ({}, {"top_grade": 1}, "top_grade: 1 is below the label 2 of document 2"),
        ({"a": ["x", "y", "z"]}, {}, "column 'a' holds (large_)?string; expected numbers"),
        ({"a": pa.array([1, 2, 3], pa.date32())}, {}, "column 'a' holds date32"),
        ({"label": [0, None, 1]}, {}, "y: the label of document 1 is nan"),
        ({"qid": [1, None, 2]}, {}, "column 'qid' has no query for some documents"),
        ({"qid": [1, 2, 1]}, {}, "query 1 comes again at document 2"),
        ({"qid": [True, True, False]}, {}, "qid: cannot use bool"),
        ({"a": [1.0, 1e39, 2.0]}, {}, "feature 'a' of document 1 is infinite"),
        ({"w": [1, 2, 3]}, {"query_weight": "w"}, "'w' has different weights .* of query 1"),
        ({"qid": [], "label": [], "a": pa.array([], pa.float32())}, {}, "there are no documents"),
        ({f"f{k}": [0] * 3 for k in range(20)}, {"label": "y"}, "'f8' and 11 more"),
    ],
)
def test_wrong_columns(change, roles, sentence):
    table = pa.table(PLAIN | change)
    with pytest.raises(DataError, match=sentence) as in_memory:
        from_frame(table, **roles)
    pq.write_table(table, FILE)
    with pytest.raises(FileFormatError) as in_file:
        read_parquet(FILE, **roles)
    assert str(in_file.value) == f"data.parquet: {in_memory.value}"


def test_frames_that_are_none():
    for frame in (PLAIN, [[1, 2]], np.ones((2, 2)), None):
        with pytest.raises(UsageError, match=f"cannot read a {type(frame).__name__}; expected a"):
            from_frame(frame)
    twice = pa.table([[1], [0], [2.0], [3.0]], names=["qid", "label", "a", "a"])
    with pytest.raises(DataError, match="column 'a' is there twice"):
        from_frame(twice)
    pandas = pd.DataFrame(PLAIN)
    for frame in (
        pandas[["qid", "label", "a", "a"]],
        pandas.assign(a=np.array([1, "x", []], object)),
    ):
        with pytest.raises(DataError, match="the frame cannot be made an Arrow table"):
            from_frame(frame)


SPECIAL = np.array(
    [0.0, -0.0, np.nan, 1e-45, -1e-45, 2**-126, np.finfo("f4").max, np.finfo("f4").min, 0.1],
    np.float32,
)


def everything() -> RankingData:
    """Return a set with all optional parts and names that get into each other's way."""
    n = len(SPECIAL)
    return RankingData(
        np.stack([SPECIAL, SPECIAL[::-1], SPECIAL, SPECIAL, SPECIAL], axis=1),
        [0, 5e-324, 1e300, 0.1, 1, 2, 3, 4, 5],
        ["x"] * 4 + [""] * (n - 4),
        labels={
            "clicks": [0.1, np.nan, *range(n - 2)],
            "qid": np.arange(n),
            "query_weight": np.ones(n),
        },
        query_weight=[0.1, 0],
        doc_ids=["", " ", "a b", *"cdefgh"],
        comments=["#", "\n", "ü", *"ijklmn"],
        feature_names=["label", "qid", "clicks", "a.b", ""],
        top_grade=2e300,
    )


def test_exact_round_trip():
    data = everything()
    write_parquet(data, FILE)
    back = read_parquet(FILE)
    assert back.equals(data)
    assert back.X.tobytes() == data.X.tobytes()
    write_parquet(data[[1, 0]], FILE)
    assert read_parquet(FILE).equals(data[[1, 0]])
    columns = pl.read_parquet(FILE).columns
    assert {"label", "label_", "qid", "qid_", "qid__", "clicks", "clicks_"} <= set(columns)


def test_what_is_given_goes_before_the_metadata():
    write_parquet(everything(), FILE)
    assert read_parquet(FILE, labels=[]).labels == {}
    only = read_parquet(FILE, labels=["clicks"], top_grade=3e300)
    assert only.labels["clicks"][0] == 0.1
    assert (only.top_grade, only.n_features) == (3e300, 5)
    ones = read_parquet(FILE, label="query_weight", features=["a.b"])
    assert (ones.y.tolist(), ones.top_grade, ones.feature_names) == ([1] * 9, 1, ("a.b",))


def test_many_row_groups_and_progress():
    n = 150_000
    rows = np.random.default_rng(1).integers(0, 2**32, (n, 1), np.uint32).view(np.float32)
    rows[~np.isfinite(rows)] = np.nan
    data = RankingData(rows, np.zeros(n), group_sizes=np.full(n // 10, 10))
    done = []

    class Recorder:
        def start(self, name, total, unit):
            done.append([name, unit, total])
            return self

        def advance(self, amount):
            done[-1][2] -= amount

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    write_parquet(data, FILE, progress=Recorder())
    assert load(FILE, progress=Recorder()).equals(data)
    assert done == [
        ["Writing data.parquet", "documents", 0],
        ["Reading data.parquet", "documents", 0],
    ]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "there is no such file"),
        ("folder", "this is a directory; expected a file"),
        (b"", "cannot be read as Parquet"),
        (b"2 qid:1 1:0.5\n" * 9, "cannot be read as Parquet"),
        (b"PAR1" * 9, "cannot be read as Parquet"),
    ],
)
def test_files_that_are_none(content, sentence):
    if content == "folder":
        FILE.mkdir()
    elif content is not None:
        FILE.write_bytes(content)
    with pytest.raises(FileFormatError, match=f"^data.parquet: {sentence}"):
        load(FILE)


def test_damage_is_refused_or_harmless():
    data = from_frame(pa.table(TABLE), **ROLES)
    write_parquet(data, FILE)
    whole = FILE.read_bytes()
    footer = whole.rindex(b"PAR1") - int.from_bytes(whole[-8:-4], "little")
    outcomes = []
    for place in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        FILE.write_bytes(damaged)
        try:
            same = read_parquet(FILE).equals(data)
            assert same or place > footer, "only the footer has no checksum"
            outcomes.append(same)
        except FileFormatError:
            outcomes.append(None)
    assert outcomes.count(None) > len(outcomes) / 3
    for length in range(0, len(whole), 41):
        FILE.write_bytes(whole[:length])
        with pytest.raises(FileFormatError):
            read_parquet(FILE)


@pytest.mark.parametrize(
    "change",
    [
        *({"label": 5}, {"labels": ["a"]}, {"labels": {"a": 5}}, {"features": 5}),
        *({"features": [5]}, {"top_grade": "4"}, {"top_grade": -1}, {"top_grade": None}, None),
    ],
)
def test_damaged_metadata(change):
    write_parquet(from_frame(pa.table(PLAIN)), FILE)
    table = pq.read_table(FILE)
    known = json.loads(table.schema.metadata[b"rankinite"])
    text = "{" if change is None else json.dumps(known | change)
    pq.write_table(table.replace_schema_metadata({"rankinite": text}), FILE)
    with pytest.raises(FileFormatError, match="the metadata are damaged"):
        read_parquet(FILE)


def test_a_failed_write_leaves_the_old_file():
    write_parquet(everything(), FILE)
    before = FILE.read_bytes()
    with pytest.raises(UnicodeEncodeError):
        write_parquet(RankingData([[1]], [0], [1], feature_names=["\ud800"]), FILE)
    assert FILE.read_bytes() == before
    assert list(Path().iterdir()) == [FILE]


# What is saved is loaded, through every format, whatever a data set holds.
AWKWARD = list("ab #=:,[]{}\"'\\\t\r\n\x0b\x85\u2028ü€😀")
LETTERS = st.sampled_from(AWKWARD) | st.characters(codec="utf-8")
ANY_TEXT = st.text(LETTERS, max_size=6) | st.sampled_from(
    ["docid = a", "docid = a b", " docid = x clicks = 3", "#docid=y", '["", ""]', "#rankinite {}"]
)
# numpy's texts cannot end with NUL, and the text form of measures needs some characters.
QUERY_NAMES = st.text(LETTERS.filter(lambda c: c != "\0"), max_size=5)
SOURCE_NAMES = st.text(LETTERS, min_size=1, max_size=5).filter(SourceName().allows)
FEATURE_NAMES = ANY_TEXT | st.sampled_from(["label", "qid", "1", "0", "clicks", "docid", "comment"])
ANY_VALUE = st.sampled_from([0.0, -0.0, 1.0]) | st.floats(width=32, allow_infinity=False)
ANY_LABEL = st.sampled_from([0, 1, 2, 3, 4]) | st.floats(0, 1e308)
PATHS = ("a.txt", "b.parquet", "c.txt.gz", "d.pq", "e.svmlight")


def lists_of(strategy: st.SearchStrategy, n: int) -> st.SearchStrategy:
    return st.lists(strategy, min_size=n, max_size=n)


@st.composite
def data_sets(draw) -> RankingData:
    sizes = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    n_docs, n_queries, n_features = sum(sizes), len(sizes), draw(st.integers(1, 4))
    ids = draw(st.sampled_from([st.integers(-(2**63), 2**63 - 1), st.integers(0, 9), QUERY_NAMES]))
    qids = draw(st.lists(ids, min_size=n_queries, max_size=n_queries, unique=True))
    y = draw(lists_of(ANY_LABEL, n_docs))
    names = st.lists(FEATURE_NAMES, min_size=n_features, max_size=n_features, unique=True)
    counted = st.sampled_from([1, 0]).map(lambda first: [str(first + j) for j in range(n_features)])
    weights = lists_of(st.floats(0, 1e100), n_queries).filter(any)
    sources = st.lists(SOURCE_NAMES, max_size=2, unique=True)
    return RankingData(
        np.array(draw(lists_of(lists_of(ANY_VALUE, n_features), n_docs)), np.float32),
        y,
        np.repeat(np.array(qids), sizes),
        labels={
            name: draw(lists_of(ANY_LABEL | st.just(float("nan")), n_docs))
            for name in draw(sources)
        },
        query_weight=draw(st.none() | weights),
        doc_ids=draw(st.none() | lists_of(ANY_TEXT, n_docs)),
        comments=draw(st.none() | lists_of(ANY_TEXT, n_docs)),
        feature_names=draw(st.none() | counted | names),
        top_grade=draw(st.none() | st.just(max(y)) | st.just(float(np.nextafter(max(y), np.inf)))),
    )


@settings(max_examples=200, deadline=None)
@given(data=data_sets(), paths=st.lists(st.sampled_from(PATHS), min_size=1, max_size=3))
def test_a_chain_of_files_changes_nothing(data, paths):
    back = data
    for path in paths:
        save(back, path)
        back = load(path)
    assert back.equals(data)
    shuffled = data.split(1)[0]
    save(shuffled, paths[0])
    assert load(paths[0]).equals(shuffled)


@pytest.mark.parametrize("doc_ids", [["a", "b"], ["a b", ""], ["", ""]])
def test_document_ids_without_comments(doc_ids):
    data = RankingData([[1], [2]], [0, 1], [1, 1], doc_ids=doc_ids)
    save(data, "a.txt")
    assert load("a.txt").equals(data)


def test_gz_is_compressed_and_always_the_same_bytes():
    data = RankingData(np.zeros((50, 3)), np.arange(50), np.arange(50))
    save(data, "plain.txt")
    save(data, "a.txt.gz")
    save(data, "b.txt.gz")
    plain, compressed = Path("plain.txt").read_bytes(), Path("a.txt.gz").read_bytes()
    assert gzip.decompress(compressed) == plain
    assert compressed == Path("b.txt.gz").read_bytes()


@pytest.mark.parametrize("option", [{"n_features": 3}, {"query_file": "q"}, {"comments": False}])
def test_options_of_text_files_do_not_fit_parquet(option):
    save(RankingData([[1]], [0], [1]), "data.parquet")
    with pytest.raises(UsageError, match="is an option of text and compressed text files"):
        load("data.parquet", **option)
