"""Shared-memory banks by target and instruction: how many turns one access of a warp or wave takes.

Main statements: lanes are served in groups, one group (phase) after the other; within a group, lanes that touch one
word are served together and different words of one bank take turns, so a group takes as many turns as its busiest bank
has different words. Targets and instructions differ in the groups and in the number of banks; instructions whose groups
are unpublished or disputed are refused. With all lanes active the groups of every known instruction are the cosets of
one F2 space of lane numbers. Under a linear layout all groups therefore take equally many turns,
``2 ** (rank W - rank K)``, where W and K are the words and the banks that the space and the bytes of one lane reach.

For lane i at byte b + s i, where every lane accesses v bytes (a power of two, at least a word) and s is 0 or a multiple
of v: two lanes meet in a bank iff they are congruent modulo p = M / gcd(M, s / v), M = 4 B / v, and then they collide
in every word of the access. So a group takes as many turns as it has lanes in its fullest residue class modulo p,
whatever b is. Elements narrower than a word behave like words if s is a multiple of 4; with steps below a word the
lanes touch every word from the first to the last, which takes ceil(words / B) turns.

References: NVIDIA: see ``nvidia.banks``, measured on an H200 and assumed for other chips (``Target.bank_grade``). AMD:
published by others, see ``lds_rules``; no AMD device was measured for this package. The rank form is arXiv 2505.23819,
section 5.4, extended to words of any size, broadcasts and groups of non-consecutive lanes.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.f2.axes import fields
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError, Repair, RepresentabilityError, shown
from layoutalg.ground.recognize import Departure, linear
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
    "AMD_RULES", "ENGINES", "Access", "BankModel", "Counted", "LdsRule", "Phase", "bank_model", "counted",
    "disputed_models", "lds_rule", "nvidia_access", "residues", "turns", "unknown",
]  # fmt: skip
CHECK = Checker("LA905", "invalid shared-memory access")
ENGINES = ("ranks", "residues", "enumeration")
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

    def joined(self, offsets: Offsets) -> tuple[tuple[int, ...], ...]:
        """Return the groups for these addresses (None for an inactive lane)."""
        if not any(bank_counting.shared(offsets, step) for step in self.joins):
            return self.groups
        return tuple(sum(self.groups[first : first + 2], ()) for first in range(0, len(self.groups), 2))

    def phases(self, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> tuple[Phase, ...]:
        """Return the bank conflicts of every group that has an active lane, in order.

        Args:
            byte_addresses: One byte address per lane, None for an inactive lane.
        """
        offsets = offsets_of(self.target, self.operation, byte_addresses, self.grain_bytes, self.lanes)
        found = []
        for group in self.joined(offsets):
            active = tuple(lane for lane in group if offsets[lane] is not None)
            if active:
                taken = bank_counting.touched(offsets, active, self.access_bytes, self.banks)
                turns = max(map(len, taken))
                bank = next(bank for bank, words in enumerate(taken) if len(words) == turns)
                busy = []
                for lane in active:
                    words = bank_counting.words(offsets[lane] or 0, self.access_bytes)
                    busy += [(lane, word) for word in words if word % self.banks == bank][:1]
                found.append(Phase(active, turns, -(-sum(map(len, taken)) // self.banks), bank, tuple(busy)))
        return tuple(found)

    def turns(self, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> int:
        """Return the turns of all groups together, as ``targets.banks.turns`` counts them."""
        return sum(phase.turns for phase in self.phases(byte_addresses))

    def ideal(self, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> int:
        """Return the turns if the words of every group were spread evenly over the banks."""
        return sum(phase.least for phase in self.phases(byte_addresses))

    def alike(self, addresses: npt.NDArray[np.int64], active: npt.NDArray[np.bool_] | None = None) -> list[int]:
        """Return for every row of addresses the first row that provably takes the same number of turns.

        Two transformations map words to words and banks to banks: a shift by whole words and, for accesses of a power
        of two of bytes, an XOR with a multiple of the access size (at least a word).

        Args:
            addresses: Byte addresses, int64[row, lane].
            active: Which lanes are active, bool[row, lane]; None: all.

        Example:
            >>> lanes = 4 * np.arange(32)
            >>> bank_model("sm_90a", "ld.shared.b32").alike(np.array([lanes, lanes + 8, lanes ^ 8, 2 * lanes]))
            [0, 0, 0, 3]
        """
        alive = np.ones(addresses.shape, dtype=bool) if active is None else active
        least = np.where(alive, addresses, np.iinfo(np.int64).max).min(axis=1)
        moved = [np.where(alive, addresses - (least & -WORD_BYTES)[:, None], -1)]
        if self.access_bytes != 12:
            unit = max(WORD_BYTES, self.access_bytes)
            start = addresses[np.arange(len(addresses)), alive.argmax(axis=1)] & -unit
            moved.append(np.where(alive, addresses ^ start[:, None], -1))
        known: list[dict[bytes, int]] = [{} for _ in moved]
        found = []
        for place, rows in enumerate(zip(*moved, strict=True)):
            keys = [row.tobytes() for row in rows]
            found.append(next((seen[key] for key, seen in zip(keys, known, strict=True) if key in seen), place))
            for key, seen in zip(keys, known, strict=True):
                seen.setdefault(key, found[-1])
        return found

    def totals(self, addresses: npt.NDArray[np.int64], active: npt.NDArray[np.bool_] | None = None) -> tuple[int, int]:
        """Return the total turns of many instructions, and the total if words were spread evenly over the banks.

        Args:
            addresses: Byte addresses, int64[instruction, lane].
            active: Which lanes are active, bool[instruction, lane]; None: all.

        Example:
            >>> bank_model("gfx942", "ds_read_b32").totals(np.array([4 * np.arange(64), 8 * np.arange(64)]))
            (6, 4)
        """
        inside = (addresses >= 0) & (addresses < 1 << 62) & (addresses % self.grain_bytes == 0)
        outside = np.flatnonzero(~(inside if active is None else inside | ~active).all(axis=1))
        turns = ideal = 0
        for place, many in Counter([*outside[:1].tolist(), *self.alike(addresses, active)]).items():
            row = addresses[place].tolist()
            if active is not None:
                row = [each if alive else None for each, alive in zip(row, active[place].tolist(), strict=True)]
            phases = self.phases(row)
            turns += many * sum(phase.turns for phase in phases)
            ideal += many * sum(phase.least for phase in phases)
        return turns, ideal

    def layout_turns(self, access: LinearLayout, element_bits: int) -> int:
        """Return the turns of one instruction whose addresses form a linear layout, by ranks.

        Args:
            access: (lane) or (register, lane) to element offsets, output axes flattened; registers are the contiguous
                elements of one lane, and the lanes are this instruction's.
            element_bits: Bits of an element.

        Example:
            >>> rows = LinearLayout.from_bases({"lane": [(64 << bit,) for bit in range(6)]}, {"offset": 4096})
            >>> bank_model("gfx942", "ds_read_b128").layout_turns(rows, 16)
            64
        """
        CHECK.kind(access, LinearLayout, "access")
        bits = CHECK.integer(element_bits, "element_bits")
        if access.in_dims.get("lane", 1) != self.lanes or set(access.in_dims) - {"register", "lane"}:
            raise CHECK.malformed("access", f"must map {self.lanes} lanes (and registers)", str(access.in_dims))
        columns: dict[str, list[int]] = {}
        for name, first, count in fields(access.in_axes):
            columns[name] = list(access.columns[first : first + count])
        lane = [bits * column for column in columns.get("lane", ())]  # bits are a power of two: a shift
        grain = self.grain_bytes
        if bits & (bits - 1) or any(column % (8 * grain) for column in (*lane, bits * access.constant)):
            rule = f"must give multiples of {grain} bytes, and the element width must be a power of two"
            raise CHECK.malformed("access", rule, f"{bits}-bit elements at {lane}")
        return self.ranks([column >> 3 for column in lane], bits * access.constant >> 3)[0]

    def ranks(self, lanes: Sequence[int], start: int = 0) -> tuple[int, int]:
        """Return the turns, and the conflict-free turns, if lane numbers map to bytes linearly over F2.

        Args:
            lanes: The byte that each bit of the lane number contributes, multiples of ``grain_bytes``.
            start: The byte of lane 0.

        Example:
            >>> bank_model("gfx942", "ds_read_b128").ranks([128 << bit for bit in range(6)])
            (64, 8)
        """
        if self.access_bytes == 12:  # three words of one lane do not span a space
            offsets = [start ^ matrix.apply(lanes, number) for number in range(self.lanes)]
            return self.turns(offsets), self.ideal(offsets)
        images = [matrix.apply(lanes, step) for step in self.space]
        joined = any(lanes[bit] == 0 for bit in range(len(lanes)) if 1 << bit in self.joins)
        if joined and len(self.groups) > 1:
            images.append(matrix.apply(lanes, self.groups[1][0] ^ self.groups[0][0]))
        groups = -(-len(self.groups) >> joined)
        degree, ideal = bank_counting.degree(images, self.access_bytes, self.banks)
        return groups * degree, groups * ideal


@lru_cache(maxsize=256)
def _model(target: str, operation: str) -> BankModel:
    if target in WAVES:
        return _amd(target, lds_text(target, operation), lds_rule(target, operation))
    evidence, access = lookup(target), nvidia_access(operation)
    missing(target, operation, access)
    groups = bank_counting.groups([0] * access.addresses, access.bits)
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


@fact("LA905")
class Counted:
    """Bank turns of one instruction.

    Args:
        turns: Turns of all groups.
        ideal: Turns if the words of every group were spread evenly over the banks.
        engine: ``"ranks"``, ``"residues"`` or ``"enumeration"``.
    """

    turns: int
    ideal: int
    engine: str


def residues(model: BankModel, stride_bytes: int, base_bytes: int = 0) -> Counted | None:
    """Return the turns for lane i at base + stride * i, by residues; None if no closed form is implemented.

    Args:
        model: The instruction.
        stride_bytes: A multiple of ``model.grain_bytes``; if negative, ``base_bytes`` must be high enough.
        base_bytes: Byte of lane 0, a multiple of the same.

    Example:
        >>> [residues(bank_model("gfx942", "ds_read_b128"), stride).turns for stride in (0, 16, 48, 80, 128)]
        [8, 8, 8, 8, 64]
    """
    stride = CHECK.integer(stride_bytes, "stride_bytes", -(2**56), 2**56)
    base = CHECK.integer(base_bytes, "base_bytes", 0, 2**61)
    if stride % model.grain_bytes or base % model.grain_bytes:
        rule = f"must be a multiple of {model.grain_bytes} bytes for {model.operation}"
        wrong = "stride_bytes" if stride % model.grain_bytes else "base_bytes"
        raise CHECK.malformed(wrong, rule, stride if stride % model.grain_bytes else base)
    if base + min(0, stride * (model.lanes - 1)) < 0:
        raise CHECK.malformed("base_bytes", f"must be at least {-stride * (model.lanes - 1)} for this stride", base)
    words = max(1, model.access_bytes // WORD_BYTES)
    if stride == 0:
        groups = -(-len(model.groups) // (2 if model.joins else 1))
        return Counted(groups, groups * -(-words // model.banks), "residues")
    if model.access_bytes == 12:
        return None
    if 0 < abs(stride) <= WORD_BYTES and model.access_bytes < WORD_BYTES:
        return _dense(model, stride, base)
    if stride % WORD_BYTES:
        return None
    blocks = model.banks // words
    period = blocks // math.gcd(blocks, stride // (WORD_BYTES * words))
    turns = ideal = 0
    for group in model.groups:
        turns += max(Counter(lane % period for lane in group).values())
        ideal += -(-len(group) * words // model.banks)
    return Counted(turns, ideal, "residues")


def _dense(model: BankModel, stride: int, base: int) -> Counted | None:
    """Return the same for sub-word elements at steps of at most a word, if every group is consecutive lanes."""
    total = 0
    for group in model.groups:
        if group != tuple(range(group[0], group[0] + len(group))):
            return None
        ends = sorted((base + stride * group[0], base + stride * group[-1]))
        words = ends[1] // WORD_BYTES - ends[0] // WORD_BYTES + 1
        total += -(-words // model.banks)
    return Counted(total, total, "residues")


def counted(model: BankModel, byte_addresses: Sequence[int | None] | npt.NDArray[np.int64]) -> Counted:
    """Return the turns of one instruction by the cheapest exact engine, with that engine's name.

    Args:
        model: The instruction.
        byte_addresses: One byte address per lane, None for an inactive lane.

    Example:
        >>> model = bank_model("gfx942", "ds_read_b64")
        >>> [counted(model, [8 * f(lane) for lane in range(64)]).engine for f in (lambda x: 3 * x, lambda x: x ^ x // 8,
        ...  lambda x: x * x)]
        ['residues', 'ranks', 'enumeration']
    """
    offsets = np.asarray(byte_addresses)
    regular = offsets.dtype.kind in "iu" and offsets.shape == (model.lanes,) and int(offsets.min()) >= 0
    if regular and int(offsets.max()) < 2**61 and not (offsets % model.grain_bytes).any():
        offsets = offsets.astype(np.int64)
        steps = np.diff(offsets)
        if (steps == steps[0]).all():
            found = residues(model, int(steps[0]), int(offsets[0]))
            if found is not None:
                return found
        if model.access_bytes != 12:
            columns = linear(offsets)
            if not isinstance(columns, Departure):
                return Counted(*model.ranks(columns[0], columns[1]), "ranks")
    phases = model.phases(byte_addresses)
    return Counted(sum(each.turns for each in phases), sum(each.least for each in phases), "enumeration")


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
