from __future__ import annotations

import numpy as np
import pytest

from rankinite.core.errors import UsageError
from rankinite.core.random import generator
from rankinite.data.simulate import polynomials as simulator
from rankinite.data.simulate.polynomials import GRADE_SHARES, polynomials


def drawn_function(n_features: int, seed: int):
    """Return the grades of documents, written out from the polynomial's own random numbers."""
    rng = generator(seed, "polynomials", n_features, "function")
    weights = rng.uniform(-1, 1, n_features).astype(np.float32)
    second, third = rng.permutation(n_features), rng.permutation(n_features)
    sample = rng.uniform(-1, 1, (20_000, n_features)).astype(np.float32)

    def terms(X):
        X = X.astype(np.float64)
        linear = sum(weights[i] * X[:, i] for i in range(n_features))
        quadratic = sum(X[:, i] * X[:, second[i]] for i in range(n_features))
        cubic = sum(X[:, i] * X[:, second[i]] * X[:, third[i]] for i in range(n_features))
        return [linear, quadratic, cubic]

    centres, scales = zip(*((t.mean(), t.std()) for t in terms(sample)), strict=True)

    def score(X):
        return sum((t - c) / s for t, c, s in zip(terms(X), centres, scales, strict=True)) / 3

    ordered = np.sort(score(sample))
    bounds = [ordered[int(20_000 * share)] for share in (0.50, 0.75, 0.90, 0.97)]
    return lambda X: sum((score(X) >= bound).astype(int) for bound in bounds)


@pytest.mark.parametrize(("n_features", "n_docs", "seed"), [(50, 20, 1), (7, 5, 2)])
def test_grades_are_those_of_one_polynomial(n_features, n_docs, seed):
    grades = drawn_function(n_features, seed)
    options = {"n_features": n_features, "n_docs": n_docs, "seed": seed}
    for part in ("train", "valid", "test", "more"):
        data = polynomials(110, part=part, **options)
        assert (data.n_queries, set(data.sizes)) == (110, {n_docs})
        # Bounds between two of 20,000 documents, and float32 products, decide a few grades.
        assert np.mean(data.y == grades(data.X)) > 0.998
        assert np.abs(data.y - grades(data.X)).max() <= 1


def test_shares_and_features():
    data = polynomials(400, seed=3)
    shares = np.bincount(data.y.astype(int), minlength=5) / data.n_docs
    # Four standard deviations of a share among 20,000 documents are at most 0.015.
    assert np.abs(shares - GRADE_SHARES).max() < 0.015
    assert sum(GRADE_SHARES) == pytest.approx(1)
    assert data.top_grade == 4
    assert np.abs(data.X).max() <= 1
    assert np.abs(data.X.mean(axis=0)).max() < 0.03
    assert data.X.var(axis=0) == pytest.approx(np.full(50, 1 / 3), abs=0.02)  # of uniform [-1, 1]


@pytest.mark.parametrize("n_queries", [1, 99, 100, 101, 230])
def test_a_smaller_set_is_the_beginning_of_a_larger_one(n_queries):
    large = polynomials(260, n_features=5, n_docs=3, seed=4)
    small = polynomials(n_queries, n_features=5, n_docs=3, seed=4)
    assert small.equals(large[:n_queries])


def test_equal_arguments_give_equal_bits_and_others_do_not():
    arguments = {"part": "train", "n_features": 6, "n_docs": 4, "seed": 5}
    first = polynomials(30, **arguments)
    assert first.equals(polynomials(np.int64(30), **arguments | {"n_features": np.int64(6)}))
    for change in ({"part": "valid"}, {"seed": 6}, {"n_docs": 5}, {"n_features": 7}):
        other = polynomials(30, **arguments | change)
        assert not set(other.X[:, 0]) & set(first.X[:, 0])


def test_the_papers_sizes(monkeypatch):
    assert simulator.FULL_SIZE == {"train": 10_000, "valid": 5_000, "test": 10_000}
    monkeypatch.setattr(simulator, "FULL_SIZE", {"train": 3, "valid": 2, "test": 4})
    sizes = [len(polynomials(part=p, n_docs=1)) for p in ("train", "valid", "test", "more")]
    assert sizes == [3, 2, 4, 3]
    data = polynomials(1)
    assert (data.n_docs, data.n_features) == (50, 50)


@pytest.mark.parametrize("name", ["n_queries", "n_docs", "n_features", "seed"])
@pytest.mark.parametrize("value", [-1, 1.5, "3", True])
def test_wrong_arguments(name, value):
    with pytest.raises(UsageError, match=f"{name} must be a whole number of at least [01]; got"):
        polynomials(**({"n_queries": 1} | {name: value}))
