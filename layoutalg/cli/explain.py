"""``layoutalg explain``: what a layout does, what 128 descriptor bytes say, what a problem or plan asks.

Main definitions: ``explain``.

Implementation notes: a plan that is read is checked before anything is said about it. Numbers of a layout can be too
long to be written in decimal; ``_text`` then says how long they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from layoutalg import convert
from layoutalg.cli.exits import PROVED, REFUTED
from layoutalg.cli.output import say, say_json
from layoutalg.cli.plans import PROBLEM_SCHEMA, checked, schema_of
from layoutalg.cli.subjects import layout_of, read_subject
from layoutalg.cute import ComposedLayout, CuteLayout, coalesce
from layoutalg.f2 import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground.document import Reader, malformed
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError, RepresentabilityError, shown
from layoutalg.notation.units import unit_hint
from layoutalg.proofs.dtypes import read_dtype
from layoutalg.proofs.smem import shared_tile
from layoutalg.proofs.tensor import row_major
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.proofs.tensormap.plan import tensor_map_to_json
from layoutalg.proofs.tile_map import SHARED_LAYOUTS, extents_of
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.synth.wgmma import InadmissibleOperandError, OperandProblem, synthesize_wgmma
from layoutalg.targets.layouts.padding import PaddedShared
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia import wgmma

Facts = dict[str, object]
SCHEMA = "layoutalg/explanation/1"
ILLEGAL = ("LA309", "LA310")
"""What ``decode`` says of 128 bytes that no driver writes."""
GRID = 8
MAX_TABLE = 1 << 20
TILE_SECONDS = 10.0
"""For the question which TensorMap fills a tile."""


def explain(subject: str, dtype: str, target: str, as_json: bool, shape: tuple[int, ...] | None = None) -> int:
    """Explain a layout in notation, a descriptor in hexadecimal, or a document; return the exit code."""
    if target not in hardware.ARCHITECTURES:
        raise malformed("--target", f"must be one of {', '.join(hardware.ARCHITECTURES)}", target)
    dtype = read_dtype(Reader(dtype, "--dtype"), hardware.PLAIN_DTYPES)
    clock.check("an explanation")
    given = read_subject(subject)
    if given.kind == "json":
        facts, code = _document(given.value, target)
    elif given.kind == "hex":
        facts, code = _legal(str(given.value), target)
    else:
        facts, code = _layout(layout_of(str(given.value), shape), dtype, target), PROVED
    if as_json:
        say_json({"schema": SCHEMA, **facts})
    else:
        for key, value in facts.items():
            lines = value if isinstance(value, list) else str(value).split("\n")
            say("\n".join(f"{key if index == 0 else '':<14}{line}" for index, line in enumerate(lines)))
    return code


def _legal(digits: str, target: str) -> tuple[Facts, int]:
    """The facts of a map; where the bytes are not one, the field that shows it."""
    try:
        return _descriptor(digits, target), PROVED
    except MalformedError as error:
        if error.diagnostic.code not in ILLEGAL:
            raise
        return {"illegal": [error.diagnostic.what, error.diagnostic.because]}, REFUTED


def _document(document: object, target: str) -> tuple[Facts, int]:
    schema = schema_of(document)
    if isinstance(document, dict) and schema.startswith(PROBLEM_SCHEMA):
        try:
            return {"plan": str(synthesize_tensormap(document, budget_seconds=clock.left())).split("\n")}, PROVED
        except InadmissibleError as error:
            return {"inadmissible": str(error)}, REFUTED
    if schema.startswith("layoutalg/tensormap-plan/"):
        _, lines, code = checked(document)
        plan = TensorMapPlan.from_json(document)
        facts: Facts = {"check": lines}
        if code == PROVED:
            facts["plan"] = str(plan).split("\n")
        return facts | _descriptor(plan.hex, target), code
    readable = "explain reads layoutalg/tensormap-problem/1 and layoutalg/tensormap-plan/1"
    raise malformed("/schema", readable, document.get("schema") if isinstance(document, dict) else document)


def _descriptor(text: str, target: str) -> Facts:
    """Decode a map; bytes that are not a map raise the error that names the illegal field and its bits."""
    if len(text) != 256:
        raise malformed("", "a descriptor is 128 bytes, 256 hexadecimal digits", f"{len(text)} digits")
    tm = hardware.decode(bytes.fromhex(text), target=target)
    facts: Facts = {key: str(value) for key, value in tensor_map_to_json(tm).items()}
    documented = hardware.violations(tm, target=target, evidence="documented")
    if documented:
        facts["undocumented"] = [f"{violation.rule}: {violation.message}" for violation in documented]
    if tm.interleave == "NONE":
        facts["barrier"] = f"{hardware.transaction_bytes(tm)} bytes a copy"
        facts["shared"] = (
            f"{hardware.footprint_bytes(tm)} bytes, base aligned to {hardware.swizzle_period_bytes(tm.swizzle)}"
        )
    return facts


def _text(ask: Callable[[], object]) -> str:
    """The text of a value; Python refuses to write integers of more than 4300 digits."""
    try:
        return str(ask())
    except ValueError as error:
        if isinstance(error, LayoutError):
            raise
        return "a value with numbers too long to be written"


def _layout(layout: Any, dtype: str, target: str) -> Facts:
    facts: Facts = {"layout": _text(lambda: layout)}
    hint = unit_hint(layout, hardware.DTYPES[dtype].bits)
    if hint:
        facts["hint"] = hint
    of_cute = isinstance(layout, (CuteLayout, ComposedLayout))
    if isinstance(layout, LinearLayout):
        facts["rank"] = f"{layout.rank} over F2; injective {layout.is_injective}, surjective {layout.is_surjective}"
    elif (size := _size(layout)) is not None:
        facts["size"] = f"{shown(size)} elements" + (f", offsets below {shown(layout.cosize)}" if of_cute else "")
    if isinstance(layout, CuteLayout):
        facts["normal form"] = _text(lambda: coalesce(layout))
    if of_cute and layout.size <= MAX_TABLE:
        table = layout.table()
        distinct = len(set(table.tolist()))
        facts["image"] = f"{distinct} distinct offsets, {'' if distinct == layout.size else 'not '}injective"
        facts["table"] = _grid(layout)
    if of_cute:
        facts["over F2"] = _tried(lambda: _columns(convert.to_linear(layout)))
    elif not isinstance(layout, PaddedShared):
        facts["as CuTe"] = _tried(lambda: convert.to_cute(layout))
        if not isinstance(layout, LinearLayout):
            facts["over F2"] = _tried(lambda: convert.to_linear(layout))
    return facts | _as_shared_tile(layout, dtype, target)


def _size(layout: Any) -> int | None:
    """The number of coordinates; None for a swizzle and for a layout that is partial or has parameters."""
    try:
        return getattr(layout, "size", None)
    except LayoutError:
        return None


def _tried(ask: Callable[[], object]) -> object:
    """The text of the answer, or the first lines of the refusal."""
    try:
        return _text(ask)
    except RepresentabilityError as error:
        return f"no: {error.diagnostic.because or error.diagnostic.what}" + (
            f" (at {dict(error.diagnostic.witness)})" if error.diagnostic.witness else ""
        )
    except LayoutError as error:
        return f"not decided: {error.diagnostic.what}"


def _columns(linear: LinearLayout) -> str:
    images = [str(image[0]) for images in linear.bases.values() for image in images]
    constant = next(iter(linear.offset.values()))
    return f"linear: coordinate bits map to {', '.join(images) or 'nothing'}" + (
        f", xor {constant}" if constant else ""
    )


def _grid(layout: CuteLayout | ComposedLayout) -> list[str]:
    """The corner of the table over the first two modes."""
    extents = extents_of(layout)
    if len(extents) != 2:
        return [" ".join(str(value) for value in layout.table()[:32].tolist()) + (" ..." if layout.size > 32 else "")]
    values = layout.table().reshape(extents[1], extents[0]).T
    rows = [[str(v) for v in row[:GRID]] + (["..."] if extents[1] > GRID else []) for row in values[:GRID].tolist()]
    width = max((len(cell) for row in rows for cell in row), default=0)
    lines = [" ".join(cell.rjust(width) for cell in row) for row in rows]
    return lines + (["..."] if extents[0] > GRID else [])


def _as_shared_tile(layout: object, dtype: str, target: str) -> Facts:
    """Which TensorMap fills this tile and which wgmma descriptor reads it, for a dense tensor of 16 tiles a side."""
    if not isinstance(layout, SHARED_LAYOUTS):
        return {}
    try:
        shared = shared_tile(layout, None, hardware.element_bytes(dtype))
    except LayoutError as error:
        said = "not decided" if isinstance(error, BudgetError) else "no"
        return {"as a tile": f"{said}: {error.diagnostic.because or error.diagnostic.what}"}
    tile = shared.tile
    inner = next((dim for dim, digits in enumerate(shared.modes) if any(stride == 1 for _, stride in digits)), -1)
    order = sorted(range(len(tile)), key=lambda dim: dim == inner % len(tile))  # outermost first
    shape, dense = [16 * extent for extent in tile], row_major(tuple([16 * tile[dim] for dim in order]))
    stride = [dense[order.index(dim)] for dim in range(len(tile))]
    digits = ", ".join(" ".join(f"{extent}:{step}" for extent, step in dim) or "1:0" for dim in shared.modes)
    facts: Facts = {"as a tile": f"{list(tile)} of {dtype}, digits ({digits}), swizzle {shared.swizzle}"}
    try:
        problem = TensorMapProblem.of((shape, stride, dtype), tile, layout, arch=target)
        plan = synthesize_tensormap(problem, repair=False, budget_seconds=clock.left(TILE_SECONDS))
        many = f"{len(plan.issues)} issue{'s' if len(plan.issues) > 1 else ''}"
        facts["TMA"] = (
            f"box {list(plan.tensor_map.box)}, swizzle {plan.tensor_map.swizzle}, {many}, from {dtype} {shape}:{stride}"
        )
    except InadmissibleError as error:
        facts["TMA"] = [f"{violation.rule}: {violation.message}" for violation in error.violations]
    except LayoutError as error:
        facts["TMA"] = f"not decided: {error.diagnostic.because or error.diagnostic.what}"
    if len(tile) != 2:
        return facts
    if target != wgmma.ARCH:
        facts["wgmma"] = f"descriptors are known for {wgmma.ARCH} alone, not for {target}"
    elif dtype in wgmma.DTYPES:
        facts["wgmma A"] = _operand("A", layout, dtype)
        facts["wgmma B"] = _operand("B", layout, dtype)
    return facts


def _operand(operand: str, layout: object, dtype: str) -> object:
    try:
        plan = synthesize_wgmma(OperandProblem.of(operand, dtype, layout))
    except InadmissibleOperandError as error:
        return list(error.reasons)
    except LayoutError as error:
        return error.diagnostic.because or error.diagnostic.what
    first = plan.tiles[0].descriptor
    return (
        f"{plan.major}-major, leading {first.leading_bytes} B, stride {first.stride_bytes} B, swizzle {first.swizzle}, "
        f"{len(plan.tiles)} instruction tiles, first descriptor {plan.tiles[0].encoded:#018x}"
    )
