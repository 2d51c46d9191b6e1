"""Hand-offs from the copy to the tensor cores: proved as the library's own proof says, and forged ones refuted."""

from __future__ import annotations

import copy as copies
from typing import Any

import pytest
from judges.certificates import told as judged

import layoutalg as la
from layoutalg.ground.errors import AdmissibilityError, MalformedError
from layoutalg.proofs.handoff import OperandView, operand_view, prove_handoff
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem
from layoutalg.synth import synthesize_tensormap
from layoutalg.synth.wgmma import synthesize_wgmma

ATOMS = {"NONE": 8, "32B": 16, "64B": 32, "128B": 64}


def planned(operand: str, major: str, swizzle: str, rows: int) -> tuple[TensorMapPlan, OperandView, OperandPlan]:
    """A tile of two atoms, the second one behind the first, and its descriptors."""
    atom = ATOMS[swizzle]
    problem = {
        "schema": "layoutalg/tensormap-problem/1", "arch": "sm_90a", "direction": "load",
        "global": {"shape": [1024, 512], "stride": [512, 1], "dtype": "bf16", "base_align_bytes": 256},
        "tile": [rows, 2 * atom],
        "smem": {"modes": [[[rows, atom]], [[atom, 1], [2, atom * rows]]], "swizzle": swizzle},
    }  # fmt: skip
    made = synthesize_tensormap(problem)
    view = operand_view(made.problem, operand, major)
    return made, view, synthesize_wgmma(view.problem)


CASES = [
    (operand, major, swizzle, rows)
    for operand in "AB"
    for major in ("K", "MN")
    for swizzle in ATOMS
    for rows in (64, 128)
    if operand == "B" or major == "K" or ATOMS[swizzle] >= 32
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_handoff_is_certified_where_it_is_proved(case: tuple[str, str, str, int]) -> None:
    copy, view, consumer = planned(*case)
    assert prove_handoff(copy, view, consumer)
    made = la.certify.handoff(copy, view, consumer)
    assert made.kind == "handoff"
    assert str(made.check().certificate["claim"]).endswith(
        f"{view.problem.shape[0]} x {view.problem.shape[1]} elements"
    )
    assert len(made.to_text()) < 4000


def told(statement: dict[str, Any], evidence: object) -> tuple[int, str]:
    return judged("handoff", statement, evidence)


@pytest.mark.parametrize(
    ("changes", "fact"),
    [
        ({("axes",): [1, 0]}, "the copy puts another element there"),
        ({("axes",): [0, 0]}, "the tile is not this operand"),
        ({("axes",): [0, 2]}, "the tile is not this operand"),
        ({("plan", "smem_align_bytes"): 256}, "wrong byte counts"),
        ({("plan", "problem", "direction"): "store"}, "the tile is not this operand, or has other bases"),
        ({("plan", "problem", "dtype"): "u16"}, "these are not the bytes of the map"),
        ({("plan", "expect_tx_bytes"): 8191}, "wrong byte counts"),
        ({("operand", "align"): 2048}, "the tile is not this operand, or has other bases"),
        ({("operand", "words"): [1] * 4}, "wgmma reads another byte"),
    ],
    ids=str,
)
def test_a_forged_handoff_is_refuted(changes: dict[tuple[str, ...], Any], fact: str) -> None:
    made = la.certify.handoff(*planned("A", "K", "64B", 64))
    statement: dict[str, Any] = copies.deepcopy(dict(made.statement))
    for path, value in changes.items():
        inner = statement
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = value
    code, said = told(statement, made.evidence)
    assert code == 1
    assert said.startswith(fact)


def test_the_operand_of_another_tile_is_no_handoff() -> None:
    copy, view, consumer = planned("B", "K", "32B", 64)
    other = synthesize_wgmma(OperandProblem("B", (64, 32), (((64, 32),), ((32, 1),)), "64B", dtype="bf16"))
    with pytest.raises(AdmissibilityError, match="LA427"):
        la.certify.handoff(copy, view, other)
    made = la.certify.handoff(copy, view, consumer)
    read = la.certify.operand(other).statement
    code, said = told({**made.statement, "operand": dict(read)}, made.evidence)
    assert (code, said.partition(",")[0]) == (1, "the tile is not this operand")


def test_what_is_no_handoff_is_malformed() -> None:
    copy, view, consumer = planned("A", "K", "128B", 64)
    for wrong in ((copy.problem, view, consumer), (copy, view.problem, consumer), (copy, view, consumer.problem)):
        with pytest.raises(MalformedError, match="LA372"):
            la.certify.handoff(*wrong)  # type: ignore[arg-type]
