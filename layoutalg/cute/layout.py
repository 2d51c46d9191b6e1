"""The CuTe layout: a nested shape and a congruent nested stride, read as a function from coordinates to offsets.

Main definitions: ``CuteLayout``.

Notation: ``S:D`` with shape S and stride D, for example ``(4,8):(1,4)``. 1-D coordinates are colexicographic (mode 0
fastest). Offsets count elements unless the user says otherwise; the library never rescales them on its own.

Main statements: with digits c_k of the coordinate, L(c) is the sum of c_k d_k. The domain is exactly the shape: a
coordinate outside is refused, never continued past the last mode.

Implementation notes: the constructor checks structure and integer range once, so every later value is exact: size, each
offset and the span of the offsets fit signed 64-bit integers.

References: CuTe documentation of NVIDIA CUTLASS; J. Cecka, arXiv:2603.02298.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, overload

import numpy as np

from layoutalg.cute.inttuple import (
    INT_LIMIT,
    IntTuple,
    compact_col_major,
    congruent,
    depth,
    flatten,
    integer,
    malformed,
    offset_of,
    rank,
    shape_text,
    validate,
)
from layoutalg.ground import memory
from layoutalg.ground.digits import Flat, IntArray, evaluate, evaluate_many, merge, span, table
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError
from layoutalg.ground.operators import then

QUICK = 2**20
"""Entries of an array that need no thought."""

TABLE_ENTRY = 24
"""Bytes per entry of a table while it is made: the table, what it is made of, and it swizzled."""

if TYPE_CHECKING:
    from layoutalg.cute.composed import ComposedLayout
    from layoutalg.cute.swizzle import Swizzle

Coords: TypeAlias = Any
"""What ``apply`` reads: an integer array of 1-D coordinates, or a tuple of such values with one entry per mode."""


class _Hashed:
    """A place for the hash, which is asked for more often than layouts are made."""

    __slots__ = ("_hash",)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class CuteLayout(_Hashed):
    """A CuTe layout ``shape:stride``.

    Mathematically: the function c -> sum of c_k d_k from the coordinates of ``shape`` to the integers.

    Args:
        shape: Extents, an int or nested tuples of ints; each at least 0.
        stride: Strides, congruent to ``shape``; may be zero or negative. Default: compact column-major. Elements.

    Raises: MalformedError: LA100, LA101, LA102, LA103.

    Example:
        >>> layout = CuteLayout((4, 8), (8, 1))
        >>> print(layout)
        (4,8):(8,1)
        >>> layout(1, 5), layout((1, 5)), layout(21)
        (13, 13, 13)
        >>> layout.size, layout.cosize
        (32, 32)

    Source: CuTe documentation of NVIDIA CUTLASS, "Layouts".
    """

    shape: IntTuple
    stride: IntTuple
    __array_ufunc__: ClassVar[None] = None  # numpy leaves operators with a layout to the layout
    _flat: Flat = field(init=False, repr=False, compare=False)
    _size: int = field(init=False, repr=False, compare=False)

    def __init__(self, shape: IntTuple, stride: IntTuple | None = None) -> None:
        shape = validate(shape, "shape")
        extents = flatten(shape)
        for extent in extents:
            if extent < 0:
                raise malformed("shape", "must have extents >= 0", shape, "LA103")
        if stride is None:
            _check_size(shape, extents)
            stride = validate(compact_col_major(shape), "stride")
        else:
            stride = validate(stride, "stride")
            if not congruent(shape, stride):
                raise MalformedError(
                    Diagnostic(
                        code="LA101",
                        what="shape and stride nest differently",
                        where=(f"{_bounded(shape)}:{_bounded(stride)}",),
                        because="every extent needs exactly one stride at the same place",
                    )
                )
        flat = tuple(zip(extents, flatten(stride), strict=True))
        size = _check_size(shape, extents)
        low, high = span(flat)
        if low < -INT_LIMIT or high >= INT_LIMIT or high - low >= INT_LIMIT:
            raise MalformedError(
                Diagnostic(
                    code="LA102",
                    what="the offsets leave the signed 64-bit range",
                    where=(f"{_bounded(shape)}:{_bounded(stride)}",),
                    because=f"the offsets run from {low} to {high}",
                )
            )
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stride", stride)
        object.__setattr__(self, "_flat", flat)
        object.__setattr__(self, "_size", size)

    def __hash__(self) -> int:
        known: int | None = getattr(self, "_hash", None)
        if known is None:
            known = hash((self.shape, self.stride))
            object.__setattr__(self, "_hash", known)
        return known

    @property
    def flat(self) -> Flat:
        """The modes without nesting: (extent, stride) pairs, fastest first."""
        return self._flat

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return self._size

    @property
    def cosize(self) -> int:
        """1 + the greatest offset - the least offset; 0 for an empty layout.

        Without negative strides the least offset is 0 and this is CuTe's cosize; ``4:-1`` has 4.
        """
        if self._size == 0:
            return 0
        low, high = span(self._flat)
        return 1 + high - low

    @property
    def rank(self) -> int:
        """Number of top-level modes; 1 where the shape is an int."""
        return rank(self.shape)

    @property
    def depth(self) -> int:
        """How deep the shape nests; 0 where the shape is an int."""
        return depth(self.shape)

    def __call__(self, *coord: IntTuple) -> int:
        """Return the offset at one coordinate: 1-D ``L(i)``, by mode ``L(i, j)``, nested ``L((i, (j, k)))``.

        Raises: MalformedError: LA100, LA104. AdmissibilityError: LA105.

        Example:
            >>> CuteLayout(((2, 2), 8), ((1, 16), 2))((1, 1), 3)
            23
        """
        point: IntTuple = coord[0] if len(coord) == 1 else coord
        if type(point) is int and 0 <= point < self._size:
            return evaluate(self._flat, point)
        if type(point) is tuple:
            quick = _quick_offset(point, self.shape, self.stride)
            if quick is not None:
                return quick
        return offset_of(validate(point, "coordinate"), self.shape, self.stride)

    def apply(self, coords: Coords) -> IntArray:
        """Return the offsets at many coordinates.

        Args:
            coords: An integer array of 1-D coordinates, or a tuple with one such value per top-level mode (each may be
                a tuple again); the arrays broadcast against each other.

        Returns:
            int64 array of offsets, of the coordinates' (broadcast) form.

        Raises: MalformedError: LA104. AdmissibilityError: LA105. BudgetError: LA002.

        Example:
            >>> CuteLayout((4, 8), (8, 1)).apply((np.arange(4)[:, None], np.arange(2))).tolist()
            [[0, 1], [8, 9], [16, 17], [24, 25]]
        """
        return _apply(coords, self.shape, self.stride)

    def table(self) -> IntArray:
        """Return the offsets at the 1-D coordinates 0, 1, ..., size - 1.

        Raises: BudgetError: LA002.

        Example:
            >>> CuteLayout((2, 3), (3, 1)).table().tolist()
            [0, 3, 1, 4, 2, 5]
        """
        if self._size > QUICK:
            memory.reserve(f"({self}).table()", self._size, TABLE_ENTRY)
        return table(merge(self._flat))

    def __getitem__(self, mode: int) -> CuteLayout:
        """Return one top-level mode as a layout; ``4:1`` is its own mode 0.

        Raises: MalformedError: LA107.

        Example:
            >>> print(CuteLayout(((2, 2), 8), ((1, 16), 2))[0])
            (2,2):(1,16)
        """
        position = integer(mode, "mode", "LA107")
        if not 0 <= position < self.rank:
            raise malformed("mode", f"must be in [0, {self.rank}), the modes of {self}", position, "LA107")
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return self
        shape, stride = self.shape[position], self.stride[position]
        return trusted(shape, stride, tuple(zip(flatten(shape), flatten(stride), strict=True)))

    def __iter__(self) -> Iterator[CuteLayout]:
        return iter([self[position] for position in range(self.rank)])

    @overload
    def __matmul__(self, inner: CuteLayout) -> CuteLayout: ...
    @overload
    def __matmul__(self, inner: ComposedLayout | Swizzle) -> CuteLayout | ComposedLayout: ...
    def __matmul__(self, inner: object) -> object:
        """Return ``self`` after ``inner``: the composition (f @ g)(c) = f(g(c)), exact or refused."""
        from layoutalg.cute.composed import ComposedLayout
        from layoutalg.cute.composition import composition
        from layoutalg.cute.swizzle import Swizzle

        if not isinstance(inner, CuteLayout | ComposedLayout | Swizzle):
            return NotImplemented
        return composition(self, inner)

    @overload
    def then(self, outer: CuteLayout) -> CuteLayout: ...
    @overload
    def then(self, outer: ComposedLayout | Swizzle) -> ComposedLayout: ...
    def then(self, outer: object) -> object:
        """Return ``outer`` after ``self``: (f.then(g))(c) = g(f(c)), exact or refused.

        Raises: MalformedError: LA192.

        Example:
            >>> print(CuteLayout(4, 2).then(CuteLayout((2, 4), (4, 1))))
            4:1
        """
        return then(self, outer)

    def __str__(self) -> str:
        return f"{shape_text(self.shape)}:{shape_text(self.stride)}"

    def __repr__(self) -> str:
        return f"CuteLayout({self.shape!r}, {self.stride!r})"


def _quick_offset(point: Any, shape: Any, stride: Any) -> int | None:
    """Return the offset at a coordinate nested exactly as the shape and inside it; None for every other coordinate."""
    if type(point) is int:
        if type(shape) is int and 0 <= point < shape:
            return int(point * stride)
        return None
    if type(point) is not tuple or type(shape) is not tuple or len(point) != len(shape):
        return None
    total = 0
    for entry, extent, step in zip(point, shape, stride, strict=True):
        if type(entry) is int and type(extent) is int:
            if not 0 <= entry < extent:
                return None
            total += entry * step
        else:
            part = _quick_offset(entry, extent, step)
            if part is None:
                return None
            total += part
    return total


def trusted(shape: IntTuple, stride: IntTuple, flat: Flat) -> CuteLayout:
    """Return a layout whose shape and stride are congruent by construction; only its range is checked.

    Args:
        shape: Extents, plain ints >= 0.
        stride: Strides, congruent to the shape.
        flat: The leaves of both.

    Example:
        >>> print(trusted((2, 3), (1, 2), ((2, 1), (3, 2))))
        (2,3):(1,2)
    """
    size = 1
    low = high = 0
    for extent, step in flat:
        size *= extent
        if step < 0:
            low += (extent - 1) * step
        else:
            high += (extent - 1) * step
    if size >= INT_LIMIT or low < -INT_LIMIT or high >= INT_LIMIT or high - low >= INT_LIMIT:
        return CuteLayout(shape, stride)  # it is empty, or the constructor says what is wrong
    layout = object.__new__(CuteLayout)
    object.__setattr__(layout, "shape", shape)
    object.__setattr__(layout, "stride", stride)
    object.__setattr__(layout, "_flat", flat)
    object.__setattr__(layout, "_size", size)
    return layout


def _bounded(value: IntTuple) -> str:
    text = shape_text(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _check_size(shape: IntTuple, extents: tuple[int, ...]) -> int:
    size = 1
    for extent in extents:
        size *= extent
    if size >= INT_LIMIT:
        raise MalformedError(
            Diagnostic(
                code="LA102",
                what="the size leaves the signed 64-bit range",
                where=(_bounded(shape),),
                because=f"the extents multiply to {size}, the limit is 2^63 - 1",
            )
        )
    return size


def _apply(coords: Coords, shape: IntTuple, stride: IntTuple) -> IntArray:
    if isinstance(coords, tuple):
        if isinstance(shape, int) or isinstance(stride, int) or len(coords) != len(shape):
            modes = "no modes" if isinstance(shape, int) else f"{len(shape)} modes"
            raise MalformedError(
                Diagnostic(
                    code="LA104",
                    what="the coordinate is malformed",
                    because=f"a tuple of {len(coords)} coordinate arrays does not fit {shape_text(shape)}, "
                    f"which has {modes}",
                )
            )
        total: IntArray = np.zeros((), dtype=np.int64)
        for entry, extent, step in zip(coords, shape, stride, strict=True):
            try:
                part = _apply(entry, extent, step)
                if total.size * part.size > QUICK:
                    count = math.prod(np.broadcast_shapes(total.shape, part.shape))
                    memory.reserve("apply, the coordinates broadcast", count, TABLE_ENTRY)
                total = total + part
            except ValueError as error:
                if isinstance(error, MalformedError | AdmissibilityError):
                    raise
                raise MalformedError(
                    Diagnostic(
                        code="LA104",
                        what="the coordinate is malformed",
                        because=f"the arrays do not broadcast: {error}",
                    )
                ) from error
        return total
    index = index_array(coords)
    flat = merge(tuple(zip(flatten(shape), flatten(stride), strict=True)))
    size = 1
    for extent in flatten(shape):
        size *= extent
    check_inside(index, size, shape_text(shape))
    return evaluate_many(flat, index)


def index_array(coords: object) -> IntArray:
    """Return ``coords`` as an int64 array, or refuse what is not integers.

    Raises: MalformedError: LA104.
    """
    try:
        array = np.asarray(coords)
    except (ValueError, TypeError, OverflowError, RuntimeError) as error:
        rule = "must be an array of integers"
        raise malformed("coordinate", rule, coords, "LA104") from error
    if array.size == 0 and array.dtype == np.float64 and isinstance(coords, list):
        return array.astype(np.int64)  # numpy reads an empty list as floats
    if array.dtype.kind not in "iu":
        raise MalformedError(
            Diagnostic(
                code="LA104",
                what="the coordinate is malformed",
                because=f"coordinates must be integers in the signed 64-bit range, not an array of {array.dtype}",
            )
        )
    if array.dtype == np.uint64 and array.size and int(array.max()) >= INT_LIMIT:
        raise malformed("coordinate", "must fit a signed 64-bit integer", int(array.max()), "LA104")
    return array.astype(np.int64)


def check_inside(index: IntArray, size: int, shape: str) -> None:
    """Refuse 1-D coordinates outside [0, size), naming the first."""
    if index.size and (int(index.min()) < 0 or int(index.max()) >= size):
        bad = np.flatnonzero((index.reshape(-1) < 0) | (index.reshape(-1) >= size))
        value = int(index.reshape(-1)[bad[0]])
        raise AdmissibilityError(
            Diagnostic(
                code="LA105",
                what="the coordinate lies outside the domain",
                because=f"{value} is not in [0, {size}), the extent of {shape}",
                witness={"position": int(bad[0]), "coordinate": value},
            )
        )
