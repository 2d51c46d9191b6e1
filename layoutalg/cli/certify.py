"""``layoutalg certify``: certificates from the command line.

Implementation notes: the certificate may state the negation of the claim; the exit code tells which.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from layoutalg.cli.exits import PROVED, REFUTED
from layoutalg.cli.output import answer_file, put_into, say, say_json
from layoutalg.cli.plans import OPERAND_PROBLEMS, PROBLEM_SCHEMA, VERDICT_SCHEMA, schema_of, solved
from layoutalg.cli.subjects import layout_of, read_subject, texts_of
from layoutalg.ground import clock
from layoutalg.ground.document import malformed
from layoutalg.ground.errors import AdmissibilityError
from layoutalg.ground.verdict import Refuted
from layoutalg.proofs import certify
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.dtypes import stated_bits, stated_type
from layoutalg.proofs.handoff import operand_view
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem

MAP_PLANS, OPERAND_PLANS = "layoutalg/tensormap-plan/", "layoutalg/wgmma-plan/"
FALSE = "LA427"
"""Error code of a claim that the checker refutes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments and options of ``certify``."""

    of: Sequence[str]
    side: str
    codomain: int | None
    budget_seconds: float

    def texts(self, least: int, most: int, what: str) -> Sequence[str]:
        """Return the positional arguments after checking their number."""
        if not least <= len(self.of) <= most:
            raise malformed("arguments", f"must be {what}", len(self.of))
        return self.of


def write_certificate(asked: str, given: Asked, output: str | None, as_json: bool) -> int:
    """Print a certificate, or write it to a file; return the exit code."""
    try:
        with clock.within(given.budget_seconds):
            made = CLAIMS[asked](given)
    except AdmissibilityError as error:
        if error.diagnostic.code != FALSE:
            raise
        return _refuted(error, as_json)
    text = made.to_text()
    with answer_file(output) as file:
        if file is not None:
            put_into(file, text + "\n")
        if file is None or as_json:
            say(text)
        else:
            say(f"{made.kind:<13} {made.check().certificate['claim']}")  # type: ignore[union-attr]
    return REFUTED if made.kind.startswith("no-") or made.kind == "inequality" else PROVED


def _refuted(error: AdmissibilityError, as_json: bool) -> int:
    """The answer to a false claim whose negation has no certificate."""
    verdict = Refuted("checker", {"what": error.diagnostic.because})
    if as_json:
        say_json({"schema": VERDICT_SCHEMA, "verdict": "refuted", "witness": dict(verdict.witness)})
    else:
        say(str(verdict))
    return REFUTED


def _layouts(arguments: Sequence[str]) -> list[Any]:
    """Return the layouts of texts; the element types that they state must agree."""
    texts = texts_of(arguments, ["a layout"] * len(arguments))
    stated_type(None, *texts)
    return [layout_of(text) for text in texts]


def _equality(given: Asked) -> Certificate:
    return certify.equality(*_layouts(given.texts(2, 2, "two layouts")))


def _composition(given: Asked) -> Certificate:
    return certify.composition(*_layouts(given.texts(2, 3, "two layouts and optionally their composition")))


def _inverse(given: Asked) -> Certificate:
    layouts = _layouts(given.texts(1, 2, "a layout and optionally its inverse"))
    return certify.inverse(*layouts, side=given.side, codomain=given.codomain)


def _document(name: str, what: str, *schemas: str) -> Any:
    """Return the JSON document of an argument after checking its schema prefix."""
    document = read_subject(name).value
    if not schema_of(document).startswith(schemas):
        raise malformed("/schema", f"must be the schema of {what}", schema_of(document))
    return document


def _plan(given: Asked) -> Certificate:
    what = "a TensorMap plan or problem"
    document = _document(*given.texts(1, 1, what), what, PROBLEM_SCHEMA, MAP_PLANS)
    found = solved(document, given.budget_seconds)
    if isinstance(found, TensorMapPlan):
        return certify.plan(found)
    if schema_of(document).startswith(PROBLEM_SCHEMA) and found[2] == REFUTED:  # type: ignore[index]
        return certify.no_plan(TensorMapProblem.from_json(document))
    raise malformed("document", "must be a valid plan", json.dumps(found[0]))  # type: ignore[index]


def _operand(given: Asked) -> Certificate:
    what = "a wgmma operand plan or problem"
    document = _document(*given.texts(1, 1, what), what, OPERAND_PROBLEMS, OPERAND_PLANS)
    found = solved(document, given.budget_seconds)
    if isinstance(found, OperandPlan):
        return certify.operand(found)
    if schema_of(document).startswith(OPERAND_PROBLEMS) and found[2] == REFUTED:  # type: ignore[index]
        return certify.no_operand(OperandProblem.from_json(document))
    raise malformed("document", "must be a valid plan", json.dumps(found[0]))  # type: ignore[index]


def _handoff(given: Asked) -> Certificate:
    first, second = given.texts(2, 2, "a TensorMap plan and a wgmma operand plan")
    copy = TensorMapPlan.from_json(_document(first, "a TensorMap plan", MAP_PLANS))
    consumer = OperandPlan.from_json(_document(second, "a wgmma operand plan", OPERAND_PLANS))
    return certify.handoff(copy, operand_view(copy.problem, consumer.problem.operand, consumer.major), consumer)


def _banks(given: Asked) -> Certificate:
    target, operation, addresses = given.texts(3, 3, "a target, an instruction and a layout of byte addresses")
    (text,) = texts_of([addresses], ["a layout"])
    stated_bits(8, text, argument="the layout of byte addresses")
    return certify.bank_turns(target, operation, layout_of(text))


CLAIMS: dict[str, Callable[[Asked], Certificate]] = {
    "equality": _equality,
    "composition": _composition,
    "inverse": _inverse,
    "plan": _plan,
    "operand": _operand,
    "handoff": _handoff,
    "banks": _banks,
}
"""Claim -> the function that certifies it."""
