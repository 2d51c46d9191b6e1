"""The CuTe layout: a nested shape and a congruent nested stride, read as a function from coordinates to offsets.

Notation: ``S:D`` with shape S and stride D, for example ``(4,8):(1,4)``. 1-D coordinates are colexicographic (mode 0
fastest). Offsets count elements unless the user says otherwise; the library never rescales them.

With digits c_k of the coordinate, L(c) is the sum of c_k d_k. The domain is exactly the shape: coordinates outside
raise; the last mode never continues past its end.

A constructor checks nesting and range once: size, offsets and their span fit signed 64-bit integers.

References: CuTe documentation of NVIDIA CUTLASS; J. Cecka, arXiv:2603.02298.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, ClassVar

from layoutalg.cute.inttuple import (
    INT_LIMIT,
    QUICK,
    TABLE_ENTRY,
    Coords,
    IntTuple,
    compact_col_major,
    congruent,
    depth,
    flatten,
    graft,
    integer,
    malformed,
    offset_of,
    offsets_of,
    product,
    quick_offset,
    rank,
    shape_text,
    validate,
)
from layoutalg.ground import memory
from layoutalg.ground.check import Checker
from layoutalg.ground.digits import Flat, IntArray, by_name, evaluate, merge, span, table
from layoutalg.ground.errors import Diagnostic, MalformedError, shown
from layoutalg.ground.layout import Layout
from layoutalg.ground.limits import TUPLE_DEPTH, TUPLE_MODES


@singledispatch
def inverse(layout: object) -> Any:
    """Return the inverse; ``layoutalg.cute.inverse`` registers the implementations."""
    raise NotImplementedError


class LeafAxes(Layout):
    """Base of layouts over a nested shape: its leaves are the axes, its modes are iterable."""

    __slots__ = ()
    shape: IntTuple

    @property
    def in_dims(self) -> dict[str, int]:
        """The leaves of the shape, ``c0`` fastest.

        Example:
            >>> CuteLayout((4, (2, 3))).in_dims
            {'c0': 4, 'c1': 2, 'c2': 3}
        """
        return {f"c{position}": extent for position, extent in enumerate(flatten(self.shape))}

    @property
    def rank(self) -> int:
        """Number of top-level modes; 1 for an int shape."""
        return rank(self.shape)

    @property
    def depth(self) -> int:
        """Nesting depth of the shape; 0 for an int shape."""
        return depth(self.shape)

    @abstractmethod
    def __getitem__(self, mode: int) -> Any:
        """Return one top-level mode as a layout."""

    def __iter__(self) -> Iterator[Any]:
        return iter([self[position] for position in range(self.rank)])

    def inverse(self) -> Any:
        """Return the inverse of a layout whose values are exactly 0, 1, ..., size - 1.

        Example:
            >>> print(CuteLayout((4, 8), (8, 1)).inverse())
            (8,4):(4,1)
        """
        return inverse(self)


class _Hashed:
    """Slot for the cached hash."""

    __slots__ = ("_hash",)
    _hash: int


@dataclass(frozen=True, slots=True, init=False, repr=False)
class CuteLayout(LeafAxes, _Hashed):
    """A CuTe layout ``shape:stride``.

    Mathematically: the function c -> sum of c_k d_k from the coordinates of ``shape`` to the integers.

    Args:
        shape: Extents, an int or nested tuples of ints; each at least 0.
        stride: Strides, congruent to ``shape``; may be zero or negative. Default: compact column-major. Elements.

    Example:
        >>> layout = CuteLayout((4, 8), (8, 1))
        >>> print(layout)
        (4,8):(8,1)
        >>> layout(1, 5), layout((1, 5)), layout(21)
        (13, 13, 13)
        >>> layout.size, layout.cosize
        (32, 32)
    """

    shape: IntTuple
    stride: IntTuple
    title, hint = "CuTe shape:stride", ""
    __array_ufunc__: ClassVar[None] = None  # makes numpy defer to the layout's operators
    _flat: Flat = field(init=False, repr=False, compare=False)
    _size: int = field(init=False, repr=False, compare=False)

    def __init__(self, shape: IntTuple, stride: IntTuple | None = None) -> None:
        if stride is None:
            stride = compact_col_major(validate(shape, "shape"))
        flat: list[tuple[int, int]] = []
        size = _collect_small(shape, stride, flat, 0)
        if not 0 < size < INT_LIMIT or len(flat) > TUPLE_MODES:
            _fill(self, *_checked(shape, stride))
            return
        _set_shape(self, shape)
        _set_stride(self, stride)
        _set_flat(self, tuple(flat))
        _set_size(self, size)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            _set_hash(self, hash((self.shape, self.stride)))
            return self._hash

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

        Without negative strides this is CuTe's cosize; ``4:-1`` has 4.
        """
        if self._size == 0:
            return 0
        low, high = span(self._flat)
        return 1 + high - low

    @property
    def stages(self) -> tuple[()]:
        """The swizzles and offsets over the layout: none, unlike those of a ``ComposedLayout``."""
        return ()

    @property
    def base(self) -> CuteLayout:
        """The layout under the stages: itself."""
        return self

    @property
    def out_dims(self) -> dict[str, None]:
        """One output, ``offset``, without a bound."""
        return {"offset": None}

    def __call__(self, *coord: IntTuple) -> int:
        """Return the offset at one coordinate: 1-D ``L(i)``, by mode ``L(i, j)``, nested ``L((i, (j, k)))``.

        Example:
            >>> CuteLayout(((2, 2), 8), ((1, 16), 2))((1, 1), 3)
            23
        """
        point: IntTuple = coord[0] if len(coord) == 1 else coord
        if type(point) is int and 0 <= point < self._size:
            return evaluate(self._flat, point)
        if type(point) is tuple:
            quick = quick_offset(point, self.shape, self.stride)
            if quick is not None:
                return quick
        return offset_of(validate(point, "coordinate"), self.shape, self.stride)

    def at(self, index: int) -> int:
        """Return the offset at a 1-D coordinate."""
        return self(integer(index, "coordinate"))

    def apply(self, coords: Coords) -> Any:
        """Return the offsets at many coordinates.

        Args:
            coords: An integer array of 1-D coordinates; a tuple with one such value per top-level mode (each may be a
                tuple again); or a mapping from every axis ``c0``, ``c1``, ... The arrays broadcast against each other.

        Returns:
            int64 array of offsets with the broadcast shape of the coordinates; for a mapping, ``{"offset": array}``.

        Example:
            >>> CuteLayout((4, 8), (8, 1)).apply(([[0], [1]], [0, 1, 2])).tolist()
            [[0, 1, 2], [8, 9, 10]]
        """
        if isinstance(coords, Mapping):
            leaves = tuple(by_name(tuple(self.in_dims.items()), coords, Checker("LA104"), "coordinate"))
            return {"offset": offsets_of(leaves, flatten(self.shape), flatten(self.stride))}
        return offsets_of(coords, self.shape, self.stride)

    def table(self) -> IntArray:
        """Return the offsets at the 1-D coordinates 0, 1, ..., size - 1.

        Example:
            >>> CuteLayout((2, 3), (3, 1)).table().tolist()
            [0, 3, 1, 4, 2, 5]
        """
        if self._size > QUICK:
            memory.reserve(f"({self}).table()", self._size, TABLE_ENTRY)
        return table(merge(self._flat))

    def __getitem__(self, mode: int) -> CuteLayout:
        """Return one top-level mode; mode 0 of an int shape is the layout itself.

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

    def __str__(self) -> str:
        return f"{shape_text(self.shape)}:{shape_text(self.stride)}"

    def __repr__(self) -> str:
        return f"CuteLayout({self.shape!r}, {self.stride!r})"


_SMALL = 2**48

# Slot descriptors write the fields of a frozen value in half the time of object.__setattr__.
_set_shape, _set_stride, _set_flat, _set_size = [
    CuteLayout.__dict__[name].__set__ for name in ("shape", "stride", "_flat", "_size")
]
_set_hash = _Hashed.__dict__["_hash"].__set__


def _collect_small(shape: Any, stride: Any, flat: list[tuple[int, int]], level: int) -> int:
    """Collect the modes of congruent nested tuples of plain ints and return their size; 0 if they need a closer look.

    Nearly every layout passes here in one walk: no extent is 0, and the offsets of each tuple stay below 2^48, so
    those of at most 10,000 tuples together stay inside 64 bits.
    """
    if type(shape) is not tuple or type(stride) is not tuple:
        flat.append((shape, stride))
        small = type(shape) is type(stride) is int and 0 < shape < _SMALL and -_SMALL < shape * stride < _SMALL
        return shape if small else 0
    if len(shape) != len(stride) or level >= TUPLE_DEPTH:
        return 0
    size, reach = 1 if shape else 0, 0
    for mode in zip(shape, stride):  # noqa: B905  the lengths are equal, and this is the hot path
        extent, step = mode
        if type(extent) is int and type(step) is int and extent > 0:
            flat.append(mode)
            size *= extent
            reach += extent * (step if step >= 0 else -step)
        else:
            size *= _collect_small(extent, step, flat, level + 1)
    return size if reach < _SMALL else 0


def _checked(shape: object, stride: object) -> tuple[IntTuple, IntTuple, Flat]:
    """Return shape and stride as plain nested ints with their modes, or raise."""
    extents = validate(shape, "shape")
    if min(flatten(extents), default=0) < 0:
        raise malformed("shape", "must have extents >= 0", extents, "LA103")
    _require_size(extents)
    steps = validate(stride, "stride")
    if not congruent(extents, steps):
        where, because = (_pair_text(extents, steps),), "every extent needs one stride in the same place"
        raise MalformedError(Diagnostic("LA101", "shape and stride nest differently", where, because))
    return extents, steps, tuple(zip(flatten(extents), flatten(steps), strict=True))


def _fill(layout: CuteLayout, shape: IntTuple, stride: IntTuple, flat: Flat) -> CuteLayout:
    """Set the fields; raise if a number leaves 64 bits."""
    size = 1
    low = high = 0
    for extent, step in flat:
        size *= extent
        if step < 0:
            low += (extent - 1) * step
        else:
            high += (extent - 1) * step
    if size >= INT_LIMIT or low < -INT_LIMIT or high - low >= INT_LIMIT:
        _require_size(shape)
        low, high = span(flat)  # of an empty layout (0, 0)
        if low < -INT_LIMIT or high - low >= INT_LIMIT:
            raise out_of_range(_pair_text(shape, stride), f"the offsets range from {low} to {high}")
    _set_shape(layout, shape)
    _set_stride(layout, stride)
    _set_flat(layout, flat)
    _set_size(layout, size)
    return layout


def trusted(shape: IntTuple, stride: IntTuple, flat: Flat) -> CuteLayout:
    """Build a layout from congruent nested plain ints and the leaves of both; only the range is checked."""
    return _fill(object.__new__(CuteLayout), shape, stride, flat)


def from_flat(flat: Flat) -> CuteLayout:
    """Return the layout of a digit list: no digits give ``1:0``, one digit gives an int shape."""
    if not flat:
        return CuteLayout(1, 0)
    if len(flat) == 1:
        return trusted(*flat[0], flat)
    return trusted(tuple([extent for extent, _ in flat]), tuple([stride for _, stride in flat]), flat)


def from_runs(runs: Sequence[Flat], shape: IntTuple) -> CuteLayout:
    """Return the layout nested like ``shape`` with each leaf refined into a digit list; an empty list is ``1:0``."""
    if isinstance(shape, int):
        return from_flat(runs[0])
    leaves = [run or ((1, 0),) for run in runs]
    extents: list[IntTuple] = [run[0][0] if len(run) == 1 else tuple([extent for extent, _ in run]) for run in leaves]
    strides: list[IntTuple] = [run[0][1] if len(run) == 1 else tuple([stride for _, stride in run]) for run in leaves]
    flat = tuple([digit for run in leaves for digit in run])
    return trusted(graft(iter(extents), shape), graft(iter(strides), shape), flat)


def out_of_range(where: str, because: str) -> MalformedError:
    """Return the error for a value beyond signed 64-bit integers."""
    return MalformedError(Diagnostic("LA102", "the offsets leave the signed 64-bit range", (where,), because))


def _pair_text(shape: IntTuple, stride: IntTuple) -> str:
    return f"{_bounded(shape)}:{_bounded(stride)}"


def _bounded(value: IntTuple) -> str:
    text = shape_text(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _require_size(shape: IntTuple) -> None:
    size = product(shape)
    if size >= INT_LIMIT:
        because = f"the extents multiply to {shown(size)}; the limit is 2^63 - 1"
        where = (_bounded(shape),)
        raise MalformedError(Diagnostic("LA102", "the size leaves the signed 64-bit range", where, because))
