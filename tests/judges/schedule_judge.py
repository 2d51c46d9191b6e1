"""Modulo schedules by enumeration: roles and rows of all ops, then slots and lifetimes; stages by longest paths.

Nothing of this is the solver's: no bounds, no arithmetic terms. Times are those of the work (units of one cycle).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

SHARED, POOL_OF_BLOCK, MOST, DEEPEST = 232448, 65536, 255, 16
Roles = dict[str, str]
Row = dict[str, int]


def best(work: Any, most_ii: int) -> tuple[int, int, int] | None:
    """Return the least (II, stages, bytes) up to an II, or None."""
    for ii in range(1, most_ii + 1):
        if feasible(work, ii) is None:
            continue
        stages = next(stages for stages in itertools.count(1) if feasible(work, ii, stages) is not None)
        sizes = sorted({_bytes(work, depths) for depths in _all_depths(work, SHARED)})
        return ii, stages, next(size for size in sizes if feasible(work, ii, stages, size) is not None)
    return None


def feasible(work: Any, ii: int, stages: int | None = None, most: int = SHARED) -> bool | None:
    """Return True if there is a schedule, else None."""
    if any(op.occupancy > ii for op in work.ops):
        return None
    depths = [one for one in _all_depths(work, most) if not _deeper(work, one, most)]
    for roles in _roles(work):
        for row in _rows(work, ii, roles, stages is None):
            for caps in _caps(work, ii, roles, row):
                if any(_stages_fit(work, ii, roles, row, one, caps, stages) for one in depths):
                    return True
    return None


def _bytes(work: Any, depths: dict[str, int]) -> int:
    return sum(depths[ring.name] * (ring.bytes + 16) for ring in work.rings)


def _all_depths(work: Any, most: int) -> list[dict[str, int]]:
    names = [ring.name for ring in work.rings]
    every = [dict(zip(names, one, strict=True)) for one in itertools.product(range(1, DEEPEST + 1), repeat=len(names))]
    return [depths for depths in every if _bytes(work, depths) <= most]


def _deeper(work: Any, depths: dict[str, int], most: int) -> bool:
    """Whether one more slot fits: then the deeper rings alone need a look."""
    more = [depths | {name: slots + 1} for name, slots in depths.items() if slots < DEEPEST]
    return any(_bytes(work, one) <= most for one in more)


def _roles(work: Any) -> Iterator[Roles]:
    sizes = {role.name: role.warps for role in work.roles}
    seen = set()
    for chosen in itertools.product(sizes, repeat=len(work.ops)):
        roles = {op.name: role for op, role in zip(work.ops, chosen, strict=True)}
        if any(op.role not in ("", roles[op.name]) or op.warps > sizes[roles[op.name]] for op in work.ops):
            continue
        if any(not edge.ring and roles[edge.producer] != roles[edge.consumer] for edge in work.dependences):
            continue
        variable = {roles[op.name] for op in work.ops if op.variable}
        if variable & {roles[op.name] for op in work.ops if not op.variable}:
            continue
        key = tuple(list(dict.fromkeys(chosen)).index(role) for role in chosen)  # the drawn roles are alike
        if key not in seen:
            seen.add(key)
            yield roles


def _rows(work: Any, ii: int, roles: Roles, fixed: bool) -> Iterator[Row]:
    """Yield rows at which no unit and no role has two ops at a time; ``fixed``: the first op is in row 0."""
    busy: set[tuple[str, int]] = set()

    def walk(place: int, row: Row) -> Iterator[Row]:
        if place == len(work.ops):
            yield row
            return
        op = work.ops[place]
        for at in range(1 if fixed and place == 0 else ii):
            cells = {(op.unit, (at + more) % ii) for more in range(op.occupancy)}
            if op.unit in ("cuda", "sfu", "shared"):
                cells |= {(f"warps of {roles[op.name]}", (at + more) % ii) for more in range(op.occupancy)}
            if not cells & busy:
                busy.update(cells)
                yield from walk(place + 1, row | {op.name: at})
                busy.difference_update(cells)

    return walk(0, {})


def _caps(work: Any, ii: int, roles: Roles, row: Row) -> Iterator[dict[str, int]]:
    """Yield the longest lifetimes of the results in registers with which the registers are enough."""
    values = [op.name for op in work.ops if op.result]
    if not values:
        if _registers_fit(work, ii, roles, row, {}):
            yield {}
        return
    for spans in itertools.product(range(1, 5 * ii + 1), repeat=len(values) - 1):
        caps = dict(zip(values, spans, strict=False))
        for last in range(5 * ii, 0, -1):
            if _registers_fit(work, ii, roles, row, caps | {values[-1]: last}):
                yield caps | {values[-1]: last}
                break


def _registers_fit(work: Any, ii: int, roles: Roles, row: Row, caps: dict[str, int]) -> bool:
    threads = 32 * sum(role.warps for role in work.roles)
    results = {op.name: op.result for op in work.ops}
    total = 0
    for role in work.roles:
        alive = [role.registers + sum(op.registers for op in work.ops if roles[op.name] == role.name)] * ii
        for name, span in caps.items():
            for more in range(span if roles[name] == role.name else 0):
                alive[(row[name] + more) % ii] += results[name]
        if max(alive) > MOST:
            return False
        total += role.warps * 32 * max(24, -(-max(alive) // 8) * 8)
    return total <= threads * min(256, POOL_OF_BLOCK // threads // 8 * 8)


def _stages_fit(
    work: Any, ii: int, roles: Roles, row: Row, depths: dict[str, int], caps: dict[str, int], stages: int | None
) -> bool:
    """Whether some stages satisfy all differences: no cycle of positive length (Bellman and Ford)."""
    links: list[tuple[str, str, int]] = []  # the stage of the second is at least that of the first plus this
    latency = {op.name: op.latency for op in work.ops}
    if any(span < latency[name] for name, span in caps.items()):
        return False
    for edge in work.dependences:
        one, other = edge.producer, edge.consumer
        crossing = work.crossing if edge.ring and roles[one] != roles[other] else 0
        links.append((one, other, -((row[other] - row[one] - latency[one] - crossing) // ii) - edge.distance))
        span = depths[edge.ring] * ii - crossing if edge.ring else caps.get(one)
        if span is not None:
            links.append((other, one, -((span - latency[other] + row[one] - row[other]) // ii) + edge.distance))
    if stages is not None:
        links += [(one.name, other.name, 1 - stages) for one in work.ops for other in work.ops]
    late = dict.fromkeys(row, 0)
    for _ in range(len(row) + 1):
        moved = False
        for one, other, far in links:
            if late[one] + far > late[other]:
                late[other], moved = late[one] + far, True
        if not moved:
            return True
    return False
