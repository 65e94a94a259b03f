"""Requests a second and response times of the service, and of the same one around LightGBM.

    python benchmarks/serve.py [--turns 3] [--seconds 5] [--connections 8] [--bodies json,tensor]

Both are the service of ``rankinite serve``, in processes of their own; in the other one LightGBM's
``Booster.predict`` scores. Queries have 100 documents of 136 features, models 500 trees of 31
leaves. The services are asked in turns by wrk (``--wrk`` names its program) on loopback. Bodies:

json     our JSON, a matrix of numbers with 5 digits
v2       the Open Inference Protocol in JSON, the same numbers in one list
tensor   the Open Inference Protocol with bytes of FP32

``--profile`` tells what the time of a request is made of, without HTTP.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

DOCS, FEATURES, TREES, LEAVES = 100, 136, 500, 31
TRAINING_QUERIES = 60
BODIES = ("json", "v2", "tensor")
OURS, PEER = "rankinite", "lightgbm"
# A connection that wrk opens first is answered no earlier than this.
WARM_UP_SECONDS = 1
LINES = {
    "rate": re.compile(r"Requests/sec:\s+([\d.]+)"),
    "p50": re.compile(r"\s50%\s+([\d.]+)(us|ms|s)"),
    "p99": re.compile(r"\s99%\s+([\d.]+)(us|ms|s)"),
}
MILLISECONDS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


def documents(rng: np.random.Generator, n: int) -> Any:
    return rng.random((n, FEATURES), np.float32).round(5)


def make_models(folder: Path) -> None:
    """Train both on the same data; how well does not matter here."""
    import lightgbm as lgb

    import rankinite as rk

    rng = np.random.default_rng(0)
    X = documents(rng, TRAINING_QUERIES * DOCS)
    y = np.clip(X[:, :10].sum(axis=1) - 3 + rng.normal(size=len(X)), 0, 4).round()
    sizes = [DOCS] * TRAINING_QUERIES
    model = rk.LambdaMART(n_trees=TREES, n_leaves=LEAVES, min_docs_in_leaf=5)
    model.fit(X, y, group=sizes).save(folder / f"{OURS}.rk")
    parameters = {
        "objective": "lambdarank",
        "num_leaves": LEAVES,
        "min_data_in_leaf": 5,
        "verbose": -1,
    }
    booster = lgb.train(parameters, lgb.Dataset(X, y, group=sizes), TREES)
    booster.save_model(folder / f"{PEER}.txt")


class Peer:
    """A booster of LightGBM with what the service asks of a ranker."""

    categories_: dict[str, Any] = {}  # noqa: RUF012
    feature_names_ = tuple(str(j + 1) for j in range(FEATURES))

    def __init__(self, path: Path, n_threads: int) -> None:
        import lightgbm as lgb

        self.booster = lgb.Booster(model_file=path)
        self.n_threads = n_threads

    def predict(self, X: Any, qid: Any = None) -> Any:
        """Return scores."""
        return self.booster.predict(X, num_threads=self.n_threads)


def service_of(system: str, folder: Path, n_threads: int) -> Any:
    from rankinite.serve.batches import Columns
    from rankinite.serve.repository import ModelFile, Repository, Served
    from rankinite.serve.service import Service

    repository = Repository([ModelFile(folder / f"{OURS}.rk", "model")])
    if system == PEER:
        ranker: Any = Peer(folder / f"{PEER}.txt", n_threads)
        slot = repository.find(None)
        slot.served = Served("model", "1", ranker, Columns(ranker), 0.0)
    return Service(repository, watch_seconds=None)


def serve(system: str, folder: Path, n_threads: int) -> None:
    """Run a service, as the command does, without a log of every request."""
    from rankinite.serve.server import address_of, listen, run

    service, listener = service_of(system, folder, n_threads), listen("127.0.0.1", 0)
    run(service, listener, lambda: print(address_of(listener), flush=True), 5)


def request(kind: str) -> tuple[str, bytes, dict[str, str]]:
    """Return the path, body and headers of a request."""
    X = documents(np.random.default_rng(1), DOCS)
    numbers = [[round(float(value), 5) for value in row] for row in X]
    if kind == "json":
        return "/rank", json.dumps({"features": numbers}).encode(), {}
    tensor: dict[str, Any] = {"name": "features", "shape": [DOCS, FEATURES], "datatype": "FP32"}
    path = "/v2/models/model/infer"
    if kind == "v2":
        tensor["data"] = [value for row in numbers for value in row]
        return path, json.dumps({"inputs": [tensor]}).encode(), {}
    tensor["parameters"] = {"binary_data_size": X.nbytes}
    asked = {"inputs": [tensor], "parameters": {"binary_data_output": True}}
    header = json.dumps(asked).encode()
    return path, header + X.tobytes(), {"Inference-Header-Content-Length": str(len(header))}


def ask(wrk: str, url: str, kind: str, seconds: int, connections: int, folder: Path) -> Any:
    """Ask a service for some seconds; return requests a second, and milliseconds."""
    path, body, headers = request(kind)
    (folder / "body").write_bytes(body)
    script = folder / "post.lua"
    script.write_text(
        "wrk.method = 'POST'\n"
        f"wrk.body = io.open('{folder / 'body'}', 'rb'):read('*a')\n"
        + "".join(f"wrk.headers['{name}'] = '{value}'\n" for name, value in headers.items())
    )
    command = [wrk, "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-s", str(script)]
    done = subprocess.run([*command, url + path], capture_output=True, text=True, check=True)
    if "Non-2xx" in done.stdout or "Socket errors" in done.stdout:
        sys.exit(f"{url}: {done.stdout}")
    shown = {name: line.search(done.stdout) for name, line in LINES.items()}
    values = {name: float(match[1]) for name, match in shown.items() if match}
    for name in ("p50", "p99"):
        match = shown[name]
        assert match is not None
        values[name] *= MILLISECONDS[match[2]]
    return values


def profile(folder: Path, n_threads: int) -> None:
    """Print what the time of a request is made of: microseconds, the least of many."""
    import msgspec

    from rankinite.serve import queries, tensors
    from rankinite.serve.limits import Limits

    def least(function: Any) -> float:
        times = []
        for _ in range(300):
            start = time.perf_counter()
            function()
            times.append(time.perf_counter() - start)
        return min(times) * 1e6

    limits = Limits()
    X = documents(np.random.default_rng(1), DOCS)
    for system in (OURS, PEER):
        served = service_of(system, folder, n_threads).repository.find(None).served
        print(f"{system:10} scores          {least(partial(served.ranker.predict, X)):8.0f}")
        for kind in BODIES:
            _, body, headers = request(kind)
            answer = partial(queries.answer, served, body, limits)
            if kind != "json":
                length = next(iter(headers.values()), None)
                n = None if length is None else int(length)
                answer = partial(tensors.answer, served, body, limits, n)
            print(f"{system:10} all of {kind:8} {least(answer):8.0f}   ({len(body):,} bytes)")
    _, body, _ = request("json")
    raw = memoryview(queries.REQUESTS.decode(body).features)
    print(f"syntax of the JSON         {least(lambda: queries.REQUESTS.decode(body)):8.0f}")
    print(f"its numbers as a matrix    {least(lambda: queries.numbers(raw, FEATURES)):8.0f}")
    decoder = msgspec.json.Decoder(dict[str, list[list[float]]])
    lists = least(lambda: np.array(decoder.decode(body)["features"], np.float32))
    print(f"(by lists instead          {lists:8.0f})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--bodies", default=",".join(BODIES))
    parser.add_argument("--lightgbm-threads", type=int, default=1, help="of each of its calls")
    parser.add_argument("--wrk", default=shutil.which("wrk"), help="program of the client")
    parser.add_argument("--models", type=Path, help="folder with models of an earlier run")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--serve", choices=(OURS, PEER), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.models or Path(temporary)
        if chosen.serve:
            serve(chosen.serve, folder, chosen.lightgbm_threads)
            return
        if chosen.wrk is None:
            parser.error("wrk is not installed (Debian: apt install wrk); --wrk names it")
        folder.mkdir(exist_ok=True)
        if not (folder / f"{PEER}.txt").exists():
            make_models(folder)
        if chosen.profile:
            profile(folder, chosen.lightgbm_threads)
            return
        compare(chosen, folder)


def compare(chosen: argparse.Namespace, folder: Path) -> None:
    command = [sys.executable, __file__, "--models", str(folder)]
    command += ["--lightgbm-threads", str(chosen.lightgbm_threads), "--serve"]
    processes = {
        system: subprocess.Popen([*command, system], stdout=subprocess.PIPE, text=True)
        for system in (OURS, PEER)
    }
    try:
        urls = {}
        for system, process in processes.items():
            assert process.stdout is not None
            urls[system] = process.stdout.readline().strip()
        print(f"{os.cpu_count()} cores, {chosen.connections} connections")
        print(f"{'body':8} {'system':10} {'requests/s':>10} {'p50 ms':>8} {'p99 ms':>8}")
        for kind in chosen.bodies.split(","):
            compare_bodies(kind, urls, chosen, folder)
    finally:
        for process in processes.values():
            process.terminate()
            process.wait()


def compare_bodies(
    kind: str, urls: dict[str, str], chosen: argparse.Namespace, folder: Path
) -> None:
    """Print what came of some turns with one kind of body, and their ratios."""

    def asked(system: str, seconds: int) -> Any:
        return ask(chosen.wrk, urls[system], kind, seconds, chosen.connections, folder)

    turns = []
    for system in urls:
        asked(system, WARM_UP_SECONDS)
    for _ in range(chosen.turns):
        turns.append({system: asked(system, chosen.seconds) for system in urls})
        for system, values in turns[-1].items():
            print(
                f"{kind:8} {system:10} {values['rate']:10,.0f} {values['p50']:8.2f} "
                f"{values['p99']:8.2f}"
            )
    ratios = {
        name: statistics.median(turn[OURS][name] / turn[PEER][name] for turn in turns)
        for name in LINES
    }
    print(
        f"{kind:8} ratio: requests/s {ratios['rate']:.2f}, p50 {ratios['p50']:.2f}, "
        f"p99 {ratios['p99']:.2f} (medians of {len(turns)} turns)",
        flush=True,
    )


if __name__ == "__main__":
    main()
