"""Read layouts, texts, tables, callables and foreign objects as functions of a flat coordinate.

Notation: of a foreign object, the first of these is used: ``table()``; a call with one flat coordinate, with a size
from ``size`` (a method or a number), ``len`` or the product of ``shape``. A callable without a size gets that of the
function it is compared with. Rows of a two-dimensional table are tuples of outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from layoutalg.bridges.normal import AnyFamily, normal, values_at
from layoutalg.ground.check import Checker
from layoutalg.ground.errors import shown
from layoutalg.ground.layout import Layout
from layoutalg.hierarchy import HierarchicalLayout
from layoutalg.notation import parse
from layoutalg.piecewise import PiecewiseLayout

CHECK = Checker("LA456", "invalid argument of an assertion about layouts")
Values = npt.NDArray[Any]
SINGLY = 2**12
"""Evaluate callables point by point up to this size; above it in one array call, if both agree."""
COMPARED = 257
"""Number of points at which the array call is compared with single calls."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the flat coordinates 0, 1, ..., size - 1.

    Args:
        text: One-line description.
        size: Number of coordinates; None to use that of the other function.
        rows: Values at an array of coordinates, one row of outputs each.
        layout: The layout itself; None for tables, callables and foreign objects.
        axes: Its axes, name -> extent, fastest first.
    """

    text: str
    size: int | None
    rows: Callable[[npt.NDArray[np.int64]], Values]
    layout: AnyFamily | None = None
    axes: tuple[tuple[str, int], ...] = ()

    def values(self, index: npt.NDArray[np.int64]) -> list[Any]:
        """Return the values at coordinates as Python numbers or tuples; None where undefined."""
        rows = self.rows(index).tolist()
        holes = isinstance(self.layout, HierarchicalLayout) and not self.layout.is_total
        found: list[Any] = [row[0] if len(row) == 1 else tuple(row) for row in rows]
        return [None if holes and value == -1 else value for value in found]

    def point(self, index: int) -> tuple[int, ...]:
        """Return a flat coordinate as digits, one per axis."""
        digits = []
        for _, extent in self.axes:
            index, digit = divmod(index, extent)
            digits.append(digit)
        return tuple(digits)


def function_of(value: Any, argument: str) -> Function:
    """Return the function that ``value`` represents.

    Args:
        value: A layout of any family or its text, a table (an array or a list), an object with a size and a call, or a
            callable of one flat coordinate or an array of them.
        argument: Its name, for error messages.

    Example:
        >>> function_of("(4,8):(8,1)", "f").values(np.arange(6))
        [0, 8, 16, 24, 1, 9]
        >>> function_of(lambda i: (i // 2, i % 2), "f").values(np.arange(3))
        [(0, 0), (0, 1), (1, 0)]
    """
    if isinstance(value, str):
        value = parse(value)
    if isinstance(value, PiecewiseLayout) and not value.is_total:
        return Function(shown(str(value)), None, _refused, value)
    layout = normal(value)
    if layout is not None:
        axes = tuple(layout.in_dims.items())
        return Function(_told(value), layout.size, lambda index: values_at(layout, index), layout, axes)
    if isinstance(value, (np.ndarray, list, tuple)):
        return _tabled(value, argument)
    size = _size_of(value, argument)
    if isinstance(value, Layout):
        return Function(_told(value), size, _vectorised(value.apply), None, tuple(value.in_dims.items()))
    if size is not None and callable(getattr(value, "table", None)) and not callable(value):
        return _tabled(value.table(), argument, _told(value))
    if not callable(value):
        raise CHECK.malformed(argument, "must be a layout, its text, a table or a callable", value)
    axes = _axes_of(getattr(value, "shape", None))
    return Function(_told(value), size, _vectorised(value), None, axes if _product(axes) == size else ())


def _told(value: Any) -> str:
    """The value in one line; functions by name."""
    name = getattr(value, "__qualname__", None)
    try:
        return name if isinstance(name, str) else str(value)
    except Exception:  # foreign ``__str__`` may raise anything
        return shown(value)


def _refused(_: npt.NDArray[np.int64]) -> Values:
    raise CHECK.malformed("layout", "must be total and non-parametric", "a partial one")


def _size_of(value: Any, argument: str) -> int | None:
    """The size of an object, or None if it does not state one."""
    found = getattr(value, "size", None)
    if found is None:
        shape = getattr(value, "shape", None)
        if shape is None:
            return len(value) if hasattr(value, "__len__") else None
        return _product(_axes_of(shape)) if not callable(shape) else None
    return CHECK.integer(found() if callable(found) else found, f"the size of {argument}", 0)


def _axes_of(shape: Any) -> tuple[tuple[str, int], ...]:
    """The leaves of a nested shape as axes."""
    leaves: list[int] = []

    def walk(part: Any) -> None:
        if isinstance(part, (tuple, list)):
            for entry in part:
                walk(entry)
        elif isinstance(part, (int, np.integer)):
            leaves.append(int(part))

    walk(shape)
    return tuple([(f"c{place}", extent) for place, extent in enumerate(leaves)])


def _product(axes: tuple[tuple[str, int], ...]) -> int:
    return math.prod(extent for _, extent in axes)


def _tabled(values: Any, argument: str, text: str = "") -> Function:
    """A table of values; if two-dimensional, its rows are outputs."""
    try:
        table = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise CHECK.malformed(argument, "must be a table of integers", shown(values)) from error
    if table.ndim not in (1, 2) or not (table.dtype.kind in "iu" or table.dtype == object or not table.size):
        rule = "must be a one-dimensional table of integers, or a two-dimensional one with a row per coordinate"
        raise CHECK.malformed(argument, rule, f"an array of shape {table.shape} of {table.dtype}")
    rows = table if table.ndim == 2 else table.reshape(len(table), 1)
    text = text or f"a table of {len(rows)} values"
    return Function(text, len(rows), lambda index: rows[index], None, (("i", len(rows)),))


def _vectorised(call: Callable[[Any], Any]) -> Callable[[npt.NDArray[np.int64]], Values]:
    """Return a function on arrays of coordinates, even if the call accepts only single ones."""

    def rows(index: npt.NDArray[np.int64]) -> Values:
        found = _at_once(call, index)
        return found if found is not None else _one_by_one(call, index)

    return rows


def _at_once(call: Callable[[Any], Any], index: npt.NDArray[np.int64]) -> Values | None:
    """The rows from one array call; None if the call does not accept arrays, or disagrees with single calls."""
    if len(index) <= SINGLY:
        return None
    try:
        found = call(index)
        parts = [np.asarray(part) for part in (found if isinstance(found, tuple) else (found,))]
        if any(part.shape != index.shape or part.dtype.kind not in "iu" for part in parts):
            return None
        rows = np.stack(parts, axis=-1)
        some = np.linspace(0, len(index) - 1, COMPARED).astype(np.int64)
        return rows if np.array_equal(rows[some], _one_by_one(call, index[some])) else None
    except Exception:  # foreign code written for single coordinates may raise anything
        return None


def _one_by_one(call: Callable[[Any], Any], index: npt.NDArray[np.int64]) -> Values:
    found = [call(int(place)) for place in index]
    rows = [tuple(value) if isinstance(value, (tuple, list, np.ndarray)) else (value,) for value in found]
    return np.array([[int(part) for part in row] for row in rows], dtype=object).reshape(len(rows), -1)


class TabledLayout(Layout):
    """A function given by its table over a box, for pictures."""

    __slots__ = ("_dims", "_rows", "_text")

    def __init__(self, text: str, dims: dict[str, int], rows: Values) -> None:
        self._text, self._dims, self._rows = text, dims, rows

    @property
    def in_dims(self) -> dict[str, int]:
        """The box."""
        return self._dims

    @property
    def out_dims(self) -> dict[str, Any]:
        """One unbounded output per column."""
        return {f"y{place}": None for place in range(self._rows.shape[1])}

    @property
    def size(self) -> int:
        """Number of points."""
        return len(self._rows)

    def at(self, index: int) -> Any:
        """Return the value at a flat index."""
        return self.table()[index]

    def apply(self, coords: Any) -> Any:
        """Return the values at flat indices."""
        return self.table()[coords]

    def table(self) -> Values:
        """Return all values."""
        return self._rows[:, 0] if self._rows.shape[1] == 1 else self._rows

    def inverse(self) -> Any:
        """Refused: pictures do not need it."""
        raise CHECK.malformed("layout", "must not be a bare table, which has no inverse", self._text)

    def __str__(self) -> str:
        return self._text
