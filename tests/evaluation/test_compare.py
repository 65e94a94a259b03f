"""compare: hand arithmetic, what it tells, what it refuses, and how it is written down."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest
import scipy.stats

import rankinite as rk
from rankinite.stats.bootstrap import bootstrap
from rankinite.stats.paired_tests import SMALLEST_P, holm_of_pairs, randomisation_test, t_test
from tests.evaluation.cases import graded_systems, pairs_of_documents

MEASURES = ["NDCG@10", "ERR", "MAP(relevant=2)"]


@pytest.fixture(scope="module")
def graded() -> tuple[dict[str, np.ndarray], rk.RankingData]:
    return graded_systems()


def test_means_oracle_and_p_values_by_hand():
    scores, data = pairs_of_documents(a="11111111", b="00000000", c="00001111")
    comparison = rk.compare(scores, data, "MRR")
    assert comparison.systems == ("a", "b", "c")
    assert comparison.means == {"MRR": {"a": 1.0, "b": 0.5, "c": 0.75}}
    assert comparison.n_queries == {"MRR": 8}
    assert comparison.oracle == {"MRR": 1.0}
    # a - b is 1/2 always. a - c is 0 four times and 1/2 four times: mean 1/4, variance 1/14,
    # t = 1/4 / sqrt(1/14 / 8) = sqrt(7); and so is c - b. Holm: x 3, x 2, x 1 but not below.
    p = 2 * scipy.stats.t.sf(math.sqrt(7), 7)
    expected = [[1, SMALLEST_P, p], [SMALLEST_P, 1, p], [p, p, 1]]
    np.testing.assert_allclose(comparison.uncorrected["MRR"], expected, rtol=1e-10)
    corrected = [[1, 3 * SMALLEST_P, 2 * p], [3 * SMALLEST_P, 1, 2 * p], [2 * p, 2 * p, 1]]
    np.testing.assert_allclose(comparison.p_values["MRR"], corrected, rtol=1e-10)
    # p is 0.0331: significant alone, not among three.
    assert comparison.better_than("MRR", "a") == ["b"]
    assert comparison.significantly_better("MRR", "a", "b")
    assert not comparison.significantly_better("MRR", "b", "a")
    assert not comparison.significantly_better("MRR", "a", "a")
    alone = rk.compare(scores, data, "MRR", correction="none")
    assert alone.p_values["MRR"].tolist() == alone.uncorrected["MRR"].tolist()
    assert alone.better_than("MRR", "a") == ["b", "c"]
    assert alone.better_than("MRR", "c") == ["b"]
    strict = rk.compare(scores, data, "MRR", correction="none", level=0.01)
    assert strict.better_than("MRR", "a") == ["b"]


def test_randomisation_by_hand():
    # a beats b by 1/2 in 4 of 5 queries and ties in the last: of the 16 patterns that matter 2.
    scores, data = pairs_of_documents(a="11111", b="00001")
    comparison = rk.compare(scores, data, "MRR", test="randomisation")
    assert comparison.p_values["MRR"][0, 1] == 2 / 16


@pytest.mark.parametrize("n_queries", [2, 3])
def test_a_p_value_that_is_the_level_is_significant(n_queries):
    # Of 2^n sign patterns two are as far from 0 as the one seen: all alike.
    scores, data = pairs_of_documents(a="1" * n_queries, b="0" * n_queries)
    level = 2 / 2**n_queries
    comparison = rk.compare(scores, data, "MRR", test="randomisation", level=level)
    assert comparison.p_values["MRR"][0, 1] == level
    assert comparison.significantly_better("MRR", "a", "b")
    stricter = rk.compare(scores, data, "MRR", test="randomisation", level=level - 1e-9)
    assert not stricter.significantly_better("MRR", "a", "b")


@pytest.mark.parametrize("test", ["t", "randomisation"])
def test_a_huge_gain_that_systems_share_hides_no_difference(test):
    # DCG of a label of 60 is 2^60 - 1, beside which means lose 1/2; 20 queries differ by 0.37.
    y = [60, 0] + [1, 0] * 20
    data = rk.RankingData(X=np.zeros((42, 1)), y=y, group_sizes=[2] * 21)
    comparison = rk.compare({"a": y, "b": y[:2] + [-x for x in y[2:]]}, data, "DCG", test=test)
    assert comparison.means["DCG"]["a"] == comparison.means["DCG"]["b"]
    assert comparison.significantly_better("DCG", "a", "b")
    assert not comparison.significantly_better("DCG", "b", "a")
    (pair,) = comparison.pairs("DCG")
    assert pair.better == "a"
    assert pair.difference == pytest.approx(20 * (1 - 1 / math.log2(3)) / 21)


def test_the_oracle_picks_by_query():
    scores, data = pairs_of_documents(a="1100", b="0110", c="0010")
    # The best are 1, 1, 1, 1/2.
    assert rk.compare(scores, data, "MRR").oracle == {"MRR": 3.5 / 4}


@pytest.mark.parametrize("test", ["t", "randomisation"])
def test_every_measure_is_what_it_would_be_alone(graded, test):
    scores, data = graded
    settings = {"test": test, "permutations": 999, "resamples": 200, "seed": 3}
    comparison = rk.compare(scores, data, MEASURES, **settings)
    assert len(set(comparison.n_queries.values())) == 3
    for measure in MEASURES:
        alone = rk.compare(scores, data, measure, **settings)
        values = np.stack(
            [rk.evaluate(s, data, measure).per_query[measure] for s in scores.values()]
        )
        counted = values[:, ~np.isnan(values[0])]
        p = (
            t_test(counted)
            if test == "t"
            else randomisation_test(counted, permutations=999, seed=3)
        )
        intervals = bootstrap(counted, resamples=200, seed=3)
        for result in (comparison, alone):
            np.testing.assert_array_equal(result.per_query[measure], values)
            assert result.uncorrected[measure].tobytes() == p.tobytes()
            assert result.p_values[measure].tobytes() == holm_of_pairs(p).tobytes()
            assert result.intervals[measure].means.tobytes() == intervals.means.tobytes()
            assert (
                result.intervals[measure].differences.tobytes() == intervals.differences.tobytes()
            )
            assert result.n_queries[measure] == counted.shape[1]
            np.testing.assert_allclose(list(result.means[measure].values()), counted.mean(axis=1))


def test_evaluations_at_hand_compare_alike(graded):
    scores, data = graded
    settings = {"test": "randomisation", "permutations": 500, "resamples": 100, "level": 0.1}
    comparison = rk.compare(scores, data, MEASURES, drop_single_label=True, **settings)
    evaluations = {
        name: rk.evaluate(s, data, MEASURES, drop_single_label=True) for name, s in scores.items()
    }
    again = rk.compare_evaluations(evaluations, **settings)
    assert comparison.as_json() == {**again.as_json(), "drop_single_label": True}
    assert again.settings.drop_single_label is None
    other = rk.compare_evaluations(evaluations, **{**settings, "seed": 1})
    assert comparison.to_json() != other.to_json()


def test_single_labels_are_dropped(graded):
    scores, data = graded
    comparison = rk.compare(scores, data, "ERR", drop_single_label=True)
    highest = np.maximum.reduceat(data.y, data.offsets[:-1])
    lowest = np.minimum.reduceat(data.y, data.offsets[:-1])
    assert comparison.n_queries == {"ERR": int((highest > lowest).sum())}


def test_tau_over_systems(graded):
    scores, data = graded
    comparison = rk.compare(scores, data, MEASURES)
    means = [list(comparison.means[measure].values()) for measure in MEASURES]
    assert comparison.tau.shape == (3, 3)
    assert comparison.tau[0, 1] == pytest.approx(
        scipy.stats.kendalltau(means[0], means[1]).statistic
    )
    assert rk.compare(scores, data, "ERR").tau is None


def test_one_query_is_warned_of(caplog):
    scores, data = pairs_of_documents(a="1", b="0")
    comparison = rk.compare(scores, data, "MRR")
    assert comparison.p_values["MRR"][0, 1] == 1.0
    assert not comparison.significantly_better("MRR", "a", "b")
    assert "MRR: one query counts; a test needs at least two" in caplog.messages
    assert str(comparison).startswith("Means over 1 query\n")


def test_twins_are_told(caplog):
    caplog.set_level(logging.INFO, "rankinite")
    scores, data = pairs_of_documents(a="110", b="101", c="110", d="110")
    comparison = rk.compare(scores, data, "MRR")
    assert comparison.p_values["MRR"][0, 2] == 1.0
    assert caplog.messages[-1] == "'a', 'c', 'd' have the same values for every query"
    assert comparison.intervals["MRR"].differences[0, 2].tolist() == [0.0, 0.0]


def test_another_top_grade_is_warned_of_once(caplog):
    scores, data = pairs_of_documents(a="110", b="101", c="011")
    rk.compare(scores, data, "ERR(top_grade=3)")
    assert [record.levelname for record in caplog.records].count("WARNING") == 1


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"b": [1.0, 2.0]}, rk.DataError, "b: scores: an array of shape (2,) for 6 documents"),
        ({"b": [math.nan] * 6}, rk.DataError, "b: scores: the score of document 0 is nan"),
        ({"b": "x"}, rk.DataError, "b: scores: cannot be made numbers"),
        ({"": [0.0] * 6}, rk.UsageError, "'' is no name for a system; expected a line of text"),
        ({"x\ny": [0.0] * 6}, rk.UsageError, "'x\\ny' is no name for a system"),
        ({3: [0.0] * 6}, rk.UsageError, "3 is no name for a system"),
    ],
)
def test_systems_that_are_refused(change, error, words):
    scores, data = pairs_of_documents(a="110", b="101")
    with pytest.raises(error) as refusal:
        rk.compare({**scores, **change}, data)
    assert words in str(refusal.value)


def test_too_few_systems():
    scores, data = pairs_of_documents(a="110")
    with pytest.raises(rk.UsageError, match=r"compare: there must be at least two systems; got 1"):
        rk.compare(scores, data)
    with pytest.raises(rk.UsageError, match="got 0"):
        rk.compare_evaluations({})
    with pytest.raises(rk.UsageError, match="got list; expected a mapping from the names"):
        rk.compare([[1.0]], data)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"test": "wilcoxon"}, "test must be one of 't', 'randomisation'; got 'wilcoxon'"),
        ({"correction": None}, "correction must be one of 'holm', 'none'"),
        ({"level": 0}, "level must be a finite number, above 0 and below 1"),
        ({"level": 1.5}, "level must be"),
        ({"permutations": 0}, "permutations must be a whole number of at least 1"),
        ({"resamples": 2.5}, "resamples must be a whole number"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_settings_that_are_refused(settings, words):
    scores, data = pairs_of_documents(a="110", b="101")
    with pytest.raises(rk.UsageError) as refusal:
        rk.compare(scores, data, **settings)
    assert words in str(refusal.value)


def test_settings_of_numpy_become_plain_numbers():
    scores, data = pairs_of_documents(a="110", b="101")
    plain = rk.compare(scores, data, resamples=5, level=0.5, seed=1)
    numpy_settings = {"resamples": np.int32(5), "level": np.float32(0.5), "seed": np.int64(1)}
    counted = {"permutations": np.int64(100_000)}
    assert rk.compare(scores, data, **numpy_settings, **counted).to_json() == plain.to_json()


def test_infinite_values_are_refused():
    qids = np.array([7, 8])
    evaluation = rk.Evaluation(qids, {"DCG": np.array([1.0, 2.0])})
    other = rk.Evaluation(qids, {"DCG": np.array([1.0, math.inf])})
    with pytest.raises(rk.DataError, match=r"compare: DCG of 'b' is inf for query 8; expected fin"):
        rk.compare_evaluations({"a": evaluation, "b": other})


def test_samples_are_refused():
    scores, data = pairs_of_documents(a="110", b="101")
    sampled = rk.RankingData(X=data.X, y=data.y, qid=np.repeat(["12", "12~1", "7"], 2))
    words = "such as '12~1' .*; p-values would count them as independent queries.*data.originals"
    with pytest.raises(rk.DataError, match=words):
        rk.compare(scores, sampled)
    evaluations = {name: rk.evaluate(s, sampled) for name, s in scores.items()}
    with pytest.raises(rk.DataError, match=words):
        rk.compare_evaluations(evaluations)


def test_what_is_no_data_set_is_refused():
    scores, data = pairs_of_documents(a="110", b="101")
    with pytest.raises(rk.UsageError, match="compare: a list is no data set"):
        rk.compare(scores, [data])


def test_labels_and_query_ids_are_enough():
    scores, data = pairs_of_documents(a="110", b="101")
    expected = rk.compare(scores, data, "MRR, P@1")
    order = np.random.default_rng(1).permutation(data.n_docs)
    scattered = {name: np.asarray(values)[order] for name, values in scores.items()}
    result = rk.compare(scattered, data.y[order], "MRR, P@1", qid=data.qid[order])
    for measure in ("MRR", "P@1"):
        at = [expected.qids.tolist().index(qid) for qid in result.qids.tolist()]
        assert result.per_query[measure].tolist() == expected.per_query[measure][:, at].tolist()
        assert result.p_values[measure] == pytest.approx(expected.p_values[measure], nan_ok=True)
    with pytest.raises(rk.UsageError, match="compare: labels need the queries"):
        rk.compare(scores, data.y)


def test_single_labels_may_be_why_no_query_counts():
    data = rk.RankingData(X=np.zeros((4, 1)), y=[1] * 4, group_sizes=[2, 2])
    scores = {"a": [1, 2, 1, 2], "b": [2, 1, 2, 1]}
    with pytest.raises(rk.DataError, match=r"\(empty=0\), or keep queries of a single label"):
        rk.compare(scores, data, drop_single_label=True)


def test_no_query_counts():
    data = rk.RankingData(X=np.zeros((4, 1)), y=[0] * 4, group_sizes=[2, 2], top_grade=1)
    scores = {"a": [1, 2, 1, 2], "b": [2, 1, 2, 1]}
    with pytest.raises(rk.DataError, match="NDCG@10: no query counts, so there is nothing"):
        rk.compare(scores, data)
    assert rk.compare(scores, data, "NDCG(empty=0)").n_queries == {"NDCG(empty=0)": 2}


def test_evaluations_that_do_not_match(graded):
    scores, data = graded
    evaluation = rk.evaluate(scores["s0"], data)
    fewer = rk.evaluate(data[1:].y, data[1:])
    with pytest.raises(rk.DataError, match="'a' and 'b' were evaluated on different queries"):
        rk.compare_evaluations({"a": evaluation, "b": fewer})
    with pytest.raises(rk.UsageError, match=r"different measures, NDCG@10, ERR and MAP"):
        rk.compare_evaluations({"a": evaluation, "b": rk.evaluate(scores["s1"], data, "MAP")})
    dropped = rk.evaluate(scores["s1"], data, drop_single_label=True)
    with pytest.raises(rk.DataError, match="'a' and 'b' leave out different queries for NDCG@10"):
        rk.compare_evaluations({"a": evaluation, "b": dropped})


def test_unknown_names_are_refused(graded):
    scores, data = graded
    comparison = rk.compare(scores, data, "ERR")
    with pytest.raises(rk.UsageError, match="there is no measure 'MAP'; the measures are 'ERR'"):
        comparison.significantly_better("MAP", "s0", "s1")
    with pytest.raises(rk.UsageError, match="there is no measure 'MAP'; the measures are 'ERR'"):
        comparison.pairs("MAP")
    with pytest.raises(rk.UsageError, match="no system 's9'; the systems are 's0', 's1', 's2'"):
        comparison.better_than("ERR", "s9")
