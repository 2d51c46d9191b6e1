"""Find the values of a parameter for which a tile may still be carried, by splitting ranges."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from layoutalg.ground.check import Checker
from layoutalg.ground.refusal import Broken
from layoutalg.ground.values import Values
from layoutalg.synth.abstract.rules import never_copied
from layoutalg.synth.abstract.tile import AbstractTile

CHECK = Checker("LA892", "invalid argument to surviving()")
FINEST = 16
"""Largest modulus, in bytes, that any rule uses."""


def surviving(
    make: Callable[[Values], AbstractTile],
    values: Values,
    never: Callable[[AbstractTile], tuple[Broken, ...]] = never_copied,
) -> Iterator[int]:
    """Yield the parameter values that no rule excludes, class by class.

    Mathematically: ``never(make(v))`` is not empty for every omitted v of gamma(values).

    Args:
        make: The tile for values of the parameter.
        values: The parameter's values, a bounded interval.
        never: The rules.

    Example:
        >>> rows = AbstractTile.dense("bf16", (64, 64))
        >>> list(surviving(lambda pad: rows.padded(0, pad), Values(0, 24)))
        [0, 16, 8, 24]
    """
    if values.low is None or values.high is None:
        raise CHECK.malformed("values", "must be bounded", str(values))
    if never(make(values)):
        return
    if values.single is not None:
        yield values.single
        return
    for part in _parts(values):
        yield from surviving(make, part, never)


def _parts(values: Values) -> Iterator[Values]:
    """Split into the two classes of twice the modulus, or at the finest modulus into halves."""
    low, high, modulus = values.low or 0, values.high or 0, values.modulus
    if modulus < FINEST:
        for first in (low, low + modulus):
            if first <= high:
                yield Values(first, high, 2 * modulus, first % (2 * modulus))
        return
    middle = low + (high - low) // 2
    yield Values(low, middle, modulus, values.residue)
    yield Values(middle + 1, high, modulus, values.residue)
