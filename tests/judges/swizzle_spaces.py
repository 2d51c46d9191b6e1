"""All members of small spaces of swizzles and of paddings, counted word by word: no code of the finders, no ranks.

Notation: a member is a row of offsets, one for each tile element (numbered as the packed coordinate, or row-major for
paddings). Generators yield int64[member, element] in parts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tests.judges.bank_words import SERVED, VECTORS, turns_of_rows

IntArray = npt.NDArray[np.int64]
PART = 128


def table(registers: Sequence[int], lanes: Sequence[int], warps: Sequence[int], constant: int = 0) -> IntArray:
    """Return the element of every register, int64[warp, lane, register], registers that hold the same once."""
    held = [spanned(images) for images in (warps, lanes, registers)]
    whole = constant ^ held[0][:, None, None] ^ held[1][None, :, None] ^ held[2][None, None, :]
    return np.unique(whole.reshape(-1, whole.shape[2]), axis=1).reshape(*whole.shape[:2], -1)


def spanned(images: Sequence[int]) -> IntArray:
    """Return the XOR of the images of the bits of every number."""
    found = np.zeros(1, dtype=np.int64)
    for image in images:
        found = np.concatenate([found, found ^ image])
    return found


def widths(target: str, kind: str) -> list[tuple[int, str]]:
    """Bits and names of the loads or stores of a target whose banks are known, widest first."""
    sizes = (16, 8, 4, 2, 1)
    if not target.startswith("gfx"):
        return [(8 * size, f"{'ld' if kind == 'load' else 'st'}.shared.{VECTORS[size]}") for size in sizes]
    names = [(8 * size, f"ds_{'read' if kind == 'load' else 'write'}_b{8 * size}") for size in sizes]
    return [(bits, name) for bits, name in names if (target, name) in SERVED]


def turns_of(offsets: IntArray, held: IntArray, kind: str, bits: int, target: str) -> IntArray:
    """Return the turns behind each member, by the widest instruction that moves all registers; -1 where none does.

    Args:
        offsets: Members, int64[member, element].
        held: The elements, int64[warp, lane, register].
        kind: ``"load"``, ``"store"``, ``"ldmatrix"`` or ``"stmatrix"``.
        bits: Bits of an element.
        target: The target.
    """
    places = offsets[:, held] * bits
    order = np.argsort(places[:, 0, 0, :], axis=1)
    places = np.take_along_axis(places, order[:, None, None, :], axis=3)
    found = np.full(len(offsets), -1, dtype=np.int64)
    if kind.endswith("matrix"):
        return _matrices(places, kind, bits, target)
    for width, name in widths(target, kind):
        many = width // bits
        if not many or held.shape[2] % many:
            continue
        runs = places.reshape(*places.shape[:3], -1, many)
        fits = (runs[..., 0] % width == 0).all(axis=(1, 2, 3)) & (np.diff(runs, axis=4) == bits).all(axis=(1, 2, 3, 4))
        taken = fits & (found < 0)
        if taken.any():
            rows = runs[taken][..., 0].transpose(0, 1, 3, 2) // 8
            counts = turns_of_rows(target, name, rows.reshape(-1, held.shape[1]))
            found[taken] = counts.reshape(len(rows), -1).sum(axis=1)
    return found


def _matrices(places: IntArray, kind: str, bits: int, target: str) -> IntArray:
    """Return the same for matrices: lane 4 g + q has word q of row g, and a row takes as many turns as others."""
    found = np.full(len(places), -1, dtype=np.int64)
    many = 32 // bits
    if not many or places.shape[3] % many:
        return found
    words = places.reshape(*places.shape[:3], -1, many)
    fits = (np.diff(words, axis=4) == bits).all(axis=(1, 2, 3, 4))
    starts = words[..., 0].transpose(0, 1, 3, 2)  # member, warp, word, lane
    rows = starts[..., ::4]
    fits &= (starts == np.repeat(rows, 4, axis=3) + 32 * np.tile(np.arange(4), 8)).all(axis=(1, 2, 3))
    fits &= (rows % 128 == 0).all(axis=(1, 2, 3))
    if fits.any():
        counts = turns_of_rows(target, f"{kind}.x1", rows[fits].reshape(-1, 8) // 8)
        found[fits] = counts.reshape(int(fits.sum()), -1).sum(axis=1)
    return found


def _parts(members: Iterator[IntArray]) -> Iterator[IntArray]:
    while part := list(itertools.islice(members, PART)):
        yield np.stack(part)


def _inverted(basis: Sequence[int]) -> IntArray:
    """Return the offset of every element, where offset bit k is the place of the k-th basis element."""
    return np.argsort(spanned(basis))


def bijections(bits: int) -> Iterator[IntArray]:
    """Yield every linear bijection of 2^bits elements."""

    def grown(basis: list[int], reached: set[int]) -> Iterator[IntArray]:
        if len(basis) == bits:
            yield _inverted(basis)
            return
        for element in range(1, 1 << bits):
            if element not in reached:
                yield from grown([*basis, element], reached | {element ^ other for other in reached})

    yield from _parts(grown([], {0}))


def subspaces(bits: int, dimension: int) -> Iterator[list[int]]:
    """Yield a basis of every subspace of so many dimensions, in reduced echelon form."""
    for pivots in itertools.combinations(range(bits), dimension):
        free = [[at for at in range(pivot) if at not in pivots] for pivot in pivots]
        for fills in itertools.product(*(range(1 << len(each)) for each in free)):
            yield [
                1 << pivot | sum(1 << at for place, at in enumerate(each) if fill >> place & 1)
                for pivot, each, fill in zip(pivots, free, fills, strict=True)
            ]


def bank_maps(bits: int, word: int, banks: int) -> Iterator[IntArray]:
    """Yield every way to share words and banks, up to the names of banks: a word inside what meets in bank 0.

    Args:
        bits: Bits of an element's number.
        word: Log of the elements of a word.
        banks: Bits of the banks' numbers.
    """
    inner = max(word, bits - banks)

    def members() -> Iterator[IntArray]:
        for met in subspaces(bits, inner):
            outside = _completed(met, bits)
            for chosen in subspaces(inner, word):
                within = [int(spanned(met)[coordinate]) for coordinate in chosen]
                rest = [vector for vector in _completed(within, bits, met) if vector not in outside]
                yield _inverted([*within, *outside, *rest])

    yield from _parts(members())


def _completed(basis: Sequence[int], bits: int, candidates: Sequence[int] | None = None) -> list[int]:
    """Return elements that complete a basis to one of everything, or to the span of the candidates."""
    reached, found = set(spanned(basis).tolist()), []
    for vector in candidates if candidates is not None else [1 << at for at in range(bits)]:
        if vector not in reached:
            found.append(vector)
            reached |= {vector ^ other for other in reached}
    return found


def xors(row_bits: int, column_bits: int, chunk_bits: int) -> Iterator[IntArray]:
    """Yield every XOR of a chunk's number with a linear map of the row; element = row + rows * column, by rows."""
    rows, columns = np.arange(1 << row_bits), np.arange(1 << column_bits)
    inner = min(chunk_bits, column_bits)

    def members() -> Iterator[IntArray]:
        for images in itertools.product(range(1 << column_bits - inner), repeat=row_bits):
            shifts = spanned(images) << inner
            yield ((rows << column_bits)[None, :] + (columns[:, None] ^ shifts[None, :])).reshape(-1)

    yield from _parts(members())


def cutes(row_bits: int, column_bits: int) -> Iterator[IntArray]:
    """Yield every ``Sw<B,M,S>`` behind the tile by rows and by columns."""
    rows, columns = np.arange(1 << row_bits), np.arange(1 << column_bits)
    by_rows = ((rows << column_bits)[None, :] + columns[:, None]).reshape(-1)
    by_columns = (rows[None, :] + (columns << row_bits)[:, None]).reshape(-1)
    total = row_bits + column_bits

    def members() -> Iterator[IntArray]:
        for plain in (by_rows, by_columns):
            for bits, base, shift in itertools.product(range(total + 1), range(total), range(-total, total + 1)):
                if abs(shift) < bits or bits + base + abs(shift) > total:
                    continue
                mask = (1 << bits) - 1 << base + max(0, shift)
                read = plain & mask
                yield plain ^ (read >> shift if shift >= 0 else read << -shift)

    yield from _parts(members())


def hardware(row_bits: int, column_bits: int, bits: int) -> Iterator[IntArray]:
    """Yield what the copy engine of sm_90 writes: rows of a span, box after box, 16-byte chunks XORed with the row."""
    size = bits // 8
    extents = (1 << row_bits, 1 << column_bits)
    row, column = np.arange(extents[0])[None, :], np.arange(extents[1])[:, None]

    def members() -> Iterator[IntArray]:
        for inner, outer, deep, high in ((column, row, extents[1], extents[0]), (row, column, extents[0], extents[1])):
            modes = [(span, span // 16) for span in (32, 64, 128)] + [(16 << at, 0) for at in range(20)]
            for span, chunks in modes:
                wide = span // size
                if not 1 <= wide <= min(deep, 256):
                    continue
                byte = (inner // wide * high * wide + outer * wide + inner % wide) * size
                byte = byte ^ ((byte >> 7) % max(1, chunks)) * 16
                yield np.broadcast_to(byte // size, (extents[1], extents[0])).reshape(-1).copy()

    yield from _parts(members())


def padded(shape: tuple[int, int], bits: int, form: str, most: int) -> Iterator[tuple[int, IntArray]]:
    """Yield paddings by intervals, each with its bytes of padding; elements are row-major.

    Args:
        shape: Rows and columns.
        bits: Bits of an element.
        form: ``"interval"`` (whole words), ``"padded_shared"`` or ``"reordered"`` (powers of two).
        most: The largest amount in elements.
    """
    size = shape[0] * shape[1]
    cells = np.arange(size)
    placed = [cells]
    if form == "reordered":
        row_bits = (shape[0] - 1).bit_length()
        placed = []
        for order in itertools.permutations(range(row_bits)):
            moved = sum((cells // shape[1] >> bit & 1) << place for bit, place in enumerate(order))
            placed.append(moved * shape[1] + cells % shape[1])
    amounts = range(max(1, 32 // bits), most + 1, max(1, 32 // bits)) if form == "interval" else _powers(most)
    least = max(1, 32 // bits) if form == "interval" else 1
    for dense in placed:
        yield 0, dense
    for interval, amount in itertools.product(_powers(size - 1), amounts):
        if interval >= least:
            for dense in placed:
                yield amount * ((size - 1) // interval) * bits // 8, dense + amount * (dense // interval)


def _powers(most: int) -> list[int]:
    return [1 << bit for bit in range(most.bit_length())]
