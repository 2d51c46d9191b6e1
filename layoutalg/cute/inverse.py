"""Two-sided, left and right inverses of CuTe, composed and coordinate layouts.

Notation: a composed layout is ``g o L`` with g the stack of swizzles and offsets, a bijection of the integers, and L
the CuTe layout at the bottom. ``|L|`` has the absolute values of the strides; with ``low`` the least value of L and
``flip`` the map that reverses the digits of negative modes, ``L = low + |L| o flip``.

Main statements: the strides of a layout onto [0, n) form the chain 1, s_1, s_1 s_2, ... in some order of its modes;
reading the chain back, with each mode's weight in the 1-D coordinate as stride, inverts it.
``flip o (inverse of |L|) o (subtract low) o g^-1`` inverts ``g o L``. Where ``g o L`` is affine over F2,
``x -> M x xor c``, so is ``y -> P (y xor c)`` with M P M = M, for any offsets; its domain is [0, 2^m) with m the number
of low unit vectors in the image of M (right), or every bit of the values (left).

References: J. Cecka, arXiv:2603.02298; CuTe ``right_inverse`` and ``left_inverse``, which reject swizzles or handle
special cases only.
"""

from __future__ import annotations

from typing import TypeAlias, cast, overload

import numpy as np

from layoutalg.cute.complement import Chain, divisible_chain, weighted
from layoutalg.cute.composition import after
from layoutalg.cute.coordinates import CoordinateLayout
from layoutalg.cute.fit import Affine, affine, first_leaving, over_f2, over_table, simplify
from layoutalg.cute.inttuple import graft, unflatten
from layoutalg.cute.layout import CuteLayout, from_flat, inverse
from layoutalg.cute.operands import cached, refusal, require_cute
from layoutalg.cute.swizzle import IDENTITY, ComposedLayout, Cute, staged
from layoutalg.f2 import matrix
from layoutalg.ground.digits import Flat, evaluate_many, merge, span
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, RepresentabilityError
from layoutalg.ground.limits import CUTE_POINTS

Turned: TypeAlias = tuple[CuteLayout, int, int, Flat]
"""``|L|`` without nesting, ``low``, and ``flip`` as a constant and a digit list with weights of either sign."""


@cached
def right_strided(layout: CuteLayout) -> CuteLayout:
    """Return ``right_inverse`` of a CuTe layout."""
    _require_points(layout, "right_inverse")
    return from_flat(right_digits(layout.flat))


def right_digits(flat: Flat) -> Flat:
    """Return the merged digits of the right inverse of a non-empty digit list.

    Example:
        >>> right_digits(((4, 8), (8, 1)))
        ((8, 4), (4, 1))
    """
    digits: list[tuple[int, int]] = []
    current = 1
    for extent, stride, weight in sorted(weighted(flat), key=lambda mode: mode[1]):  # of equal strides the first counts
        if stride == current:
            digits.append((extent, weight))
            current *= extent
    return merge(tuple(digits))


@cached
def left_strided(layout: CuteLayout) -> CuteLayout:
    """Return ``left_inverse`` of a CuTe layout."""
    chain = divisible_chain(layout.flat, lambda: f"left_inverse({layout})", padded=True)
    return from_flat(left_digits(chain))


def left_digits(chain: Chain) -> Flat:
    """Return the merged digits of the left inverse of a chain of modes, whose rows may be padded.

    Example:
        >>> left_digits(((4, 2, 1),))
        ((2, 0), (4, 1))
    """
    digits: list[tuple[int, int]] = []
    end, last = 1, (1, 1, 0)  # end of the digits so far, and the mode of the last one
    for mode in chain:
        extent, stride, weight = mode
        if stride % end:
            digits[-1] = (stride // last[1], last[2])  # padding: the digit before runs through the gap
        else:
            digits.append((stride // end, 0))
        digits.append((extent, weight))
        end, last = extent * stride, mode
    return merge(tuple(digits))


@overload
def right_inverse(layout: CuteLayout | CoordinateLayout) -> CuteLayout: ...
@overload
def right_inverse(layout: ComposedLayout) -> Cute: ...
def right_inverse(layout: Cute | CoordinateLayout) -> Cute:
    """Return the coalesced R from offsets to 1-D coordinates with layout(R(i)) = i for all i < size(R).

    Mathematically: a section of L over [0, size(R)), found by following the strides 1, s, s t, ... through the modes;
    modes that do not continue the chain are left out, so R may be as small as ``1:0``. For a swizzled layout: undo the
    swizzles, then apply that of the bottom layout, as far as its domain reaches. For a coordinate layout: R maps
    coordinates to indices and nests like the values; each leaf follows the chain of its own component, through modes
    that move nothing else.

    Args:
        layout: Any non-empty layout; stride-0 and negative modes are ignored. Elements.

    Complexity: O(k log k) for k modes.

    Example:
        >>> print(right_inverse(CuteLayout((4, 8), (8, 1))))
        (8,4):(4,1)
        >>> from layoutalg.cute.swizzle import Swizzle
        >>> print(right_inverse(CuteLayout(4, 2)), right_inverse(ComposedLayout(IDENTITY, 5, CuteLayout(6, -1))))
        1:0 5 + 6:-1
        >>> print(right_inverse(ComposedLayout(Swizzle(3, 0, 3), 0, CuteLayout((8, 8), (8, 1)))))
        Sw<3,0,-3> o 0 o (8,8):(8,1)
        >>> from layoutalg.cute.coordinates import make_identity_layout
        >>> print(right_inverse(make_identity_layout((4, (2, 3)))))
        (4,(2,3)):(1,(4,8))

    Laws: composition(L, R) is the identity on [0, size(R)).
    """
    if isinstance(layout, CuteLayout):
        return right_strided(layout)
    if isinstance(layout, CoordinateLayout):
        return _right_of_coordinates(layout)
    return _right_of_composed(require_cute(layout, "right_inverse"))


def _right_of_coordinates(layout: CoordinateLayout) -> CuteLayout:
    """Return R from coordinates to indices: each leaf follows the strides of its component that move nothing else."""
    strides = [entry for _, entry in layout.flat]
    parts: list[CuteLayout] = []
    for path, _ in layout.components:
        own = [entry.scale(path) if len(entry.terms) == 1 else 0 for entry in strides]
        parts.append(right_strided(CuteLayout(layout.shape, unflatten(tuple(own), layout.shape))))
    shape = graft(iter([part.shape for part in parts]), layout.profile)
    return CuteLayout(shape, graft(iter([part.stride for part in parts]), layout.profile))


def _right_of_composed(layout: ComposedLayout) -> Cute:
    """Return the larger of two: the greatest over F2 whose size is a power of two, and ``right_inverse(|L|)`` after
    undoing the stages, on the longest [0, n) that maps into its domain, or on the greatest power of two below n if only
    that has a CuTe form."""
    _require_points(layout, "right_inverse")
    best: Cute | None = None
    form = right_affine(layout)
    if form is not None:
        size = 1 << len(form[0])
        best = over_f2(*form, size) if size > 1 or layout(form[1]) == 0 else CuteLayout(0, 0)
    try:
        other = _right_by_chain(layout)
    except (RepresentabilityError, BudgetError):
        if best is None:
            raise
        return best
    return other if best is None or other.size > best.size else best


def right_affine(layout: Cute) -> Affine | None:
    """Return the right inverse of a layout that is affine over F2, on the most bits; None if it is not affine.

    Columns for bits 0 .. m - 1 of the offset; with m = 0 and offset 0 missed, the constant has no meaning.
    """
    form = affine(layout)
    if form is None or min(form[1], *form[0], 0) < 0:
        return None
    columns, constant = form
    start = matrix.solve(columns, constant)
    if start is None:
        return (), 0
    found: list[int] = []
    while (unit := matrix.solve(columns, 1 << len(found))) is not None:
        found.append(unit[0])
    return tuple(found), start[0]


def _right_by_chain(layout: ComposedLayout) -> Cute:
    upright, low, constant, weights = _turned(layout.base)
    outer = right_strided(upright)
    undo = _undoing(layout, 1, low)
    bound = _first_outside(undo, outer.size)
    if bound == 0:
        return CuteLayout(0, 0)
    for size in (bound, 1 << (bound.bit_length() - 1)):
        rest = undo.rebase(CuteLayout(size, 1))
        if upright.flat == layout.base.flat or not constant:
            try:
                return after(outer, rest)
            except RepresentabilityError:
                if size == 1 << (bound.bit_length() - 1):
                    raise
        elif size <= CUTE_POINTS:
            coordinates = evaluate_many(merge(outer.flat), rest.table())
            found = over_table(constant + evaluate_many(weights, coordinates), size)
            if found is not None:
                return found
        else:
            raise _gave_up("right_inverse", layout, f"the inverse has {size} points")
    raise _no_form("right_inverse", layout)


@overload
def left_inverse(layout: CuteLayout) -> CuteLayout: ...
@overload
def left_inverse(layout: ComposedLayout) -> Cute: ...
def left_inverse(layout: Cute) -> Cute:
    """Return R with R(layout(i)) = i where the layout is injective, and layout(R(layout(i))) = layout(i) always.

    Mathematically: a retraction of L. The strides must form a divisibility chain; rows may be padded by any amount.
    Offsets that L skips get some value; in a whole gap, that of its first offset. Other injective layouts have an
    inverse in a wider family: ``layoutalg.left_inverse(layout, widen=True)``.

    Args:
        layout: Strides >= 0; once stride-0 modes are dropped, each stride is a multiple of the one before it and at
            least its stride times extent. Elements.

    Returns:
        Coalesced layout from offsets to 1-D coordinates, defined on at least [0, cosize).

    Complexity: O(k log k) for k modes.

    Example:
        >>> print(left_inverse(CuteLayout((4, 8), (8, 1))))
        (8,4):(4,1)
        >>> print(left_inverse(CuteLayout(4, 2)))
        (2,4):(0,1)
        >>> print(left_inverse(CuteLayout((8, 16), (1, 12))))
        (12,16):(1,8)

    Laws: composition(R, L) is the identity on L's domain where L is injective.
    """
    if isinstance(layout, CuteLayout):
        return left_strided(layout)
    own = require_cute(layout, "left_inverse")
    _require_points(own, "left_inverse")
    form = simplify(own)
    if isinstance(form, ComposedLayout):
        return _left_of_composed(form)
    try:
        return left_strided(form)
    except AdmissibilityError as error:
        if error.diagnostic.code != "LA134":
            raise
    return _left_of_composed(own)


def _left_of_composed(layout: ComposedLayout) -> Cute:
    """Return R on an interval [0, n) that contains every value; skipped offsets get some number."""
    low, high = layout.value_range()
    if low < 0:
        because = f"its least value is {low}, but inverses are defined from 0 on"
        raise AdmissibilityError(
            Diagnostic("LA649", "the layout has a negative value", (f"left_inverse({layout})",), because)
        )
    form = left_affine(layout)
    if form is not None:
        found = over_f2(*form, 1 << len(form[0]))
        if found is not None:
            return found
    upright, lowest, constant, weights = _turned(layout.base)
    outer = left_strided(upright)
    # If L takes multiples of its least stride, adding less than that changes no digit of the inverse.
    steps = [stride for extent, stride in upright.flat if extent > 1 and stride]
    least = min(steps, default=1)
    slack = 0 if any(stride % least for stride in steps) else (layout.stages[-1][1] + lowest) % least
    inside = outer.size // (merge(outer.flat) or ((1, 0),))[-1][0]
    for size in dict.fromkeys(-(-(high + 1) // unit) * unit for unit in (1, layout.period, inside)):
        if size > CUTE_POINTS:
            raise _gave_up("left_inverse", layout, f"the inverse has {size} points")
        for low in (lowest - slack, lowest) if slack else (lowest,):
            coordinates = evaluate_many(merge(outer.flat), _undoing(layout, size, low).table())
            found = over_table(constant + evaluate_many(weights, coordinates), size)
            if found is not None:
                return found
    raise _no_form("left_inverse", layout)


def left_affine(layout: Cute) -> Affine | None:
    """Return y -> P (y xor c) with M P M = M for a layout x -> M x xor c over F2; None if it is not affine."""
    form = affine(layout)
    if form is None or min(form[1], *form[0], 0) < 0:
        return None
    columns, constant = form
    reduced = matrix.eliminate(columns)
    width = max(value.bit_length() for value in (constant, *columns, 0))
    answer = [0] * width
    for vector, combination in reduced.pivots:  # no other vector has its highest bit
        answer[vector.bit_length() - 1] = combination
    return tuple(answer), matrix.apply(answer, constant)


def _turned(layout: CuteLayout) -> Turned:
    """Return ``|L|``, its lowest value and the digit flip of its negative modes."""
    flat = merge(layout.flat)
    upright = CuteLayout(tuple([extent for extent, _ in flat]), tuple([abs(stride) for _, stride in flat]))
    constant, weight = 0, 1
    weights: list[tuple[int, int]] = []
    for extent, stride in flat:
        weights.append((extent, weight if stride >= 0 else -weight))
        constant += (extent - 1) * weight if stride < 0 else 0
        weight *= extent
    return upright if flat else CuteLayout(1, 0), span(flat)[0], constant, tuple(weights)


def _undoing(layout: ComposedLayout, size: int, low: int = 0) -> ComposedLayout:
    """Return the inverse of the layout's stages on [0, size), minus ``low``."""
    offsets = [0, *[-offset for _, offset in layout.stages]]
    undone = [(swizzle, offset) for (swizzle, _), offset in zip(layout.stages, offsets, strict=False)]
    return cast(ComposedLayout, staged([(IDENTITY, offsets[-1] - low), *reversed(undone)], CuteLayout(size, 1)))


def _first_outside(undo: ComposedLayout, bound: int) -> int:
    """Return the least i >= 0 with undo(i) outside [0, bound)."""
    if undo.period == 1:
        return max(0, bound - undo.offset) if undo.offset >= 0 else 0
    if len(undo.stages) == 1 and undo.offset == 0:
        size = 1 << bound.bit_length()
        found = first_leaving(undo.outer, size, bound)
        return size if found is None else found
    reach = 2 * (bound + undo.period) + sum(abs(offset) for _, offset in undo.stages)
    values = undo.rebase(CuteLayout(min(CUTE_POINTS, reach), 1)).table()
    outside = np.flatnonzero((values < 0) | (values >= bound))
    if outside.size:
        return int(outside[0])
    because = f"it stays inside [0, {bound}) on the first {len(values)} offsets, where the search stops"
    raise BudgetError(Diagnostic("LA648", "how far the inverse reaches was not decided", (str(undo),), because))


@inverse.register
def _of_strided(layout: CuteLayout) -> CuteLayout:
    if layout.size == 0:
        return CuteLayout(0, 0)
    found = right_strided(layout)
    if found.size == layout.size:
        return found
    weight = 1
    for extent, stride in merge(layout.flat):  # a mode off the chain explains the failure
        if stride < 0:
            raise _not_onto(layout, f"it has the value {stride} at coordinate {weight}", weight, stride)
        if stride < found.size and found(stride) != weight:
            because = f"it has the value {stride} at the coordinates {found(stride)} and {weight}"
            raise _not_onto(layout, because, weight, stride)
        weight *= extent
    raise _not_onto(layout, f"it does not take the value {found.size}", None, found.size)


@inverse.register
def _of_composed(layout: ComposedLayout) -> Cute:
    if layout.size == 0:
        return CuteLayout(0, 0)
    low, high = layout.value_range()
    if (low, high) != (0, layout.size - 1):
        missed = 0 if low > 0 else layout.size
        value = low if low < 0 else high if high >= layout.size else None
        because = f"it takes values from {low} to {high}"
        raise _not_onto(layout, because, None, missed if value is None else value)
    if layout.size <= CUTE_POINTS:
        values, first = np.unique(layout.table(), return_index=True)
        if len(values) < layout.size:
            place = int(np.setdiff1d(np.arange(layout.size), first)[0])
            value = layout(place)
            because = f"it has the value {value} at the coordinates {int(first[value == values][0])} and {place}"
            raise _not_onto(layout, because, place, value)
    found = right_inverse(layout)
    if found.size == layout.size:
        return found
    raise _no_form("inverse", layout)


@inverse.register
def _of_coordinates(layout: CoordinateLayout) -> CuteLayout:
    if len(layout.components) == 1:
        return _of_strided(layout.components[0][1])
    raise _not_onto(layout, "its values are coordinates; use right_inverse to map them to indices", None, None)


def _not_onto(
    layout: Cute | CoordinateLayout, because: str, coordinate: int | None, value: int | None
) -> AdmissibilityError:
    known = {"coordinate": coordinate, "value": value}
    witness = {key: entry for key, entry in known.items() if entry is not None} or None
    return AdmissibilityError(
        Diagnostic(
            "LA135", "the layout is not a bijection onto [0, size)", (f"({layout}).inverse()",), because, witness
        )
    )


def _require_points(layout: Cute, name: str) -> None:
    if layout.size == 0:
        because = "an empty layout has no offset 0"
        raise refusal("LA131", "the layout is empty", f"{name}({layout})", because)


def _no_form(name: str, layout: ComposedLayout) -> RepresentabilityError:
    because = "undoing a swizzle never gives a strided layout"
    return RepresentabilityError(
        Diagnostic(
            "LA643",
            "the inverse is not shape:stride under at most one swizzle",
            (f"{name}({layout})",),
            because,
            source=f"layoutalg.{name}(layout, widen=True), which gives it in a wider family",
        )
    )


def _gave_up(name: str, layout: ComposedLayout, because: str) -> BudgetError:
    because = f"{because}, the limit is {CUTE_POINTS}"
    return BudgetError(
        Diagnostic("LA644", "whether the inverse has a CuTe form was not decided", (f"{name}({layout})",), because)
    )
