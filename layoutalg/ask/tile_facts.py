"""What the hardware makes of a layout as a tile in shared memory: TMA, wgmma, ldmatrix, banks.

Main definitions: ``tile_facts``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from layoutalg.ask.consumers import consumer_of
from layoutalg.ground import clock
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.proofs.smem import SharedTile, shared_tile
from layoutalg.proofs.tensor import Tensor, row_major
from layoutalg.proofs.tensormap import TensorMapProblem
from layoutalg.proofs.tile_map import SHARED_LAYOUTS, extents_of, offsets
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.synth.wgmma import InadmissibleOperandError, OperandProblem, synthesize_wgmma
from layoutalg.targets.nvidia import tensormap as hardware
from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.registry import lookup

TILE_SECONDS = 10.0
"""For the question which TensorMap fills a tile."""
ASSUMED_TILES = 16
MAX_MATRIX = 2**16
"""Elements of a tile whose bank turns are counted."""


class Fact(NamedTuple):
    """One thing that is said: its name, its lines, and the same as JSON-ready data."""

    name: str
    lines: tuple[str, ...]
    value: object


def said(name: str, text: str | list[str], value: object = None) -> Fact:
    """Return a fact whose data are its lines where none are given."""
    lines = tuple(text.split("\n")) if isinstance(text, str) else tuple(text)
    given = (lines[0] if len(lines) == 1 else list(lines)) if value is None else value
    return Fact(name, lines, given)


def tile_facts(layout: Any, dtype: str, target: str, tile: tuple[int, ...] | None = None) -> Iterator[Fact]:
    """Yield what the hardware can do with a layout as a tile.

    Args:
        layout: A layout of any family.
        dtype: Element type.
        target: Architecture.
        tile: Extents of the tile, outermost first; None for those of the layout.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> [fact.name for fact in tile_facts(CuteLayout((64, 64), (64, 1)), "bf16", "sm_90a")]
        ['as a tile', 'assumed', 'TMA', 'wgmma A', 'wgmma B', 'ldmatrix', 'ldmatrix.trans', 'rows', 'columns']
    """
    if not isinstance(layout, SHARED_LAYOUTS):
        return
    size = hardware.element_bytes(dtype)
    try:
        shared = shared_tile(layout, tile, size)
    except LayoutError as error:
        word = "not decided" if isinstance(error, BudgetError) else "no"
        yield said("as a tile", f"{word}: {error.diagnostic.because or error.diagnostic.what}")
        yield from _bank_facts(layout, dtype, target, tile)
        return
    digits = ", ".join(" ".join(f"{extent}:{step}" for extent, step in dim) or "1:0" for dim in shared.modes)
    about = {"extents": list(shared.tile), "dtype": dtype, "swizzle": shared.swizzle}
    about["digits"] = [[list(digit) for digit in dim] for dim in shared.modes]
    text = f"{list(shared.tile)} of {dtype}, digits ({digits}), swizzle {shared.swizzle}"
    yield said("as a tile", text, about)
    tensor = _assumed(shared, dtype)
    text = f"a tensor of {ASSUMED_TILES} tiles a side, contiguous where the tile is: {tensor}"
    yield said("assumed", text, {"shape": list(tensor.shape), "stride": list(tensor.strides), "dtype": dtype})
    yield _tma(layout, shared, tensor, target)
    if len(shared.tile) == 2:
        yield from _wgmma(layout, shared.tile, dtype, target)
    yield from _bank_facts(layout, dtype, target, tile)


def _assumed(shared: SharedTile, dtype: str) -> Tensor:
    """The dense tensor of some tiles a side whose contiguous dimension is the tile's."""
    tile = shared.tile
    inner = next((dim for dim, digits in enumerate(shared.modes) if any(stride == 1 for _, stride in digits)), -1)
    order = sorted(range(len(tile)), key=lambda dim: dim == inner % len(tile))  # outermost first
    dense = row_major(tuple([ASSUMED_TILES * tile[dim] for dim in order]))
    stride = tuple([dense[order.index(dim)] for dim in range(len(tile))])
    return Tensor(tuple(ASSUMED_TILES * extent for extent in tile), stride, dtype)


def _tma(layout: object, shared: SharedTile, tensor: Tensor, target: str) -> Fact:
    try:
        problem = TensorMapProblem.of(tensor, shared.tile, layout, arch=target)
        plan = synthesize_tensormap(problem, repair=False, budget_seconds=clock.left(TILE_SECONDS))
    except InadmissibleError as error:
        violations = [violation.to_json() for violation in error.violations]
        lines = [str(violation) for violation in error.violations]
        return said("TMA", lines, {"verdict": "inadmissible", "violations": violations})
    except LayoutError as error:
        because = error.diagnostic.because or error.diagnostic.what
        return said("TMA", f"not decided: {because}", {"verdict": "unknown", "because": because})
    many = f"{len(plan.issues)} issue{'s' if len(plan.issues) > 1 else ''}"
    text = f"box {list(plan.tensor_map.box)}, swizzle {plan.tensor_map.swizzle}, {many}, from {tensor}"
    return said("TMA", text, {"verdict": "admissible", "plan": plan.to_json()})


def _wgmma(layout: object, tile: tuple[int, ...], dtype: str, target: str) -> Iterator[Fact]:
    if target != wgmma.ARCH:
        yield said("wgmma", f"descriptors are known for {wgmma.ARCH} alone, not for {target}")
    elif dtype not in wgmma.DTYPES:
        yield said("wgmma", f"descriptors are known for {' and '.join(wgmma.DTYPES)} alone, not for {dtype}")
    else:
        for operand in ("A", "B"):
            yield _operand(operand, layout, tile, dtype)


def _operand(operand: str, layout: object, tile: tuple[int, ...], dtype: str) -> Fact:
    name = f"wgmma {operand}"
    try:
        plan = synthesize_wgmma(OperandProblem.of(operand, dtype, layout, tile=tile), repair=False)
    except InadmissibleOperandError as error:
        return said(name, list(error.reasons), {"verdict": "inadmissible", "reasons": list(error.reasons)})
    except LayoutError as error:
        because = error.diagnostic.because or error.diagnostic.what
        return said(name, because, {"verdict": "unknown", "because": because})
    first = plan.tiles[0].descriptor
    text = (
        f"{plan.major}-major, leading {first.leading_bytes} B, stride {first.stride_bytes} B, swizzle {first.swizzle}, "
        f"{len(plan.tiles)} instruction tiles, first descriptor {plan.tiles[0].encoded:#018x}"
    )
    return said(name, text, {"verdict": "admissible", "plan": plan.to_json()})


def _bank_facts(layout: Any, dtype: str, target: str, tile: tuple[int, ...] | None) -> Iterator[Fact]:
    """What matrix instructions, and warps along rows and along columns, take in turns."""
    try:
        extents = extents_of(layout) if tile is None else tile
        if len(extents) != 2 or not 0 < int(np.prod(extents)) <= MAX_MATRIX or not lookup(target).measured:
            return
        table = offsets(layout, (extents[0], extents[1])) * hardware.element_bytes(dtype)
    except LayoutError:
        return
    bits = 8 * hardware.element_bytes(dtype)
    names = {"ldmatrix": "ldmatrix.x1", "ldmatrix.trans": "ldmatrix.x1.trans"} if bits <= 32 else {}
    if bits != 16:
        names.pop("ldmatrix.trans", None)
    for name, instruction in names.items():
        yield _turns(name, instruction, layout, table, dtype)
    yield _turns("rows", f"ld.shared.b{bits}", layout, table, dtype)
    yield _turns("columns", f"ld.shared.b{bits}", layout, table.T, dtype)


def _turns(name: str, instruction: str, layout: object, table: Any, dtype: str) -> Fact:
    served = consumer_of(instruction, wgmma.ARCH).ask(layout, table, dtype)
    if not served.holds:
        return said(name, f"no: {served.text}", {"instruction": instruction, "because": served.text})
    value = {"instruction": instruction, "turns": served.turns, "ideal": served.ideal}
    return said(name, f"{instruction}: {served.text}", value)
