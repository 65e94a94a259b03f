"""Modules that are imported when they are first used.

Some libraries take longer to import than a model takes to load and to score. What needs them in
some functions only names them by a `LazyModule`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


class LazyModule:
    """A module of another library, which the first use of one of its names imports.

    Parameters
    ----------
    name
        Full name of the module.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(import_module(self._name), attribute)
        # Found without this method from now on.
        setattr(self, attribute, value)
        return value


def is_instance(value: Any, module: str, name: str) -> bool:
    """Return whether a value is of a class of another library, without importing the library.

    Parameters
    ----------
    value
        The value: if nobody has imported the library, it is not of one of its classes.
    module, name
        Full name of the module, and name of the class in it.
    """
    imported = sys.modules.get(module)
    return imported is not None and isinstance(value, getattr(imported, name))
