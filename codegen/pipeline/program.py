"""What a kernel needs beside its pipeline: the warps of each role, and the C text of the ops that move or use data.

All synchronisation follows from the pipeline. Text of an op may use ``$A`` (the shared address of the slot of buffer A
that the op, or the last op before it on A, names; dots become underscores), ``$A_byte`` (the same from ``la_shared()``,
for ``la_shared_...``), ``$bar`` (the op's barrier), ``$mask`` (the CTAs of a multicast copy), and the C names ``k``
(the iteration), ``step`` and ``turn`` (see ``Loop``), ``t`` (the thread in its role), ``which`` (the role among equal
ones), and the kernel's parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from layoutalg.codegen.plans import upheld
from layoutalg.ground.check import Checker
from layoutalg.ground.record import Checked
from layoutalg.proofs.pipeline.document import LANES, Pipeline, Role
from layoutalg.proofs.pipeline.ops import COPIES, MOST_BYTES, Op
from layoutalg.proofs.pipeline.resources import WARPGROUP, limits_of
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia.registers import BLOCK_REGISTERS, SETMAXNREG, whole_units

CHECK = Checker("LA985", "cannot emit this pipeline")
WARP = LANES
_LIMITS = limits_of("sm_90a")
MOST_WARPS = _LIMITS["threads_per_block"] // WARP
MOST_REGISTERS = 240
"""Registers of a thread that multiplies, at most."""
SLOT_ALIGN = 1024
"""Alignment of slots: the period of the widest swizzle (PTX ISA 9.1, section 5.5.7)."""
ISSUED = (*COPIES, "tma_store")
"""Copies that one thread starts for all."""
BODIES = (*ISSUED, "cp_async", "read", "write", "mma", "mma_wait")
"""Ops that have text of their own; that of ``mma_wait`` comes behind it, that of ``mma`` does its ``mma_write`` too."""
MOST_NAMED = _LIMITS["named_barriers"]
"""Named barriers of a block, of which one is that of all threads."""


@dataclass(frozen=True, slots=True)
class Loop(Checked, code="LA985"):
    """The iterations of one role.

    Args:
        role: Name of the role; with several equal roles, without their numbers.
        bodies: (place, text) of its ops, places as in ``"loop[2]"``.
        steps: C expression of the iterations in one turn.
        unroll: Whether the compiler has to unroll them.
    """

    role: str
    bodies: tuple[tuple[str, str], ...]
    steps: str = "trips"
    unroll: bool = False


@dataclass(frozen=True, slots=True)
class Worker(Checked, code="LA985"):
    """Warps that run a role, or several roles one after the other in every turn.

    Args:
        loops: What they run.
        warps: Warps of one role.
        equal: Number of equal roles, NAME0, NAME1, ... with buffers NAME0, NAME1, ... of their own, and barriers with
            as many slots; 0: one role NAME.
        elected: Whether one thread runs everything.
        registers: Registers of a thread after ``setmaxnreg``; 0 leaves them.
        start: C text before everything.
        turn: C text at the start of a turn.
    """

    loops: tuple[Loop, ...]
    warps: int = 1
    equal: int = 0
    elected: bool = False
    registers: int = 0
    start: str = ""
    turn: str = ""

    def _validate(self) -> None:
        CHECK.integer(self.warps, "warps", 1, MOST_WARPS + 1)
        CHECK.integer(self.equal, "equal", 0, MOST_WARPS + 1)
        if self.registers and (self.registers not in SETMAXNREG or self.warps % WARPGROUP):
            least, most, step = SETMAXNREG[0], SETMAXNREG[-1], SETMAXNREG.step
            rule = f"must be 0, or a multiple of {step} from {least} to {most} for whole warpgroups"
            raise CHECK.malformed("registers", rule, self.registers)
        if self.elected and self.equal > 1:
            raise CHECK.malformed("equal", "must be 0 or 1 where one thread runs everything", self.equal)

    @property
    def all_warps(self) -> int:
        """The warps of all its roles."""
        return self.warps * max(1, self.equal)

    def names(self, loop: Loop) -> tuple[str, ...]:
        """The names of the roles that a loop stands for."""
        return tuple([f"{loop.role}{which}" for which in range(self.equal)]) or (loop.role,)


@dataclass(frozen=True, slots=True)
class Program(Checked, code="LA985"):
    """A pipeline, who runs it, and the text of its data ops.

    Args:
        pipeline: The pipeline; buffers state their bytes.
        workers: Every role once, in the order of warps.
        parameters: (C type, name) of the kernel's parameters; ``int* status`` comes behind them.
        trips: C expression of N, for loops without turns.
        turns: C expression of the number of turns; empty if there are none: every loop runs once.
        plans: (buffer, plan) of the copies, whose bytes must be those of the pipeline.
        before: Text before the kernel: device functions, tables.
        start: C text at the start of the kernel, in the scope of all roles.
    """

    pipeline: Pipeline
    workers: tuple[Worker, ...]
    parameters: tuple[tuple[str, str], ...]
    trips: str = "0"
    turns: str = ""
    plans: tuple[tuple[str, TensorMapPlan], ...] = ()
    before: str = ""
    start: str = ""

    def _validate(self) -> None:
        roles = {role.name: role for role in self.pipeline.roles}
        run = [name for worker in self.workers for loop in worker.loops for name in worker.names(loop)]
        if sorted(run) != sorted(roles):
            raise CHECK.malformed("workers", f"must run each role once: {', '.join(roles)}", run)
        for name, slots in self.pipeline.rings.items():
            CHECK.integer(slots, f"slots of {name}", 1)
        for name, barrier in self.pipeline.barriers:
            CHECK.integer(barrier.count, f"count of {name}", 1, MOST_BYTES + 1)
        if self.pipeline.tensors:
            rule = "must have its buffers in shared memory or registers: tcgen05 and tensor memory are not emitted"
            raise CHECK.malformed("pipeline", rule, sorted(self.pipeline.tensors))
        for worker in self.workers:
            for loop in worker.loops:
                named = [roles[name] for name in worker.names(loop)]
                self._loop(worker, loop, named)
                self._accumulators(worker, loop, named)
            self._copies([roles[worker.names(loop)[0]] for loop in worker.loops])
        self._turns()
        for name, plan in self.plans:
            self._plan(name, upheld(plan))
        if sum([worker.all_warps for worker in self.workers]) > MOST_WARPS:
            raise CHECK.malformed("workers", f"must have at most {MOST_WARPS} warps", "more")

    def _loop(self, worker: Worker, loop: Loop, roles: list[Role]) -> None:
        places = {f"{part}[{place}]": op for part, place, op in roles[0].ops()}
        for place, op in places.items():
            if rule := self._unfit(worker, roles[0], op):
                raise CHECK.malformed(f"{loop.role}.{place}", rule, op)
        for role in roles:
            if role.warps not in (0, worker.warps) or role.registers not in (0, worker.registers):
                rule = f"must have the {role.warps} warps and {role.registers} registers of the pipeline"
                raise CHECK.malformed(role.name, rule, (worker.warps, worker.registers))
        for place, _ in loop.bodies:
            if CHECK.choice(place, f"bodies of {loop.role}", places) and places[place].op not in BODIES:
                raise CHECK.malformed(place, f"must be one of {', '.join(BODIES)}", places[place].op)
        for place, op in places.items():
            if op.op in (*ISSUED, "cp_async") and place not in dict(loop.bodies):
                raise CHECK.malformed(f"bodies of {loop.role}", f"must have {place}, {op}", tuple(dict(loop.bodies)))
        for which, role in enumerate(roles):
            if self._ops(role, which) != self._ops(roles[0], 0):
                raise CHECK.malformed(role.name, f"must have the ops of {roles[0].name}", role.name)
        if not roles[0].loop and any(_moves(op) for op in roles[0].post):
            raise CHECK.malformed(
                roles[0].name, "must have a loop before ops whose index is the number of its iterations", ""
            )
        if self.turns and (roles[0].trip or (roles[0].pre and loop is not worker.loops[0])):
            raise CHECK.malformed(roles[0].name, "must run N times, and begin with its loop, as one of several", "")
        if not self.turns and len(worker.loops) > 1:
            raise CHECK.malformed("turns", "must be stated where roles alternate", self.turns)
        if loop is not worker.loops[0] and any(op.op == "bar_sync" for op in places.values()):
            rule = "must not wait at named barriers: it runs between iterations of another role"
            raise CHECK.malformed(loop.role, rule, "")

    def _unfit(self, worker: Worker, role: Role, op: Op) -> str:
        """What an op would have to be for a worker to run it; empty if it can."""
        threads, whole = 1 if worker.elected else worker.warps * WARP, sorted(self.arrivals(worker))
        if op.op == "mma_arrive":
            return "must be mma_wait and arrive: it is tcgen05.commit, and tcgen05 is not emitted"
        if op.op in ("arrive_tx", "expect") and op.to:
            return "must be for the own barrier"
        if op.op == "arrive" and len(op.to) > 1 and any(list(ranks) != sorted(ranks) for ranks in op.to):
            return "must have CTAs in ascending order"
        if op.op == "arrive" and worker.elected and op.n > 1 and op.to:
            return "must arrive once in other blocks"
        if op.op == "arrive" and not worker.elected and op.n not in whole:
            return f"must have an n of {whole}: one thread, each warp, or every thread"
        if op.op == "cp_async_arrive" and op.n != threads:
            return f"must have the n {threads}: each thread arrives for its own copies"
        if op.op == "cp_async_arrive" and (shared := self._shared_accesses(role)):
            return f"must be cp_async_wait and arrive where {shared} is handed over too: it releases copies alone"
        if op.is_named and worker.elected:
            return "must be run by whole warps: one thread cannot meet others at a named barrier"
        if op.is_named and not 0 < op.id < MOST_NAMED:
            return f"must have an id from 1 to {MOST_NAMED - 1}: 0 is the barrier of the block"
        return ""

    def _shared_accesses(self, role: Role) -> str:
        """Buffers that a role reads or writes and another one accesses."""
        mine = {op.buf for _, _, op in role.ops() if op.op in ("read", "write")}
        others = {op.buf for other in self.pipeline.roles if other is not role for _, _, op in other.ops()}
        return ", ".join(sorted(mine & others))

    def _copies(self, roles: Sequence[Role]) -> None:
        """A thread counts groups of copies once, whatever role it runs."""
        users = [role.name for role in roles if any(op.op.startswith("cp_async") for _, _, op in role.ops())]
        if len(users) > 1:
            rule = f"must not copy by the threads of {users[0]}, whose groups it would count"
            raise CHECK.malformed(users[1], rule, users)

    def _turns(self) -> None:
        """Roles that take turns may wait for each other where no circle can come of it.

        The document lets all roles run at once. Here the roles at place p of a worker's loops begin a turn when those
        at p - 1 are through. If barriers join only roles at equal places that run equally many iterations in a turn,
        and a wait only needs what its own and earlier iterations do, then whatever a role at place p of turn t waits
        for is at p and of a turn up to t: by induction over (t, p) all of it happens, as it does in the document.
        """
        roles = {role.name: role for role in self.pipeline.roles}
        found = [
            (place, loop.steps, roles[name])
            for worker in self.workers
            for place, loop in enumerate(worker.loops)
            for name in worker.names(loop)
        ]
        if not any(place and op.op == "wait" for place, _, role in found for _, _, op in role.ops()):
            return
        rings = self.pipeline.rings
        ends: dict[str, list[tuple[int, str, str, bool, int | None]]] = {}
        for place, steps, role in found:
            for part, at, op in role.ops():
                if bar := op.bar or f"bar {op.id}" * op.is_named:
                    moves = part != "pre" and op.idx_abs is None and not op.flip
                    far = op.off + op.ph * rings.get(op.bar, 1) if moves else None
                    waits = op.op in ("wait", "bar_sync")
                    ends.setdefault(bar, []).append((place, steps, f"{role.name}.{part}[{at}]", waits, far))
        for bar, joined in ends.items():
            first = joined[0]
            for place, steps, where, waits, far in joined:
                if (place, steps) != first[:2] or far is None:
                    rule = f"must run as {first[2]} does, which has {bar} too: some role waits between those of another"
                    raise CHECK.malformed(where, rule, steps)
                late = [other for *_, other, is_wait, from_ in joined if waits and not is_wait and (from_ or 0) < far]
                if late:
                    raise CHECK.malformed(where, f"must not need what {late[0]} does in a later iteration", bar)

    def _accumulators(self, worker: Worker, loop: Loop, roles: list[Role]) -> None:
        """The proof covers the waits for multiplies only if the pipeline states what they write and who reads it."""
        registers = self.pipeline.registers
        for which, role in enumerate(roles):
            first = worker.names(worker.loops[0])[which]
            if role.threads_of not in ("", first) or (role.threads_of and loop is worker.loops[0]):
                rule = "must be the first role of its worker, behind which it runs"
                raise CHECK.malformed(f"threads_of of {role.name}", rule, role.threads_of)
            mine = [one for one in self.pipeline.roles if role.name in (one.name, one.threads_of)]
            ops = [op for one in mine for _, _, op in one.ops() if op.buf in registers]
            sums = {op.buf for op in ops if op.op == "mma_write"}
            unread = sums - {op.buf for op in ops if op.op in ("read", "mma")}
            if unread:
                raise CHECK.malformed(role.name, "must read its accumulators, or a role on its threads", sorted(unread))
            if not sums and any(op.op == "mma" for _, _, op in role.ops()):
                rule = "must state its accumulators: an mma_write of a buffer in registers behind each mma"
                raise CHECK.malformed(role.name, rule, "mma")

    def _ops(self, role: Role, which: int) -> list[tuple[str, int, str, dict[str, object]]]:
        """What the text of a role depends on: of a barrier its slots, of the only slot no index."""
        buffers = dict(self.pipeline.buffers)
        found: list[tuple[str, int, str, dict[str, object]]] = []
        for part, place, op in role.ops():
            rest: dict[str, object] = {key: value for key, value in op.to_json().items() if key not in ("buf", "src")}
            if op.bar:
                rest["bar"] = self.pipeline.rings[op.bar]
            if op.op == "arrive" and rest["bar"] == 1 and op.off > 0:
                del rest["off"]
            for entry in [name for name in (op.buf, op.src) if name]:  # those of equal roles follow each other
                mine = which * entry.endswith(str(which))
                ring = buffers[entry]
                rest[own(entry, which)] = list(buffers).index(entry) - mine, ring.slots, ring.bytes
            found.append((part, place, own(op.buf, which), rest))
        return found

    def arrivals(self, worker: Worker) -> set[int]:
        """The numbers of arrivals that the threads of a role can make together."""
        return {1, worker.warps, worker.warps * WARP}

    def _plan(self, name: str, plan: TensorMapPlan) -> None:
        buffers = dict(self.pipeline.buffers)
        CHECK.choice(name, "plans", buffers)
        if buffers[name].bytes < plan.smem_bytes:
            raise CHECK.malformed(
                f"bytes of {name}", f"must be at least the plan's {plan.smem_bytes}", buffers[name].bytes
            )
        if SLOT_ALIGN % plan.smem_align_bytes:
            raise CHECK.malformed(f"plan of {name}", f"must need at most {SLOT_ALIGN} bytes of alignment", plan)
        for role in self.pipeline.roles:
            for part, place, op in role.ops():
                if op.op == "tma_load" and op.buf == name and self.pipeline.size(op) != plan.expect_tx_bytes:
                    where = f"bytes of {role.where(part, place)}"
                    raise CHECK.malformed(where, f"must be the plan's {plan.expect_tx_bytes}", self.pipeline.size(op))

    def firsts(self) -> Iterator[tuple[Worker, int]]:
        """The workers with their first warps."""
        first = 0
        for worker in self.workers:
            yield worker, first
            first += worker.all_warps

    def role_warps(self) -> tuple[tuple[str, int, int], ...]:
        """Return (name, first warp, warps) of every role."""
        return tuple([
            (name, first + which * worker.warps, worker.warps)
            for worker, first in self.firsts()
            for loop in worker.loops
            for which, name in enumerate(worker.names(loop))
        ])  # fmt: skip

    @property
    def warps(self) -> int:
        """The warps of a block."""
        return sum([worker.all_warps for worker in self.workers])


def consumer_registers(consumers: int, loader: int) -> int:
    """Return the registers of a thread of each of some warpgroups, beside a warpgroup whose threads keep ``loader``.

    Example:
        >>> [consumer_registers(consumers, 24) for consumers in (1, 2, 3)]
        [240, 240, 160]
    """
    left = BLOCK_REGISTERS // (WARPGROUP * WARP) - loader
    return min(whole_units(left // consumers), MOST_REGISTERS)


def _moves(op: Op) -> bool:
    return bool(op.bar or op.buf) and op.idx_abs is None


def own(name: str, which: int) -> str:
    """Return a buffer's name without the number of the role it belongs to."""
    return name.removesuffix(str(which)) + "_" if name.endswith(str(which)) else name
