"""Draw tensor memory, 128 lanes by 512 columns: allocations, and the part each warp accesses."""

from __future__ import annotations

from typing import Any

from layoutalg.draw.canvas import Canvas, level_of
from layoutalg.proofs.tcgen05 import TmemPlan
from layoutalg.targets.nvidia.tcgen05 import TmemAccess, TmemAllocation, TmemUse
from layoutalg.targets.nvidia.tcgen05.memory import COLUMNS, LANES, WARP_LANES

TMEM = (TmemPlan, TmemUse, TmemAllocation, TmemAccess)
WIDE, LANE_TALL = 660.0, 1.75
_COLUMNS = {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8}
"""Columns of one ``.x1`` access, by shape."""


def draw_tmem(canvas: Canvas, value: Any, top: float) -> None:
    """Draw labelled boxes of lanes and columns."""
    boxes, head, note = _boxes(value)
    last = max((column + wide for _, _, column, wide, _, _ in boxes), default=0)
    shown = (
        COLUMNS if isinstance(value, (TmemUse, TmemAllocation)) else min(COLUMNS, max(32, 1 << (last - 1).bit_length()))
    )
    left, base, scale = 110.0, top + 46, WIDE / shown
    tall = LANES * LANE_TALL
    canvas.text(4, top + 14, head, "h")
    canvas.box(left, base, shown * scale, tall, "z", f"tensor memory, columns 0 to {shown - 1}")
    step = max(1, shown // 16)
    for column in range(0, shown, step):
        canvas.text(left + column * scale, base - 6, column, "s m")
    canvas.text(left - 14, base - 6, "lanes / column", "s e")
    for warp in range(LANES // WARP_LANES):
        y = base + warp * WARP_LANES * LANE_TALL
        canvas.text(left - 6, y + 24, f"{warp * 32}..{warp * 32 + 31}", "s e")
        canvas.text(left - 6, y + 38, f"warp {warp}", "s e")
    fits = all(columns * scale >= 7 * len(words.split(":")[0]) for _, _, _, columns, _, words in boxes)
    for lane, lanes, column, columns, level, words in boxes:
        x, y = left + column * scale, base + lane * LANE_TALL
        style = f"c{level}"
        canvas.box(x, y, columns * scale, lanes * LANE_TALL, style, words)
        if columns * scale >= 4:
            canvas.frame(x, y, columns * scale, lanes * LANE_TALL)
        label = words.split(":")[0]
        if fits and lanes * LANE_TALL >= 14:
            canvas.text(x + columns * scale / 2, y + min(lanes * LANE_TALL / 2, 24) + 4, label, f"m t{level}")
    for warp in range(5):
        y = base + warp * WARP_LANES * LANE_TALL
        canvas.frame(left, y, shown * scale, 0.2)
    canvas.text(4, canvas.height + 14, note, "s")


def _boxes(value: Any) -> tuple[list[tuple[int, int, int, int, int, str]], str, str]:
    """(lane, lanes, column, columns, level, words) of every box, the head and the note."""
    if isinstance(value, TmemAccess):
        found = [(value.lane, value.lanes, value.column, value.width, 8, f"warp {value.warp}: {value}")]
        if value.split_columns:
            far = value.column + value.split_columns
            found.append((value.lane, value.lanes, far, value.width, 12, f"warp {value.warp}: the second half"))
        return (
            found,
            str(value),
            f"address {value.address:#x}: lane * 2^16 + column; {value.registers} registers per thread",
        )
    if isinstance(value, TmemPlan):
        lanes, wide = 32 if value.shape == "32x32b" else 16, _COLUMNS.get(value.shape, 1)
        most = max(1, len(value.places) - 1)
        found = [
            (
                lane, lanes, column, wide, level_of(number, 0, most),
                f"{number}: access {number} of warp {warp}, registers {held[0]} to {held[-1]}, at ({lane}, {column})",
            )
            for number, (held, points) in enumerate(zip(value.registers, value.places, strict=True))
            for warp, (lane, column) in enumerate(points)
        ]  # fmt: skip
        path = f" of data path layout {value.data_path}" if value.data_path else ""
        return (
            found,
            f"{len(value.places)} x tcgen05.ld.{value.shape}.x1{path}",
            "one box per access and warp, numbered and coloured in order",
        )
    live = (value,) if isinstance(value, TmemAllocation) else value.live
    found = [
        (
            0, LANES, each.start_column, each.columns, level_of(number, -1, len(live)),
            f"{each.columns} columns: allocation {number}, columns {each.start_column} to {each.end_column - 1}",
        )
        for number, each in enumerate(live)
    ]  # fmt: skip
    free = COLUMNS - sum(each.columns for each in live)
    note = f"{free} columns are free"
    if isinstance(value, TmemUse):
        note += "; the allocation permit was relinquished" if value.relinquished else ""
        note += f"; warp {value.warp} allocates, cta_group {value.cta_group}" if value.warp >= 0 else ""
    return found, f"tensor memory: {len(live)} allocation{'' if len(live) == 1 else 's'}", note
