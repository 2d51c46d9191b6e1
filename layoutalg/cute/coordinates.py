"""Layouts whose values are coordinates: coordinate tensors without memory.

Main definitions: ``CoordinateLayout``, ``make_identity_layout``.

Notation: ``(4,8):(E1,E0)`` maps (i, j) to (j, i). Where the strides do not show how the values nest, that follows:
``4:E0 -> (_,_)`` maps i to (i, 0).

Main statements: a coordinate layout is one integer layout per leaf of its value (a component); it is composed with an
inner layout component by component. A mode of the inner layout becomes a digit list if and only if each component gives
one and the places where their digits end divide one another in turn; the modes add up if and only if they do in every
component. Both are decided without enumeration.

References: CuTe documentation of NVIDIA CUTLASS, "CuTe TMA tensors" (arithmetic tuples, basis strides).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, cast

import numpy as np

from layoutalg.cute.basis import (
    Basis,
    BasisLike,
    BasisTuple,
    E,
    Path,
    basis_leaves,
    basis_text,
    graft,
    graft_ints,
    leaf_paths,
    least_profile,
)
from layoutalg.cute.composed import ComposedLayout
from layoutalg.cute.composition import composition
from layoutalg.cute.inttuple import IntTuple, depth, flatten, malformed, rank, shape_text, unflatten, validate
from layoutalg.cute.inverse import right_inverse
from layoutalg.cute.layout import TABLE_ENTRY, Coords, CuteLayout
from layoutalg.cute.operand import plain
from layoutalg.ground import memory
from layoutalg.ground.digits import Flat, IntArray, evaluate, merge, span
from layoutalg.ground.errors import Diagnostic, LayoutError, RepresentabilityError
from layoutalg.ground.operators import then


@dataclass(frozen=True, slots=True, init=False, repr=False)
class CoordinateLayout:
    """A layout ``shape:stride`` whose strides are basis elements and whose values are nested tuples.

    Mathematically: the function c -> sum of c_k e_k, with e_k a vector of integers over the leaves of ``profile``.

    Args:
        shape: Extents, as for ``CuteLayout``.
        stride: ``Basis`` values, congruent to ``shape``; 0 stands for no movement.
        profile: How the values nest; only the structure counts. Default: the least one that has every path.

    Raises: MalformedError: LA170, LA100 to LA103.

    Example:
        >>> layout = CoordinateLayout((4, 8), (E(1), E(0)))
        >>> print(layout)
        (4,8):(E1,E0)
        >>> layout(2, 5), layout(22)
        ((5, 2), (5, 2))

    Source: CuTe coordinate tensors.
    """

    shape: IntTuple
    stride: BasisTuple
    profile: IntTuple
    __array_ufunc__: ClassVar[None] = None  # numpy leaves operators with a layout to the layout
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
    def rank(self) -> int:
        """Number of top-level modes."""
        return rank(self.shape)

    @property
    def depth(self) -> int:
        """How deep the shape nests."""
        return depth(self.shape)

    @property
    def components(self) -> tuple[tuple[Path, CuteLayout], ...]:
        """One integer layout per leaf of the value, with the path of the leaf."""
        return tuple(zip(self._paths, self._components, strict=True))

    def __call__(self, *coord: IntTuple) -> IntTuple:
        """Return the value at one coordinate, read as by ``CuteLayout``."""
        if not self._components:
            CuteLayout(self.shape)(*coord)
        return unflatten(tuple([part(*coord) for part in self._components]), self.profile)

    def apply(self, coords: Coords) -> IntArray:
        """Return the values at many coordinates: an int64 array with a last axis over the leaves of the value."""
        if not self._components:
            return np.zeros((*CuteLayout(self.shape).apply(coords).shape, 0), dtype=np.int64)
        return np.stack([part.apply(coords) for part in self._components], axis=-1)

    def table(self) -> IntArray:
        """Return the values at 0, 1, ..., size - 1 as an int64 array of shape (size, leaves of the value).

        Example:
            >>> make_identity_layout((2, 2)).table().tolist()
            [[0, 0], [1, 0], [0, 1], [1, 1]]
        """
        memory.reserve(f"({self}).table()", self.size, TABLE_ENTRY * max(1, len(self._components)))
        if not self._components:
            return np.zeros((self.size, 0), dtype=np.int64)
        return np.stack([part.table() for part in self._components], axis=-1)

    def __getitem__(self, mode: int) -> CoordinateLayout:
        """Return one top-level mode; the profile of the values stays."""
        shape = CuteLayout(self.shape)[mode].shape
        if isinstance(self.shape, int) or isinstance(self.stride, Basis):
            return self
        return CoordinateLayout(shape, self.stride[mode], self.profile)

    def __iter__(self) -> Iterator[CoordinateLayout]:
        return iter([self[position] for position in range(self.rank)])

    def compose(self, inner: CuteLayout) -> CoordinateLayout:
        """Return ``self`` after ``inner``, also written ``self @ inner``.

        Raises: MalformedError: LA192. AdmissibilityError: LA120. RepresentabilityError: LA172. BudgetError: LA125.

        Example:
            >>> print(make_identity_layout((4, 8)).compose(CuteLayout((8, 4), (4, 1))))
            (8,4):(E1,E0)
            >>> print(make_identity_layout((4, 8)).compose(CuteLayout((2, 8), (16, 2))))
            (2,(2,4)):(4E1,(2E0,E1))
        """
        where = f"composition({self}, {plain(inner, 'compose', 'inner')})"
        if not self._components:
            CuteLayout(self.shape).apply(np.asarray(span(inner.flat) if inner.size else [], dtype=np.int64))
            return CoordinateLayout(inner.shape, graft(iter([Basis()] * len(inner.flat)), inner.shape), self.profile)
        for path, part in self.components:
            try:
                composition(part, inner)
            except RepresentabilityError as error:
                raise _not_coordinates(error, where, path) from error
            except LayoutError as error:
                raise seen_from(error, where) from error
        shapes: list[IntTuple] = []
        strides: list[BasisTuple] = []
        for extent, step in inner.flat:
            digits = self._run(extent, step if inner.size else 0, where)
            shapes.append(digits[0][0] if len(digits) == 1 else tuple([count for count, _ in digits]))
            strides.append(digits[0][1] if len(digits) == 1 else tuple([stride for _, stride in digits]))
        return CoordinateLayout(graft_ints(iter(shapes), inner.shape), graft(iter(strides), inner.shape), self.profile)

    def _run(self, extent: int, step: int, where: str) -> list[tuple[int, Basis]]:
        """Return the digits of the mode extent:step, each component being strided along it."""
        parts = [composition(part, CuteLayout(extent, step)).flat for part in self._components]
        if extent <= 1:
            return [(extent, Basis(tuple([(p, run[0][1]) for p, run in zip(self._paths, parts, strict=True)])))]
        ends = common_ends(parts)
        for low, high in pairwise(ends):
            if high % low:
                raise clash(parts, low, high, extent, step, where)
        digits: list[tuple[int, Basis]] = []
        for low, high in pairwise([*ends, extent]):
            values = [(path, evaluate(run, low)) for path, run in zip(self._paths, parts, strict=True)]
            digits.append((high // low, Basis(tuple(values))))
        return digits

    def __matmul__(self, inner: CuteLayout) -> CoordinateLayout:
        return self.compose(inner) if isinstance(inner, CuteLayout) else NotImplemented

    def __rmatmul__(self, outer: CuteLayout | ComposedLayout) -> CuteLayout | ComposedLayout:
        from layoutalg.cute.at_coordinates import at_coordinates

        return at_coordinates(outer, self) if isinstance(outer, CuteLayout | ComposedLayout) else NotImplemented

    def then(self, outer: CuteLayout | ComposedLayout) -> CuteLayout | ComposedLayout:
        """Return ``outer`` read at these coordinates, also written ``outer @ self``.

        Raises: MalformedError: LA192.

        Example:
            >>> print(make_identity_layout((4, 8)).then(CuteLayout((4, 8), (8, 1))))
            (4,8):(8,1)
        """
        return cast("CuteLayout | ComposedLayout", then(self, outer))

    def right_inverse(self) -> CuteLayout:
        """Return the layout R from coordinates to indices with self(R(c)) = c on the whole domain of R.

        Mathematically: the shape of R nests like the values; each leaf follows the strides 1, s, s t, ... of its own
        component, through modes that move nothing else. Where the layout is a bijection onto a box, R is its inverse.

        Example:
            >>> print(CoordinateLayout((4, (2, 3)), (E(1), (E(0), 2 * E(0)))).right_inverse())
            (6,4):(4,1)
            >>> print(make_identity_layout((4, (2, 3))).right_inverse())
            (4,(2,3)):(1,(4,8))
        """
        strides = [entry for _, entry in self.flat]
        shapes: list[IntTuple] = []
        steps: list[IntTuple] = []
        for path in self._paths:
            own = [entry.scale(path) if len(entry.terms) == 1 else 0 for entry in strides]
            back = right_inverse(CuteLayout(self.shape, unflatten(tuple(own), self.shape)))
            shapes.append(back.shape)
            steps.append(back.stride)
        return CuteLayout(graft_ints(iter(shapes), self.profile), graft_ints(iter(steps), self.profile))

    def __str__(self) -> str:
        text = f"{shape_text(self.shape)}:{basis_text(self.stride)}"
        used = {path for _, entry in self.flat for path, _ in entry.terms}
        plain_text = used and least_profile(used, 0) == self.profile
        return text if plain_text else f"{text} -> {_profile_text(self.profile)}"

    def __repr__(self) -> str:
        return f"CoordinateLayout({self.shape!r}, {self.stride!r}, {self.profile!r})"


def _profile_text(profile: IntTuple) -> str:
    return "_" if isinstance(profile, int) else "(" + ",".join([_profile_text(entry) for entry in profile]) + ")"


def make_identity_layout(shape: IntTuple) -> CoordinateLayout:
    """Return the layout that maps each coordinate of ``shape`` to itself.

    Mathematically: c -> c, nested like ``shape``; an index i goes to its natural coordinate ``idx2crd(i, shape)``.

    Args:
        shape: Extents.

    Example:
        >>> print(make_identity_layout((4, (2, 3))))
        (4,(2,3)):(E0,(E(1,0),E(1,1)))
        >>> make_identity_layout((4, (2, 3)))(13)
        (1, (1, 1))

    Source: CuTe ``make_identity_layout``.
    """
    shape = validate(shape, "shape")
    return CoordinateLayout(shape, graft(iter([E(*path) for path in leaf_paths(shape, ())]), shape), shape)


def common_ends(parts: list[Flat]) -> list[int]:
    """Return 1 and the places where a digit of some part ends, in order, the whole extent left out."""
    ends = {1}
    for run in parts:
        done = 1
        for count, _ in merge(run)[:-1]:
            done *= count
            ends.add(done)
    return sorted(ends)


def clash(parts: list[Flat], low: int, high: int, extent: int, step: int, where: str) -> RepresentabilityError:
    """Return the refusal of a run where one part ends a digit at ``low`` and another at ``high``."""
    witness: dict[str, object] = {"mode": f"{extent}:{step}", "ends": (low, high)}
    for index in range(low + 1, min(extent, max(high + 1, 4096))):
        inside = index % low
        actual = tuple([evaluate(run, index) for run in parts])
        added = tuple([evaluate(run, index - inside) + evaluate(run, inside) for run in parts])
        if actual != added:
            witness |= {"coordinate": index, "composition": actual, "layout": added}
            break
    return RepresentabilityError(
        Diagnostic(
            code="LA172",
            what="the composition is not a coordinate layout",
            where=(where,),
            because=f"along the mode {extent}:{step} one part of the value ends a digit at index {low} and another at "
            f"{high}, which is no multiple of it",
            witness=witness,
        )
    )


def _not_coordinates(error: RepresentabilityError, where: str, path: Path) -> RepresentabilityError:
    old = error.diagnostic
    return RepresentabilityError(
        Diagnostic(
            code="LA172",
            what="the composition is not a coordinate layout",
            where=(where, *old.where),
            because=f"in the part E{shape_text(path)} of the value, {old.because}",
            witness=old.witness,
        )
    )


def seen_from(error: LayoutError, where: str) -> LayoutError:
    """Return the same refusal as seen from the call ``where``."""
    old = error.diagnostic
    return type(error)(
        Diagnostic(code=old.code, what=old.what, where=(where, *old.where), because=old.because, witness=old.witness)
    )
