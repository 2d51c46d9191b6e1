"""What a run on the CPU says: where a fault happened and who waits for what, by the names of roles and barriers."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from layoutalg.codegen.kernel import KernelSource
from layoutalg.ground.record import Checked
from layoutalg.targets.registry import TARGETS

NOWHERE = 2**32 - 1
MOST_WAITS = 64
_WAITS = (
    "run", "wait at __syncthreads", "wait for their warp", "wait at a role barrier", "wait for their cluster",
    "wait for the rest of their warpgroup", "wait at a barrier in memory",
)  # fmt: skip
_OTHERS = {
    "shared memory that a load in flight writes": "a load of {} writes it",
    "shared memory of a store in flight": "a store of {} reads it",
    "shared memory of a multiply in flight": "a multiply of {} reads it",
    "shared memory used by threads and then": "{} used it and has not called la_fence_async since",
}
"""The part of another thread, by the first words of the fault."""


class Told(ctypes.Structure):
    """Where a fault happened; as in ``host_shim.h``."""

    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("block", "where", "thread", "byte", "line", "met", "other")),
        *((name, ctypes.c_uint32) for name in ("barrier", "arrivals", "pending")),
        ("waits", ctypes.c_uint32 * len(_WAITS)), ("ended", ctypes.c_uint32),
    ]  # fmt: skip


class _Starved(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_uint32) for name in ("block", "thread", "barrier", "phase")),
        *((name, ctypes.c_uint32) for name in ("pending", "count", "line", "parity")),
        ("bytes", ctypes.c_longlong),
    ]  # fmt: skip


class RawReport(ctypes.Structure):
    """The report as the header writes it."""

    _fields_ = [("told", Told), ("many", ctypes.c_uint32), ("starved", _Starved * MOST_WAITS)]


@dataclass(frozen=True, slots=True)
class StarvedWait(Checked):
    """A wait at a barrier in memory that gave up because nothing could go on any more.

    Args:
        role: The role that waits: ``"role math"``; without roles, ``"warp 3"``.
        barrier: The barrier and its slot: ``"full[2]"``; without names, ``"the barrier at byte 16384"``.
        phase: The phase waited for, from 0.
        missing: Arrivals that are missing.
        count: Arrivals of a phase.
        missing_bytes: Bytes expected and not delivered; negative if more were delivered than expected.
        block: The block.
        thread: The first thread of the role that waits.
        line: The line of the wait in the text.
    """

    role: str
    barrier: str
    phase: int
    missing: int
    count: int
    missing_bytes: int
    block: int
    thread: int
    line: int

    def __str__(self) -> str:
        lacks = f"{self.missing} of {self.count} arrivals missing"
        if self.missing_bytes > 0:
            lacks += f", {self.missing_bytes} bytes have not been delivered"
        if self.missing_bytes < 0:
            lacks += f", {-self.missing_bytes} bytes more than expected were delivered"
        return f"{self.role} waits for {self.barrier}, phase {self.phase}: {lacks}"


@dataclass(frozen=True, slots=True)
class Report(Checked):
    """The result of a run on the CPU.

    Args:
        fault: As returned by ``hostsim.run``.
        why: Where the fault was, or the first wait that gave up; empty if all went well.
        waits: The waits that gave up when nothing could go on for the first time, one per role and barrier.
    """

    fault: int
    why: str
    waits: tuple[StarvedWait, ...]


def lanes_of(arch: str) -> int:
    """Return the lanes of a warp or wave of a kernel's target."""
    target = TARGETS.get(arch)
    return 32 if target is None else target.lanes


def role_of(kernel: KernelSource, thread: int) -> str:
    """Return the role of a thread; empty if the kernel names none."""
    warp = thread // lanes_of(kernel.arch)
    return next((name for name, first, many in kernel.roles if first <= warp < first + many), "")


def barrier_of(kernel: KernelSource, byte: int, skew_bytes: int) -> str:
    """Return the name and slot of the barrier at a byte of dynamic shared memory that begins off a multiple of 1024."""
    inside = byte - -skew_bytes % 1024
    for name, first, slots in kernel.barriers:
        if first <= inside < first + 8 * slots:
            return f"{name}[{(inside - first) // 8}]"
    return f"the barrier at byte {byte}"


def waits(raw: RawReport, kernel: KernelSource, skew_bytes: int) -> tuple[StarvedWait, ...]:
    """Return the waits that gave up, one per block, role and barrier."""
    found: dict[tuple[int, str, str], StarvedWait] = {}
    for each in raw.starved[: raw.many]:
        role = role_of(kernel, each.thread)
        named = f"role {role}" if role else f"warp {each.thread // lanes_of(kernel.arch)}"
        barrier = barrier_of(kernel, each.barrier, skew_bytes)
        numbers = (each.phase, each.pending, each.count, each.bytes, each.block, each.thread, each.line)
        found.setdefault((each.block, named, barrier), StarvedWait(named, barrier, *numbers))
    return tuple(found.values())


def why(fault: str, told: Told, kernel: KernelSource, skew_bytes: int) -> str:
    """Return where a fault happened, with the lines of the text, or where the threads wait forever."""
    if fault == "deadlock":
        where = {**dict(zip(_WAITS[1:], told.waits[1:], strict=True)), "have ended": told.ended, "run": told.waits[0]}
        counts = ", ".join(f"{many} threads {what}" for what, many in where.items() if many)
        return f"in block {told.block}, {counts}{_line(kernel, told.line, 'at')}{_line(kernel, told.met, 'at')}"
    text = _thread(kernel, told.thread, f" of block {told.block}")
    if fault.startswith("shared"):
        text += f", byte {told.byte}"
    if told.barrier != NOWHERE:
        text += f", {barrier_of(kernel, told.barrier, skew_bytes)}"
        text += f" of block {told.where}" if told.where != told.block else ""
    if told.arrivals:
        text += f": {told.arrivals} arrivals with {told.pending} pending"
    if told.other != NOWHERE:
        part = next((part for begin, part in _OTHERS.items() if fault.startswith(begin)), "with {}")
        text += f"; {part.format(_thread(kernel, told.other))}"
    return text + _line(kernel, told.line, "at") + _line(kernel, told.met, "others wait at")


def _thread(kernel: KernelSource, thread: int, of: str = "") -> str:
    role = role_of(kernel, thread)
    return f"thread {thread}{of}{f' (role {role})' if role else ''}"


def _line(kernel: KernelSource, number: int, how: str) -> str:
    """Describe a line of the text; empty if unknown."""
    lines = kernel.text.splitlines()
    return f"; {how} line {number}: {lines[number - 1].strip()}" if 0 < number <= len(lines) else ""
