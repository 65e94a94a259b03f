"""Lambdas of tiers against their naive reference, which really swaps documents; and by hand."""

from __future__ import annotations

import math
from itertools import chain, pairwise, permutations, product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankinite as rk
from rankinite.measures import parse_measure
from rankinite.objectives.kernels.dispatch import mixture_gradients, new_scratch
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas
from rankinite.objectives.tiers import Tiered, tied_groups
from tests.naive import tiers as naive_tiers
from tests.objectives.cases import TOP, assert_equal, computed, expected, random_query, trained

# Kernels' tests also run with the JIT off, where they must be small.
SCALE = 10 if numba.config.DISABLE_JIT else 100
JIT = not numba.config.DISABLE_JIT

TEXTS = (
    "NDCG@3 > CNDCG@3[clicks]",
    "ERR > NDCG(gain=linear)[clicks]",
    "MAP(relevant=2) > ERR(top_grade=1)[clicks]",
    "MRR > P(relevant=0.5)@4[clicks]",
    "P@2 > MAP(relevant=0.25)[clicks]",
    "NDCG > P(relevant=0.5)@2[clicks]",
    "DCG > MRR(relevant=0.5)[clicks]",
    "pFound > pFound(top_grade=2)[clicks]",
    "NDCG[fresh] > NDCG > CNDCG[clicks]",
    "MAP(relevant=3) > NDCG[fresh] > CNDCG[clicks]",
)
WEIGHTS = {2: ((0.3,), (1.0,), (0.01,)), 3: ((0.2, 0.3), (0.0, 0.5), (0.5, 0.5))}
OPTIONS = list(product(("none", "deviation", "distance"), (None, 1, 4), (None, 1, 5)))


def some_objectives(text):
    """Go through options of the lambdas of a graded measure."""
    measure = parse_measure(text)
    pairs_of = ("positive", "labelled", "all")
    for number, (normalise, truncation, depth) in enumerate(OPTIONS):
        weights = WEIGHTS[len(measure.tiers)]
        yield Tiered(
            measure,
            weights=weights[number % len(weights)],
            train_depth=depth,
            pairs_of=pairs_of[number // 3 % 3],
        ).with_options(truncation=truncation, normalise=normalise)


@pytest.mark.kernel
@pytest.mark.parametrize("text", TEXTS)
def test_lambdas_are_those_of_real_swaps(text):
    rng = np.random.default_rng(7)
    for objective in some_objectives(text):
        for n in rng.integers(1, 14, size=max(1, SCALE // 33)):
            labels, scores = random_query(rng, n)
            ours = computed(objective, labels, scores, [n])
            if sum(objective.weights) == 1.0 and len(objective.weights) == 1:
                alone = naive_tiers.tier(
                    trained(objective),
                    [list(labels[t.source]) for t in objective.measure.tiers],
                    list(scores), TOP, truncation=objective.truncation,
                    normalise=objective.normalise, pairs_of=objective.pairs_of,
                )  # fmt: skip
                assert_equal(ours, alone)
            else:
                assert_equal(ours, expected(objective, labels, scores))


@pytest.mark.kernel
@settings(deadline=None, max_examples=10 + 4 * SCALE)
@given(
    documents=st.lists(
        st.tuples(
            st.sampled_from([0.0, 1.0, 3.0, math.nan]),
            st.sampled_from([0.0, 0.2, 1.0, math.nan]),
            st.sampled_from([0.0, 2.0, math.nan]),
            st.floats(-30.0, 30.0, allow_subnormal=False),
        ),
        min_size=1,
        max_size=10,
        unique_by=lambda document: document[-1],
    ),
    text=st.sampled_from(TEXTS),
    number=st.integers(0, len(OPTIONS) - 1),
)
def test_lambdas_are_those_of_real_swaps_of_any_query(documents, text, number):
    *columns, scores = zip(*documents, strict=True)
    labels = {name: np.array(c) for name, c in zip((None, "clicks", "fresh"), columns, strict=True)}
    objective = Tiered(parse_measure(text), weights=0.4, pairs_of="labelled").with_options(
        truncation=OPTIONS[number][1], normalise=OPTIONS[number][0]
    )
    ours = computed(objective, labels, scores, [len(scores)])
    np.testing.assert_allclose(ours, expected(objective, labels, scores), rtol=1e-7, atol=1e-10)


@pytest.mark.kernel
def test_larger_queries_far_apart_and_several_at_once():
    rng = np.random.default_rng(3)
    sizes = [40, 1, 3, 30] + ([150] if JIT else [])
    queries = [random_query(rng, n) for n in sizes]
    queries[1][1][:] = 5.0
    queries[3] = (queries[3][0], queries[3][1] * 1e4)
    labels = {
        name: np.concatenate([query[0][name] for query in queries])
        for name in (None, "clicks", "fresh")
    }
    scores = np.concatenate([query[1] for query in queries])
    weight = np.array([1.0, 2.0, 0.5, 3.0, 0.0][: len(sizes)])
    for normalise in ("none", "deviation", "distance"):
        objective = Tiered(TEXTS[0], weights=0.3).with_options(truncation=None, normalise=normalise)
        ours = computed(objective, labels, scores, sizes, weight=weight)
        parts = [expected(objective, *query) for query in queries]
        rows = [
            list(
                chain(*([w * x for x in part[row]] for w, part in zip(weight, parts, strict=True)))
            )
            for row in (0, 1)
        ]
        assert_equal(ours, rows)


@pytest.mark.kernel
def test_a_tier_by_hand():
    """Figure 1: two relevant documents with a bad one between them, the lower clicked more."""
    labels = {None: np.array([3.0, 0.0, 3.0]), "clicks": np.array([0.25, 0.75, 0.5])}
    scores = [2.0, 1.0, 0.0]
    objective = Tiered("NDCG > CNDCG[clicks]", weights=0.5)
    lam, weight = computed(objective, labels, scores, [3])
    # Gains of clicks are 1, 7 and 3, discounts 1, 1 / log2(3) and 1 / 2.
    best = 7 + 3 / math.log2(3) + 1 / 2
    change = (3 - 1) * (1 - 1 / 2) / best
    rho = 1 / (1 + math.exp(0.0 - 2.0))
    first = rk.lambda_gradients("NDCG", scores, labels[None], [0, 3], top_grade=4)
    assert_equal(lam, 0.5 * first[0] + 0.5 * change * rho * np.array([-1.0, 0.0, 1.0]))
    slope = change * rho * (1 - rho)
    assert_equal(weight, 0.5 * first[1] + 0.5 * slope * np.array([1.0, 0.0, 1.0]))


@pytest.mark.kernel
def test_who_makes_pairs_keeps_the_rank_of_others():
    """Between two clicked documents stand one without clicks and one that nobody saw."""
    labels = {None: np.ones(4), "clicks": np.array([0.25, 0.0, np.nan, 0.5])}
    best = 3 + 1 / math.log2(3)
    change = (3 - 1) * (1 - 1 / math.log2(5)) / best
    lam, _ = computed(Tiered("NDCG > CNDCG[clicks]", weights=1.0), labels, [4, 3, 2, 1], [4])
    assert_equal(lam, change / (1 + math.exp(1 - 4)) * np.array([-1, 0, 0, 1]))
    counts = {
        pairs_of: np.count_nonzero(
            computed(
                Tiered("NDCG > CNDCG[clicks]", weights=1.0, pairs_of=pairs_of),
                labels, [4, 3, 2, 1], [4],
            )[0]
        )
        for pairs_of in ("positive", "labelled", "all")
    }  # fmt: skip
    assert counts == {"positive": 2, "labelled": 3, "all": 4}


@pytest.mark.kernel
def test_documents_without_a_judgement_are_tied_with_each_other_only():
    labels = {None: np.array([1.0, np.nan, np.nan]), "clicks": np.array([1.0, 0.5, 0.25])}
    lam, _ = computed(Tiered("NDCG > CNDCG[clicks]", weights=1.0), labels, [1, 2, 3], [3])
    assert lam[0] == 0.0
    assert lam[1] == -lam[2] > 0.0
    first, _ = computed(Tiered("NDCG > CNDCG[clicks]", weights=0.0), labels, [1, 2, 3], [3])
    assert not first.any()


@pytest.mark.kernel
@pytest.mark.parametrize("normalise", ["none", "deviation", "distance"])
def test_without_weight_a_tier_changes_no_bit(normalise):
    rng = np.random.default_rng(11)
    labels, scores = random_query(rng, 60)
    sizes = [20, 39, 1]
    options = {"truncation": 5, "normalise": normalise}
    plain = computed(Lambdas("NDCG", **options), labels, scores, sizes)
    for text in ("NDCG@3 > CNDCG@3[clicks]", "NDCG@3 > NDCG[fresh] > CNDCG@3[clicks]"):
        graded = Tiered(text, weights=0.0).with_options(**options)
        assert computed(graded, labels, scores, sizes).tobytes() == plain.tobytes()


@pytest.mark.kernel
def test_a_train_depth_is_that_of_every_tier():
    rng = np.random.default_rng(5)
    labels, scores = random_query(rng, 30)
    whole = Tiered("NDCG@3 > CNDCG@3[clicks]")
    at_3 = Tiered("NDCG > CNDCG[clicks]", train_depth=3)
    assert not np.array_equal(
        computed(whole, labels, scores, [30]), computed(at_3, labels, scores, [30])
    )
    same = Tiered("NDCG@10 > CNDCG@5[clicks]")
    assert np.array_equal(
        computed(whole, labels, scores, [30]), computed(same, labels, scores, [30])
    )


@pytest.mark.kernel
def test_ties_of_scores_have_one_order_in_all_tiers():
    labels = {None: np.array([1.0, 1.0, 0.0, 0.0]), "clicks": np.array([0.5, 1.0, 0.25, 0.5])}
    objective = Tiered("NDCG > CNDCG[clicks]", weights=0.3)
    orders = [expected(objective, labels, [2.0] * 4, list(p)) for p in permutations(range(4))]
    for seed in range(4):
        ours = computed(objective, labels, [2.0] * 4, [4], seed=seed)
        assert any(np.allclose(ours, order, rtol=1e-9) for order in orders)


@pytest.mark.kernel
@pytest.mark.parametrize("normalise", ["none", "deviation", "distance"])
def test_a_blend_gives_the_bits_of_gradients(normalise):
    rng = np.random.default_rng(2)
    sizes = [20, 1, 2, 31] + ([140] if JIT else [])
    labels, scores = random_query(rng, sum(sizes))
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    weight = rng.choice([0.5, 1.0, 3.0], size=len(sizes))
    targets = Targets(labels, offsets, TOP, query_weight=weight)
    for weights in (0.0, 0.3, 1.0):
        objective = Tiered("NDCG > CNDCG[clicks]", weights=weights).with_options(
            truncation=None, normalise=normalise
        )
        prepared = objective.prepare(targets)
        assert len(prepared.parts) > 1
        whole = np.full((2, 1, len(scores)), np.nan)
        prepared.gradients(scores[np.newaxis], 0, whole[0], whole[1])
        out, spare = np.full((2, len(scores)), np.nan), np.full((2, len(scores)), np.nan)
        scratch = new_scratch(max(sizes))
        for q in reversed(range(len(sizes))):
            mixture_gradients(q, scores, prepared.mixture(0), scratch, spare, out[0], out[1])
        assert out.tobytes() == whole[:, 0].tobytes()


def test_only_some_queries():
    rng = np.random.default_rng(4)
    labels, scores = random_query(rng, 30)
    targets = Targets(labels, np.array([0, 10, 20, 30]), TOP)
    prepared = Tiered("NDCG > CNDCG[clicks]").prepare(targets)
    whole, some = np.zeros((2, 2, 1, 30))
    prepared.gradients(scores[np.newaxis], 0, whole[0], whole[1])
    wanted = np.array([False, True, False])
    prepared.gradients_of(wanted, scores[np.newaxis], 0, some[0], some[1])
    assert (some[:, :, 10:20] == whole[:, :, 10:20]).all()


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 1.0, math.nan])), min_size=1),
    st.integers(1, 5),
)
def test_groups_are_numbered_by_query(values, n_queries):
    columns = [np.array(column, dtype=float) for column in zip(*values, strict=True)]
    cuts = sorted({0, len(values), *(len(values) * q // n_queries for q in range(n_queries))})
    groups = tied_groups(columns, np.array(cuts))
    for begin, end in pairwise(cuts):
        keys = [tuple(str(value) for value in values[k]) for k in range(begin, end)]
        ours = groups[begin:end]
        assert set(ours) == set(range(len(set(keys))))
        assert all(
            (ours[a] == ours[b]) == (float(values[begin + a][0]) == float(values[begin + b][0])
            and str(values[begin + a][1]) == str(values[begin + b][1]))
            for a in range(end - begin) for b in range(end - begin)
        )  # fmt: skip
