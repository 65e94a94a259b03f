"""``rankinite train``: what it writes, what its configuration repeats, and what it refuses."""

import json
import shlex
import shutil
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

import rankinite as rk
from rankinite.cli import main
from rankinite.cli.options import Loading
from rankinite.data.memmap import fingerprint
from rankinite.models import RANKERS
from rankinite.runs.training import LOADING

SMALL = "--n-trees 6 --n-leaves 4"
SMALL_NET = "--ranker LambdaRank --n-epochs 6 --hidden 4"


@pytest.fixture
def files():
    for part, size in (("train", 20), ("valid", 10), ("test", 10)):
        made = rk.polynomials(size, part=part, n_features=5)
        rk.save(made, f"{part}.parquet")


@pytest.fixture
def train(call):
    def run(text, code=0):
        return call("train", *shlex.split(text), code=code)

    return run


def test_every_option_of_loading_is_a_key():
    assert {field.name for field in fields(Loading)} == set(LOADING)


def test_every_ranker_is_offered(train):
    for name in RANKERS:
        assert f'ranker = "{name}"' in train(f"--ranker {name} --print-config")


@pytest.mark.parametrize("ranker", RANKERS)
def test_the_model_is_that_of_the_library(train, files, ranker):
    is_net = ranker == "LambdaRank"
    small = SMALL_NET if is_net else f"{SMALL} --ranker {ranker}"
    params = {"n_epochs": 6, "hidden": 4} if is_net else {"n_trees": 6, "n_leaves": 4}
    train(f"train.parquet --valid valid.parquet {small} --seed 3 --out m.rk")
    model = RANKERS[ranker](**params, random_state=3)
    model.fit(rk.load("train.parquet"), valid={"valid": rk.load("valid.parquet")}).save("own.rk")
    assert Path("m.rk").read_bytes() == Path("own.rk").read_bytes()
    assert sorted(path.name for path in Path().glob("m.rk*")) == ["m.rk", "m.rk.toml"]


def test_the_table_says_what_evaluate_says(train, files):
    stopping = "--patience 2 --learning-rate 2 --n-trees 30 --valid-measure NDCG@5,ERR --seed 1"
    printed = train(
        f"train.parquet --valid valid.parquet --valid test.parquet --out m.rk {stopping}"
    )
    model = rk.load_model("m.rk")
    assert model.best_round_ < model.n_rounds_ < 30
    lines = printed.splitlines()
    kept = f"LambdaMART: kept {model.n_trees_} of {model.n_rounds_} trees"
    best = f"; the best round was {model.best_round_}"
    assert lines[0] == kept + (best if model.n_trees_ > model.best_round_ else "")
    assert lines[2].split() == ["Set", "NDCG@5", "ERR"]
    for line, part in zip(lines[3:5], ("valid", "test"), strict=True):
        data = rk.load(f"{part}.parquet")
        mean = rk.evaluate(model.predict(data), data, ["NDCG@5", "ERR"]).mean
        assert line.split() == [part, f"{mean['NDCG@5']:.4f}", f"{mean['ERR']:.4f}"]
    first, gain = next(iter(model.importances().items()))
    share = gain / sum(model.importances().values())
    top = [first, f"{share:.1%}", f"{model.importances('count')[first]:.0f}"]
    assert top in [line.split() for line in lines]
    assert lines[-2:] == ["wrote m.rk", "wrote m.rk.toml"]


def test_json_holds_the_same(train, files):
    printed = train(f"train.parquet --valid valid.parquet {SMALL} --out m.rk --json")
    output = json.loads(printed)
    model = rk.load_model("m.rk")
    assert (output["ranker"], output["trees_grown"]) == ("LambdaMART", 6)
    assert output["trees"] == model.n_trees_
    # Those of the mean over rounds, which is the model, and not those of its best round.
    valid = rk.load("valid.parquet")
    value = rk.evaluate(model.predict(valid), valid, "NDCG").mean["NDCG"]
    assert output["values"]["valid"]["NDCG"] == pytest.approx(value, abs=1e-12)
    assert output["importances"][0]["feature"] == next(iter(model.importances()))
    assert output["wrote"] == ["m.rk", "m.rk.toml"]


def test_a_net_is_told_by_epochs(train, files):
    linear = f"{SMALL_NET} --hidden 0 --no-rank-inputs"
    printed = train(f"train.parquet --valid valid.parquet {linear} --out m.rk")
    model = rk.load_model("m.rk")
    lines = printed.splitlines()
    assert lines[0] == f"LambdaRank: kept {model.best_epoch_} of 6 epochs"
    first, slope = next(iter(model.importances().items()))
    share = slope / sum(model.importances().values())
    (weight,) = [w for w in model.net_.weights if abs(w) == pytest.approx(slope)]
    assert [first, f"{share:.1%}", f"{weight:+.4g}"] in [line.split() for line in lines]
    output = json.loads(train(f"train.parquet {SMALL_NET} --out m.rk --json"))
    model = rk.load_model("m.rk")
    assert (output["ranker"], output["epochs_done"]) == ("LambdaRank", 6)
    assert output["epochs"] == model.best_epoch_
    assert output["values"] == {"train": {"NDCG": max(model.history_["train"]["NDCG"])}}
    assert output["importances"][0].keys() == {"feature", "slope", "share"}
    assert not any(key.startswith("trees") for key in output)


def test_a_validation_set_that_is_called_train(train, files):
    """A net calls the curve of its training set train."""
    Path("other").mkdir()
    shutil.copy("valid.parquet", "other/train.parquet")
    for name, called in (("other/train.parquet", "other/train"), ("train.parquet", None)):
        command = f"train.parquet --valid {name} {SMALL_NET} --optimiser sgd --out m.rk --json"
        output = json.loads(train(command))
        assert list(output["values"]) == [called or "train.parquet", "train"]
    command = f"train.parquet --valid other/train.parquet {SMALL} --out m.rk --json"
    assert list(json.loads(train(command))["values"]) == ["train"]


@pytest.mark.parametrize(
    ("said", "hidden"), [("25", 25), ("0", 0), ("20,10", [20, 10]), ("'20, 10'", [20, 10])]
)
def test_hidden_layers_are_one_number_or_several(train, files, said, hidden):
    command = f"train.parquet --ranker LambdaRank --n-epochs 1 --hidden {said}"
    printed = train(f"{command} --print-config")
    assert tomllib.loads(printed)["hidden"] == hidden
    train(f"{command} --out m.rk")
    assert tomllib.loads(Path("m.rk.toml").read_text())["hidden"] == hidden
    assert rk.load_model("m.rk").hidden == hidden
    model = Path("m.rk").read_bytes()
    train("--config m.rk.toml")
    assert Path("m.rk").read_bytes() == model


def test_constraints_are_flags_and_keys(train, files):
    """As a text, or in a file as a table; features are those of the data, by name."""
    train(
        f"train.parquet {SMALL} --monotone-constraints 1=1,3=-1 --interaction-constraints "
        "'[1,3],[2]' --max-delta-step 1 --path-smooth 2 --out flags.rk"
    )
    Path("my.toml").write_text(
        "interaction_constraints = [['1', '3'], ['2']]\nmax_delta_step = 1\npath_smooth = 2\n"
        "monotone_constraints = {1 = 1, 3 = -1}\n"
    )
    train(f"train.parquet {SMALL} --config my.toml --out table.rk")
    by_flags, by_table = rk.load_model("flags.rk"), rk.load_model("table.rk")
    assert by_flags.forest_.to_arrays()["value"].tobytes() == (
        by_table.forest_.to_arrays()["value"].tobytes()
    )
    model = Path("table.rk").read_bytes()
    values = tomllib.loads(Path("table.rk.toml").read_text())
    assert values["monotone_constraints"] == {"1": 1, "3": -1}
    train("--config table.rk.toml")
    assert Path("table.rk").read_bytes() == model


def test_a_net_repeats_its_run_too(train, files):
    train(
        f"train.parquet {SMALL_NET} --optimiser sgd --queries-per-step all --most-restarts 3 "
        "--patience 2 --measure RankNet --weight-decay 0 --out m.rk"
    )
    model, configuration = Path("m.rk").read_bytes(), Path("m.rk.toml").read_text()
    values = tomllib.loads(configuration)
    assert (values["queries_per_step"], values["most_restarts"]) == ("all", 3)
    train("--config m.rk.toml")
    assert Path("m.rk").read_bytes() == model
    assert Path("m.rk.toml").read_text() == configuration


def test_a_zero_is_something_that_was_said(train):
    Path("my.toml").write_text('ranker = "LambdaRank"\nhidden = 5\nrandom_state = 7\n')
    said = "--hidden 0 --seed 0 --most-restarts 0 --min-improvement 0 --n-epochs none"
    values = tomllib.loads(train(f"t --config my.toml {said} --print-config"))
    assert values["n_epochs"] == "none"
    assert (values["hidden"], values["random_state"], values["most_restarts"]) == (0, 0, 0)


def test_constructions_around_a_measure_are_texts(train):
    text = train("t --measure 'LocalCost(NDCG@10)' --print-config")
    assert tomllib.loads(text)["measure"] == "LocalCost(NDCG@10)"


def test_the_configuration_repeats_the_run(train, files):
    train(
        f"train.parquet --valid valid.parquet {SMALL} --measure ERR --docs-per-tree 0.7 "
        "--truncation 10 --patience none --top-grade 5 --out m.rk"
    )
    model, configuration = Path("m.rk").read_bytes(), Path("m.rk.toml").read_bytes()
    Path("m.rk").unlink()
    train("--config m.rk.toml")
    assert Path("m.rk").read_bytes() == model
    assert Path("m.rk.toml").read_bytes() == configuration
    train("--config m.rk.toml --out other.rk")
    assert Path("other.rk").read_bytes() == model
    assert tomllib.loads(Path("other.rk.toml").read_text())["out"] == "other.rk"


def test_flags_override_the_file_and_the_whole_configuration_is_printed(train):
    Path("my.toml").write_text('ranker = "MART"\nn_leaves = 7\nlearning_rate = 1\nvalid = ["v"]\n')
    said = "--n-leaves 9 --per-query --group --max-depth 3"
    printed = train(f"t --config my.toml {said} --print-config")
    values = tomllib.loads(printed)
    assert (values["ranker"], values["train"], values["valid"]) == ("MART", "t", ["v"])
    assert (values["n_leaves"], values["learning_rate"], values["max_depth"]) == (9, 1.0, 3)
    assert values["per_query"] is True
    assert values["group"] is True
    assert set(values) >= set(RANKERS["MART"]._get_param_names()) - {"base"}
    assert not list(Path().glob("*.rk*"))


def test_a_base_is_adapted_and_contained(train, files):
    train(f"train.parquet {SMALL} --ranker MART --out background.rk")
    train(f"test.parquet {SMALL} --base background.rk --out m.rk")
    base, test = rk.load_model("background.rk"), rk.load("test.parquet")
    expected = rk.LambdaMART(n_trees=6, n_leaves=4, base=base).fit(test)
    Path("background.rk").unlink()
    assert (rk.load_model("m.rk").predict(test) == expected.predict(test)).all()
    assert tomllib.loads(Path("m.rk.toml").read_text())["base"] == "background.rk"


def test_trees_and_nets_are_bases_of_each_other(train, files):
    train(f"train.parquet {SMALL} --out trees.rk")
    train(f"train.parquet {SMALL_NET} --base trees.rk --out net.rk")
    train(f"train.parquet {SMALL} --base net.rk --out m.rk")
    model = rk.load_model("m.rk")
    kinds = [type(ranker).__name__ for ranker in (model, model.base, model.base.base)]
    assert kinds == ["LambdaMART", "LambdaRank", "LambdaMART"]


def test_validation_sets_take_the_top_grade_of_the_training_set(train):
    Path("t.txt").write_text("4 qid:1 1:3\n0 qid:1 1:1\n")
    Path("v.txt").write_text("1 qid:1 1:3\n0 qid:1 1:1\n")
    small = "--min-docs-in-leaf 1 --docs-per-tree 1 --n-trees 3"
    output = json.loads(train(f"t.txt --valid v.txt --measure ERR {small} --out m.rk --json"))
    # The relevant document is first: R = (2^1 - 1) / 2^4.
    assert output["values"]["v"]["ERR"] == pytest.approx(1 / 16)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("--num-leaves 31", "--num-leaves; it is called --n-leaves here"),
        ("--lambdarank_truncation_level 9", "it is called --truncation here"),
        ("--nthread 2", "RANKINITE_THREADS"),
        ("--n-leafs 31", "--n-leaves"),
        ("--learning-rate -1", "--learning-rate must be a finite number, above 0; got -1.0"),
        ("--max-depth deep", "--max-depth must be a whole number of at least 1, or 'none'"),
        ("--random-state none", "Invalid value for '--random-state'"),
        ("--normalise much", "--normalise must be one of 'none'"),
        ("--ranker MART --measure ERR", "MART has no --measure; LambdaMART and LambdaRank can"),
        ("--ranker LambdaRank --n-trees 3", "LambdaRank has no --n-trees; LambdaMART and MART and"),
        ("--hidden 5", "LambdaMART has no --hidden; LambdaRank can have it"),
        ("--ranker LambdaRank --hidden 5,x", "--hidden must be a whole number from 0 (a linear"),
        ("--ranker LambdaRank --hidden 5,", "one for each hidden layer; got '5,'"),
        ("--ranker LambdaRank --hidden -1", "one for each hidden layer; got -1"),
        ("--monotone-constraints 1=2", "--monotone-constraints must be 1, 0 or -1 for every feat"),
        ("--monotone-constraints 9=1", "there is no feature '9'; the features are '1', '2', '3'"),
        ("--ranker McRank --monotone-constraints 1=1", "McRank: monotone_constraints are not poss"),
        ("--interaction-constraints 1,2", "must be groups of features, such as"),
        ("--ranker LambdaRank --queries-per-step some", "at least 1, or one of 'all'; got 'some'"),
        ("--max-iter 5", "it is called --n-trees or --n-epochs here"),
        ("--batch-size 5", "it is called --queries-per-step here"),
        ("--valid-measure RankNet", "there is no measure 'RankNet'"),
        ("--ranker McRank --base b.rk", "McRank has no --base"),
        ("--ranker Random", "'LambdaMART', 'MART', 'McRank', 'LambdaRank'"),
        ("--measure NGCD", "no measure 'NGCD'"),
        ("--valid-measure NDCG@x", "is not a depth"),
        ("--valid v.txt --query-file q", "FILE.query"),
        ("--valid train.parquet --valid train.parquet", "named twice"),
        ("--out train.parquet", "would overwrite train.parquet"),
    ],
)
def test_wrong_use_is_told_before_any_training(train, files, arguments, words):
    assert words in train(f"train.parquet --out m.rk {arguments}", code=2)


def test_files_must_be_named(train):
    assert "name the data set TRAIN" in train("--out m.rk", code=2)
    assert "name a model file --out" in train("train.txt", code=2)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("absent.txt", "absent.txt: there is no such file"),
        ("nan.txt", "nan.txt:1:1: 'nan' is not a label"),
        ("train.parquet --valid empty.txt", "empty.txt: the file is empty"),
        ("train.parquet --valid six.txt", "six.txt: has labels above 4"),
        ("train.parquet --valid six.txt --top-grade 6", "features '2', '3', '4'"),
        ("six.txt --measure 'ERR(top_grade=4)'", "label 6, above the top grade 4"),
        ("train.parquet --valid zero.txt", "no query of the validation set 'zero' counts"),
        ("train.parquet --base absent.rk", "absent.rk: there is no such file"),
        ("train.parquet --base nan.txt", "nan.txt: is too short for a model file"),
        ("train.parquet --out absent/m.rk", "absent: there is no such folder"),
        ("train.parquet --out folder", "folder: this is a directory"),
    ],
)
def test_wrong_data_are_named(train, files, arguments, words):
    Path("nan.txt").write_text("nan qid:1 1:3\n1 qid:1 1:2\n")
    Path("six.txt").write_text("6 qid:1 1:3\n1 qid:1 1:2\n")
    Path("zero.txt").write_text("0 qid:1 1:3 5:1\n0 qid:1 1:2\n")
    Path("empty.txt").write_text("")
    Path("folder").mkdir()
    assert words in train(f"--out m.rk {arguments}", code=1)
    assert not list(Path().glob("m.rk*"))


@pytest.mark.parametrize(
    ("text", "words", "code"),
    [
        ("num_leaves = 3", "there is no key 'num_leaves'; it is called 'n_leaves' here", 2),
        ("batch_size = 3", "it is called 'queries_per_step' here, and LambdaMART has none", 2),
        ("ranker = 'LambdaRank'\nhidden = [5, 0]", "hidden must be a whole number from 0", 2),
        ("ranker = 'LambdaRank'\nhidden = '5'", "hidden must be a whole number from 0", 2),
        ("n_leafs = 3", "there is no key 'n_leafs'; did you mean 'n_leaves'?", 2),
        ("[trees]\nn_leaves = 3", "there is no key 'trees'", 2),
        ("loss = 'squared'", "LambdaMART has no loss; MART can have it", 2),
        ("ranker = 'Random'", "ranker must be one of 'LambdaMART', 'MART', 'McRank'", 2),
        ("n_leaves = 'many'", "n_leaves must be a whole number from 2 to", 2),
        ("n_leaves = true", "n_leaves must be a whole number from 2 to", 2),
        ("measure = 3", "measure must be a text; got 3", 2),
        ("valid = 'v.txt'", "valid must be a list of texts; got 'v.txt'", 2),
        ("random_state = 'none'", "random_state must be a whole number of at least 0", 2),
        ("n_leaves = \n", "is no TOML file: Invalid value (at line 1", 1),
        ("\udcff", "is no TOML file", 1),
    ],
)
def test_wrong_configurations_are_told_by_file_and_key(train, text, words, code):
    Path("my.toml").write_bytes(text.encode("utf-8", "surrogateescape"))
    sentence = train("t.txt --out m.rk --config my.toml", code=code)
    assert sentence.startswith("Error: my.toml: ")
    assert words in sentence


def test_an_absent_configuration_is_named(train):
    assert "absent.toml: there is no such file" in train("--config absent.toml", code=1)


def test_a_training_file_that_lacks_the_last_features(train):
    Path("narrow.txt").write_text("1 qid:1 1:0.5\n0 qid:1 1:0.1\n")
    Path("wide.txt").write_text("1 qid:1 1:0.5 2:0.5\n0 qid:1 1:0.1\n")
    said = train("narrow.txt --valid wide.txt --out m.rk", code=1)
    assert (
        "narrow.txt: lacks the features '2', which wide.txt has; if they are 0 everywhere and were "
        "left out, add --n-features 2"
    ) in said


def test_upper_and_lower_case_are_the_same(train):
    printed = train("--ranker lambdamart --normalise Distance --preset Paper --print-config")
    values = tomllib.loads(printed)
    assert (values["ranker"], values["normalise"]) == ("LambdaMART", "distance")
    assert (
        tomllib.loads(train("--ranker LAMBDARANK --optimiser SGD --print-config"))["optimiser"]
        == "sgd"
    )
    assert "--normalise must be one of" in train("--normalise Distances --print-config", code=2)
    # A file is written once and read by other programs, too: it has one spelling.
    Path("my.toml").write_text('ranker = "lambdamart"')
    assert "must be one of" in train("--config my.toml --print-config", code=2)


def test_flags_override_a_file_both_ways(train):
    Path("my.toml").write_text("group = true\nno_comments = true\nsymmetric = true\n")
    said = "--config my.toml --no-group --comments --no-symmetric --print-config"
    values = tomllib.loads(train(said))
    assert not any(values[name] for name in ("group", "no_comments", "symmetric"))


def test_help_shows_flags_without_values(train):
    lines = train("--help").splitlines()
    shown = [line for line in lines if "--diagnose" in line or "--no-symmetric" in line]
    assert len(shown) == 2
    assert not any("<bool>" in line for line in shown)


def test_changed_data_are_told(train, files, capsys):
    train(f"train.parquet --valid valid.parquet --out m.rk {SMALL}")
    train("--config m.rk.toml")
    assert "warning" not in capsys.readouterr().err
    data = rk.load("valid.parquet")
    rk.save(data.replace(y=data.top_grade - data.y), "valid.parquet")
    with pytest.raises(SystemExit):
        main(["train", "--config", "m.rk.toml"])
    said = capsys.readouterr().err
    assert "warning: the validation data 'valid' are not those of the configuration" in said
    assert "training data" not in said
    # They are those of this training now.
    train("--config m.rk.toml")
    assert "warning" not in capsys.readouterr().err


def test_inspect_shows_where_a_model_comes_from(train, files, call):
    train(f"train.parquet --out m.rk {SMALL}")
    values = json.loads(call("inspect", "m.rk", "--json"))
    assert values["fingerprint"] == fingerprint(rk.load("train.parquet"))
    assert (values["queries"], values["documents"]) == (20, 20 * 50)
    assert values["rankinite"] == rk.__version__
    printed = call("inspect", "m.rk")
    assert f"Fingerprint of the training data: {values['fingerprint'][:16]}\n" in printed
    rows = [line.split() for line in printed.splitlines()]
    assert ["Training", "queries", "20"] in rows
    assert ["Trained", "by", "rankinite", rk.__version__] in rows
    Path("m.rk.toml").write_text("not = [ TOML")
    assert json.loads(call("inspect", "m.rk", "--json"))["fingerprint"] is None


def test_the_top_grade_is_told_once_and_not_if_it_is_known(train, call, capsys):
    for name, labels in (("a.txt", "432"), ("b.txt", "310")):
        lines = [f"{label} qid:1 1:{k}" for k, label in enumerate(labels)]
        Path(name).write_text("\n".join(lines) + "\n")

    def notes(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit):
            main([*arguments])
        return capsys.readouterr().err.count("top grade")

    assert notes("data", "describe", "a.txt", "b.txt") == 1
    assert notes("data", "describe", "a.txt", "b.txt", "--top-grade", "4") == 0
    rk.LambdaMART(n_trees=1, n_leaves=2).fit(rk.load("a.txt")).save("m.rk")
    assert notes("predict", "m.rk", "a.txt") == 0
    assert notes("data", "convert", "a.txt", "a.parquet") == 1
    assert notes("data", "describe", "a.parquet") == 0
