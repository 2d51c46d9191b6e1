"""Pointed maps between positions, refinement of nested tuples, and which layouts come from morphisms.

Notation: a pointed map a from m positions to n positions is a tuple of length m with entries in [0, n) or None; None is
the base point. Every map here is injective away from the base point, that is, a partial injection.

Main statements: partial injections compose to partial injections, and ``transpose`` gives the unique partial injection
b with b a b = b and a b a = a. Drop the modes of extent 1 and stride 0 of a layout and sort the rest by stride.
* The layout is *tractable*, that is |f| for a morphism f of nested tuples, if and only if each stride is a multiple of
  stride times extent of the mode before it. Necessary, because strides are products of codomain extents; sufficient,
  because the quotients, inserted between the extents, give a codomain.
* The layout is |p| for a padded morphism p if and only if each stride is greater than the largest sum of offsets of the
  modes before it, that is, if the sorted layout is strictly increasing.

Not tractable are, checked in this order: empty layouts; negative strides; overlapping modes, such as ``(4,4):(1,1)``;
interleaved modes, such as ``(3,2):(2,3)``; and padded rows whose pitch is not a multiple of the row, such as
``(6,2):(1,10)`` and ``(128,64):(72,1)``. Only the last kind is a padded morphism.

References: J. Carlisle, J. Shah, R. Stern, P. VanKoughnett, arXiv:2601.05972. The padded case is not in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, pairwise
from math import gcd
from operator import mul
from typing import Literal, NamedTuple, TypeAlias

from layoutalg.cute.inttuple import (
    INT_LIMIT,
    IntTuple,
    congruent,
    flatten,
    integer,
    malformed,
    product,
    shape_text,
    validate,
)
from layoutalg.cute.layout import CuteLayout
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError
from layoutalg.ground.limits import TUPLE_MODES

Map: TypeAlias = "tuple[int | None, ...]"

SOURCE = "arXiv:2601.05972"


def check_extents(value: object, argument: str) -> IntTuple:
    """Return ``value`` as a nested tuple of extents >= 1 whose product fits a signed 64-bit integer."""
    checked = validate(value, argument)
    size = 1
    for extent in flatten(checked):
        if extent < 1:
            raise malformed(argument, "must have extents >= 1", checked, "LA180")
        size *= extent
        if size >= INT_LIMIT:
            raise malformed(argument, "must have fewer than 2^63 elements", checked, "LA180")
    return checked


def check_map(value: object, domain: tuple[int, ...], codomain: tuple[int, ...]) -> Map:
    """Return ``value`` as a pointed map between the positions of two flat tuples that keeps the extents."""
    if not isinstance(value, tuple) or len(value) != len(domain):
        rule = f"must be a tuple with {len(domain)} entries, one per extent of the domain"
        raise malformed("map", rule, value, "LA181")
    entries: list[int | None] = []
    owner: dict[int, int] = {}
    for position, entry in enumerate(value):
        if entry is None:
            entries.append(None)
            continue
        target = integer(entry, "map", "LA181")
        if not 0 <= target < len(codomain):
            raise malformed("map", f"must have entries in [0, {len(codomain)}) or None", target, "LA181")
        if target in owner:
            because = f"positions {owner[target]} and {position} of the domain both go to position {target}"
            raise MalformedError(Diagnostic("LA182", "the map is not injective", because=because, source=SOURCE))
        if domain[position] != codomain[target]:
            because = (
                f"position {position} of the domain has extent {domain[position]}, "
                f"its image, position {target}, has extent {codomain[target]}"
            )
            raise MalformedError(Diagnostic("LA183", "the map changes an extent", because=because, source=SOURCE))
        owner[target] = position
        entries.append(target)
    return tuple(entries)


def check_pitch(value: object, codomain: IntTuple) -> IntTuple:
    """Return ``value`` as the pitches of a padded tuple: one per leaf, each above the reach of those before it."""
    pitch = validate(value, "pitch")
    if not congruent(pitch, codomain):
        raise malformed("pitch", f"must be congruent to the codomain {shape_text(codomain)}", pitch, "LA610")
    reach = 0
    for leaf, (extent, weight) in enumerate(zip(flatten(codomain), flatten(pitch), strict=True)):
        if weight < 1:
            raise malformed("pitch", "must have entries >= 1", pitch, "LA610")
        if extent > 1 and weight <= reach:
            because = f"leaf {leaf} has pitch {weight}, the leaves before it reach {reach}"
            where = (f"{shape_text(codomain)}:{shape_text(pitch)}",)
            raise MalformedError(Diagnostic("LA610", "the pitches do not increase", where, because))
        reach += (extent - 1) * weight
        if reach >= INT_LIMIT:
            raise malformed("pitch", "must keep all offsets below 2^63", pitch, "LA610")
    return pitch


def check_positions(value: object, count: int, argument: str = "positions") -> tuple[int, ...]:
    """Return ``value`` as distinct positions in [0, count), in the order given."""
    if not isinstance(value, tuple):
        raise malformed(argument, "must be a tuple of positions", value, "LA185")
    if len(value) > TUPLE_MODES:
        raise malformed(argument, f"must have at most {TUPLE_MODES} entries", len(value), "LA185")
    answer = tuple([integer(entry, argument, "LA185") for entry in value])
    for entry in answer:
        if not 0 <= entry < count:
            raise malformed(argument, f"must have entries in [0, {count})", entry, "LA185")
    if len(set(answer)) != len(answer):
        raise malformed(argument, "must not repeat a position", value, "LA185")
    return answer


def transpose(mapping: Map, count: int) -> Map:
    """Return the generalised inverse of a pointed map into ``count`` positions."""
    answer: list[int | None] = [None] * count
    for position, entry in enumerate(mapping):
        if entry is not None:
            answer[entry] = position
    return tuple(answer)


def followed(inner: Map, outer: Map) -> Map:
    """Return the composite of two pointed maps: ``inner``, then ``outer``."""
    return tuple([None if entry is None else outer[entry] for entry in inner])


def strides_at(mapping: Map, weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return the weight of every image, 0 for the base point."""
    return tuple([0 if entry is None else weights[entry] for entry in mapping])


def prefix_products(extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return 1, t_0, t_0 t_1, ...: one more entry than extents."""
    return tuple(accumulate(extents, mul, initial=1))


def modes_of(shape: IntTuple) -> tuple[tuple[IntTuple, ...], tuple[int, ...]]:
    """Return the top-level modes and the position of the first leaf of each, followed by the number of leaves."""
    entries = (shape,) if isinstance(shape, int) else shape
    return entries, tuple(accumulate([len(flatten(entry)) for entry in entries], initial=0))


def blocks_of(coarse: IntTuple, fine: object) -> tuple[IntTuple, ...]:
    """Return, for each leaf of ``coarse``, the nested tuple that ``fine`` puts in its place.

    Mathematically: ``fine`` refines ``coarse`` if it replaces each leaf by a nested tuple of equal size.
    """
    checked = check_extents(fine, "refinement")
    blocks: list[IntTuple] = []
    because = _match(coarse, checked, blocks)
    if because:
        where = (f"{shape_text(checked)} of {shape_text(coarse)}",)
        what = "the nested tuple is not a refinement"
        raise AdmissibilityError(Diagnostic("LA189", what, where, because, source=SOURCE))
    return tuple(blocks)


def _match(coarse: IntTuple, fine: IntTuple, blocks: list[IntTuple]) -> str:
    """Collect the blocks; return why ``fine`` is not a refinement, or an empty string."""
    if isinstance(coarse, int):
        blocks.append(fine)
        size = product(fine)
        return "" if size == coarse else f"{shape_text(fine)} has {size} elements, not {coarse}"
    if isinstance(fine, int) or len(fine) != len(coarse):
        return f"{shape_text(fine)} does not have one entry for each entry of {shape_text(coarse)}"
    return next((text for pair in zip(coarse, fine, strict=True) if (text := _match(*pair, blocks))), "")


def reindex(mapping: Map, domain: Iterable[IntTuple], codomain: Iterable[IntTuple]) -> Map:
    """Return the pointed map between the leaves of blocks; each block maps to its image leaf by leaf."""
    starts = list(accumulate([len(flatten(block)) for block in codomain], initial=0))
    answer: list[int | None] = []
    for entry, block in zip(mapping, domain, strict=True):
        count = len(flatten(block))
        answer += [None] * count if entry is None else range(starts[entry], starts[entry] + count)
    return tuple(answer)


def map_text(mapping: Map) -> str:
    """Return a pointed map in notation: positions and None, no blanks."""
    return "(" + ",".join([str(entry) for entry in mapping]) + ")"


def refused(code: str, what: str, because: str, where: str = "") -> AdmissibilityError:
    """Return the error of an operation on morphisms."""
    return AdmissibilityError(Diagnostic(code, what, (where,) if where else (), because, source=SOURCE))


Kind: TypeAlias = Literal["tractable", "padded", "interleaved", "overlapping", "negative", "empty"]
Flat: TypeAlias = "tuple[tuple[int, int], ...]"


class Finding(NamedTuple):
    """The kind of a layout, its non-trivial modes sorted by stride, and which two modes break the chain and why."""

    kind: Kind
    order: tuple[int, ...] = ()
    modes: tuple[int, int] | None = None
    because: str = ""


def examine(layout: CuteLayout) -> Finding:
    """Classify a layout; its non-trivial modes are sorted by stride, then extent."""
    if not isinstance(layout, CuteLayout):
        raise malformed("layout", "must be a CuteLayout", layout, "LA604")
    return examine_modes(layout.flat)


def examine_modes(flat: Flat) -> Finding:
    """``examine`` for the leaves of a layout: (extent, stride) pairs."""
    for place, (extent, stride) in enumerate(flat):
        if extent == 0:
            return Finding("empty", (), (place, place), f"mode {place} has extent 0")
        if stride < 0 and extent > 1:
            return Finding("negative", (), (place, place), f"{_name(flat, place)} has a negative stride")
    moving = [place for place, (extent, stride) in enumerate(flat) if extent > 1 and stride != 0]
    order = tuple(sorted(moving, key=lambda place: (flat[place][1], flat[place][0], place)))
    for fast, slow in pairwise(order):
        width = flat[fast][0] * flat[fast][1]
        if flat[slow][1] % width:
            text = (
                f"{_name(flat, slow)} has a stride that is not a multiple of {width}, the width of {_name(flat, fast)}"
            )
            return _not_increasing(flat, order) or Finding("padded", order, (fast, slow), text)
    return Finding("tractable", order)


def _not_increasing(flat: Flat, order: tuple[int, ...]) -> Finding | None:
    """Return where the sorted layout stops increasing, or None if it never does."""
    reach, fast = 0, -1
    for slow in order:
        extent, stride = flat[slow]
        if stride > reach:
            reach += (extent - 1) * stride
            fast = slow
            continue
        for other in order:
            s, d = flat[other]
            common = gcd(d, stride)
            if other != slow and stride // common < s and d // common < extent:
                meeting = d * stride // common
                text = f"{_name(flat, other)} and {_name(flat, slow)} both reach the offset {meeting}"
                return Finding("overlapping", order, (other, slow), text)
        text = f"{_name(flat, slow)} starts inside the modes before it: its stride does not exceed their reach {reach}"
        return Finding("interleaved", order, (fast, slow), text)
    return None


def _name(flat: Flat, place: int) -> str:
    return f"mode {place} ({flat[place][0]}:{flat[place][1]})"
