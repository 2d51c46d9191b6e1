"""Find the instructions that move registers to or from a tensor in global memory, and the byte address of every lane.

Main statements: an instruction of v elements fits exactly if every register occupies the same slot of a run of v
registers in all lanes, as in ``ask.bank_moves``; runs are aligned in every active lane; and the elements of a run are
in bounds together, because a lane is active or not as a whole. Registers with equal addresses are moved once.

Where the base of the tensor, or the origin of the tile, is known only modulo a number, all addresses may move together
by multiples of ``Placed.step_bytes``; instructions have to be aligned for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from layoutalg.ask.bank_moves import Move, aligned_runs, distinct
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, LayoutError, MalformedError, Repair
from layoutalg.ground.layout import Layout
from layoutalg.ground.listed import ListedLayout
from layoutalg.notation.written import read_written
from layoutalg.proofs.dtypes import stated_bits
from layoutalg.proofs.register_map import IntArray, bit_addresses, tensor_coordinates
from layoutalg.proofs.tensor import BASE_ALIGN_BYTES, Tensor, tensor_of
from layoutalg.proofs.tile_map import extents_of, layout_of, offsets
from layoutalg.targets.global_memory import GlobalAccess, instruction, vectors
from layoutalg.targets.layouts.padding import PaddedShared
from layoutalg.targets.nvidia.tensormap import DTYPES
from layoutalg.targets.registry import lookup

CHECK = Checker("LA982", "invalid access of registers to global memory")
BITS = (4, 8, 16, 32, 64, 128)
REACH = 2**62
Origin: TypeAlias = "Sequence[int | tuple[int, int]] | None"
"""Per dimension a coordinate, or (remainder, modulus)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: arguments as for ``layoutalg.transactions``, and the elements from the base to the tensor's first."""

    registers: Any
    tensor: Any
    instruction: str | None
    target: str
    element_bits: int | str | None = None
    origin: Any = None
    tile: Any = None
    lanes: Any = None
    warps: Any = None
    first: int = 0


@dataclass(frozen=True, slots=True)
class Placed:
    """Registers in global memory.

    Args:
        starts: Bit address of each register from the tensor's first element, int64[warp, lane, register]; -1 where it
            is out of bounds.
        bits: Bits of an element.
        step_bytes: All addresses may move together by multiples of this; a multiple of all that matters if they do not.
        tile: Extents of the tile; None if the registers hold offsets.
        order: Dimensions of the tile, smallest stride first.
        flat: Coordinate of each register in the tile, dimension 0 fastest; None if the registers hold offsets.
        known: Whether the origin is known, not only its congruence.
        notes: How the question was read, where that is not plain.
    """

    starts: IntArray
    bits: int
    step_bytes: int
    tile: tuple[int, ...] | None
    order: tuple[int, ...]
    flat: IntArray | None
    known: bool
    notes: tuple[str, ...] = ()


def placed(asked: Asked) -> Placed:
    """Return where the registers are."""
    wave, tensor = lookup(asked.target).lanes, asked.tensor
    if tensor is None or isinstance(tensor, str | Layout | PaddedShared):
        return _in_layout(asked, wave)
    source = tensor_of(tensor, asked.registers)
    bits = DTYPES[source.dtype].bits
    if asked.element_bits is not None and stated_bits(asked.element_bits, check=CHECK) != bits:
        raise CHECK.malformed("element_bits", f"must be {bits} like the tensor's {source.dtype}", asked.element_bits)
    if bits not in BITS:
        raise CHECK.malformed("tensor", "must have elements of 4 to 128 bits, a power of two", source.dtype)
    parts, tile = tensor_coordinates(asked.registers, source.shape, asked.tile, asked.lanes, asked.warps, wave)
    origin, moduli = _origin(asked.origin, source, tile)
    reach = sum(
        (abs(at) + extent) * abs(stride) for at, extent, stride in zip(origin, tile, source.strides, strict=True)
    )
    if reach * bits >= REACH:
        raise CHECK.malformed("tensor", f"must have elements within {REACH // 8} bytes of its base", reach * bits // 8)
    starts, inside = np.full_like(parts[0], asked.first), np.ones(parts[0].shape, dtype=bool)
    for part, at, modulus, extent, stride in zip(parts, origin, moduli, source.shape, source.strides, strict=True):
        starts = starts + (part + at) * stride
        if not modulus:
            inside &= (part + at >= 0) & (part + at < extent)
    if (starts[inside] < 0).any():
        rule = "must have no element below its base: give the base of the lowest element, and the origin from there"
        raise CHECK.malformed("tensor", rule, int(starts[inside].min()))
    steps = [modulus * stride * bits // 8 for modulus, stride in zip(moduli, source.strides, strict=True)]
    if any(modulus * stride * bits % 8 for modulus, stride in zip(moduli, source.strides, strict=True)):
        raise CHECK.malformed("origin", "must move the tile by whole bytes", asked.origin)
    order, step = _ordered([abs(stride) for stride in source.strides]), math.gcd(source.base_align_bytes, *steps)
    return Placed(
        np.where(inside, starts * bits, -1), bits, step, tile, order, _flat(parts, tile), not any(moduli),
        _taken_as(asked, tile),
    )  # fmt: skip


def _taken_as(asked: Asked, tile: tuple[int, ...]) -> tuple[str, ...]:
    """Return a note if flat coordinates are read as those of the whole tensor, for want of a tile."""
    if asked.tile is not None or len(tile) < 2:
        return ()
    given = read_written(asked.registers, known=tile)
    if given.shape is not None or not isinstance(given.layout, CuteLayout | ComposedLayout | ListedLayout):
        return ()
    return (f"no tile: registers number the elements of all {' x '.join(map(str, tile))}, dimension 0 fastest",)


def _in_layout(asked: Asked, wave: int) -> Placed:
    """Return the same for a layout of the tile in place of a tensor, or for registers that hold element offsets."""
    if asked.origin is not None:
        raise CHECK.malformed(
            "origin", "must be None unless a Tensor is given: a layout is the tile itself", asked.origin
        )
    bits = stated_bits(asked.element_bits, asked.registers, asked.tensor, check=CHECK)
    if bits not in BITS:
        raise CHECK.malformed("element_bits", "must be a power of two from 4 to 128", bits)
    starts = bit_addresses(asked.registers, asked.tensor, bits, asked.tile, asked.lanes, asked.warps, wave)
    if asked.tensor is None:
        return Placed(starts, bits, BASE_ALIGN_BYTES, None, (), None, known=True)
    try:
        layout = layout_of(asked.tensor, asked.tile, max(1, bits // 8))
        tile = extents_of(layout) if asked.tile is None else tuple(asked.tile)
        parts, _ = tensor_coordinates(asked.registers, tile, tile, asked.lanes, asked.warps, wave)
        table = offsets(layout, tile)
    except LayoutError:  # extents that only the registers have: nothing is suggested for these
        return Placed(starts, bits, BASE_ALIGN_BYTES, None, (), None, known=True)
    apart = [abs(int(np.diff(table, axis=dim).flat[0])) if tile[dim] > 1 else 0 for dim in range(len(tile))]
    return Placed(starts, bits, BASE_ALIGN_BYTES, tile, _ordered(apart), _flat(parts, tile), known=True)


def _ordered(apart: Sequence[int]) -> tuple[int, ...]:
    """Return the dimensions, the smallest distance of neighbours first; those without a distance last."""
    return tuple(sorted(range(len(apart)), key=lambda dim: (apart[dim] or REACH, dim)))


def _flat(parts: list[IntArray], tile: tuple[int, ...]) -> IntArray:
    return np.asarray(np.ravel_multi_index(tuple(parts), tile, order="F"), dtype=np.int64)


def _origin(given: Origin, tensor: Tensor, tile: tuple[int, ...]) -> tuple[list[int], list[int]]:
    """Return the origin's coordinates, and their moduli; 0 where the coordinate is known."""
    rank = len(tensor.shape)
    if given is None:
        return [0] * rank, [0] * rank
    if not isinstance(given, tuple | list) or len(given) != rank:
        raise CHECK.malformed("origin", f"must have {rank} entries like the tensor", given)
    origin, moduli = [], []
    for dim, entry in enumerate(given):
        where = f"origin[{dim}]"
        pair = CHECK.vector(entry, where, 2) if isinstance(entry, tuple | list) else (entry, 0)
        if isinstance(entry, tuple | list):
            CHECK.integer(pair[1], f"{where}[1]", 1, REACH)
            if tile[dim] > tensor.shape[dim]:
                rule = f"must be a coordinate because the tile of {tile[dim]} exceeds the tensor's {tensor.shape[dim]}"
                raise CHECK.malformed(where, rule, entry)
        origin.append(CHECK.integer(pair[0], where, -REACH, REACH, "must be an integer or (remainder, modulus)"))
        moduli.append(pair[1])
    return origin, moduli


def global_moves(found: Placed, asked: Asked) -> tuple[GlobalAccess, list[Move]]:
    """Return the instruction and its moves; lanes that are inactive have the address -1.

    Raises: MalformedError: LA982, if the registers are not its vectors. AdmissibilityError: LA984, if a lane is
        misaligned.
    """
    kind, target = asked.instruction, asked.target
    groups = _by_activity(found.starts)
    if kind in (None, "load", "store"):
        for access in vectors(target, kind == "store", found.bits):
            runs = _fitting(groups, access, found)
            if runs is not None:
                return access, _moves(access, groups, runs)
        raise CHECK.malformed("registers", "must be whole aligned bytes in every lane", f"{found.bits}-bit elements")
    access = instruction(kind, target)
    if access.bits < found.bits:
        raise CHECK.malformed("instruction", f"must move whole elements of {found.bits} bits", access.name)
    runs = _fitting(groups, access, found)
    if runs is None:
        raise _misfit(groups, access, found, asked)
    return access, _moves(access, groups, runs)


Group: TypeAlias = "tuple[list[int], list[IntArray], np.ndarray[Any, Any]]"
"""Registers that are active in the same lanes, their addresses there, and which lanes those are."""


def _by_activity(starts: IntArray) -> list[Group]:
    names, columns = distinct(starts)
    groups: dict[bytes, Group] = {}
    for name, column in zip(names, columns, strict=True):
        active = column >= 0
        if active.any():
            group = groups.setdefault(active.tobytes(), ([], [], active))
            group[0].append(name)
            group[1].append(np.ascontiguousarray(column[active]))
    return list(groups.values())


def _fitting(groups: list[Group], access: GlobalAccess, found: Placed) -> list[list[list[int]]] | None:
    """Return the runs of every group; None if one does not split into aligned runs."""
    if 8 * found.step_bytes % access.align_bits:
        return None
    grain = 0 if access.align_bits == access.bits else access.align_bits
    runs = [aligned_runs(columns, found.bits, access.bits, grain) for _, columns, _ in groups]
    return None if None in runs else [each for each in runs if each is not None]


def _moves(access: GlobalAccess, groups: list[Group], runs: list[list[list[int]]]) -> list[Move]:
    moves = []
    for (names, columns, active), split in zip(groups, runs, strict=True):
        for run in split:
            addresses = np.full(active.shape, -1, dtype=np.int64)
            addresses[active] = columns[run[0]] // 8
            moves.append(Move(access.name, tuple(names[index] for index in run), addresses))
    return sorted(moves, key=lambda move: move.registers)


def _misfit(groups: list[Group], access: GlobalAccess, found: Placed, asked: Asked) -> Exception:
    """Return the error for an instruction that does not fit: a misaligned lane, or other registers."""
    fits = [
        each
        for each in vectors(asked.target, access.store, found.bits)
        if each.bits != access.bits and _fitting(groups, each, found) is not None
    ]
    repairs = tuple(
        Repair(f"use {each.name}", f"it moves these registers, {each.bytes} bytes a lane") for each in fits[:2]
    )
    loose = [aligned_runs(columns, found.bits, access.bits, found.bits) for _, columns, _ in groups]
    if None not in loose:
        at, where = _misaligned(groups, [each for each in loose if each is not None], access, found)
        nvidia = lookup(asked.target).vendor == "nvidia"
        effect = "the device faults" if nvidia else "in alignment mode DWORD it moves other bytes"
        what = f"{access.name} would access a misaligned address: {effect}"
        return AdmissibilityError(Diagnostic("LA984", what, (where,), at, None, repairs))
    first = ", ".join(str(int(column[0]) // 8) for _, columns, _ in groups[:1] for column in columns[:4])
    because = (
        f"registers must fill vectors of {access.bytes} bytes that are in bounds as a whole in every lane for "
        f"{access.name}, not registers of {found.bits} bits at bytes {first} of their first lane"
    )
    return MalformedError(Diagnostic(CHECK.code, CHECK.what, ("registers",), because, None, repairs))


def _misaligned(
    groups: list[Group], runs: list[list[list[int]]], access: GlobalAccess, found: Placed
) -> tuple[str, str]:
    """Return why a lane is misaligned, and where."""
    grain = access.align_bits // 8
    for (names, columns, active), split in zip(groups, runs, strict=True):
        for run in split:
            wrong = np.flatnonzero(columns[run[0]] % access.align_bits)
            if len(wrong):
                warp, lane = (int(part[wrong[0]]) for part in np.nonzero(active))
                byte = int(columns[run[0]][wrong[0]]) // 8
                why = f"byte {byte} is not a multiple of {grain}"
                return why, f"lane {lane} of warp {warp}, register {names[run[0]]}"
    because = (
        f"base and origin are known modulo {found.step_bytes} bytes, and it needs multiples of {grain}: state "
        f"base_align_bytes={grain} or more, or the origin"
    )
    return because, "every lane"
