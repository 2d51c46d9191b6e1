"""Whether an answer about linear equations holds, by arithmetic alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def is_solution(A: Sequence[Sequence[int]], b: Sequence[int], moduli: int | Sequence[int], answer: Any) -> bool:
    """Equations for a solution, congruences for a proof that there is none; not whether the lattice is complete."""
    each = [moduli] * len(A) if isinstance(moduli, int) else moduli

    def zero(value: int, modulus: int) -> bool:
        return value % modulus == 0 if modulus else value == 0

    def dot(x: Sequence[int], y: Sequence[int]) -> int:
        return sum(a * b for a, b in zip(x, y, strict=True))

    if not answer:
        combined = [dot(answer.row, column) for column in zip(*A, strict=True)]
        return (
            all(zero(entry, answer.modulus) for entry in combined)
            and all(zero(y * m, answer.modulus) for y, m in zip(answer.row, each, strict=True))
            and not zero(dot(answer.row, b), answer.modulus)
        )
    points = [(answer.particular, b), *[(row, [0] * len(A)) for row in answer.basis]]
    return all(
        zero(dot(row, point) - wanted, m)
        for point, target in points
        for row, wanted, m in zip(A, target, each, strict=True)
    )
