"""Choose evidence: the first rule with which the stand-alone checker proves a claim, and points that refute one.

Finding no point proves nothing; the checker re-evaluates those that are found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import matrix
from layoutalg.ground import clock
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic
from layoutalg.ground.recognize import Departure, linear, strided
from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.integer.forms import sampled_coordinates
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.functions import Function, Stages, common_digits
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


def document(values: npt.NDArray[np.int64]) -> object:
    """Return values as digits and strides, columns over F2 or a table: the first form that fits."""
    size, first = len(values), int(values[0])
    modes = strided(values)
    if not isinstance(modes, Departure) and modes:
        extents, strides = ([digit[part] for digit in modes] for part in (0, 1))
        return Function([["split", extents], ["affine", [strides], [first]]], size).document()
    bits = size.bit_length() - 1
    columns = linear(values) if size == 1 << bits and int(values.min()) >= 0 else None
    if columns is not None and not isinstance(columns, Departure):
        return Function([["xor", list(columns[0]), columns[1]]], size).document()
    return Function([["table", values.tolist()]], size).document()


def same_tables(meaning: npt.NDArray[np.int64], requested: npt.NDArray[np.int64], claim: str) -> Certificate:
    """Return the certificate that what a plan moves or reads is what was requested, table by table.

    Raises: AdmissibilityError: LA427: it is not.
    """
    statement = {"f": document(meaning.reshape(-1)), "g": document(requested.reshape(-1))}
    return proved("equality", statement, [{"by": "table"}], claim)


def false(where: str, because: str) -> AdmissibilityError:
    """Return the error for a false claim."""
    return AdmissibilityError(Diagnostic("LA427", "the claim does not hold", (where[:200],), because))


# --- points that refute ---
def _coordinates(f: Function) -> npt.NDArray[np.int64]:
    size = f.size or 0
    return np.arange(size, dtype=np.int64) if size <= LISTED else sampled_coordinates(size)


def _values(f: Function, at: npt.NDArray[np.int64]) -> Values:
    return evaluated(f.stages, [at])


def evaluated(stages: Stages, columns: Sequence[npt.NDArray[np.int64]]) -> Values:
    """Return the outputs of stages at points and where they are defined, as computed by the checker."""
    try:
        with base.timed(clock.left()):
            found: Values = base.values_at(stages, columns)
    except base.Stop:
        clock.check("the values of a function")
        raise
    return found


def first_outside(f: Function, bound: int) -> int | None:
    """Return a point whose value is undefined or outside [0, bound); None if none was found.

    Example:
        >>> from layoutalg.proofs.certify.functions import function
        >>> import layoutalg as la
        >>> first_outside(function(la.parse("(4,8):(8,1)")), 30)
        27
    """
    at = _coordinates(f)
    (values, *_), defined = _values(f, at)
    wrong = ~defined | np.asarray((values < 0) | (values >= bound), dtype=bool)
    return int(at[np.argmax(wrong)]) if wrong.any() else None


def greatest(f: Function) -> int:
    """Return the maximum value over the evaluated points.

    Example:
        >>> from layoutalg.proofs.certify.functions import function
        >>> import layoutalg as la
        >>> greatest(function(la.parse("(4,8):(8,1)")))
        31
    """
    (values, *_), defined = _values(f, _coordinates(f))
    return int(max(values[defined], default=0))


def collision(f: Function) -> tuple[int, int] | None:
    """Return two points with one value; None if none were found.

    Example:
        >>> from layoutalg.proofs.certify.functions import function
        >>> import layoutalg as la
        >>> collision(function(la.parse("(4,8):(2,4)")))
        (2, 4)
    """
    if f.stages and f.stages[0][0] == "xor" and len(f.stages) == 1:
        null = matrix.kernel(f.stages[0][1])
        return (0, null[0]) if null else None
    at = _coordinates(f)
    outputs, defined = _values(f, at)
    seen: dict[tuple[int, ...], int] = {}
    for place, *values in zip(at[defined].tolist(), *[output[defined].tolist() for output in outputs], strict=True):
        first = seen.setdefault(tuple(values), place)
        if first != place:
            return first, place
    return None


def preimages(f: Function) -> dict[int, int] | None:
    """Return the smallest point of every value; None if the function is too large to enumerate.

    Example:
        >>> from layoutalg.proofs.certify.functions import function
        >>> import layoutalg as la
        >>> preimages(function(la.parse("(2,2):(3,1)")))
        {4: 3, 1: 2, 3: 1, 0: 0}
    """
    if f.size is None or f.size > LISTED:
        return None
    at = _coordinates(f)[::-1]
    (values, *_), defined = _values(f, at)
    return dict(zip(values[defined].tolist(), at[defined].tolist(), strict=True))


def missed(f: Function, codomain: int) -> int | None:
    """Return a number in [0, codomain) that is not a value; None if none was found.

    Example:
        >>> from layoutalg.proofs.certify.functions import function
        >>> import layoutalg as la
        >>> missed(function(la.parse("(2,2):(3,1)")), 8)
        2
    """
    found = preimages(f)
    if found is not None:
        return next((value for value in range(min(codomain, len(found) + 1)) if value not in found), None)
    if f.stages[0][0] != "xor" or len(f.stages) > 1:
        return None
    _, columns, constant = f.stages[0]
    reduced = matrix.eliminate(columns)
    free = [constant ^ 1 << bit for bit in range((codomain - 1).bit_length()) if reduced.reduce(1 << bit)[0]]
    return next((value for value in free if value < codomain), None)
