"""Where does a model file come from? A path, a short name, packages of a Python index, or a Hugging Face repository."""

from .entry import Progress
from .folder import cache_folder
from .names import NAMES, NamedModel
from .resolve import resolve, verify

__all__ = ["NAMES", "NamedModel", "Progress", "cache_folder", "resolve", "verify"]
