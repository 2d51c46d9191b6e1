"""Classify strided layouts: tractable, tractable with padded rows, or neither and why.

Main statements: drop the modes of extent 1 and stride 0 and sort the rest by stride.
* The layout is *tractable*, that is |f| for a morphism f of nested tuples, if and only if each stride is a multiple of
  stride times extent of the mode before it. Necessary, because strides are products of codomain extents; sufficient,
  because the quotients, inserted between the extents, give a codomain.
* The layout is |p| for a padded morphism p if and only if each stride is greater than the largest sum of offsets of the
  modes before it, that is, if the sorted layout is strictly increasing.

Not tractable are, checked in this order: empty layouts; negative strides; overlapping modes, such as ``(4,4):(1,1)``;
interleaved modes, such as ``(3,2):(2,3)``; and padded rows whose pitch is not a multiple of the row, such as
``(6,2):(1,10)`` and ``(128,64):(72,1)``. Only the last kind is a padded morphism.

References: J. Carlisle, J. Shah, R. Stern, P. VanKoughnett, arXiv:2601.05972 (tractable layouts). The padded case is
not in the paper.
"""

from __future__ import annotations

from itertools import pairwise
from math import gcd
from typing import Literal, NamedTuple, TypeAlias

from layoutalg.cute.inttuple import malformed
from layoutalg.cute.layout import CuteLayout

Kind: TypeAlias = Literal["tractable", "padded", "interleaved", "overlapping", "negative", "empty"]
Flat: TypeAlias = "tuple[tuple[int, int], ...]"


class Finding(NamedTuple):
    """The kind of a layout, its non-trivial modes sorted by stride, and which two modes break the chain and why."""

    kind: Kind
    order: tuple[int, ...] = ()
    modes: tuple[int, int] | None = None
    because: str = ""


def examine(layout: CuteLayout) -> Finding:
    """Classify a layout; its non-trivial modes are sorted by stride, then extent.

    Raises: MalformedError: LA604.

    Complexity: O(k log k) for k modes.

    Example:
        >>> examine(CuteLayout((4, 2, 3, 1), (6, 1, 0, 7)))
        Finding(kind='tractable', order=(1, 0), modes=None, because='')
        >>> examine(CuteLayout((3, 2), (2, 3)))[2:]
        ((0, 1), 'mode 1 (2:3) starts inside the modes before it: its stride does not exceed their reach 4')
    """
    if not isinstance(layout, CuteLayout):
        raise malformed("layout", "must be a CuteLayout", layout, "LA604")
    return examine_modes(layout.flat)


def examine_modes(flat: Flat) -> Finding:
    """``examine`` for the leaves of a layout: (extent, stride) pairs."""
    for place, (extent, stride) in enumerate(flat):
        if extent == 0:
            return Finding("empty", (), (place, place), f"mode {place} has extent 0")
        if stride < 0 and extent > 1:
            return Finding("negative", (), (place, place), f"{_name(flat, place)} has a negative stride")
    moving = [place for place, (extent, stride) in enumerate(flat) if extent > 1 and stride != 0]
    order = tuple(sorted(moving, key=lambda place: (flat[place][1], flat[place][0], place)))
    for fast, slow in pairwise(order):
        width = flat[fast][0] * flat[fast][1]
        if flat[slow][1] % width:
            text = (
                f"{_name(flat, slow)} has a stride that is not a multiple of {width}, the width of {_name(flat, fast)}"
            )
            return _not_increasing(flat, order) or Finding("padded", order, (fast, slow), text)
    return Finding("tractable", order)


def _not_increasing(flat: Flat, order: tuple[int, ...]) -> Finding | None:
    """Return where the sorted layout stops increasing, or None if it never does."""
    reach, fast = 0, -1
    for slow in order:
        extent, stride = flat[slow]
        if stride > reach:
            reach += (extent - 1) * stride
            fast = slow
            continue
        for other in order:
            s, d = flat[other]
            common = gcd(d, stride)
            if other != slow and stride // common < s and d // common < extent:
                meeting = d * stride // common
                text = f"{_name(flat, other)} and {_name(flat, slow)} both reach the offset {meeting}"
                return Finding("overlapping", order, (other, slow), text)
        text = f"{_name(flat, slow)} starts inside the modes before it: its stride does not exceed their reach {reach}"
        return Finding("interleaved", order, (fast, slow), text)
    return None


def _name(flat: Flat, place: int) -> str:
    return f"mode {place} ({flat[place][0]}:{flat[place][1]})"
