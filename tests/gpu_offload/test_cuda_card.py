"""Using a GPU says what is missing for it, in one error."""

from __future__ import annotations

import ctypes
import importlib.util
import subprocess
import sys
from types import SimpleNamespace

import pytest

from halfbyte.errors import ConfigError, ResourceError, UnsupportedError
from halfbyte.gpu_offload import cuda_card
from halfbyte.gpu_offload.cuda_card import require_cupy, require_driver, require_extra
from halfbyte.gpu_offload.cuda_driver import find_driver
from tests.gpu_offload.fake_cuda import FakeCupy, fake_driver


def test_nothing_of_cuda_is_imported_before_a_device_is_opened():
    program = """
import sys
import halfbyte, halfbyte.gpu_offload.cuda_device, halfbyte.gpu_offload.cubin_compiler
print([name for name in sys.modules if name.startswith(("cupy", "cuda"))])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_missing_extra_is_named_in_both_kinds(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"'halfbyte\[cuda12\]'.*'halfbyte\[cuda13\]'") as caught:
        require_extra()
    assert caught.value.key == "gpu_layers"


def test_a_missing_driver_is_named(monkeypatch):
    def refuse(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert find_driver() is None
    with pytest.raises(ResourceError, match="no NVIDIA driver"):
        require_driver()


@pytest.mark.parametrize(
    ("how", "kind", "message"),
    [
        ({"cards": 0}, ResourceError, "sees no GPU"),
        ({"codes": {"cuInit": 100}}, ResourceError, "sees no GPU"),
        ({"codes": {"cuInit": 803}}, ResourceError, r"does not start: cuInit: CUDA_ERROR_FAKE \(803\)"),
    ],
)
def test_what_the_driver_does_not_have_is_told(monkeypatch, how, kind, message):
    monkeypatch.setattr(cuda_card, "find_driver", lambda: fake_driver(**how)[0])
    with pytest.raises(kind, match=message):
        require_driver()


def test_old_cards_are_told_by_name(monkeypatch):
    driver, library = fake_driver(cards=2)
    library.attributes[75], library.attributes[76] = 7, 5
    monkeypatch.setattr(cuda_card, "find_driver", lambda: driver)
    with pytest.raises(UnsupportedError, match=r"8\.0 or later.*Fake 9000 has 7\.5, Fake 9000 has 7\.5"):
        require_driver()


def modules(monkeypatch, version: int = 13020, error: Exception | None = None) -> None:
    def library_version() -> tuple[int, int]:
        if error:
            raise error
        return 13, 2

    runtime = SimpleNamespace(runtimeGetVersion=lambda: version)
    libs = SimpleNamespace(nvrtc=SimpleNamespace(getVersion=library_version), cublas=SimpleNamespace(getVersion=None))
    api = SimpleNamespace(runtime=runtime)
    cuda = SimpleNamespace(libs=libs, api=api)
    for name, module in {
        "cupy": FakeCupy,
        "cupy_backends": SimpleNamespace(cuda=cuda),
        "cupy_backends.cuda": cuda,
        "cupy_backends.cuda.api": api,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(cuda_card, "require_extra", lambda: None)


def test_a_driver_too_old_for_the_extra_is_told_with_the_way_out(monkeypatch):
    modules(monkeypatch)
    assert require_cupy(fake_driver(version=13000)[0]) is FakeCupy
    with pytest.raises(ConfigError, match=r"CUDA 12\.4, CuPy was built for CUDA 13.*'halfbyte\[cuda12\]'"):
        require_cupy(fake_driver(version=12040)[0])


def test_libraries_that_do_not_load_are_told(monkeypatch):
    modules(monkeypatch, error=ImportError("libnvrtc.so.13: cannot open\nand more"))
    with pytest.raises(ConfigError, match=r"does not load \(libnvrtc.so.13: cannot open\)"):
        require_cupy(fake_driver()[0])


@pytest.mark.parametrize("error", [RuntimeError(), AttributeError("no bool"), SyntaxError("invalid syntax")], ids=str)
def test_half_of_a_cupy_does_not_load_whatever_it_raises(monkeypatch, error):
    modules(monkeypatch, error=error)
    with pytest.raises(ConfigError, match=rf"does not load \({str(error) or 'RuntimeError'}\).*cuda12"):
        require_cupy(fake_driver()[0])


def test_a_cupy_too_old_for_us_is_told_before_the_card_is_touched(monkeypatch):
    modules(monkeypatch)
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=SimpleNamespace(MemoryPool=None)))
    with pytest.raises(ConfigError, match=r"does not load .*Stream"):
        require_cupy(fake_driver()[0])
