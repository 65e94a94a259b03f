"""The sigmoid cost, and objectives that change by round: by hand and against naive references."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import UsageError
from rankinite.measures import parse_measures
from rankinite.objectives.constructions import LocalCost, SigmoidCost
from rankinite.objectives.kernels.dispatch import mixture_gradients, new_scratch, query_gradients
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas, RankNet
from rankinite.objectives.parse import parse_objective
from rankinite.objectives.pointwise import SquaredError
from rankinite.objectives.tiers import Tiered
from rankinite.objectives.transition import (
    ExponentialGrowth,
    LevellingGrowth,
    LinearGrowth,
    Transition,
    fingerprint,
)
from tests.naive import pairwise as naive_pairwise
from tests.naive import tiers as naive_tiers

# Kernels' tests also run with the JIT off, where they must be small.
SCALE = 10 if numba.config.DISABLE_JIT else 100
JIT = not numba.config.DISABLE_JIT

TOP = 4.0
MEASURES = parse_measures("NDCG, DCG(gain=linear), ERR, pFound, MAP(relevant=2), MRR, P")
OPTIONS = list(product(("none", "deviation", "distance"), (None, 1, 4), (0.0, -1.5, 2.0)))


def computed(objective, scores, labels, sizes, *, round_number=0, weight=None):
    """Return lambdas and weights, one row each."""
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    targets = Targets({None: np.asarray(labels, dtype=float)}, offsets, TOP, query_weight=weight)
    out = np.full((2, 1, len(scores)), np.nan)
    scores = np.asarray(scores, dtype=float)[np.newaxis]
    objective.prepare(targets).gradients(scores, round_number, out[0], out[1])
    return out[:, 0]


def random_query(rng, n):
    """Return scores that differ, and labels with gaps."""
    labels = rng.choice([0.0, 1.0, 2.0, 4.0, np.nan], size=n, p=[0.4, 0.25, 0.15, 0.1, 0.1])
    return rng.permutation(n) * rng.choice([0.05, 0.4, 3.0]) + rng.normal(), labels


def assert_equal(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def expected_sigmoid(objective, scores, labels):
    """Return what the naive reference gives for one query."""
    return naive_tiers.sigmoid_cost(
        objective.measure,
        list(scores),
        list(labels),
        TOP,
        objective.mu,
        truncation=objective.truncation,
        normalise=objective.normalise,
    )


class TestSigmoidCost:
    @pytest.mark.kernel
    @pytest.mark.parametrize("measure", MEASURES, ids=str)
    def test_lambdas_are_those_of_real_swaps(self, measure):
        rng = np.random.default_rng(1)
        for (normalise, truncation, mu), depth in product(OPTIONS, (None, 3)):
            objective = SigmoidCost(replace(measure, depth=depth), mu=mu).with_options(
                truncation=truncation, normalise=normalise
            )
            for n in rng.integers(1, 14, size=max(1, SCALE // 50)):
                scores, labels = random_query(rng, n)
                lam, weight = computed(objective, scores, labels, [n])
                assert_equal(lam, expected_sigmoid(objective, scores, labels))
                assert not weight.any()

    @pytest.mark.kernel
    @settings(deadline=None, max_examples=10 + 4 * SCALE)
    @given(
        documents=st.lists(
            st.tuples(st.sampled_from([0.0, 1.0, 3.0, math.nan]), st.floats(-700.0, 700.0)),
            min_size=1,
            max_size=10,
            unique_by=lambda document: document[1],
        ),
        measure=st.sampled_from(MEASURES),
        mu=st.floats(-100.0, 100.0),
    )
    def test_of_any_query(self, documents, measure, mu):
        labels, scores = zip(*documents, strict=True)
        objective = SigmoidCost(measure, mu=mu)
        lam, _ = computed(objective, scores, labels, [len(scores)])
        np.testing.assert_allclose(
            lam, expected_sigmoid(objective, scores, labels), rtol=1e-7, atol=1e-12
        )

    @pytest.mark.kernel
    def test_larger_queries_near_and_far(self):
        rng = np.random.default_rng(9)
        for n in (31, 140) if JIT else (31,):
            scores, labels = random_query(rng, n)
            for spread in (1.0, 1e3):
                objective = SigmoidCost("NDCG", mu=0.3)
                lam, _ = computed(objective, scores * spread, labels, [n])
                assert_equal(lam, expected_sigmoid(objective, scores * spread, labels))

    @pytest.mark.kernel
    @pytest.mark.parametrize("mu", [-2.0, 0.0, 0.75])
    def test_the_better_document_is_pushed_up_and_most_at_minus_mu(self, mu):
        """Objectives, Eq. 14: the peak is 1/4, where the better one's score is less by mu."""
        change = 1.0 - 1.0 / math.log2(3.0)  # of two documents, one relevant: a swap in NDCG
        pushes = {}
        for difference in (-mu + step for step in (-3.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0)):
            if difference == 0.0:
                continue  # a tie: there the order is drawn
            lam, _ = computed(SigmoidCost("NDCG", mu=mu), [difference, 0.0], [1.0, 0.0], [2])
            assert lam[0] == -lam[1] > 0.0
            pushes[difference] = lam[0]
            x = math.exp(difference + mu)
            assert_equal(lam[0], change * x / (1.0 + x) ** 2)
        if mu:
            assert max(pushes, key=pushes.get) == -mu
            assert pushes[-mu] == pytest.approx(change / 4.0, rel=1e-12)
        assert pushes[-mu - 3.0] < pushes[-mu - 1.0] < pushes[-mu - 0.1]
        assert pushes[-mu + 3.0] < pushes[-mu + 1.0] < pushes[-mu + 0.1]

    @pytest.mark.kernel
    def test_lambda_is_the_slope_of_the_cost(self):
        """Eq. 13, with ranks held: a numerical derivative of the sum over pairs."""
        scores, labels, mu = [0.3, -0.2, 0.9, 0.1], [2.0, 0.0, 1.0, 4.0], 0.4
        pairs = list(naive_pairwise.pairs(MEASURES[0], labels, TOP, [2, 0, 3, 1]))

        def cost(at):
            return sum(change / (1.0 + math.exp(at[i] - at[j] + mu)) for i, j, change in pairs)

        lam, _ = computed(SigmoidCost("NDCG", mu=mu), scores, labels, [4])
        for k in range(4):
            up, down = ([s + h * (i == k) for i, s in enumerate(scores)] for h in (1e-5, -1e-5))
            assert lam[k] == pytest.approx(-(cost(up) - cost(down)) / 2e-5, rel=1e-6)

    def test_the_papers_example_at_3(self):
        """Sec. 5.2: both swaps are worth 21.6 / N with the natural log, 15 with log2."""
        labels = np.zeros(50)
        labels[[3, 49]] = 4.0
        scores = -np.arange(50) * 0.01
        nearer = SigmoidCost("DCG@3")
        lam, _ = computed(nearer, scores, labels, [50])
        push = [15.0 * naive_tiers.slope(scores[k] - scores[0], 0.0) for k in (3, 49)]
        push_all = [
            sum(
                15.0 / math.log2(2 + r) * naive_tiers.slope(scores[k] - scores[r], 0.0)
                for r in range(3)
            )
            for k in (3, 49)
        ]
        assert push[0] > push[1]
        assert_equal(lam[[3, 49]], push_all)

    @pytest.mark.kernel
    def test_a_plan_gives_the_bits_of_gradients(self):
        rng = np.random.default_rng(5)
        sizes = [20, 1, 2, 31]
        scores, labels = random_query(rng, sum(sizes))
        for normalise in ("none", "deviation", "distance"):
            objective = SigmoidCost("ERR", mu=0.5).with_options(truncation=3, normalise=normalise)
            targets = Targets({None: labels}, np.concatenate([[0], np.cumsum(sizes)]), TOP)
            prepared = objective.prepare(targets)
            out = np.full((2, len(scores)), np.nan)
            for q in reversed(range(len(sizes))):
                query_gradients(q, scores, prepared.arrays, new_scratch(31), out[0], out[1])
            assert out.tobytes() == computed(objective, scores, labels, sizes).tobytes()


class TestSchedules:
    def test_linear(self):
        schedule = LinearGrowth(start=0.25, eta=0.125)
        assert [schedule(m) for m in (1, 2, 6, 7, 100)] == [0.375, 0.5, 1.0, 1.0, 1.0]

    def test_exponential_as_printed(self):
        schedule, weight = ExponentialGrowth(start=0.1, eta=100.0), 0.1
        for m in range(1, 60):
            weight = min(1.0, weight + math.exp(-100.0 / m))
            assert schedule(m) == pytest.approx(weight, rel=1e-12)
        from_0 = ExponentialGrowth(start=0.0, eta=100.0)
        assert from_0(41) < 1.0 == from_0(42)

    def test_levelling(self):
        schedule = LevellingGrowth(start=0.1, eta=250.0)
        assert [schedule(m) for m in (1, 250, 10**6)] == pytest.approx(
            [0.1, 0.1 + math.exp(-1.0), 1.0], abs=1e-12
        )

    @pytest.mark.parametrize("kind", [LinearGrowth, ExponentialGrowth, LevellingGrowth])
    def test_without_growth(self, kind):
        assert LinearGrowth(0.0, 0.0)(1000) == 0.0
        assert kind(1.0, 5.0)(3) == 1.0
        text = f"Transition(NDCG, SigmoidCost(NDCG), {kind(0.25, 100.0)})"
        chosen = parse_objective(text, truncation=None, normalise="none")
        assert str(chosen) == text
        assert chosen.schedule == kind(0.25, 100.0)

    @pytest.mark.parametrize(
        ("start", "eta", "message"),
        [
            (1.5, 1.0, "LinearGrowth: start must be .* at most 1; got 1.5"),
            (-0.1, 1.0, "start must be a finite number, at least 0"),
            (0.1, -1.0, "eta must be a finite number, at least 0; got -1"),
        ],
    )
    def test_what_is_refused(self, start, eta, message):
        with pytest.raises(UsageError, match=message):
            LinearGrowth(start, eta)


class TestTransition:
    @pytest.mark.kernel
    @pytest.mark.parametrize("normalise", ["none", "deviation", "distance"])
    def test_lambdas_are_weighted_sums(self, normalise):
        rng = np.random.default_rng(6)
        first, last = MEASURES[0], replace(MEASURES[0], depth=3)
        objective = Transition(
            first, SigmoidCost(last, mu=0.2), LinearGrowth(0.1, 0.2)
        ).with_options(truncation=6, normalise=normalise)
        of_parts = normalise if normalise == "distance" else "none"
        for round_number, n in product(range(5), (1, 2, 12)):
            scores, labels = random_query(rng, n)
            options = {"truncation": 6, "normalise": of_parts}
            lambdas = naive_pairwise.lambdas(first, list(scores), list(labels), TOP, **options)
            pushed = naive_tiers.sigmoid_cost(last, list(scores), list(labels), TOP, 0.2, **options)
            share = min(1.0, 0.1 + 0.2 * (round_number + 1))
            theirs, _ = naive_tiers.together(
                [lambdas, (pushed, [0.0] * n)], [1.0 - share, share], normalise
            )
            lam, _ = computed(objective, scores, labels, [n], round_number=round_number)
            assert_equal(lam, theirs)

    @pytest.mark.kernel
    @pytest.mark.parametrize("normalise", ["none", "deviation", "distance"])
    def test_one_alone_gives_its_own_bits(self, normalise):
        rng = np.random.default_rng(8)
        sizes = [25, 1, 14]
        scores, labels = random_query(rng, 40)
        weight = np.array([2.0, 1.0, 0.5])
        options = {"truncation": 5, "normalise": normalise}
        alone = {
            0.0: Lambdas("NDCG", **options),
            1.0: SigmoidCost("NDCG@3").with_options(**options),
        }
        for share, objective in alone.items():
            for schedule in (share, LinearGrowth(share, 0.0), lambda _m, w=share: w):
                changing = Transition("NDCG", "SigmoidCost(NDCG@3)", schedule).with_options(
                    **options
                )
                ours = computed(changing, scores, labels, sizes, round_number=7, weight=weight)
                plain = computed(objective, scores, labels, sizes, weight=weight)
                assert ours.tobytes() == plain.tobytes()

    @pytest.mark.kernel
    def test_a_blend_gives_the_bits_of_gradients(self):
        rng = np.random.default_rng(2)
        sizes = [20, 1, 2, 31]
        scores, labels = random_query(rng, sum(sizes))
        targets = Targets({None: labels}, np.concatenate([[0], np.cumsum(sizes)]), TOP)
        objective = Transition("NDCG", SigmoidCost("NDCG"), LinearGrowth(0.0, 0.5)).with_options(
            truncation=None, normalise="deviation"
        )
        prepared = objective.prepare(targets)
        for round_number in (0, 1, 2):
            whole = computed(objective, scores, labels, sizes, round_number=round_number)
            out, spare = np.full((2, len(scores)), np.nan), np.full((2, len(scores)), np.nan)
            for q in range(len(sizes)):
                mixture = prepared.mixture(round_number)
                mixture_gradients(q, scores, mixture, new_scratch(31), spare, out[0], out[1])
            assert out.tobytes() == whole.tobytes()

    @pytest.mark.parametrize("texts", [("LocalCost(NDCG)", "NDCG"), ("NDCG", "LocalCost(NDCG)")])
    def test_normalisation_does_not_jump_where_one_is_alone(self, texts):
        rng = np.random.default_rng(3)
        scores, labels = random_query(rng, 12)
        for weight in (0.0, 0.001, 0.5, 0.999, 1.0):
            objective = Transition(*texts, weight).with_options(
                truncation=None, normalise="deviation"
            )
            assert computed(objective, scores, labels, [12])[0].std() == pytest.approx(1.0)
        for normalise in ("none", "deviation"):
            part = Lambdas("NDCG", normalise=normalise)
            with_option = Transition(part, "ERR", 0.5).with_options(
                truncation=None, normalise="none"
            )
            plain = Transition("NDCG", "ERR", 0.5)
            assert_equal(
                computed(with_option, scores, labels, [12]), computed(plain, scores, labels, [12])
            )

    @pytest.mark.parametrize("text", ["NDCG", "SigmoidCost(NDCG)", "Transition(NDCG, ERR, 0.5)"])
    def test_deviations_of_next_to_nothing_are_nothing(self, text):
        for far in (371.5, 400.0, 600.0, 720.0):
            for scores in ([0.0, far], [far, 0.0]):
                objective = parse_objective(text, truncation=None, normalise="deviation")
                ours = computed(objective, scores, [1.0, 0.0], [2])
                assert np.isfinite(ours).all()

    def test_iterations_count_from_1(self):
        asked = []
        objective = Transition("NDCG", "ERR", lambda m: asked.append(m) or 0.5)
        computed(objective, [1.0, 2.0], [1.0, 0.0], [2], round_number=0)
        assert set(asked) == {1}

    def test_its_measure_is_the_first(self):
        assert str(Transition("NDCG@5", SigmoidCost("NDCG@3"), 0.5).measure) == "NDCG@5"
        assert Transition("NDCG", LocalCost("NDCG@3"), 0.5).no_newton == ""
        assert "second derivative" in Transition("NDCG", SigmoidCost("NDCG"), 0.5).no_newton

    @pytest.mark.parametrize(
        "text",
        [
            "Transition(NDCG, SigmoidCost(NDCG@3, mu=0.5), linear(start=0.1, eta=0.01))",
            "Transition(RankNet, LocalCost(NDCG(gain=linear, empty=0)), 0.25)",
            "Transition(ERR, NDCG@3, levelling(start=0, eta=100))",
        ],
    )
    def test_texts_are_read_back(self, text):
        chosen = parse_objective(text, truncation=30, normalise="deviation")
        assert str(chosen) == text
        assert (chosen.truncation, chosen.normalise) == (30, "deviation")

    def test_a_function_shows_its_name(self):
        def slowly(m):
            return m / (m + 100)

        shown = str(Transition("NDCG", "ERR", slowly))
        assert shown.endswith("slowly)")
        assert "0x" not in shown

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("Transition(NDCG, ERR)", "needs two objectives and a schedule; write Transition"),
            ("Transition", "needs two objectives and a schedule"),
            ("Transition(NDCG, ERR, 1.5)", r"schedule must be a weight in \[0, 1\].* got 1.5"),
            ("Transition(NDCG, ERR, soon)", r"one of linear, exponential, levelling.*got 'soon'"),
            ("Transition(NDCG, ERR, linear(start=0.1))", "needs both; write linear"),
            ("Transition(NDCG, ERR, linear())", "needs both; write linear"),
            ("Transition(NDCG > ERR, NDCG, 0.5)", "is not a single lambda gradient"),
            ("Transition(NDCG, ERR, linear(begin=1))", "'begin=1' is not an option of linear"),
            ("Transition(NDCG, ERRR, 0.5)", "no measure 'ERRR'"),
            ("Transition(NDCG, SigmoidCost(), 0.5)", "SigmoidCost needs a measure"),
            ("SigmoidCost(NDCG, mu=far)", "SigmoidCost: mu must be .* got 'far'"),
            ("SigmoidCost(NDCG, mu=1000)", "at most 100; got 1000"),
            ("SigmoidCost(NDCG > ERR)", "several tiers"),
        ],
    )
    def test_what_is_refused(self, text, message):
        with pytest.raises(UsageError, match=message):
            parse_objective(text, truncation=None, normalise="none")

    def test_parts_are_single_lambda_gradients(self):
        targets = Targets({None: np.array([1.0, 0.0])}, np.array([0, 2]), TOP)
        with pytest.raises(
            UsageError, match=r"the last objective, .* is not a single lambda gradient"
        ):
            Transition(RankNet(), SquaredError(), 0.5).prepare(targets)
        for tiers in ("NDCG > CNDCG[clicks]", Tiered("NDCG > CNDCG[clicks]")):
            with pytest.raises(UsageError, match=r"the first objective, Tiered\(NDCG > CNDCG"):
                Transition(tiers, "NDCG", 0.5)

    def test_a_class_is_no_schedule(self):
        with pytest.raises(UsageError, match="one of linear, exponential, levelling with start"):
            Transition("NDCG", "ERR", LinearGrowth)

    def test_a_function_is_known_by_its_weights(self):
        assert fingerprint(0.5) == fingerprint(LinearGrowth(0.1, 0.1)) == ()
        weights, same, other = (
            fingerprint(schedule)[0]
            for schedule in (lambda m: m / 2000, lambda m: m / 2000.0, lambda m: 1 / m)
        )
        assert np.array_equal(weights, same)
        assert not np.array_equal(weights, other)
        few = fingerprint([0.0, 0.1, 0.2].__getitem__)[0]  # which knows rounds 1 and 2 only
        assert few[:2].tolist() == [0.1, 0.2]
        assert np.isnan(few[2:]).all()

    @pytest.mark.parametrize("bad", [1.5, -0.1, math.nan, "much"])
    def test_a_function_must_give_weights(self, bad):
        objective = Transition("NDCG", "ERR", lambda _m: bad)
        with pytest.raises(UsageError, match="the schedule gives round 3 the weight"):
            computed(objective, [1.0, 2.0], [1.0, 0.0], [2], round_number=2)
