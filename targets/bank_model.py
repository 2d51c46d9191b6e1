"""Bank models of shared-memory instructions, with one interface for NVIDIA and AMD.

Main statements: lanes are served in groups, one group (phase) after the other; within a group, lanes that touch one
word are served together and different words of one bank take turns, so a group takes as many turns as its busiest bank
has different words. With all lanes active the groups of every known instruction are the cosets of one F2 space of lane
numbers. Under a linear layout all groups therefore take equally many turns, ``2 ** (rank W - rank K)``, where W and K
are the words and the banks that the space and the bytes of one lane reach: ``BankModel.layout_turns``.

References: ``targets.banks`` (AMD, with its sources) and ``targets.nvidia.banks`` (measured); the rank form is
arXiv 2505.23819, section 5.4, extended to words of any size, broadcasts and groups of non-consecutive lanes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.f2.axes import fields
from layoutalg.ground.check import Checker
from layoutalg.ground.kinds import checked_kinds
from layoutalg.targets import banks
from layoutalg.targets.lds_rules import DISPUTED, WAVES, LdsRule
from layoutalg.targets.nvidia.banks import BANKS, LANES, WORD_BYTES, Offsets
from layoutalg.targets.registry import grade_in_words, lookup

CHECK = Checker("LA905", "invalid shared-memory access")


@dataclass(frozen=True, slots=True)
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

    def __post_init__(self) -> None:
        checked_kinds(self, "LA905")


@dataclass(frozen=True, slots=True)
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

    def __post_init__(self) -> None:
        checked_kinds(self, "LA905")

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
        if not any(_shared(offsets, step) for step in self.joins):
            return self.groups
        return tuple(sum(self.groups[first : first + 2], ()) for first in range(0, len(self.groups), 2))

    def phases(self, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> tuple[Phase, ...]:
        """Return the bank conflicts of every group that has an active lane, in order.

        Args:
            byte_addresses: One byte address per lane, None for an inactive lane.

        Raises: MalformedError: LA709.
        """
        offsets = banks.offsets_of(self.target, self.operation, byte_addresses, self.grain_bytes, self.lanes)
        found = []
        for group in self.joined(offsets):
            touched: list[dict[int, int]] = [{} for _ in range(self.banks)]
            active = [(lane, offset) for lane in group if (offset := offsets[lane]) is not None]
            for lane, offset in active:
                first = offset // WORD_BYTES
                for word in range(first, first + max(1, self.access_bytes // WORD_BYTES)):
                    touched[word % self.banks].setdefault(word, lane)
            if active:
                found.append(self._phase(active, touched))
        return tuple(found)

    def _phase(self, active: list[tuple[int, int]], touched: list[dict[int, int]]) -> Phase:
        turns = max(map(len, touched))
        bank = next(bank for bank, words in enumerate(touched) if len(words) == turns)
        busy = []
        for lane, offset in active:
            first = offset // WORD_BYTES
            words = range(first, first + max(1, self.access_bytes // WORD_BYTES))
            busy += [(lane, word) for word in words if word % self.banks == bank][:1]
        least = -(-sum(map(len, touched)) // self.banks)
        return Phase(tuple(lane for lane, _ in active), turns, least, bank, tuple(busy))

    def turns(self, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> int:
        """Return the turns of all groups together, as ``targets.banks.turns`` counts them.

        Raises: MalformedError: LA709.
        """
        return sum(phase.turns for phase in self.phases(byte_addresses))

    def ideal(self, byte_addresses: Sequence[int | None] | npt.NDArray[Any]) -> int:
        """Return the turns if the words of every group were spread evenly over the banks.

        Raises: MalformedError: LA709.
        """
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

        Raises: MalformedError: LA709.

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

        Raises: MalformedError: LA905.

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
            images.append(matrix.apply(lanes, _next_group(self)))
        inner = [1 << bit for bit in range(2, self.access_bytes.bit_length() - 1)]
        words = [image >> 2 for image in (*inner, *images)]
        rank = matrix.rank(words)
        groups = -(-len(self.groups) >> joined)
        degree = 1 << rank - matrix.rank([word & self.banks - 1 for word in words])
        return groups * degree, groups * -(-(1 << rank) // self.banks)


def _next_group(model: BankModel) -> int:
    """The XOR of lane numbers between a group and the one it merges with."""
    return model.groups[1][0] ^ model.groups[0][0]


def _shared(offsets: Offsets, step: int) -> bool:
    """Return whether every lane shares its address with lane ^ step, inactive lanes aside."""
    for lane, offset in enumerate(offsets):
        other = offsets[lane ^ step] if lane ^ step < len(offsets) else None
        if offset is not None and other is not None and other != offset:
            return False
    return True


def _nvidia(target: str, operation: str) -> BankModel:
    access = banks.nvidia_access(operation)
    size = max(1, access.bits // 8)
    together = min(LANES, LANES * 32 // access.bits)
    count = access.addresses
    groups = tuple(tuple(range(first, min(first + together, count))) for first in range(0, count, together))
    joins = (1, 2) if access.kind == "load" and access.bits > 32 else ()
    evidence = lookup(target).bank_grade(bool(access.matrices) or access.bits > 8 * WORD_BYTES)
    return BankModel(target, operation, count, BANKS, size, groups, joins, evidence)


@lru_cache(maxsize=256)
def _model(target: str, operation: str) -> BankModel:
    if target not in WAVES:
        lookup(target)
        banks.missing(target, operation, banks.nvidia_access(operation))
        return _nvidia(target, operation)
    return _amd(target, banks.lds_text(target, operation), banks.lds_rule(target, operation))


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

    Source: see the head of the file.
    """
    return _model(CHECK.kind(target, str, "target"), CHECK.kind(operation, str, "operation"))
