"""Builders of kernels with drawn extents, types and options, run on the CPU against numpy: every element, no race.

What a builder refuses, with a code, is drawn again. What is written behind the result is an error.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from layoutalg.codegen import ArrayKernel, copy_kernel, gather_kernel, hostsim, staging_kernel, transpose_kernel
from layoutalg.codegen.kernels import transpose_ring_kernel, transpose_windows_kernel
from layoutalg.f2 import LinearLayout
from layoutalg.ground.errors import LayoutError
from layoutalg.ground.verdict import Unknown
from layoutalg.synth.swizzles import swizzle

pytestmark = pytest.mark.skipif(hostsim.compiler() is None, reason="no C++ compiler")
ARCHS = ("sm_80", "sm_90a", "sm_100a", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
SIZES = {"u8": 1, "bf16": 2, "f32": 4, "f64": 8}
DTYPES = st.sampled_from(list(SIZES))
GUARD = 0xA5
QUIET = [HealthCheck.filter_too_much, HealthCheck.too_slow]
FUZZ = settings(max_examples=8, deadline=None, suppress_health_check=QUIET)


def powers(low: int, high: int) -> st.SearchStrategy[int]:
    """Powers of two."""
    return st.integers(low.bit_length() - 1, high.bit_length() - 1).map(lambda bit: 1 << bit)


def extents(most: int) -> st.SearchStrategy[int]:
    """Extents, often beside a power of two."""
    near = st.tuples(powers(1, most), st.integers(-1, 1)).map(lambda pair: max(1, min(most, sum(pair))))
    return st.one_of(near, st.integers(1, most))


def placed(shape: tuple[int, ...], size: int, seed: int) -> tuple[Any, Any]:
    """Random elements at a multiple of 128 bytes, and the bytes of the same store behind them."""
    count = prod(shape) * size
    store = np.random.default_rng(seed).integers(0, 256, count + 384, dtype=np.uint8)
    first = -store.ctypes.data % 128
    store[first + count :] = GUARD
    return store[first : first + count].view(f"u{size}").reshape(shape), store[first + count :]


def ran(made: ArrayKernel, source: Any, index: Any = None, blocks: int | None = None) -> Any:
    """Run a kernel and return what it wrote."""
    argument = made.arrays[-1]
    result, behind = placed(argument.shape, argument.element_bytes, 1)
    count = min(blocks, made.blocks) if made.persistent and blocks else made.blocks
    arguments = made.arguments(source, result, count, index=index)
    regions = [(array.ctypes.data, array.nbytes) for array in (source, result)]
    found = hostsim.trace(made.kernel, arguments, blocks=count, races=True, capacity=2**22, regions=regions)
    assert hostsim.FAULTS[found.fault] == "none", found.why
    assert (behind == GUARD).all()
    if made.persistent:
        assert (arguments[-1] == 1).all()
    return result


def built(make: Any, *arguments: Any, **options: Any) -> ArrayKernel:
    """The kernel, or another draw where it is refused."""
    try:
        made: ArrayKernel = make(*arguments, **options)
    except LayoutError:
        assume(False)
        raise
    return made


@FUZZ
@given(st.data())
def test_copies_by_vectors(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(extents(40), min_size=1, max_size=3)))
    dtype, arch = data.draw(DTYPES), data.draw(st.sampled_from(ARCHS))
    threads, per_thread = data.draw(powers(32, 256)), data.draw(st.integers(1, 5))
    made = built(copy_kernel, shape, dtype, arch, way="vector", threads=threads, per_thread=per_thread)
    source, _ = placed(shape, SIZES[dtype], 2)
    assert np.array_equal(ran(made, source), source)


@FUZZ
@given(st.data())
def test_copies_by_the_copy_engine(data: st.DataObject) -> None:
    dtype = data.draw(DTYPES)
    chunk = 16 // SIZES[dtype]
    shape = (*data.draw(st.lists(extents(20), max_size=3)), chunk * data.draw(extents(24)))
    way = data.draw(st.sampled_from(["NONE", "32B", "64B", "128B"]))
    tile = (*(data.draw(st.integers(1, 12)) for _ in shape[1:]), chunk * data.draw(powers(1, 16)))
    stages, blocks = data.draw(st.integers(2, 6)), data.draw(st.integers(1, 9))
    made = built(copy_kernel, shape, dtype, way="tma", tile=tile, swizzle=way, stages=stages)
    source, _ = placed(shape, SIZES[dtype], 3)
    assert np.array_equal(ran(made, source, blocks=blocks), source)


@FUZZ
@given(st.data())
def test_transposes_by_vectors(data: st.DataObject) -> None:
    dtype, arch = data.draw(DTYPES), data.draw(st.sampled_from(ARCHS))
    word = max(1, 4 // SIZES[dtype])
    shape = (word * data.draw(extents(150 // word)), word * data.draw(extents(150 // word)))
    options: dict[str, Any] = {
        "threads": data.draw(powers(32, 512)), "vector_bytes": data.draw(powers(4, 16)),
        "group": data.draw(st.integers(1, 5)),
    }  # fmt: skip
    if data.draw(st.booleans()):
        options["tile"] = (data.draw(powers(8, 128)), data.draw(powers(8, 128)))
    made = built(transpose_kernel, shape, dtype, arch, way="vectors", **options)
    source, _ = placed(shape, SIZES[dtype], 4)
    assert np.array_equal(ran(made, source), source.T)


@FUZZ
@given(st.data())
def test_transposes_by_whole_sectors(data: st.DataObject) -> None:
    dtype, arch = data.draw(st.sampled_from(["u8", "bf16", "f32"])), data.draw(st.sampled_from(ARCHS))
    shape = data.draw(extents(300)), data.draw(extents(200))
    options: dict[str, Any] = {"group": data.draw(st.integers(1, 4)), "threads": data.draw(powers(64, 1024))}
    if data.draw(st.booleans()):
        options |= {"rows": data.draw(powers(32, 512)), "vectors": data.draw(powers(8, 32))}
    made = built(transpose_windows_kernel, shape, dtype, arch, **options)
    source, _ = placed(shape, SIZES[dtype], 5)
    assert np.array_equal(ran(made, source), source.T)


@FUZZ
@given(st.data())
def test_transposes_by_the_copy_engine(data: st.DataObject) -> None:
    dtype = data.draw(DTYPES)
    chunk = 16 // SIZES[dtype]
    shape = (chunk * data.draw(extents(160 // chunk)), chunk * data.draw(extents(160 // chunk)))
    options: dict[str, Any] = {
        "stages": data.draw(st.integers(1, 4)), "leaving": data.draw(st.integers(1, 3)),
        "down": data.draw(st.booleans()),
    }  # fmt: skip
    if data.draw(st.booleans()):
        options |= {"tile": (data.draw(powers(8 * chunk, 256)), data.draw(powers(8 * chunk, 256)))}
        options |= {"threads": data.draw(powers(32, 256))}
    made = built(transpose_ring_kernel, shape, dtype, **options)
    source, _ = placed(shape, SIZES[dtype], 6)
    assert np.array_equal(ran(made, source, blocks=data.draw(st.integers(1, 7))), source.T)


@FUZZ
@given(st.data())
def test_gathers(data: st.DataObject) -> None:
    dtype, arch = data.draw(DTYPES), data.draw(st.sampled_from(ARCHS))
    shape = tuple(data.draw(st.lists(extents(24), min_size=1, max_size=3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    if data.draw(st.booleans()):  # long rows
        axis, shape = len(shape) - 1, (*shape[:-1], data.draw(extents(700)))
    count, bits = data.draw(extents(90)), data.draw(st.sampled_from([32, 64]))
    way = data.draw(st.sampled_from(["warp", "shared", "direct", None]))
    threads = data.draw(powers(32, 256))
    made = built(
        gather_kernel, shape, axis, count, dtype, arch, index_dtype=f"s{bits}", way=way, threads=threads
    )  # fmt: skip
    source, _ = placed(shape, SIZES[dtype], 7)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    n = shape[axis]
    index = rng.integers(-n // 4 - 1, n + n // 4 + 1, made.arrays[1].shape)
    wild = rng.integers(0, 8, index.shape) == 0
    index = np.where(wild, rng.integers(-1 << bits - 1, (1 << bits - 1) - 1, index.shape), index)
    inside = (index >= 0) & (index < n)
    wanted = np.where(inside, np.take_along_axis(source, np.where(inside, index, 0), axis % len(shape)), 0)
    assert np.array_equal(ran(made, source, index.astype(f"i{bits // 8}")), wanted)


@FUZZ
@given(st.data())
def test_staging(data: st.DataObject) -> None:
    arch = data.draw(st.sampled_from(ARCHS))
    dtype = data.draw(DTYPES)
    lanes = 6 if arch in ("gfx90a", "gfx942", "gfx950") else 5
    warps = data.draw(st.integers(0, 1))
    down, along = data.draw(st.integers(3, 6)), data.draw(st.integers(3, 6))
    bits = down + along
    many = bits - lanes - warps
    assume(many >= 0)
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    units = [(1 << bit, 0) for bit in range(down)] + [(0, 1 << bit) for bit in range(along)]
    store = list(units) if data.draw(st.booleans()) else [units[down + along - 1 - bit] for bit in range(bits)]
    accesses = []
    for number in range(1 + data.draw(st.integers(1, 2))):
        order = [units[place] for place in rng.permutation(bits)] if number else store
        if number == 0 and data.draw(st.booleans()):
            order = units[down:] + units[:down]
        cut = {"register": order[:many], "lane": order[many : many + lanes], "warp": order[many + lanes :]}
        layout = LinearLayout.from_bases(cut, {"row": 1 << down, "col": 1 << along})
        accesses.append((layout, "store" if number == 0 else "load"))
    try:
        plan = swizzle(accesses, "sm_90a" if lanes == 5 else "gfx942", 8 * SIZES[dtype])
    except LayoutError:
        assume(False)
        raise
    assume(not isinstance(plan, Unknown))
    shape = data.draw(extents(150)), data.draw(extents(150))
    made = built(staging_kernel, plan, shape, arch)
    source, _ = placed(shape, SIZES[dtype], 8)
    result = ran(made, source)
    whole = np.zeros((-(-shape[0] // (1 << down)) << down, -(-shape[1] // (1 << along)) << along), source.dtype)
    whole[: shape[0], : shape[1]] = source
    tiles = whole.reshape(-1, 1 << down, whole.shape[1] >> along, 1 << along).swapaxes(1, 2)
    tiles = tiles.reshape(-1, 1 << down, 1 << along)
    for number, (layout, _) in enumerate(accesses[1:]):
        places = np.asarray(layout.table()).reshape(result.shape[2:])
        assert np.array_equal(result[:, number], tiles[:, places % (1 << down), places >> down])
