"""Small data: an iteration on fold 1 of mq2007, 15 leaves, against LightGBM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import rankinite as rk
from peers import LIGHTGBM_MODES, LightGBM, Ours, lightgbm_sets
from shapes import Arrays, mq2007
from training.settings import Settings
from verdicts import Results, fastest, in_turns, print_times

TRUNCATION = 30
LONGER = 10


def run(settings: Settings, results: Results) -> None:
    """Train on the three training parts, with the validation part."""
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
