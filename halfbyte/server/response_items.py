"""`ResponseItems`: an answer as items, which are thinking, messages and calls, and the events that tell of them."""

from __future__ import annotations

import uuid
from copy import deepcopy
from typing import Any

from .message import Delta

Tale = tuple[str, dict[str, Any]]
"""The type of an event, and its fields."""


class ResponseItems:
    """Takes deltas; `items` are those so far, the last one maybe still open."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []
        self._open = ""  # the type of the last item, if more may come to it

    def add(self, delta: Delta, logprobs: list[Any]) -> list[Tale]:
        """What a delta adds; `logprobs` are those of its tokens."""
        if "reasoning_content" in delta:
            return self._write("reasoning", delta["reasoning_content"], [])
        if "content" in delta:
            return self._write("message", delta["content"], logprobs)
        return [tale for part in delta.get("tool_calls", ()) for tale in self._call(part)]

    def close(self, status: str = "completed") -> list[Tale]:
        """The end of the last item."""
        if not self._open:
            return []
        item, kind, self._open = self.items[-1], self._open, ""
        item["status"] = status
        at = {"item_id": item["id"], "output_index": len(self.items) - 1}
        if kind == "function_call":
            done = {**at, "name": item["name"], "arguments": item["arguments"]}
            tales = [("response.function_call_arguments.done", done)]
        else:
            part = item["content"][0]
            at_part = {**at, "content_index": 0}
            more = {"logprobs": part["logprobs"]} if kind == "message" else {}
            tales = [
                (f"{PARTS[kind][1]}.done", {**at_part, "text": part["text"], **more}),
                ("response.content_part.done", {**at_part, "part": dict(part)}),
            ]
        return [*tales, ("response.output_item.done", {"output_index": len(self.items) - 1, "item": dict(item)})]

    def _write(self, kind: str, text: str, logprobs: list[Any]) -> list[Tale]:
        tales = [] if self._open == kind else [*self.close(), *self._begin_text(kind)]
        item = self.items[-1]
        part = item["content"][0]
        part["text"] += text
        at = {"item_id": item["id"], "output_index": len(self.items) - 1, "content_index": 0}
        if kind == "message":
            part["logprobs"] += logprobs
            at["logprobs"] = logprobs
        return [*tales, (f"{PARTS[kind][1]}.delta", {**at, "delta": text})]

    def _begin_text(self, kind: str) -> list[Tale]:
        name, _, prefix, more = PARTS[kind]
        part: dict[str, Any] = {"type": name, "text": ""}
        part |= {"annotations": [], "logprobs": []} if kind == "message" else {}
        tales = self._begin({"id": new_id(prefix), "type": kind, **more, "content": []}, kind)
        item = self.items[-1]
        item["content"] = [part]
        at = {"item_id": item["id"], "output_index": len(self.items) - 1, "content_index": 0}
        return [*tales, ("response.content_part.added", {**at, "part": deepcopy(part)})]

    def _call(self, part: dict[str, Any]) -> list[Tale]:
        tales: list[Tale] = []
        function = part["function"]
        if "id" in part:
            item = {"id": new_id("fc"), "type": "function_call", "call_id": part["id"], "name": function["name"]}
            tales = [*self.close(), *self._begin({**item, "arguments": ""}, "function_call")]
        item = self.items[-1]
        item["arguments"] += function["arguments"]
        if function["arguments"]:
            at = {"item_id": item["id"], "output_index": len(self.items) - 1}
            tales.append(("response.function_call_arguments.delta", {**at, "delta": function["arguments"]}))
        return tales

    def _begin(self, item: dict[str, Any], kind: str) -> list[Tale]:
        item["status"] = "in_progress"
        self.items.append(item)
        self._open = kind
        return [("response.output_item.added", {"output_index": len(self.items) - 1, "item": dict(item)})]


PARTS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "message": ("output_text", "response.output_text", "msg", {"role": "assistant"}),
    "reasoning": ("reasoning_text", "response.reasoning_text", "rs", {"summary": []}),
}
"""Items of text: the type of their part, what their events are called, how ids begin, and further fields."""


def new_id(prefix: str) -> str:
    """An id that nothing else has."""
    return f"{prefix}_{uuid.uuid4().hex}"
