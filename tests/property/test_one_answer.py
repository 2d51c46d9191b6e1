"""Every question about a target's banks rests on the one grade of the registry, and says so."""

from __future__ import annotations

import pytest

import layoutalg as la
from layoutalg.cli import main
from layoutalg.proofs.tensormap.probe import TensorMapProbe
from layoutalg.targets.banks import bank_model
from layoutalg.targets.registry import TARGETS

TILE = "(128,32):(32,1)"
CUDA = [arch for arch, target in TARGETS.items() if target.vendor == "nvidia"]
UNMEASURED = [arch for arch in CUDA if TARGETS[arch].has_tensor_maps and not TARGETS[arch].measured]
GRADES = {arch: "measured" if arch in ("sm_90", "sm_90a") else "assumed" for arch in CUDA}


@pytest.mark.parametrize("arch", CUDA)
def test_groups_have_the_same_evidence_in_every_answer(arch: str) -> None:
    assert bank_model(arch, "ldmatrix.x4").evidence == GRADES[arch]
    registers = la.parse("(32,4):(32,1)")
    assert la.banks(registers, "(4096):(1)", 32, "ld.shared.v4.b32", target=arch).evidence == GRADES[arch]
    plan = la.swizzle(["rows:store", "ldmatrix"], arch, 16, tile=(128, 32))
    assert {each.evidence for each in plan.served} == {GRADES[arch]}
    padded = la.padding((128, 32), ["rows:store", "ldmatrix"], target=arch, element_bits=16)
    assert {each.evidence for each in padded.served} == {GRADES[arch]}
    told = str(la.admissible(TILE, "ldmatrix.x4", arch))
    assert "turns" in told
    assert (f"assumed for {arch}" in told) == (GRADES[arch] == "assumed")


@pytest.mark.parametrize("arch", UNMEASURED)
def test_a_tensor_map_of_a_chip_that_was_not_measured_is_no_proof(arch: str) -> None:
    probe = la.tensormap(((4096, 8192), None, "bf16"), (128, 64), target=arch)
    assert isinstance(probe, TensorMapProbe)
    assert f"no {arch} device was measured" in probe.reason
    ask = ["synth", "tensormap", "(128,64):(64,1)", "--tensor", "4096,8192", "--target", arch]
    assert main(ask) == 2
    assert main(["admissible", "(64,64):(64,1)", "tma", "--target", arch]) == 2
