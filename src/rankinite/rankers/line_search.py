"""The line search of boosting: the exact best weight of each tree (LambdaSMART, Sec. 4 and 5.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rankinite.core.container import LARGEST
from rankinite.core.errors import DataError
from rankinite.core.progress import ProgressBar
from rankinite.core.types import Floats
from rankinite.data.ranking_data import RankingData
from rankinite.measures.line_search import MeasureAlongLine
from rankinite.measures.measure import Measure
from rankinite.trees.forest import Forest

# Of a query; their pairs take minutes.
MOST_DOCS = 1 << 15


def measure_along_line(
    measure: Measure, data: RankingData, query_weight: Floats | None = None
) -> MeasureAlongLine:
    """Return a measure of a data set as a function along lines of scores.

    Raises
    ------
    DataError
        If a query has so many documents that a search would take longer than anybody waits.
    """
    query = int(data.sizes.argmax()) if data.n_queries else 0
    if data.n_queries and data.sizes[query] > MOST_DOCS:
        raise DataError(
            f"query {data.qids[query]} has {data.sizes[query]:,} documents, and the scores of any "
            f"two of them may cross: a search along a line of scores takes {MOST_DOCS:,} at most; "
            "keep the first ones of another ranking"
        )
    return MeasureAlongLine(measure, data.all_labels, data.offsets, data.top_grade, query_weight)


def checked_measure_along_line(
    owner: str, measure: Measure, data: RankingData, query_weight: Floats | None = None
) -> MeasureAlongLine:
    """As `measure_along_line`, but raise `DataError` if no query of the data counts."""
    along = measure_along_line(measure, data, query_weight)
    if np.isnan(along.mean(np.zeros(data.n_docs))):
        raise DataError(
            f"{owner}: no query of the data counts for {measure}: none has a relevant document; "
            "give others, or another measure"
        )
    return along


@dataclass(frozen=True)
class LineSearch:
    """Finds the weight of a tree.

    Attributes
    ----------
    on
        The validation set on which the weight is best; the training data if None.
    measure
        The measure that is best there.
    bounds
        The least and the largest weight.
    """

    on: str | None
    measure: MeasureAlongLine
    bounds: Sequence[float]

    def alpha(self, scores: Floats, direction: Floats) -> float:
        """Return the weight with which the direction, added to the scores, is best."""
        low, high = self.bounds
        return self.measure.best_step(scores, direction, low, high, with_peaks=False).alpha


# A gain that is not larger than this may be rounding.
SMALLEST_GAIN = 1e-12


@dataclass(frozen=True)
class Backfitting:
    """Finds for every tree the weight that is best while all others stay as they are.

    Attributes
    ----------
    measure
        The measure that shall be best.
    X, rows
        The features, and the row of every document if they are indexed.
    before
        The scores before the first tree, in one row.
    bounds
        The least and the largest weight, where 1 is the present one.
    """

    measure: MeasureAlongLine
    X: NDArray[np.float32]
    rows: NDArray[np.int64] | None
    before: Floats
    bounds: Sequence[float]

    def sweep(self, forest: Forest, bar: ProgressBar) -> tuple[Forest, float, float]:
        """Go through all trees once; return them, and the measure before and after.

        The measure never falls: sums of trees with new weights are rounded differently from the
        sums of the search, and if that costs more than was gained, the trees stay as they were.
        """
        low, high = self.bounds
        scores = self._scores(forest)
        before = value = self.measure.mean(scores)
        trees = list(forest.trees)
        nothing = np.zeros(1)
        for number, tree in enumerate(forest.trees):
            bar.advance(1)
            alone = replace(forest, trees=(tree,), start=nothing)
            tree_scores: Floats = alone.scores(self.X, self.rows)[0]
            rest = scores - tree_scores
            best = self.measure.best_step(rest, tree_scores, low, high, with_peaks=False)
            if best.value > value + SMALLEST_GAIN:
                # No larger than a model file may hold.
                value_of_leaf = np.clip(tree.value * best.alpha, -LARGEST, LARGEST)
                trees[number] = replace(tree, value=value_of_leaf)
                scores = rest + best.alpha * tree_scores
                value = best.value
        new = replace(forest, trees=tuple(trees))
        after = self.measure.mean(self._scores(new))
        return (new, before, after) if after > before else (forest, before, before)

    def _scores(self, forest: Forest) -> Floats:
        scores: Floats = forest.add_to(self.before.copy(), self.X, self.rows)[0]
        return scores
