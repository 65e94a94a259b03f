"""``rankinite inspect`` with ``--trees``, ``--tree`` and ``--member``."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import rankinite as rk
from rankinite.cli.trees import TreeChoice
from rankinite.core.errors import UsageError


@pytest.fixture
def model():
    data = rk.polynomials(20, part="train", n_features=5)
    fitted = rk.LambdaMART(n_trees=3, n_leaves=4).fit(data)
    fitted.save("m.rk")
    rk.Average({"first": fitted, "2": fitted}).fit(data).save("average.rk")
    return fitted


def test_nodes_of_trees_are_listed_drawn_and_given_as_json(call, model):
    listed = call("inspect", "m.rk", "--trees", "0,2").splitlines()
    assert listed[0] == "Tree 0, 4 leaves"
    assert "Tree 2, 4 leaves" in listed
    assert "Goes left if" in listed[1]
    frame = model.trees([0, 2])
    assert sum(line.startswith(("S", "L")) for line in listed) == len(frame)
    assert call("inspect", "m.rk", "--tree", 1) == call("inspect", "m.rk", "--trees", "1")
    output = json.loads(call("inspect", "m.rk", "--trees", "all", "--json"))
    assert [row["node_index"] for row in output["nodes"]] == model.trees().node_index.tolist()
    assert [row["value"] for row in output["nodes"]] == model.trees().value.tolist()

    assert call("inspect", "m.rk", "--tree", 1, "--out", "tree.svg") == "wrote tree.svg\n"
    assert Path("tree.svg").read_text(encoding="utf-8") == model.plot_tree(1).svg
    ElementTree.parse("tree.svg")

    said = call("inspect", "average.rk", "--trees", "all", code=2)
    assert "Average: has no trees of its own; ask one of its rankers, 'first', '2'" in said
    assert "(--member first)" in said
    of_member = call("inspect", "average.rk", "--member", "2", "--trees", "0,2")
    assert of_member.splitlines() == listed
    assert "no member 'x'; it has 'first', '2'" in call(
        "inspect", "average.rk", "--member", "x", code=2
    )
    assert "no rankers inside" in call("inspect", "m.rk", "--member", "x", code=2)
    assert "there is no tree 7; the model has trees 0 to 2" in call(
        "inspect", "m.rk", "--trees", "0-7", code=2
    )


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("all", [0, 1, 2, 3]), ("2", [2]), ("3,0-1", [3, 0, 1]), (" 1 , 1-2", [1, 2])],
)
def test_numbers_of_trees(text, numbers):
    choice = TreeChoice.checked(text, None, None)
    assert choice.numbers(4) == numbers


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("", None, None), "'' are no numbers of trees; expected all, or numbers and ranges"),
        (("2-1", None, None), "'2-1' are no numbers"),
        (("-1", None, None), "'-1' are no numbers"),
        ((None, -1, None), "'-1' are no numbers"),
        (("1;2", None, None), "'1;2' are no numbers"),
        (("0", 0, None), "give --trees or --tree, not both"),
        (("all", None, Path("t.svg")), "--out draws a single tree; say which, as in --tree 0"),
        ((None, None, Path("t.svg")), "--out draws a single tree"),
        ((None, 0, Path("t.png")), "t.png: a tree is drawn as SVG"),
    ],
)
def test_options_that_are_refused(options, words):
    with pytest.raises(UsageError) as refusal:
        TreeChoice.checked(*options)
    assert words in str(refusal.value)


def test_a_long_range_is_refused_before_it_is_written_out():
    choice = TreeChoice.checked("0-999999999", None, None)
    with pytest.raises(UsageError, match="there is no tree 999999999; the model has trees 0 to 3"):
        choice.numbers(4)
