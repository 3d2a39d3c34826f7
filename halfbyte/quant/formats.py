"""`FORMATS`: every tensor type by name, and `by_id` for the number a GGUF file holds."""

from __future__ import annotations

from ..errors import UnsupportedError
from ..registry import Registry
from .block import BlockFormat

FORMATS: Registry[BlockFormat] = Registry(
    "block format",
    "halfbyte.quant",
    {
        "f32": ".f32:F32",
        "f16": ".f16:F16",
        "bf16": ".bf16:BF16",
        "f64": ".f64:F64",
        "i8": ".integers:I8",
        "i16": ".integers:I16",
        "i32": ".integers:I32",
        "i64": ".integers:I64",
        "q4_0": ".q4_0:Q4_0",
        "q4_1": ".q4_1:Q4_1",
        "q5_0": ".q5_0:Q5_0",
        "q5_1": ".q5_1:Q5_1",
        "q8_0": ".q8_0:Q8_0",
        "q2_k": ".q2_k:Q2_K",
        "q3_k": ".q3_k:Q3_K",
        "q4_k": ".q4_k:Q4_K",
        "q5_k": ".q5_k:Q5_K",
        "q6_k": ".q6_k:Q6_K",
        "iq1_s": ".iq1_s:IQ1_S",
        "iq1_m": ".iq1_m:IQ1_M",
        "iq2_xxs": ".iq2_xxs:IQ2_XXS",
        "iq2_xs": ".iq2_xs:IQ2_XS",
        "iq2_s": ".iq2_s:IQ2_S",
        "iq3_xxs": ".iq3_xxs:IQ3_XXS",
        "iq3_s": ".iq3_s:IQ3_S",
        "iq4_nl": ".iq4_nl:IQ4_NL",
        "iq4_xs": ".iq4_xs:IQ4_XS",
        "tq1_0": ".tq1_0:TQ1_0",
        "tq2_0": ".tq2_0:TQ2_0",
        "mxfp4": ".mxfp4:MXFP4",
        "nvfp4": ".nvfp4:NVFP4",
        "q1_0": ".q1_0:Q1_0",
    },
)

IDS: dict[int, str] = {
    0: "f32",
    1: "f16",
    2: "q4_0",
    3: "q4_1",
    6: "q5_0",
    7: "q5_1",
    8: "q8_0",
    10: "q2_k",
    11: "q3_k",
    12: "q4_k",
    13: "q5_k",
    14: "q6_k",
    16: "iq2_xxs",
    17: "iq2_xs",
    18: "iq3_xxs",
    19: "iq1_s",
    20: "iq4_nl",
    21: "iq3_s",
    22: "iq2_s",
    23: "iq4_xs",
    24: "i8",
    25: "i16",
    26: "i32",
    27: "i64",
    28: "f64",
    29: "iq1_m",
    30: "bf16",
    34: "tq1_0",
    35: "tq2_0",
    39: "mxfp4",
    40: "nvfp4",
    41: "q1_0",
}

ACTIVATIONS: dict[int, str] = {9: "q8_1", 15: "q8_k"}
"""Formats ggml keeps for intermediate results; no weight is stored in them."""

REMOVED: dict[int, str] = {
    4: "q4_2",
    5: "q4_3",
    31: "q4_0_4_4",
    32: "q4_0_4_8",
    33: "q4_0_8_8",
    36: "iq4_nl_4_4",
    37: "iq4_nl_4_8",
    38: "iq4_nl_8_8",
}
"""Numbers that ggml once used and never gives out again."""


def by_id(ggml_id: int) -> BlockFormat:
    """The format a GGUF file means by `ggml_id`; raises `UnsupportedError` naming the known ones."""
    if ggml_id in IDS:
        return FORMATS[IDS[ggml_id]]
    what = f"tensor type {ggml_id}"
    if ggml_id in REMOVED:
        what += f" ({REMOVED[ggml_id]}) was removed from ggml; fetch the model in, or convert it to, a present format"
    elif ggml_id in ACTIVATIONS:
        what += f" ({ACTIVATIONS[ggml_id]}) is for intermediate results and holds no weights; quantize the model again"
    else:
        what += " is unknown; the file is damaged or newer than this version"
    raise UnsupportedError(what, known=(f"{name} ({number})" for number, name in IDS.items()))
