"""Count the sectors and lines of global memory that the registers of warps or waves touch, and suggest fewer.

``ask.global_moves`` finds the instructions and their addresses; ``targets.global_memory`` counts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from layoutalg.ask.global_moves import CHECK, Asked, Origin, Placed, global_moves, placed
from layoutalg.cute import CuteLayout, composition
from layoutalg.draw.canvas import Canvas, draw_value
from layoutalg.draw.sectors import draw_sectors
from layoutalg.f2 import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground.byte_runs import merged_runs
from layoutalg.ground.errors import Diagnostic, LayoutError, Repair, RepresentabilityError
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Record
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.certify.banks import sectors_of
from layoutalg.proofs.register_map import IntArray
from layoutalg.targets.global_memory import GlobalAccess, requested, touched
from layoutalg.targets.registry import lookup

SOUGHT = 2**17
"""Registers of a tile for which better ones are sought."""


@dataclass(frozen=True, slots=True)
class WarpAccess(Record, Shown, code="LA982"):
    """One instruction of one warp or wave.

    Args:
        warp: Warp number.
        registers: The registers it moves, in address order.
        sectors: Sectors it touches.
        lines: Lines it touches.
        bytes: Different bytes that its active lanes request.
        ideal: The fewest sectors that hold so many bytes.
    """

    warp: int
    registers: tuple[int, ...]
    sectors: int
    lines: int
    bytes: int
    ideal: int

    @property
    def excess(self) -> int:
        """Sectors above the fewest."""
        return self.sectors - self.ideal


@dataclass(frozen=True, slots=True)
class TransactionReport(
    Record,
    Shown,
    code="LA982",
    schema="layoutalg/transactions/1",
    json="instruction target accesses sectors lines bytes ideal excess coalesced lane_bytes sector_bytes line_bytes "
    "evidence sources notes why worst worst_bytes each better better_sectors",
):
    """Sectors and lines of a global-memory access.

    Args:
        instruction: The instruction.
        target: The target.
        each: Every instruction of every warp that has an active lane.
        worst: The one with the most sectors above its fewest; the first such.
        worst_bytes: The byte that each of its lanes starts at, from the tensor's first element; None if inactive.
        lane_bytes: Bytes that a lane moves.
        sector_bytes: Bytes of a sector.
        line_bytes: Bytes of a line.
        sources: The documents that state both.
        notes: Remarks on what was not counted.
        asked: The arguments of the question, reused by ``better``, ``certificate`` and ``written``.
    """

    instruction: str
    target: str
    each: tuple[WarpAccess, ...]
    worst: WarpAccess
    worst_bytes: tuple[int | None, ...]
    lane_bytes: int
    sector_bytes: int
    line_bytes: int
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    asked: Asked | None = field(default=None, compare=False, repr=False)

    @property
    def accesses(self) -> int:
        """Instructions, over all warps."""
        return len(self.each)

    @property
    def sectors(self) -> int:
        """Sectors of all instructions."""
        return sum(access.sectors for access in self.each)

    @property
    def lines(self) -> int:
        """Lines of all instructions."""
        return sum(access.lines for access in self.each)

    @property
    def bytes(self) -> int:
        """Different bytes that each instruction requests, summed."""
        return sum(access.bytes for access in self.each)

    @property
    def ideal(self) -> int:
        """The fewest sectors in which instructions could request these bytes, each its own."""
        return sum(access.ideal for access in self.each)

    @property
    def excess(self) -> int:
        """Sectors above the fewest."""
        return self.sectors - self.ideal

    @property
    def coalesced(self) -> bool:
        """Whether no instruction touches more sectors than its bytes need."""
        return not self.excess

    @property
    def evidence(self) -> str:
        """``"measured"`` where counters of a device agree with the vendor's sizes of sectors, else ``"documented"``."""
        return "measured" if lookup(self.target).measured else "documented"

    @property
    def why(self) -> str:
        """How the lanes of the worst instruction lie, and how much of its sectors they use."""
        return _cause(self)

    @property
    def better(self) -> LinearLayout | CuteLayout | None:
        """Registers for the same tile that touch fewer sectors: as many registers, lanes and warps; or None.

        The elements are dealt out along the smallest strides: a vector to each lane, then lanes, warps, and further
        registers. The result was counted again. None if that is no improvement, if registers are copies of others, or
        if there are more than 2^17 of them.
        """
        found = self.after
        return None if found is None or found.asked is None else found.asked.registers

    @property
    def after(self) -> TransactionReport | None:
        """The report of ``better``; None if there is none."""
        return None if self.asked is None or self.coalesced else _improved(self, self.asked)

    @property
    def better_sectors(self) -> int | None:
        """The sectors of ``better``."""
        found = self.after
        return None if found is None else found.sectors

    @property
    def certificate(self) -> Certificate:
        """The sectors as a ``bank-turns`` certificate: one bank, whose words are the sectors.

        Raises: RepresentabilityError: LA436, for AMD.
        """
        access, moves = global_moves(placed(_asked(self)), _asked(self))
        rows = [row for move in moves for row in move.addresses if row.max() >= 0]
        full = [np.where(row < 0, row.max(), row) for row in rows]  # an inactive lane repeats an active one
        return sectors_of(self.target, access.name, np.concatenate(full))

    def written(self) -> tuple[tuple[int, int], ...]:
        """Return the bytes that a store writes: (first byte from the tensor's base, length), ascending and apart.

        Raises: MalformedError: LA982, if the instruction is a load. RepresentabilityError: LA983, if the origin is
            known only modulo a number.

        Example:
            >>> transactions("(32,2):(2,1)", ((8, 8), "f32"), "store").written()
            ((0, 256),)
        """
        asked = _asked(self)
        found = placed(asked)
        access, moves = global_moves(found, asked)
        if not access.store:
            raise CHECK.malformed("instruction", "must be a store to write", access.name)
        if not found.known:
            what, because = "the written bytes depend on the origin", "state the origin's coordinates"
            raise RepresentabilityError(Diagnostic("LA983", what, (str(asked.origin),), because))
        starts = np.concatenate([move.addresses.reshape(-1) for move in moves])
        return merged_runs(starts[starts >= 0], access.bytes)

    @property
    def counts(self) -> tuple[str, ...]:
        """The sectors, and where the worst instruction has them, in words."""
        does = f"{self.accesses} x {self.instruction}: {_many(self.sectors, 'sector')} of {self.sector_bytes} bytes"
        if self.line_bytes != self.sector_bytes:
            does += f" in {_many(self.lines, 'line')}"
        lines = [f"{does}, the fewest" if self.coalesced else f"{does} where {self.ideal} would hold the bytes"]
        if not self.coalesced:
            worst = self.worst
            lines.append(
                f"worst   warp {worst.warp}, registers {list(worst.registers)}: {worst.sectors} sectors instead of "
                f"{worst.ideal}; {self.why}"
            )
        return tuple(lines)

    def __str__(self) -> str:
        after, lines = self.after, list(self.counts)
        if after is not None and after.asked is not None:
            lines.append(f"better  {after.asked.registers}: {_many(after.sectors, 'sector')}")
        return "\n".join([*lines, *(f"note    {note}" for note in self.notes)])


@draw_value.register(TransactionReport)
def draw_report(report: TransactionReport, canvas: Canvas, top: float) -> None:
    """Draw the sectors that each lane of the worst instruction touches, before and after."""
    draw_sectors(canvas, str(report).split("\n")[0], report.worst_bytes, report.lane_bytes, report.sector_bytes, top)
    after = report.after
    if after is not None and after.asked is not None:
        top, title = canvas.height + 16, f"with {after.asked.registers}: {after.sectors} sectors"
        draw_sectors(canvas, title, after.worst_bytes, after.lane_bytes, after.sector_bytes, top)


def transactions(
    registers: object,
    tensor: object,
    instruction: str | None = None,
    target: str = "sm_90a",
    element_bits: int | str | None = None,
    *,
    origin: Origin = None,
    tile: Sequence[int] | None = None,
    lanes: Sequence[str] | None = None,
    warps: Sequence[str] | None = None,
) -> TransactionReport:
    """Count the sectors and cache lines that registers touch in global memory, and find registers that touch fewer.

    Mathematically: element (register, lane, warp) is at ``tensor(origin + registers(register, lane, warp))``; an
    instruction of a warp touches the distinct sectors of 32 bytes and lines of 128 bytes that contain a byte of an
    active lane. Lanes out of the tensor's bounds are inactive. Caches and L2 promotion are not modelled.

    Args:
        registers: A layout of any family or its text: axes ``register``, ``lane`` and ``warp`` (or ``thread``) to tile
            coordinates; a CuTe layout from (thread, value) to the flat tile coordinate, first dimension fastest.
        tensor: A ``layoutalg.Tensor``, ``(shape, stride, dtype)`` or an array of another library; or a layout of the
            tile as for ``layoutalg.banks``, its element 0 at a multiple of 256 bytes.
        instruction: ``"ld.global.v4.b32"``, ``"st.global.b16"``, ``"cp.async.16"``, ``"global_load_dwordx4"``, ...;
            ``"load"``, or None: the widest load that moves all registers; ``"store"``: the widest store.
        target: ``"sm_90a"``, ``"gfx942"``, ...
        element_bits: Element width of a layout, or the name of its type; None for that of the texts, or 16.
        origin: Coordinates of the tile's first element in the tensor; an entry (remainder, modulus) stands for all
            coordinates of that congruence, of tiles that are in bounds along this dimension. None for the first tile.
        tile: Tile extents, for registers without them; None for the tile of a block of a blocked Triton attribute,
            otherwise for the tensor's shape.
        lanes: Names of the lane axes, fastest first; None for ``lane``.
        warps: Names of the warp axes, fastest first; None for ``warp``.

    Raises: MalformedError: LA340, LA713, LA982, LA860 for sizes with names. AdmissibilityError: LA984, if an active
        lane is misaligned. RepresentabilityError: LA983, if no document states the sizes of this target, or the counts
        depend on where the base or the origin is.

    Example:
        >>> tensor = ((4096, 2048), "bf16")
        >>> print(transactions("(32,4):(1,32)", tensor, tile=(32, 4)))
        1 x ld.global.v2.b32: 32 sectors of 32 bytes in 32 lines where 8 would hold the bytes
        worst   warp 0, registers [0, 1, 2, 3]: 32 sectors instead of 8; lanes step 4,096 bytes: each of 32 lanes \
touches its own sector, 8 of 32 bytes used
        >>> rows = "F2[register=(0,1)(0,2)(0,4), lane=(1,0)(2,0)(4,0)(8,0)(16,0) -> dim0:32, dim1:8]"
        >>> report = transactions(rows, ((64, 64), "f32"), "ld.global.v4")
        >>> print(report.sectors, report.better, report.better_sectors)
        64 F2[register=(0,1)(0,2)(16,0), lane=(0,4)(1,0)(2,0)(4,0)(8,0), warp= -> dim0:32, dim1:8] 32

    Source: ``targets.global_memory``.
    """
    arch = CHECK.kind(target, str, "target")
    lookup(arch)
    if instruction is not None:
        CHECK.kind(instruction, str, "instruction")
    return report_of(Asked(registers, tensor, instruction, arch, element_bits, origin, tile, lanes, warps))


def report_of(asked: Asked) -> TransactionReport:
    """Return the report on a question.

    Raises: As ``transactions``.
    """
    found = placed(asked)
    if not (found.starts >= 0).any():
        raise CHECK.malformed(
            "registers", "must have an element in bounds of the tensor", f"{found.starts.size} outside"
        )
    access, moves = global_moves(found, asked)
    starts = np.concatenate([move.addresses for move in moves])
    sectors, lines = _counted(starts, access, found.step_bytes)
    bytes_of = requested(starts, access.bytes)
    least = -(-bytes_of // access.sector_bytes)
    warps = len(moves[0].addresses)
    each = [
        WarpAccess(row % warps, moves[row // warps].registers, *map(int, numbers))
        for row, numbers in enumerate(zip(sectors, lines, bytes_of, least, strict=True))
        if numbers[2]
    ]
    places = np.flatnonzero(bytes_of)
    first = max(range(len(each)), key=lambda place: (each[place].excess, -place))
    row = starts[places[first]].tolist()
    masked = int((found.starts < 0).sum())
    notes = found.notes + (f"{masked} of {found.starts.size} elements are out of bounds and not accessed",) * bool(
        masked
    )
    return TransactionReport(
        access.name, access.target, tuple(each), each[first], tuple(None if at < 0 else at for at in row), access.bytes,
        access.sector_bytes, access.line_bytes, tuple(map(str, access.sources)), notes, asked,
    )  # fmt: skip


def _counted(starts: IntArray, access: GlobalAccess, step: int) -> tuple[IntArray, IntArray]:
    """Return the sectors and lines of every row of accesses, if they do not depend on where the base is."""
    counts: list[tuple[IntArray, IntArray]] = []
    for shift in range(0, access.line_bytes, math.gcd(step, access.line_bytes)):
        clock.check("a count of sectors")
        moved = np.where(starts < 0, -1, starts + shift)
        counts.append(
            (touched(moved, access.bytes, access.sector_bytes), touched(moved, access.bytes, access.line_bytes))
        )
        if any((one != other).any() for one, other in zip(counts[0], counts[-1], strict=True)):
            first, other = ([int(part.sum()) for part in count] for count in (counts[0], counts[-1]))
            because = (
                f"base and origin are known modulo {step} bytes: {first[0]} sectors and {first[1]} lines if they are a "
                f"multiple of {access.line_bytes}, {other[0]} and {other[1]} if {shift} bytes more"
            )
            repair = Repair(
                f"state base_align_bytes={access.line_bytes} or the origin's coordinates", "the counts are then known"
            )
            what = "the sectors depend on where the tensor is"
            raise RepresentabilityError(Diagnostic("LA983", what, (access.name,), because, None, (repair,)))
    return counts[0]


def _asked(report: TransactionReport) -> Asked:
    if report.asked is None:
        raise CHECK.malformed("report", "must come from layoutalg.transactions", None)
    return report.asked


def _improved(report: TransactionReport, asked: Asked) -> TransactionReport | None:
    """Return the report of the best of the candidates, if it touches fewer sectors."""
    found = placed(asked)
    if found.starts.size > SOUGHT:
        return None
    best: TransactionReport | None = None
    for layout in _candidates(found, report.lane_bytes):
        clock.check("a search for registers")
        try:
            other = report_of(replace(asked, registers=layout, tile=found.tile, lanes=None, warps=None))
        except LayoutError:  # this vector does not fit
            continue
        if other.sectors < (best or report).sectors:
            best = other
        if other.coalesced:
            break
    return best


def _candidates(found: Placed, lane_bytes: int) -> Iterator[LinearLayout | CuteLayout]:
    """Yield register layouts of the tile along the smallest strides, wide vectors first."""
    warps, lanes, registers = found.starts.shape
    if found.tile is None or found.flat is None or len(np.unique(found.flat)) != math.prod(found.tile):
        return
    if math.prod(found.tile) != warps * lanes * registers:
        return
    widest = max(lane_bytes * 8, 128) // found.bits
    for vector in (size for size in (1 << bit for bit in range(widest.bit_length() - 1, -1, -1))):
        if registers % vector == 0:
            layout = dealt(found.tile, found.order, vector, lanes, warps, registers)
            if layout is not None:
                yield layout


def dealt(
    tile: tuple[int, ...], order: tuple[int, ...], vector: int, lanes: int, warps: int, registers: int
) -> LinearLayout | CuteLayout | None:
    """Deal out the elements of a tile in the order of its dimensions: a vector, lanes, warps, then further registers.

    Returns: A linear layout if all numbers are powers of two, otherwise (thread, value) to the flat coordinate; None if
        the parts do not end where the dimensions do.

    Example:
        >>> print(dealt((6, 64), (1, 0), 4, 32, 1, 12))
        ((16,2),(4,3)):((24,1),(6,2))
    """
    sizes = [vector, lanes, warps, registers // vector]
    if all(size & (size - 1) == 0 for size in (*tile, *sizes)):
        bits = [(dim, 1 << bit) for dim in order for bit in range(tile[dim].bit_length() - 1)]
        images = [tuple(step if dim == own else 0 for dim in range(len(tile))) for own, step in bits]
        ends = [0, *np.cumsum([size.bit_length() - 1 for size in sizes]).tolist()]
        low, lane, warp, high = (images[first:last] for first, last in pairwise(ends))
        bases = {"register": low + high, "lane": lane, "warp": warp}
        return LinearLayout.from_bases(bases, {f"dim{dim}": extent for dim, extent in enumerate(tile)})
    steps = [math.prod(tile[:dim]) for dim in range(len(tile))]
    ordered = CuteLayout(tuple(tile[dim] for dim in order), tuple(steps[dim] for dim in order))
    values = CuteLayout((lanes * warps, (vector, registers // vector)), (vector, (1, vector * lanes * warps)))
    try:
        return composition(ordered, values)
    except LayoutError:  # the parts do not end where the dimensions do
        return None


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def _cause(report: TransactionReport) -> str:
    """Say how the active lanes of the worst instruction lie, and how much of its sectors they use."""
    size, sector, worst = report.lane_bytes, report.sector_bytes, report.worst
    starts = [at for at in report.worst_bytes if at is not None]
    runs: list[list[int]] = []
    for at in starts:
        if runs and at == runs[-1][0] + runs[-1][1]:
            runs[-1][1] += size
        else:
            runs.append([at, size])
    full, rest = divmod(worst.bytes, worst.sectors)
    used = f"{full} of {sector} bytes used" if not rest else f"{worst.bytes} of {sector * worst.sectors} bytes used"
    lanes = _many(len(starts), "lane")
    steps = Counter(other[0] - one[0] for one, other in pairwise(runs))
    if len(runs) == 1:
        into = runs[0][0] % sector
        lie = f"{lanes} touch {runs[0][1]:,} contiguous bytes" + (
            f" from byte {into} of a sector" if into else " from the start of a sector"
        )
        return f"{lie}, {used}"
    (most, often), *others = steps.most_common()
    step = f"step {most:,} bytes" + (f" ({often} of {len(runs) - 1} steps)" if others else "")
    if any(length > size for _, length in runs):
        lengths = {length for _, length in runs}
        long = f"{min(lengths):,}" if len(lengths) == 1 else f"{min(lengths):,} to {max(lengths):,}"
        return f"{lanes} in {len(runs)} runs of {long} contiguous bytes, which {step}: {used}"
    own = (
        f"each of {lanes} touches its own sector" if worst.sectors == len(starts) else f"{lanes} touch {worst.sectors}"
    )
    return f"lanes {step}: {own}, {used}"
