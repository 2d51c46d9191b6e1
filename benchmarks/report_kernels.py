"""Kernels in Triton whose reports ``device_reports`` compares with hardware counters.

Each has a grid, arguments whose sizes divide evenly, so that no lane is inactive, and the trips of its loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl


@triton.jit
def la_rows(x, y, n, B: tl.constexpr, W: tl.constexpr):
    """A copy along the rows."""
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * W + tl.arange(0, W)
    at = rows[:, None] * n + columns[None, :]
    tl.store(y + at, tl.load(x + at))


@triton.jit
def la_turned(x, y, n, B: tl.constexpr):
    """A transpose whose loads or stores are the columns."""
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    values = tl.load(x + rows[:, None] * n + columns[None, :])
    tl.store(y + columns[:, None] * n + rows[None, :], tl.trans(values))


@triton.jit
def la_columns(x, y, n, B: tl.constexpr):
    """The same transpose without ``trans``: one side is not coalesced."""
    rows, columns = tl.program_id(0) * B + tl.arange(0, B), tl.program_id(1) * B + tl.arange(0, B)
    values = tl.load(x + rows[:, None] * n + columns[None, :])
    tl.store(y + columns[None, :] * n + rows[:, None], values)


@triton.jit
def la_strided(x, y, STEP: tl.constexpr, OFFSET: tl.constexpr, B: tl.constexpr):
    """Every STEP-th element from an offset, stored together."""
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(y + at, tl.load(x + at * STEP + OFFSET))


@triton.jit
def la_softmax(x, y, n, B: tl.constexpr):
    """A row by a block: two reductions."""
    at = tl.program_id(0) * n + tl.arange(0, B)
    values = tl.load(x + at).to(tl.float32)
    power = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + at, (power / tl.sum(power, axis=0)).to(tl.float16))


@triton.jit
def la_scan(x, y, n, B: tl.constexpr):
    """Running sums of rows."""
    at = tl.program_id(0) * n + tl.arange(0, B)
    tl.store(y + at, tl.cumsum(tl.load(x + at), axis=0))


@triton.jit
def la_product(a, b, c, k, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B, all row by row."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    left, right = a + rows[:, None] * k + steps[None, :], b + steps[:, None] * n + columns[None, :]
    sums = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k, BK):
        sums = tl.dot(tl.load(left), tl.load(right), sums)
        left += BK
        right += BK * n
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


@triton.jit
def la_products_turned(a, b, c, k, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """C = A B with B stored column by column and read across."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    steps = tl.arange(0, BK)
    left, right = a + rows[:, None] * k + steps[None, :], b + steps[:, None] + columns[None, :] * k
    sums = tl.zeros((BM, BN), tl.float32)
    for _ in range(0, k, BK):
        sums = tl.dot(tl.load(left), tl.load(right), sums)
        left += BK
        right += BK
    tl.store(c + rows[:, None] * n + columns[None, :], sums.to(tl.float16))


@triton.jit
def la_added(x, y, B: tl.constexpr, SHARED: tl.constexpr):
    """Atomic sums, to addresses of their own or to shared ones."""
    at = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(y + at // SHARED, tl.load(x + at), sem="relaxed")


class Case(NamedTuple):
    """A launch: the kernel, tensors (elements, dtype), further arguments, constants, options, grid, trips of loops."""

    name: str
    kernel: Any
    tensors: tuple[tuple[int, str], ...]
    arguments: tuple[int, ...]
    constants: dict[str, int]
    options: dict[str, int]
    grid: tuple[int, ...]
    trips: int = 1


def _square(name: str, kernel: Any, dtype: str, block: int, warps: int, **more: int) -> Case:
    grid = (512 // block, 512 // more.get("W", block))
    return Case(name, kernel, ((2**18, dtype),) * 2, (512,), {"B": block, **more}, {"num_warps": warps}, grid)


def _product(name: str, kernel: Any, block: tuple[int, int, int], warps: int, stages: int) -> Case:
    constants = dict(zip(("BM", "BN", "BK"), block, strict=True))
    options, grid = {"num_warps": warps, "num_stages": stages}, (256 // block[0], 256 // block[1])
    tensors = ((2**16, "float16"),) * 3
    return Case(name, kernel, tensors, (256, 256), constants, options, grid, 256 // block[2])


def cases() -> list[Case]:
    """Return the launches, always the same."""
    found = [
        _square("rows of f16", la_rows, "float16", 64, 4, W=64),
        _square("rows of f32, 8 warps", la_rows, "float32", 32, 8, W=128),
        _square("rows of u8", la_rows, "uint8", 64, 4, W=64),
        _square("narrow rows of f16", la_rows, "float16", 128, 4, W=16),
        _square("turned f16", la_turned, "float16", 64, 4),
        _square("turned f32", la_turned, "float32", 32, 4),
        _square("columns of f16", la_columns, "float16", 64, 4),
        _square("columns of f32", la_columns, "float32", 32, 2),
    ]
    for step, offset, dtype in (
        (1, 1, "float16"),
        (2, 0, "float32"),
        (3, 1, "float32"),
        (8, 0, "float16"),
        (1, 3, "uint8"),
    ):
        tensors = ((2**14 * step + 8, dtype), (2**14, dtype))
        constants = {"STEP": step, "OFFSET": offset, "B": 1024}
        found.append(
            Case(f"{dtype} by {step} from {offset}", la_strided, tensors, (), constants, {"num_warps": 4}, (16,))
        )
    found += [
        Case("softmax", la_softmax, ((2**16, "float16"),) * 2, (1024,), {"B": 1024}, {"num_warps": 4}, (64,)),
        Case("running sums", la_scan, ((2**16, "float32"),) * 2, (1024,), {"B": 1024}, {"num_warps": 4}, (64,)),
        _product("product 64x64x32", la_product, (64, 64, 32), 4, 1),
        _product("product 128x64x64", la_product, (128, 64, 64), 4, 1),
        _product("product 16x64x64, 2 warps", la_product, (16, 64, 64), 2, 1),
        _product("product 64x64x64 by async copies", la_product, (64, 64, 64), 4, 3),
        _product("product 32x32x64 by async copies", la_product, (32, 32, 64), 4, 3),
        _product("product with B turned", la_products_turned, (64, 64, 32), 4, 1),
        _product("product with B turned, 2 warps", la_products_turned, (16, 32, 64), 2, 2),
    ]
    for shared in (1, 4, 32):
        tensors = ((2**14, "float32"),) * 2
        constants = {"B": 1024, "SHARED": shared}
        found.append(Case(f"atomic sums of {shared}", la_added, tensors, (), constants, {"num_warps": 4}, (16,)))
    return found


def launch(case: Case) -> Any:
    """Run a case on fresh tensors; return the compiled kernel."""
    tensors = [torch.ones(size, device="cuda", dtype=getattr(torch, dtype)) for size, dtype in case.tensors]
    kernel: Callable[..., Any] = case.kernel[case.grid]
    return kernel(*tensors, *case.arguments, **case.constants, **case.options)
