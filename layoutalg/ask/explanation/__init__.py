"""Explain a value, a text, a dump of descriptor bytes or a document: what it is and what the hardware does with it.

Implementation notes: a plan is checked before anything is said about it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from layoutalg.ask.facts import CHECK, Fact, layout_facts, said
from layoutalg.ask.tile_facts import tile_facts
from layoutalg.cute import Swizzle
from layoutalg.ground import clock
from layoutalg.ground.document import malformed
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError
from layoutalg.ground.layout import Layout
from layoutalg.ground.lazy import door, named_for
from layoutalg.ground.picture import Shown
from layoutalg.notation import TTGIR_AHEAD, is_kernel, parse
from layoutalg.notation.printout import TILED_AHEAD
from layoutalg.notation.written import is_written, read_written, unit_hint
from layoutalg.proofs.dtypes import ElementType, stated_type
from layoutalg.targets.dumps import is_dump
from layoutalg.targets.layouts.padding import PaddedShared
from layoutalg.targets.nvidia.tensormap import MAP_BYTES
from layoutalg.targets.nvidia.tensormap.texts import is_call
from layoutalg.targets.registry import TARGETS

SCHEMA = "layoutalg/explanation/1"
READS = "layoutalg/tensormap-problem/1, tensormap-plan/1, wgmma-problem/1, wgmma-plan/1 and pipeline/1"
_MATRIX = re.compile(r"\s*0[xX]([0-9a-fA-F]{1,16})(?:[uU]?(?:ll|LL|[lL])?)\s*")
"""A matrix descriptor as C or Python write it; no layout begins like this."""
_EXPLAINED = {
    "layoutalg.targets.nvidia.tensormap.fields.TensorMap": ("descriptor", "map_facts"),
    "layoutalg.targets.nvidia.wgmma.descriptor.MatrixDescriptor": ("descriptor", "matrix_facts"),
    "layoutalg.targets.nvidia.tcgen05.descriptor.MatrixDescriptor": ("descriptor", "matrix_facts"),
    "layoutalg.proofs.tensormap.plan.TensorMapPlan": ("plan", "plan_facts"),
    "layoutalg.proofs.tensormap.probe.TensorMapProbe": ("plan", "probe_facts"),
    "layoutalg.proofs.wgmma.operand.OperandPlan": ("plan", "plan_facts"),
    "layoutalg.proofs.tensormap.problem.TensorMapProblem": ("problem", "problem_facts"),
    "layoutalg.proofs.wgmma.operand.OperandProblem": ("problem", "problem_facts"),
    "layoutalg.ask.bank_turns.BankReport": ("answer", "bank_facts"),
    "layoutalg.ask.global_sectors.TransactionReport": ("answer", "transaction_facts"),
    "layoutalg.proofs.swizzling.SwizzlePlan": ("answer", "checked_facts"),
    "layoutalg.proofs.padding.PaddingPlan": ("answer", "checked_facts"),
    "layoutalg.proofs.universal.ClassPlan": ("answer", "checked_facts"),
    "layoutalg.proofs.conversion.ConversionPlan": ("answer", "checked_facts"),
    "layoutalg.proofs.gather.GatherPlan": ("answer", "checked_facts"),
    "layoutalg.codegen.kernels.answer.ArrayKernel": ("answer", "array_kernel_facts"),
    "layoutalg.proofs.tensor.Tensor": ("tensor", "tensor_facts"),
    "layoutalg.proofs.pipeline.document.Pipeline": ("pipeline", "ledger"),
    "layoutalg.notation.tiled.PrintedTiling": ("tiling", "tiling_facts"),
}
"""By the name of a type that is no layout: the kind of its explanation, and the function that finds the facts."""
_DOCUMENTS = {
    "layoutalg/tensormap-problem": "TensorMapProblem",
    "layoutalg/tensormap-plan": "TensorMapPlan",
    "layoutalg/wgmma-problem": "OperandProblem",
    "layoutalg/wgmma-plan": "OperandPlan",
    "layoutalg/pipeline": "Pipeline",
}
"""By the schema of a document, without its version: its type."""
_found, _ = door(
    __name__,
    {
        "layoutalg.ask.explanation.answers": "array_kernel_facts bank_facts checked_facts transaction_facts",
        "layoutalg.ask.explanation.descriptors": "bytes_facts call_facts dump_facts map_facts matrix_facts word_facts",
        "layoutalg.ask.kernel_lines": "kernel_facts",
        "layoutalg.ask.explanation.pipelines": "ledger",
        "layoutalg.ask.explanation.plans": "plan_facts probe_facts problem_facts tensor_facts",
        "layoutalg.ask.explanation.texts": "listing_facts tiling_facts",
        "layoutalg.ask.places": "place_facts tiling_places",
        "layoutalg.notation.tiled": "read_tiled",
        "layoutalg.notation.ttgir": "layouts_of",
        "layoutalg.proofs.pipeline.document": "Pipeline",
        "layoutalg.proofs.tensormap": "TensorMapPlan TensorMapProblem",
        "layoutalg.proofs.wgmma": "OperandPlan OperandProblem",
    },
)
"""What only some explanations need: they load for these alone."""


@dataclass(frozen=True, slots=True)
class Explanation(Shown):
    """Facts about one thing, in order.

    Args:
        kind: ``"layout"``, ``"listing"``, ``"tensor"``, ``"descriptor"``, ``"plan"``, ``"problem"``, ``"answer"``,
            ``"pipeline"``, ``"tiling"``, ``"kernel"``.
        facts: (name, lines) pairs, as ``str`` shows them.
        data: The same for programs: names to JSON-ready values.
        holds: False for a refuted plan, a problem without a plan and a pipeline that is not proved.
    """

    kind: str
    facts: tuple[tuple[str, tuple[str, ...]], ...]
    data: Mapping[str, object] = field(hash=False)
    holds: bool = True

    def __str__(self) -> str:
        lines = []
        for name, texts in self.facts:
            lines += [f"{'' if index else name:<15} {text}" for index, text in enumerate(texts)]
        return "\n".join(lines)

    def __getitem__(self, name: str) -> object:
        return self.data[name]

    def to_json(self) -> dict[str, object]:
        """Return the facts as JSON-ready data, schema ``layoutalg/explanation/1``."""
        return {"schema": SCHEMA, "kind": self.kind, "holds": self.holds, **self.data}


def explain(
    value: object,
    dtype: object = None,
    target: str = "sm_90a",
    shape: Sequence[int] | None = None,
    at: Sequence[int] | None = None,
) -> Explanation:
    """Explain what a layout does and which hardware feature can carry it, what descriptor bytes say, what a plan does.

    Args:
        value: A layout of any family or its text; a kernel in TTGIR, which is explained line by line; types in TTGIR,
            which are listed; a tiled copy or matrix instruction as CuTe prints it; a ``Tensor``; 128 descriptor bytes,
            or a dump of them as ``layoutalg.targets.dumps`` reads it; a call of ``cuTensorMapEncodeTiled`` in C++; a
            matrix descriptor of ``wgmma`` or ``tcgen05`` (by the target), or its 64 bits as ``0x...``; a problem or
            plan of a TensorMap or a ``wgmma`` operand, or its document; an answer of ``banks``, ``transactions``,
            ``swizzle``, ``padding``, ``gather`` or ``conversion``, a universal swizzle, a kernel that moves an array; a
            pipeline or its document.
        dtype: Element type of a layout, by any library's name; None for that of the text, or bf16.
        target: Architecture; for descriptors, one with tensor maps.
        shape: Extents, outermost first: of the tensor, for a ``#ttg`` attribute without sizes; of the tile, for a
            layout of one flat coordinate, first dimension fastest.
        at: Coordinates of an element, outermost dimension first: the threads and registers that hold it, or its offset
            in memory, come first. For layouts and tiled copies or matrix instructions.

    Raises: MalformedError: LA010, LA414, LA806, LA989, and those of ``parse``. BudgetError: LA001.

    Example:
        >>> told = explain("Sw<3,4,3> o 0 o (64,64):(64,1)")
        >>> told["hint"]
        'Sw<3,4,3> counts elements here. Printed over smem_ptr it counts bytes (128B), on 16-bit elements Sw<3,3,3>'
        >>> explain("F2[register=(0,1), lane=(1,0)(2,0)(4,0) -> dim0:8, dim1:2]", at=(5, 1)).facts[0][1]
        ('(5, 1): thread 5 (lane 5), register 1',)
        >>> print(explain("(4,8):(1,4)", "f32"))  # doctest: +ELLIPSIS
        layout          (4,8):(1,4)
        family          CuTe shape:stride
        size            32 elements, offsets below 32
        ...
        >>> from layoutalg.ask.bank_turns import banks
        >>> print(explain(banks("(32,4):(4,1)")))
        banks           1 x ld.shared.v2.b32: 2 turns, free of bank conflicts
        note            read as (thread, value) -> element offset; for a tile in shared memory: \
banks("ldmatrix", "(32,4):(4,1)")
        why             ld.shared.v2.b32 of sm_90a: 8 bytes a lane, 2 groups of 16 lanes, 32 banks (measured)
                        none of its 2 phases has a conflict
        words per bank  11111111111111111111111111111111 lanes 0-15
                        11111111111111111111111111111111 lanes 16-31
    """
    CHECK.choice(target, "target", TARGETS)
    extents = None if shape is None else CHECK.vector(shape, "shape")
    if at is not None:
        return _at(value, dtype, target, extents, CHECK.vector(at, "at"))
    clock.check("an explanation")
    if isinstance(value, bytes):
        if len(value) != MAP_BYTES:
            raise CHECK.malformed("value", "must be 128 bytes for a descriptor", f"{len(value)} bytes")
        return _made("descriptor", _lazily("bytes_facts", value, target))
    if isinstance(value, str):
        if found := _MATRIX.fullmatch(value):
            return _made("descriptor", _lazily("word_facts", int(found[1], 16), target))
        if is_call(value):
            return _made("descriptor", _lazily("call_facts", value, target))
        if is_dump(value):
            return _made("descriptor", _lazily("dump_facts", value, target))
        if TILED_AHEAD.match(value):
            return _made("tiling", _lazily("tiling_facts", _lazily("read_tiled", value), target))
        if is_kernel(value):
            return _made("kernel", _lazily("kernel_facts", value, target))
        if TTGIR_AHEAD.match(value) and len(listed := _lazily("layouts_of", value)) > 1:
            return _made("listing", _lazily("listing_facts", listed))
        return _of_layout(_parsed(value, extents), _dtype(dtype, value), target, extents)
    if is_written(value):
        return _of_layout(read_written(value, extents).layout, _dtype(dtype, value), target, extents)
    if isinstance(value, Layout | PaddedShared | Swizzle):
        return _of_layout(value, _dtype(dtype, None), target, extents)
    if isinstance(value, Mapping):
        value = _document(dict(value))
    if known := named_for(value, _EXPLAINED):
        kind, facts = known
        return _made(kind, _lazily(facts, value, target))
    if (found := read_written(value, extents).layout) is not value:
        return _of_layout(found, _dtype(dtype, value), target, extents)
    readable = (
        "a layout, a tensor, a plan, a problem, an answer about banks, transactions, swizzles, paddings, gathers or "
        "conversions, a kernel, a pipeline, descriptor bytes, or the text or document of one of these"
    )
    raise CHECK.malformed("value", f"must be {readable}", value)


def _at(value: object, dtype: object, target: str, shape: tuple[int, ...] | None, at: tuple[int, ...]) -> Explanation:
    """Return an explanation that begins with the places of an element."""
    told = explain(value, dtype, target, shape)
    if told.kind == "tiling":
        found = _lazily("tiling_places", _lazily("read_tiled", value) if isinstance(value, str) else value, at)
    elif told.kind == "layout":
        layout = _parsed(value, shape) if isinstance(value, str) else read_written(value, shape).layout
        found = _lazily("place_facts", layout, at, _dtype(dtype, value if isinstance(value, str) else None).bits, shape)
    else:
        raise CHECK.malformed("at", f"must be None for a {told.kind}: it is for layouts", at)
    ahead = _made(told.kind, found)
    return Explanation(told.kind, ahead.facts + told.facts, {**ahead.data, **told.data}, told.holds)


def _lazily(name: str, *arguments: Any) -> Any:
    """Call what only some explanations need."""
    return cast(Callable[..., Any], _found(name))(*arguments)


def _made(kind: str, told: Iterable[Fact] | tuple[Sequence[Fact], Mapping[str, object]]) -> Explanation:
    """Return the explanation of facts, or of facts and their data if these are not those of each."""
    facts, data = told if isinstance(told, tuple) else (list(told), None)
    if data is None:
        data = {}
        for fact in facts:
            data.setdefault(fact.name.replace(" ", "_"), fact.value)
    return Explanation(kind, tuple((fact.name, fact.lines) for fact in facts), data, all(fact.holds for fact in facts))


def _dtype(dtype: object, value: object) -> ElementType:
    """The given element type, or that of the text, or bf16."""
    return stated_type(dtype, value, check=CHECK)


def _parsed(text: str, shape: tuple[int, ...] | None) -> object:
    """The layout of a text; any broken rule is reported as malformed text."""
    try:
        try:
            return parse(text)
        except BudgetError:
            raise
        except LayoutError:
            if shape is None:
                raise
            return parse(text, shape)
    except (BudgetError, MalformedError):
        raise
    except LayoutError as error:
        raise MalformedError(error.diagnostic) from None


def _of_layout(layout: Any, kind: ElementType, target: str, shape: tuple[int, ...] | None) -> Explanation:
    facts = list(layout_facts(layout))
    hint = unit_hint(layout, kind.bits)
    if hint:
        facts.append(said("hint", hint))
    if kind.tensormap is None:
        return _made("layout", [*facts, said("as a tile", f"not asked for {kind.name}: {kind.note}")])
    return _made("layout", [*facts, *tile_facts(layout, kind.name, target, shape)])


def _document(document: dict[str, object]) -> object:
    """The problem or plan of a document."""
    schema = document.get("schema")
    kind = schema.rpartition("/")[0] if isinstance(schema, str) else ""
    if kind not in _DOCUMENTS:
        raise malformed("/schema", f"explain reads {READS}", schema)
    return cast(Any, _found(_DOCUMENTS[kind])).from_json(document)
