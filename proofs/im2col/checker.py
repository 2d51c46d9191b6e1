"""Checker of im2col plans: decides from the 128 bytes whether a plan loads the im2col matrix, for every tile and tap.

Let a spatial mode have the box first..last and the step s. The engine visits first, first + s, ... and wraps after
floor((last - first) / s) + 1 places. If for every mode first = -padding, s = stride and that count is the output
extent, then consecutive pixels visit the places of consecutive matrix rows, from any row on. Adding the tap's offset
gives the input element that the convolution reads, and both treat it as zero iff it is outside the input, as is any
image after the last.

It decodes the fields from the bytes and counts places; it shares no formula with the finder.
"""

from __future__ import annotations

from layoutalg.ground.verdict import Proved, Refuted
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.im2col.problem import CHECK, ConvolutionPlan
from layoutalg.targets.nvidia.im2col import OFFSET_LIMITS, Im2colMap, decode
from layoutalg.targets.nvidia.swizzles import SWIZZLE_TABLE

SHARED_ALIGN = 128


def visited(tm: Im2colMap) -> tuple[int, ...]:
    """Return how many places the engine visits along each spatial mode, innermost first."""
    corners = zip(tm.lower_corner, tm.upper_corner, tm.dims[1:-1], tm.element_strides[1:-1], strict=True)
    return tuple(len(range(low, extent + high, step)) for low, high, extent, step in corners)


def check(plan: ConvolutionPlan) -> Proved | Refuted:
    """Decide whether the plan loads the tile at every first row, tap and chunk-aligned channel.

    Raises: MalformedError: LA859, and those of ``im2col.decode``.

    Example:
        >>> from layoutalg.proofs.tensor import Tensor
        >>> from layoutalg.proofs.im2col import ConvolutionProblem
        >>> from layoutalg.synth.im2col import synthesize_im2col
        >>> problem = ConvolutionProblem(Tensor((2, 8, 8, 64)), (3, 3), 64, 64, padding=(1, 1))
        >>> bool(check(synthesize_im2col(problem)))
        True
    """
    if not isinstance(plan, ConvolutionPlan):
        raise CHECK.malformed("plan", "must be a ConvolutionPlan", plan)
    problem, tm = plan.problem, decode(plan.raw, plan.problem.target)
    size = element_type(problem.tensor.dtype).bits // 8
    shape, stride = problem.tensor.shape, problem.tensor.stride or ()
    expected = {
        "extents": (tm.dims, tuple(reversed(shape))),
        "strides": ((size, *tm.strides_bytes), tuple(value * size for value in reversed(stride))),
        "steps": (tm.element_strides[1:], (*reversed(problem.stride), 1)),
        "first places": (tm.lower_corner, tuple(-before for before in reversed(problem.padding))),
        "places": (visited(tm), tuple(reversed(problem.outputs))),
        "fill, interleave": ((tm.oob_fill, tm.interleave), ("ZERO", "NONE")),
    }
    for what, (found, wanted) in expected.items():
        if found != wanted:
            return Refuted("places", {"what": what, "map": found, "convolution": wanted})
    limit = OFFSET_LIMITS[tm.rank]
    for taps, gap in zip(problem.filter, problem.dilation, strict=True):
        if (taps - 1) * gap > limit:
            return Refuted("places", {"what": "offset", "map": limit, "convolution": (taps - 1) * gap})
    seen = [[0] * problem.channels for _ in range(problem.pixels)]
    width = tm.channels_per_pixel * size
    pitch = width if tm.swizzle == "NONE" else SWIZZLE_TABLE[tm.swizzle].span_bytes
    taken = []
    for issue in plan.issues:
        if issue.smem_offset_bytes % SHARED_ALIGN or issue.channel * size % 16:
            return Refuted("places", {"what": "alignment", "issue": issue})
        taken.append((issue.smem_offset_bytes, issue.smem_offset_bytes + pitch * tm.pixels_per_column))
        for row in range(issue.row, issue.row + tm.pixels_per_column):
            for channel in range(issue.channel, issue.channel + tm.channels_per_pixel):
                if row >= problem.pixels or channel >= problem.channels:
                    return Refuted("places", {"what": "beyond the tile", "row": row, "channel": channel})
                seen[row][channel] += 1
    for row, line in enumerate(seen):
        for channel, times in enumerate(line):
            if times != 1:
                return Refuted("places", {"what": "times", "row": row, "channel": channel, "times": times})
    for (_, end), (begin, _) in zip(sorted(taken), sorted(taken)[1:], strict=False):
        if begin < end:
            return Refuted("places", {"what": "two issues overlap in shared memory", "at": begin})
    return Proved("places", {"claim": f"{problem.rows} rows, {len(plan.issues)} issues a tile: the im2col matrix"})
