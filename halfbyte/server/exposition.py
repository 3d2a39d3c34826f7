"""`exposition`: all figures of a server as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from ..runtime.metrics.metrics import Metrics
from .call import Server

GAUGES = {
    "waiting": "Requests that wait for their first step",
    "running": "Requests that are computed now",
    "swapped": "Requests that made room for more urgent ones",
    "pages_free": "KV pages that hold nothing",
    "pages_cached": "KV pages of earlier requests that others may go on from",
    "pages_used": "KV pages of requests under way",
    "prompt_tok_s": "Prompt tokens computed a second, over ten seconds",
    "generated_tok_s": "Tokens generated a second, over ten seconds",
}
COUNTERS = {
    "prompt_tokens": "Tokens of prompts of requests that began",
    "cached_tokens": "Those of them that had been computed before",
    "generated_tokens": "Tokens of answers",
    "drafted_tokens": "Tokens that were guessed and computed along",
    "accepted_tokens": "Those of them that were right",
    "steps": "Steps of the engine",
}
REASONS = {
    "ended": ("reason", "Requests that ended"),
    "rejected": ("reason", "Requests that were not taken"),
    "preempted": ("how", "Requests that lost their pages to more urgent ones"),
    "phase_s": ("phase", "Seconds of the engine's steps"),
}
WAITS = {"first_token": "Seconds to the first token", "inter_token": "Seconds between tokens"}


class EngineCollector(Collector):
    """The engine's own figures, taken when they are asked for."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def collect(self) -> Iterator[Metric]:
        """Every family."""
        yield GaugeMetricFamily("halfbyte_http_open", "HTTP requests under way", self._server.drain.running)
        yield GaugeMetricFamily("halfbyte_draining", "1 while the server is shutting down", self._server.drain.begun)
        if self._server.served.llm is not None:
            yield from families(self._server.served.llm.metrics())


def families(metrics: Metrics) -> Iterator[Metric]:
    """An engine's metrics as Prometheus' families."""
    for name, about in GAUGES.items():
        yield GaugeMetricFamily(f"halfbyte_{name}", about, getattr(metrics, name))
    for name, about in COUNTERS.items():
        yield CounterMetricFamily(f"halfbyte_{name}", about, getattr(metrics, name))
    for name, (label, about) in REASONS.items():
        counter = CounterMetricFamily(f"halfbyte_{name.replace('_s', '_seconds')}", about, labels=[label])
        for value, number in getattr(metrics, name).items():
            counter.add_metric([value], number)
        yield counter
    for name, about in WAITS.items():
        waits = getattr(metrics, name)
        for quantile in ("p50", "p90", "p99"):
            yield GaugeMetricFamily(
                f"halfbyte_{name}_{quantile}_seconds", f"{about}, {quantile} of the last 4096", getattr(waits, quantile)
            )


def exposition(server: Server) -> tuple[bytes, str]:
    """The text, and its content type."""
    engine = CollectorRegistry()
    engine.register(EngineCollector(server))
    return generate_latest(server.meter.registry) + generate_latest(engine), CONTENT_TYPE_LATEST
