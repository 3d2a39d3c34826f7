"""`CudaDevice`: an NVIDIA GPU, by CuPy's memory pool, compiler and libraries and by the driver itself.

It lives in an app that may use CuPy or torch on the same card: whatever the caller has made current (device, context,
stream, allocator) is so again after each call, and nothing of the process is configured.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Collection, Iterator
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ..errors import ResourceError
from ..model.backend import Progress
from .cubin_compiler import CubinCompiler
from .cuda_blas import WORKSPACE_BYTES, Blas, find_cublas
from .cuda_card import Card, require_cupy, require_driver, require_extra
from .cuda_driver import (
    FUNCTION_SHARED_BYTES,
    NON_BLOCKING,
    OUR_MISTAKES,
    OUT_OF_MEMORY,
    SERIALIZATION,
    CudaError,
    Driver,
    LaunchAttribute,
    LaunchConfig,
)
from .cuda_memory import CudaBuffer, pinned_array
from .cuda_recording import CudaRecording, capture
from .device import Launch, Product

SHARED_WITHOUT_ASKING = 48 << 10
OWN_WORK_BYTES = 256 << 20
"""What graphs and kernels take of a card's memory at most, about: the driver does not say how much it lacks."""


def open_device() -> CudaDevice:
    """The first GPU that will do; raises `ConfigError`, `ResourceError` or `UnsupportedError` with what is missing."""
    return CudaDevice.open()


class _Function:
    """A kernel on the card, and the shared memory it was allowed so far."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.shared_bytes = SHARED_WITHOUT_ASKING


class _StreamOf:
    """A stream of the driver's as CuPy takes it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, self._handle


class CudaDevice:
    """One GPU with a stream of ours."""

    def __init__(self, cupy: Any, driver: Driver, card: Card) -> None:
        self.name = card.name
        self.capability = card.capability
        self.multiprocessors = card.multiprocessors
        self.shared_bytes = card.shared_bytes
        self._driver = driver
        self._card = card
        self._cupy = cupy
        self._lost = ""
        self._closed = False
        self._recording = False
        self._functions: dict[str, _Function] = {}
        self._modules: list[int] = []
        self._compiler = CubinCompiler(card.capability)
        # Kernels that may begin before the one in front of them has ended: later cards can.
        self._attribute = LaunchAttribute(id=SERIALIZATION, value=1)
        self._n_attributes = int(card.capability >= (9, 0))
        self._handle = driver.whole("cuDeviceGet", card.index)
        self._context = self._retain()
        self._pool = cupy.cuda.MemoryPool()
        try:
            self._begin()
        except BaseException:
            with contextlib.suppress(CudaError):
                driver.call("cuDevicePrimaryCtxRelease_v2", self._handle)
            raise

    def _begin(self) -> None:
        with self._use():
            self._stream = self._driver.handle("cuStreamCreate", NON_BLOCKING)
            self._cupy_stream = self._cupy.cuda.Stream.from_external(_StreamOf(self._stream))
            major = self._cupy.cuda.runtime.runtimeGetVersion() // 1000
            self._workspace = self._from_pool(WORKSPACE_BYTES)
            self._blas = Blas(find_cublas(major), self._stream, self._workspace.address)

    @classmethod
    def open(cls) -> Self:
        """See `open_device`."""
        require_extra()
        driver, card = require_driver()
        return cls(require_cupy(driver), driver, card)

    def _retain(self) -> int:
        try:
            return self._driver.handle("cuDevicePrimaryCtxRetain", self._handle)
        except CudaError as error:
            raise ResourceError(f"{self.name} cannot be used: {error}; see nvidia-smi for who holds it") from error

    @contextlib.contextmanager
    def _use(self) -> Iterator[None]:
        """Our context current, and errors of CUDA as what they mean for the caller."""
        assert not self._closed, "the device is closed"
        if self._lost:
            raise ResourceError(self._lost)
        try:
            self._driver.call("cuCtxPushCurrent_v2", self._context)
            try:
                yield
            finally:
                self._driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))
        except CudaError as error:
            self._explain(error)

    def _explain(self, error: CudaError) -> None:
        if error.code in OUR_MISTAKES:
            raise AssertionError(str(error)) from error
        if error.code == OUT_OF_MEMORY:
            message = f"{self.name} has no memory left for its own work ({error})"
            raise ResourceError(message, needed=OWN_WORK_BYTES, free=0) from error
        self._lost = f"{self.name} was lost ({error}); load the model again"
        raise ResourceError(self._lost) from error

    # --- kernels ---

    def load(self, kernels: Collection[str], progress: Progress | None) -> int:
        """Make kernels ready, compiled or from the cache; how many pieces were compiled."""
        wanted = set(kernels) - self._functions.keys()
        if not wanted:
            return 0
        cubins, compiled = self._compiler.cubins(wanted, progress)
        with self._use():
            for cubin in cubins:
                module = self._driver.handle("cuModuleLoadData", cubin.code)
                self._modules.append(module)
                for kernel, symbol in cubin.symbols.items():
                    function = self._driver.handle("cuModuleGetFunction", module, symbol.encode())
                    self._functions[kernel] = _Function(function)
        return compiled

    def launch(self, launch: Launch) -> None:
        """Enqueue a kernel."""
        function = self._functions[launch.kernel]
        config = LaunchConfig(
            (ctypes.c_uint * 3)(*launch.grid),
            (ctypes.c_uint * 3)(launch.threads, 1, 1),
            launch.shared,
            self._stream,
            ctypes.pointer(self._attribute),
            self._n_attributes,
        )
        places, _words = arguments_of(launch.arguments)
        with self._use():
            if launch.shared > function.shared_bytes:
                self._driver.call("cuFuncSetAttribute", function.handle, FUNCTION_SHARED_BYTES, launch.shared)
                function.shared_bytes = launch.shared
            try:
                self._driver.call("cuLaunchKernelEx", ctypes.byref(config), function.handle, places, None)
            except CudaError as error:
                error.add_note(str(launch))
                raise

    def multiply(self, product: Product) -> None:
        """Enqueue a product of halves, summed in floats."""
        with self._use():
            self._blas.multiply(product)

    # --- memory ---

    def allocate(self, n_bytes: int) -> CudaBuffer:
        """Memory aligned to 256 bytes; raises `ResourceError` with the bytes needed and free."""
        assert not self._recording, "allocates while recording"
        with self._use():
            return self._from_pool(n_bytes)

    def _from_pool(self, n_bytes: int) -> CudaBuffer:
        # Free blocks are kept by stream; with ours current they are all in one place.
        try:
            with self._cupy_stream:
                return CudaBuffer(self._pool.malloc(n_bytes), n_bytes)
        except self._cupy.cuda.memory.OutOfMemoryError as error:
            free = self._free_bytes()
            message = f"{self.name} has {free} bytes free, {n_bytes} more are needed"
            raise ResourceError(message, needed=n_bytes, free=free) from error
        except self._cupy.cuda.runtime.CUDARuntimeError as error:
            raise CudaError("malloc", error.status, str(error)) from error

    def pinned(self, n_bytes: int) -> NDArray[np.uint8]:
        """Memory of the host that copies run from and to while nobody waits."""
        with self._use():
            return pinned_array(self._driver, self._context, n_bytes)

    def copy_in(self, address: int, source: NDArray[Any]) -> None:
        """Enqueue a copy to the device."""
        assert source.flags.c_contiguous, "copies from an array with gaps"
        if source.nbytes:
            with self._use():
                self._driver.call("cuMemcpyHtoDAsync_v2", address, source.ctypes.data, source.nbytes, self._stream)

    def copy_out(self, target: NDArray[Any], address: int) -> None:
        """Enqueue a copy to the host; there when `synchronize` returns."""
        assert target.flags.c_contiguous, "copies to an array with gaps"
        if target.nbytes:
            with self._use():
                self._driver.call("cuMemcpyDtoHAsync_v2", target.ctypes.data, address, target.nbytes, self._stream)

    def copy(self, target: int, source: int, n_bytes: int) -> None:
        """Enqueue a copy within the device."""
        if n_bytes:
            with self._use():
                self._driver.call("cuMemcpyDtoDAsync_v2", target, source, n_bytes, self._stream)

    def free_bytes(self) -> int:
        """Memory that is left on the device, whoever uses the rest."""
        with self._use():
            return self._free_bytes()

    def _free_bytes(self) -> int:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self._driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return int(free.value) + int(self._pool.free_bytes())

    # --- order ---

    def record(self, enqueue: Callable[[], None]) -> CudaRecording:
        """What `enqueue` enqueues, without running it. It may neither allocate nor wait."""
        assert not self._recording, "records while recording"
        self._recording = True
        try:
            with self._use():
                graph = capture(self._driver, self._stream, enqueue)
                try:
                    return CudaRecording(self._driver, self._use, self._stream, graph).destroyed_in(self._context)
                finally:
                    self._driver.call("cuGraphDestroy", graph)
        finally:
            self._recording = False

    def synchronize(self) -> None:
        """Wait for everything; raises `ResourceError` where the device is lost."""
        assert not self._recording, "waits while recording"
        with self._use():
            self._driver.call("cuStreamSynchronize", self._stream)

    def close(self) -> None:
        """Let go of everything; may be called twice."""
        if self._closed:
            return
        # On a lost device all of this fails, and nothing of it is left.
        with contextlib.suppress(ResourceError, AssertionError), self._use():
            self._driver.call("cuStreamSynchronize", self._stream)
            self._blas.close()
            for module in self._modules:
                self._driver.call("cuModuleUnload", module)
            self._driver.call("cuStreamDestroy_v2", self._stream)
            del self._workspace
            self._pool.free_all_blocks()
        self._functions.clear()
        self._modules.clear()
        self._closed = True
        with contextlib.suppress(CudaError):
            self._driver.call("cuDevicePrimaryCtxRelease_v2", self._handle)


def arguments_of(arguments: tuple[int | float, ...]) -> tuple[Any, Any]:
    """Addresses of arguments as a launch takes them, and the words of 8 bytes they point to."""
    words = (ctypes.c_uint64 * max(len(arguments), 1))()
    base = ctypes.addressof(words)
    for i, argument in enumerate(arguments):
        if isinstance(argument, float):
            ctypes.c_float.from_address(base + 8 * i).value = argument
        else:
            words[i] = int(argument) & 0xFFFFFFFFFFFFFFFF
    places = (ctypes.c_void_p * len(words))(*(base + 8 * i for i in range(len(words))))
    return places, words
