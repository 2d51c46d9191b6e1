"""Certificates of inverses, and of their absence."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

from layoutalg.bridges.affine import to_integer
from layoutalg.bridges.inverse import left_inverse, right_inverse
from layoutalg.bridges.normal import normal
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground.digits import span
from layoutalg.ground.errors import BudgetError, Diagnostic, LayoutError
from layoutalg.ground.layout import read
from layoutalg.ground.verdict import Refuted
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.integer.reach import injective
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import first, proved, rules
from layoutalg.proofs.certify.functions import check, function
from layoutalg.proofs.certify.points import collision, missed, preimages
from layoutalg.proofs.certify.stages import Function

SIDES = ("left", "right", "both")
LISTED = 2**16
"""Most values of an inverse given as a table."""


def inverse(layout: object, of: object = None, *, side: str = "left", codomain: int | None = None) -> Certificate:
    """Return a certificate that a layout has, or does not have, an inverse.

    For f = ``layout`` on [0, N) and g on [0, M), on flat coordinates: ``left``: g(f(i)) = i for all i < N; ``right``:
    f(g(v)) = v for all v < M; ``both``: left, and M = N. Kind ``no-inverse``: two points with one value exclude a left
    inverse, a missed number below ``codomain`` excludes a right one, either excludes ``both``.

    Args:
        layout: A layout of any family with one output.
        of: The inverse g; None for the library's, as a layout or a table.
        side: ``"left"``, ``"right"`` or ``"both"``.
        codomain: M, if ``of`` is None. Default: N for ``both``, otherwise the layout's codomain or its maximum value
            plus 1; for ``left`` the library's inverse is used unchanged.

    Raises: MalformedError: LA426. AdmissibilityError: LA427: ``of`` is not an inverse. BudgetError: LA428.

    Example:
        >>> import layoutalg as la
        >>> made = inverse(la.parse("(4,8):(8,1)"), side="both")
        >>> made.kind, made.statement["inverse"]["stages"], made.evidence
        ('inverse', [['split', [8, 4]], ['affine', [[4, 1]], [0]]], {'by': 'table'})
        >>> print(inverse(la.parse("(4,8):(2,4)")).check().certificate["claim"])
        f(2) = f(4)
        >>> none = inverse(la.parse("(4,8):(16,2)"), side="both")
        >>> print(none.evidence["missed"], none.evidence["invariant"], none.check().certificate["claim"])
        1 [['mod', [2]]] 1 is not taken: [0] at 32 points
    """
    check.choice(side, "side", SIDES)
    layout = read(layout)
    f = function(layout, "layout")
    if f.outputs != 1:
        raise check.malformed("layout", "must have one output", f.outputs)
    where = f"inverse({layout}, side={side!r})"
    if of is None:
        top = _codomain(layout, f, side) if codomain is None else check.integer(codomain, "codomain", 0)
        none = _none(layout, f, side, top, where)
        if none is not None:
            return none
        candidates = list(_candidates(layout, f, side, top, exact=side != "left" or codomain is not None))
    else:
        candidates = [function(of, "of")]
    refusal: LayoutError | None = None
    for g in candidates:
        statement = {"f": f.document(), "inverse": g.document(), "side": side}
        try:
            return proved("inverse", statement, rules(g if side == "right" else f, f, g), where)
        except LayoutError as error:
            refusal = error
    if of is not None and refusal is not None:
        raise refusal
    because = "no inverse was found" if refusal is None else refusal.diagnostic.because
    raise BudgetError(Diagnostic("LA428", "no certificate was found for this claim", (where[:200],), because))


def _codomain(layout: object, f: Function, side: str) -> int:
    """Return the default number of points of an inverse."""
    found = normal(layout)
    if side == "both":
        return f.size or 0
    if isinstance(found, HierarchicalLayout):
        return found.size
    if isinstance(found, CuteLayout):
        return span(found.flat)[1] + 1
    if isinstance(found, LinearLayout):
        return 1 << found.out_bits
    known = preimages(f)
    if known is None:
        raise check.malformed("codomain", "must be given for a layout of this size", None)
    return max(known, default=-1) + 1


def _none(layout: object, f: Function, side: str, codomain: int, where: str) -> Certificate | None:
    """Return the certificate that there is no inverse; None if none is excluded."""
    statement = {"f": f.document(), "codomain": codomain, "side": side}
    if side in ("left", "both"):
        points = collision(f) or _far_collision(layout)
        if points is not None:
            return proved("no-inverse", statement, [{"points": list(points)}], where)
    if side in ("right", "both"):
        value = missed(f, codomain)
        if value is not None:
            evidence = (
                {"missed": value, "invariant": invariant, "by": rule}
                for invariant in _invariants(layout, value)
                for rule in rules(f)
            )
            return first("no-inverse", statement, evidence, where)
    return None


def _far_collision(layout: object) -> tuple[int, int] | None:
    """Return two points with one value, found algebraically, or None."""
    found = normal(layout)
    if isinstance(found, CuteLayout):
        found = to_integer(found)
    if not isinstance(found, IntegerLayout):
        return None
    verdict = injective(found)
    if not isinstance(verdict, Refuted):
        return None
    first, second = (_flat(found, verdict.witness[name]) for name in ("first", "second"))
    return first, second


def _flat(layout: IntegerLayout, point: object) -> int:
    """Return the flat coordinate of a point."""
    index, weight = 0, 1
    for name, extent in layout.inputs:
        index += weight * (point[name] if isinstance(point, Mapping) else 0)
        weight *= extent
    return index


def _invariants(layout: object, value: int) -> Iterator[list[list[Any]]]:
    """Yield stages that may map all values of a layout to one number and the missed value to another."""
    found = normal(layout)
    if isinstance(found, LinearLayout):
        for mask in matrix.kernel(matrix.transpose(found.columns, found.out_bits)):
            yield [["xor", [mask >> bit & 1 for bit in range(found.out_bits)], 0]]
    strides = [stride for extent, stride in found.flat if extent > 1] if isinstance(found, CuteLayout) else []
    if math.gcd(*strides) > 1:
        yield [["mod", [math.gcd(*strides)]]]
    is_it = [[[], [[[1], -value, "="]], [[[0], 0]]], [[], [], [[[0], 1]]]]
    yield [["pieces", is_it]]


def _candidates(layout: object, f: Function, side: str, codomain: int, *, exact: bool) -> Iterator[Function]:
    """Yield inverses: the library's, with ``codomain`` points if ``exact``; then a table."""
    found = normal(layout)
    find = right_inverse if side == "right" else left_inverse
    with contextlib.suppress(LayoutError):
        g = function(find(found, widen=isinstance(found, CuteLayout | ComposedLayout)), "of")
        if g.outputs == 1 and (not exact or g.size == codomain):
            yield g
    if isinstance(found, HierarchicalLayout) and not found.guards and found.size == codomain:
        yield function(found.inverse(), "of")
    known = preimages(f)
    if known is not None and 0 < codomain <= LISTED:
        table = [known.get(value, 0) for value in range(codomain)]
        yield Function([["table", table]], codomain, (codomain,))
