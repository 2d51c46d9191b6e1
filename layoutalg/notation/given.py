"""Read values that are no layouts yet: Python functions of coordinates, and tensors with strides."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from layoutalg.bridges.normal import of_axes
from layoutalg.ground import clock
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import Diagnostic, MalformedError
from layoutalg.ground.limits import POINTS
from layoutalg.ground.listed import ListedLayout
from layoutalg.notation.arrays import described
from layoutalg.notation.memref import recognized

CHECK = Checker("LA992", "this value is no layout")
AGAIN = 64
"""Points at which a function is called twice."""
STEP = 2**10


def of_function(function: Callable[..., object], shape: Sequence[int] | None) -> Any:
    """Return a function of one coordinate per dimension as a layout on a box.

    Every point of the box is evaluated; a function that no CuTe or linear layout has the values of becomes a table.

    Args:
        function: From integers, outermost dimension first, to an element offset.
        shape: Extents, at most 2^20 points.

    Raises: MalformedError: LA992, with the first coordinate at which the function fails, returns anything other than
        an integer in [-2^62, 2^62), or a second call another value. BudgetError: LA001.

    Example:
        >>> print(of_function(lambda i, j: 72 * i + j, (64, 64)), of_function(lambda i: i * i, (5,)))
        (64,64):(72,1) a table of 5 offsets over 5
        >>> of_function(lambda i, j: i / 2 + j, (4, 4))
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA992 this value is no layout
          in     the function
          since  must return an integer, the element offset, not 0.0 at (0, 0)
    """
    if shape is None:
        because = "a function has no extents: give a shape, layoutalg.layout(function, (64, 64))"
        raise MalformedError(Diagnostic("LA992", "this value is no layout", (_name(function),), because))
    extents = CHECK.vector(shape, "shape")
    if not extents or min(extents) < 1 or math.prod(extents) > POINTS:
        raise CHECK.malformed("shape", f"must have 1 to {POINTS} points for a function", extents)
    try:
        inspect.signature(function).bind(*extents)
    except TypeError as error:
        rule = f"must take {len(extents)} coordinates, one per dimension"
        raise CHECK.malformed("the function", rule, str(error)) from None
    except ValueError:  # a builtin without a signature
        pass
    values: list[int] = []
    for number, point in enumerate(itertools.product(*(range(extent) for extent in reversed(extents)))):
        if number % STEP == 0:
            clock.check("a function of coordinates")
        values.append(_value(function, point[::-1]))
    apart = max(1, len(values) // AGAIN)
    for flat in range(0, len(values), apart):
        at = tuple(int(part) for part in np.unravel_index(flat, extents, order="F"))
        if (second := _value(function, at)) != values[flat]:
            rule = f"must return the same value every time, at {at} {values[flat]}"
            raise CHECK.malformed("the function", rule, second)
    table = np.array(values, dtype=np.int64)
    found = recognized(table, extents)
    return ListedLayout(extents, tuple(values)) if found is None else found


def _value(function: Callable[..., object], point: tuple[int, ...]) -> int:
    try:
        value = function(*point)
    except Exception as error:  # the user's own code may raise anything
        rule = f"must be defined at every point of the box; at {point} it raises"
        raise CHECK.malformed("the function", rule, f"{type(error).__name__}: {error}") from None
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise CHECK.malformed("the function", "must return an integer, the element offset", value, f" at {point}")
    if not -(2**62) <= value < 2**62:
        raise CHECK.malformed("the function", "must return an offset in [-2^62, 2^62)", int(value), f" at {point}")
    return int(value)


def _name(function: object) -> str:
    return str(getattr(function, "__name__", type(function).__name__))[:80]


def of_strided(value: object) -> tuple[Any, str | None] | None:
    """Return the layout of a tensor with strides in elements, and the name of its type; None for any other value.

    Args:
        value: A ``Tensor``, a tensor of another library (see ``layoutalg.notation.arrays``), or any object with
            ``shape`` and ``strides`` in elements.

    Raises: MalformedError: LA992: sizes that are not integers, or strides that count bytes.

    Example:
        >>> from types import SimpleNamespace
        >>> print(of_strided(SimpleNamespace(shape=(4, 8), strides=(9, 1)))[0])
        (4,8):(9,1)
        >>> of_strided(memoryview(b"abc"))
        Traceback (most recent call last):
        layoutalg.ground.errors.MalformedError: LA992 this value is no layout
          in     strides
          since  must count elements; those of a memoryview count bytes, not (1,)
    """
    if isinstance(value, type):
        return None
    found = described(value)
    shape, strides, dtype = (None, None, None) if found is None else (found.shape, found.stride, found.dtype)
    if found is None:
        shape, strides = getattr(value, "shape", None), getattr(value, "strides", None)
        if shape is None or strides is None:
            return None
        if hasattr(value, "itemsize"):
            raise CHECK.malformed(
                "strides", f"must count elements; those of a {type(value).__name__} count bytes", strides
            )
        dtype = getattr(value, "dtype", None)
    extents = CHECK.vector(shape, "shape")
    if strides is None:
        strides = tuple(math.prod(extents[place + 1 :]) for place in range(len(extents)))
    steps = CHECK.vector(strides, "strides", len(extents))
    layout = of_axes([((extent, step),) for extent, step in zip(extents, steps, strict=True)])
    return layout, None if dtype is None else str(dtype).rpartition(".")[2]
