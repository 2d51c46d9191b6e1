"""Operations whose answer may leave the family: the nearest family that holds the answer, named.

Main definitions: ``composition``, ``logical_divide``, ``right_inverse``, ``left_inverse``, ``Promoted``.

Main statements: the families are asked in the order ``cute``, ``composed`` (at most one swizzle on the outside, or a
stack where the operands are swizzled), ``swizzle``, ``linear`` (affine over F2, values >= 0), ``piecewise``. The answer
is exact in each; every family that was passed over says why. Only an operation that has no value at all is refused.

Notation: every answer is a function of the flat 1-D coordinate of the right operand, or of the offset for an inverse.

Source: the composition of a linear layout multiplies matrices; that of a piecewise layout pulls back in ISL on digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg import cute
from layoutalg.bridges.linear import to_linear
from layoutalg.bridges.operand import AnyLayout, plain
from layoutalg.bridges.piecewise import LISTED as TABLED
from layoutalg.bridges.piecewise import RUNS, arithmetic_runs, runs_text, to_piecewise
from layoutalg.bridges.values import sampled_coordinates, values_at
from layoutalg.cute import ComposedLayout, CuteLayout, OffsetLayout, Swizzle, swizzled, swizzled_inverse
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.ground import clock
from layoutalg.ground import recognize as tables
from layoutalg.ground.errors import (
    AdmissibilityError,
    BudgetError,
    Diagnostic,
    MalformedError,
    RepresentabilityError,
    shown,
)
from layoutalg.ground.limits import ISL_SECONDS
from layoutalg.integer.listed import listed_map
from layoutalg.piecewise import PiecewiseLayout

Family: TypeAlias = Literal["cute", "composed", "swizzle", "linear", "piecewise"]
Value: TypeAlias = "AnyLayout | Swizzle"


LISTED = 64
"""Most points of a layout whose left inverse is listed value by value, where ISL gives up on it."""
INVERTED = 512
"""Most offsets of a left inverse that is listed in runs."""
SMALL = 128
"""Points of a composition that is always listed in runs: there are at most 64."""
FEW_RUNS = 16
"""A larger composition of no more runs is listed as well; one of more only where ISL gives up on its digits."""
SECONDS = 1.0
"""Wall time of ISL for an answer that can be listed instead."""
CONFIRMED = 2**16
"""Most points at which an answer of ISL is confirmed one by one."""


@dataclass(frozen=True, slots=True)
class Promoted:
    """An answer and the family that holds it.

    Args:
        value: The layout.
        family: Its family.
        passed: Why each nearer family does not hold the answer, one line per family that was asked.
    """

    value: Value
    family: Family
    passed: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.family}: {self.value}"


def composition(outer: Value | OffsetLayout, inner: Value | OffsetLayout) -> Promoted:
    """Return ``outer`` after ``inner`` in the nearest family that holds it.

    Mathematically: c -> outer(inner(c)) on the flat coordinates c of ``inner``. The product of two swizzles that is no
    swizzle is the linear layout on one period, beyond which it repeats.

    Args:
        outer: A CuTe, composed, linear or piecewise layout, or a swizzle.
        inner: Likewise; its values are flat coordinates of ``outer``.

    Raises: AdmissibilityError: LA120, LA651, LA641, LA642. BudgetError: LA222. MalformedError: LA652.

    Example:
        >>> print(composition(CuteLayout((6, 8), (1, 10)), CuteLayout(2, 4)))
        cute: 2:4
        >>> print(composition(CuteLayout((6, 2), (1, 7)), CuteLayout((3, 2), (2, 3))).value.table().tolist())
        [0, 2, 4, 3, 5, 8]
        >>> found = composition(Swizzle(1, 0, 1), Swizzle(1, 1, 1))
        >>> print(found.family, found.value)
        linear F2[i=(1)(3)(7) -> offset:8]
    """
    outer, inner = _operand(outer), _operand(inner)
    where = f"promote.composition({outer}, {inner})"
    passed: list[str] = []
    if isinstance(outer, (CuteLayout, ComposedLayout, Swizzle)) and isinstance(
        inner, (CuteLayout, ComposedLayout, Swizzle)
    ):
        try:
            value: Value = cute.composition(outer, inner)
        except (RepresentabilityError, BudgetError) as error:
            passed.append(f"cute: {error.diagnostic.code} {error.diagnostic.because}")
        else:
            return Promoted(value, _family(value))
    if isinstance(outer, Swizzle) and isinstance(inner, Swizzle):
        return Promoted(_period(outer, inner), "linear", tuple(passed))
    if isinstance(inner, Swizzle):
        # a permutation of the coordinates of ``outer``; cute.composition has refused one that leaves them
        inner = _permutation(inner, outer)  # type: ignore[arg-type]
    if isinstance(outer, Swizzle):
        outer = _on_values(outer, inner)
    return _wider(outer, inner, passed, where)


def logical_divide(layout: CuteLayout | ComposedLayout | OffsetLayout, tile: CuteLayout) -> Promoted:
    """Return ``layout`` after (tile, complement of the tile in the layout's size), in the nearest family.

    Args:
        layout: A CuTe or composed layout.
        tile: A layout with a complement in ``layout.size`` that divides it.

    Raises: AdmissibilityError: LA120, LA131 to LA134. BudgetError: LA653. MalformedError: LA652.

    Example:
        >>> found = logical_divide(CuteLayout((6, 2), (1, 7)), CuteLayout(4, 1))
        >>> print(found.family, found.value.table().tolist())
        piecewise [0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12]
    """
    whole = plain(layout)
    if not isinstance(whole, (CuteLayout, ComposedLayout)):
        raise _malformed(layout)
    if not isinstance(tile, CuteLayout):
        raise _malformed(tile)
    return composition(whole, cute.make_layout(tile, cute.complement(tile, whole.size)))


def right_inverse(layout: CuteLayout | ComposedLayout | OffsetLayout) -> Promoted:
    """Return R with layout(R(i)) = i for all i < size(R), in the nearest family.

    Args:
        layout: Not empty.

    Raises: AdmissibilityError: LA131. BudgetError: LA222, LA648.

    Example:
        >>> print(right_inverse(ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((2, 2), (2, 1)))))
        composed: Sw<1,0,-1> o 0 o (2,2):(2,1)
    """
    return _inverse(layout, cute.right_inverse, swizzled_inverse.right_affine)


def left_inverse(layout: CuteLayout | ComposedLayout | OffsetLayout) -> Promoted:
    """Return R with R(layout(c)) = c where the layout is injective, in the nearest family; else a layout(R(v)) = v.

    A layout whose strides form no divisible chain, ``(2,3):(3,2)`` say, has no CuTe left inverse; where it is injective
    the piecewise function exists, which is 0 on the offsets that the layout leaves out.

    Args:
        layout: Values >= 0, at least one point.

    Raises: AdmissibilityError: LA131 to LA133, LA649. BudgetError: LA222.

    Example:
        >>> found = left_inverse(CuteLayout((2, 40), (3, 2)))
        >>> print(found.family, found.value.table().tolist()[:8])
        piecewise [0, 0, 2, 1, 4, 3, 6, 5]
    """
    return _inverse(layout, cute.left_inverse, swizzled_inverse.left_affine)


def _inverse(
    layout: CuteLayout | ComposedLayout | OffsetLayout,
    operation: Callable[..., CuteLayout | ComposedLayout],
    affine: Callable[[ComposedLayout], swizzled.Affine | None],
) -> Promoted:
    whole = plain(layout)
    if not isinstance(whole, (CuteLayout, ComposedLayout)):
        raise _malformed(layout)
    layout = whole
    try:
        value = operation(layout)
        return Promoted(value, _family(value))
    except (RepresentabilityError, BudgetError, AdmissibilityError) as error:
        refusal = error
        if isinstance(error, AdmissibilityError) and error.diagnostic.code not in ("LA133", "LA134"):
            raise
    passed = [f"cute: {refusal.diagnostic.code} {refusal.diagnostic.because}"]
    stack = layout if isinstance(layout, ComposedLayout) else ComposedLayout(Swizzle(0, 0, 0), 0, layout)
    form = affine(stack)
    if form is not None:
        return Promoted(_linear(*form), "linear", tuple(passed))
    if operation is not cute.left_inverse or layout.size > swizzled.POINTS:
        raise refusal
    values = layout.table()
    if len(set(values.tolist())) < len(values):
        raise refusal
    passed.append("linear: the layout is not affine over F2")
    return Promoted(_left_inverse(layout, values.tolist()), "piecewise", tuple(passed))


def _left_inverse(layout: CuteLayout | ComposedLayout, values: list[int]) -> PiecewiseLayout:
    """Return the left inverse of an injective layout: listed where its values are few or lie close together."""
    from layoutalg.piecewise import isl

    place = {value: index for index, value in enumerate(values)}
    top = max(values)
    if top < INVERTED:
        whole: dict[tuple[int, ...], tuple[int, ...]] = {(v,): (place.get(v, 0),) for v in range(top + 1)}
        found = PiecewiseLayout(listed_map(whole, ("v",)), ("coordinate",))
    else:
        few = len(values) <= LISTED
        try:
            with clock.within(SECONDS if few else ISL_SECONDS):
                digits = to_piecewise(layout)
                text = isl.left_inverse(digits.text, [extent for _, extent in digits.inputs])
        except BudgetError:
            if not few:
                raise
            text = _listed_inverse(values)
        found = PiecewiseLayout(text, ("coordinate",))
    index = np.array(sorted({*values, *sampled_coordinates(top + 1).tolist()}), dtype=np.int64)
    wanted = np.array([place.get(value, 0) for value in index.tolist()], dtype=np.int64)
    if found.size != top + 1 or (values_at(found, index)[:, 0] != wanted).any():
        raise _unconfirmed(f"promote.left_inverse({layout})")
    return found


def _listed_inverse(values: list[int]) -> str:
    """Return the ISL text of value -> its place in the list, 0 between the values; they are distinct and >= 0."""
    place = {value: index for index, value in enumerate(values)}
    ordered = sorted(place)
    gaps = [f"{low} < v < {high}" for low, high in zip([-1, *ordered], ordered, strict=False) if high > low + 1]
    pieces = [f"[v] -> [{place[value]}] : v = {value}" for value in ordered]
    if gaps:
        pieces.append(f"[v] -> [0] : {' or '.join(gaps)}")
    return f"{{ {'; '.join(pieces)} }}"


def _family(value: Value) -> Family:
    match value:
        case CuteLayout():
            return "cute"
        case ComposedLayout():
            return "composed"
        case Swizzle():
            return "swizzle"
        case LinearLayout():
            return "linear"
        case _:
            return "piecewise"


def _linear(columns: tuple[int, ...], constant: int) -> LinearLayout:
    """Return the linear layout ``i -> offset`` of non-negative columns."""
    bits = max((value.bit_length() for value in (constant, *columns)), default=0)
    return LinearLayout((("i", len(columns)),), (("offset", bits),), tuple(columns), constant)


def _period(outer: Swizzle, inner: Swizzle) -> LinearLayout:
    bits = max(outer.period, inner.period).bit_length() - 1
    columns = tuple(outer(inner(1 << bit)) for bit in range(bits))
    return LinearLayout((("i", bits),), (("offset", bits),), columns)


def _permutation(swizzle: Swizzle, outer: AnyLayout) -> ComposedLayout:
    leaving = swizzled.first_leaving(swizzle, outer.size, outer.size)
    if leaving is not None:
        raise AdmissibilityError(
            Diagnostic(
                code="LA641",
                what="the swizzle leads out of the domain of the layout",
                where=(f"promote.composition({outer}, {swizzle})",),
                because=f"{swizzle} maps {leaving} to {swizzle(leaving)}, the layout has {outer.size} points",
                witness={"coordinate": leaving, "value": swizzle(leaving), "size": outer.size},
            )
        )
    return ComposedLayout(swizzle, 0, CuteLayout(outer.size, 1))


def _on_values(swizzle: Swizzle, inner: AnyLayout) -> ComposedLayout:
    """Return a swizzle as a layout on an interval that holds the values of a linear or piecewise layout."""
    if isinstance(inner, LinearLayout):
        return ComposedLayout(swizzle, 0, CuteLayout(1 << inner.out_bits, 1))
    top = max(0, int(inner.table().max())) if inner.size else 0
    return ComposedLayout(swizzle, 0, CuteLayout(top + 1, 1))


def _wider(outer: AnyLayout, inner: AnyLayout, passed: list[str], where: str) -> Promoted:
    """Return the composition as a linear or a piecewise layout."""
    found = _as_linear(outer, inner)
    if isinstance(found, LinearLayout):
        return Promoted(found, "linear", tuple(passed))
    passed.append(f"linear: {found}")
    index = np.arange(inner.size, dtype=np.int64) if inner.size <= CONFIRMED else sampled_coordinates(inner.size)
    wanted = _values_after(outer, inner, index)
    runs = None
    if wanted is not None and len(index) == inner.size <= TABLED and wanted.shape[1] == 1:
        runs = arithmetic_runs(wanted[:, 0])
    if runs is not None and (len(runs) <= FEW_RUNS or inner.size <= SMALL):
        listed = PiecewiseLayout(runs_text(runs), ("offset",))
        return Promoted(_confirmed(listed, index, wanted, where), "piecewise", tuple(passed))
    listable = runs is not None and len(runs) <= RUNS
    try:
        with clock.within(SECONDS if listable else math.inf):
            value = _digits(outer) @ to_piecewise(inner)
    except BudgetError as error:
        if runs is None or not listable:
            raise BudgetError(
                Diagnostic(
                    code="LA653",
                    what="no family was found that holds the composition",
                    where=(where,),
                    because="; ".join([*passed, f"piecewise: {error.diagnostic.because}"]),
                )
            ) from error
        value = PiecewiseLayout(runs_text(runs), ("offset",))
    return Promoted(_confirmed(value, index, wanted, where), "piecewise", tuple(passed))


def _values_after(outer: AnyLayout, inner: AnyLayout, index: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return ``outer`` after ``inner`` at flat coordinates, None where ``inner`` leaves the domain of ``outer``."""
    middle = values_at(inner, index)
    if middle.shape[1] == 1:
        flat = middle[:, 0]
        return None if ((flat < 0) | (flat >= outer.size)).any() else values_at(outer, flat)
    if not isinstance(outer, PiecewiseLayout) or len(outer.inputs) != middle.shape[1]:
        return None
    extents = np.array([extent for _, extent in outer.inputs], dtype=object)
    if ((middle < 0) | (middle >= extents)).any():
        return None
    answers = outer.apply({name: middle[:, k] for k, name in enumerate(outer.in_dims)})
    return np.stack([np.asarray(answer) for answer in answers.values()], axis=-1)


def _confirmed(
    value: PiecewiseLayout, index: npt.NDArray[Any], wanted: npt.NDArray[Any] | None, where: str
) -> PiecewiseLayout:
    """Return what went through ISL where its values are those of the operands one after the other."""
    if wanted is None or value.size <= int(index[-1]) or (values_at(value, index) != wanted).any():
        raise _unconfirmed(where)
    return value


def _unconfirmed(where: str) -> BudgetError:
    because = "the values of its answer are not those of the operands, so it is not returned"
    return BudgetError(Diagnostic("LA745", "ISL gave an answer that does not hold", (where,), because))


def _digits(layout: AnyLayout) -> PiecewiseLayout:
    """Return a layout as a piecewise one; a CuTe layout in the fewest modes."""
    return to_piecewise(cute.coalesce(layout) if isinstance(layout, CuteLayout) else layout)


def _as_linear(outer: AnyLayout, inner: AnyLayout) -> LinearLayout | str:
    """Return the composition as a linear layout, or why there is none."""
    if inner.size < 1 or inner.size & (inner.size - 1):
        return f"an F2 map has 2**n points, the right operand has {inner.size}"
    if isinstance(outer, (CuteLayout, ComposedLayout)) and isinstance(inner, (CuteLayout, ComposedLayout)):
        swizzled.require_inside(outer, inner, f"promote.composition({outer}, {inner})")
        form = swizzled.affine_after(outer, inner)
        if form is not None:
            return _linear(*form) if min(form[1], *form[0], 0) >= 0 else "some values are negative"
        if inner.size > swizzled.POINTS:
            return "the operands are not both affine over F2"
        values = outer.apply(inner.table())
    else:
        try:
            left, right = to_linear(outer), to_linear(inner)
        except (RepresentabilityError, BudgetError) as error:
            if inner.size > swizzled.POINTS or isinstance(outer, LinearLayout):
                return error.diagnostic.because
        else:
            if right.out_bits <= left.in_bits:
                columns = matrix.multiply(left.columns, right.columns)
                return _linear(columns, left.constant ^ matrix.apply(left.columns, right.constant))
        return "the operands are not both affine over F2"
    departure = tables.linear(values)
    if isinstance(departure, tables.Departure):
        return f"the value at {departure.coordinate} is {departure.value}, over F2 it would be {departure.forced}"
    columns, constant = departure
    return _linear(columns, constant) if min(constant, *columns, 0) >= 0 else "some values are negative"


def _operand(operand: object) -> Value:
    """Return an operand, a tile behind an offset as a composed layout, or refuse it (LA652)."""
    found = plain(operand)
    if not isinstance(found, (CuteLayout, ComposedLayout, Swizzle, LinearLayout, PiecewiseLayout)):
        raise _malformed(operand)
    return found


def _malformed(operand: object) -> MalformedError:
    return MalformedError(
        Diagnostic(
            code="LA652",
            what="this operand is not a layout of the families that this operation takes",
            because="an operand is a CuteLayout, ComposedLayout, OffsetLayout, Swizzle, LinearLayout or "
            f"PiecewiseLayout (an inverse and a division take the first three), not {shown(operand)}",
        )
    )
