"""Check parameter values and coordinates, and evaluate functions there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker, integers
from layoutalg.ground.errors import shown
from layoutalg.piecewise import functions
from layoutalg.piecewise.explicit import EMPTY
from layoutalg.piecewise.notation import malformed
from layoutalg.piecewise.pieces import SAFE, evaluate, pieces, reach

Numbers: TypeAlias = "int | npt.NDArray[np.int64]"
VALUE_BITS = 900
check = Checker("LA785", "this does not fit a piecewise layout")


def checked_values(
    values: Mapping[str, object], params: tuple[str, ...], where: str, complete: bool = False
) -> dict[str, int]:
    """Return parameter values as ints.

    Raises: MalformedError: LA785.
    """
    unknown = sorted(set(values) - set(params))
    missing = [name for name in params if name not in values] if complete else []
    if unknown or missing:
        because = f"the parameters are {list(params)}, not {sorted(values)}"
        witness: dict[str, object] = {"unknown": unknown, "missing": missing}
        raise malformed("LA785", "wrong parameters", where, because, witness)
    known = {name: check.integer(value, name) for name, value in values.items()}
    for name, value in known.items():
        if abs(value).bit_length() > VALUE_BITS:
            raise check.malformed(name, f"must have a magnitude below 2**{VALUE_BITS}", value)
    return known


def point_arrays(
    coords: Mapping[str, object], axes: tuple[str, ...], where: str
) -> tuple[list[npt.NDArray[Any]], tuple[int, ...]]:
    """Return coordinates as broadcast arrays of int64 or object, and their shape.

    Raises: MalformedError: LA785.
    """
    if not isinstance(coords, Mapping) or set(coords) != set(axes):
        names = sorted(map(shown, coords)) if isinstance(coords, Mapping) else shown(coords)
        raise malformed("LA785", "wrong axes", where, f"the axes are {list(axes)}, not {names}")
    arrays = []
    for name in axes:
        array = integers(coords[name], name)
        if array is None:
            raise check.malformed(name, "must contain integers", coords[name])
        arrays.append(array.astype(object) if array.dtype.kind != "i" else array.astype(np.int64))
    try:
        together = np.broadcast_arrays(*arrays) if arrays else []
    except ValueError as error:
        raise malformed("LA785", "the coordinates have different shapes", where, str(error)) from None
    return list(together), np.shape(together[0]) if together else ()


def evaluated(
    text: str,
    values: Mapping[str, int],
    arrays: list[npt.NDArray[Any]],
    shape: tuple[int, ...],
    outputs: int,
    everywhere: bool = False,
) -> tuple[list[npt.NDArray[Any]], npt.NDArray[np.bool_]]:
    """Return the outputs of a function at points, and where it is defined.

    Args:
        text: Canonical text of a function.
        values: Values of its parameters; others are ignored.
        arrays: Values of its axes, all of the same shape.
        shape: That shape.
        outputs: Number of outputs.
        everywhere: Whether the function is known to be defined at all points.
    """
    listed = () if text.endswith(EMPTY) else pieces(functions.lifted(text))
    params = [values[name] for name in functions.parameters(text)]
    highest = [abs(value) + 1 for value in params]
    for array in arrays:
        highest.append(max(abs(int(array.min())), abs(int(array.max()))) + 1 if array.size else 1)
    kind = object if reach(listed, highest) >= SAFE else np.int64
    full = [np.full(shape, value, dtype=kind) for value in params]
    return evaluate(
        listed, [*full, *(array.astype(kind, copy=False) for array in arrays)], shape, outputs, kind, everywhere
    )
