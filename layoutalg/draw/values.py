"""Choose how to draw an answer or plan by its type."""

from __future__ import annotations

from typing import Any

from layoutalg.cute.swizzle import Swizzle
from layoutalg.draw.access import draw_access, draw_lds
from layoutalg.draw.answers import draw_admitted, draw_refused
from layoutalg.draw.canvas import Canvas
from layoutalg.draw.conversion import draw_conversion
from layoutalg.draw.gather import draw_gather
from layoutalg.draw.im2col import draw_convolution, draw_im2col
from layoutalg.draw.operand import OPERANDS, draw_operand, reads_of
from layoutalg.draw.padding import draw_padding
from layoutalg.draw.ragged import draw_ragged, draw_symbolic
from layoutalg.draw.shuffles import draw_factorisation, draw_shuffles
from layoutalg.draw.swizzle import draw_swizzle
from layoutalg.draw.swizzle_plan import draw_swizzle_plan
from layoutalg.draw.tensor import draw_tensor
from layoutalg.draw.tensormap import draw_plan
from layoutalg.draw.tmem import TMEM, draw_tmem
from layoutalg.draw.universal import draw_universal
from layoutalg.ground.picture import Drawable
from layoutalg.proofs.accesses import AccessPlan
from layoutalg.proofs.admission import Admitted, Refused
from layoutalg.proofs.conversion import ConversionPlan
from layoutalg.proofs.factorisation import Factorisation
from layoutalg.proofs.gather import GatherPlan
from layoutalg.proofs.im2col import ConvolutionPlan
from layoutalg.proofs.padding import PaddingPlan
from layoutalg.proofs.ragged import RaggedFamily
from layoutalg.proofs.shuffle import ShufflePlan
from layoutalg.proofs.swizzling import SwizzlePlan
from layoutalg.proofs.symbolic.plan import SymbolicPlan
from layoutalg.proofs.tensor import Tensor
from layoutalg.proofs.tensormap.plan import TensorMapPlan
from layoutalg.proofs.universal import ClassPlan
from layoutalg.synth.lds import LdsPlan
from layoutalg.targets.nvidia.im2col import Im2colMap

_DRAWERS: tuple[tuple[Any, Any], ...] = (
    (Swizzle, draw_swizzle),
    (Tensor, draw_tensor),
    (TensorMapPlan, draw_plan),
    (AccessPlan, draw_access),
    (LdsPlan, draw_lds),
    (ShufflePlan, draw_shuffles),
    (SwizzlePlan, draw_swizzle_plan),
    (RaggedFamily, draw_ragged),
    (SymbolicPlan, draw_symbolic),
    (TMEM, draw_tmem),
    (Im2colMap, draw_im2col),
    (ConvolutionPlan, draw_convolution),
    (PaddingPlan, draw_padding),
    (ClassPlan, draw_universal),
    (ConversionPlan, draw_conversion),
    (GatherPlan, draw_gather),
    (Drawable, lambda canvas, value, top: value.draw_on(canvas, top)),
)
DRAWN = (Admitted, Refused, Swizzle, Tensor, TensorMapPlan, AccessPlan, LdsPlan, Factorisation, ShufflePlan,
         RaggedFamily, SymbolicPlan, Im2colMap, ConvolutionPlan, PaddingPlan, ClassPlan, ConversionPlan, Drawable,
         GatherPlan, SwizzlePlan, *TMEM, *OPERANDS)  # fmt: skip
"""Values other than layouts that can be drawn."""


def draw_value(canvas: Canvas, value: Any, top: float, layout: Any = None) -> bool:
    """Draw a value below ``top``; return False if it cannot be drawn.

    Args:
        canvas: The canvas.
        value: An answer, a plan, or a part of one.
        top: Upper edge.
        layout: The layout that a refusal is about.
    """
    if isinstance(value, Admitted):
        draw_admitted(canvas, value, top, draw_value)
        return True
    if isinstance(value, Refused):
        draw_refused(canvas, value, top, layout)
        return True
    if isinstance(value, Factorisation):
        draw_factorisation(canvas, value, top, draw_value)
        return True
    if isinstance(value, OPERANDS):
        reads = reads_of(value)
        if reads is None:
            return False
        draw_operand(canvas, reads, top)
        return True
    for kind, drawer in _DRAWERS:
        if isinstance(value, kind):
            drawer(canvas, value, top)
            return True
    return False
