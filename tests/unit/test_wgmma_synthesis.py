"""Finding descriptors: canonical tiles, splits, bases, and refusals that say what is wrong."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from layoutalg.ground.errors import InfeasibleError, MalformedError
from layoutalg.proofs.wgmma import check
from layoutalg.synth.wgmma import (
    InadmissibleOperandError,
    OperandPlan,
    OperandProblem,
    canonical_operand,
    synthesize_wgmma,
)
from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.nvidia.wgmma import MatrixDescriptor

SPAN = {"NONE": 8, "32B": 16, "64B": 32, "128B": 64}


def requested(problem):
    """Brute force: one element at a time, bit by bit."""
    table = np.empty(problem.shape, dtype=np.int64)
    bits = {"NONE": 0, "32B": 1, "64B": 2, "128B": 3}[problem.swizzle]
    for mn in range(problem.shape[0]):
        for k in range(problem.shape[1]):
            element = 0
            for index, modes in zip((mn, k), problem.smem_modes, strict=True):
                for extent, stride in modes:
                    element += index % extent * stride
                    index //= extent
            byte = problem.smem_base_bytes + 2 * element
            table[mn, k] = byte ^ (byte >> 7) % (1 << bits) << 4
    return table


def assert_right(plan):
    wanted = requested(plan.problem)
    seen = np.full(plan.problem.shape, -1, dtype=np.int64)
    for tile in plan.tiles:
        assert tile.encoded == tile.descriptor.encode()
        block = wgmma.operand_offsets(tile.descriptor, rows=plan.rows, major=plan.major)
        seen[tile.mn : tile.mn + plan.rows, tile.k : tile.k + 16] = block
    assert np.array_equal(seen, wanted)
    assert check(plan)


@pytest.mark.parametrize("operand", ["A", "B"])
@pytest.mark.parametrize("major", ["K", "MN"])
@pytest.mark.parametrize("swizzle", ["NONE", "32B", "64B", "128B"])
@pytest.mark.parametrize("shape", [(64, 64), (128, 64), (192, 128)])
def test_canonical_tiles(operand, major, swizzle, shape):
    plan = synthesize_wgmma(canonical_operand(operand, shape, major=major, swizzle=swizzle))
    assert (plan.major, plan.base.swizzle, plan.base.base_offset) == (major, swizzle, 0)
    assert plan.transpose == (major == "MN")
    assert plan.rows == (64 if operand == "A" else shape[0])
    assert plan.align_bytes == {"NONE": 16, "32B": 256, "64B": 512, "128B": 1024}[swizzle]
    assert plan.end_bytes == 2 * shape[0] * shape[1]
    assert_right(plan)


# CUTLASS's numbers for an f16 128 x 64 tile made of 8-row atoms laid out along MN first, in 16-byte units.
CUTLASS = [
    ("K", "128B", 1, 64),
    ("K", "64B", 1, 32),
    ("K", "32B", 1, 16),
    ("K", "NONE", 128, 8),
    ("MN", "128B", 64, 128),
    ("MN", "64B", 32, 128),
    ("MN", "32B", 16, 128),
    ("MN", "NONE", 128, 8),
]


@pytest.mark.parametrize(("major", "swizzle", "leading", "stride"), CUTLASS)
def test_fields_agree_with_cutlass(major, swizzle, leading, stride):
    span, mn, k = SPAN[swizzle], 128, 64
    if major == "K":
        modes = (((8, span), (mn // 8, 8 * span)), ((span, 1), (k // span, span * mn)))
    elif swizzle == "NONE":
        modes = (((8, 1), (mn // 8, 64)), ((8, 8), (k // 8, 8 * mn)))
    else:
        modes = (((span, 1), (mn // span, 8 * span)), ((8, span), (k // 8, 8 * mn)))
    plan = synthesize_wgmma(OperandProblem("B", (mn, k), modes, swizzle))
    assert plan.base == MatrixDescriptor(0, 16 * leading, 16 * stride, 0, swizzle)
    assert_right(plan)


def test_steps_within_and_across_swizzle_atoms():
    plan = synthesize_wgmma(canonical_operand("A", (128, 128)))
    assert (plan.k_steps, plan.mn_steps) == (((4, 2), (2, 1024)), ((2, 512),))
    assert (plan.k_step, plan.mn_step) == (None, 512)
    plan = synthesize_wgmma(canonical_operand("A", (64, 64)))
    assert (plan.k_step, plan.mn_step) == (2, 0)
    plan = synthesize_wgmma(canonical_operand("A", (128, 64), major="MN"))
    assert (plan.k_step, plan.mn_step) == (128, 512)


@pytest.mark.parametrize(
    ("shape", "rows"), [((256, 64), 256), ((264, 16), 88), ((512, 64), 256), ((8, 16), 8), ((1032, 16), 24)]
)
def test_n_is_split_into_equal_legal_parts(shape, rows):
    plan = synthesize_wgmma(canonical_operand("B", shape, swizzle="32B"))
    assert plan.rows == rows == max(n for n in wgmma.N_VALUES if shape[0] % n == 0)
    assert_right(plan)


def test_n_is_split_further_where_the_layout_breaks():
    plan = synthesize_wgmma(OperandProblem("B", (96, 16), (((24, 16), (4, 1024)), ((16, 1),)), "32B"))
    assert plan.rows == 24
    assert_right(plan)


def test_steps_with_three_digits():
    modes = (((64, 16),), ((16, 1), (2, 4096), (2, 1024), (5, 20480)))
    plan = synthesize_wgmma(OperandProblem("A", (64, 320), modes, "32B"))
    assert plan.k_steps == ((2, 512), (2, 128), (5, 2560))
    assert_right(plan)


def test_blocks_with_different_fields_have_no_steps():
    """K chunks of 8 in two runs of three: the middle instruction straddles the runs and has another leading offset."""
    modes = (((64, 8),), ((8, 1), (3, 1024), (2, 8192)))
    plan = synthesize_wgmma(OperandProblem("A", (64, 48), modes, "NONE"))
    assert [tile.descriptor.leading_bytes for tile in plan.tiles] == [2048, 16384 - 4096, 2048]
    assert plan.k_steps is None
    assert plan.mn_steps is None
    assert plan.k_step is None
    assert_right(plan)


@pytest.mark.parametrize("base", [16, 128, 144, 1008, 4096 + 32])
@pytest.mark.parametrize("major", ["K", "MN"])
def test_base_inside_the_pattern_needs_no_base_offset(base, major):
    plan = synthesize_wgmma(canonical_operand("A", (64, 64), major=major).with_changes(smem_base_bytes=base))
    assert plan.base.start_address_bytes == base
    assert {tile.descriptor.base_offset for tile in plan.tiles} == {0}
    assert_right(plan)


def test_little_alignment_is_proved_for_every_base():
    plan = synthesize_wgmma(canonical_operand("A", (64, 32)).with_changes(align_bytes=32))
    assert plan.align_bytes == 32
    verdict = check(plan)
    assert verdict
    assert verdict.certificate["base_phases"] == 16


def test_another_mode_that_agrees_on_the_addresses():
    """Rows of 16 bytes within a 1024-byte period that nothing else enters: the 128B XOR never acts."""
    problem = OperandProblem("B", (8, 16), (((8, 8),), ((8, 1), (2, 512))), "128B")
    plan = synthesize_wgmma(problem)
    assert plan.base == MatrixDescriptor(0, 1024, 16, 0, "NONE")
    assert plan.align_bytes == 1024
    assert_right(plan)
    with pytest.raises(InadmissibleOperandError):  # at other bases the XOR does act
        synthesize_wgmma(problem.with_changes(align_bytes=128))


REFUSALS = [
    (OperandProblem("A", (64, 64), (((64, 72),), ((64, 1),)), "128B"), "row pitch is not the 128 bytes", (1, 0)),
    (
        OperandProblem("A", (64, 64), (((8, 64), (4, 512), (2, 4096)), ((64, 1),)), "128B"),
        "8-row group stride is not uniform: 1024 bytes from (0, 0) to (8, 0), 5120 from (24, 0) to (32, 0)",
        (32, 0),
    ),
    (
        OperandProblem("A", (64, 64), (((64, 64),), ((2, 32), (32, 1))), "128B"),
        "K is not contiguous: (0, 1) is 64",
        (0, 1),
    ),
    (OperandProblem("A", (64, 64), (((64, 64),), ((64, 1),)), "64B"), "swizzle phase: without its XOR", (4, 0)),
    (OperandProblem("A", (64, 64), (((64, 64),), ((64, 1),)), "NONE"), "swizzle phase: without its XOR", (1, 0)),
    (OperandProblem("B", (64, 16), (((64, 8),), ((8, 1), (2, 516))), "NONE"), "not a multiple of 16", (0, 8)),
    (OperandProblem("A", (64, 16), (((8, 16), (8, 0)), ((16, 1),)), "32B"), "8-row group stride is 0", (8, 0)),
    (
        OperandProblem("A", (64, 64), (((64, 64),), ((64, 1),)), "128B", smem_base_bytes=8),
        "smem_base_bytes = 8",
        (0, 0),
    ),
    (OperandProblem("A", (64, 64), (((64, 4096),), ((64, 1),)), "128B"), "can reach byte", (32, 0)),
    (OperandProblem("A", (32, 16), (((32, 16),), ((16, 1),)), "32B"), "64 rows at a time", None),
    (OperandProblem("B", (12, 16), (((12, 16),), ((16, 1),)), "32B"), "multiples of 8 rows", None),
    (OperandProblem("B", (16, 24), (((16, 24),), ((24, 1),)), "NONE"), "16 elements along K, the tile has 24", None),
]


@pytest.mark.parametrize(("problem", "words", "where"), REFUSALS)
def test_refusals_say_what_is_wrong(problem, words, where):
    with pytest.raises(InadmissibleOperandError) as caught:
        synthesize_wgmma(problem)
    error = caught.value
    assert isinstance(error, InfeasibleError)
    assert error.diagnostic.code == "LA370"
    assert any(words in reason for reason in error.reasons), error.reasons
    witness = error.diagnostic.witness
    if where is None:
        assert witness is None
    else:
        assert (witness["mn"], witness["k"]) == where
        if "read_byte" in witness:
            assert witness["requested_byte"] == requested(problem)[where]
            assert witness["read_byte"] != witness["requested_byte"]
    assert error.repairs
    for repair in error.repairs:
        assert_right(synthesize_wgmma(repair.document))
    assert pickle.loads(pickle.dumps(error)).reasons == error.reasons


def test_message_of_a_refusal():
    with pytest.raises(InadmissibleOperandError) as caught:
        synthesize_wgmma(OperandProblem("A", (64, 64), (((64, 64),), ((64, 1),)), "64B"))
    lines = str(caught.value).splitlines()
    assert lines[0] == "LA370 no measured wgmma descriptor mode reads this shared-memory layout"
    assert lines[1] == "  in     A f16 64B XOR o 0 o ((64),(64)):((64),(1))"
    assert lines[3].startswith("  at     mn=4, k=0, requested_byte=512, read_byte=576, major=K")
    assert lines[4] == "  try    change the swizzle: swizzle 128B, same modes"


def test_json_round_trip(monkeypatch):
    monkeypatch.setattr("layoutalg.ground.picture.PROMPT_CHARACTERS", 10**6)  # long plans are shortened
    for dtype in ("f16", "bf16"):
        plan = synthesize_wgmma(canonical_operand("B", (128, 64), dtype=dtype))
        text = json.dumps(plan.to_json())
        again = OperandPlan.from_json(json.loads(text))
        assert again == plan
        assert hash(again) == hash(plan)
        assert json.dumps(again.to_json()) == text
        assert check(json.loads(text))
        assert OperandProblem.from_json(plan.problem.to_json()) == plan.problem
        assert synthesize_wgmma(plan.problem.to_json()) == plan
        names = {**vars(wgmma), "OperandPlan": OperandPlan, "OperandProblem": OperandProblem}
        assert eval(repr(plan), {**names, "InstructionTile": type(plan.tiles[0])}) == plan
        assert pickle.loads(pickle.dumps(plan)) == plan


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"operand": "C"}, "operand", "must be one of A, B, not 'C'"),
        ({"shape": (64, 0)}, "shape/1", "must be at least 1, not 0"),
        ({"shape": (64,)}, "shape", "must be a list of 2 entries"),
        ({"shape": (64, 16.0)}, "shape/1", "must be an integer, not 16.0"),
        ({"smem_modes": (((64, 16),), ((8, 1),))}, "smem_modes/1", "multiply to the tile extent 16, not [[8, 1]]"),
        ({"smem_modes": (((64, 16),), ((16, -1),))}, "smem_modes/1/0", "stride must be at least 0"),
        ({"smem_modes": (((64, 16),), ((16, True),))}, "smem_modes/1/0/1", "must be an integer, not True"),
        ({"smem_modes": (((64, 16),), ((16, 2**40 + 1),))}, "smem_modes/1", "stride must be at most"),
        ({"smem_modes": (((64, 16),), 16)}, "smem_modes/1", "must be a list"),
        ({"swizzle": "128B_ATOM_32B"}, "swizzle", "must be one of NONE, 32B, 64B, 128B"),
        ({"dtype": "f32"}, "dtype", "must be one of f16, bf16, tf32, e4m3, e5m2, s8, u8, b1"),
        ({"align_bytes": 48}, "align_bytes", "must be a power of two, not 48"),
        ({"align_bytes": 8}, "align_bytes", "must be at least 16"),
        ({"smem_base_bytes": -16}, "smem_base_bytes", "must be at least 0"),
        ({"arch": "sm_100a"}, "arch", "must be one of sm_90a"),
    ],
)
def test_malformed_problems(changes, field, words):
    values = {"operand": "A", "shape": (64, 16), "smem_modes": (((64, 16),), ((16, 1),)), "swizzle": "32B"}
    with pytest.raises(MalformedError) as caught:
        OperandProblem(**{**values, **changes})
    assert caught.value.diagnostic.code == "LA372"
    assert caught.value.diagnostic.where == (f"OperandProblem.{field}",)
    assert words in caught.value.diagnostic.because


def test_malformed_documents_point_at_the_place():
    document = canonical_operand("A", (64, 16)).to_json()
    for change, pointer in (
        ({"schema": "x"}, "/schema"),
        ({"operand": 3}, "/operand"),
        ({"smem": {"modes": [[[64, 16]]], "swizzle": "32B"}}, "/smem/modes"),
        ({"smem": {"modes": [[[64, 16]], [[16, "1"]]], "swizzle": "32B"}}, "/smem/modes/1/0/1"),
        ({"extra": 1}, "/extra"),
    ):
        with pytest.raises(MalformedError) as caught:
            OperandProblem.from_json({**document, **change})
        assert caught.value.diagnostic.where[0] == pointer
    with pytest.raises(MalformedError, match="multiply to the tile extent"):
        OperandProblem.from_json({**document, "shape": [128, 16]})


def test_canonical_helpers_refuse():
    with pytest.raises(MalformedError, match="LA363"):
        canonical_operand("A", (64, 20))
    with pytest.raises(MalformedError, match="LA363"):
        canonical_operand("A", (64, 16), swizzle="64B")
    with pytest.raises(MalformedError, match="LA358"):
        canonical_operand("A", (64, 16), major="N", swizzle="32B")
