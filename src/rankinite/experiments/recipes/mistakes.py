"""Mistakes of a recipe, all of them, each with the line it stands in."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Mapping
from typing import Any

from rankinite.core.errors import RecipeError
from rankinite.core.params import Constraint
from rankinite.core.wording import some_of
from rankinite.experiments.recipes.lines import BARE, KeyPath, key_lines


class Mistakes:
    """Notes what is wrong with a file.

    Parameters
    ----------
    owner
        The file, as it was named.
    text
        What is in it.
    """

    def __init__(self, owner: str, text: str) -> None:
        self._owner = owner
        self._lines = key_lines(text)
        self._found: list[tuple[int, str]] = []
        self._paths: set[KeyPath] = set()

    def add(self, path: KeyPath, sentence: str) -> None:
        """Note a mistake of a key, or of what it should have stood in."""
        self._paths.add(path)
        while path and path not in self._lines:
            path = path[:-1]
        self._found.append((self._lines.get(path, 1), sentence))

    def has(self, path: KeyPath) -> bool:
        """Tell whether a mistake of a key was noted."""
        return path in self._paths

    def refuse(self) -> None:
        """Raise an error if there was a mistake; it lists all in the order of their lines."""
        if self._found:
            ordered = sorted(self._found, key=lambda one: one[0])
            raise RecipeError(*(f"{self._owner}:{line}: {sentence}" for line, sentence in ordered))

    def check(self, path: KeyPath, value: Any, constraint: Constraint) -> bool:
        """Note a value that a constraint does not allow; tell whether it is allowed."""
        allowed = constraint.allows(value)
        if not allowed:
            self.add(path, f"{spelled(path)} must be {constraint}; got {value!r}")
        return allowed

    def table(self, path: KeyPath, value: Any) -> Mapping[str, Any]:
        """Return a table; an empty one if the value is something else, which is noted."""
        if isinstance(value, dict):
            return value
        self.add(path, f"{spelled(path)} must be a table; got {value!r}")
        return {}

    def values(
        self,
        path: KeyPath,
        given: Mapping[str, Any],
        known: Mapping[str, Constraint],
        defaults: Mapping[str, Any],
    ) -> dict[str, Any]:
        """Return the values of a table with defaults; wrong ones are noted, and not taken."""
        found = dict(defaults)
        for key, value in given.items():
            if key not in known:
                self.unknown((*path, key), "key", known)
            elif self.check((*path, key), value, known[key]):
                found[key] = value
        return found

    def unknown(self, path: KeyPath, word: str, known: Collection[str], name: str = "") -> None:
        """Note a name that is none of those known; a key's, unless another is given."""
        name = name or str(path[-1])
        near = difflib.get_close_matches(name, known, 1)
        there = (
            f"expected one of {some_of(list(dict.fromkeys(known)), 20)}"
            if known
            else "there is none"
        )
        hint = f"did you mean {near[0]!r}?" if near else there
        self.add(path, f"there is no {word} {name!r}; {hint}")


def spelled(path: KeyPath) -> str:
    """Return keys as a file spells them.

    Examples
    --------
    >>> spelled(("subsets", "All minus MARTs", 2))
    'subsets."All minus MARTs"[2]'
    """
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        else:
            bare = key if BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False)
            text += f".{bare}" if text else bare
    return text
