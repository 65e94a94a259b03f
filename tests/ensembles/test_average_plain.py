"""Average without scales, and averages put together without data."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.container import Content, read_container, write_container
from tests.ensembles.cases import members, scores_of
from tests.rankers.cases import SMALL, TEST, VALID, bytes_of, copied


def named():
    return dict(zip("abc", members(), strict=True))


def of_scores():
    return {"a": rk.Average().fit(VALID, member_scores=scores_of(VALID))}


def of_other_features():
    other = rk.MART(**SMALL | {"n_trees": 1}).fit(copied(TEST, feature_names=list("123x")))
    return {"a": members()[0], "b": other}


def test_a_plain_mean():
    model = rk.Average(members(), scaled=False).fit(VALID)
    np.testing.assert_array_equal(model.means_, np.zeros(3))
    np.testing.assert_array_equal(model.scales_, np.ones(3))
    np.testing.assert_array_equal(model.weights_, np.full(3, 1 / 3))
    expected = np.mean(list(scores_of(TEST).values()), axis=0)
    np.testing.assert_allclose(model.predict(TEST), expected, rtol=1e-13)


def test_made_of_members_it_is_the_plain_mean():
    model = rk.Average.from_members(named())
    fitted = rk.Average(named(), scaled=False).fit(VALID)
    np.testing.assert_array_equal(model.predict(TEST), fitted.predict(TEST))
    assert bytes_of(model) == bytes_of(fitted)
    assert model.member_names_ == ("a", "b", "c")
    assert not model.scaled


def test_made_of_members_and_scales_it_is_the_fitted_average():
    fitted = rk.Average(named()).fit(VALID)
    model = rk.Average.from_members(named(), means=fitted.means_, scales=list(fitted.scales_))
    assert bytes_of(model) == bytes_of(fitted)
    np.testing.assert_array_equal(model.weights_, np.ones(3))
    np.testing.assert_array_equal(model.predict(TEST), fitted.predict(TEST))


def test_averages_of_averages_survive_a_file():
    bags = [rk.Average.from_members(dict(zip("12", pair, strict=True))) for pair in
            (members()[:2], members()[1:])]  # fmt: skip
    model = rk.Average.from_members(
        {"M1": bags[0], "M2": bags[1]}, means=[0.5, -1.0], scales=[2.0, 4.0]
    )
    first, second, third = scores_of(TEST).values()
    expected = ((first + second) / 2 - 0.5) / 2 + ((second + third) / 2 + 1) / 4
    np.testing.assert_allclose(model.predict(TEST), expected, rtol=1e-12, atol=1e-14)
    model.save("model.rk")
    again = rk.load_model("model.rk")
    np.testing.assert_array_equal(again.predict(TEST), model.predict(TEST))
    assert bytes_of(again) == bytes_of(model)
    assert (again.scaled, again.members["M1"].scaled) == (True, False)


def test_files_of_before_still_load():
    model = rk.Average(members()).fit(VALID)
    model.save("model.rk")
    content = read_container("model.rk")
    assert content.manifest["parameters"] == {"scaled": True}
    write_container("old.rk", Content({**content.manifest, "parameters": {}}, content.arrays))
    old = rk.load_model("old.rk")
    assert old.scaled
    assert bytes_of(old) == bytes_of(model)


def test_scaled_must_be_yes_or_no():
    with pytest.raises(rk.UsageError, match="Average: scaled must be one of False, True; got 1"):
        rk.Average(members(), scaled=1).fit(VALID)


@pytest.mark.parametrize(
    ("rankers", "scales", "sentence"),
    [
        (named, {"means": [0, 0, 0]}, "means and scales belong together; give both or none"),
        (named, {"scales": [1, 1, 1]}, "means and scales belong together"),
        (named, {"means": [0, 0], "scales": [1, 1, 1]}, "means has the shape (2,); expected one"),
        (named, {"means": [0, 0, 0], "scales": 1}, "scales has the shape ()"),
        (named, {"means": [0, 0, 0], "scales": [1, 0, 1]}, "scales has 0.0; expected positive"),
        (
            named,
            {"means": [0, np.nan, 0], "scales": [1, 1, 1]},
            "means has NaN or numbers that are too",
        ),
        (named, {"means": ["x", 0, 0], "scales": [1, 1, 1]}, "means cannot be made numbers"),
        ({}, {}, "members is empty"),
        (None, {}, "members is a NoneType"),
        ({"a": rk.MART()}, {}, "the member 'a', a MART, is not fitted yet"),
        ({"a": "a.rk"}, {}, "the member 'a' is a str"),
        (of_other_features, {}, "'a' and 'b' were fitted to different features"),
        (of_scores, {}, "the member 'a', a Average, was fitted to scores, not to rankers"),
    ],
)
def test_what_cannot_be_put_together(rankers, scales, sentence):
    made = rankers() if callable(rankers) else rankers
    with pytest.raises(ValueError) as caught:
        rk.Average.from_members(made, **scales)
    assert str(caught.value).startswith("Average: ")
    assert sentence in str(caught.value)
