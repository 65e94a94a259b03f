"""Exported models, scored by other tools or by their rules, against our scores."""

from __future__ import annotations

import json
import math
import re
import shutil
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

import rankinite as rk
from rankinite.cli.export import ExportFormat
from rankinite.core.errors import MissingExtraError, RankiniteError, UsageError
from rankinite.interop.export import FORMATS
from rankinite.interop.exporter import DOUBLE
from rankinite.interop.sum_of_trees import sum_of_trees
from rankinite.interop.thresholds import SLACK, at_most, below, with_slack
from tests.interop.cases import (
    ENDINGS,
    MODELS,
    NO_CATEGORIES,
    NO_MISSING,
    SCORED_BY,
    data,
    documents_for,
    model,
)

N_DOCS = 3_000
IMPORTED = Path(__file__).parent / "models"
# In units of the largest sum of a document's leaves.
TOLERANCE = {True: 1e-14, False: 3e-7}


def relevant(train):
    """Return the queries with the grades 0 and 1."""
    y, names = (train.y > 1).astype(int), train.feature_names
    return rk.RankingData(train.X, y, qid=train.qid, feature_names=names)


def size(trees) -> float:
    return max(1.0, abs(trees.start) + sum(float(np.abs(t.value).max()) for t in trees.trees))


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("kind", MODELS)
def test_other_tools_score_as_we_do(kind, to):
    exported = model(kind)
    trees = sum_of_trees(exported)
    if kind == "categories" and to in NO_CATEGORIES:
        with pytest.raises(UsageError, match=r"has \d+ categorical splits, which .* cannot hold"):
            rk.export(exported, f"m{ENDINGS.get(to, '.json')}", to)
        assert list(Path().iterdir()) == []
        return
    if to in NO_MISSING and trees.n_learned_missing_left:
        with pytest.raises(UsageError, match=r"\d+ of \d+ splits send documents without a val"):
            rk.export(exported, f"m{ENDINGS.get(to, '.json')}", to)
    X = documents_for(to, trees, N_DOCS)
    written = rk.export(exported, f"m{ENDINGS.get(to, '.json')}", to, allow=to in NO_MISSING)
    assert all(path.exists() for path in written.files)
    expected = trees.scores(X)
    np.testing.assert_allclose(
        expected, exported.predict(X, qid=0), rtol=0, atol=1e-13 * size(trees)
    )
    for score in SCORED_BY[to]:
        if to == "c" and shutil.which("gcc") is None:
            pytest.skip("there is no gcc")
        # Sums of 64 bits may be returned in 32.
        is_exact = written.precision == DOUBLE and to != "onnx"
        scores = score(Path(written.files[0]), X)
        np.testing.assert_allclose(scores, expected, rtol=0, atol=TOLERANCE[is_exact] * size(trees))
        if to in ("c", "python"):
            assert scores.tobytes() == expected.tobytes()


def test_the_command_and_the_function_have_the_same_formats():
    assert get_args(ExportFormat) == tuple(FORMATS) == tuple(SCORED_BY)


@pytest.mark.parametrize("hidden", [0, (8, 4)])
@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_nets_in_onnx(hidden, activation):
    """Missing inputs are at the mean, and outliers are clipped."""
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    train = data()
    net = rk.LambdaRank(hidden=hidden, activation=activation, rank_inputs=False, n_epochs=3)
    net.fit(train)
    rk.export(net, "net.onnx", "onnx")
    X = train.X.copy()
    X[0, 0], X[1, 0], X[2] = 1e6, -1e6, np.nan
    session = onnxruntime.InferenceSession("net.onnx")
    scores = session.run(None, {"features": X.astype(np.float64)})[0][:, 0]
    np.testing.assert_allclose(scores, net.predict(X, qid=0), atol=1e-5)


@pytest.mark.parametrize("to", ["opensearch", "solr"])
def test_linear_nets_in_search_engines(to):
    train = data(missing=False)
    net = rk.LambdaRank(hidden=0, rank_inputs=False, n_epochs=3).fit(train)
    with pytest.raises(UsageError, match="clipped at 10 standard deviations"):
        rk.export(net, "m.json", to)
    rk.export(net, "m.json", to, allow=True)
    content = json.loads(Path("m.json").read_text())
    if to == "solr":
        weights = content["params"]["weights"]
    else:
        assert content["model"]["model"]["type"] == "model/linear"
        weights = json.loads(content["model"]["model"]["definition"])
    linear = train.X.astype(np.float64) @ [float(weights[name]) for name in train.feature_names]
    difference = net.predict(train) - linear  # the same for all documents
    np.testing.assert_allclose(difference, difference.mean(), atol=1e-5)


# What is refused


@cache
def refused() -> dict:
    train = data()
    net = rk.LambdaRank(hidden=4, n_epochs=2).fit(train)
    chances = rk.MART(n_trees=2, loss="logistic").fit(relevant(train))
    on_scores = rk.LambdaMART(n_trees=2, base=np.zeros(train.n_docs)).fit(train)
    return {
        "ranks of features": (net, "onnx", "inputs of the LambdaRank are ranks of features"),
        "a net": (net, "lightgbm", "does not consist of trees; distil it"),
        "hidden layers": (
            rk.LambdaRank(hidden=4, rank_inputs=False, n_epochs=2).fit(train),
            "solr",
            "hidden layers, and solr holds linear nets only",
        ),
        "classes": (rk.McRank(n_trees=2).fit(train), "c", "expected grade of a softmax"),
        "scores as base": (on_scores, "c", "continues scores that were given as its base"),
        "chances inside": (
            rk.Average({"a": chances, "b": model("trees")}).fit(train),
            "c",
            "Average's member 'a', a MART cannot be exported: its scores are chances",
        ),
        "a stack": (
            rk.Stacked(
                {"a": model("trees"), "b": model("deep")}, ranker=rk.LambdaMART(n_trees=2)
            ).fit(train),
            "c",
            "the Stacked cannot be exported",
        ),
        "scores of members": (
            rk.Average().fit(train, member_scores={"a": train.y}),
            "c",
            "was fitted to scores, not to rankers",
        ),
        "unfitted": (rk.LambdaMART(), "c", "the LambdaMART is not fitted yet"),
        "no model": ("m.rk", "c", "the model is a str; expected a fitted ranker"),
        "no format": (model("trees"), "pmml", "the format is 'pmml'; expected one of lightgbm"),
    }


CASES = [
    "ranks of features", "a net", "hidden layers", "classes", "scores as base", "chances inside",
    "a stack", "scores of members", "unfitted", "no model", "no format",
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_exported_is_refused(case):
    what, to, message = refused()[case]
    with pytest.raises(RankiniteError, match=message):
        rk.export(what, f"m{ENDINGS.get(to, '.json')}", to)
    assert list(Path().iterdir()) == []


def test_chances_are_exported_as_log_odds():
    train = data()
    chances = rk.MART(n_trees=5, loss="logistic").fit(relevant(train))
    written = rk.export(chances, "m.py", "python")
    assert written.notes == (
        "the scores are log odds, of which predict makes chances: the order is the same",
    )
    scores = SCORED_BY["python"][0](Path("m.py"), train.X)
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), chances.predict(train), rtol=1e-12)


# Forests of other tools


@pytest.mark.parametrize("file", ["lightgbm.txt", "xgboost.json", "catboost.json"])
def test_imported_forests_are_exported(file):
    imported = rk.import_model(IMPORTED / file)
    X = documents_for("python", sum_of_trees(imported), N_DOCS)
    rk.export(imported, "m.py", "python")
    scores = SCORED_BY["python"][0](Path("m.py"), X)
    assert scores.tobytes() == imported.predict(X, qid=0).tobytes()


def test_zeros_that_are_missing_values_are_no_other_tools():
    with pytest.raises(UsageError, match=r"zeros of .* for missing values .* use the file that"):
        rk.export(rk.import_model(IMPORTED / "lightgbm-zeros.txt"), "m.c", "c")


# Names


HOSTILE = ["infinity", 'q"u\\o', "x[1]<2", "ü ✓", "</tree>", "1"]


@pytest.mark.parametrize("to", FORMATS)
def test_hostile_names_are_written_or_refused(to):
    train = rk.RankingData(data().X, data().y, qid=data().qid, feature_names=HOSTILE)
    named = rk.LambdaMART(n_trees=3).fit(train)
    plain = None
    if to in ("lightgbm", "xgboost", "vespa"):
        with pytest.raises(UsageError, match=r"cannot hold the feature names '.*--names"):
            rk.export(named, f"m{ENDINGS.get(to, '.json')}", to, allow=True)
        plain = {name: f"g{j}" for j, name in enumerate(HOSTILE)}
    written = rk.export(named, f"m{ENDINGS.get(to, '.json')}", to, allow=True, names=plain)
    X = np.nan_to_num(train.X, nan=0.5)
    if to != "xgboost-dump":  # whose reader here knows the usual names only
        for score in SCORED_BY[to]:
            scores = score(Path(written.files[0]), X)
            np.testing.assert_allclose(scores, named.predict(X, qid=0), atol=1e-5)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"f9": "x"}, "names has 'f9', which the model does not have"),
        ({"f0": "f1"}, "gives two features the name 'f1'"),
    ],
)
def test_wrong_names_are_refused(names, message):
    with pytest.raises(UsageError, match=message):
        rk.export(model("trees"), "m.out", "lightgbm", names=names)


@pytest.mark.parametrize("name", ["", "1a", "a-b", "x" * 65, "a;b"])
def test_the_name_of_a_model_is_an_identifier(name):
    with pytest.raises(UsageError, match="the model's name is"):
        rk.export(model("trees"), "m.c", "c", name=name)


# Thresholds


def near(values) -> np.ndarray:
    up, down = np.float32(np.inf), np.float32(-np.inf)
    with np.errstate(over="ignore"):
        return np.concatenate([values, np.nextafter(values, up), np.nextafter(values, down)])


def test_thresholds_separate_the_same_numbers():
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 20_000, dtype=np.uint32).view(np.float32)
    some = [0.0, -0.0, 1e-45, -1e-45, 1.0, np.finfo(np.float32).max, np.finfo(np.float32).min]
    t = np.concatenate([bits[np.isfinite(bits)], np.float32(some)])
    for x in near(t).reshape(3, -1):
        x = np.where(np.isfinite(x), x, 0).astype(np.float32)
        expected = x <= t
        assert ((x.astype(np.float64) <= at_most(t)) == expected).all()
        with np.errstate(over="ignore"):
            assert ((x < below(t).astype(np.float32)) == expected).all()
        assert ((x.astype(np.float64) < below(t)) == expected).all()
        thresholds, off = with_slack(t)
        sums = thresholds.astype(np.float32) + SLACK
        assert (thresholds.astype(np.float32) == thresholds).all()
        assert ((x <= sums) == expected)[off == 0].all()
    assert off[np.abs(t) > 2e-3].max() <= 1
    assert (off[np.abs(t) < 1e-15] > 100).any()
    # Sums near -1 are -1.00000012 and -0.99999994.
    assert with_slack(np.float32([0, 0.5, 1, -1, 100]))[1].tolist() == [0, 0, 0, 1, 0]
    assert at_most(np.float32([np.inf])) == np.finfo(np.float32).max
    assert math.isinf(below(np.float32([np.inf]))[0])


def test_thresholds_that_solr_cannot_tell_from_0_are_counted():
    X = np.array([[1e-20], [2e-20], [3e-20]] * 5, np.float32)
    tiny = rk.MART(n_trees=1, n_leaves=3, min_docs_in_leaf=1, docs_per_tree=1.0)
    tiny.fit(X, [0, 1, 2] * 5, qid=0)
    with pytest.raises(UsageError, match=r"\d of \d splits have thresholds so near 0"):
        rk.export(tiny, "m.json", "solr")


# The command


@pytest.fixture
def saved():
    model("trees").save("my model.rk")


def test_the_command(call, saved):
    said = call("export", "my model.rk", "--to", "opensearch", "--out", "m.json")
    assert said == "wrote m.json\nwrote m.featureset.json\n"
    assert json.loads(Path("m.json").read_text())["model"]["name"] == "my_model"
    output = json.loads(call("export", "my model.rk", "--to", "c", "--out", "m.c", "--json"))
    assert output == {"wrote": ["m.c", "m.h"], "precision": "64 bits", "notes": []}
    assert "double my_model_score(const float *x);" in Path("m.h").read_text()


def test_the_command_replaces_nothing(call, saved):
    Path("m.h").write_text("precious")
    said = call("export", "my model.rk", "--to", "c", "--out", "m.c", code=2)
    assert "m.h exists; write to another place, or add --force" in said
    assert Path("m.h").read_text() == "precious"
    assert not Path("m.c").exists()
    said = call("export", "my model.rk", "--to", "c", "--out", "my model.rk", "--force", code=2)
    assert "would overwrite my model.rk" in said
    call("export", "my model.rk", "--to", "c", "--out", "m.c", "--force")
    assert "my_model_score" in Path("m.h").read_text()


@pytest.mark.parametrize("text", ["[]", '{"f0": 1}', "{", "[" * 100_000])
def test_the_command_explains_wrong_names(call, saved, text):
    Path("names.json").write_text(text)
    names = ("--names", "names.json")
    said = call("export", "my model.rk", "--to", "c", "--out", "m.c", *names, code=1)
    assert re.match(r"Error: names\.json: (expected an object|is no JSON)", said)


def test_names_from_a_file(call, saved):
    Path("names.json").write_text('{"f0": "bm25(title)"}')
    call("export", "my model.rk", "--to", "vespa", "--out", "m.json", "--names", "names.json")
    assert json.loads(Path("m.json").read_text())["feature_names"][:2] == ["bm25(title)", "f1"]
    profile = Path("m.profile").read_text()
    assert 'expression: lightgbm("my_model.json")' in profile
    assert "function f1() {" in profile
    assert "bm25(title)" not in profile


@pytest.mark.parametrize(("to", "package"), [("onnx", "onnx"), ("treelite", "treelite")])
def test_a_missing_package_is_named(monkeypatch, to, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"{package} is not installed.*rankinite\[export"):
        rk.export(model("trees"), f"m{ENDINGS.get(to, '.json')}", to)


def test_the_second_file_has_a_name_of_its_own():
    with pytest.raises(UsageError, match=r"m\.h is the name of the second file of c"):
        rk.export(model("trees"), "m.h", "c")
    assert list(Path().iterdir()) == []
