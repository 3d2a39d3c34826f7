"""Which instruction set the kernels are compiled for. Runs without numba."""

from __future__ import annotations

import functools
import os
import platform
from dataclasses import dataclass

from ..errors import ConfigError, UnsupportedError, nearest


@dataclass(frozen=True)
class Isa:
    """One row of the table.

    `lowering` names the file with the few vector ops that differ, `needs` the LLVM features that must be present,
    `tokens` the lengths of tiles,
    longest first: as many tokens as the registers hold next to one 16-row accumulator each, down to one.
    """

    name: str
    arch: str
    lowering: str
    needs: tuple[str, ...]
    tokens: tuple[int, ...]
    cpu: str = ""
    pinned: str = ""
    """LLVM CPU and features to compile for; empty means those of this machine."""


_AVX512 = ("avx512vnni", "avx512bw", "avx512vl", "avx512dq")

ISAS: dict[str, Isa] = {
    isa.name: isa
    for isa in (
        # Tile registers do the integer sums of 16 tokens at once; 16 float accumulators stay in vector registers.
        # 32 registers of 512 bits: 8 integer and 8 float accumulators leave room for the weights.
        Isa("amx", "x86_64", "amx", ("amx-int8", "amx-tile", *_AVX512, "gfni"), (16, 4, 1)),
        Isa("avx512_gfni", "x86_64", "avx512_gfni", (*_AVX512, "gfni"), (8, 2, 1)),
        Isa("avx512_vnni", "x86_64", "avx512_vnni", _AVX512, (8, 2, 1)),
        # 16 registers of 256 bits, two for every 16 rows.
        Isa("avx2", "x86_64", "avx2", ("avx2", "fma", "f16c"), (2, 1), "haswell", "+avx2,+fma,+f16c,+bmi,+bmi2"),
        Isa("neon_dotprod", "aarch64", "neon", ("dotprod",), (4, 1)),
        Isa("generic", "", "generic", (), (2, 1), "generic", " "),
    )
}
"""Best first: `detect` takes the first one this machine can run."""


def machine() -> str:
    """The architecture of this machine under LLVM's name."""
    name = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


@functools.cache
def host_features() -> frozenset[str]:
    """LLVM feature names this CPU and its operating system offer."""
    import llvmlite.binding as llvm

    try:
        features = llvm.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know how to ask this system
        return frozenset()
    return frozenset(name for name, present in features.items() if present)


def runs_here(isa: Isa) -> bool:
    """Whether this machine has all that `isa` needs."""
    if isa.arch and isa.arch != machine():
        return False
    if not host_features().issuperset(isa.needs):
        return False
    return isa.name != "amx" or _amx_permitted()


def detect() -> Isa:
    """The best ISA of this machine, or the one that HALFBYTE_ISA names."""
    wanted = os.environ.get("HALFBYTE_ISA")
    return named(wanted) if wanted else next(isa for isa in ISAS.values() if runs_here(isa))


def named(name: str) -> Isa:
    """The ISA called `name`; raises `ConfigError` if there is none, `UnsupportedError` if this machine lacks it."""
    if name not in ISAS:
        raise ConfigError(f"unknown isa {name!r}{nearest(name, ISAS)}; known: {', '.join(ISAS)}", key="isa")
    if not runs_here(ISAS[name]):
        usable = [isa.name for isa in ISAS.values() if runs_here(isa)]
        raise UnsupportedError(f"this CPU cannot run isa {name!r}; it can run: {', '.join(usable)}")
    return ISAS[name]


@functools.cache
def _amx_permitted() -> bool:
    """Ask Linux for the tile registers, which a process must do before its first tile instruction."""
    if platform.system() != "Linux":
        return False
    import ctypes

    arch_prctl, req_xcomp_perm, xtile_data = 158, 0x1023, 18
    libc = ctypes.CDLL(None, use_errno=True)
    return bool(libc.syscall(arch_prctl, req_xcomp_perm, xtile_data) == 0)


def target(isa: Isa) -> tuple[str, str]:
    """LLVM CPU name and feature string that `isa` is compiled for."""
    import llvmlite.binding as llvm

    if isa.cpu:
        return isa.cpu, isa.pinned.strip()
    # LLVM splits 512-bit vectors in two on CPUs that once clocked down for them; ours are written at full width.
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten() + _full_width()


def _full_width() -> str:
    return ",-prefer-256-bit" if machine() == "x86_64" else ""
