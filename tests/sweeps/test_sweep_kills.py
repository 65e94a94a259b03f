"""A sweep that is killed at any moment, and started again, comes to the same trials."""

from __future__ import annotations

import multiprocessing
import random
import time

import numpy as np
import pytest

from rankinite.core.threads import set_threads
from tests.processes import LIMIT, run_until_change, wait_until
from tests.sweeps.cases import files_of, micro_sweep

# Of the long test.
KILLS = 200


def test_killed_between_changes_of_files_and_started_again(tmp_path):
    n_changes = run_until_change(micro_sweep, 0, tmp_path / "whole")
    assert n_changes > 20
    expected = files_of(tmp_path / "whole")
    for first in np.linspace(1, n_changes, 4, dtype=int):
        out = tmp_path / f"killed-{first}"
        assert run_until_change(micro_sweep, first, out) is None
        assert run_until_change(micro_sweep, 0, out)
        assert files_of(out) == expected


def sweep_alone(out):
    set_threads(1)
    micro_sweep(out)


@pytest.mark.long
def test_killed_at_any_moment_and_started_again(tmp_path):
    # Processes that have imported everything already are there at once.
    forks = multiprocessing.get_context("forkserver")
    forks.set_forkserver_preload(["tests.sweeps.cases", "optuna", "rankinite.models"])

    def begin(out):
        running = forks.Process(target=sweep_alone, args=(out,))
        running.start()
        wait_until(lambda: out.exists() or not running.is_alive())
        return running, time.monotonic()

    whole = tmp_path / "whole"
    running, begun = begin(whole)
    running.join(LIMIT)
    assert running.exitcode == 0
    seconds = time.monotonic() - begun
    expected = files_of(whole)
    moments = random.Random(7)
    kills, rounds = 0, 0
    while kills < KILLS:
        rounds += 1
        out = tmp_path / f"killed-{rounds}"
        while True:
            running, _ = begin(out)
            running.join(moments.uniform(0.0, 0.7 * seconds) if kills < KILLS else LIMIT)
            if not running.is_alive():
                break
            running.kill()
            running.join()
            kills += 1
        assert running.exitcode == 0
        assert files_of(out) == expected
