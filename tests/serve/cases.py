"""Services in this process, asked as a server would ask them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import rankinite as rk
from rankinite.serve.limits import Limits
from rankinite.serve.repository import ModelFile, Repository
from rankinite.serve.service import Service

DATA = rk.polynomials(12, n_features=3, n_docs=8)
SMALL: dict[str, Any] = {"n_trees": 3, "n_leaves": 4, "min_docs_in_leaf": 1}


def small_model(**parameters: Any) -> rk.LambdaMART:
    """Return a model of three features, named 1, 2 and 3."""
    return rk.LambdaMART(**SMALL | parameters).fit(DATA)


def named_model() -> rk.LambdaMART:
    """Return a model with the features bm25 and brand, of which brand is categorical."""
    import pandas as pd

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"bm25": rng.random(60), "brand": rng.choice(["acme", "bolt"], 60)})
    y = (frame["brand"] == "bolt") * 2 + (frame["bm25"] > 0.5)
    ranker = rk.LambdaMART(**SMALL, categorical_features=["brand"])
    return ranker.fit(frame, y, group=[10] * 6)


@dataclass
class Answer:
    """What a service answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return json.loads(self.body)

    @property
    def error(self) -> str:
        """The sentence of a refusal."""
        assert self.json.keys() == {"error"}
        return str(self.json["error"])


class Client:
    """Asks a service, by ASGI."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.runner = asyncio.Runner()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_problem: object) -> None:
        self.runner.close()
        self.service.close()

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, b"", headers)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask("POST", path, content, headers)

    def ask(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> Answer:
        return self.runner.run(self.asked(method, path, body, headers or {}))

    async def asked(
        self, method: str, path: str, body: bytes, headers: Mapping[str, str]
    ) -> Answer:
        """Return the answer to a request whose body comes in one part."""
        parts = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Any:
            if parts:
                return parts.pop()
            return {"type": "http.disconnect"}

        return await self.asked_with(method, path, receive, headers)

    async def asked_with(
        self, method: str, path: str, receive: Callable[[], Any], headers: Mapping[str, str]
    ) -> Answer:
        """Return the answer to a request whose body comes as it does."""
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        named = [
            (name.replace("_", "-").lower().encode(), value.encode("latin-1"))
            for name, value in headers.items()
        ]
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": named,
            "client": ("127.0.0.1", 1),
        }
        await self.service(scope, receive, send)
        answered = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], answered, sent[1]["body"])


def client_of(*texts: str, limits: Limits | None = None, token: str | None = None) -> Client:
    """Return a client of a service of model files, as the command line names them."""
    files = [ModelFile.parse(text) for text in texts]
    return Client(Service(Repository(files), limits, token, watch_seconds=None))


def saved(folder: Path, name: str, ranker: Any) -> Path:
    """Save a model in a folder."""
    path = folder / f"{name}.rk"
    ranker.save(path)
    return path
