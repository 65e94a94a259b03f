"""The winning system against its best member, and against LightGBM, XGBoost and CatBoost.

    python benchmarks/winner.py quality --mq2007 FOLDER [--recipe winner-small] [--size 0.1]
        [--rivals LightGBM-lambdarank,...]
    python benchmarks/winner.py speed [--recipe winner-small] [--size 0.1] [--turns 1] [--jobs 2]
    python benchmarks/winner.py jobs [--recipe winner-small] [--size 0.1] [--turns 1] [--jobs 2]

Quality: on the simulated challenge at a share of Set 1, and on mq2007 in five folds. Every system
is given the training and the validation queries. The recipe, which cuts folds of its own, trains on
both. Rivals have as many trees at most as each of the recipe's LambdaMARTs. They are trained with
as many leaves and the same learning rate (CatBoost: symmetric trees of about as many leaves), and
with small trees (15 leaves, or a depth of 5) and a rate of 0.05; whichever is better by NDCG@10 of
the validation queries, which also stop them, counts. As the recipe does, they are then trained
again, on both sets, with the number of trees that was best: both are in the table. All else is as
rivals have it by default; winner-small has shares of queries and features, and sizes of leaves,
that were chosen by validation queries of both kinds of data. On mq2007 the validation part of each
fold is the test part of another, so these parameters, unlike those of rivals, owe something to all
its queries. The best member is the one that the first stage says is best, so it is chosen without
the test queries. Tests compare with the ensemble, query by query, over all folds.

Speed: the whole run, from data in memory to the report, against the same plan with LightGBM for
all models of trees: the same cuts, samples, features, numbers of trees and leaves, shares of
queries and features a tree, and as many processes of as many threads; each set is made in the way
that costs LightGBM least. Nets are ours in both. Trees of winner-small are symmetric, which costs
less a leaf; LightGBM has none such, and grows leaf by leaf. It has no lambdas for ERR, and no
squared error within queries: its NDCG, and its squared error, stand in for them. The search for a
subset, models as one file, tables and report are in our time only.

Jobs: the whole run with several units at once, a thread each, against one at a time with all
threads.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from outcomes import Outcome

MEASURES = ("NDCG@10", "ERR")
ENSEMBLE, BEST = "the ensemble", "its best member"
RIVALS = (
    "LightGBM-lambdarank",
    "LightGBM-xendcg",
    "XGBoost-ndcg",
    "CatBoost-YetiRank",
    "CatBoost-QueryRMSE",
)
ON_ALL = ", trained again"
MUST, GOAL = 1.0, 0.5


def main() -> int:
    """Measure what was asked for, and print tables."""
    chosen = _arguments()
    for name in ("OMP_NUM_THREADS", "RANKINITE_THREADS"):
        os.environ.setdefault(name, str(chosen.threads))
    with tempfile.TemporaryDirectory() as folder:
        measure = {"quality": _measure_quality, "speed": _measure_speed, "jobs": _measure_jobs}
        measure[chosen.what](chosen, Path(folder))
    return 0


def _measure_quality(chosen: argparse.Namespace, folder: Path) -> None:
    for title, cases in _data_sets(chosen):
        again = [name + ON_ALL for name in chosen.rivals]
        outcomes = {name: Outcome() for name in (ENSEMBLE, BEST, *chosen.rivals, *again)}
        for name, parts in cases:
            _run_recipe(chosen, parts, folder / name, outcomes)
            _run_rivals(chosen, parts, outcomes)
            reached = ", ".join(
                f"{k} {outcome.last(MEASURES[0]):.4f}" for k, outcome in outcomes.items()
            )
            print(f"{title}, {name}: {MEASURES[0]}: {reached}", flush=True)
        print(f"\n{title}; recipe {chosen.recipe}, seed {chosen.seed}\n")
        print(table(outcomes) + "\n", flush=True)


def _data_sets(chosen: argparse.Namespace) -> Iterator[tuple[str, Iterator[tuple[str, Any]]]]:
    if "challenge" in chosen.data:
        yield f"simulated challenge, {chosen.size:g} of Set 1", iter([("once", _challenge(chosen))])
    if "mq2007" in chosen.data:
        from shapes import mq2007

        yield (
            "mq2007",
            ((f"fold {k}", mq2007(chosen.mq2007, k)) for k in range(1, chosen.folds + 1)),
        )


def _challenge(chosen: argparse.Namespace) -> dict[str, Any]:
    import rankinite as rk
    from rankinite.data.simulate.markets import MARKETS

    return {
        part: rk.challenge(round(n * chosen.size), part=part, seed=chosen.seed)
        for part, n in MARKETS[1].queries.items()
    }


def _recipe(chosen: argparse.Namespace) -> Any:
    from rankinite.runs.recipe_reader import read_recipe

    return read_recipe(chosen.recipe)


def _run_recipe(
    chosen: argparse.Namespace, parts: dict[str, Any], out: Path, outcomes: dict[str, Outcome]
) -> None:
    import rankinite as rk
    from rankinite.runs.run import run_recipe

    train = rk.concat([parts["train"], parts["valid"]])
    begun = time.perf_counter()
    done = run_recipe(_recipe(chosen), train, test=parts["test"], out=out, jobs=chosen.jobs)
    seconds = time.perf_counter() - begun
    shutil.rmtree(out)
    evaluations = done.results.outcomes["test"].members
    best = done.results.selection.best_member
    for name, evaluation in ((ENSEMBLE, evaluations["ensemble"]), (BEST, evaluations[best])):
        outcomes[name].keep(evaluation.per_query)
    outcomes[ENSEMBLE].seconds += seconds
    print(f"  chosen: {', '.join(done.results.selection.chosen)}; best member {best}")
    alone = (
        f"{name} {evaluation.mean[MEASURES[0]]:.4f}" for name, evaluation in evaluations.items()
    )
    print(f"  test, {MEASURES[0]}: {', '.join(alone)}", flush=True)


def _run_rivals(
    chosen: argparse.Namespace, parts: dict[str, Any], outcomes: dict[str, Outcome]
) -> None:
    import rankinite as rk
    from rankers import SYSTEMS, Plan

    train, valid, test = (parts[part] for part in ("train", "valid", "test"))
    trees = _recipe(chosen).models["M5"].parameters
    small = Plan(trees["n_trees"], patience=trees["n_trees"], threads=chosen.threads)
    alike = replace(
        small,
        n_leaves=trees["n_leaves"],
        depth=round(math.log2(trees["n_leaves"])),
        learning_rate=trees["learning_rate"],
    )
    for name in chosen.rivals:
        fit = SYSTEMS[name].fit
        begun = time.perf_counter()
        fitted = [(plan, fit(plan, train, valid, chosen.seed)) for plan in (alike, small)]
        plan, model = max(fitted, key=lambda rival: _worth(rival[1], valid)[MEASURES[0]])
        outcomes[name].seconds += time.perf_counter() - begun
        print(f"  {name}: {plan.n_leaves} leaves, {model.n_trees} trees", flush=True)
        again = fit(
            replace(plan, n_trees=model.n_trees), rk.concat([train, valid]), None, chosen.seed
        )
        outcomes[name + ON_ALL].seconds += time.perf_counter() - begun
        for title, rival in ((name, model), (name + ON_ALL, again)):
            outcomes[title].keep(rk.evaluate(rival.score(test), test, MEASURES).per_query)


def _worth(model: Any, data: Any) -> dict[str, float]:
    import rankinite as rk

    return rk.evaluate(model.score(data), data, MEASURES).mean


def table(outcomes: dict[str, Outcome]) -> str:
    """Return means, and how far each system is below the ensemble, as Markdown."""
    from rankinite.stats.paired_tests import gain_and_p

    head = " | ".join(f"{m} | ensemble - it | p" for m in MEASURES)
    lines = [f"| system | {head} | seconds |", "|---" * (3 * len(MEASURES) + 2) + "|"]
    for name, outcome in outcomes.items():
        cells = []
        for m in MEASURES:
            cells.append(f"{outcome.mean(m):.4f}")
            gain, p = gain_and_p(outcomes[ENSEMBLE].pooled(m), outcome.pooled(m))
            cells += ["", ""] if name == ENSEMBLE else [f"{gain:+.4f}", f"{p:.2g}"]
        seconds = f"{outcome.seconds:.0f}" if outcome.seconds else "(in the above)"
        lines.append(f"| {name} | {' | '.join(cells)} | {seconds} |")
    return "\n".join(lines)


def _measure_speed(chosen: argparse.Namespace, folder: Path) -> None:
    from lightgbm_plan import run_with_lightgbm
    from turns import Results

    parts = _warmed_up(chosen, folder, chosen.jobs)
    ours, theirs = [], []
    for turn in range(chosen.turns):
        done, seconds = _timed_run(chosen, parts, folder / f"{turn}", chosen.jobs)
        ours.append(seconds)
        out = folder / f"{turn}-lightgbm"
        begun = time.perf_counter()
        other = run_with_lightgbm(
            _recipe(chosen), *parts.values(), done.results.selection.chosen, out, jobs=chosen.jobs
        )
        theirs.append(time.perf_counter() - begun)
        shutil.rmtree(out)
        print(
            f"turn {turn + 1}: ours {ours[-1]:.0f} s, with LightGBM {theirs[-1]:.0f} s", flush=True
        )
        reached = done.results.outcomes["test"].members["ensemble"].mean
        print(f"  chosen: {', '.join(done.results.selection.chosen)}")
        print(f"  test: ours {reached}, with LightGBM {other}", flush=True)
    results = Results()
    results.ratio("the whole run", ours, theirs, must=MUST, goal=GOAL)
    print(results.markdown())


def _measure_jobs(chosen: argparse.Namespace, folder: Path) -> None:
    from turns import Results

    parts = _warmed_up(chosen, folder, chosen.jobs, 1)
    several, single = [], []
    for turn in range(chosen.turns):
        for jobs, times in ((chosen.jobs, several), (1, single)):
            times.append(_timed_run(chosen, parts, folder / f"{turn}-{jobs}", jobs)[1])
            print(f"turn {turn + 1}, {jobs} at once: {times[-1]:.0f} s", flush=True)
    results = Results()
    results.ratio(f"{chosen.jobs} units at once, against one", several, single)
    print(results.markdown())


def _warmed_up(chosen: argparse.Namespace, folder: Path, *jobs: int) -> dict[str, Any]:
    """Return the data, when all kernels are compiled, for so many units at once each."""
    import rankinite as rk
    from rankinite.runs.run import run_recipe

    parts = _challenge(chosen)
    print(f"train {parts['train']}\ntest  {parts['test']}\n{rk.__version__}", flush=True)
    small = [data[: max(60, data.n_queries // 20)] for data in parts.values()]
    for n in jobs:
        run_recipe(_recipe(chosen), *small, out=folder / f"warm-{n}", jobs=n)
    return parts


def _timed_run(
    chosen: argparse.Namespace, parts: dict[str, Any], out: Path, jobs: int
) -> tuple[Any, float]:
    from rankinite.runs.run import run_recipe

    begun = time.perf_counter()
    done = run_recipe(_recipe(chosen), *parts.values(), out=out, jobs=jobs)
    seconds = time.perf_counter() - begun
    shutil.rmtree(out)
    return done, seconds


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=["quality", "speed", "jobs"])
    parser.add_argument("--data", choices=["challenge", "mq2007", "both"], default="both")
    parser.add_argument("--mq2007", type=Path, help="where S1.txt.gz to S5.txt.gz are")
    parser.add_argument("--recipe", default="winner-small")
    parser.add_argument("--size", type=float, default=0.1, help="share of the challenge's Set 1")
    parser.add_argument("--folds", type=int, default=5, help="how many folds of mq2007")
    parser.add_argument("--rivals", type=_rivals, default=RIVALS, help="all if not given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2, help="of a rival")
    parser.add_argument("--turns", type=int, default=1)
    chosen = parser.parse_args()
    chosen.data = ("challenge", "mq2007") if chosen.data == "both" else (chosen.data,)
    needs_files = chosen.what == "quality" and "mq2007" in chosen.data
    if needs_files and not (chosen.mq2007 and (chosen.mq2007 / "S1.txt.gz").exists()):
        parser.error("give the folder of mq2007, which has S1.txt.gz: --mq2007 FOLDER")
    return chosen


def _rivals(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    unknown = [name for name in names if name not in RIVALS]
    if unknown:
        raise argparse.ArgumentTypeError(f"{unknown}; known are {', '.join(RIVALS)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
