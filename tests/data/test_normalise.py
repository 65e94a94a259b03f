"""Features as shares of documents below."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

import rankinite as rk
from rankinite.core.container import Content, read_container, write_container
from rankinite.data.cut_points import from_arrays, to_arrays
from rankinite.data.normalise import RankNormaliser

NAN = float("nan")


def make(*columns, first_qid: int = 1, **more) -> rk.RankingData:
    """Return a data set of some columns of features, two documents a query."""
    X = np.array(columns, np.float32).T
    qid = first_qid + np.arange(len(X)) // 2
    return rk.RankingData(X, np.arange(len(X)) % 3, qid, **more)


def formula(x: float, values) -> float:
    """Return |{j: x_j < x}| / (n - 1) over the values that are there (Challenge, Sec. 4.3)."""
    known = [value for value in values if not np.isnan(value)]
    if np.isnan(x):
        return NAN
    return min(1.0, sum(value < x for value in known) / max(1, len(known) - 1))


numbers = st.floats(width=32, allow_infinity=False, allow_nan=False)
few = st.sampled_from([-1.5, 0.0, -0.0, 0.25, 3.0, NAN])
columns = st.lists(few | numbers, min_size=1, max_size=30)


@settings(deadline=None)
@given(st.lists(columns, min_size=1, max_size=3))
def test_the_formula_over_all_sets(parts):
    sets = [make(values) for values in parts]
    everything = [value for values in parts for value in values]
    for values, normalised in zip(parts, RankNormaliser().fit_transform(sets), strict=True):
        expected = [formula(x, np.float32(everything)) for x in np.float32(values)]
        np.testing.assert_array_equal(normalised.X[:, 0], np.float32(expected))


@settings(deadline=None)
@given(columns, columns)
def test_new_values_count_the_fitted_ones_below(fitted, new):
    ranks = RankNormaliser().fit(make(fitted)).transform(make(new)).X[:, 0]
    expected = [formula(x, np.float32(fitted)) for x in np.float32(new)]
    np.testing.assert_array_equal(ranks, np.float32(expected))


def test_values_by_hand():
    data = make([10, 20, 20, 40, NAN], [7, 7, 7, 7, 7], [NAN, 3, NAN, NAN, NAN], [NAN] * 5)
    normalised = RankNormaliser().fit_transform(data)
    # Four values are known, 0, 1, 1 and 3 of them are below; a constant and a lone value are 0.
    expected = [[0, 1 / 3, 1 / 3, 1, NAN], [0] * 5, [NAN, 0, NAN, NAN, NAN], [NAN] * 5]
    np.testing.assert_array_equal(normalised.X.T, np.float32(expected))
    other = make([9, 10, 15, 39, 41], [6, 7, 8, 9, 10], [2, 3, 4, 5, NAN], [1, 2, 3, 4, NAN])
    normalised = RankNormaliser().fit(data).transform(other)
    # Above all is 4/3, 5/4 and 1/0, of which 1 is left; where nothing was known all are 0.
    expected = [
        [0, 0, 1 / 3, 1, 1],
        [0, 0, 1, 1, 1],
        [0, 0, 1, 1, NAN],
        [0, 0, 0, 0, NAN],
    ]
    np.testing.assert_array_equal(normalised.X.T, np.float32(expected))


def test_interpolation_by_hand():
    normaliser = RankNormaliser(most_cut_points=3).fit(make(range(11)))
    assert normaliser.cut_points_[0].values.tolist() == [0, 5, 10]
    ranks = normaliser.transform(make([0, 2.5, 5, 5.000001, 9, 10, -1, 11])).X[:, 0]
    # Above 0 there is 1 below, and 5 below 5: half way are 3. Above 5 are 6, and 10 below 10.
    expected = [0, 0.3, 0.5, 0.6, 0.6 + 0.4 * 0.8, 1, 0, 1]
    np.testing.assert_allclose(ranks, expected, rtol=1e-6)


@settings(deadline=None, max_examples=300)
@given(
    st.lists(few | st.integers(0, 30).map(float) | numbers, min_size=1, max_size=80),
    st.integers(2, 12),
    columns,
)
def test_few_cut_points_are_nearly_right(values, most, new):
    normaliser = RankNormaliser(most_cut_points=most).fit(make(values))
    (kept,) = normaliser.cut_points_
    assert len(kept.values) <= most
    assert len(from_arrays(to_arrays([kept]), 1)) == 1
    seen = np.float32(values)
    ranks = normaliser.transform(make(values)).X[:, 0]
    exact = np.array([formula(x, seen) for x in seen])
    assert np.array_equal(np.isnan(ranks), np.isnan(seen))
    known = ~np.isnan(seen)
    assert (np.abs(ranks - exact)[known] <= 1 / (most - 1) + 1e-6).all()
    # Values anywhere keep their order, and stay within 0 and 1.
    ordered = np.sort(np.float32([*values, *new]))
    ranks = normaliser.transform(make(ordered)).X[:, 0]
    ranks = ranks[~np.isnan(ranks)]
    assert (np.diff(ranks) >= 0).all()
    assert (ranks >= 0).all()
    assert (ranks <= 1).all()


def test_few_values_are_kept_exactly():
    data = make(np.arange(50) % 7, np.arange(50))
    normaliser = RankNormaliser(most_cut_points=7).fit(data)
    assert [len(cut_points.values) for cut_points in normaliser.cut_points_] == [7, 7]
    exact = RankNormaliser().fit(data).transform(data)
    normalised = normaliser.transform(data)
    np.testing.assert_array_equal(normalised.X[:, 0], exact.X[:, 0])


def test_a_heavy_tie_does_not_blur_what_lies_above():
    """Nine tenths are 0, as in features that most documents lack."""
    values = np.concatenate([np.zeros(900), np.arange(1, 101)])
    ranks = RankNormaliser(most_cut_points=11).fit(make(values)).transform(make(values)).X[:, 0]
    assert (ranks[:900] == 0).all()
    assert (ranks[900:] >= np.float32(900 / 999)).all()


def wide(n_docs=60, n_features=37, seed=0) -> rk.RankingData:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_docs, n_features)).astype(np.float32).round(1)
    X[rng.random(X.shape) < 0.1] = np.nan
    return rk.RankingData(
        X,
        rng.integers(0, 5, n_docs),
        group_sizes=[n_docs // 10] * 10,
        labels={"clicks": np.arange(n_docs)},
        query_weight=np.arange(10) + 1.0,
        doc_ids=[f"d{k}" for k in range(n_docs)],
        comments=[f"c{k}" for k in range(n_docs)],
        feature_names=[f"f{k}" for k in range(n_features)],
        top_grade=6,
    )


def test_many_features_and_all_else_stays():
    data = wide()
    normalised = RankNormaliser().fit_transform(data)
    for j in range(data.n_features):
        expected = [formula(x, data.X[:, j]) for x in data.X[:, j]]
        np.testing.assert_array_equal(normalised.X[:, j], np.float32(expected))
    assert normalised.replace(matrix=data.matrix).equals(data)
    assert normalised.matrix.dtype == np.float32
    assert not normalised.matrix.flags.writeable
    assert not np.shares_memory(normalised.matrix, data.matrix)


def test_sets_that_share_a_matrix():
    data = wide()
    train, test = data.split(2, seed=1)
    normaliser = RankNormaliser().fit([train, test])
    whole = normaliser.transform(data)
    assert RankNormaliser().fit(data).transform(data).equals(whole)
    part = normaliser.transform(test)
    assert part.equals(whole[[q - 1 for q in test.qids]])
    assert len(part.matrix) == test.n_docs  # what the part does not use is not kept
    assert RankNormaliser().fit(test).cut_points_[0].n_values == (~np.isnan(test.X[:, 0])).sum()


def test_samples_go_on_sharing_rows():
    data = wide()
    normalised = RankNormaliser().fit_transform(data)
    after = RankNormaliser().fit(data).transform(rk.augment(data, 0.5, 4))
    assert after.equals(rk.augment(normalised, 0.5, 4))
    assert len(after.matrix) == data.n_docs


def test_one_feature_is_not_written_into():
    data = make([3, 1, 2])
    RankNormaliser().fit_transform(data)
    assert data.X[:, 0].tolist() == [3, 1, 2]


def test_threads_do_not_matter(on_threads):
    data = wide(n_docs=500, n_features=50)

    def saved_and_transformed():
        normaliser = RankNormaliser(most_cut_points=9).fit(data)
        normaliser.save("ranks.rk")
        return Path("ranks.rk").read_bytes(), normaliser.transform(data).X.tobytes()

    assert len(set(on_threads(saved_and_transformed).values())) == 1


@pytest.mark.parametrize("most", [None, 5])
def test_saved_and_loaded(most):
    data = make([3, 1, 2, NAN, 5, 9, 4], [NAN] * 7, [1] * 7, feature_names=["a", "b", "ü"])
    normaliser = RankNormaliser(most).fit(data)
    normaliser.save("cuts.rk")
    back = RankNormaliser.load("cuts.rk")
    assert (back.most_cut_points, back.feature_names_) == (most, ("a", "b", "ü"))
    assert back.transform(data).equals(normaliser.transform(data))
    back.save("again.rk")
    assert Path("again.rk").read_bytes() == Path("cuts.rk").read_bytes()


def test_every_flipped_byte_is_noticed():
    RankNormaliser().fit(make([3, 1, 2])).save("cuts.rk")
    whole = Path("cuts.rk").read_bytes()
    for place in range(0, len(whole), 29):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        Path("bad.rk").write_bytes(damaged)
        with pytest.raises(rk.ModelFileError, match=r"bad\.rk"):
            RankNormaliser.load("bad.rk")


def changed(name, array=None):
    def change(manifest, arrays):
        del manifest
        if array is None:
            del arrays[name]
        else:
            arrays[name] = np.array(array)

    return change


def said(**words):
    return lambda manifest, arrays: manifest.update(words)


F, U = np.float32, np.uint32


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (said(**{"class": "LambdaMART"}), "holds a 'LambdaMART' and no RankNormaliser; rankers"),
        (said(most_cut_points=1), "most_cut_points is 1; expected"),
        (said(most_cut_points="3"), "most_cut_points is '3'; expected"),
        (said(feature_names=["a"]), r"'n_cut_points' .* shape \(2,\); expected 1 of int64"),
        (said(feature_names=["a", "a"]), "the feature names are damaged; expected each once"),
        (said(feature_names=["a", 3]), "the feature names are damaged; expected a list"),
        (said(feature_names="ab"), "the feature names are damaged; expected a list"),
        (said(feature_names=[]), "the feature names are damaged; expected each once"),
        (changed("n_cut_points"), "the file lacks 'n_cut_points'"),
        (changed("n_cut_points", [3.0, 1.0]), "'n_cut_points' in the file is an array of float64"),
        (changed("n_cut_points", [2, 1]), "has not the 3 cut points"),
        (changed("n_cut_points", [5, -1]), "'n_cut_points' .* not from 0 to 4"),
        (changed("n_cut_points", [1, 1]), "has not the 2 cut points"),
        (changed("values"), "the file lacks 'values'"),
        (changed("values", F([1, 2, 3])), "expected 3 of uint32"),
        (changed("values", F([[1, 2, 3, 4]])), "expected n of float32"),
        (changed("values", [1.0, 2, 3, 4]), "an array of float64"),
        (changed("values", F([1, 3, 3, 4])), "of feature 0 do not increase"),
        (changed("values", F([1, 2, NAN, 4])), "or NaN"),
        (changed("values", F([1, 2, 3, np.inf])), "numbers that are not from"),
        (changed("below", U([0, 2, 1, 0])), "of feature 0 do not increase"),
        (changed("below", U([0, 1, 2, 1])), "of feature 1 do not increase"),
        (changed("upto", U([1, 2, 2, 3])), "of feature 0 do not increase"),
        (changed("upto", U([2, 2, 3, 3])), "of feature 0 do not increase"),
    ],
)
def test_what_cannot_be_is_not_loaded(change, sentence):
    RankNormaliser().fit(make([3, 1, 2], [7, 7, 7])).save("cuts.rk")
    content = read_container("cuts.rk")
    assert content.arrays["values"].tolist() == [1, 2, 3, 7]
    assert content.arrays["below"].tolist() == [0, 1, 2, 0]
    assert content.arrays["upto"].tolist() == [1, 2, 3, 3]
    manifest, arrays = dict(content.manifest), dict(content.arrays)
    change(manifest, arrays)
    write_container("bad.rk", Content(manifest, arrays))
    with pytest.raises(rk.ModelFileError, match=rf"^bad\.rk: .*{sentence}"):
        RankNormaliser.load("bad.rk")


def test_a_normaliser_is_no_ranker():
    RankNormaliser().fit(make([3, 1, 2])).save("cuts.rk")
    with pytest.raises(rk.ModelFileError, match=r"cuts\.rk: holds cut points, no model"):
        rk.load_model("cuts.rk")


def test_unfitted():
    for use in (lambda n: n.transform(make([1])), lambda n: n.save("x.rk")):
        with pytest.raises(rk.UsageError, match="RankNormaliser: is not fitted yet; call fit"):
            use(RankNormaliser())
    with pytest.raises(rk.ModelFileError, match=r"none\.rk: there is no such file"):
        RankNormaliser.load("none.rk")


def test_other_features_are_refused():
    narrow, wide_data = make([1, 2]), make([1, 2], [3, 4])
    named = make([1, 2], feature_names=["x"])
    with pytest.raises(rk.DataError, match=r"RankNormaliser: .* different features: 1 and 2 of"):
        RankNormaliser().fit([narrow, wide_data])
    with pytest.raises(rk.DataError, match="'1' in one where the other has 'x'"):
        RankNormaliser().fit(narrow).transform(named)
    with pytest.raises(rk.DataError, match="2 and 1 of them; choose the same with select_feat"):
        RankNormaliser().fit(wide_data).transform(narrow)


@pytest.mark.parametrize(
    ("documents", "sentence"),
    [
        ([], "RankNormaliser: Expected 2D array, got 1D array instead"),
        (3, "RankNormaliser: Expected 2D array, got scalar array instead"),
        ([[None, "x"]], "RankNormaliser: could not convert string to float"),
        ([[1e39]], "RankNormaliser: Input X contains infinity or a value too large for dtype"),
        ([make([1]), None], "NoneType is no data set; expected a RankingData"),
    ],
)
def test_what_cannot_be_fitted(documents, sentence):
    with pytest.raises((rk.DataError, rk.UsageError), match=sentence) as caught:
        RankNormaliser().fit(documents)
    assert "\n" not in str(caught.value)


TABLE = np.array([[30, 1], [10, NAN], [20, 3], [20, 2]])
RANKS = np.float32([[1, 0], [0, NAN], [1 / 3, 1], [1 / 3, 0.5]])


def test_arrays_in_and_out():
    normaliser = RankNormaliser()
    ranks = normaliser.fit_transform(TABLE)
    assert type(ranks) is np.ndarray
    np.testing.assert_array_equal(ranks, RANKS)
    np.testing.assert_array_equal(normaliser.transform(TABLE.tolist()), RANKS)
    assert normaliser.n_features_in_ == 2
    assert not hasattr(normaliser, "feature_names_in_")
    # A data set of the same numbers is normalised to the same, and stays a data set.
    data = rk.RankingData(TABLE, [0, 1, 2, 0], [1, 1, 2, 2])
    np.testing.assert_array_equal(normaliser.transform(data).X, RANKS)
    np.testing.assert_array_equal(RankNormaliser().fit(data).transform(TABLE), RANKS)
    with pytest.raises(rk.DataError, match="X has 1 features, but RankNormaliser is expecting 2"):
        normaliser.transform(TABLE[:, :1])
    with pytest.raises(NotFittedError):
        RankNormaliser().transform(TABLE)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_by_set_output(library):
    frames = pytest.importorskip(library)
    frame = frames.DataFrame({"a": TABLE[:, 0], "b": TABLE[:, 1]})
    normaliser = RankNormaliser().fit(frame)
    assert type(normaliser.transform(frame)) is np.ndarray
    assert normaliser.feature_names_in_.tolist() == list(normaliser.feature_names_) == ["a", "b"]
    # The clone of a pipeline or a search still knows what to return.
    framed = clone(normaliser.set_output(transform=library)).fit(frame)
    for ranks in (framed.transform(frame), framed.fit_transform(frame)):
        assert type(ranks) is frames.DataFrame
        assert list(ranks.columns) == ["a", "b"]
        np.testing.assert_array_equal(ranks.to_numpy(), RANKS)
    data = rk.RankingData(TABLE, [0, 1, 2, 0], [1, 1, 2, 2], feature_names=["a", "b"])
    with config_context(transform_output=library):
        assert isinstance(framed.transform(data), rk.RankingData)
        assert isinstance(RankNormaliser().fit_transform([data])[0], rk.RankingData)
    with pytest.raises(rk.DataError, match=r"The feature names should match .*unseen.* - c"):
        framed.transform(frame.rename(columns={"b": "c"}) if library == "pandas" else
                         frame.rename({"b": "c"}))  # fmt: skip


def test_names_survive_a_file():
    RankNormaliser().fit(make([3, 1, 2], feature_names=["x"])).save("named.rk")
    assert RankNormaliser.load("named.rk").get_feature_names_out().tolist() == ["x"]
    RankNormaliser().fit(TABLE).save("numbered.rk")
    loaded = RankNormaliser.load("numbered.rk")
    assert loaded.get_feature_names_out().tolist() == ["x0", "x1"]
    np.testing.assert_array_equal(loaded.transform(TABLE), RANKS)


def test_a_pipeline_of_a_data_set():
    data = make(range(20), range(20, 0, -1))
    ranker = rk.MART(n_trees=2, min_docs_in_leaf=1, random_state=0)
    piped = make_pipeline(RankNormaliser(), ranker).fit(data)
    alone = clone(ranker).fit(RankNormaliser().fit_transform(data))
    expected = alone.predict(RankNormaliser().fit_transform(data))
    np.testing.assert_array_equal(piped.predict(data), expected)


def test_check_estimator():
    declared = dict(RankNormaliser.expected_failed_checks)
    results = check_estimator(
        RankNormaliser(), expected_failed_checks=declared, on_fail=None, on_skip=None
    )
    assert [r["check_name"] for r in results if r["status"] == "failed"] == []
    assert {r["check_name"] for r in results if r["status"] == "xfail"} == declared.keys()
    assert len([r for r in results if r["status"] == "passed"]) > 40


def test_samples_cannot_be_fitted():
    sentence = (
        "RankNormaliser: the data hold samples, such as '1~1' .*normalise first, then augment"
    )
    with pytest.raises(rk.DataError, match=sentence):
        RankNormaliser().fit(rk.augment(wide()))


@pytest.mark.parametrize("most", [0, 1, -3, 2.0, True, "10"])
def test_wrong_numbers_of_cut_points(most):
    with pytest.raises(rk.UsageError, match="most_cut_points must be a whole number of at least 2"):
        RankNormaliser(most).fit(make([1, 2]))


def test_scikit_learn_copies_it():
    fitted = RankNormaliser(most_cut_points=9).fit(make([1, 2]))
    assert repr(clone(fitted)) == "RankNormaliser(most_cut_points=9)"
    assert not hasattr(clone(fitted), "cut_points_")
