"""Validation sets: what they are measured by, when they stop a fit, who hears of it."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.progress import ProgressBar
from rankinite.rankers.early_stopping import EarlyStopping, History, Round
from tests.rankers.cases import (
    CASES,
    SMALL,
    TEST,
    TRAIN,
    VALID,
    bytes_of,
    every_case,
    every_case_of_trees,
    every_net,
)

pytestmark = pytest.mark.usefixtures("one_thread")

# Few documents and large steps: the validation set stops to improve soon.
HASTY = SMALL | {"n_trees": 40, "learning_rate": 0.8, "n_leaves": 8}


@every_case_of_trees
def test_values_are_those_of_evaluate(case):
    measures = ["NDCG@5", "ERR", "MAP"]
    changes = {"valid_measure": measures, "patience": None}
    model = case.fit(valid=VALID, changes=changes)
    whole = case.fit(changes={"patience": None})
    assert model.history_.keys() == {"valid"}
    assert list(model.history_["valid"]) == measures
    for k, scores in enumerate(case.staged(whole, VALID)):
        expected = rk.evaluate(scores, VALID, measures).mean
        found = {measure: curve[k] for measure, curve in model.history_["valid"].items()}
        assert found == expected


@every_net
def test_values_of_nets_are_those_of_evaluate(case):
    """What is kept is the best epoch of those that were done; so it is after any number of them."""
    measures = ["NDCG@5", "ERR", "MAP"]
    for k in range(1, 4):
        stop = [lambda done, k=k: done.number == k]
        model = case.fit(valid=VALID, changes={"valid_measure": measures}, callbacks=stop)
        assert model.history_.keys() == {"valid", "train"} - ({"train"} - model.history_.keys())
        (decides, *_) = model.history_["valid"].values()
        assert model.n_rounds_ == len(decides) == k
        assert model.best_epoch_ == model.kept_rounds_ == int(np.argmax(decides)) + 1
        for name, data in {"valid": VALID, "train": TRAIN}.items():
            found = {m: c[model.best_epoch_ - 1] for m, c in model.history_.get(name, {}).items()}
            expected = rk.evaluate(case.predict(model, data), data, measures).mean
            assert found in ({}, expected)


@every_case_of_trees
def test_the_best_number_of_trees_is_kept(case):
    model = case.fit(valid=VALID, changes={"n_trees": 12, "learning_rate": 0.8, "patience": None})
    curve, *lower = model.history_["valid"].values()
    assert model.n_rounds_ == len(curve) == 12
    if not lower:  # which round tiers choose is tested elsewhere
        assert model.n_trees_ == int(np.argmax(curve)) + 1
    fewer = case.fit(changes={"n_trees": model.n_trees_, "learning_rate": 0.8})
    np.testing.assert_array_equal(case.predict(model), case.predict(fewer))


@pytest.mark.parametrize(("measure", "default"), [("NDCG@3", "NDCG@3"), ("RankNet", "NDCG@10")])
def test_sets_are_measured_by_what_is_trained(measure, default):
    model = rk.LambdaMART(measure, **SMALL).fit(TRAIN, valid=VALID)
    assert list(model.history_["valid"]) == [default]


@pytest.mark.parametrize("patience", [1, 3, 7])
def test_patience(patience):
    endless = rk.LambdaMART(**HASTY, patience=None).fit(TRAIN, valid=VALID)
    (curve,) = endless.history_["valid"].values()
    model = rk.LambdaMART(**HASTY, patience=patience).fit(TRAIN, valid=VALID)
    # By hand: go on until the best value is so many rounds old.
    stop = next(
        n for n in range(1, 41) if n - (int(np.argmax(curve[:n])) + 1) >= patience or n == 40
    )
    assert stop < 40
    assert model.n_rounds_ == stop
    assert model.n_trees_ == int(np.argmax(curve[:stop])) + 1
    assert next(iter(model.history_["valid"].values())) == curve[:stop]


@pytest.mark.parametrize(
    ("curve", "min_improvement", "expected"),
    [
        ([0.1, 0.3, 0.2, 0.4], 0.0, [1, 2, 2, 4]),
        ([0.1, 0.3, 0.2, 0.4], 0.15, [1, 2, 2, 2]),
        # Each gains too little over the best that counted, until one gains enough over that.
        ([0.1, 0.15, 0.19, 0.22], 0.1, [1, 1, 1, 4]),
        ([0.5, 0.5, 0.5], 0.0, [1, 1, 1]),
        ([-0.5], 1.0, [1]),
    ],
)
def test_the_best_round_by_hand(curve, min_improvement, expected):
    stopping = EarlyStopping(9, None, "v", rk.NDCG(), min_improvement)
    history = History({"v": {"NDCG": curve}})
    bests = [stopping.best_round(history, n).number for n in range(1, len(curve) + 1)]
    assert bests == expected


def test_min_improvement_stops_sooner():
    patient, demanding = (
        rk.LambdaMART(**HASTY, patience=5, min_improvement=least).fit(TRAIN, valid=VALID)
        for least in (0.0, 10.0)
    )
    assert demanding.n_trees_ == 1
    assert demanding.n_rounds_ == 6
    assert patient.n_rounds_ > 6


def test_of_several_sets_the_first_decides():
    names = {"near": VALID, "far": TEST}
    both = rk.LambdaMART(**HASTY, patience=3).fit(TRAIN, valid=names)
    one = rk.LambdaMART(**HASTY, patience=3).fit(TRAIN, valid=VALID)
    assert list(both.history_) == ["near", "far"]
    assert both.history_["near"] == one.history_["valid"]
    assert both.n_trees_ == one.n_trees_
    assert len(both.history_["far"]["NDCG"]) == both.n_rounds_
    np.testing.assert_array_equal(both.predict(TEST), one.predict(TEST))
    turned = rk.LambdaMART(**HASTY, patience=3).fit(TRAIN, valid={"far": TEST, "near": VALID})
    first = next(iter(turned.history_["far"].values()))
    assert turned.n_trees_ == int(np.argmax(first)) + 1


def test_a_validation_set_may_be_arrays():
    sets = [VALID, (VALID.X, VALID.y, VALID.qid), [VALID.X, VALID.y, VALID.qid]]
    models = [rk.LambdaMART(**SMALL).fit(TRAIN, valid=given) for given in sets]
    assert len({bytes_of(model) for model in models}) == 1


def test_a_validation_set_changes_no_tree():
    watched = rk.LambdaMART(**SMALL, patience=None).fit(TRAIN, valid=VALID)
    alone = rk.LambdaMART(**SMALL).fit(TRAIN)
    k = watched.n_trees_
    np.testing.assert_array_equal(watched.predict(TEST), alone.predict(TEST, n_trees=k))


def test_other_top_grades_are_told(caplog):
    valid = rk.RankingData(VALID.X, VALID.y, VALID.qid, top_grade=6)
    rk.LambdaMART("ERR", **SMALL).fit(TRAIN, valid=valid)
    assert "the top grade of 'valid' is 6, that of the training data 4" in caplog.text
    caplog.clear()
    rk.LambdaMART("NDCG", **SMALL).fit(TRAIN, valid=valid)
    assert not caplog.records


@every_case
def test_callbacks_get_every_round(case):
    rounds: list[Round] = []
    model = case.fit(valid=VALID, callbacks=[rounds.append], changes={"patience": None})
    assert [done.number for done in rounds] == list(range(1, model.n_rounds_ + 1))
    for done in rounds:
        assert done.values["valid"] == {
            measure: curve[done.number - 1] for measure, curve in model.history_["valid"].items()
        }


@every_case
def test_a_callback_that_returns_true_stops(case):
    calls = []
    model = case.fit(callbacks=[lambda done: done.number == 2, calls.append])
    assert model.n_rounds_ == 2
    assert model.kept_rounds_ == 2 or case.is_net
    assert len(calls) == 2  # the others hear of the last round too
    if not case.is_net:  # how far a net moves in an epoch depends on how many there are
        fewer = case.fit(changes={"n_trees": 2})
        np.testing.assert_array_equal(case.predict(model), case.predict(fewer))


def test_only_true_stops_and_one_function_will_do():
    model = rk.LambdaMART(**SMALL).fit(TRAIN, callbacks=lambda done: done.number)
    assert model.n_trees_ == 6


class Heard(ProgressBar):
    """A progress that writes down what it hears."""

    def __init__(self) -> None:
        self.words: list[object] = []

    def start(self, name, total, unit):
        self.words.append((name, total, unit))
        return self

    def advance(self, amount):
        self.words.append(amount)

    def note(self, text):
        self.words.append(text)

    def end(self):
        self.words.append("end")


def test_progress_hears_of_every_tree():
    heard = Heard()
    model = rk.LambdaMART("NDCG@3", **SMALL).fit(TRAIN, valid=VALID, progress=heard)
    assert heard.words[0] == ("training", 6, "trees")
    assert heard.words[-1] == "end"
    assert sum(word for word in heard.words if isinstance(word, int)) == model.n_rounds_
    notes = [word for word in heard.words[1:-1] if isinstance(word, str)]
    curve = model.history_["valid"]["NDCG@3"]
    assert notes == [f"valid NDCG@3 {value:.4f}" for value in curve]


def test_progress_hears_of_every_epoch():
    heard = Heard()
    model = CASES["net"].fit(progress=heard)
    assert heard.words[0] == ("training", 6, "epochs")
    notes = [word for word in heard.words[1:-1] if isinstance(word, str)]
    assert notes == [f"train NDCG {value:.4f}" for value in model.history_["train"]["NDCG"]]


def test_progress_ends_when_training_fails():
    heard = Heard()

    def fail(_done):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        CASES["squared"].fit(callbacks=[fail], progress=heard)
    assert heard.words[-1] == "end"
