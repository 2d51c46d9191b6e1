"""Ladders of engines: the cheapest applicable engine answers and is named in the answer.

Engines per question, cheapest first; the file of each engine in brackets:

    question         lattice      sorted strides   table      bitset   ISL         z3
                     [lattice]    [forms]          [tables]   [bits]   [guarded]   [solver]
    injective        kernel       superincreasing  x          x                    x
    covers           coset        range, chain     x          x        x           confirms
    common values    coset        range, progr.    x          x
    disjoint images  coset        range, progr.    x          x                    x
    right inverse    residues     digits
    image inverse    one piece    digits           runs                x
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from layoutalg.ground.errors import AdmissibilityError, BudgetError
from layoutalg.integer.forms import span
from layoutalg.integer.layout import IntegerLayout, check_argument
from layoutalg.integer.matrix import Form

Answer = TypeVar("Answer")
Ladder: TypeAlias = Mapping[str, Callable[..., Answer]]
"""Name -> engine, cheapest first; an engine takes its name and the operands and returns None if it cannot decide."""
MILLISECONDS = 2000


def climb(ladder: Ladder[Answer], said: list[str], *operands: object) -> Answer | None:
    """Return the first answer of a ladder, or None; ``said`` collects why earlier engines gave up.

    Example:
        >>> climb({"even": lambda name, n: None if n % 2 else name, "any": lambda name, n: name}, [], 3)
        'any'
    """
    for name, engine in ladder.items():
        try:
            answer = engine(name, *operands)
        except (BudgetError, AdmissibilityError) as error:  # errors of ISL itself say nothing about the operands
            said.append(f"{name}: {error.diagnostic.code} {error.diagnostic.what}")
            continue
        if answer is not None:
            return answer
    return None


def packed(*layouts: IntegerLayout) -> list[Form] | None:
    """Return one form (row, constant, modulus) per layout, such that equal packed values mean equal outputs.

    Several outputs are packed in mixed radix by their common ranges, which is injective on the boxes; None if one of
    several outputs wraps.

    Example:
        >>> packed(IntegerLayout((("i", 3), ("j", 4)), (("x", 0), ("y", 0)), ((1, 0), (1, 1)), (0, 7)))
        [((4, 3), 0, 0)]
    """
    if len(layouts[0].outputs) == 1:
        return [layout.forms[0] for layout in layouts]
    if any(m for layout in layouts for _, _, m in layout.forms):
        return None
    rows, constants, weight = [[0] * len(layout.inputs) for layout in layouts], [0 for _ in layouts], 1
    for forms in zip(*[layout.forms for layout in layouts], strict=True):
        ends = [span(row, b, layout.extents) for (row, b, _), layout in zip(forms, layouts, strict=True)]
        low, high = min(bottom for bottom, _ in ends), max(top for _, top in ends)
        for place, (row, b, _) in enumerate(forms):
            rows[place] = [total + weight * a for total, a in zip(rows[place], row, strict=True)]
            constants[place] += weight * (b - low)
        weight *= high - low + 1
    return [(tuple(row), constant, 0) for row, constant in zip(rows, constants, strict=True)]


def checked_milliseconds(value: object) -> int:
    """Return a checked time budget."""
    return check_argument.integer(value, "milliseconds", 1, 2**31)
