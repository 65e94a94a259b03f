"""``rankinite serve``: what it refuses before it serves."""

from __future__ import annotations

import json
import logging
import sys

import pytest

import rankinite as rk
import rankinite.serve
from rankinite.cli import main
from rankinite.cli.serve import TOKEN
from rankinite.core.threads import n_threads
from rankinite.serve import server


@pytest.fixture(autouse=True)
def files(tmp_path):
    rk.LambdaMART(n_trees=1).fit(rk.polynomials(5, n_features=2)).save(tmp_path / "m.rk")
    (tmp_path / "blank").write_text("a b\n")


@pytest.fixture(autouse=True)
def loggers(monkeypatch):
    """Undo where the command logs to."""
    for name in ("rankinite.serve", "uvicorn", "asyncio"):
        logger = logging.getLogger(name)
        monkeypatch.setattr(logger, "handlers", logger.handlers)
        monkeypatch.setattr(logger, "propagate", logger.propagate)


@pytest.fixture
def served(monkeypatch):
    """Services that would be run."""
    services = []

    def run(service, listener, ready, end_seconds):
        services.append(service)
        ready()
        listener.close()
        service.close()

    monkeypatch.setattr(server, "run", run)
    return services


def test_it_tells_where_it_serves(call, served):
    printed = call("serve", "m.rk", "shop:2=m.rk", "--port", 0)
    assert "serving m (version 1), shop (version 2) on http://127.0.0.1:" in printed
    (service,) = served
    assert service.limits.body == 8_000_000
    assert service.pool.n_workers == n_threads()


def test_options_are_limits(call, served):
    options = ["--max-body", 0.5, "--max-documents", 7, "--timeout", 3, "--concurrency", 5]
    call("serve", "m.rk", "--port", 0, "--json", *options, "--queue", 9, "--per-client", 4)
    limits = served[0].limits
    assert (limits.body, limits.documents, limits.seconds) == (500_000, 7, 3)
    assert (limits.concurrency, limits.queue, limits.per_client) == (5, 9, 4)


def test_the_token_comes_from_a_file_or_the_environment(call, served, monkeypatch, tmp_path):
    (tmp_path / "token").write_text("abc\n")
    call("serve", "m.rk", "--port", 0, "--token-file", "token")
    monkeypatch.setenv(TOKEN, "from-environment")
    call("serve", "m.rk", "--port", 0)
    assert [service._token for service in served] == [b"Bearer abc", b"Bearer from-environment"]


def test_others_that_may_connect_without_a_token_are_warned_of(served, capsys):
    with pytest.raises(SystemExit):
        main(["serve", "m.rk", "--port", "0", "--host", "0.0.0.0", "--json"])
    first, last = map(json.loads, capsys.readouterr().err.splitlines())
    assert first["level"] == "warning"
    assert "no token is asked for" in first["event"]
    assert last["event"] == "ended"


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["none.rk"], 1, "none.rk: there is no such file"),
        (["a/b=m.rk"], 2, "names no model"),
        (["m.rk", "m.rk"], 2, "two models 'm'"),
        (["m.rk", "--host", "no.such.host.invalid"], 1, "cannot listen on no.such.host.invalid"),
        (["m.rk", "--token-file", "none"], 1, "none: No such file"),
        (["m.rk", "--token-file", "blank"], 2, "the token of blank is empty or has characters"),
    ],
)
def test_mistakes_are_refused(call, arguments, code, sentence):
    assert sentence in call("serve", *arguments, "--port", 0, code=code)


def test_an_empty_token_is_refused(call, monkeypatch):
    monkeypatch.setenv(TOKEN, "")
    assert "the token of RANKINITE_TOKEN is empty" in call("serve", "m.rk", "--port", 0, code=2)


def test_the_extra_is_named(call, monkeypatch):
    monkeypatch.delitem(sys.modules, "rankinite.serve.server")
    monkeypatch.delattr(rankinite.serve, "server")
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'rankinite[serve]'" in call("serve", "m.rk", code=1)
