"""The checker of operand plans: wrong plans are refuted with a true witness, neutral changes are let through."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.wgmma import OperandProblem, check, handoff, requested_addresses
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.nvidia import wgmma


def plan_of(operand="A", shape=(64, 32), **options):
    return synthesize_wgmma(canonical_operand(operand, shape, **options)).with_changes(certificate=None)


def with_descriptor(plan, index, descriptor):
    tiles = list(plan.tiles)
    tiles[index] = replace(tiles[index], descriptor=descriptor, encoded=descriptor.encode())
    return plan.with_changes(tiles=tuple(tiles), mn_steps=None, k_steps=None)


def mutations(descriptor):
    for name in ("start_address_bytes", "leading_bytes", "stride_bytes"):
        for delta in (-1024, -128, -32, -16, 16, 32, 128, 1024):
            value = getattr(descriptor, name) + delta
            if 0 <= value < 1 << 18:
                yield name, replace(descriptor, **{name: value})
    for base_offset in range(8):
        if base_offset != descriptor.base_offset:
            yield "base_offset", replace(descriptor, base_offset=base_offset)
    for swizzle in wgmma.SWIZZLES:
        if swizzle != descriptor.swizzle:
            yield "swizzle", replace(descriptor, swizzle=swizzle)


@pytest.mark.parametrize("swizzle", wgmma.SWIZZLES)
@pytest.mark.parametrize("major", wgmma.MAJORS)
@pytest.mark.parametrize(("operand", "shape"), [("A", (64, 64)), ("B", (64, 64)), ("B", (128, 64))])
def test_every_mutation_of_a_field_is_refuted_or_neutral(operand, shape, major, swizzle):
    plan = plan_of(operand, shape, major=major, swizzle=swizzle)
    phases = {"NONE": 1, "32B": 2, "64B": 4, "128B": 8}[swizzle]
    index = len(plan.tiles) - 1
    tile = plan.tiles[index]
    wanted = wgmma.operand_offsets(tile.descriptor, rows=plan.rows, major=major)
    assert check(plan)
    for name, changed in mutations(tile.descriptor):
        verdict = check(with_descriptor(plan, index, changed))
        neutral = name in plan.unread or (
            name == "base_offset" and (changed.base_offset - tile.descriptor.base_offset) % phases == 0
        )
        assert bool(verdict) == neutral, (name, changed)
        if neutral:
            assert np.array_equal(wgmma.operand_offsets(changed, rows=plan.rows, major=major), wanted)
        elif "read_byte" in verdict.witness:
            mn, k = verdict.witness["mn"] - tile.mn, verdict.witness["k"] - tile.k
            read = wgmma.operand_offsets(changed, rows=plan.rows, major=major)
            assert verdict.witness["requested_byte"] == wanted[mn, k]
            assert verdict.witness["read_byte"] == read[mn, k] != wanted[mn, k]
            assert np.array_equal(read.reshape(-1)[: mn * 16 + k], wanted.reshape(-1)[: mn * 16 + k])
        else:
            assert "not measured" in verdict.witness["reason"]


@pytest.mark.parametrize("bit", range(64))
def test_every_flipped_bit_of_a_word_is_refuted(bit):
    plan = plan_of()
    tiles = (plan.tiles[0], replace(plan.tiles[1], encoded=plan.tiles[1].encoded ^ 1 << bit))
    verdict = check(plan.with_changes(tiles=tiles))
    assert isinstance(verdict, Refuted)
    assert verdict.witness["claim"] in ("bits and fields differ", "the 64 bits are not a descriptor")
    assert (verdict.witness["mn"], verdict.witness["k"]) == (0, 16)


def test_a_flipped_bit_in_a_document_is_refuted():
    document = plan_of().to_json()
    document["tiles"][1]["encoded"] = f"{int(document['tiles'][1]['encoded'], 16) ^ 1 << 33:#018x}"
    verdict = check(document)
    assert not verdict
    assert verdict.witness["field"] == "stride_bytes"


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"major": "MN"}, "wgmma reads another byte"),
        ({"rows": 32}, "no instruction reads this many rows"),
        ({"rows": 128}, "no instruction reads this many rows"),
        ({"align_bytes": 8}, "the alignment is not a power of two in 16..1024"),
        ({"align_bytes": 768}, "the alignment is not a power of two in 16..1024"),
        ({"align_bytes": 2048}, "the alignment is not a power of two in 16..1024"),
        ({"end_bytes": 0}, "wrong end_bytes"),
        ({"end_bytes": 4098}, "wrong end_bytes"),
        ({"unread": ()}, "wrong unread"),
        ({"unread": ("stride_bytes",)}, "wrong unread"),
        ({"evidence": "modelled"}, "wrong evidence"),
        ({"k_steps": ((2, 4),)}, "the base plus the steps gives another descriptor"),
        ({"k_steps": ((4, 2),)}, "the steps do not count the instructions"),
        ({"k_steps": ()}, "the steps do not count the instructions"),
        ({"mn_steps": ((2, 1),)}, "the steps do not count the instructions"),
        ({"mn_steps": None}, "only one axis has steps"),
        ({"certificate": {"claim": "anything"}}, "wrong certificate"),
    ],
)
def test_every_wrong_claim_is_refuted(changes, claim):
    verdict = check(plan_of().with_changes(**changes))
    assert isinstance(verdict, Refuted)
    assert verdict.witness["claim"] == claim


def test_tiles_must_cover_once_and_in_order():
    plan = plan_of(shape=(128, 32))
    one, two, three, four = plan.tiles
    for tiles in ((two, one, three, four), (one, two, three), (one, two, three, three), (*plan.tiles, four)):
        assert not check(plan.with_changes(tiles=tiles))


def test_unaligned_bases_refute_an_alignment_that_is_too_weak():
    problem = OperandProblem("B", (8, 16), (((8, 8),), ((8, 1), (2, 512))), "128B")
    plan = synthesize_wgmma(problem).with_changes(certificate=None)
    verdict = check(plan.with_changes(align_bytes=512))
    assert not verdict
    assert verdict.witness["tile_base_bytes"] == 512
    stated = plan.with_changes(problem=problem.with_changes(align_bytes=512))
    assert check(stated).witness["claim"] == "the plan needs more alignment than the problem guarantees"


def test_certificate_travels_and_is_replayed():
    plan = synthesize_wgmma(canonical_operand("B", (128, 64)))
    assert plan.certificate["digest"] == plan.digest()
    assert check(plan).certificate == plan.certificate
    stale = plan.with_changes(mn_steps=None, k_steps=None)
    assert check(stale).witness["field"] == "digest"


@pytest.mark.parametrize("value", [None, 3, "plan", [1]])
def test_no_plan(value):
    with pytest.raises(MalformedError, match="LA362"):
        check(value)


@pytest.mark.parametrize(
    ("path", "value", "pointer"),
    [
        (("schema",), "layoutalg/wgmma-plan/2", "/schema"),
        (("transpose",), 1, "/transpose"),
        (("major",), "M", "/major"),
        (("tiles",), [], "/tiles"),
        (("tiles", 0, "encoded"), "0x4000", "/tiles/0/encoded"),
        (("tiles", 0, "encoded"), 4, "/tiles/0/encoded"),
        (("tiles", 0, "stride_bytes"), 8, "/tiles/0"),
        (("tiles", 0, "mn"), -1, "/tiles/0/mn"),
        (("steps_16_bytes", "k"), [[1, 2]], "/steps_16_bytes/k/0"),
        (("problem", "dtype"), "f32", "/problem/dtype"),
        (("rows",), True, "/rows"),
        (("certificate",), 3, "/certificate"),
        (("unread",), ["base_offset"], "/unread/0"),
    ],
)
def test_malformed_documents(path, value, pointer):
    document = plan_of().to_json()
    node = document
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    with pytest.raises(MalformedError) as caught:
        check(document)
    assert caught.value.diagnostic.where == (pointer,)


def image_of(plan, size=None):
    wanted = requested_addresses(plan.problem)
    image = np.full(size or int(wanted.max()) // 2 + 1, -1, dtype=np.int64)
    image[wanted.reshape(-1) // 2] = np.arange(wanted.size)
    return image


@pytest.mark.parametrize("major", wgmma.MAJORS)
@pytest.mark.parametrize("operand", ["A", "B"])
def test_handoff_proves_what_lies_right(operand, major):
    plan = plan_of(operand, (128, 64), major=major)
    verdict = handoff(image_of(plan).astype(np.int32), plan.to_json())
    assert isinstance(verdict, Proved)
    assert verdict.certificate["elements"] == 128 * 64
    assert verdict.certificate["align_bytes"] == 1024


def test_handoff_names_the_first_element_that_is_elsewhere():
    plan = plan_of("A", (64, 64))
    wanted = requested_addresses(plan.problem)
    image = image_of(plan)
    here, there = wanted[5, 7] // 2, wanted[60, 1] // 2
    image[[here, there]] = image[[there, here]]
    witness = handoff(image, plan).witness
    assert witness == {
        "claim": "wgmma reads another element",
        "mn": 5,
        "k": 7,
        "read_byte": wanted[5, 7],
        "expected_element": 5 * 64 + 7,
        "got_element": 60 * 64 + 1,
    }
    image = image_of(plan)
    image[wanted[63, 63] // 2] = -1
    witness = handoff(image, plan).witness
    assert (witness["mn"], witness["k"], witness["got_element"]) == (63, 63, -1)
    assert witness["claim"] == "wgmma reads an address that nothing wrote"


@pytest.mark.parametrize("size", [0, 1, 2048, 4095])
def test_handoff_reads_nothing_beyond_the_image(size):
    plan = plan_of("A", (64, 64))
    assert handoff(image_of(plan)[:size], plan).witness["got_element"] == -1


def test_handoff_of_a_wrong_swizzle():
    plan = plan_of("A", (64, 64))
    other = plan.with_changes(problem=plan.problem.with_changes(swizzle="64B"))
    witness = handoff(image_of(other), plan).witness
    assert (witness["mn"], witness["k"]) == (4, 0)


@pytest.mark.parametrize("image", [np.zeros((2, 2), dtype=np.int64), np.zeros(4), np.zeros(4, dtype=bool), 3])
def test_handoff_wants_a_list_of_integers(image):
    with pytest.raises(MalformedError, match="LA362"):
        handoff(image, plan_of())


def test_handoff_refutes_incomplete_plans_and_wrong_words():
    plan = plan_of()
    assert not handoff(image_of(plan), plan.with_changes(tiles=plan.tiles[:1]))
    assert not handoff(image_of(plan), plan.with_changes(tiles=(plan.tiles[0], replace(plan.tiles[1], encoded=0))))
    assert not handoff(image_of(plan), plan.with_changes(rows=8))


def test_the_checker_does_not_import_the_finder():
    import ast
    from pathlib import Path

    import layoutalg.proofs.wgmma as package

    for file in Path(package.__file__).parent.glob("*.py"):
        names = [
            name
            for node in ast.walk(ast.parse(file.read_text()))
            for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
        ]
        assert not [name for name in names if "synth" in name or "codegen" in name]
