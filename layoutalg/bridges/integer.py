"""Convert layouts to affine maps over Z or Z/m on boxes of any extents: exactly, or refused with a coordinate.

Over Z, a function of the flat coordinate is affine on some box exactly when it is a constant plus a strided layout. A
map ``M x xor c`` over F2 is such a function exactly when its columns have disjoint supports (``layoutalg.f2.carry``);
then column M_j becomes the stride ``(c xor M_j) - c``. On a given box, a table is affine modulo some m exactly when the
gcd of its departures from the affine map through the origin and the unit points exceeds all values. Any box refines to
one with prime extents, so trying every order of the prime factors decides every box.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.directions import from_coordinates
from layoutalg.bridges.linear import to_linear
from layoutalg.bridges.normal import (
    CONFIRM_POINTS,
    AnyFamily,
    Call,
    Given,
    checked,
    lowered,
    one_piece,
    total,
    undecided,
)
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.f2 import LinearLayout
from layoutalg.ground import clock
from layoutalg.ground import recognize as tables
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.integer import IntegerLayout, coalesced
from layoutalg.integer.matrix import transpose
from layoutalg.piecewise import PiecewiseLayout

BOXES = 64
"""Most boxes of prime extents on which a modulus is tried."""
MODULAR_SPAN = 2**38
"""Values of a table must be below this for a modulus to be tried."""
SAMPLED = 128
"""About how many points are sampled before a whole table is checked."""


def to_integer(layout: Given) -> IntegerLayout:
    """Return the layout as ``x -> A x + b`` on a box, modulo some m if needed, with the same flat coordinate.

    The axes ``c0, c1, ...`` are digits of the flat coordinate, fastest first; the output is ``offset``. An integer
    layout is returned unchanged; a one-piece piecewise layout with affine or residue outputs keeps its box and outputs.
    A Triton shared layout, which maps offsets to coordinates, is inverted first.

    Args:
        layout: A total layout of any family. The output of a linear layout is the packed one, of a hierarchical one the
            flat index of its target. Several outputs are allowed only for an integer layout or one affine piece.

    Raises: RepresentabilityError: LA660, LA661. BudgetError: LA233. MalformedError: LA234.

    Complexity: linear in the number of digits or bits where algebra decides, else O(N) per box.

    Example:
        >>> print(to_integer(CuteLayout((4, 3), (1, 5))))
        Z[c0:4=(1), c1:3=(5) -> offset]
        >>> print(to_integer(LinearLayout.from_bases({"i": [(3,), (2,)]}, {"o": 4})))
        Z[c0:4=(3) -> offset%4]
        >>> to_integer(LinearLayout.from_bases({"i": [(1,), (3,)]}, {"o": 4}))
        Traceback (most recent call last):
            ...
        layoutalg.ground.errors.RepresentabilityError: LA660 the layout is not affine over the integers on any box
          in     to_integer(F2[i=(1)(3) -> o:4])
          since  output bit 0 depends on input bits 0 and 1; no modulus helps
          at     x=1, y=2, f(x+y)=2, f(x)+f(y)-f(0)=4
    """
    layout = from_coordinates(checked(layout, "to_integer"))
    where = Call("to_integer", layout)
    total(layout, where)
    if isinstance(layout, IntegerLayout):
        return layout
    if isinstance(layout, PiecewiseLayout):
        return _from_pieces(layout, where)
    layout = lowered(layout)
    if isinstance(layout, IntegerLayout):
        return layout
    if isinstance(layout, CuteLayout):
        return _strided(layout.flat, 0)
    if isinstance(layout, ComposedLayout) and not any(swizzle.bits for swizzle, _ in layout.stages):
        return _strided(layout.base.flat, sum(offset for _, offset in layout.stages))
    if isinstance(layout, LinearLayout):
        return _from_linear(layout, where)
    if layout.size > CONFIRM_POINTS:
        return _large(layout)
    if not layout.size:
        return _strided(((0, 0),), 0)
    return _from_values(layout, layout.table(), where)


def _strided(modes: Sequence[tuple[int, int]], offset: int, modulus: int = 0) -> IntegerLayout:
    inputs = [(f"c{place}", extent) for place, (extent, _) in enumerate(modes)]
    return IntegerLayout.from_strides(inputs, [stride for _, stride in modes], offset, modulus=modulus)


def _merged(layout: IntegerLayout) -> IntegerLayout:
    modes = coalesced(layout)
    inputs = tuple((f"c{place}", extent) for place, (extent, _) in enumerate(modes))
    rows = transpose(tuple(column for _, column in modes), len(layout.outputs))
    return IntegerLayout(inputs, layout.outputs, rows, layout.offset)


def _from_linear(layout: LinearLayout, where: Call) -> IntegerLayout:
    """Convert a linear layout on its bits, coalesced."""
    constant, seen = layout.constant, 0
    for column in layout.columns:
        if seen & column:
            break
        seen |= column
    else:
        return _merged(_strided([(2, (constant ^ column) - constant) for column in layout.columns], constant))
    found, moduli = None, "moduli were not tried"
    if layout.size <= CONFIRM_POINTS and layout.out_bits <= MODULAR_SPAN.bit_length() - 1:
        found, moduli = _modular(layout.table(), [2] * layout.in_bits), "no modulus helps"
    if found is not None:
        return found
    high = next(k for k in range(layout.in_bits) if any(c & layout.columns[k] for c in layout.columns[:k]))
    low = next(k for k in range(high) if layout.columns[k] & layout.columns[high])
    bit = (layout.columns[low] & layout.columns[high]).bit_length() - 1
    x, y = 1 << low, 1 << high
    added = layout.at(x) + layout.at(y) - constant
    witness: dict[str, object] = {"x": x, "y": y, "f(x+y)": layout.at(x | y), "f(x)+f(y)-f(0)": added}
    raise _refused(where, f"output bit {bit} depends on input bits {low} and {high}; {moduli}", witness)


def _large(layout: AnyFamily) -> IntegerLayout:
    """Convert a swizzle stack that is too large to enumerate but collapses by algebra."""
    if layout.size & (layout.size - 1):
        raise undecided(layout, "the swizzles do not collapse by algebra")
    try:
        linear = to_linear(layout)
    except RepresentabilityError as error:
        raise undecided(layout, f"the swizzles do not collapse by algebra ({error.diagnostic.what})") from error
    return _from_linear(linear, Call("to_integer", layout))


def _from_pieces(layout: PiecewiseLayout, where: Call) -> IntegerLayout:
    """Convert one affine piece on its own box; decide other layouts by their values."""
    found = one_piece(layout)
    if found is not None:
        return found
    if layout.size > CONFIRM_POINTS:
        raise undecided(layout, "pieces and floors are compared point by point")
    if len(layout.out_dims) == 1:
        return _from_values(layout, layout.table(), where)
    witness: dict[str, object] = {"outputs": layout.out_dims}
    raise _refused(where, "several outputs are supported only for a single affine piece", witness)


def _from_values(layout: AnyFamily, values: npt.NDArray[np.int64], where: Call) -> IntegerLayout:
    """Convert a table to a constant plus strides, or modulo some m on a box of prime extents."""
    modes = tables.strided(values)
    if not isinstance(modes, tables.Departure):
        return _strided(modes, int(values[0]))
    moduli = "moduli were not tried"
    if int(values.min()) >= 0 and int(values.max()) < MODULAR_SPAN:
        moduli = "no modulus helps"
        for count, box in enumerate(_prime_boxes(len(values))):
            clock.check("a modulus of a table")
            if count == BOXES:
                moduli = f"moduli were tried on only {BOXES} boxes"
                break
            found = _modular(values, box)
            if found is not None:
                return found
    at = modes.coordinate
    witness: dict[str, object] = {"coordinate": at, "value": layout.at(at), "strided": modes.forced}
    because = f"f({at}) = {witness['value']}, an affine layout would give {modes.forced}; {moduli}"
    raise _refused(where, because, witness)


def _modular(values: npt.NDArray[np.int64], box: Sequence[int]) -> IntegerLayout | None:
    """Return the table modulo the largest m for which it is affine on the box, or None."""
    origin, top = int(values[0]), int(values.max())
    weights = [math.prod(box[:place]) for place in range(len(box))]
    strides = [int(values[weight]) - origin for weight in weights]
    # an odd step varies every digit; a few departures with a small gcd refute most boxes
    for step in (len(values) // SAMPLED | 1, 1):
        index = np.arange(0, len(values), step, dtype=np.int64)
        departure = values[::step] - origin
        for weight, extent, stride in zip(weights, box, strides, strict=True):
            departure = departure - index // weight % extent * stride
        m = int(np.gcd.reduce(departure))
        if 0 < m <= top or step == 1:
            break
    if m <= top:
        return None
    return _merged(_strided([*zip(box, strides, strict=True)], origin, m))


def _prime_boxes(size: int) -> Iterator[list[int]]:
    """Yield the distinct orders of the prime factors of a size."""
    counts: dict[int, int] = {}
    rest, prime = size, 2
    while rest > 1:
        if prime * prime > rest:
            prime = rest
        while rest % prime == 0:
            counts[prime] = counts.get(prime, 0) + 1
            rest //= prime
        prime += 1
    return _orders(counts)


def _orders(counts: dict[int, int]) -> Iterator[list[int]]:
    if not counts:
        yield []
    for prime in counts:
        left = {other: count - (other == prime) for other, count in counts.items()}
        for tail in _orders({other: count for other, count in left.items() if count}):
            yield [prime, *tail]


def _refused(where: Call, because: str, witness: dict[str, object]) -> RepresentabilityError:
    what = "the layout is not affine over the integers on any box"
    return RepresentabilityError(Diagnostic("LA660", what, (str(where),), because, witness))
