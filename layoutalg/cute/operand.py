"""The door of the operations: which layouts they take, and what they say to everything else.

Main definitions: ``plain``, ``swizzled``, ``operand_refusal``, ``weight``.

Implementation notes: callers test ``type(layout) is CuteLayout`` first, so the common case costs nothing.
"""

from __future__ import annotations

from typing import TypeVar

from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.layout import CuteLayout
from layoutalg.ground.errors import Diagnostic, MalformedError, shown

_HINTS = {
    "str": "layoutalg.parse reads text",
    "ComposedLayout": "its .base is the layout under the swizzles and offsets",
    "OffsetLayout": "its .base is the layout without the offset",
    "CoordinateLayout": "its .components are the integer layouts that it consists of",
    "SymbolicLayout": "layoutalg.cute.symbolic has the operations on sizes with names",
    "Morphism": "its .to_layout() is a layout",
    "LinearLayout": "layoutalg.convert.to_cute gives its CuTe form where there is one",
    "IntegerLayout": "layoutalg.convert.to_cute gives its CuTe form where there is one",
    "PiecewiseLayout": "layoutalg.convert.to_cute gives its CuTe form where there is one",
    "HierarchicalLayout": "layoutalg.convert.to_cute gives its CuTe form where there is one",
    "int": "CuteLayout(shape) is the compact layout of a shape",
    "tuple": "CuteLayout(shape) is the compact layout of a shape",
}

Value = TypeVar("Value")

NARROW = 16
"""Modes of operands up to which operations of a few microseconds keep their last ``RECENT`` answers unweighed. An entry
is then below 30 KB: a layout has fewer than 2^63 coordinates, so an answer has at most 63 modes that are not in an
operand. What wider operands give is weighed and bounded in bytes."""

RECENT = 4096

WIDER = "layoutalg.compose(outer, inner, widen=True), which gives it in a wider family"
"""Where the refusal of a composition that has no CuTe form sends the reader."""


def plain(layout: object, operation: str, argument: str = "layout") -> CuteLayout:
    """Return a CuTe layout; refuse every other value.

    Raises: MalformedError: LA192.

    Example:
        >>> plain("(4,8):(1,4)", "nullspace")
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA192 the operand does not fit the operation
          in     nullspace
          since  layout must be a CuteLayout, not '(4,8):(1,4)'; layoutalg.parse reads text
    """
    if isinstance(layout, CuteLayout):
        return layout
    raise operand_refusal(layout, operation, argument, "a CuteLayout")


def swizzled(layout: Value, operation: str, argument: str = "layout") -> Value:
    """Return a CuTe layout, or one under swizzles and offsets; refuse every other value.

    Raises: MalformedError: LA192.

    Example:
        >>> print(swizzled(CuteLayout(4), "cosize"))
        4:1
    """
    if isinstance(layout, CuteLayout | ComposedLayout):
        return layout
    raise operand_refusal(layout, operation, argument, "a CuteLayout, a ComposedLayout or an OffsetLayout")


def operand_refusal(value: object, operation: str, argument: str, rule: str) -> MalformedError:
    """Return the error that ``value`` is not what an operation takes, with a hint where one helps (LA192)."""
    hint = _HINTS.get(type(value).__name__, "")
    text = f"the {type(value).__name__} {value}" if isinstance(value, ComposedLayout) else shown(value)
    return MalformedError(
        Diagnostic(
            code="LA192",
            what="the operand does not fit the operation",
            where=(operation,),
            because=f"{argument} must be {rule}, not {text}" + (f"; {hint}" if hint else ""),
        )
    )


def weight(*values: object) -> int:
    """Return about how many bytes operands and answers take while they are remembered.

    Example:
        >>> weight(CuteLayout((4, 8)), 5)
        864
    """
    total = 0
    for value in values:
        if isinstance(value, CuteLayout):
            total += 320 + 240 * len(value.flat)
        elif isinstance(value, tuple):
            total += 64 + weight(*value)
        elif isinstance(value, ComposedLayout):
            total += 640 * len(value.stages) + weight(value.base)
        else:
            total += 64
    return total
