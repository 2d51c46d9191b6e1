"""Coordinates and indices: between the 1-D coordinate, the natural coordinate and the offset.

Main definitions: ``crd2idx``, ``idx2crd``, ``crd2crd``.

Main statements: inside the domain ``idx2crd`` and ``crd2idx`` are inverse to each other. Past its end the peers
continue: CuTe C++ lets the last digit grow without bound, pycute takes every digit modulo its extent; both let
``crd2idx`` grow in the last mode. Strict refuses.

References: CuTe ``crd2idx``, ``idx2crd``, ``crd2crd``.
"""

from __future__ import annotations

from layoutalg.cute import inttuple
from layoutalg.cute.conventions import Parity, check_parity
from layoutalg.cute.inttuple import (
    IntTuple,
    compact_col_major,
    congruent,
    extents,
    flatten,
    integer,
    malformed,
    product,
    shape_text,
    validate,
)
from layoutalg.ground.errors import AdmissibilityError, Diagnostic, MalformedError


def crd2idx(coord: IntTuple, shape: IntTuple, stride: IntTuple | None = None, parity: Parity = "strict") -> int:
    """Return the offset of a coordinate; without strides, its 1-D coordinate.

    Mathematically: the sum of digits times strides; an int coordinate of a tuple mode is split colexicographically.

    Args:
        coord: An int, or a tuple with one entry per mode, nested as far as wanted.
        shape: Extents >= 0.
        stride: Strides, congruent to the shape; default compact column-major. The result has their unit.
        parity: ``"strict"`` refuses a coordinate outside. The two peers let the last digit grow.

    Raises: MalformedError: LA100, LA103, LA104, LA144. AdmissibilityError: LA105.

    Example:
        >>> crd2idx((1, 5), (4, 8), (8, 1)), crd2idx((1, 5), (4, 8))
        (13, 21)
        >>> crd2idx(37, (4, 8), (8, 1), parity="cute_cpp")
        17

    Source: CuTe ``crd2idx``.
    """
    check_parity(parity)
    sizes = extents(shape)
    steps = compact_col_major(sizes) if stride is None else validate(stride, "stride")
    if parity == "strict":
        return inttuple.crd2idx(coord, sizes, steps)
    if not congruent(sizes, steps):
        raise malformed("stride", f"must be congruent to the shape {shape_text(sizes)}", steps)
    return _grow(validate(coord, "coordinate"), sizes, steps)


def idx2crd(index: int, shape: IntTuple, parity: Parity = "strict") -> IntTuple:
    """Return the natural coordinate, nested like ``shape``, of a 1-D coordinate.

    Args:
        index: 1-D coordinate.
        shape: Extents >= 0.
        parity: Past the end ``"strict"`` refuses, ``"cute_cpp"`` lets the last digit grow, ``"pycute"`` takes each
            digit modulo its extent.

    Raises: MalformedError: LA100, LA103, LA144. AdmissibilityError: LA105.

    Example:
        >>> idx2crd(13, (4, (2, 3)))
        (1, (1, 1))
        >>> idx2crd(40, (4, 8), parity="cute_cpp"), idx2crd(40, (4, 8), parity="pycute")
        ((0, 10), (0, 2))

    Source: CuTe ``idx2crd``; pycute ``idx2crd``.
    """
    check_parity(parity)
    sizes = extents(shape)
    rest = integer(index, "index")
    leaves = flatten(sizes)
    if parity == "strict" or rest < 0 or 0 in leaves or not leaves:
        return inttuple.idx2crd(rest, sizes)
    digits: list[int] = []
    for extent in leaves[:-1]:
        rest, digit = divmod(rest, extent)
        digits.append(digit)
    digits.append(rest if parity == "cute_cpp" else rest % leaves[-1])
    return inttuple.unflatten(tuple(digits), sizes)


def crd2crd(coord: IntTuple, source: IntTuple, target: IntTuple) -> IntTuple:
    """Return the coordinate of ``target`` with the same 1-D coordinate as ``coord`` has in ``source``.

    Mathematically: idx2crd(crd2idx(coord, source), target). Where both shapes have modes of equal sizes this is the
    conversion mode by mode, which is all that CuTe does for two tuples.

    Args:
        coord: A coordinate of ``source``.
        source: Extents.
        target: Extents with the same product.

    Returns:
        Coordinate nested like ``target``.

    Raises: MalformedError: LA104, LA158. AdmissibilityError: LA105.

    Example:
        >>> crd2crd((3, 5), (4, 8), ((2, 2), 8)), crd2crd((3, 5), (4, 8), 32)
        (((1, 1), 5), 23)

    Laws: crd2crd(crd2crd(c, S, T), T, S) = c for natural coordinates c.
    Source: CuTe ``crd2crd``.
    """
    first, second = extents(source, "source"), extents(target, "target")
    if product(first) != product(second):
        raise MalformedError(
            Diagnostic(
                code="LA158",
                what="the shapes have different sizes",
                where=(f"crd2crd({shape_text(first)}, {shape_text(second)})",),
                because=f"{shape_text(first)} has {product(first)} coordinates, {shape_text(second)} has "
                f"{product(second)}",
            )
        )
    return inttuple.idx2crd(crd2idx(coord, first), second)


def _grow(coord: IntTuple, shape: IntTuple, stride: IntTuple) -> int:
    if isinstance(coord, tuple):
        if isinstance(shape, int) or isinstance(stride, int) or len(coord) != len(shape):
            raise malformed("coordinate", f"must match the shape {shape_text(shape)}", coord, "LA104")
        return sum([_grow(c, s, d) for c, s, d in zip(coord, shape, stride, strict=True)])
    leaves = tuple(zip(flatten(shape), flatten(stride), strict=True))
    total = 0
    for extent, step in leaves[:-1]:
        if extent == 0:
            raise AdmissibilityError(
                Diagnostic(
                    code="LA105",
                    what="the coordinate lies outside the domain",
                    because=f"{shape_text(shape)} is empty",
                )
            )
        coord, digit = divmod(coord, extent)
        total += digit * step
    return total + coord * leaves[-1][1] if leaves else 0
