"""Which values an integer layout takes: injectivity, coverage of a box, the lattice spanned by the values.

Two points collide exactly when their difference is a vector of the kernel lattice inside the box of differences.
Sorted strides fill an interval exactly when each exceeds the reach of the smaller ones by at most one.

Implementation notes: ``INJECTIVE`` and ``COVERS`` list the engines, cheapest first, and the verdict names the one that
decided: lattice, strides, table up to 2^20 points, bitset over at most 2^27 values, and within a time budget ISL and
z3. Witnesses are evaluated before they are returned; proofs by ISL or z3 are spot-checked on samples, and the
certificate says on how many.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from layoutalg.ground import clock
from layoutalg.ground.limits import ISL_SECONDS, SMT_SECONDS
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.integer.engines import (
    BITSET_VALUES,
    MILLISECONDS,
    Ladder,
    checked_milliseconds,
    climb,
    collision,
    fit,
    gap_in_table,
    packed,
    point_of_value,
    repeat_in_table,
    value_set,
)
from layoutalg.integer.forms import filled, growing, sampled_coordinates, span
from layoutalg.integer.inverse import guarded
from layoutalg.integer.lattice import Lattice, NoSolution, solve_mod
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.layout import check_argument as check
from layoutalg.integer.matrix import Form, Matrix

PLACES = 12
"""Points of a box at which z3 confirms ISL's answer that the box is covered."""
VALUES = 2**14
"""Most points of a box that are all evaluated to confirm z3."""
Box = Mapping[str, "int | tuple[int, int]"]
Sides = Sequence[tuple[int, int]]
Forms = Sequence[Form]


def kernel_lattice(layout: IntegerLayout) -> Lattice:
    """Return the lattice of differences d with ``A d = 0``, each output modulo its modulus.

    Example:
        >>> kernel_lattice(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3))).basis
        ((3, -2),)
    """
    return _kernel(layout_or_refuse(layout).matrix, layout.moduli, len(layout.inputs))


def injective(layout: IntegerLayout, milliseconds: int = MILLISECONDS) -> Verdict:
    """Decide whether no two points of the box share all outputs.

    Args:
        layout: The layout.
        milliseconds: Time limit of the bitset and the solver, which run last.

    Returns:
        Proved with the engine; Refuted with the two points and their common value; Unknown if time ran out.

    Complexity: general strides are as hard as subset sum; the cheap engines decide practical layouts.

    Example:
        >>> injective(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3))).witness["second"]
        {'i': 0, 'j': 2}
        >>> injective(IntegerLayout.from_strides({"i": 3, "j": 4}, (2, 3)))
        Proved(engine='lattice', certificate={'kernel': ((3, -2),)})
    """
    layout_or_refuse(layout)
    budget = checked_milliseconds(milliseconds)
    said: list[str] = []
    answer: Verdict | None = climb(INJECTIVE, said, layout)
    if answer is None:
        with clock.within(budget / 1000):
            answer = climb(INJECTIVE_TIMED, said, layout, budget / 1000)
    if answer is None:
        return Unknown(f"no answer within {budget} ms ({'; '.join(said)})", (*INJECTIVE, *INJECTIVE_TIMED))
    return answer


def _few_points(name: str, layout: IntegerLayout) -> Verdict | None:
    return Proved(name) if layout.size < 2 else None


def _kernel(rows: Matrix, moduli: Sequence[int], width: int) -> Lattice:
    answer = solve_mod(rows, (0,) * len(rows), tuple(moduli), columns=width)
    return Lattice(width, answer.basis if not isinstance(answer, NoSolution) else ())


def _active_kernel(layout: IntegerLayout) -> Lattice:
    """Return the kernel lattice on the axes of extent above 1."""
    live = [k for k, extent in enumerate(layout.extents) if extent > 1]
    return _kernel(tuple([tuple([row[k] for k in live]) for row in layout.matrix]), layout.moduli, len(live))


def _by_kernel(name: str, layout: IntegerLayout) -> Verdict | None:
    lattice = _active_kernel(layout)
    live = [k for k, extent in enumerate(layout.extents) if extent > 1]
    rows = []
    for row in lattice.basis:
        full = [0] * len(layout.extents)
        for k, d in zip(live, row, strict=True):
            full[k] = d
        if all(abs(d) < extent for d, extent in zip(full, layout.extents, strict=True)):
            return _pair(name, layout, [max(d, 0) for d in full], [max(-d, 0) for d in full])
        rows.append(tuple(full))
    # every collision is a multiple of the single generator, and that is already outside the box of differences
    return Proved(name, {"kernel": tuple(rows)}) if lattice.rank <= 1 else None


def _by_growth(name: str, layout: IntegerLayout) -> Verdict | None:
    forms = packed(layout)
    strides = None if forms is None or forms[0][2] else growing(forms[0][0], layout.extents)
    return None if strides is None else Proved(name, {"strides": strides})


def _repeat_in_table(name: str, layout: IntegerLayout) -> Verdict | None:
    if not fit(layout):
        return None
    found = repeat_in_table(layout)
    return Proved(name, {"points": layout.size}) if found is None else _pair(name, layout, *found)


def _repeat_in_bits(name: str, layout: IntegerLayout, _: float) -> Verdict | None:
    forms = packed(layout)
    found = None if forms is None else value_set(*forms[0], layout.extents, BITSET_VALUES)
    if found is None:
        return None
    return Proved(name, {"values": layout.size}) if found.collision is None else _pair(name, layout, *found.collision)


def _repeat_by_solver(name: str, layout: IntegerLayout, seconds: float) -> Verdict:
    answer = collision(layout, seconds)
    if answer is not None:
        return _pair(name, layout, *answer)
    points = [layout.coordinate(int(index)) for index in sampled_coordinates(layout.size, VALUES)]
    count = len(points)
    if len({layout.value(point) for point in points}) < count:
        return Unknown(f"{name} answered that no two points share a value, but some do", (name, "samples"))
    return Proved(name, {"confirmed": f"no value twice among {count} points"})


INJECTIVE: Ladder[Verdict | None] = {
    "size": _few_points,
    "lattice": _by_kernel,
    "superincreasing": _by_growth,
    "table": _repeat_in_table,
}
INJECTIVE_TIMED: Ladder[Verdict | None] = {"bitset": _repeat_in_bits, "z3": _repeat_by_solver}


def _pair(name: str, layout: IntegerLayout, first: Sequence[int], second: Sequence[int]) -> Refuted | Unknown:
    """Return the refutation by two points after evaluating both."""
    if tuple(first) == tuple(second) or layout.value(first) != layout.value(second):
        return Unknown(
            f"{name} gave the points {tuple(first)} and {tuple(second)}, which have different values", (name,)
        )
    ours, theirs = (dict(zip(layout.in_dims, map(int, point), strict=True)) for point in (first, second))
    value = dict(zip(layout.out_dims, layout.value(list(ours.values())), strict=True))
    return Refuted(name, {"first": ours, "second": theirs, "value": value})


def covers(layout: IntegerLayout, box: Box | None = None) -> Verdict:
    """Decide whether every point of a box of outputs is a value of the layout.

    Values outside the box do not matter.

    Args:
        layout: The layout.
        box: Per output an extent N for [0, N), or a pair (low, high) for [low, high). An output with a modulus may be
            omitted, which stands for all its residues.

    Returns:
        Proved; Refuted with a point of the box that is never reached; Unknown.

    Example:
        >>> covers(IntegerLayout.from_strides({"i": 3, "j": 2}, (1, 3)), {"offset": 6})
        Proved(engine='chain', certificate={'interval': (0, 6)})
        >>> covers(IntegerLayout.from_strides({"i": 2, "j": 2}, (1, 1), modulus=6))
        Refuted(engine='range', witness={'missed': {'offset': 5}})
        >>> both = IntegerLayout((("i", 4), ("j", 4)), (("row", 0), ("bank", 4)), ((1, 0), (1, 1)), (0, 0))
        >>> covers(both, {"row": 4})
        Proved(engine='table', certificate={'points': 16})
    """
    sides = _sides(layout_or_refuse(layout), box)
    said: list[str] = []
    answer: Verdict | None = climb(COVERS, said, layout, sides, layout.forms)
    if answer is None:
        with clock.within(ISL_SECONDS + SMT_SECONDS):
            answer = climb(COVERS_TIMED, said, layout, sides, ())
    if answer is None:
        return Unknown(f"too many points for a table ({'; '.join(said)})", (*COVERS, *COVERS_TIMED))
    return answer


def _sides(layout: IntegerLayout, box: Box | None) -> list[tuple[int, int]]:
    """Return the half-open interval to be covered, per output."""
    sides: list[tuple[int, int]] = []
    given = {} if box is None else box
    needed = [name for name, m in layout.outputs if not m]
    if not isinstance(given, Mapping) or not set(needed) <= set(given) or not set(given) <= set(layout.out_dims):
        rule = f"must give an extent or (low, high) for each of {needed} and name only {list(layout.out_dims)}"
        raise check.malformed("box", rule, box)
    for name, m in layout.outputs:
        side = given.get(name, m)
        if isinstance(side, (tuple, list)):
            low, high = check.vector(side, f"box[{name!r}]", 2)
        else:
            low, high = 0, check.integer(side, f"box[{name!r}]")
        if high < low or (m and not (low >= 0 and high <= m)):
            rule = f"must be an interval inside [0, {m})" if m else "must be an interval"
            raise check.malformed(f"box[{name!r}]", rule, side)
        sides.append((low, high))
    return sides


def _missed(name: str, layout: IntegerLayout, point: Sequence[int]) -> Refuted:
    return Refuted(name, {"missed": dict(zip(layout.out_dims, map(int, point), strict=True))})


def _empty_box(name: str, _: IntegerLayout, sides: Sides, __: Forms) -> Verdict | None:
    return None if math.prod(high - low for low, high in sides) else Proved(name)


def _no_points(name: str, layout: IntegerLayout, sides: Sides, _: Forms) -> Verdict | None:
    return None if layout.size else _missed(name, layout, [low for low, _ in sides])


def _off_the_lattice(name: str, layout: IntegerLayout, sides: Sides, _: Forms) -> Verdict | None:
    width, corner = len(layout.outputs), [low for low, _ in sides]
    generators = [column for column, extent in zip(layout.columns, layout.extents, strict=True) if extent > 1]
    generators += [tuple(m if i == j else 0 for i in range(width)) for j, m in enumerate(layout.moduli) if m]
    lattice = Lattice.spanned_by(generators, width)
    units = [[x + (k == place) for k, x in enumerate(corner)] for place, (a, b) in enumerate(sides) if b - a > 1]
    for point in (corner, *units):
        if tuple(a - b for a, b in zip(point, layout.offset, strict=True)) not in lattice:
            return _missed(name, layout, point)
    return None


def _out_of_range(name: str, layout: IntegerLayout, sides: Sides, forms: Forms) -> Verdict | None:
    for place, (row, b, m) in enumerate(forms):
        low, high = (0, m - 1) if m else span(row, b, layout.extents)
        for value in (sides[place][0], sides[place][1] - 1):
            if not low <= value <= high:
                return _missed(name, layout, [value if k == place else x for k, (x, _) in enumerate(sides)])
    return None


def _each_output(name: str, layout: IntegerLayout, sides: Sides, _: Forms) -> Verdict | None:
    """Decide outputs that share no input axis one by one."""
    if len(layout.outputs) < 2 or any(sum(map(bool, column)) > 1 for column in layout.columns):
        return None
    engines = []
    for place, output in enumerate(layout.outputs):
        row = layout.matrix[place]
        own = [k for k, a in enumerate(row) if a]
        part = IntegerLayout(
            tuple(layout.inputs[k] for k in own), (output,), (tuple(row[k] for k in own),), (layout.offset[place],)
        )
        verdict = covers(part, {output[0]: sides[place]})
        if isinstance(verdict, Refuted):
            missed: Any = verdict.witness["missed"]
            point = [missed[output[0]] if k == place else x for k, (x, _) in enumerate(sides)]
            return _missed(verdict.engine, layout, point)
        if isinstance(verdict, Unknown):
            return verdict
        engines.append(verdict.engine)
    return Proved(name, {"engines": tuple(engines)})


def _by_chain(name: str, layout: IntegerLayout, sides: Sides, forms: Forms) -> Verdict | None:
    """Decide one output over Z by its sorted strides, if they fill an interval or the box contains the first gap."""
    if len(layout.outputs) != 1 or forms[0][2]:
        return None
    row, b, _ = forms[0]
    low, high = span(row, b, layout.extents)
    step, reach, whole = filled(row, layout.extents)
    if not whole:
        gaps = [gap for gap in (low + reach + step, high - reach - step) if sides[0][0] <= gap < sides[0][1]]
        return _missed(name, layout, gaps[:1]) if gaps else None
    aligned = step == 1 or (sides[0][1] - sides[0][0] == 1 and (sides[0][0] - low) % step == 0)
    inside = low <= sides[0][0] and sides[0][1] <= high + 1
    return Proved(name, {"interval": (low, high + 1)}) if aligned and inside else None


def _gap_in_table(name: str, layout: IntegerLayout, sides: Sides, _: Forms) -> Verdict | None:
    if not fit(layout):
        return None
    point = gap_in_table(layout, sides)
    return Proved(name, {"points": layout.size}) if point is None else _missed(name, layout, point)


def _gap_in_bits(name: str, layout: IntegerLayout, sides: Sides, forms: Forms) -> Verdict | None:
    found = value_set(*forms[0], layout.extents, BITSET_VALUES) if len(forms) == 1 else None
    if found is None:
        return None
    missing = found.first_missing(*sides[0])
    return Proved(name) if missing is None else _missed(name, layout, [missing])


def _gap_by_isl(name: str, layout: IntegerLayout, sides: Sides, _: Forms) -> Verdict:
    """Decide by ISL and cross-check with z3, evaluating its points."""
    point = first_missed(layout, sides)
    if point is not None:
        reached = point_of_value(layout, point, SMT_SECONDS)
        if reached is None:
            return _missed(name, layout, point)
        return Unknown(
            f"ISL answered that {tuple(point)} is missed, but the point {reached} has this value", (name, "z3")
        )
    rng = random.Random(0)  # deterministic
    places = [tuple(low for low, _ in sides), tuple(high - 1 for _, high in sides)]
    places += [tuple(rng.randrange(low, high) for low, high in sides) for _ in range(PLACES - len(places))]
    for place in places:
        found = point_of_value(layout, place, SMT_SECONDS)
        if found is None or layout.value(found) != place:
            return Unknown(
                f"ISL answered that the box is covered, but z3 finds no point with the value {place}", (name, "z3")
            )
    return Proved(name, {"confirmed": f"z3 reaches {len(places)} places of the box"})


def first_missed(layout: IntegerLayout, sides: Sequence[tuple[int, int]]) -> list[int] | None:
    """Return a point of a box of outputs (low, high) that is not a value of the layout, or None.

    Example:
        >>> first_missed(IntegerLayout.from_strides({"i": 2, "j": 2}, (1, 3)), [(0, 5)])
        [2]
    """
    from layoutalg.piecewise import PointSet

    image = guarded(layout).image
    box = " and ".join(f"{low} <= {axis} < {high}" for axis, (low, high) in zip(image.axes, sides, strict=True))
    point = PointSet(f"{{ [{', '.join(image.axes)}] : {box} }}").subtract(image).sample()
    return None if point is None else [int(str(point[axis])) for axis in image.axes]


COVERS: Ladder[Verdict | None] = {
    "empty box": _empty_box,
    "size": _no_points,
    "lattice": _off_the_lattice,
    "range": _out_of_range,
    "each output": _each_output,
    "chain": _by_chain,
    "table": _gap_in_table,
    "bitset": _gap_in_bits,
}
COVERS_TIMED: Ladder[Verdict | None] = {"isl": _gap_by_isl}
