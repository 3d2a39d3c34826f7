"""`ServerMeter`: what a server did, for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from ..runtime.timings import Timings

SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
OTHER = "other"
"""Paths that nobody serves: a client could name any number of them."""


class ServerMeter:
    """Counts requests and times them; `paths` are those that are told apart."""

    def __init__(self, paths: frozenset[str]) -> None:
        self.registry = CollectorRegistry()
        self._paths = paths
        self._requests = Counter(
            "halfbyte_http_requests", "Requests by path and status", ["path", "status"], registry=self.registry
        )
        self._durations = Histogram(
            "halfbyte_http_request_seconds",
            "From the head of a request to the end of its answer",
            ["path"],
            buckets=SECONDS,
            registry=self.registry,
        )
        self._first_token = Histogram(
            "halfbyte_first_token_seconds",
            "From a request to the first token of its answer",
            buckets=SECONDS,
            registry=self.registry,
        )

    def count(self, path: str, status: int, seconds: float) -> None:
        """One request that ended."""
        known = path if path in self._paths else OTHER
        self._requests.labels(known, str(status)).inc()
        self._durations.labels(known).observe(seconds)

    def answered(self, timings: Timings) -> None:
        """One answer that is whole."""
        self._first_token.observe(timings.first_token_s)
