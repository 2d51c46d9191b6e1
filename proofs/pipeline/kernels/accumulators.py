"""Indices of a slot of tensor memory: accumulators that are filled again and again, or once by all iterations.

A ring of several slots says by its slots which index comes next; one slot does not. Memory that no loop both writes
and reads has one index: the writes add up, and are read behind. Otherwise a write begins the next index if it follows
a read, or, in a role whose loop does not read, if it does not add to what is there. An op that adds, in a role whose
loop neither stores nor reads, adds to the index that the stores of another role begin. As for all indices: a wrong
guess cannot make a kernel look safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from layoutalg.proofs.pipeline.kernels.events import refuse
from layoutalg.proofs.pipeline.kernels.naming import Named, Ring
from layoutalg.proofs.pipeline.ops import READS

Parts: TypeAlias = "tuple[list[Named], list[Named], list[Named], int]"
"""The events of a role before, in and after its loop, which runs N + trip times."""


def filled_from(roles: Sequence[Parts]) -> int:
    """Return the least N for which memory that only loops write is written at all where it is read outside of them."""
    least = 0
    outside = [one for pre, _, post, _ in roles for one in (*pre, *post)]
    for ring in dict.fromkeys([one.buf for one in outside if one.buf is not None and one.buf.accumulates]):
        mine = [one for one in outside if one.buf is ring]
        loops = [(one, trip) for _, loop, _, trip in roles for one in loop if one.buf is ring]
        writes = [one.last + one.first + 1 - trip for one, trip in loops if one.event.op not in READS]
        if writes and all(one.event.op in READS for one in mine):
            least = max(least, min(writes))
    return least


@dataclass(frozen=True, slots=True)
class _At:
    """The index that a role has come to, and whether it has read that."""

    index: int = -1
    read: bool = True

    def after(self, one: Named, renews: bool) -> _At:
        """Return where the role is after an event; ``renews``: an op that does not add begins the next index."""
        if one.event.op in READS:
            return _At(max(self.index, 0), True)
        begins = self.read or (renews and not one.event.adds)
        return _At(self.index + 1 if begins else max(self.index, 0), False)


def adopt(roles: Sequence[Parts]) -> None:
    """Fill in the indices of all events on single slots of tensor memory, of roles whose loops have the same N."""
    events = [one for pre, loop, post, _ in roles for one in (*pre, *loop, *post)]
    for ring in dict.fromkeys([one.buf for one in events if one.buf is not None and one.buf.accumulates]):
        mine = [_uses(ring, role) for role in roles]
        users = [role for role in mine if any(role[:3])]
        if ring.moves:
            _in_turn(ring, users)
        else:
            _at_once(ring, users)


def _uses(ring: Ring, role: Parts) -> Parts:
    """Return the events of a role on a ring."""
    pre, loop, post = ([one for one in part if one.buf is ring] for part in role[:3])
    return pre, loop, post, role[3]


def _at_once(ring: Ring, users: list[Parts]) -> None:
    """Name the uses of memory that loops do not both write and read."""
    for pre, loop, post, _ in users:
        at = _At()
        for one in (*pre, *loop, *post):
            at = at.after(one, False)
            one.index = at.index
        if at.index > 0 and len(users) > 1:
            line = (*pre, *loop, *post)[-1].event.line
            refuse(line, f"{ring.name} is filled again, and which of it other roles use is not known")


def _in_turn(ring: Ring, users: list[Parts]) -> None:
    """Name the uses of memory that is filled again in each iteration."""
    left = []
    for role in users:
        pre, loop, post, trip = role
        renews = all(one.event.op not in READS for one in loop)
        at = _At(0, False) if (*pre, *loop, *post)[0].event.op in READS else _At()
        for one in pre:
            at = at.after(one, renews)
            one.index = at.index
        if not any(one.event.op not in READS for one in loop):
            _read_only(role)
            left.append((role, at))
            continue
        turns = _followed(at, [*loop, *loop], renews)
        first, again = turns[: len(loop)], turns[len(loop) :]
        if [at.index + 1 for at in first] == [at.index for at in again]:
            _loop(ring, loop, [at.index for at in first], trip)
            for one, behind in zip(post, _followed(_At(at.index, first[-1].read), post, renews), strict=True):
                one.off = behind.index
        else:
            left.append((role, at))
    _adding(ring, [pair for pair in left if any(one.event.op not in READS for one in pair[0][1])])
    newest = max([off + trip for off, trip in ring.writes], default=0) - 1
    for (_, _, post, trip), _ in left:
        for one in post:
            if one.event.op not in READS:
                refuse(one.event.line, f"which index of {ring.name} is written after the loop is not known")
            one.off = newest - trip


def _followed(at: _At, events: Sequence[Named], renews: bool) -> list[_At]:
    """Return where a role is after each of some events."""
    found = []
    for one in events:
        at = at.after(one, renews)
        found.append(at)
    return found


def _loop(ring: Ring, loop: list[Named], indices: list[int], trip: int) -> None:
    """Name the events of a loop by their indices for k = 0; with a guard that is the first iteration that runs them."""
    for one, index in zip(loop, indices, strict=True):
        one.off = index - one.first
        if one.event.op not in READS:
            ring.writes.append((one.off, trip))


def _read_only(role: Parts) -> None:
    """Name the reads of a loop that only reads, and those before it: an iteration reads the next index."""
    pre, loop, _, _ = role
    before = [one for one in pre if one.event.op in READS] if loop else []
    for place, one in enumerate(before):
        one.index = place // len(loop)
    for one in loop:
        one.off = len(before) // len(loop) - one.first


def _adding(ring: Ring, left: list[tuple[Parts, _At]]) -> None:
    """Name the ops of loops that only add: to the index that a store of another role begins, or to the next one."""
    offs = {off for off, _ in ring.writes}
    for (_, loop, _, trip), at in left:
        if any(not one.event.adds for one in loop) or len(offs) > 1:
            line = loop[0].event.line
            refuse(line, f"the index of {ring.name} does not go from one to the next each iteration")
        _loop(ring, loop, [min(offs, default=max(at.index, 0))] * len(loop), trip)
