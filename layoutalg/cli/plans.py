"""``layoutalg synth`` and ``validate``, for one document or a list; the plan of a document.

Implementation notes: in a list every document gets an answer, even a malformed one; the exit code is the worst. Every
answer names its schema, so that ``check`` can read what ``synth`` wrote.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import TypeAlias

from layoutalg import synth
from layoutalg.cli import commands
from layoutalg.cli.answers import (
    CERTIFICATES,
    ERROR_SCHEMA,
    PROVED,
    REFUTED,
    UNKNOWN,
    VERDICT_SCHEMA,
    Answer,
    each,
    failed,
    schema_of,
)
from layoutalg.cli.files import read_documents
from layoutalg.cli.inputs import read_subject, written_in
from layoutalg.ground.document import Documents, malformed, split_json
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError
from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.proofs import wgmma
from layoutalg.proofs.smem import shared_tile
from layoutalg.proofs.symbolic import SymbolicPlan, SymbolicProblem, prove
from layoutalg.proofs.symbolic.plan import SCHEMA as SYMBOLIC_SCHEMA
from layoutalg.proofs.symbolic.problem import is_symbolic
from layoutalg.proofs.tensor import tensor_of
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProbe, TensorMapProblem, check
from layoutalg.proofs.tensormap.plan import SCHEMA as PLAN_SCHEMA
from layoutalg.proofs.tensormap.problem import SCHEMA
from layoutalg.proofs.wgmma import OperandPlan, OperandProblem
from layoutalg.proofs.wgmma.operand import PLAN_SCHEMA as OPERAND_SCHEMA
from layoutalg.proofs.wgmma.operand import PROBLEM_SCHEMA as OPERAND_PROBLEM
from layoutalg.synth.tensormap.probe import plan_or_probe
from layoutalg.synth.tensormap.refusal import SCHEMA as REFUSAL_SCHEMA
from layoutalg.synth.wgmma.refusal import SCHEMA as OPERAND_REFUSAL
from layoutalg.targets.nvidia.tensormap import element_bytes

OPERAND_PROBLEMS = OPERAND_PROBLEM.removesuffix("1")
PROBLEM_SCHEMA = SCHEMA.removesuffix("1")
"""Prefix for any version; the reader rejects versions it does not know."""
Solved: TypeAlias = TensorMapPlan | OperandPlan | Answer
"""The proved plan of a document, or the answer that says why there is none."""


def run_synth_tensormap(given: commands.SynthTensormap) -> int:
    """Plan every problem in a file, or the problem given by a layout and a tensor; print the answers."""

    def stated() -> Documents:
        if given.tensor is None:
            return _documents(given.file, "--tensor")
        smem = written_in(_notation(given.file), None, given.dtype)
        source = tensor_of((given.tensor, given.stride, given.dtype), smem)
        extents = given.tile or shared_tile(smem, None, element_bytes(source.dtype)).tile
        direction = "store" if given.store else "load"
        problem = TensorMapProblem.of(source, extents, smem, arch=given.target, direction=direction)
        return split_json(json.dumps(problem.to_json()))

    def answer(document: object) -> Answer:
        return _synthesized(document, given.budget, given.documented_only)

    return each(stated, given.json, given.budget, answer, given.output)


def run_synth_wgmma(given: commands.SynthWgmma) -> int:
    """Find the descriptors of every operand in a file, or of a layout; print the answers."""

    def stated() -> Documents:
        if given.operand is None:
            return _documents(given.file, "--operand")
        smem = written_in(_notation(given.file), None, given.dtype)
        return split_json(json.dumps(OperandProblem.of(given.operand, given.dtype, smem).to_json()))

    return each(stated, given.json, given.budget, _synthesized_operand, given.output)


def run_validate(given: commands.Validate) -> int:
    """Run every plan (or problem) in a file on the device or the simulator."""

    def answer(document: object) -> Answer:
        return _validated(document, given.device, given.seed, given.budget)

    return each(lambda: read_documents(given.file), given.json, given.budget, answer)


def _documents(name: str, option: str) -> Documents:
    """The documents in a file; layout notation is refused with the option that it needs."""
    if name != "-" and ":" in name and not os.path.lexists(name.replace("\0", "")):
        raise malformed("file", f"there is no file of this name; layout notation needs {option}", name)
    return read_documents(name)


def _notation(argument: str) -> str:
    return read_subject(argument).text("file", "must be layout notation with these options")


def _synthesized(document: object, seconds: float, documented_only: bool = False) -> Answer:
    if not is_symbolic(document):
        given = _object(document)
        return _planned(lambda: plan_or_probe(given, seconds=seconds, documented_only=documented_only))
    if documented_only:
        raise malformed("/global/shape", "must be numbers with --documented-only", "names")
    problem = SymbolicProblem.from_json(document)
    return _planned(lambda: synth.synthesize_symbolic(problem, seconds=seconds))


def _synthesized_operand(document: object) -> Answer:
    given = _object(document)
    return _planned(lambda: synth.synthesize_wgmma(given))


def _planned(find: Callable[[], TensorMapPlan | TensorMapProbe | SymbolicPlan | OperandPlan]) -> Answer:
    """The plan found, or the answer that says why there is none."""
    try:
        plan = find()
    except (synth.InadmissibleError, synth.InadmissibleOperandError) as error:
        return error.to_json(), [f"inadmissible  {error}"], REFUTED
    except BudgetError as error:
        return failed(error)[0], [f"unknown       {error}"], UNKNOWN
    return plan.to_json(), str(plan).split("\n"), UNKNOWN if isinstance(plan, TensorMapProbe) else PROVED


def solved(document: object, seconds: float, documented_only: bool = False) -> Solved:
    """Return the proved plan of a plan or problem document, or the answer that says why there is none."""
    schema = schema_of(document)
    if is_symbolic(document):
        raise malformed("/global/shape", "must be numbers: get a plan from SymbolicPlan.specialise", "names")
    if schema.startswith(PROBLEM_SCHEMA):
        answer = _synthesized(document, seconds, documented_only)
        return TensorMapPlan.from_json(answer[0]) if answer[2] == PROVED else answer
    if schema.startswith(OPERAND_PROBLEMS):
        answer = _synthesized_operand(document)
        return OperandPlan.from_json(answer[0]) if answer[2] == PROVED else answer
    if schema not in (PLAN_SCHEMA, OPERAND_SCHEMA):
        readable = (SCHEMA, PLAN_SCHEMA, OPERAND_PROBLEM, OPERAND_SCHEMA)
        raise malformed("/schema", f"the schema must be one of {', '.join(readable)}", schema)
    answer = checked(document, documented_only)
    if answer[2] != PROVED:
        return answer
    return TensorMapPlan.from_json(document) if schema == PLAN_SCHEMA else OperandPlan.from_json(document)


_CHECKERS: Mapping[str, Callable[[object], Verdict]] = {
    PLAN_SCHEMA: lambda document: check(TensorMapPlan.from_json(document)),
    SYMBOLIC_SCHEMA: lambda document: prove(SymbolicPlan.from_json(document)),
    OPERAND_SCHEMA: lambda document: wgmma.check(OperandPlan.from_json(document)),
}


def checked(document: object, documented_only: bool = False) -> Answer:
    """Check a plan; only the checker's own verdict refutes it.

    A refusal or an error that ``synth`` wrote into a list is repeated: there is nothing to check.
    """
    schema = schema_of(document)
    if isinstance(document, dict) and schema in (REFUSAL_SCHEMA, OPERAND_REFUSAL, ERROR_SCHEMA):
        return _refusal_repeated(document, schema)
    if schema.startswith((PROBLEM_SCHEMA, OPERAND_PROBLEMS)):
        kind = "tensormap" if schema.startswith(PROBLEM_SCHEMA) else "wgmma"
        rule = f"this is a problem, but only plans can be checked: run layoutalg synth {kind} PROBLEM -o PLAN first"
        raise malformed("/schema", rule)
    if schema.startswith(CERTIFICATES):
        raise malformed("", "a certificate must be a file of one JSON object, with integers only and unique names")
    replayed = _CHECKERS.get(schema)
    if replayed is None:
        found = document.get("schema") if isinstance(document, dict) else document
        raise malformed("/schema", f"the schema must be one of {', '.join(_CHECKERS)}", found)
    verdict = replayed(document)
    if documented_only and schema == PLAN_SCHEMA and isinstance(verdict, Proved):
        rules = TensorMapPlan.from_json(document).undocumented  # confirmed by the checker
        if rules:
            verdict = Refuted(verdict.engine, {"what": "the map breaks the documented text", "rules": ", ".join(rules)})
    return _verdict_answer(verdict, document)


def _refusal_repeated(document: dict[str, object], schema: str) -> Answer:
    """Repeat the answer of a document that says why there is no plan."""
    what = "error" if schema == ERROR_SCHEMA else "violations" if schema == REFUSAL_SCHEMA else "reasons"
    found = document.get(what)
    entries = found if isinstance(found, list) else [found]
    said = [_reason(entry) for entry in entries[:20]]
    if not said or None in said or document.get("verdict") not in ("inadmissible", "unknown", "error"):
        raise malformed(f"/{what}", f"must be as synth writes it in {schema}", found)
    if schema == ERROR_SCHEMA:
        lines = [f"unknown       there is no plan to check: {said[0]}"]
        return {"schema": VERDICT_SCHEMA, "verdict": "unknown", "reason": said[0], "tried": []}, lines, UNKNOWN
    lines = ["inadmissible  there is no plan to check: the document refuses its problem"]
    lines += [f"  {'since' if index == 0 else '':<12}{entry}" for index, entry in enumerate(said)]
    return {"schema": VERDICT_SCHEMA, "verdict": "inadmissible", "reasons": said}, lines, REFUTED


def _reason(entry: object) -> str | None:
    """The text of a violation, a reason or a diagnostic; None for anything else."""
    if isinstance(entry, dict):
        words = [entry.get("rule", entry.get("code")), entry.get("message", entry.get("what"))]
        return ": ".join(words) if all(isinstance(word, str) for word in words) else None  # type: ignore[arg-type]
    return entry if isinstance(entry, str) else None


def _verdict_answer(verdict: Verdict, document: object) -> Answer:
    """A verdict as an answer."""
    lines = str(verdict).split("\n")
    answer: dict[str, object] = {"schema": VERDICT_SCHEMA}
    if isinstance(verdict, Proved):
        if "claim" not in verdict.certificate and isinstance(document, dict) and "claim" in document:
            lines = str(Proved(verdict.engine, {"claim": document["claim"], **verdict.certificate})).split("\n")
        return answer | {"verdict": "proved", "certificate": dict(verdict.certificate)}, lines, PROVED
    if isinstance(verdict, Refuted):
        return answer | {"verdict": "refuted", "witness": dict(verdict.witness)}, lines, REFUTED
    return answer | {"verdict": "unknown", "reason": verdict.reason, "tried": list(verdict.tried)}, lines, UNKNOWN


def _validated(document: object, device: str, seed: int, seconds: float) -> Answer:
    from layoutalg.codegen.validation import validate

    if is_symbolic(document):
        raise malformed("/global/shape", "must be numbers: get a plan from SymbolicPlan.specialise", "names")
    if schema_of(document).startswith(PROBLEM_SCHEMA):
        answer = _synthesized(document, seconds)
        if answer[2] != PROVED:
            return answer
        document = answer[0]
    plan = TensorMapPlan.from_json(_object(document))
    try:
        report = validate(plan, device=device, seed=seed)
    except MalformedError:
        raise
    except LayoutError as error:
        result, lines, _ = failed(error)
        return result, [f"unknown       {lines[0]}"], UNKNOWN
    lines = [f"{'validated' if report else 'refuted':<13} {report}"]
    if report.note:
        lines.append(f"  note        {report.note}")
    verdict = {"verdict": "validated" if report else "refuted"}
    return verdict | report.to_json(), lines, PROVED if report else REFUTED


def _object(document: object) -> dict[str, object]:
    if not isinstance(document, dict):
        raise malformed("", "must be an object", document)
    return document
