"""Pointed maps between positions and nested tuples with blocks: what every morphism of layouts is made of.

Main definitions: ``Map``, ``check_extents``, ``check_map``, ``check_positions``, ``compose``, ``transpose``,
``prefix_products``, ``blocks_of``, ``graft``, ``reindex``, ``map_text``; and the refusals that all morphisms share.

Notation: a pointed map a from m positions to n positions is a tuple of length m with entries in [0, n) or None; None is
the base point. Every map here is injective away from the base point: such maps are the partial injections.

Main statements: partial injections compose to partial injections, and ``transpose`` gives the unique partial injection
b with a b a = a and b a b = b.

References: J. Carlisle, J. Shah, R. Stern, P. VanKoughnett, arXiv:2601.05972.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate
from operator import mul
from typing import TypeAlias, TypeVar

from layoutalg.cute.inttuple import (
    INT_LIMIT,
    IntTuple,
    flatten,
    integer,
    malformed,
    product,
    shape_text,
    validate,
)
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown
from layoutalg.ground.limits import TUPLE_MODES

Map: TypeAlias = "tuple[int | None, ...]"

Kind = TypeVar("Kind")

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
        raise malformed(
            "map", f"must be a tuple with {len(domain)} entries, one per extent of the domain", value, "LA181"
        )
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
            raise MalformedError(
                Diagnostic(
                    code="LA182",
                    what="the map is not injective",
                    because=f"positions {owner[target]} and {position} of the domain both go to position {target}",
                    source=SOURCE,
                )
            )
        if domain[position] != codomain[target]:
            raise MalformedError(
                Diagnostic(
                    code="LA183",
                    what="the map changes an extent",
                    because=f"position {position} of the domain has extent {domain[position]}, "
                    f"its image, position {target}, has extent {codomain[target]}",
                    source=SOURCE,
                )
            )
        owner[target] = position
        entries.append(target)
    return tuple(entries)


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


def compose(outer: Map, inner: Map) -> Map:
    """Return the pointed map ``outer`` after ``inner``.

    Example:
        >>> compose((None, 0), (1, 0, None))
        (0, None, None)
    """
    return tuple([None if entry is None else outer[entry] for entry in inner])


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


def prefix_products(extents: tuple[int, ...]) -> tuple[int, ...]:
    """Return 1, t_0, t_0 t_1, ...: one entry more than there are extents.

    Example:
        >>> prefix_products((4, 3, 2))
        (1, 4, 12, 24)
    """
    return tuple(accumulate(extents, mul, initial=1))


def blocks_of(coarse: IntTuple, fine: object, argument: str = "refinement") -> tuple[IntTuple, ...]:
    """Return, for each leaf of ``coarse``, the nested tuple that ``fine`` puts in its place.

    Mathematically: ``fine`` refines ``coarse`` if it arises by replacing each leaf by a nested tuple of equal size.

    Raises: AdmissibilityError: LA189.

    Example:
        >>> blocks_of((4, 6), ((2, 2), 6))
        ((2, 2), 6)
    """
    checked = check_extents(fine, argument)
    blocks: list[IntTuple] = []
    _match(coarse, checked, blocks, coarse, checked)
    return tuple(blocks)


def _match(coarse: IntTuple, fine: IntTuple, blocks: list[IntTuple], whole: IntTuple, whole_fine: IntTuple) -> None:
    if isinstance(coarse, int):
        if product(fine) != coarse:
            raise _no_refinement(whole, whole_fine, f"{shape_text(fine)} has {product(fine)} elements, not {coarse}")
        blocks.append(fine)
        return
    if isinstance(fine, int) or len(fine) != len(coarse):
        raise _no_refinement(
            whole, whole_fine, f"{shape_text(fine)} has not one entry for each entry of {shape_text(coarse)}"
        )
    for entry, part in zip(coarse, fine, strict=True):
        _match(entry, part, blocks, whole, whole_fine)


def _no_refinement(coarse: IntTuple, fine: IntTuple, because: str) -> AdmissibilityError:
    return AdmissibilityError(
        Diagnostic(
            code="LA189",
            what="the nested tuple is no refinement",
            where=(f"{shape_text(fine)} of {shape_text(coarse)}",),
            because=because,
            source=SOURCE,
        )
    )


def graft(profile: IntTuple, blocks: Iterable[IntTuple]) -> IntTuple:
    """Return ``profile`` with its leaves replaced from left to right.

    Example:
        >>> graft((0, (0,)), (5, (2, 3)))
        (5, ((2, 3),))
    """
    return _graft(profile, iter(blocks))


def _graft(profile: IntTuple, blocks: Iterator[IntTuple]) -> IntTuple:
    if isinstance(profile, int):
        return next(blocks)
    return tuple([_graft(entry, blocks) for entry in profile])


def reindex(mapping: Map, domain: Iterable[IntTuple], codomain: Iterable[IntTuple]) -> Map:
    """Return the pointed map between the leaves of blocks; a block goes to its image block leaf by leaf.

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


def not_composable(domain: IntTuple, codomain: IntTuple) -> AdmissibilityError:
    """Return the refusal of a composition whose middle objects differ."""
    return AdmissibilityError(
        Diagnostic(
            code="LA184",
            what="the morphisms do not compose",
            because=f"the inner codomain {shape_text(codomain)} is not the outer domain {shape_text(domain)}"
            + (
                "; they have equal sizes, weak_composite may refine both"
                if product(domain) == product(codomain)
                else ""
            ),
            source=SOURCE,
        )
    )


def operand_mismatch(call: str, left: str, actual: IntTuple, right: str, wanted: IntTuple) -> AdmissibilityError:
    """Return the refusal of a divide or product whose operands do not meet."""
    return AdmissibilityError(
        Diagnostic(
            code="LA602",
            what=f"{call} is not defined on these morphisms",
            because=f"the {left}, {shape_text(actual)}, is not the {right}, {shape_text(wanted)}",
            source=SOURCE,
        )
    )


def check_kind(value: object, kind: type[Kind], operation: str) -> Kind:
    """Return ``value`` if it is a morphism of the wanted class.

    Raises: MalformedError: LA604.
    """
    if isinstance(value, kind):
        return value
    hint = "; layoutalg.parse reads text" if isinstance(value, str) else ""
    raise MalformedError(
        Diagnostic(
            code="LA604",
            what="the operands do not belong together",
            where=(operation,),
            because=f"the operand must be a {kind.__name__}, not {shown(value)}{hint}",
        )
    )


def check_joint(codomain: IntTuple, mapping: Map, other_codomain: IntTuple, other: Map) -> None:
    """Refuse to join two morphisms whose codomains differ or whose images meet.

    Raises: AdmissibilityError: LA188.
    """
    because = ""
    if codomain != other_codomain:
        because = f"the codomains {shape_text(codomain)} and {shape_text(other_codomain)} differ"
    else:
        both = sorted(
            {entry for entry in mapping if entry is not None} & {entry for entry in other if entry is not None}
        )
        if both:
            because = f"both hit position {both[0]} of the codomain"
    if because:
        raise AdmissibilityError(Diagnostic(code="LA188", what="the morphisms cannot be joined", because=because))


def require_total(mapping: Map, where: str, side: str, problem: str) -> None:
    """Refuse a map that sends a position to the base point.

    Raises: AdmissibilityError: LA187.
    """
    if None in mapping:
        raise AdmissibilityError(
            Diagnostic(
                code="LA187",
                what="the inverse does not exist",
                where=(where,),
                because=f"position {mapping.index(None)} of the {side} {problem}",
                source=SOURCE,
            )
        )
