"""The commands ``reproduce`` and ``optimality``, at a size that takes seconds."""

import json
from pathlib import Path

import pytest

import rankinite as rk
from rankinite.experiments.reproductions import constructions, linear, matching, optimality

pytestmark = pytest.mark.usefixtures("one_thread")

PNG = b"\x89PNG\r\n\x1a\n"
TINY = ["--scale", "0.001", "--quiet", "--out", "found"]
FOUR = ("NDCG", "NDCG@10", "MAP", "MRR")


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch):
    """Let nets learn next to nothing: what is tested are tables, not nets."""
    for module in (constructions, linear, matching):
        monkeypatch.setattr(module, "EPOCHS", 2)
    monkeypatch.setattr(constructions, "RATES", (1e-3,))
    monkeypatch.setattr(matching, "SIZES", (20, 40_000))
    monkeypatch.setattr(matching, "TEST_QUERIES", 20)
    monkeypatch.setattr(optimality, "AT_REST", {"n_epochs": 13, "patience": None})
    monkeypatch.setattr(optimality, "MORE_EPOCHS", 2)


def files_of(*names):
    """Return the bytes of the files that must be there."""
    return [Path("found", name).read_bytes() for name in names]


def test_matching(call):
    out = call("reproduce", "matching", *TINY)
    _, found, figure = files_of("matching.md", "matching.json", "matching.png")
    assert figure.startswith(PNG)
    values = json.loads(found)
    assert set(values["polynomials"]) == {"20", "40"}
    for one in values["polynomials"].values():
        assert set(one) == set(FOUR)
        assert one["NDCG"]["pairs"][0] >= one["NDCG@10"]["pairs"][0] > one["MRR"]["pairs"][0]
        assert all(one[m]["test"][m]["p_value"] == 1.0 for m in FOUR)
    lines = out.splitlines()
    assert sum(line.startswith("MAP ") and " MRR " in line for line in lines) == 2
    assert "* is the best of its target" in out


def test_constructions(call):
    out = call("reproduce", "constructions", *TINY)
    _, found = files_of("constructions.md", "constructions.json")
    values = json.loads(found)
    assert list(values) == ["polynomials", "challenge"]
    assert all(len(one) == len(FOUR) for one in values.values())
    for one in [measure for data in values.values() for measure in data.values()]:
        assert set(one) == {
            "RankNetWeightPairs", "LocalGradient", "LocalCost", "SpringSmooth", "DiscreteBounded",
        }  # fmt: skip
        assert one["RankNetWeightPairs"]["valid"]["p_value"] == 1.0
    assert out.count("RankNetWeightPairs") >= len(FOUR)


def test_linear(call):
    out = call("reproduce", "linear", *TINY)
    _, found, figure = files_of("linear.md", "linear.json", "linear.png")
    assert figure.startswith(PNG)
    curves = json.loads(found)["curves"]
    assert {len(values) for one in curves.values() for values in one.values()} == {2}
    assert "trained for ERR" in out


def test_optimality_of_the_paper(call):
    out = call("reproduce", "optimality", *TINY)
    names = [f"figure-{k}.png" for k in (1, 2, 3, 4, 6)] + ["section-8.png"]
    assert all(one.startswith(PNG) for one in files_of(*names))
    values = json.loads(files_of("optimality.json")[0])
    assert values["linear random"]["n_rising"] > 0
    rows = [line for line in out.splitlines() if line.startswith(("linear ", "two-layer "))]
    assert len(rows) == 8 + 1 + 3
    assert all(" 459 " in row for row in rows)


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
        "--weights", "all", "--quiet", "--out", "found",
    )  # fmt: skip
    assert files_of("optimality.png")[0].startswith(PNG)
    values = json.loads(files_of("optimality.json")[0])
    assert list(values) == ["NDCG@3", "MRR"]
    start = rk.evaluate(model.predict(data), data, "NDCG@3").mean["NDCG@3"]
    assert values["NDCG@3"]["directions"]["start"] == pytest.approx(start, abs=1e-12)
    assert "one by one" in out
    # 13 directions for 0.01 and 0.3: 0.7 ** 13 is the first power below 0.01.
    assert " 13 " in out


def test_the_measure_of_training_is_the_default(call, net):
    call("optimality", "net.rk", "train.txt", "--epsilon", "0.5", "--quiet", "--out", "found")
    assert list(json.loads(files_of("optimality.json")[0])) == ["NDCG@3"]


def test_json(call, net):
    out = call("optimality", "net.rk", "train.txt", "--epsilon", "0.5", "--json")
    found = json.loads(out)
    assert found["NDCG@3"]["directions"]["n_directions"] == 7
    assert "optimality/optimality.png" in found["wrote"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--steps", "0.1,x"], "--steps '0.1,x' are not all numbers"),
        (["--steps", "0"], "above 0"),
        (["--weights", "some"], "--weights 'some' is no number of weights; give one, or all"),
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


@pytest.mark.parametrize("scale", ["0", "-1", "nan"])
def test_wrong_scale(call, scale):
    assert "scale must be" in call("reproduce", "linear", "--scale", scale, code=2)
