"""Model files of ensembles: equal scores and bytes, and nothing but what was written is read."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.container import Content, read_container, write_container
from rankinite.explanation.inspection import inspect_ranker
from tests.ensembles.cases import CASES, every_case, every_ensemble, members, scores_of
from tests.rankers.cases import SMALL, TEST, TRAIN, VALID, bytes_of

MODEL = Path("model.rk")


def refused(content: Content) -> str:
    """Return the sentence that a file with this content is refused with."""
    write_container(MODEL, content)
    with pytest.raises(rk.ModelFileError) as caught:
        rk.load_model(MODEL)
    message = str(caught.value)
    assert message.startswith("model.rk: ")
    assert len(message) < 500
    return message


@every_case
def test_saved_and_loaded(case):
    model = case.fit()
    model.save(MODEL)
    again = rk.load_model(MODEL)
    assert type(again) is type(model)
    assert again.is_fitted
    np.testing.assert_array_equal(case.predict(again), case.predict(model))
    assert bytes_of(again) == MODEL.read_bytes()
    learned = {name: value for name, value in vars(model).items() if name.endswith("_")}
    for name, value in learned.items():
        if name not in ("ranker_", "members_"):
            np.testing.assert_array_equal(getattr(again, name), value)
    assert bytes_of(again.fit(VALID, **case.options(VALID))) == MODEL.read_bytes()


def test_members_keep_their_names_and_order():
    """Ten members, whose order is not that of their names as texts."""
    ten = {str(k): members()[k % 3] for k in range(11, 1, -1)}
    model = rk.Average(ten).fit(VALID)
    model.save(MODEL)
    again = rk.load_model(MODEL)
    assert again.member_names_ == tuple(ten)
    assert list(again.members) == list(ten)
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))


def test_a_file_needs_no_other_file():
    members()[0].save("one.rk")
    model = rk.Average([rk.load_model("one.rk"), members()[1]]).fit(VALID)
    expected = model.predict(TEST)
    model.save(MODEL)
    Path("one.rk").unlink()
    np.testing.assert_array_equal(rk.load_model(MODEL).predict(TEST), expected)


def test_a_member_with_a_base():
    based = rk.LambdaMART(**SMALL | {"n_trees": 2}, base=members()[0]).fit(TRAIN)
    model = rk.BestMix([based, members()[2]]).fit(VALID)
    model.save(MODEL)
    again = rk.load_model(MODEL)
    assert isinstance(again.members["1"].base, rk.MART)
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))


@pytest.fixture(scope="module")
def contents(tmp_path_factory):
    """Return what the files of some ensembles hold."""
    folder = tmp_path_factory.mktemp("models")
    by_name = {}
    for name in ("average", "average-scores", "mix-tree", "powell", "linear"):
        CASES[name].fit().save(folder / "model.rk")
        by_name[name] = read_container(folder / "model.rk")
    return by_name


ABSENT = object()
MANIFESTS = [
    ("average", "class", "Mean", "holds a 'Mean', which this version of rankinite does not know"),
    ("average", "class", "Stacked", "Stacked: there is no parameter 'scaled'"),
    ("average", "class", "BestMix", "BestMix: there is no parameter 'scaled'"),
    ("average", "class", "WithScoreFeatures", "other rankers inside than a scorer and a ranker"),
    ("average", "parameters", {"scaled": "no"}, "scaled must be one of False, True"),
    ("average", "class", "MART", "has no 'n_rounds'"),
    ("linear", "class", "Average", "has a ranker inside that does not belong there"),
    ("average", "parameters", ABSENT, "has no 'parameters'"),
    ("average", "parameters", [], "'parameters' is []"),
    ("average", "parameters", {"tree": None}, "there is no parameter 'tree'"),
    ("average", "parameters", {"members": []}, "has rankers among the parameters"),
    ("linear", "parameters", {"ranker": None}, "has rankers among the parameters"),
    ("powell", "parameters", {"measure": "NDGC"}, "there is no measure 'NDGC'"),
    ("powell", "parameters", {"measure": 3}, "3 is not a measure"),
    ("powell", "parameters", {"measure": ["NDCG", "ERR"]}, "are 2 measures; give one"),
    ("powell", "parameters", {"most_evaluations": "x"}, "most_evaluations must be a whole number"),
    ("mix-tree", "parameters", {"tree": "(1 2)"}, "leaves out the members '3'"),
    ("mix-tree", "parameters", {"tree": 5}, "tree must be a text"),
    ("average", "member_names", ABSENT, "does not name the members, each once"),
    ("average", "member_names", ["1", "1", "3"], "does not name the members, each once"),
    ("average", "member_names", [1, 2, 3], "does not name the members, each once"),
    ("average", "member_names", "123", "does not name the members, each once"),
    ("average", "member_names", [], "does not name the members, each once"),
    ("average", "member_names", ["1", "2"], "the members in the file do not fit the ranker that"),
    ("average-scores", "member_names", ["1", "2"], "expected 2 of float64"),
    ("linear", "member_names", ["1", "2", "x"], "no ranker that takes the scores of its members"),
    ("average", "members", ABSENT, "it lists no members"),
    ("average", "members", {}, "it lists no members"),
    ("average", "members", [], "the members in the file do not fit the ranker that contains them"),
    ("average", "members", [1, 2, 3], "its members.0 is no ranker"),
    ("average", "members", [{}, {}, {}], "holds a 'None'"),
    ("average", "members", [{"class": "checkpoint"}], "is a checkpoint, no model"),
    ("linear", "ranker", ABSENT, "no ranker that takes the scores of its members"),
    ("linear", "ranker", 7, "its ranker is no ranker"),
    ("average", "ranker", {"class": "Average"}, "it lists no members"),
    ("average", "base", {}, "holds a 'None'"),
    ("average", "based_on_scores", True, "the members in the file do not fit the ranker that"),
    ("average-scores", "based_on_scores", False, "the members in the file do not fit the ranker"),
    ("average", "based_on_scores", "no", "'based_on_scores' is 'no'"),
    ("average", "feature_names", ["a", "b", "c", "d"], "the members in the file do not fit"),
    ("average", "feature_names", [], "'feature_names' is []"),
    ("average", "top_grade", -1, "'top_grade' is -1"),
]  # fmt: skip


@pytest.mark.parametrize(("model", "name", "value", "sentence"), MANIFESTS)
def test_forged_manifests_are_refused(contents, model, name, value, sentence):
    content = contents[model]
    manifest = {k: v for k, v in content.manifest.items() if k != name}
    if value is not ABSENT:
        manifest[name] = value
    assert sentence in refused(Content(manifest, content.arrays))


def test_a_mix_tree_is_not_so_deep_that_its_texts_take_much_memory():
    names = [str(k) for k in range(1, 601)]
    tree = "(" * 599 + "1" + "".join(f" {name})" for name in names[1:])
    scores = {name: np.arange(2.0) for name in names}
    with pytest.raises(rk.UsageError, match="599 deep; expected at most 500"):
        rk.BestMix(tree=tree).fit(
            rk.RankingData([[0.0], [1.0]], [0, 1], [1, 1]), member_scores=scores
        )
    content = Content(
        {
            "class": "BestMix",
            "parameters": {"tree": tree},
            "based_on_scores": True,
            "member_names": names,
            "feature_names": ["1"],
            "top_grade": 1,
            "members": [],
        },
        {
            **{name: np.ones(600) for name in ("means", "scales", "weights")},
            **{name: np.ones(599) for name in ("alphas", "values")},
        },
    )
    assert "599 deep; expected at most 500" in refused(content)


def test_an_ensemble_has_no_base(contents):
    content = contents["average"]
    base = content.manifest["members"][0]
    arrays = {
        name.replace("members.0.", "base."): array for name, array in content.arrays.items()
        if name.startswith("members.0.")
    }  # fmt: skip
    forged = Content({**content.manifest, "base": base}, {**content.arrays, **arrays})
    assert "the base in the file does not fit the ranker that contains it" in refused(forged)


def put(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


ARRAYS = [
    ("average", "means", None),
    ("average", "scales", None),
    ("average", "weights", None),
    ("average", "members.1.value", None),
    ("average", "means", put(0, np.nan)),
    ("average", "scales", put(0, 0.0)),
    ("average", "scales", put(2, -1.0)),
    ("average", "weights", put(1, np.inf)),
    ("average", "weights", put(1, 1e200)),
    ("average", "weights", lambda a: a[:-1]),
    ("average", "weights", lambda a: a.astype(np.float32)),
    ("average", "weights", lambda a: a[:, None]),
    ("mix-tree", "alphas", None),
    ("mix-tree", "values", put(0, np.nan)),
    ("mix-tree", "alphas", lambda a: a[:-1]),
    ("powell", "search", None),
    ("powell", "search", put(1, np.nan)),
    ("powell", "search", put(1, 2.5)),
    ("powell", "search", put(1, -0.0)),
    ("linear", "ranker.weights", None),
    ("linear", "ranker.weights", put(0, np.nan)),
]


@pytest.mark.parametrize(("model", "name", "change"), ARRAYS)
def test_forged_arrays_are_refused(contents, model, name, change):
    arrays = dict(contents[model].arrays)
    assert name in arrays
    if change is None:
        del arrays[name]
    else:
        arrays[name] = change(arrays[name])
    refused(Content(contents[model].manifest, arrays))


def test_members_without_end(contents):
    content = contents["average"]
    manifest = copy.deepcopy(dict(content.manifest))
    for _ in range(110):
        manifest = {**content.manifest, "members": [manifest]}
    assert "more than 100 deep" in refused(Content(manifest, content.arrays))


@every_ensemble
def test_numbers_flipped_under_a_fitting_checksum_never_surprise(case):
    """Whatever the arrays hold, a file gives a ranker that predicts, or an error of ours."""
    case.fit().save(MODEL)
    content = read_container(MODEL)
    rng = np.random.default_rng(3)
    for _ in range(60):
        arrays = {name: array.copy() for name, array in content.arrays.items()}
        names = [name for name in arrays if arrays[name].size and not name.startswith("members.")]
        name = rng.choice(sorted(names))
        raw = arrays[name].view(np.uint8)
        raw[rng.integers(len(raw))] ^= np.uint8(1 << rng.integers(8))
        write_container(MODEL, Content(content.manifest, arrays))
        try:
            scores = rk.load_model(MODEL).predict(TEST)
            assert scores.shape == (TEST.n_docs,)
        except rk.RankiniteError:
            pass


def test_the_commands_know_ensembles(call):
    rk.save(TEST, "test.txt")
    for case in (CASES["average"], CASES["linear"], CASES["mix-tree"]):
        model = case.fit()
        model.save(MODEL)
        printed = call("predict", MODEL, "test.txt").split()
        expected = model.predict(rk.load("test.txt"))
        assert [float(number) for number in printed] == expected.tolist()
    assert "which has no trees" in call("predict", MODEL, "test.txt", "--n-trees", 3, code=2)
    CASES["average-scores"].fit().save(MODEL)
    assert "was fitted to scores" in call("predict", MODEL, "test.txt", code=2)


@every_case
def test_every_ensemble_can_be_inspected(call, case):
    model = case.fit()
    model.save(MODEL)
    shown = call("inspect", MODEL)
    assert case.kind.__name__ in shown
    inspection = json.loads(call("inspect", MODEL, "--json", "--figures", "figures"))
    assert inspection["class"] == case.kind.__name__
    assert [member["name"] for member in inspection["members"]] == ["1", "2", "3"]
    assert [member["scale"] for member in inspection["members"]] == model.scales_.tolist()
    weights = getattr(model, "weights_", np.full(3, None)).tolist()
    assert [member["weight"] for member in inspection["members"]] == weights
    kinds = [member["model"] and member["model"]["class"] for member in inspection["members"]]
    assert kinds == [None if case.by_scores else k for k in ("MART", "LambdaMART", "LambdaRank")]
    if case.kind is rk.Stacked:
        assert inspection["ranker"]["features"] == ["1", "2", "3"]


def test_inspect_names_members_and_weights(call):
    CASES["average"].fit().save(MODEL)
    lines = [" ".join(line.split()) for line in call("inspect", MODEL).splitlines()]
    assert any(line.startswith("2 LambdaMART 4 trees 1 ") for line in lines)
    assert not any(line.startswith(("that vary", "Base")) for line in lines)


def test_an_ensemble_as_a_base_is_inspected():
    model = rk.LambdaMART(**SMALL, base=CASES["average"].fit()).fit(TRAIN)
    inspection = inspect_ranker(model)
    assert [member.name for member in inspection.base.members] == ["1", "2", "3"]


def test_scores_by_name_are_asked_for_after_loading():
    CASES["average-scores"].fit().save(MODEL)
    again = rk.load_model(MODEL)
    with pytest.raises(rk.UsageError, match="give member_scores"):
        again.predict(TEST)
    assert again.predict(None, member_scores=scores_of(TEST)).shape == (TEST.n_docs,)
