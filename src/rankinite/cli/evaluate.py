"""``rankinite evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.files import load_members
from rankinite.cli.options import DropSingleLabel, Loading, Measures, Missing
from rankinite.cli.outputs import Outputs, refuse_missing_folders
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.evaluation.tables import csv_text
from rankinite.rankers.parameters import ALL

if TYPE_CHECKING:
    from rankinite.evaluation.evaluate import Evaluation


def evaluate(
    source: Annotated[
        Path, typer.Argument(metavar="DATA", help="The data set with the labels; - is stdin.")
    ],
    scores: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCORES",
            help="A model file; or scores: one number per line in the order of the documents, or "
            "a TREC run.",
        ),
    ] = None,
    feature: Annotated[
        str | None, typer.Option(help="Rank by the values of this feature instead of scores.")
    ] = None,
    measures: Measures = "NDCG@10,ERR,MAP",
    drop_single_label: DropSingleLabel = False,
    per_query: Annotated[
        Path | None, typer.Option(help="Write the values of every query to this CSV file.")
    ] = None,
    missing: Missing = "refuse",
    *,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    r"""Evaluate a ranking: the mean of every measure over the queries.

    Measures: NDCG, DCG, ERR, MAP, MRR, P, Recall, Hit, RBP, CNDCG, pFound, Judged, each as
    NAME(option=value)@depth\[source].
    Documents with equal scores count as if every order among them were equally likely.
    """
    from rankinite.data.scores import feature_scores
    from rankinite.evaluation.evaluate import evaluate as evaluate_scores
    from rankinite.measures.text import parse_measures

    if (scores is None) == (feature is None):
        raise UsageError("evaluate: give either a model or a file of scores, or --feature")
    targets = [] if per_query is None else [per_query]
    refuse_missing_folders(targets)
    outputs.check("evaluate", [source, scores, loading.query_file], files=targets)
    chosen = parse_measures(measures)
    # Before the data: a file that does not exist, or is no model, is told at once.
    members = load_members("evaluate", [] if scores is None else [scores])
    # Rankers take what they know by name, and measures look at no features.
    data = loading.load(source, terminal, categorical=ALL)
    ranking = (
        members[0].scores(data, source, missing) if members else feature_scores(data, str(feature))
    )
    result = evaluate_scores(ranking, data, chosen, drop_single_label=drop_single_label)
    if per_query is not None:
        _write_per_query(result, per_query)
    _show(terminal, result, per_query)


def _show(terminal: Terminal, result: Evaluation, per_query: Path | None) -> None:
    counts = result.n_queries
    if terminal.json:
        # JSON has no NaN, which is the mean of a measure that no query has a value of.
        mean = {name: value if value == value else None for name, value in result.mean.items()}
        written = None if per_query is None else str(per_query)
        terminal.show_json({"mean": mean, "queries": counts, "per_query": written})
        return
    rows = [
        [name, f"{value:.4f}" if counts[name] else "-", f"{counts[name]:,}"]
        for name, value in result.mean.items()
    ]
    terminal.show_table("Means over queries", ["Measure", "Mean", "Queries"], rows)
    if per_query is not None:
        terminal.say(f"wrote {per_query}")


def _write_per_query(result: Evaluation, path: Path) -> None:
    from rankinite.core.files import atomic_write

    columns = [values.tolist() for values in result.per_query.values()]
    rows = (
        # A query that a measure skips has no value.
        [qid, *(None if value != value else value for value in values)]
        for qid, *values in zip(result.qids.tolist(), *columns, strict=True)
    )
    text = csv_text(["qid", *result.per_query], rows)
    with atomic_write(path) as file:
        file.write(text.encode())
