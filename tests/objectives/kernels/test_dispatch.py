"""Arrays give a kernel, query by query, the same bits as gradients; which pairs there are."""

from __future__ import annotations

from itertools import chain, product

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import DataError, UsageError
from rankinite.objectives.constructions import (
    DiscreteBounded,
    LocalCost,
    LocalGradient,
    SpringSmooth,
)
from rankinite.objectives.functional import effective_pairs
from rankinite.objectives.kernels.dispatch import new_scratch, query_gradients
from rankinite.objectives.objective import Targets
from rankinite.objectives.pairwise import Lambdas, RankNet
from rankinite.objectives.pointwise import CentredSquaredError, Logistic, MultiClass, SquaredError
from tests.naive import constructions as naive_constructions
from tests.naive import measures as naive

JIT = not numba.config.DISABLE_JIT

MEASURES = ("NDCG", "NDCG@3", "DCG", "ERR@5", "pFound", "MAP", "MAP@10", "MRR", "P@4")
POINTWISE = (SquaredError(), CentredSquaredError(), Logistic())
OBJECTIVES = [
    *(
        Lambdas(measure, truncation=truncation, normalise=normalise)
        for measure, truncation, normalise in product(
            MEASURES, (None, 4), ("none", "deviation", "distance")
        )
    ),
    Lambdas("MRR", gain_only=True),
    RankNet(),
    RankNet(truncation=3, normalise="distance"),
    *(
        kind(measure)
        for kind in (SpringSmooth, LocalCost, LocalGradient, DiscreteBounded)
        for measure in MEASURES
    ),
    LocalGradient("NDCG", margin=0.1),
    *POINTWISE,
]


def some_targets(sizes):
    """Make queries with ties and gaps; and scores, far apart in one query."""
    rng = np.random.default_rng(1)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    labels = rng.choice(5, size=n, p=[0.5, 0.2, 0.15, 0.1, 0.05]).astype(float)
    labels[rng.random(n) < 0.05] = np.nan
    scores = rng.integers(40, size=n) / 7.0
    scores[: sizes[0]] *= 200.0
    weight = rng.choice([0.5, 1.0, 3.0], size=len(sizes))
    return Targets({None: labels}, offsets, 4.0, query_weight=weight), scores


@pytest.mark.kernel
@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_arrays_give_the_bits_of_gradients(objective):
    sizes = [20, 1, 2, 7, 31, *([130, 133, 300] if JIT else [])]
    targets, scores = some_targets(sizes)
    prepared = objective.prepare(targets)
    expected = np.full((2, 1, len(scores)), np.nan)
    prepared.gradients(scores[np.newaxis], 0, expected[0], expected[1])
    out = np.full((2, len(scores)), np.nan)
    scratch = new_scratch(max(sizes))
    for q in reversed(range(len(sizes))):  # what was in the scratch does not matter
        query_gradients(q, scores, prepared.arrays, scratch, out[0], out[1])
    assert out.tobytes() == expected.tobytes()


@pytest.mark.parametrize("objective", OBJECTIVES[::5] + list(POINTWISE), ids=str)
def test_arrays_cannot_be_written(objective):
    fields = objective.prepare(some_targets([5, 6])[0]).arrays
    arrays = [field for field in fields if isinstance(field, np.ndarray)]
    assert len(arrays) == 10
    assert not any(array.flags.writeable for array in arrays)
    assert all(array.flags.c_contiguous for array in arrays)
    assert all(type(field) in (int, float, np.ndarray) for field in fields)


def test_several_outputs_have_no_arrays():
    labels = np.array([0.0, 1.0, 2.0])
    prepared = MultiClass().prepare(Targets({None: labels}, np.array([0, 3]), 2.0))
    assert prepared.mixture(0) is None


PAIRED = [
    *(
        Lambdas(measure, truncation=truncation)
        for measure in (*MEASURES, "ERR", "pFound(break=0)", "MRR@2", "P", "NDCG(gain=linear)@1")
        for truncation in (None, 1, 3)
    ),
    *(Lambdas(measure, gain_only=True) for measure in ("MRR", "MRR@3")),
    Lambdas("NDCG@3", normalise="distance"),
    RankNet(),
    RankNet(truncation=2),
]


def naive_count(objective, scores, labels):
    return naive_constructions.effective_pairs(
        getattr(objective, "measure", None),
        labels,
        4.0,
        naive.sort_descending(scores),
        objective.truncation,
        getattr(objective, "gain_only", False),
    )


@pytest.mark.kernel
def test_effective_pairs_are_those_whose_swap_changes_the_measure():
    rng = np.random.default_rng(2)
    grades = [0.0, 1.0, 2.0, 3.0, 4.0, np.nan]
    for objective in PAIRED:
        sizes = rng.integers(1, 13, size=50 if JIT else 5).tolist()
        queries = [
            (rng.permutation(n).tolist(), rng.choice(grades[: rng.integers(2, 7)], size=n).tolist())
            for n in sizes
        ]
        scores, labels = (list(chain(*part)) for part in zip(*queries, strict=True))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        prepared = objective.prepare(Targets({None: np.array(labels)}, offsets, 4.0))
        expected = sum(naive_count(objective, *query) for query in queries)
        assert effective_pairs(prepared, scores) == expected, objective


@pytest.mark.kernel
@settings(deadline=None, max_examples=200 if JIT else 20)
@given(
    documents=st.lists(
        st.tuples(st.integers(-1000, 1000), st.sampled_from([0.0, 1.0, 4.0, np.nan])),
        min_size=1,
        max_size=9,
        unique_by=lambda document: document[0],
    ),
    objective=st.sampled_from(PAIRED),
)
def test_effective_pairs_of_any_query(documents, objective):
    scores, labels = (list(part) for part in zip(*documents, strict=True))
    prepared = objective.prepare(Targets({None: np.array(labels)}, np.array([0, len(labels)]), 4.0))
    assert effective_pairs(prepared, scores) == naive_count(objective, scores, labels)


class TestEffectivePairsByHand:
    """Seven documents, of which those at ranks 3 and 5 are relevant."""

    LABELS = np.array([0, 0, 1, 0, 1, 0, 0], dtype=float)

    def count(self, objective, **options):
        targets = Targets({None: self.LABELS}, np.array([0, 7]), 1.0, **options)
        return effective_pairs(objective.prepare(targets), -np.arange(7.0))

    @pytest.mark.kernel
    def test_measures(self):
        assert self.count(Lambdas("MAP")) == self.count(RankNet()) == 2 * 5
        # Optimality, Eq. 11: two irrelevant ones above the first relevant, with either relevant.
        assert self.count(Lambdas("MRR", gain_only=True)) == 2 * 2
        # Or the first relevant one goes down to one of three irrelevant ones.
        assert self.count(Lambdas("MRR")) == 2 * 2 + 3
        # One of the first three changes places with one below, and one of the two is relevant:
        # ranks 1 and 2 with rank 5, rank 3 with ranks 4, 6 and 7.
        assert self.count(Lambdas("P@3")) == 2 + 3
        # With rank 1: two relevant ones.
        assert self.count(Lambdas("NDCG", truncation=1)) == 2

    @pytest.mark.kernel
    def test_a_query_of_weight_0(self):
        assert self.count(Lambdas("MAP"), query_weight=np.array([0.0])) == 0
        assert self.count(Lambdas("MAP"), query_weight=np.array([0.1])) == 10

    def test_what_is_refused(self):
        targets = Targets({None: self.LABELS}, np.array([0, 7]), 1.0)
        for objective in (SquaredError(), LocalCost("NDCG")):
            with pytest.raises(UsageError, match="Gradients are not sums over all pairs; give"):
                effective_pairs(objective.prepare(targets), np.zeros(7))
        prepared = Lambdas("NDCG").prepare(targets)
        with pytest.raises(DataError, match=r"have the shape \(6,\); expected \(7,\)"):
            effective_pairs(prepared, np.zeros(6))
        with pytest.raises(DataError, match="document 2 has the score nan; expected a finite"):
            effective_pairs(prepared, [0, 0, np.nan, 0, 0, 0, 0])
