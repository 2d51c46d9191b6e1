"""Inverses of functions: read off their digits without a solver, or found by ISL and checked.

Let v = c + sum d_k x_k with 0 <= x_k - l_k < s_k for all but the axis of the largest |d|, every |d| a multiple of the
next smaller one and at least that one times its extent s. With r = v - c - sum of the least values of the terms, the
digit of d_k counted from its low end is floor((r mod d_(k+1)) / d_k), or floor(r / d_k) for the largest. This recovers
the digits of every value, and v is a value exactly if they are in the domain and d_1 divides r.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.piecewise import confirm, questions
from layoutalg.piecewise.budget import solve, solve_here
from layoutalg.piecewise.confirm import DisagreementError, judged
from layoutalg.piecewise.operations import table
from layoutalg.piecewise.pieces import Form, Piece, Value
from layoutalg.piecewise.reading import Point, read_function
from layoutalg.piecewise.runs import runs_text

LISTED = 512
TEXT = 100_000


def digits_inverse(function: Value, outputs: Sequence[str]) -> Value | None:
    """Return the inverse read off the digits, checked against the layout; None if the outputs are not digit chains.

    Args:
        function: The function.
        outputs: Names of its outputs, none of them a parameter or an axis.
    """
    found = chain_inverse(function, outputs) or digit_inverse(function, outputs)
    if found is not None:
        judged(f"the inverse of {function.text}", lambda: confirm.inverse_of(found, function))
    return found


def chain_inverse(function: Value, outputs: Sequence[str]) -> Value | None:
    """Return the inverse of a one-piece layout; None if an output is not a chain of digits.

    Args:
        function: The function.
        outputs: Names of its outputs, none of them a parameter or an axis.

    Example:
        >>> chain_inverse(read_function("{ [a, b] -> [(7 - b + 4a)] : 0 <= a < 5 and 0 <= b < 3 }")[0], ("v",)).text
        '{ [v] -> [(-1 + floor((-1 + v)/4)), (2 - (-1 + v) mod 4)] : 5 <= v <= 24 and 4*floor((-1 + v)/4) >= -3 + v }'
    """
    params, axes = function.params, function.axes
    if len(function.pieces) != 1 or not axes:
        return None
    chained = function.pieces[0].outputs
    if any(floors or value.denominator != 1 for floors, value in chained):
        return None
    inside = _isl(questions.domain, function)
    spans = _isl(questions.bounds, inside)
    if spans is None:
        return None
    digits: dict[int, str] = {}
    guards: list[str] = []
    for name, (_, value) in zip(outputs, chained, strict=True):
        given = [f"{a}*{param}" for a, param in zip(value.dims, params, strict=False) if a]
        factors = {k: a for k, a in enumerate(value.dims[len(params) :]) if a}
        if factors.keys() & digits.keys():
            return None
        found = _digits(name, " + ".join([str(value.constant), *given]), factors, spans)
        if found is None:
            return None
        digits.update(found[0])
        guards.append(found[1])
    for k, bound in enumerate(spans):
        if k not in digits and bound is not None and bound[0] == bound[1]:
            digits[k] = str(bound[0])
    if len(digits) < len(axes):
        return None
    head = f"[{', '.join(params)}] -> " if params else ""
    values = ", ".join(digits[k] for k in range(len(axes)))
    back = f"{head}{{ [{', '.join(outputs)}] -> [{values}] : {' and '.join(guards)} }}"
    inverse: Value = _isl(questions.within, read_function(back)[0], inside)
    return inverse


def _digits(
    name: str, constant: str, factors: dict[int, int], bounds: Sequence[tuple[int, int] | None]
) -> tuple[dict[int, str], str] | None:
    """Return the axes of one output as expressions of its value, and the condition that the remainder is 0."""
    order = sorted(factors, key=lambda k: (abs(factors[k]), _extent(bounds[k])))
    for low, high in pairwise(order):
        if factors[high] % factors[low] or abs(factors[high]) < abs(factors[low]) * _extent(bounds[low]):
            return None
    rest, starts = [f"{name} - ({constant})"], {}
    for k in order:
        bound = bounds[k]
        # a flipped axis counts from its high end; an unbounded axis counts from 0
        start = 0 if bound is None else bound[0] if factors[k] > 0 else bound[1]
        starts[k] = start
        rest.append(f"({-factors[k] * start})")
    left = " + ".join(rest)
    answer = {}
    for place, k in enumerate(order):
        inner = f"({left}) mod {abs(factors[order[place + 1]])}" if place + 1 < len(order) else f"({left})"
        digit = f"floor(({inner})/{abs(factors[k])})"
        answer[k] = f"{starts[k]} {'+' if factors[k] > 0 else '-'} {digit}"
    guard = f"({left}) mod {abs(factors[order[0]])} = 0" if order else f"{left} = 0"
    return answer, guard


def _extent(bound: tuple[int, int] | None) -> float:
    """Return the number of values of an axis, infinity if unbounded."""
    return math.inf if bound is None else bound[1] - bound[0] + 1


def digit_inverse(function: Value, outputs: Sequence[str]) -> Value | None:
    """Return the inverse of a layout that is a digit chain on the digits of its axes, or None.

    Mathematically: if every floor of the single piece is ``floor(x / w)`` of an axis x, and the w of an axis divide one
    another, x is the sum of digits d_j w_j and the floors are sums of these digits, so the layout is affine on digits.

    Args:
        function: The function.
        outputs: Names of its outputs, none of them a parameter or an axis.

    Example:
        >>> digit_inverse(read_function("{ [x] -> [2*(x mod 3) + floor(x/3)] : 0 <= x < 6 }")[0], ("y",)).text
        '{ [y] -> [(3y - 5*floor((y)/2))] : 0 <= y <= 5 }'
    """
    params, axes = function.params, function.axes
    if len(function.pieces) != 1 or not axes:
        return None
    piece = function.pieces[0]
    weights = _weights(piece, len(params), len(axes))
    if weights is None or all(len(row) == 1 for row in weights):
        return None
    taken = {*params, *axes, *outputs}
    names = [[_free(f"{axis}_{w}", taken) for w in row] for axis, row in zip(axes, weights, strict=True)]
    sums = [" + ".join(f"{w}*{d}" for w, d in zip(*pair, strict=True)) for pair in zip(weights, names, strict=True)]
    limits = [
        f"0 <= {digit} < {high // low}"
        for row, mine in zip(weights, names, strict=True)
        for (low, high), digit in zip(pairwise(row), mine, strict=False)
    ]
    flat = ", ".join(digit for mine in names for digit in mine)
    link = read_function(f"{{ [{flat}] -> [{', '.join(sums)}] : {' and '.join(limits)} }}")[0]
    values = [_on_digits(floors, value, params, weights, names) for floors, value in piece.outputs]
    head = f"[{', '.join(params)}] -> " if params else ""
    whole = read_function(f"{head}{{ [{flat}] -> [{', '.join(values)}] }}")[0]
    inside = _isl(questions.domain, _isl(questions.within, link, _isl(questions.domain, function)))
    inverse = chain_inverse(_isl(questions.restrict, whole, inside), outputs)
    return None if inverse is None else _isl(questions.after, link, inverse)


def _isl(ask: Callable[..., Any], *operands: Value) -> Any:
    """Return ISL's answer unconfirmed: the inverse that is made of it is confirmed as a whole."""
    return solve(ask.__name__, ask, None, *(operand.text for operand in operands))


def _weights(piece: Piece, params: int, count: int) -> list[list[int]] | None:
    """Return 1 and the denominators of the floors of each axis, ascending; None unless each divides the next."""
    weights: list[set[int]] = [{1} for _ in range(count)]
    for floors, value in piece.outputs:
        if value.denominator != 1:
            return None
        for floor in floors:
            moving = [k for k, a in enumerate(floor.dims) if a]
            if len(moving) != 1 or floor.dims[moving[0]] != 1 or any(floor.floors) or floor.constant:
                return None
            if moving[0] < params:
                return None
            weights[moving[0] - params].add(floor.denominator)
    rows = [sorted(row) for row in weights]
    return rows if all(high % low == 0 for row in rows for low, high in pairwise(row)) else None


def _on_digits(
    floors: Sequence[Form],
    value: Form,
    params: Sequence[str],
    weights: Sequence[Sequence[int]],
    names: Sequence[Sequence[str]],
) -> str:
    """Return an output as a sum of digits."""
    total: dict[str, int] = {name: a for name, a in zip(params, value.dims, strict=False) if a}
    for a, row, mine in zip(value.dims[len(params) :], weights, names, strict=True):
        for w, digit in zip(row, mine, strict=True):
            total[digit] = total.get(digit, 0) + a * w
    for a, floor in zip(value.floors, floors, strict=False):
        k = next(k for k, b in enumerate(floor.dims) if b) - len(params)
        for w, digit in zip(weights[k], names[k], strict=True):
            if w >= floor.denominator:
                total[digit] = total.get(digit, 0) + a * (w // floor.denominator)
    return " + ".join([str(value.constant), *(f"{a}*{name}" for name, a in total.items() if a)])


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_d"
    taken.add(name)
    return name


def turned(function: Value, names: Sequence[str], least: bool) -> Value:
    """Return the inverse of an injective function; with ``least``, of any function, to the least point of each value.

    Args:
        function: The function.
        names: Names of its outputs, none of them a parameter or an axis.
        least: Whether to pick the least of several points; else the function must be injective.

    Example:
        >>> turned(read_function("{ [i] -> [floor(i/3)] : 0 <= i < 9 }")[0], ("y",), True).text
        '{ [y] -> [(3y)] : 0 <= y <= 2 }'
    """
    question = f"the inverse of {function.text}"
    wrong: DisagreementError | None = None
    gave_up: BudgetError | None = None
    for engine, route in (("short", 0), ("short", 1), ("runs", 0), ("long", 0), ("long", 1)):
        clock.check(question[:200])
        if gave_up is not None and engine == "long":
            continue
        try:
            if engine == "runs":
                found = _listed_inverse(function, names)
            elif engine == "short":
                found = solve_here(question, questions.turned, function.text, tuple(names), least, route)
            else:
                found = solve(question, questions.turned, None, function.text, tuple(names), least, route)
            if found is not None:
                confirm.inverse_of(found, function, least)
                return found
        except DisagreementError as error:
            wrong = error
        except BudgetError as error:
            gave_up = error
    if gave_up is None and wrong is not None:
        confirm.doubted(question, wrong)
    raise gave_up or BudgetError(Diagnostic("LA222", "ISL gave up", (question[:200],), "no way to invert it worked"))


def _listed_inverse(function: Value, names: Sequence[str]) -> Value | None:
    """Return the least point of every value of a function of few points, as runs; None if there are many."""
    found = table(function)
    if found is None or not 0 < len(found[0]) <= LISTED or not names:
        return None
    least: dict[Point, Point] = {}
    for point, value in zip(*found, strict=True):
        least.setdefault(value, point)
    answer = runs_text(least, names)
    return read_function(answer)[0] if len(answer) < TEXT else None


def left_inverse(function: Value, extents: Sequence[int]) -> Value:
    """Return the function from each value to the flat index of its only point, 0 between the values; unconfirmed.

    Args:
        function: An injective function on the box of ``extents``, with one output >= 0.
        extents: Extents of the box, fastest first.

    Example:
        >>> left_inverse(read_function("{ [a] -> [2a] : 0 <= a < 4 }")[0], (4,)).text.split(";")[0]
        '{ [v] -> [(0)] : (1 + v) mod 2 = 0 and 0 < v <= 5'
    """
    return solve(f"the inverse of {function.text}", questions.left_inverse, None, function.text, tuple(extents))
