"""Shared-memory accesses of an executed kernel: its instructions, their bank turns, and races.

The CPU runs each thread separately and logs every access with its place in the text and how often the thread has passed
it. The accesses of one block, place, pass and warp form one instruction of that warp; lanes missing from it were
inactive. A phase of a block ends at its barrier, a step of a warp also at ``la_sync_warp``; accesses of one phase by
two warps, or of one step by two lanes, are unordered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground.record import Checked
from layoutalg.targets import banks
from layoutalg.targets.registry import lookup

_NVIDIA = {1: "b8", 2: "b16", 4: "b32", 8: "v2.b32", 16: "v4.b32"}
COLUMNS = 8
"""Columns of an entry: place, pass, block, thread, byte offset, kind and bytes, phase of the block, step."""
_KINDS = ("load", "store", "ldmatrix", "stmatrix")


@dataclass(frozen=True, slots=True)
class SharedAccess(Checked):
    """One instruction of one warp or wave."""

    kind: str  # ``"load"``, ``"store"``, ``"ldmatrix"`` or ``"stmatrix"``
    size_bytes: int  # bytes per lane; for matrix instructions, 16 per matrix
    block: int
    warp: int  # the warp of the block
    place: int  # number of the access in the text
    byte_addresses: tuple[int | None, ...]  # byte offset of each lane, None for inactive lanes

    def instruction(self, target: str) -> str:
        """Return the instruction's name on a target: ``"ld.shared.v4.b32"``, ``"ds_read_b64"``, ..."""
        if self.kind.endswith("matrix"):
            return f"{self.kind}.x{self.size_bytes // 16}"
        if lookup(target).vendor == "nvidia":
            return f"{'ld' if self.kind == 'load' else 'st'}.shared.{_NVIDIA[self.size_bytes]}"
        return f"ds_{'read' if self.kind == 'load' else 'write'}_b{8 * self.size_bytes}"

    def turns(self, target: str) -> int:
        """Return the bank turns on a target.

        Raises: RepresentabilityError: LA712, if they are unpublished.
        """
        return banks.turns(target, self.instruction(target), self.byte_addresses)


@dataclass(frozen=True, slots=True)
class Trace(Checked):
    """The result of a traced run on the CPU."""

    fault: int  # as returned by ``hostsim.run``
    accesses: tuple[SharedAccess, ...]  # the instructions in the order of their first lane
    arch: str  # the kernel's target
    why: str = ""  # where the fault was: thread, block and byte, or where the threads wait; empty without a fault

    def turns(self, target: str | None = None) -> int:
        """Return the turns of all accesses together, by default on the kernel's own target."""
        return sum(access.turns(self.arch if target is None else target) for access in self.accesses)


def gathered(log: npt.NDArray[np.uint32], lanes: int) -> tuple[SharedAccess, ...]:
    """Group a log of single-lane accesses into warp instructions."""
    found: dict[tuple[int, int, int, int, int], list[int | None]] = {}
    for place, hit, block, thread, byte, what in log[:, :6].tolist():
        warp, lane = divmod(thread, lanes)
        kind, size = what >> 16, what & 0xFFFF
        rows = lanes if kind < 2 else size // 2
        found.setdefault((place, hit, block, warp, what), [None] * rows)[lane] = byte
    return tuple(
        SharedAccess(_KINDS[what >> 16], what & 0xFFFF, block, warp, place, tuple(offsets))
        for (place, _, block, warp, what), offsets in found.items()
    )


def race(log: npt.NDArray[np.uint32], lanes: int) -> str:
    """Describe the first race (two unordered accesses to one byte); empty if there is none.

    A race on a byte within one block and phase: one access writes, and two are by different warps, or by different
    lanes in one step of a warp. Matrix instructions count as one additional lane of their warp (one for reads, one for
    writes), because their words belong to all lanes.
    """
    if not len(log):
        return ""
    what, thread = log[:, 5], log[:, 3].astype(np.int64)
    kind = what >> 16
    width = np.where(kind < 2, what & 0xFFFF, 16).astype(np.int64)
    at = np.repeat(np.arange(len(log)), width)
    byte = log[at, 4].astype(np.int64) + np.arange(len(at)) - np.repeat(np.cumsum(width) - width, width)
    warp = thread // lanes
    actor = np.where(kind < 2, thread, -1 - 2 * warp - (kind & 1))
    writes = (kind & 1).astype(bool)
    found = []
    for groups, actors in (((), warp), ((warp, log[:, 7]), actor)):
        columns = [log[at, 2], log[at, 6], byte, *(group[at] for group in groups)]
        order = np.lexsort([actors[at], *columns])
        fresh = np.ones(len(order), dtype=bool)
        fresh[1:] = np.any([np.diff(column[order].astype(np.int64)) != 0 for column in columns], axis=0)
        group = np.cumsum(fresh) - 1
        sorted_actors, sorted_writes = actors[at][order], writes[at][order]
        first, last = np.flatnonzero(fresh), np.append(np.flatnonzero(fresh)[1:], len(order)) - 1
        bad = (sorted_actors[first] != sorted_actors[last]) & np.bincount(group, sorted_writes).astype(bool)
        for number in np.flatnonzero(bad):
            members = at[order[first[number] : last[number] + 1]]
            writer = int(members[writes[members]].min())
            other = int(members[actors[members] != actors[writer]].min())
            found.append((min(writer, other), max(writer, other), int(byte[order[first[number]]])))
    if not found:
        return ""
    one, two, shared = min(found)
    texts = [f"{_KINDS[kind[entry]]} {log[entry, 0]} of thread {thread[entry]}" for entry in (one, two)]
    return f"byte {shared} of block {log[one, 2]}: {texts[0]} and {texts[1]}"
