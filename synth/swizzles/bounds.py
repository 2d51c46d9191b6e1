"""Lower bounds on the turns of any layout."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from layoutalg.f2 import matrix
from layoutalg.proofs.swizzling import TileAccess, instruction_name, widths
from layoutalg.synth.swizzles.needs import Need, low_columns, touched
from layoutalg.synth.swizzles.question import Question, word_of
from layoutalg.targets.banks import bank_model

MOST_JOINT = 6


def floor(asked: Question) -> int:
    """Return a lower bound on the turns of any layout.

    Accesses with vectors of at least 2**v elements share a v-dimensional space of their registers that contains no
    element reached by their lanes and warps; each group takes at least (its words) / (banks) turns.
    """
    choices: list[list[tuple[int, int]]] = []
    for access in asked.accesses:
        for target in asked.targets:
            choices.append(_possible(asked, access, target))
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
    word, registers = word_of(asked), matrix.rank(access.registers)
    if low_columns(access, asked.element_bits) is not None:
        return [(0, 1 << max(0, registers - word + len(access.warps)))]
    found = []
    for bits in widths(target, access.kind, asked.element_bits):
        vector = (bits // asked.element_bits).bit_length() - 1
        if vector <= registers:
            model = bank_model(target, instruction_name(target, access.kind, bits))
            images, groups, _ = touched(access, model, vector, asked.element_bits)
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
    if not found:
        return 0
    still = [vector for owner in dict.fromkeys(owners) for vector in moving[owner]]
    return matrix.rank([*still, *found]) - matrix.rank(still)


def ideal(asked: Question, needs: Sequence[Need]) -> tuple[int, int]:
    """Return the turns and instructions of a conflict-free layout."""
    word = word_of(asked)
    turns = 0
    for need in needs:
        words = max(0, len(need.space) - word)
        turns += need.groups << max(0, words - max(0, need.bank_end - word))
    return turns, sum(need.count for need in needs)
