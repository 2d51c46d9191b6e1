"""Consumer requirements as conditions on the places of digits, and the cost of an order.

``wgmma`` can read an order iff the following holds, for the order's own swizzle of span 16 W bytes, with k the digits
of K, m those of the rows (of A or B) and n elements per chunk. K-major: the digit of K of weight n is at place 4
(anywhere if W = 1), and m_0, m_1, m_2 are at the three places from 4 + log2 W. MN-major: the digits of m within a span
are at the places below 4 + log2 W, and k_0, k_1, k_2 at the next three places. The remaining digits of the 64 rows of A
are consecutive: each directly follows the previous one. A tensor map of t + 1 dimensions walks t + 1 runs of digits,
each a multiple of the previous one; what is beyond five runs becomes separate issues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from layoutalg.synth.solving.accesses import Access, reached
from layoutalg.synth.solving.space import CHUNK_BITS, Box, Digit, Order, Xor, xors

MAX_RUNS = 5
START_BITS = 7
"""An issue starts at a multiple of 128 bytes of shared memory."""
Cost = tuple[int, int]


@dataclass(frozen=True)
class Case:
    """One swizzle, with the consumers' conditions on digits under it.

    Args:
        swizzle: Its name.
        xor: (bits, base, shift) on byte addresses.
        at: Digits with a fixed byte-address bit.
        after: Pairs of digits; the second must directly follow the first.
    """

    swizzle: str
    xor: Xor
    at: Mapping[Digit, int] = field(default_factory=dict, hash=False)
    after: tuple[tuple[Digit, Digit], ...] = ()

    @property
    def span(self) -> int:
        """Byte-address bits of a row of the swizzle; 0 without a swizzle."""
        return self.xor[0] + self.xor[1] if self.xor[0] else 0


@dataclass(frozen=True)
class Question:
    """The question where to put the digits of a tile, for one direction of the chunks.

    Args:
        box: The tile.
        inner: The dimension of the chunks.
        cases: The swizzles that no consumer excludes.
        accesses: The instructions whose turns count and whose addresses digits describe.
        fixed: Lower bound on the turns of the other instructions.
        copies: Copies by TMA: 0, 1 or 2.
        strides: Global element strides of the two dimensions; they decide which digits continue each other.
    """

    box: Box
    inner: int
    cases: tuple[Case, ...]
    accesses: tuple[Access, ...]
    fixed: int
    copies: int
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
        return (
            None if issues is None else (issues, self.fixed + sum(self.turns(a, places, case) for a in self.accesses))
        )

    def turns(self, access: Access, places: Mapping[Digit, int], case: Case) -> int:
        """Return the turns of one access."""
        held = [places[digit] for digit in access.terms or ()]
        return len(access.rows) << sum(place >= 2 for place in held) - len(reached(held, xors(case.xor)))

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
