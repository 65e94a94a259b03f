"""The test bed of defaults: every system on every data set, by repeated cross-validation.

    python benchmarks/defaults.py DATA --out RESULTS [--quick] [--seeds 5] [--jobs 2] [--equal]
        [--sets mq2007,challenge-1000] [--systems "LambdaMART; LambdaMART n_leaves=15; MART"]
        [--reference LambdaMART] [--tables]

DATA holds the folders of real data sets; the others are simulated. Every seed deals the queries of
a set into five folds: three to train on, one for early stopping, one to measure, in turn; of large
sets each seed measures one of the five. So nothing is chosen by the queries that are measured.
Systems are those of `rankers`, with their own defaults, or with --equal with the same number of
trees, leaves and learning rate; our rankers also with parameters.

RESULTS has one file for every trained model: a killed run resumes, and what is there is not trained
again. Results of our rankers depend on the code, whose hash is in the name of the file: after an
edit they are trained again. With --tables nothing is trained, and the newest results are shown.

The tables have NDCG@10 with its standard error over queries, the mean rank of each system over
sets, paired tests against the reference, by set and over all sets together (every set counts the
same), and the seconds of a whole fit on one thread beside as many others as there are jobs. A
query's value is the mean over seeds.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, rankdata

QUICK_SETS = ("yandex", "lightgbm-rank", "challenge-200", "polynomials-200")
QUICK_SYSTEMS = ("LambdaMART", "MART", "LightGBM-lambdarank", "XGBoost-ndcg", "CatBoost-QueryRMSE")
SYSTEMS = (
    "LambdaMART",
    "MART",
    "LambdaRank",
    "LightGBM-lambdarank",
    "LightGBM-xendcg",
    "XGBoost-ndcg",
    "XGBoost-map",
    "XGBoost-pairwise",
    "CatBoost-QueryRMSE",
    "CatBoost-YetiRank",
    "CatBoost-YetiRankPairwise",
    "sklearn-MLP",
)
N_FOLDS = 5
# A fold of a larger set has queries enough, and takes long: each seed measures one of the five.
MOST_QUERIES_FOR_ALL_FOLDS = 2_000


@dataclass(frozen=True)
class Cell:
    """One training: a system on a set whose queries a seed has dealt, and the fold to measure."""

    set_name: str
    system: str
    seed: int
    fold: int

    def folder(self, out: Path, equal: bool) -> Path:
        """Return the folder of the results of the system on the set."""
        name = self.system.replace(" ", "_").replace("/", "-") + (",equal" if equal else "")
        return out / self.set_name / name

    def deal(self, n_queries: int) -> tuple[NDArray[np.int64], ...]:
        """Return the queries to train on, to stop by and to measure."""
        # All seeds of a large set share one deal: each measures another fold of it.
        number = self.seed if n_queries <= MOST_QUERIES_FOR_ALL_FOLDS else 0
        order = np.random.default_rng([number, n_queries]).permutation(n_queries)
        parts = np.array_split(order, N_FOLDS)
        test, valid, *train = (parts[(self.fold + k) % N_FOLDS] for k in range(N_FOLDS))
        return np.sort(np.concatenate(train)), np.sort(valid), np.sort(test)


@dataclass
class Result:
    """What a system reached on a set: values of queries, seconds and rounds of trainings."""

    values: dict[int, list[float]] = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)
    rounds: list[int] = field(default_factory=list)

    def per_query(self) -> dict[int, float]:
        """Return the mean over seeds of every query that counts."""
        means = {query: float(np.mean(values)) for query, values in self.values.items()}
        return {query: mean for query, mean in means.items() if not np.isnan(mean)}

    def mean_and_error(self) -> tuple[float, float]:
        """Return the mean over queries, and its standard error."""
        return _mean_and_error(list(self.per_query().values()))

    def minus(self, other: Result) -> tuple[float, float]:
        """Return the mean difference over the queries of both, and its standard error."""
        ours, theirs = self.per_query(), other.per_query()
        return _mean_and_error([ours[query] - theirs[query] for query in ours.keys() & theirs])


Results = Mapping[str, Mapping[str, Result]]


def main() -> int:
    """Train what is missing, and print the tables."""
    # Numba reads this when it is imported, here and in the processes of joblib.
    for name in ("RANKINITE_THREADS", "OMP_NUM_THREADS"):
        os.environ[name] = "1"
    chosen = _arguments()
    if not chosen.tables:
        for set_name in chosen.sets:
            _train_on(set_name, chosen)
    results = {
        set_name: {
            system: _read(Cell(set_name, system, 0, 0).folder(chosen.out, chosen.equal))
            for system in chosen.systems
        }
        for set_name in chosen.sets
    }
    print(tables(results, chosen.reference))
    return 0


# Training


def _train_on(set_name: str, chosen: argparse.Namespace) -> None:
    """Train every system on a set, where its result is missing."""
    from sets import load_set

    n_queries = load_set(set_name, chosen.data).n_queries
    whole = n_queries <= MOST_QUERIES_FOR_ALL_FOLDS
    cells = [
        Cell(set_name, system, seed, fold)
        for seed in range(chosen.seeds)
        for fold in (range(N_FOLDS) if whole else [seed % N_FOLDS])
        for system in chosen.systems
    ]
    paths = {cell: _path(cell, chosen) for cell in cells}
    missing = {cell: path for cell, path in paths.items() if not path.exists()}
    jobs = joblib.Parallel(chosen.jobs, return_as="generator_unordered")
    run = joblib.delayed(_run)
    for line in jobs(run(cell, chosen.data, chosen.equal, path) for cell, path in missing.items()):
        print(line, flush=True)


def _path(cell: Cell, chosen: argparse.Namespace) -> Path:
    """Return the file of a result; that of a ranker of ours has the hash of its code."""
    from rankers import system_of
    from rankinite.core.sources import module_hash

    is_ours = system_of(cell.system).is_ours
    version = f"-{module_hash('rankinite.models')}" if is_ours else ""
    name = f"{cell.seed}-{cell.fold}{version}.npz"
    return cell.folder(chosen.out, chosen.equal) / name


def _run(cell: Cell, folder: Path, equal: bool, path: Path) -> str:
    """Train and measure one cell; write its result, and return a line about it."""
    import rankinite as rk
    from rankers import EQUAL_SIZES, OWN_DEFAULTS, STOP_BY, system_of
    from sets import load_set

    data = load_set(cell.set_name, folder)
    deal = cell.deal(data.n_queries)
    train, valid, test = (data[queries] for queries in deal)
    plan = EQUAL_SIZES if equal else OWN_DEFAULTS
    start = time.perf_counter()
    model = system_of(cell.system).fit(plan, train, valid, cell.seed)
    seconds = time.perf_counter() - start
    values = rk.evaluate(model.score(test), test, STOP_BY).per_query[STOP_BY]
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}.tmp")
    with beside.open("wb") as file:
        np.savez(file, queries=deal[2], values=values, seconds=seconds, rounds=model.n_trees)
    beside.replace(path)
    reached = f"{np.nanmean(values):.4f}, {model.n_trees} rounds, {seconds:.1f} s"
    return f"{cell.set_name}, {cell.system}, seed {cell.seed}, fold {cell.fold}: {reached}"


# Tables


def _read(folder: Path) -> Result:
    """Return the newest results in a folder."""
    newest: dict[str, Path] = {}
    for path in sorted(folder.glob("*.npz"), key=lambda path: path.stat().st_mtime):
        newest["-".join(path.stem.split("-")[:2])] = path
    result = Result()
    for path in newest.values():
        with np.load(path) as file:
            for query, value in zip(file["queries"], file["values"], strict=True):
                result.values.setdefault(int(query), []).append(float(value))
            result.seconds.append(float(file["seconds"]))
            result.rounds.append(int(file["rounds"]))
    return result


def tables(results: Results, reference: str) -> str:
    """Return the tables of quality, of tests and of cost, as Markdown."""
    systems = [
        system
        for system in next(iter(results.values()))
        if all(row[system].values for row in results.values())
    ]
    if not systems:
        return "no system has a result on every set"
    shown = [_quality(results, systems), _cost(results, systems)]
    if reference in systems:
        shown.insert(1, _tests(results, systems, reference))
    return "\n\n".join(shown)


def _quality(results: Results, systems: Sequence[str]) -> str:
    reached = {
        system: [row[system].mean_and_error() for row in results.values()] for system in systems
    }
    means = np.array([[mean for mean, _ in cells] for cells in reached.values()])
    ranks = rankdata(-means, axis=0).mean(axis=1)
    rows = [
        [
            systems[k],
            f"{ranks[k]:.2f}",
            f"{means[k].mean():.4f}",
            *(f"{mean:.4f} ± {error:.4f}" for mean, error in reached[systems[k]]),
        ]
        for k in np.argsort(ranks, kind="stable")
    ]
    return _table("NDCG@10", ["System", "mean rank", "mean", *results], rows)


def _tests(results: Results, systems: Sequence[str], reference: str) -> str:
    rows = []
    for system in systems:
        if system == reference:
            continue
        by_set = [row[reference].minus(row[system]) for row in results.values()]
        differences, errors = np.array(by_set).T
        # Sets are independent of each other, so the squares of their errors add up.
        total = (float(differences.mean()), float(np.sqrt((errors**2).sum())) / len(errors))
        rows.append([system, *(f"{d:+.4f} ({_p_value(d, e)})" for d, e in (total, *by_set))])
    title = f"{reference} minus another system (p)"
    return _table(title, ["System", "all sets", *results], rows)


def _cost(results: Results, systems: Sequence[str]) -> str:
    rows = [
        [
            system,
            *(
                f"{np.mean(row[system].seconds):.1f} / {np.mean(row[system].rounds):.0f}"
                for row in results.values()
            ),
        ]
        for system in systems
    ]
    return _table("Seconds of a fit / rounds kept", ["System", *results], rows)


def _mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    array = np.array(values)
    return float(array.mean()), float(array.std(ddof=1) / np.sqrt(len(array)))


def _p_value(difference: float, error: float) -> str:
    # Normal, not t: there are dozens of queries at least.
    return f"{2.0 * norm.sf(abs(difference) / error):.2g}" if error > 0.0 else "1"


def _table(title: str, columns: Iterable[str], rows: Iterable[Sequence[str]]) -> str:
    from rankinite.evaluation.tables import Table

    return Table(title, tuple(columns), tuple(map(tuple, rows))).to_markdown()


# Arguments


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with the folders of real data sets")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--sets", type=lambda text: text.split(","), help="all if not given")
    parser.add_argument("--systems", type=_systems, help="systems, separated by ;")
    parser.add_argument("--equal", action="store_true", help="equal trees, leaves and rate")
    parser.add_argument("--quick", action="store_true", help="small sets and few systems")
    parser.add_argument("--seeds", type=int, help="how often queries are dealt; 5, or 2 if quick")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes side by side")
    parser.add_argument("--reference", help="the system that others are compared with; the first")
    parser.add_argument("--tables", action="store_true", help="train nothing, show what is there")
    chosen = parser.parse_args()
    chosen.systems = chosen.systems or list(QUICK_SYSTEMS if chosen.quick else SYSTEMS)
    chosen.seeds = chosen.seeds or (2 if chosen.quick else N_FOLDS)
    chosen.reference = chosen.reference or chosen.systems[0]
    chosen.sets = chosen.sets or (list(QUICK_SETS) if chosen.quick else None)
    return _checked(parser, chosen)


def _checked(parser: argparse.ArgumentParser, chosen: argparse.Namespace) -> Any:
    from rankers import system_of
    from sets import REAL, SETS, folder_of

    chosen.sets = chosen.sets or list(SETS)
    for name in chosen.sets:
        if name not in SETS:
            parser.error(f"there is no set {name!r}; known are {', '.join(SETS)}")
        folder = folder_of(name)
        if folder in REAL and not (chosen.data / folder).is_dir() and not chosen.tables:
            parser.error(f"{chosen.data} has no folder {folder}; choose other sets with --sets")
    for system in chosen.systems:
        try:
            system_of(system)
        except ValueError as problem:
            parser.error(str(problem))
    return chosen


def _systems(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split(";") if part.strip()]


if __name__ == "__main__":
    sys.exit(main())
