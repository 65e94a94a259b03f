"""What all rankers of trees refuse."""

from __future__ import annotations

import pytest

import rankinite as rk
from rankinite.objectives.pointwise import SquaredError


class LossWithoutHessians(SquaredError):  # noqa: N818 (an error to minimise, none to raise)
    """A loss of single documents without a Newton step."""

    no_newton = "this loss has no second derivative"


class RankerWithoutHessians(rk.MART):
    def objective(self):
        return LossWithoutHessians()


def test_newton_steps_are_refused_for_losses_of_single_documents_too():
    train = rk.polynomials(5, n_features=3)
    with pytest.raises(rk.UsageError, match=r"step is 'newton', and this loss .* step='gradient'"):
        RankerWithoutHessians().fit(train)
    fitted = RankerWithoutHessians(step="gradient", n_trees=3).fit(train)
    assert fitted.predict(train).std() > 0
