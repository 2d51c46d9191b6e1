"""Write hierarchical layouts as text; ``notation`` has the grammar and the parser."""

from __future__ import annotations

from collections.abc import Sequence, Set

from layoutalg.ground.digits import Digits, Stride, merge, split_at
from layoutalg.hierarchy import bijection as maps
from layoutalg.hierarchy.bijection import Bijection
from layoutalg.hierarchy.digitmap import DigitMap
from layoutalg.hierarchy.guard import Guard
from layoutalg.hierarchy.levels import Box

TABLE_TEXT = 64
"""Longest table that is written out in full."""


def layout_text(source: Box, target: Box, mapping: Bijection, guards: Sequence[Guard]) -> str:
    """Return the text of the layout with these fields.

    Example:
        >>> layout_text(Box.of(col=4, row=6), Box.of(x=24), DigitMap(((4, 1), (2, (1, 4)), (3, 8)), (4,)), ())
        'col 4:1, row (2,3):(4^1,8) ^ (4) -> x:24'
    """
    by_axis = digits_by_axis(source, mapping) if source.axes else None
    if by_axis is not None and isinstance(mapping, DigitMap):
        head = ", ".join(f"{name} {_digits_text(modes)}" for name, modes in by_axis.items()) + _flips_text(mapping)
    else:
        head = f"[{source}] {_map_text(mapping)}"
    bounds = "".join(f" | {_guard_text(guard, source, target, mapping)}" for guard in guards)
    return f"{head} -> {target if target.axes else '[]'}{bounds}"


def digits_by_axis(source: Box, mapping: Bijection) -> dict[str, Digits] | None:
    """Return the digits of every axis of ``source``; None for a table or if a digit straddles two axes.

    Example:
        >>> digits_by_axis(Box.of(lane=4, warp=2), DigitMap(((2, 1), (4, 2))))
        {'lane': ((4, 1),), 'warp': ((2, 4),)}
    """
    if not isinstance(mapping, DigitMap):
        return None
    rest = split_at(mapping.modes, [source.stride(name) for name in source.names], ())
    if rest is None:
        return None
    answer: dict[str, Digits] = {}
    for name, extent in source.axes:
        covered, count = 1, 0
        while covered < extent:
            covered *= rest[count][0]
            count += 1
        answer[name], rest = merge(rest[:count]), rest[count:]
    return answer


def _map_text(mapping: Bijection) -> str:
    if isinstance(mapping, DigitMap):
        return _digits_text(mapping.modes) + _flips_text(mapping)
    values = mapping.table()
    shown = values if len(values) <= TABLE_TEXT else values[:16]
    return f"table {','.join(map(str, shown.tolist()))}{',...' if len(values) > TABLE_TEXT else ''}"


def _digits_text(modes: Digits) -> str:
    def join(values: list[str]) -> str:
        return values[0] if len(values) == 1 else f"({','.join(values)})"

    def stride_text(stride: Stride) -> str:
        # highest first: for a swizzle, the bit itself before the bit it is xored into
        return str(stride) if isinstance(stride, int) else "^".join(map(str, reversed(stride)))

    if not modes:
        return "1:0"
    return f"{join([str(extent) for extent, _ in modes])}:{join([stride_text(stride) for _, stride in modes])}"


def _flips_text(mapping: DigitMap) -> str:
    return f" ^ ({','.join(map(str, mapping.flips))})" if mapping.flips else ""


def _guard_text(guard: Guard, source: Box, target: Box, mapping: Bijection) -> str:
    bounds = {
        name: bound for bound, (name, extent) in zip(guard.bounds, guard.box.axes, strict=True) if bound != extent
    }
    text = " and ".join(f"{name}<{bound}" for name, bound in bounds.items())
    if (guard.map, guard.box) == bounded_side(bounds.keys(), source, target, mapping):
        return text
    return f"{text} where {_map_text(guard.map)} -> {guard.box}"


def bounded_side(names: Set[str], source: Box, target: Box, mapping: Bijection) -> tuple[Bijection, Box] | None:
    """Return the map and box that bounds without ``where`` refer to; None if neither side has all the axes."""
    if names <= source.dims.keys():
        return maps.identity(source.size), source
    return (mapping, target) if names <= target.dims.keys() else None
