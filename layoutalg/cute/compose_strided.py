"""Composition of CuTe layouts with CuTe layouts and tilers: exact, or an error.

Main statements: R with R(c) = A(B(c)) on the whole domain of B, each mode of B in its place (possibly refined), exists
if and only if every mode of B gives a strided run of A and A is additive over those runs; ``layoutalg.cute.factor``
decides both without enumerating the domain.

B must stay inside the domain of A: implementations differ on what a layout does past its end.

References: J. Cecka, arXiv:2603.02298; CuTe ``composition``.
"""

from __future__ import annotations

from functools import lru_cache

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.factor import PREFIX, Broken, GaveUpError, factor_run, first_interaction
from layoutalg.cute.inttuple import INT_LIMIT, shape_text, unflatten
from layoutalg.cute.layout import CuteLayout, from_runs
from layoutalg.cute.operands import NARROW, RECENT, WIDER, Tiler, malformed_tiler, tiler_text, weight
from layoutalg.ground.cache import remembered
from layoutalg.ground.digits import Flat, evaluate, evaluate_many, first_outside, merge, span, table
from layoutalg.ground.errors import (
    AdmissibilityError,
    BudgetError,
    Diagnostic,
    RepresentabilityError,
)


def after_strided(outer: CuteLayout, inner: CuteLayout) -> CuteLayout:
    """Return c -> outer(inner(c)).

    Example:
        >>> print(after_strided(CuteLayout((4, 8), (1, 5)), CuteLayout((2, 8), (16, 2))))
        (2,(2,4)):(20,(2,5))
    """
    narrow = len(outer._flat) <= NARROW and len(inner._flat) <= NARROW
    return after_narrow(outer, inner) if narrow else after_wide(outer, inner)


def after_tiler(outer: CuteLayout, tiler: Tiler) -> CuteLayout:
    """Return ``outer`` after a tiler, a tuple mode by mode; None keeps the mode.

    Example:
        >>> print(after_tiler(CuteLayout((8, 4, 2)), (4, None, 2)))
        (4,4,2):(1,8,32)
    """
    if isinstance(tiler, CuteLayout):
        return after_strided(outer, tiler)
    if tiler is None:
        return outer
    if isinstance(tiler, tuple):
        if isinstance(outer.shape, int) or len(tiler) != outer.rank:
            modes = "an int shape" if isinstance(outer.shape, int) else f"{outer.rank} modes"
            because = f"a tuple needs one entry per mode of {outer}, which has {modes}; None keeps a mode"
            raise malformed_tiler(because, f"composition({outer}, {tiler_text(tiler)})")
        parts = [after_tiler(outer[position], entry) for position, entry in enumerate(tiler)]
        return CuteLayout(tuple([part.shape for part in parts]), tuple([part.stride for part in parts]))
    return after_strided(outer, CuteLayout(tiler, 1))


def where_of(outer: CuteLayout, inner: CuteLayout | ComposedLayout) -> tuple[str, ...]:
    """Return the call, for messages."""
    return (f"composition({outer}, {inner})",)


@lru_cache(RECENT)
def after_narrow(outer: CuteLayout, inner: CuteLayout) -> CuteLayout:
    """``after_strided`` for layouts of at most ``NARROW`` modes."""
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
            raise gave_up(outer, inner, f"mode {extent}:{step} has more than {PREFIX} entries") from error
        if isinstance(run, Broken):
            because = f"mode {position} of the right operand, {extent}:{step}, is not strided there: {run.because}"
            witness = {"coordinate": run.index * place, "composition": run.actual, "layout": run.expected}
            raise RepresentabilityError(
                Diagnostic(
                    "LA121",
                    "the composition is not a CuTe layout",
                    where_of(outer, inner),
                    because,
                    witness,
                    source=WIDER,
                )
            )
        runs.append(run)
        place *= extent
    if len(runs) > 1:
        _require_additive(outer, merged, inner, runs)
    return from_runs(runs, inner.shape)


after_wide = remembered(weight)(after_narrow.__wrapped__)


def _beyond(merged: Flat, step: int) -> int:
    """Return the stride printed for an extent-1 mode: A with its last mode continued; 0 if that overflows."""
    if not merged or step == 0:
        return 0
    value = evaluate(((*merged[:-1], (INT_LIMIT * 2, merged[-1][1]))), abs(step)) * (1 if step > 0 else -1)
    return value if -INT_LIMIT <= value < INT_LIMIT else 0


def _leaves(outer: CuteLayout, inner: CuteLayout) -> AdmissibilityError:
    first = first_outside(inner.flat, outer.size)
    coordinate = 0 if first is None else first
    value = evaluate(inner.flat, coordinate)
    because = (
        f"the right operand has the value {value} at coordinate {coordinate}, "
        f"the left operand is defined on [0, {outer.size})"
    )
    witness = {"coordinate": coordinate, "value": value, "size": outer.size}
    return AdmissibilityError(
        Diagnostic(
            "LA120", "the right operand leaves the domain of the left operand", where_of(outer, inner), because, witness
        )
    )


def _require_additive(outer: CuteLayout, merged: Flat, inner: CuteLayout, runs: list[Flat]) -> None:
    """Raise if A is not additive over the modes of B, with the first coordinate that the search can reach."""
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
        raise gave_up(outer, inner, "carries between the modes may cancel") from error
    if found is None:
        return
    flat = tuple([digit for run in runs for digit in run])
    coordinate = sum([value * weight for value, weight in zip(found, weights, strict=True)])
    if inner.size <= PREFIX:
        actual = evaluate_many(merged, table(inner.flat))
        coordinate = int((actual != table(flat)).argmax())
    because = (
        f"the modes of the right operand carry into each other in {outer}: "
        f"mode by mode one would get {joined(flat)}, a different function"
    )
    witness = {
        "coordinate": coordinate,
        "composition": evaluate(merged, evaluate(inner.flat, coordinate)),
        "layout": evaluate(flat, coordinate),
    }
    raise RepresentabilityError(
        Diagnostic(
            "LA122", "the composition is not a CuTe layout", where_of(outer, inner), because, witness, source=WIDER
        )
    )


def joined(flat: Flat) -> str:
    """Return a digit list in layout notation."""
    return f"{shape_text(tuple([extent for extent, _ in flat]))}:{shape_text(tuple([stride for _, stride in flat]))}"


def gave_up(outer: CuteLayout, inner: CuteLayout | ComposedLayout, because: str) -> BudgetError:
    """Return the error for an undecided composition."""
    because = f"{because}, and the limit is {PREFIX} points"
    return BudgetError(
        Diagnostic("LA125", "whether the composition is a CuTe layout was not decided", where_of(outer, inner), because)
    )
