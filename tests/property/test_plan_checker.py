"""The checker of TensorMap plans against loops: every element of every tile origin near a small tensor, one by one.

The judge below knows nothing of the checker: it walks boxes, XORs and bounds with plain integers, for loads and stores,
rising and falling strides, folded coordinates, right plans and plans with some fields changed.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections import Counter

import pytest

from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.tensormap import Issue, TensorMapPlan, TensorMapProblem, check
from layoutalg.targets.nvidia import tensormap

SIZE = 8  # bytes of u64, so that a row of 16 elements is 128 bytes
SPAN = {"NONE": 0, "32B": 32, "64B": 64, "128B": 128}
PHASES = {"NONE": 1, "32B": 2, "64B": 4, "128B": 8}


def xor(swizzle, address):
    for bit in range(PHASES[swizzle].bit_length() - 1):
        address ^= (address >> (7 + bit) & 1) << (4 + bit)
    return address


def box_walk(tm):
    """Every element of a box: its steps from the start coordinate and its shared byte before the XOR."""
    counts = [tm.box[0]] + [-(-b // e) for b, e in zip(tm.box[1:], tm.element_strides[1:], strict=True)]
    pitch = max(counts[0] * SIZE, SPAN[tm.swizzle])
    for index in itertools.product(*(range(count) for count in reversed(counts))):
        inner, *outer = reversed(index)
        row = 0
        for i, count in zip(reversed(outer), reversed(counts[1:]), strict=True):
            row = row * count + i
        yield (inner, *(i * e for i, e in zip(outer, tm.element_strides[1:], strict=True))), row * pitch + inner * SIZE


def tile_map(problem):
    """Tile coordinate of every requested shared byte address, None where two share one."""
    found = {}
    for t in itertools.product(*(range(extent) for extent in problem.tile)):
        offset = 0
        for coordinate, modes in zip(t, problem.smem_modes, strict=True):
            for extent, stride in modes:
                offset += coordinate % extent * stride
                coordinate //= extent
        address = xor(problem.swizzle, offset * SIZE)
        if address in found:
            return None
        found[address] = t
    return found


def footprint(tm):
    rows = 1
    for b, e in zip(tm.box[1:], tm.element_strides[1:], strict=True):
        rows *= -(-b // e)
    return rows * max(tm.box[0] * SIZE, SPAN[tm.swizzle])


def origins(p, dim, points):
    """Lattice points that a store must be able to start at: those in bounds, else those whose tile touches, else 0."""
    step, (lo, hi) = p.origin_multiple[dim], p.bounds[dim]
    last = p.element_strides[dim] * (p.tile[dim] - 1)
    inside = [u for u in points if lo <= u * step < hi]
    return inside or [u for u in points if u * step < hi and u * step + last >= lo] or [0]


def judged(plan, reach):
    """Return (class, why not): the out-of-bounds class of a right plan, or what is wrong with it."""
    p, tm = plan.problem, plan.tensor_map
    try:
        if tensormap.encode(tm) != plan.raw:
            return None, "bytes"
    except LayoutError:
        return None, "map"
    if tm.oob_fill != "ZERO" or tm.interleave != "NONE" or tm.dtype != p.dtype:
        return None, "fields"
    wanted = tile_map(p)
    if wanted is None:
        return None, "two elements in one place"
    elements = []
    for issue in plan.issues:
        if issue.smem_offset_bytes % 128 or issue.smem_offset_bytes < 0:
            return None, "alignment"
        for steps, offset in box_walk(tm):
            tile = wanted.get(xor(tm.swizzle, issue.smem_offset_bytes + offset))
            if tile is None:
                return None, "stray"
            elements.append((tile, [c + s for c, s in zip(issue.coords, steps, strict=True)]))
    if {tile for tile, _ in elements} != set(wanted.values()):
        return None, "not covered"
    reachable = [(n - 1) * s for n, s in zip(p.global_shape, p.global_strides, strict=True)]
    first = (p.base_elem_offset + sum(r for r in reachable if r < 0)) * SIZE
    end = (p.base_elem_offset + sum(r for r in reachable if r > 0) + 1) * SIZE
    last = tm.base_address + tm.dims[0] * SIZE
    last += sum((n - 1) * s for n, s in zip(tm.dims[1:], tm.strides_bytes, strict=True))
    if tm.base_address < first or last > end:
        return None, "reach"
    answer = "exact"
    ranges = [range(-r, r + 1) if m else range(1) for r, m in zip(reach, p.origin_multiple, strict=True)]
    spoken = [origins(p, dim, points) for dim, points in enumerate(ranges)]
    for u in itertools.product(*ranges):
        origin = [a * b for a, b in zip(u, p.origin_multiple, strict=True)]
        started = all(not m or lo <= o < hi for o, m, (lo, hi) in zip(origin, p.origin_multiple, p.bounds, strict=True))
        terms = [(j, n * origin[d], den) for j, row in enumerate(plan.origin_map) for d, n, den in row]
        if any(top % den for _, top, den in terms):
            return None, "between coordinates"
        shift = [sum(top // den for j, top, den in terms if j == k) for k in range(len(tm.dims))]
        starts = [[c + s for c, s in zip(issue.coords, shift, strict=True)] for issue in plan.issues]
        if any(start[0] * SIZE % 16 for start in starts):
            return None, "inner start"
        if p.direction == "store" and min(min(start) for start in starts) < 0:
            assert not plan.expresses(origin)
            if all(a in points for a, points in zip(u, spoken, strict=True)):
                return None, "negative start"
        written = {}
        for tile, at in elements:
            coords = [c + s for c, s in zip(at, shift, strict=True)]
            moved = all(0 <= c < n for c, n in zip(coords, tm.dims, strict=True))
            x = [o + e * t for o, e, t in zip(origin, p.element_strides, tile, strict=True)]
            inside = all(lo <= c < hi for c, (lo, hi) in zip(x, p.bounds, strict=True))
            if inside and not moved:
                return None, "in bounds, not moved"
            if inside:
                byte = tm.base_address + coords[0] * SIZE
                byte += sum(c * s for c, s in zip(coords[1:], tm.strides_bytes, strict=True))
                element = p.base_elem_offset + sum(c * s for c, s in zip(x, p.global_strides, strict=True))
                if byte != element * SIZE:
                    return None, "wrong element"
                if p.direction == "store" and written.setdefault(byte, tile) != tile:
                    return None, "written twice"
            elif moved:
                answer = "lost" if started else "weak" if answer == "exact" else answer
    if p.direction == "store" and (answer == "lost" or tm.dims[0] * SIZE % 16):
        return None, "a store of foreign bytes"
    numbers = (
        len(plan.issues) * len(list(box_walk(tm))) * SIZE,
        max(128, *(128 * PHASES[s] for s in (tm.swizzle, p.swizzle))),
        max(issue.smem_offset_bytes for issue in plan.issues) + footprint(tm),
    )
    if numbers != (plan.expect_tx_bytes, plan.smem_align_bytes, plan.smem_bytes):
        return None, "numbers"
    return answer, None


def numbered(problem, tm, issues, origin_map):
    """A plan with the numbers that its fields imply."""
    align = max(128 * PHASES[tm.swizzle] if tm.swizzle != "NONE" else 128, 128 * PHASES[problem.swizzle])
    documented = tensormap.violations(tm, evidence="documented")
    return TensorMapPlan(
        problem, tm, tensormap.encode(tm), issues, origin_map, len(issues) * len(list(box_walk(tm))) * SIZE, align,
        max(issue.smem_offset_bytes for issue in issues) + footprint(tm), "exact",
        tuple(sorted({violation.rule for violation in documented})),
    )  # fmt: skip


def document(rng, shape, strides, tile, offset, bounds, steps, multiple, swizzle, direction):
    modes, stride = [], 1
    for extent in reversed(tile):
        modes.insert(0, [[extent, stride]])
        stride *= extent
    return TensorMapProblem.from_json(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
            "global": {"shape": shape, "stride": strides, "dtype": "u64", "base_align_bytes": 256}, "tile": tile,
            "smem": {"modes": modes, "swizzle": swizzle}, "base_elem_offset": offset, "bounds": bounds,
            "element_strides": steps, "origin_multiple": multiple,
        }
    )  # fmt: skip


def bound(rng, extent, grain=1):
    low = rng.choice([0, 0, rng.randrange(0, extent, grain)])
    return [low, rng.choice([extent, rng.randrange(low + grain, extent + 1, grain)])]


def two_dimensional(rng):
    """Rows that rise or fall in memory, read by one copy of several rows or by a copy per row."""
    rows, columns = rng.randint(1, 5), rng.choice([16, 32])
    pitch = columns + rng.choice([0, 0, 2])
    falls = rng.random() < 0.5
    step = 1 if falls else rng.choice([1, 1, 2])
    r = rng.randint(1, 3)
    bounds = [bound(rng, rows), bound(rng, columns, 2)]
    multiple = [rng.choice([0, 1, 1, r * step]), rng.choice([0, 2, 16])]
    offset = rng.choice([0, 2, 16]) + (pitch * (rows - 1) if falls else 0)
    swizzle, direction = rng.choice(["NONE", "128B"]), rng.choice(["load", "store"])
    strides = [-pitch if falls else pitch, 1]
    problem = document(rng, [rows, columns], strides, [r, 16], offset, bounds, [step, 1], multiple, swizzle, direction)
    (low, high), (left, right) = problem.bounds
    base = offset + left + (high - 1 if falls else low) * strides[0]
    box = (16, 1 if falls else (r - 1) * step + 1)
    tm = tensormap.TensorMap(
        "u64", (right - left, high - low), (pitch * SIZE,), box, (1, step), swizzle=swizzle, base_address=base * SIZE
    )
    issues = (Issue((-left, -low), 0),)
    if falls:
        issues = tuple(Issue((-left, high - 1 - i), 128 * i) for i in range(r))
    return numbered(problem, tm, issues, (((1, 1, 1),), ((0, -1 if falls else 1, 1),))), (9, 18)


def folded(rng):
    """Two outer dimensions in one map coordinate."""
    a, b, r = rng.randint(1, 3), rng.randint(1, 4), rng.randint(1, 2)
    bounds = [bound(rng, a), bound(rng, b), [0, 16]]
    multiple = [rng.choice([0, 1, 1]), rng.choice([0, 1, r]), 0]
    direction = rng.choice(["load", "load", "store"])
    problem = document(rng, [a, b, 16], [16 * b, 16, 1], [1, r, 16], 0, bounds, [1, 1, 1], multiple, "NONE", direction)
    tm = tensormap.TensorMap("u64", (16, a * b), (128,), (16, r))
    return numbered(problem, tm, (Issue((0, 0), 0),), (((2, 1, 1),), ((0, b, 1), (1, 1, 1)))), (7, 9, 2)


def mutated(rng, plan):
    """One field of a plan changed; None where that makes no plan."""
    tm, issues = plan.tensor_map, list(plan.issues)
    rank = len(tm.dims)
    try:
        choice = rng.randrange(8)
        if choice == 0:
            q, j = rng.randrange(len(issues)), rng.randrange(rank)
            coords = list(issues[q].coords)
            coords[j] += rng.choice([1, -1, 2, -2, 16])
            issues[q] = Issue(tuple(coords), issues[q].smem_offset_bytes)
            return plan.with_changes(issues=issues)
        if choice == 1:
            j = rng.randrange(rank)
            terms = [list(term) for term in plan.origin_map[j]]
            if not terms or rng.random() < 0.2:
                terms = [] if terms else [[rng.randrange(plan.problem.rank), 1, 1]]
            else:
                term = rng.choice(terms)
                at = rng.randrange(3)
                term[at] = rng.randrange(plan.problem.rank) if at == 0 else rng.choice([1, 2, -1, 3]) if at == 1 else 2
            return plan.with_changes(origin_map=(*plan.origin_map[:j], terms, *plan.origin_map[j + 1 :]))
        if choice == 2:
            name, values = rng.choice(
                [
                    ("dims", tm.dims),
                    ("box", tm.box),
                    ("strides_bytes", tm.strides_bytes),
                    ("element_strides", tm.element_strides),
                ]
            )
            values = list(values)
            j = rng.randrange(len(values))
            values[j] += rng.choice([1, -1, 2, 16, -16])
            changed = dataclasses.replace(tm, **{name: tuple(values)})
            return numbered(plan.problem, changed, plan.issues, plan.origin_map)
        if choice == 3:
            changed = dataclasses.replace(tm, base_address=tm.base_address + rng.choice([16, -16, 128]))
            return numbered(plan.problem, changed, plan.issues, plan.origin_map)
        if choice == 4:
            changed = dataclasses.replace(tm, swizzle=rng.choice(["NONE", "32B", "64B", "128B"]))
            return numbered(plan.problem, changed, plan.issues, plan.origin_map)
        if choice == 5:
            name = rng.choice(
                ["origin_multiple", "bounds", "element_strides", "global_strides", "base_elem_offset", "direction"]
            )
            if name == "direction":
                return plan.with_changes(problem=plan.problem.with_changes(direction=rng.choice(["load", "store"])))
            value = getattr(plan.problem, name)
            if name == "bounds":
                value = [bound(rng, extent, 2 if extent >= 16 else 1) for extent in plan.problem.global_shape]
            elif name == "base_elem_offset":
                value = max(0, value + rng.choice([1, -1, 16, -16]))
            else:
                value = list(value)
                value[rng.randrange(len(value))] += rng.choice([1, -1, 2])
            return plan.with_changes(problem=plan.problem.with_changes(**{name: value}))
        if choice == 6:
            q = rng.randrange(len(issues))
            issues[q] = Issue(issues[q].coords, issues[q].smem_offset_bytes + rng.choice([128, -128, 64]))
            return plan.with_changes(issues=issues)
        name = rng.choice(["expect_tx_bytes", "smem_align_bytes", "smem_bytes"])
        return plan.with_changes(**{name: getattr(plan, name) + rng.choice([1, -1, 128])})
    except LayoutError:
        return None


def agree(plan, reach):
    """Compare the checker with the judge; return what both say."""
    found, why = judged(plan, reach)
    claimed = plan.with_changes(oob=found or "exact")
    verdict = check(claimed)
    shown = (found, why, verdict, claimed.to_json())
    if found is None:
        assert isinstance(verdict, Refuted), shown
        for other in ("weak", "lost"):  # of these classes fewer origins count, never none
            assert isinstance(check(plan.with_changes(oob=other)), Refuted), (other, *shown)
        return why
    assert isinstance(verdict, Proved), shown
    assert verdict.certificate["oob"] == found, shown
    for other in ("exact", "weak", "lost"):
        if other != found:
            assert isinstance(check(plan.with_changes(oob=other)), Refuted), shown
    return found


@pytest.mark.parametrize("seed", range(2))
def test_the_checker_agrees_with_loops_over_every_element(seed):
    rng = random.Random(seed)
    seen: Counter[object] = Counter()
    for _ in range(30):
        plan, reach = rng.choice([two_dimensional, two_dimensional, folded])(rng)
        seen[plan.direction, agree(plan, reach)] += 1
    assert {("load", "exact"), ("store", "exact"), ("load", "weak")} <= set(seen)


@pytest.mark.parametrize("seed", range(2))
def test_the_checker_agrees_on_changed_plans(seed):
    rng = random.Random(100 + seed)
    seen: Counter[object] = Counter()
    while sum(seen.values()) < 60:
        plan, reach = rng.choice([two_dimensional, two_dimensional, folded])(rng)
        for _ in range(rng.choice([1, 1, 2])):
            plan = plan and mutated(rng, plan)
        if plan is not None:
            seen[agree(plan, reach)] += 1
    assert len(seen) >= 8, seen
