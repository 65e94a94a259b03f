"""The command ``reproduce``, at a size that takes seconds."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import sem, t

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
from rankinite.papers.setting import half_interval, with_interval

PNG = b"\x89PNG\r\n\x1a\n"
TINY = ["--scale", "0.001", "--quiet", "--out", "results"]
FOUR = ("NDCG", "NDCG@10", "MAP", "MRR")


@pytest.fixture(autouse=True)
def few_epochs(monkeypatch):
    """Let nets learn next to nothing: what is tested are tables, not nets."""
    for module in (accuracy, adaptation, constructions, linear, matching):
        monkeypatch.setattr(module, "EPOCHS", 2)
    for module in (accuracy, adaptation, constructions):
        monkeypatch.setattr(module, "RATES", (1e-3,))
    few = [replace(case, n_rounds=2, n_trees=40) for case in accuracy.CASES]
    monkeypatch.setattr(accuracy, "CASES", few)
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
    monkeypatch.setattr(optimality, "CONVERGED", {"n_epochs": 13, "patience": None})
    monkeypatch.setattr(optimality, "MORE_EPOCHS", 2)


def files_of(*names):
    """Return the bytes of the files that must be there."""
    return [Path("results", name).read_bytes() for name in names]


def test_matching(call):
    out = call("reproduce", "matching", *TINY)
    _, content, figure = files_of("matching.md", "matching.json", "matching.png")
    assert figure.startswith(PNG)
    values = json.loads(content)
    assert set(values["polynomials"]) == {"20", "40"}
    for result in values["polynomials"].values():
        assert set(result) == set(FOUR)
        assert (
            result["NDCG"]["pairs"][0] >= result["NDCG@10"]["pairs"][0] > result["MRR"]["pairs"][0]
        )
        assert all(result[m]["test"][m]["p_value"] == 1.0 for m in FOUR)
    lines = out.splitlines()
    assert sum(line.startswith("MAP ") and " MRR " in line for line in lines) == 2
    assert "* is the best of its target" in out


def test_constructions(call):
    out = call("reproduce", "constructions", *TINY)
    _, content = files_of("constructions.md", "constructions.json")
    values = json.loads(content)
    assert list(values) == ["polynomials", "challenge"]
    assert all(len(result) == len(FOUR) for result in values.values())
    for result in [measure for data in values.values() for measure in data.values()]:
        assert set(result) == {
            "RankNetWeightPairs", "LocalGradient", "LocalCost", "SpringSmooth", "DiscreteBounded",
        }  # fmt: skip
        assert result["RankNetWeightPairs"]["valid"]["p_value"] == 1.0
    assert out.count("RankNetWeightPairs") >= len(FOUR)


def test_linear(call):
    out = call("reproduce", "linear", *TINY)
    _, content, figure = files_of("linear.md", "linear.json", "linear.png")
    assert figure.startswith(PNG)
    curves = json.loads(content)["curves"]
    assert {len(values) for result in curves.values() for values in result.values()} == {2}
    assert "trained for ERR" in out


def test_line_search(call):
    out = call("reproduce", "line-search", *TINY)
    _, content, *figures = files_of(
        "line-search.md",
        "line-search.json",
        "line-search-polynomials.png",
        "line-search-challenge.png",
    )
    assert all(figure.startswith(PNG) for figure in figures)
    values = json.loads(content)
    assert list(values) == ["polynomials", "challenge"]
    for name, (low, high) in {"polynomials": (0.1, 100), "challenge": (0.1, 5)}.items():
        for weights, result in values[name].items():
            assert {len(curve["NDCG@10"]) for curve in result["curves"].values()} == {12}
            assert len(result["alphas"]) == (12 if "line search" in weights else 0)
            assert all(low <= alpha <= high for alpha in result["alphas"])
    assert out.count("after sweep") == 2 * line_search.SWEEPS


def test_graded(call):
    out = call("reproduce", "graded", *TINY)
    text, content, figure = files_of("graded.md", "graded.json", "graded.png")
    assert figure.startswith(PNG)
    values = json.loads(content)
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
    text, content, *figures = files_of(
        "schedules.md", "schedules.json", "schedules.png", "schedules-diagnostics.png"
    )
    assert all(figure.startswith(PNG) for figure in figures)
    values = json.loads(content)
    assert len(values) == 2 + len(schedules.TRANSITIONS)
    rates = {result["parameters"]["learning_rate"] for result in values.values()}
    assert rates <= {"0.1", "0.2"}
    for name, result in values.items():
        assert result["parameters"]["step"] == (
            "newton" if name.startswith("Newton") else "gradient"
        )
        assert list(result["by_share"]) == (["1"] if "S@3" in name else ["0.5", "1"])
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
    _, content, figure = files_of("accuracy.md", "accuracy.json", "accuracy.png")
    assert figure.startswith(PNG)
    values = json.loads(content)
    assert list(values) == ["polynomials", "challenge"]
    for result in values.values():
        assert set(result["test"]) == {"LambdaMART", "McRank", "LambdaRank"}
        # McRank grows five trees a round, so that 40 trees are 8 rounds.
        trees = {name: curve["trees"] for name, curve in result["curves"].items()}
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
    assert half_interval(values) == pytest.approx((high - low) / 2)
    assert with_interval(values) == f"0.3000 ({(high - low) / 2:.4f})"


def test_adaptation(call):
    out = call("reproduce", "adaptation", *TINY)
    names = [f"adaptation{name}" for name in (".md", ".json", ".png", "-queries.png")]
    _, content, *figures = files_of(*names)
    assert all(figure.startswith(PNG) for figure in figures)
    values = json.loads(content)
    assert list(values) == ["long", "names", "small"]
    smart = [f"LambdaSMART from {name}" for name in ("near", "middle", "far")]
    assert list(values["small"]["tests"]) == smart
    for result in values.values():
        backgrounds = len(result["tests"])
        assert len(result["test"]) == 2 * backgrounds + 3
        assert len(result["weights"]) == backgrounds + 1
        assert list(result["sizes"]) == ["20", "25"]
        for name, rivals in result["tests"].items():
            background = name.replace("LambdaSMART from", "background")
            assert list(rivals)[:3] == [background, "in-domain", "interpolation"]
            # Before its first tree a LambdaSMART is its background.
            start = result["curves"][name]["NDCG@10"][0]
            assert start == pytest.approx(result["test"][background]["NDCG@10"]["mean"], abs=1e-12)
            end = result["curves"][name]["NDCG@10"][-1]
            assert end == pytest.approx(result["test"][name]["NDCG@10"]["mean"], abs=1e-12)
    assert out.count("Against ") == 3 * len(values)


def test_combiners(call):
    out = call("reproduce", "combiners", *TINY)
    values = json.loads(files_of("combiners.json")[0])
    assert list(values) == list(combiners.OF_PAPER)
    average = values["all 6, average"]
    assert all(result == {**result, "gain": 0.0, "p_value": 1.0} for result in average.values())
    for result in values.values():
        for m in ("ERR", "NDCG@10"):
            assert result[m]["gain"] == pytest.approx(
                result[m]["mean"] - average[m]["mean"], abs=1e-12
            )
    # Of the paper's table: the least and the largest of six, minus 0.459 and 0.783.
    assert "-0.002 to -0.001 ERR and +0.001 to +0.002 NDCG" in out
    assert out.count("ensembles that learn from labels") == 2


def test_optimality_of_the_paper(call):
    out = call("reproduce", "optimality", *TINY)
    names = [f"figure-{k}.png" for k in (1, 2, 3, 4, 6)] + ["section-8.png"]
    assert all(result.startswith(PNG) for result in files_of(*names))
    values = json.loads(files_of("optimality.json")[0])
    assert values["linear random"]["n_rising"] > 0
    rows = [line for line in out.splitlines() if line.startswith(("linear ", "two-layer "))]
    assert len(rows) == 8 + 1 + 3
    assert all(" 459 " in row for row in rows)


@pytest.mark.parametrize("scale", ["0", "-1", "nan"])
def test_wrong_scale(call, scale):
    assert "scale must be" in call("reproduce", "linear", "--scale", scale, code=2)
