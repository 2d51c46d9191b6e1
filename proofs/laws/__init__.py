"""The laws of the algebra: named sentences about the library's own functions, proved by solvers on symbols."""

from __future__ import annotations

import math

from layoutalg.ground import clock
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import BudgetError, Diagnostic
from layoutalg.ground.verdict import Proved, Refuted, Unknown, Verdict
from layoutalg.proofs.laws import bits, digits, indirect, integers, movements, ragged, strided
from layoutalg.proofs.laws.law import Law, Obligation

__all__ = ["SUBJECTS", "Law", "Obligation", "law", "laws", "prove"]

SUBJECTS = (strided, integers, bits, digits, movements, indirect, ragged)
"""The modules with laws."""

_check = Checker("LA441", "this is not a law")


def laws() -> tuple[Law, ...]:
    """Return all laws, subject by subject.

    Example:
        >>> [each.name for each in laws() if each.name.startswith("composition.")][0]
        'composition.run'
    """
    return tuple([each for subject in SUBJECTS for each in subject.LAWS])


def law(name: str) -> Law:
    """Return the law of a name.

    Example:
        >>> law("coalesce.idempotent").obligations[0].scope
        'all extents, all strides; three modes'
    """
    known = {each.name: each for each in laws()}
    if name not in known:
        raise _check.malformed("name", "must be the name of a law; `laws()` lists them", name)
    return known[name]


def prove(name: str, seconds: float = math.inf) -> Verdict:
    """Return whether a law holds, as all solvers that are installed decide it.

    Mathematically: proved where every obligation is, except those of solvers that are not installed.

    Raises: BudgetError: LA440: two solvers disagree.

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
    for each in verdicts:
        if isinstance(each, Unknown) and not (proved and each.reason.endswith("not installed")):
            return each
    return Proved(", ".join(dict.fromkeys(each.engine for each in proved)), {"claim": asked.statement})
