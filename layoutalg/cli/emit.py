"""``layoutalg emit``: source text of a proved plan, and the bytes of its map.

Implementation notes: a plan is proved again before anything is written; the output is never run.
"""

from __future__ import annotations

import sys

from layoutalg.cli.batch import Answer
from layoutalg.cli.exits import PROVED, REFUTED
from layoutalg.cli.output import answer_file, put_bytes, put_into, say, say_json
from layoutalg.cli.plans import VERDICT_SCHEMA, solved
from layoutalg.cli.subjects import read_subject
from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.exports import EXPORT_FORMS, export
from layoutalg.codegen.host import descriptor_table, host_map, map_bytes
from layoutalg.ground.document import malformed
from layoutalg.ground.verdict import Refuted
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.targets.nvidia.tensormap import TensorMap, decode, encode, violations

SCHEMA = "layoutalg/emitted/1"
Value = TensorMapPlan | OperandPlan | TensorMap


def emit(
    what: str,
    argument: str,
    name: str | None,
    target: str,
    documented_only: bool,
    output: str | None,
    budget_seconds: float,
    as_json: bool,
) -> int:
    """Write the text (for ``raw``, the bytes) of a plan, a problem or the digits of a map; return the exit code."""
    with answer_file(output) as file:
        subject = read_subject(argument)
        if subject.kind == "text":
            raise malformed("subject", "must be a plan, a problem or the 256 digits of a map", subject.value)
        found: Value | Answer
        if subject.kind == "hex":
            found = _decoded(str(subject.value), target, documented_only)
        else:
            found = solved(subject.value, budget_seconds, documented_only)
        if isinstance(found, tuple):
            result, lines, code = found
            if as_json:
                say_json(result)
            else:
                say("\n".join(lines))
            return code
        text = _text(what, found, name, target) if what != "raw" else ""
        raw = _raw(found, target) if what == "raw" else b""
        if file is not None:
            if what == "raw":
                put_into(file, raw)
            else:
                put_into(file, text)
        if as_json:
            say_json({"schema": SCHEMA, "what": what, "text": text or raw.hex()})
        elif file is None and what == "raw":
            if sys.stdout is not None and sys.stdout.isatty():
                raise malformed("--output", "raw bytes cannot go to a terminal: use -o FILE or emit a C array (bytes)")
            put_bytes(raw)
        elif file is None:
            say(text.rstrip("\n"))
    return PROVED


def _decoded(digits: str, target: str, documented_only: bool) -> TensorMap | Answer:
    """The map of 128 bytes, or the answer that it breaks documented rules."""
    if len(digits) != 256:
        raise malformed("", "a descriptor is 128 bytes, 256 hexadecimal digits", f"{len(digits)} digits")
    tm = decode(bytes.fromhex(digits), target=target)
    broken = violations(tm, target=target, evidence="documented") if documented_only else ()
    if not broken:
        return tm
    rules = ", ".join(entry.rule for entry in broken)
    verdict = Refuted("rules", {"what": "the map breaks the documented text", "rules": rules})
    answer: dict[str, object] = {"schema": VERDICT_SCHEMA, "verdict": "refuted", "witness": dict(verdict.witness)}
    return answer, str(verdict).split("\n"), REFUTED


def _text(what: str, value: Value, name: str | None, target: str) -> str:
    if what in EXPORT_FORMS:
        return export(value, what, name, target)
    if isinstance(value, OperandPlan):
        if what != "bytes":
            raise malformed("what", "must be bytes, raw or the form of another system for wgmma descriptors", what)
        return descriptor_table(value, name or "descriptors")
    if what == "host":
        return host_map(value, name or "make_tensor_map")
    if what == "bytes":
        return map_bytes(value, name or "tensor_map", target)
    if isinstance(value, TensorMap):
        raise malformed("what", "must be host, bytes or raw for a bare map: a kernel needs the plan", what)
    return (load_kernel if value.direction == "load" else store_kernel)(value, name).text


def _raw(value: Value, target: str) -> bytes:
    if isinstance(value, OperandPlan):
        return b"".join(tile.encoded.to_bytes(8, "little") for tile in value.tiles)
    return value.raw if isinstance(value, TensorMapPlan) else encode(value, target=target)
