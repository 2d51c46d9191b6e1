"""Rules of movement on all small instances of their patterns: equal elements and kinds, defined wherever they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations, product
from math import prod
from typing import Any

import numpy as np

from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.movement import Kind, Table, Term, compared, term
from layoutalg.proofs.movement.layouts import row_major
from layoutalg.proofs.movement.rules import Handle, Rule, rewritten, termed
from layoutalg.proofs.movement.term import along

INSTANCES = "instances"
SMALL, SMALLER = ((4,), (3,), (2, 3), (1, 2), (2, 1, 2)), ((3,), (1, 2), (2, 2))
"""Shapes of the arrays of small instances, and of those with four operations or more."""
_INDICES = 2
"""Indices of a gather in small instances."""


def certify(rule: Rule) -> Verdict:
    """Return whether a rule keeps every element, kind and definedness on all small instances of its patterns.

    Mathematically: for each instance (before, after) of the rule, ``after`` is defined wherever ``before`` is, has its
    kind and denotes the same elements. Proved only if each pattern had an instance.
    """
    total = 0
    for pattern in rule.patterns:
        count = 0
        for instance in instances(pattern):
            for before, after in rewritten(rule, instance):
                fault = _fault(instance, before, after)
                if fault is not None:
                    return Refuted(INSTANCES, {"what": fault, "before": str(before), "after": str(after)})
                count += 1
        if not count:
            return Unknown(f"the pattern {pattern!r} has no instance", (INSTANCES,))
        total += count
    return Proved(INSTANCES, {"claim": rule.says, "instances": total})


def _fault(instance: Term, before: Term, after: Handle) -> str | None:
    if before != instance:
        return "the rule says that it rewrites another term"
    try:
        made = termed(after)
    except MalformedError as error:
        return f"the result is not defined: {error.diagnostic.where[0]} {error.diagnostic.because}"
    verdict = compared(before, made)
    return (
        ", ".join(f"{key} {value}" for key, value in verdict.witness.items()) if isinstance(verdict, Refuted) else None
    )


def instances(pattern: str) -> Iterator[Term]:
    """Yield all small terms of a chain of operations, outermost first, over small arrays."""
    ops = pattern.split()
    for shape in SMALL if len(ops) < 4 else SMALLER:
        arrays = [term("input", name=name, shape=shape, dtype="f32") for name in ("A", "B")]
        for xs in _pairs(ops, arrays):
            yield xs[0]


def _pairs(ops: Sequence[str], arrays: list[Term]) -> Iterator[list[Term]]:
    """Yield the chain over each of two arrays."""
    if not ops:
        yield arrays
        return
    for xs in _pairs(ops[1:], arrays):
        for args, both in _arguments(ops[0], xs[0].kind):
            operands = [xs] if both else [[x] for x in xs]
            made = [term(ops[0], *of, **args) for of in operands]
            yield made * 2 if both else made


def _arguments(op: str, x: Kind) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield small arguments, and whether both arrays are operands."""
    if op == "elementwise":
        for function, dtype in (("add", "f32"), ("exp", "f32"), ("cast", "bf16")):
            yield {"function": function, "dtype": dtype}, function != "cast"
        return
    for args in _of_one(op, x.shape, x.tier) if op != "broadcast" else _broadcasts(x):
        yield args, False


def _of_one(op: str, shape: tuple[int, ...], tier: str) -> Iterator[dict[str, Any]]:
    rank, ranges = len(shape), [range(2)] * len(shape)
    if op in ("load", "convert"):
        for layout in register_layouts(shape):
            yield {"layout": layout}
    elif op == "stage":
        carriers = ("threads",) if tier == "registers" else ("tma", "cp.async")
        for carrier, strides in product(carriers, _strides(shape)):
            yield {"carrier": carrier, "layout": np.tensordot(strides, np.indices(shape), 1)}
    elif op == "store":
        for strides in _strides(shape):
            yield {"strides": strides}
    elif op == "gather":
        for axis, extent in enumerate(shape):
            for count in range(1, _INDICES + 1):
                for indices in product(range(extent), repeat=count):
                    yield {"axis": axis, "indices": indices}
            yield {"axis": axis, "indices": tuple(range(extent))}
    elif op == "scatter":
        for axis, extent in enumerate(shape):
            for into in (extent, extent + 1):
                for indices in permutations(range(into), extent):
                    yield {"axis": axis, "indices": indices, "extent": into}
    elif op == "pad":
        for low, high in product(product(*ranges), product(*ranges)):
            yield {"low": low, "high": high}
    elif op == "crop":
        for start in product(*[range(min(2, extent)) for extent in shape]):
            for extents in product(*[range(1, extent - low + 1) for low, extent in zip(start, shape, strict=True)]):
                yield {"start": start, "extents": extents}
    elif op == "transpose":
        for order in permutations(range(rank)):
            yield {"order": order}
    elif op == "reshape":
        for into in _factorings(prod(shape)):
            yield {"shape": into}
    elif op == "reduce":
        for axis in range(rank):
            yield {"function": "sum", "axis": axis}


def _broadcasts(x: Kind) -> Iterator[dict[str, Any]]:
    for axis, extent in product([axis for axis, extent in enumerate(x.shape) if extent == 1], (1, 2, 3)):
        shape = (*x.shape[:axis], extent, *x.shape[axis + 1 :])
        if x.tier != "registers":
            yield {"axis": axis, "extent": extent}
            continue
        for layout in register_layouts(shape):
            if along(Table.of(layout), shape, axis) == x.layout:
                yield {"axis": axis, "extent": extent, "layout": layout}


def register_layouts(shape: tuple[int, ...]) -> Iterator[np.ndarray[Any, Any]]:
    """Yield layouts of a few threads: elements in order, reversed, over lanes, twice."""
    numbers = np.arange(prod(shape), dtype=np.int64)
    yield numbers.reshape(1, -1, 1)
    yield numbers[::-1].reshape(1, 1, -1)
    yield np.stack([numbers, numbers[::-1]]).reshape(1, 2, -1)


def _strides(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield row_major(shape)
    yield tuple(reversed(row_major(shape[::-1])))


def _factorings(size: int, most: int = 3) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of a size with up to three extents; 1 only where it stands alone or first."""
    for count in range(1, most + 1):
        for shape in product(range(1, size + 1), repeat=count):
            if prod(shape) == size and 1 not in shape[1:]:
                yield shape
