"""Certificates of random operands and accesses: they hold where an independent judge agrees, and nowhere else."""

from __future__ import annotations

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.errors import AdmissibilityError, LayoutError
from layoutalg.proofs import checker
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem
from layoutalg.synth.wgmma import canonical_modes
from layoutalg.synth.wgmma.plan import find
from layoutalg.targets.banks import AMD_RULES
from layoutalg.targets.nvidia import wgmma

SPANS = {"NONE": 1, "32B": 2, "64B": 4, "128B": 8}


@st.composite
def problems(draw: st.DrawFn) -> OperandProblem:
    """A canonical tile, moved apart in places, and then perhaps damaged."""
    operand, major = draw(st.sampled_from("AB")), draw(st.sampled_from(wgmma.MAJORS))
    swizzle = draw(st.sampled_from(wgmma.SWIZZLES))
    shape = draw(st.sampled_from((64, 128) if operand == "A" else (8, 24, 64, 96))), draw(st.sampled_from((16, 32, 64)))
    assume(shape[major == "K"] % (8 * SPANS[swizzle]) == 0)
    modes = [list(axis) for axis in canonical_modes(shape, major, swizzle)]
    for axis in modes:
        if len(axis) > 1:
            axis[1] = axis[1][0], axis[1][1] + 8 * draw(st.integers(0, 40))
    if draw(st.booleans()):
        axis = draw(st.sampled_from(modes))
        place = draw(st.integers(0, len(axis) - 1))
        axis[place] = axis[place][0], max(0, axis[place][1] + draw(st.sampled_from((-8, -1, 1, 2, 8, 64, 512))))
    base, align = draw(st.sampled_from((0, 0, 16, 48, 6, 1600))), draw(st.sampled_from((1024, 1024, 256, 16)))
    asked = draw(st.sampled_from((swizzle, swizzle, *wgmma.SWIZZLES)))
    return OperandProblem(operand, shape, (tuple(modes[0]), tuple(modes[1])), asked, "f16", base, align)


def reads_rightly(plan: OperandPlan) -> bool:
    """Whether the hardware's table reads what is wanted, at every base of the alignment below 2048."""
    problem = plan.problem
    bytes_of = []
    for extent, modes in zip(problem.shape, problem.smem_modes, strict=True):
        index, total = np.arange(extent), np.zeros(extent, dtype=np.int64)
        for size, stride in modes:
            index, digit = np.divmod(index, size)
            total += 2 * stride * digit
        bytes_of.append(total)
    free = problem.smem_base_bytes + bytes_of[0][:, None] + bytes_of[1]
    for base in range(0, 2048, plan.align_bytes):
        wanted = (free + base) ^ ((free + base) // 128 % SPANS[problem.swizzle] * 16)
        for tile in plan.tiles:
            try:
                descriptor = wgmma.decode(tile.encoded).moved(base)
                read = wgmma.operand_offsets(descriptor, rows=plan.rows, major=plan.major)
            except LayoutError:
                return False
            if not np.array_equal(read, wanted[tile.mn : tile.mn + plan.rows, tile.k : tile.k + 16]):
                return False
    return True


@settings(deadline=None, max_examples=40)
@given(problems(), st.data())
def test_an_operand_has_a_certificate_or_its_absence_has(problem: OperandProblem, data: st.DataObject) -> None:
    plan = find(problem)
    if plan is None:
        assert la.certify.no_operand(problem).check()
        return
    made = la.certify.operand(plan)
    assert reads_rightly(plan)
    asked = {name: made.statement[name] for name in ("operand", "shape", "layout", "swizzle")}
    refuted = la.certify.Certificate("no-operand", asked | {"align": problem.align_bytes})
    assert checker.check(refuted.to_json())[0] == 1
    place, bit = data.draw(st.integers(0, len(plan.tiles) - 1)), data.draw(st.integers(0, 63))
    words = [tile.encoded ^ (1 << bit if at == place else 0) for at, tile in enumerate(plan.tiles)]
    code, told = checker.check(la.certify.Certificate("wgmma-operand", {**made.statement, "words": words}).to_json())
    assert (code == 0) == rightly_changed(plan, place, bit), told


def rightly_changed(plan: OperandPlan, place: int, bit: int) -> bool:
    try:
        changed = wgmma.decode(plan.tiles[place].encoded ^ 1 << bit)
    except LayoutError:
        return False
    tile = type(plan.tiles[0])(plan.tiles[place].mn, plan.tiles[place].k, changed, changed.encode())
    return reads_rightly(plan.with_changes(tiles=(*plan.tiles[:place], tile, *plan.tiles[place + 1 :])))


@settings(deadline=None, max_examples=20, suppress_health_check=[HealthCheck.filter_too_much])
@given(problems(), st.sampled_from((16, 64, 256, 512)))
def test_an_alignment_is_claimed_only_where_every_base_is_right(problem: OperandProblem, align: int) -> None:
    plan = find(problem)
    assume(plan is not None)
    loose = plan.with_changes(align_bytes=align)
    if reads_rightly(loose):
        assert la.certify.operand(loose).statement["align"] == align
        return
    try:
        la.certify.operand(loose)
    except AdmissibilityError as error:
        assert error.diagnostic.code == "LA427"
    else:
        raise AssertionError("a wrong alignment was certified")


def crowded(lanes: list[list[int]], addresses: list[int], size: int, banks: int) -> int:
    """Turns of groups of lanes: the most words that one bank has, by sets of bytes."""
    total = 0
    for group in lanes:
        words: dict[int, set[int]] = {}
        for lane in group:
            for byte in range(addresses[lane], addresses[lane] + size):
                words.setdefault(byte // 4 % banks, set()).add(byte // 4)
        total += max(len(found) for found in words.values())
    return total


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_turns_are_those_of_sets_of_words(data: st.DataObject) -> None:
    nvidia = data.draw(st.booleans())
    if nvidia:
        known = [("st.shared.b8", 1), ("st.shared.v2.b32", 8), ("ld.shared.b128", 16), ("stmatrix.x4", 16)]
        operation, size = data.draw(st.sampled_from([*known, ("ld.shared.b32", 4)]))
        target, banks, lanes, count = "sm_90a", 32, 32, max(1, size // 4)
        groups = [list(range(first, first + lanes // count)) for first in range(0, lanes, lanes // count)]
    else:
        (target, operation), rule = data.draw(st.sampled_from(list(AMD_RULES.items())))
        size, banks, lanes, groups = rule.access_bytes, rule.banks, rule.lanes, [list(part) for part in rule.phases]
    grain, step = (4 if size == 12 else size), data.draw(st.sampled_from((1, 2, 8, 9, 32)))
    rows = [[grain * (step * lane + data.draw(st.integers(0, 3)) * data.draw(st.integers(0, 40)))
             for lane in range(lanes)] for _ in range(2)]  # fmt: skip
    shared = [any(all(row[lane] == row[lane ^ way] for lane in range(32)) for way in (1, 2)) for row in rows]
    assume(not (nvidia and any(shared)))
    counted = [crowded(groups, row, size, banks) for row in rows]
    made = la.certify.bank_turns(target, operation, np.array(rows))
    assert (made.statement["turns"], made.statement["most"]) == (sum(counted), max(counted))
