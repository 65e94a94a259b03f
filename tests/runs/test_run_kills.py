"""A run that is killed at any moment, and started again, comes to the same bytes."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time

import numpy as np
import pytest

import rankinite as rk
from rankinite.report import write_report
from rankinite.runs.recipe_reader import recipe_of
from tests.processes import LIMIT, run_until_change, wait_until
from tests.runs.cases import MICRO, bytes_of, go, micro_data

# Of the long test.
KILLS = 200
# Of one run, whatever it has done by then.
MOST_KILLS = 8
TRAIN = ["recipe", "run", "micro.toml", "--train", "train.parquet"]
RUN = [*TRAIN, "--test", "test.parquet"]
LIMITED = """\
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from rankinite.cli import main
main(sys.argv[1:])
"""


@pytest.fixture
def begin(tmp_path):
    """Start a run in a process of its own; what it says goes into a file."""
    for name, data in (("train", micro_data(60)), ("test", micro_data(20, 2))):
        rk.save(data, tmp_path / f"{name}.parquet")
    (tmp_path / "micro.toml").write_text(MICRO)

    def start(out, *how, jobs=1, command=RUN):
        (tmp_path / out / "lock").unlink(missing_ok=True)
        options = ["--jobs", str(jobs), "--quiet", "--out", out]
        with (tmp_path / "said.txt").open("w") as said:
            return subprocess.Popen(
                [sys.executable, *(how or ["-m", "rankinite"]), *command, *options],
                cwd=tmp_path,
                env={**os.environ, "RANKINITE_THREADS": "1"},
                stdout=said,
                stderr=said,
            )

    return start


def finish(running, tmp_path):
    assert running.wait(LIMIT) == 0, (tmp_path / "said.txt").read_text()


def wait_for(running, folder):
    """Wait until the run has begun to work; importing everything takes longer than the run."""
    wait_until(lambda: (folder / "lock").exists() or running.poll() is not None)


def was_killed(running, seconds):
    """Kill a run after some time; tell whether it had not ended before."""
    try:
        running.wait(seconds)
    except subprocess.TimeoutExpired:
        running.kill()
        running.wait()
        return True
    return False


def run_micro(out):
    write_report(go(recipe_of("micro.toml", MICRO), out=out))


def test_killed_between_changes_of_files_and_started_again(tmp_path):
    n_changes = run_until_change(run_micro, 0, tmp_path / "whole")
    assert n_changes > 100
    expected = bytes_of(tmp_path / "whole")
    for first in np.linspace(1, n_changes, 6, dtype=int):
        out = tmp_path / f"killed-{first}"
        assert run_until_change(run_micro, first, out) is None
        # The next one, soon after it has begun: it may be cleaning up.
        assert run_until_change(run_micro, 4, out) is None
        assert run_until_change(run_micro, 0, out)
        assert bytes_of(out) == expected


@pytest.mark.long
def test_killed_at_any_moment_and_started_again(begin, tmp_path):
    # Kernels are compiled by then, and a run takes as long as it will.
    finish(begin("whole"), tmp_path)
    expected = bytes_of(tmp_path / "whole")
    seconds = {}
    for jobs in (1, 2):
        undisturbed = begin(f"again-{jobs}", jobs=jobs)
        wait_for(undisturbed, tmp_path / f"again-{jobs}")
        begun = time.monotonic()
        finish(undisturbed, tmp_path)
        seconds[jobs] = time.monotonic() - begun
        assert bytes_of(tmp_path / f"again-{jobs}") == expected
    moments = random.Random(7)
    kills = {1: 0, 2: 0}
    folders = 0
    while sum(kills.values()) < KILLS:
        jobs = 1 + folders % 2
        out = tmp_path / f"killed-{folders}"
        folders += 1
        assert folders <= KILLS  # otherwise hardly any of the moments is within a run
        for _ in range(MOST_KILLS):
            running = begin(out.name, jobs=jobs)
            wait_for(running, out)
            # Later starts have less to do: most kills should hit the work, not its end.
            if not was_killed(running, moments.uniform(0.0, seconds[jobs] / 2)):
                break
            kills[jobs] += 1
        finish(begin(out.name), tmp_path)
        assert bytes_of(out) == expected
    assert min(kills.values()) > 0


def test_a_file_that_cannot_be_written_is_a_sentence_and_nothing_is_lost(begin, call, tmp_path):
    options = ["--jobs", 1, "--quiet", "--out"]
    call(*RUN, *options, "whole")
    call(*TRAIN, *options, "full")
    before = bytes_of(tmp_path / "full")
    # Files cannot grow beyond four kilobytes, as on a disk that fills up: test scores fit, and
    # what is written in the end does not.
    limited = begin("full", "-c", LIMITED)
    assert limited.wait(LIMIT) == 1
    said = (tmp_path / "said.txt").read_text()
    assert re.match(r"Error: full/.+: File too large\n$", said)
    after = bytes_of(tmp_path / "full")
    assert {name: after[name] for name in before if name.startswith(("tasks/", "models/"))} == {
        name: text for name, text in before.items() if name.startswith(("tasks/", "models/"))
    }
    assert after.keys() >= before.keys()
    assert not [name for name in after if name.endswith(".part")]
    call(*RUN, *options, "full")
    assert bytes_of(tmp_path / "full") == bytes_of(tmp_path / "whole")
