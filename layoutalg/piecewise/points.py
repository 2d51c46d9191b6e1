"""Check parameter values and coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.ground.check import Checker, integers
from layoutalg.ground.errors import shown
from layoutalg.piecewise.notation import malformed
from layoutalg.piecewise.pieces import evaluated
from layoutalg.piecewise.value import Value

Numbers: TypeAlias = "int | npt.NDArray[np.int64]"
VALUE_BITS = 900
check = Checker("LA785", "this does not fit a piecewise layout")


def checked_values(
    values: Mapping[str, object], params: tuple[str, ...], where: object, complete: bool = False
) -> dict[str, int]:
    """Return parameter values as ints."""
    unknown = sorted(set(values) - set(params))
    missing = [name for name in params if name not in values] if complete else []
    if unknown or missing:
        because = f"the parameters are {list(params)}, not {sorted(values)}"
        witness: dict[str, object] = {"unknown": unknown, "missing": missing}
        raise malformed("LA785", "wrong parameters", str(where), because, witness)
    known = {name: check.integer(value, name) for name, value in values.items()}
    for name, value in known.items():
        if abs(value).bit_length() > VALUE_BITS:
            raise check.malformed(name, f"must have a magnitude below 2**{VALUE_BITS}", value)
    return known


def point_arrays(
    coords: Mapping[str, object], axes: tuple[str, ...], where: object
) -> tuple[list[npt.NDArray[Any]], tuple[int, ...]]:
    """Return coordinates as broadcast arrays of int64 or object, and their shape."""
    if not isinstance(coords, Mapping) or set(coords) != set(axes):
        names = sorted(map(shown, coords)) if isinstance(coords, Mapping) else shown(coords)
        raise malformed("LA785", "wrong axes", str(where), f"the axes are {list(axes)}, not {names}")
    arrays = []
    for name in axes:
        array = integers(coords[name], name)
        if array is None:
            raise check.malformed(name, "must contain integers", coords[name])
        arrays.append(array.astype(object) if array.dtype.kind != "i" else array.astype(np.int64))
    try:
        together = np.broadcast_arrays(*arrays) if arrays else []
    except ValueError as error:
        raise malformed("LA785", "the coordinates have different shapes", str(where), str(error)) from None
    return list(together), np.shape(together[0]) if together else ()


def constants(function: Value, params: Mapping[str, int]) -> tuple[int, ...] | None:
    """Return the outputs of a function without inputs, None if it is undefined."""
    answers, defined = evaluated(function, params, (), ())
    return tuple(int(answer.item()) for answer in answers) if defined.item() else None
