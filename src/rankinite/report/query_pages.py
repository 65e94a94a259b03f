"""Pages of the queries that the ensemble of a run wins and loses by most, see `write_report`."""

from __future__ import annotations

import numpy as np

from rankinite.explanation.explain import explain
from rankinite.report.comparisons import query_differences
from rankinite.report.explanation_page import explanation_html
from rankinite.runs.recipe import ENSEMBLE
from rankinite.runs.results import HELD_OUT, compare_ensemble
from rankinite.runs.run import Run
from rankinite.runs.store import EXPLAINED, MOST_EXPLAINED, write_text


def write_query_pages(run: Run) -> dict[str, str]:
    """Write a page for each query; return their paths from the report, by the query's id.

    There are none on the held-out parts, whose queries the final models were trained on.
    """
    comparison = compare_ensemble(run.results)
    measure = run.results.recipe.measures[0]
    differences = query_differences(comparison, measure)
    if comparison.name == HELD_OUT or differences is None:
        return {}
    chosen = {
        row.qid: f"{EXPLAINED}/{kind}-{k + 1}.html"
        for kind, rows in (("loss", differences.worst), ("win", differences.best))
        for k, row in enumerate(rows[:MOST_EXPLAINED])
    }
    if not chosen:
        return {}
    (run.folder / EXPLAINED).mkdir(exist_ok=True)
    data = comparison.data[np.isin(comparison.data.qids.astype(str), list(chosen))]
    whole, single = (explain(model, data) for model in (run.ensemble, run.models[comparison.best]))
    for qid, name in chosen.items():
        explanation = whole.of_query(qid)
        pair = None
        if explanation.data.n_docs > 1:
            ranks = explanation.best_swap(measure) or (1, 2)
            # Changes that swap documents are left out: with thousands of trees they take long.
            pair = explanation.pair(*ranks, measure=measure, swaps=False)
        page = explanation_html(
            explanation, pair, measure=measure, against=single.of_query(qid),
            title=f"the {ENSEMBLE}", against_title=comparison.best,
        )  # fmt: skip
        write_text(run.folder / name, page)
    return chosen
