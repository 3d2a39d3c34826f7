"""Requests that have not ended, apart from the engine."""

from __future__ import annotations

import pytest

from halfbyte.runtime.cache.pages import PagePool
from halfbyte.runtime.metrics.meter import Meter
from halfbyte.runtime.open_requests import OpenRequests
from halfbyte.runtime.request import Request
from halfbyte.runtime.scheduler import Scheduler
from halfbyte.runtime.step import Share, StepPlan
from tests.runtime.simulated import growing


@pytest.mark.parametrize("computed", [0, 4, 8])
def test_one_put_back_before_it_began_begins_with_less_cached(computed):
    meter = Meter()
    requests = OpenRequests(Scheduler(PagePool(6), max_num_seqs=2, max_num_batched_tokens=8), meter)
    request = Request(growing(12))
    requests.add(request)
    request.sequence.num_cached, request.sequence.num_computed = 8, computed
    for _ in range(2):
        requests.start(StepPlan([Share(request.sequence, 4, 1)]))
        request.sequence.num_computed += 4
    assert request.started_at is not None
    assert request.sequence.num_cached == computed
    assert (meter.prompt_tokens, meter.cached_tokens) == (12, computed)
