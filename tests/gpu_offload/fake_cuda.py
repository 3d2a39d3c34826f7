"""A driver and a CuPy that note what they are asked, for tests of what happens around a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from halfbyte.gpu_offload.cuda_driver import Driver, LaunchConfig

ATTRIBUTES = {16: 132, 75: 9, 76: 0, 97: 232448}


class FakeLibrary:
    """libcuda: every function says yes, but those in `codes`."""

    def __init__(self, *, cards: int = 1, version: int = 13020, codes: dict[str, int] | None = None) -> None:
        self.codes = codes or {}
        self.calls: list[str] = []
        self.contexts: list[int] = []
        self.launches: list[dict[str, Any]] = []
        self.attributes = dict(ATTRIBUTES)
        self.next_handle = 0x1000
        self.special: dict[str, Callable[..., None]] = {
            "cuDriverGetVersion": lambda value: self.write(value, version),
            "cuDeviceGetCount": lambda value: self.write(value, cards),
            "cuDeviceGet": self.write,
            "cuDeviceGetAttribute": lambda value, number, device: self.write(value, self.attributes[number]),
            "cuDeviceGetName": lambda name, size, device: setattr(name, "value", b"Fake 9000"),
            "cuGetErrorName": lambda code, text: self.write(text, b"CUDA_ERROR_FAKE"),
            "cuCtxPushCurrent_v2": self.contexts.append,
            "cuCtxPopCurrent_v2": lambda old: self.contexts.pop(),
            "cuLaunchKernelEx": self.note_launch,
            "cuMemGetInfo_v2": lambda free, total: self.write(free, 1000),
            "cuFuncSetAttribute": lambda function, number, value: None,
        }

    @staticmethod
    def write(reference: Any, value: Any) -> None:
        reference._obj.value = value

    def note_launch(self, config: Any, function: int, places: Any, extra: None) -> None:
        told: LaunchConfig = config._obj
        words = [ctypes.c_uint64.from_address(place).value for place in places if place]
        self.launches.append(
            {
                "grid": tuple(told.grid),
                "block": tuple(told.block),
                "shared": told.shared_bytes,
                "overlap": [(told.attributes[i].id, told.attributes[i].value) for i in range(told.n_attributes)],
                "words": words,
            }
        )

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            if self.codes.get(name):
                return self.codes[name]
            if name in self.special:
                self.special[name](*arguments)
            elif name in ("cuStreamEndCapture",):
                self.write(arguments[-1], self.new_handle())
            elif hasattr(arguments[0], "_obj"):
                self.write(arguments[0], self.new_handle())
            return 0

        function = type(name, (), {"__call__": lambda _, *arguments: call(*arguments)})()
        setattr(self, name, function)
        return function

    def new_handle(self) -> int:
        self.next_handle += 0x1000
        return self.next_handle


class FakeError(Exception):
    status = 719


class FakePool:
    """Memory of up to a GB, whose address is all there is of it."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def malloc(self, n_bytes: int) -> Any:
        if self.error or n_bytes > 1 << 30:
            raise self.error or FakeCupy.cuda.memory.OutOfMemoryError
        return SimpleNamespace(ptr=1 << 20)

    def free_bytes(self) -> int:
        return 24

    def free_all_blocks(self) -> None:
        pass


class FakeStream:
    def __init__(self, handle: int) -> None:
        self.handle = handle

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class FakeCupy:
    cuda = SimpleNamespace(
        MemoryPool=FakePool,
        Stream=SimpleNamespace(from_external=FakeStream),
        memory=SimpleNamespace(OutOfMemoryError=type("OutOfMemoryError", (Exception,), {})),
        runtime=SimpleNamespace(runtimeGetVersion=lambda: 13020, CUDARuntimeError=FakeError),
    )


def fake_driver(**how: Any) -> tuple[Driver, FakeLibrary]:
    library = FakeLibrary(**how)
    return Driver(library), library
