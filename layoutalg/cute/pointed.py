"""Pointed maps between positions, and refinement of nested tuples: the basis of morphisms.

Notation: a pointed map a from m positions to n positions is a tuple of length m with entries in [0, n) or None; None is
the base point. Every map here is injective away from the base point, that is, a partial injection.

Main statements: partial injections compose to partial injections, and ``transpose`` gives the unique partial injection
b with a b a = a and b a b = b.

References: J. Carlisle, J. Shah, R. Stern, P. VanKoughnett, arXiv:2601.05972.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from operator import mul
from typing import TypeAlias

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
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError
from layoutalg.ground.limits import TUPLE_MODES

Map: TypeAlias = "tuple[int | None, ...]"

SOURCE = "arXiv:2601.05972"


def check_extents(value: object, argument: str) -> IntTuple:
    """Return ``value`` as a nested tuple of extents >= 1 whose product fits a signed 64-bit integer.

    Raises: MalformedError: LA180, LA100.

    Example:
        >>> check_extents((2, (3, 1)), "domain")
        (2, (3, 1))
    """
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
    """Return ``value`` as a pointed map between the positions of two flat tuples that keeps the extents.

    Raises: MalformedError: LA181, LA182, LA183.

    Example:
        >>> check_map((1, None), (4, 2), (3, 4))
        (1, None)
    """
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
    """Return ``value`` as the pitches of a padded tuple: one per leaf, each above the reach of those before it.

    Raises: MalformedError: LA610, LA100.

    Example:
        >>> check_pitch((1, 10), (6, 2))
        (1, 10)
    """
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
    """Return ``value`` as distinct positions in [0, count), in the order given.

    Raises: MalformedError: LA185.

    Example:
        >>> check_positions((2, 0), 3)
        (2, 0)
    """
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
    """Return the generalised inverse of a pointed map into ``count`` positions.

    Example:
        >>> transpose((2, None), 3)
        (None, None, 0)
    """
    answer: list[int | None] = [None] * count
    for position, entry in enumerate(mapping):
        if entry is not None:
            answer[entry] = position
    return tuple(answer)


def followed(inner: Map, outer: Map) -> Map:
    """Return the composite of two pointed maps: ``inner``, then ``outer``.

    Example:
        >>> followed((1, None), (0, 2))
        (2, None)
    """
    return tuple([None if entry is None else outer[entry] for entry in inner])


def strides_at(mapping: Map, weights: tuple[int, ...]) -> tuple[int, ...]:
    """Return the weight of every image, 0 for the base point.

    Example:
        >>> strides_at((1, None), (1, 4))
        (4, 0)
    """
    return tuple([0 if entry is None else weights[entry] for entry in mapping])


def prefix_products(extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return 1, t_0, t_0 t_1, ...: one more entry than extents.

    Example:
        >>> prefix_products((4, 3, 2))
        (1, 4, 12, 24)
    """
    return tuple(accumulate(extents, mul, initial=1))


def modes_of(shape: IntTuple) -> tuple[tuple[IntTuple, ...], tuple[int, ...]]:
    """Return the top-level modes and the position of the first leaf of each, followed by the number of leaves.

    Example:
        >>> modes_of((4, (2, 3)))
        ((4, (2, 3)), (0, 1, 3))
    """
    entries = (shape,) if isinstance(shape, int) else shape
    return entries, tuple(accumulate([len(flatten(entry)) for entry in entries], initial=0))


def blocks_of(coarse: IntTuple, fine: object) -> tuple[IntTuple, ...]:
    """Return, for each leaf of ``coarse``, the nested tuple that ``fine`` puts in its place.

    Mathematically: ``fine`` refines ``coarse`` if it replaces each leaf by a nested tuple of equal size.

    Raises: AdmissibilityError: LA189.

    Example:
        >>> blocks_of((4, 6), ((2, 2), 6))
        ((2, 2), 6)
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
    """Return the pointed map between the leaves of blocks; each block maps to its image leaf by leaf.

    Example:
        >>> reindex((1, None), ((2, 2), 5), (3, (2, 2)))
        (1, 2, None)
    """
    starts = list(accumulate([len(flatten(block)) for block in codomain], initial=0))
    answer: list[int | None] = []
    for entry, block in zip(mapping, domain, strict=True):
        count = len(flatten(block))
        answer += [None] * count if entry is None else range(starts[entry], starts[entry] + count)
    return tuple(answer)


def map_text(mapping: Map) -> str:
    """Return a pointed map in notation: positions and None, no blanks.

    Example:
        >>> map_text((1, None))
        '(1,None)'
    """
    return "(" + ",".join([str(entry) for entry in mapping]) + ")"


def refused(code: str, what: str, because: str, where: str = "") -> AdmissibilityError:
    """Return the error of an operation on morphisms."""
    return AdmissibilityError(Diagnostic(code, what, (where,) if where else (), because, source=SOURCE))
