"""CuTe DSL: the shared layout of a plan's problem and the arguments of the tiled TMA atom.

The composed layout is the function of the problem's tile, in elements. The DSL derives box and copies from it, so the
number of copies may differ from the plan's.

References: nvidia-cutlass-dsl 4.8.1, ``cute.make_composed_layout``, ``cpasync.make_tiled_tma_atom``.
"""

from __future__ import annotations

from collections.abc import Sequence

from layoutalg.codegen.exports.gluon import plain_tensor
from layoutalg.codegen.exports.refusal import refuse
from layoutalg.proofs.tensormap import TensorMapPlan, TensorMapProblem
from layoutalg.targets.nvidia.swizzles import PLAIN, XORS

_TYPES = {
    "u8": "Uint8", "u16": "Uint16", "u32": "Uint32", "u64": "Uint64", "f16": "Float16", "bf16": "BFloat16",
    "f32": "Float32", "f64": "Float64",
}  # fmt: skip
_SWIZZLES = {name: XORS[name] for name in PLAIN[1:]}
"""On byte addresses."""


def cute_dsl_text(plan: TensorMapPlan) -> str:
    """Return the layouts and the TMA atom as Python code of the DSL."""
    problem, tm = plan.problem, plan.tensor_map
    if problem.dtype not in _TYPES:
        refuse("cute_dsl", "CUTE_ATOM", f"the element type {problem.dtype}")
    for field, found, there in (
        ("element_strides", set(problem.element_strides), {1}),
        ("oob_fill", problem.oob_fill, "ZERO"),
        ("l2_promotion", tm.l2_promotion, "128B"),
        ("interleave", tm.interleave, "NONE"),
    ):
        if found != there:
            refuse("cute_dsl", "CUTE_ATOM", f"{field} is {found}, the atom always uses {there}")
    plain_tensor(problem, "cute_dsl", "CUTE_TENSOR")
    copy = "G2S" if plan.direction == "load" else "S2G"
    gmem = f"cute.make_layout({_nest(problem.global_shape)}, stride={_nest(problem.global_strides)})"
    return (
        f"# CuTe DSL 4.8, sm_90a. `gmem`: a tensor of cutlass.{_TYPES[problem.dtype]} with the layout gmem_layout.\n"
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
    if problem.swizzle not in _SWIZZLES:
        refuse("cute_dsl", "CUTE_SWIZZLE", problem.swizzle)
    bits, base, shift = _SWIZZLES[problem.swizzle]
    base -= problem.element_bytes.bit_length() - 1
    return f"cute.make_composed_layout(cute.make_swizzle({bits}, {base}, {shift}), 0, {text})"


def _one(values: Sequence[int]) -> str:
    return str(values[0]) if len(values) == 1 else _nest(values)


def _nest(values: Sequence[int]) -> str:
    return _joined([str(value) for value in values])


def _joined(entries: Sequence[str]) -> str:
    return f"({', '.join(entries)}{',' if len(entries) == 1 else ''})"
