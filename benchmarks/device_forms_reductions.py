"""Jobs that ask a device about reductions of shared into global memory: by runs and by boxes of tensor maps.

Notation: ``reduced(op, dtype, old, new)`` is what memory holds after; floats are compared bit for bit.

Implementation notes: what the rules refuse (an operation on a type that it does not have) runs too, one process each:
memory held 3, shared memory 5 (floats: 3.0 and 5.0), so that the answer tells what was done.
"""

from __future__ import annotations

import functools
import random
import re
from typing import Any

import numpy as np
from device import Launch, MapAt
from device_forms_bulk import SMEM_BYTES, boxes_of, copies_table, draw_launches, runs_kernel, runs_of, tile_plan

from layoutalg.codegen.kernel import KernelSource
from layoutalg.codegen.prelude import PRELUDE
from layoutalg.synth.admission.tma import REDUCTIONS as BOXES
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.bulk import REDUCTIONS as RUNS

OPERATIONS = tuple(BOXES)
KINDS = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "s32": "<i4", "u64": "<u8", "s64": "<i8", "f16": "<f2", "bf16": "<u2",
         "f32": "<f4", "f64": "<f8"}  # fmt: skip
"""How a type is kept; bf16 as its 16 bits."""
FLOATS = ("f16", "bf16", "f32", "f64")
MAP_TYPES = ("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz")

_BOX = """
extern "C" __global__ void __launch_bounds__(128) {name}(const __grid_constant__ la_tensor_map map,
    unsigned char* memory, const int* copies, int count, const unsigned char* image, int bytes, int* status)
{{
    unsigned char* tile = la_aligned_shared(1024);
    const la_u32 base = la_shared_address(tile);
    for (int i = threadIdx.x; i < bytes; i += 128) tile[i] = image[i];
    la_fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {{
        for (int q = 0; q < count; ++q) {{
            const int* head = copies + 8 * q;
            asm volatile("cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}.tile.bulk_group"
                         " [%0, {{{slots}}}], [%1];"
                         :: "l"(&map), "r"(base + head[0]), {values} : "memory");
        }}
        la_store_commit();
        la_store_wait();
        status[0] = 1;
    }}
}}
"""


def box_kernel(operation: str, rank: int) -> KernelSource:
    """Return the kernel (map, memory, copies, count, image, bytes, status) that reduces boxes."""
    name = f"la_form_reduce_{operation}_{rank}d"
    text = _BOX.format(
        name=name, rank=rank, operation=operation, slots=", ".join(f"%{2 + j}" for j in range(rank)),
        values=", ".join(f'"r"(head[{1 + j}])' for j in range(rank)),
    )  # fmt: skip
    parameters = (
        ("const __grid_constant__ la_tensor_map", "map"), ("unsigned char*", "memory"), ("const int*", "copies"),
        ("int", "count"), ("const unsigned char*", "image"), ("int", "bytes"), ("int*", "status"),
    )  # fmt: skip
    return KernelSource(name, PRELUDE + text, "sm_90a", 128, SMEM_BYTES, parameters)


def widened(bits: np.ndarray) -> np.ndarray:
    """Return the values of bf16 bits."""
    return (bits.astype("<u4") << 16).view("<f4").astype(np.float64)


def narrowed(values: np.ndarray) -> np.ndarray:
    """Return bf16 bits of values, to the nearest, ties to even."""
    single = values.astype("<f4")
    # the sum of two bf16 is rounded once: float64 holds it, and float32 only where it is not a tie of bf16
    back = single.astype(np.float64)
    bits = single.view("<u4")
    low = bits & 0xFFFF
    up = (low > 0x8000) | ((low == 0x8000) & ((bits >> 16 & 1) == 1))
    exact_low = (low == 0x8000) & (np.abs(values) < np.abs(back))
    exact_high = (low == 0x8000) & (np.abs(values) > np.abs(back))
    return np.asarray((bits >> 16) + ((up & ~exact_low) | exact_high), dtype="<u2")


def reduced(operation: str, dtype: str, old: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Return what memory holds after a reduction.

    Source: PTX ISA 9.1, cp.reduce.async.bulk and atom: sums of integers wrap, inc and dec wrap at the operand.
    """
    if operation in ("and", "or", "xor"):
        raw = f"<u{old.dtype.itemsize}"
        function = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[operation]
        return np.asarray(function(old.view(raw), new.view(raw))).view(old.dtype)
    if operation == "inc":
        return np.where(old >= new, 0, old + np.array(1, old.dtype)).astype(old.dtype)
    if operation == "dec":
        return np.where((old == 0) | (old > new), new, old - np.array(1, old.dtype)).astype(old.dtype)
    if dtype == "bf16":
        x, y = widened(old), widened(new)
        if operation == "add":
            return narrowed(x + y)
        return np.where((x < y) == (operation == "min"), old, new)
    if operation == "add":
        return np.asarray(old + new)
    return np.asarray((np.minimum if operation == "min" else np.maximum)(old, new))


def drawn(rng: np.random.Generator, dtype: str, operation: str, shape: tuple[int, ...]) -> np.ndarray:
    """Return random values: integers of every size, normal floats of similar sizes; of inc and dec small ones too."""
    kind = np.dtype(KINDS[dtype])
    if dtype == "bf16":
        sign, exponent = rng.integers(0, 2, shape) << 15, rng.integers(120, 135, shape) << 7
        return np.asarray(sign | exponent | rng.integers(0, 128, shape), dtype="<u2")
    if dtype in FLOATS:
        return np.asarray(rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 6, shape)).astype(kind)
    raw = rng.integers(0, 256, (*shape, kind.itemsize), dtype=np.uint8).view(kind)[..., 0]
    if operation in ("inc", "dec"):
        return np.where(rng.random(shape) < 0.7, raw % 5, raw).astype(kind)
    return np.asarray(raw)


def reduction_jobs(plans: int, seed: int) -> list[Launch]:
    """Return admitted plans of every reduction and type, by runs and by boxes, and what the rules refuse."""
    jobs: list[Launch] = []
    rng = random.Random(seed)
    for engine, table in (("bulk", RUNS), ("tma", BOXES)):
        for operation, dtypes in table.items():
            for given in [(rng, engine, operation, dtype) for dtype in dtypes]:
                jobs += draw_launches(plans, functools.partial(_admitted, *given))
    for operation in OPERATIONS:
        jobs += [_refused_box(operation, dtype) for dtype in MAP_TYPES if dtype not in BOXES[operation]]
    return jobs + denormal_jobs()


def _admitted(rng: random.Random, engine: str, operation: str, dtype: str) -> Launch | None:
    tile = tile_plan(rng, f"{engine}.reduce.{operation}", dtype, 0.5 if engine == "tma" else 0.0)
    if tile is None or tile.reach > SMEM_BYTES - 2048:
        return None
    values = np.random.default_rng(rng.randrange(2**32))
    memory = drawn(values, dtype, operation, (tile.elements,))
    image = drawn(values, dtype, operation, (tile.reach // tile.size,))
    expected = memory.copy()
    expected[tile.held] = reduced(operation, dtype, memory[tile.held], image[tile.table])
    status = np.zeros(1, dtype=np.int32)
    name, facts = f"{engine}.reduce.{operation} {dtype}", tile.facts | {"operation": operation}
    rows: Any = runs_of(tile) if engine == "bulk" else boxes_of(tile)
    arguments: list[Any] = [memory, copies_table(rows, [0] * len(rows)), len(rows), image, image.nbytes, status]
    if engine == "bulk":
        facts["instruction"] = tile.plan.instruction
        kernel = runs_kernel(tile.plan.instruction)
        return Launch(name, kernel, arguments, (0, 5), 1, {0: expected, 5: status + 1}, facts)
    facts["instruction"] = f"cp.reduce.async.bulk.tensor.{operation}"
    kernel = box_kernel(operation, len(tile.plan.tensor_map.box))
    given = [MapAt(tile.plan.raw, 1), *arguments]
    return Launch(name, kernel, given, (1, 6), 1, {1: expected, 6: status + 1}, facts)


def _box_job(operation: str, dtype: str, old: np.ndarray, new: np.ndarray, label: str, risky: bool) -> Launch:
    """Return the reduction of one box of one row, whatever the rules say of the type."""
    size = old.dtype.itemsize
    row = tensormap.TensorMap(
        dtype=dtype, dims=(old.size,), strides_bytes=(), box=(old.size,), element_strides=(1,), interleave="NONE",
        swizzle="NONE", l2_promotion="NONE", oob_fill="ZERO", base_address=0,
    )  # fmt: skip
    raw = tensormap.encode(row, target="sm_90a")
    status = np.zeros(1, dtype=np.int32)
    arguments = [MapAt(raw, 1), old, copies_table([(0, 0)], [0]), 1, new, new.size * size, status]
    facts = {"instruction": f"cp.reduce.async.bulk.tensor.{operation}", "operation": operation, "dtype": dtype,
             "kind": label, "what": f"{operation} of {dtype}"}  # fmt: skip
    return Launch(f"box {operation} {dtype}", box_kernel(operation, 1), arguments, (6, 1), 1, None, facts, risky)


def _refused_box(operation: str, dtype: str) -> Launch:
    base = re.sub("^tf32.*|_ftz", lambda found: "f32" if found[0].startswith("tf32") else "", dtype)
    kind = np.dtype(KINDS[base])
    old, new = (np.full(16, value) for value in (3, 5))
    if base == "bf16":
        pair = [narrowed(values.astype(np.float64)) for values in (old, new)]
    else:
        pair = [values.astype(kind) for values in (old, new)]
    return _box_job(operation, dtype, *pair, "refused", True)


def denormal_jobs() -> list[Launch]:
    """Return sums, minima and maxima of denormals, zeros of both signs and NaN: what they are is the question."""
    jobs = []
    patterns = {
        "f16": (0x0001, 0x03FF, 0x8001, 0x0000, 0x8000, 0x7E00, 0x7C00, 0x3C01),
        "bf16": (0x0001, 0x007F, 0x8001, 0x0000, 0x8000, 0x7FC0, 0x7F80, 0x3F81),
        "f32": (0x00000001, 0x007FFFFF, 0x80000001, 0, 0x80000000, 0x7FC00000, 0x7F800000, 0x3F800001),
    }
    patterns |= dict.fromkeys(("f32_ftz", "tf32", "tf32_ftz"), patterns["f32"])
    for dtype, given in patterns.items():
        kind = "<u4" if "f32" in dtype else "<u2"
        table = np.array(given, dtype=kind)
        old, new = np.repeat(table, 8), np.tile(table, 8)
        for operation in ("add",) if "f32" in dtype else ("add", "min", "max"):
            jobs.append(_box_job(operation, dtype, old, new, "special", False))
            jobs[-1].facts["values"] = [old.tolist(), new.tolist()]
    return jobs
