"""Refusals of exports: what the other system cannot express, by rule."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

from layoutalg.ground.errors import Diagnostic, RepresentabilityError

RULES: Mapping[str, str] = MappingProxyType(
    {
        "PTX_L2_PROMOTION": "tensormap.replace has no field for the L2 promotion",
        "PTX_TF32": "tensormap.replace sets the tf32 rounding bit, but no element type clears it",
        "PTX_BOX_BYTES": "no field writes the upper half: the box bytes and their alignment",
        "PTX_TARGET": "tensormap.replace needs sm_90a",
        "NVGPU_INTERLEAVE": "the nvgpu verifier rejects interleave",
        "NVGPU_ELEMENT_STRIDES": "nvgpu.tma.create.descriptor has no element strides",
        "NVGPU_ROW": "the nvgpu verifier requires rows of 128 bytes in a swizzled box",
        "NVGPU_SWIZZLE": "nvgpu supports only the swizzles of 32, 64 and 128 bytes",
        "NVGPU_DTYPE": "nvgpu has no such element type",
        "NVGPU_OFFSET": "the nvgpu lowering ignores the memref's offset",
        "NVVM_DTYPE": "the nvvm export supports only f16 and bf16",
        "GLUON_DTYPE": "Gluon has no such element type",
        "GLUON_BOX": "NVMMASharedLayout places the block differently from the plan",
        "GLUON_ELEMENT_STRIDES": "a Gluon descriptor has no element strides",
        "GLUON_FIELD": "a Gluon descriptor cannot set this field of the map",
        "GLUON_TENSOR": "a Gluon descriptor covers a whole tensor with strides of multiples of 16 bytes",
        "GLUON_KIND": "Gluon generates wgmma descriptors itself",
        "CUTE_TENSOR": "the atom covers a whole tensor with strides of multiples of 16 bytes",
        "CUTE_KIND": "CuTe DSL generates wgmma descriptors itself",
        "CUTE_SWIZZLE": "make_swizzle XORs one run of bits, this pattern needs others",
        "CUTE_ATOM": "the tiled atom of CuTe DSL cannot set this field of the map",
    }
)
"""Text of each refusal rule."""


def refuse(form: str, rule: str, because: str) -> NoReturn:
    """Raise the refusal of an export: a rule of ``RULES``, and the field that cannot be expressed, with its value."""
    what = f"{form} cannot express this plan"
    raise RepresentabilityError(Diagnostic("LA894", what, (rule,), f"{RULES[rule]}: {because}; use form='cpp'"))


def demand(form: str, *rules: tuple[bool, str, object]) -> None:
    """Raise the refusal of the first of (holds, rule, because) that does not hold."""
    for holds, rule, because in rules:
        if not holds:
            refuse(form, rule, str(because))
