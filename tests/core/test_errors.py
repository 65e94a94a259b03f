from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from rankinite.core import errors
from rankinite.core.errors import (
    DataError,
    FileFormatError,
    MissingExtraError,
    ModelFileError,
    RankiniteError,
    RecipeError,
    RunError,
    UsageError,
)

EXAMPLES = [
    RankiniteError("root"),
    UsageError("usage"),
    RecipeError("a.toml:1: one", "a.toml:2: another"),
    DataError("data"),
    FileFormatError("./a.txt", "bad", 3, 7),
    RunError("unit"),
    ModelFileError("model"),
    MissingExtraError("optuna", "sweep"),
]
KINDS = [type(example) for example in EXAMPLES]


def test_examples_are_all_errors():
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type)} - {Path}
    assert kinds == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_docstring_draws_the_tree(kind):
    drawn = re.search(rf"^(.*)\b{kind.__name__}\b(.*)$", errors.__doc__, re.MULTILINE)
    assert drawn is not None
    also = re.search(r"also an? (\w+)", drawn[2])
    others = {base.__name__ for base in kind.__bases__} - {"Exception"}
    assert issubclass(kind, RankiniteError)
    assert {also[1]} < others if also else len(others) <= 1


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ((), "./a.txt: bad"),
        ((3,), "./a.txt:3: bad"),
        ((3, 7), "./a.txt:3:7: bad"),
    ],
)
def test_file_format_error_says_where(where, text):
    error = FileFormatError("./a.txt", "bad", *where)
    assert str(error) == text
    assert (error.path, error.problem) == (Path("a.txt"), "bad")
    assert (error.line, error.column) == (*where, None, None)[:2]


def test_missing_extra_gives_the_command():
    text = "optuna is not installed; run: pip install 'rankinite[sweep]'"
    assert str(MissingExtraError("optuna", "sweep")) == text


@pytest.mark.parametrize("error", EXAMPLES, ids=lambda error: type(error).__name__)
def test_errors_cross_processes(error):
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)
