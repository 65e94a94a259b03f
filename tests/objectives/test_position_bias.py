"""Corrections for positions: estimates by hand and by naive references; files that are refused."""

from __future__ import annotations

import numpy as np
import pytest

from rankinite.core.errors import ModelFileError, UsageError
from rankinite.measures import NDCG
from rankinite.objectives.objective import Targets
from rankinite.objectives.parse import parse_objective
from rankinite.objectives.position_bias import (
    ADDITIVE,
    BY_ROUND,
    PROPENSITY,
    PositionBias,
    debiased,
)
from tests.naive import pairwise as naive


def targets_of(sizes, *, seed=1, n_positions=4, **others) -> Targets:
    rng = np.random.default_rng(seed)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    n = int(offsets[-1])
    labels = (rng.random(n) < 0.4).astype(float)
    position = np.concatenate([rng.permutation(max(sizes))[:size] % n_positions for size in sizes])
    return Targets({None: labels}, offsets, 1.0, position=position, **others)


def corrected(targets, method, *, measure="NDCG", regularization=0.0, rate=0.1, normalise="none"):
    objective = parse_objective(measure, normalise=normalise)
    return debiased(objective.prepare(targets), targets, method, regularization, rate)


def gradients(prepared, scores, number=0):
    out = np.zeros((2, 1, len(scores)))
    prepared.gradients(scores[np.newaxis], number, out[0], out[1])
    return out[:, 0]


def of_queries(targets):
    return [slice(*ends) for ends in zip(targets.offsets, targets.offsets[1:], strict=False)]


def test_propensities_and_gradients_are_those_of_the_naive_reference():
    """Two rounds: the second divides pairs by the propensities of the first."""
    targets = targets_of([6, 4, 9, 7])
    scores = np.random.default_rng(2).permutation(26) / 5.0
    labels, position = targets.labels[None], targets.position
    prepared = corrected(targets, PROPENSITY, regularization=1.0)
    t_plus, t_minus = np.ones(4), np.ones(4)
    for number in range(2):
        ours = gradients(prepared, scores, number)
        theirs, sums = [], np.zeros((2, 4))
        for docs in of_queries(targets):
            s, y, p = list(scores[docs]), list(labels[docs]), position[docs]
            weights = {"better": 1.0 / t_plus[p], "worse": 1.0 / t_minus[p]}
            theirs.append(naive.lambdas(NDCG(), s, y, 1.0, **weights))
            sums += naive.position_losses(NDCG(), s, y, 1.0, p, t_plus, t_minus)
        np.testing.assert_allclose(ours, np.hstack(theirs), rtol=1e-9, atol=1e-12)
        # Unbiased, Eqs. 30 and 31: ratios to the first position, to the power of 1 / (1 + p).
        t_plus, t_minus = (np.maximum(row / row[0], 1e-4) ** 0.5 for row in sums)
        estimates = prepared.position_bias(number + 1).estimates
        np.testing.assert_allclose(estimates["clicked"], t_plus, rtol=1e-9)
        np.testing.assert_allclose(estimates["unclicked"], t_minus, rtol=1e-9)


def test_additive_effects_take_newton_steps():
    """Two documents at scores of 0: RankNet's gradient is 1/2 and its hessian 1/4.

    The clicked one is at position 3 and the other at 7: the effects step by 0.1 x (0.5 / 0.25) =
    0.2 up and down, which is -0.4 for the second relative to the first. At these effects the
    scores differ by 0.4, and the gradients are 1 / (1 + exp(0.4)).
    """
    targets = Targets(
        {None: np.array([1.0, 0.0])}, np.array([0, 2]), 1.0, position=np.array([3, 7])
    )
    prepared = corrected(targets, ADDITIVE, measure="RankNet")
    gradient, hessian = gradients(prepared, np.zeros(2))
    assert gradient.tolist() == [0.5, -0.5]
    assert hessian.tolist() == [0.25, 0.25]
    bias = prepared.position_bias(1)
    assert bias.positions.tolist() == [3, 7]
    np.testing.assert_allclose(bias.estimates["effect"], [0.0, -0.4])
    gradient, _ = gradients(prepared, np.zeros(2), 1)
    np.testing.assert_allclose(gradient, [1 / (1 + np.exp(0.4)), -1 / (1 + np.exp(0.4))])


def test_regularisation_of_effects():
    """With an L2 of 1 the curvature of 1/4 doubles, and steps halve.

    At effects of 0 and -0.2 the gradient of the second is -1 / (1 + exp(0.2)) plus what holds it
    back, 0.2 times the hessian.
    """
    targets = Targets(
        {None: np.array([1.0, 0.0])}, np.array([0, 2]), 1.0, position=np.array([3, 7])
    )
    prepared = corrected(targets, ADDITIVE, measure="RankNet", regularization=1.0)
    gradients(prepared, np.zeros(2))
    np.testing.assert_allclose(prepared.position_bias(1).estimates["effect"], [0.0, -0.2])
    gradients(prepared, np.zeros(2), 1)
    rho = 1 / (1 + np.exp(0.2))
    hessian = rho * (1 - rho)
    steps = 0.1 * np.array([rho, -rho + 0.2 * hessian]) / (2 * hessian)
    expected = -0.2 + steps[1] - steps[0]
    np.testing.assert_allclose(prepared.position_bias(2).estimates["effect"], [0.0, expected])


@pytest.mark.parametrize("method", [PROPENSITY, ADDITIVE])
@pytest.mark.parametrize("normalise", ["none", "deviation", "distance"])
class TestBothMethods:
    def test_one_position_corrects_nothing(self, method, normalise):
        """All propensities are 1, or all effects 0; only sums are rounded elsewhere."""
        targets = targets_of([6, 4, 9], n_positions=1)
        scores = np.random.default_rng(3).random(19)
        plain = np.zeros((2, 1, 19))
        parse_objective("NDCG", normalise=normalise).prepare(targets).gradients(
            scores[np.newaxis], 0, plain[0], plain[1]
        )
        prepared = corrected(targets, method, normalise=normalise)
        for number in range(3):
            ours = gradients(prepared, scores, number)
            np.testing.assert_allclose(ours, plain[:, 0], rtol=1e-9, atol=1e-12)

    def test_a_round_that_is_done_again_gives_the_same_bits(self, method, normalise):
        targets = targets_of([6, 4, 9])
        scores = np.random.default_rng(4).random((3, 19))
        once, again = (corrected(targets, method, normalise=normalise) for _ in range(2))
        for number in range(3):
            gradients(again, scores[0], number)
            first = gradients(once, scores[number], number)
            assert gradients(again, scores[number], number).tobytes() == first.tobytes()

    def test_estimates_of_a_checkpoint(self, method, normalise):
        targets = targets_of([6, 4, 9])
        scores = np.random.default_rng(5).random(19)
        whole, resumed = (corrected(targets, method, normalise=normalise) for _ in range(2))
        for number in range(4):
            gradients(whole, scores, number)
        resumed.restore(whole.to_arrays(4), 2)
        for number in (2, 3):
            gradients(resumed, scores, number)
        for name, values in whole.position_bias(4).estimates.items():
            assert resumed.position_bias(4).estimates[name].tobytes() == values.tobytes()

    @pytest.mark.parametrize(
        "damage",
        [
            lambda rows: {},
            lambda rows: {BY_ROUND: rows[:2]},
            lambda rows: {BY_ROUND: rows[..., :2]},
            lambda rows: {BY_ROUND: rows.astype(np.float32)},
            lambda rows: {BY_ROUND: rows * np.nan},
        ],
    )
    def test_damaged_checkpoints_are_refused(self, method, normalise, damage):
        prepared = corrected(targets_of([6, 4, 9]), method, normalise=normalise)
        for number in range(3):
            gradients(prepared, np.zeros(19), number)
        arrays = damage(prepared.to_arrays(3)[BY_ROUND])
        with pytest.raises(ModelFileError, match=r"position[ _]bias"):
            prepared.restore(arrays, 2)


def test_weights_of_documents_multiply_what_propensities_divide():
    weight = np.random.default_rng(6).choice([0.0, 0.5, 2.0], 19)
    plain, weighted = targets_of([6, 4, 9]), targets_of([6, 4, 9], doc_weight=weight)
    scores = np.random.default_rng(7).random(19)
    ours = gradients(corrected(weighted, PROPENSITY), scores)
    out = np.zeros((2, 1, 19))
    parse_objective("NDCG").prepare(weighted).gradients(scores[np.newaxis], 0, out[0], out[1])
    np.testing.assert_allclose(ours, out[:, 0], rtol=1e-12)
    assert not ours[:, weight == 0.0].any()
    assert (ours != gradients(corrected(plain, PROPENSITY), scores)).any()


@pytest.mark.parametrize("text", ["SigmoidCost(NDCG)", "Tiered(MAP > NDCG)", "LocalCost(NDCG)"])
def test_propensities_need_pairs(text):
    with pytest.raises(UsageError, match="propensities are of pairs of documents"):
        corrected(targets_of([6, 4]), PROPENSITY, measure=text)


def test_effects_need_hessians():
    def own(scores, labels, offsets):
        return labels - scores

    with pytest.raises(UsageError, match="effects of positions take Newton steps, and own returns"):
        corrected(targets_of([6, 4]), ADDITIVE, measure=own)


ESTIMATES = {"clicked": np.array([1.0, 0.5]), "unclicked": np.array([1.0, 1.1])}
BIAS = PositionBias(PROPENSITY, np.array([1, 2]), ESTIMATES)


def test_arrays_of_a_file_are_read_back():
    for bias in (BIAS, PositionBias(ADDITIVE, np.array([0, 9]), {"effect": np.array([0.0, -2.0])})):
        read = PositionBias.from_arrays(bias.to_arrays())
        assert read is not None
        assert read.method == bias.method
        assert read.positions.tolist() == bias.positions.tolist()
        for name, values in bias.estimates.items():
            assert read.estimates[name].tobytes() == values.tobytes()
    assert PositionBias.from_arrays({"threshold": np.zeros(3)}) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"positions": np.array([2, 1])},
        {"positions": np.array([1, 1])},
        {"positions": np.array([-1, 1])},
        {"positions": np.array([1.0, 2.0])},
        {"positions": np.array([[1, 2]])},
        {"positions": np.zeros(0, np.int64)},
        {"clicked": np.array([1.0, np.inf])},
        {"clicked": np.array([1.0, 0.0])},
        {"clicked": np.array([1.0])},
        {"unclicked": np.array([1, 2])},
        {"unclicked": np.array([1.0, 100.5])},
        {"effect": np.array([0.0, 1.0])},
        {"more": np.array([0.0, 1.0])},
    ],
)
def test_damaged_files_are_refused(changes):
    arrays = BIAS.to_arrays() | {f"position_bias.{name}": new for name, new in changes.items()}
    with pytest.raises(ModelFileError, match="position"):
        PositionBias.from_arrays(arrays)


@pytest.mark.parametrize("missing", ["positions", "clicked"])
def test_files_that_lack_an_array_are_refused(missing):
    arrays = BIAS.to_arrays()
    del arrays[f"position_bias.{missing}"]
    with pytest.raises(ModelFileError, match="position bias of the file is not understood"):
        PositionBias.from_arrays(arrays)
