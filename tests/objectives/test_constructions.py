"""Other constructions of lambdas against naive references, by hand, and as values with texts."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain, permutations, product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import DataError, UsageError
from rankinite.measures import parse_measures
from rankinite.objectives.constructions import (
    DiscreteBounded,
    LocalCost,
    LocalGradient,
    SpringSmooth,
)
from rankinite.objectives.kernels import swaps
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas, RankNet
from rankinite.objectives.parse import parse_objective
from tests.naive import constructions as naive_constructions
from tests.naive import measures as naive

# Kernels' tests also run with the JIT off, where they must be small.
SCALE = 10 if numba.config.DISABLE_JIT else 100

TOP = 4.0
MEASURES = parse_measures(
    "NDCG, NDCG(gain=linear), DCG, CNDCG[clicks], ERR, ERR(top_grade=6), pFound, pFound(break=0), "
    "MAP, MAP(relevant=2), MRR, MRR(relevant=3), P, P(relevant=2), MAP(relevant=0.3)[clicks], "
    "DCG(gain=[0,1,1,4,9]), Recall(relevant=2), Hit, RBP"
)
REFERENCES = {
    SpringSmooth: naive_constructions.spring_smooth,
    LocalCost: naive_constructions.local_cost,
    LocalGradient: naive_constructions.local_gradient,
    DiscreteBounded: naive_constructions.discrete_bounded,
}
OBJECTIVES = [
    kind(replace(measure, depth=depth))
    for measure, depth, kind in product(MEASURES, (None, 1, 3, 10), REFERENCES)
]


def computed(objective, scores, labels, sizes, *, weight=None, seed=0):
    """Return lambdas and weights, one row each; labels become click rates where asked for."""
    labels = np.asarray(labels, dtype=float)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    sources = {None: labels, "clicks": labels / TOP}
    targets = Targets(sources, offsets, TOP, query_weight=weight, seed=seed)
    out = np.full((2, 1, len(labels)), np.nan)
    scores = np.asarray(scores, dtype=float)[np.newaxis]
    objective.prepare(targets).gradients(scores, 0, out[0], out[1])
    return out[:, 0]


def expected(objective, scores, labels, ranking=None):
    """Return what the naive reference gives for one query."""
    if objective.measure.source == "clicks":
        labels = [label / TOP for label in labels]
    options = {"margin": objective.margin} if isinstance(objective, LocalGradient) else {}
    reference = REFERENCES[type(objective)]
    return reference(objective.measure, scores, labels, TOP, ranking, **options)


def assert_equal(ours, theirs) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12)


def random_query(rng, n):
    """Make a query of different scores; some labels are missing, some queries have one grade."""
    grades = rng.choice(5, size=n, p=[0.4, 0.2, 0.2, 0.1, 0.1]).astype(float)
    if rng.random() < 0.2:
        grades[:] = grades[0]
    if rng.random() < 0.3:
        grades[rng.random(n) < 0.3] = np.nan
    spread = rng.choice([0.1, 1.0, 10.0, 1000.0])
    return (spread * (rng.permutation(n) + rng.random(n) / 2)).tolist(), grades.tolist()


@pytest.mark.kernel
def test_lambdas_are_those_of_real_swaps_and_moves():
    rng = np.random.default_rng(1)
    for objective in OBJECTIVES[:: 1 if SCALE == 100 else 5]:
        sizes = rng.integers(1, 13, size=SCALE // 5)
        queries = [random_query(rng, n) for n in sizes]
        scores, labels = (list(chain(*part)) for part in zip(*queries, strict=True))
        ours = computed(objective, scores, labels, sizes)
        theirs = [np.array(expected(objective, *query)) for query in queries]
        assert_equal(ours, np.hstack(theirs))


@pytest.mark.kernel
@settings(deadline=None, max_examples=10 + 4 * SCALE)
@given(
    documents=st.lists(
        st.tuples(
            st.floats(-1e6, 1e6),
            st.sampled_from([0.0, 1.0, 2.0, 3.0, 4.0, math.nan]),
        ),
        min_size=1,
        max_size=8,
        unique_by=lambda document: document[0],
    ),
    objective=st.sampled_from(OBJECTIVES),
    margin=st.floats(0.01, 100.0),
)
def test_lambdas_are_those_of_real_swaps_and_moves_of_any_query(documents, objective, margin):
    scores, labels = (list(part) for part in zip(*documents, strict=True))
    if isinstance(objective, LocalGradient):
        objective = replace(objective, margin=margin)
    assert_equal(
        computed(objective, scores, labels, [len(scores)]), expected(objective, scores, labels)
    )


@pytest.mark.kernel
@pytest.mark.parametrize("kind", REFERENCES)
def test_larger_queries(kind):
    """Every remainder of `LANES`, and more than `USUAL_WIDTH` documents."""
    rng = np.random.default_rng(2)
    sizes = [23, 24, 25, 26, swaps.USUAL_WIDTH + 1]
    for measure in ("NDCG@10", "ERR", "MAP", "MRR"):
        queries = [random_query(rng, n) for n in (sizes if SCALE == 100 else sizes[:2])]
        scores, labels = (list(chain(*part)) for part in zip(*queries, strict=True))
        objective = kind(measure)
        ours = computed(objective, scores, labels, [len(query[0]) for query in queries])
        assert_equal(ours, np.hstack([np.array(expected(objective, *query)) for query in queries]))


@pytest.mark.kernel
@pytest.mark.parametrize("objective", [o for o in OBJECTIVES if o.measure.depth in (None, 3)])
@pytest.mark.parametrize("scores", [[0.0, 1.0, -0.0, 0.0, 2.0], [7.0] * 4], ids=["some", "all"])
def test_ties_stand_in_one_of_their_orders(objective, scores):
    rng = np.random.default_rng(3)
    labels = rng.permutation([0.0, 1.0, 3.0, 4.0, 2.0][: len(scores)]).tolist()
    tied = [i for i, score in enumerate(scores) if score == min(scores)]
    above = [i for i in naive.sort_descending(scores) if i not in tied]
    rankings = [[*above, *order] for order in permutations(tied)]
    possible = [expected(objective, scores, labels, ranking) for ranking in rankings]
    ours = computed(objective, scores, labels, [len(scores)])
    assert any(np.allclose(ours, gradients, rtol=1e-11, atol=1e-12) for gradients in possible)


@pytest.mark.kernel
def test_ties_are_ranked_as_for_lambdas():
    """If neighbours are all there is, two documents, the pair is the same one."""
    scores, labels = np.zeros(40), np.tile([1.0, 0.0], 20)
    lambdas = computed(Lambdas("MRR"), scores, labels, [2] * 20, seed=5)
    assert computed(LocalCost("MRR"), scores, labels, [2] * 20, seed=5).tobytes() == (
        lambdas.tobytes()
    )


class TestByHand:
    """Four documents of grades 0, 2, 1 and 0, ranked so; discounts 1, 0.631, 0.5 and 0.431."""

    SCORES = (3.0, 2.5, 1.0, 0.5)
    LABELS = (0, 2, 1, 0)
    D = tuple(1.0 / math.log2(1 + rank) for rank in (1, 2, 3, 4))
    BEST = 3.0 * D[0] + 1.0 * D[1]

    def lambdas(self, objective):
        return computed(objective, self.SCORES, self.LABELS, [4])

    @pytest.mark.kernel
    def test_local_cost(self):
        d1, d2, d3, d4 = self.D
        # Gains are 0, 3, 1, 0. Swapping ranks 1 and 2, 2 and 3, 3 and 4 changes DCG by:
        changes = [3 * (d1 - d2) / self.BEST, 2 * (d2 - d3) / self.BEST, (d3 - d4) / self.BEST]
        # The first pair stands the wrong way round.
        rho = [1 / (1 + math.exp(-0.5)), 1 / (1 + math.exp(1.5)), 1 / (1 + math.exp(0.5))]
        a, b, c = (change * share for change, share in zip(changes, rho, strict=True))
        lam, weight = self.lambdas(LocalCost("NDCG"))
        assert_equal(lam, [-a, a + b, -b + c, -c])
        slopes = [x * (1 - share) for x, share in zip((a, b, c), rho, strict=True)]
        assert_equal(weight, [slopes[0], slopes[0] + slopes[1], slopes[1] + slopes[2], slopes[2]])

    @pytest.mark.kernel
    @pytest.mark.parametrize("margin", [1.0, 0.25])
    def test_local_gradient(self, margin):
        d1, d2, d3, d4 = self.D
        # What the measure falls by if a document goes down one rank, over distance and margin.
        a = -3 * (d1 - d2) / self.BEST / (0.5 + margin)
        b = 2 * (d2 - d3) / self.BEST / (1.5 + margin)
        c = (d3 - d4) / self.BEST / (0.5 + margin)
        lam, weight = self.lambdas(LocalGradient("NDCG", margin=margin))
        assert_equal(lam, [a, (-a + b) / 2, (-b + c) / 2, -c])
        assert (weight == 1.0).all()

    @pytest.mark.kernel
    def test_spring_smooth(self):
        """3 (d1 - d2) = 1.107; all other changes of DCG are below 1."""
        d1, d2, _, _ = self.D
        pairs = {(1, 0): 3 * (d1 - d2), (2, 0): 1.0, (1, 2): 1.0, (1, 3): 1.0, (2, 3): 1.0}
        lam = [0.0] * 4
        for (i, j), change in pairs.items():
            push = change / self.BEST / (1 + math.exp(self.SCORES[i] - self.SCORES[j]))
            lam[i] += push
            lam[j] -= push
        assert_equal(self.lambdas(SpringSmooth("NDCG"))[0], lam)

    @pytest.mark.kernel
    def test_discrete_bounded(self):
        """The ideal order is 1, 2, 0, 3, as equal documents keep theirs."""
        _, d2, d3, _ = self.D
        # Document 0 goes down to rank 3: 1 and 2 move up, which brings 3 (d1 - d2) + d2 - d3 > 1.
        # Document 1 goes up to rank 1: 3 (d1 - d2) = 1.107 > 1.
        # Document 2 goes up to rank 2, and 1 down to rank 3: 1 (d2 - d3) - 3 (d2 - d3) = -0.26.
        lam, weight = self.lambdas(DiscreteBounded("NDCG"))
        assert_equal(lam, [-1.0, 1.0, 2 * (d2 - d3), 0.0])
        assert (weight == 1.0).all()

    @pytest.mark.kernel
    def test_discrete_bounded_for_the_reciprocal_rank(self):
        """Ranks 2 and 3 are relevant. Document 0 leaves rank 1, or document 1 comes there: 1/2.
        Document 2 comes to rank 2, where one was."""
        lam, _ = self.lambdas(DiscreteBounded("MRR"))
        assert_equal(lam, [-0.5, 0.5, 0.0, 0.0])

    @pytest.mark.kernel
    def test_a_document_without_a_label_is_passed_over(self):
        """Ranks 1 and 3 are neighbours: P@2 changes by 1/2 if they swap, P@1 by 1."""
        labels, scores = [0, math.nan, 1], [2.0, 1.0, 0.0]
        rho = 1 / (1 + math.exp(-2))
        for measure, change in (("P@2", 0.5), ("P@1", 1.0)):
            lam, _ = computed(LocalCost(measure), scores, labels, [3])
            assert_equal(lam, [-change * rho, 0.0, change * rho])
            lam, weight = computed(LocalGradient(measure, margin=2), scores, labels, [3])
            assert_equal(lam, [-change / 4, 0.0, change / 4])
            assert weight.tolist() == [1.0, 0.0, 1.0]
            lam, weight = computed(DiscreteBounded(measure), scores, labels, [3])
            assert lam.tolist() == [-1.0, 0.0, 1.0]
            assert weight.tolist() == [1.0, 0.0, 1.0]


@pytest.mark.kernel
@pytest.mark.parametrize("measure", ["ERR", "ERR@2", "pFound", "MRR"])
def test_springs_of_what_changes_by_less_than_1_are_ranknet(measure):
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 2 if measure == "MRR" else 5, size=60)
    scores = rng.normal(size=60)
    ours = computed(SpringSmooth(measure), scores, labels, [20, 40])
    assert_equal(ours, computed(RankNet(), scores, labels, [20, 40]))


@pytest.mark.kernel
@pytest.mark.parametrize("objective", OBJECTIVES[::7], ids=str)
def test_one_document_equal_labels_or_no_label_give_zeros(objective):
    labels = [3, 2, 2, 2, math.nan, math.nan, 0, 0, math.nan, 4]
    assert (computed(objective, range(10), labels, [1, 3, 2, 2, 2]) == 0.0).all()


@pytest.mark.kernel
@pytest.mark.parametrize("n", [5, 100])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_touch_nothing_else(n, bad):
    rng = np.random.default_rng(7)
    scores, labels = rng.normal(size=2 * n), rng.integers(5, size=2 * n)
    for kind in REFERENCES:
        good = computed(kind("NDCG"), scores, labels, [n, n])[:, n:]
        spoilt = np.where(np.arange(2 * n) < n, rng.choice([0.0, bad], size=2 * n), scores)
        with np.errstate(invalid="ignore"):
            ours = computed(kind("NDCG"), spoilt, labels, [n, n])
        assert ours[:, n:].tobytes() == good.tobytes()


@pytest.mark.parametrize("objective", OBJECTIVES[::9], ids=str)
class TestWhatHoldsForAll:
    SIZES = (20, 1, 30, 150)

    def query(self):
        rng = np.random.default_rng(8)
        n = sum(self.SIZES)
        return rng.permutation(n) / n * 5.0, rng.integers(5, size=n).astype(float)

    def test_query_weights_multiply(self, objective):
        scores, labels = self.query()
        weight = np.array([2.0, 1.0, 0.0, 0.5])
        ours = computed(objective, scores, labels, self.SIZES, weight=weight)
        plain = computed(objective, scores, labels, self.SIZES)
        np.testing.assert_allclose(ours, plain * np.repeat(weight, self.SIZES), rtol=1e-14)

    def test_the_order_of_documents_does_not_matter(self, objective):
        scores, labels = self.query()
        there = np.random.default_rng(9).permutation(20)
        there = np.concatenate([there, np.arange(20, len(scores))])
        ours = computed(objective, scores[there], labels[there], self.SIZES, seed=3)
        assert ours.tobytes() == computed(objective, scores, labels, self.SIZES)[:, there].tobytes()

    def test_some_queries(self, objective):
        scores, labels = self.query()
        offsets = np.concatenate([[0], np.cumsum(self.SIZES)])
        prepared = objective.prepare(Targets({None: labels, "clicks": labels / 4}, offsets, TOP))
        wanted = np.array([False, True, True, False])
        out = np.full((2, 1, len(labels)), np.nan)
        prepared.gradients_of(wanted, scores[np.newaxis], 0, out[0], out[1])
        every = computed(objective, scores, labels, self.SIZES)
        assert out[:, 0, 20:51].tobytes() == every[:, 20:51].tobytes()
        assert np.isnan(out[:, 0, :20]).all()

    def test_its_text_is_read_back(self, objective):
        assert parse_objective(str(objective), truncation=30, normalise="none") == objective
        lower = str(objective).lower().replace("pfound", "pFound")
        assert parse_objective(lower, truncation=30, normalise="none") == objective


@pytest.mark.parametrize("measure", ["NDCG", "MAP@10", "MRR"])
@pytest.mark.parametrize("kind", [SpringSmooth, LocalCost])
def test_pairs_sum_to_0(kind, measure):
    rng = np.random.default_rng(10)
    labels = rng.choice([0, 1, 4], size=60)
    labels[:2] = 0, 4
    scores = np.concatenate([[9.0, 8.0], rng.normal(size=58)])
    ours = computed(kind(measure), scores, labels, [60])
    assert abs(ours[0].sum()) < 1e-13
    assert ours[0, 1] > 0.001


class TestTexts:
    def choose(self, text):
        return parse_objective(text, truncation=30, normalise="deviation")

    def test_of_the_usual_construction(self):
        for text in ("Lambdas(ERR)", "ranknetweightpairs( err )", "ERR"):
            assert self.choose(text) == Lambdas("ERR", truncation=30, normalise="deviation")
        assert self.choose("ranknet") == RankNet(truncation=30, normalise="deviation")

    @pytest.mark.parametrize(
        "text",
        [
            "SpringSmooth(NDCG@10)",
            "LocalCost(NDCG(gain=linear)@10)",
            "DiscreteBounded(pFound(top_grade=5, break=0.5)@3[clicks])",
            "LocalGradient(NDCG@10)",
            "LocalGradient(NDCG@10, margin=0.5)",
            "LocalGradient(ERR(empty=skip, top_grade=4), margin=2)",
        ],
    )
    def test_of_the_others(self, text):
        assert str(self.choose(text)) == text

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("SpringSmooth", r"SpringSmooth needs a measure; write SpringSmooth\(NDCG@10\)"),
            ("SpringSmooth()", "SpringSmooth needs a measure; write"),
            ("Lambdas()", r"Lambdas needs a measure; write Lambdas\(NDCG@10\)"),
            ("LocalCost(loss)", r"'LocalCost\(loss\)': .*there is no measure 'loss'; known are"),
            ("LocalCost(NDCG@x)", "'x' is not a depth"),
            ("LocalCost(NDCG, margin=1)", "'margin=1' is not an option of LocalCost; it has none"),
            ("Lambdas(NDCG, margin=1)", "'margin=1' is not an option of Lambdas; it has none"),
            ("LocalGradient(NDCG, m=1)", "'m=1' is not an option.*expected margin=value, once"),
            ("LocalGradient(NDCG, margin=1, margin=2)", "expected margin=value, once"),
            ("LocalGradient(NDCG, margin=0)", "margin must be a finite number, above 0; got 0"),
            ("LocalGradient(NDCG, margin=wide)", "margin must be .* got 'wide'"),
            ("LocalGradient(NDCG, margin)", "margin must be .* got ''"),
            (
                "LocalCost(Judged@3)",
                "LocalCost: Judged@3 counts labels, .* train on another measure",
            ),
            ("Judged", "Lambdas: Judged counts labels, .* such as NDCG@10"),
            ("DiscreteBounded(NDCG@3 > ERR)", "DiscreteBounded: NDCG@3 > ERR has several tiers"),
            ("SpringSmoth(NDCG)", "no measure or objective 'SpringSmoth'; known .*SpringSmooth"),
        ],
    )
    def test_what_is_refused(self, text, message):
        with pytest.raises(UsageError, match=message):
            self.choose(text)


def test_objectives_are_values():
    objective = LocalGradient("ndcg@10", margin=2)
    assert objective == LocalGradient("NDCG@10", margin=2.0)
    assert hash(objective) == hash(replace(objective))
    assert replace(objective, margin=1.0) == LocalGradient("NDCG@10")
    assert SpringSmooth("ERR") == SpringSmooth("err")
    assert SpringSmooth("ERR") != LocalCost("ERR")
    assert replace(LocalCost("ERR"), measure=objective.measure) == LocalCost("NDCG@10")


def test_what_is_refused():
    with pytest.raises(UsageError, match="LocalGradient: margin must be a finite number, above 0"):
        LocalGradient("NDCG", margin=-1)
    with pytest.raises(UsageError, match="LocalCost: 3 is not a measure"):
        LocalCost(3)
    targets = Targets({None: np.array([1.0, 5.0])}, np.array([0, 2]), 4.0)
    for kind in REFERENCES:
        with pytest.raises(DataError, match="document 1 has the label 5, above the top grade"):
            kind("ERR").prepare(targets)
        with pytest.raises(UsageError, match="no label source 'clicks'"):
            kind("NDCG[clicks]").prepare(targets)
