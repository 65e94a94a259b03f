"""Weights of queries and of documents."""

from __future__ import annotations

import numpy as np
import pytest

import rankinite as rk
from tests.rankers.cases import (
    CASES,
    NETS,
    TEST,
    TRAIN,
    TREES,
    WHOLE,
    bytes_of,
    copied,
    every_case,
    every_case_of_trees,
)

# Without sampling, which draws by the number of documents.
LEAVING_OUT = {**WHOLE, "min_docs_in_leaf": 2, "n_trees": 4}
LAMBDAS = {name: case for name, case in TREES.items() if case.kind is rk.LambdaMART}
POINTWISE = {name: case for name, case in TREES.items() if case.kind is not rk.LambdaMART}
every_pointwise = pytest.mark.parametrize("case", POINTWISE.values(), ids=POINTWISE)


def decimal_labels(data: rk.RankingData) -> rk.RankingData:
    """Return labels that leave no two splits with the same gain, where rounding would choose."""
    noise = np.random.default_rng(2).random(data.n_docs)
    return copied(data, y=data.y * 0.7 + noise, top_grade=4)


@every_case
def test_query_weights_change_the_model(case):
    weights = np.linspace(0.1, 3.0, TRAIN.n_queries)
    weighted = case.fit(query_weight=weights)
    assert (case.predict(weighted) != case.predict(case.fit())).any()
    of_the_set = case.fit(TRAIN.with_query_weight(weights))
    assert bytes_of(of_the_set) == bytes_of(weighted)


@every_case
def test_weights_of_one_are_no_weights(case):
    weighted = case.fit(query_weight=np.ones(TRAIN.n_queries))
    assert bytes_of(weighted) == bytes_of(case.fit())


@every_case_of_trees
def test_a_query_without_weight_is_not_there(case):
    """It is not counted, and no bin is made for its documents; only sums are rounded elsewhere."""
    weights = np.ones(TRAIN.n_queries)
    weights[[2, 7, 11]] = 0.0
    weighted = case.fit(query_weight=weights, changes=LEAVING_OUT)
    without = case.fit(TRAIN[weights > 0], changes=LEAVING_OUT)
    # Documents with equal scores stand in a drawn order, another one in the smaller set: lambdas
    # of measures that look at ranks differ.
    if case.kind is not rk.LambdaMART or case.params.get("measure") == "RankNet":
        np.testing.assert_allclose(case.predict(weighted), case.predict(without), atol=1e-12)
    same = [tree.docs[:1].tolist() for tree in weighted.forest_.trees]
    assert same == [tree.docs[:1].tolist() for tree in without.forest_.trees]


@pytest.mark.parametrize("case", NETS.values(), ids=NETS)
def test_a_query_without_weight_is_not_there_for_nets(case):
    """No two documents tie, so that what is drawn for ties does not matter."""
    weights = np.ones(TRAIN.n_queries)
    weights[[2, 7, 11]] = 0.0
    assert bytes_of(case.fit(query_weight=weights)) == bytes_of(case.fit(TRAIN[weights > 0]))


@pytest.mark.parametrize("case", LAMBDAS.values(), ids=LAMBDAS)
def test_a_last_query_without_weight_is_not_there(case):
    """The ties of the queries before it are drawn before its own, and stay what they were."""
    weights = np.ones(TRAIN.n_queries)
    weights[-1] = 0.0
    weighted = case.fit(query_weight=weights, changes=LEAVING_OUT)
    without = case.fit(TRAIN[:-1], changes=LEAVING_OUT)
    np.testing.assert_allclose(case.predict(weighted), case.predict(without), rtol=1e-12)


@every_case_of_trees
def test_the_scale_of_weights_does_not_matter(case):
    if case.params.get("step") in ("gradient", "line-search"):
        pytest.skip("a gradient step is as long as the gradients, and a weight has its bounds")
    weights = np.linspace(0.5, 2.0, TRAIN.n_queries)
    plain, scaled = (case.fit(query_weight=weights * scale) for scale in (1.0, 1024.0))
    np.testing.assert_allclose(case.predict(plain), case.predict(scaled), rtol=1e-9, atol=1e-12)


def repeated(data: rk.RankingData, times: np.ndarray) -> rk.RankingData:
    docs = np.repeat(np.arange(data.n_docs), times)
    sizes = np.add.reduceat(times, data.offsets[:-1])
    assert (sizes > 0).all()
    return rk.RankingData(data.X[docs], data.y[docs], group_sizes=sizes, top_grade=4)


@every_pointwise
def test_whole_weights_are_repeated_documents(case):
    data = TRAIN if case.kind is rk.McRank else decimal_labels(TRAIN)
    times = np.random.default_rng(4).integers(0, 4, TRAIN.n_docs)
    times[TRAIN.offsets[:-1]] = 1
    # Regularisation counts documents, whatever they weigh: there it matters which of both they are.
    # With fewer bins than values these would depend on how often a document is there.
    changes = {**WHOLE, "min_docs_in_leaf": 1, "l2_regularization": 0.0, "most_bins": 255}
    changes["n_trees"] = 1 if case.kind is rk.McRank else 4
    if case.kind is rk.McRank:
        # Its start smooths counts of classes by one document of the largest weight.
        times = np.minimum(times, 1)
    weighted = case.fit(data, sample_weight=times, changes=changes)
    copies = case.fit(repeated(data, times), changes=changes)
    # Two features that part the documents of a node in the same way gain the same, and rounding
    # chooses between them: documents seen in training are scored alike, others need not be.
    scores, expected = (case.predict(model, data)[times > 0] for model in (weighted, copies))
    np.testing.assert_allclose(scores, expected, rtol=1e-9)


@every_pointwise
def test_sample_weight_and_query_weight_multiply(case):
    rng = np.random.default_rng(5)
    of_docs, of_queries = rng.random(TRAIN.n_docs), rng.random(TRAIN.n_queries)
    both = case.fit(sample_weight=of_docs, query_weight=of_queries)
    product = case.fit(sample_weight=of_docs * np.repeat(of_queries, TRAIN.sizes))
    np.testing.assert_allclose(case.predict(both), case.predict(product), rtol=1e-12)


@every_pointwise
def test_sample_weight_follows_documents_that_are_brought_together(case):
    rng = np.random.default_rng(6)
    weights = rng.random(TRAIN.n_docs)
    # Every second document first: all queries come twice.
    apart = np.concatenate([np.arange(0, TRAIN.n_docs, 2), np.arange(1, TRAIN.n_docs, 2)])
    together = apart[np.argsort(TRAIN.qid[apart], kind="stable")]
    models = [
        case.new().fit(
            TRAIN.X[order], TRAIN.y[order], qid=TRAIN.qid[order], sample_weight=weights[order]
        )
        for order in (apart, together)
    ]
    np.testing.assert_array_equal(models[0].predict(TEST), models[1].predict(TEST))


@every_case
def test_sample_weights_of_1_are_none(case):
    plain, weighted = case.fit(), case.fit(sample_weight=np.ones(TRAIN.n_docs))
    np.testing.assert_array_equal(case.predict(plain), case.predict(weighted))


@pytest.mark.parametrize("name", LAMBDAS | NETS)
def test_a_document_of_weight_0_teaches_lambda_rankers_nothing(name):
    """Whatever its label is; it keeps its rank."""
    case = CASES[name]
    if case.params.get("step") == "line-search" or case.params.get("optimiser") == "sgd":
        pytest.skip("the measure of the training set decides, which knows no weights of documents")
    weights = np.random.default_rng(7).choice([0.0, 1.0, 2.5], TRAIN.n_docs)
    other = TRAIN.replace(y=np.where(weights > 0.0, TRAIN.y, 4.0 - TRAIN.y))
    models = [case.fit(data, sample_weight=weights, valid=TEST) for data in (TRAIN, other)]
    np.testing.assert_array_equal(case.predict(models[0]), case.predict(models[1]))


@every_case
def test_weights_of_a_label_source(case):
    weights = np.random.default_rng(8).choice([0.5, 1.0, 2.0], TRAIN.n_docs)
    data = TRAIN.with_labels({"w": weights})
    by_source = case.fit(data, changes={"weight_source": "w"})
    np.testing.assert_array_equal(
        case.predict(by_source), case.predict(case.fit(sample_weight=weights))
    )


@every_case
def test_a_weight_source_that_is_not_there(case):
    with pytest.raises(rk.UsageError, match=r"weight_source is 'w', and the label sources .* none"):
        case.fit(changes={"weight_source": "w"})


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(3), r"sample_weight has the shape \(3,\); expected one weight for each of the 96"),
        (np.full(96, np.nan), "sample_weight of document 0 is nan; expected a finite number"),
        (np.full(96, -1.0), "sample_weight of document 0 is -1.0; expected a finite number of at"),
        (np.zeros(96), "sample_weight is zero for all documents"),
        (["a"] * 96, "sample_weight cannot be made numbers"),
    ],
)
def test_sample_weights_that_are_refused(weights, sentence):
    with pytest.raises(rk.DataError, match=f"MART: {sentence}"):
        CASES["squared"].fit(sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        (np.ones(3), "query_weight: 3 values for 12 queries"),
        (np.full(12, -1.0), "the weight of query 0 is -1.0; expected a finite number"),
        (np.zeros(12), "all weights are 0; expected at least one above 0"),
    ],
)
@every_case
def test_query_weights_that_are_refused(case, weights, sentence):
    with pytest.raises(rk.DataError, match=sentence):
        case.fit(query_weight=weights)
