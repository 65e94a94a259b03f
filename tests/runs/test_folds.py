import numpy as np
import pytest

from rankinite.runs.folds import Cut, Fold, Stage
from tests.runs.cases import micro_data

DATA = micro_data(50)
FIRST = Stage("first", 6, 10, 0)
FINAL = Stage("final", 10, 10, 0)


def ids(data):
    return set(data.qids.tolist())


def test_the_stages_are_the_papers():
    # Parts of five queries each: 01_06 has thirty of them, 07_10 twenty.
    assert len(ids(FIRST.inside(DATA))) == 30
    assert len(ids(FIRST.outside(DATA))) == 20
    assert ids(FIRST.inside(DATA)).isdisjoint(ids(FIRST.outside(DATA)))
    assert ids(FINAL.inside(DATA)) == ids(DATA)


@pytest.mark.parametrize("stage", [FIRST, FINAL], ids=["first", "final"])
def test_bags_have_another_tenth_each_for_validation(stage):
    inside = ids(stage.inside(DATA))
    pairs = [Cut(stage, Fold(k, 10)).pair(DATA) for k in range(10)]
    for train, valid in pairs:
        assert ids(train).isdisjoint(ids(valid))
        assert ids(train) | ids(valid) == inside
    valids = [qid for _, valid in pairs for qid in valid.qids.tolist()]
    assert sorted(valids) == sorted(inside)


@pytest.mark.parametrize("stage", [FIRST, FINAL], ids=["first", "final"])
def test_what_is_left_out_is_never_seen(stage):
    inside = ids(stage.inside(DATA))
    cuts = [Cut(stage, Fold(0, 10), Fold(k, 5)) for k in range(5)]
    for cut in cuts:
        train, valid = cut.pair(DATA)
        aside = ids(cut.put_aside(DATA))
        assert aside.isdisjoint(ids(train) | ids(valid))
        assert aside | ids(train) | ids(valid) == inside
    every = [qid for cut in cuts for qid in cut.put_aside(DATA).qids.tolist()]
    assert sorted(every) == sorted(inside)


def test_cuts_share_the_matrix():
    train, valid = Cut(FIRST, Fold(0, 10), Fold(1, 5)).pair(DATA)
    assert train.matrix is DATA.matrix
    assert valid.matrix is DATA.matrix
    assert np.array_equal(train.X, DATA.X[train.rows])
