"""The twins for asyncio, over the toy model."""

from __future__ import annotations

import asyncio
import gc

import pytest

from halfbyte.errors import ConfigError, DeadlineExceededError, RequestError
from tests.runtime.toy import ToyExecutable, toy_answer, wait_until
from tests.runtime.toy_llm import ANSWER, TEXT, pages_used, toy_llm


@pytest.fixture
def llm():
    with toy_llm(ToyExecutable(n_pages=200), context=700) as made:
        yield made


def test_many_answers_at_once(llm):
    async def main():
        return await asyncio.gather(*(llm.agenerate([i, i + 1], max_tokens=6) for i in range(30)))

    assert [list(done.ids) for done in asyncio.run(main())] == [toy_answer([i, i + 1], 6) for i in range(30)]


def test_events_add_up(llm):
    async def main():
        return [event async for event in llm.astream("BC", max_tokens=12)]

    events = asyncio.run(main())
    assert "".join(event.text for event in events) == TEXT
    assert [token for event in events for token in event.ids] == ANSWER
    assert events[-1].finish_reason == "length"


def test_chat(llm):
    async def main():
        done = await llm.achat([{"role": "user", "content": "BC"}], max_tokens=12)
        events = [event async for event in llm.astream_chat([{"role": "user", "content": "BC"}], max_tokens=12)]
        return done.text, "".join(event.text for event in events)

    assert asyncio.run(main()) == (TEXT, TEXT)


def test_other_tasks_run_while_an_answer_is_waited_for(llm):
    llm._engine._executable.before_run = lambda batch: wait_until(lambda: True)
    ticks = []

    async def tick():
        while True:
            ticks.append(1)
            await asyncio.sleep(0.001)

    async def main():
        ticker = asyncio.create_task(tick())
        await llm.agenerate([1], max_tokens=200)
        ticker.cancel()

    asyncio.run(main())
    assert len(ticks) > 3


def test_a_cancelled_task_cancels_its_request(llm):
    async def main():
        task = asyncio.create_task(llm.agenerate([1], max_tokens=600))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    wait_until(lambda: pages_used(llm) == 0)


def test_leaving_the_block_or_letting_go_cancels(llm):
    async def main():
        async with llm.astream([1], max_tokens=600) as stream:
            await anext(stream)
        async for _ in llm.astream([2], max_tokens=600):
            break
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(main())
    gc.collect()
    wait_until(lambda: pages_used(llm) == 0)


def test_errors_are_raised_where_they_are_awaited(llm):
    async def main():
        with pytest.raises(DeadlineExceededError):
            await llm.agenerate([1], max_tokens=690, timeout=1e-6)
        with pytest.raises(RequestError, match="no tokens"):
            await llm.agenerate([])

    asyncio.run(main())


def test_an_event_loop_that_ends_early_harms_nobody(llm):
    async def main():
        stream = llm.astream([1], max_tokens=600)
        await anext(stream)
        return stream

    stream = asyncio.run(main())
    assert list(llm.generate([1, 2], max_tokens=12).ids) == ANSWER
    del stream
    gc.collect()
    wait_until(lambda: pages_used(llm) == 0)


def test_several_answers_to_one_prompt_compute_it_once(llm):
    async def main():
        streams = await llm.astreams("BC", 3, max_tokens=12, temperature=1.0, seed=5)
        chats = await llm.astreams_chat([{"role": "user", "content": "BC"}], 2, max_tokens=12)
        return [await stream.collect() for stream in streams], [await chat.collect() for chat in chats]

    sampled, chats = asyncio.run(main())
    assert [one.text for one in sampled] == [
        one.text for one in llm.samples("BC", 3, max_tokens=12, temperature=1.0, seed=5)
    ]
    assert [chat.text for chat in chats] == [TEXT, TEXT]
    with pytest.raises(ConfigError, match="n must be a whole number from 1"):
        asyncio.run(llm.astreams("BC", 0))
