"""The layout that an im2col plan denotes: (pixel, channel) of the tile to shared element offsets, from its bytes.

An issue at row r and channel c writes element (p, k) of its column, which is element (r + p, c + k) of the tile, at
``offset + shared(p, k)``.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from layoutalg.cute import ComposedLayout, CuteLayout
from layoutalg.ground.errors import Diagnostic, LayoutError, RepresentabilityError
from layoutalg.proofs.im2col.problem import CHECK, ConvolutionPlan
from layoutalg.proofs.listed import ListedLayout, listed
from layoutalg.proofs.smem import shared_tile
from layoutalg.proofs.tensormap.meaning import form
from layoutalg.targets.nvidia import im2col as hardware
from layoutalg.targets.nvidia.tensormap import apply_swizzle, element_bytes

IntArray: TypeAlias = npt.NDArray[np.int64]


def table(plan: ConvolutionPlan) -> IntArray:
    """Return the element offset of every tile element: int64[pixels, channels]."""
    if not isinstance(plan, ConvolutionPlan):
        raise CHECK.malformed("plan", "must be a ConvolutionPlan", plan)
    problem, tm = plan.problem, hardware.decode(plan.raw, plan.problem.target)
    size = element_bytes(tm.dtype)
    column = hardware.layout(tm)
    linear = column.base if isinstance(column, ComposedLayout) else column
    rows = np.asarray(linear.table(), dtype=np.int64).reshape((tm.pixels_per_column, -1), order="F")
    found: IntArray = np.full((problem.pixels, problem.channels), -1, dtype=np.int64)
    for issue in plan.issues:
        part = found[issue.row : issue.row + rows.shape[0], issue.channel : issue.channel + rows.shape[1]]
        if part.shape != rows.shape or (part >= 0).any():
            where = (f"issue at row {issue.row}, channel {issue.channel}",)
            raise RepresentabilityError(
                Diagnostic("LA805", "this plan denotes no layout of its tile", where, "it leaves the tile or overlaps")
            )
        part[...] = apply_swizzle(tm.swizzle, issue.smem_offset_bytes + rows) // size
    if (found < 0).any():
        because = f"no issue writes {int((found < 0).sum())} of the elements"
        raise RepresentabilityError(Diagnostic("LA805", "this plan denotes no layout of its tile", (), because))
    return found


def layout(plan: ConvolutionPlan) -> CuteLayout | ComposedLayout | ListedLayout:
    """Return the layout that a plan gives its tile: (pixel, channel) to element offsets in shared memory.

    Example:
        >>> from layoutalg.proofs.im2col import ConvolutionProblem
        >>> from layoutalg.proofs.tensor import Tensor
        >>> from layoutalg.synth.im2col import synthesize_im2col
        >>> problem = ConvolutionProblem(Tensor((2, 8, 8, 128)), (3, 3), 64, 128, swizzle="128B")
        >>> print(layout(synthesize_im2col(problem)))
        Sw<3,3,3> o 0 o (64,(64,2)):(64,(1,4096))
    """
    found = table(plan)
    size = element_bytes(plan.tensor_map.dtype)
    try:
        return form(shared_tile(found, found.shape, size), size)
    except (RepresentabilityError, LayoutError):
        return listed(found)
