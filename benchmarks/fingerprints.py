"""Fingerprints of all that the library computes, for changes that shall not move a bit.

    python benchmarks/fingerprints.py > before.txt
    python benchmarks/fingerprints.py --against before.txt [--only 'LambdaMART|recipe']

Prints a line `case#part  sha256` for everything computed on small simulated data; `case  ERROR ...`
if that fails, which does not stop the others. With --against, prints instead which lines differ
from those of an earlier run, are missing or are new. Any of these makes the exit code 1. Equal
numbers give equal lines, whatever the number of threads; one NaN is like another. The cases are in
``fingerprint_cases.py``.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import rankinite as rk
from fingerprint_cases import CASES


def pieces(value: Any) -> Iterator[bytes]:
    """Go through what a value is made of, so that unlike values give unlike bytes."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray) and value.dtype.kind != "O":
        # A NaN has many bit patterns, and which one comes out depends on the order of operations.
        is_nan = value != value
        known = np.where(is_nan, 0, value) if value.dtype.kind == "f" else value
        yield f"{value.dtype.str}{value.shape}".encode() + known.tobytes() + is_nan.tobytes()
    elif isinstance(value, (Mapping, list, tuple, np.ndarray)):
        yield f"{'mapping' if isinstance(value, Mapping) else 'list'} of {len(value)}:".encode()
        for item in value.items() if isinstance(value, Mapping) else value:
            yield from pieces(item)
    elif value is None or isinstance(value, (bool, int, float, str, bytes)):
        yield repr(value).encode() + b";"
    else:
        raise TypeError(f"there is no fingerprint of a {type(value).__name__}")


def lines_of(name: str) -> dict[str, str]:
    """Run a case; return one line, or one for each part if its result is a mapping."""
    try:
        result = CASES[name]()
        parts = result if isinstance(result, Mapping) else {"": result}
        return {
            f"{name}#{part}".rstrip("#"): hashlib.sha256(b"".join(pieces(value))).hexdigest()
            for part, value in parts.items()
        }
    except Exception as problem:
        return {name: " ".join(f"ERROR {type(problem).__name__}: {problem}".split())}


def changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """Go through the lines that are not the same, in order."""
    for key in sorted({**before, **after}):
        if before.get(key) != after.get(key):
            kind = "new" if key not in before else "differs" if key in after else "missing"
            yield f"{kind}  {key}"


def read_lines(path: Path, only: str) -> dict[str, str]:
    """Return the lines that an earlier run printed for the chosen cases."""
    pairs = (line.partition("  ")[::2] for line in path.read_text().splitlines())
    return {key: text for key, text in pairs if re.search(only, key.partition("#")[0])}


def main() -> int:
    """Run the cases, and print or compare their lines."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="a regular expression that cases match")
    parser.add_argument("--against", type=Path, help="what an earlier run printed")
    chosen = parser.parse_args()
    lines: dict[str, str] = {}
    for name in sorted(name for name in CASES if re.search(chosen.only, name)):
        of_case = lines_of(name)
        lines |= of_case
        # As they come: a run takes many minutes, and may be stopped.
        for key, text in of_case.items():
            if not chosen.against or text.startswith("ERROR"):
                print(f"{key}  {text}", flush=True)
    print(f"{len(lines)} lines of {rk.__file__}", file=sys.stderr)
    changed: list[str] = []
    if chosen.against:
        before = read_lines(chosen.against, chosen.only)
        changed = list(changes(before, lines))
        print(
            *changed,
            f"{len(changed)} of {len({**before, **lines})} lines are not the same",
            sep="\n",
        )
    return int(bool(changed) or any(text.startswith("ERROR") for text in lines.values()))


if __name__ == "__main__":
    raise SystemExit(main())
