"""Basis elements: the strides of coordinate layouts.

Notation: ``E0`` is the tuple with 1 in mode 0 and 0 elsewhere, ``E(1,0)`` has its 1 in mode 0 of mode 1, ``E()`` is the
number 1. A stride is a sum of multiples, ``2E0+E1``.

References: CuTe documentation of NVIDIA CUTLASS, "CuTe TMA tensors" (arithmetic tuples, basis strides).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from layoutalg.cute.inttuple import IntTuple, integer, malformed, shape_text
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

    Raises: MalformedError: LA170.

    Example:
        >>> print(2 * E(0) + E(1, 0) - E(0))
        E0+E(1,0)

    Source: ``cute::ScaledBasis``.
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
        """Return the coefficient of one basis element.

        Raises: MalformedError: LA170.
        """
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

    Source: ``cute::E``.
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
            raise malformed(
                "stride", "must not use a mode both as a number and as a tuple", tuple(sorted(paths)), "LA170"
            )
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


def basis_text(stride: BasisTuple) -> str:
    """Return nested strides in CuTe notation."""
    if isinstance(stride, Basis):
        return str(stride)
    return "(" + ",".join([basis_text(entry) for entry in stride]) + ")"
