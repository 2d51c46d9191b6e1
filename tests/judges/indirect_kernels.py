"""Kernels on routed and paged rows, run by any runner and compared with numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from layoutalg.codegen.kernels.inspector import routing_kernels
from layoutalg.codegen.kernels.paged import paged_kernel
from layoutalg.codegen.kernels.routed import permute_kernel, runs_kernel, unpermute_kernel
from layoutalg.codegen.kernels.vectors import COPY_LOOP, CopyLoop
from layoutalg.proofs.indirect import Paged, PagedBatch, Routing, Runs

Runner = Callable[..., None]
NOTHING = 0x5A5A5A5A


def aligned(shape: tuple[int, ...], dtype: Any, fill: int = 0x5A) -> Any:
    """An array at an address that is a multiple of 16 bytes."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    room = np.full(size + 16, fill, dtype=np.uint8)
    start = -room.ctypes.data % 16
    return room[start : start + size].view(dtype).reshape(shape)


def filled(values: Any) -> Any:
    """A copy at such an address."""
    found = aligned(values.shape, values.dtype)
    found[...] = values
    return found


def routed(
    runner: Runner, arch: str, ids: Any, experts: int, block: int, local: Any = None, dtype: str = "s32"
) -> dict[str, Any]:
    """The inspector's lists are those of ``Routing``, behind them sentinels up to the bound."""
    wanted = Routing(ids, experts, block, local)
    flat = np.asarray(ids).reshape(-1).astype(np.int32 if dtype == "s32" else np.int64)
    kernels = routing_kernels(len(flat), experts, block, local=local, index_dtype=dtype, target=arch)
    assert len(kernels) == (1 if len(flat) <= 1024 else 2)
    lists = {
        each.name: np.full(each.shape, NOTHING, dtype=np.int32)
        for kernel in kernels for each in kernel.arrays if each.name != "topk_ids"
    }  # fmt: skip
    for kernel in kernels:
        given = {each.name: flat if each.name == "topk_ids" else lists[each.name] for each in kernel.arrays}
        runner(kernel.kernel, kernel.arguments(**given), kernel.blocks)
    n = len(flat)
    for name, rest in (
        ("counts", 0), ("offsets", 0), ("inverse", 0), ("padded_offsets", 0), ("order", n), ("padded_order", n),
        ("block_experts", -1),
    ):  # fmt: skip
        found, expected = lists[name], getattr(wanted, name)
        assert found[: len(expected)].tolist() == expected.tolist(), name
        assert (found[len(expected) :] == rest).all(), name
    assert len(lists["block_experts"]) == wanted.tile_bound
    return lists


def permuted(runner: Runner, arch: str, way: str, tokens: int, k: int, row_bytes: int, seed: int) -> None:
    """Rows go to their places; places outside are left out, sentinels give zeros."""
    rng = np.random.default_rng(seed)
    source = filled(rng.integers(0, 256, (tokens, row_bytes), dtype=np.uint8))
    rows = tokens * k + int(rng.integers(0, 3))
    wanted = np.full((rows, row_bytes), 0x5A, dtype=np.uint8)
    if way == "push":
        index = rng.permutation(rows + 2)[: tokens * k].astype(np.int32) - 1
        for place, row in enumerate(index):
            if 0 <= row < rows:
                wanted[row] = source[place // k]
    else:
        index = rng.integers(0, tokens * k + 2, rows).astype(np.int32) if tokens else np.zeros(rows, np.int32)
        for row, place in enumerate(index):
            wanted[row] = source[place // k] if place // k < tokens else 0
    kernel = permute_kernel(tokens, k, rows, row_bytes, way=way, target=arch)
    destination = aligned((rows, row_bytes), np.uint8)
    given = kernel.arguments(source=source, index=index, destination=destination)
    runner(kernel.kernel, given, kernel.blocks)
    assert (destination == wanted).all()


WORDS = {"bf16": np.uint16, "f16": np.uint16, "f32": np.uint32}


def floats(words: Any, dtype: str) -> Any:
    """The numbers of bits, exact."""
    if dtype == "f16":
        return words.view(np.float16).astype(np.float64)
    wide = words.astype(np.uint32) << 16 if dtype == "bf16" else words
    return wide.view(np.float32).astype(np.float64)


def unpermuted(runner: Runner, arch: str, dtype: str, tokens: int, k: int, columns: int, seed: int) -> None:
    """Weighted sums of small integers, which are exact; places outside are left out."""
    rng = np.random.default_rng(seed)
    rows = tokens * k
    numbers = rng.integers(-8, 9, (rows, columns)).astype(np.float32)
    bits = {"f32": numbers.view(np.uint32), "bf16": (numbers.view(np.uint32) >> 16).astype(np.uint16),
            "f16": numbers.astype(np.float16).view(np.uint16)}[dtype]  # fmt: skip
    index = rng.permutation(rows).astype(np.int32)
    index[rng.random(rows) < 0.2] = -1
    weights = (rng.integers(-4, 5, rows) / 4).astype(np.float32)
    wanted = np.zeros((tokens, columns))
    for place, row in enumerate(index):
        if row >= 0:
            wanted[place // k] += float(weights[place]) * numbers[row]
    kernel = unpermute_kernel(tokens, k, rows, columns, dtype, arch)
    result = aligned((tokens, columns), WORDS[dtype])
    given = kernel.arguments(source=filled(bits), index=index, weights=weights, destination=result)
    runner(kernel.kernel, given, kernel.blocks)
    near = {"f32": 0.0, "f16": 2.0**-11, "bf16": 2.0**-8}[dtype]
    assert (np.abs(floats(result, dtype) - wanted) <= near * np.abs(wanted)).all()


def copied_runs(runner: Runner, arch: str, pieces: Any, tokens: int, more: int, row_bytes: int, seed: int) -> None:
    """Rows come from their runs; those behind the last run, and of tokens that are not there, are zeros."""
    source = filled(np.random.default_rng(seed).integers(0, 256, (tokens, row_bytes), dtype=np.uint8))
    runs = Runs(pieces)
    named = runs.values().tolist() + [-1] * more
    wanted = np.zeros((len(named), row_bytes), dtype=np.uint8)
    for row, token in enumerate(named):
        wanted[row] = source[token] if 0 <= token < tokens else 0
    kernel = runs_kernel(tokens, len(named), len(runs.pieces), row_bytes, target=arch)
    destination, table = aligned(wanted.shape, np.uint8), filled(runs.pieces.astype(np.int32))
    runner(kernel.kernel, kernel.arguments(source=source, runs=table, destination=destination), kernel.blocks)
    assert (destination == wanted).all()


def paged(
    runner: Runner, arch: str, cache: Paged | PagedBatch, direction: str, way: str, seed: int,
    capacity: int | None = None, there: Callable[[Any], Any] = lambda array: array,
    here: Callable[[Any], Any] = lambda array: array, loop: CopyLoop = COPY_LOOP,
) -> None:  # fmt: skip
    """Bytes of tokens go to their places and no others; rows up to the capacity are zeros.

    ``there`` takes an array to where the kernel runs, ``here`` brings it back.
    """
    rng = np.random.default_rng(seed)
    kernel = paged_kernel(cache, direction, way=way, capacity=capacity, target=arch, loop=loop)
    batch = isinstance(cache, PagedBatch)
    whole, many = (cache.whole, cache.sequences) if batch else (cache, 1)
    sequences = [cache.sequence(each) for each in range(many)] if batch else [cache]
    most = max([each.tokens for each in sequences], default=0) if capacity is None else capacity
    heads, size = whole.kv_heads, whole.row_bytes
    pool = filled(rng.integers(0, 256, (whole.pages or 0) * (whole.page_stride or 0), dtype=np.uint8))
    flat = filled(rng.integers(0, 256, many * most * heads * size, dtype=np.uint8))
    nhd = whole.kv_layout == "NHD"
    wanted, other = pool.copy(), flat.reshape(many, *((most, heads) if nhd else (heads, most)), size).copy()
    if direction == "gather":
        other[...] = 0
    for number, each in enumerate(sequences):
        for token, head in np.ndindex(each.tokens, heads):
            at = (number, token, head) if nhd else (number, head, token)
            start = each.address(token, head)
            if direction == "gather":
                other[at] = pool[start : start + size]
            else:
                wanted[start : start + size] = other[at]
    lists = {"table": whole.page_table.astype(np.int32)}
    if batch:
        lists |= {name: getattr(cache, name).astype(np.int32) for name in ("indptr", "last_page_len")}
    blocks = min(kernel.blocks, 3) if kernel.persistent else kernel.blocks
    status = np.zeros(blocks, dtype=np.int32) if kernel.persistent else None
    regions = [(each.ctypes.data, each.nbytes) for each in (pool, flat)]
    pool, flat = there(pool), there(flat)
    given = kernel.arguments(blocks, status, pool=pool, contiguous=flat, **lists)
    runner(kernel.kernel, given, blocks, regions=regions)
    pool, flat = here(pool), here(flat)
    assert status is None or (status == 1).all()
    assert (pool == wanted).all()
    assert (flat == other.reshape(-1)).all()
