"""Columns of texts in the commands that look at data sets, and write them again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import rankinite as rk

SMALL = ("--n-trees", "5", "--n-leaves", "4", "--min-docs-in-leaf", "2")
SHOP = ("--categorical-features", "shop")
SHOPS = {f"shop {k}" for k in range(5)}


@pytest.fixture(autouse=True)
def source():
    rng = np.random.default_rng(0)
    shop = rng.integers(5, size=120)
    table = {
        "qid": np.arange(120) // 8,
        "label": np.clip(shop - 1, 0, 3),
        "price": rng.normal(size=120),
        "shop": pa.array([f"shop {k}" for k in shop]),
        "host": rng.integers(3, size=120),
    }
    pq.write_table(pa.table(table), "all.parquet")
    return rk.load("all.parquet", categorical_features=["shop"])


def dictionaries(path: str) -> list[str]:
    schema = pq.read_schema(path)
    return [field.name for field in schema if pa.types.is_dictionary(field.type)]


def test_parts_train_as_their_source_did(call, source):
    call("data", "split", "all.parquet", "--proportions", "0.7,0.3", "-o", "parts", *SHOP)
    part, _ = source.split([0.7, 0.3], seed=0)
    assert dictionaries("parts/train.parquet") == ["shop"]
    assert rk.load("parts/train.parquet").equals(part)
    # With the flag, as the source needs it, and without.
    for flag in (SHOP, ()):
        call("train", "parts/train.parquet", "-o", "m.rk", *SMALL, *flag, "--force")
        model = rk.load_model("m.rk")
        by_hand = rk.LambdaMART(n_trees=5, n_leaves=4, min_docs_in_leaf=2).fit(part)
        assert model.categories_["shop"].keys() == set(part.categories["shop"])
        np.testing.assert_array_equal(model.predict(source), by_hand.predict(source))


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("data convert all.parquet out.parquet", "out.parquet"),
        ("data convert all.parquet out.txt", "out.txt"),
        ("data augment all.parquet -o out.parquet", "out.parquet"),
        ("data normalise all.parquet -o out", "out/all.parquet"),
        ("data split all.parquet --parts 2 -o out", "out/part01.parquet"),
        ("data simulate clicks all.parquet -o out", "out/all.parquet"),
        ("data simulate sessions all.parquet -o out", "out/all.parquet"),
    ],
)
def test_what_is_written_keeps_categories(call, command, written, source):
    problem = " ".join(call(*command.split(), code=1).split())
    assert "column 'shop' holds string; expected numbers" in problem
    assert "--categorical-features" in problem
    for texts in ("shop", "ALL"):
        call(*command.split(), "--categorical-features", texts, "--force")
        data = rk.load(written)
        assert data.categories.keys() == {"shop"}
        assert set(data.categories["shop"]) <= SHOPS
        assert data.feature_names == source.feature_names


def test_whole_numbers_and_features_of_text_files_can_be_named(call, source):
    call("data", "convert", "all.parquet", "out.txt", "--categorical-features", "shop,host")
    assert rk.load("out.txt").categories == {**source.categories, "host": ()}
    rk.save(rk.RankingData(source.X, source.y, source.qid), "plain.txt")
    call("data", "convert", "plain.txt", "out.parquet", "--categorical-features", "2")
    assert rk.load("out.parquet").categories == {"2": ()}


def test_features_that_do_not_exist_are_refused(call):
    for names, words in [("shop,brand", "has 'brand'"), ("shop,", "has an empty name")]:
        command = ("data", "convert", "all.parquet", "out.txt", "--categorical-features", names)
        assert words in " ".join(call(*command, code=2).split())
    assert not Path("out.txt").exists()


def test_describe_takes_texts(call):
    lines = [line.split() for line in call("data", "describe", "all.parquet").splitlines()]
    assert ["Features", "3"] in lines
    assert ["categorical", "1"] in lines
    (shown,) = json.loads(call("data", "describe", "all.parquet", "--json"))["sets"]
    assert shown["categorical_features"] == ["shop"]
    assert shown["distinct_values_per_feature"][1] == 5


def test_qrels_need_no_features(call, source):
    call("data", "convert", "all.parquet", "all.qrels")
    assert len(Path("all.qrels").read_text().splitlines()) == source.n_docs


def test_test_data_of_combine_may_have_other_texts(call, source):
    for seed in (0, 1):
        call("train", "all.parquet", "-o", f"{seed}.rk", *SMALL, *SHOP, "--random-state", str(seed))
    table = pq.read_table("all.parquet")
    pq.write_table(table.append_column("url", table.column("shop")), "test.parquet")
    call("combine", "0.rk", "1.rk", "-d", "all.parquet", "--test", "test.parquet", "-o", "both")
    scores = np.loadtxt("both/test-scores.txt")
    np.testing.assert_allclose(scores, rk.load_model("both/ensemble.rk").predict(source))
