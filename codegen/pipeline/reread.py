"""Whether a kernel does what its pipeline says: its PTX is run thread by thread and compared with the document.

Each role's ops are written out for a number of iterations, with slots, parities and bytes. Every thread of the role has
to do its part of them in that order: all threads that take part wait, fence and multiply; one issues the copies; the
arrivals of all threads add up to the op's. Where one thread signals for others, a barrier of threads lies in between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from layoutalg.codegen.compile import to_ptx
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.pipeline.program import WARP
from layoutalg.codegen.pipeline.ptx import not_followed, program
from layoutalg.codegen.pipeline.thread import RANK_SHIFT, Event, Thread, Value
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.pipeline.document import COPIES, Op, Part, Pipeline, Role
from layoutalg.proofs.pipeline.expansion import expanded

LANES = (0, 1, 31)
"""The lanes of each warp that are run: lane 0 is the one that ``elect`` chooses, lane 1 stands for those up to 30."""
WARPGROUP = 4
_LOADS, _STORES = ("expect", "arrive_tx", *COPIES), ("tma_store", "bulk_commit", "bulk_wait")
_ASYNC = ("cp_async_commit", "cp_async_wait", "cp_async_arrive")
_ALL = ("wait", "mma", "mma_commit", "mma_wait")
_RUNS = (*COPIES, "tma_store", "mma")
_ACCESSES = ("read", "write", "cp_async")
_COMPARED = ("arrive", *_ALL, *_LOADS, *_STORES, *_ASYNC)
_SIGNALS = ("arrive", "arrive_tx", *COPIES, "tma_store")
_AFTER = {"read": ("write",), "mma": ("write",), "write": ("read", "write")}
_TOUCHES = ("read", "write", "mma_wait", "proxy_fence")


@dataclass(frozen=True, slots=True)
class Launch:
    """How a kernel is launched so that its loops run N times.

    Args:
        arguments: One per parameter: integers, bytes, or None for maps and pointers.
        block: The block to look at.
        blocks: Blocks of the grid.
        trips: (role, its own N) where that is not N.
        turns: In how many turns roles that share their warps run, one after the other in each.
    """

    arguments: Sequence[object]
    block: int = 0
    blocks: int = 1
    trips: tuple[tuple[str, int], ...] = ()
    turns: int = 1


def events(
    kernel: KernelSource, arguments: Sequence[object], thread: int, block: int = 0, blocks: int = 1, cluster: int = 1
) -> tuple[Event, ...]:
    """Return what a thread of a kernel does with barriers, copies and shared memory, in its order.

    Args:
        kernel: The kernel.
        arguments: One per parameter: integers, bytes, or None for maps and pointers.
        thread: The thread in its block.
        block: The block.
        blocks: Blocks of the grid.
        cluster: Blocks of a cluster.

    Raises: RepresentabilityError: LA980, with the line of the PTX that cannot be followed. CompileError: LA511.
    """
    warp, lane = divmod(thread, WARP)
    return _events(kernel, Launch(arguments, block, blocks), warp, sorted({0, lane}), cluster)[lane]


def _events(
    kernel: KernelSource, launch: Launch, warp: int, lanes: Iterable[int], cluster: int, until: Sequence[str] = ()
) -> dict[int, tuple[Event, ...]]:
    """What lanes of a warp do; each hears the shuffles of those before it."""
    entry = program(to_ptx(kernel), kernel.name)
    given = [
        value if isinstance(value, (int, bytes)) else place + 1 << 48 if kind.endswith("*") else None
        for place, ((kind, _), value) in enumerate(zip(kernel.parameters, launch.arguments, strict=True))
    ]
    found, heard = {}, dict[int, Sequence[tuple[int, Value]]]()
    for lane in lanes:
        if WARP * warp + lane < kernel.threads:
            at = WARP * warp + lane, kernel.threads, launch.block, launch.blocks, cluster
            thread = Thread(entry, given, *at, heard)
            found[lane], heard[lane] = thread.run(until), thread.shuffled
    return found


class Step(NamedTuple):
    """An op of a role in one iteration: its place, k, the op, the slots, the parity, and the slot that a copy reads."""

    place: str
    k: int
    op: Op
    bar: int = 0
    buf: int = 0
    parity: int = 0
    src: int = 0

    def __str__(self) -> str:
        op = self.op
        told = [f"{op.src}[{self.src}]"] * bool(op.src) + [f"{op.buf}[{self.buf}]"] * bool(op.buf)
        told += [f"{op.bar}[{self.bar}]"] * bool(op.bar)
        told += [f"parity {self.parity}"] * (op.op == "wait") + [f"{op.bytes} bytes"] * (op.op in _LOADS[:2])
        told += [f"{op.n} groups open"] * op.op.endswith("_wait")
        return f"{op.op} {', '.join(told)}".strip()


def steps(pipeline: Pipeline, roles: Sequence[Role], trips: Sequence[int], turns: int = 1) -> Iterator[Step]:
    """The ops that warps run, in order, with their slots and parities.

    Args:
        pipeline: The document.
        roles: The roles of these warps, one after the other in each turn.
        trips: N of each role.
        turns: Number of turns.

    Example:
        >>> ring = Pipeline.from_json({"schema": "layoutalg/pipeline/1", "stages": 2,
        ...     "barriers": {"full": {"count": 1}},
        ...     "roles": [{"name": "use", "loop": [{"op": "wait", "bar": "full"}]}]})
        >>> [str(step) for step in steps(ring, ring.roles, [3])]
        ['wait full[0], parity 0', 'wait full[1], parity 0', 'wait full[0], parity 1']
    """
    counts = [max(0, many + role.trip) for many, role in zip(trips, roles, strict=True)]
    for role in roles:
        yield from _part(pipeline, role, "pre", range(1), 0)
    for turn in range(turns):
        for role, many in zip(roles, counts, strict=True):
            yield from _part(pipeline, role, "loop", range(many * turn // turns, many * (turn + 1) // turns), many)
    for role, many in zip(roles, counts, strict=True):
        yield from _part(pipeline, role, "post", range(many, many + 1), many)


def _part(pipeline: Pipeline, role: Role, part: Part, ks: Iterable[int], trip: int) -> Iterator[Step]:
    """The ops of one part for some iterations."""
    rings = pipeline.rings
    for k in ks:
        for place, op in enumerate(getattr(role, part)):
            base = k % pipeline.reset if part == "loop" and pipeline.reset else k
            index = base + op.off if op.idx_abs is None else op.idx_abs
            if part == "loop" and not op.first <= k < trip - op.last:
                continue
            if index < 0 and op.op != "wait" and (op.bar or op.buf):
                continue
            bar, buf, src = rings.get(op.bar, 1), rings.get(op.buf, 1), rings.get(op.src, 1)
            parity = (index // bar + op.ph + op.flip) % 2
            yield Step(f"{role.name}.{part}[{place}]", k, op, index % bar, index % buf, parity, index % src)


def mismatch(
    kernel: KernelSource,
    pipeline: Pipeline,
    launches: Callable[[int], Launch],
    *,
    trips: Iterable[int] | None = None,
    lanes: Sequence[int] = LANES,
    buffers: Sequence[tuple[str, int, int]] = (),
) -> Broken | None:
    """Return where a kernel does something else than its pipeline; None if they agree.

    Args:
        kernel: A kernel that names its ``barriers`` and ``roles``.
        pipeline: The document.
        launches: For each N, arguments and a block with which the loops run N times.
        trips: The numbers N; by default from the least to twice the deepest ring and 3 more.
        lanes: The lanes of each warp that are run; the one before a gap stands for the gap.
        buffers: Name, first byte from the aligned base and bytes of a slot of buffers; places of others are those of
            their first copies.

    Raises: RepresentabilityError: LA980, with the line of the PTX that cannot be followed.
    """
    try:
        plain, cluster = _plain(kernel, pipeline), pipeline.cluster
        if trips is None:
            trips = range(plain.least, plain.least + 2 * max([1, *plain.rings.values()]) + 4)
        comparison = _Comparison(kernel, plain, cluster, sorted(lanes))
        for name, first, size in buffers:
            for rank in range(cluster):
                for slot in range(pipeline.rings[name]):
                    at = comparison.base(rank) + first + slot * size
                    comparison.add((comparison.own(name, rank), slot), at, size)
        for many in trips:
            launch = launches(many)
            for rank in range(cluster):
                block = launch.block - launch.block % cluster + rank
                comparison.block(many, replace(launch, block=block), rank)
    except _DifferenceError as found:
        return found.broken
    return None


class _DifferenceError(Exception):
    def __init__(self, rule: str, reason: str, **witness: object) -> None:
        self.broken = Broken(rule, reason, witness)


def _plain(kernel: KernelSource, pipeline: Pipeline) -> Pipeline:
    """The pipeline without clusters; its rings and roles must be those of the kernel."""
    stated = {role.name: role.warps for role in pipeline.roles}
    for what, has, wanted in (
        ("barriers", {each[::2] for each in kernel.barriers}, {(name, ring.slots) for name, ring in pipeline.barriers}),
        ("roles", {(name, warps if stated.get(name) else 0) for name, _, warps in kernel.roles}, {*stated.items()}),
    ):
        if has != wanted:
            because = f"the kernel's {what} are not those of the pipeline"
            raise _DifferenceError("EMIT_NAMES", because, expected=sorted(wanted), found=sorted(has))
    for role in pipeline.roles:
        for part, place, op in role.ops():
            if op.op not in (*_COMPARED, *_ACCESSES, "proxy_fence"):
                raise not_followed(f"{role.name}.{part}[{place}]", f"the op {op.op} is not read back from PTX")
    return expanded(pipeline)


def _loads(roles: Sequence[Role]) -> bool:
    return any(op.op == "tma_load" for role in roles for _, _, op in role.ops())


_At = tuple[int, int]
"""A thread: warp and lane."""
_Mark = tuple[int, int, int]
"""A step that a thread does, after so many barriers of threads, and of its warp."""


@dataclass(slots=True)
class _Done:
    """What a thread did: its part of the steps, counts of its arrivals, barriers of threads."""

    marks: list[_Mark] = field(default_factory=list)
    arrivals: dict[int, int] = field(default_factory=dict)
    bars: list[tuple[int, int]] = field(default_factory=list)
    performed: dict[int, _Mark] = field(default_factory=dict)  # the first mark of each

    def mark(self, place: int, warp_bars: int) -> None:
        """Note a step."""
        found = (place, len(self.bars), warp_bars)
        self.marks.append(found)
        self.performed.setdefault(place, found)

    def latest(self, wanted: list[Step]) -> dict[str, list[_Mark]]:
        """The marks of each kind of op, and of each kind and slot, by step; each with the most barriers up to it."""
        found: dict[str, list[_Mark]] = {}
        for place, bars, warp_bars in sorted(self.marks):
            step = wanted[place]
            for key in (step.op.op, f"{step.op.op} {step.op.buf}[{step.buf}]"):
                marks = found.setdefault(key, [])
                most = marks[-1] if marks else (0, 0, 0)
                marks.append((place, max(bars, most[1]), max(warp_bars, most[2])))
        return found


class _Comparison:
    """The comparison of a kernel with its document; the places of slots are kept between numbers of iterations."""

    def __init__(self, kernel: KernelSource, pipeline: Pipeline, cluster: int, lanes: Sequence[int]) -> None:
        self.kernel, self.pipeline, self.cluster, self.lanes = kernel, pipeline, cluster, lanes
        self.weights = {lane: after - lane for lane, after in zip(lanes, [*lanes[1:], WARP], strict=True)}
        self.places: dict[tuple[str, int], int] = {}
        self.starts: list[int] = []
        self.slots: list[tuple[tuple[str, int], int]] = []  # buffer and slot, end; sorted like starts
        self.shapes: dict[tuple[str, int], tuple[int, ...]] = {}  # of an op and a warpgroup
        self.trips = self.rank = 0
        self.barriers = {
            self.base(to) + first + 8 * slot: (self.own(name, to), slot)
            for to in range(cluster)
            for name, first, slots in kernel.barriers
            for slot in range(slots)
        }
        self.made: dict[int, set[_At]] = {}  # of each block: the threads that initialise barriers
        self.bars: dict[int, str] = {}  # barriers of threads, with the roles they are of

    def add(self, slot: tuple[str, int], start: int, size: int) -> None:
        """Note the place of a slot; two slots must not share bytes."""
        at = bisect_right(self.starts, start)
        before = self.slots[at - 1] if at else None
        if (before and before[1] > start) or (at < len(self.starts) and self.starts[at] < start + size):
            other = before if before and before[1] > start else self.slots[at]
            because = f"{slot[0]}[{slot[1]}] and {other[0][0]}[{other[0][1]}] share bytes"
            raise _DifferenceError("EMIT_SLOT", because, byte=start, N=self.trips)
        self.places[slot] = start
        self.starts.insert(at, start)
        self.slots.insert(at, (slot, start + size))

    def slot_at(self, address: int) -> tuple[str, int] | None:
        """The buffer and slot of a shared address."""
        at = bisect_right(self.starts, address) - 1
        return self.slots[at][0] if at >= 0 and address < self.slots[at][1] else None

    def own(self, name: str, rank: int) -> str:
        """The name of a ring or role of a block."""
        return f"{name}@{rank}" if self.cluster > 1 else name

    def base(self, rank: int) -> int:
        """Where the dynamic shared memory of a block begins."""
        symbols = program(to_ptx(self.kernel), self.kernel.name).symbols
        return symbols.get("la_dynamic_shared", 0) + (rank + 1 << RANK_SHIFT)

    def block(self, trips: int, launch: Launch, rank: int) -> None:
        """Compare one block."""
        self.trips, self.rank = trips, rank
        threads = {
            (warp, lane): tuple(self.absolute(given))
            for warp in range(-(-self.kernel.threads // WARP))
            for lane, given in _events(self.kernel, launch, warp, self.lanes, self.cluster).items()
        }
        if rank not in self.made:
            self.made[rank] = self.initialised(launch)
        self.started(threads)
        self.bars = {}
        for at in threads:
            everyone = [[event for event in threads[one] if self.meets(event)] for one in (at, min(threads))]
            if [event.address for event in everyone[0]] != [event.address for event in everyone[1]]:
                because = f"threads pass {len(everyone[0])} and {len(everyone[1])} barriers of the block"
                raise self.differs(because, at, None, None, "EMIT_BAR")
        if self.cluster > 1:
            self.met_at_end(threads)
        workers: dict[tuple[int, int], list[Role]] = {}
        roles = {role.name: role for role in self.pipeline.roles}
        for name, first, many in self.kernel.roles:
            if role := roles.get(self.own(name, rank)):  # some blocks lack some roles
                workers.setdefault((first, many), []).append(role)
        free, own = set(threads), dict(launch.trips)
        for (first, many), group in sorted(workers.items(), key=lambda item: not _loads(item[1])):
            mine = {at: threads[at] for at in threads if first <= at[0] < first + many}
            free -= set(mine)
            counts = [own.get(role.name.partition("@")[0], trips) for role in group]
            self.worker(list(steps(self.pipeline, group, counts, launch.turns)), mine, many, group[0].name)
        for at in free:
            for event in threads[at]:
                if event.kind in _COMPARED:
                    raise self.differs("a thread of no role synchronises", at, None, event, "EMIT_ORDER")

    def met_at_end(self, threads: dict[_At, tuple[Event, ...]]) -> None:
        """A block that has left has no barriers and no memory: the blocks of a cluster meet behind the last op."""
        for at, given in threads.items():
            left = next((event for event in reversed(given) if event.kind in (*_COMPARED, "cluster_wait")), None)
            if left is not None and left.kind != "cluster_wait":
                because = "the blocks of the cluster do not meet behind the last op"
                raise self.differs(because, at, None, left, "EMIT_BAR")

    def meets(self, event: Event) -> bool:
        """Whether it is a barrier of all threads of the block."""
        return event.kind == "bar" and event.value == self.kernel.threads

    def absolute(self, given: tuple[Event, ...]) -> Iterator[Event]:
        """The events with addresses that name the block, and a multicast as one copy for each block it reaches."""
        for event in given:
            near = self.rank + 1 << RANK_SHIFT if event.kind != "bar" else 0
            address, barrier = (at if at >> RANK_SHIFT else at + near for at in (event.address, event.barrier))
            inside = event.kind in ("mma", "dsmem_copy")  # coordinates are no addresses
            numbers = tuple([near + (at or 0) for at in event.numbers]) if inside else event.numbers
            reached = [to for to in range(self.cluster) if event.kind == "tma_load" and event.value >> to & 1]
            for to in reached or [self.rank]:
                far = to - self.rank << RANK_SHIFT
                yield event._replace(address=address + far, barrier=barrier + far, numbers=numbers)

    def initialised(self, launch: Launch) -> set[_At]:
        """Each barrier is initialised once, with its count, before the block's threads meet; return who does it."""
        counts = {name: ring.count for name, ring in self.pipeline.barriers}
        many: dict[int, int] = {}
        makers = set()
        for warp in range(-(-self.kernel.threads // WARP)):
            found = _events(self.kernel, launch, warp, range(WARP), self.cluster, ("bar", "cluster_wait"))
            for lane, given in found.items():
                for event in self.absolute(given):
                    if event.kind == "init":
                        named = self.barriers.get(event.address)
                        if named is None or event.value != counts[named[0]]:
                            wanted = f"count {counts[named[0]]}" if named else "no such barrier"
                            because = "a barrier is initialised otherwise"
                            raise self.differs(because, (warp, lane), wanted, event, "EMIT_INIT")
                        many[event.address] = many.get(event.address, 0) + 1
                        makers.add((warp, lane))
        for address, (name, slot) in self.barriers.items():
            if address >> RANK_SHIFT == self.rank + 1 and many.get(address) != 1:
                because = f"{name}[{slot}] is initialised {many.get(address, 0)} times"
                raise _DifferenceError("EMIT_INIT", because, N=self.trips)
        return makers

    def started(self, threads: dict[_At, tuple[Event, ...]]) -> None:
        """No thread uses a barrier before the block has met, but one that initialises all of them."""
        for at, given in threads.items():
            met = False
            left = sum([event.kind == "init" for event in given])
            for event in given:
                met = met or event.kind == "cluster_wait" or (self.cluster == 1 and self.meets(event))
                left -= event.kind == "init"
                alone = self.made[self.rank] == {at} and not left
                if (event.kind == "init" and met) or (event.kind in _COMPARED and not (met or alone)):
                    because = "the block does not meet between the initialisation of barriers and their use"
                    raise self.differs(because, at, None, event, "EMIT_INIT")

    def differs(
        self, because: str, at: _At, expected: object, found: Event | None, rule: str, step: Step | None = None
    ) -> _DifferenceError:
        """The refusal for a thread."""
        where = {"op": step.place, "k": step.k} if step else {}
        told = {"expected": str(expected)} if expected is not None else {}
        line = {"line": found.line} if found else {}
        shown = {"found": self.shown(found)} if told or found else {}
        return _DifferenceError(
            rule, because, **where, N=self.trips, thread=WARP * at[0] + at[1], **told, **shown, **line
        )

    def shown(self, event: Event | None) -> str:
        """An event with the names of barriers and slots."""
        if event is None:
            return "nothing"
        bar = self.barriers.get(event.barrier if event.kind in COPIES else event.address)
        places = event.numbers if event.kind == "mma" else (event.address,)
        places = (*event.numbers, event.address) if event.kind == "dsmem_copy" else places
        told = [f"{slot[0]}[{slot[1]}]" for at in places if (slot := self.slot_at(at or 0))]
        told += [f"{bar[0]}[{bar[1]}]"] if bar else []
        if event.address and not told:
            told = [f"byte {event.address - self.base(self.rank)}"]
        words = {"wait": "parity {}", "init": "count {}"}
        words |= dict.fromkeys(("arrive_tx", "expect", "dsmem_copy"), "{} bytes")
        words |= dict.fromkeys(("mma_wait", "bulk_wait", "cp_async_wait"), "{} groups open")
        told += [words[event.kind].format(event.value)] if event.kind in words else []
        return f"{event.kind} {', '.join(told)}".strip()

    def worker(self, wanted: list[Step], threads: dict[_At, tuple[Event, ...]], warps: int, name: str) -> None:
        """Compare the threads of some warps with the ops of their roles."""
        known, done = -1, dict[_At, _Done]()
        while known != len(self.slots):  # once more when this role's own copies tell where slots are
            known = len(self.slots)
            done = {at: _Walk(self, wanted, at, given, warps).run() for at, given in threads.items()}
        whole = [part.bars for part in done.values() if part.bars]
        for at, part in done.items():
            for number, many in part.bars:
                if many != self.kernel.threads and self.bars.setdefault(number, name) != name:
                    because = f"barrier {number} of threads is also that of {self.bars[number]}"
                    raise self.differs(because, at, None, None, "EMIT_BAR")
            if whole and part.bars != whole[0]:
                because = "threads of a role pass different barriers of threads"
                raise self.differs(because, at, whole[0], None, "EMIT_BAR")
        for place, step in enumerate(wanted):
            op, share = step.op, {at for at in done if place in done[at].performed}
            if op.op in _ACCESSES or op.op == "proxy_fence":
                continue
            many = sum([self.weights[at[1]] * done[at].arrivals.get(place, 1) for at in share])
            right = {"arrive": op.n, "wait": max(many, 1)}.get(op.op, WARP * warps if op.op.startswith("mma") else 1)
            if many != right and op.op not in _ASYNC[:2]:
                because = f"{many} arrivals, not {right}" if op.op == "arrive" else f"{many} threads do it, not {right}"
                raise self.differs(because, min(share or done), step, None, "EMIT_COUNT", step)
        self.handed_over(wanted, done)

    def handed_over(self, wanted: list[Step], done: dict[_At, _Done]) -> None:
        """What threads did before another one signals for them is separated from it by a barrier of threads."""
        latest = {at: part.latest(wanted) for at, part in done.items()}
        multiplied = {step.op.buf for step in wanted if step.op.op == "mma"}
        for place, step in enumerate(wanted):
            op, share = step.op, [at for at in done if place in done[at].performed]
            for one in done:
                near = [at for at in share if at[0] == one[0]]
                after: dict[str, list[_At]] = {}
                if op.op in _SIGNALS and one not in share:
                    after |= dict.fromkeys(_TOUCHES, near or share)
                if op.op in ("arrive", "write"):
                    after["bulk_wait"] = share
                if op.op == "write" and op.buf in multiplied:  # a wait is for the warp's own part of a multiply
                    after["mma_wait"] = share
                for kind in _AFTER.get(op.op, ()):
                    after[f"{kind} {op.buf}[{step.buf}]"] = share
                for key, others in after.items():
                    marks = latest[one].get(key, ())
                    before = bisect_left(marks, (place,))
                    for other in others if before else ():
                        self.separate(wanted, marks[before - 1], one, done[other].performed[place], other)

    def separate(self, wanted: list[Step], last: _Mark, one: _At, mark: _Mark, other: _At) -> None:
        """Refuse what one thread did last and another one did first without a barrier of threads in between."""
        if one != other and last[1] >= mark[1] and (one[0] != other[0] or last[2] >= mark[2]):
            step, thread = wanted[mark[0]], WARP * one[0] + one[1]
            because = f"no barrier of threads between {wanted[last[0]]} of thread {thread} and {step}"
            raise self.differs(because, other, None, None, "EMIT_HANDOVER", step)


class _Walk:
    """One thread's events against the steps of its role."""

    def __init__(self, all_of: _Comparison, wanted: list[Step], at: _At, given: tuple[Event, ...], warps: int) -> None:
        self.all, self.wanted, self.at, self.given, self.warps = all_of, wanted, at, given, warps
        kinds = {event.kind for event in given}
        self.kinds = {kind for group in (_LOADS, _STORES, _ASYNC) if kinds & set(group) for kind in group}
        if kinds & set(_COMPARED) or any(event.kind in _ACCESSES and all_of.slot_at(event.address) for event in given):
            self.kinds |= {*_ALL, "proxy_fence"}
        bars = [self.all.barriers.get(event.address, ("", 0))[0] for event in given if event.kind == "arrive"]
        named = {step.op.bar for step in wanted if step.op.op == "arrive"}
        self.arrives = set(bars) if named >= set(bars) else named | set(bars)
        self.done, self.place, self.accessed, self.warp_bars, self.fenced = _Done(), 0, 0, 0, False
        self.run_of: dict[int, set[int]] = {}  # the open run of copies or multiplies: addresses of each step
        self.read_of: dict[int, list[tuple[int, int]]] = {}  # of copies from shared memory: sources and bytes

    def performs(self, step: Step) -> bool:
        """Whether this thread has to do the step."""
        return step.op.bar in self.arrives if step.op.op == "arrive" else step.op.op in self.kinds

    def run(self) -> _Done:
        """Compare; return what the thread did."""
        for event in self.given:
            if event.kind == "bar":
                if event.value not in (WARP * self.warps, self.all.kernel.threads):
                    because = "a barrier of threads is for other than all threads of the role or the block"
                    raise self.differs(because, None, event, "EMIT_BAR")
                self.done.bars.append((event.address, event.value))
            elif event.kind == "warp_bar":
                self.warp_bars += 1
            elif event.kind == "mma_fence":
                self.fenced = True
            elif event.kind in _ACCESSES:
                self.access(event)
            elif event.kind == "proxy_fence":
                self.close()
                place, step = self.next()
                if step and step.op.op == "proxy_fence":
                    self.mark(place)
            elif event.kind in _RUNS:
                self.member(event)
            elif event.kind in _COMPARED:
                self.close()
                self.compare(event)
        self.close()
        place, step = self.next()
        if step:
            raise self.differs("an op is missing", step, None)
        return self.done

    def differs(
        self, because: str, step: Step | None, found: Event | None, rule: str = "EMIT_ORDER"
    ) -> _DifferenceError:
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
        operand |= dict.fromkeys(("mma_wait", "bulk_wait", "cp_async_wait"), step.op.n)
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
        sizes = {name: ring.bytes for name, ring in self.all.pipeline.buffers}
        self.all.add((buffer, slot), address, max(1, sizes[buffer] or step.op.bytes or 0))

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
            sizes = {name: ring.bytes for name, ring in self.all.pipeline.buffers}
            size = sizes.get(step.op.buf, 0) if step.op.bytes is None else step.op.bytes
            if step.op.src and sum([many for _, many in pieces]) != size:
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
                self.accessed = place
                return self.done.mark(place, self.warp_bars)
        raise self.differs("an access that the document does not have here", expected, event, "EMIT_ACCESS")
