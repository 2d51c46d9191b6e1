"""The laws of the algebra: named sentences about the library's own functions, proved by solvers and by enumeration."""

from __future__ import annotations

import math

from layoutalg.ground import clock
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.laws import (
    boxes,
    coalesce,
    common,
    complement,
    composed,
    composition,
    conversions,
    coordinates,
    digit_lists,
    digit_maps,
    division,
    f2_axes,
    f2_layouts,
    f2_matrix,
    f2_parts,
    facts,
    families,
    hierarchies,
    integer_layouts,
    integer_values,
    intervals,
    inverses,
    level_profiles,
    matrices,
    morphisms,
    origins,
    partition,
    piecewise_layouts,
    recast,
    reshape,
    sizes,
    swizzle,
    symbolic,
    texts,
    values,
)
from layoutalg.proofs.laws.law import Law, Obligation
from layoutalg.proofs.laws.page import written

__all__ = ["Law", "Obligation", "law", "laws", "prove", "table"]

_SUBJECTS = (
    boxes,
    coalesce,
    common,
    complement,
    composed,
    composition,
    conversions,
    coordinates,
    digit_lists,
    digit_maps,
    division,
    f2_axes,
    f2_layouts,
    f2_matrix,
    f2_parts,
    facts,
    families,
    hierarchies,
    integer_layouts,
    integer_values,
    intervals,
    inverses,
    level_profiles,
    matrices,
    morphisms,
    origins,
    partition,
    piecewise_layouts,
    recast,
    reshape,
    sizes,
    swizzle,
    symbolic,
    texts,
    values,
)
_check = Checker("LA441", "this is not a law")


def laws() -> tuple[Law, ...]:
    """Return all laws, subject by subject.

    Example:
        >>> [each.name for each in laws() if each.name.startswith("composition.")][0]
        'composition.run'
    """
    return tuple([each for subject in _SUBJECTS for each in subject.LAWS])


def law(name: str) -> Law:
    """Return the law of a name.

    Raises: MalformedError: LA441.

    Example:
        >>> law("coalesce.idempotent").for_all
        True
    """
    known = {each.name: each for each in laws()}
    if name not in known:
        raise _check.malformed("name", "must be the name of a law; `laws()` lists them", name)
    return known[name]


def prove(name: str, seconds: float = math.inf) -> Verdict:
    """Return whether a law holds, as all engines that are installed decide it.

    Mathematically: proved where every obligation is, those of solvers that are not installed aside.

    Args:
        name: The law.
        seconds: Wall time.

    Raises: MalformedError: LA441, LA004. BudgetError: LA440: two engines disagree.

    Example:
        >>> print(prove("coalesce.idempotent").engine)
        z3, cvc5
    """
    asked = law(name)
    with clock.within(seconds):
        verdicts = [each.prove() for each in asked.obligations]
    proved = [each for each in verdicts if isinstance(each, Proved)]
    refuted = next((each for each in verdicts if isinstance(each, Refuted)), None)
    if refuted is not None:
        if proved:
            because = f"{proved[0].engine} proves it and {refuted.engine} refutes it at {dict(refuted.witness)}"
            raise BudgetError(Diagnostic("LA440", "two engines disagree on a law", (f"prove({name!r})",), because))
        return refuted
    left_open = [each for each in verdicts if isinstance(each, Unknown)]
    for each in left_open:
        if not proved or not each.reason.endswith("not installed"):
            return each
    return Proved(", ".join(dict.fromkeys(each.engine for each in proved)), {"claim": asked.statement})


def table() -> str:
    """Return the page of all laws in Markdown: what each says, who proves it and how far."""
    return written({subject.__doc__ or "": subject.LAWS for subject in _SUBJECTS})
