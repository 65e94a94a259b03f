"""Drawn trees: well-formed SVG with every node in it, boxes that do not touch, any name."""

from __future__ import annotations

from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest

from rankinite.core.errors import UsageError
from rankinite.trees.drawing import LETTER, draw_tree
from rankinite.trees.nodes import tree_nodes
from tests.trees.cases import chain, leaf, random_tree

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = "<script>alert('&')</script>\x00\x0b\ufffe \"x\" " + "long" * 20


def drawn(tree, names, title="Tree 0"):
    """Return the parsed picture."""
    return ElementTree.fromstring(draw_tree(list(tree_nodes(tree, names)), title).svg)


def boxes(picture) -> list[tuple[float, ...]]:
    """Return the left, upper, right and lower edges of all nodes."""
    sides = []
    for rect in picture.findall(f"{SVG}g/{SVG}rect"):
        x, y, width, height = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        sides.append((x, y, x + width, y + height))
    return sides


@pytest.mark.parametrize("n_leaves", [2, 5, 31, 64])
def test_no_two_nodes_touch_and_texts_fit(n_leaves):
    names = ["bm25", "a rather long name of a feature", "age"]
    picture = drawn(random_tree(np.random.default_rng(n_leaves), n_leaves, 3), names)
    sides = boxes(picture)
    assert len(sides) == 2 * n_leaves - 1
    for a, b in combinations(sides, 2):
        assert a[2] <= b[0] or b[2] <= a[0] or a[3] < b[1] or b[3] < a[1]
    for group, (left, _, right, _) in zip(picture.findall(f"{SVG}g"), sides, strict=True):
        for text in group.findall(f"{SVG}text"):
            assert left < float(text.get("x"))
            assert float(text.get("x")) + LETTER * len(text.text) <= right
    right, bottom = float(picture.get("width")), float(picture.get("height"))
    assert max(side[2] for side in sides) <= right
    assert max(side[3] for side in sides) <= bottom


def test_a_tree_by_hand():
    tree = chain([0, 1], [1.5, 2.0], [-1.0, 0.5, 2.0], [1, 2, 1])
    picture = drawn(tree, ["bm25", "age"], "Tree 7 of a LambdaMART: 3 leaves")
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert texts[0] == "Tree 7 of a LambdaMART: 3 leaves"
    assert [text for text in texts if "yes" in text or "no" in text] == [
        *("yes, missing", "no"),
        *("yes, missing", "no"),
    ]
    for expected in ("bm25 ≤ 1.5", "age ≤ 2", "gain 1, 4 docs", "L0: -1, 1 docs", "L2: +2, 1 docs"):
        assert expected in texts
    fills = [rect.get("fill") for rect in picture.iter(f"{SVG}rect") if rect.get("class") == "leaf"]
    red, blue = [[int(fill[k : k + 2], 16) for fill in fills] for k in (1, 5)]
    assert red[0] > blue[0]  # a negative value is orange
    assert blue[2] > red[2]  # a positive one blue


def test_any_name_of_a_feature_is_drawn_as_text():
    picture = drawn(chain([0], [1.0], [0.0, 0.0], [1, 1]), [HOSTILE], HOSTILE)
    assert [element.tag for element in picture.iter() if "script" in element.tag] == []
    condition = next(t.text for t in picture.iter(f"{SVG}text") if "≤" in t.text)
    assert condition.startswith("<script>alert('&')</script>")
    assert condition.endswith("… ≤ 1")


def test_a_tree_without_splits_is_drawn():
    assert len(boxes(drawn(leaf(0.0), ["a"]))) == 1


def test_it_is_saved_as_svg_and_shown_by_notebooks(tmp_path):
    drawing = draw_tree(list(tree_nodes(leaf(1.0), ["a"])), "ä")
    drawing.save(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").read_text(encoding="utf-8") == drawing.svg
    assert drawing._repr_svg_() == drawing.svg
    assert "SVG" in repr(drawing)
    with pytest.raises(UsageError, match=r"tree\.png: a tree is drawn as SVG; .* ends in \.svg"):
        drawing.save(tmp_path / "tree.png")
