"""Checkpoints whose weights are quantized already, as sources of plain tensors."""

from .plain_source import plain_source

__all__ = ["plain_source"]
