"""Tiles read along rows and written along columns: register layouts, and small transposes in registers.

Notation: a thread reads vectors of ``take`` columns in ``give`` rows and writes vectors of ``give`` rows in ``take``
columns; a step is one such block of a thread. Both sides are linear layouts from (register, lane, warp) to (row, col);
the register bits are the rows of a block, its columns, then the steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutalg.f2 import LinearLayout
from layoutalg.ground.record import Checked
from layoutalg.targets.registry import vendor_of

WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class TileShape(Checked):
    """A tile and the blocks that a thread reads and writes at once; all numbers are powers of two."""

    rows: int  # rows of the tile
    cols: int  # columns of the tile
    take: int  # columns that a thread reads at once
    give: int  # rows that a thread writes at once
    lanes: int  # lanes of a warp or wave
    warps: int  # warps of the block

    @property
    def steps(self) -> int:
        """Blocks of a thread."""
        return self.rows * self.cols // (self.take * self.give * self.lanes * self.warps)

    def _bits(self, inner: Sequence[tuple[int, int]], outer: Sequence[tuple[int, int]]) -> LinearLayout:
        """A layout whose registers begin with ``inner``; lanes, warps and steps take ``outer``, in this order."""
        lanes, warps = self.lanes.bit_length() - 1, self.warps.bit_length() - 1
        bases = {
            "register": [*inner, *outer[lanes + warps :]],
            "lane": list(outer[:lanes]),
            "warp": list(outer[lanes : lanes + warps]),
        }
        return LinearLayout.from_bases(bases, {"row": self.rows, "col": self.cols})

    @property
    def reader(self) -> LinearLayout:
        """(register, lane, warp) to (row, col) as it is read: the lanes run along the columns."""
        take, give = _column_bits(1, self.take), _row_bits(1, self.give)
        outer = [*_column_bits(self.take, self.cols), *_row_bits(self.give, self.rows)]
        return self._bits([*give, *take], outer)

    @property
    def writer(self) -> LinearLayout:
        """(register, lane, warp) to (row, col) as it is written: the lanes run along the rows."""
        take, give = _column_bits(1, self.take), _row_bits(1, self.give)
        outer = [*_row_bits(self.give, self.rows), *_column_bits(self.take, self.cols)]
        return self._bits([*give, *take], outer)


def _row_bits(first: int, end: int) -> list[tuple[int, int]]:
    return [(1 << bit, 0) for bit in range(first.bit_length() - 1, end.bit_length() - 1)]


def _column_bits(first: int, end: int) -> list[tuple[int, int]]:
    return [(0, 1 << bit) for bit in range(first.bit_length() - 1, end.bit_length() - 1)]


def fields(words: int, name: str) -> list[str]:
    """Return the words of a value of ``words`` words; a one-word value is itself.

    Example:
        >>> fields(2, "a"), fields(1, "a")
        (['a.word[0]', 'a.word[1]'], ['a'])
    """
    return [name] if words == 1 else [f"{name}.word[{i}]" for i in range(words)]


def vector_of(words: Sequence[str], whole: int, target: str) -> str:
    """Return words as one value: the ``whole`` vector that they are all fields of, or a new one.

    For AMD always a new one, because clang spills vectors copied as a whole to scratch memory.

    Example:
        >>> vector_of(fields(2, "a"), 2, "sm_90a"), vector_of(["x", "y"], 2, "sm_90a"), vector_of(["x"], 4, "gfx942")
        ('a', 'la_words2{{x, y}}', 'x')
    """
    name = words[0].partition(".")[0]
    if len(words) == 1:
        return words[0]
    if len(words) == whole and list(words) == fields(whole, name) and vendor_of(target) != "amd":
        return name
    return f"la_words{len(words)}{{{{{', '.join(words)}}}}}"


def turned_words(
    rows: Sequence[Sequence[str]], element_bytes: int, names: Iterator[str]
) -> tuple[list[str], list[list[str]]]:
    """Return the statements of a small transpose in registers, and the names of the words of every column.

    Args:
        rows: Names of the words of every row, lowest columns first.
        element_bytes: Bytes of an element.
        names: Fresh names.

    Returns:
        Statements, and per column its words, lowest rows first.

    Example:
        >>> turned_words([["a"], ["b"]], 2, iter("xy"))
        (['const la_u32 x = la_permute(a, b, 0x5410u);', 'const la_u32 y = la_permute(a, b, 0x7632u);'], [['x'], ['y']])
    """
    if element_bytes >= WORD_BYTES:
        wide = element_bytes // WORD_BYTES
        count = len(rows[0]) // wide
        return [], [[row[wide * col + part] for row in rows for part in range(wide)] for col in range(count)]
    packed = WORD_BYTES // element_bytes
    lines: list[str] = []

    def pair(low: str, high: str, selector: int) -> str:
        name = next(names)
        lines.append(f"const la_u32 {name} = la_permute({low}, {high}, {selector:#06x}u);")
        return name

    columns: list[list[str]] = [[] for _ in range(packed * len(rows[0]))]
    for first in range(0, len(rows), packed):
        for word in range(len(rows[0])):
            held = [rows[first + row][word] for row in range(packed)]
            if packed == 2:
                made = [pair(held[0], held[1], 0x5410), pair(held[0], held[1], 0x7632)]
            else:  # bytes: combine rows 0, 1 and rows 2, 3 for columns 0, 1 (then 2, 3), then all four rows
                made = []
                for selector in (0x5140, 0x7362):
                    upper, lower = pair(held[0], held[1], selector), pair(held[2], held[3], selector)
                    made += [pair(upper, lower, 0x5410), pair(upper, lower, 0x7632)]
            for part, name in enumerate(made):
                columns[packed * word + part].append(name)
    return lines, columns
