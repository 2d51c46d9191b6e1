"""What a prompt shows of answers and plans: the constructor's form where it fits, else at most 21 lines."""

from __future__ import annotations

import pickle

import pytest

import layoutalg as la
from layoutalg.ground.errors import shown

TENSOR = la.Tensor((512, 512))
SWIZZLED = "Sw<3,3,3> o 0 o (64,64):(64,1)"
ANSWERS = {
    "plan": lambda: la.tensormap(TENSOR, (64, 64), SWIZZLED),
    "suggestion": lambda: la.suggest(TENSOR, (64, 64)),
    "choice": lambda: la.suggest(TENSOR, (64, 64))[0],
    "refused": lambda: la.admissible("(64,64):(65,1)", "tma"),
    "admitted": lambda: la.admissible(SWIZZLED, "wgmma.A"),
    "explanation": lambda: la.explain("(4,8):(1,4)"),
    "banks": lambda: la.banks("ldmatrix", "(64,64):(64,1)"),
    "swizzle": lambda: la.swizzle(["rows", "columns"], tile=(64, 64)),
    "padding": lambda: la.padding((64, 64), ["rows"]),
    "conversion": lambda: la.conversion("(32,2):(2,1)", "(32,2):(1,32)", 16),
    "certificate": lambda: la.certify.equality(la.parse("(4,4):(1,4)"), la.parse("16:1")),
    "verdict": lambda: la.equivalent(la.parse("(4,4):(1,4)"), la.parse("16:1")),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_fits_a_prompt(name: str) -> None:
    answer = ANSWERS[name]()
    lines = repr(answer).splitlines()
    assert len(lines) <= 21
    assert max(map(len, lines)) <= 320
    assert type(answer).__name__ in repr(answer)
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_a_long_plan_shows_what_print_shows_and_one_line_inside_other_values() -> None:
    plan = la.tensormap(TENSOR, (64, 64), SWIZZLED)
    assert repr(plan) == f"<TensorMapPlan: {str(plan).strip()}>"
    assert "\n" not in shown(plan)
    assert "\n" not in repr(la.Refuted("e", {"plan": plan}))
    assert repr(la.explain(plan)).endswith(" more lines: print it>")


def test_layouts_are_always_written_in_full() -> None:
    long = la.CuteLayout((1,) * 300, (1,) * 300)
    assert eval(repr(long), {"CuteLayout": la.CuteLayout}) == long
    assert len(repr(long)) > 1000
