"""What commands overwrite: nothing that they read, and nothing that rankinite did not make."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk

LETOR = "1 qid:1 1:0.5\n0 qid:1 1:0.2\n1 qid:2 1:0.4\n0 qid:2 1:0.9\n"


@pytest.fixture
def files():
    Path("test.txt").write_text(LETOR)
    data = rk.load("test.txt")
    rk.LambdaMART(n_trees=1, n_leaves=2, min_docs_in_leaf=1).fit(data).save("a.rk")
    rk.save_scores([0.5, 0.25, 0.125, 1.0], data, "scores.txt")
    return data


@pytest.mark.parametrize("target", ["test.txt", "./test.txt", "link.txt", "hard.txt", "a.rk"])
def test_an_input_is_never_overwritten_not_even_by_force(call, files, target):
    Path("link.txt").symlink_to("test.txt")
    os.link("test.txt", "hard.txt")
    before = Path(target).read_bytes()
    read = "a.rk" if target == "a.rk" else "test.txt"
    for force in ([], ["--force"]):
        said = call("predict", "a.rk", "test.txt", "--out", target, *force, code=2)
        assert f"predict: this would overwrite {read}; write to another place" in said
        if target != "a.rk":
            said = call("data", "convert", "test.txt", target, *force, code=2)
            assert "data convert: this would overwrite test.txt" in said
    assert Path(target).read_bytes() == before


def test_group_sizes_beside_the_data_are_an_input(call, files):
    Path("old.txt").write_text("1 1:1\n0 1:2\n")
    Path("old.txt.query").write_text("2\n")
    said = call("predict", "a.rk", "old.txt", "--out", "old.txt.query", "--force", code=2)
    assert "would overwrite old.txt.query" in said


FOREIGN = {
    "labels": "3\n0\n1\n2\n",  # one a line, as for XGBoost
    "real-labels": "3.0\n0.0\n1.0\n2.0\n",
    "data": LETOR,
    "qrels": "1 0 d1 3\n1 0 d2 0\n",
    "notes": "rerun this with more trees\n",
}


@pytest.mark.parametrize("name", FOREIGN)
def test_scores_replace_scores_only(call, files, name):
    Path(name).write_text(FOREIGN[name])
    said = call("predict", "a.rk", "test.txt", "--out", name, code=2)
    assert f"predict: {name} exists and does not hold scores; write to another place, " in said
    assert Path(name).read_text() == FOREIGN[name]
    call("predict", "a.rk", "test.txt", "--out", name, "--force")
    assert len(Path(name).read_text().splitlines()) == 4


@pytest.mark.parametrize("name", ["scores.txt", "scores.run", "scores.txt.gz", "empty"])
def test_scores_replace_scores(call, files, name):
    Path("empty").touch()
    call("predict", "a.rk", "test.txt", "--out", name)
    written = Path(name).read_bytes()
    call("predict", "a.rk", "test.txt", "--out", name)
    assert Path(name).read_bytes() == written != b""


def test_scores_do_not_replace_a_model_nor_a_model_scores(call, files):
    Path("b.rk").write_bytes(Path("a.rk").read_bytes())
    assert "b.rk exists and does not" in call(
        "predict", "a.rk", "test.txt", "--out", "b.rk", code=2
    )
    train = ["train", "test.txt", "--n-trees", 1, "--n-leaves", 2, "--min-docs-in-leaf", 1, "--out"]
    said = call(*train, "scores.txt", code=2)
    assert "train: scores.txt exists and is not a model file" in said
    call(*train, "b.rk")
    call(*train, "b.rk", "--diagnose")
    call("train", "--config", "b.rk.toml")
    Path("c.rk.toml").write_text("# mine\n")
    assert "train: c.rk.toml exists; write" in call(*train, "c.rk", code=2)
    Path("own.toml").write_text('train = "test.txt"\nout = "own"\n')
    said = call("train", "--config", "own.toml", "--force", code=2)
    assert "train: this would overwrite own.toml" in said


def test_tables_and_data_sets_are_replaced_by_force_only(call, files):
    evaluate = ["evaluate", "test.txt", "scores.txt", "--per-query"]
    convert = ["data", "convert", "test.txt"]
    for command, target in ((evaluate, "values.csv"), (convert, "copy.parquet")):
        call(*command, target)
        assert f"{target} exists; write to another place, or add --force" in call(
            *command, target, code=2
        )
        call(*command, target, "--force")


def test_a_folder_s_files_are_replaced_while_they_are_as_rankinite_made_them(call):
    simulate = ["data", "simulate", "polynomials", "--size", 0.0001, "--out", "simulated"]
    Path("simulated").mkdir()
    Path("simulated/train.txt").write_text(LETOR)
    said = call(*simulate, "--format", "txt", code=2)
    assert "data simulate: simulated/train.txt exists; write to another place" in said
    assert [path.name for path in Path("simulated").iterdir()] == ["train.txt"]
    call(*simulate)
    call(*simulate)
    rk.save(rk.load("simulated/test.parquet").replace(top_grade=9), "simulated/test.parquet")
    changed = "simulated/test.parquet exists and was changed since rankinite made it"
    assert changed in call(*simulate, code=2)
    call(*simulate, "--force")
    call(*simulate)
    Path("simulated/.rankinite").write_text("damaged")
    assert "exists; write" in call(*simulate, code=2)


def test_parts_of_a_split(call, files):
    split = ["data", "split", "test.txt", "--parts", 2, "--out", "parts"]
    call(*split)
    call(*split)
    Path("parts/part02.txt").write_text(LETOR)
    assert "parts/part02.txt exists and was changed" in call(*split, code=2)
    Path("fold1").mkdir()
    Path("fold1/train.txt").write_text(LETOR)
    folds = ["data", "split", "test.txt", "--folds", 2, "--out", "."]
    assert "fold1/train.txt exists" in call(*folds, code=2)


def test_figures(call, files):
    call("data", "describe", "test.txt", "--figures", "figures")
    call("data", "describe", "test.txt", "--figures", "figures")
    Path("figures/learning-curve.png").write_bytes(b"a photograph")
    said = call("inspect", "a.rk", "--figures", "figures", code=2)
    assert "inspect: figures/learning-curve.png exists" in said


RECIPE = """
[data]
parts = 2
train_parts = 1
folds = 2
[models.A]
ranker = "LambdaMART"
n_trees = 1
"""


@pytest.mark.parametrize(
    "name", ["tables.md", "report.html", "models/A.rk", "recipe.toml", "log.txt"]
)
def test_a_run_replaces_nothing_in_a_folder_of_somebody_else(call, name):
    Path("mine.toml").write_text(RECIPE)
    (Path("run") / name).parent.mkdir(parents=True)
    (Path("run") / name).write_text("precious")
    # Before the data are read, which are not there.
    run = ["recipe", "run", "mine.toml", "--train", "absent.txt", "--out", "run"]
    assert f"run/{name}: is there already and would be overwritten" in call(*run, code=2)
    assert (Path("run") / name).read_text() == "precious"
    assert "absent.txt: there is no such file" in call(*run, "--force", code=1)


def test_runs_and_sweeps_do_not_overwrite_what_they_read_not_even_by_force(call):
    Path("mine").mkdir()
    Path("mine/recipe.toml").write_text(RECIPE)
    rk.save(rk.polynomials(8, n_docs=4, n_features=2), "mine/ensemble.rk")
    run = ["recipe", "run", "mine/recipe.toml", "--train", "mine/ensemble.rk", "--out", "mine"]
    assert "would overwrite mine/ensemble.rk" in call(*run, "--force", code=2)
    sweep = ["sweep", "mine/recipe.toml", "--model", "A", "--train", "absent", "--out", "mine"]
    assert "mine/recipe.toml: is there already" in call(*sweep, code=2)
    assert "sweep: this would overwrite mine/recipe.toml" in call(*sweep, "--force", code=2)


def test_the_state_of_another_tool_is_not_taken_for_that_of_a_run(call):
    Path("mine.toml").write_text(RECIPE)
    Path("run").mkdir()
    Path("run/run.json").write_text('{"id": 7}')
    rk.save(rk.polynomials(8, n_docs=4, n_features=2), "train.parquet")
    said = call("recipe", "run", "mine.toml", "--train", "train.parquet", "--out", "run", code=1)
    assert "run/run.json: is not the state of a run of this version, or is damaged; name" in said
    assert Path("run/run.json").read_text() == '{"id": 7}'


def test_a_lock_of_somebody_else_is_not_emptied():
    from rankinite.runs.store import Store

    Path("run").mkdir()
    Path("run/lock").write_text("a note")
    with Store("run").locked():
        pass
    assert Path("run/lock").read_text() == "a note"


def test_only_one_output_has_a_name(call, files):
    write = ["compare", "--feature", "1", "scores.txt", "--data", "test.txt", "-m", "MRR"]
    said = call(*write, "--out", "t.csv", "--pairs", "./t.csv", code=2)
    assert "two files would be written to" in said


def test_numbers_of_any_size_are_recognised(call, files):
    from rankinite.cli.outputs import Outputs

    rk.save_scores([1e-300, -1e300, 5e-324, np.pi], files, "extreme")
    Outputs().check("predict", [], scores=[Path("extreme")])


def test_a_log_and_a_list_never_lead_to_inputs(call, files):
    Path("mine.toml").write_text(RECIPE)
    Path("run").mkdir()
    Path("run/log.txt").symlink_to(Path("test.txt").absolute())
    run = ["recipe", "run", "mine.toml", "--train", "test.txt", "--jobs", "1", "--out", "run"]
    call(*run, code=2)
    call(*run, "--force", code=2)
    Path("parts").mkdir()
    Path("parts/.rankinite").symlink_to(Path("test.txt").absolute())
    call("data", "split", "test.txt", "--parts", 2, "--out", "parts")
    assert Path("test.txt").read_text() == LETOR


def test_files_of_a_command_that_fails_are_ours():
    from rankinite.cli.outputs import Outputs, _is_listed

    def fill():
        with Outputs().recording([Path("a"), Path("b")]):
            Path("a").write_text("made")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fill()
    assert _is_listed(Path("a"))


def test_what_cannot_be_listed_is_removed(call, monkeypatch):
    """As on a disk that is full after the data: the next try must not find a stranger's file."""
    rk.save(rk.polynomials(10, n_features=3), "data.txt")

    def full(_outputs, _written):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as changed:
        changed.setattr("rankinite.cli.outputs.Outputs.record", full)
        call("data", "split", "data.txt", "--parts", "2", "--out", "parts", code=1)
    assert list(Path("parts").iterdir()) == []
    call("data", "split", "data.txt", "--parts", "2", "--out", "parts")
