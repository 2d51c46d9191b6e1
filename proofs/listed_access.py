"""Shared-memory accesses whose addresses are listed because they are not linear over F2, and formulas for them.

``affine`` and ``strides`` are complete: None means that no such formula exists.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.ground.recognize import Departure, Modes, strided
from layoutalg.ground.record import Record
from layoutalg.targets.banks import bank_model

IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
CHECK = Checker("LA930", "invalid conversion plan")
OUT = -1
"""The address of an idle thread."""
UNCOUNTED = -1
"""Turns of instructions without a bank model."""
TABLE_BITS = 32
"""Instructions whose active threads fit one table of words."""


def affine(values: IntArray, live: BoolArray) -> tuple[int, tuple[int, ...]] | None:
    """Return (constant, columns) of a map, affine in the thread bits, with these values at the live threads."""
    width = (len(values) - 1).bit_length()
    rows: dict[int, tuple[int, int]] = {}
    for thread in np.flatnonzero(live).tolist():
        point, value = thread << 1 | 1, int(values[thread])
        while point and point.bit_length() in rows:
            other, theirs = rows[point.bit_length()]
            point, value = point ^ other, value ^ theirs
        if point:
            rows[point.bit_length()] = (point, value)
        elif value:
            return None
    solved = [0] * (width + 1)
    for length in sorted(rows):
        point, value = rows[length]
        for bit in range(length - 1):
            if point >> bit & 1:
                value ^= solved[bit]
        solved[length - 1] = value
    return solved[0], tuple(solved[1:])


def strides(values: IntArray, live: BoolArray) -> tuple[int, Modes] | None:
    """Return (constant, modes) of a sum of strided digits, fastest first, with these values at the live threads.

    None unless the live threads are the first ones.

    Example:
        >>> strides(np.array([5, 6, 7, 15, 16, 17]), np.ones(6, dtype=bool))
        (5, ((3, 1), (2, 10)))
    """
    count = int(np.count_nonzero(live))
    if not count or not live[:count].all():
        return None
    found = strided(values[:count])
    return None if isinstance(found, Departure) else (int(values[0]), found)


def counted_turns(target: str, instruction: str, rows: IntArray, active: BoolArray) -> int:
    """Return the turns of instructions at addresses, int64[.., lane], of active lanes; -1 if the model is unknown."""
    try:
        model = bank_model(target, instruction)
    except RepresentabilityError:
        return UNCOUNTED
    given = active.reshape(-1, active.shape[-1])[:, : model.lanes]
    some = given.any(axis=1)
    return model.totals(rows.reshape(-1, rows.shape[-1])[some, : model.lanes], given[some])[0]


def taking(active: BoolArray) -> tuple[str, int]:
    """Return which threads t take part, in the simplest form that applies, and its number n.

    ``"all"``; ``"below"``: t < n; ``"from"``: t >= n; ``"clear"``: t & n == 0; ``"listed"``: none of these.

    Example:
        >>> [taking(np.array(rows)) for rows in ([True, True], [True, False], [True, False, True])]
        [('all', 0), ('below', 1), ('clear', 1)]
    """
    count, threads = int(np.count_nonzero(active)), np.arange(len(active))
    if count == len(active):
        return "all", 0
    if active[:count].all():
        return "below", count
    if active[len(active) - count :].all():
        return "from", len(active) - count
    reached = int(np.bitwise_or.reduce(threads[active])) if count else 0
    mask = (1 << (len(active) - 1).bit_length()) - 1 & ~reached
    return ("clear", mask) if ((threads & mask == 0) == active).all() else ("listed", 0)


@dataclass(frozen=True, slots=True)
class ListedAccess(Record, code="LA930"):
    """Instructions that store or load elements of a thread, with a listed address per thread.

    Instruction i moves the elements i v to (i + 1) v - 1, v = ``elements``, contiguous from the address.

    Example:
        >>> access = ListedAccess("st.shared.b32", 1, (tuple(range(0, 396, 4))[:96], tuple(range(384, 768, 4))), 6)
        >>> access.counted("sm_90a", 32), access.bases(), access.lookups
        (6, ((0, 0), (0, 384)), 0)
    """

    instruction: str  # its ``bank_model`` name
    elements: int  # elements that an instruction moves per thread
    rows: tuple[tuple[int, ...], ...]  # byte addresses [instruction][thread]; -1 for idle threads
    turns: int  # bank turns of all instructions of all warps; -1 if the bank model is unknown

    def _validate(self) -> None:
        if self.elements < 1 or not self.rows or len({len(row) for row in self.rows}) != 1:
            raise CHECK.malformed("elements", "must be at least 1, with at least one instruction", self.elements)
        if min(map(min, self.rows)) < OUT or any(max(row) == OUT for row in self.rows):
            raise CHECK.malformed("rows", "must be byte addresses or -1, with an active thread", min(self.rows[0]))

    @property
    def count(self) -> int:
        """Number of instructions."""
        return len(self.rows)

    @property
    def matrices(self) -> int:
        """Matrices per instruction: none."""
        return 0

    def taking(self, threads: int) -> BoolArray:  # noqa: ARG002
        """Return which threads take part in each instruction: bool[instruction, thread]."""
        return np.asarray(self.addresses() != OUT)

    def addresses(self) -> IntArray:
        """Return the byte address of every instruction and thread, or -1: int64[instruction, thread]."""
        return np.array(self.rows, dtype=np.int64)

    def aligned(self, element_bits: int, lanes: int) -> bool:  # noqa: ARG002
        """Return whether every address is a multiple of the bytes moved there."""
        rows = self.addresses()
        return not bool((rows[rows != OUT] % (self.elements * element_bits // 8)).any())

    def elements_at(self, element_bits: int, lanes: int) -> IntArray:  # noqa: ARG002
        """Return the byte address of every element of the active threads: int64[thread, element]."""
        found = self.addresses()[:, :, None] + np.arange(self.elements) * (element_bits // 8)
        return np.asarray(found.transpose(1, 0, 2).reshape(len(self.rows[0]), -1), dtype=np.int64)

    def counted(self, target: str, lanes: int) -> int:
        """Return the turns of all instructions of all warps, counted from addresses; -1 if the model is unknown."""
        rows = self.addresses().reshape(-1, lanes)
        return counted_turns(target, self.instruction, rows, rows != OUT)

    def bases(self) -> tuple[tuple[int, int], ...]:
        """Return, per instruction, a base instruction (itself or an earlier one) and the byte offset from it."""
        rows = self.addresses()
        active = rows != OUT
        firsts: list[int] = []
        found = []
        for number, row in enumerate(rows):
            live = active[number]
            for first in firsts:
                beyond = row[live] - rows[first][live]
                if active[first][live].all() and (beyond == beyond[0]).all():
                    found.append((first, int(beyond[0])))
                    break
            else:
                firsts.append(number)
                found.append((number, 0))
        return tuple(found)

    @property
    def lookups(self) -> int:
        """Tables that a thread reads where its addresses, or whether it takes part, have no formula."""
        rows = self.addresses()
        active = rows != OUT
        numbers = {first for first, _ in self.bases()}
        plain = [affine(rows[n], active[n]) is None and strides(rows[n], active[n]) is None for n in sorted(numbers)]
        groups = range(0, len(rows), TABLE_BITS)
        listed = [any(taking(row)[0] == "listed" for row in active[first : first + TABLE_BITS]) for first in groups]
        return sum(plain) + sum(listed)
