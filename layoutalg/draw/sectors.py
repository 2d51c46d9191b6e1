"""Draw which sectors of global memory the lanes of one instruction touch."""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.draw.canvas import Canvas, Cell, span

CELL = 20.0
MOST = 64
"""Sectors that are drawn."""


def draw_sectors(canvas: Canvas, title: str, starts: Sequence[int | None], size: int, sector: int, top: float) -> None:
    """Draw a row per lane and a column per sector; numbers are the bytes that the lane touches there.

    Args:
        canvas: The canvas.
        title: The line above.
        starts: First byte of each lane, None for an inactive one.
        size: Bytes of a lane.
        sector: Bytes of a sector.
        top: Upper edge.
    """
    canvas.text(4, top + 14, title, "h")
    active = [at for at in starts if at is not None]
    found = sorted({unit for at in active for unit in range(at // sector, (at + size - 1) // sector + 1)})
    shown = found[:MOST]
    cells: list[list[Cell]] = [[_cell(at, size, unit, sector) for unit in shown] for at in starts]
    across = [unit * sector if place % 4 == 0 else None for place, unit in enumerate(shown)]
    canvas.text(4, top + 36, "lane / byte", "s")
    canvas.cells(70.0, top + 42, (CELL, CELL), cells, across=across, down=range(len(starts)), gap=6)
    used = {unit: set[int]() for unit in shown}
    for at in active:
        for byte in range(at, at + size):
            if byte // sector in used:
                used[byte // sector].add(byte)
    base = top + 48 + CELL * len(starts)
    share = [(f"c{15 * len(used[unit]) // sector}", str(len(used[unit])), _share(unit, used, sector)) for unit in shown]
    canvas.cells(70.0, base, (CELL, CELL), [share], down=["used"], gap=6)
    more = f"; {len(found) - len(shown)} more sectors" if len(found) > len(shown) else ""
    canvas.text(
        4, base + CELL + 16, f"a column is a sector of {sector} bytes; numbers: bytes that are requested{more}", "s"
    )


def _cell(at: int | None, size: int, unit: int, sector: int) -> Cell:
    if at is None:
        return "x", "", "inactive"
    inside = min(at + size, (unit + 1) * sector) - max(at, unit * sector)
    if inside <= 0:
        return "z", "", f"{span(unit * sector, sector)}: not touched"
    return "c5", str(inside), f"{span(max(at, unit * sector), inside)}"


def _share(unit: int, used: dict[int, set[int]], sector: int) -> str:
    return f"{span(unit * sector, sector)}: {len(used[unit])} used"
