"""scikit-learn's protocol of estimators, without importing scikit-learn.

To import scikit-learn takes longer than to load a model and to score with it, and brings SciPy and
pandas along. What a process without it needs is here: parameters and a representation. The rest
(tags, metadata routing, HTML) is what only scikit-learn and notebooks ask for, and is then
scikit-learn's own.
"""

from __future__ import annotations

import inspect
import sys
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any, Self

# As many characters of a representation as scikit-learn shows.
MOST_CHARACTERS = 700
VAR_KEYWORD = inspect.Parameter.VAR_KEYWORD


class Estimator:
    """An object with parameters, which scikit-learn takes for one of its estimators.

    The parameters are the arguments of ``__init__``, which keeps them as attributes.
    """

    @classmethod
    def _get_param_names(cls) -> list[str]:
        # The name is scikit-learn's, which calls it.
        return [parameter.name for parameter in cls._parameters()]

    @classmethod
    def _parameters(cls) -> list[inspect.Parameter]:
        """Return the arguments of ``__init__``, sorted by name."""
        arguments = list(inspect.signature(cls.__init__).parameters.values())[1:]
        named = (argument for argument in arguments if argument.kind is not VAR_KEYWORD)
        return sorted(named, key=lambda argument: argument.name)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name.

        Parameters
        ----------
        deep
            Whether to return the parameters of estimators among them, too, as in
            ``base__n_trees``.
        """
        parameters: dict[str, Any] = {}
        for name in self._get_param_names():
            value = getattr(self, name)
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                inner = value.get_params().items()
                parameters |= {f"{name}__{key}": inner_value for key, inner_value in inner}
            parameters[name] = value
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name; scikit-learn's ``base__n_trees`` is one of the base's.

        Parameters
        ----------
        parameters
            The new values.
        """
        of_inner: dict[str, dict[str, Any]] = defaultdict(dict)
        for name, value in parameters.items():
            outer, nested, rest = name.partition("__")
            if nested:
                of_inner[outer][rest] = value
            else:
                setattr(self, name, value)
        for name, inner in of_inner.items():
            getattr(self, name).set_params(**inner)
        return self

    def __repr__(self) -> str:
        """Return the call that makes it, with the parameters that are not the default."""
        # Once for each: a base may have a base, and so on.
        values = [(argument, repr(getattr(self, argument.name))) for argument in self._parameters()]
        changed = [
            f"{argument.name}={value}"
            for argument, value in values
            if value != repr(argument.default)
        ]
        text = f"{type(self).__name__}({', '.join(changed)})"
        if len(text) <= MOST_CHARACTERS:
            return text
        return f"{text[: MOST_CHARACTERS // 2]}...{text[-MOST_CHARACTERS // 2 :]}"

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's description of what it can do."""
        from sklearn.base import BaseEstimator

        return BaseEstimator().__sklearn_tags__()

    if not TYPE_CHECKING:  # to a type checker this would give every attribute

        def __getattr__(self, name: str) -> Any:
            """Return what only scikit-learn asks for, as scikit-learn implements it."""
            # Before scikit-learn is imported, nobody asks for it.
            if "sklearn.base" in sys.modules and not name.startswith("__"):
                kind = _sklearn_class(type(self))
                member = inspect.getattr_static(kind, name, None)
                if member is not None:
                    return member.__get__(self, kind) if hasattr(member, "__get__") else member
            # Once more, for Python's own error, or that of a property.
            return object.__getattribute__(self, name)


@cache
def _sklearn_class(kind: type[Estimator]) -> type:
    """Return the class as if it inherited from scikit-learn's base of estimators."""
    from sklearn.base import BaseEstimator

    # scikit-learn adds methods such as ``set_fit_request`` to whatever inherits from its base.
    return type(kind.__name__, (kind, BaseEstimator), {"__module__": kind.__module__})
