"""The ops of roles written out for some iterations, with their slots and parities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from layoutalg.proofs.pipeline.document import Pipeline, Role
from layoutalg.proofs.pipeline.ops import GROUP_WAITS, Op, Part


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
        told += [f"parity {self.parity}"] * (op.op == "wait")
        told += [f"{op.bytes} bytes"] * (op.op in ("expect", "arrive_tx"))
        told += [f"{op.n} groups open"] * (op.op in GROUP_WAITS)
        return f"{op.op} {', '.join(told)}".strip()


def steps(pipeline: Pipeline, roles: Sequence[Role], trips: Sequence[int], turns: int = 1) -> Iterator[Step]:
    """The ops that warps run, in order, with their slots and parities; those on registers are not seen in a kernel.

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
    for place, op, k, counter in role.running(part, ks, trip, pipeline.reset):
        if op.buf not in pipeline.registers:
            index = op.index(counter)
            bar, buf, src = (rings.get(name, 1) for name in (op.bar, op.buf, op.src))
            parity = (index // bar + op.ph + op.flip) % 2
            yield Step(role.where(part, place), k, op, index % bar, index % buf, parity, index % src)
