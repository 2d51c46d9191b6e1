"""Lifetimes of device memory on streams: every use behind its allocation and before its free, or the missing edge.

Notation: uses of one stream happen in order; ``record`` marks a place of a stream and ``wait`` makes another stream go
on behind it. Happens-before is the transitive closure of both. What is allocated, used and freed has a name: a page, a
stage, a buffer. Allocation itself (``cudaMallocAsync``, a pool of pages) is the caller's.

Implementation notes: the events of one stream that are before an event are a prefix of that stream, so one number for
each stream (a vector clock) is the whole closure.
"""

from __future__ import annotations

from dataclasses import dataclass

from layoutalg.ground.check import Checker
from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.ground.record import Record
from layoutalg.ground.verdict import Proved, Refuted, Verdict

CHECK = Checker("LA943", "these are no uses of memory")
KINDS = ("allocate", "use", "write", "free", "record", "wait")
MOST = 1 << 16


@dataclass(frozen=True, slots=True)
class Use(Record, code="LA943"):
    """One event of a stream, in the order in which the host issues them.

    Args:
        stream: Its stream.
        kind: ``"allocate"``, ``"use"`` (reads), ``"write"`` (reads or writes), ``"free"``, ``"record"``, ``"wait"``.
        what: The memory; of a record and a wait, the event.
    """

    stream: str
    kind: str
    what: str

    def _validate(self) -> None:
        CHECK.choice(self.kind, "kind", KINDS)

    def __str__(self) -> str:
        return f"{self.kind} {self.what} on {self.stream}"


@dataclass(frozen=True, slots=True)
class Lifetimes(Record, code="LA943", schema="layoutalg/lifetimes/1"):
    """The events of all streams.

    Args:
        events: In the order in which the host issues them: a wait is for the last record of its event before it.

    Example:
        >>> copied = [("copy", "allocate", "s"), ("copy", "write", "s"), ("copy", "record", "full")]
        >>> used = [("main", "wait", "full"), ("main", "use", "s"), ("main", "free", "s")]
        >>> bool(Lifetimes.of(copied + used).check())
        True
        >>> print(Lifetimes.of(copied + used[1:]).check().witness["what"])
        use s on main is not ordered behind write s on copy: record an event on copy after it and wait on main
    """

    events: tuple[Use, ...]

    def _validate(self) -> None:
        if len(self.events) > MOST:
            raise CHECK.malformed("events", f"must be at most {MOST}", len(self.events))
        recorded: set[str] = set()
        for place, event in enumerate(self.events):
            if event.kind == "wait" and event.what not in recorded:
                raise CHECK.malformed(f"events[{place}]", "must wait for an event that was recorded before", str(event))
            if event.kind == "record":
                recorded.add(event.what)

    @classmethod
    def of(cls, events: object) -> Lifetimes:
        """Return the events given as (stream, kind, what)."""
        rows = [CHECK.entries(row, "an event", 3) for row in CHECK.entries(events, "events", MOST)]
        wrong = next((row for row in rows if len(row) != 3), None)
        if wrong is not None:
            raise CHECK.malformed("events", "must be (stream, kind, what)", wrong)
        return cls(tuple([Use(*row) for row in rows]))

    def check(self) -> Verdict:
        """Decide whether every use is behind its allocation and before its free, and writes are ordered with all else.

        Returns:
            ``Proved``; or ``Refuted`` with the two events and the edge that is missing, or the use that comes too late.
        """
        clocks = self._clocks()
        live: dict[str, list[int]] = {}  # the last event that was alone with the memory, and the reads since
        for place, event in enumerate(self.events):
            if event.kind in ("record", "wait"):
                continue
            before = live.get(event.what, [])
            if event.kind == "allocate":
                if before and self.events[before[-1]].kind != "free":
                    return self._refuted(place, before[0], f"{event}: it is not free since {self.events[before[0]]}")
                missing = self._first_unordered(clocks, before[-1:], place)
                if missing is not None:
                    return self._refuted(place, missing, self._edge(missing, place))
                live[event.what] = [place]
                continue
            if not before:
                return self._refuted(place, None, f"{event}: it was not allocated before")
            if self.events[before[-1]].kind == "free":
                return self._refuted(place, before[-1], f"{event} comes after {self.events[before[-1]]}")
            alone = event.kind in ("write", "free")
            missing = self._first_unordered(clocks, before if alone else before[:1], place)
            if missing is not None:
                return self._refuted(place, missing, self._edge(missing, place))
            if alone:
                live[event.what] = before = []
            before.append(place)
        return Proved("vector clocks", {"claim": f"{len(self.events)} events use memory while it is theirs"})

    def require(self) -> Lifetimes:
        """Return the events if they hold.

        Raises: AdmissibilityError: LA944, naming the missing edge.
        """
        verdict = self.check()
        if isinstance(verdict, Refuted):
            what = "memory is used while it is not its user's"
            because = str(verdict.witness["what"])
            raise AdmissibilityError(Diagnostic("LA944", what, ("lifetimes",), because, dict(verdict.witness)))
        return self

    def _clocks(self) -> list[dict[str, int]]:
        """For each event, by stream, the events of that stream that are before it or it itself."""
        now: dict[str, dict[str, int]] = {}
        marks: dict[str, dict[str, int]] = {}
        found = []
        for event in self.events:
            clock = dict(now.get(event.stream, {}))
            clock[event.stream] = clock.get(event.stream, 0) + 1
            if event.kind == "wait":
                for stream, count in marks[event.what].items():
                    clock[stream] = max(clock.get(stream, 0), count)
            if event.kind == "record":
                marks[event.what] = clock
            now[event.stream] = clock
            found.append(clock)
        return found

    def _first_unordered(self, clocks: list[dict[str, int]], earlier: list[int], place: int) -> int | None:
        for each in earlier:
            stream = self.events[each].stream
            if clocks[place].get(stream, 0) < clocks[each][stream]:
                return each
        return None

    def _edge(self, first: int, second: int) -> str:
        one, other = self.events[first], self.events[second]
        return (
            f"{other} is not ordered behind {one}: record an event on {one.stream} after it and wait on {other.stream}"
        )

    def _refuted(self, place: int, other: int | None, what: str) -> Refuted:
        return Refuted("vector clocks", {"what": what, "event": place, "other": -1 if other is None else other})
