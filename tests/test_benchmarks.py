"""The benchmark of the randomisation test refuses what would leave its peer nothing to do."""

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "compare.py"


def test_too_few_permutations_are_refused():
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--permutations", "9999"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "--permutations: expected at least 10000" in done.stderr
    assert done.stdout == ""
