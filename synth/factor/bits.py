"""Factor F2 layouts: find the bit permutations and swizzles that leave a residual inside every warp, and the cheapest.

Mathematically: the places are F2^n with a role per bit, the layout is L(x) = M x xor a, injective, with image W = span
M. The descriptor's maps are D = S P: P maps unit vectors to distinct unit vectors, S is one of the swizzles, and for
one tile dimension P maps its low bits, those of a 16-byte chunk (without a swizzle) or of a row of the swizzle, to the
low offset bits. The residual is R = D^-1 L. Let U be the matrix of S L in the unit vectors of S W; row b of R is a row
of U.

* D exists only if S W is spanned by unit vectors; a mixed vector names the offset bit.
* R keeps the warp if and only if every warp bit i has a row of U that is the i-th unit row with constant 0. U is
  invertible, so there is at most one: warp bits are placed in one way. If a bit has none, its functional (a row of
  L^-1) is not a single offset bit after the swizzle, and no descriptor map carries it.
* Lane bits may use any of the remaining rows. Let A be their matrix, A_r its register columns, m the rank of A_r. If
  every vector v with v A_r = 0 has v A = v on lane bits and 0 elsewhere, and v a = 0, every lane keeps 2^(r-m) words,
  and 2^r - 2^(r-m) shuffles are needed; otherwise some lane keeps none and 2^r are needed.

So the decision is one elimination per swizzle and dimension; the minimum number of rounds is a search over the rows for
the lane bits, pruned when a dependent register part breaks the condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from layoutalg.f2 import matrix
from layoutalg.ground import clock
from layoutalg.ground.refusal import Broken
from layoutalg.synth.factor.question import Question
from layoutalg.targets.nvidia.swizzles import CHUNK_BYTES, SWIZZLE_TABLE

CHUNK_BITS = CHUNK_BYTES.bit_length() - 1


@dataclass(frozen=True, slots=True)
class Bits:
    """A question over F2; roles are 0 register, 1 lane, 2 warp."""

    columns: tuple[int, ...]  # offset of every place bit
    constant: int  # offset of place 0
    roles: tuple[int, ...]  # role of every place bit
    dims: tuple[tuple[int, ...], ...]  # per tile dimension its place bits, low bit first
    low: int  # number of offset bits inside a 16-byte chunk

    def of_role(self, role: int) -> tuple[int, ...]:
        """Place bits with a role."""
        return tuple(bit for bit, found in enumerate(self.roles) if found == role)


@dataclass(frozen=True, slots=True)
class Carrier:
    """A descriptor map: tile bit i goes to offset bit ``order[i]``, then the swizzle."""

    swizzle: str  # name of the swizzle
    order: tuple[int, ...]  # offset bit per place bit, before the swizzle
    rounds: int  # shuffles of the residual
    free: tuple[int, ...]  # place bits whose offset bits may be exchanged

    def columns(self, low: int) -> tuple[int, ...]:
        """The offset of every tile bit."""
        return tuple(swizzled(1 << bit, self.swizzle, low) for bit in self.order)


def swizzled(offset: int, swizzle: str, low: int) -> int:
    """Return an element offset after a swizzle, 2^low elements being 16 bytes; an involution.

    Example:
        >>> [swizzled(1 << bit, "128B", 3) for bit in (3, 6, 7)]
        [8, 72, 144]
    """
    answer = offset
    for target, source in SWIZZLE_TABLE[swizzle].xor:
        answer ^= (offset >> (source - CHUNK_BITS + low) & 1) << (target - CHUNK_BITS + low)
    return answer


def run_bits(swizzle: str, low: int) -> int:
    """Return how many low bits of the innermost tile dimension stay the low bits before a swizzle.

    Example:
        >>> run_bits("NONE", 3), run_bits("128B", 3)
        (3, 6)
    """
    return SWIZZLE_TABLE[swizzle].span_bytes.bit_length() - 1 - CHUNK_BITS + low


def bits_of(question: Question) -> Bits | None:
    """Return the question over F2; None if the layout or its places are not linear over F2."""
    size = question.size
    extents = (*(extent for _, extent in question.axes), *(extent for _, extent in question.tile))
    if any(extent & (extent - 1) for extent in (size, *extents)):
        return None
    units = [1 << bit for bit in range(size.bit_length() - 1)]
    constant = int(question.offsets[0])
    columns = tuple(int(question.offsets[unit]) ^ constant for unit in units)
    if not np.array_equal(matrix.table(columns, constant), question.offsets):
        return None
    roles = []
    for unit in units:
        moving = np.flatnonzero(question.owner[:, unit])
        if len(moving) != 1 or question.owner[:, 0].any():
            return None
        roles.append(int(moving[0]))
    dims, first = {}, 0
    for name, extent in question.tile:
        width = extent.bit_length() - 1
        dims[name] = tuple(range(first, first + width))
        first += width
    ordered = tuple(dims[name] for name in reversed(question.order))
    return Bits(columns, constant, tuple(roles), ordered, question.chunk.bit_length() - 1)


def carriers(bits: Bits, swizzles: Sequence[str]) -> Iterator[Carrier | Broken]:
    """Yield, per swizzle and tile dimension, the descriptor map with the fewest rounds, or the obstacle."""
    dims = [dim for dim in bits.dims if dim] or [()]
    for swizzle in swizzles:
        columns = tuple(swizzled(column, swizzle, bits.low) for column in bits.columns)
        constant = swizzled(bits.constant, swizzle, bits.low)
        basis = matrix.image_basis(columns)
        if len(basis) < len(columns):
            kernel = matrix.kernel(columns)[0]
            unused = next(bit for bit in range(len(columns)) if 1 << bit not in basis)
            because = f"places 0 and {kernel} share an offset: the layout is not injective"
            yield Broken("FACTOR_INJECTIVE", because, {"output_bit": unused})
            return
        mixed = next((vector for vector in basis if vector & (vector - 1)), 0)
        if mixed:
            listed = ", ".join(str(bit) for bit in _bits(mixed))
            because = f"offset bits {listed} only change together; a descriptor map moves them independently"
            yield Broken("FACTOR_IMAGE", because, {"output_bit": mixed.bit_length() - 1})
            continue
        rest = matrix.remainder(basis, constant)
        if rest:
            because = f"offset bit {_bits(rest)[0]} is always 1, but a descriptor map sends coordinate 0 to offset 0"
            yield Broken("FACTOR_CONSTANT", because, {"output_bit": _bits(rest)[0]})
            continue
        rows = {}
        for vector in basis:
            bit = vector.bit_length() - 1
            row = sum(1 << place for place, column in enumerate(columns) if column >> bit & 1)
            rows[bit] = (row, constant >> bit & 1)
        for dim in dims:
            yield _carrier(bits, swizzle, rows, dim)


def _carrier(bits: Bits, swizzle: str, rows: dict[int, tuple[int, int]], dim: tuple[int, ...]) -> Carrier | Broken:
    run = run_bits(swizzle, bits.low)
    if len(dim) < run:
        because = f"the innermost tile dimension has {1 << len(dim)} elements; at least {1 << run} must be contiguous"
        return Broken("FACTOR_RUN", because, {"output_bit": len(dim)})
    fixed = {place: bit for bit, place in enumerate(dim[:run])}
    for bit in fixed.values():
        if bit not in rows:
            because = f"offset bit {bit} is always 0, but at least {1 << run} elements must be contiguous"
            return Broken("FACTOR_RUN", because, {"output_bit": bit})
    order = dict(fixed)
    for place in bits.of_role(2):
        bit = next((bit for bit, row in rows.items() if row == (1 << place, 0)), -1)
        if bit < 0:
            return _mixing(bits, rows, place)
        if order.get(place, bit) != bit or (place not in fixed and bit in fixed.values()):
            because = f"{_nth(bits, place)} is offset bit {bit}, inside the {1 << run} elements that stay contiguous"
            return Broken("FACTOR_RUN", because, {"output_bit": bit})
        order[place] = bit
    left = [bit for bit in rows if bit not in order.values()]
    lanes = bits.of_role(1)
    rounds, chosen = _lanes(bits, {bit: rows[bit] for bit in left}, {p: rows[b] for p, b in order.items()})
    free = tuple(place for place in range(len(bits.columns)) if place not in order)
    if chosen is not None:
        order |= chosen
    for place in (*lanes, *bits.of_role(0)):
        if place not in order:
            taken = set(order.values())
            order[place] = next(bit for bit in left if bit not in taken)
    return Carrier(swizzle, tuple(order[place] for place in range(len(bits.columns))), rounds, free)


def _mixing(bits: Bits, rows: dict[int, tuple[int, int]], place: int) -> Broken:
    """Report which offset bits make up a warp bit."""
    names = sorted(rows)
    found = matrix.eliminate([rows[bit][0] for bit in names]).reduce(1 << place)[1]
    mixed = [names[index] for index in _bits(found)]
    flipped = sum(rows[bit][1] for bit in mixed) & 1
    told = " xor ".join([*(str(bit) for bit in mixed), *(["1"] if flipped else [])])
    because = f"{_nth(bits, place)} is offset bit {told}; shuffles cannot cross warps"
    return Broken("FACTOR_WARP", because, {"output_bit": mixed[-1]})


def _nth(bits: Bits, place: int) -> str:
    return f"warp bit {bits.of_role(2).index(place)}"


def _lanes(
    bits: Bits, rows: dict[int, tuple[int, int]], fixed: dict[int, tuple[int, int]]
) -> tuple[int, dict[int, int] | None]:
    """Return the least rounds and the offset bits of the lane bits that reach them; None if all are equal."""
    registers = bits.of_role(0)
    mask = sum(1 << place for place in registers)
    words = 1 << len(registers)
    lanes = sorted(bits.of_role(1), key=lambda place: place not in fixed)
    best: list[tuple[int, dict[int, int] | None]] = [(len(registers) + len(lanes) + 1, None)]

    def add(at: int, reduced: tuple[tuple[int, int, int], ...], chosen: dict[int, int], used: frozenset[int]) -> None:
        """``reduced``: (register part, error row, error constant) of independent combinations, echelon by top bit."""
        clock.check("the search for the cheapest residual")
        if len(reduced) >= best[0][0]:
            return
        if at == len(lanes):
            best[0] = (len(reduced), dict(chosen))
            return
        place = lanes[at]
        options = (
            [(None, fixed[place])] if place in fixed else [(bit, row) for bit, row in rows.items() if bit not in used]
        )
        for bit, (row, constant) in sorted(options, key=lambda option: option[1] != (1 << place, 0)):
            part, error, flip = row & mask, row ^ 1 << place, constant
            for other, other_error, other_flip in reduced:
                if part >> (other.bit_length() - 1) & 1:
                    part, error, flip = part ^ other, error ^ other_error, flip ^ other_flip
            if not part and (error or flip):
                continue
            grown = reduced if not part else (*reduced, (part, error, flip))
            if bit is None:
                add(at + 1, grown, chosen, used)
            else:
                add(at + 1, grown, {**chosen, place: bit}, used | {bit})

    add(0, (), {}, frozenset())
    rank, found = best[0]
    if found is None:
        return words, None
    return words - (words >> rank), found


def _bits(mask: int) -> list[int]:
    return [bit for bit in range(mask.bit_length()) if mask >> bit & 1]
