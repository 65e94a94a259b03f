"""The queries of stages and trainings."""

import numpy as np
import pytest

from rankinite.runs.graph import Graph
from rankinite.runs.recipe_reader import recipe_of
from rankinite.runs.tasks import Fold, Split, Stage
from tests.runs.cases import MICRO, micro_data

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
    pairs = [Split(stage, Fold(k, 10)).train_and_valid(DATA) for k in range(10)]
    for train, valid in pairs:
        assert ids(train).isdisjoint(ids(valid))
        assert ids(train) | ids(valid) == inside
    valids = [qid for _, valid in pairs for qid in valid.qids.tolist()]
    assert sorted(valids) == sorted(inside)


@pytest.mark.parametrize("stage", [FIRST, FINAL], ids=["first", "final"])
def test_what_is_left_out_is_never_seen(stage):
    inside = ids(stage.inside(DATA))
    splits = [Split(stage, Fold(0, 10), Fold(k, 5)) for k in range(5)]
    for split in splits:
        train, valid = split.train_and_valid(DATA)
        left_out = ids(split.left_out_queries(DATA))
        assert left_out.isdisjoint(ids(train) | ids(valid))
        assert left_out | ids(train) | ids(valid) == inside
    every = [qid for split in splits for qid in split.left_out_queries(DATA).qids.tolist()]
    assert sorted(every) == sorted(inside)


def test_cuts_share_the_matrix():
    train, valid = Split(FIRST, Fold(0, 10), Fold(1, 5)).train_and_valid(DATA)
    assert train.matrix is DATA.matrix
    assert valid.matrix is DATA.matrix
    assert np.array_equal(train.X, DATA.X[train.rows])


def test_the_bags_of_a_model_differ_in_their_fold_and_in_their_seed():
    graph = Graph(recipe_of("micro.toml", MICRO), "digest")
    bags = [task.function for task in graph.model("B", graph.final).fits]
    assert [bag.split.valid for bag in bags] == [Fold(k, 3) for k in range(3)]
    assert len({bag.parameters["random_state"] for bag in bags}) == 3
