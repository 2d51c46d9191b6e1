"""Arguments that questions about registers and shared memory have alike: the targets, and the bits of an element."""

from __future__ import annotations

from layoutalg.ground.check import Checker
from layoutalg.targets.registry import lookup

ELEMENT_BITS = (8, 16, 32, 64, 128)
"""Widths of elements that loads, stores and shuffles move."""


def asked_bits(check: Checker, given: object) -> int:
    """Return the bits of an element.

    Args:
        check: Whose question it is.
        given: The argument ``element_bits``.

    Raises: MalformedError: the checker's.

    Example:
        >>> asked_bits(Checker("LA910"), 16)
        16
    """
    bits = check.integer(given, "element_bits")
    if bits not in ELEMENT_BITS:
        raise check.malformed("element_bits", "must be 8, 16, 32, 64 or 128", bits)
    return bits


def asked_targets(check: Checker, given: object) -> tuple[str, ...]:
    """Return the names of the targets that one answer has to serve: one, or a list of them.

    Args:
        check: Whose question it is.
        given: The argument ``target``.

    Raises: MalformedError: the checker's; LA340.

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
