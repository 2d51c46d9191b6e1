"""Draw the order of chunks before and after a swizzle, each chunk in one colour.

Notation: a chunk is ``2**base`` elements (or bytes), which a swizzle moves as a whole; a row has ``2**shift`` chunks.
"""

from __future__ import annotations

from layoutalg.cute.swizzle import Swizzle
from layoutalg.draw.canvas import LEVELS, Canvas

CELL = (30.0, 22.0)
SIDE = 32


def chunks(swizzle: Swizzle) -> tuple[list[list[int]], list[list[int]]]:
    """Return the chunk at each row and column of memory, before and after.

    Example:
        >>> chunks(Swizzle(1, 4, 1))
        ([[0, 1], [2, 3]], [[0, 1], [3, 2]])
    """
    columns = min(1 << max(abs(swizzle.shift), swizzle.bits), SIDE)
    rows = min(1 << swizzle.bits, SIDE)
    before = [[row * columns + column for column in range(columns)] for row in range(rows)]
    # a swizzle is its own inverse: the position of chunk k is also the chunk at position k
    after = [[swizzle(chunk << swizzle.base) >> swizzle.base for chunk in row] for row in before]
    return before, after


def draw_swizzle(canvas: Canvas, swizzle: Swizzle, top: float) -> None:
    """Draw the memory before and after the swizzle side by side."""
    unit = "bytes" if swizzle.unit == "byte" else "elements"
    canvas.text(4, top + 14, f"{swizzle}: chunks of {1 << swizzle.base} {unit}", "h")
    before, after = chunks(swizzle)
    wide = len(before[0])
    for place, (name, rows) in enumerate((("before", before), ("after", after))):
        left = 30 + place * (wide * CELL[0] + 44)
        canvas.text(left, top + 34, name, "n")
        for row in range(len(rows)):
            canvas.text(left - 4, top + 57 + row * CELL[1], row, "s e")
        styles = [[f"c{(chunk % wide) * (LEVELS - 1) // max(1, wide - 1)}" for chunk in row] for row in rows]
        titles = [
            [
                f"row {r}, chunk {c}: {unit} {(r * wide + c) << swizzle.base} to "
                f"{((r * wide + c + 1) << swizzle.base) - 1} hold chunk {chunk} = 0b{chunk:b}"
                for c, chunk in enumerate(row)
            ]
            for r, row in enumerate(rows)
        ]
        canvas.cells(left, top + 42, CELL, styles, [[str(chunk) for chunk in row] for row in rows], titles)
    canvas.text(4, canvas.height + 14, f"bits {_span(swizzle.target_mask)} ^= bits {_span(swizzle.source_mask)}", "s")


def _span(mask: int) -> str:
    if not mask:
        return "none"
    low = (mask & -mask).bit_length() - 1
    return f"{low}..{mask.bit_length() - 1}"


def swizzle_text(swizzle: Swizzle) -> str:
    """Return the chunks after the swizzle as text, one line per row of memory.

    Example:
        >>> print(swizzle_text(Swizzle(2, 4, 3)).splitlines()[1])
         9  8 11 10 13 12 15 14
    """
    _, after = chunks(swizzle)
    width = max(len(str(chunk)) for row in after for chunk in row)
    return "\n".join(" ".join(str(chunk).rjust(width) for chunk in row) for row in after)
