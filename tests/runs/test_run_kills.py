"""A run that is killed between changes of files, and started again, comes to the same bytes.

``python -m tests.attacks kills`` kills it at any moment.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np

import rankinite as rk
from rankinite.report import write_report
from rankinite.runs.recipe_reader import recipe_of
from tests.processes import LIMIT, run_until_change
from tests.runs.cases import MICRO, bytes_of, go, micro_data

TRAIN = ["recipe", "run", "micro.toml", "--train", "train.parquet"]
RUN = [*TRAIN, "--test", "test.parquet"]
LIMITED = """\
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from rankinite.cli import main
main(sys.argv[1:])
"""


def run_micro(out):
    write_report(go(recipe_of("micro.toml", MICRO), out=out))


def test_killed_between_changes_of_files_and_started_again(tmp_path):
    # With all kernels in their cache, where the first run may still write.
    run_until_change(run_micro, 0, tmp_path / "first")
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


def test_a_file_that_cannot_be_written_is_a_sentence_and_nothing_is_lost(call, tmp_path):
    for name, data in (("train", micro_data(60)), ("test", micro_data(20, 2))):
        rk.save(data, f"{name}.parquet")
    Path("micro.toml").write_text(MICRO)
    options = ["--jobs", "1", "--quiet", "--out"]
    call(*RUN, *options, "whole")
    call(*TRAIN, *options, "full")
    before = bytes_of(tmp_path / "full")
    # Files cannot grow beyond four kilobytes, as on a disk that fills up: test scores fit, and
    # what is written in the end does not.
    limited = subprocess.run(
        [sys.executable, "-c", LIMITED, *RUN, *options, "full"],
        env={**os.environ, "RANKINITE_THREADS": "1"},
        stderr=subprocess.PIPE,
        text=True,
        timeout=LIMIT,
    )
    assert limited.returncode == 1
    assert re.match(r"Error: full/.+: File too large\n$", limited.stderr)
    after = bytes_of(tmp_path / "full")
    assert {name: after[name] for name in before if name.startswith(("tasks/", "models/"))} == {
        name: text for name, text in before.items() if name.startswith(("tasks/", "models/"))
    }
    assert after.keys() >= before.keys()
    assert not [name for name in after if name.endswith(".part")]
    call(*RUN, *options, "full")
    assert bytes_of(tmp_path / "full") == bytes_of(tmp_path / "whole")
