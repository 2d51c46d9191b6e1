"""Emitted kernels that move arrays and registers, run by any runner and compared with numpy, element by element."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from layoutalg.codegen.conversion import conversion_kernel
from layoutalg.codegen.gather import gather_registers_kernel
from layoutalg.codegen.kernels import gather_kernel, staging_kernel, transpose_kernel
from layoutalg.f2 import LinearLayout, matrix
from layoutalg.synth.conversions import conversion
from layoutalg.synth.conversions.gathers import gather
from layoutalg.synth.swizzles import swizzle

Runner: TypeAlias = Callable[[Any, list[Any], int], None]
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
TYPES = {1: "u8", 2: "f16", 4: "f32", 8: "f64"}


def _drawn(rng: np.random.Generator, shape: tuple[int, ...], size: int) -> Any:
    return rng.integers(0, 256, (*shape, size), dtype=np.uint8).view(WORDS[size])[..., 0]


def gathered(runner: Runner, arch: str, way: str, size: int, seed: int, index_bits: Sequence[int] = (32, 64)) -> None:
    """A gather along an axis, indices outside included: ``into[j] = from[index[j]]``, 0 outside.

    Indices of 64 bits are also such that their low 32 bits are inside the axis.
    """
    rng = np.random.default_rng(seed)
    axis = 1 if way != "direct" else int(rng.integers(0, 3))
    longest = {"warp": 129, "shared": 300, "direct": 1}[way]
    shape = (37, int(rng.integers(33, longest))) if way != "direct" else (5, 33, 19)
    count = int(rng.integers(1, 90))
    source = np.ascontiguousarray(_drawn(rng, shape, size))
    whole = (*shape[:axis], count, *shape[axis + 1 :])
    for bits in index_bits:
        index = rng.integers(-3, shape[axis] + 3, whole)
        if bits == 64:
            index += rng.integers(-1, 2, whole) * (rng.integers(0, 4, whole) == 0) << rng.integers(31, 40, whole)
        made = gather_kernel(shape, axis, count, TYPES[size], arch, index_dtype=f"s{bits}", way=way)
        into = np.full(whole, 0xAB, dtype=source.dtype)
        index = index.astype(f"i{bits // 8}")
        runner(made.kernel, made.arguments(source, into, index=index), made.blocks)
        inside = (index >= 0) & (index < shape[axis])
        wanted = np.where(inside, np.take_along_axis(source, np.where(inside, index, 0), axis), 0)
        assert (into == wanted).all()


def staged(runner: Runner, arch: str, size: int, seed: int) -> None:
    """A tile that is stored by rows in a swizzled layout, and loaded by columns."""
    rng = np.random.default_rng(seed)
    lanes = 64 if arch in ("gfx90a", "gfx942", "gfx950") else 32
    bits, dims = 10, {"row": 32, "col": 32}
    lane_bits = lanes.bit_length() - 1
    orders = [[1 << int(place) for place in rng.permutation(bits)] for _ in range(2)]
    layouts = [
        LinearLayout(
            (("register", bits - lane_bits), ("lane", lane_bits)), (("row", 5), ("col", 5)), tuple(columns)
        )
        for columns in orders
    ]  # fmt: skip
    assert layouts[0].out_dims == dims
    target = "sm_90a" if lanes == 32 else "gfx942"
    plan = swizzle([(layouts[0], "store"), (layouts[1], "load")], target, 8 * size)
    shape = (int(rng.integers(30, 80)), int(rng.integers(30, 80)))
    source = np.ascontiguousarray(_drawn(rng, shape, size))
    made = staging_kernel(plan, shape, arch)
    registers = 1 << bits - lane_bits
    into = np.full((made.blocks, lanes, registers), 0xAB, dtype=source.dtype)
    runner(made.kernel, made.arguments(source, into), made.blocks)
    across = -(-shape[1] // 32)
    places = layouts[1].table().reshape(lanes, registers)
    for block in range(made.blocks):
        rows = block // across * 32 + (places & 31)
        cols = block % across * 32 + (places >> 5)
        inside = (rows < shape[0]) & (cols < shape[1])
        wanted = np.where(inside, source[np.where(inside, rows, 0), np.where(inside, cols, 0)], 0)
        assert (into[block] == wanted).all()


def transposed(runner: Runner, arch: str, size: int, seed: int) -> None:
    """A transpose of any extents."""
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 200)), int(rng.integers(1, 200)))
    source = np.ascontiguousarray(_drawn(rng, shape, size))
    made = transpose_kernel(shape, TYPES[size], arch)
    into = np.zeros(shape[::-1], dtype=source.dtype)
    runner(made.kernel, made.arguments(source.reshape(-1), into.reshape(-1)), made.blocks)
    assert (into == source.T).all()


def converted(runner: Runner, arch: str, element_bits: int, seed: int, *, dense: bool) -> None:
    """A conversion of registers between two random layouts of a tensor."""
    rng = np.random.default_rng(seed)
    lane_bits = 6 if arch in ("gfx90a", "gfx942", "gfx950") else 5
    warp_bits = int(rng.integers(0, 3))
    bits = lane_bits + warp_bits + int(rng.integers(2, 5))
    axes = (("register", bits - lane_bits - warp_bits), ("lane", lane_bits), ("warp", warp_bits))
    ends = [LinearLayout(axes, (("element", bits),), _columns(rng, bits, dense)) for _ in range(2)]
    plan = conversion(*ends, element_bits, arch)
    made = conversion_kernel(plan)  # type: ignore[arg-type]
    elements = _drawn(rng, (1 << bits,), element_bits // 8)
    held = [as_words(elements[end.table()].reshape(-1, 1 << axes[0][1]), element_bits) for end in ends]
    into = np.zeros_like(held[1])
    runner(made, [held[0], into], 1)
    assert (into == held[1]).all()


def relabelled(runner: Runner, arch: str, element_bits: int, seed: int) -> None:
    """A conversion between tables that are no maps of bits: any permutation, and any choice of its elements."""
    rng = np.random.default_rng(seed)
    lanes = 64 if arch in ("gfx90a", "gfx942", "gfx950") else 32
    warps, registers, wanted = int(rng.integers(1, 4)), int(rng.choice((1, 3, 6, 12))), int(rng.choice((1, 4, 5)))
    source = rng.permutation(warps * lanes * registers).reshape(warps, lanes, registers)
    destination = rng.integers(0, source.size, (warps, lanes, wanted))
    made = conversion_kernel(conversion(source, destination, element_bits, arch))  # type: ignore[arg-type]
    elements = _drawn(rng, (source.size,), element_bits // 8)
    held = [as_words(elements[end].reshape(warps * lanes, -1), element_bits) for end in (source, destination)]
    into = np.zeros_like(held[1])
    runner(made, [held[0], into], 1)
    assert (into == held[1]).all()


def picked(runner: Runner, arch: str, element_bits: int, seed: int) -> None:
    """A gather of registers along the rows of a tensor, indices outside included."""
    rng = np.random.default_rng(seed)
    lane_bits = 6 if arch in ("gfx90a", "gfx942", "gfx950") else 5
    warp_bits, each = int(rng.integers(0, 3)), (int(rng.integers(1, 4)), int(rng.integers(0, 3)))
    fixed = int(rng.integers(0, min(each) + lane_bits + warp_bits))
    ends = []
    for register_bits in each:
        bits = register_bits + lane_bits + warp_bits
        axes = (("register", register_bits), ("lane", lane_bits), ("warp", warp_bits))
        ends.append(LinearLayout(axes, (("row", bits - fixed), ("col", fixed)), _columns(rng, bits, dense=False)))
    plan = gather(ends[0], ends[1], "row", element_bits, arch)
    rows, columns = (1 << bits for _, bits in ends[0].out_axes)
    tensor = _drawn(rng, (columns, rows), element_bits // 8)
    indices = rng.integers(-2, rows + 2, (columns, 1 << ends[1].out_axes[0][1]))
    inside = (indices >= 0) & (indices < rows)
    result = np.where(inside, np.take_along_axis(tensor, np.where(inside, indices, 0), 1), 0).astype(tensor.dtype)
    before, asked, after = (
        flat.reshape(-1)[end.table()].reshape(-1, 1 << end.in_axes[0][1])
        for flat, end in ((tensor, ends[0]), (indices, ends[1]), (result, ends[1]))
    )
    wanted = as_words(after, element_bits)
    into = np.zeros_like(wanted)
    given = [as_words(before, element_bits), np.ascontiguousarray(asked.T.astype(np.int32)), into]
    runner(gather_registers_kernel(plan), given, 1)  # type: ignore[arg-type]
    assert (into == wanted).all()


def crossed(runner: Runner, arch: str, element_bits: int, seed: int) -> None:
    """A conversion across the blocks of a cluster; the runner launches as many blocks."""
    rng = np.random.default_rng(seed)
    warp_bits, block_bits, register_bits = (int(rng.integers(*ends)) for ends in ((0, 3), (1, 4), (1, 4)))
    bits = register_bits + 5 + warp_bits + block_bits
    axes = (("register", register_bits), ("lane", 5), ("warp", warp_bits), ("block", block_bits))
    ends = [LinearLayout(axes, (("element", bits),), _columns(rng, bits, dense=bool(seed % 2))) for _ in range(2)]
    plan = conversion(*ends, element_bits, arch)
    elements = _drawn(rng, (1 << bits,), element_bits // 8)
    held = [as_words(elements[end.table()].reshape(-1, 1 << register_bits), element_bits) for end in ends]
    into = np.zeros_like(held[1])
    runner(conversion_kernel(plan), [held[0], into], 1 << block_bits)  # type: ignore[arg-type]
    assert (into == held[1]).all()


def _columns(rng: np.random.Generator, bits: int, dense: bool) -> tuple[int, ...]:
    columns = [1 << int(place) for place in rng.permutation(bits)]
    while dense:
        columns = [int(column) for column in rng.integers(0, 1 << bits, bits)]
        if matrix.rank(columns) == bits:
            break
    return tuple(columns)


def as_words(elements: Any, bits: int) -> Any:
    """Return elements by (warp, lane, register) as 32-bit words by word and thread, the last filled up with zeros."""
    rows = np.asarray(elements).reshape(-1, elements.shape[-1]).astype(WORDS[bits // 8])
    rows = np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), -1)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 4)))
    return np.ascontiguousarray(np.ascontiguousarray(rows).view(np.uint32).T)
