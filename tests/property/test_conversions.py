"""Conversions of random layouts of registers, judged by running their steps on labels."""

import dataclasses
import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from judges.conversion_moves import stated_moves_hold

from layoutalg import InfeasibleError, LayoutError, LinearLayout, Unknown
from layoutalg.f2 import matrix
from layoutalg.proofs.conversion import ConversionPlan, Held
from layoutalg.proofs.conversion_steps import Read, Through
from layoutalg.proofs.listed_access import UNCOUNTED
from layoutalg.synth.conversions import conversion
from layoutalg.synth.conversions.inside import Places, fetched, inside

TENSOR = "x"
AMD = ["gfx90a", "gfx942", "gfx950"]
SEEDS = st.integers(0, 2**32).map(random.Random)


def layout(columns, registers, lanes, warps, bits, constant=0):
    axes = (("register", registers), ("lane", lanes), ("warp", warps))
    return LinearLayout(axes, ((TENSOR, bits),), tuple(columns), constant)


def invertible(draw, bits):
    while True:
        columns = [draw.getrandbits(bits) for _ in range(bits)]
        if matrix.rank(columns) == bits:
            return columns


def pair(draw, kind, registers, warps, lanes=5):
    """Two layouts: of unit vectors, dense, of elements that keep their warps, or with duplicates."""
    bits = registers + lanes + warps
    first, second = (draw.sample([1 << bit for bit in range(bits)], bits) for _ in range(2))
    if kind == "dense":
        first, second = invertible(draw, bits), invertible(draw, bits)
    inner = registers + lanes
    if kind == "warps":
        first = invertible(draw, bits)
        second = [matrix.apply(first, column) for column in invertible(draw, inner)]
        second += [column ^ matrix.apply(first, draw.getrandbits(inner)) for column in first[inner:]]
    counts = [registers, registers]
    if kind == "copies":  # both hold the span of the first fewer bits, the rest are anything of it
        size = draw.randint(1, bits)
        held = [1 << bit for bit in range(size)]
        first = draw.sample([*held, *(draw.choice([0, draw.getrandbits(size)]) for _ in range(bits - size))], bits)
        counts[1] = draw.randint(0, registers + 1)
        whole = counts[1] + lanes + warps
        second = [draw.choice([0, draw.getrandbits(size), 1 << draw.randrange(size)]) for _ in range(whole)]
        if draw.random() < 0.5:
            second[counts[1] + lanes :] = first[inner:]
    constants = [0, 0]
    if draw.random() < 0.4:
        constants = [draw.getrandbits(bits if kind != "copies" else size) for _ in range(2)]
    return [layout(columns, count, lanes, warps, bits, constant)
            for columns, count, constant in zip((first, second), counts, constants, strict=True)]  # fmt: skip


def every_plan_holds(plan, asked=None):
    """The plan, and each of its alternatives as a plan, do what they say; none of those asked for is cheaper."""
    assert plan.check() is plan
    for other in plan.alternatives:
        if other.cost is not None:
            dataclasses.replace(plan, mechanism=other.mechanism, steps=other.steps, cost=other.cost).check()
            assert asked not in (None, other.mechanism) or other.cost.cycles >= plan.cost.cycles


@settings(max_examples=60, deadline=None)
@given(SEEDS, st.sampled_from(["units", "warps", "few"]), st.integers(0, 6), st.integers(0, 2),
       st.sampled_from([8, 16, 32, 64]), st.sampled_from(["sm_90a", "sm_80", "gfx942", "gfx1100"]))  # fmt: skip
def test_what_is_not_made_is_not_cheaper(draw, kind, registers, warps, bits, target):
    """Inside warps, where bounds leave plans out: the cost is that of the cheapest of all plans."""
    lanes = 6 if target == "gfx942" else 5
    source, wanted = pair(draw, "units" if kind == "few" else kind, registers, warps, lanes)
    if kind != "warps":  # elements keep their warps: places of one are exchanged
        inner = list(source.columns[: registers + lanes])
        for _ in range(draw.randint(1, 3) if kind == "few" else 20):
            one, two = (draw.randrange(len(inner)) for _ in range(2))
            inner[one], inner[two] = inner[two], inner[one]
        wanted = layout([*inner, *source.columns[registers + lanes :]], registers, lanes, warps, source.out_bits)
    quick, whole = (conversion(source, wanted, bits, target, exhaustive=exhaustive) for exhaustive in (False, True))
    assert quick.cost.cycles == whole.cost.cycles


@settings(max_examples=70, deadline=None)
@given(SEEDS, st.sampled_from(["units", "dense", "warps", "copies"]), st.integers(0, 4),
       st.integers(0, 2), st.sampled_from([8, 16, 32, 64]), st.booleans())  # fmt: skip
def test_plans_bring_every_register_its_element(draw, kind, registers, warps, bits, exhaustive):
    source, wanted = pair(draw, kind, registers, warps)
    plan = conversion(source, wanted, bits, exhaustive=exhaustive)
    assert isinstance(plan, ConversionPlan)
    every_plan_holds(plan)
    stated_moves_hold(plan)


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.sampled_from(["units", "dense", "warps", "copies"]), st.integers(0, 3),
       st.integers(0, 1), st.sampled_from([8, 16, 32, 64]), st.sampled_from(AMD))  # fmt: skip
def test_plans_of_waves_of_64_lanes(draw, kind, registers, warps, bits, target):
    source, wanted = pair(draw, kind, registers, warps, lanes=6)
    plan = conversion(source, wanted, bits, target)
    every_plan_holds(plan)
    accesses = [access for step in plan.steps if isinstance(step, Through) for access in (step.store, step.load)]
    assert all((access.turns == UNCOUNTED) == (access.instruction in plan.why) for access in accesses)


@settings(max_examples=15, deadline=None)
@given(SEEDS, st.sampled_from(["units", "dense"]), st.integers(2, 4),
       st.sampled_from([8, 16, 32]), st.integers(0, 2))  # fmt: skip
def test_less_shared_memory_means_more_passes(draw, kind, registers, bits, fewer):
    source, wanted = pair(draw, kind, registers, 1)
    whole = bits * (1 << registers + 6) // 8
    plan = conversion(source, wanted, bits, mechanism="shared", smem_bytes=whole >> fewer)
    if isinstance(plan, Unknown):
        assert "at least" in plan.reason
        assert fewer
    else:
        every_plan_holds(plan, "shared")
        assert plan.rounds == (0 if plan.mechanism == "nothing" else 1 << fewer)


def least_by_search(source, wanted, lanes):
    """The least rounds of words by trying every assignment of rounds, lane by lane, for one warp."""
    have = {int(element): place for place, element in enumerate(source.reshape(-1).tolist())}
    registers = source.shape[1]
    moves = []
    for lane, register in itertools.product(range(lanes), range(wanted.shape[1])):
        sender, sent = divmod(have[int(wanted[lane, register])], registers)
        if sender != lane:
            moves.append((lane, sender, sent))
    for count in range(len(moves) + 1):
        takes, sends = set(), {}

        def fits(at, count=count, takes=takes, sends=sends):
            if at == len(moves):
                return True
            lane, sender, sent = moves[at]
            for turn in range(count):
                if (lane, turn) in takes or sends.get((sender, turn), (sent, 0))[0] != sent:
                    continue
                takes.add((lane, turn))
                before = sends.get((sender, turn), (sent, 0))
                sends[sender, turn] = sent, before[1] + 1
                if fits(at + 1):
                    return True
                takes.remove((lane, turn))
                if before[1]:
                    sends[sender, turn] = before
                else:
                    del sends[sender, turn]
            return False

        if fits(0):
            return count
    return None


@settings(max_examples=20, deadline=None)
@given(SEEDS, st.integers(0, 1), st.integers(1, 2))
def test_rounds_are_the_least_by_search(draw, registers, moving):
    """Lanes above the first few keep to themselves, so that the search is short."""
    bits = registers + 5
    source = [1 << bit for bit in range(bits)]
    small = invertible(draw, registers + moving)
    wanted = [*small, *source[registers + moving :]]
    one, two = layout(source, registers, 5, 0, bits), layout(wanted, registers, 5, 0, bits)
    plan = conversion(one, two, 32, exhaustive=True)
    ends = [Places(each.columns[:registers], each.columns[registers:], (), 0) for each in (one, two)]
    moved = fetched(*ends)
    counts = [sum(step.shuffles(32) for step in steps if isinstance(step, Read))
              for steps, _ in inside(moved, ends[1], 32)]  # fmt: skip
    few = 1 << moving
    tables = [each.table().reshape(32, -1)[:few] for each in (one, two)]
    assert min(counts) == least_by_search(*tables, few)
    if plan.least:
        assert plan.cost.shuffles == min(counts)


def test_a_layout_may_be_one_of_threads_and_values():
    plan = conversion("(32,4):(4,1)", "(32,4):(1,32)", 32)
    every_plan_holds(plan)
    assert plan.destination.elements()[0, 3, 2] == 67


def test_tables_of_other_extents():
    """Three registers in a circle stay in their threads; three exchanged between lanes take the least rounds."""
    plan = conversion("(32,3):(3,1)", "(32,(3)):(3,(1))", 16)
    assert plan.mechanism == "nothing"
    turned = conversion("(32,(3,2)):(6,(1,3))", "(32,(2,3)):(6,(3,1))", 16)
    assert (turned.mechanism, turned.check().cost.shuffles) == ("registers", 0)
    every_plan_holds(conversion("(32,3):(3,1)", "(32,3):(1,32)", 32))
    moved = conversion("(32,3):(3,1)", "(32,3):(1,32)", 32, mechanism="shuffles")
    assert (moved.mechanism, moved.least) == ("shuffles", True)
    assert moved.certificate.check()


def test_what_cannot_be_asked_is_named():
    rows = layout([1, 2, 4, 8, 16], 0, 5, 0, 5)
    with pytest.raises(LayoutError, match="only one of them has the axis"):
        conversion(rows, LinearLayout(rows.in_axes, (("y", 5),), rows.columns), 32)
    with pytest.raises(LayoutError, match="extent 32 along x"):
        conversion(rows, LinearLayout(rows.in_axes, (("x", 6),), rows.columns), 32)
    with pytest.raises(LayoutError, match="64 lanes"):
        conversion(rows, rows, 32, "gfx942")
    with pytest.raises(LayoutError, match="element_bits"):
        conversion(rows, rows, 24)
    with pytest.raises(LayoutError, match="LA934"):
        conversion(layout([1, 2, 4, 8, 0], 0, 5, 0, 5), rows, 32)
    blocks = LinearLayout((*rows.in_axes, ("block", 1)), (("x", 6),), (*rows.columns, 32))
    other = LinearLayout((*rows.in_axes, ("block", 1)), (("x", 6),), (2, 4, 8, 16, 32, 1))
    assert "no clusters" in conversion(blocks, other, 32, "sm_80").reason
    assert conversion(blocks, blocks, 32).mechanism == "nothing"
    turned = layout([2, 1, 4, 8, 16], 0, 5, 0, 5)
    with pytest.raises(InfeasibleError, match=r"(?s)LA934.*no element leaves its block"):
        conversion(rows, turned, 32, mechanism="cluster")


def test_the_axes_of_a_tensor_may_come_in_another_order():
    axes = (("register", 1), ("lane", 5), ("warp", 0))
    one = LinearLayout(axes, (("row", 3), ("col", 3)), (1, 2, 4, 8, 16, 32))
    two = LinearLayout(axes, (("col", 3), ("row", 3)), (8, 16, 32, 1, 2, 4))
    assert conversion(one, two, 16).mechanism == "nothing"


def test_held_tables_and_columns_agree():
    columns = (3, 1, 4, 8, 16, 32)
    one = layout(columns, 1, 5, 0, 6)
    plan = conversion(one, one, 32)
    table = tuple(tuple(tuple(row) for row in warp) for warp in plan.source.elements().tolist())
    assert np.array_equal(Held(None, table, 2, 32, 1).elements(), plan.source.elements())


@settings(max_examples=40, deadline=None)
@given(SEEDS, st.integers(1, 4), st.sampled_from([8, 16, 32, 64, 128]), st.integers(0, 3), st.integers(0, 2))
def test_passes_share_bytes_where_both_hold_other_registers_of_one_space(draw, registers, bits, fewer, target):
    """Registers of both layouts that span one space, by other bases: the passes have to agree on their elements."""
    source, wanted = pair(draw, "dense", registers, 1)
    columns = list(wanted.columns)
    kept = list(source.columns[:registers])
    draw.shuffle(kept)
    for at in range(draw.randint(0, registers)):
        columns[at] = kept[at] ^ (kept[at - 1] if at else 0)
    wanted = dataclasses.replace(wanted, columns=tuple(columns))
    if matrix.rank(columns) < len(columns):
        return
    name = ("sm_90a", "sm_80", "gfx1100")[target]
    whole = bits * (1 << registers + 6) // 8
    plan = conversion(source, wanted, bits, name, smem_bytes=whole >> fewer, exhaustive=True)
    if isinstance(plan, Unknown):
        assert fewer
        return
    every_plan_holds(plan)
