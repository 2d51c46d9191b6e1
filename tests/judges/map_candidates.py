"""The maps that could move the boxes of a tile: steps 4 and 5 of ``map_search``."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from judges import planner_judge as judges
from judges import tma_engine as engine
from judges.map_geometry import Geometry

MAX_COMBINATIONS = 300


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


def candidates(statement: judges.Statement, geometry: Geometry, lives: list[list[int]]) -> Iterator[Candidate]:
    choices = [element_strides(step, count) for step, count in zip(geometry.walked, geometry.counts[1:], strict=True)]
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


def element_strides(step: int, count: int) -> list[int]:
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
