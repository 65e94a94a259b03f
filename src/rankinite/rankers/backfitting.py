"""Backfitting: the weights of trees once more, one after the other (LambdaSMART, end of Sec. 4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankinite.core.progress import Task
from rankinite.measures.along import Following
from rankinite.trees.tree import Tree

Floats = NDArray[np.float64]
Trees = tuple[Tree, ...]

# A value that is not larger than this may be rounding.
SMALLEST_GAIN = 1e-12


@dataclass(frozen=True)
class Backfitting:
    """Finds for every tree the weight that is best while all others stay as they are.

    Attributes
    ----------
    measure
        What shall be best.
    sum_of
        From trees to the sum of their values, one a document, and of what they start from.
    value_of
        From a tree to its values, one a document.
    bounds
        The least and the largest weight, where 1 is the present one.
    """

    measure: Following
    sum_of: Callable[[Trees], Floats]
    value_of: Callable[[Tree], Floats]
    bounds: Sequence[float]

    def sweep(self, trees: Trees, task: Task) -> tuple[Trees, float, float]:
        """Go through all trees once; return them, and the measure before and after.

        The measure never falls: sums of trees with new weights round in another way than the sums
        that were followed, and if that costs more than was gained, the trees stay as they were.
        """
        scores = self.sum_of(trees)
        before = value = self.measure.measure(scores)
        new = list(trees)
        for number, tree in enumerate(trees):
            task.advance(1)
            own = self.value_of(tree)
            rest = scores - own
            found = self.measure.best_step(rest, own, *self.bounds, with_peaks=False)
            if found.value > value + SMALLEST_GAIN:
                new[number] = replace(tree, value=tree.value * found.alpha)
                scores = rest + found.alpha * own
                value = found.value
        after = self.measure.measure(self.sum_of(tuple(new)))
        return (tuple(new), before, after) if after > before else (trees, before, before)
