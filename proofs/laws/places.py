"""Symbols for layouts: modes with any extents and strides, coordinates in their digits, and digits stated to solvers.

Notation: a coordinate i is given as its digits c_0, c_1, ..., i = c_0 + s_0 (c_1 + s_1 (...)), so that a solver need
not find them. That is no loss: every coordinate has digits, as ``coordinates.round_trip`` proves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from layoutalg.ground.digits import Flat
from layoutalg.proofs.laws.trial import Trial


def modes(trial: Trial, count: int, extent: str = "s", stride: str = "d") -> Flat:
    """Return that many modes with any extents >= 1 and any strides, named ``s0``, ``d0``, ``s1``, ..."""
    return tuple([(trial.extent(f"{extent}{k}"), trial.integer(f"{stride}{k}")) for k in range(count)])


def digits_of(trial: Trial, name: str, extents: Sequence[Any]) -> list[Any]:
    """Return any digits of these extents, named ``i0``, ``i1``, ..."""
    return [trial.digit(f"{name}{k}", extent) for k, extent in enumerate(extents)]


def index(trial: Trial, digits: Sequence[Any], extents: Sequence[Any]) -> Any:
    """Return the 1-D coordinate with these digits, its divisions by the extents stated."""
    value = digits[-1]
    for digit, extent in zip(reversed(digits[:-1]), reversed(extents[:-1]), strict=True):
        value = digit + extent * value
    state_digits(trial, value, digits, extents)
    return value


def state_digits(trial: Trial, value: Any, digits: Sequence[Any], extents: Sequence[Any]) -> None:
    """State that a number in the radix of these extents has these digits and nothing behind them."""
    rests = [0]
    for digit, extent in zip(reversed(digits), reversed(extents), strict=True):
        rests.append(digit + extent * rests[-1])
    rests.reverse()
    for digit, extent, rest in zip(digits, extents, rests[1:], strict=True):
        trial.divides(value, extent, rest, digit)
        value = rest
