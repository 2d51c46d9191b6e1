"""Draw the F2 matrix of a linear layout: which input bits flip which output bits."""

from __future__ import annotations

from layoutalg.draw.canvas import Canvas
from layoutalg.f2 import LinearLayout

CELL = 20.0


def _bits(axes: dict[str, int]) -> list[str]:
    """The name of each bit, lowest first: ``lane 4`` is the lane bit of weight 4."""
    return [f"{name} {1 << bit}" for name, extent in axes.items() for bit in range(extent.bit_length() - 1)]


def entries(layout: LinearLayout) -> tuple[list[str], list[str], list[list[int]]]:
    """Return output bits, input bits and the matrix, one row per output bit.

    Example:
        >>> entries(LinearLayout.from_bases({"i": [(1,), (3,)]}, {"o": 4}))
        (['o 1', 'o 2'], ['i 1', 'i 2'], [[1, 1], [0, 1]])
    """
    outs, ins = _bits(layout.out_dims), _bits(layout.in_dims)
    return outs, ins, [[column >> row & 1 for column in layout.columns] for row in range(len(outs))]


def draw_matrix(canvas: Canvas, layout: LinearLayout, top: float) -> None:
    """Draw the matrix below ``top``: rows are output bits, columns input bits, a last column for the constant."""
    outs, ins, rows = entries(layout)
    constant = [layout.constant >> bit & 1 for bit in range(len(outs))]
    heads = ins + (["constant"] if any(constant) else [])
    canvas.text(4, top + 14, f"{', '.join(layout.in_dims)} -> {', '.join(layout.out_dims)} over F2", "h")
    left = 16 + 7.0 * max((len(name) for name in outs), default=0)
    base = top + 34 + 5.4 * max((len(name) for name in heads), default=0)
    for place, name in enumerate(heads):
        x = left + place * CELL + 12
        canvas.parts.append(
            f'<g transform="translate({x:g},{base - 6:g}) rotate(-60)"><text class="s">{name}</text></g>'
        )
    for place, name in enumerate(outs):
        canvas.text(left - 6, base + place * CELL + 14, name, "s e")
    shown = [row + ([one] if any(constant) else []) for row, one in zip(rows, constant, strict=True)]
    styles = [["c2" if one else "z" for one in row] for row in shown]
    labels = [["1" if one else "" for one in row] for row in shown]
    titles = [
        [
            f"{name} {'flips' if one and name != 'constant' else 'sets' if one else 'does not touch'} {out}"
            for name, one in zip(heads, row, strict=True)
        ]
        for out, row in zip(outs, shown, strict=True)
    ]
    canvas.cells(left, base, (CELL, CELL), styles, labels, titles)
    canvas.text(4, canvas.height + 14, f"rank {layout.rank} of {len(ins)} inputs and {len(outs)} outputs", "s")


def matrix_text(layout: LinearLayout) -> str:
    """Return the matrix as text.

    Example:
        >>> print(matrix_text(LinearLayout.from_bases({"i": [(1,), (3,)]}, {"o": 4})))
            i 1 i 2
        o 1   1   1
        o 2   .   1
    """
    outs, ins, rows = entries(layout)
    left = max((len(name) for name in outs), default=0)
    widths = [max(len(name), 1) for name in ins]
    lines = [" ".join([" " * left, *(name.rjust(width) for name, width in zip(ins, widths, strict=True))])]
    for name, row in zip(outs, rows, strict=True):
        cells = ("1".rjust(width) if one else ".".rjust(width) for one, width in zip(row, widths, strict=True))
        lines.append(" ".join([name.ljust(left), *cells]))
    return "\n".join(line.rstrip() for line in lines)
