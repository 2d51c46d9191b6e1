"""Inverses of functions: read off their digits without a solver, or found by ISL and checked.

Let v = c + sum d_k x_k with 0 <= x_k - l_k < s_k for all but the axis of the largest |d|, every |d| a multiple of the
next smaller one and at least that one times its extent s. With r = v - c - sum of the least values of the terms, the
digit of d_k counted from its low end is floor((r mod d_(k+1)) / d_k), or floor(r / d_k) for the largest. This recovers
the digits of every value, and v is a value exactly if they are in the domain and d_1 divides r.

If every floor of the single piece is ``floor(x / w)`` of an axis x, and the w of an axis divide one another, x is the
sum of digits d_j w_j and the floors are sums of these digits, so the function is affine on digits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.lazy import later
from layoutalg.piecewise import confirm, questions
from layoutalg.piecewise.budget import solve_here
from layoutalg.piecewise.confirm import WRONG, judged
from layoutalg.piecewise.operations import table
from layoutalg.piecewise.pieces import Form
from layoutalg.piecewise.reading import Point, read_function
from layoutalg.piecewise.runs import runs_text
from layoutalg.piecewise.value import Value, answer, answered, held, listed_pieces, output_form

if TYPE_CHECKING:
    import islpy
else:
    islpy = later("islpy")

LISTED, FEW_PIECES = 512, 64
"""Points of a function that is listed in any number of runs, and pieces of one of up to ``LISTED_IN_FEW`` points."""
LISTED_IN_FEW = 2048
TEXT = 100_000
Span = tuple[int, int] | None


def digits_inverse(function: Value, outputs: Sequence[str]) -> Value | None:
    """Return the inverse read off the digits, checked against the function; None if the outputs are no digit chains.

    Args:
        function: The function.
        outputs: Names of its outputs, none of them a parameter or an axis.

    Example:
        >>> print(digits_inverse(read_function("{ [a, b] -> [7 - b + 4a] : 0 <= a < 5 and 0 <= b < 3 }")[0], ("v",)))
        { [v] -> [(-1 + floor((-1 + v)/4)), (2 - (-1 + v) mod 4)] : 5 <= v <= 24 and 4*floor((-1 + v)/4) >= -3 + v }
        >>> print(digits_inverse(read_function("{ [x] -> [2*(x mod 3) + floor(x/3)] : 0 <= x < 6 }")[0], ("y",)))
        { [y] -> [(3y - 5*floor((y)/2))] : 0 <= y <= 5 }
    """
    if not function.axes:
        return None
    found: Value | None = answer(chained, function, *outputs)
    return None if found is None else _confirmed(found, function, False)


def _confirmed(found: Value, function: Value, least: bool) -> Value:
    """Return an inverse that is compared with the function before anything is read from it."""

    def judge(found: Value) -> None:
        judged(lambda: f"the inverse of {function}", lambda: confirm.inverse_of(found, function, least))

    return found.judged_by(judge)


def chained(context: islpy.Context, function: Value, *outputs: str) -> Any:
    """Return the inverse of a function of one piece whose outputs are chains of digits; else None."""
    found = held(context, function)
    parts = listed_pieces(found)
    if len(parts) != 1:
        return None
    forms = [output_form(parts[0][1].get_at(place)) for place in range(found.dim(islpy.dim_type.out))]
    if any(value.denominator != 1 for _, value in forms):
        return None
    values = found.get_space().range()
    for place, name in enumerate(outputs):
        values = values.set_dim_name(islpy.dim_type.set, place, name)
    params, axes = len(function.params), len(function.axes)
    inside = found.domain()
    if not any(floors for floors, _ in forms):
        return _chain(values, params, [value for _, value in forms], inside)
    weights = _weights(forms, params, axes)
    if weights is None or all(len(row) == 1 for row in weights):
        return None
    link = _digit_sums(inside.get_space(), weights)
    on_digits = [_on_digits(floors, value, params, weights) for floors, value in forms]
    back = _chain(values, params, on_digits, inside.preimage_pw_multi_aff(link).intersect(link.domain()))
    return None if back is None else link.pullback_pw_multi_aff(back)


def _chain(values: Any, params: int, forms: Sequence[Form], inside: Any) -> Any:
    """Return the inverse of affine forms without floors on a set; None if an output is not a chain of digits."""
    kinds, count = islpy.dim_type, inside.dim(islpy.dim_type.set)
    spans = questions.spans(inside)
    if spans is None:
        return None
    local = islpy.LocalSpace.from_space(values)
    zero = islpy.Aff.zero_on_domain(local)
    digits: dict[int, Any] = {}
    guards = islpy.Set.universe(values)
    for place, form in enumerate(forms):
        rest = _plus(islpy.Aff.var_on_domain(local, kinds.set, place), -form.constant)
        for k, a in enumerate(form.dims[:params]):
            rest = rest.add_coefficient_val(kinds.param, k, _number(rest, -a)) if a else rest
        factors = {k: a for k, a in enumerate(form.dims[params:]) if a}
        found = None if factors.keys() & digits.keys() else _digits(rest, factors, spans)
        if found is None:
            return None
        digits.update(found[0])
        guards = guards.intersect(found[1])
    for k, span in enumerate(spans):
        if k not in digits and span is not None and span[0] == span[1]:
            digits[k] = _plus(zero, span[0])
    if len(digits) < count:
        return None
    back = islpy.MultiAff.zero(islpy.Space.map_from_domain_and_range(values, inside.get_space()))
    for k, digit in digits.items():
        back = back.set_aff(k, digit)
    function = back.to_pw_multi_aff()
    return function.intersect_domain(guards.intersect(inside.preimage_multi_aff(back)))


def _digits(rest: Any, factors: dict[int, int], spans: Sequence[Span]) -> tuple[dict[int, Any], Any] | None:
    """Return the axes of one output as expressions of its value, and where the remainder is 0."""
    order = sorted(factors, key=lambda k: (abs(factors[k]), _extent(spans[k])))
    for low, high in pairwise(order):
        if factors[high] % factors[low] or abs(factors[high]) < abs(factors[low]) * _extent(spans[low]):
            return None
    starts = {}
    for k in order:
        span = spans[k]
        # a flipped axis counts from its high end; an unbounded axis counts from 0
        starts[k] = 0 if span is None else span[0] if factors[k] > 0 else span[1]
    rest = _plus(rest, -sum(factors[k] * starts[k] for k in order))
    found = {}
    for place, k in enumerate(order):
        inner = rest.mod_val(_number(rest, abs(factors[order[place + 1]]))) if place + 1 < len(order) else rest
        digit = inner.scale_down_val(_number(rest, abs(factors[k]))).floor()
        found[k] = _plus(digit if factors[k] > 0 else digit.neg(), starts[k])
    remainder = rest.mod_val(_number(rest, abs(factors[order[0]]))) if order else rest
    return found, remainder.zero_basic_set().to_set()


def _extent(span: Span) -> float:
    """Return the number of values of an axis, infinity if unbounded."""
    return math.inf if span is None else span[1] - span[0] + 1


def _number(near: Any, number: int) -> islpy.Val:
    return islpy.Val.read_from_str(near.get_ctx(), str(number))


def _plus(form: Any, constant: int) -> Any:
    return form.add_constant_val(_number(form, constant)) if constant else form


def _weights(forms: Sequence[tuple[tuple[Form, ...], Form]], params: int, count: int) -> list[list[int]] | None:
    """Return 1 and the denominators of the floors of each axis, ascending; None unless each divides the next."""
    weights: list[set[int]] = [{1} for _ in range(count)]
    for floor in (floor for floors, _ in forms for floor in floors):
        moving = [k for k, a in enumerate(floor.dims) if a]
        if len(moving) != 1 or floor.dims[moving[0]] != 1 or any(floor.floors) or floor.constant:
            return None
        if moving[0] < params:
            return None
        weights[moving[0] - params].add(floor.denominator)
    rows = [sorted(row) for row in weights]
    return rows if all(high % low == 0 for row in rows for low, high in pairwise(row)) else None


def _digit_sums(axes: Any, weights: Sequence[Sequence[int]]) -> Any:
    """Return the map from all digits to the axes, on the box where the digits but the last of each axis are digits."""
    kinds, count = islpy.dim_type, sum(map(len, weights))
    digits = axes.drop_dims(kinds.set, 0, len(weights)).add_dims(kinds.set, count)
    local, box = islpy.LocalSpace.from_space(digits), islpy.Set.universe(digits)
    link = islpy.MultiAff.zero(islpy.Space.map_from_domain_and_range(digits, axes))
    place = 0
    for axis, row in enumerate(weights):
        total = islpy.Aff.zero_on_domain(local)
        for low, high in zip(row, [*row[1:], None], strict=True):
            digit = islpy.Aff.var_on_domain(local, kinds.set, place)
            total = total.add(digit.scale_val(_number(digit, low)))
            if high is not None:
                top = islpy.Aff.zero_on_domain(local).add_constant_val(_number(digit, high // low))
                box = box.intersect(digit.ge_set(islpy.Aff.zero_on_domain(local))).intersect(digit.lt_set(top))
            place += 1
        link = link.set_aff(axis, total)
    return link.to_pw_multi_aff().intersect_domain(box)


def _on_digits(floors: Sequence[Form], value: Form, params: int, weights: Sequence[Sequence[int]]) -> Form:
    """Return an output as a form of the digits."""
    total: list[int] = []
    for axis, row in enumerate(weights):
        for w in row:
            factor = value.dims[params + axis] * w
            for a, floor in zip(value.floors, floors, strict=False):
                if floor.dims[params + axis] and w >= floor.denominator:
                    factor += a * (w // floor.denominator)
            total.append(factor)
    return Form((*value.dims[:params], *total), (), value.constant)


def turned(function: Value, names: Sequence[str], least: bool) -> Value | None:
    """Return the inverse of a function, None if two points have one value.

    Args:
        function: The function.
        names: Names of its outputs, none of them a parameter or an axis.
        least: Whether to pick the least of several points.

    Example:
        >>> print(turned(read_function("{ [i] -> [floor(i/3)] : 0 <= i < 9 }")[0], ("y",), True))
        { [y] -> [(3y)] : 0 <= y <= 2 }
    """
    gave_up: BudgetError | None = None
    wrong: BudgetError | None = None
    for engine, route in (("short", 0), ("short", 1), ("runs", 0), ("long", 0), ("long", 1)):
        clock.check("the inverse of a function")
        if gave_up is not None and engine == "long":
            break
        try:
            found: Any = None
            if engine == "runs":
                found = _listed_inverse(function, names, least)
            elif engine == "short":
                what = f"the inverse of {function}"
                found = solve_here(what, answered, questions.turned, (function, least, route, *names))
            else:
                found = answer(questions.turned, function, least, route, *names)
            if found is not None:
                made = _confirmed(found, function, least) if found else None
                # ISL's least points are wrong now and then, and another way is right
                return made.settled() if made is not None and least else made
        except BudgetError as error:
            if error.diagnostic.code == WRONG:
                wrong = error
            else:
                gave_up = error
    where = (f"the inverse of {function}"[:200],)
    raise gave_up or wrong or BudgetError(Diagnostic("LA222", "ISL gave up", where, "no way to invert it worked"))


def _listed_inverse(function: Value, names: Sequence[str], least: bool) -> Value | tuple[()] | None:
    """Return the least point of every value of a function of few points, as runs; None if there are many.

    Unless ``least``, the answer is () if two points have one value.
    """
    found = table(function)
    if found is None or not 0 < len(found[0]) <= LISTED_IN_FEW or not names:
        return None
    points: dict[Point, Point] = {}
    for point, value in zip(*found, strict=True):
        points.setdefault(value, point)
    if not least and len(points) < len(found[0]):
        return ()
    runs = runs_text(points, names)
    few = len(found[0]) <= LISTED or runs.count(";") < FEW_PIECES
    # settled, so judged at once: values of texts are shared
    return read_function(runs)[0].settled() if few and len(runs) < TEXT else None


def left_inverse(function: Value, extents: Sequence[int]) -> Value:
    """Return the function from each value to the flat index of its only point, 0 between the values; unconfirmed.

    Args:
        function: An injective function on the box of ``extents``, with one output >= 0.
        extents: Extents of the box, fastest first.

    Example:
        >>> left_inverse(read_function("{ [a] -> [2a] : 0 <= a < 4 }")[0], (4,)).text.split(";")[0]
        '{ [v] -> [(0)] : (1 + v) mod 2 = 0 and 0 < v <= 5'
    """
    found: Value = answer(questions.left_inverse, function, *extents)
    return found
