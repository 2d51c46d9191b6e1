"""The best layout with given elements at the low offset bits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from layoutalg.f2 import LinearLayout, matrix
from layoutalg.proofs.served import Served
from layoutalg.proofs.swizzling import SwizzlePlan
from layoutalg.synth.swizzles.needs import Need, preferred
from layoutalg.synth.swizzles.needs import needs as needs_of
from layoutalg.synth.swizzles.reading import Question
from layoutalg.synth.swizzles.search import Found, Space, complement_columns, free_choices, least

NODES = 10_000


def solved(asked: Question, low: tuple[int, ...], needs: Sequence[Need]) -> SwizzlePlan | None:
    """Return the best layout with these elements at the low offset bits; None if lanes cannot start there."""
    basis = _basis(asked, low, needs)
    if basis is None:
        return None
    word = asked.word
    best: tuple[Found, list[int]] | None = None
    for ordered in _within_words(basis, len(low), word, needs):
        found = _mapped(ordered, len(low), word, needs)
        if found is not None and (best is None or found.turns < best[0].turns):
            best = found, ordered
        if best is not None and best[0].turns == best[0].bound:
            break
    if best is None:
        return None
    smem = _layout(asked, best[0].columns, best[1], word)
    served = served_by(asked, smem)
    return SwizzlePlan(smem, asked.element_bits, asked.accesses, served, 0, best[0].proof)


def served_by(asked: Question, smem: LinearLayout) -> tuple[Served, ...]:
    """Return how each access is served by the widest instruction that the layout allows; turns come from ranks."""
    elements = matrix.inverse(smem.columns)
    rows = matrix.transpose(smem.columns, asked.bits)
    banks = [0 if at < asked.word else 1 << at - asked.word for at in range(asked.bits)]
    found = []
    for need in needs_of(asked, elements[: asked.most], rows) or ():
        space, model = space_of(need, smem.columns, asked.word), need.model
        turns = space.turns(banks)
        found.append(Served(need.access, model.target, model.operation, need.count, turns, space.least, model.evidence))
    return tuple(found)


def _basis(asked: Question, low: tuple[int, ...], needs: Sequence[Need]) -> list[int] | None:
    """Return a basis of the tile that begins with the low elements, such that low coordinates vanish on all lanes.

    Every lane must start at the first element of its vector, so the low coordinates are functions that vanish on the
    images of lanes and warps; None if there are none. A low element may be changed by earlier ones, since only the span
    of a vector matters; rows of matrices need them in order.
    """
    exact = any(not access.by_vectors for access in asked.accesses)
    resting = [_resting(asked, low, needs, place) for place in range(len(low))]
    # Accesses with narrow vectors spread their lanes over the low bank bits that others' vectors occupy.
    narrow = [vector for need in needs if len(need.space) and _width(asked, need) < len(low) for vector in need.space]
    held = [vector for still in resting for vector in still]
    spread = matrix.extension([*held, *low], narrow)[: max(0, len(low) - asked.word)]
    functions = []
    for place in range(len(low)):
        still = resting[place]
        told = low if exact else low[: place + 1]
        points = [*still, *told, *spread]
        wanted = 1 << len(still) + place
        if (turn := place - asked.word) in range(len(spread)):
            wanted |= 1 << len(still) + len(told) + turn
        rows = [sum((point >> bit & 1) << at for at, point in enumerate(points)) for bit in range(asked.bits)]
        solved = matrix.solve(rows, wanted)
        if solved is None:
            return None
        functions.append(solved[0])
    found: list[int] = []
    for element in low:
        for function, before in zip(functions, tuple(found), strict=False):
            element ^= before if (function & element).bit_count() & 1 else 0
        found.append(element)
    rest = []
    for bit in range(asked.bits):
        vector = 1 << bit
        for function, element in zip(functions, found, strict=True):
            if function >> bit & 1:
                vector ^= element
        rest.append(vector)
    return [*found, *matrix.extension(found, rest)]


def _resting(asked: Question, low: Sequence[int], needs: Sequence[Need], place: int) -> list[int]:
    """Return the elements on which the low coordinate ``place`` must vanish."""
    still: list[int] = []
    for need in needs:
        access = asked.accesses[need.access]
        if not access.by_vectors:
            moved = (*access.distinct, *access.lanes, *access.warps)
            still += [*(vector for vector in moved if vector not in low), access.layout.constant]
        elif place < _width(asked, need):
            still += [*access.lanes, *access.warps]
    return still


def _width(asked: Question, need: Need) -> int:
    """log2 of the elements per lane."""
    return (8 * need.model.access_bytes // asked.element_bits).bit_length() - 1


def _within_words(basis: list[int], low: int, word: int, needs: Sequence[Need]) -> Iterator[list[int]]:
    """Yield orders of a basis: which elements share a word in addition to those one lane moves at once."""
    if low >= word:
        yield basis
        return
    rest = basis[low:]
    seen = set()
    spaces = [need.space for need in needs]
    everywhere: Sequence[int] = spaces[0]
    for space in spaces[1:]:
        everywhere = matrix.intersection(everywhere, space)
    span = matrix.image_basis(rest)
    for first in (everywhere, *spaces, ()):
        inside = matrix.intersection(first, span) if first else ()
        order = matrix.extension(basis[:low], [*preferred(rest, inside), *inside, *rest])
        if order[: word - low] not in seen:
            seen.add(order[: word - low])
            yield [*basis[:low], *order]


def space_of(need: Need, coordinates: Sequence[int], word: int) -> Space:
    basis = matrix.image_basis([matrix.apply(coordinates, vector) for vector in need.space])
    inside = len(basis) - matrix.rank([vector >> word for vector in basis])
    return Space(basis, (1 << max(0, need.bank_end - word)) - 1, need.groups, inside)


def _mapped(ordered: list[int], low: int, word: int, needs: Sequence[Need]) -> Found | None:
    """Return the bank bits of every basis vector."""
    total = len(ordered)
    coordinates = matrix.inverse(ordered)
    spaces = [space_of(need, coordinates, word) for need in needs]
    start = max(low, word)
    known = [0 if at < word else 1 << at - word for at in range(min(start, total))]
    bits = min(max(space.mask.bit_length() for space in spaces), max(0, total - word))
    closed = complement_columns(spaces, min(word, total), len(known), total, max(0, bits - (start - word)))
    if closed is not None:
        columns = (*known, *(column << start - word for column in closed))
        turns = sum(space.turns(columns) for space in spaces)
        floor = sum(space.least for space in spaces)
        return Found(
            columns, turns, floor, "closed form for two accesses: a common complement of what their lanes touch", 0
        )
    same = len({space.mask for space in spaces}) == 1
    return least(spaces, known, total, free_choices(bits, min(bits, max(0, start - word)), same), NODES)


def _layout(asked: Question, columns: Sequence[int], ordered: Sequence[int], word: int) -> LinearLayout:
    """Return the layout: the word's elements, the bank bits, then coordinates that complete them to a bijection."""
    total = asked.bits
    placed = [1 << at if at < word else column << word for at, column in enumerate(columns)]
    rows = list(matrix.transpose(placed, total))  # bit t of row j: coordinate t contributes to offset bit j
    fresh = iter(matrix.extension(rows, [1 << at for at in range(total)]))
    rows = [row if matrix.extension(rows[:place], [row]) else next(fresh) for place, row in enumerate(rows)]
    whole = matrix.transpose(rows, total)
    return LinearLayout(
        asked.accesses[0].layout.out_axes, (("offset", total),), matrix.multiply(whole, matrix.inverse(ordered))
    )
