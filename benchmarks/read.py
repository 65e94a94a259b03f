"""Reading SVMlight text against sklearn, on the same file in the same run; and peak memory.

python benchmarks/read.py [--megabytes 200] [--style letor|mixed|sparse|long] [--turns 3]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from turns import report, two_in_turns

STYLES = {
    # All features in every line, six decimals: LETOR 4.0 and MSLR after normalisation.
    "letor": (136, 1.0, "{:.6f}"),
    # Counts, binary features and decimals of several lengths: MSLR as it was released.
    "mixed": (136, 1.0, "{:.6g}"),
    # A third of 700 features in a line: the challenge.
    "sparse": (700, 0.33, "{:.6g}"),
    # Seventeen digits, as repr writes float64.
    "long": (136, 1.0, "{!r}"),
}


def write_file(path: Path, megabytes: int, style: str) -> None:
    """Write some thousand different lines over and over, each time as other queries."""
    n_features, share, form = STYLES[style]
    rng = np.random.default_rng(0)
    tails = []
    for _ in range(2000):
        values = rng.random(n_features)
        if style in ("mixed", "sparse"):
            values[::3] = rng.integers(0, 2, len(values[::3]))
            values[1::3] = rng.geometric(0.1, len(values[1::3]))
        chosen = np.flatnonzero(rng.random(n_features) < share)
        tails.append(" ".join(f"{j + 1}:{form.format(float(values[j]))}" for j in chosen))
    size, document = 0, 0
    with path.open("w") as file:
        while size < megabytes * 1_000_000:
            size += file.write(
                f"{document % 5} qid:{document // 50} {tails[document % len(tails)]}\n"
            )
            document += 1


PEAK = """
import sys
from pathlib import Path
from rankinite.data.formats import load

def memory(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

small = Path(sys.argv[1]).with_name("small.txt")
small.write_text("1 qid:1 1:1\\n")
load(small)
Path("/proc/self/clear_refs").write_text("5")  # forget the peak of compiling
start = memory("VmRSS")
data = load(sys.argv[1])
print((memory("VmHWM") - start) / data.matrix.nbytes)
"""


def peak_over_matrix(path: Path) -> float:
    """Load in a process of its own; return its peak memory, less the start, over the matrix."""
    command = [sys.executable, "-c", PEAK, str(path)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def compare(megabytes: int, style: str, turns: int) -> None:
    from sklearn.datasets import load_svmlight_file

    from rankinite.data.formats import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.txt"
        write_file(path, megabytes, style)
        ours = load(path)
        X, y, qid = load_svmlight_file(str(path), query_id=True, dtype=np.float32)
        assert (X.toarray() == ours.X).all()
        assert (y == ours.y).all()
        assert (qid == ours.qid).all()
        del X, ours
        seconds = two_in_turns(
            lambda: load(path), lambda: load_svmlight_file(str(path), query_id=True), turns
        )
        report(f"reading {megabytes} MB of {style}", *seconds, must=20, goal=50)
        print(f"  {megabytes / min(seconds[0]):.0f} MB a second at best")
        print(f"  peak memory {peak_over_matrix(path):.2f} of the matrix; must 2.5")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--style", choices=[*STYLES, "all"], default="all")
    parser.add_argument("--turns", type=int, default=3)
    chosen = parser.parse_args()
    for name in STYLES if chosen.style == "all" else [chosen.style]:
        compare(chosen.megabytes, name, chosen.turns)
