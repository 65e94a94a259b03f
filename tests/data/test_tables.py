"""Frames that are read when they are needed, and columns as numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import rankinite as rk
from rankinite.core import memory
from rankinite.data.tables import is_table, open_table

FRAME = pd.DataFrame(
    {"qid": [1, 1, 2], "bm25": [0.5, None, 2.0], "doc": ["a", "b", "c"], "label": [0, 1, 2]}
)


def expected() -> rk.RankingData:
    X = [[0.5], [np.nan], [2.0]]
    return rk.RankingData(X, [0, 1, 2], [1, 1, 2], feature_names=["bm25"], doc_ids=["a", "b", "c"])


def test_lazy_frames_and_datasets(tmp_path):
    for k, part in enumerate((FRAME[:1], FRAME[1:])):
        pq.write_table(pa.Table.from_pandas(part), tmp_path / f"{k}.parquet")
    for frame in (
        FRAME,
        pl.from_pandas(FRAME).lazy(),
        pl.scan_parquet(tmp_path / "*.parquet"),
        pyarrow.dataset.dataset(tmp_path),
        pa.Table.from_pandas(FRAME).to_reader(),
    ):
        assert rk.from_frame(frame, doc_id="doc").equals(expected())


def test_only_the_columns_in_use_are_computed():
    lazy = pl.from_pandas(FRAME).lazy().with_columns(bad=pl.lit("x").str.to_integer())
    chosen = rk.from_frame(lazy, features=["bm25"], doc_id="doc")
    assert chosen.equals(expected())


def test_what_is_a_table():
    assert is_table(FRAME)
    assert is_table(pl.from_pandas(FRAME).lazy())
    assert not is_table(FRAME["bm25"])
    assert not is_table(pl.from_pandas(FRAME)["bm25"])
    assert not is_table(np.ones((2, 2)))
    with pytest.raises(rk.UsageError, match="fit: cannot read a list; expected a pandas, polars"):
        open_table("fit", [[1, 2]])


def test_a_matrix_that_does_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 10)
    with pytest.raises(rk.DataError, match="reading 3 documents x 1 features takes 462 bytes"):
        rk.from_frame(FRAME, doc_id="doc")
