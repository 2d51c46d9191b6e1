"""Find loads and stores of tensor memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.tcgen05 import TmemPlan
from layoutalg.synth.fragments import coordinates, tiling
from layoutalg.targets.layouts.tmem import SPLIT_ATOM, tmem_atom
from layoutalg.targets.nvidia import tcgen05 as hardware

IntArray = npt.NDArray[np.int64]
WARP = 32
RULE = "FRAGMENT"


def find_registers(
    layout: Any, shape: str, places: IntArray | None = None, data_path: str = ""
) -> tuple[TmemPlan, IntArray, IntArray] | Broken:
    """Return the accesses of one shape that move a register layout, with their meaning and the requested table.

    Mathematically: with p the place in tensor memory of each coordinate, p after the layout is a tiling of the access
    shape by ``synth.fragments``, with columns of all accesses congruent modulo the shape's, and each access of warp w
    stays in lanes 32 (w mod 4) to 32 (w mod 4) + 31.

    Args:
        layout: (register, lane, warp) to (row, column), or an array [warp, lane, register, coordinate].
        shape: A shape of ``tcgen05.ld``; with 16x32bx2 every register is a separate access with its own distance
            between the halves.
        places: int64[row, column]: lane * 2^16 + column of each element of D; None if rows are lanes.
        data_path: The data-path letter of those places.

    Example:
        >>> from layoutalg.f2 import LinearLayout
        >>> lanes, warps = [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)], [(32, 0), (64, 0)]
        >>> held = {"register": [(0, 1), (0, 2)], "lane": lanes, "warp": warps}
        >>> layout = LinearLayout.from_bases(held, {"row": 128, "col": 4})
        >>> print(find_registers(layout, "32x32b")[0].places[1])
        ((0, 1), (32, 1), (64, 1), (96, 1))
    """
    table, outer = coordinates(layout)
    if any(name != "warp" for name, _ in outer):
        axes = tuple(name for name, _ in outer)
        return Broken(RULE, "the layout may only have the axes register, lane and warp", {"axes": axes})
    placed = table[..., :2].copy()
    if places is not None:
        beyond = np.argwhere(((placed < 0) | (placed >= places.shape)).any(axis=-1))
        if len(beyond):
            warp, lane, register = (int(part) for part in beyond[0])
            return Broken(RULE, "a register is out of bounds of D", {"warp": warp, "lane": lane, "register": register})
        found_at = places[placed[..., 0], placed[..., 1]]
        placed[..., 0], placed[..., 1] = found_at // hardware.LANE_STEP, found_at % hardware.LANE_STEP
    if shape == SPLIT_ATOM:
        return _split(placed, data_path)
    fragment = tmem_atom(shape)
    width = fragment.out_dims["col"] or 1
    first: Broken | None = None
    for shift in range(width):
        moved = placed.copy()
        moved[..., 1] += shift
        found = tiling(moved, fragment)
        if isinstance(found, Broken):
            first = first or found
            continue
        starts = tuple(tuple((lane, column - shift) for lane, column in points) for points in found.starts)
        wrong = _reach(shape, starts)
        if wrong is not None:
            first = first or wrong
            continue
        denoted = found.table(fragment)
        denoted[..., 1] -= shift
        return TmemPlan(shape, found.registers, starts, data_path), _flat(denoted), _flat(placed)
    return first or Broken(RULE, "the shape does not fit", {})


def _split(placed: IntArray, data_path: str) -> tuple[TmemPlan, IntArray, IntArray] | Broken:
    """Return the accesses of 16x32bx2: lane t moves row t mod 16 from the address, the upper half s columns later."""
    lanes, registers = placed.shape[1:3]
    if lanes != WARP:
        return Broken(RULE, f"a warp has {WARP} lanes, the layout has {lanes}", {"lanes": lanes})
    starts = placed[:, 0]
    splits = placed[0, 16, :, 1] - placed[0, 0, :, 1]
    lane = np.arange(WARP)
    wanted = np.stack(np.broadcast_arrays(
        starts[:, None, :, 0] + (lane % 16)[:, None], starts[:, None, :, 1] + (lane // 16)[:, None] * splits
    ), axis=-1)  # fmt: skip
    wrong = np.argwhere((wanted != placed).any(axis=-1))
    if len(wrong):
        warp, at, register = (int(part) for part in wrong[0])
        found, meant = ((int(v[0]), int(v[1])) for v in (placed[warp, at, register], wanted[warp, at, register]))
        because = f"lane {at} holds {found}; {SPLIT_ATOM} expects {meant}"
        return Broken(RULE, because, {"warp": warp, "lane": at, "register": register})
    if int(splits.min()) < 0:
        return Broken(RULE, "the upper half precedes the lower one", {"split_columns": int(splits.min())})
    places = tuple(tuple((int(row), int(column)) for row, column in starts[:, held]) for held in range(registers))
    for points, split in zip(places, splits.tolist(), strict=True):
        mismatch = _reach(SPLIT_ATOM, (points,), split)
        if mismatch is not None:
            return mismatch
    held = tuple((register,) for register in range(registers))
    plan = TmemPlan(SPLIT_ATOM, held, places, data_path, tuple(splits.tolist()))
    return plan, _flat(wanted), _flat(placed)


def _reach(shape: str, starts: tuple[tuple[tuple[int, int], ...], ...], split: int = 0) -> Broken | None:
    """Return the first access that its warp cannot perform."""
    for points in starts:
        for warp, (lane, column) in enumerate(points):
            try:
                hardware.TmemAccess(shape, 1, warp, lane, column, split)
            except LayoutError as error:
                because = error.diagnostic.because or error.diagnostic.what
                return Broken(RULE, because, {"warp": warp, "lane": lane, "column": column})
    return None


def _flat(table: IntArray) -> IntArray:
    """Flatten each place to lane * 2^16 + column."""
    return np.asarray(table[..., 0] * hardware.LANE_STEP + table[..., 1], dtype=np.int64).reshape(-1)
