"""Certificates of im2col plans: a map visits the elements that a convolution reads.

Kind ``equality`` for two functions from (channel, tap, output place, image), fastest first, to spatial coordinates and
the global byte. f follows from the fields of the 128 bytes as the engine walks them (a mode steps from its lower to its
upper corner and wraps, a tap adds its offsets), g from the convolution (-padding + stride * place + dilation * tap).
Both use the extents of one tensor, so they agree on which coordinates are outside and read as zero.
``proofs.im2col.check`` decides the rest: that bytes and fields agree, and where columns are in shared memory.
"""

from __future__ import annotations

import math

from layoutalg.proofs.certify.certificate import Certificate
from layoutalg.proofs.certify.evidence import proved, rules
from layoutalg.proofs.certify.stages import Function
from layoutalg.proofs.dtypes import element_type
from layoutalg.proofs.im2col.checker import visited
from layoutalg.proofs.im2col.problem import CHECK, ConvolutionPlan
from layoutalg.targets.nvidia.im2col import decode


def convolution(plan: ConvolutionPlan) -> Certificate:
    """Return a certificate that a plan's map visits what the convolution reads, in matrix row order.

    Raises: MalformedError: LA859. AdmissibilityError: LA427: it visits other elements. BudgetError: LA428.

    Example:
        >>> from layoutalg.proofs.im2col import ConvolutionProblem
        >>> from layoutalg.proofs.tensor import Tensor
        >>> from layoutalg.synth.im2col import synthesize_im2col
        >>> problem = ConvolutionProblem(Tensor((2, 9, 9, 64)), (3, 3), 32, 64, stride=(2, 2), padding=(1, 1))
        >>> made = convolution(synthesize_im2col(problem))
        >>> made.kind, made.statement["f"]["stages"][0]
        ('equality', ['split', [64, 3, 3, 5, 5, 2]])
    """
    if not isinstance(plan, ConvolutionPlan):
        raise CHECK.malformed("plan", "must be a ConvolutionPlan", plan)
    problem, tm = plan.problem, decode(plan.raw, plan.problem.target)
    taps = tuple(reversed(problem.filter))
    unit = [tuple(int(at == dim) for at in range(len(taps))) for dim in range(len(taps))]
    gaps = [plan.offsets(tuple(reversed(one)))[dim] if taps[dim] > 1 else 0 for dim, one in enumerate(unit)]
    size = element_type(problem.tensor.dtype).bits // 8
    f = _places(
        (tm.dims[0], *taps, *visited(tm), tm.dims[-1]), tm.element_strides[1:-1], tm.lower_corner, gaps,
        (size, *tm.strides_bytes),
    )  # fmt: skip
    shape, stride = problem.tensor.shape, problem.tensor.stride or ()
    g = _places(
        (int(shape[-1]), *taps, *reversed(problem.outputs), int(shape[0])), tuple(reversed(problem.stride)),
        tuple(-before for before in reversed(problem.padding)), tuple(reversed(problem.dilation)),
        tuple(int(step) * size for step in reversed(stride)),
    )  # fmt: skip
    statement = {"f": f.document(), "g": g.document()}
    return proved("equality", statement, rules(f, g), f"im2col map of {problem.filter} taps")


def _places(
    digits: tuple[int, ...], steps: tuple[int, ...], first: tuple[int, ...], gaps: tuple[int, ...] | list[int],
    strides_bytes: tuple[int, ...],
) -> Function:  # fmt: skip
    """Return the map from (channel, taps, places, image) to spatial coordinates, innermost first, and the byte."""
    spatial = len(steps)
    rows = []
    for dim in range(spatial):
        row = [0] * len(digits)
        row[1 + dim], row[1 + spatial + dim] = gaps[dim] if digits[1 + dim] > 1 else 0, steps[dim]
        rows.append(row)
    steps_of = list(zip(strides_bytes[1:-1], rows, strict=True))
    byte = [sum(stride * row[at] for stride, row in steps_of) for at in range(len(digits))]
    byte[0] += strides_bytes[0]
    byte[-1] += strides_bytes[-1]
    offset = sum(stride * start for stride, start in zip(strides_bytes[1:-1], first, strict=True))
    stages = [["split", list(digits)], ["affine", [*rows, byte], [*first, offset]]]
    return Function(stages, math.prod(digits), digits, outputs=spatial + 1)
