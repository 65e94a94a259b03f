"""Limits of a service: of bodies, documents, time and concurrency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rankinite.core.format import readable_size
from rankinite.serve.batches import RequestError

MIB = 1 << 20
# An object or list for a document and one for its features, and as many for a query of only one.
BRACKETS_PER_DOCUMENT, FURTHER_BRACKETS = 8, 1000


@dataclass(frozen=True)
class Limits:
    """How much a service takes on.

    Attributes
    ----------
    body
        Bytes of the body of a request.
    documents
        Documents of a request.
    body_seconds
        Until the body of a request has arrived, from its headers on.
    seconds
        Until a request that has arrived is answered.
    concurrency
        Requests that are scored at once; None for one per core.
    queue
        Requests that wait for their turn or for their body, besides.
    per_client
        Requests of one address under way; None for any number.
    connections
        Open connections.
    """

    body: int = 8 * MIB
    documents: int = 10_000
    body_seconds: float = 10.0
    seconds: float = 10.0
    concurrency: int | None = None
    queue: int = 100
    per_client: int | None = None
    connections: int = 1000

    def check_documents(self, n: int) -> None:
        """Refuse a request with too many documents."""
        if n > self.documents:
            raise RequestError(
                413,
                f"the request has more than {self.documents:,} documents, which is the limit; "
                "send them in several requests, query by query",
            )

    def check_brackets(self, text: Any) -> None:
        """Refuse JSON with more objects and lists than that many documents have.

        They are counted before they are read: each takes some hundred bytes of memory, and nothing
        else happens in this process while they are made.
        """
        n = bytes(text).count(b"{") + bytes(text).count(b"[")
        if n > BRACKETS_PER_DOCUMENT * self.documents + FURTHER_BRACKETS:
            raise RequestError(
                413,
                f"the request has {n:,} objects and lists, which are more than {self.documents:,} "
                "documents have; that is the limit",
            )

    def check_body(self, n_bytes: int) -> None:
        """Refuse a body that is too long."""
        if n_bytes > self.body:
            raise RequestError(
                413,
                f"the body is longer than {readable_size(self.body)}, which is the limit; send "
                "fewer documents at a time, or numbers as binary tensors",
            )
