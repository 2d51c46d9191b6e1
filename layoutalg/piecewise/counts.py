"""Point counts as functions of the parameters: products of extents, or sums of polynomials.

Points are counted axis by axis. If the values of one axis, the others fixed, are all integers from l to h, both affine
in the others, the sum of x^k over them is S_k(h) - S_k(l - 1), with S_k Faulhaber's polynomial; this is valid for all
integers l <= h + 1, including negative ones. A floor of the parameters is one more variable; a floor of an axis that is
not yet summed is not a polynomial, so that order of the axes is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from math import comb, prod
from typing import TYPE_CHECKING, Any

from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, MalformedError
from layoutalg.ground.lazy import later
from layoutalg.ground.polynomial import ONE, Polynomial, named, number, power_of, total, trusted, value_at
from layoutalg.piecewise import questions
from layoutalg.piecewise.budget import written
from layoutalg.piecewise.confirm import DisagreementError, clouds, judged
from layoutalg.piecewise.operations import bounds, members, sample
from layoutalg.piecewise.points import checked_values, constants
from layoutalg.piecewise.reading import read_function
from layoutalg.piecewise.sympy_form import pieces, piecewise, symbols_of
from layoutalg.piecewise.value import Value, answer, held

if TYPE_CHECKING:
    import islpy
    import sympy
else:
    islpy, sympy = later("islpy"), later("sympy")

AXES = 6
ORDERS = 24
PARTS = 200
CHAIN_AXES = 4


@dataclass(frozen=True, slots=True)
class Part:
    """A polynomial that is part of a count, for the parameter values of a guard."""

    # a function without inputs, defined where the guard is true; its outputs are the variables ``@0``, ``@1``, ...
    floors: Value
    value: Polynomial  # the polynomial in the parameters and the floors

    def __str__(self) -> str:
        return f"{self.value} with {self.floors.text}"


@dataclass(frozen=True, slots=True)
class PointCount:
    """A point count as a function of the parameters: a product of affine functions, or a sum of polynomials.

    Args:
        factors: A function without inputs whose outputs are the factors; the count is 0 where it is undefined. None
            for a sum.
        parts: The summands, each added where its guard is true.
        params: All parameters of the set.
    """

    factors: Value | None
    parts: tuple[Part, ...]
    params: tuple[str, ...]

    def __call__(self, **values: int) -> int:
        """Return the count at parameter values."""
        known = checked_values(values, self.params, str(self), complete=True)
        if self.factors is not None:
            return prod(constants(self.factors, known) or (0,))
        total = Fraction(0)
        for part in self.parts:
            floors = constants(part.floors, known)
            if floors is not None:
                total += value_at(part.value, {**known, **{f"@{k}": value for k, value in enumerate(floors)}})
        return int(total)

    def to_sympy(self, symbols: Mapping[str, Any] | None = None) -> Any:
        """Return the count as a sympy expression; parameters missing from ``symbols`` become integer symbols.

        Example:
            >>> from layoutalg.piecewise import PointSet
            >>> PointSet("[N] -> { [i, j] : 0 <= j <= i < N }").count_formula().to_sympy()
            Piecewise((N**2/2 + N/2, N - 1 >= 0), (0, True))
        """
        known = symbols_of(self.params, symbols)
        if self.factors is not None:
            return piecewise([(sympy.Mul(*outputs), guard) for outputs, guard in pieces(self.factors, known)], 0)
        parts = []
        for part in self.parts:
            found = [
                (part.value.to_sympy(known | {f"@{place}": value for place, value in enumerate(outputs)}), guard)
                for outputs, guard in pieces(part.floors, known)
            ]
            parts.append(piecewise(found, 0))
        return sympy.Add(*parts)

    def _repr_latex_(self) -> str:
        return f"${sympy.latex(self.to_sympy())}$"

    def __str__(self) -> str:
        return self.factors.text if self.factors is not None else " + ".join(f"({p})" for p in self.parts) or "0"


def constant(count: int) -> PointCount:
    """Return a point count that depends on no parameter."""
    return PointCount(read_function(f"{{ [] -> [{count}] }}")[0], (), ())


def formula(points: Value) -> PointCount | None:
    """Return the number of points of a set as a function of its parameters; None if no formula was found.

    Mathematically: a product of affine functions for a box and for a chain of digits (a set whose flat indices form an
    interval, such as a ragged tile ``12 t + r < N``); else a sum of polynomials in the parameters and their floors,
    each with its own guard, by Faulhaber's formula. It is compared with the count wherever all points are listed.
    """
    listed = members(points)
    if listed is not None:
        return constant(len(listed))
    try:
        factors = None if sample(points) is None else _factors(points)
        parts = () if factors is not None else answer(_counted, points)
    except AdmissibilityError:
        # ISL has no expression for a bound: an axis is unbounded
        return None
    if parts is None:
        return None
    found = PointCount(
        factors, tuple(Part(read_function(text)[0], polynomial) for text, polynomial in parts), points.params
    )

    def judge() -> None:
        for cloud in clouds([points]):
            known = {name: int(line[0]) for name, line in cloud.params.items() if cloud.count}
            count = int(cloud.of(points)[1].sum())
            if cloud.exact and len(known) == len(points.params) and found(**known) != count:
                raise DisagreementError(f"{found(**known)} points, not {count}", known)

    judged(lambda: f"the number of points of {points.text}", judge)
    return found


def _factors(points: Value) -> Value | None:
    """Return the factors of the count of a box or a chain of digits as a function of the parameters, or None."""
    found: Value | None = answer(questions.extents, points)
    fixed = bounds(points) or ()
    open_axes = [k for k, entry in enumerate(fixed) if entry is None]
    if found is not None or len(open_axes) > 1 or len(fixed) > CHAIN_AXES:
        return found
    for order in permutations(range(len(fixed))):
        if open_axes and order[-1] != open_axes[0]:
            continue
        weight, terms = 1, []
        for k in order:
            low, high = fixed[k] or (0, 0)
            terms.append(f"{weight}*(x{k} - ({low}))")
            weight *= high - low + 1
        names = tuple(f"x{k}" for k in range(len(fixed)))
        found = answer(questions.flat_extents, points, " + ".join(terms), *names)
        if found is not None:
            return found
    return None


Parts = list[tuple[str, Polynomial]]
"""Texts of the floors and guards, and polynomials; see ``Part``."""


def _counted(context: islpy.Context, counted: Value) -> Parts | None:
    """Return polynomials whose sum, each under its guard, is the number of points; None if none were found."""
    points = held(context, counted).coalesce().make_disjoint()
    parts: Parts = []
    for piece in points.get_basic_sets():
        found = _piece(piece.to_set())
        if found is None:
            return None
        parts += found
        if len(parts) > PARTS:
            what = "the number of points has too many cases"
            witness: dict[str, object] = {"pieces": len(parts)}
            raise BudgetError(Diagnostic("LA222", what, (counted.told()[:200],), f"more than {PARTS} pieces", witness))
    return parts


def _piece(points: Any) -> Parts | None:
    """Return the parts of the count of one conjunction, for the first order of its axes that works; else None."""
    axes = points.dim(islpy.dim_type.set)
    if axes > AXES:
        return None
    for attempt, order in enumerate(permutations(reversed(range(axes)))):
        if attempt >= ORDERS:
            return None
        try:
            found = _eliminated(points, ONE, [f"#{axis}" for axis in order], ())
        except MalformedError:  # a polynomial beyond its limits
            return None
        if found is not None:
            return found
    return None


def _eliminated(points: Any, weight: Polynomial, order: list[str], floors: tuple[str, ...]) -> Parts | None:
    """Return the parts of the sum of ``weight`` over a set, its axes summed in order; None if one cannot be summed.

    Axis k of the original set is the variable ``#k``; the remaining axes keep their order.
    """
    kinds = islpy.dim_type
    if not order:
        head, _, guard = written(points).partition("{ []")
        values = [text.partition("{ [")[2].rpartition("] }")[0] for text in floors] or ["0"]
        return [(f"{head}{{ [] -> [{', '.join(values)}]{guard}", weight)]
    name, rest = order[0], sorted(order[1:], key=lambda axis: int(axis[1:]))
    position = sorted(order, key=lambda axis: int(axis[1:])).index(name)
    line, others = _alone(points, position)
    low, high = line.dim_min(0), line.dim_max(0)
    if not questions.is_interval(line):
        return None
    answer: Parts = []
    for domain, lower, upper in _bounds(low, high):
        atoms = floors
        forms: list[Polynomial] = []
        for bound in (lower, upper):
            form = _form(bound, rest, others, atoms)
            if form is None:
                return None
            forms.append(form[0])
            atoms = form[1]
        summand = summed(weight, name, forms[0], forms[1])
        domain = domain.from_params() if domain.is_params() else domain
        region = domain.move_dims(kinds.set, 0, kinds.param, domain.dim(kinds.param) - others, others)
        for piece in region.make_disjoint().get_basic_sets():
            part = _eliminated(piece.to_set(), summand, order[1:], atoms)
            if part is None or len(answer) > PARTS:
                return None
            answer += part
    return answer


def _alone(points: Any, position: int) -> tuple[Any, int]:
    """Return the set on one axis with the others as trailing parameters, and their number."""
    kinds = islpy.dim_type
    params = points.dim(kinds.param)
    after = points.dim(kinds.set) - position - 1
    points = points.move_dims(kinds.param, params, kinds.set, position + 1, after)
    points = points.move_dims(kinds.param, params, kinds.set, 0, position)
    for index in range(position + after):
        points = points.set_dim_name(kinds.param, params + index, f"@{index}")
    return points, position + after


def _bounds(low: Any, high: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (domain, least value, greatest value) for the domains where both are single expressions."""
    lows: list[tuple[Any, Any]] = []
    highs: list[tuple[Any, Any]] = []
    low.foreach_piece(lambda domain, value: lows.append((domain, value)))
    high.foreach_piece(lambda domain, value: highs.append((domain, value)))
    for first, lower in lows:
        for second, upper in highs:
            both = first.intersect(second)
            if not both.is_empty():
                yield both, lower, upper


def _form(
    bound: Any, rest: list[str], others: int, floors: tuple[str, ...]
) -> tuple[Polynomial, tuple[str, ...]] | None:
    """Return an affine expression as a polynomial, and the extended floors; None if it has a floor of an axis."""
    kinds = islpy.dim_type
    params = bound.dim(kinds.param) - others
    names = [str(bound.get_dim_name(kinds.param, k)) for k in range(params)] + rest
    parts = [number(Fraction(str(bound.get_constant_val())))]
    for k, name in enumerate(names):
        parts.append(named(name) * Fraction(str(bound.get_coefficient_val(kinds.param, k))))
    for k in range(bound.dim(kinds.div)):
        factor = Fraction(str(bound.get_coefficient_val(kinds.div, k)))
        if not factor:
            continue
        floor = bound.get_div(k).floor()
        if others and floor.involves_dims(kinds.param, params, others):
            return None
        text = written(floor.drop_dims(kinds.param, params, others) if others else floor)
        if text not in floors:
            floors = (*floors, text)
        parts.append(named(f"@{floors.index(text)}") * factor)
    return total(parts), floors


def summed(weight: Polynomial, name: str, low: Polynomial, high: Polynomial) -> Polynomial:
    """Return the sum of a polynomial over the integers ``low <= name <= high``.

    Example:
        >>> print(summed(named("x"), "x", number(0), named("n")))
        n**2/2 + n/2
    """
    below = low - 1
    parts: list[Polynomial] = []
    for monomial, factor in weight.monomials:
        rest = trusted(((tuple([entry for entry in monomial if entry[0] != name]), factor),))
        for power, share in enumerate(_faulhaber(dict(monomial).get(name, 0))):
            parts.append(rest * (power_of(high, power) - power_of(below, power)) * share)
    return total(parts)


@lru_cache(maxsize=64)
def _faulhaber(degree: int) -> tuple[Fraction, ...]:
    """Return the coefficients of S(n) = 1^k + ... + n^k, lowest first, by recursion over the lower k."""
    total = [Fraction(comb(degree + 1, power)) for power in range(degree + 2)]
    total[0] -= 1
    for lower in range(degree):
        for power, value in enumerate(_faulhaber(lower)):
            total[power] -= comb(degree + 1, lower) * value
    return tuple(value / (degree + 1) for value in total)
