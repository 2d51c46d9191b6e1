"""Kernels of arrays with offsets from 2^31 on: the last block is run on the CPU and its corner compared.

The arrays are address space that nobody has written: only the pages that the block and the comparison touch exist.
"""

from __future__ import annotations

import mmap
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.codegen import copy_kernel, gather_kernel, hostsim, staging_kernel, transpose_kernel
from layoutalg.codegen.kernels import ArrayKernel, transpose_ring_kernel, transpose_windows_kernel
from layoutalg.ground.errors import InfeasibleError, MalformedError

TYPES = {1: "u8", 2: "f16", 4: "f32", 8: "f64"}
SIDE = 6
NO_RESERVE = 0x4000  # MAP_NORESERVE of Linux
needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")


def reserved(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Zeros of which no page exists yet."""
    size = int(np.prod(shape, dtype=object)) * np.dtype(dtype).itemsize
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NO_RESERVE
    try:
        return np.frombuffer(mmap.mmap(-1, size, flags=flags), dtype).reshape(shape)
    except OSError:
        pytest.skip(f"no address space of {size} bytes")


def last_blocks(made: ArrayKernel, source: np.ndarray, result: np.ndarray, index: np.ndarray | None = None) -> None:
    """Run the last two blocks alone."""
    first = f"(blockIdx.x + {made.blocks - 2}u)"
    text = made.kernel.text.replace("blockIdx.x", first).replace(f"status[{first}]", "status[blockIdx.x]")
    assert text != made.kernel.text
    status = np.zeros(2, dtype=np.int32)
    if made.persistent:  # the count of a grid is that of all blocks; one of them writes its word
        arguments = made.arguments(source, result, made.blocks, status.ctypes.data)
    else:
        arguments = made.arguments(source, result, index=index)
    regions = [(array.ctypes.data, array.nbytes) for array in (source, result)]
    fault = hostsim.run(replace(made.kernel, text=text, grid=None), arguments, blocks=2, regions=regions)
    assert hostsim.FAULTS[fault] == "none"
    assert not made.persistent or status.tolist() == [1, 1]


def corner(array: np.ndarray) -> tuple[slice, ...]:
    return tuple(slice(max(0, extent - SIDE), extent) for extent in array.shape)


def drawn(array: np.ndarray, seed: int) -> np.ndarray:
    """Write random elements into the last corner; returned as they are there."""
    found = array[corner(array)]
    found[...] = np.random.default_rng(seed).integers(1, 200, found.shape)
    return found


def moved(made: ArrayKernel, shape: tuple[int, ...], size: int, turned: bool) -> bool:
    """Whether a copy or a transpose has the last element right, and of those beside it what its last blocks wrote."""
    source, result = reserved(shape, f"u{size}"), reserved(shape[::-1] if turned else shape, f"u{size}")
    wanted = drawn(source, size)
    last_blocks(made, source, result)
    found = result[corner(result)]
    written = found != 0
    return bool(written[-1, -1] and (found == (wanted.T if turned else wanted))[written].all())


def shape_of(bits: int, wide: int, more: tuple[int, int], steps: tuple[int, int]) -> tuple[int, int]:
    """Extents around 2^(bits - wide) and 2^wide."""
    return (1 << bits - wide) + steps[0] * more[0], (1 << wide) + steps[1] * more[1]


MAKERS = {
    "copy": (lambda shape, kind: copy_kernel(shape, kind, way="vector"), False, (16, 16)),
    "engine": (lambda shape, kind: copy_kernel(shape, kind, way="tma"), False, (16, 16)),
    "transpose": (lambda shape, kind: transpose_kernel(shape, kind, way="vectors"), True, (4, 4)),
    "windows": (transpose_windows_kernel, True, (552, 1)),  # the last block writes the last row
    "ring": (transpose_ring_kernel, True, (16, 16)),
}


@pytest.mark.nightly(one_of=3)
@needs_compiler
@pytest.mark.parametrize("name", MAKERS)
@settings(max_examples=3, deadline=None)
@given(
    bits=st.integers(31, 35), wide=st.integers(12, 20), more=st.tuples(st.integers(0, 6), st.integers(0, 6)),
    size=st.sampled_from([1, 2, 4]),
)  # fmt: skip
def test_the_last_corner_of_a_large_array(name, bits, wide, more, size):
    make, turned, steps = MAKERS[name]
    shape = shape_of(bits, wide, more, steps)
    assert moved(make(shape, TYPES[size]), shape, size, turned)


@needs_compiler
@pytest.mark.parametrize(("shape", "axis", "count", "way"), [
    ((1 << 26, 100), 1, 80, "warp"), ((1 << 22, 3000), 1, 1500, "shared"), ((7, (1 << 31) - 1), 0, 5, "direct"),
    (((1 << 20) + 1, 33, 257), 1, 20, "direct"),
])  # fmt: skip
@pytest.mark.parametrize("index_dtype", ["s32", "s64"])
def test_the_last_corner_of_a_large_gather(shape, axis, count, way, index_dtype):
    made = gather_kernel(shape, axis, count, "u16", index_dtype=index_dtype, way=way)
    whole = (*shape[:axis], count, *shape[axis + 1 :])
    assert np.prod(whole, dtype=np.int64) >= 1 << 32
    source, result = reserved(shape, "u2"), reserved(whole, "u2")
    index = reserved(whole, {"s32": "i4", "s64": "i8"}[index_dtype])
    drawn(source, 3)
    place = corner(index)
    index[place] = np.random.default_rng(4).integers(shape[axis] - SIDE - 2, shape[axis] + 2, index[place].shape)
    last_blocks(made, source, result, index)
    # the last elements of the last row, which the last blocks write whatever the way
    place = (*(slice(extent - 1, extent) for extent in whole[:-1]), slice(whole[-1] - SIDE, whole[-1]))
    checked = 0
    for at in product(*(range(cut.start, cut.stop) for cut in place)):
        row = int(index[at])
        inside = 0 <= row < shape[axis]
        assert result[at] == (source[(*at[:axis], row, *at[axis + 1 :])] if inside else 0)
        checked += inside and result[at] != 0
    assert checked


@needs_compiler
@pytest.mark.parametrize("size", [1, 4])
def test_the_last_corner_of_a_large_staging(size):
    plan = transpose_kernel((64, 64), TYPES[size], threads=128 if size == 1 else 256).swizzle
    rows, cols = plan.smem.in_dims.values()
    shape = ((1 << 17) + 3, (1 << 15) + 5)
    made = staging_kernel(plan, shape)
    source, result = reserved(shape, f"u{size}"), reserved(made.arrays[1].shape, f"u{size}")
    wanted = drawn(source, 5)
    last_blocks(made, source, result)
    layout = plan.accesses[1].layout
    table = np.asarray(layout.table()).reshape(result.shape[2:])
    row = (shape[0] - 1) // rows * rows + table % rows
    col = (shape[1] - 1) // cols * cols + table // rows
    seen = (row >= shape[0] - SIDE) & (col >= shape[1] - SIDE) & (row < shape[0]) & (col < shape[1])
    assert seen.sum() > 8
    there = wanted[row[seen] - shape[0] + SIDE, col[seen] - shape[1] + SIDE]
    assert (result[-1, 0][seen] == there).all()


@needs_compiler
@pytest.mark.parametrize("name", ["copy", "transpose", "windows"])
def test_offsets_of_32_bits_are_seen(name):
    """The comparison above fails where a text computes its offsets in 32 bits."""
    make, turned, _ = MAKERS[name]
    shape = (1 << 16, (1 << 17) + 64)
    size = 8 if name == "copy" else 2
    made = make(shape, TYPES[size])
    narrow = (
        made.kernel.text.replace("(la_u64)", "(la_u32)").replace("const la_u64", "const la_u32").replace("ull", "u")
    )
    assert not moved(replace(made, kernel=replace(made.kernel, text=narrow)), shape, size, turned)


@needs_compiler
def test_the_bytes_of_a_large_copy_that_fill_no_vector():
    shape = ((1 << 16) + 1, (1 << 17) + 1)
    made = copy_kernel(shape, "u8", way="vector")
    source, result = (reserved(shape, "u1").reshape(-1) for _ in range(2))
    source[-5:] = 1, 2, 3, 4, 5
    assert hostsim.run(replace(made.kernel, grid=None), made.arguments(source, result)) == 0  # block 0
    assert source.size % 16 == 1
    assert result[-5:].tolist() == [0, 0, 0, 0, 5]


@pytest.mark.parametrize("call", [
    lambda: copy_kernel((1 << 13, 1 << 29), "u8", way="vector", threads=32, per_thread=1),
    lambda: copy_kernel((1 << 20, 1 << 22), "f64", "gfx942", way="vector"),
    lambda: copy_kernel((1 << 16, 1 << 20), "f32", tile=(1, 32)),
    lambda: transpose_kernel((1 << 21, 1 << 21), "u8", "gfx942", tile=(64, 64), threads=64),
    lambda: transpose_kernel((1 << 21, 1 << 21), "f32", tile=(16, 32), threads=32),
    lambda: transpose_ring_kernel((1 << 21, 1 << 21), "f32"),
    lambda: transpose_windows_kernel(((1 << 21) + 1, (1 << 20) + 1), "f32", "gfx1100", rows=128),
    lambda: gather_kernel(((1 << 31) - 1, 1 << 10), 0, (1 << 31) - 1, "u8"),
    lambda: gather_kernel(((1 << 31) - 1, 2000), 1, 1, "u8", "gfx942", way="shared"),
    lambda: gather_kernel((1 << 20, 100), 1, (1 << 31) - 1, "f64", way="warp"),
])  # fmt: skip
def test_grids_that_no_launch_takes_are_refused(call):
    with pytest.raises(InfeasibleError, match="LA948"):
        call()


def test_large_stagings_are_refused_with_what_fits():
    plan = transpose_kernel((64, 64), "f16", tile=(8, 16), threads=32, vector_bytes=4).swizzle
    shape = (1 << 20, 1 << 22)
    with pytest.raises(InfeasibleError, match="launch several times") as refused:
        staging_kernel(plan, shape)
    fits = int(refused.value.diagnostic.repairs[0].detail.split()[3])
    assert staging_kernel(plan, (fits, shape[1])).blocks < 1 << 31
    with pytest.raises(InfeasibleError):
        staging_kernel(plan, (fits + 1, shape[1]))


def test_no_coordinate_of_a_tile_passes_2_to_the_31():
    with pytest.raises(MalformedError, match="coordinate"):
        copy_kernel((4, (1 << 31) - 16), "u8", tile=(1, 240))
