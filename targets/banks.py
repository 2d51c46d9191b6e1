"""Shared-memory banks by target and instruction: how many turns one access of a warp or wave takes.

Main statements: lanes are served in groups, one group (phase) after the other; within a group, lanes that touch one
word are served together and different words of one bank take turns, so a group takes as many turns as its busiest bank
has different words. Targets and instructions differ in the groups and in the number of banks; instructions whose groups
are unpublished or disputed are refused. With all lanes active the groups of every known instruction are the cosets of
one F2 space of lane numbers. Under a linear layout all groups therefore take equally many turns,
``2 ** (rank W - rank K)``, where W and K are the words and the banks that the space and the bytes of one lane reach.

References: NVIDIA: see ``nvidia.banks``, measured on an H200 and assumed for other chips (``Target.bank_grade``). AMD:
published by others, see ``lds_rules``; no AMD device was measured for this package. The rank form is arXiv 2505.23819,
section 5.4, extended to words of any size, broadcasts and groups of non-consecutive lanes.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError, Repair, RepresentabilityError, shown
from layoutalg.targets import bank_counting
from layoutalg.targets.bank_counting import BANKS, JOINS, WORD_BYTES, Offsets
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
from layoutalg.targets.model import fact
from layoutalg.targets.nvidia import banks
from layoutalg.targets.nvidia.accesses import FORMS, VECTOR_RULE, available, vector_name
from layoutalg.targets.registry import TARGETS, grade_in_words, lookup, vendor_of

_MATRIX = re.compile(
    r"(ld|st)matrix(?:\.sync)?(?:\.aligned)?(?:\.m8n8)?\.x([124])(\.trans)?(?:\.shared(?:::cta)?)?(?:\.b16)?"
)
__all__ = [
    "AMD_RULES", "Access", "BankModel", "LdsRule", "Phase", "bank_model", "disputed_models", "lds_rule",
    "nvidia_access", "turns", "unknown",
]  # fmt: skip
CHECK = Checker("LA905", "invalid shared-memory access")
_NAMES = "ld.shared.b32, ld.shared.v4.b32, st.shared.v2.b32, ldmatrix.x4, ldmatrix.x4.trans, stmatrix.x2, ..."


@fact("LA374")
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

    Example:
        >>> turns("sm_90a", "ld.shared.v4.b32", [16 * lane for lane in range(32)])
        4
        >>> rows = [128 * (lane % 32) for lane in range(64)]
        >>> turns("sm_90a", "ldmatrix.x1", rows[:8]), turns("gfx942", "ds_read_b32", rows)
        (8, 64)
    """
    if not isinstance(target, str) or (target not in TARGETS and vendor_of(target) != "amd"):
        raise banks.malformed("target", f"must be one of {', '.join(TARGETS)}", target)
    if vendor_of(target) == "amd":
        name = lds_text(target, operation)
        if sides := disputed_models(target, name):
            both = "; ".join(f"{says}: {model.turns(byte_addresses)} turns" for says, model in sides)
            raise unknown(target, name, f"{unpublished(target, name)}. For these addresses: {both}")
        lds_rule(target, name)
    return _model(target, operation).turns(byte_addresses)


@fact("LA905")
class Phase:
    """Bank conflicts of one group of lanes.

    Args:
        lanes: The active lanes of the group.
        turns: Turns it takes.
        least: Turns if its distinct words were spread evenly.
        bank: The busiest bank; the first one on ties.
        busy: The lanes that touch that bank, each with the first word it touches there.
    """

    lanes: tuple[int, ...]
    turns: int
    least: int
    bank: int
    busy: tuple[tuple[int, int], ...]


@fact("LA905")
class BankModel:
    """How one instruction of one target is served.

    Args:
        target: ``"sm_90a"``, ``"gfx942"``, ...
        operation: The instruction's own name.
        lanes: Number of lanes that supply an address.
        banks: Number of banks of 4 bytes.
        access_bytes: Bytes accessed per address.
        groups: Lanes that are served together when all are active.
        joins: Steps s: neighbouring groups merge if every lane shares its address with lane ^ s.
        evidence: ``"measured"``, ``"documented"``, or ``"assumed"``: measured on another NVIDIA chip.

    Example:
        >>> model = bank_model("gfx942", "ds_read_b128")
        >>> model.space, model.turns([16 * lane for lane in range(64)])
        ((1, 2, 20), 8)
    """

    target: str
    operation: str
    lanes: int
    banks: int
    access_bytes: int
    groups: tuple[tuple[int, ...], ...]
    joins: tuple[int, ...]
    evidence: str

    def __str__(self) -> str:
        size = f"{self.access_bytes} byte{'s' if self.access_bytes > 1 else ''}"
        groups = f"{len(self.groups)} group{'s' if len(self.groups) > 1 else ''} of {len(self.groups[0])} lanes"
        return f"{self.operation} of {self.target}: {size} a lane, {groups}, {self.banks} banks ({self.basis})"

    @property
    def basis(self) -> str:
        """The evidence in words; for assumed groups, where they were measured."""
        return grade_in_words(self.evidence, self.target)

    @property
    def space(self) -> tuple[int, ...]:
        """A basis of the F2 space of lane numbers whose cosets are the groups."""
        found: list[int] = []
        reached = {0}
        for lane in self.groups[0]:
            if lane ^ self.groups[0][0] not in reached:
                found.append(lane ^ self.groups[0][0])
                reached |= {other ^ found[-1] for other in reached}
        return tuple(found)

    @property
    def grain_bytes(self) -> int:
        """Required address alignment: the access size, but 4 for 12-byte accesses."""
        return WORD_BYTES if self.access_bytes == 12 else self.access_bytes

    def phases(self, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> tuple[Phase, ...]:
        """Return the bank conflicts of every group that has an active lane, in order.

        Args:
            byte_addresses: One byte address per lane, None for an inactive lane.
        """
        offsets = offsets_of(self.target, self.operation, byte_addresses, self.grain_bytes, self.lanes)
        groups = self.groups
        if bank_counting.merged(*bank_counting.arrays(offsets), self.joins).any():
            groups = tuple(sum(groups[first : first + 2], ()) for first in range(0, len(groups), 2))
        found = []
        for group in groups:
            active = tuple(lane for lane in group if offsets[lane] is not None)
            if active:
                taken = bank_counting.touched(offsets, active, self.access_bytes, self.banks)
                turns = max(map(len, taken))
                bank = next(bank for bank, words in enumerate(taken) if len(words) == turns)
                first = {lane: word for word, lanes in reversed(taken[bank].items()) for lane in lanes}
                busy = tuple(sorted(first.items()))
                found.append(Phase(active, turns, -(-sum(map(len, taken)) // self.banks), bank, busy))
        return tuple(found)

    def turns(self, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> int:
        """Return the turns of all groups together, as ``targets.banks.turns`` counts them."""
        return sum(phase.turns for phase in self.phases(byte_addresses))

    def ideal(self, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> int:
        """Return the turns if the words of every group were spread evenly over the banks."""
        return sum(phase.least for phase in self.phases(byte_addresses))

    def group_turns(
        self, addresses: npt.NDArray[np.int64], active: npt.NDArray[np.bool_] | None = None
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the turns of each group of many instructions, and those if its words were spread evenly.

        Args:
            addresses: Byte addresses, int64[instruction, lane].
            active: Which lanes are active, bool[instruction, lane]; None: all.

        Returns:
            Two arrays int64[instruction, group]; of merged groups the second has no turns.

        Example:
            >>> turns, least = bank_model("gfx942", "ds_read_b32").group_turns(4 * np.array([[1], [2]]) * np.arange(64))
            >>> turns.tolist(), least.tolist()
            ([[1, 1], [2, 2]], [[1, 1], [1, 1]])
        """
        if not isinstance(addresses, np.ndarray) or addresses.shape[1:] != (self.lanes,):
            raise CHECK.malformed("addresses", f"must be int64[instruction, {self.lanes}]", np.shape(addresses))
        alive = np.ones(addresses.shape, dtype=bool) if active is None else active
        inside = (addresses >= 0) & (addresses < 1 << 62) & (addresses % self.grain_bytes == 0)
        for place in np.flatnonzero(~(inside | ~alive).all(axis=1))[:1].tolist():
            lanes = zip(addresses[place].tolist(), alive[place].tolist(), strict=True)
            self.phases([each if here else None for each, here in lanes])  # refuses the first wrong address
        return bank_counting.group_turns(self.groups, self.joins, self.access_bytes, self.banks, addresses, alive)

    def totals(self, addresses: npt.NDArray[np.int64], active: npt.NDArray[np.bool_] | None = None) -> tuple[int, int]:
        """Return the sums of both arrays of ``group_turns``."""
        turns, least = self.group_turns(addresses, active)
        return int(turns.sum()), int(least.sum())


@lru_cache(maxsize=256)
def _model(target: str, operation: str) -> BankModel:
    if target in WAVES:
        return _amd(target, lds_text(target, operation), lds_rule(target, operation))
    evidence, access = lookup(target), nvidia_access(operation)
    missing(target, operation, access)
    groups = bank_counting.groups(access.addresses, access.bits)
    joins = JOINS if access.kind == "load" and access.bits > 32 else ()
    grade = evidence.bank_grade(bool(access.matrices) or access.bits > 8 * WORD_BYTES)
    return BankModel(target, operation, access.addresses, BANKS, access.bits // 8, groups, joins, grade)


def _amd(target: str, operation: str, rule: LdsRule) -> BankModel:
    return BankModel(target, operation, rule.lanes, rule.banks, rule.access_bytes, rule.phases, (), rule.evidence)


def disputed_models(target: str, operation: str) -> tuple[tuple[str, BankModel], ...]:
    """Return each source's claim and model for a disputed AMD instruction; () if it is undisputed.

    Example:
        >>> [(says, model.banks) for says, model in disputed_models("gfx950", "ds_read_b32")]
        [('64 banks serve the whole wave (guide)', 64), ('32 banks serve 32 lanes at a time (rocRoller)', 32)]
    """
    sides = DISPUTED.get((target, operation), ())
    return tuple((says, _amd(target, operation, rule)) for says, rule in sides)


def bank_model(target: str, operation: str) -> BankModel:
    """Return how the banks of a target serve an instruction.

    Args:
        target: ``"sm_90a"``, ``"gfx942"``, ...
        operation: The instruction's own name: ``"ld.shared.v4.b32"``, ``"ldmatrix.x4"``, ``"ds_read_b128"``, ...;
            ``"ds_read2_b64"`` has 128 addresses, all first ones and then all second ones.

    Raises: MalformedError: LA340, LA709. RepresentabilityError: LA712, if the groups are not published.

    Example:
        >>> print(bank_model("sm_90a", "ld.shared.v2.b32"))
        ld.shared.v2.b32 of sm_90a: 8 bytes a lane, 2 groups of 16 lanes, 32 banks (measured)

    """
    return _model(CHECK.kind(target, str, "target"), CHECK.kind(operation, str, "operation"))


def missing(target: str, operation: str, access: Access) -> None:
    """Raise if an NVIDIA target lacks the instruction."""
    form = FORMS.get(f"{access.kind}.x{access.matrices}") if access.matrices else None
    if form is not None and not available(form, target):
        raise unknown(target, operation, f"{target} has no {access.kind}")


def nvidia_access(operation: object) -> Access:
    """Return what a shared-memory instruction of PTX accesses.

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


_SMALLER = {16: ("ds_{0}2_b64", "ds_{0}_b64", "ds_{0}_b96", "ds_{0}_b32"), 8: ("ds_{0}_b32",)}
_PTX = {16: ("v2.b32", "b32"), 8: ("b32",), 4: ("b16", "b8"), 2: ("b8",)}
_TAKES = {"v2.b32": 8, "b32": 4, "b16": 2, "b8": 1}


def offsets_of(target: str, operation: str, byte_addresses: object, grain: int, lanes: int) -> Offsets:
    """Return the addresses of all lanes, None for an inactive one.

    Raises: MalformedError: LA709, with narrower instructions that take the same addresses.

    Example:
        >>> offsets_of("gfx942", "ds_read_b128", [8 * lane for lane in range(64)], 16, 64)
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA709 invalid shared-memory access of a warp
          in     byte_addresses
          since  byte_addresses must be non-negative multiples of 16 below 2**62, not 8 in lane 1
          try    use ds_read2_b64: ds_read_b128 needs multiples of 16 bytes, ds_read2_b64 of 8
          try    use ds_read_b64: ds_read_b128 needs multiples of 16 bytes, ds_read_b64 of 8
    """
    each = "all first ones of the lanes and then all second ones" if "2_b" in operation else "one per lane"
    try:
        return banks.checked_offsets(byte_addresses, grain, (lanes,), "byte_addresses", each)
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
