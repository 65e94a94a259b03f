"""Measures of one's own: functions and classes, in evaluation, comparison and early stopping."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import UsageError
from rankinite.measures import MEASURES, Form, FunctionMeasure, parse_measure
from rankinite.measures.custom import FUNCTIONS, ORDERS_OF_TIES
from tests.naive.measures import DEFINITIONS

DATA = rk.polynomials(20, part="valid", n_features=4, n_docs=8)
SCORES = np.random.default_rng(1).normal(size=DATA.n_docs)


def my_dcg(labels):
    return ((2.0**labels - 1.0) / np.log2(np.arange(2, len(labels) + 2))).sum()


def first_label(labels):
    return labels[0] if labels.any() else np.nan


class FirstLabel(rk.Measure):
    """The label of the first document, as a class without a form."""

    def ranked_value(self, labels):
        return labels[0]


class Halving(rk.Measure):
    """A measure with a form: every rank counts half of the one above."""

    form = Form.CUMULATED

    def document_values(self, labels, top_grade):
        return labels / top_grade

    def discounts(self, ranks):
        return 0.5**ranks


@pytest.fixture
def clean_registry():
    before = dict(MEASURES)
    yield
    MEASURES.clear()
    MEASURES.update(before)
    FUNCTIONS.clear()


def test_a_function_beside_built_in_measures():
    evaluation = rk.evaluate(
        SCORES, DATA, ["NDCG", my_dcg, "DCG", FunctionMeasure(my_dcg, depth=3), "DCG@3"]
    )
    assert list(evaluation.per_query) == ["NDCG", "my_dcg", "DCG", "my_dcg@3", "DCG@3"]
    np.testing.assert_allclose(evaluation.per_query["my_dcg"], evaluation.per_query["DCG"])
    np.testing.assert_allclose(evaluation.per_query["my_dcg@3"], evaluation.per_query["DCG@3"])
    alone = rk.evaluate(SCORES, DATA, my_dcg).per_query["my_dcg"]
    assert alone.tobytes() == evaluation.per_query["my_dcg"].tobytes()


def test_classes():
    values = rk.evaluate(SCORES, DATA, [FirstLabel, Halving, Halving(depth=2)]).per_query
    firsts = [
        DATA.y[a + SCORES[a:b].argmax()]
        for a, b in zip(DATA.offsets, DATA.offsets[1:], strict=False)
    ]
    assert values["FirstLabel"].tolist() == firsts
    ranked = [
        np.sort(DATA.y[a:b])[::-1] for a, b in zip(DATA.offsets, DATA.offsets[1:], strict=False)
    ]
    best = rk.evaluate(DATA.y, DATA, Halving).per_query["Halving"]
    expected = [(labels / 4 * 0.5 ** np.arange(1, 9)).sum() for labels in ranked]
    np.testing.assert_allclose(best[best > 0], [value for value in expected if value > 0])


def test_a_class_with_a_form_trains_a_ranker():
    model = rk.LambdaMART(Halving(depth=3), n_trees=3, min_docs_in_leaf=3).fit(DATA, valid=DATA)
    assert list(model.history_["valid"]) == ["Halving@3"]


def test_ties_are_averaged_over_orders():
    data = rk.RankingData(np.zeros((4, 1)), [3, 0, 0, 0], group_sizes=[4], top_grade=4)
    tied = [rk.evaluate(np.zeros(4), data, first_label).mean["first_label"] for _ in range(2)]
    assert tied[0] == tied[1]
    assert tied[0] * ORDERS_OF_TIES / 3 == pytest.approx(round(tied[0] * ORDERS_OF_TIES / 3))
    assert 0.0 <= tied[0] < 3.0
    strict = rk.evaluate([4.0, 1, 1, 1], data, first_label).mean["first_label"]
    assert strict == 3.0


def test_nan_leaves_a_query_out():
    data = rk.RankingData(np.zeros((4, 1)), [3, 0, 0, 0], group_sizes=[2, 2], top_grade=4)
    evaluation = rk.evaluate([2.0, 1.0, 2.0, 1.0], data, first_label)
    assert evaluation.n_queries == {"first_label": 1}
    assert evaluation.mean == {"first_label": 3.0}


def test_comparison_and_early_stopping(tmp_path):
    comparison = rk.compare({"a": SCORES, "b": -SCORES}, DATA, [my_dcg, "ERR"])
    assert "my_dcg" in str(comparison)
    options = {"n_trees": 4, "min_docs_in_leaf": 3, "patience": 2}
    model = rk.LambdaMART("NDCG", valid_measure=my_dcg, **options).fit(DATA, valid=DATA)
    same = rk.LambdaMART("NDCG", valid_measure="DCG", **options).fit(DATA, valid=DATA)
    np.testing.assert_allclose(
        model.history_["valid"]["my_dcg"], same.history_["valid"]["DCG"], rtol=0.05
    )
    net = rk.LambdaRank("NDCG", valid_measure=[my_dcg, "ERR"], n_epochs=2, hidden=2).fit(
        DATA, valid=DATA
    )
    net.save(tmp_path / "net.rk")
    loaded = rk.load_model(tmp_path / "net.rk")
    np.testing.assert_array_equal(loaded.predict(DATA), net.predict(DATA))
    with pytest.raises(UsageError, match="one of your own must be registered first"):
        loaded.fit(DATA, valid=DATA)


def test_names_in_texts(clean_registry):
    assert rk.measures.register(my_dcg) is my_dcg
    rk.measures.register(Halving)
    assert parse_measure("MY_DCG@3[clicks]") == FunctionMeasure(my_dcg, depth=3, source="clicks")
    assert parse_measure("halving@5") == Halving(depth=5)
    assert set(rk.evaluate(SCORES, DATA, "my_dcg, Halving@5").mean) == {"my_dcg", "Halving@5"}
    with pytest.raises(UsageError, match="there is a measure 'NDCG' already; give another name"):
        rk.measures.register(my_dcg, "ndcg")
    with pytest.raises(UsageError, match="cannot be a name in texts"):
        rk.measures.register(my_dcg, "dcg2")
    with pytest.raises(UsageError, match="neither a subclass of Measure nor a function"):
        rk.measures.register(3)
    with pytest.raises(UsageError, match="is not an option of my_dcg"):
        parse_measure("my_dcg(gain=linear)")


def test_what_is_refused():
    def ndcg(labels):
        return 0.0

    with pytest.raises(UsageError, match="'ndcg' has the name of another measure; rename it"):
        rk.evaluate(SCORES, DATA, ndcg)
    with pytest.raises(UsageError, match="the value of a query is 'much'; expected a number"):
        rk.evaluate(SCORES, DATA, lambda labels: "much")
    with pytest.raises(UsageError, match="my_dcg: the best point on a line of scores is not known"):
        rk.best_mix(SCORES, -SCORES, DATA, my_dcg)
    with pytest.raises(UsageError, match=r"one of your own must be registered first"):
        rk.evaluate(SCORES, DATA, "first_label")


def test_naive_definitions_cover_all_measures():
    assert DEFINITIONS.keys() == MEASURES.keys()
