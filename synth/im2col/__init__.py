"""Plan im2col loads of a convolution: the map, start coordinates and offsets for a tile of the matrix.

The corners' box is exactly the places -padding + i * stride, i below the output's extent, so that the engine traverses
the matrix's rows in order. That determines the map except for the split of the tile into columns; every admissible
split is tried, fewest issues first.
"""

from __future__ import annotations

from collections.abc import Iterator

from layoutalg.ground.errors import Diagnostic, LayoutError
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.im2col import ColumnIssue, ConvolutionPlan, ConvolutionProblem, check
from layoutalg.proofs.im2col.problem import CHECK
from layoutalg.synth.im2col.columns import Column, divisors, most_channels
from layoutalg.targets.model import Violation
from layoutalg.targets.nvidia.im2col import (
    MAX_PIXELS,
    OFFSET_LIMITS,
    Im2colMap,
    row_pitch_bytes,
    violations,
)
from layoutalg.targets.nvidia.swizzles import PLAIN, SWIZZLE_TABLE
from layoutalg.targets.nvidia.tensormap.checks import RefusedMapError
from layoutalg.targets.nvidia.tensormap.limits import SMEM_DESTINATION_ALIGN_BYTES

__all__ = ["InadmissibleConvolutionError", "synthesize_im2col"]


class InadmissibleConvolutionError(RefusedMapError):
    """No im2col map loads this tile; ``violations`` lists the rules that the nearest one breaks."""


def synthesize_im2col(problem: ConvolutionProblem) -> ConvolutionPlan:
    """Return a plan that loads a tile of the convolution's im2col matrix, proved for every tile and tap.

    Raises: InadmissibleConvolutionError: no im2col map loads the tile.

    Example:
        >>> from layoutalg.proofs.tensor import Tensor
        >>> problem = ConvolutionProblem(Tensor((2, 9, 9, 64)), (3, 3), 32, 64, stride=(2, 2), padding=(1, 1))
        >>> plan = synthesize_im2col(problem)
        >>> plan.tensor_map.lower_corner, plan.tensor_map.upper_corner, plan.tensor_map.swizzle
        ((-1, -1), (-1, -1), '128B')
        >>> plan.start(plan.issues[0], 6, 0), plan.offsets((2, 1))
        ((0, 1, 1, 0), (1, 2))

    Laws: loading by ``im2col_load`` equals the brute-force matrix, including zeros for the padding.
    """
    if not isinstance(problem, ConvolutionProblem):
        raise CHECK.malformed("problem", "must be a ConvolutionProblem", problem)
    found: tuple[Violation, ...] = ()
    for tm in _maps(problem):
        plan = proved_plan(problem, tm, _issues(problem, tm))
        if isinstance(plan, ConvolutionPlan):
            return plan
        found = found if found and len(found) <= len(plan) else plan
    because = "; ".join(str(entry) for entry in found)
    rule = found[0].rule
    raise InadmissibleConvolutionError(
        Diagnostic("LA858", "no im2col map loads this tile", (repr(problem),), because, source=f"rule {rule}"),
        rule,
        found,
    )


def proved_plan(
    problem: ConvolutionProblem, tm: Im2colMap, issues: tuple[ColumnIssue, ...]
) -> ConvolutionPlan | tuple[Violation, ...]:
    """Return the proved plan of a map of ``map_of`` and its issues, or the rules that it breaks."""
    broken = (*violations(tm, problem.target), *_of_use(problem, tm, issues))
    if broken:
        return broken
    plan = ConvolutionPlan(problem, tm, issues)
    verdict = check(plan)
    if not verdict:
        raise LayoutError(Diagnostic("LA371", "the checker refuted a plan; please report it", (str(verdict),)))
    return plan


def _maps(problem: ConvolutionProblem) -> Iterator[Im2colMap]:
    """Yield the map for every split of the tile, fewest issues first, then the widest swizzle."""
    size = element_type(problem.tensor.dtype).bits // 8
    names = PLAIN[::-1] if problem.swizzle is None else (problem.swizzle,)
    splits = []
    for place, name in enumerate(names):
        for channels in divisors(problem.channels, most_channels(name, size)):
            if problem.swizzle is None and name != "NONE" and channels * size != SWIZZLE_TABLE[name].span_bytes:
                continue  # a row narrower than its swizzle leaves gaps
            for pixels in divisors(problem.pixels, MAX_PIXELS):
                issues = problem.channels // channels * (problem.pixels // pixels)
                splits.append((issues, place, -pixels, channels, name))
    for _, _, pixels, channels, name in sorted(splits)[:64]:
        yield map_of(problem, Column(name, -pixels, channels))


def map_of(problem: ConvolutionProblem, column: Column) -> Im2colMap:
    """Return the only map that traverses the matrix's rows in order with the given columns."""
    size = element_type(problem.tensor.dtype).bits // 8
    shape, stride = problem.tensor.shape, problem.tensor.stride or ()
    upper = tuple(
        (count - 1) * step - before - (extent - 1)
        for count, step, before, extent in zip(
            problem.outputs, problem.stride, problem.padding, shape[1:-1], strict=True
        )
    )
    return Im2colMap(
        problem.tensor.dtype,
        tuple(reversed(shape)),
        tuple(value * size for value in reversed(stride[:-1])),
        tuple(-before for before in reversed(problem.padding)),
        tuple(reversed(upper)),
        column.channels,
        column.pixels,
        (1, *reversed(problem.stride), 1),
        swizzle=column.swizzle,
    )


def _of_use(problem: ConvolutionProblem, tm: Im2colMap, issues: tuple[ColumnIssue, ...]) -> tuple[Violation, ...]:
    """Return the rules that the loads of this map break."""
    found = []
    limit = OFFSET_LIMITS.get(tm.rank, 0)
    for taps, gap in zip(problem.filter, problem.dilation, strict=True):
        if (taps - 1) * gap > limit:
            message = f"the last tap is {(taps - 1) * gap} elements from the first; offsets reach {limit}"
            found.append(Violation("IM2COL_OFFSET", message, "filter"))
    inner = (problem.tensor.stride or (1,))[-1]
    if inner != 1:
        message = f"channels must be contiguous, got stride {inner}"
        found.append(Violation("CHANNELS_CONTIGUOUS", message, "stride"))
    if any(issue.smem_offset_bytes % SMEM_DESTINATION_ALIGN_BYTES for issue in issues):
        message = f"columns of {tm.pixels_per_column * row_pitch_bytes(tm)} bytes do not start 128-byte aligned"
        found.append(Violation("SMEM_ALIGN", message, "pixels"))
    return tuple(found)


def _issues(problem: ConvolutionProblem, tm: Im2colMap) -> tuple[ColumnIssue, ...]:
    """Return the columns: all rows of the first channels, then of the next."""
    column = tm.pixels_per_column * row_pitch_bytes(tm)
    starts = [
        (row, channel)
        for channel in range(0, problem.channels, tm.channels_per_pixel)
        for row in range(0, problem.pixels, tm.pixels_per_column)
    ]
    return tuple(ColumnIssue(row, channel, place * column) for place, (row, channel) in enumerate(starts))
