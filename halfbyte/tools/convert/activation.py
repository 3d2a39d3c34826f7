"""`check_activation`: whether the activation that a config names is the one that the file will compute."""

from __future__ import annotations

from ...errors import UnsupportedError
from ...model.checkpoint_config import CheckpointConfig
from ...model.program import Act, GatedAct, Program

_KEYS = ("hidden_activation", "hidden_act", "activation_function")
_NAMES: dict[str, tuple[str, ...]] = {
    "silu": ("silu", "swiglu_oai"),
    "swish": ("silu",),
    "swiglu": ("silu",),
    "gelu": ("gelu",),
    "gelu_pytorch_tanh": ("gelu_tanh",),
    "gelu_new": ("gelu_tanh",),
    "gelu_fast": ("gelu_tanh",),
    "relu": ("relu",),
}
"""A name in a config to what ops call it; gpt-oss has more of its gate in its code than in its config."""


def check_activation(program: Program, config: CheckpointConfig) -> None:
    """Raises `UnsupportedError` where it is another one, `FormatError` where it is no name."""
    key = next((key for key in _KEYS if config.has(key)), None)
    if key is None:
        return
    name = config.text(key, "")
    config.raise_problems()
    computed = {op.act for op in program.ops if isinstance(op, Act | GatedAct)}
    if not computed <= set(_NAMES.get(name, ())):
        known = [name for name, kinds in _NAMES.items() if computed <= set(kinds)]
        raise UnsupportedError(
            f"{config.path}: {key} is {name!r}, which this architecture is not computed with here", known=known
        )
