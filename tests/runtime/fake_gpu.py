"""A GPU that is a number of free bytes, whose share the reference computes."""

from __future__ import annotations

from dataclasses import dataclass, field

from halfbyte.errors import ResourceError
from halfbyte.model.kv_types import kv_types
from halfbyte.runtime import offload
from tests.cpu_kernels.kernel_sets import ready
from tests.model.shares import reference_of


@dataclass
class FakeDevice:
    free: int = 1 << 40
    name: str = "a card"
    multiprocessors: int = 100
    shared_bytes: int = 99 << 10
    closed: int = 0
    built: list[int] = field(default_factory=list)
    room: int = 99
    lost: bool = False

    def free_bytes(self):
        return self.free

    def close(self):
        self.closed += 1


def put_in_place(monkeypatch) -> FakeDevice:
    """What `load` finds: it holds `room` layers; more raise what a full one raises."""
    made = FakeDevice()
    ready()

    def build(share, job, device):
        layers = len({name.split(".")[1] for name in share.program.weight_names() if name.startswith("blk.")})
        made.built.append(layers)
        if layers > made.room:
            raise ResourceError("a card has 5 bytes free, 905 more are needed", needed=905, free=5)
        runner = reference_of(
            share, job.weights, job.n_pages, max_tokens=job.config.step_tokens, kv=kv_types(job.config.kv)
        )
        begin = runner.begin

        def checked(batch, logits):
            if made.lost:
                raise ResourceError("a card was lost (717); load the model again")
            begin(batch, logits)

        read = runner.read_page

        def read_page(page, out):
            if made.lost:
                raise ResourceError("a card was lost (717); load the model again")
            read(page, out)

        runner.begin, runner.read_page = checked, read_page
        return runner

    monkeypatch.setattr(offload, "open_device", lambda: made)
    monkeypatch.setattr(offload, "build_gpu", build)
    monkeypatch.setattr(offload, "RESERVE", 0)
    return made
