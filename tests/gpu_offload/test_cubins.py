"""Machine code of kernels: in pieces, compiled once, and again where a file is damaged."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from halfbyte.errors import ConfigError, ResourceError
from halfbyte.gpu_offload import cubin_compiler
from halfbyte.gpu_offload.cubin_cache import Cubin, cache_root, read_cubin, write_cubin
from halfbyte.gpu_offload.cubin_compiler import KERNELS, CubinCompiler, kernels_in, pieces_of


class FakeNvrtc:
    """A compiler whose machine code is the source and what was asked for."""

    class NVRTCError(Exception):
        pass

    def __init__(self) -> None:
        self.programs: list[tuple[str, list[str]]] = []
        self.options: list[tuple[str, ...]] = []
        self.broken = False
        self.version = (13, 2)

    def getVersion(self):
        return self.version

    def getSupportedArchs(self):
        return (80, 90)

    def createProgram(self, source, name, headers, names):
        self.programs.append((source, []))
        return len(self.programs) - 1

    def addNameExpression(self, program, kernel):
        self.programs[program][1].append(kernel)

    def compileProgram(self, program, options):
        self.options.append(options)
        if self.broken:
            raise self.NVRTCError

    def getProgramLog(self, program):
        return "line 3: not C++"

    def getLoweredName(self, program, kernel):
        return f"_Z{kernel}"

    def getCUBIN(self, program):
        return repr(self.programs[program]).encode()

    def destroyProgram(self, program):
        pass


@pytest.fixture
def nvrtc(monkeypatch, tmp_path):
    made = FakeNvrtc()
    for name in ("cupy_backends", "cupy_backends.cuda"):
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    monkeypatch.setitem(sys.modules, "cupy_backends.cuda.libs", SimpleNamespace(nvrtc=made))
    monkeypatch.setenv("HALFBYTE_KERNEL_CACHE", str(tmp_path))
    return made


WANTED = ["make_forms", "dequantize<Q4_K>", "dequantize<Q8_0>"]


def test_pieces_are_instances_and_files():
    pieces = pieces_of(WANTED)
    assert [(piece.file, piece.kernels) for piece in pieces] == [
        ("dequantize.cuh", ("dequantize<Q4_K>",)),
        ("dequantize.cuh", ("dequantize<Q8_0>",)),
        ("forms.cuh", ("make_forms",)),
    ]
    with pytest.raises(AssertionError, match="no kernel file has multiply"):
        pieces_of(["multiply<3>"])


def test_every_kernel_of_every_file_is_found():
    declared = sum(path.read_text().count("__global__") for path in KERNELS.glob("*.cuh"))
    assert len(kernels_in(KERNELS.glob("*.cuh"))) == declared


def test_kernels_are_compiled_once_for_the_card(nvrtc):
    seen: list[tuple[str, int, int]] = []
    compiler = CubinCompiler((9, 0))
    cubins, compiled = compiler.cubins(WANTED, lambda *what: seen.append(what))
    assert compiled == 3
    assert seen == [("compile", 1, 3), ("compile", 2, 3), ("compile", 3, 3)]
    assert {name: symbol for cubin in cubins for name, symbol in cubin.symbols.items()} == {k: f"_Z{k}" for k in WANTED}
    assert {"-arch=sm_90", "--fmad=false", "--std=c++17", f"-I{KERNELS}"} == set(nvrtc.options[0])
    again, compiled = CubinCompiler((9, 0)).cubins(WANTED, None)
    assert (again, compiled) == (cubins, 0)


def test_other_cards_compilers_and_sources_have_other_files(nvrtc, monkeypatch, tmp_path):
    folders = {CubinCompiler((9, 0)).folder, CubinCompiler((8, 0)).folder}
    nvrtc.version = (13, 3)
    folders.add(CubinCompiler((9, 0)).folder)
    monkeypatch.setattr(cubin_compiler, "KERNELS", tmp_path)
    folders.add(CubinCompiler((9, 0)).folder)
    assert len(folders) == 4


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-1], lambda data: b"", lambda data: data[:40] + b"x" + data[41:]]
)
def test_a_damaged_file_is_compiled_again(nvrtc, damage):
    compiler = CubinCompiler((9, 0))
    cubins, _ = compiler.cubins(WANTED, None)
    path = next(compiler.folder.glob("forms-*.cubin"))
    path.write_bytes(damage(path.read_bytes()))
    assert compiler.cubins(WANTED, None) == (cubins, 1)
    assert compiler.cubins(WANTED, None) == (cubins, 0)


def test_mistakes_come_with_what_the_compiler_said(nvrtc):
    nvrtc.broken = True
    with pytest.raises(AssertionError, match="make_forms:\nline 3: not C"):
        CubinCompiler((9, 0)).cubins(["make_forms"], None)


def test_a_card_newer_than_the_compiler_is_told(nvrtc):
    with pytest.raises(ConfigError, match=r"sm_150.*NVRTC \(13, 2\).*upgrade"):
        CubinCompiler((15, 0)).cubins(["make_forms"], None)


def test_a_file_that_is_no_folder_cannot_be_written_to(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ResourceError, match="HALFBYTE_KERNEL_CACHE"):
        write_cubin(tmp_path / "file" / "x.cubin", Cubin({}, b""))
    assert read_cubin(tmp_path / "absent") is None


def test_the_cache_is_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("HALFBYTE_KERNEL_CACHE", raising=False)
    monkeypatch.setenv("HALFBYTE_CACHE", str(tmp_path))
    assert cache_root() == tmp_path / "kernels"
    monkeypatch.setenv("HALFBYTE_KERNEL_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    monkeypatch.delenv("HALFBYTE_KERNEL_CACHE")
    monkeypatch.delenv("HALFBYTE_CACHE")
    assert cache_root().name == "kernels"


@pytest.mark.parametrize("capability", [(8, 0), (9, 0)])
def test_the_real_compiler_makes_machine_code(monkeypatch, tmp_path, capability):
    """No card is needed for it, but the extra."""
    try:
        from cupy_backends.cuda.libs import nvrtc

        nvrtc.getVersion()
    except (ImportError, RuntimeError) as error:
        pytest.skip(str(error))
    monkeypatch.setenv("HALFBYTE_KERNEL_CACHE", str(tmp_path))
    compiler = CubinCompiler(capability)
    cubins, compiled = compiler.cubins(WANTED, None)
    assert compiled == 3
    assert all(cubin.code.startswith(b"\x7fELF") for cubin in cubins)
    assert all(
        "make_forms" in symbol for cubin in cubins for name, symbol in cubin.symbols.items() if name == "make_forms"
    )
    assert compiler.cubins(WANTED, None) == (cubins, 0)
    with pytest.raises(AssertionError, match=r"dequantize<3>:\n.*error"):
        compiler.cubins(["dequantize<3>"], None)
