"""A run that is killed at any moment, and started again, comes to the same bytes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time

import numpy as np
import pytest
from micro_recipe import MICRO, bytes_of, micro_data

import rankinite as rk

# More of them, once in a while: RANKINITE_KILLS=200.
KILLS = int(os.environ.get("RANKINITE_KILLS", "20"))


@pytest.fixture
def begin(tmp_path):
    """Start a run in a process of its own."""
    for name, data in (("train", micro_data(60)), ("test", micro_data(20, 2))):
        rk.save(data, tmp_path / f"{name}.parquet")
    (tmp_path / "micro.toml").write_text(MICRO)
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1"}

    def start(out):
        options = ["--train", "train.parquet", "--test", "test.parquet", "--jobs", "1", "--quiet"]
        command = [sys.executable, "-m", "rankinite", "recipe", "run", "micro.toml"]
        return subprocess.Popen(
            [*command, *options, "--out", out],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return start


def wait_for_the_folder(running, folder):
    """Wait until the run has begun to work; importing everything takes longer than the run."""
    deadline = time.monotonic() + 120
    while not folder.exists() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.005)


def test_killed_and_started_again(begin, tmp_path):
    undisturbed = begin("whole")
    folder = tmp_path / "whole"
    wait_for_the_folder(undisturbed, folder)
    begun = time.monotonic()
    assert undisturbed.wait(300) == 0, undisturbed.stdout.read()
    seconds = time.monotonic() - begun
    expected = bytes_of(folder)
    moments = random.Random(7)
    kills, rounds = 0, 0
    while kills < KILLS:
        rounds += 1
        out = tmp_path / f"killed-{rounds}"
        while True:
            running = begin(out.name)
            wait_for_the_folder(running, out)
            try:
                # Later starts have less to do: most kills should hit the work, not its end.
                code = running.wait(moments.uniform(0.0, seconds / 2))
            except subprocess.TimeoutExpired:
                running.kill()
                running.wait()
                kills += 1
                if kills < KILLS:
                    continue
                last = begin(out.name)
                code = last.wait(300)
                assert code == 0, last.stdout.read()
            assert code == 0, running.stdout.read()
            break
        assert bytes_of(out) == expected
    assert kills == KILLS


def test_a_run_without_room_on_the_disk_is_a_sentence(begin, tmp_path):
    """Files cannot grow beyond a limit: the run ends with a sentence, and goes on without it."""
    import resource

    command = (
        "import resource, signal, sys\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))\n"
        "from rankinite.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    assert resource.RLIMIT_FSIZE is not None
    options = ["--train", "train.parquet", "--jobs", "1", "--out", "full", "--quiet"]
    words = ["recipe", "run", "micro.toml", *options]
    cold = begin("whole")
    assert cold.wait(300) == 0, cold.stdout.read()
    limited = subprocess.run(
        [sys.executable, "-c", command, *words],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert limited.returncode == 1
    assert limited.stderr.startswith("Error: ")
    assert "Traceback" not in limited.stderr
    again = begin("full")
    assert again.wait(300) == 0, again.stdout.read()
    assert bytes_of(tmp_path / "full") == bytes_of(tmp_path / "whole")
    scores = tmp_path / "full" / "scores" / "test" / "ensemble.txt"
    assert len(np.loadtxt(scores)) == micro_data(20, 2).n_docs
