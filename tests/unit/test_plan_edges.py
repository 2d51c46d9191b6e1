"""Plans at the edges of what the checker of TensorMap plans proves: right ones, and ones that are wrong somewhere."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

import layoutalg as la
from layoutalg.ground.errors import RepresentabilityError
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.tensormap import Issue, TensorMapPlan, TensorMapProblem, check, meaning
from layoutalg.synth import synthesize_tensormap
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import TensorMap

SIZE, PITCH = 8, 128  # rows of 16 u64


def problem(rows: int = 8, tile: int = 2, **changes: Any) -> TensorMapProblem:
    """Rows of 128 bytes, read by tiles of some rows that stand at any of them."""
    return TensorMapProblem.from_json(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
            "global": {"shape": [rows, 16], "stride": [16, 1], "dtype": "u64", "base_align_bytes": 256},
            "tile": [tile, 16], "smem": {"modes": [[[tile, 16]], [[16, 1]]], "swizzle": "NONE"},
            "origin_multiple": [1, 0],
        }
    ).with_changes(**changes)  # fmt: skip


def plan(
    stated: TensorMapProblem,
    tm: TensorMap,
    issues: list[tuple[tuple[int, ...], int]],
    move: int = 1,
    oob: str = "exact",
) -> TensorMapPlan:
    """The plan with the numbers that its fields imply."""
    box = tm.box[0] * (tm.box[1] + tm.element_strides[1] - 1) // tm.element_strides[1] * SIZE
    documented = tensormap.violations(tm, evidence="documented")
    return TensorMapPlan(
        stated, tm, tensormap.encode(tm), tuple(Issue(*issue) for issue in issues), ((), ((0, move, 1),)),
        box * len(issues), 128, max(at for _, at in issues) + box, oob,
        tuple(sorted({violation.rule for violation in documented})),
    )  # fmt: skip


def rows(count: int = 8, box: int = 2, **changes: Any) -> TensorMap:
    return dataclasses.replace(TensorMap("u64", (16, count), (PITCH,), (16, box)), **changes)


def rising(**changes: Any) -> TensorMapPlan:
    return plan(problem(**changes), rows(), [((0, 0), 0)])


FALLING = {"global_strides": (-16, 1), "base_elem_offset": 7 * 16}


def falling(base: int = 0, count: int = 8, **changes: Any) -> TensorMapPlan:
    """Rows that fall in memory, one issue each; the map begins at a row of memory and has some."""
    tm = rows(count, 1, base_address=base * PITCH)
    return plan(problem(**FALLING, **changes), tm, [((0, 7 - base), 0), ((0, 6 - base), PITCH)], -1)


def refuted(wrong: TensorMapPlan) -> dict[str, Any]:
    verdict = check(wrong)
    assert isinstance(verdict, Refuted), verdict
    return dict(verdict.witness)


def test_right_plans_are_proved():
    for right in (rising(), falling(), falling(tile=2)):
        verdict = check(right)
        assert isinstance(verdict, Proved), verdict
        assert verdict.certificate["oob"] == "exact"


@pytest.mark.parametrize(("base", "count", "tile", "origin"), [(1, 7, [0, 0], [7, 0]), (0, 7, [0, 0], [0, 0])])
def test_rows_that_fall_are_covered_from_the_first_to_the_last(base: int, count: int, tile: Any, origin: Any):
    """A map without the lowest row of memory leaves out the last origin's, one without the highest the first's."""
    witness = refuted(falling(base, count))
    assert witness["what"] == "an element in bounds is out of bounds for the map"
    assert (witness["tile"], witness["origin"]) == (tile, origin)


@pytest.mark.parametrize(("base", "count"), [(1, 7), (0, 7)])
def test_rows_that_rise_are_covered_from_the_first_to_the_last(base: int, count: int):
    tm = rows(count, base_address=base * PITCH)
    witness = refuted(plan(problem(), tm, [((0, -base), 0)]))
    assert witness["what"] == "an element in bounds is out of bounds for the map"


def test_a_coordinate_moves_as_the_origin_does():
    for move in (0, 2, -1):
        witness = refuted(plan(problem(), rows(), [((0, 0), 0)], move))
        assert witness["what"] in ("wrong global element", "an element in bounds is out of bounds for the map"), move
    stuck = rising().with_changes(origin_map=((), ()), oob="weak")
    assert refuted(stuck)["what"] == "wrong global element"
    alone = plan(problem(tile=1), rows(box=1), [((0, 0), 0)]).with_changes(origin_map=((), ()), oob="weak")
    assert refuted(alone)["what"] == "wrong global element"  # right at the origin 0, and nowhere else
    twice = rising().with_changes(origin_map=((), ((0, 1, 1), (0, 1, 1))))
    assert isinstance(check(twice), Refuted)
    halves = rising().with_changes(origin_map=((), ((0, 1, 2), (0, 1, 2))))
    assert refuted(halves)["what"] == "an origin term does not divide"
    even = problem(origin_multiple=(2, 0))
    summed = plan(even, rows(), [((0, 0), 0)]).with_changes(origin_map=((), ((0, 1, 2), (0, 1, 2))))
    assert isinstance(check(summed), Proved)


@pytest.mark.parametrize("direction", ["load", "store"])
def test_bounds_between_the_first_and_the_last_origin_count(direction: str):
    """Of rows 3 to 6 in bounds, by origins of every second row."""
    inner = {"bounds": ((3, 7), (0, 16)), "origin_multiple": (2, 0), "direction": direction}
    tm = rows(4, base_address=3 * PITCH)
    assert isinstance(check(plan(problem(**inner), tm, [((0, -3), 0)])), Proved)
    for count, base in ((3, 3), (5, 3), (4, 2), (3, 4)):
        other = rows(count, base_address=base * PITCH)
        assert isinstance(check(plan(problem(**inner), other, [((0, -base), 0)])), Refuted), (count, base)


def test_a_fixed_dimension_is_in_bounds_up_to_its_end():
    """The bounds of the columns, which no origin moves, against the extent of the map."""
    half = problem(bounds=((0, 8), (0, 8)))
    assert isinstance(check(plan(half, rows(dims=(8, 8)), [((0, 0), 0)])), Proved)
    assert isinstance(check(plan(half, rows(dims=(16, 8)), [((0, 0), 0)])), Refuted)
    assert isinstance(check(plan(half, rows(dims=(9, 8)), [((0, 0), 0)])), Refuted)
    assert refuted(plan(half, rows(dims=(7, 8)), [((0, 0), 0)]))["what"].startswith("an element in bounds")


@pytest.mark.parametrize("direction", ["load", "store"])
def test_stores_begin_at_0_and_above(direction: str):
    """Every origin is in bounds; the map begins a row later than the tile, which its first row never is in."""
    later = problem(direction=direction, bounds=((1, 8), (0, 16)), origin_multiple=(1, 0))
    tm = rows(7, base_address=PITCH)
    assert isinstance(check(plan(later, tm, [((0, -1), 0)])), Proved)
    fixed = problem(direction=direction, bounds=((1, 8), (0, 16)), origin_multiple=(0, 0))
    still = plan(fixed, tm, [((0, -1), 0)]).with_changes(origin_map=((), ()))
    if direction == "load":
        assert isinstance(check(still), Proved)
    else:
        assert refuted(still)["what"] == "a store faults on a negative start coordinate"


def test_start_coordinates_have_32_bits():
    for start in (2**31, 2**31 + 1, -(2**31)):
        witness = refuted(rising().with_changes(issues=(Issue((0, start), 0),)))
        assert witness["what"] == "a start coordinate exceeds 32 bits"
        assert witness["coords"] == [[0, start]]
    assert "coords" not in refuted(rising().with_changes(issues=(Issue((0, 2**31 - 1), 0),)))


def test_the_last_origin_starts_within_32_bits():
    """Overlapping rows of one line of memory: as many origins as a coordinate has numbers, and one tile behind them."""
    for first, told in ((0, None), (1, "a start coordinate exceeds 32 bits")):
        many = problem(2**31, 1, global_strides=(0, 1))
        tm = rows(2**31, 1, strides_bytes=(0,))
        made = plan(many, tm, [((0, first), 0)])
        if told is None:
            assert isinstance(check(made), Proved), check(made)
        else:
            assert refuted(made)["what"] == told


def test_every_issue_of_the_last_origin_starts_within_32_bits():
    """The second of two rows, of an origin whose first one is the last that there is."""
    many = problem(2**31, 2, global_strides=(0, 1))
    made = plan(many, rows(2**31, 1, strides_bytes=(0,)), [((0, 0), 0), ((0, 1), PITCH)])
    witness = refuted(made)
    assert (witness["what"], witness["coordinate"]) == ("a start coordinate exceeds 32 bits", 2**31)


def test_an_extent_is_no_longer_than_the_engine_takes():
    longer = plan(problem(2**31 + 1, 1, global_strides=(0, 1), bounds=((0, 2**31), (0, 16))),
                  rows(2**31 + 1, 1, strides_bytes=(0,)), [((0, 0), 0)], oob="lost")  # fmt: skip
    assert refuted(longer)["what"] == "the engine faults on extents this large"


def test_addresses_far_from_the_first_are_compared_exactly():
    """One row in bounds, 2^29 of 2^35 bytes away, and a coordinate that moves twice as fast: off by 2^64 bytes."""
    step = 2**35
    far = problem(2**30 + 1, 1, global_strides=(step // SIZE, 1), bounds=((2**29, 2**29 + 1), (0, 16)))
    tm = rows(2**30 + 1, 1, strides_bytes=(step,))
    assert refuted(plan(far, tm, [((0, 0), 0)], 2, "lost"))["what"] == "wrong global element"


def test_bytes_and_fields_are_compared_one_by_one():
    right = rising()
    for name, value in (("l2_promotion", "256B"), ("oob_fill", "NAN"), ("swizzle", "32B")):
        other = right.with_changes(tensor_map=dataclasses.replace(right.tensor_map, **{name: value}))
        witness = refuted(other)
        assert (witness["what"], witness["field"]) == ("bytes and fields differ", name)


def test_a_tile_is_met_once_by_what_is_asked_for():
    four = problem(tile=4)
    assert refuted(plan(four, rows(), [((0, 0), 0)]))["what"] == "no issue reaches this tile element"
    assert refuted(plan(four, rows(), [((0, 0), 0)]))["tile"] == [2, 0]
    gaps = problem().with_changes(smem_modes=(((2, 32),), ((16, 1),)))
    assert refuted(plan(gaps, rows(), [((0, 0), 0)]))["what"] == "an issue touches shared memory outside the tile"
    same = problem().with_changes(smem_modes=(((2, 0),), ((16, 1),)))
    witness = refuted(plan(same, rows(box=1), [((0, 0), 0)]))
    assert (witness["what"], witness["tile"]) == ("two tile elements share one shared-memory address", [0, 0])


def test_a_tensor_may_begin_between_two_rows_and_a_map_not_before_it():
    """Two elements, of which an inner coordinate counts whole pairs."""
    shifted = problem(base_elem_offset=2)
    early = plan(shifted, rows(dims=(18, 8)), [((2, 0), 0)])
    assert refuted(early)["what"] == "the map reaches before the tensor"
    odd = plan(problem(base_elem_offset=1), rows(dims=(17, 8)), [((1, 0), 0)])
    assert refuted(odd)["what"] == "inner start coordinate off 16 bytes"


@pytest.mark.parametrize("offset", [64, 16, -128])
def test_issues_start_at_multiples_of_128_bytes(offset: int):
    assert refuted(rising().with_changes(issues=(Issue((0, 0), offset),)))["what"] == (
        "a shared-memory address is not aligned"
    )


@pytest.mark.parametrize(("columns", "told"), [(2, None), (1, "inner start"), (3, "inner start")])
def test_inner_coordinates_start_at_multiples_of_16_bytes(columns: int, told: str | None):
    """Of elements of 8 bytes, two; both of an issue and along an origin's step."""
    steps = problem(origin_multiple=(1, columns))
    moved = rising().with_changes(problem=steps, origin_map=(((1, 1, 1),), ((0, 1, 1),)))
    verdict = check(moved)
    assert isinstance(verdict, Refuted if told else Proved), verdict
    if told:
        assert told in str(verdict.witness["what"])
        assert (
            told
            in refuted(rising(bounds=((0, 8), (columns, 16))).with_changes(issues=(Issue((-columns, 0), 0),)))["what"]
            or columns % 2
        )


def test_a_load_has_the_fill_that_is_asked_for():
    floats = problem(dtype="f64")
    right = plan(floats, rows(dtype="f64"), [((0, 0), 0)])
    assert isinstance(check(right), Proved)
    other = plan(floats, rows(dtype="f64", oob_fill="NAN"), [((0, 0), 0)])
    assert refuted(other)["what"] == "wrong fill"


def test_a_map_of_other_elements_carries_the_same_bits():
    """Elements of 4 bytes as half as many of 8, where nothing but zeros fills."""
    small = {"dtype": "u32", "global_shape": (8, 32), "global_strides": (32, 1), "tile": (2, 32),
             "smem_modes": (((2, 32),), ((32, 1),)), "bounds": ((0, 8), (0, 32))}  # fmt: skip
    stated = TensorMapProblem.from_json(
        {
            "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
            "global": {"shape": [8, 32], "stride": [32, 1], "dtype": "u32", "base_align_bytes": 256}, "tile": [2, 32],
            "smem": {"modes": [[[2, 32]], [[32, 1]]], "swizzle": "NONE"}, "origin_multiple": [1, 0],
        }
    )  # fmt: skip
    assert {name: getattr(stated, name) for name in small} == small
    wide = plan(stated, rows(), [((0, 0), 0)])
    assert isinstance(check(wide), Proved)
    floats = stated.with_changes(dtype="f32", oob_fill="NAN")
    doubles = plan(floats, rows(dtype="f64", oob_fill="NAN"), [((0, 0), 0)])
    assert "does not carry" in refuted(doubles)["what"]
    zeros = plan(floats.with_changes(oob_fill="ZERO"), rows(dtype="f64"), [((0, 0), 0)])
    assert isinstance(check(zeros), Proved)
    narrow = plan(problem(), TensorMap("u32", (32, 8), (PITCH,), (32, 2)), [((0, 0), 0)])
    assert "does not carry" in refuted(narrow)["what"]


def test_the_map_covers_the_tensor_and_nothing_else():
    before = plan(problem(base_elem_offset=16), rows(9), [((0, 1), 0)])
    assert refuted(before)["what"] == "the map reaches before the tensor"
    within = plan(problem(base_elem_offset=16), rows(8, base_address=PITCH), [((0, 0), 0)])
    assert isinstance(check(within), Proved)
    past = plan(problem(bounds=((0, 8), (0, 16))), rows(9), [((0, 0), 0)], oob="lost")
    assert refuted(past)["what"] == "the map reaches past the tensor"


def test_stores_write_whole_chunks_and_each_address_once():
    store = {"direction": "store"}
    assert isinstance(check(rising(**store)), Proved)
    odd = plan(problem(**store, bounds=((0, 8), (0, 15))), rows(dims=(15, 8)), [((0, 0), 0)])
    assert refuted(odd)["what"].startswith("a store writes whole chunks")
    same = problem(**store, global_strides=(0, 1), origin_multiple=(0, 0))
    once = plan(same, rows(strides_bytes=(0,)), [((0, 0), 0)]).with_changes(origin_map=((), ()))
    assert refuted(once)["what"] == "two tile elements are stored to one global address"
    half = same.with_changes(bounds=((0, 1), (0, 16)))
    assert isinstance(check(once.with_changes(problem=half, tensor_map=rows(1, strides_bytes=(0,)),
                                              raw=tensormap.encode(rows(1, strides_bytes=(0,))))), Proved)  # fmt: skip


def test_a_tile_that_hangs_over_is_lost_and_never_stored():
    """Without bounds of its own a tile of the map's last row reads the row behind it."""
    few = problem(bounds=((0, 7), (0, 16)))
    over = plan(few, rows(8), [((0, 0), 0)], oob="lost")
    assert isinstance(check(over), Proved)
    for required in ("weak", "exact"):
        wrong = over.with_changes(problem=few.with_changes(oob_required=required))
        assert refuted(wrong)["what"] == "out-of-bounds class weaker than required"
    stored = few.with_changes(direction="store")
    assert "would write foreign elements" in refuted(over.with_changes(problem=stored))["what"]


@pytest.mark.parametrize(("name", "by"), [("expect_tx_bytes", 128), ("smem_align_bytes", 128), ("smem_bytes", 128)])
def test_numbers_are_the_ones_that_follow(name: str, by: int):
    right = rising()
    for change in (by, -by // 2):
        witness = refuted(right.with_changes(**{name: getattr(right, name) + change}))
        assert (witness["what"], witness["field"]) == ("wrong claim", name)


def test_the_whole_of_shared_memory_may_be_walked():
    """A tile of 227 KiB, whose last byte is the last that a block has."""
    columns = 232448 // 16 // SIZE
    big = problem(rows=columns, tile=columns)
    issues = [((0, at), at * PITCH) for at in range(0, columns, 227)]
    whole = plan(big, rows(columns, 227), issues)
    assert whole.smem_bytes == 232448
    assert isinstance(check(whole), Proved)
    more = plan(problem(rows=columns + 227, tile=columns + 227), rows(columns + 227, 227), [
        *issues, ((0, columns), columns * PITCH)])  # fmt: skip
    assert refuted(more)["what"] == "the issues exceed shared memory"


def test_element_strides_step_along_all_dimensions_but_the_first():
    """The engine ignores that of the first; of a box of 3 with steps of 2 it takes 2."""
    every = problem(element_strides=(2, 1), bounds=((0, 8), (0, 16)))
    for first in (1, 2):
        tm = rows(box=3, element_strides=(first, 2))
        assert isinstance(check(plan(every, tm, [((0, 0), 0)])), Proved), first
    assert isinstance(check(plan(every, rows(box=2, element_strides=(1, 2)), [((0, 0), 0)])), Refuted)


def test_one_slice_is_walked_along_the_last_dimension_but_one():
    """Of slices of 16 bytes, whatever the box says there, and as many as it says along the last."""
    stated = TensorMapProblem.of(
        ((4, 4, 16), (64, 16, 1), "bf16"), (4, 2, 8), la.CuteLayout((4, 2, 8), (16, 8, 1)), swizzle="NONE"
    )
    right = synthesize_tensormap(stated, repair=False, interleave="16B")
    box = right.tensor_map.box
    assert (box[-1] > 1, box[-2]) == (True, 1)
    for slices in (1, 2):
        tm = dataclasses.replace(right.tensor_map, box=(*box[:-2], slices, box[-1]))
        other = right.with_changes(tensor_map=tm, raw=tensormap.encode(tm), certificate=None)
        assert isinstance(check(other), Proved), slices
    tm = dataclasses.replace(right.tensor_map, box=(*box[:-1], box[-1] - 1))
    fewer = right.with_changes(tensor_map=tm, raw=tensormap.encode(tm), certificate=None)
    assert refuted(fewer)["what"] == "no issue reaches this tile element"


def test_a_barrier_counts_the_bytes_of_one_phase():
    plan = la.tensormap(((1024, 64), None, "bf16"), (8, 64))
    again = plan.with_changes(issues=plan.issues * 1024, expect_tx_bytes=plan.expect_tx_bytes * 1024, certificate=None)
    assert "more bytes than a barrier counts" in str(check(again))
    fewer = plan.with_changes(issues=plan.issues * 1023, expect_tx_bytes=plan.expect_tx_bytes * 1023, certificate=None)
    assert isinstance(check(fewer), Proved)


def test_addresses_that_wrap_at_64_bits_denote_nothing():
    plan = la.tensormap(((16, 64), (2**38, 1), "bf16"), (8, 64), None)
    astray = plan.with_changes(issues=(Issue((0, 2**25), 0),), certificate=None)
    with pytest.raises(RepresentabilityError, match="62 bits"):
        meaning.layout(astray)
    assert isinstance(check(astray), Refuted)
