"""What the accesses need of a shared layout: the space of tile elements that a lane group touches, and how often.

Let the shared layout be an invertible map S of tile bits to offset bits. A lane group touches the elements ``x + U``,
where U is spanned by the images of the group's lanes and of the registers of one vector. Let W be the offset bits above
a word's bytes and K the low ones of them, which number banks. The group takes
``2 ** (dim(U and ker K) - dim(U and ker W))`` turns, since every touched bank gets equally many words.

``chains`` proposes tile elements for the low offset bits, ``needs`` says what every access needs given them, ``floor``
bounds the turns of any layout.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from layoutalg.f2 import matrix
from layoutalg.proofs.swizzling import TileAccess, instruction_name, widths
from layoutalg.synth.swizzles.reading import Question
from layoutalg.targets.banks import BankModel, bank_model

FEW_BITS = 4
"""Up to this many tile bits, every chain is tried."""
MOST_JOINT = 6


@dataclass(frozen=True, slots=True)
class Need:
    """One access on one target, moved by one instruction."""

    access: int  # number of the access
    model: BankModel  # the instruction
    space: tuple[int, ...]  # basis of the elements that a lane group touches, as tile bits
    bank_end: int  # offset bits from the word up to (excluding) this one number the banks
    groups: int  # lane groups over all instructions and warps
    count: int  # number of these instructions


def _need(number: int, access: TileAccess, model: BankModel, vector: Sequence[int], element_bits: int) -> Need:
    """Return the need of an instruction whose lanes (for matrices, rows) each move the elements of ``vector``."""
    bank_end = (32 * model.banks // element_bits).bit_length() - 1
    images, groups, count = _touched(access, model, len(vector), element_bits)
    return Need(number, model, matrix.image_basis([*vector, *images]), bank_end, groups, count)


def _touched(access: TileAccess, model: BankModel, vector: int, element_bits: int) -> tuple[list[int], int, int]:
    """Return a spanning set of the elements at which a group's lanes start, the number of groups and of instructions.

    ``vector`` is log2 of the elements per lane.
    """
    registers = matrix.rank(access.registers)
    if access.by_vectors:
        lanes = access.lanes
        images = [matrix.apply(lanes, step) for step in model.space]
        groups = len(model.groups)
        if any(image == 0 for bit, image in enumerate(lanes) if 1 << bit in model.joins):
            images.append(matrix.apply(lanes, model.groups[1][0] ^ model.groups[0][0]))
            groups //= 2
        issued = 1 << registers - vector + len(access.warps)
        return images, groups * issued, issued
    rows = [access.distinct[0], *access.lanes[:2]] if access.kind.endswith("trans") else list(access.lanes[2:5])
    issued = 1 << registers - ((32 // element_bits).bit_length() - 1) + len(access.warps)
    return rows, issued, issued // (model.lanes // 8)


def _matrix_row(access: TileAccess, element_bits: int) -> tuple[int, ...] | None:
    """Return the tile elements that a matrix access needs at the low offset bits, in order; None for vectors."""
    if access.by_vectors:
        return None
    if access.kind.endswith("trans"):
        return access.lanes[2:5]
    held = (32 // element_bits).bit_length() - 1
    return (*access.distinct[:held], *access.lanes[:2])


def chains(asked: Question) -> Iterator[tuple[int, ...]]:
    """Yield tile elements for the low offset bits: those that matrices need, or common registers, longest first."""
    wanted = [low for access in asked.accesses if (low := _matrix_row(access, asked.element_bits)) is not None]
    if wanted:
        if all(one == other for one, other in pairwise(wanted)) and matrix.rank(wanted[0]) == len(wanted[0]):
            yield wanted[0]  # lanes with equal elements would not fill a row
        return
    common: Sequence[int] = asked.accesses[0].registers
    for access in asked.accesses[1:]:
        common = matrix.intersection(common, access.registers)
    moving = [image for access in asked.accesses for image in (*access.lanes, *access.warps)]
    shared = matrix.extension(matrix.intersection(common, moving), preferred(asked.accesses[0].registers, common))
    seen: set[tuple[int, ...]] = set()
    for first in (False, True):
        for chain in sorted(_continued(asked, shared, first), key=len, reverse=True):
            if chain not in seen:
                seen.add(chain)
                yield chain
    if asked.bits <= FEW_BITS:
        yield from _all_chains(asked, ())


def _all_chains(asked: Question, begun: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yield every chain of spaces that extends ``begun``, longest first."""
    reached = {matrix.apply(begun, number) for number in range(1 << len(begun))}
    for element in range(1 << asked.bits) if len(begun) < asked.most else ():
        if element == min(element ^ other for other in reached) and element not in reached:
            yield from _all_chains(asked, (*begun, element))
    yield begun


def _continued(asked: Question, shared: Sequence[int], first: bool) -> Iterator[tuple[int, ...]]:
    """Yield some common registers followed by those of one access; with ``first``, those of another one between."""

    def own(access: TileAccess, size: int) -> tuple[int, ...]:
        resting = matrix.intersection(access.registers, (*access.lanes, *access.warps))
        return matrix.extension([*shared[:size], *resting], access.registers)

    for size in range(min(asked.most, len(shared)), -1, -1):
        for before in asked.accesses if first else ():
            begun = own(before, size)
            for many in range(1, min(asked.most - size, len(begun)) + 1):
                start = (*shared[:size], *begun[:many])
                for access in asked.accesses:
                    yield (*start, *matrix.extension(start, access.registers)[: asked.most - len(start)])
        for access in () if first else asked.accesses:
            for many in range(asked.most - size, -1, -1):
                yield (*shared[:size], *own(access, size)[:many])


def _places_rows(asked: Question, access: TileAccess, low: Sequence[int], rows: Sequence[int]) -> bool:
    """Return whether a given layout places the rows of a matrix access as the instruction requires."""
    wanted = _matrix_row(access, asked.element_bits) or ()
    still = [*(vector for vector in (*access.distinct, *access.lanes, *access.warps) if vector not in wanted)]
    still.append(access.layout.constant)
    bad = any((row & vector).bit_count() & 1 for row in rows[: len(wanted)] for vector in still)
    return len(rows) >= len(wanted) and not bad and tuple(low[: len(wanted)]) == wanted


def preferred(candidates: Sequence[int], space: Sequence[int]) -> tuple[int, ...]:
    """Return a basis of a space that uses as many candidates as possible."""
    reduced = matrix.image_basis(space)
    inside = [vector for vector in candidates if vector and not matrix.remainder(reduced, vector)]
    return matrix.extension((), [*inside, *reduced])


def needs(
    asked: Question, low: Sequence[int], rows: Sequence[int] | None = None, caps: Sequence[int] = ()
) -> list[Need] | None:
    """Return what every access on every target needs, using the widest instruction that the low bits allow.

    Args:
        asked: The question.
        low: Elements at the low offset bits.
        rows: Offset bits as functions of tile bits; None assumes that lanes start at the first of these elements
            wherever an access allows that by itself.
        caps: Per access, how many of the low bits a lane may move at once; empty for no limit.
    """
    found = []
    for number, access in enumerate(asked.accesses):
        for target in asked.targets:
            if not access.by_vectors:
                name, _, trans = access.kind.partition(".")
                held = 1 if trans else (32 // asked.element_bits).bit_length() - 1
                free = matrix.rank(access.registers) - held
                if free < 0 or (rows is not None and not _places_rows(asked, access, low, rows)):
                    return None
                model = bank_model(target, f"{name}.x{min(4, 1 << free)}{'.' + trans if trans else ''}")
                found.append(_need(number, access, model, low, asked.element_bits))
                continue
            registers = matrix.image_basis(access.registers)
            moving = (*access.lanes, *access.warps)
            inside = 0
            while inside < (caps[number] if caps else len(low)) and not matrix.remainder(registers, low[inside]):
                if rows is not None and any((rows[inside] & image).bit_count() & 1 for image in moving):
                    break
                if rows is None and not matrix.extension((*moving, *low[:inside]), (low[inside],)):
                    break
                inside += 1
            possible = [
                bits for bits in widths(target, access.kind, asked.element_bits) if bits <= asked.element_bits << inside
            ]
            if not possible:
                return None
            size = (possible[0] // asked.element_bits).bit_length() - 1
            model = bank_model(target, instruction_name(target, access.kind, possible[0]))
            found.append(_need(number, access, model, low[:size], asked.element_bits))
    return found


def floor(asked: Question) -> int:
    """Return a lower bound on the turns of any layout.

    Accesses with vectors of at least 2**v elements share a v-dimensional space of their registers that contains no
    element reached by their lanes and warps; each group takes at least (its words) / (banks) turns.
    """
    choices = [_possible(asked, access, target) for access in asked.accesses for target in asked.targets]
    owners = [number for number in range(len(asked.accesses)) for _ in asked.targets]
    spans = [matrix.image_basis(access.registers) for access in asked.accesses]
    moving = [(*access.lanes, *access.warps) for access in asked.accesses]
    if len(choices) > MOST_JOINT:
        return sum(min((turns for _, turns in choice), default=0) for choice in choices)
    reach: dict[tuple[int, ...], int] = {}
    for picked in sorted(itertools.product(*choices), key=lambda each: sum(turns for _, turns in each)):
        for vector in {vector for vector, _ in picked if vector}:
            sharing = tuple(sorted({owners[place] for place, (own, _) in enumerate(picked) if own >= vector}))
            if sharing not in reach:
                reach[sharing] = _reach(spans, moving, sharing)
            if reach[sharing] < vector:
                break
        else:
            return sum(turns for _, turns in picked)
    return 0


def _possible(asked: Question, access: TileAccess, target: str) -> list[tuple[int, int]]:
    """Return the possible vectors of an access as log2 of elements, each with its least turns."""
    word, registers = asked.word, matrix.rank(access.registers)
    if _matrix_row(access, asked.element_bits) is not None:
        return [(0, 1 << max(0, registers - word + len(access.warps)))]
    found = []
    for bits in widths(target, access.kind, asked.element_bits):
        vector = (bits // asked.element_bits).bit_length() - 1
        if vector <= registers:
            model = bank_model(target, instruction_name(target, access.kind, bits))
            images, groups, _ = _touched(access, model, vector, asked.element_bits)
            banks = max(0, (32 * model.banks // asked.element_bits).bit_length() - 1 - word)
            found.append((vector, groups << max(0, max(matrix.rank(images), vector) - word - banks)))
    return found


def _reach(spans: Sequence[Sequence[int]], moving: Sequence[Sequence[int]], owners: Sequence[int]) -> int:
    """Return the largest dimension of a vector common to all these accesses.

    The vector is in the registers of each, and the low offset bits, which distinguish its elements, vanish on the lanes
    and warps of all of them together.
    """
    found = spans[owners[0]]
    for owner in owners[1:]:
        found = matrix.intersection(found, spans[owner])
    return len(matrix.extension([vector for owner in dict.fromkeys(owners) for vector in moving[owner]], found))


def ideal(asked: Question, needs: Sequence[Need]) -> tuple[int, int]:
    """Return the turns and instructions of a conflict-free layout."""
    turns = 0
    for need in needs:
        words = max(0, len(need.space) - asked.word)
        turns += need.groups << max(0, words - max(0, need.bank_end - asked.word))
    return turns, sum(need.count for need in needs)
