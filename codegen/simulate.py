"""What a plan leaves in shared or global memory, by the Python model of the copy engine.

Main definitions: ``shared_image``, ``store_memory``, ``POISON``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.cuda import image_bytes
from layoutalg.errors import Diagnostic, MalformedError
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia import tensormap

POISON = 0xEE
"""Byte that shared memory holds before a load."""


def shared_image(plan: TensorMapPlan, memory: npt.NDArray[np.uint8], origin: Sequence[int]) -> npt.NDArray[np.uint8]:
    """Return the shared-memory image that one tile load leaves, bytes no copy wrote as ``POISON``.

    Args:
        plan: A plan with direction ``"load"``.
        memory: uint8; byte 0 is the tensor's base address.
        origin: Tile origin in elements, outermost first.

    Returns:
        uint8, as long as the image of the plan's load kernel.

    Raises:
        MalformedError: LA503, for a store plan.
    """
    _require(plan, "load")
    image = np.full(image_bytes(plan), POISON, dtype=np.uint8)
    for issue, coords in zip(plan.issues, plan.coordinates(origin), strict=True):
        tensormap.tile_load(plan.tensor_map, coords, memory, image, issue.smem_offset_bytes)
    return image


def store_memory(
    plan: TensorMapPlan, image: npt.NDArray[np.uint8], memory: npt.NDArray[np.uint8], origin: Sequence[int]
) -> None:
    """Store one tile from a shared-memory image into ``memory``, in place.

    Args:
        plan: A plan with direction ``"store"``.
        image: uint8; byte 0 is the tile base.
        memory: uint8; byte 0 is the tensor's base address.
        origin: Tile origin in elements, outermost first.

    Raises:
        MalformedError: LA503, for a load plan.
    """
    _require(plan, "store")
    for issue, coords in zip(plan.issues, plan.coordinates(origin), strict=True):
        tensormap.tile_store(plan.tensor_map, coords, memory, image, issue.smem_offset_bytes)


def _require(plan: TensorMapPlan, direction: str) -> None:
    if plan.direction != direction:
        raise MalformedError(
            Diagnostic("LA503", f"this asks for a {direction} plan", because=f"the plan is a {plan.direction}")
        )
