"""Layouts whose values are coordinates (CuTe coordinate tensors), and the basis elements that are their strides.

Notation: ``(4,8):(E1,E0)`` maps (i, j) to (j, i). ``E0`` is the tuple with 1 in mode 0 and 0 elsewhere, ``E(1,0)`` has
its 1 in mode 0 of mode 1, ``E()`` is the number 1. A stride is a sum of multiples, ``2E0+E1``. Nesting of the values
that the strides do not show is appended: ``4:E0 -> (_,_)`` maps i to (i, 0).

A coordinate layout is one integer layout per leaf of its value (a component).

References: CuTe documentation of NVIDIA CUTLASS, "CuTe TMA tensors" (arithmetic tuples, basis strides); CuTe
``make_identity_layout``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, cast

import numpy as np

from layoutalg.cute.inttuple import (
    TABLE_ENTRY,
    Coords,
    IntTuple,
    flatten,
    graft,
    integer,
    malformed,
    shape_text,
    unflatten,
    validate,
)
from layoutalg.cute.layout import CuteLayout, LeafAxes
from layoutalg.ground import memory
from layoutalg.ground.digits import IntArray
from layoutalg.ground.limits import TUPLE_DEPTH, TUPLE_MODES

Path: TypeAlias = tuple[int, ...]
BasisTuple: TypeAlias = "Basis | tuple[BasisTuple, ...]"
BasisLike: TypeAlias = "Basis | int | tuple[BasisLike, ...]"
"""Strides accepted by a coordinate layout; an int must be 0."""


@dataclass(frozen=True, slots=True, repr=False)
class Basis:
    """A sum of multiples of basis elements: one stride of a coordinate layout.

    Args:
        terms: (path, scale) pairs; sorted, equal paths added, zero scales dropped. A path gives the mode at each level
            of the value.

    Example:
        >>> print(2 * E(0) + E(1, 0) - E(0))
        E0+E(1,0)
    """

    terms: tuple[tuple[Path, int], ...] = ()
    __array_ufunc__: ClassVar[None] = None  # makes numpy defer to the operators here

    def __post_init__(self) -> None:
        if not isinstance(self.terms, tuple):
            raise malformed("terms", "must be a tuple of (path, scale) pairs", self.terms, "LA170")
        total: dict[Path, int] = {}
        for term in self.terms:
            if not isinstance(term, tuple) or len(term) != 2 or not isinstance(term[0], tuple):
                raise malformed("terms", "must be a tuple of (path, scale) pairs", self.terms, "LA170")
            path = _path(term[0])
            total[path] = total.get(path, 0) + integer(term[1], "scale", "LA170")
        kept = [(path, integer(scale, "scale", "LA170")) for path, scale in sorted(total.items()) if scale]
        object.__setattr__(self, "terms", tuple(kept))

    def __add__(self, other: Basis) -> Basis:
        return Basis(self.terms + other.terms) if isinstance(other, Basis) else NotImplemented

    def __sub__(self, other: Basis) -> Basis:
        return self + (-1) * other if isinstance(other, Basis) else NotImplemented

    def __neg__(self) -> Basis:
        return (-1) * self

    def __mul__(self, scale: int) -> Basis:
        factor = integer(scale, "scale", "LA170")
        return Basis(tuple([(path, factor * value) for path, value in self.terms]))

    __rmul__ = __mul__

    def scale(self, path: Path) -> int:
        """Return the coefficient of one basis element."""
        if not isinstance(path, tuple):
            raise malformed("path", "must be a tuple of modes", path, "LA170")
        return dict(self.terms).get(_path(path), 0)

    def __str__(self) -> str:
        if not self.terms:
            return "0"
        text = ""
        for path, scale in self.terms:
            name = f"E{path[0]}" if len(path) == 1 else f"E{shape_text(path)}"
            sign = "-" if scale < 0 else "+" if text else ""
            text += sign + ("" if abs(scale) == 1 else str(abs(scale))) + name
        return text

    def __repr__(self) -> str:
        return f"Basis({self.terms!r})"


def _path(value: tuple[object, ...]) -> Path:
    path = tuple([integer(entry, "path", "LA170") for entry in value])
    if len(path) > TUPLE_DEPTH or any(not 0 <= entry < TUPLE_MODES for entry in path):
        raise malformed("path", f"must have at most {TUPLE_DEPTH} entries in [0, {TUPLE_MODES})", value, "LA170")
    return path


def E(*path: int) -> Basis:  # noqa: N802  CuTe's name
    """Return the basis element that is 1 at ``path`` and 0 elsewhere.

    Example:
        >>> print(E(0), 3 * E(1), E(0, 1))
        E0 3E1 E(0,1)
    """
    return Basis(((path, 1),))


def basis_leaves(shape: IntTuple, stride: object) -> tuple[Basis, ...]:
    """Return the strides from left to right; raise unless congruent to ``shape``."""
    if isinstance(shape, int):
        if isinstance(stride, Basis):
            return (stride,)
        if isinstance(stride, int) and not isinstance(stride, bool) and stride == 0:
            return (Basis(),)
        raise malformed("stride", "must be a basis element or 0 for every extent of the shape", stride, "LA170")
    if not isinstance(stride, tuple) or len(stride) != len(shape):
        raise malformed("stride", f"must be congruent to the shape {shape_text(shape)}", stride, "LA170")
    return tuple([leaf for s, d in zip(shape, stride, strict=True) for leaf in basis_leaves(s, d)])


def least_profile(paths: set[Path], level: int) -> IntTuple:
    """Return the smallest nesting in which every path ends at a leaf."""
    if not paths:
        return () if level == 0 else 0
    if () in paths:
        if len(paths) > 1:
            rule = "must not use a mode both as a number and as a tuple"
            raise malformed("stride", rule, tuple(sorted(paths)), "LA170")
        return 0
    inside: dict[int, set[Path]] = {}
    for path in paths:
        inside.setdefault(path[0], set()).add(path[1:])
    return tuple([least_profile(inside.get(mode, set()), level + 1) for mode in range(max(inside) + 1)])


def leaf_paths(profile: IntTuple, prefix: Path) -> list[Path]:
    """Return the paths of the leaves from left to right."""
    if isinstance(profile, int):
        return [prefix]
    return [path for mode, entry in enumerate(profile) for path in leaf_paths(entry, (*prefix, mode))]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class CoordinateLayout(LeafAxes):
    """A layout ``shape:stride`` whose strides are basis elements and whose values are nested tuples.

    Mathematically: the function c -> sum of c_k e_k, with e_k a vector of integers over the leaves of ``profile``.

    Args:
        shape: Extents, as for ``CuteLayout``.
        stride: ``Basis`` values, congruent to ``shape``; 0 is the zero stride.
        profile: Nesting of the values; only the structure counts. Default: the smallest with every path.

    Example:
        >>> layout = CoordinateLayout((4, 8), (E(1), E(0)))
        >>> print(layout)
        (4,8):(E1,E0)
        >>> layout(2, 5), layout(22)
        ((5, 2), (5, 2))
    """

    shape: IntTuple
    stride: BasisTuple
    profile: IntTuple
    hint = "its .components are integer layouts"
    __array_ufunc__: ClassVar[None] = None  # makes numpy defer to the layout's operators
    _paths: tuple[Path, ...] = field(init=False, repr=False, compare=False)
    _components: tuple[CuteLayout, ...] = field(init=False, repr=False, compare=False)

    def __init__(self, shape: IntTuple, stride: BasisLike, profile: IntTuple | None = None) -> None:
        shape = validate(shape, "shape")
        strides = basis_leaves(shape, stride)
        used = {path for entry in strides for path, _ in entry.terms}
        if profile is None:
            profile = least_profile(used, 0)
        else:
            profile = validate(profile, "profile")
            profile = unflatten(tuple([0] * len(flatten(profile))), profile)
        paths = tuple(leaf_paths(profile, ()))
        stray = sorted(used - set(paths))
        if stray:
            raise malformed("profile", f"must have a leaf at E{shape_text(stray[0])}", profile, "LA170")
        parts = [
            CuteLayout(shape, unflatten(tuple([entry.scale(path) for entry in strides]), shape)) for path in paths
        ] or [CuteLayout(shape, unflatten(tuple([0] * len(strides)), shape))]
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "stride", graft(iter(strides), shape))
        object.__setattr__(self, "profile", profile)
        object.__setattr__(self, "_paths", paths)
        object.__setattr__(self, "_components", tuple(parts[: len(paths)]))

    @property
    def flat(self) -> tuple[tuple[int, Basis], ...]:
        """The modes without nesting: (extent, stride) pairs, fastest first."""
        return tuple(zip(flatten(self.shape), basis_leaves(self.shape, self.stride), strict=True))

    @property
    def size(self) -> int:
        """Number of coordinates."""
        return CuteLayout(self.shape).size

    @property
    def out_dims(self) -> dict[str, None]:
        """The leaves of the value, ``E0`` or ``E1_0``, without a bound.

        Example:
            >>> make_identity_layout((4, (2, 3))).out_dims
            {'E0': None, 'E1_0': None, 'E1_1': None}
        """
        return {"E" + "_".join([str(step) for step in path]): None for path in self._paths}

    @property
    def components(self) -> tuple[tuple[Path, CuteLayout], ...]:
        """One integer layout per leaf of the value, with the path of the leaf."""
        return tuple(zip(self._paths, self._components, strict=True))

    def __call__(self, *coord: IntTuple) -> IntTuple:
        """Return the value at one coordinate, read as by ``CuteLayout``."""
        if not self._components:
            CuteLayout(self.shape)(*coord)
        return unflatten(tuple([part(*coord) for part in self._components]), self.profile)

    def at(self, index: int) -> int | tuple[int, ...]:
        """Return the leaves of the value at a 1-D coordinate: one number, or a tuple if there are several."""
        values = flatten(self(integer(index, "coordinate")))
        return values[0] if len(values) == 1 else values

    def apply(self, coords: Coords) -> Any:
        """Return the values at many coordinates, read as by ``CuteLayout.apply``.

        Returns:
            An int64 array, with a last axis over the leaves of the value if there are several; for a mapping, a mapping
            from the leaves to arrays.
        """
        if isinstance(coords, Mapping):
            parts = [part.apply(coords)["offset"] for part in self._components]
            return dict(zip(self.out_dims, parts, strict=True))
        if not self._components:
            return np.zeros((*CuteLayout(self.shape).apply(coords).shape, 0), dtype=np.int64)
        columns = [part.apply(coords) for part in self._components]
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=-1)

    def table(self) -> IntArray:
        """Return the values at 0, 1, ..., size - 1, one row each.

        Example:
            >>> make_identity_layout((2, 2)).table().tolist()
            [[0, 0], [1, 0], [0, 1], [1, 1]]
        """
        memory.reserve(f"({self}).table()", self.size, TABLE_ENTRY * max(1, len(self._components)))
        if not self._components:
            return np.zeros((self.size, 0), dtype=np.int64)
        columns = [part.table() for part in self._components]
        return columns[0] if len(columns) == 1 else np.stack(columns, axis=-1)

    def __getitem__(self, mode: int) -> CoordinateLayout:
        """Return one top-level mode; the profile of the values is kept."""
        shape = CuteLayout(self.shape)[mode].shape
        if isinstance(self.shape, int) or isinstance(self.stride, Basis):
            return self
        return CoordinateLayout(shape, self.stride[mode], self.profile)

    def __str__(self) -> str:
        text = f"{shape_text(self.shape)}:{shape_text(cast(Any, self.stride))}"
        used = {path for _, entry in self.flat for path, _ in entry.terms}
        plain_text = used and least_profile(used, 0) == self.profile
        return text if plain_text else f"{text} -> {_profile_text(self.profile)}"

    def __repr__(self) -> str:
        return f"CoordinateLayout({self.shape!r}, {self.stride!r}, {self.profile!r})"


def _profile_text(profile: IntTuple) -> str:
    return "_" if isinstance(profile, int) else "(" + ",".join([_profile_text(entry) for entry in profile]) + ")"


def make_identity_layout(shape: IntTuple) -> CoordinateLayout:
    """Return the layout that maps each coordinate of ``shape`` to itself.

    Mathematically: c -> c, nested like ``shape``; an index i maps to ``idx2crd(i, shape)``.

    Example:
        >>> print(make_identity_layout((4, (2, 3))))
        (4,(2,3)):(E0,(E(1,0),E(1,1)))
        >>> make_identity_layout((4, (2, 3)))(13)
        (1, (1, 1))
    """
    shape = validate(shape, "shape")
    return CoordinateLayout(shape, graft(iter([E(*path) for path in leaf_paths(shape, ())]), shape), shape)
