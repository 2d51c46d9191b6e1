"""Point counts as functions of the parameters: products of extents, or sums of polynomials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING, Any

from layoutalg.ground.errors import AdmissibilityError
from layoutalg.ground.lazy import later
from layoutalg.piecewise import counting, regions, small
from layoutalg.piecewise.confirm import doubted
from layoutalg.piecewise.meaning import read
from layoutalg.piecewise.points import checked_values, evaluated
from layoutalg.piecewise.sympy_form import pieces, piecewise, symbols_of

if TYPE_CHECKING:
    import sympy
else:
    sympy = later("sympy")

CHAIN_AXES = 4


@dataclass(frozen=True, slots=True)
class PointCount:
    """A point count as a function of the parameters: a product of affine functions, or a sum of polynomials.

    Args:
        factors: Text of a function without inputs whose outputs are the factors; the count is 0 where it is undefined.
            None for a sum.
        parts: The summands, each added where its guard is true.
        params: All parameters of the set.
    """

    factors: str | None
    parts: tuple[counting.Part, ...]
    params: tuple[str, ...]

    def __call__(self, **values: int) -> int:
        """Return the count at parameter values.

        Raises: MalformedError: LA785.
        """
        known = checked_values(values, self.params, str(self), complete=True)
        if self.factors is not None:
            return prod(_outputs(self.factors, known) or (0,))
        total = Fraction(0)
        for part in self.parts:
            floors = _outputs(part.floors, known)
            if floors is not None:
                total += part.at(floors, known)
        return int(total)

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> Any:
        """Return the count as a sympy expression; parameters missing from ``symbols`` become integer symbols.

        Raises: RepresentabilityError: LA795.

        Example:
            >>> count = formula("[N] -> { [i, j] : 0 <= j <= i < N }", ("N",))
            >>> count.to_sympy()
            Piecewise((N**2/2 + N/2, N - 1 >= 0), (0, True))
        """
        known = symbols_of(self.params, symbols)
        if self.factors is not None:
            return piecewise([(sympy.Mul(*outputs), guard) for outputs, guard in pieces(self.factors, (), known)], 0)
        parts = []
        for part in self.parts:
            found = [
                (part.value.to_sympy(known | {f"@{place}": value for place, value in enumerate(outputs)}), guard)
                for outputs, guard in pieces(part.floors, (), known)
            ]
            parts.append(piecewise(found, 0))
        return sympy.Add(*parts)

    def _repr_latex_(self) -> str:
        return f"${sympy.latex(self.to_sympy())}$"

    def __str__(self) -> str:
        return self.factors or " + ".join(f"({part})" for part in self.parts) or "0"


def _outputs(text: str, known: dict[str, int]) -> tuple[int, ...] | None:
    """Return the outputs of a function without inputs, None if it is undefined."""
    answers, defined = evaluated(text, known, [], (), read(text).outputs)
    return tuple(int(answer.item()) for answer in answers) if defined.item() else None


def constant(count: int) -> PointCount:
    """Return a point count that depends on no parameter."""
    return PointCount(f"{{ [] -> [{count}] }}", (), ())


def formula(text: str, params: tuple[str, ...]) -> PointCount | None:
    """Return the number of points of a set as a function of its parameters; None if no formula was found.

    Mathematically: a product of affine functions for a box and for a chain of digits (a set whose flat indices form an
    interval, such as a ragged tile ``12 t + r < N``); else a sum of polynomials in the parameters and their floors,
    each with its own guard, by Faulhaber's formula.

    Raises: BudgetError: LA222, LA793, LA794.
    """
    listed = None if params else small.set_points(text)
    if listed is not None:
        return constant(len(listed))
    try:
        factors = None if regions.is_empty(text) else _factors(text)
        parts = counting.counted(text) if factors is None else ()
    except AdmissibilityError:
        # ISL has no expression for a bound: an axis is unbounded
        return None
    if parts is None:
        return None
    found = PointCount(factors, parts, params)
    for known, count in regions.counts(text):
        if found(**known) != count:
            doubted(f"the number of points of {text}", f"{found(**known)}, not {count} at {known}", known)
    return found


def _factors(text: str) -> str | None:
    """Return the factors of the count of a box or a chain of digits as a function of the parameters, or None."""
    found = regions.extents(text)
    if found is not None:
        return found
    fixed = regions.constant_extents(text)
    open_axes = [k for k, entry in enumerate(fixed) if entry is None]
    if len(open_axes) > 1 or len(fixed) > CHAIN_AXES:
        return None
    lows = {k: entry for k, entry in enumerate(fixed) if entry is not None}
    for order in permutations(range(len(fixed))):
        if open_axes and order[-1] != open_axes[0]:
            continue
        weight, terms = 1, []
        for k in order:
            low, high = lows.get(k, (0, 0))
            terms.append(f"{weight}*(x{k} - ({low}))")
            weight *= high - low + 1
        names = [f"x{k}" for k in range(len(fixed))]
        found = regions.flat_extents(text, " + ".join(terms), names)
        if found is not None:
            return found
    return None
