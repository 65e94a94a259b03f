"""Bad requests to the service: damaged, forged and random ones, against its own description.

They are asked in this process, as a server would ask them. What comes back must be an answer that
the description knows, in JSON and with a sentence; no request may leave anything behind.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from rankinite.serve.limits import Limits
from tests.attacks import Outcome
from tests.serve.cases import Answer, Client, client_of, named_model, saved, small_model

LIMITS = Limits(body=200_000, documents=50)
# What the process may grow by after the first requests, in kB.
MOST_GROWTH = 150_000
FIRST = 100
ROUTES_OUTSIDE = (404, 405)
# Of values that are repeated: the attack itself must not take the memory.
LONG_VALUE = 1000
ROWS = [[1.5, 2, 3], [0.1, None, -3e-7]]
SAMPLES: dict[str, list[Any]] = {
    "rank": [
        {"features": ROWS},
        {"features": ROWS, "ids": ["a", 2], "id": "q", "feature_names": ["3", "1", "2"]},
        {"documents": [{"id": "a", "features": {"1": 2.5}}, {"id": 2, "features": ROWS[0]}]},
        {"queries": [{"id": 1, "features": ROWS}, {"documents": [{"features": {"3": None}}]}]},
        {"documents": [{"features": {"bm25": 0.3, "brand": "acme"}}], "ignore_unknown": True},
        {"features": [[0.5, "bolt"], [None, None]], "base_scores": [0, 1.5]},
    ],
    "infer": [
        {"inputs": [{"name": "features", "shape": [2, 3], "datatype": "FP32", "data": ROWS}]},
        {"inputs": [{"name": "features", "shape": [2, 3], "datatype": "FP64", "data": [0.5] * 6},
                    {"name": "qid", "shape": [2], "datatype": "BYTES", "data": ["b", "a"]}],
         "id": "x", "outputs": [{"name": "scores", "parameters": {"binary_data": True}}]},
        {"inputs": [{"name": "brand", "shape": [1], "datatype": "BYTES", "data": ["acme"]},
                    {"name": "bm25", "shape": [1, 1], "datatype": "INT64", "data": [7]}]},
    ],
}  # fmt: skip
HEADER = "inference-header-content-length"
ODD = [
    None, True, False, 0, -1, 1e308, -1e39, 1e-320, 2**63, 2**70, -(2**31), 10**30, "", "a",
    "\u0000", "\ud7ff" * 50, "x" * 3000, [], [[]], [[[1]]], {}, {"a": {}}, [None] * 60, [0] * 60,
    "1", "NaN", "features", "__class__", "../../etc/passwd", [[1] * 200] * 51,
]  # fmt: skip
# JSON that Python would not write.
ODD_TEXTS = [b"NaN", b"Infinity", b"1e999", b"-0", b"01", b"[" * 3000, b"{}" * 10, b"\xff\xfe",
             b'"\\ud800"', b"1" * 5000, b"0." + b"1" * 5000, b"1e-5000", b"\x00", b"//", b"[1,]",
             b" " * 500, b'{"a":1,"a":2}']  # fmt: skip


def bad(rng: np.random.Generator, n: int) -> Iterator[Outcome]:
    """Ask for what is wrong, and sometimes right."""
    folder = Path()
    paths = [saved(folder, "plain", small_model()), saved(folder, "named", named_model())]
    largest = 0
    with client_of(*map(str, paths), limits=LIMITS) as client:
        for k in range(n):
            method, path, body, headers = _request(rng)
            answer = client.ask(method, path, body, headers)
            problem = _problem(client, method, path, answer)
            growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - largest
            if k <= FIRST:
                largest += growth
            elif growth > MOST_GROWTH:
                problem = f"the process takes {growth:,} kB more"
            tried = f"{method} {path} {headers} {body[:200]!r}: {problem}"
            yield Outcome(str(answer.status), tried if problem else "")


def _problem(client: Client, method: str, path: str, answer: Answer) -> str:
    """Return what is wrong with an answer, or an empty text."""
    pool = client.service.pool
    if pool.under_way or pool.n_bytes or pool.n_scoring or pool.of_client:
        return "the request is still under way"
    if answer.status >= 500:
        return f"{answer.status} {answer.body[:300]!r}"
    if answer.status != 200:
        if not 10 < len(answer.error) < 1500:
            return f"{answer.status} with the sentence {answer.error[:100]!r}"
        if any(word in answer.error for word in ("Traceback", ".py", ".rk")):
            return f"{answer.status} tells of the machine: {answer.error}"
    method = "GET" if method == "HEAD" else method
    for described, methods in client.service.openapi["paths"].items():
        if _fits(described, path) and method.lower() in methods:
            if str(answer.status) not in methods[method.lower()]["responses"]:
                return f"{answer.status} is no status of {described}"
            return ""
    return "" if answer.status in ROUTES_OUTSIDE else f"{answer.status} outside of all routes"


def _fits(described: str, path: str) -> bool:
    parts, others = described.split("/"), path.split("/")
    return len(parts) == len(others) and all(
        part == other or (part.startswith("{") and other)
        for part, other in zip(parts, others, strict=True)
    )


def _request(rng: np.random.Generator) -> tuple[str, str, bytes, dict[str, str]]:
    kind = str(rng.choice(["rank", "infer", "infer-bytes", "elsewhere"], p=[0.45, 0.25, 0.2, 0.1]))
    name = str(rng.choice(["plain", "named"]))
    if kind == "elsewhere":
        return _elsewhere(rng)
    if kind == "infer-bytes":
        return "POST", f"/v2/models/{name}/infer", *_with_bytes(rng)
    path = f"/models/{name}/rank" if kind == "rank" else f"/v2/models/{name}/infer"
    return "POST", path, _damaged(rng, _body(rng, kind)), {}


def _body(rng: np.random.Generator, kind: str) -> bytes:
    """Return a body of which some values are replaced, moved or left out."""
    sample = json.loads(json.dumps(SAMPLES[kind][rng.integers(len(SAMPLES[kind]))]))
    for _ in range(rng.integers(0, 4)):
        _change(rng, sample)
    return json.dumps(sample, ensure_ascii=bool(rng.random() < 0.5)).encode("utf-8", "replace")


def _change(rng: np.random.Generator, sample: Any) -> None:
    value, places = sample, []
    while isinstance(value, (dict, list)) and value:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = keys[rng.integers(len(keys))]
        places.append((value, key))
        value = value[key]
    if not places:
        return
    holder, key = places[rng.integers(len(places))]
    action = rng.integers(4)
    # A copy, or later requests would grow with what is put into it.
    odd = json.loads(json.dumps(ODD[rng.integers(len(ODD))]))
    if action == 0:
        del holder[key]
    elif action == 1 and isinstance(holder, list) and len(str(holder[key])) < LONG_VALUE:
        holder.extend([holder[key]] * int(rng.integers(1, 60)))
    elif action == 2 and isinstance(holder, dict):
        holder[str(odd)[:50]] = holder[key]
    else:
        holder[key] = odd


def _damaged(rng: np.random.Generator, body: bytes) -> bytes:
    """Return a body of which some bytes are changed, in one of two cases."""
    if rng.random() < 0.5 or not body:
        return body
    action, at = rng.integers(5), int(rng.integers(len(body)))
    if action == 0:
        return body[:at]
    if action == 1:
        return body[:at] + bytes([rng.integers(256)]) + body[at + 1 :]
    if action == 2:
        return body[:at] + ODD_TEXTS[rng.integers(len(ODD_TEXTS))] + body[at:]
    if action == 3:
        return body[:at] + body[at + int(rng.integers(1, 20)) :]
    return (body * int(rng.integers(1, 500)))[: LIMITS.body + 100]


def _with_bytes(rng: np.random.Generator) -> tuple[bytes, dict[str, str]]:
    """Return JSON with bytes of tensors behind it, whose sizes may be wrong."""
    inputs = []
    content = b""
    names = ["features", "qid", "bm25", "brand", "1", "2", "3", "base_scores", "x"]
    for _ in range(rng.integers(1, 4)):
        n = int(rng.integers(0, 5))
        shape: list[Any] = [n, 3] if rng.random() < 0.6 else [n]
        datatype = str(rng.choice(["FP32", "FP64", "INT64", "BYTES", "BOOL", "FP16", "UINT8"]))
        size = int(rng.choice([n * 12, n * 4, n * 8, n * 24, n, int(rng.integers(0, 99))]))
        part = rng.bytes(size)
        if datatype == "BYTES":
            texts = [rng.bytes(int(rng.integers(0, 9))) for _ in range(n)]
            part = b"".join(len(text).to_bytes(4, "little") + text for text in texts)
        size_said: Any = len(part) if rng.random() < 0.8 else ODD[rng.integers(len(ODD))]
        if rng.random() < 0.1:
            shape = [2**40, 2**40]
        name = names[rng.integers(len(names))]
        described = {"name": name, "shape": shape, "datatype": datatype}
        inputs.append({**described, "parameters": {"binary_data_size": size_said}})
        content += part
    header = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    length: Any = len(header) if rng.random() < 0.8 else rng.integers(-5, 2 * len(header))
    return _damaged(rng, header + content), {HEADER: str(length)}


def _elsewhere(rng: np.random.Generator) -> tuple[str, str, bytes, dict[str, str]]:
    """Return a request to any address, with any method and headers."""
    method = str(rng.choice(["GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "X"]))
    parts = ["v2", "models", "plain", "versions", "1", "rank", "infer", "ready", "health", "live"]
    parts += ["metrics", "docs", "repository", "index", "..", "%00", "", "\u00e4", "x" * 300]
    chosen = [parts[k] for k in rng.integers(len(parts), size=rng.integers(0, 6))]
    names = ["content-length", "content-encoding", "authorization", "x-request-id", HEADER]
    values = ["-1", "9" * 25, "gzip", "\u00b2", "", "a b", "100000000", "identity"]
    headers = {
        names[rng.integers(len(names))]: values[rng.integers(len(values))]
        for _ in range(rng.integers(0, 3))
    }
    return method, "/" + "/".join(chosen), rng.bytes(int(rng.integers(0, 50))), headers
