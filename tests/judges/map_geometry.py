"""The boxes that could cover a small tile: steps 1 to 3 of ``map_search``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from judges import planner_judge as judges
from judges import tma_engine as engine


@dataclass(frozen=True)
class Geometry:
    """Boxes that cover the tile: swizzle, counts, byte steps (both innermost first) and one issue per start."""

    swizzle: str
    counts: tuple[int, ...]
    walked: tuple[int, ...]
    offsets: tuple[int, ...]
    addresses: tuple[int, ...]
    """Global byte of each issue's first element at the origin 0."""
    firsts: tuple[int, ...]
    """Tile element at each issue's start."""
    dead: tuple[bool, ...]
    """Which issues have no element that is ever in bounds: they may start anywhere beyond the map."""


def geometries_of(statement: judges.Statement, live: judges.Flags) -> Iterator[Geometry]:
    """Yield the boxes of a tile under every swizzle, its own first; ``live``: the elements ever in bounds."""
    address, _ = statement.wanted(np.zeros((1, statement.rank), dtype=np.int64))
    names = (statement.swizzle, *(name for name in engine.SWIZZLES if name != statement.swizzle))
    for swizzle in names:
        table = _chunks(statement, swizzle, live, address[0])
        if table is not None:
            yield from _boxes(statement, swizzle, table)


@dataclass(frozen=True)
class _Chunk:
    address: int | None
    live: bool
    first: int


def _chunks(
    statement: judges.Statement, swizzle: str, live: judges.Flags, address: judges.Ints
) -> dict[int, _Chunk] | None:
    """Return the 16-byte chunks of shared memory before the map's swizzle; None where they are not whole ones."""
    size = statement.size
    places: dict[int, int] = {}
    for element, place in enumerate(engine.xor(swizzle, statement.shared).tolist()):
        if place not in places or (live[element] and not live[places[place]]):
            places[place] = element
    table = {}
    for index in {place // 16 for place in places}:
        elements = [places.get(16 * index + k * size) for k in range(16 // size)]
        if None in elements:
            return None
        starts = [(int(address[e]) - k * size, bool(live[e])) for k, e in enumerate(elements)]  # type: ignore[index]
        needed = {start for start, alive in starts if alive}
        if len(needed) > 1 or any(start % 16 for start in needed):
            return None
        guess = {start for start, _ in starts}
        start = needed.pop() if needed else guess.pop() if len(guess) == 1 else None
        alive = any(flag for _, flag in starts)
        table[index] = _Chunk(start if start is not None and start % 16 == 0 else None, alive, elements[0] or 0)
    return table


def _boxes(statement: judges.Statement, swizzle: str, table: dict[int, _Chunk]) -> Iterator[Geometry]:
    span = engine.span(swizzle) // 16
    widest = min(len(table), 256 * statement.size // 16)
    for width in range(1, (widest if swizzle == "NONE" else min(widest, span)) + 1):
        pitch = width if swizzle == "NONE" else span
        rows = {index: _row(table, index, width) for index in table}
        if not any(rows.values()):
            continue
        for count in range(1, len(table) // width + 1):
            starts = [i for i in table if i % 8 == 0 and all(rows.get(i + r * pitch) for r in range(count))]
            covered = {i + r * pitch + k for i in starts for r in range(count) for k in range(width)}
            if len(covered) < len(table):
                continue
            for counts in _factorisations(count, engine.MAX_RANK - 1):
                if not _divisible(counts, pitch, width, swizzle):
                    yield from _steps(statement, swizzle, table, rows, width, pitch, counts, sorted(starts))


def _row(table: dict[int, _Chunk], index: int, width: int) -> _Chunk | None:
    """Return ``width`` chunks from ``index`` on as one row; None where they are not one."""
    parts = [table.get(index + k) for k in range(width)]
    if any(part is None for part in parts):
        return None
    needed = {part.address - 16 * k for k, part in enumerate(parts) if part and part.live and part.address is not None}
    if len(needed) > 1:
        return None
    guess = table[index].address
    return _Chunk(needed.pop() if needed else guess, any(p.live for p in parts if p), table[index].first)


def _factorisations(number: int, most: int) -> Iterator[tuple[int, ...]]:
    if number == 1:
        yield ()
        return
    if most == 0:
        return
    for head in range(2, number + 1):
        if number % head == 0:
            for tail in _factorisations(number // head, most - 1):
                yield (head, *tail)


def _divisible(counts: Sequence[int], pitch: int, width: int, swizzle: str) -> bool:
    """Whether a box divides into equal ones that start at multiples of 128 bytes (8 chunks)."""
    if not counts:
        return swizzle == "NONE" and any(width % part == 0 and part % 8 == 0 for part in range(1, width))
    below = math.prod(counts[:-1]) * pitch
    return any(counts[-1] % part == 0 and part * below % 8 == 0 for part in range(1, counts[-1]))


def _steps(
    statement: judges.Statement,
    swizzle: str,
    table: dict[int, _Chunk],
    rows: dict[int, _Chunk | None],
    width: int,
    pitch: int,
    counts: tuple[int, ...],
    starts: Sequence[int],
) -> Iterator[Geometry]:
    """Byte steps that fit, and the issues that share them."""
    index = np.indices(counts[::-1])[::-1].reshape(len(counts), -1) if counts else np.zeros((0, 1), dtype=np.int64)
    fits: dict[tuple[int, ...], dict[int, int]] = {}
    for start in starts:
        box = [rows[start + r * pitch] for r in range(math.prod(counts))]
        for steps in _fit(box, index, counts):
            fits.setdefault(steps, {})
    for steps, members in fits.items():
        for start in starts:
            box = [rows[start + r * pitch] for r in range(math.prod(counts))]
            reference = _reference(box, index, steps)
            if reference is not None:
                members[start] = reference
        covered: set[int] = set()
        kept = []
        for start in members:
            cells = {start + r * pitch + k for r in range(math.prod(counts)) for k in range(width)}
            if not cells <= covered:
                covered |= cells
                kept.append(start)
        if len(covered) == len(table):
            yield Geometry(
                swizzle,
                (width * 16 // statement.size, *counts),
                steps,
                tuple(16 * start for start in kept),
                tuple(members[start] for start in kept),
                tuple(table[start].first for start in kept),
                tuple(not any(rows[start + r * pitch].live for r in range(math.prod(counts))) for start in kept),
            )


def _fit(box: Sequence[_Chunk | None], index: judges.Ints, counts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Step vectors that one box suggests: from all its rows, and from those alone that are ever in bounds."""
    for wanted in (lambda row: row.address is not None, lambda row: row.live and row.address is not None):
        known = [r for r, row in enumerate(box) if row is not None and wanted(row)]
        if not known:
            continue
        values = [box[r].address for r in known]  # type: ignore[union-attr]
        steps = []
        for axis in range(len(counts)):
            step = next(
                (
                    (values[b] - values[a]) // (int(index[axis, known[b]]) - int(index[axis, known[a]]))
                    for a, b in itertools.combinations(range(len(known)), 2)
                    if index[axis, known[a]] != index[axis, known[b]]
                    and all(index[o, known[a]] == index[o, known[b]] for o in range(len(counts)) if o != axis)
                ),
                None,
            )
            steps.append(16 if step is None else step)
        if all(step >= 0 and step % 16 == 0 for step in steps):
            yield tuple(steps)
    if not any(row is not None and row.live for row in box):
        yield (16,) * len(counts)


def _reference(box: Sequence[_Chunk | None], index: judges.Ints, steps: tuple[int, ...]) -> int | None:
    """Return the address of a box's first element under these steps, None where a row that matters contradicts it."""
    offsets = [sum(int(i) * s for i, s in zip(index[:, r], steps, strict=True)) for r in range(len(box))]
    needed = {
        row.address - off for row, off in zip(box, offsets, strict=True) if row and row.live and row.address is not None
    }
    if len(needed) > 1:
        return None
    if needed:
        return needed.pop()
    return box[0].address if box[0] and box[0].address is not None else 0
