"""Points that refute a claim. Finding none proves nothing; the checker re-evaluates those that are found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import matrix
from layoutalg.ground import clock
from layoutalg.integer.forms import sampled_coordinates
from layoutalg.proofs.certify.stages import Function, Stages
from layoutalg.proofs.checker import base

Values: TypeAlias = tuple[list[npt.NDArray[np.int64]], npt.NDArray[np.bool_]]
LISTED = 2**20
"""Largest function that is enumerated."""


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
