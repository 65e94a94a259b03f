"""``rankinite explain``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankinite.cli.files import load_ranker, refuse_narrow_text
from rankinite.cli.options import Loading, Seed
from rankinite.cli.outputs import Outputs, refuse_missing_folders
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.core.format import counted, number_text, plain_number, signed_text
from rankinite.evaluation.tables import Table
from rankinite.rankers.parameters import ALL

if TYPE_CHECKING:
    from rankinite.data.ranking_data import RankingData
    from rankinite.explanation.explain import Explanation, Pair
    from rankinite.explanation.importances import Dependence, PermutationImportance
    from rankinite.explanation.lost_queries import Losses
    from rankinite.rankers.ranker import Ranker

COMMAND = "explain"


def explain(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    source: Annotated[
        Path, typer.Argument(metavar="DATA", help="The data set; - is the standard input.")
    ],
    query: Annotated[
        str | None, typer.Option("--query", help="Explain the ranking of this query, by its id.")
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Why one of two documents of the query is above the other: their ids, or their "
            "ranks.",
        ),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="An earlier model: which features made queries worse since; with --query, its "
            "order beside that of the model.",
        ),
    ] = None,
    importances: Annotated[
        bool,
        typer.Option(
            "--importances",
            help="What the measure loses if a feature is permuted within queries.",
        ),
    ] = False,
    dependence: Annotated[
        str | None,
        typer.Option(
            metavar="FEATURE", help="Mean score and rank of documents as this feature varies."
        ),
    ] = None,
    measure: Annotated[str, typer.Option("--measure", "-m", help="The measure.")] = "NDCG@10",
    top: Annotated[
        int, typer.Option(min=1, help="Number of features, documents and queries to list.")
    ] = 10,
    repeats: Annotated[
        int, typer.Option(min=1, help="Number of permutations of each feature.")
    ] = 5,
    seed: Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the query as this HTML page."),
    ] = None,
    *,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Explain why a model ranks documents as it does.

    Contributions of features add up to the score: TreeSHAP for trees, and what each feature adds on
    the way from the mean document for nets; ensembles add those of their members. Without an
    option: which features move the scores of all documents most.
    """
    from rankinite.explanation.importances import partial_dependence, permutation_importances
    from rankinite.explanation.lost_queries import explain_losses
    from rankinite.measures.text import one_measure

    _check_options(query, documents, against, out, importances=importances, dependence=dependence)
    chosen = str(one_measure(COMMAND, measure))
    targets = [] if out is None else [out]
    refuse_missing_folders(targets)
    outputs.check(COMMAND, [model, source, against, loading.query_file], files=targets)
    ranker = load_ranker(model)
    other = None if against is None else load_ranker(against)
    features = _all_features(ranker, other)
    data = loading.load(source, terminal, features, ALL)
    refuse_narrow_text(source, data, ranker.feature_names_)
    if query is not None:
        _explain_query(
            ranker, other, data, query, documents, chosen, top, out,
            (model.stem, "" if against is None else against.stem), outputs, terminal,
        )  # fmt: skip
    elif other is not None:
        _show(terminal, *_losses(explain_losses(other, ranker, data, chosen), top))
    elif importances:
        rows = permutation_importances(
            ranker, data, chosen, repeats=repeats, seed=seed, progress=terminal.progress()
        )
        _show(terminal, *_importances(rows, chosen, top))
    elif dependence is not None:
        _show(terminal, *_dependence(partial_dependence(ranker, data, dependence)))
    else:
        _show(terminal, *_contributions(ranker, data, top))


def _check_options(
    query: str | None,
    documents: str | None,
    against: Path | None,
    out: Path | None,
    *,
    importances: bool,
    dependence: str | None,
) -> None:
    """Refuse options that do not go together, before anything is loaded."""
    if query is None and (documents is not None or out is not None):
        option = "--documents" if documents is not None else "--out"
        raise UsageError(f"{COMMAND}: {option} is for a query; add --query QUERY")
    whole = {"--importances": importances, "--dependence": dependence is not None}
    whole["--against without --query"] = against is not None and query is None
    chosen = [option for option, is_chosen in whole.items() if is_chosen]
    if len(chosen) > 1:
        raise UsageError(f"{COMMAND}: {' and '.join(chosen)} are different questions; ask one")
    if query is not None and chosen:
        raise UsageError(f"{COMMAND}: {chosen[0]} is about all queries; leave out --query")


def _all_features(ranker: Ranker, other: Ranker | None) -> list[str]:
    names = list(ranker.feature_names_)
    return names + [n for n in (() if other is None else other.feature_names_) if n not in names]


def _show(terminal: Terminal, table: Table, values: Any, sentences: list[str]) -> None:
    if terminal.json:
        terminal.show_json(values)
        return
    if table.rows:
        terminal.show(table)
    for sentence in sentences:
        terminal.say(sentence)


# All queries


def _contributions(ranker: Ranker, data: RankingData, top: int) -> tuple[Table, Any, list[str]]:
    from rankinite.explanation.explain import explain as explain_scores

    explanation = explain_scores(ranker, data)
    means = {name: value for name, value in explanation.mean_contributions().items() if value}
    total = sum(means.values()) or 1.0
    rows = [
        [name, number_text(value), f"{value / total:.1%}"]
        for name, value in list(means.items())[:top]
    ]
    unit = explanation.attribution.explained
    title = f"Mean absolute contributions to the {unit}, {data.n_docs:,} documents"
    table = Table(title, ["Feature", "Mean", "Share"], rows)
    hint = "of a single ranking: --query; of the measure: --importances"
    return table, {"mean_contributions": means}, [*explanation.attribution.notes, hint]


def _importances(
    rows: list[PermutationImportance], measure: str, top: int
) -> tuple[Table, Any, list[str]]:
    cells = [
        [row.feature, signed_text(row.drop), signed_text(row.low), signed_text(row.high)]
        for row in rows[:top]
    ]
    title = f"Drop of {measure} if a feature is permuted within queries"
    table = Table(title, ["Feature", "Drop", "95% from", "to"], cells)
    return table, {"measure": measure, "importances": [row.as_json() for row in rows]}, []


def _dependence(result: Dependence) -> tuple[Table, Any, list[str]]:
    columns = zip(result.grid, result.score, result.rank, strict=True)
    rows = [
        ["missing" if value != value else f"{value:.6g}", number_text(score), f"{rank:.1%}"]
        for value, score, rank in columns
    ]
    table = Table(
        f"Scores and ranks as {result.feature} varies",
        ["Value", "Mean score", "Mean rank"],
        rows,
        note="Score: all documents have the value. Rank: one document has it; 0% is the top.",
    )
    return table, result.as_json(), []


def _losses(losses: Losses, top: int) -> tuple[Table, Any, list[str]]:
    rows = [[name, signed_text(value)] for name, value in list(losses.influences.items())[:top]]
    pairs = counted(losses.n_pairs, "pair")
    title = f"Features that turned {pairs} of documents the wrong way"
    table = Table(title, ["Feature", "Deviations"], rows)
    sentences = [
        f"{len(losses.losses):,} of {losses.n_queries:,} queries got worse by {losses.measure}, "
        f"{len(losses.wins):,} better"
    ]
    for name, changes in (("worst", losses.losses), ("best", losses.wins)):
        if changes:
            shown = ", ".join(f"{row.qid} ({signed_text(row.change)})" for row in changes[:5])
            sentences.append(f"{name}: {shown}")
    return table, losses.as_json(), sentences


# One query


def _explain_query(
    ranker: Ranker,
    other: Ranker | None,
    data: RankingData,
    query: str,
    documents: str | None,
    measure: str,
    top: int,
    out: Path | None,
    names: tuple[str, str],
    outputs: Outputs,
    terminal: Terminal,
) -> None:
    from rankinite.core.files import atomic_write
    from rankinite.explanation.explain import explain as explain_scores
    from rankinite.report.explanation_page import explanation_html

    explanation = explain_scores(ranker, data, query=query)
    against = None if other is None else explain_scores(other, data, query=query)
    pair = None
    if documents is not None:
        pair = explanation.pair(*_two_documents(documents), measure=measure)
    elif out is not None and explanation.data.n_docs > 1:
        # A page without a question answers the one that pays most.
        ranks = explanation.best_swap(measure) or (1, 2)
        pair = explanation.pair(*ranks, measure=measure)
    if out is not None:
        page = explanation_html(
            explanation, pair, measure=measure, against=against, title=names[0],
            against_title=names[1],
        )  # fmt: skip
        with atomic_write(out) as file:
            file.write(page.encode())
        outputs.record([out])
    if terminal.json:
        terminal.show_json(_query_as_json(explanation, against, pair, measure, out))
        return
    if pair is not None and documents is not None:
        _show_pair(terminal, pair, top)
    else:
        _show_documents(terminal, explanation, against, measure, top)
    terminal.say_written([] if out is None else [out])


def _two_documents(text: str) -> tuple[str, str]:
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != 2 or not all(parts):
        raise UsageError(
            f"{COMMAND}: --documents is {text!r}; expected two ids or ranks, such as --documents "
            "1,5"
        )
    return parts[0], parts[1]


def _query_as_json(
    explanation: Explanation,
    against: Explanation | None,
    pair: Pair | None,
    measure: str,
    out: Path | None,
) -> dict[str, Any]:
    attribution = explanation.attribution
    documents = [doc.as_json() for doc in explanation.documents(len(explanation.feature_names))]
    for doc, values in zip(explanation.documents(0), documents, strict=True):
        values["expected"] = float(explanation.expected[doc.number])
        if against is not None:
            values["rank_against"] = int(against.ranks[doc.number])
    return {
        "query": str(explanation.data.qids[0]),
        "explained": attribution.explained,
        "notes": list(attribution.notes),
        "measure": measure,
        "value": explanation.measured(measure)[0],
        "value_against": None if against is None else against.measured(measure)[0],
        "documents": documents,
        "pair": None if pair is None else pair.as_json(),
        "wrote": None if out is None else str(out),
    }


def _show_documents(
    terminal: Terminal,
    explanation: Explanation,
    against: Explanation | None,
    measure: str,
    top: int,
) -> None:
    rows = []
    listed = explanation.documents(3)
    for doc in listed[:top]:
        why = ", ".join(f"{row.name} {signed_text(row.amount, 3)}" for row in doc.contributions)
        before = [] if against is None else [str(against.ranks[doc.number])]
        grade = "" if doc.label is None else plain_number(doc.label)
        name = [] if doc.doc_id is None else [doc.doc_id]
        rows.append([str(doc.rank), *before, *name, grade, number_text(doc.score), why])
    value = explanation.measured(measure)[0]
    shown = "" if value is None else f", {measure} {number_text(value)}"
    unit = explanation.attribution.explained.capitalize()
    columns = ["Rank", *([] if against is None else ["Before"])]
    columns += [] if explanation.data.doc_ids is None else ["Document"]
    title = f"Query {explanation.data.qids[0]}, {len(listed):,} documents{shown}"
    terminal.show(Table(title, [*columns, "Grade", unit, "Largest contributions"], rows))
    for note in explanation.attribution.notes:
        terminal.say(note)
    swap = explanation.best_swap(measure)
    if swap is not None:
        gain = explanation.pair(*swap, measure=measure, swaps=False).gain or 0.0
        terminal.say(
            f"{measure} would gain {number_text(gain)} if ranks {swap[0]} and {swap[1]} changed "
            f"places; --documents {swap[0]},{swap[1]} tells why they do not"
        )


def _show_pair(terminal: Terminal, pair: Pair, top: int) -> None:
    from rankinite.report.explanation_page import described, pair_in_words, swap_rows, value_text

    rows = []
    for row in pair.contributions[:top]:
        values = [value_text(value) for value in row.values] or ["", ""]
        rows.append([row.name, *values, signed_text(row.amount)])
    rest = [row.amount for row in pair.contributions[top:]]
    if rest:
        rows.append([f"{len(rest)} others", "", "", signed_text(sum(rest))])
    rows.append(["Difference", "", "", signed_text(pair.difference)])
    columns = ["Feature", pair.upper.name, pair.lower.name, "Contribution"]
    title = f"Why {described(pair.upper)} is above {described(pair.lower)}"
    terminal.show(Table(title, columns, rows, last_apart=True))
    for sentence in pair_in_words(pair):
        terminal.say(sentence)
    swaps = swap_rows(pair)
    if not swaps:
        terminal.say("No change of a single feature swaps them.")
        return
    terminal.say("")
    headings = ["Document", "Feature", "Value", "Swapped with", "Deviations"]
    title = "The smallest changes of a single feature that swap them"
    terminal.show(Table(title, headings, [list(row) for row in swaps[:top]], n_labels=2))
