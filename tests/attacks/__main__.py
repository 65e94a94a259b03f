"""The long campaign: each attack in processes of its own, because an attack may kill its process.

A part of a campaign is named by its number, which is also its seed, so that
``python -m tests.attacks NAME --part 17`` repeats what went wrong.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.attacks import CAMPAIGNS
from tests.attacks.tries import outcomes

# Longer than any part takes: a part that does not end is a bad outcome.
LIMIT = 1800
PROJECT = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.attacks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="attacks; all, if none is named")
    parser.add_argument("--times", type=float, default=1.0, help="of the usual number of tries")
    parser.add_argument("--part", type=int, help="repeat this part alone, in this process")
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(CAMPAIGNS):
        parser.error(f"no attack has the name {', '.join(sorted(unknown))}: {', '.join(CAMPAIGNS)}")
    names = chosen.names or list(CAMPAIGNS)
    if chosen.part is not None:
        for name in names:
            for outcome in outcomes(name, chosen.part, CAMPAIGNS[name].part):
                print(json.dumps([outcome.what, outcome.bad]), flush=True)
        return 0
    n_bad = 0
    print(f"{'attack':24} {'tries':>8} {'bad':>5} {'s':>6}  outcomes")
    for name in names:
        start = time.perf_counter()
        whats, bad = campaign(name, chosen.times)
        n_bad += len(bad)
        counts = ", ".join(f"{what} {count:,}" for what, count in whats.most_common())
        seconds = time.perf_counter() - start
        print(f"{name:24} {whats.total():8,} {len(bad):5} {seconds:6.0f}  {counts}", flush=True)
        for sentence in bad[:20]:
            print(f"    {sentence}")
    return 1 if n_bad else 0


def campaign(name: str, times: float) -> tuple[collections.Counter[str], list[str]]:
    """Make all tries of an attack; how many ended how, and what must not happen."""
    whats: collections.Counter[str] = collections.Counter()
    bad = []
    n_parts = max(1, round(CAMPAIGNS[name].many * times / CAMPAIGNS[name].part))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as processes:
        for part, (lines, death) in enumerate(
            processes.map(run_part, [name] * n_parts, range(n_parts))
        ):
            for what, problem in lines:
                whats[what] += 1
                if problem:
                    bad.append(f"part {part}: {problem}")
            if death:
                whats["death"] += 1
                bad.append(f"part {part}, after {len(lines)} tries: {death}")
    return whats, bad


def run_part(name: str, part: int) -> tuple[list[tuple[str, str]], str]:
    """Make the tries of one part in a process; how each ended, and how the process died."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            process = subprocess.run(
                [sys.executable, "-m", "tests.attacks", name, "--part", str(part)],
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(PROJECT)},
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        except subprocess.TimeoutExpired:
            return [], f"does not end in {LIMIT} s"
    lines = [(what, bad) for what, bad in map(json.loads, process.stdout.splitlines())]
    if process.returncode == 0:
        return lines, ""
    last = process.stderr.strip().splitlines()[-1:] or ["it says nothing"]
    return lines, f"exit {process.returncode}: {last[0]}"


if __name__ == "__main__":
    sys.exit(main())
