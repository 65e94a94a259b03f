"""``rankinite recipe list``, ``show`` and ``check``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from rankinite.runs.recipe import SHIPPED, shipped_text

MODELS = {"winner": 12, "winner-small": 14, "winner-tiny": 12}


def test_list(call):
    lines = call("recipe", "list").splitlines()
    assert lines[0] == "Recipes"
    listed = dict(line.split()[:2] for line in lines[2:])
    assert list(listed) == list(SHIPPED)
    assert listed == {name: str(n) for name, n in MODELS.items()}
    printed = json.loads(call("recipe", "list", "--json"))
    assert {recipe["name"]: recipe["models"] for recipe in printed} == MODELS
    assert all(recipe["description"] for recipe in printed)


def test_show_is_a_start(call):
    for name in SHIPPED:
        text = call("recipe", "show", name)
        assert text == shipped_text(name)
        Path("mine.toml").write_text(text)
        said = call("recipe", "check", "mine.toml")
        assert f"mine.toml is sound: {MODELS[name]} models" in said
    assert json.loads(call("recipe", "show", "winner", "--json"))["text"] == shipped_text("winner")
    assert "no recipe 'winer' in the package; it has 'winner'" in call(
        "recipe", "show", "winer", code=2
    )


def test_check(call):
    assert call("recipe", "check", "winner") == (
        "winner is sound: 12 models, 16 trainings in the first stage and 88 in the second if all "
        "are chosen\n"
    )
    printed = json.loads(call("recipe", "check", "winner", "--json"))
    assert (len(printed["models"]), printed["trainings"]) == (12, [16, 88])


def test_check_lists_all_mistakes(call):
    Path("mine.toml").write_text('seed = -1\n[models.M1]\nranker = "MART"\nn_trees = 0\n')
    lines = call("recipe", "check", "mine.toml", code=2).splitlines()
    assert lines[0] == "Error: the recipe has 2 mistakes:"
    assert len(lines) == 3
    assert lines[1].startswith("mine.toml:1: seed must be")
    assert lines[2].startswith("mine.toml:4: models.M1.n_trees must be")
    assert "there is no such file" in call("recipe", "check", "none.toml", code=1)


def test_list_and_show_import_nothing_heavy():
    code = (
        "import sys\nfrom rankinite.cli import main\n"
        "for command in (['list'], ['show', 'winner']):\n"
        "    try: main(['recipe', *command])\n    except SystemExit: pass\n"
        "print(sorted({'numba', 'numpy', 'sklearn'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "[]\n"
