"""Models of other tools score as the tools do, and are rankers like all others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import lightgbm as lgb
import numpy as np
import pytest

import rankinite as rk
from rankinite.core.errors import DataError, ModelFileError, UsageError
from rankinite.rankers.imported import LARGEST_ZERO
from tests.interop.cases import ENSEMBLE, RANKLIB
from tests.interop.make_models import CATEGORICAL, DOCUMENTS, FOLDER, SCORES

EXPECTED = {name: np.array(scores) for name, scores in json.loads(SCORES.read_text()).items()}
OF_ARRAYS = [name for name in EXPECTED if name != "xgboost-pandas.json"]
# Sums of 32 bits differ from ours of 64, which begin as theirs do.
SINGLE = 1e-6


@pytest.fixture(scope="module")
def documents():
    return np.loadtxt(DOCUMENTS, dtype=np.float32)


@pytest.fixture(scope="module")
def training():
    """Features with missing values, zeros and categories; labels and sizes of queries."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 6)).astype(np.float32).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.2] = 0.0
    X[:, 5] = rng.integers(0, 40, 600)
    clean = np.nan_to_num(X)
    score = clean[:, 0] + clean[:, 1] * clean[:, 2] + (clean[:, 5] % 5 == 2) + rng.normal(size=600)
    return X, np.digitize(score, [0.5, 1.5]).astype(float), [30] * 20


def trained(training, n_trees=10, categories=(), **parameters):
    X, y, sizes = training
    settings = {
        "objective": "lambdarank",
        "num_leaves": 8,
        "min_data_in_leaf": 5,
        "min_data_per_group": 5,
        "verbose": -1,
        "num_threads": 1,
        **parameters,
    }
    data = lgb.Dataset(X, y, group=sizes, categorical_feature=list(categories), params=settings)
    return lgb.train(settings, data, n_trees)


class TestOfTheTools:
    @pytest.mark.parametrize("name", OF_ARRAYS)
    def test_scores_are_those_of_the_tool(self, name, documents):
        model = rk.load_model(FOLDER / name)
        scores = model.predict(documents[:, : model.n_features_in_])
        precision = SINGLE if name.startswith("xgboost") else 1e-15
        np.testing.assert_allclose(scores, EXPECTED[name], rtol=0, atol=precision)

    @pytest.mark.parametrize("name", [n for n in OF_ARRAYS if n.startswith("xgboost")])
    def test_leaves_are_those_of_xgboost(self, name, documents):
        # All leaves are the same if the same sums of 32 bits are, bit for bit.
        model = rk.load_model(FOLDER / name)
        leaves = model.predict_leaf(documents)
        start = np.float32(model.forest_.start[0])
        first, last = np.full(len(leaves), start), np.zeros(len(leaves), np.float32)
        for number, tree in enumerate(model.forest_.trees):
            values = tree.value[leaves[:, number]].astype(np.float32)
            first, last = first + values, last + values
        assert (first == EXPECTED[name]).all() or (last + start == EXPECTED[name]).all()

    def test_categories_of_a_frame_are_matched_by_text(self):
        pd = pytest.importorskip("pandas")
        model = rk.load_model(FOLDER / "xgboost-pandas.json")
        table = json.loads((FOLDER / "frame.json").read_text())
        frame = pd.DataFrame(table["data"], columns=table["columns"])
        # In another order, and with another category than in training.
        frame["f"] = pd.Categorical(frame["f"], ["z", "w", "new", "x", "y", "green", "blue", "red"])
        frame["e"] = pd.Categorical(frame["e"])
        scores = model.predict(frame)
        np.testing.assert_allclose(scores, EXPECTED["xgboost-pandas.json"], rtol=0, atol=SINGLE)
        assert model.feature_names_ == tuple("abcdef")


LIGHTGBM = {
    "lambdarank": {},
    "categories": {"categories": [5]},
    "no missing values": {"use_missing": False},
    "zeros missing": {"zero_as_missing": True},
    "dart": {"boosting": "dart", "drop_rate": 0.5},
    "one leaf": {"min_data_in_leaf": 500},
    "deep": {"num_leaves": 300, "min_data_in_leaf": 1, "objective": "regression"},
    "many thresholds": {
        "num_leaves": 400, "min_data_in_leaf": 1, "max_bin": 2000, "min_data_in_bin": 1,
        "objective": "regression", "n_trees": 4,
    },
}  # fmt: skip


class TestLightGBM:
    @pytest.mark.parametrize("parameters", LIGHTGBM.values(), ids=LIGHTGBM.keys())
    def test_scores_have_the_same_bits(self, training, parameters, tmp_path):
        if "max_bin" in parameters:
            rng = np.random.default_rng(3)
            training = (rng.normal(size=(600, 2)).astype(np.float32), *training[1:])
        booster = trained(training, **parameters)
        booster.save_model(tmp_path / "model.txt")
        model = rk.load_model(tmp_path / "model.txt")
        X = training[0].copy()
        for documents in (X, beside(model, X)):
            expected = booster.predict(documents, raw_score=True)
            assert (model.predict(documents) == expected).all()
        if "max_bin" in parameters:
            assert max(len(np.unique(t.threshold)) for t in model.forest_.trees) > 300

    def test_random_forests_are_means(self, training):
        booster = trained(
            training, boosting="rf", bagging_freq=1, bagging_fraction=0.5, objective="regression"
        )
        X = training[0]
        np.testing.assert_allclose(
            rk.import_model(booster).predict(X), booster.predict(X), rtol=1e-14
        )

    # Versions before the one that deprecates it have nothing else.
    @pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
    def test_estimators_predict_up_to_the_best_iteration(self, training):
        X, y, sizes = training
        ranker = lgb.LGBMRanker(n_estimators=200, num_leaves=4, verbose=-1, num_threads=1)
        stop = lgb.early_stopping(3, verbose=False)
        ranker.fit(X[:300], y[:300], group=sizes[:10], eval_set=[(X[300:], y[300:])],
                   eval_group=[sizes[10:]], callbacks=[stop])  # fmt: skip
        model = rk.import_model(ranker)
        assert model.n_trees_ == ranker.best_iteration_ < 200
        assert (model.predict(X) == ranker.predict(X)).all()

    def test_categories_of_pandas(self, training):
        pd = pytest.importorskip("pandas")
        X, y, sizes = training
        frame = pd.DataFrame(X, columns=list("abcdef"))
        frame["f"] = pd.Categorical([f"shop {int(code)}" for code in X[:, 5]])
        frame["e"] = pd.Categorical((np.nan_to_num(X[:, 4]) * 10).round().astype(int).clip(0) * 3)
        y = np.where(frame["e"].cat.codes % 3 == 1, 2.0, y)
        ranker = lgb.LGBMRanker(n_estimators=10, min_data_per_group=5, verbose=-1, num_threads=1)
        ranker.fit(frame, y, group=sizes)
        model = rk.import_model(ranker)
        expected = ranker.predict(frame)
        assert (model.predict(frame) == expected).all()
        data = rk.from_frame(frame.assign(qid=0, label=y))
        assert (model.predict(data) == expected).all()
        assert len(model.forest_.categories) == 2


def beside(model, X):
    documents = X.copy()
    rng = np.random.default_rng(2)
    tiny = np.array([0.0, -0.0, 1e-36, -1e-36, LARGEST_ZERO, -LARGEST_ZERO, np.nan], np.float32)
    tiny = np.concatenate(
        [tiny, np.nextafter(tiny, np.float32(1)), np.nextafter(tiny, np.float32(-1))]
    )
    for j in range(X.shape[1]):
        if j in model.forest_.categories:
            documents[:, j] = rng.choice([-1.0, 0.0, 3.0, 39.0, 40.0, 1000.0, np.nan], len(X))
            continue
        cuts = [tree.threshold[tree.feature == j] for tree in model.forest_.trees]
        exact = np.unique(np.concatenate(cuts))
        exact = exact[np.isfinite(exact)]
        above = np.nextafter(exact, np.float32(np.inf))
        special = np.concatenate([exact, above, np.nextafter(above, np.float32(np.inf)), tiny])
        chosen = rng.random(len(X)) < 0.8
        documents[chosen, j] = rng.choice(special, chosen.sum())
    return documents


TENTH = float(np.float32(0.1))


class TestRankLib:
    @pytest.mark.parametrize(("name", "times"), [("LambdaMART", 1), ("Random Forests", 3)])
    def test_by_hand(self, tmp_path, name, times):
        path = tmp_path / "model.xml"
        path.write_text(RANKLIB.format(name=name, ensembles=ENSEMBLE * times))
        model = rk.load_model(path)
        # At most the threshold goes left, and a missing value is 0.
        X = [[-1.0, 0.5], [-0.9, 0.0], [0.0, 0.6], [np.nan, np.nan]]
        expected = TENTH * np.array([-2.0, 1.5, 4.0, 1.5]) + 0.125
        np.testing.assert_allclose(model.predict(X), expected, rtol=1e-15)
        assert (model.tool_, model.objective_, model.feature_names_) == (
            "RankLib",
            name,
            ("1", "2"),
        )

    def test_data_may_have_more_features(self, tmp_path):
        path = tmp_path / "model.xml"
        path.write_text(RANKLIB.format(name="MART", ensembles=ENSEMBLE))
        model = rk.load_model(path)
        data = rk.polynomials(5, n_features=4)
        assert (model.predict(data) == model.predict(data.X[:, :2])).all()
        assert (model.predict(data.X) == model.predict(data)).all()
        wide = rk.import_model(path, feature_names=data.feature_names)
        assert (wide.predict(data) == model.predict(data)).all()
        # As a base, whose features are those of the training data.
        rk.LambdaMART(n_trees=1, base=wide).fit(data)

    def test_others_are_refused(self, tmp_path):
        path = tmp_path / "model.txt"
        path.write_text("## Coordinate Ascent\n## Restart = 2\n1:0.5 2:0.1\n")
        with pytest.raises(
            ModelFileError, match="Coordinate Ascent of RankLib, which has no trees"
        ):
            rk.load_model(path)

    def test_nothing_is_expanded(self, tmp_path):
        path = tmp_path / "model.xml"
        laughs = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 10))
        path.write_text(f'## MART\n<ensemble/><!DOCTYPE x [<!ENTITY e0 "0">{laughs}]>&e9;')
        with pytest.raises(ModelFileError, match=r"model\.xml: "):
            rk.load_model(path)


@pytest.fixture(scope="module")
def booster(training):
    return trained(training, categories=[5])


class TestRanker:
    def test_saved_and_loaded(self, booster, training, tmp_path):
        model = rk.import_model(booster)
        model.save(tmp_path / "m.rk")
        again = rk.load_model(tmp_path / "m.rk")
        X = training[0]
        assert (again.predict(X) == model.predict(X)).all()
        again.save(tmp_path / "n.rk")
        assert (tmp_path / "m.rk").read_bytes() == (tmp_path / "n.rk").read_bytes()
        assert repr(again) == "<ImportedForest of LightGBM: 10 trees, 6 features>"
        assert again.importances("count") == model.importances("count")

    @pytest.mark.parametrize("kind", [{"zero_as_missing": True}, {"categories": [5]}])
    def test_what_it_knows_of_features_is_saved(self, kind, training, tmp_path):
        booster = trained(training, **kind)
        rk.import_model(booster).save(tmp_path / "m.rk")
        X = training[0]
        again = rk.load_model(tmp_path / "m.rk")
        assert (again.predict(X) == booster.predict(X, raw_score=True)).all()
        assert bool(again.zero_as_missing_) == ("zero_as_missing" in kind)

    def test_zeros_of_sparse_and_indexed_matrices_are_missing(self, training):
        from scipy.sparse import csr_array

        booster = trained(training, zero_as_missing=True)
        model = rk.import_model(booster)
        X = np.nan_to_num(training[0])
        expected = booster.predict(X, raw_score=True)
        assert (model.predict(csr_array(X)) == expected).all()
        order = np.random.default_rng(0).permutation(len(X))
        data = rk.RankingData(X, np.zeros(len(X)), order % 7, group=True)
        assert (model.predict(data) == expected[data.rows]).all()

    def test_first_trees(self, booster, training):
        X = training[0]
        expected = booster.predict(X, raw_score=True, num_iteration=3)
        assert (rk.import_model(booster).predict(X, n_trees=3) == expected).all()

    def test_leaves_and_nodes_are_those_of_lightgbm(self, booster, training):
        model = rk.import_model(booster)
        X = training[0]
        theirs = booster.predict(X, pred_leaf=True)
        ours = model.predict_leaf(X)
        for tree in range(model.n_trees_):
            pairs = set(zip(ours[:, tree].tolist(), theirs[:, tree].tolist(), strict=True))
            assert len(pairs) == len({mine for mine, _ in pairs})
        table = model.trees(0)
        assert table["count"][0] == len(X)

    def test_it_is_a_base_and_a_member(self, training, tmp_path):
        X, y, sizes = training
        data = rk.RankingData(X[:, :5], y, np.repeat(np.arange(20), sizes))
        model = rk.import_model(trained((X[:, :5], y, sizes)))
        adapted = rk.LambdaMART(n_trees=3, base=model, random_state=0).fit(data)
        average = rk.Average([model, adapted]).fit(data)
        best = rk.BestMix([model, adapted], measure="NDCG@5").fit(data)
        for ranker in (adapted, average, best):
            ranker.save(tmp_path / "m.rk")
            assert (rk.load_model(tmp_path / "m.rk").predict(data) == ranker.predict(data)).all()
        assert (adapted.predict(data, n_trees=0) == model.predict(data)).all()

    def test_scaled_scores_have_the_same_order(self, booster, training):
        model = rk.import_model(booster)
        X = training[0]
        assert (model.scaled(0.25).predict(X) == 0.25 * model.predict(X)).all()
        with pytest.raises(UsageError, match="factor must be a finite number, above 0"):
            model.scaled(0)

    def test_it_cannot_be_fitted(self, booster, training):
        from sklearn.base import clone

        model = rk.import_model(booster)
        with pytest.raises(UsageError, match=r"LambdaMART\(base=imported\)"):
            model.fit(training[0], training[1], qid=0)
        assert clone(model) is model


def test_to_import_and_predict_takes_numpy_only():
    code = (
        "import sys, numpy as np, rankinite as rk\n"
        f"rk.load_model({str(FOLDER / 'catboost.json')!r}).predict(np.zeros((3, 5), np.float32))\n"
        "print({'numba', 'pyarrow', 'scipy', 'sklearn', 'pandas', 'catboost'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


class TestNames:
    def test_numbered_features_are_those_of_text_files(self, booster):
        assert rk.import_model(booster).feature_names_ == tuple("123456")

    def test_names_of_the_file(self, training):
        X, y, sizes = training
        names = ["bm25", "title", "age", "price", "stock", "shop"]
        data = lgb.Dataset(X, y, group=sizes, feature_name=names)
        model = rk.import_model(lgb.train({"objective": "lambdarank", "verbose": -1}, data, 3))
        assert list(model.feature_names_) == names
        # By name, in any order, and with other features besides.
        shuffled = rk.RankingData(
            np.column_stack([X[:, ::-1], X[:, 0]]), y, y * 0, feature_names=[*names[::-1], "other"]
        )
        assert (model.predict(shuffled) == model.predict(X)).all()

    def test_other_names(self, booster, training):
        names = list("abcdef")
        model = rk.import_model(booster, feature_names=names)
        assert list(model.feature_names_) == names
        assert (model.predict(training[0]) == booster.predict(training[0], raw_score=True)).all()

    def test_features_that_no_tree_asks_for_can_be_left_out(self, training):
        X, y, sizes = training
        # As LightGBM's command reads a file whose features are numbered from 1: nothing is 0.
        shifted = np.column_stack([np.zeros(len(X), np.float32), X])
        booster = trained((shifted, y, sizes), categories=[6])
        model = rk.import_model(booster, feature_names=[None, *"123456"])
        assert (model.predict(X) == booster.predict(shifted, raw_score=True)).all()
        with pytest.raises(UsageError, match="that trees ask for: 1, counted from 0"):
            rk.import_model(booster, feature_names=["0", None, *"23456"])

    def test_wrong_names(self, booster):
        with pytest.raises(UsageError, match="2 names; the model has 6 features"):
            rk.import_model(booster, feature_names=["a", "b"])
        with pytest.raises(UsageError, match="the same name twice"):
            rk.import_model(booster, feature_names=list("aabcde"))

    def test_data_with_names_is_told_what_to_do(self, booster, training):
        X, y, _ = training
        data = rk.RankingData(X, y, y * 0, feature_names=list("abcdef"))
        with pytest.raises(DataError, match=r"feature_names=data\.feature_names"):
            rk.import_model(booster).predict(data)


class TestOtherObjects:
    def test_anything_that_predicts(self, training, tmp_path):
        from sklearn.linear_model import Ridge

        X, y, sizes = np.nan_to_num(training[0]), training[1], training[2]
        data = rk.RankingData(X, y, np.repeat(np.arange(20), sizes))
        ridge = Ridge().fit(X, y)
        model = rk.import_model(ridge)
        np.testing.assert_allclose(model.predict(data), ridge.predict(X))
        assert rk.Average([model, rk.import_model(ridge)]).fit(data).predict(data).shape == y.shape
        assert 0 < rk.evaluate(model.predict(data), data, "NDCG@10").mean["NDCG@10"] < 1
        with pytest.raises(UsageError, match="a Ridge cannot be part of a model file"):
            model.save(tmp_path / "m.rk")

    def test_features_must_be_known(self):
        class Model:
            def predict(self, X):
                return X[:, 0]

        with pytest.raises(UsageError, match="give feature_names"):
            rk.import_model(Model())
        assert rk.import_model(Model(), feature_names=["a"]).predict([[2.0]]).tolist() == [2.0]

    def test_no_model(self):
        with pytest.raises(UsageError, match="a dict has no predict"):
            rk.import_model({})
        with pytest.raises(UsageError, match="is a ranker of rankinite already"):
            rk.import_model(rk.LambdaMART())


REFUSED = {
    "several classes": ("num_class=1", "num_class=3", "num_class=3: several scores"),
    "linear": ("is_linear=0", "is_linear=1", "linear models in its leaves"),
    "circle": ("left_child=", "left_child=0 ", "left_child"),
    "cut off": ("end of trees", "end of", "cut off"),
    "feature": ("split_feature=", "split_feature=99 ", "split_feature"),
}


class TestRefused:
    @pytest.mark.parametrize(("old", "new", "match"), REFUSED.values(), ids=REFUSED.keys())
    def test_lightgbm(self, booster, tmp_path, old, new, match):
        path = tmp_path / "model.txt"
        path.write_text(booster.model_to_string().replace(old, new))
        with pytest.raises(ModelFileError, match=rf"model\.txt: .*{match}"):
            rk.load_model(path)

    def test_trees_that_are_none(self, booster, tmp_path):
        lines = booster.model_to_string().splitlines()
        at = next(k for k, line in enumerate(lines) if line.startswith("left_child="))
        path = tmp_path / "model.txt"
        for k, value in ((0, "0"), (1, "1"), (0, lines[at + 1].partition("=")[2].split()[0])):
            children = lines[at].partition("=")[2].split()
            children[k] = value
            damaged = [*lines[:at], f"left_child={' '.join(children)}", *lines[at + 1 :]]
            path.write_text("\n".join(damaged))
            with pytest.raises(ModelFileError, match="is no tree: two splits lead to the same"):
                rk.load_model(path)

    @pytest.mark.parametrize(
        ("content", "match"),
        [
            (b"CBM1\0\0", 'format="json"'),
            (b"binf\0\0", "before version 3.1"),
            (b"\x80\x04\x95", "a pickle"),
            (b'{"a": 1}', "no model of XGBoost or CatBoost"),
            (b'{"tree_info": []}', "dump_model"),
            (b'{"a": ' + b"[" * 100_000, "nested deeper"),
            (b"{L" + b"\xff" * 8, "a length is larger than the file"),
            (b"{i\x01a" + b"[" * 1000, "nested deeper"),
            (b"{i\x01a[$T#L" + b"\x7f" * 8, "a length is larger|has no length"),
        ],
    )
    def test_other_files(self, content, match, tmp_path):
        path = tmp_path / "model"
        path.write_bytes(content)
        with pytest.raises(ModelFileError, match=match):
            rk.load_model(path)

    def test_boosters_without_trees(self, tmp_path):
        document = json.loads((FOLDER / "xgboost.json").read_text())
        document["learner"]["gradient_booster"]["name"] = "gblinear"
        path = tmp_path / "model.json"
        path.write_text(json.dumps(document))
        with pytest.raises(ModelFileError, match="'gblinear', which has no trees"):
            rk.load_model(path)

    def test_features_that_catboost_makes(self, tmp_path):
        document = json.loads((FOLDER / "catboost.json").read_text())
        document["features_info"]["categorical_features"] = [{"feature_index": 0}]
        path = tmp_path / "model.json"
        path.write_text(json.dumps(document))
        with pytest.raises(ModelFileError, match="has categorical features"):
            rk.load_model(path)

    @pytest.mark.parametrize("split", [1, 0.5, None, "x", {}, {"float_feature_index": "0"}])
    def test_splits_of_catboost_that_are_none(self, split, tmp_path):
        document = json.loads((FOLDER / "catboost.json").read_text())
        document["oblivious_trees"][0]["splits"][1] = split
        path = tmp_path / "model.json"
        path.write_text(json.dumps(document))
        with pytest.raises(ModelFileError, match="'float_feature_index'"):
            rk.load_model(path)


def test_files_are_where_they_should_be():
    assert {path.name for path in Path(FOLDER).iterdir()} == {
        *EXPECTED, "documents.txt", "scores.json", "frame.json",
    }  # fmt: skip
    assert CATEGORICAL == 5


def test_imported_forests_are_explained():
    imported = rk.import_model(FOLDER / "lightgbm.txt")
    X = np.random.default_rng(0).normal(size=(20, imported.n_features_in_))
    names = imported.feature_names_
    data = rk.RankingData(X, np.arange(20) % 3, qid=[1] * 20, feature_names=names)
    attribution = rk.explain(imported, data, query=1).attribution
    sums = attribution.values.sum(axis=1) + attribution.expected
    np.testing.assert_allclose(sums, imported.predict(data), atol=1e-12)
