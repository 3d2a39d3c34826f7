"""What the bytes of a block mean: one file a format."""

from .block import BlockFormat, Planes
from .formats import FORMATS, by_id

__all__ = ["FORMATS", "BlockFormat", "Planes", "by_id"]
