"""Fixtures: a toy model behind a server, and a client."""

from __future__ import annotations

import openai
import pytest

from halfbyte.server.served import Served
from tests.runtime.toy import ToyExecutable
from tests.runtime.toy_llm import toy_llm
from tests.server.running import running


@pytest.fixture(scope="module")
def llm():
    with toy_llm(ToyExecutable(n_pages=400), context=700) as made:
        yield made


@pytest.fixture(scope="module")
def server(llm):
    with running(Served(llm, "toy")) as made:
        yield made


@pytest.fixture
def client(server):
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0) as made:
        yield made
