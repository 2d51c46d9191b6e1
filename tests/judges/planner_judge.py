"""What a TensorMap plan has to do, element by element, and what its bytes do on the tests' own copy engine.

Main statements: for a tile origin ``o`` and a tile coordinate ``t`` let ``x = o + element_strides * t``. A load leaves
at the shared address of ``t`` the element ``base_elem_offset + strides . x`` where ``x`` is in bounds and the fill
elsewhere, and touches no other shared byte; a store writes that element and no other. An origin of the lattice is
*expressed* where all start coordinates fit 32 bits and, for a store, none is negative (the device faults there);
origins that are themselves in bounds must be expressed. Classes of a plan:

* ``exact``: right for every expressed origin;
* ``weak``: right for every origin that is itself in bounds; a load moves every element in bounds at every origin;
* ``lost`` (loads only): as weak, but elements out of bounds may hold anything.

In every class no byte outside the tensor's memory is touched, from the base address to the last element.

Notation: everything of the problem outermost first, of the map innermost first; addresses in bytes from the base.

Implementation notes: elements are compared by address, for every origin of a window that goes from tiles wholly below
the bounds to tiles wholly above them, with some far ones; windows above ``MAX_ORIGINS`` are thinned, edges first.
``first_wrong_byte`` moves real bytes for a few origins. Nothing is shared with the library.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from judges import tma_engine as engine

Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
MAX_ORIGINS = 1500
CLASSES = ("exact", "weak", "lost", "wrong")


@dataclass(frozen=True)
class Statement:
    """A problem document as numbers, defaults filled in."""

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    tile: tuple[int, ...]
    modes: tuple[tuple[tuple[int, int], ...], ...]
    swizzle: str
    storing: bool
    base_align: int
    offset: int
    bounds: tuple[tuple[int, int], ...]
    steps: tuple[int, ...]
    nan: bool
    multiples: tuple[int, ...]
    required: str

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Statement:
        """Read a document that the library accepts."""
        tensor = document["global"]
        shape, tile = tuple(tensor["shape"]), tuple(document["tile"])
        steps = tuple(document.get("element_strides", (1,) * len(shape)))
        bounds = tuple(tuple(b) if isinstance(b, (list, tuple)) else (0, b) for b in document.get("bounds", shape))
        reach = [0 if t * e >= high else t * e for t, e, (_, high) in zip(tile, steps, bounds, strict=True)]
        return cls(
            tensor["dtype"],
            shape,
            tuple(tensor["stride"]),
            tile,
            tuple(tuple((n, s) for n, s in digits) for digits in document["smem"]["modes"]),
            document["smem"]["swizzle"],
            document["direction"] == "store",
            tensor.get("base_align_bytes", 16),
            document.get("base_elem_offset", 0),
            bounds,
            steps,
            document.get("oob_fill", "ZERO") == "NAN" and document["direction"] == "load",
            tuple(document.get("origin_multiple", reach)),
            document.get("oob_required", "lost"),
        )

    @property
    def rank(self) -> int:
        """Dimensions of the tile."""
        return len(self.tile)

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return engine.SIZES[self.dtype]

    @cached_property
    def coordinates(self) -> Ints:
        """Tile coordinates, one row per dimension, in C order."""
        return np.indices(self.tile).reshape(self.rank, -1).astype(np.int64)

    @cached_property
    def linear(self) -> Ints:
        """Shared byte of every tile element before the swizzle."""
        total = np.zeros(math.prod(self.tile), dtype=np.int64)
        for digits, axis in zip(self.modes, self.coordinates, strict=True):
            rest = axis.copy()
            for extent, stride in digits:
                total += rest % extent * stride
                rest //= extent
        return total * self.size

    @cached_property
    def shared(self) -> Ints:
        """Shared byte of every tile element."""
        return engine.xor(self.swizzle, self.linear)

    @cached_property
    def reach(self) -> tuple[int, ...]:
        """Per dimension, what the last tile element adds to the origin."""
        return tuple((t - 1) * e for t, e in zip(self.tile, self.steps, strict=True))

    @cached_property
    def memory(self) -> tuple[int, int]:
        """First byte and end of the memory that belongs to the tensor: from its base on, whatever the strides."""
        ends = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.offset + sum(min(0, end) for end in ends)
        high = self.offset + sum(max(0, end) for end in ends)
        return min(0, low * self.size), max((high + 1) * self.size, 0)

    def wanted(self, origins: Ints) -> tuple[Ints, Flags]:
        """Return the byte address of every tile element and whether it is in bounds, one row per origin."""
        address = np.full((len(origins), math.prod(self.tile)), self.offset, dtype=np.int64)
        inside = np.ones(address.shape, dtype=np.bool_)
        for dim in range(self.rank):
            x = origins[:, dim, None] + self.coordinates[dim] * self.steps[dim]
            low, high = self.bounds[dim]
            inside &= (x >= low) & (x < high)
            address += x * self.strides[dim]
        return address * self.size, inside

    def in_bounds(self, origins: Ints) -> Flags:
        """Return which origins are in bounds themselves; a dimension whose only origin is 0 does not ask."""
        answer = np.ones(len(origins), dtype=np.bool_)
        for dim, (low, high) in enumerate(self.bounds):
            if self.multiples[dim]:
                answer &= (origins[:, dim] >= low) & (origins[:, dim] < high)
        return answer

    def window(self, most: int = MAX_ORIGINS, seed: int = 0) -> Ints:
        """Return origins of the lattice, one per row: every way a tile can lie to the bounds, and some far away."""
        rng = random.Random(seed)
        axes = [self._axis(dim, rng) for dim in range(self.rank)]
        if math.prod(map(len, axes)) <= most:
            return np.array(list(itertools.product(*axes)), dtype=np.int64)
        live = [self._live(dim, axis) for dim, axis in enumerate(axes)]
        chosen = {tuple(row) for row in itertools.islice(itertools.product(*map(_ends, live)), most // 4)}
        for dim, axis in enumerate(axes):  # along every axis, from somewhere in bounds
            for _ in range(2):
                base = [rng.choice(row) for row in live]
                chosen.update((*base[:dim], o, *base[dim + 1 :]) for o in axis[: most // 2])
        while len(chosen) < most:
            mixed = [rng.choice(row if rng.random() < 0.6 else axis) for row, axis in zip(live, axes, strict=True)]
            chosen.add(tuple(mixed))
        return np.array(sorted(chosen), dtype=np.int64)

    def _axis(self, dim: int, rng: random.Random) -> list[int]:
        step = self.multiples[dim]
        if not step:
            return [0]
        low, high = self.bounds[dim]
        first, last = -(-(low - self.reach[dim]) // step) - 2, (high - 1) // step + 2
        if last - first <= 60:
            near = list(range(first, last + 1))
        else:
            middle = [rng.randint(first, last) for _ in range(10)]
            near = sorted({*range(first, first + 20), *range(last - 20, last + 1), *range(-4, 5), *middle})
        return [u * step for u in [first - 5, first - 33, *near, last + 7, last + 40]]

    def _live(self, dim: int, axis: Sequence[int]) -> list[int]:
        low, high = self.bounds[dim]
        return [o for o in axis if o + self.reach[dim] >= low and o < high] or list(axis)


def _ends(axis: Sequence[int]) -> list[int]:
    return [axis[0], axis[-1]] if len(axis) > 1 else list(axis)


@dataclass(frozen=True)
class Outcome:
    """What issues do, over a window: the class they reach, and why not a better one."""

    verdict: str
    why: Mapping[str, str]

    def at_least(self, wanted: str) -> bool:
        """Whether the class reached is this one or a better one."""
        return CLASSES.index(self.verdict) <= CLASSES.index(wanted)


def contradiction(statement: Statement, origins: Ints) -> str | None:
    """Return why no copy whatever can meet the statement: two contents for one place; None where there is no reason."""
    address, inside = statement.wanted(origins)
    started = statement.in_bounds(origins)
    content = np.where(inside, address, -1)
    places, index = np.unique(statement.shared, return_inverse=True)
    if len(places) < statement.shared.size:
        order = np.argsort(index, kind="stable")
        for before, after in itertools.pairwise(order):
            if (
                index[before] == index[after]
                and ((content[:, before] != content[:, after]) & (inside[:, before] | inside[:, after]))[started].any()
            ):
                return "SHARED_TWICE"
    if statement.storing:
        for row in content[started]:
            kept = row >= 0
            pairs = np.unique(np.stack([row[kept], statement.shared[kept]]), axis=1)
            if np.unique(pairs[0]).size < pairs.shape[1]:
                return "STORED_TWICE"
    return None


def judge(
    statement: Statement, tm: engine.Map, starts: Sequence[Ints], offsets: Sequence[int], origins: Ints
) -> Outcome:
    """Run issues for every origin; ``starts[q]`` has one row of start coordinates per origin.

    Returns:
        The best class that holds over the window; ``why`` names, per class not reached, the first thing wrong.
    """
    broken = engine.refusals(tm)
    if broken:
        return _wrong(broken[0])
    if statement.base_align % 16 and tm.base % 16 == 0:
        return _wrong("BASE_ALIGN")
    if tm.dtype != statement.dtype and not _same_bits(tm.dtype, statement, tm):
        return _wrong("DTYPE")
    if not statement.storing and tm.nan != statement.nan:
        return _wrong("FILL")
    kept = expressed(statement, starts, len(origins))
    if (statement.in_bounds(origins) & ~kept).any():
        at = origins[statement.in_bounds(origins) & ~kept][0].tolist()
        return _wrong(("STORE " if statement.storing else "COORDS ") + str(at))
    starts, origins = [start[kept] for start in starts], origins[kept]
    if statement.storing:
        return _judge_store(statement, tm, starts, offsets, origins)
    return _judge_load(statement, tm, starts, offsets, origins)


def expressed(statement: Statement, starts: Sequence[Ints], count: int) -> Flags:
    """Return for which origins every start coordinate is one that the engine takes."""
    least = 0 if statement.storing else -(1 << 31)
    answer = np.ones(count, dtype=np.bool_)
    for start in starts:
        answer &= ((start >= least) & (start < 1 << 31)).all(axis=1)
    return answer


def _wrong(rule: str) -> Outcome:
    return Outcome("wrong", dict.fromkeys(("exact", "weak", "lost"), rule))


def _same_bits(dtype: str, statement: Statement, tm: engine.Map) -> bool:
    converting = ("tf32", "tf32_ftz", "f32_ftz")
    return (
        dtype not in converting
        and statement.dtype not in converting
        and not tm.nan
        and not statement.nan
        and tm.size % statement.size == 0
    )


def _pieces(statement: Statement, tm: engine.Map, touch: engine.Touch, flags: Flags) -> tuple[Ints, Ints, Flags]:
    """Cut the elements of a wider type into elements of the problem."""
    ratio = tm.size // statement.size
    if ratio == 1:
        return touch.shared, touch.address, flags
    part = np.arange(ratio) * statement.size
    shared = (touch.shared[:, None] + part).reshape(-1)
    address = (touch.address[..., None] + part).reshape(len(touch.address), -1)
    return shared, address, np.repeat(flags, ratio, axis=1)


def _judge_load(
    statement: Statement, tm: engine.Map, starts: Sequence[Ints], offsets: Sequence[int], origins: Ints
) -> Outcome:
    address, inside = statement.wanted(origins)
    places = np.unique(statement.shared)
    owner = {place: np.flatnonzero(statement.shared == place) for place in places}
    rows = np.array([owner[place][0] for place in places])
    if len(places) < statement.shared.size:  # several elements at one place: in bounds where one of them is
        for place, row in zip(places, rows, strict=True):
            group = owner[place]
            chosen = group[np.argmax(inside[:, group], axis=1)]
            everyone = np.arange(len(origins))
            address[:, row], inside[:, row] = address[everyone, chosen], inside[everyone, chosen]
    address, inside = address[:, rows], inside[:, rows]
    low, high = statement.memory
    reached = np.zeros(len(places), dtype=np.bool_)
    missing = np.zeros(len(origins), dtype=np.bool_)
    foreign = np.zeros(len(origins), dtype=np.bool_)
    for start, offset in zip(starts, offsets, strict=True):
        try:
            touch = engine.reach(tm, start, offset)
        except engine.FaultError as fault:
            return _wrong(fault.rule)
        shared, got, moved = _pieces(statement, tm, touch, touch.inside)
        slot = np.searchsorted(places, shared)
        slot[slot == len(places)] = 0
        if (places[slot] != shared).any():
            return _wrong("SMEM_OUTSIDE")
        if (moved & ((got < low) | (got >= high))).any():
            return _wrong("MEMORY")
        reached[slot] = True
        wanted, needed = address[:, slot], inside[:, slot]
        missing |= (needed & ~(moved & (got == wanted))).any(axis=1)
        foreign |= (moved & ~needed).any(axis=1)
    if not reached.all():
        return _wrong("SMEM_MISSED")
    if missing.any():
        return _wrong("ELEMENT " + str(origins[missing][0].tolist()))
    started = statement.in_bounds(origins)
    if not foreign.any():
        return Outcome("exact", {})
    if not (foreign & started).any():
        return Outcome("weak", {"exact": "FOREIGN " + str(origins[foreign][0].tolist())})
    reason = "FOREIGN " + str(origins[foreign & started][0].tolist())
    return Outcome("lost", dict.fromkeys(("exact", "weak"), reason))


def _judge_store(
    statement: Statement, tm: engine.Map, starts: Sequence[Ints], offsets: Sequence[int], origins: Ints
) -> Outcome:
    address, inside = statement.wanted(origins)
    low, high = statement.memory
    bad = np.zeros(len(origins), dtype=np.bool_)
    reason = ""
    place_of = {}
    for index, place in enumerate(statement.shared.tolist()):
        place_of.setdefault(place, []).append(index)
    done = np.zeros(inside.shape, dtype=np.bool_)
    for start, offset in zip(starts, offsets, strict=True):
        try:
            touch = engine.reach(tm, start, offset, storing=True)
        except engine.FaultError as fault:
            return _wrong(fault.rule)
        shared, got, written = _pieces(statement, tm, touch, touch.inside | engine.chunk_tail(tm, start, touch))
        if (written & ((got < low) | (got >= high))).any():
            return _wrong("MEMORY")
        right = np.zeros(written.shape, dtype=np.bool_)
        for column, place in enumerate(shared.tolist()):
            for row in place_of.get(place, ()):
                hit = written[:, column] & inside[:, row] & (got[:, column] == address[:, row])
                right[:, column] |= hit
                done[:, row] |= hit
        stray = (written & ~right).any(axis=1)
        if stray.any() and not reason:
            reason = "FOREIGN " + str(origins[stray][0].tolist())
        bad |= stray
    missing = (inside & ~done).any(axis=1)
    if (missing & ~bad).any() and not reason:
        reason = "ELEMENT " + str(origins[missing & ~bad][0].tolist())
    bad |= missing
    if not bad.any():
        return Outcome("exact", {})
    if not (bad & statement.in_bounds(origins)).any():
        return Outcome("weak", {"exact": reason})
    return Outcome("wrong", dict.fromkeys(("exact", "weak", "lost"), reason))


def first_wrong_byte(
    statement: Statement, tm: engine.Map, starts: Sequence[Sequence[int]], offsets: Sequence[int], origin: Sequence[int]
) -> str | None:
    """Move real bytes for one origin; return the first difference, None where every byte is right.

    Elements out of bounds are not compared where a load does not promise them (the caller judges classes).
    """
    low, high = statement.memory
    shift = -low % 1024 - low if low < 0 else 0
    rng = np.random.default_rng(1)
    memory = rng.integers(0, 256, high + shift, dtype=np.uint8)
    if statement.dtype.startswith("tf32"):
        memory &= 0x3F  # neither NaN nor infinity
    tm = engine.Map(
        tm.dtype, tm.size, tm.base + shift, tm.dims, tm.strides, tm.box, tm.steps, tm.swizzle, tm.nan
    )  # fmt: skip
    address, inside = statement.wanted(np.array([origin], dtype=np.int64))
    within = np.arange(statement.size)
    source = address[0, inside[0]][:, None] + within + shift
    places = statement.shared[:, None] + within
    end = max(max(offsets, default=0) + tm.footprint, int(statement.shared.max()) + statement.size)
    if statement.storing:
        shared = rng.integers(0, 256, end + 1024, dtype=np.uint8)
        wanted = memory.copy()
        wanted[source] = shared[places[inside[0]]]
        for start, offset in zip(starts, offsets, strict=True):
            engine.store(tm, start, memory, shared, offset)
        return _difference("global", memory, wanted)
    shared = np.full(end + 1024, 0xEE, dtype=np.uint8)
    wanted = shared.copy()
    wanted[places] = engine.fill_bytes(tm)[: statement.size]
    wanted[places[inside[0]]] = engine.converted(statement.dtype, memory[source])
    for start, offset in zip(starts, offsets, strict=True):
        engine.load(tm, start, memory, shared, offset)
    return _difference("shared", shared, wanted)


def _difference(name: str, got: Bytes, wanted: Bytes) -> str | None:
    if np.array_equal(got, wanted):
        return None
    at = int(np.argmax(got != wanted))
    return f"{name} byte {at} is {got[at]:#04x}, wanted {wanted[at]:#04x}"
