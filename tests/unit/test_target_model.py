"""Targets by name: limits with sources, consumers, fragments, turns; what is missing is unknown, never an error."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.ground.verdict import Unknown
from layoutalg.targets import TargetModel, model_of
from layoutalg.targets.banks import AMD_RULES
from layoutalg.targets.registry import TARGETS
from layoutalg.targets.target_model import CONSUMERS, LIMITS, Absent, Fact

NVIDIA = ("sm_80", "sm_86", "sm_87", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_103a", "sm_120a", "sm_121a")
AMD = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
NAMES = (*NVIDIA, *AMD)


def test_every_target_has_a_model():
    assert tuple(TARGETS) == NAMES == tuple(LIMITS)
    for arch in NAMES:
        model = model_of(arch)
        assert isinstance(model, TargetModel)
        assert model.limit("lanes").value == model.target.lanes
        assert json.loads(json.dumps(model.to_json()))["arch"] == arch
        assert arch in str(model)
        for fact in model.limits.values():
            assert fact.source.document
            assert (
                fact.grade == "documented" or model.target.measured or (fact.grade, arch in AMD) == ("assembled", True)
            )
    with pytest.raises(MalformedError, match="LA340"):
        model_of("sm_70")


def test_limits_of_documents():
    optin = {arch: model_of(arch).limit("shared_bytes_per_block_optin").value for arch in NVIDIA}
    assert optin == {
        "sm_80": 166912, "sm_86": 101376, "sm_87": 166912, "sm_89": 101376, "sm_90": 232448, "sm_90a": 232448,
        "sm_100": 232448, "sm_100a": 232448, "sm_103a": 232448, "sm_120a": 101376,
        "sm_121a": 101376,
    }  # fmt: skip
    assert [model_of(arch).limit("lds_bytes_per_block").value >> 10 for arch in AMD] == [64, 64, 160, 64, 64]
    assert [model_of(arch).limit("tmem_columns").value for arch in ("sm_90a", "sm_100a")] == [0, 512]


@pytest.mark.parametrize("arch", NAMES)
def test_registers_of_conversions_gathers_and_fragments_are_judged(arch):
    model = model_of(arch)
    lanes, most = model.target.lanes, model.target.registers
    room = model.target.file_kib * 256 or 65536
    assert most == {"nvidia": 255, "amd": 512 if arch.startswith("gfx9") else 256}[model.target.vendor]
    for words in (1, most - 1, most, most + 1):
        for threads in (lanes, room // most, room // words, room // words + 1):
            text = model.register_excess(words, threads)
            assert bool(text) == (words > most or words * threads > room)
            assert not text or str(words if words > most else words * threads) in text
    wide, bits = lanes.bit_length() - 1, most.bit_length()
    columns = [(1 << bit,) for bit in range(bits + wide)]
    many = la.LinearLayout.from_bases({"register": columns[:bits], "lane": columns[bits:]}, {"x": 1 << bits + wide})
    if not isinstance(plan := la.conversion(many, many, 32, arch), Unknown):
        assert plan.excess == f"{1 << bits} registers per thread, {arch} has {most}"
        assert plan.excess in str(plan)
        assert plan.to_json()["excess"] == plan.excess
        assert not la.conversion(many, many, 8, arch).excess
        assert "excess" not in la.conversion(many, many, 8, arch).to_json()


def test_a_fragment_of_too_many_registers_spills():
    for tiles, excess in ((32, ""), (64, "256 registers per thread, sm_90a has 255")):
        layout = la.targets.layouts.nvidia.mma_accumulator((16, 8 * tiles), (1, 1))
        answer = la.admissible(layout, "mma.m16n8k16.f32.bf16.D", dtype="f32")
        assert answer.descriptor.excess == excess
        assert excess in str(answer.descriptor)


@pytest.mark.parametrize("arch", NAMES)
def test_what_is_missing_is_unknown(arch):
    model = model_of(arch)
    for answer in (
        model.limit("colour"), model.limit(3), model.consumer("teleport.A"), model.consumer(None), model.shape("mma.x"),
        model.fragment("mfma.v_mfma_f32_1x1x1_f16", "A"), model.fragment(7, "A"), model.shape(None),
    ):  # fmt: skip
        assert isinstance(answer, Unknown), answer


@pytest.mark.parametrize("arch", NAMES)
def test_fragments_have_the_lanes_and_the_shape_of_the_instruction(arch):
    model = model_of(arch)
    for name in model.instructions:
        m, n, k = model.shape(name).value
        sizes = {"A": (m, k // 2 if ".sp" in name else k), "B": (k, n), "D": (m, n)}
        for operand, extents in sizes.items():
            found = model.fragment(name, operand)
            assert tuple(found.out_dims.values())[:2] == extents
            assert found.in_dims["lane"] == model.target.lanes
        assert isinstance(model.fragment(name, "E"), Unknown)
        assert isinstance(model.consumer(name), Fact)
    assert bool(model.instructions)


def test_instructions_by_generation():
    assert "mma.m16n8k32.f32.e4m3" not in model_of("sm_80").instructions
    assert "mma.m16n8k32.f32.e4m3" in model_of("sm_100a").instructions
    assert "mma.m16n8k16.f64.f64" not in model_of("sm_80").instructions
    assert "mma.m8n8k4.f64.f64" in model_of("sm_80").instructions
    assert not any(name.startswith("mma") for name in model_of("gfx942").instructions)


def test_turns_are_those_of_the_banks_or_unknown():
    rng = np.random.default_rng(0)
    operations = sorted({operation for _, operation in AMD_RULES} | {"ds_write_b32", "ld.shared.b32", "ldmatrix.x4"})
    known = set()
    for arch, operation in itertools.product(NAMES, operations):
        lanes = 32 if not operation.startswith("ds") else TARGETS[arch].lanes
        addresses = 16 * rng.integers(0, 64, size=lanes)
        found = model_of(arch).turns(operation, addresses.tolist())
        if isinstance(found, int):
            known.add((arch, operation))
            assert found == la.targets.banks.turns(arch, operation, addresses.tolist())
        else:
            assert isinstance(found, Unknown)
    assert known == {*AMD_RULES, *itertools.product(NVIDIA, ("ld.shared.b32", "ldmatrix.x4"))}


@pytest.mark.parametrize(("arch", "head"), list(itertools.product(NAMES, CONSUMERS)))
def test_a_consumer_is_there_or_absent_with_what_there_is_instead(arch, head):
    found = model_of(arch).consumer(head)
    if isinstance(found, Fact):
        assert head in model_of(arch).consumers
        return
    assert isinstance(found, Absent)
    for other in found.instead:
        assert other in model_of(arch).consumers
        assert CONSUMERS[other].kind == CONSUMERS[head].kind


ASKED = ("tma", "tma.store", "wgmma.A", "wgmma.B")
LAYOUTS = ("(64,64):(64,1)", "Sw<3,3,3> o 0 o (64,64):(64,1)", "(64,64):(65,1)", "(12,5):(7,3)", "(8,8):(0,1)")


@pytest.mark.parametrize("arch", NAMES)
def test_any_consumer_is_asked_on_any_target_without_an_error_or_the_wrong_vendor(arch):
    for consumer, layout, dtype in itertools.product(ASKED, LAYOUTS, ("bf16", "f32")):
        found = la.admissible(layout, consumer, arch, dtype)
        assert isinstance(found, (la.Admitted, la.Refused, Unknown))
        absent = model_of(arch).consumer(consumer)
        if isinstance(absent, Absent):
            assert isinstance(found, la.Refused)
            assert found.rules == (absent.rule,)
            assert all(repair.name.removeprefix("use ") in model_of(arch).consumers for repair in found.repairs)
        if isinstance(found, la.Admitted):
            assert isinstance(absent, Fact)


def test_a_refusal_for_a_target_says_what_it_has_instead():
    found = la.admissible("(64,64):(64,1)", "wgmma.A", "gfx942")
    assert found.rules == ("WGMMA_ARCH",)
    assert [repair.name for repair in found.repairs] == ["use mfma"]
    assert la.admissible("(64,64):(64,1)", "tma", "sm_80").rules == ("NO_TMA",)
    assert isinstance(la.admissible("(64,64):(64,1)", "tma", "sm_100a"), (Unknown, la.Admitted))


@pytest.mark.parametrize("arch", NAMES)
def test_suggestions_are_for_the_target_or_say_why_not(arch):
    tensor = ((512, 512), None, "f32")
    own = "ds_read_b128" if arch.startswith("gfx") else "ld.shared.b32"
    found = la.suggest(tensor, (64, 32), [own], arch, fill="threads")
    known = arch not in ("gfx90a",)
    assert bool(found.choices) == known
    if known:
        offsets = np.asarray(found.best.smem.table(), dtype=np.int64)
        assert len(set(offsets.tolist())) == offsets.size
        assert isinstance(la.admissible(found.best.smem, own, arch, "f32"), la.Admitted)
    else:
        assert any("turns on gfx90a are not known" in loser.reason for loser in found.losers)
    other = "ld.shared.b32" if arch.startswith("gfx") else "ds_read_b128"
    wrong = la.suggest(tensor, (64, 32), [other], arch, fill="threads")
    assert not wrong.choices
    assert {loser.consumer for loser in wrong.losers} == {other}
    if arch in ("sm_80", "gfx942"):
        copied = la.suggest(tensor, (64, 32), [own], arch)
        assert not copied.choices
        assert any("NO_TMA" in loser.reason for loser in copied.losers)


def test_the_turns_of_a_suggestion_are_least_among_the_layouts_tried():
    found = la.suggest(((512, 512), None, "f32"), (64, 32), ["ds_read_b128"], "gfx942", fill="threads")
    plan = la.admissible(found.best.smem, "ds_read_b128", "gfx942", "f32").descriptor
    stores = la.admissible(found.best.smem, "ds_write_b128", "gfx942", "f32").descriptor
    for moved in (plan, stores):
        counted = [la.targets.banks.turns("gfx942", moved.instruction, list(access)) for access in moved.addresses]
        assert moved.turns == sum(counted)
    assert found.best.turns == plan.turns + stores.turns == min(choice.turns for choice in found.choices)


def test_a_tile_is_refused_that_exceeds_the_memory_of_its_target():
    for arch, extents in (("gfx942", (256, 128)), ("sm_120a", (256, 128)), ("sm_80", (512, 128))):
        with pytest.raises(MalformedError, match="bytes of shared memory"):
            la.suggest(((512, 512), None, "f32"), extents, ["ld.shared.b32"], arch, fill="threads")


@pytest.mark.nightly
def test_a_tile_fits_the_memory_of_its_target():
    assert la.suggest(((512, 512), None, "f32"), (256, 128), ["ds_read_b128"], "gfx950", fill="threads").choices


def test_bulk_copies_are_no_cp_async():
    assert model_of("sm_80").consumer("cp.async.bulk").rule == "NO_BULK"
    assert model_of("sm_80").consumer("cp.async.bulk.tensor.2d").rule == "NO_TMA"
    assert model_of("sm_80").consumer("cp.async.cg.16").value == "cp.async"
