"""Check the arguments common to register and shared-memory questions: targets and element width."""

from __future__ import annotations

from layoutalg.ground.check import Checker
from layoutalg.targets.registry import lookup

ELEMENT_BITS = (8, 16, 32, 64, 128)
"""Widths of elements that loads, stores and shuffles move."""


def asked_bits(check: Checker, given: object) -> int:
    """Check an element width and return it.

    Args:
        check: The question's checker.
        given: The argument ``element_bits``.

    Example:
        >>> asked_bits(Checker("LA910"), 16)
        16
    """
    bits = check.integer(given, "element_bits")
    if bits not in ELEMENT_BITS:
        raise check.malformed("element_bits", "must be 8, 16, 32, 64 or 128", bits)
    return bits


def asked_targets(check: Checker, given: object) -> tuple[str, ...]:
    """Return the names of the targets that one answer must cover.

    Args:
        check: The question's checker.
        given: The argument ``target``.

    Example:
        >>> asked_targets(Checker("LA910"), "sm_90a"), asked_targets(Checker("LA910"), ["gfx942", "gfx950"])
        (('sm_90a',), ('gfx942', 'gfx950'))
    """
    named = (given,) if isinstance(given, str) else given
    if not isinstance(named, list | tuple) or not named:
        raise check.malformed("target", "must be a target or a list of them", given)
    targets = tuple(check.kind(name, str, "target") for name in named)
    for name in targets:
        lookup(name)
    return targets
