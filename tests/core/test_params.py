from __future__ import annotations

import inspect
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from rankinite.core.errors import UsageError
from rankinite.core.params import (
    Bounds,
    Either,
    OneOf,
    Real,
    Text,
    Whole,
    check,
    file_parameters_of,
    or_none,
    parameter,
    parameter_group,
    parameters_of,
    with_parameters,
)

CASES = [
    (Whole(), [0, 1, 2**31 - 1, np.int64(3), np.uint8(0)], [-1, 1.0, "1", None, True, np.True_]),
    (Whole(2, 4), [2, 4, np.int8(3)], [1, 5, np.int64(-(2**63)), math.nan]),
    (
        Real(),
        [-1e308, 0, np.float32(2), Fraction(1, 3), 10**300],
        [math.nan, math.inf, -math.inf, 10**400, -(10**400), "0", False, None, 1j, Decimal(1)],
    ),
    (Real(0, 1), [0, 1, 0.5], [-1e-300, 1.0000001]),
    (Real(0, 1, low_open=True, high_open=True), [0.5, 5e-324], [0, 0.0, 1, -0.0]),
    (
        Bounds(0),
        [(0, 1), [0.5, 2], np.array([1.0, 1e100]), (0, 5e-324)],
        [(1, 0), (1, 1), (-1, 1), (0, math.nan), (0, 1e101), (0, 1, 2), "01", 3, None, ("0", "1")],
    ),
    (OneOf(["a", 1, None]), ["a", 1, None], ["b", True, 1.0, 0, np.array([1, 2])]),
    (Either(Whole(1), OneOf([None, "all"])), [1, None, "all"], [0, "none", 1.5]),
    (or_none(Whole(1)), [1, None], [0, "none"]),
    (Text(), ["a", " a "], ["", "  ", None, 1]),
]


@pytest.mark.parametrize(("constraint", "good", "bad"), CASES, ids=str)
def test_what_is_allowed(constraint, good, bad):
    assert all(constraint.allows(value) for value in good)
    assert not any(constraint.allows(value) for value in bad)


@pytest.mark.parametrize(
    ("constraint", "sentence"),
    [
        (Whole(), "a whole number of at least 0"),
        (Whole(1, 9), "a whole number from 1 to 9"),
        (Bounds(), "two numbers, the smaller first"),
        (Bounds(0), "two numbers of at least 0, the smaller first"),
        (Real(), "a finite number"),
        (Real(0), "a finite number, at least 0"),
        (Real(high=1, high_open=True), "a finite number, below 1"),
        (Real(0, 0.5, low_open=True), "a finite number, above 0 and at most 0.5"),
        (OneOf(["a", 2]), "one of 'a', 2"),
        (Either(Whole(1), OneOf([None])), "a whole number of at least 1, or one of None"),
    ],
)
def test_the_sentence(constraint, sentence):
    with pytest.raises(UsageError) as caught:
        check("Model", "depth", -0.5j, constraint)
    assert str(caught.value) == f"Model: depth must be {sentence}; got (-0-0.5j)"


@parameter_group
class Shared:
    seed: int = parameter(default=0, constraint=Whole(0), help="Seed.", aliases="random_seed")


@parameter_group
class Trees(Shared):
    depth: int | None = parameter(
        default=3, constraint=or_none(Whole(1)), help="Depth at most.", details="None: any."
    )
    base: object = parameter(default=None, help="Start.", type_name="scores")


@parameter_group
class Loss(Shared):
    loss: str = parameter(default="a", constraint=OneOf(["a", "b"]), help="Loss.", kw_only=False)


@parameter_group
class Boosted(Loss, Trees):
    rate: float = parameter(default=0.1, constraint=Real(0), help="Rate.")
    depth: int | None = None
    seed: int = parameter(default=7, help="Another seed.")


class Estimator(Boosted):
    pass


def test_parameters_keep_their_place_and_inherit_what_is_not_overridden():
    declared = parameters_of(Estimator)
    assert list(declared) == ["loss", "rate", "depth", "base", "seed"]
    assert {name: parameter.default for name, parameter in declared.items()} == {
        "rate": 0.1, "loss": "a", "depth": None, "base": None, "seed": 7
    }  # fmt: skip
    assert (declared["depth"].help, declared["depth"].constraint) == (
        "Depth at most.", or_none(Whole(1)),
    )  # fmt: skip
    assert (declared["seed"].help, declared["seed"].aliases) == ("Another seed.", ("random_seed",))
    assert parameters_of(Trees)["seed"].default == 0
    assert "base" not in Estimator.constraints
    assert Estimator.constraints.keys() == declared.keys() - {"base"}
    assert file_parameters_of(Estimator).keys() == declared.keys() - {"base"}
    assert parameters_of(dict) == {}


def test_init_stores_values_and_nothing_else():
    assert vars(Estimator("b", rate=1)) == {
        "loss": "b", "rate": 1, "depth": None, "base": None, "seed": 7
    }  # fmt: skip
    assert str(inspect.signature(Shared)) == "(*, seed: 'int' = 0)"
    assert next(iter(inspect.signature(Estimator).parameters)) == "loss"
    assert not hasattr(Estimator, "rate")
    for wrong in (lambda: Estimator("b", 1), lambda: Estimator(rates=1)):
        with pytest.raises(TypeError):
            wrong()


def test_docstrings_get_the_parameters():
    docstring = """A ranker.

    Attributes
    ----------
    forest_
        Trees.
    """
    assert with_parameters(docstring, parameters_of(Trees)) == (
        "A ranker.\n\nParameters\n----------\n"
        "depth : int or None, default=3\n    Depth at most. None: any.\n"
        "base : scores, default=None\n    Start.\n"
        "seed : int, default=0\n    Seed.\n\n"
        "Attributes\n----------\nforest_\n    Trees.\n"
    )
    with_section = with_parameters(docstring, parameters_of(Trees))
    assert with_parameters(with_section, parameters_of(Trees)) == with_section
    assert with_parameters(docstring, {}) == docstring
    assert "loss : {'a', 'b'}, default='a'" in with_parameters("One line.", parameters_of(Loss))


# Python writes no numbers of thousands of digits, not even for the name of a test.
@pytest.mark.parametrize("value", [2**31, 10**20, 10**5000, -(2**63)], ids="abcd")
def test_whole_numbers_beyond_what_kernels_count_are_refused(value):
    with pytest.raises(UsageError, match="n must be a whole number of at least 1; got ") as problem:
        check("f", "n", value, Whole(1))
    assert ("more than 2,147,483,647" in str(problem.value)) is (value > 0)
    assert len(str(problem.value)) < 300


def test_a_value_that_cannot_be_written_is_refused_with_its_type():
    class Silent:
        def __repr__(self):
            raise RuntimeError("no")

    with pytest.raises(UsageError, match="got a Silent"):
        check("f", "n", Silent(), Whole(1))
