"""Run a plan with the Python model of the copy engine.

Implementation notes: the model gets what a launch would give the hardware: the 128 bytes (not the stated fields), the
barrier's byte count, and a tile base with exactly the stated alignment (an odd multiple of it).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from layoutalg.codegen.plans import image_bytes, launchable, origin_arguments
from layoutalg.ground.errors import DeviceMismatchError, Diagnostic
from layoutalg.ground.memory import reserve
from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap.execute import require_buffer

POISON = 0xEE
"""Byte that shared memory holds before a load."""


def shared_image(plan: TensorMapPlan, memory: npt.NDArray[np.uint8], origin: Sequence[int]) -> npt.NDArray[np.uint8]:
    """Return the shared-memory image after one tile load; bytes that no copy wrote are ``POISON``.

    Args:
        plan: A plan with direction ``"load"``.
        memory: uint8; byte 0 is the tensor's base address.
        origin: Tile origin in elements, outermost first.

    Returns:
        uint8, as long as the image of the plan's load kernel.
    """
    launchable(plan, "load")
    tensor_map, base = tensormap.decode(plan.raw, target=plan.problem.arch), plan.smem_align_bytes
    size = image_bytes(plan)
    reserve("a shared-memory image", base + size, 1)
    shared = np.full(base + size, POISON, dtype=np.uint8)
    arrived = 0
    for issue, coords in zip(plan.issues, plan.coordinates(origin_arguments(plan, origin)), strict=True):
        arrived += tensormap.tile_load(tensor_map, coords, memory, shared, base + issue.smem_offset_bytes)
    if arrived != plan.expect_tx_bytes:
        because = f"{arrived} bytes arrive, but the plan expects {plan.expect_tx_bytes}"
        raise DeviceMismatchError(Diagnostic("LA543", "the barrier would never complete", ("shared_image",), because))
    return shared[base:]


def store_memory(
    plan: TensorMapPlan, image: npt.NDArray[np.uint8], memory: npt.NDArray[np.uint8], origin: Sequence[int]
) -> None:
    """Store one tile from a shared-memory image into ``memory``, in place.

    Args:
        plan: A plan with direction ``"store"``.
        image: uint8; byte 0 is the tile base.
        memory: uint8; byte 0 is the tensor's base address.
        origin: Tile origin in elements, outermost first.
    """
    launchable(plan, "store")
    require_buffer("image", image, writable=False)
    tensor_map, base = tensormap.decode(plan.raw, target=plan.problem.arch), plan.smem_align_bytes
    shared = np.concatenate([np.full(base, POISON, dtype=np.uint8), image])
    for issue, coords in zip(plan.issues, plan.coordinates(origin_arguments(plan, origin)), strict=True):
        tensormap.tile_store(tensor_map, coords, memory, shared, base + issue.smem_offset_bytes)
