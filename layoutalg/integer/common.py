"""The values that two integer layouts share: how many, and one of them with a point of each.

Main definitions: ``common_values``, ``CommonValues``.

Main statements: where no axis moves two outputs, an image is the product of the images of its outputs, so common values
are counted output by output. Strides that fill an interval of multiples of their gcd give an arithmetic progression,
and two progressions meet in a third (Chinese remainders).

Implementation notes: engines from cheap to dear, the one that decided is in the answer: size, lattice, progression,
bitset over at most 2^27 values, table up to 2^20 points each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.integer.bits import point_of, value_set
from layoutalg.integer.forms import residue_form, span
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.layout import check_argument as check
from layoutalg.integer.matrix import Vector
from layoutalg.integer.reach import BITSET_VALUES, TABLE_POINTS, value_keys, value_lattice
from layoutalg.integer.solve import NoSolution

Form = tuple[Vector, int, int]


@dataclass(frozen=True, slots=True)
class CommonValues:
    """How many values two layouts share.

    Args:
        count: Number of distinct common values.
        engine: What counted them.
        witness: Where there is one: a point of each layout, ``first`` and ``second``, and their common ``value``.
    """

    count: int
    engine: str
    witness: dict[str, dict[str, int]] | None = field(default=None, hash=False)


def common_values(first: IntegerLayout, second: IntegerLayout) -> CommonValues:
    """Return the number of values that two layouts with the same outputs share, exactly, and a witness.

    Args:
        first: A layout.
        second: A layout with the same outputs, names and moduli in order.

    Raises: MalformedError: LA731. BudgetError: LA740.

    Example:
        >>> wide = IntegerLayout.from_strides({"i": 2**40, "j": 6}, (6, 1))
        >>> found = common_values(wide, IntegerLayout.from_strides({"k": 2**41}, (4,), 2))
        >>> found.count, found.engine, found.witness
        (1649267441664, 'progression', {'first': {'i': 0, 'j': 2}, 'second': {'k': 0}, 'value': {'offset': 2}})
    """
    if layout_or_refuse(first, "first").outputs != layout_or_refuse(second, "second").outputs:
        raise check.malformed("second", f"must have the outputs {first.outputs}", second.outputs)
    if not first.size or not second.size:
        return CommonValues(0, "size")
    if isinstance(value_lattice(first) & value_lattice(second), NoSolution):
        return CommonValues(0, "lattice")
    answer = _each(first, second) or _packed(first, second)
    limit = min(TABLE_POINTS, first.table_limit, second.table_limit)
    if answer is None and max(first.size, second.size) <= limit:
        answer = _by_table(first, second)
    if answer is None:
        raise BudgetError(
            Diagnostic(
                code="LA740",
                what="too many values to count",
                where=(str(first), str(second)),
                because=f"{first.size} and {second.size} points; tables go up to {limit}, "
                f"bitsets to {BITSET_VALUES} values",
                witness={"points": (first.size, second.size), "limit": limit},
            )
        )
    count, engine, x, y = answer
    if not count:
        return CommonValues(0, engine)
    return CommonValues(
        count,
        engine,
        {
            "first": dict(zip(first.in_dims, x, strict=True)),
            "second": dict(zip(second.in_dims, y, strict=True)),
            "value": dict(zip(first.out_dims, first.value(x), strict=True)),
        },
    )


Answer = tuple[int, str, Vector, Vector]


def _forms(layout: IntegerLayout) -> list[Form]:
    """Return every output as (row, constant, modulus), the modulus 0 where it does not wrap."""
    forms = []
    for row, b, m in zip(layout.matrix, layout.offset, layout.moduli, strict=True):
        form = residue_form(row, b, m, layout.extents)
        row, b, m = (*form, 0) if form else (row, b, m)
        forms.append((tuple([a if e > 1 else 0 for a, e in zip(row, layout.extents, strict=True)]), b, m))
    return forms


def _each(first: IntegerLayout, second: IntegerLayout) -> Answer | None:
    """Count output by output, where no axis moves two of them."""
    one, two = _forms(first), _forms(second)
    for forms in (one, two):
        if any(sum(map(bool, column)) > 1 for column in zip(*[row for row, _, _ in forms], strict=True)):
            return None
    count, engines, x, y = 1, set(), [0] * len(first.inputs), [0] * len(second.inputs)
    for form, other, m in zip(one, two, first.moduli, strict=True):
        answer = _one(form, first.extents, other, second.extents, m)
        if answer is None:
            return None
        found, engine, point, mate = answer
        count *= found
        engines.add(engine)
        if not found:
            return 0, engine, (), ()
        # the axes of the outputs are disjoint, so points add up
        x = [a + b for a, b in zip(x, point, strict=True)]
        y = [a + b for a, b in zip(y, mate, strict=True)]
    return count, "bitset" if "bitset" in engines else "progression", tuple(x), tuple(y)


def _packed(first: IntegerLayout, second: IntegerLayout) -> Answer | None:
    """Count all outputs at once, packed in mixed radix over the range of both, where none wraps."""
    one, two = _forms(first), _forms(second)
    if any(m for _, _, m in (*one, *two)):
        return None
    rows, constants, weight = [[0] * len(first.inputs), [0] * len(second.inputs)], [0, 0], 1
    for pair in zip(one, two, strict=True):
        spans = [span(row, b, box.extents) for (row, b, _), box in zip(pair, (first, second), strict=True)]
        low, high = min(bottom for bottom, _ in spans), max(top for _, top in spans)
        for place, (row, b, _) in enumerate(pair):
            rows[place] = [total + weight * a for total, a in zip(rows[place], row, strict=True)]
            constants[place] += weight * (b - low)
        weight *= high - low + 1
    packed = [(tuple(row), constant, 0) for row, constant in zip(rows, constants, strict=True)]
    return _one(packed[0], first.extents, packed[1], second.extents, 0)


def _one(form: Form, extents: Vector, other: Form, limits: Vector, modulus: int) -> Answer | None:
    """Count the common values of two forms."""
    mine, theirs = _progression(form, extents), _progression(other, limits)
    if mine is not None and theirs is not None:
        (low, step, length), (bottom, stride, size) = mine, theirs
        g = math.gcd(step, stride)
        if (bottom - low) % g:
            return 0, "progression", (), ()
        period = step * stride // g
        turns = (bottom - low) // g * pow(step // g, -1, stride // g) % (stride // g)
        start = low + step * turns
        begin, end = max(low, bottom), min(low + step * (length - 1), bottom + stride * (size - 1))
        start += -((start - begin) // period) * period
        if start > end:
            return 0, "progression", (), ()
        count = (end - start) // period + 1
        return count, "progression", _greedy(form, extents, start), _greedy(other, limits, start)
    if not form[2] and not other[2]:
        modulus = 0
    elif form[2] != other[2]:
        # a form that does not wrap has the same values as residues
        form, other = (*form[:2], modulus), (*other[:2], modulus)
    sets = [value_set(*f, box, BITSET_VALUES) for f, box in ((form, extents), (other, limits))]
    if sets[0] is None or sets[1] is None:
        return None
    base = max(sets[0].low, sets[1].low)
    both = (sets[0].bits >> (base - sets[0].low)) & (sets[1].bits >> (base - sets[1].low))
    if not both:
        return 0, "bitset", (), ()
    value = base + (both & -both).bit_length() - 1
    return both.bit_count(), "bitset", point_of(*form, extents, value), point_of(*other, limits, value)


def _progression(form: Form, extents: Vector) -> tuple[int, int, int] | None:
    """Return (least value, step, length) where the values of a form over Z are an arithmetic progression."""
    row, constant, m = form
    step = math.gcd(*row)
    if m:
        return None
    if not step:
        return constant, 1, 1
    reach = 0
    for stride, extent in sorted((abs(a), e) for a, e in zip(row, extents, strict=True) if a):
        if stride > reach + step:
            return None
        reach += stride * (extent - 1)
    return span(row, constant, extents)[0], step, reach // step + 1


def _greedy(form: Form, extents: Vector, value: int) -> Vector:
    """Return a point where a form that fills a progression takes a value."""
    row, constant, _ = form
    rest = value - span(row, constant, extents)[0]
    modes = sorted((abs(a), e, k) for k, (a, e) in enumerate(zip(row, extents, strict=True)) if a)
    below = sum(stride * (extent - 1) for stride, extent, _ in modes)
    point = [0] * len(row)
    for stride, extent, k in reversed(modes):
        below -= stride * (extent - 1)
        digit = max(0, -((below - rest) // stride))
        rest -= digit * stride
        point[k] = digit if row[k] > 0 else extent - 1 - digit
    return tuple(point)


def _by_table(first: IntegerLayout, second: IntegerLayout) -> Answer:
    one, two = value_keys(first, second)
    both = np.intersect1d(one, two)
    if not both.size:
        return 0, "table", (), ()
    points = [
        box.coordinate(int(np.argmax(keys == both[0]))) for box, keys in zip((first, second), (one, two), strict=True)
    ]
    return len(both), "table", points[0], points[1]
