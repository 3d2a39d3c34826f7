"""`check_key`: whether a request may be served."""

from __future__ import annotations

from hmac import compare_digest

from starlette.datastructures import Headers

from .errors import ApiError


def check_key(headers: Headers, keys: tuple[str, ...]) -> None:
    """Raise `ApiError` unless there are no keys or a request brings one of them."""
    if not keys:
        return
    scheme, _, token = headers.get("authorization", "").partition(" ")
    given = token.strip().encode("latin-1", "replace") if scheme.lower() == "bearer" else b""
    # Every key is looked at, each in the same time: how long it takes tells nothing of how much was right.
    if not sum(compare_digest(given, key.encode()) for key in keys):
        what = "is wrong" if given else "is missing"
        raise ApiError(
            401,
            f"the API key {what}: send it as 'Authorization: Bearer KEY'",
            param=None,
            code="invalid_api_key",
            headers={"www-authenticate": "Bearer"},
        )
