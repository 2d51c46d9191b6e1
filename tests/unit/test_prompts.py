"""What a prompt shows of answers and plans: at most 1,000 characters, the constructor's form where it fits."""

from __future__ import annotations

import pickle

import pytest

import layoutalg as la

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
    assert len(repr(answer)) <= 1000
    assert type(answer).__name__ in repr(answer)
    assert pickle.loads(pickle.dumps(answer)) == answer


def test_a_long_plan_shows_its_first_line_and_print_the_rest() -> None:
    plan = la.tensormap(TENSOR, (64, 64), SWIZZLED)
    assert repr(plan).startswith("<TensorMapPlan: admissible ")
    assert str(plan).count("\n") > 3


def test_layouts_are_always_written_in_full() -> None:
    long = la.CuteLayout((1,) * 300, (1,) * 300)
    assert eval(repr(long), {"CuteLayout": la.CuteLayout}) == long
    assert len(repr(long)) > 1000
