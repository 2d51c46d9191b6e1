"""A kernel that moves an array, and what its launch needs.

References: CUDA C++ programming guide, technical specifications per compute capability; HIP, ``hipLaunchKernel``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.kernels.arguments import ArrayArgument, Place, checked_places
from layoutalg.codegen.launch import place_map
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, InfeasibleError, Repair
from layoutalg.ground.record import Checked
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.served import Served
from layoutalg.proofs.swizzling import SwizzlePlan
from layoutalg.targets.registry import Target, lookup
from layoutalg.targets.target_model import model_of

CHECK = Checker("LA945", "cannot generate this kernel")
MOST_EXTENT = 1 << 31
MOST_BLOCKS = (1 << 31) - 1
MOST_WORK_ITEMS = (1 << 32) - 1
MOST_BYTES = 1 << 46
STATUS_BYTES = 4
PERSISTENT_GRID = "blocks"
"""The parameter of a persistent kernel that gives the number of blocks sharing its tiles."""


@dataclass(frozen=True, slots=True)
class ArrayKernel(Checked):
    """A kernel that moves an array from one place to another.

    Args:
        kernel: The text and the numbers of a launch.
        blocks: Blocks of the grid; for a persistent kernel, the number of tiles.
        what: What it does, in one line.
        moved_bytes: Minimum bytes read and written.
        arrays: The arrays that it takes, in parameter order.
        swizzle: The shared layout, if threads read and write one, and the turns of its banks.
        maps: Descriptors of source and destination, relative to their addresses; empty without TMA.
        persistent: Whether blocks loop over tiles, so that any number of blocks from 1 to ``blocks`` works.
        served: How the banks of shared memory serve the accesses of one tile.
    """

    kernel: KernelSource
    blocks: int
    what: str
    moved_bytes: int
    arrays: tuple[ArrayArgument, ...]
    swizzle: SwizzlePlan | None = None
    maps: tuple[bytes, ...] = ()
    persistent: bool = False
    served: tuple[Served, ...] = ()

    def _validate(self) -> None:
        grid = PERSISTENT_GRID if self.persistent else self.blocks
        object.__setattr__(self, "kernel", replace(self.kernel, grid=grid))

    def __str__(self) -> str:
        grid = f"1 to {self.blocks}" if self.persistent else f"{self.blocks}"
        lines = [
            f"kernel        {self.kernel.name} for {self.kernel.arch}: {self.what}",
            f"launch        {grid} blocks of {self.kernel.threads} threads, "
            f"{self.kernel.dynamic_smem_bytes} bytes of shared memory",
        ]
        lines += [f"shared        {each}" for each in self.served]
        return "\n".join(lines)

    def arguments(
        self,
        source: Place,
        destination: Place,
        blocks: int | None = None,
        status: Place | None = None,
        index: Place | None = None,
    ) -> list[Any]:
        """Return the arguments of a launch, one per parameter.

        Args:
            source: Address of the source, a contiguous numpy array for a run on the CPU, or a ``DeviceTensor``.
            destination: The destination, likewise; must not overlap the source.
            blocks: Blocks of the launch of a persistent kernel; by default one per tile. A launch with another grid is
                refused.
            status: Array for one status word per block of a persistent kernel, 1 on success; by default a new array.
            index: The indices of a gather.

        Arrays have the extents in ``arrays``, or one dimension.
        """
        places: dict[str, Place] = {"source": source, "destination": destination}
        if len(self.arrays) != 2 + (index is not None):
            rule = "must be given for a gather" if index is None else "must be left out: only a gather takes indices"
            raise CHECK.malformed("index", rule, index)
        if index is not None:
            places["index"] = index
        addresses = checked_places(self.arrays, places)
        count = CHECK.integer(self.blocks if blocks is None else blocks, "blocks", 1, self.blocks + 1)
        if not self.persistent and count != self.blocks:
            raise CHECK.malformed("blocks", f"must be {self.blocks} or left out: the kernel is not persistent", count)
        if not self.maps:
            return [places[argument.name] for argument in self.arrays]
        maps, status = launch_values(self.maps, addresses, count, status)
        return [*maps, count, status]


def launch_values(
    maps: Sequence[bytes], addresses: Sequence[int], blocks: int, status: Place | None
) -> tuple[list[bytes], Place]:
    """Return maps at their addresses, and the array for a status word of each block."""
    placed = [place_map(raw, address) for raw, address in zip(maps, addresses, strict=True)]
    return placed, status_words(blocks, status)


def status_words(blocks: int, status: Place | None) -> Place:
    """Return the array for a status word of each block, by default a new one."""
    words = np.zeros(blocks, dtype=np.int32) if status is None else status
    stated = ArrayArgument("status", (blocks,), STATUS_BYTES, STATUS_BYTES, written=True)
    checked_places((stated,), {"status": words})
    return words


def checked_shape(shape: object, rank: int | None = None) -> tuple[int, ...]:
    """Return extents, each from 1 to 2^31 - 1, of an addressable array."""
    if not isinstance(shape, (tuple, list)) or not shape:
        raise CHECK.malformed("shape", "must be a sequence of extents, outermost first", shape)
    found = tuple(CHECK.integer(extent, "shape", 1, MOST_EXTENT) for extent in shape)
    if rank is not None and len(found) != rank:
        raise CHECK.malformed("shape", f"must have {rank} extents", found)
    if prod(found) > MOST_BYTES // 16:
        raise CHECK.malformed("shape", f"must have at most {MOST_BYTES // 16} elements", found)
    return found


def checked_extents(shape: object, names: Sequence[str]) -> tuple[int, ...]:
    """Return extents by their names, each from 1 to 2^31 - 1; arrays of them are checked with ``checked_shape``.

    Example:
        >>> checked_extents([16, 8], ("rows", "columns"))
        (16, 8)
    """
    if not isinstance(shape, (tuple, list)) or len(shape) != len(names):
        raise CHECK.malformed("shape", f"must have {len(names)} extents: {', '.join(names)}", shape)
    return tuple([CHECK.integer(extent, "shape", 1, MOST_EXTENT) for extent in shape])


def element_bytes(dtype: object, sizes: Sequence[int] = (1, 2, 4, 8)) -> int:
    """Return the element size in bytes of a type, by any of its names."""
    found = element_type(dtype)
    if found.bits % 8 or found.bits // 8 not in sizes:
        raise CHECK.malformed("dtype", f"must have elements of {', '.join(map(str, sizes))} bytes", str(dtype))
    return found.bits // 8


def elements(size: int) -> str:
    """Return the phrase for elements of a size."""
    return f"elements of {size} byte{'s' if size > 1 else ''}"


def sentence(words: str) -> str:
    """Return the text with its first letter in upper case."""
    return words[:1].upper() + words[1:]


def checked_target(target: object) -> Target:
    """Return a target by its name."""
    return lookup(CHECK.kind(target, str, "target"))


def fitting(smem: int, target: str, what: str) -> int:
    """Return ``smem``, refused if a block of the target has less shared memory."""
    name = "shared_bytes_per_block_optin" if lookup(target).vendor == "nvidia" else "lds_bytes_per_block"
    limit = model_of(target).limit(name)
    if not isinstance(limit, Unknown) and isinstance(limit.value, int) and smem > limit.value:
        because = f"{smem} bytes for {what}, of {limit.value}"
        message = f"the kernel does not fit a block's shared memory on {target}"
        raise InfeasibleError(Diagnostic("LA946", message, (what,), because, source=str(limit.source)))
    return smem


def most_blocks(target: Target, threads: int) -> int:
    """Return the maximum grid of a launch: 2^31 - 1 blocks, and for AMD fewer than 2^32 threads in total.

    Example:
        >>> most_blocks(lookup("gfx942"), 256)
        16777215
    """
    return MOST_BLOCKS if target.vendor == "nvidia" else min(MOST_BLOCKS, MOST_WORK_ITEMS // threads)


def checked_grid(
    blocks: Callable[[int], int], extent: int, most: int, *, what: str = "blocks", splits: bool = True
) -> int:
    """Return ``blocks(extent)``, refused if it exceeds ``most``.

    Args:
        blocks: Blocks or tiles as a function of the outermost extent.
        extent: That extent.
        most: The maximum.
        what: What is counted.
        splits: Whether launches on parts of the outermost extent are equivalent to one launch.

    Raises: InfeasibleError: LA948; if it splits, with the largest part that one launch can process.
    """
    found = blocks(extent)
    if found <= most:
        return found
    low, high = 0, extent if splits else 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if blocks(middle) <= most else (low, middle)
    fits = (
        (Repair("launch several times", f"on at most {low} of its {extent} outermost rows at a time"),) if low else ()
    )
    because = f"{found} {what}, at most {most}"
    raise InfeasibleError(
        Diagnostic("LA948", "the array is too large for one launch", ("shape",), because, repairs=fits)
    )


def checked_threads(threads: object, target: Target) -> int:
    """Return the threads of a block: a power of two, at least one warp, at most 1024."""
    return power(threads, "threads", target.lanes, 1024)


def power(value: object, argument: str, low: int, high: int) -> int:
    """Return a power of two from low to high."""
    found = CHECK.integer(value, argument)
    if found & (found - 1) or not low <= found <= high:
        raise CHECK.malformed(argument, f"must be a power of two from {low} to {high}", found)
    return found
