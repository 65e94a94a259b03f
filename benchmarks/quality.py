"""How good rankings are: LambdaMART and others beside LightGBM, XGBoost and CatBoost on mq2007.

    python benchmarks/quality.py FOLDER [--part valid|test] [--systems LambdaMART,McRank,...]
        [--set queries_per_tree=0.7 --set truncation=30] [--seeds 1] [--folds 1,2,3,4,5]
        [--trees 1000] [--patience 100] [--threads 2]

Five folds: fold k trains on S_k to S_(k+2), chooses the number of trees by NDCG@10 on S_(k+3) and
is tested on S_(k+4). 15 leaves (depth 5 for CatBoost), learning rate 0.05. Queries without a
relevant document are left out of NDCG and MAP. By default the validation parts are reported, so
that choosing settings never opens the test parts; those values flatter everyone, as the number of
trees was chosen there. Tests compare each system with our LambdaMART, query by query, over all
folds.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from outcomes import Outcome

MEASURES = ("NDCG@10", "ERR@10", "MAP")
PEERS = ("lightgbm", "xgboost", "catboost")


def main() -> int:
    """Train the chosen systems on the chosen folds, and print tables."""
    chosen = _arguments()
    for name in ("RANKINITE_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = str(chosen.threads)
    from rankers import OURS, SYSTEMS, Plan

    names = chosen.systems or list(SYSTEMS)
    unknown = [name for name in names if name not in SYSTEMS]
    if unknown:
        print(f"unknown systems: {unknown}; known are {', '.join(SYSTEMS)}", file=sys.stderr)
        return 2
    names = [OURS, *(name for name in names if name != OURS)]
    plan = Plan(chosen.trees, chosen.patience, chosen.threads, ours=dict(chosen.set))
    outcomes = {name: Outcome() for name in names}
    for fold in chosen.folds:
        _run_fold(fold, plan, {name: SYSTEMS[name] for name in names}, outcomes, chosen)
    print(f"\n{_in_words(chosen)}\n")
    print(means_table(outcomes))
    print(f"\nagainst {OURS}, over the same queries:\n")
    print(tests_table(outcomes, OURS))
    return 0


def _run_fold(
    fold: int,
    plan: Any,
    systems: dict[str, Any],
    outcomes: dict[str, Outcome],
    chosen: argparse.Namespace,
) -> None:
    """Train every system on one fold; keep what it reaches on the part that was asked for."""
    from shapes import mq2007

    parts = mq2007(chosen.folder, fold)
    for name, system in systems.items():
        start = time.perf_counter()
        seeds = range(chosen.seeds if system.by_chance else 1)
        models = [system.fit(plan, parts["train"], parts["valid"], seed) for seed in seeds]
        outcome = outcomes[name]
        outcome.seconds += (time.perf_counter() - start) / len(models)
        outcome.n_trees += [model.n_trees for model in models]
        _keep(outcome, models, parts[chosen.part])
        reached = ", ".join(f"{m} {outcome.last(m):.4f}" for m in MEASURES)
        trees = np.mean([model.n_trees for model in models])
        print(f"fold {fold}, {chosen.part}, {name}: {reached}; {trees:.0f} trees", flush=True)


def _keep(outcome: Outcome, models: list[Any], data: Any) -> None:
    """Evaluate models on a data set; a query's value is the mean over seeds."""
    import rankinite as rk

    evaluations = [rk.evaluate(model.score(data), data, MEASURES).per_query for model in models]
    outcome.keep({m: np.mean([values[m] for values in evaluations], axis=0) for m in MEASURES})


def means_table(outcomes: dict[str, Outcome]) -> str:
    """Return a table of means over folds, the best first."""
    lines = ["| system | " + " | ".join(MEASURES) + " | trees | seconds a fold |"]
    lines.append("|---" * (len(MEASURES) + 3) + "|")
    order = sorted(outcomes, key=lambda name: -outcomes[name].mean(MEASURES[0]))
    for name in order:
        outcome = outcomes[name]
        values = " | ".join(f"{outcome.mean(measure):.4f}" for measure in MEASURES)
        seconds = outcome.seconds / len(outcome.values[MEASURES[0]])
        lines.append(f"| {name} | {values} | {np.mean(outcome.n_trees):.0f} | {seconds:.1f} |")
    return "\n".join(lines)


def tests_table(outcomes: dict[str, Outcome], ours: str) -> str:
    """Return a table of paired tests of every other system against ours."""
    from rankinite.stats.paired_tests import randomisation_test, t_test

    lines = ["| system | measure | theirs - ours | p (t-test) | p (randomisation) | queries |"]
    lines.append("|---|---|---|---|---|---|")
    for name, outcome in outcomes.items():
        if name == ours:
            continue
        for measure in MEASURES:
            both = np.stack([outcome.pooled(measure), outcomes[ours].pooled(measure)])
            counted = both[:, ~np.isnan(both[0])]
            theirs, ours = counted.mean(axis=1)
            lines.append(
                f"| {name} | {measure} | {theirs - ours:+.4f} | {t_test(counted)[0, 1]:.3g} "
                f"| {randomisation_test(counted)[0, 1]:.3g} | {counted.shape[1]} |"
            )
    return "\n".join(lines)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where S1.txt.gz to S5.txt.gz are")
    parser.add_argument("--part", choices=["valid", "test"], default="valid")
    parser.add_argument("--systems", type=lambda text: text.split(","), help="all if not given")
    parser.add_argument("--set", type=_override, action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--seeds", type=int, default=1, help="how often chance has its say")
    parser.add_argument("--folds", type=_folds, default=[1, 2, 3, 4, 5])
    parser.add_argument("--trees", type=int, default=1000)
    parser.add_argument("--patience", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    chosen = parser.parse_args()
    if not (chosen.folder / "S1.txt.gz").exists():
        parser.error(f"{chosen.folder} has no S1.txt.gz; give the folder of mq2007")
    if min(chosen.seeds, chosen.trees, chosen.patience, chosen.threads) < 1:
        parser.error("seeds, trees, patience and threads are at least 1")
    return chosen


def _override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def _folds(text: str) -> list[int]:
    folds = [int(word) for word in text.split(",")]
    if not all(1 <= fold <= 5 for fold in folds):
        raise argparse.ArgumentTypeError("folds are numbered 1 to 5")
    return folds


def _in_words(chosen: argparse.Namespace) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in ("rankinite", *PEERS))
    settings = ", ".join(f"{key}={value!r}" for key, value in chosen.set) or "defaults"
    return (
        f"{chosen.part} parts of folds {', '.join(map(str, chosen.folds))}; "
        f"LambdaMART with {settings}; {chosen.trees} trees at most, patience {chosen.patience}, "
        f"seeds {chosen.seeds}; {versions}"
    )


if __name__ == "__main__":
    sys.exit(main())
