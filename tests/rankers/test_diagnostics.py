"""Diagnostics: they change no model, and survive interrupts; and what is refused."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.container import Content, read_container, write_container
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.objectives.tiers import Tiered
from rankinite.rankers.diagnostics import DiagnosticsCallback
from tests.rankers.cases import CASES, SMALL, TRAIN, VALID, bytes_of, every_case

KEPT = Path("fit.ckpt")
CLICKED = TRAIN.with_labels(
    {"clicks": np.random.default_rng(5).choice([0, 0.25, 0.5, 1, np.nan], TRAIN.n_docs)}
)
GRADED = {**SMALL, "measure": Tiered("NDCG@3 > CNDCG@3[clicks]", weights=0.4)}


@every_case
def test_models_are_the_same_bytes(case):
    plain = bytes_of(case.fit(valid=VALID))
    assert bytes_of(case.fit(valid=VALID, diagnostics=rk.Diagnostics())) == plain


def test_a_graded_model_is_the_same_bytes():
    plain = bytes_of(rk.LambdaMART(**GRADED).fit(CLICKED))
    assert bytes_of(rk.LambdaMART(**GRADED).fit(CLICKED, diagnostics=rk.Diagnostics())) == plain


def curves_of(case, **options):
    """Return the rounds and curves of a fit."""
    diagnostics = options.pop("diagnostics", None) or rk.Diagnostics()
    case.fit(diagnostics=diagnostics, **options)
    return diagnostics.rounds, diagnostics.curves


def interrupt_after(k):
    def callback(done):
        if done.number == k:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("name", ["NDCG", "MRR", "ERR-scores", "logistic", "McRank", "net-sgd"])
def test_an_interrupted_fit_resumes_to_the_same_curves(name):
    case = CASES[name]
    undisturbed = curves_of(case)
    for k in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            curves_of(case, checkpoint=KEPT, callbacks=[interrupt_after(k)])
        assert curves_of(case, checkpoint=KEPT) == undisturbed
        assert curves_of(case, checkpoint=KEPT) == undisturbed
        KEPT.unlink()


def test_an_interrupt_between_a_round_and_its_curves(monkeypatch):
    case = CASES["NDCG"]
    undisturbed = curves_of(case)
    catch_up, calls = DiagnosticsCallback._catch_up, []

    def interrupted(self):
        calls.append(self._learner.n_rounds)
        if len(calls) == 3:
            raise KeyboardInterrupt
        catch_up(self)

    with monkeypatch.context() as patched:
        patched.setattr(DiagnosticsCallback, "_catch_up", interrupted)
        with pytest.raises(KeyboardInterrupt):
            curves_of(case, checkpoint=KEPT)
    assert calls == [1, 2, 3, 3]
    assert curves_of(case, checkpoint=KEPT) == undisturbed


@pytest.mark.parametrize("name", ["NDCG", "net"])
def test_switched_on_and_off_in_between(name, caplog):
    case = CASES[name]
    rounds, curves = curves_of(case)
    with pytest.raises(KeyboardInterrupt):
        case.fit(checkpoint=KEPT, callbacks=[interrupt_after(2)])
    with caplog.at_level(logging.INFO, logger="rankinite"), pytest.raises(KeyboardInterrupt):
        curves_of(case, checkpoint=KEPT, callbacks=[interrupt_after(4)])
    assert "curves lack 2 of 2" in caplog.text
    assert curves_of(case, checkpoint=KEPT) == (rounds[2:], {k: v[2:] for k, v in curves.items()})
    assert bytes_of(case.fit(checkpoint=KEPT)) == bytes_of(case.fit())


def test_fewer_trees_have_shorter_curves():
    case = CASES["NDCG"]
    curves_of(case, checkpoint=KEPT)
    fewer = {"n_trees": 2}
    assert curves_of(case, checkpoint=KEPT, changes=fewer) == curves_of(case, changes=fewer)


def test_other_diagnostics_start_over():
    case = CASES["NDCG"]
    with pytest.raises(KeyboardInterrupt):
        curves_of(case, checkpoint=KEPT, callbacks=[interrupt_after(2)])
    rounds, curves = curves_of(case, checkpoint=KEPT, diagnostics=rk.Diagnostics(top=4))
    assert rounds == [3, 4, 5, 6]
    assert "top 4 share of grade 0" in curves


def test_a_second_fit_drops_the_curves_of_the_first():
    diagnostics = rk.Diagnostics()
    curves_of(CASES["NDCG"], diagnostics=diagnostics)
    again = curves_of(CASES["McRank"], diagnostics=diagnostics)
    assert again == curves_of(CASES["McRank"])


@pytest.mark.parametrize(
    "damage",
    [
        {"rounds": [2, 1]},
        {"rounds": ["1", "2"]},
        {"rows": [[0.0], [0.0]]},
        {"rows": None},
        {"names": 3},
    ],
    ids=str,
)
def test_a_damaged_checkpoint_is_refused(damage):
    with pytest.raises(KeyboardInterrupt):
        curves_of(CASES["NDCG"], checkpoint=KEPT, callbacks=[interrupt_after(2)])
    content = read_container(KEPT)
    manifest = dict(content.manifest)
    manifest["diagnostics"] = {**manifest["diagnostics"], **damage}
    write_container(KEPT, Content(manifest, content.arrays))
    with pytest.raises(ModelFileError, match="holds diagnostics that are not understood"):
        curves_of(CASES["NDCG"], checkpoint=KEPT)


def test_what_is_refused():
    with pytest.raises(UsageError, match="top must be a whole number of at least 1"):
        rk.Diagnostics(top=0)
    with pytest.raises(UsageError, match="highly_relevant must be"):
        rk.Diagnostics(highly_relevant=-1)
    with pytest.raises(UsageError, match="diagnostics is a bool; give a Diagnostics"):
        CASES["NDCG"].fit(diagnostics=True)
    with pytest.raises(
        UsageError, match="highly_relevant is 5, and the largest label of the training data is 4"
    ):
        CASES["NDCG"].fit(diagnostics=rk.Diagnostics(highly_relevant=5))
    many = TRAIN.with_labels({"rates": np.arange(TRAIN.n_docs) / TRAIN.n_docs})
    with pytest.raises(DataError, match="'rates' have 96 different values"):
        rk.LambdaMART("NDCG[rates]", **SMALL).fit(many, diagnostics=rk.Diagnostics())
