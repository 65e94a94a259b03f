"""The keys of tasks: which edits of the sources make trained models stale, and which do not."""

import pytest

from rankinite.core import sources
from rankinite.runs.graph import Graph


@pytest.fixture
def keys_after(recipe_of, monkeypatch):
    """Return the keys of all kinds of tasks of a recipe after an edit of one source file."""
    recipe = recipe_of()

    def keys(file=None):
        texts = dict(sources.all_sources())
        if file is not None:
            texts[sources.PACKAGE / file] += "# edited"
        with monkeypatch.context() as patched:
            patched.setattr(sources, "all_sources", lambda: texts)
            sources.module_hash.cache_clear()
            graph = Graph(recipe, "digest")
            model = graph.model("B", graph.final)
            tasks = (*model.fits, model.features, graph.spread(model), *model.dependencies)
            keys_of_tasks = {task.key for task in tasks}
        sources.module_hash.cache_clear()
        return keys_of_tasks

    return keys


@pytest.mark.parametrize(
    "file",
    [
        "cli/recipe.py",
        "report/page.py",
        "report/comparisons.py",
        "runs/tables.py",
        "runs/scheduler.py",
        "sweeps/sweep.py",
        "papers/linear.py",
        "ensembles/combine.py",
        "__init__.pyi",
    ],
)
def test_an_edit_of_what_trains_nothing_keeps_all_keys(keys_after, file):
    assert keys_after(file) == keys_after()


@pytest.mark.parametrize(
    "file",
    [
        "rankers/lambdamart.py",
        "rankers/mart.py",
        "trees/kernels/histogram.py",
        "objectives/kernels/pairwise.py",
        "nets/kernels/forward.py",
        "measures/kernels/values_with_ties.py",
        "ensembles/score_features.py",
        "data/augment.py",
        "core/random.py",
        "runs/tasks.py",
    ],
)
def test_an_edit_of_what_trains_changes_every_key(keys_after, file):
    assert not keys_after(file) & keys_after()
