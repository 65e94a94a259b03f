"""``rankinite data describe``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rankinite.cli.options import Loading
from rankinite.cli.terminal import Terminal
from rankinite.core.format import plain_number

if TYPE_CHECKING:
    from rankinite.data.describe import Description

GRADE_NAMES = {0: "Bad", 1: "Fair", 2: "Good", 3: "Excellent", 4: "Perfect"}


def describe(
    files: Annotated[
        list[Path], typer.Argument(metavar="DATA", help="Data sets: SVMlight/LETOR or Parquet.")
    ],
    figures: Annotated[
        Path | None, typer.Option(help="Draw the two figures as PNG files into this folder.")
    ] = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Count queries, documents, features and grades: the challenge's Tables 2 and 3.

    The figures show how many documents queries have, and how many different values features take.
    """
    from rankinite.data.describe import describe as describe_data
    from rankinite.data.describe import draw_figures

    sets = [describe_data(loading.load(path, terminal)) for path in files]
    names = _short_names(files)
    drawn = []
    if figures is not None:
        drawn = draw_figures(dict(zip(names, sets, strict=True)), figures)
    if terminal.json:
        found = [{"file": str(f), **one.as_json()} for f, one in zip(files, sets, strict=True)]
        terminal.show_json({"sets": found, "figures": [str(path) for path in drawn]})
        return
    _show_statistics(terminal, names, sets)
    terminal.say("")
    _show_grades(terminal, names, sets)
    for path in drawn:
        terminal.say(f"wrote {path}")


def _short_names(files: list[Path]) -> list[str]:
    """Return the files' names; with their folders, where two have the same name."""
    names = [path.name for path in files]
    return names if len(set(names)) == len(names) else [str(path) for path in files]


def _show_statistics(terminal: Terminal, names: list[str], sets: list[Description]) -> None:
    rows = [
        ["Queries", *(f"{one.n_queries:,}" for one in sets)],
        ["Documents", *(f"{one.n_docs:,}" for one in sets)],
        ["Features", *(f"{one.n_features:,}" for one in sets)],
        ["  with more than one value", *(f"{one.features_in_use:,}" for one in sets)],
        ["  missing values", *(f"{one.missing:.2%}" for one in sets)],
        ["Documents per query, mean", *(f"{one.sizes.mean():.1f}" for one in sets)],
        ["  least", *(f"{one.sizes.min():,}" for one in sets)],
        ["  most", *(f"{one.sizes.max():,}" for one in sets)],
        ["Queries without a relevant document", *(f"{one.without_relevant:,}" for one in sets)],
        ["Queries with one label only", *(f"{one.single_label:,}" for one in sets)],
    ]
    if any(one.n_unlabelled for one in sets):
        rows.append(["Documents without a label", *(f"{one.n_unlabelled:,}" for one in sets)])
    for source in dict.fromkeys(name for one in sets for name in one.sources):
        rows.append([f"Documents with {source}", *(f"{s.sources.get(source, 0):,}" for s in sets)])
    terminal.show_table("Statistics", ["", *names], rows)


def _show_grades(terminal: Terminal, names: list[str], sets: list[Description]) -> None:
    grades = sorted({grade for one in sets for grade in one.grades}, reverse=True)
    if not grades:
        terminal.say("There are too many different labels for a table of grades.")
        return
    tops = {one.top_grade for one in sets}
    named = tops == {max(GRADE_NAMES)} and set(grades) <= set(GRADE_NAMES)
    rows = [
        [
            f"{GRADE_NAMES[int(grade)]} {plain_number(grade)}" if named else plain_number(grade),
            *(_share(one, grade) for one in sets),
        ]
        for grade in grades
    ]
    terminal.show_table("Distribution of grades", ["Grade", *names], rows)


def _share(one: Description, grade: float) -> str:
    """Return the share of a grade among the documents with a label; nothing without a table."""
    if not one.grades:
        return ""
    return f"{one.grades.get(grade, 0) / (one.n_docs - one.n_unlabelled):.2%}"
