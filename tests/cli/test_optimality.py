"""The command ``optimality``, on a small net."""

import json
from pathlib import Path

import pytest

import rankinite as rk

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def net():
    """Write a small net and the data that it was fitted to."""
    data = rk.polynomials(20, n_features=4, n_docs=6)
    rk.save(data, "train.txt")
    model = rk.LambdaRank("NDCG@3", hidden=2, n_epochs=3).fit(data)
    model.save("net.rk")
    return model, data


def test_optimality_of_a_net(call, net):
    model, data = net
    out = call(
        "optimality", "net.rk", "train.txt", "--measures", "NDCG@3,MRR", "--epsilon", "0.3",
        "--weights", "all", "--quiet", "--out", "results",
    )  # fmt: skip
    assert Path("results/optimality.png").read_bytes().startswith(PNG)
    values = json.loads(Path("results/optimality.json").read_bytes())
    assert list(values) == ["NDCG@3", "MRR"]
    start = rk.evaluate(model.predict(data), data, "NDCG@3").mean["NDCG@3"]
    assert values["NDCG@3"]["directions"]["start"] == pytest.approx(start, abs=1e-12)
    assert "one by one" in out
    # 13 directions for 0.01 and 0.3: 0.7 ** 13 is the first power below 0.01.
    assert " 13 " in out


def test_the_measure_of_training_is_the_default(call, net):
    call("optimality", "net.rk", "train.txt", "--epsilon", "0.5", "--quiet", "--out", "results")
    assert list(json.loads(Path("results/optimality.json").read_bytes())) == ["NDCG@3"]


def test_json(call, net):
    out = call("optimality", "net.rk", "train.txt", "--epsilon", "0.5", "--json")
    values = json.loads(out)
    assert values["NDCG@3"]["directions"]["n_directions"] == 7
    assert "optimality/optimality.png" in values["wrote"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0.1,x"], "--steps '0.1,x' are not all numbers"),
        (["--steps", "0"], "above 0"),
        (
            ["--weights", "some"],
            "--weights 'some' is not a number of weights; give a number, or all",
        ),
        (["--epsilon", "0"], "epsilon"),
        (["--delta", "1"], "delta"),
        (["--measures", "NDGC"], "NDGC"),
    ],
)
def test_wrong_flags(call, net, arguments, message):
    assert message in call("optimality", "net.rk", "train.txt", *arguments, code=2)


def test_a_model_without_weights(call):
    data = rk.polynomials(20, n_features=4, n_docs=6)
    rk.save(data, "train.txt")
    rk.LambdaMART(n_trees=2).fit(data).save("trees.rk")
    err = call("optimality", "trees.rk", "train.txt", code=2)
    assert "trees.rk holds a LambdaMART, which has no weights to move" in err


def test_a_file_is_no_folder(call, net):
    err = call("optimality", "net.rk", "train.txt", "--out", "train.txt", code=1)
    assert "train.txt: this is a file; expected a folder" in err
