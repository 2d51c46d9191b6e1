"""Normal forms of symbolic layouts: fewest modes, what divides each stride, and the lattice of the offsets.

Main statements, for all sizes that meet the assumptions and side conditions: the form is the same function of the 1-D
coordinate; each number in ``gcds`` divides its stride; ``offset`` plus the lattice contains every offset.

Notation: each name K of a known class r mod m is written m k + r, with k = (K - r)/m any integer. The monomials in
these k are the *units*. Strides that are integer combinations of units are the rows of a matrix; its rows span the
lattice, and its Smith form has the invariants d_1 | d_2 | ..., of which d_1 divides every difference of offsets.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.symbolic.follow import merged
from layoutalg.cute.symbolic.layout import SymbolicLayout, symbolic
from layoutalg.cute.symbolic.ledger import Ledger
from layoutalg.ground import clock, limits
from layoutalg.ground.check import Checker
from layoutalg.ground.conditions import Condition
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.facts import Facts, facts_of, is_integral
from layoutalg.ground.polynomial import ONE, Polynomial, named, total, trusted
from layoutalg.ground.polynomial_text import PolynomialLike, polynomial
from layoutalg.ground.record import Checked
from layoutalg.integer.access import common_divisor
from layoutalg.integer.lattice import Lattice
from layoutalg.integer.matrix import snf

_CHECK = Checker("LA622")
VECTOR_BITS = 128


@dataclass(frozen=True, slots=True)
class SymbolicForm(Checked, code="LA622"):
    """The normal form of a symbolic layout.

    Args:
        layout: The same function in the fewest modes found, names that equalities determine replaced.
        offset: Added to every value. Elements.
        gcds: The greatest known divisor of each stride of ``layout``; 0 for stride 0.
        gcd: That of every offset; 0 if all are 0.
        vector: Elements of the widest vectors along the first mode of stride 1 that are aligned everywhere.
        units: The monomials that strides are combinations of; empty if they are none.
        lattice: What the strides span over the units; None if a stride is no integer combination.
        invariants: Smith invariants of the strides over the units.
        exact: Whether ``gcds``, ``gcd`` and ``vector`` are the largest possible; otherwise they are sufficient bounds.
    """

    layout: SymbolicLayout
    offset: Polynomial
    gcds: tuple[int, ...]
    gcd: int
    vector: int
    units: tuple[Polynomial, ...]
    lattice: Lattice | None
    invariants: tuple[int, ...]
    exact: bool

    @property
    def modes(self) -> tuple[tuple[Polynomial, Polynomial], ...]:
        """(extent, stride) of each mode, fastest first."""
        return self.layout.flat

    @property
    def generators(self) -> tuple[Polynomial, ...]:
        """A basis of the lattice: every offset is ``offset`` plus an integer combination of these."""
        rows = () if self.lattice is None else self.lattice.basis
        return tuple(total([unit * part for unit, part in zip(self.units, row, strict=True)]) for row in rows)

    def alignment(self, element_bits: int) -> int:
        """Return the largest power of two, in bits, that divides every address; 0 if the only address is 0.

        The base itself is address 0.

        Example:
            >>> normal_form(SymbolicLayout("M", "12*N")).alignment(16)
            64
        """
        bits = self.gcd * _CHECK.integer(element_bits, "element_bits", 1)
        return bits & -bits

    def vector_bits(self, element_bits: int, limit: int = VECTOR_BITS) -> int:
        """Return the bits of the widest vector of at most ``limit`` that is aligned and contiguous everywhere.

        Example:
            >>> rows = SymbolicLayout(("M", "K"), ("ld", 1), ("ld % 4 == 0", "K % 8 == 0"))
            >>> form = normal_form(rows)
            >>> form.vector_bits(16), form.vector_bits(64), form.vector_bits(16, 32)
            (64, 128, 32)
        """
        most = _CHECK.integer(limit, "limit", 1)
        size = _CHECK.integer(element_bits, "element_bits", 1, most + 1)
        count = math.gcd(self.vector, 1 << (most // size).bit_length() - 1)
        return count * size

    def __str__(self) -> str:
        return f"{self.layout}" + (f" + {self.offset}" if self.offset.monomials else "")


def normal_form(layout: SymbolicLayout | CuteLayout, offset: PolynomialLike = 0) -> SymbolicForm:
    """Return the normal form of a layout: what is known of its offsets at all sizes.

    Args:
        layout: A layout; what divides its names is read from its assumptions and side conditions.
        offset: Added to every value. Elements.

    Raises: MalformedError: LA622, if the offset is not known to be an integer.

    Example:
        >>> rows = SymbolicLayout(("M", "H", 64), ("K", "64*T", 1), ("K % 8 == 0", "K == 64*T"))
        >>> form = normal_form(rows, "K + 8")
        >>> print(form, "|", *form.gcds, "|", form.gcd, form.vector)
        (M,H,64):(64*T,64*T,1) + 64*T + 8 | 64 64 1 | 1 8
        >>> print(*normal_form(SymbolicLayout(("M", "N"), ("4*K", "6*K + 16"), ("K % 2 == 0",))).generators)
        2*K + 16 4*K
    """
    if not isinstance(layout, SymbolicLayout | CuteLayout):
        raise _CHECK.malformed("layout", "must be a SymbolicLayout or a CuteLayout", layout)
    operand = symbolic(layout)
    with clock.within(limits.SYMBOLIC_SECONDS):
        ledger = Ledger(operand.assumptions, operand.conditions, f"normal_form({operand})")
        facts = facts_of(ledger.known, operand.symbols)
        flat = merged(tuple([(facts.reduce(extent), facts.reduce(stride)) for extent, stride in operand.flat]), ledger)
        start = facts.reduce(polynomial(offset))
        if not is_integral(facts, start):
            raise _CHECK.malformed("offset", "must be an integer at all sizes that meet the assumptions", str(start))
        shape, stride = (tuple(side) for side in zip(*flat, strict=True)) if flat else ((), ())
        made = SymbolicLayout(shape or 1, stride or 0, operand.assumptions, operand.conditions)
        found = [_divisor(step, facts) for step in (start, *stride)]
        gcds = tuple([divisor for divisor, _ in found])
        along = next((place for place, step in enumerate(stride) if step == ONE), None)
        vector, whole = (1, True) if along is None else _divisor(shape[along], facts)
        if along is not None:
            vector = math.gcd(vector, *gcds[: along + 1], *gcds[along + 2 :])
        units, rows = _rows(stride, facts)
    exact = whole and all(largest for _, largest in found) and all(map(_keeps_classes, ledger.known.conditions))
    lattice = None if rows is None else Lattice.spanned_by(rows, len(units))
    invariants = snf(rows, len(units)).invariants if rows else ()
    return SymbolicForm(
        made, start, gcds[1:] if flat else (0,), math.gcd(*gcds), vector, units, lattice, invariants, exact
    )


def _divisor(value: Polynomial, facts: Facts) -> tuple[int, bool]:
    """Return a common divisor of an integer's values, and whether it is the greatest."""
    with contextlib.suppress(MalformedError):  # divided by names, or an integer for more reasons than residues
        return common_divisor(value, facts.residue)
    content = value.content().numerator
    return (content if is_integral(facts, value / content) else 1), False


def _keeps_classes(entry: Condition) -> bool:
    """Whether a condition only fixes the residue of one name or bounds it from below."""
    slopes = [(monomial, slope) for monomial, slope in entry.value.monomials if monomial]
    if len(slopes) > 1 or any(sum(power for _, power in monomial) != 1 or len(monomial) > 1 for monomial, _ in slopes):
        return False
    return entry.kind == "integral" or (entry.kind == "nonnegative" and all(slope > 0 for _, slope in slopes))


def _rows(strides: tuple[Polynomial, ...], facts: Facts) -> tuple[tuple[Polynomial, ...], list[tuple[int, ...]] | None]:
    """Return the units and each stride as a combination of them; None if one is no integer combination."""
    spread = [facts.by_class(step) for step in strides]
    if not all(step.whole for step in spread):
        return (), None
    monomials = sorted({monomial for step in spread for monomial, _ in step.monomials})
    parts = [dict(step.monomials) for step in spread]
    classes = {name: facts.residue.get(name, (1, 0)) for monomial in monomials for name, _ in monomial}
    backs = {name: (named(name) - rest) / modulus for name, (modulus, rest) in classes.items()}
    units = tuple([trusted(((monomial, ONE.monomials[0][1]),)).replace(backs) for monomial in monomials])
    return units, [tuple([int(part.get(monomial, 0)) for monomial in monomials]) for part in parts]
