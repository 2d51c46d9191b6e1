"""One-sided inverses of a layout, in its own family or in the narrowest wider one that can represent them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from layoutalg.bridges.composition import Widened, linear_layout, unconfirmed
from layoutalg.bridges.cute import to_cute
from layoutalg.bridges.normal import family_of, normal, values_at
from layoutalg.bridges.piecewise import to_piecewise
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.cute.fit import Affine
from layoutalg.cute.inverse import left_affine, right_affine
from layoutalg.f2 import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground.errors import (
    AdmissibilityError,
    BudgetError,
    Diagnostic,
    MalformedError,
    RepresentabilityError,
    shown,
)
from layoutalg.ground.layout import Layout, read
from layoutalg.ground.limits import CUTE_POINTS, ISL_SECONDS
from layoutalg.ground.listed import ListedLayout
from layoutalg.integer.forms import sampled_coordinates
from layoutalg.piecewise import PiecewiseLayout, inverse
from layoutalg.piecewise.runs import runs_text

Cute: TypeAlias = "CuteLayout | ComposedLayout"

LISTED = 64
"""Most points of a layout whose left inverse is listed value by value if ISL gives up."""
INVERTED = 512
"""Most offsets of a left inverse that is listed in runs."""
SECONDS = 1.0
"""ISL time limit for an inverse that can be listed instead."""


def right_inverse(layout: object, *, widen: bool = False) -> Layout | Swizzle:
    """Return R with layout(R(i)) = i for all i < size(R).

    Args:
        layout: A CuTe or composed layout, a table or an array of its values; without ``widen`` also a linear, integer
            or piecewise one, for which this is the right inverse of its family.
        widen: Whether to return the inverse of a CuTe or composed layout in the narrowest family that can represent it.

    Example:
        >>> from layoutalg.cute import Swizzle
        >>> print(right_inverse(ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((2, 2), (2, 1)))))
        Sw<1,0,-1> o 0 o (2,2):(2,1)
    """
    if widen:
        return widened_right(layout).value
    return _within(layout, "right_inverse")


def left_inverse(layout: object, *, widen: bool = False) -> Layout | Swizzle:
    """Return R with R(layout(c)) = c if the layout is injective; else R with layout(R(v)) = v for its values v.

    Mathematically: a layout whose strides are not a divisibility chain, such as ``(2,3):(3,2)``, has no CuTe left
    inverse; if it is injective, a piecewise one exists, which is 0 on the offsets that the layout skips.

    Args:
        layout: A nonempty CuTe or composed layout with values >= 0, or a table or array of such values; without
            ``widen`` also a linear layout.
        widen: Whether to return the inverse of a CuTe or composed layout in the narrowest family that can represent it.

    Example:
        >>> left_inverse(CuteLayout((2, 40), (3, 2)), widen=True).table().tolist()[:8]
        [0, 0, 2, 1, 4, 3, 6, 5]
    """
    if widen:
        return widened_left(layout).value
    return _within(layout, "left_inverse")


def _within(layout: object, name: str) -> Layout | Swizzle:
    """Return the one-sided inverse defined by the layout's own family."""
    found = normal(read(layout))
    invert = None if found is None else family_of(found).inverses.get(name)
    if invert is not None:
        inverse_of: Layout | Swizzle = invert(found)
        return inverse_of
    rule = "CuteLayout, ComposedLayout or LinearLayout"
    raise _malformed(name, layout, f"{rule}, an IntegerLayout or PiecewiseLayout" if name[0] == "r" else rule)


def widened_right(layout: object) -> Widened:
    """Return the right inverse in the narrowest family that can represent it, and why no narrower one can."""
    return _widened(layout, "right_inverse", right_affine)


def widened_left(layout: object) -> Widened:
    """Return the left inverse in the narrowest family that can represent it, and why no narrower one can.

    Example:
        >>> widened_left(CuteLayout((2, 40), (3, 2))).family
        'piecewise'
    """
    return _widened(layout, "left_inverse", left_affine)


def _widened(layout: object, name: str, affine: Callable[[Cute], Affine | None]) -> Widened:
    given = normal(read(layout))
    if isinstance(given, ListedLayout):
        table = family_of(given).inverses[name](given)
        try:
            return _widened(to_cute(given), name, affine)
        except (RepresentabilityError, AdmissibilityError, BudgetError) as error:
            return Widened(table, (f"cute: {error.diagnostic.code} {error.diagnostic.because}",))
    if not isinstance(given, CuteLayout | ComposedLayout):
        raise _malformed(name, layout, "CuteLayout or ComposedLayout")
    try:
        return Widened(family_of(given).inverses[name](given))
    except (RepresentabilityError, BudgetError, AdmissibilityError) as error:
        refusal = error
        if isinstance(error, AdmissibilityError) and error.diagnostic.code not in ("LA133", "LA134"):
            raise
    passed = f"cute: {refusal.diagnostic.code} {refusal.diagnostic.because}"
    form = affine(given)
    found = None if form is None else linear_layout(*form)
    if isinstance(found, LinearLayout):
        return Widened(found, (passed,))
    if name == "right_inverse" or given.size > CUTE_POINTS:
        raise refusal
    values = given.table().tolist()
    if len(set(values)) < len(values):
        raise refusal
    return Widened(_listed_left(given, values), (passed, "linear: the layout is not affine over F2"))


def _listed_left(layout: Cute, values: list[int]) -> PiecewiseLayout:
    """Return the left inverse of an injective layout, as a list if its values are few or small."""
    place = {value: index for index, value in enumerate(values)}
    top = max(values)
    if top < INVERTED:
        whole: dict[tuple[int, ...], tuple[int, ...]] = {(v,): (place.get(v, 0),) for v in range(top + 1)}
        text = runs_text(whole, ("v",))
    else:
        few = len(values) <= LISTED
        try:
            with clock.within(SECONDS if few else ISL_SECONDS):
                digits = to_piecewise(layout)
                text = inverse.left_inverse(digits.value, [extent for _, extent in digits.inputs]).text
        except BudgetError:
            if not few:
                raise
            text = _valued(place)
    found = PiecewiseLayout(text, ("coordinate",))
    index = np.array(sorted({*values, *sampled_coordinates(top + 1).tolist()}), dtype=np.int64)
    wanted = np.array([place.get(value, 0) for value in index.tolist()], dtype=np.int64)
    if found.size != top + 1 or (values_at(found, index)[:, 0] != wanted).any():
        raise unconfirmed(f"left_inverse({layout})")
    return found


def _valued(place: dict[int, int]) -> str:
    """Return the ISL text of value -> its place, 0 between the values (all >= 0)."""
    ordered = sorted(place)
    gaps = [f"{low} < v < {high}" for low, high in zip([-1, *ordered], ordered, strict=False) if high > low + 1]
    pieces = [f"[v] -> [{place[value]}] : v = {value}" for value in ordered]
    if gaps:
        pieces.append(f"[v] -> [0] : {' or '.join(gaps)}")
    return f"{{ {'; '.join(pieces)} }}"


def _malformed(name: str, operand: object, rule: str) -> MalformedError:
    because = f"layout must be a {rule}, not {shown(operand)}"
    return MalformedError(Diagnostic("LA652", "this operand is not a layout", (name,), because))
