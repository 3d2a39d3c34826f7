"""Three questions at once from one event loop: `python examples/asyncio_chat.py [MODEL]`.

The model computes them together; the loop stays free for whatever else the app does.
"""

from __future__ import annotations

import asyncio
import sys

import halfbyte

QUESTIONS = ["Name a prime number above 10.", "What is the capital of France?", "Say hello in Spanish."]


async def answer(llm: halfbyte.LLM, question: str) -> str:
    """One answer, streamed; a cancelled task cancels the request."""
    text = ""
    async with llm.astream_chat([{"role": "user", "content": question}], max_tokens=32) as stream:
        async for event in stream:
            text += event.text
    return f"{question}\n  {text.strip()}"


async def main(model: str) -> list[str]:
    """All answers; loading takes a while, so it happens in a thread."""
    llm = await asyncio.to_thread(halfbyte.load, model, context=1024)
    try:
        return await asyncio.gather(*(answer(llm, question) for question in QUESTIONS))
    finally:
        await asyncio.to_thread(llm.close)


if __name__ == "__main__":
    for line in asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "smollm2-135m")):
        print(line)
