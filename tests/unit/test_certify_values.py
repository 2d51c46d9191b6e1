"""Certificates as values: what they refuse, and that their document, their text and their seal say the same."""

from __future__ import annotations

import json
import pickle

import pytest

import layoutalg as la
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError, RepresentabilityError
from layoutalg.ground.verdict import Refuted, Unknown
from layoutalg.proofs import checker
from layoutalg.proofs.certify import KINDS, Certificate
from layoutalg.proofs.certify.evidence import proved

FOUR = {"size": 4, "stages": []}
SQUARE = {"size": 4, "stages": [["split", [2, 2]], ["affine", [[1, 2]], [0]]]}
TWICE = {"size": 4, "stages": [["affine", [[2]], [0]]]}
TRUE = Certificate("equality", {"f": FOUR, "g": SQUARE}, {"by": "table"})


def test_a_certificate_comes_back_from_its_document_and_its_text() -> None:
    assert Certificate.from_json(TRUE.to_json()) == TRUE == Certificate.from_json(TRUE.to_text())
    assert json.loads(TRUE.to_text()) == TRUE.to_json()
    assert pickle.loads(pickle.dumps(TRUE)) == TRUE
    assert TRUE.to_json()["seal"] == TRUE.seal == checker.seal(TRUE.to_json())
    assert TRUE.seal in str(TRUE)


def test_what_is_handed_out_is_no_part_of_the_certificate() -> None:
    document = TRUE.to_json()
    document["statement"]["f"] = "5:1"  # type: ignore[index]
    assert TRUE.check()
    given: dict[str, object] = {"f": FOUR, "g": SQUARE}
    made = Certificate("equality", given, {"by": "table"})
    given["f"] = "5:1"
    assert made == TRUE


@pytest.mark.parametrize(
    "document",
    [
        None, 3, [], "{", "{}", "[1]", '{"kind": 1, "kind": 2}', '{"seal": NaN}', '{"seal": 1.5}', "[" * 100_000,
        TRUE.to_json() | {"more": 1}, TRUE.to_json() | {"kind": "nothing"}, TRUE.to_json() | {"schema": "layoutalg/1"},
        TRUE.to_json() | {"seal": "0" * 64}, TRUE.to_json() | {"statement": []}, TRUE.to_json() | {"evidence": None},
        TRUE.to_json() | {"evidence": {"by": "digits"}}, dict.fromkeys(TRUE.to_json(), 1),
    ],
    ids=range(18),
)  # fmt: skip
def test_what_is_no_certificate_is_not_read(document: object) -> None:
    with pytest.raises(MalformedError, match="LA425 invalid certificate"):
        Certificate.from_json(document)


@pytest.mark.parametrize("part", [{"f": 1.5}, {"f": float("nan")}, {"f": object()}, {"f": {1, 2}}, [], None, "x"])
def test_only_json_data_is_stated(part: object) -> None:
    with pytest.raises(MalformedError, match="LA425"):
        Certificate("equality", part, {"by": "table"})  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA425"):
        Certificate("equality", {"f": FOUR, "g": FOUR}, part)  # type: ignore[arg-type]


def test_a_wrong_certificate_is_refuted_and_one_for_no_rule_unknown() -> None:
    wrong = Certificate("equality", {"f": FOUR, "g": TWICE}, {"by": "table"}).check()
    assert isinstance(wrong, Refuted)
    assert wrong.witness == {"what": "f and g differ, at [1], got [1], expected [2]"}
    table = {"size": 2, "stages": [["table", [0, 1]]]}
    unknown = Certificate(
        "equality", {"f": table, "g": {"size": 2, "stages": []}}, {"by": "digits", "digits": [2]}
    ).check()
    assert isinstance(unknown, Unknown)


def test_evidence_is_tried_until_one_decides() -> None:
    table = {"f": {"size": 2, "stages": [["table", [0, 1]]]}, "g": {"size": 2, "stages": []}}
    vain: dict[str, object] = {"by": "digits", "digits": [2]}
    assert proved("equality", table, [vain, {"by": "table"}], "here").evidence == {"by": "table"}
    with pytest.raises(BudgetError, match="LA428"):
        proved("equality", table, [vain], "here")
    with pytest.raises(BudgetError, match="LA428"):
        proved("equality", table, [], "here")
    with pytest.raises(AdmissibilityError, match="LA427"):
        proved("equality", {"f": FOUR, "g": TWICE}, [{"by": "table"}], "here")


def test_claims_that_are_none() -> None:
    pair = la.IntegerLayout((("i", 4),), (("a", 0), ("b", 0)), ((1,), (2,)), (0, 0))
    with pytest.raises(RepresentabilityError, match="LA429"):
        la.certify.composition(la.parse("4:1"), pair)
    for call in (
        lambda: la.certify.equality(la.parse("4:1"), 3),  # type: ignore[arg-type]
        lambda: la.certify.inverse(la.parse("4:1"), side="up"),
        lambda: la.certify.inverse(la.parse("4:1"), side="right", codomain="x"),  # type: ignore[arg-type]
        lambda: la.certify.inverse(pair),
        lambda: la.certify.equality(la.PiecewiseLayout("[N] -> { [i] -> [i] : 0 <= i < N }"), la.parse("4:1")),
    ):
        with pytest.raises(MalformedError, match="LA426"):
            call()


def test_every_kind_is_known_to_the_checker() -> None:
    assert tuple(checker.KINDS) == KINDS
