"""Attacks on the stand-alone checker: claims that are false, or that can be read in two ways, are refused."""

from __future__ import annotations

import json
import math
import re

import pytest

from layoutalg.proofs import checker

TABLE = {"by": "table"}
EMPTY = {"size": 0, "stages": []}
NOWHERE = {"size": 4, "stages": [["pieces", [[[], [[[1], -9, ">="]], [[[1], 0]]]]]]}
NOTHING = {"size": 4, "stages": [["fork"]]}


def strided(value: object) -> object:
    """Shape and stride as the stages they mean; what is no such text as it is."""
    if not isinstance(value, str) or value.count(":") != 1 or not set(value) <= set("0123456789(,):-"):
        return value
    extents, strides = ([int(leaf) for leaf in re.findall("-?[0-9]+", part)] for part in value.split(":"))
    return {"size": math.prod(extents), "stages": [["split", extents], ["affine", [strides], [0]]]}


def said(kind: str, statement: object, evidence: object, **more: object) -> tuple[int, str]:
    """What the checker says of a document that was written by an attacker, with the right seal."""
    if isinstance(statement, dict):
        statement = {name: strided(value) for name, value in statement.items()}
    document = {"schema": checker.SCHEMA, "kind": kind, "statement": statement, "evidence": evidence, **more}
    return checker.check(document | {"seal": checker.seal(document)})


def staged(*stages: object, size: int = 4) -> dict[str, object]:
    return {"size": size, "stages": list(stages)}


@pytest.mark.parametrize(
    ("kind", "statement", "evidence", "fact"),
    [
        ("composition", {"f": EMPTY, "g": "4:1", "h": "4:1"}, TABLE, "the domain is empty"),
        ("composition", {"f": EMPTY, "g": "4:1", "h": "4:1"}, {"by": "solvers"}, "the domain is empty"),
        ("inverse", {"f": "4:1", "inverse": EMPTY, "side": "left"}, TABLE, "the domain is empty"),
        ("no-composition", {"f": "4:1", "g": NOWHERE}, {"at": 0}, "g(i) is in the domain of f"),
        ("no-composition", {"f": "4:1", "g": NOTHING}, {"at": 0}, "g(i) is in the domain of f"),
        ("no-composition", {"f": "4:1", "g": "9:1"}, {"at": 9}, "evidence.at is not in the domain"),
        ("no-inverse", {"f": NOWHERE, "codomain": 4, "side": "left"}, {"points": [0, 1]}, "the values differ"),
        ("no-inverse", {"f": "4:0", "codomain": 4, "side": "left"}, {"points": [1, 1]}, "the points are not two"),
        ("no-inverse", {"f": "4:0", "codomain": 4, "side": "left"}, {"points": [1, 4]}, "the points are not two"),
        ("no-inverse", {"f": "4:1", "codomain": 4, "side": "right"},
         {"missed": 5, "invariant": [], "by": TABLE}, "the missed value is not in the codomain"),
        ("no-inverse", {"f": NOWHERE, "codomain": 4, "side": "right"},
         {"missed": 0, "invariant": [], "by": TABLE}, "the stages do not tell the missed value"),
        ("no-inverse", {"f": "4:0", "codomain": 4, "side": "left"},
         {"points": [0, 1], "missed": 1}, "evidence is two points, or a missed value"),
        ("equality", {"f": "4.5:1.4", "g": "(4,5):(1,4)"}, TABLE, "certificate.statement.f must be an object"),
        ("equality", {"f": '"\u0664":"\u0661"', "g": "4:1"}, TABLE, "certificate.statement.f must be an object"),
        ("equality", {"f": "[4]:(1)", "g": "4:1"}, TABLE, "certificate.statement.f must be an object"),
        ("equality", {"f": "true:true", "g": "1:7"}, TABLE, "certificate.statement.f must be an object"),
        ("equality", {"f": "4:1", "g": "4:1"}, {"by": "table", "digits": [9]}, "digits are for the rule digits"),
        ("equality", {"f": "4:1", "g": "4:1"}, {"by": "digits"}, "digits are for the rule digits"),
        ("equality", {"f": "4:1", "g": "4:1"}, {"by": "digits", "digits": [4, 1]}, "certificate.evidence.digits[1]"),
        ("equality", {"f": "4:1", "g": "4:1"}, {"by": "digits", "digits": [2]}, "the product of the digits"),
        ("inequality", {"f": "4:1", "g": "5:1"}, {"at": [0]}, "f and g do not differ there"),
        ("inequality", {"f": "4:1", "g": "4:2"}, {"at": [-1]}, "f and g do not differ there"),
        ("equality", {"f": {"size": True, "stages": []}, "g": "1:1"}, TABLE, "certificate.statement.f.size is not"),
        ("equality", {"f": staged(["table", [0, 1, 2, True]]), "g": "4:1"}, TABLE, "certificate.statement.f.stages[0]"),
        ("equality", {"f": staged(["affine", [[1]], [-4]], ["table", [0, 1, 2, 3]]), "g": "4:1"}, TABLE,
         "a number has no place in the table"),
        ("equality", {"f": staged(["fork", *([],) * 64], *[["fork", [], []]] * 9), "g": "4:1"}, TABLE, "a fork has"),
    ],
)  # fmt: skip
def test_false_and_ambiguous_claims_are_refused(kind, statement, evidence, fact):
    code, told = said(kind, statement, evidence)
    assert (code, told[: len(fact)]) == (1, fact)


def test_nothing_is_in_an_empty_domain():
    code, told = said("no-composition", {"f": EMPTY, "g": "4:1"}, {"at": 0})
    assert (code, told) == (0, "g(0) = [0] is not in 0 to -1")


def test_strides_that_no_machine_word_holds_are_exact():
    wide = 2**70
    statement = {"f": f"(1,4):({wide},1)", "g": "4:1"}
    assert said("equality", statement, TABLE)[0] == 0
    statement = {"f": f"(2,2):({wide},{2 * wide})", "g": f"4:{wide}"}
    assert said("equality", statement, TABLE)[0] == 0
    code, told = said("equality", statement | {"g": staged(["affine", [[wide]], [0]], ["mod", [2**64]])}, TABLE)
    assert (code, told.partition(",")[0]) == (1, "f and g differ")
    grown = [["affine", [[10**4000]], [1]]] * 2
    code, told = said("equality", {"f": staged(*grown), "g": "4:1"}, TABLE)
    assert (code, told) in ((2, "this certificate is too large to check here (ValueError)"), (1, told))


@pytest.mark.parametrize("text", ["4:1\nproved     other.json: f = g", "\ud800", "\x1b[2J"])
def test_a_message_is_one_plain_line(text):
    code, told = said("equality", {"f": text, "g": "4:1"}, TABLE)
    assert code == 1
    assert told.isprintable()
    assert told.isascii()


@pytest.mark.parametrize(
    "text",
    ["", "{", "[" * 100_000, '{"a":1,"a":1}', '{"a":NaN}', '{"a":1e3}', '{"a":-Infinity}', '{"a":1.0}', "9" * 5000,
     "\ufeff{}"],
)  # fmt: skip
def test_what_is_no_certificate_is_unreadable(text):
    with pytest.raises(checker.Stop) as stop:
        checker.parsed(text)
    assert stop.value.args[0] == 64


@pytest.mark.parametrize(
    "document", [None, [], 5, {}, *({"schema": checker.SCHEMA} | more for more in ({}, {"kind": []}, {"kind": "x"}))]
)
def test_other_documents_are_unreadable(document):
    assert checker.check(document)[0] == 64


def test_a_seal_is_compared_last():
    document = {"schema": checker.SCHEMA, "kind": "equality", "statement": {"f": strided("4:1"), "g": strided("4:1")}}
    document["evidence"] = TABLE
    sealed = document | {"seal": checker.seal(document)}
    assert checker.check(sealed)[0] == 0
    for wrong in ("", "0" * 64, sealed["seal"].upper()):
        code, told = checker.check(sealed | {"seal": wrong})
        assert (code, told.partition(",")[0]) == (1, "the seal is of another certificate")
    code, told = checker.check(json.loads(json.dumps(sealed).replace("[[1]]", "[[2]]", 1)))
    assert (code, told) == (1, "f and g differ, at [1], got [2], expected [1]")
