"""Changes to a shared-memory request that may make it admissible, cheapest first within each kind.

What each kind tries: *align the base*: every power of two up to 1024; *move the base*: the multiples of 16, 128 and
1024 bytes next to the tile's first element, and 0; *take another instruction*: those the consumer names; *change the
swizzle*: the four hardware swizzles, and the layout's own moved to whole rows; *pad to whole rows*: all strides of
digits outside a row, grown to multiples of the grain that step over the faster digits, in order of bytes; *fold*:
adjacent dimensions merged; *store the tile densely* or *transposed*: every contiguous dimension under every swizzle;
*split*: two parts along one dimension, cut at a quarter, half, three quarters, the largest power of two or the longest
step; *promote the type*: types that represent all values of the given one, digits kept or dense; *grow the tile*:
extents rounded up to instruction sizes.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from layoutalg.cute import Swizzle
from layoutalg.ground.listed import listed
from layoutalg.proofs.dtypes import element_type
from layoutalg.synth.admission.form import CHUNK_BITS, NAMES, Form, dense, form_of, swizzle_named
from layoutalg.synth.admission.request import Request

WIDER: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "e2m1": ("e4m3", "f16"), "e4m3": ("f16",), "e5m2": ("f16",), "s8": ("f16", "s32"), "u8": ("f16", "u16", "u32"),
        "u16": ("u32",), "s16": ("s32",), "f16": ("f32",), "bf16": ("f32",), "u32": ("u64",), "s32": ("s64",),
    }
)  # fmt: skip
"""Types that represent every value of a type, narrowest first."""
NARROW_BITS = 16
"""Narrower elements have few or no transposing instructions."""
STEPS = (8, 16, 32, 64, 128)
"""Multiples that extents are rounded up to."""
MOST_PADDED = 4096
"""Limit on stride vectors tried; most never reach the instruction's finder."""


@dataclass(frozen=True, slots=True)
class Idea:
    """A changed request."""

    kind: str  # what to do, in the imperative
    detail: str  # the change: the layout's text, the consumer's name, ...
    added_bytes: int  # extra bytes spanned
    changes: int  # number of entries that differ
    parts: tuple[Request, ...]  # the requests that must all be admitted
    extra: int = 0  # instructions besides those of the parts
    # how data in the refused layout gets there, JSON-ready; None if not planned
    movement: Mapping[str, Any] | None = None


def ideas(
    request: Request, others: Mapping[str, str], grain_bits: int, own: Iterable[Iterator[Idea]] = ()
) -> Iterator[Iterator[Idea]]:
    """Yield the ideas of each kind, cheaper ones first.

    Args:
        request: The refused request.
        others: Alternative consumers, with the kind of that repair.
        grain_bits: Alignment of rows.
        own: Kinds specific to the consumer.
    """
    yield _aligned(request)
    yield from own
    for kind in dict.fromkeys(others.values()):
        yield (_changed(kind, name, request, consumer=name) for name, mine in others.items() if mine == kind)
    form = form_of(request)
    if form is not None:
        yield _moved(request, form)
        yield _swizzled(request, form)
        yield _to_rows(request, form, grain_bits)
    if not request.options:
        yield _folded(request, form)
    yield from (_stored(request, form, turned) for turned in (False, True))
    if not request.options:
        yield _split(request)
    if request.dtype.bits < NARROW_BITS:
        yield _promoted(request, form)
    if form is not None:
        yield _padded(request, form, grain_bits)


def last_ideas(request: Request, grain_bits: int) -> Iterator[Iterator[Idea]]:
    """Yield the last resorts: two changes at once, wider types, larger tiles."""
    form = form_of(request)
    if form is not None:
        yield _padded_and_swizzled(request, form, grain_bits)
    yield _promoted(request, form)
    if not request.options:
        yield _grown(request, form)


def _reach(request: Request) -> int:
    """Span in bits from the tile's base."""
    return (int(request.offsets.max()) + 1) * request.dtype.bits


def _changed(kind: str, detail: str, request: Request, changes: int = 1, **fields: Any) -> Idea:
    return Idea(kind, detail, 0, changes, (replace(request, **fields),))


def _laid(request: Request, kind: str, form: Form, changes: int) -> Idea:
    """The idea to use another layout of the tile."""
    layout = form.layout()
    part = replace(request, layout=layout, extents=form.tile, problem=None)
    added = form.reach * request.dtype.bits - _reach(request)
    return Idea(kind, str(layout), max(0, -(-added // 8)), changes, (part,))


def _apart(one: Form, two: Form) -> int:
    """Number of entries in which two forms differ."""
    digits = (dict.fromkeys((dim, *digit) for dim, held in enumerate(form.modes) for digit in held if digit[0] > 1)
              for form in (one, two))  # fmt: skip
    mine, other = digits
    moved = max(sum(digit not in other for digit in mine), sum(digit not in mine for digit in other))
    return max(1, moved + (one.swizzle != two.swizzle) + (one.base != two.base))


def _cheapest_first(found: list[Idea]) -> list[Idea]:
    return sorted(found, key=lambda idea: (idea.added_bytes, idea.changes))


def _aligned(request: Request) -> Iterator[Idea]:
    align = 2 * request.align_bytes
    while align <= 1024:
        yield _changed("align the base", f"align_bytes={align}", request, align_bytes=align)
        align *= 2


def _moved(request: Request, form: Form) -> Iterator[Idea]:
    bits, base = request.dtype.bits, form.base
    if not base:
        return
    grains = [size * 8 // bits for size in (16, 128, 1024) if size * 8 % bits == 0]
    places = {0, *(base // grain * grain for grain in grains), *(-(-base // grain) * grain for grain in grains)}
    for place in sorted(places - {base}, key=lambda place: (max(0, place - base), abs(place - base))):
        yield _laid(request, "move the base", replace(form, base=place), 1)


def _swizzles(request: Request) -> list[Swizzle | None]:
    bits = request.dtype.bits
    return [None] if CHUNK_BITS % bits else [swizzle_named(name, bits) for name in NAMES]


def _swizzled(request: Request, form: Form) -> Iterator[Idea]:
    for swizzle in _swizzles(request):
        if swizzle != form.swizzle:
            yield _laid(request, "change the swizzle", replace(form, swizzle=swizzle), 1)


def _to_rows(request: Request, form: Form, grain_bits: int) -> Iterator[Idea]:
    """Make the swizzle permute whole rows of the instruction."""
    held, unit = form.swizzle, grain_bits // request.dtype.bits
    if held is not None and unit > 1 and unit & (unit - 1) == 0:
        moved = Swizzle(held.bits, unit.bit_length() - 1, held.shift)
        if moved != held:
            yield _laid(request, "swizzle whole rows", replace(form, swizzle=moved), 1)


def _padded(request: Request, form: Form, grain_bits: int, kind: str = "pad to whole rows") -> Iterator[Idea]:
    """Grow strides, fewest bytes first."""
    grain = max(1, grain_bits // request.dtype.bits)
    digits = [(stride, extent, dim, place) for dim, held in enumerate(form.modes)
              for place, (extent, stride) in enumerate(held) if extent > 1]  # fmt: skip
    order = sorted(digits)
    near = [digit for digit in order if digit[0] < grain]
    far = [digit for digit in order if digit[0] >= grain]
    start = tuple(-(-stride // grain) * grain for stride, *_ in far)
    nested = _nests([(stride, extent) for stride, extent, *_ in order])
    waiting = [(_span(start, far), start, 0)]
    for _ in range(MOST_PADDED):
        if not waiting:
            return
        _, strides, first = heapq.heappop(waiting)
        held = [*((stride, extent) for stride, extent, *_ in near),
                *((stride, digit[1]) for stride, digit in zip(strides, far, strict=True))]  # fmt: skip
        if not nested or _nests(held):
            made = _restrided(form, far, strides)
            if made != form:
                yield _laid(request, kind, made, _apart(form, made))
        for place in range(first, len(far)):
            more = (*strides[:place], strides[place] + grain, *strides[place + 1 :])
            heapq.heappush(waiting, (_span(more, far), more, place))


def _span(strides: tuple[int, ...], digits: list[tuple[int, int, int, int]]) -> int:
    return sum(stride * (extent - 1) for stride, (_, extent, _, _) in zip(strides, digits, strict=True))


def _nests(digits: list[tuple[int, int]]) -> bool:
    """Whether every stride exceeds the span of the digits before it."""
    reach = 0
    for stride, extent in digits:
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def _restrided(form: Form, digits: list[tuple[int, int, int, int]], strides: tuple[int, ...]) -> Form:
    modes = [list(held) for held in form.modes]
    for (_, extent, dim, place), stride in zip(digits, strides, strict=True):
        modes[dim][place] = extent, stride
    return replace(form, modes=tuple(tuple(held) for held in modes))


def _padded_and_swizzled(request: Request, form: Form, grain_bits: int) -> Iterator[Idea]:
    kind = "pad to whole rows and change the swizzle"
    others = [replace(form, swizzle=swizzle) for swizzle in _swizzles(request) if swizzle != form.swizzle]
    found = (_padded(request, other, grain_bits, kind) for other in others)
    for idea in heapq.merge(*found, key=lambda idea: idea.added_bytes):
        yield replace(idea, changes=idea.changes + 1)


def _folded(request: Request, form: Form | None) -> Iterator[Idea]:
    """Merge adjacent dimensions, down to rank two."""
    rank = len(request.extents)
    for many in range(2, rank):
        for first in range(rank - many + 1):
            table = request.offsets
            extents = (*table.shape[:first], -1, *table.shape[first + many :])
            if form is not None:
                merged = tuple(digit for digits in reversed(form.modes[first : first + many]) for digit in digits)
                modes = (*form.modes[:first], merged, *form.modes[first + many :])
                layout: Any = replace(form, modes=modes).layout()
            else:
                layout = listed(table.reshape(extents))
            shape = table.reshape(extents).shape
            part = replace(request, layout=layout, extents=shape, problem=None)
            names = ", ".join(map(str, range(first, first + many)))
            text = str(layout) if form is not None else f"merge dimensions {names}, tile {shape}"
            yield Idea("fold", text, 0, many - 1, (part,))


def inner_of(form: Form | None, rank: int) -> int:
    """Return the contiguous dimension."""
    steps = [(stride, -dim) for dim, digits in enumerate(form.modes if form else ()) for n, stride in digits if n > 1]
    return -min(steps)[1] if steps else rank - 1


def _dense_forms(request: Request, tile: tuple[int, ...], inner: int) -> Iterator[Form]:
    bits = request.dtype.bits
    for name, swizzle in zip(NAMES, _swizzles(request), strict=False):
        span = max(1, CHUNK_BITS * (1 << NAMES.index(name)) // bits)
        for columns in dict.fromkeys((tile[inner], span)):
            modes = dense(tile, inner, columns)
            if modes is not None:
                yield Form(modes, swizzle)


def _stored(request: Request, form: Form | None, turned: bool) -> Iterator[Idea]:
    """Store the tile without gaps, with the same or another dimension contiguous."""
    kept = inner_of(form, len(request.extents))
    kind = "store the tile transposed" if turned else "store the tile densely"
    dims = [dim for dim in range(len(request.extents)) if (dim != kept) == turned and request.extents[dim] > 1]
    made = [found for inner in dims for found in _dense_forms(request, request.extents, inner)]
    whole = 2 * sum(len(digits) for digits in form.modes) if form else 2 * len(request.extents)
    found = [_laid(request, kind, one, _apart(form, one) if form else whole) for one in made if one != form]
    yield from _cheapest_first(found)


def _split(request: Request) -> Iterator[Idea]:
    """Cut the tile in two; each part gets its own descriptor or instructions."""
    table = request.offsets
    for dim, extent in enumerate(table.shape):
        jump = np.abs(np.diff(table, axis=dim)).sum(axis=tuple(other for other in range(table.ndim) if other != dim))
        farthest = int(np.argmax(jump)) + 1 if jump.size else 0
        whole = 1 << extent.bit_length() - 1
        for cut in dict.fromkeys((extent // 2, whole, extent // 4, 3 * extent // 4, farthest)):
            if not 0 < cut < extent:
                continue
            halves = np.split(table, [cut], axis=dim)
            period = 1024 * 8 // request.dtype.bits if 1024 * 8 % request.dtype.bits == 0 else 0
            starts = [int(half.min()) // period * period if period else 0 for half in halves]
            parts = tuple(
                replace(request, layout=listed(half - start), extents=half.shape, problem=None)
                for half, start in zip(halves, starts, strict=True)
            )
            places = ", ".join(f"{start * request.dtype.bits // 8}" for start in starts)
            yield Idea("split", f"dimension {dim} at {cut}, parts start at bytes {places}", 0, 2, parts)


def _promoted(request: Request, form: Form | None) -> Iterator[Idea]:
    """Store the elements in a wider type, with the same digits or densely."""
    made = []
    for name in WIDER.get(request.dtype.name, ()):
        wide = replace(request, dtype=element_type(name), problem=None)
        inner = inner_of(form, len(request.extents))
        order = form.swizzle.bits if form is not None and form.swizzle is not None else 0
        forms = list(_dense_forms(wide, request.extents, inner))
        if form is not None:
            named = NAMES[order] if order < len(NAMES) else "NONE"
            forms.insert(0, replace(form, swizzle=swizzle_named(named, wide.dtype.bits)))
        for one in forms:
            idea = _laid(wide, "promote the type", one, 1 + (0 if form is None else _apart(form, one)))
            added = max(0, one.reach * wide.dtype.bits - _reach(request))
            made.append(replace(idea, detail=f"dtype {name}, {idea.detail}", added_bytes=-(-added // 8)))
    yield from _cheapest_first(made)


def _grown(request: Request, form: Form | None) -> Iterator[Idea]:
    """Round extents up and zero-fill the new rows and columns."""
    rank, inner = len(request.extents), inner_of(form, len(request.extents))
    wider = [sorted({-(-extent // step) * step for step in STEPS} | {extent}) for extent in request.extents[-2:]]
    made = []
    for last in itertools.product(*wider):
        tile = (*request.extents[: rank - len(last)], *last)
        if tile == request.extents:
            continue
        for one in _dense_forms(request, tile, inner):
            many = sum(a != b for a, b in zip(tile, request.extents, strict=True))
            idea = _laid(request, "grow the tile", one, many + (0 if form is None else _apart(form, one)))
            made.append(replace(idea, detail=f"tile {tile}, zero-filled, {idea.detail}"))
    yield from _cheapest_first(made)
