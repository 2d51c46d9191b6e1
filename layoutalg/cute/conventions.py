"""Whose convention answers where CuTe C++ and pycute differ from the exact contract.

Main definitions: ``Parity``, ``STRICT``, ``check_parity``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

from layoutalg.cute.inttuple import malformed

Parity: TypeAlias = Literal["strict", "cute_cpp", "pycute"]
"""Whose convention answers: the exact contract, CuTe C++, or the pure-Python module of CUTLASS."""

PARITIES = ("strict", "cute_cpp", "pycute")

STRICT: Parity = "strict"
"""The default; ``parity is STRICT`` is the quick test ahead of ``check_parity``."""


def check_parity(parity: object) -> Parity:
    """Return ``parity`` or refuse it.

    Raises: MalformedError: LA144.

    Example:
        >>> check_parity("strict")
        'strict'
    """
    if not isinstance(parity, str) or parity not in PARITIES:
        raise malformed("parity", 'must be "strict", "cute_cpp" or "pycute"', parity, "LA144")
    return cast(Parity, str(parity))
