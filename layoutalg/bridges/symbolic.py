"""Decide whether layouts with symbolic sizes are the same function, at all sizes that both allow.

A name is one size in both layouts. Equal normal forms under the assumptions and side conditions of both prove equality;
drawn sizes refute it, or confirm the proof.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from layoutalg.cute import CuteLayout
from layoutalg.cute.symbolic import SymbolicLayout, normal_form
from layoutalg.ground import clock, limits
from layoutalg.ground.assumptions import Assumptions
from layoutalg.ground.decide import draws
from layoutalg.ground.errors import AdmissibilityError, BudgetError, LayoutError, MalformedError
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict

DRAWN = 24
"""Sizes at which two layouts are compared."""


def compare(f: object, g: object, at: Callable[[object, object], Verdict]) -> Verdict:
    """Decide equality of two layouts, at least one of them symbolic; ``at`` compares them at given sizes.

    Returns:
        ``Proved`` with the common normal form and the conditions on the sizes; ``Refuted`` with ``sizes`` and what
        ``at`` says of them; ``Unknown`` if the forms differ but no drawn sizes do, or if no sizes meet the conditions.
    """
    sides = [each for each in (f, g) if isinstance(each, SymbolicLayout)]
    conditions = tuple(entry for side in sides for entry in side.conditions)
    try:
        integers = {name for side in sides for name in side.assumptions.integers}
        known = Assumptions([each for side in sides for each in side.assumptions.conditions], integers)
        pair: list[Any] = [
            SymbolicLayout(each.shape, each.stride, known, conditions) if isinstance(each, SymbolicLayout) else each
            for each in (f, g)
        ]
    except (AdmissibilityError, MalformedError) as error:
        return Unknown(f"the conditions of f and g contradict each other: {error.diagnostic.because}")
    names = frozenset().union(*(side.symbols for side in sides), known.names)
    asked = dict.fromkeys(map(str, (*known.conditions, *(entry.condition for entry in conditions))))
    text = ", ".join(asked) or "every size"
    try:
        with clock.within(limits.SYMBOLIC_SECONDS):
            same = _form(pair)
            agreed = 0
            for sizes in itertools.islice(draws(known, names), DRAWN):
                try:
                    found = at(*(_sized(each, sizes) for each in pair))
                except LayoutError:  # a side condition fails at these sizes
                    continue
                if isinstance(found, Refuted):
                    return replace(found, witness={"sizes": sizes, **found.witness})
                agreed += isinstance(found, Proved)
    except BudgetError as error:
        return Unknown(error.diagnostic.because, ("normal-form",))
    if not agreed:
        return Unknown(f"no sizes were found that meet {text}", ("normal-form", "sizes"))
    if same is None:
        return Unknown(f"the normal forms differ; {agreed} drawn sizes agree", ("normal-form", "sizes"))
    return Proved("normal-form", {"form": same, "for": text, "confirmed": f"at {agreed} drawn sizes"})


def _form(pair: list[Any]) -> str | None:
    """Return the normal form that both layouts have; None if they differ or one has none."""
    if not all(isinstance(each, SymbolicLayout | CuteLayout) for each in pair):
        return None
    first, second = (normal_form(each) for each in pair)
    return str(first) if first.modes == second.modes else None


def _sized(layout: Any, sizes: dict[str, int]) -> object:
    if not isinstance(layout, SymbolicLayout):
        return layout
    return layout.subs({name: sizes[name] for name in layout.symbols | layout.assumptions.names})
