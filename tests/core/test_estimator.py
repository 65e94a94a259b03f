"""scikit-learn's protocol: as its own base class has it, without importing it."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.utils import get_tags

import rankinite as rk
from rankinite.core.estimator import Estimator


class Both:
    """What both classes below have."""

    __metadata_request__fit = {"qid": True}  # noqa: RUF012

    def __init__(self, size=3, name="x", inner=None):
        self.size, self.name, self.inner = size, name, inner

    def fit(self, X, y=None, *, qid=None, weight=None):
        """Do nothing."""
        return self

    def predict(self, X, qid=None):
        """Do nothing."""
        return X


class Ours(Both, Estimator):
    """By our base."""


class Theirs(Both, BaseEstimator):
    """By scikit-learn's."""


def both(**parameters):
    return Ours(**parameters), Theirs(**parameters)


def test_parameters_are_those_of_the_constructor():
    for deep in (False, True):
        ours, theirs = both(size=4, inner=Theirs(name="y"))
        assert ours.get_params(deep) == theirs.get_params(deep)
        assert list(ours.get_params(deep=False)) == list(theirs.get_params(deep=False))
    ours, theirs = both(inner=Ours())
    for estimator in (ours, theirs):
        assert estimator.set_params(size=9, inner__name="z") is estimator
        assert (estimator.size, estimator.inner.name) == (9, "z")


@pytest.mark.parametrize(
    "parameters", [{}, {"size": 3}, {"size": 4}, {"name": "it's", "size": None}]
)
def test_representations_are_those_of_scikit_learn(parameters):
    ours, theirs = both(**parameters)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")


def test_a_long_representation_is_cut():
    assert len(repr(Ours(name="x" * 5000))) < 800
    assert repr(Ours(name="x" * 5000)).endswith("x')")


def test_clones_and_pickles():
    ours = Ours(size=7, inner=Ours(name="y"))
    for copied in (clone(ours), pickle.loads(pickle.dumps(ours))):
        assert type(copied) is Ours
        assert repr(copied) == repr(ours)
        assert copied.inner is not ours.inner


def test_tags_are_the_default():
    ours, theirs = both()
    assert get_tags(ours) == get_tags(theirs)


def test_routing_is_that_of_scikit_learn():
    ours, theirs = both()
    assert repr(ours.get_metadata_routing()) == repr(theirs.get_metadata_routing())
    with sklearn.config_context(enable_metadata_routing=True):
        for estimator in (ours, theirs):
            assert estimator.set_fit_request(qid="groups", weight=False) is estimator
            requests = estimator.get_metadata_routing().fit.requests
            assert requests == {"qid": "groups", "weight": False}
        with pytest.raises(TypeError, match="Unexpected args"):
            ours.set_fit_request(size=True)
    assert "weight" in str(ours.set_fit_request.__signature__)


def test_notebooks_show_html():
    ours, theirs = both(size=4)
    assert ours._repr_mimebundle_().keys() == theirs._repr_mimebundle_().keys()
    assert "Ours" in ours._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(ours, "_repr_html_")


def test_what_nobody_has():
    for name in ("nothing", "_nothing", "__nothing__", "set_nothing_request"):
        with pytest.raises(AttributeError, match=name):
            getattr(Ours(), name)


ALONE = """
import sys
import rankinite as rk
model = rk.LambdaMART(n_trees=3)
print(model, model.get_params()["n_trees"], hasattr(model, "get_metadata_routing"))
print([name for name in ("sklearn", "numba", "scipy") if name in sys.modules])
import sklearn.base
print(hasattr(model, "get_metadata_routing"))
"""


def test_without_scikit_learn_nobody_asks_for_its_own():
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True)
    assert done.stdout.splitlines() == ["LambdaMART(n_trees=3) 3 False", "[]", "True"], done.stderr


def test_rankers_are_estimators_without_the_base_class():
    assert not isinstance(rk.LambdaMART(), BaseEstimator)
    assert isinstance(rk.LambdaMART(), Estimator)
