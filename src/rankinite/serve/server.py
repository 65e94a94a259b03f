"""The server: uvicorn with time limits for connections, and an end that leaves no request alone."""

from __future__ import annotations

import asyncio
import ipaddress
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rankinite.core.errors import RankiniteError
from rankinite.serve.service import Service

# A connection is closed if the headers of a request do not arrive, or nobody reads an answer.
STALLED_SECONDS = 10.0
KEEP_ALIVE_SECONDS = 30
BACKLOG = 1024
REASON = b'{"error":"the service has too many open connections; try again later"}'
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\n"
    b"connection: close\r\ncontent-length: %d\r\n\r\n%b" % (len(REASON), REASON)
)


class Connection(HttpToolsProtocol):
    """A connection that cannot be held open by sending or reading little by little."""

    most = 0
    timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Begin to wait for headers."""
        super().connection_made(transport)
        if self.most and len(self.connections) > self.most:
            transport.write(BUSY)
            transport.close()
            return
        self._wait(self._close_without_request)

    def data_received(self, data: bytes) -> None:
        """Wait on, as long as headers are not complete."""
        super().data_received(data)
        if self._has_request():
            self._wait_no_more()
        elif self.timer is None:
            self._wait(self._close_without_request)

    def pause_writing(self) -> None:
        """Wait for a client that does not read."""
        super().pause_writing()
        self._wait(self.transport.abort)

    def resume_writing(self) -> None:
        """Go on, because the client reads."""
        super().resume_writing()
        self._wait_no_more()

    def connection_lost(self, exc: Exception | None) -> None:
        """End waiting."""
        self._wait_no_more()
        super().connection_lost(exc)

    def _has_request(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _close_without_request(self) -> None:
        self.timer = None
        if not self._has_request():
            self.transport.close()

    def _wait(self, then: Callable[[], None]) -> None:
        self._wait_no_more()
        self.timer = self.loop.call_later(STALLED_SECONDS, then)

    def _wait_no_more(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or say why there is none."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as problem:
        listener.close()
        what = getattr(problem, "strerror", None) or str(problem)
        raise RankiniteError(
            f"serve: cannot listen on {host}, port {port}: {what}; choose others with --host and "
            "--port (0 for a free port)"
        ) from None
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of a socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(listener: socket.socket) -> bool:
    """Tell whether only this machine can connect."""
    return ipaddress.ip_address(listener.getsockname()[0].partition("%")[0]).is_loopback


def run(
    service: Service, listener: socket.socket, ready: Callable[[], None], end_seconds: int
) -> None:
    """Answer requests until the process is told to end; those under way are answered.

    Parameters
    ----------
    service
        The application.
    listener
        Where to listen.
    ready
        Called when requests are answered.
    end_seconds
        How long the end waits for requests that are under way.
    """
    server = Server(config_of(service, end_seconds), ready)
    # uvicorn repeats the signal once it has ended, and the usual handler would call that a failure.
    before = signal.signal(signal.SIGTERM, _ignore)
    try:
        server.run([listener])
    finally:
        signal.signal(signal.SIGTERM, before)


def config_of(service: Service, end_seconds: int) -> uvicorn.Config:
    """Return the settings of a server."""
    most = service.limits.connections
    return uvicorn.Config(
        service,
        http=type("LimitedConnection", (Connection,), {"most": most}),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=end_seconds,
    )


class Server(uvicorn.Server):
    """A server that says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._ready()


def _ignore(_number: int, _frame: FrameType | None) -> None:
    pass
