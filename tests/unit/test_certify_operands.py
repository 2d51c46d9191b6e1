"""Certificates of operands and of bank turns: they hold, wrong ones are refuted by the first wrong fact."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from judges.certificates import told

import layoutalg as la
from layoutalg.ground.errors import AdmissibilityError, MalformedError, RepresentabilityError
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.banks import AMD_RULES, turns

CASES = [
    (operand, rows, k, major, swizzle)
    for operand, rows, k in (("A", 128, 64), ("B", 64, 128), ("B", 256, 64))
    for major in ("K", "MN")
    for swizzle in ("NONE", "32B", "64B", "128B")
]
ROWS_24 = OperandProblem("B", (24, 16), (((24, 1),), ((16, 24),)))


def planned(operand="A", rows=128, k=64, major="K", swizzle="128B") -> OperandPlan:
    return synthesize_wgmma(canonical_operand(operand, (rows, k), major=major, swizzle=swizzle))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_mode_has_certificates(case):
    plan = planned(*case)
    made = la.certify.operand(plan)
    assert made.check()
    assert len(made.to_text()) < 400 + 21 * len(plan.tiles)
    with pytest.raises(AdmissibilityError, match=r"descriptors read this operand, major '(K|MN)', swizzle [0-3]"):
        la.certify.no_operand(plan.problem)


WRONG = [
    ({"words": lambda words: [words[0], words[1] ^ 1, *words[2:]]}, "wgmma reads another byte, m_k [[0, 16]]"),
    ({"words": lambda words: [*words[:5], words[5] + (1 << 32), *words[6:]]}, "another byte, m_k [[72, 16]]"),
    ({"words": lambda words: [*words[:7], words[7] ^ 1 << 49]}, "wgmma reads another byte, m_k [[64, 48]]"),
    ({"words": lambda words: [*words[:4], words[4] & ~(0x3FFF << 32), *words[5:]]}, "another byte, m_k [[64, 0]]"),
    ({"words": lambda words: [*words[:7], words[7] ^ 1 << 52]}, "a reserved bit is set, or swizzles differ"),
    ({"words": lambda words: [*words[:7], words[7] ^ 3 << 62]}, "a reserved bit is set, or swizzles differ"),
    ({"words": lambda words: [word ^ 3 << 62 for word in words]}, "wgmma reads another byte, m_k [[1, 0]]"),
    ({"words": lambda words: words[::-1]}, "wgmma reads another byte, m_k [[0, 0]]"),
    ({"words": lambda words: words[1:]}, "the instructions do not cover the operand, rows 64, shape [128, 64]"),
    ({"rows": lambda _: 32}, "the instructions do not cover the operand, rows 32"),
    ({"rows": lambda _: 128, "words": lambda words: words[:4]}, "the instructions do not cover the operand, rows 128"),
    ({"shape": lambda _: [64, 128]}, "wgmma reads another byte, m_k [[0, 1]]"),
    ({"shape": lambda _: [128, 128], "words": lambda words: 2 * words}, "the layout has another size"),
    ({"major": lambda _: "MN"}, "wgmma reads another byte, m_k [[0, 1]]"),
    ({"swizzle": lambda _: 2}, "wgmma reads another byte"),
    ({"align": lambda _: 24}, "align is not of range(16, 262145, 16), got 24"),
    ({"layout": lambda _: {"size": 8192, "stages": [["split", [128, 64]], ["affine", [[2, 256]], [0]]]}},
     "wgmma reads another byte, m_k [[0, 1]]"),
    ({"layout": lambda _: {"size": 8192, "stages": [["split", [128, 64]]]}}, "not one value everywhere"),
    ({"layout": lambda _: {"size": 8192, "stages": [["split", [128, 64]], ["affine", [[128, 2]], [2**18]]]}}, "reads"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "fact"), WRONG, ids=[fact for _, fact in WRONG])
def test_a_wrong_operand_is_refuted_by_its_first_wrong_fact(changes, fact):
    statement = dict(la.certify.operand(planned()).statement)
    for name, change in changes.items():
        statement[name] = change(statement[name])
    code, said = told("wgmma-operand", statement)
    assert code == 1
    assert fact in said


def test_words_of_64_bits_are_all_that_is_read():
    statement = dict(la.certify.operand(planned()).statement)
    for word in (-1, 2**64, "0x10", 1.5, True, None):
        changed = statement | {"words": [word, *statement["words"][1:]]}
        assert told("wgmma-operand", changed)[0] == 1
    with pytest.raises(MalformedError):
        la.certify.Certificate("wgmma-operand", statement | {"words": [1.5]})


def test_a_plan_that_is_wrong_has_no_certificate():
    plan = planned()
    for tiles in (plan.tiles[::-1], plan.tiles[:-1], (*plan.tiles, plan.tiles[0])):
        with pytest.raises(AdmissibilityError, match=r"LA427[^$]*do not cover the tile in order"):
            la.certify.operand(plan.with_changes(tiles=tiles))
    moved = replace(plan.tiles[3], encoded=plan.tiles[3].encoded + 2)
    with pytest.raises(AdmissibilityError, match=r"LA427[^$]*wgmma reads another byte, m_k \[\[0, 48\]\]"):
        la.certify.operand(plan.with_changes(tiles=(*plan.tiles[:3], moved, *plan.tiles[4:])))
    for wrong in (plan.problem, plan.to_json(), None):
        with pytest.raises(MalformedError, match="LA435"):
            la.certify.operand(wrong)
        with pytest.raises(MalformedError, match="LA435"):
            la.certify.no_operand(plan)


def test_bases_of_an_alignment_are_all_proved():
    """With a base offset a descriptor is right for bases that are multiples of 1024 only."""
    plan = planned()
    statement = dict(la.certify.operand(plan).statement)
    tile = OperandProblem("A", (128, 64), (((128, 64),), ((64, 1),)), "128B", smem_base_bytes=0, align_bytes=16)
    assert la.certify.operand(synthesize_wgmma(tile)).statement["align"] == 16
    assert told("wgmma-operand", statement | {"align": 16})[0] == 0  # both xor absolute addresses
    unswizzled = {"layout": {"size": 1024, "stages": [["table", xored_rows()]]}, "swizzle": 0, "shape": [64, 16]}
    narrow = statement | unswizzled | {"words": statement["words"][:1]}
    assert told("wgmma-operand", narrow)[0] == 0  # a layout of absolute bytes, for bases of 1024
    assert "reads another byte" in told("wgmma-operand", narrow | {"align": 512 + 16})[1]
    assert told("wgmma-operand", narrow | {"align": 3072})[0] == 0


def xored_rows() -> list[int]:
    k, m = np.divmod(np.arange(1024), 64)
    return (128 * m + (2 * k ^ m % 8 * 16)).tolist()


def test_shapes_that_no_instruction_has_need_no_search():
    for problem in (OperandProblem("A", (96, 16), (((96, 16),), ((16, 1),))), ROWS_24.with_changes(operand="A"),
                    OperandProblem("B", (8, 24), (((8, 24),), ((24, 1),)))):  # fmt: skip
        assert "no descriptors" in str(la.certify.no_operand(problem).check().certificate["claim"])
    assert la.certify.no_operand(ROWS_24).check()


@pytest.mark.parametrize(
    ("operation", "addresses", "counted", "most"),
    [
        ("ld.shared.b32", [4 * lane for lane in range(32)], 1, 1),
        ("ld.shared.u8", [128 * lane for lane in range(32)], 32, 32),
        ("st.shared.v4.f32", [16 * lane for lane in range(64)], 8, 4),
        ("ld.shared.v2.b64", [16 * (lane // 2) for lane in range(32)], 2, 2),
        ("st.shared.v2.b64", [16 * (lane // 2) for lane in range(32)], 4, 4),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", la.parse("(8,4):(128,16)"), 32, 32),
        ("stmatrix.x4", la.parse("Sw<3,4,3> o 0 o (32,4):(128,16)"), 16, 4),
        ("ld.shared.b64", [[8 * lane for lane in range(32)], [256 * lane for lane in range(32)]], 34, 32),
    ],
)  # fmt: skip
def test_accesses_of_an_h200(operation, addresses, counted, most):
    made = la.certify.bank_turns("sm_90a", operation, addresses)
    assert (made.statement["turns"], made.statement["most"]) == (counted, most)
    for name in ("turns", "most"):
        wrong = told("bank-turns", {**made.statement, name: made.statement[name] + 1})
        assert wrong[0] == 1
        assert "the turns are wrong" in wrong[1]
        assert f"expected [{counted}, {most}]" in wrong[1]


def test_a_tile_free_of_conflicts_in_one_small_certificate():
    """Every ldmatrix.x4 of a 128 x 64 tile of 16 bits, swizzled: 16 chunks of 32 rows, 4 turns each."""
    rows = la.parse("Sw<3,4,3> o 0 o (32,8,4):(128,16,4096)")
    made = la.certify.bank_turns("sm_90a", "ldmatrix.x4", rows)
    assert str(made.check().certificate["claim"]) == "32 accesses take 128 turns, at most 4 each"
    assert len(made.to_text()) < 400
    padded = la.certify.bank_turns("sm_90a", "ldmatrix.x4", la.parse("(32,8,4):(144,16,4608)"))
    assert padded.statement["turns"] == 128
    plain = la.certify.bank_turns("sm_90a", "ldmatrix.x4", la.parse("(32,8,4):(128,16,4096)"))
    assert plain.statement["most"] == 32


def test_integers_are_written_as_what_they_are():
    lanes = np.arange(32)
    written = [la.certify.bank_turns("sm_90a", "ld.shared.b32", 4 * values).statement["address"]
               for values in (lanes, lanes + 1, lanes ^ lanes >> 3, lanes * lanes)]  # fmt: skip
    assert [stage["stages"][-1][0] for stage in written] == ["affine", "affine", "xor", "table"]


@pytest.mark.parametrize(("target", "operation"), AMD_RULES)
def test_accesses_of_amd(target, operation):
    rule = AMD_RULES[target, operation]
    addresses = [rule.access_bytes * (lane * 5 % 64) for lane in range(rule.lanes)]
    made = la.certify.bank_turns(target, operation, addresses)
    assert made.statement["turns"] == turns(target, operation, addresses)


UNMEASURED = [
    ("sm_100a", "ld.shared.b32", "sm_100a was not measured"), ("gfx950", "ds_read_b32", "neither measured"),
    ("gfx90a", "ds_read_b128", "neither measured"), ("gfx942", "ld.shared.b32", "neither measured"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "operation", "because"), UNMEASURED)
def test_what_was_not_measured_is_refused(target, operation, because):
    with pytest.raises(RepresentabilityError, match=f"LA436[^$]*{because}"):
        la.certify.bank_turns(target, operation, [0] * 64)
    address = {"size": 64, "stages": [["affine", [[0]], [0]]]}
    code, said = told("bank-turns", {"access": f"{target} {operation}", "address": address, "turns": 2, "most": 1})
    assert code == 1
    assert "not measured" in said


def test_misuse_of_bank_turns_is_named():
    for addresses in ([4] * 31, [], [None] * 32, [0.5] * 32, "text", [2**63] * 32, {}):
        with pytest.raises(MalformedError):
            la.certify.bank_turns("sm_90a", "ld.shared.b32", addresses)
    for addresses in ([2] * 32, [-4] * 32):
        with pytest.raises(MalformedError, match="LA709"):
            la.certify.bank_turns("sm_90a", "ld.shared.b32", addresses)
    for target, operation in ((None, "ld.shared.b32"), ("sm_90a", None), ("sm_90a", "ld"), ("gfx942", None)):
        with pytest.raises((MalformedError, RepresentabilityError)):
            la.certify.bank_turns(target, operation, [0] * 64)
    whole = {"access": "sm_90a ld.shared.b32", "turns": 1, "most": 1}
    some = [["pieces", [[[], [[[1], -1, ">="]], [[[4], 0]]]]]]
    cases = (([["affine", [[4]], [2]]], 32, "no aligned"), ([["affine", [[4]], [-4]]], 32, "no aligned"),
             ([["affine", [[4]], [0]]], 31, "whole accesses"), ([], 0, "whole accesses"), (some, 32, "one value"),
             )  # fmt: skip
    for stages, size, fact in cases:
        code, said = told("bank-turns", whole | {"address": {"size": size, "stages": stages}})
        assert code == 1
        assert fact in said
