"""Certificates of bank turns: how many turns shared memory needs for the accesses of warps or waves.

Notation: in a statement an access is a target and an instruction; ``address`` takes lane + lanes * access to the byte
where that lane starts; ``turns`` are those of all accesses, ``most`` those of the worst.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.normal import normal
from layoutalg.ground import clock
from layoutalg.ground.errors import Diagnostic, RepresentabilityError, shown
from layoutalg.ground.recognize import Departure, linear, strided
from layoutalg.proofs import checker
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import proved
from layoutalg.proofs.certify.functions import Function, function
from layoutalg.proofs.certify.operands import check
from layoutalg.targets import banks
from layoutalg.targets.lds_rules import AMD_RULES, PAIRED_RULES, lds_name
from layoutalg.targets.registry import lookup, vendor_of

IntArray: TypeAlias = npt.NDArray[np.int64]


def bank_turns(target: str, operation: str, addresses: object) -> Certificate:
    """Return a certificate of the turns that shared memory needs for accesses of warps or waves.

    Mathematically: kind ``bank-turns``: all accesses together take ``turns`` turns, the worst of them ``most``; an
    access is free of conflicts where it takes one turn for each of its groups of lanes.

    Args:
        target: ``"sm_90a"``, ``"gfx942"``, ...
        operation: The instruction's own name, as in ``layoutalg.targets.banks.turns``.
        addresses: Byte addresses, all lanes of one access after the other: integers, also one row for each access; or a
            layout of any family, by flat coordinate.

    Raises: MalformedError: LA435, LA426, LA709. RepresentabilityError: LA436: the turns were not measured; LA712.

    Example:
        >>> import layoutalg as la
        >>> made = bank_turns("sm_90a", "ld.shared.v4.b32", la.parse("(32,4):(144,16)"))
        >>> print(made.statement["access"], made.check().certificate["claim"])
        sm_90a ld.shared.b128 4 accesses take 16 turns, at most 4 each
        >>> bank_turns("gfx942", "ds_read_b32", [128 * (lane % 32) for lane in range(64)]).statement["turns"]
        64
        >>> worst = la.banks(la.parse("(32,2):(2,1)"), "(2,32):(32,1)", 32).worst  # the access that a report points at
        >>> bank_turns("sm_90a", worst.instruction, worst.addresses_bytes).statement["turns"] == worst.turns
        True

    Source: ``targets.banks``.
    """
    access, lanes = measured_access(target, operation)
    values, document = _addresses(addresses)
    if not values.size or values.size % lanes:
        raise check.malformed("addresses", f"must be those of whole accesses, {lanes} lanes each", values.size)
    taken = []
    for each in values.reshape(-1, lanes):
        clock.check("a count of bank turns")
        taken.append(banks.turns(target, operation, each))
    statement = {"access": access, "address": document, "turns": sum(taken), "most": max(taken)}
    return proved("bank-turns", statement, [{}], f"bank_turns({access})")


def least_turns(
    accesses: Sequence[tuple[str, str, object]],
    turns: int,
    layouts: Sequence[object] | None = None,
    first: int | None = None,
) -> Certificate:
    """Return a certificate that accesses take no fewer turns behind any of some layouts, or wherever their cells lie.

    Mathematically: kind ``least-turns``: of the layouts that align all lanes, ``first`` is the first with the fewest
    turns of all accesses together, ``turns``. Without layouts: no places of the cells, each of which holds the bytes of
    a lane and shares none with another, let the accesses take fewer than ``turns``.

    Args:
        accesses: Target, instruction and the cell where each lane starts, integers [instruction, lane], -1 where a lane
            is inactive.
        turns: The fewest turns.
        layouts: Stages from a cell to its byte, as ``layoutalg/proofs/checker.py`` lists them; None for all places.
        first: The first layout with so many; None for all places.

    Raises: MalformedError: LA435. RepresentabilityError: LA436: the turns were not measured. AdmissibilityError: LA427:
        others take fewer, or more.

    Example:
        >>> column = [32 * lane for lane in range(32)]  # of a tile of 32 x 32 words, row by row
        >>> pitches = [[["split", [32, 32]], ["affine", [[4, 4 * pitch]], [0]]] for pitch in range(32, 40)]
        >>> made = least_turns([("sm_90a", "ld.shared.b32", column)], 1, pitches, 1)
        >>> made.check().certificate["claim"]
        'none of 8 layouts takes fewer than 1 turns'
        >>> print(least_turns([("gfx942", "ds_read_b32", [2 * lane for lane in range(64)])], 2).check())
        proved        no places of cells take fewer than 2 turns
          by          checker

    Source: ``targets.banks``.
    """
    moved, count = [], 0
    for target, operation, given in accesses:
        name, lanes = measured_access(target, operation)
        cells = np.asarray(given).reshape(-1)
        if cells.dtype.kind not in "iu" or not cells.size or cells.size % lanes or cells.min() < -1 or cells.max() < 0:
            rule = f"must be the cells of whole accesses, {lanes} lanes each, with an active lane"
            raise check.malformed("accesses", rule, cells.size)
        moved.append([name, document(cells.astype(np.int64))])
        count += cells.size
    if not moved or (layouts is not None and not layouts):
        raise check.malformed("accesses", "must be at least one, and the layouts too", len(moved))
    statement: dict[str, object] = {"moved": moved, "turns": turns}
    if layouts is not None:
        statement |= {"layouts": list(layouts), "first": first}
    return proved("least-turns", statement, [{}], f"least_turns of {count} starts")


def measured_access(target: object, operation: object) -> tuple[str, int]:
    """Return the access by the checker's name for it, and its lanes.

    Raises: MalformedError: LA340, LA709. RepresentabilityError: LA436.

    Example:
        >>> measured_access("sm_90a", "ld.shared.v4.b32")
        ('sm_90a ld.shared.b128', 32)
    """
    if isinstance(target, str) and vendor_of(target) == "amd":
        name = lds_name(operation) or ""
        rule = AMD_RULES.get((target, name)) or PAIRED_RULES.get((target, name))
        if rule is None:
            raise _unknown(target, operation, "nobody published which lanes it serves together")
        return f"{target} {name}", rule.lanes
    found = lookup(str(target))
    access = banks.nvidia_access(operation)
    if not found.measured:
        raise _unknown(target, operation, f"no {found.arch} was measured")
    plain = {"load": "ld", "store": "st"}.get(access.kind)
    name = f"{plain}.shared.b{access.bits}" if plain else f"{access.kind}.x{access.matrices}"
    return f"{found.arch} {name}", access.addresses


def _addresses(given: object) -> tuple[IntArray, object]:
    """Return the byte addresses in order, and the function that they are for the checker."""
    layout = normal(given)
    if layout is not None:
        found = function(layout, "addresses")
        if found.outputs != 1 or found.size is None or found.size > checker.POINTS:
            rule = f"must have one output and at most {checker.POINTS} points"
            raise check.malformed("addresses", rule, f"{found.outputs} outputs, {found.size} points")
        return np.asarray(layout.table(), dtype=np.int64).reshape(-1), found.document()
    values = _integers(given)
    return values, document(values)


def _integers(given: object) -> IntArray:
    rule = "must be a layout, or integers below 2^32 for all lanes (a claim names no inactive ones)"
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        raise check.malformed("addresses", rule, type(given).__name__) from None
    if array.dtype.kind not in "iu" or not array.size or array.size > checker.POINTS or int(array.max()) >= 2**32:
        raise check.malformed("addresses", rule, shown(given))
    return array.astype(np.int64).reshape(-1)


def document(values: IntArray) -> object:
    """Return digits and strides, columns over F2 or the table: the first that is the function."""
    size, first = len(values), int(values[0])
    modes = strided(values)
    if not isinstance(modes, Departure) and modes:
        extents, strides = ([digit[part] for digit in modes] for part in (0, 1))
        return Function([["split", extents], ["affine", [strides], [first]]], size).document()
    bits = size.bit_length() - 1
    columns = linear(values) if size == 1 << bits and int(values.min()) >= 0 else None
    if columns is not None and not isinstance(columns, Departure):
        return Function([["xor", list(columns[0]), columns[1]]], size).document()
    return Function([["table", values.tolist()]], size).document()


def _unknown(target: object, operation: object, because: str) -> RepresentabilityError:
    what = "the turns of this access have no certificate"
    return RepresentabilityError(Diagnostic("LA436", what, (f"{shown(target)} {shown(operation)}",), because))
