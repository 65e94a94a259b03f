"""What Prometheus is told of a service."""

from __future__ import annotations

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from rankinite.serve.pool import Pool
from rankinite.serve.repository import Repository, Slot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """Counters of one service.

    Labels are routes, models and statuses, of which there are few whatever clients send.

    Parameters
    ----------
    repository
        The models.
    pool
        The requests under way.
    """

    def __init__(self, repository: Repository, pool: Pool) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which nobody asks for
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self.requests = Counter(
            "rankinite_requests",
            "Requests that were answered.",
            ["route", "model", "status"],
            registry=self.registry,
        )
        self.seconds = Histogram(
            "rankinite_request_seconds",
            "From the headers of a request to its answer.",
            ["route"],
            buckets=BUCKETS,
            registry=self.registry,
        )
        self.queries = Counter(
            "rankinite_queries", "Queries that were ranked.", ["model"], registry=self.registry
        )
        self.documents = Counter(
            "rankinite_documents", "Documents that were scored.", ["model"], registry=self.registry
        )
        self.reloads = Counter(
            "rankinite_reloads",
            "Model files that were replaced, by what came of it.",
            ["model", "version", "result"],
            registry=self.registry,
        )
        self.is_stale = Gauge(
            "rankinite_model_stale",
            "1 if the file of a model was replaced by one that cannot be served.",
            ["model", "version"],
            registry=self.registry,
        )
        self.loaded = Gauge(
            "rankinite_model_loaded_timestamp_seconds",
            "When a model was loaded.",
            ["model", "version"],
            registry=self.registry,
        )
        under_way = Gauge(
            "rankinite_requests_under_way",
            "Requests that have a place: read, waiting or scored.",
            registry=self.registry,
        )
        under_way.set_function(lambda: pool.under_way)
        scoring = Gauge(
            "rankinite_requests_scoring", "Requests that are scored.", registry=self.registry
        )
        scoring.set_function(lambda: pool.n_scoring)
        for slot in repository.all():
            self.show(slot)

    def show(self, slot: Slot) -> None:
        """Show the state of a model."""
        labels = (slot.file.name, slot.file.version)
        self.is_stale.labels(*labels).set(slot.problem is not None)
        self.loaded.labels(*labels).set(slot.served.loaded)

    def reloaded(self, slot: Slot, succeeded: bool) -> None:
        """Count a file that was replaced."""
        result = "served" if succeeded else "refused"
        self.reloads.labels(slot.file.name, slot.file.version, result).inc()
        self.show(slot)

    def text(self) -> bytes:
        """Return all values in the format of Prometheus."""
        return generate_latest(self.registry)
