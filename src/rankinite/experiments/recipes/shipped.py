"""The recipes that come with the package."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

from rankinite.core.errors import UsageError
from rankinite.core.wording import some_of

SHIPPED = ("winner", "winner-small", "winner-tiny")


def shipped_text(name: str) -> str:
    """Return the file of a recipe that comes with the package."""
    if name not in SHIPPED:
        raise UsageError(f"there is no recipe {name!r} in the package; it has {some_of(SHIPPED)}")
    return (resources.files(__package__) / f"{name}.toml").read_text("utf-8")


def shipped_tables() -> dict[str, dict[str, Any]]:
    """Return what the recipes of the package say, by name; nothing heavy is imported for it."""
    return {name: tomllib.loads(shipped_text(name)) for name in SHIPPED}
