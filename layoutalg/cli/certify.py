"""``layoutalg certify``: certificates from the command line.

Implementation notes: the certificate may state the negation of the claim; the exit code tells which.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from layoutalg.cli import commands
from layoutalg.cli.answers import PROVED, REFUTED, VERDICT_SCHEMA, schema_of
from layoutalg.cli.inputs import layout_of, read_subject, texts_of
from layoutalg.cli.output import answer_file, put_into, say, say_json
from layoutalg.cli.plans import OPERAND_PROBLEMS, PROBLEM_SCHEMA, solved
from layoutalg.ground import clock
from layoutalg.ground.document import malformed
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic
from layoutalg.ground.verdict import Refuted, Unknown
from layoutalg.proofs import certify, pipeline
from layoutalg.proofs.certify import Certificate
from layoutalg.proofs.dtypes import stated_bits, stated_type
from layoutalg.proofs.handoff import operand_view
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem

MAP_PLANS, OPERAND_PLANS = "layoutalg/tensormap-plan/", "layoutalg/wgmma-plan/"
PIPELINES = "layoutalg/pipeline/"
FALSE = "LA427"
"""Error code of a claim that the checker refutes."""


def run_certify(given: commands.Certify) -> int:
    """Print a certificate, or write it to a file."""
    try:
        with clock.within(given.budget):
            made = CLAIMS[given.claim](given)
    except AdmissibilityError as error:
        if error.diagnostic.code != FALSE:
            raise
        return _refuted(error, given.json)
    text = made.to_text()
    with answer_file(given.output) as file:
        if file is not None:
            put_into(file, text + "\n")
        if file is None or given.json:
            say(text)
        else:
            say(f"{made.kind:<13} {made.check().certificate['claim']}")  # type: ignore[union-attr]
    return REFUTED if made.kind.startswith("no-") or made.kind == "inequality" else PROVED


def _arguments(given: commands.Certify, least: int, most: int, what: str) -> Sequence[str]:
    """Return the positional arguments after checking their number."""
    if not least <= len(given.of) <= most:
        raise malformed("arguments", f"must be {what}", len(given.of))
    return given.of


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


def _equality(given: commands.Certify) -> Certificate:
    return certify.equality(*_layouts(_arguments(given, 2, 2, "two layouts")))


def _composition(given: commands.Certify) -> Certificate:
    return certify.composition(*_layouts(_arguments(given, 2, 3, "two layouts and optionally their composition")))


def _inverse(given: commands.Certify) -> Certificate:
    layouts = _layouts(_arguments(given, 1, 2, "a layout and optionally its inverse"))
    return certify.inverse(*layouts, side=given.side, codomain=given.codomain)


def _document(name: str, what: str, *schemas: str) -> Any:
    """Return the JSON document of an argument after checking its schema prefix."""
    document = read_subject(name).value
    if not schema_of(document).startswith(schemas):
        raise malformed("/schema", f"must be the schema of {what}", schema_of(document))
    return document


def _plan(given: commands.Certify) -> Certificate:
    what = "a TensorMap plan or problem"
    document = _document(*_arguments(given, 1, 1, what), what, PROBLEM_SCHEMA, MAP_PLANS)
    found = solved(document, given.budget)
    if isinstance(found, TensorMapPlan):
        return certify.plan(found)
    _refused_problem(document, PROBLEM_SCHEMA, found)
    return certify.no_plan(TensorMapProblem.from_json(document))


def _operand(given: commands.Certify) -> Certificate:
    what = "a wgmma operand plan or problem"
    document = _document(*_arguments(given, 1, 1, what), what, OPERAND_PROBLEMS, OPERAND_PLANS)
    found = solved(document, given.budget)
    if isinstance(found, OperandPlan):
        return certify.operand(found)
    _refused_problem(document, OPERAND_PROBLEMS, found)
    return certify.no_operand(OperandProblem.from_json(document))


def _refused_problem(document: object, problems: str, found: Any) -> None:
    """Refuse a document without a plan unless it is a problem proved to have none."""
    if not schema_of(document).startswith(problems) or found[2] != REFUTED:
        raise malformed("document", "must be a valid plan", json.dumps(found[0]))


def _handoff(given: commands.Certify) -> Certificate:
    first, second = _arguments(given, 2, 2, "a TensorMap plan and a wgmma operand plan")
    copy = TensorMapPlan.from_json(_document(first, "a TensorMap plan", MAP_PLANS))
    consumer = OperandPlan.from_json(_document(second, "a wgmma operand plan", OPERAND_PLANS))
    return certify.handoff(copy, operand_view(copy.problem, consumer.problem.operand, consumer.major), consumer)


def _banks(given: commands.Certify) -> Certificate:
    target, operation, addresses = _arguments(given, 3, 3, "a target, an instruction and a layout of byte addresses")
    (text,) = texts_of([addresses], ["a layout"])
    stated_bits(8, text, argument="the layout of byte addresses")
    return certify.bank_turns(target, operation, layout_of(text))


def _pipeline(given: commands.Certify) -> Certificate:
    (name,) = _arguments(given, 1, 1, "a pipeline")
    verdict = pipeline.verify(_document(name, "a pipeline", PIPELINES))
    if isinstance(verdict, pipeline.Proved):
        return verdict.to_certificate()
    if isinstance(verdict, Unknown):
        raise BudgetError(Diagnostic("LA428", "no certificate was found", (name,), verdict.reason))
    what = f"{verdict.kind}: {verdict.witness['what']}"
    raise AdmissibilityError(Diagnostic(FALSE, "the claim does not hold", (name,), what))


CLAIMS: dict[str, Callable[[commands.Certify], Certificate]] = {
    "equality": _equality,
    "composition": _composition,
    "inverse": _inverse,
    "plan": _plan,
    "operand": _operand,
    "handoff": _handoff,
    "banks": _banks,
    "pipeline": _pipeline,
}
"""Claim -> the function that certifies it."""
