"""Properties that are computed once, without a lock.

Before Python 3.12 those of functools have one lock for all instances: threads wait for each other
while one loads a model's arrays, and the child of a fork waits forever if another thread of its
parent had the lock. Later ones have none, but give threads that ask at once different values.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801 - it is a decorator
        """A property whose value becomes an attribute when it is first asked for.

        Of threads that ask at once, each may compute it; all get the value of the first.

        Parameters
        ----------
        function
            Returns the value for an instance.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            """Take the name of the attribute."""
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            """Return the value, which is found without this method from then on."""
            if instance is None:
                return self
            return instance.__dict__.setdefault(self.name, self.function(instance))
