"""The same model whatever the threads, the index into a matrix, or who made the bins."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

import rankinite as rk
from tests import processes
from tests.rankers.cases import (
    CASES,
    SMALL,
    TEST,
    TRAIN,
    VALID,
    WHOLE,
    bytes_of,
    copied,
    every_case,
    every_case_of_trees,
)

PARTS = TRAIN.split(3, seed=4)
REPEATED = np.random.default_rng(7).integers(0, TRAIN.n_docs, 60)


def repeated_documents() -> rk.RankingData:
    """Return a set whose documents stand several times in the index, as augmentation makes it."""
    offsets = np.array([0, 7, 20, 33, 60])
    return TRAIN.unchecked(
        matrix=TRAIN.matrix,
        rows=REPEATED,
        y=TRAIN.y[REPEATED],
        offsets=offsets,
        qids=np.arange(4),
        labels={},
        query_weight=None,
        feature_names=TRAIN.feature_names,
        top_grade=4.0,
        doc_id_column=None,
        comment_column=None,
    )


INDEXED = {
    "slice": TRAIN[3:9],
    "backwards": TRAIN[::-1],
    "picked": TRAIN[[5, 2, 8, 11]],
    "mask": TRAIN[np.arange(12) % 3 > 0],
    "concat": rk.concat([PARTS[2], PARTS[0]]),
    "repeated": repeated_documents(),
}


@pytest.mark.parametrize("data", INDEXED.values(), ids=INDEXED)
@every_case
def test_an_index_equals_the_copied_out_data(case, data):
    assert data.rows is not None
    copy = copied(data)
    assert copy.rows is None
    valid = VALID[[4, 1, 2]]
    assert bytes_of(case.fit(data, valid=valid)) == bytes_of(case.fit(copy, valid=copied(valid)))


@every_case_of_trees
def test_samples_of_queries_equal_the_copied_out_data(case):
    """The ids tell which queries are samples of one, and these are drawn together."""
    qids = np.array(["5", "5~1", "x~y~12", "x~y"])
    data = repeated_documents().replace(qids=qids)
    together = bytes_of(case.fit(data, changes={"queries_per_tree": 0.5}))
    assert together == bytes_of(case.fit(copied(data), changes={"queries_per_tree": 0.5}))
    one_by_one = case.fit(repeated_documents(), changes={"queries_per_tree": 0.5})
    assert together != bytes_of(one_by_one)


@every_case
def test_an_index_equals_the_copied_out_data_with_weights(case):
    data = repeated_documents().with_query_weight([1.0, 0.0, 2.5, 0.5])
    assert bytes_of(case.fit(data)) == bytes_of(case.fit(copied(data)))


@every_case_of_trees
def test_bins_are_shared_by_splits(case):
    """With few values a feature all bins are exact, whoever made them: the bytes are the same."""
    coarse = copied(TRAIN, X=np.round(TRAIN.X * 2))
    binned = rk.BinnedData.of(coarse)
    for part in (coarse[:7], coarse[5:]):
        assert all(set(np.unique(part.X[:, j])) == set(np.unique(coarse.X[:, j])) for j in range(4))
        shared = case.fit(part, binned=binned)
        assert bytes_of(shared) == bytes_of(case.fit(part))
    assert bytes_of(case.fit(coarse, binned=binned)) == bytes_of(case.fit(coarse))


def test_bins_of_another_matrix_are_refused():
    model = rk.LambdaMART(**SMALL)
    with pytest.raises(rk.UsageError, match="binned has 48 rows, and the matrix of the data set"):
        model.fit(TRAIN, binned=rk.BinnedData.of(VALID))
    others = rk.BinnedData.of(copied(TRAIN, feature_names=["a", "2", "3", "4"]))
    with pytest.raises(rk.DataError, match="has 'a' besides"):
        model.fit(TRAIN, binned=others)


def test_fewer_bins_are_another_model():
    fine, coarse = (rk.MART(**SMALL | WHOLE, most_bins=n).fit(TRAIN, valid=VALID) for n in (255, 3))
    assert (fine.predict(TEST) != coarse.predict(TEST)).any()
    for tree in coarse.forest_.trees:
        for j in range(4):
            assert len(np.unique(tree.threshold[tree.feature == j])) <= 2


SCRIPT = """
import hashlib, sys
from rankinite.core.threads import n_threads
import rankinite as rk

assert n_threads() == int(sys.argv[1])
train = rk.polynomials(150, part="train", n_features=12, n_docs=20)
valid = rk.polynomials(20, part="valid", n_features=12, n_docs=20)
params = {"n_trees": 5, "n_leaves": 9, "min_docs_in_leaf": 3, "docs_per_tree": 0.6}
digest = hashlib.sha256()
for ranker in (
    rk.LambdaMART("NDCG", **params),
    rk.LambdaMART("ERR", criterion="newton", **params),
    rk.MART(**params),
    rk.McRank(**params),
    rk.LambdaRank("NDCG", n_epochs=3),
    rk.LambdaRank("ERR", hidden=(9, 5), n_epochs=3, queries_per_step=50),
    rk.LambdaRank("RankNet", hidden=0, n_epochs=3, optimiser="sgd", queries_per_step="all"),
):
    model = ranker.fit(train[2:], valid=valid)
    model.save("threads.rk")
    with open("threads.rk", "rb") as file:
        digest.update(file.read())
    digest.update(model.predict(train).tobytes())
print(digest.hexdigest())
"""


def test_the_number_of_threads_does_not_matter():
    digests = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT, str(n)],
            env=os.environ | {"RANKINITE_THREADS": str(n)},
            check=True,
            capture_output=True,
            text=True,
            timeout=processes.LIMIT,
        ).stdout
        for n in (1, 3)
    }
    assert len(digests) == 1
    assert len(digests.pop().strip()) == len(hashlib.sha256().hexdigest())


def test_the_order_of_features_does_not_matter_much():
    """The same trees by name, as long as no two features split equally well."""
    turned = TRAIN.select_features(["4", "2", "1", "3"])
    params = SMALL | WHOLE
    first, second = rk.MART(**params).fit(TRAIN), rk.MART(**params).fit(turned)
    expected = CASES["squared"].predict(first)
    scores = second.predict(TEST.select_features(["4", "2", "1", "3"]))
    np.testing.assert_allclose(scores, expected, rtol=1e-12)
