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
        Path | None, typer.Option(help="Draw two figures as PNG files into this folder.")
    ] = None,
    *,
    loading: Loading,
    terminal: Terminal,
) -> None:
    """Show numbers of queries, documents, features and grades: the challenge's Tables 2 and 3.

    The figures show documents per query and distinct values per feature.
    """
    from rankinite.data.describe import describe as describe_data
    from rankinite.data.describe import draw_figures

    sets = [describe_data(loading.load(path, terminal)) for path in files]
    names = _short_names(files)
    drawn = []
    if figures is not None:
        drawn = draw_figures(dict(zip(names, sets, strict=True)), figures)
    if terminal.json:
        rows = [{"file": str(f), **data.as_json()} for f, data in zip(files, sets, strict=True)]
        terminal.show_json({"sets": rows, "figures": [str(path) for path in drawn]})
        return
    _show_statistics(terminal, names, sets)
    terminal.say("")
    _show_grades(terminal, names, sets)
    for path in drawn:
        terminal.say(f"wrote {path}")


def _short_names(files: list[Path]) -> list[str]:
    """Return the names of the files; with folders if two have the same name."""
    names = [path.name for path in files]
    return names if len(set(names)) == len(names) else [str(path) for path in files]


def _show_statistics(terminal: Terminal, names: list[str], sets: list[Description]) -> None:
    rows = [
        ["Queries", *(f"{data.n_queries:,}" for data in sets)],
        ["Documents", *(f"{data.n_docs:,}" for data in sets)],
        ["Features", *(f"{data.n_features:,}" for data in sets)],
        ["  with more than one value", *(f"{data.features_in_use:,}" for data in sets)],
        ["  missing values", *(f"{data.missing:.2%}" for data in sets)],
        ["Documents per query, mean", *(f"{data.sizes.mean():.1f}" for data in sets)],
        ["  least", *(f"{data.sizes.min():,}" for data in sets)],
        ["  most", *(f"{data.sizes.max():,}" for data in sets)],
        ["Queries without a relevant document", *(f"{data.without_relevant:,}" for data in sets)],
        ["Queries with one label only", *(f"{data.single_label:,}" for data in sets)],
    ]
    if any(data.n_unlabelled for data in sets):
        rows.append(["Documents without a label", *(f"{data.n_unlabelled:,}" for data in sets)])
    for source in dict.fromkeys(name for data in sets for name in data.sources):
        rows.append([f"Documents with {source}", *(f"{s.sources.get(source, 0):,}" for s in sets)])
    terminal.show_table("Statistics", ["", *names], rows)


def _show_grades(terminal: Terminal, names: list[str], sets: list[Description]) -> None:
    grades = sorted({grade for data in sets for grade in data.grades}, reverse=True)
    if not grades:
        terminal.say("There are too many different labels for a table of grades.")
        return
    tops = {data.top_grade for data in sets}
    named = tops == {max(GRADE_NAMES)} and set(grades) <= set(GRADE_NAMES)
    rows = [
        [
            f"{GRADE_NAMES[int(grade)]} {plain_number(grade)}" if named else plain_number(grade),
            *(_share(data, grade) for data in sets),
        ]
        for grade in grades
    ]
    terminal.show_table("Distribution of grades", ["Grade", *names], rows)


def _share(data: Description, grade: float) -> str:
    """Return the share of a grade among labelled documents; empty without a table of grades."""
    if not data.grades:
        return ""
    return f"{data.grades.get(grade, 0) / (data.n_docs - data.n_unlabelled):.2%}"
