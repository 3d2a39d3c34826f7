"""`as_floats`: what a checkpoint stores, as float32."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import FormatError
from ...quant import FORMATS
from .tensor_source import SourceTensor

Floats = NDArray[np.float32]
FLOATS = ("F32", "F16", "BF16", "F64", "MXFP4")


def check_is_weight(tensor: SourceTensor) -> None:
    """Raise `FormatError` for what stores no weights."""
    if tensor.dtype not in FLOATS:
        raise FormatError(
            f"tensor {tensor.name!r} is of type {tensor.dtype}, a weight must be one of {', '.join(FLOATS)}; "
            "a quantized checkpoint says how in its config's quantization_config",
            path=tensor.path,
        )


def as_floats(data: NDArray[Any], dtype: str) -> Floats:
    """f32 of the same shape; of MXFP4 blocks of the shape that they stand for."""
    if dtype == "BF16":
        return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if dtype == "MXFP4":
        format = FORMATS["mxfp4"]
        columns = data.shape[-1] // format.block_bytes * format.block_len
        return format.decode(data.reshape(-1)).reshape(*data.shape[:-1], columns)
    with np.errstate(over="ignore"):  # beyond float32 is refused where it is looked at
        return data.astype(np.float32, copy=False)
