"""Pointwise losses against finite differences and formulas written out."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit, log_expit, softmax

from rankinite.core.errors import DataError, UsageError
from rankinite.objectives.objective import Targets
from rankinite.objectives.pointwise import (
    CentredSquaredError,
    Logistic,
    MultiClass,
    RegressionTerm,
    SquaredError,
)

OFFSETS = np.array([0, 3, 4, 9])
Y = np.array([0.0, 2.0, 4.0, 1.0, 0.0, 3.0, 0.0, 1.0, 4.0])
CHANCES = (2.0**Y - 1.0) / 16.0
WEIGHT = np.array([1.0, 2.0, 0.0, 0.5, 3.0, 1.0, 1.0, 0.25, 1.0])
OBJECTIVES = [SquaredError(), CentredSquaredError(), Logistic(), MultiClass()]


def targets(y=Y, top_grade=4.0, **options) -> Targets:
    return Targets({None: np.asarray(y, dtype=float)}, OFFSETS, top_grade, **options)


def computed(prepared, scores):
    out = np.full((2, *scores.shape), np.nan)
    prepared.gradients(scores, 0, out[0], out[1])
    return out


def squared_error(scores):
    return 0.5 * WEIGHT * (Y - scores[0]) ** 2


def centred_squared_error(scores):
    residual = Y - scores[0]
    for start, end in ((0, 3), (3, 4), (4, 9)):
        residual[start:end] -= np.average(residual[start:end], weights=WEIGHT[start:end])
    return 0.5 * WEIGHT * residual**2


def cross_entropy(scores):
    return -WEIGHT * (CHANCES * log_expit(scores[0]) + (1 - CHANCES) * log_expit(-scores[0]))


def class_entropy(scores):
    return -WEIGHT * np.log(softmax(scores, axis=0)[Y.astype(int), np.arange(len(Y))])


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("objective", "loss", "step_of"),
    [
        (SquaredError(), squared_error, 1.0),
        (CentredSquaredError(), centred_squared_error, 1.0),
        (Logistic(), cross_entropy, 1.0),
        (MultiClass(), class_entropy, 4 / 5),
    ],
    ids=["squared", "centred", "logistic", "classes"],
)
def test_lambda_is_minus_the_slope_and_weight_the_curvature(objective, loss, step_of):
    rng = np.random.default_rng(1)
    prepared = objective.prepare(targets(doc_weight=WEIGHT))
    n_outputs = len(prepared.start)
    scores = rng.normal(size=(n_outputs, len(Y)))
    lam, weight = computed(prepared, scores)
    h = 1e-4
    for k in range(n_outputs):
        for i in range(len(Y)):
            up, down = scores.copy(), scores.copy()
            up[k, i] += h
            down[k, i] -= h
            total_up, total, total_down = (loss(s).sum() for s in (up, scores, down))
            slope = (total_up - total_down) / (2 * h)
            np.testing.assert_allclose(lam[k, i], -slope * step_of, rtol=1e-6, atol=1e-7)
            if not isinstance(objective, CentredSquaredError):
                curvature = (total_up - 2 * total + total_down) / h**2
                np.testing.assert_allclose(weight[k, i], curvature, rtol=1e-5, atol=1e-6)


@pytest.mark.kernel
def test_centred_residuals():
    scores = np.zeros((1, 9))
    lam, weight = computed(CentredSquaredError().prepare(targets()), scores)
    # The queries' labels are (0, 2, 4), (1) and (0, 3, 0, 1, 4) with means 2, 1 and 1.6.
    np.testing.assert_allclose(lam[0], [-2, 0, 2, 0, -1.6, 1.4, -1.6, -0.6, 2.4], atol=1e-15)
    assert (weight == 1.0).all()


def test_starts():
    prepared = [objective.prepare(targets(doc_weight=WEIGHT)) for objective in OBJECTIVES]
    start = [gradients.start for gradients in prepared]
    # The weights sum to 9.75, weights times labels to 4 + 0.5 + 3 + 0.25 + 4 = 11.75.
    np.testing.assert_allclose(start[0], [11.75 / 9.75])
    assert start[1].tolist() == [0.0]
    mean = (WEIGHT @ CHANCES) / 9.75
    np.testing.assert_allclose(start[2], [math.log(mean / (1 - mean))])
    # Weights by grade are 5, 0.75, 2, 1 and 1; the largest, 3, is one document; each grade has
    # one document more.
    counts = np.array([5, 0.75, 2, 1, 1]) / 3 + 1
    np.testing.assert_allclose(start[3], np.log(counts / counts.sum()))


def test_logistic_starts_from_a_finite_score_even_if_nothing_is_relevant():
    start = Logistic().prepare(targets(np.zeros(9))).start
    np.testing.assert_allclose(start, [math.log(1e-6 / (1 - 1e-6))])


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_a_query_weight_multiplies_a_document_weight(objective):
    of_query = np.array([2.0, 0.0, 0.5])
    both = objective.prepare(targets(query_weight=of_query, doc_weight=WEIGHT))
    by_document = objective.prepare(targets(doc_weight=WEIGHT * np.repeat(of_query, [3, 1, 5])))
    scores = np.random.default_rng(2).normal(size=(len(both.start), 9))
    assert both.start.tobytes() == by_document.start.tobytes()
    assert computed(both, scores).tobytes() == computed(by_document, scores).tobytes()


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
def test_a_document_without_a_label_counts_nothing(objective):
    gaps = np.array([0, 1, 0, 1, 0, 0, 1, 0, 0], dtype=bool)
    with_gaps = objective.prepare(targets(np.where(gaps, np.nan, Y)))
    without_weight = objective.prepare(targets(doc_weight=np.where(gaps, 0.0, 1.0)))
    scores = np.random.default_rng(3).normal(size=(len(with_gaps.start), 9))
    np.testing.assert_allclose(with_gaps.start, without_weight.start)
    ours = computed(with_gaps, scores)
    np.testing.assert_allclose(ours, computed(without_weight, scores))
    assert (ours[:, :, gaps] == 0.0).all()


@pytest.mark.kernel
@pytest.mark.parametrize("far", [50.0, 800.0, 1e6])
def test_extreme_scores(far):
    scores = np.array([far, -far] * 4 + [0.0])
    lam, weight = computed(Logistic().prepare(targets()), scores[np.newaxis])
    np.testing.assert_allclose(lam[0], CHANCES - expit(scores), atol=1e-15)
    small = np.exp(-np.abs(scores))
    np.testing.assert_allclose(weight[0], small / (1 + small) ** 2, atol=1e-300)
    for order in ([0, 1, 2, 3, 4], [4, 2, 0, 1, 3]):
        classes = np.array([far, 0.0, -far, far, 1.0])[order][:, np.newaxis] * np.ones(9)
        lam, weight = computed(MultiClass().prepare(targets()), classes)
        p = softmax(classes, axis=0)
        wanted = np.arange(5)[:, np.newaxis] == Y
        np.testing.assert_allclose(lam, (wanted - p) * 4 / 5, atol=1e-15)
        np.testing.assert_allclose(weight, p * (1 - p), atol=1e-15)


def test_another_source():
    labels = {None: Y, "clicks": np.array([1.0, np.nan, 0, 0, 0, 1, 0, 0, 0])}
    learned = Targets(labels, OFFSETS, 4.0)
    assert SquaredError("clicks").prepare(learned).start == 0.25
    with pytest.raises(UsageError, match=r"Logistic: .*no label source 'dwell'; it has 'clicks'"):
        Logistic("dwell").prepare(learned)
    with pytest.raises(UsageError, match="SquaredError: source must be a name"):
        SquaredError("a,b")


def test_what_is_refused():
    with pytest.raises(DataError, match=r"document 1 has the label 0\.5.*round the labels"):
        MultiClass().prepare(targets([0, 0.5, *Y[2:]]))
    with pytest.raises(DataError, match="document 2 has the label 4, above the top grade 3"):
        MultiClass().prepare(targets(top_grade=3.0))
    for top_grade in (0.0, 2.5, 100.0):
        with pytest.raises(DataError, match="expected a whole number from 1 to 99"):
            MultiClass().prepare(targets(np.zeros(9), top_grade=top_grade))
    with pytest.raises(DataError, match="document 2 has the label 4, above the top grade 3"):
        Logistic().prepare(targets(top_grade=3.0))
    for objective in OBJECTIVES:
        with pytest.raises(DataError, match="no document has both"):
            objective.prepare(targets(np.full(9, np.nan)))


@pytest.mark.kernel
@pytest.mark.parametrize("selected", [[], [True, False, True]])
def test_a_regression_term_is_a_centred_residual_of_scaled_grades(selected):
    """Five grades: the largest difference is scaled from 4 to 4, and the weight is 16-fold."""
    scores = np.linspace(-1.0, 1.0, 9)[None]
    gradients, hessians = np.ones((2, 1, 9))
    term = RegressionTerm(targets(query_weight=np.array([1.0, 2.0, 0.5])), None, 0.1)
    term.add(np.array(selected, np.bool_), scores, gradients, hessians)
    for q, (first, last) in enumerate(pairwise(OFFSETS)):
        counts = not selected or selected[q]
        weight = 1.6 * [1.0, 2.0, 0.5][q] * counts
        residuals = Y[first:last] - scores[0, first:last]
        expected = 1.0 + weight * (residuals - residuals.mean())
        np.testing.assert_allclose(gradients[0, first:last], expected, rtol=1e-12)
        np.testing.assert_allclose(hessians[0, first:last], 1.0 + weight)


@pytest.mark.parametrize(
    ("labels", "scale", "weight"),
    [([0, 1], 4.0, 0.1), ([0, 1, 2], 2.0, 0.4), ([3, 7], 1.0, 0.1), (range(40), 4 / 39, 1.6)],
)
def test_grades_of_a_regression_term(labels, scale, weight):
    """Whatever the grades are, the largest difference is 4; two more steps count four times."""
    y = np.array([*labels], dtype=float)
    term = RegressionTerm(Targets({None: y}, np.array([0, len(y)]), 40.0), None, 0.1)
    gradients, hessians = np.zeros((2, 1, len(y)))
    term.add(np.zeros(0, np.bool_), np.zeros((1, len(y))), gradients, hessians)
    np.testing.assert_allclose(gradients[0], weight * scale * (y - y.mean()), atol=1e-12)
    np.testing.assert_allclose(hessians[0], weight)


def test_a_regression_term_without_labels_to_learn_from():
    for y in (np.full(9, 2.0), np.full(9, np.nan)):
        gradients, hessians = np.zeros((2, 1, 9))
        term = RegressionTerm(targets(y), None, 0.1)
        term.add(np.zeros(0, np.bool_), np.ones((1, 9)), gradients, hessians)
        assert not gradients.any()
        assert not hessians.any()
