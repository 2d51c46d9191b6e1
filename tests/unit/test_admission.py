"""The one question of every consumer: what it takes, what it answers, what it refuses to be asked."""

from __future__ import annotations

import json

import numpy as np
import pytest

import layoutalg as la
from layoutalg.ground.errors import MalformedError
from layoutalg.proofs.admission import SCHEMA

SWIZZLED = "Sw<3,3,3> o 0 o (64,64):(64,1)"


@pytest.mark.parametrize("consumer", ["tma", "wgmma.A"])
def test_a_layout_its_text_and_its_table_have_one_answer(consumer):
    layout = la.parse(SWIZZLED)
    table = np.asarray(layout.table()).reshape((64, 64), order="F")
    answers = [
        la.admissible(given, consumer, tile=(64, 64))
        for given in (SWIZZLED, layout, la.convert.to_linear(layout), table)
    ]
    assert all(isinstance(answer, la.Admitted) for answer in answers)
    assert {answer.certificate.seal for answer in answers} == {answers[0].certificate.seal}
    assert all(bool(answer.certificate.check()) for answer in answers)


def test_a_refusal_names_rules_and_repairs_and_is_false():
    answer = la.admissible("(64,64):(65,1)", "tma")
    assert not answer
    assert answer.rules == ("SMEM_DENSE",)
    assert answer.repairs
    assert answer.certificate.check()
    assert "SMEM_DENSE" in str(answer)


def test_a_table_of_no_form_is_refused_with_a_coordinate():
    table = np.random.default_rng(0).permutation(4096).reshape(64, 64)
    answer = la.admissible(table, "wgmma.B")
    assert isinstance(answer, la.Refused)
    assert answer.witness["coordinate"] == (3, 0)


@pytest.mark.parametrize("consumer", ["tma", "wgmma.A"])
@pytest.mark.parametrize("text", [SWIZZLED, "(64,64):(65,1)"])
def test_answers_are_json(consumer, text):
    found = json.loads(json.dumps(la.admissible(text, consumer).to_json()))
    assert found["schema"] == SCHEMA
    assert found["verdict"] in ("admitted", "refused")


@pytest.mark.parametrize(
    "wrong",
    [
        {"consumer": "wgma.A"},
        {"consumer": 3},
        {"consumer": "wgmma.C"},
        {"target": "sm_70"},
        {"dtype": "float"},
        {"align_bytes": 48},
        {"layout": np.zeros((2, 2))},
        {"layout": 3},
        {"colour": "red"},
        {"tile": (3, 3)},
    ],
)
def test_what_cannot_be_asked_names_the_argument(wrong):
    with pytest.raises(MalformedError):
        la.admissible(**({"layout": SWIZZLED, "consumer": "wgmma.A"} | wrong))


def test_a_layout_without_outputs_has_no_offsets() -> None:
    with pytest.raises(la.MalformedError, match="LA376"):
        la.admissible("F2[ -> ]", "tma", tile=(1,))
