"""Bijections of [0, N): digit maps, and tables for the rest, with exact composition and inverse.

A digit map permutes mixed-radix digits and mixes bits over F2; digit permutations and affine maps over F2 are the two
special cases. Coalesced modes and flips are a unique normal form. For plain digits this is the uniqueness of coalesced
strides. For the others, the function determines whether the bit at a source boundary p flips shared target bits (then
f(x + p) - f(x) is not constant where the bit does not overflow), and which bits, from the Fourier expansion of f, whose
terms are distinct characters. ``canonical`` returns a digit map if the function is one, otherwise the table, so two
canonical bijections are the same function exactly when they compare equal.

Every operation refines to common digits, works on the pieces and the image of 0, and normalises with ``assemble``. If
boundaries do not divide each other (extents 2, 3 against 3, 2), a composition is a table of up to 2**20 points.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from layoutalg.f2 import matrix
from layoutalg.ground import digits, limits
from layoutalg.ground.check import refuse
from layoutalg.ground.digits import Digits, IntArray, Stride, merge, placed, shared_bits, split_at, weights
from layoutalg.ground.errors import AdmissibilityError, BudgetError, Diagnostic, LayoutError, shown
from layoutalg.hierarchy.levels import HIERARCHY_BITS, check, integer, malformed

ARRAY_LIMIT = 2**62


@dataclass(frozen=True, slots=True, repr=False)
class DigitMap:
    """A permutation of mixed-radix digits, possibly reversed, with bits mixed over F2.

    Mathematically: let c_k be the source digits of extents e_k, fastest first. A mode (e, d) with an integer d adds
    d c, for negative d also (e - 1) |d|. A mode (2, (w, v, ...)) flips the target bits of weights w, v, ... if c is 1.
    These target bits are shared: other modes of extent 2 may flip them too (an integer stride w flips w alone), and
    those in ``flips`` start as 1. The target digits, i.e. the |d| with their extents and the shared bits, must form
    running products, and the matrix of the shared bits must be invertible.

    Args:
        modes: (extent, stride) pairs, fastest first. Kept coalesced: no extent 1, no fusible neighbours, no tuples
            unless a bit is shared.
        flips: Weights of shared target bits, kept sorted.

    Example:
        Digits permuted and reversed; a column xored by row bit 0 in a tile of 4 columns and 6 rows:

        >>> DigitMap(((2, 3), (3, -1))).table().tolist()
        [2, 5, 1, 4, 0, 3]
        >>> DigitMap(((4, 1), (2, (1, 4)), (3, 8))).table().reshape(6, 4)[:3].tolist()
        [[0, 1, 2, 3], [5, 4, 7, 6], [8, 9, 10, 11]]
    """

    modes: Digits
    flips: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        modes = _checked_modes(self.modes)
        bits = shared_bits(modes)
        if not isinstance(self.flips, tuple):
            raise malformed("flips", "must be a tuple of weights", self.flips)
        flips = {integer(weight, f"flips[{place}]", 1) for place, weight in enumerate(self.flips)}
        if len(flips) != len(self.flips) or not flips <= bits:
            raise malformed("flips", f"must be distinct and among the shared bits {sorted(bits)}", self.flips)
        if prod(extent for extent, _ in modes) >> HIERARCHY_BITS:
            raise malformed("modes", f"must have fewer than 2**{HIERARCHY_BITS} points", self.modes)
        modes, flips = _normal(modes, flips)
        object.__setattr__(self, "modes", modes)
        object.__setattr__(self, "flips", tuple(sorted(flips)))

    @classmethod
    def from_bits(cls, columns: Sequence[int], constant: int = 0) -> DigitMap:
        """Return the invertible affine map x -> M x xor constant over F2.

        Args:
            columns: Image of each bit under M, low bit first; bit r of an image is row r.
            constant: The image of 0.

        Example:
            >>> DigitMap.from_bits((1, 3), 2)
            DigitMap(modes=((2, 1), (2, (1, 2))), flips=(2,))
        """
        if not isinstance(columns, (tuple, list)):
            raise malformed("columns", "must be a tuple of integers", columns)
        top = 1 << len(columns)
        images = [integer(column, f"columns[{k}]", 0, top) for k, column in enumerate(columns)]
        origin = integer(constant, "constant", 0, top)
        null = matrix.kernel(images)
        if null:
            because = f"{len(images)} bits, but only rank {len(images) - len(null)}"
            witness = {"first": 0, "second": null[0], "value": origin}
            where = f"DigitMap.from_bits({shown(tuple(images))})"
            raise refuse("LA752", "this F2 map is not a bijection", because, witness, where)
        modes = [(2, tuple(1 << row for row in range(image.bit_length()) if image >> row & 1)) for image in images]
        return assemble(modes, origin)

    def __repr__(self) -> str:
        return f"DigitMap(modes={self.modes!r}{f', flips={self.flips!r}' if self.flips else ''})"

    @property
    def size(self) -> int:
        """Number of points."""
        return prod(extent for extent, _ in self.modes)

    @property
    def is_plain(self) -> bool:
        """Whether no bit is shared: a digit permutation with reversals, every stride an integer."""
        return all(isinstance(stride, int) for _, stride in self.modes)

    @property
    def offset(self) -> int:
        """The image of 0."""
        return self.at(0)

    @property
    def columns(self) -> tuple[int, ...] | None:
        """The columns of the map over F2 (its constant is ``offset``); None unless the size is a power of two."""
        if self.size & (self.size - 1):
            return None
        columns: list[int] = []
        for extent, stride in self.modes:
            if isinstance(stride, tuple):
                columns.append(sum(stride))
            else:
                columns += [abs(stride) << bit for bit in range(extent.bit_length() - 1)]
        return tuple(columns)

    def pieces(self) -> Digits:
        """Return the modes, split so that every shared target bit has modes of its own."""
        return split_at(self.modes, (), ()) or ()

    def at(self, index: int) -> int:
        """Return the image of one index."""
        return value_at(self.modes, self.flips, integer(index, "index", 0, self.size))

    def apply(self, index: npt.ArrayLike) -> IntArray:
        """Return the images of an array of indices."""
        index = indices(index, self.size)
        bits = sorted(shared_bits(self.modes))
        place = {weight: 1 << k for k, weight in enumerate(bits)}
        total = np.zeros(index.shape, dtype=np.int64)
        flipped = np.full(index.shape, sum(place[weight] for weight in self.flips), dtype=np.int64)
        rest = index
        for extent, stride in self.modes:
            rest, digit = np.divmod(rest, extent)
            if isinstance(stride, tuple):
                flipped ^= digit * sum(place[weight] for weight in stride)
            else:
                total += stride * (digit if stride > 0 else digit - (extent - 1))
        for k, weight in enumerate(bits):
            total += (flipped >> k & 1) * weight * (1 - 2 * (total // weight & 1))
        return total

    def table(self) -> IntArray:
        """Return the images of 0, 1, ..., size - 1."""
        check_points(self.size)
        columns = None if self.is_plain else self.columns
        if columns is not None:
            return matrix.table(columns, self.offset)
        return self.apply(np.arange(self.size, dtype=np.int64))


def value_at(modes: Digits, flips: Iterable[int], index: int) -> int:
    """Return the image of an index inside the domain."""
    rest, total, flipped = index, 0, list(flips)
    for extent, stride in modes:
        rest, digit = divmod(rest, extent)
        if isinstance(stride, tuple):
            flipped += stride * digit
        else:
            total += stride * (digit if stride > 0 else digit - extent + 1)
    for weight in flipped:
        total += -weight if total // weight % 2 else weight
    return total


def indices(index: npt.ArrayLike, size: int) -> IntArray:
    """Return indices in [0, size) as an int64 array; an empty list is accepted."""
    if size > ARRAY_LIMIT:
        raise malformed("index", "arrays need a size of at most 2**62", size)
    return np.asarray(check.coordinate(index, "index", size), dtype=np.int64)


def check_points(count: int, why: str = "tables") -> None:
    """Refuse to enumerate more than 2**20 points."""
    if count > limits.POINTS:
        because = f"{count} points, the limit is {limits.POINTS}"
        what = "too many points to enumerate"
        raise BudgetError(Diagnostic("LA754", what, (why,), because))


def _checked_modes(modes: object) -> Digits:
    if not isinstance(modes, tuple) or not all(isinstance(mode, tuple) and len(mode) == 2 for mode in modes):
        raise malformed("modes", "must be a tuple of (extent, stride) pairs", modes)
    answer: list[tuple[int, Stride]] = []
    for position, (extent, stride) in enumerate(modes):
        argument = f"modes[{position}]"
        width = integer(extent, argument, 1)
        if not isinstance(stride, tuple):
            answer.append((width, integer(stride, argument, -(2**HIERARCHY_BITS))))
            continue
        bits = sorted(integer(weight, argument, 1) for weight in stride)
        if width != 2 or not bits or len(set(bits)) != len(bits):
            raise malformed(argument, "must have extent 2 and distinct weights, at least one", (extent, stride))
        answer.append((2, tuple(bits)))
    return tuple(mode for mode in answer if mode[0] > 1)


def _normal(modes: Digits, flips: set[int]) -> tuple[Digits, set[int]]:
    """Return coalesced modes (tuples only if a bit is shared) and flips; raise if this is not a bijection."""
    bits = shared_bits(modes)
    split = split_at(modes, (), ()) if bits else modes
    if split is None:
        raise _no_bijection(modes, f"a digit overlaps one of the bits of weights {sorted(bits)}")
    pieces = list(placed(split))
    carriers = [k for k, (_, _, stride) in enumerate(pieces) if bits and not bits.isdisjoint(weights(stride))]
    plain = [(weights(stride)[0], extent) for k, (_, extent, stride) in enumerate(pieces) if k not in carriers]
    broken = digits.chained([*plain, *((weight, 2) for weight in bits)])
    if broken is not None:
        because = f"in ascending order, the next stride must be {broken[1]}, not {broken[0]}"
        raise _no_bijection(modes, because, {"stride": broken[0], "expected": broken[1]})
    if not bits:
        return merge(modes), flips
    place = {weight: 1 << k for k, weight in enumerate(sorted(bits))}
    columns = [sum(place[weight] for weight in weights(pieces[k][2])) for k in carriers]
    null = matrix.kernel(columns)
    if null:
        second = sum(pieces[k][0] for j, k in enumerate(carriers) if null[0] >> j & 1)
        raise _no_bijection(modes, "the flips of shared bits are linearly dependent", {"first": 0, "second": second})
    if len(carriers) != len(bits):
        raise _no_bijection(modes, f"{len(carriers)} bits flip {len(bits)} shared bits")
    uses = Counter(weight for k in carriers for weight in weights(pieces[k][2]))
    flips = flips.symmetric_difference(-d for d in (split[k][1] for k in carriers) if _is_reversed(d))
    answer = list(split)
    for k in carriers:
        bit, *others = weights(split[k][1])
        if not others:
            alone = uses[bit] == 1 and bit in flips
            answer[k] = (2, -bit if alone else bit)
            flips = flips - {bit} if alone else flips
    return merge(answer), flips


def _is_reversed(stride: Stride) -> TypeGuard[int]:
    return isinstance(stride, int) and stride < 0


def _no_bijection(modes: Digits, because: str, witness: dict[str, object] | None = None) -> AdmissibilityError:
    what = "these digits are not a bijection onto an interval"
    return refuse("LA752", what, because, witness, f"DigitMap({shown(modes)})")


def assemble(pieces: Iterable[tuple[int, Stride]], origin: int) -> DigitMap:
    """Return the digit map with these modes up to sign and this image of 0.

    Args:
        pieces: Digits, each reversed as a whole or not at all; none may span a shared bit that is flipped alone.
        origin: The image of 0.
    """
    modes = tuple((extent, stride if isinstance(stride, tuple) else abs(stride)) for extent, stride in pieces)
    bits = shared_bits(modes)
    split = split_at(modes, (), ()) or modes
    return DigitMap(reversed_as(split, bits, origin), tuple(weight for weight in sorted(bits) if origin // weight % 2))


def reversed_as(modes: Digits, bits: Collection[int], origin: int) -> Digits:
    """Return digits with the sign of each stride that the image of 0 implies, except for shared bits."""
    answer: list[tuple[int, Stride]] = []
    for extent, stride in modes:
        turned = not isinstance(stride, tuple) and not (bits and stride in bits) and origin // stride % extent
        answer.append((extent, -stride if turned and not isinstance(stride, tuple) else stride))
    return tuple(answer)


def compose_digits(outer: DigitMap, inner: DigitMap) -> DigitMap | None:
    """Return ``outer`` after ``inner``; None if their digits have no common refinement."""
    outer_modes = list(placed(outer.pieces()))
    pieces = split_at(inner.modes, (), [weight for weight, _, _ in outer_modes])
    return None if pieces is None else assemble(composed(outer_modes, pieces), outer.at(inner.offset))


def composed(outer_modes: Sequence[tuple[int, int, Stride]], pieces: Digits) -> list[tuple[int, Stride]]:
    """Return the digits of a composition, up to sign.

    Args:
        outer_modes: (weight in the source, extent, stride) of every digit of the outer map, fastest first.
        pieces: The digits of the inner map, none crossing such a weight in the target.
    """

    def image(weight: int) -> Stride:
        start, _, stride = next(mode for mode in reversed(outer_modes) if mode[0] <= weight)
        return stride if isinstance(stride, tuple) else abs(stride) * (weight // start)

    def flipped(stride: tuple[int, ...]) -> Stride:
        counts = Counter(target for weight in stride for target in weights(image(weight)))
        return tuple(sorted(target for target, count in counts.items() if count % 2))

    return [(e, flipped(d) if isinstance(d, tuple) else image(abs(d))) for e, d in pieces]


def inverse_digits(mapping: DigitMap) -> DigitMap:
    """Return the inverse."""
    bits = sorted(shared_bits(mapping.modes))
    place = {weight: 1 << k for k, weight in enumerate(bits)}
    found: list[tuple[int, tuple[int, Stride]]] = []
    carriers, columns = [], []
    plain: list[tuple[int, int, int]] = []
    for weight, extent, stride in placed(mapping.pieces()):
        if not isinstance(stride, tuple) and abs(stride) not in place:
            plain.append((weight, extent, stride))
        else:
            carriers.append(weight)
            columns.append(sum(place[target] for target in weights(stride)))
    turned, origin = turned_back(plain)
    found += turned
    back = matrix.inverse(columns)
    for target, column in zip(bits, back, strict=True):
        found.append((target, (2, tuple(weight for k, weight in enumerate(carriers) if column >> k & 1))))
    flipped = matrix.apply(back, sum(place[weight] for weight in mapping.flips))
    origin += sum(weight for k, weight in enumerate(carriers) if flipped >> k & 1)
    return assemble([mode for _, mode in sorted(found, key=lambda entry: entry[0])], origin)


def turned_back(digits: Iterable[tuple[int, int, int]]) -> tuple[list[tuple[int, tuple[int, Stride]]], int]:
    """Return (weight, digit) of the inverse of plain digits, and the image of 0 under the inverse.

    Args:
        digits: (weight in the source, extent, stride).
    """
    found: list[tuple[int, tuple[int, Stride]]] = []
    origin = 0
    for weight, extent, stride in digits:
        found.append((abs(stride), (extent, weight)))
        origin += weight * (extent - 1) if stride < 0 else 0
    return found, origin


def from_table(values: IntArray) -> DigitMap | None:
    """Return the digit map with these values (a bijection), or None."""
    modes = digits.read_table(values)
    if modes is None:
        return None
    try:
        answer = assemble(modes, int(values[0]))
    except AdmissibilityError:
        return None
    return answer if np.array_equal(answer.table(), values) else None


@dataclass(frozen=True, slots=True)
class TableMap:
    """A bijection of [0, N) as the tuple of its values, at most 2**20; checked.

    Example:
        >>> TableMap((1, 2, 0)).at(1)
        2
    """

    values: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.values, tuple):
            raise malformed("values", "must be a tuple of integers", self.values)
        if not self.values:
            raise malformed("values", "must not be empty", self.values)
        count = len(self.values)
        check_points(count)
        values = self.values
        if set(map(type, values)) != {int}:
            values = tuple(integer(value, f"values[{k}]", -(2**62), 2**62) for k, value in enumerate(values))
        if min(values) < 0 or max(values) >= count or len(set(values)) != count:
            raise _first_clash(values)
        object.__setattr__(self, "values", values)

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.values)

    def at(self, index: int) -> int:
        """Return the image of one index."""
        return self.values[integer(index, "index", 0, self.size)]

    def apply(self, index: npt.ArrayLike) -> IntArray:
        """Return the images of an array of indices."""
        return self.table()[indices(index, self.size)]

    def table(self) -> IntArray:
        """Return the images of 0, 1, ..., size - 1."""
        return np.array(self.values, dtype=np.int64)


def _first_clash(values: tuple[int, ...]) -> LayoutError:
    """Return the error for the first value that is out of range or a duplicate."""
    first: dict[int, int] = {}
    for index, value in enumerate(values):
        integer(value, f"values[{index}]", -(2**62), 2**62)
        inside = 0 <= value < len(values)
        if not inside or value in first:
            break
        first[value] = index
    witness = {"first": first[value], "second": index, "value": value} if inside else {"index": index, "value": value}
    because = f"value {value} occurs twice" if inside else f"value {value} is not in [0, {len(values)})"
    return refuse("LA752", "this table is not a bijection", because, witness, f"{len(values)} values")


Bijection: TypeAlias = DigitMap | TableMap


def canonical(bijection: Bijection) -> Bijection:
    """Return the same function as a digit map if it is one, otherwise as a table."""
    return bijection if isinstance(bijection, DigitMap) else from_table(bijection.table()) or bijection


def identity(size: int) -> DigitMap:
    """Return the identity of [0, size)."""
    return DigitMap(((size, 1),))


def tabulated(values: IntArray) -> Bijection:
    """Return the canonical bijection with these values, which are checked."""
    return canonical(TableMap(tuple(values.tolist())))


def compose(outer: Bijection, inner: Bijection) -> Bijection:
    """Return ``outer`` after ``inner``, canonical.

    Example:
        >>> compose(DigitMap(((2, 3), (3, 1))), DigitMap(((3, 2), (2, 1)))).modes
        ((6, 1),)
    """
    if outer.size != inner.size:
        because = f"the inner bijection has {inner.size} points, the outer one {outer.size}"
        raise refuse("LA751", "the bijections do not compose", because, {"inner": inner.size, "outer": outer.size})
    if isinstance(outer, DigitMap) and isinstance(inner, DigitMap):
        found = compose_digits(outer, inner)
        if found is not None:
            return found
    check_points(inner.size, "composition without common digits")
    return tabulated(outer.table()[inner.table()])


def inverse(bijection: Bijection) -> Bijection:
    """Return the inverse, canonical; always exact."""
    form = canonical(bijection)
    if isinstance(form, DigitMap):
        return inverse_digits(form)
    return TableMap(tuple(np.argsort(form.table()).tolist()))


def local(bijection: Bijection, low: int, high: int) -> Bijection:
    """Return the bijection applied to ``mid`` in the flat index lo + A (mid + M hi), A = ``low``, M = its size.

    Example:
        >>> local(DigitMap(((3, -1),)), 2, 5).modes
        ((2, 1), (3, -2), (5, 6))
    """
    form, middle = canonical(bijection), bijection.size
    if isinstance(form, DigitMap):
        moved: list[tuple[int, Stride]] = [
            (extent, tuple(weight * low for weight in stride) if isinstance(stride, tuple) else stride * low)
            for extent, stride in form.pieces()
        ]
        return assemble([(low, 1), *moved, (high, low * middle)], form.offset * low)
    check_points(low * middle * high, "a table acting inside a larger box")
    inner = (np.arange(low)[None, :] + low * form.table()[:, None]).reshape(-1)
    return tabulated((inner[None, :] + low * middle * np.arange(high)[:, None]).reshape(-1))
