"""The trainer: validation sets, callbacks and progress."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.progress import ProgressBar
from rankinite.rankers.boosting import TreeLearner
from rankinite.rankers.callbacks import Round
from rankinite.rankers.gradient_descent import NetLearner
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
    every_ranker,
)


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
        values = {measure: curve[k] for measure, curve in model.history_["valid"].items()}
        assert values == expected


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
        assert model.best_epoch_ == model.best_round_ == int(np.argmax(decides)) + 1
        for name, data in {"valid": VALID, "train": TRAIN}.items():
            values = {m: c[model.best_epoch_ - 1] for m, c in model.history_.get(name, {}).items()}
            expected = rk.evaluate(case.predict(model, data), data, measures).mean
            assert values in ({}, expected)


@pytest.mark.parametrize(("measure", "default"), [("NDCG@3", "NDCG@3"), ("RankNet", "NDCG@10")])
def test_sets_are_measured_by_what_is_trained(measure, default):
    model = rk.LambdaMART(measure, **SMALL).fit(TRAIN, valid=VALID)
    assert list(model.history_["valid"]) == [default]


def test_a_validation_set_may_be_arrays():
    sets = [VALID, (VALID.X, VALID.y, VALID.qid), [VALID.X, VALID.y, VALID.qid]]
    models = [rk.LambdaMART(**SMALL).fit(TRAIN, valid=valid) for valid in sets]
    assert len({bytes_of(model) for model in models}) == 1


def test_a_validation_set_changes_no_tree():
    validated = rk.LambdaMART(**SMALL, patience=None).fit(TRAIN, valid=VALID)
    alone = rk.LambdaMART(**SMALL).fit(TRAIN)
    k = validated.n_trees_
    np.testing.assert_array_equal(validated.predict(TEST), alone.predict(TEST, n_trees=k))


def test_other_top_grades_give_a_warning(caplog):
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


@every_ranker
def test_print_is_a_callback(case, capsys):
    model = case.fit(valid=VALID, callbacks=[print])
    ((measure, values),) = model.history_["valid"].items()
    assert capsys.readouterr().out.splitlines() == [
        f"round {k + 1}  valid {measure} {value:.4f}" for k, value in enumerate(values)
    ]


def test_a_round_without_values_has_a_number():
    assert str(Round(3, {})) == "round 3"


def test_callbacks_of_other_tools_are_refused():
    lightgbm = pytest.importorskip("lightgbm")
    for callback in (lightgbm.early_stopping(3), lightgbm.log_evaluation()):
        with pytest.raises(rk.UsageError, match="is one of lightgbm; set patience in the constr"):
            rk.LambdaMART().fit(TRAIN, callbacks=[callback])


@every_case
def test_a_callback_that_returns_true_stops(case):
    calls = []
    model = case.fit(callbacks=[lambda done: done.number == 2, calls.append])
    assert model.n_rounds_ == 2
    assert model.best_round_ == 2 or case.is_net
    assert len(calls) == 2  # the others are called for the last round too
    if not case.is_net:  # how far a net moves in an epoch depends on how many there are
        fewer = case.fit(changes={"n_trees": 2})
        np.testing.assert_array_equal(case.predict(model), case.predict(fewer))


def test_only_true_stops_and_one_function_will_do():
    model = rk.LambdaMART(**SMALL).fit(TRAIN, callbacks=lambda done: done.number)
    assert model.n_trees_ == 6


class RecordedProgress(ProgressBar):
    """A progress reporter that records its calls."""

    def __init__(self) -> None:
        self.calls: list[object] = []

    def start(self, name, total, unit):
        self.calls.append((name, total, unit))
        return self

    def advance(self, amount):
        self.calls.append(amount)

    def note(self, text):
        self.calls.append(text)

    def end(self):
        self.calls.append("end")


def test_the_rounds_of_a_checkpoint_count_as_done():
    rk.LambdaMART("NDCG@3", **SMALL | {"n_trees": 4}).fit(TRAIN, checkpoint="fit.ckpt")
    progress = RecordedProgress()
    rk.LambdaMART("NDCG@3", **SMALL).fit(TRAIN, checkpoint="fit.ckpt", progress=progress)
    assert [call for call in progress.calls if isinstance(call, int)] == [4, 1, 1]


def test_progress_is_reported_for_every_tree():
    progress = RecordedProgress()
    model = rk.LambdaMART("NDCG@3", **SMALL).fit(TRAIN, valid=VALID, progress=progress)
    assert progress.calls[0] == ("training", 6, "trees")
    assert progress.calls[-1] == "end"
    assert sum(call for call in progress.calls if isinstance(call, int)) == model.n_rounds_
    notes = [call for call in progress.calls[1:-1] if isinstance(call, str)]
    curve = model.history_["valid"]["NDCG@3"]
    assert notes == [f"valid NDCG@3 {value:.4f}" for value in curve]


def test_progress_is_reported_for_every_epoch():
    progress = RecordedProgress()
    model = CASES["net"].fit(progress=progress)
    assert progress.calls[0] == ("training", 6, "epochs")
    notes = [call for call in progress.calls[1:-1] if isinstance(call, str)]
    assert notes == [f"train NDCG {value:.4f}" for value in model.history_["train"]["NDCG"]]


def test_progress_ends_when_training_fails():
    progress = RecordedProgress()

    def fail(_done):
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        CASES["squared"].fit(callbacks=[fail], progress=progress)
    assert progress.calls[-1] == "end"


@every_ranker
def test_the_objective_is_built_once_per_fit(case, monkeypatch):
    build, calls = case.kind.objective, []

    def counting(self):
        calls.append(self)
        return build(self)

    monkeypatch.setattr(case.kind, "objective", counting)
    case.fit(valid=VALID, diagnostics=rk.Diagnostics(), checkpoint="fit.ckpt")
    assert len(calls) == 1


@pytest.mark.parametrize("name", ["NDCG", "NDCG-line-search", "McRank", "net", "net-sgd"])
def test_an_interrupt_between_the_values_of_a_round_and_its_commit(name, monkeypatch):
    case = CASES[name]
    undisturbed = bytes_of(case.fit(valid=VALID))
    learner = NetLearner if case.is_net else TreeLearner
    commit = learner.commit

    def interrupted(self, done, *, is_best):
        if done.number == 3:
            raise KeyboardInterrupt
        commit(self, done, is_best=is_best)

    model = case.new()
    with monkeypatch.context() as patched:
        patched.setattr(learner, "commit", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(TRAIN, valid=VALID, checkpoint="fit.ckpt")
    assert model.n_rounds_ == 2
    assert {len(curve) for curves in model.history_.values() for curve in curves.values()} == {2}
    assert bytes_of(case.fit(valid=VALID, checkpoint="fit.ckpt")) == undisturbed
