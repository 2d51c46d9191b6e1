"""The values of a parameter for which a tile may still be carried: a search that never looks at whole ranges twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from layoutalg.ground.check import Checker
from layoutalg.ground.values import Values
from layoutalg.synth.abstract.rules import never_copied
from layoutalg.synth.abstract.tile import AbstractTile
from layoutalg.synth.broken import Broken

CHECK = Checker("LA892", "this range cannot be searched")
FINEST = 16
"""No rule looks at residues of more bytes."""


def surviving(
    make: Callable[[Values], AbstractTile],
    values: Values,
    never: Callable[[AbstractTile], tuple[Broken, ...]] = never_copied,
) -> Iterator[int]:
    """Yield the values of a parameter for which no rule is broken for certain, class by class.

    Mathematically: every v of gamma(values) that is left out has ``never(make(v))`` not empty.

    Args:
        make: The tile for values of the parameter.
        values: What the parameter may be, with both ends.
        never: The rules.

    Raises: MalformedError: LA892.

    Example:
        >>> rows = AbstractTile.dense("bf16", (64, 64))
        >>> list(surviving(lambda pad: rows.padded(0, pad), Values(0, 24)))
        [0, 16, 8, 24]
    """
    if values.low is None or values.high is None:
        raise CHECK.malformed("values", "must have both ends", str(values))
    if never(make(values)):
        return
    if values.single is not None:
        yield values.single
        return
    for part in _parts(values):
        yield from surviving(make, part, never)


def _parts(values: Values) -> Iterator[Values]:
    """Split into the two classes of twice the modulus, and what is fine enough into its two halves."""
    low, high, modulus = values.low or 0, values.high or 0, values.modulus
    if modulus < FINEST:
        for first in (low, low + modulus):
            if first <= high:
                yield Values(first, high, 2 * modulus, first % (2 * modulus))
        return
    middle = low + (high - low) // 2
    yield Values(low, middle, modulus, values.residue)
    yield Values(middle + 1, high, modulus, values.residue)
