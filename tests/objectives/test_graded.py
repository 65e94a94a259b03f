"""Lambdas of tiers against their naive twin, which really swaps documents; and by hand."""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from itertools import chain, pairwise, permutations, product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_graded
import rankinite as rk
from rankinite.core.errors import DataError, UsageError
from rankinite.measures import parse_measure
from rankinite.objectives.choose import choose_objective
from rankinite.objectives.graded import Graded, tied_groups
from rankinite.objectives.lambdas import Lambdas
from rankinite.objectives.objective import Blended, GradientsOfSome, Targets
from rankinite.objectives.plan_kernels import blend_lambdas, new_scratch

# Kernels' tests also run with the JIT off, where they must be small.
SCALE = 10 if numba.config.DISABLE_JIT else 100
JIT = not numba.config.DISABLE_JIT

TOP = 4.0
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


def random_query(rng, n):
    """Return labels of three sources with gaps, and scores that differ."""
    grades = rng.choice([0.0, 1.0, 2.0, 4.0, np.nan], size=n, p=[0.35, 0.25, 0.2, 0.1, 0.1])
    clicks = rng.choice([0.0, 0.25, 0.5, 1.0, np.nan], size=n, p=[0.2, 0.2, 0.25, 0.2, 0.15])
    fresh = rng.choice([0.0, 1.0, np.nan], size=n, p=[0.45, 0.45, 0.1])
    scores = rng.permutation(n) * rng.choice([0.1, 1.0, 3.0]) + rng.normal()
    return {None: grades, "clicks": clicks, "fresh": fresh}, scores


def computed(objective, labels, scores, sizes, *, weight=None, seed=0, iteration=0):
    """Return lambdas and weights, one row each."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    targets = Targets(labels, offsets, TOP, query_weight=weight, seed=seed)
    out = np.full((2, 1, len(scores)), np.nan)
    scores = np.asarray(scores, dtype=float)[np.newaxis]
    objective.prepare(targets).gradients(scores, iteration, out[0], out[1])
    return out[:, 0]


def trained(objective):
    """Return the tiers at the depths of their lambdas: the whole list, but for P."""
    return [
        tier
        if objective.train_depth is None and isinstance(tier, rk.P)
        else replace(tier, depth=objective.train_depth)
        for tier in objective.measure.tiers
    ]


def expected(objective, labels, scores, ranking=None):
    """Return what the naive twin gives for one query."""
    tiers = trained(objective)
    return naive_graded.graded(
        tiers,
        [list(labels[tier.source]) for tier in tiers],
        objective.weights,
        list(scores),
        TOP,
        normalise=objective.normalise,
        truncation=objective.truncation,
        ranking=ranking,
        pairs_of=objective.pairs_of,
    )


def some_objectives(text):
    """Go through options of the lambdas of a graded measure."""
    measure = parse_measure(text)
    pairs_of = ("positive", "labelled", "all")
    for number, (normalise, truncation, depth) in enumerate(OPTIONS):
        weights = WEIGHTS[len(measure.tiers)]
        yield Graded(
            measure,
            weights=weights[number % len(weights)],
            train_depth=depth,
            pairs_of=pairs_of[number // 3 % 3],
        ).adjusted(truncation=truncation, normalise=normalise)


def assert_equal(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.kernel
@pytest.mark.parametrize("text", TEXTS)
def test_lambdas_are_those_of_real_swaps(text):
    rng = np.random.default_rng(7)
    for objective in some_objectives(text):
        for n in rng.integers(1, 14, size=max(1, SCALE // 10)):
            labels, scores = random_query(rng, n)
            found = computed(objective, labels, scores, [n])
            if sum(objective.weights) == 1.0 and len(objective.weights) == 1:
                alone = naive_graded.tier(
                    trained(objective),
                    [list(labels[t.source]) for t in objective.measure.tiers],
                    list(scores), TOP, truncation=objective.truncation,
                    normalise=objective.normalise, pairs_of=objective.pairs_of,
                )  # fmt: skip
                assert_equal(found, alone)
            else:
                assert_equal(found, expected(objective, labels, scores))


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
    objective = Graded(parse_measure(text), weights=0.4, pairs_of="labelled").adjusted(
        truncation=OPTIONS[number][1], normalise=OPTIONS[number][0]
    )
    found = computed(objective, labels, scores, [len(scores)])
    np.testing.assert_allclose(found, expected(objective, labels, scores), rtol=1e-7, atol=1e-10)


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
        objective = Graded(TEXTS[0], weights=0.3).adjusted(truncation=None, normalise=normalise)
        found = computed(objective, labels, scores, sizes, weight=weight)
        parts = [expected(objective, *query) for query in queries]
        rows = [
            list(
                chain(*([w * x for x in part[row]] for w, part in zip(weight, parts, strict=True)))
            )
            for row in (0, 1)
        ]
        assert_equal(found, rows)


@pytest.mark.kernel
def test_a_tier_by_hand():
    """Figure 1: two relevant documents with a bad one between them, the lower clicked more."""
    labels = {None: np.array([3.0, 0.0, 3.0]), "clicks": np.array([0.25, 0.75, 0.5])}
    scores = [2.0, 1.0, 0.0]
    objective = Graded("NDCG > CNDCG[clicks]", weights=0.5)
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
    lam, _ = computed(Graded("NDCG > CNDCG[clicks]", weights=1.0), labels, [4, 3, 2, 1], [4])
    assert_equal(lam, change / (1 + math.exp(1 - 4)) * np.array([-1, 0, 0, 1]))
    counts = {
        pairs_of: np.count_nonzero(
            computed(
                Graded("NDCG > CNDCG[clicks]", weights=1.0, pairs_of=pairs_of),
                labels, [4, 3, 2, 1], [4],
            )[0]
        )
        for pairs_of in ("positive", "labelled", "all")
    }  # fmt: skip
    assert counts == {"positive": 2, "labelled": 3, "all": 4}


@pytest.mark.kernel
def test_documents_without_a_judgement_are_tied_with_each_other_only():
    labels = {None: np.array([1.0, np.nan, np.nan]), "clicks": np.array([1.0, 0.5, 0.25])}
    lam, _ = computed(Graded("NDCG > CNDCG[clicks]", weights=1.0), labels, [1, 2, 3], [3])
    assert lam[0] == 0.0
    assert lam[1] == -lam[2] > 0.0
    first, _ = computed(Graded("NDCG > CNDCG[clicks]", weights=0.0), labels, [1, 2, 3], [3])
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
        graded = Graded(text, weights=0.0).adjusted(**options)
        assert computed(graded, labels, scores, sizes).tobytes() == plain.tobytes()


@pytest.mark.kernel
def test_a_train_depth_is_that_of_every_tier():
    rng = np.random.default_rng(5)
    labels, scores = random_query(rng, 30)
    whole = Graded("NDCG@3 > CNDCG@3[clicks]")
    at_3 = Graded("NDCG > CNDCG[clicks]", train_depth=3)
    assert not np.array_equal(
        computed(whole, labels, scores, [30]), computed(at_3, labels, scores, [30])
    )
    same = Graded("NDCG@10 > CNDCG@5[clicks]")
    assert np.array_equal(
        computed(whole, labels, scores, [30]), computed(same, labels, scores, [30])
    )


@pytest.mark.kernel
def test_ties_of_scores_have_one_order_in_all_tiers():
    labels = {None: np.array([1.0, 1.0, 0.0, 0.0]), "clicks": np.array([0.5, 1.0, 0.25, 0.5])}
    objective = Graded("NDCG > CNDCG[clicks]", weights=0.3)
    orders = [expected(objective, labels, [2.0] * 4, list(p)) for p in permutations(range(4))]
    for seed in range(4):
        found = computed(objective, labels, [2.0] * 4, [4], seed=seed)
        assert any(np.allclose(found, order, rtol=1e-9) for order in orders)


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
        objective = Graded("NDCG > CNDCG[clicks]", weights=weights).adjusted(
            truncation=None, normalise=normalise
        )
        prepared = objective.prepare(targets)
        assert isinstance(prepared, Blended)
        whole = np.full((2, 1, len(scores)), np.nan)
        prepared.gradients(scores[np.newaxis], 0, whole[0], whole[1])
        out, spare = np.full((2, len(scores)), np.nan), np.full((2, len(scores)), np.nan)
        scratch = new_scratch(max(sizes))
        for q in reversed(range(len(sizes))):
            blend_lambdas(q, scores, prepared.blend(0), scratch, spare, out[0], out[1])
        assert out.tobytes() == whole[:, 0].tobytes()


def test_only_some_queries():
    rng = np.random.default_rng(4)
    labels, scores = random_query(rng, 30)
    targets = Targets(labels, np.array([0, 10, 20, 30]), TOP)
    prepared = Graded("NDCG > CNDCG[clicks]").prepare(targets)
    assert isinstance(prepared, GradientsOfSome)
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
    found = tied_groups(columns, np.array(cuts))
    for begin, end in pairwise(cuts):
        keys = [tuple(str(value) for value in values[k]) for k in range(begin, end)]
        ours = found[begin:end]
        assert set(ours) == set(range(len(set(keys))))
        assert all(
            (ours[a] == ours[b]) == (float(values[begin + a][0]) == float(values[begin + b][0])
            and str(values[begin + a][1]) == str(values[begin + b][1]))
            for a in range(end - begin) for b in range(end - begin)
        )  # fmt: skip


class TestLambdaGradients:
    labels = (np.array([3.0, 0.0, 3.0]), np.array([0.25, 0.75, 0.5]))

    def test_of_several_sources(self):
        y = {"clicks": self.labels[1], None: self.labels[0]}
        text = "Graded(NDCG@3 > CNDCG@3[clicks], weights=0.3)"
        lam, weight = rk.lambda_gradients(text, [2, 1, 0], y, [0, 3], top_grade=4)
        graded = computed(Graded("NDCG > CNDCG[clicks]", weights=0.3), y, [2, 1, 0], [3])
        assert (lam == graded[0]).all()
        assert (weight == graded[1]).all()
        without = rk.lambda_gradients(text, [2, 1, 0], y, [0, 3])[0]
        assert not np.allclose(without, lam)  # the top grade is 3 then, and CNDCG knows it

    def test_of_an_iteration(self):
        changing = "Transition(NDCG, ERR, linear(start=0, eta=0.5))"
        found = [
            rk.lambda_gradients(changing, [2, 1, 0], self.labels[0], [0, 3], iteration=m)[0]
            for m in (0, 1)
        ]
        parts = [
            rk.lambda_gradients(text, [2, 1, 0], self.labels[0], [0, 3])[0]
            for text in ("NDCG", "ERR")
        ]
        assert_equal(found[0], (parts[0] + parts[1]) / 2)
        assert (found[1] == parts[1]).all()

    def test_what_is_refused(self):
        with pytest.raises(UsageError, match="no label source 'clicks'"):
            rk.lambda_gradients("NDCG > CNDCG[clicks]", [2, 1, 0], self.labels[0], [0, 3])
        y = {None: self.labels[0], "clicks": [0.0, 1.0]}
        with pytest.raises(DataError, match=r"y\['clicks'\]: there are 2; expected 3"):
            rk.lambda_gradients("NDCG", [2, 1, 0], y, [0, 3])
        with pytest.raises(DataError, match="there are no labels"):
            rk.lambda_gradients("NDCG", [2, 1, 0], {}, [0, 3])


class TestTexts:
    @pytest.mark.parametrize(
        "text",
        [
            "Graded(NDCG@3 > CNDCG@3[clicks])",
            "Graded(NDCG@3 > CNDCG@3[clicks], weights=0.25)",
            "Graded(NDCG@3 > NDCG@3[fresh] > CNDCG@3[clicks], weights=(0.1, 0.25))",
            "Graded(MAP(relevant=2) > CNDCG[clicks], train_depth=5, pairs_of=all)",
            "Graded(NDCG@3 > CNDCG(empty=0, top_grade=4)[clicks], weights=0)",
        ],
    )
    def test_are_read_back(self, text):
        chosen = choose_objective(text, truncation=30, normalise="deviation")
        assert str(chosen) == text
        assert (chosen.truncation, chosen.normalise) == (30, "deviation")

    def test_tiers_alone_are_enough(self):
        options = {"truncation": 30, "normalise": "none"}
        chosen = choose_objective("ndcg@3 > cndcg@3[clicks]", **options)
        assert chosen == Graded("NDCG@3 > CNDCG@3[clicks]").adjusted(**options)
        assert choose_objective(parse_measure("NDCG@3 > CNDCG@3[clicks]"), **options) == chosen
        assert choose_objective(Graded("NDCG@3 > CNDCG@3[clicks]"), **options) == chosen

    def test_arrays_of_weights(self):
        assert Graded("NDCG > ERR[a]", weights=np.array([0.25])).weights == (0.25,)
        assert repr(Graded("NDCG > ERR[a]", weights=np.float64(0.25))) == (
            "Graded(NDCG > ERR[a], weights=0.25)"
        )

    def test_one_weight_is_shared_out(self):
        assert Graded("NDCG > ERR[a] > ERR[b]", weights=0.5).weights == (0.25, 0.25)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "Graded(NDCG@3)",
                "Graded: NDCG@3 is no measure with tiers; give two measures",
            ),
            ("Graded()", r"Graded needs a measure; write Graded\(NDCG@3 > CNDCG@3\[clicks\]\)"),
            ("Graded(NDCG > CNDCG[c], weights=1.5)", "weights must be .*at most 1; got 1.5"),
            ("Graded(NDCG > CNDCG[c], weights=-1)", "weights must be .*at least 0.* got -1"),
            ("Graded(NDCG > CNDCG[c], weights=much)", "weights must be .* got 'much'"),
            ("Graded(NDCG > CNDCG[c], weights=(0.1, 0.2))", "2 weights, .* and 1 tiers below the"),
            (
                "Graded(NDCG > ERR[a] > ERR[b], weights=(0.6, 0.6))",
                "sum to 1.2; expected 1",
            ),
            ("Graded(P > CNDCG[c])", "P of a whole list is the same in any order; give it a depth"),
            ("Graded(NDCG > CNDCG[c], pairs_of=some)", "pairs_of must be one of 'positive'"),
            ("Graded(NDCG > CNDCG[c], train_depth=0)", "train_depth must be a whole number"),
            ("Graded(NDCG > CNDCG[c], depth=3)", "'depth=3' is not an option of Graded; expected"),
            ("LocalCost(NDCG > CNDCG[c])", r"several tiers; give one measure.*use Graded\(NDCG"),
        ],
    )
    def test_what_is_refused(self, text, message):
        with pytest.raises(UsageError, match=message):
            choose_objective(text, truncation=None, normalise="none")


CLICKED = {None: np.array([1.0, 1.0]), "clicks": np.array([0.5, 1.0])}


class TestBadData:
    def test_a_source_that_is_not_there(self):
        with pytest.raises(UsageError, match=r"no label source 'click'; it has 'clicks'"):
            computed(Graded("NDCG > CNDCG[click]"), CLICKED, [1.0, 0.0], [2])

    def test_rates_above_1(self):
        labels = {**CLICKED, "clicks": np.array([0.5, 3.0])}
        with pytest.raises(DataError, match="document 1 has the label 3, and click rates lie in"):
            computed(Graded("NDCG > CNDCG[clicks]"), labels, [1.0, 0.0], [2])

    def test_a_tier_without_pairs_is_told(self, caplog):
        with caplog.at_level(logging.WARNING, "rankinite"):
            lam, _ = computed(Graded("NDCG@3 > ERR@5"), CLICKED, [1.0, 0.0], [2])
        assert "ERR@5 has nothing to teach: no two positive documents" in caplog.text
        assert "see pairs_of=labelled" in caplog.text
        assert not lam.any()

    def test_a_precision_keeps_its_depth(self):
        labels = {None: np.array([0.0, 1.0, 0.0]), "clicks": np.ones(3)}
        alone = rk.lambda_gradients("P@1", [3.0, 2.0, 1.0], labels[None], [0, 3])[0]
        lam, _ = computed(Graded("P@1 > CNDCG[clicks]", weights=0.0), labels, [3.0, 2.0, 1.0], [3])
        assert lam[1] > 0.0
        assert (lam == alone).all()
