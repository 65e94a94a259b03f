"""Every lambda gradient against its naive reference, which really swaps two documents."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import chain, permutations, product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.elementary import exponentials
from rankinite.measures import ERR, MAP, NDCG, Measure, parse_measures
from rankinite.objectives.kernels import swaps
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas, RankNet
from tests.naive import measures as naive
from tests.naive import pairwise as naive_pairwise

# Kernels' tests also run with the JIT off, where they must be small.
SCALE = 10 if numba.config.DISABLE_JIT else 100

TOP = 4.0
MEASURES = parse_measures(
    "NDCG, NDCG(gain=linear), DCG, DCG(gain=linear), CNDCG[clicks], ERR, ERR(top_grade=6), pFound, "
    "pFound(break=0), pFound(break=0.5, top_grade=5), MAP, MAP(relevant=2), MRR, MRR(relevant=3), "
    "P, P(relevant=2), NDCG[clicks], MAP(relevant=0.3)[clicks], NDCG(gain=[0,1,1,4,9.5]), Recall, "
    "Recall(relevant=2), Hit, Hit(relevant=3), RBP, RBP(p=0.5, relevant=2)"
)
DEPTHS = (None, 1, 3, 10)
NORMALISE = ("none", "deviation", "distance")
TRUNCATIONS = (None, 1, 2, 7)


def objectives(measure: Measure | None):
    """Go through all options for a measure, or for RankNet."""
    for depth, normalise, truncation in product(DEPTHS, NORMALISE, TRUNCATIONS):
        if measure is None:
            if depth is None:
                yield RankNet(normalise=normalise, truncation=truncation)
            continue
        deep = replace(measure, depth=depth)
        yield Lambdas(deep, normalise=normalise, truncation=truncation)
        if measure.name == "MRR":
            yield Lambdas(deep, normalise=normalise, truncation=truncation, gain_only=True)


OBJECTIVES = [objective for measure in [*MEASURES, None] for objective in objectives(measure)]


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
    measure = getattr(objective, "measure", None)
    if measure is not None and measure.source == "clicks":
        labels = [label / TOP for label in labels]
    return naive_pairwise.lambdas(
        measure,
        scores,
        labels,
        TOP,
        ranking=ranking,
        truncation=objective.truncation,
        normalise=objective.normalise,
        gain_only=getattr(objective, "gain_only", False),
    )


def assert_equal(ours, theirs) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def random_query(rng, n):
    """Make a query of different scores; some labels are missing, some queries have one grade."""
    grades = rng.choice(5, size=n, p=[0.4, 0.2, 0.2, 0.1, 0.1]).astype(float)
    if rng.random() < 0.2:
        grades[:] = grades[0]
    if rng.random() < 0.3:
        grades[rng.random(n) < 0.3] = np.nan
    spread = rng.choice([0.1, 1.0, 10.0])
    return (spread * (rng.permutation(n) + rng.random(n) / 2)).tolist(), grades.tolist()


@pytest.mark.kernel
def test_lambdas_are_those_of_real_swaps():
    rng = np.random.default_rng(1)
    for objective in OBJECTIVES[:: 1 if SCALE == 100 else 5]:
        sizes = rng.integers(1, 11, size=SCALE // 10)
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
)
def test_lambdas_are_those_of_real_swaps_of_any_query(documents, objective):
    scores, labels = (list(part) for part in zip(*documents, strict=True))
    if objective.normalise == "deviation":  # which makes of rounding errors what it likes
        objective = replace(objective, normalise="none")
    assert_equal(
        computed(objective, scores, labels, [len(scores)]), expected(objective, scores, labels)
    )


@pytest.mark.kernel
@pytest.mark.parametrize("measure", [*MEASURES, None], ids=str)
def test_larger_queries(measure):
    """Every remainder of `LANES`; for a few measures, more than `USUAL_WIDTH` documents."""
    rng = np.random.default_rng(2)
    sizes = [23, 24, 25, 26] + [swaps.USUAL_WIDTH + 1] * (measure in (None, NDCG(), MAP()))
    queries = [random_query(rng, n) for n in sizes]
    scores, labels = (list(chain(*part)) for part in zip(*queries, strict=True))
    objective = next(objectives(measure))
    ours = computed(objective, scores, labels, sizes)
    assert_equal(ours, np.hstack([np.array(expected(objective, *query)) for query in queries]))


@pytest.mark.kernel
@pytest.mark.parametrize("objective", [o for m in [*MEASURES, None] for o in [*objectives(m)][:9]])
@pytest.mark.parametrize("scores", [[0.0, 1.0, -0.0, 0.0, 2.0], [7.0] * 4], ids=["some", "all"])
def test_ties_stand_in_one_of_their_orders(objective, scores):
    rng = np.random.default_rng(3)
    labels = rng.permutation([0.0, 1.0, 3.0, 4.0, 2.0][: len(scores)]).tolist()
    tied = [i for i, score in enumerate(scores) if score == min(scores)]
    above = [i for i in naive.sort_descending(scores) if i not in tied]
    rankings = [[*above, *order] for order in permutations(tied)]
    possible = [expected(objective, scores, labels, ranking) for ranking in rankings]
    ours = computed(objective, scores, labels, [len(scores)])
    assert any(np.allclose(ours, gradients, rtol=1e-10, atol=1e-12) for gradients in possible)


@pytest.mark.kernel
@pytest.mark.parametrize("normalise", ["none", "distance"])
@pytest.mark.parametrize("spread", [0.0, 300.0, 599.0, 601.0, 1e6, 1e300])
@pytest.mark.parametrize("measure", [NDCG(), ERR(), MAP(), None], ids=str)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast")  # without JIT
def test_scores_far_apart(measure, spread, normalise):
    objective = RankNet() if measure is None else Lambdas(measure)
    objective = replace(objective, normalise=normalise)
    for labels in ([0, 4, 1, 0, 2], [4, 0, 1, 2, 1]):
        scores = [spread + 5.0, 1.0, 0.0, 0.5, 0.25]
        assert_equal(computed(objective, scores, labels, [5]), expected(objective, scores, labels))


@pytest.mark.kernel
def test_the_last_pair_of_three_far_apart():
    """1 / (1 + exp(1)) = 0.2689, whatever stands a million above."""
    lam, weight = computed(RankNet(), [1e6, 1.0, 0.0], [1, 1, 0], [3])
    rho = 1.0 / (1.0 + math.e)
    assert_equal(lam, [0.0, rho, -rho])
    assert_equal(weight, [0.0, rho * (1 - rho), rho * (1 - rho)])


@pytest.mark.kernel
def test_a_swap_by_hand():
    """Optimality, Sec. 4.3, and NDCG of two documents: 1 - 1 / log2(3), over 1."""
    lam, weight = computed(Lambdas("NDCG"), [0.0, 0.0], [1, 0], [2])
    change = 1.0 - 1.0 / math.log2(3.0)
    assert_equal(lam, [change / 2, -change / 2])
    assert_equal(weight, [change / 4, change / 4])

    # Relevant at ranks 2 and 4. Up to rank 1 either brings 1 - 1/2; down to rank 3, 1/2 - 1/3.
    scores, labels = [4.0, 3.0, 2.0, 1.0], [0, 1, 0, 1]
    gains = [0.5 / (1 + math.exp(-1)), 0.5 / (1 + math.exp(-3))]
    down = (1 / 2 - 1 / 3) / (1 + math.exp(1))
    lam, _ = computed(Lambdas("MRR"), scores, labels, [4])
    assert_equal(lam, [-sum(gains), gains[0] + down, -down, gains[1]])
    lam, _ = computed(Lambdas("MRR", gain_only=True), scores, labels, [4])
    assert_equal(lam, [-sum(gains), gains[0], 0.0, gains[1]])


@pytest.mark.kernel
@pytest.mark.parametrize("objective", OBJECTIVES[::7], ids=str)
def test_one_document_equal_labels_or_no_label_give_zeros(objective):
    labels = [3, 2, 2, 2, math.nan, math.nan, 0, 0, math.nan, 4]
    ours = computed(objective, range(10), labels, [1, 3, 2, 2, 2])
    assert (ours == 0.0).all()


@pytest.mark.kernel
@pytest.mark.parametrize("measure", [*MEASURES, None], ids=str)
def test_lambda_and_weight_are_derivatives_of_the_pairs_cost(measure):
    """Of the sum of |change| log(1 + exp(s_j - s_i)), the changes being held."""
    rng = np.random.default_rng(5)
    n, step = 7, 1e-4
    objective = next(objectives(measure))
    labels = rng.permutation([0.0, 0.0, 1.0, 1.0, 2.0, 3.0, 4.0]).tolist()
    scores = rng.normal(size=n)
    seen = [y / TOP for y in labels] if measure and measure.source else labels
    ranking = naive.sort_descending(scores.tolist())
    pairs = list(naive_pairwise.pairs(measure, seen, TOP, ranking))

    def cost(doc, by):
        s = scores.copy()
        s[doc] += by
        return math.fsum(change * math.log1p(math.exp(s[j] - s[i])) for i, j, change in pairs)

    lam, weight = computed(objective, scores, labels, [n])
    for doc in range(n):
        down, here, up = cost(doc, -step), cost(doc, 0.0), cost(doc, step)
        np.testing.assert_allclose(lam[doc], -(up - down) / (2 * step), rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(
            weight[doc], (up - 2 * here + down) / step**2, rtol=1e-4, atol=1e-6
        )


@pytest.mark.kernel
def test_certain_satisfaction_divides_by_nothing():
    """With a top grade of 60 a document of that grade satisfies for certain, in 53 bits."""
    measure = ERR(top_grade=60)
    scores, labels = [5.0, 4.0, 3.0, 2.0, 1.0], [59, 60, 0, 60, 58]
    ours = computed(Lambdas(measure), scores, labels, [5])
    assert_equal(ours, naive_pairwise.lambdas(measure, scores, labels, TOP))


@pytest.mark.kernel
@settings(deadline=None, max_examples=10 + 2 * SCALE)
@given(
    grades=st.lists(st.integers(0, 4), min_size=2, max_size=8),
    measure=st.sampled_from([m for m in MEASURES if m.name in ("ERR", "pFound")]),
    depth=st.none() | st.integers(1, 8),
)
def test_a_higher_grade_moved_up_never_costs(grades, measure, depth):
    """Ensemble, Theorem 1: what the kernel takes for the size of a change has its sign."""
    measure = replace(measure, depth=depth)
    n = len(grades)
    r = np.zeros((swaps.N_ROWS, n + swaps.LANES))
    r[swaps.VALUE, :n] = measure.document_values(np.array(grades, dtype=float), TOP)
    swaps.fill_swaps(r, n, int(measure.form), measure.rank_weights(n), 1.0)
    for u in range(n):
        for v in range(u + 1, n):
            fall = r[swaps.UPPER, u] - r[swaps.LOWER, v]
            assert fall >= 0.0
            ours = (r[swaps.VALUE, u] - r[swaps.VALUE, v]) * fall * r[swaps.SCALE, u]
            real = -naive_pairwise.swap(measure, grades, TOP, range(n), u, v)
            assert_equal(ours, real)
            assert real * np.sign(grades[u] - grades[v]) >= -1e-12


@pytest.mark.kernel
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 31, 64, swaps.FEW])
def test_few_documents_are_ordered_stably(n):
    rng = np.random.default_rng(n)
    close = 1.0 + rng.integers(-3, 4, size=n) * 1e-15  # the same when rounded
    for scores in (rng.normal(size=n), rng.integers(3, size=n), np.zeros(n), close, 1e300 * close):
        order, counts = np.full(n, -1), np.empty(n, np.int64)
        rounded, above = np.zeros(swaps.FEW, np.float32), np.empty(swaps.FEW, np.int32)
        with np.errstate(over="ignore"):  # rounded to infinity
            swaps.order_few(scores.astype(float), n, order, counts, rounded, above)
        assert order.tolist() == naive.sort_descending(scores.tolist())


@pytest.mark.kernel
@pytest.mark.parametrize("n", [5, 100])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_touch_nothing_else(n, bad):
    """A model that diverged gives any lambdas, but only to its own query."""
    rng = np.random.default_rng(7)
    scores, labels = rng.normal(size=2 * n), rng.integers(5, size=2 * n)
    for objective in (Lambdas("NDCG"), Lambdas("MRR", normalise="distance"), RankNet()):
        good = computed(objective, scores, labels, [n, n])[:, n:]
        spoilt = np.where(np.arange(2 * n) < n, rng.choice([0.0, bad], size=2 * n), scores)
        with np.errstate(invalid="ignore"):
            ours = computed(objective, spoilt, labels, [n, n])
        assert ours[:, n:].tobytes() == good.tobytes()


@pytest.mark.kernel
def test_exponentials():
    rng = np.random.default_rng(6)
    numbers = np.concatenate([[0.0, -600.0, 600.0, -1e-300], rng.uniform(-600, 600, 20 * SCALE)])
    n = len(numbers)
    spare, out = np.empty(n), np.empty(n)
    exponentials(numbers, 0.5, n, spare, spare.view(np.int64), out)
    np.testing.assert_allclose(out, np.exp(numbers - 0.5), rtol=1e-14)
