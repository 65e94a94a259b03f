"""Compilation in a second process: when it is started, and that it compiles what a fit needs."""

from __future__ import annotations

import os
import sys

import pytest

import rankinite as rk
from rankinite.core import compilation
from rankinite.core.jit import JIT_IS_OFF
from rankinite.nets.epochs import compile_training
from rankinite.nets.kernels.backprop import train_queries
from rankinite.trees.grower import compile_growth
from rankinite.trees.kernels.grow import grow

DATA = rk.polynomials(20, n_features=3)


class Started:
    """Stands in for processes, and keeps their commands."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.environments: list[dict[str, str]] = []

    def __call__(self, command, env, **_streams) -> Started:
        self.commands.append(command)
        self.environments.append(env)
        return self

    def poll(self) -> int:
        return 0


@pytest.fixture
def started(monkeypatch, tmp_path) -> Started:
    """An empty cache on a machine of several cores, and what is started there."""
    processes = Started()
    monkeypatch.setattr(compilation.subprocess, "Popen", processes)
    monkeypatch.setattr(compilation, "_begun", {})
    monkeypatch.setattr(compilation, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(compilation, "available_cores", lambda: 4)
    monkeypatch.setattr(compilation, "JIT_IS_OFF", False)
    monkeypatch.delenv(compilation.COMPILE_AHEAD)
    return processes


def test_a_first_fit_starts_a_second_process_once(started):
    for _ in range(2):
        rk.LambdaMART(n_trees=1).fit(DATA)
    code = "from rankinite.trees.grower import compile_growth; compile_growth()"
    assert started.commands == [[sys.executable, "-c", code]]
    paths = started.environments[0]["PYTHONPATH"].split(os.pathsep)
    assert [path for path in sys.path if path] == paths
    rk.LambdaRank(n_epochs=1).fit(DATA)
    assert (
        started.commands[1][2]
        == "from rankinite.nets.epochs import compile_training; compile_training()"
    )


def test_what_is_in_the_cache_is_not_compiled_again(started, tmp_path):
    (tmp_path / "rankinite.trees.kernels.grow.grow-1-abc.kernel").touch()
    rk.LambdaMART(n_trees=1).fit(DATA)
    assert started.commands == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("available_cores", lambda: 1),
        ("cache_directory", lambda: None),
        ("os.environ", {"RANKINITE_COMPILE_AHEAD": "0"}),
        ("JIT_IS_OFF", True),
        ("sys.executable", "/usr/bin/uwsgi"),
        ("sys.frozen", True),
    ],
)
def test_when_there_is_no_second_process(started, monkeypatch, name, value):
    monkeypatch.setattr(f"rankinite.core.compilation.{name}", value, raising=False)
    compilation.compile_ahead("module:function", "kernel")
    assert started.commands == []


def test_it_compiles_for_the_types_of_a_fit():
    if JIT_IS_OFF:
        pytest.skip("the JIT is off")
    compile_growth()
    compile_training()
    kernels = grow.dispatcher, train_queries.dispatcher
    signatures = [list(kernel.overloads) for kernel in kernels]
    rk.LambdaMART(n_trees=2).fit(DATA)
    rk.LambdaRank(n_epochs=1).fit(DATA)
    assert [list(kernel.overloads) for kernel in kernels] == signatures
