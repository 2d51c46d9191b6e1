"""``layoutalg synth tensormap``, ``check`` and ``validate``: one document or a list of them.

Main definitions: ``synth_tensormap``, ``check_plans``, ``validate_plans``, ``plan_lines``.

Implementation notes: over a list every document gets its answer, a malformed one too; the exit code is the worst.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from layoutalg.cli.exits import PROVED, REFUTED, UNKNOWN, USAGE
from layoutalg.cli.files import progress, read_documents, write_document
from layoutalg.errors import BudgetError, LayoutError, MalformedError
from layoutalg.proofs.tensormap import TensorMapPlan, check
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.verdict import Proved, Refuted

Answer = tuple[dict[str, object], list[str], int]


def synth_tensormap(name: str, output: str | None, budget_seconds: float, as_json: bool) -> int:
    """Plan every problem of a file; print the answers."""
    return _each(name, as_json, lambda document: _synthesized(document, budget_seconds), output)


def check_plans(name: str, as_json: bool) -> int:
    """Replay the proof of every plan of a file."""
    return _each(name, as_json, _checked)


def validate_plans(name: str, device: str, seed: int, as_json: bool) -> int:
    """Run every plan (or problem) of a file on the device or the simulator."""
    return _each(name, as_json, lambda document: _validated(document, device, seed))


def _each(name: str, as_json: bool, answer: Callable[[object], Answer], output: str | None = None) -> int:
    documents, is_list = read_documents(name)
    results: list[dict[str, object]] = []
    worst = PROVED
    for index, document in enumerate(documents):
        try:
            result, lines, code = answer(document)
        except MalformedError as error:
            if not is_list:
                raise
            result, lines, code = {"verdict": "error", "error": error.diagnostic.to_json()}, [str(error)], USAGE
        results.append(result)
        worst = max(worst, code)
        if not as_json:
            print("\n".join([f"[{index}]", *lines] if is_list else lines))
        progress(index + 1, len(documents), "done")
    combined: object = results if is_list else results[0]
    if output is not None:
        write_document(output, combined)
    if as_json:
        print(json.dumps(combined))
    return worst


def _synthesized(document: object, budget_seconds: float) -> Answer:
    if not isinstance(document, dict):
        raise _not_an_object(document)
    try:
        plan = synthesize_tensormap(document, budget_seconds=budget_seconds)
    except InadmissibleError as error:
        return error.to_json(), [f"inadmissible  {error}"], REFUTED
    except BudgetError as error:
        return {"verdict": "unknown", "error": error.diagnostic.to_json()}, [f"unknown  {error}"], UNKNOWN
    return plan.to_json(), list(plan_lines(plan)), PROVED


def plan_lines(plan: TensorMapPlan) -> Iterator[str]:
    """Yield a plan as text, one fact a line."""
    tm = plan.tensor_map
    many = f"{len(plan.issues)} issue{'s' if len(plan.issues) > 1 else ''}"
    yield f"admissible    {many} of box {list(tm.box)} {tm.dtype}, swizzle {tm.swizzle}"
    steps = f", element strides {list(tm.element_strides)}" if max(tm.element_strides) > 1 else ""
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


def _checked(document: object) -> Answer:
    plan = TensorMapPlan.from_json(document)
    verdict = check(plan)
    if isinstance(verdict, Proved):
        certificate = dict(verdict.certificate)
        lines = [
            f"proved        {certificate['claim']}",
            f"              by {verdict.engine}, fill {certificate['oob']}",
        ]
        return {"verdict": "proved", "certificate": certificate}, lines, PROVED
    if isinstance(verdict, Refuted):
        witness = dict(verdict.witness)
        told = ", ".join(f"{key}={value}" for key, value in witness.items() if key != "what")
        return (
            {"verdict": "refuted", "witness": witness},
            [f"refuted       {witness['what']}", f"  at          {told}"],
            REFUTED,
        )
    return (
        {"verdict": "unknown", "reason": verdict.reason, "tried": list(verdict.tried)},
        [f"unknown       {verdict.reason}"],
        UNKNOWN,
    )


def _validated(document: object, device: str, seed: int) -> Answer:
    from layoutalg.codegen.validate import validate

    if not isinstance(document, dict):
        raise _not_an_object(document)
    if str(document.get("schema", "")).startswith("layoutalg/tensormap-problem/"):
        try:
            plan = synthesize_tensormap(document)
        except InadmissibleError as error:
            return error.to_json(), [f"inadmissible  {error}"], REFUTED
    else:
        plan = TensorMapPlan.from_json(document)
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


def _not_an_object(document: object) -> MalformedError:
    from layoutalg.document import malformed

    return malformed("", "must be an object", document)
