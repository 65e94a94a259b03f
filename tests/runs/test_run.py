"""A run: what its models and its ensemble are made of, and which data it refuses."""

import json

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError, UsageError
from rankinite.data.memmap import fingerprint
from rankinite.report import report_html
from rankinite.runs.graph import Graph, with_dependencies
from rankinite.runs.store import Store
from tests.runs.cases import TEST, TRAIN, VALID, go, micro_data


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


def test_trainings_that_make_features_count_for_the_model_they_are_of(recipe_of, tmp_path):
    run = go(recipe_of())
    seconds = dict.fromkeys("ABCN", 0.0)
    for path in (tmp_path / "run" / "tasks").glob("*/task.json"):
        record = json.loads(path.read_text())
        if record["name"][0] in seconds and record["value"] is not None:
            seconds[record["name"][0]] += record["seconds"]
    reported = {name: facts.seconds for name, facts in run.results.facts.items()}
    assert reported == pytest.approx({**seconds, "D": 0.0})


def test_models_with_categories(recipe_of, tmp_path):
    """Categories of the data are in the bins that all models share; a model may name others."""

    def with_shops(data, texts, offset):
        X = np.column_stack([data.X, np.arange(data.n_docs) % 3 + offset, data.y])
        return rk.RankingData(X, data.y, data.qid, top_grade=3, categories={"5": texts})

    # The same shops under other codes.
    train, valid = with_shops(TRAIN, ("a", "b", "c"), 0), with_shops(VALID, ("z", "a", "b", "c"), 1)
    trees = ('[models.N]\nranker = "LambdaRank"\nmeasure = "NDCG"\nhidden = 3\nn_epochs = 3\n', "")
    named = (
        '[models.B]\nranker = "LambdaMART"',
        '[models.B]\nranker = "LambdaMART"\ncategorical_features = ["6"]',
    )
    recipe = recipe_of(trees, named, ('"B", "N",', '"B",'))
    run = go(recipe, train, valid, valid)
    models = {p.stem: rk.load_model(p) for p in (tmp_path / "run" / "models").iterdir()}
    shops = {"a": 0, "b": 1, "c": 2}
    assert models["C"].categories_ == {"5": shops}
    assert models["B"].ranker_.members_["1"].categories_ == {"5": shops, "6": {}}
    scores = run.results.outcomes["valid"].scores["ensemble"]
    assert np.array_equal(rk.load_model(tmp_path / "run" / "ensemble.rk").predict(valid), scores)


def test_estimates_of_position_bias_are_in_the_report(recipe_of):
    rng = np.random.default_rng(1)
    train, valid = (
        d.with_labels({"position": rng.integers(1, 6, d.n_docs)}) for d in (TRAIN, VALID)
    )
    corrected = (
        '[models.A]\nranker = "LambdaMART"',
        '[models.A]\nranker = "LambdaMART"\nposition_bias = "additive"',
    )
    results = go(recipe_of(corrected), train, valid, valid).results
    facts = results.facts
    assert [name for name in facts if facts[name].position_bias] == ["A"]
    assert [bias.positions.tolist() for bias in facts["A"].position_bias] == [[1, 2, 3, 4, 5]] * 2
    assert "effects on the score" in report_html(results)
