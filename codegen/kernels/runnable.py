"""Which kernel a value has: what ``value.kernel()`` calls."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

from layoutalg.codegen.kernels.answer import CHECK


@singledispatch
def kernel_of(value: object, *given: Any, **options: Any) -> Any:
    """Return the kernel of a value; each type's function registers itself."""
    del given, options
    raise CHECK.malformed("value", "must be a value with a kernel", value)
