"""``rankinite inspect``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankinite.cli.options import load_ranker
from rankinite.cli.terminal import Terminal
from rankinite.core.format import plain_number

if TYPE_CHECKING:
    from rankinite.explain.inspection import Curve, Importance, Inspection, Layers, Trees

BLOCKS = "▁▂▃▄▅▆▇█"
BLOCKS_OF_ASCII = "_.-=+*%#"
CURVE_WIDTH = 30


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    top: Annotated[int, typer.Option(min=0, help="How many features to list.")] = 20,
    figures: Annotated[
        Path | None,
        typer.Option(help="Draw learning curve and importances as PNG files into this folder."),
    ] = None,
    *,
    terminal: Terminal,
) -> None:
    """Show what is in a model: parameters, trees or layers, learning curve, importances, base.

    Of a combination: its members with their weights, and the ranker on top if there is one. Of a
    ranker that sees another one's scores: both.
    """
    from rankinite.explain.inspection import draw_figures, inspect_ranker

    found = inspect_ranker(load_ranker(model))
    drawn = [] if figures is None else draw_figures(found, figures, top)
    if terminal.json:
        paths = [str(path) for path in drawn]
        terminal.show_json({"model": str(model), **found.as_json(top), "figures": paths})
        return
    _show(terminal, str(model), found, top)
    for path in drawn:
        terminal.say(f"wrote {path}")


def _show(terminal: Terminal, name: str, found: Inspection, top: int) -> None:
    terminal.show_table(name, ["", found.kind], _summary(found))
    if found.members:
        terminal.say("")
        _show_members(terminal, found)
    if found.parameters:
        terminal.say("")
        terminal.show_table("Parameters", ["Parameter", "Value", "Default"], _parameters(found))
    if found.curves:
        terminal.say("")
        _show_curves(terminal, found)
    if top and found.importances:
        terminal.say("")
        show_importances(terminal, found.importances[:top])
    if not isinstance(found.base, str) and found.base is not None:
        terminal.say("")
        _show(terminal, f"The base of {name}", found.base, top)
    if found.scorer is not None:
        terminal.say("")
        _show(terminal, f"The scorer of {name}, whose scores are features", found.scorer, top)
    if found.on_top is not None:
        terminal.say("")
        seen = "members" if found.members else "also the scorer's scores of the query"
        _show(
            terminal, f"The ranker on top of {name}, whose features are {seen}", found.on_top, top
        )


def _summary(found: Inspection) -> list[list[str]]:
    base = found.base if isinstance(found.base, str) else getattr(found.base, "kind", "none")
    used = "with a split" if found.trees is not None else "that vary"
    return [
        *(_trees(found, found.trees) if found.trees is not None else []),
        *(_layers(found, found.net) if found.net is not None else []),
        *([["Members", f"{len(found.members):,}"]] if found.members else []),
        ["Features", f"{len(found.features):,}"],
        *([] if found.is_composed else [[f"  {used}", f"{len(found.importances):,}"]]),
        ["Top grade", plain_number(found.top_grade)],
        *([] if found.is_composed else [["Base", base]]),
    ]


def _show_members(terminal: Terminal, found: Inspection) -> None:
    """Print what a combination consists of, and what brings scores to one scale."""
    weighted = found.members[0].weight is not None
    columns = ["Member", "Kind", "Consists of", *(["Weight"] if weighted else []), "Mean", "Scale"]
    rows = [
        [
            one.name if one.name == str(k) else f"{k}  {one.name}",
            one.kind,
            "" if one.found is None else _size(one.found),
            *([f"{one.weight:.4g}"] if weighted else []),
            f"{one.mean:.4g}",
            f"{one.scale:.4g}",
        ]
        for k, one in enumerate(found.members, 1)
    ]
    formula = "weight * (score - mean) / scale" if weighted else "(score - mean) / scale"
    terminal.show_table(f"Members, each as {formula}", columns, rows)


def _size(found: Inspection) -> str:
    """Return how many trees, units or members a ranker consists of."""
    if found.net is not None:
        hidden = found.net.sizes[1:]
        return "linear" if not hidden else ", ".join(f"{n:,}" for n in hidden) + " units"
    return f"{found.kept:,} {'members' if found.members else found.rounds}"


def _trees(found: Inspection, trees: Trees) -> list[list[str]]:
    several = trees.a_round > 1
    word = "Rounds" if several else "Trees"
    rows = [[f"{word} kept", f"{found.kept:,}"], [f"{word} grown", f"{found.done:,}"]]
    if several:
        rows.append(["Trees a round", f"{trees.a_round}"])
    return [*rows, ["Leaves", f"{trees.n_leaves:,}"]]


def _layers(found: Inspection, net: Layers) -> list[list[str]]:
    n_inputs, *hidden = net.sizes
    layers = [f"{n_inputs:,} inputs", *(f"{n:,} units" for n in hidden), "score"]
    return [
        ["Epoch kept", f"{found.kept:,}"],
        ["Epochs done", f"{found.done:,}"],
        ["Layers", ", ".join(layers)],
        ["Weights", f"{net.n_weights:,}"],
    ]


def _parameters(found: Inspection) -> list[list[str]]:
    """Return a row a parameter; the default stands in it only where it is another."""
    return [
        [name, _text(value), "" if value == found.defaults[name] else _text(found.defaults[name])]
        for name, value in found.parameters.items()
    ]


def _text(value: Any) -> str:
    return "none" if value is None else str(value)


def _show_curves(terminal: Terminal, found: Inspection) -> None:
    columns = ["Set", "Measure", "First", f"At {found.kept}", "Last", "Curve"]
    rows = [_curve_row(one, found.kept) for one in found.curves]
    terminal.show_table(f"Learning curve over {found.done:,} {found.rounds}", columns, rows)


def _curve_row(one: Curve, kept: int) -> list[str]:
    marks = (one.values[0], one.values[kept - 1], one.values[-1])
    return [one.set_name, one.measure, *(f"{value:.4f}" for value in marks), _small(one.values)]


def _small(values: Sequence[float]) -> str:
    encoding = (sys.stdout.encoding or "").lower()
    return sparkline(values, BLOCKS if encoding.startswith("utf") else BLOCKS_OF_ASCII)


def sparkline(values: Sequence[float], blocks: str = BLOCKS, width: int = CURVE_WIDTH) -> str:
    """Return a curve as a line of blocks, from the least value to the largest.

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
    """Print a table of features: what their splits gained, or how steep a net's score can be."""
    of_trees = chosen[0].count is not None
    columns = ["Feature", "Share of gain" if of_trees else "Share of slope"]
    rows = [[one.feature, f"{one.share:.1%}"] for one in chosen]
    if of_trees:
        columns.append("Splits")
        rows = [[*row, f"{one.count:,}"] for row, one in zip(rows, chosen, strict=True)]
    if chosen[0].weight is not None:
        columns.append("Weight")
        rows = [[*row, f"{one.weight:+.4g}"] for row, one in zip(rows, chosen, strict=True)]
    terminal.show_table("Most important features", columns, rows)
