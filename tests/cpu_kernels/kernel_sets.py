"""All the kernels a group of tests needs, compiled in one go: starting the compiler costs more than a small kernel."""

from __future__ import annotations

from functools import cache

from halfbyte.cpu_kernels import isa
from halfbyte.cpu_kernels.kernels import EXECUTOR
from halfbyte.cpu_kernels.loader import LoadedKernels
from halfbyte.cpu_kernels.packed import FAMILY_OF, PACKED

ISAS_HERE = [name for name in isa.ISAS if isa.runs_here(isa.ISAS[name])]
DETECTED = isa.detect().name
FEW = ("q4_1", "q8_0", "q6_k", "iq4_xs", "iq2", "f16")
"""Families tried on instruction sets other than the detected one: small bytes, wide bytes, planes, tables, floats."""
FIELDS_ONLY = ("q4_1", "q8_0", "q6_k", "f16")
"""On AVX-512 without bit matrices, which differs from that with them by how fields of bytes are taken."""
TABLES = ("q4_1", "f32")
LLAMA = ("norm", "quantize", "angles", "rope_norm", "gated_silu", "take_rows", "top_k", "add")
KV = ("f16_f16", "q8_0_q4_0", "q4_0_q8_0", "f32_f32")
"""Types of keys and values: each of both, the first on other instruction sets too."""
EXPERTS = ("f32", "f16", "q8_0", "q4_k", "mxfp4")
"""Families that experts are tried with; on other instruction sets one."""
ROUTING = ("route_softmax", "route_sigmoid", "dispatch", "combine")
ACTS = ("silu", "gelu_tanh", "gelu", "relu")
OTHERS = (
    *("rope_neox", "scale", "softcap", "layer_norm", "mul", "conv_f16", "conv_f32", "gated_swiglu_oai"),
    *(f"{kernel}_{act}" for kernel in ("gated", "act") for act in ACTS),
)


SOME_OTHERS = ("layer_norm", "act_gelu", "gated_swiglu_oai", "mul", "conv_f16")
"""On other instruction sets than the detected one."""


def families_on(isa_name):
    if isa_name == DETECTED:
        return tuple(PACKED)
    return FIELDS_ONLY if isa_name == "avx512_vnni" else FEW


@cache
def ready(isa_name=DETECTED):
    """Compile what the tests run on an instruction set, and hold it."""
    linear = [f"linear_{family}" for family in families_on(isa_name)]
    pack = [f"pack_{name}" for name, family in FAMILY_OF.items() if family in families_on(isa_name)]
    tables = [f"embed_{table}" for table in (FAMILY_OF if isa_name == DETECTED else TABLES)]
    others, stores = (OTHERS, KV) if isa_name == DETECTED else (SOME_OTHERS, KV[:1])
    kv = [f"{kernel}_{types}" for kernel in ("kv_write", "attention") for types in stores]
    experts = [f"experts_{family}" for family in (EXPERTS if isa_name == DETECTED else EXPERTS[2:3])]
    names = [*linear, *experts, *ROUTING, *pack, *tables, *EXECUTOR, *LLAMA, *kv, *others]
    return LoadedKernels(isa.named(isa_name), sorted(names))
