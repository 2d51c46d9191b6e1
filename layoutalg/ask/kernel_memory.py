"""Lines of a kernel that move registers to or from memory: through pointers, atomically, or to shared memory.

Stores and atomic updates access each element once: copies in other registers, lanes and warps take no part. A vector
does not cross an element at which the mask may change. Lanes of an atomic instruction that name one address take one
pass each (CUDA C++ Programming Guide, SIMT architecture: such updates are serialized); a pass needs the sectors of the
addresses that are still to be updated.

References: Triton 3.9.0, ``AtomicRMWOpConversion``: vectors of 16 bytes for sums of f16, bf16 and f32 from compute
capability 9.0 on, pairs of f16 before and on AMD, of bf16 on gfx942, otherwise single elements.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from math import gcd, lcm, prod
from typing import Any, Final, NamedTuple

import numpy as np

from layoutalg.ask.bank_turns import BankReport, banks
from layoutalg.ask.global_moves import CHECK, Asked, global_moves, placed
from layoutalg.ask.global_sectors import TransactionReport, report_of
from layoutalg.ask.kernel_addresses import POINTER, Number
from layoutalg.ask.kernel_scope import ATOMICS, SHARED, Scope, TensorTypes, Told, attribute_text, bits_of, registers_of
from layoutalg.f2 import LinearLayout, remove_zero_bases
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, MalformedError
from layoutalg.notation.mlir import Operation
from layoutalg.notation.ttgir import TensorType
from layoutalg.proofs.register_map import IntArray
from layoutalg.proofs.tensor import BASE_ALIGN_BYTES, Tensor
from layoutalg.proofs.tile_map import layout_of, offsets
from layoutalg.targets.global_memory import LINE_BYTES, GlobalAccess, requested, touched, vectors
from layoutalg.targets.registry import lookup

PLAIN: Final = {8: "u8", 16: "u16", 32: "u32", 64: "u64"}
_ASYNC: Final = "ttg.async_copy_global_to_local"


class Place(NamedTuple):
    """The tensor of an access, the same with unknown strides of whole lines, and what is said and assumed of both.

    ``first``: elements from the base of ``loose`` to its first. ``run``: elements with an equal mask, 0 for all.
    """

    exact: Tensor
    loose: Tensor
    first: int
    run: int
    notes: list[str]
    assumed: list[str]
    lost: bool


def place(scope: Scope, one: Operation) -> Place:
    """Return where the elements of an access through pointers are."""
    value, pointers = scope.address(one), scope.types.of(one.types)[0]
    bits = POINTER.search(one.types)
    size, shape, notes = max(8, int(bits[1]) if bits else bits_of(pointers)) // 8, pointers.shape, list[str]()
    if 8 * size not in PLAIN:
        raise CHECK.malformed("tensor", "must have elements of 8, 16, 32 or 64 bits", pointers.dtype)
    if isinstance(value, str) or len(value.strides) != len(shape):
        lost = value if isinstance(value, str) else "the pointers have another rank"
        notes.append(f"the addresses depend on data or arguments: {lost}")
        plain, order = [*range(len(shape))][::-1], pointers.attribute.entries.get("order")
        fast = order if isinstance(order, list) and {*order} == {*plain} and len(order) == len(plain) else plain
        exact = loose = [prod(shape[other] for other in fast[: fast.index(dim)]) for dim in range(len(shape))]
        align, grain, first = BASE_ALIGN_BYTES, BASE_ALIGN_BYTES, 0
        assumed = [f"dimension {fast[0]} is contiguous, rows lie densely, the first element is aligned"]
    else:
        exact, loose, assumed = _strides(value.strides, shape, size, one.name in ATOMICS)
        assumed, align = [*value.assumed, *assumed], gcd(value.base.factor, BASE_ALIGN_BYTES)
        grain = gcd(value.base.divisor, BASE_ALIGN_BYTES)
        first = value.base.rest % grain
        if first % size:
            raise CHECK.malformed("tensor", f"must begin at a multiple of its elements' {size} bytes", first)
    line = vectors(scope.target, False, 8)[0].line_bytes
    if grain % line:
        behind = f"{first} bytes behind a multiple" if first else "at a multiple"
        known = f"{first} modulo {grain}" if first else f"a multiple of {grain}"
        assumed.append(f"the first element is {behind} of {line} bytes; known: {known}")
    (name, mask), run = scope.mask(one), 0
    if name:
        notes.append(f"masked by {name}: counted as if every lane were active")
    if mask is not None and len(mask) == len(shape):
        run = gcd(*[part.factor for part, step in zip(mask, exact, strict=True) if step == 1])
        notes[-1] += f"; it may change at every {f'multiple of {run}' if run > 1 else 'element'}" if run else ""
    elif name:
        assumed.append(f"{name} is equal in every vector")
    kind = PLAIN[8 * size]
    there, counted = Tensor(shape, tuple(exact), kind, align), Tensor(shape, tuple(loose), kind)
    return Place(there, counted, first // size, run, notes, assumed, isinstance(value, str))


def pointers(scope: Scope, one: Operation, types: TensorTypes) -> Told | None:
    """Loads, stores and asynchronous copies through pointers."""
    if not types or "memdesc" in types[0].text:
        return None
    registers = types[0].layout()
    found, at = sectors(scope, one, registers)
    told, better = [*at.notes, *found.counts], ""
    if (after := found.after) and after.asked and isinstance(after.asked.registers, LinearLayout):
        better = f"{attribute_text(after.asked.registers)}: {after.sectors} sectors in place of {found.sectors}"
    cost, excess = (scope.rates.moved(many * found.sector_bytes) for many in (found.sectors, found.excess))
    answers = [found.to_json()]
    if one.name == _ASYNC and len(types) > 1:
        written = banks(registers, types[1], bits_of(types[1]), "store", target=scope.target)
        told.append(f"into shared memory, by the same lanes: {str(written).partition(chr(10))[0]}")
        turns = [scope.rates.turns(many, registers.in_dims["warp"]) for many in (written.turns, written.conflicts)]
        cost, excess = (cost and cost + turns[0]), (excess or 0.0) + turns[1]
        answers.append(written.to_json())
    return Told(tuple(told), cost, excess or 0.0, better, tuple(at.assumed), tuple(answers))


def sectors(scope: Scope, one: Operation, registers: Any) -> tuple[TransactionReport, Place]:
    """Count the sectors of an access by registers."""
    at, stores = place(scope, one), "store" in one.name
    access = _narrowed(Asked(registers, at.exact, "store" if stores else "load", scope.target), at.run)
    name = access.name
    if one.name == _ASYNC and lookup(scope.target).vendor == "nvidia" and access.bytes in (4, 8, 16):
        name = f"cp.async.{access.bytes}"
    once = remove_zero_bases(registers, "warp") if stores or one.name == _ASYNC else registers
    return report_of(Asked(once, at.loose, name, scope.target, first=at.first)), at


def _narrowed(asked: Asked, run: int) -> GlobalAccess:
    """Return the widest instruction that moves all registers and whose vectors divide runs of elements."""
    found = placed(asked)
    access = global_moves(found, asked)[0]
    for other in vectors(asked.target, access.store, found.bits):
        if run % (access.bits // found.bits) == 0:
            break
        if other.bits < access.bits:
            with suppress(MalformedError, AdmissibilityError):
                access = global_moves(found, replace(asked, instruction=other.name))[0]
    return access


def atomics(scope: Scope, one: Operation, types: TensorTypes) -> Told | None:
    """Atomic updates and exchanges."""
    if not types:
        unit = vectors(scope.target, True, 8)[0].sector_bytes
        return Told((f"one thread: 1 sector of {unit} bytes",), scope.rates.moved(unit))
    at, layout = place(scope, one), registers_of(types[0])
    for axis in ("register", "lane", "warp"):
        layout = remove_zero_bases(layout, axis)
    exact, loose = (
        placed(Asked(layout, tensor, "store", scope.target, first=first)).starts // 8
        for tensor, first in ((at.exact, 0), (at.loose, at.first))
    )
    verb = one.head.partition(",")[0] if "rmw" in one.name else "cas"
    element = (POINTER.search(one.types) or [at.exact.dtype])[0].rpartition("<")[2]
    size = int(at.exact.dtype[1:]) // 8
    many = _together(exact, size, _most(scope.target, verb, element, size), at.run, at.exact.base_align_bytes)
    rows = loose[..., ::many].transpose(0, 2, 1).reshape(-1, loose.shape[1])
    access, wide = vectors(scope.target, True, 8 * size)[-1], many * size
    turn = _occurrence(rows)
    passes = [np.where(turn == number, rows, -1) for number in range(int(turn.max()) + 1)]
    every = sum(int(touched(part, wide, access.sector_bytes).sum()) for part in passes)
    once, lines = (int(touched(rows, wide, unit).sum()) for unit in (access.sector_bytes, access.line_bytes))
    least = int((-(-requested(rows, wide) // access.sector_bytes)).sum())
    name = f"{verb}{f'.v{many}' * (many > 1)}.{element}"
    told = [*at.notes, f"{len(rows)} x {name}: {once} sectors of {access.sector_bytes} bytes in {lines} lines"]
    if len(passes) > 1:
        told.append(f"up to {len(passes)} lanes update one address, one after the other: {every} sectors in all")
    assumed = (*at.assumed, *["no two lanes update one address"] * at.lost)
    cost, excess = (scope.rates.moved(count * access.sector_bytes) for count in (every, every - least))
    answer = {"instruction": name, "accesses": len(rows), "sectors": once, "lines": lines, "ideal": least}
    answer |= {"lanes_of_one_address": len(passes), "sectors_of_all_passes": every}
    return Told(tuple(told), cost, excess or 0.0, "", assumed, (answer,))


def _most(target: str, verb: str, element: str, size: int) -> int:
    """Return the bytes that one atomic instruction of a lane can update."""
    capability = lookup(target).compute_capability
    if verb != "fadd" or element not in ("f16", "bf16", "f32"):
        return size
    pairs = element == "f16" or (element, target) == ("bf16", "gfx942")
    return 16 if capability is not None and capability >= (9, 0) else 4 if pairs else size


def _together(starts: IntArray, size: int, most: int, run: int, align: int) -> int:
    """Return how many registers in order are one aligned vector in every lane."""
    for many in (most // size >> step for step in range((most // size).bit_length() - 1)):
        if starts.shape[2] % many or run % many or align % (many * size) or (starts[..., ::many] % (many * size)).any():
            continue
        parts = starts.reshape(*starts.shape[:2], -1, many)
        if all((parts[..., after] - parts[..., before] == size).all() for before, after in pairwise(range(many))):
            return many
    return 1


def _occurrence(rows: IntArray) -> IntArray:
    """Return for each lane how many lanes before it in its row have the same address."""
    same = rows[:, :, None] == rows[:, None, :]
    return np.asarray(np.tril(same, -1).sum(axis=2), dtype=np.int64)


def _allocated(memory: TensorType) -> int:
    """Return the bytes of an allocation: of all its buffers, padded in one piece, without padding behind the last."""
    count = prod(memory.shape)
    pairs: tuple[tuple[int, int], ...] = ()
    if memory.attribute.kind == "padded_shared":
        pairs = memory.layout().pairs
    return (count + sum(padding * ((count - 1) // interval) for interval, padding in pairs)) * bits_of(memory) // 8


def shared(scope: Scope, one: Operation, types: TensorTypes) -> Told | None:
    """Loads and stores of registers, and allocations with their bytes."""
    memory = next((entry for entry in types if "memdesc" in entry.text), None)
    if memory is None:
        return None
    told = [f"{_allocated(memory)} bytes of shared memory"] if one.name == "ttg.local_alloc" else []
    registers = next((entry for entry in types if "memdesc" not in entry.text), None)
    if registers is None:
        return Told(tuple(told))
    layout = registers_of(registers)
    found, better = turns(scope, one, layout), ""
    told.append(str(found).partition("\n")[0])
    if not found.conflict_free:
        told += found.why.split("\n")[2:3]
        better = f"shared layout {attribute_text(found.cure)}, if its other users take it" if found.cure else ""
    cost, least = (
        scope.rates.turns(many, layout.in_dims["warp"]) for many in (found.turns, found.turns - found.conflicts)
    )
    return Told(tuple(told), cost, cost - least, better, (), (found.to_json(),))


def turns(scope: Scope, one: Operation, registers: Any) -> BankReport:
    """Count the turns by ordinary instructions, or by matrices of 16-bit elements where those take fewer."""
    memory = next(entry for entry in scope.types.of(one.types) if "memdesc" in entry.text)
    tile: Any = memory
    begins = scope.begins(one)
    if begins is not None and len(begins) == len(memory.shape) == len(memory.layout_shape):
        whole = offsets(layout_of(memory.layout(), memory.layout_shape, bits_of(memory) // 8), memory.layout_shape)
        tile = whole[tuple(slice(at, at + size) for at, size in zip(begins, memory.shape, strict=True))]
    target, verb = lookup(scope.target), "load" if one.name == "ttg.local_load" else "store"
    found = banks(registers, tile, bits_of(memory), verb, target=scope.target)
    matrix_of = {"load": "ldmatrix", "store": "stmatrix"}[verb]
    capable = target.compute_capability is not None and (verb == "load" or target.compute_capability >= (9, 0))
    for kind in (matrix_of, f"{matrix_of}.trans") if capable and bits_of(memory) == 16 else ():
        try:
            other = banks(registers, tile, 16, kind, target=scope.target)
        except BudgetError:
            raise
        except LayoutError:  # the registers are not its fragments
            continue
        found = min(found, other, key=lambda report: (report.turns, report.accesses))
    return found


def what_it_moves(scope: Scope, one: Operation, wanted: TensorType | None) -> str:
    """Return what a load or store costs with other registers, or with its own."""
    types = scope.types.of(one.types)
    own = wanted or next((entry for entry in types if "memdesc" not in entry.text), None)
    if own is None or len(types) < 1 + (one.name in SHARED):
        raise CHECK.malformed("types", "must be those of registers", one.types)
    if one.name in SHARED:
        return f"{turns(scope, one, own.layout()).turns} bank turns"
    found, at = sectors(scope, one, own.layout())
    return f"{found.sectors} sectors{' (assumed there)' if at.assumed and wanted else ''}"


def _strides(
    strides: tuple[Number, ...], shape: tuple[int, ...], size: int, atomic: bool
) -> tuple[list[int], list[int], list[str]]:
    """Return element strides as multiples of what is known, others of whole lines, and what is assumed."""
    exact, loose, assumed = list[int](), list[int](), list[str]()
    known = [(stride.value, extent) for stride, extent in zip(strides, shape, strict=True) if stride.value is not None]
    span = sum(abs(value) * (extent - 1) for value, extent in known) + size
    for stride, extent in zip(strides, shape, strict=True):
        if stride.value is not None:
            if stride.value < 0 or stride.value % size:
                rule = f"must be multiples of the element's {size} bytes, and not negative"
                raise CHECK.malformed("strides", rule, stride.value)
            exact.append(stride.value // size)
            loose.append(stride.value // size)
            once = "registers with one address load once"
            if not stride.value and extent > 1 and once not in assumed and not atomic:
                assumed.append(once)
            continue
        least, whole = stride.factor, lcm(stride.factor, LINE_BYTES)
        rows = -(-span // least)
        exact.append(least * (rows + 1 - rows % 2) // size)
        loose.append(whole * -(-span // whole) // size)
        apart = f"rows do not overlap and lie a multiple of {LINE_BYTES} bytes apart"
        assumed.append(f"{' * '.join(sorted(stride.names)) or 'a stride'}: {apart}; known: {least} bytes")
        span += max(exact[-1], loose[-1]) * size * (extent - 1)
    return exact, loose, assumed
