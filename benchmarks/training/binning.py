"""Preparing data: our bins against LightGBM's constructed data set."""

from __future__ import annotations

from typing import Any

import lightgbm as lgb

import rankinite as rk
from peers import lightgbm_binning
from shapes import Arrays
from training.settings import Settings
from verdicts import Results, in_turns, per_call, print_times


def run(settings: Settings, results: Results) -> None:
    """Bin the training set of every shape."""
    for shape in settings.shapes:
        train, _ = settings.simulate(shape)
        data = train.data()
        what = f"preparing the data, {settings.fitted(shape)}"
        print(f"{what}:", flush=True)
        rivals = {
            "ours": per_call(lambda data=data: _make(data)),
            "ours, with the checks of RankingData": per_call(lambda t=train: _make(t.data())),
            "LightGBM": per_call(lambda t=train: _construct(t, settings.threads)),
        }
        for rival in rivals.values():
            rival()
        measured = in_turns(rivals, settings.turns)
        print_times(measured)
        theirs = measured["LightGBM"]
        results.ratio(f"{what}, against LightGBM's construct", measured["ours"], theirs, 0.5, 0.2)
        checked = measured["ours, with the checks of RankingData"]
        results.ratio(f"{what}, with the checks of RankingData", checked, theirs)


def _make(data: rk.RankingData) -> rk.BinnedData:
    return rk.BinnedData.make(data.matrix, data.feature_names)


def _construct(train: Arrays, threads: int) -> Any:
    parameters = lightgbm_binning(threads)
    return lgb.Dataset(train.X, train.y, group=train.sizes, params=parameters).construct()
