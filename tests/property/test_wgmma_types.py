"""Operands of every element type against brute force: admitted with the right reads, or no descriptor exists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs import checker
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem, check
from layoutalg.synth.wgmma import canonical_modes, canonical_operand, synthesize_wgmma
from layoutalg.synth.wgmma.plan import find
from layoutalg.targets.nvidia import wgmma

PHASES = {"NONE": 1, "32B": 2, "64B": 4, "128B": 8}
BITS = {"f16": 16, "bf16": 16, "tf32": 32, "e4m3": 8, "e5m2": 8, "s8": 8, "u8": 8, "b1": 1}


def wanted_bits(problem: OperandProblem, base: int = 0) -> np.ndarray:
    """The wanted bit address of every element, by repeated division of the coordinates."""
    mn, k = np.indices(problem.shape)
    bit = np.full(problem.shape, 8 * (base + problem.smem_base_bytes))
    for index, modes in ((mn, problem.smem_modes[0]), (k, problem.smem_modes[1])):
        for extent, stride in modes:
            bit += index % extent * BITS[problem.dtype] * stride
            index = index // extent
    return bit ^ (bit // 1024 % PHASES[problem.swizzle] * 128)


def read_bits(dtype, major, swizzle, offset, start, leading, stride, rows, k):
    """The measured rule, written out once more, in bits."""
    w, bits = PHASES[swizzle], BITS[dtype]
    m, j = np.arange(rows)[:, None], np.arange(k)[None, :]
    if major == "K":
        byte = j * bits // 8
        at = m % 8 * 16 * w + m // 8 * stride + byte % (16 * w) + byte // (16 * w) * leading
    elif w == 1:
        at = m % 8 * 2 + m // 8 * stride + j % 8 * 16 + j // 8 * leading
    else:
        at = m % (8 * w) * 2 + m // (8 * w) * leading + j % 8 * 16 * w + j // 8 * stride
    at = at + start
    at = at ^ (at // 128 - offset) % w * 16
    return 8 * at + (j * bits % 8 if bits == 1 else 0)


def exists(problem: OperandProblem, rows: int, k: int) -> bool:
    """Try every mode, and every start and stride that could put the three elements which they alone move right."""
    wanted = wanted_bits(problem)[:rows, :k]
    if (wanted[0, 0] % 8) or (BITS[problem.dtype] > 1 and (wanted % 8).any()):
        return False
    for swizzle, w in PHASES.items():
        for major in ("K", "MN") if BITS[problem.dtype] == 16 else ("K",):
            row, col = (8, 16 * w * 8 // BITS[problem.dtype]) if major == "K" else (8 if w == 1 else 8 * w, 8)
            on_mn = "leading" if major == "MN" and w > 1 else "stride"
            on_k = "stride" if on_mn == "leading" else "leading"
            for offset in range(w):

                def undo(bit, w=w, offset=offset):
                    near = bit // 8 // 128 * 128 + np.arange(128)
                    return near[near ^ (near // 128 - offset) % w * 16 == bit // 8]

                for start in undo(wanted[0, 0]):
                    fields = {"leading": [16], "stride": [16]}
                    if rows > row:
                        fields[on_mn] = [int(v - start) for v in undo(wanted[row, 0])]
                    if k > col:
                        fields[on_k] = [int(v - start) for v in undo(wanted[0, col])]
                    for leading in fields["leading"]:
                        for stride in fields["stride"]:
                            three = int(start), leading, stride
                            if any(v % 16 or not 0 <= v < 2**18 for v in three) or 0 in three[1:]:
                                continue
                            if np.array_equal(
                                read_bits(problem.dtype, major, swizzle, offset, *three, rows, k), wanted
                            ):
                                return True
    return False


@st.composite
def problems(draw: st.DrawFn, steps: tuple[int, ...] = (1, 2, 4)) -> OperandProblem:
    """A canonical tile of any type, its blocks perhaps moved apart, then perhaps damaged."""
    dtype, operand = draw(st.sampled_from(sorted(BITS))), draw(st.sampled_from("AB"))
    sparse = draw(st.booleans()) and dtype != "b1"
    major = draw(st.sampled_from(("K", "MN"))) if BITS[dtype] == 16 else "K"
    swizzle = draw(st.sampled_from(wgmma.SWIZZLES))
    k = (512 if sparse and operand == "B" else 256) // BITS[dtype] * draw(st.sampled_from(steps))
    mn = 64 if operand == "A" else draw(st.sampled_from((8, 16, 24, 64, 96)))
    span = 128 * PHASES[swizzle] // BITS[dtype]
    assume((k if major == "K" else mn) % span == 0)
    modes = [list(axis) for axis in canonical_modes((mn, k), major, swizzle, dtype)]
    for axis in modes:
        if len(axis) > 1 and draw(st.booleans()):
            chunk = 128 // BITS[dtype]
            axis[1] = axis[1][0], axis[1][1] + chunk * draw(st.integers(0, 40))
    if draw(st.booleans()):
        axis = draw(st.sampled_from(modes))
        place = draw(st.integers(0, len(axis) - 1))
        axis[place] = axis[place][0], max(0, axis[place][1] + draw(st.sampled_from((-8, -1, 1, 2, 8, 64, 512))))
    base = draw(st.sampled_from((0, 0, 16, 48, 6, 1600)))
    asked = draw(st.sampled_from((swizzle, swizzle, *wgmma.SWIZZLES)))
    return OperandProblem(operand, (mn, k), (tuple(modes[0]), tuple(modes[1])), asked, dtype, base, sparse=sparse)


def is_right(plan: OperandPlan) -> bool:
    problem = plan.problem
    seen = np.full(problem.shape, -1)
    for tile in plan.tiles:
        d = wgmma.decode(tile.encoded)
        fields = d.start_address_bytes, d.leading_bytes, d.stride_bytes
        block = read_bits(
            problem.dtype, plan.major, d.swizzle, d.base_offset, *fields, plan.rows, problem.instruction_k
        )
        seen[tile.mn : tile.mn + plan.rows, tile.k : tile.k + problem.instruction_k] = block
    return np.array_equal(seen, wanted_bits(problem))


@settings(deadline=None, max_examples=80)
@given(problems(), st.data())
def test_a_plan_is_right_and_certified_or_its_absence_is(problem: OperandProblem, data: st.DataObject) -> None:
    plan = find(problem)
    assert OperandProblem.from_json(problem.to_json()) == problem
    if plan is None:
        assert la.certify.no_operand(problem).check()
        return
    assert is_right(plan)
    assert check(plan)
    assert plan.rows in (64,) if problem.operand == "A" else plan.rows in wgmma.n_values(problem.dtype)
    assert OperandPlan.from_json(plan.to_json()) == plan
    made = la.certify.operand(plan)
    place, bit = data.draw(st.integers(0, len(plan.tiles) - 1)), data.draw(st.integers(0, 63))
    words = [tile.encoded ^ (1 << bit if at == place else 0) for at, tile in enumerate(plan.tiles)]
    code, told = checker.check(la.certify.Certificate("wgmma-operand", {**made.statement, "words": words}).to_json())
    assert (code == 0) == changed_is_right(plan, words), told


def changed_is_right(plan: OperandPlan, words: list[int]) -> bool:
    problem = plan.problem
    for tile, word in zip(plan.tiles, words, strict=True):
        try:
            d = wgmma.decode(word)
            wgmma.operand_offsets(
                d, rows=plan.rows, k=problem.instruction_k, element_bits=BITS[problem.dtype], major=plan.major
            )
        except LayoutError:
            return False
        fields = d.start_address_bytes, d.leading_bytes, d.stride_bytes
        read = read_bits(problem.dtype, plan.major, d.swizzle, d.base_offset, *fields, plan.rows, problem.instruction_k)
        wanted = wanted_bits(problem)[tile.mn : tile.mn + plan.rows, tile.k : tile.k + problem.instruction_k]
        if not np.array_equal(read, wanted):
            return False
    return True


@settings(deadline=None, max_examples=80)
@given(problems(steps=(1, 2)))
def test_found_exactly_where_brute_force_finds_a_descriptor_of_one_instruction(problem: OperandProblem) -> None:
    k = problem.instruction_k
    assume(problem.shape[1] == k or len(problem.smem_modes[1]) == 1)
    rows = 64 if problem.operand == "A" else max(n for n in wgmma.n_values(problem.dtype) if problem.shape[0] % n == 0)
    assume(rows == problem.shape[0] and problem.shape[1] == k)
    assume(int(wanted_bits(problem).max()) // 8 < 2**18 - 1024)
    plan = find(problem)
    assert (plan is not None and plan.rows == rows) == exists(problem, rows, k)


@pytest.mark.parametrize("dtype", BITS)
@pytest.mark.parametrize("swizzle", wgmma.SWIZZLES)
@pytest.mark.parametrize("operand", "AB")
def test_every_canonical_tile_has_a_plan(dtype: str, swizzle: str, operand: str) -> None:
    for sparse in (False, True) if dtype != "b1" else (False,):
        for major in ("K", "MN") if BITS[dtype] == 16 else ("K",):
            problem = canonical_operand(
                operand, (128, 2048 // BITS[dtype]), major=major, swizzle=swizzle, dtype=dtype, sparse=sparse
            )
            plan = synthesize_wgmma(problem)
            assert is_right(plan)
            assert plan.base.swizzle == swizzle
            assert plan.mn_steps is not None
