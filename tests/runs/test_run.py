import errno
import json
import shutil

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError, UsageError
from rankinite.data.memmap import fingerprint
from rankinite.report import write_report
from rankinite.runs.graph import Graph, with_dependencies
from rankinite.runs.run import open_run, run_recipe
from rankinite.runs.store import Store
from tests.runs.cases import bytes_of, micro_data

TRAIN, VALID, TEST = micro_data(60), micro_data(20, 1), micro_data(20, 2)
pytestmark = pytest.mark.usefixtures("one_thread")


def go(recipe, train=TRAIN, valid=VALID, test=TEST, out="run"):
    return run_recipe(recipe, train, valid, test, out=out, jobs=1)


def tasks_of(folder):
    return {path.name for path in (folder / "tasks").iterdir()}


def test_the_ensemble_is_a_model_that_gives_the_scores_of_the_run(recipe_of, tmp_path):
    run = go(recipe_of())
    loaded = rk.load_model(tmp_path / "run" / "ensemble.rk")
    for name, data in (("valid", VALID), ("test", TEST)):
        outcome = run.results.outcomes[name]
        assert np.array_equal(loaded.predict(data), outcome.scores["ensemble"])
        saved = np.loadtxt(tmp_path / "run" / "scores" / name / "ensemble.txt")
        assert np.array_equal(saved, outcome.scores["ensemble"])
    # Documents alone, without the rest of the data set, get the same scores.
    assert np.array_equal(loaded.predict(TEST[3]), loaded.predict(TEST)[slice(*TEST.offsets[3:5])])


def test_the_ensemble_adds_up_members_on_the_scale_of_unseen_documents(recipe_of, tmp_path):
    run = go(recipe_of())
    models = {p.stem: rk.load_model(p) for p in (tmp_path / "run" / "models").iterdir()}
    assert models.keys() == {"A", "B", "N", "C", "D"}
    ensemble = run.ensemble
    total = sum(
        (models[name].predict(TEST) - mean) / scale
        for name, mean, scale in zip(
            ensemble.member_names_, ensemble.means_, ensemble.scales_, strict=True
        )
    )
    assert total == pytest.approx(run.results.outcomes["test"].scores["ensemble"], abs=1e-12)


def test_bags_are_averaged_raw_and_every_one_has_seen_other_queries(recipe_of, tmp_path):
    go(recipe_of())
    bagged = rk.load_model(tmp_path / "run" / "models" / "A.rk")
    assert len(bagged.members_) == 2
    first, second = (member.predict(TEST) for member in bagged.members_.values())
    assert bagged.predict(TEST) == pytest.approx((first + second) / 2, abs=1e-12)
    assert not np.array_equal(first, second)


def test_a_model_trained_as_another_has_its_trees(recipe_of, tmp_path):
    go(recipe_of())
    c, d = (rk.load_model(tmp_path / "run" / "models" / f"{name}.rk") for name in "CD")
    p = c.predict(TEST)
    largest = np.repeat(np.maximum.reduceat(p, TEST.offsets[:-1]), TEST.sizes)
    # Ensemble, Sec. 4.2: P_max (1 + P_d - P_max).
    assert d.predict(TEST) == pytest.approx(largest * (1 + p - largest), abs=1e-15)


def test_training_documents_have_features_of_models_that_never_saw_them(recipe_of, tmp_path):
    recipe = recipe_of()
    go(recipe)
    graph = Graph(recipe, fingerprint(TRAIN))
    folder = Store(tmp_path / "run")
    member = graph.model("B", graph.final)
    added = np.load(folder.task(member.features.key) / "added.npy")
    for fold, task in enumerate(member.features.dependencies):
        scorer = rk.load_model(folder.task(task.key) / "model.rk")
        aside = task.function.split.left_out_queries(TRAIN)
        seen = np.concatenate([part.qids for part in task.function.split.train_and_valid(TRAIN)])
        assert not np.isin(aside.qids, seen).any(), fold
        assert np.array_equal(
            added[aside.rows], rk.score_features(scorer.predict(aside), aside.offsets)
        )


def test_the_first_stage_never_sees_the_held_out_parts(recipe_of):
    recipe = recipe_of()
    held_out = Graph(recipe, "").first.outside(TRAIN)
    # With other labels there, all that the first stage has trained stays as it is.
    y = TRAIN.y.copy()
    y[held_out.rows] = 3 - y[held_out.rows]
    other = rk.RankingData(TRAIN.X, y, TRAIN.qid, top_grade=3)
    first, second = (go(recipe, data, out=f"run-{k}") for k, data in enumerate((TRAIN, other)))
    for name, scores in first.results.selection.scores.items():
        assert np.array_equal(scores, second.results.selection.scores[name])


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
    assert not list((tmp_path / "run" / "tasks").iterdir())


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


def test_a_folder_in_use_is_refused(recipe_of, tmp_path):
    with Store(tmp_path / "run").locked(), pytest.raises(UsageError, match="another run works"):
        go(recipe_of())


def test_what_was_killed_half_way_is_cleared_away(recipe_of, tmp_path):
    folder = tmp_path / "run"
    half = folder / "tasks" / ".0123.77-0123abcd.part"
    half.mkdir(parents=True)
    (half / "model.rk").write_bytes(b"half")
    go(recipe_of())
    assert not half.exists()


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (micro_data(8), "8 queries, too few for 4 parts"),
        (micro_data(60, n_features=3), "features"),
        (rk.augment(micro_data(60), 0.5, 2), "hold samples"),
    ],
)
def test_unfit_data_are_refused_before_anything_runs(recipe_of, tmp_path, train, message):
    with pytest.raises((DataError, UsageError), match=message):
        go(recipe_of(), train=train)
    assert not list((tmp_path / "run" / "tasks").iterdir())


def test_a_test_set_without_labels_is_scored(recipe_of, tmp_path):
    blind = rk.RankingData(TEST.X, np.zeros(TEST.n_docs), TEST.qid, top_grade=3)
    run = go(recipe_of(), test=blind)
    assert (tmp_path / "run" / "scores" / "test" / "ensemble.txt").exists()
    assert np.isnan(run.results.outcomes["test"].members["ensemble"].mean["NDCG@3"])


@pytest.mark.parametrize("choose", ["named", "every", "greedy"])
def test_chosen_models_alone_are_trained_again(recipe_of, tmp_path, choose):
    # N learns nothing, and whatever seems better is taken at level 1: any subset without it.
    recipe = recipe_of(
        ('choose = "all"', f'choose = "{choose}"\nlevel = 1.0'),
        ("hidden = 3\nn_epochs = 3", "hidden = 3\nn_epochs = 1\nlearning_rate = 1e-9"),
        ('Trees = ["A", "B"]', 'Trees = ["A", "B", "C", "D"]'),
    )
    run = go(recipe)
    selection = run.results.selection
    assert set(selection.chosen) < set(recipe.models)
    assert selection.chosen == selection.search.best.members
    wanted = {*selection.chosen, selection.best_member}
    trained = {p.stem for p in (tmp_path / "run" / "models").iterdir()}
    assert trained == wanted
    assert run.ensemble.member_names_ == selection.chosen
    assert {name for name, facts in run.results.facts.items() if facts.is_final} == wanted


def test_tasks_of_a_graph_are_unique(recipe_of):
    graph = Graph(recipe_of(), "digest")
    tasks = with_dependencies(graph.selection_scores().values())
    names = [task.name for task in tasks.values()]
    assert len(set(names)) == len(names)
    # Two trainings for features, one each of A, B, N and C; D has C's; five sets of scores.
    assert len(tasks) == 2 + 1 + 4 + 5


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


@pytest.mark.parametrize("name", ["model.rk", "scores.npy", "spread.json"])
def test_damage_that_changes_no_size_is_a_sentence(recipe_of, tmp_path, name):
    recipe = recipe_of()
    go(recipe)
    expected = bytes_of(tmp_path / "run")
    damaged = list((tmp_path / "run" / "tasks").rglob(name))
    for path in damaged:
        path.write_bytes(b"!" * path.stat().st_size)
    (tmp_path / "run" / "ensemble.rk").unlink()
    with pytest.raises(DataError, match=f"{name}: .*; delete the folder .*/tasks/.*"):
        go(recipe)
    for path in damaged:
        shutil.rmtree(path.parent)
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


def test_the_top_grade_of_the_recipe_holds(recipe_of):
    run = go(recipe_of(("folds = 3\n", "folds = 3\ntop_grade = 4\n")))
    assert run.ensemble.top_grade_ == 4
    assert run.results.outcomes["test"].data.top_grade == 4
    with pytest.raises(DataError, match="top_grade"):
        go(recipe_of(("folds = 3\n", "folds = 3\ntop_grade = 2\n")), out="other")


def test_a_bagged_model_counts_as_much_as_others(recipe_of):
    """Scales are of single bags in the mean; pooled, bags of unlike means would look too wide."""
    run = go(recipe_of(), test=micro_data(400, 7))
    scores = run.results.outcomes["test"].scores
    scales = dict(zip(run.ensemble.member_names_, run.ensemble.scales_, strict=True))
    for name, scale in scales.items():
        assert scores[name].std() == pytest.approx(scale, rel=0.25)


def test_the_folder_of_a_sweep_is_refused(recipe_of, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.json").write_text("{}")
    with pytest.raises(UsageError, match="the folder of a sweep"):
        go(recipe_of())


def test_a_feature_called_like_score_features_is_refused(recipe_of):
    named = rk.RankingData(
        TRAIN.X, TRAIN.y, TRAIN.qid, top_grade=3, feature_names=["a", "b", "c", "max of scores"]
    )
    with pytest.raises(DataError, match="'max of scores', as score features are called"):
        go(recipe_of(), train=named, valid=None, test=None)


def test_a_spread_waits_for_the_features_that_it_reads(recipe_of, tmp_path):
    graph = Graph(recipe_of(), "digest")
    member = graph.model("B", graph.final)
    assert member.features.key in {task.key for task in graph.spread(member).dependencies}


def test_damaged_shared_data_are_written_again(recipe_of, tmp_path):
    recipe = recipe_of()
    go(recipe)
    before = bytes_of(tmp_path / "run")
    shared = [name for name in before if name.startswith("data/train")]
    cut, lost = (
        next(tmp_path / "run" / name for name in shared if name.endswith(end))
        for end in ("features.npy", "main-bins.npy")
    )
    cut.write_bytes(cut.read_bytes()[:-9])
    lost.unlink()
    go(recipe)
    assert bytes_of(tmp_path / "run") == before


def test_trainings_that_make_features_count_for_the_model_they_are_of(recipe_of, tmp_path):
    run = go(recipe_of())
    seconds = dict.fromkeys("ABCN", 0.0)
    for path in (tmp_path / "run" / "tasks").glob("*/task.json"):
        record = json.loads(path.read_text())
        if record["name"][0] in seconds and record["value"] is not None:
            seconds[record["name"][0]] += record["seconds"]
    reported = {name: facts.seconds for name, facts in run.results.facts.items()}
    assert reported == pytest.approx({**seconds, "D": 0.0})


def test_only_unfinished_work_of_the_run_itself_is_cleared_away(recipe_of, tmp_path):
    other = tmp_path / "run" / "another" / "tasks" / ".0123.77-0123abcd.part"
    mine = tmp_path / "run" / ".download.part"
    other.mkdir(parents=True)
    mine.write_text("not of the run")
    go(recipe_of())
    assert other.exists()
    assert mine.exists()


def test_a_folder_that_cannot_be_locked_is_used_all_the_same(tmp_path, monkeypatch, caplog):
    def refused(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("rankinite.runs.store.fcntl.flock", refused)
    with caplog.at_level("INFO", "rankinite"), Store(tmp_path / "run").locked():
        pass
    assert "cannot be locked (No locks available)" in caplog.text


def test_the_log_is_whole_and_others_are_shown_no_more_than_before(recipe_of, tmp_path, caplog):
    with caplog.at_level("INFO", "rankinite"):
        go(recipe_of())
    assert not [record for record in caplog.records if record.levelname == "DEBUG"]
    assert "final training: A bag 1 of 2 begins" in (tmp_path / "run" / "log.txt").read_text()


def test_a_finished_run_is_opened_again_with_the_same_results(recipe_of, tmp_path):
    run = go(recipe_of(('name = "micro"\n', ""), ('choose = "all"', 'choose = "named"')))
    report = write_report(run).read_bytes()
    before = bytes_of(tmp_path / "run")
    (tmp_path / "run" / "report.html").unlink()
    again = open_run(tmp_path / "run")
    assert again.results.recipe == run.results.recipe
    assert again.tables == run.tables
    assert again.ensemble.member_names_ == run.ensemble.member_names_
    for name, scores in run.results.outcomes["test"].scores.items():
        assert np.array_equal(again.results.outcomes["test"].scores[name], scores)
    again.tables.save(again.folder)
    assert write_report(again).read_bytes() == report
    assert bytes_of(tmp_path / "run") == before


def test_the_report_is_the_same_after_a_second_run_and_tells_the_versions_of_the_run(
    recipe_of, tmp_path, monkeypatch
):
    report = write_report(go(recipe_of())).read_bytes()
    assert write_report(go(recipe_of())).read_bytes() == report
    monkeypatch.setattr("rankinite.runs.run.version", lambda _: "another")
    assert write_report(open_run("run")).read_bytes() == report


def test_a_run_is_opened_with_the_data_sets_that_it_had_last(recipe_of):
    go(recipe_of())
    last = go(recipe_of(), valid=None)
    assert open_run("run").tables == last.tables


def test_a_report_of_an_earlier_recipe_does_not_stay(recipe_of, tmp_path):
    write_report(go(recipe_of()))
    go(recipe_of(("hidden = 3", "hidden = 2")))
    assert not (tmp_path / "run" / "report.html").exists()


def test_what_is_no_finished_run_is_not_opened(recipe_of, tmp_path):
    with pytest.raises(UsageError, match="none: is not the folder of a run; name one that"):
        open_run("none")
    (tmp_path / "sweep").mkdir()
    for name in ("run.json", "settings.json"):
        (tmp_path / "sweep" / name).write_text("{}")
    with pytest.raises(UsageError, match="sweep: is not the folder of a run"):
        open_run("sweep")
    recipe = recipe_of()
    go(recipe)
    graph = Graph(recipe, fingerprint(TRAIN))
    task = graph.model("A", graph.final).fits[1]
    shutil.rmtree(tmp_path / "run" / "tasks" / task.key)
    with pytest.raises(DataError, match=r"1 of \d+ tasks of the final training are missing, such"):
        open_run("run")
    state = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps({"data": state["data"], "files": []}))
    with pytest.raises(DataError, match="run: the run is not finished; run the recipe again in"):
        open_run("run")
