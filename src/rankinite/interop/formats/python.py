"""Python: one file that needs numpy only and scores as we do, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np

from rankinite.interop.exporter import DOUBLE, Order
from rankinite.interop.formats.c import concatenated

PRECISION = DOUBLE
PER_LINE = 10

SOURCE = '''"""A ranking model; larger scores rank first. It needs numpy only."""

import numpy as np

FEATURES = {names!r}
START = {start!r}
# Of each split: its feature, its threshold (NaN if it is categorical), whether missing values go
# left, and its children: a split if not negative, else ~leaf.
FEATURE = np.array({feature}, np.int32)
THRESHOLD = np.array({threshold}, np.float32)
MISSING_LEFT = np.array({missing_left}, bool)
LEFT = np.array({left}, np.int64)
RIGHT = np.array({right}, np.int64)
VALUE = np.array({value})
ROOT = np.array({root}, np.int64)
# By categorical split, the codes that go left, and those that go right; others are missing values.
CATEGORIES = {categories}


def score(X):
    """Return one score per row of a matrix with the columns FEATURES; NaN is a missing value."""
    with np.errstate(over="ignore"):
        X = np.asarray(X, np.float32)
    if X.ndim != 2 or X.shape[1] != len(FEATURES):
        raise ValueError(f"X has the shape {{X.shape}}; expected {{len(FEATURES)}} columns")
    scores = np.full(len(X), START)
    rows = np.arange(len(X))
    for root in ROOT:
        node = np.full(len(X), root)
        at = rows[node >= 0]
        while len(at):
            split = node[at]
            x = X[at, FEATURE[split]]
            goes_left = np.where(
                MISSING_LEFT[split], ~(x > THRESHOLD[split]), x <= THRESHOLD[split]
            )
            for k in np.unique(split) if CATEGORIES else ():
                if k in CATEGORIES:
                    here = split == k
                    left, right = CATEGORIES[k]
                    known = np.isin(x[here], left + right)
                    goes_left[here] = np.where(known, np.isin(x[here], left), MISSING_LEFT[k])
            node[at] = np.where(goes_left, LEFT[split], RIGHT[split])
            at = at[node[at] >= 0]
        scores += VALUE[~node]
    return scores
'''


def write(order: Order) -> dict[str, bytes]:
    """Return the source."""
    arrays = concatenated(order)
    source = SOURCE.format(
        names=list(order.names),
        start=order.model.start,
        feature=_listed(arrays["feature"]),
        threshold=_listed(arrays["threshold"]),
        missing_left=_listed(arrays["missing_left"].astype(int)),
        left=_listed(arrays["left"]),
        right=_listed(arrays["right"]),
        value=_listed(arrays["value"]),
        root=_listed(arrays["root"]),
        categories=_categories(order),
    )
    return {"": source.encode()}


def _listed(numbers: Any) -> str:
    """Return a list of numbers that reads back as the same ones."""
    texts = [
        repr(number) if np.isfinite(number) else f'float("{number}")' for number in numbers.tolist()
    ]
    rows = (texts[k : k + PER_LINE] for k in range(0, len(texts), PER_LINE))
    return "[\n    " + ",\n    ".join(", ".join(row) for row in rows) + "\n]"


def _categories(order: Order) -> dict[int, tuple[list[float], list[float]]]:
    categories = {}
    first = 0
    for tree in order.model.trees:
        for split in np.flatnonzero(tree.categorical).tolist():
            every = order.model.categories[int(tree.feature[split])]
            left = tree.left_categories(split, every)
            categories[first + split] = (left.tolist(), np.setdiff1d(every, left).tolist())
        first += len(tree.feature)
    return categories
