"""Every map that could carry a small tile, tried: what a refusal of the planner is held against.

Main definitions: ``search_maps``, ``Found``.

Main statements, for one map and any number of issues:

1. *Chunks.* Rows are whole 16-byte chunks, and a swizzle permutes chunks. So under the swizzle of the map (each of the
   four is tried) the wanted shared bytes must be whole chunks whose elements that are ever in bounds are neighbours in
   global memory from a multiple of 16 bytes on.
2. *Boxes.* A box that divides into boxes whose shared memory starts at multiples of 128 bytes may be divided, more
   issues being allowed: each element keeps its coordinates, hence its bounds. So only boxes without such a divisor
   count (``_divisible``), a handful of rows, and every ordered factorisation of every number of rows is tried.
3. *Walked strides.* The byte step along each dimension of a box is the difference of two elements of the box, the same
   for every issue; a negative one cannot be. The stride is that step divided by an element stride of 1 to 8.
4. *Extents.* Widening the range of a coordinate only lets more foreign elements in. So the range of each coordinate is
   the tightest that holds all elements in bounds (for a store also all starts), and the base address follows.

Steps 1 to 4 leave nothing out but this: where no two origins have a tile in bounds along a dimension, or elements are
never in bounds, addresses are taken as the problem's formula goes on, or evicted (below), not as every integer.

5. *Dimensions that are not walked* have a box of 1; what matters is how starts move. This is the part where a class of
   maps is searched instead of all: the displacement of issues and of origins along one tile dimension is carried by one
   dimension of the map (walked, innermost, new, or shared with another tile dimension) or by two (quotient and
   remainder of a stride, or any two walked ones); or one new dimension carries the displacement of all issues. The
   stride of a new dimension is the greatest common divisor of what it carries, or a displacement itself where a
   remainder goes elsewhere. Where a dimension of the tile has one origin only with anything in bounds, other origins
   may instead push any coordinate out of bounds (*evict*).

What is found was run through ``planner_judge`` for every origin of its window; so it is a plan, whatever the arguments
above. What is not found may still exist outside of 5: displacements spread over three dimensions, or other issues
moved by other rules; ``Search.cut`` says where a limit of candidates ended a search.

Notation: everything of the problem outermost first, of the map innermost first; addresses in bytes.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from judges import planner_judge as judges
from judges import tma_engine as engine

MAX_TRIALS = 1500
"""Candidates that are run per problem; a search that reaches it is cut."""
MAX_BETTER = 300
"""Candidates that are run in the hope of a better class than one found."""
MAX_COMBINATIONS = 300
SCREENS = (12, 160)
"""Origins in the first looks at a candidate: tighter ranges, fewer demands; what fails there fails everywhere."""


@dataclass(frozen=True)
class Found:
    """A plan: the map, per issue its start at the origin 0 and shared offset, and how one origin step moves starts."""

    verdict: str
    tm: engine.Map
    issues: tuple[tuple[tuple[int, ...], int], ...]
    moves: tuple[tuple[int, ...], ...]
    vacuous: bool = False
    """Whether no origin has anything in bounds: such a tile may be refused."""
    evades: bool = False
    """Whether a store is exact only because it cannot start at origins above 0 that have something in bounds."""

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON-ready data; ``moves`` holds one row per tile dimension, for one lattice step."""
        tm = self.tm
        return {
            "class": self.verdict,
            "map": {
                "dims": tm.dims, "strides_bytes": tm.strides[1:], "box": tm.box, "element_strides": tm.steps,
                "swizzle": tm.swizzle, "base": tm.base, "dtype": tm.dtype,
            },
            "issues": [{"coords": coords, "smem_offset_bytes": offset} for coords, offset in self.issues],
            "moves_per_step": self.moves,
        }  # fmt: skip


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


@dataclass
class Search:
    """The state of one search."""

    statement: judges.Statement
    best: Found | None = None
    trials: int = 0
    found_at: int = 0
    cut: bool = False
    windows: tuple[judges.Ints, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.windows = tuple(self.statement.window(most) for most in SCREENS)
        whole = self.statement.window()
        self.windows = (*(w for w in self.windows if len(w) < len(whole)), whole)

    def answer(self) -> Found | None:
        """Return the best plan found, None where there is none of the class that the statement requires."""
        found = self.best
        return found if found and judges.Outcome(found.verdict, {}).at_least(self.statement.required) else None

    def over(self) -> bool:
        """Whether to stop: the best class is found, or a limit of candidates is reached."""
        if self.best is not None and self.best.verdict == "exact":
            return True
        if self.answer() is not None and self.trials > self.found_at + MAX_BETTER:
            return True
        self.cut = self.trials >= MAX_TRIALS
        return self.cut


def search_maps(statement: judges.Statement) -> Search:
    """Return the search when it is over: ``answer()`` is the plan of the best class found, or None."""
    search = Search(statement)
    _search(search)
    return search


def _search(search: Search) -> None:
    statement = search.statement
    window = search.windows[-1]
    if statement.base_align % 16 or judges.contradiction(statement, window):
        return
    if statement.storing and not statement.in_bounds(window).any():
        return  # no origin that a store may start at
    live, lives = _live(statement, window)
    if not live.any():
        _nothing(search)
        return
    if not _steps_align(statement, lives):
        return
    geometries = sorted(_geometries(statement, live), key=lambda geometry: len(geometry.counts))
    if statement.storing:
        geometries = [geometry for geometry in geometries if _whole_chunks(statement, geometry, window)]
    views = {geometry: [_View(statement, geometry, origins) for origins in search.windows] for geometry in geometries}
    turns = (_candidates(statement, geometry, lives) for geometry in geometries)
    for batch in itertools.zip_longest(*turns):  # every geometry takes its turn
        for geometry, candidate in zip(geometries, batch, strict=True):
            if candidate is not None:
                _try(search, views[geometry], candidate)
            if search.over():
                return


def _nothing(search: Search) -> None:
    """Nothing is ever in bounds: boxes that start beyond the end of the map fill the tile, or store nothing."""
    statement = search.statement
    for geometry in _geometries(statement, np.zeros(statement.shared.size, dtype=np.bool_)):
        rank = len(geometry.counts)
        tm = engine.Map(
            statement.dtype, statement.size, 0, (1,) * rank, (statement.size, *(16,) * (rank - 1)), geometry.counts,
            (1,) * rank, geometry.swizzle, statement.nan,
        )  # fmt: skip
        coords = (16, *(0,) * (rank - 1))
        starts = [np.tile(np.array(coords), (len(search.windows[-1]), 1)) for _ in geometry.offsets]
        outcome = judges.judge(statement, tm, starts, geometry.offsets, search.windows[-1])
        if outcome.verdict != "wrong":
            issues = tuple((coords, offset) for offset in geometry.offsets)
            search.best = Found(outcome.verdict, tm, issues, ((0,) * rank,) * statement.rank, True)
            return


def _steps_align(statement: judges.Statement, lives: list[list[int]]) -> bool:
    """Whether lattice steps are multiples of 16 bytes along dimensions that have several origins with elements."""
    return all(
        m * stride * statement.size % 16 == 0
        for m, stride, points in zip(statement.multiples, statement.strides, lives, strict=True)
        if len(points) > 1
    )


def _whole_chunks(statement: judges.Statement, geometry: Geometry, origins: judges.Ints) -> bool:
    """Whether every chunk is wholly in bounds or wholly out of bounds: a store writes all of it or nothing."""
    _, inside = statement.wanted(origins[statement.in_bounds(origins)])
    chunk = engine.xor(geometry.swizzle, statement.shared) // 16
    order = np.argsort(chunk, kind="stable")
    _, first = np.unique(chunk[order], return_index=True)
    some = np.logical_or.reduceat(inside[:, order], first, axis=1)
    every = np.logical_and.reduceat(inside[:, order], first, axis=1)
    return bool((some == every).all())


def _live(statement: judges.Statement, origins: judges.Ints) -> tuple[judges.Flags, list[list[int]]]:
    """Return which elements are ever in bounds, and per dimension the lattice points at which one is."""
    needed = origins[statement.in_bounds(origins)] if statement.storing else origins
    _, inside = statement.wanted(needed)
    some = needed[inside.any(axis=1)]
    lives = []
    for dim, step in enumerate(statement.multiples):
        lives.append(sorted({int(o) // step for o in some[:, dim]}) if step else [0])
    return inside.any(axis=0), lives


# ---------------------------------------------------------------------------------------------------------- geometry


def _geometries(statement: judges.Statement, live: judges.Flags) -> Iterator[Geometry]:
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


# ------------------------------------------------------------------------------------------------------- coordinates


@dataclass(frozen=True)
class Candidate:
    """Strides and element strides of the map, starts per issue at lattice point 0, and moves per tile dimension.

    ``evicted`` lists (tile dimension, its live lattice point): at other points some coordinate is pushed out.
    """

    strides: tuple[int, ...]
    steps: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]
    moves: tuple[tuple[int, ...], ...]
    evicted: tuple[tuple[int, int], ...]
    dead: tuple[bool, ...] = ()
    """Issues that are pushed out of bounds for every origin."""

    def key(self) -> tuple[object, ...]:
        """Return the candidate without the order of its dimensions."""
        columns = zip(
            self.strides, self.steps, zip(*self.starts, strict=True), zip(*self.moves, strict=True), strict=True
        )
        first, *rest = columns
        return (first, tuple(sorted(rest)), self.evicted, self.dead)


@dataclass(frozen=True)
class _Mover:
    """What has to be carried: bytes and units per lattice step of a tile dimension, and per issue."""

    dim: int | None
    step: int
    units: tuple[int, ...]
    bytes_each: int
    lump: tuple[int, ...] = ()
    """Bytes per issue, for the displacement of the issues as a whole."""
    live: int | None = None
    """The only lattice point with anything in bounds, where there is one only."""

    def issue_bytes(self) -> tuple[int, ...]:
        return self.lump or tuple(u * self.bytes_each for u in self.units)

    def step_bytes(self) -> int:
        return self.step * self.bytes_each

    def carried(self, evict: bool) -> list[int]:
        return sorted({abs(v) for v in (*self.issue_bytes(), 0 if evict else self.step_bytes()) if v}, reverse=True)


@dataclass(frozen=True)
class _Choice:
    """How one mover is carried: by dimension ``high`` of the map (NEW: one of its own), remainders by ``low``."""

    high: int | None
    low: int | None = None
    stride: int | None = None
    evict: bool = False
    diagonal: tuple[tuple[int, int], ...] = ()
    """The move of one origin step where it is spread over two dimensions: (dimension, amount)."""


NEW = 100


def _candidates(statement: judges.Statement, geometry: Geometry, lives: list[list[int]]) -> Iterator[Candidate]:
    choices = [_element_strides(step, count) for step, count in zip(geometry.walked, geometry.counts[1:], strict=True)]
    everywhere = replace(geometry, dead=(False,) * len(geometry.dead))  # issues of no element, placed like the others
    plans = [
        _plans(
            statement,
            variant,
            (statement.size, *(s // e for s, e in zip(geometry.walked, steps, strict=True))),
            (1, *steps),
            movers,
        )
        for variant in dict.fromkeys((geometry, everywhere))
        for movers in _movers(statement, variant, lives)
        for steps in itertools.product(*choices)
    ]
    seen = set()
    for batch in itertools.zip_longest(*plans):  # every variant takes its turn
        for candidate in batch:
            if candidate is not None and candidate.key() not in seen:
                seen.add(candidate.key())
                yield candidate


def _element_strides(step: int, count: int) -> list[int]:
    if not step:
        return [1]
    return [
        e
        for e in range(1, engine.MAX_STEP + 1)
        if step % (16 * e) == 0 and step // e < engine.STRIDE_LIMIT and (count - 1) * e < engine.MAX_BOX
    ]


def _movers(statement: judges.Statement, geometry: Geometry, lives: list[list[int]]) -> list[list[_Mover]]:
    """What moves: by tile dimension; and with the issues' displacement as one mover of its own."""
    natural = statement.wanted(np.zeros((1, statement.rank), dtype=np.int64))[0][0]
    alive = geometry.dead.index(False)
    firsts = np.array([geometry.firsts[alive] if d else f for f, d in zip(geometry.firsts, geometry.dead, strict=True)])
    addresses = [geometry.addresses[alive] if d else a for a, d in zip(geometry.addresses, geometry.dead, strict=True)]
    units = statement.coordinates[:, firsts] * np.array(statement.steps)[:, None]
    gaps = {int(natural[f]) - a for f, a in zip(firsts, addresses, strict=True)}
    none = (0,) * len(firsts)
    plain = []
    for dim, step in enumerate(statement.multiples):
        row = tuple(int(v) for v in units[dim])
        if step or any(row):
            single = lives[dim][0] if step and len(lives[dim]) == 1 else None
            plain.append(_Mover(dim, step, row, statement.strides[dim] * statement.size, (), single))
    answer = [plain] if len(gaps) == 1 else []
    lump = tuple(a - addresses[0] for a in addresses)
    if any(lump) or len(gaps) > 1:
        alone = [_Mover(m.dim, m.step, none, m.bytes_each, (), m.live) for m in plain if m.step]
        answer.append([_Mover(None, 0, none, 0, lump), *alone])
    return answer


def _plans(
    statement: judges.Statement,
    geometry: Geometry,
    fixed: tuple[int, ...],
    steps: tuple[int, ...],
    movers: Sequence[_Mover],
) -> Iterator[Candidate]:
    """Every way to carry the movers, plain ones first: little shared, no remainders."""
    free = engine.MAX_RANK - len(fixed)
    options = [_options(statement, geometry, mover, fixed) for mover in movers]
    if not all(options):
        return
    for chosen in itertools.islice(_cheapest_first(options), MAX_COMBINATIONS):
        news = [k for k, choice in enumerate(chosen) if choice.high == NEW]
        for groups in _groupings(len(news), free):
            named = [0] * len(chosen)
            for k, group in zip(news, groups, strict=True):
                named[k] = NEW + group
            candidate = _build(statement, geometry, fixed, steps, movers, chosen, named)
            if candidate is not None:
                yield candidate


def _cheapest_first(options: Sequence[Sequence[tuple[int, _Choice]]]) -> Iterator[list[_Choice]]:
    """The product of options in the order of the sum of their ranks."""
    ordered = [sorted(row, key=lambda option: option[0]) for row in options]
    first = (0,) * len(ordered)
    heap, seen = [(sum(row[0][0] for row in ordered), first)], {first}
    while heap:
        rank, places = heapq.heappop(heap)
        yield [row[place][1] for row, place in zip(ordered, places, strict=True)]
        for k, place in enumerate(places):
            if place + 1 < len(ordered[k]):
                after = (*places[:k], place + 1, *places[k + 1 :])
                if after not in seen:
                    seen.add(after)
                    heapq.heappush(heap, (rank - ordered[k][place][0] + ordered[k][place + 1][0], after))


def _groupings(count: int, free: int) -> Iterator[tuple[int, ...]]:
    """Ways to put ``count`` movers onto at most ``free`` new dimensions, up to renaming."""
    if count == 0:
        yield ()
    elif free > 0:
        yield from _partitions(count, min(count, free))


@cache
def _partitions(count: int, most: int) -> tuple[tuple[int, ...], ...]:
    """Partitions of ``count`` things into at most ``most`` groups, most groups first."""
    labels = (
        row for row in itertools.product(range(most), repeat=count) if list(dict.fromkeys(row)) == sorted(set(row))
    )
    return tuple(sorted(labels, key=lambda row: -len(set(row))))


def _options(
    statement: judges.Statement, geometry: Geometry, mover: _Mover, fixed: tuple[int, ...]
) -> list[tuple[int, _Choice]]:
    """Ways to carry one mover, each with a rank: a dimension that exists, a new one, two, none; evicting or not."""
    answer: list[tuple[int, _Choice]] = []
    for evict in (False, True) if mover.live is not None else (False,):
        values = mover.carried(evict)
        if any(v % 16 for v in values):
            continue
        if not values:
            answer.append((3 * evict, _Choice(None, evict=evict)))
            if not evict and not mover.bytes_each and mover.dim is not None:
                answer.append((0, _Choice(NEW)))
                answer += [(1, _Choice(j)) for j, s in enumerate(fixed) if j and s == 0]
            continue
        whole = [j for j, s in enumerate(fixed) if s and all(v % s == 0 for v in values)]
        each = abs(mover.bytes_each)
        natural = [j for j in whole if (0 < each <= geometry.walked[j - 1] if j else each == statement.size)]
        extra = 3 * evict
        answer += [(extra + (0 if j in natural else 2), _Choice(j, evict=evict)) for j in reversed(whole)]
        answer.append((extra + 1, _Choice(NEW, evict=evict)))
        if not evict:
            answer += [
                (4, _Choice(pair[0][0], pair[1][0], diagonal=pair)) for pair in _diagonals(geometry, mover, fixed)
            ]
        for low in whole:
            answer += [(extra + 2, _Choice(NEW, low, v, evict)) for v in values[:3] if v < engine.STRIDE_LIMIT]
            bigger = [j for j, s in enumerate(fixed) if j != low and s > fixed[low]]
            answer += [(extra + 3, _Choice(j, low, None, evict)) for j in bigger]
    return answer


def _diagonals(
    geometry: Geometry, mover: _Mover, fixed: tuple[int, ...]
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Ways to spread an origin step over two walked dimensions, up to twice the box along the first."""
    step = mover.step_bytes()
    sign = -1 if step < 0 else 1
    for first, second in itertools.combinations([j for j, s in enumerate(fixed) if s and step], 2):
        grain = 16 // fixed[0] if first == 0 else 1
        for amount in range(grain, 2 * geometry.counts[first] + 1, grain):
            rest = step - sign * amount * fixed[first]
            if rest and rest % fixed[second] == 0:
                yield (first, sign * amount), (second, rest // fixed[second])


def _build(
    statement: judges.Statement,
    geometry: Geometry,
    fixed: tuple[int, ...],
    steps: tuple[int, ...],
    movers: Sequence[_Mover],
    choices: Sequence[_Choice],
    named: Sequence[int],
) -> Candidate | None:
    """Return the map and the moves of these choices, None where a displacement does not divide."""
    strides = list(fixed)
    place: dict[int, int] = {}
    unit: dict[int, int] = {}
    for group in sorted({n for n in named if n >= NEW}):
        members = [(m, c) for m, c, n in zip(movers, choices, named, strict=True) if n == group]
        stated = [c.stride for _, c in members if c.stride is not None]
        stride = stated[0] if stated else math.gcd(*(v for m, c in members for v in m.carried(c.evict)), 0)
        while stride >= engine.STRIDE_LIMIT and stride % 32 == 0:
            stride //= 2
        if stride >= engine.STRIDE_LIMIT or stride % 16:
            return None
        place[group] = len(strides)
        unit[len(strides)] = math.gcd(*(u for m, _ in members for u in (m.step, *m.units)), 0) or 1
        strides.append(stride)
    rank = len(strides)

    def split(value: int, amount: int, high: int | None, low: int | None) -> list[int] | None:
        row = [0] * rank
        if high is None or strides[high] == 0:
            if high is not None:
                row[high] = amount // unit.get(high, 1)
            return row if value == 0 else None
        row[high], rest = divmod(value, strides[high])
        if rest:
            if low is None or rest % strides[low]:
                return None
            row[low] = rest // strides[low]
        return row

    starts = [[0] * rank for _ in geometry.offsets]
    moves = [[0] * rank for _ in range(statement.rank)]
    evicted = []
    for mover, choice, name in zip(movers, choices, named, strict=True):
        high = place[name] if choice.high == NEW else choice.high
        for start, value, amount in zip(starts, mover.issue_bytes(), mover.units, strict=True):
            row = split(value, amount, high, choice.low)
            if row is None:
                return None
            start[:] = [a + b for a, b in zip(start, row, strict=True)]
        if mover.dim is None or not mover.step:
            continue
        if choice.evict:
            evicted.append((mover.dim, mover.live or 0))
            continue
        row = split(mover.step_bytes(), mover.step, high, choice.low)
        if choice.diagonal:
            row = [dict(choice.diagonal).get(j, 0) for j in range(rank)]
        if row is None or row[0] * statement.size % 16:
            return None
        moves[mover.dim] = row
    if any(start[0] * statement.size % 16 for start in starts):
        return None
    if (evicted or any(geometry.dead)) and rank < engine.MAX_RANK and all(map(any, zip(*moves, strict=True))):
        rank += 1  # a dimension that nothing moves, to push what has to be out of bounds
        strides.append(16)
        starts, moves = [[*start, 0] for start in starts], [[*move, 0] for move in moves]
    return Candidate(
        tuple(strides),
        (*steps, *(1,) * (rank - len(steps))),
        tuple(map(tuple, starts)),
        tuple(map(tuple, moves)),
        tuple(evicted),
        geometry.dead,
    )


# ------------------------------------------------------------------------------------------------------------- trial


class _View:
    """What one geometry's boxes land on, for a set of origins: wanted addresses and bounds, issue by issue."""

    def __init__(self, statement: judges.Statement, geometry: Geometry, origins: judges.Ints) -> None:
        self.statement, self.geometry, self.origins = statement, geometry, origins
        self.shell = engine.Map(
            statement.dtype, statement.size, 0, (1,) * len(geometry.counts),
            (statement.size,) * len(geometry.counts), geometry.counts, (1,) * len(geometry.counts), geometry.swizzle,
        )  # fmt: skip
        walked = engine.walk(self.shell)
        self.index = walked.index
        places, group = np.unique(statement.shared, return_inverse=True)
        address, inside = statement.wanted(origins)
        count = len(places)
        any_inside = np.zeros((len(origins), count), dtype=np.bool_)
        any_address = np.zeros((len(origins), count), dtype=np.int64)
        for element, slot in enumerate(group.tolist()):
            fresh = inside[:, element] | ~any_inside[:, slot]
            any_address[fresh, slot] = address[fresh, element]
            any_inside[:, slot] |= inside[:, element]
        shared = engine.xor(geometry.swizzle, walked.offsets + np.array(geometry.offsets)[:, None])
        slots = np.searchsorted(places, shared)
        self.address, self.inside = any_address[:, slots], any_inside[:, slots]
        self.started = statement.in_bounds(origins)
        needed = self.started if statement.storing else np.ones(len(origins), dtype=np.bool_)
        self.needed = self.inside & needed[:, None, None]
        self.issues_needed = self.needed.any(axis=2)
        multiples = np.array([m or 1 for m in statement.multiples], dtype=np.int64)
        self.points = origins // multiples

    def place(
        self, candidate: Candidate
    ) -> tuple[list[judges.Ints], list[int], list[int], judges.Ints, judges.Ints] | None:
        """Return coordinates (origin, issue, element), their ranges, the moves with evictions, the starts of issues."""
        rank = len(candidate.strides)
        firsts = np.array(candidate.starts, dtype=np.int64)
        moves = np.array(candidate.moves, dtype=np.int64).reshape(self.statement.rank, rank)
        starts = (self.points @ moves)[:, None, :] + firsts
        axes, low, high = [], [], []
        for j in range(rank):
            y = starts[:, :, j, None]
            flags = self.issues_needed[:, :, None]
            if j < len(self.index):
                y = y + self.index[j] * (candidate.steps[j] if j else 1)
                flags = self.needed
            if not flags.any():
                return None
            low.append(int(np.where(flags, y, _FAR).min()))
            high.append(int(np.where(flags, y, -_FAR).max()))
            if self.statement.storing:
                some = self.issues_needed & self.started[:, None]
                low[j] = min(low[j], int(np.where(some, starts[:, :, j], _FAR).min()))
            axes.append(y)
        grain = 16 // self.statement.size
        low[0] = low[0] // grain * grain
        idle = [j for j in range(rank) if not moves[:, j].any()] or [rank - 1]
        for k, (dim, live) in enumerate(candidate.evicted):
            j = idle[k % len(idle)]
            count = self.geometry.counts[j] if j < len(self.geometry.counts) else 1
            push = high[j] - low[j] + count * candidate.steps[j] + 1
            push = (push + -push % grain) * 64 ** (k // len(idle))
            moves[dim, j] += push
            axes[j] = axes[j] + (push * (self.points[:, dim] - live))[:, None, None]
        if any(candidate.dead):
            j = idle[0]
            away = np.where(candidate.dead, high[j] + 1 - firsts[:, j], 0)
            away += -away % grain
            firsts[:, j] += away
            axes[j] = axes[j] + away[:, None]
        return axes, low, high, moves, firsts

    def verdict(self, candidate: Candidate) -> int:
        """Return the class of a candidate as a number; the full judge has the last word."""
        placed = self.place(candidate)
        if placed is None:
            return 3
        axes, low, high, _, _ = placed
        if max(h - lo for lo, h in zip(low, high, strict=True)) >= engine.DIM_LIMIT or self.base(candidate, low) < 0:
            return 3
        got = np.zeros(self.address.shape, dtype=np.int64)
        moved = np.ones(self.address.shape, dtype=np.bool_)
        for y, least, most, stride in zip(axes, low, high, candidate.strides, strict=True):
            got += y * stride
            moved &= (y >= least) & (y <= most)
        got += self.base(candidate, [0] * len(low))
        first, end = self.statement.memory
        foreign = moved & ~self.inside
        if self.statement.storing:
            if foreign[self.started].any() or (self.inside & ~(moved & (got == self.address)))[self.started].any():
                return 3
            return 0
        if (self.inside & ~(moved & (got == self.address))).any() or (foreign & ((got < first) | (got >= end))).any():
            return 3
        if not foreign.any():
            return 0
        return 1 if not foreign[self.started].any() else 2

    def base(self, candidate: Candidate, low: Sequence[int]) -> int:
        """Return the base address that puts every coordinate's range at 0."""
        alive = self.geometry.dead.index(False)
        columns = zip(low, candidate.starts[alive], candidate.strides, strict=True)
        return self.geometry.addresses[alive] + sum((lo - c) * s for lo, c, s in columns)

    def found(self, candidate: Candidate) -> Found | None:
        """Return the plan with the judge's class."""
        placed = self.place(candidate)
        if placed is None:
            return None
        _, low, high, moves, firsts = placed
        rank = len(candidate.strides)
        counts = (*self.geometry.counts, *(1,) * (rank - len(self.geometry.counts)))
        box = (counts[0], *((n - 1) * e + 1 for n, e in zip(counts[1:], candidate.steps[1:], strict=True)))
        dims = tuple(h - lo + 1 for lo, h in zip(low, high, strict=True))
        tm = engine.Map(
            self.shell.dtype, self.shell.size, self.base(candidate, low), dims, candidate.strides, box, candidate.steps,
            self.geometry.swizzle, self.statement.nan,
        )  # fmt: skip
        shift = np.array(low, dtype=np.int64)
        for dim, live in candidate.evicted:
            shift = shift + moves[dim] * live
        issues = firsts - shift
        starts = [self.points @ moves + issue for issue in issues]
        outcome = judges.judge(self.statement, tm, starts, self.geometry.offsets, self.origins)
        verdict = outcome.verdict
        if verdict == "exact" and not self._private(moves):
            verdict = "weak"
        coords = [tuple(int(c) for c in issue) for issue in issues]
        rows = tuple(tuple(int(v) for v in row) for row in moves)
        evades = verdict == "exact" and not self._reaches(starts)
        return Found(verdict, tm, tuple(zip(coords, self.geometry.offsets, strict=True)), rows, evades=evades)

    def _reaches(self, starts: Sequence[judges.Ints]) -> bool:
        """Whether a store starts wherever an origin at or above 0 has something in bounds."""
        expressed = judges.expressed(self.statement, starts, len(self.origins))
        needed = self.inside.any(axis=(1, 2)) & (self.origins >= 0).all(axis=1)
        return not (needed & ~expressed).any()

    def _private(self, moves: judges.Ints) -> bool:
        """Whether every moving tile dimension alone moves some coordinate.

        Then the origins at which an element is in range are an interval along it, and a window that sees both ends
        proves the class; otherwise far origins may come back into range, and only a weak class is claimed.
        """
        alone = [j for j in range(moves.shape[1]) if np.count_nonzero(moves[:, j]) == 1]
        return all(any(moves[dim, j] for j in alone) for dim, m in enumerate(self.statement.multiples) if m)


_FAR = 1 << 62


def _try(search: Search, views: Sequence[_View], candidate: Candidate) -> None:
    """Look at a candidate for few origins, then for all; keep it where its class is better than the best so far."""
    search.trials += 1
    best = len(judges.CLASSES) - 1 if search.best is None else judges.CLASSES.index(search.best.verdict)
    if any(view.verdict(candidate) >= best for view in views):
        return
    found = views[-1].found(candidate)
    if found is not None and judges.CLASSES.index(found.verdict) < best:
        search.best = found
        search.found_at = search.trials
