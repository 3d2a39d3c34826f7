"""The largest of every 16 logits of a row: whoever chooses tokens on the host looks at few of the others."""

from __future__ import annotations

from .calls import Call, Ref, Scratch, Stride
from .lower import Lowering

PEAKS = "logit peaks"
_LANES, _THREADS = 4, 256


def peak_stride(vocab_size: int) -> int:
    """Floats from one row to the next: whole cache lines."""
    return -(-vocab_size // 256) * 16


def peaks_scratch(vocab_size: int) -> Scratch:
    """Where they lie on the device."""
    return Scratch(lambda sizes: max(1, sizes.rows) * 4 * peak_stride(vocab_size), PEAKS)


def note_peaks(low: Lowering) -> Call:
    """To be called when the logits are there."""
    logits, vocab_size = low.program.logits, low.program.vocab_size
    pieces = -(-vocab_size // (_LANES * _THREADS))
    operands = (
        *(Ref(logits), Stride(logits), vocab_size, low.count(logits)),
        *(peaks_scratch(vocab_size), peak_stride(vocab_size)),
    )
    return Call("logit_peaks", low.each_row(logits, pieces), _THREADS, operands, (logits,), ())
