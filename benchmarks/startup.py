"""How long ``rankinite --help`` takes, against ``python -c pass``.

python benchmarks/startup.py [--turns 20]
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
from pathlib import Path

from turns import two_in_turns


def run(*command: str) -> None:
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=20)
    chosen = parser.parse_args()
    command = str(Path(sys.executable).with_name("rankinite"))
    ours, python = two_in_turns(
        lambda: run(command, "--help"), lambda: run(sys.executable, "-c", "pass"), chosen.turns
    )
    print(
        f"rankinite --help: {statistics.median(ours):.3f} s (must 0.5); "
        f"python -c pass: {statistics.median(python):.3f} s"
    )
