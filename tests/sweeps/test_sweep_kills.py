"""A sweep that is killed at any moment, and started again, comes to the same trials."""

from __future__ import annotations

import multiprocessing
import os
import random
import time

from tests.sweeps.cases import files_of, micro_sweep

# More of them, once in a while: RANKINITE_KILLS=200.
KILLS = int(os.environ.get("RANKINITE_KILLS", "4"))


def sweep_alone(out):
    import numba

    numba.set_num_threads(1)
    micro_sweep(out)


def test_killed_and_started_again(tmp_path):
    # Processes that have imported everything already are there at once.
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.sweeps.cases", "optuna", "rankinite.models"])

    def begin(out):
        running = processes.Process(target=sweep_alone, args=(out,))
        running.start()
        while not out.exists() and running.is_alive():
            time.sleep(0.002)
        return running, time.monotonic()

    whole = tmp_path / "whole"
    running, begun = begin(whole)
    running.join(300)
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
            running.join(moments.uniform(0.0, 0.7 * seconds) if kills < KILLS else 100)
            if not running.is_alive():
                break
            running.kill()
            running.join()
            kills += 1
        assert running.exitcode == 0
        assert files_of(out) == expected
