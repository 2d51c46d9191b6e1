"""A pipeline at one N as a machine: its states, what can happen next, what is then wrong.

The states are those of docs/pipelines.md. An asynchronous read lasts until a wait covers it, the latest moment it can
end, and a copy may end at any moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from layoutalg.proofs.pipeline.document import Pipeline
from layoutalg.proofs.pipeline.expansion import expanded
from layoutalg.proofs.pipeline.ops import (
    COPIES,
    GENERIC,
    GROUP_WAITS,
    GROUPS,
    MOST_BYTES,
    OPS,
    PARTS,
    READS,
    SIGNALS,
    WRITES,
    Op,
)


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """An op at one iteration, with its slots and the phase it names; one object in all states of its machine.

    ``number`` is its place in its role, ``covers`` how many asynchronous accesses of its kind have finished with it.
    """

    op: Op
    role: int
    k: int
    number: int
    bar: int = -1
    phase: int = 0
    buf: int = -1
    index: int = 0
    bytes: int = 0
    covers: int = 0
    src: int = -1


@dataclass(frozen=True, slots=True)
class Violation:
    """What went wrong, at which task.

    ``soft`` violations are looked for only where there are no others: of what the document names, and at the end.
    """

    kind: str
    what: str
    task: Task
    soft: bool = False


_PLACES = {kind: place for place, kind in enumerate(GROUPS)}
Barrier: TypeAlias = "tuple[int, int, int]"
"""Phase, pending arrivals, outstanding bytes."""
Slot: TypeAlias = "tuple[int, int, int, int, bool, bool, int]"
"""Index (-1: nothing), writes started, writes done, asynchronous reads; generic writes, generic reads with no fence;
the role whose ``mma_write`` was the last write, or -1."""
Finished: TypeAlias = "tuple[int, ...]"
"""Per kind in ``GROUPS``: how many accesses of a role have finished, in program order."""
State: TypeAlias = (
    "tuple[tuple[int, ...], tuple[Barrier, ...], tuple[Slot, ...], tuple[Finished, ...], tuple[Task, ...]]"
)
"""Where each role stands, barriers, slots, what has finished, and the copies and signals that are under way."""
Event: TypeAlias = "tuple[int, Task]"
"""A role and its task, or -1 and the task of a copy or a signal that ends."""


class Machine:
    """A pipeline at one N; with ``soft``, soft violations count."""

    def __init__(self, pipeline: Pipeline, trips: int, policy: str, soft: bool = False) -> None:
        pipeline = expanded(pipeline)
        self.pipeline, self.trips, self.policy, self.soft = pipeline, trips, policy, soft
        self.barriers = [(name, slot) for name, ring in pipeline.barriers for slot in range(ring.slots)]
        self.counts = [ring.count for _, ring in pipeline.barriers for _ in range(ring.slots)]
        self.slots = [(name, slot) for name, ring in pipeline.buffers for slot in range(ring.slots)]
        self.rings = pipeline.rings
        self._bar = {key: place for place, key in enumerate(self.barriers)}
        self._buf = {key: place for place, key in enumerate(self.slots)}
        self.running: list[dict[str, list[Task]]] = []  # the asynchronous accesses of each role, by kind
        self.tasks = [self._tasks(number) for number in range(len(pipeline.roles))]
        self._ends = tuple([len(tasks) for tasks in self.tasks])
        self.writes: dict[tuple[int, int], int] = {}
        for task in [task for tasks in self.tasks for task in tasks]:
            if task.op.op in WRITES:
                key = task.buf, task.index
                self.writes[key] = self.writes.get(key, 0) + 1
        ops = [op for role in pipeline.roles for part, _, op in role.ops() if not op.is_left_out(part)]
        written = {op.buf for op in ops if op.op in WRITES}
        self.written = [name in written for name, _ in self.slots]
        self.unfenced = [name in pipeline.unfenced for name, _ in self.slots]

    def _tasks(self, number: int) -> list[Task]:
        role = self.pipeline.roles[number]
        trip = max(0, self.trips + role.trip)
        found: list[Task] = []
        running: dict[str, list[Task]] = {kind: [] for kind in GROUPS}
        closed: dict[str, list[int]] = {kind: [0] for kind in GROUPS}  # how many were in groups after each commit
        for part in PARTS:
            ks = {"pre": range(1), "loop": range(trip), "post": range(trip, trip + 1)}[part]
            for _, op, k, counter in role.running(part, ks, trip, self.pipeline.reset):
                kind, covers = OPS[op.op], 0
                if kind.does == "commit":
                    closed[kind.group].append(len(running[kind.group]))
                    continue  # what it does is in ``covers``
                if kind.does == "wait":
                    covers = closed[kind.group][max(0, len(closed[kind.group]) - 1 - op.n)]
                elif kind.does == "signal":
                    covers = len(running[kind.group])
                task = self._task(number, op, k, counter, len(found), covers)
                found.append(task)
                if kind.does == "start":
                    running[kind.group].append(task)
        self.running.append(running)
        return found

    def _task(self, role: int, op: Op, k: int, counter: int, number: int, covers: int) -> Task:
        slots, index = self.rings, op.index(counter)
        bar, phase = (self._bar[op.bar, index % slots[op.bar]], index // slots[op.bar] + op.ph) if op.bar else (-1, -1)
        buf, src = (self._buf[name, index % slots[name]] if name else -1 for name in (op.buf, op.src))
        size = self.pipeline.size(op) if op.buf else op.bytes or 0
        return Task(op, role, k, number, bar, phase, buf, op.index(k), size, covers, src)

    def start(self) -> State:
        """Return the first state."""
        barriers = tuple([(0, count, 0) for count in self.counts])
        slots: tuple[Slot, ...] = ((-1, 0, 0, 0, False, False, -1),) * len(self.slots)
        finished: Finished = (0,) * len(GROUPS)
        return (0,) * len(self.tasks), barriers, slots, (finished,) * len(self.tasks), ()

    def events(self, state: State) -> Iterator[Event]:
        """Yield what can happen next."""
        for role, at in enumerate(state[0]):
            if at < len(self.tasks[role]):
                task = self.tasks[role][at]
                if task.op.op != "wait" or (state[1][task.bar][0] & 1) != ((task.phase & 1) ^ task.op.flip):
                    yield role, task
        yield from [(-1, task) for task in state[4]]

    def after(self, state: State, event: Event) -> tuple[State | None, Violation | None]:
        """Return the state after an event, None if a violation leaves none, and a violation that counts."""
        following, found = self._after(state, event)
        return (None, found) if found and not found.soft else (following, found if self.soft else None)

    def _after(self, state: State, event: Event) -> tuple[State, Violation | None]:
        actor, task = event
        places, barriers, slots, finished, under_way = state
        found: Violation | None = None
        kind = task.op.op
        if actor < 0:
            under_way = tuple([other for other in under_way if other is not task])
            if kind in COPIES:
                slots = _written(slots, task)
                if task.src >= 0:
                    slots = _released(slots, task.src)
                barriers, found = self._add(barriers, task, 0, -task.bytes)
            else:
                slots, finished = self._finish(slots, finished, SIGNALS[kind], task)
                barriers, found = self._add(barriers, task, task.op.arrivals, 0)
            return (places, barriers, slots, finished, under_way), found
        places = _put(places, actor, places[actor] + 1)
        if kind == "wait":
            phase = barriers[task.bar][0]
            if not task.op.flip and not self.pipeline.reset and phase != task.phase + 1:
                what = "passes by the parity of another phase"
                found = Violation("ub", what, task, soft=True)
        elif kind == "dsmem_copy":
            slots, found = self._read(state, task, task.src)
            if found is None:
                slots, found = self._write((*state[:2], slots, *state[3:]), task)
        elif kind in WRITES:
            slots, found = self._write(state, task)
        elif kind in READS:
            slots, found = self._read(state, task, task.buf)
        elif kind == "proxy_fence":
            slots = tuple([(*slot[:4], False, False, slot[6]) for slot in slots])
        elif kind in GROUP_WAITS:
            slots, finished = self._finish(slots, finished, GROUP_WAITS[kind], task)
        elif kind not in SIGNALS:
            barriers, found = self._add(barriers, task, task.op.arrivals, task.bytes)
        if kind in COPIES or kind in SIGNALS:
            under_way = tuple(sorted((*under_way, task), key=lambda one: (one.role, one.number)))
        return (places, barriers, slots, finished, under_way), found

    def _finish(
        self, slots: tuple[Slot, ...], finished: tuple[Finished, ...], kind: str, task: Task
    ) -> tuple[Any, Any]:
        """Return slots and finished accesses after those of a kind up to ``task.covers`` have finished."""
        mine, place = finished[task.role], _PLACES[kind]
        for access in self.running[task.role][kind][mine[place] : task.covers]:
            slots = _written(slots, access) if access.op.op in WRITES else _released(slots, access.buf)
        mine = _put(mine, place, max(mine[place], task.covers))
        return slots, _put(finished, task.role, mine)

    def _add(self, barriers: tuple[Barrier, ...], task: Task, arrivals: int, size: int) -> tuple[Any, Violation | None]:
        phase, pending, outstanding = barriers[task.bar]
        found = None
        if phase != task.phase and not self.pipeline.reset:
            found = Violation("ub", f"meets phase {phase}, not {task.phase}", task, soft=True)
        pending, outstanding = pending - arrivals, outstanding + size
        if pending < 0:
            return barriers, Violation("ub", "more arrivals than are pending", task)
        if abs(outstanding) > MOST_BYTES:
            return barriers, Violation("ub", f"{outstanding} bytes are outstanding", task)
        if pending == 0 and outstanding == 0:
            phase, pending = phase + 1, self.counts[task.bar]
        return _put(barriers, task.bar, (phase, pending, outstanding)), found

    def _running(self, state: State, slot: int) -> list[tuple[Task, bool]]:
        """Return the accesses of a slot that are under way, and whether each writes it."""
        places, _, _, finished, under_way = state
        found = [task for task in under_way if task.op.op in COPIES]
        for role, kinds in enumerate(self.running):
            for kind, ended in zip(GROUPS, finished[role], strict=True):
                found += [task for task in kinds[kind][ended:] if task.number < places[role]]
        writes = [(task, task.op.op in WRITES) for task in found if task.buf == slot]
        return writes + [(task, False) for task in found if task.src == slot]

    def _race(
        self, state: State, task: Task, place: int, writes: bool | None = None, index: int = -1, why: str = ""
    ) -> Violation:
        """Return what is wrong with an access, which meets a write or a read of an index, or of any, under way."""
        name, slot = self.slots[place]
        what = f"{self._of(task)} of index {task.index} starts in {name}[{slot}]"
        for other, written in self._running(state, place) if writes is not None else ():
            if written == writes and index in (-1, other.index):
                does = "writes" if writes else "reads"
                return Violation("race", f"{what} while {self._of(other)} still {does} index {other.index}", task)
        return Violation("race", what + why, task)

    def _of(self, task: Task) -> str:
        return f"{self.pipeline.roles[task.role].name}'s {task.op.op}"

    def _write(self, state: State, task: Task) -> tuple[Any, Violation | None]:
        slots = state[2]
        index, started, done, reads, dirty, read, writer = slots[task.buf]
        copy, at_once = task.op.op in COPIES, task.op.op == "write"
        mine = task.role if task.op.op == "mma_write" else -1
        if reads:
            return slots, self._race(state, task, task.buf, writes=False)
        if started > done and (mine != writer or (mine < 0 and index != task.index)):
            return slots, self._race(state, task, task.buf, writes=True)
        if copy and (dirty or (read and self.policy == "strict")):
            access = "write" if dirty else "read"
            return slots, self._race(
                state, task, task.buf, why=f" after a generic {access} with no proxy fence in between"
            )
        if index != task.index:
            started = done = 0
        dirty = dirty or (task.op.op in GENERIC and not self.unfenced[task.buf])
        slot = (task.index, started + 1, done + at_once, 0, dirty, read, mine)
        return _put(slots, task.buf, slot), None

    def _read(self, state: State, task: Task, place: int) -> tuple[Any, Violation | None]:
        slots = state[2]
        index, started, done, reads, dirty, read, writer = slots[place]
        if self.written[place] and (index != task.index or done < self.writes.get((place, task.index), 1)):
            held = "nothing" if index < 0 else f"index {index}" + ", not all of it" * (index == task.index)
            return slots, self._race(state, task, place, True, task.index, f", which holds {held}")
        if task.op.op in GENERIC:
            noted = (index, started, done, reads, dirty, not self.unfenced[place], writer)
            return _put(slots, place, noted), None
        if dirty:
            return slots, self._race(state, task, place, why=" after a generic write with no proxy fence in between")
        return _put(slots, place, (index, started, done, reads + 1, dirty, read, writer)), None

    def last(self, state: State) -> Violation | None:
        """Return what is wrong with a state in which nothing can happen or all roles have finished."""
        places, _, _, finished, under_way = state
        stuck = [tasks[at] for at, tasks in zip(places, self.tasks, strict=True) if at < len(tasks)]
        if stuck:
            return Violation("deadlock", "; ".join([self._hang(state, task) for task in stuck]), stuck[0])
        copies = [task for task in under_way if task.op.op in COPIES] if self.soft else []
        if copies:
            return Violation("ub", "a copy runs when the block ends", copies[0], soft=True)
        if self.soft and self.policy == "strict":
            store = list(GROUPS).index("tma_store")
            for mine, running in zip(finished, self.running, strict=True):
                left = running["tma_store"][mine[store] :]
                if left:
                    return Violation("ub", "a store reads its slot when the block ends", left[0], soft=True)
        return None

    def _hang(self, state: State, task: Task) -> str:
        """Return what the phase lacks that a wait hangs at: arrivals, bytes, and the roles that would add them."""
        (phase, pending, outstanding), count = state[1][task.bar], self.counts[task.bar]
        found = f"{self.pipeline.roles[task.role].name} waits for {task.op.bar}[{self.slot(task)}] phase {task.phase}"
        if phase != task.phase and not self.pipeline.reset:
            found += f", which is in phase {phase}"
        found += f": {count - pending} of {count} arrival{'s' * (count != 1)}"
        if outstanding:
            found += f", {abs(outstanding)} bytes {'outstanding' if outstanding > 0 else 'more than expected'}"
        names: dict[str, None] = {}
        for at, tasks in zip(state[0], self.tasks, strict=True):
            for one in tasks[at:]:
                due = one.phase == phase or (self.pipeline.reset and (one.phase - phase) % 2 == 0)
                if one.bar == task.bar and due and (one.op.arrivals if pending else one.op.op in COPIES):
                    names[self.pipeline.roles[one.role].name] = None
        verb = ("arrive" if pending else "copy") if len(names) > 1 else ("arrives" if pending else "copies")
        who = f"{' and '.join(names)} never" if names else "nobody else" if 0 < pending < count else "nobody"
        return f"{found}, {who} {verb}"

    def slot(self, task: Task) -> int | None:
        """Return the slot of the barrier of a task, or of its buffer."""
        return self.barriers[task.bar][1] if task.bar >= 0 else self.slots[task.buf][1] if task.buf >= 0 else None

    def named(self, event: Event) -> tuple[str, str, int]:
        """Return an event in words: role, op and k."""
        actor, task = event
        ends = f"{task.op.buf}: the copy is done" if task.op.buf else f"{task.op.bar}: the {task.op.op} arrives"
        return self.pipeline.roles[task.role].name, str(task.op) if actor >= 0 else ends, task.k

    def finished(self, state: State) -> bool:
        """Return whether all roles have finished."""
        return state[0] == self._ends


def _put(values: Any, place: int, value: object) -> Any:
    return (*values[:place], value, *values[place + 1 :])


def _released(slots: tuple[Slot, ...], place: int) -> Any:
    """Return the slots after an asynchronous read of one is done."""
    slot = slots[place]
    return _put(slots, place, (*slot[:3], slot[3] - 1, *slot[4:]))


def _written(slots: tuple[Slot, ...], task: Task) -> Any:
    """Return the slots after an asynchronous write is done."""
    index, started, done, reads, dirty, read, writer = slots[task.buf]
    mine = index == task.index
    slot = (index, started, done + mine, reads, dirty or (mine and task.op.op in GENERIC), read, writer)
    return _put(slots, task.buf, slot)
