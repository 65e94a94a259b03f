"""The error of what was not fitted yet; apart from the other errors, as it needs scikit-learn."""

from __future__ import annotations

from sklearn.exceptions import NotFittedError

from rankinite.core.errors import UsageError


class UnfittedError(UsageError, NotFittedError):  # type: ignore[misc]
    """Something was asked for before it was fitted; scikit-learn's error, and ours."""
