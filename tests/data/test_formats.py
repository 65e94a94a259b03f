"""Properties that every registered file format has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.data.formats import BY_SUFFIX, FORMATS, HEAD, format_of

PLAIN = rk.RankingData(
    X=[[0.5, np.nan], [1e-30, 2], [0, 3], [0, 0.1]],
    y=[0, 1, 2, 0.25],
    qid=[7, 7, 12, 12],
)
FULL = rk.RankingData(
    X=PLAIN.X,
    y=PLAIN.y,
    qid=["a", "a", "b b", "b b"],
    labels={"clicks": [0.5, np.nan, 1, 0]},
    query_weight=[1, 0.5],
    doc_ids=["d1", "d2", "d3", ""],
    comments=["first", "", "#", "ä"],
    feature_names=["bm25", "label"],
    top_grade=4,
)


@pytest.fixture(params=FORMATS)
def file_format(request):
    return FORMATS[request.param]


@pytest.mark.parametrize("data", [PLAIN, FULL, FULL[[1]]], ids=["plain", "full", "part"])
def test_round_trip(tmp_path, file_format, data):
    path = tmp_path / f"data.{file_format.name}"
    rk.save(data, path)
    assert rk.load(path).equals(data)


def test_names_choose_the_format(file_format):
    assert format_of(f"data.{file_format.name}") is file_format
    for suffix in file_format.suffixes:
        assert BY_SUFFIX[suffix] is file_format
        assert format_of(f"DATA{suffix.upper()}") is file_format


def test_first_bytes_choose_the_format_of_a_file_without_a_known_suffix(tmp_path, file_format):
    file_format.write(FULL, tmp_path / f"data.{file_format.name}")
    path = (tmp_path / f"data.{file_format.name}").rename(tmp_path / "data.unknown")
    head = path.read_bytes()[:HEAD]
    assert [known for known in FORMATS.values() if known.recognise(head)] == [file_format]
    assert format_of(path) is file_format
    assert rk.load(path).equals(FULL)


def test_text_is_the_default(tmp_path):
    assert format_of("new-file") is FORMATS["txt"]
    assert format_of(tmp_path) is FORMATS["txt"]
    path = Path(tmp_path / "noise")
    path.write_bytes(b"\x00\x01")
    assert format_of(path) is FORMATS["txt"]


@pytest.mark.parametrize(
    ("suffix", "options", "sentence"),
    [
        (".parquet", {"n_features": 3}, "n_features is an option of text and compressed text"),
        (".parquet", {"comments": False}, "comments is an option of text and compressed text"),
        (".txt", {"qid": "query"}, "qid is an option of Parquet files, and .*data.txt is text"),
    ],
)
def test_options_of_other_formats_are_refused(tmp_path, suffix, options, sentence):
    path = tmp_path / f"data{suffix}"
    rk.save(PLAIN, path)
    with pytest.raises(rk.UsageError, match=sentence):
        rk.load(path, **options)
