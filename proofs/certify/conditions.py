"""Writers of certificates for refusals by a number or a name: the instruction only carries layouts with another one.

Each returns a function from the table of the refused layout to the certificate; nothing is loaded before it is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from layoutalg.proofs import certify

if TYPE_CHECKING:
    from layoutalg.proofs.certify.certificate import Certificate
    from layoutalg.proofs.certify.systems import IntArray

Writer: TypeAlias = "Callable[[IntArray], Certificate | None]"


def one_of(number: int, *needed: int) -> Writer:
    """Return the writer for a number that is none of those needed."""
    return lambda f: certify.none_of(f, certify.forced.same(number, *needed))


def multiple(number: int, *units: int) -> Writer:
    """Return the writer for a number that is a multiple of no unit."""
    return lambda f: certify.none_of(f, certify.forced.whole(number, *units))


def named(name: str, *needed: str) -> Writer:
    """Return the writer for a name that is none of those needed."""
    return lambda f: certify.none_of(f, certify.forced.named(name, *needed))


def distinct(f: IntArray) -> Certificate | None:
    """Write the certificate for two elements at one place."""
    return certify.overlap(f)
