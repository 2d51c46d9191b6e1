"""Find the tensor pitches under which some TensorMap could copy a tile into a layout.

Notation: tile coordinate t is global element g . t, where g is the tensor's pitches (any integers); the layout puts it
at shared byte L(t). For a swizzle, P is L before the swizzle, and M(p) the coordinate at P-address p. A chunk is 16
bytes, m elements.

Suppose one tiled map without interleave carries the tile, whole and in bounds, by copies that write nothing outside it
and no byte twice (except the last copies of a run, pushed back to end with it). Copies start at multiples of 128 shared
bytes and of 16 global bytes. From its start, a box writes a row of whole chunks contiguous in global memory, rows at
the pitch of the span (dense without swizzle), mixed-radix digits of at most 256 rows with non-negative global strides
that are multiples of 16 bytes. Hence:

1. every chunk is full, and neighbours p, p + 1 in it have g . (M(p+1) - M(p)) = 1;
2. all chunks start at one global address modulo 16 bytes: g . (M(c) - M(0)) = 0 mod m;
3. the maximal runs of P start at multiples of 128 bytes, and one box shape, a multiple of 128 bytes or a whole run,
   divides them all; or a box of at least 128 bytes is shorter than every run by a multiple of 128 bytes;
4. for each digit of that box the step between neighbours is one number s: g . (D - D0) = 0 for all their differences
   D in M, and g . D0 >= 0.

All are linear in g. ``fits`` solves them over the integers for every box shape of every swizzle. Without a solution, no
tensor's map carries the tile, in either direction, with any number of copies. Conversely every point of a ``Fit`` is a
plan: each copy starts where the innermost coordinate locates its first chunk (``listed``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.refusal import Broken
from layoutalg.synth.tensormap.lattice import Pitches
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.swizzles import PLAIN
from layoutalg.targets.nvidia.tensormap import limits

IntArray: TypeAlias = npt.NDArray[np.int64]
CHUNK = limits.GLOBAL_ALIGN_BYTES
LINE = limits.SMEM_DESTINATION_ALIGN_BYTES


@dataclass(frozen=True, slots=True)
class Fit:
    """Pitches under which a box of a swizzle could carry the layout."""

    swizzle: str  # name
    # global element strides of the tile's dimensions, outermost first; () if the equations have solutions but none with
    # non-negative steps was found
    strides: tuple[int, ...]
    copies: int  # number of boxes
    rows: tuple[int, ...]  # extents of the box: 16-byte chunks per row, then rows
    # per extent of ``rows`` from the second on, the tile coordinates between neighbours
    steps: tuple[tuple[int, ...], ...]
    # per copy its first shared byte, before the swizzle, and the coordinate there
    starts: tuple[tuple[int, tuple[int, ...]], ...]
    system: Pitches  # all solutions for the pitches


@dataclass(frozen=True, slots=True, eq=False)
class Chunks:
    """A tile as full 16-byte chunks of shared memory, and the conditions on the pitches."""

    place: IntArray  # shared byte of every element, increasing
    points: IntArray  # coordinates of the elements
    heads: IntArray  # coordinates of the first elements of the chunks
    system: Pitches  # the pitches under which every chunk is contiguous and aligned in global memory


def chunked(offsets: IntArray, element_bytes: int, strides: Sequence[int] | None = None) -> Chunks | Broken:
    """Return the chunks of a tile with statements 1 and 2 solved, or why no pitches satisfy them.

    Args:
        offsets: Element offsets of the tile, indexed outermost dimension first.
        element_bytes: Bytes per element.
        strides: The tensor's pitches, if given.
    """
    tile, size = offsets.shape, element_bytes
    linear = offsets.reshape(-1) * size
    order = np.argsort(linear, kind="stable")
    place = linear[order]

    def at(rank: int) -> tuple[int, ...]:
        return tuple(int(v) for v in np.unravel_index(int(order[rank]), tile))

    found = _capacity(place, at)
    if found is not None:
        return found
    per = CHUNK // size
    grid = np.arange(place.size)
    astray = np.flatnonzero(place - place[grid // per * per] != grid % per * size)
    ragged = np.flatnonzero(place[::per] % CHUNK)
    if place.size % per or astray.size or ragged.size:
        first = min([*astray[:1].tolist(), *(ragged[:1] * per).tolist(), place.size // per * per])
        rank = min(first // per * per, place.size - 1)
        if place.size < per:
            text = f"the tile has {place.size * size} bytes; a copy moves a multiple of {CHUNK} bytes"
            return Broken("BOX_INNER_16B", text, {"coordinate": at(rank)})
        text = f"the tile does not fill the {CHUNK}-byte chunk at shared byte {int(place[rank]) // CHUNK * CHUNK}"
        return Broken("SMEM_DENSE", f"{text}; a copy moves whole chunks", {"coordinate": at(rank)})
    points = np.stack(np.unravel_index(order, tile), axis=1).astype(np.int64)
    rank = len(tile)
    unit = tuple(tuple(int(i == j) for j in range(rank)) for i in range(rank))
    start = Pitches((0,) * rank, unit) if strides is None else Pitches(tuple(strides), ())
    steps = points[1:] - points[:-1]
    inner = np.flatnonzero(grid[1:] % per)
    rows, first_at = _distinct(steps[inner])
    system, wrong = start.meeting_all(rows, 1)
    if system is None:
        rank_at, row = int(inner[first_at[wrong]]), tuple(rows[wrong].tolist())
        text = "neighbours within a 16-byte chunk of shared memory are not contiguous in global memory"
        text = f"{text} for any pitches: the step {row} contradicts earlier ones"
        return Broken("INNER_CONTIGUOUS", text, {"coordinate": at(rank_at), "next": at(rank_at + 1)})
    heads = points[::per]
    system, wrong = system.meeting_all((heads - heads[0]) % per, 0, per)
    if system is None:
        text = f"for any pitches, two chunks are not a multiple of {CHUNK} bytes apart in global memory"
        return Broken("STRIDE_ALIGN", text, {"coordinate": at(wrong * per)})
    return Chunks(place, points, heads, system)


def fits(
    offsets: IntArray,
    element_bytes: int,
    *,
    align_bytes: int = 1024,
    strides: Sequence[int] | None = None,
    most: int | None = None,
    row_bytes: int = 2048,
) -> Iterator[Fit | Broken]:
    """Yield pitches that fit, then the reason why the other swizzles do not.

    Args:
        offsets: Element offsets of the tile, indexed outermost dimension first.
        element_bytes: Bytes per element.
        align_bytes: Alignment of the tile's base; swizzles of a longer period are skipped.
        strides: The tensor's pitches, if given.
        most: Maximum number of copies.
        row_bytes: The longest row of a box.
    """
    found = chunked(offsets, element_bytes, strides)
    if isinstance(found, Broken):
        yield found
        return
    place, heads, solved, per = found.place, found.heads, found.system, CHUNK // element_bytes
    reasons: list[Broken] = []
    for swizzle in ("NONE", *PLAIN[:0:-1]):
        if hardware.swizzle_period_bytes(swizzle) > align_bytes or align_bytes < LINE:
            reasons.append(Broken("SMEM_ALIGN", f"{swizzle} needs a base aligned to more than {align_bytes} bytes"))
            continue
        chunks = np.asarray(hardware.apply_swizzle(swizzle, place[::per])) // CHUNK
        turn = np.argsort(chunks, kind="stable")
        yielded = False
        for outcome in _of_swizzle(swizzle, chunks[turn], heads[turn], solved, per, most, row_bytes):
            if isinstance(outcome, Broken):
                reasons.append(outcome)
            else:
                yielded = True
                yield outcome
        if not yielded and not (reasons and reasons[-1].reason.startswith(swizzle)):
            reasons.append(
                Broken("NO_BOX", f"{swizzle}: no box of at most {limits.MAX_RANK} digits has constant steps")
            )
    if reasons:
        yield Broken(reasons[0].rule, "; ".join(reason.reason for reason in reasons), reasons[0].witness)


def _capacity(place: IntArray, at: object) -> Broken | None:
    twice = np.flatnonzero(place[1:] == place[:-1])
    if twice.size:
        first = int(twice[0])
        where = {"coordinate": at(first), "other": at(first + 1)}  # type: ignore[operator]
        return Broken("SMEM_INJECTIVE", "two tile elements share one shared-memory address", where)
    end = int(place[-1])
    if end >= limits.MAX_SMEM_BYTES:
        text = f"the tile reaches byte {end}; a block has {limits.MAX_SMEM_BYTES} bytes of shared memory"
        return Broken("SMEM_CAP", text, {"coordinate": at(place.size - 1)})  # type: ignore[operator]
    return None


def _distinct(rows: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct rows in order of first appearance, and where each appears first."""
    if not len(rows):
        return rows, np.zeros(0, dtype=np.int64)
    low = rows.min(axis=0)
    sizes = (rows.max(axis=0) - low + 1).tolist()
    if math.prod(sizes) < 1 << 62:
        _, first = np.unique((rows - low) @ np.cumprod([1, *sizes[:-1]]), return_index=True)
    else:
        _, first = np.unique(rows, axis=0, return_index=True)
    first.sort()
    return rows[first], first


@dataclass(frozen=True, slots=True, eq=False)
class _Units:
    """Units that boxes consist of: chunks, or swizzle rows."""

    swizzle: str  # name
    places: IntArray  # shared byte of every unit before the swizzle, increasing
    heads: IntArray  # coordinate of its first element
    grain: int  # units between places where a copy may start
    row: int  # chunks per row; 0 if units are chunks
    most: int | None  # maximum number of copies
    widest: int  # maximum units in the first digit
    per: int  # elements per chunk

    def fit(self, units: IntArray, box: _Box, system: Pitches) -> Fit:
        """The box at the start of each of its windows; ``units`` lists the units of all windows in turn."""
        first = units[:: box.size]
        starts = [(int(self.places[at]), tuple(int(v) for v in self.heads[at])) for at in first]
        rows = (self.row, *box.counts) if self.row else box.counts
        return Fit(self.swizzle, system.some() or (), len(starts), rows, box.steps, tuple(starts), system)


@dataclass(frozen=True, slots=True)
class _Box:
    """A box under construction: its units, its digits and their steps (none for a first digit of chunks)."""

    size: int = 1
    counts: tuple[int, ...] = ()
    steps: tuple[tuple[int, ...], ...] = ()


def _of_swizzle(
    swizzle: str, chunks: IntArray, heads: IntArray, system: Pitches, per: int, most: int | None, row_bytes: int
) -> Iterator[Fit | Broken]:
    """Yield the fits of one swizzle, or why it has none."""
    if swizzle == "NONE":
        lengths, grain = _runs(chunks), LINE // CHUNK
        starts = chunks[np.cumsum([0, *lengths[:-1]])]
        if (starts % grain).any():
            yield Broken("SMEM_DENSE", _off_line(swizzle, int(starts[starts % grain != 0][0])))
            return
        yield from _covered(
            _Units(swizzle, chunks * CHUNK, heads, grain, 0, most, row_bytes // CHUNK, per), lengths, system
        )
        return
    width = hardware.swizzle_span_bytes(swizzle) // CHUNK
    rows, first, counts = np.unique(chunks // width, return_index=True, return_counts=True)
    narrow = int(counts[0])
    if (counts != narrow).any() or (chunks % width != np.arange(chunks.size) % narrow).any():
        text = f"{swizzle}: each {width * CHUNK}-byte swizzle row must hold the same prefix of bytes"
        yield Broken("SWIZZLE_PITCH", text)
        return
    lengths = _runs(rows)
    starts = rows[np.cumsum([0, *lengths[:-1]])]
    grain = max(1, LINE // (CHUNK * width))
    if (starts % grain).any():
        yield Broken("SMEM_DENSE", _off_line(swizzle, int(starts[starts % grain != 0][0]) * width))
        return
    end = int(rows[-1] + 1) * width * CHUNK
    if end > limits.MAX_SMEM_BYTES:
        yield Broken("SMEM_CAP", f"{swizzle}: the last row ends at byte {end}, the limit is {limits.MAX_SMEM_BYTES}")
        return
    inside = np.arange(chunks.size - 1) % narrow != narrow - 1
    carried, _ = system.meeting_all(_distinct((heads[1:] - heads[:-1])[inside])[0], per)
    if carried is None:
        text = f"{swizzle}: the chunks of a row are not contiguous in global memory for any pitches"
        yield Broken("INNER_CONTIGUOUS", text)
        return
    places = rows * width * CHUNK
    units = _Units(swizzle, places, heads[first], grain, narrow, most, limits.MAX_BOX, per)
    yield from _covered(units, lengths, carried)


def _covered(units: _Units, lengths: list[int], system: Pitches) -> Iterator[Fit]:
    """Yield the fits of boxes that cover every run without overlap, then of boxes pushed back at its end."""
    yield from _grown(units, np.arange(len(units.heads)), lengths, system, _Box())
    short, grain = min(lengths), units.grain
    if short % grain == 0 or any((length - short) % grain for length in lengths):
        return
    begins = np.cumsum([0, *lengths[:-1]]).tolist()
    for size in range(short, grain - 1, -grain):
        if all(length == size for length in lengths):
            continue
        step = size // grain * grain
        windows = [
            begin + min(turn * step, length - size) + np.arange(size)
            for begin, length in zip(begins, lengths, strict=True)
            for turn in range(-(-(length - size) // step) + 1)
        ]
        if units.most is None or len(windows) <= units.most:
            yield from _grown(units, np.concatenate(windows), [size] * len(windows), system, _Box())


def _off_line(swizzle: str, chunk: int) -> str:
    return f"{swizzle}: after a gap a copy would start at shared byte {chunk * CHUNK}, which is not {LINE}-byte aligned"


def _runs(values: IntArray) -> list[int]:
    """Lengths of the maximal runs of consecutive values."""
    ends = np.flatnonzero(np.diff(values) != 1) + 1
    return [int(v) for v in np.diff(np.concatenate(([0], ends, [values.size])))]


def _grown(units: _Units, chosen: IntArray, lengths: list[int], system: Pitches, box: _Box) -> Iterator[Fit]:
    """Yield every box that extends ``box`` and divides the runs of these lengths of the chosen units."""
    clock.check("the boxes of a layout")
    common, total = math.gcd(*lengths), sum(lengths)
    started = bool(box.counts) or units.row > 0
    if started and (box.size % units.grain == 0 or all(length == box.size for length in lengths)):
        if units.most is None or total <= box.size * units.most:
            yield units.fit(chosen, box, system)
        if units.most is None:
            return  # larger boxes that extend this one only add conditions
    if len(box.counts) + (units.row > 0) == limits.MAX_RANK:
        return
    parts = units.heads[chosen[:: box.size]]
    for count in sorted(_divisors(common // box.size, limits.MAX_BOX if started else units.widest), reverse=True):
        if count == 1 and started:
            continue
        steps = parts.reshape(-1, count, parts.shape[1])
        moved = (steps[:, 1:] - steps[:, :-1]).reshape(-1, parts.shape[1])
        narrowed: Pitches | None = system
        first: tuple[int, ...] | None = None
        rows, _ = _distinct(moved)
        if not started:  # the chunks of a row
            narrowed, _ = system.meeting_all(rows, units.per)
        elif len(rows):
            first = tuple(rows[0].tolist())
            narrowed = system.at_least(first)
            if narrowed is not None:
                narrowed, _ = narrowed.meeting_all(rows[1:] - rows[0], 0)
        forms = narrowed.least if narrowed is not None else ()
        narrowed = None if narrowed is None else Pitches(narrowed.point, narrowed.basis)
        for form in dict.fromkeys(forms):
            narrowed = narrowed.at_least(form) if narrowed is not None else None
        if narrowed is not None:
            walked = box.steps if not started else (*box.steps, first or (0,) * parts.shape[1])
            grown = _Box(box.size * count, (*box.counts, count), walked)
            yield from _grown(units, chosen, lengths, narrowed, grown)


def _divisors(value: int, most: int) -> list[int]:
    return [part for part in range(1, min(value, most) + 1) if value % part == 0]
