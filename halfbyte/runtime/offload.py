"""`placed`: some layers of a model on a GPU, where the caller wants that and there is one."""

from __future__ import annotations

import gc
import logging
import traceback
from dataclasses import dataclass, replace

from ..errors import HalfbyteError, ResourceError
from ..gpu_offload.device import Device
from ..gpu_offload.device_bytes import device_bytes
from ..gpu_offload.split import Kept, Split, split
from ..model.backend import Executable, Place, StagedExecutable
from ..model.kv_types import kv_types
from ..model.pieces import Pieces, Share, cut
from ..model.program import Program
from .backends import Builder, Job, build_cpu
from .config import STEP_TOKENS
from .fits import check_memory
from .hybrid import Choosing, HybridExecutable
from .sizes import parse_memory

log = logging.getLogger("halfbyte.load")

RESERVE = 512 << 20
"""Bytes that "auto" leaves on the device: for the driver, for what is guessed, and for others who use the card."""
GPU_STEP_TOKENS = 2048
GPU_STRETCH = 16.0
"""Of a step that a GPU computes alone, where nobody says how many: fewer leave it half idle."""


def placed(job: Job, builder: Builder) -> tuple[Job, Builder]:
    """What of a job that wants layers on a GPU stays here, and who builds both; the same where all of it does.

    Raises `ResourceError` for more layers than fit the device, and where a number of them or "all" is wanted what
    `open_device` raises; "auto" does without.
    """
    try:
        device = open_device()
    except HalfbyteError as error:
        if job.config.gpu_layers != "auto":
            raise
        log.info("gpu_layers='auto': the CPU computes all layers: %s", error)
        check_memory(job)
        return job, builder
    try:
        offload = offloaded(job, device, device.free_bytes())
        log.info("%s: %s", device.name, offload.split.about)
        check_memory(offload.job)
    except BaseException:
        device.close()
        raise
    if offload.split.layers:
        return offload.job, offload.build
    device.close()
    return job, builder


def open_device() -> Device:
    """A GPU of this machine."""
    from ..gpu_offload import cuda_device

    return cuda_device.open_device()


def build_gpu(share: Share, job: Job, device: Device) -> StagedExecutable:
    """The GPU's share made ready."""
    from ..gpu_offload.executable import build

    return build(
        share.program,
        share.stages,
        {name: job.weights[name] for name in share.program.weight_names()},
        device=device,
        n_pages=job.n_pages,
        max_tokens=job.config.step_tokens,
        max_seqs=job.max_seqs,
        context=job.config.context,
        kv=kv_types(job.config.kv),
        progress=job.progress,
    )


@dataclass(frozen=True)
class Offload:
    """A job whose `host` is what stays, and where its ops go. Whoever builds it owns the device from then on."""

    job: Job
    split: Split
    pieces: Pieces
    device: Device

    def build(self, job: Job) -> Executable:
        """Make both shares ready. Where the device has less room than thought, "auto" takes fewer layers, or none.

        Raises `ResourceError`.
        """
        offload = self
        while offload.split.layers:
            try:
                gpu = build_gpu(offload.pieces.shares["gpu"], offload.job, self.device)
            except ResourceError as error:
                # What the attempt took is held by its frames, and those by whoever keeps the error.
                traceback.clear_frames(error.__traceback__)
                gc.collect()
                if job.config.gpu_layers != "auto" or error.needed is None:
                    self.device.close()
                    raise
                short, why = error.needed - (error.free or 0), str(error)
            except BaseException:
                self.device.close()
                raise
            else:
                return offload._with(gpu)
            offload = offload._with_fewer(short, why)
        self.device.close()
        return build_cpu(offload.job)

    def _with_fewer(self, short: int, why: str) -> Offload:
        """At least one layer fewer, and as many as the missing bytes ask for."""
        fewer = offloaded(self.job, self.device, self.split.needed - max(short, 1) + RESERVE)
        log.warning("%s: %d layers go to the GPU instead of %d", why, fewer.split.layers, self.split.layers)
        check_memory(fewer.job)
        return fewer

    def _with(self, gpu: StagedExecutable) -> Executable:
        """The other share beside that of the GPU."""
        sides: dict[Place, StagedExecutable] = {"gpu": gpu}
        about = {"gpu": self.device.name, "gpu_layers": f"{self.split.layers} of {self.split.of}"}
        try:
            chooser = self._host(sides)
            return HybridExecutable(self.pieces, sides, chooser, about=about, device=self.device)
        except BaseException:
            gpu.close()
            self.device.close()
            raise

    def _host(self, sides: dict[Place, StagedExecutable]) -> Choosing:
        """Put the CPU's share among the sides, if it has one; returns who chooses from logits."""
        from ..cpu_kernels.chooser import Chooser
        from ..cpu_kernels.share import build_share

        config, share = self.job.config, self.pieces.shares.get("cpu")
        if share is None:
            return Chooser(config.isa)
        sides["cpu"] = made = build_share(
            share.program,
            share.stages,
            self.job.weights,
            n_pages=self.job.n_pages,
            max_tokens=config.step_tokens,
            threads=config.threads,
            isa=config.isa,
            kv=kv_types(config.kv),
            progress=self.job.progress,
        )
        return made


def offloaded(job: Job, device: Device, free: int) -> Offload:
    """Cut a job for a device that has `free` bytes, of which a share may be asked for keys and values."""
    if isinstance(job.config.kv_memory, float):
        n_bytes = parse_memory(job.config.kv_memory, "kv_memory", free)
        job = replace(job, config=replace(job.config, kv_memory=n_bytes))
    # As many pages as now, whatever is free in this machine's memory once the device has its part.
    config = replace(job.config, kv_memory=job.n_pages * job.page_bytes)
    tokens = config.max_num_batched_tokens
    found = _split(job, device, free, tokens or GPU_STEP_TOKENS)
    if tokens is None:
        tokens = STEP_TOKENS if "cpu" in found.places else GPU_STEP_TOKENS
        found = _split(job, device, free, tokens)
    pieces = cut(job.program, found.places)
    host = pieces.shares["cpu"].program if "cpu" in pieces.shares else Program((), {}, (), "", job.program.vocab_size)
    stretch = GPU_STRETCH if config.prompt_stretch is None and "cpu" not in found.places else config.prompt_stretch
    config = replace(config, max_num_batched_tokens=tokens, prompt_stretch=stretch)
    return Offload(replace(job, config=config, host=host), found, pieces, device)


def _split(job: Job, device: Device, free: int, tokens: int) -> Split:
    config = job.config
    sizes = device_bytes(
        job.program,
        job.weights,
        device,
        kv=kv_types(config.kv),
        n_pages=job.n_pages,
        context=config.context,
        max_tokens=tokens,
        max_seqs=min(config.max_num_seqs, tokens),
    )
    kept = Kept(experts=config.experts_on_cpu, kv=config.kv_on_cpu)
    return split(job.program, config.gpu_layers, sizes=sizes, free=free, reserve=RESERVE, kept=kept)
