"""``layoutalg synth tensormap``, ``check`` and ``validate``: one document or a list of them.

Main definitions: ``synth_tensormap``, ``check_plans``, ``validate_plans``, ``plan_lines``, ``checked``.

Implementation notes: over a list every document gets its answer, a malformed one too; the exit code is the worst.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from layoutalg.cli.batch import Answer, each
from layoutalg.cli.exits import PROVED, REFUTED, UNKNOWN
from layoutalg.cute.certificate import SCHEMA as FUNCTORIALITY_SCHEMA
from layoutalg.cute.certificate import check_functoriality
from layoutalg.ground.document import malformed
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError, shown
from layoutalg.ground.verdict import Proved, Refuted, Verdict
from layoutalg.proofs import wgmma
from layoutalg.proofs.tensormap import TensorMapPlan, check
from layoutalg.proofs.tensormap.plan import SCHEMA as PLAN_SCHEMA
from layoutalg.proofs.tensormap.problem import SCHEMA
from layoutalg.proofs.wgmma.operand import PLAN_SCHEMA as OPERAND_SCHEMA
from layoutalg.synth import InadmissibleError, synthesize_tensormap

PROBLEM_SCHEMA = SCHEMA.removesuffix("1")
"""Of any version: the reader says which it reads."""


def synth_tensormap(name: str, output: str | None, budget_seconds: float, as_json: bool) -> int:
    """Plan every problem of a file; print the answers."""
    return each(name, as_json, budget_seconds, lambda document: _synthesized(document, budget_seconds), output)


def check_plans(name: str, budget_seconds: float, as_json: bool) -> int:
    """Replay the proof of every plan or certificate of a file."""
    return each(name, as_json, budget_seconds, checked)


def validate_plans(name: str, device: str, seed: int, budget_seconds: float, as_json: bool) -> int:
    """Run every plan (or problem) of a file on the device or the simulator."""
    return each(name, as_json, budget_seconds, lambda document: _validated(document, device, seed, budget_seconds))


def schema_of(document: object) -> str:
    """Return the schema that a document says it follows, or an empty text."""
    schema = document.get("schema") if isinstance(document, dict) else None
    return schema if isinstance(schema, str) else ""


def _synthesized(document: object, budget_seconds: float) -> Answer:
    try:
        plan = synthesize_tensormap(_object(document), budget_seconds=budget_seconds)
    except InadmissibleError as error:
        return error.to_json(), [f"inadmissible  {error}"], REFUTED
    except BudgetError as error:
        return {"verdict": "unknown", "error": error.diagnostic.to_json()}, [f"unknown  {error}"], UNKNOWN
    return plan.to_json(), list(plan_lines(plan)), PROVED


def plan_lines(plan: TensorMapPlan) -> Iterator[str]:
    """Yield a plan that was proved as text, one fact a line."""
    tm = plan.tensor_map
    many = f"{len(plan.issues)} issue{'s' if len(plan.issues) > 1 else ''}"
    yield f"admissible    {many} of box {list(tm.box)} {tm.dtype}, swizzle {tm.swizzle}"
    steps = f", element strides {list(tm.element_strides)}" if max(tm.element_strides, default=1) > 1 else ""
    yield f"  dims        {list(tm.dims)}, strides {list(tm.strides_bytes)} bytes{steps}"
    for index, (issue, coords) in enumerate(zip(plan.issues, _symbolic(plan), strict=True)):
        if index == 8 and len(plan.issues) > 9:
            yield f"  ...         {len(plan.issues) - 8} more"
            break
        yield f"  issue {index:<5} coordinates ({coords}) -> shared byte {issue.smem_offset_bytes}"
    yield f"  barrier     {plan.expect_tx_bytes} bytes expected; tile base aligned to {plan.smem_align_bytes} bytes"
    yield f"  bounds      out-of-bounds fill {plan.oob}"
    if plan.undocumented:
        yield f"  measured    breaks the documented text ({', '.join(plan.undocumented)}); the measured chip accepts it"
    if plan.certificate is not None:
        elements, engine = plan.certificate["elements"], plan.certificate["engine"]
        yield f"  proof       {elements} elements at every tile origin, by {engine}"
    yield f"  bytes       {plan.hex[:128]}"
    yield f"              {plan.hex[128:]}"


def _symbolic(plan: TensorMapPlan) -> Iterator[str]:
    """Coordinates of each issue as expressions of the tile origin o0, o1, ... (outermost dimension first)."""
    for issue in plan.issues:
        words = []
        for constant, terms in zip(issue.coords, plan.origin_map, strict=True):
            parts = [
                ("" if top == 1 else f"{top}*") + f"o{dim}" + ("" if bottom == 1 else f"/{bottom}")
                for dim, top, bottom in terms
            ]
            if constant or not parts:
                parts.append(str(constant))
            words.append(" + ".join(parts).replace("+ -", "- "))
        yield ", ".join(words)


def _check_tensormap(document: object) -> Verdict:
    return check(TensorMapPlan.from_json(document))


def _check_operand(document: object) -> Verdict:
    return wgmma.check(wgmma.OperandPlan.from_json(document))


_CHECKERS: Mapping[str, Callable[[object], Verdict]] = {
    PLAN_SCHEMA: _check_tensormap,
    OPERAND_SCHEMA: _check_operand,
    FUNCTORIALITY_SCHEMA: check_functoriality,
}


def checked(document: object) -> Answer:
    """Check a plan or a certificate; only the checker's own verdict refutes it."""
    checker = _CHECKERS.get(schema_of(document))
    if checker is None:
        schema = document.get("schema") if isinstance(document, dict) else document
        raise malformed("/schema", f"the schema must be one of {', '.join(_CHECKERS)}", schema)
    return _told(checker(document), document)


def _told(verdict: Verdict, document: object) -> Answer:
    """A verdict as an answer."""
    if isinstance(verdict, Proved):
        certificate = dict(verdict.certificate)
        claim = certificate.get("claim", document.get("claim", "") if isinstance(document, dict) else "")
        fill = f", fill {certificate['oob']}" if "oob" in certificate else ""
        lines = [f"proved        {claim}", f"              by {verdict.engine}{fill}"]
        return {"verdict": "proved", "certificate": certificate}, lines, PROVED
    if isinstance(verdict, Refuted):
        witness = dict(verdict.witness)
        what = next((key for key in ("what", "claim", "because") if key in witness), "")
        rest = {key: value for key, value in witness.items() if key != what}
        told = ", ".join(f"{key}={value if isinstance(value, str) else shown(value)}" for key, value in rest.items())
        lines = [f"refuted       {witness.get(what, '')}", f"  at          {told}"]
        return {"verdict": "refuted", "witness": witness}, lines, REFUTED
    answer: dict[str, object] = {"verdict": "unknown", "reason": verdict.reason, "tried": list(verdict.tried)}
    return answer, [f"unknown       {verdict.reason}"], UNKNOWN


def _validated(document: object, device: str, seed: int, budget_seconds: float) -> Answer:
    from layoutalg.codegen.validate import validate

    if schema_of(document).startswith(PROBLEM_SCHEMA):
        try:
            plan = synthesize_tensormap(_object(document), budget_seconds=budget_seconds)
        except InadmissibleError as error:
            return error.to_json(), [f"inadmissible  {error}"], REFUTED
    else:
        plan = TensorMapPlan.from_json(_object(document))
    try:
        report = validate(plan, device=device, seed=seed)
    except MalformedError:
        raise
    except LayoutError as error:
        return {"verdict": "unknown", "error": error.diagnostic.to_json()}, [f"unknown       {error}"], UNKNOWN
    lines = [f"{'validated' if report else 'refuted':<13} {report}"]
    if report.note:
        lines.append(f"  note        {report.note}")
    verdict = {"verdict": "validated" if report else "refuted"}
    return verdict | report.to_json(), lines, PROVED if report else REFUTED


def _object(document: object) -> dict[str, object]:
    if not isinstance(document, dict):
        raise malformed("", "must be an object", document)
    return document
