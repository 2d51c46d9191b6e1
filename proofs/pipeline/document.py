"""Pipelines as values: roles with their ops, barriers, buffers; read from and written to ``layoutalg/pipeline/1``.

What a document means is stated in docs/pipelines.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from layoutalg.ground.document import Reader, load_json
from layoutalg.ground.picture import Shown
from layoutalg.ground.record import Checked
from layoutalg.proofs.pipeline.ops import CHECK, COPIES, FARTHEST, MOST_CTAS, OPS, PARTS, Op, Part, read_op
from layoutalg.targets.registry import lookup

SCHEMA: Final = "layoutalg/pipeline/1"
SPACES: Final = ("shared", "tensor", "register")
LANES: Final = lookup("sm_90a").lanes
"""Threads of a warp, on every target that has such barriers."""
MOST_SLOTS: Final = 1 << 10
MOST_OPS: Final = 1 << 10


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

    def part(self, part: Part) -> tuple[Op, ...]:
        """The ops of a part."""
        return self.pre if part == "pre" else self.loop if part == "loop" else self.post

    def ops(self) -> list[tuple[Part, int, Op]]:
        """All ops with their places, in program order."""
        return [(part, place, op) for part in PARTS for place, op in enumerate(self.part(part))]

    def where(self, part: Part, place: int) -> str:
        """What messages call the place of an op."""
        return f"{self.name}.{part}[{place}]"

    def running(self, part: Part, ks: Iterable[int], trip: int, reset: int = 0) -> Iterator[tuple[int, Op, int, int]]:
        """Yield what runs of a part in some iterations of ``trip``: place, op, k, and from what its index counts.

        That is k mod ``reset`` where counters start again.
        """
        for k in ks:
            counter = k % reset if reset and part == "loop" else k
            for place, op in enumerate(self.part(part)):
                guarded = part == "loop" and not op.first <= k < trip - op.last
                if not guarded and not (op.needs_index and op.index(counter) < 0):
                    yield place, op, k, counter


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
        for given in ([name for name, _ in (*self.barriers, *self.buffers)], [role.name for role in self.roles]):
            for place, name in enumerate(given):
                if name in given[:place]:
                    raise CHECK.malformed("name", "must not be used twice", name)
        if len(self.ops()) > MOST_OPS:
            raise CHECK.malformed("roles", f"must have at most {MOST_OPS} ops", "more")
        barriers = dict(self.barriers)
        spaces, owners = {name: ring.space for name, ring in self.buffers}, dict[str, str]()
        for role in self.roles:
            CHECK.integer(role.trip, f"trip of {role.name}", -FARTHEST, FARTHEST)
            for cta in role.ctas:
                CHECK.integer(cta, f"ctas of {role.name}", 0, self.cluster)
            if role.threads_of:
                self._check_threads(role)
            for part, place, op in role.ops():
                where = role.where(part, place)
                if op.bar and op.bar not in barriers:
                    rule = f"must be one of {', '.join(barriers) or 'no barriers'}"
                    raise CHECK.malformed(f"{where}.bar", rule, op.bar)
                for entry, name in (("buf", op.buf), ("src", op.src)):
                    if name:
                        self._check_buffer(name, op, f"{where}.{entry}", spaces)
                        owner = role.threads_of or role.name
                        if spaces[name] == "register" and owners.setdefault(name, owner) != owner:
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

    def _check_buffer(self, name: str, op: Op, where: str, spaces: Mapping[str, str]) -> None:
        if name not in spaces:
            raise CHECK.malformed(where, f"must be one of {', '.join(spaces) or 'no buffers'}", name)
        shared = spaces[name] == "shared"
        if op.op == "mma_write" if shared else not OPS[op.op].anywhere:
            right = "tensor memory or registers" if shared else "shared memory"
            raise CHECK.malformed(where, f"must be a buffer in {right} for an op {op.op}", name)

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
            where, kind = role.where(part, place), OPS[op.op]
            if op.bar or op.is_named or (kind.group == "mma" and kind.does != "wait"):
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
                raise CHECK.malformed(f"{where}.{op.reach}", rule, rank)

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

    def ops(self) -> list[Op]:
        """All ops of all roles."""
        return [op for role in self.roles for _, _, op in role.ops()]

    def size(self, op: Op) -> int:
        """The bytes that a copy delivers, by default those of its buffer."""
        return dict(self.buffers)[op.buf].bytes if op.bytes is None else op.bytes

    def owed(self, op: Op) -> tuple[int, int, int]:
        """The arrivals that an op adds to a phase, the bytes that it expects there, and those that it delivers."""
        size = self.size(op) if op.op in COPIES else op.bytes or 0
        return (op.arrivals, 0, size) if op.op in COPIES else (op.arrivals, size, 0)

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
            name: {"count": ring.count} | _stated(slots=(ring.slots, self.stages)) for name, ring in self.barriers
        }
        found["buffers"] = {
            name: _stated(slots=(ring.slots, self.stages), bytes=(ring.bytes, 0), space=(ring.space, SPACES[0]))
            for name, ring in self.buffers
        }
        found["roles"] = [
            {"name": role.name}
            | {part: [op.to_json() for op in role.part(part)] for part in PARTS if role.part(part)}
            | _stated(trip=(f"N{role.trip:+d}", "N+0"), ctas=(list(role.ctas), []))
            | _stated(warps=(role.warps, 0), registers=(role.registers, 0), threads_of=(role.threads_of, ""))
            for role in self.roles
        ]
        return found | _stated(phase_reset_every=(self.reset, 0), cluster=(self.cluster, 1))

    def __str__(self) -> str:
        count = {name: f"{name}: {ring.count} arrival{'s' * (ring.count != 1)}" for name, ring in self.barriers}
        rows = [("barriers", ", ".join(count.values())), ("buffers", ", ".join(name for name, _ in self.buffers))]
        for role in self.roles:
            parts = [f"{part}: {'; '.join(map(str, role.part(part)))}" for part in PARTS if role.part(part)]
            told = [f"N{role.trip:+d} times"] * bool(role.trip) + [f"{role.warps} warps"] * bool(role.warps)
            told += [f"{role.registers} registers"] * bool(role.registers)
            told += [f"CTA {', '.join(map(str, role.ctas))}"] * bool(role.ctas)
            told += [f"on the threads of {role.threads_of}"] * bool(role.threads_of)
            rows.append((role.name, ". ".join(parts) + (f" ({', '.join(told)})" if told else "")))
        width = max([8, *(len(name) for name, _ in rows)])
        first = f"pipeline of {self.stages} stage{'s' * (self.stages != 1)}, N >= {self.least}"
        first += f", {self.cluster} CTAs" * (self.cluster > 1)
        return "\n".join([first, *(f"  {name:<{width}}  {text}" for name, text in rows)])


def _stated(**entries: tuple[object, object]) -> dict[str, object]:
    """Return the entries whose value is not the usual one, which is given behind it."""
    return {name: value for name, (value, usual) in entries.items() if value != usual}


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


def _role(node: Reader, cluster: int) -> Role:
    node.keys(("name",), (*PARTS, "trip", "ctas", "warps", "registers", "threads_of"))
    parts: dict[Any, Any] = {
        part: tuple([read_op(entry, cluster) for entry in node.get(part).items(at_most=MOST_OPS)])
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
