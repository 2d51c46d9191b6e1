"""Composition of piecewise layouts, the operator ``@``.

Main definitions: ``compose``.
"""

from __future__ import annotations

from layoutalg.ground.errors import AdmissibilityError, Diagnostic
from layoutalg.ground.operators import composes
from layoutalg.piecewise import box, functions
from layoutalg.piecewise.layout import PiecewiseLayout


@composes(PiecewiseLayout, PiecewiseLayout)
def compose(outer: PiecewiseLayout, inner: PiecewiseLayout) -> PiecewiseLayout:
    """Return ``outer`` after ``inner``, on the points of ``inner``; ``PiecewiseLayout.after`` restricts instead.

    Mathematically: outputs meet axes by position; a single output that meets several axes of a total layout, or none,
    is their flat index.

    Raises: AdmissibilityError: LA650, LA651. BudgetError: LA222.

    Example:
        >>> f = PiecewiseLayout("{ [r, c] -> [8r + c] : 0 <= r < 4 and 0 <= c < 8 }")
        >>> print(f @ PiecewiseLayout("{ [i] -> [4i + 1] : 0 <= i < 8 }"))
        { [i] -> [(8 + i)] : 0 <= i <= 7 }
    """
    link = box.link(outer.text, len(outer.axes), inner.text, len(inner.outputs))
    found = functions.composed(outer.text, link, inner.text)
    if isinstance(found, str):
        return outer.made_with(inner, found)
    point = dict(zip(inner.axes, found[1], strict=True))
    params = {**dict.fromkeys(inner.params, 0), **found[0]}
    value = tuple(inner(**point, **{name: int(str(params[name])) for name in inner.params}).values())
    at = {**found[0], **point}
    raise AdmissibilityError(
        Diagnostic(
            code="LA651",
            what="the right operand leaves the domain of the left operand",
            where=(outer.text[:200], f"after {inner.text[:200]}"),
            because=f"at {at} it has the value {value}, which no guard of the left operand admits",
            witness={"at": at, "value": value},
        )
    )
