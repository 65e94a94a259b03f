"""Model files: equal scores and bytes, and nothing but what was written is read."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.container import Content, read_container, write_container
from rankinite.models import RANKERS
from rankinite.rankers.model_file import plain
from tests.rankers.cases import (
    SMALL,
    SMALL_NET,
    TEST,
    TRAIN,
    VALID,
    background,
    bytes_of,
    every_case,
    every_ranker,
)

MODEL = Path("model.rk")


def refused(data: bytes | None = None) -> str:
    """Return the sentence that a file is refused with."""
    if data is not None:
        MODEL.write_bytes(data)
    with pytest.raises(rk.ModelFileError) as caught:
        rk.load_model(MODEL)
    message = str(caught.value)
    assert message.startswith("model.rk: ")
    assert len(message) < 800
    return message


@every_case
def test_saved_and_loaded(case):
    model = case.fit(valid=VALID, changes={"valid_measure": ["NDCG@5", "ERR"]})
    model.save(MODEL)
    again = rk.load_model(MODEL)
    assert type(again) is type(model)
    assert again.is_fitted
    np.testing.assert_array_equal(case.predict(again), case.predict(model))
    assert bytes_of(again) == MODEL.read_bytes()
    for name in ("history_", "best_round_", "n_rounds_", "feature_names_", "top_grade_", "seed_"):
        assert getattr(again, name) == getattr(model, name)
    for name in ("n_queries_", "n_docs_", "version_"):
        assert getattr(again, name) == getattr(model, name) is not None
    assert again.importances() == model.importances()
    if not case.is_net:
        np.testing.assert_array_equal(case.staged(again)[0], case.staged(model)[0])
        assert again.importances("count") == model.importances("count")


@every_case
def test_a_loaded_ranker_can_be_fitted_again(case):
    model = case.fit()
    model.save(MODEL)
    again = rk.load_model(MODEL)
    for name, value in model.get_params(deep=False).items():
        if name != "base":
            assert str(plain(getattr(again, name))) == str(plain(value))
    if hasattr(getattr(model, "measure", None), "prepare"):
        return  # of an objective that was given as a value the file has the text
    if case.base == "scores":
        again.set_params(base=model.base)
    assert bytes_of(again.fit(TRAIN)) == MODEL.read_bytes()


def test_an_objective_of_ones_own_has_no_address_in_the_file():
    class Own:
        def prepare(self, targets):
            from rankinite.objectives.pairwise import RankNet

            return RankNet().prepare(targets)

    models = [rk.LambdaMART(Own(), **SMALL).fit(TRAIN) for _ in range(2)]
    assert bytes_of(models[0]) == bytes_of(models[1])
    assert rk.load_model("bytes.rk").measure == "Own"


def test_a_file_tells_no_time_and_no_place():
    text = bytes_of(rk.LambdaMART(**SMALL).fit(TRAIN))
    for word in (str(Path.cwd()), str(Path.home()), "thread", "host"):
        assert word.encode() not in text


def test_an_old_file_stays_if_the_new_one_fails():
    background().save(MODEL)
    before = MODEL.read_bytes()
    with pytest.raises(rk.UsageError):
        rk.MART().save(MODEL)
    assert MODEL.read_bytes() == before


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> bytes:
    """Return the bytes of a model with all that a file can hold: a base, and a history."""
    path = tmp_path_factory.mktemp("model") / "small.rk"
    tiny = {"n_trees": 1, "n_leaves": 2, "min_docs_in_leaf": 2}
    data = TRAIN.select_features(["1"])
    base = rk.MART(**tiny).fit(data)
    rk.LambdaMART(**tiny, base=base).fit(data, valid=data).save(path)
    return path.read_bytes()


def test_every_changed_byte_is_refused(small):
    for place in range(len(small)):
        damaged = bytearray(small)
        damaged[place] ^= 1 << place % 8
        refused(bytes(damaged))


def test_every_other_value_of_some_bytes_is_refused(small):
    for place in np.random.default_rng(0).integers(0, len(small), 3):
        for value in set(range(256)) - {small[place]}:
            refused(small[:place] + bytes([value]) + small[place + 1 :])


def test_every_cut_and_every_addition_is_refused(small):
    for length in range(len(small)):
        refused(small[:length])
    for more in (b"\0", b"PK", small):
        refused(small + more)
        refused(more + small)
    MODEL.write_bytes(small)
    assert isinstance(rk.load_model(MODEL), rk.LambdaMART)


def zip_of(**entries: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return buffer.getvalue()


def digested(data: bytes) -> bytes:
    """Return a zip whose comment is the checksum of what stands before, as ours."""
    body = data[:-2] + (64).to_bytes(2, "little")
    return body + hashlib.sha256(body).hexdigest().encode()


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "is too short for a model file; it may be cut off"),
        (b"tree\nversion=v4\nnum_class=1\n" * 9, "is cut off: it has no line 'end of trees'"),
        (pickle.dumps(rk.MART(**SMALL)) + bytes(99), "is in a pickle, which could run any program"),
        (b"text" * 99, "is not a model file, or it is damaged"),
        (zip_of(a=b"text" * 30), "is not a model file, or it is damaged"),
        (digested(zip_of(a=b"text")), "is a zip file, but not a model file"),
        (digested(zip_of(**{"manifest.json": b"{}"})), "is a zip file, but not a model file"),
    ],
)
def test_other_files_are_refused(data, sentence):
    assert sentence in refused(data)


def test_no_such_file_and_folders():
    assert refused() == f"{MODEL}: there is no such file"
    MODEL.mkdir()
    assert "cannot be read as a model file: Is a directory" in refused()


def test_a_pickle_is_not_even_opened():
    class Harmful:
        def __reduce__(self):
            return Path("harm").mkdir, ()

    MODEL.write_bytes(pickle.dumps(Harmful()) + bytes(100))
    refused()
    assert not Path("harm").exists()


def test_a_checkpoint_is_no_model():
    rk.LambdaMART(**SMALL).fit(TRAIN, checkpoint=MODEL)
    assert (
        "is a checkpoint, no model; the same training with the same checkpoint resumes" in refused()
    )


@pytest.fixture
def content() -> Content:
    """Return what a model file holds, to be written again with a checksum that fits."""
    rk.LambdaMART(**SMALL, base=background()).fit(TRAIN, valid=VALID).save(MODEL)
    return read_container(MODEL)


ABSENT = object()
MANIFESTS = [
    ("class", "Forest", "holds a 'Forest', which this version of rankinite does not know; it know"),
    ("class", ["MART"], "which this version of rankinite does not know"),
    ("class", ABSENT, "holds a 'None', which this version of rankinite does not know"),
    ("class", "McRank", "not understood: McRank: there is no parameter"),
    ("parameters", ABSENT, "the manifest of the file has no 'parameters'"),
    ("parameters", [], "not understood: 'parameters' is []"),
    ("parameters", {"eval": "x"}, "there is no parameter 'eval'"),
    ("parameters", {"n_trees": "many"}, "n_trees must be a whole number"),
    ("parameters", {"learning_rate": None}, "learning_rate must be a finite number"),
    ("parameters", {"random_state": None}, "random_state must be a whole number"),
    ("parameters", {"self": 1}, "there is no parameter 'self'"),
    ("feature_names", ABSENT, "has no 'feature_names'"),
    ("feature_names", "1234", "'feature_names' is '1234'"),
    ("feature_names", [1, 2, 3, 4], "'feature_names' is [1, 2, 3, 4]"),
    ("feature_names", [], "'feature_names' is []"),
    ("feature_names", ["1", "1", "3", "4"], "'feature_names' is ['1', '1'"),
    ("feature_names", ["1"], "is no tree"),
    ("feature_names", ["a", "b", "c", "d"], "the base in the file does not fit the ranker"),
    ("top_grade", ABSENT, "has no 'top_grade'"),
    ("top_grade", "4", "'top_grade' is '4'"),
    ("top_grade", -1, "'top_grade' is -1"),
    ("top_grade", 2**60 + 1, "'top_grade' is 1152921504606846977"),
    ("based_on_scores", True, "the base in the file does not fit the ranker"),
    ("n_queries", 0, "'n_queries' is 0"),
    ("n_docs", "many", "'n_docs' is 'many'"),
    ("rankinite", 7, "'rankinite' is 7"),
    ("n_rounds", ABSENT, "has no 'n_rounds'"),
    ("n_rounds", 6.5, "'n_rounds' is 6.5"),
    ("n_rounds", True, "'n_rounds' is True"),
    ("n_rounds", 10**30, "'n_rounds' is"),
    ("history", ABSENT, "has no 'history'"),
    ("history", {}, "'history' is {}"),
    ("history", [0.5], "'history' is [0.5]"),
    ("history", [{"set": "valid", "measure": "NDCG"}], "'history' is"),
    ("history", [{"set": 1, "measure": "NDCG", "values": [0.5] * 6}], "'history' is"),
    ("history", [{"set": "valid", "measure": "NDCG", "values": "good"}], "'history' is"),
    ("history", [{"set": "valid", "measure": "NDCG", "values": [None] * 6}], "'history' is"),
    ("history", [{"set": "valid", "measure": "NDCG", "values": [0.5]}], "'history' is"),
    ("based_on_scores", ABSENT, "has no 'based_on_scores'"),
    ("based_on_scores", "no", "'based_on_scores' is 'no'"),
    ("base", [], "its base is no ranker"),
    ("base", {}, "holds a 'None'"),
    ("base", {"class": "checkpoint"}, "is a checkpoint, no model"),
]


@pytest.mark.parametrize(("name", "value", "sentence"), MANIFESTS)
def test_a_forged_manifest_is_refused(content, name, value, sentence):
    manifest = {k: v for k, v in content.manifest.items() if k != name}
    if value is not ABSENT:
        manifest[name] = value
    write_container(MODEL, Content(manifest, content.arrays))
    assert sentence in refused()


def test_a_forged_top_grade_does_not_fit_the_classes():
    rk.McRank(**SMALL | {"n_trees": 1}).fit(TRAIN).save(MODEL)
    content = read_container(MODEL)
    for top_grade in (3, 4.5e300, 5):
        write_container(
            MODEL, Content({**content.manifest, "top_grade": top_grade}, content.arrays)
        )
        assert "the trees of the file are not those of a McRank" in refused()


def test_no_number_is_no_number(content):
    """JSON of Python knows NaN; we do not write it and do not take it."""
    text = json.dumps({"format": "rankinite model", "version": 1, **content.manifest})
    assert '"top_grade": 4.0' in text
    for forged in ("NaN", "Infinity", "-Infinity", "1e999"):
        manifest = text.replace('"top_grade": 4.0', f'"top_grade": {forged}', 1)
        arrays = {f"{name}.npy": npy(array) for name, array in content.arrays.items()}
        refused(digested(zip_of(**{"manifest.json": manifest.encode()}, **arrays)))


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def changed(name, change):
    def forge(arrays):
        arrays[name] = change(arrays[name].copy())

    return forge


def put(place, value):
    def change(array):
        array[place] = value
        return array

    return change


ARRAYS = {
    "no features": lambda arrays: arrays.pop("feature"),
    "no values": lambda arrays: arrays.pop("value"),
    "no leaves": lambda arrays: arrays.pop("n_leaves"),
    "no start": lambda arrays: arrays.pop("start"),
    "no values of the base": lambda arrays: arrays.pop("base.value"),
    "feature too large": changed("feature", put(0, 4)),
    "feature of the base": changed("base.feature", put(0, 1 << 30)),
    "feature below zero": changed("feature", put(0, -1)),
    "feature of another kind": changed("feature", lambda a: a.astype(np.int64)),
    "feature in two dimensions": changed("feature", lambda a: a[:, None]),
    "one feature fewer": changed("feature", lambda a: a[:-1]),
    "threshold is none": changed("threshold", put(0, np.nan)),
    "leaf is none": changed("value", put(0, np.nan)),
    "leaf is infinite": changed("value", put(0, np.inf)),
    "start is none": changed("start", put(0, np.nan)),
    "two starts": changed("start", lambda a: np.zeros(2)),
    "no start at all": changed("start", lambda a: a[:0]),
    "more leaves": changed("n_leaves", put(0, 1 << 40)),
    "fewer leaves": changed("n_leaves", put(0, 1)),
    "no leaf": changed("n_leaves", put(0, 0)),
    "leaves below zero": changed("n_leaves", put(0, -5)),
    "leaves overflow": changed("n_leaves", lambda a: np.full_like(a, 1 << 62)),
    "first leaf elsewhere": changed("first", put(0, 3)),
    "right leaf elsewhere": changed("right", put(0, 60_000)),
    "right before left": changed("right", put(0, 0)),
    "texts": changed("value", lambda a: a.astype(str)),
}


@pytest.mark.parametrize("forge", ARRAYS.values(), ids=ARRAYS)
def test_forged_trees_are_refused(content, forge):
    arrays = dict(content.arrays)
    forge(arrays)
    write_container(MODEL, Content(content.manifest, arrays))
    refused()


@pytest.fixture
def net_content() -> Content:
    """Return what the file of a net holds."""
    rk.LambdaRank(**SMALL_NET).fit(TRAIN, valid=VALID).save(MODEL)
    return read_container(MODEL)


NETS = {
    "no weights": lambda arrays: arrays.pop("weights"),
    "no inputs": lambda arrays: arrays.pop("features"),
    "no layers": lambda arrays: arrays.pop("hidden"),
    "no start": lambda arrays: arrays.pop("start"),
    "no epoch": lambda arrays: arrays.pop("best_epoch"),
    "one weight fewer": changed("weights", lambda a: a[:-1]),
    "weight is none": changed("weights", put(0, np.nan)),
    "weight is infinite": changed("weights", put(0, np.inf)),
    "weights of another kind": changed("weights", lambda a: a.astype(np.float64)),
    "weights in two dimensions": changed("weights", lambda a: a[:, None]),
    "scale is none": changed("scales", put(0, np.nan)),
    "mean is infinite": changed("means", put(0, np.inf)),
    "one mean fewer": changed("means", lambda a: a[:-1]),
    "feature too large": changed("features", put(3, 4)),
    "feature below zero": changed("features", put(0, -1)),
    "feature twice": changed("features", put(0, 1)),
    "other layers": changed("hidden", put(0, 4)),
    "no units": changed("hidden", put(0, 0)),
    "units without end": changed("hidden", put(0, 1 << 40)),
    "start is none": changed("start", put(0, np.nan)),
    "two starts": changed("start", lambda a: np.zeros(2)),
    "an epoch that never was": changed("best_epoch", put(0, 7)),
    "an epoch before all": changed("best_epoch", put(0, -1)),
    "texts": changed("weights", lambda a: a.astype(str)),
}


@pytest.mark.parametrize("forge", NETS.values(), ids=NETS)
def test_forged_nets_are_refused(net_content, forge):
    arrays = dict(net_content.arrays)
    forge(arrays)
    write_container(MODEL, Content(net_content.manifest, arrays))
    refused()


def test_a_net_has_the_layers_that_its_parameters_say(net_content):
    manifest = copy.deepcopy(dict(net_content.manifest))
    for hidden in (0, 4, [3, 3], "3", [0], None):
        manifest["parameters"]["hidden"] = hidden
        write_container(MODEL, Content(manifest, net_content.arrays))
        assert "other layers" in refused() or "hidden must be" in refused()


def test_the_best_epoch_is_the_same_wherever_it_is(net_content):
    best = net_content.manifest["best_round"]
    manifest = {**net_content.manifest, "best_round": best - 1 if best else 1}
    write_container(MODEL, Content(manifest, net_content.arrays))
    assert "in two places which epoch was best" in refused()


def test_trees_and_nets_are_not_mistaken_for_each_other(content, net_content):
    for first, second in ((content, net_content), (net_content, content)):
        write_container(MODEL, Content(first.manifest, second.arrays))
        refused()
    write_container(MODEL, Content({**content.manifest, "class": "LambdaRank"}, content.arrays))
    assert "LambdaRank: there is no parameter" in refused()


EXTREMES = {
    "leaf": ("value", put(0, 1e200)),
    "leaf that is the largest": ("value", put(0, -1.7e308)),
    "start": ("start", put(0, 1e308)),
    "gain": ("gain", put(0, 1e300)),
    "documents": ("leaf_docs", put(0, -1)),
    "documents without end": ("docs", put(0, 1 << 62)),
}


@pytest.mark.parametrize(("name", "change"), EXTREMES.values(), ids=EXTREMES)
def test_numbers_of_trees_that_no_training_comes_to(content, name, change):
    arrays = {**content.arrays, name: change(content.arrays[name].copy())}
    write_container(MODEL, Content(content.manifest, arrays))
    assert f"{name!r} in the file has numbers that are not from" in refused()


def test_weights_of_nets_are_so_small_that_no_score_is_infinite(net_content):
    weights = net_content.arrays["weights"]
    for forged in (put(0, 1e16)(weights.copy()), np.full_like(weights, 9e14) * 0 + 2e15):
        write_container(
            MODEL, Content(net_content.manifest, {**net_content.arrays, "weights": forged})
        )
        assert "scores could be infinite" in refused()
    # Three layers, whose weights are small each for itself.
    rk.LambdaRank(**SMALL_NET | {"hidden": (3, 3)}).fit(TRAIN).save(MODEL)
    deep = read_container(MODEL)
    arrays = {**deep.arrays, "weights": np.full_like(deep.arrays["weights"], 9e14)}
    write_container(MODEL, Content(deep.manifest, arrays))
    assert "scores could be infinite" in refused()


@pytest.mark.parametrize("kind", ["<U3", "<M8[s]", "|b1", "<c16", "<i4", "V8"])
@pytest.mark.parametrize("name", ["start", "best_epoch"])
def test_the_types_of_single_numbers(net_content, name, kind):
    array = np.zeros(1, kind)
    write_container(MODEL, Content(net_content.manifest, {**net_content.arrays, name: array}))
    refused()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("measure", {"NDCG": 1}),
        ("measure", [[[[["NDCG"]]]]]),
        ("base", "MART"),
        ("base", [0.5]),
        ("preset", "paper"),
    ],
)
def test_parameters_that_no_file_has(content, name, value):
    manifest = copy.deepcopy(dict(content.manifest))
    manifest["parameters"][name] = value
    write_container(MODEL, Content(manifest, content.arrays))
    assert f"{name!r} is " in refused()


def test_parameters_nested_without_end(content):
    nested: list = []
    for _ in range(200):
        nested = [nested]
    manifest = {**content.manifest, "parameters": {"measure": nested}}
    write_container(MODEL, Content(manifest, content.arrays))
    refused()


def test_a_history_has_every_measure_once_and_no_curve_without_values(content):
    manifest = dict(content.manifest)
    write_container(MODEL, Content(manifest | {"history": manifest["history"] * 2}, content.arrays))
    assert "has the values of a measure twice" in refused()
    (curve,) = manifest["history"]
    manifest |= {"history": [curve | {"values": []}], "n_rounds": 0, "best_round": 0}
    write_container(MODEL, Content(manifest, content.arrays))
    assert "'history' is" in refused()


def test_a_value_without_end_is_not_part_of_the_message(content):
    for manifest in ({"class": "x" * 10_000}, {"parameters": {"x" * 10_000: 1}}):
        write_container(MODEL, Content({**content.manifest, **manifest}, content.arrays))
        assert len(refused()) < 700


def test_bases_of_bases_are_shown_and_saved(content):
    """Each asks the one inside once; twice would be 2^60 times for the last."""
    manifest, arrays = content.manifest["base"], dict(content.arrays)
    arrays = {n.removeprefix("base."): a for n, a in arrays.items() if n.startswith("base.")}
    inner = dict(arrays)
    for _ in range(60):
        manifest = {**content.manifest["base"], "base": manifest}
        inner = {**arrays, **{f"base.{name}": array for name, array in inner.items()}}
    write_container(MODEL, Content(manifest, inner))
    model = rk.load_model(MODEL)
    assert repr(model).count("base=MART(") > 2
    assert bytes_of(model) == MODEL.read_bytes()
    assert np.isfinite(model.predict(TEST)).all()


def test_more_trees_than_rounds(content):
    manifest = copy.deepcopy(dict(content.manifest))
    manifest |= {"n_rounds": 0, "best_round": 0, "history": []}
    write_container(MODEL, Content(manifest, content.arrays))
    assert "has more trees than its manifest says were grown" in refused()


def test_a_base_within_mcrank_is_refused(content):
    rk.McRank(**SMALL | {"n_trees": 1}).fit(TRAIN).save(MODEL)
    outer = read_container(MODEL)
    inner = {k: v for k, v in content.arrays.items() if k.startswith("base.")}
    manifest = {**outer.manifest, "base": content.manifest["base"]}
    write_container(MODEL, Content(manifest, {**outer.arrays, **inner}))
    assert "the base in the file does not fit the ranker that contains it" in refused()
    write_container(MODEL, Content({**outer.manifest, "based_on_scores": True}, outer.arrays))
    assert "the base in the file does not fit the ranker that contains it" in refused()


def test_bases_without_end(content):
    manifest = dict(content.manifest)
    for _ in range(150):
        manifest = {**content.manifest, "base": manifest}
    write_container(MODEL, Content(manifest, content.arrays))
    refused()


@every_ranker
def test_numbers_flipped_under_a_fitting_checksum_never_surprise(case):
    """Whatever the arrays hold, a file gives a ranker that predicts, or a `ModelFileError`."""
    case.fit(changes={"rounds": 2}).save(MODEL)
    content = read_container(MODEL)
    rng = np.random.default_rng(3)
    outcomes = set()
    for _ in range(150):
        arrays = {name: array.copy() for name, array in content.arrays.items()}
        name = rng.choice(sorted(arrays))
        raw = arrays[name].view(np.uint8)
        raw[rng.integers(len(raw))] ^= np.uint8(1 << rng.integers(8))
        write_container(MODEL, Content(content.manifest, arrays))
        try:
            scores = rk.load_model(MODEL).predict(TEST)
            outcomes.add("read")
            assert scores.shape == (TEST.n_docs,)
        except rk.ModelFileError:
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_the_table_is_closed():
    assert set(RANKERS) == {"LambdaMART", "MART", "McRank", "LambdaRank"}
    assert all(RANKERS[name].__name__ == name for name in RANKERS)
