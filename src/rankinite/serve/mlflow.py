"""Models as MLflow's ``pyfunc``: saved as a model file, without code and without a pickle."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.core import __version__
from rankinite.core.errors import DataError, MissingExtraError, UsageError
from rankinite.core.types import Floats
from rankinite.data.tables import feature_names_of
from rankinite.models import load_model
from rankinite.rankers.ranker import Ranker

LOADER = __name__
# What a model folder of MLflow has the model file as.
MODEL_FILE = "model.rk"
# The column of a frame that says which query a document belongs to.
QID = "qid"


def save_model(ranker: Ranker, path: str | Path, **options: Any) -> None:
    """Save a fitted ranker as a model folder of MLflow, which ``mlflow.pyfunc.load_model`` reads.

    Parameters
    ----------
    ranker
        The ranker.
    path
        The folder, which must not exist yet.
    options
        Passed on to ``mlflow.pyfunc.save_model``: ``signature``, ``input_example``, ``metadata``
        and others.
    """
    pyfunc = _pyfunc()
    _require_ranker("save_model", ranker)
    with tempfile.TemporaryDirectory(prefix="rankinite-") as folder:
        pyfunc.save_model(str(path), **_settings(ranker, folder, options))


def log_model(ranker: Ranker, name: str, **options: Any) -> Any:
    """Log a fitted ranker as a model of the current run of MLflow; return what MLflow returns.

    Parameters
    ----------
    ranker
        The ranker.
    name
        What the model is called.
    options
        Passed on to ``mlflow.pyfunc.log_model``: ``registered_model_name``, ``signature`` and
        others.
    """
    pyfunc = _pyfunc()
    _require_ranker("log_model", ranker)
    with tempfile.TemporaryDirectory(prefix="rankinite-") as folder:
        return pyfunc.log_model(name=name, **_settings(ranker, folder, options))


class RankerModel:
    """What ``mlflow.pyfunc.load_model`` returns a wrapper of.

    Parameters
    ----------
    ranker
        The ranker.
    """

    def __init__(self, ranker: Ranker) -> None:
        self.ranker = ranker

    def predict(self, model_input: Any, params: Mapping[str, Any] | None = None) -> Floats:
        """Return one score per document, as the ranker's own ``predict``.

        Parameters
        ----------
        model_input
            A frame with the features of fit, or an array. The column ``qid`` of a frame, if it is
            no feature, says which query each document belongs to.
        params
            MLflow's parameters, of which there are none.
        """
        if params:
            raise UsageError(f"rankinite: there are no parameters, such as {next(iter(params))!r}")
        X, qid = _without_qid(model_input, self.ranker.feature_names_)
        return self.ranker.predict(X, qid)


def _load_pyfunc(path: str) -> RankerModel:
    """Return the model of a folder; MLflow calls this function by its name."""
    return RankerModel(load_model(path))


def _pyfunc() -> Any:
    try:
        import mlflow.pyfunc
    except ModuleNotFoundError:
        raise MissingExtraError("mlflow", "mlflow") from None
    return mlflow.pyfunc


def _require_ranker(owner: str, ranker: object) -> None:
    if not isinstance(ranker, Ranker):
        raise UsageError(f"{owner}: a {type(ranker).__name__} is no ranker of rankinite")


def _settings(ranker: Ranker, folder: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments for MLflow of a model, whose file is written into a folder."""
    file = Path(folder) / MODEL_FILE
    ranker.save(file)
    return {
        "loader_module": LOADER,
        "data_path": str(file),
        "pip_requirements": [f"rankinite=={__version__}"],
        **options,
    }


def _without_qid(X: Any, features: Sequence[str]) -> tuple[Any, Any]:
    """Return a frame without the column of queries, and that column; None if there is none."""
    names = feature_names_of(X)
    if names is None or QID not in names or QID in features:
        return X, None
    if not hasattr(X, "drop"):
        raise DataError(f"rankinite: a {type(X).__name__} with the column {QID!r} is not read")
    qid = np.asarray(X[QID])
    return X.drop(columns=[QID]) if hasattr(X, "iloc") else X.drop(QID), qid
