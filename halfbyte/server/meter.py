"""`ServerMeter`: what a server did, for Prometheus."""

from __future__ import annotations

import math
import time

from prometheus_client import CollectorRegistry, Counter, Histogram

from ..runtime.timings import Timings

SECONDS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
RETRY_AFTER = 1, 60
"""Seconds that a client is told to wait at least and at most."""
SHARE = 0.1
"""Of the newest value in a running mean."""
OTHER = "other"
"""All paths that nobody serves: a client could name any number of them."""


class ServerMeter:
    """Counts requests and times them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._between_answers = 1.0
        self._answered_at: float | None = None
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
        """One request that ended; `path` is one of a few."""
        self._requests.labels(path, str(status)).inc()
        self._durations.labels(path).observe(seconds)

    def answered(self, timings: Timings) -> None:
        """One answer that is whole."""
        self._first_token.observe(timings.first_token_s)
        now = time.monotonic()
        if self._answered_at is not None:
            self._between_answers += SHARE * (now - self._answered_at - self._between_answers)
        self._answered_at = now

    @property
    def retry_after(self) -> int:
        """Whole seconds in which a full queue is likely to have room: as long as answers lie apart."""
        low, high = RETRY_AFTER
        return max(low, min(high, math.ceil(self._between_answers)))
