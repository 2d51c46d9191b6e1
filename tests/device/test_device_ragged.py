"""Ragged copies and transposes on a real GPU: schedule and copy, copies by vectors, every byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import layoutalg as la
from layoutalg.codegen import launch
from layoutalg.codegen.kernels import (
    RaggedKernel,
    ragged_copy_kernel,
    ragged_span_kernel,
    ragged_transpose_kernel,
)

pytestmark = pytest.mark.device("sm_90a")
ROWS, COLUMNS, GROUPS = 2048, 256, 12


def moved(made: RaggedKernel, source: npt.NDArray[Any], sizes: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """The destination, 7 where nothing was written."""
    given = sizes if made.given == "sizes" else np.concatenate([[0], np.cumsum(sizes)])
    groups = launch.upload(given.astype(np.int32 if made.index_bytes == 4 else np.int64))
    there, schedule = launch.upload(source), launch.upload(np.zeros(made.schedule_words, np.int32))
    result = launch.upload(np.full(made.arrays[1].shape, 7, source.dtype))
    launch.run(made.scheduler, made.schedule_arguments(groups, schedule), blocks=made.schedule_blocks)
    blocks = min(made.blocks, 264)
    status = np.zeros(blocks, np.int32)
    launch.run(made.kernel, made.arguments(there, result, schedule, blocks, status), blocks=blocks)
    assert (status == 1).all()
    found = launch.download(result, 0, made.arrays[1].nbytes)
    return found.view(source.dtype).reshape(made.arrays[1].shape)


def drawn(seed: int, multiple: int = 1, least: int = 0) -> npt.NDArray[np.int64]:
    sizes = np.random.default_rng(seed).integers(0, 2 * ROWS // GROUPS, GROUPS) // multiple * multiple
    sizes[(sizes < least) | (np.arange(GROUPS) == seed % GROUPS) | (np.cumsum(sizes) > ROWS)] = 0
    return sizes


@pytest.mark.parametrize("strategy", ["auto", "exact_pool", "overlap_pool", "shift_back"])
@pytest.mark.parametrize("given", ["offsets", "sizes"])
def test_copies(strategy: str, given: str) -> None:
    tensor, smem = la.Tensor((ROWS, COLUMNS), dtype="u16"), "Sw<3,3,3> o 0 o (32,64):(64,1)"
    made = la.ragged(tensor, GROUPS, (32, 64), smem, strategy).kernel(given=given)
    source = np.random.default_rng(0).integers(8, 60000, (ROWS, COLUMNS)).astype(np.uint16)
    for seed in range(4):
        sizes = drawn(seed, least=32 if strategy == "shift_back" else 0)
        result, total = moved(made, source, sizes), int(sizes.sum())
        assert (result[:total] == source[:total]).all()
        assert (result[total:] == 7).all()


@pytest.mark.parametrize("dtype", ["u1", "u2", "u4", "u8"])
def test_copies_of_several_heights_and_transposes(dtype: str) -> None:
    size = np.dtype(dtype).itemsize
    name = f"u{8 * size}"
    copy = ragged_copy_kernel((ROWS, COLUMNS), name, GROUPS, way="boxes")
    turn = ragged_transpose_kernel((ROWS, COLUMNS), name, GROUPS)
    source = np.random.default_rng(1).integers(8, 250, (ROWS, COLUMNS)).astype(dtype)
    for seed in range(3):
        sizes = drawn(seed, 16 // size)
        total = int(sizes.sum())
        result, turned = moved(copy, source, sizes), moved(turn, source, sizes)
        assert (result[:total] == source[:total]).all()
        assert (turned[:, :total] == source[:total].T).all()
        assert (result[total:] == 7).all()
        assert (turned[:, total:] == 7).all()


@pytest.mark.parametrize("placed", [False, True])
@pytest.mark.parametrize(
    ("dtype", "columns", "groups", "given", "index"),
    [
        ("u1", 259, 12, "offsets", "s32"), ("u2", 36, 3000, "sizes", "s64"), ("u4", 256, 16384, "offsets", "s32"),
        ("u8", 33, 257, "sizes", "s32"), ("u4", 64, 16384, "sizes", "s64"),
    ],
)  # fmt: skip
def test_copies_by_vectors(dtype: str, columns: int, groups: int, given: str, index: str, placed: bool) -> None:
    """Half of the groups are empty, placed ones lie in any order; wrong groups copy nothing and are named."""
    rng, most = np.random.default_rng(groups + placed), 9
    rows = groups * most
    made = ragged_span_kernel(
        (rows, columns), f"u{8 * np.dtype(dtype).itemsize}", groups, given=given, index_dtype=index, placed=placed
    )
    sizes = rng.integers(0, most + 1, groups) * rng.integers(0, 2, groups)
    source = rng.integers(8, 250, (rows, columns)).astype(dtype)
    ends, order = np.concatenate([[0], np.cumsum(sizes)]), rng.permutation(groups)
    starts = ends[:-1].copy()
    if placed:
        starts[order] = np.cumsum([0, *sizes[order][:-1]]) + rows - ends[-1]
    kind = np.int32 if index == "s32" else np.int64
    blocks = made.blocks

    def copied(sizes: npt.NDArray[np.int64]) -> tuple[npt.NDArray[Any], npt.NDArray[np.int32]]:
        numbers = sizes if given == "sizes" else np.concatenate([[0], np.cumsum(sizes)])
        result = launch.upload(np.full((rows, columns), 7, dtype))
        places = {"source": launch.upload(source), "destination": result, "groups": launch.upload(numbers.astype(kind))}
        if placed:
            places["placed"] = launch.upload(starts.astype(kind))
        status = np.zeros(blocks, np.int32)
        launch.run(made.kernel, made.arguments(blocks, status, **places), blocks=blocks)
        found = launch.download(result, 0, made.arrays[1].nbytes)
        return found.view(dtype).reshape(rows, columns), status

    wanted = np.full((rows, columns), 7, dtype)
    for group in range(groups):
        wanted[starts[group] : starts[group] + sizes[group]] = source[ends[group] : ends[group + 1]]
    result, status = copied(sizes)
    assert (status == 1).all()
    assert (result == wanted).all()
    sizes[groups // 2] = -1
    result, status = copied(sizes)
    assert (status == -1 - groups // 2).all()
    assert (result == 7).all()
