"""The planner on the cases that users meet: one test per capability, each plan also run on real bytes."""

from __future__ import annotations

import dataclasses
import random

import pytest
from instruments.simulation import first_difference, random_origins

from layoutalg import explain
from layoutalg.ground.errors import BudgetError, MalformedError
from layoutalg.ground.verdict import Proved
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap import Issue, ListedProblem, check
from layoutalg.synth import InadmissibleError, TensorMapPlan, TensorMapProblem, synthesize_tensormap
from layoutalg.synth.tensormap import planner
from layoutalg.targets.nvidia import tensormap as hardware


def problem(shape, stride, tile, modes, dtype="bf16", swizzle="NONE", direction="load", align=256, **more):
    return {
        "schema": "layoutalg/tensormap-problem/1",
        "arch": "sm_90a",
        "direction": direction,
        "global": {"shape": shape, "stride": stride, "dtype": dtype, "base_align_bytes": align},
        "tile": tile,
        "smem": {"modes": modes, "swizzle": swizzle},
        **more,
    }


def planned(document, origins=6) -> TensorMapPlan:
    plan = synthesize_tensormap(document)
    assert isinstance(check(plan), Proved)
    rng = random.Random(1)
    for origin in random_origins(plan, rng, origins):
        assert first_difference(plan, origin, rng.randrange(1000)) is None, origin
    return plan


def refused(document) -> InadmissibleError:
    with pytest.raises(InadmissibleError) as caught:
        synthesize_tensormap(document)
    for repair in caught.value.repairs:  # every repair shown is admissible when submitted
        assert isinstance(synthesize_tensormap(repair.document), TensorMapPlan)
    return caught.value


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_every_rank(rank):
    shape = [4] * (rank - 1) + [64]
    stride = [64 * 4 ** (rank - 2 - i) for i in range(rank - 1)] + [1]
    tile = [2] * (rank - 1) + [32]
    modes = [[[2, 32 * 2 ** (rank - 2 - i)]] for i in range(rank - 1)] + [[[32, 1]]]
    plan = planned(problem(shape, stride, tile, modes))
    assert len(plan.tensor_map.dims) == rank
    assert len(plan.issues) == 1
    assert plan.oob == "exact"
    assert plan.expect_tx_bytes == 2 ** (rank - 1) * 64


def test_a_tile_of_all_shared_memory_of_a_block():
    """227 KiB are carried by one copy; one more row of the tile is refused for that reason."""
    whole = problem([512, 4, 256], [1024, 256, 1], [227, 4, 256], [[[227, 1024]], [[4, 256]], [[256, 1]]], dtype="u8")
    plan = synthesize_tensormap(whole)
    assert (plan.smem_bytes, len(plan.issues)) == (232_448, 1)
    assert isinstance(check(plan), Proved)
    whole["tile"], whole["smem"]["modes"][0] = [228, 4, 256], [[228, 1024]]
    assert [violation.rule for violation in refused(whole).violations] == ["SMEM_CAP"]


PLAIN = synthesize_tensormap(problem([256, 128], [128, 1], [64, 64], [[[64, 64]], [[64, 1]]], swizzle="128B"))
TWICE = (*PLAIN.issues, *PLAIN.issues)
LONGER = dataclasses.replace(PLAIN.tensor_map, dims=(64, 2, 256), strides_bytes=(128, 256), box=(64, 1, 64),
                             element_strides=(1, 1, 1))  # fmt: skip


@pytest.mark.parametrize(("better", "worse"), [
    ({"issues": TWICE, "oob": "weak"}, {"oob": "lost"}),
    ({"oob": "weak"}, {"issues": TWICE}),
    ({"undocumented": ("STRIDE_NEST",)}, {"oob": "weak"}),
    ({"tensor_map": LONGER, "origin_map": ((), (), ()), "issues": (Issue((0, 0, 0), 0),)},
     {"undocumented": ("STRIDE_NEST",)}),
    ({}, {"tensor_map": LONGER, "origin_map": ((), (), ()), "issues": (Issue((0, 0, 0), 0),)}),
    ({}, {"undocumented": ("STRIDE_NEST",)}),
    ({"undocumented": ("STRIDE_NEST",)}, {"undocumented": ("BOX_SMEM", "STRIDE_NEST")}),
])  # fmt: skip
def test_the_better_of_two_plans(better, worse):
    """In this order: class not lost, copies, class exact, documented rules kept, dimensions."""
    one, two = PLAIN.with_changes(**better), PLAIN.with_changes(**worse)
    assert planner._better(one, two) is one
    assert planner._better(two, one) is one


@pytest.mark.parametrize("dtype", ["u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16"])
def test_every_plain_type(dtype):
    row = 128 // hardware.element_bytes(dtype)
    plan = planned(problem([100, 4 * row], [4 * row, 1], [16, row], [[[16, row]], [[row, 1]]], dtype, "128B"))
    assert plan.tensor_map.dtype == dtype
    assert plan.smem_align_bytes == 1024


def test_box_past_256_is_split():
    plan = planned(problem([4096, 64], [64, 1], [512, 64], [[[512, 64]], [[64, 1]]], swizzle="128B"))
    assert plan.expect_tx_bytes == 512 * 64 * 2
    assert max(plan.tensor_map.box) <= 256


def test_a_prime_extent_past_256_overlaps_its_last_box():
    plan = planned(problem([1000, 64], [64, 1], [257, 64], [[[257, 64]], [[64, 1]]], swizzle="128B"))
    assert len(plan.issues) == 2
    assert plan.expect_tx_bytes > 257 * 128


def test_a_long_row_without_good_divisors_overlaps_too():
    plan = planned(problem([3000], [1], [300], [[[300, 1]]], dtype="u64", origin_multiple=[2]))
    assert len(plan.issues) == 2
    assert plan.tensor_map.box[0] < 300


def test_row_wider_than_the_span_in_one_issue_by_a_rank_3_view():
    modes = [[[64, 64]], [[64, 1], [4, 4096]]]
    plan = planned(problem([1024, 512], [512, 1], [64, 256], modes, swizzle="128B"))
    assert len(plan.issues) == 1
    assert len(plan.tensor_map.dims) == 3
    assert plan.oob == "exact"


def test_row_wider_than_the_span_in_several_issues_where_the_view_would_lose_the_fill():
    modes = [[[64, 64]], [[64, 1], [4, 4096]]]
    plan = planned(problem([1024, 1000], [1000, 1], [64, 256], modes, swizzle="128B"))
    assert len(plan.issues) == 4
    assert plan.oob == "exact"


def test_contiguous_modes_fold_beyond_rank_5():
    shape = [6, 4, 3, 2, 8, 64]
    stride = [12288, 3072, 1024, 512, 64, 1]
    tile = [1, 1, 1, 1, 8, 64]
    modes = [[[1, 1]], [[1, 1]], [[1, 1]], [[1, 1]], [[8, 64]], [[64, 1]]]
    plan = planned(problem(shape, stride, tile, modes, swizzle="128B"))
    assert len(plan.tensor_map.dims) <= 5
    assert plan.oob == "exact"  # the folded dimensions are covered whole, so only the origin 0 exists along them


def test_a_padded_rank_6_tensor_shares_the_inner_coordinate():
    shape = [6, 4, 3, 2, 8, 64]
    stride = [20000, 4800, 1600, 560, 64, 1]
    tile = [1, 1, 1, 1, 8, 64]
    modes = [[[1, 1]], [[1, 1]], [[1, 1]], [[1, 1]], [[8, 64]], [[64, 1]]]
    plan = planned(problem(shape, stride, tile, modes, swizzle="128B"), origins=40)
    assert (plan.oob, len(plan.issues)) == ("exact", 1)  # rows of 64 and steps of 20000 cannot be taken for each other


@pytest.mark.parametrize("direction", ["load", "store"])
def test_a_padded_rank_6_tensor_that_overhangs_keeps_its_class(direction):
    shape = [5, 5, 3, 3, 7, 64]
    stride = [55296, 9216, 2304, 576, 72, 1]
    tile = [2, 2, 2, 2, 2, 64]
    modes = [[[2, 1024]], [[2, 512]], [[2, 256]], [[2, 128]], [[2, 64]], [[64, 1]]]
    plan = planned(problem(shape, stride, tile, modes, swizzle="128B", direction=direction), origins=40)
    assert (plan.oob, len(plan.issues)) == ("exact", 2)


def test_more_overhanging_dimensions_than_a_map_has_are_lost_and_say_so():
    shape = [3, 3, 3, 3, 3, 3, 64]
    stride = [18464, 6152, 2048, 680, 224, 72, 1]
    tile = [2, 2, 2, 2, 2, 2, 64]
    modes = [*([[2, 64 << k]] for k in reversed(range(6))), [[64, 1]]]
    plan = planned(problem(shape, stride, tile, modes, swizzle="128B"))
    assert plan.oob == "lost"
    error = refused(problem(shape, stride, tile, modes, swizzle="128B", oob_required="weak"))
    assert error.violations[0].rule == "OOB_CLASS"
    assert [repair.name for repair in error.repairs] == ["fold"]
    store = refused(problem(shape, stride, tile, modes, swizzle="128B", direction="store"))
    assert store.violations


def test_extent_1_modes_are_dropped():
    plan = planned(
        problem(
            [1, 1024, 1, 512],
            [524288, 512, 512, 1],
            [1, 64, 1, 64],
            [[[1, 1]], [[64, 64]], [[1, 1]], [[64, 1]]],
            swizzle="128B",
        )
    )
    assert len(plan.tensor_map.dims) == 2
    assert plan.oob == "exact"


def test_broadcast_modes_have_stride_0():
    plan = planned(problem([32, 512], [0, 1], [16, 64], [[[16, 64]], [[64, 1]]], swizzle="128B"))
    assert plan.tensor_map.strides_bytes == (0,)
    assert (
        refused(problem([32, 512], [0, 1], [16, 64], [[[16, 64]], [[64, 1]]], direction="store")).violations[0].rule
        == "STORE_OVERLAP"
    )


def test_overlapping_windows():
    plan = planned(problem([100, 64], [16, 1], [8, 64], [[[8, 64]], [[64, 1]]], swizzle="128B"))
    assert plan.tensor_map.strides_bytes == (32,)


@pytest.mark.parametrize("step", [2, 3, 8])
def test_element_strides(step):
    plan = planned(
        problem([100, 64], [64, 1], [8, 64], [[[8, 64]], [[64, 1]]], element_strides=[step, 1], origin_multiple=[1, 64])
    )
    assert plan.tensor_map.element_strides == (1, step)


def test_an_element_stride_past_8_becomes_a_view_where_origins_allow_it():
    plan = planned(problem([100, 64], [64, 1], [4, 64], [[[4, 64]], [[64, 1]]], element_strides=[16, 1]))
    assert plan.tensor_map.element_strides == (1, 1)
    assert plan.tensor_map.strides_bytes == (64 * 16 * 2,)
    anywhere = {"element_strides": [16, 1], "origin_multiple": [1, 64]}
    rows = planned(problem([100, 64], [64, 1], [4, 64], [[[4, 64]], [[64, 1]]], **anywhere))
    assert len(rows.issues) == 4


def test_wide_rows_of_small_elements_travel_as_wider_ones():
    plan = planned(problem([64, 1024], [1024, 1], [8, 1024], [[[8, 1024]], [[1024, 1]]], dtype="u8"))
    assert len(plan.issues) == 1


def test_a_dimension_past_2_31_is_cut():
    plan = synthesize_tensormap(problem([2**34], [1], [256], [[[256, 1]]], dtype="u8"))
    assert max(plan.tensor_map.dims) <= 2**31
    assert isinstance(check(plan), Proved)
    error = refused(problem([2**33, 64], [64, 1], [8, 64], [[[8, 64]], [[64, 1]]], origin_multiple=[1, 64]))
    assert "DIM_RANGE" in {violation.rule for violation in error.violations}


def test_rows_narrower_than_the_span_lie_at_the_span():
    planned(problem([100, 512], [512, 1], [16, 32], [[[16, 64]], [[32, 1]]], swizzle="128B"))
    error = refused(problem([100, 512], [512, 1], [16, 32], [[[16, 32]], [[32, 1]]], swizzle="128B"))
    assert {violation.rule for violation in error.violations} == {"SWIZZLE_PITCH"}


def test_a_swizzle_that_never_acts_may_be_left_out():
    plan = planned(problem([100, 512], [512, 1], [2, 32], [[[2, 32]], [[32, 1]]], swizzle="128B"))
    assert plan.tensor_map.swizzle == "NONE"
    assert plan.smem_align_bytes == 1024


def test_stores_of_every_swizzle():
    for swizzle, row in (("NONE", 64), ("32B", 16), ("64B", 32), ("128B", 64)):
        plan = planned(
            problem([100, 512], [512, 1], [16, row], [[[16, row]], [[row, 1]]], swizzle=swizzle, direction="store")
        )
        assert plan.direction == "store"


def test_bounds_move_the_base():
    plan = planned(
        problem([100, 512], [512, 1], [16, 64], [[[16, 64]], [[64, 1]]], bounds=[[16, 90], [64, 500]], swizzle="128B")
    )
    assert plan.tensor_map.base_address == (16 * 512 + 64) * 2
    assert plan.tensor_map.dims == (436, 74)


def test_nan_fill():
    plan = planned(
        problem([100, 500], [504, 1], [16, 64], [[[16, 64]], [[64, 1]]], dtype="f16", oob_fill="NAN", swizzle="128B")
    )
    assert plan.tensor_map.oob_fill == "NAN"


REFUSALS = {
    "pad the pitch": (problem([100, 22], [22, 1], [16, 16], [[[16, 16]], [[16, 1]]]), "STRIDE_ALIGN"),
    "transpose while reading": (
        problem([512, 100 * 8], [1, 512], [64, 64], [[[64, 64]], [[64, 1]]], swizzle="128B"),
        "INNER_CONTIGUOUS",
    ),
    "align the base": (
        problem([100, 512], [512, 1], [16, 64], [[[16, 64]], [[64, 1]]], base_elem_offset=4),
        "BASE_ALIGN",
    ),
    "fold": (
        problem(
            [2, 3, 5, 7, 4, 64],
            [60000, 17000, 3100, 417, 68, 1],
            [2, 3, 5, 7, 4, 64],
            [[[2, 26880]], [[3, 8960]], [[5, 1792]], [[7, 256]], [[4, 64]], [[64, 1]]],
        ),
        "RANK",
    ),
    "store the tile densely": (problem([128, 512], [512, 1], [64, 64], [[[64, 72]], [[64, 1]]]), "SMEM_DENSE"),
    "use a swizzle in place of padding": (
        problem([128, 512], [512, 1], [64, 64], [[[64, 72]], [[64, 1]]]),
        "SMEM_DENSE",
    ),
    "use the 64B swizzle": (
        problem([512, 512], [512, 1], [128, 32], [[[128, 32]], [[32, 1]]], swizzle="128B"),
        "SWIZZLE_PITCH",
    ),
    "fill with zeros": (
        problem([100, 512], [512, 1], [16, 64], [[[16, 64]], [[64, 1]]], dtype="s32", oob_fill="NAN"),
        "OOB_NAN",
    ),
    "use the plain 128B swizzle": (
        problem([100, 512], [512, 1], [16, 64], [[[16, 64]], [[64, 1]]], swizzle="128B_ATOM_32B"),
        "ARCH_ATOM",
    ),
    "pad the rows": (
        problem([100, 510], [512, 1], [16, 64], [[[16, 64]], [[64, 1]]], direction="store"),
        "STORE_CHUNK",
    ),
    "start tiles on their grid": (
        problem([100, 512], [512, 1], [16, 64], [[[16, 64]], [[64, 1]]], origin_multiple=[1, 4]),
        "INNER_START",
    ),
}


@pytest.mark.parametrize("name", sorted(REFUSALS))
def test_refusals_name_the_rule_and_offer_the_repair(name):
    document, rule = REFUSALS[name]
    error = refused(document)
    assert rule in {violation.rule for violation in error.violations}
    assert name in {repair.name for repair in error.repairs}
    assert rule in str(error)
    assert name in str(error)


@pytest.mark.parametrize(
    ("name", "kept"), [("use the 64B swizzle", "smem_modes"), ("use a swizzle in place of padding", "tile")]
)
def test_the_first_repair_is_the_one_that_keeps_most(name, kept):
    document, _ = REFUSALS[name]
    error = refused(document)
    assert error.repairs[0].name == name
    repaired = TensorMapProblem.from_json(error.repairs[0].document)
    assert getattr(repaired, kept) == getattr(TensorMapProblem.from_json(document), kept)
    assert planned(error.repairs[0].document).tensor_map.swizzle == repaired.swizzle != "NONE"


def test_a_transposed_tile_is_told_how_to_transpose():
    document = problem([512, 512], [512, 1], [64, 64], [[[64, 1]], [[64, 64]]])
    (repair,) = refused(document).repairs
    assert "ldmatrix.trans" in repair.detail
    assert planned(repair.document).tensor_map.swizzle == "128B"


def test_several_faults_are_all_named_and_repaired_together():
    document = problem([100, 22], [22, 1], [16, 16], [[[16, 16]], [[16, 1]]], align=8)
    error = refused(document)
    assert {violation.rule for violation in error.violations} == {"BASE_ALIGN", "STRIDE_ALIGN"}
    assert [repair.name for repair in error.repairs] == ["align the base, then pad the pitch"]


def test_negative_strides_are_refused():
    assert "STRIDE_RANGE" in {
        v.rule for v in refused(problem([100, 64], [-64, 1], [16, 64], [[[16, 64]], [[64, 1]]])).violations
    }


def test_shared_memory_that_holds_two_elements_in_one_place_is_refused():
    assert (
        refused(problem([100, 64], [64, 1], [16, 64], [[[16, 32]], [[64, 1]]])).violations[0].rule == "SMEM_INJECTIVE"
    )


def test_a_budget_that_is_too_small_says_so():
    with pytest.raises(BudgetError, match="gave up looking for a plan"):
        synthesize_tensormap(problem([100, 512], [512, 1], [16, 64], [[[16, 64]], [[64, 1]]]), seconds=0.0)


def test_documented_targets_answer_probe_where_only_folklore_carries_the_plan():
    document = problem([32, 512], [0, 1], [16, 64], [[[16, 64]], [[64, 1]]], swizzle="128B")
    assert synthesize_tensormap(document).undocumented


def test_plan_round_trips_and_pickles():
    import copy
    import json
    import pickle

    plan = synthesize_tensormap(problem([100, 512], [512, 1], [16, 64], [[[16, 64]], [[64, 1]]], swizzle="128B"))
    assert TensorMapPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert copy.deepcopy(plan) == plan
    assert hash(plan.problem) == hash(TensorMapProblem.from_json(plan.problem.to_json()))
    error = refused(problem([100, 22], [22, 1], [16, 16], [[[16, 16]], [[16, 1]]]))
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_an_origin_that_no_coordinate_expresses_is_refused():
    modes = [[[64, 64]], [[64, 1], [4, 4096]]]
    view = synthesize_tensormap(problem([1024, 512], [512, 1], [64, 256], modes, swizzle="128B"))
    assert view.coordinates((64, 256))[0] == view.coordinates([64, 256])[0]
    with pytest.raises(MalformedError, match="of dimension 1 must be a multiple of 256 in this plan, got 32"):
        view.coordinates((0, 32))
    with pytest.raises(MalformedError, match="the tile has rank 2, but the origin has 1 entries"):
        view.coordinates((64,))
    whole = synthesize_tensormap(problem([64, 64], [64, 1], [64, 64], [[[64, 64]], [[64, 1]]], swizzle="128B"))
    with pytest.raises(MalformedError, match="the origin of dimension 0 must be 0 in this plan, got 64"):
        whole.coordinates((64, 0))


@pytest.mark.parametrize("shape", [(1024, 64), (1024, 16), (1024, 8), (1000, 24), (192, 64)])
def test_tiles_of_whole_rows_have_maps_of_the_tensors_own_dimensions(shape):
    rows, columns = shape
    plan = planned(problem([rows, columns], [columns, 1], [64, columns], [[[64, columns]], [[columns, 1]]]))
    assert plan.tensor_map.dims == (columns, rows)
    assert plan.tensor_map.box == (columns, 64)


@pytest.mark.parametrize(
    ("shape", "stride", "tile", "modes", "dtype", "swizzle", "box"),
    [
        ([512, 48], [48, 1], [64, 48], [[[64, 48]], [[48, 1]]], "bf16", "128B", (64, 48)),
        ([96, 512], [1, 96], [96, 64], [[[96, 1]], [[64, 96]]], "u8", "128B", (128, 48)),
        ([512, 24], [24, 1], [64, 24], [[[64, 24]], [[24, 1]]], "bf16", "64B", (32, 48)),
    ],
)
def test_rows_of_a_swizzle_may_end_inside_the_rows_of_a_dense_tile(shape, stride, tile, modes, dtype, swizzle, box):
    plan = planned(problem(shape, stride, tile, modes, dtype=dtype, swizzle=swizzle))
    assert plan.tensor_map.box == box
    assert len(plan.issues) == 1
    assert plan.oob == "exact"


def test_a_base_that_is_not_aligned_is_the_only_rule_broken_where_a_folded_tile_has_a_map():
    error = refused(problem([512, 48], [48, 1], [64, 48], [[[64, 48]], [[48, 1]]], swizzle="128B", align=8))
    assert [violation.rule for violation in error.violations] == ["BASE_ALIGN"]


def test_a_map_ends_at_the_last_row_that_is_walked_where_the_tensors_own_extent_would_leave_it():
    modes = [[[16, 1], [2, 32]], [[2, 16]]]
    plan = planned(problem([88, 4], [1, 1024], [32, 2], modes, dtype="u16", swizzle="32B", element_strides=[1, 2]))
    assert len(plan.issues) == 1
    assert plan.oob == "lost"


def test_plans_say_by_which_road_they_were_found():
    own = planned(problem([1024, 512], [512, 1], [64, 64], [[[64, 64]], [[64, 1]]], swizzle="128B"))
    steps = {"element_strides": [1, 16], "swizzle": "128B", "dtype": "u8"}
    other = planned(problem([128, 100], [1, 144], [16, 8], [[[16, 1]], [[8, 128]]], **steps))
    sliced = TensorMapProblem.of(((16, 56, 50, 8), None, "f16"), (1, 4, 16, 8))
    rows = [64 * place + column for place in (3, 0, 2, 1) for column in range(64)]
    listed = ListedProblem.listed(Tensor((64, 64)), (4, 64), rows)
    assert own.road == planner.OWN
    assert all(len(terms) < 2 for terms in own.origin_map)
    assert other.road == planner.OTHER
    assert synthesize_tensormap(sliced, interleave="16B").road == planner.SLICES
    assert synthesize_tensormap(listed).road == planner.LISTED
    again = TensorMapPlan.from_json(own.to_json())
    assert again == own
    assert again.road == ""
    assert explain(own.problem)["road"] == planner.OWN
