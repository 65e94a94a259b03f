"""Exceptions that Rankinite raises.

::

    RankiniteError
    ├── UsageError            a wrong parameter, option or measure (also a ValueError)
    │   ├── RecipeError       a recipe with mistakes; lists all of them
    │   └── UnfittedError     a ranker that was not fitted yet (core/unfitted.py)
    ├── DataError             data that cannot be used (also a ValueError)
    │   └── FileFormatError   a file that cannot be read, with its path, line and column
    ├── RunError              a task of a run failed repeatedly
    ├── ModelFileError        a model file that is damaged, foreign or too new
    └── MissingExtraError     an optional dependency is not installed (also an ImportError)

The commands exit with 2 after a `UsageError`, and with 1 after any other of these.
"""

from __future__ import annotations

from pathlib import Path


class RankiniteError(Exception):
    """Base class of all exceptions that Rankinite raises."""


class UsageError(RankiniteError, ValueError):
    """A wrong parameter, option or measure."""


class RecipeError(UsageError):
    """A recipe with mistakes; the message lists all of them, one per line.

    Parameters
    ----------
    mistakes
        One sentence per mistake, which begins with ``file:line``.
    """

    def __init__(self, *mistakes: str) -> None:
        super().__init__(*mistakes)
        self.mistakes = mistakes

    def __str__(self) -> str:
        if len(self.mistakes) == 1:
            return self.mistakes[0]
        return "\n".join([f"the recipe has {len(self.mistakes)} mistakes:", *self.mistakes])


class DataError(RankiniteError, ValueError):
    """Data that cannot be used; the message names the document, query or feature."""


class FileFormatError(DataError):
    """A file that cannot be read; the message begins with ``file:line:column``.

    Parameters
    ----------
    path
        The file.
    problem
        What is wrong and what was expected.
    line, column
        Line and column, counted from 1; None for a problem of the whole file.
    """

    def __init__(
        self, path: str | Path, problem: str, line: int | None = None, column: int | None = None
    ) -> None:
        # pickle rebuilds an exception from its args when it comes from a worker process.
        super().__init__(path, problem, line, column)
        self.path = Path(path)
        self.problem = problem
        self.line = line
        self.column = column

    def __str__(self) -> str:
        path, problem, line, column = self.args
        place = ":".join(str(part) for part in (path, line, column) if part is not None)
        return f"{place}: {problem}"


class RunError(RankiniteError):
    """A task of a run failed repeatedly; the results of other tasks are kept."""


class ModelFileError(RankiniteError):
    """A model file that is damaged, foreign or written by a newer version."""


class MissingExtraError(RankiniteError, ImportError):
    """An optional dependency is not installed.

    Parameters
    ----------
    module
        Module that could not be imported.
    extra
        Extra of this package that installs it.
    """

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(module, extra)

    def __str__(self) -> str:
        module, extra = self.args
        return f"{module} is not installed; run: pip install 'rankinite[{extra}]'"
