"""Direction of a shared-memory layout: coordinates to offsets, or (in Triton) offsets to coordinates.

Triton's shared layouts map the axes ``offset`` and ``block`` to the coordinates ``dim0``, ``dim1``, ... of a tensor;
shared layouts of all other families map coordinates to the offset. Each is the inverse of the other.
"""

from __future__ import annotations

from typing import Any

from layoutalg.bridges.normal import AnyFamily, malformed
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.f2 import LinearLayout, transpose_ins
from layoutalg.ground.errors import AdmissibilityError

OFFSET = "offset"
TURNED = "{} maps offsets to coordinates, so its inverse is compared"


def takes_offsets(layout: Any) -> bool:
    """Return whether a layout maps offsets to the coordinates of a tile.

    Example:
        >>> shared = LinearLayout.from_bases({"offset": [(0, 1), (1, 1)]}, {"dim0": 2, "dim1": 2})
        >>> takes_offsets(shared), takes_offsets(shared.inverse()), takes_offsets(CuteLayout(4, 1))
        (True, False, False)
    """
    if isinstance(layout, CuteLayout | ComposedLayout):
        return False
    outputs = layout.out_dims
    named = set(outputs) == {f"dim{place}" for place in range(len(outputs))}
    return named and bool(outputs) and OFFSET in layout.in_dims


def opposite(f: Any, g: Any) -> bool:
    """Return whether one layout maps offsets to coordinates and the other coordinates to a single offset.

    Example:
        >>> shared = LinearLayout.from_bases({"offset": [(0, 1), (1, 1)]}, {"dim0": 2, "dim1": 2})
        >>> opposite(shared, CuteLayout((2, 2), (2, 1))), opposite(shared, shared)
        (True, False)
    """
    if takes_offsets(f) == takes_offsets(g):
        return False
    other = g if takes_offsets(f) else f
    outputs = other.out_dims
    return sum(extent != 1 for extent in outputs.values()) <= 1 and not any(name[:3] == "dim" for name in outputs)


def from_coordinates(layout: AnyFamily, like: AnyFamily | None = None) -> AnyFamily:
    """Invert a linear layout that maps offsets to coordinates; return any other layout unchanged.

    Args:
        layout: A layout.
        like: Another layout; if it has the same axes as the inverse, its axis order is used.

    Raises: MalformedError: LA234: An element is at several offsets or at none.

    Example:
        >>> print(from_coordinates(LinearLayout.from_bases({"offset": [(0, 1), (1, 1)]}, {"dim0": 2, "dim1": 2})))
        F2[dim0=(3), dim1=(1) -> offset:4]
    """
    if not isinstance(layout, LinearLayout) or not takes_offsets(layout):
        return layout
    try:
        inverse = layout.inverse()
    except AdmissibilityError as error:
        rule = "must place every element at exactly one offset, because it is inverted"
        raise malformed("layout", rule, str(layout)[:200], f": {error.diagnostic.because}") from None
    axes = tuple(like.in_dims) if isinstance(like, LinearLayout) else ()
    return transpose_ins(inverse, axes) if set(axes) == set(inverse.in_dims) else inverse
