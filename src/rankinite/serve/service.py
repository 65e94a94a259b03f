"""The service as an ASGI application: its routes, and what every request goes through.

Each request gets a token checked, an identity, an answer in JSON whatever happens, a line in the
log and a place in the metrics. Nothing of the machine, such as a path or a traceback, is answered.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import json
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from rankinite.serve import queries, tensors
from rankinite.serve.batches import RequestError, bad_request
from rankinite.serve.kernels import compile_reader
from rankinite.serve.limits import Limits
from rankinite.serve.logs import event
from rankinite.serve.metrics import CONTENT_TYPE, Metrics
from rankinite.serve.openapi import JSON, OF_SCORING, Operation, document, error_body, page
from rankinite.serve.pool import ClientLeft, Pool
from rankinite.serve.repository import Repository, Served, Slot, Watcher, description

OUR_MODEL, OUR_VERSION = "/models/{name}", "/models/{name}/versions/{version}"
MODEL, VERSION = f"/v2{OUR_MODEL}", f"/v2{OUR_VERSION}"
# What a request may be called by its client.
REQUEST_ID = re.compile(r"[!-~]{1,100}")
BINARY = "application/octet-stream"
# After a refusal the rest of a body is read for so long, or the client would see no answer.
DRAIN_SECONDS = 1.0
RANK_EXAMPLE = {
    "documents": [
        {"id": "a", "features": {"bm25": 12.5, "clicks": 3}},
        {"id": "b", "features": {"bm25": 9.1}},
    ]
}
INFER_EXAMPLE = {
    "inputs": [
        {"name": "features", "shape": [2, 2], "datatype": "FP32", "data": [12.5, 3, 9.1, None]}
    ]
}


@dataclass
class Record:
    """What the log and the metrics say of a request."""

    route: str = "other"
    model: str = ""
    version: str = ""
    queries: int = 0
    documents: int = 0


Scorer = Callable[[Served, bytes], tuple[bytes, int | None, int, int]]
Endpoint = Callable[[Request], Awaitable[Response]]


class Service:
    """The ASGI application of a service.

    Parameters
    ----------
    repository
        The models.
    limits
        How much it takes on; by default as `Limits` has it.
    token
        What clients must send as ``Authorization: Bearer``; None for nothing.
    watch_seconds
        Between two looks at the files of the models; None not to look.
    """

    def __init__(
        self,
        repository: Repository,
        limits: Limits | None = None,
        token: str | None = None,
        watch_seconds: float | None = 1.0,
    ) -> None:
        compile_reader()
        self.repository = repository
        self.limits = limits or Limits()
        self.pool = Pool(self.limits)
        self.metrics = Metrics(repository, self.pool)
        self.watch_seconds = watch_seconds
        self.watcher = Watcher(repository, watch_seconds or 1.0, self.metrics.reloaded)
        self._token = None if token is None else f"Bearer {token}".encode()
        self._counter = itertools.count(1)
        self._prefix = os.urandom(4).hex()
        routes = self._routes()
        self.openapi = document([operation for operation, _ in routes])
        self._open = {operation.path for operation, _ in routes if operation.is_open}
        self._page = page(self.openapi).encode()
        self._router = Router(
            [
                Route(o.path, _Handler(o.path, endpoint), methods=[o.method])
                for o, endpoint in routes
            ],
            redirect_slashes=False,
        )

    # What every request goes through

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            # An upgrade to a web socket.
            await send({"type": "websocket.close"})
            return
        start = time.perf_counter()
        record = Record()
        headers = dict(scope["headers"])
        identity = self._identity(headers)
        # Starlette raises its exceptions, instead of answering with text, inside an application.
        scope["app"] = self
        scope["record"] = record
        problem: BaseException | None = None
        try:
            self._check_token(scope["path"], headers)
            response = await self._respond(scope, receive, send)
        except RequestError as refusal:
            response = _refusal(refusal)
            problem = refusal
            if refusal.status == 413:
                await _drain(receive)
        except ClientLeft:
            event(logging.INFO, "client left", path=scope["path"], request=identity)
            return
        except Exception as unexpected:
            # A defect of ours: the client learns under which name the log has it.
            event(logging.ERROR, "failed", error=unexpected, request=identity)
            sentence = f"this should not happen; the log of the service has it as {identity}"
            response = _refusal(RequestError(500, sentence))
        response.headers["x-request-id"] = identity
        seconds = time.perf_counter() - start
        self._tell(scope, record, response.status_code, seconds, identity, problem)
        await response(scope, receive, send)

    async def _respond(self, scope: Any, receive: Any, send: Any) -> Response:
        """Return the answer of a route."""
        try:
            await self._router(scope, receive, send)
        except HTTPException as problem:
            if problem.status_code == 405:
                allowed = ", ".join(sorted((problem.headers or {})["Allow"].split(", ")))
                raise RequestError(
                    405, f"{scope['path']} takes {allowed}, not {scope['method']}"
                ) from None
            raise RequestError(
                404, "there is nothing at this address; /docs lists what there is"
            ) from None
        response: Response = scope["answer"]
        return response

    def _identity(self, headers: Mapping[bytes, bytes]) -> str:
        """Return what a request is called in the log: as its client says, or by number."""
        name = headers.get(b"x-request-id", b"").decode("latin-1")
        return name if REQUEST_ID.fullmatch(name) else f"{self._prefix}-{next(self._counter)}"

    def _check_token(self, path: str, headers: Mapping[bytes, bytes]) -> None:
        if self._token is None or path in self._open:
            return
        if not hmac.compare_digest(headers.get(b"authorization", b""), self._token):
            raise RequestError(
                401,
                "the token is missing or wrong; expected the header Authorization: Bearer TOKEN",
            )

    def _tell(
        self,
        scope: Any,
        record: Record,
        status: int,
        seconds: float,
        identity: str,
        problem: BaseException | None,
    ) -> None:
        self.metrics.requests.labels(record.route, record.model, status).inc()
        self.metrics.seconds.labels(record.route).observe(seconds)
        if record.documents:
            self.metrics.queries.labels(record.model).inc(record.queries)
            self.metrics.documents.labels(record.model).inc(record.documents)
        fields: dict[str, Any] = {
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(seconds * 1e3, 3),
            "request": identity,
        }
        if record.model:
            fields |= {"model": record.model, "version": record.version}
        if record.queries:
            fields |= {"queries": record.queries, "documents": record.documents}
        if problem is not None:
            fields["reason"] = str(problem)
        event(logging.INFO, "request", **fields)

    async def _live(self, receive: Any, send: Any) -> None:
        """Begin and end with the server."""
        await receive()
        if self.watch_seconds is not None:
            self.watcher.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await asyncio.get_running_loop().run_in_executor(None, self.close)
        await send({"type": "lifespan.shutdown.complete"})

    def close(self) -> None:
        """End the threads of the service."""
        self.watcher.stop()
        self.pool.close()

    # Routes

    def _routes(self) -> list[tuple[Operation, Endpoint]]:
        rank = Operation(
            "POST",
            "/rank",
            "Rank with the only model.",
            queries.RankRequest,
            queries.RankAnswer,
            RANK_EXAMPLE,
            OF_SCORING,
        )
        infer = Operation(
            "POST",
            f"{MODEL}/infer",
            "Score, by the Open Inference Protocol.",
            tensors.InferRequest,
            tensors.InferAnswer,
            INFER_EXAMPLE,
            OF_SCORING,
        )
        get = partial(Operation, "GET", answers=dict[str, Any])
        of_model = partial(get, statuses=(404,))
        public = partial(get, is_open=True)
        return [
            (rank, self._rank),
            (replace(rank, path=OUR_MODEL + "/rank", summary="Rank with a model."), self._rank),
            (
                replace(rank, path=OUR_VERSION + "/rank", summary="Rank with a version."),
                self._rank,
            ),
            (infer, self._infer),
            (replace(infer, path=f"{VERSION}/infer"), self._infer),
            (get("/models", "The models, and their features."), self._models),
            (get("/v2", "The server."), self._server),
            (public("/v2/health/live", "Whether the server runs."), self._live_or_ready),
            (public("/v2/health/ready", "Whether it answers."), self._live_or_ready),
            (of_model(MODEL, "A model."), self._metadata),
            (of_model(VERSION, "A version of a model."), self._metadata),
            (of_model(f"{MODEL}/ready", "Whether a model answers."), self._ready),
            (of_model(f"{VERSION}/ready", "Whether a version answers."), self._ready),
            (
                Operation(
                    "POST",
                    "/v2/repository/index",
                    "The models, by the protocol.",
                    answers=list[dict[str, Any]],
                ),
                self._index,
            ),
            (get("/metrics", "Counters for Prometheus.", answers="text/plain"), self._metrics),
            (public("/openapi.json", "This description."), self._openapi),
            (public("/docs", "This description as a page.", answers="text/html"), self._docs),
        ]

    def _slot(self, request: Request) -> Slot:
        parameters = request.path_params
        slot = self.repository.find(parameters.get("name"), parameters.get("version"))
        record = request.scope["record"]
        record.model, record.version = slot.file.name, slot.file.version
        return slot

    async def _rank(self, request: Request) -> Response:
        def scorer(served: Served, body: bytes) -> tuple[bytes, int | None, int, int]:
            text, n_queries, n_docs = queries.answer(served, body, self.limits)
            return text, None, n_queries, n_docs

        text, _ = await self._score(request, scorer)
        return Response(text, media_type=JSON)

    async def _infer(self, request: Request) -> Response:
        length = _whole_number(request, tensors.LENGTH_HEADER)

        def scorer(served: Served, body: bytes) -> tuple[bytes, int | None, int, int]:
            return tensors.answer(served, body, self.limits, length)

        content, json_length = await self._score(request, scorer)
        if json_length is None:
            return Response(content, media_type=JSON)
        headers = {tensors.LENGTH_HEADER: str(json_length)}
        return Response(content, media_type=BINARY, headers=headers)

    async def _score(self, request: Request, scorer: Scorer) -> tuple[bytes, int | None]:
        """Score the body of a request: with a place, and in turn."""
        slot = self._slot(request)
        encoding = request.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise RequestError(415, "the body is compressed; expected it as it is")
        client = request.client.host if request.client else ""
        with self.pool.place(client):
            body = await self.pool.body(request.receive, _whole_number(request, "content-length"))
            try:
                content, json_length, n_queries, n_docs = await self.pool.run(
                    scorer, slot.served, body
                )
            finally:
                self.pool.forget(len(body))
        record = request.scope["record"]
        record.queries, record.documents = n_queries, n_docs
        return content, json_length

    async def _models(self, _request: Request) -> Response:
        return _json({"models": [description(slot) for slot in self.repository.all()]})

    async def _server(self, _request: Request) -> Response:
        return _json(tensors.server_metadata())

    async def _live_or_ready(self, request: Request) -> Response:
        # Models are loaded before the server listens, and one that is replaced serves meanwhile.
        return _json({request.url.path.rpartition("/")[2]: True})

    async def _metadata(self, request: Request) -> Response:
        slot = self._slot(request)
        wants_versions = "version" not in request.path_params
        return _json(tensors.model_metadata(self.repository, slot, versions=wants_versions))

    async def _ready(self, request: Request) -> Response:
        return _json({"name": self._slot(request).file.name, "ready": True})

    async def _index(self, _request: Request) -> Response:
        return _json(tensors.index(self.repository))

    async def _metrics(self, _request: Request) -> Response:
        return Response(self.metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def _openapi(self, _request: Request) -> Response:
        return _json(self.openapi)

    async def _docs(self, _request: Request) -> Response:
        policy = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return Response(self._page, media_type="text/html", headers=policy)


class _Handler:
    """What Starlette calls for a route: it leaves the answer to the service, which sends it."""

    def __init__(self, path: str, endpoint: Endpoint) -> None:
        self.path = path
        self.endpoint = endpoint

    async def __call__(self, scope: Any, receive: Any, _send: Any) -> None:
        scope["record"].route = self.path
        scope["answer"] = await self.endpoint(Request(scope, receive))


def _json(value: Any) -> Response:
    return Response(json.dumps(value), media_type=JSON)


def _refusal(problem: RequestError) -> Response:
    headers = {}
    if problem.retry_after is not None:
        headers["retry-after"] = str(problem.retry_after)
    if problem.status == 401:
        headers["www-authenticate"] = "Bearer"
    if problem.status in (408, 413):
        # What is left of the body is not waited for.
        headers["connection"] = "close"
    return Response(error_body(problem), problem.status, headers, JSON)


async def _drain(receive: Any) -> None:
    """Read what is left of a body, as far as that is soon done."""
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while (await receive()).get("more_body", False):
                pass
    except TimeoutError:
        pass


def _whole_number(request: Request, name: str) -> int | None:
    """Return the number of a header, or None if it is not there."""
    text = request.headers.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 19):
        raise bad_request(f"the header {name} is {text[:60]!r}; expected a whole number")
    return int(text)
