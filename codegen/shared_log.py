"""What the warps of an executed kernel did in shared memory: its instructions, and the turns of the banks.

Main definitions: ``Trace``, ``SharedAccess``, ``gathered``.

Main statements: the CPU runs each thread by itself and notes every access with its place in the text and how often the
thread has passed it. The accesses of one block, one place, one pass and one warp are one instruction of that warp; a
lane that is not among them was inactive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets import banks
from layoutalg.targets.registry import lookup

_NVIDIA = {1: "b8", 2: "b16", 4: "b32", 8: "v2.b32", 16: "v4.b32"}
_KINDS = ("load", "store", "ldmatrix", "stmatrix")


@dataclass(frozen=True, slots=True)
class SharedAccess:
    """One instruction of one warp or wave.

    Args:
        kind: ``"load"``, ``"store"``, ``"ldmatrix"`` or ``"stmatrix"``.
        size_bytes: Bytes of each lane; for matrices of all the rows that a lane's number stands for.
        block: The block.
        warp: The warp of the block.
        place: Number of the access in the text.
        byte_addresses: Byte offset of each lane, None where it took no part.
    """

    kind: str
    size_bytes: int
    block: int
    warp: int
    place: int
    byte_addresses: tuple[int | None, ...]

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    def instruction(self, target: str) -> str:
        """Return the instruction's name on a target: ``"ld.shared.v4.b32"``, ``"ds_read_b64"``, ..."""
        if self.kind.endswith("matrix"):
            return f"{self.kind}.x{self.size_bytes // 16}"
        if lookup(target).vendor == "nvidia":
            return f"{'ld' if self.kind == 'load' else 'st'}.shared.{_NVIDIA[self.size_bytes]}"
        return f"ds_{'read' if self.kind == 'load' else 'write'}_b{8 * self.size_bytes}"

    def turns(self, target: str) -> int:
        """Return the turns that the banks of a target need.

        Raises: RepresentabilityError: LA712, where nobody published them.
        """
        return banks.turns(target, self.instruction(target), self.byte_addresses)


@dataclass(frozen=True, slots=True)
class Trace:
    """What a run on the CPU left.

    Args:
        fault: As ``hostsim.run`` returns it.
        accesses: The instructions in the order of their first lane.
        arch: The kernel's target.
    """

    fault: int
    accesses: tuple[SharedAccess, ...]
    arch: str

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    def turns(self, target: str | None = None) -> int:
        """Return the turns of all accesses together, on the kernel's own target where none is named."""
        return sum(access.turns(self.arch if target is None else target) for access in self.accesses)


def gathered(log: npt.NDArray[np.uint32], lanes: int) -> tuple[SharedAccess, ...]:
    """Return the instructions of warps that a log of single lanes shows.

    Args:
        log: Place, pass, block, thread, byte offset and kind of every access of a lane: uint32[n, 6].
        lanes: Lanes of a warp.
    """
    found: dict[tuple[int, int, int, int, int], list[int | None]] = {}
    for place, hit, block, thread, byte, what in log.tolist():
        warp, lane = divmod(thread, lanes)
        kind, size = what >> 16, what & 0xFFFF
        rows = lanes if kind < 2 else size // 2
        found.setdefault((place, hit, block, warp, what), [None] * rows)[lane] = byte
    return tuple(
        SharedAccess(_KINDS[what >> 16], what & 0xFFFF, block, warp, place, tuple(offsets))
        for (place, _, block, warp, what), offsets in found.items()
    )
