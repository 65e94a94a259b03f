"""The smallest change of a single feature of a single document that swaps two documents.

Along one feature the score of trees is a step function, whose steps are at the thresholds of its
splits. So one value of every interval between thresholds, the nearest to the present one, says all:
the smallest change is exact, to the last bit of a 32-bit feature. The score of a net is no step
function: it is looked at for values of the data, and between the nearest that swaps and its
neighbour the change is halved until 32 bits cannot tell values apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankinite.core.types import Floats, Floats32
from rankinite.data.ranking_data import RankingData
from rankinite.data.sparse import dense_rows
from rankinite.explanation.attribution import depends_on_query, explained_scores
from rankinite.rankers.lambdarank import LambdaRank
from rankinite.rankers.ranker import Ranker
from rankinite.rankers.tree_contents import TreeContents

# Values of the data at which the score of a net is looked at.
MOST_GRID = 64
# Halvings of a difference of two 32-bit numbers; more change nothing.
HALVINGS = 32
# Documents that are scored at once.
DOCS_PER_CALL = 1 << 15


@dataclass(frozen=True)
class Swap:
    """A change of a feature of one of two documents that swaps them.

    Attributes
    ----------
    document
        ``"upper"`` or ``"lower"``: whose feature is changed.
    feature
        The feature.
    present, changed
        Its value, and the nearest one that swaps the documents; None if missing, a text if it is
        categorical.
    deviations
        The change in standard deviations of the feature in the query; None if the query says
        nothing of the size of the change.
    exact
        Whether no smaller change swaps them; not sure for nets.
    """

    document: str
    feature: str
    present: float | str | None
    changed: float | str | None
    deviations: float | None
    exact: bool

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON can hold it."""
        return vars(self).copy()


def thresholds_of(ranker: Ranker) -> dict[str, Floats32]:
    """Return the finite thresholds of the trees in a ranker, by feature, in increasing order."""
    by_feature: dict[str, list[Floats32]] = {}
    for part in _parts(ranker):
        if isinstance(part, TreeContents):
            for tree in part.forest_.trees:
                for feature, threshold in zip(tree.feature, tree.threshold, strict=True):
                    name = part.feature_names_[feature]
                    by_feature.setdefault(name, []).append(threshold)
    unique = {name: np.unique(np.array(list_, np.float32)) for name, list_ in by_feature.items()}
    return {name: thresholds[np.isfinite(thresholds)] for name, thresholds in unique.items()}


def _parts(ranker: Ranker) -> Iterator[Ranker]:
    """Iterate over a ranker and all that are inside it."""
    yield ranker
    for inside in (*ranker.inner_rankers.values(), getattr(ranker, "base", None)):
        if isinstance(inside, Ranker):
            yield from _parts(inside)


def used_features(ranker: Ranker) -> set[str]:
    """Return the features that a ranker may look at; all if something inside it is unknown."""
    used: set[str] = set()
    for part in _parts(ranker):
        base = getattr(part, "base", None)
        if base is not None and not isinstance(base, Ranker):
            return set(ranker.feature_names_)
        if isinstance(part, TreeContents):
            used |= {part.feature_names_[j] for j in np.unique(_split_features(part))}
        elif isinstance(part, LambdaRank):
            names = part.feature_names_
            used |= {names[j % len(names)] for j in part.net_.inputs.features}
    return used & set(ranker.feature_names_)


def _split_features(part: TreeContents) -> NDArray[np.int32]:
    return np.concatenate([np.zeros(0, np.int32), *(t.feature for t in part.forest_.trees)])


def is_step_function(ranker: Ranker) -> bool:
    """Tell whether the score only changes at thresholds: all parts are trees, or add scores up."""
    parts = list(_parts(ranker))
    bases = (getattr(part, "base", None) for part in parts)
    known = all(base is None or isinstance(base, Ranker) for base in bases)
    return known and not any(isinstance(part, LambdaRank) for part in parts)


def find_swaps(ranker: Ranker, data: RankingData, query: int, upper: int, lower: int) -> list[Swap]:
    """Return the smallest change of each feature of either document that swaps the two.

    Parameters
    ----------
    ranker
        A fitted ranker.
    data
        Documents with the features of the ranker.
    query, upper, lower
        The number of the query, and of its documents, of which ``upper`` has the higher score.
    """
    search = _Search(ranker, data, query)
    swaps = []
    for role, doc, other in (("upper", upper, lower), ("lower", lower, upper)):
        swaps += search.swaps_of(role, doc - search.begin, other - search.begin)
    # What cannot be compared comes last.
    return sorted(swaps, key=lambda s: np.inf if s.deviations is None else s.deviations)


class _Search:
    """Looks for changes of features in the documents of a query."""

    def __init__(self, ranker: Ranker, data: RankingData, query: int) -> None:
        self.ranker, self.data = ranker, data
        self.begin, end = int(data.offsets[query]), int(data.offsets[query + 1])
        docs = slice(self.begin, end)
        self.X = np.array(dense_rows(data.matrix, docs if data.rows is None else data.rows[docs]))
        self.thresholds = thresholds_of(ranker)
        self.is_exact = is_step_function(ranker)
        used = used_features(ranker)
        self.columns = [j for j, name in enumerate(data.feature_names) if name in used]
        self.needs_query = depends_on_query(ranker)

    def swaps_of(self, role: str, doc: int, other: int) -> list[Swap]:
        """Return the smallest change of each feature of a document, and the one to missing."""
        columns, values = [], []
        for column in self.columns:
            candidates = self._candidates(column, float(self.X[doc, column]))
            columns.append(np.full(len(candidates), column))
            values.append(candidates)
        if not columns:
            return []
        column_of, value_of = np.concatenate(columns), np.concatenate(values)
        are_swapped = self._are_swapped(role, doc, other, column_of, value_of)
        swaps: list[Swap] = []
        for column in self.columns:
            here = column_of == column
            swaps += self._chosen(role, doc, other, column, value_of[here], are_swapped[here])
        return swaps

    def _candidates(self, column: int, present: float) -> Floats32:
        """Return values of a feature that say all about its changes, without the present one."""
        name = self.data.feature_names[column]
        if name in self._categorical:
            codes = self._categorical[name]
            return np.append(codes[codes != present], np.float32(np.nan))
        thresholds = self.thresholds.get(name, np.zeros(0, np.float32))
        # A value that is at most a threshold goes left: of the intervals below, the nearest value
        # is their upper end; of those above, the next number behind their lower one.
        is_above = thresholds >= present
        behind = np.nextafter(thresholds, np.float32(np.inf))
        candidates = np.where(is_above, behind, thresholds)
        if np.isnan(present):
            candidates = np.append(thresholds, behind)
        if not self.is_exact:
            known = self.X[:, column][np.isfinite(self.X[:, column])]
            spread = np.quantile(known, np.linspace(0, 1, MOST_GRID)) if len(known) else known
            candidates = np.append(candidates, spread.astype(np.float32))
        candidates = np.unique(candidates[np.isfinite(candidates)])
        return np.append(candidates[candidates != present], np.float32(np.nan))

    @property
    def _categorical(self) -> dict[str, Floats32]:
        """Codes of the categories of each categorical feature, as the data set has them."""
        codes: dict[str, Floats32] = {}
        for part in _parts(self.ranker):
            if isinstance(part, TreeContents):
                for feature, known in part.forest_.categories.items():
                    codes[part.feature_names_[feature]] = known
        return {
            name: np.arange(len(self.data.categories[name]), dtype=np.float32)
            if self.data.categories.get(name)
            else known
            for name, known in codes.items()
        }

    def _are_swapped(
        self, role: str, doc: int, other: int, columns: NDArray[Any], values: Floats32
    ) -> NDArray[np.bool_]:
        """Tell for each change of a feature of a document whether it swaps the two."""
        scores = self._scores(doc, other, columns, values)
        changed, beside = scores[:, 0], scores[:, 1]
        return changed < beside if role == "upper" else changed > beside

    def _scores(self, doc: int, other: int, columns: NDArray[Any], values: Floats32) -> Floats:
        """Return the scores of a changed document, and of the other one beside it."""
        # If the others of a query count, each change needs a copy of the query.
        docs = np.arange(len(self.X)) if self.needs_query else np.array([doc, other])
        places = [int(np.flatnonzero(docs == k)[0]) for k in (doc, other)]
        out = np.empty((len(values), 2))
        step = max(1, DOCS_PER_CALL // len(docs))
        for begin in range(0, len(values), step):
            n = min(step, len(values) - begin)
            copies = np.tile(self.X[docs], (n, 1, 1)).reshape(n, len(docs), -1)
            copies[np.arange(n), places[0], columns[begin : begin + n]] = values[begin : begin + n]
            changed = RankingData(
                copies.reshape(n * len(docs), -1),
                group_sizes=np.full(n, len(docs)),
                feature_names=self.data.feature_names,
                categories=self.data.categories,
            )
            scores = explained_scores(self.ranker, changed).reshape(n, len(docs))
            out[begin : begin + n] = scores[:, places]
        return out

    def _chosen(
        self,
        role: str,
        doc: int,
        other: int,
        column: int,
        values: Floats32,
        are_swapped: NDArray[np.bool_],
    ) -> Iterator[Swap]:
        """Iterate over the nearest value that swaps, and the swap by a missing value."""
        present = float(self.X[doc, column])
        name = self.data.feature_names[column]
        is_number = ~np.isnan(values)
        swapping = values[are_swapped & is_number]
        if len(swapping):
            # From a missing value, nothing is near; then the smallest number is told.
            origin = 0.0 if np.isnan(present) else present
            if name in self._categorical:
                chosen = float(swapping[0])
            else:
                distances = np.abs(swapping.astype(np.float64) - origin)
                chosen = float(swapping[np.argmin(distances)])
                if not self.is_exact and not np.isnan(present):
                    chosen = self._halved(role, doc, other, column, values[is_number], chosen)
            yield self._swap(role, column, present, chosen)
        if are_swapped[~is_number].any() and not np.isnan(present):
            yield self._swap(role, column, present, float("nan"))

    def _halved(
        self, role: str, doc: int, other: int, column: int, values: Floats32, swapping: float
    ) -> float:
        """Return a value that swaps, next to one that does not, towards the present value."""
        present = float(self.X[doc, column])
        low, high = sorted((present, swapping))
        between = values[(values > low) & (values < high)]
        nearest = between.max(initial=low) if swapping > present else between.min(initial=high)
        keeps = float(nearest)
        for _ in range(HALVINGS):
            middle = float(np.float32((keeps + swapping) / 2))
            if middle in (keeps, swapping):
                break
            changed = self._are_swapped(
                role, doc, other, np.array([column]), np.array([middle], np.float32)
            )
            keeps, swapping = (keeps, middle) if changed[0] else (middle, swapping)
        return swapping

    def _swap(self, role: str, column: int, present: float, changed: float) -> Swap:
        name = self.data.feature_names[column]
        known = self.X[:, column][~np.isnan(self.X[:, column])].astype(np.float64)
        deviation = float(known.std()) if len(known) else 0.0
        distance = abs(changed - present)
        is_measured = deviation > 0 and np.isfinite(distance) and name not in self._categorical
        return Swap(
            role,
            name,
            shown_value(self.data, column, present),
            shown_value(self.data, column, changed),
            distance / deviation if is_measured else None,
            self.is_exact,
        )


def shown_value(data: RankingData, column: int, value: float) -> float | str | None:
    """Return a value of a feature as people read it: None if missing, the text of a category."""
    if np.isnan(value):
        return None
    texts = data.categories.get(data.feature_names[column], ())
    return texts[int(value)] if 0 <= int(value) < len(texts) else value
