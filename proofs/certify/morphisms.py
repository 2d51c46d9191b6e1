"""Certificates of functoriality: the layout of a composite of morphisms is the composition of their layouts."""

from __future__ import annotations

from layoutalg.cute import Morphism
from layoutalg.ground.check import Checker
from layoutalg.proofs.certify.algebra import composition
from layoutalg.proofs.certify.certificate import Certificate

_check = Checker("LA465", "no composite to certify")


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
            raise _check.malformed(name, "must be a Morphism", value)
    return composition(outer.to_layout(), inner.to_layout(), (outer @ inner).to_layout())
