"""Sparse matrices: data sets and rankers do with them what they do with the same dense ones."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse

import rankinite as rk
from rankinite.core import memory
from rankinite.data.describe import describe
from rankinite.data.sparse import row_blocks, to_csr
from rankinite.trees.binning import BinnedData

rng = np.random.default_rng(4)
X = np.where(rng.random((120, 7)) < 0.3, rng.normal(size=(120, 7)).round(1), 0).astype(np.float32)
X += 0  # -0.0 is not stored in a sparse matrix
X[5, 2] = X[70, 2] = np.nan
X[:, 6] = 0
Y = np.clip(np.rint(2 * np.nan_to_num(X).sum(axis=1) + 1), 0, 4)
QID = np.repeat(np.arange(12), 10)
SMALL = {"n_trees": 4, "n_leaves": 5, "min_docs_in_leaf": 2, "random_state": 3}
FORMATS = [
    *(scipy.sparse.csr_matrix, scipy.sparse.csr_array, scipy.sparse.csc_array),
    scipy.sparse.coo_matrix,
]


def dense(**more) -> rk.RankingData:
    return rk.RankingData(X, Y, QID, **more)


def sparse(**more) -> rk.RankingData:
    return rk.RankingData(scipy.sparse.csr_array(X), Y, QID, **more)


class TestDataSets:
    def test_hold_what_the_dense_ones_hold(self):
        data = sparse()
        assert scipy.sparse.issparse(data.matrix)
        assert data.equals(dense())
        assert dense().equals(data)
        assert not data.equals(rk.RankingData(X + 1, Y, QID))
        assert pickle.loads(pickle.dumps(data)).equals(data)
        assert data[[3, 1]].equals(dense()[[3, 1]])
        assert data.select_features(["3", "1"]).equals(dense().select_features(["3", "1"]))
        assert [part.n_docs for part in data.split(3)] == [40, 40, 40]
        parts = [data[:5], rk.RankingData(X[50:], Y[50:], QID[50:])]
        assert rk.concat(parts).equals(data)
        assert describe(data).as_json() == describe(dense()).as_json()
        assert not scipy.sparse.issparse(data[2:].dense().matrix)
        assert data[2:].dense().equals(dense()[2:])

    @pytest.mark.parametrize("kind", FORMATS)
    def test_take_any_format_and_leave_it_alone(self, kind):
        matrix = kind(X.astype(np.float64))
        assert rk.RankingData(matrix, Y, QID).equals(dense())
        assert matrix.dtype == np.float64

    def test_entries_that_are_stored_twice_are_added(self):
        entries = ([1.0, 2.0, 5.0], ([0, 0, 1], [1, 1, 0]))
        data = rk.RankingData(scipy.sparse.coo_array(entries, shape=(2, 2)), [0, 1], [1, 1])
        np.testing.assert_array_equal(data.X.toarray(), [[0, 3], [5, 0]])
        # Out of order, and twice, in the caller's own arrays.
        mine = scipy.sparse.csr_array(([1.0, 2.0, 4.0], [1, 0, 1], [0, 3, 3]), shape=(2, 2))
        np.testing.assert_array_equal(to_csr(mine).toarray(), [[2, 5], [0, 0]])
        assert mine.data.tolist() == [1, 2, 4]

    def test_are_not_copied_if_they_fit(self):
        matrix = scipy.sparse.csr_array(X)
        assert np.shares_memory(rk.RankingData(matrix, Y, QID).matrix.data, matrix.data)

    @pytest.mark.parametrize("name", ["data.txt", "data.parquet"])
    def test_files(self, name, tmp_path):
        rk.save(sparse(), tmp_path / name)
        assert rk.load(tmp_path / name).equals(dense())

    def test_what_is_refused(self):
        for matrix, sentence in {
            "infinite": (np.where(X > 1, np.inf, X), "X: feature '.' of document .* is infinite"),
            "too large": (X.astype(np.float64) * 1e39, "too large for a 32-bit float"),
            "complex": (X.astype(complex), "cannot be made a matrix of numbers"),
            "empty": (X[:0], "there are no documents"),
        }.values():
            with pytest.raises(rk.DataError, match=sentence):
                rk.RankingData(scipy.sparse.csr_array(matrix), Y[: len(matrix)], QID[: len(matrix)])
        damaged = scipy.sparse.csr_array(X)
        damaged.indices[3] = 99
        with pytest.raises(rk.DataError, match="X: the sparse matrix is damaged"):
            rk.RankingData(damaged, Y, QID)

    def test_a_dense_matrix_that_does_not_fit(self, monkeypatch):
        data = sparse()
        monkeypatch.setattr(memory, "available_memory", lambda: 1000)
        sentence = (
            "LambdaRank: a dense matrix of 120 documents x 7 features takes 3.4 kB, and 1.0 kB are "
            "free; rankers of trees take sparse matrices as they are"
        )
        with pytest.raises(rk.DataError, match=sentence):
            rk.LambdaRank(n_epochs=1).fit(data)


class TestRankers:
    @pytest.mark.parametrize("kind", FORMATS)
    @pytest.mark.parametrize(
        "ranker", [rk.LambdaMART(**SMALL), rk.MART(**SMALL), rk.LambdaRank(n_epochs=2)]
    )
    def test_arrays(self, ranker, kind):
        expected = ranker.fit(X, Y, qid=QID).predict(X)
        ranker.fit(kind(X), Y, qid=QID)
        np.testing.assert_array_equal(ranker.predict(kind(X)), expected)
        np.testing.assert_array_equal(ranker.predict(X), expected)

    @pytest.mark.parametrize("ranker", [rk.LambdaMART(**SMALL), rk.LambdaRank(n_epochs=2)])
    def test_splits_of_data_sets_with_validation(self, ranker):
        histories, scores = [], []
        for data in (sparse(), dense()):
            train, valid, test = data.split(3)
            ranker.fit(train, valid=valid)
            histories.append(ranker.history_)
            scores.append(ranker.predict(test))
        assert histories[0] == histories[1]
        np.testing.assert_array_equal(*scores)

    def test_documents_of_a_query_may_stand_apart(self):
        order = rng.permutation(120)
        model = rk.LambdaMART(**SMALL).fit(X[order], Y[order], qid=QID[order])
        rows = scipy.sparse.csr_array(X[order])
        again = rk.LambdaMART(**SMALL).fit(rows, Y[order], qid=QID[order])
        np.testing.assert_array_equal(again.predict(X), model.predict(X))

    def test_many_documents_are_scored_block_by_block(self, monkeypatch):
        model = rk.LambdaMART(**SMALL).fit(dense())
        many = np.tile(X, (5, 1))
        monkeypatch.setattr("rankinite.data.sparse.BLOCK_BYTES", 100)
        assert len(list(row_blocks(600, 7))) > 9
        np.testing.assert_array_equal(
            model.predict(scipy.sparse.csr_array(many)), model.predict(many)
        )
        for staged, expected in zip(
            model.staged_predict(scipy.sparse.csr_array(many)),
            model.staged_predict(many),
            strict=True,
        ):
            np.testing.assert_array_equal(staged, expected)

    def test_a_checkpoint_knows_its_data(self, tmp_path):
        path = tmp_path / "fit.checkpoint"
        rk.LambdaMART(**SMALL | {"n_trees": 2}).fit(sparse(), checkpoint=path)
        resumed = rk.LambdaMART(**SMALL).fit(sparse(), checkpoint=path)
        whole = rk.LambdaMART(**SMALL).fit(dense())
        np.testing.assert_array_equal(resumed.predict(X), whole.predict(X))

    def test_ensembles_and_score_features(self):
        members = [rk.LambdaMART(**SMALL).fit(dense()), rk.MART(**SMALL).fit(dense())]
        rows = scipy.sparse.csr_array(X)
        for fit in (
            lambda data: rk.Average(members).fit(data),
            lambda data: rk.WithScoreFeatures(
                rk.MART(**SMALL), rk.LambdaMART(**SMALL), folds=2
            ).fit(data),
        ):
            expected = fit(dense()).predict(X, QID)
            np.testing.assert_array_equal(fit(sparse()).predict(rows, QID), expected)
            np.testing.assert_array_equal(fit(sparse()).predict(sparse()), expected)


@pytest.mark.parametrize("most_bins", [2, 5, 255])
@pytest.mark.parametrize("seed", range(3))
def test_bins_are_those_of_the_dense_matrix(most_bins, seed):
    draw = np.random.default_rng(seed)
    values = draw.normal(size=(300, 11)).astype(np.float32).round(draw.integers(0, 3))
    values[draw.random(values.shape) < draw.random(11)] = 0
    values[draw.random(values.shape) < 0.05] = np.nan
    values[:, 3], values[:, 4] = 0, np.nan
    values[:, 5] = np.abs(values[:, 5])
    values[:, 6] = -np.abs(values[:, 6])
    rows, docs = draw.choice(300, 200, replace=False), draw.choice(300, 400)
    names = [str(j) for j in range(11)]
    expected = BinnedData.make(values, names, rows=rows, docs=docs, most_bins=most_bins)
    matrix = to_csr(scipy.sparse.csr_array(values))
    binned = BinnedData.make(matrix, names, rows=rows, docs=docs, most_bins=most_bins)
    for name in ("bundled", "columns", "cuts", "n_bins", "n_codes"):
        np.testing.assert_array_equal(getattr(binned.main, name), getattr(expected.main, name))
    for columns, others in zip(
        binned.columns_of(matrix, docs), expected.columns_of(values, docs), strict=True
    ):
        np.testing.assert_array_equal(columns, others)


def test_bins_that_do_not_fit_into_memory(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 1000)
    # (2 bytes x 120 documents + 4 bytes x 256 cut points) x 7 columns
    sentence = "BinnedData: training on the bins of 120 documents x 7 features takes 8.8 kB, and"
    with pytest.raises(rk.DataError, match=sentence):
        rk.LambdaMART(**SMALL).fit(sparse())
