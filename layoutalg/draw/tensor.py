"""A tensor in global memory: its two innermost dimensions to scale, and byte offsets of the first elements."""

from __future__ import annotations

from layoutalg.draw.canvas import LEVELS, Canvas
from layoutalg.proofs.tensor import Tensor
from layoutalg.targets.nvidia.tensormap import element_bytes

WIDE, TALL = 300.0, 200.0
CELL = (62.0, 18.0)
CORNER = 8
"""Rows and columns of the corner whose byte offsets are written out."""
LINE_BYTES = 128
"""A cache line of global memory; elements of one line have one colour."""


def draw_tensor(canvas: Canvas, tensor: Tensor, top: float) -> None:
    """Draw the shape on the left and, where all sizes are numbers, byte offsets of the corner on the right."""
    canvas.text(4, top + 14, str(tensor), "h")
    size = element_bytes(tensor.dtype)
    _shape(canvas, tensor, size, top + 48)
    if not tensor.names:
        _corner(canvas, tensor, size, WIDE + 170, top + 48)
    known = f"base aligned to {tensor.base_align_bytes} bytes, {size} bytes an element"
    canvas.text(4, canvas.height + 16, known, "s")


def _shape(canvas: Canvas, tensor: Tensor, size: int, top: float) -> None:
    """The innermost two dimensions; the gap between one row and the next is hatched."""
    left = 60.0
    rows, columns = (1, *tensor.shape)[-2:]
    pitch, step = (0, *tensor.strides)[-2:]
    used, tall, padded = WIDE, TALL, False
    if isinstance(rows, int) and isinstance(columns, int):
        padded = isinstance(pitch, int) and step == 1 and pitch > columns
        row = pitch if padded else columns
        used = max(WIDE * columns / row, 2)
        tall = min(TALL, max(12.0, WIDE * rows / row))
    note = ", hatched: the gap between rows" if padded else ""
    canvas.text(left, top - 20, f"innermost {min(len(tensor.shape), 2)} of {len(tensor.shape)} dimensions{note}", "n")
    if padded:
        canvas.box(left, top, WIDE, tall, "x", f"{pitch} elements from one row to the next")
    canvas.box(left, top, used, tall, "z", f"{rows} rows of {columns} elements")
    canvas.frame(left, top, used, tall)
    canvas.text(left - 6, top + tall, rows, "s e")
    canvas.text(left + used, top + tall + 14, columns, "s e")
    canvas.text(left, top + tall + 30, f"row pitch {pitch} elements{_bytes(pitch, size)}, element stride {step}", "s")


def _bytes(count: object, size: int) -> str:
    return f" = {count * size} bytes" if isinstance(count, int) else ""


def _corner(canvas: Canvas, tensor: Tensor, size: int, left: float, top: float) -> None:
    """Byte offsets of the first rows and columns, all outer coordinates 0; a colour for each line of 128 bytes."""
    rows, columns = (min(int(extent), CORNER) for extent in (1, *tensor.shape)[-2:])
    pitch, step = (int(stride) for stride in (0, *tensor.strides)[-2:])
    offsets = [[(row * pitch + column * step) * size for column in range(columns)] for row in range(rows)]
    lines = sorted({offset // LINE_BYTES for row in offsets for offset in row})
    level = {line: place * (LEVELS - 1) // max(len(lines) - 1, 1) for place, line in enumerate(lines)}
    canvas.text(left, top - 20, "byte offsets of the first elements", "n")
    canvas.text(left, top - 6, f"one colour for each {LINE_BYTES}-byte line", "s")
    styles = [[f"c{level[offset // LINE_BYTES]}" for offset in row] for row in offsets]
    labels = [[str(offset) for offset in row] for row in offsets]
    titles = [[f"({r},{c}) at byte {label}" for c, label in enumerate(row)] for r, row in enumerate(labels)]
    wide = max(CELL[0], 7.4 * max(len(label) for row in labels for label in row) + 8)
    canvas.cells(left, top, (wide, CELL[1]), styles, labels, titles)
