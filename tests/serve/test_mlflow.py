"""Models in MLflow: what the wrapper itself does, and with the package, if it is there."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest

import rankinite as rk
from rankinite.core.errors import MissingExtraError
from rankinite.serve import mlflow as rk_mlflow
from tests.serve.cases import DATA, SMALL, named_model, saved, small_model

X = np.asarray(DATA.X, np.float32)[:5]
QID = ["b", "b", "a", "a", "a"]


def test_a_model_file_predicts_the_same(tmp_path, model):
    loaded = rk_mlflow._load_pyfunc(str(saved(tmp_path, "m", model)))
    assert np.array_equal(loaded.predict(X), model.predict(X))
    frame = pd.DataFrame(X, columns=["1", "2", "3"])
    assert np.array_equal(loaded.predict(frame, {}), model.predict(X))


def test_the_column_of_queries_is_no_feature():
    ranker = rk.MART(**SMALL, loss="logistic", per_query=True).fit(DATA)
    frame = pd.DataFrame(X, columns=["1", "2", "3"]).assign(qid=QID)
    scores = rk_mlflow.RankerModel(ranker).predict(frame)
    assert np.array_equal(scores, ranker.predict(X, qid=QID))
    assert not np.array_equal(scores, ranker.predict(X, qid=[0] * 5))


def test_mistakes_are_refused(model, monkeypatch):
    with pytest.raises(rk.UsageError, match="there are no parameters, such as 'top'"):
        rk_mlflow.RankerModel(model).predict(X, {"top": 3})
    monkeypatch.setitem(sys.modules, "mlflow", None)
    monkeypatch.setitem(sys.modules, "mlflow.pyfunc", None)
    with pytest.raises(MissingExtraError, match=r"rankinite\[mlflow\]"):
        rk_mlflow.save_model(model, "m")


def test_mlflow_saves_and_loads(tmp_path, monkeypatch):
    pyfunc = pytest.importorskip("mlflow.pyfunc")
    frame = pd.DataFrame({"bm25": [0.5, 0.9, 0.1], "brand": ["bolt", "acme", None]})
    ranker = named_model()
    rk_mlflow.save_model(ranker, tmp_path / "named")
    loaded = pyfunc.load_model(str(tmp_path / "named"))
    assert np.array_equal(loaded.predict(frame), ranker.predict(frame))
    with pytest.raises(rk.UsageError, match="a list is no ranker"):
        rk_mlflow.save_model([], tmp_path / "list")
    # Nothing of it is a pickle.
    names = {path.suffix for path in (tmp_path / "named").rglob("*") if path.is_file()}
    assert names <= {".rk", ".yaml", ".yml", ".txt", ""}
    plain = small_model()
    rk_mlflow.save_model(plain, tmp_path / "plain")
    loaded = pyfunc.load_model(str(tmp_path / "plain"))
    assert np.array_equal(loaded.predict(X), plain.predict(X))
