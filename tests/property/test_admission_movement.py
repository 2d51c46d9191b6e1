"""What refusals say of data that is already there: conversions of registers, and movements in shared memory.

Conversions are planned again and run on labels; movements are executed element by element, and their turns are counted
from the addresses by the documented rule: a phase of lanes takes as many turns as words of one bank that it touches.
"""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.synth.admission import asked_again
from layoutalg.synth.fragments import coordinates
from layoutalg.targets.instruction_costs import instruction_costs
from layoutalg.targets.layouts.amd import mfma_accumulator
from layoutalg.targets.layouts.nvidia import mma_accumulator, mma_operand, wgmma_accumulator

REGISTERS = {
    ("mma.m16n8k16.f32.bf16.A", "sm_90a", "bf16"): lambda m, k, w: mma_operand("A", (16 * m, 16 * k), (w, 1), 2),
    ("mma.m16n8k32.s32.s8.A", "sm_90a", "s8"): lambda m, k, w: mma_operand("A", (16 * m, 32 * k), (w, 1), 4),
    ("mma.m16n8k16.f32.f16.D", "sm_80", "f32"): lambda m, n, w: mma_accumulator((16 * m, 8 * n), (w, 1)),
    ("mma.m16n8k16.f32.bf16.B", "sm_90a", "bf16"): lambda n, k, w: mma_operand("B", (16 * k, 8 * n), (1, w), 2),
    ("wgmma.D", "sm_90a", "f32"): lambda m, n, w: wgmma_accumulator((64 * m, 8 * n), (4, 1), 8 * w),
    ("mfma.v_mfma_f32_32x32x8_f16.D", "gfx942", "f32"): lambda m, n, w: mfma_accumulator(
        (32 * m, 32 * n), (32, 32), (w, 1)
    ),
}
"""A tiling by an operand of some instructions, rows, columns and warps."""
POWERS = st.sampled_from([1, 2, 4])


def shuffled(layout: la.LinearLayout, seed: int, kept: int) -> la.LinearLayout:
    """The layout with its basis vectors dealt anew, except for the first few."""
    axes = {axis: images for axis, images in layout.bases.items() if axis in ("register", "lane", "warp")}
    every = [image for images in axes.values() for image in images]
    moving = every[kept:]
    random.Random(seed).shuffle(moving)
    left = iter([*every[:kept], *moving])
    bases = {axis: [next(left) for _ in images] for axis, images in axes.items()}
    return la.LinearLayout.from_bases(bases, dict(layout.out_dims))


@given(st.sampled_from(list(REGISTERS)), POWERS, POWERS, POWERS, st.integers(0, 2**16), st.integers(0, 3))
@settings(max_examples=40, deadline=None)
def test_registers_are_converted_into_a_tiling(case, rows, columns, warps, seed, kept) -> None:
    consumer, target, dtype = case
    held = shuffled(REGISTERS[case](max(rows, warps), max(columns, warps), warps), seed, kept)
    answer = la.admissible(held, consumer, target, dtype)
    if answer:
        return
    assert answer.rules[0] in ("FRAGMENT", "WGMMA_FRAGMENT", "WGMMA_ROWS")
    (repair,) = [each for each in answer.repairs if each.name == "convert the registers"]
    wanted = la.parse(repair.detail)
    assert la.admissible(wanted, consumer, target, dtype)
    assert all(asked_again(answer, repair))
    assert (wanted.out_dims, wanted.in_dims["register"]) == (held.out_dims, held.in_dims["register"])
    plan = la.conversion(held, wanted, {"bf16": 16, "s8": 8, "f32": 32}[dtype], target).check()
    told = (plan.mechanism, plan.rounds, plan.cost.cycles, plan.cost.barriers)
    assert told == tuple(repair.movement[key] for key in ("mechanism", "rounds", "cycles", "barriers"))
    before, after = (coordinates(each)[0].reshape(-1, len(held.out_dims)) for each in (held, wanted))
    assert {tuple(each) for each in after.tolist()} == {tuple(each) for each in before.tolist()}


@pytest.mark.parametrize(
    "text",
    [
        "F2[register=(0,1)(0,2)(0,4), lane=(0,8)(0,16)(1,0)(2,0)(4,0) -> row:8, k:32]",  # m = 16 does not divide 8 rows
        "F2[register=(0,1)(1,0)(2,0), lane=(4,0)(8,0)(16,0)(0,2)(0,4) -> row:32, k:8]",  # nor k = 16 8 columns
        "F2[register=(0,1)(0,2)(0,4), lane=(0,8)(1,0)(2,0)(4,0)(8,0)(0,16) -> row:16, k:32]",  # 64 lanes
        "F2[register=(0,1)(0,2)(0,4), lane=(0,8)(1,0)(2,0)(4,0)(0,0) -> row:16, k:16]",  # elements are missing
    ],
)
def test_no_conversion_where_the_fragment_does_not_divide_the_tile(text: str) -> None:
    answer = la.admissible(text, "mma.m16n8k16.f32.bf16.A")
    assert answer.rules == ("FRAGMENT",)
    assert not any(each.name == "convert the registers" for each in answer.repairs)


def test_warps_that_own_whole_instructions_keep_their_elements() -> None:
    text = "F2[register=(0,1)(0,2)(0,4), lane=(0,8)(1,0)(2,0)(4,0)(8,0), warp=(32,0)(16,0) -> row:64, k:16]"
    (repair,) = la.admissible(text, "mma.m16n8k16.f32.bf16.A").repairs
    assert "warp=(32,0)(16,0)" in repair.detail


PHASES = {16: 8, 8: 16, 4: 32, 2: 32, 1: 32}
"""Lanes that are served together, by the bytes of each."""


def counted(addresses: np.ndarray, size: int) -> int:
    """Turns of instructions, [instruction, lane] -> byte address."""
    turns = 0
    for row in addresses:
        for lanes in row.reshape(-1, PHASES[size]):
            words = {int(lane + 4 * part) // 4 for lane in lanes for part in range(max(1, size // 4))}
            turns += int(np.bincount([word % 32 for word in words]).max())
    return turns


def accesses(told: str, offsets: np.ndarray, bits: int) -> int:
    """Check that the registers of every thread are moved by the stated vectors, and return the turns."""
    name, count, turns = re.fullmatch(r"\w\w\.shared\.(\S+) x(\d+), (\d+) turns", told).groups()
    size = {"v4.b32": 16, "v2.b32": 8, "b32": 4, "b16": 2, "b8": 1}[name]
    warps, lanes, registers = offsets.shape
    vector = size * 8 // bits
    assert int(count) * vector == registers
    runs = np.sort(offsets, axis=2).reshape(warps, lanes, -1, vector)
    assert (np.diff(runs, axis=3) == 1).all()
    assert not (runs[..., 0] % vector).any()
    # the same registers in all threads: each run starts at one register
    starts = [register for register in range(registers) if not (offsets[..., register] % vector).any()]
    firsts = [register for register in starts if all(
        any((offsets[..., other] == offsets[..., register] + step).all() for other in range(registers))
        for step in range(vector)
    )]  # fmt: skip
    assert len(firsts) == int(count)
    rows = np.concatenate([offsets[..., register] * bits // 8 for register in firsts])
    assert counted(rows, size) == int(turns)
    return int(turns)


SHARED = st.tuples(
    st.sampled_from(["wgmma.A", "wgmma.B", "ldmatrix.x4", "ldmatrix.x2.trans", "tcgen05.A"]),
    st.sampled_from([("bf16", 16), ("e4m3", 8), ("tf32", 32)]),
    st.sampled_from([(64, 64), (128, 64), (64, 32), (128, 16)]),
    st.integers(1, 24),
    st.booleans(),
)


@given(SHARED)
@settings(max_examples=25, deadline=None)
def test_movements_in_shared_memory_are_what_they_say(drawn) -> None:
    consumer, (dtype, bits), tile, more, turned = drawn
    strides = (1, tile[0] + more) if turned else (tile[1] + more, 1)
    text = f"({tile[0]},{tile[1]}):({strides[0]},{strides[1]})"
    answer = la.admissible(text, consumer, "sm_100a" if consumer[0] == "t" else "sm_90a", dtype)
    if answer:
        return
    for repair in answer.repairs:
        movement = repair.movement
        if not repair.name.startswith("store the tile"):
            assert movement is None or repair.name == "read it into registers"
            continue
        registers = la.parse(movement["registers"])
        places = coordinates(registers)[0]
        flat = places.reshape(-1, 2)
        assert sorted(map(tuple, flat.tolist())) == list(itertools.product(range(tile[0]), range(tile[1])))
        before = places @ np.array(strides)
        after = table(repair.detail, tile)[places[..., 0], places[..., 1]]
        turns = accesses(movement["read"], before, bits) + accesses(movement["write"], after, bits)
        costs = instruction_costs(answer.target)
        cycles = costs.taken(0, 0, movement["permutes"], turns, len(places)) + costs.shared_latency
        assert movement["cycles"] == cycles + movement["barriers"] * costs.block_barrier
        memory, moved = np.full(before.max() + 1, -1), np.full(after.max() + 1, -1)
        rows, columns = np.indices(tile)
        memory[rows * strides[0] + columns * strides[1]] = rows * tile[1] + columns
        moved[after] = memory[before]
        assert np.array_equal(moved[table(repair.detail, tile)], rows * tile[1] + columns)


def table(text: str, tile: tuple[int, int]) -> np.ndarray:
    """Offsets of a CuTe layout, [row, column]."""
    return np.asarray(la.parse(text).table()).reshape(tile, order="F")


def test_the_cheaper_road_into_registers_is_named() -> None:
    answer = la.admissible("(64,64):(72,1)", "wgmma.A")
    first = answer.repairs[0]
    assert (first.name, first.movement["mechanism"]) == ("read it into registers", "ldmatrix.x4")
    stores = [each.movement["cycles"] for each in answer.repairs if each.name.startswith("store the tile")]
    assert first.movement["cycles"] < min(stores)
    (again,) = asked_again(answer, first)
    assert (again.descriptor.turns, again.descriptor.count) == (first.movement["turns"], first.movement["rounds"])
    registers = first.document["options"]["registers"]
    assert la.admissible(registers, "wgmma.A.registers", dtype="bf16")
    assert not any(each.name == first.name for each in la.admissible("(64,64):(65,1)", "wgmma.A").repairs)
    assert "92 cycles (ldmatrix.x4)" in str(answer)


def test_repairs_are_found_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    from layoutalg.synth.admission.movement import roads

    def never(*_: object) -> None:
        raise AssertionError("a repair was made before it was read")

    monkeypatch.setattr(roads, "tilings", never)
    text = "F2[register=(0,1)(0,2)(0,4)(0,8), lane=(0,16)(0,32)(1,0)(2,0)(4,0), warp=(8,0)(16,0)(32,0) -> r:64, c:64]"
    for consumer in ("wgmma.D", "mma.m16n8k16.f32.bf16.D"):
        answer = la.admissible(text, consumer, dtype="f32")
        assert not answer
        with pytest.raises(AssertionError, match="before it was read"):
            assert answer.repairs
