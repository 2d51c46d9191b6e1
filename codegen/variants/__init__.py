"""Variants of a kernel for classes of sizes: chosen by guards, compiled in the background, cached in a folder."""

from __future__ import annotations

from layoutalg.codegen.variants.cache import Cache, Key
from layoutalg.codegen.variants.pick import Picked, VariantReport, VariantRow, Variants
from layoutalg.synth.symbolic.explore import SymbolicSizes

__all__ = ["Cache", "Key", "Picked", "SymbolicSizes", "VariantReport", "VariantRow", "Variants"]
