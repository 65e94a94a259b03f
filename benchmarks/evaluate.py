"""Evaluating several measures against pytrec_eval, on 8,000 queries of 120 documents.

    python benchmarks/evaluate.py [--queries 8000] [--docs 120] [--turns 5]

pytrec_eval takes dictionaries; making them is not counted. It gets NDCG@10, MAP, MRR and P@10,
the measures that both have, and ranks once a query as we do.
"""

from __future__ import annotations

import argparse

import numpy as np
import pytrec_eval

import rankinite as rk
from turns import report, two_in_turns

OURS = ["NDCG(gain=linear)@10", "MAP", "MRR", "P@10"]
THEIRS = {"ndcg_cut.10", "map", "recip_rank", "P.10"}


def compare(n_queries: int, n_docs: int, turns: int) -> None:
    rng = np.random.default_rng(0)
    size = n_queries * n_docs
    labels = rng.choice(5, size, p=[0.5, 0.25, 0.15, 0.07, 0.03])
    # Whole numbers: trec_eval keeps scores as 32-bit floats and would see ties.
    scores = rng.permuted(np.tile(np.arange(float(n_docs)), (n_queries, 1)), axis=1).ravel()
    data = rk.RankingData(np.zeros((size, 1)), labels, group_sizes=np.full(n_queries, n_docs))
    names = [str(i) for i in range(n_docs)]
    qrels, run = (
        {
            str(q): dict(zip(names, column[q * n_docs : (q + 1) * n_docs].tolist(), strict=True))
            for q in range(n_queries)
        }
        for column in (labels, scores)
    )
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, THEIRS)
    theirs = evaluator.evaluate(run)
    ours = rk.evaluate(scores, data, OURS)
    for name, key in zip(OURS, ("ndcg_cut_10", "map", "recip_rank", "P_10"), strict=True):
        peer = np.array([theirs[str(q)][key] for q in range(n_queries)])
        assert np.allclose(np.nan_to_num(ours.per_query[name]), peer, atol=1e-12), name
    seconds = two_in_turns(
        lambda: rk.evaluate(scores, data, OURS), lambda: evaluator.evaluate(run), turns
    )
    report(f"evaluating {n_queries} queries x {n_docs}", *seconds, must=10, goal=10)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=8000)
    parser.add_argument("--docs", type=int, default=120)
    parser.add_argument("--turns", type=int, default=5)
    chosen = parser.parse_args()
    compare(chosen.queries, chosen.docs, chosen.turns)
