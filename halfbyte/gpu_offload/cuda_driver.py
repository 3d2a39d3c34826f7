"""CUDA's driver by ctypes: contexts, launches that overlap, graphs and copies."""

from __future__ import annotations

import ctypes
import sys
from typing import Any


class CudaError(Exception):
    """A call that CUDA refused. Never leaves this folder."""

    def __init__(self, call: str, code: int, name: str) -> None:
        self.code = code
        super().__init__(f"{call}: {name} ({code})")


OUT_OF_MEMORY = 2
OUR_MISTAKES = {1, 209, 400, 500, 701, *range(900, 909)}
"""Codes of wrong arguments, not of a lost card: values, images, handles, names, resources, what is captured."""

# Attributes of cards and functions, flags and modes, by their numbers in cuda.h.
MULTIPROCESSORS, MAJOR, MINOR, SHARED_BYTES = 16, 75, 76, 97
FUNCTION_SHARED_BYTES = 8
NON_BLOCKING = 1
CAPTURE_RELAXED = 2
SERIALIZATION = 6


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute with a whole number for a value; the union it stands in has 64 bytes."""

    _fields_ = (
        ("id", ctypes.c_uint),
        ("padding", ctypes.c_uint),
        ("value", ctypes.c_int),
        ("rest", ctypes.c_byte * 60),
    )


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(LaunchAttribute)),
        ("n_attributes", ctypes.c_uint),
    )


_P, _I, _U, _N, _A = ctypes.c_void_p, ctypes.c_int, ctypes.c_uint, ctypes.c_size_t, ctypes.c_uint64

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (_U,),
    "cuDriverGetVersion": (_P,),
    "cuDeviceGetCount": (_P,),
    "cuDeviceGet": (_P, _I),
    "cuDeviceGetName": (_P, _I, _I),
    "cuDeviceGetAttribute": (_P, _I, _I),
    "cuDevicePrimaryCtxRetain": (_P, _I),
    "cuDevicePrimaryCtxRelease_v2": (_I,),
    "cuCtxPushCurrent_v2": (_P,),
    "cuCtxPopCurrent_v2": (_P,),
    "cuMemGetInfo_v2": (_P, _P),
    "cuMemHostAlloc": (_P, _N, _U),
    "cuMemFreeHost": (_P,),
    "cuMemcpyHtoDAsync_v2": (_A, _P, _N, _P),
    "cuMemcpyDtoHAsync_v2": (_P, _A, _N, _P),
    "cuMemcpyDtoDAsync_v2": (_A, _A, _N, _P),
    "cuStreamCreate": (_P, _U),
    "cuStreamDestroy_v2": (_P,),
    "cuStreamSynchronize": (_P,),
    "cuStreamBeginCapture_v2": (_P, _I),
    "cuStreamEndCapture": (_P, _P),
    "cuGraphInstantiateWithFlags": (_P, _P, ctypes.c_ulonglong),
    "cuGraphDestroy": (_P,),
    "cuGraphExecDestroy": (_P,),
    "cuGraphUpload": (_P, _P),
    "cuGraphLaunch": (_P, _P),
    "cuModuleLoadData": (_P, _P),
    "cuModuleUnload": (_P,),
    "cuModuleGetFunction": (_P, _P, ctypes.c_char_p),
    "cuFuncSetAttribute": (_P, _I, _I),
    "cuLaunchKernelEx": (_P, _P, _P, _P),
}


class Driver:
    """The driver's library."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._functions: dict[str, Any] = {}

    def call(self, name: str, *arguments: Any) -> None:
        """One call; raises `CudaError`."""
        function = self._functions.get(name)
        if function is None:
            function = self._functions[name] = getattr(self._library, name)
            function.argtypes, function.restype = SIGNATURES[name], ctypes.c_int
        code = function(*arguments)
        if code:
            raise CudaError(name, code, self._name_of(code))

    def whole(self, name: str, *arguments: Any) -> int:
        """What a call gives that writes a C int to its first argument."""
        value = ctypes.c_int()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value

    def handle(self, name: str, *arguments: Any) -> int:
        """What a call gives that writes a pointer to its first argument."""
        value = ctypes.c_void_p()
        self.call(name, ctypes.byref(value), *arguments)
        return value.value or 0

    def handle_last(self, name: str, *arguments: Any) -> int:
        """What a call gives that writes a pointer to its last argument."""
        value = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(value))
        return value.value or 0

    def _name_of(self, code: int) -> str:
        text = ctypes.c_char_p()
        self._library.cuGetErrorName(ctypes.c_int(code), ctypes.byref(text))
        return (text.value or b"unknown error").decode()


def find_driver() -> Driver | None:
    """The driver, where there is one."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        return Driver(ctypes.CDLL(name))
    except OSError:
        return None
