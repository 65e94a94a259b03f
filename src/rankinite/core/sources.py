"""Hashes of the package's own sources: results of other code are other results.

What a module depends on is found in the text of its sources and nothing is imported for it, so that
asking costs milliseconds, and an import inside a function counts as much as one at the top.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent

# Indented ones, too: functions import what is slow to import, or only sometimes needed. A match in
# a docstring adds a file too many, which is harmless; a missed import would keep stale results.
FROM_IMPORTS = re.compile(
    rf"^[ \t]*from {PACKAGE.name}(?:\.([\w.]+))? import (\([^)]*\)|[^\n]*)", re.MULTILINE
)
IMPORTS = re.compile(rf"^[ \t]*import {PACKAGE.name}(?:\.([\w.]+))?", re.MULTILINE)
# Modules that are imported later, by a text.
NAMED = re.compile(rf"\"{PACKAGE.name}\.([\w.]+)\"")
# Names of a lazy package stand in its stub only: ``__init__.py`` imports none of them.
STUB_IMPORTS = re.compile(r"^from \.([\w.]*) import (\w+)", re.MULTILINE)


@cache
def all_sources() -> dict[Path, str]:
    """Return the text of every Python file of the package, and of the stubs of lazy packages."""
    paths = sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")])
    return {path: path.read_text(encoding="utf-8") for path in paths}


def hash_of(paths: Iterable[Path]) -> str:
    """Return a hash of some of the sources."""
    sources = all_sources()
    digest = hashlib.sha256()
    # Sorted, because the order of a set differs between processes.
    for path in sorted(paths):
        digest.update(path.relative_to(PACKAGE).as_posix().encode() + b"\0")
        digest.update(sources[path].encode() + b"\0")
    return digest.hexdigest()[:16]


@cache
def module_hash(*modules: str) -> str:
    """Return a hash of modules and of all that they import, directly or through others.

    Parameters
    ----------
    modules
        Full names, such as ``"rankinite.runs.tasks"``; a module of another package has no part in
        the hash.
    """
    prefix = f"{PACKAGE.name}."
    names = [name.removeprefix(prefix) for name in modules if name.startswith(prefix)]
    return hash_of(with_imports(path for name in names for path in _files_of(name)))


def with_imports(paths: Iterable[Path]) -> set[Path]:
    """Return source files and all files that they import, directly or through others."""
    reached = set(paths)
    waiting = list(reached)
    while waiting:
        for path in _imported_by(waiting.pop()):
            if path not in reached:
                reached.add(path)
                waiting.append(path)
    return reached


def _imported_by(path: Path) -> Iterator[Path]:
    text = all_sources()[path]
    for module, names in FROM_IMPORTS.findall(text):
        yield from _files_of(module)
        for name in re.findall(r"\w+", names):
            yield from _files_of(f"{module}.{name}" if module else name)
            yield from _behind_stub(module, name)
    for module in NAMED.findall(text):
        yield from _files_of(module)
    for module in IMPORTS.findall(text):
        yield from _files_of(module)
        yield from _behind_stub(module)


def _files_of(module: str) -> Iterator[Path]:
    """Go through the files of a module, named from the package on, if there are such.

    The packages around it are not followed: their names are lazy, or they hold none.
    """
    path = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    for file in (path.with_suffix(".py"), path / "__init__.py"):
        if file in all_sources():
            yield file


def _behind_stub(module: str, name: str | None = None) -> Iterator[Path]:
    """Go through the modules that lazy names of a package come from; all names if None."""
    package = PACKAGE.joinpath(*module.split(".")) if module else PACKAGE
    stub = all_sources().get(package / "__init__.pyi", "")
    prefix = f"{module}." if module else ""
    for inner, known in STUB_IMPORTS.findall(stub):
        if name is None or name == known:
            yield from _files_of(prefix + (inner or known))
