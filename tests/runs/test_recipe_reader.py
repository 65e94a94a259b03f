"""Reading recipes: the shipped ones are the paper's, and all mistakes are told at once."""

from __future__ import annotations

import inspect
import json
import pickle
import random
import tomllib
from pathlib import Path

import pytest

import rankinite as rk
from rankinite.core.errors import FileFormatError, RecipeError
from rankinite.models import RANKERS
from rankinite.runs.recipe import SHIPPED, Samples, ScoreFeatures, n_trainings, shipped_text
from rankinite.runs.recipe_models import ADVICE, OWN, recipe_parameters
from rankinite.runs.recipe_reader import read_recipe, recipe_of

MODEL = '[models.M1]\nranker = "LambdaMART"\n'
EIGHT = [f"M{k}" for k in range(1, 9)]
# Ensemble, Table 3.
SUBSETS = {
    "All": [*EIGHT, "M9", "M10", "M11", "M12"],
    "All minus MARTs": [*EIGHT, "M9", "M10"],
    "LambdaMART only": EIGHT,
    "All minus LambdaRanks": [*EIGHT, "M11", "M12"],
    "Augmented only": ["M2", "M3", "M6", "M7"],
    "Non-augmented": ["M1", "M4", "M5", "M8", "M9", "M10", "M11", "M12"],
    "Just ERR": ["M1", "M2", "M3", "M4", "M9"],
    "Just NDCG": ["M5", "M6", "M7", "M8", "M10"],
}
# What winner-small has beyond the paper.
MORE = {
    "The winner's twelve": SUBSETS["All"],
    "LambdaMART for NDCG": ["M5", "M6", "M7", "M8"],
    "LambdaMART for NDCG, M13, M14": ["M5", "M6", "M7", "M8", "M13", "M14"],
    "Augmented for NDCG, M13, M14": ["M6", "M7", "M13", "M14"],
}


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_recipes_have_the_papers_models(name):
    recipe = read_recipe(name)
    assert recipe.name == name
    assert recipe.text == shipped_text(name)
    more = ["M13", "M14"] if name == "winner-small" else []
    subsets = {**SUBSETS, **(MORE if more else {})}
    for whole in ("All", "All minus LambdaRanks", "Augmented only"):
        subsets[whole] = SUBSETS[whole] + more
    assert {key: list(names) for key, names in recipe.subsets.items()} == subsets
    assert list(recipe.models) == subsets["All"]
    seen = [(m.ranker, m.parameters.get("measure"), m.train, m.features, m.trained_as)
            for m in recipe.models.values()]  # fmt: skip
    expected = [
        ("LambdaMART", measure, train, features, None)
        for measure in ("ERR", "NDCG")
        for train, features in (("original", None), ("aug50", None), ("aug70", None),
                                ("original", "mart"))
    ]  # fmt: skip
    expected += [("LambdaRank", measure, "original", None, None) for measure in ("ERR", "NDCG")]
    expected += [("MART", None, "original", None, None), ("MART", None, "original", None, "M11")]
    expected += [("MART", None, train, None, None) for train in ("aug50", "aug70")[: len(more)]]
    assert seen == expected
    mart, same = recipe.models["M11"], recipe.models["M12"]
    assert same.parameters == {**mart.parameters, "per_query": True}
    assert mart.parameters["loss"] == "logistic"
    assert recipe.features == {"mart": ScoreFeatures("M11", 5)}
    assert recipe.training_sets.keys() == {"aug50", "aug70"}
    assert (recipe.parts, recipe.train_parts, recipe.measures) == (10, 6, ("NDCG@10", "ERR"))
    for model in recipe.models.values():
        ranker = RANKERS[model.ranker](**model.parameters)
        ranker.check_parameters()
        ranker.check_objective()


def test_the_winner_has_the_papers_numbers():
    recipe = read_recipe("winner")
    assert recipe.folds == 10
    assert recipe.training_sets == {"aug50": Samples(0.5, 10), "aug70": Samples(0.7, 5)}
    trees = recipe.models["M1"]
    assert (trees.parameters["n_trees"], trees.bags) == (3000, 10)
    assert trees.parameters["n_leaves"] in range(50, 401, 30)
    assert trees.parameters["learning_rate"] in (0.01, 0.05, 0.1, 0.3, 0.5)
    assert trees.parameters["patience"] is None
    net = recipe.models["M9"].parameters
    assert (net["hidden"], net["learning_rate"], net["n_epochs"]) == (25, 1e-3, 500)
    assert net["optimiser"] == "sgd"
    assert recipe.models["M11"].bags == recipe.models["M10"].bags == 1
    # Eleven models and five folds of M11; eight models ten times, three once, and five folds.
    assert n_trainings(recipe) == (16, 88)


def test_constraints_of_features_are_tables_and_lists():
    text = MODEL + "monotone_constraints = {price = -1}\ninteraction_constraints = [['a', 'b']]\n"
    (model,) = recipe_of("x.toml", text).models.values()
    assert model.parameters["monotone_constraints"] == {"price": -1}
    assert model.parameters["interaction_constraints"] == [["a", "b"]]
    with pytest.raises(RecipeError, match=r"x\.toml:.*monotone_constraints must be 1, 0 or -1"):
        recipe_of("x.toml", MODEL + "monotone_constraints = {price = 2}\n")


def test_descriptions_are_made_if_there_are_none():
    models = read_recipe("winner-tiny").models
    assert models["M2"].description == "LambdaMART for ERR, trained on aug50"
    assert models["M8"].description == "LambdaMART for NDCG, with M11's scores as features"
    assert models["M12"].description == "MART logistic, scores normalised per query"
    recipe = recipe_of("x.toml", MODEL + 'description = "mine"\n')
    assert recipe.models["M1"].description == "mine"


def test_the_smallest_recipe():
    Path("mine.toml").write_text(MODEL)
    recipe = read_recipe(Path("mine.toml"))
    assert (recipe.name, recipe.choose, recipe.level, recipe.seed) == ("mine", "all", 0.05, 0)
    assert recipe.measures == ("NDCG@10", "ERR")
    assert recipe.top_grade is None
    model = recipe.models["M1"]
    assert (model.bags, model.train, model.features) == (1, "original", None)
    signature = inspect.signature(rk.LambdaMART).parameters
    defaults = {key: parameter.default for key, parameter in signature.items()}
    assert model.parameters == {k: v for k, v in defaults.items()
                                if k not in ("base", "random_state")}  # fmt: skip
    assert n_trainings(recipe) == (1, 1)


def test_defaults_and_what_a_model_says_instead():
    recipe = recipe_of(
        "x.toml",
        '[defaults.LambdaMART]\nn_trees = 7\npatience = "none"\nlearning_rate = 1\nbags = 3\n'
        + MODEL + "n_trees = 9\n"
        '[models.M2]\nranker = "LambdaMART"\nbags = 1\n[data]\ntop_grade = 4\n[models.M3]\n'
        'ranker = "MART"\n',
    )  # fmt: skip
    first, second, third = recipe.models.values()
    assert (first.parameters["n_trees"], second.parameters["n_trees"]) == (9, 7)
    assert (first.bags, second.bags, third.bags) == (3, 1, 1)
    assert first.parameters["patience"] is None
    assert isinstance(first.parameters["learning_rate"], float)
    assert third.parameters["n_trees"] != 7
    assert recipe.top_grade == 4.0
    assert isinstance(recipe.top_grade, float)


def test_measures_are_kept_in_their_own_spelling():
    recipe = recipe_of("x.toml", 'measures = ["ndcg@5", "AP"]\n' + MODEL)
    assert recipe.measures == ("NDCG@5", "MAP")


def mistakes_of(text):
    with pytest.raises(RecipeError) as caught:
        recipe_of("x.toml", text)
    return list(caught.value.mistakes)


# A file, the line of its only mistake, and a part of the message.
MISTAKES = [
    ("", 1, "there are no models; give one, such as [models.M1]"),
    ("[models]\n", 1, "there are no models"),
    ("sed = 1\n" + MODEL, 1, "there is no key 'sed'; did you mean 'seed'?"),
    ("seed = -1\n" + MODEL, 1, "seed must be a whole number of at least 0; got -1"),
    ('name = "a/b"\n' + MODEL, 1, "'a/b' is to be the name of files"),
    ("data = 3\n" + MODEL, 1, "data must be a table; got 3"),
    ("measures = []\n" + MODEL, 1, "measures is empty"),
    ('measures = [\n"ERR",\n"NDGC"]\n' + MODEL, 3, "there is no measure 'NDGC'"),
    ('measures = ["ERR", "err"]\n' + MODEL, 1, "measures has 'ERR' twice"),
    ('measures = ["NDCG > ERR"]\n' + MODEL, 1, "is several measures; give each by itself"),
    ('measures = "ERR"\n' + MODEL, 1, "measures must be a list of texts; got 'ERR'"),
    ('tables = ["member"]\n' + MODEL, 1, "there is no table 'member'; did you mean 'members'?"),
    ("[data]\nparts = 1\ntrain_parts = 1\n" + MODEL, 2, "data.parts must be a whole number of"),
    ("[data]\nparts = 4\ntrain_parts = 4\n" + MODEL, 3, "data.train_parts is 4 of 4 parts; leave"),
    ("[data]\nparts = 4\n" + MODEL, 1, "data.train_parts is 6 of 4 parts"),
    ("[data]\nfolds = 1\n" + MODEL, 2, "data.folds must be a whole number of at least 2"),
    ("[data]\nshards = 1\n" + MODEL, 2, "there is no key 'shards'; expected one of 'parts'"),
    ("[training_sets.a]\ntimes = 2\n" + MODEL, 1, "training_sets.a lacks 'fraction'"),
    ("[training_sets.a]\nfraction = 2\ntimes = 1\n" + MODEL, 2, "above 0 and below 1; got 2"),
    ("[training_sets]\na = 0.5\n" + MODEL, 2, "training_sets.a must be a table; got 0.5"),
    ("[training_sets.original]\nfraction = 0.5\ntimes = 1\n" + MODEL, 1, "that is always there"),
    ('[features.a]\nscores_of = "M2"\n' + MODEL, 2, "there is no model 'M2'; expected one of 'M1'"),
    ("[features.a]\nfolds = 5\n" + MODEL, 1, "features.a lacks 'scores_of'"),
    ('[features.a]\nscores_of = "M1"\n' + MODEL + 'features = "a"\n', 2,
     "features.a.scores_of is 'M1', which has score features itself"),
    ("[defaults.LambdaMat]\n" + MODEL, 1, "there is no ranker 'LambdaMat'; did you mean"),
    ("[defaults.MART]\nn_tres = 3\n" + MODEL, 2, "no key 'n_tres'; did you mean 'n_trees'?"),
    ("[defaults.MART]\nbags = 11\n" + MODEL, 2, "defaults.MART.bags is 11, but each bag has"),
    ('[defaults.MART]\nranker = "MART"\n' + MODEL, 2, "cannot have 'ranker'; set it for each"),
    ('[defaults.LambdaMART]\nmeasure = "NDGC"\n' + MODEL, 2, "there is no measure 'NDGC'"),
    ("defaults = 3\n" + MODEL, 1, "defaults must be a table"),
    ("[defaults]\nMART = 3\n" + MODEL, 2, "defaults.MART must be a table"),
    ("[models]\nM1 = 3\n", 2, "models.M1 must be a table"),
    ("[models.M1]\nn_trees = 3\n", 1, "models.M1 has no ranker: one of 'LambdaMART', 'MART'"),
    ('[models.M1]\nranker = "LambdaMat"\n', 2, "no ranker 'LambdaMat'; did you mean 'Lambda"),
    ("[models.M1]\nranker = [1]\n", 2, "models.M1.ranker must be one of 'LambdaMART'"),
    ('[models."a/b"]\nranker = "MART"\n', 1, "'a/b' is to be the name of files"),
    ('[models.".a"]\nranker = "MART"\n', 1, "'.a' is to be the name of files"),
    ('[models.""]\nranker = "MART"\n', 1, "'' is to be the name of files"),
    ('[models."a\\u0007"]\nranker = "MART"\n', 1, "is to be the name of files"),
    ('[models."a."]\nranker = "MART"\n', 1, "'a.' is to be the name of files"),
    (f'[models.{"a" * 51}]\nranker = "MART"\n', 1, "has 51 letters; give one of at most 50"),
    (f'name = "{"a" * 51}"\n' + MODEL, 1, "has 51 letters; give one of at most 50"),
    (MODEL + '[models.m1]\nranker = "MART"\n', 3,
     "'m1' and 'M1' are to be the names of files, and some disks take"),
    ('[models.Ensemble]\nranker = "MART"\n', 1, "'Ensemble' is the name of the average of all"),
    ('[models.ensemble]\nranker = "MART"\n', 1, "'ensemble' is the name of the average of all"),
    (MODEL + "n_trees = 0\n", 3, "models.M1.n_trees must be a whole number of at least 1; got 0"),
    (MODEL + "num_leaves = 3\n", 3, "there is no key 'num_leaves'; it is called 'n_leaves' here"),
    (MODEL + "hidden = 3\n", 3, "LambdaMART has no hidden; LambdaRank can have it"),
    (MODEL + "zzz = 3\n", 3, "there is no key 'zzz'; expected one of 'measure'"),
    (MODEL + 'measure = "NDGC"\n', 3, "models.M1.measure: 'NDGC': there is no measure 'NDGC'"),
    (MODEL + 'valid_measure = "x"\n', 3, "models.M1.valid_measure: 'x': there is no measure"),
    (MODEL + "random_state = 3\n", 3, "cannot have 'random_state'; the recipe's seed gives every"),
    (MODEL + "seed = 3\n", 3, "cannot have 'seed'; the recipe's seed gives every training its own"),
    (MODEL + 'base = "a.rk"\n', 3, "cannot have 'base'; the models of a recipe do not build on"),
    (MODEL + 'valid = ["a"]\n', 3, "cannot have 'valid'; of what a model is trained on, one fold"),
    (MODEL + 'out = "a"\n', 3, "cannot have 'out'; a run writes all its files into its folder"),
    (MODEL + "top_grade = 4\n", 3, "cannot have 'top_grade'; it is a key of [data]"),
    (MODEL + "group = true\n", 3, "cannot have 'group'; say it to the command that runs"),
    (MODEL + "bags = 11\n", 3, "models.M1.bags is 11, but each bag has another fold"),
    (MODEL + "bags = 0\n", 3, "models.M1.bags must be a whole number of at least 1"),
    (MODEL + 'train = "aug50"\n', 3, "there is no training set 'aug50'; expected one of 'orig"),
    (MODEL + 'features = "mart"\n', 3, "there is no score features 'mart'; there is none"),
    ('[models.M1]\nranker = "MART"\nper_query = true\n', 1, "per_query is for chances"),
    ('[models.M1]\ntrained_as = "M2"\nper_query = true\n', 2, "no other model 'M2'; there is none"),
    ('[models.M1]\ntrained_as = "M1"\nper_query = true\n', 2, "no other model 'M1'"),
    ('[models.M1]\nranker = "MART"\nloss = "logstic"\nper_query = true\n', 3, "M1.loss must be"),
    ('[models.M1]\nranker = "MART"\nloss = "logstic"\n[models.M2]\ntrained_as = "M1"\n', 3,
     "models.M1.loss must be one of"),
    ('[defaults.MART]\nloss = 1\n[models.M1]\nranker = "MART"\n[models.M2]\ntrained_as = "M1"\n', 2,
     "defaults.MART.loss must be one of"),
    (MODEL + '[models.M2]\ntrained_as = "M1"\nper_query = true\n', 4, "which must be a MART with"),
    ('[ensemble]\nchoose = "named"\n' + MODEL, 2, "is 'named', but [subsets] names none"),
    ('[ensemble]\nchoose = "nmed"\n' + MODEL, 2, "must be one of 'named', 'every', 'greedy'"),
    ("[ensemble]\nlevel = 2\n" + MODEL, 2, "ensemble.level must be a finite number"),
    ("[combination]\nlevel = 0.1\n" + MODEL, 1, "'combination'; the section is called [ensemble]"),
    ("[subsets]\na = []\n" + MODEL, 2, "subsets.a is empty; name at least one model"),
    ('[subsets]\n"a b" = ["M1", "M1"]\n' + MODEL, 2, "subsets.\"a b\" has 'M1' twice"),
    ('[subsets]\na = ["M1",\n"M2"]\n' + MODEL, 3, "there is no model 'M2'; expected one of 'M1'"),
    ('[subsets]\n"" = ["M1"]\n' + MODEL, 2, 'subsets."" has no name that a table could show'),
    ('[subsets]\n"a\\n" = ["M1"]\n' + MODEL, 2, "has no name that a table could show"),
    ("[subsets]\na = 3\n" + MODEL, 2, "subsets.a must be a list of texts; got 3"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "sentence"), MISTAKES)
def test_a_mistake_is_told_with_its_line(text, line, sentence):
    (mistake,) = mistakes_of(text)
    assert mistake.startswith(f"x.toml:{line}: ")
    assert sentence in mistake


LOGISTIC = '[models.M1]\nranker = "MART"\nloss = "logistic"\n'
TRAINED = LOGISTIC + '[models.M2]\ntrained_as = "M1"\n'


@pytest.mark.parametrize(
    ("text", "line", "sentence"),
    [
        (TRAINED, 4, "models.M2 is the same as 'M1'; set per_query = true, or leave it out"),
        (TRAINED + "per_query = 1\n", 6, "models.M2.per_query must be one of False, True; got 1"),
        (TRAINED + "per_query = true\nn_trees = 3\n", 7, "so it cannot have 'n_trees'; only"),
        (TRAINED + 'per_query = true\n[models.M3]\ntrained_as = "M2"\nper_query = true\n', 8,
         "models.M3 is trained as 'M2', which is itself trained as another; name that one"),
        (TRAINED + 'per_query = true\n[features.f]\nscores_of = "M2"\n', 8,
         "features.f.scores_of is 'M2', which is trained as 'M1'"),
    ],
)  # fmt: skip
def test_mistakes_of_models_that_are_trained_as_others(text, line, sentence):
    assert any(m.startswith(f"x.toml:{line}: ") and sentence in m for m in mistakes_of(text))


def test_every_needs_few_models():
    many = "".join(f'[models.M{k}]\nranker = "MART"\n' for k in range(16))
    (mistake,) = mistakes_of(many + '[ensemble]\nchoose = "every"\n')
    assert mistake.startswith("x.toml:34: ensemble.choose is 'every', and 16 models have too")


def test_all_mistakes_are_told_at_once_in_order():
    text = "seed = -1\n" + MODEL + "n_trees = 0\nn_leaves = 0\n[subsets]\na = ['M2']\n"
    mistakes = mistakes_of(text)
    assert [mistake.split(":")[1] for mistake in mistakes] == ["1", "4", "5", "7"]
    with pytest.raises(RecipeError) as caught:
        recipe_of("x.toml", text)
    assert str(caught.value).splitlines() == ["the recipe has 4 mistakes:", *mistakes]
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (RecipeError, str(caught.value))
    assert isinstance(again, rk.UsageError)


@pytest.mark.parametrize(
    ("text", "place"),
    [("a = 1\nb = = 2\n", "x.toml:2:5: is no TOML: "), ("[a\n", "x.toml:1:3: "), ("a = [1,", "x")],
)
def test_files_that_are_no_toml(text, place):
    (mistake,) = mistakes_of(text)
    assert mistake.startswith(place)
    assert "(at" not in mistake


def test_files_that_are_not_there():
    with pytest.raises(rk.UsageError, match="there is no recipe 'winer'; give one of 'winner', "):
        read_recipe("winer")
    with pytest.raises(FileFormatError, match=r"mine\.toml: there is no such file"):
        read_recipe("mine.toml")
    Path("bad.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(FileFormatError, match="is no TOML file"):
        read_recipe("bad.toml")


def test_a_byte_order_mark_is_no_part_of_a_recipe():
    Path("mine.toml").write_text(MODEL, encoding="utf-8-sig")
    assert read_recipe("mine.toml").text == MODEL


def test_names_of_files_are_not_too_long():
    names = ["a" * 50, "\N{GRINNING FACE}" * 50]
    text = "".join(f'[models."{name}"]\nranker = "MART"\n' for name in names)
    for name in recipe_of("x.toml", text).models:
        Path(f"{name}.rk").touch()


def test_a_file_comes_before_a_name_that_is_none():
    Path("mine").write_text(MODEL)
    assert read_recipe("mine").name == "mine"


def test_keys_of_models_do_not_clash_with_parameters():
    for ranker in RANKERS:
        known = recipe_parameters(ranker)
        assert not known.keys() & OWN.keys()
        assert not known.keys() & ADVICE.keys()
        assert "random_state" not in known


def test_the_files_belong_to_the_package():
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["rankinite"]
    package = root / "src" / "rankinite"
    files = {path for pattern in patterns for path in package.glob(pattern)}
    assert {package / "runs" / "recipes" / f"{name}.toml" for name in SHIPPED} <= files


def changed(table, rng):
    """Return a table with one value, somewhere in it, that is of another kind."""
    key = rng.choice(sorted(table))
    if isinstance(table[key], dict) and table[key] and rng.random() < 0.8:
        return {**table, key: changed(table[key], rng)}
    other = rng.choice(["3", '"x"', "[]", "{}", "true", "[1]", '[["M1"]]', "-1.5", '{M1 = "M1"}',
                        "1979-05-27", "inf", "nan", '["M1", {a = 1}]'])  # fmt: skip
    new = rng.choice([key, "x"])
    return {**table, new: tomllib.loads(f"v = {other}")["v"]}


def as_toml(value):
    if isinstance(value, dict):
        pairs = (f"{json.dumps(key)} = {as_toml(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(as_toml, value)) + "]"
    return json.dumps(value) if isinstance(value, (str, bool)) else str(value)


def test_whatever_a_file_says_it_is_read_or_refused():
    rng = random.Random(3)
    table = tomllib.loads(shipped_text("winner-tiny"))
    refused = 0
    for _ in range(80):
        other = table
        for _ in range(rng.choice([1, 1, 3])):
            other = changed(other, rng)
        text = "\n".join(f"{json.dumps(key)} = {as_toml(item)}" for key, item in other.items())
        try:
            recipe_of("x.toml", text)
        except RecipeError:
            refused += 1
    assert refused > 40
