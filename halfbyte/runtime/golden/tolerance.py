"""How far kernels may be from the reference.

The unit is the standard deviation of a row of logits; see `Rows.distances`. Largest distance of twelve rows, kernels
against the reference, keys and values as halves: SmolLM2 135M q4_1 0.0024; Gemma 3 270M q4_k_m 0.0016; Qwen2.5 0.5B f16
0.0005, q2_k 0.0015, q3_k_m 0.0013, q4_0 0.0012, q4_k_m 0.0016. Most of it is halves that another order of a sum tips to
the next one. What must be noticed, on the first three: pairs of the rope laid out wrongly 1 to 4, two layers' matrices
exchanged 1 to 4, all frequencies off by 2 % 0.02 to 0.09, one row of one matrix zero 0.04 to 0.07.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...model.program import MoeRoute, Program

KV = "f16"
"""Keys and values of fewer bits are an error of 0.1 (q8_0) to 5 (q4_0) themselves, which hides all others."""


@dataclass(frozen=True)
class Tolerance:
    """`distance` of a row, which a share `exempt` of the rows may exceed."""

    distance: float
    exempt: float = 0.0


DENSE = Tolerance(0.01)
ROUTED = Tolerance(0.05, exempt=0.5)
"""Where the last expert chosen and the first one not are nearly equal, the smallest error exchanges them, and tokens
behind see it. Of 40 tiny mixtures (2 of 6 experts) it happened in one: four rows beyond 0.05, the worst at 0.34; all
rows of the others were within 0.002. What is really wrong moves nearly every row."""


def tolerance_of(program: Program) -> Tolerance:
    """What holds for a program."""
    return ROUTED if any(isinstance(op, MoeRoute) for op in program.ops) else DENSE
