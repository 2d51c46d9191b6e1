"""Turns that no layout goes below.

Main definitions: ``floor``, ``ideal``.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from layoutalg.f2 import matrix
from layoutalg.proofs.swizzling import TileAccess, instruction_name, widths
from layoutalg.synth.swizzles.needs import Need, low_columns, need_of
from layoutalg.synth.swizzles.question import Question, word_of
from layoutalg.targets.bank_model import bank_model

MOST_JOINT = 6


def floor(asked: Question) -> int:
    """Return turns that no layout goes below.

    Accesses whose vectors have v elements or more share a space of v dimensions of their registers; each group takes at
    least as many turns as its words fill the banks.
    """
    choices: list[list[tuple[int, int]]] = []
    for number, access in enumerate(asked.accesses):
        for target in asked.targets:
            choices.append(_possible(asked, number, access, target))
    owners = [number for number in range(len(asked.accesses)) for _ in asked.targets]
    spans = [matrix.image_basis(access.registers) for access in asked.accesses]
    if len(choices) > MOST_JOINT:
        return sum(min((turns for _, turns in choice), default=0) for choice in choices)
    least_turns = []
    for picked in itertools.product(*choices):
        wide = sorted({vector for vector, _ in picked})
        sharing = ([owners[place] for place, (own, _) in enumerate(picked) if own >= vector] for vector in wide)
        if all(len(_common(spans, owner)) >= vector for owner, vector in zip(sharing, wide, strict=True)):
            least_turns.append(sum(turns for _, turns in picked))
    return min(least_turns, default=0)


def _possible(asked: Question, number: int, access: TileAccess, target: str) -> list[tuple[int, int]]:
    """Return the vectors that an access may have, as logs of elements, each with the least turns."""
    word, registers = word_of(asked), matrix.rank(access.registers)
    if low_columns(access, asked.element_bits) is not None:
        return [(0, 1 << max(0, registers - word + len(access.warps)))]
    found = []
    for bits in widths(target, access.kind, asked.element_bits):
        vector = (bits // asked.element_bits).bit_length() - 1
        if vector <= registers:
            model = bank_model(target, instruction_name(target, access.kind, bits))
            need = need_of(number, access, model, (0,) * vector, asked.element_bits)
            words = max(0, max(len(need.space), vector) - word)
            found.append((vector, need.groups << max(0, words - max(0, need.bank_end - word))))
    return found


def _common(spans: Sequence[Sequence[int]], owners: Sequence[int]) -> Sequence[int]:
    found = spans[owners[0]]
    for owner in owners[1:]:
        found = matrix.intersection(found, spans[owner])
    return found


def ideal(asked: Question, needs: Sequence[Need]) -> tuple[int, int]:
    """Return the turns and the instructions if no bank were busier than it must be."""
    word = word_of(asked)
    turns = 0
    for need in needs:
        words = max(0, len(need.space) - word)
        turns += need.groups << max(0, words - max(0, need.bank_end - word))
    return turns, sum(need.count for need in needs)
