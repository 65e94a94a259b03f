"""Every measure against a naive reference, exact closed forms, and what must not change a value."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.measures import DCG, ERR, NDCG, PFound, parse_measure, parse_measures
from rankinite.measures import MEASURES as REGISTRY
from rankinite.measures import scorer as compute
from rankinite.measures.kernels import values_with_ties as order
from rankinite.measures.scorer import Scorer
from tests.naive import measures as naive

# Kernels' tests also run with the JIT off, where they must be small.
SCALE = 10 if numba.config.DISABLE_JIT else 100

TOP = 4.0
MEASURES = parse_measures(
    "NDCG, NDCG(gain=linear), DCG, DCG(gain=linear), ERR, ERR(top_grade=5), pFound, "
    "pFound(break=0), pFound(break=0.5, top_grade=6), MAP, MAP(relevant=2), MRR, MRR(relevant=3), "
    "P, P(relevant=4), CNDCG[clicks], CNDCG(top_grade=2)[clicks], NDCG(empty=0), ERR(empty=1), "
    "NDCG[clicks], ERR[clicks], MAP(relevant=0.3)[clicks], NDCG(gain=[0,1,1,4,9.5]), "
    "DCG(gain=[0,2,2,3,4]), Recall, Recall(relevant=2), Hit, Hit(relevant=3, empty=0), RBP, "
    "RBP(p=0.5, relevant=2), Judged"
)
DEPTHS = (None, 1, 3, 10, 500)
AT_DEPTHS = [replace(measure, depth=depth) for measure in MEASURES for depth in DEPTHS]


def test_the_measures_cover_the_registry():
    assert {measure.name for measure in MEASURES} == REGISTRY.keys()


@dataclass
class Queries:
    scores: np.ndarray
    labels: dict[str | None, np.ndarray]
    offsets: np.ndarray

    def values(self, measures) -> np.ndarray:
        return Scorer(measures, self.labels, self.offsets, TOP).per_query(self.scores)

    def query(self, q: int, source: str | None) -> tuple[list[float], list[float]]:
        docs = slice(self.offsets[q], self.offsets[q + 1])
        return self.scores[docs].tolist(), self.labels[source][docs].tolist()

    def map_docs(self, change) -> Queries:
        """Apply a function to the numbers of each query's documents."""
        docs = np.concatenate([change(np.arange(*ends)) for ends in pairwise(self.offsets)])
        labels = {source: values[docs] for source, values in self.labels.items()}
        return Queries(self.scores[docs], labels, self.offsets)


def queries_of(scores, labels, sizes) -> Queries:
    labels = np.asarray(labels, dtype=np.float64)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = np.asarray(scores, dtype=np.float64)
    return Queries(scores, {None: labels, "clicks": labels / 4.0}, offsets)


def random_queries(rng, sizes, n_scores=None) -> Queries:
    """Make queries whose scores have few values, or all different ones; one in six has grade 0."""
    n_docs = int(np.sum(sizes))
    scores = rng.permutation(n_docs) if n_scores is None else rng.integers(n_scores, size=n_docs)
    grades = rng.choice(5, size=n_docs, p=[0.4, 0.2, 0.2, 0.1, 0.1])
    grades *= np.repeat(rng.random(len(sizes)) > 1 / 6, sizes)
    queries = queries_of(scores, grades, sizes)
    queries.labels["clicks"] = rng.choice([0.0, 0.25, 0.3, 1.0], size=n_docs)
    return queries


def assert_equal(ours, expected) -> None:
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.kernel
def test_ties_are_the_mean_over_all_orders():
    rng = np.random.default_rng(1)
    n_queries = 25 * SCALE
    queries = random_queries(rng, rng.integers(1, 8, size=n_queries), n_scores=3)
    ours = queries.values(AT_DEPTHS)
    for q in range(n_queries):
        chosen = np.arange(len(MEASURES)) * len(DEPTHS) + rng.integers(
            len(DEPTHS), size=len(MEASURES)
        )
        expected = [
            naive.expectation(measure, *queries.query(q, measure.source), TOP)
            for measure in (AT_DEPTHS[m] for m in chosen)
        ]
        assert_equal(ours[chosen, q], expected)


@pytest.mark.kernel
@settings(deadline=None, max_examples=10 + 2 * SCALE)
@given(
    documents=st.lists(
        st.tuples(st.sampled_from([-1.5, 0.0, -0.0, 1e300]), st.integers(0, 4)),
        min_size=1,
        max_size=6,
    ),
    measure=st.sampled_from(MEASURES),
    depth=st.none() | st.integers(1, 8),
)
def test_ties_are_the_mean_over_all_orders_of_any_query(documents, measure, depth):
    queries = queries_of(*zip(*documents, strict=True), [len(documents)])
    measure = replace(measure, depth=depth)
    expected = naive.expectation(measure, *queries.query(0, measure.source), TOP)
    assert_equal(queries.values([measure]), [[expected]])


@pytest.mark.kernel
def test_larger_queries_without_ties_follow_the_definitions():
    rng = np.random.default_rng(2)
    sizes = [*rng.integers(8, 8 + 3 * SCALE, size=5 + SCALE // 5), 50 * SCALE]
    queries = random_queries(rng, sizes)
    ours = queries.values(AT_DEPTHS)
    for q in range(len(sizes)):
        for m in range(int(rng.integers(len(DEPTHS))), len(AT_DEPTHS), len(DEPTHS)):
            scores, labels = queries.query(q, AT_DEPTHS[m].source)
            ranked = [labels[i] for i in naive.sort_descending(scores)]
            assert_equal(ours[m, q], naive.strict_value(AT_DEPTHS[m], ranked, TOP))


@pytest.mark.kernel
@pytest.mark.parametrize("measure", MEASURES, ids=str)
def test_a_large_tied_group_with_two_relevant_documents(measure):
    """Few distinct labels leave few distinct orders, so all can be gone through."""
    size = 5 + SCALE // 4
    labels = [1, 0, *[0] * (size - 2), 3, 2, 1, 4]
    scores = [9, 8, *[5] * size, 3, 2]
    queries = queries_of(scores, labels, [len(labels)])
    for depth in (None, 1, 3, size // 2, size + 1):
        deep = replace(measure, depth=depth)
        expected = naive.expectation(deep, *queries.query(0, deep.source), TOP)
        assert_equal(queries.values([deep]), [[expected]])


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("measure", "weight"),
    [
        (ERR(), lambda rank: Fraction(1, rank)),
        (ERR(depth=10), lambda rank: Fraction(rank <= 10, rank)),
        (PFound(), lambda rank: Fraction(17, 20) ** (rank - 1)),
    ],
    ids=["ERR", "ERR@10", "pFound"],
)
def test_cascades_of_large_tied_groups_are_exact(measure, weight):
    rng = np.random.default_rng(3)
    queries = random_queries(rng, [15 + SCALE] * 4, n_scores=3)
    expected = [naive.exact_cascade(*queries.query(q, None), weight) for q in range(4)]
    assert_equal(queries.values([measure])[0], np.array(expected, dtype=float))


@pytest.mark.kernel
@pytest.mark.parametrize("depth", DEPTHS)
def test_a_tied_document_has_the_mean_discount_of_its_group(depth):
    rng = np.random.default_rng(4)
    queries = random_queries(rng, [50 + 2 * SCALE], n_scores=20)
    ranks = np.arange(1, len(queries.scores) + 1)
    discount = np.where(ranks <= (depth or np.inf), 1.0 / np.log2(1.0 + ranks), 0.0)
    _, group = np.unique(-queries.scores, return_inverse=True)
    mean_discount = np.bincount(np.sort(group), discount) / np.bincount(group)
    gains = 2.0 ** queries.labels[None] - 1.0
    dcg, best = gains @ mean_discount[group], np.sort(gains)[::-1] @ discount
    ours = queries.values([DCG(depth=depth), NDCG(depth=depth)])
    assert_equal(ours[:, 0], [dcg, dcg / best])


@pytest.mark.kernel
def test_all_documents_tied():
    n, relevant = 20 * SCALE, 7
    labels = [4] * relevant + [0] * (n - relevant)
    queries = queries_of(np.zeros(n), labels, [n])
    assert np.isfinite(queries.values(AT_DEPTHS)).all()

    harmonic = math.fsum(1 / rank for rank in range(1, n + 1))
    discounts = [1 / math.log2(1 + rank) for rank in range(1, n + 1)]
    share = (relevant - 1) / (n - 1)
    first_at = [
        math.comb(n - rank, relevant - 1) / math.comb(n, relevant) for rank in range(1, n + 1)
    ]
    expected = {
        "DCG": 15 * relevant / n * sum(discounts),
        "DCG@3": 15 * relevant / n * sum(discounts[:3]),
        "NDCG": relevant / n * sum(discounts) / sum(discounts[:relevant]),
        "CNDCG[clicks]": relevant / n * sum(discounts) / sum(discounts[:relevant]),
        "P": relevant / n,
        "P@10": relevant / n,
        "Recall@10": 10 / n,
        "Recall": 1.0,
        "Hit": 1.0,
        "Hit@3": 1 - math.comb(n - relevant, 3) / math.comb(n, 3),
        "RBP": relevant / n * (1 - 0.8**n),
        "RBP(p=0.5)@3": relevant / n * (1 - 0.5**3),
        "Judged@10": 1.0,
        "MAP": ((1 - share) * harmonic + n * share) / n,
        "MRR": math.fsum(chance / rank for rank, chance in enumerate(first_at, 1)),
        "MRR@3": math.fsum(chance / rank for rank, chance in enumerate(first_at[:3], 1)),
    }
    assert_equal(queries.values(parse_measures(list(expected)))[:, 0], list(expected.values()))


@pytest.mark.kernel
def test_cascades_of_all_documents_tied():
    n, stop, stay = 20 * SCALE, 0.4375, 0.85
    one_good = queries_of(np.zeros(n), [3] + [0] * (n - 1), [n])
    harmonic = math.fsum(1 / rank for rank in range(1, n + 1))
    patience = (1 - stay**n) / (1 - stay)
    assert_equal(
        one_good.values([ERR(), PFound()])[:, 0], [stop * harmonic / n, stop * patience / n]
    )

    all_alike = queries_of(np.zeros(n), [3] * n, [n])
    reciprocal = math.fsum(stop * (1 - stop) ** (rank - 1) / rank for rank in range(1, n + 1))
    continues = (1 - stop) * stay
    found_chance = stop * (1 - continues**n) / (1 - continues)
    assert_equal(all_alike.values([ERR(), PFound()])[:, 0], [reciprocal, found_chance])


@pytest.mark.kernel
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 31, 32, 33, 63, 64, 65, 127, 128, 129, 1000])
@pytest.mark.parametrize("keys", ["few", "many", "close", "signed", "extreme"])
def test_documents_are_ordered_stably(n, keys):
    rng = np.random.default_rng(n)
    scores = {
        "few": rng.integers(3, size=n).astype(np.float64),
        "many": rng.normal(size=n),
        # Neighbours that differ in the last bits, which the document's number takes the place of.
        "close": 1.0 + rng.integers(n + 1, size=n) * 2.0**-52,
        "signed": rng.choice([-1.5, -1e-300, 0.0, 1e-300, 1.5], size=n),
        "extreme": rng.choice([-np.finfo(float).max, -5e-324, 5e-324, 1e6, 1.0], size=n),
    }[keys]
    length = order.padded_length(n)
    documents, ends = np.empty(n, np.int64), np.empty(n, np.int64)
    scratch = np.empty(length, np.int64), np.empty(length, np.int64)
    order.order_documents(scores, scores.view(np.int64), documents, *scratch)
    expected = naive.sort_descending(scores.tolist())
    assert documents.tolist() == expected
    n_groups = order.find_ties(scores, documents, ends)
    ranked = scores[expected].tolist()
    assert ends[:n_groups].tolist() == [
        i + 1 for i in range(n) if i == n - 1 or ranked[i] != ranked[i + 1]
    ]
    values = np.abs(scores)
    best = np.empty(n)
    order.sort_values(values.view(np.int64), best.view(np.int64), *scratch)
    assert best.tolist() == sorted(values.tolist(), reverse=True)


@pytest.fixture(scope="module")
def tied() -> Queries:
    rng = np.random.default_rng(5)
    return random_queries(rng, rng.integers(1, 40, size=200), n_scores=12)


@pytest.mark.parametrize(
    "change",
    [
        lambda q: q.map_docs(np.random.default_rng(6).permutation),
        lambda q: q.map_docs(lambda docs: docs[::-1]),
        lambda q: replace(q, scores=q.scores + 1000.0),
        lambda q: replace(q, scores=np.exp(q.scores) - 5.0),
        lambda q: replace(q, scores=q.scores**3 * 1e-9),
    ],
    ids=["shuffled", "reversed", "plus 1000", "exp", "cube"],
)
def test_what_does_not_matter(tied, change):
    assert_equal(change(tied).values(AT_DEPTHS), tied.values(AT_DEPTHS))


def test_values_lie_between_0_and_1():
    """To the last bit: sums over tied documents would round to a little more."""
    rng = np.random.default_rng(9)
    queries = random_queries(rng, rng.integers(1, 60, size=3000), n_scores=3)
    for scores in (queries.scores, queries.labels[None], queries.labels["clicks"]):
        values = replace(queries, scores=scores).values(AT_DEPTHS)
        for measure, row in zip(AT_DEPTHS, values, strict=True):
            assert np.nanmin(row) >= 0.0, measure
            assert measure.name == "DCG" or np.nanmax(row) <= 1.0, measure


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_perfect_order_is_worth_1(tied, depth):
    for source, text in ((None, "NDCG"), ("clicks", "CNDCG[clicks]")):
        perfect = replace(tied, scores=tied.labels[source])
        values = perfect.values([replace(parse_measure(text), depth=depth)])
        counted = values[~np.isnan(values)]
        assert len(counted) > 100
        assert_equal(counted, 1.0)


def test_a_better_document_moved_up_never_costs():
    """For ERR this is Theorem 1 of Ensemble; it holds for every measure here."""
    rng = np.random.default_rng(7)
    for _ in range(20):
        n = int(rng.integers(2, 13))
        labels = rng.integers(5, size=n)
        swaps = [(i, j) for i, j in combinations(range(n), 2) if labels[i] < labels[j]]
        orders = [list(range(n)) for _ in range(len(swaps) + 1)]
        for swapped, (i, j) in zip(orders[1:], swaps, strict=True):
            swapped[i], swapped[j] = j, i
        ranked = labels[np.concatenate(orders)]
        values = queries_of(-np.arange(len(ranked)), ranked, [n] * len(orders)).values(AT_DEPTHS)
        change = values[:, 1:] - values[:, :1]
        assert np.nanmin(change, initial=0.0) >= -1e-12


def test_many_documents_are_measured_in_several_calls(tied, monkeypatch):
    whole = tied.values(AT_DEPTHS).tobytes()
    for docs_a_call in (1, 17, 500):
        monkeypatch.setattr(compute, "DOCS_PER_CALL", docs_a_call)
        assert tied.values(AT_DEPTHS).tobytes() == whole


def test_any_number_of_threads_gives_the_same_bits(on_threads):
    rng = np.random.default_rng(8)
    sizes = rng.integers(1, 200, size=300) if SCALE == 100 else rng.integers(1, 20, size=30)
    grades = rng.integers(5, size=sizes.sum()).astype(float)
    measures = parse_measures("NDCG, DCG@10, ERR, pFound@7, MAP, MRR, P@10, Recall@5, Hit@3")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    scores = rng.integers(40, size=sizes.sum()) / 7.0
    results = on_threads(
        lambda: Scorer(measures, {None: grades}, offsets, 4.0).per_query(scores).tobytes()
    )
    assert len(results[1]) == len(measures) * len(sizes) * 8
    assert len(set(results.values())) == 1


def test_other_scores_of_the_same_data_are_measured_with_what_was_kept():
    """Also where a query has no value, and where measures share values but not depths."""
    rng = np.random.default_rng(3)
    offsets = np.array([0, 1, 5, 9, 20])
    labels = {None: rng.integers(5, size=20).astype(float), "other": rng.random(20)}
    labels[None][1:5] = 0.0
    measures = parse_measures("NDCG@3,NDCG,ERR,MAP@5,CNDCG@4[other],MRR,NDCG(gain=linear)")
    kept, not_kept = (
        Scorer(measures, labels, offsets, TOP, reuse=reuse) for reuse in (True, False)
    )
    for _ in range(4):
        scores = rng.integers(6, size=20).astype(float)
        once = Scorer(measures, labels, offsets, TOP).per_query(scores)
        assert kept.per_query(scores).tobytes() == once.tobytes()
        assert not_kept.per_query(scores).tobytes() == once.tobytes()
