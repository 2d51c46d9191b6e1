"""Composition with coordinate layouts, on either side.

Main statements: a coordinate layout is composed with an inner layout component by component. A mode of the inner layout
becomes a digit list if and only if each component gives one and their digit boundaries form a divisibility chain; the
modes add up if and only if they do in every component. Both are decided without enumeration.

L after X is the sum, over the leaves of the value of X, of a mode of L after a component of X. If each stride of X
moves one leaf, the sum is a CuTe layout if and only if every part is; if a stride moves several leaves, the parts may
cancel and a table decides.

References: CuTe ``composition`` with a tiler of basis strides.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np

from layoutalg.cute.basis import Basis, Path
from layoutalg.cute.compose_strided import after_strided
from layoutalg.cute.composed import ComposedLayout, Cute, staged
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.inttuple import IntTuple, flatten, graft, shape_text
from layoutalg.cute.layout import CuteLayout, from_runs
from layoutalg.cute.operands import WIDER, within
from layoutalg.cute.swizzled import simplify, tabled
from layoutalg.ground.digits import Flat, evaluate, merge, span
from layoutalg.ground.errors import BudgetError, Diagnostic, LayoutError, MalformedError, RepresentabilityError
from layoutalg.ground.limits import CUTE_POINTS

NOT_COORDINATES = "the composition is not a coordinate layout"


def coordinates_after(coordinates: CoordinateLayout, inner: Cute) -> CoordinateLayout:
    """Return ``coordinates`` after ``inner``, also written ``coordinates @ inner``.

    Raises: AdmissibilityError: LA120. RepresentabilityError: LA172. BudgetError: LA125.

    Example:
        >>> from layoutalg.cute.coordinates import make_identity_layout
        >>> print(coordinates_after(make_identity_layout((4, 8)), CuteLayout((8, 4), (4, 1))))
        (8,4):(E1,E0)
        >>> print(coordinates_after(make_identity_layout((4, 8)), CuteLayout((2, 8), (16, 2))))
        (2,(2,4)):(4E1,(2E0,E1))
    """
    where = f"composition({coordinates}, {inner})"
    inner = simplify(inner)
    if isinstance(inner, ComposedLayout):
        because = f"{inner} cannot be written without swizzle and offset"
        raise RepresentabilityError(Diagnostic("LA172", NOT_COORDINATES, (where,), because))
    parts = coordinates.components
    if not parts:
        CuteLayout(coordinates.shape).apply(np.asarray(span(inner.flat) if inner.size else [], dtype=np.int64))
    for path, part in parts:
        try:
            after_strided(part, inner)
        except RepresentabilityError as error:
            old = error.diagnostic
            because = f"in component E{shape_text(path)}, {old.because}"
            seen = Diagnostic("LA172", NOT_COORDINATES, (where, *old.where), because, old.witness)
            raise RepresentabilityError(seen) from error
        except LayoutError as error:
            raise within(error, where) from error
    runs = [_run(parts, extent, step if inner.size else 0, where) for extent, step in inner.flat]
    shapes: list[IntTuple] = [run[0][0] if len(run) == 1 else tuple([count for count, _ in run]) for run in runs]
    strides = [run[0][1] if len(run) == 1 else tuple([stride for _, stride in run]) for run in runs]
    return CoordinateLayout(graft(iter(shapes), inner.shape), graft(iter(strides), inner.shape), coordinates.profile)


def _run(
    components: tuple[tuple[Path, CuteLayout], ...], extent: int, step: int, where: str
) -> list[tuple[int, Basis]]:
    """Return the digits of the mode extent:step, along which every component is strided."""
    paths = [path for path, _ in components]
    runs = [after_strided(part, CuteLayout(extent, step)).flat for _, part in components]
    if extent <= 1:
        return [(extent, Basis(tuple([(path, run[0][1]) for path, run in zip(paths, runs, strict=True)])))]
    ends = _common_ends(runs)
    for low, high in pairwise(ends):
        if high % low:
            raise _clash(runs, low, high, extent, step, where)
    return [
        (high // low, Basis(tuple([(path, evaluate(run, low)) for path, run in zip(paths, runs, strict=True)])))
        for low, high in pairwise([*ends, extent])
    ]


def at_coordinates(layout: Cute, coordinates: CoordinateLayout) -> Cute:
    """Return ``layout`` read at the coordinates that ``coordinates`` gives, also written ``layout @ coordinates``.

    Mathematically: R with R(c) = layout(coordinates(c)). Each path of the coordinates names a mode of the layout, which
    reads the value as its 1-D coordinate; modes without a path are read at 0.

    Args:
        layout: The layout to read; every path must exist in its shape.
        coordinates: Must stay inside the modes.

    Raises:
        MalformedError: LA171. AdmissibilityError: LA120. RepresentabilityError: LA121, LA122, LA172. BudgetError:
        LA125, LA173.

    Example:
        >>> from layoutalg.cute.basis import E
        >>> print(at_coordinates(CuteLayout((4, 8), (1, 4)), CoordinateLayout((4, 2), (E(1), 2 * E(0)))))
        (4,2):(4,2)
    """
    if isinstance(layout, ComposedLayout):
        return staged(layout.stages, at_coordinates(layout.base, coordinates))
    where = f"composition({layout}, {coordinates})"
    modes = [(_mode(layout, path, where), part) for path, part in coordinates.components]
    extents = flatten(coordinates.shape)
    try:
        for mode, part in modes:
            after_strided(mode, part)
        runs = [_sum_run(modes, position, extent, where) for position, extent in enumerate(extents)]
    except RepresentabilityError as error:
        if all(len(entry.terms) < 2 for _, entry in coordinates.flat):
            raise within(error, where) from error
        return _by_table(modes, coordinates, where)  # parts may cancel across modes
    except LayoutError as error:
        raise within(error, where) from error
    return from_runs(runs, coordinates.shape)


Modes: TypeAlias = list[tuple[CuteLayout, CuteLayout]]


def _sum_run(modes: Modes, position: int, extent: int, where: str) -> Flat:
    """Return the digits of one leaf of the domain: the sum of the parts of all modes."""
    steps = [0 if part.size == 0 else part.flat[position][1] for _, part in modes]
    parts = [after_strided(mode, CuteLayout(extent, step)).flat for (mode, _), step in zip(modes, steps, strict=True)]
    if extent <= 1:
        return ((extent, sum([run[0][1] for run in parts])),)
    ends = _common_ends(parts)
    for low, high in pairwise(ends):
        if high % low:
            raise _clash(parts, low, high, extent, 1, where)
    digits = [(high // low, sum([evaluate(run, low) for run in parts])) for low, high in pairwise([*ends, extent])]
    return merge(tuple(digits))


def _by_table(modes: Modes, coordinates: CoordinateLayout, where: str) -> Cute:
    """Decide from the table: strides move several modes at once, so jumps may cancel."""
    size = coordinates.size
    if size > CUTE_POINTS:
        because = f"strides move several modes at once and the table has {size} entries; the limit is {CUTE_POINTS}"
        what = "whether the layout at these coordinates is a CuTe layout was not decided"
        raise BudgetError(Diagnostic("LA173", what, (where,), because))
    values = np.zeros(size, dtype=np.int64)
    for mode, part in modes:
        values = values + mode.apply(part.table())
    found = tabled(lambda: values, coordinates.shape)
    if found is None:
        because = "neither shape:stride nor a swizzle of one gives this function"
        what = "the layout at these coordinates is not a CuTe layout"
        raise RepresentabilityError(Diagnostic("LA172", what, (where,), because, source=WIDER))
    return found


def _mode(layout: CuteLayout, path: Path, where: str) -> CuteLayout:
    mode = layout
    for step in path:
        if isinstance(mode.shape, int) or step >= mode.rank:
            because = f"{layout} has no mode at E{shape_text(path)}"
            raise MalformedError(Diagnostic("LA171", "the coordinates do not fit the layout", (where,), because))
        mode = mode[step]
    return mode


def _common_ends(parts: list[Flat]) -> list[int]:
    """Return, sorted, 1 and the places where a digit of some part ends, excluding the whole extent."""
    ends = {1}
    for run in parts:
        done = 1
        for count, _ in merge(run)[:-1]:
            done *= count
            ends.add(done)
    return sorted(ends)


def _clash(parts: list[Flat], low: int, high: int, extent: int, step: int, where: str) -> RepresentabilityError:
    """Return the error for a run where one part ends a digit at ``low`` and another at ``high``."""
    witness: dict[str, object] = {"mode": f"{extent}:{step}", "ends": (low, high)}
    for index in range(low + 1, min(extent, max(high + 1, 4096))):
        inside = index % low
        actual = tuple([evaluate(run, index) for run in parts])
        added = tuple([evaluate(run, index - inside) + evaluate(run, inside) for run in parts])
        if actual != added:
            witness |= {"coordinate": index, "composition": actual, "layout": added}
            break
    because = (
        f"along the mode {extent}:{step} one component changes its step at index {low} and another at {high}, "
        f"which is not a multiple of {low}"
    )
    return RepresentabilityError(
        Diagnostic("LA172", "the composition is not a coordinate layout", (where,), because, witness)
    )
