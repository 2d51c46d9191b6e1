"""Gluon: the shared layout and the descriptor of a plan's problem.

Gluon derives the box and its copies from a block and an ``NVMMASharedLayout``. The export succeeds only if that layout
places every element of the tile where the plan's problem does (compared element by element), and if tensor, bounds and
fill agree.

References: Triton 3.9.0, ``triton/experimental/gluon/nvidia/hopper.py``, ``language/_layouts.py``.
"""

from __future__ import annotations

import numpy as np

from layoutalg.codegen.exports.refusal import refuse
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.tensormap import ListedProblem, TensorMapPlan, TensorMapProblem
from layoutalg.targets.layouts.shared import nvmma_shared
from layoutalg.targets.nvidia.swizzles import PLAIN, SWIZZLE_TABLE

TYPES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "s32": "int32", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "tf32": "float32",
}  # fmt: skip
_WIDTHS = {name: SWIZZLE_TABLE[name].span_bytes if name != "NONE" else 0 for name in PLAIN}


def gluon_text(plan: TensorMapPlan) -> str:
    """Return the layout and the descriptor as Gluon host code."""
    problem = plan.problem
    if problem.dtype not in TYPES:
        refuse("gluon", "GLUON_DTYPE", problem.dtype)
    if any(step != 1 for step in problem.element_strides):
        refuse("gluon", "GLUON_ELEMENT_STRIDES", str(problem.element_strides))
    if plan.tensor_map.l2_promotion != "128B":
        refuse("gluon", "GLUON_FIELD", f"the L2 promotion is {plan.tensor_map.l2_promotion}, Gluon uses 128B")
    plain_tensor(problem, "gluon", "GLUON_TENSOR")
    width = _width(problem)
    shape, strides, tile = (list(v) for v in (problem.global_shape, problem.global_strides, problem.tile))
    rounds = ", round_f32_to_tf32=True" if problem.dtype == "tf32" else ""
    padding = "nan" if problem.oob_fill == "NAN" else "zero"
    return (
        f"# Gluon of Triton 3.9, sm_90a. `base`: a torch.{TYPES[problem.dtype]} tensor.\n"
        f"layout = gl.NVMMASharedLayout(swizzle_byte_width={width}, element_bitwidth={8 * problem.element_bytes}, "
        f"rank={problem.rank})\n"
        f"descriptor = TensorDescriptor(base, shape={shape}, strides={strides}, block_shape={tile}, layout=layout, "
        f'padding="{padding}"{rounds})\n'
    )


def plain_tensor(problem: TensorMapProblem, form: str, rule: str) -> None:
    """Refuse a tensor whose base, bounds or strides are not those of a plain array."""
    if isinstance(problem, ListedProblem):
        refuse(form, rule, "its shared layout is a table")
    whole = tuple((0, extent) for extent in problem.global_shape)
    if problem.bounds != whole or problem.base_elem_offset:
        because = f"bounds {problem.bounds} at element {problem.base_elem_offset} of the base, not {whole} at 0"
        refuse(form, rule, because)
    if problem.global_strides[-1] != 1 or any(
        stride <= 0 or stride * problem.element_bytes % 16 for stride in problem.global_strides[:-1]
    ):
        because = f"strides {problem.global_strides}; the last must be 1, the others multiples of 16 bytes"
        refuse(form, rule, because)
    if problem.rank > 5:
        refuse(form, rule, f"{problem.rank} dimensions")


def _width(problem: TensorMapProblem) -> int:
    """The swizzle width whose layout equals the tile's, element by element."""
    width, bits = _WIDTHS.get(problem.swizzle, -1), 8 * problem.element_bytes
    if bits > 32:
        refuse("gluon", "GLUON_DTYPE", f"{bits} bits an element")
    if width < 0:
        refuse("gluon", "GLUON_BOX", f"the swizzle {problem.swizzle}")
    try:
        layout = nvmma_shared(problem.tile, width, bits)
    except LayoutError as error:
        refuse("gluon", "GLUON_BOX", error.diagnostic.because or error.diagnostic.what)
    row = problem.tile[-1] * problem.element_bytes
    if row < max(width, 16):
        refuse("gluon", "GLUON_BOX", f"rows of {row} bytes")
    images = layout.bases["offset"]
    offsets = np.arange(1 << len(images), dtype=np.int64)
    coordinates = np.zeros((problem.rank, len(offsets)), dtype=np.int64)
    for bit, image in enumerate(images):
        for dim, value in enumerate(image):
            coordinates[dim] ^= (offsets >> bit & 1) * value
    wanted = problem.addresses()
    if len(offsets) != wanted.size:
        refuse("gluon", "GLUON_BOX", f"the tile {problem.tile}")
    found = wanted[tuple(coordinates)]
    wrong = np.flatnonzero(found != offsets * problem.element_bytes)
    if len(wrong):
        first = int(wrong[0])
        place = tuple(int(value) for value in coordinates[:, first])
        because = f"the plan has element {place} at byte {int(found[first])}, Gluon at byte {first * bits // 8}"
        refuse("gluon", "GLUON_BOX", because)
    return width
