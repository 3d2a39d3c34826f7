"""`sampling_options`: how tokens are chosen, from the fields of a request."""

from __future__ import annotations

from typing import Any

from ..runtime.llm import LLM
from ..runtime.sampling.parameters import PARAMETERS
from .errors import invalid
from .fields import Fields

TEMPERATURE = 0.8
"""Where neither a request nor the model file names one; `halfbyte chat` takes the same."""
ELSEWHERE = ("seed", "logprobs")
"""Parameters whose fields mean something else here than in the library."""
MAX_STOPS = 16
LOWEST_SEED, HIGHEST_SEED = -(2**63), 2**64 - 1


def sampling_options(fields: Fields, llm: LLM) -> dict[str, Any]:
    """Keywords of `generate`; ranges are the library's to judge. Raises `ApiError` for values of a wrong kind."""
    options = {name: fields.take(name) for name in PARAMETERS if name not in ELSEWHERE}
    if options["temperature"] is None and "general.sampling.temp" not in llm.metadata:
        options["temperature"] = TEMPERATURE
    options |= {
        "dry_sequence_breakers": _texts(fields, "dry_sequence_breakers"),
        "samplers": _texts(fields, "samplers"),
        "logit_bias": _bias(fields),
        "seed": _seed(fields),
        "stop": _stop(fields),
    }
    given = {name: value for name, value in options.items() if value is not None}
    for name, value in given.items():
        if name in PARAMETERS and (isinstance(value, bool) or not isinstance(value, (int, float))):
            raise fields.wrong(name, "a number", value)
    return given


def _texts(fields: Fields, name: str) -> list[str] | None:
    value = fields.take(name)
    if value is None or (isinstance(value, list) and all(isinstance(text, str) for text in value)):
        return value
    raise fields.wrong(name, "a list of strings", value)


def _seed(fields: Fields) -> int | None:
    seed = fields.whole("seed", LOWEST_SEED, HIGHEST_SEED)
    return None if seed is None else seed % 2**64


def _stop(fields: Fields) -> list[str] | None:
    value = fields.take("stop")
    stops = [value] if isinstance(value, str) else value
    if stops is None or (isinstance(stops, list) and all(isinstance(text, str) for text in stops)):
        if stops is not None and len(stops) > MAX_STOPS:
            raise invalid(f"stop has {len(stops)} strings, and at most {MAX_STOPS} are watched for", "stop")
        return stops or None
    raise fields.wrong("stop", "a string or a list of strings", value)


def _bias(fields: Fields) -> dict[int, float] | None:
    """Token ids are names of an object, which JSON has as strings alone."""
    value = fields.mapping("logit_bias")
    if value is None:
        return None
    bias = {}
    for token, number in value.items():
        if not (token.isascii() and token.isdigit() and len(token) < 10):
            raise fields.wrong("logit_bias", "an object from token ids to numbers", value)
        if isinstance(number, bool) or not isinstance(number, (int, float)):
            raise fields.wrong("logit_bias", "an object from token ids to numbers", value)
        bias[int(token)] = float(number)
    return bias
