"""Seconds of an iteration against LightGBM, XGBoost and CatBoost, on two simulated shapes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rankinite as rk
from peers import LIGHTGBM_MODES, UNQUANTISED, CatBoost, LightGBM, Ours, XGBoost, lightgbm_sets
from shapes import Arrays, Shape
from training.settings import Settings
from verdicts import Results, Seconds, fastest, in_turns, print_times

TRUNCATION = 30
DEFAULT, EVERY_QUERY = "ours", "ours, all queries in every tree"
BOUNDS = {
    "LightGBM without quantisation": (0.7, 0.5),
    "LightGBM, best of all modes": (0.9, 0.6),
    "XGBoost": (0.5, 0.3),
    "CatBoost": (0.5, 0.3),
}


def run(settings: Settings, results: Results) -> None:
    """Go through the shapes and sizes of trees."""
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
