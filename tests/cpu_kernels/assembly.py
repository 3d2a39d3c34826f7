"""Assembly of kernels, compiled in a process of its own: `assembly_of(isa, kernel, ...)`."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

from halfbyte.cpu_kernels.isa import ISAS, target
from halfbyte.cpu_kernels.kernels import module_of

SEPARATOR = "=== kernel ==="


def assembly_of(isa_name, *kernels):
    """Text of each kernel, by name."""
    cpu, features = target(ISAS[isa_name])
    environment = {**os.environ, "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])
    command = [sys.executable, "-m", __name__, isa_name, *kernels]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return dict(zip(kernels, done.stdout.split(SEPARATOR)[1:], strict=True))


def instructions(text):
    """Lines that are instructions or labels, comments left out."""
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    return [line for line in lines if line and (not line.startswith(".") or line.startswith(".L"))]


def blocks(text):
    """Straight runs of instructions: a label begins one, a jump ends one."""
    result = [[]]
    for line in instructions(text):
        if line.endswith(":"):
            result.append([])
        else:
            result[-1].append(line)
            if re.match(r"j|ret", line):
                result.append([])
    return result


def main(isa_name, *kernels):
    from halfbyte.cpu_kernels.lowerings import active

    active.use(ISAS[isa_name])
    from halfbyte.cpu_kernels.jit import compile_kernel

    for name in kernels:
        kernel = importlib.import_module(f"halfbyte.cpu_kernels.{module_of(name)}").KERNELS[name]
        sys.stdout.write(SEPARATOR + compile_kernel(kernel)[2])


if __name__ == "__main__":
    main(*sys.argv[1:])
