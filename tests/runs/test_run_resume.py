"""A run in a folder that holds results: what is executed again, and what is not."""

import json
import shutil

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError, UsageError
from rankinite.data.memmap import fingerprint
from rankinite.runs.graph import Graph
from rankinite.runs.run import open_run
from rankinite.runs.store import Store
from tests.runs.cases import TEST, TRAIN, VALID, bytes_of, go, micro_data, tasks_of


def test_a_finished_run_executes_nothing_again(recipe_of, tmp_path):
    recipe = recipe_of()
    go(recipe)
    folder = tmp_path / "run"
    times = {p: p.stat().st_mtime_ns for p in (folder / "tasks").rglob("*")}
    before = bytes_of(folder)
    go(recipe)
    assert {p: p.stat().st_mtime_ns for p in (folder / "tasks").rglob("*")} == times
    assert bytes_of(folder) == before


def test_a_changed_model_is_trained_again_with_what_depends_on_it(recipe_of, tmp_path):
    folder = tmp_path / "run"
    go(recipe_of())
    before = tasks_of(folder)
    recipe = recipe_of(("hidden = 3", "hidden = 2"))
    go(recipe)
    graph = Graph(recipe, fingerprint(TRAIN))
    members = [graph.model("N", stage) for stage in (graph.first, graph.final)]
    digests = {"valid": fingerprint(VALID), "test": fingerprint(TEST)}
    expected = [task for member in members for task in member.fits]
    expected += [graph.selection_scores()["N"], graph.spread(members[1])]
    expected += [graph.score(members[1], name, digest) for name, digest in digests.items()]
    assert tasks_of(folder) - before == {task.key for task in expected}
    # B sees the scores of C: with C it is trained again, and so is D, which is C.
    before = tasks_of(folder)
    go(
        recipe_of(
            ("hidden = 3", "hidden = 2"),
            ('loss = "logistic"\nn_trees = 4', 'loss = "logistic"\nn_trees = 3'),
        )
    )
    names = {json.loads((folder / "tasks" / key / "task.json").read_text())["name"]
             for key in tasks_of(folder) - before}  # fmt: skip
    assert any(name.startswith("B bag") for name in names)
    assert not any(name.startswith(("A bag", "N")) for name in names)


def test_another_measure_in_tables_trains_nothing(recipe_of, tmp_path):
    go(recipe_of())
    before = tasks_of(tmp_path / "run")
    run = go(recipe_of(('["NDCG@3", "ERR"]', '["NDCG@3", "ERR", "MAP"]')))
    assert tasks_of(tmp_path / "run") == before
    assert "MAP" in run.results.outcomes["test"].members["A"].mean


def test_a_recipe_of_somebody_else_is_not_written_over(recipe_of, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.toml").write_text("their own")
    with pytest.raises(
        UsageError, match=r"recipe\.toml: is there already and would be overwritten"
    ):
        go(recipe_of())
    assert (tmp_path / "run" / "recipe.toml").read_text() == "their own"
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["recipe.toml"]
    go(recipe_of(), force=True)
    assert (tmp_path / "run" / "recipe.toml").read_text() == recipe_of().text


def test_lost_tasks_are_executed_again_to_the_same_bytes(recipe_of, tmp_path):
    recipe = recipe_of()
    folder = tmp_path / "run"
    go(recipe)
    before = bytes_of(folder)
    graph = Graph(recipe, fingerprint(TRAIN))
    lost = [graph.model("A", graph.final).fits[1], graph.model("B", graph.first).features]
    for task in lost:
        for path in folder.joinpath("tasks", task.key).iterdir():
            path.unlink()
        folder.joinpath("tasks", task.key).rmdir()
    (folder / "ensemble.rk").unlink()
    go(recipe)
    assert bytes_of(folder) == before


def test_adding_a_model_changes_no_other(recipe_of, tmp_path):
    go(recipe_of())
    before = tasks_of(tmp_path / "run")
    more = '[models.E]\nranker = "MART"\nn_trees = 2\nmin_docs_in_leaf = 2\n\n[ensemble]'
    go(recipe_of(("[ensemble]", more)))
    after = tasks_of(tmp_path / "run")
    assert before < after
    names = {json.loads((tmp_path / "run" / "tasks" / key / "task.json").read_text())["name"]
             for key in after - before}  # fmt: skip
    assert all(name.removeprefix("scores of ").removeprefix("spread of ").split()[0] == "E"
               for name in names)  # fmt: skip


def test_other_data_in_the_same_folder_are_refused(recipe_of, tmp_path):
    recipe = recipe_of()
    go(recipe)
    before = bytes_of(tmp_path / "run")
    with pytest.raises(DataError, match="the train data are not those that this run began with"):
        go(recipe, train=micro_data(60, 9))
    with pytest.raises(DataError, match="the test data are not those"):
        go(recipe, test=micro_data(20, 9))
    assert bytes_of(tmp_path / "run") == before


def test_test_data_may_come_later(recipe_of, tmp_path):
    recipe = recipe_of()
    first = go(recipe, valid=None, test=None)
    assert first.results.outcomes == {}
    before = tasks_of(tmp_path / "run")
    go(recipe, valid=None)
    new = tasks_of(tmp_path / "run") - before
    names = [json.loads((tmp_path / "run" / "tasks" / key / "task.json").read_text())["name"]
             for key in new]  # fmt: skip
    assert sorted(names) == [f"scores of {name} (test)" for name in "ABCDN"]


def test_files_of_an_earlier_recipe_go_and_those_of_others_stay(recipe_of, tmp_path):
    folder = tmp_path / "run"
    (folder / "models").mkdir(parents=True)
    (folder / "models" / "mine.txt").write_text("not of the run")
    go(recipe_of())
    assert (folder / "models" / "N.rk").exists()
    fewer = recipe_of(
        ('[models.N]\nranker = "LambdaRank"\nmeasure = "NDCG"\nhidden = 3\nn_epochs = 3\n', ""),
        ('"N", ', ""),
    )
    go(fewer, valid=None)
    assert sorted(p.name for p in (folder / "models").iterdir()) == [
        "A.rk", "B.rk", "C.rk", "D.rk", "mine.txt"]  # fmt: skip
    assert not (folder / "measures" / "valid.csv").exists()
    assert not list((folder / "scores" / "valid").iterdir())
    assert not (folder / "scores" / "test" / "N.txt").exists()


def test_a_process_that_outlives_a_folder_reads_the_data_anew(recipe_of, tmp_path):
    recipe = recipe_of()
    other = rk.RankingData(TRAIN.X, 3 - TRAIN.y, TRAIN.qid, top_grade=3)
    go(recipe)
    shutil.rmtree(tmp_path / "run")
    again = go(recipe, other)
    fresh = go(recipe, other, out="fresh")
    for name, scores in fresh.results.outcomes["test"].scores.items():
        assert np.array_equal(scores, again.results.outcomes["test"].scores[name])


def test_without_its_state_a_run_takes_the_data_that_are_given(recipe_of, tmp_path):
    recipe = recipe_of()
    other = rk.RankingData(TRAIN.X, 3 - TRAIN.y, TRAIN.qid, top_grade=3)
    go(recipe)
    (tmp_path / "run" / "run.json").unlink()
    again, fresh = go(recipe, other), go(recipe, other, out="fresh")
    for name, scores in fresh.results.outcomes["test"].scores.items():
        assert np.array_equal(scores, again.results.outcomes["test"].scores[name])


@pytest.mark.parametrize("damage", ["missing", "cut", "task", "spread"])
def test_damaged_tasks_are_executed_again(recipe_of, tmp_path, damage):
    recipe = recipe_of()
    go(recipe)
    expected = bytes_of(tmp_path / "run")
    graph = Graph(recipe, fingerprint(TRAIN))
    member = graph.model("A", graph.final)
    task = graph.spread(member) if damage == "spread" else member.fits[0]
    folder = tmp_path / "run" / "tasks" / task.key
    model = folder / "model.rk"
    if damage == "missing":
        model.unlink()
    elif damage == "cut":
        model.write_bytes(model.read_bytes()[:-7])
    elif damage == "task":
        (folder / "task.json").write_text("{")
    else:
        (folder / "spread.json").write_text("")
    go(recipe)
    assert bytes_of(tmp_path / "run") == expected


def flip(path, place=-2):
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)


def test_any_flipped_bit_is_made_anew(recipe_of, tmp_path, caplog):
    recipe = recipe_of()
    go(recipe)
    expected = bytes_of(tmp_path / "run")
    folder = tmp_path / "run"
    # One file of each kind, in as many folders.
    damaged = {
        path.name: path for path in sorted([*folder.glob("tasks/*/*"), *folder.glob("data/*/*")])
    }
    assert {"model.rk", "scores.npy", "added.npy", "features.npy.json", "main-cuts.npy",
            "y.npy", "manifest.json", "SHA256SUMS"} <= damaged.keys()  # fmt: skip
    for path in damaged.values():
        flip(path)
    with pytest.raises(DataError, match=r"data/\w+-\w+: cannot be opened .*run the recipe"):
        open_run(folder)
    go(recipe)
    assert bytes_of(folder) == expected
    assert "tasks/" in caplog.text
    assert "is damaged: its checksum is not the one that it was written with" in caplog.text


def test_results_and_data_in_the_place_of_others_are_made_anew(recipe_of, tmp_path):
    recipe = recipe_of()
    go(recipe)
    folder = tmp_path / "run"
    expected = bytes_of(folder)
    tasks = sorted(path.parent for path in folder.glob("tasks/*/scores.npy"))
    sets = [path for path in folder.glob("data/*") if path.name.startswith(("test", "valid"))]
    for first, second in (tasks[:2], sets):
        first.rename(tmp_path / "first")
        second.rename(first)
        (tmp_path / "first").rename(second)
    with pytest.raises(DataError, match="holds the files of"):
        open_run(folder)
    go(recipe)
    assert bytes_of(folder) == expected


def test_a_file_of_somebody_else_is_not_removed_with_damaged_ones(recipe_of, tmp_path):
    recipe = recipe_of()
    go(recipe)
    expected = bytes_of(tmp_path / "run")
    task = next((tmp_path / "run" / "tasks").iterdir())
    (task / "notes.txt").write_text("mine")
    go(recipe)
    (task / "task.json").unlink()
    with pytest.raises(DataError, match=r"notes\.txt: is not of rankinite, .*; move it elsewhere"):
        go(recipe)
    (task / "notes.txt").rename(tmp_path / "notes.txt")
    go(recipe)
    assert bytes_of(tmp_path / "run") == expected


@pytest.mark.parametrize("name", ["run.json", "recipe.toml"])
def test_a_damaged_state_is_a_sentence(recipe_of, tmp_path, name):
    go(recipe_of())
    flip(tmp_path / "run" / name, 10)
    with pytest.raises(DataError, match=rf"{name}: .*damaged"):
        open_run(tmp_path / "run")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"[" * 100_000, b"\xff", b'{"sha256": 1}'])
def test_what_is_no_state_is_a_sentence(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(DataError, match=r"run\.json: is not the state of a run of this version"):
        Store(tmp_path).read_state()


def test_a_checkpoint_of_another_training_is_not_taken(recipe_of, tmp_path):
    recipe = recipe_of()
    go(recipe)
    expected = bytes_of(tmp_path / "run")
    graph = Graph(recipe, fingerprint(TRAIN))
    first = graph.model("A", graph.final).fits[0]
    shutil.rmtree(tmp_path / "run" / "tasks" / first.key)
    rk.MART(n_trees=3).fit(TRAIN, checkpoint=tmp_path / "run" / "checkpoints" / first.key)
    go(recipe)
    assert bytes_of(tmp_path / "run") == expected


def test_a_damaged_checkpoint_begins_a_training_anew(recipe_of, tmp_path):
    recipe = recipe_of()
    go(recipe)
    expected = bytes_of(tmp_path / "run")
    graph = Graph(recipe, fingerprint(TRAIN))
    task = graph.model("A", graph.final).fits[0]
    shutil.rmtree(tmp_path / "run" / "tasks" / task.key)
    (tmp_path / "run" / "checkpoints" / task.key).write_bytes(b"nonsense")
    go(recipe)
    assert bytes_of(tmp_path / "run") == expected


def test_damaged_shared_data_are_written_again(recipe_of, tmp_path):
    recipe = recipe_of()
    go(recipe)
    before = bytes_of(tmp_path / "run")
    shared = [name for name in before if name.startswith("data/train")]
    cut, lost = (
        next(tmp_path / "run" / name for name in shared if name.endswith(end))
        for end in ("features.npy", "main-bundled.npy")
    )
    cut.write_bytes(cut.read_bytes()[:-9])
    lost.unlink()
    go(recipe)
    assert bytes_of(tmp_path / "run") == before
