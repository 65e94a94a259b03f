"""The commands ``reproduce`` and ``optimality``, at a size that takes seconds."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import sem, t

import rankinite as rk
from rankinite.data.simulate import challenge as drawing
from rankinite.papers import (
    accuracy,
    adaptation,
    combiners,
    constructions,
    graded,
    line_search,
    linear,
    matching,
    optimality,
    schedules,
)
from rankinite.papers import setting as ndcg

pytestmark = pytest.mark.usefixtures("one_thread")

PNG = b"\x89PNG\r\n\x1a\n"
TINY = ["--scale", "0.001", "--quiet", "--out", "found"]
FOUR = ("NDCG", "NDCG@10", "MAP", "MRR")


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch):
    """Let nets learn next to nothing: what is tested are tables, not nets."""
    for module in (accuracy, adaptation, constructions, linear, matching):
        monkeypatch.setattr(module, "EPOCHS", 2)
    for module in (accuracy, adaptation, constructions):
        monkeypatch.setattr(module, "RATES", (1e-3,))
    few = [replace(trial, n_rounds=2, n_trees=40) for trial in accuracy.TRIALS]
    monkeypatch.setattr(accuracy, "TRIALS", few)
    monkeypatch.setattr(drawing, "QUERIES_A_BLOCK", 20)
    monkeypatch.setattr(adaptation, "TARGET", {**adaptation.TARGET, "train": 25_000})
    monkeypatch.setattr(adaptation, "TREES", {**adaptation.TREES, "n_trees": 15})
    monkeypatch.setattr(combiners, "EPOCHS", 2)
    monkeypatch.setattr(combiners, "STACKED_EPOCHS", 2)
    monkeypatch.setattr(combiners, "TREES", {**combiners.TREES, "n_trees": 3})
    monkeypatch.setattr(line_search, "TREES", 12)
    monkeypatch.setattr(graded, "TREES", {**graded.TREES, "n_trees": 4})
    monkeypatch.setattr(graded, "WEIGHTS", (0.1, 0.5))
    monkeypatch.setattr(schedules, "TREES", {**schedules.TREES, "n_trees": 3})
    monkeypatch.setattr(schedules, "RATES", (0.1, 0.2))
    monkeypatch.setattr(schedules, "STARTS", (0.25,))
    monkeypatch.setattr(schedules, "SHARES", (0.5, 1.0))
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


def test_line_search(call):
    out = call("reproduce", "line-search", *TINY)
    _, found, *figures = files_of(
        "line-search.md",
        "line-search.json",
        "line-search-polynomials.png",
        "line-search-challenge.png",
    )
    assert all(figure.startswith(PNG) for figure in figures)
    values = json.loads(found)
    assert list(values) == ["polynomials", "challenge"]
    for name, (low, high) in {"polynomials": (0.1, 100), "challenge": (0.1, 5)}.items():
        for weights, one in values[name].items():
            assert {len(curve["NDCG@10"]) for curve in one["curves"].values()} == {12}
            assert len(one["alphas"]) == (12 if "line search" in weights else 0)
            assert all(low <= alpha <= high for alpha in one["alphas"])
    assert out.count("after sweep") == 2 * line_search.SWEEPS


def test_graded(call):
    out = call("reproduce", "graded", *TINY)
    text, found, figure = files_of("graded.md", "graded.json", "graded.png")
    assert figure.startswith(PNG)
    values = json.loads(found)
    assert list(values["trials"]) == ["clicks", "similar_clicks"]
    assert len(values["diagnostics"]["rounds"]) == 4
    for source, trial in values["trials"].items():
        measure = graded.tiers(source)
        assert trial["chosen"] == graded.WEIGHTS[measure.best(trial["valid"].values())]
        for name, (gain, p) in trial["gain_and_p"].items():
            # Means are over the queries that count, which are the same for both.
            assert gain == pytest.approx(trial["both"][name] - trial["judged"][name], abs=1e-12)
            assert 0.0 <= p <= 1.0
        assert f"{source}: with clicks as the second tier" in out
    rows = [line for line in text.decode().splitlines() if " alone |" in line]
    assert [row.count("|") for row in rows] == [12] * 8


def test_schedules(call):
    out = call("reproduce", "schedules", *TINY)
    text, found, *figures = files_of(
        "schedules.md", "schedules.json", "schedules.png", "schedules-diagnostics.png"
    )
    assert all(figure.startswith(PNG) for figure in figures)
    values = json.loads(found)
    assert len(values) == 2 + len(schedules.TRANSITIONS)
    rates = {one["parameters"]["learning_rate"] for one in values.values()}
    assert rates <= {"0.1", "0.2"}
    for name, one in values.items():
        assert one["parameters"]["step"] == ("newton" if name.startswith("Newton") else "gradient")
        assert list(one["by_share"]) == (["1"] if "S@3" in name else ["0.5", "1"])
    chosen = values["L + S@3, linear"]["parameters"]["measure"]
    assert chosen.startswith("Transition(NDCG, SigmoidCost(NDCG@3), linear(start=0.25, eta=0.")
    assert "gradient descent against Newton step" in out
    assert text.decode().count("62.27/61.66/65.17") == 1


def test_trees_that_are_needed_for_what_all_reach():
    """The better one begins with 0.5, and the best of the other is 0.6."""
    slow, fast = np.array([0.4, 0.5, 0.6]), np.array([0.5, 0.7, 0.8])
    levels = line_search.common_levels([slow, fast])
    assert levels == pytest.approx([0.525, 0.55, 0.575, 0.6])
    assert [line_search.trees_needed(slow, level) for level in (0.5, 0.525, 0.6)] == [2, 3, 3]
    assert [line_search.trees_needed(fast, level) for level in (0.5, 0.525, 0.6)] == [1, 2, 2]


def test_accuracy(call):
    out = call("reproduce", "accuracy", *TINY)
    _, found, figure = files_of("accuracy.md", "accuracy.json", "accuracy.png")
    assert figure.startswith(PNG)
    values = json.loads(found)
    assert list(values) == ["polynomials", "challenge"]
    for one in values.values():
        assert set(one["test"]) == {"LambdaMART", "McRank", "LambdaRank"}
        # McRank grows five trees a round, so that 40 trees are 8 rounds.
        trees = {name: curve["trees"] for name, curve in one["curves"].items()}
        assert trees == {"LambdaMART": [10, 20, 30, 40], "McRank": [10, 20, 30, 40]}
    assert out.count("Trees of LambdaMART") == len(values)


def test_trees_for_the_same_accuracy():
    """Of McRank's values the best so far count; LambdaMART may never come there."""
    curves = {
        "LambdaMART": accuracy.Line("", [10, 20, 30, 40], [0.5, 0.7, 0.6, 0.7]),
        "McRank": accuracy.Line("", [10, 20, 30, 40], [0.4, 0.6, 0.5, 0.8]),
    }
    assert accuracy._needed(curves) == [(0.4, 10, 10), (0.6, 20, 20), (0.8, None, 40)]


def test_intervals_are_those_of_the_t_distribution():
    values = np.array([0.1, 0.2, np.nan, 0.6])
    low, high = t.interval(0.95, 2, 0.3, sem([0.1, 0.2, 0.6]))
    assert ndcg.half_interval(values) == pytest.approx((high - low) / 2)
    assert ndcg.with_interval(values) == f"0.3000 ({(high - low) / 2:.4f})"


def test_adaptation(call):
    out = call("reproduce", "adaptation", *TINY)
    names = [f"adaptation{name}" for name in (".md", ".json", ".png", "-queries.png")]
    _, found, *figures = files_of(*names)
    assert all(figure.startswith(PNG) for figure in figures)
    values = json.loads(found)
    assert list(values) == ["long", "names", "small"]
    smart = [f"LambdaSMART from {name}" for name in ("near", "middle", "far")]
    assert list(values["small"]["tests"]) == smart
    for one in values.values():
        backgrounds = len(one["tests"])
        assert len(one["test"]) == 2 * backgrounds + 3
        assert len(one["weights"]) == backgrounds + 1
        assert list(one["sizes"]) == ["20", "25"]
        for name, rivals in one["tests"].items():
            background = name.replace("LambdaSMART from", "background")
            assert list(rivals)[:3] == [background, "in-domain", "interpolation"]
            # Before its first tree a LambdaSMART is its background.
            start = one["curves"][name]["NDCG@10"][0]
            assert start == pytest.approx(one["test"][background]["NDCG@10"]["mean"], abs=1e-12)
            end = one["curves"][name]["NDCG@10"][-1]
            assert end == pytest.approx(one["test"][name]["NDCG@10"]["mean"], abs=1e-12)
    assert out.count("Against ") == 3 * len(values)


def test_combiners(call):
    out = call("reproduce", "combiners", *TINY)
    values = json.loads(files_of("combiners.json")[0])
    assert list(values) == list(combiners.PAPER)
    average = values["all 6, average"]
    assert all(one == {**one, "gain": 0.0, "p_value": 1.0} for one in average.values())
    for one in values.values():
        for m in ("ERR", "NDCG@10"):
            assert one[m]["gain"] == pytest.approx(one[m]["mean"] - average[m]["mean"], abs=1e-12)
    # Of the paper's table: the least and the largest of six, minus 0.459 and 0.783.
    assert "-0.002 to -0.001 ERR and +0.001 to +0.002 NDCG" in out
    assert out.count("combinations that learn from labels") == 2


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
