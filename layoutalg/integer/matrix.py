"""Integer matrices: checked input and products.

Notation: a matrix is a tuple of rows of Python ints. A matrix without rows has no column count of its own, so functions
that need one take ``columns``.
"""

from __future__ import annotations

from operator import mul
from typing import TypeAlias

import numpy as np

from layoutalg.ground.check import Checker

Matrix: TypeAlias = tuple[tuple[int, ...], ...]
Vector: TypeAlias = tuple[int, ...]
Form: TypeAlias = tuple[Vector, int, int]
"""The affine form ``row x + constant``, modulo the last number unless that is 0."""
MAX_ENTRIES = 1_000_000
_INT = {int}
check = Checker("LA720", "this is not a matrix of integers")


def as_matrix(value: object, argument: str = "A", columns: int | None = None) -> Matrix:
    """Return rows of integers as a matrix.

    Args:
        value: A sequence of rows of equal length, or a two-dimensional integer array.
        argument: Name of the argument, for the message.
        columns: Expected number of columns, if known.

    Example:
        >>> as_matrix([[1, 2], (3, np.int8(4))])
        ((1, 2), (3, 4))
    """
    width = None if columns is None else check.integer(columns, "columns", 0, MAX_ENTRIES + 1)
    if isinstance(value, np.ndarray):
        value = value.tolist() if value.dtype.kind in "iuO" else value
    if not isinstance(value, (tuple, list)):
        raise check.malformed(argument, "must be a sequence of rows", value)
    rows = []
    for place, row in enumerate(value):
        plain = type(row) is tuple and (width is None or len(row) == width) and set(map(type, row)) <= _INT
        rows.append(row if plain else check.vector(row, f"{argument}[{place}]", width))
        width = len(row)
    if width and len(rows) * width > MAX_ENTRIES:
        raise check.malformed(argument, f"must have at most {MAX_ENTRIES} entries", f"{len(rows)} x {width}")
    return tuple(rows)


def column_count(A: Matrix, columns: int | None) -> int:
    """Return the number of columns; ``columns`` is used for a matrix without rows."""
    return len(A[0]) if A else columns or 0


def identity(size: int) -> Matrix:
    """Return the identity matrix.

    Example:
        >>> identity(2)
        ((1, 0), (0, 1))
    """
    return tuple([tuple([int(i == j) for j in range(size)]) for i in range(size)])


def transpose(A: Matrix, columns: int | None = None) -> Matrix:
    """Return the transpose; ``columns`` is used for a matrix without rows.

    Example:
        >>> transpose(((1, 2, 3),))
        ((1,), (2,), (3,))
    """
    return tuple(zip(*A, strict=True)) if A else ((),) * (columns or 0)


def multiply(A: Matrix, B: Matrix) -> Matrix:
    """Return the product A B.

    Example:
        >>> multiply(((1, 2),), ((3,), (4,)))
        ((11,),)
    """
    for row in A:
        if len(row) != len(B):
            raise check.malformed("B", f"must have {len(row)} rows, one per column of A", len(B))
    turned = transpose(B)
    return tuple([tuple([sum(map(mul, row, column)) for column in turned]) for row in A])


def apply(A: Matrix, x: Vector) -> Vector:
    """Return A x.

    Example:
        >>> apply(((1, 2), (0, 1)), (3, 4))
        (11, 4)
    """
    return tuple([sum(map(mul, row, x)) for row in A])
