"""Follow a Triton kernel's TTGIR: which role starts, awaits and signals what, with slots and phases as functions of k.

One ``Track`` per sequence of operations that some warps run: the kernel itself (``default``), each partition of a
``ttg.warp_specialize``, and each loop body or branch that sets up barriers of its own. An operation that moves memory
and is not understood is refused with its line; what only computes tensors is passed over.

References: Triton 3.9.0, the assembly formats of the dialects ``ttg`` and ``ttng``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import lcm, prod
from typing import Final, Literal, NoReturn, TypeAlias

from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.notation.mlir import Operation, Region, fail, read_mlir, split
from layoutalg.proofs.pipeline.waves import (
    LONGEST,
    Conditions,
    Known,
    Linear,
    Wave,
    arithmetic,
    compared,
    fitted,
    inverse,
    selected,
)

Part: TypeAlias = Literal["pre", "loop", "post"]

UNROLLED: Final = 64
"""iterations: loops of a fixed length up to this are written out"""


@dataclass(eq=False, slots=True)
class Memory:
    """Shared memory of one ``ttg.local_alloc``.

    Args:
        name: Name of its value.
        line: Its line.
        shape: Sizes, outermost first.
        bits: Bits of an element.
        track: The track that allocates it.
        counts: Arrivals per phase of each slot that is a barrier.
        sliced: Whether slots are taken from it.
    """

    name: str
    line: int
    shape: tuple[int, ...]
    bits: int
    track: Track
    counts: dict[int, int] = field(default_factory=dict)
    sliced: bool = False

    @property
    def slots(self) -> int:
        """The number of slots."""
        return self.shape[0] if self.sliced else 1

    @property
    def slot_bytes(self) -> int:
        """Bytes of a slot."""
        return prod(self.shape[1:] if self.sliced else self.shape) * self.bits // 8


@dataclass(frozen=True, slots=True)
class Slot:
    """A descriptor of memory: a slot, or all of it."""

    memory: Memory
    index: Linear | None = None

    @property
    def place(self) -> Wave | None:
        """The slot as a function of k; None if it is not known."""
        if self.index is None:
            return Wave((0,))
        return None if self.index.symbols or self.index.wave.growth else self.index.wave


Value: TypeAlias = "Linear | Conditions | Slot"


@dataclass(frozen=True, slots=True)
class Event:
    """An op of a pipeline before its indices are known.

    Args:
        op: A name in ``document.OPS``.
        part: Where the track runs it.
        line: Line of the operation.
        bar: Slot of a barrier.
        buf: Slot of a buffer.
        parity: Parity operand of a wait.
        n: Arrivals, or groups left open.
        bytes: Bytes expected or delivered.
        when: What must be positive for it to run.
    """

    op: str
    part: Part
    line: int
    bar: Slot | None = None
    buf: Slot | None = None
    parity: Wave | None = None
    n: int = 0
    bytes: int | None = None
    when: tuple[Linear, ...] = ()


@dataclass(eq=False, slots=True)
class Track:
    """What one group of warps does in order.

    Args:
        name: Name of the role.
        line: Where it begins.
        events: Its events.
        bounds: First value, end and step of the counter of its loop.
        inside: The track of which this is a part that is repeated or chosen, or None.
    """

    name: str
    line: int
    events: list[Event] = field(default_factory=list)
    bounds: tuple[int, Linear, int] | None = None
    inside: Track | None = None


@dataclass(frozen=True, slots=True)
class Kernel:
    """The tracks of a kernel and its memory."""

    name: str
    tracks: tuple[Track, ...]
    memory: tuple[Memory, ...]


Scope: TypeAlias = "dict[str, Value | None]"

_MEMORY = re.compile(r"!ttg\.memdesc<((?:\d{1,7}x)+)(\w+),(.*)>$")
_BITS = re.compile(r"[a-z]+(\d{1,3})")
_FOR = re.compile(r"(%[\w$.-]+) = (\S+) to (\S+) step (\S+)(?: iter_args\(([^)]*)\))?")
_IGNORED: Final = (
    "ttg.local_dealloc",
    "ttng.inval_barrier",
    "ttg.barrier",
    "gpu.barrier",
    "ttng.tmem_alloc",
    "ttng.tmem_load",
    "ttng.tmem_store",
    "ttng.tmem_subslice",
    "ttg.convert_layout",
    "ttg.warp_yield",
    "ttg.warp_return",
    "ttg.warp_id",
    "ttng.tensormap_create",
    "ttng.tensormap_fenceproxy_acquire",
    "ttng.fence_mbarrier_init_release_cluster",
)
"""Operations of the two dialects without an effect on shared memory that a pipeline tells."""
_COMPUTES: Final = ("arith.", "math.", "tt.", "ub.", *_IGNORED)
"""What computes values, and may be passed over."""
_VIEWS: Final = ("ttg.memdesc_trans", "ttg.memdesc_reshape", "ttg.memdesc_reinterpret", "ttg.memdesc_subslice")
_EVENTFUL: Final = re.compile(r"(?:ttg|ttng|nvgpu|nvws)\.")


def refuse(line: int, because: str) -> NoReturn:
    """Raise the error of a kernel that is no pipeline."""
    raise RepresentabilityError(Diagnostic("LA973", "this kernel has no pipeline document", (f"line {line}",), because))


def followed(text: object, kernel: str | None = None) -> Kernel:
    """Return the tracks of a kernel.

    Args:
        text: A module of TTGIR.
        kernel: Name of its function; not needed if there is one.

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
    return _Reader(function).kernel(_function_name(function))


def _function_name(function: Operation) -> str:
    found = re.search(r"@([\w$.-]+)", function.head)
    return found[1] if found else ""


class _Reader:
    """One pass over a function: values by name, events by track."""

    def __init__(self, function: Operation) -> None:
        self.function = function
        self.memory: list[Memory] = []
        self.tracks: list[Track] = []
        self.track = Track("default", function.line)
        self.part: Part = "pre"
        self.when: tuple[Linear, ...] = ()
        self.silent = False
        """Whether values are followed without noting events."""
        shapes = [found for one in function.walk() for found in (_MEMORY.match(_result_type(one)),) if found]
        leading = [int(found[1].split("x")[0]) for found in shapes if found[2] == "i64" or found[1].count("x") > 2]
        self.period = lcm(*[2 * size for size in leading if size <= LONGEST]) if leading else 2
        self.rules: dict[str, Callable[[Operation, Scope], None]] = {
            "scf.for": self.loop,
            "scf.if": self.branch,
            "ttg.warp_specialize": self.specialize,
            "ttg.local_alloc": self.allocate,
            "ttg.memdesc_index": self.index,
            "ttng.init_barrier": self.init,
            "ttng.wait_barrier": self.wait,
            "ttng.arrive_barrier": self.arrive,
            "ttng.barrier_expect": self.expect,
            "ttng.async_tma_copy_global_to_local": self.tma_load,
            "ttng.async_tma_gather": self.tma_load,
            "ttng.async_tma_copy_local_to_global": self.tma_store,
            "ttng.async_tma_scatter": self.tma_store,
            "ttng.async_tma_reduce": self.tma_store,
            "ttng.async_tma_store_wait": self.group_wait,
            "ttng.warp_group_dot": self.dot,
            "ttng.warp_group_dot_wait": self.group_wait,
            "ttng.tc_gen5_mma": self.mma,
            "ttng.tc_gen5_mma_scaled": self.mma,
            "ttng.tmem_copy": self.mma,
            "ttng.tc_gen5_commit": self.commit,
            "ttg.async_copy_global_to_local": self.cp_async,
            "ttg.async_commit_group": self.cp_async_commit,
            "ttg.async_wait": self.group_wait,
            "ttg.local_load": self.access,
            "ttg.local_store": self.access,
            "ttng.fence_async_shared": self.fence,
        }

    def kernel(self, name: str) -> Kernel:
        """Follow the function."""
        self.tracks.append(self.track)
        scope: Scope = {}
        for argument, kind in self.function.regions[0].arguments:
            scope[argument] = Linear(Wave((0,)), ((argument, 1),)) if re.match(r"i\d+\b|index\b", kind) else None
        self.run(self.function.regions[0], scope)
        tracks = [track for track in self.tracks if track.events]
        return Kernel(name, tuple(tracks), tuple(self.memory))

    def run(self, region: Region, scope: Scope) -> list[Value | None]:
        """Follow the operations of a region; return what it yields."""
        for one in region.operations:
            if one.name in ("scf.yield", "ttg.warp_yield"):
                return [scope.get(name) for name in one.operands()]
            rule = self.rules.get(one.name)
            if rule is not None:
                rule(one, scope)
            elif one.name in _VIEWS:
                scope[one.results[0]] = scope.get(one.operands()[0]) if one.operands() else None
            else:
                self.other(one, scope)
        return []

    def other(self, one: Operation, scope: Scope) -> None:
        """Follow scalar arithmetic; pass over what only computes; refuse the rest."""
        values = [scope.get(name) for name in one.operands()]
        known = [value if isinstance(value, (Linear, Conditions)) else None for value in values]
        found: Known | None = None
        if one.name == "arith.constant":
            number = re.match(r"(-?\d+|true|false)\b(?! *x)", one.head)
            if number and (one.types.startswith(("i", "si", "ui")) or not one.types):
                found = Linear.of({"true": 1}.get(number[1]) or _number(number[1]))
        elif any(_is_eventful(inner) for inner in one.walk()):
            refuse(one.line, f"{one.name} is not known")
        elif "tensor" in one.types or "tensor" in one.head:
            found = None
        elif one.name == "arith.cmpi" and len(known) == 2:
            found = compared(one.head.split(",")[0].strip(), *known)
        elif one.name == "arith.select" and len(known) == 3:
            found = None if isinstance(values[1], Slot) or isinstance(values[2], Slot) else selected(*known)
        elif one.name in ("arith.extui", "arith.extsi", "arith.trunci", "arith.index_cast", "arith.index_castui"):
            bit = "i1 " in one.types if one.name == "arith.extsi" else one.types.endswith("to i1")
            found = known[0] if known and not bit else None
        elif one.name.startswith("arith.") and len(known) == 2:
            true = isinstance(known[1], Linear) and known[1].constant == 1
            found = inverse(known[0]) if one.name == "arith.xori" and true and "i1" in one.types else None
            found = found if found is not None else arithmetic(one.name, *known)
        elif one.name.startswith(("tt.get_program_id", "tt.get_num_programs")):
            found = Linear(Wave((0,)), ((f"{one.name} {one.head}", 1),))
        elif not one.name.startswith(_COMPUTES) or any(_is_eventful(inner) for inner in one.walk()):
            refuse(one.line, f"{one.name} is not known")
        for result in one.results:
            scope[result] = found if len(one.results) == 1 else None

    # control

    def loop(self, one: Operation, scope: Scope) -> None:
        """Follow a loop: find what its carried values are for every k, then note the events once."""
        found = _FOR.match(one.regions[0].header)
        if found is None:
            fail(one.line, "scf.for must be %i = first to end step step", one.head)
        counter, first, end, step = found[1], *[scope.get(found[place]) for place in (2, 3, 4)]
        carried = [part.partition("=") for part in split(found[5])] if found[5] else []
        names = [name.strip() for name, _, _ in carried]
        values = [scope.get(value.strip()) for _, _, value in carried]
        body = one.regions[0]
        start, stride = (value.constant if isinstance(value, Linear) else None for value in (first, step))
        if not any(_is_eventful(inner) for inner in one.walk()):
            self.pass_over(one, names, scope)
            return
        if any(inner.name == "ttng.init_barrier" for inner in one.walk()):
            self.repeat(one, [counter, *names], scope)
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
        if self.part != "pre":
            refuse(one.line, "a loop inside a loop, or a second one, moves memory too")
        bounds = _bounds(start, end, stride, f"iterations of line {one.line}", first, step)
        k = Linear(Wave((bounds[0],), bounds[2])) if start is not None else None
        waves = self.solved(body, counter, k, names, values, scope)
        self.track.bounds, self.part = bounds, "loop"
        before = self.track.events
        self.track.events = []
        at = None if k is None else Linear.of(bounds[0])
        self.run(body, scope | {counter: at} | dict(zip(names, values, strict=True)))
        first_events, self.track.events = self.track.events, []
        self.run(body, scope | {counter: k} | dict(zip(names, waves, strict=True)))
        events, self.track.events = self.track.events, before
        self.track.events += events
        late = [place for place, value in enumerate(waves) if not _same(_at(value, 0), values[place])]
        if late and _firsts(events) != _firsts(first_events):
            refuse(one.line, f"the first iteration differs from the later ones: {names[late[0]]} starts elsewhere")
        self.part = "post"
        ends = [None if place in late else value for place, value in enumerate(waves)]
        scope |= dict(zip(one.results, ends, strict=False))

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
        found = [_through([row[place] for row in runs], self.period) for place in range(len(names))]
        later = [_through([row[place] for row in runs[1:]], self.period) for place in range(len(names))]
        found = [value if value is not None else _previous(later[place]) for place, value in enumerate(found)]
        while True:
            after = self.silently(body, scope | {counter: k} | dict(zip(names, found, strict=True)))
            wrong = [
                place
                for place, value in enumerate(found)
                if value is not None and (place >= len(after) or not _same(after[place], _next(value)))
            ]
            if not wrong:
                return found
            for place in wrong:
                found[place] = None

    def silently(self, body: Region, scope: Scope) -> list[Value | None]:
        """Return what a region yields, without noting events."""
        before, self.silent = self.silent, True
        try:
            return self.run(body, scope)
        finally:
            self.silent = before

    def branch(self, one: Operation, scope: Scope) -> None:
        """Follow a branch: events get its condition."""
        choice = scope.get(one.operands()[0]) if one.operands() else None
        sides = one.regions
        fixed = choice.constant if isinstance(choice, Linear) else None
        if fixed is not None:
            values = self.run(sides[0 if fixed else 1], scope) if fixed or len(sides) > 1 else []
            scope |= dict(zip(one.results, values, strict=False))
            return
        eventful = any(_is_eventful(inner) for inner in one.walk())
        if eventful and not self.silent and self.own(one):
            for place, side in enumerate(sides):
                self.aside(side, scope, f"line {side.line}", keep=place < 2)
            self.pass_over(one, [], scope)
            return
        before = self.when
        results: list[list[Value | None]] = []
        for side, truth in zip(
            sides, (choice, inverse(choice if not isinstance(choice, Slot) else None)), strict=False
        ):
            known = truth if isinstance(truth, (Linear, Conditions)) else None
            if (
                eventful
                and not self.silent
                and any(_is_eventful(inner) for op in side.operations for inner in op.walk())
            ):
                self.when = before + self.positive(known, side.line)
            results.append(self.run(side, dict(scope)))
            self.when = before
        same = results[0] if len(results) > 1 and len(results[0]) == len(results[1]) else []
        for place, result in enumerate(one.results):
            pair = (same[place], results[1][place]) if place < len(same) else (None, None)
            known_pair = [value if isinstance(value, (Linear, Conditions)) else None for value in pair]
            truth = choice if isinstance(choice, (Linear, Conditions)) else None
            scope[result] = pair[0] if _same(pair[0], pair[1]) else selected(truth, *known_pair)

    def own(self, one: Operation) -> bool:
        """Whether a branch has barriers of its own, so that nothing outside depends on it."""
        return self.part == "pre" and any(inner.name == "ttng.init_barrier" for inner in one.walk())

    def repeat(self, one: Operation, names: list[str], scope: Scope) -> None:
        """Follow a loop whose body sets up its own barriers: the body is a pipeline of its own."""
        if self.silent:
            self.pass_over(one, names[1:], scope)
            return
        if self.part != "pre":
            refuse(one.line, "a loop inside a loop, or a second one, moves memory too")
        found = _FOR.match(one.regions[0].header)
        header = [scope.get(found[place]) for place in (2, 3, 4)] if found else [None] * 3
        start, stride = (value.constant if isinstance(value, Linear) else None for value in (header[0], header[2]))
        self.track.bounds = _bounds(start, header[1], stride, f"iterations of line {one.line}", *header[::2])
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
        outside = [event for event in inner.events if _touches(event) and not _touches(event) <= mine]
        kinds = {event.op for event in outside}
        for event in inner.events:
            other = event in outside or (not _touches(event) and _belongs(event.op, kinds))
            if not other or (event.op == "proxy_fence" and not outside):
                continue
            if event.part != "pre" and event.op != "proxy_fence" and inner.bounds and event.part == "loop":
                refuse(event.line, "a loop inside a loop uses memory from outside")
            if not loop:
                refuse(event.line, "a branch with barriers of its own uses memory from outside")
            outer.events.append(replace(event, part="loop", when=()))
            if event.when:
                refuse(event.line, "a condition of an outer loop is not followed")
        shared = {event for event in inner.events if event.op == "proxy_fence"}
        inner.events = [
            event
            for event in inner.events
            if event in shared or not (event in outside or (not _touches(event) and _belongs(event.op, kinds)))
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

    # memory

    def note(self, op: str, line: int, **more: object) -> None:
        """Note an event."""
        if not self.silent:
            event = Event(op, self.part, line, **more)  # type: ignore[arg-type]
            self.track.events.append(replace(event, when=event.when + self.when))

    def positive(self, value: Known | None, line: int) -> tuple[Linear, ...]:
        """Return what must be positive for a condition to hold."""
        if isinstance(value, Conditions):
            return value.positive
        if isinstance(value, Linear) and not value.symbols:
            return () if value.constant == 1 else (value,)
        return refuse(line, "its condition does not follow from the iteration")

    def predicate(self, one: Operation, scope: Scope, name: str | None) -> tuple[Linear, ...] | None:
        """Return the condition of an operation's predicate; None if it never runs."""
        if name is None or self.silent:
            return ()
        value = scope.get(name)
        if isinstance(value, Linear) and value.constant == 0:
            return None
        return self.positive(value if not isinstance(value, Slot) else None, one.line)

    def slot(self, one: Operation, scope: Scope, name: str) -> Slot:
        """Return the slot that a value is."""
        value = scope.get(name)
        if not isinstance(value, Slot):
            if self.silent:
                return Slot(Memory("", one.line, (1,), 8, self.track))
            refuse(one.line, f"{one.name}: it is not known which memory {name} is")
        return value

    def allocate(self, one: Operation, scope: Scope) -> None:
        """Allocate memory; with an operand, write it."""
        found = _MEMORY.match(_result_type(one))
        if found is None:
            fail(one.line, "must have a type !ttg.memdesc<...>", one.types)
        if self.silent:
            scope[one.results[0]] = None
            return
        bits = _BITS.fullmatch(found[2])
        shape = tuple([int(size) for size in found[1].split("x")[:-1]])
        made = next((memory for memory in self.memory if memory.line == one.line), None)
        if made is None:
            made = Memory(one.results[0], one.line, shape, int(bits[1]) if bits else 64, self.track)
            self.memory.append(made)
        scope[one.results[0]] = Slot(made)
        if one.operands():
            self.note("write", one.line, buf=Slot(made))

    def index(self, one: Operation, scope: Scope) -> None:
        """Take a slot."""
        names = one.operands()
        value = scope.get(names[0]) if len(names) == 2 else None
        scope[one.results[0]] = None
        if isinstance(value, Slot):
            at = scope.get(names[1])
            if value.index is not None or not isinstance(at, Linear):
                if not self.silent:
                    refuse(one.line, "the slot does not follow from the iteration")
                return
            value.memory.sliced = True
            scope[one.results[0]] = Slot(value.memory, at)

    def init(self, one: Operation, scope: Scope) -> None:
        """Set up a barrier."""
        found = re.match(r"(%\S+), (\d{1,9})\b", one.head)
        if found is None:
            fail(one.line, "must be a barrier and a count", one.head)
        slot = self.slot(one, scope, found[1])
        at = slot.place
        if self.silent:
            return
        if at is None or at.constant is None or self.part != "pre" or self.when:
            refuse(one.line, "a barrier is set up in a loop or under a condition")
        if at.constant in slot.memory.counts:
            refuse(one.line, "a barrier is set up twice")
        slot.memory.counts[at.constant] = int(found[2])

    def wait(self, one: Operation, scope: Scope) -> None:
        """Await a phase."""
        names = re.split(r"\bdeps\b", one.head)[0]
        parts = re.findall(r"%[\w$.#-]+", names)
        when = self.predicate(one, scope, parts[2] if len(parts) > 2 else None)
        if self.silent or when is None:
            return
        parity = scope.get(parts[1]) if len(parts) > 1 else None
        if not isinstance(parity, Linear) or parity.symbols or parity.wave.growth:
            refuse(one.line, "the phase does not follow from the iteration")
        bits = Wave(tuple([entry & 1 for entry in parity.wave.table])).short()
        self.note("wait", one.line, bar=self.slot(one, scope, parts[0]), parity=bits, when=when)

    def arrive(self, one: Operation, scope: Scope) -> None:
        """Arrive at a barrier."""
        found = re.match(r"(%\S+), (\d{1,9})(?:, (%[\w$.#-]+))?", one.head)
        if found is None:
            fail(one.line, "must be a barrier and a count", one.head)
        when = self.predicate(one, scope, found[3])
        if when is not None:
            self.note("arrive", one.line, bar=self.slot(one, scope, found[1]), n=int(found[2]), when=when)

    def expect(self, one: Operation, scope: Scope) -> None:
        """Expect bytes, with one arrival."""
        found = re.match(r"(%\S+), (\d{1,9})(?:, (%[\w$.#-]+))?", one.head)
        if found is None:
            fail(one.line, "must be a barrier and bytes", one.head)
        when = self.predicate(one, scope, found[3])
        if when is not None:
            self.note("arrive_tx", one.line, bar=self.slot(one, scope, found[1]), bytes=int(found[2]), when=when)

    def tma_load(self, one: Operation, scope: Scope) -> None:
        """Start a copy into shared memory."""
        found = re.match(
            r"%\S+?\[[^\]]*\](?: offsets = \[[^\]]*\])? (%\S+), (%\S+?)(?:, (%[\w$.#-]+))?(?: |$)", one.head
        )
        if found is None or "multicast" in one.head:
            refuse(one.line, f"{one.name} in this form is not known")
        when = self.predicate(one, scope, found[3])
        if when is not None:
            slot = self.slot(one, scope, found[1])
            size = slot.memory.slot_bytes
            self.note("tma_load", one.line, buf=slot, bar=self.slot(one, scope, found[2]), bytes=size, when=when)

    def tma_store(self, one: Operation, scope: Scope) -> None:
        """Start a copy from shared memory, a group of its own."""
        self.note("tma_store", one.line, buf=self.slot(one, scope, one.operands()[-1]))
        self.note("bulk_commit", one.line)

    def group_wait(self, one: Operation, scope: Scope) -> None:
        """Await groups."""
        kind = {"ttg.async_wait": "cp_async_wait", "ttng.async_tma_store_wait": "bulk_wait"}.get(one.name, "mma_wait")
        left = one.attribute("num" if kind == "cp_async_wait" else "pendings")
        self.note(kind, one.line, n=left or 0)
        for result, given in zip(one.results, one.operands(), strict=False):
            scope[result] = scope.get(given)

    def dot(self, one: Operation, scope: Scope) -> None:
        """Start matrix instructions of a warp group, a group of its own."""
        for name in one.operands()[:2]:
            if isinstance(scope.get(name), Slot):
                self.note("mma", one.line, buf=self.slot(one, scope, name))
        self.note("mma_commit", one.line)
        if "isAsync = true" not in one.head:
            self.note("mma_wait", one.line, n=0)
        scope |= dict.fromkeys(one.results)

    def mma(self, one: Operation, scope: Scope) -> None:
        """Start matrix instructions of tensor memory; barriers in brackets await their ends."""
        signals = re.findall(r"(%[\w$.-]+(?:#\d+)?)\[(%[\w$.-]+(?:#\d+)?)\]", one.head)
        plain = re.sub(r"\[[^\]]*\]", "", re.split(r"\{", one.head)[0])
        names = re.findall(r"%[\w$.-]+(?:#\d+)?", plain)
        names = names[: len(names) - len(signals)]
        copies = one.name == "ttng.tmem_copy"
        when = self.predicate(one, scope, None if copies else names[-1])
        scope |= dict.fromkeys(one.results)
        if when is None:
            return
        for name in names[:1] if copies else names:
            if isinstance(scope.get(name), Slot):
                self.note("mma", one.line, buf=self.slot(one, scope, name), when=when)
        for bar, predicate in signals:
            both = self.predicate(one, scope, predicate)
            if both is not None:
                also = tuple([entry for entry in both if entry not in when])
                self.note("mma_arrive", one.line, bar=self.slot(one, scope, bar), when=when + also)
        if copies and len(names) > 2:
            self.note("mma_arrive", one.line, bar=self.slot(one, scope, names[2]))

    def commit(self, one: Operation, scope: Scope) -> None:
        """Arrive when the matrix instructions of tensor memory have ended."""
        names = re.findall(r"%[\w$.-]+(?:#\d+)?", re.split(r"\bdescs\b", one.head)[0])
        when = self.predicate(one, scope, names[1] if len(names) > 1 else None)
        if when is not None:
            self.note("mma_arrive", one.line, bar=self.slot(one, scope, names[0]), when=when)

    def cp_async(self, one: Operation, scope: Scope) -> None:
        """Start copies of threads. Masks are left out: a copy that is masked may write zeros."""
        self.note("cp_async", one.line, buf=self.slot(one, scope, one.operands()[1]))
        scope |= dict.fromkeys(one.results)

    def cp_async_commit(self, one: Operation, scope: Scope) -> None:
        """Close a group of copies."""
        self.note("cp_async_commit", one.line)
        scope |= dict.fromkeys(one.results)

    def access(self, one: Operation, scope: Scope) -> None:
        """Read or write a slot with ordinary loads and stores."""
        load = one.name == "ttg.local_load"
        self.note("read" if load else "write", one.line, buf=self.slot(one, scope, one.operands()[0 if load else 1]))
        scope |= dict.fromkeys(one.results)

    def fence(self, one: Operation, _: Scope) -> None:
        """Order accesses of the two proxies."""
        self.note("proxy_fence", one.line)


def _number(word: str) -> int:
    return int(word) if word.lstrip("-").isdigit() else 0


def _result_type(one: Operation) -> str:
    return one.types.rsplit("->", 1)[-1].strip()


def _is_eventful(one: Operation) -> bool:
    """Whether an operation may touch shared memory or barriers."""
    if one.name in ("tt.call", "scf.while", "cf.br", "cf.cond_br", "scf.execute_region", "scf.index_switch"):
        return True
    if "memdesc" in one.types and one.name not in _IGNORED and not one.name.startswith(("scf.", "arith.")):
        return True
    return bool(_EVENTFUL.match(one.name)) and one.name not in _IGNORED and one.name not in _VIEWS


def _bounds(
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


def _through(values: list[Value | None], period: int) -> Value | None:
    """Return the value as a function of k through those of the first iterations."""
    first = values[0]
    if all(_same(first, value) for value in values):
        return first
    linear = [value.index if isinstance(value, Slot) else value for value in values]
    memory = {value.memory if isinstance(value, Slot) else None for value in values}
    if len(memory) > 1 or not all(isinstance(value, Linear) for value in linear):
        return None
    if len({value.symbols for value in linear if isinstance(value, Linear)}) > 1:
        return None
    numbers = [value.constant_part for value in linear if isinstance(value, Linear)]
    wave = None if None in numbers else fitted([number for number in numbers if number is not None], period)
    if wave is None:
        return None
    found = Linear(wave, linear[0].symbols if isinstance(linear[0], Linear) else ())
    return Slot(first.memory, found) if isinstance(first, Slot) else found


def _next(value: Value) -> Value:
    """Return a value of k as that of k + 1."""
    if isinstance(value, Slot):
        return value if value.index is None else Slot(value.memory, replace(value.index, wave=value.index.wave.next()))
    return replace(value, wave=value.wave.next()) if isinstance(value, Linear) else value


def _previous(value: Value | None) -> Value | None:
    """Return a value of k as that of k - 1."""
    if isinstance(value, Slot):
        return Slot(
            value.memory, None if value.index is None else replace(value.index, wave=value.index.wave.previous())
        )
    return replace(value, wave=value.wave.previous()) if isinstance(value, Linear) else value


def _at(value: Value | None, k: int) -> Value | None:
    """Return what a value is in iteration k."""
    if isinstance(value, Slot):
        return (
            value
            if value.index is None
            else Slot(value.memory, replace(value.index, wave=Wave((value.index.wave.at(k),))))
        )
    return replace(value, wave=Wave((value.wave.at(k),))) if isinstance(value, Linear) else value


def _of_first(event: Event) -> Event | None:
    """Return what an event is in iteration 0; None if it does not run."""
    when = [Linear(Wave((entry.wave.at(0),)), entry.symbols) for entry in event.when]
    if any(entry.constant is not None and entry.constant <= 0 for entry in when):
        return None
    bar, buf = (None if slot is None else Slot(slot.memory, _index_at(slot)) for slot in (event.bar, event.buf))
    parity = None if event.parity is None else Wave((event.parity.at(0),))
    return replace(event, bar=bar, buf=buf, parity=parity, when=tuple([entry for entry in when if entry.symbols]))


def _firsts(events: list[Event]) -> list[Event]:
    return [found for event in events for found in (_of_first(event),) if found is not None]


def _index_at(slot: Slot) -> Linear | None:
    return None if slot.index is None else Linear(Wave((slot.index.wave.at(0),)), slot.index.symbols)


def _same(one: Value | None, two: Value | None) -> bool:
    """Whether two values are known to be equal for every k."""
    if isinstance(one, Linear) and isinstance(two, Linear):
        apart = one.plus(two, -1)
        return apart.constant == 0
    if isinstance(one, Slot) and isinstance(two, Slot):
        return one.memory is two.memory and (one.index is two.index or _same(one.index, two.index))
    return one is not None and one == two


def _touches(event: Event) -> set[Memory]:
    return {slot.memory for slot in (event.bar, event.buf) if slot is not None}


def _belongs(op: str, kinds: set[str]) -> bool:
    """Whether an op without memory belongs to those kinds of accesses."""
    groups: Mapping[str, str] = {"bulk_": "tma_store", "mma_": "mma", "cp_async_": "cp_async"}
    return op == "proxy_fence" or any(op.startswith(start) and kind in kinds for start, kind in groups.items())
