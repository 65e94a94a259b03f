"""A fit that was interrupted resumes to the same model, byte for byte."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.container import Content, read_container, write_container
from tests import processes
from tests.rankers.cases import (
    CASES,
    SMALL,
    TEST,
    TRAIN,
    VALID,
    background,
    bytes_of,
    copied,
    every_case,
)

KEPT = Path("fit.ckpt")
PATIENT = {"patience": None}


def interrupt_after(k):
    def callback(done):
        if done.number == k:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("with_valid", [False, True], ids=["", "valid"])
@every_case
def test_an_interrupted_fit_resumes_to_the_same_bytes(case, with_valid):
    options = {"valid": VALID} if with_valid else {}
    undisturbed = bytes_of(case.fit(**options))
    for k in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            case.fit(checkpoint=KEPT, callbacks=[interrupt_after(k)], **options)
        assert bytes_of(case.fit(checkpoint=KEPT, **options)) == undisturbed
        assert bytes_of(case.fit(checkpoint=KEPT, **options)) == undisturbed
        KEPT.unlink()


def test_many_interruptions():
    case = CASES["NDCG"]
    for k in range(1, 6):
        with pytest.raises(KeyboardInterrupt):
            case.fit(checkpoint=KEPT, callbacks=[interrupt_after(k)])
    assert bytes_of(case.fit(checkpoint=KEPT)) == bytes_of(case.fit())


def test_an_interrupt_inside_a_round_loses_that_round_only(monkeypatch):
    from rankinite.rankers.boosting import TreeLearner

    case = CASES["McRank"]
    undisturbed = bytes_of(case.fit(valid=VALID))
    grow, calls = TreeLearner._grow, []

    def interrupted(self, number, *what):
        calls.append(number)
        if len(calls) == 8:  # the third of five trees of the second round
            raise KeyboardInterrupt
        return grow(self, number, *what)

    with monkeypatch.context() as patched:
        patched.setattr(TreeLearner, "_grow", interrupted)
        with pytest.raises(KeyboardInterrupt):
            case.fit(valid=VALID, checkpoint=KEPT)
    assert bytes_of(case.fit(valid=VALID, checkpoint=KEPT)) == undisturbed


@every_case
def test_what_was_grown_before_an_interrupt_predicts(case):
    model = case.new()
    if case.base == "scores":
        model.set_params(base=case.scores(TRAIN))
    with pytest.raises(KeyboardInterrupt):
        model.fit(TRAIN, callbacks=[interrupt_after(2)])
    assert model.n_rounds_ == 2
    if case.is_net:  # how far a net moves in an epoch depends on how many there are
        fewer = case.fit(callbacks=[lambda done: done.number == 2])
    else:
        fewer = case.fit(changes={"n_trees": 2})
    assert model.best_round_ == fewer.best_round_
    np.testing.assert_array_equal(case.predict(model), case.predict(fewer))
    assert bytes_of(model)


@pytest.mark.parametrize("name", ["NDCG", "squared", "McRank"])
def test_more_trees_resume_a_finished_fit(name):
    case = CASES[name]
    case.fit(checkpoint=KEPT)
    grown = []
    more = case.fit(checkpoint=KEPT, changes={"n_trees": 9}, callbacks=[grown.append])
    assert len(grown) == 9 - case.new().n_trees
    assert bytes_of(more) == bytes_of(case.fit(changes={"n_trees": 9}))


def test_fewer_trees_are_a_part_and_leave_the_file_alone():
    case = CASES["NDCG"]
    case.fit(checkpoint=KEPT)
    before = KEPT.read_bytes()
    fewer = case.fit(checkpoint=KEPT, changes={"n_trees": 2})
    assert bytes_of(fewer) == bytes_of(case.fit(changes={"n_trees": 2}))
    assert KEPT.read_bytes() == before


def test_another_patience_stops_where_it_would_have():
    case = CASES["NDCG"]
    hasty = {"n_trees": 30, "learning_rate": 0.8, "n_leaves": 8}
    case.fit(valid=VALID, checkpoint=KEPT, changes={**hasty, **PATIENT})
    for patience in (1, 3):
        changes = {**hasty, "patience": patience}
        resumed = case.fit(valid=VALID, checkpoint=KEPT, changes=changes)
        assert resumed.n_rounds_ < 30
        assert bytes_of(resumed) == bytes_of(case.fit(valid=VALID, changes=changes))


def test_the_first_set_and_measure_still_decide():
    changes = {"n_trees": 30, "learning_rate": 0.5, "valid_measure": ["NDCG@5", "ERR"], **PATIENT}
    options = {"valid": {"near": VALID, "far": TEST}, "changes": changes}
    case = CASES["NDCG"]
    undisturbed = case.fit(**options)
    with pytest.raises(KeyboardInterrupt):
        case.fit(checkpoint=KEPT, callbacks=[interrupt_after(20)], **options)
    resumed = case.fit(checkpoint=KEPT, **options)
    assert resumed.n_trees_ == int(np.argmax(resumed.history_["near"]["NDCG@5"])) + 1
    assert bytes_of(resumed) == bytes_of(undisturbed)
    assert list(rk.load_model("bytes.rk").history_) == ["near", "far"]
    assert list(rk.load_model("bytes.rk").history_["far"]) == ["NDCG@5", "ERR"]


SCRIPT = """
import json
import rankinite as rk
from rankinite.rankers import checkpoint

checkpoint.SECONDS_BETWEEN = 0.0
train = rk.polynomials(12, part="train", n_features=4, n_docs=8)
valid = rk.polynomials(6, part="valid", n_features=4, n_docs=8)
kind, stops = sys.argv[1], sys.argv[2] == "stops"
params = json.loads(sys.argv[3])

def wait(done):
    if stops and done.number >= 3:
        pause("grown")

model = getattr(rk, kind)(**params)
model.fit(train, valid=valid, checkpoint="fit.ckpt", callbacks=[wait])
model.save("model.rk")
"""


TREES = {"n_trees": 6, "n_leaves": 4, "min_docs_in_leaf": 2, "random_state": 3}
NET = {"n_epochs": 6, "optimiser": "sgd", "patience": 1, "random_state": 3}


@pytest.mark.parametrize(
    ("kind", "params"), [("LambdaMART", TREES), ("McRank", TREES), ("LambdaRank", NET)]
)
def test_a_killed_fit_resumes_to_the_same_bytes(kind, params):
    text = json.dumps(params)
    with processes.start(SCRIPT, kind, "stops", text) as process:
        processes.wait_for("grown", process)
        code, _, _ = processes.signal_and_end(process, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert not Path("model.rk").exists()
    with processes.start(SCRIPT, kind, "goes on", text) as process:
        _, errors = process.communicate(timeout=processes.LIMIT)
        assert process.returncode == 0, errors
    model = getattr(rk, kind)(**params).fit(TRAIN, valid=VALID)
    assert Path("model.rk").read_bytes() == bytes_of(model)


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_in_a_terminal_keeps_what_was_grown():
    with processes.start(SCRIPT, "MART", "stops", json.dumps(TREES)) as process:
        processes.wait_for("grown", process)
        code, _, _ = processes.signal_and_end(process, signal.SIGINT)
    assert code != 0
    assert read_container(KEPT).arrays["n_leaves"].shape == (3,)


def made(changes):
    """Fit the base of a change only now, not when tests are collected."""
    return {name: value() if callable(value) else value for name, value in changes.items()}


def fit(**changes):
    options = {"data": TRAIN, "valid": VALID, "query_weight": None} | changes
    params = {
        name: options.pop(name) for name in list(options) if name in rk.LambdaMART().get_params()
    }
    data = options.pop("data")
    return rk.LambdaMART(**SMALL | params).fit(data, checkpoint=KEPT, **options)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_leaves": 5}, "is the checkpoint of a fit with another n_leaves; delete it, or name"),
        ({"measure": "ERR", "learning_rate": 0.1}, "with another learning_rate, measure;"),
        ({"random_state": 9}, "with another random_state"),
        ({"valid_measure": "MAP"}, "with another valid_measure"),
        ({"data": TRAIN[1:]}, "is the checkpoint of a fit to other data or validation sets; del"),
        ({"data": copied(TRAIN, y=TRAIN.y[::-1])}, "to other data"),
        ({"data": copied(TRAIN, top_grade=5)}, "to other data"),
        ({"query_weight": np.arange(1.0, 13.0)}, "to other data"),
        ({"base": background}, "to other data"),
        ({"valid": TEST}, "to other data or validation sets"),
        ({"valid": None}, "to other data or validation sets"),
        ({"valid": {"other": VALID}}, "to other data or validation sets"),
        ({"binned": rk.BinnedData.of(TRAIN, most_bins=3)}, "to other data"),
    ],
)
def test_the_checkpoint_of_another_fit_is_refused(changes, sentence):
    fit()
    before = KEPT.read_bytes()
    with pytest.raises(rk.UsageError) as caught:
        fit(**made(changes))
    assert str(caught.value).startswith("fit.ckpt: ")
    assert sentence in str(caught.value)
    assert KEPT.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_epochs": 7}, "with another n_epochs;"),  # the learning rate depends on it
        ({"patience": 3, "hidden": 4}, "with another hidden, patience;"),
        ({"optimiser": "sgd"}, "with another optimiser;"),
        ({"min_improvement": 0.1}, "with another min_improvement;"),
        ({"queries_per_step": "all"}, "with another queries_per_step;"),
        ({"base": background}, "to other data"),
    ],
)
def test_the_checkpoint_of_another_net_is_refused(changes, sentence):
    case = CASES["net"]
    case.fit(checkpoint=KEPT, valid=VALID)
    before = KEPT.read_bytes()
    with pytest.raises(rk.UsageError, match=r"^fit.ckpt: is the checkpoint of a fit ") as caught:
        case.fit(checkpoint=KEPT, valid=VALID, changes=made(changes))
    assert sentence in str(caught.value)
    assert KEPT.read_bytes() == before


def test_trees_do_not_resume_from_a_net():
    CASES["net"].fit(checkpoint=KEPT)
    with pytest.raises(rk.UsageError, match=r"another .*hidden, .*learning_rate.* n_leaves"):
        CASES["NDCG"].fit(checkpoint=KEPT)


@pytest.mark.parametrize("state", [None, np.random.RandomState(1)])
def test_a_checkpoint_needs_a_seed_that_can_be_drawn_again(state):
    with pytest.raises(rk.UsageError, match="with a checkpoint: random_state must be a whole numb"):
        fit(random_state=state)


def test_checkpoints_that_are_none():
    rk.LambdaMART(**SMALL).fit(TRAIN).save(KEPT)
    model = KEPT.read_bytes()
    with pytest.raises(rk.ModelFileError, match=r"fit.ckpt: is a model, no checkpoint; name anot"):
        fit()
    assert KEPT.read_bytes() == model
    KEPT.write_bytes(model[:-1])
    with pytest.raises(rk.ModelFileError, match="damaged"):
        fit()


@pytest.mark.parametrize("path", ["nowhere/fit.ckpt", "."])
def test_a_checkpoint_that_cannot_be_written_is_refused_at_once(path):
    grown = []
    with pytest.raises(rk.UsageError, match="cannot be written; name a file in a folder"):
        rk.LambdaMART(**SMALL).fit(TRAIN, checkpoint=path, callbacks=[grown.append])
    assert not grown


def test_a_forged_checkpoint_is_refused():
    fit()
    content = read_container(KEPT)
    manifest = dict(content.manifest)
    arrays = dict(content.arrays)
    for forged in (
        Content({k: v for k, v in manifest.items() if k != "history"}, arrays),
        Content(manifest | {"history": []}, arrays),
        Content(manifest | {"history": manifest["history"] * 2}, {**arrays, "value": np.zeros(3)}),
        Content(manifest, {k: v for k, v in arrays.items() if k != "value"}),
        Content(manifest, arrays | {"start": np.zeros(2)}),
        Content(manifest, arrays | {"feature": arrays["feature"] + np.int32(9)}),
    ):
        write_container(KEPT, forged)
        with pytest.raises(rk.ModelFileError, match=r"^fit.ckpt: .*; delete it, or name another"):
            fit()


@pytest.mark.parametrize("name", ["net", "net-sgd"])
def test_a_forged_checkpoint_of_a_net_is_refused(name):
    case = CASES[name]
    case.fit(checkpoint=KEPT)
    content = read_container(KEPT)
    manifest, arrays = dict(content.manifest), dict(content.arrays)
    for forged in (
        Content({k: v for k, v in manifest.items() if k != "history"}, arrays),
        Content(manifest | {"history": []}, arrays),
        Content(manifest, {k: v for k, v in arrays.items() if k != "weights"}),
        Content(manifest, arrays | {"weights": arrays["weights"][:-1]}),
        Content(manifest, arrays | {"weights": arrays["weights"].astype(np.float64)}),
        Content(manifest, arrays | {"first": np.zeros(1, np.float32)}),
        Content(manifest, arrays | {"weights": arrays["weights"] * np.float32(np.nan)}),
        Content(manifest, arrays | {"best_weights": np.full_like(arrays["weights"], np.inf)}),
        Content(manifest, arrays | {"n_steps": np.array([-1])}),
        Content(manifest, arrays | {"numbers": arrays["numbers"] * np.nan}),
        Content(manifest, arrays | {"numbers": arrays["numbers"] + 0.5}),
        Content(manifest, arrays | {"numbers": arrays["numbers"] + 1}),
        Content(manifest, arrays | {"numbers": arrays["numbers"][1:]}),
    ):
        write_container(KEPT, forged)
        with pytest.raises(rk.ModelFileError, match=r"^fit.ckpt: .*; delete it, or name another"):
            case.fit(checkpoint=KEPT)


def test_trees_that_do_not_grow_on_these_data_are_refused():
    """Bins of the fit would be compared with cut points of others."""
    fit()
    content = read_container(KEPT)
    arrays = dict(content.arrays)
    n_features = TRAIN.n_features
    categories = {
        "n_categories": np.full(n_features, -1) + (np.arange(n_features) == 0) * 2,
        "categories": np.float32([1]),
    }
    for changed in (
        {"threshold": arrays["threshold"] + np.float32(0.01)},
        {**categories, "left_sets": np.zeros((0, 32), np.uint8)},
    ):
        write_container(KEPT, Content(content.manifest, arrays | changed))
        with pytest.raises(rk.ModelFileError, match=r"do not grow on|is no tree"):
            fit()


def test_moments_of_what_only_fills_up_rows_are_refused():
    case = CASES["net"]
    case.fit(checkpoint=KEPT)
    content = read_container(KEPT)
    for name in ("weights", "first", "second"):
        array = content.arrays[name].copy()
        array[array == 0] = 1
        write_container(KEPT, Content(content.manifest, {**content.arrays, name: array}))
        with pytest.raises(rk.ModelFileError, match="holds numbers that no fit comes to"):
            case.fit(checkpoint=KEPT)
