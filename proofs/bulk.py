"""Bulk-copy plans: which byte runs go from global to shared offsets.

Global byte offsets count from the tile's first element, shared ones from the tile base. Tile dimensions are outermost
first.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.listed import ListedLayout, listed

CHECK = Checker("LA809", "invalid bulk-copy plan")
_SHOWN = 6


@dataclass(frozen=True, slots=True)
class BulkPlan(
    Record,
    Shown,
    code="LA809",
    schema="layoutalg/bulk-plan/1",
    json="instruction element_bytes tile strides copies ctas expect_tx_bytes",
):
    """Copies that together move a tile.

    Args:
        instruction: The instruction of each copy.
        element_bytes: Bytes of an element.
        tile: Extents of the tile.
        strides: Global element strides of its dimensions.
        copies: ``(global byte, shared byte, bytes)`` of each copy.
        ctas: Number of blocks that receive a multicast, at the same offset in each; otherwise 1.

    Example:
        >>> plan = BulkPlan("cp.async.bulk", 2, (2, 8), (64, 1), ((0, 0, 16), (128, 16, 16)))
        >>> plan.layout().table().tolist()
        [0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15]
    """

    instruction: str
    element_bytes: int
    tile: tuple[int, ...]
    strides: tuple[int, ...]
    copies: tuple[tuple[int, int, int], ...]
    ctas: int = 1

    def _validate(self) -> None:
        if not self.tile or min(self.tile) < 1 or len(self.strides) != len(self.tile):
            raise CHECK.malformed("strides", "must have one entry per dimension of a tile", self.strides)
        if math.prod(self.tile) > 2**20:
            raise CHECK.malformed("tile", "must have at most 2^20 elements", self.tile)
        if self.element_bytes < 1 or self.ctas < 1 or any(size < 1 or at < 0 for _, at, size in self.copies):
            raise CHECK.malformed("copies", "must have sizes >= 1 and shared offsets >= 0", self.copies[:4])

    @property
    def expect_tx_bytes(self) -> int:
        """Bytes that the load barrier must expect, in each block."""
        return sum(size for _, _, size in self.copies)

    def layout(self) -> ListedLayout:
        """Return the layout that the copies write: tile coordinates to element offsets in shared memory.

        Raises: MalformedError: LA809, if an element is copied in part, twice or not at all, or if two tile elements
            share a global address (then only ``sources`` is defined).
        """
        size = self.element_bytes
        found: npt.NDArray[np.int64] = np.full(self.tile, -1, dtype=np.int64)
        points = np.indices(self.tile, dtype=np.int64)
        source = sum(point * stride for point, stride in zip(points, self.strides, strict=True)) * size
        for start, to, many in self.copies:
            inside = (source >= start) & (source + size <= start + many)
            place = source - start + to
            if (inside & ((found >= 0) | (place % size != 0))).any():
                raise CHECK.malformed("copies", "must move each element once, to a whole offset", (start, to, many))
            found = np.where(inside, place // size, found)
        if (found < 0).any():
            at = tuple(int(part) for part in np.argwhere(found < 0)[0])
            raise CHECK.malformed("copies", "must move every element", at)
        return listed(found)

    def sources(self, shared_bytes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the global byte that the copies write to each shared byte.

        Raises: MalformedError: LA809, if a byte is not written exactly once.

        Example:
            >>> plan = BulkPlan("cp.async.bulk", 2, (2, 8), (64, 1), ((0, 0, 16), (128, 16, 16)))
            >>> plan.sources(np.array([4, 18])).tolist()
            [4, 130]
        """
        found = np.zeros(shared_bytes.shape, dtype=np.int64)
        times = np.zeros(shared_bytes.shape, dtype=np.int64)
        for start, to, many in self.copies:
            inside = (shared_bytes >= to) & (shared_bytes < to + many)
            found, times = np.where(inside, shared_bytes - to + start, found), times + inside
        if (times != 1).any():
            wrong = int(shared_bytes[times != 1].reshape(-1)[0])
            raise CHECK.malformed("copies", "must write each byte once", wrong)
        return found

    def __str__(self) -> str:
        many = len(self.copies)
        lines = [f"{many} x {self.instruction}" + (f" to {self.ctas} blocks" if self.ctas > 1 else "")]
        lines += [f"  {size} bytes: global {start} -> shared {to}" for start, to, size in self.copies[:_SHOWN]]
        return "\n".join(lines + [f"  {many - _SHOWN} more"] * (many > _SHOWN))
