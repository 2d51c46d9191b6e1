"""Operand plans on random layouts, judged by brute force: right where found, and no descriptor exists where refused."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from layoutalg.proofs.wgmma import check, handoff
from layoutalg.synth.wgmma import (
    InadmissibleOperandError,
    OperandPlan,
    OperandProblem,
    canonical_modes,
    synthesize_wgmma,
)
from layoutalg.targets.nvidia import wgmma

ROWS = {"NONE": 1, "32B": 2, "64B": 4, "128B": 8}
swizzles = st.sampled_from(wgmma.SWIZZLES)
majors = st.sampled_from(wgmma.MAJORS)


def requested(problem, tile_base=0):
    """The wanted byte of every element, by repeated division of the coordinates."""
    mn, k = np.meshgrid(np.arange(problem.shape[0]), np.arange(problem.shape[1]), indexing="ij")
    byte = np.full(problem.shape, tile_base + problem.smem_base_bytes, dtype=np.int64)
    for index, modes in ((mn, problem.smem_modes[0]), (k, problem.smem_modes[1])):
        for extent, stride in modes:
            byte += index % extent * 2 * stride
            index = index // extent
    return byte ^ (byte // 128 % ROWS[problem.swizzle] * 16)


def read_rule(major, swizzle, base_offset, start, leading, stride, rows):
    """The measured rule, written out once more; start, leading and stride may be arrays on a first axis."""
    w = ROWS[swizzle]
    m, k = np.arange(rows)[:, None], np.arange(16)[None, :]
    if major == "K":
        high = k // 8 * leading if w == 1 else 0
        offset = m % 8 * 16 * w + m // 8 * stride + high + (k % 8 * 2 if w == 1 else 2 * k)
    elif w == 1:
        offset = m % 8 * 2 + m // 8 * stride + k % 8 * 16 + k // 8 * leading
    else:
        offset = m % (8 * w) * 2 + m // (8 * w) * leading + k % 8 * 16 * w + k // 8 * stride
    a = start + offset
    return a ^ ((a // 128 - base_offset) % w) * 16


def exists_descriptor(wanted):
    """Try every value of every field on the element that it alone moves, for one instruction; compare the table."""
    rows = wanted.shape[0]

    def undo(w, base_offset, target):
        """All byte addresses of the field grid that the XOR sends to ``target``."""
        near = target // 128 * 128 + np.arange(128)
        return near[near ^ ((near // 128 - base_offset) % w) * 16 == target]

    for swizzle, w in ROWS.items():
        for major in wgmma.MAJORS:
            group = 8 if major == "K" or w == 1 else 8 * w
            on_mn = "stride" if major == "K" or w == 1 else "leading"
            on_k = None if major == "K" and w > 1 else ("leading" if w == 1 else "stride")
            for base_offset in range(w):
                for start in undo(w, base_offset, wanted[0, 0]):
                    fields = {"leading": [16], "stride": [16]}
                    if rows > group:
                        fields[on_mn] = [v - start for v in undo(w, base_offset, wanted[group, 0])]
                    if on_k is not None:
                        fields[on_k] = [v - start for v in undo(w, base_offset, wanted[0, 8])]
                    for leading in fields["leading"]:
                        for stride in fields["stride"]:
                            triple = (int(start), int(leading), int(stride))
                            if any(v % 16 or not 0 <= v < 1 << 18 for v in triple) or min(triple[1:]) == 0:
                                continue
                            if np.array_equal(read_rule(major, swizzle, base_offset, *triple, rows), wanted):
                                return True
    return False


@st.composite
def tiles(draw):
    """A canonical tile, its strides grown by padding between blocks, its digits split at random."""
    operand = draw(st.sampled_from("AB"))
    major, swizzle = draw(majors), draw(swizzles)
    span = 8 * ROWS[swizzle]
    mn = draw(st.sampled_from((64, 128) if operand == "A" else (8, 16, 24, 64, 96, 128)))
    k = draw(st.sampled_from((16, 32, 64)))
    assume((k if major == "K" else mn) % span == 0)
    modes = [list(axis) for axis in canonical_modes((mn, k), major, swizzle)]
    contiguous = modes[1 if major == "K" else 0]
    if len(contiguous) > 1:  # blocks of one span each may be moved apart by whole 16-byte chunks
        contiguous[1] = (contiguous[1][0], contiguous[1][1] + 8 * draw(st.integers(0, 40)))
    if draw(st.booleans()):  # so may the groups of 8 rows, where the tile still fits 18 bits
        rows = modes[0 if major == "K" else 1]
        pad = 8 * draw(st.integers(0, 20))
        rows[0:1] = [(8, rows[0][1]), (rows[0][0] // 8, 8 * rows[0][1] + pad)]
    base = 16 * draw(st.integers(0, 100))
    return OperandProblem(operand, (mn, k), (tuple(modes[0]), tuple(modes[1])), swizzle, "bf16", base)


def is_right(plan):
    wanted = requested(plan.problem)
    seen = np.full(plan.problem.shape, -1, dtype=np.int64)
    for tile in plan.tiles:
        d = wgmma.decode(tile.encoded)
        block = read_rule(
            plan.major, d.swizzle, d.base_offset, d.start_address_bytes, d.leading_bytes, d.stride_bytes, plan.rows
        )
        seen[tile.mn : tile.mn + plan.rows, tile.k : tile.k + 16] = block
    return np.array_equal(seen, wanted)


@settings(deadline=None, max_examples=60)
@given(tiles())
def test_padded_canonical_tiles_have_plans(problem):
    plan = synthesize_wgmma(problem)
    assert plan.base.swizzle == problem.swizzle
    assert is_right(plan)
    assert check(plan)
    assert OperandPlan.from_json(plan.to_json()) == plan
    if plan.mn_steps is not None:
        for tile in plan.tiles:
            word, i, j = plan.base.encode(), tile.mn // plan.rows, tile.k // 16
            for steps, index in ((plan.mn_steps, i), (plan.k_steps, j)):
                for count, increment in steps:
                    word += index % count * increment
                    index //= count
            assert word == tile.encoded


@settings(deadline=None, max_examples=30)
@given(tiles(), st.sampled_from((16, 32, 64, 128, 256, 512)), st.integers(0, 63))
def test_plans_hold_for_every_aligned_base(problem, align, multiple):
    plan = synthesize_wgmma(problem.with_changes(align_bytes=align))
    assert plan.align_bytes <= align
    base = plan.align_bytes * multiple
    wanted = requested(problem, base)
    for tile in plan.tiles:
        read = wgmma.operand_offsets(wgmma.decode(tile.encoded + base // 16), rows=plan.rows, major=plan.major)
        assert np.array_equal(read, wanted[tile.mn : tile.mn + plan.rows, tile.k : tile.k + 16])


@st.composite
def damaged(draw):
    """A tile with one thing changed: a stride, the base, the swizzle, or two digits swapped."""
    problem = draw(tiles()).with_changes(align_bytes=draw(st.sampled_from((1024, 1024, 256, 64))))
    kind = draw(st.sampled_from(("stride", "base", "swizzle", "swap")))
    if kind == "base":
        return problem.with_changes(smem_base_bytes=draw(st.integers(0, 300)))
    if kind == "swizzle":
        return problem.with_changes(swizzle=draw(swizzles))
    modes = [list(axis) for axis in problem.smem_modes]
    axis = draw(st.integers(0, 1))
    place = draw(st.integers(0, len(modes[axis]) - 1))
    extent, stride = modes[axis][place]
    if kind == "stride":
        change = draw(st.sampled_from((-8, -1, 1, 2, 8, 64, 512)) | st.integers(-stride, 200))
        modes[axis][place] = (extent, max(stride + change, 0))
    elif extent % 2 == 0 and extent > 2:
        modes[axis][place : place + 1] = [(2, stride * (extent // 2)), (extent // 2, stride)]
    return problem.with_changes(smem_modes=(tuple(modes[0]), tuple(modes[1])))


@settings(deadline=None, max_examples=120)
@given(damaged())
def test_damaged_tiles_are_solved_rightly_or_refused_with_a_true_witness(problem):
    try:
        plan = synthesize_wgmma(problem)
    except InadmissibleOperandError as refused:
        error = refused
    else:
        assert is_right(plan)
        return
    assert error.reasons
    witness = error.diagnostic.witness
    mn, k, base = witness["mn"], witness["k"], witness["tile_base_bytes"]
    assert requested(problem, base)[mn, k] - base == witness["requested_byte"] != witness["read_byte"]
    d = wgmma.decode(int(witness["descriptor"], 16))
    rows = 64 if problem.operand == "A" else max(n for n in wgmma.N_VALUES if problem.shape[0] % n == 0)
    start = d.start_address_bytes + base
    read = read_rule(witness["major"], d.swizzle, d.base_offset, start, d.leading_bytes, d.stride_bytes, rows)
    assert read[mn % rows, k % 16] - base == witness["read_byte"]
    for repair in error.repairs:
        assert is_right(synthesize_wgmma(repair.document))


@settings(deadline=None, max_examples=120)
@given(damaged())
def test_a_refusal_means_that_no_descriptor_exists(problem):
    """One instruction: cut the tile down to its first rows and columns, and try every descriptor."""
    rows = 64 if problem.operand == "A" else max(n for n in wgmma.N_VALUES if problem.shape[0] % n == 0)
    modes = []
    for axis, size in zip(problem.smem_modes, (rows, 16), strict=True):
        cut = []
        for extent, stride in axis:
            take = min(extent, size)
            assume(size % take == 0)
            size //= take
            cut.append((take, stride))
        modes.append(tuple(cut))
    single = problem.with_changes(align_bytes=1024, shape=(rows, 16), smem_modes=tuple(modes))
    assume(int(requested(single).max()) < (1 << 18) - 1024)
    try:
        found = synthesize_wgmma(single).rows == rows
    except InadmissibleOperandError:
        found = False
    assert found == exists_descriptor(requested(single))


@settings(deadline=None, max_examples=40)
@given(tiles(), st.data())
def test_a_copy_that_misplaces_one_element_is_refuted(problem, data):
    plan = synthesize_wgmma(problem)
    wanted = requested(problem)
    assume(np.unique(wanted).size == wanted.size)
    image = np.full(plan.end_bytes // 2, -1, dtype=np.int64)
    image[wanted.reshape(-1) // 2] = np.arange(wanted.size)
    assert handoff(image, plan)
    mn = data.draw(st.integers(0, problem.shape[0] - 1))
    k = data.draw(st.integers(0, problem.shape[1] - 1))
    image[wanted[mn, k] // 2] = data.draw(
        st.integers(-1, wanted.size - 1).filter(lambda x: x != mn * problem.shape[1] + k)
    )
    witness = handoff(image, plan).witness
    assert (witness["mn"], witness["k"], witness["read_byte"]) == (mn, k, wanted[mn, k])
