"""`prepared`: a job that this machine has the memory for, and who builds it."""

from __future__ import annotations

from .backends import Builder, Job
from .fits import check_memory


def prepared(job: Job, builder: Builder) -> tuple[Job, Builder]:
    """With layers on a GPU another job, of what stays in this machine's memory, and another builder.

    Raises `ResourceError` where memory is not enough, and what `placed` raises.
    """
    if job.config.gpu_layers != 0:
        from .offload import placed

        return placed(job, builder)
    check_memory(job)
    return job, builder
