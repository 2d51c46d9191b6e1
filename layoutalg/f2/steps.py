"""Helpers shared by the operations on linear layouts."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence

from layoutalg.f2.axes import AxisBits, argument_check, fields, gather, place, resized
from layoutalg.f2.layout import LinearLayout, trusted


def linear(value: object, argument: str) -> LinearLayout:
    """Return ``value`` if it is a linear layout."""
    return argument_check.kind(value, LinearLayout, argument)


def mapped(layout: LinearLayout, outputs: AxisBits, change: Callable[[int], int]) -> LinearLayout:
    """Return the layout followed by a linear map of packed values, with output axes ``outputs``."""
    return trusted(layout.in_axes, outputs, tuple(map(change, layout.columns)), change(layout.constant))


def recolumned(layout: LinearLayout, name: str, columns: Sequence[int]) -> LinearLayout:
    """Return the layout with the columns of one input axis replaced, possibly by a different number."""
    low, bits = place(layout.in_axes, name, "name")
    rest = layout.columns[low + bits :]
    inputs = resized(layout.in_axes, name, len(columns))
    return trusted(inputs, layout.out_axes, (*layout.columns[:low], *columns, *rest), layout.constant)


def restricted(layout: LinearLayout, ins: Container[str], outs: Container[str]) -> LinearLayout:
    """Return the layout with all other input axes at 0 and all other output axes dropped."""
    places = [(low, bits) for name, low, bits in fields(layout.out_axes) if name in outs]
    columns: list[int] = []
    for name, low, bits in fields(layout.in_axes):
        if name in ins:
            columns += [gather(column, places) for column in layout.columns[low : low + bits]]
    inputs = tuple(axis for axis in layout.in_axes if axis[0] in ins)
    outputs = tuple(axis for axis in layout.out_axes if axis[0] in outs)
    return trusted(inputs, outputs, tuple(columns), gather(layout.constant, places))


def columns_of(layout: LinearLayout, name: str, argument: str) -> tuple[int, ...]:
    """Return the packed columns of one input axis."""
    low, bits = place(layout.in_axes, name, argument)
    return layout.columns[low : low + bits]


def bit_name(layout: LinearLayout, index: int) -> str:
    """Return the name of an input bit, such as ``lane[2]``."""
    for name, low, bits in fields(layout.in_axes):
        if low <= index < low + bits:
            return f"{name}[{index - low}]"
    return "constant"
