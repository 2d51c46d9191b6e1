"""The layout that a plan denotes, tile coordinates to shared element offsets, derived from its map and issues alone.

An issue at start s copies global address ``global(s + c)`` to shared address ``offset + shared(c)`` for every box point
c. A tile element t has the global address that the problem's tensor gives it, so it lands where the box point with the
same address does. The requested layout is only used where the tensor leaves a choice: elements that share a global
address (stride 0), and elements that no origin has in bounds, keep the requested order if the requested places are
written.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.errors import Diagnostic, LayoutError, RepresentabilityError
from layoutalg.proofs.fields import instance
from layoutalg.proofs.listed import ListedLayout, listed
from layoutalg.proofs.smem import SharedTile, shared_tile
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.tensormap.walk import MismatchError, boxed
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

IntArray: TypeAlias = npt.NDArray[np.int64]
Meaning: TypeAlias = CuteLayout | ComposedLayout | ListedLayout


def layout(plan: TensorMapPlan) -> Meaning:
    """Return the layout that a plan gives a tile in shared memory.

    It maps tile coordinate t to the element offset at which the issues put t; the plan claims
    ``equivalent(layout(plan), requested)``.

    Returns:
        A CuTe layout, with a swizzle if needed, or a table if no such form exists. Mode k is tile dimension k,
        outermost first.

    Raises: MalformedError: LA372. RepresentabilityError: LA805: a tile element is not written exactly once, or
        something else is written.

    Example:
        >>> import layoutalg as la
        >>> plan = la.tensormap(((1024, 512), None, "bf16"), (128, 128), "Sw<3,3,3> o 0 o (128,(64,2)):(64,(1,8192))")
        >>> len(plan.issues), print(layout(plan))
        Sw<3,3,3> o 0 o (128,(64,2)):(64,(1,8192))
        (1, None)
    """
    instance("plan", plan, TensorMapPlan)
    found = table(plan)
    try:
        return form(shared_tile(found, plan.problem.tile, plan.problem.element_bytes), plan.problem.element_bytes)
    except (RepresentabilityError, LayoutError):
        return listed(found)


def table(plan: TensorMapPlan) -> IntArray:
    """Return the element offset at which a plan puts every tile element, indexed outermost dimension first."""
    problem = plan.problem
    moved, landed = _moved(plan)
    pairs = np.unique(np.stack((landed, moved)), axis=1)  # overlapping issues may repeat a pair
    size = problem.element_bytes
    wanted = _addresses(plan)
    if pairs.shape[1] != wanted.size or np.unique(pairs[0]).size != wanted.size or (pairs[0] % size).any():
        raise _nothing(plan, f"the issues write {pairs.shape[1]} elements, but the tile has {wanted.size}")
    requested = problem.addresses().reshape(-1)
    order = np.argsort(requested, kind="stable")
    owner = order[np.minimum(np.searchsorted(requested[order], pairs[0]), wanted.size - 1)]
    fits = (requested[owner] == pairs[0]) & ((wanted[owner] == pairs[1]) | ~_ever_in_bounds(plan)[owner])
    values = np.full(wanted.size, -1, dtype=np.int64)
    values[owner[fits]] = pairs[0][fits]
    left, (places, sources) = np.flatnonzero(values < 0), pairs[:, ~fits]
    left, turn = left[np.argsort(wanted[left], kind="stable")], np.argsort(sources, kind="stable")
    astray = np.flatnonzero(wanted[left] != sources[turn])
    if astray.size:
        at = np.unravel_index(int(left[astray[0]]), problem.tile)
        raise _nothing(plan, f"no issue writes the element {tuple(int(v) for v in at)}")
    values[left] = places[turn]
    return (values // size).reshape(problem.tile)


def _moved(plan: TensorMapPlan) -> tuple[IntArray, IntArray]:
    """Return the global and shared byte address of every problem element that the issues write."""
    try:
        boxes = boxed(plan)
    except MismatchError as mismatch:
        raise _nothing(plan, str(mismatch)) from None
    reach = sum(int(abs(axis).max()) * step for axis, step in zip(boxes.coords, boxes.steps_bytes, strict=True))
    if plan.tensor_map.base_address + reach >= 2**62:
        raise _nothing(plan, "addresses exceed 62 bits")
    moved = np.full(boxes.addresses.size, plan.tensor_map.base_address, dtype=np.int64)
    for axis, step in zip(boxes.coords, boxes.steps_bytes, strict=True):
        moved += axis * step
    return moved, boxes.addresses


def _addresses(plan: TensorMapPlan) -> IntArray:
    """Return the global byte address of every tile element at the origin 0, in bounds or not."""
    problem = plan.problem
    total = np.array(problem.base_elem_offset, dtype=np.int64)
    for extent, step, stride in zip(problem.tile, problem.element_strides, problem.global_strides, strict=True):
        total = total[..., None] + np.arange(extent, dtype=np.int64) * step * stride
    return (total * problem.element_bytes).reshape(-1)


def _ever_in_bounds(plan: TensorMapPlan) -> npt.NDArray[np.bool_]:
    """Return which tile elements are in bounds at some origin."""
    problem = plan.problem
    seen: npt.NDArray[np.bool_] = np.ones((), dtype=np.bool_)
    rows = zip(problem.tile, problem.element_strides, problem.bounds, problem.origin_multiple, strict=True)
    for extent, step, (low, high), multiple in rows:
        x = np.arange(extent, dtype=np.int64) * step
        here = -((x - low) // multiple) <= (high - 1 - x) // multiple if multiple else (x >= low) & (x < high)
        seen = seen[..., None] & here
    return seen.reshape(-1)


def form(tile: SharedTile, element_bytes: int) -> CuteLayout | ComposedLayout:
    """Return a tile's digits and swizzle as a CuTe layout."""
    shape = tuple(_mode([extent for extent, _ in digits], 1) for digits in tile.modes)
    stride = tuple(_mode([stride for _, stride in digits], 0) for digits in tile.modes)
    inner = CuteLayout(shape, stride)
    xor = SWIZZLE_TABLE[tile.swizzle].xor
    if not xor and not tile.base:
        return inner
    bits = Swizzle(len(xor), xor[0][0], xor[0][1] - xor[0][0], "byte").recast_elements(element_bytes) if xor else None
    plain = Swizzle(0, 0, 0) if bits is None else Swizzle(bits.bits, bits.base, bits.shift)
    return ComposedLayout(plain, tile.base, inner)


def _mode(values: list[int], none: int) -> Any:
    return values[0] if len(values) == 1 else tuple(values) or none


def _nothing(plan: TensorMapPlan, because: str) -> RepresentabilityError:
    where = (f"plan of tile {list(plan.problem.tile)}",)
    return RepresentabilityError(Diagnostic("LA805", "this plan denotes no layout of its tile", where, because))
