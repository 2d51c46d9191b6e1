"""Pipelines written as code: rings whose slots pass from producers to consumers as tokens.

A token is used once: ``acquire`` gives an ``Empty`` slot, copies or writes make it ``InFlight``, ``commit`` hands it
over; ``wait`` gives a ``Full`` slot, reads keep it, ``release`` hands it back. Barriers, their counts, phases, expected
bytes and proxy fences follow from that; ``Builder.pipeline`` returns the value that ``verify`` proves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from layoutalg.proofs.pipeline.document import Barrier, Buffer, Pipeline, Role
from layoutalg.proofs.pipeline.ops import CHECK, GROUPS, Op
from layoutalg.proofs.pipeline.transfers import DRAINS, FILLS, Route, Transfer


@dataclass(eq=False, slots=True)
class RoleBuilder:
    """A role under construction."""

    name: str  # its name
    trip: int = 0  # its loop runs N + this many times
    pre: list[Op] = field(default_factory=list)
    loop: list[Op] = field(default_factory=list)
    post: list[Op] = field(default_factory=list)
    sums: list[str] = field(default_factory=list)  # its accumulators in registers, read behind the loop

    def add(self, into: str) -> None:
        """Let the multiplies that were started last add to accumulators, which are zero before the loop."""
        CHECK.name(into, "into", ())
        name = f"{self.name}.{into}"
        if name not in self.sums:
            self.sums.append(name)
            self.pre.append(Op("write", buf=name, idx_abs=0))
        self.loop.append(Op("mma_write", buf=name, idx_abs=0))


@dataclass(eq=False, slots=True)
class _Token:
    """A slot in one role and one iteration."""

    ring: Ring
    role: RoleBuilder
    used: bool = False
    done: tuple[str, ...] = ()

    def _use(self, what: str) -> None:
        if self.used:
            rule = f"must be used once: it was handed on before this {what}"
            raise CHECK.malformed(f"the {type(self).__name__} slot of {self.ring.name} in {self.role.name}", rule, what)
        self.used = True
        self.ring.open.remove(self)

    def _buffers(self, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names or tuple(self.ring.buffers):
            CHECK.choice(name, "buffer", self.ring.buffers)
        return names or tuple(self.ring.buffers)


class _Fillable(_Token):
    """A slot that can be filled."""

    __slots__ = ()

    def load(self, *names: str) -> InFlight:
        """Copy into these buffers by TMA, by default into all."""
        return self._begun("load")._fill("tma_load", names)

    def write(self, *names: str) -> InFlight:
        """Write these buffers, by default all, with ordinary stores."""
        return self._begun("write")._fill("write", names)

    def fill(self, *names: str) -> InFlight:
        """Fill these buffers, by default all, as their transfers say."""
        token = self._begun("fill")
        for name in self._buffers(names):
            token = token._fill(self.ring.transfer(name, FILLS).primitive, (name,))
        return token

    def _begun(self, what: str) -> InFlight:
        if isinstance(self, InFlight):
            return self
        self._use(what)
        return self.ring.token(InFlight(self.ring, self.role, begun=len(self.role.loop)))


class Empty(_Fillable):
    """A slot that nobody reads."""

    __slots__ = ()


@dataclass(eq=False, slots=True)
class InFlight(_Fillable):
    """A slot that is filled; ``begun`` is the place of the first op in the loop."""

    begun: int = 0

    def _fill(self, kind: str, names: tuple[str, ...]) -> InFlight:
        self._use(kind)
        for name in self._buffers(names):
            if name in self.done:
                raise CHECK.malformed("buffer", "must be filled once", name)
            self.role.loop.append(self.ring.filled(kind, name))
        done = (*self.done, *self._buffers(names))
        return self.ring.token(InFlight(self.ring, self.role, done=done, begun=self.begun))

    def commit(self) -> None:
        """Hand the slot to the consumers; the barrier expects the bytes of all copies first."""
        self._use("commit")
        missing = [name for name in self.ring.buffers if name not in self.done]
        if missing and not self.ring.shared:
            raise CHECK.malformed("commit", f"must follow the filling of all buffers of {self.ring.name}", self.done)
        ops, full = self.role.loop, self.ring.full
        mine = ops[self.begun :]
        sizes = {self.ring.buffer(name): size for name, size in self.ring.buffers.items()}
        total = sum([sizes[op.buf] for op in mine if op.op == "tma_load"])
        told = {self.ring.transfer(name, FILLS).protocol for name in self.done if self.ring.fills(name) == "cp_async"}
        written = any(op.op == "write" for op in mine)
        if "mbarrier" in told and (written or "group" in told):
            raise CHECK.malformed(
                "commit", "must follow cp_async of one protocol, and no write, if it signals", self.done
            )
        if told or written:
            ops[self.begun : self.begun] = [Op("expect", bar=full, bytes=total)] * bool(total)
            ops += [Op("cp_async_commit"), Op("cp_async_wait")] * ("group" in told)
            arrive = [Op("proxy_fence"), Op("arrive", bar=full, n=1)]
            ops += [Op("cp_async_arrive", bar=full, n=1)] if "mbarrier" in told else arrive
        else:
            ops.insert(self.begun, Op("arrive_tx", bar=full, bytes=total))
        self.ring.producers.append(self.role.name)


class Full(_Token):
    """A slot whose contents are there."""

    __slots__ = ()

    def read(self, *names: str) -> Full:
        """Read these buffers, by default all, with ordinary loads."""
        return self._look("read", names)

    def mma(self, *names: str, into: str = "") -> Full:
        """Multiply these buffers, by default all, by asynchronous matrix instructions.

        Args:
            names: The buffers.
            into: Name of accumulators in registers of the role, called ROLE.NAME: zero before its loop, read behind it.
        """
        token = self._look("mma", names)
        if into:
            if "mma_arrive" in token.done:
                raise CHECK.malformed("into", "must be for multiplies whose role waits for them in groups", into)
            self.role.add(into)
        return token

    def store(self, *names: str) -> Full:
        """Store these buffers, by default all, to global memory by TMA."""
        return self._look("tma_store", names)

    def drain(self, *names: str) -> Full:
        """Read these buffers, by default all, as their transfers say."""
        token = self
        for name in self._buffers(names):
            token = token._look(self.ring.transfer(name, DRAINS).primitive, (name,))
        return token

    def _look(self, kind: str, names: tuple[str, ...]) -> Full:
        self._use(kind)
        names = self._buffers(names)
        given = [self.ring.drains(name, kind) for name in names]
        if kind in ("mma", "tma_store") and "fence" not in self.done:
            late = any(self.ring.signals_itself(name) for name in names)  # nobody could fence its writes before
            self.role.loop += [Op("proxy_fence")] * late
            self.done += ("fence",) * late
        self.role.loop += [Op(kind, buf=self.ring.buffer(name)) for name in names]
        more = ["mma_arrive" if one is not None and not one.is_grouped and kind == "mma" else kind for one in given]
        return self.ring.token(Full(self.ring, self.role, done=(*self.done, *dict.fromkeys(more))))

    def release(self, behind: int = 0) -> None:
        """Hand the slot back; with ``behind`` the slot of that many iterations earlier, whose reads have finished."""
        self._use("release")
        CHECK.integer(behind, "behind", 0, 64)
        ops, last, to = self.role.loop, self.role.post, self.ring.reaches
        self.ring.consumers.append(self.role.name)
        if "mma_arrive" in self.done:
            if behind or {*self.done} - {"mma_arrive", "fence"}:
                raise CHECK.malformed("release", "must follow only reads that signal, of the same iteration", self.done)
            ops.append(Op("mma_arrive", bar=self.ring.empty, to=to))
            return
        for kind, (commit, wait) in GROUPS.items():
            if kind in self.done:
                ops += [Op(commit), Op(wait, n=behind)]
                last += [Op(wait)] * bool(behind)
        if "read" in self.done:
            ops.append(Op("proxy_fence"))
        ops.append(Op("arrive", bar=self.ring.empty, n=1, off=-behind, to=to))
        last += [Op("arrive", bar=self.ring.empty, n=1, off=-back, to=to) for back in range(behind, 0, -1)]


Held = TypeVar("Held", bound=_Token)


@dataclass(eq=False, slots=True)
class Ring:
    """A ring of slots, each of one or more buffers, with a full and an empty barrier; made by ``Builder.ring``."""

    name: str  # its name; buffers are called NAME.BUFFER, barriers NAME.full and NAME.empty
    buffers: Mapping[str, int]  # bytes of each buffer of a slot
    stages: int  # number of slots
    shared: bool = False  # whether several producers fill parts of each slot
    # the transfers of the buffers for which they are given
    routes: Mapping[str, tuple[Transfer, ...]] = field(default_factory=dict)
    open: list[_Token] = field(default_factory=list)
    producers: list[str] = field(default_factory=list)
    consumers: list[str] = field(default_factory=list)

    @property
    def full(self) -> str:
        """The barrier that completes when a slot is full."""
        return f"{self.name}.full"

    @property
    def empty(self) -> str:
        """The barrier that completes when a slot is empty."""
        return f"{self.name}.empty"

    def buffer(self, name: str) -> str:
        """Return the name of a buffer in the pipeline."""
        return f"{self.name}.{name}"

    def transfer(self, name: str, kinds: tuple[str, ...]) -> Transfer:
        """Return the given transfer of a buffer with one of these primitives."""
        found = [one for one in self.routes.get(name, ()) if one.primitive in kinds]
        if not found:
            raise CHECK.malformed(f"{self.name}.{name}", f"must have a transfer by {' or '.join(kinds)}", "none")
        return found[0]

    def fills(self, name: str) -> str:
        """Return the primitive that fills a buffer, if it is given."""
        return next((one.primitive for one in self.routes.get(name, ()) if one.primitive in FILLS), "")

    def signals_itself(self, name: str) -> bool:
        """Whether threads fill a buffer by copies that signal its barrier."""
        return self.fills(name) == "cp_async" and self.transfer(name, FILLS).protocol == "mbarrier"

    def filled(self, kind: str, name: str) -> Op:
        """Return the op that fills a buffer in the given way."""
        if self.fills(name) not in ("", kind):
            raise CHECK.malformed(
                f"{self.name}.{name}", f"must be filled as its transfer says, by {self.fills(name)}", kind
            )
        if kind != "tma_load":
            return Op(kind, buf=self.buffer(name))
        given = next((one for one in self.routes.get(name, ()) if one.primitive == kind and one.ctas), None)
        more: dict[str, Any] = {"bytes": given.share, "multicast": given.reaches} if given is not None else {}
        return Op(kind, bar=self.full, buf=self.buffer(name), **more)

    def drains(self, name: str, kind: str) -> Transfer | None:
        """Return the transfer that reads a buffer, if one is given; it has to be of this kind."""
        given = [one for one in self.routes.get(name, ()) if one.primitive in DRAINS]
        if given and kind not in [one.primitive for one in given]:
            rule = f"must be read as its transfer says, by {given[0].primitive}"
            raise CHECK.malformed(f"{self.name}.{name}", rule, kind)
        return next((one for one in given if one.primitive == kind), None)

    @property
    def shares(self) -> list[tuple[tuple[int, ...], ...]]:
        """The groups of CTAs of each multicast copy."""
        return [one.ctas for route in self.routes.values() for one in route if one.ctas]

    @property
    def reaches(self) -> tuple[tuple[int, ...], ...]:
        """The CTAs that have to know when a slot of a CTA is free: all that copy to it; none without a cluster."""
        shares = self.shares
        ctas = sorted({cta for groups in shares for group in groups for cta in group})
        told = [
            tuple(sorted({one for groups in shares for group in groups if cta in group for one in group}))
            for cta in ctas
        ]
        return tuple(told[:1]) if len({*told}) == 1 else tuple(told)

    def token(self, token: Held) -> Held:
        """Note that a token has to be handed on."""
        self.open.append(token)
        return token

    def acquire(self, role: RoleBuilder) -> Empty:
        """Wait until the next slot is empty; the first ``stages`` are at once."""
        role.loop.append(Op("wait", bar=self.empty, ph=-1))
        return self.token(Empty(self, role))

    def wait(self, role: RoleBuilder) -> Full:
        """Wait until the next slot is full."""
        role.loop.append(Op("wait", bar=self.full))
        return self.token(Full(self, role))


class Builder:
    """A pipeline under construction.

    Args:
        stages: Default number of slots of a ring.
        least: N is at least this.

    Example:
        >>> block = Builder(stages=4)
        >>> tiles = block.ring("tiles", A=16384, B=32768)
        >>> load, math = block.role("load"), block.role("math")
        >>> tiles.acquire(load).load().commit()
        >>> tiles.wait(math).mma().release(behind=1)
        >>> print(block.pipeline())
        pipeline of 4 stages, N >= 0
          barriers  tiles.full: 1 arrival, tiles.empty: 1 arrival
          buffers   tiles.A, tiles.B
          load      loop: wait tiles.empty[k], phase -1; arrive_tx tiles.full[k], 49152 bytes; tma_load tiles.A[k], \
tiles.full[k]; tma_load tiles.B[k], tiles.full[k]
          math      loop: wait tiles.full[k]; mma tiles.A[k]; mma tiles.B[k]; mma_commit; mma_wait 1; arrive \
tiles.empty[k-1]. post: mma_wait 0; arrive tiles.empty[k-1]
        >>> from layoutalg.proofs.pipeline import Transfer, verify
        >>> verify(block.pipeline()).engine
        'event graph'

        Accumulators in registers are read when the last multiplies are done:

        >>> block = Builder(stages=4)
        >>> tiles = block.ring("tiles", A=16384, B=32768)
        >>> load, math = block.role("load"), block.role("math")
        >>> tiles.acquire(load).load().commit()
        >>> tiles.wait(math).mma(into="acc").release(behind=1)
        >>> print(*block.pipeline().roles[1].loop[1:5], "...", *block.pipeline().roles[1].post, sep="; ")
        mma tiles.A[k]; mma tiles.B[k]; mma_write math.acc[0]; mma_commit; ...; mma_wait 0; arrive tiles.empty[k-1]; \
read math.acc[0]
        >>> verify(block.pipeline()).engine
        'event graph'

        Two CTAs that load half of a tile each, for both:

        >>> pair = Builder(stages=2)
        >>> half = Transfer(16384, "tma_load", ctas=((0, 1),)).then(Transfer(16384, "mma", "mbarrier"))
        >>> shared = pair.ring("shared", B=half)
        >>> shared.acquire(pair.role("load")).fill().commit()
        >>> shared.wait(pair.role("math")).drain().release()
        >>> print(pair.pipeline())
        pipeline of 2 stages, N >= 0, 2 CTAs
          barriers  shared.full: 1 arrival, shared.empty: 2 arrivals
          buffers   shared.B
          load      loop: wait shared.empty[k], phase -1; arrive_tx shared.full[k], 16384 bytes; tma_load shared.B[k], \
shared.full[k], 8192 bytes, CTA 0,1
          math      loop: wait shared.full[k]; mma shared.B[k]; mma_arrive shared.empty[k], CTA 0,1
        >>> slot = tiles.acquire(load)
        >>> filled = slot.load("A")
        >>> slot.load("B")
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA970 invalid pipeline
          in     the Empty slot of tiles in load
          since  must be used once: it was handed on before this load, not 'load'
    """

    def __init__(self, stages: int, least: int = 0) -> None:
        self.stages = CHECK.integer(stages, "stages", 1)
        self.least = CHECK.integer(least, "least", 0)
        self.rings: list[Ring] = []
        self.roles: list[RoleBuilder] = []

    def ring(self, name: str, stages: int | None = None, shared: bool = False, **buffers: Any) -> Ring:
        """Return a new ring.

        Args:
            name: An identifier.
            stages: Number of slots; by default that of the builder.
            shared: Whether several producers fill parts of each slot.
            buffers: For each buffer the bytes of a slot, or the plan of its copy (with ``expect_tx_bytes``), or a
                ``Transfer``, or a ``Route`` of one that fills it and one that reads it, for ``fill`` and ``drain``.
        """
        CHECK.name(name, "name", [ring.name for ring in self.rings])
        if not buffers:
            raise CHECK.malformed("buffers", "must be at least one", ())
        sizes, routes = {}, {}
        for key, value in buffers.items():
            if isinstance(value, Transfer | Route):
                routes[key] = (value,) if isinstance(value, Transfer) else value.transfers
                value = value.bytes
            sizes[key] = CHECK.integer(getattr(value, "expect_tx_bytes", value), key, 1)
            inside = [one.primitive for one in routes.get(key, ())]
            if len(inside) > 2 or (len(inside) == 2 and inside[0] not in FILLS) or "dsmem_copy" in inside:
                raise CHECK.malformed(key, "must be a transfer that fills a slot, and one that reads it", inside)
            if any(one.ctas for one in routes.get(key, ()) if one.primitive != "tma_load"):
                raise CHECK.malformed(key, "must be read in the CTA that has it", inside)
        deep = self.stages if stages is None else CHECK.integer(stages, "stages", 1)
        self.rings.append(Ring(name, sizes, deep, shared, routes))
        return self.rings[-1]

    def role(self, name: str, trip: int = 0) -> RoleBuilder:
        """Return a new role, whose loop runs N + ``trip`` times."""
        CHECK.name(name, "name", [role.name for role in self.roles])
        self.roles.append(RoleBuilder(name, CHECK.integer(trip, "trip")))
        return self.roles[-1]

    def pipeline(self) -> Pipeline:
        """Return the pipeline.

        Raises: MalformedError: LA970: a slot was taken and not handed on, or a ring has no producer or no consumer.
        """
        barriers: list[tuple[str, Barrier]] = []
        buffers: list[tuple[str, Buffer]] = []
        for ring in self.rings:
            for token in ring.open:
                where = f"the {type(token).__name__} slot of {ring.name} in {token.role.name}"
                raise CHECK.malformed(where, "must be handed on in the same iteration", "open")
            for side, names in (("commits", ring.producers), ("releases", ring.consumers)):
                if not names:
                    raise CHECK.malformed(ring.name, f"must have a role that {side} its slots", "no role")
            barriers.append((ring.full, Barrier(len(ring.producers), ring.stages)))
            told = {len(ranks) for ranks in ring.reaches} or {1}
            if len(told) > 1:
                raise CHECK.malformed(ring.name, "must be copied to each CTA by equally many", ring.reaches)
            barriers.append((ring.empty, Barrier(len(ring.consumers) * told.pop(), ring.stages)))
            buffers += [(ring.buffer(name), Buffer(ring.stages, size)) for name, size in ring.buffers.items()]
        buffers += [(name, Buffer(1, space="register")) for one in self.roles for name in one.sums]
        roles = [
            Role(
                one.name, tuple(one.pre), tuple(one.loop),
                (*one.post, *[Op("read", buf=name, idx_abs=0) for name in one.sums]), one.trip,
            )
            for one in self.roles
        ]  # fmt: skip
        ctas = {sum(map(len, groups)) for ring in self.rings for groups in ring.shares} or {1}
        if len(ctas) > 1:
            raise CHECK.malformed("ctas", "must be those of one cluster in all transfers", sorted(ctas))
        return Pipeline(self.stages, tuple(barriers), tuple(buffers), tuple(roles), self.least, cluster=ctas.pop())
