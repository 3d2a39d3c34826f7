"""A loaded model behind OpenAI's HTTP interface, and a page to talk with it.

Names are imported when first used, so that help about a server loads none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .address import listen
    from .app import build_app
    from .config import ServerConfig
    from .running import RunningServer
    from .served import Served

_LAZY = {
    "RunningServer": ".running",
    "Served": ".served",
    "ServerConfig": ".config",
    "build_app": ".app",
    "listen": ".address",
}

__all__ = ["RunningServer", "Served", "ServerConfig", "build_app", "listen"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_LAZY[name], __name__), name)
    globals()[name] = value
    return value
