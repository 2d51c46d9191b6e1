"""Numbers that depend on the thread, as C text.

Main definitions: ``Numbers``, ``affine``.

Implementation notes: numbers are written as the exclusive or of constants chosen by the thread's bits where they are
affine in them, as in every linear layout, and as tables else. What expressions share is computed once, before them.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]


class Numbers:
    """Numbers that depend on the thread, as C text; tables collect what is not affine in its bits."""

    def __init__(self) -> None:
        self.tables: list[str] = []
        self.parts: dict[str, str] = {}

    def declared(self) -> str:
        """Return the statements that compute what expressions share."""
        return "".join(f"    const la_u32 {name} = {part};\n" for part, name in self.parts.items())

    def asked(self, mask: int) -> str:
        """Return the name of a bool: the parity of the thread's bits under a mask."""
        bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
        return self.shared(f"({' ^ '.join(f't >> {bit}' for bit in bits)}) & 1u")

    def shared(self, expression: str) -> str:
        """Return the name of an expression that is computed once, before all statements."""
        return self.parts.setdefault(expression, f"of_t{len(self.parts)}")

    def text(self, values: IntArray, live: npt.NDArray[np.bool_] | None = None) -> str:
        """Return an expression in t; at threads that are not live it may be anything."""
        fit = affine(values, np.ones(len(values), dtype=bool) if live is None else live)
        if fit is not None:
            first, columns = fit
            if not any(columns):
                return f"{first}u"
            parts = [f"(0u - (t >> {bit} & 1u) & {column}u)" for bit, column in enumerate(columns) if column]
            name = self.shared(" ^ ".join(parts))
            return f"({name} ^ {first}u)" if first else name
        name = f"la_numbers{len(self.tables)}"
        listed = ", ".join(str(int(value)) for value in values)
        self.tables.append(f"__device__ const int {name}[{len(values)}] = {{{listed}}};\n")
        return f"(la_u32){name}[t]"


def affine(values: IntArray, live: npt.NDArray[np.bool_]) -> tuple[int, tuple[int, ...]] | None:
    """Return (constant, columns) of an affine map of the thread's bits that has these values at the live threads."""
    width = (len(values) - 1).bit_length()
    rows: dict[int, tuple[int, int]] = {}
    for thread in np.flatnonzero(live).tolist():
        point, value = thread << 1 | 1, int(values[thread])
        while point and point.bit_length() in rows:
            other, theirs = rows[point.bit_length()]
            point, value = point ^ other, value ^ theirs
        if point:
            rows[point.bit_length()] = (point, value)
        elif value:
            return None
    solved = [0] * (width + 1)
    for length in sorted(rows):
        point, value = rows[length]
        for bit in range(length - 1):
            if point >> bit & 1:
                value ^= solved[bit]
        solved[length - 1] = value
    return solved[0], tuple(solved[1:])
