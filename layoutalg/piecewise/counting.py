"""Point counts as sums of polynomials in the parameters and their floors.

Points are counted axis by axis. If the values of one axis, the others fixed, are all integers from l to h, both affine
in the others, the sum of x^k over them is S_k(h) - S_k(l - 1), with S_k Faulhaber's polynomial; this is valid for all
integers l <= h + 1, including negative ones. A floor of the parameters is one more variable; a floor of an axis that is
not yet summed is not a polynomial, so that order of the axes is abandoned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import permutations
from math import comb
from typing import TYPE_CHECKING, Any

from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError
from layoutalg.ground.lazy import later
from layoutalg.ground.polynomial import ONE, Polynomial, named, number, power_of, total, trusted, value_at
from layoutalg.piecewise.budget import solve, written

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")

AXES = 6
ORDERS = 24
PARTS = 200


@dataclass(frozen=True, slots=True)
class Part:
    """A polynomial that is part of a count, for the parameter values of a guard.

    Args:
        floors: ISL text of a function without inputs, defined where the guard is true; its outputs are the variables
            ``@0``, ``@1``, ...
        value: The polynomial in the parameters and the floors.
    """

    floors: str
    value: Polynomial

    def __str__(self) -> str:
        return f"{self.value} with {self.floors}"

    def at(self, floors: Sequence[int], params: Mapping[str, int]) -> Fraction:
        """Return the value of the polynomial."""
        return value_at(self.value, {**params, **{f"@{place}": value for place, value in enumerate(floors)}})


def counted(text: str) -> tuple[Part, ...] | None:
    """Return polynomials whose sum, each under its guard, is the number of points; None if none were found.

    Args:
        text: ISL text of a set with parameters.

    Raises: BudgetError: LA222.

    Example:
        >>> [part] = counted("[N] -> { [i, j] : 0 <= j <= i < N }")
        >>> print(part)
        N**2/2 + N/2 with [N] -> { [] -> [0] : N > 0 }
    """
    return solve(f"the number of points of {text}", _counted, None, text)


def _counted(context: islpy.Context, text: str) -> tuple[Part, ...] | None:
    points = islpy.Set.read_from_str(context, text).coalesce().make_disjoint()
    parts: list[Part] = []
    for piece in points.get_basic_sets():
        found = _piece(piece.to_set())
        if found is None:
            return None
        parts += found
        if len(parts) > PARTS:
            raise BudgetError(
                Diagnostic(
                    code="LA222",
                    what="the number of points has too many cases",
                    where=(text[:200],),
                    because=f"more than {PARTS} pieces",
                    witness={"pieces": len(parts)},
                )
            )
    return tuple(parts)


def _piece(points: Any) -> list[Part] | None:
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


def _eliminated(points: Any, weight: Polynomial, order: list[str], floors: tuple[str, ...]) -> list[Part] | None:
    """Return the parts of the sum of ``weight`` over a set, its axes summed in order; None if one cannot be summed.

    Axis k of the original set is the variable ``#k``; the remaining axes keep their order.
    """
    kinds = islpy.dim_type
    if not order:
        head, _, guard = written(points).partition("{ []")
        values = [text.partition("{ [")[2].rpartition("] }")[0] for text in floors] or ["0"]
        return [Part(f"{head}{{ [] -> [{', '.join(values)}]{guard}", weight)]
    name, rest = order[0], sorted(order[1:], key=lambda axis: int(axis[1:]))
    position = sorted(order, key=lambda axis: int(axis[1:])).index(name)
    line, others = _alone(points, position)
    low, high = line.dim_min(0), line.dim_max(0)
    # does the axis take all integers between its least and greatest value, for every choice of the others?
    ctx = points.get_ctx()
    above, below = (islpy.Map.read_from_str(ctx, f"{{ [a] -> [x] : a {sign} x }}") for sign in ("<=", ">="))
    if not line.apply(above).intersect(line.apply(below)).is_equal(line):
        return None
    answer: list[Part] = []
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
