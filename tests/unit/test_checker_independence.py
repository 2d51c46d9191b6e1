"""A mistake in what the finder calls is not believed by the checker; what both use is listed in docs/checkers.md."""

from __future__ import annotations

import ast
import contextlib
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from layoutalg.ground import clock
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.proofs import wgmma as wgmma_proofs
from layoutalg.proofs.tensormap import Issue, TensorMapPlan, TensorMapProblem, check, presburger
from layoutalg.proofs.tensormap.walk import coefficients, walk
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia import wgmma as wgmma_facts
from layoutalg.targets.nvidia.tensormap import checks, encoding, execute, facts
from layoutalg.targets.nvidia.wgmma import descriptor as wgmma_descriptor
from layoutalg.targets.nvidia.wgmma import operand as wgmma_operand

ROOT = Path(__file__).parents[2]


def problem(swizzle="128B", columns=64, **more):
    return {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
        "tile": [64, columns], "smem": {"modes": [[[64, columns]], [[columns, 1]]], "swizzle": swizzle}, **more,
    }  # fmt: skip


def everywhere(monkeypatch, name, wrong, *modules):
    for module in modules:
        monkeypatch.setattr(module, name, wrong)


def with_map(plan: TensorMapPlan, **fields) -> TensorMapPlan:
    stated = {name: getattr(plan.tensor_map, name) for name in tensormap.TensorMap.__slots__}
    changed = tensormap.TensorMap(**(stated | fields))
    return plan.with_changes(tensor_map=changed, raw=tensormap.encode(changed), certificate=None)


def no_xor(_, addresses):
    return np.asarray(addresses, np.int64)


def another_place(_, addresses):
    return np.asarray(addresses, np.int64) ^ 16


def too_few_bits(_, addresses):
    address = np.asarray(addresses, np.int64)
    return address ^ (address >> 7 & 1) << 4


def shifted_bits(_, addresses):
    address = np.asarray(addresses, np.int64)
    return address ^ (address >> 8 & 7) << 4


@pytest.mark.parametrize("wrong", [no_xor, another_place, too_few_bits, shifted_bits])
def test_a_wrong_xor_in_targets_proves_nothing(monkeypatch, wrong):
    right = synthesize_tensormap(problem())
    everywhere(monkeypatch, "apply_swizzle", wrong, tensormap, facts, execute)
    assert isinstance(check(right), Proved)
    for swizzle in ("NONE", "32B", "64B"):
        columns = {"32B": 16, "64B": 32}.get(swizzle, 64)
        mine = synthesize_tensormap(problem("128B", columns)) if columns == 64 else None
        changed = with_map(mine or right, swizzle=swizzle, box=(columns, 64))
        assert isinstance(check(changed.with_changes(smem_align_bytes=1024)), Refuted)


@pytest.mark.parametrize(
    ("name", "value", "modules"),
    [
        ("transaction_bytes", 48, (tensormap,)),
        ("footprint_bytes", 16, (tensormap,)),
        ("tile_align_bytes", 128, (tensormap,)),
        ("box_bytes", 16, (encoding,)),
    ],
)
def test_wrong_numbers_in_targets_prove_nothing(monkeypatch, name, value, modules):
    right = synthesize_tensormap(problem())
    everywhere(monkeypatch, name, lambda _: value, *modules)
    with pytest.raises(LayoutError):  # whatever the finder assembles with it, the checker refutes
        synthesize_tensormap(problem(), repair=False)
    if name != "box_bytes":  # which decode reads too, and then differs from the array code
        assert isinstance(check(right), Proved)


def test_a_rule_forgotten_in_targets_proves_nothing(monkeypatch):
    plan = synthesize_tensormap(problem("NONE"))
    monkeypatch.setattr(checks, "enforced_violations", lambda _: ())
    monkeypatch.setattr(encoding, "enforced_violations", lambda _: ())
    for fields in ({"swizzle": "32B"}, {"element_strides": (9, 1)}):
        assert isinstance(check(with_map(plan, **fields)), Refuted)


def test_a_field_misplaced_in_targets_proves_nothing(monkeypatch):
    plan = synthesize_tensormap(problem())
    swapped = {"swizzle": [(2, 17, 3, 0, 0)], "l2_promotion": [(2, 13, 3, 0, 0)]}
    monkeypatch.setattr(encoding.CODEC, "_parts", encoding.CODEC._parts | swapped)
    changed = plan.with_changes(raw=tensormap.encode(plan.tensor_map), certificate=None)
    assert tensormap.decode(changed.raw) == plan.tensor_map
    assert isinstance(check(changed), Refuted)


def test_a_wrong_reading_rule_in_targets_proves_nothing(monkeypatch):
    right = synthesize_wgmma(canonical_operand("A", (64, 64)))
    table = wgmma_operand.operand_offsets

    def phase(addresses, swizzle, base_offset=0):
        return addresses ^ (((addresses >> 8) - base_offset) % wgmma_descriptor.swizzle_rows(swizzle) << 4)

    def offsets(descriptor, **shape):
        return table(descriptor, **shape) + 2 * (descriptor.stride_bytes > 512)

    for name, wrong in (("swizzle_phase", phase), ("operand_offsets", offsets)):
        with monkeypatch.context() as patch:
            everywhere(patch, name, wrong, wgmma_facts, wgmma_operand)
            assert isinstance(wgmma_proofs.check(right), Proved)
            for start in (16, 32, 128):
                moved = replace(right.tiles[0], descriptor=right.tiles[0].descriptor.moved(start))
                moved = replace(moved, encoded=moved.descriptor.encode())
                assert isinstance(wgmma_proofs.check(right.with_changes(tiles=(moved, *right.tiles[1:]))), Refuted)
            with contextlib.suppress(LayoutError):  # a mistake on both sides of the finder's comparison cancels out
                found = synthesize_wgmma(canonical_operand("A", (64, 64)))
                assert [tile.encoded for tile in found.tiles] == [tile.encoded for tile in right.tiles]


def test_wrong_bits_of_a_descriptor_prove_nothing(monkeypatch):
    encode = wgmma_facts.MatrixDescriptor.encode
    right = synthesize_wgmma(canonical_operand("A", (64, 64)))
    monkeypatch.setattr(wgmma_facts.MatrixDescriptor, "encode", lambda self: encode(self) ^ 1 << 40)
    monkeypatch.setattr(wgmma_facts, "decode", lambda raw: wgmma_descriptor.decode(raw ^ 1 << 40))
    assert isinstance(wgmma_proofs.check(right), Proved)
    with pytest.raises(LayoutError):
        synthesize_wgmma(canonical_operand("A", (64, 64)))


def test_stride_fields_that_are_not_read_are_found_by_changing_them():
    from layoutalg.proofs.wgmma.reading import unread

    for major in wgmma_facts.MAJORS:
        for swizzle in wgmma_facts.SWIZZLES:
            for rows in wgmma_facts.N_VALUES:
                assert unread(rows, major, swizzle) == wgmma_facts.unread_fields(rows, major, swizzle)


def folded_plan() -> TensorMapPlan:
    """Rows of two dimensions in one map coordinate: right where tiles start in bounds, else rows of the neighbour."""
    stated = problem("NONE") | {
        "tile": [1, 1, 64],
        "smem": {"modes": [[[1, 1]], [[1, 1]], [[64, 1]]], "swizzle": "NONE"},
    }
    stated["global"] = {"shape": [6, 4, 64], "stride": [256, 64, 1], "dtype": "bf16", "base_align_bytes": 256}
    stated["origin_multiple"] = [1, 1, 0]
    tm = tensormap.TensorMap("bf16", (64, 24), (128,), (64, 1))
    origin_map = ((), ((0, 4, 1), (1, 1, 1)))
    plan = TensorMapPlan(
        TensorMapProblem.from_json(stated),
        tm,
        tensormap.encode(tm),
        (Issue((0, 0), 0),),
        origin_map,
        128,
        128,
        128,
        "weak",
    )
    return plan.with_changes(certificate=check(plan).certificate)


def test_what_isl_says_is_not_believed(monkeypatch):
    plan = folded_plan()
    assert (plan.oob, plan.certificate["engine"]) == ("weak", "isl")
    assert plan.certificate["sampled_origins"] >= 8
    size = 3 + len([extent for extent in plan.problem.tile if extent > 1])
    for answer in (
        ("exact", None),
        ("undecided", None),
        ("weak", [0] * size),
        ("lost", [0] * size),
        ("lost", [9] * size),
        ("uncovered", [0] * size),
    ):
        monkeypatch.setattr(presburger.worker, "run", lambda *_, said=answer: said)
        verdict = check(plan)
        assert isinstance(verdict, Unknown), (answer, verdict)


def test_isl_that_does_not_answer_leaves_it_unknown(monkeypatch):
    plan = folded_plan()

    def spent(*_):
        clock.out_of_time("a test", 1.0)

    monkeypatch.setattr(presburger.worker, "run", spent)
    verdict = check(plan)
    assert isinstance(verdict, Unknown)
    assert "the time limit of 1 s has passed" in verdict.reason


def test_samples_alone_see_a_wrong_class():
    """Of every plan that folds, weak by ISL, a sampled origin shows that it is not exact."""
    plan = folded_plan()
    walked, moves = walk(plan), coefficients(plan)
    foreign = 0
    for index in range(presburger.sampled_origins(walked)):
        u = presburger.sample(plan, walked, moves, index)
        wanted, moved = presburger.bounds_at(plan, walked, moves, u)
        assert not (wanted & ~moved).any()
        foreign += bool((moved & ~wanted).any())
    assert foreign


def names_from_targets() -> set[str]:
    """Every name of ``targets`` that a checker uses: laws and meanings are about ``targets``, writers are judged
    by the stand-alone checker."""
    found: set[str] = set()
    for path in (ROOT / "proofs").rglob("*.py"):
        if {"laws", "certify", "meaning.py"} & {*path.relative_to(ROOT).parts}:
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("layoutalg.targets"):
                for alias in node.names:
                    if alias.name in ("tensormap", "wgmma", "limits"):
                        modules.add(alias.asname or alias.name)
                    else:
                        found.add(alias.name)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
                found.add(node.attr)
    return found


def test_every_shared_name_is_justified():
    page = (ROOT / "docs" / "checkers.md").read_text(encoding="utf-8")
    shared = page.split("## What is shared, and why")[1]
    listed = {name for cell in re.findall(r"^\| (.+?) \|", shared, re.M) for name in re.findall(r"`(\w+)`", cell)}
    own_limits = {"MODE_DIGITS", "OPERAND_ELEMENTS", "SMEM_REACH"}  # of the library, not of hardware
    assert names_from_targets() - own_limits == listed
