"""Clicks with positions from the shell: training, and what inspect shows of it."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk

SETTINGS = ["--n-trees", 5, "--n-leaves", 4]


@pytest.fixture
def log():
    data = rk.click_sessions(rk.polynomials(12, n_features=3), sessions=2)
    data = data.with_labels({"w": np.where(data.y > 0.0, 2.0, 1.0)})
    rk.save(data, "log.parquet")
    return data


@pytest.mark.parametrize("method", ["propensity", "additive"])
def test_a_correction_for_positions(call, log, method):
    call("train", "log.parquet", "--position-bias", method, *SETTINGS, "--out", "m.rk")
    model = rk.LambdaMART(n_trees=5, n_leaves=4, position_bias=method).fit(log)
    assert rk.load_model("m.rk").predict(log).tobytes() == model.predict(log).tobytes()
    bias = model.position_bias_
    contents = json.loads(call("inspect", "m.rk", "--figures", "figures", "--json"))
    assert contents["position_bias"] == {
        "method": method,
        "positions": list(range(1, 11)),
        **{name: values.tolist() for name, values in bias.estimates.items()},
    }
    assert str(Path("figures", "position-bias.png")) in contents["figures"]
    assert Path("figures", "position-bias.png").stat().st_size > 0
    shown = call("inspect", "m.rk")
    assert "of each position, as estimated" in shown
    last = [f"{values[-1]:.3f}" for values in bias.estimates.values()]
    assert ["10", *last] in [line.split() for line in shown.splitlines()]


def test_models_without_positions_show_none(call, log):
    call("train", "log.parquet", *SETTINGS, "--out", "m.rk")
    assert "position_bias" not in json.loads(call("inspect", "m.rk", "--json"))
    assert "as estimated" not in call("inspect", "m.rk")


def test_weights_of_a_label_source(call, log):
    call("train", "log.parquet", "--weight-source", "w", *SETTINGS, "--out", "m.rk")
    model = rk.LambdaMART(n_trees=5, n_leaves=4).fit(log, sample_weight=log.labels["w"])
    assert rk.load_model("m.rk").predict(log).tobytes() == model.predict(log).tobytes()


def test_a_source_that_is_not_there(call):
    rk.save(rk.polynomials(12, n_features=3), "d.parquet")
    message = call("train", "d.parquet", "--position-bias", "additive", "--out", "m.rk", code=2)
    assert (
        "position_source is 'position', and the label sources of the training data are: none"
        in (" ".join(message.split()))
    )
