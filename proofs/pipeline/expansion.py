"""Clusters, named barriers and shared threads in plain terms: what a document with them means is one without.

Each CTA of a cluster has roles, barriers and buffers of its own, ``full@1`` in CTA 1. A copy to several CTAs is one
copy for each, into the slot and for the barrier of the same index there, and out of the own slot if it reads shared
memory; an arrival at several CTAs is one for each, in the order that is given. The n-th use of a named barrier by a
role is an arrival of its threads at phase n of a barrier that counts the threads that meet, and for ``bar_sync`` the
wait for that phase. What a role does with the registers of another role, on whose threads it runs, comes behind the
loop of that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from layoutalg.proofs.pipeline.document import LANES, Barrier, Buffer, Pipeline, Role
from layoutalg.proofs.pipeline.ops import CHECK, PARTS, Op, Part


def expanded(pipeline: Pipeline, *, together: bool = True) -> Pipeline:
    """Return the pipeline without clusters, named barriers, warps, registers and shared threads that a pipeline means.

    Args:
        pipeline: The pipeline.
        together: Whether roles give up what they do with the registers and the multiplies of another role.

    Raises: MalformedError: LA970: the uses of a named barrier cannot be numbered.

    Example:
        >>> ring = Pipeline.from_json({
        ...     "schema": "layoutalg/pipeline/1", "stages": 2, "cluster": 2, "buffers": {"B": {"bytes": 64}},
        ...     "barriers": {"full": {"count": 1}, "empty": {"count": 2}},
        ...     "roles": [
        ...         {"name": "load", "loop": [{"op": "wait", "bar": "empty", "ph": -1},
        ...             {"op": "arrive_tx", "bar": "full", "bytes": 64},
        ...             {"op": "tma_load", "buf": "B", "bar": "full", "bytes": 32, "multicast": [0, 1]}]},
        ...         {"name": "use", "loop": [{"op": "wait", "bar": "full"}, {"op": "mma", "buf": "B"},
        ...             {"op": "mma_commit"}, {"op": "mma_wait"}, {"op": "arrive", "bar": "empty", "to": "all"}]}]})
        >>> one = expanded(ring)
        >>> [name for name, _ in one.barriers], [role.name for role in one.roles]
        (['full@0', 'empty@0', 'full@1', 'empty@1'], ['load@0', 'use@0', 'load@1', 'use@1'])
        >>> print(*one.roles[2].loop[-2:], *one.roles[3].loop[-2:], sep="; ")
        tma_load B@0[k], full@0[k], 32 bytes; tma_load B@1[k], full@1[k], 32 bytes; arrive empty@0[k]; arrive empty@1[k]
        >>> from layoutalg.proofs.pipeline import verify
        >>> verify(ring).engine
        'event graph'
    """
    if together and any(role.threads_of for role in pipeline.roles):
        pipeline = _together(pipeline)
    if is_plain(pipeline):
        return pipeline
    barriers: list[tuple[str, Barrier]] = []
    buffers: list[tuple[str, Buffer]] = []
    roles: list[Role] = []
    for cta in range(pipeline.cluster):
        here = pipeline.roles_of(cta)
        numbers = {op.id for role in here for _, _, op in role.ops() if op.is_named}
        meetings = {number: Meeting.of(number, here) for number in sorted(numbers)}
        barriers += [(_at(pipeline, name, cta), ring) for name, ring in pipeline.barriers]
        for meeting in meetings.values():
            barriers += [(_at(pipeline, ring, cta), Barrier(meeting.threads, 1)) for ring in meeting.rings]
        buffers += [(_at(pipeline, name, cta), ring) for name, ring in pipeline.buffers]
        for role in here:
            met = {place: ops for meeting in meetings.values() for place, ops in meeting.uses(role)}
            parts: dict[Part, list[Op]] = {part: [] for part in PARTS}
            for part, place, op in role.ops():
                for one in met.get((part, place), (op,)):
                    parts[part] += _reached(pipeline, one, cta)
            pre, loop, post = map(tuple, parts.values())
            first = _at(pipeline, role.threads_of, cta)
            roles.append(Role(_at(pipeline, role.name, cta), pre, loop, post, role.trip, threads_of=first))
    return replace(pipeline, barriers=tuple(barriers), buffers=tuple(buffers), roles=tuple(roles), cluster=1)


def is_plain(pipeline: Pipeline) -> bool:
    """Return whether a pipeline says nothing that has to be expanded."""
    if pipeline.cluster > 1 or any(role.ctas or role.warps or role.registers for role in pipeline.roles):
        return False
    return not any(op.reaches or op.is_named for op in pipeline.ops())


def _together(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline in which every role has threads of its own.

    What a role does with registers and multiplies of the role on whose threads it runs comes behind the loop of that
    one, which has come as far as an N.
    """
    behind: dict[str, list[Op]] = {}
    roles: list[Role] = []
    for role in pipeline.roles:
        if not role.threads_of:
            roles.append(role)
            continue
        mine = [op for op in role.loop if op.buf in pipeline.registers]
        # a wait that some iterations leave out is as good as none, a read in some of them as bad as one in all
        waits = [op for op in role.loop if op.op == "mma_wait" and not (op.first or op.last)]
        moved = [replace(op, first=0, last=0) for op in role.loop if op in mine or op in waits]
        behind[role.threads_of] = behind.get(role.threads_of, []) + moved
        pre, loop, post = (
            tuple([op for op in ops if op not in mine and op.op != "mma_wait"])
            for ops in (role.pre, role.loop, role.post)
        )
        roles.append(replace(role, pre=pre, loop=loop, post=post, threads_of=""))
    roles = [replace(role, post=(*behind.get(role.name, ()), *role.post)) for role in roles]
    return replace(pipeline, roles=tuple(roles))


def ranks(op: Op, cta: int) -> tuple[int, ...]:
    """Return the CTAs in which an op of a CTA acts."""
    return (op.reaches[0] if len(op.reaches) == 1 else op.reaches[cta]) if op.reaches else (cta,)


def senders(pipeline: Pipeline, role: Role, op: Op) -> int:
    """Return how many CTAs that run an op act on the barrier of the first of them."""
    here = role.ctas or tuple(range(pipeline.cluster))
    return sum([here[0] in ranks(op, cta) for cta in here])


def _at(pipeline: Pipeline, name: str, cta: int) -> str:
    """Return what a role, barrier or buffer of a CTA is called."""
    return f"{name}@{cta}" if name and pipeline.cluster > 1 else name


def _reached(pipeline: Pipeline, op: Op, cta: int) -> Iterator[Op]:
    """Yield what an op of a CTA does in each CTA that it reaches."""
    for there in ranks(op, cta):
        bar, buf = (_at(pipeline, name, there) for name in (op.bar, op.buf))
        yield replace(op, bar=bar, buf=buf, src=_at(pipeline, op.src, cta), to=(), multicast=())


@dataclass(frozen=True, slots=True)
class Meeting:
    """A named barrier of a CTA: its number, the threads that meet, and how often they do in an iteration."""

    number: int
    threads: int
    often: int

    @classmethod
    def of(cls, number: int, roles: Sequence[Role]) -> Meeting:
        """Return the named barrier that the ops of some roles state together.

        Raises: MalformedError: LA970: they differ, or arrivals of an iteration could meet another one's phase unseen.
        """
        where = f"named barrier {number}"
        uses = [(role, part, op) for role in roles for part, _, op in role.ops() if op.is_named and op.id == number]
        stated = {op.threads for _, _, op in uses}
        here = {role.name: role.warps for role, _, _ in uses}
        threads = max(stated) or LANES * sum(here.values())
        if len(stated) > 1 or threads % LANES:
            rule = f"must state the same threads in all its ops, a multiple of {LANES}"
            raise CHECK.malformed(where, rule, sorted(stated))
        often = {name: sum([role.name == name and part == "loop" for role, part, _ in uses]) for name in here}
        most = max(often.values())
        if {*often.values()} - {0, most}:
            raise CHECK.malformed(where, "must be met equally often in an iteration of each role", often)
        if most > 1 and any(op.op == "bar_arrive" for _, _, op in uses):
            # an arrival that does not wait could come one phase early, which barriers apart would not notice
            rule = "must be met once in an iteration where some role only arrives: use a number for each meeting"
            raise CHECK.malformed(where, rule, most)
        return cls(number, threads, max(1, most))

    @property
    def rings(self) -> list[str]:
        """The barriers that it becomes: one for each meeting of an iteration."""
        return [f"bar {self.number}" + f".{place}" * (self.often > 1) for place in range(self.often)]

    def uses(self, role: Role) -> Iterator[tuple[tuple[Part, int], list[Op]]]:
        """Yield the place of each op of a role with its arrival, and its wait if it waits.

        The n-th meeting is phase n div ``often`` of ring n mod ``often``.
        """
        mine = [(part, place, op) for part, place, op in role.ops() if op.is_named and op.id == self.number]
        count = {part: sum([one == part for one, _, _ in mine]) for part in PARTS}
        for nth, (part, place, op) in enumerate(mine):
            # after the loop k is its trip, which counts the meetings of the loop
            phase, ring = divmod(nth - count["loop"] * (part == "post"), self.often)
            moves = part != "pre" and count["loop"] > 0
            at: dict[str, Any] = {"bar": self.rings[ring], "off" if moves else "idx_abs": phase}
            arrive = Op("arrive", n=LANES * role.warps, **at)
            yield (part, place), [arrive, Op("wait", **at)] if op.op == "bar_sync" else [arrive]
