"""Gluon and CuTe DSL: Python code for the shared layout of a plan's problem and its copy.

Both derive box and copies themselves, so the number of copies may differ from the plan's. Gluon's is exported only if
its ``NVMMASharedLayout`` places every element of the tile where the plan's problem does (compared element by element),
and if tensor, bounds and fill agree. The composed layout of the DSL is the function of the problem's tile, in elements.

References: Triton 3.9.0, ``triton/experimental/gluon/nvidia/hopper.py``, ``language/_layouts.py``; nvidia-cutlass-dsl
4.8.1, ``cute.make_composed_layout``, ``cpasync.make_tiled_tma_atom``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from layoutalg.codegen.exports.refusal import demand, refuse
from layoutalg.ground.errors import LayoutError
from layoutalg.proofs.tensormap import ListedProblem, TensorMapPlan, TensorMapProblem
from layoutalg.targets.layouts.shared import nvmma_shared
from layoutalg.targets.nvidia.swizzles import PLAIN, SWIZZLE_TABLE, XORS

GLUON_TYPES = {
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "s32": "int32", "f16": "float16", "bf16": "bfloat16",
    "f32": "float32", "tf32": "float32",
}  # fmt: skip
CUTE_TYPES = {
    "u8": "Uint8", "u16": "Uint16", "u32": "Uint32", "u64": "Uint64", "f16": "Float16", "bf16": "BFloat16",
    "f32": "Float32", "f64": "Float64",
}  # fmt: skip
_WIDTHS = {name: SWIZZLE_TABLE[name].span_bytes if name != "NONE" else 0 for name in PLAIN}


def gluon_text(plan: TensorMapPlan) -> str:
    """Return the layout and the descriptor as Gluon host code."""
    problem = plan.problem
    promotion = plan.tensor_map.l2_promotion
    demand(
        "gluon",
        (problem.dtype in GLUON_TYPES, "GLUON_DTYPE", problem.dtype),
        (set(problem.element_strides) == {1}, "GLUON_ELEMENT_STRIDES", problem.element_strides),
        (promotion == "128B", "GLUON_FIELD", f"the L2 promotion is {promotion}, Gluon uses 128B"),
    )
    _plain_tensor(problem, "gluon", "GLUON_TENSOR")
    width = _width(problem)
    shape, strides, tile = (list(v) for v in (problem.global_shape, problem.global_strides, problem.tile))
    rounds = ", round_f32_to_tf32=True" if problem.dtype == "tf32" else ""
    padding = "nan" if problem.oob_fill == "NAN" else "zero"
    return (
        f"# Gluon of Triton 3.9, sm_90a. `base`: a torch.{GLUON_TYPES[problem.dtype]} tensor.\n"
        f"layout = gl.NVMMASharedLayout(swizzle_byte_width={width}, element_bitwidth={8 * problem.element_bytes}, "
        f"rank={problem.rank})\n"
        f"descriptor = TensorDescriptor(base, shape={shape}, strides={strides}, block_shape={tile}, layout=layout, "
        f'padding="{padding}"{rounds})\n'
    )


def _width(problem: TensorMapProblem) -> int:
    """The swizzle width whose layout equals the tile's, element by element."""
    width, bits = _WIDTHS.get(problem.swizzle, -1), 8 * problem.element_bytes
    demand(
        "gluon",
        (bits <= 32, "GLUON_DTYPE", f"{bits} bits an element"),
        (width >= 0, "GLUON_BOX", f"the swizzle {problem.swizzle}"),
    )
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


def cute_dsl_text(plan: TensorMapPlan) -> str:
    """Return the layouts and the TMA atom as Python code of the DSL."""
    problem, tm = plan.problem, plan.tensor_map
    fields = (
        ("element_strides", set(problem.element_strides), {1}), ("oob_fill", problem.oob_fill, "ZERO"),
        ("l2_promotion", tm.l2_promotion, "128B"), ("interleave", tm.interleave, "NONE"),
    )  # fmt: skip
    demand(
        "cute_dsl",
        (problem.dtype in CUTE_TYPES, "CUTE_ATOM", f"the element type {problem.dtype}"),
        *((found == there, "CUTE_ATOM", f"{field} is {found}, the atom always uses {there}")
          for field, found, there in fields),
    )  # fmt: skip
    _plain_tensor(problem, "cute_dsl", "CUTE_TENSOR")
    copy = "G2S" if plan.direction == "load" else "S2G"
    kind = CUTE_TYPES[problem.dtype]
    gmem = f"cute.make_layout({_nest(problem.global_shape)}, stride={_nest(problem.global_strides)})"
    return (
        f"# CuTe DSL 4.8, sm_90a. `gmem`: a tensor of cutlass.{kind} with the layout gmem_layout.\n"
        f"gmem_layout = {gmem}\n"
        f"smem_layout = {_smem(problem)}\n"
        f"atom, coordinates = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTile{copy}Op(), gmem, smem_layout, "
        f"{_nest(problem.tile)})\n"
    )


def _smem(problem: TensorMapProblem) -> str:
    modes = [digits if digits else ((1, 0),) for digits in problem.smem_modes]
    shapes = [_one([extent for extent, _ in digits]) for digits in modes]
    strides = [_one([stride for _, stride in digits]) for digits in modes]
    text = f"cute.make_layout({_joined(shapes)}, stride={_joined(strides)})"
    if problem.swizzle == "NONE":
        return text
    if problem.swizzle not in PLAIN:
        refuse("cute_dsl", "CUTE_SWIZZLE", problem.swizzle)
    bits, base, shift = XORS[problem.swizzle]
    base -= problem.element_bytes.bit_length() - 1
    return f"cute.make_composed_layout(cute.make_swizzle({bits}, {base}, {shift}), 0, {text})"


def _one(values: Sequence[int]) -> str:
    return str(values[0]) if len(values) == 1 else _nest(values)


def _nest(values: Sequence[int]) -> str:
    return _joined([str(value) for value in values])


def _joined(entries: Sequence[str]) -> str:
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"


def _plain_tensor(problem: TensorMapProblem, form: str, rule: str) -> None:
    """Refuse a tensor whose base, bounds or strides are not those of a plain array."""
    whole = tuple((0, extent) for extent in problem.global_shape)
    bounds = f"bounds {problem.bounds} at element {problem.base_elem_offset} of the base, not {whole} at 0"
    *outer, last = problem.global_strides
    rows = last == 1 and all(stride > 0 and stride * problem.element_bytes % 16 == 0 for stride in outer)
    strides = f"strides {problem.global_strides}; the last must be 1, the others multiples of 16 bytes"
    demand(
        form,
        (not isinstance(problem, ListedProblem), rule, "its shared layout is a table"),
        (problem.bounds == whole and not problem.base_elem_offset, rule, bounds),
        (rows, rule, strides),
        (problem.rank <= 5, rule, f"{problem.rank} dimensions"),
    )
