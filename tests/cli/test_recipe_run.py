import json
from pathlib import Path

import pytest

import rankinite as rk
from rankinite.core import progress
from rankinite.core.checksums import with_checksum
from tests import processes
from tests.runs.cases import MICRO, micro_data

RUN = ["recipe", "run", "micro.toml", "--train", "train.txt", "--jobs", 1]


@pytest.fixture(autouse=True)
def files():
    rk.save(micro_data(60), "train.txt")
    rk.save(micro_data(20, 2), "test.txt")
    Path("micro.toml").write_text(MICRO)


def test_tables_and_files(call):
    printed = call(*RUN, "--test", "test.txt")
    for title in ("Members on", "Averages on", "Final models", "p-values by", "The best member"):
        assert title in printed
    assert printed.endswith("wrote micro/report.html\n")
    for line in printed.splitlines():
        if line.startswith("wrote "):
            assert Path(line.removeprefix("wrote ")).stat().st_size > 0
    assert Path("micro/recipe.toml").read_text() == MICRO
    # The ensemble is a model like any other.
    call("predict", "micro/ensemble.rk", "test.txt", "--out", "scores.txt")
    assert Path("scores.txt").read_text() == Path("micro/scores/test/ensemble.txt").read_text()


def test_json(call):
    printed = json.loads(call(*RUN, "--test", "test.txt", "--out", "run", "--json"))
    assert printed["chosen"] == ["A", "B", "N", "C", "D"]
    assert set(printed["final"]["test"]) == {"A", "B", "N", "C", "D", "ensemble"}
    assert "run/report.html" in printed["wrote"]


def test_all_mistakes_of_a_recipe_with_their_lines_and_nothing_is_begun(call):
    text = MICRO.replace("n_trees = 4\nn_leaves = 4\nmin", "n_tree = 4\nn_leaves = 1\nmin", 1)
    Path("micro.toml").write_text(text.replace('scores_of = "C"', 'scores_of = "X"'))
    said = call(*RUN, code=2)
    lines = Path("micro.toml").read_text().splitlines()
    for key in ("n_tree = 4", "n_leaves = 1", 'scores_of = "X"'):
        assert f"micro.toml:{lines.index(key) + 1}: " in said
    assert not Path("micro").exists()


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--train", "none.txt"], 1, "none.txt: there is no such file"),
        (["--test", "none.txt"], 1, "none.txt: there is no such file"),
        (["--cluster", "local:2"], 2, "give only one of them"),
        (["--top-grade", 4], 2, "--top-grade is 4, and the recipe says 3; leave out the flag"),
        (["--out", "train.txt"], 1, "this is a file; expected a folder"),
        (["--test", "narrow.txt"], 1, "narrow.txt: lacks the features '2', '3', '4'; if"),
        (["--train", "narrow.txt", "--test", "test.txt"], 1,
         "narrow.txt: lacks the features '2', '3', '4', which test.txt has; if they are 0 "
         "everywhere and were left out, add --n-features 4"),
        (["--query-file", "sizes", "--test", "test.txt"], 2, "FILE.query"),
    ],
)  # fmt: skip
def test_wrong_use_is_a_sentence(call, options, code, words):
    Path("narrow.txt").write_text("3 qid:1 1:0.5\n0 qid:1 1:0.1\n")
    Path("sizes").write_text("2\n")
    if "--top-grade" in options:
        Path("micro.toml").write_text(MICRO.replace("[data]\n", "[data]\ntop_grade = 3\n"))
    assert words in call(*RUN, *options, code=code)
    assert not Path("micro").exists()


def test_an_unknown_recipe_names_those_there_are(call):
    said = call("recipe", "run", "winer", "--train", "train.txt", code=2)
    assert "winner" in said


def test_data_that_changed_under_a_run(call):
    call(*RUN)
    before = Path("micro/ensemble.rk").read_bytes()
    rk.save(micro_data(60, 5), "train.txt")
    said = call(*RUN, code=1)
    assert "the train data are not those that this run began with" in said
    assert "name another folder" in said
    assert Path("micro/ensemble.rk").read_bytes() == before


def test_a_cluster_that_cannot_be_is_told_before_data_are_loaded(call):
    command = ["recipe", "run", "micro.toml", "--train", "none.txt", "--cluster", "local:x"]
    assert "expected a number of workers, as in local:4" in call(*command, code=2)


def test_lines_in_a_pipe_say_what_runs_before_anything_is_done(monkeypatch, capfd):
    monkeypatch.setattr(progress, "SECONDS_BEFORE_BAR", 0.05)
    with progress.Lines("first stage", 3, "tasks") as task:
        task.note("now M1")
        said = []

        def has_spoken():
            said.append(capfd.readouterr().err)
            return bool(said[-1])

        processes.wait_until(has_spoken)
    assert "".join(said) == "first stage: 0 of 3 tasks, now M1\n"


def test_a_report_is_rendered_again_without_training(call):
    printed = call(*RUN, "--test", "test.txt")
    names = ("report.html", "tables.md", "tables.json")
    before = {name: Path("micro", name).read_bytes() for name in names}
    tasks = {path: path.stat().st_mtime_ns for path in Path("micro/tasks").rglob("*")}
    for name in names:
        Path("micro", name).unlink()
    Path("train.txt").unlink()
    again = call("recipe", "report", "micro")
    assert again == printed.replace("wrote micro/ensemble.rk\n", "")
    assert {name: Path("micro", name).read_bytes() for name in names} == before
    assert {path: path.stat().st_mtime_ns for path in Path("micro/tasks").rglob("*")} == tasks
    assert "micro/report.html" in json.loads(call("recipe", "report", "micro", "--json"))["wrote"]


def test_a_report_of_what_is_no_finished_run_is_a_sentence(call):
    assert "none: there is no such folder" in call("recipe", "report", "none", code=1)
    Path("empty").mkdir()
    assert "empty: is not the folder of a run; name one" in call(
        "recipe", "report", "empty", code=2
    )
    state = {
        "recipe": "R",
        "recipe sha256": "",
        "data": {},
        "files": [],
        "sets": [],
        "versions": {},
    }
    Path("empty/run.json").write_text(json.dumps(with_checksum(state)))
    assert "empty: the run is not finished; run the recipe again" in call(
        "recipe", "report", "empty", code=1
    )
