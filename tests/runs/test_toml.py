"""Lines of keys: every key that tomllib finds has one, and it is the right one."""

from __future__ import annotations

import itertools
import json
import re
import tomllib

from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.runs.toml import key_lines

FILE = '''\
# a = 1
name = "x # no comment" # a comment
"a b" . 'c"d' = """
[no.header]
key = 2 \\""" """
text = \'\'\'
[neither]
\'\'\'

[models."M 1"] # = x
n = 1979-05-27 07:32:00
list = [ # [
  1, { deep = [ "]", [2, 3] ], "more" . keys = {} },
  # 4
  "]",
]
[[points]]
x = 1
[points.inner]
y = 2
[[points]]
x = 3
'''


def test_by_hand():
    assert tomllib.loads(FILE)["points"] == [{"x": 1, "inner": {"y": 2}}, {"x": 3}]
    lines = key_lines(FILE)
    assert lines[("name",)] == 2
    assert lines[("a b", 'c"d')] == lines[("a b",)] == 3
    assert lines[("text",)] == 6
    assert lines[("models",)] == lines[("models", "M 1")] == 10
    assert lines[("models", "M 1", "n")] == 11
    assert lines[("models", "M 1", "list", 0)] == 13
    assert lines[("models", "M 1", "list", 1, "deep", 1, 1)] == 13
    assert lines[("models", "M 1", "list", 1, "more", "keys")] == 13
    assert lines[("models", "M 1", "list", 2)] == 15
    assert lines[("points", 0, "x")] == 18
    assert lines[("points", 0, "inner", "y")] == 20
    assert lines[("points", 1, "x")] == 22
    assert lines.keys() == set(paths(tomllib.loads(FILE)))


def paths(value, path=()):
    """Go through the paths of all keys and items."""
    if isinstance(value, dict):
        inside = value.items()
    elif isinstance(value, list):
        inside = enumerate(value)
    else:
        return
    for key, item in inside:
        yield (*path, key)
        yield from paths(item, (*path, key))


LETTERS = st.text(st.sampled_from("ab1-_ .#=[]{}\"'\\\n,\t"), max_size=6)
SCALARS = (
    st.integers(-9, 9).map(str)
    | st.sampled_from(["true", "1.5e3", "1979-05-27", "07:32:00", "inf"])
    | LETTERS.map(json.dumps)
    | LETTERS.filter(lambda t: not set(t) & set("'\n")).map(lambda t: f"'{t}'")
    | LETTERS.map(lambda t: '"""\n' + json.dumps(t)[1:-1].replace("\\n", "\n") + '"""')
    | LETTERS.filter(lambda t: "'" not in t).map(lambda t: f"'''{t}'''")
    | st.sampled_from(['""""a""""', "''''b'''''", '""""""', "''"])
)
KEYS = st.sampled_from(["a", "b-1", "_c", '"d e"', "'f.g'", '"h\\"i"', "9"])
GAPS = st.sampled_from(["", " ", "\n", " # ] , }\n", "\n\n  "])
SPACES = st.sampled_from(["", " ", "\t"])


SIZES = st.integers(0, 3)
# Becomes another name wherever it stands.
UNIQUE = st.sampled_from(["KEY", '"KEY e"', "'KEY.g'", '"\\"KEY"'])


@st.composite
def values(draw, keys, depth=2):
    if depth == 0 or draw(st.booleans()):
        return draw(SCALARS)
    if draw(st.booleans()):
        items = [draw(GAPS) + draw(values(keys, depth - 1)) + draw(GAPS)
                 for _ in range(draw(SIZES))]  # fmt: skip
        return "[" + ",".join(items) + "]"
    pairs = [
        f"{draw(SPACES)}{draw(keys)} = {draw(values(keys, depth - 1))}{draw(SPACES)}"
        for _ in range(draw(SIZES))
    ]
    return "{" + ",".join(pairs) + "}"


def statements(keys):
    return st.one_of(
        st.tuples(keys, SPACES, values(keys)).map(lambda t: f"{t[0]}{t[1]}={t[1]}{t[2]}"),
        st.tuples(keys, keys, values(keys)).map(lambda t: f"{t[0]} . {t[1]} = {t[2]}"),
        keys.map(lambda key: f"[ {key} ]"),
        st.tuples(keys, keys).map(lambda t: f"[{t[0]}.{t[1]}]"),
        keys.map(lambda key: f"[[{key}]]"),
        st.sampled_from(["", "# a = 1", "  "]),
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(statements(KEYS), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_every_key_has_a_line(given_statements, newline):
    """What tomllib refuses is left out, statement by statement."""
    kept: list[str] = []
    for statement in given_statements:
        try:
            tomllib.loads("\n".join([*kept, statement]))
        except tomllib.TOMLDecodeError:
            continue
        kept.append(statement)
    text = newline.join(kept)
    assert key_lines(text).keys() == set(paths(tomllib.loads(text)))


NUMBERED = re.compile("KEY")


@settings(max_examples=200, deadline=None)
@given(st.lists(statements(UNIQUE), max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_the_line_of_a_key_is_where_it_stands(given_statements, newline):
    """Keys that stand once in a file are found by looking for their name."""
    numbers = itertools.count()
    text = NUMBERED.sub(lambda _: f"k{next(numbers)}k", newline.join(given_statements))
    lines = key_lines(text)
    assert lines.keys() == set(paths(tomllib.loads(text)))
    for path, line in lines.items():
        if isinstance(path[-1], str):
            name = re.search(r"k\d+k", path[-1])[0]
            assert line == text[: text.index(name)].count("\n") + 1
