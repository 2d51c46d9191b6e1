"""Lines of a kernel for units beside the threads: tensor maps, matrix instructions, tensor memory.

References: PTX ISA 9.1, 9.7.9.27 (tensor copies; ``.tile::gather4``: four rows of a box of one), 9.7.16.8
(``tcgen05.ld``, ``.st``).
"""

from __future__ import annotations

import re
from dataclasses import replace
from math import prod
from typing import Any, Final

from layoutalg.ask.global_moves import CHECK
from layoutalg.ask.kernel_registers import turned
from layoutalg.ask.kernel_scope import MEASURED, Scope, TensorTypes, Told, bits_of, registers_of
from layoutalg.ask.tile_facts import fragments
from layoutalg.f2 import LinearLayout, invert_and_compose, sublayout
from layoutalg.f2.layout import linear
from layoutalg.ground.refusal import Broken
from layoutalg.ground.verdict import Unknown
from layoutalg.notation.mlir import Operation
from layoutalg.notation.ttgir import TensorType
from layoutalg.notation.written import stated
from layoutalg.proofs.admission import Admission, Admitted
from layoutalg.proofs.conversion_steps import WORD_BITS
from layoutalg.proofs.dtypes import element_type
from layoutalg.synth.admission import admissible
from layoutalg.synth.tcgen05 import find_registers
from layoutalg.targets.layouts.tmem import ATOMS, ROWS, SPLIT_ATOM
from layoutalg.targets.nvidia import tcgen05 as hardware
from layoutalg.targets.nvidia.tensormap import is_measured
from layoutalg.targets.nvidia.tensormap.checks import GATHER_TARGETS
from layoutalg.targets.registry import lookup

TMA: Final = {
    "ttng.async_tma_copy_global_to_local": "tma",
    "ttng.async_tma_copy_local_to_global": "tma.store",
    "ttng.async_tma_gather": "tma",
    "ttng.async_tma_scatter": "tma.store",
    "ttng.async_tma_reduce": "tma.reduce",
}
GATHERED_ROWS: Final = 4


def tma(scope: Scope, one: Operation, types: TensorTypes) -> Told | None:
    """Copies, gathers, scatters and reductions by a tensor map: box and swizzle, or why none carries the tile."""
    memory = next((entry for entry in reversed(types) if "memdesc" in entry.text and entry.dtype != "i64"), None)
    if memory is None:
        return None
    consumer, size = TMA[one.name], prod(memory.shape) * bits_of(memory) // 8
    if consumer == "tma.reduce":
        consumer += "." + (re.findall(r"\b[a-z]+\b", one.head) or ["add"])[0]
    found, assumed = _admission(scope, memory, consumer, memory)
    told = _carried(found, consumer)._replace(assumed=assumed)
    if one.name not in ("ttng.async_tma_gather", "ttng.async_tma_scatter"):
        issues = len(found.descriptor.issues) if isinstance(found, Admitted) else 1
        return told._replace(cost=scope.rates.copied(size, issues))
    form = "scatter4" if consumer == "tma.store" else "gather4 to shared::cta"
    if scope.target not in GATHER_TARGETS[form]:
        missing = f"GATHER_ARCH: {scope.target} does not have {form}; these do: {', '.join(GATHER_TARGETS[form])}"
        return Told((missing,), None)
    inner = found.descriptor.tensor_map.box[0] if isinstance(found, Admitted) else memory.shape[-1]
    copies = -(-memory.shape[0] // GATHERED_ROWS) * (memory.shape[-1] // inner)
    line = f"{copies} x {form}, {GATHERED_ROWS} rows of {inner} elements each, {size} bytes; "
    return told._replace(lines=(f"{line}the rows as in a plain copy", *told.lines), cost=scope.rates.moved(size))


def _admission(scope: Scope, layout: Any, consumer: str, entry: TensorType) -> tuple[Admission, tuple[str, ...]]:
    """Ask whether an instruction carries a tile; what a copy engine that was not measured does is assumed."""
    target, assumed = scope.target, tuple[str, ...]()
    if consumer.startswith("tma") and lookup(target).has_tensor_maps and not is_measured(target):
        target, assumed = MEASURED, (f"the copy engine of {target}, not measured, does what that of {MEASURED} does",)
    return admissible(layout, consumer, target, stated(entry).dtype), assumed


def _carried(found: Admission, consumer: str) -> Told:
    """Return whether an instruction carries a tile."""
    answer = {"consumer": consumer, "admitted": None if isinstance(found, Unknown) else bool(found)}
    if isinstance(found, Admitted):
        lines = [*str(found).split("\n")[1:], ""]
        return Told((f"{consumer} carries it: {lines[0].replace('admissible', '').strip()}",), answers=(answer,))
    if isinstance(found, Unknown):
        return Told((f"{consumer} is not decided: {found.reason}",), answers=(answer,))
    repair = next((str(each) for each in found.repairs[:1]), "")
    told = f"{consumer} does not carry it: {found.reasons[0]}"
    return Told((told,), better=repair, answers=(answer | {"rules": list(found.rules)},))


def product(scope: Scope, one: Operation, types: TensorTypes) -> Told | None:
    """The operands of matrix instructions, and the time of the tensor cores."""
    told = []
    for side, entry in zip("AB", types, strict=False):
        if "tensor_memory" in entry.attribute.kind:
            told.append(Told((f"{side} is in tensor memory",)))
        elif "memdesc" in entry.text:
            layout = linear(entry.layout(), "types")
            layout = turned(layout, (1, 0)) if side == "B" else layout  # Triton writes K x N
            consumer = f"{'tcgen05' if 'gen5' in one.name else 'wgmma'}.{side}"
            told.append(_carried(_admission(scope, layout, consumer, entry)[0], consumer))
        elif one.name == "ttng.warp_group_dot":
            consumer = f"wgmma.{side}.registers"
            told.append(_carried(_admission(scope, entry, consumer, entry)[0], consumer))
        else:
            facts = list(fragments(entry.layout(), stated(entry).dtype or "f16", scope.target))
            said_of = facts[0].lines[0] if facts else f"not decided for {scope.target}"
            told.append(Told((f"{side}: {said_of}",), answers=tuple([fact.value for fact in facts])))
    if not told:
        return None
    better = "; ".join([each.better for each in told if each.better])
    lines = tuple([line for each in told for line in each.lines])
    cost = None
    if one.name == "ttng.warp_group_dot" and len(types) > 1 and min(len(entry.shape) for entry in types[:2]) > 1:
        (m, k), n, name = types[0].shape[-2:], types[1].shape[-1], stated(types[0]).dtype or ""
        cost = scope.rates.product(m, n, k, element_type(name).operand)
    return Told(lines, cost, 0.0, better, (), tuple([answer for each in told for answer in each.answers]))


def tensor_memory(scope: Scope, one: Operation, types: TensorTypes) -> Told | None:
    """Loads and stores of tensor memory: the shape of ``tcgen05.ld`` or ``.st`` that carries the registers."""
    memory = next((entry for entry in types if "tensor_memory" in entry.attribute.kind), None)
    registers = next((entry for entry in types if "memdesc" not in entry.text), None)
    if memory is None or (registers is None and one.name != "ttng.tmem_copy"):
        return None
    if registers is None:
        size = prod(memory.shape) * bits_of(memory) // 8
        return Told((f"tcgen05.cp of {size} bytes from shared memory; its shape is not decided",), None)
    name = f"tcgen05.{'ld' if one.name == 'ttng.tmem_load' else 'st'}"
    if scope.target not in hardware.ARCHS:
        return Told((f"TCGEN05_ARCH: {scope.target} has no {name}",), None)
    if "scales" in memory.attribute.kind:
        return Told((f"{name} of scale factors, which all warps hold: its shape is not decided",), None)
    words = _words(linear(replace(memory, buffer=None).layout(), "types"), registers, bits_of(memory))
    found = {shape: find_registers(words, shape) for shape in (*ATOMS, SPLIT_ATOM)}
    plans = {shape: len(plan[0].places) for shape, plan in found.items() if not isinstance(plan, Broken)}
    if not plans:
        reasons = "; ".join([f"{shape}: {each.reason}" for shape, each in found.items() if isinstance(each, Broken)])
        return Told((f"no {name} carries it: {reasons}",), None, answers=({"consumer": name, "admitted": False},))
    shapes = sorted(plans, key=lambda shape: plans[shape])
    told = f"{name}.{shapes[0]} carries it: {plans[shapes[0]]} of .x1 in each warp, neighbouring columns in one .xN"
    answer = {"consumer": f"{name}.{shapes[0]}", "admitted": True, "accesses": plans[shapes[0]], "others": shapes[1:]}
    return Told((told, *[f"so does {', '.join(shapes[1:])}"] * (len(shapes) > 1)), None, answers=(answer,))


def _words(memory: LinearLayout, registers: TensorType, bits: int) -> LinearLayout:
    """Return the row and 32-bit column of each 32-bit register: narrower elements are packed in order, or alone."""
    if bits > WORD_BITS:
        raise CHECK.malformed("types", f"must have elements of at most {WORD_BITS} bits", bits)
    places = invert_and_compose(registers_of(registers), memory)
    bases = sublayout(places, ("register", "lane", "warp"), ("row", "col")).bases
    packed = (WORD_BITS // bits).bit_length() - 1
    low = [(0, 1 << bit) for bit in range(packed)]
    if low and any(column & 1 for vectors in bases.values() for _, column in vectors):
        first, rest = [*bases["register"][:packed]], {**bases, "register": bases["register"][packed:]}
        if first != low or any(column % (1 << packed) for vectors in rest.values() for _, column in vectors):
            raise CHECK.malformed("types", f"must have registers whose {1 << packed} first are a word in order", first)
        bases = rest
    words = {axis: [(row, column >> packed) for row, column in vectors] for axis, vectors in bases.items()}
    return LinearLayout.from_bases(words, {"row": ROWS, "col": max(1, places.out_dims["col"] >> packed)})
