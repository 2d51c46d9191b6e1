"""Movement terms, executed place by place: memory is a dictionary of offsets, registers a dictionary of places."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from layoutalg.proofs.movement import Term

ZERO = "0"
ZERO_KEEPING = {"abs", "add", "cast", "max", "min", "mul", "relu", "sub"}
State = dict[Any, Any]


def executed(whole: Term) -> State:
    """What each element is, by coordinates, in the physical state that a term leaves, read through its layout."""
    done: dict[Term, State] = {}
    for each in whole.terms():
        done[each] = _step(each, [(operand, done[operand]) for operand in each.of])
    return elements(whole, done[whole])


def elements(of: Term, state: State) -> State:
    """The value at each coordinate; all places of an element must agree."""
    kind, found = of.kind, {}
    layout = kind.layout.array()
    if kind.tier == "registers":
        for place in product(*map(range, layout.shape)):
            at = np.unravel_index(int(layout[place]), kind.shape)
            value = found.setdefault(tuple(map(int, at)), state[place])
            assert value == state[place], f"{place} of {of} disagrees"
        return found
    for at in product(*map(range, kind.shape)):
        offset = int(layout[at])
        found[at] = ZERO if offset < 0 else state[offset]
    return found


def _step(each: Term, of: list[tuple[Term, State]]) -> State:
    op, args = each.op, each.args
    if op == "input":
        name, shape, _, strides, _ = args
        return {sum(a * b for a, b in zip(at, strides, strict=True)): (name, at) for at in product(*map(range, shape))}
    operand, state = of[0]
    if op == "elementwise":
        types = tuple(x.kind.dtype for x, _ in of)
        return {place: _applied((args[0], args[1], types), [values[place] for _, values in of]) for place in state}
    if op in ("load", "convert"):
        values, layout = elements(operand, state), args[0].array()
        places = product(*map(range, layout.shape))
        return {place: values[_point(int(layout[place]), operand.kind.shape)] for place in places}
    if op == "stage":
        values = elements(operand, state)
        return {int(args[0].array()[at]): value for at, value in values.items()}
    if op == "store":
        values = elements(operand, state)
        return {sum(a * b for a, b in zip(at, args[0], strict=True)): value for at, value in values.items()}
    if op == "reduce":
        values, layout, shape = elements(operand, state), operand.kind.layout.array(), operand.kind.shape
        found = {}
        for place in state:
            at = list(_point(int(layout[place]), shape))
            row = []
            for k in range(shape[args[1]]):
                at[args[1]] = k
                row.append(values[tuple(at)])
            found[place] = ("reduce", args[0], operand.kind.dtype, tuple(row))
        return found
    return state  # a view


def _point(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    at = []
    for extent in reversed(shape):
        number, digit = divmod(number, extent)
        at.append(digit)
    return tuple(reversed(at))


def _applied(function: tuple[Any, ...], values: list[Any]) -> Any:
    if function[0] in ZERO_KEEPING and all(value == ZERO for value in values):
        return ZERO
    return (*function, tuple(values))


def specified(whole: Term) -> State:
    """What the notes on operations say: elements by coordinates, one coordinate at a time."""
    op, args = whole.op, whole.args
    if op == "input":
        return {at: (args[0], at) for at in product(*map(range, args[1]))}
    x = specified(whole.of[0])
    shape = whole.of[0].kind.shape
    if op in ("load", "convert", "stage", "store"):
        return x
    if op == "transpose":
        return {tuple(at[axis] for axis in args[0]): value for at, value in x.items()}
    if op == "reshape":
        return {_point(_number(at, shape), args[0]): value for at, value in x.items()}
    if op == "gather":
        axis, indices = args
        return {
            (*at[:axis], k, *at[axis + 1 :]): value
            for at, value in x.items() for k, index in enumerate(indices) if index == at[axis]
        }  # fmt: skip
    if op == "scatter":
        axis, indices, extent = args
        wide = (*shape[:axis], extent, *shape[axis + 1 :])
        zero = dict.fromkeys(product(*map(range, wide)), ZERO)
        return zero | {(*at[:axis], indices[at[axis]], *at[axis + 1 :]): value for at, value in x.items()}
    if op == "pad":
        wide = [sum(each) for each in zip(args[0], shape, args[1], strict=True)]
        moved = {tuple(a + b for a, b in zip(at, args[0], strict=True)): value for at, value in x.items()}
        return dict.fromkeys(product(*map(range, wide)), ZERO) | moved
    if op == "crop":
        start, extents = args
        at_all = list(product(*map(range, extents)))
        return {at: x[tuple(a + b for a, b in zip(at, start, strict=True))] for at in at_all}
    if op == "broadcast":
        axis, extent, _ = args
        return {(*at[:axis], k, *at[axis + 1 :]): value for at, value in x.items() for k in range(extent)}
    if op == "elementwise":
        every = [specified(operand) for operand in whole.of]
        types = tuple(operand.kind.dtype for operand in whole.of)
        return {at: _applied((*args[:2], types), [each[at] for each in every]) for at in x}
    axis = args[1]
    rows = {at: tuple(x[(*at[:axis], k, *at[axis + 1 :])] for k in range(shape[axis])) for at in x if at[axis] == 0}
    return {at: ("reduce", args[0], whole.kind.dtype, row) for at, row in rows.items()}


def _number(at: tuple[int, ...], shape: tuple[int, ...]) -> int:
    found = 0
    for digit, extent in zip(at, shape, strict=True):
        found = found * extent + digit
    return found
