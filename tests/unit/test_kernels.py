"""Kernels that move arrays on the CPU: their turns, planted faults, refusals; ``test_kernel_fuzz`` the results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from layoutalg.codegen import hostsim
from layoutalg.codegen.kernels import (
    ArrayKernel,
    copy_kernel,
    transpose_kernel,
    transpose_ring_kernel,
    transpose_windows_kernel,
)
from layoutalg.ground.errors import InfeasibleError, LayoutError, MalformedError, RepresentabilityError

needs_compiler = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
TYPES = {"u8": np.uint8, "f16": np.uint16, "f32": np.uint32, "f64": np.uint64}


def placed(shape, dtype):
    """An array at a multiple of 128 bytes, as an allocation on a device is."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    store = np.zeros(size + 128, dtype=np.uint8)
    first = -store.ctypes.data % 128
    return store[first : first + size].view(dtype).reshape(shape)


def moved(made: ArrayKernel, source, shape, blocks=None):
    """Run a kernel on the CPU; what it writes behind its array is an error."""
    result = placed((int(np.prod(shape)) + 64 // source.itemsize,), source.dtype)
    result.view(np.uint8)[:] = 0xA5
    end = int(np.prod(shape))
    grid = made.blocks if blocks is None else min(blocks, made.blocks)
    arguments = made.arguments(source.reshape(-1), result[:end], grid)
    regions = [(array.ctypes.data, array.nbytes) for array in (source, result[:end])]
    assert hostsim.FAULTS[hostsim.run(made.kernel, arguments, blocks=grid, regions=regions)] == "none"
    if made.maps:
        assert (arguments[-1] == 1).all()
    assert (result[end:].view(np.uint8) == 0xA5).all()
    return result[:end].reshape(shape)


def drawn(shape, dtype, seed=0):
    source = placed(shape, TYPES[dtype])
    source.view(np.uint8).reshape(-1)[:] = np.random.default_rng(seed).integers(0, 256, source.nbytes, dtype=np.uint8)
    return source


@pytest.mark.nightly(one_of=5)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("dtype", ["u8", "f16", "f32"])
def test_transposes_by_whole_sectors(arch, dtype):
    for shape in ((521, 131), (3, 5), (256, 64)):
        source, result = drawn(shape, dtype, 5), placed(shape[::-1], TYPES[dtype])
        made = transpose_windows_kernel(shape, dtype, arch, group=2)
        arguments = made.arguments(source.reshape(-1), result.reshape(-1))
        trace = hostsim.trace(made.kernel, arguments, blocks=made.blocks, races=True, capacity=2**22)
        assert trace.fault == 0
        assert (result == source.T).all()
        if arch == "sm_90a" and shape[1] % 2:  # vectors and words take no more turns than their bytes do
            last = max(access.place for access in trace.accesses if access.size_bytes == 16)
            main = [access for access in trace.accesses if access.place <= last]
            assert all(access.turns(arch) == max(1, access.size_bytes // 4) for access in main)


@pytest.mark.nightly(one_of=5)
@needs_compiler
@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
@pytest.mark.parametrize("dtype", ["u8", "f16", "f32", "f64"])
@pytest.mark.parametrize("shape", [(128, 128), (124, 132)])
def test_the_executed_turns_are_the_plans(arch, dtype, shape):
    made = transpose_kernel(shape, dtype, arch, way="vectors")
    source, result = drawn(shape, dtype), np.zeros(shape[::-1], dtype=TYPES[dtype])
    trace = hostsim.trace(made.kernel, [source.reshape(-1), result.reshape(-1)], blocks=made.blocks, races=True)
    assert trace.fault == 0
    assert trace.turns() == made.blocks * made.swizzle.turns
    assert len(trace.accesses) == made.blocks * sum(each.count for each in made.served)
    assert made.swizzle.check().conflict_free


@needs_compiler
def test_the_turns_of_the_copy_engines_tiles_are_counted_from_the_text():
    shape = (64, 96)
    made = transpose_ring_kernel(shape, "f32")
    source, result = drawn(shape, "f32"), placed(shape[::-1], np.uint32)
    regions = [(array.ctypes.data, array.nbytes) for array in (source, result)]
    arguments = made.arguments(source.reshape(-1), result.reshape(-1), 1)
    trace = hostsim.trace(made.kernel, arguments, regions=regions)
    assert trace.fault == 0
    assert trace.turns() == made.blocks * sum(each.turns for each in made.served)
    assert all(each.turns == each.ideal for each in made.served)


@needs_compiler
def test_a_stage_that_is_loaded_before_its_store_has_read_it_is_seen():
    shape = (64, 128)
    made = copy_kernel(shape, "f32", tile=(8, 32), stages=2)
    early = made.kernel.text.replace("la_store_wait_read<1>();", "la_store_wait_read<2>();")
    assert early != made.kernel.text
    wrong = replace(made, kernel=replace(made.kernel, text=early))
    source = drawn(shape, "f32", 4)
    with pytest.raises(AssertionError, match="shared memory of a store in flight was overwritten"):
        moved(wrong, source, shape, blocks=1)


@pytest.mark.parametrize(("call", "words"), [
    (lambda: transpose_kernel((8, 8, 8), "f32"), "2 extents"),
    (lambda: transpose_kernel((0, 8), "f32"), "shape"),
    (lambda: transpose_kernel((8, 8), "f32", tile=(48, 64)), "tile"),
    (lambda: transpose_kernel((8, 8), "f32", tile=(4, 4)), "tile"),
    (lambda: transpose_kernel((8, 8), "f32", threads=48), "threads"),
    (lambda: transpose_kernel((8, 8), "f32", vector_bytes=32), "vector_bytes"),
    (lambda: transpose_kernel((8, 8), "f32", "sm_20"), "sm_20"),
    (lambda: transpose_ring_kernel((8, 8), "f32", "gfx942"), "target"),
    (lambda: transpose_ring_kernel((64, 64), "f32", tile=(16, 32)), "tile"),
    (lambda: transpose_kernel((127, 129), "f16", way="vectors"), "needs 4-byte aligned rows"),
    (lambda: transpose_kernel((127, 129), "u8", tile=(64, 64)), "tile"),
    (lambda: transpose_windows_kernel((9, 9), "f16", vectors=4), "vectors"),
    (lambda: transpose_windows_kernel((9, 9), "f16", rows=4096), "24 vectors"),
    (lambda: transpose_windows_kernel((9, 9), "f64"), "dtype"),
    (lambda: copy_kernel((8, 8), "f32", "gfx942", way="tma"), "way"),
    (lambda: copy_kernel((8, 8), "f32", stages=1), "stages"),
    (lambda: copy_kernel((64, 64), "f32", swizzle="16B"), "swizzle"),
    (lambda: copy_kernel("64", "f32"), "shape"),
])  # fmt: skip
def test_refusals_name_the_argument(call, words):
    with pytest.raises(MalformedError, match=words):
        call()


def test_a_tile_whose_narrow_accesses_have_no_published_banks_is_refused_with_a_larger_one():
    with pytest.raises(RepresentabilityError, match=r"LA912[\s\S]*tile=\(16, 16\)"):
        transpose_kernel((1, 1), "f32", "gfx90a", way="vectors", tile=(8, 8), threads=64)
    assert transpose_kernel((1, 1), "f32", "gfx90a", way="vectors", tile=(16, 16), threads=64).blocks == 1


def test_what_does_not_fit_is_refused_before_any_text():
    with pytest.raises(InfeasibleError, match="shared memory on gfx90a"):
        transpose_kernel((4096, 4096), "f64", "gfx90a", tile=(256, 128), threads=1024)
    with pytest.raises(InfeasibleError, match="sm_90a"):
        copy_kernel((4096, 4096), "f32", tile=(256, 64), stages=8)
    with pytest.raises(LayoutError, match="16"):
        transpose_ring_kernel((64, 65), "f32")
