"""A tree as an SVG picture: the root on the left, one line per leaf, nothing to install.

With the root on the left texts stay horizontal, so that a tree of 64 leaves is as readable as one
of 4: it is longer, not smaller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from rankinite.core.errors import UsageError
from rankinite.core.files import atomic_write
from rankinite.core.format import visible
from rankinite.trees.nodes import Node, condition_text

# All in pixels. Rows are so high that splits of a column, which are two rows apart, do not touch.
ROW, GAP, MARGIN, HEADER = 30, 84, 16, 40
SPLIT_HEIGHT, LEAF_HEIGHT, CORNER = 38, 22, 4
# Wider than most letters are, so that texts fit whatever font there is.
LETTER, PADDING = 7.0, 10
LONGEST_NAME, LONGEST_CONDITION = 36, 60
POSITIVE, NEGATIVE = (70, 130, 200), (225, 130, 60)

STYLE = (
    "text{font:12px 'DejaVu Sans',Verdana,sans-serif;fill:#222}"
    ".title{font-size:15px;font-weight:bold}"
    ".small{font-size:10px;fill:#555}"
    ".split{fill:#f6f6f6;stroke:#888}"
    ".leaf{stroke:#888}"
    ".edge{fill:none;stroke:#999}"
)


@dataclass(frozen=True, repr=False)
class TreeDrawing:
    """A drawn tree, which notebooks show as it is.

    Attributes
    ----------
    svg
        The picture as the text of an SVG file.
    """

    svg: str

    def __repr__(self) -> str:
        return f"<TreeDrawing: {len(self.svg):,} characters of SVG; save(path) writes them>"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | Path) -> None:
        """Write the picture to a file.

        Parameters
        ----------
        path
            The file, whose name ends in ``.svg``.
        """
        require_svg(path)
        with atomic_write(path) as file:
            file.write(self.svg.encode())


def require_svg(path: str | Path) -> None:
    """Refuse a file that is not called .svg."""
    if Path(path).suffix.lower() != ".svg":
        raise UsageError(f"{path}: a tree is drawn as SVG; give a name that ends in .svg")


@dataclass(frozen=True)
class _Place:
    """Where a node is drawn: its left edge, the middle of its height, and its width."""

    x: float
    y: float
    width: float


def draw_tree(nodes: Sequence[Node], title: str) -> TreeDrawing:
    """Draw a tree.

    Parameters
    ----------
    nodes
        All nodes of the tree, as `tree_nodes` returns them.
    title
        What stands above it.
    """
    places = _places(nodes)
    width = max(place.x + place.width for place in places.values()) + MARGIN
    width = max(width, MARGIN + 1.3 * LETTER * len(title))
    height = HEADER + ROW * sum(node.is_leaf for node in nodes) + MARGIN
    largest = max(abs(node.value) for node in nodes if node.is_leaf) or 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">',
        f"<title>{_xml(title)}</title><style>{STYLE}</style>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text class="title" x="{MARGIN}" y="24">{_xml(title)}</text>',
        *(_edges(node, places) for node in nodes if not node.is_leaf),
        *(_box(node, places[node.name], largest) for node in nodes),
        "</svg>",
    ]
    return TreeDrawing("\n".join(parts) + "\n")


def _places(nodes: Sequence[Node]) -> dict[str, _Place]:
    """Return the place of each node: a column per depth, a row per leaf."""
    rows: dict[str, float] = {}
    for number, leaf in enumerate(node for node in nodes if node.is_leaf):
        rows[leaf.name] = float(number)
    # A split comes before what is below it: from the last on, its children have their rows.
    for node in reversed(nodes):
        if node.left is not None and node.right is not None:
            rows[node.name] = (rows[node.left] + rows[node.right]) / 2
    needed = {node.name: LETTER * max(map(len, _texts(node))) + 2 * PADDING for node in nodes}
    widths: dict[int, float] = {}
    for node in nodes:
        widths[node.depth] = max(widths.get(node.depth, 0.0), needed[node.name])
    left = {1: float(MARGIN)}
    for depth in range(2, len(widths) + 1):
        left[depth] = left[depth - 1] + widths[depth - 1] + GAP
    return {
        node.name: _Place(
            left[node.depth],
            HEADER + ROW * (rows[node.name] + 0.5),
            # Splits fill their column: the lines that leave them then cross no other node.
            needed[node.name] if node.is_leaf else widths[node.depth],
        )
        for node in nodes
    }


def _texts(node: Node) -> tuple[str, ...]:
    """Return what is written in a node, line by line."""
    documents = f"{node.count:,} docs"
    if node.is_leaf:
        return (f"{node.name}: {node.value:+.4g}, {documents}",)
    return (_condition(node), f"gain {node.gain:.3g}, {documents}")


def _condition(node: Node) -> str:
    name = node.feature or ""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    text = condition_text(node).replace(name, short, 1).replace(" <= ", " ≤ ")
    # Names of categories may be long, too.
    return text if len(text) <= LONGEST_CONDITION else f"{text[: LONGEST_CONDITION - 1]}…"


def _edges(node: Node, places: Mapping[str, _Place]) -> str:
    """Return the lines to both children, each with the answer that leads there."""
    start, parts = places[node.name], []
    # The line to the upper child comes from below, so that its text stands above it.
    answers = ((node.left, "yes", "left", -4), (node.right, "no", "right", 11))
    for child, answer, side, shift in answers:
        end = places[child or ""]
        x, middle = start.x + start.width, (start.x + start.width + end.x) / 2
        text = f"{answer}, missing" if node.missing == side else answer
        parts.append(
            f'<path class="edge" d="M{x:.1f} {start.y:.1f}C{middle:.1f} {start.y:.1f} '
            f'{middle:.1f} {end.y:.1f} {end.x:.1f} {end.y:.1f}"/>'
            f'<text class="small" x="{end.x - 4:.1f}" y="{end.y + shift:.1f}" '
            f'text-anchor="end">{text}</text>'
        )
    return "".join(parts)


def _box(node: Node, place: _Place, largest: float) -> str:
    """Return a node with its texts; the colour of a leaf shows its value, a tooltip its numbers."""
    height = LEAF_HEIGHT if node.is_leaf else SPLIT_HEIGHT
    fill = f' fill="{_colour(node.value / largest)}"' if node.is_leaf else ""
    kind = "leaf" if node.is_leaf else "split"
    x, texts = place.x + PADDING, _texts(node)
    lines = [f'<text x="{x:.1f}" y="{place.y + 4:.1f}">{_xml(texts[0])}</text>']
    if len(texts) == 2:
        lines = [
            f'<text x="{x:.1f}" y="{place.y - 3:.1f}">{_xml(texts[0])}</text>',
            f'<text class="small" x="{x:.1f}" y="{place.y + 12:.1f}">{_xml(texts[1])}</text>',
        ]
    return (
        f"<g><title>{_xml(_tooltip(node))}</title>"
        f'<rect class="{kind}" x="{place.x:.1f}" y="{place.y - height / 2:.1f}" '
        f'width="{place.width:.1f}" height="{height}" rx="{CORNER}"{fill}/>{"".join(lines)}</g>'
    )


def _tooltip(node: Node) -> str:
    what = "" if node.is_leaf else f"{condition_text(node, 9)}, gain {node.gain:.6g}, mean "
    return f"{node.name}: {what}value {node.value:.6g}, {node.count:,} training documents"


def _colour(share: float) -> str:
    """Return a light colour for a value from -1 to 1, white for 0."""
    strength = 0.75 * min(abs(share), 1.0)
    pure = POSITIVE if share > 0 else NEGATIVE
    return "#" + "".join(f"{round(255 + strength * (part - 255)):02x}" for part in pure)


def _xml(text: str) -> str:
    # A feature may have any name; XML cannot hold most control characters, not even escaped.
    return escape(visible(text))
