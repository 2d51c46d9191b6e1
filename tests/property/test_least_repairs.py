"""Repairs in order, without an idle change, none smaller of the same kind: by brute force over pitches."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from layoutalg.proofs.tensormap import TensorMapProblem, check
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.synth.solving import least_repairs


def refused(problem) -> bool:
    try:
        synthesize_tensormap(problem, repair=False)
    except InadmissibleError:
        return True
    return False


def test_no_smaller_pitch_is_admitted():
    rng = random.Random(1)
    for _ in range(6):
        pitch, dtype = rng.randrange(65, 140), rng.choice(("bf16", "u8", "f32"))
        columns = 32 if dtype == "f32" else 64
        problem = TensorMapProblem.of(((64, pitch), (pitch, 1), dtype), (32, columns), f"(32,{columns}):({columns},1)")
        if not refused(problem):
            assert least_repairs(problem) == ()
            continue
        padded = next(repair for repair in least_repairs(problem) if repair.name == "pad the pitch")
        assert bool(check(padded.plan))
        ((name, before, after),) = padded.changes
        assert (name, before) == ("global_strides[0]", pitch)
        assert all(refused(replace(problem, global_strides=(less, 1))) for less in range(pitch, after))


@pytest.mark.parametrize(
    ("tensor", "tile", "smem"),
    [
        (((4, 60, 100), (6000, 100, 1), "bf16"), (1, 32, 64), "(1,32,64):(0,64,1)"),
        (((512, 512), None, "bf16"), (64, 64), "(64,64):(65,1)"),
        (((512, 512), None, "bf16"), (64, 40), "Sw<3,3,3> o 0 o (64,40):(40,1)"),
        (((512, 512), (1, 512), "bf16"), (64, 64), "(64,64):(64,1)"),
    ],
)
def test_repairs_are_proved_in_order_and_without_idle_changes(tensor, tile, smem):
    problem = TensorMapProblem.of(tensor, tile, smem)
    found = least_repairs(problem)
    assert found
    assert [repair.cost for repair in found] == sorted(repair.cost for repair in found)
    for repair in found:
        assert bool(check(repair.plan))
        assert repair.plan.problem != problem
        if len(repair.changes) > 1 and all("[" not in name for name, _, _ in repair.changes):
            for name, before, _ in repair.changes:
                fewer = replace(repair.plan.problem, **{name: before})
                assert fewer == problem or refused(fewer)
    assert found[0].to_json()["cost"] == list(found[0].cost)


def test_planes_stay_apart_where_rows_grow():
    problem = TensorMapProblem.of(((4, 60, 100), (6000, 100, 1), "bf16"), (1, 32, 64), "(1,32,64):(0,64,1)")
    padded = next(repair for repair in least_repairs(problem) if repair.name == "pad the pitch")
    plane, row, _ = padded.plan.problem.global_strides
    assert row == 104
    assert plane >= 59 * row + 100
