"""``rankinite warm-up``, and what is told when kernels are compiled."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace

import pytest

import rankinite as rk
from rankinite.cli import warm_up
from rankinite.cli.terminal import ABOUT_COMPILING as OF_TERMINAL
from rankinite.cli.terminal import Terminal
from rankinite.core import compilation
from rankinite.core.compilation import ABOUT_COMPILING, Compilations, compilations
from rankinite.models import RANKERS


def test_afterwards_the_usual_commands_compile_nothing(call):
    printed = json.loads(call("warm-up", "--json"))
    assert printed["rankers"] == ["LambdaMART"]
    data = rk.polynomials(20, n_features=3)
    rk.save(data, "train.txt")
    before = compilations.n_kernels
    small = ["--n-trees", 3, "--valid", "train.txt", "--out", "m.rk"]
    call("train", "train.txt", *small)
    call("predict", "m.rk", "train.txt", "--out", "s.txt")
    call("evaluate", "train.txt", "s.txt")
    assert compilations.n_kernels == before
    assert "compiled 0 kernels in 0 s; they are kept in" in call("warm-up")


def test_all_rankers_and_choices_are_tried():
    fits = list(warm_up._fits(True))
    assert [*dict.fromkeys(name for name, _ in fits)] == list(RANKERS)
    assert ("LambdaMART", {"n_trees": 2, "step": "gradient"}) in fits
    assert ("LambdaRank", {"n_epochs": 2, "activation": "tanh"}) in fits


def test_a_place_to_keep_kernels_is_needed(call, monkeypatch):
    monkeypatch.setattr("rankinite.core.kernel_cache.cache_directory", lambda: None)
    assert "environment variable RANKINITE_CACHE_DIR" in call("warm-up", code=1)


def function_of(module: str) -> SimpleNamespace:
    return SimpleNamespace(__module__=module)


def test_the_first_kernel_of_ours_is_told_once(caplog):
    listener = Compilations()
    for module in ("users.code", "rankinite.trees.kernels.grow", "rankinite.core.jit"):
        listener.on_start(function_of(module))
        listener.on_end(function_of(module))
    assert listener.n_kernels == 2
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "takes a few seconds" in caplog.text


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_command_tells_it_on_a_terminal(capsys, monkeypatch, is_terminal):
    assert OF_TERMINAL == ABOUT_COMPILING
    Terminal()
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal)
    compilation.log.warning("compiling", extra={"about": ABOUT_COMPILING})
    assert capsys.readouterr().err == ("note: compiling\n" if is_terminal else "")
