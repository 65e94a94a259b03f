"""Categorical features at the command line: columns of texts, dictionaries and codes."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankinite as rk

SMALL = ("--n-trees", "5", "--n-leaves", "4", "--min-docs-in-leaf", "2")


def write(part: str, seed: int, *, dictionary: bool) -> None:
    rng = np.random.default_rng(seed)
    shop = rng.integers(5, size=80)
    texts = pa.array([f"shop {k}" for k in shop])
    table = {
        "qid": np.arange(80) // 8,
        "label": np.clip(shop - 1, 0, 3),
        "price": rng.normal(size=80),
        "shop": texts.dictionary_encode() if dictionary else texts,
    }
    pq.write_table(pa.table(table), f"{part}.parquet")


@pytest.fixture(params=[False, True], ids=["texts", "dictionaries"])
def flag(request):
    for seed, part in enumerate(("train", "valid", "test")):
        write(part, seed, dictionary=request.param)
    return () if request.param else ("--categorical-features", "shop")


def test_parquet_from_training_to_evaluation(call, flag):
    call("train", "train.parquet", "--valid", "valid.parquet", "-o", "m.rk", *SMALL, *flag)
    model = rk.load_model("m.rk")
    assert list(model.categories_["shop"]) == [f"shop {k}" for k in range(5)]
    assert model.forest_.trees[0].categorical.any()
    configuration = tomllib.loads(Path("m.rk.toml").read_text())
    named = ["shop"] if flag else "from_dtype"
    assert configuration["categorical_features"] == named
    before = Path("m.rk").read_bytes()
    call("train", "--config", "m.rk.toml")
    assert Path("m.rk").read_bytes() == before
    call("predict", "m.rk", "test.parquet", "-o", "scores.txt")
    call("evaluate", "test.parquet", "scores.txt", "--json")
    scores = [float(line) for line in Path("scores.txt").read_text().splitlines()]
    assert scores == model.predict(rk.load("test.parquet", categorical_features="all")).tolist()
    shown = json.loads(call("inspect", "m.rk", "--json"))
    assert shown["importances"][0]["feature"] == "shop"


def test_texts_must_be_named(call):
    write("train", 0, dictionary=False)
    problem = call("train", "train.parquet", "-o", "m.rk", code=1)
    assert "column 'shop' holds string; expected numbers" in problem
    assert "--categorical-features" in " ".join(problem.split())


def test_features_of_text_files_are_named_by_their_numbers(call):
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=80), rng.integers(5, size=80)])
    data = rk.RankingData(X, X[:, 1] % 3, group_sizes=[8] * 10)
    rk.save(data, "train.txt")
    call("train", "train.txt", "-o", "m.rk", *SMALL, "--categorical-features", "2")
    assert rk.load_model("m.rk").categories_ == {"2": {}}
    problem = call("train", "train.txt", "-o", "m.rk", "--categorical-features", "0", code=2)
    assert "categorical_features has '0'" in " ".join(problem.split())
