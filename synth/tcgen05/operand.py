"""Find ``tcgen05`` operands: descriptors derived from address differences of the layout, then verified.

For each (rows of an instruction, major, swizzle mode, base offset) the XOR of that mode is undone on the requested
chunks. The result must be the mode's read pattern: its field steps are differences at the unit coordinates of their
digits, its start is the value at the first element, and the whole instruction is then compared by table. The XOR is an
involution for a given base offset, so this finds a descriptor of the mode whenever one exists. If only undocumented
reads would do, the answer is not a refusal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.errors import MalformedError, TargetRuleError
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.tcgen05 import Tcgen05Plan, Tcgen05Tile, refuted
from layoutalg.proofs.tcgen05.reading import read_bits
from layoutalg.targets.nvidia import tcgen05 as hardware
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class OperandQuestion:
    """A requested operand of ``tcgen05.mma``."""

    operand: str  # ``"A"`` or ``"B"``
    dtype: str  # element type
    kind: str  # the ``.kind``
    wanted: IntArray  # int64[mn, k]: bit address of each element, relative to the tile base
    rows: tuple[int, ...]  # rows that one instruction may read in this CTA, if K-major; most first
    transposed_rows: tuple[int, ...]  # the same, if MN-major
    k: int  # elements along K of one instruction
    align_bytes: int  # alignment of the tile base


def find_operand(question: OperandQuestion) -> Tcgen05Plan | Broken | Unknown:
    """Return the descriptors of an operand, checked, or why no documented descriptor reads it, or only undocumented do.

    Example:
        >>> row, k = np.arange(64)[:, None], np.arange(16)[None, :]
        >>> wanted = 128 * row + 8192 * (k // 8) + 16 * (k % 8)
        >>> print(find_operand(OperandQuestion("A", "f16", "f16", wanted, (64,), (64,), 16, 1024)))
        A of tcgen05.mma.kind::f16, f16, K-major, NONE: 1 descriptor of 64 x 16
          (0, 0): 0x0000400800400000
        >>> find_operand(OperandQuestion("A", "f16", "f16", wanted * 3, (64,), (64,), 16, 1024)).rule
        'TCGEN05_LAYOUT'
    """
    search = _Search(question)
    for major in hardware.MAJORS:
        for rows in question.rows if major == "K" else question.transposed_rows:
            if question.wanted.shape[0] % rows:
                continue
            for swizzle in hardware.SWIZZLES:
                clock.check("the search for descriptors")
                tiles = search.tiles(major, swizzle, rows)
                if tiles is not None:
                    return search.plan(major, swizzle, rows, tiles)
    return search.missing()


class _Search:
    """The search for one question, and its findings."""

    def __init__(self, question: OperandQuestion) -> None:
        self.question = question
        self.entry = hardware.checked_kind(question.kind)
        self.inner = 128 // self.entry.container_bits
        self.undocumented = ""
        self.forbidden: Broken | None = None
        self.equal, self.closest = -1, ""
        self.witness: dict[str, object] = {}

    def tiles(self, major: str, swizzle: str, rows: int) -> list[Tcgen05Tile] | None:
        """Return the descriptors of every instruction in one mode, or None."""
        found: list[Tcgen05Tile] = []
        missing = ""
        for mn in range(0, self.question.wanted.shape[0], rows):
            for k in range(0, self.question.wanted.shape[1], self.question.k):
                answer = self._tile(major, swizzle, rows, mn, k)
                if answer is None:
                    return None
                descriptor, lacking = answer
                missing = missing or lacking
                found.append(Tcgen05Tile(mn, k, descriptor.encode()))
        if missing:
            self.undocumented = self.undocumented or missing
            return None
        return found

    def _tile(
        self, major: str, swizzle: str, rows: int, mn: int, k: int
    ) -> tuple[hardware.MatrixDescriptor, str] | None:
        block = self.question.wanted[mn : mn + rows, k : k + self.question.k]
        for descriptor in self._candidates(block, major, swizzle):
            try:
                read, missing = self._read(descriptor, rows, major)
            except TargetRuleError as error:
                if error.rule.startswith("TCGEN05_TRANSPOSE"):
                    self._forbid(error, block, descriptor)
                return None
            wrong = np.argwhere(read != block)
            if len(wrong):
                self._saw(read, block, wrong[0], mn, k, f"{major}-major, {swizzle}", descriptor)
                continue
            if all(
                np.array_equal(self._read(descriptor.moved(base), rows, major)[0], block + 8 * base)
                for base in self.bases(swizzle)
            ):
                return descriptor, missing
            align = self.question.align_bytes
            because = f"{major}-major, {swizzle}, whose pattern changes with the base if only {align}-byte aligned"
            self._saw(read, block, np.zeros(2, dtype=np.int64), mn, k, because, descriptor)
        return None

    def bases(self, swizzle: str) -> tuple[int, ...]:
        """Tile bases that a swizzle distinguishes."""
        return tuple(range(0, SWIZZLE_TABLE[swizzle].period_bytes, self.question.align_bytes)) or (0,)

    def _read(self, descriptor: hardware.MatrixDescriptor, rows: int, major: str) -> tuple[IntArray, str]:
        question = self.question
        return hardware.continued_bits(descriptor, question.dtype, rows, question.k, major=major, kind=question.kind)

    def _candidates(self, block: IntArray, major: str, swizzle: str) -> Iterator[hardware.MatrixDescriptor]:
        """The only descriptor per base offset that can read a block."""
        if int(block.min()) < 0 or int(block[0, 0]) % 128:
            return
        phases = SWIZZLE_TABLE[swizzle].period_bytes // 128 or 1
        for base_offset in range(phases):
            chunks = hardware.swizzled(block // 128 * 16, swizzle, base_offset)
            fields = self._fields(chunks, major, swizzle)
            try:
                yield hardware.MatrixDescriptor(int(chunks[0, 0]), *fields, base_offset, swizzle)
            except MalformedError:
                continue

    def _fields(self, chunks: IntArray, major: str, swizzle: str) -> tuple[int, int]:
        """Leading and stride bytes: differences at the unit coordinates of their digits; 16 if not read."""
        span = SWIZZLE_TABLE[swizzle].span_bytes
        wide = self.inner * span // 16
        along = {
            ("K", False): ((0, self.inner), (8, 0)),
            ("K", True): ((0, wide), (8, 0)),
            ("MN", False): ((0, 8), (self.inner, 0)),
            ("MN", True): ((wide, 0), (0, 4 if swizzle == "128B_ATOM_32B" else 8)),
        }[major, swizzle != "NONE"]
        rows, ks = chunks.shape
        leading, stride = (int(chunks[mn, k] - chunks[0, 0]) if mn < rows and k < ks else 16 for mn, k in along)
        return leading, stride

    def _forbid(self, error: TargetRuleError, block: IntArray, descriptor: hardware.MatrixDescriptor) -> None:
        """Record a rule that forbids MN-major, or a mode of it, for an operand that would fit otherwise."""
        bits, container = hardware.BITS[self.question.dtype], self.entry.container_bits
        if container in (8, 16) and bits == container:
            read = read_bits(descriptor.encode(), block.shape[0], block.shape[1], container, bits, "MN")
            kept = not isinstance(read, str) and np.array_equal(read, block)
        else:  # at most one mode is legal: report the rule for every operand that is contiguous along MN
            run = min(self.inner, block.shape[0])
            kept = np.array_equal(np.diff(block[:run, 0]), np.full(run - 1, bits))
        if self.forbidden is None and kept:
            self.forbidden = Broken(error.rule, error.diagnostic.because or error.diagnostic.what)

    def _saw(
        self, read: IntArray, block: IntArray, at: IntArray, mn: int, k: int, mode: str,
        descriptor: hardware.MatrixDescriptor,
    ) -> None:  # fmt: skip
        """Keep the candidate with the most correct reads."""
        equal = int((read == block).sum())
        if equal > self.equal:
            i, j = int(at[0]), int(at[1])
            self.equal, self.closest = equal, mode
            self.witness = {
                "mn": mn + i, "k": k + j, "requested_bit": int(block[i, j]), "read_bit": int(read[i, j]),
                "descriptor": f"{descriptor.encode():#018x}",
            }  # fmt: skip

    def missing(self) -> Broken | Unknown:
        """Return why nothing was found: undocumented reads, a rule that forbids what would fit, or the closest mode."""
        first = int(self.question.wanted[0, 0])
        if self.undocumented:
            return unknown(self.undocumented)
        if self.witness:
            because = f"no documented descriptor reads the layout; the closest is {self.closest}"
        elif first % 128:
            because = f"the first element is at bit {first}, which is not 16-byte aligned"
        else:
            because = "the layout's strides do not fit the descriptor fields: multiples of 16 below 2^18 bytes"
        return replace(self.forbidden or Broken("TCGEN05_LAYOUT", because), witness=self.witness)

    def plan(self, major: str, swizzle: str, rows: int, tiles: list[Tcgen05Tile]) -> Tcgen05Plan | Unknown:
        """Return the plan, after the checker confirmed it."""
        question = self.question
        made = Tcgen05Plan(
            question.operand, question.dtype, question.kind, rows, question.k, self.entry.container_bits,
            hardware.BITS[question.dtype], major, swizzle, question.align_bytes, tuple(tiles),
        )  # fmt: skip
        wrong = refuted(made, question.wanted, self.bases(swizzle))
        return unchecked(wrong) if wrong else made


def unknown(what: str) -> Unknown:
    """Return the answer that documents leave something open."""
    return Unknown(f"undocumented: {what}", ("tcgen05",))


def unchecked(wrong: str) -> Unknown:
    """Return the answer where the checker refutes the plan found: it is never handed out."""
    return unknown(f"whether the finder or the checker is right: {wrong}")
