"""Composition of every pair of CuTe layouts, swizzles, tilers and coordinate layouts: exact, or an error.

Main statements: R = composition(A, B) has R(c) = A(B(c)) on the whole domain of B, and each mode of B keeps its place
(possibly refined into a nested mode). B must stay inside the domain of A: implementations differ on what a layout does
past its end.

* Strided layouts: R exists if and only if every mode of B gives a strided run of A and A is additive over those runs;
  ``layoutalg.cute.factor`` decides both without enumerating the domain.
* Swizzled layouts: an operand that only rearranges the domain is composed with the layout at the bottom. Everything
  else is decided on the function itself: by one elimination over F2 if the size is a power of two, otherwise from the
  values, for at most 2**20 points.
* A coordinate layout is composed with an inner layout component by component. A mode becomes a digit list if and only
  if each component gives one and their digit boundaries form a divisibility chain; the modes add up if and only if they
  do in every component. L after X is the sum, over the leaves of the value of X, of a mode of L after a component of X:
  if each stride of X moves one leaf, that is a CuTe layout if and only if every part is; if a stride moves several
  leaves, the parts may cancel and a table decides.

References: J. Cecka, arXiv:2603.02298; CuTe ``composition``.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, overload

import numpy as np

from layoutalg.cute.coordinates import Basis, CoordinateLayout, Path
from layoutalg.cute.factor import PREFIX, Broken, GaveUpError, factor_run, first_carry
from layoutalg.cute.fit import affine_after, first_leaving, over_f2, simplify, swizzle_product, tabled
from layoutalg.cute.inttuple import INT_LIMIT, IntTuple, flatten, graft, shape_text, unflatten
from layoutalg.cute.layout import CuteLayout, from_runs
from layoutalg.cute.operands import (
    FAMILIES,
    WIDER,
    Tiler,
    cached,
    malformed_tiler,
    operand_refusal,
    read_tiler,
    require_cute,
    tiler_text,
    within,
)
from layoutalg.cute.swizzle import ComposedLayout, Cute, Stages, Swizzle, shift, staged
from layoutalg.ground.digits import Flat, evaluate, evaluate_many, first_outside, merge, span, table
from layoutalg.ground.errors import (
    AdmissibilityError,
    BudgetError,
    Diagnostic,
    LayoutError,
    MalformedError,
    RepresentabilityError,
)
from layoutalg.ground.layout import composes
from layoutalg.ground.limits import CUTE_POINTS

NOT_CUTE = "the composition is not a CuTe layout"
NOT_COORDINATES = "the composition is not a coordinate layout"
ONE_SWIZZLE = "the composition is not shape:stride under at most one swizzle"


def compose_strided(outer: CuteLayout, inner: CuteLayout) -> CuteLayout:
    """Return c -> outer(inner(c)) of strided layouts, or raise."""
    if inner.size == 0:
        return CuteLayout(inner.shape, unflatten((0,) * len(inner.flat), inner.shape))
    low, high = span(inner._flat)
    if low < 0 or high >= outer.size:
        raise _leaves_domain(outer, inner)
    merged = merge(outer._flat)
    runs: list[Flat] = []
    place = 1
    for position, (extent, step) in enumerate(inner._flat):
        if extent == 1:
            runs.append(((1, _stride_beyond(merged, step)),))
            continue
        try:
            run = factor_run(merged, step, extent)
        except GaveUpError as error:
            raise _gave_up(outer, inner, f"mode {extent}:{step} has more than {PREFIX} entries") from error
        if isinstance(run, Broken):
            because = f"mode {position} of the right operand, {extent}:{step}, is not strided there: {run.because}"
            witness = {"coordinate": run.index * place, "composition": run.actual, "layout": run.expected}
            where = _where(outer, inner)
            raise RepresentabilityError(Diagnostic("LA121", NOT_CUTE, where, because, witness, source=WIDER))
        runs.append(run)
        place *= extent
    if len(runs) > 1:
        _require_additive(outer, merged, inner, runs)
    return from_runs(runs, inner.shape)


after_strided = cached(compose_strided)
"""``compose_strided`` that keeps its last answers."""


def after_tiler(outer: CuteLayout, tiler: Tiler) -> CuteLayout:
    """Return ``outer`` after a tiler, a tuple mode by mode; None keeps the mode."""
    if tiler is None:
        return outer
    if not isinstance(tiler, tuple):
        return after_strided(outer, tiler if isinstance(tiler, CuteLayout) else CuteLayout(tiler, 1))
    if isinstance(outer.shape, int) or len(tiler) != outer.rank:
        modes = "an int shape" if isinstance(outer.shape, int) else f"{outer.rank} modes"
        because = f"a tuple needs one entry per mode of {outer}, which has {modes}; None keeps a mode"
        raise malformed_tiler(because, f"composition({outer}, {tiler_text(tiler)})")
    parts = [after_tiler(outer[position], entry) for position, entry in enumerate(tiler)]
    return CuteLayout(tuple([part.shape for part in parts]), tuple([part.stride for part in parts]))


def _where(outer: CuteLayout, inner: CuteLayout | ComposedLayout) -> tuple[str, ...]:
    return (f"composition({outer}, {inner})",)


def _stride_beyond(merged: Flat, step: int) -> int:
    """Return the stride printed for an extent-1 mode: A with its last mode continued; 0 if that overflows."""
    if not merged or step == 0:
        return 0
    value = evaluate(((*merged[:-1], (INT_LIMIT * 2, merged[-1][1]))), abs(step)) * (1 if step > 0 else -1)
    return value if -INT_LIMIT <= value < INT_LIMIT else 0


def _leaves_domain(outer: CuteLayout, inner: CuteLayout) -> AdmissibilityError:
    coordinate = first_outside(inner.flat, outer.size) or 0
    value = evaluate(inner.flat, coordinate)
    because = (
        f"the right operand has the value {value} at coordinate {coordinate}, "
        f"the left operand is defined on [0, {outer.size})"
    )
    witness = {"coordinate": coordinate, "value": value, "size": outer.size}
    what = "the right operand leaves the domain of the left operand"
    return AdmissibilityError(Diagnostic("LA120", what, _where(outer, inner), because, witness))


def _require_additive(outer: CuteLayout, merged: Flat, inner: CuteLayout, runs: list[Flat]) -> None:
    """Raise if A is not additive over the modes of B, with the first coordinate that the search can reach."""
    try:
        coordinate = first_carry(merged, inner.flat, runs)
    except GaveUpError as error:
        raise _gave_up(outer, inner, "carries between the modes may cancel") from error
    if coordinate is None:
        return
    flat = tuple([digit for run in runs for digit in run])
    if inner.size <= PREFIX:
        actual = evaluate_many(merged, table(inner.flat))
        coordinate = int((actual != table(flat)).argmax())
    because = (
        f"the modes of the right operand carry into each other in {outer}: "
        f"mode by mode one would get {_digits_text(flat)}, a different function"
    )
    witness = {
        "coordinate": coordinate,
        "composition": evaluate(merged, evaluate(inner.flat, coordinate)),
        "layout": evaluate(flat, coordinate),
    }
    where = _where(outer, inner)
    raise RepresentabilityError(Diagnostic("LA122", NOT_CUTE, where, because, witness, source=WIDER))


def _digits_text(flat: Flat) -> str:
    return f"{shape_text(tuple([extent for extent, _ in flat]))}:{shape_text(tuple([stride for _, stride in flat]))}"


def _gave_up(outer: CuteLayout, inner: CuteLayout | ComposedLayout, because: str) -> BudgetError:
    what = "whether the composition is a CuTe layout was not decided"
    because = f"{because}, and the limit is {PREFIX} points"
    return BudgetError(Diagnostic("LA125", what, _where(outer, inner), because))


def coordinates_after(coordinates: CoordinateLayout, inner: Cute) -> CoordinateLayout:
    """Return ``coordinates`` after ``inner``, also written ``coordinates @ inner``."""
    where = f"composition({coordinates}, {inner})"
    inner = simplify(inner)
    if isinstance(inner, ComposedLayout):
        because = f"{inner} cannot be written without swizzle and offset"
        raise RepresentabilityError(Diagnostic("LA172", NOT_COORDINATES, (where,), because))
    paths = [path for path, _ in coordinates.components]
    parts = [part for _, part in coordinates.components]
    if not parts:
        CuteLayout(coordinates.shape).apply(np.asarray(span(inner.flat) if inner.size else [], dtype=np.int64))
    for path, part in coordinates.components:
        try:
            after_strided(part, inner)
        except RepresentabilityError as error:
            old = error.diagnostic
            because = f"in component E{shape_text(path)}, {old.because}"
            seen = Diagnostic("LA172", NOT_COORDINATES, (where, *old.where), because, old.witness)
            raise RepresentabilityError(seen) from error
        except LayoutError as error:
            raise within(error, where) from error
    shapes: list[IntTuple] = []
    strides: list[Any] = []
    for extent, step in inner.flat:
        rows = [after_strided(part, CuteLayout(extent, step if inner.size else 0)).flat for part in parts]
        run = [
            (count, Basis(tuple(zip(paths, steps, strict=True))))
            for count, steps in _common_digits(rows, extent, f"{extent}:{step if inner.size else 0}", where)
        ]
        shapes.append(run[0][0] if len(run) == 1 else tuple([count for count, _ in run]))
        strides.append(run[0][1] if len(run) == 1 else tuple([stride for _, stride in run]))
    return CoordinateLayout(graft(iter(shapes), inner.shape), graft(iter(strides), inner.shape), coordinates.profile)


def at_coordinates(layout: Cute, coordinates: CoordinateLayout) -> Cute:
    """Return ``layout`` read at the coordinates that ``coordinates`` gives, also written ``layout @ coordinates``.

    Mathematically: R with R(c) = layout(coordinates(c)). Each path of the coordinates names a mode of the layout, which
    reads the value as its 1-D coordinate; modes without a path are read at 0.
    """
    if isinstance(layout, ComposedLayout):
        return staged(layout.stages, at_coordinates(layout.base, coordinates))
    where = f"composition({layout}, {coordinates})"
    modes = [(_mode(layout, path, where), part) for path, part in coordinates.components]
    runs: list[Flat] = []
    try:
        for mode, part in modes:
            after_strided(mode, part)
        for position, extent in enumerate(flatten(coordinates.shape)):
            steps = [0 if part.size == 0 else part.flat[position][1] for _, part in modes]
            rows = [
                after_strided(mode, CuteLayout(extent, step)).flat for (mode, _), step in zip(modes, steps, strict=True)
            ]
            digits = [(count, sum(strides)) for count, strides in _common_digits(rows, extent, f"{extent}:1", where)]
            runs.append(merge(tuple(digits)) if extent > 1 else tuple(digits))
    except RepresentabilityError as error:
        if all(len(entry.terms) < 2 for _, entry in coordinates.flat):
            raise within(error, where) from error
        return _by_table(modes, coordinates, where)  # parts may cancel across modes
    except LayoutError as error:
        raise within(error, where) from error
    return from_runs(runs, coordinates.shape)


def _by_table(modes: list[tuple[CuteLayout, CuteLayout]], coordinates: CoordinateLayout, where: str) -> Cute:
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


def _common_digits(rows: list[Flat], extent: int, mode: str, where: str) -> list[tuple[int, list[int]]]:
    """Return the digits that all parts of a mode have in common, each with the stride of every part, or raise."""
    if extent <= 1:
        return [(extent, [row[0][1] for row in rows])]
    ends = {1, extent}  # where a digit of some part ends
    for row in rows:
        done = 1
        for count, _ in merge(row)[:-1]:
            done *= count
            ends.add(done)
    bounds = sorted(ends)
    for low, high in pairwise(bounds[:-1]):
        if high % low:
            raise _clash(rows, low, high, extent, mode, where)
    return [(high // low, [evaluate(row, low) for row in rows]) for low, high in pairwise(bounds)]


def _clash(rows: list[Flat], low: int, high: int, extent: int, mode: str, where: str) -> RepresentabilityError:
    """Return the error for a mode where one part ends a digit at ``low`` and another at ``high``."""
    witness: dict[str, object] = {"mode": mode, "ends": (low, high)}
    for index in range(low + 1, min(extent, max(high + 1, 4096))):
        inside = index % low
        actual = tuple([evaluate(row, index) for row in rows])
        added = tuple([evaluate(row, index - inside) + evaluate(row, inside) for row in rows])
        if actual != added:
            witness |= {"coordinate": index, "composition": actual, "layout": added}
            break
    because = (
        f"along the mode {mode} one component changes its step at index {low} and another at {high}, "
        f"which is not a multiple of {low}"
    )
    return RepresentabilityError(Diagnostic("LA172", NOT_COORDINATES, (where,), because, witness))


@overload
def composition(outer: CuteLayout, inner: Tiler) -> CuteLayout: ...
@overload
def composition(outer: CuteLayout, inner: ComposedLayout | CoordinateLayout | Swizzle) -> Cute: ...
@overload
def composition(
    outer: ComposedLayout, inner: Tiler | ComposedLayout | CoordinateLayout | Swizzle
) -> ComposedLayout: ...
@overload
def composition(outer: CoordinateLayout, inner: Cute) -> CoordinateLayout: ...
@overload
def composition(outer: Swizzle, inner: Cute) -> ComposedLayout: ...
@overload
def composition(outer: Swizzle, inner: Swizzle) -> Swizzle: ...
def composition(outer: Any, inner: Any) -> Any:
    """Return ``outer`` after ``inner``: the layout c -> outer(inner(c)).

    Mathematically: R with R(c) = outer(inner(c)) for every coordinate c of ``inner``; the shape of R refines the shape
    of ``inner`` mode by mode.

    Args:
        outer: A layout, a composed or a coordinate layout, or a swizzle.
        inner: A layout; an int n, meaning ``n:1``; a tuple with one such entry per mode of ``outer``, applied mode
            by mode, where None keeps the mode; a swizzle, which permutes the 1-D coordinates of ``outer``; or a
            coordinate layout, at whose values ``outer`` is read. Offsets of ``inner`` are 1-D coordinates.

    Returns:
        The composition, each mode with the fewest digits. A layout after a swizzled one, or after a swizzle, has at
        most one swizzle over ``shape:stride``. A swizzle after a swizzle is a swizzle.

    Raises:
        AdmissibilityError: ``inner`` leaves the domain. RepresentabilityError: no CuTe layout is that function.
        BudgetError: undecided. MalformedError: operands that do not fit.

    Complexity: O(k^2 log) for k modes, independent of the sizes unless carries may cancel.

    Example:
        >>> print(composition(CuteLayout((6, 8), (1, 10)), CuteLayout(2, 4)))
        2:4
        >>> print(composition(CuteLayout((8, 4, 2)), (4, None, 2)))
        (4,4,2):(1,8,32)

    Laws: associative where both sides exist; the identity layout of A's domain is neutral.
    """
    if type(outer) is CuteLayout and type(inner) is CuteLayout:
        return after_strided(outer, inner)
    match outer, inner:
        case CoordinateLayout(), _:
            return coordinates_after(outer, require_cute(inner, "composition", "inner"))
        case Swizzle(), Swizzle():
            return _swizzle_after_swizzle(outer, inner)
        case Swizzle(), _:
            return ComposedLayout(outer, 0, require_cute(inner, "composition", "inner"))
        case ((CuteLayout() | ComposedLayout()), Swizzle()):
            return _after_swizzle(outer, inner)
        case ((CuteLayout() | ComposedLayout()), CoordinateLayout()):
            return at_coordinates(outer, inner)
        case CuteLayout(), ComposedLayout():
            return _after_composed(outer, inner)
        case ComposedLayout(), ComposedLayout():
            return _under_stages(outer, inner)
        case ((CuteLayout() | ComposedLayout()), _):
            tiler = read_tiler(inner, lambda: f"composition({outer}, {tiler_text(inner)})")
            return _under_stages(outer, tiler) if isinstance(outer, ComposedLayout) else after_tiler(outer, tiler)
    raise operand_refusal(outer, "composition", "outer", f"{FAMILIES} or a Swizzle")


for _outer in (CuteLayout, ComposedLayout):
    for _inner in (CuteLayout, ComposedLayout, CoordinateLayout, Swizzle):
        composes(_outer, _inner)(composition)
for _inner in (CuteLayout, ComposedLayout):
    composes(CoordinateLayout, _inner)(composition)
for _inner in (CuteLayout, ComposedLayout, Swizzle):
    composes(Swizzle, _inner)(composition)


def _under_stages(outer: ComposedLayout, inner: Tiler | ComposedLayout) -> ComposedLayout:
    """Return a composed layout after a layout: compose at the bottom, or failing that find the whole function."""
    try:
        if isinstance(inner, ComposedLayout):
            below: Cute = _after_composed(outer.base, inner)
        else:
            below = after_tiler(outer.base, inner)
    except (RepresentabilityError, BudgetError) as refusal:
        # The bottom alone has no form; the whole function may have one.
        whole = inner if isinstance(inner, ComposedLayout) else after_tiler(CuteLayout(outer.shape), inner)
        try:
            return _composed((), after(outer, whole))
        except (RepresentabilityError, BudgetError):
            raise refusal from None
    return _composed(outer.stages, below)


def _composed(stages: Stages, inner: Cute) -> ComposedLayout:
    found = staged(stages, inner)
    return found if isinstance(found, ComposedLayout) else shift(found, 0)


def _after_composed(outer: CuteLayout, inner: ComposedLayout) -> Cute:
    """Return ``outer`` after a swizzled layout: move the stages outside, or failing that find the whole function."""
    try:
        return _scaled(outer, inner)
    except (RepresentabilityError, BudgetError) as refusal:
        try:
            return after(outer, inner)
        except BudgetError:
            if isinstance(refusal, BudgetError):
                raise refusal from None
            raise
        except RepresentabilityError:
            raise refusal from None


def _scaled(outer: CuteLayout, inner: ComposedLayout) -> ComposedLayout:
    """Return ``outer`` after a composed layout if ``outer`` multiplies (under a swizzle: by a power of two)."""
    require_inside(outer, inner, _where(outer, inner)[0])
    high = inner.value_range()[1]
    merged = merge(outer.flat)
    try:
        run = factor_run(merged, 1, high + 1)  # only the values taken matter
    except GaveUpError as error:
        raise _gave_up(outer, inner, f"the values run up to {high}") from error
    factor = 0
    if not isinstance(run, Broken) and len(run) < 2:
        factor = run[0][1] if run else 1  # an empty run: 0 is the only value
    if factor <= 0 or (factor & (factor - 1) and inner.period > 1):
        because = (
            f"the left operand, {_digits_text(merged)} in normal form, is not multiplication by a power of two "
            f"on the values 0 to {high} of the right operand, and no other swizzle fits"
        )
        raise RepresentabilityError(Diagnostic("LA124", ONE_SWIZZLE, _where(outer, inner), because, source=WIDER))
    low = factor.bit_length() - 1
    scaled = unflatten(tuple([stride * factor for _, stride in inner.base.flat]), inner.shape)
    stages = [(swizzle.raised(low), offset * factor) for swizzle, offset in inner.stages]
    return _composed(tuple(stages), CuteLayout(inner.shape, scaled))


def after(outer: Cute, inner: Cute, where: str | None = None) -> Cute:
    """Return c -> outer(inner(c)) on the shape of ``inner`` in CuTe form, decided on the function itself."""
    call = where or f"composition({outer}, {inner})"
    if inner.size == 0:
        return CuteLayout(inner.shape, unflatten((0,) * len(flatten(inner.shape)), inner.shape))
    require_inside(outer, inner, call)
    form = affine_after(outer, inner)
    if form is not None:
        found = over_f2(*form, inner.shape)
    elif inner.size <= CUTE_POINTS:
        found = tabled(lambda: outer.apply(inner.table()), inner.shape)
    else:
        because = f"the function is not affine over F2 digit by digit and has {inner.size} points; the limit is"
        what = "whether the composition has a CuTe form was not decided"
        raise BudgetError(Diagnostic("LA644", what, (call,), f"{because} {CUTE_POINTS}"))
    if found is None:
        because = "undoing a swizzle never gives a strided layout on the shape of the right operand"
        raise RepresentabilityError(Diagnostic("LA643", ONE_SWIZZLE, (call,), because, source=WIDER))
    return found


def require_inside(outer: Cute, inner: Cute, where: str) -> None:
    """Raise if the inner layout has a value outside the domain of the outer one."""
    if inner.size == 0:
        return
    low, high = inner.value_range() if isinstance(inner, ComposedLayout) else span(inner.flat)
    if low < 0 or high >= outer.size:
        because = (
            f"the right operand takes values from {low} to {high}, the left operand is defined on [0, {outer.size})"
        )
        raise AdmissibilityError(
            Diagnostic("LA120", "the right operand leaves the domain of the left operand", (where,), because)
        )


def _swizzle_after_swizzle(outer: Swizzle, inner: Swizzle) -> Swizzle:
    where = f"composition({outer}, {inner})"
    if outer.unit != inner.unit:
        because = f"one counts {outer.unit}s, the other {inner.unit}s; see recast_elements and recast_bytes"
        raise AdmissibilityError(Diagnostic("LA642", "the swizzles act on different units", (where,), because))
    found = swizzle_product(outer, inner)
    if found is not None:
        return found
    reach = max(outer.period, inner.period).bit_length() - 1
    bit = next(position for position in range(reach - 1, -1, -1) if outer(inner(1 << position)) != 1 << position)
    because = "its off-diagonal part is not one run of bits on one diagonal"
    witness = {"x": 1 << bit, "value": outer(inner(1 << bit))}
    raise RepresentabilityError(
        Diagnostic("LA640", "the product of the swizzles is not a swizzle", (where,), because, witness, source=WIDER)
    )


def _after_swizzle(outer: Cute, inner: Swizzle) -> Cute:
    """Return the layout x -> outer(inner(x)) on the flat coordinates of ``outer``, with its shape."""
    where = f"composition({outer}, {inner})"
    if inner.unit == "byte":
        what = "a swizzle of byte addresses does not permute coordinates"
        raise AdmissibilityError(Diagnostic("LA642", what, (where,), "coordinates count elements"))
    leaving = first_leaving(inner, outer.size, outer.size)
    if leaving is not None:
        because = f"{inner} maps coordinate {leaving} to {inner(leaving)}, the layout has {outer.size} points"
        witness = {"coordinate": leaving, "value": inner(leaving), "size": outer.size}
        raise AdmissibilityError(
            Diagnostic("LA641", "the swizzle maps out of the domain of the layout", (where,), because, witness)
        )
    if inner.bits == 0 or outer.size == 0:
        return outer
    try:
        found = after(outer, ComposedLayout(inner, 0, CuteLayout(outer.shape)), where)
        return found if isinstance(outer, CuteLayout) else _composed((), found)
    except (RepresentabilityError, BudgetError):
        if isinstance(outer, CuteLayout):
            raise
    return _composed(outer.stages, _after_swizzle(outer.base, inner))  # a stack, but exact
