"""Backfitting: the weights of trees once more, one after the other (LambdaSMART, end of Sec. 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankinite.core.progress import Task
from rankinite.measures.along import Following
from rankinite.trees.forest import Forest

Floats = NDArray[np.float64]

# A gain that is not larger than this may be rounding.
SMALLEST_GAIN = 1e-12


@dataclass(frozen=True)
class Backfitting:
    """Finds for every tree the weight that is best while all others stay as they are.

    Attributes
    ----------
    measure
        What shall be best.
    X, rows
        The features, and the row of every document if they are indexed.
    before
        The scores before the first tree, in one row.
    bounds
        The least and the largest weight, where 1 is the present one.
    """

    measure: Following
    X: NDArray[np.float32]
    rows: NDArray[np.int64] | None
    before: Floats
    bounds: Sequence[float]

    def sweep(self, forest: Forest, task: Task) -> tuple[Forest, float, float]:
        """Go through all trees once; return them, and the measure before and after.

        The measure never falls: sums of trees with new weights round in another way than the sums
        that were followed, and if that costs more than was gained, the trees stay as they were.
        """
        low, high = self.bounds
        scores = self._scores(forest)
        before = value = self.measure.measure(scores)
        trees = list(forest.trees)
        nothing = np.zeros(1)
        for number, tree in enumerate(forest.trees):
            task.advance(1)
            alone = Forest((tree,), nothing, forest.n_features)
            own: Floats = alone.scores(self.X, self.rows)[0]
            rest = scores - own
            found = self.measure.best_step(rest, own, low, high, with_peaks=False)
            if found.value > value + SMALLEST_GAIN:
                trees[number] = replace(tree, value=tree.value * found.alpha)
                scores = rest + found.alpha * own
                value = found.value
        new = replace(forest, trees=tuple(trees))
        after = self.measure.measure(self._scores(new))
        return (new, before, after) if after > before else (forest, before, before)

    def _scores(self, forest: Forest) -> Floats:
        scores: Floats = forest.add_to(self.before.copy(), self.X, self.rows)[0]
        return scores
