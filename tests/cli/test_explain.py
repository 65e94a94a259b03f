"""The command ``explain``."""

import json
import math
from pathlib import Path

import pytest

import rankinite as rk


@pytest.fixture
def models():
    """Write two models and the data that they are explained on."""
    train, test = (rk.polynomials(15, part=p, n_features=4, n_docs=8) for p in ("train", "test"))
    rk.save(test, "test.txt")
    new = rk.LambdaMART(n_trees=8, n_leaves=6).fit(train)
    rk.LambdaMART(n_trees=1, n_leaves=3).fit(train).save("old.rk")
    new.save("new.rk")
    return new, rk.load("test.txt")


def test_a_query(call, models):
    model, data = models
    out = call("explain", "new.rk", "test.txt", "--query", "3", "--top", "5")
    assert "Query 3, 8 documents, NDCG@10 " in out
    values = json.loads(call("explain", "new.rk", "test.txt", "--query", "3", "--json"))
    scores = model.predict(data[data.qids.tolist().index(3)])
    assert [doc["score"] for doc in values["documents"]] == sorted(scores.tolist())[::-1]
    for doc in values["documents"]:
        amounts = [row["contribution"] for row in doc["contributions"]]
        assert math.fsum([doc["expected"], *amounts]) == pytest.approx(doc["score"], rel=1e-15)


def test_a_pair_of_documents(call, models):
    out = call("explain", "new.rk", "test.txt", "--query", "3", "--documents", "5,1")
    assert "Why #1 (grade " in out
    assert "If both changed places, NDCG@10 would" in out
    text = call("explain", "new.rk", "test.txt", "--query", "3", "--documents", "1,5", "--json")
    pair = json.loads(text)["pair"]
    total = math.fsum(row["contribution"] for row in pair["contributions"])
    assert total == pytest.approx(pair["difference"])


def test_a_query_beside_another_model_and_its_page(call, models):
    out = call(
        "explain", "new.rk", "test.txt", "--query", "3", "--against", "old.rk", "--out", "q.html"
    )
    assert "Before" in out
    assert "wrote q.html" in out
    assert "by old" in Path("q.html").read_text()
    # It may be made again, and the model is not overwritten.
    call("explain", "new.rk", "test.txt", "--query", "3", "--out", "q.html")
    call("explain", "new.rk", "test.txt", "--query", "3", "--out", "new.rk", code=2)


def test_all_queries(call, models):
    assert "Mean absolute contributions to the score, 120 documents" in call(
        "explain", "new.rk", "test.txt"
    )
    out = call(
        "explain", "new.rk", "test.txt", "--importances", "--measure", "ERR", "--repeats", "2"
    )
    assert "Drop of ERR if a feature is permuted within queries" in out
    out = call("explain", "new.rk", "test.txt", "--dependence", "1", "--json")
    assert json.loads(out)["feature"] == "1"
    out = call("explain", "new.rk", "test.txt", "--against", "old.rk")
    assert "of 15 queries got worse by NDCG@10" in out
    out = call("explain", "new.rk", "test.txt", "--against", "new.rk")
    assert "0 of 15 queries got worse by NDCG@10, 0 better" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--documents", "1,2"], "--documents is for a query; add --query QUERY"),
        (["--out", "x.html"], "--out is for a query; add --query QUERY"),
        (["--query", "x"], "the data set has no query 'x'"),
        (["--query", "3", "--documents", "1"], "expected two ids or ranks"),
        (["--query", "3", "--documents", "1,99"], "a rank from 1 to 8"),
        (["--query", "3", "--importances"], "--importances is about all queries"),
        (["--importances", "--dependence", "1"], "are different questions; ask one"),
        (["--dependence", "x"], "was fitted to no feature 'x'"),
        (["--measure", "NDGC"], "NDGC"),
    ],
)
def test_wrong_options(call, models, arguments, message):
    assert message in call("explain", "new.rk", "test.txt", *arguments, code=2)
