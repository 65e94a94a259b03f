"""Scores by numpy and by kernels are the same; which of the two is used; levels of trees."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.jit import JIT_IS_OFF
from rankinite.trees import scoring
from rankinite.trees.forest import Forest
from rankinite.trees.scoring import find_levels
from tests.naive import trees as naive_trees
from tests.trees.cases import leaf, random_tree

pytestmark = pytest.mark.kernel
SCALE = 10 if JIT_IS_OFF else 100


def symmetric_tree(rng, n_levels: int, n_features: int):
    """Return a tree of random shape in which few comparisons split all nodes."""
    tree = random_tree(rng, int(rng.integers(2, 2**n_levels + 1)), n_features)
    features = rng.integers(n_features, size=n_levels).astype(np.int32)
    thresholds = rng.choice([0.0, 0.5, np.inf, 1.0], size=n_levels).astype(np.float32)
    chosen = rng.integers(n_levels, size=len(tree.feature))
    return replace(tree, feature=features[chosen], threshold=thresholds[chosen])


def walked(forest: Forest, document) -> list[float]:
    scores = forest.start.tolist()
    for number, tree in enumerate(forest.trees):
        scores[number % len(scores)] += tree.value[naive_trees.leaf_of(tree, document)]
    return scores


@pytest.mark.parametrize("has_missing", [False, True])
@pytest.mark.parametrize("is_symmetric", [False, True])
def test_numpy_and_kernels_agree_with_walking_through_every_tree(is_symmetric, has_missing):
    rng = np.random.default_rng([is_symmetric, has_missing])
    n_by_codes = 0
    for _ in range(SCALE):
        n_features, n_outputs = int(rng.integers(1, 5)), int(rng.integers(1, 3))
        make = symmetric_tree if is_symmetric else random_tree
        trees = [make(rng, int(rng.integers(2, 7)), n_features) for _ in range(2 * n_outputs)]
        trees[0] = leaf(0.5) if rng.random() < 0.2 else trees[0]
        forest = Forest(tuple(trees), rng.normal(size=n_outputs), n_features)
        X = rng.choice([-1.0, 0.0, 0.3, 0.5, 0.8, 1.0, 2.0], size=(9, n_features))
        X[rng.random(X.shape) < 0.3 * has_missing] = np.nan
        X = X.astype(np.float32)
        rows = rng.integers(9, size=int(rng.integers(1, 2000))) if rng.random() < 0.5 else None
        expected = np.array([walked(forest, document) for document in X]).T
        expected = expected if rows is None else expected[:, rows]
        scorer = forest._scorer
        n_docs = expected.shape[1]
        n_by_codes += scorer._seconds_of_codes(n_docs) < scorer._seconds_of_levels(n_docs)
        for add in (scorer.add_plainly, scorer.add_compiled):
            scores = add(np.repeat(forest.start[:, None], n_docs, axis=1), X, rows)
            assert scores.tobytes() == expected.tobytes()
    # Both ways of numpy were tried, where there are both.
    assert 0 < n_by_codes < SCALE


def test_many_documents_are_followed_block_by_block(monkeypatch):
    rng = np.random.default_rng(3)
    forest = Forest(tuple(random_tree(rng, 20, 3) for _ in range(5)), np.zeros(1), 3)
    X = rng.normal(size=(100, 3)).astype(np.float32)
    whole = forest._scorer.add_plainly(np.zeros((1, 100)), X, None)
    monkeypatch.setattr(scoring, "BLOCK_NODES", 35)
    parts = forest._scorer.add_plainly(np.zeros((1, 100)), X, None)
    assert parts.tobytes() == whole.tobytes()


def test_tables_of_many_combinations_count_as_work():
    """Twelve comparisons have 4,096 combinations of results, more than walking would take."""
    rng = np.random.default_rng(5)
    few, many = (
        Forest(tuple(random_tree(rng, n + 1, 3) for _ in range(50)), np.zeros(1), 3)._scorer
        for n in (3, 12)
    )
    assert few._seconds_of_codes(1000) < few._seconds_of_levels(1000)
    assert many._seconds_of_codes(1000) > many._seconds_of_levels(1000)


def test_levels_tell_trees_from_what_is_none():
    rng = np.random.default_rng(4)
    n_unsound = 0
    for _ in range(10 * SCALE):
        trees = [random_tree(rng, int(rng.integers(1, 9)), 2) for _ in range(3)]
        if rng.random() < 0.7:
            place = int(rng.integers(3))
            tree = trees[place]
            if len(tree.right):
                field = str(rng.choice(["first", "right"]))
                array = getattr(tree, field).copy()
                array[rng.integers(len(array))] = rng.integers(10)
                trees[place] = replace(tree, **{field: array})
        levels = find_levels(
            np.concatenate([tree.first for tree in trees]),
            np.concatenate([tree.right for tree in trees]),
            np.array([tree.n_leaves for tree in trees]),
        )
        sound = [naive_trees.is_tree(tree) for tree in trees]
        assert levels.unsound == (-1 if all(sound) else sound.index(False))
        n_unsound += not all(sound)
    assert n_unsound > 2 * SCALE


def test_a_process_that_goes_on_scoring_uses_compiled_code(monkeypatch):
    monkeypatch.setattr(scoring, "JIT_IS_OFF", False)
    monkeypatch.setattr(scoring._Calls, "n", 0)
    monkeypatch.setattr(scoring._Calls, "are_compiled", False)
    assert [scoring._is_worth_compiled_code(0.1) for _ in range(5)] == [False] * 3 + [True] * 2


def test_much_work_uses_compiled_code_from_then_on(monkeypatch):
    monkeypatch.setattr(scoring, "JIT_IS_OFF", False)
    monkeypatch.setattr(scoring._Calls, "n", 0)
    monkeypatch.setattr(scoring._Calls, "are_compiled", False)
    assert [scoring._is_worth_compiled_code(s) for s in (0.1, 60.0, 0.1)] == [False, True, True]


PREDICT = """
import sys
import numpy as np
import rankinite as rk
model = rk.load_model("model.rk")
print(model.predict(np.zeros((3, 4))).tolist())
heavy = ("numba", "llvmlite", "sklearn", "scipy", "pandas", "pyarrow", "matplotlib")
print([name for name in heavy if name in sys.modules])
training = ("rankinite.rankers.trainer", "rankinite.trees.grower")
print([name for name in training if name in sys.modules])
rk.warm_up(model)
print(model.predict(np.zeros((3, 4))).tolist(), "numba" in sys.modules)
"""


@pytest.mark.skipif(JIT_IS_OFF, reason="kernels are Python")
@pytest.mark.parametrize("base", [None, np.zeros(200)])
def test_a_process_that_scores_once_imports_neither_numba_nor_scikit_learn(base):
    data = rk.polynomials(20, n_features=4, n_docs=10)
    model = rk.LambdaMART(n_trees=3, base=base).fit(data)
    model.save("model.rk")
    zero = {} if base is None else {"base_scores": 0}
    scores = model.predict(np.zeros((3, 4)), **zero).tolist()
    code = PREDICT if base is None else PREDICT.replace("4))", "4)), base_scores=0")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.splitlines() == [str(scores), "[]", "[]", f"{scores} True"], done.stderr


def test_a_ranker_that_is_not_fitted_says_so():
    with pytest.raises(rk.UsageError, match="LambdaMART: is not fitted yet; call fit"):
        rk.warm_up(rk.LambdaMART())


def test_all_that_scores_is_loaded_ahead():
    scoring.load_compiled_code()
    if not JIT_IS_OFF:
        from rankinite.trees.kernels.predict import score_rows

        loaded = len(score_rows.dispatcher.signatures)
        data = rk.polynomials(20, n_features=4, n_docs=10)
        rk.warm_up(rk.LambdaMART(n_trees=3).fit(data))
        rk.warm_up(rk.LambdaMART(n_trees=1, n_leaves=300, min_docs_in_leaf=1).fit(data))
        assert len(score_rows.dispatcher.signatures) == loaded
