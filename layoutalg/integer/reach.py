"""Which values an integer layout takes, and how often: injectivity, surjectivity onto a box, common values.

Main definitions: ``injective``, ``covers``, ``disjoint_images``, ``kernel_lattice``, ``value_lattice``, ``value_keys``.

Main statements: two points collide exactly when their difference is a vector of the kernel lattice inside the box of
differences. Strides sorted by size fill an interval exactly when each is at most one more than what the smaller ones
reach.

Implementation notes: engines from cheap to dear, the one that decided is in the verdict: lattice, range,
superincreasing strides or chain, table up to 2^20 points, bitset over at most 2^27 values, z3 within a time
budget, ``Unknown``. Witnesses are evaluated before they are returned; what ISL or z3 prove is confirmed on samples,
and the certificate says on how many.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock, memory
from layoutalg.ground.errors import BudgetError
from layoutalg.ground.limits import ISL_SECONDS, SMT_SECONDS
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.integer.bits import ValueSet, value_set
from layoutalg.integer.confirm import sampled_points
from layoutalg.integer.forms import residue_form, span
from layoutalg.integer.guarded import first_missed
from layoutalg.integer.lattice import Coset, Lattice
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.layout import check_argument as check
from layoutalg.integer.matrix import Vector
from layoutalg.integer.solve import NoSolution, solve_mod
from layoutalg.integer.solver import collision, common_value, point_of_value

TABLE_POINTS = 2**20
BITSET_VALUES = 2**27
MILLISECONDS = 2000
SAMPLES = 2**14
"""Points at which the answers of z3 are confirmed."""
PLACES = 12
"""Places of a box at which ISL's word that it is covered is confirmed."""


def kernel_lattice(layout: IntegerLayout) -> Lattice:
    """Return the lattice of differences d with ``A d = 0``, each output read modulo its modulus.

    Example:
        >>> kernel_lattice(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3))).basis
        ((3, -2),)
    """
    width = len(layout_or_refuse(layout).inputs)
    answer = solve_mod(layout.matrix, (0,) * len(layout.outputs), layout.moduli, columns=width)
    return Lattice(width, answer.basis if not isinstance(answer, NoSolution) else ())


def value_lattice(layout: IntegerLayout) -> Coset:
    """Return the smallest coset of a lattice that holds every value: the offset plus the span of the strides.

    A modulus m of an output adds m to its axis of the lattice; strides of axes of extent 0 or 1 do not count.

    Example:
        >>> value_lattice(IntegerLayout.from_strides({"i": 4, "j": 4}, (4, 6), 7))
        Coset(offset=(1,), lattice=Lattice(dimension=1, basis=((2,),)))
    """
    width = len(layout_or_refuse(layout).outputs)
    generators = [column for column, extent in zip(layout.columns, layout.extents, strict=True) if extent > 1]
    generators += [tuple(m if i == j else 0 for i in range(width)) for j, m in enumerate(layout.moduli) if m]
    return Coset(layout.offset, Lattice.spanned_by(generators, width))


def _forms(layout: IntegerLayout) -> list[tuple[Vector, int]] | None:
    """Return every output as an affine form over Z, or None where a modulus wraps."""
    forms = []
    for row, b, m in zip(layout.matrix, layout.offset, layout.moduli, strict=True):
        form = residue_form(row, b, m, layout.extents)
        if form is None:
            return None
        forms.append(form)
    return forms


def _packed(layout: IntegerLayout) -> tuple[Vector, int, int] | None:
    """Return one form (row, constant, modulus) that collides exactly where the layout does, or None.

    Outputs over Z are packed in mixed radix by their ranges, which loses nothing on the box.
    """
    forms = _forms(layout)
    if forms is None:
        if len(layout.outputs) == 1:
            return layout.matrix[0], layout.offset[0], layout.moduli[0]
        return None
    total, weight = [0] * len(layout.inputs), 1
    for row, _ in forms:
        total = [t + weight * a for t, a in zip(total, row, strict=True)]
        low, high = span(row, 0, layout.extents)
        weight *= high - low + 1
    return tuple(total), 0, 0


def value_keys(*layouts: IntegerLayout) -> list[npt.NDArray[np.int64]]:
    """Return, per flat index of each layout, a number that two points share exactly when they share all outputs.

    The numbers ascend as the values do, the first output compared first.
    """
    sizes = [layout.size for layout in layouts]
    memory.reserve("the values of layouts", sum(sizes), 48 + 16 * len(layouts[0].outputs))
    tables = [layout.table().reshape(layout.size, -1) for layout in layouts]
    keys = np.zeros(sum(sizes), dtype=np.int64)
    for place in range(len(layouts[0].outputs)):
        clock.check("comparing the values of layouts")
        values, places = np.unique(np.concatenate([table[:, place] for table in tables]), return_inverse=True)
        _, keys = np.unique(keys * len(values) + places.reshape(-1), return_inverse=True)
        keys = keys.reshape(-1).astype(np.int64)
    return np.split(keys, np.cumsum(sizes)[:-1])


def _sampled_values(layout: IntegerLayout) -> tuple[dict[Vector, Vector], int]:
    """Return values of some points with a point of each, and how many points these are, each counted once."""
    columns = [column.tolist() for column in sampled_points(layout, SAMPLES, SAMPLES)]
    points = set(zip(*columns, strict=True))
    return {layout.value(point): point for point in points}, len(points)


def _pair(layout: IntegerLayout, engine: str, first: Sequence[int], second: Sequence[int]) -> Refuted | Unknown:
    """Return the refutation by two points after looking at both values."""
    names = list(layout.in_dims)
    if tuple(first) == tuple(second) or layout.value(first) != layout.value(second):
        return Unknown(f"{engine} named two points, {tuple(first)} and {tuple(second)}, of two values", (engine,))
    return Refuted(
        engine,
        {
            "first": dict(zip(names, map(int, first), strict=True)),
            "second": dict(zip(names, map(int, second), strict=True)),
            "value": dict(zip(layout.out_dims, layout.value([int(x) for x in first]), strict=True)),
        },
    )


def injective(layout: IntegerLayout, milliseconds: int = MILLISECONDS) -> Verdict:
    """Decide whether no two points of the box share all outputs.

    Args:
        layout: The layout.
        milliseconds: Budget of the solver, which is asked last.

    Returns:
        Proved with the engine; Refuted with the two points and their common value; Unknown where the budget ran out.

    Raises: MalformedError: LA724, LA731.

    Complexity: general strides are as hard as subset sum; the cheap engines decide what occurs in practice.

    Example:
        >>> injective(IntegerLayout.from_strides({"i": 4, "j": 4}, (2, 3))).witness["second"]
        {'i': 0, 'j': 2}
        >>> injective(IntegerLayout.from_strides({"i": 3, "j": 4}, (2, 3)))
        Proved(engine='lattice', certificate={'kernel': ((3, -2),)})
    """
    size = layout_or_refuse(layout).size
    budget = _budget(milliseconds)
    if size < 2:
        return Proved("size")
    lattice = _active_kernel(layout)
    limits = layout.extents
    for row in lattice.basis:
        if all(abs(d) < extent for d, extent in zip(row, limits, strict=True)):
            return _pair(layout, "lattice", [max(d, 0) for d in row], [max(-d, 0) for d in row])
    if lattice.rank <= 1:
        # every collision is a multiple of the one generator, which already leaves the box of differences
        return Proved("lattice", {"kernel": lattice.basis})
    packed = _packed(layout)
    if packed is not None and not packed[2]:
        order = _superincreasing(packed[0], limits)
        if order is not None:
            return Proved("superincreasing", {"strides": order})
    if size <= min(TABLE_POINTS, layout.table_limit):
        return _injective_by_table(layout)
    try:
        with clock.within(budget / 1000):
            found = None if packed is None else value_set(*packed, limits, BITSET_VALUES)
            if isinstance(found, ValueSet):
                if found.collision is None:
                    return Proved("bitset", {"values": size})
                return _pair(layout, "bitset", *found.collision)
            answer = collision(layout, budget / 1000)
    except BudgetError as error:
        because = f"no answer within {budget} ms ({error.diagnostic.because})"
        return Unknown(because, ("lattice", "superincreasing", "bitset", "z3"))
    if answer is not None:
        return _pair(layout, "z3", *answer)
    values, count = _sampled_values(layout)
    if len(values) < count:
        return Unknown("z3 says that no two points share a value, and some do", ("z3", "samples"))
    return Proved("z3", {"confirmed": f"no value twice among {count} points"})


def _budget(milliseconds: object) -> int:
    """Return a checked number of milliseconds."""
    return check.integer(milliseconds, "milliseconds", 1, 2**31)


def _active_kernel(layout: IntegerLayout) -> Lattice:
    """Return the kernel lattice with zeros on axes of extent 1."""
    active = [k for k, extent in enumerate(layout.extents) if extent > 1]
    rows = tuple(tuple(row[k] for k in active) for row in layout.matrix)
    answer = solve_mod(rows, (0,) * len(rows), layout.moduli, columns=len(active))
    basis = answer.basis if not isinstance(answer, NoSolution) else ()
    width = len(layout.extents)
    spread = []
    for row in basis:
        full = [0] * width
        for k, d in zip(active, row, strict=True):
            full[k] = d
        spread.append(full)
    return Lattice.spanned_by(spread, width)


def _superincreasing(row: Sequence[int], extents: Sequence[int]) -> tuple[tuple[int, int], ...] | None:
    """Return (stride, extent) sorted by size where each stride exceeds the reach of the smaller ones."""
    modes = sorted((abs(a), extent) for a, extent in zip(row, extents, strict=True) if extent > 1)
    reach = 0
    for stride, extent in modes:
        if stride <= reach:
            return None
        reach += stride * (extent - 1)
    return tuple(modes)


def _injective_by_table(layout: IntegerLayout) -> Verdict:
    keys = value_keys(layout)[0]
    _, first = np.unique(keys, return_index=True)
    if len(first) == layout.size:
        return Proved("table", {"points": layout.size})
    seen = np.zeros(layout.size, dtype=bool)
    seen[first] = True
    second = int(np.argmin(seen))
    original = int(np.argmax(keys == keys[second]))
    return _pair(layout, "table", layout.coordinate(original), layout.coordinate(second))


Box = Mapping[str, "int | tuple[int, int]"]


def _box(layout: IntegerLayout, box: Box | None) -> list[tuple[int, int]]:
    """Return per output the half-open interval asked for."""
    sides: list[tuple[int, int]] = []
    given = {} if box is None else box
    needed = [name for name, m in layout.outputs if not m]
    if not isinstance(given, Mapping) or not set(needed) <= set(given) or not set(given) <= set(layout.out_dims):
        rule = f"must give an extent or (low, high) for each of {needed}, and for none but {list(layout.out_dims)}"
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


def covers(layout: IntegerLayout, box: Box | None = None) -> Verdict:
    """Decide whether every point of a box of outputs is a value of the layout.

    Values outside the box do not matter.

    Args:
        layout: The layout.
        box: Per output an extent N for [0, N), or a pair (low, high) for [low, high). An output with a modulus may be
            left out: all its residues.

    Returns:
        Proved; Refuted with a point of the box that no coordinate reaches; Unknown.

    Raises: MalformedError: LA731.

    Example:
        >>> covers(IntegerLayout.from_strides({"i": 3, "j": 2}, (1, 3)), {"offset": 6})
        Proved(engine='chain', certificate={'interval': (0, 6)})
        >>> covers(IntegerLayout.from_strides({"i": 2, "j": 2}, (1, 1), modulus=6))
        Refuted(engine='range', witness={'missed': {'offset': 5}})
        >>> both = IntegerLayout((("i", 4), ("j", 4)), (("row", 0), ("bank", 4)), ((1, 0), (1, 1)), (0, 0))
        >>> covers(both, {"row": 4})
        Proved(engine='table', certificate={'points': 16})
    """
    sides = _box(layout_or_refuse(layout), box)
    if not math.prod(high - low for low, high in sides):
        return Proved("empty box")
    corner = [low for low, _ in sides]
    if not layout.size:
        return _missed(layout, "size", corner)
    coset = value_lattice(layout)
    units = [
        [value + (k == place) for k, value in enumerate(corner)]
        for place, (low, high) in enumerate(sides)
        if high - low > 1
    ]
    for point in (corner, *units):
        if tuple(point) not in coset:
            return _missed(layout, "lattice", point)
    for place, (row, b, m) in enumerate(zip(layout.matrix, layout.offset, layout.moduli, strict=True)):
        form = residue_form(row, b, m, layout.extents)
        if form is not None:
            low, high = span(*form, layout.extents)
            for value in (sides[place][0], sides[place][1] - 1):
                if not low <= value <= high:
                    return _missed(layout, "range", [value if k == place else x for k, x in enumerate(corner)])
    if len(layout.outputs) > 1 and all(sum(map(bool, column)) <= 1 for column in layout.columns):
        return _covers_each(layout, sides, corner)
    if len(layout.outputs) == 1:
        chain = _chain(layout, sides[0])
        if chain is not None:
            return chain
    if layout.size <= min(TABLE_POINTS, layout.table_limit):
        return _covers_by_table(layout, sides)
    if len(layout.outputs) == 1:
        form = residue_form(layout.matrix[0], layout.offset[0], layout.moduli[0], layout.extents)
        row, b, m = (*form, 0) if form else (layout.matrix[0], layout.offset[0], layout.moduli[0])
        found = value_set(row, b, m, layout.extents, BITSET_VALUES)
        if isinstance(found, ValueSet):
            missing = found.first_missing(*sides[0])
            return Proved("bitset") if missing is None else _missed(layout, "bitset", [missing])
    try:
        with clock.within(ISL_SECONDS + SMT_SECONDS):
            missing_point = first_missed(layout, sides)
            if missing_point is None:
                return _sampled_cover(layout, sides)
            reached = point_of_value(layout, missing_point, SMT_SECONDS)
    except BudgetError as error:
        because = f"too many points for a table, and {error.diagnostic.because}"
        return Unknown(because, ("lattice", "range", "isl", "z3"))
    if reached is not None:
        return Unknown(f"ISL says that {tuple(missing_point)} is missed, and {reached} reaches it", ("isl", "z3"))
    return _missed(layout, "isl and z3", missing_point)


def _sampled_cover(layout: IntegerLayout, sides: Sequence[tuple[int, int]]) -> Verdict:
    """Confirm that a box is covered: z3 finds a point for its corners and for random places, and it is evaluated."""
    rng = random.Random(0)  # the same places on every call
    places = [tuple(low for low, _ in sides), tuple(high - 1 for _, high in sides)]
    places += [tuple(rng.randrange(low, high) for low, high in sides) for _ in range(PLACES - len(places))]
    for place in places:
        point = point_of_value(layout, place, SMT_SECONDS)
        if point is None or layout.value(point) != place:
            return Unknown(f"ISL says that the box is covered, z3 that {place} is missed", ("isl", "z3"))
    return Proved("isl", {"confirmed": f"z3 reaches {len(places)} places of the box"})


def _missed(layout: IntegerLayout, engine: str, point: Sequence[int]) -> Refuted:
    return Refuted(engine, {"missed": dict(zip(layout.out_dims, map(int, point), strict=True))})


def _covers_each(layout: IntegerLayout, sides: Sequence[tuple[int, int]], corner: Sequence[int]) -> Verdict:
    """Decide outputs that share no input axis one by one."""
    engines = []
    for place, (name, m) in enumerate(layout.outputs):
        own = [k for k, a in enumerate(layout.matrix[place]) if a]
        part = IntegerLayout(
            tuple(layout.inputs[k] for k in own),
            ((name, m),),
            (tuple(layout.matrix[place][k] for k in own),),
            (layout.offset[place],),
        )
        verdict = covers(part, {name: sides[place]})
        if isinstance(verdict, Refuted):
            missed: Any = verdict.witness["missed"]
            point = [missed[name] if k == place else x for k, x in enumerate(corner)]
            return _missed(layout, verdict.engine, point)
        if isinstance(verdict, Unknown):
            return verdict
        engines.append(verdict.engine)
    return Proved("each output", {"engines": tuple(engines)})


def _chain(layout: IntegerLayout, side: tuple[int, int]) -> Verdict | None:
    """Decide one output over Z by its sorted strides, where they fill an interval or the box holds the first gap."""
    form = residue_form(layout.matrix[0], layout.offset[0], layout.moduli[0], layout.extents)
    if form is None:
        return None
    low, high = span(*form, layout.extents)
    reach = 0
    for stride, extent in sorted((abs(a), e) for a, e in zip(form[0], layout.extents, strict=True) if a and e > 1):
        if stride > reach + 1:
            for gap in (low + reach + 1, high - reach - 1):
                if side[0] <= gap < side[1]:
                    return _missed(layout, "chain", [gap])
            return None
        reach += stride * (extent - 1)
    return Proved("chain", {"interval": (low, high + 1)})


def _covers_by_table(layout: IntegerLayout, sides: Sequence[tuple[int, int]]) -> Verdict:
    table = layout.table().reshape(layout.size, -1)
    volume = math.prod(high - low for low, high in sides)
    inside = np.ones(layout.size, dtype=bool)
    for column, (low, high) in zip(table.T, sides, strict=True):
        inside &= np.asarray((column >= low) & (column < high), dtype=bool)
    # a first missing point is among the first size + 1 points of the box
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
        return Proved("table", {"points": layout.size})
    point = []
    for low, high in sides:
        place, digit = divmod(place, high - low)
        point.append(low + digit)
    return _missed(layout, "table", point)


def disjoint_images(first: IntegerLayout, second: IntegerLayout, milliseconds: int = MILLISECONDS) -> Verdict:
    """Decide whether two layouts with the same outputs have no common value.

    Returns:
        Proved; Refuted with a point of each and the common value; Unknown where the budget ran out.

    Raises: MalformedError: LA731.

    Example:
        >>> even = IntegerLayout.from_strides({"i": 8}, (2,))
        >>> disjoint_images(even, IntegerLayout.from_strides({"i": 8}, (4,), 1)).engine
        'lattice'
        >>> disjoint_images(even, IntegerLayout.from_strides({"i": 8}, (3,), 1)).witness
        {'first': {'i': 2}, 'second': {'i': 1}, 'value': {'offset': 4}}
    """
    if layout_or_refuse(first).outputs != layout_or_refuse(second, "second").outputs:
        raise check.malformed("second", f"must have the outputs {first.outputs}", second.outputs)
    budget = _budget(milliseconds)
    if not first.size or not second.size:
        return Proved("size")
    meeting = value_lattice(first) & value_lattice(second)
    if isinstance(meeting, NoSolution):
        return Proved("lattice", {"row": meeting.row, "modulus": meeting.modulus})
    one, two = _forms(first), _forms(second)
    if one is not None and two is not None:
        for name, form, other in zip(first.out_dims, one, two, strict=True):
            low, high = span(*form, first.extents)
            bottom, top = span(*other, second.extents)
            if high < bottom or top < low:
                return Proved("range", {"output": name})
    if max(first.size, second.size) <= min(TABLE_POINTS, first.table_limit, second.table_limit):
        return _disjoint_by_table(first, second)
    try:
        answer = common_value(first, second, budget / 1000)
    except BudgetError as error:
        because = f"z3 gave no answer within {milliseconds} ms ({error.diagnostic.because})"
        return Unknown(because, ("lattice", "range", "z3"))
    if answer is not None:
        return _common(first, second, "z3", *answer)
    (ours, count), (theirs, size) = _sampled_values(first), _sampled_values(second)
    if ours.keys() & theirs.keys():
        return Unknown("z3 says that no value is shared, and some are", ("z3", "samples"))
    return Proved("z3", {"confirmed": f"no common value among {count} and {size} points"})


def _common(f: IntegerLayout, g: IntegerLayout, engine: str, x: Sequence[int], y: Sequence[int]) -> Refuted | Unknown:
    """Return the refutation by a point of each after looking at both values."""
    if f.value(list(x)) != g.value(list(y)):
        return Unknown(f"{engine} named two points, {tuple(x)} and {tuple(y)}, of two values", (engine,))
    return Refuted(
        engine,
        {
            "first": dict(zip(f.in_dims, map(int, x), strict=True)),
            "second": dict(zip(g.in_dims, map(int, y), strict=True)),
            "value": dict(zip(f.out_dims, f.value([int(c) for c in x]), strict=True)),
        },
    )


def _disjoint_by_table(first: IntegerLayout, second: IntegerLayout) -> Verdict:
    one, two = value_keys(first, second)
    common = np.isin(one, two)
    if not common.any():
        return Proved("table", {"points": first.size + second.size})
    x = int(np.argmax(common))
    y = int(np.argmax(two == one[x]))
    return _common(first, second, "table", first.coordinate(x), second.coordinate(y))
