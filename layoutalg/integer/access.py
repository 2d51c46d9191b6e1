"""Vector width and alignment of an access, from the stride lattice; also for sizes that are polynomials in symbols.

Let the coalesced flat index start with a run of s elements of stride 1 (s = 1 if the first stride is not 1). A width v
splits the flat index into vectors of consecutive, v-aligned elements exactly when v divides s, every other stride and
the offset. So the largest width is one gcd, and the valid widths are its divisors.

A number divides all values of an integer-valued polynomial exactly when it divides its values on the grid
0, ..., degree in each variable, because all other values are integer combinations of those (finite differences); for
the same reason a polynomial that is integral on the grid is integral everywhere. Substituting ``name = r + d n`` for
each known residue, the gcd over that grid is the exact guarantee.

References: G. Polya, Ueber ganzwertige Polynome in algebraischen Zahlkoerpern, 1919 (fixed divisors).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from layoutalg.ground import clock
from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.check import Checker
from layoutalg.ground.conditions import Condition
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.facts import facts_of
from layoutalg.ground.polynomial import ONE, Polynomial, names_of, value_at
from layoutalg.ground.polynomial_text import PolynomialLike, polynomial
from layoutalg.integer.axes import coalesced
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse

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


# symbolic sizes

GRID_POINTS = 4096
GRID_WORK = 10**9
"""Bit operations allowed for the grid; above, the guarantee is only a sufficient bound."""

Residues = Mapping[str, tuple[int, int]]
"""Name -> (d, r) with name = r (mod d)."""


@dataclass(frozen=True, slots=True)
class SymbolicAccess:
    """Vector width and alignment guaranteed for every allowed value of the symbols.

    Args:
        guaranteed: A width valid for every allowed value; the largest such width if ``exact``.
        text: The width as a function of the symbols: always valid, and the largest unless particular values lengthen
            the run of consecutive elements (a leading stride of 1, a stride equal to the run length, an extent of 1).
        assumptions: The assumptions used.
        alignment: Every run starts at a multiple of this, the largest such number if ``exact``; 0 if the only run
            starts at 0.
        exact: Whether the guarantees are the largest possible; otherwise they are sufficient bounds.
    """

    guaranteed: int
    text: str
    assumptions: tuple[str, ...]
    alignment: int = 0
    exact: bool = True


def symbolic_access(
    extents: Sequence[PolynomialLike],
    strides: Sequence[PolynomialLike],
    offset: PolynomialLike = 0,
    assume: Assumptions | Iterable[object] = (),
) -> SymbolicAccess:
    """Return the vector width of a layout whose extents, strides and offset may be polynomials in symbols.

    Mathematically: symbols are positive integers. The guarantee is the gcd of the width over all values that satisfy
    the assumed residues and equalities.

    Args:
        extents: Extents, fastest first, each at least 1; numbers, text such as ``"K"`` or sympy expressions.
        strides: Strides in elements, likewise, such as ``"ld*h + 8"``. Vectors run along the first axis of extent
            above 1.
        offset: Value at the origin, in elements.
        assume: ``Assumptions``, or conditions such as ``"ld % 8 == 0"``. Conditions other than congruences of single
            names are valid but may leave the guarantee below the best one.

    Example:
        >>> symbolic_access((64, 128), (1, "ld"), assume=("ld % 8 == 0",))
        SymbolicAccess(guaranteed=8, text='gcd(64, ld)', assumptions=('ld % 8 == 0',), alignment=8, exact=True)
        >>> found = symbolic_access((64, 16, 4), (1, "ld", "ld*h + 32"), assume=("ld % 4 == 0", "h % 2 == 0"))
        >>> found.guaranteed, found.text, found.alignment
        (4, 'gcd(64, ld, h*ld + 32)', 4)
        >>> symbolic_access((8, 2), (1, "n*n + n")).guaranteed
        2

    Source: own.
    """
    for argument, value in (("extents", extents), ("strides", strides)):
        if not isinstance(value, (tuple, list)):
            raise check.malformed(argument, "must be a sequence", value)
    if len(extents) != len(strides):
        raise check.malformed("strides", f"must have {len(extents)} entries", strides)
    known = assume if isinstance(assume, Assumptions) else Assumptions(assume)
    facts = facts_of(known)
    sizes, steps = [polynomial(extent) for extent in extents], [polynomial(stride) for stride in strides]
    for place, size in enumerate(sizes):
        if size.constant is not None and size.constant < 1:
            raise check.malformed(f"extents[{place}]", "must be at least 1", extents[place])
    modes: list[tuple[Polynomial, Polynomial]] = []
    for size, step in zip(map(facts.reduce, sizes), map(facts.reduce, steps), strict=True):
        if size == ONE:
            continue
        if modes and modes[-1][0] * modes[-1][1] == step:
            modes[-1] = (modes[-1][0] * size, modes[-1][1])
        else:
            modes.append((size, step))
    contiguous = bool(modes) and modes[0][1] == ONE
    run = modes[0][0] if contiguous else ONE
    parts = [run, facts.reduce(polynomial(offset)), *[step for _, step in (modes[1:] if contiguous else modes)]]
    divisors = [common_divisor(part, facts.residue) for part in parts]
    alignment = math.gcd(*[divisor for divisor, _ in divisors[1:]])
    guaranteed = math.gcd(alignment, divisors[0][0])
    fixed = math.gcd(*[int(part.constant) for part in parts if part.constant is not None])
    if fixed == guaranteed:
        text = str(guaranteed)
    else:
        symbolic = dict.fromkeys(str(part) for part in parts if part.constant is None)
        text = "gcd(" + ", ".join([*([str(fixed)] if fixed else []), *symbolic]) + ")"
    used = names_of([*sizes, *steps, *parts])
    told = [f"{name} % {d} == {r}" for name, (d, r) in facts.residue.items() if d > 1 and name in used]
    told += [str(entry) for entry in known.conditions if entry.names & used and not _is_congruence(entry)]
    exact = all(exact for _, exact in divisors) and all(_is_congruence(entry) for entry in known.conditions)
    return SymbolicAccess(guaranteed, text, tuple(told), alignment, exact)


def _is_congruence(entry: Condition) -> bool:
    """Return whether a condition only fixes the residue of one name."""
    linear = all(
        monomial == () or (len(monomial) == 1 and monomial[0][1] == 1) for monomial, _ in entry.value.monomials
    )
    return entry.kind == "integral" and linear and len(entry.names) <= 1


def common_divisor(value: Polynomial, residues: Residues) -> tuple[int, bool]:
    """Return a common divisor of all values of a polynomial, and whether it is the greatest.

    Example:
        >>> common_divisor(polynomial("n*n + n"), {}), common_divisor(polynomial("ld*h + 32"), {"ld": (8, 4)})
        ((2, True), (4, True))
    """
    if value.constant is not None:
        return abs(_whole(value.constant, value, {})), True
    known = {name: residues.get(name, (1, 0)) for name in sorted(value.names)}
    powers = [dict(monomial) for monomial, _ in value.monomials]
    degrees = [max(entry.get(name, 0) for entry in powers) for name in known]
    if any(power < 0 for entry in powers for power in entry.values()):
        raise check.malformed("extents, strides, offset", "must be polynomials, not divided by a symbol", str(value))
    # size of one value in bits: as many factors as its degree
    bits = sum(degrees) * max([16, *[sum(entry).bit_length() for entry in known.values()]])
    points = math.prod(degree + 1 for degree in degrees)
    if points > GRID_POINTS or points * sum(degrees) * len(powers) * bits > GRID_WORK:
        # each name is a multiple of gcd(r, d), so each monomial is a multiple of the product of those
        units = {name: math.gcd(*entry) for name, entry in known.items()}
        found = [value_at(Polynomial((entry,)), units) for entry in value.monomials]
        return math.gcd(*[_whole(part, value, units) for part in found]), False
    answer = 0
    for turn in itertools.product(*[range(degree + 1) for degree in degrees]):
        clock.check("the greatest common divisor of a polynomial")
        at = {name: r + d * n for (name, (d, r)), n in zip(known.items(), turn, strict=True)}
        answer = math.gcd(answer, _whole(value_at(value, at), value, at))
    return answer, True


def _whole(number: Fraction, value: Polynomial, sizes: Mapping[str, int]) -> int:
    if number.denominator != 1:
        rule = f"must be integers; {value} is not known to be one (tried {dict(sizes)})"
        raise check.malformed("extents, strides, offset", rule, str(number))
    return int(number)
