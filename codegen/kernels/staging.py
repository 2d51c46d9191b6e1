"""Staging: tiles of a matrix are stored to shared memory in a given layout, and registers are loaded from there.

Implementation notes: the layout and its accesses are those of a ``SwizzlePlan``; an address is one number per thread
XORed with constants, and every access uses the instruction counted by the plan.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layoutalg.codegen.kernel import KernelSource, checked_name, signature
from layoutalg.codegen.kernels import answer
from layoutalg.codegen.kernels.answer import CHECK, MOST_BYTES, ArrayKernel
from layoutalg.codegen.kernels.arguments import ArrayArgument
from layoutalg.codegen.kernels.turned import fields, vector_of
from layoutalg.codegen.plans import upheld
from layoutalg.codegen.portable import ELEMENT_TYPES, VECTOR_TYPES, portable_prelude
from layoutalg.codegen.thread_numbers import IntArray, Numbers
from layoutalg.proofs.swizzling import SwizzlePlan
from layoutalg.targets.banks import bank_model
from layoutalg.targets.global_memory import VECTOR_BYTES

MOST_REGISTERS = 128

_BODY = """
// {what}.
// Element of the tile to element of shared memory: {smem}.
{told}extern "C" __global__ void __launch_bounds__({threads}) {name}({signature})
{{
    const la_u32 t = threadIdx.x;
    const la_u32 row0 = blockIdx.x / {across}u * {rows}u, col0 = blockIdx.x % {across}u * {cols}u;
{parts}
    // From memory; elements outside the matrix are 0.
{reads}
    // To shared memory in the layout.
{stores}    __syncthreads();

{loads}}}
"""


def staging_kernel(
    swizzle: SwizzlePlan, shape: Sequence[int], target: str | None = None, *, name: str | None = None
) -> ArrayKernel:
    """Return the kernel that stages every tile of a matrix and writes out the registers of each load.

    Mathematically: with T the tile of block b, A the k-th access after the first, r a register and t a thread,
    ``into[b, k, t, r] = T[A(r, t)]``; 0 outside the matrix. Tiles are numbered along the rows first.

    Args:
        swizzle: A plan whose first access is a store and whose others are loads, of tiles with axes (row, column).
        shape: Rows and columns of the dense row-major matrix.
        target: The target; by default the plan's.
        name: Kernel symbol.

    Example:
        >>> from layoutalg.codegen.kernels.turned import TileShape
        >>> from layoutalg.codegen.kernels.transpose import tile_swizzle
        >>> staging_kernel(tile_swizzle(TileShape(64, 64, 8, 8, 32, 2), 16, "sm_90a"), (100, 100)).blocks
        4
    """
    plan = upheld(CHECK.kind(swizzle, SwizzlePlan, "swizzle"))
    all_rows, all_cols = answer.checked_shape(shape, 2)
    extents = (all_rows, all_cols)
    target = plan.served[0].target if target is None else target
    found = answer.checked_target(target)
    size = plan.element_bits // 8
    kinds = [access.kind for access in plan.accesses]
    if kinds[0] != "store" or set(kinds[1:]) != {"load"} or size not in ELEMENT_TYPES or len(plan.smem.in_dims) != 2:
        rule = "must be a store followed by loads, of 1, 2, 4 or 8-byte elements, of tiles with two axes"
        raise CHECK.malformed("swizzle", rule, ", ".join(kinds))
    rows, cols = plan.smem.in_dims.values()
    tables = [_table(plan, number) for number in range(len(kinds))]
    threads = len(tables[0][0])
    if any(len(place) != threads for place, _ in tables) or threads % found.lanes or threads > 1024:
        raise CHECK.malformed(
            "swizzle", f"must have accesses with equal numbers of threads, whole warps of {found.lanes}", threads
        )
    registers = tables[1][0].shape[1]
    if any(place.shape[1] > MOST_REGISTERS or place.shape[1] != registers for place, _ in tables[1:]):
        rule = f"must have loads with equal numbers of registers, at most {MOST_REGISTERS}"
        raise CHECK.malformed("swizzle", rule, [place.shape[1] for place, _ in tables])
    smem = answer.fitting(rows * cols * size, target, f"a tile of {rows} x {cols}")
    across = -(-extents[1] // cols)
    most = min(answer.most_blocks(found, threads), MOST_BYTES // ((len(tables) - 1) * threads * registers * size))
    blocks = answer.checked_grid(lambda extent: -(-extent // rows) * across, all_rows, most)
    numbers = Numbers()
    reads, stores = _store(plan, tables[0], extents, size, numbers, target)
    loads = [line for number in range(1, len(tables)) for line in _load(plan, tables, number, size, numbers, target)]
    what = f"staging of {extents[0]} x {extents[1]} {answer.elements(size)} in tiles of {rows} x {cols}"
    name = f"la_staging_{rows}x{cols}_b{8 * size}" if name is None else checked_name(name)
    kind = ELEMENT_TYPES[size]
    parameters = ((f"const {kind}*", "from"), (f"{kind}*", "into"))
    text = "".join(numbers.tables) + _BODY.format(
        what=answer.sentence(what), smem=plan.smem, told="".join(f"// {each}\n" for each in plan.served),
        threads=threads, name=name, signature=signature(parameters), across=across, rows=rows, cols=cols,
        parts=numbers.declared(), reads="".join(f"    {line}\n" for line in reads),
        stores="".join(f"    {line}\n" for line in stores),
        loads="".join(f"    {line}\n" for line in loads),
    )  # fmt: skip
    kernel = KernelSource(name, portable_prelude(target) + text, target, threads, smem, parameters)
    held = (blocks, len(tables) - 1, threads, registers)
    arrays = (
        ArrayArgument("source", extents, size, VECTOR_BYTES),
        ArrayArgument("destination", held, size, VECTOR_BYTES, written=True),
    )
    return ArrayKernel(kernel, blocks, what, sum(each.nbytes for each in arrays), arrays, plan, served=plan.served)


def _table(plan: SwizzlePlan, number: int) -> tuple[IntArray, IntArray]:
    """Tile element (row + rows * column) and shared offset in elements, by thread and register."""
    layout = plan.accesses[number].layout
    names = list(layout.in_dims)
    order = [names.index(name) for name in reversed(names) if name not in ("register", "lane")]
    order += [names.index("lane"), names.index("register")]
    shape = list(layout.in_dims.values())

    def arranged(table: IntArray) -> IntArray:
        return table.reshape(shape, order="F").transpose(*order).reshape(-1, layout.in_dims["register"])

    inner = np.asarray(layout.table(), dtype=np.int64)
    return arranged(inner), arranged(np.asarray(plan.smem.table(), dtype=np.int64)[inner])


def _runs(plan: SwizzlePlan, number: int, offsets: IntArray) -> list[tuple[int, ...]]:
    """Registers of every instruction in offset order, without registers that duplicate another."""
    served = plan.served[number]
    count = bank_model(served.target, served.instruction).access_bytes * 8 // plan.element_bits
    _, first = np.unique(offsets, axis=1, return_index=True)
    order = sorted(first.tolist(), key=lambda register: int(offsets[0, register]))
    return [tuple(order[at : at + count]) for at in range(0, len(order), count)]


def _store(
    plan: SwizzlePlan, table: tuple[IntArray, IntArray], extents: tuple[int, int], size: int, numbers: Numbers,
    target: str,
) -> tuple[list[str], list[str]]:  # fmt: skip
    rows, cols = plan.smem.in_dims.values()
    place, offsets = table
    row, col = place % rows, place // rows
    reads, stores = list[str](), list[str]()
    names: dict[str, str] = {}

    def placed(register: int) -> tuple[str, str]:
        """The condition for an element to be inside the matrix, and its index there."""
        found = []
        for letter, first, part in (("r", "row0", row), ("c", "col0", col)):
            expression = f"{first} + {numbers.text(part[:, register])}"
            if expression not in names:
                names[expression] = f"{letter}{len(names)}"
                reads.append(f"const la_u32 {names[expression]} = {expression};")
            found.append(names[expression])
        below, across = found
        return f"{below} < {extents[0]}u && {across} < {extents[1]}u", f"(la_u64){below} * {extents[1]}u + {across}"

    for number, run in enumerate(_runs(plan, 0, offsets)):
        width = len(run) * size
        at = numbers.alone(offsets[:, run[0]] * size)
        together = all(
            (row[:, register] == row[:, run[0]]).all() and (col[:, register] == col[:, run[0]] + step).all()
            for step, register in enumerate(run)
        )
        if together and width >= 4 and extents[1] * size % width == 0 and cols * size % width == 0:
            kind = VECTOR_TYPES[width]
            inside, element = placed(run[0])
            zero = " = 0u" if width == 4 else " = {}"
            reads += [f"{kind} a{number}{zero};", f"if ({inside}) a{number} = *(const {kind}*)(from + {element});"]
            stores.append(f"la_shared_store_b{8 * width}({at}, a{number});")
            continue
        elements = [f"a{number}_{register}" for register in run]
        for name, register in zip(elements, run, strict=True):
            inside, element = placed(register)
            reads.append(f"const {ELEMENT_TYPES[size]} {name} = {inside} ? from[{element}] : 0;")
        words = _packed(elements, size)
        stores.append(f"la_shared_store_b{8 * width}({at}, {vector_of(words, len(words), target)});")
    return reads, stores


def _packed(elements: Sequence[str], size: int) -> list[str]:
    """Elements packed into words, the first lowest; a single narrow element is its own word."""
    if size == 8:
        return [word for one in elements for word in (f"(la_u32){one}", f"(la_u32)({one} >> 32)")]
    if size == 4:
        return list(elements)
    per_word = 4 // size
    return [
        " | ".join(
            f"(la_u32){one} << {8 * size * part}" if part else f"(la_u32){one}"
            for part, one in enumerate(elements[first : first + per_word])
        )
        for first in range(0, len(elements), per_word)
    ]


def _load(
    plan: SwizzlePlan, tables: Sequence[tuple[IntArray, IntArray]], number: int, size: int, numbers: Numbers,
    target: str,
) -> list[str]:  # fmt: skip
    offsets = tables[number][1]
    threads, registers = offsets.shape
    accesses = len(tables) - 1
    lines = [f"// Registers of access {number}."]
    block = f"((la_u64)blockIdx.x * {accesses}u + {number - 1}u)" if accesses > 1 else "(la_u64)blockIdx.x"
    first = f"{block} * {threads * registers}u + t * {registers}u"
    lines.append(f"{ELEMENT_TYPES[size]}* held{number} = into + {first};")
    same: dict[bytes, list[int]] = {offsets[:, register].tobytes(): [] for register in range(registers)}
    for register in range(registers):
        same[offsets[:, register].tobytes()].append(register)
    for index, run in enumerate(_runs(plan, number, offsets)):
        width, value = len(run) * size, f"b{number}_{index}"
        kind = VECTOR_TYPES.get(width, "la_u32")
        lines.append(f"const {kind} {value} = la_shared_load_b{8 * width}({numbers.alone(offsets[:, run[0]] * size)});")
        words = fields(max(1, width // 4), value)
        alone = all(same[offsets[:, register].tobytes()] == [run[0] + step] for step, register in enumerate(run))
        if alone and width in VECTOR_TYPES and registers * size % width == 0 and run[0] * size % width == 0:
            where = f"(held{number} + {run[0]})" if run[0] else f"held{number}"
            lines.append(f"*({kind}*){where} = {vector_of(words, len(words), target)};")
            continue
        for place, register in enumerate(run):
            if size == 8:
                taken = f"(la_u64){words[2 * place + 1]} << 32 | {words[2 * place]}"
            else:
                word, shift = words[place * size // 4], 8 * (place * size % 4)
                taken = f"({ELEMENT_TYPES[size]})({word} >> {shift})" if shift else f"({ELEMENT_TYPES[size]}){word}"
            lines += [f"held{number}[{copy}] = {taken};" for copy in same[offsets[:, register].tobytes()]]
    return lines
