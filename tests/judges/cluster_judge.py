"""Every order of events of a cluster at one trip count, played on the document that states the cluster.

Read from docs/pipelines.md and the PTX ISA alone: every CTA runs the roles on shared memory of its own; one multicast
instruction starts in all its destinations at once and ends in each at its own time; an arrival is sent to one CTA after
the other; a named barrier counts the threads that have come and lets them go when all have. Nothing here knows of
documents without clusters, of their judge or of the verifier.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

LIMIT = 2**20 - 1
WARP = 32
PARTS = ("pre", "loop", "post")
COPIES = ("tma_load", "dsmem_copy")
WRITES = (*COPIES, "write")
GROUPS = {"mma": "mma", "tma_store": "bulk"}
"""The reads that run on until a wait covers them, with what their commits and waits are called."""
KNOWN = {"wait", "arrive", "expect", "arrive_tx", "mma_arrive", "read", "proxy_fence", "bar_sync", "bar_arrive"}
KNOWN |= {*WRITES, *GROUPS, *(f"{unit}_{verb}" for unit in GROUPS.values() for verb in ("commit", "wait"))}


def explore(document: dict[str, Any], n: int, states: int = 50_000) -> frozenset[str] | None:
    """What can go wrong with N = n, named as in ``pipeline_judge.explore``; None: more states, or unknown ops."""
    if any(op["op"] not in KNOWN for role in document["roles"] for part in PARTS for op in role.get(part, [])):
        return None
    cluster = Cluster(document, n)
    seen, queue = {cluster.start}, deque([cluster.start])
    while queue:
        for state in cluster.following(queue.popleft()):
            if state not in seen:
                if len(seen) >= states:
                    return None
                seen.add(state)
                queue.append(state)
    return frozenset(cluster.kinds)


def safe(document: dict[str, Any], most: int, states: int = 50_000) -> bool | None:
    """Whether nothing goes wrong for any trip count up to ``most``."""
    for n in range(most + 1):
        kinds = explore(document, n, states)
        if kinds is None or kinds:
            return None if kinds is None else False
    return True


State = tuple[int, ...]


@dataclass(eq=False)
class Step:
    """What a thread of a role does next. ``cells`` are places in the state."""

    what: str
    place: int
    """Where the state says how far this role is."""
    bar: int = 0
    phase: int = 0
    flip: bool = False
    arrivals: int = 0
    size: int = 0
    slot: int = 0
    index: int = 0
    total: int = 0
    """Threads that meet at a named barrier."""
    bit: int = 0
    """Of something that ends later: the copy, the read by an mma or a store, the arrival."""
    parts: list[Step] = field(default_factory=list)
    """One copy for each destination."""
    source: Step | None = None
    """What a copy reads in the CTA that starts it."""
    covers: int = 0
    """The bits of the reads that have ended when this has happened."""


class Cluster:
    """CTAs that run a document with N = n."""

    def __init__(self, document: dict[str, Any], n: int) -> None:
        self.document, self.kinds = document, set[str]()
        self.size = document.get("cluster", 1)
        start: list[int] = []
        self.cells: dict[tuple[Any, ...], int] = {}
        for cta in range(self.size):
            for number in range(len(document["roles"])):
                self.cells["role", cta, number] = self._cell(start, 0)
            for name, barrier in document.get("barriers", {}).items():
                for slot in range(self._slots(barrier)):
                    self.cells["bar", cta, name, slot] = self._cell(start, 0, barrier["count"], 0)
            for name, buffer in document.get("buffers", {}).items():
                for slot in range(self._slots(buffer)):  # index, writes done, generic write and read since a fence
                    self.cells["buf", cta, name, slot] = self._cell(start, -1, 0, 0, 0)
            for number in range(16):
                self.cells["named", cta, number] = self._cell(start, 0, 0)
        self.copying, self.running, self.sending = (self._cell(start, 0) for _ in range(3))
        self.start: State = tuple(start)
        self.counts = {at: start[at + 1] for (kind, *_), at in self.cells.items() if kind == "bar"}
        self.slots = [at for (kind, *_), at in self.cells.items() if kind == "buf"]
        self.later: list[Step] = []
        self.reads: list[Step] = []
        self.stored = 0  # bits of the stores that nothing waits for
        self.totals: Counter[tuple[int, int]] = Counter()
        self.written = {self._buffer_of(cta, op["buf"]) for cta, op in self._ever() if op["op"] in WRITES}
        self.programs = [
            list(self._program(cta, number, role, n))
            for cta in range(self.size)
            for number, role in enumerate(document["roles"])
            if cta in role.get("ctas", range(self.size))
        ]
        self.ends = {program[0].place: len(program) for program in self.programs if program}
        self._count_bytes()

    def _cell(self, start: list[int], *values: int) -> int:
        start += values
        return len(start) - len(values)

    def _slots(self, ring: dict[str, Any]) -> int:
        return ring.get("slots", self.document["stages"])

    def _buffer_of(self, cta: int, name: str) -> int:
        return self.cells["buf", cta, name, 0]

    def _ever(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Every access and the CTA whose slot it means."""
        for cta in range(self.size):
            for role in self.document["roles"]:
                if cta in role.get("ctas", range(self.size)):
                    for op in [op for part in PARTS for op in role.get(part, []) if "buf" in op]:
                        yield from ((there, op) for there in self._destinations(op, cta))

    def _destinations(self, op: dict[str, Any], cta: int) -> list[int]:
        """The CTAs that an op of a CTA acts on."""
        given = op.get("to", op.get("multicast", [cta]))
        if given == "all":
            return list(range(self.size))
        if isinstance(given, int):
            return [given]
        return given[cta] if isinstance(given[0], list) else given

    def _program(self, cta: int, number: int, role: dict[str, Any], n: int) -> Iterator[Step]:
        place = self.cells["role", cta, number]
        groups = {unit: [0] for unit in GROUPS.values()}  # bits of the reads of each group; the last one is open
        waited = 0
        met: Counter[int] = Counter()
        for op, k in unrolled(role, n):
            kind = op["op"]
            unit, _, verb = kind.rpartition("_")
            if verb == "commit":
                groups[unit].append(0)
            elif unit in groups and verb == "wait":
                kept = len(groups[unit]) - 1 - op.get("n", 0)
                covers = sum(groups[unit][: max(0, kept)])
                waited |= covers
                yield Step("cover", place, covers=covers)
            elif kind == "proxy_fence":
                yield Step("fence", place)
            elif kind.startswith("bar_"):
                nth, met[op["id"]] = met[op["id"]], met[op["id"]] + 1
                cell, threads = self.cells["named", cta, op["id"]], WARP * role["warps"]
                yield Step("come", place, cell, nth, arrivals=threads, total=self._threads(cta, op))
                if kind == "bar_sync":
                    yield Step("go", place, cell, nth)
            else:
                yield from self._access(cta, place, op, k, groups)
        self.stored |= sum(groups["bulk"]) & ~waited

    def _threads(self, cta: int, op: dict[str, Any]) -> int:
        meeting = [
            role["warps"]
            for role in self.document["roles"]
            if cta in role.get("ctas", range(self.size))
            and any(other.get("id") == op["id"] for part in PARTS for other in role.get(part, []))
        ]
        return op.get("threads", WARP * sum(meeting))

    def _access(self, cta: int, place: int, op: dict[str, Any], k: int, groups: dict[str, list[int]]) -> Iterator[Step]:
        index, kind = op.get("idx_abs", k + op.get("off", 0)), op["op"]
        if index < 0 and kind != "wait":
            return
        there = [self._place(Step(kind, place), op, index, cta) for cta in self._destinations(op, cta)]
        if kind in COPIES:
            for copy in there:
                copy.bit = 1 << len(self.later)
                self.later.append(copy)
                if kind == "dsmem_copy":
                    copy.source = self._place(Step("mma", place), {"buf": op["src"]}, index, cta)
            if kind == "tma_load":
                yield Step("start", place, parts=there)
            else:  # an instruction for each destination
                yield from [Step("start", place, parts=[copy]) for copy in there]
        elif kind == "mma_arrive":
            for signal in there:
                signal.bit, signal.covers = 1 << len(self.later), sum(groups["mma"])
                self.later.append(signal)
            yield Step("send", place, parts=there)
        else:
            if kind in GROUPS:
                (read,) = there
                read.bit = 1 << len(self.reads)
                self.reads.append(read)
                groups[GROUPS[kind]][-1] |= read.bit
            yield from there

    def _place(self, step: Step, op: dict[str, Any], index: int, cta: int) -> Step:
        if "bar" in op:
            slots = self._slots(self.document["barriers"][op["bar"]])
            step.bar = self.cells["bar", cta, op["bar"], index % slots]
            step.phase, step.flip = index // slots + op.get("ph", 0), op.get("flip", False)
            step.arrivals = {"arrive": op.get("n", 1), "arrive_tx": 1, "mma_arrive": 1}.get(step.what, 0)
            step.size = op.get("bytes", 0)
        if "buf" in op:
            buffer = self.document["buffers"][op["buf"]]
            step.slot = self.cells["buf", cta, op["buf"], index % self._slots(buffer)]
            step.index, step.total = index, self._buffer_of(cta, op["buf"]) in self.written
            if step.what in WRITES:
                self.totals[step.slot, index] += 1
                step.size = op.get("bytes", buffer.get("bytes", 0))
        return step

    def _count_bytes(self) -> None:
        """For a phase that somebody waits for, the bytes that CTAs expect are those that copies of all CTAs deliver."""
        steps = [each for program in self.programs for step in program for each in step.parts or [step]]
        owed: Counter[tuple[int, int]] = Counter()
        for step in steps:
            owed[step.bar, step.phase] += step.size * {
                "expect": 1,
                "arrive_tx": 1,
                "tma_load": -1,
                "dsmem_copy": -1,
            }.get(step.what, 0)
        if any(owed[step.bar, step.phase - step.flip] for step in steps if step.what == "wait"):
            self.kinds.add("tx_mismatch")

    def following(self, state: State) -> Iterator[State]:
        """The states one event later."""
        waiting = happened = False
        for program in self.programs:
            if program and state[program[0].place] < len(program):
                waiting = True
                step = program[state[program[0].place]]
                if step.what in ("wait", "go") and not self._passes(state, step):
                    continue
                happened = True
                new = list(state)
                new[step.place] += 1
                if self._happens(new, step):
                    yield tuple(new)
        for step in self.later:
            cell = self.copying if step.what in COPIES else self.sending
            if state[cell] & step.bit:
                happened = True
                new = list(state)
                new[cell] -= step.bit
                if self._ends(new, step):
                    yield tuple(new)
        if waiting and not happened:
            self.kinds.add("deadlock")
        if not waiting and (state[self.copying] or self.stored):
            self.kinds.add("ub")

    def _passes(self, state: State, step: Step) -> bool:
        phase = state[step.bar]
        if step.what == "go":
            return phase > step.phase
        passes = phase % 2 != (step.phase + step.flip) % 2
        if not step.flip and (phase > step.phase + 1 or (passes and phase <= step.phase)):
            self.kinds.add("soft_ub")
        return passes

    def _happens(self, new: list[int], step: Step) -> bool:
        """Do what a role does next; whether anything is defined behind it."""
        if step.what == "start":
            for copy in step.parts:
                if copy.source:
                    self._reads(new, copy.source)
                self._writes(new, copy)
                new[self.copying] |= copy.bit
        elif step.what == "send":
            new[self.sending] |= sum(signal.bit for signal in step.parts)
        elif step.what == "cover":
            new[self.running] &= ~step.covers
        elif step.what == "fence":
            for slot in self.slots:
                new[slot + 2] = new[slot + 3] = 0
        elif step.what == "come":
            return self._comes(new, step)
        elif step.what == "write":
            self._writes(new, step)
        elif step.what in ("read", *GROUPS):
            self._reads(new, step)
        elif step.what in ("arrive", "expect", "arrive_tx"):
            return self._adds(new, step, 0, step.size) and (
                not step.arrivals or self._adds(new, step, step.arrivals, 0)
            )
        return True

    def _ends(self, new: list[int], step: Step) -> bool:
        if step.what == "mma_arrive":
            new[self.running] &= ~step.covers
            return self._adds(new, step, 1, 0)
        if new[step.slot] == step.index:
            new[step.slot + 1] += 1
        return self._adds(new, step, 0, -step.size)

    def _comes(self, new: list[int], step: Step) -> bool:
        if new[step.bar] != step.phase:
            self.kinds.add("soft_ub")
        new[step.bar + 1] += step.arrivals
        if new[step.bar + 1] > step.total:
            self.kinds.add("ub")
            return False
        if new[step.bar + 1] == step.total:
            new[step.bar] += 1
            new[step.bar + 1] = 0
        return True

    def _adds(self, new: list[int], step: Step, arrivals: int, size: int) -> bool:
        if not arrivals and not size and step.what == "arrive":
            return True
        if new[step.bar] != step.phase:
            self.kinds.add("soft_ub")
        new[step.bar + 1] -= arrivals
        new[step.bar + 2] += size
        if new[step.bar + 1] < 0 or abs(new[step.bar + 2]) > LIMIT:
            self.kinds.add("ub")
            return False
        if new[step.bar + 1] == new[step.bar + 2] == 0:
            new[step.bar] += 1
            new[step.bar + 1] = self.counts[step.bar]
        return True

    def _writes(self, new: list[int], step: Step) -> None:
        read = any(new[self.running] & one.bit for one in self.reads if one.slot == step.slot)
        others = [copy for copy in self.later if copy.what in COPIES and copy.slot == step.slot]
        copied = [copy.bit for copy in self.later if copy.source and copy.source.slot == step.slot]
        if any(new[self.copying] & bit for bit in copied):
            self.kinds.add("race")
        if read or any(new[self.copying] & copy.bit for copy in others if copy.index != step.index):
            self.kinds.add("race")
        if new[step.slot] != step.index:
            new[step.slot], new[step.slot + 1] = step.index, 0
        if step.what == "write":
            new[step.slot + 1] += 1
            new[step.slot + 2] = 1
        elif new[step.slot + 2] or new[step.slot + 3]:
            self.kinds.add("race")

    def _reads(self, new: list[int], step: Step) -> None:
        whole = new[step.slot + 1] >= self.totals[step.slot, step.index]
        if step.total and (new[step.slot] != step.index or not whole):
            self.kinds.add("race")
        if step.what == "read":
            new[step.slot + 3] = 1
            return
        if new[step.slot + 2]:
            self.kinds.add("race")
        new[self.running] |= step.bit


def unrolled(role: dict[str, Any], n: int) -> Iterator[tuple[dict[str, Any], int]]:
    trip = max(0, n + int(role.get("trip", "N").replace(" ", "")[1:] or 0))
    yield from ((op, 0) for op in role.get("pre", []))
    for k in range(trip):
        for op in role.get("loop", []):
            guard = op.get("guard", {})
            if guard.get("from", 0) <= k < trip - guard.get("until", 0):
                yield op, k
    yield from ((op, trip) for op in role.get("post", []))
