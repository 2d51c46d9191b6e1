"""The equations that instructions impose on any layout they carry: the candidates in certificates of refusals.

f maps the flat coordinate of a tile (dimension 0 fastest) to its element offset; a register layout maps register + R
(lane + L warp) to tile coordinates. A list of systems is a list of candidates: an instruction that carries f satisfies
all equations of one of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from layoutalg.integer.lattice import NoSolution, solve
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.systems import Equation, IntArray, System, missed, none_of, overlap
from layoutalg.proofs.tensormap.swizzle import PHASES

HERE: IntArray = np.zeros(1, dtype=np.int64)


def tile_rows(
    extents: Sequence[int], dimensions: Sequence[int], bits: int, run: int, row_bits: int, *, high: int = 1,
    together: int = 1, align_bits: int = 0,
) -> list[System]:  # fmt: skip
    """Return the candidates of instructions that move a whole tile in rows along one of some dimensions.

    Every line along the dimension is split into runs, each contiguous from a multiple of ``row_bits``; the counts of
    runs, of matrices of ``high`` lines and of instructions of ``together`` rows must be integers. The equations hold
    iff the instructions exist.

    Args:
        extents: Tile extents, outermost first.
        dimensions: Dimensions along which rows may run.
        bits: Bits of an element.
        run: Elements of a row.
        row_bits: Alignment of a row in bits.
        high: Rows of a matrix, at neighbouring coordinates of the last other dimension.
        together: Rows of one instruction.
        align_bits: Alignment of the tile base in bits; 0 if irrelevant.
    """
    found = []
    for along in dimensions:
        names = np.arange(math.prod(extents), dtype=np.int64).reshape(tuple(extents), order="F")
        last = names.ndim - 1
        names = names.swapaxes(along, last) if along != last else names
        lines, columns = math.prod(names.shape[:-1]), names.shape[-1]
        slow = names.shape[-2] if names.ndim > 1 else 1
        even = [Equation((), columns, (), run), Equation((), slow, (), high)]
        even += [Equation((), align_bits, (), row_bits)] if align_bits else []
        even += [Equation((), lines * (columns // run), (), together)] if columns % run == 0 else []
        step = np.arange(names.size, dtype=np.int64) % columns % run
        flat = names.reshape(-1)
        found.append(runs(flat, flat[np.arange(names.size) - step], step, bits, row_bits, even))
    return found


def runs(
    points: IntArray, starts: IntArray, steps: IntArray, bits: int, row_bits: int, more: Sequence[Equation] = ()
) -> System:
    """Return the candidate in which each point is ``steps`` elements after its start, a multiple of ``row_bits``.

    Example:
        >>> from layoutalg.proofs.certify.systems import none_of
        >>> i = np.arange(8)
        >>> none_of(i + i // 4, [runs(i, i - i % 4, i % 4, 32, 128)]).evidence["sums"]
        [[0, [[1, 4, 1]]]]
    """
    contiguous = Equation(((1, 0, 0), (-1, 1, 0)), -np.asarray(steps, dtype=np.int64))
    aligned = Equation(((bits, 1, 0),), 0, (), row_bits)
    return System((points, starts), (contiguous, aligned, *more))


def same(number: int, *needed: int) -> list[System]:
    """Return the candidates in which a number is one of those needed.

    Example:
        >>> from layoutalg.proofs.certify.systems import none_of
        >>> none_of(np.arange(4), same(32, 8, 16)).check().certificate["claim"]
        'f is none of 2 candidates'
    """
    return [System((HERE,), (Equation((), number - other),)) for other in needed]


def named(name: str, *needed: str) -> list[System]:
    """Return the candidates in which a name is one of those needed, letter by letter.

    Example:
        >>> from layoutalg.proofs.certify.systems import none_of
        >>> none_of(np.arange(4), named("sm_80", "sm_90a", "sm_100a")).evidence["sums"][0]
        [0, [[1, 0, 3]]]
    """
    wide = max(map(len, (name, *needed)))
    mine, *others = ([*map(ord, each), *(0,) * (wide - len(each))] for each in (name, *needed))
    return [System((HERE,), tuple(Equation((), a - b) for a, b in zip(mine, other, strict=True))) for other in others]


def whole(number: int, *units: int) -> list[System]:
    """Return the candidates in which a number is a multiple of one of some units."""
    return [System((HERE,), (Equation((), number, (unit,)),)) for unit in units]


def slots(
    held: IntArray, offset_bits: int, bits: int, row_bits: int, lane_bits: IntArray, suppliers: IntArray,
    inner: Sequence[int],
) -> list[System]:  # fmt: skip
    """Return the candidates of a register served by rows of shared memory: one for each place in a row.

    With its element at bit a(lane), the lane's row is at a - lane_bits - place: a multiple of ``row_bits``, and equal
    for lanes of one row.

    Args:
        held: int64[warp, lane]: the tile element.
        offset_bits: First bit of the slot in its element.
        bits: Bits of an element.
        row_bits: Alignment of a row in bits.
        lane_bits: int64[lane]: first bit of a lane's part of its row.
        suppliers: int64[lane]: the first lane of the same row.
        inner: Places of slots in a lane's part of a row, in bits.
    """
    points, others = held.reshape(-1), held[:, suppliers].reshape(-1)
    shape = held.shape
    mine = np.broadcast_to(offset_bits - lane_bits, shape).reshape(-1)
    apart = np.broadcast_to(lane_bits[suppliers] - lane_bits, shape).reshape(-1)
    together = Equation(((bits, 0, 0), (-bits, 1, 0)), apart)
    return [
        System((points, others), (together, Equation(((bits, 0, 0),), mine - place, (), row_bits))) for place in inner
    ]


class Mode(NamedTuple):
    """A descriptor's steps: ``near_m (m mod edge) + near_k (k mod turn)`` plus two strides, then an XOR."""

    name: str  # major and swizzle
    near_m: int  # bytes between rows of a group
    edge: int  # rows of a group
    near_k: int  # bytes between neighbours along K in a group
    turn: int  # elements along K in a group
    columns: tuple[int, ...] = ()  # image of each address bit under the XOR; () for none


def modes(size: int, majors: Sequence[str], atoms: bool = False) -> list[Mode]:
    """Return the modes of matrix descriptors for elements of ``size`` bytes.

    Example:
        >>> [mode.name for mode in modes(2, ("K",))], modes(2, ("MN",))[3].edge
        (['K NONE', 'K 32B', 'K 64B', 'K 128B'], 64)
    """
    found = []
    for major in majors:
        for order, name in enumerate(PHASES):
            span = 16 << order
            steps = (span, 8, size, span // size) if major == "K" else (size, span // size, span, 8)
            found.append(Mode(f"{major} {name}", *steps, _xor([(4 + bit, 7 + bit) for bit in range(order)])))
        if atoms and major == "MN":
            found.append(Mode("MN 128B_ATOM_32B", size, 128 // size, 128, 4, _xor([(5, 7), (6, 8)])))
    return found


def _xor(pairs: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    sources = {source: target for target, source in pairs}
    top = max(sources, default=-1) + 1
    return tuple((1 << bit) ^ (1 << sources[bit] if bit in sources else 0) for bit in range(top))


def descriptors(
    extents: Sequence[int], rows: int, deep: int, size: int, mode: Mode, offset: int, bases: Sequence[int],
    heads: Sequence[int],
) -> Iterator[System]:  # fmt: skip
    """Yield the systems of descriptors of one mode and base offset, one for each base and part of an operand.

    The unknowns are the start and the two strides, in units of 16 bytes; with the mode's XOR undone, element (m, k) is
    at start + near + far_m (m div edge) + far_k (k div turn).

    Args:
        extents: (rows, K) of the tile.
        rows: Rows of a part.
        deep: Elements along K of a part.
        size: Bytes of an element.
        mode: Major and swizzle.
        offset: The base offset.
        bases: Tile bases, in bytes.
        heads: First rows of the parts to include.
    """
    m, k = (part.reshape(-1).astype(np.int64) for part in np.indices((rows, deep)))
    near = mode.near_m * (m % mode.edge) + mode.near_k * (k % mode.turn)
    factors = (16, 16 * (m // mode.edge), 16 * (k // mode.turn))
    for base in bases:
        shift = base - 128 * offset
        after: list[list[Any]] = [["affine", [[size]], [shift]]]
        after += [["xor", list(mode.columns), 0]] if mode.columns else []
        after += [["affine", [[1]], [-shift]]] if shift else []
        for head in heads:
            for along in range(0, extents[1], deep):
                points = head + m + extents[0] * (along + k)
                yield System((points,), (Equation(((1, 0, 0),), -near, factors),), after)


def no_descriptors(
    f: IntArray,
    extents: Sequence[int],
    size: int,
    align_bytes: int,
    rows: Sequence[int],
    deep: int,
    found: Sequence[Mode],
) -> Certificate | None:
    """Return a certificate that no mode and base offset reads an operand; None if its table does not show it.

    Each is excluded by some part of the operand and some base of the tile.

    Args:
        f: Element offsets, dimension 0 fastest.
        extents: (rows, K) of the tile.
        size: Bytes of an element.
        align_bytes: Alignment of the tile base.
        rows: Rows that one instruction may read.
        deep: Elements along K that it reads.
        found: The modes.
    """
    if len(extents) != 2:
        return none_of(f, same(len(extents), 2))
    fit = [count for count in rows if extents[0] % count == 0]
    if not fit:
        return none_of(f, whole(extents[0], *rows))
    if extents[1] % deep:
        return none_of(f, whole(extents[1], deep))
    least = min(fit)
    heads = range(0, extents[0], least) if len(fit) == 1 else (0,)
    candidates = []
    for mode in found:
        period = 1 << (len(mode.columns) or 4)
        bases = tuple(range(0, period, align_bytes)) or (0,)
        candidates += [
            descriptors(extents, least, deep, size, mode, offset, bases, heads)
            for offset in range(max(1, period // 128))
        ]
    return none_of(f, candidates)


def missing(held: IntArray, one: int, bits: int, apart: IntArray) -> list[System]:
    """Return the candidates for a slot that register ``one`` requires: any register, ``apart`` bits after it.

    Args:
        held: int64[warp, lane, register].
        one: A register.
        bits: Bits of an element.
        apart: int64[candidate]: distances in bits.
    """
    count = held.shape[2]
    mine = held[:, :, one].reshape(-1)
    terms = ((bits, 0, 0), (-bits, 1, 0))
    return [
        System((held[:, :, other].reshape(-1), mine), (Equation(terms, -int(distance)),))
        for other in range(count)
        for distance in apart
    ]


def fragments(table: IntArray, held: IntArray, sizes: Sequence[int], word: int) -> tuple[IntArray, list[System]] | None:
    """Return a register layout as f, and candidates one of which any tiling by a fragment satisfies; None if it tiles.

    In a tiling each word of registers is a word of the fragment in all lanes and warps, from starts that are multiples
    of the instruction's extents, and with one word of the fragment all others are present. The candidates are for the
    first word that fails: the words of the fragment, or, for a missing word, the registers that could have it.

    Args:
        table: int64[warp, lane, register, coordinate].
        held: The fragment: int64[lane, register, coordinate].
        sizes: Extents of the instruction.
        word: Elements per 32-bit register.
    """
    extents = np.array(sizes, dtype=np.int64)
    warps, lanes, registers, rank = table.shape
    f = table.reshape(-1, rank)
    if lanes != held.shape[0]:
        return f, same(lanes, held.shape[0])
    if registers % word:
        return f, whole(registers, word)
    words, many = registers // word, held.shape[1] // word
    low = (table % extents).reshape(warps, lanes, words, word, rank)
    start = (table - table % extents).reshape(warps, lanes, words, word, rank)
    still = (start == start[:, :1, :, :1]).all(axis=(0, 1, 3, 4))  # [word of the layout]
    parts = held.reshape(lanes, many, word, rank)
    place: dict[int, int] = {}
    for mine in range(words):
        fits = [bool((low[:, :, mine] == parts[None, :, other]).all()) for other in range(many)]
        if not still[mine] or True not in fits:
            return f, [_word(parts[:, other], sizes, mine, low, start) for other in range(many)]
        place[mine] = fits.index(True)
    begins = start[:, 0, :, 0]
    for mine, slot in place.items():
        alike = {place[other] for other in place if (begins[:, other] == begins[:, mine]).all()}
        lacking = [other for other in range(many) if other not in alike]
        if lacking:
            return f, _lacking(table, held, word, mine, slot, lacking[0])
    return None


def _word(parts: IntArray, sizes: Sequence[int], mine: int, low: IntArray, start: IntArray) -> System:
    """Return the system that a word of the layout is one of the fragment, in the first warp where it is not."""
    _, lanes, words, word, rank = low.shape
    apart = start[:, :, mine] != start[:, :1, mine, :1]
    wrong = ((low[:, :, mine] != parts) | apart).any(axis=(1, 2, 3))
    warp = int(np.argmax(wrong))
    lane, step = np.divmod(np.arange(lanes * word, dtype=np.int64), word)
    points = mine * word + step + words * word * (lane + lanes * warp)
    equations = []
    for dim in range(rank):
        factors = tuple(int(size) if dim == other else 0 for other, size in enumerate(sizes))
        equations.append(Equation(((1, 0, dim),), -parts[lane, step, dim], factors))
    return System((points,), tuple(equations))


def _lacking(table: IntArray, held: IntArray, word: int, mine: int, slot: int, needed: int) -> list[System]:
    """Return the candidates for a missing word: each register as the first of the needed word of the fragment."""
    warps, lanes, registers, rank = table.shape
    at = np.arange(warps * lanes, dtype=np.int64)
    apart = held[:, needed * word] - held[:, slot * word]
    distance = np.tile(apart, (warps, 1))
    equations = tuple(Equation(((1, 0, dim), (-1, 1, dim)), -distance[:, dim]) for dim in range(rank))
    return [System((other + registers * at, mine * word + registers * at), equations) for other in range(registers)]


def chunks(offsets: IntArray, per: int, strides: Sequence[int] = ()) -> System | None:
    """Return the equations that copies of whole 16-byte chunks impose on the pitches of any tensor with tile f.

    The unknowns are the pitches g. Elements x, y of one shared-memory chunk have the same distance in global memory,
    g . (y - x) = f(y) - f(x); for two chunks it differs by a multiple m t of a chunk, t another unknown. The system has
    the neighbours by f within chunks, and the few pairs of chunks that make it unsolvable.

    Args:
        offsets: Element offsets by tile coordinate, outermost first, all chunks full.
        per: m, elements of a chunk.
        strides: The pitches if known.
    """
    flat = offsets.reshape(-1, order="F")
    order = np.argsort(flat, kind="stable").astype(np.int64)
    at = np.stack(np.unravel_index(order, offsets.shape, order="F"), axis=1).astype(np.int64)
    rank = at.shape[1]
    inside = np.flatnonzero(np.diff(flat[order] // per) == 0)
    heads = np.arange(per, len(order), per, dtype=np.int64)
    unit = np.eye(rank, dtype=np.int64)
    steps = at[inside + 1] - at[inside]
    fixed = [(unit[dim], int(stride)) for dim, stride in enumerate(strides)]
    rows = [*steps.tolist(), *(row.tolist() for row, _ in fixed)]
    values = [*np.diff(flat[order])[inside].tolist(), *(stride for _, stride in fixed)]
    chosen: list[int] = []
    for _ in range(16):
        found = _pitches(rows, values, rank, [(at[head] - at[0]).tolist() for head in chosen], per)
        if found is None:
            break
        point, basis = found
        apart = at[heads] - at[0]
        wrong = (apart @ point % per != 0) | (apart @ basis.T % per != 0).any(axis=1)
        wrong[[head // per - 1 for head in chosen]] = False
        if not wrong.any():
            return None
        chosen.append(int(heads[np.argmax(wrong)]))
    else:
        return None
    left = np.concatenate((inside, np.zeros(len(chosen), dtype=np.int64)))
    right = np.concatenate((inside + 1, np.array(chosen, dtype=np.int64)))
    x, y = order[left], order[right]
    factors: list[IntArray] = [np.ascontiguousarray((at[right] - at[left])[:, dim]) for dim in range(rank)]
    for number in range(len(chosen)):
        factors.append(per * (np.arange(len(left)) == len(inside) + number).astype(np.int64))
    pairs = Equation(((1, 1, 0), (-1, 0, 0)), 0, tuple(factors))
    more = [Equation((), stride, tuple(int(entry) for entry in (*row, *(0,) * len(chosen)))) for row, stride in fixed]
    return System((x, y), (pairs, *more))


def no_chunks(offsets: IntArray, per: int) -> Certificate | None:
    """Return a certificate that no copies of whole 16-byte chunks fill a tile, of any tensor; None if some may.

    Args:
        offsets: Element offsets by tile coordinate, outermost first.
        per: Elements of a chunk.
    """
    f = np.ascontiguousarray(offsets.reshape(-1, order="F"))
    if (twice := overlap(f)) is not None:
        return twice
    taken = np.sort(f)
    places = np.unique(taken // per)
    counts = np.bincount(np.searchsorted(places, taken // per))
    if (counts != per).any():
        begin = int(places[int(np.argmax(counts != per))]) * per
        holes = np.setdiff1d(np.arange(begin, begin + per), taken)
        return missed(f, int(holes[0]))
    system = chunks(offsets, per)
    return None if system is None else none_of(f, [system])


def _pitches(
    rows: list[list[int]], values: list[int], rank: int, heads: list[list[int]], per: int
) -> tuple[IntArray, IntArray] | None:
    """Return the pitches that meet the equations and have heads whole chunks apart, as a point and a basis."""
    plain = sorted({(tuple(row), value) for row, value in zip(rows, values, strict=True)})
    extra = len(heads)
    matrix = [[*row, *(0,) * extra] for row, _ in plain]
    matrix += [[*row, *(per * int(other == number) for other in range(extra))] for number, row in enumerate(heads)]
    found = solve(matrix, [*(value for _, value in plain), *(0,) * extra], rank + extra)
    if isinstance(found, NoSolution):
        return None
    point, basis = np.array(found.particular[:rank]), np.array(found.basis).reshape(-1, rank + extra)[:, :rank]
    return np.asarray(point % per, dtype=np.int64), np.asarray(basis % per, dtype=np.int64)
