"""Certificates of bank turns for shared-memory accesses of warps or waves, and of sectors for global ones.

In a statement an access is a target and an instruction; ``address`` maps lane + lanes * access to the lane's first
byte; ``turns`` is the total over all accesses, ``most`` the maximum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.normal import normal
from layoutalg.ground import clock
from layoutalg.ground.errors import Diagnostic, RepresentabilityError, shown
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import proved
from layoutalg.proofs.certify.functions import function
from layoutalg.proofs.certify.operands import check
from layoutalg.proofs.certify.stages import document
from layoutalg.proofs.checker.base import POINTS
from layoutalg.targets import banks
from layoutalg.targets.global_memory import instruction, touched
from layoutalg.targets.lds_rules import AMD_RULES, PAIRED_RULES, lds_name
from layoutalg.targets.registry import lookup, vendor_of

IntArray: TypeAlias = npt.NDArray[np.int64]


def bank_turns(target: str, operation: str, addresses: object) -> Certificate:
    """Return a certificate of the bank turns of accesses of warps or waves.

    Kind ``bank-turns``: all accesses take ``turns`` turns in total and at most ``most`` each; an access is
    conflict-free if it takes one turn per group of lanes.

    Args:
        target: ``"sm_90a"``, ``"gfx942"``, ...
        operation: The instruction name, as in ``layoutalg.targets.banks.turns``.
        addresses: Byte addresses, access after access, one per lane: integers, also as one row per access, or a layout
            of any family by flat coordinate.

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
        raise check.malformed("addresses", f"must be for whole accesses of {lanes} lanes", values.size)
    taken = []
    for each in values.reshape(-1, lanes):
        clock.check("a count of bank turns")
        taken.append(banks.turns(target, operation, each))
    statement = {"access": access, "address": document, "turns": sum(taken), "most": max(taken)}
    return proved("bank-turns", statement, [{}], f"bank_turns({access})")


def sectors_of(target: str, operation: str, addresses: object) -> Certificate:
    """Return a certificate of the sectors of 32 bytes that accesses to global memory touch, on NVIDIA.

    Kind ``bank-turns``: global memory is one bank, and each sector that an access touches takes one turn.

    Args:
        target: ``"sm_90a"``, ...
        operation: ``"ld.global.v4.b32"``, ``"cp.async.16"``, ...
        addresses: Byte addresses, access after access, one per lane; an inactive lane repeats an active one.

    Raises: MalformedError: LA435, LA982. RepresentabilityError: LA436, for another vendor.

    Example:
        >>> made = sectors_of("sm_90a", "ld.global.v4.b32", [4096 * lane for lane in range(32)])
        >>> made.check().certificate["claim"]
        '1 accesses touch 32 sectors, at most 32 each'

    Source: ``targets.global_memory``.
    """
    found = instruction(operation, target)
    if lookup(target).vendor != "nvidia":
        raise _unknown(target, operation, "only those of NVIDIA are certified")
    values = _integers(addresses, 2**61)
    if values.size % found.lanes:
        raise check.malformed("addresses", f"must be for whole accesses of {found.lanes} lanes", values.size)
    counts = touched(values.reshape(-1, found.lanes), found.bytes, found.sector_bytes)
    access = f"{target} {'st' if found.store else 'ld'}.global.b{found.bits}"
    total, most = int(counts.sum()), int(counts.max())
    statement = {"access": access, "address": document(values), "turns": total, "most": most}
    return proved("bank-turns", statement, [{}], f"sectors_of({access})")


def least_turns(
    accesses: Sequence[tuple[str, str, object]],
    turns: int,
    layouts: Sequence[object] | None = None,
    first: int | None = None,
) -> Certificate:
    """Return a certificate that accesses take no fewer turns with any of some layouts, or with any placement.

    Kind ``least-turns``: of the layouts that align all lanes, ``first`` is the first with the fewest total turns,
    ``turns``. Without layouts: no placement of the cells without overlap, each cell having a lane's bytes, takes fewer
    than ``turns``.

    Args:
        accesses: Target, instruction and each lane's first cell, integers [instruction, lane], -1 for inactive lanes.
        turns: The fewest turns.
        layouts: Stages from a cell to its byte, as listed in ``proofs/checker/base.py``; None for any placement.
        first: The first layout with ``turns``; None for any placement.

    Raises: MalformedError: LA435. RepresentabilityError: LA436: the turns were not measured. AdmissibilityError: LA427:
        the minimum is not ``turns``.

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
            rule = f"must be cells of whole accesses of {lanes} lanes, at least one active"
            raise check.malformed("accesses", rule, cells.size)
        moved.append([name, document(cells.astype(np.int64))])
        count += cells.size
    if not moved or (layouts is not None and not layouts):
        raise check.malformed("accesses", "must not be empty, and neither must layouts", len(moved))
    statement: dict[str, object] = {"moved": moved, "turns": turns}
    if layouts is not None:
        statement |= {"layouts": list(layouts), "first": first}
    return proved("least-turns", statement, [{}], f"least_turns of {count} starts")


def measured_access(target: object, operation: object) -> tuple[str, int]:
    """Return the checker's name of an access, and its lanes.

    Example:
        >>> measured_access("sm_90a", "ld.shared.v4.b32")
        ('sm_90a ld.shared.b128', 32)
    """
    if isinstance(target, str) and vendor_of(target) == "amd":
        name = lds_name(operation) or ""
        rule = AMD_RULES.get((target, name)) or PAIRED_RULES.get((target, name))
        if rule is None:
            raise _unknown(target, operation, "its lane groups are neither measured nor documented")
        return f"{target} {name}", rule.lanes
    found = lookup(str(target))
    access = banks.nvidia_access(operation)
    if not found.measured:
        raise _unknown(target, operation, f"{found.arch} was not measured")
    plain = {"load": "ld", "store": "st"}.get(access.kind)
    name = f"{plain}.shared.b{access.bits}" if plain else f"{access.kind}.x{access.matrices}"
    return f"{found.arch} {name}", access.addresses


def _addresses(given: object) -> tuple[IntArray, object]:
    """Return the byte addresses in order, and as a function for the checker."""
    layout = normal(given)
    if layout is not None:
        found = function(layout, "addresses")
        if found.outputs != 1 or found.size is None or found.size > POINTS:
            rule = f"must have one output and at most {POINTS} points"
            raise check.malformed("addresses", rule, f"{found.outputs} outputs, {found.size} points")
        return np.asarray(layout.table(), dtype=np.int64).reshape(-1), found.document()
    values = _integers(given)
    return values, document(values)


def _integers(given: object, limit: int = 2**32) -> IntArray:
    power = limit.bit_length() - 1
    rule = f"must be a layout, or integers below 2^{power} for all lanes (inactive lanes are not supported)"
    try:
        array = np.asarray(given)
    except (TypeError, ValueError, OverflowError):
        raise check.malformed("addresses", rule, type(given).__name__) from None
    if array.dtype.kind not in "iu" or not array.size or array.size > POINTS or int(array.max()) >= limit:
        raise check.malformed("addresses", rule, shown(given))
    return array.astype(np.int64).reshape(-1)


def _unknown(target: object, operation: object, because: str) -> RepresentabilityError:
    what = "the turns of this access cannot be certified"
    return RepresentabilityError(Diagnostic("LA436", what, (f"{shown(target)} {shown(operation)}",), because))
