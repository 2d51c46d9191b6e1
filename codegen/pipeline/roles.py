"""CUDA text of the roles of a program: their ops in order, with counters of slots and parities.

Slots and parities are counters, one pair per number of slots; an op with an offset derives its own. A wait that gives
up lets the role run on without waiting, so that the kernel ends with a status that names it.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Final

from layoutalg.codegen.pipeline.memory import Memory
from layoutalg.codegen.pipeline.program import CHECK, ISSUED, MOST_NAMED, WARP, Loop, Program, Worker
from layoutalg.proofs.pipeline.expansion import Meeting
from layoutalg.proofs.pipeline.ops import Op, Part
from layoutalg.proofs.pipeline.resources import BARRIER_BYTES
from layoutalg.targets.nvidia.registers import launch_registers

_CALLS: Final = {
    "arrive_tx": "{issuer}la_arrive_expect_tx({bar}, {bytes}u);",
    "expect": "{issuer}la_expect_tx({bar}, {bytes}u);",
    "mma_commit": "la_wgmma_commit();",
    "mma_wait": "la_wgmma_wait<{n}>();",
    "bulk_commit": "{issuer}la_store_commit();",
    "bulk_wait": "{issuer}la_store_wait_read<{n}>();",
    "cp_async_commit": "la_cp_async_commit();",
    "cp_async_wait": "la_cp_async_wait<{n}>();",
    "cp_async_arrive": "la_cp_async_arrive({bar});",
    "proxy_fence": "la_fence_async();",
    "bar_sync": "la_role_barrier({id}, {met});",
    "bar_arrive": "la_role_arrive({id}, {met});",
}
"""Ops that are one call."""


def indented(text: str, by: int) -> str:
    """Return the lines of a text further in."""
    return "".join([(" " * by + line).rstrip() + "\n" for line in text.splitlines()])


@dataclass(slots=True)
class _Threads:
    """What threads of a role did since they last met: buffers read and written, waits of the issuer alone.

    ``started`` are the buffers that multiplies read and cp.async writes, which a wait of each thread ends for itself.
    """

    read: set[str] = field(default_factory=set)
    wrote: set[str] = field(default_factory=set)
    waited: bool = False
    started: dict[str, set[str]] = field(default_factory=lambda: {"mma": set(), "cp_async": set()})

    def join(self, other: _Threads) -> _Threads:
        started = {kind: names | other.started[kind] for kind, names in self.started.items()}
        return _Threads(self.read | other.read, self.wrote | other.wrote, self.waited or other.waited, started)

    def meet(self) -> None:
        self.read, self.wrote, self.waited = set(), set(), False

    def must_meet(self, op: Op) -> bool:
        """Whether an op needs what other threads of the role did, or undoes what they still use."""
        if op.op in ("write", "cp_async"):
            return self.waited or op.buf in self.read | self.wrote
        if op.op in ("read", "mma"):
            return op.buf in self.wrote
        return op.op in ("arrive", "arrive_tx", *ISSUED) and bool(self.read or self.wrote)

    def note(self, op: Op) -> None:
        if op.op == "bar_sync":
            self.meet()
        if op.op in self.started:
            self.started[op.op].add(op.buf)
        ended = self.started.get(op.op.removesuffix("_wait"), set()) if op.op.endswith("_wait") else {op.buf}
        self.read |= ended if op.op in ("read", "mma_wait") else set()
        self.wrote |= ended if op.op in ("write", "cp_async_wait") else set()
        self.waited |= op.op == "bulk_wait"


def _mask(op: Op) -> str:
    """The CTAs that an op reaches, a bit each, as a C expression."""
    masks = [sum([1 << rank for rank in ranks]) for ranks in op.reaches]
    everyone = (1 << len(masks)) - 1
    if len(masks) > 1 and masks == [everyone - (1 << rank) for rank in range(len(masks))]:
        return f"({everyone:#x}u ^ 1u << la_cluster_rank())"
    found = f"{masks[-1]:#x}u"
    for cta, mask in enumerate(masks[:-1]):
        found = f"(la_cluster_rank() == {cta} ? {mask:#x}u : {found})"
    return found


def _arrivals(op: Op, bar: str, many: int, ordinary: bool) -> list[str]:
    """The calls of a thread's arrivals, on the own barrier or, of one, on those of the CTAs that it reaches.

    A role without ordinary accesses has nothing to release: its multiplies are over behind the wait for them.
    """
    if not op.to:
        return [f"la_arrive({bar});" if many == 1 else f"la_arrive_many({bar}, {many});"]
    call = "la_arrive_remote" if ordinary else "la_arrive_remote_relaxed"
    if len(op.to) == 1:
        return [f"{call}({bar}, {rank});" for rank in op.to[0]]
    most = max(rank for ranks in op.to for rank in ranks)
    return [f"for (la_u32 to = 0; to <= {most}; ++to) if ({_mask(op)} >> to & 1) {call}({bar}, to);"]


class Writer:
    """Writes the text of roles; collects the waits that can give up."""

    def __init__(self, program: Program, memory: Memory, delays: int | None) -> None:
        self.program, self.memory, self.delays, self.places = program, memory, delays, itertools.count()
        self.rings, self.registers = program.pipeline.rings, program.pipeline.registers
        self.shared = {op.bar for op in program.pipeline.ops() if op.reaches}  # barriers that other CTAs act on
        self.waits: list[tuple[str, str]] = []
        named = {op.id for op in program.pipeline.ops() if op.is_named}
        self.free = [number for number in range(1, MOST_NAMED) if number not in named]  # 0 is that of __syncthreads

    def worker(self, worker: Worker, first: int) -> str:
        """Return the text of a worker's warps."""
        last = first + worker.all_warps
        names = [", ".join(worker.names(loop)) for loop in worker.loops]
        above = f"warp >= {first} && " if first else ""
        ctas = next(role.ctas for role in self.program.pipeline.roles if role.name == worker.names(worker.loops[0])[0])
        there = f" && {sum([1 << rank for rank in ctas]):#x} >> la_cluster_rank() & 1" if ctas else ""
        lines = [f"    if ({above}warp < {last}{there}) {{  // {'; '.join(names)}"]
        if worker.registers:
            launched = launch_registers(self.program.warps * WARP)
            how = "dec" if worker.registers < launched else "inc"
            lines += [f"        la_registers_{how}<{worker.registers}>();"] * (worker.registers != launched)
        if worker.elected:
            lines.append(f"        if (warp == {first} && la_elect()) {{")
        else:
            many = worker.warps * WARP
            group = f"(warp - {first}) / {worker.warps}" if worker.equal else "0"
            before = f" - {first * WARP}" if first else ""
            lines.append(f"        const la_u32 which = {group}, t = (threadIdx.x{before}) % {many};")
            lines.append("        const bool leader = la_elect(), issuer = leader && t < 32;")
        by = 12 if worker.elected else 8
        number = self.take(max(1, worker.equal)) if worker.warps > 1 and not worker.elected else 0
        text = "\n".join(lines) + "\n" + self._loops(worker, by, f"{number} + which" if worker.equal else f"{number}")
        return text + "        }\n" * worker.elected + "    }\n"

    def take(self, many: int) -> int:
        """The first of numbers of role barriers that follow each other; the document names others."""
        for number in self.free:
            mine = range(number, number + many)
            if set(mine) <= set(self.free):
                self.free = [other for other in self.free if other not in mine]
                return number
        rule = f"must have at most {MOST_NAMED - 1} roles of several warps, less one for each barrier it names"
        raise CHECK.malformed("workers", rule, [name for name, _, _ in self.program.role_warps()])

    def met(self, op: Op) -> int:
        """The threads that meet at the named barrier of an op."""
        pipeline = self.program.pipeline
        here = [pipeline.roles_of(cta) for cta in range(pipeline.cluster)]
        users = [roles for roles in here if any(each.id == op.id for role in roles for _, _, each in role.ops())]
        many = {Meeting.of(op.id, roles).threads for roles in users}
        if len(many) > 1:
            raise CHECK.malformed(f"named barrier {op.id}", "must state its threads: CTAs have others", sorted(many))
        return many.pop()

    def _loops(self, worker: Worker, by: int, ids: str) -> str:
        """The text of a worker's roles, without and with turns."""
        roles = [
            _Role(self, worker, loop, "abcdefgh"[place] if place else "", ids)
            for place, loop in enumerate(worker.loops)
        ]
        start, pad = indented(worker.start, by), " " * by
        inner = by + 8 if self.program.turns else by + 4
        texts = [role.parts(by, inner) for role in roles]
        before = "".join([role.declared(pad) + pre for role, (pre, _, _) in zip(roles, texts, strict=True)])
        after = "".join([post for _, _, post in texts])
        if not self.program.turns:
            (_, loop, _), trip = texts[0], roles[0].role.trip
            head = f"{pad}const int trips = {self.program.trips}{f' {trip:+d}' if trip else ''};\n{pad}int k = 0;\n"
            head += f"{pad}for (; k < trips; ++k) {{\n{loop}{pad}}}\n"
            return start + before + head * bool(loop) + after
        head = f"{pad}const int turns = {self.program.turns};\n"
        loops = indented(worker.turn, by + 4)
        for role, (_, loop, _) in zip(roles, texts, strict=True):
            head += f"{pad}const int {role.steps} = {role.loop.steps};\n"
            head += f"{pad}const int {role.trips} = turns * {role.steps};\n" * (role.trips in role.written)
            head += f"{pad}int {role.k} = 0;\n"
            loops += f"{pad}    #pragma unroll\n" * role.loop.unroll
            loops += f"{pad}    for (int step = 0; step < {role.steps}; ++step, ++{role.k}) {{\n{loop}{pad}    }}\n"
        return start + head + before + f"{pad}for (int turn = 0; turn < turns; ++turn) {{\n{loops}{pad}}}\n" + after


class _Role:
    """Writes the ops of one role."""

    def __init__(self, writer: Writer, worker: Worker, loop: Loop, suffix: str, barrier_id: str) -> None:
        self.writer, self.worker, self.loop, self.suffix, self.barrier_id = writer, worker, loop, suffix, barrier_id
        roles = {role.name: role for role in writer.program.pipeline.roles}
        self.equals = [roles[name] for name in worker.names(loop)]
        self.role = self.equals[0]
        self.bodies, self.depths, self.written = dict(loop.bodies), set[int](), ""
        self.k, self.steps, self.trips = f"k{suffix}", f"steps{suffix}", f"trips{suffix}"
        self.reset, self.since = writer.program.pipeline.reset, f"since{suffix}"

    def parts(self, by: int, inner: int) -> tuple[str, str, str]:
        """The texts before, in and after the loop. A first pass through the loop finds what its iterations share."""
        seen = _Threads()
        pre = self.ops("pre", self.role.pre, seen, by)
        trial, kept = seen.join(_Threads()), len(self.writer.waits)
        self.ops("loop", self.role.loop, trial, inner)
        del self.writer.waits[kept:]
        seen = seen.join(trial)
        loop = self.ops("loop", self.role.loop, seen, inner)
        post = self.ops("post", self.role.post, seen, by)
        self.written = pre + loop + post
        if self.reset and post:
            post = self.counted(by) + post
        return pre, loop + self.advance(inner) * bool(loop), post

    def pair(self, depth: int) -> tuple[str, str]:
        """The names of the counters of rings with this many slots."""
        return f"slot{depth}{self.suffix}", f"parity{depth}{self.suffix}"

    def counters(self) -> list[tuple[int, str, str]]:
        """The counters that some op uses, by number of slots."""
        pairs = [(depth, *self.pair(depth)) for depth in sorted(self.depths)]
        return [each for each in pairs if each[1] in self.written or each[2] in self.written]

    def each(self, ring: str, single: str) -> list[str]:
        """Text for each counter, where its rings have several slots and where they have one."""
        return [
            (ring if depth > 1 else single).format(depth=depth, slot=slot, parity=parity, k=self.k)
            for depth, slot, parity in self.counters()
        ]

    def declared(self, pad: str) -> str:
        """The counters' declarations."""
        zeros = [*self.each("{slot} = 0, {parity} = 0", "{parity} = 0"), *[f"{self.since} = 0"] * bool(self.reset)]
        return f"{pad}la_u32 {', '.join(zeros)};\n" if zeros else ""

    def advance(self, by: int) -> str:
        """The counters' step to the next iteration."""
        steps = self.each("if (++{slot} == {depth}) {slot} = 0, {parity} ^= 1;", "{parity} ^= 1;")
        if self.reset:
            zeros = [f"{self.since} = 0", *self.each("{slot} = 0, {parity} = 0", "{parity} = 0")]
            steps.append(f"if (++{self.since} == {self.reset}) {', '.join(zeros)};")
        return "".join([f"{' ' * by}{step}\n" for step in steps])

    def counted(self, by: int) -> str:
        """The counters behind a loop in which they started again: those of its number of iterations."""
        found = self.each("{slot} = {k} % {depth}, {parity} = {k} / {depth} & 1;", "{parity} = {k} & 1;")
        return "".join([f"{' ' * by}{each}\n" for each in found])

    def ops(self, part: Part, ops: Sequence[Op], seen: _Threads, by: int) -> str:
        """The statements of a part; ops under the same condition share one ``if``."""
        lines: list[str] = []
        last = ""
        current: dict[str, str] = {}
        for place, op in enumerate(ops):
            private = op.buf in self.writer.registers
            if op.is_left_out(part) or (private and f"{part}[{place}]" not in self.bodies):
                continue
            condition = self._condition(part, op)
            if condition != last:
                lines += [" " * by + "}"] * bool(last) + [" " * by + f"if ({condition}) {{"] * bool(condition)
                last = condition
            inside = " " * (by + 4 * bool(condition))
            if not private:
                for ring in (op.buf, op.src):
                    self._name_slot(part, op, ring, current)
            for line in (
                self._body(f"{part}[{place}]", op, current)  # threads do not meet about registers of their own
                if private
                else self._op(place, part, op, seen, current)
            ):
                lines.append(inside + line if line else "")
        lines += [" " * by + "}"] * bool(last)
        return "".join([line + "\n" for line in lines])

    def _condition(self, part: Part, op: Op) -> str:
        """When an op of a loop runs."""
        leasts = {self.k: op.first}
        if op.idx_abs is None and op.op != "wait" and (op.bar or op.buf):
            index = self.since if self.reset and part == "loop" else self.k
            leasts[index] = max(leasts.get(index, 0), -op.off)
        if part == "pre":
            return ""
        parts = [f"{k} >= {least}" for k, least in leasts.items() if least > 0]
        return " && ".join(parts + [f"{self.k} < {self.trips} - {op.last}"] * (op.last > 0))

    def _slot(self, part: Part, op: Op, ring: str) -> tuple[str, str]:
        """C expressions of an op's slot and of its phase's parity, the latter without its constant part."""
        depth = self.writer.rings[ring]
        if part == "pre" or op.idx_abs is not None:
            index = op.off if op.idx_abs is None else op.idx_abs
            return f"{index % depth}", f"{index // depth % 2}"
        self.depths.add(depth)
        slot, parity = self.pair(depth)
        turns, rest = divmod(op.off, depth)
        if turns % 2:
            parity = f"({parity} ^ 1)"
        if depth == 1:
            return "0", parity
        if not rest:
            return slot, parity
        wraps = f"{slot} >= {depth - rest}"
        return f"({slot} + {rest} - ({wraps} ? {depth} : 0))", f"({parity} ^ ({wraps}))"

    def _barrier(self, part: Part, place: int, op: Op) -> str:
        """The address of an op's barrier; equal roles may have their own."""
        slot, _ = self._slot(part, op, op.bar)
        at = self.writer.memory.barriers
        bars = [at[getattr(role, part)[place].bar] - min(at.values()) for role in self.equals]
        first = f"{bars[-1]}"
        if set(bars) != {bars[-1]}:
            first = f"({''.join([f'which == {which} ? {bar} : ' for which, bar in enumerate(bars[:-1])])}{first})"
        return f"barriers + {first} + {BARRIER_BYTES} * {slot}" if slot != "0" else f"barriers + {first}"

    def _name_slot(self, part: Part, op: Op, ring: str, current: dict[str, str]) -> None:
        """Note the address of the slot that an op names."""
        if not ring:
            return
        first, stride = self.writer.memory.buffers[ring]
        depth = self.writer.rings[ring]
        slot, _ = self._slot(part, op, ring)
        mine = self.worker.equal and ring.endswith("0")
        name = (ring[:-1] if mine else ring).replace(".", "_")
        parts = [f"{first}"] if first else []
        parts += [f"{stride} * {slot}"] if slot != "0" else []
        parts += [f"{stride * depth} * which"] if mine else []
        rest = "".join([f" + {part}" for part in parts])
        for key, base in ((name, "shared"), (f"{name}_byte", "first_byte")):
            current[key] = f"({base}{rest})" if rest else base

    def _op(self, place: int, part: Part, op: Op, seen: _Threads, current: dict[str, str]) -> list[str]:
        """The lines of one op."""
        lines, elected, where = self._delay(part), self.worker.elected, f"{part}[{place}]"
        single = not elected and self.worker.warps == 1
        per_warp = op.op == "arrive" and not elected and op.n == self.worker.warps
        if not elected and seen.must_meet(op) and not (op.op == "arrive" and (per_warp or op.n > 1)):
            many = self.worker.warps * WARP
            lines.append("la_sync_warp();" if single else f"la_role_barrier({self.barrier_id}, {many});")
            if not self._condition(part, op):  # else some iterations do not meet here
                seen.meet()
        seen.note(op)
        bar = self._barrier(part, place, op) if op.bar else ""
        issuer = "" if elected else "if (issuer) "
        if call := _CALLS.get(op.op):
            met = self.writer.met(op) if op.is_named else 0
            lines.append(call.format(issuer=issuer, bar=bar, bytes=op.bytes, n=op.n, id=op.id, met=met))
            lines += self._body(where, op, current) if where in self.bodies else []
        elif op.op == "wait":
            _, parity = self._slot(part, op, op.bar)
            turned = (op.ph + op.flip) % 2
            parity = f"{1 - int(parity)}" if turned and parity.isdigit() else f"{parity} ^ 1" if turned else parity
            self.writer.waits.append((", ".join(self.worker.names(self.loop)), str(op)))
            k = self.k if part != "pre" else "0"
            how = "_cluster" if op.bar in self.writer.shared else ""
            lines.append(f"la_wait_phase{how}({bar}, {parity}, {len(self.writer.waits)}, {k}, gave_up);")
        elif op.op == "arrive":
            lines += ["la_sync_warp();"] if per_warp else []
            who = "if (leader) " if per_warp else issuer if op.n == 1 else ""
            many = op.n if elected else 1
            accesses = [other for _, _, other in self.role.ops() if other.op in ("read", "write")]
            ordinary = any(other.buf not in self.writer.registers for other in accesses)
            lines += [who + each for each in _arrivals(op, bar, many, ordinary)]
        elif where in self.bodies:
            names = current | ({"bar": f"({bar})"} if bar else {}) | ({"mask": _mask(op)} if op.reaches else {})
            lines += self._body(where, op, names)
        return lines

    def _delay(self, part: Part) -> list[str]:
        """The call that delays an op, if there is one."""
        seed, k = self.writer.delays, self.k if part != "pre" else "0"
        return [] if seed is None else [f"la_delay({seed}u, {next(self.writer.places)}, {k});"]

    def _body(self, where: str, op: Op, names: dict[str, str]) -> list[str]:
        text = self.bodies[where]
        try:
            made = Template(text).substitute(names)
        except (KeyError, ValueError) as error:
            rule = f"must use only {', '.join('$' + name for name in names)}"
            raise CHECK.malformed(f"body of {self.loop.role}.{where}", rule, str(error)) from None
        lines = made.splitlines()
        issued = op.op in ISSUED and not self.worker.elected
        return ["if (issuer) {", *[f"    {line}" for line in lines], "}"] if issued else lines
