"""The ``convention`` keyword: what to do where CuTe C++ or pycute differ from the exact contract.

Notation: ``"strict"`` is the exact contract, ``"cute_cpp"`` is CuTe C++, ``"pycute"`` is the pure-Python module of
CUTLASS. A peer without a registered answer for an operation follows strict.

Implementation notes: operations pass any other convention to ``by_convention``; ``layoutalg.cute.peers`` registers the
answers, and nothing else in the library uses them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias, TypeVar

from layoutalg.cute.inttuple import malformed

Convention: TypeAlias = Literal["strict", "cute_cpp", "pycute"]
Answer = TypeVar("Answer", bound=Callable[..., Any])
Value = TypeVar("Value")

STRICT: Convention = "strict"
"""The default; ``convention is STRICT`` is the fast path that skips ``by_convention``."""

_ANSWERS: dict[tuple[str, str], Callable[..., Any]] = {}


def peer(operation: Callable[..., Any], *conventions: Convention) -> Callable[[Answer], Answer]:
    """Register the decorated function, called with the convention and the operands, as the answer of an operation."""

    def register(answer: Answer) -> Answer:
        _ANSWERS.update({(operation.__name__, convention): answer for convention in conventions})
        return answer

    return register


def by_convention(convention: object, operation: Callable[..., Value], *operands: object) -> Value:
    """Call an operation under a convention.

    Raises: MalformedError: LA144.

    Example:
        >>> from layoutalg.cute import CuteLayout, cosize
        >>> [cosize(CuteLayout(4, -1), convention=name) for name in ("strict", "cute_cpp", "pycute")]
        [4, 4, -2]
    """
    if not isinstance(convention, str) or convention not in ("strict", "cute_cpp", "pycute"):
        raise malformed("convention", 'must be "strict", "cute_cpp" or "pycute"', convention, "LA144")
    answer: Callable[..., Value] | None = _ANSWERS.get((operation.__name__, convention))
    return operation(*operands) if answer is None else answer(convention, *operands)
