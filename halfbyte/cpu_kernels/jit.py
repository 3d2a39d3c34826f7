"""The one place that calls numba, and so owns every compiler option.

`helper` marks what kernels are made of, `compile_kernel` turns a kernel into object code. Options and reasons:
`error_model="numpy"` drops the branch for a zero divisor, `boundscheck` means nothing to address arithmetic,
`forceinline` because a helper's vectors must stay in registers, and never `fastmath`: the order of a sum is a promise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import types
from numba.extending import intrinsic

helper = numba.njit(error_model="numpy", boundscheck=False, nogil=True, no_cpython_wrapper=True, forceinline=True)

_options = {"error_model": "numpy", "boundscheck": False, "nogil": True, "no_cpython_wrapper": True}
routine = numba.njit(**_options, forceinline=False)
"""Like `helper`, but called, as long as its first statement is `apart()`: for what is large and used in many places."""


def _apart(typingctx: Any) -> Any:
    """Keep LLVM from copying this function into its callers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


apart = intrinsic(_apart)

_SIGNATURE = types.void(types.int64, types.int64, types.int64, types.int64)


def compile_kernel(kernel: Callable[..., Any]) -> tuple[str, bytes, str]:
    """Symbol name, object code and assembly of `kernel(instr, state, tid, nth)` for numba's target CPU."""
    compiled = numba.cfunc(_SIGNATURE, error_model="numpy", boundscheck=False)(kernel)
    library = compiled._library
    return compiled._wrapper_name, library._get_compiled_object(), library.get_asm_str()
