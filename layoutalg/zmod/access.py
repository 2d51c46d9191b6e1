"""Vector width and alignment of an access, from the stride lattice.

Main definitions: ``Access``, ``access``, ``SymbolicStride``, ``SymbolicAccess``, ``symbolic_access``.

Main statements: let the coalesced flat index start with a run of s elements of stride 1 (s = 1 where the first stride
is not 1). A width v splits the flat index into vectors of consecutive, v-aligned elements exactly when v divides s,
every other stride and the offset. So the largest width is one gcd, and the widths are its divisors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from layoutalg.errors import Diagnostic, RepresentabilityError
from layoutalg.zmod.compose import residue_form
from layoutalg.zmod.layout import IntegerLayout, layout_or_refuse
from layoutalg.zmod.matrix import integer, malformed
from layoutalg.zmod.reshape import coalesced


@dataclass(frozen=True, slots=True)
class Access:
    """How the elements of a layout can be moved together. Counts of elements.

    Args:
        run: Length of the runs of consecutive elements along the flat index.
        alignment: Greatest common divisor of all run starts; 0 where the only run starts at 0.
        width: Largest vector: every ``width`` flat indices from a multiple of ``width`` are consecutive and aligned.
    """

    run: int
    alignment: int
    width: int

    @property
    def power_of_two(self) -> int:
        """Largest power of two that divides the width."""
        return self.width & -self.width

    def vector_bytes(self, element_bytes: int, limit_bytes: int = 16) -> int:
        """Return the bytes of the largest power-of-two vector of at most ``limit_bytes``.

        Example:
            >>> Access(8, 24, 8).vector_bytes(4), Access(8, 24, 8).vector_bytes(1)
            (16, 8)
        """
        element, limit = integer(element_bytes, "element_bytes", "LA736"), integer(limit_bytes, "limit_bytes", "LA736")
        if element < 1 or limit < element:
            raise malformed("element_bytes", f"must be in [1, {limit}]", element, "LA736")
        count = self.power_of_two
        while count * element > limit and count > 1:
            count //= 2
        return count * element


def access(layout: IntegerLayout, base_alignment: int = 0) -> Access:
    """Return the runs, the alignment and the largest vector width along the flat index.

    Args:
        layout: One output that is affine over Z on the box (a modulus must not wrap). Elements.
        base_alignment: The base address is a multiple of this many elements; 0 for the address 0.

    Raises:
        RepresentabilityError: LA736, several outputs, a modulus that wraps, or no points.

    Example:
        >>> access(IntegerLayout.from_strides({"col": 12, "row": 5}, (1, 40), 8))
        Access(run=12, alignment=8, width=4)
        >>> access(IntegerLayout.from_strides({"col": 12, "row": 5}, (1, 12)), base_alignment=16)
        Access(run=60, alignment=16, width=4)
    """
    if len(layout_or_refuse(layout).outputs) != 1 or not layout.size:
        raise _refused(layout, "the layout must have one output and at least one point")
    aligned = integer(base_alignment, "base_alignment", "LA736")
    if aligned < 0:
        raise malformed("base_alignment", "must be at least 0", aligned, "LA736")
    form = residue_form(layout.matrix[0], layout.offset[0], layout.moduli[0], layout.extents)
    if form is None:
        raise _refused(layout, f"the output wraps modulo {layout.moduli[0]}")
    row, constant = form
    modes = coalesced(IntegerLayout(layout.inputs, ((layout.outputs[0][0], 0),), (row,), (0,)))
    run = modes[0][0] if modes and modes[0][1] == (1,) else 1
    rest = modes[1:] if run > 1 else modes
    alignment = math.gcd(constant, aligned, *[stride[0] for _, stride in rest])
    return Access(run, alignment, math.gcd(run, alignment))


def _refused(layout: IntegerLayout, because: str) -> RepresentabilityError:
    return RepresentabilityError(
        Diagnostic(code="LA736", what="the access has no vector width", where=(str(layout),), because=because)
    )


@dataclass(frozen=True, slots=True)
class SymbolicStride:
    """The stride ``factor * name`` where ``name`` is a positive integer, a multiple of ``divisor``.

    Example:
        >>> str(SymbolicStride("ld", 2, divisor=8))
        '2*ld'
    """

    name: str
    factor: int = 1
    divisor: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier():
            raise malformed("name", "must be an identifier", self.name, "LA736")
        object.__setattr__(self, "factor", integer(self.factor, "factor", "LA736"))
        if integer(self.divisor, "divisor", "LA736") < 1:
            raise malformed("divisor", "must be at least 1", self.divisor, "LA736")

    def __str__(self) -> str:
        return self.name if self.factor == 1 else f"{self.factor}*{self.name}"


@dataclass(frozen=True, slots=True)
class SymbolicAccess:
    """What holds for every value of the symbols.

    Args:
        guaranteed: A width that is right for every allowed value, and the largest such number.
        text: The width as a function of the symbols: right for each value, and the largest unless a value makes a run
            of consecutive elements longer (a symbol that equals 1 first, or the run length after it).
        assumptions: What was assumed.
    """

    guaranteed: int
    text: str
    assumptions: tuple[str, ...]


def symbolic_access(extents: Sequence[int], strides: Sequence[int | SymbolicStride], offset: int = 0) -> SymbolicAccess:
    """Return the vector width of a layout whose strides may be symbols.

    Args:
        extents: Extents, fastest first, each at least 1.
        strides: Strides in elements, numbers or symbols. The vectors run along the first axis of extent above 1.
        offset: Value at the origin. Elements.

    Raises:
        MalformedError: LA736, naming the argument.

    Example:
        >>> symbolic_access((64, 128), (1, SymbolicStride("ld", divisor=8)))
        SymbolicAccess(guaranteed=8, text='gcd(64, ld)', assumptions=('ld % 8 == 0',))
    """
    if len(extents) != len(strides):
        raise malformed("strides", f"must have {len(extents)} entries", strides, "LA736")
    sizes = [integer(extent, "extents", "LA736") for extent in extents]
    if any(size < 1 for size in sizes):
        raise malformed("extents", "must be at least 1", extents, "LA736")
    modes: list[tuple[int, int | SymbolicStride]] = []
    for size, stride in zip(sizes, strides, strict=True):
        entry = stride if isinstance(stride, SymbolicStride) else integer(stride, "strides", "LA736")
        if isinstance(entry, SymbolicStride) and not entry.factor:
            entry = 0
        if size == 1:
            continue
        last = modes[-1] if modes else None
        if last and isinstance(last[1], int) and isinstance(entry, int) and last[0] * last[1] == entry:
            modes[-1] = (last[0] * size, last[1])
        else:
            modes.append((size, entry))
    run = modes[0][0] if modes and modes[0][1] == 1 else 1
    rest = modes[1:] if run > 1 else modes
    symbols = [stride for _, stride in rest if isinstance(stride, SymbolicStride)]
    fixed = math.gcd(run, integer(offset, "offset", "LA736"), *[s for _, s in rest if isinstance(s, int)])
    # names may repeat with different known divisors; all of them hold at once
    divisors: dict[str, int] = {}
    for symbol in symbols:
        divisors[symbol.name] = math.lcm(divisors.get(symbol.name, 1), symbol.divisor)
    guaranteed = math.gcd(fixed, *[symbol.factor * divisors[symbol.name] for symbol in symbols])
    if fixed == guaranteed:
        text = str(guaranteed)
    else:
        text = "gcd(" + ", ".join([str(fixed), *dict.fromkeys(map(str, symbols))]) + ")"
    assumptions = tuple(f"{name} % {divisor} == 0" for name, divisor in divisors.items() if divisor > 1)
    return SymbolicAccess(guaranteed, text, assumptions)
