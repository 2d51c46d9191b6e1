"""One thread of a kernel against the ops of its role: the same, in the same order, with the same operands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutalg.codegen.pipeline.program import WARP
from layoutalg.codegen.pipeline.steps import Step
from layoutalg.codegen.pipeline.thread import Event
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.pipeline.ops import COPIES, GENERIC, GROUP_WAITS, GROUPS
from layoutalg.proofs.pipeline.resources import WARPGROUP

if TYPE_CHECKING:
    from layoutalg.codegen.pipeline.reread import Comparison

LOADS, STORES = ("expect", "arrive_tx", *COPIES), ("tma_store", *GROUPS["tma_store"])
ASYNC = (*GROUPS["cp_async"], "cp_async_arrive")
ALL = ("wait", "mma", *GROUPS["mma"])
RUNS = (*COPIES, "tma_store", "mma")
COMPARED = ("arrive", *ALL, *LOADS, *STORES, *ASYNC)


class DifferenceError(Exception):
    def __init__(self, rule: str, reason: str, **witness: object) -> None:
        self.broken = Broken(rule, reason, witness)


At = tuple[int, int]
"""A thread: warp and lane."""
Mark = tuple[int, int, int]
"""A step that a thread does, after so many barriers of threads, and of its warp."""


@dataclass(slots=True)
class Done:
    """What a thread did: its part of the steps, counts of its arrivals, barriers of threads."""

    marks: list[Mark] = field(default_factory=list)
    arrivals: dict[int, int] = field(default_factory=dict)
    bars: list[tuple[int, int]] = field(default_factory=list)
    performed: dict[int, Mark] = field(default_factory=dict)  # the first mark of each

    def mark(self, place: int, warp_bars: int) -> None:
        """Note a step."""
        found = (place, len(self.bars), warp_bars)
        self.marks.append(found)
        self.performed.setdefault(place, found)

    def latest(self, wanted: list[Step]) -> dict[str, list[Mark]]:
        """The marks of each kind of op, and of each kind and slot, by step; each with the most barriers up to it."""
        found: dict[str, list[Mark]] = {}
        for place, bars, warp_bars in sorted(self.marks):
            step = wanted[place]
            for key in (step.op.op, f"{step.op.op} {step.op.buf}[{step.buf}]"):
                marks = found.setdefault(key, [])
                most = marks[-1] if marks else (0, 0, 0)
                marks.append((place, max(bars, most[1]), max(warp_bars, most[2])))
        return found


class Walk:
    """One thread's events against the steps of its role."""

    def __init__(self, all_of: Comparison, wanted: list[Step], at: At, given: tuple[Event, ...], warps: int) -> None:
        self.all, self.wanted, self.at, self.given, self.warps = all_of, wanted, at, given, warps
        kinds = {event.kind for event in given}
        self.kinds = {kind for group in (LOADS, STORES) if kinds & set(group) for kind in group}
        self.kinds |= set(ASYNC) if kinds & {"cp_async", *ASYNC} else set()
        if kinds & set(COMPARED) or any(event.kind in GENERIC and all_of.slot_at(event.address) for event in given):
            self.kinds |= {*ALL, "proxy_fence"}
        bars = [self.all.barriers.get(event.address, ("", 0))[0] for event in given if event.kind == "arrive"]
        named = {step.op.bar for step in wanted if step.op.op == "arrive"}
        self.arrives = set(bars) if named >= set(bars) else named | set(bars)
        self.done, self.place, self.accessed, self.warp_bars, self.fenced = Done(), 0, 0, 0, False
        self.run_of: dict[int, set[int]] = {}  # the open run of copies or multiplies: addresses of each step
        self.read_of: dict[int, list[tuple[int, int]]] = {}  # of copies from shared memory: sources and bytes

    def performs(self, step: Step) -> bool:
        """Whether this thread has to do the step."""
        return step.op.bar in self.arrives if step.op.op == "arrive" else step.op.op in self.kinds

    def run(self) -> Done:
        """Compare; return what the thread did."""
        for event in self.given:
            if event.kind == "bar":
                whole = event.value in (WARP * self.warps, self.all.kernel.threads)
                if not whole and event.address not in self.all.named:
                    because = "a barrier of threads is for other than all threads of the role or the block"
                    raise self.differs(because, None, event, "EMIT_BAR")
                self.done.bars.append((event.address, event.value))
            elif event.kind == "bar_arrive":
                raise self.differs("an arrival at a barrier that the document does not name", None, event, "EMIT_BAR")
            elif event.kind == "warp_bar":
                self.warp_bars += 1
            elif event.kind == "mma_fence":
                self.fenced = True
            elif event.kind in GENERIC:
                self.access(event)
            elif event.kind == "proxy_fence":
                self.close()
                place, step = self.next()
                if step and step.op.op == "proxy_fence":
                    self.mark(place)
            elif event.kind in RUNS:
                self.member(event)
            elif event.kind in COMPARED:
                self.close()
                self.compare(event)
        self.close()
        place, step = self.next()
        if step:
            raise self.differs("an op is missing", step, None)
        return self.done

    def differs(
        self, because: str, step: Step | None, found: Event | None, rule: str = "EMIT_ORDER"
    ) -> DifferenceError:
        """The refusal for this thread; without a step, after its last one."""
        last = self.wanted[self.place - 1] if self.place else None
        expected = step or (f"nothing after {last.place}, k = {last.k}" if last else "nothing")
        return self.all.differs(because, self.at, expected, found, rule, step)

    def next(self) -> tuple[int, Step | None]:
        """The next step that this thread has to do, and its place."""
        for place in range(self.place, len(self.wanted)):
            if self.performs(self.wanted[place]):
                return place, self.wanted[place]
        return len(self.wanted), None

    def mark(self, place: int) -> None:
        """The thread has done a step."""
        self.done.mark(place, self.warp_bars)
        self.place = max(self.place, place + 1)

    def compare(self, event: Event) -> None:
        """An op on a barrier or on groups."""
        place, step = self.next()
        bar = self.all.barriers.get(event.address, ("", 0))
        if step is None or event.kind != step.op.op or (step.op.bar and bar != (step.op.bar, step.bar)):
            left_out = (one for one in self.wanted[self.place : place] if one.op.op == event.kind)
            raise self.differs("another op than the document's", next(left_out, step), event)
        operand = {"wait": step.parity, "expect": step.op.bytes or 0, "arrive_tx": step.op.bytes or 0}
        operand |= dict.fromkeys(GROUP_WAITS, step.op.n)
        if event.value != operand.get(event.kind, event.value):
            raise self.differs("another operand than the document's", step, event)
        if event.kind == "arrive":
            self.done.arrivals[place] = event.value
        self.mark(place)
        self.warp_bars += event.kind == "mma_wait"  # all lanes of the warp pass it together

    def member(self, event: Event) -> None:
        """A copy or a multiply: belongs to one of the like ops that follow each other here."""
        if self.run_of and self.wanted[next(iter(self.run_of))].op.op != event.kind:
            self.close()
        if not self.run_of:
            place, expected = self.next()
            while place < len(self.wanted) and self.wanted[place].op.op == event.kind:
                self.run_of[place] = set()
                place += 1
            if not self.run_of:
                raise self.differs("another op than the document's", expected, event)
            if event.kind == "mma" and not self.fenced:
                step = self.wanted[min(self.run_of)]
                raise self.differs("no wgmma.fence before the multiply", step, event, "EMIT_FENCE")
        bar = self.all.barriers.get(event.barrier)
        for address in event.numbers if event.kind == "mma" else (event.address,):
            slot = self.all.slot_at(address or 0)
            for place, addresses in self.run_of.items():
                step = self.wanted[place]
                here = (step.op.buf, step.buf)
                if event.kind in COPIES and bar != (step.op.bar, step.bar):
                    continue
                if slot is None and event.kind != "mma" and here not in self.all.places:
                    self.found(step, step.op.buf, step.buf, address or 0)
                    slot = here
                if slot == here and (event.kind == "mma" or address not in addresses):
                    if step.op.src:
                        self.reads(place, event)
                    addresses.add(address or 0)
                    break
            else:
                raise self.differs("another slot or barrier than the document's", self.wanted[min(self.run_of)], event)

    def found(self, step: Step, buffer: str, slot: int, address: int) -> None:
        """Its first copy tells where a slot is."""
        size = dict(self.all.pipeline.buffers)[buffer].bytes
        self.all.add((buffer, slot), address, max(1, size or step.op.bytes or 0))

    def reads(self, place: int, event: Event) -> None:
        """A copy reads the slot that its op names."""
        step, source = self.wanted[place], event.numbers[0] or 0
        named = step.op.src, step.src
        if named not in self.all.places and self.all.slot_at(source) is None:
            self.found(step, *named, source)
        for first, slot in ((source, named), (event.address, (step.op.buf, step.buf))):
            if {self.all.slot_at(first), self.all.slot_at(first + event.value - 1)} != {slot}:
                raise self.differs("it copies beyond the document's slots", step, event, "EMIT_SLOT")
        self.read_of.setdefault(place, []).append((source - self.all.places[named], event.value))

    def close(self) -> None:
        """A run of copies or multiplies ends: each of its ops had some, as many and at the same places as before."""
        for place, addresses in self.run_of.items():
            step = self.wanted[place]
            if not addresses:
                raise self.differs("an op is missing", step, None)
            start = self.all.places[(step.op.buf, step.buf)]
            shape = tuple(sorted([address - start for address in addresses]))
            pieces = sorted(self.read_of.pop(place, ()))
            if step.op.src and sum([many for _, many in pieces]) != self.all.pipeline.size(step.op):
                raise self.differs("it copies other than the document's bytes", step, None)
            shape += tuple([each for piece in pieces for each in piece])
            known = self.all.shapes.setdefault((step.place, self.at[0] // WARPGROUP), shape)
            if shape != known:
                because = f"{step.op.op} at bytes {shape} of the slot, elsewhere at {known}"
                raise self.differs(because, step, None, "EMIT_SLOT")
            self.mark(place)
        self.fenced = self.fenced and not self.run_of
        self.run_of = {}

    def access(self, event: Event) -> None:
        """An ordinary access: only where the document reads or writes that slot."""
        slot = self.all.slot_at(event.address)
        if slot is None:
            return None
        self.close()
        end, expected = self.next()
        start = max(self.accessed, self.place)
        if self.done.marks and self.done.marks[-1][1] == len(self.done.bars):
            while start > self.place and self.wanted[start - 1].k == self.wanted[start].k:
                start -= 1  # a thread may mix the accesses of an iteration
        for place in range(start, end):
            step = self.wanted[place]
            if step.op.op == event.kind and slot == (step.op.buf, step.buf):
                if self.all.slot_at(event.address + max(event.value, 1) - 1) != slot:
                    raise self.differs("an access beyond the end of the slot", step, event, "EMIT_ACCESS")
                self.accessed = place
                return self.done.mark(place, self.warp_bars)
        raise self.differs("an access that the document does not have here", expected, event, "EMIT_ACCESS")
