"""Convert layouts to affine maps over F2, and over Z or Z/m on boxes of any extents: exact, or refused with a witness.

Over F2, algebra decides without enumeration whether a CuTe layout or a swizzle stack over one is affine (lemma and
proof in ``layoutalg.f2.carry``): with power-of-two extents, offset o and strides d, exactly when the integers
``(o + d 2^j) xor o`` have pairwise disjoint bits. A swizzle is invertible and linear, so it changes nothing. A sum
modulo 2^k obeys the same lemma on k bits, except that supports may also overlap in the top bit k - 1, whose carry is
dropped.

Over Z, a function of the flat coordinate is affine on some box exactly when it is a constant plus a strided layout. A
map ``M x xor c`` over F2 is such a function exactly when its columns have disjoint supports; then column M_j becomes
the stride ``(c xor M_j) - c``. On a given box, a table is affine modulo some m exactly when the gcd of its departures
from the affine map through the origin and the unit points exceeds all values. Any box refines to one with prime
extents, so trying every order of the prime factors decides every box.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.normal import (
    CONFIRM_POINTS,
    AnyFamily,
    Call,
    Given,
    LinearForm,
    checked,
    family_of,
    from_coordinates,
    lowered,
    one_output,
    one_piece,
    total,
    undecided,
)
from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.cute.fit import carry_free
from layoutalg.f2 import LinearLayout
from layoutalg.f2.carry import sum_of_bits
from layoutalg.ground import clock
from layoutalg.ground import recognize as tables
from layoutalg.ground.errors import Diagnostic, RepresentabilityError
from layoutalg.integer import IntegerLayout, coalesced
from layoutalg.integer.forms import residue_form
from layoutalg.integer.matrix import transpose
from layoutalg.piecewise import PiecewiseLayout

BOXES = 64
"""Most boxes of prime extents on which a modulus is tried."""
MODULAR_SPAN = 2**38
"""Values of a table must be below this for a modulus to be tried."""
SAMPLED = 128
"""About how many points are sampled before a whole table is checked."""


# over F2


def to_linear(layout: Given) -> LinearLayout:
    """Return the layout as one affine map over F2 from the flat coordinate ``i`` to ``offset``.

    Mathematically: with x the flat coordinate, the value is ``M x xor c``. The input axis ``i`` has the layout's size;
    the output axis ``offset`` is the least power of two above every value (for a linear layout, its packed codomain).

    Args:
        layout: A layout of any family; offsets in elements. A piecewise or integer layout must have a single output;
            the value of a hierarchical one is the flat index of its target.

    Example:
        >>> print(to_linear(CuteLayout((2, 4), (12, 1))))
        F2[i=(12)(1)(2) -> offset:16]
        >>> to_linear(CuteLayout((4, 4), (1, 2)))
        Traceback (most recent call last):
            ...
        layoutalg.ground.errors.RepresentabilityError: LA230 the layout is not affine over F2
          in     to_linear((4,4):(1,2))
          since  f(6) = 4, but f(4) xor f(2) xor f(0) = 0; layoutalg.convert.to_piecewise represents it exactly
          at     x=4, y=2, f(x^y)=4, f(x)^f(y)^f(0)=0

    Source: the carry-free lemma of ``layoutalg.f2.carry``.
    """
    layout = checked(layout, "to_linear")
    where = Call("to_linear", layout)
    _one_power_of_two(layout, where)
    size = layout.size
    form = _form(layout)
    if isinstance(form, tables.Departure):
        raise _not_linear(layout, where, form.coordinate)
    columns, constant = form
    negative = [0] if constant < 0 else [1 << bit for bit, column in enumerate(columns) if column < 0]
    if negative:
        value = constant ^ (columns[negative[0].bit_length() - 1] if negative[0] else 0)
        what = "the layout has a negative value"
        because = f"f({negative[0]}) = {value}; values of an F2 map are in [0, 2**n)"
        raise RepresentabilityError(
            Diagnostic("LA232", what, (str(where),), because, {"coordinate": negative[0], "value": value})
        )
    bits = max((value.bit_length() for value in (constant, *columns)), default=0)
    if isinstance(layout, LinearLayout):
        bits = layout.out_bits
    return LinearLayout((("i", size.bit_length() - 1),), (("offset", bits),), columns, constant)


def _one_power_of_two(layout: AnyFamily, where: Call) -> None:
    """Raise on a partial tile, several outputs, or a size that is not a power of two (LA231)."""
    total(layout, where)
    one_output(layout, where)
    size = layout.size
    if size < 1 or size & (size - 1):
        what = "the size of the layout is not a power of two"
        because = f"an F2 map has 2**n points, the layout has {size}" + (
            "; layoutalg.convert.to_piecewise represents it exactly" if size else ""
        )
        raise RepresentabilityError(Diagnostic("LA231", what, (str(where),), because, {"size": size}))


def linear_form(layout: Given) -> LinearForm | tables.Departure:
    """Return (columns, constant) over F2 of the flat coordinate, or the first departure from any such form.

    Columns and constant are two's complement integers, so negative values are allowed.

    Args:
        layout: A total layout with one output whose size is a power of two.

    Example:
        >>> linear_form(CuteLayout((2, 2), (1, -2)))
        ((1, -2), 0)
        >>> linear_form(CuteLayout((2, 2), (1, 3)))
        Departure(coordinate=3, value=4, forced=2)
    """
    layout = checked(layout, "linear_form")
    _one_power_of_two(layout, Call("linear_form", layout))
    return _form(layout)


def _form(layout: AnyFamily) -> LinearForm | tables.Departure:
    found = lowered(layout)
    return family_of(found).form(found)


def form_of_strided(layout: CuteLayout | ComposedLayout) -> LinearForm | tables.Departure:
    """Return the form over F2 of strides under swizzles and offsets: an addition that carries refutes it."""
    form, open_end = carry_free(layout)
    return _departure(layout, open_end) if form is None else form


def form_of_pieces(layout: PiecewiseLayout) -> LinearForm | tables.Departure:
    """Return the form over F2 of several pieces, from the table."""
    if layout.size > CONFIRM_POINTS:
        raise undecided(layout, "a piecewise layout is compared point by point")
    return tables.linear(layout.table())


def _departure(layout: CuteLayout | ComposedLayout, open_end: bool) -> LinearForm | tables.Departure:
    """Return where a layout with an inner carry is not affine.

    Later swizzles cannot cancel a carry, but later offsets (``open_end``) could; then the values decide.
    """
    if open_end and layout.size <= CONFIRM_POINTS:
        return tables.linear(layout.table())
    found = _first_pair(layout.__call__, layout.size.bit_length() - 1)
    if found is None:
        raise undecided(layout, "the carries of the inner offsets might cancel in the outer ones")
    return found


def form_of_residue(layout: IntegerLayout) -> LinearForm | tables.Departure:
    """Return the columns of ``(sum of row x + b) mod m``, or the least departure.

    If m is not a power of two and the table is too large, the departure is the least coordinate with two bits set.
    """
    row, b, m = layout.matrix[0], layout.offset[0], layout.moduli[0]
    form = residue_form(row, b, m, layout.extents)
    if form is not None:
        (row, b), m = form, 0
    addends = [a << bit for a, n in zip(row, layout.extents, strict=True) for bit in range(n.bit_length() - 1)]
    if not m:
        columns = sum_of_bits(b, addends)
        if columns is not None:
            return columns, b
    elif not m & (m - 1):
        below = (m >> 1) - 1
        masked = [((b + a) ^ b) & (m - 1) for a in addends]
        if sum_of_bits(0, [column & below for column in masked]) is not None:
            return tuple(masked), b
    elif layout.size <= CONFIRM_POINTS and m < 2**62:
        return tables.linear(layout.table())
    found = _first_pair(lambda index: layout.value(layout.coordinate(index))[0], len(addends))
    if found is None:
        raise undecided(layout, f"residues modulo {m} are compared point by point, as 62-bit numbers")
    return found


def _first_pair(value: Callable[[int], int], bits: int) -> tables.Departure | None:
    """Return the least coordinate with two bits set where ``value`` is not affine over F2."""
    origin = value(0)
    units = [value(1 << bit) for bit in range(bits)]
    for high in range(bits):
        for low in range(high):
            found, forced = value(1 << high | 1 << low), units[high] ^ units[low] ^ origin
            if found != forced:
                return tables.Departure(1 << high | 1 << low, found, forced)
    return None


def _not_linear(layout: AnyFamily, where: Call, coordinate: int) -> RepresentabilityError:
    """Return the error at a coordinate below which the layout agrees with an affine map."""
    x = 1 << (coordinate.bit_length() - 1)
    y = coordinate ^ x
    value, *others = (int(layout.at(index)) for index in (coordinate, x, y, 0))  # type: ignore[arg-type]
    forced = others[0] ^ others[1] ^ others[2]
    what = "the layout is not affine over F2"
    because = (
        f"f({coordinate}) = {value}, but f({x}) xor f({y}) xor f(0) = {forced}; "
        "layoutalg.convert.to_piecewise represents it exactly"
    )
    return RepresentabilityError(
        Diagnostic("LA230", what, (str(where),), because, {"x": x, "y": y, "f(x^y)": value, "f(x)^f(y)^f(0)": forced})
    )


# over Z and Z/m


def to_integer(layout: Given) -> IntegerLayout:
    """Return the layout as ``x -> A x + b`` on a box, modulo some m if needed, with the same flat coordinate.

    The axes ``c0, c1, ...`` are digits of the flat coordinate, fastest first; the output is ``offset``. An integer
    layout is returned unchanged; a one-piece piecewise layout with affine or residue outputs keeps its box and outputs.
    A Triton shared layout, which maps offsets to coordinates, is inverted first.

    Args:
        layout: A total layout of any family. The output of a linear layout is the packed one, of a hierarchical one the
            flat index of its target. Several outputs are allowed only for an integer layout or one affine piece.

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
    if isinstance(layout, PiecewiseLayout):
        return _from_pieces(layout, where)
    found = over_z(layout)
    if found is not None:
        return found
    layout = lowered(layout)
    if isinstance(layout, LinearLayout):
        return _from_linear(layout, where)
    if layout.size > CONFIRM_POINTS:
        return _large(layout)
    if not layout.size:
        return _strided(((0, 0),), 0)
    return _from_values(layout, layout.table(), where)


def over_z(layout: AnyFamily) -> IntegerLayout | None:
    """Return a layout as an integer one if it is one, or lowers to strides without swizzles; else None."""
    found = family_of(layout).strides(layout)
    if found is not None:
        return found
    narrow = lowered(layout)
    return family_of(narrow).strides(narrow)


def strides_of(layout: CuteLayout | ComposedLayout) -> IntegerLayout | None:
    """Return strides under offsets as an integer layout; None under swizzles."""
    if any(swizzle.bits for swizzle, _ in layout.stages):
        return None
    return _strided(layout.base.flat, sum(offset for _, offset in layout.stages))


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
    found, moduli = residues(layout.table()) if layout.out_bits < 63 else (None, "moduli were not tried")
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


def residues(values: npt.NDArray[np.int64], box: Sequence[int] | None = None) -> tuple[IntegerLayout | None, str]:
    """Return a table as an affine map modulo some m, and in words what was tried where that is None.

    Args:
        values: The table.
        box: Extents of the axes, fastest first, which multiply to the number of entries; None for any box.
    """
    if len(values) > CONFIRM_POINTS or int(values.min()) < 0 or int(values.max()) >= MODULAR_SPAN:
        return None, "moduli were not tried"
    for count, extents in enumerate([box] if box is not None else _prime_boxes(len(values))):
        clock.check("a modulus of a table")
        if count == BOXES:
            return None, f"moduli were tried on only {BOXES} boxes"
        found = _modular(values, extents)
        if found is not None:
            return found if box is not None else _merged(found), ""
    return None, "no modulus helps"


def _from_values(layout: AnyFamily, values: npt.NDArray[np.int64], where: Call) -> IntegerLayout:
    """Convert a table to a constant plus strides, or modulo some m on a box of prime extents."""
    modes = tables.strided(values)
    if not isinstance(modes, tables.Departure):
        return _strided(modes, int(values[0]))
    found, moduli = residues(values)
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
    strides = [int(values[weight]) - origin if n > 1 else 0 for weight, n in zip(weights, box, strict=True)]
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
    return _strided([*zip(box, strides, strict=True)], origin, m)


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
