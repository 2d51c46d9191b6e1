"""Lines of a kernel that move values between threads: conversions, gathers, reductions, scans, histograms."""

from __future__ import annotations

import functools
import re
from typing import Final, NamedTuple

from layoutalg.ask.kernel_memory import what_it_moves
from layoutalg.ask.kernel_scope import FIXED, Scope, TensorTypes, Told, bits_of, registers_of
from layoutalg.f2 import LinearLayout, flatten_outs, rename_outs, transpose_outs
from layoutalg.f2.layout import linear
from layoutalg.ground.errors import BudgetError, LayoutError
from layoutalg.ground.verdict import Unknown
from layoutalg.notation.mlir import Operation
from layoutalg.notation.ttgir import TensorType
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.conversion_steps import WORD_BITS
from layoutalg.synth.conversions import conversion
from layoutalg.synth.conversions.gathers import gather as gather_plan
from layoutalg.targets.registry import lookup

VECTOR_WORDS: Final = 4
"""Words that one access of shared memory moves for a lane."""
_INTEGERS: Final = re.compile(r"arith\.(?:addi|andi|ori|xori|maxsi|minsi|maxui|minui)$")
_FLOATS: Final = re.compile(r"arith\.(?:max|min)(?:num|imum)f$")


def convert(scope: Scope, one: Operation, types: TensorTypes) -> Told | None:
    """Conversions; a transposition or reshape is one if the elements do not lie where its result wants them."""
    if len(types) != 2:
        return None
    source, destination = (linear(entry.layout(), "types") for entry in types)
    if one.name == "tt.trans":
        order = re.search(r"order\s*=\s*array<i32:([\d, ]{1,99})>", one.head)
        axes = tuple([int(part) for part in re.findall(r"\d+", order[1])]) if order else (1, 0)
        source = turned(source, axes)
    elif one.name == "tt.reshape":
        source, destination = (_row_major(layout) for layout in (source, destination))
    plan = _plan(source, destination, bits_of(types[0]), scope.target)
    if isinstance(plan, Unknown):
        return Told((f"not decided: {plan.reason}",), None)
    told = f"{plan.mechanism}: {plan.cost}"
    if plan.mechanism == "shared":
        told += f", {plan.smem_bytes} bytes of shared memory in {plan.rounds} pass{'es' * (plan.rounds != 1)}"
    moves = one.name == "ttg.convert_layout" and plan.cost.cycles
    notes, better = _elsewhere(scope, one, types) if moves else ([], "")
    notes += [plan.excess] if plan.excess else []
    return Told((told, *notes), float(plan.cost.cycles), 0.0, better, (), (plan.to_json(),))


@functools.lru_cache(64)
def _plan(source: LinearLayout, destination: LinearLayout, bits: int, target: str) -> ConversionPlan | Unknown:
    return conversion(source, destination, bits, target)


def _elsewhere(scope: Scope, one: Operation, types: TensorTypes) -> tuple[list[str], str]:
    """Return what fixes the operand's layout, and what loads or stores without the conversion would cost."""
    notes, found = list[str](), list[str]()
    maker, taker = scope.producer(one), scope.consumer(one)
    if maker is not None and maker.name in FIXED:
        notes.append(f"line {maker.line} ({maker.name}) leaves the operand where its instruction does")
    loads, stores = ("tt.load", "ttg.local_load"), ("tt.store", "ttg.local_store", "ttg.local_alloc")
    for other, names, wanted in ((maker, loads, types[1]), (taker, stores, types[0])):
        if other is None or other.name not in names:
            continue
        try:
            before, after = (what_it_moves(scope, other, wanted if turn else None) for turn in (0, 1))
        except BudgetError:
            raise
        except LayoutError:  # it cannot move this layout
            continue
        verb = "loads into" if names is loads else "stores from"
        layout = wanted.text.partition(", ")[2].removesuffix(">")
        found.append(f"free if line {other.line} ({other.name}) {verb} {layout}: {after} in place of {before}")
    return notes, "; ".join(found)


def gather(scope: Scope, one: Operation, types: TensorTypes) -> Told | None:
    """Gathers along an axis."""
    axis = one.attribute("axis")
    if len(types) < 2 or axis is None:
        return None
    plan = gather_plan(types[0].layout(), types[1].layout(), axis, bits_of(types[0]), scope.target)
    if isinstance(plan, Unknown):
        return Told((f"not decided: {plan.reason}",), None)
    return Told((f"{plan.mechanism}: {plan.cost}",), float(plan.cost.cycles), answers=(plan.to_json(),))


class Along(NamedTuple):
    """Values of an axis in a thread, neighbours among them, other values of the thread; lanes and warps of the axis."""

    registers: int
    run: int
    chains: int
    lanes: int
    warps: int


def along(one: Operation, types: TensorTypes) -> Along | str | None:
    """Return how a tensor lies along the axis of an operation, or why that is not counted."""
    axis = one.attribute("axis")
    if axis is None or not types or not 0 <= axis < len(types[0].shape):
        return None
    layout, counts, units = registers_of(types[0]), dict[str, int](), set[int]()
    number = list(layout.out_dims).index(f"dim{axis}")
    for part, vectors in layout.bases.items():
        inside = [vector for vector in vectors if vector[number]]
        if any(sum(map(bool, vector)) > 1 for vector in inside):
            return f"places along dimension {axis} also move along others: not counted"
        counts[part] = 1 << len(inside)
        units |= {vector[number] for vector in inside if part == "register"}
    run = next(1 << bit for bit in range(64) if 1 << bit not in units)
    held = 1 << sum(map(any, layout.bases["register"]))
    return Along(counts["register"], run, held // counts["register"], counts["lane"], counts["warp"])


def across(scope: Scope, one: Operation, types: TensorTypes) -> Told | None:
    """Reductions and scans along an axis: what a thread does alone, lanes by shuffles, warps through shared memory.

    Counts are those of Triton's code for NVIDIA. In a scan each run of neighbours in a thread is a partial result.
    """
    at = along(one, types)
    if not isinstance(at, Along):
        return None if at is None else Told((at,), None)
    axis, scans = one.attribute("axis"), one.name == "tt.scan"
    warps, costs = registers_of(types[0]).in_dims["warp"], scope.rates.instructions
    words = sum(-(-bits_of(entry) // WORD_BITS) for entry in types[: len(one.results) or 1])
    partials = at.chains * words * (at.registers // at.run if scans else 1)
    steps, more = at.lanes.bit_length() - 1, at.warps.bit_length() - 1
    shuffles, turns, waits = partials * steps, 0, steps * costs.shuffle_latency
    told = f"along dimension {axis}: {at.registers} values in a thread"
    told += f" in {partials} runs" if scans else ""
    whole = not scans and _whole(scope.target, one, types[0], at.lanes)
    if whole:
        told += f", then {partials} redux.sync over {at.lanes} lanes"
    elif steps:
        told += f", then {'at least ' * scans}{shuffles} shuffles over {at.lanes} lanes"
    else:
        told += ", no shuffle"
    if at.warps > 1:
        told += f", then {at.warps} warps through shared memory and 1 barrier"
        waits += costs.block_barrier + costs.shared_latency
        once = -(-partials // at.lanes)  # lanes of the axis have the same
        turns = warps * (partials * (1 + -(-at.warps // VECTOR_WORDS)) if scans else 2 * once)
        if not scans:
            shuffles, waits = shuffles + partials * more, waits + more * costs.shuffle_latency
            told += "" if whole else f", then {partials * more} shuffles"
    return Told((told,), None if whole else costs.taken(shuffles, 0, 0, turns, warps) + waits)


def _whole(target: str, one: Operation, entry: TensorType, lanes: int) -> bool:
    """Return whether ``redux.sync`` reduces a warp: 32-bit integers; on 10.0 and 10.3 also maxima of f32."""
    capability = lookup(target).compute_capability
    inner = [part.name for region in one.regions for part in region.operations]
    kinds = {"i32": _INTEGERS} | ({"f32": _FLOATS} if capability is not None and capability[0] == 10 else {})
    alone = capability is not None and lanes == lookup(target).lanes and inner[1:] == ["tt.reduce.return"]
    return alone and entry.dtype in kinds and bool(kinds[entry.dtype].match(inner[0]))


def histogram(scope: Scope, _: Operation, types: TensorTypes) -> Told | None:
    """Histograms: an atomic update of shared memory for each element."""
    if len(types) != 2:
        return None
    layout = registers_of(types[0])
    each, warps = layout.in_dims["register"], layout.in_dims["warp"]
    told = (
        f"{each * warps} atomic additions of a warp to {types[1].shape[0]} bins in shared memory: at least as many "
        "turns; lanes with one bin take one after the other, which the data decide"
    )
    return Told((told,), scope.rates.turns(each * warps, warps))


def turned(layout: LinearLayout, axes: tuple[int, ...]) -> LinearLayout:
    """Return the layout of the transposed tensor, whose dimension d is dimension axes[d] of the given one."""
    names = [f"dim{axis}" for axis in axes]
    return rename_outs(transpose_outs(layout, names), {name: f"dim{place}" for place, name in enumerate(names)})


def _row_major(layout: LinearLayout) -> LinearLayout:
    """Return a register layout on the elements in row-major order."""
    return flatten_outs(transpose_outs(layout, sorted(layout.out_dims, key=lambda name: -int(name[3:]))), "dim0")
