"""Which instruction set is chosen."""

import platform
import subprocess
import sys

import pytest

from halfbyte.cpu_kernels import isa
from halfbyte.errors import ConfigError, UnsupportedError

FEATURES = frozenset(feature for row in isa.ISAS.values() for feature in row.needs)


@pytest.fixture
def machine(monkeypatch):
    """`machine(arch, features)`: pretend to be another one."""
    monkeypatch.delenv("HALFBYTE_ISA", raising=False)

    def pretend(arch, features):
        monkeypatch.setattr(isa, "machine", lambda: arch)
        monkeypatch.setattr(isa, "host_features", lambda: frozenset(features))
        monkeypatch.setattr(isa, "_amx_permitted", lambda: True)

    return pretend


@pytest.mark.parametrize(
    ("arch", "without", "expected"),
    [
        ("x86_64", (), "amx"),
        ("x86_64", ("amx-int8",), "avx512_gfni"),
        ("x86_64", ("gfni",), "avx512_vnni"),
        ("x86_64", ("avx512vnni",), "avx2"),
        ("x86_64", ("avx512bw", "fma"), "generic"),
        ("aarch64", (), "neon_dotprod"),
        ("aarch64", ("dotprod",), "generic"),
        ("riscv64", (), "generic"),
    ],
)
def test_the_best_that_a_machine_has(machine, arch, without, expected):
    machine(arch, FEATURES - set(without))
    assert isa.detect().name == expected


def test_tile_registers_that_the_system_withholds_are_not_used(machine, monkeypatch):
    machine("x86_64", FEATURES)
    monkeypatch.setattr(isa, "_amx_permitted", lambda: False)
    assert isa.detect().name == "avx512_gfni"


def test_a_machine_that_llvm_cannot_ask_runs_the_generic_kernels(machine):
    machine("x86_64", ())
    assert isa.detect().name == "generic"


def test_the_environment_names_another(monkeypatch):
    monkeypatch.setenv("HALFBYTE_ISA", "generic")
    assert isa.detect().name == "generic"


@pytest.mark.parametrize("name", ["avx3", "", "AVX2"])
def test_an_unknown_name_is_told_the_known_ones(name):
    with pytest.raises(
        ConfigError, match=r"unknown isa .*known: amx, avx512_gfni, avx512_vnni, avx2, neon_dotprod, generic"
    ) as caught:
        isa.named(name)
    assert caught.value.key == "isa"


def test_a_name_close_to_a_known_one_is_told_so(monkeypatch):
    monkeypatch.setenv("HALFBYTE_ISA", "avx512_vni")
    with pytest.raises(ConfigError, match="did you mean 'avx512_vnni'"):
        isa.detect()


def test_what_this_machine_lacks_is_refused_and_told_what_it_has(machine):
    machine("x86_64", FEATURES - {"avx512vnni"})
    with pytest.raises(UnsupportedError, match=r"cannot run isa 'amx'; it can run: avx2, generic$"):
        isa.named("amx")
    with pytest.raises(UnsupportedError, match="cannot run isa 'neon_dotprod'"):
        isa.named("neon_dotprod")


def test_this_machine_runs_what_it_detects_and_the_generic_kernels():
    assert isa.runs_here(isa.detect())
    assert isa.runs_here(isa.ISAS["generic"])


def test_machines_go_by_llvms_names(monkeypatch):
    for given, expected in (("AMD64", "x86_64"), ("x86_64", "x86_64"), ("arm64", "aarch64"), ("aarch64", "aarch64")):
        monkeypatch.setattr(platform, "machine", lambda given=given: given)
        assert isa.machine() == expected


def test_tiles_get_shorter_down_to_one_token():
    for row in isa.ISAS.values():
        assert row.tokens[-1] == 1
        assert len(row.tokens) >= 2
        assert list(row.tokens) == sorted(set(row.tokens), reverse=True)


def test_pinned_targets_do_not_depend_on_this_machine():
    assert isa.target(isa.ISAS["avx2"]) == ("haswell", "+avx2,+fma,+f16c,+bmi,+bmi2")
    assert isa.target(isa.ISAS["generic"]) == ("generic", "")
    cpu, features = isa.target(isa.detect())
    assert cpu
    assert not features or all(feature[0] in "+-" for feature in features.split(","))


def test_choosing_needs_no_compiler():
    code = "import sys; from halfbyte.cpu_kernels import isa; isa.detect(); assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
