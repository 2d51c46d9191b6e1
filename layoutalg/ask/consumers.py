"""Decide whether a shared layout serves a consumer that reads or writes the tile; answer with a plan or a reason.

Notation: the tile is a matrix with dimensions 0 and 1, outermost first: (M, K) for ``wgmma.A`` and ``tcgen05.A``,
(N, K) for ``wgmma.B`` and ``tcgen05.B``.

Main statements: without a register layout, ``ldmatrix.xN`` and ``stmatrix.xN`` move the whole tile in matrices of 8
rows of 16 bytes along dimension 1, with ``.trans`` along either dimension; ``ds_read`` assigns lanes as operand A of
the target's matrix instructions if its blocks divide the tile; other loads and stores move the tile row by row,
neighbouring lanes taking neighbouring vectors along dimension 1. Turns are totals for the whole tile.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from layoutalg.ask.bank_turns import banks
from layoutalg.ask.whole_tiles import Served, along, by_lds, counted, whole_tile
from layoutalg.ground.check import Checker
from layoutalg.ground.digits import Flat
from layoutalg.ground.errors import BudgetError, LayoutError, MalformedError, RepresentabilityError
from layoutalg.ground.layout import Layout
from layoutalg.ground.verdict import Unknown
from layoutalg.notation.written import read_written
from layoutalg.proofs.admission import Refused
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.register_map import IntArray
from layoutalg.synth.admission.request import request_of
from layoutalg.synth.admission.tcgen05 import find_tcgen05
from layoutalg.synth.lds import GIVEN, WIDTHS
from layoutalg.synth.named_accesses import Named, countable, lacking, lanes_text, name_of, named, read_name
from layoutalg.synth.wgmma import OperandProblem
from layoutalg.synth.wgmma.plan import find
from layoutalg.synth.wgmma.refusal import refusal
from layoutalg.targets.bank_counting import TURN_BYTES
from layoutalg.targets.banks import nvidia_access
from layoutalg.targets.consumers import head_of
from layoutalg.targets.lds_rules import lds_name
from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.nvidia.accesses import access_form, full_name
from layoutalg.targets.registry import lookup
from layoutalg.targets.target_model import Absent, model_of

CHECK = Checker("LA412", "invalid argument to suggest()")
OPERANDS = ("wgmma.A", "wgmma.B", "tcgen05.A", "tcgen05.B")
"""Consumers that read the tile through descriptors."""
ALIGN_BYTES = 1024
"""Alignment of the tile's base."""
KNOWN = (
    f"tma, tma.store, {', '.join(OPERANDS)}, ldmatrix.x1|x2|x4[.trans], stmatrix.x1|x2|x4[.trans], ld.shared.v4.b32, "
    "st.shared.b16 and so on; on AMD ds_read_b128, ds_write_b64 and so on"
)


STORES = {
    "nvidia": ("st.shared.v4.b32", "st.shared.v2.b32", "st.shared.b32", "st.shared.b16", "st.shared.b8"),
    "amd": ("ds_write_b128", "ds_write_b64", "ds_write_b32"),
}
"""Stores that threads may fill a tile with, per vendor."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A tile in shared memory."""

    layout: Any  # matrix coordinates to element offsets
    places: IntArray  # byte address of every element
    dtype: str  # element type of the tensor
    # the (extent, element stride) digits of each dimension and the name of the hardware's swizzle, if known
    digits: tuple[tuple[Flat, Flat], str] | None = None

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return element_type(self.dtype).bits // 8


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer of the tile: its name, and the function that judges a layout."""

    name: str
    ask: Callable[[Tile], Served]


def consumer_of(value: object, target: str) -> Consumer:
    """Return the consumer for a name or a (name, register layout) pair."""
    registers: Any = None
    if isinstance(value, tuple | list) and len(value) == 2:
        value, registers = value
        registers = read_written(registers).layout
        if not isinstance(registers, Layout):
            raise CHECK.malformed("consumers", "must pair an instruction with a register layout", registers)
    if not isinstance(value, str):
        raise CHECK.malformed("consumers", f"must be names among {KNOWN}, or (name, register layout)", value)
    name = lds_name(value) or full_name(value)
    absent = model_of(target).consumer(name)
    if name in OPERANDS and registers is None:
        if isinstance(absent, Absent):
            raise CHECK.malformed("consumers", f"must exist on {target}: {absent}", name)
        if name.startswith("wgmma"):
            return Consumer(name, lambda tile: _operand(name[-1], tile))
        return Consumer(name, lambda tile: _admitted(name, target, tile.layout, tile.dtype))
    if isinstance(absent, Absent):
        return Consumer(name, lambda _: Served(0, 0, str(absent), holds=False))
    said = read_name(value) if registers is None else None
    if said is not None and not said.is_instruction:
        if (missing := lacking(said, target)) is not None:
            return Consumer(str(said), lambda _: Served(0, 0, str(missing), holds=False))
        return Consumer(str(said), partial(_by_name, said, target=target))
    if name in WIDTHS and registers is None:
        return Consumer(name, lambda tile: by_lds(name, target, tile.places, tile.element_bytes))
    if registers is None:
        said = read_name(value) if head_of(name) else name_of(value, "consumers")
        if said is not None:
            countable(said, "consumers")
    try:
        access, form = nvidia_access(name), access_form(name)
    except MalformedError:
        raise CHECK.malformed("consumers", f"must be among {KNOWN}", name) from None
    if registers is not None:
        return Consumer(name, lambda tile: _by_registers(name, registers, tile, target))
    return Consumer(name, lambda tile: whole_tile(form, access, tile.places, tile.element_bytes, target))


def _operand(operand: str, tile: Tile) -> Served:
    try:
        if tile.digits is None or tile.dtype not in wgmma.DTYPES or tile.digits[1] not in wgmma.SWIZZLES:
            problem = OperandProblem.of(operand, tile.dtype, tile.layout)
        else:  # the digits are known, so they need not be found again
            extents = (tile.places.shape[0], tile.places.shape[1])
            problem = OperandProblem(operand, extents, *tile.digits, tile.dtype)
        plan = find(problem)
        if plan is None:  # most layouts fail here, and few of their reasons are read
            because = partial(_refusal_of, problem)
            return Served(0, 0, "", holds=False, because=because)
    except BudgetError:
        raise
    except LayoutError as error:
        return Served(0, 0, error.diagnostic.because or error.diagnostic.what, holds=False)
    text = f"{plan.major}-major, {plan.base.swizzle}, {len(plan.tiles)} instruction tiles"
    return Served(0, 0, text, plan=plan)


def _refusal_of(problem: OperandProblem) -> str:
    return refusal(problem, find, repair=False).reasons[0]


def _admitted(name: str, target: str, smem: object, dtype: str) -> Served:
    found = find_tcgen05(request_of(smem, name, target, dtype, None, ALIGN_BYTES, {}))
    if isinstance(found, Unknown):
        return Served(0, 0, f"not decided: {found.reason}", holds=False)
    if isinstance(found, Refused):
        return Served(0, 0, found.reasons[0], holds=False)
    plan = found.descriptor
    text = f"{plan.major}-major, {plan.swizzle}, {len(plan.tiles)} instruction tiles ({found.evidence})"
    return Served(0, 0, text, plan=plan)


def filled(target: str, places: IntArray, size: int, dimension: int) -> Served:
    """Answer for the best stores that fill a tile with lanes along a dimension: fewest turns, then the widest.

    If the turns of no store are known, none are counted and the text says so.
    """
    least = -(-places.size * size // TURN_BYTES)
    best, missing = None, ""
    for name in STORES[lookup(target).vendor]:
        answer = along(name, target, places, size, dimension)
        missing = missing or answer.text
        if answer.holds and (best is None or answer.turns < best.turns):
            best = Served(answer.turns, least, f"filled by {name}: {answer.text}")
        if best is not None and best.turns <= least:
            return best
    return best or Served(0, 0, f"the stores that fill it are not counted: {missing}")


def _by_registers(name: str, registers: Any, tile: Tile, target: str) -> Served:
    try:
        report = banks(registers, tile.layout, 8 * tile.element_bytes, name, target=target)
    except MalformedError as error:
        return Served(0, 0, error.diagnostic.because or error.diagnostic.what, holds=False)
    return counted(report.accesses, report.turns, report.ideal, f"lanes {GIVEN}")


def _by_name(said: Named, tile: Tile, *, target: str) -> Served:
    bits, extents = 8 * tile.element_bytes, tile.places.shape
    try:
        report = banks(named(said, extents, bits, target), tile.layout, bits, said.by(bits, target), target=target)
    except (MalformedError, RepresentabilityError) as error:
        return Served(0, 0, error.diagnostic.because or error.diagnostic.what, holds=False)
    return counted(report.accesses, report.turns, report.ideal, lanes_text(said, bits, target, extents))
