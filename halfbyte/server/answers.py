"""`together`: the events of several answers as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack

from ..runtime.async_stream import AsyncStream
from ..runtime.completion import StreamEvent


async def together(streams: Sequence[AsyncStream]) -> AsyncGenerator[tuple[int, StreamEvent]]:
    """Which answer, and its next event. An error of one ends all; so does closing this."""
    async with AsyncExitStack() as stack:
        for stream in streams:
            await stack.enter_async_context(stream)
        if len(streams) == 1:
            async for event in streams[0]:
                yield 0, event
            return
        async for pair in _merged(streams):
            yield pair


async def _merged(streams: Sequence[AsyncStream]) -> AsyncGenerator[tuple[int, StreamEvent]]:
    waits = {asyncio.ensure_future(anext(stream)): index for index, stream in enumerate(streams)}
    try:
        while waits:
            done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for task in sorted(done, key=waits.__getitem__):
                index, event = waits.pop(task), task.result()
                if event.finish_reason is None:
                    waits[asyncio.ensure_future(anext(streams[index]))] = index
                yield index, event
    finally:
        for task in waits:
            task.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
