"""Every order of events of a pipeline document at one trip count, read from docs/pipelines.md alone.

The search is plain: a state is where each role stands, what each barrier and buffer slot holds and which copies are
under way. Nothing here is shared with the verifier, and nothing is reduced but steps that change nothing.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

LIMIT = 2**20 - 1
READS = ("read", "mma", "tma_store")
WRITES = ("write", "tma_load", "dsmem_copy", "cp_async", "mma_write")
COPIES = ("tma_load", "dsmem_copy")
GROUPS = {"mma": "mma", "mma_write": "mma", "tma_store": "bulk", "cp_async": "cp_async"}
"""The accesses that run on until something waits for them, with what their commits and waits are called."""
LATER = (*COPIES, "mma_arrive", "cp_async_arrive")
"""Ops that are done at any later moment."""
MOST_TRIPS = 24


def explore(document: dict[str, Any], n: int, policy: str = "strict", states: int = 200_000) -> frozenset[str] | None:
    """What can go wrong with N = n: "deadlock", "race", "ub", "soft_ub", "tx_mismatch", "infeasible"; None: unfinished.

    "soft_ub" is the last row of "ub" in the table: waits that pass out of turn and arrivals in another phase. The
    search goes on behind it and behind races; behind the other "ub" nothing is defined.
    """
    kinds, finished = _search(document, n, policy, states, first=False)
    return frozenset(kinds) if finished else None


def safe(
    document: dict[str, Any], policy: str = "strict", most_trips: int | None = None, states: int = 200_000
) -> tuple[bool | None, int]:
    """Whether nothing goes wrong for any trip count up to a bound, and the last trip count that was looked at."""
    low = lower_bound(document)
    high = max(low, min(MOST_TRIPS, enough_trips(document)) if most_trips is None else most_trips)
    unfinished = None
    for n in range(low, high + 1):
        kinds, finished = _search(document, n, policy, states, first=True)
        if kinds:
            return False, n
        if not finished:
            unfinished = n
            break  # more trips have more states
    return (True, high) if unfinished is None else (None, unfinished)


def lower_bound(document: dict[str, Any]) -> int:
    """The least N that `trips` allows."""
    return max(0, int(re.fullmatch(r"N\s*>=\s*(\d+)", document.get("trips", "N >= 0")).group(1)))


def enough_trips(document: dict[str, Any]) -> int:
    """Two rounds of the deepest ring (parities repeat), and what offsets, phases, guards and trips shift."""
    things = [*document.get("barriers", {}).values(), *document.get("buffers", {}).values()]
    deepest = max([_slots(document, thing) for thing in things], default=1)
    ops = [op for role in document["roles"] for part in ("pre", "loop", "post") for op in role.get(part, [])]
    furthest = max([abs(op.get("off", 0)) for op in ops], default=0)
    phases = max([abs(op.get("ph", 0)) for op in ops], default=0)
    guards = max([sum(op.get("guard", {}).values()) for op in ops], default=0)
    trips = max([abs(_trip(role, 0)) for role in document["roles"]])
    reset = document.get("phase_reset_every", 0)
    return 2 * deepest + furthest + phases * deepest + guards + trips + reset + 3


def _slots(document: dict[str, Any], thing: dict[str, Any]) -> int:
    return thing.get("slots", document.get("stages", 0))


def _trip(role: dict[str, Any], n: int) -> int:
    return n + int(re.fullmatch(r"N\s*([+-]\s*\d+)?", role.get("trip", "N")).group(1) or 0)


def _infeasible(document: dict[str, Any]) -> bool:
    counts = [barrier["count"] for barrier in document.get("barriers", {}).values()]
    things = [*document.get("barriers", {}).values(), *document.get("buffers", {}).values()]
    return any(not 1 <= count <= LIMIT for count in counts) or any(_slots(document, thing) < 1 for thing in things)


def _search(document: dict[str, Any], n: int, policy: str, states: int, first: bool) -> tuple[set[str], bool]:
    """The kinds seen, and whether every state was; with `first` it stops at the first kind."""
    if _infeasible(document):
        return {"infeasible"}, True
    block = Block(document, n, policy == "strict")
    queue = deque([block.start])
    seen = {block.start}
    while queue and not (first and block.kinds):
        for state in block.following(queue.popleft()):
            if state not in seen:
                if len(seen) >= states:
                    return block.kinds, False
                seen.add(state)
                queue.append(state)
    return block.kinds, not queue


State = tuple[int, ...]


Open = tuple[int, int, int]
"""An access that no wait has covered: its slot, the index that it writes or -1, the arrivals that come behind it."""


@dataclass(slots=True)
class Step:
    """An op at one k, with everything looked up that does not depend on the state."""

    op: str
    role: int
    index: int = 0
    cell: int = 0
    """Where the barrier slot lies in the state: phase, pending arrivals, outstanding bytes."""
    phase: int = 0
    parity_only: bool = False
    """Whether counters start again, so that the phase is any one of this parity."""
    flip: int = 0
    arrivals: int = 1
    size: int = 0
    slot: int = 0
    """One bit for each slot of each buffer."""
    held: int = 0
    """Where the state says which index the slot holds."""
    fenceless: bool = False
    """Whether the buffer is in tensor memory or registers, where proxies play no part."""
    written: bool = True
    """Whether any op of the document writes the buffer."""
    later: int = 0
    """One bit for each op that is done later."""
    finishes: tuple[Open, ...] = ()
    """What a wait covers."""
    others: int = 0
    """The copies of other indices into the same slot."""
    fills: int = 0
    """The copies of the same index into the same slot."""
    after: tuple[tuple[int, int], ...] = ()
    """Of each role that writes the same index, where it stands when it has started its last write."""
    source: Step | None = None
    """Of a copy from another slot, how it reads it."""
    reading: int = 0
    """The copies that read the slot."""


class Block:
    """A thread block that runs a document with N = n."""

    def __init__(self, document: dict[str, Any], n: int, strict: bool) -> None:
        self.document, self.strict = document, strict
        self.kinds: set[str] = set()
        self.bar_cells: dict[str, int] = {}
        self.buf_slots: dict[str, int] = {}
        roles = document["roles"]
        start = [0] * len(roles)
        self.counts: dict[int, int] = {}
        for name, barrier in document.get("barriers", {}).items():
            self.bar_cells[name] = len(start)
            for _ in range(_slots(document, barrier)):
                self.counts[len(start)] = barrier["count"]
                start += [0, barrier["count"], 0]
        self.first_held = len(start)
        self.fenceless = 0
        for name, buffer in document.get("buffers", {}).items():
            self.buf_slots[name] = len(start) - self.first_held
            start += [-1] * _slots(document, buffer)
            if buffer.get("space", "shared") != "shared":
                self.fenceless |= (1 << len(start) - self.first_held) - (1 << self.buf_slots[name])
        self.flight, self.unfenced = len(start), len(start) + 1
        self.start: State = (*start, 0, 0)
        self.every_slot = len(start) - self.first_held
        self.written = {op["buf"] for role in roles for op in _ever_run(role) if op["op"] in WRITES}
        self.programs: list[list[Step]] = []
        self.open: list[list[tuple[Open, ...]]] = []
        self.later: list[Step] = []
        self.stores_open = False
        for number, role in enumerate(roles):
            self._add(number, _unrolled(role, n, document.get("phase_reset_every", LIMIT)))
        self._link()
        self._count_bytes()

    def _add(self, number: int, ops: Iterator[tuple[dict[str, Any], int, int]]) -> None:
        """The steps of a role; what it has open depends on where it stands, and on arrivals that are still to come."""
        steps: list[Step] = []
        opened: list[tuple[Open, ...]] = [()]
        groups: dict[str, list[list[Open]]] = {unit: [[]] for unit in GROUPS.values()}  # the last one is open
        for op, k, before in ops:
            step = self._step(number, op, k, before)
            if step is None:
                continue
            if step.op in LATER:
                step.later = 1 << len(self.later)
                self.later.append(step)
            unit, _, verb = step.op.rpartition("_")
            if unit in groups and verb == "commit":
                groups[unit].append([])
                continue
            if unit in groups and verb == "wait":
                kept = op.get("n", 0) + 1
                step.finishes = tuple(each for group in groups[unit][:-kept] for each in group)
                groups[unit] = groups[unit][-kept:]
                if not step.finishes:
                    continue
            if unit in groups and verb == "arrive":
                groups[unit] = [[(*each[:2], each[2] | step.later) for each in group] for group in groups[unit]]
            if step.op in GROUPS:
                groups[GROUPS[step.op]][-1].append((step.slot, step.index if step.op in WRITES else -1, 0))
            steps.append(step)
            opened.append(tuple(each for committed in groups.values() for group in committed for each in group))
        self.programs.append(steps)
        self.open.append(opened)
        self.stores_open |= any(groups["bulk"])

    def _step(self, number: int, op: dict[str, Any], k: int, before: int) -> Step | None:
        """`before` iterations came before the counter last started again; what a slot holds is told apart by both."""
        before = 0 if "idx_abs" in op else before  # which no counter has a part in
        step = Step(op["op"], number)
        step.index = index = op["idx_abs"] if "idx_abs" in op else k + op.get("off", 0)
        if index < 0 and step.op != "wait" and ("bar" in op or "buf" in op):
            return None
        if "bar" in op:
            slots = _slots(self.document, self.document["barriers"][op["bar"]])
            step.cell = self.bar_cells[op["bar"]] + 3 * (index % slots)
            step.phase = index // slots + op.get("ph", 0)
            if "phase_reset_every" in self.document:
                # pairs of rounds leave the parity as it is without a restart, and the phase can be told
                step.parity_only = self.document["phase_reset_every"] % (2 * slots) != 0
                step.phase = step.phase & 1 if step.parity_only else step.phase + before // slots
            step.flip = int(op.get("flip", False))
            step.arrivals = op.get("n", 1)
            step.size = op.get("bytes", 0)
        if "buf" in op:
            buffer = self.document["buffers"][op["buf"]]
            slots = _slots(self.document, buffer)
            place = self.buf_slots[op["buf"]] + index % slots
            step.index += before
            step.slot, step.held = 1 << place, self.first_held + place
            step.written = op["buf"] in self.written
            step.fenceless = buffer.get("space", "shared") != "shared"
            if step.op in COPIES:
                step.size = op.get("bytes", buffer["bytes"])
        if "src" in op:
            read = {key: value for key, value in op.items() if key in ("off", "idx_abs")}
            step.source = self._step(number, read | {"op": "mma", "buf": op["src"]}, k, before)
        return step

    def _link(self) -> None:
        """Tell each access what the other writes of its slot are."""
        copies = [step for step in self.later if step.op in COPIES]
        self.copies = sum(copy.later for copy in copies)
        last: dict[tuple[int, int], dict[int, int]] = defaultdict(dict)
        self.writers: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for role, program in enumerate(self.programs):
            for place, step in enumerate(program):
                if step.op in WRITES:
                    last[step.slot, step.index][role] = place + 1
                    self.writers[step.slot, step.index].append((role, place))
        accesses = [step for program in self.programs for step in program if step.slot]
        for step in accesses + [step.source for step in copies if step.source]:
            step.reading = sum(copy.later for copy in copies if copy.source and copy.source.slot == step.slot)
            same_slot = [copy for copy in copies if copy.slot == step.slot]
            step.fills = sum(copy.later for copy in same_slot if copy.index == step.index)
            step.others = sum(copy.later for copy in same_slot if copy.index != step.index)
            step.after = tuple(last[step.slot, step.index].items())

    def _count_bytes(self) -> None:
        """Expected minus delivered bytes of each phase that somebody waits for.

        An inverted parity is that of the phase before, which such a wait is taken to mean.
        """
        balance: dict[tuple[int, int], int] = defaultdict(int)
        steps = [step for program in self.programs for step in program]
        for step in steps:
            if step.op in ("expect", "arrive_tx"):
                balance[step.cell, step.phase] += step.size
            if step.op in COPIES:
                balance[step.cell, step.phase] -= step.size
        for step in steps:
            if step.op == "wait":
                phase = step.phase ^ step.flip if step.parity_only else step.phase - step.flip
                if balance[step.cell, phase]:
                    self.kinds.add("tx_mismatch")

    def following(self, state: State) -> Iterator[State]:
        """The states that one event leads to; what is wrong in this state or with these events joins the kinds."""
        flight = state[self.flight]
        running = happened = False
        for role, program in enumerate(self.programs):
            if state[role] == len(program):
                continue
            running = True
            step = program[state[role]]
            if step.op == "wait" and not self._passes(state, step):
                continue
            happened = True
            yield from self._after(state, step)
        for step in self.later if flight else ():
            if step.later & flight:
                happened = True
                yield from self._done(state, step)
        if running and not happened:
            self.kinds.add("deadlock")
        if not running and (flight & self.copies or (self.strict and self.stores_open)):
            self.kinds.add("ub")

    def _passes(self, state: State, step: Step) -> bool:
        phase = state[step.cell]
        passes = phase & 1 != step.phase & 1 ^ step.flip
        lapped = phase > step.phase + 1
        early = passes and phase <= step.phase
        if not step.flip and not step.parity_only and (lapped or early):
            self.kinds.add("soft_ub")
        return passes

    def _after(self, state: State, step: Step) -> Iterator[State]:
        new = list(state)
        new[step.role] += 1
        if step.op in READS:
            self._read(new, step)
        elif step.op in WRITES:
            if step.source:
                self._read(new, step.source)
            self._write(new, step)
        elif step.op == "proxy_fence":
            new[self.unfenced] = 0
        elif step.op in ("expect", "arrive_tx") and not self._raised(new, step, step.size):
            return
        elif step.op in LATER:
            new[self.flight] |= step.later
        self._finish(new, step.finishes)
        if step.op not in ("arrive", "arrive_tx") or self._arrived(new, step):
            yield tuple(new)

    def _done(self, state: State, step: Step) -> Iterator[State]:
        """A copy delivers its bytes, or an arrival comes that something asynchronous was behind."""
        new = list(state)
        covered = [each for each in self.open[step.role][new[step.role]] if each[2] & step.later]
        self._finish(new, covered)
        new[self.flight] -= step.later
        if self._raised(new, step, -step.size) if step.op in COPIES else self._arrived(new, step):
            yield tuple(new)

    def _finish(self, new: list[int], accesses: Sequence[Open]) -> None:
        """The last part of a cp_async, which writes generically, is written when it is waited for."""
        for slot, index, arrivals in accesses:
            if index >= 0 and self._runs(new, arrivals):
                new[self.unfenced] |= slot & ~self.fenceless

    def _runs(self, new: list[int], arrivals: int) -> bool:
        """Whether an access still runs, of which no wait has said that it does not: no arrival behind it has come."""
        return new[self.flight] & arrivals == arrivals

    def _arrived(self, new: list[int], step: Step) -> bool:
        """Whether anything is defined behind an arrival."""
        self._attribute(new, step)
        if new[step.cell + 1] < step.arrivals:
            self.kinds.add("ub")
            return False
        new[step.cell + 1] -= step.arrivals
        self._complete(new, step.cell)
        return True

    def _raised(self, new: list[int], step: Step, size: int) -> bool:
        """Change the outstanding bytes; whether anything is defined from there on."""
        self._attribute(new, step)
        new[step.cell + 2] += size
        if abs(new[step.cell + 2]) > LIMIT:
            self.kinds.add("ub")
            return False
        self._complete(new, step.cell)
        return True

    def _attribute(self, new: list[int], step: Step) -> None:
        if new[step.cell] & 1 != step.phase & 1 or (not step.parity_only and new[step.cell] != step.phase):
            self.kinds.add("soft_ub")

    def _complete(self, new: list[int], cell: int) -> None:
        if new[cell + 1] == new[cell + 2] == 0:
            new[cell] += 1
            new[cell + 1] = self.counts[cell]

    def _read(self, new: list[int], step: Step) -> None:
        """A slot's bit in `unfenced` is a write since the last fence, `every_slot` bits higher a generic read."""
        if step.written and (
            new[step.held] != step.index
            or new[self.flight] & step.fills
            or any(new[role] < place for role, place in step.after)
            or any(index == step.index for _, index in self._accesses(new, step))
        ):
            self.kinds.add("race")
        if step.fenceless:
            return
        if step.op == "read":
            if self.strict:
                new[self.unfenced] |= step.slot << self.every_slot
        elif new[self.unfenced] & step.slot:
            self.kinds.add("race")

    def _accesses(self, new: list[int], step: Step) -> Iterator[tuple[int, int]]:
        """Of each access that runs in the slot, its role and the index that it writes, or -1."""
        for role, opened in enumerate(self.open):
            for slot, index, arrivals in opened[new[role] - (role == step.role)]:
                if slot == step.slot and self._runs(new, arrivals):
                    yield role, index

    def _write(self, new: list[int], step: Step) -> None:
        for role, index in self._accesses(new, step):
            follows = step.op == "mma_write" and role == step.role and index >= 0
            if not follows and (index != step.index or step.fenceless):
                self.kinds.add("race")
        if new[self.flight] & (step.others | step.reading):
            self.kinds.add("race")
        if new[step.held] not in (step.index, discarded(step.index)):
            mine = step.role, new[step.role] - 1
            others = [each for each in self.writers[step.slot, step.index] if each != mine]
            again = any(new[role] > place for role, place in others)
            new[step.held] = discarded(step.index) if again else step.index
        if step.fenceless:
            return
        if step.op not in COPIES:
            new[self.unfenced] |= step.slot
            return
        if new[self.unfenced] & (step.slot | step.slot << self.every_slot):
            self.kinds.add("race")
        new[self.flight] |= step.later


def discarded(index: int) -> int:
    """How a state says that a slot holds an index of which something was overwritten."""
    return -2 - index


def _ever_run(role: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The ops that run for some N: those before the loop have one index, those in it come to every index."""
    for part in ("pre", "loop", "post"):
        for op in role.get(part, []):
            if op.get("idx_abs", op.get("off", 0) if part == "pre" else 0) >= 0:
                yield op


def _unrolled(role: dict[str, Any], n: int, reset: int) -> Iterator[tuple[dict[str, Any], int, int]]:
    """The ops of a role in order, each with the k that its index counts from and the iterations before that count."""
    trip = max(0, _trip(role, n))
    yield from ((op, 0, 0) for op in role.get("pre", []))
    for k in range(trip):
        for op in role.get("loop", []):
            guard = op.get("guard", {})
            if guard.get("from", 0) <= k < trip - guard.get("until", 0):
                yield op, k % reset, k - k % reset
    yield from ((op, trip, 0) for op in role.get("post", []))
