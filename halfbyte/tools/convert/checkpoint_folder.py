"""`CheckpointFolder`: the files of a Hugging Face checkpoint, looked at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...errors import ConfigError, FormatError, UnsupportedError
from ...model.checkpoint_config import CheckpointConfig
from .joined_source import JoinedSource
from .json_file import read_json
from .safetensors_file import SafetensorsFile
from .tensor_source import TensorSource
from .torch_file import TorchFile

_SHARD = re.compile(r"(?P<stem>.+)-(?P<no>\d{5})-of-(?P<count>\d{5})(?P<suffix>\.\w+)")
_SHOWN = 8
_KINDS: tuple[tuple[str, str, Callable[[Path], TensorSource]], ...] = (
    ("model", ".safetensors", SafetensorsFile),
    ("pytorch_model", ".bin", TorchFile),
)
"""Stem and suffix of the files with weights, and who reads them; the first that is there counts."""


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds a PEFT adapter instead of a model."""
    return (folder / "adapter_config.json").is_file()


class CheckpointFolder:
    """`config` is what `config.json` says. Raises `ConfigError` where there is no such folder."""

    def __init__(self, path: Path) -> None:
        if not path.is_dir():
            what = "is a file; name the folder it lies in" if path.exists() else "does not exist"
            raise ConfigError(f"{path}: {what}. A checkpoint is a folder with config.json and weights", key="source")
        self.path = path
        self.config = CheckpointConfig(read_json(path / "config.json"), path / "config.json")

    @property
    def class_name(self) -> str:
        """Of the model, as `config.json` has it; raises `FormatError` for none."""
        names = self.config.texts("architectures")
        self.config.raise_problems()
        if not names:
            raise FormatError('has no "architectures", so it does not say what model this is', path=self.config.path)
        return names[0]

    def generation_config(self) -> dict[str, Any]:
        """What `generation_config.json` says, nothing where there is none."""
        path = self.path / "generation_config.json"
        return read_json(path) if path.exists() or path.is_symlink() else {}

    def tensors(self) -> TensorSource:
        """All weights. Raises `FormatError` naming every file that is missing or not sound."""
        for stem, suffix, reader in _KINDS:
            paths = self._files(stem, suffix)
            if paths:
                return JoinedSource([reader(path) for path in paths])
        if list(self.path.glob("*.gguf")):
            raise UnsupportedError(f"{self.path}: holds GGUF files, which need no conversion; see `halfbyte quantize`")
        wanted = " nor ".join(f"{stem}{suffix}" for stem, suffix, _ in _KINDS)
        raise FormatError(f"has neither {wanted}: where are the weights?", path=self.path)

    def _files(self, stem: str, suffix: str) -> list[Path]:
        index = self.path / f"{stem}{suffix}.index.json"
        single = self.path / f"{stem}{suffix}"
        if index.exists():
            return self._indexed(index)
        if single.exists():
            return [single]
        found = [path for path in sorted(self.path.glob(f"{stem}-*{suffix}")) if _SHARD.fullmatch(path.name)]
        if found:
            self._refuse_gaps(found)
        return found

    def _indexed(self, index: Path) -> list[Path]:
        places = read_json(index).get("weight_map")
        if not isinstance(places, dict) or not all(isinstance(name, str) for name in places.values()) or not places:
            raise FormatError('has no "weight_map" of tensors to files', path=index)
        names = sorted(set(places.values()))
        outside = [name for name in names if Path(name).name != name]
        if outside:
            raise FormatError(f"names files outside its folder: {', '.join(outside[:_SHOWN])}", path=index)
        missing = [name for name in names if not (self.path / name).is_file()]
        if missing:
            raise FormatError(f"names files that are missing: {_listed(missing)}. Fetch them", path=index)
        return [self.path / name for name in names]

    def _refuse_gaps(self, found: list[Path]) -> None:
        match = _SHARD.fullmatch(found[0].name)
        assert match is not None, "only shards were listed"
        count = int(match["count"])
        names = [f"{match['stem']}-{no:05d}-of-{count:05d}{match['suffix']}" for no in range(1, count + 1)]
        missing = sorted(set(names) - {path.name for path in found})
        if missing:
            raise FormatError(f"shards are missing: {_listed(missing)}. Fetch them", path=self.path)

    def check_index(self, source: TensorSource) -> None:
        """Raise `FormatError` where the index promises tensors that the files do not hold."""
        for stem, suffix, _ in _KINDS:
            index = self.path / f"{stem}{suffix}.index.json"
            if not index.exists():
                continue
            places = read_json(index)["weight_map"]
            astray = [
                name
                for name, file in places.items()
                if name not in source.tensors or source.tensors[name].path.name != file
            ]
            if astray:
                raise FormatError(f"{len(astray)} tensors are not where it says: {_listed(astray)}", path=index)
            return


def _listed(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
