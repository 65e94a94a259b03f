"""``rankinite combine``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from rankinite.cli.members import Member, load_members, refuse_samples
from rankinite.cli.options import Loading, Measures, Missing, Out, Seed
from rankinite.cli.outputs import refuse_file_as_folder, refuse_overwriting
from rankinite.cli.predict import write_scores
from rankinite.cli.terminal import Terminal, show_written_summary
from rankinite.core.errors import UsageError
from rankinite.core.files import atomic_write

if TYPE_CHECKING:
    from rankinite.ensembles.combine import Applied, Combined, Plan

SCORES, TEST_SCORES, MODEL = "scores.txt", "test-scores.txt", "combination.rk"


def combine(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="MEMBERS",
            help="Model files, or scores of the data set: one number a line, or TREC runs.",
            show_default=False,
        ),
    ],
    source: Annotated[
        Path,
        typer.Option(
            "--data",
            "-d",
            help="A data set with labels that no member was trained on.",
            show_default=False,
        ),
    ],
    method: Annotated[
        Literal["average", "best-mix", "interpolation", "linear", "two-layer"],
        typer.Option(
            help="Average, best proportions two by two, Powell's weights, or a LambdaRank net that "
            "learns from the scores: linear or of two layers."
        ),
    ] = "average",
    measures: Measures = "NDCG@10,ERR",
    subsets: Annotated[
        Literal["every", "greedy", "none"] | None,
        typer.Option(
            help="average: measure every subset, or add and take away members one by one, or take "
            "all. (Default: every up to 12 members, else greedy.)",
            show_default=False,
        ),
    ] = None,
    level: Annotated[
        float,
        typer.Option(help="A subset is taken if its p-value against all members is below this."),
    ] = 0.05,
    tree: Annotated[
        str | None,
        typer.Option(
            help="best-mix: who is joined first, as in '(((1 3)(2 4))(5 6))', by number or name. "
            "(Default: neighbours.)"
        ),
    ] = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Also score and measure this data set; all members must be models."),
    ] = None,
    missing: Missing = "refuse",
    out: Out = Path("combined"),
    seed: Seed = 0,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Combine rankers: what every subset is worth, the chosen combination, and its scores.

    Scores are brought to zero mean and unit variance, and added up: the winner's choice (Ensemble,
    Sec. 4.3). The first measure decides. A subset is taken instead of all members only if it is
    better on queries that it was not chosen by. If all members are models, combination.rk is one
    too.
    """
    from rankinite.ensembles.combine import Plan, combine_members
    from rankinite.measures.text import parse_measures

    _check_targets(out, [source, *files, *([] if test is None else [test])])
    plan = Plan(parse_measures(measures), method, tree, subsets, level, seed)
    members = _load_members(files, plan, test)
    terminal.expect_compiling()
    data = loading.load(source, terminal)
    refuse_samples("combine", data)
    rows = {one.name: one.scores(data, source, missing) for one in members}
    rankers = {one.name: one.ranker for one in members}
    found = combine_members(rankers, rows, data, plan, progress=terminal.progress())
    out.mkdir(parents=True, exist_ok=True)
    applied = None
    if test is not None:
        tested = loading.load_like(data, source, test, terminal)
        refuse_samples("combine", tested)
        test_rows = {one.name: one.scores(tested, test, missing) for one in members}
        applied = found.apply(test_rows, tested)
        write_scores(applied.scores, tested, out / TEST_SCORES, "combination")
    write_scores(found.applied.scores, data, out / SCORES, "combination")
    _finish(terminal, found, members, applied, out)


def _check_targets(out: Path, sources: Sequence[Path]) -> None:
    from rankinite.ensembles.combine_tables import NAME

    refuse_file_as_folder(out)
    names = [SCORES, TEST_SCORES, MODEL, *(f"{NAME}.{end}" for end in ("md", "csv", "json"))]
    refuse_overwriting("combine", [out / name for name in names], sources)


def _load_members(files: Sequence[Path], plan: Plan, test: Path | None) -> list[Member]:
    """Load the members; what cannot be meant for them is refused."""
    members = load_members("combine", files)
    plan.check([one.name for one in members])
    for one in members:
        if test is not None and one.ranker is None:
            raise UsageError(
                f"combine: --test needs the members' scores of another data set, and {one.path} "
                "holds those of --data alone; give model files, or leave out --test"
            )
    return members


def _finish(
    terminal: Terminal, found: Combined, members: Sequence[Member], test: Applied | None, out: Path
) -> None:
    """Write tables and the model, and print what was found."""
    from rankinite.ensembles.combine_tables import MOST_SHOWN, NAME, summary_of, to_csv

    kinds = {one.name: type(one.ranker).__name__ if one.ranker else "scores" for one in members}
    written = summary_of(found, kinds, test).save(out)
    with atomic_write(out / f"{NAME}.csv") as file:
        file.write(to_csv(found).encode())
    written += [out / f"{NAME}.csv", out / SCORES]
    written += [] if test is None else [out / TEST_SCORES]
    if found.combination.members is not None:
        found.combination.save(out / MODEL)
        written.append(out / MODEL)
    shown = summary_of(found, kinds, test, most=MOST_SHOWN)
    show_written_summary(terminal, shown, written)
