"""Where the bytes are: GGUF files, read and written."""

from .gguf_file import GGUFFile, open_gguf
from .string_array import StringArray
from .tensor_info import TensorInfo
from .value_type import Reserved, Typed
from .writer import GGUFWriter

__all__ = ["GGUFFile", "GGUFWriter", "Reserved", "StringArray", "TensorInfo", "Typed", "open_gguf"]
