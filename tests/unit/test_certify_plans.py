"""Certificates of TensorMap plans and of their absence: they hold, wrong ones are refuted by the first wrong fact."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

import layoutalg as la
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError
from layoutalg.proofs import checker
from layoutalg.proofs.tensormap import Issue, TensorMapPlan, TensorMapProblem
from layoutalg.synth import synthesize_tensormap
from layoutalg.targets.nvidia import tensormap

Change = Callable[[Any], object]


def problem(**changes: object) -> TensorMapProblem:
    """Two issues of a bf16 tile, 64 rows of two spans of 128 bytes."""
    document = {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
        "tile": [64, 128], "smem": {"modes": [[[64, 64]], [[64, 1], [2, 4096]]], "swizzle": "128B"},
        "origin_multiple": [64, 8],
    }  # fmt: skip
    return TensorMapProblem.from_json(document).with_changes(**changes)


def planned(**changes: object) -> TensorMapPlan:
    return synthesize_tensormap(problem(**changes))


def told(statement: Any, evidence: Any, kind: str = "tensormap-plan") -> tuple[int, str]:
    return checker.check(la.certify.Certificate(kind, statement, evidence).to_json())  # type: ignore[return-value]


def encoded(evidence: Any) -> str:
    """The bytes of changed fields, so that what they move is looked at."""
    fields = dict(evidence["map"])
    dims, strides, box, steps = (tuple(column) for column in zip(*fields["dims"], strict=True))
    tm = tensormap.TensorMap(
        dtype="bf16", dims=dims, strides_bytes=strides[1:], box=box, element_strides=steps, interleave="NONE",
        swizzle=("NONE", "32B", "64B", "128B")[fields["swizzle"]], oob_fill=("ZERO", "NAN")[fields["fill"]],
        l2_promotion=("NONE", "64B", "128B", "256B")[fields["promotion"]], base_address=fields["base"],
    )  # fmt: skip
    return tensormap.encode(tm, target="sm_90a").hex()


def test_a_plan_has_a_small_certificate():
    made = la.certify.plan(planned())
    assert made.check()
    assert len(made.statement["issues"]) == 2
    assert len(made.to_text()) < 1000
    assert encoded(made.evidence) == made.statement["bytes"]
    assert str(made.check().certificate["claim"]) == "exact: 2 boxes of 4096 elements"


STATEMENTS: list[tuple[Change, str]] = [
    (lambda s: s.update(bytes=s["bytes"][:-1] + "1"), "these are not the bytes of the map"),
    (lambda s: s["problem"].update(dtype="f16"), "these are not the bytes of the map"),
    (lambda s: s["problem"].update(dtype="f32"), "shared is not where elements lie"),
    (lambda s: s["problem"].update(base_align_bytes=8), "the base, an inner start or the fill is wrong"),
    (lambda s: s["problem"].update(oob_fill="NAN"), "the base, an inner start or the fill is wrong"),
    (lambda s: s["problem"].update(base_elem_offset=8), "a box moves another global element"),
    (lambda s: s["problem"]["axes"][0].__setitem__(1, 2), "a box moves another global element"),
    (lambda s: s["problem"]["axes"][0].__setitem__(2, 32), "a box moves another global element"),
    (lambda s: s["problem"]["axes"][0].__setitem__(3, 520), "a box moves another global element"),
    (lambda s: s["problem"]["axes"][0].__setitem__(4, 1), "the class is not exact"),
    (lambda s: s["problem"]["axes"][1].__setitem__(5, 504), "the class is not exact"),
    (lambda s: s["problem"]["axes"][0].__setitem__(0, 63), "shared is not where elements lie"),
    (lambda s: s["problem"]["shared"]["stages"].pop(), "a box moves another global element"),
    (lambda s: s["problem"]["shared"]["stages"][1][1][0].__setitem__(0, 256), "outside the tile"),
    (lambda s: s["issues"].pop(), "no box reaches a tile element"),
    (lambda s: s["issues"][1].__setitem__(1, 8320), "a box touches shared memory outside the tile"),
    (lambda s: s["issues"][1].__setitem__(1, 8200), "certificate.statement.issues[1][1] is not of range(0"),
    (lambda s: s["issues"][1][0].__setitem__(0, 60), "the base, an inner start or the fill is wrong"),
    (lambda s: s["issues"][1][0].__setitem__(1, 1), "a box moves another global element"),
    (lambda s: s["issues"][1][0].append(0), "too large to check here"),
    (lambda s: [issue[0].append(0) for issue in s["issues"]], "the ranks differ"),
    (lambda s: s["moves"][1].__setitem__(0, 63), "a box moves another global element"),
    (lambda s: s["moves"][0].__setitem__(0, 8), "a coordinate moved by several axes is not decided here"),
    (lambda s: s["moves"].pop(), "the ranks differ"),
    (lambda s: s.update(expect_tx_bytes=16368), "wrong byte counts"),
    (lambda s: s.update(smem_align_bytes=512), "wrong byte counts"),
    (lambda s: s.update(smem_align_bytes=1536), "wrong byte counts"),
    (lambda s: s.update(smem_bytes=16512), "wrong byte counts"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "fact"), STATEMENTS)
def test_a_wrong_statement_is_refuted_by_its_first_wrong_fact(change: Change, fact: str):
    made = la.certify.plan(planned())
    statement = copy.deepcopy(dict(made.statement))
    change(statement)
    code, said = told(statement, made.evidence)
    assert code == (2 if fact.endswith("here") else 1), said
    assert fact in said


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda m: m.update(base=16), "a box moves another global element"),
        (lambda m: m.update(swizzle=2), "the driver refuses this map"),
        (lambda m: m["dims"][0].__setitem__(0, 513), "the class is not exact"),
        (lambda m: m["dims"][1].__setitem__(0, 1023), "the class is not exact"),
        (lambda m: m["dims"][1].__setitem__(1, 1040), "a box moves another global element"),
        (lambda m: m["dims"][1].__setitem__(1, 1032), "certificate.evidence.map.dims[1][1] is not of range(0"),
        (lambda m: m["dims"][1].__setitem__(2, 32), "no box reaches a tile element"),
        (lambda m: m["dims"][1].__setitem__(3, 2), "a box moves another global element"),
        (lambda m: m["dims"][0].__setitem__(2, 60), "the driver refuses this map"),
        (lambda m: m.update(dims=[]), "a map without dimensions"),
        (lambda m: m.update(promotion=0), None),
    ],
)
def test_a_wrong_map_is_refuted_by_what_it_moves(change: Change, fact: str | None):
    made = la.certify.plan(planned())
    statement, evidence = copy.deepcopy((dict(made.statement), dict(made.evidence)))
    change(evidence["map"])
    code, said = told(statement, evidence)
    assert code, said
    assert fact is None or "bytes of the map" in said or fact in said
    if fact is None or ("refuses" not in fact and "range" not in fact and "without" not in fact):
        statement["bytes"] = encoded(evidence)
        code, said = told(statement, evidence)
        assert said.startswith("exact: 2 boxes") if fact is None else fact in said, said


def test_an_overhang_and_an_overlap_of_stores_are_refuted():
    weak = la.certify.plan(planned(bounds=((0, 1000), (0, 512)), direction="store"))
    assert weak.check()
    statement = copy.deepcopy(dict(weak.statement))
    statement["problem"]["axes"][0][3] = statement["problem"]["axes"][0][2] = 0
    evidence = copy.deepcopy(dict(weak.evidence))
    evidence["map"]["dims"][1][1], statement["moves"][1] = 0, [0, 0]
    statement["bytes"] = encoded(evidence)
    assert "two elements are stored to one global address" in told(statement, evidence)[1]
    shifted = copy.deepcopy(dict(weak.statement))
    for issue in shifted["issues"]:
        issue[0][1] -= 1
    moved = copy.deepcopy(dict(weak.evidence))
    moved["map"]["base"], moved["map"]["dims"][1][0] = 1024, 999
    shifted["problem"]["axes"][0][4] = 1
    shifted["bytes"] = encoded(moved)
    assert told(shifted, moved)[0] == 0
    shifted["problem"]["axes"][0][4:] = [0, 999]
    moved["map"]["base"] = 0
    shifted["bytes"] = encoded(moved)
    assert told(shifted, moved)[0] == 1


def test_a_wrong_plan_has_no_certificate():
    plan = planned()
    first, second = plan.issues
    wrong = plan.with_changes(issues=(first, Issue(second.coords, second.smem_offset_bytes + 128)))
    with pytest.raises(AdmissibilityError, match=r"LA430[^§]*outside the tile, element \[4607\]"):
        la.certify.plan(wrong)
    with pytest.raises(BudgetError, match=r"LA431[^§]*class is lost"):
        la.certify.plan(plan.with_changes(oob="lost"))
    with pytest.raises(MalformedError, match="LA372"):
        la.certify.plan(plan.problem)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA372"):
        la.certify.no_plan(plan)  # type: ignore[arg-type]


REFUSED: list[tuple[dict[str, object], int]] = [
    ({"global_strides": (516, 1)}, 8),  # rows 1032 bytes apart
    ({"base_align_bytes": 8}, 0),
    ({"base_elem_offset": 4}, 0),
    ({"global_strides": (1, 1024)}, 0),  # neighbours are rows apart
    ({"smem_modes": (((64, 64),), ((2, 4096), (64, 1)))}, 0),
    ({"smem_modes": (((64, 64),), ((64, 2), (2, 4096)))}, 0),  # gaps
    ({"bounds": ((0, 1024), (0, 508)), "direction": "store"}, 0),  # half a chunk
    ({"smem_modes": (((64, 64),), ((64, 1), (2, 4096 * 30)))}, 15360),  # beyond shared memory
]


@pytest.mark.parametrize(("changes", "chunk"), REFUSED)
def test_what_no_map_carries_has_a_certificate(changes: dict[str, object], chunk: int):
    stated = problem(**changes)
    made = la.certify.no_plan(stated)
    assert made.check()
    assert made.evidence["chunk"] == chunk
    assert len(made.to_text()) < 600
    right = {"problem": la.certify.plan(planned()).statement["problem"]}
    assert "a box can write this chunk" in told(right, {"origin": [0, 0], "chunk": 0}, "no-tensormap")[1]
    evidence = dict(made.evidence)
    for origin in ([0], [0, 4], [64, 512], [-64, 0]):
        assert "no origin in bounds" in told(made.statement, evidence | {"origin": origin}, "no-tensormap")[1]
    assert "no element of this chunk" in told(made.statement, evidence | {"chunk": 99999}, "no-tensormap")[1]


def test_a_fill_that_the_type_lacks_excludes_all_maps():
    stated = problem(dtype="u16", oob_fill="NAN")
    assert la.certify.no_plan(stated).check()
    with pytest.raises(BudgetError, match="LA432"):
        la.certify.no_plan(problem(oob_fill="NAN"))
