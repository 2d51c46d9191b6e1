"""Explain a layout as a tile in shared memory or as registers: the instructions that can use it, and its bank turns.

Main statements: every consumer is asked through ``admissible``; those that ``targets.target_model`` says the target
lacks are named in one line, with the rule, and those that need more than a layout (registers, a kind) are not asked.
Matrix instructions with the same operand fragment give the same answer, so one per fragment is asked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from layoutalg.ask.facts import Fact, said
from layoutalg.ask.whole_tiles import Served, along
from layoutalg.f2 import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.accesses import AccessPlan
from layoutalg.proofs.admission import Admission, Admitted, Refused
from layoutalg.proofs.dtypes import dtype_name, element_type
from layoutalg.proofs.smem import SharedTile, shared_tile
from layoutalg.proofs.tensor import Tensor, row_major
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.proofs.tile_map import SHARED_LAYOUTS, extents_of, offsets
from layoutalg.proofs.wgmma import OperandPlan
from layoutalg.synth.admission import admissible
from layoutalg.targets.layouts.amd_instructions import MFMA, WMMA
from layoutalg.targets.layouts.nvidia_instructions import MMA, mma_type
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import Absent, TargetModel, model_of

ASSUMED_TILES = 16
MAX_MATRIX = 2**16
"""Largest tile, in elements, whose bank turns are counted."""
SECONDS = 10.0
"""Time limit per consumer."""
MAX_ACCESSED = 2**16
"""Largest tile, in elements, whose accesses are enumerated."""
ASKED: Mapping[str, Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "nvidia": {
            "TMA": ("tma",), "wgmma A": ("wgmma.A",), "wgmma B": ("wgmma.B",), "tcgen05 A": ("tcgen05.A",),
            "tcgen05 B": ("tcgen05.B",), "ldmatrix": ("ldmatrix.x1",), "ldmatrix.trans": ("ldmatrix.x1.trans",),
            "vectors": ("ld.shared.v4.b32",), "cp.async": ("cp.async",),
        },
        "amd": {
            "TMA": ("tma",), "ds_read": ("ds_read_b128",), "ds_write": ("ds_write_b128",),
            "LDS fill": ("global_load_lds_dwordx4", "buffer_load_dword_lds"),
        },
    }
)  # fmt: skip
"""Per vendor, name of the fact -> consumers, of which the first that the target has is asked."""
_MATRICES = ("wgmma", "tcgen05", "ldmatrix")
MOST_PLACES = 2**14
"""Largest register layout asked about, in (register, lane, warp) places."""
OPERANDS = ("A", "B", "D")


def tile_facts(layout: Any, dtype: str, target: str, tile: tuple[int, ...] | None = None) -> Iterator[Fact]:
    """Yield what the hardware can do with a layout as a tile.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> [fact.name for fact in tile_facts(CuteLayout((64, 64), (64, 1)), "bf16", "sm_90a")][:5]
        ['as a tile', 'assumed', 'TMA', 'wgmma A', 'wgmma B']
        >>> [fact.name for fact in tile_facts(CuteLayout((64, 64), (64, 1)), "bf16", "gfx950")]
        ['as a tile', 'ds_read', 'ds_write', 'LDS fill', 'not there']
    """
    if not isinstance(layout, SHARED_LAYOUTS):
        return
    kind = element_type(dtype)
    yield from fragments(layout, kind.name, target)
    try:
        carried = dtype_name(kind.name)
    except LayoutError as error:
        yield said("as a tile", f"no: {error.diagnostic.because}")
        return
    try:
        shared = shared_tile(layout, tile, hardware.element_bytes(carried))
    except LayoutError as error:
        word = "not decided" if isinstance(error, BudgetError) else "no"
        yield said("as a tile", f"{word}: {error.diagnostic.because or error.diagnostic.what}")
        extents = _extents(layout, tile)
        if extents is not None:
            yield from carriers(layout, extents, kind.name, target)
            yield from _bank_facts(layout, carried, target, extents)
        return
    digits = ", ".join(" ".join(f"{extent}:{step}" for extent, step in dim) or "1:0" for dim in shared.modes)
    about = {"extents": list(shared.tile), "dtype": carried, "swizzle": shared.swizzle}
    about["digits"] = [[list(digit) for digit in dim] for dim in shared.modes]
    text = f"{list(shared.tile)} of {kind.name}, digits ({digits}), swizzle {shared.swizzle}"
    yield said("as a tile", text, about)
    tensor = None
    if lookup(target).has_tensor_maps:
        try:
            tensor = _assumed(shared, carried)
            yield _told(tensor)
        except LayoutError as error:
            yield said("assumed", f"no tensor: {error.diagnostic.because or error.diagnostic.what}")
    yield from carriers(layout, shared.tile, kind.name, target, tensor)
    yield from _bank_facts(layout, carried, target, shared.tile)


def _told(tensor: Tensor) -> Fact:
    text = f"a tensor of {ASSUMED_TILES} tiles per dimension, contiguous where the tile is: {tensor}"
    return said("assumed", text, {"shape": list(tensor.shape), "stride": list(tensor.strides), "dtype": tensor.dtype})


def _extents(layout: Any, tile: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """The extents of a layout, if it is defined everywhere in them; otherwise None."""
    try:
        extents = extents_of(layout) if tile is None else tile
        offsets(layout, extents)
    except LayoutError:
        return None
    return extents


def _assumed(shared: SharedTile, dtype: str) -> Tensor:
    """The dense tensor of ``ASSUMED_TILES`` tiles per dimension whose contiguous dimension is the tile's."""
    tile = shared.tile
    inner = next((dim for dim, digits in enumerate(shared.modes) if any(stride == 1 for _, stride in digits)), -1)
    order = sorted(range(len(tile)), key=lambda dim: dim == inner % len(tile))  # outermost first
    dense = row_major(tuple([ASSUMED_TILES * tile[dim] for dim in order]))
    stride = tuple([dense[order.index(dim)] for dim in range(len(tile))])
    return Tensor(tuple(ASSUMED_TILES * extent for extent in tile), stride, dtype)


def _bank_facts(layout: Any, dtype: str, target: str, extents: tuple[int, ...]) -> Iterator[Fact]:
    """Bank turns of warps along rows and along columns."""
    try:
        if len(extents) != 2 or not 0 < int(np.prod(extents)) <= MAX_MATRIX or not lookup(target).measured:
            return
        table = offsets(layout, (extents[0], extents[1])) * hardware.element_bytes(dtype)
    except LayoutError:
        return
    instruction = f"ld.shared.b{8 * hardware.element_bytes(dtype)}"
    for name, dimension in (("rows", 1), ("columns", 0)):
        yield _turns(name, instruction, target, table, dtype, dimension)


def _turns(name: str, instruction: str, target: str, table: Any, dtype: str, dimension: int) -> Fact:
    try:
        served = along(instruction, target, table, hardware.element_bytes(dtype), dimension)
    except LayoutError as error:
        served = Served(0, 0, error.diagnostic.because or error.diagnostic.what, holds=False)
    if not served.holds:
        return said(name, f"no: {served.text}", {"instruction": instruction, "because": served.text})
    value = {"instruction": instruction, "turns": served.turns, "ideal": served.ideal}
    return said(name, f"{instruction}: {served.text}", value)


def carriers(
    layout: Any, extents: tuple[int, ...], dtype: str, target: str, tensor: Tensor | None = None
) -> Iterator[Fact]:
    """Yield each consumer's answer about a layout, then the consumers that the target lacks.

    Example:
        >>> for fact in carriers("(64,64):(64,1)", (64, 64), "bf16", "gfx942"):
        ...     print(fact.name, "-", fact.lines[0])
        ds_read - 8 x ds_read_b128, 256 turns, lanes of operand A of MFMA 16x16, 8 along k each, lane 0 at byte 0 \
(documented)
        ds_write - 8 x ds_write_b128, 64 turns, lanes along dimension 1, lane 0 at byte 0 (documented)
        LDS fill - 32 x buffer_load_dword_lds, from LDS byte 0, lane 0 loads (0, 0) (documented)
        not there - NO_TMA: gfx942 has no tma, which needs compute capability 9.0 or later of NVIDIA (since sm_90)
    """
    model = model_of(target)
    vendor, absent = model.target.vendor, dict[str, Absent]()
    told: set[str] = set()
    for name, consumer in ((name, each) for name, listed in ASKED[vendor].items() for each in listed):
        family = consumer.split(".")[0]
        missing = model.consumer(consumer)
        if isinstance(missing, Absent):
            absent.setdefault(name if name == "LDS fill" else family, missing)
            continue
        small = math.prod(extents) <= MAX_ACCESSED or family in ("tma", "wgmma")
        if name in told or not small or (len(extents) != 2 and family in _MATRICES):
            continue
        told.add(name)
        yield _fact(name, _asked(layout, consumer, extents, dtype, target, tensor), tensor)
    lines = [f"{one.rule}: {one.reason}" for name, one in absent.items() if name not in told]
    if lines:
        rules = {name: {"rule": one.rule, "instead": list(one.instead)} for name, one in absent.items()}
        yield said("not there", lines, {name: entry for name, entry in rules.items() if name not in told})


def _asked(
    layout: Any, consumer: str, extents: tuple[int, ...], dtype: str, target: str, tensor: Tensor | None
) -> Admission:
    given: dict[str, Any] = {"tensor": tensor} if consumer == "tma" and tensor is not None else {}
    try:
        return admissible(
            layout, consumer, target, dtype, tile=extents, seconds=clock.left(SECONDS), **given
        )  # fmt: skip
    except LayoutError as error:
        return Unknown(error.diagnostic.because or error.diagnostic.what)


def _fact(name: str, found: Admission, tensor: Tensor | None) -> Fact:
    if isinstance(found, Unknown):
        return said(name, f"not decided: {found.reason}", {"verdict": "unknown", "because": found.reason})
    if isinstance(found, Refused):
        return _refusal(name, found)
    plan = found.descriptor
    graded = "" if found.evidence == "measured" else f" ({found.evidence})"
    text = _summary(plan, tensor) + graded
    if isinstance(plan, AccessPlan):
        data: dict[str, object] = {"instruction": plan.instruction, "turns": plan.turns, "ideal": plan.ideal}
    else:
        data = {"verdict": "admissible", "evidence": found.evidence, "plan": plan.to_json()}
    return said(name, text, data)


def _refusal(name: str, found: Refused) -> Fact:
    """The reasons alone; ``admissible`` also finds repairs, which takes longer."""
    pairs = list(zip(found.rules, found.reasons, strict=True))
    lines = [f"no: {rule}: {reason}" for rule, reason in pairs]
    data = {
        "verdict": "inadmissible", "because": found.reasons[0], "reasons": list(found.reasons),
        "violations": [{"rule": rule, "message": reason} for rule, reason in pairs],
    }  # fmt: skip
    return said(name, lines, data)


def _summary(plan: Any, tensor: Tensor | None) -> str:
    """The plan in one line."""
    if isinstance(plan, TensorMapPlan):
        problem = plan.problem
        source = tensor or Tensor(problem.global_shape, problem.global_strides, problem.dtype)
        many = f"{len(plan.issues)} issue{'s' if len(plan.issues) > 1 else ''}"
        return f"box {list(plan.tensor_map.box)}, swizzle {plan.tensor_map.swizzle}, {many}, from {source}"
    if isinstance(plan, OperandPlan):
        first = plan.tiles[0].descriptor
        return (
            f"{plan.major}-major, leading {first.leading_bytes} B, stride {first.stride_bytes} B, "
            f"swizzle {first.swizzle}, {len(plan.tiles)} instruction tiles, first descriptor "
            f"{plan.tiles[0].encoded:#018x}"
        )
    if isinstance(plan, AccessPlan):
        many = f"{plan.instruction}: {plan.count} access{'' if plan.count == 1 else 'es'}, {plan.lanes}"
        if plan.turns is None:
            return many
        than = "free of conflicts" if plan.turns == plan.ideal else f"{plan.ideal} without conflicts"
        return f"{many}, {plan.turns} turn{'' if plan.turns == 1 else 's'}, {than}"
    return str(plan).split("\n")[0]


def holds_registers(layout: object) -> bool:
    """Return whether a layout maps registers and lanes to coordinates."""
    if not isinstance(layout, Layout):
        return False
    try:
        return {"register", "lane"} <= set(layout.in_dims) and len(layout.out_dims) > 1
    except LayoutError:  # parametric, or not on a box
        return False


def fragments(layout: Any, dtype: str, target: str) -> Iterator[Fact]:
    """Yield the instructions that accept a register layout, fewest first, or why none does.

    Example:
        >>> from layoutalg.targets.layouts.nvidia import mma_operand
        >>> for fact in fragments(mma_operand("A", (32, 32), (2, 1), 2), "bf16", "sm_80"):
        ...     print(fact.name, "-", fact.lines[0])
        registers - mma.m16n8k16.f32.bf16.A: 2 instructions of tile 16x16
    """
    if not holds_registers(layout) or layout.size > MOST_PLACES:
        return
    model = model_of(target)
    accepted: list[tuple[int, str, list[str]]] = []
    refused: Refused | None = None
    for consumers in _groups(model, dtype):
        try:
            found = admissible(layout, consumers[0], target, dtype, seconds=clock.left(SECONDS))
        except LayoutError:
            continue
        if isinstance(found, Admitted):
            rest = consumers[1:]
            others = f" and {len(rest)} others" if len(rest) > 1 else "".join(f", {consumer}" for consumer in rest)
            tiling = found.descriptor.tiling
            accepted.append(
                (len(tiling.starts), f"{consumers[0]}{others}: {str(tiling).partition(chr(10))[0]}", consumers)
            )
        elif isinstance(found, Refused):
            refused = refused or found
    if accepted:
        accepted.sort(key=lambda each: each[0])
        names = [name for _, _, consumers in accepted for name in consumers]
        yield said("registers", [line for _, line, _ in accepted], {"verdict": "admissible", "consumers": names})
    elif refused is not None:
        text = f"no {dtype} matrix instruction accepts them; {refused.consumer}: {refused.reasons[0]}"
        yield said("registers", text, {"verdict": "inadmissible", "because": refused.reasons[0]})


def _groups(model: TargetModel, dtype: str) -> list[list[str]]:
    """The consumers of this element type, grouped by fragment."""
    found: dict[LinearLayout, list[str]] = {}
    arch = model.target.arch
    wide = element_type(dtype).bits
    for instruction in model.instructions:
        family, _, name = instruction.partition(".")
        if family == "mma" and name not in MMA:
            continue  # sparse: needs metadata as well
        for operand in OPERANDS:
            if family == "mma":
                kind = mma_type(name, operand)
                fits = kind == dtype or (kind, dtype) == ("tf32", "f32")
            else:
                shape = (MFMA if family == "mfma" else WMMA)[arch][name]
                fits = wide == (shape.result_bits if operand == "D" else shape.element_bits)
            fragment = model.fragment(instruction, operand) if fits else None
            if isinstance(fragment, LinearLayout):
                found.setdefault(fragment, []).append(f"{instruction}.{operand}")
    if arch == "sm_90a":
        return [["wgmma.D"], ["wgmma.A.registers"], *found.values()]
    return list(found.values())
