"""Vector width and alignment of an access, from the stride lattice.

Let the coalesced flat index start with a run of s elements of stride 1 (s = 1 if the first stride is not 1). A width v
splits the flat index into vectors of consecutive, v-aligned elements exactly when v divides s, every other stride and
the offset. So the largest width is one gcd, and the valid widths are its divisors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.reshape import coalesced

check = Checker("LA736", "the access has no vector width")


@dataclass(frozen=True, slots=True)
class Access:
    """Widest vector access of a layout; all counts in elements.

    Args:
        run: Length of the runs of consecutive elements along the flat index.
        alignment: Greatest common divisor of all run starts; 0 if the only run starts at 0.
        width: Largest vector: each aligned group of ``width`` flat indices is consecutive and aligned in memory.
    """

    run: int
    alignment: int
    width: int

    def __post_init__(self) -> None:
        for name in ("run", "alignment", "width"):
            object.__setattr__(self, name, check.integer(getattr(self, name), name, 0 if name == "alignment" else 1))

    @property
    def power_of_two(self) -> int:
        """Largest power of two dividing the width."""
        return self.width & -self.width

    def vector_bytes(self, element_bytes: int, limit_bytes: int = 16) -> int:
        """Return the bytes of the largest power-of-two vector of at most ``limit_bytes``.

        Example:
            >>> Access(8, 24, 8).vector_bytes(4), Access(8, 24, 8).vector_bytes(1)
            (16, 8)
        """
        limit = check.integer(limit_bytes, "limit_bytes")
        element = check.integer(element_bytes, "element_bytes", 1, limit + 1)
        count = self.power_of_two
        while count * element > limit and count > 1:
            count //= 2
        return count * element


def access(layout: IntegerLayout, base_alignment: int = 0) -> Access:
    """Return the run length, alignment and largest vector width along the flat index.

    Args:
        layout: Element offsets: one output, affine over Z on the box (a modulus must not wrap).
        base_alignment: Alignment of the base address in elements; 0 for a base at address 0.

    Example:
        >>> access(IntegerLayout.from_strides({"col": 12, "row": 5}, (1, 40), 8))
        Access(run=12, alignment=8, width=4)
        >>> access(IntegerLayout.from_strides({"col": 12, "row": 5}, (1, 12)), base_alignment=16)
        Access(run=60, alignment=16, width=4)
    """
    if len(layout_or_refuse(layout).outputs) != 1 or not layout.size:
        raise _refused(layout, "the layout must have one output and at least one point")
    aligned = check.integer(base_alignment, "base_alignment", 0)
    row, constant, wrap = layout.forms[0]
    if wrap:
        raise _refused(layout, f"the output wraps modulo {wrap}")
    modes = coalesced(IntegerLayout(layout.inputs, ((layout.outputs[0][0], 0),), (row,), (0,)))
    run = modes[0][0] if modes and modes[0][1] == (1,) else 1
    rest = modes[1:] if run > 1 else modes
    alignment = math.gcd(constant, aligned, *[stride[0] for _, stride in rest])
    return Access(run, alignment, math.gcd(run, alignment))


def _refused(layout: IntegerLayout, because: str) -> RepresentabilityError:
    return RepresentabilityError(
        Diagnostic(code="LA736", what="the access has no vector width", where=(str(layout),), because=because)
    )
