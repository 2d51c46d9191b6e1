"""Recasts: layouts read in wider or narrower elements.

Main statements: a wide element holds N narrow ones. upcast(L, N) = U with N U(c) + r running over the offsets of L:
the coordinates split as g c + rest, where the rests alone take the offsets 0, ..., N - 1. downcast puts them back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

from layoutalg.cute import CuteLayout, downcast, recast, upcast
from layoutalg.cute.layout import from_runs
from layoutalg.cute.recast import inner_counts, narrower, wider
from layoutalg.ground.digits import Flat, evaluate
from layoutalg.ground.errors import LayoutError, RepresentabilityError
from layoutalg.proofs.laws.engines import enumerated, integers
from layoutalg.proofs.laws.law import Law
from layoutalg.proofs.laws.places import digits_of, index
from layoutalg.proofs.laws.trial import Trial

_NARROW = "a mode of stride 1 beside any other mode, all extents, all N >= 2"
_INSIDE = "N ends inside a mode (N q):1 beside a mode of any extent and a multiple of N as stride; all N >= 2, q >= 1"
_THROUGH = "N = s u ends inside the second mode of s:1, (u v):s; all s, u >= 2, v >= 1"

Wider = Callable[[Flat, Sequence[Any], Any], Flat]


def _narrowed(trial: Trial, narrow: Callable[[Flat, int, Any], Flat] = narrower) -> None:
    s, t, d, count = trial.extent("s"), trial.extent("t"), trial.integer("d"), trial.extent("N")
    trial.assume(count >= 2)
    flat = ((s, 1), (t, d))
    a, b = digits_of(trial, "c", (s, t))
    r = trial.digit("r", count)
    found = narrow(flat, 0, count)
    trial.claim(found[0][0] == s * count, "the mode of stride 1 takes the new elements")
    trial.claim(found[1][0] == t, "the other mode keeps its extent")
    old = evaluate(flat, index(trial, (a, b), (s, t)))
    new = evaluate(found, index(trial, (r + count * a, b), (found[0][0], found[1][0])))
    trial.claim(new == count * old + r, "D(N c + r) = N L(c) + r")


def _unscaled(flat: Flat, position: int, count: int) -> Flat:
    """Widen the mode of stride 1 and leave the other strides in old elements."""
    modes = list(flat)
    modes[position] = (flat[position][0] * count, 1)
    return tuple(modes)


def _inside(trial: Trial, wide: Wider = wider) -> None:
    count, q, t, m = trial.extent("N"), trial.extent("q"), trial.extent("t"), trial.integer("m")
    trial.assume(count >= 2)
    flat = ((count * q, 1), (t, count * m))
    trial.divides(1, count, 0, 1)
    trial.divides(count * m, count, m)
    trial.divides(-(count * m), count, -m)
    trial.divides(-1, count, -1, count - 1)
    trial.divides(count * q, count, q)
    trial.divides(count, count * q, *((1, 0) if q == 1 else (0, count)))
    trial.divides(count * q, count * q, 1)
    trial.divides(count, count, 1)
    inner = inner_counts(flat, count, "")
    trial.claim(inner[0] == count, "the mode of stride 1 fills the element")
    trial.claim(inner[1] == 1, "the other mode does not enter it")
    found = wide(flat, inner, count)
    r, (a, b) = trial.digit("r", count), digits_of(trial, "c", (q, t))
    trial.claim(found[0][0] == q, "the extent is divided")
    old = evaluate(flat, index(trial, (r + count * a, b), (count * q, t)))
    new = evaluate(found, index(trial, (a, b), (found[0][0], found[1][0])))
    trial.claim(old == count * new + r, "L(N c + r) = N U(c) + r")


def _through(trial: Trial, wide: Wider = wider) -> None:
    s, u, v = trial.extent("s"), trial.extent("u"), trial.extent("v")
    trial.assume(s >= 2, u >= 2)
    count = s * u
    flat = ((s, 1), (u * v, s))
    trial.divides(1, count, 0, 1)
    trial.divides(-1, count, -1, count - 1)
    trial.divides(s, count, 0, s)
    trial.divides(-s, count, -1, count - s)
    trial.divides(count, s, u)
    trial.divides(u, u * v, *((1, 0) if v == 1 else (0, u)))
    trial.divides(u * v, u, v)
    trial.divides(s, s, 1)
    trial.divides(u * v, u * v, 1)
    inner = inner_counts(flat, count, "")
    trial.claim(inner[0] == s, "the first mode lies inside the element")
    trial.claim(inner[1] == u, "and so does a part of the second")
    trial.divides(inner[1] * s, count, 1)
    found = wide(flat, inner, count)
    r, p, c = trial.digit("r", s), trial.digit("p", u), trial.digit("c", v)
    trial.claim(found[0][0] == 1, "nothing is left of the first mode")
    trial.claim(found[1][0] == v, "the extent of the second is divided")
    old = evaluate(flat, index(trial, (r, p + u * c), (s, u * v)))
    new = evaluate(found[1:], index(trial, (c,), (found[1][0],)))
    trial.claim(old == count * new + r + s * p, "L(r, p + u c) = N U(c) + (r + s p)")


def _old_strides(flat: Flat, inner: Sequence[Any], count: Any) -> Flat:  # noqa: ARG001
    """Divide the extents and leave the strides in old elements."""
    return tuple([(extent // taken, stride) for (extent, stride), taken in zip(flat, inner, strict=True)])


def _back(trial: Trial, narrow: Callable[[Flat, int, Any], Flat] = narrower) -> None:
    s, t, d, count = trial.extent("s"), trial.extent("t"), trial.integer("d"), trial.extent("N")
    trial.assume(count >= 2, s >= 2, t >= 2)
    flat = narrow(((s, 1), (t, d)), 0, count)
    trial.divides(1, count, 0, 1)
    trial.divides(d * count, count, d)
    trial.divides(count, s * count, 0, count)
    trial.divides(s * count, count, s)
    trial.divides(count, count, 1)
    found = wider(flat, inner_counts(flat, count, ""), count)
    for got, given in zip(found, ((s, 1), (t, d)), strict=True):
        trial.claim(got[0] == given[0], "the extents are those of L")
        trial.claim(got[1] == given[1], "the strides are those of L")


Case = tuple[CuteLayout, int]


def _cases() -> Iterator[Case]:
    for count in (1, 2):
        for shape, stride in product(product(range(1, 7), repeat=count), product((0, 1, 2, 3, 4, 8), repeat=count)):
            for factor in (2, 3, 4):
                yield CuteLayout(shape, stride), factor


def _partly_covered(layout: CuteLayout, factor: int) -> list[int] | None:
    """Return the table of U, mode by mode, found by trying every way to split the modes; None where there is none."""
    for inner in product(*[[g for g in range(1, extent + 1) if extent % g == 0] for extent, _ in layout.flat]):
        if math.prod(inner) != factor:
            continue
        inside = [sum(c * d for c, (_, d) in zip(at, layout.flat, strict=True)) for at in product(*map(range, inner))]
        steps = [(extent // g, g * d) for g, (extent, d) in zip(inner, layout.flat, strict=True)]
        if sorted(inside) == list(range(factor)) and all(d % factor == 0 for extent, d in steps if extent > 1):
            shape, stride = [tuple([step[side] for step in steps]) for side in (0, 1)]
            return [value // factor for value in CuteLayout(shape, stride).table().tolist()]
    return None


def _upcast(case: Case, cast: Callable[[CuteLayout, int], CuteLayout] = upcast) -> str | None:
    layout, factor = case
    wanted = _partly_covered(layout, factor)
    try:
        found = cast(layout, factor)
    except RepresentabilityError:
        return None if wanted is None else "a layout of whole elements is refused"
    if wanted is None:
        return "a wide element is only partly covered"
    return None if found.table().tolist() == wanted else "the wide elements lie elsewhere"


def _rounding(layout: CuteLayout, factor: int) -> CuteLayout:
    """Round extents up, as CuTe C++ does."""
    modes = []
    for extent, stride in layout.flat:
        if stride % factor and factor % stride:
            return upcast(layout, factor)
        inside = factor // abs(stride) if stride % factor else 1
        modes.append((-(-extent // inside), stride * inside // factor))
    return from_runs([(mode,) for mode in modes], layout.shape)


def _there_and_back(case: Case, cast: Callable[[CuteLayout, int], CuteLayout] = downcast) -> str | None:
    layout, factor = case
    try:
        found = cast(layout, factor)
    except RepresentabilityError:
        return "a mode could take them" if any(mode[0] == 1 or mode[1] == 1 for mode in layout.flat) else None
    wanted = sorted(factor * offset + r for offset in layout.table().tolist() for r in range(factor))
    if sorted(found.table().tolist()) != wanted:
        return "the narrow elements are others"
    back = upcast(found, factor)
    same = back.shape == layout.shape and back.table().tolist() == layout.table().tolist()
    return None if same else "the wide elements are not those of the layout"


def _every_unit_stride(layout: CuteLayout, factor: int) -> CuteLayout:
    """Widen every mode of stride 1, and none where there is none, as CuTe C++ does."""
    modes = [(extent * factor, d) if abs(d) == 1 else (extent, d * factor) for extent, d in layout.flat]
    return from_runs([(mode,) for mode in modes], layout.shape)


def _same_bits(case: Case, cast: Callable[[CuteLayout, int, int], CuteLayout] = recast) -> str | None:
    layout, factor = case
    for old, new in ((factor, 1), (2, factor), (4, 6), (1, factor)):
        try:
            found = cast(layout, old, new)
        except LayoutError:
            continue
        before = sorted(old * offset + bit for offset in layout.table().tolist() for bit in range(old))
        if sorted(new * offset + bit for offset in found.table().tolist() for bit in range(new)) != before:
            return "the elements hold other bits"
    return None


def _scaled_offsets(layout: CuteLayout, old_bits: int, new_bits: int) -> CuteLayout:
    """Scale the strides alone."""
    return CuteLayout(layout.shape, tuple([stride * old_bits // new_bits for _, stride in layout.flat]))


LAWS = (
    Law(
        "recast.downcast",
        "downcast(L, N)(N c + r) = N L(c) + r, where the digit of one mode is N c + r and the others are c's.",
        ("layoutalg.cute.downcast", "layoutalg.cute.recast.narrower"),
        integers(_narrowed, partial(_narrowed, narrow=_unscaled), _NARROW),
    ),
    Law(
        "recast.upcast",
        "L(g c + rest) = N upcast(L, N)(c) + r, r running over 0, ..., N - 1: an element is whole, and the inner parts "
        "follow the chain of strides; by induction over the modes of the chain.",
        ("layoutalg.cute.upcast", "layoutalg.cute.recast.inner_counts", "layoutalg.cute.recast.wider"),
        (
            *integers(_inside, partial(_inside, wide=_old_strides), _INSIDE),
            *integers(_through, partial(_through, wide=_old_strides), _THROUGH),
        ),
    ),
    Law(
        "recast.round_trip",
        "upcast(downcast(L, N), N) = L up to the strides of modes of extent 1, and downcast(L, N) takes N L(c) + r, "
        "0 <= r < N, each as often as L takes L(c).",
        ("layoutalg.cute.upcast", "layoutalg.cute.downcast"),
        (
            *integers(_back, partial(_back, narrow=_unscaled), _NARROW),
            *enumerated(
                _cases,
                _there_and_back,
                partial(_there_and_back, cast=_every_unit_stride),
                "layouts of at most 2 modes with extents 1..6 and strides 0..8, N = 2, 3 and 4",
                3996,
            ),
        ),
    ),
    Law(
        "recast.defined",
        "upcast(L, N) exists exactly where some split of the modes takes the offsets 0, ..., N - 1 and leaves "
        "multiples of N.",
        ("layoutalg.cute.upcast",),
        enumerated(
            _cases,
            _upcast,
            partial(_upcast, cast=_rounding),
            "layouts of at most 2 modes with extents 1..6 and strides 0..8, N = 2, 3 and 4",
            3996,
        ),
        "recast.upcast proves the value for all numbers; that no other split exists is a search over divisors",
    ),
    Law(
        "recast.bits",
        "recast(L, old, new) holds the same bits of memory, each as often.",
        ("layoutalg.cute.recast.recast",),
        enumerated(
            _cases,
            _same_bits,
            partial(_same_bits, cast=_scaled_offsets),
            "layouts of at most 2 modes with extents 1..6 and strides 0..8, 4 pairs of widths",
            3996,
        ),
        "it is a downcast, then an upcast, which recast.downcast and recast.upcast prove for all values",
    ),
)
