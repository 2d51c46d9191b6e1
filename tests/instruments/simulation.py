"""The judge of plans on real bytes: run every issue through the engine's model and compare with the problem's meaning.

Implementation notes: nothing symbolic happens here. Random memory, concrete origins, every byte compared, bytes outside
the tile included (they must keep their poison).
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from layoutalg.proofs.tensormap import TensorMapPlan
from layoutalg.targets.nvidia import tensormap as hardware

POISON = 0xEE
Bytes = npt.NDArray[np.uint8]


def random_origins(plan: TensorMapPlan, rng: random.Random, count: int) -> list[tuple[int, ...]]:
    """Return tile origins of the lattice: inside, at the far edge, and (where the class allows) outside."""
    problem = plan.problem
    beyond = plan.oob == "exact" and plan.direction == "load"
    origins = []
    for _ in range(count):
        origin = []
        for multiple, (low, high) in zip(problem.origin_multiple, problem.bounds, strict=True):
            if multiple == 0:
                origin.append(0)
                continue
            first, last = -(-low // multiple), (high - 1) // multiple
            outside = (first - 1, last + 1, last, first - 2)
            choice = (
                rng.choice(outside) if beyond and rng.random() < 0.4 else rng.choice((rng.randint(first, last), last))
            )
            origin.append(choice * multiple)
        origins.append(tuple(origin))
    return origins


def first_difference(plan: TensorMapPlan, origin: Sequence[int], seed: int = 0) -> str | None:
    """Run the plan's issues for one tile origin and return the first difference, None where all bytes are right.

    For a plan of class ``lost`` the elements out of bounds are left out of the comparison.
    """
    rng = np.random.default_rng(seed)
    memory = rng.integers(0, 256, plan.problem.byte_span()[1], dtype=np.uint8)
    if plan.direction == "load":
        return _load_difference(plan, origin, memory)
    return _store_difference(plan, origin, memory, rng)


def _byte_positions(plan: TensorMapPlan) -> npt.NDArray[np.int64]:
    size = plan.problem.element_bytes
    return plan.problem.addresses().reshape(-1)[:, None] + np.arange(size)


def _load_difference(plan: TensorMapPlan, origin: Sequence[int], memory: Bytes) -> str | None:
    positions = _byte_positions(plan)
    image = np.full(max(plan.smem_bytes, int(positions.max()) + 1), POISON, dtype=np.uint8)
    total = 0
    for coords, issue in zip(plan.coordinates(origin), plan.issues, strict=True):
        total += hardware.tile_load(plan.tensor_map, coords, memory, image, issue.smem_offset_bytes)
    if total != plan.expect_tx_bytes:
        return f"{total} bytes arrived, {plan.expect_tx_bytes} expected"
    values, inside = plan.problem.expected(memory, origin)
    values = values.reshape(-1, plan.problem.element_bytes)
    wanted = np.full(image.size, POISON, dtype=np.uint8)
    if plan.oob == "lost":
        kept = inside.reshape(-1)
        wanted = image.copy()
        wanted[positions[kept]] = values[kept]
    else:
        wanted[positions] = values
    return _describe(image, wanted, "shared byte")


def _store_difference(
    plan: TensorMapPlan, origin: Sequence[int], memory: Bytes, rng: np.random.Generator
) -> str | None:
    problem = plan.problem
    size = problem.element_bytes
    positions = _byte_positions(plan)
    image = np.zeros(max(plan.smem_bytes, int(positions.max()) + 1), dtype=np.uint8)
    values = rng.integers(0, 256, (math.prod(problem.tile), size), dtype=np.uint8)
    image[positions] = values
    got = memory.copy()
    for coords, issue in zip(plan.coordinates(origin), plan.issues, strict=True):
        hardware.tile_store(plan.tensor_map, coords, got, image, issue.smem_offset_bytes)
    _, inside = problem.expected(memory, origin)
    element, kept = problem.elements(origin)[0].reshape(-1), inside.reshape(-1)
    wanted = memory.copy()
    wanted[element[kept][:, None] * size + np.arange(size)] = values[kept]
    return _describe(got, wanted, "global byte")


def _describe(got: Bytes, wanted: Bytes, name: str) -> str | None:
    if np.array_equal(got, wanted):
        return None
    at = int(np.argmax(got != wanted))
    return f"{name} {at} is {int(got[at]):#04x}, expected {int(wanted[at]):#04x}"
