"""Explain a value, a text, a dump of descriptor bytes or a document: what it is and what the hardware does with it.

Implementation notes: a plan is checked before anything is said about it.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from layoutalg.ask.facts import ANSWERS, Fact, answer_facts, layout_facts, said, symbolic_facts
from layoutalg.ask.kernel_lines import is_kernel, kernel_facts
from layoutalg.ask.ledger import ledger
from layoutalg.ask.tile_facts import tile_facts
from layoutalg.cute import CuteLayout, Swizzle
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.ground import clock
from layoutalg.ground.check import Checker
from layoutalg.ground.document import malformed
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError
from layoutalg.ground.layout import Layout
from layoutalg.ground.limits import PLAN_SECONDS
from layoutalg.ground.picture import Shown
from layoutalg.ground.polynomial import product_of
from layoutalg.ground.polynomial_text import polynomial
from layoutalg.notation import TTGIR_AHEAD, parse
from layoutalg.notation.printout import TILED_AHEAD
from layoutalg.notation.tiled import PrintedTiling, read_tiled
from layoutalg.notation.ttgir import TensorType, layouts_of
from layoutalg.notation.written import is_written, read_written, unit_hint
from layoutalg.proofs import tensormap as tensormaps
from layoutalg.proofs import wgmma as operands
from layoutalg.proofs.dtypes import ElementType, stated_type
from layoutalg.proofs.pipeline.document import Pipeline
from layoutalg.proofs.tensor import Tensor, size_text
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.tensormap.plan import tensor_map_to_json
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.synth.wgmma import InadmissibleOperandError, OperandPlan, OperandProblem, synthesize_wgmma
from layoutalg.targets.dumps import is_dump
from layoutalg.targets.layouts.padding import PaddedShared
from layoutalg.targets.nvidia import tcgen05, wgmma
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia.tensormap.texts import is_call
from layoutalg.targets.registry import TARGETS

_CHECK = Checker("LA414", "this cannot be explained")
SCHEMA = "layoutalg/explanation/1"
READS = "layoutalg/tensormap-problem/1, tensormap-plan/1, wgmma-problem/1, wgmma-plan/1 and pipeline/1"
_MATRIX = re.compile(r"\s*0[xX]([0-9a-fA-F]{1,16})(?:[uU]?(?:ll|LL|[lL])?)\s*")
"""A matrix descriptor as C or Python write it; no layout begins like this."""


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
    value: object, dtype: object = None, target: str = "sm_90a", shape: Sequence[int] | None = None
) -> Explanation:
    """Explain what a layout does and which hardware feature can carry it, what descriptor bytes say, what a plan does.

    Args:
        value: A layout of any family or its text; a kernel in TTGIR, which is explained
            line by line; types in TTGIR, which are listed; a tiled copy or matrix instruction as CuTe prints it; a
            ``Tensor``; 128 descriptor bytes, or a dump of them as ``layoutalg.targets.dumps`` reads it; a call of
            ``cuTensorMapEncodeTiled`` in C++; a matrix descriptor of
            ``wgmma`` or ``tcgen05`` (by the target), or its 64 bits as ``0x...``; a problem or plan of a TensorMap or
            a ``wgmma`` operand, or its document; an answer of ``banks``, ``transactions``, ``swizzle``, ``padding`` or
            ``conversion``, a
            universal swizzle, a kernel that moves an array; a pipeline or its document.
        dtype: Element type of a layout, by any library's name; None for that of the text, or bf16.
        target: Architecture; for descriptors, one with tensor maps.
        shape: Extents, outermost first: of the tensor, for a ``#ttg`` attribute without sizes; of the tile, for a
            layout of one flat coordinate, first dimension fastest.

    Raises: MalformedError: LA010, LA414, LA806, LA989, and those of ``parse``. BudgetError: LA001.

    Example:
        >>> told = explain("Sw<3,4,3> o 0 o (64,64):(64,1)")
        >>> told["hint"]
        'Sw<3,4,3> counts elements here. Printed over smem_ptr it counts bytes (128B), on 16-bit elements Sw<3,3,3>'
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
    _CHECK.choice(target, "target", TARGETS)
    extents = None if shape is None else _CHECK.vector(shape, "shape")
    clock.check("an explanation")
    if isinstance(value, bytes):
        if len(value) != hardware.MAP_BYTES:
            raise _CHECK.malformed("value", "must be 128 bytes for a descriptor", f"{len(value)} bytes")
        return _descriptor(value, target)
    if isinstance(value, str):
        if found := _MATRIX.fullmatch(value):
            return _matrix(int(found[1], 16), target)
        if is_call(value):
            return _of_call(value, target)
        if is_dump(value):
            reading = hardware.read_map(value, target)
            return _descriptor(reading.raw, target, reading.form)
        if TILED_AHEAD.match(value):
            return _tiling(read_tiled(value), target)
        if is_kernel(value):
            return _kernel(value, target)
        if TTGIR_AHEAD.match(value) and len(listed := layouts_of(value)) > 1:
            return _listing(listed)
        return _of_layout(_parsed(value, extents), _dtype(dtype, value), target, extents)
    if is_written(value):
        return _of_layout(read_written(value, extents).layout, _dtype(dtype, value), target, extents)
    if isinstance(value, Layout | PaddedShared | Swizzle):
        return _of_layout(value, _dtype(dtype, None), target, extents)
    if isinstance(value, Mapping):
        value = _document(dict(value))
    for kinds, explained in _EXPLAINED:
        if isinstance(value, kinds):
            return explained(value, target)
    if (found := read_written(value, extents).layout) is not value:
        return _of_layout(found, _dtype(dtype, value), target, extents)
    readable = (
        "must be a layout, a tensor, a plan, a problem, an answer about banks, transactions, swizzles, paddings, "
    )
    readable += (
        "gathers or conversions, a kernel, a pipeline, descriptor bytes, or the text or document of one of these"
    )
    raise _CHECK.malformed("value", readable, value)


def _made(kind: str, facts: Iterable[Fact], holds: bool = True) -> Explanation:
    told = list(facts)
    data: dict[str, object] = {}
    for fact in told:
        data.setdefault(fact.name.replace(" ", "_"), fact.value)
    return Explanation(kind, tuple((fact.name, fact.lines) for fact in told), data, holds)


def _dtype(dtype: object, value: object) -> ElementType:
    """The given element type, or that of the text, or bf16."""
    return stated_type(dtype, value, check=_CHECK)


def _listing(types: Sequence[TensorType]) -> Explanation:
    """List every layout of a TTGIR text by the line of its type's first occurrence, or why it cannot be built."""
    lines: list[tuple[str, tuple[str, ...]]] = []
    listed: list[dict[str, object]] = []
    for entry in types:
        try:
            layout = str(entry.layout())
        except LayoutError as error:
            layout = f"not built: {error.diagnostic.because or error.diagnostic.what}"
        lines.append((f"line {entry.line}", (entry.text, layout)))
        listed.append({"type": entry.text, "line": entry.line, "kind": entry.attribute.kind, "layout": layout})
    return Explanation("listing", tuple(lines), {"layouts": listed})


def _kernel(text: str, target: str) -> Explanation:
    facts, data = kernel_facts(text, target)
    listed = _listing(layouts_of(text)).data
    return Explanation("kernel", tuple((fact.name, fact.lines) for fact in facts), data | dict(listed))


def _tiling(found: PrintedTiling, _target: str) -> Explanation:
    """The tile of a tiled copy or matrix instruction, and the layouts of its threads and values."""
    facts = [said(found.kind, found.atom)]
    if found.dtype is not None:
        facts.append(said("dtype", found.dtype))
    if found.tile is not None:
        facts.append(said("tile", " x ".join(map(str, found.tile)), list(found.tile)))
    layouts: Mapping[str, CuteLayout] = {}
    missing = ""
    try:
        layouts = found.layouts
        _ = found.kind == "copy" and found.tile and found.value  # says why the copy has only one layout
    except LayoutError as error:
        missing = error.diagnostic.because or error.diagnostic.what
    for name, layout in layouts.items():
        text = f"{layout[0].size} threads x {layout[1].size} values, offsets below {layout.cosize}"
        facts.append(Fact(f"layout {name}", (str(layout), text), str(layout)))
    if missing:
        facts.append(said("not known", f"the other layouts: {missing}"))
    return _made("tiling", facts)


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


def _tensor_facts(tensor: Tensor, target: str) -> Iterable[Fact]:
    yield said("tensor", str(tensor))
    size = hardware.element_bytes(tensor.dtype)
    if tensor.names:
        yield said("names", ", ".join(tensor.names), list(tensor.names))
        pitches = [str(size_text(product_of([polynomial(stride), polynomial(size)]))) for stride in tensor.strides]
        yield said("pitches", f"[{', '.join(pitches)}] bytes", pitches)
        with contextlib.suppress(LayoutError):  # an extent may be below 1 at all sizes
            offsets = SymbolicLayout(tensor.shape, tensor.strides, tensor.assumptions)
            yield from (fact for fact in symbolic_facts(offsets) if fact.name != "normal form")
        yield said("TMA", "layoutalg.tensormap plans for all sizes at once; the plan's guard says which")
        return
    yield said("pitches", f"{[stride * size for stride in tensor.strides]} bytes")
    tile = tuple(min(extent, 64) if place >= len(tensor.shape) - 2 else 1 for place, extent in enumerate(tensor.shape))
    yield said("assumed", f"a tile of {list(tile)}, row-major in shared memory", {"tile": list(tile)})
    try:
        problem = TensorMapProblem.of(tensor, tile, None, arch=target)
        plan = synthesize_tensormap(problem, repair=False, seconds=clock.left(PLAN_SECONDS))
    except InadmissibleError as error:
        violations = [violation.to_json() for violation in error.violations]
        yield said(
            "TMA", [str(each) for each in error.violations], {"verdict": "inadmissible", "violations": violations}
        )
        return
    yield said("TMA", str(plan), {"verdict": "admissible", "plan": plan.to_json()})


def _descriptor(raw: bytes, target: str, form: str = "") -> Explanation:
    """Decode a map; bytes that are not a map raise an error naming the illegal field and its bits."""
    facts = [said("read as", form)] if form else []
    return _made("descriptor", [*facts, *_map_facts(hardware.decode(raw, target=target), target)])


def _of_call(text: str, target: str) -> Explanation:
    """Explain the map that a call of the driver encodes, or the rules that it breaks."""
    found = hardware.diagnose(text, target)
    facts = [said("read as", found.read_as)]
    if found.tensor_map is None or not found.accepted:
        troubles = [trouble for trouble in found.troubles if trouble.enforced]
        return _made("descriptor", [*facts, said("refused", [str(each) for each in troubles])], holds=False)
    return _made("descriptor", [*facts, *_map_facts(found.tensor_map, target)])


def _matrix(word: int, target: str) -> Explanation:
    """Decode the 64 bits of a matrix descriptor of ``tcgen05`` where the target has it, otherwise of ``wgmma``."""
    return _matrix_facts((tcgen05 if target in tcgen05.ARCHS else wgmma).decode(word), target)


def _matrix_facts(found: wgmma.MatrixDescriptor | tcgen05.MatrixDescriptor, _target: str) -> Explanation:
    kind = "tcgen05" if isinstance(found, tcgen05.MatrixDescriptor) else "wgmma"
    entries = {entry.name: getattr(found, entry.name) for entry in fields(found)}
    facts = [said("matrix", f"{found.encode():#018x} of {kind}", {"encoded": f"{found.encode():#018x}", "of": kind})]
    return _made("descriptor", [*facts, *(Fact(name, (str(value),), value) for name, value in entries.items())])


def _map_facts(tm: hardware.TensorMap, target: str) -> Iterable[Fact]:
    for key, value in tensor_map_to_json(tm).items():
        yield Fact(key, (str(value),), value)
    documented = hardware.violations(tm, target=target, evidence="documented")
    if documented:
        found = [violation.to_json() for violation in documented]
        yield said("undocumented", [str(violation) for violation in documented], found)
    transaction, footprint = hardware.transaction_bytes(tm), hardware.footprint_bytes(tm)
    align = hardware.tile_align_bytes(tm.swizzle)
    yield said("barrier", f"{transaction} bytes per copy", {"bytes": transaction})
    text = f"{footprint} bytes, base aligned to {align}"
    yield said("shared", text, {"bytes": footprint, "align_bytes": align})


def _document(document: dict[str, object]) -> object:
    """The problem or plan of a document."""
    schema = document.get("schema")
    kind = schema.rpartition("/")[0] if isinstance(schema, str) else ""
    if kind not in _DOCUMENTS:
        raise malformed("/schema", f"explain reads {READS}", schema)
    return _DOCUMENTS[kind].from_json(document)


def _problem(problem: TensorMapProblem | OperandProblem, _target: str) -> Explanation:
    try:
        if isinstance(problem, TensorMapProblem):
            plan: Any = synthesize_tensormap(problem, seconds=clock.left(PLAN_SECONDS))
        else:
            plan = synthesize_wgmma(problem)
    except (InadmissibleError, InadmissibleOperandError) as error:
        repairs = [repair.to_json() for repair in error.diagnostic.repairs]
        data = {"because": error.diagnostic.because.split("\n"), "repairs": repairs}
        return _made("problem", [said("inadmissible", str(error), data)], holds=False)
    return _made("problem", [said("plan", str(plan), plan.to_json()), *_road(plan)])


def _road(plan: TensorMapPlan | OperandPlan) -> list[Fact]:
    return [said("road", plan.road)] if isinstance(plan, TensorMapPlan) and plan.road else []


def _plan(plan: TensorMapPlan | OperandPlan, target: str) -> Explanation:
    verdict = tensormaps.check(plan) if isinstance(plan, TensorMapPlan) else operands.check(plan)
    facts = [said("check", str(verdict), str(verdict).split("\n")[0].split()[0])]
    proved = str(verdict).startswith("proved")
    if proved:
        facts += [said("plan", str(plan), plan.to_json()), *_road(plan)]
    if isinstance(plan, TensorMapPlan):
        facts += _map_facts(hardware.decode(bytes.fromhex(plan.hex), target=target), target)
    return _made("plan", facts, holds=proved)


def _pipeline(pipeline: Pipeline, target: str) -> Explanation:
    facts, data, holds = ledger(pipeline, target)
    return Explanation("pipeline", tuple((fact.name, fact.lines) for fact in facts), data, holds)


_DOCUMENTS: Mapping[str, Any] = {
    "layoutalg/tensormap-problem": TensorMapProblem,
    "layoutalg/tensormap-plan": TensorMapPlan,
    "layoutalg/wgmma-problem": OperandProblem,
    "layoutalg/wgmma-plan": OperandPlan,
    "layoutalg/pipeline": Pipeline,
}
_EXPLAINED: tuple[tuple[Any, Callable[[Any, str], Explanation]], ...] = (
    (hardware.TensorMap, lambda tm, target: _made("descriptor", _map_facts(tm, target))),
    ((wgmma.MatrixDescriptor, tcgen05.MatrixDescriptor), _matrix_facts),
    ((TensorMapPlan, OperandPlan), _plan),
    ((TensorMapProblem, OperandProblem), _problem),
    (ANSWERS, lambda answer, _: _made("answer", *answer_facts(answer))),
    (Tensor, lambda tensor, target: _made("tensor", _tensor_facts(tensor, target))),
    (Pipeline, _pipeline),
    (PrintedTiling, _tiling),
)
"""Types other than layouts -> their explanation."""
