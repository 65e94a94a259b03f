"""``rankinite sweep``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.cli.sweep import SweepOptions
from rankinite.runs.recipe_reader import read_recipe
from rankinite.sweeps.sweep import DEFAULT_BATCH, DEFAULT_FOLDS, DEFAULT_TRIALS

RECIPE = """\
name = "small"
measures = ["NDCG@3"]
[models.M]
ranker = "LambdaMART"
n_trees = 4  # few
min_docs_in_leaf = 2
"""
OVER = ["--over", "n_leaves=2,3,4", "--over", "learning_rate=0.1,0.5"]


@pytest.fixture
def files():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3)).astype(np.float32)
    y = np.digitize(X[:, 0] + random.normal(size=80), [0, 1])
    rk.save(rk.RankingData(X, y, np.repeat(np.arange(20), 4), top_grade=2), "train.parquet")
    Path("r.toml").write_text(RECIPE)


@pytest.mark.usefixtures("files")
def test_a_sweep(call):
    common = ["sweep", "r.toml", "--model", "M", "--train", "train.parquet", "--out", "s"]
    arguments = [*common, *OVER, "--folds", "2", "--jobs", "1", "--search", "grid"]
    lines = call(*arguments).splitlines()
    assert lines[0] == "Trials of M, 2 folds" or lines[0].startswith("The best")
    assert lines[1].split() == ["Trial", "n_leaves", "learning_rate", "NDCG@3", "SE", "Rounds"]
    assert lines[2].endswith("best")
    assert any(line.startswith("Best of 6 trials") for line in lines)
    assert any("is optimistic" in line for line in lines)
    assert lines[-5:-4] == ["recipe.toml is small with these parameters of M."]
    assert lines[-4:] == [
        f"wrote {Path('s', name)}"
        for name in ("recipe.toml", "trials.csv", "sweep.json", "sweep.html")
    ]
    printed = json.loads(call(*arguments, "--json"))
    assert printed["wrote"][0] == str(Path("s", "recipe.toml"))
    assert len(printed["trials"]) == 6
    best = printed["best_parameters"]
    assert read_recipe("s/recipe.toml").models["M"].parameters.items() >= best.items()
    assert "n_trees = 4  # few" in Path("s/recipe.toml").read_text()
    page = Path("s/sweep.html").read_bytes()
    Path("s/sweep.html").unlink()
    assert call("recipe", "report", "s").splitlines() == lines
    assert Path("s/sweep.html").read_bytes() == page


def test_defaults_of_the_command_are_those_of_the_function():
    assert (SweepOptions().folds, SweepOptions().batch) == (DEFAULT_FOLDS, DEFAULT_BATCH)
    assert f"(Default: {DEFAULT_TRIALS};" in SweepOptions.__annotations__["trials"]


@pytest.mark.usefixtures("files")
def test_wrong_use_is_told_before_data_are_loaded(call):
    def wrong(*arguments):
        said = call("sweep", "r.toml", "--train", "no.txt", "--out", "s", *arguments, code=2)
        assert not Path("s").exists()
        return said

    assert "small has no model 'N'; it has 'M'" in wrong("--model", "N")
    said = wrong("--model", "M", "--over", "n_leaves=1", "--over", "eta=1")
    assert said.splitlines() == [
        "Error: sweep: 2 mistakes:",
        "n_leaves must be a whole number from 2 to 65536; got 1",
        "there is no key 'eta'; it is called 'learning_rate' here",
    ]
    assert "has no values; write it as" in wrong("--model", "M", "--over", "n_leaves")
    assert "give only one of them" in wrong("--model", "M", "--jobs", "1", "--cluster", "local:2")
    assert "no measure 'NGCD'" in wrong("--model", "M", "--measure", "NGCD")
    assert "is a range" in wrong(
        "--model", "M", "--search", "grid", "--over", "learning_rate=0.1..0.2"
    )
    Path("file").touch()
    common = ["sweep", "r.toml", "--model", "M", "--train", "train.parquet"]
    assert "expected a folder" in call(*common, "--out", "file", code=1)
