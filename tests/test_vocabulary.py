"""Names speak the field's language: words that say nothing, or that only we would know, are out."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "docs")
    for path in (ROOT / folder).rglob("*.py")
)
# They do not say what the value is.
EMPTY_NAMES = {"found", "given", "one", "own", "those", "told", "it", "thing", "way"}
# Private words, as parts of names: there is a word of the field for each, see the glossary.
PRIVATE_WORDS = {
    "climb", "climbing", "flight", "flights", "judging", "looks", "standing", "contest", "bench",
    "carryout", "materials", "likeness", "spans", "orphans", "wording", "findings", "twin",
}  # fmt: skip
WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")


def variables(tree):
    """Yield the names of variables and parameters, with their lines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno


def definitions(tree):
    """Yield the names of functions, classes and variables, with their lines."""
    yield from variables(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name, node.lineno


def words(name):
    """Return the words of a name in lower case; ``carry_out`` counts as one."""
    return {word.lower() for word in WORD.findall(name.replace("carry_out", "carryout"))}


@pytest.fixture(scope="module")
def trees():
    return {path: ast.parse(path.read_text()) for path in SOURCES}


def test_all_parts_of_the_project_are_read():
    assert {path.relative_to(ROOT).parts[0] for path in SOURCES} == {
        "src",
        "tests",
        "benchmarks",
        "docs",
    }


def test_variables_say_what_they_hold(trees):
    empty = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path, tree in trees.items()
        for name, line in variables(tree)
        if name in EMPTY_NAMES
    ]
    assert empty == []


def test_no_name_has_a_private_word(trees):
    private = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path, tree in trees.items()
        if path != Path(__file__)
        for name, line in [*definitions(tree), (path.stem, 1)]
        if not name.startswith("test_") and words(name) & PRIVATE_WORDS
    ]
    assert private == []
