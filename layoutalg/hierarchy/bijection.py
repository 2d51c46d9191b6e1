"""Bijections of [0, N) in one of three forms, each with exact composition and inverse.

Main definitions: ``DigitMap`` (digits permuted and reversed, any extents), ``BitMap`` (affine over F2), ``TableMap``
(anything, by enumeration), ``canonical``, ``compose``, ``inverse``, ``local``, ``aligned``.

Main statements: a coalesced list of (extent, stride) pairs is a complete normal form of the functions it can denote, a
matrix with its constant likewise, a table trivially. ``canonical`` takes the first form that holds a function, so two
canonical bijections are the same function exactly when they are equal as values.

Implementation notes: digits compose by splitting at each other's boundaries. Where the boundaries do not divide each
other (extents 2, 3 against 3, 2) the composition permutes no digits, and a table takes over, up to ``TABLE_POINTS``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.errors import AdmissibilityError, BudgetError, Diagnostic
from layoutalg.f2 import matrix
from layoutalg.hierarchy.levels import integer, malformed

IntArray: TypeAlias = npt.NDArray[np.int64]
Modes: TypeAlias = tuple[tuple[int, int], ...]
TABLE_POINTS = 2**20
ARRAY_LIMIT = 2**62


@dataclass(frozen=True, slots=True)
class DigitMap:
    """A permutation of mixed-radix digits, each possibly reversed.

    Mathematically: with digits c_k of extents e_k (fastest first), x -> the sum of d_k c_k, plus (e_k - 1) |d_k| for
    every negative d_k. The |d_k|, sorted, are the running products of their extents, so this is a bijection.

    Args:
        modes: (extent, stride) pairs, fastest first. Kept coalesced: no extent 1, no two modes that make one.

    Raises:
        MalformedError: LA750, not pairs of integers; AdmissibilityError: LA752, not a bijection.

    Example:
        >>> DigitMap(((2, 3), (3, -1))).table().tolist()
        [2, 5, 1, 4, 0, 3]
    """

    modes: Modes

    def __post_init__(self) -> None:
        if not isinstance(self.modes, tuple) or not all(isinstance(m, tuple) and len(m) == 2 for m in self.modes):
            raise malformed("modes", "must be a tuple of (extent, stride) pairs", self.modes)
        modes = []
        for position, (extent, stride) in enumerate(self.modes):
            step = integer(stride, f"modes[{position}]", -(2**4096), 2**4096)
            modes.append((integer(extent, f"modes[{position}]", 1), step))
        merged = coalesce(modes)
        expected = 1
        for extent, stride in sorted(merged, key=lambda mode: abs(mode[1])):
            if abs(stride) != expected:
                raise AdmissibilityError(
                    Diagnostic(
                        code="LA752",
                        what="these digits are not a bijection onto an interval",
                        where=(f"DigitMap({self.modes!r})",),
                        because=f"sorted by size, the next stride must be {expected}, not {abs(stride)}",
                        witness={"stride": stride, "expected": expected},
                    )
                )
            expected *= extent
        object.__setattr__(self, "modes", merged)

    @property
    def size(self) -> int:
        """Number of points."""
        return _product(extent for extent, _ in self.modes)

    @property
    def offset(self) -> int:
        """The image of 0."""
        return -sum((extent - 1) * stride for extent, stride in self.modes if stride < 0)

    def at(self, index: int) -> int:
        """Return the image of one index, which must be in [0, size)."""
        total = self.offset
        for extent, stride in self.modes:
            index, digit = divmod(index, extent)
            total += digit * stride
        return total

    def apply(self, index: IntArray) -> IntArray:
        """Return the images of an array of indices, which must be in [0, size) below 2**62."""
        total = np.full(index.shape, self.offset, dtype=np.int64)
        rest = index
        for extent, stride in self.modes:
            rest, digit = np.divmod(rest, extent)
            total += digit * stride
        return total

    def table(self) -> IntArray:
        """Return the images of 0, 1, ..., size - 1."""
        check_points(self.size)
        return self.apply(np.arange(self.size, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class BitMap:
    """An invertible affine map over F2: x -> M x xor c.

    Args:
        columns: Image of each bit under M, low bit first; bit r of an image is row r.
        constant: The image of 0.

    Raises:
        MalformedError: LA750, not integers of that many bits; AdmissibilityError: LA752, M is singular.

    Example:
        >>> BitMap((1, 3), 2).table().tolist()
        [2, 3, 1, 0]
    """

    columns: tuple[int, ...]
    constant: int = 0

    def __post_init__(self) -> None:
        if not isinstance(self.columns, tuple):
            raise malformed("columns", "must be a tuple of integers", self.columns)
        top = 1 << len(self.columns)
        columns = tuple(integer(column, f"columns[{k}]", 0, top) for k, column in enumerate(self.columns))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "constant", integer(self.constant, "constant", 0, top))
        null = matrix.kernel(columns)
        if null:
            raise AdmissibilityError(
                Diagnostic(
                    code="LA752",
                    what="this F2 map is not a bijection",
                    where=(f"BitMap({columns!r})",),
                    because=f"{len(columns)} bits, but only rank {len(columns) - len(null)}",
                    witness={"first": 0, "second": null[0], "value": self.constant},
                )
            )

    @property
    def size(self) -> int:
        """Number of points."""
        return 1 << len(self.columns)

    def at(self, index: int) -> int:
        """Return the image of one index, which must be in [0, size)."""
        return self.constant ^ matrix.apply(self.columns, index)

    def apply(self, index: IntArray) -> IntArray:
        """Return the images of an array of indices, which must be in [0, size) below 2**62."""
        total = np.full(index.shape, self.constant, dtype=np.int64)
        for bit, column in enumerate(self.columns):
            total ^= (index >> bit & 1) * column
        return total

    def table(self) -> IntArray:
        """Return the images of 0, 1, ..., size - 1."""
        check_points(self.size)
        return matrix.table(self.columns, self.constant)


@dataclass(frozen=True, slots=True)
class TableMap:
    """A bijection of [0, N) by its values; checked, never assumed.

    Args:
        values: Image of each index, at most 2**20 of them.

    Raises:
        MalformedError: LA750, not integers; AdmissibilityError: LA752, a value outside or met twice (the witness holds
            both indices); BudgetError: LA754, too many values.

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
        check_points(len(self.values))
        values = tuple(
            value if type(value) is int else integer(value, f"values[{k}]", -(2**62))
            for k, value in enumerate(self.values)
        )
        first: dict[int, int] = {}
        for index, value in enumerate(values):
            inside = 0 <= value < len(values)
            if inside and value not in first:
                first[value] = index
                continue
            witness = (
                {"first": first[value], "second": index, "value": value} if inside else {"index": index, "value": value}
            )
            raise AdmissibilityError(
                Diagnostic(
                    code="LA752",
                    what="this table is not a bijection",
                    where=(f"{len(values)} values",),
                    because=f"value {value} is met twice" if inside else f"value {value} is not in [0, {len(values)})",
                    witness=witness,
                )
            )
        object.__setattr__(self, "values", values)

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self.values)

    def at(self, index: int) -> int:
        """Return the image of one index, which must be in [0, size)."""
        return self.values[index]

    def apply(self, index: IntArray) -> IntArray:
        """Return the images of an array of indices, which must be in [0, size)."""
        return self.table()[index]

    def table(self) -> IntArray:
        """Return the images of 0, 1, ..., size - 1."""
        return np.array(self.values, dtype=np.int64)


Bijection: TypeAlias = DigitMap | BitMap | TableMap


def check_points(count: int, why: str = "tables") -> None:
    """Refuse to enumerate more than ``TABLE_POINTS`` points.

    Raises:
        BudgetError: LA754, with the count.
    """
    if count > TABLE_POINTS:
        raise BudgetError(
            Diagnostic(
                code="LA754",
                what="this would have to be enumerated, and it is too large",
                where=(why,),
                because=f"{count} points; enumeration goes up to {TABLE_POINTS}",
            )
        )


def _product(values: Iterable[int]) -> int:
    answer = 1
    for value in values:
        answer *= value
    return answer


def coalesce(modes: Iterable[tuple[int, int]]) -> Modes:
    """Return the modes without extent 1 and with every two neighbours that make one mode joined.

    Example:
        >>> coalesce([(2, 1), (1, 7), (3, 2), (5, -6)])
        ((6, 1), (5, -6))
    """
    merged: list[tuple[int, int]] = []
    for extent, stride in modes:
        if extent == 1:
            continue
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return tuple(merged)


def split_at(modes: Modes, source_cuts: Iterable[int], target_cuts: Iterable[int]) -> Modes | None:
    """Return the modes split so that no mode crosses a cut on either side; None where a cut does not divide.

    Args:
        modes: Modes of a digit map, fastest first.
        source_cuts: Numbers p; index positions x // p must begin a digit.
        target_cuts: The same for the values.

    Example:
        >>> split_at(((12, 1),), [2], [4]), split_at(((6, 1),), [2], [3])
        (((2, 1), (2, 2), (3, 4)), None)
    """
    pieces = list(modes)
    for on_target, cuts in ((False, sorted(source_cuts)), (True, sorted(target_cuts))):
        for cut in cuts:
            weight, answer = 1, []
            for extent, stride in pieces:
                start = abs(stride) if on_target else weight
                if start < cut < start * extent:
                    if cut % start or start * extent % cut:
                        return None
                    inner = cut // start
                    answer += [(inner, stride), (extent // inner, stride * inner)]
                else:
                    answer.append((extent, stride))
                weight *= extent
            pieces = answer
    return tuple(pieces)


def as_bits(bijection: DigitMap) -> BitMap | None:
    """Return the same function over F2; None where the size is no power of two.

    Example:
        >>> as_bits(DigitMap(((4, -2), (2, 1))))
        BitMap(columns=(2, 4, 1), constant=6)
    """
    if bijection.size & (bijection.size - 1):
        return None
    columns = []
    for extent, stride in bijection.modes:
        columns += [abs(stride) << bit for bit in range(extent.bit_length() - 1)]
    return BitMap(tuple(columns), bijection.offset)


def _digits_of_bits(bits: BitMap) -> DigitMap | None:
    if any(column & (column - 1) for column in bits.columns):
        return None
    return DigitMap(tuple((2, -column if column & bits.constant else column) for column in bits.columns))


def _digits_of_table(values: IntArray) -> DigitMap | None:
    """Return the digit map with these values: greedy, each mode as long as it stays arithmetic, then checked."""
    count = len(values)
    modes = []
    position = 1
    while position < count:
        run = values[::position] - values[0]
        straight = run == np.arange(len(run)) * run[1]
        extent = len(run) if straight.all() else int(np.argmin(straight))
        if count % (position * extent):
            return None
        modes.append((extent, int(run[1])))
        position *= extent
    expected = 1
    for extent, stride in sorted(modes, key=lambda mode: abs(mode[1])):
        if abs(stride) != expected:
            return None
        expected *= extent
    answer = DigitMap(tuple(modes))
    return answer if np.array_equal(answer.table(), values) else None


def _bits_of_table(values: IntArray) -> BitMap | None:
    count = len(values)
    if count & (count - 1):
        return None
    constant = int(values[0])
    columns = tuple(int(values[1 << bit]) ^ constant for bit in range(count.bit_length() - 1))
    if not np.array_equal(matrix.table(columns, constant), values):
        return None
    return BitMap(columns, constant)


def canonical(bijection: Bijection) -> Bijection:
    """Return the same function in the first form that holds it: digits, then bits, then the table.

    Example:
        >>> canonical(TableMap((0, 2, 4, 1, 3, 5)))
        DigitMap(modes=((3, 2), (2, 1)))
        >>> canonical(BitMap((2, 1))), canonical(TableMap((0, 1, 3, 2)))
        (DigitMap(modes=((2, 2), (2, 1))), BitMap(columns=(1, 3), constant=0))
    """
    if isinstance(bijection, DigitMap):
        return bijection
    if isinstance(bijection, BitMap):
        return _digits_of_bits(bijection) or bijection
    values = bijection.table()
    return _digits_of_table(values) or _bits_of_table(values) or bijection


def identity(size: int) -> DigitMap:
    """Return the identity of [0, size)."""
    return DigitMap(((size, 1),))


def tabulated(values: IntArray) -> Bijection:
    """Return the canonical bijection with these values; they are checked."""
    return canonical(TableMap(tuple(values.tolist())))


def compose(outer: Bijection, inner: Bijection) -> Bijection:
    """Return ``outer`` after ``inner``, canonical.

    Raises:
        AdmissibilityError: LA751, the sizes differ; BudgetError: LA754, no common digits and too large for a table.

    Example:
        >>> compose(DigitMap(((2, 3), (3, 1))), DigitMap(((3, 2), (2, 1)))).modes
        ((6, 1),)
    """
    if outer.size != inner.size:
        raise AdmissibilityError(
            Diagnostic(
                code="LA751",
                what="the bijections do not compose",
                because=f"the inner one has {inner.size} points, the outer one {outer.size}",
                witness={"inner": inner.size, "outer": outer.size},
            )
        )
    if isinstance(outer, DigitMap) and isinstance(inner, DigitMap):
        found = _compose_digits(outer, inner)
        if found is not None:
            return found
    left = as_bits(outer) if isinstance(outer, DigitMap) else outer
    right = as_bits(inner) if isinstance(inner, DigitMap) else inner
    if isinstance(left, BitMap) and isinstance(right, BitMap):
        return canonical(BitMap(matrix.multiply(left.columns, right.columns), left.at(right.constant)))
    check_points(inner.size, "composition without common digits")
    return tabulated(outer.table()[inner.table()])


def _compose_digits(outer: DigitMap, inner: DigitMap) -> DigitMap | None:
    starts = [1]
    for extent, _ in outer.modes:
        starts.append(starts[-1] * extent)
    pieces = split_at(inner.modes, (), starts)
    if pieces is None:
        return None
    answer = []
    for extent, stride in pieces:
        place = max(k for k, start in enumerate(starts[:-1]) if start <= abs(stride))
        answer.append((extent, stride // starts[place] * outer.modes[place][1]))
    return DigitMap(tuple(answer))


def inverse(bijection: Bijection) -> Bijection:
    """Return the inverse; always exact.

    Example:
        >>> inverse(DigitMap(((3, 2), (2, -1)))).modes
        ((2, -3), (3, 1))
    """
    if isinstance(bijection, DigitMap):
        weight, found = 1, []
        for extent, stride in bijection.modes:
            found.append((abs(stride), (extent, weight if stride > 0 else -weight)))
            weight *= extent
        return DigitMap(tuple(mode for _, mode in sorted(found)))
    if isinstance(bijection, BitMap):
        columns = matrix.inverse(bijection.columns)
        return BitMap(columns, matrix.apply(columns, bijection.constant))
    return tabulated(np.argsort(bijection.table()).astype(np.int64))


def local(bijection: Bijection, low: int, high: int) -> Bijection:
    """Return the map that acts on the middle of a flat index: low + A (mid + M high), A = ``low``, M = its size.

    Example:
        >>> local(DigitMap(((3, -1),)), 2, 5).modes
        ((2, 1), (3, -2), (5, 6))
    """
    middle = bijection.size
    if isinstance(bijection, DigitMap):
        moved = tuple((extent, stride * low) for extent, stride in bijection.modes)
        return DigitMap(((low, 1), *moved, (high, low * middle)))
    if isinstance(bijection, BitMap) and not (low & (low - 1) or high & (high - 1)):
        below, width, above = low.bit_length() - 1, len(bijection.columns), high.bit_length() - 1
        columns = [1 << bit for bit in range(below)]
        columns += [column << below for column in bijection.columns]
        columns += [1 << bit for bit in range(below + width, below + width + above)]
        return BitMap(tuple(columns), bijection.constant << below)
    check_points(low * middle * high, "a table acting inside a larger box")
    inner = (np.arange(low)[None, :] + low * bijection.table()[:, None]).reshape(-1)
    return tabulated((inner[None, :] + low * middle * np.arange(high)[:, None]).reshape(-1))


def aligned(modes: Modes, cuts: Sequence[int]) -> Modes | None:
    """Return the modes split so that both sides use one list of digit boundaries, ``cuts`` among them; else None.

    Example:
        >>> aligned(((6, 2), (2, 1)), [])
        >>> aligned(((4, 2), (2, 1)), [])
        ((2, 2), (2, 4), (2, 1))
    """
    pieces: Modes | None = modes
    known: set[int] = set()
    while pieces is not None:
        weight, found = 1, set(cuts) | {1}
        for extent, stride in pieces:
            found |= {weight, abs(stride), abs(stride) * extent, weight * extent}
            weight *= extent
        if any(second % first for first, second in pairwise(sorted(found))):
            return None
        if found == known:
            return pieces
        known = found
        pieces = split_at(pieces, found, found)
    return None
