"""Compiled kernels on disk."""

import os
import subprocess
import sys

import pytest

from halfbyte.code_file import read_code, write_code
from halfbyte.cpu_kernels import isa, loader, object_cache
from halfbyte.cpu_kernels.object_cache import folder_for
from halfbyte.errors import ResourceError, UnsupportedError
from tests.cpu_kernels.kernel_sets import DETECTED

SMALL = "scale"
"""A kernel that compiles fast."""
ISA = isa.ISAS[DETECTED]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HALFBYTE_KERNEL_CACHE", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


@pytest.fixture(scope="module")
def stored():
    """Symbol and code of a kernel from the user's own cache."""
    loader.LoadedKernels(ISA, [SMALL])
    return read_code(folder_for(ISA) / f"{SMALL}.o")


@pytest.fixture
def path(cache, stored):
    """That kernel in a cache that holds nothing else."""
    target = folder_for(ISA) / f"{SMALL}.o"
    write_code(target, *stored)
    assert target.is_relative_to(cache)
    return target


@pytest.fixture
def compilations(monkeypatch):
    """What the compiler is asked for; it does nothing."""
    asked = []

    def start(isa, folder, names, complaints):
        asked.append(names)
        return subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE, text=True)

    monkeypatch.setattr(loader, "_start", start)
    return asked


def test_what_is_written_is_read(path, stored):
    assert read_code(path) == stored
    assert os.listdir(path.parent) == [path.name]


def test_a_kernel_in_the_cache_is_not_compiled_again(path, compilations):
    assert loader.LoadedKernels(ISA, [SMALL]).compiled == 0
    assert compilations == []


DAMAGES = {
    "empty": lambda data: b"",
    "cut short": lambda data: data[:-1],
    "only a checksum": lambda data: data[:32],
    "one bit of the code": lambda data: data[:-9] + bytes([data[-9] ^ 4]) + data[-8:],
    "one bit of the checksum": lambda data: bytes([data[0] ^ 1]) + data[1:],
    "longer": lambda data: data + b"\0",
}


@pytest.mark.parametrize("damage", list(DAMAGES))
def test_a_damaged_file_counts_as_absent(path, damage):
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert read_code(path) is None


def test_a_damaged_file_is_compiled_anew(path, stored):
    path.write_bytes(path.read_bytes()[:1000])
    told = []
    kernels = loader.LoadedKernels(ISA, [SMALL], lambda *now: told.append(now))
    assert kernels.compiled == 1
    assert told == [("compile", 0, 1), ("compile", 1, 1)]
    assert read_code(path) is not None
    assert kernels.addresses[SMALL] != 0


def test_a_compiler_that_writes_nothing_is_told(path, compilations):
    path.unlink()
    with pytest.raises(ResourceError, match="vanished or is damaged"):
        loader.LoadedKernels(ISA, [SMALL])
    assert compilations == [[SMALL]]


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of a POSIX system")
def test_a_folder_that_cannot_be_written_is_told(cache, monkeypatch):
    cache.write_text("a file where the folder should be")
    with pytest.raises(ResourceError, match=r"cannot keep a compiled kernel in .*point HALFBYTE_KERNEL_CACHE"):
        write_code(folder_for(ISA) / "x.o", "x", b"")
    with pytest.raises(ResourceError, match=r"compiling kernels for .* failed: cannot keep a compiled kernel"):
        loader.LoadedKernels(ISA, [SMALL])


def test_a_full_disk_leaves_no_half_file(path, stored, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    path.unlink()
    monkeypatch.setattr(object_cache.os, "replace", full)
    with pytest.raises(ResourceError, match="No space left on device; free some space"):
        write_code(path, *stored)
    assert os.listdir(path.parent) == []


def test_every_instruction_set_has_a_folder_of_its_own():
    assert len({folder_for(row) for row in isa.ISAS.values()}) == len(isa.ISAS)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        (f"{object_cache.__name__}.__version__", "another"),
        (f"{object_cache.__name__}.target", lambda isa: ("another cpu", "")),
        (f"{object_cache.__name__}.__file__", __file__),
        ("llvmlite.__version__", "another"),
    ],
)
def test_versions_cpus_sources_and_compilers_have_folders_of_their_own(monkeypatch, name, other):
    before = folder_for(ISA)
    object_cache._key.cache_clear()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(name, other)
            assert folder_for(ISA) != before
    finally:
        object_cache._key.cache_clear()
    assert folder_for(ISA) == before


def test_the_general_cache_folder_holds_the_kernels_unless_they_have_their_own(tmp_path, monkeypatch):
    monkeypatch.delenv("HALFBYTE_KERNEL_CACHE")
    monkeypatch.setenv("HALFBYTE_CACHE", str(tmp_path / "all"))
    assert folder_for(ISA).parent == tmp_path / "all" / "kernels"


def test_two_processes_that_fill_one_cache_at_once_both_get_sound_kernels(cache):
    code = (
        "import sys; from halfbyte.cpu_kernels import isa, loader;"
        f"loader.LoadedKernels(isa.ISAS[{DETECTED!r}], ['add', {SMALL!r}]); sys.stdout.write('loaded')"
    )
    both = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in both] == ["loaded", "loaded"]
    assert sorted(file.name for file in folder_for(ISA).iterdir()) == ["add.o", f"{SMALL}.o"]
    assert all(read_code(file) is not None for file in folder_for(ISA).iterdir())


def test_loading_needs_no_compiler(path):
    code = (
        "import sys; from halfbyte.cpu_kernels import isa, loader;"
        f"loader.LoadedKernels(isa.ISAS[{DETECTED!r}], [{SMALL!r}]); assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_kernel_that_does_not_exist_is_told():
    with pytest.raises(ResourceError, match="no kernel is called 'turnip'"):
        loader.LoadedKernels(ISA, ["turnip"])
    from halfbyte.cpu_kernels.kernels import module_of

    with pytest.raises(UnsupportedError, match="no kernel is called 'turnip'; known: linear"):
        module_of("turnip")


@pytest.mark.parametrize("workers", [1, 2, 3, 8])
def test_processes_share_kernels_so_that_none_is_left_with_the_slow_ones(workers):
    slow = ["attention_f16_f16", "linear_q4_k", "linear_q6_k", "linear_q5_0", "linear_q8_0"]
    names = [*(f"pack_{number}" for number in range(10)), *slow]
    dealt = loader.shares(names, workers)
    assert sorted(name for share in dealt for name in share) == sorted(names)
    assert all(dealt)
    assert {share[0] for share in dealt} >= set(slow[: min(workers, len(slow))])
    if workers == 2:
        assert len([name for share in dealt if "attention_f16_f16" in share for name in share if name in slow]) == 1


def test_a_packaged_app_never_starts_itself_to_compile(cache, monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(subprocess, "Popen", lambda *given, **more: pytest.fail("started a process"))
    with pytest.raises(ResourceError, match=r"1 kernels for .* cannot compile them: compile them ahead"):
        loader.LoadedKernels(ISA, [SMALL])
