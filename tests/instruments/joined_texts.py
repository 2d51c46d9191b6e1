"""Many kernels as one text, so that a compiler starts once."""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.portable import portable_prelude


def joined(kernels: Sequence[KernelSource]) -> KernelSource:
    """Return portable kernels of one target behind one prelude, each in a namespace of its own."""
    arch = kernels[0].arch
    prelude, parts = portable_prelude(arch), []
    for number, kernel in enumerate(kernels):
        assert kernel.arch == arch
        assert kernel.text.startswith(prelude)
        named = kernel.text.removeprefix(prelude).replace(kernel.name, f"la_{number}_{kernel.name}")
        parts.append(f"namespace la_entry_{number} {{\n{named}}}\n")
    return KernelSource("la_entries", prelude + "".join(parts), arch, 32, 0, ())
