"""Values shared by two integer layouts: how many there are, with one example.

If no axis moves two outputs, an image is the product of the images of its outputs, so common values are counted output
by output. Strides that fill an interval of multiples of their gcd give an arithmetic progression, and the intersection
of two progressions is a third (Chinese remainder theorem).

Implementation notes: ``SHARED`` lists the engines, cheapest first, and the answer names the one that decided: lattice,
range, progression or bitset over at most 2^27 values, table of up to 2^20 points each; for ``disjoint_images`` also z3.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.integer.bits import BITSET_VALUES, point_of, value_set
from layoutalg.integer.confirm import sampled_values
from layoutalg.integer.forms import filled, point_in_run, span
from layoutalg.integer.ladder import MILLISECONDS, Ladder, checked_milliseconds, climb, packed
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.layout import check_argument as check
from layoutalg.integer.matrix import Form, Vector
from layoutalg.integer.reach import value_lattice
from layoutalg.integer.solve import NoSolution
from layoutalg.integer.solver import common_value
from layoutalg.integer.tables import TABLE_POINTS, fit, shared_in_table

Count = tuple[int, str, Vector, Vector]
"""Number of values, engine, and a point of each layout."""


@dataclass(frozen=True, slots=True)
class CommonValues:
    """How many values two layouts share.

    Args:
        count: Number of distinct common values.
        engine: The engine that counted them.
        witness: A point of each layout, ``first`` and ``second``, and their common ``value``; None if count is 0.
        certificate: Evidence that count is 0, if the engine has any.
    """

    count: int
    engine: str
    witness: dict[str, dict[str, int]] | None = field(default=None, hash=False)
    certificate: Mapping[str, object] = field(default_factory=dict, hash=False)


def common_values(first: IntegerLayout, second: IntegerLayout) -> CommonValues:
    """Return the exact number of values that two layouts with the same outputs share, and a witness.

    Args:
        first: A layout.
        second: A layout with the same outputs, names and moduli in order.

    Example:
        >>> wide = IntegerLayout.from_strides({"i": 2**40, "j": 6}, (6, 1))
        >>> found = common_values(wide, IntegerLayout.from_strides({"k": 2**41}, (4,), 2))
        >>> found.count, found.engine, found.witness
        (1649267441664, 'progression', {'first': {'i': 0, 'j': 2}, 'second': {'k': 0}, 'value': {'offset': 2}})
    """
    _check_outputs(first, second)
    said: list[str] = []
    answer = climb(SHARED, said, first, second)
    if answer is None:
        raise BudgetError(
            Diagnostic(
                code="LA740",
                what="too many values to count",
                where=(str(first), str(second)),
                because=f"{first.size} and {second.size} points; tables go up to {TABLE_POINTS}, "
                f"bitsets to {BITSET_VALUES} values{'; '.join(['', *said])}",
                witness={"points": (first.size, second.size), "limit": TABLE_POINTS},
            )
        )
    return answer


def disjoint_images(first: IntegerLayout, second: IntegerLayout, milliseconds: int = MILLISECONDS) -> Verdict:
    """Decide whether two layouts with the same outputs have no common value.

    Args:
        first: A layout.
        second: A layout with the same outputs, names and moduli in order.
        milliseconds: Time limit of the solver, which runs last.

    Returns:
        Proved; Refuted with a point of each and the common value; Unknown if time ran out.

    Example:
        >>> even = IntegerLayout.from_strides({"i": 8}, (2,))
        >>> disjoint_images(even, IntegerLayout.from_strides({"i": 8}, (4,), 1)).engine
        'lattice'
        >>> disjoint_images(even, IntegerLayout.from_strides({"i": 8}, (3,), 1)).witness
        {'first': {'i': 2}, 'second': {'i': 1}, 'value': {'offset': 4}}
    """
    _check_outputs(first, second)
    budget = checked_milliseconds(milliseconds)
    said: list[str] = []
    found = climb(SHARED, said, first, second)
    if found is not None:
        return Refuted(found.engine, found.witness or {}) if found.count else Proved(found.engine, found.certificate)
    answer: Verdict | None = climb(TIMED, said, first, second, budget / 1000)
    return Unknown(f"no answer within {budget} ms ({'; '.join(said)})", (*SHARED, *TIMED)) if answer is None else answer


def _check_outputs(first: IntegerLayout, second: IntegerLayout) -> None:
    if layout_or_refuse(first, "first").outputs != layout_or_refuse(second, "second").outputs:
        raise check.malformed("second", f"must have the outputs {first.outputs}", second.outputs)


def _witness(f: IntegerLayout, x: Sequence[int], g: IntegerLayout, y: Sequence[int]) -> dict[str, dict[str, int]]:
    return {
        "first": dict(zip(f.in_dims, map(int, x), strict=True)),
        "second": dict(zip(g.in_dims, map(int, y), strict=True)),
        "value": dict(zip(f.out_dims, f.value([int(c) for c in x]), strict=True)),
    }


def _by_solver(name: str, first: IntegerLayout, second: IntegerLayout, seconds: float) -> Verdict:
    answer = common_value(first, second, seconds)
    if answer is not None:
        x, y = answer
        if first.value(x) != second.value(y):
            return Unknown(f"{name} gave the points {tuple(x)} and {tuple(y)}, which have different values", (name,))
        return Refuted(name, _witness(first, x, second, y))
    (ours, count), (theirs, size) = sampled_values(first), sampled_values(second)
    if ours.keys() & theirs.keys():
        return Unknown(f"{name} answered that no value is shared, but some are", (name, "samples"))
    return Proved(name, {"confirmed": f"no common value among {count} and {size} points"})


def _no_points(name: str, first: IntegerLayout, second: IntegerLayout) -> CommonValues | None:
    return None if first.size and second.size else CommonValues(0, name)


def _by_lattice(name: str, first: IntegerLayout, second: IntegerLayout) -> CommonValues | None:
    meeting = value_lattice(first) & value_lattice(second)
    if not isinstance(meeting, NoSolution):
        return None
    return CommonValues(0, name, certificate={"row": meeting.row, "modulus": meeting.modulus})


def _by_range(name: str, first: IntegerLayout, second: IntegerLayout) -> CommonValues | None:
    for output, (row, b, m), (other, c, n) in zip(first.out_dims, first.forms, second.forms, strict=True):
        low, high = (0, m - 1) if m else span(row, b, first.extents)
        bottom, top = (0, n - 1) if n else span(other, c, second.extents)
        if high < bottom or top < low:
            return CommonValues(0, name, certificate={"output": output})
    return None


def _by_forms(_: str, first: IntegerLayout, second: IntegerLayout) -> CommonValues | None:
    """Count output by output if no axis moves two of them, else with all outputs packed into one."""
    found = _each(first, second)
    if found is None and len(first.outputs) > 1:
        one, two = packed(first, second) or (None, None)
        found = _one(one, first.extents, two, second.extents, 0) if one and two else None
    if found is None:
        return None
    count, engine, x, y = found
    return CommonValues(count, engine, _witness(first, x, second, y)) if count else CommonValues(0, engine)


def _by_table(name: str, first: IntegerLayout, second: IntegerLayout) -> CommonValues | None:
    if not fit(first, second):
        return None
    count, x, y = shared_in_table(first, second)
    if not count:
        return CommonValues(0, name, certificate={"points": first.size + second.size})
    return CommonValues(count, name, _witness(first, x, second, y))


SHARED: Ladder[CommonValues | None] = {
    "size": _no_points,
    "lattice": _by_lattice,
    "range": _by_range,
    "progression or bitset": _by_forms,
    "table": _by_table,
}
TIMED: Ladder[Verdict | None] = {"z3": _by_solver}


def _each(first: IntegerLayout, second: IntegerLayout) -> Count | None:
    one, two = first.forms, second.forms
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
        # the outputs use disjoint axes, so points can be added
        x = [a + b for a, b in zip(x, point, strict=True)]
        y = [a + b for a, b in zip(y, mate, strict=True)]
    return count, "bitset" if "bitset" in engines else "progression", tuple(x), tuple(y)


def _one(form: Form, extents: Vector, other: Form, limits: Vector, modulus: int) -> Count | None:
    """Count the common values of two forms."""
    mine, theirs = _progression(form, extents), _progression(other, limits)
    if mine is not None and theirs is not None:
        start, count = _meeting(mine, theirs)
        if not count:
            return 0, "progression", (), ()
        points = [point_in_run(row, b, box, start) for (row, b, _), box in ((form, extents), (other, limits))]
        return count, "progression", points[0], points[1]
    if form[2] != other[2]:
        # the other form does not wrap, so reading it modulo m changes nothing
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
    """Return (least value, step, length) if the values of a form over Z are an arithmetic progression."""
    row, constant, m = form
    step, reach, whole = (0, 0, False) if m else filled(row, extents)
    return (span(row, constant, extents)[0], step, reach // step + 1) if whole else None


def _meeting(one: tuple[int, int, int], two: tuple[int, int, int]) -> tuple[int, int]:
    """Return the least common value of two progressions (least, step, length), and how many there are."""
    (low, step, length), (bottom, stride, size) = one, two
    g = math.gcd(step, stride)
    if (bottom - low) % g:
        return 0, 0
    period = step * stride // g
    start = low + step * ((bottom - low) // g * pow(step // g, -1, stride // g) % (stride // g))
    begin, end = max(low, bottom), min(low + step * (length - 1), bottom + stride * (size - 1))
    start += -((start - begin) // period) * period
    return start, max((end - start) // period + 1, 0)
