"""How cost grows: the time of a document in an iteration, at many and at few documents."""

from __future__ import annotations

import rankinite as rk
from peers import Ours
from shapes import Shape
from training.settings import Settings
from verdicts import Results, in_turns, print_times

FEW = Shape("few", 1_000, 100, 136)
MANY = Shape("many", 8_000, 100, 136)


def run(settings: Settings, results: Results) -> None:
    """Train on both, in turns."""
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
