"""Answers about instructions follow the JSON Schemas that they name, and a changed answer does not."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import json
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import jsonschema
import numpy as np
import pytest
from judges.pipeline_programs import plain as plain_ring

import layoutalg as la
from layoutalg.cli.schemas import schema_names, schema_text
from layoutalg.codegen.product import ProductReport
from layoutalg.codegen.validation import ValidationReport
from layoutalg.codegen.variants import VariantReport, VariantRow
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import plain
from layoutalg.ground.record import Record
from layoutalg.ground.refusal import Broken
from layoutalg.pipeline import throughput
from layoutalg.proofs.im2col import ConvolutionProblem
from layoutalg.proofs.indirect import Lifetimes, Paged, Routing
from layoutalg.proofs.movement import term
from layoutalg.proofs.ragged_clip import ClipPlan
from layoutalg.proofs.symbolic.checker import prove as prove_symbolic
from layoutalg.proofs.tensor import Tensor
from layoutalg.synth import (
    InadmissibleError,
    InadmissibleOperandError,
    SymbolicProblem,
    TensorMapProblem,
    factorise,
    joint,
    synthesize_ragged,
    synthesize_symbolic,
    synthesize_tensormap,
    universal_swizzle,
)
from layoutalg.synth.conversions import conversion
from layoutalg.synth.im2col import synthesize_im2col
from layoutalg.synth.indirect import paged_choice
from layoutalg.synth.rewrite import rewrite
from layoutalg.synth.search import Trial, Tuned
from layoutalg.synth.search.campaign import Campaign, Counterexample
from layoutalg.synth.solving import AtLeast, Multiple, least_padding, least_repairs, map_conflicts, nearest_map
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets import model_of
from layoutalg.targets.layouts.amd_instructions import mfma_fragment
from layoutalg.targets.layouts.nvidia import mma_operand
from layoutalg.targets.nvidia import tcgen05, tensormap, wgmma
from layoutalg.targets.registry import TARGETS

SCHEMAS = {name: json.loads(schema_text(name)) for name in schema_names()}
CONVOLUTION = ConvolutionProblem(Tensor((2, 8, 8, 64)), filter=(3, 3), pixels=32, channels=64, padding=(1, 1))
REGISTERS = LinearLayout.from_bases({"register": [(8,), (16,)], "lane": [(2,), (1,), (4,)]}, {"offset": 32})


OPERAND = mma_operand("A", (32, 32), (2, 1), 2)
HELD = LinearLayout.from_bases(
    {"register": [(0, 1), (0, 2), (0, 4)], "lane": [(1, 0), (2, 0), (4, 0), (8, 0), (16, 0)],
     "warp": [(32, 0), (64, 0)]},
    {"row": 128, "col": 8},
)  # fmt: skip
ILLEGAL = tensormap.TensorMap("bf16", (512, 1024), (1026,), (64, 64), swizzle="64B")
PROBLEM = TensorMapProblem.of(((64, 100), (100, 1), "bf16"), (64, 64), "(64,64):(64,1)")
NAMED = Tensor(("M", "K"), assume=("K % 8 == 0",))


def swapped() -> Any:
    """Two parts of an operand in exchanged order behind the 32B swizzle."""
    part = np.arange(64)[:, None] * 16 + np.arange(16)
    places = 2 * np.concatenate([part + 2048, part], axis=1)
    return (places ^ (places >> 7) % 2 << 4) // 2


def answers() -> Iterator[Any]:
    """Answers of every class of answers."""
    for text in ("Sw<3,3,3> o 0 o (64,64):(64,1)", "(64,64):(65,1)", "(64,64):(1,64)"):
        for consumer in ("tma", "tma.store", "wgmma.A", "wgmma.B", "ldmatrix.x4", "stmatrix.x2", "cp.async", "bulk"):
            for dtype in ("bf16", "f32"):
                yield la.admissible(text, consumer, dtype=dtype)
    yield la.admissible(np.arange(1024).reshape(8, 128)[[3, 1, 0, 2, 4, 5, 6, 7]], "tma", dtype="u8")
    yield factorise(REGISTERS)
    yield swizzle([HELD])
    yield conversion("(32,4):(4,1)", "(32,4):(1,32)", 16, exhaustive=True)
    for axis in (0, 1):
        yield la.gather(HELD, HELD, axis, 16, mechanism=None if axis else "shared")
    yield swizzle(["rows", "columns"], tile=(64, 64), form="xor")
    yield joint((64, 64), "bf16", ["wgmma.A", "ldmatrix.x4.trans", "ld.shared.v4.b32"])
    yield synthesize_im2col(CONVOLUTION)
    yield la.admissible(OPERAND, "mma.m16n8k16.f32.bf16.A")
    yield la.admissible(wgmma.register_layout("s8"), "wgmma.A.registers", dtype="s8")
    yield la.admissible(swapped(), "wgmma.A")
    yield la.admissible(mfma_fragment("v_mfma_f32_32x32x8_f16", "A", "gfx942"), "mfma.v_mfma_f32_32x32x8_f16.A",
                        "gfx942", "f16")  # fmt: skip
    yield la.admissible("(64,64):(64,1)", "ds_read_b128", "gfx942")
    yield la.admissible("(64,64):(64,1)", "ds_write_b64", "gfx942")
    yield la.admissible("(64,64):(64,1)", "buffer_load_dwordx4_lds", "gfx950")
    yield la.admissible("Sw<3,3,3> o 0 o (64,64):(64,1)", "tcgen05.A", "sm_100a")
    yield la.admissible(tcgen05.scale_layout(128, 4), "tcgen05.scale", "sm_100a", "ue8m0")
    yield la.admissible(HELD, "tcgen05.D", "sm_100a", "f32")
    yield la.admissible("(64,64):(64,1)", "tma", "sm_100a")  # not measured, so unknown
    yield la.tensormap(((1024, 512), None, "bf16"), (64, 64), target="sm_100a")
    yield tcgen05.InstructionDescriptor("f16", 128, 256, "bf16", "bf16", "f32")
    yield tcgen05.TmemAccess("32x32b", 4, 1, 32)
    for arch in TARGETS:
        model = model_of(arch)
        yield from (model, model.limit("lanes"), model.limit("nothing"), model.consumer("tma"), model.consumer("mfma"))
    yield from tensormap.versions.accepted_since(ILLEGAL, "sm_100a")
    yield tensormap.diagnose(ILLEGAL)
    yield nearest_map(ILLEGAL)
    yield from map_conflicts(ILLEGAL)
    yield least_padding(["p"], [Multiple((("p", 1),), 16, 0), AtLeast((("p", 1),), 100)])
    yield from (la.padding((24, 72), ["rows", "ldmatrix"]), la.padding((8, 8), "rows", form="interval"))
    yield universal_swizzle(8, 128, ["columns", "phases"])
    yield from least_repairs(PROBLEM)[:2]
    for strategy in ("auto", "exact_pool", "overlap_pool", "shift_back", "descriptors", "overfetch"):
        yield synthesize_ragged(Tensor((1024, 512)), (64, 64), strategy=strategy)
    clipped = ClipPlan.of(synthesize_tensormap(TensorMapProblem.of(Tensor((1024, 512)), (64, 64), "(64,64):(64,1)")), 0)
    yield from (clipped, la.ragged(Tensor((1024, 512)), [70, 0, 64], (64, 64), multiple=2))
    plan = synthesize_symbolic(SymbolicProblem.of(NAMED, (64, 64)))
    yield plan
    yield prove_symbolic(plan)
    yield la.wgmma("A", "bf16", smem="Sw<3,3,3> o 0 o (64,64):(64,1)")
    yield la.suggest(Tensor((4096, 8192)), (128, 64))
    yield la.pipeline.schedule(la.pipeline.gemm_work(m=128, n=128, k=64, dtype="bf16", consumers=2))
    yield rewrite(term("transpose", term("input", name="A", shape=(4, 8), dtype="f32"), order=(0, 1)))
    yield throughput(plain_ring(3), {"tma_load": 100.5, "mma": 7})
    yield la.explain("Sw<3,3,3> o 0 o (64,64):(64,1)")
    yield from (Routing([[2, 0], [0, 1]], 4, 2), Routing([3, 0], 4, 1, (0, 1)))
    yield from (Paged([3, 1, 3], 16, 8, 128, 2, "HND", 40), Paged([0], 4, 1, 64, 2))
    yield Lifetimes.of([("s", "allocate", "page 0"), ("s", "use", "page 0")])
    yield paged_choice(Paged([3, 1], 16, 8, 128, 2))
    yield la.banks(mma_operand("A", (16, 16), (1, 1), 2), "(16,16):(16,1)")
    for rows in (20, 32):
        yield la.transactions("(32,4):(1,32)", ((rows, 2048), "bf16"), tile=(32, 4))
    for other in ("(2,2):(1,2)", "(2,2):(2,1)"):
        yield la.equivalent(la.parse("4:1"), la.parse(other))
    yield la.certify.equality(la.parse("4:1"), la.parse("(2,2):(1,2)"))
    yield Broken("STRIDE_ALIGN", "a pitch is not a multiple of 16 bytes", {"coordinate": (1, 0)})
    yield ProductReport("host", None, (64, 64, 64), (0, 1, 2.0, 3.0), "", 0.25)
    yield ValidationReport("host", "", None, ((0, 0),), 8192, None, None, 0.5)
    yield Campaign("ragged", 1, 20, 16, (Counterexample(7, "rows are missed or repeated"),), 0.5)
    yield Tuned(
        (Trial({"rows": 64}, 2.0, "mma", 1.5), Trial({"rows": 128}, 3.0, "hbm", None, "no such register", True)), 2, 1
    )
    yield VariantReport(
        3, 1, (VariantRow("n % 8 == 0", "ready", "cache", 2, 3700, 0.25), VariantRow("n <= 8", "waiting"))
    )
    for problem in (PROBLEM, dataclasses.replace(PROBLEM, smem_modes=(((64, 1),), ((64, 64),)), swizzle="128B")):
        try:
            synthesize_tensormap(problem)
        except InadmissibleError as error:
            yield error
    with pytest.raises(InadmissibleOperandError) as refused:
        la.wgmma("A", "bf16", smem="(64,64):(64,1)")
    yield refused.value


@functools.cache
def told() -> tuple[tuple[str, dict[str, Any]], ...]:
    """The class and the document of every answer, and of the answers that are fields of another."""
    return tuple(
        (type(one).__name__, json.loads(json.dumps(plain(one.to_json()))))
        for answer in answers()
        for one in inside(answer)
        if names_a_schema(type(one))
    )


def names_a_schema(kind: type) -> bool:
    """Whether documents of a class stand alone; the others are parts of one, whose schema describes them."""
    stated = kind._constants if issubclass(kind, Record) else {}
    return "schema" in stated or (not stated and "schema" in inspect.getsource(kind.to_json).lower())


def inside(value: object) -> Iterator[Any]:
    """A value and what its fields hold, as far as it has a document."""
    if hasattr(value, "to_json"):
        yield value
    if dataclasses.is_dataclass(value):
        for entry in dataclasses.fields(value):
            yield from inside(getattr(value, entry.name))
    elif isinstance(value, tuple | list):
        for entry in value:
            yield from inside(entry)


def parts(document: object) -> Iterator[dict[str, Any]]:
    """A document and those inside it that name a schema; certificates have tests of their own."""
    if isinstance(document, dict):
        if str(document.get("schema")).startswith("layoutalg/") and "/certificate/" not in document["schema"]:
            yield document
        for value in document.values():
            yield from parts(value)
    elif isinstance(document, list):
        for value in document:
            yield from parts(value)


def validate(document: dict[str, Any]) -> str:
    name = str(document["schema"]).split("/")[1]
    assert document["schema"] == SCHEMAS[name]["$id"]
    _validator(name).validate(document)
    return name


@functools.cache
def _validator(name: str) -> Any:
    return jsonschema.Draft202012Validator(SCHEMAS[name])


WRITTEN_ELSEWHERE = {
    "demo", "emitted", "error", "layout", "picture", "real-tiles", "schemas",  # by the command line, and tested there
    "certificate", "pipeline", "tensormap-problem", "wgmma-problem", "driver-call",
    "variant",  # an entry of a folder of compiled kernels
}  # fmt: skip


def test_answers_follow_their_schemas():
    seen: dict[str, dict[str, Any]] = {}
    for name, document in told():
        assert str(document["schema"]).startswith("layoutalg/"), name
        for part in parts(document):
            seen[validate(part)] = part
    assert {*seen, *WRITTEN_ELSEWHERE} == set(SCHEMAS)
    for name, part in seen.items():  # a name too many, a name too few
        if not {"additionalProperties", "oneOf"} & set(SCHEMAS[name]):
            continue  # explanations hold the facts of their kind
        with pytest.raises(jsonschema.ValidationError):
            validate({**part, "surplus": 0})
        for key in part.keys() - {"schema"}:
            if key in SCHEMAS[name].get("required", ()):
                with pytest.raises(jsonschema.ValidationError):
                    validate({other: value for other, value in part.items() if other != key})


def library() -> Iterator[Any]:
    """Every module of the library that answers questions."""
    for found in pkgutil.walk_packages(la.__path__, "layoutalg."):
        folder = found.name.split(".")[1]
        if folder in ("synth", "targets", "proofs", "codegen", "ask", "ground", "cli") and "__main__" not in found.name:
            yield importlib.import_module(found.name)


NO_ANSWERS = {"TensorMapProblem", "SymbolicProblem", "OperandProblem", "Pipeline"}
"""Questions with a document: their schemas are tested where they are read."""
VALUES = {
    "Idea": "a changed request, asked again",
    "ComposedLayout": "layout", "CuteLayout": "layout", "LinearLayout": "layout", "PiecewiseLayout": "layout",
    "ListedLayout": "layout", "Layout": "layout", "PaddedShared": "layout", "Function": "the document of a layout",
    "Swizzle": "layout",
    "TensorMap": "its 128 bytes", "Im2colMap": "its 128 bytes", "MatrixDescriptor": "its 64 bits",
    "Kind": "fact", "Multiply": "fact", "ReadPattern": "fact", "Target": "fact", "Law": "law",
    "Patch": "line of PTX", "Reading": "bytes", "KernelSource": "source text", "ArrayKernel": "source text",
    "RaggedKernel": "source text", "GroupedKernel": "source text", "SpanKernel": "source text",
    "MatmulKernel": "source text", "Space": "question", "AttentionKernel": "source text", "Emitted": "source text",
    "Form": "argument of a kernel", "Work": "argument of a schedule", "DeviceInfo": "device",
    "AttentionOptions": "arguments of a kernel", "WgmmaTiles": "argument of a kernel", "IndirectKernel": "source text",
    "PagedBatch": "sequences, each a document",
    "Move": "names of instructions", "Multiple": "condition, as it was given", "AtLeast": "condition, as it was given",
    "Spread": "condition, as it was given",
}  # fmt: skip
"""What public functions return that is no answer, and what it is: its notation or its bits are its document."""


def test_every_class_with_a_document_is_among_the_answers():
    written = {
        name
        for module in library()
        for name, value in vars(module).items()
        if inspect.isclass(value) and value.__module__ == module.__name__
        if ("to_json" in vars(value) or issubclass(value, Record)) and names_a_schema(value)
    }
    assert written == {name for name, _ in told()} | NO_ANSWERS


def test_every_schema_that_the_sources_name_is_shipped():
    root = Path(la.__file__).parent
    folders = [root / "ask", root / "cli", root / "ground"]
    folders += [root / name for name in ("synth", "targets", "proofs", "codegen")]
    named = {
        found
        for folder in folders
        for path in folder.resolve().rglob("*.py")
        for found in re.findall(r"\blayoutalg/([a-z0-9-]+)/[0-9]\b", path.read_text(encoding="utf-8"))
    }
    assert named - {"tests"} <= set(SCHEMAS)


def returned(function: Any) -> set[type]:
    """The library's classes in what a function returns, by its annotation."""
    words = re.findall(r"[A-Za-z_]\w*", str(inspect.signature(function).return_annotation))
    space = vars(importlib.import_module(function.__module__))
    waiting, found = [space[word] for word in words if word in space], set()
    while waiting:
        one = waiting.pop()
        waiting += get_args(one)
        if inspect.isclass(one) and one.__module__.startswith("layoutalg"):
            found.add(one)
    return found


def test_every_public_function_returns_an_answer_with_a_document_or_a_value():
    missing, used = {}, set()
    for module in (la, *library()):
        for name in getattr(module, "__all__", ()) if hasattr(module, "__path__") else ():
            value = getattr(module, name)
            if not inspect.isfunction(value) or ".laws" in module.__name__ or ".ground" in module.__name__:
                continue
            for answer in returned(inspect.unwrap(value)):
                used.add(answer.__name__)
                alone = hasattr(answer, "to_json") and (
                    names_a_schema(answer) or answer.__name__ in ("Violation", "Certificate")
                )
                if not alone and answer.__name__ not in VALUES:
                    missing[f"{module.__name__}.{name}"] = answer.__name__
    assert not missing
    assert {"Admitted", "Refused", "Unknown", "JointPlan", "NearestMap", "Conflict", "TargetModel"} <= used


def test_an_answer_cannot_be_of_two_minds():
    refused = json.loads(json.dumps(plain(la.admissible("(64,64):(65,1)", "tma").to_json())))
    admitted = json.loads(json.dumps(plain(la.admissible("Sw<3,3,3> o 0 o (64,64):(64,1)", "tma").to_json())))
    assert (refused["verdict"], admitted["verdict"]) == ("refused", "admitted")
    for one, other in ((refused, admitted), (admitted, refused)):
        with pytest.raises(jsonschema.ValidationError):
            validate({**one, "verdict": other["verdict"]})
    with pytest.raises(jsonschema.ValidationError):
        validate({**admitted, "rules": ["X"]})
