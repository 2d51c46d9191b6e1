"""A layout read at the coordinates that another layout gives.

Main definitions: ``at_coordinates``.

Main statements: L after X is the sum, over the leaves of the value of X, of a mode of L after a component of X. Where
each stride of X moves one leaf, the sum is a CuTe layout if and only if every part is; where strides move several
leaves the parts may cancel, and a table decides.

References: CuTe ``composition`` with a tiler of basis strides.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np

from layoutalg.cute.basis import Path, graft_ints
from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.composition import composition
from layoutalg.cute.coordinates import CoordinateLayout, clash, common_ends, seen_from
from layoutalg.cute.inttuple import IntTuple, flatten, shape_text
from layoutalg.cute.layout import CuteLayout
from layoutalg.cute.operand import operand_refusal, plain
from layoutalg.ground.digits import Flat, IntArray, evaluate, merge, table
from layoutalg.ground.errors import BudgetError, Diagnostic, LayoutError, MalformedError, RepresentabilityError
from layoutalg.ground.limits import CUTE_POINTS


def at_coordinates(layout: CuteLayout | ComposedLayout, coordinates: CoordinateLayout) -> CuteLayout | ComposedLayout:
    """Return ``layout`` read at the coordinates that ``coordinates`` gives, also written ``layout @ coordinates``.

    Mathematically: R with R(c) = layout(coordinates(c)). A path of the coordinates ends at a mode of the layout, which
    reads its value as 1-D coordinate; modes without a path are read at 0.

    Args:
        layout: The layout to read; its shape must have every path.
        coordinates: Gives coordinates inside the modes.

    Raises:
        MalformedError: LA171, LA192. AdmissibilityError: LA120. RepresentabilityError: LA121, LA122, LA172.
        BudgetError: LA125, LA173.

    Example:
        >>> from layoutalg.cute.basis import E
        >>> print(at_coordinates(CuteLayout((4, 8), (1, 4)), CoordinateLayout((4, 2), (E(1), 2 * E(0)))))
        (4,2):(4,2)

    Source: CuTe ``composition`` with a tiler of basis strides.
    """
    if not isinstance(coordinates, CoordinateLayout):
        raise operand_refusal(coordinates, "at_coordinates", "coordinates", "a CoordinateLayout")
    if isinstance(layout, ComposedLayout):
        base = at_coordinates(layout.base, coordinates)
        return layout.rebase(base) if isinstance(base, CuteLayout) else base
    where = f"composition({plain(layout, 'at_coordinates')}, {coordinates})"
    modes = [(_mode(layout, path, where), part, path) for path, part in coordinates.components]
    domain = coordinates.shape
    try:
        for mode, part, _ in modes:
            composition(mode, part)
        runs = [_sum_run(modes, position, where) for position in range(len(flatten(domain)))]
    except RepresentabilityError as error:
        if all(len(entry.terms) < 2 for _, entry in coordinates.flat):
            raise seen_from(error, where) from error
        runs = _by_table(layout, modes, domain, where)  # moves that cross modes may cancel
    except LayoutError as error:
        raise seen_from(error, where) from error
    shapes: list[IntTuple] = [run[0][0] if len(run) == 1 else tuple([count for count, _ in run]) for run in runs]
    strides: list[IntTuple] = [run[0][1] if len(run) == 1 else tuple([step for _, step in run]) for run in runs]
    return CuteLayout(graft_ints(iter(shapes), domain), graft_ints(iter(strides), domain))


Modes: TypeAlias = list[tuple[CuteLayout, CuteLayout, Path]]


def _sum_run(modes: Modes, position: int, where: str) -> Flat:
    """Return the digits of one leaf of the domain: the parts of all modes along it, added."""
    if not modes:
        return ((1, 0),)
    extent = modes[0][1].flat[position][0]
    empty = modes[0][1].size == 0
    parts = [
        composition(mode, CuteLayout(extent, 0 if empty else part.flat[position][1])).flat for mode, part, _ in modes
    ]
    if extent <= 1:
        return ((extent, sum([run[0][1] for run in parts])),)
    ends = common_ends(parts)
    for low, high in pairwise(ends):
        if high % low:
            raise clash(parts, low, high, extent, 1, where)
    digits = [(high // low, sum([evaluate(run, low) for run in parts])) for low, high in pairwise([*ends, extent])]
    merged = merge(tuple(digits))
    return merged or ((1, 0),)


def _by_table(layout: CuteLayout, modes: Modes, domain: IntTuple, where: str) -> list[Flat]:
    """Decide from the table where strides move several modes at once and jumps may cancel."""
    size = CuteLayout(domain).size
    if size > CUTE_POINTS:
        raise BudgetError(
            Diagnostic(
                code="LA173",
                what="whether the layout at these coordinates is a CuTe layout was not decided",
                where=(where,),
                because=f"strides move several modes of {layout} at once; {size} entries, the limit is {CUTE_POINTS}",
            )
        )
    values = np.zeros(size, dtype=np.int64)
    for mode, part, _ in modes:
        values = values + mode.apply(part.table())
    runs: list[Flat] = []
    total = np.zeros(1, dtype=np.int64)
    weight = 1
    for extent in flatten(domain):
        run = _digits(values[::weight][:extent])
        runs.append(run)
        total = np.add.outer(table(run), total).reshape(-1)
        weight *= extent
    wrong = np.flatnonzero(total != values)
    if wrong.size:
        first = int(wrong[0])
        raise RepresentabilityError(
            Diagnostic(
                code="LA172",
                what="the layout at these coordinates is not a CuTe layout",
                where=(where,),
                because="mode by mode the strides give another function",
                witness={"coordinate": first, "composition": int(values[first]), "layout": int(total[first])},
            )
        )
    return runs


def _digits(values: IntArray) -> Flat:
    """Return the digits of a table as far as they can be read off; the caller compares the whole table."""
    if len(values) == 1:
        return ((1, 0),)
    digits: list[tuple[int, int]] = []
    while len(values) > 1:
        slope = int(values[1])
        off = np.flatnonzero(values != np.arange(len(values), dtype=np.int64) * slope)
        count = int(off[0]) if off.size else len(values)
        if len(values) % count:
            count = len(values)
        digits.append((count, slope))
        values = values[::count]
    return tuple(digits)


def _mode(layout: CuteLayout, path: Path, where: str) -> CuteLayout:
    mode = layout
    for step in path:
        if isinstance(mode.shape, int) or step >= mode.rank:
            raise MalformedError(
                Diagnostic(
                    code="LA171",
                    what="the coordinates do not fit the layout",
                    where=(where,),
                    because=f"{layout} has no mode at E{shape_text(path)}",
                )
            )
        mode = mode[step]
    return mode
