"""A recipe with other parameters of a model, and all else as it was."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankinite.runs.recipe import SHIPPED, shipped_text
from rankinite.runs.recipe_reader import recipe_of
from rankinite.sweeps.space import with_parameters

NEW = {"n_leaves": 17, "learning_rate": 0.25}

TEXTS = {
    "table": (
        '[models.M]\nranker = "MART"  # trees\nn_leaves=3# few\n',
        '[models.M]\nranker = "MART"  # trees\nlearning_rate = 0.25\nn_leaves=17# few\n',
    ),
    "without an end of line": (
        '[models.M]\nranker = "MART"',
        '[models.M]\nranker = "MART"\nn_leaves = 17\nlearning_rate = 0.25',
    ),
    "indented": (
        '[models.M]\n  ranker="MART"\n\n[subsets]\n',
        '[models.M]\n  ranker="MART"\n  n_leaves=17\n  learning_rate=0.25\n\n[subsets]\n',
    ),
    "in one line": (
        '[models]\nM = {n_leaves = 3, ranker = "MART"}\n',
        '[models]\nM = {n_leaves = 17, ranker = "MART", learning_rate = 0.25}\n',
    ),
    "with dots": (
        'models.M.ranker = "MART"\nmodels."M".n_leaves = 3 \n',
        'models.M.ranker = "MART"\nmodels.M.learning_rate = 0.25\nmodels."M".n_leaves = 17 \n',
    ),
    "quoted": (
        '["models"."M"]\n"ranker" = \'MART\'\n',
        '["models"."M"]\n"ranker" = \'MART\'\nn_leaves = 17\nlearning_rate = 0.25\n',
    ),
    "defaults": (
        '[models.M]\nranker = "MART"\n[defaults.MART]\nn_leaves = 3\nlearning_rate = 1\n',
        '[models.M]\nranker = "MART"\nn_leaves = 17\nlearning_rate = 0.25\n'
        "[defaults.MART]\nn_leaves = 3\nlearning_rate = 1\n",
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts(name):
    text, expected = TEXTS[name]
    assert with_parameters(recipe_of("r.toml", text), "M", NEW) == expected


@pytest.mark.parametrize("name", SHIPPED)
def test_recipes_of_the_package_change_in_one_table_alone(name):
    recipe = recipe_of(name, shipped_text(name))
    for model in ("M1", "M5", "M11"):
        text = with_parameters(recipe, model, NEW)
        after, before = tomllib.loads(text), tomllib.loads(recipe.text)
        assert after["models"].pop(model) == {**before["models"].pop(model), **NEW}
        assert after == before
        old = recipe.text.splitlines()
        assert [line for line in text.splitlines() if line in old] == old


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "n_leaves": st.integers(2, 999),
            "learning_rate": st.floats(1e-9, 1e9),
            "max_depth": st.none() | st.integers(1, 9),
            "criterion": st.sampled_from(["mse", "newton"]),
        },
    ),
    st.sampled_from([text for text, _ in TEXTS.values()]),
)
def test_any_values_are_read_back(parameters, text):
    recipe = recipe_of("r.toml", text)
    changed = recipe_of("r.toml", with_parameters(recipe, "M", parameters))
    assert changed.models["M"].parameters == {**recipe.models["M"].parameters, **parameters}
