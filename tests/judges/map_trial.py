"""What a candidate does at every origin of the window, and the best plan of a search so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from judges import planner_judge as judges
from judges import tma_engine as engine
from judges.map_candidates import Candidate
from judges.map_geometry import Geometry

MAX_TRIALS = 1500
"""Candidates that are run per problem; a search that reaches it is cut."""
MAX_BETTER = 300
"""Candidates that are run in the hope of a better class than one found."""
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


class View:
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


def try_candidate(search: Search, views: Sequence[View], candidate: Candidate) -> None:
    """Look at a candidate for few origins, then for all; keep it where its class is better than the best so far."""
    search.trials += 1
    best = len(judges.CLASSES) - 1 if search.best is None else judges.CLASSES.index(search.best.verdict)
    if any(view.verdict(candidate) >= best for view in views):
        return
    found = views[-1].found(candidate)
    if found is not None and judges.CLASSES.index(found.verdict) < best:
        search.best = found
        search.found_at = search.trials
