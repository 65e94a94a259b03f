"""Who may be scored when: places for requests, and the threads that score.

The event loop is one thread; what decodes, scores and encodes runs on others, as many as there are
cores, and kernels hold no lock meanwhile. A request has a place from its headers to its answer, so
memory is bounded by the number of places. All methods but those that the threads run are called on
the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from rankinite.core.format import readable_size
from rankinite.core.threads import n_threads, threads
from rankinite.serve.batches import RequestError
from rankinite.serve.limits import Limits

Result = TypeVar("Result")
RETRY_SECONDS = 1
# Bodies under way together take at most as much as so many of the largest.
LARGEST_BODIES = 16


class Pool:
    """Places and threads.

    Parameters
    ----------
    limits
        How many there are.
    """

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.n_cores = n_threads()
        self.n_workers = limits.concurrency or self.n_cores
        self.workers = ThreadPoolExecutor(self.n_workers, "rankinite scoring")
        self.under_way = 0
        self.n_scoring = 0
        self.n_bytes = 0
        self.of_client: Counter[str] = Counter()
        self._turns: asyncio.Semaphore | None = None

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """Give a request a place, or refuse it."""
        if self.under_way >= self.n_workers + self.limits.queue:
            raise RequestError(
                503,
                f"the service is busy: {self.under_way} requests are under way; try again later",
                RETRY_SECONDS,
            )
        most = self.limits.per_client
        if most is not None and self.of_client[client] >= most:
            raise RequestError(
                429,
                f"{most} requests of this client are under way, which is the limit; wait for an "
                "answer before the next request",
                RETRY_SECONDS,
            )
        self.under_way += 1
        self.of_client[client] += 1
        try:
            yield
        finally:
            self.under_way -= 1
            self.of_client[client] -= 1
            if not self.of_client[client]:
                del self.of_client[client]

    async def body(self, receive: Callable[[], Awaitable[Any]], length: int | None) -> bytes:
        """Return the body of a request, whose bytes `forget` gives back."""
        if length is not None:
            self.limits.check_body(length)
        chunks: list[bytes] = []
        n_bytes = 0
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeft
                    chunk = message.get("body", b"")
                    n_bytes += len(chunk)
                    self.n_bytes += len(chunk)
                    self.limits.check_body(n_bytes)
                    if self.n_bytes > LARGEST_BODIES * self.limits.body:
                        raise RequestError(
                            503,
                            f"the service is busy: it holds bodies of {readable_size(self.n_bytes)}"
                            "; try again later",
                            RETRY_SECONDS,
                        )
                    chunks.append(chunk)
                    if not message.get("more_body", False):
                        return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        except BaseException as problem:
            self.forget(n_bytes)
            if isinstance(problem, TimeoutError):
                raise RequestError(
                    408,
                    f"the body did not arrive within {self.limits.body_seconds:g} s; "
                    f"{n_bytes:,} bytes did",
                ) from None
            raise

    def forget(self, n_bytes: int) -> None:
        """Give back the bytes of a body."""
        self.n_bytes -= n_bytes

    async def run(self, function: Callable[..., Result], *arguments: Any) -> Result:
        """Call a function on a thread, in turn."""
        turns = self._turns = self._turns or asyncio.Semaphore(self.n_workers)
        try:
            async with asyncio.timeout(self.limits.seconds):
                await turns.acquire()
                self.n_scoring += 1
                # Where few requests are scored, each may use several cores.
                cores = max(1, self.n_cores // self.n_scoring)
                work = asyncio.get_running_loop().run_in_executor(
                    self.workers, _outcome, cores, function, arguments
                )
                work.add_done_callback(self._end_turn)
                # A thread cannot be stopped: the turn ends when it is done, answered or not.
                result, problem = await asyncio.shield(work)
        except TimeoutError:
            raise RequestError(
                503,
                f"the answer took longer than {self.limits.seconds:g} s, which is the limit; try "
                "again later, or with fewer documents",
                RETRY_SECONDS,
            ) from None
        if problem is not None:
            raise problem
        answer: Result = result
        return answer

    def _end_turn(self, work: Any) -> None:
        self.n_scoring -= 1
        if self._turns is not None:
            self._turns.release()

    def close(self) -> None:
        """End the threads."""
        self.workers.shutdown(wait=True, cancel_futures=True)


class ClientLeft(Exception):  # noqa: N818
    """The client has closed the connection before its request was complete."""


def _outcome(
    cores: int, function: Callable[..., Any], arguments: tuple[Any, ...]
) -> tuple[Any, Exception | None]:
    """Return what a function returns or raises: nobody may be left to see an exception."""
    try:
        with threads(cores):
            return function(*arguments), None
    except Exception as problem:
        return None, problem
