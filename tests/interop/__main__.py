"""Exported models of every kind on many documents: how far the scores of other tools are from ours.

python -m tests.interop [--documents 1000000] [--to lightgbm,onnx]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

import rankinite as rk
from rankinite.interop.sum_of_trees import sum_of_trees
from tests.interop.cases import (
    ENDINGS,
    MODELS,
    NO_CATEGORIES,
    NO_MISSING,
    SCORED_BY,
    documents_for,
    model,
)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--to", default=",".join(SCORED_BY))
    chosen = parser.parse_args()
    os.chdir(tempfile.mkdtemp())
    print("format        scored by         kind               largest difference  other order")
    for kind in MODELS:
        trees = sum_of_trees(model(kind))
        for to in chosen.to.split(","):
            if kind == "categories" and to in NO_CATEGORIES:
                continue
            docs = documents_for(to, trees, chosen.documents)
            rk.export(model(kind), f"m{ENDINGS.get(to, '.json')}", to, allow=to in NO_MISSING)
            expected = trees.scores(docs)
            for score in SCORED_BY[to]:
                try:
                    scores = score(Path(f"m{ENDINGS.get(to, '.json')}"), docs).astype(np.float64)
                except pytest.skip.Exception as why:
                    print(f"{to:13} {score.__name__:17} {why}")
                    continue
                difference = np.abs(scores - expected).max()
                text = f"{difference:18.1e}  {other_order(scores, expected):11.1e}"
                print(f"{to:13} {score.__name__:17} {kind:18} {text}", flush=True)


def other_order(scores: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference between neighbours that stand in the other order there.

    0 if the order is ours; otherwise such documents are as near each other as numbers of 32 bits.
    """
    order = np.argsort(expected, kind="stable")
    falls = np.diff(scores[order]) < 0
    return float(np.diff(expected[order])[falls].max(initial=0.0))


if __name__ == "__main__":
    main()
