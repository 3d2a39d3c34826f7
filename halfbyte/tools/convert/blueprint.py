"""`Blueprint`: a planned file as `bind` sees files, so that misfits show before gigabytes are written."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...formats import GGUFFile, Reserved, TensorInfo, Typed
from ...model.archs import ARCHS
from ...model.metadata import Metadata
from ...model.program import Program
from ...model.weights import check_weights
from ...quant import FORMATS
from .plan import ConversionPlan


class Blueprint:
    """Has of a `GGUFFile` what reading a spec and comparing tensors take: no weights."""

    def __init__(self, plan: ConversionPlan, path: Path) -> None:
        self.path = path
        self.metadata = {key: _plain(value) for key, value in plan.metadata.items() if not isinstance(value, Reserved)}
        self._computed = plan.computed
        shapes = {tensor.name: (tensor.format, tensor.shape.dims[::-1]) for tensor in plan.tensors}
        shapes |= {name: (FORMATS["f32"], values.shape[::-1]) for name, values in plan.computed.items()}
        self.tensors = {
            name: TensorInfo(name, format, shape, 0, format.row_bytes(shape[0]) * math.prod(shape[1:]))
            for name, (format, shape) in shapes.items()
        }

    def tensor_data(self, name: str) -> NDArray[np.uint8]:
        """Of a computed tensor."""
        return np.ascontiguousarray(self._computed[name]).view(np.uint8).reshape(1, -1)


def check_fit(plan: ConversionPlan, path: Path) -> Program:
    """What the file will compute. Raises what `bind` does, in the name of `path`."""
    file = cast("GGUFFile", Blueprint(plan, path))
    name = str(file.metadata["general.architecture"])
    arch, metadata = ARCHS[name], Metadata(file.metadata, name, path)
    spec = arch.read(file, metadata)
    metadata.raise_problems()
    program = arch.build(spec, file.tensors)
    check_weights(file, program, arch.factors)
    return program


def _plain(value: object) -> Any:
    """As a reader gives it: lists of numbers are arrays."""
    value = value.value if isinstance(value, Typed) else value
    if isinstance(value, list | tuple) and value and not isinstance(value[0], str):
        return np.asarray(value)
    return value
