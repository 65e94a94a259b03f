"""Categorical features of data sets: their tables through frames, files and operations."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankinite as rk
from rankinite.core.errors import FileFormatError
from rankinite.data.categories import codes_by_text, extended_tables, match_codes
from rankinite.data.memmap import fingerprint, open_shared, save_shared
from rankinite.data.tables import ROWS_A_BATCH

NAN = np.nan
ROWS = {"qid": [1, 1, 2, 2], "label": [0, 1, 0, 2], "price": [0.5, 1.5, 2.5, 3.5]}


def data_of(texts, **options) -> rk.RankingData:
    frame = pa.table(ROWS | {"shop": pa.array(texts).dictionary_encode()})
    return rk.from_frame(frame, **options)


DATA = data_of(["zoo", None, "ark", "zoo"])


def same(column, expected) -> bool:
    return np.array_equal(column, np.array(expected, np.float32), equal_nan=True)


def test_tables_are_sorted():
    assert DATA.categories == {"shop": ("ark", "zoo")}
    assert same(DATA.X[:, 1], [1, NAN, 0, 1])


def test_whole_numbers_are_their_own_codes(tmp_path):
    frame = pd.DataFrame(ROWS | {"shop": pd.Categorical([30, 7, None, 30])})
    data = rk.from_frame(frame)
    frame.to_parquet(tmp_path / "pandas.parquet")
    assert rk.load(tmp_path / "pandas.parquet").equals(data)
    assert data.categories == {"shop": ()}
    assert same(data.X[:, 1], [30, 7, NAN, 30])
    # Other numbers are texts.
    data = data_of([-1, 3, None, 10**9])
    assert data.categories == {"shop": ("-1", "1000000000", "3")}
    plain = pd.DataFrame(ROWS | {"shop": [3, 4, 5, 6]})
    assert rk.from_frame(plain, categorical_features=["shop"]).categories == {"shop": ()}
    assert rk.from_frame(plain, categorical_features="all").categories == {}


def test_batches_with_dictionaries_of_their_own(tmp_path):
    n = ROWS_A_BATCH + 10
    texts = [f"shop {k % 7 + (k > ROWS_A_BATCH // 2) * 3}" for k in range(n)]
    halves = [pa.array(part).dictionary_encode() for part in (texts[: n // 2], texts[n // 2 :])]
    table = pa.table(
        {"qid": np.arange(n) // 10, "label": np.arange(n) % 3, "shop": pa.chunked_array(halves)}
    )
    expected = [sorted(set(texts)).index(text) for text in texts]
    assert same(rk.from_frame(table).X[:, 0], expected)
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=5000)
    data = rk.load(tmp_path / "a.parquet")
    assert same(data.X[:, 0], expected)
    # Without dictionaries, as other programs write texts.
    plain = table.set_column(2, "shop", pa.array(texts))
    pq.write_table(plain, tmp_path / "b.parquet", store_schema=False)
    for categorical in (["shop"], "all"):
        assert rk.load(tmp_path / "b.parquet", categorical_features=categorical).equals(data)
    with pytest.raises(FileFormatError, match="'shop' holds string; expected numbers"):
        rk.load(tmp_path / "b.parquet")
    with pytest.raises(rk.UsageError, match="give a list of names"):
        rk.load(tmp_path / "b.parquet", categorical_features="shop")


@pytest.mark.parametrize("name", ["data.parquet", "data.txt", "data.txt.gz"])
@pytest.mark.parametrize("data", [DATA, DATA.replace(categories={"shop": ()})])
def test_files_keep_them(tmp_path, name, data):
    rk.save(data, tmp_path / name)
    assert rk.load(tmp_path / name).equals(data)


@pytest.mark.parametrize(
    "categories",
    ['["shop"]', '{"shop": "zoo"}', '{"shop": [1]}', '{"shop": ["a", "a"]}', '{"b": []}'],
)
def test_damaged_headers(tmp_path, categories):
    path = tmp_path / "data.txt"
    path.write_text(
        f'#rankinite {{"feature_names": ["shop"], "categories": {categories}}}\n1 qid:1 1:0\n'
    )
    with pytest.raises(FileFormatError):
        rk.load(path)


def test_operations_keep_them(tmp_path):
    assert DATA[1].categories == DATA.categories
    assert DATA.select_features(["price"]).categories == {}
    assert DATA.select_features(["shop"]).categories == DATA.categories
    assert pickle.loads(pickle.dumps(DATA)).equals(DATA)
    save_shared(DATA, tmp_path / "shared")
    assert open_shared(tmp_path / "shared").equals(DATA)
    assert fingerprint(DATA) != fingerprint(DATA.replace(categories={"shop": ("ark", "zebra")}))
    assert not DATA.equals(DATA.replace(categories={}))
    ranks = rk.RankNormaliser().fit_transform(DATA)
    assert same(ranks.X[:, 1], DATA.X[:, 1])


def test_concatenation_joins_tables():
    other = data_of(["ark", "bar", "zoo", None])
    other = other.replace(qids=other.qids + 10)
    joined = rk.concat([DATA, other])
    assert joined.categories == {"shop": ("ark", "bar", "zoo")}
    assert same(joined.X[:, 1], [2, NAN, 0, 2, 0, 1, 2, NAN])
    assert rk.concat(list(DATA)).matrix is DATA.matrix


def test_codes_are_matched_by_text():
    wanted = codes_by_text({"shop": ("ark", "bar", "zoo")})
    names = DATA.feature_names
    matched = match_codes("test", DATA.matrix, names, DATA.categories, wanted)
    assert same(matched[:, 1], [2, NAN, 0, 2])
    # The same codes, and those of categories that nobody asks for, need no copy.
    for codes in ({"shop": {"zoo": 1, "ark": 0}}, {"shop": {"ark": 0}}):
        assert match_codes("test", DATA.matrix, names, DATA.categories, codes) is DATA.matrix
    # A code that means something else is not left.
    matched = match_codes("test", DATA.matrix, names, DATA.categories, {"shop": {"bar": 1}})
    assert same(matched[:, 1], [NAN, NAN, NAN, NAN])


WRONG = [
    ({"size": ()}, "there is no feature called 'size'"),
    ({"shop": ("a", "a", "b")}, "has the category 'a' twice"),
    ({"shop": ("a",)}, "the categorical feature 'shop' has the value 1 in row 0; expected whole"),
    (
        {"price": ()},
        "'price' has the value 0.5 in row 0; expected whole numbers from 0 to 16777215",
    ),
]


@pytest.mark.parametrize(("categories", "sentence"), WRONG)
def test_wrong_tables(categories, sentence):
    with pytest.raises(rk.DataError) as problem:
        rk.RankingData(
            DATA.X, DATA.y, DATA.qid, feature_names=DATA.feature_names, categories=categories
        )
    assert sentence in str(problem.value)


def test_extended_tables_keep_their_codes():
    tables = {"shop": ("zoo", "ark"), "size": (), "town": ("a",)}
    more = {"shop": ("ark", "new", "bar"), "size": ("s",), "other": ("x",)}
    extended = extended_tables(tables, more)
    assert extended == {"shop": ("zoo", "ark", "bar", "new"), "size": (), "town": ("a",)}
