"""The addresses that lanes touch when an instruction moves a whole tile, and the turns of the banks.

Without registers, ``ldmatrix.xN`` and ``stmatrix.xN`` move the tile in matrices of 8 rows of 16 bytes along dimension
1, with ``.trans`` along the dimension of the chunks; ``ld.shared`` and ``st.shared`` move it row by row, neighbouring
lanes moving neighbouring vectors along dimension 1. With registers, a linear layout from (register, lane, warp) to tile
coordinates says which lane moves which element.

Under a linear layout, a lane group whose addresses span T takes 2^(rank W(T) - rank K(T)) turns, W being the address
bits of words and K those of banks. In an order of digits every column of W and K is a unit vector or zero, so rank K(T)
is the number of distinct bank bits that T reaches.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from layoutalg.cute import CuteLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.record import Record
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.register_map import bit_addresses
from layoutalg.synth.accesses import Moved as Instructions
from layoutalg.synth.accesses import along_dimension, divided
from layoutalg.synth.solving.space import Box, Digit, IntArray, Xor, xors
from layoutalg.targets.bank_counting import JOINS, merged, words_by_bank
from layoutalg.targets.banks import Access as Instruction
from layoutalg.targets.banks import bank_model, nvidia_access
from layoutalg.targets.nvidia.accesses import access_form
from layoutalg.targets.nvidia.banks import BANKS, LANES, WORD_BYTES

CHECK = Checker("LA870", "invalid argument to joint() or another solver query")
BANK_BITS = range(2, 7)


@dataclass(frozen=True, slots=True)
class Moved(Record, code="LA870", json="instruction=name groups turns least"):
    """The turns of moving the tile by an instruction in ``groups`` groups of lanes, and a bound for any layout."""

    name: str
    groups: int
    turns: int
    least: int

    def __str__(self) -> str:
        free = "free of conflicts" if self.turns == self.least else f"{self.least} without conflicts"
        return f"{self.turns} turns, {free}"


@dataclass(frozen=True)
class Access:
    """An instruction that moves the whole tile, for one direction of the chunks.

    Args:
        name: The instruction.
        kind: As in ``targets.nvidia.banks``.
        bits: Bits moved per address.
        box: The tile.
        along: The dimension of each address's vector; -1 for single elements.
        rows: Row of the first element of every address: int64[group, lane].
        columns: Its column.
    """

    name: str
    kind: str
    bits: int
    box: Box
    along: int
    rows: IntArray
    columns: IntArray

    @property
    def vector(self) -> int:
        """Elements per address, at least 1."""
        return max(1, self.bits // 8 // self.box.element_bytes)

    @cached_property
    def least(self) -> int:
        """Lower bound for any injective layout: the words of each group over the banks."""
        codes = np.sort(self.box.code(self.rows, self.columns), axis=1)
        different = 1 + (np.diff(codes, axis=1) != 0).sum(axis=1)
        if self.bits < 32:  # several elements may share a word
            different = -(-different * max(self.bits, 8 * self.box.element_bytes) // 32)
        return max(int((-(-different * max(1, self.bits // 32) // BANKS)).sum()), len(self.rows))

    @cached_property
    def terms(self) -> tuple[Digit, ...] | None:
        """The digits that span the addresses of every group, including the vector's own; None if none do."""
        codes = self.box.code(self.rows, self.columns)
        lanes = codes.shape[1]
        if lanes & (lanes - 1):
            return None
        found = codes[:1, [1 << bit for bit in range(lanes.bit_length() - 1)]] ^ codes[:1, :1]
        spanned = np.zeros(lanes, dtype=np.int64)
        for bit, value in enumerate(found[0].tolist()):
            spanned[1 << bit : 2 << bit] = spanned[: 1 << bit] ^ value
        if (codes != codes[:, :1] ^ spanned).any():
            return None
        names = {1 << self.box.index((dim, bit)): (dim, bit) for dim in (0, 1) for bit in range(self.box.bits[dim])}
        values = [value for value in found[0].tolist() if value]
        if any(value not in names for value in values):
            return None
        vector = [(self.along, bit) for bit in range(self.vector.bit_length() - 1)]
        return tuple(dict.fromkeys([*vector, *(names[value] for value in values)]))

    def predicted(self, places: Mapping[Digit, int], xor: Xor) -> int:
        """Return the turns, from ranks, if digits span the addresses: by their byte-address bits before the swizzle."""
        held = [places[digit] for digit in self.terms or ()]
        return len(self.rows) << sum(place >= 2 for place in held) - len(reached(held, xors(xor)))

    def moved(self, table: IntArray) -> Moved | str:
        """Count the turns under a layout given as byte addresses, or return why the instruction cannot move it."""
        starts = table[self.rows, self.columns]
        size, wide = self.box.element_bytes, max(self.bits // 8, self.box.element_bytes)
        wrong = np.argwhere(starts % wide != 0)
        if len(wrong):
            start = int(starts[tuple(wrong[0])])
            return f"the {wide} bytes at {self._at(wrong[0])} start at byte {start}, which is misaligned"
        for step in range(1, self.vector):
            shifted = (self.rows + step * (self.along == 0), self.columns + step * (self.along == 1))
            wrong = np.argwhere(table[shifted] != starts + step * size)
            if len(wrong):
                return f"{wide} bytes along dimension {self.along} are not contiguous; first at {self._at(wrong[0])}"
        return Moved(self.name, len(starts), int(turns(starts, self.bits).sum()), self.least)

    def _at(self, place: IntArray) -> tuple[int, int]:
        group, lane = place
        return int(self.rows[group, lane]), int(self.columns[group, lane])


def reached(places: list[int], added: dict[int, int]) -> set[int]:
    """Return the bank bits reached from these address bits, including through the swizzle's XORs."""
    return {bit for bit in BANK_BITS if bit in places or added.get(bit) in places}


def turns(starts: IntArray, bits: int) -> IntArray:
    """Return the different words in the busiest bank of each group of lanes, given their starts, int64[group, lane]."""
    words = starts[:, :, None] // WORD_BYTES + np.arange(max(1, bits // 32))
    most: IntArray = words_by_bank(words.reshape(len(starts), -1), BANKS).max(axis=1)
    return most


def accesses(name: str, box: Box, registers: object = None) -> dict[int, Access | str]:
    """Return the access, or why there is none, for each direction of the chunks.

    Example:
        >>> found = accesses("ldmatrix.x4", Box((64, 64), 2))
        >>> found[1].terms, found[0]
        (((1, 0), (1, 1), (1, 2), (0, 0), (0, 1), (0, 2)), 'ldmatrix.x4 moves 16 bytes along dimension 1')
    """
    try:
        access = nvidia_access(name)
    except MalformedError:
        raise CHECK.malformed("consumers", "must name a supported instruction", name) from None
    if registers is None:
        return {inner: _of_tile(name, access, box, inner) for inner in (0, 1)}
    if not isinstance(registers, LinearLayout) or len(registers.out_dims) != 2 or registers.in_dims.get("lane") != 32:
        rule = "must pair an instruction with a linear layout of (register, lane, warp) to the two tile coordinates"
        raise CHECK.malformed("consumers", rule, registers)
    if tuple(registers.out_dims.values()) != box.extents or registers.constant:
        raise CHECK.malformed("consumers", f"must have registers that cover the tile {box.extents}", registers)
    return {inner: _of_registers(name, access, box, inner, registers) for inner in (0, 1)}


def _of_tile(name: str, access: Instruction, box: Box, inner: int) -> Access | str:
    """Return the access that moves the whole tile, whatever its layout: the rows of a dense one say who moves what."""
    size, many = box.element_bytes, access.bits // 8 // box.element_bytes
    if access.transposed and size != 2:
        return f"{name} transposes 16-bit elements, not {8 * size}-bit ones"
    if not many:
        return f"{name} moves {access.bits} bits, less than an element"
    if inner == 0 and not access.transposed and (access.matrices or many > 1):
        return f"{name} moves {access.bits // 8} bytes along dimension 1"
    along = inner if access.matrices else 1
    dense = np.arange(0, 8 * box.bytes, 8 * size, dtype=np.int64).reshape(box.extents, order="C" if along else "F")
    found = along_dimension(access_form(name), dense, 8 * size, along)
    return _grouped(name, access, box, along, found)


def _of_registers(name: str, access: Instruction, box: Box, inner: int, registers: LinearLayout) -> Access | str:
    """Return the access whose lanes move what the registers say, each vector or row along ``inner``."""
    rows, columns = box.extents
    dense = CuteLayout(box.extents, (columns, 1) if inner else (1, rows))
    places = bit_addresses(registers, dense, 8 * box.element_bytes, box.extents)
    found = divided(access_form(name), places, places // (8 * box.element_bytes), 8 * box.element_bytes)
    return _grouped(name, access, box, inner, found)


def _grouped(name: str, access: Instruction, box: Box, along: int, found: Instructions | Broken) -> Access | str:
    """Return the access of instructions on the tile that is dense along a dimension."""
    if isinstance(found, Broken):
        return found.reason
    together = 8 if access.matrices else len(bank_model("sm_90a", name).groups[0])
    starts = found.addresses.reshape(-1, found.addresses.shape[-1])
    if access.kind == "load" and together < LANES and merged(starts, np.ones(starts.shape, dtype=bool), JOINS).all():
        together *= 2
    line, place = np.divmod(starts.reshape(-1, together) // box.element_bytes, box.extents[along])
    rows, columns = (line, place) if along else (place, line)
    vector = access.bits // 8 > box.element_bytes
    return Access(name, access.kind, access.bits, box, along if vector else -1, rows, columns)
