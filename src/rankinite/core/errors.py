"""Every error that Rankinite raises on purpose.

::

    RankiniteError
    ├── UsageError            a parameter or option that cannot be meant (also a ValueError)
    │   └── RecipeError       a recipe with mistakes, all of them
    ├── DataError             data that cannot be used (also a ValueError)
    │   └── FileFormatError   a file that cannot be read, with its path, line and column
    ├── RunError              a unit of a run that failed again and again
    ├── ModelFileError        a model file that is damaged, foreign or too new
    └── MissingExtraError     an optional dependency is not installed (also an ImportError)
"""

from __future__ import annotations

from pathlib import Path


class RankiniteError(Exception):
    """The root of the tree: catch this to catch them all."""


class UsageError(RankiniteError, ValueError):
    """A parameter, option or measure that cannot be meant."""


class RecipeError(UsageError):
    """A recipe with mistakes; the message lists all of them, one a line.

    Parameters
    ----------
    mistakes
        A sentence each, which starts with ``file:line``.
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
    """A file that cannot be read; the message starts with ``file:line:column``.

    Parameters
    ----------
    path
        The file.
    problem
        What was wrong and what was expected.
    line, column
        Where, both counted from 1; None if the whole file is meant.
    """

    def __init__(
        self, path: str | Path, problem: str, line: int | None = None, column: int | None = None
    ) -> None:
        # pickle makes an error again from its args, so that it can cross from a worker process.
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
    """A unit of a run that failed, and failed again; the rest of the run is kept."""


class ModelFileError(RankiniteError):
    """A model file that is damaged, foreign or written by a newer version."""


class MissingExtraError(RankiniteError, ImportError):
    """An optional dependency is not installed.

    Parameters
    ----------
    module
        The module that could not be imported.
    extra
        The extra of this package that brings it.
    """

    def __init__(self, module: str, extra: str) -> None:
        super().__init__(module, extra)

    def __str__(self) -> str:
        module, extra = self.args
        return f"{module} is not installed; run: pip install 'rankinite[{extra}]'"
