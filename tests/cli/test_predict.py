"""``rankinite predict`` and ``rankinite inspect``."""

import json
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.cli.inspect import sparkline
from rankinite.explanation import inspection

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def data():
    made = rk.polynomials(20, part="train", n_features=5)
    rk.save(made, "data.txt")
    return rk.load("data.txt")


@pytest.fixture
def model(data):
    base = rk.MART(n_trees=3, n_leaves=4).fit(data)
    fitted = rk.LambdaMART(n_trees=8, n_leaves=5, base=base, patience=None)
    fitted.fit(data, valid={"valid": data, "other": rk.polynomials(5, n_features=5)})
    fitted.save("m.rk")
    return fitted


def test_scores_are_those_of_the_library(call, data, model):
    printed = call("predict", "m.rk", "data.txt")
    assert [float(line) for line in printed.splitlines()] == model.predict(data).tolist()
    first = call("predict", "m.rk", "data.txt", "--n-trees", 2, "--json")
    assert json.loads(first)["scores"] == model.predict(data, n_trees=2).tolist()
    said = call("predict", "m.rk", "data.txt", "--out", "s.txt.gz")
    assert said == "wrote s.txt.gz (20 queries, 1,000 documents)\n"
    assert (rk.load_scores("s.txt.gz", data) == model.predict(data)).all()
    output = json.loads(call("predict", "m.rk", "data.txt", "--out", "s.txt", "--json"))
    assert output == {"wrote": "s.txt", "queries": 20, "documents": 1000}


def test_a_run_is_told_by_its_suffix(call, data, model):
    call("predict", "m.rk", "data.txt", "--out", "s.run")
    lines = [line.split() for line in Path("s.run").read_text().splitlines()]
    assert {len(line) for line in lines} == {6}
    assert {line[-1] for line in lines} == {"m"}
    assert (rk.load_scores("s.run", data) == model.predict(data)).all()


def test_scores_stand_in_the_order_of_the_file_even_if_grouped(call, data, model):
    lines = Path("data.txt").read_text().splitlines()
    documents = [line for line in lines if "qid" in line]
    order = np.random.default_rng(0).permutation(len(documents))
    Path("mixed.txt").write_text("\n".join(documents[k] for k in order) + "\n")
    printed = call("predict", "m.rk", "mixed.txt", "--group")
    expected = model.predict(data)[order]
    assert [float(line) for line in printed.splitlines()] == expected.tolist()
    call("predict", "m.rk", "mixed.txt", "--group", "--out", "s.txt")
    mixed = json.loads(call("evaluate", "mixed.txt", "s.txt", "--group", "--json"))
    evaluation = rk.evaluate(model.predict(data), data, ["NDCG@10", "ERR", "MAP"])
    assert mixed["mean"] == pytest.approx(dict(evaluation.mean))


def test_features_that_do_not_fit_are_named(call, model):
    Path("few.txt").write_text("1 qid:1 1:1 4:1\n")
    assert "lacks the features '5'; " in call("predict", "m.rk", "few.txt", code=1)
    assert len(call("predict", "m.rk", "few.txt", "--n-features", 5).splitlines()) == 1
    Path("many.txt").write_text("1 qid:1 1:1 6:1\n")
    assert "has '6' besides" in call("predict", "m.rk", "many.txt", code=1)
    rk.save(rk.RankingData([[1.0] * 5], [1], [1], feature_names=list("12x45")), "named.parquet")
    sentence = call("predict", "m.rk", "named.parquet", code=1)
    assert "named.parquet: there is no feature column '3'; the columns are" in sentence


def test_wrong_models_and_trees_are_told(call, data, model):
    whole = Path("m.rk").read_bytes()
    Path("cut.rk").write_bytes(whole[:-100])
    Path("folder").mkdir()
    for command in (["predict", "{}", "data.txt"], ["inspect", "{}"]):
        for name, words in [
            ("cut.rk", "is not a model file, or it is damaged"),
            ("absent.rk", "absent.rk: there is no such file"),
            ("folder", "folder: this is a directory"),
        ]:
            arguments = [part.format(name) for part in command]
            assert words in call(*arguments, code=1)
    assert "from 0 to" in call("predict", "m.rk", "data.txt", "--n-trees", 9999, code=2)


def test_inspect_shows_parameters_curves_features_and_the_base(call, model):
    lines = [line.split() for line in call("inspect", "m.rk", "--top", 2).splitlines()]
    assert ["n_leaves", "5", "64"] in lines  # the default stands beside what was changed
    assert ["learning_rate", "0.06"] in lines
    assert ["patience", "none", "100"] in lines
    assert ["Trees", "grown", "8"] in lines
    assert ["Top", "grade", "4"] in lines
    assert ["The", "base", "of", "m.rk"] in lines
    assert ["Base", "MART"] in lines
    assert ["Base", "none"] in lines
    curve = next(line for line in lines if line[:2] == ["valid", "NDCG"])
    values = model.history_["valid"]["NDCG"]
    assert curve[2:5] == [f"{values[k]:.4f}" for k in (0, model.n_trees_ - 1, -1)]
    assert curve[5] == sparkline(values)
    names = list(model.importances())
    assert [line[0] for line in lines if line and line[0] in names[:3]][:2] == names[:2]


def test_inspect_gives_json_with_the_base_inside(call, model):
    output = json.loads(call("inspect", "m.rk", "--json", "--top", 3))
    assert (output["class"], output["base"]["class"]) == ("LambdaMART", "MART")
    assert (output["trees_grown"], output["base"]["trees"]) == (8, 3)
    assert output["base"]["leaves"] == sum(tree.n_leaves for tree in model.base.forest_.trees)
    assert output["features"] == ["1", "2", "3", "4", "5"]
    assert output["parameters"]["n_leaves"] == 5
    assert [entry["feature"] for entry in output["importances"]] == list(model.importances())[:3]
    assert {(entry["set"], len(entry["values"])) for entry in output["history"]} == {
        ("valid", 8),
        ("other", 8),
    }


def test_inspect_draws(call, model):
    printed = call("inspect", "m.rk", "--figures", "new/figures")
    for name in ("learning-curve.png", "importances.png"):
        assert f"wrote new/figures/{name}" in printed
        assert Path("new/figures", name).read_bytes().startswith(PNG)


def test_a_model_of_several_trees_a_round(call, data):
    rk.McRank(n_trees=2, n_leaves=3).fit(data).save("m.rk")
    lines = [line.split() for line in call("inspect", "m.rk").splitlines()]
    assert ["Rounds", "kept", "2"] in lines
    assert ["Trees", "a", "round", "5"] in lines
    assert ["Leaves", "30"] in lines


@pytest.fixture
def net(data, model):
    fitted = rk.LambdaRank(hidden=(4, 3), n_epochs=5, base=model).fit(data)
    fitted.save("net.rk")
    return fitted


def test_scores_of_a_net(call, data, net):
    printed = call("predict", "net.rk", "data.txt")
    assert [float(line) for line in printed.splitlines()] == net.predict(data).tolist()
    sentence = call("predict", "net.rk", "data.txt", "--n-trees", 2, code=2)
    assert "net.rk is a LambdaRank, which has no trees; leave out --n-trees" in sentence


def test_inspect_shows_the_layers_of_a_net_and_its_base(call, net):
    lines = [line.split() for line in call("inspect", "net.rk", "--top", 2).splitlines()]
    assert ["Epoch", "kept", f"{net.best_epoch_}"] in lines
    assert ["Epochs", "done", "5"] in lines
    assert ["Layers", "10", "inputs,", "4", "units,", "3", "units,", "score"] in lines
    assert ["Weights", f"{10 * 4 + 4 + 4 * 3 + 3 + 3 + 1}"] in lines
    assert ["hidden", "(4,", "3)"] not in lines  # a file holds a list
    assert any(line[:3] == ["hidden", "[4,", "3]"] for line in lines)
    assert ["Learning", "curve", "over", "5", "epochs"] in lines
    assert ["Feature", "Share", "of", "slope"] in lines
    first, slope = next(iter(net.importances().items()))
    assert [first, f"{slope / sum(net.importances().values()):.1%}"] in lines
    assert ["The", "base", "of", "net.rk"] in lines
    assert ["Trees", "grown", "8"] in lines


def test_inspect_gives_json_of_a_net(call, net):
    output = json.loads(call("inspect", "net.rk", "--json"))
    assert (output["class"], output["base"]["class"]) == ("LambdaRank", "LambdaMART")
    assert (output["epochs"], output["epochs_done"]) == (net.best_epoch_, 5)
    assert (output["layers"], output["weights"]) == ([10, 4, 3, 1], 63)
    assert [entry["feature"] for entry in output["importances"]] == list(net.importances())
    assert sum(entry["share"] for entry in output["importances"]) == pytest.approx(1.0)
    assert [(entry["set"], len(entry["values"])) for entry in output["history"]] == [("train", 5)]


def test_inspect_shows_the_weights_of_a_linear_net(call, data):
    wide = rk.RankingData(np.insert(data.X, 5, 1.0, axis=1), data.y, data.qid)
    fitted = rk.LambdaRank(hidden=0, n_epochs=3, rank_inputs=False).fit(wide)
    fitted.save("linear.rk")
    lines = [line.split() for line in call("inspect", "linear.rk").splitlines()]
    assert ["Layers", "5", "inputs,", "score"] in lines
    assert ["Features", "6"] in lines
    assert ["that", "vary", "5"] in lines
    assert ["Feature", "Share", "of", "slope", "Weight"] in lines
    importances = json.loads(call("inspect", "linear.rk", "--json"))["importances"]
    weights = {entry["feature"]: entry["weight"] for entry in importances}
    assert [weights[name] for name in "12345"] == fitted.net_.weights[:5].tolist()
    assert all(abs(entry["weight"]) == pytest.approx(entry["slope"]) for entry in importances)


def test_inspect_draws_a_net(call, net, monkeypatch):
    drawn = []
    save_figure = inspection.save_figure

    def draw(figure, path):
        drawn.append(figure)
        save_figure(figure, path)

    monkeypatch.setattr(inspection, "save_figure", draw)
    call("inspect", "net.rk", "--figures", "figures")
    curve, importances = (figure.axes[0] for figure in drawn)
    assert curve.get_xlabel() == "Epochs"
    assert curve.get_title() == f"NDCG, epoch {net.best_epoch_} kept"
    assert importances.get_xlabel() == "Share of the slopes"


def test_a_base_of_scores_is_told(call, data):
    scores = np.zeros(data.n_docs)
    rk.LambdaMART(n_trees=2, n_leaves=3, base=scores).fit(data).save("m.rk")
    assert ["Base", "scores"] in [line.split() for line in call("inspect", "m.rk").splitlines()]
    assert "was fitted on top of scores" in call("predict", "m.rk", "data.txt", code=2)
