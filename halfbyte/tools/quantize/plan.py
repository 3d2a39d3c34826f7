"""`Plan`: every tensor with the format it has and the one it gets, and the metadata of the new file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike

from ...errors import ConfigError
from ...formats import GGUFFile, GGUFWriter, Reserved, TensorInfo, Typed
from ...quant import BlockFormat
from ...quant.assign import fitting, is_output, wishes_for
from ...runtime.golden import recording
from .choices import Choices
from .facts import facts_of
from .override import format_of

UNQUANTIZED = ("f32", "f16", "bf16")
FIXED = ("f64", "i8", "i16", "i32", "i64")
"""What is stored in these is no weight."""
HUNGRY = ("iq1_s", "iq1_m", "iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs")
"""Formats of so few bits that they want to know which columns count."""

RECIPE_KEY = "halfbyte.recipe"
_QUANTIZATION_VERSION = 2
_SHOWN = 3


@dataclass(frozen=True)
class PlannedTensor:
    """One tensor of the source and the format it will have; `wish` is what it was to be if its rows divided."""

    info: TensorInfo
    target: BlockFormat
    wish: str

    @property
    def name(self) -> str:
        """Its name, which stays."""
        return self.info.name

    @property
    def changes(self) -> bool:
        """Whether it is encoded anew; else its bytes are copied."""
        return self.target is not self.info.format

    @property
    def fell_back(self) -> bool:
        """Whether its rows do not divide into the blocks of the format wanted."""
        return self.target.name != self.wish

    @property
    def n_bytes(self) -> int:
        """Size in the new file."""
        return self.target.row_bytes(self.info.columns) * self.info.rows


@dataclass(frozen=True)
class Plan:
    """What the new file will be."""

    tensors: tuple[PlannedTensor, ...]
    metadata: Mapping[str, object]
    alignment: int

    @property
    def records(self) -> bool:
        """Whether the file gets golden vectors."""
        return any(isinstance(value, Reserved) for value in self.metadata.values())

    @property
    def n_weights(self) -> int:
        """Numbers in all tensors."""
        return sum(tensor.info.n_elements for tensor in self.tensors)

    @property
    def tensor_bytes(self) -> int:
        """Size of all tensors in the new file."""
        return sum(tensor.n_bytes for tensor in self.tensors)

    @property
    def bits_per_weight(self) -> float:
        """Bits of storage a weight in the new file."""
        return 8 * self.tensor_bytes / self.n_weights if self.n_weights else 0.0

    @property
    def file_bytes(self) -> int:
        """Size of the new file, to the byte."""
        return self.writer("unwritten").file_bytes

    def writer(self, path: str | PathLike[str]) -> GGUFWriter:
        """A writer that knows all tensors; nothing is on the disk yet."""
        writer = GGUFWriter(path, self.metadata, self.alignment)
        for tensor in self.tensors:
            writer.declare(tensor.name, tensor.target, tensor.info.shape)
        return writer


def make_plan(file: GGUFFile, choices: Choices, calibration: Mapping[str, object] | None = None) -> Plan:
    """Decide on every tensor; `calibration` are metadata about an importance matrix, None for doing without.

    Raises `ConfigError` for an override that fits no tensor, and where tensors would be quantized a second time.
    """
    shapes = {name: info.shape for name, info in file.tensors.items() if info.format.name not in FIXED}
    facts = facts_of(file, calibrated=calibration is not None)
    wishes = wishes_for(choices.recipe, shapes, facts, pure=choices.pure)
    for override in choices.overrides:
        if not any(override.pattern.search(name) for name in wishes):
            text = (
                f"--type '{override}' fits no tensor that is quantized; names are like {next(iter(wishes), 'none')!r}"
            )
            raise ConfigError(text, key="type")
    tensors = []
    for name, info in file.tensors.items():
        wanted = format_of(name, choices.overrides)
        wish = wishes.get(name) if wanted is None else wanted.name
        if name not in wishes or wish is None or (choices.keep_output and is_output(name, shapes)):
            wish = info.format.name
        target = info.format if wish == info.format.name else fitting(wish, info.columns)
        tensors.append(PlannedTensor(info, target, wish))
    if not choices.allow_requantize:
        _refuse_requantizing(file, tensors)
    return Plan(tuple(tensors), _metadata(file, choices, calibration or {}), file.alignment)


def _refuse_requantizing(file: GGUFFile, tensors: list[PlannedTensor]) -> None:
    again = [each for each in tensors if each.changes and each.info.format.name not in UNQUANTIZED]
    if again:
        first = f"{again[0].name!r} first ({again[0].info.format.name})"
        raise ConfigError(
            f"{file.path}: {len(again)} tensors are quantized already, {first}; "
            "a second loss adds to the first: take the f16 or bf16 file, or allow it (--allow-requantize)",
            key="allow_requantize",
        )


def _metadata(file: GGUFFile, choices: Choices, calibration: Mapping[str, object]) -> dict[str, object]:
    """That of the source, how the file was made, and room for golden vectors of its own.

    The keys of a split model would be wrong for one file, golden vectors of the source for other weights.
    """
    dropped = ("split.no", "split.count", "split.tensors.count", "general.alignment")
    kept = {
        key: Typed(value, file.types[key])
        for key, value in recording.without(file.metadata).items()
        if key not in dropped and not key.startswith("quantize.imatrix.")
    }
    return kept | {
        "general.quantization_version": Typed(_QUANTIZATION_VERSION, "u32"),
        "general.file_type": Typed(choices.recipe.file_type, "u32"),
        RECIPE_KEY: choices.spelt(),
        **calibration,
        **(recording.room(len(file.tensors)) if recording.runs(file) else {}),
    }
