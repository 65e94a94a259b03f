"""The Open Inference Protocol."""

from __future__ import annotations

import json

import numpy as np
import pytest

import rankinite as rk
from tests.serve.cases import DATA, SMALL, client_of, saved

X = np.asarray(DATA.X, np.float32)[:5]
INFER = "/v2/models/plain/infer"


def tensor(**changes):
    data = X.ravel().tolist()
    return {"name": "features", "shape": [5, 3], "datatype": "FP32", "data": data, **changes}


def infer(client, *inputs, path=INFER, **more):
    return client.post(path, {"inputs": list(inputs), **more})


def scores_of(answer):
    assert answer.status == 200, answer.body
    (output,) = answer.json["outputs"]
    assert output["name"] == "scores"
    assert output["datatype"] == "FP64"
    assert output["shape"] == [len(output["data"])]
    return output["data"]


def binary(client, described, content, path=INFER, **more):
    header = json.dumps({"inputs": described, **more}).encode()
    return client.post(path, header + content, inference_header_content_length=str(len(header)))


def test_a_tensor_is_scored(client, model):
    answer = infer(client, tensor(), id="abc")
    assert scores_of(answer) == model.predict(X).tolist()
    assert answer.json["id"] == "abc"
    assert answer.json["model_name"] == "plain"
    assert answer.json["model_version"] == "1"
    nested = infer(client, tensor(data=X.tolist(), datatype="FP64"))
    assert scores_of(nested) == model.predict(X).tolist()
    versioned = infer(client, tensor(), path="/v2/models/plain/versions/1/infer")
    assert scores_of(versioned) == model.predict(X).tolist()


def test_missing_values_are_null_or_nan(client, model):
    holes = X.copy()
    holes[:, 1] = np.nan
    data = [None if np.isnan(v) else float(v) for v in holes.ravel()]
    assert scores_of(infer(client, tensor(data=data))) == model.predict(holes).tolist()
    described = tensor(parameters={"binary_data_size": holes.nbytes})
    del described["data"]
    answer = binary(client, [described], holes.tobytes())
    assert scores_of(answer) == model.predict(holes).tolist()


@pytest.mark.parametrize("datatype", ["FP16", "FP32", "FP64", "INT8", "UINT64", "BOOL"])
def test_bytes_of_every_type_are_read(client, model, datatype):
    kinds = {"FP16": "<f2", "FP32": "<f4", "FP64": "<f8", "INT8": "<i1", "UINT64": "<u8",
             "BOOL": "?"}  # fmt: skip
    values = np.abs(X * 3).astype(kinds[datatype])
    described = tensor(datatype=datatype, parameters={"binary_data_size": values.nbytes})
    del described["data"]
    answer = binary(client, [described], values.tobytes())
    assert scores_of(answer) == model.predict(values.astype(np.float32)).tolist()


@pytest.mark.parametrize("where", ["parameters", "outputs"])
def test_scores_may_come_as_bytes(client, model, where):
    more = {
        "parameters": {"parameters": {"binary_data_output": True}},
        "outputs": {"outputs": [{"name": "scores", "parameters": {"binary_data": True}}]},
    }[where]
    answer = infer(client, tensor(), **more)
    length = int(answer.headers["inference-header-content-length"])
    (output,) = json.loads(answer.body[:length])["outputs"]
    assert output["parameters"] == {"binary_data_size": 40}
    assert "data" not in output
    assert answer.headers["content-type"] == "application/octet-stream"
    assert np.array_equal(np.frombuffer(answer.body[length:]), model.predict(X))


def texts(*values):
    return b"".join(len(v.encode()).to_bytes(4, "little") + v.encode() for v in values)


def test_features_may_be_inputs_by_name(client, folder):
    import pandas as pd

    frame = pd.DataFrame({"bm25": [0.5, 0.9, 0.1], "brand": ["bolt", "acme", None]})
    expected = rk.load_model(folder / "named.rk").predict(frame).tolist()
    bm25 = {"name": "bm25", "shape": [3, 1], "datatype": "FP64", "data": [0.5, 0.9, 0.1]}
    brand = {"name": "brand", "shape": [3], "datatype": "BYTES", "data": ["bolt", "acme", "x"]}
    path = "/v2/models/shop/infer"
    assert scores_of(infer(client, bm25, brand, path=path)) == expected
    content = texts("bolt", "acme", "")
    brand = {"name": "brand", "shape": [3], "datatype": "BYTES",
             "parameters": {"binary_data_size": len(content)}}  # fmt: skip
    assert scores_of(binary(client, [bm25, brand], content, path)) == expected
    # Features that are not there are missing.
    alone = infer(client, bm25, path=path)
    frame["brand"] = pd.Series([None] * 3, dtype=object)
    assert scores_of(alone) == rk.load_model(folder / "named.rk").predict(frame).tolist()


def test_queries_may_be_scattered(tmp_path):
    ranker = rk.MART(**SMALL, loss="logistic", per_query=True).fit(DATA)
    qid = ["b", "a", "b", "a", "c"]
    expected = ranker.predict(X, qid=qid).tolist()
    with client_of(str(saved(tmp_path, "plain", ranker))) as client:
        queries = {"name": "qid", "shape": [5], "datatype": "BYTES", "data": qid}
        assert scores_of(infer(client, tensor(), queries)) == expected
        numbers = {"name": "qid", "shape": [5, 1], "datatype": "INT64", "data": [9, 2, 9, 2, 4]}
        assert scores_of(infer(client, tensor(), numbers)) == expected
        content = texts(*qid)
        queries = {**queries, "parameters": {"binary_data_size": len(content)}}
        del queries["data"]
        assert scores_of(binary(client, [tensor(), queries], content)) == expected


def test_base_scores_are_an_input(tmp_path):
    ranker = rk.LambdaMART(**SMALL, base=np.zeros(DATA.n_docs)).fit(DATA)
    with client_of(str(saved(tmp_path, "plain", ranker))) as client:
        base = {"name": "base_scores", "shape": [5], "datatype": "FP64", "data": [1, 2, 0.1, 4, 5]}
        expected = ranker.predict(X, base_scores=base["data"]).tolist()
        assert scores_of(infer(client, tensor(), base)) == expected
        inputs = client.get("/v2/models/plain").json["inputs"]
        assert [described["name"] for described in inputs] == ["features", "base_scores"]


def test_no_documents_have_no_scores(client):
    assert scores_of(infer(client, tensor(shape=[0, 3], data=[]))) == []


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"shape": [4, 3]}, "are not 12 numbers of shape [4, 3]"),
        ({"shape": [5, 4]}, "has the shape [5, 4]; expected [5, 3]"),
        ({"shape": [15]}, "has the shape [15]; expected [15, 3]"),
        ({"shape": []}, "Expected `array` of length >= 1"),
        ({"shape": [5, -3]}, "Expected `int` >= 0"),
        ({"shape": [5, 2**62]}, "too large"),
        ({"data": ["x"] * 15}, "expected numbers, or null for missing"),
        ({"data": [True] * 15}, "expected numbers, or null for missing"),
        ({"data": None}, "expected numbers, or null for missing"),
        ({"datatype": "FP8"}, "has the datatype 'FP8'; expected BOOL"),
        ({"datatype": "BYTES"}, "give categories as inputs by name"),
        ({"name": "x"}, "the model has no feature 'x'"),
        ({"name": "1"}, "has the shape [5, 3]; expected one value per document"),
        ({"parameters": {"binary_data_size": 60}}, "0 bytes follow"),
    ],
)
def test_bad_tensors_are_refused_in_a_sentence(client, changes, sentence):
    answer = infer(client, tensor(**changes))
    assert answer.status == 400
    assert sentence in answer.error


def test_bad_requests_are_refused_in_a_sentence(client):
    assert "there are no inputs" in infer(client).error
    assert "is there twice" in infer(client, tensor(), tensor()).error
    first = {"name": "1", "shape": [5], "datatype": "FP32", "data": [0] * 5}
    assert "beside 'features'" in infer(client, tensor(), first).error
    assert "others have 5" in infer(client, tensor(), {**first, "shape": [4]}).error
    assert "expected 'scores'" in infer(client, tensor(), outputs=[{"name": "x"}]).error
    qid = {"name": "qid", "shape": [5], "datatype": "INT64", "data": [1]}
    assert "has 1 values; its shape [5] says 5" in infer(client, tensor(), qid).error
    assert "there are no features" in infer(client, {**qid, "data": [1] * 5}).error
    brand = {"name": "1", "shape": [5], "datatype": "BYTES", "data": ["a"] * 5}
    assert "this feature has numbers" in infer(client, brand).error


@pytest.mark.parametrize(
    ("size", "content", "sentence"),
    [
        (60, b"x" * 59, "59 bytes follow"),
        (60, b"x" * 61, "1 bytes follow the last input"),
        (56, b"x" * 56, "take 60 bytes"),
        ("60", b"x" * 60, "binary_data_size of the input 'features' is '60'"),
        (-1, b"", "binary_data_size of the input 'features' is '-1'"),
    ],
)
def test_wrong_lengths_are_refused(client, size, content, sentence):
    described = tensor(parameters={"binary_data_size": size})
    del described["data"]
    answer = binary(client, [described], content)
    assert answer.status == 400
    assert sentence in answer.error


@pytest.mark.parametrize("content", [b"\x01", b"\xff\xff\xff\xffab", texts("a", "b"), texts()])
def test_bytes_that_are_no_texts_are_refused(client, content):
    described = {"name": "brand", "shape": [1], "datatype": "BYTES",
                 "parameters": {"binary_data_size": len(content)}}  # fmt: skip
    answer = binary(client, [described], content, "/v2/models/shop/infer")
    assert answer.status == 400
    assert "each with its length in four bytes" in answer.error


@pytest.mark.parametrize("length", ["-1", "x", "9" * 30, "1000000", "²"])
def test_wrong_header_lengths_are_refused(client, length):
    answer = client.post(INFER, {"inputs": []}, inference_header_content_length=length)
    assert answer.status == 400
    assert "inference-header-content-length" in answer.error


def test_metadata_is_that_of_the_protocol(client):
    server = client.get("/v2").json
    assert server["name"] == "rankinite"
    assert server["version"] == rk.__version__
    assert client.get("/v2/models/plain").json == {
        "name": "plain",
        "platform": "rankinite",
        "versions": ["1"],
        "inputs": [{"name": "features", "datatype": "FP32", "shape": [-1, 3]}],
        "outputs": [{"name": "scores", "datatype": "FP64", "shape": [-1]}],
    }
    assert client.get("/v2/models/plain/versions/1").status == 200
    assert client.get("/v2/models/plain/ready").json == {"name": "plain", "ready": True}
    assert client.get("/v2/health/live").json == {"live": True}
    assert client.get("/v2/health/ready").json == {"ready": True}
    assert client.post("/v2/repository/index", {}).json == [
        {"name": "plain", "version": "1", "state": "READY", "reason": ""},
        {"name": "shop", "version": "1", "state": "READY", "reason": ""},
    ]
