"""Follow a Triton kernel's TTGIR: which role starts, awaits and signals what, with slots and phases as functions of k.

One ``Track`` per sequence of operations that some warps run: the kernel itself (``default``), each partition of a
``ttg.warp_specialize``, and each loop body or branch that sets up barriers of its own. An operation that moves memory
and is not understood is refused with its line; what only computes tensors is passed over.

References: Triton 3.9.0, the assembly formats of the dialects ``ttg`` and ``ttng``.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from layoutalg.notation.mlir import Operation, Region, fail, read_mlir, split
from layoutalg.proofs.pipeline.kernels.events import Kernel, Scope, Slot, Track, Value, refuse, same
from layoutalg.proofs.pipeline.kernels.loops import FOR, Bounds, Loops, Outer, bounds_of, yielded
from layoutalg.proofs.pipeline.kernels.operations import COMPUTES, VIEWS, is_eventful
from layoutalg.proofs.pipeline.kernels.parts import belongs, distribute, touches
from layoutalg.proofs.pipeline.kernels.waves import (
    Conditions,
    Known,
    Linear,
    Wave,
    arithmetic,
    compared,
    inverse,
    selected,
)

MOST_STEPS: Final = 400_000
"""operations followed in one kernel, those of repeated bodies counted again"""
UNROLLED: Final = 64
"""iterations: loops of a fixed length up to this are written out"""


def followed(text: object, kernel: str | None = None, assumes: bool = False) -> Kernel:
    """Return the tracks of a kernel.

    Args:
        text: A module of TTGIR.
        kernel: Name of its function; not needed if there is one.
        assumes: Whether what is asked about N before loops is taken to hold.

    Raises:
        MalformedError: LA972: the text is not MLIR.
        RepresentabilityError: LA973: an operation is not known, or slots do not move with the iterations.
    """
    top = read_mlir(text)
    modules = [one for one in top.operations if one.name == "module"]
    for module in modules:
        blocks = re.search(r'"?ttg\.num-ctas"?\s*=\s*(\d+)', module.head)
        if blocks and int(blocks[1]) != 1:
            refuse(module.line, f"clusters of {blocks[1]} blocks are not read")
    inner = [one for module in modules for region in module.regions for one in region.operations]
    functions = [one for one in (*inner, *top.operations) if one.name == "tt.func" and one.regions]
    names = [_function_name(one) for one in functions]
    if not functions or (kernel is not None and kernel not in names):
        fail(1, f"must have a tt.func{'' if kernel is None else f' named {kernel}'}", ", ".join(names) or "none")
    if kernel is None and len(functions) > 1:
        fail(functions[1].line, "must have one tt.func, or kernel must name one", ", ".join(names))
    function = functions[names.index(kernel) if kernel is not None else 0]
    return _Reader(function, assumes).kernel(_function_name(function))


def _function_name(function: Operation) -> str:
    found = re.search(r"@([\w$.-]+)", function.head)
    return found[1] if found else ""


class _Reader(Loops):
    """One pass over a function: values by name, events by track."""

    def __init__(self, function: Operation, assumes: bool = False) -> None:
        super().__init__(function)
        self.function = function
        self.steps = 0
        self.assumes = assumes
        """Whether what is asked about N before loops is taken to hold."""
        self.rules |= {"scf.for": self.loop, "scf.if": self.branch, "ttg.warp_specialize": self.specialize}

    def kernel(self, name: str) -> Kernel:
        """Follow the function."""
        self.tracks.append(self.track)
        scope: Scope = {}
        for argument, kind in self.function.regions[0].arguments:
            scope[argument] = Linear(Wave((0,)), ((argument, 1),)) if re.match(r"i\d+\b|index\b", kind) else None
        self.run(self.function.regions[0], scope)
        distribute(self.tracks)
        tracks = [track for track in self.tracks if track.events]
        return Kernel(name, tuple(tracks), tuple(self.memory))

    def run(self, region: Region, scope: Scope) -> list[Value | None]:
        """Follow the operations of a region; return what it yields."""
        for one in region.operations:
            self.steps += 1
            if self.steps > MOST_STEPS:
                refuse(one.line, f"more than {MOST_STEPS} operations would have to be followed")
            if one.name in ("scf.yield", "ttg.warp_yield"):
                return [scope.get(name) for name in one.operands()]
            rule = self.rules.get(one.name)
            if rule is not None:
                rule(one, scope)
            elif one.name in VIEWS:
                scope[one.results[0]] = scope.get(one.operands()[0]) if one.operands() else None
            else:
                self.other(one, scope)
        return []

    def other(self, one: Operation, scope: Scope) -> None:
        """Follow scalar arithmetic; pass over what only computes; refuse the rest."""
        values = [scope.get(name) for name in one.operands()]
        under = tuple(dict.fromkeys([part for value in values if isinstance(value, Linear) for part in value.under]))
        known = [_bare(_known(value)) for value in values]
        found: Known | None = None
        if one.name == "arith.constant":
            number = re.match(r"(-?\d+|true|false)\b(?! *x)", one.head)
            if number and (one.types.startswith(("i", "si", "ui")) or not one.types):
                found = Linear.of({"true": 1}.get(number[1]) or _number(number[1]))
        elif is_eventful(one):
            refuse(one.line, f"{one.name} is not known")
        elif "tensor" in one.types or "tensor" in one.head:
            found = None
        elif one.name == "arith.cmpi" and len(known) == 2:
            found = compared(one.head.split(",")[0].strip(), *known)
            if self.assumes and self.part == "pre" and isinstance(found, Conditions):
                self.track.assumed += found.positive
                found = Linear.of(1)
        elif one.name == "arith.select" and len(known) == 3:
            found = None if isinstance(values[1], Slot) or isinstance(values[2], Slot) else selected(*known)
            if found is None and self.part == "loop" and isinstance(known[0], Conditions):
                under += known[0].positive
                steps = [part.wave.step for part in under]
                found = known[1] if all(step is not None and step <= 0 for step in steps) else None
        elif one.name in ("arith.extui", "arith.extsi", "arith.trunci", "arith.index_cast", "arith.index_castui"):
            bit = "i1 " in one.types if one.name == "arith.extsi" else one.types.endswith("to i1")
            found = known[0] if known and not bit else None
        elif one.name.startswith("arith.") and len(known) == 2:
            true = isinstance(known[1], Linear) and known[1].constant == 1
            found = inverse(known[0]) if one.name == "arith.xori" and true and "i1" in one.types else None
            found = found if found is not None else arithmetic(one.name, *known)
        elif one.name.startswith(("tt.get_program_id", "tt.get_num_programs")):
            found = Linear(Wave((0,)), ((f"{one.name} {one.head}", 1),))
        elif not one.name.startswith(COMPUTES) or is_eventful(one):
            refuse(one.line, f"{one.name} is not known")
        if under:
            found = replace(found, under=under) if isinstance(found, Linear) else None
        for result in one.results:
            scope[result] = found if len(one.results) == 1 else None

    # control

    def loop(self, one: Operation, scope: Scope) -> None:
        """Follow a loop: find what its carried values are for every k, then note the events once."""
        found = FOR.match(one.regions[0].header)
        if found is None:
            fail(one.line, "scf.for must be %i = first to end step step", one.head)
        counter, first, end, step = found[1], *[scope.get(found[place]) for place in (2, 3, 4)]
        carried = [part.partition("=") for part in split(found[5])] if found[5] else []
        names = [name.strip() for name, _, _ in carried]
        values = [scope.get(value.strip()) for _, _, value in carried]
        body = one.regions[0]
        start, stride = (value.constant if isinstance(value, Linear) else None for value in (first, step))
        bounds = bounds_of(start, end, stride, f"iterations of line {one.line}", first, step)
        if not is_eventful(one):
            self.pass_over(one, names, scope)
            return
        if any(inner.name == "ttng.init_barrier" for inner in one.walk()):
            self.repeat(one, [counter, *names], bounds, scope)
            return
        if start is None or stride is None or stride < 1 or not isinstance(end, Linear):
            start, stride = None, None
        last = end.constant if isinstance(end, Linear) else None
        if start is not None and stride and last is not None and (last - start) // stride <= UNROLLED:
            for turn in range(start, last, stride):
                scope |= {counter: Linear.of(turn)} | dict(zip(names, values, strict=True))
                values = self.run(body, scope)
            scope |= dict(zip(one.results, values, strict=False))
            return
        if self.silent:
            self.pass_over(one, names, scope)
            return
        if self.part == "loop":
            words = [value.strip() for _, _, value in carried]
            self.inner(one, counter, names, words, bounds, scope)
            return
        if self.part != "pre":
            refuse(one.line, "a second loop moves memory too")
        k = Linear(Wave((bounds[0],), bounds[2])) if start is not None else None
        self.track.bounds, self.part = bounds, "loop"
        self.outer = Outer(names, values, yielded(body), bounds)
        ends = self.turned(one, counter, k, names, values, scope)
        self.outer = None
        self.part = "post"
        scope |= dict(zip(one.results, ends, strict=False))

    def branch(self, one: Operation, scope: Scope) -> None:
        """Follow a branch: events get its condition."""
        choice = scope.get(one.operands()[0]) if one.operands() else None
        sides = one.regions
        fixed = choice.constant if isinstance(choice, Linear) else None
        if fixed is not None:
            values = self.run(sides[0 if fixed else 1], scope) if fixed or len(sides) > 1 else []
            scope |= dict(zip(one.results, values, strict=False))
            return
        eventful = is_eventful(one)
        if eventful and not self.silent and self.own(one):
            for place, side in enumerate(sides):
                self.aside(side, scope, f"line {side.line}", keep=place < 2)
            self.pass_over(one, [], scope)
            return
        unknown = not isinstance(choice, Conditions) and (not isinstance(choice, Linear) or choice.symbols)
        if eventful and not self.silent and unknown and self.part != "pre":
            for side in sides:
                if any(map(is_eventful, side.operations)):
                    self.sometimes(side, scope)
            self.pass_over(one, [], scope)
            return
        before = self.when
        results: list[list[Value | None]] = []
        truth = _known(choice)
        for side, holds in zip(sides, (truth, inverse(truth)), strict=False):
            if not self.silent and any(map(is_eventful, side.operations)):
                self.when = before + self.positive(holds, side.line)
            results.append(self.run(side, dict(scope)))
            self.when = before
        first = results[0] if len(results) > 1 and len(results[0]) == len(results[1]) else []
        for place, result in enumerate(one.results):
            pair = (first[place], results[1][place]) if place < len(first) else (None, None)
            scope[result] = pair[0] if same(*pair) else selected(truth, *map(_known, pair))

    def own(self, one: Operation) -> bool:
        """Whether a branch has barriers of its own, so that nothing outside depends on it."""
        return self.part == "pre" and any(inner.name == "ttng.init_barrier" for inner in one.walk())

    def repeat(self, one: Operation, names: list[str], bounds: Bounds, scope: Scope) -> None:
        """Follow a loop whose body sets up its own barriers: the body is a pipeline of its own."""
        if self.silent:
            self.pass_over(one, names[1:], scope)
            return
        if self.part != "pre":
            refuse(one.line, "a loop inside a loop, or a second one, moves memory too")
        self.track.bounds = bounds
        self.aside(one.regions[0], scope | dict.fromkeys(names), f"line {one.line}", loop=True)
        self.part = "post"
        self.pass_over(one, names[1:], scope)

    def aside(self, region: Region, scope: Scope, name: str, loop: bool = False, keep: bool = True) -> None:
        """Follow a region as a track of its own; events on memory from outside stay in the present track."""
        outer, part, when = self.track, self.part, self.when
        inner = Track(f"{outer.name}, {name}", region.line, inside=outer)
        self.track, self.part, self.when = inner, "pre", ()
        self.run(region, dict(scope))
        self.track, self.part, self.when = outer, part, when
        mine = {memory for memory in self.memory if memory.track is inner}
        outside = [event for event in inner.events if touches(event) and not touches(event) <= mine]
        kinds = {event.op for event in outside}
        for event in inner.events:
            other = event in outside or belongs(event, kinds)
            if not other or (event.op == "proxy_fence" and not outside):
                continue
            if event.part != "pre" and event.op != "proxy_fence" and inner.bounds and event.part == "loop":
                refuse(event.line, "a loop inside a loop uses memory from outside")
            if not loop:
                refuse(event.line, "a branch with barriers of its own uses memory from outside")
            outer.events.append(replace(event, part="loop", when=()))
            if event.when:
                refuse(event.line, "a condition of an outer loop is not followed")
        inner.events = [
            event
            for event in inner.events
            if event.op == "proxy_fence" or not (event in outside or belongs(event, kinds))
        ]
        if keep:
            self.tracks.append(inner)

    def specialize(self, one: Operation, scope: Scope) -> None:
        """Follow the partitions of a kernel."""
        if self.silent or self.part != "pre" or self.track is not self.tracks[0]:
            refuse(one.line, "ttg.warp_specialize inside a loop or a branch is not followed")
        captured = re.match(r"\s*\(([^)]*)\)", one.head)
        names = split(captured[1]) if captured and captured[1].strip() else []
        for region in one.regions:
            if region.header.startswith("default"):
                self.note("start", one.line)
                values = self.run(region, scope)
                scope |= dict(zip(one.results, values, strict=False))
                continue
            outer, part = self.track, self.part
            self.track = Track(region.header.split("(")[0], region.line)
            self.tracks.append(self.track)
            self.part = "pre"
            inputs = [name for name, _ in region.arguments]
            if len(inputs) != len(names):
                fail(region.line, f"must take the {len(names)} captured values", len(inputs))
            inner = {name: scope.get(given) for name, given in zip(inputs, names, strict=True)}
            self.run(region, inner)
            self.track, self.part = outer, part
        self.note("end", one.line)


def _number(word: str) -> int:
    return int(word) if word.lstrip("-").isdigit() else 0


def _known(value: Value | None) -> Known | None:
    return None if isinstance(value, Slot) else value


def _bare(value: Known | None) -> Known | None:
    return replace(value, under=()) if isinstance(value, Linear) and value.under else value
