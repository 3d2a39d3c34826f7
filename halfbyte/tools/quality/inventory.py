"""`Inventory`: what a file holds, and in which formats."""

from __future__ import annotations

from dataclasses import dataclass

from ...formats import GGUFFile


@dataclass(frozen=True)
class Share:
    """Part of a file that has one format."""

    tensors: int = 0
    weights: int = 0
    bytes: int = 0

    def __add__(self, other: Share) -> Share:
        return Share(self.tensors + other.tensors, self.weights + other.weights, self.bytes + other.bytes)


@dataclass(frozen=True)
class Inventory:
    """`file_bytes` counts all parts with their metadata; `formats` starts with the one that takes most bytes."""

    path: str
    file_bytes: int
    formats: dict[str, Share]
    architecture: str | None
    context_length: int | None
    vocabulary: int | None

    @property
    def total(self) -> Share:
        """All tensors together."""
        return sum(self.formats.values(), Share())

    @property
    def bits_per_weight(self) -> float:
        """Bits of storage a weight over all tensors."""
        return 8 * self.total.bytes / self.total.weights if self.total.weights else 0.0


def take_inventory(file: GGUFFile) -> Inventory:
    """Count what a file holds; its architecture need not be known."""
    formats: dict[str, Share] = {}
    for info in file.tensors.values():
        name = info.format.name
        formats[name] = formats.get(name, Share()) + Share(1, info.n_elements, info.n_bytes)
    architecture = file.metadata.get("general.architecture")
    context = file.metadata.get(f"{architecture}.context_length")
    tokens = file.metadata.get("tokenizer.ggml.tokens")
    return Inventory(
        path=str(file.path),
        file_bytes=sum(part.stat().st_size for part in file.parts),
        formats=dict(sorted(formats.items(), key=lambda item: -item[1].bytes)),
        architecture=architecture if isinstance(architecture, str) else None,
        context_length=context if isinstance(context, int) else None,
        vocabulary=len(tokens) if hasattr(tokens, "__len__") else None,
    )
