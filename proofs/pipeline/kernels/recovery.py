"""The pipeline of a Triton kernel: events with indices, prologues folded into the loop, roles.

A compiler takes the first copies out of a loop and guards them by ``N > c``. Such a prologue is iterations of the loop
that run some of its ops, so it is folded back where that is exact for every N. What cannot be folded bounds N instead.
Proxy fences are those of the text, and one before each asynchronous access to memory that the same role accesses with
ordinary loads and stores: Triton inserts these after TTGIR. Registers are not followed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from layoutalg.ground.errors import RepresentabilityError
from layoutalg.proofs.pipeline.kernels.accumulators import Parts, adopt, filled_from
from layoutalg.proofs.pipeline.kernels.events import Event, Kernel, Memory, Track, refuse
from layoutalg.proofs.pipeline.kernels.naming import Named, Namer, Ring, rings
from layoutalg.proofs.pipeline.kernels.parts import components
from layoutalg.proofs.pipeline.kernels.ttgir import followed
from layoutalg.proofs.pipeline.kernels.waves import Linear
from layoutalg.proofs.pipeline.ops import GENERIC, GROUP_WAITS, GROUPS, PARTS, Part

DEEPEST: Final = 8
"""iterations: the longest prologue that is folded"""

Document: TypeAlias = "dict[str, Any]"


def recovered(text: object, kernel: str | None = None) -> tuple[Document, bool]:
    """Return the document, and whether parts of roles were taken apart, so that a race in it need not be one."""
    try:
        return _recovered(followed(text, kernel))
    except RepresentabilityError:
        with suppress(RepresentabilityError):
            return _recovered(followed(text, kernel, assumes=True))
        raise


def _recovered(kernel: Kernel) -> tuple[Document, bool]:
    return _built(kernel), any(track.loose for track in kernel.tracks)


def document_of(text: object, kernel: str | None = None) -> Document:
    """Return the pipeline document of a Triton kernel in TTGIR; ``Pipeline.of`` reads it.

    Args:
        text: A module of TTGIR.
        kernel: Name of its function; not needed if there is one.

    Raises:
        MalformedError: LA972: the text is not MLIR.
        RepresentabilityError: LA973, with the line of what is not understood.
    """
    return recovered(text, kernel)[0]


def _built(kernel: Kernel) -> Document:
    table = rings(kernel.tracks, kernel.memory)
    if not table:
        refuse(1, "it uses no shared or tensor memory")
    least, roles = 0, list[Document]()
    extra = dict[str, int]()
    loose = any(track.loose for track in kernel.tracks)
    for group in _groups(kernel.tracks, loose):
        trips = _trips(group)
        parts = [_Part(track, *_named(track, table, trips)) for track in group]
        adopt([part.parts for part in parts])
        for part in parts:
            part.fold()
        extra |= _begun_together(parts) if loose else _joined(parts)
        least = max(least, filled_from([part.parts for part in parts]))
        for part in parts:
            least = max(least, part.least())
            for value in part.track.assumed:
                if trips is None:
                    refuse(part.track.line, "conditions do not follow from a number of iterations")
                least = max(least, trips.above(value, part.track.line) + 1)
            roles.append(part.role())
    barriers = {ring.name: {"count": ring.count, "slots": ring.slots} for ring in table.values() if ring.count}
    barriers |= {name: {"count": count, "slots": 1} for name, count in extra.items()}
    return {
        "schema": "layoutalg/pipeline/1",
        "stages": max([ring.slots for ring in table.values()]),
        "trips": f"N >= {least}",
        "barriers": barriers,
        "buffers": {
            ring.name: {"slots": ring.slots} | ({"space": "tensor"} if ring.tensor else {})
            for ring in table.values()
            if not ring.count
        },
        "roles": [role for role in roles if len(role) > 1],
    }


@dataclass(frozen=True, slots=True)
class _Trips:
    """What N is for a group of tracks: the iterations of its longest loop."""

    symbols: tuple[tuple[str, int], ...]
    stride: int
    most: int

    def trip(self, track: Track) -> int:
        """Return t if the track's loop runs N + t times."""
        if track.bounds is None:
            return 0
        start, end, stride = track.bounds
        constant = end.wave.constant
        apart = None if constant is None else constant - start - self.most
        if end.symbols != self.symbols or stride != self.stride or apart is None or apart % stride:
            refuse(track.line, f"the loops of {track.name} and of other roles run for unrelated numbers of iterations")
        return apart // stride

    def above(self, value: Linear, line: int) -> int:
        """Return c if the value is positive where N > c."""
        constant = value.wave.constant
        apart = None if constant is None else self.most - constant
        if value.symbols != self.symbols or apart is None or apart % self.stride or apart < 0:
            refuse(line, "its condition does not follow from the number of iterations")
        return apart // self.stride


def _trips(group: Sequence[Track]) -> _Trips | None:
    bounds = [track.bounds for track in group if track.bounds is not None]
    if not bounds:
        return None
    symbols, stride = bounds[0][1].symbols, bounds[0][2]
    lengths = [(end.wave.constant or 0) - start for start, end, _ in bounds]
    for track in group:
        told = [*[value for event in track.events for value in event.when], *track.assumed]
        constants = [value.wave.constant for value in told if value.symbols == symbols]
        lengths += [constant for constant in constants if constant is not None]
    return _Trips(symbols, stride, max(lengths))


def _named(track: Track, table: dict[tuple[Memory, int | None], Ring], trips: _Trips | None) -> tuple[list[Named], int]:
    trip = 0 if trips is None else trips.trip(track)
    namer = Namer(track, table, trip)
    found = []
    for event in track.events:
        one = Named(event, event.part)
        if _guarded(one, track, trips):
            found.append(namer.named(one))
    return found, trip


def _guarded(one: Named, track: Track, trips: _Trips | None) -> bool:
    """Fill in when an event runs; return whether it ever does."""
    line = one.event.line
    for value in one.event.when:
        if value.symbols and (one.part != "loop" or value.wave.constant is not None):
            if trips is None:
                refuse(line, "its condition does not follow from the number of iterations")
            one.above = max(one.above, trips.above(value, line))
        elif value.symbols:
            start, end, stride = track.bounds or (0, Linear.of(0), 1)
            apart = (end.wave.constant or 0) - start - value.wave.at(0)
            if value.symbols != end.symbols or value.wave.step != -stride or apart % stride:
                refuse(line, "its condition does not follow from the iteration")
            one.last = max(one.last, apart // stride)
        elif value.wave.growth == 0 and (min(value.wave.table) > 0 or max(value.wave.table) <= 0):
            if max(value.wave.table) <= 0:
                return False
        elif one.part != "loop" or (value.wave.step or 0) <= 0:
            refuse(line, "it runs in some iterations only")
        else:
            one.first = max(one.first, next(k for k in range(1 << 20) if value.wave.at(k) > 0))
    return True


class _Part:
    """The named events of one role, by part."""

    def __init__(self, track: Track, events: list[Named], trip: int) -> None:
        self.track = track
        self.trip = trip
        self.pre, self.loop, self.post = ([one for one in events if one.part == part] for part in PARTS)
        self.shift = 0
        self.bound = 0
        """The smallest N for which the ops before the loop are iterations of it."""

    @property
    def parts(self) -> Parts:
        """The events before, in and after the loop, which runs N + trip times."""
        return self.pre, self.loop, self.post, self.trip

    @property
    def every(self) -> list[Named]:
        """All its events, in order."""
        return [*self.pre, *self.loop, *self.post]

    def fold(self) -> None:
        """Fold the end of ``pre`` into the loop as iterations, if it has conditions."""
        if not self.loop or all(one.above < 0 for one in self.pre):
            return
        for start in range(len(self.pre)):
            if any(one.above >= 0 for one in self.pre[:start]):
                return
            for shift in range(1, DEEPEST + 1):
                found = self.matched(self.pre[start:], shift)
                if found is None:
                    continue
                firsts, self.bound = found
                for one, first in zip(self.loop, firsts, strict=True):
                    one.first = first
                    one.off = None if one.off is None else one.off - shift
                for one in self.post:
                    one.off = None if one.off is None else one.off - shift
                self.pre, self.trip, self.shift = self.pre[:start], self.trip + shift, shift
                self.loosen()
                return

    def loosen(self) -> None:
        """Let groups close and be waited for from the first iteration, where there is nothing in them yet."""
        for kind, closing in GROUPS.items():
            firsts = [one.first for one in self.loop if one.event.op == kind]
            for one in self.loop:
                early = one.event.op in closing and all(first >= one.first for first in firsts)
                if early and not any(other.event.op == kind for other in self.pre):
                    one.first = 0

    def matched(self, events: list[Named], shift: int) -> tuple[list[int], int] | None:
        """Return the first iteration of each op of the loop if the events are the first ones, and the smallest N for
        which they are; None if they are not.
        """
        runs: list[set[int]] = [set() for _ in self.loop]
        bound = 0
        turn, place = 0, 0
        for one in events:
            while turn < shift and not (place < len(self.loop) and self.equal(one, self.loop[place], turn, shift)):
                place += 1
                if place >= len(self.loop):
                    turn, place = turn + 1, 0
            if turn >= shift:
                return None
            runs[place].add(turn)
            if self.above(self.loop[place], turn, shift) > one.above:
                bound = max(bound, self.above(self.loop[place], turn, shift) + 1)
            place += 1
        firsts = []
        for run, op in zip(runs, self.loop, strict=True):
            first = shift - len(run)
            if run != set(range(first, shift)) or (run and op.first):
                return None
            firsts.append(first if run else shift + op.first)
        return firsts, bound

    def above(self, op: Named, turn: int, shift: int) -> int:
        """Return c if an iteration runs an op of the loop where N > c."""
        return max(turn - (self.trip + shift) + op.last, -1)

    def equal(self, one: Named, op: Named, turn: int, shift: int) -> bool:
        """Whether an event before the loop is what an op of the loop does in an iteration before its first."""
        if (one.event.op, one.bar, one.buf, one.ph) != (op.event.op, op.bar, op.buf, op.ph):
            return False
        if (one.event.n, one.event.bytes) != (op.event.n, op.event.bytes):
            return False
        index = op.index if op.off is None else turn - shift + op.off
        above = self.above(op, turn, shift)
        return one.index == index and (above == one.above or (op.event.op == "read" and above > one.above))

    def least(self) -> int:
        """Return the smallest N for which what could not be folded holds."""
        least = self.bound
        for one in self.every:
            implied = one.part == "post" and one.off is not None and one.above == -self.trip - one.off - 1
            if not implied:
                least = max(least, one.above + 1)
            if one.part == "post" and one.off is not None and not implied:
                least = max(least, self.shift - self.trip)
        return least

    def role(self) -> Document:
        """Return the role."""
        found: Document = {"name": self.track.name}
        found |= {part: self.ops(events) for part, events in zip(PARTS, self.parts[:3], strict=True) if events}
        return found | ({"trip": f"N{self.trip:+d}"} if self.loop and self.trip else {})

    def ops(self, events: list[Named]) -> list[Document]:
        """Return the ops, with the fences that Triton inserts later."""
        generic = {
            one.buf for one in self.every if one.buf and not one.buf.tensor and one.event.op in ("read", "write")
        }
        found: list[Document] = []
        for one in events:
            op = _op(one)
            if one.buf in generic and one.event.op not in GENERIC and not (found and found[-1]["op"] == "proxy_fence"):
                found.append({"op": "proxy_fence"} | ({"guard": op["guard"]} if "guard" in op else {}))
            found.append(op)
        return found


def _op(one: Named) -> Document:
    event = one.event
    found: Document = {"op": event.op}
    if one.buf is not None:
        found["buf"] = one.buf.name
    if one.bar is not None:
        found["bar"] = one.bar.name
    if one.off:
        found["off"] = one.off
    if one.index is not None:
        found["idx_abs"] = one.index
    if one.ph:
        found["ph"] = one.ph
    if event.op in GROUP_WAITS or (event.op == "arrive" and event.n != 1):
        found["n"] = event.n
    if event.bytes is not None:
        found["bytes"] = event.bytes
    if one.part == "loop" and (one.first or one.last):
        found["guard"] = {"from": one.first, "until": one.last}
    return found


def _begun(events: list[Named], start: int) -> list[Named]:
    """Leave out waits for phase -1 before partitions begin: nobody can have arrived, so they pass at once."""
    head = events[:start]
    arrived = {one.bar for one in head if one.event.op != "wait"}
    return [
        one
        for place, one in enumerate(events)
        if not (place < start and one.event.op == "wait" and (one.index or 0) < 0 and one.bar not in arrived)
    ]


def _groups(tracks: Sequence[Track], loose: bool) -> list[list[Track]]:
    """Return the tracks whose loops have the same N."""
    alone = [[track] for track in tracks if track.inside is not None and not track.loose]
    together = [track for track in tracks if track.inside is None or track.loose]
    if not loose:
        return [together, *alone]
    for track in together:
        marks = [place for place, event in enumerate(track.events) if event.op == "start"]
        fills = any(event.buf and event.buf.memory.tensor for event in track.events[: marks[0]]) if marks else False
        track.events = [event for event in track.events if event.op != "end" and (event.op != "start" or fills)]
    return [*components([track for track in together if track.events]), *alone]


def _begun_together(parts: list[_Part]) -> dict[str, int]:
    """Put a barrier where partitions begin, if tensor memory is filled before; that of parts of ``default`` is not."""
    for part in parts:
        for place in [place for place, one in enumerate(part.pre) if one.event.op == "start"]:
            ring = Ring("start", 1, 0, 1, 0)
            part.pre[place] = _on(ring, replace(part.pre[place].event, op="arrive", n=1))
            part.pre = _begun(part.pre, place)
            for other in [other for other in parts if other.track.owner is not part.track.owner]:
                other.pre.insert(0, _on(ring, Event("wait", "pre", other.track.line)))
            return {ring.name: ring.count}
    return {}


def _on(ring: Ring, event: Event, part: Part | None = None) -> Named:
    """Return an event on the only phase of a barrier."""
    return Named(event, part or event.part, bar=ring, index=0)


def _joined(parts: list[_Part]) -> dict[str, int]:
    """Put barriers where partitions begin and end, if the kernel does something before or after."""
    default = parts[0] if parts else None
    others = parts[1:]
    found: dict[str, int] = {}
    if default is None:
        return found
    marks = [place for place, one in enumerate(default.pre) if one.event.op == "start"]
    default.pre = _begun(default.pre, marks[0]) if marks else default.pre
    places = {one.event.op: place for place, one in enumerate(default.every) if one.event.op in ("start", "end")}
    before = places.get("start", 0) > 0
    if before and not default.loop:
        # what comes after the start waits for the loops of others, so it is no prologue
        default.pre, default.post = default.pre[: places["start"] + 1], default.pre[places["start"] + 1 :]
    after = "end" in places and places["end"] + 1 < len(default.every)
    for name, wanted, count in (("start", before, 1), ("end", after, len(others))):
        ring = Ring(name, 1, 0, count, 0)
        for part in (default.pre, default.loop, default.post):
            for place in reversed([place for place, one in enumerate(part) if one.event.op == name]):
                op, n = ("arrive", 1) if name == "start" else ("wait", 0)
                made = _on(ring, replace(part[place].event, op=op, n=n), part[place].part)
                part[place : place + 1] = [made] * bool(wanted and others)
        if not wanted or not others:
            continue
        found[name] = count
        for other in others:
            if name == "start":
                other.pre.insert(0, _on(ring, Event("wait", "pre", other.track.line)))
            else:
                other.post.append(_on(ring, Event("arrive", "post", other.track.line, n=1)))
    return found
