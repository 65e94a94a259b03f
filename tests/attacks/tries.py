"""How attacks are run, and the outcomes that many of them share."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from rankinite.core.errors import RankiniteError
from tests.attacks import CAMPAIGNS, Outcome

# What may come instead of a result: our own errors, and the operating system's with a file's name.
REFUSALS = (RankiniteError, OSError)


def outcomes(name: str, seed: int, n: int) -> Iterator[Outcome]:
    """Make ``n`` tries of an attack in the current folder."""
    module, _, function = CAMPAIGNS[name].attack.partition(":")
    attack = getattr(importlib.import_module(f"tests.attacks.{module}"), function)
    yield from attack(np.random.default_rng(seed), n)


def refused_or(what: str, tried: str, function: Callable[[], Any]) -> Outcome:
    """Call what must either work or raise one of our own errors, in one sentence."""
    try:
        function()
    except REFUSALS as problem:
        if not str(problem).strip():
            return Outcome("refused", f"{tried}: {type(problem).__name__} without a sentence")
        return Outcome("refused")
    except Exception as problem:
        return Outcome("foreign exception", f"{tried}: {type(problem).__name__}: {problem}"[:300])
    return Outcome(what)
