"""Values that generate kernels; ``layoutalg`` registers the function that does, which lies floors above them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MAKERS: list[Callable[..., Any]] = []


def kernels_by(maker: Callable[..., Any]) -> None:
    """Register the function behind ``kernel()``. ``layoutalg`` calls this once."""
    _MAKERS[:] = [maker]


class Runnable:
    """A value with a kernel."""

    __slots__ = ()

    def kernel(self, *given: Any, **options: Any) -> Any:
        """Return the kernel that does what the value says; arguments as of the function in ``codegen.kernels``."""
        return _MAKERS[0](self, *given, **options)
