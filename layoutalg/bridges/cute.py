"""Convert layouts and tables to ``[Sw o offset o] shape:stride``: the smallest form, or a proof that there is none.

The coalesced modes of a table are unique, so the first entry that differs from what the earlier ones force refutes
every plain layout. Over F2 one elimination decides all swizzles. Elsewhere all relevant swizzles are tried
(``layoutalg.ground.recognize``), so a refusal is a proof.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.affine import linear_form, residues, to_linear
from layoutalg.bridges.normal import (
    CONFIRM_POINTS,
    OFFSET_BITS,
    AnyFamily,
    Call,
    Given,
    checked,
    family_of,
    from_coordinates,
    lowered,
    malformed,
    of_axes,
    one_output,
    total,
    undecided,
)
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.cute.algebra import coalesce
from layoutalg.cute.fit import over_f2, over_table
from layoutalg.cute.inttuple import IntTuple, flatten, product, shape_text, validate
from layoutalg.cute.swizzle import IDENTITY
from layoutalg.f2 import LinearLayout
from layoutalg.f2.carry import one_swizzle, swizzle_columns
from layoutalg.ground import recognize as tables
from layoutalg.ground.digits import merge
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError, RepresentabilityError
from layoutalg.ground.listed import ListedLayout
from layoutalg.integer import IntegerLayout


def to_cute(layout: Given) -> CuteLayout | ComposedLayout:
    """Return the layout as ``shape:stride``, with an offset and one swizzle if needed.

    Mathematically: an affine map over F2 is ``Sw o (offset + shape:stride)`` exactly when the columns of Sw M have
    disjoint supports; ``layoutalg.f2.carry.one_swizzle`` searches every Sw. Each input axis of a linear, integer or
    hierarchical layout becomes one top-level mode; a single axis is not wrapped. A constant becomes the offset of an
    identity swizzle. A table keeps its dimensions as modes if possible. A Triton shared layout, which maps offsets to
    coordinates, is inverted first.

    Args:
        layout: Any layout. A CuTe layout is returned unchanged; so is a composed layout with one swizzle and no plain
            form, except that one affine over F2 gets coalesced modes and the fewest swizzle bits.

    Example:
        >>> print(to_cute(LinearLayout.from_bases({"i": [(1,), (2,), (5,)]}, {"o": 8})))
        Sw<1,0,2> o 0 o 8:1
        >>> print(to_cute(LinearLayout.from_bases({"t": [(4,), (8,)], "v": [(1,), (2,)]}, {"o": 16})))
        (4,4):(4,1)
    """
    given = from_coordinates(checked(layout, "to_cute"))
    where = Call("to_cute", given)
    total(given, where)
    one_output(given, where)
    narrow = lowered(given)
    match narrow:
        case CuteLayout():
            return narrow
        case ComposedLayout() if narrow is not given:
            return narrow
        case ListedLayout():
            return _listed_to_cute(narrow, where)
        case LinearLayout():
            return _linear_to_cute(narrow, where)
        case ComposedLayout(stages=(_,)):
            return _one_stage_to_cute(narrow, where)
    return _by_values(narrow, where)


def _by_form(layout: AnyFamily, where: Call) -> CuteLayout | ComposedLayout | None:
    """Convert a layout of 2**n points >= 0 that is affine over F2; None for any other."""
    if layout.size < 1 or layout.size & (layout.size - 1):
        return None
    form = linear_form(layout)
    if isinstance(form, tables.Departure) or min((form[1], *form[0])) < 0:
        return None
    return _linear_to_cute(to_linear(layout), where)


def _one_stage_to_cute(layout: ComposedLayout, where: Call) -> CuteLayout | ComposedLayout:
    """Convert strides under one swizzle, which have a CuTe form in any case, to a shorter one if there is one."""
    try:
        found = _by_form(layout, where)
        if found is not None or not 0 < layout.size <= CONFIRM_POINTS:
            return found or (layout if layout.size else CuteLayout(0, 0))
    except BudgetError:
        return layout
    values = layout.table()
    modes = tables.strided(values)
    if isinstance(modes, tables.Departure):
        return layout
    try:
        return _behind(int(values[0]), modes)
    except MalformedError:  # its plain form overflows 64 bits
        return layout


def _by_values(layout: AnyFamily, where: Call) -> CuteLayout | ComposedLayout:
    """Convert a layout that no algebra lowers: over F2, else by its table."""
    found = _by_form(layout, where)
    if found is not None:
        return found
    if isinstance(layout, IntegerLayout):
        modulus = layout.moduli[0]
        if not modulus:
            raise _too_wide(where)
        if layout.size > CONFIRM_POINTS or modulus >= 2**OFFSET_BITS:
            raise undecided(layout, f"residues modulo {modulus} are compared point by point, as 62-bit numbers")
    if layout.size > CONFIRM_POINTS:
        raise undecided(layout, family_of(layout).by_points)
    if layout.size == 0:
        return CuteLayout(0, 0)
    values = layout.table()
    if values.dtype == object and any(not -(2**63) <= value < 2**63 for value in values.tolist()):
        raise _too_wide(where)
    recognized = _as_cute(_table(values), None, str(where))
    return _linear_to_cute(recognized, where) if isinstance(recognized, LinearLayout) else recognized


def _listed_to_cute(layout: ListedLayout, where: Call) -> CuteLayout | ComposedLayout:
    """Convert a table with one top-level mode per dimension if possible, else in any recognised form."""
    values = layout.table()
    with contextlib.suppress(RepresentabilityError):
        if len(layout.extents) > 1:
            return _as_cute(values, layout.extents, str(where))  # type: ignore[return-value]
    found = _as_cute(values, None, str(where))
    return _linear_to_cute(found, where) if isinstance(found, LinearLayout) else found


def _behind(offset: int, modes: Iterable[tuple[int, int]], swizzle: Swizzle = IDENTITY) -> CuteLayout | ComposedLayout:
    return of_axes([(mode,) for mode in modes], offset, swizzle)


def _too_wide(where: Call) -> RepresentabilityError:
    what = "the numbers of the layout do not fit a CuTe layout"
    because = "extents, strides, offset and values of a CuTe layout are 64-bit integers"
    return RepresentabilityError(Diagnostic("LA660", what, (str(where),), because))


def _linear_to_cute(layout: LinearLayout, where: Call) -> CuteLayout | ComposedLayout:
    """Convert a linear layout to ``[Sw o offset o] shape:stride``, one top-level mode per input axis."""
    if layout.out_bits > OFFSET_BITS:
        raise _no_cute(where, f"offsets have {layout.out_bits} bits; the limit is {OFFSET_BITS}", {})
    fields = one_swizzle(layout.columns)
    if fields is None:
        raise _no_cute(where, *_overlap(layout))
    *columns, offset = swizzle_columns(*fields, (*layout.columns, layout.constant))
    strides = iter([(offset ^ column) - offset for column in columns])
    axes = [merge(tuple((2, next(strides)) for _ in range(bits))) for _, bits in layout.in_axes]
    try:
        return of_axes(axes, offset, Swizzle(*fields))
    except MalformedError:
        raise _too_wide(where) from None


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


def _no_cute(where: Call | str, because: str, witness: dict[str, object]) -> RepresentabilityError:
    what = "the layout is not shape:stride with at most one swizzle"
    return RepresentabilityError(Diagnostic("LA235", what, (str(where),), because, witness))


def recognize(
    table: npt.ArrayLike, shape: IntTuple | None = None
) -> CuteLayout | ComposedLayout | LinearLayout | IntegerLayout:
    """Return the smallest layout with the given table: entry i is the value at flat coordinate i.

    Tried in order: the coalesced CuTe layout (which is unique); the same with an offset; an affine map over F2 as one
    swizzle over ``shape:stride``; a linear layout ``i -> offset``; one swizzle over ``shape:stride`` of any size; a sum
    of strides modulo some m. With a shape: at most one swizzle over ``shape:stride`` with the leaves of the shape,
    refined if needed, then strides of these leaves modulo some m.

    Args:
        table: One-dimensional, signed 64-bit integers, at least one entry.
        shape: None, or nested extents that multiply to the number of entries.

    Returns:
        A layout whose ``table()`` is ``table``.

    Complexity: O(N) for a plain layout; with swizzles O(width^3) probes of the beginning of the table.

    Example:
        >>> print(recognize([0, 4, 1, 5, 2, 6]), recognize([1, 0, 3, 2]), recognize([0, 3, 5, 6]))
        (2,3):(4,1) 1 + (2,2):(-1,2) Sw<1,0,1> o 0 o (2,2):(2,5)
        >>> print(recognize([0, 1, 2, 3, 4, 5], (2, 3)), recognize([0, 5, 3, 1, 6, 4]))
        (2,3):(1,2) Z[c0:6=(5) -> offset%7]
    """
    values = _table(table)
    where = f"recognize(table of {len(values)} entries)"
    if shape is not None:
        shape = validate(shape, "shape")
        if product(shape) != len(values):
            raise malformed("shape", f"must have the size of the table, {len(values)}", shape_text(shape))
        where = f"recognize(table of {len(values)} entries, {shape_text(shape)})"
    try:
        return _as_cute(values, shape, where)
    except RepresentabilityError as refusal:
        found, moduli = residues(values, None if shape is None else flatten(shape))
        if found is not None:
            return found
        raise _no_cute(
            where, f"{refusal.diagnostic.because}; {moduli}", dict(refusal.diagnostic.witness or {})
        ) from None


def _as_cute(
    values: npt.NDArray[np.int64], shape: IntTuple | None, where: str
) -> CuteLayout | ComposedLayout | LinearLayout:
    """Recognize a table without moduli."""
    low, high = int(values.min()), int(values.max())
    wide = low <= -(2**61) or high >= 2**61
    modes = tables.strided(values)
    if shape is not None and not wide:
        found = over_table(values, shape)
        if found is not None:
            return found
    elif shape is None and not isinstance(modes, tables.Departure):
        try:
            return _behind(int(values[0]), modes)
        except MalformedError:
            because = f"its only modes {', '.join(f'{n}:{d}' for n, d in modes)} exceed the signed 64-bit range"
            raise _no_cute(where, because, {}) from None
    witness: dict[str, object] = {}
    because = "the values must be sums of one strided term per leaf of the shape"
    if isinstance(modes, tables.Departure):
        witness = {"coordinate": modes.coordinate, "value": modes.value, "strided": modes.forced}
        because = f"entry {modes.coordinate} is {modes.value}, a strided layout would give {modes.forced}"
    searched = not wide
    if not len(values) & (len(values) - 1):
        form = tables.linear(values)
        if isinstance(form, tables.Departure):
            witness |= {"coordinate over F2": form.coordinate, "affine over F2": form.forced}
            value = int(values[form.coordinate])
            because += f"; entry {form.coordinate} is {value}, an affine map over F2 would give {form.forced}"
        elif shape is None:
            affine = over_f2(*form, len(values))
            if affine is not None:
                return coalesce(affine)
            if low >= 0:
                bits = max(value.bit_length() for value in (form[1], *form[0]))
                return LinearLayout((("i", len(form[0])),), (("offset", bits),), form[0], form[1])
            searched = True
    if shape is None and not wide:
        split = tables.swizzled(values)
        if split is not None:
            fields, modes_below, offset = split
            return _behind(offset, modes_below, Swizzle(*fields))
    raise _no_cute(where, because + ("; no swizzle helps" if searched else "; swizzles were not tried"), witness)


def _table(table: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Return a table as int64; raise on other input."""
    try:
        array = np.asarray(table)
    except (ValueError, OverflowError):
        raise malformed("table", "must be one-dimensional", "a ragged sequence") from None
    if array.ndim != 1 or array.size == 0:
        raise malformed("table", "must be one-dimensional with at least one entry", f"shape {array.shape}")
    if np.ma.isMaskedArray(table) and bool(np.ma.getmaskarray(table).any()):
        raise malformed("table", "must not be masked", "a masked array")
    if array.dtype == object or isinstance(table, (list, tuple)):
        # entry by entry: numpy mixes signs and widths through floats
        entries: list[object] = list(table)  # type: ignore[arg-type]
        wrong: list[object] = [x for x in entries if isinstance(x, bool) or not isinstance(x, (int, np.integer))]
        whole = [int(x) for x in entries if isinstance(x, (int, np.integer))]
        wrong += [x for x in whole if not -(2**63) <= x < 2**63]
        if wrong:
            raise malformed("table", "must contain signed 64-bit integers", wrong[0])
        return np.array(whole, dtype=np.int64)
    if array.dtype.kind not in "iu" or (array.dtype.kind == "u" and int(array.max()) >= 2**63):
        shown = int(array.max()) if array.dtype.kind == "u" else f"dtype {array.dtype}"
        raise malformed("table", "must contain signed 64-bit integers", shown)
    return array.astype(np.int64)
