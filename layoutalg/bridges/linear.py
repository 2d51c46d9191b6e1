"""Convert layouts to affine maps over F2: exactly, or refused with a coordinate that shows why.

Algebra decides without enumeration whether a CuTe layout or a swizzle stack over one is affine over F2 (lemma and proof
in ``layoutalg.f2.carry``): with power-of-two extents, offset o and strides d, exactly when the integers
``(o + d 2^j) xor o`` have pairwise disjoint bits. A swizzle is invertible and linear, so it changes nothing. A sum
modulo 2^k obeys the same lemma on k bits, except that supports may also overlap in the top bit k - 1, whose carry is
dropped.
"""

from __future__ import annotations

from collections.abc import Callable

from layoutalg.bridges.normal import (
    CONFIRM_POINTS,
    AnyFamily,
    Call,
    Given,
    LinearForm,
    checked,
    lowered,
    one_output,
    total,
    undecided,
)
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.cute.fit import carry_free
from layoutalg.f2 import LinearLayout
from layoutalg.f2.carry import sum_of_bits
from layoutalg.ground import recognize as tables
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.ground.listed import ListedLayout
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.integer.forms import residue_form
from layoutalg.piecewise import PiecewiseLayout


def to_linear(layout: Given) -> LinearLayout:
    """Return the layout as one affine map over F2 from the flat coordinate ``i`` to ``offset``.

    Mathematically: with x the flat coordinate, the value is ``M x xor c``. The input axis ``i`` has the layout's size;
    the output axis ``offset`` is the least power of two above every value (for a linear layout, its packed codomain).

    Args:
        layout: A layout of any family; offsets in elements. A piecewise or integer layout must have a single output;
            the value of a hierarchical one is the flat index of its target.

    Raises: RepresentabilityError: LA230, LA231, LA232, LA661. BudgetError: LA233. MalformedError: LA234.

    Example:
        >>> print(to_linear(CuteLayout((2, 4), (12, 1))))
        F2[i=(12)(1)(2) -> offset:16]
        >>> to_linear(CuteLayout((4, 4), (1, 2)))
        Traceback (most recent call last):
            ...
        layoutalg.ground.errors.RepresentabilityError: LA230 the layout is not affine over F2
          in     to_linear((4,4):(1,2))
          since  f(6) = 4, but f(4) xor f(2) xor f(0) = 0; layoutalg.convert.to_piecewise represents it exactly
          at     x=4, y=2, f(x^y)=4, f(x)^f(y)^f(0)=0

    Source: the carry-free lemma of ``layoutalg.f2.carry``.
    """
    layout = checked(layout, "to_linear")
    where = Call("to_linear", layout)
    _one_power_of_two(layout, where)
    size = layout.size
    form = _form(layout)
    if isinstance(form, tables.Departure):
        raise _not_linear(layout, where, form.coordinate)
    columns, constant = form
    negative = [0] if constant < 0 else [1 << bit for bit, column in enumerate(columns) if column < 0]
    if negative:
        value = constant ^ (columns[negative[0].bit_length() - 1] if negative[0] else 0)
        what = "the layout has a negative value"
        because = f"f({negative[0]}) = {value}; values of an F2 map are in [0, 2**n)"
        raise RepresentabilityError(
            Diagnostic("LA232", what, (str(where),), because, {"coordinate": negative[0], "value": value})
        )
    bits = max((value.bit_length() for value in (constant, *columns)), default=0)
    if isinstance(layout, LinearLayout):
        bits = layout.out_bits
    return LinearLayout((("i", size.bit_length() - 1),), (("offset", bits),), columns, constant)


def _one_power_of_two(layout: AnyFamily, where: Call) -> None:
    """Raise on a partial tile, several outputs, or a size that is not a power of two (LA231)."""
    total(layout, where)
    one_output(layout, where)
    size = layout.size
    if size < 1 or size & (size - 1):
        what = "the size of the layout is not a power of two"
        because = f"an F2 map has 2**n points, the layout has {size}" + (
            "; layoutalg.convert.to_piecewise represents it exactly" if size else ""
        )
        raise RepresentabilityError(Diagnostic("LA231", what, (str(where),), because, {"size": size}))


def linear_form(layout: Given) -> LinearForm | tables.Departure:
    """Return (columns, constant) over F2 of the flat coordinate, or the first departure from any such form.

    Columns and constant are two's complement integers, so negative values are allowed.

    Args:
        layout: A total layout with one output whose size is a power of two.

    Raises: MalformedError: LA234. RepresentabilityError: LA231, LA661. BudgetError: LA233.

    Example:
        >>> linear_form(CuteLayout((2, 2), (1, -2)))
        ((1, -2), 0)
        >>> linear_form(CuteLayout((2, 2), (1, 3)))
        Departure(coordinate=3, value=4, forced=2)
    """
    layout = checked(layout, "linear_form")
    _one_power_of_two(layout, Call("linear_form", layout))
    return _form(layout)


def _form(layout: AnyFamily) -> LinearForm | tables.Departure:
    layout = lowered(layout)
    if isinstance(layout, LinearLayout):
        return layout.columns, layout.constant
    if isinstance(layout, IntegerLayout):
        return _integer(layout)
    if isinstance(layout, HierarchicalLayout | ListedLayout):
        return tables.linear(layout.table())
    if isinstance(layout, PiecewiseLayout):
        if layout.size > CONFIRM_POINTS:
            raise undecided(layout, "a piecewise layout is compared point by point")
        return tables.linear(layout.table())
    form, open_end = carry_free(layout)
    return _departure(layout, open_end) if form is None else form


def _departure(layout: CuteLayout | ComposedLayout, open_end: bool) -> LinearForm | tables.Departure:
    """Return where a layout with an inner carry is not affine.

    Later swizzles cannot cancel a carry, but later offsets (``open_end``) could; then the values decide.
    """
    if open_end and layout.size <= CONFIRM_POINTS:
        return tables.linear(layout.table())
    found = _first_pair(layout.__call__, layout.size.bit_length() - 1)
    if found is None:
        raise undecided(layout, "the carries of the inner offsets might cancel in the outer ones")
    return found


def _integer(layout: IntegerLayout) -> LinearForm | tables.Departure:
    """Return the columns of ``(sum of row x + b) mod m``, or the least departure.

    If m is not a power of two and the table is too large, the departure is the least coordinate with two bits set.
    """
    row, b, m = layout.matrix[0], layout.offset[0], layout.moduli[0]
    form = residue_form(row, b, m, layout.extents)
    if form is not None:
        (row, b), m = form, 0
    addends = [a << bit for a, n in zip(row, layout.extents, strict=True) for bit in range(n.bit_length() - 1)]
    if not m:
        columns = sum_of_bits(b, addends)
        if columns is not None:
            return columns, b
    elif not m & (m - 1):
        below = (m >> 1) - 1
        masked = [((b + a) ^ b) & (m - 1) for a in addends]
        if sum_of_bits(0, [column & below for column in masked]) is not None:
            return tuple(masked), b
    elif layout.size <= CONFIRM_POINTS and m < 2**62:
        return tables.linear(layout.table())
    found = _first_pair(lambda index: layout.value(layout.coordinate(index))[0], len(addends))
    if found is None:
        raise undecided(layout, f"residues modulo {m} are compared point by point, as 62-bit numbers")
    return found


def _first_pair(value: Callable[[int], int], bits: int) -> tables.Departure | None:
    """Return the least coordinate with two bits set where ``value`` is not affine over F2."""
    origin = value(0)
    units = [value(1 << bit) for bit in range(bits)]
    for high in range(bits):
        for low in range(high):
            found, forced = value(1 << high | 1 << low), units[high] ^ units[low] ^ origin
            if found != forced:
                return tables.Departure(1 << high | 1 << low, found, forced)
    return None


def _not_linear(layout: AnyFamily, where: Call, coordinate: int) -> RepresentabilityError:
    """Return the error at a coordinate below which the layout agrees with an affine map."""
    x = 1 << (coordinate.bit_length() - 1)
    y = coordinate ^ x
    value, *others = (int(layout.at(index)) for index in (coordinate, x, y, 0))  # type: ignore[arg-type]
    forced = others[0] ^ others[1] ^ others[2]
    what = "the layout is not affine over F2"
    because = (
        f"f({coordinate}) = {value}, but f({x}) xor f({y}) xor f(0) = {forced}; "
        "layoutalg.convert.to_piecewise represents it exactly"
    )
    return RepresentabilityError(
        Diagnostic("LA230", what, (str(where),), because, {"x": x, "y": y, "f(x^y)": value, "f(x)^f(y)^f(0)": forced})
    )
