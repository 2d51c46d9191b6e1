"""Routed and paged data by enumeration, entry by entry."""

from __future__ import annotations

from typing import Any

import numpy as np


def routing(ids: Any, experts: int, block: int, local: Any) -> dict[str, Any]:
    """The lists of a routing."""
    flat, k = ids.reshape(-1).tolist(), ids.shape[1]
    first, last = local or (0, experts - 1)
    found: dict[str, Any] = {
        "order": [], "offsets": [0], "counts": [], "padded_offsets": [0], "padded_order": [], "block_experts": [],
        "tiles": [], "source_runs": [],
    }  # fmt: skip
    for expert in range(experts):
        rows = [place for place, each in enumerate(flat) if each == expert and first <= expert <= last]
        for start in range(0, len(rows), block):
            found["tiles"].append((expert, len(found["order"]) + start, len(rows[start : start + block])))
            found["block_experts"].append(expert)
        found["order"] += rows
        found["counts"].append(len(rows))
        found["padded_order"] += rows + [len(flat)] * (-len(rows) % block)
        found["offsets"].append(len(found["order"]))
        found["padded_offsets"].append(len(found["padded_order"]))
        run: list[int] = []
        for token in [place // k for place in rows] + [-9]:
            if run and token != run[-1] + 1:
                found["source_runs"].append((run[0], len(run), expert))
                run = []
            run.append(token)
    found["inverse"] = [found["order"].index(place) if place in found["order"] else -1 for place in range(len(flat))]
    return found


def addresses(
    table: list[int], size: int, heads: int, dim: int, element: int, layout: str, tokens: int, pages: int, stride: int
) -> Any:
    """The byte of every (token, head, d)."""
    found = np.zeros((tokens, heads, dim), dtype=np.int64)
    for token, head, d in np.ndindex(found.shape):
        row = token % size
        place = (row * heads + head) * dim + d if layout == "NHD" else (head * size + row) * dim + d
        found[token, head, d] = table[token // size] * stride + place * element
    return found


def in_page_order(places: Any, size: int, layout: str) -> list[int]:
    """The bytes page by page, each in its own order."""
    found: list[int] = []
    for start in range(0, len(places), size):
        page = places[start : start + size]
        found += (page if layout == "NHD" else page.transpose(1, 0, 2)).reshape(-1).tolist()
    return found


def runs(places: Any, element: int) -> list[tuple[int, int]]:
    """Bytes that follow each other, joined."""
    found: list[list[int]] = []
    for byte in map(int, places):
        if found and sum(found[-1]) == byte:
            found[-1][1] += element
        else:
            found.append([byte, element])
    return [(start, length) for start, length in found]


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
