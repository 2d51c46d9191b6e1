"""Divide a register layout by one instruction's fragment: decide whether it is a tiling by copies of the fragment.

Notation: a register layout maps (register, lane, outer axes) to tile coordinates; a fragment maps (register, lane) to
coordinates of one instruction's tile. Axes other than ``register`` and ``lane`` are *outer* (warps, usually); their
points are numbered with the first axis fastest.

R is a tiling of F iff its registers can be assigned to instructions, the same way in every lane and warp, so that
R(g(i, v), lane, warp) = F(v, lane) + start(i, warp), every start a multiple of the instruction's extents. Since F is
injective in lane 0, lane 0 determines which register of F each register of R is; nothing is searched, and the first
coordinate that contradicts the assignment is the witness.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.layout import Layout
from layoutalg.ground.record import Record
from layoutalg.ground.refusal import Broken
from layoutalg.proofs import certify
from layoutalg.proofs.certify import conditions

IntArray: TypeAlias = npt.NDArray[np.int64]
CHECK = Checker("LA831", "not a register layout")
MOST = 2**22
"""Largest layout compared by its table, in points."""


@dataclass(frozen=True, slots=True)
class Tiling(Record, code="LA831", schema="layoutalg/tiling/1", json="extents outer registers starts"):
    """A register layout as a list of instructions."""

    registers: tuple[tuple[int, ...], ...]  # per instruction, the layout's register for each register of the fragment
    # per instruction and outer point (warp), the tile coordinates where the instruction's tile starts
    starts: tuple[tuple[tuple[int, ...], ...], ...]
    outer: tuple[tuple[str, int], ...]  # the outer axes and their extents, first fastest
    extents: tuple[int, ...]  # extents of the instruction's tile

    @property
    def quotient(self) -> tuple[tuple[tuple[int, ...], ...], ...]:
        """Per instruction and outer point, the tile number: starts divided by the instruction's extents."""
        return tuple(
            tuple(tuple(part // extent for part, extent in zip(point, self.extents, strict=True)) for point in points)
            for points in self.starts
        )

    def table(self, fragment: Any) -> IntArray:
        """Return what the instructions denote: int64[outer point, lane, register, coordinate]."""
        held, _ = coordinates(fragment)
        held = held[0][..., : len(self.extents)]
        starts = np.array(self.starts, dtype=np.int64).reshape(len(self.starts), -1, len(self.extents))
        count = sum(map(len, self.registers))
        answer = np.zeros((starts.shape[1], held.shape[0], count, len(self.extents)), dtype=np.int64)
        for registers, points in zip(self.registers, starts, strict=True):
            answer[:, :, list(registers)] = held[None] + points[:, None, None, :]
        return answer

    def __str__(self) -> str:
        shape = "x".join(map(str, self.extents))
        many = len(self.registers)
        lines = [f"{many} instruction{'s' if many > 1 else ''} of tile {shape}"]
        for number, (registers, points) in enumerate(zip(self.registers, self.starts, strict=True)):
            if number == 4 < many:
                return "\n".join([*lines, f"  {many - number} more"])
            lines.append(f"  registers {_runs(registers)} at {', '.join(map(str, points[:4]))}" + (
                f", ... ({len(points)} warps)" if len(points) > 4 else ""
            ))  # fmt: skip
        return "\n".join(lines)


def coordinates(layout: Any) -> tuple[IntArray, tuple[tuple[str, int], ...]]:
    """Return the tile coordinates held by every register, and the outer axes.

    Args:
        layout: A layout from ``register``, ``lane`` (extent 1 if missing) and outer axes to tile coordinates; or an
            array of integers [warp, lane, register, coordinate].

    Returns:
        int64[outer point, lane, register, coordinate].

    Example:
        >>> from layoutalg.targets.layouts.nvidia_instructions import mma_fragment
        >>> found, outer = coordinates(mma_fragment("m16n8k16.f32.f16", "D"))
        >>> found.shape, outer, found[0, 5].tolist()
        ((1, 32, 4, 2), (), [[1, 2], [1, 3], [9, 2], [9, 3]])
    """
    if isinstance(layout, np.ndarray):
        if layout.ndim != 4 or layout.dtype.kind not in "iu" or not 0 < layout.size <= MOST * 4:
            raise CHECK.malformed("layout", "must be integers [warp, lane, register, coordinate]", layout.shape)
        return layout.astype(np.int64), (("warp", layout.shape[0]),) if layout.shape[0] > 1 else ()
    inputs = _axes(layout)
    if layout.size > MOST:
        raise CHECK.malformed("layout", f"must have at most {MOST} points", layout.size)
    outer = tuple((name, extent) for name, extent in inputs.items() if name not in ("register", "lane"))
    names = [*(name for name, _ in outer), "lane", "register"]
    extents = [*(extent for _, extent in outer), inputs.get("lane", 1), inputs.get("register", 1)]
    grid = np.meshgrid(*(np.arange(extent, dtype=np.int64) for extent in extents), indexing="ij")
    found = layout.apply({name: part.reshape(-1) for name, part in zip(names, grid, strict=True) if name in inputs})
    values = np.stack([np.broadcast_to(np.asarray(found[name]), grid[0].size) for name in layout.out_dims], axis=-1)
    shaped = values.reshape(*extents, -1)
    order = (*range(len(outer) - 1, -1, -1), len(outer), len(outer) + 1, len(outer) + 2)
    return shaped.transpose(order).reshape(-1, *shaped.shape[-3:]).astype(np.int64), outer


def tiling(layout: Any, fragment: LinearLayout, word: int = 1) -> Tiling | Broken:
    """Return how copies of a fragment tile a register layout, or the first point where they do not.

    With ``word`` = w, registers 0..w-1, w..2w-1, ... of the layout each share a 32-bit register and stay together, in
    order.

    Args:
        layout: (register, lane, outer axes) -> tile coordinates, in the fragment's order of coordinates; or an array of
            integers [warp, lane, register, coordinate].
        fragment: (register, lane) -> coordinates, injective in the registers of a lane. Trailing outputs of extent 1
            (the one matrix of an instruction) are dropped if the layout has fewer coordinates.
        word: Elements per 32-bit register.

    Example:
        >>> from layoutalg.targets.layouts.nvidia import mma_accumulator
        >>> from layoutalg.targets.layouts.nvidia_instructions import mma_fragment
        >>> found = tiling(mma_accumulator((32, 16), (2, 1), (16, 8)), mma_fragment("m16n8k16.f32.f16", "D"))
        >>> print(found)
        2 instructions of tile 16x8
          registers 0..3 at (0, 0), (16, 0)
          registers 4..7 at (0, 8), (16, 8)
        >>> found.quotient[1]
        ((0, 1), (1, 1))
    """
    if not isinstance(fragment, LinearLayout) or list(fragment.in_dims) != ["register", "lane"]:
        raise CHECK.malformed("fragment", "must be a LinearLayout of register and lane", fragment)
    wide = CHECK.integer(word, "word", 1, fragment.in_dims["register"] + 1)
    if fragment.in_dims["register"] % wide:
        raise CHECK.malformed("word", f"must divide the {fragment.in_dims['register']} registers of the fragment", word)
    rank = (
        layout.shape[-1] if isinstance(layout, np.ndarray) and layout.ndim else len(_axes(layout) and layout.out_dims)
    )
    sizes = tuple(fragment.out_dims.values())
    while len(sizes) > rank and sizes[-1] == 1:
        sizes = sizes[:-1]
    if len(sizes) != rank:
        raise CHECK.malformed("layout", f"must have the {len(sizes)} coordinates of the fragment", f"{rank}")
    table, outer = coordinates(layout)
    held = coordinates(fragment)[0][0][..., : len(sizes)]

    def evidence(_: IntArray) -> Any:
        found = certify.forced.fragments(table, held, sizes, wide)
        return None if found is None else certify.none_of(*found)

    found = _compared(table, held, outer, sizes, wide)
    return replace(found, evidence=evidence) if isinstance(found, Broken) else found


def wrong_axes(layout: Any, sizes: tuple[int, ...]) -> Broken | None:
    """Return why a layout does not map register and lane to coordinates of a tile; extents of 1 at the end may lack.

    Example:
        >>> from layoutalg.targets.layouts.nvidia_instructions import mma_fragment
        >>> fragment = mma_fragment("m16n8k16.f32.f16", "D")
        >>> wrong_axes(fragment, (16, 8)), str(wrong_axes(fragment, (16, 8, 4)))
        (None, 'the layout has 2 output coordinates, the operand has 3, coordinates = 2')
    """
    axes = tuple(getattr(layout, "in_dims", ()))
    if not isinstance(layout, Layout) or not {"register", "lane"} & set(axes):
        because = f"expected input axes 'register' and 'lane', got {axes}; "
        because += "a tile in shared memory is first read into registers, by ldmatrix, ld.shared or ds_read"
        return Broken("REGISTER_AXES", because, {"axes": axes})
    rank, whole = len(layout.out_dims), len(sizes) - (sizes[-1] == 1)
    if rank <= len(sizes) and all(size == 1 for size in sizes[rank:]):
        return None
    because = f"the layout has {rank} output coordinates, the operand has {whole}"
    return Broken("REGISTER_AXES", because, {"coordinates": rank}, conditions.one_of(rank, whole))


def _axes(layout: Any) -> dict[str, int]:
    if not isinstance(layout, Layout):
        raise CHECK.malformed("layout", "must be a layout with the axes register and lane", layout)
    inputs = layout.in_dims
    if not {"register", "lane"} & set(inputs):
        raise CHECK.malformed("layout", "must have the axes register and lane", tuple(inputs))
    return inputs


def _compared(
    table: IntArray, held: IntArray, outer: tuple[tuple[str, int], ...], sizes: tuple[int, ...], word: int
) -> Tiling | Broken:
    if table.shape[1] != held.shape[0]:
        return Broken("FRAGMENT", f"the instruction has {held.shape[0]} lanes", {"lanes": table.shape[1]})
    extents = np.array(sizes, dtype=np.int64)
    slots = _slots(table[0, 0] % extents, held[0])
    if isinstance(slots, int):
        because = "no register of the fragment holds this coordinate of its tile in this lane"
        return Broken("FRAGMENT", because, {**_point(slots, 0, 0, outer), "holds": tuple(table[0, 0, slots].tolist())})
    starts = table[:, 0] - held[0][slots]
    wrong = np.argwhere((starts % extents).any(axis=-1))
    if len(wrong):
        warp, register = (int(part) for part in wrong[0])
        needed = starts[warp, register] // extents * extents + held[0, slots[register]]
        return _elsewhere(register, 0, warp, outer, table[warp, 0, register], needed)
    expected = held[None][:, :, slots] + starts[:, None]
    wrong = np.argwhere((table != expected).any(axis=-1))
    if len(wrong):
        warp, lane, register = (int(part) for part in wrong[0])
        at = (warp, lane, register)
        return _elsewhere(register, lane, warp, outer, table[at], expected[at])
    return _dealt(slots, starts.transpose(1, 0, 2), held.shape[1], word, outer, sizes)


def _slots(low: IntArray, held: IntArray) -> IntArray | int:
    """The fragment register of each register, by lane 0; or the first register that matches none."""
    places = {tuple(entry): place for place, entry in enumerate(held.tolist())}
    if len(places) != len(held):
        raise CHECK.malformed("fragment", "must hold distinct elements in the registers of lane 0", held.tolist())
    found = [places.get(tuple(entry), -1) for entry in low.tolist()]
    return found.index(-1) if -1 in found else np.array(found, dtype=np.int64)


def _dealt(
    slots: IntArray, starts: IntArray, many: int, word: int, outer: tuple[tuple[str, int], ...], sizes: tuple[int, ...]
) -> Tiling | Broken:
    """Group registers into instructions: same start in every warp, each fragment register equally often."""
    points = [tuple(map(tuple, entry)) for entry in starts.tolist()]
    place = slots.tolist()
    words: dict[Any, dict[int, list[int]]] = {}
    for register in range(0, len(place), word):
        run = list(range(register, register + word))
        apart = next(
            (
                other for step, other in enumerate(run)
                if other >= len(place) or place[register] % word or place[other] != place[register] + step
                or points[other] != points[register]
            ),
            None,
        )  # fmt: skip
        if apart is not None:
            last = register + word - 1
            because = f"registers {register}..{last} must be {word} consecutive elements of one 32-bit register"
            return Broken("FRAGMENT", because, {"register": apart, "lane": 0, "shares with": register})
        words.setdefault(points[register], {}).setdefault(place[register], []).append(register)
    deals: list[tuple[tuple[int, ...], Any]] = []
    for start, found in words.items():
        copies = len(found[min(found)])
        for slot in range(0, many, word):
            if len(found.get(slot, ())) != copies:
                because = "a fragment register occurs more or less often than the others of its instruction"
                counts = {"fragment register": slot, "times": len(found.get(slot, ())), "others": copies}
                return Broken("FRAGMENT", because, {"tile at": start[0], **counts})
        for copy in range(copies):
            deal = [found[slot][copy] + step for slot in range(0, many, word) for step in range(word)]
            deals.append((tuple(deal), start))
    deals.sort(key=lambda deal: min(deal[0]))
    return Tiling(tuple(deal for deal, _ in deals), tuple(start for _, start in deals), outer, sizes)


def _elsewhere(
    register: int, lane: int, warp: int, outer: tuple[tuple[str, int], ...], got: Any, needed: Any
) -> Broken:
    both = {"holds": tuple(map(int, got)), "needs": tuple(map(int, needed))}
    because = f"lane {lane} does not match the fragment" if lane else "warps must own whole instruction tiles"
    return Broken("FRAGMENT", because, {**_point(register, lane, warp, outer), **both})


def _point(register: int, lane: int, number: int, outer: tuple[tuple[str, int], ...]) -> dict[str, object]:
    found: dict[str, object] = {"register": register, "lane": lane}
    for name, extent in outer:
        number, found[name] = divmod(number, extent)
    return found


def _runs(registers: tuple[int, ...]) -> str:
    """Registers as runs, ``0..3 8..11``."""
    runs: list[list[int]] = []
    for register in registers:
        if runs and register == runs[-1][-1] + 1:
            runs[-1].append(register)
        else:
            runs.append([register])
    return " ".join(str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs)
