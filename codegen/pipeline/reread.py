"""Whether a kernel does what its pipeline says: its PTX is run thread by thread and compared with the document.

Each role's ops are written out for a number of iterations, with slots, parities and bytes. Every thread of the role has
to do its part of them in that order: all threads that take part wait, fence and multiply; one issues the copies; the
arrivals of all threads add up to the op's. Where one thread signals for others, a barrier of threads lies in between.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from layoutalg.codegen.compile import to_ptx
from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.pipeline.program import WARP
from layoutalg.codegen.pipeline.ptx import not_followed, program
from layoutalg.codegen.pipeline.steps import Step, steps
from layoutalg.codegen.pipeline.thread import RANK_SHIFT, Event, Thread, Value
from layoutalg.codegen.pipeline.walk import ASYNC, COMPARED, At, DifferenceError, Done, Mark, Walk
from layoutalg.ground.refusal import Broken
from layoutalg.proofs.pipeline.document import MOST_OPS, Pipeline, Role
from layoutalg.proofs.pipeline.expansion import Meeting, expanded
from layoutalg.proofs.pipeline.ops import COPIES, COUNTED, GENERIC, GROUP_WAITS
from layoutalg.proofs.pipeline.resources import BARRIER_BYTES

LANES = (0, 1, 31)
"""The lanes of each warp that are run: lane 0 is the one that ``elect`` chooses, lane 1 stands for those up to 30."""
_SIGNALS = ("arrive", "arrive_tx", *COPIES, "tma_store")
_AFTER = {"read": ("write",), "mma": ("write",), "write": ("read", "write"), "cp_async": ("read", "write")}
_TOUCHES = ("read", "write", "mma_wait", "cp_async_wait", "proxy_fence")
_NAMED = 1 << RANK_SHIFT - 1
"""An address with this bit is that of no memory, but of a named barrier of the document."""


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
        buffers: Name, first byte from the aligned base and bytes of a slot of buffers, ``Emitted.slots``; places of
            others are those of their first bulk copies.

    Raises: RepresentabilityError: LA980, with the line of the PTX that cannot be followed.
    """
    try:
        plain, cluster = _plain(kernel, pipeline), pipeline.cluster
        if trips is None:
            trips = range(plain.least, plain.least + 2 * max([1, *plain.rings.values()]) + 4)
        comparison = Comparison(kernel, pipeline, plain, sorted(lanes))
        _placed(pipeline, {name for name, _, _ in buffers})
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
    except DifferenceError as found:
        return found.broken
    return None


def _plain(kernel: KernelSource, pipeline: Pipeline) -> Pipeline:
    """The pipeline without clusters; its rings and roles must be those of the kernel."""
    stated = {role.name: role.warps for role in pipeline.roles}
    for what, has, wanted in (
        ("barriers", {each[::2] for each in kernel.barriers}, {(name, ring.slots) for name, ring in pipeline.barriers}),
        ("roles", {(name, warps if stated.get(name) else 0) for name, _, warps in kernel.roles}, {*stated.items()}),
    ):
        if has != wanted:
            because = f"the kernel's {what} are not those of the pipeline"
            raise DifferenceError("EMIT_NAMES", because, expected=sorted(wanted), found=sorted(has))
    for role in pipeline.roles:
        for part, place, op in role.ops():
            compared = op.op in (*COMPARED, *GENERIC, "proxy_fence", "bar_sync", "bar_arrive")
            if not compared and op.buf not in pipeline.registers:
                raise not_followed(role.where(part, place), f"the op {op.op} is not read back from PTX")
    return expanded(pipeline, together=False)


def _placed(pipeline: Pipeline, given: set[str]) -> None:
    """Refuse copies by threads whose slots nobody can tell: bulk copies say where slots are."""
    copied = {kind: {op.buf for op in pipeline.ops() if op.op == kind} for kind in ("cp_async", "tma_load")}
    for name in copied["cp_async"] - given - copied["tma_load"]:
        because = "threads copy into it, so its place must be given: buffers=[(name, first byte, bytes of a slot)]"
        raise not_followed(f"buffer {name}", because)


def _loads(roles: Sequence[Role]) -> bool:
    return any(op.op == "tma_load" for role in roles for _, _, op in role.ops())


class Comparison:
    """The comparison of a kernel with its document; the places of slots are kept between numbers of iterations."""

    def __init__(self, kernel: KernelSource, stated: Pipeline, pipeline: Pipeline, lanes: Sequence[int]) -> None:
        self.kernel, self.stated, self.pipeline, self.lanes = kernel, stated, pipeline, lanes
        self.cluster = cluster = stated.cluster
        self.weights = {lane: after - lane for lane, after in zip(lanes, [*lanes[1:], WARP], strict=True)}
        self.places: dict[tuple[str, int], int] = {}
        self.starts: list[int] = []
        self.slots: list[tuple[tuple[str, int], int]] = []  # buffer and slot, end; sorted like starts
        self.shapes: dict[tuple[str, int], tuple[int, ...]] = {}  # of an op and a warpgroup
        self.trips = self.rank = 0
        self.barriers = {
            self.base(to) + first + BARRIER_BYTES * slot: (self.own(name, to), slot)
            for to in range(cluster)
            for name, first, slots in kernel.barriers
            for slot in range(slots)
        }
        self.named: dict[int, Meeting] = {}  # of this block
        self.made: dict[int, set[At]] = {}  # of each block: the threads that initialise barriers
        self.bars: dict[int, str] = {}  # barriers of threads, with the roles they are of

    def add(self, slot: tuple[str, int], start: int, size: int) -> None:
        """Note the place of a slot; two slots must not share bytes."""
        at = bisect_right(self.starts, start)
        before = self.slots[at - 1] if at else None
        if (before and before[1] > start) or (at < len(self.starts) and self.starts[at] < start + size):
            other = before if before and before[1] > start else self.slots[at]
            because = f"{slot[0]}[{slot[1]}] and {other[0][0]}[{other[0][1]}] share bytes"
            raise DifferenceError("EMIT_SLOT", because, byte=start, N=self.trips)
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
        here = self.stated.roles_of(rank)
        ids = {op.id for role in here for _, _, op in role.ops() if op.is_named}
        self.named = {number: Meeting.of(number, here) for number in ids}
        for number, meeting in self.named.items():
            start = self.named_at(number)
            self.barriers |= {start + place: (self.own(ring, rank), 0) for place, ring in enumerate(meeting.rings)}
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
                if event.kind in (*COMPARED, "bar_arrive") or (event.kind == "bar" and not self.meets(event)):
                    raise self.differs("a thread of no role synchronises", at, None, event, "EMIT_ORDER")

    def met_at_end(self, threads: dict[At, tuple[Event, ...]]) -> None:
        """A block that has left has no barriers and no memory: the blocks of a cluster meet behind the last op."""
        for at, given in threads.items():
            left = next((event for event in reversed(given) if event.kind in (*COMPARED, "cluster_wait")), None)
            if left is not None and left.kind != "cluster_wait":
                because = "the blocks of the cluster do not meet behind the last op"
                raise self.differs(because, at, None, left, "EMIT_BAR")

    def meets(self, event: Event) -> bool:
        """Whether it is a barrier of all threads of the block."""
        return event.kind == "bar" and event.value == self.kernel.threads and event.address not in self.named

    def absolute(self, given: tuple[Event, ...]) -> Iterator[Event]:
        """The events with addresses that name the block, and a multicast as one copy for each block it reaches."""
        uses: dict[int, int] = {}
        for event in given:
            if event.kind in ("bar", "bar_arrive") and event.address in self.named:
                yield from self.met(event, uses)
                continue
            near = self.rank + 1 << RANK_SHIFT if not event.kind.startswith("bar") else 0
            address, barrier = (at if at >> RANK_SHIFT else at + near for at in (event.address, event.barrier))
            inside = event.kind in ("mma", "dsmem_copy")  # coordinates are no addresses
            numbers = tuple([near + (at or 0) for at in event.numbers]) if inside else event.numbers
            reached = [to for to in range(self.cluster) if event.kind == "tma_load" and event.value >> to & 1]
            for to in reached or [self.rank]:
                far = to - self.rank << RANK_SHIFT
                yield event._replace(address=address + far, barrier=barrier + far, numbers=numbers)

    def named_at(self, number: int) -> int:
        """The address that stands for the first ring of a named barrier."""
        return (self.rank + 1 << RANK_SHIFT) + _NAMED + number * MOST_OPS

    def met(self, event: Event, uses: dict[int, int]) -> Iterator[Event]:
        """A use of a named barrier: the arrival that it means and, with the wait, a barrier of the role's threads."""
        meeting = self.named[event.address]
        if event.value != meeting.threads:
            because = f"named barrier {event.address} is for {event.value} threads, not {meeting.threads}"
            raise DifferenceError("EMIT_BAR", because, N=self.trips, line=event.line)
        phase, ring = divmod(uses.get(event.address, 0), meeting.often)
        uses[event.address] = uses.get(event.address, 0) + 1
        at = self.named_at(event.address) + ring
        yield event._replace(kind="arrive", address=at, value=1)
        if event.kind == "bar":
            yield event._replace(kind="wait", address=at, value=phase % 2)
            yield event

    def initialised(self, launch: Launch) -> set[At]:
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
            if address >> RANK_SHIFT == self.rank + 1 and not address & _NAMED and many.get(address) != 1:
                because = f"{name}[{slot}] is initialised {many.get(address, 0)} times"
                raise DifferenceError("EMIT_INIT", because, N=self.trips)
        return makers

    def started(self, threads: dict[At, tuple[Event, ...]]) -> None:
        """No thread uses a barrier before the block has met, but one that initialises all of them."""
        for at, given in threads.items():
            met = False
            left = sum([event.kind == "init" for event in given])
            for event in given:
                met = met or event.kind == "cluster_wait" or (self.cluster == 1 and self.meets(event))
                left -= event.kind == "init"
                alone = self.made[self.rank] == {at} and not left
                if (event.kind == "init" and met) or (event.kind in COMPARED and not (met or alone)):
                    because = "the block does not meet between the initialisation of barriers and their use"
                    raise self.differs(because, at, None, event, "EMIT_INIT")

    def differs(
        self, because: str, at: At, expected: object, found: Event | None, rule: str, step: Step | None = None
    ) -> DifferenceError:
        """The refusal for a thread."""
        where = {"op": step.place, "k": step.k} if step else {}
        told = {"expected": str(expected)} if expected is not None else {}
        line = {"line": found.line} if found else {}
        shown = {"found": self.shown(found)} if told or found else {}
        return DifferenceError(
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
        words |= dict.fromkeys(GROUP_WAITS, "{} groups open")
        told += [words[event.kind].format(event.value)] if event.kind in words else []
        return f"{event.kind} {', '.join(told)}".strip()

    def worker(self, wanted: list[Step], threads: dict[At, tuple[Event, ...]], warps: int, name: str) -> None:
        """Compare the threads of some warps with the ops of their roles."""
        known, done = -1, dict[At, Done]()
        while known != len(self.slots):  # once more when this role's own copies tell where slots are
            known = len(self.slots)
            done = {at: Walk(self, wanted, at, given, warps).run() for at, given in threads.items()}
        whole = [part.bars for part in done.values() if part.bars]
        for at, part in done.items():
            for number, many in part.bars:
                shared = many == self.kernel.threads or number in self.named
                if not shared and self.bars.setdefault(number, name) != name:
                    because = f"barrier {number} of threads is also that of {self.bars[number]}"
                    raise self.differs(because, at, None, None, "EMIT_BAR")
            if whole and part.bars != whole[0]:
                because = "threads of a role pass different barriers of threads"
                raise self.differs(because, at, whole[0], None, "EMIT_BAR")
        for place, step in enumerate(wanted):
            op, share = step.op, {at for at in done if place in done[at].performed}
            if op.op == "cp_async" and not share:
                raise self.differs("no thread copies here", min(done), step, None, "EMIT_ORDER", step)
            if op.op in GENERIC or op.op == "proxy_fence":
                continue
            many = sum([self.weights[at[1]] * done[at].arrivals.get(place, 1) for at in share])
            right = WARP * warps if op.op.startswith("mma") else 1
            right = max(many, 1) if op.op in ("wait", *ASYNC[:2]) else op.n if op.op in COUNTED else right
            if many != right:
                because = f"{many} arrivals, not {right}" if op.op in COUNTED else f"{many} threads do it, not {right}"
                raise self.differs(because, min(share or done), step, None, "EMIT_COUNT", step)
        self.handed_over(wanted, done)

    def handed_over(self, wanted: list[Step], done: dict[At, Done]) -> None:
        """What threads did before another one signals for them is separated from it by a barrier of threads."""
        latest = {at: part.latest(wanted) for at, part in done.items()}
        multiplied, copied = ({step.op.buf for step in wanted if step.op.op == kind} for kind in ("mma", "cp_async"))
        for place, step in enumerate(wanted):
            op, share = step.op, [at for at in done if place in done[at].performed]
            for one in done:
                near = [at for at in share if at[0] == one[0]]
                after: dict[str, list[At]] = {}
                if op.op in _SIGNALS and one not in share:
                    after |= dict.fromkeys(_TOUCHES, near or share)
                if op.op in ("write", "cp_async") or (op.op == "arrive" and one not in share):
                    after["bulk_wait"] = share
                if op.op in ("write", "cp_async") and op.buf in multiplied:  # a wait is for the warp's own part
                    after["mma_wait"] = share
                if op.op in ("read", "write", "mma") and op.buf in copied:  # a wait is for the thread's own copies
                    after["cp_async_wait"] = share
                for kind in _AFTER.get(op.op, ()):
                    after[f"{kind} {op.buf}[{step.buf}]"] = share
                for key, others in after.items():
                    marks = latest[one].get(key, ())
                    before = bisect_left(marks, (place,))
                    for other in others if before else ():
                        self.separate(wanted, marks[before - 1], one, done[other].performed[place], other)

    def separate(self, wanted: list[Step], last: Mark, one: At, mark: Mark, other: At) -> None:
        """Refuse what one thread did last and another one did first without a barrier of threads in between."""
        if one != other and last[1] >= mark[1] and (one[0] != other[0] or last[2] >= mark[2]):
            step, thread = wanted[mark[0]], WARP * one[0] + one[1]
            because = f"no barrier of threads between {wanted[last[0]]} of thread {thread} and {step}"
            raise self.differs(because, other, None, None, "EMIT_HANDOVER", step)
