"""evaluate: hand arithmetic, empty queries, sources, indexed data, and what it refuses."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

import rankinite as rk
from rankinite.measures import MEASURES
from rankinite.measures.kernels.values_with_ties import measure_all

LOG3, LOG5, LOG6, LOG7 = (math.log2(x) for x in (3, 5, 6, 7))


def ranked(*queries: list[float], top_grade: float = 4, **labels) -> tuple[list, rk.RankingData]:
    """Return falling scores, and data whose labels are given from the first rank to the last."""
    y = [label for query in queries for label in query]
    data = rk.RankingData(
        X=np.zeros((len(y), 1)),
        y=y,
        group_sizes=[len(query) for query in queries],
        top_grade=top_grade,
        labels=labels,
    )
    return list(range(len(y), 0, -1)), data


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        # Gains 2^y - 1 are 7 3 7 0 1 3, discounts 1/log2(1 + rank).
        ("DCG", [3, 2, 3, 0, 1, 2], 7 + 3 / LOG3 + 7 / 2 + 0 + 1 / LOG6 + 3 / LOG7),
        ("DCG@3", [3, 2, 3, 0, 1, 2], 7 + 3 / LOG3 + 7 / 2),
        (
            "NDCG",
            [3, 2, 3, 0, 1, 2],
            (7 + 3 / LOG3 + 7 / 2 + 1 / LOG6 + 3 / LOG7)
            / (7 + 7 / LOG3 + 3 / 2 + 3 / LOG5 + 1 / LOG6),
        ),
        # The ideal is taken at the same depth.
        ("NDCG@2", [3, 2, 3, 0, 1, 2], (7 + 3 / LOG3) / (7 + 7 / LOG3)),
        (
            "DCG(gain=linear)",
            [3, 2, 3, 0, 1, 2],
            3 + 2 / LOG3 + 3 / 2 + 0 + 1 / LOG6 + 2 / LOG7,
        ),
        (
            "NDCG(gain=linear)",
            [3, 2, 3, 0, 1, 2],
            (3 + 2 / LOG3 + 3 / 2 + 1 / LOG6 + 2 / LOG7)
            / (3 + 3 / LOG3 + 2 / 2 + 2 / LOG5 + 1 / LOG6),
        ),
        # Ensemble, Eq. 2: the chances of grades 0 to 4 are 0, 1/16, 3/16, 7/16, 15/16.
        ("ERR", [0], 0.0),
        ("ERR", [1], 0.0625),
        ("ERR", [2], 0.1875),
        ("ERR", [3], 0.4375),
        ("ERR", [4], 0.9375),
        # Ensemble, Eq. 1; Challenge, Eq. 2.
        ("ERR", [2, 0, 4], 0.1875 + (1 - 0.1875) * 0.9375 / 3),
        ("ERR@2", [2, 0, 4], 0.1875),
        ("ERR", [4, 3, 1], 0.9375 + 0.0625 * 0.4375 / 2 + 0.0625 * 0.5625 * 0.0625 / 3),
        ("ERR(top_grade=5)", [4], 15 / 32),
        # Stops at rank 1 with 0.0625; else 85 of 100 look at rank 2.
        ("pFound", [1, 3], 0.0625 + 0.9375 * 0.85 * 0.4375),
        ("pFound(break=0.5)", [1, 3], 0.0625 + 0.9375 * 0.5 * 0.4375),
        ("pFound(break=0)", [1, 3], 1 - 0.9375 * 0.5625),
        ("pFound@1", [1, 3], 0.0625),
        # Optimality, Eq. 1: precisions 1/2, 2/4, 3/5 at the ranks of three relevant documents.
        ("MAP", [0, 1, 0, 2, 3], (1 / 2 + 2 / 4 + 3 / 5) / 3),
        ("MAP@4", [0, 1, 0, 2, 3], (1 / 2 + 2 / 4) / 3),
        ("MAP(relevant=2)", [0, 1, 0, 2, 3], (1 / 4 + 2 / 5) / 2),
        # Optimality, Eq. 2.
        ("MRR", [0, 1, 0, 2, 3], 1 / 2),
        ("MRR(relevant=2)", [0, 1, 0, 2, 3], 1 / 4),
        ("MRR(relevant=2)@3", [0, 1, 0, 2, 3], 0.0),
        ("P", [0, 1, 0, 2, 3], 3 / 5),
        ("P@2", [0, 1, 0, 2, 3], 1 / 2),
        ("P@10", [0, 1, 0, 2, 3], 3 / 10),
        ("P(relevant=2)@4", [0, 1, 0, 2, 3], 1 / 4),
        ("Recall", [0, 1, 0, 2, 3], 1.0),
        ("Recall@2", [0, 1, 0, 2, 3], 1 / 3),
        ("Recall@10", [0, 1, 0, 2, 3], 1.0),
        ("Recall(relevant=2)@4", [0, 1, 0, 2, 3], 1 / 2),
        ("Hit@1", [0, 1, 0, 2, 3], 0.0),
        ("Hit@2", [0, 1, 0, 2, 3], 1.0),
        ("Hit(relevant=2)@3", [0, 1, 0, 2, 3], 0.0),
        # Half of the users look at rank 2, a quarter at rank 3, and so on.
        ("RBP(p=0.5)", [1, 0, 2, 3], (1 + 1 / 4 + 1 / 8) / 2),
        ("RBP", [0, 1, 0, 2, 3], 0.2 * (0.8 + 0.8**3 + 0.8**4)),
        ("RBP(p=0.5)@3", [1, 0, 2, 3], (1 + 1 / 4) / 2),
        ("Judged@10", [0, 1], 1.0),
        (
            "NDCG(gain=[0,1,10])",
            [1, 0, 2],
            (1 + 10 / 2) / (10 + 1 / LOG3),
        ),
        ("DCG(gain=[0,1,10])@2", [1, 2, 2], 1 + 10 / LOG3),
        # Objectives, Eq. 9: gains 2^(4c) - 1 are 1, 15, 3.
        ("CNDCG@2", [0.25, 1, 0.5], (1 + 15 / LOG3) / (15 + 3 / LOG3)),
        ("CNDCG", [0.25, 1, 0.5], (1 + 15 / LOG3 + 3 / 2) / (15 + 3 / LOG3 + 1 / 2)),
        ("CNDCG(top_grade=2)", [0.5, 1], (1 + 3 / LOG3) / (3 + 1 / LOG3)),
    ],
)
def test_hand_arithmetic(text, labels, expected):
    scores, data = ranked(labels)
    assert rk.evaluate(scores, data, text).mean[text] == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Grades 4 and 0 tie: 4 0 and 0 4 are equally likely.
        ("ERR", (0.9375 + 0.9375 / 2) / 2),
        ("NDCG", (1 + 1 / LOG3) / 2),
        ("NDCG@1", (1 + 0) / 2),
        ("MAP", (1 + 1 / 2) / 2),
        ("MRR@1", (1 + 0) / 2),
        ("P@1", (1 + 0) / 2),
        ("pFound", (0.9375 + 0.85 * 0.9375) / 2),
        ("Recall@1", (1 + 0) / 2),
        ("Hit@1", (1 + 0) / 2),
        ("RBP", 0.2 * (1 + 0.8) / 2),
    ],
)
def test_hand_arithmetic_with_a_tie(text, expected):
    data = ranked([4, 0])[1]
    assert rk.evaluate([0.5, 0.5], data, text).mean[text] == pytest.approx(expected, abs=1e-15)
    assert rk.evaluate([0.0, -0.0], data, text).mean[text] == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("empty", [None, 0, 1, "skip"])
@pytest.mark.parametrize("name", [m for m, kind in MEASURES.items() if kind.is_of_grades])
def test_a_query_without_a_relevant_document(name, empty):
    scores, data = ranked([1, 0], [0, 0, 0], [0], top_grade=1)
    measure = MEASURES[name]() if empty is None else MEASURES[name](empty=empty)
    counts = measure.empty
    result = rk.evaluate(scores, data, measure)
    values = result.per_query[str(measure)]
    value = float("nan") if counts == "skip" else counts
    np.testing.assert_array_equal(values[1:], [value, value])
    assert values[0] > 0
    assert result.n_queries == {str(measure): 1 if counts == "skip" else 3}
    expected = values[0] if counts == "skip" else (values[0] + 2 * counts) / 3
    assert result.mean[str(measure)] == pytest.approx(expected, abs=1e-15)


def test_no_query_counts():
    scores, data = ranked([0, 0], [0])
    left_out = ("NDCG", "CNDCG", "MAP", "MRR", "Recall", "Hit")
    counted = ("DCG", "ERR", "P", "pFound", "RBP")
    result = rk.evaluate(scores, data, [*left_out, *counted])
    assert result.n_queries == dict.fromkeys(left_out, 0) | dict.fromkeys(counted, 2)
    assert all(math.isnan(result.mean[name]) for name in left_out)
    assert [result.mean[name] for name in counted] == [0.0] * len(counted)


def test_judged_documents_are_those_with_a_label_of_any_grade():
    clicks = [0.0, math.nan, 0.5, math.nan, math.nan, 1.0]
    scores, data = ranked([1, 1, 1], [1, 1], [1], clicks=clicks)
    names = ["Judged@2[clicks]", "Judged[clicks]", "Judged@2", "Judged(empty=skip)[clicks]"]
    result = rk.evaluate(scores, data, names)
    expected = [[1 / 2, 0, 1], [2 / 3, 0, 1], [1, 1, 1], [2 / 3, math.nan, 1]]
    np.testing.assert_array_equal(list(result.per_query.values()), expected)
    # Tied: two of the three documents of the first query have a label, whichever comes first.
    tied = rk.evaluate([0.0] * 6, data, "Judged@1[clicks]").per_query["Judged@1[clicks]"]
    np.testing.assert_allclose(tied, [2 / 3, 0, 1], rtol=1e-15)


@pytest.mark.parametrize(
    ("labels", "shown"), [([0, 3], "label 3"), ([0, 0.5], "label 0.5"), ([1, 2, 9], "label 9")]
)
def test_a_label_without_a_gain_is_refused(labels, shown):
    scores, data = ranked(labels, top_grade=9)
    with pytest.raises(rk.DataError, match=rf"{shown}, and the table has gains of .* 0 to 2"):
        rk.evaluate(scores, data, "NDCG(gain=[0,1,3])")


def test_queries_with_one_label_are_dropped_by_the_source_of_the_measure():
    nan = math.nan
    clicks = [nan, nan, 0.5, 0.5, 0, 1, nan]
    scores, data = ranked([3, 0], [2, 2], [0, 0], [1], clicks=clicks)
    names = ["ERR", "NDCG", "MRR[clicks]", "P@1[clicks]"]
    dropped = rk.evaluate(scores, data, names, drop_single_label=True)
    # By labels, only the first query has two. By clicks only the third has: none counts as 0.
    counted = {name: (~np.isnan(v)).tolist() for name, v in dropped.per_query.items()}
    first, third = [True, False, False, False], [False, False, True, False]
    assert counted == {"ERR": first, "NDCG": first, "MRR[clicks]": third, "P@1[clicks]": third}
    kept = rk.evaluate(scores, data, names)
    assert kept.n_queries == {"ERR": 4, "NDCG": 3, "MRR[clicks]": 1, "P@1[clicks]": 4}
    for name, values in dropped.per_query.items():
        place = counted[name].index(True)
        assert values[place] == kept.per_query[name][place]


def test_means_are_over_queries():
    scores, data = ranked([1, 0, 0, 0], [0, 1], [0, 0, 0, 1])
    result = rk.evaluate(scores, data, "MRR, P@1")
    assert result.per_query["MRR"].tolist() == [1, 1 / 2, 1 / 4]
    assert result.mean == {"MRR": pytest.approx(7 / 12), "P@1": pytest.approx(1 / 3)}
    assert result.qids.tolist() == [1, 2, 3]
    assert str(result) == "MRR 0.5833  P@1 0.3333"


@pytest.mark.parametrize(
    ("measures", "names"),
    [
        ("NDCG@3", ["NDCG@3"]),
        (rk.NDCG(depth=3), ["NDCG@3"]),
        ("ndcg@3, AP", ["NDCG@3", "MAP"]),
        (["ERR", rk.MAP(relevant=2), "P@1,P@2"], ["ERR", "MAP(relevant=2)", "P@1", "P@2"]),
        ("ERR > NDCG@3", ["ERR", "NDCG@3"]),
        (rk.measures.TieredMeasure((rk.ERR(), rk.MRR())), ["ERR", "MRR"]),
        (["NDCG > ERR", "ERR", "MAP, ndcg", rk.ERR(empty=0)], ["NDCG", "ERR", "MAP"]),
        ("NDCG(gain=linear, empty=0)@3, ERR", ["NDCG(empty=0, gain=linear)@3", "ERR"]),
        ((text for text in ("RR", "rr")), ["MRR"]),
    ],
)
def test_measures_are_given_as_texts_values_or_lists(measures, names):
    scores, data = ranked([0, 3, 1, 2], [2, 0])
    result = rk.evaluate(scores, data, measures)
    assert list(result.per_query) == list(result.mean) == list(result.n_queries) == names
    for name in names:
        alone = rk.evaluate(scores, data, name).per_query[name]
        assert result.per_query[name].tobytes() == alone.tobytes()


def test_default_measures():
    scores, data = ranked([0, 3, 1, 2])
    assert list(rk.evaluate(scores, data).mean) == ["NDCG@10", "ERR"]


def test_further_label_sources():
    nan = math.nan
    clicks, graded = [nan, 1, 0.5, 0, nan], [nan, 4, 0, nan, nan]
    scores, data = ranked([3, 0, 0], [0, 1], clicks=clicks, graded=graded)
    result = rk.evaluate(
        scores, data, "CNDCG@2[clicks], ERR[graded], MRR[clicks], MRR, NDCG[graded]"
    )
    # Without a click or grade a document counts 0: clicks are 0 1 0.5 and 0 0.
    values = {name: row.tolist() for name, row in result.per_query.items()}
    assert values["CNDCG@2[clicks]"][0] == pytest.approx((15 / LOG3) / (15 + 3 / LOG3))
    assert values["ERR[graded]"] == [0.9375 / 2, 0.0]
    assert values["MRR[clicks]"][0] == 1 / 2
    assert values["MRR"] == [1.0, 1 / 2]
    assert values["NDCG[graded]"][0] == pytest.approx(1 / LOG3)
    counted = {"CNDCG@2[clicks]": 1, "ERR[graded]": 2, "MRR[clicks]": 1, "MRR": 2}
    assert result.n_queries == {**counted, "NDCG[graded]": 1}


def test_parts_of_a_data_set():
    rng = np.random.default_rng(1)
    qid = rng.integers(30, size=400)
    labels = {"clicks": rng.random(400)}
    y = rng.integers(5, size=400)
    data = rk.RankingData(X=rng.random((400, 2)), y=y, qid=qid, labels=labels, group=True)
    scores = data.X[:, 0].astype(np.float64)
    names = ["NDCG@10", "ERR", "CNDCG@3[clicks]"]
    whole = rk.evaluate(scores, data, names)
    for chosen in (slice(3, 20, 2), [7, 2, 29], 11):
        part = data[chosen]
        result = rk.evaluate(part.X[:, 0], part, names)
        assert result.qids.tolist() == np.atleast_1d(data.qids[chosen]).tolist()
        for name in names:
            assert result.per_query[name].tobytes() == whole.per_query[name][chosen].tobytes()


def test_scores_may_be_any_array_and_stay_as_they_are():
    scores, data = ranked([0, 3, 1, 2], [2, 0])
    expected = rk.evaluate(scores, data).mean
    compiled = len(measure_all.dispatcher.signatures)
    frozen = np.array(scores, dtype=np.float64)
    frozen.flags.writeable = False
    for array_like in (
        tuple(scores),
        np.array(scores, dtype=np.float32),
        np.array(scores, dtype=np.int8),
        np.repeat(np.array(scores, dtype=np.float64), 2)[::2],
        frozen,
    ):
        before = np.array(array_like)
        assert rk.evaluate(array_like, data).mean == expected
        np.testing.assert_array_equal(array_like, before)
    assert len(measure_all.dispatcher.signatures) == compiled


@pytest.mark.parametrize(
    ("labels", "text", "words"),
    [
        (
            [0, 2000],
            "NDCG",
            "NDCG: document 1 has the label 2000, too large for a gain of 2^label",
        ),
        # Each gain is a number, but their sum is not.
        ([1023.9, 1023.9], "NDCG@3", "NDCG@3: document 0 has the label 1023.9, too large"),
        ([0, 1e308, 1e308], "DCG(gain=linear)", "document 1 has the label 1e+308, too large"),
        ([0.5, 1.5], "CNDCG@3", "CNDCG@3: document 1 has the label 1.5"),
        ([0.5, 1.5], "CNDCG@3", "click rates lie in [0, 1]"),
        ([0, 0, 4], "ERR(top_grade=3)@5", "ERR(top_grade=3)@5: document 2 has the label 4, above"),
        ([0, 0, 4], "pFound(top_grade=3)", "above the top grade 3"),
        ([0, 1], "NDCG[clicks]", "NDCG[clicks]: the data set has no label source 'clicks'"),
        ([0, 1], "NDCG[clicks]", "it has none but its own labels"),
    ],
)
def test_labels_that_a_measure_cannot_use(labels, text, words):
    scores, data = ranked(labels, top_grade=max(labels))
    with pytest.raises(rk.RankiniteError) as refusal:
        rk.evaluate(scores, data, text)
    assert words in str(refusal.value)


def test_sources_that_a_measure_cannot_use():
    scores, data = ranked([0, 1], dwell=[3, 7], rate=[0, 1])
    with pytest.raises(rk.UsageError, match=r"no label source 'clicks'; it has 'dwell', 'rate'"):
        rk.evaluate(scores, data, "CNDCG@3[clicks]")
    with pytest.raises(rk.DataError, match=r"ERR\[dwell\]: document 1 .* above the top grade 4"):
        rk.evaluate(scores, data, "ERR[dwell]")


def test_a_top_grade_beyond_all_floats_leaves_no_chance():
    scores, data = ranked([4, 0])
    assert list(rk.evaluate(scores, data, "ERR(top_grade=2000)").mean.values()) == [0.0]


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([1.0, math.nan, 0.0], "the score of document 1 is nan; expected a finite number"),
        ([1.0, 0.0, math.inf], "the score of document 2 is inf"),
        ([-math.inf, 0.0, 1.0], "the score of document 0 is -inf"),
        ([1.0, 0.0], "an array of shape (2,) for 3 documents"),
        ([[1.0, 0.0, 2.0]], "an array of shape (1, 3) for 3 documents"),
        ([], "an array of shape (0,) for 3 documents"),
        (1.0, "expected one score per document"),
        (["a", "b", "c"], "scores: cannot be made numbers"),
        ([[1.0], [1.0, 2.0]], "scores: cannot be made numbers"),
    ],
)
def test_scores_that_are_refused(scores, words):
    data = ranked([0, 1, 2])[1]
    with pytest.raises(rk.DataError) as refusal:
        rk.evaluate(scores, data)
    assert words in str(refusal.value)


def test_samples_are_warned_of(caplog):
    qid = ["12", "12", "12~1", "12~1"]
    data = rk.RankingData(X=np.zeros((4, 1)), y=[0, 1, 0, 1], qid=qid, top_grade=1)
    assert rk.evaluate([1, 0, 0, 1], data, "MRR").mean == {"MRR": 0.75}
    words = "the data hold samples, such as '12~1', which count as queries of their own"
    assert caplog.messages == [words]
    rk.evaluate([1, 0], data.originals)
    assert caplog.messages == [words]


@pytest.mark.parametrize("data", [{1.0}, None, [rk.polynomials(2, part="train")]])
def test_what_is_no_data_set_is_refused(data):
    with pytest.raises(rk.UsageError, match=r"evaluate: a \w+ is no data set; .* labels with qid"):
        rk.evaluate([1.0], data)


NAMES = ["NDCG@2", "ERR", "MAP(relevant=2)"]
Y, QID, SCORES = [0, 1, 2, 3, 0, 1], [7, 7, 7, 5, 5, 5], [0.3, -1.0, 0.2, 0.1, 0.9, 0.4]


@pytest.mark.parametrize("make", [list, np.array, pd.Series, pl.Series], ids=lambda f: f.__name__)
def test_labels_and_query_ids_are_enough(make):
    data = rk.RankingData(np.zeros((6, 1)), Y, QID)
    expected = rk.evaluate(SCORES, data, NAMES)
    result = rk.evaluate(make(SCORES), make(Y), qid=make(QID), measures=NAMES)
    assert result.mean == expected.mean
    assert result.qids.tolist() == [7, 5]
    assert rk.evaluate(SCORES, Y, NAMES, group_sizes=[3, 3]).mean == expected.mean
    higher = rk.evaluate(SCORES, Y, "ERR", qid=QID, top_grade=5).mean["ERR"]
    assert higher == rk.evaluate(SCORES, data, "ERR(top_grade=5)").mean["ERR(top_grade=5)"]


def test_documents_of_a_query_need_not_stand_together():
    expected = rk.evaluate(SCORES, Y, NAMES, qid=QID)
    order = [3, 0, 5, 1, 2, 4]
    scattered = [[values[k] for k in order] for values in (SCORES, Y, QID)]
    result = rk.evaluate(*scattered[:2], NAMES, qid=scattered[2])
    assert result.qids.tolist() == [5, 7]
    for name in NAMES:
        assert result.per_query[name].tolist() == expected.per_query[name].tolist()[::-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((SCORES, Y, {}), "labels need the queries .* neither .* give group_sizes=\\[6\\]"),
        ((SCORES, Y, {"qid": QID, "group_sizes": [6]}), "both of the two"),
        ((SCORES, Y, {"qid": QID[:5]}), "qid: .* for 6 documents; expected one per document"),
        ((SCORES[:5], Y, {"qid": QID}), r"scores: an array of shape \(5,\) for 6 documents"),
        ((Y, SCORES, {"qid": QID}), "label of document 1 is negative; expected scores first"),
        ((SCORES, [[y] for y in Y], {"qid": QID}), "for 6 documents; expected one each"),
        ((SCORES, list("abcdef"), {"qid": QID}), "y: cannot be made numbers"),
        ((SCORES, Y, {"qid": QID, "top_grade": 2}), "top_grade"),
        (
            (SCORES, rk.RankingData(np.zeros((6, 1)), Y, QID), {"qid": QID}),
            "the data set has qid already; leave it",
        ),
    ],
)
def test_labels_that_do_not_fit_are_refused(arguments, words):
    scores, data, options = arguments
    with pytest.raises(rk.RankiniteError, match=words):
        rk.evaluate(scores, data, **options)
