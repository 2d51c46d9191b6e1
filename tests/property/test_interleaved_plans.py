"""Plans with interleaved maps: random tiles of slices, judged by running every copy through the model of the engine."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError, RepresentabilityError
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem, check
from layoutalg.proofs.tensormap import meaning as denoted
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.targets.nvidia import tensormap


def sliced_problem(rng: random.Random) -> TensorMapProblem:
    """A tile of a tensor of slices: dense or cut shared memory, any swizzle, pitches with room, element strides."""
    unit, (dtype, size) = rng.choice((16, 32)), rng.choice((("bf16", 2), ("f32", 4), ("u8", 1), ("tf32", 4)))
    many, dims = unit // size, rng.randint(1, 4)
    shape = [rng.randint(1, 7) for _ in range(dims)] + [many * rng.choice((1, 1, 2, 3))]
    reach, strides = shape[-1], [1]
    for extent in reversed(shape[:-1]):
        strides.insert(0, reach)
        reach = reach * extent + many * rng.choice((0, 0, 1, 2))
    steps = [rng.choice((1, 1, 1, 2)) for _ in range(dims)] + [1]
    tile = [rng.choice((1, 2, 4, 8)) for _ in range(dims)] + [rng.choice((many, shape[-1]))]
    if rng.random() < 0.3:
        strides = [*rng.sample(strides[:-1], dims), 1]
    order = list(range(dims))
    if rng.random() < 0.7:
        order.reverse()
    else:
        rng.shuffle(order)
    smem, filled = [0] * (dims + 1), tile[-1]
    smem[-1] = 1
    for at in order:
        if rng.random() < 0.1:
            filled = -(-filled * size // 128) * 128 // size
        smem[at] = filled
        filled *= tile[at]
    swizzle = rng.choice(("NONE", "NONE", "32B", "64B", "128B"))
    return TensorMapProblem.of(
        (tuple(shape), tuple(strides), dtype), tuple(tile),
        la.CuteLayout(tuple(tile), tuple(smem)), swizzle=swizzle, element_strides=tuple(steps),
    )  # fmt: skip


def judged(plan: TensorMapPlan, rng: random.Random) -> None:
    """Load tiles at origins in and around the bounds; every byte must be what the problem asks for there."""
    problem = plan.problem
    memory = np.random.default_rng(7).integers(1, 256, problem.byte_span()[1] + 64, dtype=np.uint8)
    for _ in range(3):
        origin = [
            m * rng.randint(-1 if plan.oob == "exact" else 0, max(0, (high - 1) // m)) if m else 0
            for m, (_, high) in zip(problem.origin_multiple, problem.bounds, strict=True)
        ]
        image = np.full(plan.smem_bytes + 1024, 0xEE, np.uint8)
        counted = 0
        for issue, coords in zip(plan.issues, plan.coordinates(origin), strict=True):
            counted += tensormap.tile_load(plan.tensor_map, coords, memory, image, issue.smem_offset_bytes)
        assert counted == plan.expect_tx_bytes
        wanted, _ = problem.expected(memory, origin)
        at = problem.addresses()[..., None] + np.arange(problem.element_bytes)
        assert np.array_equal(image[at], wanted), (plan, origin)
        image[at] = 0xEE
        assert (image == 0xEE).all()


@pytest.mark.parametrize("seed", range(4))
def test_every_plan_moves_what_is_asked(seed: int) -> None:
    rng = random.Random(seed)
    planned = more = 0
    for _ in range(60):
        try:
            problem = sliced_problem(rng)
        except (MalformedError, RepresentabilityError):
            continue
        try:
            plan = synthesize_tensormap(problem, interleave=rng.choice(("16B", "32B")), repair=False)
        except InadmissibleError as error:
            assert error.violations
            continue
        planned += 1
        assert check(plan)
        assert TensorMapPlan.from_json(plan.to_json()) == plan
        assert np.array_equal(denoted.table(plan), problem.addresses() // problem.element_bytes)
        judged(plan, rng)
        more += len(plan.issues) > 1
    assert planned > 12
    assert more > 0


def test_stores_write_exactly_the_tile() -> None:
    rng = random.Random(9)
    stored = 0
    while stored < 12:
        try:
            problem = replace(sliced_problem(rng), direction="store")
            plan = synthesize_tensormap(problem, interleave=rng.choice(("16B", "32B")), repair=False)
        except (MalformedError, RepresentabilityError, InadmissibleError):
            continue
        stored += 1
        assert check(plan)
        origin = [
            m * rng.randint(0, max(0, (high - 1) // m)) if m else 0
            for m, (_, high) in zip(problem.origin_multiple, problem.bounds, strict=True)
        ]
        image = np.random.default_rng(3).integers(1, 256, plan.smem_bytes + 64, dtype=np.uint8) & 0x3F
        memory = np.full(problem.byte_span()[1] + 64, 0xA5, np.uint8)
        wanted = memory.copy()
        for issue, coords in zip(plan.issues, plan.coordinates(origin), strict=True):
            tensormap.tile_store(plan.tensor_map, coords, memory, image, issue.smem_offset_bytes)
        element, inside = problem.elements(origin)
        each = np.arange(problem.element_bytes)
        wanted[element[inside][:, None] * problem.element_bytes + each] = image[
            problem.addresses()[inside][:, None] + each
        ]
        assert np.array_equal(memory, wanted), (plan, origin)


def test_a_map_with_slices_carries_what_no_plain_map_does() -> None:
    """Six dimensions, one of them stepped by 2 along W, dense under a swizzle: 1 copy, or none at all."""
    tensor = la.Tensor((4, 16, 7, 56, 50, 8), dtype="f16")
    smem = "Sw<3,3,3> o 0 o (1,1,3,4,16,8):(1536,1536,512,128,8,1)"
    options = {"element_strides": (1, 1, 1, 1, 2, 1)}
    with pytest.raises(InadmissibleError):
        la.tensormap(tensor, (1, 1, 3, 4, 16, 8), smem, **options)
    plan = la.tensormap(tensor, (1, 1, 3, 4, 16, 8), smem, interleave="any", **options)
    assert (plan.tensor_map.interleave, len(plan.issues), plan.oob) == ("16B", 1, "exact")
    assert plan.tensor_map.element_strides[0] == 2
    judged(plan, random.Random(1))
    same = la.tensormap(((1024, 512), None, "bf16"), (64, 64), interleave="any")
    assert same.tensor_map.interleave == "NONE"  # the plain map comes first


@pytest.mark.parametrize(
    ("tensor", "tile", "smem", "rule"),
    [
        (((8, 16, 8), None, "f16"), (1, 4, 8), "(1,4,8):(64,16,1)", "INTERLEAVE_SLICES"),  # apart, under 128 bytes
        (((8, 16, 8), (128, 1, 16), "f16"), (1, 8, 8), "(1,8,8):(64,8,1)", "INNER_CONTIGUOUS"),
        (((8, 16, 9), (160, 10, 1), "f16"), (1, 8, 8), "(1,8,8):(64,8,1)", "INTERLEAVE_SLICES"),
        (((8, 16, 8), (140, 12, 1), "f16"), (1, 8, 8), "(1,8,8):(64,8,1)", "STRIDE_ALIGN"),
    ],
)
def test_refusals_name_the_rule(tensor: object, tile: tuple[int, ...], smem: str, rule: str) -> None:
    with pytest.raises(InadmissibleError) as caught:
        la.tensormap(tensor, tile, smem, interleave="16B")
    assert rule in [entry.rule for entry in caught.value.violations]


def test_admission_of_interleaved_maps() -> None:
    tensor, smem = ((16, 56, 50, 8), None, "f16"), "Sw<3,3,3> o 0 o (1,4,16,8):(512,128,8,1)"
    found = la.admissible(smem, "tma", dtype="f16", tensor=tensor, interleave="16B")
    assert isinstance(found, la.Admitted)
    assert found.descriptor.tensor_map.interleave == "16B"
    assert found.certificate.check()
    some = la.admissible("(4,16,8):(128,8,1)", "tma", interleave="32B")
    assert isinstance(some, la.Admitted)
    with pytest.raises(MalformedError, match="LA801"):
        la.admissible(smem, "tma", interleave="8B")
    six = TensorMapProblem.of(
        la.Tensor((4, 16, 7, 56, 50, 8), dtype="f16"), (1, 1, 3, 4, 16, 8),
        "Sw<3,3,3> o 0 o (1,1,3,4,16,8):(1536,1536,512,128,8,1)", element_strides=(1, 1, 1, 1, 2, 1),
    )  # fmt: skip
    repairs = [repair.name for repair in la.admissible(six, "tma").repairs]
    assert "take an interleaved map" in repairs
    assert la.admissible(six, "tma", interleave="any")


def test_the_checker_refutes_every_changed_plan() -> None:
    plan = la.tensormap(((4, 16, 56, 50, 8), None, "f16"), (1, 1, 4, 16, 8), interleave="16B")
    tm = plan.tensor_map
    fields = {name: getattr(tm, name) for name in tm.__slots__}
    changes = [
        {"box": (8, *tm.box[1:])}, {"box": (tm.box[0], 8, *tm.box[2:])}, {"dims": (51, *tm.dims[1:])},
        {"dims": (49, *tm.dims[1:])}, {"element_strides": (2, 1, 1, 1)}, {"swizzle": "128B"}, {"oob_fill": "NAN"},
        {"strides_bytes": (816, *tm.strides_bytes[1:])}, {"interleave": "32B"}, {"base_address": 16},
    ]  # fmt: skip
    for change in changes:
        other = tensormap.TensorMap(**fields | change)
        if tensormap.violations(other):
            continue
        changed = plan.with_changes(tensor_map=other, raw=tensormap.encode(other), certificate=None)
        assert not check(changed), change
    assert math.prod(tensormap.loaded_counts(tm)) * 16 == plan.expect_tx_bytes
