"""`read_all`: the logits of texts, shown to those who want to see them."""

from __future__ import annotations

from collections.abc import Sequence

from .adapters import AdapterUse
from .engine import Engine, TokenIds
from .reader import RowReader


def read_all(engine: Engine, texts: Sequence[tuple[TokenIds, RowReader]], adapters: AdapterUse) -> None:
    """Read several texts side by side and wait for the end; what is left is cancelled where something is raised."""
    requests = []
    try:
        for ids, reader in texts:
            requests.append(engine.read(ids, reader, adapters))
        for request in requests:
            while not request.receive().ended:
                pass
    except BaseException:
        for request in requests:
            engine.cancel(request)
        raise
