"""What names from files look like where they are shown."""

from __future__ import annotations

import json
import tomllib
import unicodedata

import pytest

from rankinite.core.errors import UsageError
from rankinite.core.format import visible, visible_json
from rankinite.runs.toml import toml_of

EVERY = [chr(code) for code in range(0x110000)]


def test_all_that_controls_reorders_or_cannot_be_encoded_is_escaped():
    joiners = {"\u200c", "\u200d"}
    # Marks of Arabic, Syriac, Kaithi, Egyptian and music that are seen, and the soft hyphen.
    kept = {c for c in EVERY if unicodedata.category(c) == "Cf" and visible(c) == c}
    assert joiners < kept
    assert all(unicodedata.bidirectional(c) in ("BN", "AN", "AL", "L") for c in kept)
    for kind in ("Cc", "Cs", "Zl", "Zp"):
        assert all(visible(c) != c for c in EVERY if unicodedata.category(c) == kind)
    assert all(visible(c).isascii() for c in EVERY if visible(c) != c)


def test_what_is_kept_and_what_has_a_short_form():
    assert visible("a\tb\r\n") == r"a\tb\r\n"
    assert visible("a\tb\x1b\n", keep="\n\t") == "a\tb\\x1b\n"
    assert visible("\udcff\ud800\U000e0041") == r"\xff\ud800\U000e0041"


def test_json_and_toml_are_equal_and_visible():
    text = "".join(c for c in EVERY if visible(c) != c and not "\ud800" <= c <= "\udfff") + 'é"\\'
    as_json = visible_json(json.dumps({text: text}, indent=1, ensure_ascii=False))
    assert json.loads(as_json) == {text: text}
    assert visible(as_json, keep="\n") == as_json
    line = f"key = {toml_of(text)}"
    assert tomllib.loads(line) == {"key": text}
    assert visible(line) == line
    assert json.loads(visible_json(json.dumps("\udcff", ensure_ascii=False))) == "\udcff"
    with pytest.raises(UsageError, match="not UTF-8"):
        toml_of("caf\udce9.txt")
