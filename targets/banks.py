"""Shared-memory banks by target and instruction: how many turns one access of a warp or wave takes.

Main statements: within a phase, lanes that touch the same word are served together and different words of one bank take
turns; phases are served one after the other. Targets and instructions differ in which lanes form a phase and in the
number of banks. Instructions whose phases are unpublished or disputed are refused.

References: NVIDIA: see ``nvidia.banks``, measured on an H200 and assumed for other chips (``Target.bank_grade``).
AMD: published by others, see ``lds_rules``; no AMD device was measured for this package.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from layoutalg.ground.errors import Diagnostic, MalformedError, Repair, RepresentabilityError, shown
from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets.lds_rules import (
    AMD_RULES,
    DISPUTED,
    PAIRED_RULES,
    WAVES,
    LdsRule,
    known_names,
    lds_name,
    unpublished,
)
from layoutalg.targets.nvidia import banks
from layoutalg.targets.nvidia.accesses import FORMS, VECTOR_RULE, available, vector_name
from layoutalg.targets.registry import TARGETS

_MATRIX = re.compile(
    r"(ld|st)matrix(?:\.sync)?(?:\.aligned)?(?:\.m8n8)?\.x([124])(\.trans)?(?:\.shared(?:::cta)?)?(?:\.b16)?"
)
__all__ = ["AMD_RULES", "Access", "LdsRule", "lds_rule", "nvidia_access", "turns", "unknown"]
_NAMES = "ld.shared.b32, ld.shared.v4.b32, st.shared.v2.b32, ldmatrix.x4, ldmatrix.x4.trans, stmatrix.x2, ..."


@dataclass(frozen=True, slots=True)
class Access:
    """A shared-memory instruction of NVIDIA.

    Args:
        kind: As in ``nvidia.banks.wavefronts``.
        bits: Bits accessed per address.
        matrices: Matrices of ``ldmatrix`` and ``stmatrix``, each with 8 addresses; 0 for loads and stores.
        transposed: Whether the instruction has ``.trans``.
    """

    kind: str
    bits: int
    matrices: int = 0
    transposed: bool = False

    def __post_init__(self) -> None:
        checked_kinds(self, "LA374")

    @property
    def addresses(self) -> int:
        """How many lanes supply an address."""
        return 8 * self.matrices or banks.LANES


def turns(target: str, operation: str, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> int:
    """Return the turns that shared memory needs for one instruction of a warp or wave.

    Args:
        target: ``"sm_90a"``, ``"gfx942"``, ...
        operation: The instruction's own name: ``"ld.shared.v4.b32"``, ``"st.shared.b16"``, ``"ldmatrix.x4"``,
            ``"ds_read_b128"``, ...
        byte_addresses: One byte address per lane, None for an inactive lane; for ``ldmatrix`` and ``stmatrix`` one per
            row: 8 for x1, 16 for x2, 32 for x4. Inactive lanes touch nothing.

    Raises: MalformedError: LA709. RepresentabilityError: LA712.

    Example:
        >>> turns("sm_90a", "ld.shared.v4.b32", [16 * lane for lane in range(32)])
        4
        >>> rows = [128 * (lane % 32) for lane in range(64)]
        >>> turns("sm_90a", "ldmatrix.x1", rows[:8]), turns("gfx942", "ds_read_b32", rows)
        (8, 64)

    Source: see the head of the file.
    """
    if not isinstance(target, str) or (target not in TARGETS and not target.startswith("gfx")):
        raise banks.malformed("target", f"must be one of {', '.join(TARGETS)}", target)
    if target.startswith("gfx"):
        return _lds_turns(target, operation, byte_addresses)
    access = nvidia_access(operation)
    missing(target, operation, access)
    if hasattr(byte_addresses, "__len__") and len(byte_addresses) != access.addresses:
        rule = f"must have {access.addresses} integers for {operation} (None for an inactive lane)"
        raise banks.malformed("byte_addresses", rule, f"{len(byte_addresses)} entries")
    offsets = offsets_of(target, operation, byte_addresses, access.bits // 8, access.addresses)
    return banks.wavefronts(offsets, access.bits, access.kind)


def missing(target: str, operation: str, access: Access) -> None:
    """Raise if an NVIDIA target lacks the instruction.

    Raises: RepresentabilityError: LA712.
    """
    form = FORMS.get(f"{access.kind}.x{access.matrices}") if access.matrices else None
    if form is not None and not available(form, target):
        raise unknown(target, operation, f"{target} has no {access.kind}")


def nvidia_access(operation: object) -> Access:
    """Return what a shared-memory instruction of PTX accesses.

    Raises: MalformedError: LA709.

    Example:
        >>> nvidia_access("st.shared.v2.b32")
        Access(kind='store', bits=64, matrices=0, transposed=False)
        >>> nvidia_access("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16")
        Access(kind='ldmatrix', bits=128, matrices=2, transposed=True)
    """
    text = operation if isinstance(operation, str) else ""
    if found := _MATRIX.fullmatch(text):
        return Access(f"{found[1]}matrix", 128, int(found[2]), bool(found[3]))
    if name := vector_name(text):
        return Access("store" if name.startswith("st") else "load", FORMS[name].row_bits)
    rule = f"PTX: {VECTOR_RULE}" if text.startswith(("ld.", "st.")) else _NAMES
    raise banks.malformed("operation", f"must be a shared-memory instruction ({rule})", operation)


def lds_rule(target: str, operation: object) -> LdsRule:
    """Return how LDS serves an instruction, given by its older or newer name (``ds_load_b64``).

    Raises: MalformedError: LA709. RepresentabilityError: LA712.

    Example:
        >>> lds_rule("gfx950", "ds_read_b64").banks, lds_rule("gfx942", "ds_read2_b64").lanes
        (64, 128)
    """
    name = lds_text(target, operation)
    rule = AMD_RULES.get((target, name)) or PAIRED_RULES.get((target, name))
    if rule is None:
        raise unknown(target, name, f"{unpublished(target, name)}; known for {target}: {_known(target)}")
    return rule


def _known(target: str) -> str:
    return ", ".join(known_names(target)) or "none"


def lds_text(target: str, operation: object) -> str:
    """Return the name of an LDS instruction.

    Raises: MalformedError: LA709. RepresentabilityError: LA712, for an instruction of another vendor.
    """
    name = lds_name(operation)
    if name is None and isinstance(operation, str) and operation.startswith(("ld", "st")):
        raise unknown(target, operation, f"{target} has no such instruction; known: {_known(target)}")
    if name is None:
        known = ", ".join(known_names(target if target in WAVES else "gfx942") or known_names("gfx942"))
        rule = f"must be an LDS instruction of 32, 64, 96 or 128 bits a lane ({known}, ...)"
        raise banks.malformed("operation", rule, operation)
    return name


def _lds_turns(target: str, operation: object, byte_addresses: object) -> int:
    name = lds_text(target, operation)
    if sides := DISPUTED.get((target, name)):
        both = "; ".join(f"{words}: {_taken(target, name, rule, byte_addresses)} turns" for words, rule in sides)
        raise unknown(target, name, f"{unpublished(target, name)}. For these addresses: {both}")
    return _taken(target, name, lds_rule(target, name), byte_addresses)


def _taken(target: str, name: str, rule: LdsRule, byte_addresses: object) -> int:
    grain = 4 if rule.access_bytes == 12 else rule.access_bytes
    offsets = offsets_of(target, name, byte_addresses, grain, rule.lanes)
    total = 0
    for phase in rule.phases:
        starts = [offset // 4 for lane in phase if (offset := offsets[lane]) is not None]
        words = {start + word for start in starts for word in range(rule.access_bytes // 4)}
        busy = [0] * rule.banks
        for word in words:
            busy[word % rule.banks] += 1
        total += max(busy)
    return total


_SMALLER = {16: ("ds_{0}2_b64", "ds_{0}_b64", "ds_{0}_b96", "ds_{0}_b32"), 8: ("ds_{0}_b32",)}
_PTX = {16: ("v2.b32", "b32"), 8: ("b32",), 4: ("b16", "b8"), 2: ("b8",)}
_TAKES = {"v2.b32": 8, "b32": 4, "b16": 2, "b8": 1}


def offsets_of(target: str, operation: str, byte_addresses: object, grain: int, lanes: int) -> banks.Offsets:
    """Return the addresses of all lanes, None for an inactive one.

    Raises: MalformedError: LA709, with narrower instructions that take the same addresses.

    Example:
        >>> offsets_of("gfx942", "ds_read_b128", [8 * lane for lane in range(64)], 16, 64)
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA709 invalid shared-memory access of a warp
          in     byte_addresses
          since  byte_addresses must be non-negative multiples of 16 below 2**62, not 8 in lane 1
          at     actual=8 in lane 1
          try    use ds_read2_b64: ds_read_b128 needs multiples of 16 bytes, ds_read2_b64 of 8
          try    use ds_read_b64: ds_read_b128 needs multiples of 16 bytes, ds_read_b64 of 8
    """
    try:
        return banks.checked_offsets(byte_addresses, grain, (lanes,), "byte_addresses")
    except MalformedError as error:
        repairs = []
        for name, takes in _narrower(target, operation, grain):
            try:
                banks.checked_offsets(byte_addresses, takes, (lanes,), "byte_addresses")
            except MalformedError:
                continue
            said = f"{operation} needs multiples of {grain} bytes, {name} of {takes}"
            repairs.append(Repair(f"use {name}", said))
        told = error.diagnostic
        raise MalformedError(dataclasses.replace(told, repairs=tuple(repairs[:2]))) from None


def _narrower(target: str, operation: str, grain: int) -> Iterator[tuple[str, int]]:
    """Yield narrower instructions of the same direction whose banks are known, with their address alignment."""
    if target in WAVES:
        direction = "write" if "write" in operation else "read"
        for pattern in _SMALLER.get(grain, ()):
            name = pattern.format(direction)
            rule = AMD_RULES.get((target, name)) or PAIRED_RULES.get((target, name))
            if rule is not None:
                yield name, 4 if rule.access_bytes == 12 else rule.access_bytes
    elif operation.startswith(("ld.", "st.")):
        for vector in _PTX.get(grain, ()):
            yield f"{operation[:2]}.shared.{vector}", _TAKES[vector]


def unknown(target: str, operation: object, because: str) -> RepresentabilityError:
    """Return the error for an instruction whose groups of lanes are not known."""
    what = "the turns of this access are not known"
    return RepresentabilityError(Diagnostic("LA712", what, (f"{target} {shown(operation)}",), because))
