"""The sources of the package: results of other code are other results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent


@cache
def all_sources() -> dict[Path, str]:
    """Return the text of every Python file of the package."""
    return {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def hash_of(paths: Iterable[Path]) -> str:
    """Return a hash of some of the sources."""
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0")
        digest.update(all_sources()[path].encode() + b"\0")
    return digest.hexdigest()[:16]


@cache
def package_hash() -> str:
    """Return a hash of all sources, which differs where code does, whatever its version says."""
    return hash_of(all_sources())
