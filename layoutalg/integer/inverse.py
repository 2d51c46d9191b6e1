"""Right inverses of integer layouts: on digits of the values, on the whole image box, or on exactly the image.

Main definitions: ``right_inverse``, ``RightInverse``, ``ImageInverse``, ``image_inverse``.

Main statements: where every input axis moves one output, and the strides of each output, sorted by size, start with a
chain 1, s_1, s_1 s_2, ..., the digits of a value along the chain are the coordinates; a negative stride reads its digit
backwards. So the right inverse is again an integer layout, without division, once values are given by digits. Where the
image is a whole box of as many values as there are points, an affine map modulo the extents is tried, which inverts
skews and rotations such as ``(i, j) -> (i + j mod 4, j)``. Otherwise the inverse is quasi-affine with a guard.

Implementation notes: engines from cheap to dear for the guarded inverse: one piece by linear algebra, chains of digits,
runs of values of a small layout, ISL. Each answer is evaluated and compared with the layout (``confirm``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from layoutalg.ground import clock
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, LayoutError, RepresentabilityError
from layoutalg.ground.limits import ISL_SECONDS
from layoutalg.integer.axes import same_function
from layoutalg.integer.closed import closed
from layoutalg.integer.compose import compose
from layoutalg.integer.confirm import confirmed, confirmed_on_digits
from layoutalg.integer.forms import residue_form
from layoutalg.integer.guarded import guarded, output_names
from layoutalg.integer.layout import IntegerLayout, layout_or_refuse
from layoutalg.integer.listed import listed
from layoutalg.integer.matrix import Vector
from layoutalg.integer.solve import NoSolution, solve_mod

if TYPE_CHECKING:
    from layoutalg.piecewise import ParametricLayout

LISTED_POINTS = 2048
"""Most points of a layout whose values are listed in runs."""
SMALL_POINTS = 512
"""Points of a layout that is listed in any number of runs."""
FEW_PIECES, MANY_PIECES = 64, 256
"""Runs of a larger layout: up to the first number they are the answer, up to the second where ISL has none."""


@dataclass(frozen=True, slots=True)
class RightInverse:
    """A right inverse on digits: ``f(layout(c)) = values(c)`` for every c in the box of digits.

    Args:
        layout: From the digits of the values to the input axes of f.
        values: From the digits to the outputs of f: a bijection onto the box ``[low, low + extent)`` per output.
        box: Per output of f, low and high (half-open) of the values that are inverted.
        confirmed: At which digits both sides were evaluated and compared.
    """

    layout: IntegerLayout
    values: IntegerLayout
    box: tuple[tuple[str, tuple[int, int]], ...]
    confirmed: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class ImageInverse:
    """A right inverse on exactly the image: ``f(layout(y)) = y`` for every value y of f, no point elsewhere.

    Args:
        layout: From the outputs of f to its input axes, with guards. Of several points with one value it takes the
            least, comparing the first axis first.
        confirmed: At which points of f the layout was evaluated and compared.
    """

    layout: ParametricLayout
    confirmed: str = field(default="", compare=False)


def right_inverse(layout: IntegerLayout) -> RightInverse | ImageInverse:
    """Return a right inverse, in the simplest family that holds it.

    Mathematically: where every axis of extent above 1 moves at most one output and no modulus wraps, the digits of
    output j are named ``<output>0, <output>1, ...``, fastest first, one per axis of the chain; values start at the
    least value that the chain's axes reach with all other axes at zero. Otherwise the values are the digits where the
    image is a box and the inverse is affine modulo the extents; else the inverse on the image has guards.

    Args:
        layout: At least one point.

    Returns:
        ``RightInverse``, checked by composition and by evaluation before it is returned; its box is ``[low, low + 1)``
        for an output without a stride 1 or -1. Or ``ImageInverse``.

    Raises: RepresentabilityError: LA735. BudgetError: LA741, LA742.

    Example:
        >>> found = right_inverse(IntegerLayout.from_strides({"i": 4, "j": 6}, (6, -1), 5))
        >>> print(found.layout)
        Z[offset0:6=(0,-1), offset1:4=(1,0) -> i, j] + (0,5)
        >>> found.box
        (('offset', (0, 24)),)
        >>> turn = IntegerLayout((("i", 4), ("j", 4)), (("row", 4), ("col", 0)), ((1, 1), (0, 1)), (0, 0))
        >>> print(right_inverse(turn).layout)
        Z[row0:4=(1,0), col0:4=(3,1) -> i%4, j%4]
        >>> skew = IntegerLayout((("i", 3), ("j", 4)), (("s", 0), ("t", 0)), ((1, 1), (0, 1)), (0, 0))
        >>> print(right_inverse(skew).layout)
        { [s, t] -> [(s - t), (t)] : t >= -2 + s and 0 <= t <= 3 and t <= s }
    """
    if not layout_or_refuse(layout).size:
        raise _refused(layout, "the layout has no points", {"size": 0})
    return _by_digits(layout) or _by_residues(layout) or image_inverse(layout)


def image_inverse(layout: IntegerLayout) -> ImageInverse:
    """Return the right inverse on exactly the image, as a guarded quasi-affine layout.

    Returns:
        ``ImageInverse``, whose text was evaluated and compared with the layout before it is returned: at all points
        where these are at most 2^16, else at some of them, as ``confirmed`` says.

    Raises: RepresentabilityError: LA735. BudgetError: LA741, LA742.

    Example:
        >>> found = image_inverse(IntegerLayout.from_strides({"i": 5}, (3,), 1))
        >>> print(found.layout)
        { [offset] -> [(floor((-1 + offset)/3))] : (-1 + offset) mod 3 = 0 and 0 < offset <= 13 }
        >>> found.confirmed
        'all 5 points'
    """
    if not layout_or_refuse(layout).size:
        raise _refused(layout, "the layout has no points", {"size": 0})
    from layoutalg.piecewise import ParametricLayout

    names = output_names(layout)
    runs = listed(layout, names) if layout.size <= LISTED_POINTS else None
    pieces = 0 if runs is None else runs.count(";") + 1
    engines: list[tuple[str, Callable[[], str | None]]] = [
        ("one piece", lambda: closed(layout, names)),
        ("digits", lambda: _chained(layout, names)),
        ("isl", lambda: guarded(layout).right_inverse().text),
    ]
    if 0 < pieces <= MANY_PIECES or layout.size <= SMALL_POINTS:
        engines.insert(2 if pieces <= FEW_PIECES else 3, ("runs", lambda: runs))
    tried: list[str] = []
    with clock.within(2 * ISL_SECONDS):
        for engine, find in engines:
            try:
                clock.check(f"the inverse of {layout}")
                text = find()
                if text is None:
                    continue
                inverse = ParametricLayout(text, outputs=tuple(layout.in_dims))
                return ImageInverse(inverse, confirmed(layout, inverse))
            except (BudgetError, AdmissibilityError) as error:  # ISL's own errors say nothing about the layout
                tried.append(f"{engine}: {error.diagnostic.code} {error.diagnostic.what}")
    raise BudgetError(
        Diagnostic(
            code="LA741",
            what="the inverse of the layout was not found",
            where=(str(layout),),
            because="; ".join(tried),
            witness={"points": layout.size},
        )
    )


def _chained(layout: IntegerLayout, names: Sequence[str]) -> str | None:
    """Return the inverse of outputs that are chains of digits, or None."""
    if any(sum(map(bool, column)) > 1 for column in layout.columns):
        return None
    from layoutalg.piecewise.chain import chain_inverse

    forward = guarded(layout)
    return chain_inverse(forward.text, forward.axes, names)


def _by_residues(layout: IntegerLayout) -> RightInverse | None:
    """Return the inverse that is affine modulo the extents, where the image is a box of as many values as points."""
    low, sizes = [], []
    for (bottom, top), m in zip(layout.spans(), layout.moduli, strict=True):
        low.append(0 if m else bottom)
        sizes.append(m or top - bottom + 1)
    if math.prod(sizes) != layout.size:
        return None
    width = len(layout.inputs)
    # values of an output over Z differ by less than its side, so they are residues modulo the side
    order = _box_order(layout, sizes)
    if order is None:
        return None
    turned = tuple(tuple(row[k] for k in order) for row in layout.matrix)
    found: list[Vector] = []
    corner = [a - b for a, b in zip(low, layout.offset, strict=True)]
    units = [[int(k == place) for k in range(len(sizes))] for place in range(len(sizes))]
    for step in ([0] * len(sizes), *units):
        # the particular solution is reduced by the kernel, so it is the point of the box
        answer = solve_mod(turned, [a + b for a, b in zip(corner, step, strict=True)], sizes, columns=width)
        if isinstance(answer, NoSolution):
            return None
        found.append(tuple(answer.particular[order.index(k)] for k in range(width)))
    columns = [[x - y for x, y in zip(point, found[0], strict=True)] for point in found[1:]]
    digits = tuple((f"{name}0", size) for name, size in zip(layout.out_dims, sizes, strict=True))
    if len({name for name, _ in digits}) < len(digits):
        return None
    inverse = IntegerLayout(
        digits, layout.inputs, tuple(tuple(column[k] for column in columns) for k in range(width)), found[0]
    )
    values = IntegerLayout(digits, layout.outputs, tuple(map(tuple, units)), tuple(low))
    try:
        exact = same_function(compose(layout, inverse), values)
    except (LayoutError, BudgetError):
        return None
    box = tuple((name, (a, a + size)) for name, a, size in zip(layout.out_dims, low, sizes, strict=True))
    seen = confirmed_on_digits(layout, inverse, values) if exact else None
    return None if seen is None else RightInverse(inverse, values, box, seen)


def _box_order(layout: IntegerLayout, sizes: list[int]) -> tuple[int, ...] | None:
    """Return an order of the axes in which the pivots of the kernel lattice are the extents: its box is the domain."""
    width = len(layout.inputs)
    orders = itertools.permutations(range(width)) if width <= 4 else (tuple(range(width)), tuple(range(width))[::-1])
    for order in orders:
        turned = tuple(tuple(row[k] for k in order) for row in layout.matrix)
        answer = solve_mod(turned, [0] * len(turned), sizes, columns=width)
        basis = answer.basis if not isinstance(answer, NoSolution) else ()
        if len(basis) == width and all(basis[k][k] == layout.extents[axis] for k, axis in enumerate(order)):
            return order
    return None


def _by_digits(layout: IntegerLayout) -> RightInverse | None:
    """Return the inverse along chains of strides, or None where an axis moves several outputs or a modulus wraps."""
    live = [k for k, extent in enumerate(layout.extents) if extent > 1]
    rows: list[Vector] = []
    starts: list[int] = []
    for m, row, b in zip(layout.moduli, layout.matrix, layout.offset, strict=True):
        form = residue_form(row, b, m, layout.extents)
        if form is None:
            return None
        rows.append(form[0])
        starts.append(form[1])
    if any(sum(1 for row in rows if row[k]) > 1 for k in live):
        return None
    digits: list[tuple[str, int]] = []
    inverse_columns: list[list[int]] = []
    value_columns: list[list[int]] = []
    base = [0] * len(layout.inputs)
    box = []
    for place, (name, _) in enumerate(layout.outputs):
        row, low, weight, used = rows[place], starts[place], 1, 0
        while True:
            # the longest axis with this stride reaches furthest
            found = [k for k in live if abs(row[k]) == weight]
            if not found:
                break
            k = max(found, key=lambda axis: layout.extents[axis])
            sign, extent = (1 if row[k] > 0 else -1), layout.extents[k]
            digits.append((f"{name}{used}", extent))
            inverse_columns.append([sign if axis == k else 0 for axis in range(len(layout.inputs))])
            value_columns.append([weight if other == place else 0 for other in range(len(layout.outputs))])
            if sign < 0:
                base[k] = extent - 1
                low -= weight * (extent - 1)
            weight, used = weight * extent, used + 1
        starts[place] = low
        box.append((name, (low, low + weight)))
    if len({name for name, _ in digits}) < len(digits):
        digits = [(f"digit{place}", extent) for place, (_, extent) in enumerate(digits)]
    count = len(digits)
    inverse = IntegerLayout(
        tuple(digits),
        tuple((name, 0) for name, _ in layout.inputs),
        tuple(tuple(inverse_columns[c][k] for c in range(count)) for k in range(len(layout.inputs))),
        tuple(base),
    )
    values = IntegerLayout(
        tuple(digits),
        layout.outputs,
        tuple(tuple(value_columns[c][j] for c in range(count)) for j in range(len(layout.outputs))),
        tuple(starts),
    )
    seen = confirmed_on_digits(layout, inverse, values) if same_function(compose(layout, inverse), values) else None
    return None if seen is None else RightInverse(inverse, values, tuple(box), seen)


def _refused(layout: IntegerLayout, because: str, witness: dict[str, object]) -> RepresentabilityError:
    return RepresentabilityError(
        Diagnostic(
            code="LA735",
            what="there is no right inverse",
            where=(str(layout),),
            because=because,
            witness=witness,
        )
    )
