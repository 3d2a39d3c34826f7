"""`PeftAdapter`: a PEFT folder as pairs A, B for weights of its base checkpoint."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...errors import ConfigError, FormatError, UnsupportedError
from .peft_config import PeftConfig
from .safetensors_file import SafetensorsFile
from .tensor_source import SourceTensor, TensorSource
from .torch_file import TorchFile
from .values import FLOATS, Floats, as_floats, check_is_weight

_FILES: dict[str, Callable[[Path], TensorSource]] = {
    "adapter_model.safetensors": SafetensorsFile,
    "adapter_model.bin": TorchFile,
}
_NAME = re.compile(r"(?:base_model\.model\.)?(?P<module>.+)\.lora_(?P<half>[AB])(?:\.\w+)?\.weight")
_COPY = re.compile(r"(?:base_model\.model\.)?(?P<module>(?:.+\.)?(?:lm_head|embed_tokens))(?:\.base_layer)?\.weight")
_EMBEDDING = re.compile(r".*\.lora_embedding_[AB](\.\w+)?")
_SHOWN = 8
_ROWS = 1024


@dataclass(frozen=True)
class Pair:
    """For a weight [N, M] of the base: `scaling * b @ a`, a f32[r, M], b f32[N, r]."""

    weight: str
    a: Floats
    b: Floats
    scaling: float


class PeftAdapter:
    """`pairs` by the name of the base's weight.

    Raises `ConfigError` for no such folder, `FormatError` for damage, `UnsupportedError` for what is not plain LoRA.
    """

    def __init__(self, folder: Path) -> None:
        if not folder.is_dir():
            raise ConfigError(
                f"{folder}: no such folder; a PEFT adapter is one with adapter_config.json", key="adapter"
            )
        self.folder = folder
        self.config = PeftConfig(folder)
        self._tensors = self._source()
        self._copies: dict[str, str] = {}
        self.pairs = {pair.weight: pair for pair in self._read(self._tensors)}

    def check_copies(self, base: Callable[[], TensorSource]) -> None:
        """Raise `UnsupportedError` where embeddings or a head saved along are others than those of `base()`.

        PEFT saves them with an adapter of the head, and where the vocabulary has grown.
        """
        others = [] if not self._copies else [name for name in self._copies if not self._is_copy(name, base())]
        if others:
            raise UnsupportedError(
                f"{self.folder}: beside pairs it has weights other than the base model's: {_listed(others)}"
            )

    def _is_copy(self, name: str, base: TensorSource) -> bool:
        ours, theirs = self._tensors.tensors[name], base.tensors.get(self._copies[name])
        if theirs is None or theirs.shape != ours.shape or theirs.dtype not in FLOATS or ours.dtype not in FLOATS:
            return False
        for start in range(0, ours.shape[0], _ROWS):
            # One of the two may be in halves.
            rows = (start, min(start + _ROWS, ours.shape[0]))
            own = as_floats(self._tensors.read(ours.name, *rows), ours.dtype)
            if not np.allclose(own, as_floats(base.read(theirs.name, *rows), theirs.dtype), rtol=2**-7, atol=1e-7):
                return False
        return True

    def _source(self) -> TensorSource:
        for name, reader in _FILES.items():
            if (self.folder / name).exists():
                return reader(self.folder / name)
        raise FormatError(f"has neither {' nor '.join(_FILES)}: where are the weights?", path=self.folder)

    def _read(self, source: TensorSource) -> Iterator[Pair]:
        path = next(iter(source.tensors.values())).path if source.tensors else self.folder
        modules = self._modules(source, path)
        for module, halves in modules.items():
            if set(halves) != {"A", "B"}:
                raise FormatError(f"{module} has no lora_{'B' if 'A' in halves else 'A'}: fetch it again", path=path)
            yield self._pair(module, source, halves["A"], halves["B"])

    def _modules(self, source: TensorSource, path: Path) -> dict[str, dict[str, SourceTensor]]:
        """The tensors of each module; all others are named."""
        embeddings = [name for name in source.tensors if _EMBEDDING.fullmatch(name)]
        if embeddings:
            raise UnsupportedError(f"{path}: it changes embeddings, {_listed(embeddings)}; train one without")
        modules: dict[str, dict[str, SourceTensor]] = {}
        others = []
        for name, tensor in source.tensors.items():
            match, copy = _NAME.fullmatch(name), _COPY.fullmatch(name)
            if copy is not None:
                self._copies[name] = f"{copy['module']}.weight"
            elif match is None or match["half"] in modules.setdefault(match["module"], {}):
                others.append(name)
            else:
                modules[match["module"]][match["half"]] = tensor
        if others:
            raise FormatError(
                f"{len(others)} tensors are no lora_A or lora_B of one adapter: {_listed(others)}", path=path
            )
        if not modules:
            raise FormatError("it has no tensors", path=path)
        return modules

    def _pair(self, module: str, source: TensorSource, a: SourceTensor, b: SourceTensor) -> Pair:
        for tensor in (a, b):
            check_is_weight(tensor)
        if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[1] or not a.shape[0]:
            raise FormatError(
                f"{module}: lora_A {list(a.shape)} and lora_B {list(b.shape)} are not [r, M] and [N, r]", path=a.path
            )
        values = [as_floats(source.read(tensor.name), tensor.dtype) for tensor in (a, b)]
        if not all(np.isfinite(each).all() for each in values):
            raise FormatError(f"{module} holds numbers that are not finite", path=a.path)
        scaling = self.config.scaling(module, a.shape[0])
        return Pair(f"{module}.weight", values[0], values[1], scaling)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
