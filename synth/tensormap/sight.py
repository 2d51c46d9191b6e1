"""For which tile origins a tile dimension is in bounds, and what its moves add to addresses.

Notation: along one tile dimension the origin is u times its lattice step, u an integer. For each tile coordinate t, the
u at which it is in bounds form an interval. A form is what some of the moves of one tile dimension add to an address:
a(t) + b * u, in bytes, or in its own coordinates if the dimension's stride is 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.proofs.tensormap.problem import TensorMapProblem
from layoutalg.synth.tensormap.boxes import Box
from layoutalg.targets.nvidia.tensormap import limits

IntArray = npt.NDArray[np.int64]
FAR = 2**62


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """The amount ``table[t] + slope * u`` that moves of one tile dimension add, and its range in bounds."""

    table: IntArray
    slope: int
    low: int
    high: int


@dataclass(frozen=True, slots=True, eq=False)
class Sight:
    """The lattice points u at which each tile coordinate t is in bounds: first[t] <= u <= last[t]."""

    multiple: int  # the lattice step of the origin; 0 if u is always 0
    first: IntArray  # per tile coordinate the first lattice point at which it is in bounds; above ``last`` if none
    last: IntArray  # per tile coordinate the last one
    inside: tuple[int, int]  # first and last lattice point whose origin is itself in bounds
    # first and last lattice point from which copies must be able to start: those inside, or if there are none, those
    # whose tile touches the bounds
    starts: tuple[int, int]
    seen: npt.NDArray[np.bool_]  # per tile coordinate whether any lattice point shows it
    # first and last lattice point of each coordinate that one shows; of none, of origin 0 alone
    shown: tuple[IntArray, IntArray]
    reach: int  # the farthest of these points from 0
    lowest: int  # the lowest in-bounds coordinate of any tile; 0 if none
    highest: int  # the highest one
    ever: bool  # whether anything is ever in bounds

    @property
    def stays(self) -> bool:
        """Whether only origin 0 shows anything."""
        return self.reach == 0

    def form(self, table: IntArray, slope: int) -> Form | None:
        """Return the form with its in-bounds range, None if that exceeds the address space."""
        first, last = self.shown if slope >= 0 else self.shown[::-1]
        if abs(slope) * self.reach > limits.ADDRESS_LIMIT:
            return None
        values = table[self.seen] if self.ever else table
        low, high = (values + slope * first, values + slope * last) if slope else (values, values)
        return Form(table, slope, int(low.min()), int(high.max()))

    def guarded(self, tests: list[Test], *, weak: bool) -> bool:
        """Whether every out-of-bounds coordinate fails some test of the map, for all origins (weak: in-bounds ones)."""
        low: Any = -FAR if self.multiple else 0
        high: Any = FAR if self.multiple else 0
        if weak and self.multiple:
            low, high = self.inside
        elif self.multiple and not tests:
            return False  # some origin is out of bounds
        for form, bottom, top in tests:
            slope = form.slope if self.multiple else 0
            if slope == 0:
                failing = (form.table < bottom) | (form.table > top)
                high = np.where(failing, low - 1, high)
                continue
            one, two = bottom - form.table, top - form.table
            if slope < 0:
                one, two, slope = -two, -one, -slope
            low, high = np.maximum(low, -(-one // slope)), np.minimum(high, two // slope)
        return bool(((low > high) | ((low >= self.first) & (high <= self.last))).all())


Test = tuple[Form, int, int]
"""The engine moves an element only if low <= form <= high."""


@dataclass(slots=True)
class Forms:
    """A problem, the sights of its tile dimensions, and their forms, cached.

    ``blank``: no tile ever has elements in bounds, so that all of it is filled. ``room``: the bytes from the tile's
    first element at origin 0 to the tensor's first and last element. ``spans``: the bytes of each tile dimension's
    lowest and highest coordinate in bounds, in rising order.
    """

    problem: TensorMapProblem
    sights: tuple[Sight, ...] = ()
    blank: bool = False
    room: tuple[int, int] = (0, 0)
    spans: tuple[tuple[int, int], ...] = ()
    _known: dict[tuple[int, tuple[tuple[int, int], ...], bool], Form | None] = field(default_factory=dict)
    _guarded: dict[tuple[object, ...], bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sights, self.room = sights(self.problem), room_for(self.problem)
        self.blank = not all(sight.ever for sight in self.sights)
        units = [stride * self.problem.element_bytes for stride in self.problem.global_strides]
        ends = [(sight.lowest * unit, sight.highest * unit) for sight, unit in zip(self.sights, units, strict=True)]
        self.spans = tuple((min(pair), max(pair)) for pair in ends)

    def form(self, box: Box, dim: int, atoms: tuple[int, ...], origin: bool) -> Form | None:
        """Return what atoms, and optionally the origin, of a tile dimension add; None if out of the address space."""
        mine = tuple(sorted((box.atoms[index].place, box.atoms[index].extent) for index in atoms))
        key = (dim, mine, origin)
        if key not in self._known:
            self._known[key] = self._form(dim, mine, origin)
        return self._known[key]

    def _form(self, dim: int, digits: tuple[tuple[int, int], ...], origin: bool) -> Form | None:
        problem = self.problem
        unit = problem.global_strides[dim] * problem.element_bytes or 1
        step = unit * problem.element_strides[dim]
        if any(abs(step) * place * extent > limits.ADDRESS_LIMIT for place, extent in digits):
            return None
        t = np.arange(problem.tile[dim], dtype=np.int64)
        table: IntArray = np.zeros(t.size, dtype=np.int64)
        for place, extent in digits:
            count = t // place if place > 1 else t
            table = table + (count % extent if place * extent < t.size else count) * (step * place)
        return self.sights[dim].form(table, unit * problem.origin_multiple[dim] if origin else 0)

    def inside(self, dim: int, tests: list[Test]) -> bool:
        """Whether a map with these tests of a tile dimension may be inside the tensor: split ranges add up to more."""
        if len(tests) < 2 or self.blank or self.problem.global_strides[dim] == 0:
            return True
        rest = [span for at, span in enumerate(self.spans) if at != dim]
        low = sum(low for _, low, _ in tests) + sum(low for low, _ in rest)
        high = sum(high for _, _, high in tests) + sum(high for _, high in rest)
        return self.room[0] <= low and high <= self.room[1]

    def guarded(self, dim: int, tests: list[Test], wanted: str) -> bool:
        """Whether a tile dimension's out-of-bounds coordinates fail one of the tests, as the class requires."""
        if wanted == "lost" or self.blank:
            return True
        key = (dim, wanted, *((id(form), low, high) for form, low, high in tests))  # cached forms keep their ids
        if key not in self._guarded:
            self._guarded[key] = self.sights[dim].guarded(tests, weak=wanted == "weak")
        return self._guarded[key]


def sights(problem: TensorMapProblem) -> tuple[Sight, ...]:
    """Return the sight of every tile dimension."""
    return tuple(sight_of(problem, dim) for dim in range(problem.rank))


def sight_of(problem: TensorMapProblem, dim: int) -> Sight:
    """Return the sight of one tile dimension."""
    (low, high), multiple = problem.bounds[dim], problem.origin_multiple[dim]
    x = np.arange(problem.tile[dim], dtype=np.int64) * problem.element_strides[dim]
    if multiple:
        first, last = -((x - low) // multiple), (high - 1 - x) // multiple
        inside = (-(-low // multiple), (high - 1) // multiple)
    else:
        seen = (x >= low) & (x < high)
        first, last, inside = np.where(seen, 0, 1), np.zeros(x.size, dtype=np.int64), (0, 0)
    seen = first <= last
    ever = bool(seen.any())
    shown = (first[seen], last[seen]) if ever else (np.zeros(1, np.int64),) * 2
    reach = max(abs(int(points[at])) for points in shown for at in (0, -1))  # they fall as the coordinate grows
    lowest = int((x[seen] + multiple * shown[0]).min()) if ever else 0
    highest = int((x[seen] + multiple * shown[1]).max()) if ever else 0
    starts = inside
    if inside[0] > inside[1]:
        starts = (-((int(x[-1]) - low) // multiple), inside[1])
    if starts[0] > starts[1]:
        starts = (0, 0)
    return Sight(multiple, first, last, inside, starts, seen, shown, reach, lowest, highest, ever)


def room_for(problem: TensorMapProblem) -> tuple[int, int]:
    """Return the bytes from the tile's first element at origin 0 to the tensor's first and last element.

    The map may not begin before the base, because addresses are relative to it and non-negative.
    """
    spans = [(n - 1) * s for n, s in zip(problem.global_shape, problem.global_strides, strict=True)]
    below = max(sum(min(0, span) for span in spans), -problem.base_elem_offset)
    return below * problem.element_bytes, sum(max(0, span) for span in spans) * problem.element_bytes
