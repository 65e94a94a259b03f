"""Whole sweeps, on a recipe of a second."""

from __future__ import annotations

import csv
import json
import shutil
import statistics
from pathlib import Path

import numpy as np
import optuna
import pytest

import rankinite as rk
from rankinite.core.checksums import with_checksum
from rankinite.core.errors import DataError, UsageError
from rankinite.core.random import child_seed
from rankinite.report import write_sweep_report
from rankinite.runs.recipe_reader import read_recipe
from rankinite.sweeps.results import write_results
from rankinite.sweeps.sweep import open_sweep, run_sweep
from rankinite.trees.binning import BinnedData
from tests.sweeps.cases import RECIPE, SPACE, files_of, micro_recipe, micro_sweep, sweep_data


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a sweep that others are compared with, and its folder."""
    folder = tmp_path_factory.mktemp("sweep") / "whole"
    return micro_sweep(folder), folder


def by_hand(parameters, folds=3, seed=3):
    """Return the value of every fold: fit and evaluate, without anything of the driver."""
    # All queries, in the order in which the recipe's four parts have them.
    unsplit = sweep_data()
    data = rk.concat(unsplit.split(4, seed=seed))
    binned = BinnedData.make(unsplit.X, unsplit.feature_names, most_bins=None, seed=seed)
    values = []
    for fold, (train, valid) in enumerate(data.folds(folds, seed=seed)):
        random_state = int(child_seed(seed, "sweep", "S", "fold", fold).generate_state(1)[0])
        small = {"n_trees": 12, "min_docs_in_leaf": 2, "average_rounds": False}
        model = rk.LambdaMART("ERR", random_state=random_state, **small, **parameters)
        model.fit(train, valid=valid, binned=binned)
        values.append(rk.evaluate(model.predict(valid), valid, "NDCG@3").mean["NDCG@3"])
    return values


def test_values_are_those_of_cross_validation_by_hand(whole):
    sweep, _ = whole
    complete = [trial for trial in sweep.trials if not trial.is_pruned]
    assert len(complete) >= 4
    for trial in complete[:5]:
        values = by_hand(trial.parameters)
        assert [fold.value for fold in trial.folds] == pytest.approx(values, abs=1e-12)
        assert trial.value == pytest.approx(sum(values) / 3, abs=1e-12)
        error = np.std(values, ddof=1) / np.sqrt(3)
        assert trial.standard_error == pytest.approx(error, abs=1e-12)


def test_the_recipes_own_parameters_are_compared(whole):
    sweep, folder = whole
    assert sweep.baseline.parameters == {"n_leaves": 4, "learning_rate": 0.15}
    values = by_hand(sweep.baseline.parameters)
    assert [fold.value for fold in sweep.baseline.folds] == pytest.approx(values, abs=1e-12)
    assert json.loads((folder / "sweep.json").read_text())["own"]["value"] == (sweep.baseline.value)


def test_a_recipe_that_no_trial_betters_stays_as_it_was(tmp_path):
    sweep = micro_sweep("same", space={"n_leaves": "4", "learning_rate": [0.15]})
    assert sweep.best.value == sweep.baseline.value
    assert (tmp_path / "same" / "recipe.toml").read_text() == RECIPE
    assert "No trial is better, so recipe.toml is micro as it was." in sweep.summary().notes
    # The same parameters are the same three trainings.
    assert len(list((tmp_path / "same" / "tasks").iterdir())) == 3


def test_pruned_trials_were_behind_the_median_of_earlier_batches(whole):
    sweep, _ = whole
    assert 0 < sweep.n_pruned < len(sweep.trials)
    for trial in sweep.trials:
        earlier = [t for t in sweep.trials[: trial.number // 4 * 4] if not t.is_pruned]
        behind = [
            r
            for r, value in trial.best_so_far.items()
            if earlier and value < statistics.median(t.best_so_far[r] for t in earlier)
        ]
        if trial.is_pruned:
            assert behind == [trial.folds[0].n_rounds] == [max(trial.best_so_far)]
            assert len(trial.folds) == 1
        else:
            # Behind only where it had come to an end by itself before.
            assert all(r > trial.folds[0].n_rounds for r in behind)


def test_no_pruning(tmp_path):
    sweep = micro_sweep("all", pruning=False, folds=2)
    assert sweep.n_pruned == 0
    assert all(len(trial.folds) == 2 for trial in sweep.trials)
    assert sweep.importances.keys() == SPACE.keys()
    assert sum(sweep.importances.values()) == pytest.approx(1)


def test_the_best_parameters_are_in_the_recipe(whole):
    sweep, folder = whole
    assert sweep.best.value == max(t.value for t in sweep.trials if not t.is_pruned)
    assert sweep.best.value > sweep.baseline.value
    new, old = read_recipe(folder / "recipe.toml"), micro_recipe()
    assert new.models["S"].parameters == {**old.models["S"].parameters, **sweep.best.parameters}
    assert {k: v for k, v in new.models.items() if k != "S"} == {
        k: v for k, v in old.models.items() if k != "S"
    }
    comments = [line.partition("#")[2] for line in RECIPE.splitlines() if "#" in line]
    text = (folder / "recipe.toml").read_text()
    assert [line.partition("#")[2] for line in text.splitlines() if "#" in line] == comments


def test_files_tell_of_all_trials(whole):
    sweep, folder = whole
    rows = list(csv.DictReader((folder / "trials.csv").read_text().splitlines()))
    stored = json.loads((folder / "sweep.json").read_text())
    study = optuna.load_study(
        study_name="sweep",
        storage=optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(str(folder / "optuna.log"))
        ),
    )
    assert len(rows) == len(stored["trials"]) == len(study.trials) == len(sweep.trials) == 10
    for trial, row, listed, kept in zip(
        sweep.trials, rows, stored["trials"], study.trials, strict=True
    ):
        assert float(row["value"]) == listed["value"] == kept.value == trial.value
        assert int(row["n_leaves"]) == kept.params["n_leaves"] == trial.parameters["n_leaves"]
        assert listed["parameters"] == kept.params == trial.parameters
        assert row["state"].upper() == kept.state.name
        assert (row["fold_2"] == "") == trial.is_pruned
    assert study.best_trial.number == stored["best"] == sweep.best.number
    page = (folder / "sweep.html").read_text()
    for word in ("Trial by trial", "Parameters and values", "Learning curves", "<svg"):
        assert word in page
    assert "http" not in page


def test_the_same_on_two_workers(whole, tmp_path):
    micro_sweep("two", jobs=2)
    assert files_of(tmp_path / "two") == files_of(whole[1])


def test_no_parameters_are_tried_twice_and_all_in_the_end(tmp_path):
    small = {"n_leaves": "2,4", "learning_rate": "0.1,0.3,0.9"}
    for search in ("tpe", "random", "grid"):
        sweep = micro_sweep(search, space=small, search=search, trials=50, folds=2)
        points = {tuple(trial.parameters.values()) for trial in sweep.trials}
        assert len(sweep.trials) == len(points) == 6, search


def test_more_trials_are_added_and_nothing_is_trained_again(whole, tmp_path):
    micro_sweep("grows", trials=3)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "grows" / "tasks").iterdir()}
    micro_sweep("grows", trials=6)
    sweep = micro_sweep("grows", trials=10)
    assert sweep.trials == whole[0].trials
    assert files_of(tmp_path / "grows") == files_of(whole[1])
    assert {p: p.stat().st_mtime_ns for p in before} == before


def test_trials_that_are_there_need_no_tasks(whole, tmp_path):
    shutil.copytree(whole[1], tmp_path / "copy")
    shutil.rmtree(tmp_path / "copy" / "tasks")
    again = micro_sweep("copy")
    assert (again.trials, again.baseline) == (whole[0].trials, whole[0].baseline)
    names = [json.loads(path.read_text())["name"] for path in tmp_path.rglob("task.json")]
    assert sorted(names) == [f"own parameters, fold {k} of 3" for k in (1, 2, 3)]


def test_the_own_parameters_of_a_recipe_that_was_changed_are_measured_anew(whole, tmp_path):
    shutil.copytree(whole[1], tmp_path / "copy")
    again = micro_sweep("copy", RECIPE.replace("learning_rate = 0.15", "learning_rate = 0.6"))
    assert again.trials == whole[0].trials
    assert again.baseline.parameters == {"n_leaves": 4, "learning_rate": 0.6}
    values = by_hand(again.baseline.parameters)
    assert [fold.value for fold in again.baseline.folds] == pytest.approx(values, abs=1e-12)
    assert again.baseline.value != whole[0].baseline.value


def test_a_recipe_of_somebody_else_is_not_written_over(tmp_path):
    (tmp_path / "recipe.toml").write_text(RECIPE)
    with pytest.raises(
        UsageError, match=r"recipe\.toml: is there already and would be overwritten"
    ):
        micro_sweep(tmp_path, trials=1, folds=2)
    assert (tmp_path / "recipe.toml").read_text() == RECIPE


def test_damaged_learning_curves_are_made_anew(tmp_path, caplog):
    micro_sweep("s", trials=1, folds=2)
    expected = files_of(tmp_path / "s")
    for path in (tmp_path / "s" / "tasks").rglob("curve.json"):
        path.write_bytes(b"!" * path.stat().st_size)
    with pytest.raises(DataError, match=r"own parameters, fold 1 of 2' \(.*curve.json: is damaged"):
        open_sweep("s")
    micro_sweep("s", trials=1, folds=2)
    assert "curve.json: is damaged: its checksum" in caplog.text
    assert files_of(tmp_path / "s") == expected


def test_a_damaged_journal_is_made_anew_of_finished_trainings(tmp_path):
    micro_sweep("s", trials=2, folds=2)
    expected = files_of(tmp_path / "s")
    tasks = {path: path.stat().st_mtime_ns for path in (tmp_path / "s" / "tasks").rglob("*")}
    journal = tmp_path / "s" / "optuna.log"
    journal.write_bytes(journal.read_bytes().replace(b"learning_rate", b"learning_rats"))
    with pytest.raises(DataError, match=r"optuna.log: is damaged: .*; run the recipe or the sweep"):
        open_sweep("s")
    micro_sweep("s", trials=2, folds=2)
    assert files_of(tmp_path / "s") == expected
    assert {path: path.stat().st_mtime_ns for path in tasks} == tasks


@pytest.mark.parametrize("name", ["settings.json", "run.json", "swept.toml"])
def test_damaged_settings_are_a_sentence(whole, name):
    shutil.copytree(whole[1], "copy")
    path = Path("copy", name)
    path.write_bytes(path.read_bytes().replace(b"e", b"f", 1))
    with pytest.raises(DataError, match=rf"copy/{name}: .*(damaged|changed)"):
        open_sweep("copy")


def test_another_sweep_in_the_folder_is_refused(tmp_path):
    micro_sweep("one", trials=1, folds=2)
    with pytest.raises(UsageError, match="has another folds, seed; ask for the same again"):
        micro_sweep("one", trials=1, folds=3, seed=4)
    with pytest.raises(DataError, match="not those that this run began with"):
        run_sweep(
            micro_recipe(), "S", sweep_data(seed=1), out="one", space=SPACE, folds=2, jobs=1
        )  # fmt: skip
    (tmp_path / "one" / "settings.json").unlink()
    with pytest.raises(UsageError, match="a run is in this folder"):
        micro_sweep("one", trials=1, folds=2)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("folds = 3", "folds = 4"),
        ("seed = 3", "seed = 4"),
        ('loss = "logistic"\nn_trees = 4', 'loss = "logistic"\nn_trees = 5'),
        ("folds = 2", "folds = 3"),
    ],
)
def test_score_features_of_another_kind_are_another_sweep(old, new):
    assert RECIPE.count(old) == 1
    other = RECIPE.replace(old, new)
    options = {"trials": 1, "folds": 2, "space": {"n_leaves": "2,3"}, "seed": 3}
    micro_sweep("b", model="B", **options)
    with pytest.raises(UsageError, match="has another score features; ask for the same again"):
        micro_sweep("b", other, model="B", **options)
    # Without such features all of that is the same sweep.
    micro_sweep("s", **options)
    micro_sweep("s", other, **options)


def test_more_measures_of_a_recipe_are_the_same_sweep():
    options = {"trials": 1, "folds": 2, "model": "B", "space": {"n_leaves": "2,3"}}
    before = micro_sweep("b", **options)
    more = RECIPE.replace('["NDCG@3", "ERR"]', '["NDCG@3", "ERR", "MAP"]')
    assert micro_sweep("b", more, **options).trials == before.trials


@pytest.mark.parametrize(
    ("name", "setting"), [("rankinite", "version of rankinite"), ("parts", "parts")]
)
def test_another_version_or_other_parts_are_another_sweep(name, setting, monkeypatch):
    options = {"trials": 1, "folds": 2, "space": {"n_leaves": "2,3"}}
    micro_sweep("s", **options)
    recipe = RECIPE
    if name == "rankinite":
        monkeypatch.setattr("rankinite.sweeps.results.__version__", "0.0.0")
    else:
        recipe = RECIPE.replace("parts = 4\n", "parts = 5\n", 1)
    with pytest.raises(UsageError, match=f"has another {setting}; ask for the same again"):
        micro_sweep("s", recipe, **options)


def test_samples_and_score_features_and_nets():
    sweep = micro_sweep("a", model="A", space={"max_depth": "none,2"}, folds=2)
    assert {trial.parameters["max_depth"] for trial in sweep.trials} == {None, 2}
    assert sweep.importances is None
    sweep = micro_sweep("b", model="B", space={"max_depth": "1,2"}, folds=2)
    assert {trial.parameters["max_depth"] for trial in sweep.trials} == {1, 2}
    sweep = micro_sweep("n", model="N", space=None, trials=2, folds=2)
    for trial in sweep.trials:
        assert trial.parameters["hidden"] in range(10, 31, 5)
        assert 1e-4 <= trial.parameters["learning_rate"] <= 1e-2


def test_lists_are_tried(tmp_path):
    options = {"model": "N", "folds": 2, "pruning": False}
    sweep = micro_sweep("n", space={"hidden": "[3,2],4"}, **options)
    tried = [trial.parameters["hidden"] for trial in sweep.trials]
    assert sorted(tried, key=repr) == [4, [3, 2]]
    assert sweep.trials == micro_sweep("n", space={"hidden": [(3, 2), 4]}, **options).trials
    best = read_recipe(tmp_path / "n" / "recipe.toml").models["N"].parameters["hidden"]
    assert best == (sweep.best.parameters["hidden"] if sweep.is_better else 3)


def test_what_cannot_be_swept(tmp_path):
    cases = [
        ({"model": "E"}, "micro has no model 'E'; it has 'A', 'B', 'N', 'C', 'D', 'S'"),
        ({"model": "D"}, "D takes the training of C; sweep C"),
        ({"search": "tpee"}, "search must be one of"),
        ({"folds": 1}, "folds must be a whole number of at least 2"),
        ({"folds": 41}, "40 queries cannot be split into 41 folds"),
        ({"measure": "NDCG@3 > ERR"}, "is several measures"),
        ({"measure": "NGCD"}, "no measure 'NGCD'"),
        ({"space": {"learning_rate": "0.1..0.5"}, "search": "grid"}, "is a range"),
        ({"space": {"most_bins": "16..64"}}, "most_bins needs values"),
        ({"space": {}}, "there is nothing to try"),
    ]
    for options, words in cases:
        with pytest.raises(UsageError, match=words.replace("(", r"\(")):
            micro_sweep("wrong", **options)
    assert not list(tmp_path.iterdir())


def test_a_recipe_by_its_file(tmp_path):
    (tmp_path / "micro.toml").write_text(RECIPE)
    options = {"space": {"n_leaves": "2,3"}, "folds": 2, "jobs": 1}
    sweep = run_sweep("micro.toml", "S", sweep_data(), out="file", **options)
    assert sweep.trials == micro_sweep("value", **options).trials


def test_parameters_that_no_recipe_can_have_are_refused_before_anything_is_trained(tmp_path):
    # D takes the training of C, and its scores per query need the logistic loss.
    with pytest.raises(UsageError, match=r"with loss = \"squared\" of C the recipe is invalid"):
        micro_sweep("none", model="C", space={"loss": "logistic,squared"})
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("model", "space"),
    [
        ("S", SPACE),
        ("N", {"hidden": [[3, 2], 4]}),
        ("A", {"symmetric": [True, False], "max_depth": "none,2", "learning_rate": "0.1..0.5"}),
    ],
)
def test_a_finished_sweep_is_opened_again_with_the_same_files(model, space, tmp_path):
    sweep = micro_sweep("s", model=model, space=space, trials=2, folds=2)
    before = files_of(tmp_path / "s")
    tasks = {path: path.stat().st_mtime_ns for path in (tmp_path / "s" / "tasks").rglob("*")}
    for name in ("sweep.html", "trials.csv", "recipe.toml"):
        (tmp_path / "s" / name).unlink()
    again = write_results(open_sweep("s"))
    write_sweep_report(again)
    assert (again.settings, again.trials, again.baseline) == (
        sweep.settings, sweep.trials, sweep.baseline)  # fmt: skip
    assert files_of(tmp_path / "s") == before
    assert {path: path.stat().st_mtime_ns for path in tasks} == tasks


def test_what_is_no_finished_sweep_is_not_opened(whole, tmp_path):
    with pytest.raises(UsageError, match="none: is not the folder of a sweep; name one that"):
        open_sweep("none")
    shutil.copytree(whole[1], tmp_path / "copy")
    settings = json.loads((tmp_path / "copy" / "settings.json").read_text())
    other = {**settings, "version of rankinite": "0.0.0"}
    del other["sha256"]
    (tmp_path / "copy" / "settings.json").write_text(json.dumps(with_checksum(other)))
    with pytest.raises(DataError, match="has another version of rankinite; run the sweep again"):
        open_sweep("copy")
    (tmp_path / "copy" / "settings.json").write_text(json.dumps(settings))
    shutil.rmtree(tmp_path / "copy" / "tasks")
    with pytest.raises(DataError, match="own parameters lack the task 'own parameters, fold 1 of"):
        open_sweep("copy")
    (tmp_path / "copy" / "sweep.json").unlink()
    with pytest.raises(DataError, match="copy: the sweep is not finished; run the sweep again in"):
        open_sweep("copy")
