"""Find the instructions that move the registers of warps or waves to or from shared memory, and their addresses.

Main statements: registers may be reordered, so an instruction of v elements fits exactly if every register occupies the
same slot of an aligned run of v registers in all lanes; these runs are unique. ``ldmatrix`` and ``stmatrix`` move a
matrix of eight 16-byte rows if the registers of lane 4 g + q are word q of row g or, transposed (16-bit elements),
element g of rows 2 q and 2 q + 1. ``ds_read2_b64`` moves two runs of 8 bytes whose distance is the same in every lane,
a multiple of 8 bytes below 2048.

A cure is a shared layout of the same tile without conflicts. A swizzle that XORs offset bits from M up permutes aligned
blocks of 2^(M + B) elements, so a layout that fills whole blocks stays a bijection onto the same bytes. The caller
recounts every candidate before returning it, so a wrong candidate costs time, never a wrong answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.errors import Diagnostic, LayoutError, MalformedError, Repair, RepresentabilityError
from layoutalg.proofs.register_map import CHECK, IntArray
from layoutalg.proofs.swizzling import KINDS
from layoutalg.proofs.tile_map import extents_of, layout_of
from layoutalg.synth.named_accesses import read_name
from layoutalg.synth.paddings import padding
from layoutalg.synth.swizzles import swizzle
from layoutalg.targets.banks import Access, bank_model, disputed_models, nvidia_access
from layoutalg.targets.lds_rules import WAVES, lds_name
from layoutalg.targets.nvidia.accesses import full_name
from layoutalg.targets.nvidia.banks import ACCESS_BITS

LDS_BITS = (128, 96, 64, 32, 16, 8)
_ROW_BYTES = 16
_PAIR_BYTES = 8
_PAIR_REACH = 256
CHUNK_BITS = 128
MOST_BITS = 5
"""A bank number has 5 bits, so no swizzle needs to XOR more."""


@dataclass(frozen=True, slots=True)
class Move:
    """One instruction, issued by every warp.

    Args:
        instruction: Its name.
        registers: The registers it moves, in address order.
        addresses: Byte addresses: int64[warp, lane].
    """

    instruction: str
    registers: tuple[int, ...]
    addresses: IntArray


def moves(addresses: IntArray, bits: int, kind: object, target: str) -> tuple[list[Move], tuple[str, ...]]:
    """Return the instructions that move all registers, and notes on the choice.

    Args:
        addresses: Bit addresses: int64[warp, lane, register].
        bits: Element width.
        kind: As in ``layoutalg.banks``.
        target: The target.
    """
    names, columns = distinct(addresses)
    if isinstance(kind, str) and kind in ("load", "store"):
        return _widest(names, columns, bits, kind, target)
    if target in WAVES:
        return _lds(names, columns, bits, kind, target), ()
    name = full_name(kind) if isinstance(kind, str) else ""
    if "." not in name:
        raise CHECK.malformed("kind", f"must be one of {', '.join(KINDS)}, or an instruction's name", kind)
    access = nvidia_access(name)
    if access.matrices:
        return _matrices(names, columns, bits, access), ()
    runs = aligned_runs(columns, bits, access.bits) if access.bits >= bits else None
    if runs is None:
        raise _no_vector(columns, bits, access.kind, access.bits, kind, target)
    return _moved(_name(target, access.kind, access.bits, bits), names, columns, runs), ()


def distinct(addresses: IntArray) -> tuple[list[int], list[IntArray]]:
    """Drop registers that duplicate another one; return the rest with their addresses [warp, lane]."""
    seen: dict[bytes, int] = {}
    for register in range(addresses.shape[2]):
        seen.setdefault(np.ascontiguousarray(addresses[:, :, register]).tobytes(), register)
    names = list(seen.values())
    return names, [addresses[:, :, register] for register in names]


def _widest(
    names: list[int], columns: list[IntArray], bits: int, kind: str, target: str
) -> tuple[list[Move], tuple[str, ...]]:
    """Return the widest loads or stores whose banks are known."""
    passed: list[str] = []
    for width in LDS_BITS if target in WAVES else ACCESS_BITS[::-1]:
        runs = aligned_runs(columns, bits, width) if width >= bits else None
        if runs is None:
            continue
        name = _name(target, kind, width, bits)
        if _known(target, name):
            notes = (f"{', '.join(passed)} would be wider, but its lane groups are not known",) if passed else ()
            return _moved(name, names, columns, runs), notes
        passed.append(name)
    if passed:
        _missing(target, passed)
    raise CHECK.malformed("registers", "must be whole aligned bytes", _where(columns, bits))


def _missing(target: str, passed: list[str]) -> None:
    """Raise the error saying what is unknown about the widest instruction."""
    try:
        bank_model(target, passed[0])
    except RepresentabilityError as error:
        told = error.diagnostic
        rest = (
            f"; the same holds for {', '.join(passed[1:])}, which would move these registers too" if passed[1:] else ""
        )
        raise RepresentabilityError(
            Diagnostic(told.code, told.what, told.where, f"{told.because}{rest}", told.witness)
        ) from None


def _lds(names: list[int], columns: list[IntArray], bits: int, kind: object, target: str) -> list[Move]:
    """Return the moves by a named AMD instruction."""
    if (isinstance(kind, str) and kind in KINDS) or lds_name(kind) is None:
        rule = f"must be load, store or an LDS instruction of {target} (ds_read_b128, ds_write_b64, ...)"
        raise CHECK.malformed("kind", rule, kind)
    name = lds_name(kind) or ""
    if not disputed_models(target, name):
        bank_model(target, name)
    width = int(re.findall(r"\d+", name)[-1])
    runs = aligned_runs(columns, bits, width) if width >= bits else None
    direction = "load" if "read" in name else "store"
    if runs is None:
        raise _no_vector(columns, bits, direction, width, name, target)
    single = _moved(name, names, columns, runs)
    return _pairs(single) if "2_" in name else single


def _pairs(single: list[Move]) -> list[Move]:
    """Pair runs of 8 bytes; each pair lists the wave's addresses of the first run, then of the second."""
    found = []
    left = list(single)
    while left:
        first = left.pop(0)
        for other in left:
            apart = other.addresses - first.addresses
            step = int(apart[0, 0])
            if (apart == step).all() and step % _PAIR_BYTES == 0 and 0 < abs(step) < _PAIR_BYTES * _PAIR_REACH:
                break
        else:
            rule = "must be pairs of 8 bytes at the same distance in all lanes, a multiple of 8 bytes below 2048"
            raise CHECK.malformed("registers", rule, f"registers {list(first.registers)} without a second")
        left.remove(other)
        both = np.concatenate([first.addresses, other.addresses], axis=1)
        found.append(Move(first.instruction, first.registers + other.registers, both))
    return found


def _moved(name: str, names: list[int], columns: list[IntArray], runs: list[list[int]]) -> list[Move]:
    return [Move(name, tuple(names[i] for i in run), columns[run[0]] // 8) for run in runs]


def _name(target: str, kind: str, width: int, bits: int) -> str:
    if target in WAVES:
        return f"ds_{'read' if kind == 'load' else 'write'}_{'b' if width >= 32 or kind == 'store' else 'u'}{width}"
    part = min(width, max(bits, 32), 64)
    vector = f".v{width // part}" if width > part else ""
    return f"{'ld' if kind == 'load' else 'st'}.shared{vector}.b{part}"


def _known(target: str, name: str) -> bool:
    if disputed_models(target, name):
        return True
    try:
        bank_model(target, name)
    except RepresentabilityError:
        return False
    return True


def _no_vector(columns: list[IntArray], bits: int, kind: str, width: int, name: object, target: str) -> MalformedError:
    """Return the error for an instruction that does not fit, with the ones that do as repairs."""
    grain = 4 if width == 96 else width // 8
    because = f"registers must fill vectors of {width} bits at multiples of {grain} bytes in every lane for {name}, "
    because += f"not {_where(columns, bits)}"
    repairs = []
    for other in LDS_BITS if target in WAVES else ACCESS_BITS[::-1]:
        if other >= bits and other != width and aligned_runs(columns, bits, other) is not None:
            tried = _name(target, kind, other, bits)
            if _known(target, tried):
                count = len(columns) * bits // other
                least = 4 if other == 96 else other // 8
                repairs.append(Repair(f"use {tried}", f"{count} of them move these registers, {least}-byte aligned"))
    where = ("registers",)
    return MalformedError(Diagnostic(CHECK.code, CHECK.what, where, because, None, tuple(repairs[:2])))


def _where(columns: list[IntArray], bits: int) -> str:
    first = ", ".join(str(int(column[0, 0])) for column in columns[:4])
    return f"{len(columns)} registers of {bits} bits at bits {first} of lane 0"


def aligned_runs(columns: list[IntArray], bits: int, width: int, grain: int = 0) -> list[list[int]] | None:
    """Return the registers as aligned runs of ``width`` bits common to all lanes, or None if they do not split so.

    Args:
        columns: Bit address of each register in every lane; registers differ somewhere.
        bits: Element width.
        width: Bits of a run.
        grain: Bits to which a run is aligned; 0 for its width, or 32 if that is no power of two.
    """
    if width % bits:
        return None
    rows = np.stack(columns).reshape(len(columns), -1)
    place = {row.tobytes(): index for index, row in enumerate(rows)}
    if grain or width & (width - 1):
        return _chains(columns, place, bits, width, grain or 32)
    runs = []
    for index in np.flatnonzero(~(rows % width).any(axis=1)).tolist():
        run = [place.get((rows[index] + step).tobytes(), -1) for step in range(bits, width, bits)]
        if -1 in run:
            return None
        runs.append([index, *run])
    return runs if len(runs) * (width // bits) == len(columns) else None


def _chains(
    columns: list[IntArray], place: dict[bytes, int], bits: int, width: int, grain: int
) -> list[list[int]] | None:
    """Return runs that are aligned to less than their width, cut from the start of each chain of adjacent registers."""
    many, runs = width // bits, []
    for index, column in enumerate(columns):
        if np.ascontiguousarray(column - bits).tobytes() in place:
            continue
        chain, found = [index], index
        while (found := place.get(np.ascontiguousarray(columns[found] + bits).tobytes(), -1)) >= 0:
            chain.append(found)
        if len(chain) % many or (column % grain).any():
            return None
        runs += [chain[first : first + many] for first in range(0, len(chain), many)]
    return runs


def _matrices(names: list[int], columns: list[IntArray], bits: int, access: Access) -> list[Move]:
    """Return the matrix instructions, x4 while four matrices remain."""
    if bits not in (8, 16, 32) or (access.transposed and bits != 16):
        rule = "must be 16 for a transposed matrix, otherwise 8, 16 or 32"
        raise CHECK.malformed("element_bits", rule, bits)
    found = _transposed(names, columns) if access.transposed else _straight(names, columns, bits)
    moved = []
    start, trans = 0, ".trans" if access.transposed else ""
    while start < len(found):
        count = next(n for n in (4, 2, 1) if n <= min(access.matrices, len(found) - start))
        part = found[start : start + count]
        rows = np.concatenate([row for _, row in part], axis=1)
        registers = tuple(register for held, _ in part for register in held)
        moved.append(Move(f"{access.kind}.x{count}{trans}", registers, rows))
        start += count
    return moved


def _straight(names: list[int], columns: list[IntArray], bits: int) -> list[tuple[tuple[int, ...], IntArray]]:
    """Return each matrix's registers and row addresses [warp, 8]; lane 4 g + q has word q of row g."""
    runs = aligned_runs(columns, bits, 32)
    if runs is None:
        rule = "must fill whole words of shared memory in every lane"
        raise CHECK.malformed("registers", rule, _where(columns, bits))
    found = []
    for run in runs:
        words = columns[run[0]] // 8
        rows = words[:, ::4]
        wanted = np.repeat(rows, 4, axis=1) + np.tile(np.arange(0, _ROW_BYTES, 4), 8)
        _same(words, wanted, names[run[0]])
        _aligned(rows, names[run[0]])
        found.append((tuple(names[i] for i in run), rows))
    return found


def _transposed(names: list[int], columns: list[IntArray]) -> list[tuple[tuple[int, ...], IntArray]]:
    """Return the same for transposed matrices: lane 4 g + q has element g of rows 2 q and 2 q + 1."""
    if len(columns) % 2:
        raise CHECK.malformed("registers", "must be pairs of 16-bit elements", f"{len(columns)} registers")
    found: list[tuple[tuple[int, ...], IntArray]] = []
    for first in range(0, len(columns), 2):
        pair = [columns[first] // 8, columns[first + 1] // 8]
        rows = np.stack([half[:, :4] for half in pair], axis=2).reshape(-1, 8)
        for place, half in enumerate(pair):
            wanted = np.tile(rows[:, place::2], (1, 8)) + np.repeat(np.arange(0, _ROW_BYTES, 2), 4)
            _same(half, wanted, names[first + place])
        _aligned(rows, names[first])
        found.append(((names[first], names[first + 1]), rows))
    return found


def _same(found: IntArray, wanted: IntArray, register: int) -> None:
    wrong = np.argwhere(found != wanted)
    if len(wrong):
        warp, lane = (int(x) for x in wrong[0])
        hint = f"; a matrix would have byte {int(wanted[warp, lane])} there"
        where = f"byte {int(found[warp, lane])} in register {register} of lane {lane}, warp {warp}"
        raise CHECK.malformed("registers", "must be the fragment of an 8 x 8 matrix with rows of 16 bytes", where, hint)


def _aligned(rows: IntArray, register: int) -> None:
    wrong = np.argwhere(rows % _ROW_BYTES != 0)
    if len(wrong):
        warp, row = (int(x) for x in wrong[0])
        where = f"byte {int(rows[warp, row])} for row {row} of the matrix in register {register}, warp {warp}"
        raise CHECK.malformed("shared", "must have the rows of a matrix at multiples of 16 bytes", where)


def cure_of(
    registers: object,
    shared: object,
    bits: int,
    kind: str,
    target: str,
    tile: Sequence[int] | None,
    lanes: object,
    warps: object,
    *,
    freed: Callable[[Any], bool],
) -> Any:
    """Return the first candidate that makes the access conflict-free, or None.

    Args:
        registers: As for ``layoutalg.banks``, like the arguments up to ``warps``.
        shared: The conflicting layout.
        bits: Element width.
        kind: How the registers are moved.
        target: The target.
        tile: Tile extents, if given.
        lanes: Lane axes.
        warps: Warp axes.
        freed: Counts the access under a layout and tells whether it is conflict-free.
    """
    layout = layout_of(shared, None if tile is None else tuple(tile), max(1, bits // 8))
    extents = extents_of(layout) if tile is None else tuple(tile)
    plain = layout.base if isinstance(layout, ComposedLayout) else layout
    if not isinstance(plain, CuteLayout):  # any dense layout of the tile will do: take row-major
        plain = CuteLayout(extents, tuple(math.prod(extents[place + 1 :]) for place in range(len(extents))))
    for found in _swizzled_cures(plain, bits):
        if freed(found):
            return found
    if lanes is not None or warps is not None:
        return None
    how = read_name(kind)
    for search in (_padded_cure, _linear_cure):
        try:
            found = search(registers, bits, kind if how is None else how.move, target, extents)
            if found is not None and freed(found):
                return found
        except LayoutError:  # this search cannot handle these registers; the next one may
            continue
    return None


def _swizzled_cures(plain: CuteLayout, bits: int) -> Iterator[ComposedLayout]:
    """Swizzles of a layout that fills its blocks; whole 16-byte chunks first, fewest bits first."""
    used = np.unique(plain.table())
    size = len(used)
    if size & (size - 1) or int(used[-1]) != size - 1:
        return
    total, chunk = size.bit_length() - 1, max(0, (CHUNK_BITS // bits).bit_length() - 1)
    for base in range(min(chunk, total), -1, -1):
        for many in range(1, MOST_BITS + 1):
            for shift in range(many, total - base - many + 1):
                yield ComposedLayout(Swizzle(many, base, shift), 0, plain)


def _linear_cure(registers: object, bits: int, kind: str, target: str, extents: tuple[int, ...]) -> Any:
    return swizzle([(registers, kind)], target, bits, tile=extents).smem


def _padded_cure(registers: object, bits: int, kind: str, target: str, extents: tuple[int, ...]) -> Any:
    given = kind if kind not in ("load", "store") else (registers, kind)
    return CuteLayout(extents, padding(extents, [given], target, bits).pitches)
