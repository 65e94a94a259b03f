"""What every request goes through: token, limits, answers to errors, metrics, and the log."""

from __future__ import annotations

import asyncio
import json
import logging
import threading

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from rankinite.serve import queries
from rankinite.serve.limits import Limits
from rankinite.serve.logs import LOGGER
from tests.serve.cases import client_of

ROW = {"features": [[1, 2, 3]]}
TOKEN = "secret-token"


@pytest.fixture
def events(monkeypatch):
    """Return the events that are logged from here on."""
    logged = []

    class Handler(logging.Handler):
        def emit(self, record):
            logged.append((record.getMessage(), record.fields))

    monkeypatch.setattr(LOGGER, "handlers", [Handler()])
    monkeypatch.setattr(LOGGER, "level", logging.INFO)
    return logged


def values_of(client):
    """Return the metrics by name and labels."""
    text = client.get("/metrics").body.decode()
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def limited(folder, **limits):
    return client_of(str(folder / "plain.rk"), limits=Limits(**limits))


@pytest.mark.parametrize(
    ("method", "path", "status", "sentence"),
    [
        ("GET", "/nothing", 404, "/docs lists what there is"),
        ("GET", "/rank/", 404, "/docs lists what there is"),
        ("GET", "/models/plain/rank", 405, "takes POST, not GET"),
        ("POST", "/metrics", 405, "takes GET, HEAD, not POST"),
        ("POST", "/rank", 404, "several models"),
        ("POST", "/models/x/rank", 404, "there is no model 'x'; there are 'plain', 'shop'"),
        ("POST", "/models/plain/versions/7/rank", 404, "has no version '7'; it has '1'"),
        ("POST", "/v2/models/x/infer", 404, "there is no model 'x'"),
        ("GET", "/v2/models/%2e%2e", 404, "there is no model"),
        ("GET", "/v2/models/" + "x" * 500, 404, "..."),
    ],
)
def test_wrong_addresses_are_refused_in_json(client, method, path, status, sentence):
    answer = client.ask(method, path, b"{}")
    assert answer.status == status
    assert sentence in answer.error
    assert len(answer.body) < 300


def test_of_versions_the_last_answers(folder):
    path = folder / "plain.rk"
    with client_of(f"m:2={path}", f"m:1={path}") as client:
        assert client.post("/rank", ROW).json["version"] == "1"
        assert client.post("/models/m/rank", ROW).json["version"] == "1"
        assert client.post("/models/m/versions/2/rank", ROW).json["version"] == "2"
        assert client.get("/v2/models/m").json["versions"] == ["2", "1"]


def test_a_token_is_asked_for(folder):
    with client_of(str(folder / "plain.rk"), token=TOKEN) as client:
        for wrong in ({}, {"authorization": TOKEN}, {"authorization": "Bearer x\xff"}):
            refused = client.post("/rank", ROW, **wrong)
            assert refused.status == 401
            assert "expected the header Authorization: Bearer TOKEN" in refused.error
            assert refused.headers["www-authenticate"] == "Bearer"
        assert client.post("/rank", ROW, authorization=f"Bearer {TOKEN}").status == 200
        assert client.get("/metrics").status == 401
        assert client.get("/models").status == 401
        # Who starts containers asks without.
        for path in ("/v2/health/live", "/v2/health/ready", "/docs", "/openapi.json"):
            assert client.get(path).status == 200


def test_long_bodies_are_refused(folder):
    with limited(folder, body=100) as client:
        refused = client.post("/rank", b" " * 101)
        assert refused.status == 413
        assert "longer than 100 bytes, which is the limit" in refused.error
        assert refused.headers["connection"] == "close"
        # Before the body comes, if its length is told.
        assert client.post("/rank", b"", content_length="101").status == 413
        assert client.post("/rank", ROW).status == 200
        assert client.post("/rank", ROW, content_length="x").status == 400
        assert client.service.pool.n_bytes == 0


def test_too_many_documents_are_refused(folder):
    with limited(folder, documents=2) as client:
        assert client.post("/rank", {"features": [[1, 2, 3]] * 2}).status == 200
        tensor = {"name": "features", "shape": [3, 3], "datatype": "FP32", "data": [0] * 9}
        bodies = {
            "/rank": [{"features": [[1, 2, 3]] * 3}, {"queries": [ROW] * 3}],
            "/v2/models/plain/infer": [{"inputs": [tensor]}],
        }
        for path, asked in bodies.items():
            for body in asked:
                refused = client.post(path, body)
                assert refused.status == 413
                assert "more than 2 documents" in refused.error


def test_more_objects_than_documents_have_are_not_read(folder):
    with limited(folder, documents=2) as client:
        for body in ({"queries": [{}] * 1100}, {"features": [[]] * 1100}):
            refused = client.post("/rank", body)
            assert refused.status == 413
            assert "objects and lists, which are more than 2 documents have" in refused.error


def test_compressed_bodies_are_refused(client):
    assert client.post("/models/plain/rank", b"", content_encoding="gzip").status == 415


def never():
    return asyncio.Event().wait()


def test_a_body_that_does_not_arrive_is_not_waited_for(folder):
    with limited(folder, body_seconds=0.01) as client:
        answer = client.runner.run(client.asked_with("POST", "/rank", never, {}))
        assert answer.status == 408
        assert "did not arrive within 0.01 s; 0 bytes did" in answer.error
        assert client.service.pool.under_way == 0


def test_a_client_that_leaves_is_forgotten(folder, events):
    with limited(folder) as client:

        async def leave():
            return {"type": "http.disconnect"}

        with pytest.raises(IndexError):  # nothing is sent
            client.runner.run(client.asked_with("POST", "/rank", leave, {}))
        assert client.service.pool.under_way == 0
        assert [name for name, _ in events] == ["client left"]


@pytest.fixture
def held(monkeypatch):
    """Hold all that is scored, until the event is set."""
    released = threading.Event()
    answer = queries.answer

    def wait(*arguments):
        released.wait(60)
        return answer(*arguments)

    monkeypatch.setattr(queries, "answer", wait)
    yield released
    released.set()


async def all_of(client, n, released=None, **headers):
    """Return the answers to requests at once; those that are refused come before the others."""
    body = json.dumps(ROW).encode()
    tasks = [asyncio.create_task(client.asked("POST", "/rank", body, headers)) for _ in range(n)]
    if released is not None:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        assert all(task.result().status != 200 for task in done)
        released.set()
    return [await task for task in tasks]


def test_a_full_service_refuses(folder, held):
    with limited(folder, concurrency=1, queue=1) as client:
        answers = client.runner.run(all_of(client, 3, held))
        assert [answer.status for answer in answers] == [200, 200, 503]
        assert "the service is busy: 2 requests are under way" in answers[2].error
        assert answers[2].headers["retry-after"] == "1"
        assert client.post("/rank", ROW).status == 200


def test_a_client_with_too_many_requests_is_refused(folder, held):
    with limited(folder, per_client=1) as client:
        answers = client.runner.run(all_of(client, 2, held))
        assert [answer.status for answer in answers] == [200, 429]
        assert "1 requests of this client" in answers[1].error
        assert not client.service.pool.of_client


def test_an_answer_that_takes_too_long_is_not_waited_for(folder, held):
    with limited(folder, seconds=0.01, concurrency=1) as client:
        for _ in range(2):  # one that is scored, and one that waits for it
            refused = client.post("/rank", ROW)
            assert refused.status == 503
            assert "took longer than 0.01 s" in refused.error
        assert client.service.pool.n_scoring == 1
        assert client.service.pool.under_way == 0
        held.set()


def test_a_defect_is_told_to_the_log_alone(client, monkeypatch, events):
    def fail(*_arguments):
        raise ZeroDivisionError("of /secret/path")

    monkeypatch.setattr(queries, "answer", fail)
    answer = client.post("/models/plain/rank", ROW, x_request_id="abc")
    assert answer.status == 500
    assert answer.error == "this should not happen; the log of the service has it as abc"
    assert events[0] == ("failed", {"request": "abc"})


def test_requests_are_logged(client, events):
    client.post("/models/plain/rank", ROW, x_request_id="abc")
    client.post("/models/plain/rank", {}, x_request_id="a\nb")
    (name, fields), (_, refused) = events
    assert name == "request"
    assert fields.pop("ms") > 0
    assert fields == {
        "method": "POST",
        "path": "/models/plain/rank",
        "status": 200,
        "request": "abc",
        "model": "plain",
        "version": "1",
        "queries": 1,
        "documents": 1,
    }
    assert "neither" in refused["reason"]
    # Another line of the log must not be what a client sends.
    assert "\n" not in refused["request"]


def test_requests_are_counted(folder):
    with limited(folder) as client:
        client.post("/rank", {"queries": [ROW] * 3})
        client.post("/rank", {})
        client.get("/nothing")
        values = values_of(client)
        assert values["rankinite_requests_total", "/rank", "200", "plain"] == 1
        assert values["rankinite_requests_total", "/rank", "400", "plain"] == 1
        assert values["rankinite_requests_total", "", "404", "other"] == 1
        assert values["rankinite_queries_total", "plain"] == 3
        assert values["rankinite_documents_total", "plain"] == 3
        assert values["rankinite_request_seconds_count", "/rank"] == 2
        assert values["rankinite_requests_under_way",] == 0
        assert values["rankinite_model_stale", "1", "plain"] == 0
        # Whatever clients ask for, there are no more series.
        n_series = []
        for k in range(3):
            client.get(f"/{k}")
            client.post(f"/models/{k}/rank", ROW)
            n_series.append(len(values_of(client)))
        assert n_series[0] == n_series[2]


def test_the_description_fits_the_service(client):
    described = client.get("/openapi.json").json
    assert described["openapi"] == "3.1.0"
    references = set()

    def collect(value):
        if isinstance(value, dict):
            references.update([value["$ref"]] if "$ref" in value else [])
            value = list(value.values())
        if isinstance(value, list):
            for part in value:
                collect(part)

    collect(described)
    schemas = described["components"]["schemas"]
    assert {f"#/components/schemas/{name}" for name in schemas} >= references
    for path, methods in described["paths"].items():
        address = path.replace("{name}", "plain").replace("{version}", "1")
        for method in methods:
            answer = client.ask(method.upper(), address, b"")
            assert answer.status not in (404, 405) or path == "/rank"
            assert str(answer.status) in methods[method]["responses"]


def test_the_page_lists_every_address(client):
    page = client.get("/docs").body.decode()
    for path in client.service.openapi["paths"]:
        assert f"<code>{path}</code>" in page
    assert "https://" not in page
    assert "Features that it lacks are missing" in page


def test_models_are_described_without_their_paths(client, folder):
    plain, shop = client.get("/models").json["models"]
    assert plain["features"] == ["1", "2", "3"]
    assert shop["categorical"] == ["brand"]
    assert plain["problem"] is None
    assert str(folder) not in client.get("/models").body.decode()


def test_requests_at_once_get_their_own_answers(folder, model):
    rng = np.random.default_rng(0)
    X = rng.random((40, 3), np.float32)
    with limited(folder, concurrency=4) as client:

        async def ask_all():
            bodies = [json.dumps({"features": [row.tolist()]}).encode() for row in X]
            asked = [client.asked("POST", "/rank", body, {}) for body in bodies]
            return await asyncio.gather(*asked)

        answers = client.runner.run(ask_all())
    scores = [answer.json["ranking"][0]["score"] for answer in answers]
    assert scores == model.predict(X).tolist()
