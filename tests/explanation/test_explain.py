"""Explanations: documents in their order, pairs, what decides them, and what swaps them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import UsageError
from rankinite.explanation.attribution import explained_scores

DATA = rk.polynomials(12, n_features=4)
TREES = {"n_trees": 6, "n_leaves": 6}


@pytest.fixture(scope="module")
def model():
    return rk.LambdaMART(**TREES).fit(DATA)


@pytest.fixture(scope="module")
def explanation(model):
    return rk.explain(model, DATA, query=DATA.qids[3])


def test_documents_come_in_the_order_of_the_ranking(model, explanation):
    documents = explanation.documents(top=2)
    data = DATA[3]
    scores = model.predict(data)
    assert [doc.rank for doc in documents] == list(range(1, data.n_docs + 1))
    assert [doc.score for doc in documents] == sorted(scores.tolist(), reverse=True)
    for doc in documents:
        assert doc.label == data.y[doc.number]
        amounts = np.abs(explanation.contributions[doc.number])
        assert [abs(row.amount) for row in doc.contributions] == sorted(amounts)[::-1][:2]
        for row in doc.contributions:
            column = data.feature_names.index(row.name)
            assert row.values == (data.X[doc.number, column],)


def test_a_pair_adds_up_to_the_difference(explanation):
    pair = explanation.pair(5, 2, measure="NDCG")
    assert (pair.upper.rank, pair.lower.rank) == (2, 5)
    total = math.fsum(row.amount for row in pair.contributions)
    assert total == pytest.approx(pair.difference, abs=1e-12)
    left = pair.difference - sum(
        row.amount for row in pair.contributions if row.name in pair.deciding
    )
    assert left < 0
    # Without the last of them the order would stay.
    amounts = {row.name: row.amount for row in pair.contributions}
    assert left + amounts[pair.deciding[-1]] >= 0


def test_the_gain_is_that_of_scores_that_change_places(model, explanation):
    pair = explanation.pair(1, 4, measure="DCG")
    scores = model.predict(DATA[3])
    swapped = scores.copy()
    docs = [pair.upper.number, pair.lower.number]
    swapped[docs] = swapped[docs[::-1]]
    before, after = (rk.evaluate(s, DATA[3], "DCG").mean["DCG"] for s in (scores, swapped))
    assert pair.value == pytest.approx(before)
    assert pair.gain == pytest.approx(after - before)


def test_documents_are_named_by_id_or_rank(model):
    data = DATA[3].replace(
        doc_id_column=rk.RankingData(
            DATA[3].X,
            group_sizes=[DATA[3].n_docs],
            doc_ids=[f"d{k}" for k in range(DATA[3].n_docs)],
        ).doc_id_column
    )
    explanation = rk.explain(model, data)
    by_rank = explanation.documents()
    pair = explanation.pair(by_rank[0].doc_id, "#2", swaps=False)
    assert (pair.upper.rank, pair.lower.rank) == (1, 2)
    assert pair.upper.name == by_rank[0].doc_id
    with pytest.raises(UsageError, match="has no document 'x'; expected an id, such as 'd0', or a"):
        explanation.pair("x", 1)
    with pytest.raises(UsageError, match="the same document"):
        explanation.pair(1, by_rank[0].doc_id)


def test_wrong_arguments_are_explained(model, explanation):
    with pytest.raises(UsageError, match="the data set has no query 'x'; among its 12 queries are"):
        rk.explain(model, DATA, query="x")
    with pytest.raises(UsageError, match="there are 12 queries; say which"):
        rk.explain(model, DATA).pair(1, 2)
    with pytest.raises(UsageError, match="a rank from 1 to"):
        explanation.pair(1, 999)
    with pytest.raises(UsageError, match="not fitted"):
        rk.explain(rk.LambdaMART(), DATA)
    with pytest.raises(UsageError, match="expected a fitted ranker"):
        rk.explain(np.zeros(3), DATA)


def test_a_set_without_labels_has_no_measure(model):
    data = rk.RankingData(DATA[0].X, group_sizes=[DATA[0].n_docs])
    explanation = rk.explain(model, data)
    assert explanation.measured() == [None]
    pair = explanation.pair(1, 2)
    assert pair.gain is None
    assert pair.upper.label is None


def test_mean_contributions_come_in_order(explanation):
    means = explanation.mean_contributions()
    assert list(means.values()) == sorted(means.values(), reverse=True)
    assert means["1"] == pytest.approx(np.abs(explanation.contributions[:, 0]).mean())


# Swaps


def swapped(ranker, data, doc, other, column, value):
    """Tell whether the pair changes its order if a feature has another value."""
    X = np.array(data.X)
    X[doc, column] = value
    before = explained_scores(ranker, data)
    after = explained_scores(ranker, data.replace(matrix=X, rows=None))
    is_upper = before[doc] > before[other]
    return after[doc] < after[other] if is_upper else after[doc] > after[other]


def rankers():
    base = rk.MART(**TREES).fit(DATA)
    return {
        "trees": rk.LambdaMART(**TREES).fit(DATA),
        "base": rk.LambdaMART(**TREES, base=base).fit(DATA),
        "features of scores": rk.WithScoreFeatures(
            rk.MART(**TREES), rk.LambdaMART(**TREES), folds=2
        ).fit(DATA),
    }


@pytest.mark.parametrize("name", ["trees", "base", "features of scores"])
def test_swaps_are_the_smallest_changes(name):
    ranker, data = rankers()[name], DATA[3]
    documents = rk.explain(ranker, data).documents()
    scores = [doc.score for doc in documents]
    last = next(k for k in range(1, len(scores)) if scores[k] < scores[0])
    pair = rk.explain(ranker, data).pair(1, last + 1)
    numbers = {"upper": pair.upper.number, "lower": pair.lower.number}
    grid = np.unique(np.concatenate([np.linspace(-3, 3, 101), data.X.ravel()])).astype(np.float32)
    checked = 0
    for role, doc in numbers.items():
        other = numbers["lower" if role == "upper" else "upper"]
        for column, feature in enumerate(data.feature_names):
            changes = [s for s in pair.swaps if (s.document, s.feature) == (role, feature)]
            values = [s.changed for s in changes if s.changed is not None]
            present = float(data.X[doc, column])
            distance = abs(values[0] - present) if values else np.inf
            if values:
                assert swapped(ranker, data, doc, other, column, values[0])
                # The next number towards the present value does not.
                nearer = np.nextafter(np.float32(values[0]), np.float32(present))
                assert not swapped(ranker, data, doc, other, column, nearer)
                checked += 1
            nearer_values = grid[np.abs(grid.astype(float) - present) < distance]
            for value in nearer_values[:: 1 if name == "trees" else 23]:
                assert not swapped(ranker, data, doc, other, column, value)
            is_told = any(s.changed is None for s in changes)
            assert is_told == swapped(ranker, data, doc, other, column, np.nan)
    assert checked
    assert all(swap.exact for swap in pair.swaps)


def test_swaps_of_a_net_are_found_by_halving():
    net = rk.LambdaRank(hidden=0, n_epochs=10, rank_inputs=False).fit(DATA)
    data = DATA[3]
    pair = rk.explain(net, data).pair(1, 3)
    assert pair.swaps
    for swap in pair.swaps:
        if swap.changed is None:
            continue
        assert not swap.exact
        doc, other = pair.upper.number, pair.lower.number
        if swap.document == "lower":
            doc, other = other, doc
        column = data.feature_names.index(swap.feature)
        assert swapped(net, data, doc, other, column, swap.changed)
        # A linear net's change can be computed: within the 32 bits of its scores.
        present = float(data.X[doc, column])
        weight = net.net_.weights[column] * net.net_.inputs.scales[column]
        expected = pair.difference / abs(weight)
        assert abs(swap.changed - present) == pytest.approx(expected, rel=1e-3)


def test_swaps_from_and_to_missing_values_and_categories():
    rng = np.random.default_rng(0)
    n = 200
    X = np.column_stack([rng.integers(3, size=n), rng.normal(size=n)]).astype(np.float32)
    X[rng.random(n) < 0.2, 1] = np.nan
    y = np.isin(X[:, 0], [2]) + 2 * (np.nan_to_num(X[:, 1], nan=2) > 0)
    data = rk.RankingData(
        X, y, group_sizes=np.full(20, 10), feature_names=["colour", "size"],
        categories={"colour": ["red", "green", "blue"]},
    )  # fmt: skip
    model = rk.LambdaMART(n_trees=20, n_leaves=6, min_docs_in_leaf=1).fit(data)
    texts, missing = set(), 0
    for query in range(20):
        explanation = rk.explain(model, data[query])
        for pair in (explanation.pair(4, 7), explanation.pair(3, 8)):
            for swap in pair.swaps:
                if swap.feature == "colour" and swap.changed is not None:
                    texts.add(swap.changed)
                    assert swap.deviations is None
                missing += swap.present is None
            values = {row.values[0] for row in pair.contributions if row.name == "colour"}
            assert values <= {"red", "green", "blue"}
    assert texts >= {"blue"}
    assert missing
