"""Seconds of an iteration: against peers, on small data, as data grow, and with samples."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

import rankinite as rk
from peers import LIGHTGBM_MODES, UNQUANTISED, CatBoost, LightGBM, Ours, XGBoost, lightgbm_sets
from rankinite.trees.grower import Grower
from shapes import Arrays, Shape, mq2007
from training.settings import Settings
from turns import Results, Seconds, fastest, in_turns, print_times

TRUNCATION = 30
DEFAULT, EVERY_QUERY = "ours", "ours, all queries in every tree"
BOUNDS = {
    "LightGBM without quantisation": (0.7, 0.5),
    "LightGBM, best of all modes": (0.9, 0.6),
    "XGBoost": (0.5, 0.3),
    "CatBoost": (0.5, 0.3),
}
# Iterations on small data are short: so many times more of them are timed.
LONGER = 10
FEW = Shape("few", 1_000, 100, 136)
MANY = Shape("many", 8_000, 100, 136)


def iteration(settings: Settings, results: Results) -> None:
    """Compare with LightGBM, XGBoost and CatBoost, on simulated shapes and sizes of trees."""
    for shape in settings.shapes:
        train, valid = settings.simulate(shape)
        sets = lightgbm_sets(train, valid, settings.threads)
        ours = (train.data(), valid.data())
        binned = rk.BinnedData.make(ours[0].matrix, ours[0].feature_names)
        for n_leaves in settings.leaves:
            rivals = _rivals(settings, n_leaves, ours, binned, sets)
            rivals |= _other_peers(settings, n_leaves, train, valid)
            what = f"iteration, {settings.fitted(shape)}, {n_leaves} leaves"
            print(f"{what}:", flush=True)
            measured = in_turns(rivals, settings.turns)
            print_times(measured)
            leaves = "; ".join(f"{name} {rival.leaves:.0f}" for name, rival in rivals.items())
            print(f"  leaves of a tree: {leaves}", flush=True)
            _keep(what, measured, shape, results)


def _rivals(
    settings: Settings,
    n_leaves: int,
    ours: tuple[rk.RankingData, rk.RankingData],
    binned: rk.BinnedData,
    sets: Any,
) -> dict[str, Any]:
    """Return us and LightGBM in all modes, with truncated and with all pairs."""
    longest = int(ours[0].sizes.max())
    rivals: dict[str, Any] = {}
    for truncation in (TRUNCATION, None):
        task = settings.task(n_leaves, truncation)
        pairs = _pairs(truncation)
        rivals[f"{DEFAULT}, {pairs}"] = Ours(*ours, binned, task)
        rivals[f"{EVERY_QUERY}, {pairs}"] = Ours(*ours, binned, task, queries_per_tree=1.0)
        if "lightgbm" not in settings.peers or (truncation is None and longest <= TRUNCATION):
            continue
        for mode, options in LIGHTGBM_MODES.items():
            rivals[f"LightGBM {mode}, {pairs}"] = LightGBM(sets, task, options)
    return rivals


def _other_peers(settings: Settings, n_leaves: int, train: Arrays, valid: Arrays) -> dict[str, Any]:
    task = settings.task(n_leaves, TRUNCATION)
    peers: dict[str, Any] = {}
    if "xgboost" in settings.peers:
        peers["XGBoost"] = XGBoost(train, valid, task)
    if "catboost" in settings.peers:
        peers["CatBoost"] = CatBoost(train, valid, replace(task, n_warm=1))
    return peers


def _pairs(truncation: int | None) -> str:
    return "all pairs" if truncation is None else f"top {truncation} pairs"


def _keep(what: str, measured: Seconds, shape: Shape, results: Results) -> None:
    """Keep a ratio for every peer, for our defaults and for us with all queries."""
    for truncation in (TRUNCATION, None):
        pairs = _pairs(truncation)
        for ours in (DEFAULT, EVERY_QUERY):
            peers = _best_peers(measured, pairs, shape)
            if truncation is not None:
                peers |= {name: name for name in ("XGBoost", "CatBoost") if name in measured}
            for label, peer in peers.items():
                aside = "" if ours == DEFAULT else ", all queries in every tree"
                results.ratio(
                    f"{what}, {pairs}, against {label}{aside}",
                    measured[f"{ours}, {pairs}"],
                    measured[peer],
                    *(BOUNDS[label] if ours == DEFAULT else (None, None)),
                )


def _best_peers(measured: Seconds, pairs: str, shape: Shape) -> dict[str, str]:
    """Return LightGBM's fastest mode without quantisation, and of all."""
    # Where no query has more documents than the truncation, these are all pairs.
    own_pairs = _pairs(TRUNCATION) if shape.n_docs <= TRUNCATION else pairs
    names = {mode: f"LightGBM {mode}, {own_pairs}" for mode in LIGHTGBM_MODES}
    if not all(name in measured for name in names.values()):
        return {}
    return {
        "LightGBM without quantisation": fastest(measured, [names[m] for m in UNQUANTISED]),
        "LightGBM, best of all modes": fastest(measured, list(names.values())),
    }


def small(settings: Settings, results: Results) -> None:
    """Compare with LightGBM on fold 1 of mq2007, with 15 leaves."""
    if settings.data is None or not (settings.data / "S1.txt.gz").exists():
        results.note("small data: mq2007 is not there; give its folder with --data")
        return
    parts = mq2007(settings.data, 1)
    train, valid = parts["train"], parts["valid"]
    sets = lightgbm_sets(Arrays.of(train), Arrays.of(valid), settings.threads)
    dense = Arrays.of(train)
    data = rk.RankingData(dense.X, dense.y, group_sizes=dense.sizes, top_grade=2)
    binned = rk.BinnedData.make(data.matrix, data.feature_names)
    task = replace(settings.task(15, TRUNCATION, LONGER), learning_rate=0.05)
    rivals: dict[str, Any] = {
        "ours": Ours(data, valid, binned, task),
        "ours, all queries in every tree": Ours(data, valid, binned, task, queries_per_tree=1.0),
        "ours, all pairs": Ours(data, valid, binned, replace(task, truncation=None)),
    }
    ours = list(rivals)
    for mode, options in LIGHTGBM_MODES.items():
        rivals[f"LightGBM {mode}"] = LightGBM(sets, task, options)
    print("small data, mq2007 fold 1, 15 leaves:", flush=True)
    measured = in_turns(rivals, settings.turns)
    print_times(measured)
    best = fastest(measured, [name for name in rivals if name not in ours])
    for name in ours:
        asked = (1.0, 0.5) if name == "ours" else (None, None)
        aside = name.removeprefix("ours")
        what = f"small data (mq2007, 15 leaves){aside}, iteration against LightGBM's best mode"
        results.ratio(what, measured[name], measured[best], *asked)


def movies(settings: Settings, results: Results) -> None:
    """Compare with LightGBM on the Movie Search Ranking Dataset, by the settings that rank best."""
    if settings.movies is None or not (settings.movies / "train.txt.gz").exists():
        results.note("movies: the data set is not there; give its folder with --movies")
        return
    parts = ("train", "valid")
    loaded = [
        rk.load(settings.movies / f"{part}.txt.gz", top_grade=1, comments=False) for part in parts
    ]
    train, valid = (Arrays.of(part) for part in loaded)
    sets = lightgbm_sets(train, valid, settings.threads)
    ours = (train.data(), valid.data())
    binned = rk.BinnedData.make(ours[0].matrix, ours[0].feature_names)
    wins = {"normalise": "distance", "criterion": "newton", "queries_per_tree": 1.0}
    what = f"movies, {len(train.X):,} x {train.X.shape[1]}, 31 leaves"
    task = settings.task(31, None)
    rivals: dict[str, Any] = {
        "ours, normalised by distance": Ours(*ours, binned, task, **wins),
        "ours, preset": Ours(*ours, binned, task),
    }
    for mode, options in LIGHTGBM_MODES.items():
        rivals[f"LightGBM {mode}"] = LightGBM(sets, replace(task, truncation=TRUNCATION), options)
    print(f"{what}:", flush=True)
    measured = in_turns(rivals, settings.turns)
    print_times(measured)
    best = fastest(measured, [name for name in rivals if not name.startswith("ours")])
    for name in ("ours, normalised by distance", "ours, preset"):
        asked = (0.6, 0.35) if "distance" in name else (None, None)
        results.ratio(
            f"{what}, {name}, against LightGBM's best mode", measured[name], measured[best], *asked
        )


def growth(settings: Settings, results: Results) -> None:
    """Compare the time of a document at many and at few documents."""
    for n_leaves in settings.leaves:
        rivals, n_docs = {}, {}
        task = settings.task(n_leaves, rk.LambdaMART().truncation)
        for shape in (FEW, MANY):
            train, valid = (part.data() for part in settings.simulate(shape))
            binned = rk.BinnedData.make(train.matrix, train.feature_names)
            name = f"{train.n_docs:,} documents"
            rivals[name] = Ours(train, valid, binned, task)
            n_docs[name] = train.n_docs
        print(f"growth, {n_leaves} leaves, nanoseconds of a document:", flush=True)
        seconds = in_turns(rivals, settings.turns)
        measured = {name: [x / n_docs[name] for x in times] for name, times in seconds.items()}
        print_times(measured, "ns", 1e9)
        few, many = measured
        what = f"time of a document in an iteration, {many} over {few}, {n_leaves} leaves"
        results.ratio(what, measured[many], measured[few], 1.15)


def augmented(settings: Settings, results: Results) -> None:
    """Compare Aug50, which adds ten samples of half of each query, with the original.

    Iterations, and what growing the tree takes of them.
    """
    for shape in settings.shapes:
        train, valid = (part.data() for part in settings.simulate(shape))
        binned = rk.BinnedData.make(train.matrix, train.feature_names)
        more = rk.augment(train, fraction=0.5, times=10)
        for n_leaves, docs in itertools.product(settings.leaves, ("default", "all")):
            what = f"Aug50 over the original, {settings.fitted(shape)}, {n_leaves} leaves"
            options = {} if docs == "default" else {"queries_per_tree": 1.0}
            asked = (2.0, 1.3) if docs == "default" else (None, None)
            what += "" if docs == "default" else ", all queries in every tree"
            task = settings.task(n_leaves, rk.LambdaMART().truncation)
            sizes = f"{more.n_docs:,} over {train.n_docs:,} documents"
            print(f"{what}, {sizes}, truncation {task.truncation}:", flush=True)
            rivals = {
                "original": _Watched(Ours(train, valid, binned, task, **options)),
                "Aug50": _Watched(Ours(more, valid, binned, task, **options)),
            }
            _compare(what, rivals, asked, settings.turns, results)


def _compare(
    what: str,
    rivals: dict[str, _Watched],
    asked: tuple[float | None, float | None],
    turns: int,
    results: Results,
) -> None:
    """Measure both in turns; a sample of Aug50 has more different rows than one of the original."""
    measured = in_turns(rivals, turns)
    trees = {name: rival.kept for name, rival in rivals.items()}
    print_times({f"{name}, iteration": times for name, times in measured.items()})
    print_times({f"{name}, tree": times for name, times in trees.items()})
    results.ratio(f"{what}, iteration", measured["Aug50"], measured["original"], *asked)
    results.ratio(f"{what}, growing the tree only", trees["Aug50"], trees["original"])


class _Watched:
    """A rival whose time of growing trees is kept as well."""

    def __init__(self, rival: Ours) -> None:
        self.rival = rival
        self.kept: list[float] = []

    def __call__(self) -> float:
        """Train, and return the seconds of an iteration."""
        with _clocked(Grower, "grow") as times:
            seconds = self.rival()
        self.kept.append(float(np.median(times[-self.rival.task.n_timed :])))
        return seconds


@contextmanager
def _clocked(owner: Any, name: str) -> Iterator[list[float]]:
    """Keep the seconds of every call of a method."""
    original = getattr(owner, name)
    times: list[float] = []

    def timed(*args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        result = original(*args, **options)
        times.append(time.perf_counter() - start)
        return result

    setattr(owner, name, timed)
    try:
        yield times
    finally:
        setattr(owner, name, original)
