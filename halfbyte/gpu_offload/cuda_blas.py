"""Products of halves by cuBLAS, called by ctypes: CuPy would set its current stream, and with it drop our workspace."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from ..errors import ConfigError
from .cuda_card import EXTRAS
from .cuda_driver import CudaError
from .device import Product

WORKSPACE_BYTES = 32 << 20  # what cuBLAS asks for on the largest cards
TRANSPOSED, PLAIN = 1, 0
HALF, FLOAT, COMPUTE_FLOAT = 2, 0, 68
BEST_ALGORITHM = -1


def find_cublas(cuda_major: int) -> Any:
    """The library that CuPy has loaded; raises `ConfigError`."""
    name = f"cublas64_{cuda_major}.dll" if sys.platform == "win32" else f"libcublas.so.{cuda_major}"
    try:
        return ctypes.CDLL(name)
    except OSError as error:
        raise ConfigError(f"cuBLAS of CUDA {cuda_major} does not load ({error}); {EXTRAS}", key="gpu_layers") from error


class Blas:
    """A handle of cuBLAS for one stream, with a workspace of ours, so that it allocates nothing while it runs."""

    def __init__(self, library: Any, stream: int, workspace: int) -> None:
        self._library = library
        self._handle = ctypes.c_void_p()
        self._one, self._zero = ctypes.c_float(1), ctypes.c_float(0)
        self._call("cublasCreate_v2", ctypes.byref(self._handle))
        self._call("cublasSetStream_v2", self._handle, ctypes.c_void_p(stream))
        self._call("cublasSetWorkspace_v2", self._handle, ctypes.c_void_p(workspace), ctypes.c_size_t(WORKSPACE_BYTES))

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise CudaError(name, 999, f"cuBLAS status {code}")

    def multiply(self, product: Product) -> None:
        """Enqueue a product."""
        # A matrix of rows is, read by columns as cuBLAS does, its transpose: asked for is out^T = weight . x^T.
        rows, tokens, columns = product.rows, product.tokens, product.columns

        def matrix(address: int, kind: int, stride: int) -> tuple[Any, ...]:
            return ctypes.c_void_p(address), ctypes.c_int(kind), ctypes.c_int(stride)

        sizes = [ctypes.c_int(n) for n in (TRANSPOSED, PLAIN, rows, tokens, columns)]
        weight, x = matrix(product.weight, HALF, columns), matrix(product.x, HALF, columns)
        one, zero = ctypes.byref(self._one), ctypes.byref(self._zero)
        how = ctypes.c_int(COMPUTE_FLOAT), ctypes.c_int(BEST_ALGORITHM)
        out = matrix(product.out, FLOAT, rows)
        self._call("cublasGemmEx", self._handle, *sizes, one, *weight, *x, zero, *out, *how)

    def close(self) -> None:
        """Let go of the handle."""
        self._library.cublasDestroy_v2(self._handle)
