"""`ApiError`: what goes wrong with a request, in OpenAI's form."""

from __future__ import annotations

import re
from typing import Any

from ..errors import (
    CancelledError,
    ConfigError,
    ContextExceededError,
    DeadlineExceededError,
    HalfbyteError,
    KvBudgetExceededError,
    QueueFullError,
    RequestError,
    ResourceError,
    UnsupportedError,
)
from ..runtime.inbox import CLOSED
from ..runtime.request import STEP_FAILED

INVALID = "invalid_request_error"
SERVER = "server_error"

# The first that fits; a subclass stands before its base.
KINDS: tuple[tuple[type[HalfbyteError], int, str, str | None], ...] = (
    (ContextExceededError, 400, INVALID, "context_length_exceeded"),
    (KvBudgetExceededError, 400, INVALID, "kv_budget_exceeded"),
    (QueueFullError, 429, "rate_limit_error", "queue_full"),
    (DeadlineExceededError, 504, "timeout_error", "deadline_exceeded"),
    (CancelledError, 503, SERVER, "shutting_down"),
    (RequestError, 400, INVALID, None),
    (ConfigError, 400, INVALID, "invalid_value"),
    (UnsupportedError, 400, INVALID, "unsupported_value"),
    (ResourceError, 503, SERVER, "out_of_resources"),
)


class ApiError(Exception):
    """A request that is answered with an error. `param` is the field that is wrong, `headers` go along."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        kind: str = INVALID,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.kind, self.param, self.code = status, kind, param, code
        self.headers = headers or {}

    @property
    def body(self) -> dict[str, Any]:
        """What the client gets to read."""
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}}


def invalid(message: str, param: str | None = None, code: str | None = "invalid_value") -> ApiError:
    """The client's mistake, in the field `param`."""
    return ApiError(400, message, param=param, code=code)


def api_error(error: Exception) -> ApiError:
    """Any error as the client may see it: our own bugs without their insides."""
    if isinstance(error, ApiError):
        return error
    if not isinstance(error, HalfbyteError):
        return ApiError(500, "the server made a mistake; its log says more", kind=SERVER, code="internal_error")
    if isinstance(error, RequestError) and str(error).startswith(STEP_FAILED):
        # A step of the engine that failed under the request is no fault of the client's.
        return ApiError(500, str(error), kind=SERVER, code="internal_error")
    if str(error) == CLOSED and not isinstance(error, CancelledError):
        return api_error(CancelledError(CLOSED))
    for kind, status, name, code in KINDS:
        if isinstance(error, kind):
            param = _field(error)
            return ApiError(status, str(error), kind=name, param=param, code=code, headers=_headers(status))
    return ApiError(500, str(error), kind=SERVER, code="internal_error")


SCHEMA = "response_format.json_schema.schema"
PLACES = re.compile(r"(messages(?:\[\w+\]|\['\w+'\])*)|(schema):")
"""Messages about a conversation or a schema begin so."""


def _field(error: HalfbyteError) -> str | None:
    """The field that an error is about, as a client knows it."""
    key = getattr(error, "key", None)
    found = PLACES.match(str(error))
    if key == "schema" or (key is None and found and found[2]):
        return SCHEMA
    return key or (found and found[1])


def _headers(status: int) -> dict[str, str]:
    # Asking again what took too long would take as long again, and OpenAI's clients ask again by themselves.
    return {504: {"x-should-retry": "false"}, 503: {"retry-after": "5"}, 429: {"retry-after": "1"}}.get(status, {})
