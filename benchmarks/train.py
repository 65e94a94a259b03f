"""Training and scoring against LightGBM, XGBoost and CatBoost, in turns, in one run.

    python benchmarks/train.py [--only iteration,binning,small,movies,score,memory,lambda,augment,
        growth,first] [--data MQ2007] [--movies MOVIES] [--turns 5] [--rounds 8] [--shapes A,B]
        [--leaves 31,200] [--peers lightgbm,xgboost,catboost] [--threads 2] [--quick]

Prints a line for everything measured, and in the end a table of all ratios, ours over theirs: the
smaller the better. Shape A is 10,000 queries x 24 documents x 519 features, B 3,000 x 116 x 136.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Any

# The module in training/ and the function of every section.
SECTIONS = {
    "iteration": ("iterations", "iteration"),
    "binning": ("stages", "binning"),
    "small": ("iterations", "small"),
    "movies": ("iterations", "movies"),
    "score": ("stages", "scoring"),
    "memory": ("processes", "memory"),
    "lambda": ("stages", "lambdas"),
    "augment": ("iterations", "augmented"),
    "growth": ("iterations", "growth"),
    "first": ("processes", "first_use"),
}
PEERS = ("lightgbm", "xgboost", "catboost")
QUICK = 25


def main() -> int:
    """Run the chosen sections; a section that fails does not stop the others."""
    chosen = _arguments()
    for name in ("RANKINITE_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(chosen.threads)
    from turns import Results

    settings, results, failed = _settings(chosen), Results(), []
    for section in chosen.only:
        print(f"\n== {section}", flush=True)
        try:
            module, function = SECTIONS[section]
            run = getattr(importlib.import_module(f"training.{module}"), function)
            run(settings, results)
        except Exception:
            traceback.print_exc()
            failed.append(section)
    for section in failed:
        results.note(f"the section {section!r} failed")
    print(f"\n{_setting_in_words(chosen)}\n\n{results.markdown()}")
    return 1 if failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", type=_some_of(SECTIONS), default=list(SECTIONS))
    parser.add_argument("--data", type=Path, help="the folder of mq2007")
    parser.add_argument("--movies", type=Path, help="the folder of msrd-movies")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=8, help="timed iterations in a turn")
    parser.add_argument("--warm", type=int, default=2, help="iterations before these")
    parser.add_argument("--shapes", type=_some_of("AB"), default=["A", "B"])
    parser.add_argument("--leaves", type=_numbers, default=[31, 200])
    parser.add_argument("--peers", type=_some_of(PEERS), default=list(PEERS))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="small shapes, to see that it runs")
    chosen = parser.parse_args()
    if min(chosen.turns, chosen.rounds, chosen.warm, chosen.threads) < 1:
        parser.error("turns, rounds, warm and threads are at least 1")
    return chosen


def _some_of(known: Any) -> Any:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def _numbers(text: str) -> list[int]:
    return [int(word) for word in text.split(",")]


def _settings(chosen: argparse.Namespace) -> Any:
    import shapes
    from training.settings import Settings

    return Settings(
        data=chosen.data,
        movies=chosen.movies,
        turns=chosen.turns,
        threads=chosen.threads,
        n_warm=chosen.warm,
        n_timed=chosen.rounds,
        smaller=QUICK if chosen.quick else 1,
        shapes=tuple(getattr(shapes, name) for name in chosen.shapes),
        leaves=tuple(chosen.leaves),
        peers=tuple(chosen.peers),
    )


def _setting_in_words(chosen: argparse.Namespace) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("rankinite", "numba", *PEERS))
    size = "small shapes, which say nothing about speed" if chosen.quick else "full shapes"
    return (
        f"{versions}; Python {platform.python_version()}; {chosen.threads} threads; {size}; "
        f"{chosen.turns} turns of {chosen.rounds} iterations behind {chosen.warm} not counted"
    )


if __name__ == "__main__":
    sys.exit(main())
