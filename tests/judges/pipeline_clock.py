"""When a safe pipeline document is done with N = n, if every role does everything as soon as it may."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from typing import Any

from judges.cluster_judge import unrolled

GROUPS = {"mma": "mma", "mma_write": "mma", "tma_store": "bulk", "cp_async": "cp_async"}
SIGNALS = {"mma_arrive": "mma", "cp_async_arrive": "cp_async"}


def finished(document: dict[str, Any], times: dict[str, Any], n: int) -> Fraction:
    """The time at which the last role has done its last op; latencies as ``throughput`` takes them."""
    roles = [(role["name"], list(unrolled(role, n))) for role in document["roles"]]
    barriers, stages = document.get("barriers", {}), document["stages"]
    owed: dict[Any, int] = defaultdict(int)  # contributions that are not known yet
    complete: dict[Any, Fraction] = defaultdict(Fraction)

    def phase(op: dict[str, Any], k: int) -> tuple[str, int, int] | None:
        index = op.get("idx_abs", k + op.get("off", 0))
        if index < 0 and op["op"] != "wait":
            return None
        slots = barriers[op["bar"]].get("slots", stages)
        return op["bar"], index % slots, index // slots + op.get("ph", 0)

    def latency(op: dict[str, Any]) -> tuple[Fraction, Fraction]:
        given = times.get(op["op"], 0)
        later = op["op"] in GROUPS or op["op"] in SIGNALS or op["op"] == "tma_load"
        done, goes_on = given if isinstance(given, tuple) else (given, 0 if later else given)
        return Fraction(done), Fraction(goes_on)

    for _, ops in roles:
        for op, k in ops:
            if "bar" in op and op["op"] != "wait" and phase(op, k):
                owed[phase(op, k)] += 1
    clocks = [Fraction(0) for _ in roles]
    places = [0 for _ in roles]
    groups: list[Any] = [{unit: [[]] for unit in GROUPS.values()} for _ in roles]
    moved = True
    while moved:
        moved = False
        for number, (_, ops) in enumerate(roles):
            while places[number] < len(ops):
                op, k = ops[places[number]]
                there = phase(op, k) if "bar" in op else None
                if op["op"] == "wait":
                    if owed[there]:
                        break
                    before = (*there[:2], there[2] - 1)  # phases of a slot complete in turn
                    clocks[number] = max(clocks[number], complete[there], complete[before])
                done, goes_on = latency(op)
                end = clocks[number] + done
                unit, _, verb = op["op"].rpartition("_")
                mine = groups[number]
                if verb == "commit":
                    mine[unit].append([])
                elif verb == "wait" and unit in mine:
                    kept = op.get("n", 0) + 1
                    clocks[number] = max([clocks[number], *(time for group in mine[unit][:-kept] for time in group)])
                elif op["op"] in GROUPS and op.get("idx_abs", k + op.get("off", 0)) >= 0:
                    mine[GROUPS[op["op"]]][-1].append(end)
                elif op["op"] in SIGNALS:
                    end = max([end, *(time for group in mine[GROUPS[SIGNALS[op["op"]]]] for time in group)])
                if there and op["op"] != "wait":
                    owed[there] -= 1
                    complete[there] = max(complete[there], end)
                clocks[number] += goes_on
                places[number] += 1
                moved = True
    assert all(place == len(ops) for place, (_, ops) in zip(places, roles, strict=True)), "it hangs"
    return max(clocks)
