"""Documents without a label of the data set's own, which have one in another source."""

from __future__ import annotations

import json
import pickle
from io import StringIO

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rankinite as rk
from rankinite.core.errors import FileFormatError
from rankinite.data.describe import describe
from rankinite.data.ranking_data import RankingData

NAN = float("nan")
QID = [1, 1, 1, 1, 2, 2, 3, 3, 3]
Y = [0, NAN, 2, NAN, NAN, NAN, NAN, 1, 1]
CLICKS = [0.5, 0.25, NAN, 0, 1, 0, 0.5, NAN, 0.75]


def unjudged(**more) -> RankingData:
    """Return queries 1, 2 and 3: with two grades, with none, and with one grade only."""
    X = np.arange(18.0).reshape(9, 2)
    return RankingData(X, Y, QID, labels={"clicks": CLICKS}, **more)


def learnable() -> tuple[RankingData, RankingData]:
    """Return a set that lacks labels, and one that has the same labels under a name."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(120, 3))
    grades = np.clip(np.rint(X[:, 0] + 0.5 * rng.normal(size=120) + 1.5), 0, 4)
    judged = np.where(rng.random(120) < 0.3, NAN, grades)
    judged[:10] = NAN
    qid, rates = np.repeat(np.arange(12), 10), rng.random(120)
    unnamed = RankingData(X, judged, qid, labels={"clicks": rates}, top_grade=4)
    named = RankingData(X, grades, qid, labels={"clicks": rates, "judged": judged}, top_grade=4)
    return unnamed, named


class TestRankingData:
    def test_holds_nan_where_another_source_has_a_label(self):
        data = unjudged()
        np.testing.assert_array_equal(data.y, Y)
        np.testing.assert_array_equal(data.all_labels[None], Y)
        assert data.top_grade == 2
        assert repr(data) == "<RankingData: 3 queries, 9 documents, 2 features, top grade 2>"

    @pytest.mark.parametrize("sources", [{}, {"clicks": [1, NAN, 1]}, {"a": [NAN] * 3}])
    def test_refuses_documents_without_any_label(self, sources):
        sentence = (
            "^y: the label of document 1 is nan, and no other source has one; expected a number$"
        )
        with pytest.raises(rk.DataError, match=sentence):
            RankingData([[1], [2], [3]], [0, NAN, 1], [1, 1, 1], labels=sources)

    def test_one_source_of_several_is_enough(self):
        sources = {"a": [NAN, 1, NAN], "b": [0, NAN, NAN]}
        assert RankingData([[1], [2], [3]], [NAN, NAN, 1], [1, 1, 1], labels=sources).n_docs == 3

    def test_all_labels_may_be_those_of_another_source(self):
        data = RankingData([[1], [2]], None, [1, 1], labels={"clicks": [0, 1]}, top_grade=4)
        assert data.is_labelled
        assert data.top_grade == 4
        sentence = r"the data set has no labels in y, which NDCG@10 needs; .* NDCG@10\[clicks\]"
        with pytest.raises(rk.DataError, match=sentence):
            rk.LambdaMART("NDCG@10").fit(data)

    @pytest.mark.parametrize(("label", "sentence"), [(np.inf, "is inf; exp"), (-1, "is -1; exp")])
    def test_what_is_no_label_stays_refused(self, label, sentence):
        with pytest.raises(rk.DataError, match=f"y: the label of document 1 {sentence}"):
            RankingData([[1], [2]], [NAN, label], [1, 1], labels={"clicks": [0, 1]})

    def test_the_top_grade_is_compared_with_known_labels(self):
        assert unjudged(top_grade=4).top_grade == 4
        with pytest.raises(rk.DataError, match="1 is below the label 2 of document 2"):
            unjudged(top_grade=1)

    def test_grouping_moves_missing_labels_along(self):
        data = RankingData(
            [[0], [1], [2]], [NAN, 1, 2], [1, 2, 1], labels={"c": [5, NAN, 6]}, group=True
        )
        np.testing.assert_array_equal(data.y, [NAN, 2, 1])

    def test_equality_and_pickling(self):
        data = unjudged()
        assert data.equals(unjudged())
        assert pickle.loads(pickle.dumps(data)).equals(data)
        other = RankingData(data.X, np.nan_to_num(data.y), QID, labels={"clicks": CLICKS})
        assert not data.equals(other)

    def test_parts_may_lack_all_labels_and_come_together_again(self):
        data = unjudged()
        assert np.isnan(data[1].y).all()
        assert data[1].top_grade == 2
        assert rk.concat([data[[0, 1]], data[[2]]]).equals(data)
        assert sorted(part.n_queries for part in data.split(3)) == [1, 1, 1]
        for train, valid in data.folds(3):
            labelled = (~np.isnan(train.y)).sum() + (~np.isnan(valid.y)).sum()
            assert labelled == 4
        assert [query.n_docs for query in data] == [4, 2, 3]

    def test_other_sources_must_not_take_the_last_label_away(self):
        data = unjudged()
        with pytest.raises(rk.DataError, match="the label of document 1 is nan, and no other"):
            data.with_labels({"clicks": [1, NAN, 1, 1, 1, 1, 1, 1, 1]})
        dwell = [NAN if rate == rate else 1.0 for rate in CLICKS]
        more = data.with_labels({"dwell": dwell})
        assert list(more.labels) == ["clicks", "dwell"]
        with pytest.raises(rk.DataError, match="the label of document 1 is nan, and no other"):
            more.with_labels({"clicks": dwell})
        assert data.with_labels({"clicks": [1] * 9}).n_docs == 9


class TestDescriptions:
    def test_count_labelled_documents_only(self):
        description = describe(unjudged())
        assert description.n_unlabelled == 5
        assert description.grades == {0: 1, 1: 2, 2: 1}
        # Query 2 has no label at all, query 3 the label 1 only.
        assert (description.without_relevant, description.single_label) == (1, 2)
        assert description.sources == {"clicks": 7}
        assert description.as_json()["documents_without_label"] == 5

    def test_zeros_and_missing_labels_are_nothing_relevant(self):
        data = RankingData([[1], [2], [3]], [0, NAN, 1], [1, 1, 2], labels={"c": [1, 1, 1]})
        description = describe(data)
        assert (description.without_relevant, description.single_label) == (1, 2)

    def test_the_command_shows_them_if_there_are_any(self, call):
        rk.save(unjudged(), "some.parquet")
        rk.save(RankingData([[1], [2]], [0, 1], [1, 1]), "all.parquet")
        printed = call("data", "describe", "some.parquet", "all.parquet")
        lines = [line.split() for line in printed.splitlines()]
        assert ["Documents", "without", "a", "label", "5", "0"] in lines
        assert ["1", "50.00%", "50.00%"] in lines
        assert ["2", "25.00%", "0.00%"] in lines
        assert "without a label" not in call("data", "describe", "all.parquet")
        (description,) = json.loads(call("data", "describe", "all.parquet", "--json"))["sets"]
        assert description["documents_without_label"] == 0


@given(st.lists(st.sampled_from([0.0, 1.0, NAN]), min_size=4, max_size=9), st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_samples_teach_by_their_labelled_documents(labels, seed):
    y = [0.0, *labels]
    data = RankingData(np.zeros((len(y), 1)), y, [7] * len(y), labels={"c": [1] * len(y)})
    # No document lacks a label here, and so no sample is left out: all labels differ.
    plain = RankingData(np.zeros((len(y), 1)), np.arange(len(y)), [7] * len(y))
    more, every = rk.augment(data, 0.5, 6, seed=seed), rk.augment(plain, 0.5, 6, seed=seed)
    samples = [(qid, query.y.astype(int)) for qid, query in zip(every.qids, every, strict=True)]
    taught = [
        qid
        for qid, docs in samples[1:]
        if len({y[doc] for doc in docs if not np.isnan(y[doc])}) > 1
    ]
    assert more.qids.tolist() == ["7", *taught]


class TestFiles:
    def test_parquet_there_and_back(self, tmp_path):
        data = unjudged(top_grade=4, doc_ids=list("abcdefghi"))
        rk.save(data, tmp_path / "data.parquet")
        assert rk.load(tmp_path / "data.parquet").equals(data)

    def test_parquet_without_the_source_is_refused(self, tmp_path):
        rk.save(unjudged(), tmp_path / "data.parquet")
        with pytest.raises(FileFormatError, match="the label of document 1 is nan, and no oth"):
            rk.load(tmp_path / "data.parquet", labels=[])

    def test_a_part_without_labels_in_y_has_no_column_of_them(self, tmp_path):
        rk.save(unjudged()[1], tmp_path / "data.parquet")
        assert "label" not in pq.read_schema(tmp_path / "data.parquet").names
        assert rk.load(tmp_path / "data.parquet").equals(unjudged()[1])

    @pytest.mark.parametrize("kind", [pa.int64(), pa.float64(), pa.uint8()])
    def test_nulls_of_frames_and_files_are_no_labels(self, kind, tmp_path):
        table = pa.table(
            {
                "qid": [1, 1, 2],
                "label": pa.array([None, 2, 0], kind),
                "clicks": pa.array([0.5, None, 1.0]),
                "a": [1.0, 2.0, 3.0],
            }
        )
        expected = RankingData(
            [[1], [2], [3]],
            [NAN, 2, 0],
            [1, 1, 2],
            labels={"clicks": [0.5, NAN, 1]},
            feature_names=["a"],
        )
        assert rk.from_frame(table, labels=["clicks"]).equals(expected)
        assert rk.from_frame(table.to_pandas(), labels=["clicks"]).equals(expected)
        pq.write_table(table, tmp_path / "data.parquet")
        assert rk.load(tmp_path / "data.parquet", labels=["clicks"]).equals(expected)
        with pytest.raises(rk.DataError, match="the label of document 0 is nan, and no other"):
            rk.from_frame(table)

    @pytest.mark.parametrize("name", ["data.txt", "data.txt.gz"])
    def test_text_cannot_hold_a_missing_label(self, name, tmp_path):
        sentence = f"{name}: document 1 has no label; a line of text needs one: save as Parquet"
        with pytest.raises(rk.DataError, match=sentence):
            rk.save(unjudged(), tmp_path / name)
        assert list(tmp_path.iterdir()) == []

    def test_the_command_that_converts_says_so(self, call):
        rk.save(unjudged(), "data.parquet")
        printed = call("data", "convert", "data.parquet", "data.txt", code=1)
        assert "data.txt: document 1 has no label" in printed

    def test_text_with_nan_for_a_label_stays_an_error(self, tmp_path):
        (tmp_path / "data.txt").write_text("nan qid:1 1:5 #clicks = 1\n1 qid:1 1:6 #clicks = 0\n")
        with pytest.raises(FileFormatError, match=r"data\.txt:1"):
            rk.load(tmp_path / "data.txt", labels=["clicks"])

    def test_qrels_hold_judged_documents(self, tmp_path):
        rk.save_qrels(unjudged(), tmp_path / "qrels")
        qrels = pd.read_csv(StringIO((tmp_path / "qrels").read_text()), sep=" ", header=None)
        assert qrels.values.tolist() == [[1, 0, 1, 0], [1, 0, 3, 2], [3, 0, 2, 1], [3, 0, 3, 1]]

    def test_qrels_blame_fractions_and_not_missing_labels(self, tmp_path):
        data = RankingData([[1], [2]], [NAN, 0.5], [1, 1], labels={"clicks": [1, 1]})
        with pytest.raises(rk.DataError, match=r"document 1 has label 0\.5"):
            rk.save_qrels(data, tmp_path / "qrels")


def test_simulated_users_need_grades():
    with pytest.raises(rk.DataError, match="clicks: document 1 has no label; users click by grad"):
        rk.clicks(unjudged())


class TestEvaluation:
    @pytest.mark.parametrize("measure", ["NDCG", "NDCG@3", "DCG", "ERR", "MAP", "MRR", "P@3"])
    @pytest.mark.parametrize("drop", [False, True])
    def test_is_that_of_a_named_source_with_the_same_gaps(self, measure, drop):
        unnamed, named = learnable()
        scores = np.random.default_rng(5).normal(size=unnamed.n_docs)
        evaluation = rk.evaluate(scores, unnamed, measure, drop_single_label=drop)
        other = rk.evaluate(scores, named, f"{measure}[judged]", drop_single_label=drop)
        np.testing.assert_array_equal(
            evaluation.per_query[measure], other.per_query[f"{measure}[judged]"]
        )

    def test_unlabelled_documents_are_worth_nothing_and_keep_their_rank(self):
        values = rk.evaluate(np.arange(9.0)[::-1], unjudged(), "DCG").per_query["DCG"]
        # Grade 2 at rank 3; nothing; grade 1 at ranks 2 and 3.
        ranks = 1 / np.log2([3, 4])
        np.testing.assert_allclose(values[[0, 2]], [3 / np.log2(4), ranks.sum()])

    def test_comparison_drops_queries_with_one_label(self):
        unnamed, named = learnable()
        rankings = {"a": unnamed.X[:, 0], "b": unnamed.X[:, 1]}
        comparison = rk.compare(rankings, unnamed, "NDCG", drop_single_label=True)
        other = rk.compare(rankings, named, "NDCG[judged]", drop_single_label=True)
        # The first query has no label.
        assert comparison.n_queries == {"NDCG": 11}
        np.testing.assert_array_equal(comparison.per_query["NDCG"], other.per_query["NDCG[judged]"])


class TestRankers:
    @pytest.mark.parametrize("measure", ["NDCG{}", "NDCG@3{} > CNDCG@3[clicks]"])
    @pytest.mark.parametrize(
        "make",
        [
            lambda measure: rk.LambdaMART(measure, n_trees=4, n_leaves=4, random_state=0),
            lambda measure: rk.LambdaRank(measure, n_epochs=2, random_state=0),
        ],
        ids=["LambdaMART", "LambdaRank"],
    )
    def test_learn_as_from_a_named_source(self, make, measure):
        unnamed, named = learnable()
        scores = make(measure.format("")).fit(unnamed, valid=unnamed).predict(unnamed)
        other = make(measure.format("[judged]")).fit(named, valid=named).predict(named)
        assert np.ptp(scores) > 0
        np.testing.assert_array_equal(scores, other)

    def test_mart_predicts_the_mean_of_known_labels(self):
        data = RankingData(
            X=[[0], [0], [0], [1], [1], [1]],
            y=[0, 1, NAN, 3, 4, NAN],
            qid=[1] * 6,
            labels={"clicks": [1] * 6},
        )
        mart = rk.MART(
            preset="paper",
            n_trees=1,
            n_leaves=2,
            learning_rate=1,
            min_docs_in_leaf=1,
            docs_per_tree=1.0,
        )
        np.testing.assert_allclose(mart.fit(data).predict([[0], [1]]), [0.5, 3.5])

    def test_mcrank_starts_from_the_classes_of_known_labels(self):
        data = RankingData(
            X=[[0]] * 5, y=[0, 1, 1, NAN, NAN], qid=[1] * 5, labels={"clicks": [1] * 5}
        )
        scores = rk.McRank(n_trees=1).fit(data).predict([[0]], n_trees=0)
        # One document of class 0 and two of class 1, and one more of each for smoothing.
        np.testing.assert_allclose(scores, 3 / 5)

    def test_arrays_have_no_other_source(self):
        sentence = "y: the label of document 1 is nan, and no other source has one"
        with pytest.raises(rk.DataError, match=sentence):
            rk.LambdaMART(n_trees=1).fit([[0], [1]], [0, NAN], qid=[1, 1])


class TestCombinations:
    def test_the_best_mix_is_that_of_a_named_source(self):
        unnamed, named = learnable()
        mix = rk.best_mix(unnamed.X[:, 0], unnamed.X[:, 1], unnamed, "NDCG")
        other = rk.best_mix(unnamed.X[:, 0], unnamed.X[:, 1], named, "NDCG[judged]")
        assert mix.alpha == other.alpha
        assert mix.interval == other.interval

    def test_stacked_learns_as_from_a_named_source(self):
        unnamed, named = learnable()
        scores = {"a": unnamed.X[:, 0], "b": unnamed.X[:, 1]}
        unnamed_scores, named_scores = (
            rk.Stacked(ranker=rk.LambdaRank(measure, hidden=0, n_epochs=2, random_state=0))
            .fit(data, member_scores=scores)
            .predict(None, member_scores=scores)
            for data, measure in ((unnamed, "NDCG"), (named, "NDCG[judged]"))
        )
        np.testing.assert_array_equal(unnamed_scores, named_scores)


@pytest.mark.parametrize(
    "model",
    [
        rk.MART(n_trees=5, n_leaves=4, min_docs_in_leaf=2, docs_per_tree=1.0, queries_per_tree=1.0),
        rk.McRank(n_trees=3, n_leaves=4, min_docs_in_leaf=2, docs_per_tree=1.0),
    ],
    ids=["MART", "McRank"],
)
def test_pointwise_rankers_leave_unjudged_documents_out(model):
    whole = rk.polynomials(12, part="train", n_features=4, n_docs=8)
    judged = np.random.default_rng(5).random(whole.n_docs) < 0.7
    judged[:: whole.n_docs // 12] = True  # each query has one
    some = RankingData(
        whole.X,
        np.where(judged, whole.y, NAN),
        whole.qid,
        labels={"clicks": np.ones(whole.n_docs)},
        top_grade=whole.top_grade,
    )
    without = RankingData(
        whole.X[judged], whole.y[judged], whole.qid[judged], top_grade=whole.top_grade
    )
    expected = model.fit(without).predict(whole)
    np.testing.assert_allclose(model.fit(some).predict(whole), expected, rtol=1e-9, atol=1e-12)
    weighted = model.fit(some, sample_weight=np.full(whole.n_docs, 2.0)).predict(whole)
    np.testing.assert_allclose(weighted, expected, rtol=1e-9, atol=1e-12)
