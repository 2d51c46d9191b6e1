"""Parts of a role that are tracks of their own: which events are theirs, and whether taking them apart keeps proofs.

A part whose memory nobody else uses is independent. An inner loop, or a branch that some iterations take, shares memory
with other roles; its order with the rest of its role is then left out (``Track.loose``). What is proved of the parts
holds for the whole: every order that remains is one of the kernel. And if nothing hangs in any part, nothing hangs at
all, as long as roles and groups of parts that share memory form a forest: roles that wait in a circle, each for another
in another group, would be a circle of roles and groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from layoutalg.proofs.pipeline.kernels.events import Event, Memory, Track, refuse
from layoutalg.proofs.pipeline.ops import GROUPS, OPS, PARTS


def touches(event: Event) -> set[Memory]:
    """Return the memory that an event uses."""
    return {slot.memory for slot in (event.bar, event.buf) if slot is not None}


def belongs(event: Event, kinds: set[str]) -> bool:
    """Whether an event without memory is a fence, or belongs to those kinds of accesses."""
    return not touches(event) and (event.op == "proxy_fence" or _group(event) in kinds)


def distribute(tracks: Sequence[Track]) -> None:
    """Move what a role does before and after its loop to the parts whose memory it uses."""
    for role in dict.fromkeys([track.inside for track in tracks if track.loose]):
        if role is None:
            continue
        parts = [track for track in tracks if track.loose and track.inside is role]
        homes: dict[Memory, Track] = {}
        kinds: dict[str, set[str]] = {}
        for track in (*parts, role):
            for event in track.events:
                if event.part == "loop" or track is not role:
                    for memory in touches(event):
                        if homes.setdefault(memory, track) is not track:
                            refuse(event.line, f"{memory.name} is used by an inner part of a loop and by the rest")
                if event.op in GROUPS:
                    kinds.setdefault(event.op, set()).add(track.name)
        for kind, names in kinds.items():
            waits = [event for track in (role, *parts) for event in track.events if _group(event) == kind]
            if len(names) > 1 and any(event.n for event in waits):
                refuse(role.line, f"groups of {kind} are opened by an inner part of a loop and by the rest")
        for track in (role, *parts):
            _move(track, parts, homes, kinds)


def _group(event: Event) -> str:
    """Return the kind of accesses that an op without memory closes or awaits, or nothing."""
    return OPS[event.op].group if event.op in OPS and not touches(event) else ""


def _move(track: Track, parts: list[Track], homes: Mapping[Memory, Track], kinds: Mapping[str, set[str]]) -> None:
    """Move the events of a track that are those of parts; leave out waits for what another part has begun."""
    kept: list[Event] = []
    for event in track.events:
        named = kinds.get(_group(event), {track.name})
        owners = [homes[memory] for memory in touches(event) if memory in homes][:1] or [
            part for part in (track, *parts) if part.name in named
        ]
        if track in owners:
            kept.append(event)
        for home in owners:
            if home is track or event.part == "loop" or not home.loose:
                continue
            if home.late and touches(event):
                refuse(event.line, "memory of a branch after the loop is used outside of it")
            if (event.part == "post" and not home.late) or (event.part == "pre" and touches(event)):
                home.events.insert(_place(home, event), replace(event, when=()))
            if event.when and touches(event):
                refuse(event.line, "a condition of the rest of its role is not followed")
    track.events = kept


def _place(track: Track, event: Event) -> int:
    """Return where an event of that part goes: behind those of the same part."""
    return sum([PARTS.index(other.part) <= PARTS.index(event.part) for other in track.events])


def components(tracks: Sequence[Track]) -> list[list[Track]]:
    """Return the groups of tracks that share memory.

    Raises: RepresentabilityError: LA973: loose parts do not form a forest with the roles.
    """
    groups: list[list[Track]] = []
    for track in tracks:
        mine = set().union(*[touches(event) for event in track.events])
        joined = [group for group in groups if any(mine & touches(event) for other in group for event in other.events)]
        groups = [group for group in groups if group not in joined] + [[*[one for g in joined for one in g], track]]
    leader: dict[object, object] = {}

    def root(node: object) -> object:
        while node in leader:
            node = leader[node]
        return node

    for place, group in enumerate(groups):
        for owner in {track.owner for track in group}:
            one, two = root(place), root(owner)
            if one is two:
                refuse(owner.line, "two roles share memory in a loop and in a loop inside it, in a circle")
            leader[one] = two
    return groups
