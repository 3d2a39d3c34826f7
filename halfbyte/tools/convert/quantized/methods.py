"""`METHODS`: how weights may be quantized, by the `quant_method` of a config."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ....model.checkpoint_config import CheckpointConfig
from ....registry import Registry
from .stored import Stored
from .weight import QuantizedWeight

Method = Callable[[Stored, CheckpointConfig], Sequence[QuantizedWeight]]
"""Finds the weights of a checkpoint by its tensors and the settings in its config, which it has checked."""

METHODS: Registry[Method] = Registry(
    "quantization method",
    "halfbyte.tools.convert.quantized",
    {
        "fp8": ".fp8:weights",
        "fbgemm_fp8": ".fp8:weights",
        "modelopt": ".modelopt:weights",
        "gptq": ".gptq:weights",
        "awq": ".awq:weights",
        "auto-round": ".auto_round:weights",
        "intel/auto-round": ".auto_round:weights",
        "compressed-tensors": ".compressed_tensors:weights",
        "mxfp4": ".mxfp4:weights",
    },
)
