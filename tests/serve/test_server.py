"""A server on loopback: its readiness, what it does about slow clients, and its end."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import subprocess
import sys
import threading
from urllib.parse import urlsplit

import pytest
import uvicorn

from rankinite.core.errors import RankiniteError
from rankinite.serve import server
from rankinite.serve.limits import Limits
from rankinite.serve.repository import ModelFile, Repository
from rankinite.serve.service import Service
from tests.processes import LIMIT

ROW = json.dumps({"features": [[1, 2, 3]]})


@pytest.fixture
def command(folder):
    """The command, which serves a model; and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "rankinite", "serve", "m=plain.rk", "--port", "0", "--json",
         "--max-body", "0.1"],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    limit = threading.Timer(LIMIT, process.kill)
    limit.start()
    lines = []
    while not lines or lines[-1] not in ("}\n", ""):
        lines.append(process.stdout.readline())
    assert lines[-1], process.communicate()[1]
    yield process, json.loads("".join(lines))
    limit.cancel()
    process.kill()
    process.communicate()


def connect(url):
    return http.client.HTTPConnection(urlsplit(url).netloc, timeout=LIMIT)


def test_the_command_serves_until_it_is_told_to_end(command):
    process, ready = command
    assert ready["models"] == [{"model": "m", "version": "1"}]
    connection = connect(ready["url"])
    for _ in range(2):  # on one connection
        connection.request("POST", "/rank", ROW)
        answer = connection.getresponse()
        assert answer.status == 200
        assert json.loads(answer.read())["ranking"][0]["id"] == 0
    # The client learns why, although it sent more than is read.
    connection.request("POST", "/rank", b" " * 3_000_000)
    answer = connection.getresponse()
    assert answer.status == 413
    assert "limit" in json.loads(answer.read())["error"]
    process.terminate()
    printed, logged = process.communicate(timeout=LIMIT)
    assert process.returncode == 0
    assert printed == ""
    events = [json.loads(line) for line in logged.splitlines()]
    assert [event.get("status") for event in events] == [200, 200, 413, None]
    assert events[-1]["event"] == "ended"


@pytest.fixture
def local(folder, monkeypatch):
    """A server in a thread of this process, with short limits; its address and its socket."""
    monkeypatch.setattr(server, "STALLED_SECONDS", 0.05)
    limits = Limits(connections=3)
    service = Service(Repository([ModelFile(folder / "plain.rk", "m")]), limits, None, None)
    listener = server.listen("127.0.0.1", 0)
    ready = threading.Event()
    config = server.config_of(service, 1)
    running = server.Server(config, ready.set)
    thread = threading.Thread(target=running.run, args=([listener],))
    thread.start()
    assert ready.wait(LIMIT)
    yield listener.getsockname(), running
    running.should_exit = True
    thread.join(LIMIT)
    assert not thread.is_alive()


def read_all(connection):
    """Return what a server sends until it closes the connection."""
    connection.settimeout(LIMIT)
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def test_connections_that_ask_nothing_are_closed(local):
    address, _ = local
    for begin in (b"", b"POST /rank HTT", b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n"):
        with socket.create_connection(address) as connection:
            connection.sendall(begin)
            assert read_all(connection) == b""
    with socket.create_connection(address) as connection:
        # One answer, and then a request that is never complete.
        connection.sendall(b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        connection.settimeout(LIMIT)
        answer = b""
        while not answer.endswith(b'{"live": true}'):
            answer += connection.recv(65536)
        connection.sendall(b"GET ")
        assert read_all(connection) == b""


def test_there_are_not_more_connections_than_allowed(local):
    address, running = local
    body = f"POST /rank HTTP/1.1\r\nhost: x\r\ncontent-length: {len(ROW)}\r\n\r\n{ROW[:5]}"
    held = [socket.create_connection(address) for _ in range(3)]
    try:
        for connection in held:
            connection.sendall(body.encode())
        while len(running.server_state.connections) < 3:
            threading.Event().wait(0.001)
        with socket.create_connection(address) as connection:
            answer = read_all(connection)
        assert answer.startswith(b"HTTP/1.1 503")
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"].startswith("the service has")
        # Those that were there are answered when their bodies are complete.
        for connection in held:
            connection.sendall(ROW[5:].encode())
            connection.settimeout(LIMIT)
            assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    finally:
        for connection in held:
            connection.close()


def test_a_port_that_is_taken_is_refused():
    listener = server.listen("127.0.0.1", 0)
    try:
        port = listener.getsockname()[1]
        with pytest.raises(RankiniteError, match=rf"cannot listen on 127.0.0.1, port {port}: .*in"):
            server.listen("127.0.0.1", port)
    finally:
        listener.close()
    with pytest.raises(RankiniteError, match=r"cannot listen on no\.such\.host\.invalid"):
        server.listen("no.such.host.invalid", 0)


def test_addresses_of_other_machines_are_known():
    for host, is_local in (("127.0.0.1", True), ("0.0.0.0", False)):
        listener = server.listen(host, 0)
        try:
            assert server.is_loopback(listener) == is_local
            assert server.address_of(listener).startswith(f"http://{host}:")
        finally:
            listener.close()


def test_uvicorn_has_what_the_connections_rely_on():
    assert issubclass(server.Connection, asyncio.Protocol)
    assert hasattr(uvicorn.Server, "startup")
