"""User bijections: tables, functions, linear, CuTe and swizzled layouts, verified before use."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout
from layoutalg.f2.split import one_swizzle
from layoutalg.ground.check import refuse
from layoutalg.ground.digits import chained, merge, shared_bits, split_at, weights
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError, shown
from layoutalg.ground.layout import Layout
from layoutalg.hierarchy.bijection import Bijection, TableMap, canonical, compose, identity, local
from layoutalg.hierarchy.digitmap import DigitMap, check_points
from layoutalg.hierarchy.levels import malformed


def read_mapping(mapping: object, size: int) -> Bijection:
    """Return a user's bijection of [0, size) in canonical form, verified.

    Args:
        mapping: A bijection of this package, a layout of any family (linear, CuTe and swizzled ones without
            enumeration), a list, tuple, range or array of the values, or a function of the index.
        size: Expected number of points.

    Example:
        >>> read_mapping(CuteLayout((2, 3), (3, 1)), 6)
        DigitMap(modes=((2, 3), (3, 1)))
        >>> read_mapping(ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((4, 3))), 12)
        DigitMap(modes=((2, 1), (2, (1, 2)), (3, 4)))
        >>> read_mapping(lambda index: 5 * index % 6, 6).at(1)
        5
    """
    found: Bijection
    if isinstance(mapping, DigitMap | TableMap):
        found = mapping
    elif isinstance(mapping, LinearLayout):
        _same_size(mapping.size, size, mapping)
        if mapping.in_bits != mapping.out_bits:
            raise _no_bijection(mapping, f"{mapping.in_bits} input bits, {mapping.out_bits} output bits", {})
        found = DigitMap.from_bits(mapping.columns, mapping.constant)
    elif isinstance(mapping, CuteLayout | ComposedLayout):
        _same_size(mapping.size, size, mapping)
        found = _read_cute(mapping) if isinstance(mapping, CuteLayout) else _read_swizzled(mapping)
    elif isinstance(mapping, Layout):
        _same_size(mapping.size, size, mapping)
        check_points(size, str(mapping))
        values = mapping.table()
        if values.ndim != 1:
            raise malformed("mapping", "must have integer values", mapping)
        found = TableMap(tuple(values.tolist()))
    elif isinstance(mapping, (tuple, list, np.ndarray)):
        if isinstance(mapping, np.ndarray) and mapping.ndim != 1:
            raise malformed("mapping", "must be a one-dimensional array", mapping)
        found = TableMap(tuple(mapping.tolist() if isinstance(mapping, np.ndarray) else mapping))
    elif isinstance(mapping, range):
        # not len(), which refuses ranges longer than a machine word
        _same_size(max(0, -((mapping.start - mapping.stop) // mapping.step)), size, mapping)
        check_points(size)
        found = TableMap(tuple(mapping))
    elif callable(mapping):
        found = _read_function(mapping, size)
    else:
        raise malformed("mapping", "must be a layout, a function or a sequence of values", mapping)
    _same_size(found.size, size, mapping)
    return canonical(found)


def _read_function(function: Callable[[int], object], size: int) -> TableMap:
    check_points(size, "evaluating a function point by point")
    values = []
    for index in range(size):
        try:
            values.append(function(index))
        except Exception as error:
            raise malformed("mapping", f"must have a value at {index}", error) from error
    return TableMap(tuple(values))  # type: ignore[arg-type]


def _read_cute(layout: CuteLayout) -> DigitMap:
    merged = merge(layout.flat)
    broken = chained((stride, extent) for extent, stride in layout.flat if extent > 1)
    if broken is not None:
        because = f"in ascending order, the next stride must be {broken[1]}, not {broken[0]}"
        raise _no_bijection(layout, because, {"stride": broken[0]})
    return DigitMap(merged)


def _read_swizzled(layout: ComposedLayout) -> Bijection:
    """Return a stack of swizzles as a digit map if every period divides the size and no offset intervenes, or a table.

    A swizzle then permutes each aligned block of one period, so it acts on the low digit of the value.
    """
    size, stages = layout.size, [*reversed(layout.stages)]
    merged = merge(layout.base.flat)
    plain = chained((abs(stride), extent) for extent, stride in layout.base.flat if extent > 1) is None
    whole = all(size % swizzle.period == 0 for swizzle, _ in stages) and not any(offset for _, offset in stages[1:])
    found: Bijection = DigitMap(merged) if plain else identity(size)
    if not plain or not whole or found.at(0) != stages[0][1]:
        check_points(size, str(layout))
        return TableMap(tuple(layout.table().tolist()))
    for swizzle, _ in stages:
        columns = swizzle.matrix_columns(swizzle.period.bit_length() - 1)
        found = compose(local(DigitMap.from_bits(columns), 1, size // swizzle.period), found)
    return found


def _no_bijection(mapping: object, because: str, witness: dict[str, object]) -> AdmissibilityError:
    return refuse("LA752", "this layout is not a bijection onto an interval from 0", because, witness or None, mapping)


def _same_size(actual: int, size: int, mapping: object) -> None:
    if actual != size:
        because = f"{actual} points, but the box has {size}"
        witness = {"actual": actual, "expected": size}
        raise MalformedError(
            Diagnostic("LA750", "the mapping has the wrong number of points", (shown(mapping),), because, witness)
        )


def unswizzled(mapping: DigitMap) -> tuple[Swizzle, DigitMap] | None:
    """Return a swizzle and a plain digit map with ``mapping(x) == swizzle(plain(x))``, or None.

    A swizzle acts on the bits of the value, i.e. the target digits below the first odd extent.

    Example:
        >>> unswizzled(DigitMap(((4, 1), (2, (1, 4)), (2, (2, 8)), (3, 16))))
        (Swizzle(2, 0, 2), DigitMap(modes=((48, 1),)))
    """
    low = 1
    for weight, extent in sorted((weight, extent) for extent, stride in mapping.pieces() for weight in weights(stride)):
        if weight == low:
            low *= extent & -extent
    pieces = split_at(mapping.modes, (), [low])
    if pieces is None or max(shared_bits(pieces), default=0) >= low:
        return None
    columns: list[int] = []
    for extent, stride in pieces:
        if max(weights(stride)) < low:
            columns += [sum(weights(stride)) << bit for bit in range(extent.bit_length() - 1)]
    found = one_swizzle(columns)
    if found is None or low > 2**62:
        return None
    swizzle = Swizzle(*found)
    undone = local(DigitMap.from_bits(swizzle.matrix_columns(low.bit_length() - 1)), 1, mapping.size // low)
    plain = compose(undone, mapping)
    return (swizzle, plain) if isinstance(plain, DigitMap) and plain.is_plain else None
