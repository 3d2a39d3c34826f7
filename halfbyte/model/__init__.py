"""What is computed: a file's metadata becomes a spec, the spec a program over its weights."""

from .bind import BoundModel, bind

__all__ = ["BoundModel", "bind"]
