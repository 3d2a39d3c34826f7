"""`sensitivities`: what each format would cost each tensor, in bytes and in divergence of the model's answers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from ...errors import ConfigError
from ...formats import GGUFFile, TensorInfo
from ...model.backend import Progress
from ...quant import FORMATS, BlockFormat
from ...quant.block import Bytes, Floats
from .curvature import Curvature, Curvatures
from .encoding import RowEncoder
from .imatrix_fit import experts_of
from .plan import PlannedTensor

CANDIDATES = (
    *("q8_0", "q6_k", "q5_k", "q4_k", "q3_k", "q2_k", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl", "iq4_xs"),
    *("iq3_s", "iq3_xxs", "iq2_s", "iq2_xs", "iq2_xxs", "iq1_m", "iq1_s"),
)
SAMPLE = 1 << 17
"""Weights of a tensor that are encoded to see how far off they end up; all of them would take minutes for each format.
"""


@dataclass(frozen=True)
class Candidate:
    """A format for a tensor: its size there, and nats a token that the model's answers move."""

    format: BlockFormat
    n_bytes: int
    divergence: float


def sensitivities(
    file: GGUFFile,
    curvatures: Curvatures,
    names: Sequence[str],
    encoder: RowEncoder,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> dict[str, list[Candidate]]:
    """Candidates of each tensor, the smallest first, without those that cost more of both than another.

    A format the tensor has already costs nothing. Raises `ConfigError` for a tensor that the model does not use.
    """
    found = {}
    with ThreadPoolExecutor(threads, "sensitivity") as pool:
        jobs = {}
        for name in names:
            if name not in curvatures:
                raise ConfigError(f"{name!r} is not used by the model, so nothing tells how many bits it needs")
            jobs[name] = pool.submit(_candidates, file, file.tensors[name], curvatures[name], encoder)
        try:
            for done, (name, job) in enumerate(jobs.items()):
                found[name] = job.result()
                if progress is not None:
                    progress("try formats", done + 1, len(jobs))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    return found


def _candidates(
    file: GGUFFile, info: TensorInfo, curvatures: Sequence[Curvature], encoder: RowEncoder
) -> list[Candidate]:
    formats = [FORMATS[name] for name in CANDIDATES if info.columns % FORMATS[name].block_len == 0]
    if not formats:
        formats = [FORMATS["f16"]]
    costs = dict.fromkeys((format.name for format in formats), 0.0)
    for curvature in curvatures:
        rows = _sample(info, curvature)
        values = info.format.decode(file.tensor_data(info.name)[rows])
        for format in formats:
            if format is not info.format and len(rows):
                packed = _encoded(encoder, PlannedTensor(info, format, format.name), rows, values)
                costs[format.name] += curvature.divergence(rows, (format.decode(packed) - values) ** 2)
    sized = sorted(
        (Candidate(each, each.row_bytes(info.columns) * info.rows, costs[each.name]) for each in formats),
        key=lambda each: (each.n_bytes, each.divergence),
    )
    kept: list[Candidate] = []
    for each in sized:
        if not kept or each.divergence < kept[-1].divergence:
            kept.append(each)
    return kept


def _encoded(encoder: RowEncoder, tensor: PlannedTensor, rows: np.ndarray, values: Floats) -> Bytes:
    """`values` of ascending `rows`, those of each expert as its importance asks for."""
    experts = rows // (tensor.info.rows // experts_of(tensor.info))
    parts = [encoder.encode(tensor, expert, values[experts == expert]) for expert in np.unique(experts).tolist()]
    return np.concatenate(parts)


def _sample(info: TensorInfo, curvature: Curvature) -> np.ndarray:
    """Rows that matter, evenly spread."""
    rows = np.flatnonzero(curvature.rows)
    count = min(len(rows), max(16, SAMPLE // info.columns))
    return rows[np.linspace(0, len(rows) - 1, count).astype(np.intp)] if count else rows
