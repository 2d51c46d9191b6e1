"""``layoutalg draw`` and ``layoutalg emit``: pictures, and source text of a proved plan or of a matrix product.

Implementation notes: a plan is proved again before anything is written; source text is never run.
"""

from __future__ import annotations

import sys
from dataclasses import fields
from typing import Any, cast

from layoutalg import draw
from layoutalg.cli import commands
from layoutalg.cli.answers import PROVED, REFUTED, VERDICT_SCHEMA, Answer
from layoutalg.cli.inputs import read_subject, written_in
from layoutalg.cli.output import answer_file, put_bytes, put_into, say, say_json
from layoutalg.cli.plans import Solved, solved
from layoutalg.codegen.cuda import load_kernel, store_kernel
from layoutalg.codegen.exports import EXPORT_FORMS, export
from layoutalg.codegen.host import descriptor_table, host_map, map_bytes, raw_map
from layoutalg.codegen.kernels import Form, MatmulKernel, gemm_kernel
from layoutalg.draw.grid import difference_text
from layoutalg.ground import clock
from layoutalg.ground.document import malformed
from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.notation.written import Written
from layoutalg.proofs import pipeline
from layoutalg.proofs.dtypes import stated_type
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.synth.admission import admissible
from layoutalg.targets.nvidia.tensormap import TensorMap, decode, diagnose, read_map, violations
from layoutalg.targets.nvidia.tensormap.texts import is_call

PICTURE, EMITTED = "layoutalg/picture/1", "layoutalg/emitted/1"
PRODUCT_OPTIONS = ("dtype", "result", "form", "major_a", "major_b")
"""Options of ``emit gemm`` alone."""
MAPS = ("map_a", "map_b", "map_d")


def run_draw(given: commands.Draw) -> int:
    """Draw the subject: text by default, SVG on request and in files."""
    with clock.within(given.budget), answer_file(given.output) as file:
        clock.check("a document")
        value = _drawable(given.subject, given, given.dtype if given.consumer else None)
        if isinstance(value, tuple):
            return _say_refusal(value, given.json)
        if given.consumer is not None:
            if given.against is not None:
                raise malformed("--against", "compares two layouts, but --for draws an answer about one", given.against)
            words, picture = _draw_answer(value, given.consumer, given)
        elif given.against is not None:
            other = _drawable(given.against, given, None)
            stated_type(None, value, other, argument="--against")
            first, second = _layout(value), _layout(other)
            if not isinstance(first, Layout) or not isinstance(second, Layout):
                raise malformed("--against", "compares two layouts", given.against)
            words, picture = difference_text(first, second), draw.difference(first, second)
        else:
            words = draw.text(_layout(value), given.view, given.show)
            wanted = given.svg or given.json or file is not None
            picture = draw.svg(_layout(value), given.view, given.show) if wanted else ""
        if file is not None:
            put_into(file, picture + "\n")
        if given.json:
            say_json({"schema": PICTURE, "text": words, "svg": picture})
        elif given.svg:
            say(picture)
        elif file is None:
            say(words)
    return PROVED


def _drawable(argument: str, given: commands.Draw, dtype: str | None) -> Written | Solved | Verdict:
    """The layout, proved plan or verdict on a pipeline that an argument stands for, or why there is none."""
    subject = read_subject(argument)
    if subject.kind == "text":
        return written_in(str(subject.value), given.shape, dtype)
    if subject.kind == "dump":
        raise malformed("subject", "map bytes cannot be drawn: draw the plan, or use layoutalg explain")
    if isinstance(subject.value, dict) and str(subject.value.get("schema", "")).startswith("layoutalg/pipeline/"):
        return pipeline.verify(subject.value, given.target)
    return solved(subject.value, given.budget)


def _layout(value: object) -> Any:
    """The layout of a written value, or the plan itself."""
    return value.layout if isinstance(value, Written) else value


def _draw_answer(layout: object, consumer: str, given: commands.Draw) -> tuple[str, str]:
    """The answer of a consumer about a layout, as text and as a picture."""
    found = admissible(layout, consumer, given.target, given.dtype, tile=given.shape, seconds=given.budget)
    if isinstance(found, Unknown):
        return str(found), draw.bundle(found)["image/svg+xml"]
    return str(found), draw.admission(_layout(layout), found)


def _say_refusal(answer: Answer, as_json: bool) -> int:
    result, lines, code = answer
    if as_json:
        say_json(result)
    else:
        say("\n".join(lines))
    return code


def run_emit(given: commands.Emit) -> int:
    """Write the text (for ``raw``, the bytes) of a plan, a problem or the digits of a map; of a matrix product."""
    if given.what == "gemm":
        return _emit_product(given)
    for name in PRODUCT_OPTIONS:
        if getattr(given, name) is not None:
            raise malformed(f"--{name.replace('_', '-')}", "is for emit gemm", getattr(given, name))
    if len(given.subject) > 1:
        raise malformed("subject", f"must be one for {given.what}", " ".join(given.subject))
    with clock.within(given.budget), answer_file(given.output) as file:
        clock.check("a document")
        subject = read_subject(given.subject[0])
        if subject.kind == "text":
            raise malformed(
                "subject",
                "must be a plan, a problem or a dump of a map (layoutalg synth tensormap plans a layout)",
                subject.value,
            )
        found: Solved | TensorMap
        if subject.kind == "dump":
            found = _decoded(subject.value, given.target, given.documented_only)
        else:
            found = solved(subject.value, given.budget, given.documented_only)
        if isinstance(found, tuple):
            return _say_refusal(found, given.json)
        if given.base_address is not None and (given.what not in ("bytes", "raw") or isinstance(found, OperandPlan)):
            raise malformed("--base-address", "is for emit bytes and emit raw of a tensor map", given.base_address)
        made = _raw(given, found) if given.what == "raw" else _text(given, found)
        if file is not None:
            put_into(file, made)
        if given.json:
            say_json({"schema": EMITTED, "what": given.what, "text": made if isinstance(made, str) else made.hex()})
        elif file is None and isinstance(made, str):
            say(made.rstrip("\n"))
        elif file is None and isinstance(made, bytes):
            if sys.stdout is not None and sys.stdout.isatty():
                raise malformed("--output", "raw bytes cannot go to a terminal: use -o FILE or emit a C array (bytes)")
            put_bytes(made)
    return PROVED


def _emit_product(given: commands.Emit) -> int:
    """Write a matrix product; what a launch needs goes before the text, and with a file also to standard output."""
    if given.documented_only:
        raise malformed("--documented-only", "is for plans", "gemm")
    with clock.within(given.budget), answer_file(given.output) as file:
        clock.check("a product")
        options = {name: getattr(given, name) for name in PRODUCT_OPTIONS if name != "form"}
        stated = {name: value for name, value in options.items() if value is not None}
        made = gemm_kernel(
            _extents(given.subject), target=given.target, form=_form(given.form), name=given.name, **stated
        )
        lines = _launch_lines(made)
        text = "\n".join([*[f"// {line}" for line in lines], made.kernel.text])
        if file is not None:
            put_into(file, text)
        if given.json:
            say_json({"schema": EMITTED, "what": given.what, "text": made.kernel.text} | _launch_document(made))
        else:
            say(text.rstrip("\n") if file is None else "\n".join(lines))
    return PROVED


def _extents(words: list[str]) -> tuple[int, ...]:
    if len(words) != 3 or not all(word.isascii() and word.isdecimal() and len(word) < 19 for word in words):
        raise malformed("subject", "must be M N K for gemm, such as 4096 4096 4096", " ".join(words))
    return tuple(map(int, words))


def _form(stated: tuple[tuple[str, int], ...] | None) -> Form | None:
    if stated is None:
        return None
    known, names = [entry.name for entry in fields(Form)], [name for name, _ in stated]
    if len(set(names)) < len(names) or not {"rows", "columns"} <= set(names) <= set(known):
        rule = f"must state rows and columns, and may state {', '.join(known[2:])}, each once"
        raise malformed("--form", rule, ",".join(f"{name}={value}" for name, value in stated))
    options: dict[str, Any] = dict(stated)
    if "swizzle" in options:  # its span
        options["swizzle"] = f"{options['swizzle']}B"
    return Form(**options)


def _launch_lines(made: MatmulKernel) -> list[str]:
    """What the text does, its launch and the proof of its pipeline, a line each."""
    kernel, form, (m, n, k) = made.kernel, made.form, made.shape
    clusters = f", a multiple of {form.ctas}" if form.ctas > 1 else ""
    arrays = [f"{array.name.upper()} {' x '.join(map(str, array.shape))}" for array in made.arrays]
    proof = _proof(made)
    return [
        f"kernel        {kernel.name} for {kernel.arch}: D[{m}, {n}] = A[{m}, {k}] B[{n}, {k}]^T",
        f"form          tiles of {form.rows} x {form.columns}, {form.consumers} consumer warpgroups, "
        f"{form.stages} stages, cluster {form.ctas}" + f", K split among {form.split}" * (form.split > 1),
        f"launch        up to {made.blocks} blocks{clusters}; {kernel.threads} threads, "
        f"{kernel.dynamic_smem_bytes} bytes of dynamic shared memory",
        f"arguments     {', '.join(name for _, name in kernel.parameters)}: blocks is the grid; status has an int per "
        "block, 1 on success",
        f"arrays        {', '.join(arrays)}, row-major, at multiples of {made.arrays[0].align_bytes} bytes",
        f"pipeline      {proof.certificate['claim']}, proved by {proof.engine}",
        *[f"{name:<14}{raw.hex()}" for name, raw in zip(MAPS, made.maps, strict=True)],
    ]


def _proof(made: MatmulKernel) -> Proved:
    """The proof of a product's pipeline, without which there is no product."""
    return cast(Proved, made.emitted.proof)


def _launch_document(made: MatmulKernel) -> dict[str, object]:
    """The same as JSON."""
    kernel = made.kernel
    launch = {
        "kernel": kernel.name,
        "blocks": made.blocks,
        "cluster": made.form.ctas,
        "threads": kernel.threads,
        "dynamic_smem_bytes": kernel.dynamic_smem_bytes,
        "parameters": [list(parameter) for parameter in kernel.parameters],
        "maps": {name: raw.hex() for name, raw in zip(MAPS, made.maps, strict=True)},
    }
    return {"launch": launch, "proof": _proof(made).to_json()}


def _decoded(dump: Any, target: str, documented_only: bool) -> TensorMap | Answer:
    """The map of a dump, or the answer that it breaks documented rules."""
    if isinstance(dump, str) and is_call(dump):
        tm = cast(TensorMap, diagnose(dump, target).tensor_map)
    else:
        tm = decode(dump if isinstance(dump, bytes) else read_map(dump, target).raw, target=target)
    broken = violations(tm, target=target, evidence="documented") if documented_only else ()
    if not broken:
        return tm
    rules = ", ".join(entry.rule for entry in broken)
    verdict = Refuted("rules", {"what": "the map breaks the documented text", "rules": rules})
    answer: dict[str, object] = {"schema": VERDICT_SCHEMA, "verdict": "refuted", "witness": dict(verdict.witness)}
    return answer, str(verdict).split("\n"), REFUTED


def _text(given: commands.Emit, value: TensorMapPlan | OperandPlan | TensorMap) -> str:
    if given.what in EXPORT_FORMS:
        return export(value, given.what, given.name, given.target)
    if isinstance(value, OperandPlan):
        if given.what != "bytes":
            raise malformed(
                "what", "must be bytes, raw or the form of another system for wgmma descriptors", given.what
            )
        return descriptor_table(value, given.name or "descriptors")
    if given.what == "host":
        return host_map(value, given.name or "make_tensor_map")
    if given.what == "bytes":
        return map_bytes(value, given.name or "tensor_map", given.target, given.base_address)
    if isinstance(value, TensorMap):
        raise malformed("what", "must be host, bytes or raw for a bare map: a kernel needs the plan", given.what)
    return (load_kernel if value.direction == "load" else store_kernel)(value, given.name).text


def _raw(given: commands.Emit, value: TensorMapPlan | OperandPlan | TensorMap) -> bytes:
    if isinstance(value, OperandPlan):
        return b"".join(tile.encoded.to_bytes(8, "little") for tile in value.tiles)
    return raw_map(value, given.target, given.base_address)
