"""`PeftConfig`: what `adapter_config.json` says, and whether it says no more than that pairs A, B are added."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import FormatError, UnsupportedError
from .json_file import read_json

NAME = "adapter_config.json"
_INITS = (True, False, "gaussian", "eva", "orthogonal")
"""Ways to begin that leave the base model's weights as they are."""
_REFUSED: dict[str, Callable[[Any], bool]] = {
    "use_dora": bool,
    "use_qalora": bool,
    "use_bdlora": bool,
    "lora_bias": bool,
    "fan_in_fan_out": bool,
    "modules_to_save": bool,
    "trainable_token_indices": bool,
    "target_parameters": bool,
    "layer_replication": bool,
    "alora_invocation_tokens": bool,
    "arrow_config": bool,
    "monteclora_config": bool,
    "kasa_config": bool,
    "bias": lambda value: value not in (None, "none"),
    "init_lora_weights": lambda value: value is not None and value not in _INITS,
}
"""Keys that ask for more than pairs when their value does."""


class PeftConfig:
    """Raises `FormatError` for a damaged file, `UnsupportedError` naming all that we do not do."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._values = values = read_json(self.path)
        kind = values.get("peft_type")
        if kind != "LORA":
            raise UnsupportedError(f"{self.path}: peft_type is {kind!r}", known=["LORA"])
        refused = [f"{key}={values[key]!r:.60}" for key, asks in _REFUSED.items() if asks(values.get(key))]
        if refused:
            raise UnsupportedError(
                f"{self.path}: only plain LoRA is supported, and it says {', '.join(refused)}; merge it with PEFT"
            )
        self.rank_stabilized = bool(values.get("use_rslora"))
        self.alpha = self._number("lora_alpha", values.get("lora_alpha", 8))
        self._alphas = dict(self._patterns("alpha_pattern"))

    @property
    def base(self) -> str | None:
        """The base model by name or path."""
        value = self._values.get("base_model_name_or_path")
        return value if isinstance(value, str) and value else None

    def scaling(self, module: str, rank: int) -> float:
        """What B @ A is multiplied by in a module of a rank."""
        alpha = next((alpha for pattern, alpha in self._alphas.items() if pattern.fullmatch(module)), self.alpha)
        return alpha / (math.sqrt(rank) if self.rank_stabilized else rank)

    def _patterns(self, key: str) -> Iterator[tuple[re.Pattern[str], float]]:
        """A key is a regular expression for the end of a module's name."""
        given = self._values.get(key) or {}
        if not isinstance(given, Mapping):
            raise FormatError(f"{key} wants an object, not {given!r:.60}", path=self.path)
        for pattern, value in given.items():
            try:
                compiled = re.compile(rf"(.*\.)?({pattern})")
            except (re.error, RecursionError) as error:
                raise FormatError(f"{key}: {pattern!r} is no regular expression ({error})", path=self.path) from error
            yield compiled, self._number(f"{key}[{pattern!r}]", value)

    def _number(self, key: str, value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise FormatError(f"{key} is {value!r:.60}, not a finite number", path=self.path)
        return float(value)
