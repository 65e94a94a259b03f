"""Objectives of one's own: functions, classes and objects, in rankers and in model files."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError, UsageError
from rankinite.core.sources import PACKAGE, all_sources, with_imports
from rankinite.objectives.custom import CUSTOM, FunctionObjective
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas
from rankinite.objectives.parse import objective_classes, parse_objective
from rankinite.objectives.pointwise import SquaredError

TRAIN = rk.polynomials(20, part="train", n_features=4, n_docs=8)
VALID = rk.polynomials(10, part="valid", n_features=4, n_docs=8)
TREES = {"n_trees": 4, "n_leaves": 5, "min_docs_in_leaf": 3}
NETS = {"n_epochs": 3, "hidden": 3}


def squared_error(scores, labels, offsets):
    assert len(scores) == len(labels) == offsets[-1]
    return labels - scores, np.ones_like(scores)


def only_gradients(scores, labels, offsets):
    return labels - scores


class Same(rk.objectives.Objective):
    """Squared error as a class."""

    def prepare(self, targets):
        return SameGradients(targets.labels[None])


class SameGradients(rk.objectives.Gradients):
    def __init__(self, labels):
        self.labels = labels

    def gradients(self, scores, round, out_gradient, out_hessian):
        out_gradient[0] = self.labels - scores[0]
        out_hessian[0] = 1.0


class Ducks:
    """An object that follows the protocol without the base classes."""

    def prepare(self, targets):
        class Prepared:
            def gradients(self, scores, round, out_gradient, out_hessian):
                out_gradient[0] = targets.labels[None] - scores[0]
                out_hessian[0] = 1.0

        return Prepared()


@pytest.fixture
def clean_registry():
    yield
    CUSTOM.clear()


@pytest.mark.parametrize(
    "objective", [squared_error, Same(), Same, Ducks()], ids=["function", "object", "class", "duck"]
)
def test_every_kind_gives_the_same_trees_and_nets(objective):
    trees = [
        rk.LambdaMART(o, **TREES).fit(TRAIN) for o in (objective, FunctionObjective(squared_error))
    ]
    np.testing.assert_array_equal(trees[0].predict(VALID), trees[1].predict(VALID))
    nets = [
        rk.LambdaRank(o, **NETS).fit(TRAIN) for o in (objective, FunctionObjective(squared_error))
    ]
    np.testing.assert_array_equal(nets[0].predict(VALID), nets[1].predict(VALID))


def test_a_function_gives_the_gradients_of_the_built_in_objective():
    weight = np.arange(TRAIN.n_queries) % 3 / 2
    targets = Targets({None: TRAIN.y}, TRAIN.offsets, 4.0, query_weight=weight)
    scores = np.random.default_rng(1).normal(size=(1, TRAIN.n_docs))
    ours, theirs = (np.empty((2, 1, TRAIN.n_docs)) for _ in range(2))
    FunctionObjective(squared_error).prepare(targets).gradients(scores, 0, ours[0], ours[1])
    SquaredError().prepare(targets).gradients(scores, 0, theirs[0], theirs[1])
    np.testing.assert_allclose(ours, theirs)


def test_without_hessians_there_is_no_newton_step():
    with pytest.raises(UsageError, match=r"only_gradients returns no hessians.*step='gradient'"):
        rk.LambdaMART(only_gradients, **TREES).fit(TRAIN)
    rk.LambdaMART(only_gradients, step="gradient", **TREES).fit(TRAIN)
    rk.LambdaRank(only_gradients, **NETS).fit(TRAIN)


def test_validation_early_stopping_and_checkpoints(tmp_path):
    whole = rk.LambdaMART(squared_error, patience=2, **TREES).fit(TRAIN, valid=VALID)
    assert list(whole.history_["valid"]) == ["NDCG@10"]
    path = tmp_path / "fit.ckpt"
    stop = rk.LambdaMART(squared_error, patience=2, **TREES)
    stop.fit(TRAIN, valid=VALID, checkpoint=path, callbacks=[lambda done: done.number == 2])
    resumed = rk.LambdaMART(squared_error, patience=2, **TREES)
    resumed.fit(TRAIN, valid=VALID, checkpoint=path)
    np.testing.assert_array_equal(resumed.predict(VALID), whole.predict(VALID))


@pytest.mark.parametrize("objective", [squared_error, Same()], ids=["function", "class"])
@pytest.mark.parametrize("kind", [rk.LambdaMART, rk.LambdaRank])
def test_a_model_file_keeps_the_name(tmp_path, kind, objective):
    model = kind(objective, **(TREES if kind is rk.LambdaMART else NETS)).fit(TRAIN)
    model.save(tmp_path / "model.rk")
    loaded = rk.load_model(tmp_path / "model.rk")
    np.testing.assert_array_equal(loaded.predict(VALID), model.predict(VALID))
    with pytest.raises(
        UsageError, match="one of your own is given as the class or function itself"
    ):
        loaded.fit(TRAIN)
    again = loaded.set_params(measure=objective).fit(TRAIN)
    np.testing.assert_array_equal(again.predict(VALID), model.predict(VALID))


def test_registered_names(clean_registry):
    assert rk.objectives.register(squared_error) is squared_error
    rk.objectives.register(Same, "MyLoss")
    by_name = rk.LambdaMART("Squared_Error", **TREES).fit(TRAIN)
    by_class = rk.LambdaMART("myloss", **TREES).fit(TRAIN)
    np.testing.assert_array_equal(by_name.predict(VALID), by_class.predict(VALID))
    with pytest.raises(UsageError, match="there is a measure or an objective 'NDCG' already"):
        rk.objectives.register(squared_error, "NDCG")
    with pytest.raises(UsageError, match="cannot be a name in texts"):
        rk.objectives.register(squared_error, "my loss")
    with pytest.raises(UsageError, match="is no objective; give an Objective"):
        rk.objectives.register(3)
    with pytest.raises(UsageError, match="'mu=1' is not an option of MyLoss; it has none"):
        parse_objective("MyLoss(mu=1)")


@pytest.mark.parametrize(
    ("result", "problem", "message"),
    [
        (lambda s: (s, s, s), UsageError, "it returned 3 arrays; expected gradients and hessians"),
        (lambda s: s[:-1], UsageError, r"the gradients have the shape \(159,\); expected \(160,\)"),
        (lambda s: (s, s + np.nan), DataError, "some hessians are not finite"),
        (lambda s: (s, s - 1), DataError, "a hessian is -1; expected at least 0"),
        (lambda s: "no", UsageError, "the gradients are not numbers"),
    ],
)
def test_what_is_refused(result, problem, message):
    with pytest.raises(problem, match=message):
        rk.LambdaMART(lambda scores, labels, offsets: result(scores), **TREES).fit(TRAIN)


def ndcg_at_3(labels):
    gains, discounts = 2.0**labels - 1.0, 1.0 / np.log2(np.arange(2, len(labels) + 2))
    discounts[3:] = 0.0
    best = (-np.sort(-gains) * discounts).sum()
    return (gains * discounts).sum() / best if best else np.nan


@pytest.mark.parametrize("normalise", ["none", "deviation", "distance"])
@pytest.mark.parametrize("truncation", [2, 3])
def test_lambdas_of_a_function_are_those_of_the_measure(normalise, truncation):
    rng = np.random.default_rng(2)
    labels = rng.integers(4, size=40).astype(float)
    labels[rng.random(40) < 0.1] = np.nan
    offsets, scores = np.array([0, 15, 16, 40]), np.round(rng.normal(size=(1, 40)), 1)
    targets = Targets({None: labels}, offsets, 4.0, np.array([1.0, 2.0, 0.5]), seed=3)
    results = []
    for measure in ("NDCG@3", ndcg_at_3):
        objective = Lambdas(measure, normalise=normalise, truncation=truncation)
        out = np.empty((2, 1, 40))
        objective.prepare(targets).gradients(scores, 0, out[0], out[1])
        results.append(out)
    np.testing.assert_allclose(results[0], results[1], rtol=1e-9, atol=1e-12)


def test_other_constructions_need_a_compiled_measure():
    for make in (rk.objectives.LocalCost, rk.objectives.SigmoidCost):
        with pytest.raises(UsageError, match="ndcg_at_3 is a function of ranked labels"):
            make(ndcg_at_3)


def test_texts_cover_all_objectives():
    """Every registered class has a text that is read back."""
    texts = {
        "Lambdas": "Lambdas(NDCG@10)",
        "RankNet": "RankNet",
        "SpringSmooth": "SpringSmooth(NDCG)",
        "LocalCost": "LocalCost(MAP)",
        "LocalGradient": "LocalGradient(NDCG, margin=0.5)",
        "DiscreteBounded": "DiscreteBounded(ERR)",
        "SigmoidCost": "SigmoidCost(NDCG@3, mu=0.5)",
        "Tiered": "Tiered(NDCG@3 > CNDCG@3[clicks], weights=0.1)",
        "Transition": "Transition(NDCG, SigmoidCost(NDCG), 0.5)",
    }
    assert texts.keys() == objective_classes().keys()
    for name, text in texts.items():
        objective = parse_objective(text)
        assert type(objective).__name__ == name
        if name not in ("Lambdas", "RankNet"):  # whose options are those of the ranker
            assert str(objective) == text


def test_reading_a_text_imports_every_module_that_registers_objectives():
    """A class is known by its text in a fresh process, too; and task keys follow its module."""
    sources = all_sources()
    registering = {path for path, text in sources.items() if "\n@named\n" in text}
    assert registering
    assert registering <= with_imports([PACKAGE / "objectives" / "parse.py"])
