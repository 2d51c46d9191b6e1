"""Composition of CuTe layouts, exact or refused.

Main definitions: ``composition``.

Main statements: R = composition(A, B) has R(c) = A(B(c)) on the whole domain of B, and each mode of B keeps its place
(it may be refined into a nested mode). Such an R exists if and only if every mode of B alone gives a strided run of A
and A adds up over those runs; ``layoutalg.cute.factor`` decides both without enumerating the domain.

Implementation notes: B must stay inside the domain of A. What a layout does past its end is a convention that differs
between implementations, so it is not used.

References: J. Cecka, arXiv:2603.02298; CuTe ``composition``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias, overload

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.conventions import STRICT, Parity, check_parity
from layoutalg.cute.factor import PREFIX, Broken, GaveUpError, factor_run, first_interaction
from layoutalg.cute.inttuple import INT_LIMIT, IntTuple, flatten, integer, shape_text, unflatten
from layoutalg.cute.layout import CuteLayout, trusted
from layoutalg.cute.operand import NARROW, RECENT, WIDER, weight
from layoutalg.cute.swizzle import Swizzle
from layoutalg.ground.cache import remembered
from layoutalg.ground.digits import Flat, evaluate, evaluate_many, first_outside, merge, span, table
from layoutalg.ground.errors import (
    AdmissibilityError,
    BudgetError,
    Diagnostic,
    MalformedError,
    RepresentabilityError,
    shown,
)

Tiler: TypeAlias = "CuteLayout | int | tuple[Tiler, ...] | None"


@overload
def composition(outer: CuteLayout, inner: Tiler, parity: Parity = "strict") -> CuteLayout: ...
@overload
def composition(
    outer: CuteLayout, inner: ComposedLayout | Swizzle, parity: Parity = "strict"
) -> CuteLayout | ComposedLayout: ...
@overload
def composition(
    outer: ComposedLayout, inner: Tiler | ComposedLayout | Swizzle, parity: Parity = "strict"
) -> ComposedLayout: ...
@overload
def composition(outer: Swizzle, inner: CuteLayout | ComposedLayout, parity: Parity = "strict") -> ComposedLayout: ...
@overload
def composition(outer: Swizzle, inner: Swizzle, parity: Parity = "strict") -> Swizzle: ...
def composition(
    outer: CuteLayout | ComposedLayout | Swizzle,
    inner: Tiler | ComposedLayout | Swizzle,
    parity: Parity = "strict",
) -> CuteLayout | ComposedLayout | Swizzle:
    """Return ``outer`` after ``inner``: the layout c -> outer(inner(c)).

    Mathematically: R with R(c) = outer(inner(c)) for every coordinate c of ``inner``; the shape of R refines the shape
    of ``inner`` mode by mode.

    Args:
        outer: A layout, a composed layout or a swizzle.
        inner: A layout; an int n, meaning ``n:1``; a tuple with one such entry per mode of ``outer``, applied mode
            by mode, where None leaves the mode as it is; or a swizzle, which permutes the 1-D coordinates of ``outer``.
            Offsets of ``inner`` are 1-D coordinates of ``outer``.
        parity: ``"strict"`` is the function. ``"cute_cpp"`` and ``"pycute"`` factor each mode of ``inner`` on its own,
            continue the last mode of ``outer`` past its end and never check the function; of a tuple with too few
            entries C++ drops the modes left over and pycute keeps them (``composition_as``). Between swizzles there is
            no such difference.

    Returns:
        The composition; each mode in the least number of digits. A layout after a swizzled one, or after a swizzle, is
        at most one swizzle over ``shape:stride``. A swizzle after a swizzle is a swizzle.

    Raises:
        MalformedError: LA123, LA144. AdmissibilityError: LA120. RepresentabilityError: LA121, LA122, LA124, LA643,
        LA640. BudgetError: LA125, LA644.

    Complexity: O(k^2 log) for k modes, independent of the sizes, except where carries may cancel.

    Example:
        >>> print(composition(CuteLayout((6, 8), (1, 10)), CuteLayout(2, 4)))
        2:4
        >>> print(composition(CuteLayout((4, 8), (1, 5)), CuteLayout((2, 8), (16, 2))))
        (2,(2,4)):(20,(2,5))
        >>> print(composition(CuteLayout((8, 4, 2)), (4, None, 2)))
        (4,4,2):(1,8,32)
        >>> print(composition(CuteLayout((6, 4), (1, 10)), CuteLayout(8, 6), "cute_cpp"))
        8:10

    Laws: associativity where both sides exist; the identity layout of A's domain is neutral.
    Source: CuTe ``composition``; arXiv:2603.02298.
    """
    if (
        parity is not STRICT
        and check_parity(parity) != "strict"
        and isinstance(outer, CuteLayout | ComposedLayout)
        and not isinstance(inner, ComposedLayout | Swizzle)
    ):
        from layoutalg.cute.parity import composition_as

        if isinstance(outer, CuteLayout):
            return composition_as(outer, inner, parity)
        return outer.rebase(composition_as(outer.base, inner, parity))
    if type(outer) is CuteLayout and type(inner) is CuteLayout:
        if len(outer._flat) <= NARROW and len(inner._flat) <= NARROW:
            return _compose(outer, inner)
        return _compose_wide(outer, inner)
    if isinstance(inner, Swizzle) and isinstance(outer, Swizzle | CuteLayout | ComposedLayout):
        from layoutalg.cute import swizzled

        if isinstance(outer, Swizzle):
            return swizzled.swizzle_after_swizzle(outer, inner)
        return swizzled.layout_after_swizzle(outer, inner)
    if isinstance(outer, Swizzle) and isinstance(inner, CuteLayout | ComposedLayout):
        return ComposedLayout(outer, 0, inner)
    if isinstance(outer, ComposedLayout):
        return _under_swizzles(outer, inner)
    if not isinstance(outer, CuteLayout):
        raise _malformed_tiler("the outer operand must be a layout", outer)
    if isinstance(inner, ComposedLayout):
        return _after_swizzled(outer, inner)
    return _compose_tiler(outer, inner)


def _under_swizzles(outer: ComposedLayout, inner: Tiler | ComposedLayout) -> ComposedLayout:
    """Return a composed layout after a layout: composed at the bottom, or where that fails found as a whole."""
    from layoutalg.cute import swizzled

    try:
        if not isinstance(inner, ComposedLayout):
            return outer.rebase(_compose_tiler(outer.base, inner))
        return swizzled.restack(outer, _after_swizzled(outer.base, inner))
    except (RepresentabilityError, BudgetError) as refusal:
        # The bottom alone has no form; the swizzles above may still mend it.
        whole = inner if isinstance(inner, ComposedLayout) else _one_layout(outer.base, inner)
        try:
            found = swizzled.after(outer, whole)
        except (RepresentabilityError, BudgetError):
            raise refusal from None
        return found if isinstance(found, ComposedLayout) else ComposedLayout(Swizzle(0, 0, 0), 0, found)


def _one_layout(outer: CuteLayout, tiler: Tiler) -> CuteLayout:
    """Return a valid tiler as one layout into the 1-D coordinates of ``outer``."""
    return _compose_tiler(CuteLayout(outer.shape), tiler)


def _compose_tiler(outer: CuteLayout, tiler: Tiler) -> CuteLayout:
    if isinstance(tiler, CuteLayout):
        return _composed(outer, tiler)
    if tiler is None:
        return outer
    if isinstance(tiler, tuple):
        if isinstance(outer.shape, int) or len(tiler) != outer.rank:
            raise _malformed_tiler(
                f"a tuple needs one entry per mode of {outer}, which has "
                f"{'no tuple of modes' if isinstance(outer.shape, int) else f'{outer.rank} modes'}; "
                "None leaves a mode as it is",
                tiler,
            )
        modes = [_compose_tiler(outer[position], entry) for position, entry in enumerate(tiler)]
        return CuteLayout(tuple([mode.shape for mode in modes]), tuple([mode.stride for mode in modes]))
    if isinstance(tiler, bool) or not hasattr(tiler, "__index__"):
        raise _malformed_tiler("a tiler is a layout, an integer, None or a tuple of tilers", tiler)
    return _composed(outer, CuteLayout(integer(tiler, "tiler", "LA123"), 1))


def _malformed_tiler(rule: str, actual: object) -> MalformedError:
    hint = "; layoutalg.parse reads text" if isinstance(actual, str) else ""
    because = f"{rule}; got {shown(actual)}{hint}"
    return MalformedError(Diagnostic(code="LA123", what="the tiler is malformed", because=because))


def _where(outer: CuteLayout, inner: CuteLayout | ComposedLayout) -> tuple[str, ...]:
    return (f"composition({outer}, {inner})",)


def _composed(outer: CuteLayout, inner: CuteLayout) -> CuteLayout:
    narrow = len(outer._flat) <= NARROW and len(inner._flat) <= NARROW
    return _compose(outer, inner) if narrow else _compose_wide(outer, inner)


@lru_cache(RECENT)
def _compose(outer: CuteLayout, inner: CuteLayout) -> CuteLayout:
    if inner.size == 0:
        zeros = tuple([0] * len(inner.flat))
        return CuteLayout(inner.shape, unflatten(zeros, inner.shape))
    low, high = span(inner.flat)
    if low < 0 or high >= outer.size:
        raise _leaves(outer, inner)
    merged = merge(outer.flat)
    runs: list[Flat] = []
    place = 1
    for position, (extent, step) in enumerate(inner.flat):
        if extent == 1:
            runs.append(((1, _beyond(merged, step)),))
            continue
        try:
            run = factor_run(merged, step, extent)
        except GaveUpError as error:
            raise _gave_up(outer, inner, f"mode {extent}:{step} has more than {PREFIX} entries") from error
        if isinstance(run, Broken):
            raise RepresentabilityError(
                Diagnostic(
                    code="LA121",
                    what="the composition is not a CuTe layout",
                    where=_where(outer, inner),
                    because=f"mode {position} of the right operand, {extent}:{step}, gives no strided mode: "
                    f"{run.because}",
                    witness={"coordinate": run.index * place, "composition": run.actual, "layout": run.expected},
                    source=WIDER,
                )
            )
        runs.append(run)
        place *= extent
    if len(runs) > 1:
        _require_additive(outer, merged, inner, runs)
    leaves_shape: list[IntTuple] = []
    leaves_stride: list[IntTuple] = []
    for run in runs:
        if len(run) == 1:
            leaves_shape.append(run[0][0])
            leaves_stride.append(run[0][1])
        else:
            leaves_shape.append(tuple([extent for extent, _ in run]))
            leaves_stride.append(tuple([stride for _, stride in run]))
    flat = tuple([digit for run in runs for digit in run])
    return trusted(_graft(inner.shape, leaves_shape), _graft(inner.shape, leaves_stride), flat)


_compose_wide = remembered(weight)(_compose.__wrapped__)


def _graft(profile: IntTuple, leaves: list[IntTuple]) -> IntTuple:
    """Return ``profile`` with its leaves replaced from left to right; consumes nothing from ``leaves``."""
    if isinstance(profile, int):
        return leaves[0]
    parts: list[IntTuple] = []
    used = 0
    for entry in profile:
        count = 1 if isinstance(entry, int) else len(flatten(entry))
        parts.append(_graft(entry, leaves[used : used + count]))
        used += count
    return tuple(parts)


def _beyond(merged: Flat, step: int) -> int:
    """Return the stride shown for a mode of extent 1: the last mode of A is continued; 0 where that overflows."""
    if not merged or step == 0:
        return 0
    value = evaluate(((*merged[:-1], (INT_LIMIT * 2, merged[-1][1]))), abs(step)) * (1 if step > 0 else -1)
    return value if -INT_LIMIT <= value < INT_LIMIT else 0


def _leaves(outer: CuteLayout, inner: CuteLayout) -> AdmissibilityError:
    first = first_outside(inner.flat, outer.size)
    coordinate = 0 if first is None else first
    value = evaluate(inner.flat, coordinate)
    return AdmissibilityError(
        Diagnostic(
            code="LA120",
            what="the right operand leaves the domain of the left operand",
            where=_where(outer, inner),
            because=f"the right operand has the value {value} at coordinate {coordinate}, "
            f"the left operand is defined on [0, {outer.size})",
            witness={"coordinate": coordinate, "value": value, "size": outer.size},
        )
    )


def _require_additive(outer: CuteLayout, merged: Flat, inner: CuteLayout, runs: list[Flat]) -> None:
    """Refuse where A does not add up over the modes of B, naming the first coordinate the search can reach."""
    digits: list[tuple[int, int]] = []
    weights: list[int] = []  # 1-D coordinate weight in B of each digit
    place = 1
    for (extent, step), run in zip(inner.flat, runs, strict=True):
        inside = 1
        for count, _ in run if extent > 1 else ():
            digits.append((count, step * inside))
            weights.append(place * inside)
            inside *= count
        place *= extent
    if len(digits) < 2:
        return
    try:
        found = first_interaction(merged, tuple(digits))
    except GaveUpError as error:
        raise _gave_up(outer, inner, "carries between the modes may cancel") from error
    if found is None:
        return
    flat = tuple([digit for run in runs for digit in run])
    coordinate = sum([value * weight for value, weight in zip(found, weights, strict=True)])
    if inner.size <= PREFIX:
        actual = evaluate_many(merged, table(inner.flat))
        coordinate = int((actual != table(flat)).argmax())
    raise RepresentabilityError(
        Diagnostic(
            code="LA122",
            what="the composition is not a CuTe layout",
            where=_where(outer, inner),
            because=f"the modes of the right operand carry into each other in {outer}: "
            f"mode by mode one would get {_joined(flat)}, which is another function",
            witness={
                "coordinate": coordinate,
                "composition": evaluate(merged, evaluate(inner.flat, coordinate)),
                "layout": evaluate(flat, coordinate),
            },
            source=WIDER,
        )
    )


def _joined(flat: Flat) -> str:
    return f"{shape_text(tuple([extent for extent, _ in flat]))}:{shape_text(tuple([stride for _, stride in flat]))}"


def _gave_up(outer: CuteLayout, inner: CuteLayout | ComposedLayout, because: str) -> BudgetError:
    return BudgetError(
        Diagnostic(
            code="LA125",
            what="whether the composition is a CuTe layout was not decided",
            where=_where(outer, inner),
            because=f"{because}, and the limit is {PREFIX} points",
        )
    )


def _after_swizzled(outer: CuteLayout, inner: ComposedLayout) -> CuteLayout | ComposedLayout:
    """Return ``outer`` after a swizzled layout: by moving the swizzle outside, or found as a whole."""
    from layoutalg.cute import swizzled

    try:
        return _scale(outer, inner)
    except (RepresentabilityError, BudgetError) as refusal:
        try:
            return swizzled.after(outer, inner)
        except BudgetError:
            if isinstance(refusal, BudgetError):
                raise refusal from None
            raise
        except RepresentabilityError:
            raise refusal from None


def _scale(outer: CuteLayout, inner: ComposedLayout) -> ComposedLayout:
    """Return ``outer`` after a swizzled layout where ``outer`` only multiplies by a power of two."""
    values = inner.value_range()
    if inner.size and (values[0] < 0 or values[1] >= outer.size):
        raise AdmissibilityError(
            Diagnostic(
                code="LA120",
                what="the right operand leaves the domain of the left operand",
                where=_where(outer, inner),
                because=f"the right operand takes values from {values[0]} to {values[1]}, "
                f"the left operand is defined on [0, {outer.size})",
            )
        )
    merged = merge(outer.flat)
    try:
        run = factor_run(merged, 1, values[1] + 1)  # only the values taken matter
    except GaveUpError as error:
        raise _gave_up(outer, inner, f"the values run up to {values[1]}") from error
    factor = 0
    if not isinstance(run, Broken) and len(run) < 2:
        factor = run[0][1] if run else 1  # an empty run: 0 is the only value
    if factor <= 0 or factor & (factor - 1):
        raise RepresentabilityError(
            Diagnostic(
                code="LA124",
                what="the composition is not shape:stride behind at most one swizzle",
                where=_where(outer, inner),
                because=f"the left operand, {_joined(merged)} in normal form, is no multiplication by a power of two "
                f"on the values 0 to {values[1]} of the right operand, and no other swizzle fits",
                source=WIDER,
            )
        )
    shift = factor.bit_length() - 1
    base = inner.base
    scaled = tuple([stride * factor for _, stride in base.flat])
    (last, offset), *rest = reversed([(_shifted(swizzle, shift), offset * factor) for swizzle, offset in inner.stages])
    answer = ComposedLayout(last, offset, CuteLayout(base.shape, unflatten(scaled, base.shape)))
    for swizzle, offset in rest:
        answer = ComposedLayout(swizzle, offset, answer)
    return answer


def _shifted(swizzle: Swizzle, shift: int) -> Swizzle:
    return Swizzle(swizzle.bits, swizzle.base + shift, swizzle.shift)
