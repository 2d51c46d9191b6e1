"""Choose evidence: the first rule with which the stand-alone checker proves a claim."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground import clock
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.stages import Function, common_digits, document
from layoutalg.proofs.checker import base

Evidence: TypeAlias = Mapping[str, object]
Values: TypeAlias = tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]
FEW = 4096
"""Up to this many points, enumeration is tried first."""
LISTED = 2**20
"""Largest function that is enumerated."""


def rules(*functions: Function) -> Iterator[dict[str, object]]:
    """Yield the rules that may decide a claim about functions on the domain of the first, cheapest first.

    Example:
        >>> from layoutalg.proofs.certify.functions import function
        >>> import layoutalg as la
        >>> [rule["by"] for rule in rules(function(la.parse("(64,64):(64,1)")))]
        ['table', 'digits', 'digits', 'solvers']
    """
    size = functions[0].size
    if size is not None:
        if size <= FEW:
            yield {"by": "table"}
        parts = [each.digits for each in functions if each.size == size]
        known: list[list[int]] = []
        for order, bits in ((parts, False), (parts, True), (parts[::-1], True)):
            digits = common_digits(order, size, bits=bits)
            if size > 1 and digits not in known:
                known.append(digits)
                yield {"by": "digits", "digits": digits}
        if FEW < size <= base.POINTS:
            yield {"by": "table"}
    yield {"by": "solvers"}


def proved(kind: str, statement: Evidence, evidence: Iterable[Evidence], where: str) -> Certificate:
    """Return the claim with the first evidence that the checker accepts.

    Raises: AdmissibilityError: LA427: the claim is refuted. BudgetError: LA428: no evidence decides it.
    """
    said = "no rule applies"
    for each in evidence:
        clock.check("a certificate")
        made = Certificate(kind, statement, each)
        verdict = made.check()
        if isinstance(verdict, Proved):
            return made
        if isinstance(verdict, Refuted):
            raise false(where, str(verdict.witness["what"]))
        said = verdict.reason
    clock.check("a certificate")
    raise BudgetError(Diagnostic("LA428", "no certificate was found for this claim", (where[:200],), said))


def first(kind: str, statement: Evidence, evidence: Iterable[Evidence], where: str) -> Certificate:
    """Return the claim with the first evidence that holds; failing evidence does not refute the claim.

    Raises: BudgetError: LA428: no evidence holds.
    """
    for each in evidence:
        clock.check("a certificate")
        made = Certificate(kind, statement, each)
        if isinstance(made.check(), Proved):
            return made
    clock.check("a certificate")
    what = "no certificate was found for this claim"
    raise BudgetError(Diagnostic("LA428", what, (where[:200],), "all evidence tried failed"))


def same_tables(meaning: npt.NDArray[np.int64], requested: npt.NDArray[np.int64], claim: str) -> Certificate:
    """Return the certificate that what a plan moves or reads is what was requested, table by table.

    Raises: AdmissibilityError: LA427: it is not.
    """
    statement = {"f": document(meaning.reshape(-1)), "g": document(requested.reshape(-1))}
    return proved("equality", statement, [{"by": "table"}], claim)


def false(where: str, because: str) -> AdmissibilityError:
    """Return the error for a false claim."""
    return AdmissibilityError(Diagnostic("LA427", "the claim does not hold", (where[:200],), because))
