"""Orders of digits: what consumers require of them, what they cost, and a search for a cheaper one.

``wgmma`` can read an order iff the following holds, for the order's own swizzle of span 16 W bytes, with k the digits
of K, m those of the rows (of A or B) and n elements per chunk. K-major: the digit of K of weight n is at place 4
(anywhere if W = 1), and m_0, m_1, m_2 are at the three places from 4 + log2 W. MN-major: the digits of m within a span
are at the places below 4 + log2 W, and k_0, k_1, k_2 at the next three places. The remaining digits of the 64 rows of A
are consecutive: each directly follows the previous one. A tensor map of t + 1 dimensions walks t + 1 runs of digits,
each a multiple of the previous one; what is beyond five runs becomes separate issues.

Implementation notes: the search fills places from the lowest up; the digits placed so far bound turns and runs from
below, and a failed state (the remaining digits, the banks reached, the last run) is not visited twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from layoutalg.ground import clock
from layoutalg.synth.solving.accesses import BANK_BITS, Access, reached
from layoutalg.synth.solving.space import CHUNK_BITS, Box, Digit, Order, Xor, xors

MAX_RUNS = 5
START_BITS = 7
"""An issue starts at a multiple of 128 bytes of shared memory."""
Cost = tuple[int, int]
NODES = 20_000
"""Step limit of the search."""


@dataclass(frozen=True)
class Case:
    """One swizzle, with the consumers' conditions on digits under it."""

    swizzle: str  # its name
    xor: Xor  # (bits, base, shift) on byte addresses
    at: Mapping[Digit, int] = field(default_factory=dict, hash=False)  # digits with a fixed byte-address bit
    after: tuple[tuple[Digit, Digit], ...] = ()  # pairs of digits; the second must directly follow the first

    @property
    def span(self) -> int:
        """Byte-address bits of a row of the swizzle; 0 without a swizzle."""
        return self.xor[0] + self.xor[1] if self.xor[0] else 0


@dataclass(frozen=True)
class Question:
    """The question where to put the digits of a tile, for one direction of the chunks."""

    box: Box  # the tile
    inner: int  # the dimension of the chunks
    cases: tuple[Case, ...]  # the swizzles that no consumer excludes
    accesses: tuple[Access, ...]  # the instructions whose turns count and whose addresses digits describe
    fixed: int  # lower bound on the turns of the other instructions
    copies: int  # copies by TMA: 0, 1 or 2
    # global element strides of the two dimensions; they decide which digits continue each other
    strides: tuple[int, int]

    @cached_property
    def free(self) -> tuple[Digit, ...]:
        """The digits to place."""
        return self.box.digits(self.inner)

    @cached_property
    def chunk(self) -> tuple[Digit, ...]:
        """The digits of the chunk, whose places are known."""
        return tuple((self.inner, bit) for bit in range(self.box.chunk))

    @property
    def top(self) -> int:
        """One past the highest place."""
        return CHUNK_BITS + len(self.free)

    def continues(self, one: Digit, two: Digit) -> bool:
        """Whether the second digit moves twice as far in global memory as the first."""
        return self.strides[two[0]] << two[1] == self.strides[one[0]] << one[1] + 1

    def order(self, digits: tuple[Digit, ...], case: Case) -> Order:
        """Return the layout."""
        return Order(self.box, self.inner, digits, case.swizzle, case.xor)

    def cost(self, digits: tuple[Digit, ...], case: Case) -> Cost | None:
        """Return a lower bound (issues, turns) for an order; None if it breaks a condition."""
        places = {digit: place + self.box.low for place, digit in enumerate((*self.chunk, *digits))}
        if any(places[digit] != place for digit, place in case.at.items()):
            return None
        if any(places[two] != places[one] + 1 for one, two in case.after):
            return None
        issues = self.issues(digits, case) if self.copies else 0
        turns = self.fixed + sum(access.predicted(places, case.xor) for access in self.accesses)
        return None if issues is None else (issues, turns)

    def issues(self, digits: tuple[Digit, ...], case: Case) -> int | None:
        """Return a lower bound on the issues of all copies together; None if no issue can start."""
        line = (*self.chunk, *digits)
        runs, length = 1, len(line)
        for index in range(1, len(line)):
            place = index + self.box.low
            broken = not self.continues(line[index - 1], line[index])
            if broken and place < case.span:
                return None
            if (broken or place == case.span) and runs == MAX_RUNS:
                length = index
                break
            runs += broken or place == case.span
        if length < len(line) and length + self.box.low < START_BITS:
            return None
        return self.copies << len(line) - length


def operand_rules(
    operand: str, box: Box, inner: int, span: int
) -> tuple[dict[Digit, int], list[tuple[Digit, Digit]]] | str:
    """Return where ``wgmma`` needs digits and which must be consecutive, under a swizzle of ``span``; or why it cannot.

    Args:
        operand: ``"A"`` or ``"B"``; dimension 0 is M or N, dimension 1 is K.
        box: The tile.
        inner: The dimension of the chunks.
        span: Byte-address bits of a row of the swizzle; 0 for none.
    """
    width = max(span, CHUNK_BITS) - CHUNK_BITS
    step, rows = box.chunk + 1, 6 if operand == "A" else 3
    if box.bits[1] < step:
        return f"one instruction reads {1 << step} elements along K, the tile has {box.extents[1]}"
    if box.bits[0] < rows:
        return f"one instruction reads {1 << rows} rows, the tile has {box.extents[0]}"
    at: dict[Digit, int] = {}
    if inner == 1:
        if width:
            at[1, box.chunk] = CHUNK_BITS
        rest = list(range(3, rows))
        lines = [(0, bit) for bit in range(3)]
    else:
        if box.element_bytes != 2:
            return "only 16-bit operands can be MN-major"
        spanned = range(box.chunk, min(box.chunk + width, max(rows, 3)))
        at |= {(0, bit): CHUNK_BITS + bit - box.chunk for bit in spanned}
        rest = list(range(box.chunk + width, rows))
        lines = [(1, bit) for bit in range(3)]
    at |= {digit: CHUNK_BITS + width + place for place, digit in enumerate(lines)}
    return at, [((0, one), (0, one + 1)) for one in rest[:-1]]


@dataclass(frozen=True, slots=True)
class Found:
    """An order: the digits above the chunk, fastest first, and the swizzle."""

    digits: tuple[Digit, ...]
    case: Case


def by_search(asked: Question, bound: Cost | None, passed: tuple[Found, ...] = (), nodes: int = NODES) -> Found | None:
    """Return an order cheaper than a bound and not in ``passed``, or None if the complete search found none.

    Raises: BudgetError: LA001, also when the steps are used up.
    """
    refused = {(found.digits, found.case) for found in passed}
    spent = [nodes]
    for case in asked.cases:
        digits = _Search(asked, case, bound, refused, spent).run((), asked.free, 1, None)
        if digits is not None:
            return Found(digits, case)
    return None


class _Search:
    """One case of the search."""

    def __init__(self, asked: Question, case: Case, bound: Cost | None, refused: set[Any], spent: list[int]) -> None:
        self.asked, self.case, self.bound, self.refused, self.spent = asked, case, bound, refused, spent
        self.wanted = {place: digit for digit, place in case.at.items()}
        self.next = dict(case.after)
        self.before = {two: one for one, two in case.after}
        self.sources = xors(case.xor)
        known = {digit: index + asked.box.low for index, digit in enumerate(asked.chunk)}
        self.held = [access.terms or () for access in asked.accesses]
        self.words = [sum(known.get(digit, 2) >= 2 for digit in held) for held in self.held]
        self.chunks = [[known[digit] for digit in held if digit in known] for held in self.held]
        self.failed: set[tuple[object, ...]] = set()

    def run(
        self, done: tuple[Digit, ...], rest: tuple[Digit, ...], runs: int, cut: int | None
    ) -> tuple[Digit, ...] | None:
        """Fill the next place; digits from place ``cut`` on become issues."""
        asked, case, place = self.asked, self.case, CHUNK_BITS + len(done)
        self.spent[0] -= 1
        if self.spent[0] < 0:
            clock.out_of_time("a search for an order of digits", 0)
        if not self.spent[0] % 256:
            clock.check("a search for an order of digits")
        banks = self._banks(done)
        issues = asked.copies << (0 if cut is None else asked.top - cut)
        if self.bound is not None and (issues, self._turns(banks, rest, place)) >= self.bound:
            return None
        if not rest:
            return None if (done, case) in self.refused else done
        # what the digits so far mean to the remaining ones: the banks that each access reaches, and the last run
        state = (rest, *banks, *((done[-1:], runs, cut) if asked.copies or self.next else ()))
        if state in self.failed:
            return None
        last = done[-1] if done else asked.chunk[-1]
        for digit in self._next(last, rest, place):
            broken = not asked.continues(last, digit)
            if broken and place < case.span and asked.copies:
                continue
            fresh, stop = runs + (broken or place == case.span), cut
            if fresh > MAX_RUNS and cut is None:
                if asked.copies and place < START_BITS:
                    continue
                stop = place
            found = self.run((*done, digit), tuple(d for d in rest if d != digit), min(fresh, MAX_RUNS + 1), stop)
            if found is not None:
                return found
        if not self.refused:
            self.failed.add(state)
        return None

    def _next(self, last: Digit, rest: tuple[Digit, ...], place: int) -> list[Digit]:
        """Return the digits allowed at this place, those that continue the run first."""
        fixed = self.case.at
        if place in self.wanted:
            return [self.wanted[place]] if self.wanted[place] in rest else []
        if last in self.next:
            return [self.next[last]] if self.next[last] in rest and self.next[last] not in fixed else []
        fits = [d for d in rest if d not in fixed and d not in self.before]
        if not (self.asked.copies or self.next or self.asked.fixed):
            # of digits that the same accesses read, one stands for all, unless some accesses are known by number alone
            fits = list({tuple(digit in held for held in self.held): digit for digit in fits[::-1]}.values())
        return sorted(fits, key=lambda digit: not self.asked.continues(last, digit))

    def _banks(self, done: tuple[Digit, ...]) -> list[frozenset[int]]:
        """Return the bank bits that each access reaches by the digits placed so far."""
        places = {digit: CHUNK_BITS + index for index, digit in enumerate(done)}
        return [
            frozenset(reached([*chunk, *(places[digit] for digit in held if digit in places)], self.sources))
            for held, chunk in zip(self.held, self.chunks, strict=True)
        ]

    def _turns(self, banks: list[frozenset[int]], rest: tuple[Digit, ...], place: int) -> int:
        """Return a lower bound on the turns of all accesses, whatever the order of the remaining digits."""
        total = self.asked.fixed
        for access, held, words, sure in zip(self.asked.accesses, self.held, self.words, banks, strict=True):
            free = sum(bit not in sure and max(bit, self.sources.get(bit, 0)) >= place for bit in BANK_BITS)
            more = min(sum(digit in rest for digit in held), free)
            total += len(access.rows) << words - len(sure) - more
        return total
