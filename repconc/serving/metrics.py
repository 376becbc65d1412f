"""What Prometheus reads: requests, latency by step, queues, and the size of each index."""

from collections.abc import Mapping
from typing import Any

from repconc.errors import import_extra
from repconc.serving.served import Served

BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
OTHER = "other"
"""The route of a request that matches none: nothing of a request becomes the name of a series."""


class Metrics:
    """The series of one server."""

    def __init__(self, indexes: Mapping[str, Served]) -> None:
        self._library = library = import_extra("prometheus_client", extra="serve")
        self._registry = registry = library.CollectorRegistry()
        self._requests = library.Counter(
            "repconc_requests_total", "Requests by route and status.", ["route", "status"], registry=registry
        )
        self._seconds = library.Histogram(
            "repconc_request_seconds", "Seconds of a request.", ["route"], registry=registry, buckets=BUCKETS
        )
        self._steps = library.Histogram(
            "repconc_step_seconds", "Seconds of the steps of a batch.", ["step"], registry=registry, buckets=BUCKETS
        )
        sizes = [2**power for power in range(9)]
        self._batches = library.Histogram(
            "repconc_batch_queries", "Queries of a batch.", registry=registry, buckets=sizes
        )
        for name, served in indexes.items():
            served.observe = self.batch
            self._watch(name, served)
        self._children: dict[tuple[str, Any], Any] = {}  # looking a child up by its labels is slow

    def request(self, route: str, status: int, seconds: float) -> None:
        self._child("requests", (route, str(status))).inc()
        self._child("seconds", (route,)).observe(seconds)

    def batch(self, queries: int, steps: Mapping[str, float]) -> None:
        """Once a batch: its requests share its steps. The queue is that of the one that waited longest."""
        self._batches.observe(queries)
        for step, seconds in steps.items():
            self._child("steps", (step,)).observe(seconds)

    def page(self) -> tuple[bytes, str]:
        """The page and its media type."""
        return self._library.generate_latest(self._registry), self._library.CONTENT_TYPE_LATEST

    def _child(self, family: str, labels: tuple[str, ...]) -> Any:
        key = family, labels
        if key not in self._children:
            self._children[key] = getattr(self, f"_{family}").labels(*labels)
        return self._children[key]

    def _watch(self, name: str, served: Served) -> None:
        """Gauges that are read when they are asked for."""
        gauges = {
            "repconc_queue_queries": ("Queries that wait.", lambda: served.waiting),
            "repconc_queue_documents": ("Documents that wait to be written.", lambda: served.writer.waiting),
            "repconc_index_documents": ("Documents of an index.", lambda: served.snapshot.described.documents),
            "repconc_index_bytes": ("Bytes to search it.", lambda: served.snapshot.described.search_bytes),
            "repconc_index_segments": ("Its segments.", lambda: served.snapshot.described.segments),
            "repconc_index_version": ("Its version.", lambda: served.snapshot.described.version),
        }
        for title, (about, read) in gauges.items():
            known = getattr(self, title, None)
            gauge = known or self._library.Gauge(title, about, ["index"], registry=self._registry)
            setattr(self, title, gauge)
            gauge.labels(name).set_function(read)
