"""``rankinite inspect``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rankinite.cli.files import load_ranker
from rankinite.cli.outputs import Outputs, refuse_file_as_folder
from rankinite.cli.terminal import Terminal, can_print_unicode
from rankinite.core.errors import UsageError
from rankinite.core.format import number_text, plain_number, some_of
from rankinite.evaluation.tables import Table

if TYPE_CHECKING:
    from rankinite.explanation.inspection import Curve, Importance, Inspection, Layers, Trees
    from rankinite.objectives.position_bias import PositionBias

# Of rising height, for learning curves in a line of a table.
BLOCKS = "▁▂▃▄▅▆▇█"
BLOCKS_OF_ASCII = "_.-=+*%#"
CURVE_WIDTH = 30


def inspect(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model file.")],
    top: Annotated[int, typer.Option(min=0, help="Number of features to list.")] = 20,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="Draw the learning curve, the importances and the position bias as PNG files into "
            "this folder."
        ),
    ] = None,
    member: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Inspect this member of an ensemble."),
    ] = None,
    trees: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBERS",
            help="List the nodes of these trees instead: all, or from 0 on, as in 0,3,5-9.",
        ),
    ] = None,
    tree: Annotated[
        int | None, typer.Option(metavar="NUMBER", help="List the nodes of this tree.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the tree of --tree as this SVG file."),
    ] = None,
    *,
    outputs: Outputs,
    terminal: Terminal,
) -> None:
    """Show the contents of a model: parameters, trees or layers, learning curve, importances, base.

    Of a ranker that corrected clicks for positions: how much each position mattered.
    Of an ensemble: its members with their weights, and the ranker on top if there is one. Of a
    ranker with another one's scores as features: both. If MODEL.toml is beside it, the fingerprint
    of the training data as well. Model files hold no date: equal trainings give equal bytes.
    """
    from rankinite.cli.trees import TreeChoice, show_trees
    from rankinite.explanation.inspection import FIGURES, draw_figures, inspect_ranker
    from rankinite.runs.training import DIGITS, fingerprint_beside

    choice = TreeChoice.checked(trees, tree, out)
    if figures is not None:
        refuse_file_as_folder(figures)
    drawings = [] if figures is None else [figures / name for name in FIGURES]
    if out is not None:
        drawings.append(out)
    outputs.check("inspect", [model], files=drawings)
    ranker = load_ranker(model)
    if member is not None:
        ranker = member_of(ranker, member)
    if choice is not None:
        show_trees(terminal, model, ranker, choice)
        return
    inspection = inspect_ranker(ranker)
    drawn = [] if figures is None else draw_figures(inspection, figures, top)
    outputs.record(drawn)
    digest = fingerprint_beside(model)
    if terminal.json:
        paths = [str(path) for path in drawn]
        values = {**inspection.as_json(top), "fingerprint": digest}
        terminal.show_json({"model": str(model), **values, "figures": paths})
        return
    _show(terminal, str(model), inspection, top)
    if digest is not None:
        terminal.say("")
        terminal.say(f"Fingerprint of the training data: {digest[:DIGITS]}")
    terminal.say_written(drawn)


def member_of(ranker: Any, name: str) -> Any:
    """Return the ranker of this name inside another one."""
    inner = ranker.inner_rankers
    if name not in inner:
        has = f"it has {some_of(list(inner))}" if inner else "it has no rankers inside"
        raise UsageError(f"inspect: the {type(ranker).__name__} has no member {name!r}; {has}")
    return inner[name]


def _show(terminal: Terminal, name: str, inspection: Inspection, top: int) -> None:
    """Print the tables of a ranker, and then those of the rankers that it consists of."""
    tables = [Table(name, ["", inspection.kind], _structure(inspection))]
    if inspection.members:
        tables.append(_members(inspection))
    if inspection.parameters:
        columns = ["Parameter", "Value", "Default"]
        tables.append(Table("Parameters", columns, _parameters(inspection)))
    if inspection.curves:
        tables.append(_curves(inspection))
    if top and inspection.importances:
        tables.append(importances_table(inspection.importances[:top]))
    if inspection.position_bias is not None:
        tables.append(_position_bias(inspection.position_bias))
    for k, table in enumerate(tables):
        if k:
            terminal.say("")
        terminal.show(table)
    seen = "members" if inspection.members else "also the scorer's scores of the query"
    inner = {
        # A base of scores instead of a ranker is a text.
        f"The base of {name}": None if isinstance(inspection.base, str) else inspection.base,
        f"The scorer of {name}, whose scores are features": inspection.scorer,
        f"The ranker on top of {name}, whose features are {seen}": inspection.on_top,
    }
    for title, ranker in inner.items():
        if ranker is not None:
            terminal.say("")
            _show(terminal, title, ranker, top)


def _structure(inspection: Inspection) -> list[list[str]]:
    base = inspection.base
    base_kind = base if isinstance(base, str) else getattr(base, "kind", "none")
    # What it takes to be listed: a tree splits by the feature, or a net's input is no constant.
    used = "with a split" if inspection.trees is not None else "that vary"
    return [
        *([name.capitalize(), text or "not told"] for name, text in inspection.origin.items()),
        *(_trees(inspection, inspection.trees) if inspection.trees is not None else []),
        *(_layers(inspection, inspection.net) if inspection.net is not None else []),
        *([["Members", f"{len(inspection.members):,}"]] if inspection.members else []),
        ["Features", f"{len(inspection.features):,}"],
        *([] if inspection.is_composed else [[f"  {used}", f"{len(inspection.importances):,}"]]),
        *_training_data(inspection),
        # Of a forest that was trained elsewhere neither is known.
        *([] if inspection.origin else [["Top grade", plain_number(inspection.top_grade)]]),
        *([] if inspection.is_composed or inspection.origin else [["Base", base_kind]]),
        *([] if inspection.version is None else [["Trained by rankinite", inspection.version]]),
    ]


def _training_data(inspection: Inspection) -> list[list[str]]:
    sizes = {"Training queries": inspection.n_queries, "Training documents": inspection.n_docs}
    return [[name, f"{size:,}"] for name, size in sizes.items() if size is not None]


def _members(inspection: Inspection) -> Table:
    """Return the members of an ensemble, and how their scores are normalised."""
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
    return Table(f"Members, each as {formula}", columns, rows)


def _size(inspection: Inspection) -> str:
    """Return the number of trees, units or members of a ranker, as text."""
    if inspection.net is not None:
        hidden = inspection.net.sizes[1:]
        return "linear" if not hidden else ", ".join(f"{n:,}" for n in hidden) + " units"
    return f"{inspection.kept:,} {'members' if inspection.members else inspection.rounds}"


def _trees(inspection: Inspection, trees: Trees) -> list[list[str]]:
    several = trees.per_round > 1
    noun = "Rounds" if several else "Trees"
    rows = [
        [f"{noun} kept", f"{inspection.kept:,}"],
        [f"{noun} grown", f"{inspection.n_rounds:,}"],
    ]
    if several:
        rows.append(["Trees a round", f"{trees.per_round}"])
    rows.append(["Leaves", f"{trees.n_leaves:,}"])
    if trees.n_categorical:
        rows.append(["Categorical splits", f"{trees.n_categorical:,}"])
    return rows


def _layers(inspection: Inspection, net: Layers) -> list[list[str]]:
    n_inputs, *hidden = net.sizes
    layers = [f"{n_inputs:,} inputs", *(f"{n:,} units" for n in hidden), "score"]
    return [
        ["Epoch kept", f"{inspection.best_round:,}"],
        ["Epochs done", f"{inspection.n_rounds:,}"],
        ["Layers", ", ".join(layers)],
        ["Weights", f"{net.n_weights:,}"],
    ]


def _position_bias(bias: PositionBias) -> Table:
    """Return the estimates of every position."""
    columns = ["Position", *(name.capitalize() for name in bias.estimates)]
    rows = [
        [str(position), *(f"{value:.3f}" for value in values)]
        for position, *values in zip(bias.positions, *bias.estimates.values(), strict=True)
    ]
    title = "Propensity" if len(bias.estimates) > 1 else "Effect on scores"
    return Table(f"{title} of each position, as estimated", columns, rows)


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


def _curves(inspection: Inspection) -> Table:
    columns = ["Set", "Measure", "First", f"At {inspection.best_round}", "Last", "Curve"]
    rows = [_curve_row(curve, inspection.best_round) for curve in inspection.curves]
    title = f"Learning curve over {inspection.n_rounds:,} {inspection.rounds}"
    return Table(title, columns, rows)


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
    # The last value of each of n equal parts: so the curve ends with the last round.
    chosen = [values[(k + 1) * len(values) // n - 1] for k in range(n)]
    low, high = min(chosen), max(chosen)
    # A flat curve has no height to divide by.
    height = high / 2 - low / 2  # halves, since a difference may be too large
    shares = [(value / 2 - low / 2) / height if height > 0 else 0.0 for value in chosen]
    return "".join(blocks[round(share * (len(blocks) - 1))] for share in shares)


def importances_table(chosen: Sequence[Importance]) -> Table:
    """Return a table of importances: the gain of splits, or the slopes of a net's score."""
    of_trees = chosen[0].count is not None
    columns = {
        "Feature": [importance.feature for importance in chosen],
        f"Share of {'gain' if of_trees else 'slope'}": [
            f"{importance.share:.1%}" for importance in chosen
        ],
    }
    if of_trees:
        columns["Splits"] = [f"{importance.count:,}" for importance in chosen]
    if chosen[0].weight is not None:
        columns["Weight"] = [f"{importance.weight:+.4g}" for importance in chosen]
    rows = list(zip(*columns.values(), strict=True))
    return Table("Most important features", list(columns), rows)
