"""Routed and paged data by enumeration, entry by entry."""

from __future__ import annotations

import numpy as np

from layoutalg.testing.campaigns import addresses, in_page_order, routing_lists, runs

__all__ = ["addresses", "fewest_pieces", "first_misuse", "in_page_order", "routing", "runs", "waits_early"]
routing = routing_lists


def fewest_pieces(values: list[int], step: int | None) -> int:
    """The fewest affine pieces of a list, over all cuts."""
    least = [0]
    for end in range(1, len(values) + 1):
        best = end
        for start in range(end):
            steps = {two - one for one, two in zip(values[start:end], values[start + 1 : end], strict=False)}
            if len(steps) <= 1 and (step is None or steps <= {step}):
                best = min(best, least[start] + 1)
        least.append(best)
    return least[-1]


def waits_early(events: list[tuple[str, str, str]]) -> bool:
    """Whether a wait is for an event that was not recorded before."""
    return any(kind == "wait" and not any(one == "record" and name == what for _, one, name in events[:place])
               for place, (_, kind, what) in enumerate(events))  # fmt: skip


def first_misuse(events: list[tuple[str, str, str]]) -> int | None:
    """The first event that uses memory while it is not its own, by the closure of all edges."""
    many = len(events)
    before = np.zeros((many, many), dtype=bool)
    for second, (stream, kind, what) in enumerate(events):
        for first in range(second):
            before[first, second] |= events[first][0] == stream
        if kind == "wait":
            recorded = max(place for place in range(second) if events[place][1:] == ("record", what))
            before[recorded, second] = True
        before[:, second] |= before[:, before[:, second]].any(axis=1)
    for place, (_, kind, what) in enumerate(events):
        if kind in ("record", "wait"):
            continue
        same = [each for each in range(place) if events[each][2] == what and events[each][1] not in ("record", "wait")]
        state = next((events[each][1] for each in reversed(same) if events[each][1] in ("allocate", "free")), None)
        if (kind == "allocate") == (state == "allocate"):
            pass
        if kind == "allocate":
            if state == "allocate":
                return place
            earlier = [each for each in same if events[each][1] == "free"]
        else:
            if state != "allocate":
                return place
            begun = max(each for each in same if events[each][1] == "allocate")
            alone = kind in ("write", "free")
            earlier = [each for each in same if each >= begun and (alone or events[each][1] != "use")]
        if not all(before[each, place] for each in earlier):
            return place
    return None
