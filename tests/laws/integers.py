"""Integers and bits: forms on boxes, bijections, packed outputs, elimination over F2, chains of digits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import partial, reduce
from itertools import product
from operator import or_
from typing import Any, TypeAlias

from laws import Row, tabled
from layoutalg.f2 import matrix
from layoutalg.f2.matrix import apply, eliminate
from layoutalg.ground.digits import Flat, chained, evaluate, first_outside
from layoutalg.integer.engines import packed, value_set
from layoutalg.integer.forms import Index, filled, index_by_strides
from layoutalg.integer.layout import IntegerLayout

LAWS: list[Row] = []
law = partial(tabled, LAWS)

Form = tuple[tuple[int, ...], tuple[int, ...]]


def _rows() -> Iterator[Form]:
    for count in (1, 2, 3):
        for row, extents in product(product(range(-4, 8), repeat=count), product((1, 2, 3), repeat=count)):
            if count < 3 or (row[0] % 3 == 1 and extents != (1, 1, 1)):
                yield row, extents


def _values(case: Form) -> set[int]:
    row, extents = case
    return {sum([a * x for a, x in zip(row, at, strict=True)]) for at in product(*map(range, extents))}


@law("boxes.filled", _rows, 16308, "coefficients -4..7, extents 1..3, up to 3 axes")
def _runs(case: Form) -> str | None:
    """A form takes exactly the values low, low + step, ..., low + reach where its strides fill, and the next is a gap
    where they do not.
    """
    values, (step, reach, whole) = _values(case), filled(*case)
    low, high = min(values), max(values)
    if not set(range(low, low + reach + 1, step)) <= values or any((v - low) % step for v in values):
        return "a value of the run is missing, or one lies off the steps"
    if whole:
        return None if reach == high - low else "the run is not all"
    return "the gap is a value" if {low + reach + step, high - reach - step} & values else None


def _small_forms() -> Iterator[tuple[Sequence[int], int, int, Sequence[int]]]:
    for modulus, constant in ((0, 3), (5, 3), (6, 0), (8, 9)):
        for row, extents in product(product(range(-3, 5), repeat=2), product((1, 2, 4), repeat=2)):
            yield row, constant, modulus, extents


@law(
    "boxes.value_set",
    _small_forms,
    2304,
    "coefficients -3..4, extents 1, 2 and 4, two axes, over Z and modulo 5, 6 and 8",
)
def _same_set(case: Any) -> str | None:
    """The bits of value_set are the values of a form on a box, and its collision two points with one value."""
    row, constant, modulus, extents = case
    found = value_set(*case, 1000)
    seen: dict[int, list[tuple[int, ...]]] = {}
    for at in product(*map(range, extents)):
        value = constant + sum([a * x for a, x in zip(row, at, strict=True)])
        seen.setdefault(value % modulus if modulus else value, []).append(at)
    if {found.low + k for k in range(found.count) if found.bits >> k & 1} != set(seen):
        return "the bits are not the values"
    missing = next((v for v in range(-2, 12) if v not in seen), None)
    if found.first_missing(-2, 12) != missing:
        return "another value is missing first"
    if found.collision is None:
        return None if all(len(points) == 1 for points in seen.values()) else "a collision was overlooked"
    return None if any(set(found.collision) <= set(points) for points in seen.values()) else "no collision"


def _flats() -> Iterator[tuple[Flat, int]]:
    for strides, extents in product(product(range(-4, 8), repeat=2), product((1, 2, 3), repeat=2)):
        for bound in (0, 1, 3, 8):
            yield tuple(zip(extents, strides, strict=True)), bound


@law("boxes.first_outside", _flats, 5184, "two modes of extents 1..3 and strides -4..7, bounds 0, 1, 3 and 8")
def _outside(case: tuple[Flat, int]) -> str | None:
    """first_outside is the least 1-D coordinate whose value is negative or at least a bound."""
    flat, bound = case
    values = [evaluate(flat, i) for i in range(math.prod([extent for extent, _ in flat]))]
    wanted = next((i for i, value in enumerate(values) if not 0 <= value < bound), None)
    return None if first_outside(flat, bound) == wanted else "another coordinate is the first"


Case = tuple[IntegerLayout, ...]


def layouts(axes: int = 2, extents: range = range(1, 4), strides: range = range(-1, 4)) -> Iterator[IntegerLayout]:
    """All layouts of one output over Z, and some modulo 4."""
    for box, row in product(product(extents, repeat=axes), product(strides, repeat=axes)):
        named = {f"x{k}": extent for k, extent in enumerate(box)}
        for offset, modulus in ((0, 0), (1, 4)):
            yield IntegerLayout.from_strides(named, row, offset, modulus=modulus)


def points_of(layout: IntegerLayout) -> list[tuple[int, ...]]:
    """Return the points of a box in the order of the flat index."""
    return [at[::-1] for at in product(*map(range, reversed(layout.extents)))]


def values_of(layout: IntegerLayout) -> list[tuple[int, ...]]:
    """Return the values in the order of the flat index, from the definition."""
    return [
        tuple(
            [
                total % m if m else total
                for row, b, m in zip(layout.matrix, layout.offset, layout.moduli, strict=True)
                for total in [b + sum(map(math.prod, zip(row, at, strict=True)))]
            ]
        )
        for at in points_of(layout)
    ]


def one() -> Iterator[Case]:
    yield from ((layout,) for layout in layouts())


SMALL = "one output, two axes of extents 1..3 and strides -1..3, over Z and modulo 4"


@law("integer_values.index", one, 450, SMALL)
def _indexed(case: Case) -> str | None:
    """index_by_strides is the inverse of a form that is a bijection onto 0..size - 1, else shows why it is none."""
    (layout,) = case
    values = [value for (value,) in values_of(layout)]
    if layout.moduli[0]:
        return None
    least = min(values)
    values = [value - least for value in values]
    found = index_by_strides(layout.matrix[0], layout.offset[0] - least, layout.extents)
    if isinstance(found, Index):
        for place in range(len(values)):
            at, rest = found.start, place
            for extent, stride in found.modes:
                rest, digit = divmod(rest, extent)
                at += digit * stride
            if not 0 <= at < len(values) or values[at] != place:
                return "the index of a value is wrong"
        return None
    if sorted(values) == list(range(len(values))):
        return "refused although a bijection"
    if isinstance(found, tuple):
        return None if found[0] != found[1] and values[found[0]] == values[found[1]] else "no collision"
    return None if found not in values or found < 0 else "nothing is missed there"


def _two_outputs() -> Iterator[Case]:
    for rows in product(product(range(-1, 3), repeat=2), repeat=2):
        for m in (0, 3):
            yield (IntegerLayout((("i", 3), ("j", 2)), (("y", m), ("z", 0)), rows, (1, 0)),)


@law("integer_values.packed", _two_outputs, 512, "two outputs, one of them over Z or modulo 3, strides -1..2")
def _packed(case: Case) -> str | None:
    """Two points share all outputs exactly where they share the value of the packed form."""
    (layout,) = case
    found = packed(layout)
    if found is None:
        return None
    ((row, constant, modulus),) = found
    one = IntegerLayout(layout.inputs, (("all", modulus),), (row,), (constant,))
    pairs = set(zip(values_of(layout), values_of(one), strict=True))
    same = len(pairs) == len(set(values_of(layout))) == len(set(values_of(one)))
    return None if same else "points share a value on one side alone"


Matrix: TypeAlias = tuple[int, ...]


def matrices(count: int, rows: int) -> Iterator[Matrix]:
    """Return all matrices of that many columns."""
    return product(range(1 << rows), repeat=count)


def _span(M: Sequence[int]) -> frozenset[int]:
    return frozenset(apply(M, x) for x in range(1 << len(M)))


_ALL = "all matrices of 3 columns and 4 rows"


@law("f2.elimination", lambda: matrices(3, 4), 4096, _ALL)
def _reduced(M: Matrix) -> str | None:
    found, span = eliminate(M), _span(M)
    vectors = [vector for vector, _ in found.pivots]
    tops = [1 << vector.bit_length() - 1 for vector in vectors]
    if 1 << found.rank != len(span) or found.rank != matrix.rank(M) or found.rank + len(found.null) != len(M):
        return "the rank"
    if _span(vectors) != span or any(apply(M, used) != vector for vector, used in found.pivots):
        return "the pivots"
    if sorted(tops) != tops or any(
        vector & reduce(or_, tops) != top for vector, top in zip(vectors, tops, strict=True)
    ):
        return "not reduced"
    for vector in range(16):
        rest, used = found.reduce(vector)
        if rest ^ apply(M, used) != vector or rest != min(vector ^ each for each in span):
            return f"the remainder of {vector}"
    return None if matrix.image_basis(M) == tuple(vectors) else "the image"


def _least_cases() -> Iterator[tuple[Matrix, int]]:
    return product(matrices(2, 4), range(16))


@law("f2.remainder", _least_cases, 4096, "all spans of two vectors of 4 bits, all v")
def _least(case: tuple[Matrix, int]) -> str | None:
    """remainder(B, v) is the least element of v + span B, B a reduced basis."""
    M, value = case
    wanted = min(value ^ each for each in _span(M))
    return None if matrix.remainder(matrix.image_basis(M), value) == wanted else f"the least is {wanted}"


def _table(flat: Any) -> list[int]:
    return [evaluate(flat, i) for i in range(math.prod([extent for extent, _ in flat]))]


def _chains() -> Iterator[tuple[tuple[int, int], ...]]:
    yield from product(product((1, 2, 3, 4, 6), (2, 3)), repeat=2)


@law("digit_lists.chain", _chains, 100, "two digits of weights 1, 2, 3, 4 and 6 and extents 2 and 3")
def _whole(digits: tuple[tuple[int, int], ...]) -> str | None:
    """Chained is None exactly where the digits' values are 0..size - 1, each once."""
    values = sorted(_table(tuple([(extent, weight) for weight, extent in digits])))
    found = chained(digits)
    return None if (found is None) == (values == list(range(len(values)))) else "a chain that is no base"
