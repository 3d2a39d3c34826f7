"""Which status an error of the library gets."""

from __future__ import annotations

import pytest

from halfbyte import errors
from halfbyte.runtime.inbox import CLOSED
from halfbyte.server.errors import SCHEMA, ApiError, api_error

MADE = {
    errors.KvBudgetExceededError: lambda: errors.KvBudgetExceededError("x", needed=1, budget=0),
    errors.IncompleteAnswerError: lambda: errors.IncompleteAnswerError("x", completion=None),
    errors.CheckError: lambda: errors.CheckError("x", item="y"),
}
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.HalfbyteError)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_has_one_and_shows_its_message(kind):
    shown = api_error(MADE.get(kind, lambda: kind("x"))())
    assert 400 <= shown.status <= 504
    assert shown.body["error"]["message"] == "x"
    assert (shown.status >= 500) == (shown.kind in ("server_error", "timeout_error"))


def test_faults_of_the_server_are_its_own():
    failed = errors.RequestError("a step of the engine failed: ZeroDivisionError: no")
    failed.__cause__ = ZeroDivisionError("no")
    assert api_error(failed).status == 500
    refused = errors.RequestError("the chat template refuses these messages: roles must alternate")
    refused.__cause__ = ValueError("roles must alternate")
    assert api_error(refused).status == 400
    assert api_error(errors.RequestError(CLOSED)).status == 503
    ours = api_error(KeyError("secret/path"))
    assert (ours.status, "secret" in str(ours)) == (500, False)
    assert api_error(ours) is ours


def test_a_message_about_a_part_of_the_request_names_its_place():
    assert api_error(errors.RequestError("messages[3]['content'][0] wants text")).param == "messages[3]['content'][0]"
    assert api_error(errors.RequestError("messages is empty")).param == "messages"
    assert api_error(errors.ConfigError("top_p must be", key="top_p")).param == "top_p"
    assert api_error(errors.UnsupportedError("schema: the keyword 'not' at /")).param == SCHEMA
    assert api_error(errors.ConfigError("must be an object", key="schema")).param == SCHEMA
    assert api_error(errors.RequestError("a token")).param is None
    assert ApiError(400, "x").body["error"]["code"] is None
