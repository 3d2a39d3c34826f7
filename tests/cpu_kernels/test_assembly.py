"""What the hot kernels are compiled to on x86: no double precision, no vector that waits on the stack."""

import re

import pytest

from halfbyte.cpu_kernels import isa
from tests.cpu_kernels.assembly import assembly_of, blocks, instructions

KERNELS = ("linear_q4_1", "linear_q4_k")
DOUBLE = re.compile(
    r"v?(add|sub|mul|div|sqrt|max|min|fn?m(add|sub)\d+|u?comi|round|rndscale|cmp\w*)[sp]d$|v?cvt\w*[sp]d"
)
MULTIPLY = re.compile(r"vpdpbusd|vpmaddubsw")
STACK = re.compile(r"[yz]mm.*\(%r[sb]p\)|\(%r[sb]p\).*[yz]mm")
# Vectors stored or loaded on the stack for each multiplication, in blocks that multiply. AVX-512 has registers for all;
# of AVX2's sixteen the unpacked columns alone take as many. Measured there: 2.2.
STACK_PER_MULTIPLY = {"avx512_vnni": 0, "avx2": 2.5}
ISAS = [name for name in STACK_PER_MULTIPLY if isa.runs_here(isa.ISAS[name])]


@pytest.fixture(scope="module", params=ISAS)
def compiled(request):
    return request.param, assembly_of(request.param, *KERNELS)


def mnemonics(text):
    return [line.split()[0] for line in instructions(text)]


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_double_precision(compiled, kernel):
    found = mnemonics(compiled[1][kernel])
    assert len(found) > 500
    assert [name for name in found if DOUBLE.match(name)] == []


@pytest.mark.parametrize("kernel", KERNELS)
def test_vectors_stay_in_registers_where_bytes_are_multiplied(compiled, kernel):
    isa_name, text = compiled
    hot = [block for block in blocks(text[kernel]) if any(MULTIPLY.match(line) for line in block)]
    assert max(sum(bool(MULTIPLY.match(line)) for line in block) for block in hot) >= 32
    for block in hot:
        multiplications = sum(bool(MULTIPLY.match(line)) for line in block)
        on_stack = [line for line in block if STACK.search(line)]
        assert not any(line.startswith("call") for line in block)
        assert len(on_stack) <= STACK_PER_MULTIPLY[isa_name] * multiplications, on_stack


def test_the_patterns_know_what_they_look_for():
    doubles = "addsd vmulpd vfmadd231sd vdivsd vcvtss2sd vcvttsd2si cvtdq2pd vucomisd vsqrtsd vcmpltsd"
    others = "vpdpbusd vshufpd vbroadcastsd vmovapd vaddss vfmadd231ps vcvtdq2ps vmovsd vunpcklpd"
    assert all(DOUBLE.match(name) for name in doubles.split())
    assert not any(DOUBLE.match(name) for name in others.split())
    assert STACK.search("vmovaps %ymm3, 96(%rsp)")
    assert STACK.search("vpmaddwd (%rsp), %ymm10, %ymm10")
    assert not STACK.search("vmovdqu -480(%rdx), %ymm3")
    assert not STACK.search("movq 8(%rsp), %rax")
