"""Statements and claims of TensorMap plans: what is refused, what a plan speaks of, what is compared."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground import clock
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError, TargetRuleError
from layoutalg.ground.verdict import Proved, Refuted, Unknown
from layoutalg.proofs import wgmma
from layoutalg.proofs.handoff import OperandView, operand_view, prove_handoff
from layoutalg.proofs.tensormap import Issue, TensorMapPlan, TensorMapProblem, check
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import canonical_operand, synthesize_wgmma
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.wgmma import MatrixDescriptor, require_wgmma

EXAMPLE = json.loads((Path(__file__).parents[1] / "data" / "examples" / "problem.json").read_text(encoding="utf-8"))


def document(shape, stride, tile, modes, dtype="bf16", swizzle="NONE", direction="load", **more):
    return {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": direction,
        "global": {"shape": shape, "stride": stride, "dtype": dtype, "base_align_bytes": 256},
        "tile": tile, "smem": {"modes": modes, "swizzle": swizzle}, **more,
    }  # fmt: skip


def square(direction="load", **more):
    return document([1024, 512], [512, 1], [64, 64], [[[64, 64]], [[64, 1]]], "bf16", "128B", direction, **more)


# --- statements validate themselves ---------------------------------------------------------------------------------


def test_a_tile_that_no_longer_matches_its_shared_memory_is_refused():
    problem = TensorMapProblem.from_json(EXAMPLE)
    with pytest.raises(MalformedError, match="the extents must multiply to the tile extent 128"):
        problem.with_changes(tile=(128, 64))
    wide = problem.with_changes(tile=(128, 64), smem_modes=[[[128, 64]], [[64, 1]]])
    assert isinstance(check(synthesize_tensormap(wide)), Proved)


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"direction": "stor"}, "must be one of load, store"),
        ({"dtype": "bf17"}, "must be one of"),
        ({"arch": "sm_80"}, "must be one of"),
        ({"swizzle": "127B"}, "must be one of"),
        ({"oob_fill": "ONES"}, "must be one of ZERO, NAN"),
        ({"oob_required": "any"}, "must be one of exact, weak, lost"),
        ({"global_shape": (1024,)}, "must be a list of 1 entries"),
        ({"global_strides": (512, 1, 1)}, "must be a list of 2 entries"),
        ({"global_shape": (1024, 0)}, "must be at least 1"),
        ({"bounds": ((0, 1025), (0, 512))}, "bounds must satisfy"),
        ({"bounds": ((5, 5), (0, 512))}, "bounds must satisfy"),
        ({"global_shape": (512, 512)}, "bounds must satisfy"),
        ({"element_strides": (0, 1)}, "must be at least 1"),
        ({"origin_multiple": (-64, 64)}, "must be at least 0"),
        ({"base_align_bytes": 48}, "must be a power of two"),
        ({"base_elem_offset": -1}, "must be at least 0"),
        ({"base_elem_offset": True}, "must be an integer"),
        ({"tile": (64.0, 64)}, "must be an integer"),
        ({"smem_modes": (((64, -64),), ((64, 1),))}, "a shared-memory stride must be at least 0"),
        ({"smem_modes": (((64, 2**62),), ((64, 1),))}, "shared-memory offsets must be below"),
        ({"smem_modes": (((2**62, 0),) * 65, ((64, 1),))}, "at most 64 entries"),
        ({"smem": 1}, "has the fields"),
    ],
)  # fmt: skip
def test_fields_that_make_no_problem_are_refused(changes, rule):
    problem = TensorMapProblem.from_json(EXAMPLE)
    with pytest.raises(MalformedError, match=f"(?s)LA372.*{rule}"):
        problem.with_changes(**changes)


def test_lists_arrays_and_numpy_integers_become_tuples_of_integers():
    problem = TensorMapProblem.from_json(EXAMPLE)
    same = problem.with_changes(
        tile=np.array([64, 64]),
        global_shape=[np.int32(1024), 512],
        smem_modes=[[[64, 64]], np.array([[64, 1]])],
        bounds=[[0, 1024], (0, np.int64(512))],
        base_elem_offset=np.uint8(0),
    )
    assert same == problem
    assert hash(same) == hash(problem)
    assert all(type(extent) is int for extent in same.tile)


def test_a_document_may_count_what_a_tile_traverses_and_a_constructor_may_not():
    stated = document([64, 64], [64, 1], [16, 32], [[[8, 32]], [[32, 1]]], element_strides=[2, 1])
    problem = TensorMapProblem.from_json(stated)
    assert problem.tile == (8, 32)
    with pytest.raises(MalformedError, match="must multiply to the tile extent 16"):
        problem.with_changes(tile=(16, 32))


@pytest.mark.parametrize(
    "changes",
    [
        {"raw": b""},
        {"raw": "00" * 128},
        {"issues": ((0, 0),)},
        {"issues": (Issue((0,), 0),)},
        {"origin_map": ()},
        {"origin_map": (((2, 1, 1),), ())},
        {"origin_map": (((0, 1, 0),), ())},
        {"origin_map": (((0, 1),), ())},
        {"expect_tx_bytes": 1.5},
        {"smem_bytes": None},
        {"oob": "perhaps"},
        {"undocumented": (1,)},
        {"certificate": [1]},
        {"certificate": {1: 2}},
        {"certificate": {"elements": {1, 2}}},
        {"problem": EXAMPLE},
        {"tensor_map": None},
        {"tensormap": None},
    ],
)
def test_fields_that_make_no_plan_are_refused(changes):
    plan = synthesize_tensormap(square())
    with pytest.raises(MalformedError, match="LA372"):
        plan.with_changes(**changes)


def test_a_plan_without_issues_is_refuted():
    assert isinstance(check(synthesize_tensormap(square()).with_changes(issues=())), Refuted)


def test_a_plan_keeps_its_own_certificate_and_is_hashable():
    plan = synthesize_tensormap(square())
    held = dict(plan.certificate)
    copied = plan.with_changes(certificate=held)
    held["oob"] = "lost"
    assert isinstance(check(copied), Proved)
    assert hash(copied) == hash(plan)


# --- negative strides -------------------------------------------------------------------------------------------------


def falling(direction="load", rows=8, **more):
    """Rows that fall in memory as their index rises, seen through a map of the rows in memory order."""
    modes = [[[1, 64]], [[64, 1]]]
    stated = document([rows, 64], [-64, 1], [1, 64], modes, "bf16", "NONE", direction, base_elem_offset=64 * (rows - 1))
    problem = TensorMapProblem.from_json(stated | more)
    tm = tensormap.TensorMap("bf16", (64, rows), (128,), (64, 1), oob_fill="ZERO")
    issues = (Issue((0, rows - 1), 0),)
    return TensorMapPlan(
        problem, tm, tensormap.encode(tm), issues, ((), ((0, -1, 1),)), 128, 128, 128, "exact"
    )  # fmt: skip


def test_rows_that_fall_in_memory_are_proved_and_right_on_every_tile():
    plan = falling()
    assert isinstance(check(plan), Proved), check(plan)
    memory = np.arange(8 * 64, dtype="<u2").view(np.uint8)
    for row in range(-3, 12):
        image = np.full(128, 0xEE, np.uint8)
        ((inner, outer),) = plan.coordinates((row, 0))
        tensormap.tile_load(plan.tensor_map, (inner, outer), memory, image)
        values = image.view("<u2").tolist()
        assert values == ([448 - 64 * row + c for c in range(64)] if 0 <= row < 8 else [0] * 64)


@pytest.mark.parametrize(("dims", "base"), [((64, 9), 0), ((64, 8), 128), ((72, 8), 0)])
def test_a_map_that_leaves_the_falling_tensor_is_refuted(dims, base):
    plan = falling()
    tm = tensormap.TensorMap("bf16", dims, (128,), (64, 1), base_address=base)
    wrong = plan.with_changes(tensor_map=tm, raw=tensormap.encode(tm))
    assert isinstance(check(wrong), Refuted)


def test_a_map_that_begins_before_the_tensor_is_refuted():
    problem = TensorMapProblem.from_json(
        document([8, 64], [64, 1], [1, 64], [[[1, 64]], [[64, 1]]], base_elem_offset=64)
    )
    tm = tensormap.TensorMap("bf16", (64, 9), (128,), (64, 1))
    plan = TensorMapPlan(
        problem, tm, tensormap.encode(tm), (Issue((0, 1), 0),), ((), ((0, 1, 1),)), 128, 128, 128, "lost"
    )
    verdict = check(plan)
    assert isinstance(verdict, Refuted)
    assert verdict.witness["what"] == "the map reaches before the tensor"


# --- what a store plan speaks of --------------------------------------------------------------------------------------


def test_a_store_has_no_coordinates_where_the_device_faults():
    plan = synthesize_tensormap(square("store"))
    assert plan.oob == "exact"
    assert plan.coordinates((960, 448)) == ((448, 960),)
    assert plan.coordinates((1024, 512)) == ((512, 1024),)  # wholly outside, beyond the far edge: nothing is written
    for origin in ((-64, 0), (0, -64), (-64, -64)):
        assert not plan.expresses(origin)
        with pytest.raises(MalformedError, match=r"(?s)LA421.*the device faults on negative coordinates"):
            plan.coordinates(origin)
    assert "0 to 2^31 - 1" in plan.certificate["claim"]
    memory, image = np.zeros(1024 * 512 * 2, np.uint8), np.zeros(8192, np.uint8)
    with pytest.raises(TargetRuleError, match="LA328"):
        tensormap.tile_store(plan.tensor_map, (0, -64), memory, image)


def test_origins_that_the_certificate_does_not_speak_of_have_no_coordinates():
    plan = synthesize_tensormap(square())
    assert plan.coordinates((-64, -64)) == ((-64, -64),)
    for origin, why in (
        ((1, 0), "multiple of 64"),
        ((0, 8), "multiple of 64"),
        ((2**31, 0), "exceed 32 bits"),
        ((0, -(2**31) - 64), "exceed 32 bits"),
        ((0,), "rank 2"),
    ):
        with pytest.raises(MalformedError, match=why):
            plan.coordinates(origin)
    for origin in ((0, 0.0), (0, "0"), (0, None), None, 3, (True, False)):
        with pytest.raises(MalformedError, match="LA372"):
            plan.coordinates(origin)


@pytest.mark.parametrize("oob", ["exact", "weak", "lost"])
@pytest.mark.parametrize(("direction", "dim"), [("load", 0), ("load", 1), ("store", 0), ("store", 1)])
def test_coordinates_that_do_not_move_with_the_origin_are_refuted(direction, dim, oob):
    """At the origin 0 every address is right, so only another origin of the class shows it."""
    plan = synthesize_tensormap(square(direction))
    for terms in ((), ((1 - dim, 2, 1),)):
        rows = (*plan.origin_map[:dim], terms, *plan.origin_map[dim + 1 :])
        verdict = check(plan.with_changes(origin_map=rows, oob=oob, certificate=None))
        assert isinstance(verdict, Refuted)
        assert verdict.witness["what"] == "wrong global element"
        assert verdict.witness["origin"] != [0, 0]


@pytest.mark.parametrize("dim", [0, 1])
def test_start_coordinates_are_32_bits(dim):
    plan = synthesize_tensormap(square())
    for start, wide in ((2**31, True), (2**31 - 1, False), (-(2**31) + 1, False), (-(2**31) - 1, True)):
        coords = tuple(start if at == dim else 0 for at in range(2))
        verdict = check(plan.with_changes(issues=(Issue(coords, 0),), certificate=None))
        assert isinstance(verdict, Refuted)
        assert (verdict.witness["what"] == "a start coordinate exceeds 32 bits") == wide


def test_a_store_that_cannot_start_in_bounds_is_refuted():
    """Rows 7 - o: the far edge of the tensor is where the coordinate falls below 0; in bounds it never does."""
    store = falling("store")
    assert isinstance(check(store), Proved)
    assert store.coordinates((7, 0)) == ((0, 0),)
    assert not store.expresses((8, 0))
    assert store.expresses((-1, 0))
    padded = document([8, 64], [-64, 1], [1, 64], [[[1, 64]], [[64, 1]]], "bf16", "NONE", "store", base_elem_offset=448)
    problem = TensorMapProblem.from_json(padded | {"bounds": [[0, 8], [0, 64]]})
    tm = tensormap.TensorMap("bf16", (64, 8), (128,), (64, 1))
    issues = (Issue((0, 6), 0),)  # a row too low: the last origin in bounds would start at -1
    verdict = check(store.with_changes(problem=problem, tensor_map=tm, issues=issues))
    assert isinstance(verdict, Refuted)


def test_a_store_whose_first_tile_hangs_over_the_near_edge_is_refuted_where_an_origin_in_bounds_needs_it():
    """Bounds that begin at row 5: the map begins there too, so the tile at row 0 starts at -5, outside its bounds."""
    plan = synthesize_tensormap(square("store", bounds=[[5, 1024], [0, 512]], origin_multiple=[1, 64]))
    assert plan.coordinates((5, 0)) == ((0, 0),)
    assert not plan.expresses((4, 0))
    shifted = plan.with_changes(issues=(Issue((0, -6), 0),))
    assert isinstance(check(shifted), Refuted)


# --- what a checker compares ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda: synthesize_tensormap(square()), lambda: synthesize_wgmma(canonical_operand("A", (64, 32)))]
)
def test_a_certificate_says_what_was_recomputed_no_less_and_no_more(make):
    plan = make()
    judge = check if isinstance(plan, TensorMapPlan) else wgmma.check
    held = dict(plan.certificate)
    assert isinstance(judge(plan), Proved)
    for key in held:
        without = {name: value for name, value in held.items() if name != key}
        assert isinstance(judge(plan.with_changes(certificate=without)), Refuted)
        for value in (None, "x", 7, -1, [1], {"a": 1}, True):
            assert isinstance(judge(plan.with_changes(certificate=held | {key: value})), Refuted)
    for extra in (None, True, "proved"):
        verdict = judge(plan.with_changes(certificate=held | {"audited": extra}))
        assert isinstance(verdict, Refuted)
        assert verdict.witness["field"] == "audited"
    assert isinstance(judge(plan.with_changes(certificate=held | {"elements": float(held["elements"])})), Refuted)
    assert isinstance(judge(plan.with_changes(certificate={})), Refuted)


@pytest.mark.parametrize("value", [None, 3, "plan", {}, EXAMPLE])
def test_the_checker_wants_a_plan(value):
    with pytest.raises(MalformedError, match="LA372"):
        check(value)


def test_the_checker_asks_the_clock():
    plan = synthesize_tensormap(square())
    operand = synthesize_wgmma(canonical_operand("B", (256, 64)).with_changes(align_bytes=1024))
    with clock.within(0):
        assert isinstance(check(plan), Unknown)
        assert isinstance(wgmma.check(operand), Unknown)
        with pytest.raises(BudgetError):
            clock.check("a test")


# --- operands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("major", ["k", "M", "mn", "", None, 1, True])
def test_an_operand_view_knows_two_majors(major):
    with pytest.raises(MalformedError, match="LA358"):
        operand_view(TensorMapProblem.from_json(EXAMPLE), "A", major)


@pytest.mark.parametrize("arch", ["sm_90", "sm_100", "sm_100a", "sm_103a"])
def test_targets_without_wgmma_have_no_operands(arch):
    problem = TensorMapProblem.from_json(square() | {"arch": arch})
    with pytest.raises(AdmissibilityError, match=f"{arch} has no wgmma"):
        operand_view(problem, "A", "K")
    with pytest.raises(TargetRuleError, match="LA373"):
        require_wgmma(arch)


def test_a_handoff_proves_the_copy_first_and_wants_a_view_of_its_tile():
    copy = synthesize_tensormap(square())
    view = operand_view(copy.problem, "A", "K")
    consumer = synthesize_wgmma(view.problem)
    assert isinstance(prove_handoff(copy, view, consumer), Proved)
    wrong = copy.with_changes(issues=(Issue((64, 0), 0),))  # the right shared addresses, the wrong global elements
    assert isinstance(prove_handoff(wrong, view, consumer), Refuted)
    with pytest.raises(MalformedError, match="LA372"):
        prove_handoff(copy, OperandView(view.problem, 0, 5), consumer)
    smaller = synthesize_wgmma(canonical_operand("A", (64, 32), dtype="bf16"))
    with pytest.raises(MalformedError, match="must read the view's shape"):
        prove_handoff(copy, view, smaller)
    for dims in ((0, 0), (-1, 1), (0, "1")):
        with pytest.raises(MalformedError, match="LA372"):
            OperandView(view.problem, *dims)


# --- the meaning of a problem -----------------------------------------------------------------------------------------


def test_what_a_problem_expects_is_refused_where_memory_does_not_hold_it():
    problem = TensorMapProblem.from_json(
        document([8, 64], [-64, 1], [1, 64], [[[1, 64]], [[64, 1]]], base_elem_offset=0)
    )
    memory = np.zeros(1024, np.uint8)
    with pytest.raises(MalformedError, match="LA372"):
        problem.expected(memory, (1, 0))  # the element before the first
    for wrong in (memory.view(np.uint16), memory.reshape(2, -1), memory.tolist(), None):
        with pytest.raises(MalformedError, match="must be a one-dimensional uint8 array"):
            problem.expected(wrong, (0, 0))
    for origin in ((0,), (0, 0, 0), (0, 0.5), "00", None, (2**60, 0)):
        with pytest.raises(MalformedError, match="LA372"):
            problem.expected(memory, origin)


@settings(max_examples=40, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_addresses_in_global_memory_agree_with_enumeration(rng):
    rank = rng.randint(1, 3)
    shape = [rng.randint(1, 5) for _ in range(rank)]
    bounds = [(low, rng.randint(low + 1, extent)) for extent in shape for low in [rng.randrange(extent)]]
    tile = [rng.randint(1, 3) for _ in range(rank)]
    problem = TensorMapProblem.from_json({
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": shape, "stride": [rng.randint(-9, 9) for _ in shape], "dtype": "f32"},
        "tile": tile, "smem": {"modes": [[[extent, 1]] for extent in tile], "swizzle": "NONE"},
        "bounds": bounds, "base_elem_offset": rng.randrange(50), "element_strides": [rng.randint(1, 2) for _ in shape],
    })  # fmt: skip

    def offset(x):
        return problem.base_elem_offset + sum(a * b for a, b in zip(x, problem.global_strides, strict=True))

    every = [offset(x) for x in np.ndindex(*shape)]
    assert problem.byte_span() == (4 * min(every), 4 * max(every) + 4)
    origin = [rng.randint(-3, 6) for _ in shape]
    elements, inside = problem.elements(origin)
    for t in np.ndindex(*problem.tile):
        x = [o + step * c for o, step, c in zip(origin, problem.element_strides, t, strict=True)]
        assert inside[t] == all(low <= a < high for a, (low, high) in zip(x, bounds, strict=True))
        assert elements[t] == offset(x) if inside[t] else 4 * elements[t] in range(*problem.byte_span())


# --- texts ------------------------------------------------------------------------------------------------------------


def test_a_plan_reads_well_and_its_repr_builds_it_again(monkeypatch):
    monkeypatch.setattr("layoutalg.ground.picture.PROMPT_CHARACTERS", 10**6)  # long plans are shortened
    names = globals() | vars(tensormap) | vars(wgmma) | {"MatrixDescriptor": MatrixDescriptor}
    copy = synthesize_tensormap(square())
    operand = synthesize_wgmma(canonical_operand("A", (128, 64)))
    for plan in (copy, operand):
        assert eval(repr(plan), names) == plan
        assert hash(eval(repr(plan), names)) == hash(plan)
        assert str(plan).startswith("admissible    ")
        assert max(map(len, str(plan).split("\n"))) <= 100
        assert len(str(plan)) < 900
        assert str(plan.with_changes(certificate=None)).startswith("unproved ")
    assert all(part in str(copy).replace("\n              ", "") for part in (copy.hex, "8192 bytes", "(o1, o0)"))
    assert f"{operand.tiles[0].encoded:#018x}" in str(operand)


def test_an_origin_that_falls_is_written_as_such():
    assert "coordinates (0, -o0 + 7) -> shared byte 0" in str(falling())


def test_verdicts_are_texts_of_a_few_lines():
    copy = synthesize_tensormap(square())
    assert str(check(copy)).split("\n")[0] == f"proved        {copy.certificate['claim']}"
    wrong = copy.with_changes(issues=(Issue((64, 64), 0),))
    assert str(check(wrong)).startswith("refuted       wrong global element\n  at          ")
    with clock.within(0):
        assert str(check(copy)).startswith("unknown       ")


def test_a_map_that_only_the_chip_accepts_is_passed_over_on_request():
    wide = document([4096, 8192], [8192, 1], [128, 128], [[[128, 64]], [[64, 1], [2, 8192]]], "bf16", "128B")
    measured, documented = synthesize_tensormap(wide), synthesize_tensormap(wide, documented_only=True)
    assert (measured.undocumented, len(measured.issues)) == (("STRIDE_NEST",), 1)
    assert (documented.undocumented, len(documented.issues)) == ((), 2)
    assert tensormap.violations(documented.tensor_map, evidence="documented") == ()
    assert isinstance(check(documented), Proved)
