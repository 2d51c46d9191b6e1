"""Which kernel a value has: what ``value.kernel()`` calls."""

from __future__ import annotations

from typing import Any

from layoutalg.codegen import kernels
from layoutalg.codegen.kernels.answer import CHECK
from layoutalg.ground.lazy import named_for

KERNELS = {
    "layoutalg.proofs.ragged.RaggedFamily": "ragged_kernel",
    "layoutalg.proofs.indirect.pages.Paged": "paged_kernel",
    "layoutalg.proofs.indirect.pages.PagedBatch": "paged_kernel",
}
"""By the name of a type: the function that makes its kernel."""


def kernel_of(value: object, *given: Any, **options: Any) -> Any:
    """Return the kernel of a value."""
    name = named_for(value, KERNELS)
    if name is None:
        raise CHECK.malformed("value", "must be a value with a kernel", value)
    return getattr(kernels, name)(value, *given, **options)
