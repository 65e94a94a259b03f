"""Rankings by our own JSON."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas
import pytest

import rankinite as rk
from tests.serve.cases import DATA, SMALL, client_of, saved

X = np.asarray(DATA.X, np.float32)[:5]


def rows(matrix=X):
    return [[None if np.isnan(v) else float(v) for v in row] for row in matrix]


def scores_of(answer):
    """Return the scores in the order of the request."""
    assert answer.status == 200, answer.body
    ranked = {entry["id"]: entry["score"] for entry in answer.json["ranking"]}
    return [ranked[k] for k in sorted(ranked)]


def rank(client, body, name="plain"):
    return client.post(f"/models/{name}/rank", body)


def test_scores_are_those_of_predict(client, model):
    answer = rank(client, {"features": rows()})
    assert scores_of(answer) == model.predict(X).tolist()
    listed = [entry["score"] for entry in answer.json["ranking"]]
    assert listed == sorted(listed, reverse=True)
    assert answer.json["model"] == "plain"
    assert answer.json["version"] == "1"


def test_documents_may_have_features_by_name_or_position(client, model):
    by_name = [{"features": dict(zip("123", row, strict=True))} for row in rows()]
    assert scores_of(rank(client, {"documents": by_name})) == model.predict(X).tolist()
    by_position = [{"features": row} for row in rows()]
    assert scores_of(rank(client, {"documents": by_position})) == model.predict(X).tolist()


def test_what_is_absent_is_missing(client, model):
    expected = X.copy()
    expected[:, [0, 2]] = np.nan
    values = [row[1] for row in rows()]
    asked = [
        {"documents": [{"features": {"2": value}} for value in values]},
        {"documents": [{"features": [None, value, None]} for value in values]},
        {"features": [[value] for value in values], "feature_names": ["2"]},
        {"features": [[0, value] for value in values], "feature_names": ["x", "2"],
         "ignore_unknown": True},
    ]  # fmt: skip
    for body in asked:
        assert scores_of(rank(client, body)) == model.predict(expected).tolist()


def test_documents_and_queries_keep_their_ids(client):
    documents = [{"id": f"d{k}", "features": row} for k, row in enumerate(rows())]
    answer = rank(client, {"id": "q", "documents": documents})
    assert answer.json["id"] == "q"
    assert {entry["id"] for entry in answer.json["ranking"]} == {f"d{k}" for k in range(5)}
    matrix = rank(client, {"id": "q", "features": rows(), "ids": [f"d{k}" for k in range(5)]})
    assert matrix.body == answer.body


def test_many_queries_are_answered_in_order(client):
    body = {
        "queries": [
            {"id": "a", "features": rows()[:2]},
            {"id": 7, "documents": [{"features": row} for row in rows()[2:]]},
            {"documents": []},
        ]
    }
    queries = rank(client, body).json["queries"]
    assert [query.get("id") for query in queries] == ["a", 7, None]
    assert [len(query["ranking"]) for query in queries] == [2, 3, 0]
    alone = rank(client, {"features": rows()[:2]}).json["ranking"]
    assert queries[0]["ranking"] == alone


def test_documents_of_equal_scores_stay_in_order(client):
    answer = rank(client, {"features": [rows()[0]] * 3, "ids": ["c", "a", "b"]})
    assert [entry["id"] for entry in answer.json["ranking"]] == ["c", "a", "b"]


def test_categories_are_texts(client, folder):
    import pandas as pd

    frame = pd.DataFrame({"bm25": [0.5, 0.9, 0.1, 0.2], "brand": ["bolt", "acme", "new", None]})
    expected = rk.load_model(folder / "named.rk").predict(frame).tolist()
    pairs = [[0.5, "bolt"], [0.9, "acme"], [0.1, "new"], [0.2, None]]
    documents = [{"features": {"bm25": b, "brand": brand}} for b, brand in pairs]
    assert len(set(expected)) > 2
    assert scores_of(rank(client, {"documents": documents}, "shop")) == expected
    assert scores_of(rank(client, {"features": pairs}, "shop")) == expected
    reverse = {"features": [pair[::-1] for pair in pairs], "feature_names": ["brand", "bm25"]}
    assert scores_of(rank(client, reverse, "shop")) == expected


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "the body is no JSON"),
        (b"x=1", "the body is no JSON"),
        (b'{"features": [[NaN, 1, 2]]}', "a missing value is null"),
        (b'{"features": [["\xff"]]}', "not UTF-8"),
        (b'{"features": ' + b"[" * 5000 + b"]" * 5000 + b"}", "nested too deep"),
        (b"[]", "Expected `object`, got `array`"),
        ({}, "there are neither 'documents' nor 'features'; expected one of the two"),
        ({"documents": [], "features": []}, "there are both"),
        ({"documents": [], "ids": []}, "'ids' belongs to a matrix"),
        ({"queries": [], "id": "q"}, "there is 'id' beside 'queries'"),
        ({"queries": [{}]}, "queries[0]: there are neither"),
        ({"explian": True}, "unknown field `explian`"),
        ({"features": None}, "Expected `array`, got `null`"),
        ({"features": [1, 2, 3]}, "Expected `array`, got `int` at `features[0]`"),
        ({"features": [[1, 2]]}, "row 0 of features has 2 values; expected 3"),
        ({"features": [[1, 2, "3"]]}, "feature '3' of document 0 (counted from 0) is the text"),
        ({"features": [[1, 2, True]]}, "got `bool` at `features[0][2]`"),
        ({"features": [[1, 2, 1e39]]}, "too large for 32 bits"),
        ({"features": [[1]], "feature_names": ["x"]}, "the model has no feature 'x'"),
        ({"features": [[1, 1]], "feature_names": ["1", "1"]}, "'1' is there twice"),
        ({"features": [[1]], "feature_names": ["1", "2"]}, "row 0 of features has 1 values"),
        ({"features": [[1, 2, 3]], "ids": []}, "there are 0 ids for 1 rows"),
        ({"features": [[1, 2, 3]], "base_scores": [0]}, "needs none"),
        ({"documents": [{}]}, "missing required field `features`"),
        ({"documents": [{"features": [1]}]}, "document 0 has 1 features; expected 3"),
        ({"documents": [{"features": {"11": 1}}]}, "document 0: the model has no feature '11'"),
        ({"documents": [{"id": "a", "features": {}}, {"features": {}}]}, "expected all or none"),
        ({"documents": [{"features": {"1": "x"}}]}, "is the text 'x'; expected a number"),
    ],
)  # fmt: skip
def test_bad_bodies_are_refused_in_a_sentence(client, body, sentence):
    answer = rank(client, body)
    assert answer.status == 400
    assert sentence in answer.error


def test_texts_of_numbers_are_texts_everywhere(client):
    for name in ("plain", "shop"):
        document = {"features": {"1" if name == "plain" else "bm25": "1.5"}}
        assert "expected a number" in rank(client, {"documents": [document]}, name).error


@pytest.fixture(scope="module")
def on_scores(tmp_path_factory):
    base = np.linspace(0, 1, DATA.n_docs)
    ranker = rk.LambdaMART(**SMALL, base=base).fit(DATA)
    path = saved(tmp_path_factory.mktemp("on scores"), "on", ranker)
    with client_of(str(path)) as client:
        yield client, ranker


def test_models_on_top_of_scores_get_those(on_scores):
    client, ranker = on_scores
    base = [0.5, -1.0, 3.0, 0.0, 2.0]
    expected = ranker.predict(X, base_scores=base).tolist()
    assert scores_of(client.post("/rank", {"features": rows(), "base_scores": base})) == expected
    documents = [
        {"features": row, "base_score": score} for row, score in zip(rows(), base, strict=True)
    ]
    assert scores_of(client.post("/rank", {"documents": documents})) == expected
    refused = client.post("/rank", {"features": rows()})
    assert refused.status == 400
    assert "was trained on top of scores" in refused.error
    del documents[0]["base_score"]
    assert "some have none" in client.post("/rank", {"documents": documents}).error


def test_queries_are_normalised_one_by_one(tmp_path):
    ranker = rk.MART(**SMALL, loss="logistic", per_query=True).fit(DATA)
    with client_of(str(saved(tmp_path, "mart", ranker))) as client:
        body = {"queries": [{"features": rows()[:2]}, {"features": rows()[2:]}]}
        queries = client.post("/rank", body).json["queries"]
    expected = ranker.predict(X, qid=[0, 0, 1, 1, 1])
    answered = [
        entry["score"]
        for query in queries
        for entry in sorted(query["ranking"], key=lambda entry: entry["id"])
    ]
    assert answered == expected.tolist()


def test_answers_are_json_of_few_bytes(client):
    body = rank(client, {"features": rows()[:1]}).body
    assert body.startswith(b'{"model":"plain","version":"1","ranking":[{"id":0,"score":')
    assert json.loads(body)


def test_contributions_add_up_to_scores(client, model):
    answer = rank(client, {"features": rows(), "explain": True})
    assert scores_of(answer) == model.predict(X).tolist()
    for entry in answer.json["ranking"]:
        sizes = [abs(value) for value in entry["contributions"].values()]
        assert sizes == sorted(sizes, reverse=True)
        total = math.fsum([entry["expected"], *entry["contributions"].values()])
        assert total == pytest.approx(entry["score"], abs=1e-12)
    assert "contributions" not in rank(client, {"features": rows()}).json["ranking"][0]
    assert rank(client, {"features": [], "explain": True}).json["ranking"] == []


def test_texts_of_categories_are_explained():
    shops = ["a", "b", "a", "c", "b", "a"] * 10
    frame = pandas.DataFrame({"shop": shops, "price": np.arange(60.0)})
    fitted = rk.MART(n_trees=5, min_docs_in_leaf=1, categorical_features=["shop"])
    fitted.fit(frame, (np.array(shops) == "a") * 2, qid=np.repeat(np.arange(6), 10))
    fitted.save("shops.rk")
    documents = [{"features": {"shop": shop, "price": 3}} for shop in "abz"]
    with client_of("shops=shops.rk") as client:
        answer = rank(client, {"documents": documents, "explain": True}, "shops")
    assert answer.status == 200, answer.body
    assert next(iter(answer.json["ranking"][0]["contributions"])) == "shop"
