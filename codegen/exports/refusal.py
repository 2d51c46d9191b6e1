"""The refusal of an export: what the other system cannot say, by a rule."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

from layoutalg.ground.errors import Diagnostic, RepresentabilityError

RULES: Mapping[str, str] = MappingProxyType(
    {
        "PTX_L2_PROMOTION": "tensormap.replace has no field for the promotion to L2",
        "PTX_TF32": "tensormap.replace sets the bit that rounds to tf32, and no element type clears it",
        "PTX_BOX_BYTES": "no field writes the upper half: the bytes of the box and its alignment",
        "PTX_TARGET": "tensormap.replace is an instruction of sm_90a",
        "NVGPU_INTERLEAVE": "the verifier of nvgpu accepts no interleave",
        "NVGPU_ELEMENT_STRIDES": "nvgpu.tma.create.descriptor has no element strides",
        "NVGPU_ROW": "the verifier of nvgpu wants rows of 128 bytes in a swizzled box",
        "NVGPU_SWIZZLE": "nvgpu knows the swizzles of 32, 64 and 128 bytes",
        "NVGPU_DTYPE": "nvgpu has no element type for it",
        "NVGPU_OFFSET": "the lowering of nvgpu reads no offset from the memref",
        "NVVM_DTYPE": "nvvm.wgmma.mma_async is written here for f16 and bf16",
        "GLUON_DTYPE": "Gluon has no element type for it",
        "GLUON_BOX": "NVMMASharedLayout lays a block out by its own rule, and it is not the one of the plan",
        "GLUON_ELEMENT_STRIDES": "a descriptor of Gluon has no element strides",
        "GLUON_FIELD": "a descriptor of Gluon does not hold this field of the map",
        "GLUON_TENSOR": "a descriptor of Gluon starts at its base, ends at its shape, and strides 16 bytes",
        "GLUON_KIND": "Gluon writes the descriptors of wgmma itself",
        "CUTE_TENSOR": "the atom takes the tensor from its base to its shape, in strides of 16 bytes",
        "CUTE_KIND": "CuTe DSL writes the descriptors of wgmma itself",
        "CUTE_SWIZZLE": "make_swizzle moves one run of bits, and this pattern moves others",
        "CUTE_ATOM": "the tiled atom of CuTe DSL does not hold this field of the map",
    }
)
"""What each rule of a refusal says."""


def refuse(form: str, rule: str, because: str, instead: str) -> NoReturn:
    """Raise the refusal of an export.

    Args:
        form: The form.
        rule: Id, one of ``RULES``.
        because: The field that cannot be said, with its value.
        instead: A form that holds it.

    Raises: RepresentabilityError: LA894.
    """
    what = f"{form} cannot hold this plan"
    raise RepresentabilityError(Diagnostic("LA894", what, (rule,), f"{RULES[rule]}: {because}; {instead} holds it"))
