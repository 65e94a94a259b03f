"""``rankinite inspect``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankinite.cli.files import load_ranker
from rankinite.cli.terminal import Terminal, can_print_unicode
from rankinite.core.format import number_text, plain_number

if TYPE_CHECKING:
    from rankinite.explain.inspection import Curve, Importance, Inspection, Layers, Trees

BLOCKS = "▁▂▃▄▅▆▇█"
BLOCKS_OF_ASCII = "_.-=+*%#"
CURVE_WIDTH = 30


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    top: Annotated[int, typer.Option(min=0, help="Number of features to list.")] = 20,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Draw the learning curve and the importances as PNG files into this folder."
        ),
    ] = None,
    *,
    terminal: Terminal,
) -> None:
    """Show the contents of a model: parameters, trees or layers, learning curve, importances, base.

    Of an ensemble: its members with their weights, and the ranker on top if there is one. Of a
    ranker with another one's scores as features: both.
    """
    from rankinite.explain.inspection import draw_figures, inspect_ranker

    inspection = inspect_ranker(load_ranker(model))
    drawn = [] if figures is None else draw_figures(inspection, figures, top)
    if terminal.json:
        paths = [str(path) for path in drawn]
        terminal.show_json({"model": str(model), **inspection.as_json(top), "figures": paths})
        return
    _show(terminal, str(model), inspection, top)
    terminal.say_written(drawn)


def _show(terminal: Terminal, name: str, inspection: Inspection, top: int) -> None:
    terminal.show_table(name, ["", inspection.kind], _structure(inspection))
    if inspection.members:
        terminal.say("")
        _show_members(terminal, inspection)
    if inspection.parameters:
        terminal.say("")
        terminal.show_table(
            "Parameters", ["Parameter", "Value", "Default"], _parameters(inspection)
        )
    if inspection.curves:
        terminal.say("")
        _show_curves(terminal, inspection)
    if top and inspection.importances:
        terminal.say("")
        show_importances(terminal, inspection.importances[:top])
    if not isinstance(inspection.base, str) and inspection.base is not None:
        terminal.say("")
        _show(terminal, f"The base of {name}", inspection.base, top)
    if inspection.scorer is not None:
        terminal.say("")
        _show(terminal, f"The scorer of {name}, whose scores are features", inspection.scorer, top)
    if inspection.on_top is not None:
        terminal.say("")
        seen = "members" if inspection.members else "also the scorer's scores of the query"
        _show(
            terminal,
            f"The ranker on top of {name}, whose features are {seen}",
            inspection.on_top,
            top,
        )


def _structure(inspection: Inspection) -> list[list[str]]:
    base = inspection.base
    base_kind = base if isinstance(base, str) else getattr(base, "kind", "none")
    used = "with a split" if inspection.trees is not None else "that vary"
    return [
        *(_trees(inspection, inspection.trees) if inspection.trees is not None else []),
        *(_layers(inspection, inspection.net) if inspection.net is not None else []),
        *([["Members", f"{len(inspection.members):,}"]] if inspection.members else []),
        ["Features", f"{len(inspection.features):,}"],
        *([] if inspection.is_composed else [[f"  {used}", f"{len(inspection.importances):,}"]]),
        ["Top grade", plain_number(inspection.top_grade)],
        *([] if inspection.is_composed else [["Base", base_kind]]),
    ]


def _show_members(terminal: Terminal, inspection: Inspection) -> None:
    """Print the members of an ensemble, and how their scores are normalised."""
    weighted = inspection.members[0].weight is not None
    columns = ["Member", "Kind", "Consists of", *(["Weight"] if weighted else []), "Mean", "Scale"]
    rows = [
        [
            member.name if member.name == str(k) else f"{k}  {member.name}",
            member.kind,
            "" if member.inspection is None else _size(member.inspection),
            *([f"{member.weight:.4g}"] if weighted else []),
            f"{member.mean:.4g}",
            f"{member.scale:.4g}",
        ]
        for k, member in enumerate(inspection.members, 1)
    ]
    formula = "weight * (score - mean) / scale" if weighted else "(score - mean) / scale"
    terminal.show_table(f"Members, each as {formula}", columns, rows)


def _size(inspection: Inspection) -> str:
    """Return the number of trees, units or members of a ranker, as text."""
    if inspection.net is not None:
        hidden = inspection.net.sizes[1:]
        return "linear" if not hidden else ", ".join(f"{n:,}" for n in hidden) + " units"
    return f"{inspection.best_round:,} {'members' if inspection.members else inspection.rounds}"


def _trees(inspection: Inspection, trees: Trees) -> list[list[str]]:
    several = trees.per_round > 1
    noun = "Rounds" if several else "Trees"
    rows = [
        [f"{noun} kept", f"{inspection.best_round:,}"],
        [f"{noun} grown", f"{inspection.n_rounds:,}"],
    ]
    if several:
        rows.append(["Trees a round", f"{trees.per_round}"])
    return [*rows, ["Leaves", f"{trees.n_leaves:,}"]]


def _layers(inspection: Inspection, net: Layers) -> list[list[str]]:
    n_inputs, *hidden = net.sizes
    layers = [f"{n_inputs:,} inputs", *(f"{n:,} units" for n in hidden), "score"]
    return [
        ["Epoch kept", f"{inspection.best_round:,}"],
        ["Epochs done", f"{inspection.n_rounds:,}"],
        ["Layers", ", ".join(layers)],
        ["Weights", f"{net.n_weights:,}"],
    ]


def _parameters(inspection: Inspection) -> list[list[str]]:
    """Return a row for every parameter, with its default if that differs."""
    return [
        [
            name,
            _text(value),
            "" if value == inspection.defaults[name] else _text(inspection.defaults[name]),
        ]
        for name, value in inspection.parameters.items()
    ]


def _text(value: Any) -> str:
    return "none" if value is None else str(value)


def _show_curves(terminal: Terminal, inspection: Inspection) -> None:
    columns = ["Set", "Measure", "First", f"At {inspection.best_round}", "Last", "Curve"]
    rows = [_curve_row(curve, inspection.best_round) for curve in inspection.curves]
    terminal.show_table(
        f"Learning curve over {inspection.n_rounds:,} {inspection.rounds}", columns, rows
    )


def _curve_row(curve: Curve, best_round: int) -> list[str]:
    marks = (curve.values[0], curve.values[best_round - 1], curve.values[-1])
    numbers = (number_text(value) for value in marks)
    return [curve.set_name, curve.measure, *numbers, _small(curve.values)]


def _small(values: Sequence[float]) -> str:
    return sparkline(values, BLOCKS if can_print_unicode() else BLOCKS_OF_ASCII)


def sparkline(values: Sequence[float], blocks: str = BLOCKS, width: int = CURVE_WIDTH) -> str:
    """Return a curve as a line of blocks, the lowest for the least value.

    Examples
    --------
    >>> sparkline([0.1, 0.4, 0.7, 0.8, 0.8])
    '▁▄▇██'
    """
    n = min(width, len(values))
    chosen = [values[(k + 1) * len(values) // n - 1] for k in range(n)]
    low, high = min(chosen), max(chosen)
    steps = (len(blocks) - 1) / (high - low) if high > low else 0.0
    return "".join(blocks[round((value - low) * steps)] for value in chosen)


def show_importances(terminal: Terminal, chosen: Sequence[Importance]) -> None:
    """Print a table of importances: the gain of splits, or the slopes of a net's score."""
    of_trees = chosen[0].count is not None
    columns = ["Feature", "Share of gain" if of_trees else "Share of slope"]
    rows = [[importance.feature, f"{importance.share:.1%}"] for importance in chosen]
    if of_trees:
        columns.append("Splits")
        rows = [
            [*row, f"{importance.count:,}"] for row, importance in zip(rows, chosen, strict=True)
        ]
    if chosen[0].weight is not None:
        columns.append("Weight")
        rows = [
            [*row, f"{importance.weight:+.4g}"]
            for row, importance in zip(rows, chosen, strict=True)
        ]
    terminal.show_table("Most important features", columns, rows)
