from __future__ import annotations

import dataclasses
import logging
import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.core.errors import DataError, UsageError
from rankinite.data.concat import concat
from rankinite.data.ranking_data import RankingData
from tests.data.cases import simple


@pytest.mark.parametrize(
    ("queries", "qids"),
    [
        ({"qid": [7, 7, 3]}, [7, 3]),
        ({"qid": np.array([7, 7, -3], np.int8)}, [7, -3]),
        ({"qid": [7.0, 7.0, 3.0]}, [7, 3]),
        ({"qid": np.array([2**63 - 1] * 2 + [-(2**63)])}, [2**63 - 1, -(2**63)]),
        ({"qid": np.array([5, 5, 6], np.uint64)}, [5, 6]),
        ({"qid": ["b", "b", "a"]}, ["b", "a"]),
        ({"qid": np.array(["10", "10", "9"], object)}, ["10", "9"]),
        ({"qid": ["", "", "ü x"]}, ["", "ü x"]),
        ({"group_sizes": [2, 1]}, [1, 2]),
        ({"group_sizes": np.array([2.0, 1.0])}, [1, 2]),
    ],
)
def test_queries_from_ids_or_sizes(queries, qids):
    data = RankingData([[1], [2], [3]], [0, 1, 2], **queries)
    assert data.qids.tolist() == qids
    assert data.qid.tolist() == [qids[0], qids[0], qids[1]]
    assert (data.offsets.tolist(), data.sizes.tolist()) == ([0, 2, 3], [2, 1])
    assert (len(data), data.n_queries, data.n_docs, data.n_features) == (2, 2, 3, 1)
    assert (data.matrix.dtype, data.offsets.dtype, data.y.dtype) == (np.float32, np.int64, float)
    assert data.rows is None


def test_features_are_not_copied():
    X = np.ones((3, 2), np.float32)
    assert np.shares_memory(RankingData(X, [0, 1, 2], [1, 1, 1]).matrix, X)
    assert X.flags.writeable


def test_grouping_is_stable_and_in_order_of_first_appearance():
    qid = np.array(["b", "a", "b", "c", "a", "b"])
    fields = {
        "labels": {"clicks": [10, 11, 12, 13, 14, np.nan]},
        "doc_ids": list("uvwxyz"),
        "comments": list("UVWXYZ"),
        "query_weight": [1, 2, 3],
    }
    data = RankingData(np.arange(6.0)[:, None], np.arange(6), qid, group=True, **fields)
    assert data.rows.tolist() == [0, 2, 5, 1, 4, 3]
    assert data.X.ravel().tolist() == data.y.tolist() == [0, 2, 5, 1, 4, 3]
    assert data.qid.tolist() == list("bbbaac")
    assert "".join(data.doc_ids) + "".join(data.comments) == "uwzvyxUWZVYX"
    assert data.labels["clicks"].tolist()[3:] == [11, 14, 13]
    assert data.query_weight.tolist() == [1, 2, 3]
    together = RankingData([[1], [2]], [0, 1], [1, 1], group=True)
    assert together.rows is None


GOOD = {"X": [[1, 2], [3, 4], [5, np.nan]], "y": [0, 1, 2], "qid": [1, 1, 2]}
BIG = np.array([1, 2**63, 2], np.uint64)


@pytest.mark.parametrize(
    ("change", "error", "sentence"),
    [
        ({"y": [0, 1]}, DataError, "y: 2 values for 3 documents"),
        ({"y": [[0, 1, 2]]}, DataError, r"y: an array of shape \(1, 3\) for 3 documents"),
        ({"qid": [1, 1]}, DataError, "qid: 2 values for 3 documents"),
        ({"y": ["a", 1, 2]}, DataError, "y: cannot be made numbers"),
        ({"y": [0, -1, 2]}, DataError, "y: the label of document 1 is -1; expected at least 0"),
        ({"y": [0, 1, np.nan]}, DataError, "y: the label of document 2 is nan"),
        ({"y": [np.inf, 1, 2]}, DataError, "y: the label of document 0 is inf"),
        ({"qid": [1, 2, 1]}, DataError, "query 1 comes again at document 2 .*began at document 0"),
        ({"qid": [1.5, 1, 2]}, DataError, "qid: cannot use float64"),
        ({"qid": [np.nan, 1, 2]}, DataError, "qid: document 0 has nan"),
        ({"qid": [True, True, False]}, DataError, "qid: cannot use bool"),
        ({"qid": [1.0, 1e300, 2e300]}, DataError, "qid: .* of document 1 does not fit in a 64-bit"),
        ({"qid": BIG}, DataError, "qid: 9223372036854775808 of document 1 does not fit"),
        ({"qid": np.array(["a", None, "b"])}, DataError, "qid: document 1 has none"),
        ({"qid": np.array([np.nan, "a", "b"], object)}, DataError, "qid: document 0 has none"),
        ({"qid": None}, UsageError, "either qid or group_sizes"),
        ({"group_sizes": [3]}, UsageError, "either qid or group_sizes"),
        ({"qid": None, "group_sizes": [1, 1]}, DataError, "add up to 2, but there are 3 documents"),
        ({"qid": None, "group_sizes": [2, 0, 1]}, DataError, "query 1 has size 0; expected"),
        ({"qid": None, "group_sizes": [4, -1]}, DataError, "query 1 has size -1; expected"),
        ({"qid": None, "group_sizes": [1.5, 1.5]}, DataError, "query 0 has size 1.5; expected"),
        ({"qid": None, "group_sizes": ["3"]}, DataError, "query 0 has size 3; expected"),
        ({"qid": None, "group_sizes": []}, DataError, "expected one size per query"),
        ({"X": [[1], [np.inf], [2]]}, DataError, "feature '1' of document 1 is infinite"),
        ({"X": [[1, 2], [3, 4], [5, 1e39]]}, DataError, "feature '2' of document 2 .* too large"),
        ({"X": [1, 2, 3]}, DataError, "X: has 1 dimensions; expected 2"),
        ({"X": np.empty((0, 2)), "y": [], "qid": []}, DataError, "X: there are no documents"),
        ({"X": np.empty((3, 0))}, DataError, "X: there are no features"),
        ({"X": [[1], [2, 3], [4]]}, DataError, "X: cannot be made a matrix"),
        ({"X": [["a"], ["b"], ["c"]]}, DataError, "X: cannot be made a matrix"),
        ({"top_grade": 1.5}, DataError, "top_grade: 1.5 is below the label 2 of document 2"),
        ({"top_grade": np.nan}, UsageError, "top_grade must be a finite number, at least 0"),
        ({"feature_names": ["a", "a"]}, DataError, "feature_names: 'a' occurs twice"),
        ({"feature_names": ["a"]}, DataError, "feature_names: 1 names for 2 features"),
        ({"doc_ids": ["a"]}, DataError, "doc_ids: 1 of them for 3 documents"),
        ({"comments": list("abcd")}, DataError, "comments: 4 of them for 3 documents"),
        ({"comments": ["a", "\ud800", "c"]}, DataError, "comments: the text of document 1 is not"),
        ({"query_weight": [1]}, DataError, "query_weight: 1 values for 2 queries"),
        ({"query_weight": [1, -1]}, DataError, "the weight of query 1 is -1"),
        ({"query_weight": [np.nan, 1]}, DataError, "the weight of query 0 is nan"),
        ({"query_weight": [1, np.inf]}, DataError, "the weight of query 1 is inf"),
        ({"query_weight": [0, 0]}, DataError, "query_weight: all weights are 0"),
        ({"labels": {"c": [1, 2]}}, DataError, r"labels\['c'\]: 2 values for 3 documents"),
        ({"labels": {"c": [1, -2, 3]}}, DataError, r"labels\['c'\]: the label of document 1 is -2"),
        ({"labels": {"c": [1, 2, np.inf]}}, DataError, r"labels\['c'\].* document 2 is infinite"),
        *(
            ({"labels": {name: [1, 2, 3]}}, UsageError, "a label source must be a name")
            for name in ("", "a]", "a[b", "a > b", "a,b", "a\nb", 3)
        ),
    ],
)
def test_what_is_refused(change, error, sentence):
    assert RankingData(**GOOD).n_docs == 3
    with pytest.raises(error, match=sentence):
        RankingData(**(GOOD | change))


def test_top_grade_is_the_largest_label_unless_given(caplog):
    caplog.set_level(logging.INFO, "rankinite")
    assert RankingData(**GOOD).top_grade == 2
    assert "the top grade is taken to be 2" in caplog.text
    data = RankingData(**GOOD, top_grade=4)
    assert data.top_grade == data[0].top_grade == data.split(2)[1].top_grade == 4
    assert concat([data[:1], RankingData([[1, 2]], [6], [9])]).top_grade == 6


def test_immutable():
    data = simple(labels={"clicks": np.ones(9)}, query_weight=np.ones(5))
    for part in (data, data[1:], data.select_features([0]), concat([data[3:], data[:2]])):
        arrays = [part.matrix, part.X, part.y, part.offsets, part.qids, part.query_weight]
        arrays += [part.labels["clicks"], *([] if part.rows is None else [part.rows])]
        assert not any(array.flags.writeable for array in arrays)
        with pytest.raises(dataclasses.FrozenInstanceError):
            part.y = None
        with pytest.raises(TypeError):
            part.labels["clicks"] = None


@pytest.mark.parametrize(
    "chosen",
    [
        *(0, 4, -1, -5, np.int64(2), np.array(3)),
        *(slice(None), slice(1, 3), slice(None, None, -2), slice(-2, 99)),
        *([2], [4, 0, -2], (1, 3), np.array([3, 1], np.uint8)),
        *([True, False, True, False, False], np.arange(5) > 2),
    ],
)
def test_slicing_is_numpy_indexing(chosen):
    data = simple()
    part = data[chosen]
    numbers = np.atleast_1d(np.arange(5)[np.array(chosen) if isinstance(chosen, tuple) else chosen])
    docs = np.concatenate([np.arange(data.offsets[q], data.offsets[q + 1]) for q in numbers])
    assert part.qids.tolist() == (10 + numbers).tolist()
    assert part.sizes.tolist() == (1 + numbers % 3).tolist()
    assert part.X.tolist() == data.X[docs].tolist()
    assert (part.y == data.y[docs]).all()
    assert part.matrix is data.matrix
    again = part[::-1][[-1]]
    assert again.X.tolist() == data.X[docs[: part.sizes[0]]].tolist()
    assert [query.qids[0] for query in part] == part.qids.tolist()


@pytest.mark.parametrize("chosen", [5, -6, [0, 5], [True], [0.5], "a", None, [[0, 1]], [None]])
def test_slices_out_of_range(chosen):
    with pytest.raises(UsageError, match=r"RankingData: (there are 5 queries, 0 to 4|queries are)"):
        simple()[chosen]


@pytest.mark.parametrize("chosen", [slice(3, 3), [], np.zeros(5, bool)])
def test_empty_slices(chosen):
    with pytest.raises(UsageError, match="the chosen slice has no queries"):
        simple()[chosen]


@pytest.mark.parametrize(
    ("other", "error", "sentence"),
    [
        (RankingData([[1, 2, 3]], [0], [1]), DataError, "different features: 2 and 3 of them"),
        (
            RankingData([[1, 2]], [0], [1], feature_names=["1", "x"]),
            DataError,
            "different features: '2' in one where the other has 'x'",
        ),
        (
            RankingData([[1, 2]], [0], [1], labels={"clicks": [1]}),
            DataError,
            r"different label sources: \[\] and \['clicks'\]",
        ),
        (RankingData([[1, 2]], [0], [12]), DataError, "query 12 is in two of the sets"),
        (None, UsageError, "concat: there is nothing to concatenate"),
    ],
)
def test_what_concat_refuses(other, error, sentence):
    with pytest.raises(error, match=sentence):
        concat([] if other is None else [simple(), other])


def test_concat_fills_what_one_set_lacks():
    bare, full = simple(1), simple(2, doc_ids=list("abc"), comments=list("def"))[1]
    heavy = RankingData([[1, 2]], [0], [99], query_weight=[0.5])
    joined = concat([bare, full, heavy])
    assert joined.doc_ids.tolist() == ["", "b", "c", ""]
    assert joined.comments.tolist() == ["", "e", "f", ""]
    assert joined.query_weight.tolist() == [1, 1, 0.5]
    assert joined.rows is None


@pytest.mark.parametrize("bad", [["c"], [2], [-1], [0.0], [True], [], slice(2, 2), ["a", 0]])
def test_bad_features(bad):
    with pytest.raises(UsageError, match=r"^select_features: |^there is no feature called "):
        simple(feature_names=["a", "b"]).select_features(bad)


@pytest.mark.parametrize(
    "change",
    [
        {"X": [[1, 2], [3, 4], [5, 0]]},
        {"X": [[1, 2], [3, 4.0000005], [5, np.nan]]},
        {"X": [[1], [3], [5]]},
        {"y": [0, 2, 2]},
        {"qid": [1, 1, 3]},
        {"qid": [1, 2, 2]},
        {"qid": ["1", "1", "2"]},
        {"top_grade": 3},
        {"feature_names": ["1", "x"]},
        *({name: ["", "", ""]} for name in ("doc_ids", "comments")),
        {"query_weight": [1, 1]},
        {"labels": {"c": [1, 2, np.nan]}},
    ],
)
def test_equals_sees_every_difference(change):
    other = RankingData(**(GOOD | change))
    assert not RankingData(**GOOD).equals(other)
    assert other.equals(concat([other[0], other[1]]))


def test_equals_sees_signs_of_zero_but_not_of_nan():
    plus, minus, nan = (RankingData([[x]], [0], [1]) for x in (0.0, -0.0, np.nan))
    assert not plus.equals(minus)
    negative = RankingData(np.array([[0xFFC00001]], np.uint32).view(np.float32), [0], [1])
    assert nan.equals(negative)


# Chains of operations, beside the same on a plain list of dicts.
Model = list[dict]
TOP_GRADE = 5


@st.composite
def models(draw) -> Model:
    """Return queries; a document's features are a dict, None where a value is missing."""
    optional = draw(st.sets(st.sampled_from(["weight", "id", "comment", "clicks", "likes"])))
    names = draw(st.lists(st.sampled_from("abcd"), min_size=1, unique=True))
    values = st.tuples(*[st.none() | st.integers(-9, 9)] * len(names))
    document = {
        "features": values.map(lambda values: dict(zip(names, values, strict=True))),
        "y": st.integers(0, TOP_GRADE),
    }
    document |= {name: st.text("xy #", max_size=3) for name in ("id", "comment")}
    document |= {name: st.none() | st.integers(0, 3) for name in ("clicks", "likes")}
    wanted = {name: s for name, s in document.items() if name in optional | {"features", "y"}}
    query = {"docs": st.lists(st.fixed_dictionaries(wanted), min_size=1, max_size=3)}
    if "weight" in optional:
        query["weight"] = st.integers(1, 4)
    queries = draw(st.lists(st.fixed_dictionaries(query), min_size=1, max_size=6))
    return [{"qid": f"q{k}"} | query for k, query in enumerate(queries)]


def build(model: Model) -> RankingData:
    docs = [doc for query in model for doc in query["docs"]]
    names = list(docs[0]["features"])

    def column(name: str) -> list | None:
        return [doc[name] for doc in docs] if name in docs[0] else None

    return RankingData(
        np.array([[doc["features"][name] for name in names] for doc in docs], np.float32),
        column("y"),
        [query["qid"] for query in model for _ in query["docs"]],
        labels={n: np.array(column(n), float) for n in ("clicks", "likes") if n in docs[0]},
        query_weight=[q["weight"] for q in model] if "weight" in model[0] else None,
        doc_ids=column("id"),
        comments=column("comment"),
        feature_names=names,
        top_grade=TOP_GRADE,
    )


def contents(data: RankingData) -> Model:
    """Read a data set back into a model, value by value."""

    def number(value: float) -> float | None:
        return None if np.isnan(value) else float(value)

    def document(i: int) -> dict:
        features = dict(zip(data.feature_names, map(number, data.X[i]), strict=True))
        doc = {"features": features, "y": data.y[i]}
        doc |= {name: number(values[i]) for name, values in data.labels.items()}
        texts = {"id": data.doc_ids, "comment": data.comments}
        return doc | {name: text[i] for name, text in texts.items() if text is not None}

    queries = []
    for q in range(data.n_queries):
        docs = [document(i) for i in range(data.offsets[q], data.offsets[q + 1])]
        queries.append({"qid": str(data.qids[q]), "docs": docs})
        if data.query_weight is not None:
            queries[-1]["weight"] = data.query_weight[q]
    return queries


Step = Callable[[st.DataObject, RankingData, Model], tuple[RankingData, Model]]


def slicing(draw, data, model):
    chosen = draw(st.slices(len(model)).filter(lambda chosen: model[chosen]))
    return data[chosen], model[chosen]


def picking(draw, data, model):
    order = draw(st.permutations(range(len(model))))[: draw(st.integers(1, len(model)))]
    signed = [q - draw(st.sampled_from([0, len(model)])) for q in order]
    return data[signed], [model[q] for q in order]


def masking(draw, data, model):
    mask = draw(st.lists(st.booleans(), min_size=len(model), max_size=len(model)).filter(any))
    return data[np.array(mask)], [query for query, kept in zip(model, mask, strict=True) if kept]


def splitting(draw, data, model):
    n, seed = draw(st.integers(1, len(model))), draw(st.integers(0, 3))
    joined = concat(draw(st.permutations(data.split(n, seed=seed))))
    assert joined.matrix is data.matrix
    by_qid = {query["qid"]: query for query in model}
    return joined, [by_qid.pop(qid) for qid in joined.qids]


def copying(draw, data, model):
    """Put a part together with one that has another matrix."""
    cut = draw(st.integers(1, len(model)))
    parts = [data[:cut], *([build(model[cut:])] if cut < len(model) else [])]
    joined = concat(parts)
    assert (joined.matrix is data.matrix) == (len(parts) == 1)
    return joined, model


def choosing_features(draw, data, model):
    names = draw(st.permutations(data.feature_names))[: draw(st.integers(1, data.n_features))]
    by_number = [data.feature_names.index(name) for name in names]
    chosen = data.select_features(draw(st.sampled_from([names, by_number])))
    docs = [
        [doc | {"features": {name: doc["features"][name] for name in names}} for doc in q["docs"]]
        for q in model
    ]
    return chosen, [query | {"docs": some} for query, some in zip(model, docs, strict=True)]


STEPS: list[Step] = [slicing, picking, masking, splitting, copying, choosing_features]


@settings(max_examples=150, deadline=None)
@given(model=models(), steps=st.lists(st.sampled_from(STEPS), max_size=6), drawn=st.data())
def test_nothing_gets_lost(model, steps, drawn):
    data = build(model)
    for step in steps:
        data, model = step(drawn.draw, data, model)
    assert contents(data) == model
    assert list(data.feature_names) == list(model[0]["docs"][0]["features"])
    assert data.top_grade == TOP_GRADE
    assert data.equals(build(model))
    assert data.equals(concat(list(data)))


def test_label_sources_are_added_and_replaced():
    data = simple(2, labels={"clicks": [1, 2, 3]})
    more = data.with_labels({"likes": [0, np.nan, 4], "clicks": np.array([5, 6, 7])})
    assert list(more.labels) == ["clicks", "likes"]
    assert more.labels["clicks"].tolist() == [5, 6, 7]
    assert more.with_labels({}).equals(more)
    expected = {"clicks": [5, 6, 7], "likes": [0, np.nan, 4]}
    assert more.equals(simple(2, labels=expected))
    assert more.matrix is data.matrix
    assert data.labels.keys() == {"clicks"}
    assert data.labels["clicks"].tolist() == [1, 2, 3]


def test_added_labels_are_neither_shared_nor_writeable():
    labels = np.ones(3)
    data = simple(2).with_labels({"clicks": labels})
    labels[0] = 9
    assert data.labels["clicks"].tolist() == [1, 1, 1]
    assert not data.labels["clicks"].flags.writeable


def test_added_labels_follow_the_order_of_the_set():
    data = simple(3)[::-1].with_labels({"place": np.arange(6)})
    assert data[[2, 0]].labels["place"].tolist() == [5, 0, 1, 2]


@pytest.mark.parametrize(
    ("labels", "error", "sentence"),
    [
        ({"c": [1, 2]}, DataError, r"labels\['c'\]: 2 values for 3 documents"),
        ({"c": [1, -2, 3]}, DataError, r"labels\['c'\]: the label of document 1 is -2"),
        ({"c": [1, 2, np.inf]}, DataError, r"labels\['c'\].* document 2 is infinite"),
        ({"a]": [1, 2, 3]}, UsageError, "a label source must be a name"),
    ],
)
def test_added_labels_are_checked(labels, error, sentence):
    with pytest.raises(error, match=sentence):
        simple(2).with_labels(labels)


def test_a_set_can_be_sent_to_another_process():
    data = RankingData([[1], [2], [3]], [0, 1, 2], [5, 5, 6], labels={"clicks": [0, 0.5, 1]})
    back = pickle.loads(pickle.dumps(data[1]))
    assert back.equals(data[1])
    assert not back.y.flags.writeable


def test_a_query_cannot_be_chosen_twice():
    data = RankingData([[1], [2]], [0, 1], [5, 6])
    with pytest.raises(UsageError, match="chosen twice"):
        data[[0, 0]]


def test_one_text_is_no_list_of_names():
    data = RankingData([[1, 2]], [0], [1], feature_names=["2", "5"])
    with pytest.raises(UsageError, match=r"expected a list, \['25'\]"):
        data.select_features("25")


@pytest.mark.parametrize(
    ("qid", "sentence"),
    [
        (["a\0", "a"], "the id 'a\\x00' has a NUL character"),
        (np.array(["a", "a\0"], object), "the id 'a\\x00' has a NUL character"),
        (["\ud800", "a"], "the id '\\ud800' is not Unicode"),
        (
            [1, "1"],
            "document 1 has \"'1'\", and document 0 has '1'; expected either numbers or texts",
        ),
        (["1", 1.0], "expected either numbers or texts"),
        (np.array(["1", 1], object), "expected either numbers or texts"),
        ([b"a", "a"], "expected either numbers or texts"),
        ([2.0**53, 1.0], "9007199254740992 of document 0 may be several whole numbers"),
        (np.array([1, 2**24], np.float32), "16777216 of document 1 may be several whole numbers"),
        (np.array([[1], [1, 2]], object), "document 0 has a list; expected whole numbers or texts"),
    ],
)
def test_ids_that_numpy_would_merge(qid, sentence):
    with pytest.raises(DataError) as caught:
        RankingData([[0.5], [0.1]], [1, 0], qid)
    assert sentence in str(caught.value)


def test_ids_of_different_objects_are_different_queries():
    data = RankingData(np.ones((4, 1)), np.ones(4), ["é", "é", "a", "ab"])
    assert data.qids.tolist() == ["é", "a", "ab"]
    assert data.qids.dtype.kind == "U"
    largest = RankingData(np.ones((2, 1)), np.ones(2), [2.0**53 - 1, 2.0**53 - 2])
    assert largest.qids.tolist() == [2**53 - 1, 2**53 - 2]
