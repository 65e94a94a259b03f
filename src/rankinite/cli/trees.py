"""The options of ``rankinite inspect`` that look at single trees."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from rankinite.cli.outputs import refuse_missing_folders
from rankinite.cli.terminal import Terminal
from rankinite.core.errors import UsageError
from rankinite.evaluation.tables import Table

if TYPE_CHECKING:
    from rankinite.trees.nodes import Node

RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@dataclass(frozen=True)
class TreeChoice:
    """Which trees to show, and the file to draw a single one to.

    Attributes
    ----------
    ranges
        First and last tree of each range; None for all trees.
    out
        The SVG file; None for a table.
    """

    ranges: tuple[tuple[int, int], ...] | None
    out: Path | None

    @classmethod
    def checked(cls, trees: str | None, tree: int | None, out: Path | None) -> Self | None:
        """Return the choice of the options; None without any of them.

        Parameters
        ----------
        trees, tree, out
            The options ``--trees``, ``--tree`` and ``--out``.
        """
        if trees is not None and tree is not None:
            raise UsageError("inspect: give --trees or --tree, not both")
        if out is not None:
            if tree is None:
                raise UsageError("inspect: --out draws a single tree; say which, as in --tree 0")
            from rankinite.trees.drawing import require_svg

            require_svg(out)
            refuse_missing_folders([out])
        if trees is None and tree is None:
            return None
        text = str(tree) if trees is None else trees
        return cls(None if text.strip().lower() == "all" else tuple(_ranges(text)), out)

    def numbers(self, n_trees: int) -> list[int]:
        """Return the numbers of the trees, each once, of a model that has so many."""
        if self.ranges is None:
            return list(range(n_trees))
        # Before the ranges are written out, which may be long.
        last = max(end for _, end in self.ranges)
        if last >= n_trees:
            has = f"trees 0 to {n_trees - 1}" if n_trees else "no trees"
            raise UsageError(f"inspect: there is no tree {last}; the model has {has}")
        numbers = (k for begin, end in self.ranges for k in range(begin, end + 1))
        return list(dict.fromkeys(numbers))


def _ranges(text: str) -> list[tuple[int, int]]:
    ranges = []
    for part in text.split(","):
        match = RANGE.fullmatch(part.strip())
        begin, end = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if begin > end:
            raise UsageError(
                f"inspect: {text!r} are no numbers of trees; expected all, or numbers and ranges "
                "from 0 on, as in 0,3,5-9"
            )
        ranges.append((begin, end))
    return ranges


def show_trees(terminal: Terminal, model: Path, ranker: Any, choice: TreeChoice) -> None:
    """Print the nodes of some trees of a ranker, or draw one.

    Parameters
    ----------
    terminal
        Where to print.
    model, ranker
        The model file, and the ranker in it.
    choice
        Which trees, and the file to draw to.
    """
    if not hasattr(ranker, "plot_tree"):
        raise UsageError(f"inspect: {ranker.no_trees()}")
    numbers = choice.numbers(len(ranker.forest_))
    if choice.out is not None:
        ranker.plot_tree(numbers[0]).save(choice.out)
    nodes = {number: ranker.tree_nodes(number) for number in numbers}
    if terminal.json:
        rows = [node.as_row(number) for number, tree in nodes.items() for node in tree]
        drawn = None if choice.out is None else str(choice.out)
        terminal.show_json({"model": str(model), "nodes": _finite(rows), "drawing": drawn})
        return
    if choice.out is not None:
        terminal.say_written([choice.out])
        return
    for k, (number, tree) in enumerate(nodes.items()):
        if k:
            terminal.say("")
        terminal.show(_table(number, tree))


def _finite(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows as JSON can hold them: it has no infinity, which separates missing values."""
    return [
        {**row, "threshold": None if row["threshold"] == float("inf") else row["threshold"]}
        for row in rows
    ]


def _table(number: int, nodes: Sequence[Node]) -> Table:
    from rankinite.trees.nodes import condition_text

    columns = ["Node", "Depth", "Goes left if", "Missing", "Left", "Right", "Gain", "Value"]
    rows = [
        [
            node.name,
            str(node.depth),
            *(
                ["", "", "", "", ""]
                if node.is_leaf
                else [
                    condition_text(node, 6),
                    str(node.missing),
                    str(node.left),
                    str(node.right),
                    f"{node.gain:.4g}",
                ]
            ),
            f"{node.value:+.4g}",
            f"{node.count:,}",
        ]
        for node in nodes
    ]
    n_leaves = sum(node.is_leaf for node in nodes)
    return Table(f"Tree {number}, {n_leaves} leaves", [*columns, "Documents"], rows)
