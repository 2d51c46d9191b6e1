"""Per-thread numbers as C expressions.

Implementation notes: numbers affine over F2 in the thread's bits, as in every linear layout, become the XOR of shifted
parts of the thread number or of constants selected by its bits, whichever is shorter; others become a sum of strided
digits, or a table. Common subexpressions are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.recognize import Modes
from layoutalg.proofs.listed_access import affine, strides

IntArray: TypeAlias = npt.NDArray[np.int64]
FEW = 3
"""Maximum number of digits for a sum to be preferred to an XOR."""


class Numbers:
    """Per-thread numbers as C expressions; collects shared subexpressions and tables."""

    def __init__(self) -> None:
        self.tables: list[str] = []
        self.lists: dict[str, str] = {}
        self.parts: dict[str, str] = {}

    def declared(self, by: int = 4) -> str:
        """Return the declarations of the shared subexpressions, ``by`` columns from the left."""
        return "".join(f"{' ' * by}const la_u32 {name} = {part};\n" for part, name in self.parts.items())

    def asked(self, mask: int) -> str:
        """Return the name of a bool: the parity of the thread's bits under a mask."""
        bits = [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
        parts = [f"t >> {bit}" if bit else "t" for bit in bits]
        return self.shared(f"{parts[0]} & 1u" if len(parts) == 1 else f"({' ^ '.join(parts)}) & 1u")

    def shared(self, expression: str) -> str:
        """Return the name of a subexpression that is computed once, before all statements."""
        return self.parts.setdefault(expression, f"of_t{len(self.parts)}")

    def text(self, values: IntArray, live: npt.NDArray[np.bool_] | None = None) -> str:
        """Return an expression in t; its value at threads that are not live is arbitrary."""
        every = np.ones(len(values), dtype=bool) if live is None else live
        fit = affine(values, every)
        if fit is not None:
            first, columns = fit
            if not any(columns):
                return f"{first}u"
            name = self.shared(_linear(columns))
            return f"({name} ^ {first}u)" if first else name
        digits = strides(values, every)
        return self.shared(_digits(*digits) if digits is not None else self.listed(np.where(every, values, 0).tolist()))

    def alone(self, values: IntArray) -> str:
        """Return the same without enclosing parentheses."""
        return self.text(values).removeprefix("(").removesuffix(")")

    def summed(self, values: IntArray, live: npt.NDArray[np.bool_]) -> str:
        """Return the same, preferring a sum of few digits."""
        digits = strides(values, live)
        if digits is not None and len(digits[1]) <= FEW:
            return self.shared(_digits(*digits))
        return self.text(values, live)

    def listed(self, values: Sequence[int]) -> str:
        """Return a table look-up by thread."""
        listed = ", ".join(f"{value}u" for value in values)
        name = self.lists.get(listed)
        if name is None:
            name = self.lists[listed] = f"la_numbers{len(self.lists)}"
            self.tables.append(f"__device__ const la_u32 {name}[{len(values)}] = {{{listed}}};\n")
        return f"{name}[t]"


def shifted(columns: Sequence[int], number: str = "t") -> str:
    """Return a linear map of a number as the XOR of its shifted parts, one per shift distance.

    Example:
        >>> shifted((4, 8, 16, 1)), shifted((2, 4), "i")
        ('((t & 0x8u) >> 3) ^ ((t & 0x7u) << 2)', 'i << 1')
    """
    masks: dict[int, int] = {}
    for bit, column in enumerate(columns):
        for to in range(column.bit_length()):
            if column >> to & 1:
                masks[to - bit] = masks.get(to - bit, 0) | 1 << bit
    parts = []
    for distance, mask in sorted(masks.items()):
        kept = number if mask == (1 << len(columns)) - 1 else f"({number} & {mask:#x}u)"
        parts.append(f"{kept} {'<<' if distance > 0 else '>>'} {abs(distance)}" if distance else kept)
    return (
        parts[0]
        if len(parts) == 1
        else " ^ ".join(f"({part})" if "<<" in part or ">>" in part else part for part in parts)
    )


def _linear(columns: Sequence[int]) -> str:
    """A linear map of t, in whichever form has fewer parts."""
    chosen = [
        f"(0u - (t >> {bit} & 1u) & {column}u)" if bit else f"(0u - (t & 1u) & {column}u)"
        for bit, column in enumerate(columns) if column
    ]  # fmt: skip
    other = shifted(columns)
    return other if other.count("^") < len(chosen) else " ^ ".join(chosen)


def _digits(first: int, modes: Modes) -> str:
    """The sum of strided digits of t, fastest first."""
    text, done = f"{first}u" if first else "", 1
    for place, (extent, stride) in enumerate(modes):
        digit = f"t / {done}u" if done > 1 else "t"
        if place < len(modes) - 1:
            digit += f" % {extent}u"
        if stride:
            times = f"{digit} * {abs(stride)}u" if abs(stride) > 1 else digit
            text += times if not text and stride > 0 else f" {'-' if stride < 0 else '+'} {times}"
        done *= extent
    return text.strip() or "0u"
