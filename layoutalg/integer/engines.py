"""Engines for questions about integer layouts, and ladders of them: the cheapest applicable one answers and is named.

Engines per question, cheapest first:

    question         lattice      sorted strides   table      bitset   ISL         z3
    injective        kernel       superincreasing  x          x                    x
    covers           coset        range, chain     x          x        x           confirms
    right inverse    residues     digits                               x

Implementation notes: bitsets hold the values of one form in a Python integer; axes are added one by one, and the union
of the shifted copies is built by doubling, so an axis of extent s costs about 2 log s shifts of the whole set. z3 is
asked for a solution of a linear system inside a box: linear integer arithmetic on the coordinates (the digits), never
on a flat index, with one free multiple of the modulus per modular output.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, memory, solver
from layoutalg.ground.errors import AdmissibilityError, BudgetError
from layoutalg.ground.limits import TABLE_BYTES
from layoutalg.integer.forms import span
from layoutalg.integer.layout import IntegerLayout, check_argument
from layoutalg.integer.matrix import Form, Vector

Answer = TypeVar("Answer")
Ladder: TypeAlias = Mapping[str, Callable[..., Answer]]
"""Name -> engine, cheapest first; an engine takes its name and the operands and returns None if it cannot decide."""
MILLISECONDS = 2000


def climb(ladder: Ladder[Answer], said: list[str], *operands: object) -> Answer | None:
    """Return the first answer of a ladder, or None; ``said`` collects why earlier engines gave up.

    Example:
        >>> climb({"even": lambda name, n: None if n % 2 else name, "any": lambda name, n: name}, [], 3)
        'any'
    """
    for name, engine in ladder.items():
        try:
            answer = engine(name, *operands)
        except (BudgetError, AdmissibilityError) as error:  # errors of ISL itself say nothing about the operands
            said.append(f"{name}: {error.diagnostic.code} {error.diagnostic.what}")
            continue
        if answer is not None:
            return answer
    return None


def packed(*layouts: IntegerLayout) -> list[Form] | None:
    """Return one form (row, constant, modulus) per layout, such that equal packed values mean equal outputs.

    Several outputs are packed in mixed radix by their common ranges, which is injective on the boxes; None if one of
    several outputs wraps.

    Example:
        >>> packed(IntegerLayout((("i", 3), ("j", 4)), (("x", 0), ("y", 0)), ((1, 0), (1, 1)), (0, 7)))
        [((4, 3), 0, 0)]
    """
    if len(layouts[0].outputs) == 1:
        return [layout.forms[0] for layout in layouts]
    if any(m for layout in layouts for _, _, m in layout.forms):
        return None
    rows, constants, weight = [[0] * len(layout.inputs) for layout in layouts], [0 for _ in layouts], 1
    for forms in zip(*[layout.forms for layout in layouts], strict=True):
        ends = [span(row, b, layout.extents) for (row, b, _), layout in zip(forms, layouts, strict=True)]
        low, high = min(bottom for bottom, _ in ends), max(top for _, top in ends)
        for place, (row, b, _) in enumerate(forms):
            rows[place] = [total + weight * a for total, a in zip(rows[place], row, strict=True)]
            constants[place] += weight * (b - low)
        weight *= high - low + 1
    return [(tuple(row), constant, 0) for row, constant in zip(rows, constants, strict=True)]


def checked_milliseconds(value: object) -> int:
    """Return a checked time budget."""
    return check_argument.integer(value, "milliseconds", 1, 2**31)


# tables

TABLE_POINTS = 2**20


def fit(*layouts: IntegerLayout) -> bool:
    """Return whether these layouts are small enough to tabulate: at most 2^20 points each."""
    return all(layout.size <= min(TABLE_POINTS, layout.table_limit) for layout in layouts)


def repeat_in_table(layout: IntegerLayout) -> tuple[Vector, Vector] | None:
    """Return the first point whose value is a repeat, preceded by the earlier point; None if all values are distinct.

    Example:
        >>> repeat_in_table(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3)))
        ((3, 0), (0, 2))
    """
    keys = _keys(layout)
    _, first = np.unique(keys, return_index=True)
    if len(first) == layout.size:
        return None
    seen = np.zeros(layout.size, dtype=bool)
    seen[first] = True
    second = int(np.argmin(seen))
    return layout.coordinate(int(np.argmax(keys == keys[second]))), layout.coordinate(second)


def gap_in_table(layout: IntegerLayout, sides: Sequence[tuple[int, int]]) -> list[int] | None:
    """Return the first point of a box of outputs (low, high) that is not a value, first output fastest; or None.

    Example:
        >>> gap_in_table(IntegerLayout.from_strides({"i": 2, "j": 2}, (1, 3)), [(0, 5)])
        [2]
    """
    table = layout.table().reshape(layout.size, -1)
    volume = math.prod(high - low for low, high in sides)
    inside = np.ones(layout.size, dtype=bool)
    for column, (low, high) in zip(table.T, sides, strict=True):
        inside &= np.asarray((column >= low) & (column < high), dtype=bool)
    # pigeonhole: the first missing point is among the first size + 1 points of the box
    limit = min(volume, layout.size + 1)
    kind = np.int64 if table.dtype != object and volume < 2**62 else object
    keys = np.zeros(int(inside.sum()), dtype=kind)
    weight = 1
    for column, (low, high) in zip(table[inside].T, sides, strict=True):
        keys = keys + (column.astype(kind) - low) * weight
        weight *= high - low
    reached = np.zeros(limit, dtype=bool)
    reached[keys[np.asarray(keys < limit, dtype=bool)].astype(np.int64)] = True
    place = int(np.argmin(reached))
    if reached[place]:
        return None
    point = []
    for low, high in sides:
        place, digit = divmod(place, high - low)
        point.append(low + digit)
    return point


def _keys(layout: IntegerLayout) -> npt.NDArray[np.int64]:
    """Return the rank of the value at each flat index, first output compared first."""
    memory.reserve("the values of layouts", layout.size, 48 + 16 * len(layout.outputs))
    keys = np.zeros(layout.size, dtype=np.int64)
    for column in layout.table().reshape(layout.size, -1).T:
        clock.check("comparing the values of layouts")
        values, places = np.unique(column, return_inverse=True)
        _, keys = np.unique(keys * len(values) + places.reshape(-1), return_inverse=True)
        keys = keys.reshape(-1).astype(np.int64)
    return keys


# bitsets

BITSET_VALUES = 2**27
"""Largest range of candidate values."""


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values as bits: bit k stands for ``low + k``; ``collision`` is two points with the same value, or None."""

    low: int
    count: int
    bits: int
    collision: tuple[Vector, Vector] | None

    def first_missing(self, low: int, high: int) -> int | None:
        """Return the first value of [low, high) not in the set, or None."""
        if low < self.low:
            return low if low < high else None
        absent = ~(self.bits >> (low - self.low))
        found = low + (absent & -absent).bit_length() - 1
        return found if found < high else None


class _Shift:
    """Adds an amount to every value of a set, modulo the modulus if there is one."""

    def __init__(self, modulus: int) -> None:
        self.modulus = modulus
        self.mask = (1 << modulus) - 1 if modulus else 0

    def __call__(self, bits: int, amount: int) -> int:
        if not self.modulus:
            return bits << amount if amount >= 0 else bits >> -amount
        turn = amount % self.modulus
        return ((bits << turn) | (bits >> (self.modulus - turn))) & self.mask


def _union(bits: int, stride: int, extent: int, shift: _Shift) -> int:
    """Return the union of ``bits`` moved by 0, stride, ..., (extent - 1) stride."""
    total, count = bits, 1
    for digit in bin(extent)[3:]:
        total |= shift(total, count * stride)
        count *= 2
        if digit == "1":
            total = bits | shift(total, stride)
            count += 1
    return total


def value_set(row: Sequence[int], constant: int, modulus: int, extents: Sequence[int], limit: int) -> ValueSet | None:
    """Return the values of ``row x + constant`` on a box; None above ``limit`` candidates or the byte limit.

    Args:
        row: Coefficients.
        constant: The constant.
        modulus: The modulus of the values, or 0.
        extents: The box; must not be empty.
        limit: Most candidate values.

    Example:
        >>> found = value_set((2, 3), 0, 0, (2, 2), 100)
        >>> bin(found.bits), found.collision, found.first_missing(0, 9)
        ('0b101101', None, 1)
    """
    low, high = (0, modulus - 1) if modulus else span(row, constant, extents)
    # one set is kept per axis
    if high - low >= limit or (high - low) // 8 * (len(row) + 3) > TABLE_BYTES:
        return None
    shift = _Shift(modulus)
    bits = 1 << (constant % modulus if modulus else constant - low)
    stages = [bits]
    collision: tuple[Vector, Vector] | None = None
    for place, (stride, extent) in enumerate(zip(row, extents, strict=True)):
        clock.check("the values of a layout")
        before = stages[-1]
        bits = _union(before, stride, extent, shift)
        if collision is None and bits.bit_count() != before.bit_count() * extent:
            collision = _meeting(stages, row, extents, place, shift)
        stages.append(bits)
    return ValueSet(low, high - low + 1, bits, collision)


def _meeting(
    stages: Sequence[int], row: Sequence[int], extents: Sequence[int], place: int, shift: _Shift
) -> tuple[Vector, Vector]:
    """Return two points that first share a value when the axis ``place`` is added."""
    before, seen, second = stages[place], stages[place], 0
    both = 0
    while not both:
        clock.check("the first collision of a layout")
        second += 1
        moved = shift(before, second * row[place])
        both = seen & moved
        seen |= moved
    value = both & -both
    first = 0
    while not shift(before, first * row[place]) & value:
        clock.check("the first collision of a layout")
        first += 1
    return _back(stages, row, extents, place, first, value, shift), _back(
        stages, row, extents, place, second, value, shift
    )


def _back(
    stages: Sequence[int], row: Sequence[int], extents: Sequence[int], place: int, digit: int, value: int, shift: _Shift
) -> Vector:
    """Return a point with ``digit`` at ``place`` and zeros above whose value is the given bit."""
    point = [0] * len(extents)
    point[place] = digit
    value = shift(value, -digit * row[place])
    for axis in range(place - 1, -1, -1):
        for t in range(extents[axis]):
            clock.check("a point with a given value")
            earlier = shift(value, -t * row[axis])
            if earlier & stages[axis]:
                point[axis], value = t, earlier
                break
    return tuple(point)


# z3


def collision(layout: IntegerLayout, seconds: float) -> tuple[Vector, Vector] | None:
    """Return two points with the same value, or None.

    Example:
        >>> x, y = collision(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3)), 2)
        >>> 2 * x[0] + 3 * x[1] == 2 * y[0] + 3 * y[1], x != y
        (True, True)
    """
    sides = [(1 - extent, extent) for extent in layout.extents]
    found = _solution(layout.matrix, (0,) * len(layout.outputs), layout.moduli, sides, True, seconds)
    return None if found is None else (tuple(max(d, 0) for d in found), tuple(max(-d, 0) for d in found))


def point_of_value(layout: IntegerLayout, value: Sequence[int], seconds: float) -> Vector | None:
    """Return a point where a layout takes a value, or None.

    Example:
        >>> point_of_value(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3)), (7,), 2)
        (2, 1)
    """
    if any(m and not 0 <= x < m for x, m in zip(value, layout.moduli, strict=True)):
        return None
    constants = [b - x for b, x in zip(layout.offset, value, strict=True)]
    sides = [(0, extent) for extent in layout.extents]
    found = _solution(layout.matrix, constants, layout.moduli, sides, False, seconds)
    return None if found is None else tuple(found)


@solver.whole
def _solution(
    matrix: Sequence[Sequence[int]],
    constants: Sequence[int],
    moduli: Sequence[int],
    sides: Sequence[tuple[int, int]],
    nonzero: bool,
    seconds: float,
) -> list[int] | None:
    """Return x in a box with ``A x + b = 0``, each row modulo its modulus, x optionally nonzero; or None."""
    session = solver.session()
    z3, context = session.z3, session.context
    names = [z3.Int(f"x{k}", context) for k in range(len(sides))]
    for name, (low, high) in zip(names, sides, strict=True):
        session.solver.add(name >= low, name < high)
    if nonzero:
        session.solver.add(z3.Or([z3.BoolVal(False, context), *[name != 0 for name in names]]))
    for place, (row, b, m) in enumerate(zip(matrix, constants, moduli, strict=True)):
        total = z3.Sum([z3.IntVal(b, context), *[name * a for name, a in zip(names, row, strict=True) if a]])
        session.solver.add(total == (z3.Int(f"k{place}", context) * m if m else 0))
    return solver.solve(session, "values of integer layouts", names, seconds)
