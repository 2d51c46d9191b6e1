"""Costs of movement terms: what each operation executes, from exact addresses, bank turns and conversion plans.

Implementation notes: an access is as wide as consecutive registers of every thread have consecutive, aligned addresses,
up to 16 bytes. Sectors are counted from the addresses of each instruction. Data take the cycles per KiB and the latency
of a TMA load (``targets.pipeline_costs``), whoever loads them. Two numbers are assumptions: a function or reduction
costs a select for each element and after each shuffle, and the end of a kernel costs ``LAUNCH_CYCLES``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

import numpy as np

from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.record import Record
from layoutalg.ground.verdict import Unknown
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.movement.layouts import FILL, IntArray, Table, affine, row_major
from layoutalg.proofs.movement.rules import Node
from layoutalg.proofs.movement.term import Kind, Term
from layoutalg.proofs.tensor import Tensor
from layoutalg.synth.admission import admissible
from layoutalg.synth.conversions import conversion
from layoutalg.targets import banks
from layoutalg.targets.bank_counting import TURN_BYTES
from layoutalg.targets.global_memory import SECTOR_BYTES, touched
from layoutalg.targets.instruction_costs import InstructionCosts, instruction_costs
from layoutalg.targets.pipeline_costs import pipeline_costs
from layoutalg.targets.registry import lookup

LAUNCH_CYCLES = 4000.0
"""From the end of a kernel to the start of the next; assumed."""
WIDEST_BYTES = 16
_NAMES = {1: "b8", 2: "b16", 4: "b32", 8: "v2.b32", 16: "v4.b32"}


@dataclass(frozen=True, slots=True)
class MovementCost(Record, code="LA995"):
    """What a term executes, and the cycles of a multiprocessor that this takes by the target's cost tables.

    Args:
        shuffles: Shuffles per thread.
        selects: Register instructions per thread: selects and the operations of functions and reductions.
        permutes: Byte permutations per thread.
        accesses: Loads and stores per thread, and copies.
        turns: Bank turns of all warps.
        sectors: Sectors of 32 bytes of global memory.
        barriers: Barriers and waits.
        launches: Kernels that end.
        smem_bytes: Shared memory of staged values, and of the largest conversion.
        registers: Words per thread of the operation that needs the most.
        cycles: The sum.
    """

    shuffles: int = 0
    selects: int = 0
    permutes: int = 0
    accesses: int = 0
    turns: int = 0
    sectors: int = 0
    barriers: int = 0
    launches: int = 0
    smem_bytes: int = 0
    registers: int = 0
    cycles: float = 0.0

    def __add__(self, other: MovementCost) -> MovementCost:
        sums = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return MovementCost(**{**sums, "registers": max(self.registers, other.registers)})

    def __str__(self) -> str:
        said = [f"{getattr(self, each.name)} {each.name}" for each in fields(self)[:-1] if getattr(self, each.name)]
        return f"{self.cycles:g} cycles ({', '.join(said) or 'nothing executed'})"


def width_of(offsets: IntArray, element_bytes: int, align_bytes: int) -> int:
    """Return the elements of one access: consecutive registers at consecutive, aligned offsets in every thread.

    Args:
        offsets: Element offsets [warp, lane, register].
        element_bytes: Bytes of an element.
        align_bytes: Alignment of the base address.
    """
    width = 1
    while width * 2 * element_bytes <= WIDEST_BYTES and offsets.shape[2] % (2 * width) == 0:
        wide = offsets.reshape(*offsets.shape[:2], -1, 2 * width)
        first = wide[..., :1]
        runs = np.where(first == FILL, FILL, first + np.arange(2 * width))
        aligned = ((first == FILL) | (first * element_bytes % (2 * width * element_bytes) == 0)).all()
        if align_bytes % (2 * width * element_bytes) or not aligned or not np.array_equal(wide, runs):
            break
        width *= 2
    return width


@lru_cache(maxsize=1 << 14)
def _turns(target: str, instruction: str, addresses: tuple[int | None, ...]) -> int:
    return banks.turns(target, instruction, addresses)


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs on one target."""

    target: str
    warps: int  # warps of a block, for copies that belong to no thread

    def of(self, each: Term | Node, kinds: tuple[Kind, ...], kind: Kind) -> MovementCost | None:
        """Return the cost of an operation alone; None if no code for it is known."""
        try:
            found = _of(_Asked(self, each.args, kinds, kind), each.op)
        except BudgetError:
            raise
        except LayoutError:
            return None
        return None if found is None or found.registers > lookup(self.target).registers else found

    def data_cycles(self, sectors: int) -> float:
        """Return the cycles of sectors of global memory and their latency."""
        costs = pipeline_costs(self.target)
        return sectors * SECTOR_BYTES / 1024 * costs.load_occupancy_per_kib + costs.load_latency

    def total(self, whole: Term) -> MovementCost | str:
        """Return the cost of a term, each of its terms once, or why there is none."""
        total = MovementCost()
        for each in whole.terms():
            kinds = tuple([operand.kind for operand in each.of])
            because = self.illegal(each, kinds)
            cost = self.of(each, kinds, each.kind) if because is None else None
            if cost is None:
                return f"{each.op} of {each.kind}: {because or 'no code for it is known'}"
            total += cost
        return total

    def illegal(self, each: Term | Node, kinds: tuple[Kind, ...]) -> str | None:
        """Return why the target cannot execute an operation; None if it may."""
        lanes = lookup(self.target).lanes
        if each.op in ("load", "convert") and each.args[0].shape[1] != lanes:
            return f"the layout must have {lanes} lanes, like a warp of {self.target}"
        if each.op == "stage" and each.args[1] != "threads":
            return _cannot_carry(self.target, each.args[0], each.args[1], kinds[0])
        return None


@lru_cache(maxsize=4096)
def _cannot_carry(target: str, layout: Table, carrier: str, x: Kind) -> str | None:
    """Return why a copy cannot bring an array to a layout in shared memory."""
    if x.bits < 8:
        return "elements share bytes"
    if carrier == "cp.async":
        if lookup(target).vendor != "nvidia":
            return f"{target} has no cp.async"
        return None if chunk_of(layout, x) * x.bits // 8 >= 4 else "no four bytes are together on both sides"
    found = affine(x.layout.array())
    if found is None:
        return "a map needs one stride for each axis, and nothing padded or gathered"
    offset, strides = found
    bytes_ = x.bits // 8
    dense = row_major(x.shape)
    strides = tuple([own if extent > 1 else like for own, extent, like in zip(strides, x.shape, dense, strict=True)])
    dtype = element_type(x.dtype).tensormap
    if dtype is None:
        return f"no map has elements of type {x.dtype}"
    align = math.gcd(x.align_bytes, offset * bytes_)
    tensor = Tensor(x.shape, strides, dtype, align & -align)
    try:
        answer = admissible(layout.array(), "tma", target, dtype, tensor=tensor)
    except LayoutError as error:
        return error.diagnostic.because
    if isinstance(answer, Unknown):
        return answer.reason
    return None if answer else answer.reasons[0]


def chunk_of(layout: Table, x: Kind) -> int:
    """Return the most elements, consecutive and aligned in memory and in shared memory, that one copy can bring."""
    inner, bytes_ = x.shape[-1], x.bits // 8
    for width in (16 // bytes_, 8 // bytes_, 4 // bytes_):
        if width < 1 or inner % width:
            continue
        tables = [each.array().reshape(1, -1, width) for each in (layout, x.layout)]
        aligns = (1024, x.align_bytes)
        if all(width_of(each, bytes_, align) == width for each, align in zip(tables, aligns, strict=True)):
            return width
    return 0


@lru_cache(maxsize=1 << 14)
def _of(asked: _Asked, op: str) -> MovementCost | None:
    kinds = (*asked.kinds, asked.kind)
    if op == "stage" and asked.args[1] != "threads":
        return _copied(asked)
    found = _EXECUTED[op](asked) if op in _EXECUTED else MovementCost()
    return None if found is None else found + MovementCost(registers=sum(map(_words, kinds)))


@dataclass(frozen=True, slots=True)
class _Asked:
    """An operation, the kinds of its operands and of its value, and the target with its costs."""

    costs: Costs
    args: tuple[Any, ...]
    kinds: tuple[Kind, ...]
    kind: Kind

    @property
    def table(self) -> InstructionCosts:
        """Costs of instructions."""
        return instruction_costs(self.costs.target)


def _words(kind: Kind) -> int:
    return -(-kind.layout.shape[2] * kind.bits // 32) if kind.tier == "registers" else 0


def _loaded(asked: _Asked) -> MovementCost:
    return _accessed(asked, "ld", asked.kind.layout, asked.kinds[0])


def _stored(asked: _Asked) -> MovementCost:
    kind = asked.kind
    found = _accessed(asked, "st", asked.kinds[0].layout, kind)
    if kind.tier == "shared":
        return found + MovementCost(barriers=1, smem_bytes=_bytes(kind), cycles=asked.table.block_barrier)
    return found + MovementCost(launches=1, cycles=LAUNCH_CYCLES)


def _bytes(kind: Kind) -> int:
    return (int(kind.layout.array().max()) + 1) * kind.bits // 8


def _accessed(asked: _Asked, name: str, registers: Table, memory: Kind) -> MovementCost:
    """Loads or stores of all registers."""
    costs, table = asked.costs, asked.table
    bytes_ = memory.bits // 8
    offsets = memory.layout.array().reshape(-1)[registers.array()]
    warps = offsets.shape[0]
    width = width_of(offsets, bytes_, memory.align_bytes)
    first = offsets[:, :, ::width].transpose(0, 2, 1).reshape(-1, offsets.shape[1])
    addresses = np.where(first == FILL, FILL, first * bytes_)
    count = offsets.shape[2] // width
    if memory.tier == "shared":
        instruction = f"{name}.shared.{_NAMES[width * bytes_]}"
        base = np.where(addresses.max(axis=1) < 0, 0, np.where(addresses < 0, 1 << 50, addresses).min(axis=1)) & -1024
        rows = np.where(addresses < 0, FILL, addresses - base[:, None]).tolist()
        turns = sum(
            _turns(costs.target, instruction, tuple([None if at < 0 else at for at in row]))
            for row in rows
            if max(row) >= 0
        )
        cycles = table.taken(0, 0, 0, turns, warps) + (table.shared_latency if name == "ld" else 0)
        return MovementCost(accesses=count, turns=turns, cycles=cycles)
    each = touched(addresses, 1, SECTOR_BYTES)
    sectors = int(each.sum())
    lines = int(np.maximum(1, -(-each // 4)).sum())  # 128 bytes a cycle, like a bank turn
    return MovementCost(
        accesses=count, sectors=sectors, cycles=table.taken(0, 0, 0, lines, warps) + costs.data_cycles(sectors)
    )


def _copied(asked: _Asked) -> MovementCost:
    """A copy from an array to shared memory."""
    costs, table, x = asked.costs, asked.table, asked.kinds[0]
    layout, carrier = asked.args
    bytes_ = x.bits // 8
    offsets = x.layout.array()
    sectors = int(touched(np.where(offsets == FILL, FILL, offsets * bytes_).reshape(1, -1), 1, SECTOR_BYTES)[0])
    held = _bytes(asked.kind)
    cycles = costs.data_cycles(sectors) + table.block_barrier
    if carrier == "tma":
        return MovementCost(accesses=1, sectors=sectors, barriers=1, smem_bytes=held + 8, cycles=cycles)
    copies = -(-x.size // (chunk_of(layout, x) * 32 * costs.warps))
    turns = -(-x.size * bytes_ // TURN_BYTES)
    cycles += table.taken(0, 0, 0, max(turns, copies * costs.warps), costs.warps)
    return MovementCost(accesses=copies, turns=turns, sectors=sectors, barriers=1, smem_bytes=held, cycles=cycles)


def _converted(asked: _Asked) -> MovementCost | None:
    plan = converted(asked.costs.target, asked.kinds[0].layout, asked.kind.layout, asked.kind.bits)
    if isinstance(plan, Unknown):
        return None
    cost = plan.cost
    return MovementCost(
        cost.shuffles, cost.selects, cost.permutes, cost.accesses, cost.turns, 0, cost.barriers, 0, plan.smem_bytes, 0,
        cost.cycles,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def converted(target: str, source: Table, destination: Table, bits: int) -> ConversionPlan | Unknown:
    """Return the plan of a conversion."""
    return conversion(source.array(), destination.array(), bits, target)


def _applied(asked: _Asked) -> MovementCost:
    warps, _, count = asked.kind.layout.shape
    return MovementCost(selects=count, cycles=asked.table.taken(0, count, 0, 0, warps))


def _reduced(asked: _Asked) -> MovementCost:
    """Threads reduce their registers, then lanes by shuffles, then warps through shared memory."""
    table, kind = asked.table, asked.kind
    held = kind.layout.array()
    warps, lanes, count = held.shape
    own = max(len(np.unique(row)) for row in held.reshape(-1, count))
    in_warp = max(len(np.unique(warp)) for warp in held)
    rounds = max(0, math.ceil(math.log2(lanes * own / in_warp)))
    shuffles, selects = rounds * own, count - own + rounds * own
    cycles = table.taken(shuffles, selects, 0, 0, warps) + (table.shuffle_latency if rounds else 0)
    found = MovementCost(shuffles, selects, cycles=cycles)
    if warps * in_warp <= kind.size:
        return found
    turns = 2 * warps * own
    cycles = table.taken(0, 0, 0, turns, warps) + table.shared_latency + table.block_barrier
    smem = warps * in_warp * kind.bits // 8
    return found + MovementCost(accesses=2 * own, turns=turns, barriers=1, smem_bytes=smem, cycles=cycles)


_EXECUTED: dict[str, Callable[[_Asked], MovementCost | None]] = {
    "load": _loaded,
    "convert": _converted,
    "stage": _stored,
    "store": _stored,
    "elementwise": _applied,
    "reduce": _reduced,
}
"""What executes something; views and arrays do not."""
