"""Pipelines as values: roles with their ops, barriers, buffers; read from and written to ``layoutalg/pipeline/1``.

What a document means is stated in docs/pipelines.md. Each op is listed once, in ``OPS``, with its entries.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from layoutalg.ground.check import Checker
from layoutalg.ground.document import Reader, load_json
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Checked
from layoutalg.targets.registry import lookup

SCHEMA: Final = "layoutalg/pipeline/1"
CHECK = Checker("LA970", "invalid pipeline")

Part: TypeAlias = Literal["pre", "loop", "post"]
PARTS: tuple[Part, ...] = ("pre", "loop", "post")

_ON_BARRIER = ("bar", "off", "idx_abs", "ph")
_NAMED = ("id", "threads")
_ON_BUFFER = ("buf", "off", "idx_abs")
OPS: Final[Mapping[str, tuple[str, ...]]] = {
    "wait": (*_ON_BARRIER, "flip"),
    "arrive": (*_ON_BARRIER, "n", "to"),
    "expect": (*_ON_BARRIER, "bytes", "to"),
    "arrive_tx": (*_ON_BARRIER, "bytes", "to"),
    "tma_load": ("buf", *_ON_BARRIER, "bytes", "multicast"),
    "dsmem_copy": ("src", "buf", *_ON_BARRIER, "bytes", "to"),
    "read": _ON_BUFFER,
    "write": _ON_BUFFER,
    "mma": _ON_BUFFER,
    "mma_write": _ON_BUFFER,
    "mma_commit": (),
    "mma_wait": ("n",),
    "mma_arrive": (*_ON_BARRIER, "to"),
    "tma_store": _ON_BUFFER,
    "bulk_commit": (),
    "bulk_wait": ("n",),
    "cp_async": _ON_BUFFER,
    "cp_async_commit": (),
    "cp_async_wait": ("n",),
    "cp_async_arrive": (*_ON_BARRIER, "n"),
    "proxy_fence": (),
    "bar_sync": _NAMED,
    "bar_arrive": _NAMED,
}
"""Each op with the entries it may have."""
GROUPS: Final = {
    "mma": ("mma_commit", "mma_wait"),
    "tma_store": ("bulk_commit", "bulk_wait"),
    "cp_async": ("cp_async_commit", "cp_async_wait"),
}
"""Kinds of asynchronous accesses that are waited for in groups: the ops that close a group and that wait."""
GROUPED: Final = {kind: kind for kind in GROUPS} | {"mma_write": "mma"}
"""The ops that start such an access, with its kind."""
SIGNALS: Final = {"mma_arrive": "mma", "cp_async_arrive": "cp_async"}
"""Ops that arrive when all such accesses of the role before them have finished."""
COUNTED: Final = ("arrive", "cp_async_arrive")
"""Ops that arrive ``n`` times, by default once."""
COPIES: Final = ("tma_load", "dsmem_copy")
"""Asynchronous copies whose end a barrier knows by their bytes."""
WRITES: Final = (*COPIES, "write", "cp_async", "mma_write")
GENERIC: Final = ("read", "write", "cp_async")
"""Accesses by the generic proxy."""
SPACES: Final = ("shared", "tensor", "register")
NOT_SHARED: Final = ("read", "write", "mma", "mma_write")
"""Ops that can access tensor memory and registers; the last of them accesses nothing else."""

MOST_BYTES: Final = (1 << 20) - 1
"""bytes: outstanding in one phase of a barrier; also its most arrivals (PTX ISA 9.1, 9.7.13.15.1)"""
LANES: Final = lookup("sm_90a").lanes
"""Threads of a warp, on every target that has such barriers."""
MOST_CTAS: Final = 16
"""blocks: of a cluster; bits of the mask of a multicast copy (PTX ISA 9.1, cp.async.bulk.tensor)"""
MOST_SLOTS: Final = 1 << 10
MOST_OPS: Final = 1 << 10
FARTHEST: Final = 1 << 20
"""iterations: the largest distance of an index from k"""


@dataclass(frozen=True, slots=True)
class Op(Checked, code="LA970"):
    """One op of a role; see docs/pipelines.md for each ``op``.

    Args:
        op: A name in ``OPS``.
        bar: Barrier.
        buf: Buffer.
        src: Buffer that a ``dsmem_copy`` reads, at the same index.
        off: The index is k + off.
        idx_abs: The index itself, instead.
        ph: Added to the phase index.
        flip: Whether a wait inverts its parity operand.
        n: Arrivals of an ``arrive`` or a ``cp_async_arrive``; the newest groups that a wait for groups leaves open.
        bytes: Bytes expected or delivered; None for a copy that fills its buffer.
        first: In a loop: the first k that runs it.
        last: In a loop: how many of the last iterations do not run it.
        to: Ranks of the CTAs whose barrier is meant, by the rank of the CTA that runs it, or one entry for all; none:
            its own.
        multicast: The same for a copy: the CTAs whose slot it writes and whose barrier it signals.
        id: Number of a named barrier.
        threads: Threads that meet at the named barrier; 0 for all of the roles that name it.
    """

    op: str
    bar: str = ""
    buf: str = ""
    off: int = 0
    idx_abs: int | None = None
    ph: int = 0
    flip: bool = False
    n: int = 0
    bytes: int | None = None
    first: int = 0
    last: int = 0
    to: tuple[tuple[int, ...], ...] = ()
    multicast: tuple[tuple[int, ...], ...] = ()
    id: int = 0
    threads: int = 0
    src: str = ""

    def _validate(self) -> None:
        CHECK.choice(self.op, "op", OPS)
        if self.reaches:
            self._check_reach()
        if self.id or self.threads or self.is_named:
            self._check_meeting()
        for name in ("bar", "buf", "src"):
            if bool(getattr(self, name)) != (name in OPS[self.op]):
                rule = (
                    f"must name a {'barrier' if name == 'bar' else 'buffer'}" if name in OPS[self.op] else "is not for"
                )
                raise CHECK.malformed(name, f"{rule} an op {self.op}", getattr(self, name))
        if self.src and self.src == self.buf:
            raise CHECK.malformed("src", "must be another buffer than buf", self.src)
        for name in ("off", "idx_abs", "ph"):
            if abs(getattr(self, name) or 0) > FARTHEST:
                raise CHECK.malformed(name, f"must be within {FARTHEST} of 0", getattr(self, name))
        CHECK.integer(self.first, "guard.from", 0, FARTHEST)
        CHECK.integer(self.last, "guard.until", 0, FARTHEST)
        CHECK.integer(self.n, "n", int(self.op in COUNTED), FARTHEST)
        if self.bytes is not None:
            CHECK.integer(self.bytes, "bytes", 0, 1 << 40)

    def _check_reach(self) -> None:
        for name in ("to", "multicast"):
            if getattr(self, name) and name not in OPS[self.op]:
                raise CHECK.malformed(name, _OWN.get(self.op, f"is not for an op {self.op}"), getattr(self, name))
        name = "to" if self.to else "multicast"
        for ranks in self.reaches:
            for rank in ranks:
                CHECK.integer(rank, name, 0, MOST_CTAS)
            if not ranks or len(set(ranks)) != len(ranks):
                raise CHECK.malformed(name, "must be distinct CTAs, at least one", ranks)

    def _check_meeting(self) -> None:
        if not self.is_named:
            raise CHECK.malformed("id", f"is not for an op {self.op}", self.id or self.threads)
        CHECK.integer(self.id, "id", 0, FARTHEST)
        CHECK.integer(self.threads, "threads", 0, FARTHEST)
        if self.first or self.last:
            rule = f"is not for an op {self.op}, whose uses are counted"
            raise CHECK.malformed("guard", rule, (self.first, self.last))

    @property
    def reaches(self) -> tuple[tuple[int, ...], ...]:
        """The CTAs whose barrier (and slot) it acts on, one entry for all CTAs or one each; empty: its own."""
        return self.to or self.multicast

    @property
    def is_named(self) -> bool:
        """Whether it acts on a named barrier."""
        return self.op in ("bar_sync", "bar_arrive")

    @property
    def on_barrier(self) -> bool:
        """Whether it adds to a phase: arrivals, expected bytes or delivered bytes."""
        return bool(self.bar) and self.op != "wait"

    @property
    def arrivals(self) -> int:
        """How often it arrives."""
        return self.n if self.op in COUNTED else int(self.op == "arrive_tx" or self.op in SIGNALS)

    def is_left_out(self, part: Part) -> bool:
        """Whether it is left out for every N: its index is negative and does not move."""
        index = self.off if self.idx_abs is None else self.idx_abs
        fixed = part == "pre" or self.idx_abs is not None
        return fixed and index < 0 and self.op != "wait" and bool(self.bar or self.buf)

    @property
    def at(self) -> str:
        """Its index in brackets."""
        return f"[{self.idx_abs if self.idx_abs is not None else f'k{self.off:+d}' if self.off else 'k'}]"

    def __str__(self) -> str:
        told = [f"{name}{self.at}" for name in (self.src, self.buf, self.bar) if name]
        told += [f"phase {self.ph:+d}"] * bool(self.ph) + ["flipped"] * self.flip
        told += [str(self.n)] * ("n" in OPS[self.op] and (self.op not in COUNTED or self.n != 1))
        told += [f"{self.bytes} bytes"] * (self.bytes is not None)
        told += [f"CTA {' | '.join(','.join(map(str, ranks)) for ranks in self.reaches)}"] * bool(self.reaches)
        told += [str(self.id), *[f"{self.threads} threads"] * bool(self.threads)] * self.is_named
        told += [f"k >= {self.first}"] * bool(self.first) + [f"k < trip - {self.last}"] * bool(self.last)
        return f"{self.op} {', '.join(told)}".strip()

    def to_json(self) -> dict[str, object]:
        """Return the op as an entry of a document."""
        found: dict[str, object] = {"op": self.op}
        for name in OPS[self.op]:
            value = getattr(self, name)
            if name in ("to", "multicast") and value:
                found[name] = [list(ranks) for ranks in value] if len(value) > 1 else list(value[0])
            elif (
                value != _DEFAULTS[name]
                or name in ("bar", "buf", "src", "id")
                or (name == "n" and self.op not in COUNTED)
            ):
                found[name] = value
        if self.op in COUNTED and self.n == 1:
            found.pop("n", None)
        if self.first or self.last:
            found["guard"] = {"from": self.first, "until": self.last}
        return found


_DEFAULTS: Final[Mapping[str, object]] = {"off": 0, "idx_abs": None, "ph": 0, "flip": False, "n": 0, "bytes": None} | {
    "bar": "",
    "buf": "",
    "src": "",
    "to": (),
    "multicast": (),
    "id": 0,
    "threads": 0,
}
_OWN: Final = {
    "wait": "is not for a wait: a barrier is waited for in its own CTA alone (PTX ISA 9.1, 9.7.13.15)",
    "cp_async_arrive": "is not for cp_async_arrive, which arrives in its own CTA alone (PTX ISA 9.1, 9.7.13.15)",
}
"""Why an op reaches no other CTA."""


@dataclass(frozen=True, slots=True)
class Barrier(Checked, code="LA970"):
    """A ring of mbarriers: arrivals per phase, number of slots."""

    count: int
    slots: int


@dataclass(frozen=True, slots=True)
class Buffer(Checked, code="LA970"):
    """A ring of slots in shared or tensor memory, or in registers: number of slots, bytes of one (0 if not given).

    A slot in registers is that of all threads of its role together.
    """

    slots: int
    bytes: int = 0
    space: str = "shared"

    def _validate(self) -> None:
        CHECK.choice(self.space, "space", SPACES)


@dataclass(frozen=True, slots=True)
class Role(Checked, code="LA970"):
    """A role: ops before the loop, of an iteration, after the loop; the loop runs N + ``trip`` times.

    Args:
        name: Its name.
        pre: Ops before the loop.
        loop: Ops of an iteration.
        post: Ops after the loop.
        trip: The loop runs N + this many times.
        ctas: Ranks of the CTAs of a cluster that have it; none: all.
        warps: Its warps; 0 if not given.
        registers: Registers of each of its threads, set by ``setmaxnreg``; 0 if it keeps those of the launch.
        threads_of: The role on whose threads it runs, in turns with that one; empty if it has threads of its own.
    """

    name: str
    pre: tuple[Op, ...] = ()
    loop: tuple[Op, ...] = ()
    post: tuple[Op, ...] = ()
    trip: int = 0
    ctas: tuple[int, ...] = ()
    warps: int = 0
    registers: int = 0
    threads_of: str = ""

    def _validate(self) -> None:
        for cta in self.ctas:
            CHECK.integer(cta, f"ctas of {self.name}", 0, MOST_CTAS)
        CHECK.integer(self.warps, f"warps of {self.name}", 0, FARTHEST)
        CHECK.integer(self.registers, f"registers of {self.name}", 0, FARTHEST)

    def ops(self) -> list[tuple[Part, int, Op]]:
        """All ops with their places, in program order."""
        parts: list[tuple[Part, tuple[Op, ...]]] = [("pre", self.pre), ("loop", self.loop), ("post", self.post)]
        return [(part, place, op) for part, ops in parts for place, op in enumerate(ops)]


@dataclass(frozen=True, slots=True)
class Pipeline(Checked, Shown, code="LA970"):
    """Roles of a thread block, or of each CTA of a cluster, that share barriers and buffers.

    Args:
        stages: Default number of slots.
        barriers: (name, barrier) pairs.
        buffers: (name, buffer) pairs.
        roles: The roles, which run at the same time.
        least: N is at least this.
        reset: The loop counters start again every so many iterations; 0 if they never do.
        cluster: CTAs, each of which has roles, barriers and buffers of its own.

    Example:
        >>> ring = Pipeline.from_json({
        ...     "schema": "layoutalg/pipeline/1", "stages": 2, "buffers": {"A": {}},
        ...     "barriers": {"full": {"count": 1}, "empty": {"count": 1}},
        ...     "roles": [
        ...         {"name": "load", "loop": [{"op": "wait", "bar": "empty", "ph": -1},
        ...             {"op": "arrive_tx", "bar": "full", "bytes": 64},
        ...             {"op": "tma_load", "buf": "A", "bar": "full", "bytes": 64}]},
        ...         {"name": "use", "loop": [{"op": "wait", "bar": "full"}, {"op": "read", "buf": "A"},
        ...             {"op": "proxy_fence"}, {"op": "arrive", "bar": "empty"}]}]})
        >>> print(ring)
        pipeline of 2 stages, N >= 0
          barriers  full: 1 arrival, empty: 1 arrival
          buffers   A
          load      loop: wait empty[k], phase -1; arrive_tx full[k], 64 bytes; tma_load A[k], full[k], 64 bytes
          use       loop: wait full[k]; read A[k]; proxy_fence; arrive empty[k]
        >>> Pipeline.from_json(ring.to_json()) == ring
        True
    """

    stages: int
    barriers: tuple[tuple[str, Barrier], ...]
    buffers: tuple[tuple[str, Buffer], ...]
    roles: tuple[Role, ...]
    least: int = 0
    reset: int = 0
    cluster: int = 1

    def _validate(self) -> None:
        CHECK.integer(self.cluster, "cluster", 1, MOST_CTAS + 1)
        CHECK.integer(self.stages, "stages", 0, MOST_SLOTS + 1)
        for name, slots in self.rings.items():
            CHECK.integer(slots, f"slots of {name}", 0, MOST_SLOTS + 1)
        CHECK.integer(self.least, "trips", 0, FARTHEST)
        CHECK.integer(self.reset, "phase_reset_every", 0, FARTHEST)
        rings = [name for name, _ in self.barriers] + [name for name, _ in self.buffers]
        for given in (rings, [role.name for role in self.roles]):
            for place, name in enumerate(given):
                if name in given[:place]:
                    raise CHECK.malformed("name", "must not be used twice", name)
        barriers, buffers, owners = dict(self.barriers), dict(self.buffers), dict[str, str]()
        if sum([len(role.ops()) for role in self.roles]) > MOST_OPS:
            raise CHECK.malformed("roles", f"must have at most {MOST_OPS} ops", "more")
        for role in self.roles:
            CHECK.integer(role.trip, f"trip of {role.name}", -FARTHEST, FARTHEST)
            for cta in role.ctas:
                CHECK.integer(cta, f"ctas of {role.name}", 0, self.cluster)
            if role.threads_of:
                self._check_threads(role)
            for part, place, op in role.ops():
                where = f"{role.name}.{part}[{place}]"
                if op.bar and op.bar not in barriers:
                    raise CHECK.malformed(
                        f"{where}.bar", f"must be one of {', '.join(barriers) or 'no barriers'}", op.bar
                    )
                for entry, name in (("buf", op.buf), ("src", op.src)):
                    if name and name not in buffers:
                        rule = f"must be one of {', '.join(buffers) or 'no buffers'}"
                        raise CHECK.malformed(f"{where}.{entry}", rule, name)
                    space = buffers[name].space if name else ""
                    if name and (op.op == "mma_write" if space == "shared" else op.op not in NOT_SHARED):
                        right = "tensor memory or registers" if space == "shared" else "shared memory"
                        rule = f"must be a buffer in {right} for an op {op.op}"
                        raise CHECK.malformed(f"{where}.{entry}", rule, name)
                    owner = role.threads_of or role.name
                    if space == "register" and owners.setdefault(name, owner) != owner:
                        rule = f"must not be {name}, registers of the threads of {owners[name]}"
                        raise CHECK.malformed(f"{where}.{entry}", rule, owner)
                if (op.first or op.last) and part != "loop":
                    raise CHECK.malformed(f"{where}.guard", "is for ops of a loop", part)
                if op.reaches:
                    self._check_reach(op, where)
                if op.is_named and not role.warps:
                    raise CHECK.malformed(f"warps of {role.name}", f"must be given for {where}, {op.op}", role.warps)
                if op.is_named and self.reset:
                    raise CHECK.malformed(where, "is not for counters that start again", op.op)

    def _check_threads(self, role: Role) -> None:
        """Refuse what a role on the threads of another cannot do, or what its place among their ops would decide."""
        first = {one.name: one for one in self.roles if not one.threads_of}
        CHECK.choice(role.threads_of, f"threads_of of {role.name}", first)
        others = [one.name for one in self.roles if one.threads_of == role.threads_of and one is not role]
        if others:
            raise CHECK.malformed(f"threads_of of {role.name}", "must not be those of a third role", others[0])
        if role.warps or role.registers or role.ctas != first[role.threads_of].ctas:
            rule = f"must state no warps and registers, and the CTAs of {role.threads_of}"
            raise CHECK.malformed(role.name, rule, (role.warps, role.registers, role.ctas))
        for part, place, op in role.ops():
            where = f"{role.name}.{part}[{place}]"
            if op.bar or op.is_named or GROUPED.get(op.op) == "mma" or op.op == "mma_commit":
                raise CHECK.malformed(where, f"must be an op of {role.threads_of}, on whose threads it runs", op.op)
            inside = op.buf in self.registers
            if inside and (op.op != "read" or part != "loop" or op.idx_abs is None):
                rule = f"must read registers of {role.threads_of} in its loop, by idx_abs"
                raise CHECK.malformed(where, rule, str(op))

    def _check_reach(self, op: Op, where: str) -> None:
        if len(op.reaches) not in (1, self.cluster):
            rule = f"must be CTAs, or a list of CTAs for each of the {self.cluster}"
            raise CHECK.malformed(where, rule, op.reaches)
        for rank in [rank for ranks in op.reaches for rank in ranks]:
            if rank >= self.cluster:
                rule = f"must be CTAs of the cluster, 0 to {self.cluster - 1}"
                raise CHECK.malformed(f"{where}.{'to' if op.to else 'multicast'}", rule, rank)

    @property
    def tensors(self) -> frozenset[str]:
        """The buffers in tensor memory."""
        return frozenset([name for name, ring in self.buffers if ring.space == "tensor"])

    @property
    def registers(self) -> frozenset[str]:
        """The buffers in registers."""
        return frozenset([name for name, ring in self.buffers if ring.space == "register"])

    @property
    def unfenced(self) -> frozenset[str]:
        """The buffers that no proxy fence concerns: those outside of shared memory."""
        return frozenset([name for name, ring in self.buffers if ring.space != "shared"])

    @property
    def rings(self) -> Mapping[str, int]:
        """The number of slots of each barrier and buffer."""
        return {name: ring.slots for name, ring in self.barriers} | {name: ring.slots for name, ring in self.buffers}

    def roles_of(self, cta: int) -> list[Role]:
        """Return the roles of a CTA, by its rank in the cluster."""
        return [role for role in self.roles if not role.ctas or cta in role.ctas]

    @property
    def threads(self) -> int:
        """Threads of a block: those of the roles of the CTA that has most, as far as their warps are given."""
        return LANES * max([sum([role.warps for role in self.roles_of(cta)]) for cta in range(self.cluster)])

    @classmethod
    def from_json(cls, document: object) -> Pipeline:
        """Return the pipeline in a document: JSON text, or the data read from it.

        Raises: MalformedError: LA970, LA010 to LA014; names the place in the document.
        """
        node = Reader(load_json(document, "pipeline") if isinstance(document, str) else document)
        node.schema(SCHEMA)
        node.keys(("schema", "stages", "roles"), ("barriers", "buffers", "trips", "phase_reset_every", "cluster"))
        stages = node.get("stages").integer()
        barriers = []
        for name, entry in _entries(node, "barriers"):
            entry.keys(("count",), ("slots",))
            barriers.append((name, Barrier(entry.get("count").integer(), _optional(entry, "slots", stages))))
        buffers = []
        for name, entry in _entries(node, "buffers"):
            entry.keys((), ("slots", "bytes", "space"))
            space = entry.get("space").text(SPACES) if entry.has("space") else SPACES[0]
            buffers.append((name, Buffer(_optional(entry, "slots", stages), _optional(entry, "bytes", 0), space)))
        cluster = node.get("cluster").integer(1, MOST_CTAS) if node.has("cluster") else 1
        roles = tuple([_role(entry, cluster) for entry in node.get("roles").items(at_most=MOST_OPS)])
        least = _bound(node.get("trips")) if node.has("trips") else 0
        reset = node.get("phase_reset_every").integer(1, FARTHEST) if node.has("phase_reset_every") else 0
        return cls(stages, tuple(barriers), tuple(buffers), roles, least, reset, cluster)

    @classmethod
    def of(cls, text: object, kernel: str | None = None) -> Pipeline:
        """Return the pipeline of a Triton kernel in TTGIR, as ``compiled.asm["ttgir"]`` has it.

        Args:
            text: A module.
            kernel: Name of its function; not needed if there is one.

        Raises:
            MalformedError: LA972: the text is not MLIR.
            RepresentabilityError: LA973: the kernel has no pipeline document; names the line.
        """
        from layoutalg.proofs.pipeline.kernels.recovery import document_of

        return cls.from_json(document_of(text, kernel))

    def to_json(self) -> dict[str, object]:
        """Return the document."""
        found: dict[str, object] = {"schema": SCHEMA, "stages": self.stages, "trips": f"N >= {self.least}"}
        found["barriers"] = {
            name: {"count": ring.count} | ({"slots": ring.slots} if ring.slots != self.stages else {})
            for name, ring in self.barriers
        }
        found["buffers"] = {
            name: ({"slots": ring.slots} if ring.slots != self.stages else {})
            | ({"bytes": ring.bytes} if ring.bytes else {})
            | ({"space": ring.space} if ring.space != SPACES[0] else {})
            for name, ring in self.buffers
        }
        found["roles"] = [
            {"name": role.name}
            | {part: [op.to_json() for op in getattr(role, part)] for part in PARTS if getattr(role, part)}
            | ({"trip": f"N{role.trip:+d}"} if role.trip else {})
            | ({"ctas": list(role.ctas)} if role.ctas else {})
            | {name: getattr(role, name) for name in ("warps", "registers", "threads_of") if getattr(role, name)}
            for role in self.roles
        ]
        found |= {"phase_reset_every": self.reset} if self.reset else {}
        return found | ({"cluster": self.cluster} if self.cluster > 1 else {})

    def __str__(self) -> str:
        count = {name: f"{name}: {ring.count} arrival{'s' * (ring.count != 1)}" for name, ring in self.barriers}
        rows = [("barriers", ", ".join(count.values())), ("buffers", ", ".join(name for name, _ in self.buffers))]
        for role in self.roles:
            parts = [f"{part}: {'; '.join(map(str, getattr(role, part)))}" for part in PARTS if getattr(role, part)]
            told = [f"N{role.trip:+d} times"] * bool(role.trip) + [f"{role.warps} warps"] * bool(role.warps)
            told += [f"{role.registers} registers"] * bool(role.registers)
            told += [f"CTA {', '.join(map(str, role.ctas))}"] * bool(role.ctas)
            told += [f"on the threads of {role.threads_of}"] * bool(role.threads_of)
            rows.append((role.name, ". ".join(parts) + (f" ({', '.join(told)})" if told else "")))
        width = max([8, *(len(name) for name, _ in rows)])
        first = f"pipeline of {self.stages} stage{'s' * (self.stages != 1)}, N >= {self.least}"
        first += f", {self.cluster} CTAs" * (self.cluster > 1)
        return "\n".join([first, *(f"  {name:<{width}}  {text}" for name, text in rows)])


def _entries(node: Reader, key: str) -> list[tuple[str, Reader]]:
    if not node.has(key):
        return []
    inner = node.get(key)
    if not isinstance(inner.value, dict):
        inner.fail("must be an object")
    return [(name, inner.get(name)) for name in inner.value]


def _optional(node: Reader, key: str, default: int) -> int:
    return node.get(key).integer() if node.has(key) else default


def _bound(node: Reader) -> int:
    found = re.fullmatch(r"N\s*>=\s*(\d{1,6})", node.text())
    return int(found[1]) if found else node.fail("must be a bound such as 'N >= 1'")


def _trip(node: Reader) -> int:
    found = re.fullmatch(r"N(?:\s*([+-])\s*(\d{1,6}))?", node.text())
    if not found:
        node.fail("must be 'N', or N and a constant such as 'N-1'")
    return int(found[1] + found[2]) if found[1] else 0


def _ranks(node: Reader, cluster: int) -> tuple[tuple[int, ...], ...]:
    """Return CTAs: ``"all"``, a rank, ranks, or a list of ranks for each CTA that runs the op."""
    if node.value == "all":
        return (tuple(range(cluster)),)
    if not isinstance(node.value, list | tuple):
        return ((node.integer(),),)
    if any(isinstance(entry, list | tuple) for entry in node.value):
        return tuple([entry.integers() for entry in node.items(at_most=MOST_CTAS)])
    return (node.integers(),)


def _role(node: Reader, cluster: int) -> Role:
    node.keys(("name",), (*PARTS, "trip", "ctas", "warps", "registers", "threads_of"))
    parts: dict[Any, Any] = {
        part: tuple([_op(entry, cluster) for entry in node.get(part).items(at_most=MOST_OPS)])
        for part in PARTS
        if node.has(part)
    }
    name = node.get("name").text()
    if not name:
        node.get("name").fail("must not be empty")
    more: dict[str, Any] = {key: node.get(key).integer(1) for key in ("warps", "registers") if node.has(key)}
    more |= {"threads_of": node.get("threads_of").text()} if node.has("threads_of") else {}
    ctas = node.get("ctas").integers() if node.has("ctas") else ()
    if node.has("ctas") and not ctas:
        node.get("ctas").fail("must be at least one CTA")
    return Role(name, trip=_trip(node.get("trip")) if node.has("trip") else 0, ctas=ctas, **parts, **more)


def _op(node: Reader, cluster: int) -> Op:
    kind = node.get("op").text(tuple(OPS))
    for name in ("to", "multicast"):
        if node.has(name) and name not in OPS[kind] and kind in _OWN:
            node.get(name).fail(_OWN[kind])
    node.keys(("op",), (*OPS[kind], "guard"))
    given: dict[str, Any] = {}
    for name in OPS[kind]:
        if node.has(name):
            entry = node.get(name)
            if name in ("bar", "buf", "src"):
                given[name] = entry.text()
            elif name in ("to", "multicast"):
                given[name] = _ranks(entry, cluster)
            elif name == "flip":
                given[name] = entry.value if isinstance(entry.value, bool) else entry.fail("must be true or false")
            elif entry.value is not None:
                given[name] = entry.integer()
    if kind in COUNTED:
        given.setdefault("n", 1)
    if node.has("guard"):
        guard = node.get("guard")
        guard.keys((), ("from", "until"))
        given |= {"first": _optional(guard, "from", 0), "last": _optional(guard, "until", 0)}
    try:
        return Op(kind, **given)
    except MalformedError as error:
        told = error.diagnostic
        where = ", ".join((node.pointer, *told.where))
        raise MalformedError(Diagnostic(told.code, told.what, (where,), told.because, told.witness)) from None
