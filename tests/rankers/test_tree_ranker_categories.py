"""Categorical features of rankers: where they come from, and what they mean later."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
import scipy.sparse

import rankinite as rk
from rankinite.core.container import Content

SMALL = {"n_trees": 6, "n_leaves": 8, "min_docs_in_leaf": 3, "docs_per_tree": 1.0}
COLOURS = ["red", "green", "blue", "grey", "pink"]


def frame(part: int, n: int = 160, colours=COLOURS) -> pd.DataFrame:
    rng = np.random.default_rng(part)
    colour, x = rng.integers(len(colours), size=n), rng.normal(size=n)
    worth = np.array([2.0, -1.0, 0.0, 1.0, -2.0, 0.5])[colour] + x + rng.normal(size=n) / 2
    table = pd.DataFrame({"x": x, "colour": np.array(colours, object)[colour]})
    table.loc[rng.random(n) < 0.1, "colour"] = None
    return table.assign(label=np.digitize(worth, [-1, 1, 2]), qid=np.arange(n) // 8)


def as_category(table: pd.DataFrame, order=None) -> pd.DataFrame:
    return table.assign(colour=pd.Categorical(table.colour, order))


TRAIN, VALID = frame(1), frame(2)
# With a colour that training did not see.
TEST = frame(3, colours=[*COLOURS, "violet"])
FEATURES = ["x", "colour"]


def fitted(kind=rk.LambdaMART, train=None, valid=None, **parameters):
    train = as_category(TRAIN) if train is None else train
    valid = as_category(VALID) if valid is None else valid
    model = kind(**{**SMALL, **parameters})
    validation = (valid[FEATURES], valid.label, valid.qid)
    return model.fit(train[FEATURES], train.label, qid=train.qid, valid=validation)


@pytest.fixture(scope="module")
def model():
    return fitted()


@pytest.fixture(scope="module")
def scores(model):
    return model.predict(as_category(TEST)[FEATURES]).tolist()


def polars_of(table: pd.DataFrame, kind) -> pl.DataFrame:
    texts = [None if pd.isna(text) else text for text in table.colour]
    return pl.DataFrame({"x": table.x.to_numpy(), "colour": pl.Series(texts, dtype=kind)})


SAME = {
    "texts": TEST[FEATURES],
    "other order": as_category(TEST, [*COLOURS[::-1], "violet", "unused"])[FEATURES],
    "polars": polars_of(TEST, pl.Categorical),
    "polars enum": polars_of(TEST, pl.Enum([*COLOURS, "violet"])),
    "polars texts": polars_of(TEST, pl.String),
    "Arrow": pa.Table.from_pandas(as_category(TEST)[FEATURES], preserve_index=False),
    "Arrow texts": pa.Table.from_pandas(TEST[FEATURES], preserve_index=False),
    "Arrow chunks": pa.concat_tables(
        [
            pa.Table.from_pandas(as_category(part)[FEATURES], preserve_index=False)
            for part in (TEST[:50], TEST[50:])
        ]
    ),
    "a data set": rk.from_frame(as_category(TEST)),
    "a data set of texts": rk.from_frame(TEST, categorical_features=["colour"]),
    "all texts": rk.from_frame(TEST, categorical_features="all"),
    "the same queries": rk.from_frame(as_category(TEST))[np.arange(20)],
}


@pytest.mark.parametrize("table", SAME.values(), ids=SAME)
def test_categories_are_matched_by_value(model, scores, table):
    assert model.predict(table).tolist() == scores


def test_categories_matter(model):
    assert model.importances()["colour"] > 0
    assert model.forest_.trees[0].categorical.any()
    assert model.categories_ == {"colour": {c: k for k, c in enumerate(sorted(COLOURS))}}
    by_colour = as_category(TEST[FEATURES]).assign(x=0.0)
    values = dict(zip(TEST.colour.fillna("none"), model.predict(by_colour), strict=True))
    assert values["red"] > values["blue"] > values["pink"]
    # A new category is like a missing one.
    assert values["violet"] == values["none"]


NAMED = {
    "names": ({"categorical_features": ["colour"]}, TRAIN, VALID),
    "a column": ({"categorical_features": [1]}, TRAIN, VALID),
    "both": ({"categorical_features": ["colour"]}, as_category(TRAIN), as_category(VALID)),
    "other order": ({}, as_category(TRAIN, COLOURS), as_category(VALID, [*COLOURS[::-1], "new"])),
}


@pytest.mark.parametrize(("parameters", "train", "valid"), NAMED.values(), ids=NAMED)
def test_all_ways_to_say_it_give_the_same_model(model, scores, parameters, train, valid):
    other = fitted(train=train, valid=valid, **parameters)
    assert other.predict(TEST[FEATURES]).tolist() == scores
    assert other.history_ == model.history_


def test_data_sets_give_the_same_model(model, scores):
    train, valid = (rk.from_frame(as_category(table)) for table in (TRAIN, VALID))
    other = rk.LambdaMART(**SMALL).fit(train, valid=valid)
    assert other.predict(rk.from_frame(as_category(TEST))).tolist() == scores
    assert other.history_ == model.history_
    binned = rk.BinnedData.of(train, most_bins=None)
    other = rk.LambdaMART(**SMALL).fit(train, valid=valid, binned=binned)
    assert other.predict(TEST[FEATURES]).tolist() == scores
    with pytest.raises(rk.UsageError, match="'colour' of binned and of the data set are not categ"):
        other.fit(train, binned=rk.BinnedData.of(train, categorical=[]))


def codes_of(table: pd.DataFrame) -> pd.DataFrame:
    codes = table.colour.map({colour: k for k, colour in enumerate(sorted(COLOURS))})
    return table.assign(colour=codes.astype(float))


def test_codes_in_arrays(scores):
    """As codes in the sorted order of the texts, categories give the same bins and trees."""
    train, valid, test = (codes_of(table) for table in (TRAIN, VALID, TEST))
    other = rk.LambdaMART(**SMALL, categorical_features=[1])
    validation = (valid[FEATURES].to_numpy(), valid.label, valid.qid)
    other.fit(train[FEATURES].to_numpy(), train.label, qid=train.qid, valid=validation)
    assert other.categories_ == {"2": {}}
    assert other.predict(test[FEATURES].to_numpy()).tolist() == scores
    # Numbers of a category type are the codes.
    typed = as_category(test.assign(colour=test.colour.astype("Int64")))[FEATURES]
    assert other.predict(typed.set_axis(["1", "2"], axis=1)).tolist() == scores
    with pytest.raises(rk.DataError, match="the category 'blue', and was given as numbers before"):
        other.predict(SAME["texts"].set_axis(["1", "2"], axis=1))


@pytest.mark.parametrize("kind", [rk.MART, rk.McRank, rk.LambdaMART])
@pytest.mark.parametrize("symmetric", [False, True])
def test_every_ranker_of_trees(kind, symmetric, tmp_path):
    model = fitted(kind, symmetric=symmetric, features_per_tree=1.0)
    assert any(tree.categorical.any() for tree in model.forest_.trees)
    scores = model.predict(TEST[FEATURES])
    staged = list(model.staged_predict(TEST[FEATURES]))
    assert staged[-1] == pytest.approx(scores, rel=1e-12)
    model.save(tmp_path / "model.rk")
    loaded = rk.load_model(tmp_path / "model.rk")
    assert loaded.predict(TEST[FEATURES]).tolist() == scores.tolist()
    assert loaded.categories_ == model.categories_
    loaded.save(tmp_path / "again.rk")
    assert (tmp_path / "again.rk").read_bytes() == (tmp_path / "model.rk").read_bytes()


def test_validation_scores_are_those_of_predict():
    valid = as_category(VALID, ["new", *COLOURS])
    model = fitted(valid=valid, average_rounds=False, patience=None)
    data = rk.from_frame(valid)
    stages = model.staged_predict(data)
    values = [rk.evaluate(stage, data, "NDCG").mean["NDCG"] for stage in stages]
    assert model.history_["valid"]["NDCG"][: model.best_round_] == pytest.approx(values, rel=1e-12)


def test_a_base_and_ensembles(model, scores, tmp_path):
    on_top = fitted(base=model)
    ensemble = rk.Average({"one": model, "two": on_top})
    train = as_category(TRAIN)
    ensemble.fit(train[FEATURES], train.label, qid=train.qid)
    scored = rk.WithScoreFeatures(rk.MART(**SMALL), rk.LambdaMART(**SMALL), folds=2)
    scored.fit(rk.from_frame(train))
    for ranker in (on_top, ensemble, scored):
        expected = ranker.predict(SAME["a data set"])
        ranker.save(tmp_path / "model.rk")
        loaded = rk.load_model(tmp_path / "model.rk")
        for table in ("texts", "other order", "Arrow"):
            assert loaded.predict(SAME[table], TEST.qid).tolist() == expected.tolist()


def test_a_fit_is_resumed(tmp_path):
    path = tmp_path / "checkpoint"
    train = rk.from_frame(as_category(TRAIN))
    whole = rk.LambdaMART(**SMALL).fit(train)
    rk.LambdaMART(**{**SMALL, "n_trees": 3}).fit(train, checkpoint=path)
    resumed = rk.LambdaMART(**SMALL).fit(train, checkpoint=path)
    assert resumed.predict(train).tolist() == whole.predict(train).tolist()


def test_line_search_and_backfitting():
    model = fitted(step="line-search")
    train = as_category(TRAIN)
    before = rk.evaluate(model.predict(train[FEATURES]), rk.from_frame(train), "NDCG").mean["NDCG"]
    model.backfit(TRAIN[FEATURES], TRAIN.label, qid=TRAIN.qid)
    after = rk.evaluate(model.predict(train[FEATURES]), rk.from_frame(train), "NDCG").mean["NDCG"]
    assert after >= before


def test_smoothing_has_an_effect():
    smoothed = [fitted(categorical_smoothing=s).importances()["colour"] for s in (0.0, 100.0)]
    assert smoothed[0] > 2 * smoothed[1]


def numbers_of(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(colour=np.arange(len(table)) % 4)


REFUSED = {
    "no such feature": (
        lambda: fitted(categorical_features=["shape"]),
        "categorical_features has 'shape'; expected names of features, which are 'x', 'colour'",
    ),
    "no such column": (lambda: fitted(categorical_features=[2]), "columns from 0 to 1"),
    "a text": (
        lambda: fitted(categorical_features="colour"),
        "must be one of 'from_dtype', or a list",
    ),
    "no codes": (
        lambda: fitted(categorical_features=["x"]),
        "the categorical feature 'x' has the value",
    ),
    "texts without a name": (
        lambda: fitted(train=TRAIN),
        "these columns are not numbers: 'colour'",
    ),
    "texts in a validation set": (
        lambda: fitted(train=numbers_of(TRAIN)),
        "feature 'colour' holds categories, such as 'blue', and it was numbers before",
    ),
    "a direction": (
        lambda: fitted(monotone_constraints={"colour": 1}),
        "monotone_constraints has a direction for 'colour', which is categorical",
    ),
    "a net": (
        lambda: rk.LambdaRank(n_epochs=1).fit(rk.from_frame(as_category(TRAIN))),
        "the features 'colour' are categorical, and nets take numbers",
    ),
    "a net's parameter": (
        lambda: rk.LambdaRank(categorical_features=["colour"]),
        "nets take numbers: give a column of 0 and 1 for each category",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(call, sentence):
    with pytest.raises(rk.RankiniteError) as problem:
        call()
    assert sentence in str(problem.value)


def test_numbers_where_texts_were(model):
    with pytest.raises(
        rk.DataError, match="feature 'colour' holds numbers, and categories are exp"
    ):
        model.predict(numbers_of(TEST)[FEATURES])
    missing = TEST.assign(colour=np.nan)[FEATURES]
    untyped = TEST.assign(colour=np.array([None] * len(TEST), object))[FEATURES]
    assert model.predict(missing).tolist() == model.predict(untyped).tolist()
    numbers = rk.LambdaMART(**SMALL).fit(numbers_of(TRAIN)[FEATURES], TRAIN.label, qid=TRAIN.qid)
    with pytest.raises(rk.DataError, match="and it was numbers before; give numbers"):
        numbers.predict(as_category(TEST)[FEATURES])


@pytest.mark.parametrize(
    "texts",
    [
        {"colour": ["blue"]},
        {"colour": ["blue", "green", "grey", "pink", "pink"]},
        {"x": []},
        {"colour": ["blue", "green", "grey", "pink", 5]},
        {"shape": ["round"]},
        ["colour"],
    ],
)
def test_damaged_texts_of_a_file(model, texts):
    content = model.to_content()
    damaged = Content({**content.manifest, "categories": texts}, content.arrays)
    with pytest.raises(rk.ModelFileError):
        rk.LambdaMART.from_content(damaged, None)


def test_tables_of_trees_name_the_categories_that_go_left(model):
    """Every document is followed by the table's conditions to the leaf that predict_leaf says."""
    table = as_category(TEST)[FEATURES]
    nodes = model.trees().set_index("node_index")
    assert set(nodes.decision_type.dropna()) == {"<=", "=="}
    leaves = model.predict_leaf(table)
    for row, (x, colour) in enumerate(zip(table.x, table.colour.astype(object), strict=True)):
        for tree in range(leaves.shape[1]):
            name = f"{tree}-S0"
            while "-S" in name:
                node = nodes.loc[name]
                if node.decision_type == "<=":
                    left = np.float32(x) <= node.threshold
                elif colour in COLOURS:
                    left = colour in node.threshold.split("||")
                else:
                    left = node.missing_direction == "left"
                name = node.left_child if left else node.right_child
            assert name == f"{tree}-L{leaves[row, tree]}"


def test_a_drawing_names_categories(model):
    assert " in {" in "".join(model.plot_tree(tree).svg for tree in range(SMALL["n_trees"]))


def test_lazy_frames_and_datasets_have_categories_too(scores, model):
    table = polars_of(TEST, pl.Categorical)
    assert model.predict(table.lazy()).tolist() == scores
    assert model.predict(pa.dataset.dataset(table.to_arrow())).tolist() == scores


def test_codes_in_a_sparse_matrix_are_categories():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(5, size=160), rng.normal(size=160)])
    y, qid = (X[:, 0] % 3).astype(int), np.arange(160) // 8
    dense, sparse = (
        rk.LambdaMART(categorical_features=[0], **SMALL).fit(matrix, y, qid=qid)
        for matrix in (X, scipy.sparse.csr_array(X))
    )
    assert dense.forest_.trees[0].categorical.any()
    assert sparse.predict(scipy.sparse.csr_array(X)).tolist() == dense.predict(X).tolist()


def test_a_base_knows_categories_of_validation_sets_that_training_lacks(model):
    few = frame(7, colours=["red", "amber"])
    on_top = rk.LambdaMART("NDCG", **SMALL, base=model, average_rounds=False).fit(
        rk.from_frame(as_category(few)), valid=rk.from_frame(as_category(VALID))
    )
    curve = on_top.history_["valid"]["NDCG"]
    value = rk.evaluate(on_top.predict(VALID[FEATURES]), rk.from_frame(as_category(VALID)), "NDCG")
    assert value.mean["NDCG"] == pytest.approx(max(curve), abs=1e-12)
