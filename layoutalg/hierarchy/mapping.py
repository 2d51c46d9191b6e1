"""A user's bijections: tables, linear layouts and CuTe layouts, verified before use.

Main definitions: ``read_mapping``.
"""

from __future__ import annotations

import numpy as np

from layoutalg.cute import CuteLayout
from layoutalg.errors import AdmissibilityError, Diagnostic, MalformedError
from layoutalg.f2 import LinearLayout
from layoutalg.hierarchy.bijection import Bijection, BitMap, DigitMap, TableMap, canonical, coalesce
from layoutalg.hierarchy.levels import malformed


def read_mapping(mapping: object, size: int) -> Bijection:
    """Return a user's bijection of [0, size) in canonical form, verified.

    Args:
        mapping: A bijection of this module, a ``LinearLayout`` (packed input to packed output), a ``CuteLayout`` (1-D
            coordinate to offset), or the sequence or array of the values.
        size: Number of points expected.

    Raises:
        MalformedError: LA750, none of these or the wrong number of points; AdmissibilityError: LA752, not a bijection
            (the witness shows it); BudgetError: LA754, too many values.

    Example:
        >>> read_mapping(CuteLayout((2, 3), (3, 1)), 6)
        DigitMap(modes=((2, 3), (3, 1)))
    """
    found: Bijection
    if isinstance(mapping, DigitMap | BitMap | TableMap):
        found = mapping
    elif isinstance(mapping, LinearLayout):
        _same_size(mapping.size, size, mapping)
        if mapping.in_bits != mapping.out_bits:
            raise _no_bijection(mapping, f"{mapping.in_bits} input bits, {mapping.out_bits} output bits", {})
        found = BitMap(mapping.columns, mapping.constant)
    elif isinstance(mapping, CuteLayout):
        _same_size(mapping.size, size, mapping)
        found = _read_cute(mapping)
    elif isinstance(mapping, (tuple, list, np.ndarray)):
        found = TableMap(tuple(mapping.tolist()) if isinstance(mapping, np.ndarray) else tuple(mapping))
    else:
        raise malformed("mapping", "must be a LinearLayout, a CuteLayout or the sequence of values", mapping)
    _same_size(found.size, size, mapping)
    return canonical(found)


def _read_cute(layout: CuteLayout) -> DigitMap:
    merged = coalesce(layout.flat)
    expected = 1
    for extent, stride in sorted(merged, key=lambda mode: mode[1]):
        if stride != expected:
            raise _no_bijection(layout, f"sorted, the next stride must be {expected}, not {stride}", {"stride": stride})
        expected *= extent
    return DigitMap(merged)


def _no_bijection(mapping: object, because: str, witness: dict[str, object]) -> AdmissibilityError:
    return AdmissibilityError(
        Diagnostic(
            code="LA752",
            what="this layout is not a bijection onto an interval from 0",
            where=(str(mapping),),
            because=because,
            witness=witness or None,
        )
    )


def _same_size(actual: int, size: int, mapping: object) -> None:
    if actual != size:
        shown = str(mapping)
        raise MalformedError(
            Diagnostic(
                code="LA750",
                what="the mapping has the wrong number of points",
                where=(shown if len(shown) <= 120 else shown[:117] + "...",),
                because=f"{actual} points where the box has {size}",
                witness={"actual": actual, "expected": size},
            )
        )
