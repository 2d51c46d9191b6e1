"""Plans of ``tcgen05`` consumers, and their check."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Checked, Record
from layoutalg.proofs.tcgen05.reading import read_bits, scale_bytes

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Tcgen05Tile(Checked, code="LA849"):
    """The part of an operand that one instruction reads.

    Args:
        mn: First row.
        k: First element along K; for scales, the first group.
        encoded: The 64 bits, relative to a tile base of 0.
    """

    mn: int
    k: int
    encoded: int

    def to_json(self) -> list[object]:
        """Return the tile as JSON-ready data."""
        return [self.mn, self.k, f"{self.encoded:#018x}"]


@dataclass(frozen=True, slots=True)
class Tcgen05Plan(
    Record,
    Shown,
    code="LA849",
    schema="layoutalg/tcgen05-plan/1",
    json="operand dtype kind rows k container_bits element_bits major swizzle align_bytes k_step tiles",
):
    """The descriptors with which ``tcgen05.mma`` reads operand A or B.

    Args:
        operand: ``"A"`` or ``"B"``.
        dtype: Element type.
        kind: The ``.kind`` of the instruction.
        rows: Rows per instruction in this block's shared memory.
        k: Elements along K per instruction.
        container_bits: Bits per element in shared memory, padding included.
        element_bits: Bits of an element.
        major: ``"K"`` or ``"MN"``: the transpose bit of the instruction descriptor.
        swizzle: The swizzle mode.
        align_bytes: Alignment of the tile base; add base / 16 to each descriptor.
        tiles: One entry per instruction and operand tile, rows slowest.
    """

    operand: str
    dtype: str
    kind: str
    rows: int
    k: int
    container_bits: int
    element_bits: int
    major: str
    swizzle: str
    align_bytes: int
    tiles: tuple[Tcgen05Tile, ...]

    @property
    def k_step(self) -> int | None:
        """The increment of the descriptor's low word per K step; None if not constant."""
        by_row: dict[int, list[int]] = {}
        for tile in self.tiles:
            by_row.setdefault(tile.mn, []).append(tile.encoded)
        steps = {after - before for words in by_row.values() for before, after in pairwise(words)}
        return steps.pop() if len(steps) == 1 else None

    def __str__(self) -> str:
        many, step = len(self.tiles), self.k_step
        head = f"{self.operand} of tcgen05.mma.kind::{self.kind}, {self.dtype}, {self.major}-major, {self.swizzle}"
        lines = [f"{head}: {many} descriptor{'s' if many > 1 else ''} of {self.rows} x {self.k}"]
        if step is not None:
            lines.append(f"  K step {step}")
        return "\n".join([*lines, *_tile_lines(self.tiles)])

    def table(self, base_bytes: int = 0) -> IntArray | str:
        """Return the bit addresses that the descriptors read, int64[mn, k], or why they are unknown."""

        def read(word: int) -> IntArray | str:
            return read_bits(word, self.rows, self.k, self.container_bits, self.element_bits, self.major, base_bytes)

        return _joined(self.tiles, read, (self.rows, self.k))


@dataclass(frozen=True, slots=True)
class ScalePlan(
    Record,
    Shown,
    code="LA849",
    schema="layoutalg/tcgen05-scale-plan/1",
    copy="tcgen05.cp.32x128b.warpx4",
    json="columns tiles",
):
    """Copies of scale factors from shared to tensor memory, each a ``tcgen05.cp.32x128b.warpx4``.

    Args:
        tiles: Descriptor of each block of 128 rows and 4 groups.
        columns: Tensor-memory columns per block.
    """

    tiles: tuple[Tcgen05Tile, ...]
    columns: int = 4

    def __str__(self) -> str:
        lines = [f"{len(self.tiles)} x tcgen05.cp.32x128b.warpx4, {self.columns} columns each"]
        return "\n".join([*lines, *_tile_lines(self.tiles)])

    def table(self, base_bytes: int = 0) -> IntArray | str:
        """Return the byte of each scale, int64[row, group], or why it is unknown; relative to the tile base."""
        del base_bytes
        return _joined(self.tiles, scale_bytes)


@dataclass(frozen=True, slots=True)
class TmemPlan(
    Record,
    Shown,
    code="LA849",
    schema="layoutalg/tmem-plan/1",
    json="shape data_path registers places split_columns",
):
    """The loads or stores that move a tensor-memory tile to or from registers.

    Args:
        shape: Shape of ``tcgen05.ld`` and ``tcgen05.st``.
        registers: Per access, the layout's register for each register of the access.
        places: Per access and warp, (lane, column) of the address, relative to the tile's.
        data_path: Letter of the layout of D; ``""`` if the tile is not a D.
        split_columns: Per 16x32bx2 access, its immediate, the column distance of the halves; otherwise ().
    """

    shape: str
    registers: tuple[tuple[int, ...], ...]
    places: tuple[tuple[tuple[int, int], ...], ...]
    data_path: str = ""
    split_columns: tuple[int, ...] = ()

    def __str__(self) -> str:
        many = len(self.places)
        told = f" of data path layout {self.data_path}" if self.data_path else ""
        lines = [f"{many} x tcgen05.ld.{self.shape}.x1{told}"]
        for held, points in zip(self.registers[:4], self.places[:4], strict=True):
            first, last = held[0], held[-1]
            lines.append(f"  registers {first}..{last} at {', '.join(map(str, points[:4]))}")
        if self.split_columns:
            lines[1:] = [
                f"{line}, upper half {split} columns further"
                for line, split in zip(lines[1:], self.split_columns[:4], strict=True)
            ]
        return "\n".join(lines + ([f"  {many - 4} more"] if many > 4 else []))


def _joined(
    tiles: Sequence[Tcgen05Tile], read: Callable[[int], IntArray | str], steps: tuple[int, int] | None = None
) -> IntArray | str:
    """Return what descriptors read, tile by tile, or why it is unknown; ``steps`` are the distances of tiles."""
    blocks: dict[tuple[int, int], IntArray] = {}
    for tile in tiles:
        found = read(tile.encoded)
        if isinstance(found, str):
            return found
        blocks[tile.mn, tile.k] = found
    axes = [sorted({place[axis] for place in blocks}) for axis in (0, 1)]
    even = steps is None or all(at == [*range(0, len(at) * step, step)] for at, step in zip(axes, steps, strict=True))
    if not blocks or not even or set(product(*axes)) != set(blocks):
        return "the tiles do not form a grid"
    return np.block([[blocks[mn, k] for k in axes[1]] for mn in axes[0]])


def _tile_lines(tiles: Sequence[Tcgen05Tile]) -> list[str]:
    """Return a line for each of the first four tiles, and one for the rest."""
    lines = [f"  ({tile.mn}, {tile.k}): {tile.encoded:#018x}" for tile in tiles[:4]]
    return lines + ([f"  {len(tiles) - 4} more"] if len(tiles) > 4 else [])


def refuted(plan: Tcgen05Plan | ScalePlan, wanted: IntArray, bases: tuple[int, ...] = (0,)) -> str:
    """Return why a plan does not read what was requested at some tile base, or "".

    Args:
        plan: The plan.
        wanted: Bit addresses of an operand or bytes of scales, relative to the tile base.
        bases: Tile bases in bytes.

    Example:
        >>> refuted(ScalePlan(()), np.zeros((128, 4), dtype=np.int64))
        'the tiles do not form a grid'
    """
    for base in bases:
        read = plan.table(base)
        if isinstance(read, str):
            return read
        moved = wanted + (8 * base if isinstance(plan, Tcgen05Plan) else 0)
        if read.shape != moved.shape:
            return f"the tiles cover {read.shape}, expected {moved.shape}"
        wrong = np.argwhere(read != moved)
        if len(wrong):
            mn, k = (int(part) for part in wrong[0])
            return f"({mn}, {k}) is read from {int(read[mn, k])}, expected {int(moved[mn, k])}, at base {base}"
    return ""
