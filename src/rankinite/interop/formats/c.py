"""C99: one file without dependencies that scores as we do, to the last bit, and its header."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rankinite.interop.exporter import DOUBLE, Order

PRECISION = DOUBLE
PER_LINE = 12

HEADER = """/* A ranking model; larger scores rank first. */
#ifndef {upper}_H
#define {upper}_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {{
#endif

#define {upper}_N_FEATURES {n_features}

/* Names of the features, in the order in which scoring expects them. */
extern const char *const {name}_features[{n_names}];

/* Score of one document; NAN is a missing value. */
double {name}_score(const float *x);

/* Scores of n documents, whose features lie one document behind the other. */
void {name}_score_batch(const float *x, size_t n, double *scores);

#ifdef __cplusplus
}}
#endif

#endif
"""

SOURCE = """/* A ranking model; larger scores rank first. C99, without dependencies. */
#include <stddef.h>
#include <stdint.h>

#define N_FEATURES {n_features}
#define N_TREES {n_trees}
#define START {start}

const char *const {name}_features[{n_names}] = {{
{names}
}};

/* Of each split: its feature, with the highest bit set if missing values go left; its threshold, or
   the number of its set of categories; and its children: a split if not negative, else ~leaf. */
static const uint32_t feature[] = {{
{feature}
}};
static const float threshold[] = {{
{threshold}
}};
static const int32_t left[] = {{
{left}
}};
static const int32_t right[] = {{
{right}
}};
static const double value[] = {{
{value}
}};
static const int32_t root[] = {{
{root}
}};
{categories}
double {name}_score(const float *x)
{{
    double score = START;
    for (int t = 0; t < N_TREES; t++) {{
        int32_t node = root[t];
        while (node >= 0) {{
            const uint32_t packed = feature[node];
            const float v = x[packed & 0x{feature_mask:x}u];
            int goes_left;
            if (packed & 0x80000000u)
                goes_left = !(v > threshold[node]);
            else
                goes_left = v <= threshold[node];
{categorical_test}            node = goes_left ? left[node] : right[node];
        }}
        score += value[~node];
    }}
    return score;
}}

void {name}_score_batch(const float *x, size_t n, double *scores)
{{
    for (size_t i = 0; i < n; i++)
        scores[i] = {name}_score(x + i * N_FEATURES);
}}
"""

# Bit 30 of a feature: its split is categorical. Codes of known categories are looked up; what is
# not among them goes where missing values go.
CATEGORIES = """
/* By set, which goes left: -1 where a code is no category, as a missing value. */
#define N_CODES {n_codes}
static const int8_t goes_left_by_set[][N_CODES] = {{
{sets}
}};
"""
CATEGORICAL_TEST = """            if (packed & 0x40000000u) {
                const int8_t *set = goes_left_by_set[(int32_t)threshold[node]];
                int side = -1;
                if (v >= 0.0f && v < (float)N_CODES && v == (float)(int32_t)v)
                    side = set[(int32_t)v];
                goes_left = side < 0 ? (packed & 0x80000000u) != 0 : side;
            }
"""
MISSING_LEFT, CATEGORICAL = 1 << 31, 1 << 30


def write(order: Order) -> dict[str, bytes]:
    """Return the source and the header."""
    model = order.model
    arrays = concatenated(order)
    categorical = np.isnan(arrays["threshold"])
    sets = _sets(order)
    thresholds = arrays["threshold"].astype(np.float64)
    thresholds[categorical] = np.arange(len(sets))
    features = arrays["feature"].astype(np.int64) + MISSING_LEFT * arrays["missing_left"]
    features += CATEGORICAL * categorical
    n_codes = sets.shape[1] if len(sets) else 0
    has_sets = len(sets) > 0
    source = SOURCE.format(
        name=order.name,
        n_features=len(order.names),
        n_names=max(1, len(order.names)),
        n_trees=len(model.trees),
        start=_hexadecimal(model.start),
        names=_lines([_quoted(name) for name in order.names] or ["0"], 1),
        feature=_lines([f"{f}u" for f in features.tolist()]),
        threshold=_lines(map(_single, thresholds.tolist())),
        left=_lines(arrays["left"].tolist()),
        right=_lines(arrays["right"].tolist()),
        value=_lines(map(_hexadecimal, arrays["value"].tolist()), 6),
        root=_lines(arrays["root"].tolist()),
        feature_mask=CATEGORICAL - 1,
        categories=CATEGORIES.format(
            n_codes=n_codes,
            sets=",\n".join("{" + ",".join(map(str, row)) + "}" for row in sets.tolist()),
        )
        if has_sets
        else "",
        categorical_test=CATEGORICAL_TEST if has_sets else "",
    )
    header = HEADER.format(
        name=order.name,
        upper=order.name.upper(),
        n_features=len(order.names),
        n_names=max(1, len(order.names)),
    )
    return {"": source.encode(), ".h": header.encode()}


def concatenated(order: Order) -> dict[str, Any]:
    """Return all trees one behind the other; children and roots as numbers among all nodes."""
    nodes, trees = order.model.nodes, order.model.trees
    n_splits = np.array([len(tree.feature) for tree in trees], np.int64)
    n_leaves = np.array([tree.n_leaves for tree in trees], np.int64)
    splits, leaves = np.cumsum(n_splits) - n_splits, np.cumsum(n_leaves) - n_leaves

    def children(of: Any) -> Any:
        parts = [
            np.where(of(node) >= 0, of(node) + split, of(node) - leaf)
            for node, split, leaf in zip(nodes, splits, leaves, strict=True)
        ]
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def joined(name: str, kind: type[np.generic]) -> Any:
        return np.concatenate([np.zeros(0, kind), *(getattr(tree, name) for tree in trees)])

    return {
        "feature": joined("feature", np.int32),
        "threshold": joined("threshold", np.float32),
        "missing_left": joined("missing_left", np.bool_),
        "left": children(lambda node: node.left),
        "right": children(lambda node: node.right),
        "value": joined("value", np.float64),
        # A tree of one leaf has no split.
        "root": np.where(n_splits > 0, splits, ~leaves),
    }


def _sets(order: Order) -> Any:
    """Return a row per categorical split: 1 for codes that go left, 0 for right, -1 for others."""
    categories = order.model.categories
    largest = max((int(codes.max(initial=0)) for codes in categories.values()), default=0)
    rows = []
    for tree in order.model.trees:
        for split in np.flatnonzero(tree.categorical).tolist():
            codes = categories[int(tree.feature[split])]
            row = np.full(largest + 1, -1, np.int8)
            row[codes.astype(np.int64)] = 0
            row[tree.left_categories(split, codes).astype(np.int64)] = 1
            rows.append(row)
    return np.array(rows, np.int8)


def _hexadecimal(value: float) -> str:
    return float(value).hex()


def _single(value: float) -> str:
    # The macro would need math.h.
    return "(1.0f/0.0f)" if np.isinf(value) else f"{float(value).hex()}f"


def _quoted(name: str) -> str:
    """Return a name as a constant of C: what is not plain is written in octal."""
    plain = "".join(
        chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}"
        for byte in name.encode()
    )
    return f'"{plain}"'


def _lines(items: Iterable[Any], per_line: int = PER_LINE) -> str:
    texts = [str(item) for item in items] or ["0"]  # C has no empty arrays
    rows = (texts[k : k + per_line] for k in range(0, len(texts), per_line))
    return ",\n".join(", ".join(row) for row in rows)
