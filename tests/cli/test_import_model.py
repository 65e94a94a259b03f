"""`rankinite import`, and other tools' files where other commands take models."""

import json

import numpy as np
import pytest

import rankinite as rk
from tests.interop.make_models import FOLDER

MODEL = str(FOLDER / "catboost.json")


@pytest.fixture
def data(tmp_path):
    sample = rk.polynomials(12, n_features=5)
    rk.save(sample, tmp_path / "data.txt")
    return sample


def test_it_writes_a_model_file(call, tmp_path, data):
    out = tmp_path / "m.rk"
    assert "CatBoost: 6 trees, 5 features" in call("import", MODEL, "--out", str(out))
    assert (rk.load_model(out).predict(data) == rk.load_model(MODEL).predict(data)).all()


def test_names_and_scale(call, tmp_path, data):
    named = rk.RankingData(data.X, data.y, data.qid, feature_names=list("abcde"))
    rk.save(named, tmp_path / "named.parquet")
    out = tmp_path / "m.rk"
    options = ["--names-of", str(tmp_path / "named.parquet"), "--scale", "0.5", "--json"]
    values = json.loads(call("import", MODEL, "--out", str(out), *options))
    assert values["features"] == list("abcde")
    assert values["tool"] == "CatBoost"
    expected = 0.5 * rk.load_model(MODEL).predict(data)
    np.testing.assert_array_equal(rk.load_model(out).predict(named), expected)


def test_every_command_takes_the_file(call, tmp_path, data):
    source, scores = str(tmp_path / "data.txt"), tmp_path / "scores.txt"
    call("predict", MODEL, source, "--out", str(scores))
    assert (rk.load_scores(scores, data) == rk.load_model(MODEL).predict(data)).all()
    assert "Tool" in call("inspect", MODEL)
    assert "L0" in call("inspect", MODEL, "--tree", "0")
    # Whatever its name is.
    text = tmp_path / "scores-or-model.txt"
    text.write_bytes((FOLDER / "xgboost-logistic.json").read_bytes())
    other = rk.load_model(text)
    assert other.tool_ == "XGBoost"
    out = tmp_path / "combined"
    call("combine", MODEL, MODEL.replace(".json", "-above.json"), "--data", source, "--out",
         str(out))  # fmt: skip
    assert rk.load_model(out / "ensemble.rk").feature_names_ == tuple("12345")


def test_no_model(call, tmp_path, data):
    said = call("import", str(tmp_path / "data.txt"), "--out", str(tmp_path / "m.rk"), code=1)
    assert "is no model of LightGBM, XGBoost, CatBoost or RankLib" in said
