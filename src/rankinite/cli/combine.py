"""``rankinite combine``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rankinite.cli.files import Member, load_members, write_scores
from rankinite.cli.options import LabelledData, Loading, Measures, Out, Seed
from rankinite.cli.outputs import Outputs, refuse_file_as_folder
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.core.files import atomic_write

if TYPE_CHECKING:
    from rankinite.ensembles.combine import CombineOptions, CombineResult
    from rankinite.ensembles.selection import EnsembleEvaluation
    from rankinite.evaluation.tables import Summary

SCORES, TEST_SCORES, MODEL = "scores.txt", "test-scores.txt", "ensemble.rk"
RUN_NAME = "ensemble"


@dataclass(frozen=True, kw_only=True)
class EnsembleOptions:
    """How members become an ensemble; see `CombineOptions`."""

    method: Annotated[
        Literal["average", "best-mix", "interpolation", "linear", "two-layer"],
        typer.Option(
            help="Equal weights; the best proportion of two at a time; weights by Powell's search; "
            "or a LambdaRank net over the scores, linear or with two layers."
        ),
    ] = "average"
    subsets: Annotated[
        Literal["every", "greedy", "none"] | None,
        typer.Option(
            help="For average: measure every subset, add and remove members one by one, or take "
            "all. (Default: every up to 12 members, else greedy.)",
            show_default=False,
        ),
    ] = None
    level: Annotated[
        float,
        typer.Option(help="Significance level for preferring a subset to all members."),
    ] = 0.05
    tree: Annotated[
        str | None,
        typer.Option(
            help="For best-mix: which members are mixed first, as in '(((1 3)(2 4))(5 6))', by "
            "number or name. (Default: neighbours.)"
        ),
    ] = None
    seed: Seed = 0


def combine(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEMBERS",
            help="Model files, or scores of the data set: one number per line, or TREC runs.",
            show_default=False,
        ),
    ],
    measures: Measures = "NDCG@10,ERR",
    test: Annotated[
        Path | None,
        typer.Option(help="Also score and measure this data set; all members must be models."),
    ] = None,
    out: Out = Path("combined"),
    *,
    labelled: LabelledData,
    ensemble: EnsembleOptions,
    outputs: Outputs,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Combine rankers into an ensemble; measure every subset, and write the ensemble's scores.

    Scores are brought to zero mean and unit variance, and added up: the winner's choice (Ensemble,
    Sec. 4.3). The first measure decides. A subset is preferred to all members only if it is better
    on queries that it was not chosen by. If all members are models, ensemble.rk is one too.
    """
    from rankinite.data.splits import refuse_dependent_queries
    from rankinite.ensembles.combine import MOST_SHOWN, CombineOptions, combine_members
    from rankinite.measures.text import parse_measures

    source, missing = labelled.source, labelled.missing
    refuse_file_as_folder(out)
    inputs = [source, *files, test, loading.query_file]
    targets = [out / name for name in _names(test)]
    outputs.check("combine", inputs, files=targets)
    options = CombineOptions(parse_measures(measures), **vars(ensemble))
    # Before the data: wrong options and files that do not exist are told at once.
    members = _load_members(files, options, test)
    data = labelled.load("combine", loading, terminal)
    rows = {member.name: member.scores(data, source, missing) for member in members}
    rankers = {member.name: member.ranker for member in members}
    result = combine_members(rankers, rows, data, options, progress=terminal.progress())
    out.mkdir(parents=True, exist_ok=True)
    evaluation = None
    with outputs.recording(targets):
        if test is not None:
            tested = loading.load_like(data, source, test, terminal)
            refuse_dependent_queries("combine", tested.qids)
            test_rows = {member.name: member.scores(tested, test, missing) for member in members}
            evaluation = result.evaluate(test_rows, tested)
            write_scores(evaluation.scores, tested, out / TEST_SCORES, RUN_NAME)
        write_scores(result.evaluation.scores, data, out / SCORES, RUN_NAME)
        written = _write(result, members, evaluation, out)
    # The file has every subset, the terminal only the best.
    terminal.show_summary(_summary(result, members, evaluation, most=MOST_SHOWN), written)


def _names(test: Path | None) -> list[str]:
    """Return the names of the files that are written."""
    from rankinite.ensembles.combine import NAME

    scores = [SCORES] if test is None else [SCORES, TEST_SCORES]
    return [*scores, MODEL, *(f"{NAME}.{end}" for end in ("md", "csv", "json"))]


def _load_members(
    files: Sequence[Path], options: CombineOptions, test: Path | None
) -> list[Member]:
    """Load the members, and refuse options that are wrong for them."""
    members = load_members("combine", files)
    options.check([member.name for member in members])
    for member in members:
        if test is not None and member.ranker is None:
            raise UsageError(
                f"combine: --test needs the members' scores of another data set, and {member.path} "
                "holds those of --data alone; give model files, or leave out --test"
            )
    return members


def _write(
    result: CombineResult,
    members: Sequence[Member],
    test: EnsembleEvaluation | None,
    out: Path,
) -> list[Path]:
    """Write the tables and the model; return all files, those of scores included."""
    from rankinite.ensembles.combine import NAME, to_csv

    written = _summary(result, members, test).save(out)
    with atomic_write(out / f"{NAME}.csv") as file:
        file.write(to_csv(result).encode())
    written += [out / f"{NAME}.csv", out / SCORES]
    written += [] if test is None else [out / TEST_SCORES]
    if result.ensemble.members is not None:
        result.ensemble.save(out / MODEL)
        written.append(out / MODEL)
    return written


def _summary(
    result: CombineResult,
    members: Sequence[Member],
    test: EnsembleEvaluation | None,
    most: int | None = None,
) -> Summary:
    from rankinite.ensembles.combine import summary_of

    kinds = {
        member.name: type(member.ranker).__name__ if member.ranker else "scores"
        for member in members
    }
    return summary_of(result, kinds, test, most=most)
