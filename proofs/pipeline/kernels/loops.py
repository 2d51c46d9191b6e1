"""Loops of a Triton kernel: what is carried from one iteration to the next, as functions of the iteration.

The values of the first iterations are found by running the body; ``through`` guesses functions, and one more pass over
the body with these functions proves them by induction. ``Loops.turned`` then notes the body's events once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import lcm
from typing import Final, TypeAlias

from layoutalg.notation.mlir import Operation, Region
from layoutalg.proofs.pipeline.kernels.events import (
    Scope,
    Slot,
    Track,
    Value,
    at_turn,
    firsts,
    mapped,
    refuse,
    same,
    still,
    through,
)
from layoutalg.proofs.pipeline.kernels.operations import MEMORY, PRODUCTS, Operations, product, result_type
from layoutalg.proofs.pipeline.kernels.waves import LONGEST, Linear, Wave

Bounds: TypeAlias = "tuple[int, Linear, int]"
FOR: Final = re.compile(r"(%[\w$.-]+) = (\S+) to (\S+) step (\S+)(?: iter_args\(([^)]*)\))?")


@dataclass(frozen=True, slots=True)
class Outer:
    """The loop around the present place: what it carries, its first values, what its body yields, its bounds."""

    names: list[str]
    values: list[Value | None]
    yields: list[str]
    bounds: Bounds

    def passes(self, word: str, result: str) -> bool:
        """Whether an inner loop begins with a carried value that is its own result of the turn before."""
        return word in self.names and self.yields[self.names.index(word)] == result


class Loops(Operations):
    """A pass over a kernel that knows loops."""

    def __init__(self, function: Operation) -> None:
        super().__init__(Track("default", function.line))
        self.tracks: list[Track] = []
        self.outer: Outer | None = None
        shapes = [found for one in function.walk() for found in (MEMORY.match(result_type(one)),) if found]
        leading = [int(found[1].split("x")[0]) for found in shapes if found[2] == "i64" or found[1].count("x") > 2]
        self.period = lcm(*[2 * size for size in leading if size <= LONGEST]) if leading else 2

    def run(self, region: Region, scope: Scope) -> list[Value | None]:
        """Follow the operations of a region; return what it yields."""
        raise NotImplementedError

    def turned(
        self,
        one: Operation,
        counter: str,
        k: Linear | None,
        names: list[str],
        values: list[Value | None],
        scope: Scope,
    ) -> list[Value | None]:
        """Note the events of a loop's body; return what is carried at its end, as functions of its trip."""
        body = one.regions[0]
        waves = self.solved(body, counter, k, names, values, scope)
        before, self.track.events = self.track.events, []
        self.run(body, scope | {counter: at_turn(k, 0)} | dict(zip(names, values, strict=True)))
        first_events, self.track.events = self.track.events, []
        self.run(body, scope | {counter: k} | dict(zip(names, waves, strict=True)))
        events, self.track.events = self.track.events, before
        self.track.events += events
        late = [place for place, value in enumerate(waves) if not same(at_turn(value, 0), values[place])]
        if late and firsts(events) != firsts(first_events):
            refuse(one.line, f"the first iteration differs from the later ones: {names[late[0]]} starts elsewhere")
        frozen = self.frozen(body, names)
        return [
            None if place in late else self.ended(value, place in frozen) if isinstance(value, Linear) else value
            for place, value in enumerate(waves)
        ]

    def frozen(self, body: Region, names: list[str]) -> set[int]:
        """Return which carried values stay as they are where a condition does not hold."""
        selects = {one.results[0]: one.operands() for one in body.operations if one.name == "arith.select"}
        yields = yielded(body)
        return {
            place
            for place, name in enumerate(names)
            if place < len(yields) and yields[place] in selects and selects[yields[place]][2:] == [name]
        }

    def ended(self, value: Linear, frozen: bool) -> Linear | None:
        """Return what a value is after the loop, as a function of its trip: that of the last turn that moved it."""
        if not value.under:
            return value
        if not frozen or self.track.bounds is None or len(value.under) != 1:
            return None
        start, end, stride = self.track.bounds
        part = value.under[0]
        apart = (end.wave.constant or 0) - start - part.wave.at(0)
        if part.symbols != end.symbols or part.wave.step != -stride or apart % stride or apart < 0:
            return None
        self.track.assumed.append(end.plus(Linear.of(start + apart - stride), -1))
        wave = value.wave
        for _ in range(apart // stride):
            wave = wave.previous()
        return Linear(wave, value.symbols)

    def inner(
        self, one: Operation, counter: str, names: list[str], words: list[str], bounds: Bounds, scope: Scope
    ) -> None:
        """Follow a loop in a loop as one loop over all turns of both: what it carries must come from its last turn."""
        outer = self.outer
        if outer is None or self.when:
            refuse(one.line, "a loop inside a branch or deeper than a second one moves memory")
        values = [
            outer.values[outer.names.index(word)] if outer.passes(word, one.results[place]) else None
            for place, word in enumerate(words)
        ]
        calm: Scope = {name: still(value) for name, value in scope.items()}
        self.accumulated(one, [counter, *names], scope)
        turns = " x ".join([f"{start} to {end} step {stride}" for start, end, stride in (outer.bounds, bounds)])
        with self.part_of(one.line) as track:
            self.leaves_tensors = True
            track.bounds = 0, Linear(Wave((0,)), ((turns, 1),)), 1
            self.turned(one, counter, None, names, values, calm)
        self.pass_over(one, names, scope)

    def accumulated(self, one: Operation, names: list[str], scope: Scope) -> None:
        """Note that a loop in a loop adds to accumulators, once for each that its turns add to one after the other."""
        body = one.regions[0]
        values = scope | dict.fromkeys(names)
        self.silently(body, values)
        for inner in [inner for op in body.operations for inner in op.walk()]:
            if "#ttng.tensor_memory" not in inner.types or inner.name in ("ttg.memdesc_index", "scf.yield"):
                continue
            if inner.name not in PRODUCTS or inner not in body.operations:
                refuse(inner.line, "a loop inside a loop uses tensor memory other than by adding to it")
            operands, _ = product(inner)
            always = values.get(operands[-1])
            if not (isinstance(always, Linear) and always.constant == 1):
                refuse(inner.line, "a loop inside a loop adds to tensor memory under a condition")
            inputs = [values.get(name) for name in (*operands[:2], *operands[3:-2])]
            if any(isinstance(value, Slot) and value.memory.tensor for value in inputs):
                refuse(inner.line, "a loop inside a loop uses tensor memory other than by adding to it")
            self.note("mma_write", inner.line, buf=self.tensor(inner, values, operands[2]), adds=True)

    @contextmanager
    def part_of(self, line: int) -> Iterator[Track]:
        """Follow a part of a loop as a track of its own."""
        before = self.track, self.outer, self.part, self.when, self.leaves_tensors
        made = Track(f"{self.track.name}, line {line}", line, inside=self.track, loose=True, late=self.part == "post")
        self.tracks = [other for other in self.tracks if other.name != made.name] + [made]
        self.track, self.outer, self.part, self.when = made, None, "loop", ()
        yield made
        self.track, self.outer, self.part, self.when, self.leaves_tensors = before

    def sometimes(self, side: Region, scope: Scope) -> None:
        """Follow a branch in or after a loop, taken if something unknown holds, as a loop over the times it is."""
        with self.part_of(side.line) as track:
            track.bounds = 0, Linear(Wave((0,)), ((f"iterations that run line {side.line}", 1),)), 1
            self.run(side, {name: still(value) for name, value in scope.items()})

    def pass_over(self, one: Operation, names: list[str], scope: Scope) -> None:
        """Forget what a region without events computes."""
        for name in (*names, *one.results):
            scope[name] = None

    def solved(
        self, body: Region, counter: str, k: Linear | None, names: list[str], values: list[Value | None], scope: Scope
    ) -> list[Value | None]:
        """Return the carried values as functions of k, proved by induction; they may differ at k = 0."""
        if self.period > LONGEST:
            refuse(body.line, f"slots repeat after {self.period} iterations; at most {LONGEST} are followed")
        runs, now = [values], values
        for place in range(2 * self.period + 1):
            at = None if k is None else Linear.of(k.wave.at(place))
            now = self.silently(body, scope | {counter: at} | dict(zip(names, now, strict=True)))
            now = now + [None] * (len(names) - len(now))
            runs.append(now)
        found = [through([row[place] for row in runs], self.period) for place in range(len(names))]
        later = [through([row[place] for row in runs[1:]], self.period) for place in range(len(names))]
        found = [
            value if value is not None else mapped(later[place], Wave.previous) for place, value in enumerate(found)
        ]
        while True:
            after = self.silently(body, scope | {counter: k} | dict(zip(names, found, strict=True)))
            wrong = [
                place
                for place, value in enumerate(found)
                if value is not None and (place >= len(after) or not same(after[place], mapped(value, Wave.next)))
            ]
            bound = [_under(after[place] if place < len(after) else None, value) for place, value in enumerate(found)]
            if not wrong and bound == found:
                return found
            found = [None if place in wrong else value for place, value in enumerate(bound)]

    def silently(self, body: Region, scope: Scope) -> list[Value | None]:
        """Return what a region yields, without noting events."""
        before, self.silent = self.silent, True
        try:
            return self.run(body, scope)
        finally:
            self.silent = before


def _under(after: Value | None, value: Value | None) -> Value | None:
    """Return a carried value with the conditions under which it comes about."""
    if isinstance(after, Linear) and isinstance(value, Linear):
        return replace(value, under=tuple(dict.fromkeys([*value.under, *after.under])))
    return value


def yielded(body: Region) -> list[str]:
    return next((one.operands() for one in body.operations if one.name == "scf.yield"), [])


def bounds_of(
    start: int | None, end: object, stride: int | None, told: str, first: object, step: object
) -> tuple[int, Linear, int]:
    """Return first value, end and step of a counter; of one that is not known, a number of iterations with a name."""
    if start is not None and stride is not None and stride > 0 and isinstance(end, Linear) and end.symbols:
        return start, end, stride
    name = (
        f"iterations of {first} to {end} step {step}"
        if all(isinstance(one, Linear) for one in (first, end, step))
        else told
    )
    return 0, Linear(Wave((0,)), ((name, 1),)), 1
