"""Arithmetic on shapes: rounding division mode by mode, products of modes, compatibility.

Main definitions: ``ceil_div``, ``product_each``, ``compatible``.

References: CuTe documentation of NVIDIA CUTLASS (``ceil_div``, ``product_each``, ``compatible``).
"""

from __future__ import annotations

from layoutalg.cute.inttuple import IntTuple, extents, flatten, malformed, product, validate


def ceil_div(shape: IntTuple, divisor: IntTuple) -> IntTuple:
    """Return how many steps of ``divisor`` cover ``shape``, mode by mode, rounded up.

    Mathematically: for two ints the least n with n * divisor >= shape. An int divisor goes through the modes of a tuple
    from the fastest: each mode is divided by what is left of it, and the divisor by the mode, both rounded up. A tuple
    divisor divides mode by mode; modes it leaves out stay.

    Args:
        shape: Extents >= 0.
        divisor: An int >= 1, or a tuple of divisors with at most one entry per mode.

    Raises: MalformedError: LA147.

    Example:
        >>> ceil_div(10, 4), ceil_div((6, 4), 4), ceil_div((6, 4), 12), ceil_div((6, 4), (4, 2))
        (3, (2, 4), (1, 2), (2, 2))

    Source: CuTe ``ceil_div``.
    """
    shape = validate(shape, "shape")
    divisor = validate(divisor, "divisor")
    if any(extent < 0 for extent in flatten(shape)):
        raise malformed("shape", "must have extents >= 0", shape, "LA147")
    if any(value < 1 for value in flatten(divisor)):
        raise malformed("divisor", "must be at least 1", divisor, "LA147")
    return _ceil_div(shape, divisor)


def _ceil_div(shape: IntTuple, divisor: IntTuple) -> IntTuple:
    if isinstance(divisor, tuple):
        if isinstance(shape, int):
            return -(-shape // product(divisor))
        if len(divisor) > len(shape):
            raise malformed("divisor", f"must have at most {len(shape)} entries, one per mode", divisor, "LA147")
        divided = [_ceil_div(extent, entry) for extent, entry in zip(shape, divisor, strict=False)]
        return (*divided, *shape[len(divisor) :])
    if isinstance(shape, int):
        return -(-shape // divisor)
    modes: list[IntTuple] = []
    for extent in shape:
        modes.append(_ceil_div(extent, divisor))
        size = product(extent)
        divisor = -(-divisor // size) if size else 1
    return tuple(modes)


def product_each(shape: IntTuple) -> tuple[int, ...]:
    """Return the size of each top-level mode.

    Raises: MalformedError: LA100, LA103.

    Example:
        >>> product_each(((2, 3), 4)), product_each(6)
        ((6, 4), (6,))

    Source: CuTe ``product_each``.
    """
    shape = extents(shape)
    return (shape,) if isinstance(shape, int) else tuple([product(entry) for entry in shape])


def compatible(coarse: IntTuple, fine: IntTuple) -> bool:
    """Return whether every coordinate of ``coarse`` is also one of ``fine``: ``fine`` refines it mode by mode.

    Args:
        coarse: A shape; of a layout, its ``shape``.
        fine: A shape.

    Raises: MalformedError: LA100, LA103.

    Example:
        >>> compatible((6, 4), ((2, 3), 4)), compatible(24, (6, 4)), compatible((6, 4), 24)
        (True, True, False)

    Source: CuTe ``compatible``.
    """
    return _compatible(extents(coarse, "coarse"), extents(fine, "fine"))


def _compatible(coarse: IntTuple, fine: IntTuple) -> bool:
    if isinstance(coarse, int):
        return coarse == product(fine)
    return (
        isinstance(fine, tuple)
        and len(coarse) == len(fine)
        and all(_compatible(a, b) for a, b in zip(coarse, fine, strict=True))
    )
