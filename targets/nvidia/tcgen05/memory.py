"""Tensor memory as types that refuse illegal use: allocation, register access, copies, the layout of D.

Notation: an address is lane * 2^16 + column; tensor memory has 128 lanes and 512 columns of 32 bits per block.

References: PTX ISA 9.1 sections 9.7.16.1 (tensor memory), 9.7.16.7 (allocation), 9.7.16.8 (load and store), 9.7.16.9
(copy), 9.7.16.10.5 (data path layouts); CUTLASS 4, tensor memory fragments; not run on a device.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.kinds import checked_kinds
from layoutalg.ground.picture import Shown
from layoutalg.targets.layouts.tmem import ATOMS, SPLIT_ATOM, tmem_atom
from layoutalg.targets.nvidia.tcgen05.descriptor import broken

LANES, COLUMNS, LANE_STEP = 128, 512, 1 << 16
WARP_LANES = 32
"""Lanes that one warp of a warpgroup can access: warp w has 32 w to 32 w + 31."""
MIN_COLUMNS = 32
SHAPES = (*ATOMS, SPLIT_ATOM)
ALLOCATION_SOURCE = "PTX ISA 9.1 section 9.7.16.7.1"
ACCESS_SOURCE = "PTX ISA 9.1 section 9.7.16.8"
CHECK = Checker("LA846", "invalid use of tensor memory")


@dataclass(frozen=True, slots=True)
class TmemAllocation(Shown):
    """Columns of tensor memory from one ``tcgen05.alloc``.

    Args:
        columns: A power of two in 32..512.
        start_column: The first column, a multiple of 32.
        cta_group: 1 or 2 blocks.

    Raises: MalformedError: LA846. TargetRuleError: LA847: rules TMEM_COLUMNS, TMEM_RANGE.

    Example:
        >>> TmemAllocation(128, 256).end_column
        384
        >>> TmemAllocation(48)
        Traceback (most recent call last):
        layoutalg.ground.errors.TargetRuleError: LA847 tcgen05 does not allow this
          in     TMEM_COLUMNS
          since  columns must be a power of two in 32..512, not 48; the nearest is 64
          see    PTX ISA 9.1 section 9.7.16.7.1
    """

    columns: int
    start_column: int = 0
    cta_group: int = 1

    def __post_init__(self) -> None:
        checked_kinds(self, "LA846")
        CHECK.integer(self.cta_group, "cta_group", 1, 3)
        many = self.columns
        if many not in (32, 64, 128, 256, 512):
            near = min(COLUMNS, max(MIN_COLUMNS, 1 << max(0, many - 1).bit_length() if many < COLUMNS else COLUMNS))
            because = f"columns must be a power of two in 32..512, not {many}; the nearest is {near}"
            raise broken("TMEM_COLUMNS", because, "LA847", ALLOCATION_SOURCE)
        if self.start_column % MIN_COLUMNS or not 0 <= self.start_column <= COLUMNS - many:
            because = f"{many} columns from {self.start_column} must start at a multiple of 32 and fit in {COLUMNS}"
            raise broken("TMEM_RANGE", because, "LA847", ALLOCATION_SOURCE)

    @property
    def end_column(self) -> int:
        """The first column after it."""
        return self.start_column + self.columns


@dataclass(frozen=True, slots=True)
class TmemUse(Shown):
    """A legal sequence of a block's tensor-memory operations.

    Each method returns the sequence with one more instruction, and raises if that instruction is illegal there.

    Args:
        live: Allocations not yet freed.
        last_columns: Columns of the last allocation; 0 before the first.
        warp: The warp that allocates; -1 before the first.
        relinquished: Whether the permit to allocate was given up.
        cta_group: 1 or 2, the same in all instructions of a kernel; 0 before the first.

    Raises: MalformedError: LA846. TargetRuleError: LA847: rules TMEM_OVERLAP, TMEM_GROWS, TMEM_ONE_WARP,
        TMEM_RELINQUISHED, TMEM_CTA_GROUP, TMEM_NOT_ALLOCATED, TMEM_NOT_FREED.

    Example:
        >>> first = TmemAllocation(128)
        >>> use = TmemUse().alloc(first, warp=0)
        >>> use.free(first).exit()
        ()
        >>> use.alloc(TmemAllocation(256, 128), warp=0)
        Traceback (most recent call last):
        layoutalg.ground.errors.TargetRuleError: LA847 tcgen05 does not allow this
          in     TMEM_GROWS
          since  256 columns after 128: allocation sizes must not grow within a block
          see    PTX ISA 9.1 section 9.7.16.7.1
    """

    live: tuple[TmemAllocation, ...] = ()
    last_columns: int = 0
    warp: int = -1
    relinquished: bool = False
    cta_group: int = 0

    def __post_init__(self) -> None:
        checked_kinds(self, "LA846")
        CHECK.integer(self.warp, "warp", -1, 32)
        CHECK.integer(self.cta_group, "cta_group", 0, 3)
        if self.last_columns and self.last_columns not in (32, 64, 128, 256, 512):
            raise CHECK.malformed("last_columns", "must be 0 or the size of an allocation", self.last_columns)
        if (self.last_columns == 0) != (self.warp < 0) or (self.last_columns == 0) != (self.cta_group == 0):
            raise CHECK.malformed("warp", "must be set exactly after an allocation", self.warp)
        ends = -1
        for entry in sorted(self.live, key=lambda found: found.start_column):
            if entry.start_column < ends:
                raise CHECK.malformed("live", "must not overlap", self.live)
            if entry.cta_group != self.cta_group or entry.columns < self.last_columns:
                raise CHECK.malformed("live", "must be allocations of this block, in order", entry)
            ends = entry.end_column

    def alloc(self, allocation: TmemAllocation, warp: int) -> TmemUse:
        """Return the sequence with a ``tcgen05.alloc`` of these columns by a warp."""
        given = CHECK.kind(allocation, TmemAllocation, "allocation")
        by = CHECK.integer(warp, "warp", 0, 32)
        if self.relinquished:
            raise _use("TMEM_RELINQUISHED", "the permit to allocate was given up before")
        if self.last_columns and given.columns > self.last_columns:
            because = (
                f"{given.columns} columns after {self.last_columns}: allocation sizes must not grow within a block"
            )
            raise _use("TMEM_GROWS", because)
        if self.warp not in (-1, by):
            raise _use("TMEM_ONE_WARP", f"warp {by} allocates after warp {self.warp}; only one warp of a block may")
        if self.cta_group not in (0, given.cta_group):
            raise _use("TMEM_CTA_GROUP", f"cta_group {given.cta_group} after {self.cta_group}: a kernel must use one")
        for other in self.live:
            if given.start_column < other.end_column and other.start_column < given.end_column:
                because = f"columns {given.start_column}..{given.end_column - 1} are taken by {other}"
                raise _use("TMEM_OVERLAP", because)
        return TmemUse((*self.live, given), given.columns, by, False, given.cta_group)

    def free(self, allocation: TmemAllocation) -> TmemUse:
        """Return the sequence with a ``tcgen05.dealloc`` of an allocation."""
        given = CHECK.kind(allocation, TmemAllocation, "allocation")
        if given not in self.live:
            raise _use("TMEM_NOT_ALLOCATED", f"{given} is not allocated, or was freed before")
        left = tuple(other for other in self.live if other != given)
        return TmemUse(left, self.last_columns, self.warp, self.relinquished, self.cta_group)

    def relinquish(self) -> TmemUse:
        """Return the sequence with a ``tcgen05.relinquish_alloc_permit``."""
        return TmemUse(self.live, self.last_columns, self.warp, True, self.cta_group)

    def exit(self) -> tuple[TmemAllocation, ...]:
        """Return () if the kernel may end, i.e. everything was freed."""
        if self.live:
            raise _use("TMEM_NOT_FREED", f"{len(self.live)} allocations are not freed at the end: {self.live[0]}")
        return ()


@dataclass(frozen=True, slots=True)
class TmemAccess(Shown):
    """One ``tcgen05.ld`` or ``tcgen05.st`` of one warp.

    Args:
        shape: ``"32x32b"``, ``"16x64b"``, ``"16x128b"``, ``"16x256b"`` or ``"16x32bx2"``.
        num: The repetition ``.xN``, a power of two.
        warp: The warp, in the warpgroup or in the block.
        lane: First lane, of the address.
        column: First column, of the address.
        split_columns: The immediate of 16x32bx2, in columns; 0 for the other shapes.

    Raises: MalformedError: LA846. TargetRuleError: LA847: rules TMEM_NUM, TMEM_LANES, TMEM_RANGE, TMEM_SPLIT.

    Example:
        >>> access = TmemAccess("32x32b", 4, warp=1, lane=32, column=8)
        >>> print(access, hex(access.address), access.registers)
        tcgen05.ld.32x32b.x4 of warp 1: lanes 32..63, columns 8..11 0x200008 4
        >>> TmemAccess("32x32b", 4, warp=1, lane=0)
        Traceback (most recent call last):
        layoutalg.ground.errors.TargetRuleError: LA847 tcgen05 does not allow this
          in     TMEM_LANES
          since  warp 1 can access lanes 32..63, not lanes 0..31
          see    PTX ISA 9.1 section 9.7.16.8
    """

    shape: str
    num: int
    warp: int = 0
    lane: int = 0
    column: int = 0
    split_columns: int = 0

    def __post_init__(self) -> None:
        checked_kinds(self, "LA846")
        CHECK.choice(self.shape, "shape", SHAPES)
        if self.num < 1 or self.num & (self.num - 1) or self.registers > 128:
            most = 128 // _registers(self.shape)
            raise _access("TMEM_NUM", f".x{self.num} of {self.shape}: .num must be a power of two in 1..{most}")
        CHECK.integer(self.warp, "warp", 0, 32)
        own = self.warp % 4 * WARP_LANES
        lanes = range(own, own + 1) if self.shape == "32x32b" else (own, own + 16)
        if self.lane not in lanes:
            last = self.lane + self.lanes - 1
            because = f"warp {self.warp} can access lanes {own}..{own + WARP_LANES - 1}, not lanes {self.lane}..{last}"
            if own <= self.lane <= last < own + WARP_LANES:
                because = f"16 lanes of warp {self.warp} must start at lane {own} or {own + 16}, not {self.lane}"
            raise _access("TMEM_LANES", because)
        if self.shape != SPLIT_ATOM and self.split_columns:
            raise _access("TMEM_SPLIT", f"{self.shape} has no second half to move by {self.split_columns} columns")
        far = self.column + self.width + (self.split_columns if self.shape == SPLIT_ATOM else 0)
        if not 0 <= self.column < COLUMNS or self.split_columns < 0 or far > COLUMNS:
            because = f"columns {self.column}..{far - 1} of {self.shape}.x{self.num} exceed the {COLUMNS}"
            raise _access("TMEM_RANGE", because)

    @property
    def registers(self) -> int:
        """32-bit registers of each thread."""
        return self.num * _registers(self.shape)

    @property
    def lanes(self) -> int:
        """Lanes of tensor memory."""
        return 32 if self.shape == "32x32b" else 16

    @property
    def width(self) -> int:
        """Columns of one run."""
        return self.num * {"32x32b": 1, "16x64b": 2, "16x128b": 4, "16x256b": 8, SPLIT_ATOM: 1}[self.shape]

    @property
    def address(self) -> int:
        """The address operand."""
        return self.lane * LANE_STEP + self.column

    @property
    def layout(self) -> LinearLayout:
        """(register, lane) to (row, col) relative to the address; see ``layoutalg.targets.layouts.tmem.tmem_atom``.

        Raises: RepresentabilityError: LA702, if the halves of 16x32bx2 carry into each other.
        """
        return tmem_atom(self.shape, self.num, self.split_columns if self.shape == SPLIT_ATOM else None)

    def within(self, allocation: TmemAllocation) -> bool:
        """Return whether every column is one of the allocation's."""
        given = CHECK.kind(allocation, TmemAllocation, "allocation")
        far = self.column + self.width + self.split_columns
        return given.start_column <= self.column and far <= given.end_column

    def __str__(self) -> str:
        where = (
            f"lanes {self.lane}..{self.lane + self.lanes - 1}, columns {self.column}..{self.column + self.width - 1}"
        )
        more = f" and {self.column + self.split_columns}.." if self.shape == SPLIT_ATOM else ""
        return f"tcgen05.ld.{self.shape}.x{self.num} of warp {self.warp}: {where}{more}"

    def to_json(self) -> dict[str, object]:
        """Return the access as JSON-ready data."""
        return {
            "schema": "layoutalg/tmem-access/1", "shape": self.shape, "num": self.num, "warp": self.warp,
            "lane": self.lane, "column": self.column, "split_columns": self.split_columns, "address": self.address,
        }  # fmt: skip


def data_path(m: int, cta_group: int = 1, ws: bool = False, sparse: bool = False) -> str:
    """Return the letter of an instruction's data path layout for D.

    Raises: MalformedError: LA846. TargetRuleError: LA847 (rule TCGEN05_M).

    Example:
        >>> data_path(128), data_path(64), data_path(64, ws=True), data_path(128, 2), data_path(128, 2, sparse=True)
        ('D', 'F', 'E', 'B', 'C')
    """
    rows, group = CHECK.integer(m, "m", 0, 513), CHECK.integer(cta_group, "cta_group", 1, 3)
    for name, flag in (("ws", ws), ("sparse", sparse)):
        if not isinstance(flag, bool):
            raise CHECK.malformed(name, "must be True or False", flag)
    known = {(128, 1): "D", (64, 1): "E" if ws else "F", (256, 2): "A", (128, 2): "C" if sparse else "B"}
    if ws:
        known = {(128, 1): "D", (64, 1): "E", (32, 1): "G"}
    if (rows, group) not in known:
        because = f"no instruction has M = {rows} with cta_group {group}{' and .ws' if ws else ''}"
        raise broken("TCGEN05_M", because, "LA847", "PTX ISA 9.1 section 9.7.16.10.5")
    return known[rows, group]


def accumulator_layout(
    m: int, n: int, cta_group: int = 1, ws: bool = False, sparse: bool = False, lane: int = 0
) -> CuteLayout | ComposedLayout:
    """Return the layout of D in tensor memory: (m, n) to lane * 2^16 + column, plus 2^32 for a pair's second block.

    Mathematically, with one element per column: A, D: lane m (of the pair: mod 128). F, C: lane 32 (m div 16) + m mod
    16, half of the lanes. B, E: the second half of n lies in lanes 64 and up. G: each quarter of n lies in its own 32
    lanes.

    Args:
        m: Rows of the instruction.
        n: Columns, a multiple of 8; of 16 for layouts B and E, of 32 for G.
        cta_group: 1 or 2 blocks; each of a pair has half of the rows.
        ws: Whether the instruction is weight stationary.
        sparse: Whether A is sparse.
        lane: 0, or 16 for layouts F and C: which half of the lanes.

    Raises: MalformedError: LA846. TargetRuleError: LA847 (rules TCGEN05_M, TMEM_LANES).

    Example:
        >>> print(accumulator_layout(128, 64))
        (128,64):(65536,1)
        >>> print(accumulator_layout(64, 64))
        ((16,4),64):((65536,2097152),1)
        >>> print(accumulator_layout(128, 64, 2))
        ((64,2),(32,2)):((65536,4294967296),(1,4194304))

    Source: PTX ISA 9.1 section 9.7.16.10.5; CUTLASS 4, ``tmem_frg`` and ``tmem_frg_ws``.
    """
    letter = data_path(m, cta_group, ws, sparse)
    many = {"B": 2, "E": 2, "G": 4}.get(letter, 1)
    columns = CHECK.integer(n, "n", 8, 257)
    if columns % (8 * many):
        raise CHECK.malformed("n", f"must be a multiple of {8 * many} for data path layout {letter}", columns)
    if CHECK.integer(lane, "lane", 0, LANES) not in ((0, 16) if letter in "CF" else (0,)):
        because = f"data path layout {letter} must start at lane 0{' or 16' if letter in 'CF' else ''}, not {lane}"
        raise broken("TMEM_LANES", because, "LA847", "PTX ISA 9.1 section 9.7.16.10.5")
    rows = [({"A": 128, "D": 128, "B": 64, "E": 64, "G": 32}.get(letter, 16), LANE_STEP)]
    if letter in "CF":
        rows.append((4, 32 * LANE_STEP))
    if cta_group == 2:
        rows.append((2, 1 << 32))
    cols = [(columns // many, 1)] + ([(many, LANES // many * LANE_STEP)] if many > 1 else [])
    modes = [tuple(zip(*digits, strict=True)) for digits in (rows, cols)]
    shape = tuple(extents if len(extents) > 1 else extents[0] for extents, _ in modes)
    strides = tuple(steps if len(steps) > 1 else steps[0] for _, steps in modes)
    found = CuteLayout(shape, strides)
    return ComposedLayout(Swizzle(0, 0, 0), lane * LANE_STEP, found) if lane else found


def _registers(shape: str) -> int:
    return {"16x128b": 2, "16x256b": 4}.get(shape, 1)


def _use(rule: str, because: str) -> Exception:
    return broken(rule, because, "LA847", ALLOCATION_SOURCE)


def _access(rule: str, because: str) -> Exception:
    return broken(rule, because, "LA847", ACCESS_SOURCE)
