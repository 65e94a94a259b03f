"""Chains of operations on a RankingData, beside the same on a plain list of dicts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rankinite.data.ranking_data import RankingData, concat

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
    assert joined.base is data.base
    by_qid = {query["qid"]: query for query in model}
    return joined, [by_qid.pop(qid) for qid in joined.qids]


def copying(draw, data, model):
    """Put a part together with one that has another matrix."""
    cut = draw(st.integers(1, len(model)))
    parts = [data[:cut], *([build(model[cut:])] if cut < len(model) else [])]
    joined = concat(parts)
    assert (joined.base is data.base) == (len(parts) == 1)
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
