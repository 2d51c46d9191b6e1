"""Convert layouts to piecewise quasi-affine functions on their digits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.affine import strides_of, to_linear
from layoutalg.bridges.cute import recognize
from layoutalg.bridges.digits import stage_text
from layoutalg.bridges.normal import (
    AnyFamily,
    Call,
    Given,
    checked,
    family_of,
    from_coordinates,
    lowered,
    total,
    values_at,
)
from layoutalg.cute import CuteLayout
from layoutalg.cute.swizzle import Cute, staged
from layoutalg.f2 import LinearLayout
from layoutalg.ground.digits import span
from layoutalg.ground.errors import BudgetError, Diagnostic, MalformedError, RepresentabilityError
from layoutalg.hierarchy import DigitMap, HierarchicalLayout
from layoutalg.integer import IntegerLayout
from layoutalg.integer.forms import sampled_coordinates
from layoutalg.integer.inverse import isl_text
from layoutalg.piecewise import PiecewiseLayout, operations

RUNS = 64
"""Most runs of a table, or bands of a swizzle stack, that become pieces."""
LISTED = 2**12
"""Most points of a swizzle stack, or residues of its offsets, that are listed."""


def to_piecewise(layout: Given) -> PiecewiseLayout:
    """Return the layout as a piecewise quasi-affine function on its digits ``c0, c1, ...``, with the same flat index.

    The digits depend on the family:

    - CuTe: the modes. Integer: the axes; outputs and moduli are kept.
    - Linear, and a swizzle stack that is affine over F2 on the bits it touches: each input bit that is xored with
      others is a digit, and so is each run of bits between them.
    - Other swizzle stacks: the modes, with one piece per band of inner offsets that are moved by the same number, up to
      64 bands; else, up to 4096 points and 64 arithmetic runs, one piece per run of the flat coordinate ``i``; else the
      modes under floors.
    - Hierarchical: its digits, with mixed bits as for linear layouts.
    - Table: its recognised form, else one piece per arithmetic run of the flat coordinate.

    The output is ``offset`` unless the layout names its own. A Triton shared layout, which maps offsets to coordinates,
    is inverted first.

    Args:
        layout: Any total layout with at least one point.

    Example:
        >>> from layoutalg.cute import CuteLayout
        >>> print(to_piecewise(CuteLayout((3, 8), (8, 1))))
        { [c0, c1] -> [(8c0 + c1)] : 0 <= c0 <= 2 and 0 <= c1 <= 7 } as offset
    """
    return in_pieces(from_coordinates(checked(layout, "to_piecewise")))


def in_pieces(layout: AnyFamily) -> PiecewiseLayout:
    """Return ``to_piecewise`` of a layout in normal form, without inverting Triton shared layouts."""
    where = Call("to_piecewise", layout)
    if isinstance(layout, PiecewiseLayout):
        return layout
    if layout.size == 0:
        raise RepresentabilityError(
            Diagnostic(code="LA236", what="the layout is empty", where=(str(where),), because="it has no points")
        )
    total(layout, where)
    found = _convert(layout, where)
    # the text went through ISL, so check it
    few = layout.size <= LISTED
    index = np.arange(layout.size, dtype=np.int64) if few else sampled_coordinates(layout.size)
    if found.size != layout.size or (values_at(found, index) != values_at(layout, index)).any():
        because = "it disagrees with direct evaluation of the layout and was discarded"
        raise BudgetError(Diagnostic("LA745", "ISL's result is wrong", (str(where),), because))
    return found


def _convert(layout: AnyFamily, where: Call) -> PiecewiseLayout:
    """Return ``to_piecewise`` of a nonempty total layout, unchecked."""
    pieces = family_of(layout).pieces
    return _from_table(layout, where) if pieces is None else pieces(layout)


def pieces_of_digits(layout: HierarchicalLayout) -> PiecewiseLayout:
    """Return the pieces of a hierarchical layout: those of its narrower form, of its mixed bits, or of its table."""
    found, where = lowered(layout), Call("to_piecewise", layout)
    if found is not layout:
        return _convert(found, where)
    return _from_mixed(layout.map) if isinstance(layout.map, DigitMap) else _from_table(layout, where)


def pieces_of_axes(layout: IntegerLayout) -> PiecewiseLayout:
    """Return an integer layout as pieces on its axes."""
    names = [f"c{place}" for place in range(len(layout.inputs))]
    return PiecewiseLayout(isl_text(layout, names), tuple(layout.out_dims))


def pieces_of_bits(layout: LinearLayout) -> PiecewiseLayout:
    """Return a linear layout as pieces on its bits."""
    return _from_bits(layout.columns, layout.constant)


def pieces_of_strided(layout: Cute) -> PiecewiseLayout:
    """Return strides under swizzles and offsets as pieces on the modes."""
    plain = strides_of(layout)
    if plain is not None:
        return pieces_of_axes(plain)
    return _from_swizzles(layout) or _from_bands(layout) or _from_runs(layout) or _from_floors(layout)


def _from_swizzles(layout: Cute) -> PiecewiseLayout | None:
    """Convert a swizzle stack that is affine over F2 below its largest period P; else None.

    A stack g satisfies g(x + P) = g(x) + P, so digits whose strides are multiples of P need not be split.
    """
    period = max(swizzle.period for swizzle, _ in layout.stages)
    bits: list[int] = []
    places: list[tuple[int, int] | None] = []
    for extent, stride in layout.base.flat:
        while extent % 2 == 0 and stride % period:
            bits.append(stride)
            places.append(None)
            extent, stride = extent // 2, 2 * stride
        if extent > 1 and stride % period:
            return None
        places.append((extent, stride))
    low = staged(layout.stages, CuteLayout((2,) * len(bits), tuple(bits)) if bits else CuteLayout(1, 0))
    try:
        linear = to_linear(low)
    except (RepresentabilityError, BudgetError):
        return None
    return _from_bits(linear.columns, linear.constant, places)


def _from_bits(
    columns: Sequence[int], constant: int, places: Sequence[tuple[int, int] | None] | None = None
) -> PiecewiseLayout:
    """Return ``M x xor constant`` plus strides; digits are the xored bits, and the runs of the other bits.

    ``places`` are the digits in flat coordinate order: None for the next bit, else (extent, stride) at a mode's end.
    """
    once = twice = 0
    for column in columns:
        once, twice = once | column, twice | once & column
    mixed = 0
    for column in columns:
        mixed |= column if column & twice else 0
    rest = iter(columns)
    digits: list[Digit] = []
    begins = True  # a mode, whose digits are not joined with those of the one before
    for place in places if places is not None else [None] * len(columns):
        column = next(rest) if place is None else 0
        extent, stride = place or (2, (constant ^ column) - constant)
        flips = tuple(1 << row for row in range(column.bit_length()) if column >> row & 1) if column & mixed else ()
        joins = not (begins or flips or digits[-1].flips) and digits[-1].extent * digits[-1].stride == stride
        if joins:
            digits[-1] = Digit(digits[-1].extent * extent, digits[-1].stride)
        elif extent > 1:
            digits.append(Digit(extent, 0 if flips else stride, flips))
        begins = place is not None or not digits
    ones = [1 << row for row in range(mixed.bit_length()) if constant & mixed & 1 << row]
    return _from_digits(digits, constant & ~mixed, ones)


@dataclass(frozen=True, slots=True)
class Digit:
    """A digit that adds its stride, or flips the parities of these weights."""

    extent: int
    stride: int
    flips: tuple[int, ...] = ()


def _from_digits(digits: Sequence[Digit], constant: int, ones: Iterable[int]) -> PiecewiseLayout:
    """Return constant + strides + weight * (sum of the digits that flip it, modulo 2), starting at 1 for ``ones``."""
    parities: dict[int, list[str]] = {weight: ["1"] for weight in ones}
    terms = [str(constant)]
    for place, digit in enumerate(digits):
        terms += [f"{digit.stride}*c{place}"] if digit.stride else []
        for weight in digit.flips:
            parities.setdefault(weight, []).append(f"c{place}")
    for weight, parts in parities.items():
        if len(parts) == 1 or (len(parts) == 2 and parts[0] == "1"):
            terms.append(f"{weight}*{parts[0]}" if len(parts) == 1 else f"{weight} - {weight}*{parts[1]}")
        else:
            terms.append(f"{weight}*(({' + '.join(parts)}) mod 2)")
    point = ", ".join(f"c{place}" for place in range(len(digits)))
    box = " and ".join(["0 = 0", *(f"0 <= c{place} < {digit.extent}" for place, digit in enumerate(digits))])
    return PiecewiseLayout(f"{{ [{point}] -> [{' + '.join(terms)}] : {box} }}", ("offset",))


def _from_mixed(mapping: DigitMap) -> PiecewiseLayout:
    """Convert a digit map with mixed bits."""
    modes = mapping.pieces()
    shared = {weight for _, stride in modes if isinstance(stride, tuple) for weight in stride}
    digits, constant, ones = [], 0, set(mapping.flips)
    for extent, stride in modes:
        if isinstance(stride, tuple):
            digits.append(Digit(extent, 0, stride))
        elif abs(stride) in shared:
            digits.append(Digit(extent, 0, (abs(stride),)))
            ones ^= {abs(stride)} if stride < 0 else set()
        else:
            digits.append(Digit(extent, stride))
            constant -= (extent - 1) * min(stride, 0)
    return _from_digits(digits, constant, sorted(ones))


def _from_bands(layout: Cute) -> PiecewiseLayout | None:
    """Convert a swizzle stack as its inner offset v plus a number per band of v modulo the largest period P.

    A stack g satisfies g(x + P) = g(x) + P, so g(x) - x is a function of x modulo P. Residues that v never takes join
    the preceding band. None if there are more than ``RUNS`` bands, or too many residues to list.
    """
    period = max(swizzle.period for swizzle, _ in layout.stages)
    inner = layout.base
    if layout.size > LISTED:
        unit = gcd(period, *(stride for _, stride in inner.flat))
        if period // unit > LISTED:
            return None
        inner = CuteLayout(period // unit, unit)
    try:
        moved = staged(layout.stages, inner).table().tolist()
    except MalformedError:  # a whole period overflows 64 bits, though the layout does not
        return None
    moves = {v % period: value - v for v, value in zip(inner.table().tolist(), moved, strict=True)}
    starts: list[tuple[int, int]] = []
    for residue, move in sorted(moves.items()):
        if not starts or starts[-1][1] != move:
            starts.append((residue if starts else 0, move))
    if len(starts) > RUNS:
        return None
    names, value, box = _modes(layout.base)
    low, high = span(layout.base.flat)
    block = low - low % period
    residue_text = f"{value} + {-block}" if high < block + period else f"(({value}) mod {period})"
    stops = [start for start, _ in starts[1:]]
    bands: dict[int, list[str]] = {}
    for (start, move), stop in zip(starts, [*stops, period], strict=True):
        bands.setdefault(move, []).append(f"{start} <= {residue_text} < {stop}")
    pieces = (f"[{names}] -> [{value} + {move}] : {box} and ({' or '.join(band)})" for move, band in bands.items())
    return _within_quota(f"{{ {'; '.join(pieces)} }}")


def _from_runs(layout: Cute) -> PiecewiseLayout | None:
    """Convert a small swizzle stack run by run; None if it has too many points or runs."""
    if layout.size > LISTED:
        return None
    runs = arithmetic_runs(layout.table())
    return _within_quota(runs_text(runs)) if len(runs) <= RUNS else None


def _within_quota(text: str) -> PiecewiseLayout | None:
    """Return the layout of a text; None if ISL's quota runs out."""
    try:
        return PiecewiseLayout(text, ("offset",))
    except BudgetError:
        return None


def _from_table(layout: AnyFamily, where: Call) -> PiecewiseLayout:
    """Convert a table by its recognised form (strides, swizzle or bits), else run by run."""
    table = layout.table()
    try:
        return to_piecewise(recognize(table))
    except (RepresentabilityError, BudgetError):
        pass  # a form with many parities may exceed ISL's quota although the runs do not
    runs = arithmetic_runs(table)
    if len(runs) > RUNS:
        stop = runs[-1][1]
        what = "the table has too many pieces"
        because = f"more than {RUNS} arithmetic runs on its first {stop} of {len(table)} points"
        raise BudgetError(Diagnostic("LA662", what, (str(where)[:200],), because, {"runs": len(runs), "points": stop}))
    return PiecewiseLayout(runs_text(runs), ("offset",))


Run = tuple[int, int, int, int]


def arithmetic_runs(table: npt.NDArray[np.int64]) -> list[Run]:
    """Return the maximal arithmetic runs (start, stop, step, value at 0) of a table, at most ``RUNS`` + 1."""
    runs: list[Run] = []
    start, size = 0, len(table)
    steps = np.diff(table)
    while start < size and len(runs) <= RUNS:
        step = int(steps[start]) if start < size - 1 else 0
        broken = np.flatnonzero(steps[start:] != step)
        stop = size if not broken.size else start + int(broken[0]) + 1
        runs.append((start, stop, step, int(table[start]) - step * start))
        start = stop
    return runs


def runs_text(runs: Sequence[Run]) -> str:
    """Return the ISL text of runs as a function of the flat index ``i``.

    Example:
        >>> runs_text(arithmetic_runs(np.array([0, 3, 6, 1])))
        '{ [i] -> [3*i + 0] : 0 <= i < 3; [i] -> [0*i + 1] : 3 <= i < 4 }'
    """
    text = "; ".join(f"[i] -> [{step}*i + {base}] : {start} <= i < {stop}" for start, stop, step, base in runs)
    return f"{{ {text} }}"


def _modes(layout: CuteLayout) -> tuple[str, str, str]:
    """Return the names of the modes, the offset and the box as ISL text."""
    modes = [(f"c{place}", extent, stride) for place, (extent, stride) in enumerate(layout.flat)]
    value = " + ".join(["0", *(f"{stride}*{name}" for name, _, stride in modes)])
    box = " and ".join(["0 = 0", *(f"0 <= {name} < {extent}" for name, extent, _ in modes)])
    return ", ".join(name for name, _, _ in modes), value, box


def _from_floors(layout: Cute) -> PiecewiseLayout:
    """Convert a swizzle stack on the modes of its CuTe layout, with every xored bit as a floor modulo 2."""
    names, value, box = _modes(layout.base)
    stages = [stage_text(swizzle, offset) for swizzle, offset in reversed(layout.stages)]
    found = operations.chain([f"{{ [{names}] -> [{value}] }}", *stages], f"{{ [{names}] : {box} }}")
    return PiecewiseLayout.of(found, ("offset",))
