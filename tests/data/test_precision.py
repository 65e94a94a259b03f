"""Features are 32-bit floats; a warning names those whose values they cannot tell apart."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rankinite as rk

HOUR = np.arange(0, 3600, 36.0)  # steps of 128 seconds are those of 32-bit floats near 1.7e9
SENTENCE = "features are 32-bit floats, of about 7 digits, too few for the values of "


def warnings_of(caplog, values, names=None, make=None) -> list[str]:
    caplog.clear()
    if make is None:
        rk.RankingData(values, np.arange(len(values)) % 2, [1] * len(values), feature_names=names)
    else:
        make()
    return [record.message for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize(
    "column",
    [
        1.7e9 + HOUR,
        (1.7e9 + HOUR).astype(np.int64),
        2.0**40 + np.arange(100.0),
        -1.7e9 - HOUR,
        1 + np.arange(100) * 1e-9,
        np.arange(100) * 1e-300,
    ],
)
def test_values_that_become_equal(column, caplog):
    values = np.stack([np.linspace(0, 1, 100), column], axis=1)
    (warning,) = warnings_of(caplog, values, ["bm25", "time"])
    assert warning.startswith(SENTENCE + "'time': some that differ become equal; subtract a const")
    assert len(np.unique(values[:, 1].astype(np.float32))) < 100


@pytest.mark.parametrize(
    "column",
    [
        HOUR,
        np.linspace(0, 1, 100) / 3,  # rounded, and still different
        np.full(100, 1.7e9 + 1),  # there is nothing to tell apart
        1.7e9 + HOUR * 8760,  # a year
        np.arange(100) + 2**20,
        (1.7e9 + HOUR).astype(np.float32),  # it was so before
        np.full(100, np.nan),
    ],
)
def test_values_that_stay_apart_or_were_equal_before(column, caplog):
    assert warnings_of(caplog, column[:, None]) == []


def test_frames_and_rankers_warn_as_well(caplog):
    frame = pd.DataFrame({"time": 1.7e9 + HOUR, "x": HOUR})
    y, qid = np.arange(100) % 3, np.repeat(np.arange(10), 10)
    small = rk.LambdaMART(n_trees=1)
    for make in (
        lambda: small.fit(frame, y, qid=qid),
        lambda: small.fit(pl.from_pandas(frame), y, qid=qid),
        lambda: rk.from_frame(frame.assign(label=y, qid=qid)),
    ):
        (warning,) = warnings_of(caplog, None, make=make)
        assert warning.startswith(SENTENCE + "'time'")
