"""Tiles that plain dimensions do not carry: falling strides, shared coordinates, freed extents, moved bases."""

from __future__ import annotations

import contextlib
import math
import random
import time

import pytest
from instruments.simulation import first_difference, random_origins

from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, MalformedError
from layoutalg.ground.verdict import Proved, Unknown
from layoutalg.proofs.tensormap import check
from layoutalg.synth import InadmissibleError, TensorMapPlan, TensorMapProblem, synthesize_tensormap
from layoutalg.synth.tensormap import planner
from layoutalg.synth.tensormap.boxes import boxes
from layoutalg.synth.tensormap.variants import seen, variants


def problem(shape, stride, dtype, tile, modes, swizzle="NONE", direction="load", **more):
    return {
        "schema": "layoutalg/tensormap-problem/1",
        "arch": "sm_90a",
        "direction": direction,
        "global": {"shape": shape, "stride": stride, "dtype": dtype, "base_align_bytes": 256},
        "tile": tile,
        "smem": {"modes": modes, "swizzle": swizzle},
        **more,
    }


def planned(document, origins=12) -> TensorMapPlan:
    """The plan, proved again and run on real bytes."""
    plan = synthesize_tensormap(document)
    assert isinstance(check(plan), Proved)
    rng = random.Random(3)
    if plan.problem.byte_span()[1] <= 1 << 26:
        for origin in random_origins(plan, rng, origins):
            assert first_difference(plan, origin, rng.randrange(1000)) is None, origin
    return plan


def refused(document) -> InadmissibleError:
    with pytest.raises(InadmissibleError) as caught:
        synthesize_tensormap(document)
    return caught.value


FALLING = problem([8, 64], [-64, 1], "bf16", [1, 64], [[[1, 64]], [[64, 1]]], base_elem_offset=448)


def test_a_falling_stride_is_a_falling_coordinate():
    plan = planned(FALLING)
    assert (plan.oob, len(plan.issues)) == ("exact", 1)
    starts = [plan.coordinates((row, 0))[0] for row in range(8)]
    assert starts == sorted(starts, reverse=True)
    assert len(set(starts)) == 8


@pytest.mark.parametrize("direction", ["load", "store"])
def test_rows_of_a_falling_stride_are_issues_of_their_own(direction):
    modes = [[[16, 64]], [[64, 1]]]
    document = problem([64, 64], [-64, 1], "bf16", [16, 64], modes, "128B", direction, base_elem_offset=63 * 64)
    plan = planned(document)
    assert (plan.oob, len(plan.issues)) == ("exact", 16)


def test_a_falling_stride_that_leaves_the_memory_below_the_base_is_refused():
    error = refused(problem([100, 64], [-64, 1], "bf16", [16, 64], [[[16, 64]], [[64, 1]]]))
    assert "STRIDE_RANGE" in {violation.rule for violation in error.violations}
    assert "12672 bytes before the base" in str(error)


def test_a_second_unit_stride_is_refused_by_its_rule():
    error = refused(problem([64, 64], [1, 1], "f16", [8, 64], [[[8, 64]], [[64, 1]]]))
    assert [violation.rule for violation in error.violations] == ["STRIDE_ALIGN"]
    assert "dimension 0 has a pitch of 1 x 2 = 2 bytes" in str(error)


def test_a_second_unit_stride_hides_no_plan():
    document = problem([61, 16], [1, 1], "f32", [4, 16], [[[4, 16]], [[16, 1]]], element_strides=[4, 1])
    plan = planned(document)
    assert (plan.oob, len(plan.issues)) == ("exact", 1)


def test_a_lower_bound_off_16_bytes_moves_the_base_to_the_chunk_below():
    plan = planned(problem([8, 64], [64, 1], "f16", [8, 16], [[[8, 16]], [[16, 1]]], bounds=[8, [4, 64]]))
    assert (plan.oob, plan.tensor_map.base_address, len(plan.issues)) == ("weak", 0, 1)


def test_a_fixed_origin_frees_the_extent_from_whole_spans():
    plan = planned(problem([60], [1], "u16", [16], [[[8, 1], [2, 16]]], "32B", origin_multiple=[0]))
    tm = plan.tensor_map
    assert (plan.oob, tm.dims, tm.strides_bytes, len(plan.issues)) == ("exact", (8, 2), (16,), 1)


def test_a_pitch_of_2_40_bytes_is_walked_by_an_element_stride():
    plan = planned(problem([4, 64], [2**39, 1], "f16", [4, 64], [[[4, 64]], [[64, 1]]]))
    tm = plan.tensor_map
    assert (plan.oob, tm.strides_bytes, tm.element_strides, len(plan.issues)) == ("exact", (2**39,), (1, 2), 1)


def test_more_dimensions_than_a_map_has_share_coordinates_in_several_issues():
    shape, stride = [3, 3, 3, 3, 3, 64], [30 * 4096, 10 * 1024, 3 * 1024, 512 + 128, 128, 1]
    modes = [[[2, 64 << k]] for k in reversed(range(5))]
    plan = planned(problem(shape, stride, "f16", [2, 2, 2, 2, 2, 64], [*modes, [[64, 1]]], "128B"))
    assert plan.oob == "exact"
    assert len(plan.tensor_map.dims) <= 5
    assert len(plan.issues) > 1


def test_a_store_of_part_of_a_row_need_not_end_with_the_row():
    plan = planned(problem([61], [1], "f64", [2], [[[2, 1]]], direction="store", origin_multiple=[0]))
    assert (plan.oob, plan.tensor_map.dims) == ("exact", (2,))


def test_the_pitch_of_a_single_row_does_not_matter():
    document = problem([1, 512], [511, 1], "f16", [64, 64], [[[64, 64]], [[64, 1]]], "128B")
    plan = planned(document)
    assert (plan.oob, len(plan.issues)) == ("exact", 1)
    assert plan.problem == TensorMapProblem.from_json(document)
    straight = seen(plan.problem)
    assert straight.global_strides == (64, 1)  # as the rows lie in shared memory
    assert seen(straight) == straight


def test_an_origin_that_shows_nothing_steps_over_the_tile():
    falling = problem([1, 16], [-16, 1], "f16", [1, 8], [[[1, 32]], [[8, 1]]], "64B", origin_multiple=[2, 8])
    odd = problem([6, 2], [2, 1], "u64", [5, 2], [[[5, 2]], [[2, 1]]], direction="store", origin_multiple=[1, 3])
    for document in (falling, odd):
        assert planned(document).oob == "exact"


def test_a_tile_that_is_never_in_bounds_is_filled():
    more = {"bounds": [[5, 8], 64], "origin_multiple": [0, 16]}
    document = problem([8, 64], [64, 1], "f16", [4, 16], [[[4, 16]], [[16, 1]]], "32B", **more)
    assert planned(document).oob == "exact"
    plan = planned(document | {"direction": "store"})
    assert plan.oob == "exact"
    assert all(coords[0] >= plan.tensor_map.dims[0] for coords in plan.coordinates((0, 32)))


def test_a_swizzle_of_steps_is_none_with_others():
    modes = [[[4, 72]], [[8, 1]]]  # 144-byte steps under 128B: the XOR takes the 16 bytes back each time
    document = problem([5, 24], [24, 1], "f16", [4, 8], modes, "128B", "store")
    assert planned(document).tensor_map.swizzle == "NONE"
    found = {variant.swizzle: variant.smem_modes for variant in variants(TensorMapProblem.from_json(document))}
    assert found["NONE"] == (((4, 64),), ((8, 1),))


def test_wider_elements_carry_long_rows():
    modes = [[[8, 1024]], [[1024, 1]]]
    plan = planned(problem([64, 1024], [1024, 1], "u8", [8, 1024], modes))
    assert (len(plan.issues), plan.oob) == (1, "exact")


def test_a_required_class_is_worth_more_issues():
    modes = [[[64, 64]], [[64, 1], [4, 4096]]]
    document = problem([1024, 1000], [1000, 1], "bf16", [64, 256], modes, "128B", oob_required="exact")
    assert (planned(document).oob, len(planned(document).issues)) == ("exact", 4)


def test_boxes_end_at_aligned_shared_addresses():
    stated = TensorMapProblem.from_json(problem([64, 64], [64, 1], "f16", [6, 16], [[[6, 16]], [[16, 1]]]))
    assert sorted(box.issues for box in boxes(stated, "NONE", 1)) == [1]  # rows of 32 bytes start off 128


@pytest.mark.parametrize("value", [math.nan, -1.0, "soon"])
def test_a_budget_is_a_number_of_seconds(value):
    with pytest.raises(MalformedError, match="LA004"):
        synthesize_tensormap(FALLING, seconds=value)


def rank_16(required: str) -> dict[str, object]:
    stride, reach = [1] * 16, 72
    for dim in reversed(range(15)):
        stride[dim], reach = reach, reach * 3 + 8
    tile = [1] * 11 + [2] * 4 + [64]
    modes = [[[1, 1]]] * 11 + [[[2, 64 << k]] for k in reversed(range(4))] + [[[64, 1]]]
    shape = [3] * 15 + [64]
    return problem(shape, stride, "bf16", tile, modes, "128B", oob_required=required)


@pytest.mark.parametrize("required", ["lost", "weak", "exact"])
def test_sixteen_dimensions_keep_the_budget(required):
    began = time.process_time()
    with contextlib.suppress(BudgetError, InadmissibleError):
        synthesize_tensormap(rank_16(required), seconds=1)
    assert time.process_time() - began < 1.7


def test_sixteen_dimensions_fold():
    plan = synthesize_tensormap(rank_16("lost"))
    assert isinstance(check(plan), Proved)
    assert (plan.oob, len(plan.issues)) == ("weak", 1)
    assert refused(rank_16("exact")).violations[0].rule == "OOB_CLASS"


def test_a_sooner_deadline_outside_holds():
    with clock.within(0), pytest.raises(BudgetError, match="LA410 gave up looking for a plan"):
        synthesize_tensormap(FALLING)


def test_views_without_a_verdict_are_no_proof_of_impossibility(monkeypatch):
    monkeypatch.setattr(planner, "proved", lambda plan: (plan, Unknown("for this test")))
    with pytest.raises(BudgetError, match="LA411"):
        synthesize_tensormap(FALLING)


@pytest.mark.parametrize("extent", [2**31 - 4, 2**31])
def test_a_tensor_of_the_longest_extent_is_stored_whole(extent):
    """The last tile starts within 32 bits; elements of the box past that are no start coordinates."""
    modes = [[[2, 1], [3, 2]]]
    document = problem([extent], [1], "s64", [6], modes, "128B", "store", base_elem_offset=2, origin_multiple=[6])
    plan = synthesize_tensormap(document)
    assert (plan.oob, plan.tensor_map.dims, len(plan.issues)) == ("exact", (extent,), 1)


@pytest.mark.parametrize("extent", [40, 41])
def test_steps_of_the_problem_are_element_strides_of_the_map(extent):
    """Extents and pitches stay the tensor's; walking its odd rows as a tensor of their own would fix their number."""
    modes = [[[8, 64]], [[64, 1]]]
    plan = planned(problem([extent, 64], [64, 1], "bf16", [8, 64], modes, "128B", element_strides=[2, 1]))
    tm = plan.tensor_map
    assert (tm.dims, tm.strides_bytes, tm.box, tm.element_strides) == ((64, extent), (128,), (64, 16), (1, 2))
