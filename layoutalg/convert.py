"""Conversions between the families: exact, or refused with a coordinate that shows why.

Main definitions: ``to_linear``, ``to_cute``, ``to_piecewise``, ``recognize``, ``linear_form``.

Main statements: whether a CuTe layout or a stack of swizzles over one is affine over F2 is decided by algebra, without
enumeration (``layoutalg.f2.carry`` holds the lemma and its proof): with extents that are powers of two, offset o and
strides d, exactly when the integers ``(o + d 2^j) xor o`` have pairwise disjoint bits. A swizzle is invertible and
linear, so it neither helps nor harms.

Notation: every layout is read as a function of its flat 1-D coordinate, colexicographic, first mode or axis fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.affine import PiecewiseLayout
from layoutalg.affine import recognize as tables
from layoutalg.affine.digits import digit_system, map_text, stage_text
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle, radix
from layoutalg.errors import BudgetError, Diagnostic, MalformedError, RepresentabilityError
from layoutalg.f2 import LinearLayout
from layoutalg.f2.carry import shifted, sum_of_bits
from layoutalg.f2.split import one_swizzle, swizzle_columns
from layoutalg.inttuple import IntTuple

AnyLayout: TypeAlias = "CuteLayout | ComposedLayout | LinearLayout | PiecewiseLayout"
LinearForm: TypeAlias = tuple[tuple[int, ...], int]

CONFIRM_POINTS = 2**20
OFFSET_BITS = 62


def to_linear(layout: AnyLayout) -> LinearLayout:
    """Return the layout as one affine map over F2 from the flat coordinate ``i`` to ``offset``.

    Mathematically: with x the flat coordinate, the value is ``M x xor c``; the answer has one input axis ``i`` of the
    layout's size and one output axis ``offset`` of the least power of two that holds every value (for a linear layout:
    of its codomain, packed).

    Args:
        layout: Any layout; offsets in elements. A piecewise layout needs a single output.

    Raises:
        RepresentabilityError: LA230, not affine over F2: the witness is the first coordinate ``x xor y`` where
            ``f(x xor y)`` is not ``f(x) xor f(y) xor f(0)``, with both values. LA231, the size is not a power of two.
            LA232, a value is negative; the witness is the first such coordinate.
        BudgetError: LA233, a stack of swizzles with more than 2**20 points and carries that might cancel, or a
            piecewise layout of more points: not decided.
        MalformedError: LA234, not a layout.

    Example:
        >>> print(to_linear(CuteLayout((2, 4), (12, 1))))
        F2[i=(12)(1)(2) -> offset:16]
        >>> to_linear(CuteLayout((4, 4), (1, 2)))
        Traceback (most recent call last):
            ...
        layoutalg.errors.RepresentabilityError: LA230 the layout is not affine over F2
          in     to_linear((4,4):(1,2))
          since  f(6) = 4, but f(4) xor f(2) xor f(0) = 0; layoutalg.convert.to_piecewise holds it exactly
          at     x=4, y=2, f(x^y)=4, f(x)^f(y)^f(0)=0

    Source: the carry-free lemma of ``layoutalg.f2.carry``.
    """
    where = f"to_linear({layout})"
    size = _checked(layout, where).size
    if size < 1 or size & (size - 1):
        raise RepresentabilityError(
            Diagnostic(
                code="LA231",
                what="the size of the layout is not a power of two",
                where=(where,),
                because=f"an F2 map has 2**n points, the layout has {size}; "
                "layoutalg.convert.to_piecewise holds it exactly",
                witness={"size": size},
            )
        )
    form = linear_form(layout)
    if isinstance(form, tables.Departure):
        raise _not_linear(layout, where, form.coordinate)
    columns, constant = form
    negative = [0] if constant < 0 else [1 << bit for bit, column in enumerate(columns) if column < 0]
    if negative:
        value = constant ^ (columns[negative[0].bit_length() - 1] if negative[0] else 0)
        raise RepresentabilityError(
            Diagnostic(
                code="LA232",
                what="the layout has a negative value",
                where=(where,),
                because=f"f({negative[0]}) = {value}, and an F2 map takes values in [0, 2**n)",
                witness={"coordinate": negative[0], "value": value},
            )
        )
    bits = max((value.bit_length() for value in (constant, *columns)), default=0)
    if isinstance(layout, LinearLayout):
        bits = layout.out_bits
    return LinearLayout((("i", size.bit_length() - 1),), (("offset", bits),), columns, constant)


def linear_form(layout: AnyLayout) -> LinearForm | tables.Departure:
    """Return (columns, constant) over F2 of the flat coordinate, or the first departure from every such form.

    Columns and constant are two's complement integers, so negative values are included.

    Args:
        layout: A layout whose size is a power of two.

    Raises:
        BudgetError: LA233, not decided; see ``to_linear``.

    Example:
        >>> linear_form(CuteLayout((2, 2), (1, -2)))
        ((1, -2), 0)
        >>> linear_form(CuteLayout((2, 2), (1, 3)))
        Departure(coordinate=3, value=4, forced=2)
    """
    if isinstance(layout, LinearLayout):
        return layout.columns, layout.constant
    if isinstance(layout, PiecewiseLayout):
        _one_output(layout, f"to_linear({layout})")
        if layout.size > CONFIRM_POINTS:
            raise _undecided(layout, "a piecewise layout is read point by point")
        return _object_linear(layout.table())
    flat = layout.base.flat if isinstance(layout, ComposedLayout) else layout.flat
    addends = [stride << bit for extent, stride in flat for bit in range(extent.bit_length() - 1)]
    stages = list(reversed(layout.stages)) if isinstance(layout, ComposedLayout) else []
    constant = stages[0][1] if stages else 0
    columns = sum_of_bits(constant, addends)
    for position, (swizzle, offset) in enumerate(stages):
        if position and columns is not None:
            answer = shifted(columns, constant, offset)
            columns, constant = (None, 0) if answer is None else answer
        if columns is None:
            return _departure(layout, len(addends), any(later for _, later in stages[position + 1 :]))
        columns = tuple(swizzle(column) for column in columns)
        constant = swizzle(constant)
    return _departure(layout, len(addends), False) if columns is None else (columns, constant)


def _departure(layout: CuteLayout | ComposedLayout, bits: int, open_end: bool) -> LinearForm | tables.Departure:
    """Return where a layout with a carry inside is not affine.

    Later swizzles cannot mend a carry, later offsets (``open_end``) could: then its values decide.
    """
    if open_end and layout.size <= CONFIRM_POINTS:
        return tables.linear(layout.table())
    found = _first_pair(layout.__call__, bits)
    if found is None:
        raise _undecided(layout, "the carries of the inner offsets might cancel in the outer ones")
    return found


def _object_linear(table: npt.NDArray[np.int64]) -> LinearForm | tables.Departure:
    if table.dtype == object:
        raise _malformed("table", "must hold 64-bit values", "larger ones")
    return tables.linear(table)


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


def _not_linear(layout: AnyLayout, where: str, coordinate: int) -> RepresentabilityError:
    """Return the refusal at a coordinate all of whose predecessors agree with an affine map."""
    x = 1 << (coordinate.bit_length() - 1)
    y = coordinate ^ x
    value = value_at(layout, coordinate)
    forced = value_at(layout, x) ^ value_at(layout, y) ^ value_at(layout, 0)
    return RepresentabilityError(
        Diagnostic(
            code="LA230",
            what="the layout is not affine over F2",
            where=(where,),
            because=f"f({coordinate}) = {value}, but f({x}) xor f({y}) xor f(0) = {forced}; "
            "layoutalg.convert.to_piecewise holds it exactly",
            witness={"x": x, "y": y, "f(x^y)": value, "f(x)^f(y)^f(0)": forced},
        )
    )


def value_at(layout: AnyLayout, index: int) -> int:
    """Return the value at a flat coordinate (packed for a linear layout, the single output of a piecewise one).

    Example:
        >>> value_at(CuteLayout((2, 2), (1, 8)), 3)
        9
    """
    if isinstance(layout, LinearLayout):
        return layout.at(index)
    if isinstance(layout, PiecewiseLayout):
        return layout.at(index)[0]
    return layout(index)


def to_cute(layout: AnyLayout) -> CuteLayout | ComposedLayout:
    """Return the layout as ``shape:stride``, with an offset and one swizzle in front where it needs them.

    Mathematically: an affine map over F2 is ``Sw o (offset + shape:stride)`` exactly when the columns of Sw M have
    disjoint supports; ``layoutalg.f2.split.one_swizzle`` searches every Sw. Each input axis of a linear layout becomes
    one top-level mode; a single axis is not wrapped.

    Args:
        layout: Any layout. A CuTe layout, and a composed layout of one swizzle that has no plain form, come back as
            they are.

    Raises:
        RepresentabilityError: LA235, no such form; the witness is an output bit that two input bits feed, with the
            coordinates and values that show it, or the first coordinate where a table stops being strided.
        BudgetError: LA233, not decided (more than 2**20 points and not affine over F2).
        MalformedError: LA234, not a layout.

    Example:
        >>> print(to_cute(LinearLayout.from_bases({"i": [(1,), (2,), (5,)]}, {"o": 8})))
        Sw<1,0,2> o 0 o 8:1
        >>> print(to_cute(LinearLayout.from_bases({"t": [(4,), (8,)], "v": [(1,), (2,)]}, {"o": 16})))
        (4,4):(4,1)
    """
    where = f"to_cute({layout})"
    if isinstance(_checked(layout, where), CuteLayout):
        return layout  # type: ignore[return-value]
    if isinstance(layout, LinearLayout):
        return _linear_to_cute(layout, where)
    size = layout.size
    if size > 0 and not size & (size - 1):
        try:
            form = linear_form(layout)
        except BudgetError:
            if not isinstance(layout, ComposedLayout) or isinstance(layout.inner, ComposedLayout):
                raise
            return layout
        if not isinstance(form, tables.Departure) and min((form[1], *form[0])) >= 0:
            return _linear_to_cute(to_linear(layout), where)
    if isinstance(layout, ComposedLayout) and size > CONFIRM_POINTS:
        if isinstance(layout.inner, CuteLayout):
            return layout
        raise _undecided(layout, "the swizzles do not collapse by algebra")
    if isinstance(layout, PiecewiseLayout):
        _one_output(layout, where)
        if size > CONFIRM_POINTS:
            raise _undecided(layout, "a piecewise layout is read point by point")
    if size == 0:
        return CuteLayout(0, 0)
    try:
        found = recognize(layout.table())
    except RepresentabilityError:
        if isinstance(layout, ComposedLayout) and isinstance(layout.inner, CuteLayout):
            return layout
        raise
    return _linear_to_cute(found, where) if isinstance(found, LinearLayout) else found


def _linear_to_cute(layout: LinearLayout, where: str) -> CuteLayout | ComposedLayout:
    """Return ``[Sw o offset o] shape:stride`` of a linear layout, one top-level mode per input axis."""
    if layout.out_bits > OFFSET_BITS:
        raise _no_cute(where, f"offsets have at most {OFFSET_BITS} bits here, not {layout.out_bits}", {})
    fields = one_swizzle(layout.columns)
    if fields is None:
        raise _no_cute(where, *_overlap(layout))
    *columns, offset = swizzle_columns(*fields, (*layout.columns, layout.constant))
    strides = [(offset ^ column) - offset for column in columns]
    shapes: list[IntTuple] = []
    steps: list[IntTuple] = []
    position = 0
    for _, bits in layout.inputs:
        modes = radix.merge(tuple((2, stride) for stride in strides[position : position + bits])) or ((1, 0),)
        shapes.append(modes[0][0] if len(modes) == 1 else tuple(extent for extent, _ in modes))
        steps.append(modes[0][1] if len(modes) == 1 else tuple(stride for _, stride in modes))
        position += bits
    if not shapes:
        shapes, steps = [1], [0]
    plain = CuteLayout(*((shapes[0], steps[0]) if len(shapes) == 1 else (tuple(shapes), tuple(steps))))
    return plain if fields == (0, 0, 0) and offset == 0 else ComposedLayout(Swizzle(*fields), offset, plain)


def _overlap(layout: LinearLayout) -> tuple[str, dict[str, object]]:
    """Return why a linear layout is not strided: an output bit fed by two input bits."""
    seen = 0
    for high, column in enumerate(layout.columns):
        if column & seen:
            bit = (column & seen).bit_length() - 1
            low = next(index for index in range(high) if layout.columns[index] >> bit & 1)
            x, y = 1 << low, 1 << high
            origin = layout.constant
            added = layout.at(x) + layout.at(y) - origin
            because = (
                f"output bit {bit} depends on input bits {low} and {high}, and no single swizzle undoes all of these"
            )
            return because, {"x": x, "y": y, "f(x+y)": layout.at(x | y), "f(x)+f(y)-f(0)": added, "bit": bit}
        seen |= column
    return "the columns overlap", {}


def _no_cute(where: str, because: str, witness: dict[str, object]) -> RepresentabilityError:
    return RepresentabilityError(
        Diagnostic(
            code="LA235",
            what="the layout is not shape:stride behind at most one swizzle",
            where=(where,),
            because=because,
            witness=witness,
        )
    )


def to_piecewise(layout: AnyLayout) -> PiecewiseLayout:
    """Return the layout as a piecewise quasi-affine function on its digits; always possible in principle.

    The digits are the modes ``c0, c1, ...`` of a CuTe layout, and the input bits ``b0, b1, ...`` of a linear layout. A
    stack of swizzles that is affine over F2 gets input bits, any other the modes of its CuTe layout. The output is
    ``offset``; the flat coordinate is the same.

    Args:
        layout: Any layout with at least one point.

    Raises:
        BudgetError: LA222, ISL's operation quota ran out.
        RepresentabilityError: LA236, the layout is empty.
        MalformedError: LA234, not a layout.

    Example:
        >>> print(to_piecewise(CuteLayout((3, 8), (8, 1))))
        { [c0, c1] -> [(8c0 + c1)] : 0 <= c0 <= 2 and 0 <= c1 <= 7 }
    """
    where = f"to_piecewise({layout})"
    if isinstance(_checked(layout, where), PiecewiseLayout):
        return layout  # type: ignore[return-value]
    if layout.size == 0:
        raise RepresentabilityError(
            Diagnostic(code="LA236", what="the layout is empty", where=(where,), because="it has no coordinate at all")
        )
    if isinstance(layout, ComposedLayout):
        try:
            linear = to_linear(layout)
        except (RepresentabilityError, BudgetError):
            return PiecewiseLayout(_chain_text(layout), ("offset",))
        return PiecewiseLayout(map_text(digit_system(linear)), ("offset",))
    return PiecewiseLayout(map_text(digit_system(layout)), ("offset",))  # type: ignore[arg-type]


def _chain_text(layout: ComposedLayout) -> str:
    """Return a stack of swizzles on the modes of its CuTe layout as ISL text."""
    from layoutalg.affine import isl

    names = [f"c{index}" for index in range(len(layout.base.flat))]
    point = f"[{', '.join(names)}]"
    value = " + ".join(["0", *(f"{stride}*{name}" for name, (_, stride) in zip(names, layout.base.flat, strict=True))])
    box = " and ".join(["0 = 0", *(f"0 <= {name} < {n}" for name, (n, _) in zip(names, layout.base.flat, strict=True))])
    stages = [stage_text(swizzle, offset) for swizzle, offset in reversed(layout.stages)]
    return isl.chain([f"{{ {point} -> [{value}] }}", *stages], f"{{ {point} : {box} }}")


def recognize(table: npt.ArrayLike) -> CuteLayout | ComposedLayout | LinearLayout:
    """Return the smallest description of a table of values: its entry at i is the value at flat coordinate i.

    In this order: the coalesced CuTe layout (the only one there is); the same after an offset; an affine map over F2 as
    one swizzle over ``shape:stride``; a linear layout ``i -> offset``; one swizzle over ``shape:stride`` of any size.

    Args:
        table: One-dimensional, integers that fit 64 bits, at least one entry.

    Returns:
        A layout whose ``table()`` is ``table``.

    Raises:
        RepresentabilityError: LA235, none of these; the witness is the first coordinate where the table leaves what its
            earlier entries force on a strided layout, and where its size is a power of two also on an affine map. For
            the last kind swizzles are sought whose bits lie within the width of the table.
        MalformedError: LA234, not a table.

    Example:
        >>> print(recognize([0, 4, 1, 5, 2, 6]), recognize([1, 0, 3, 2]), recognize([0, 3, 5, 6]))
        (2,3):(4,1) Sw<0,0,0> o 1 o (2,2):(-1,2) Sw<1,0,1> o 0 o (2,2):(2,5)
    """
    values = _table(table)
    if int(values.max()) - int(values.min()) >= 2**63:
        raise _no_cute(f"recognize(table of {len(values)} entries)", "its values are 2**63 or more apart", {})
    modes = tables.strided(values)
    first = int(values[0])
    if not isinstance(modes, tables.Departure):
        plain = _from_modes(modes)
        return plain if first == 0 else ComposedLayout(Swizzle(0, 0, 0), first, plain)
    witness: dict[str, object] = {"coordinate": modes.coordinate, "value": modes.value, "strided": modes.forced}
    because = f"entry {modes.coordinate} is {modes.value}, strided it would be {modes.forced}"
    if not len(values) & (len(values) - 1):
        form = tables.linear(values)
        if not isinstance(form, tables.Departure) and min(form[1], *form[0]) >= 0:
            bits = max(value.bit_length() for value in (form[1], *form[0]))
            linear = LinearLayout((("i", len(form[0])),), (("offset", bits),), form[0], form[1])
            return (
                linear if one_swizzle(form[0]) is None or bits > OFFSET_BITS else _linear_to_cute(linear, "recognize")
            )
        if isinstance(form, tables.Departure):
            witness |= {"coordinate over F2": form.coordinate, "affine over F2": form.forced}
            because += f"; entry {form.coordinate} is {int(values[form.coordinate])}, over F2 it would be {form.forced}"
    if int(values.min()) >= 0 and int(values.max()) < 1 << OFFSET_BITS:
        split = tables.swizzled(values)
        if split is not None:
            fields, modes_below, offset = split
            return ComposedLayout(Swizzle(*fields), offset, _from_modes(modes_below))
    raise _no_cute(f"recognize(table of {len(values)} entries)", because, witness)


def _from_modes(modes: Sequence[tuple[int, int]]) -> CuteLayout:
    """Return the layout of coalesced modes; one mode is not wrapped in a tuple, none is ``1:0``."""
    if len(modes) < 2:
        return CuteLayout(*(modes[0] if modes else (1, 0)))
    return CuteLayout(tuple(extent for extent, _ in modes), tuple(stride for _, stride in modes))


def _table(table: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return a table as int64, or refuse it."""
    try:
        array = np.asarray(table)
    except (ValueError, OverflowError):
        raise _malformed("table", "must be one-dimensional", "a ragged sequence") from None
    if array.ndim != 1 or array.size == 0:
        raise _malformed("table", "must be one-dimensional with at least one entry", f"shape {array.shape}")
    if array.dtype.kind not in "iu":
        raise _malformed("table", "must hold integers of at most 64 bits", f"dtype {array.dtype}")
    if array.dtype.kind == "u" and int(array.max()) >= 2**63:
        raise _malformed("table", "must hold signed 64-bit integers", int(array.max()))
    return array.astype(np.int64)


def _checked(layout: object, where: str) -> AnyLayout:
    if not isinstance(layout, (CuteLayout, ComposedLayout, LinearLayout, PiecewiseLayout)):
        raise _malformed(where[:80], "must be a CuteLayout, ComposedLayout, LinearLayout or PiecewiseLayout", layout)
    return layout


def _one_output(layout: PiecewiseLayout, where: str) -> None:
    if len(layout.out_dims) != 1:
        raise _malformed(where[:80], "must have one output", list(layout.out_dims))


def _malformed(argument: str, rule: str, actual: object) -> MalformedError:
    shown = repr(actual)
    return MalformedError(
        Diagnostic(
            code="LA234",
            what="this cannot be converted",
            where=(argument,),
            because=f"{rule}, not {shown if len(shown) <= 120 else shown[:117] + '...'}",
        )
    )


def _undecided(layout: AnyLayout, because: str) -> BudgetError:
    return BudgetError(
        Diagnostic(
            code="LA233",
            what="whether the layout has this form was not decided",
            where=(str(layout)[:200],),
            because=f"{because}; {layout.size} points, the limit is {CONFIRM_POINTS}",
            witness={"size": layout.size},
        )
    )
