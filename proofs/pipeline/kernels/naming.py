"""Give the events of a kernel the indices of a pipeline document: the n-th use of a slot is that of which index.

A text has slots and parities, a document has indices. Slots are visited in turn, so the n-th visit of slot s by a role
is that of index s + n * slots. Waits go from phase to phase: the first has phase 0, or -1 if its parity is 1. What a
document says about an index is checked when it is verified; a wrong guess here cannot make a kernel look safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import lcm

from layoutalg.proofs.pipeline.kernels.events import Event, Memory, Slot, Track, refuse
from layoutalg.proofs.pipeline.kernels.waves import Wave
from layoutalg.proofs.pipeline.ops import ARRIVES, READS, WRITES, Part


@dataclass(eq=False, slots=True)
class Ring:
    """A barrier or buffer of the document."""

    name: str  # its name
    slots: int  # number of slots
    first: int  # the slot of the memory that is its slot 0
    count: int  # arrivals per phase; 0 for a buffer
    bytes: int  # bytes of a slot
    moves: bool = False  # whether its uses in loops go from index to index
    # largest offset at which a loop writes it, and the trip of that loop
    writes: list[tuple[int, int]] = field(default_factory=list)
    tensor: bool = False  # whether it is in tensor memory

    @property
    def accumulates(self) -> bool:
        """Whether it is one slot of tensor memory, whose indices are found by ``accumulators``."""
        return self.tensor and self.slots == 1


@dataclass(eq=False, slots=True)
class Named:
    """An event with its index: ``index`` itself, or k + ``off``."""

    event: Event
    part: Part  # where the role runs it
    bar: Ring | None = None  # ring of its barrier
    buf: Ring | None = None  # ring of its buffer
    off: int | None = None  # the index is k + off, or None
    index: int | None = None  # the index, or None
    ph: int = 0  # added to the phase
    first: int = 0  # in a loop: the first k that runs it
    last: int = 0  # in a loop: how many of the last iterations do not run it
    above: int = -1  # before and after a loop: it runs if N is above this


def rings(tracks: Sequence[Track], memory: Sequence[Memory]) -> dict[tuple[Memory, int | None], Ring]:
    """Return the rings: memory whose slots are used in turn is one, memory whose slots have fixed uses is many."""
    found: dict[tuple[Memory, int | None], Ring] = {}
    uses: dict[Memory, list[tuple[Event, Slot]]] = {one: [] for one in memory}
    for track in tracks:
        for event in track.events:
            for slot in (event.bar, event.buf):
                if slot is not None:
                    uses[slot.memory].append((event, slot))
    for one, users in uses.items():
        if not users:
            continue
        for event, slot in users:
            if slot.place is None or slot.place.growth or not all(0 <= at < one.slots for at in slot.place.table):
                refuse(event.line, f"it is not known that the slot is one of the {one.slots} of {one.name}")
        barrier = any(slot is event.bar for event, slot in users)
        fixed = all(slot.place is not None and slot.place.constant is not None for _, slot in users)
        subs = sorted({_constant(slot) for _, slot in users}) if fixed and one.slots > 1 else [None]
        for sub in subs:
            counts = {count for at, count in one.counts.items() if sub is None or at == sub}
            if barrier and (len(counts) != 1 or (sub is None and len(one.counts) != one.slots)):
                refuse(users[0][0].line, f"the barriers of {one.name} are not set up alike")
            name = one.name if sub is None else f"{one.name}[{sub}]"
            if any(ring.name == name for ring in found.values()):
                name = f"{name}, line {one.line}"
            slots = one.slots if sub is None else 1
            ring = Ring(name, slots, sub or 0, counts.pop() if barrier else 0, one.slot_bytes, tensor=one.tensor)
            mine = [event for event, slot in users if sub is None or _constant(slot) == sub]
            wanted = ARRIVES if barrier else WRITES
            filled = [event for event in mine if event.part == "loop" and event.op in wanted]
            used = next((event for event in mine if event.part == "loop" and event.op in READS), None)
            if slots > 1 and used is not None and not filled:
                refuse(used.line, f"{name} is filled once and read in turn")
            ring.moves = slots > 1 or bool(filled and (used or not one.tensor))
            found[one, sub] = ring
    return found


def _constant(slot: Slot) -> int:
    place = slot.place
    value = None if place is None else place.constant
    return 0 if value is None else value


class Namer:
    """Names the events of one track in order."""

    def __init__(self, track: Track, table: dict[tuple[Memory, int | None], Ring], trip: int) -> None:
        self.track = track
        self.table = table
        self.trip = trip
        self.visits: dict[tuple[Ring, str, int], int] = {}
        """Visits of a slot before the loop, by kind of use."""
        self.waited: dict[tuple[Ring, int], int] = {}
        """The last phase awaited before the loop."""
        self.offs: dict[tuple[Ring, str], list[int]] = {}
        """Offsets of uses in the loop, as if they went on to its end."""
        self.after: dict[tuple[Ring, str], int] = {}
        """The last offset or index after the loop."""
        self.expected: Named | None = None

    def ring(self, slot: Slot, line: int) -> Ring:
        """Return the ring of a slot."""
        whole = self.table.get((slot.memory, None))
        found = whole if whole is not None else self.table.get((slot.memory, _constant(slot)))
        return found if found is not None else refuse(line, f"{slot.memory.name} is not set up")

    def place(self, slot: Slot, ring: Ring, line: int) -> int:
        """Return the slot at k = 0, having checked that it moves by one per iteration."""
        place = slot.place
        if place is None:
            refuse(line, f"the slot of {ring.name} does not follow from the iteration")
        if ring.slots == 1:
            return 0
        start = place.at(0) % ring.slots
        period = lcm(len(place.table), ring.slots)
        if any(place.at(k) != (start + k) % ring.slots for k in range(period)):
            refuse(line, f"the slot of {ring.name} does not go from one to the next each iteration")
        return start

    def named(self, one: Named) -> Named:
        """Fill in the index of an event."""
        event = one.event
        if event.bar is not None:
            one.bar = self.ring(event.bar, event.line)
        if event.buf is not None:
            one.buf = self.ring(event.buf, event.line)
        if event.op == "wait":
            self.wait(one)
        elif event.op == "tma_load":
            self.copy(one)
        elif one.bar is not None and event.bar is not None:
            self.use(one, one.bar, event.bar, "arrivals", ARRIVES)
        elif one.buf is not None and event.buf is not None and not one.buf.accumulates:
            writes = event.op in WRITES
            self.use(one, one.buf, event.buf, "writes" if writes else event.op, WRITES if writes else (event.op,))
        if event.op == "arrive_tx":
            self.expected = one
        return one

    def use(self, one: Named, ring: Ring, slot: Slot, kind: str, ops: Sequence[str]) -> None:
        """Name an arrival, a write or a read by the visits of its slot."""
        line = one.event.line
        if kind in READS and not ring.moves:
            one.index = max(0, self.after.get((ring, "writes"), self.last_write(ring)))
            return
        if one.part == "pre" or not ring.moves:
            at = _constant(slot) - ring.first if ring.slots > 1 else 0
            many = self.alike(ring, at, ops) if ring.moves else 1
            seen = self.visits.get((ring, kind, at), 0)
            self.visits[ring, kind, at] = seen + 1
            one.index = at + ring.slots * (seen // many)
            self.after[ring, kind] = one.index
        elif one.part == "loop":
            start = self.place(slot, ring, line)
            at = (start + one.first) % ring.slots
            seen = self.visits.get((ring, kind, at), 0)
            one.off = at + ring.slots * (seen // self.alike(ring, at, ops, one.first)) - one.first
            self.offs.setdefault((ring, kind), []).append(one.off - one.last)
            if kind == "writes":
                ring.writes.append((one.off - one.last, self.trip))
        else:
            self.use_after(one, ring, self.place(slot, ring, line), kind)

    def use_after(self, one: Named, ring: Ring, start: int, kind: str) -> None:
        """Name a use after the loop, relative to its trip."""
        if kind in READS:
            newest = max([off + trip - self.trip - 1 for off, trip in ring.writes], default=0)
            newest = self.after.get((ring, "writes"), newest)
            one.off = newest - (newest - start) % ring.slots
            return
        offs = self.offs.get((ring, kind))
        least = min(offs) if offs else 1 - ring.slots
        least = max(least, self.after[ring, kind] + 1) if (ring, kind) in self.after and offs is None else least
        one.off = least + (start - least) % ring.slots
        self.after[ring, kind] = one.off

    def last_write(self, ring: Ring) -> int:
        """Return the index of the last write of memory that no loop writes."""
        return max(
            [seen - 1 for (other, kind, _), seen in self.visits.items() if other is ring and kind == "writes"] or [0]
        )

    def alike(self, ring: Ring, at: int, ops: Sequence[str], first: int = 0) -> int:
        """Return how many operations of the loop use the same slot in the same iteration in the same way."""
        count = 0
        for event in self.track.events:
            for slot in (event.bar, event.buf):
                if (
                    event.part == "loop"
                    and slot is not None
                    and event.op in ops
                    and self.ring(slot, event.line) is ring
                ):
                    place = slot.place
                    count += place is not None and place.at(first) % ring.slots == at
        return max(count, 1)

    def copy(self, one: Named) -> None:
        """Name a copy: the index of its buffer, the phase that was expected last."""
        event = one.event
        if one.bar is None or one.buf is None or event.bar is None or event.buf is None:
            return
        self.use(one, one.buf, event.buf, "writes", WRITES)
        told = self.expected
        if told is None or told.bar is not one.bar or told.part != one.part or told.event.bar != event.bar:
            told = Named(event, one.part, bar=one.bar, first=one.first)
            self.use(told, one.bar, event.bar, "bytes", ("tma_load",))
        mine, other = (one.off, told.off) if one.off is not None else (one.index, told.index)
        if mine is None or other is None or (other - mine) % one.bar.slots:
            refuse(event.line, f"{one.buf.name} and {one.bar.name} do not go from slot to slot together")
        one.ph = (other - mine) // one.bar.slots

    def wait(self, one: Named) -> None:
        """Name a wait by its parity."""
        event, ring = one.event, one.bar
        parity = event.parity
        if ring is None or event.bar is None or parity is None:
            return
        if one.part == "pre" or not ring.moves or (ring.slots == 1 and parity.constant is not None):
            if parity.constant is None:
                refuse(event.line, f"the phase of {ring.name} changes although nothing in a loop arrives there")
            at = _constant(event.bar) - ring.first if ring.slots > 1 else 0
            phase = self.waited[ring, at] = self.phase(ring, at, parity.constant)
            one.index = at + ring.slots * phase
            return
        start = self.place(event.bar, ring, event.line)
        turn = self.turn(one, ring, start, parity)
        if one.part == "loop":
            at = (start + one.first) % ring.slots
            one.off = at + ring.slots * self.phase(ring, at, parity.at(one.first)) - one.first
            self.offs.setdefault((ring, "waits"), []).append(one.off - one.last)
            return
        offs = self.offs.get((ring, "waits"))
        least = min(offs) if offs else 1 - ring.slots
        one.off = least + (start + ring.slots * turn - least) % (2 * ring.slots)

    def phase(self, ring: Ring, at: int, parity: int) -> int:
        """Return the next phase of that parity: the one after the last awaited, or that one again."""
        last = self.waited.get((ring, at))
        if last is None:
            return -1 if parity else 0
        return last + 1 if (last + 1) % 2 == parity else last

    def turn(self, one: Named, ring: Ring, start: int, parity: Wave) -> int:
        """Return which parity the first round has."""
        period = lcm(len(parity.table), 2 * ring.slots)
        for turn in (0, 1):
            if all(parity.at(k) == ((start + k) // ring.slots + turn) % 2 for k in range(period)):
                return turn
        return refuse(one.event.line, f"the parity of {ring.name} does not change once per round of its slots")
