"""Certificates of equality and composition, of their refutation, and of functoriality."""

from __future__ import annotations

from collections.abc import Mapping

from layoutalg.bridges.composition import compose
from layoutalg.bridges.equal import equivalent
from layoutalg.bridges.normal import Given, from_coordinates, normal, opposite
from layoutalg.cute import Morphism, Swizzle
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import BudgetError, Diagnostic, RepresentabilityError, shown
from layoutalg.ground.layout import read
from layoutalg.ground.verdict import Refuted, Unknown
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import false, first, proved, rules
from layoutalg.proofs.certify.functions import function, functions, swizzled
from layoutalg.proofs.certify.points import first_outside, greatest
from layoutalg.proofs.certify.stages import Function

_COMPOSITE = Checker("LA465", "no composite to certify")


def equality(f: Given, g: Given) -> Certificate:
    """Return a certificate that two layouts are, or are not, the same function.

    Kind ``equality``: equal domains and f(i) = g(i) for all i, as decided by ``layoutalg.equivalent``; kind
    ``inequality``: the domains differ, or the values at some point.

    Example:
        >>> import layoutalg as la
        >>> made = equality(la.parse("(2,4):(1,2)"), la.parse("8:1"))
        >>> made.kind, made.statement["f"], made.evidence
        ('equality', {'size': 8, 'stages': [['split', [2, 4]], ['affine', [[1, 2]], [0]]]}, {'by': 'table'})
        >>> other = equality(la.parse("4:1"), la.parse("(2,2):(1,3)"))
        >>> print(other.kind, other.evidence, other.check().certificate["claim"])
        inequality {'at': [2]} f is [2] and g is [3] at [2]
    """
    f, g = read(f, like=g), read(g, like=f)
    one, other = normal(f), normal(g)
    if one is not None and other is not None and opposite(one, other):  # as ``equivalent`` compares them
        f, g = from_coordinates(one, other), from_coordinates(other, one)
    left, right = functions(f, g)
    statement = {"f": left.document(), "g": right.document()}
    where = f"equality({f}, {g})"
    if (left.size, left.inputs) != (right.size, right.inputs):
        least = [min(left.size or 0, right.size or 0)]
        points = [least, [0] * (left.inputs or 1), [0] * (right.inputs or 1)]
        return first("inequality", statement, [{"at": point} for point in points], where)
    if left.size is not None and left.outputs != right.outputs:
        return proved("inequality", statement, [{"at": [0]}], where)
    verdict = equivalent(f, g)
    if isinstance(verdict, Refuted):
        return proved("inequality", statement, [{"at": _point(f, g, verdict.witness)}], where)
    if isinstance(verdict, Unknown):
        raise BudgetError(
            Diagnostic("LA428", "no certificate was found for this claim", (where[:200],), verdict.reason)
        )
    return proved("equality", statement, rules(left, right), where)


def _point(f: object, g: object, witness: Mapping[str, object]) -> list[object]:
    """Return the coordinate of a witness, or its parameters and coordinates."""
    if "coordinate" in witness:
        return [witness["coordinate"]]
    names = tuple(dict.fromkeys([name for layout in (f, g) for name in getattr(layout, "params", ())]))
    found = witness.get("at")
    if not isinstance(found, Mapping) or not isinstance(f, PiecewiseLayout):
        raise false(f"equality({f}, {g})", f"the layouts differ, but the witness is not a point: {shown(witness)}")
    known = {**found, **found.get("params", {}), **found.get("point", {})}
    return [known.get(name, 0) for name in names] + [known[name] for name in f.axes]


def composition(outer: object, inner: object, composite: object = None) -> Certificate:
    """Return a certificate that a layout is the composition of two, or that they have none.

    Kind ``composition``: on flat coordinates h(i) = f(g(i)) for all i, with every g(i) in the domain of f, for f =
    ``outer``, g = ``inner``, h = ``composite``; kind ``no-composition``: some g(i) is outside the domain of f.

    Args:
        outer: A layout of any family; a swizzle applies to all coordinates that ``inner`` reaches.
        inner: A layout with one output.
        composite: The composition; None for ``layoutalg.compose(outer, inner, widen=True)``.

    Raises: MalformedError: LA426. RepresentabilityError: LA429, and those of ``compose``. AdmissibilityError: LA427: h
        is not the composition. BudgetError: LA428, and those of ``compose``.

    Example:
        >>> import layoutalg as la
        >>> made = composition(la.parse("(4,8):(8,1)"), la.parse("8:2"))
        >>> made.kind, made.statement["h"]["stages"], made.evidence
        ('composition', [['split', [2, 4]], ['affine', [[16, 1]], [0]]], {'by': 'table'})
        >>> none = composition(la.parse("(6,2):(1,7)"), la.parse("(2,3):(20,1)"))
        >>> print(none.kind, none.check().certificate["claim"])
        no-composition g(1) = [20] is not in 0 to 11
    """
    inner = read(inner)
    outer = read(outer)
    where = f"composition({outer}, {inner})"
    g = function(inner, "inner")
    if g.outputs != 1:
        because = f"the inner layout must have one output, a flat coordinate, got {g.outputs}"
        raise RepresentabilityError(Diagnostic("LA429", "composition cannot be certified", (where[:200],), because))
    f = _periods(outer, g) if isinstance(outer, Swizzle) else function(outer, "outer")
    at = first_outside(g, f.size or 0)
    if at is not None:
        return proved("no-composition", {"f": f.document(), "g": g.document()}, [{"at": at}], where)
    h = function(compose(outer, inner, widen=True) if composite is None else composite, "composite")
    statement = {"f": f.document(), "g": g.document(), "h": h.document()}
    return proved("composition", statement, rules(g, h), where)


def _periods(swizzle: Swizzle, inner: Function) -> Function:
    """Return a swizzle as a function of enough periods to cover the values of ``inner``."""
    size = swizzle.period * (greatest(inner) // swizzle.period + 1)
    return Function([swizzled(swizzle)], size, (size,))


def functoriality(inner: Morphism, outer: Morphism) -> Certificate:
    """Return a certificate that |outer @ inner| is composition(|outer|, |inner|).

    Kind ``composition`` of the three layouts, for f : S -> T and g : T -> V. Every leaf of |f| moves at most one digit
    of T, so no sum carries, and |g|(|f|(x)) is a sum over the digits of x.

    Args:
        inner: f : S -> T.
        outer: g : T -> V, padded or not.

    Example:
        >>> made = functoriality(Morphism(4, (3, 4), (1,)), Morphism((3, 4), (4, 3), (1, 0)))
        >>> made.kind, made.statement["f"]["stages"]
        ('composition', [['split', [3, 4]], ['affine', [[4, 1]], [0]]])
        >>> bool(made.check())
        True

    References: arXiv:2601.05972, functoriality of the realisation.
    """
    for name, value in (("inner", inner), ("outer", outer)):
        if not isinstance(value, Morphism):
            raise _COMPOSITE.malformed(name, "must be a Morphism", value)
    return composition(outer.to_layout(), inner.to_layout(), (outer @ inner).to_layout())
