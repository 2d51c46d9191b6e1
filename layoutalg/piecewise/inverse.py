"""Inverses of functions: read off their digits without a solver, or found by ISL and checked.

Let v = c + sum d_k x_k with 0 <= x_k - l_k < s_k for all but the axis of the largest |d|, every |d| a multiple of the
next smaller one and at least that one times its extent s. With r = v - c - sum of the least values of the terms, the
digit of d_k counted from its low end is floor((r mod d_(k+1)) / d_k), or floor(r / d_k) for the largest. This recovers
the digits of every value, and v is a value exactly if they are in the domain and d_1 divides r.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError
from layoutalg.piecewise import confirm, functions, questions, regions, small
from layoutalg.piecewise.budget import solve, solve_here
from layoutalg.piecewise.clouds import Cloud, clouds
from layoutalg.piecewise.confirm import DisagreementError, judged, same, valued
from layoutalg.piecewise.explicit import EMPTY
from layoutalg.piecewise.meaning import Meaning, UnreadError, read
from layoutalg.piecewise.pieces import Form, Piece, pieces


def digits_inverse(text: str, axes: Sequence[str], outputs: Sequence[str]) -> str | None:
    """Return the inverse read off the digits, checked against the layout; None if the outputs are not digit chains.

    Args:
        text: Canonical text of a function.
        axes: Names of its axes.
        outputs: Names of its outputs, none of them a parameter or an axis.

    Raises: BudgetError: LA222, LA793, LA794.
    """
    found = chain_inverse(text, axes, outputs) or digit_inverse(text, axes, outputs)
    if found is not None:
        judged(f"the inverse of {text}", lambda: confirm.inverse_of(found, read(text)))
    return found


def chain_inverse(text: str, axes: Sequence[str], outputs: Sequence[str]) -> str | None:
    """Return the inverse of a one-piece layout as ISL text; None if an output is not a chain of digits.

    Args:
        text: Canonical text of a function.
        axes: Names of its axes.
        outputs: Names of its outputs, none of them a parameter or an axis.

    Example:
        >>> chain_inverse("{ [a, b] -> [(7 - b + 4a)] : 0 <= a < 5 and 0 <= b < 3 }", ("a", "b"), ("v",))
        '{ [v] -> [(-1 + floor((-1 + v)/4)), (2 - (-1 + v) mod 4)] : 5 <= v <= 24 and 4*floor((-1 + v)/4) >= -3 + v }'
    """
    whole = _only_piece(text)
    if whole is None or not axes:
        return None
    params = functions.parameters(text)
    inside = functions.domain(text)
    bounds = regions.constant_extents(inside)
    digits: dict[int, str] = {}
    guards: list[str] = []
    for name, (floors, value) in zip(outputs, whole.outputs, strict=True):
        if floors or value.denominator != 1:
            return None
        given = [f"{a}*{param}" for a, param in zip(value.dims, params, strict=False) if a]
        factors = {k: a for k, a in enumerate(value.dims[len(params) :]) if a}
        if factors.keys() & digits.keys():
            return None
        found = _digits(name, " + ".join([str(value.constant), *given]), factors, bounds)
        if found is None:
            return None
        digits.update(found[0])
        guards.append(found[1])
    for k, bound in enumerate(bounds):
        if k not in digits and bound is not None and bound[0] == bound[1]:
            digits[k] = str(bound[0])
    if len(digits) < len(axes):
        return None
    head = f"[{', '.join(params)}] -> " if params else ""
    values = ", ".join(digits[k] for k in range(len(axes)))
    back = f"{head}{{ [{', '.join(outputs)}] -> [{values}] : {' and '.join(guards)} }}"
    return functions.within(back, inside)


def _only_piece(text: str) -> Piece | None:
    """Return the piece of a one-piece function, its parameters as leading inputs; else None."""
    found = () if text.endswith(EMPTY) else pieces(functions.lifted(text))
    return found[0] if len(found) == 1 else None


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


def digit_inverse(text: str, axes: Sequence[str], outputs: Sequence[str]) -> str | None:
    """Return the inverse of a layout that is a digit chain on the digits of its axes, or None.

    Mathematically: if every floor of the single piece is ``floor(x / w)`` of an axis x, and the w of an axis divide one
    another, x is the sum of digits d_j w_j and the floors are sums of these digits, so the layout is affine on digits.

    Args:
        text: Canonical text of a function.
        axes: Names of its axes.
        outputs: Names of its outputs, none of them a parameter or an axis.

    Example:
        >>> digit_inverse("{ [x] -> [2*(x mod 3) + floor(x/3)] : 0 <= x < 6 }", ("x",), ("y",))
        '{ [y] -> [(3y - 5*floor((y)/2))] : 0 <= y <= 5 }'
    """
    piece = _only_piece(text) if axes else None
    params = functions.parameters(text)
    weights = None if piece is None else _weights(piece, len(params), len(axes))
    if piece is None or weights is None or all(len(row) == 1 for row in weights):
        return None
    taken = {*params, *axes, *outputs}
    names = [[_free(f"{axis}_{w}", taken) for w in row] for axis, row in zip(axes, weights, strict=True)]
    sums = [" + ".join(f"{w}*{d}" for w, d in zip(*pair, strict=True)) for pair in zip(weights, names, strict=True)]
    bounds = [
        f"0 <= {digit} < {high // low}"
        for row, mine in zip(weights, names, strict=True)
        for (low, high), digit in zip(pairwise(row), mine, strict=False)
    ]
    flat = [digit for mine in names for digit in mine]
    guard = " and ".join(bounds)
    link = f"{{ [{', '.join(flat)}] -> [{', '.join(sums)}] : {guard} }}"
    domain = functions.domain(functions.within(link, functions.domain(text)))
    values = [_on_digits(floors, value, params, weights, names) for floors, value in piece.outputs]
    head = f"[{', '.join(params)}] -> " if params else ""
    whole = functions.restrict(f"{head}{{ [{', '.join(flat)}] -> [{', '.join(values)}] }}", domain)
    inverse = chain_inverse(whole, flat, outputs)
    return None if inverse is None else functions.after(link, None, inverse)


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


def turned(text: str, names: Sequence[str], least: bool) -> str:
    """Return the inverse of an injective function; with ``least``, of any function, to the least point of each value.

    Args:
        text: Canonical text of a function.
        names: Names of its outputs, none of them a parameter or an axis.
        least: Whether to pick the least of several points; else the function must be injective.

    Raises: BudgetError: LA222, LA793.

    Example:
        >>> turned("{ [i] -> [floor(i/3)] : 0 <= i < 9 }", ("y",), True)
        '{ [y] -> [(3y)] : 0 <= y <= 2 }'
    """
    question = f"the inverse of {text}"
    function = confirm.meant(text)
    because: DisagreementError | None = None
    unread: UnreadError | None = None
    gave_up: BudgetError | None = None
    ways = ((0, False), (0, True), (1, False), (1, True))
    for engine, (route, plain) in (
        [("short", way) for way in ways] + [("runs", ways[0])] + [("long", way) for way in ways]
    ):
        clock.check(question[:200])
        if gave_up is not None and engine == "long":
            continue
        found: str | None
        try:
            if engine == "runs":
                found = small.inverse_text(text, names)
            elif engine == "short":
                found = solve_here(question, questions.turned, text, tuple(names), least, route, plain)
            else:
                found = solve(question, questions.turned, None, text, tuple(names), least, route, plain)
            if found is None:
                continue
            confirm.twice(partial(confirm.inverse_of, found, function, least))
        except DisagreementError as error:
            because = error
        except UnreadError as error:
            unread = error
        except BudgetError as error:
            gave_up = error
        else:
            return found
    if gave_up is None and because is not None:
        confirm.doubted(question, str(because), because.at)
    if gave_up is None:
        confirm.unjudged(question, str(unread))
    raise gave_up


def left_inverse(text: str, extents: Sequence[int]) -> str:
    """Return the function from each value to the flat index of its only point, 0 between the values.

    Args:
        text: An injective function on the box of ``extents``, with one output >= 0.
        extents: Extents of the box, fastest first.

    Raises: BudgetError: LA222, LA793, LA794.

    Example:
        >>> left_inverse("{ [a] -> [2a] : 0 <= a < 4 }", (4,)).split(";")[0]
        '{ [v] -> [(0)] : (1 + v) mod 2 = 0 and 0 < v <= 5'
    """
    found = solve("the inverse of a function", questions.left_inverse, None, text, tuple(extents))
    judged("the inverse of a function", lambda: _left_inverse_of(read(found), read(text), extents))
    return found


def _left_inverse_of(found: Meaning, function: Meaning, extents: Sequence[int]) -> None:
    """Check the function from values to flat indices, 0 between the values."""
    for cloud in clouds((function, function.inputs), width=function.inputs):
        values, covered = valued(function, cloud)
        index, weight = np.zeros(cloud.shape, dtype=object), 1
        for place, extent in zip(cloud.places, extents, strict=True):
            index, weight = index + weight * place.astype(object), weight * extent
        images = Cloud({}, tuple(value[covered] for value in values), int(covered.sum()), False)
        back, defined = valued(found, images)
        same("a value without an index", defined, np.ones_like(defined), images)
        same("another index", back[0], index[covered], images)
        taken = set(images.places[0].tolist())
        for every in clouds((found, 1), width=1) if cloud.exact else ():
            back, defined = valued(found, every)
            zero = np.array([value not in taken for value in every.places[0].tolist()]) & defined
            same("an index of no value", np.where(zero, back[0], 0), np.zeros_like(back[0]), every)
