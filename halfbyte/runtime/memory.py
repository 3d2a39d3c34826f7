"""How much memory this process may still take."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path


def free_memory() -> int | None:
    """Bytes that can be taken without swapping, a container's limit counted; None where the system does not tell."""
    if sys.platform == "win32":
        return _windows_free()
    known = [size for size in (_linux_free(), _cgroup_free()) if size is not None]
    if known:
        return min(known)
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _linux_free() -> int | None:
    available = _fields("/proc/meminfo").get("MemAvailable:")
    return None if available is None else available * 1024


def _cgroup_free(root: str = "/sys/fs/cgroup") -> int | None:
    """What the container's limit leaves; file pages that can be dropped do not count as taken."""
    for folder, limit, used, droppable in (
        (root, "memory.max", "memory.current", "inactive_file"),
        (f"{root}/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ):
        most, taken = _number(f"{folder}/{limit}"), _number(f"{folder}/{used}")
        if most is not None and taken is not None:
            return max(most - taken + _fields(f"{folder}/memory.stat").get(droppable, 0), 0)
    return None


def _number(path: str) -> int | None:
    try:
        return int(Path(path).read_text())
    except (OSError, ValueError):  # no such file, or "max"
        return None


def _fields(path: str) -> dict[str, int]:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split()[:2] for line in lines)
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}


class _MemoryStatus(ctypes.Structure):
    """MEMORYSTATUSEX of the Windows API."""

    _fields_ = (
        ("length", ctypes.c_uint32),
        ("load", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("available", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 5),
    )


def _windows_free() -> int | None:
    status = _MemoryStatus(length=ctypes.sizeof(_MemoryStatus))
    kernel32 = getattr(ctypes, "windll").kernel32  # noqa: B009  (the attribute exists on Windows alone)
    return int(status.available) if kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else None
