"""A sweep that is killed between changes of files, and started again, comes to the same trials.

``python -m tests.attacks kills`` kills it at any moment.
"""

from __future__ import annotations

import numpy as np

from tests.processes import run_until_change
from tests.sweeps.cases import files_of, micro_sweep


def test_killed_between_changes_of_files_and_started_again(tmp_path):
    n_changes = run_until_change(micro_sweep, 0, tmp_path / "whole")
    assert n_changes > 20
    expected = files_of(tmp_path / "whole")
    for first in np.linspace(1, n_changes, 4, dtype=int):
        out = tmp_path / f"killed-{first}"
        assert run_until_change(micro_sweep, first, out) is None
        assert run_until_change(micro_sweep, 0, out)
        assert files_of(out) == expected
