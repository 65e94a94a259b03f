"""The same numbers as trec_eval, gdeval, MS MARCO's script and scikit-learn."""

from __future__ import annotations

import re
import shutil

import ir_measures
import numpy as np
import pytest
import pytrec_eval
from ir_measures import AP, ERR, RR, Judged, P, R, Success, nDCG
from sklearn.metrics import dcg_score, ndcg_score

import rankinite as rk

# gdeval prints five digits.
FIVE_DIGITS = 0.5e-5 + 1e-9
EXPONENTIAL = {grade: 2**grade - 1 for grade in range(5)}


@pytest.fixture(scope="module")
def data() -> rk.RankingData:
    """Tiered queries of 1 to 60 documents; one in five has no relevant document."""
    rng = np.random.default_rng(1)
    sizes = np.concatenate([[1, 2], rng.integers(1, 61, size=80)])
    grades = rng.choice(5, size=sizes.sum(), p=[0.5, 0.2, 0.15, 0.1, 0.05])
    grades *= np.repeat(np.arange(len(sizes)) % 5 > 0, sizes)
    return rk.RankingData(X=np.zeros((len(grades), 1)), y=grades, group_sizes=sizes, top_grade=4)


@pytest.fixture(scope="module")
def scores(data) -> np.ndarray:
    """Scores without ties: trec_eval breaks them by document id."""
    return np.random.default_rng(2).permutation(data.n_docs).astype(np.float64)


@pytest.fixture(scope="module")
def qrels(data) -> dict[str, dict[str, int]]:
    return nested(data, data.y.astype(int).tolist())


@pytest.fixture(scope="module")
def run(data, scores) -> dict[str, dict[str, float]]:
    return nested(data, scores.tolist())


def nested(data: rk.RankingData, values: list) -> dict[str, dict]:
    table: dict[str, dict] = {str(qid): {} for qid in data.qids}
    for doc, (qid, value) in enumerate(zip(data.qid, values, strict=True)):
        table[str(qid)][f"d{doc}"] = value
    return table


@pytest.mark.parametrize(
    ("ours", "theirs", "level"),
    [
        ("NDCG(empty=0, gain=linear)", "ndcg", 1),
        ("NDCG(empty=0, gain=linear)@1", "ndcg_cut_1", 1),
        ("NDCG(empty=0, gain=linear)@10", "ndcg_cut_10", 1),
        ("NDCG(empty=0, gain=linear)@1000", "ndcg_cut_1000", 1),
        ("MAP(empty=0)", "map", 1),
        ("MAP(empty=0, relevant=2)", "map", 2),
        ("MAP(empty=0)@5", "map_cut_5", 1),
        ("MAP(empty=0, relevant=3)@10", "map_cut_10", 3),
        ("MRR(empty=0)", "recip_rank", 1),
        ("MRR(empty=0, relevant=4)", "recip_rank", 4),
        ("P@1", "P_1", 1),
        ("P@10", "P_10", 1),
        ("P(relevant=2)@100", "P_100", 2),
        ("Recall(empty=0)@5", "recall_5", 1),
        ("Recall(empty=0, relevant=2)@10", "recall_10", 2),
        ("Hit(empty=0)@1", "success_1", 1),
        ("Hit(empty=0, relevant=3)@5", "success_5", 3),
    ],
)
def test_trec_eval(data, scores, qrels, run, ours, theirs, level):
    name = re.sub(r"_(\d+)$", r".\1", theirs)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {name}, relevance_level=level)
    results = evaluator.evaluate(run)
    expected = [results[str(qid)][theirs] for qid in data.qids]
    result = rk.evaluate(scores, data, ours)
    assert result.n_queries == {ours: data.n_queries} == {ours: len(results)}
    np.testing.assert_allclose(result.per_query[ours], expected, rtol=0, atol=1e-12)
    assert 0.05 < result.mean[ours] < 0.95
    assert result.mean[ours] == pytest.approx(np.mean(expected), abs=1e-12)


def test_trec_eval_without_the_queries_that_have_no_relevant_document(data, scores, qrels, run):
    """Leaving such queries out of the judgements is what ``empty=skip``, the default, does."""
    judged = {qid: grades for qid, grades in qrels.items() if any(grades.values())}
    results = pytrec_eval.RelevanceEvaluator(judged, {"map", "recip_rank"}).evaluate(run)
    result = rk.evaluate(scores, data, "MAP, MRR")
    assert result.n_queries == {"MAP": len(judged), "MRR": len(judged)}
    assert len(judged) < data.n_queries
    for ours, theirs in (("MAP", "map"), ("MRR", "recip_rank")):
        expected = np.mean([values[theirs] for values in results.values()])
        assert result.mean[ours] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("ours", "theirs", "tolerance"),
    [
        ("NDCG(empty=0, gain=linear)@10", nDCG @ 10, 1e-12),
        ("NDCG(empty=0)", nDCG(gains=EXPONENTIAL), 1e-12),
        ("NDCG(empty=0)@10", nDCG(gains=EXPONENTIAL) @ 10, 1e-12),
        ("NDCG(empty=0)@5", nDCG(dcg="exp-log2") @ 5, FIVE_DIGITS),
        ("NDCG(empty=0)@20", nDCG(dcg="exp-log2") @ 20, FIVE_DIGITS),
        ("ERR@1", ERR @ 1, FIVE_DIGITS),
        ("ERR@10", ERR @ 10, FIVE_DIGITS),
        ("ERR", ERR @ 100, FIVE_DIGITS),
        ("MAP(empty=0)", AP, 1e-12),
        ("MAP(empty=0, relevant=2)@10", AP(rel=2) @ 10, 1e-12),
        ("MRR(empty=0, relevant=2)", RR(rel=2), 1e-12),
        ("MRR(empty=0)@3", RR @ 3, 1e-12),
        ("P(relevant=2)@7", P(rel=2) @ 7, 1e-12),
        ("Recall(empty=0, relevant=2)@7", R(rel=2) @ 7, 1e-12),
        ("Hit(empty=0, relevant=3)@4", Success(rel=3) @ 4, 1e-12),
        ("NDCG(empty=0, gain=[0,1,1,4,9])@10", nDCG(gains={2: 1, 3: 4, 4: 9}) @ 10, 1e-12),
    ],
    ids=str,
)
def test_ir_measures(data, scores, qrels, run, ours, theirs, tolerance):
    if tolerance == FIVE_DIGITS and shutil.which("perl") is None:
        pytest.skip("gdeval is a Perl script, and there is no perl")
    results = {m.query_id: m.value for m in ir_measures.iter_calc([theirs], qrels, run)}
    expected = [results[str(qid)] for qid in data.qids]
    values = rk.evaluate(scores, data, ours).per_query[ours]
    np.testing.assert_allclose(values, expected, rtol=0, atol=tolerance)
    assert 0.05 < values.mean() < 0.95


def test_judged_documents_of_ir_measures(data, scores, qrels, run):
    """A document of which the judgements say nothing is one without a label here."""
    known = np.random.default_rng(3).random(data.n_docs) < 0.6
    source = rk.RankingData(
        data.X, data.y, data.qid, labels={"some": np.where(known, data.y, np.nan)}
    )
    judged = {
        str(qid): {f"d{doc}": int(data.y[doc]) for doc in range(begin, end) if known[doc]}
        for qid, begin, end in zip(data.qids, data.offsets[:-1], data.offsets[1:], strict=True)
    }
    results = {m.query_id: m.value for m in ir_measures.iter_calc([Judged @ 10], judged, run)}
    expected = [results.get(str(qid), 0.0) for qid in data.qids]
    values = rk.evaluate(scores, source, "Judged@10[some]").per_query["Judged@10[some]"]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)
    assert 0.2 < values.mean() < 0.8


@pytest.mark.parametrize("depth", [None, 1, 3, 10, 100])
@pytest.mark.parametrize("n_scores", [1, 2, 5, 20])
def test_scikit_learn_with_ties(data, depth, n_scores):
    """scikit-learn averages over tied documents too; it wants two documents at least."""
    larger = data[data.sizes >= 2]
    scores = np.random.default_rng(n_scores).integers(n_scores, size=larger.n_docs) / 3.0
    at = "" if depth is None else f"@{depth}"
    names = [f"NDCG(empty=0, gain=linear){at}", f"DCG(gain=linear){at}"]
    result = rk.evaluate(scores, larger, names)
    for name, theirs in zip(names, (ndcg_score, dcg_score), strict=True):
        expected = [
            theirs(larger.y[None, start:end], scores[None, start:end], k=depth)
            for start, end in zip(larger.offsets[:-1], larger.offsets[1:], strict=True)
        ]
        np.testing.assert_allclose(result.per_query[name], expected, rtol=1e-12, atol=1e-12)
        assert max(expected) > 0.5
