"""Tile copies against a reference that moves one element at a time."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground.errors import LayoutError
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import TensorMap, tile_load, tile_store

Bytes = npt.NDArray[np.uint8]
SIZES = {"u8": 1, "u16": 2, "u32": 4, "s32": 4, "u64": 8, "s64": 8, "f16": 2, "f32": 4, "f64": 8, "bf16": 2}
SIZES |= {"f32_ftz": 4, "tf32": 4, "tf32_ftz": 4}
SPANS = {"NONE": 0, "32B": 32, "64B": 64, "128B": 128}
FLOATS = ("f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz")


@dataclass(frozen=True)
class Case:
    tm: TensorMap
    coords: tuple[int, ...]
    offset: int


@st.composite
def cases(draw: st.DrawFn, dtypes: tuple[str, ...] = tuple(SIZES)) -> Case:
    dtype = draw(st.sampled_from(dtypes))
    size = SIZES[dtype]
    rank = draw(st.integers(1, 5))
    swizzle = draw(st.sampled_from(tuple(SPANS)))
    inner = draw(st.integers(1, max(SPANS[swizzle] // 16, 1) if swizzle != "NONE" else 3)) * 16
    row = st.integers(1, 2 * inner // size) | st.integers(1, inner // 8).map(lambda chunks: chunks * 16 // size)
    dims = [draw(row), *(draw(st.integers(1, 5)) for _ in range(rank - 1))]
    box = [inner // size, *(draw(st.integers(1, 4)) for _ in range(rank - 1))]
    steps = [draw(st.integers(1, 8)), *(draw(st.sampled_from((1, 1, 2, 3))) for _ in range(rank - 1))]
    strides = [draw(st.integers(0, 12)) * 16 for _ in range(rank - 1)]
    coords = [draw(st.integers(1 - inner // 16, (dims[0] * size - 1) // 16)) * 16 // size]
    coords += [draw(st.integers(-min(n - 1, 2), extent - 1)) for n, extent in zip(box[1:], dims[1:], strict=True)]
    if draw(st.integers(0, 9)) == 0:  # now and then a tile that lies outside altogether
        coords[-1] += draw(st.sampled_from((-32, 32)))
    tm = TensorMap(
        dtype,
        tuple(dims),
        tuple(strides),
        tuple(box),
        tuple(steps),
        swizzle=swizzle,
        oob_fill=draw(st.sampled_from(("ZERO", "NAN"))) if dtype in FLOATS else "ZERO",
        base_address=draw(st.integers(0, 3)) * 16,
    )
    return Case(tm, tuple(coords), draw(st.sampled_from((0, 0, 128, 1024, 1408))))


def global_memory() -> Bytes:
    words = 0x40000000 + np.arange(2048, dtype=np.int64) * 0x01357 % (1 << 21)
    return words.astype("<u4").view(np.uint8)


def placed(case: Case, chunks: bool = False) -> Any:
    """Yield for each element: global byte address or None, and the shared byte address of its first byte.

    With ``chunks``, elements of a 16-byte chunk that begins inside the tensor count as inside.
    """
    tm, size = case.tm, SIZES[case.tm.dtype]
    row_bytes = tm.box[0] * size
    pitch = SPANS[tm.swizzle] or row_bytes
    counts = [len(range(0, n, 1 if i == 0 else tm.element_strides[i])) for i, n in enumerate(tm.box)]
    rows = itertools.product(*(range(n) for n in reversed(counts[1:])))
    for row, outer in enumerate(rows):
        for column in range(counts[0]):
            x = [case.coords[0] + column]
            for mode, j in enumerate(reversed(outer), start=1):
                x.append(case.coords[mode] + j * tm.element_strides[mode])
            begin = [x[0] * size // 16 * 16 // size if chunks else x[0], *x[1:]]
            inside = all(0 <= value < extent for value, extent in zip(begin, tm.dims, strict=True))
            source = tm.base_address + x[0] * size
            source += sum(value * stride for value, stride in zip(x[1:], tm.strides_bytes, strict=True))
            address = case.offset + row * pitch + column * size
            chunk = {"NONE": 0, "32B": 1, "64B": 3, "128B": 7}[tm.swizzle] & (address >> 7)
            yield (source if inside else None), address ^ (chunk << 4)


def refusal(call: Callable[[], int]) -> str:
    """Return the code of the error that the call raises, or nothing."""
    try:
        call()
    except LayoutError as error:
        return error.diagnostic.code
    return ""


def arrived(dtype: str, value: bytes) -> bytes:
    if not dtype.startswith("tf32"):
        return value
    word = int.from_bytes(value, "little")
    below, kept = word & 0x1FFF, word & ~0x1FFF
    if below > 0x1000 or (below == 0x1000 and kept & 0x2000):
        kept += 0x2000
    return kept.to_bytes(4, "little")


def reference_load(case: Case, memory: Bytes, image: Bytes) -> int:
    size, total = SIZES[case.tm.dtype], 0
    for source, address in placed(case):
        if source is None:
            value = bytes(size) if case.tm.oob_fill == "ZERO" else b"\xf7\x7f" * (size // 2)
        else:
            value = arrived(case.tm.dtype, memory[source : source + size].tobytes())
        image[address : address + size] = np.frombuffer(value, np.uint8)
        total += size
    return total


@settings(max_examples=300, deadline=None)
@given(cases())
def test_load_against_one_element_at_a_time(case: Case) -> None:
    memory = global_memory()
    size = case.offset + tensormap.footprint_bytes(case.tm)
    mine, wanted = np.full(size, 0xEE, np.uint8), np.full(size, 0xEE, np.uint8)
    before = memory.copy()
    returned = tile_load(case.tm, case.coords, memory, mine, case.offset)
    assert returned == reference_load(case, memory, wanted) == tensormap.transaction_bytes(case.tm)
    assert np.array_equal(mine, wanted)
    assert np.array_equal(memory, before)


@settings(max_examples=300, deadline=None)
@given(cases(), st.booleans())
def test_store_against_one_element_at_a_time(case: Case, clip: bool) -> None:
    if clip:
        case = replace(case, coords=tuple(max(start, 0) for start in case.coords))
    size = SIZES[case.tm.dtype]
    image = np.arange(case.offset + tensormap.footprint_bytes(case.tm), dtype=np.int64)
    image = (0x3F000000 + image[: image.size // 4] * 0x10003).astype("<u4").view(np.uint8)
    mine, wanted = np.zeros(8192, np.uint8), np.zeros(8192, np.uint8)
    writes: dict[int, set[int]] = {}
    for target, address in placed(case, chunks=True):
        if target is not None:
            wanted[target : target + size] = image[address : address + size]
            for byte in range(size):
                writes.setdefault(target + byte, set()).add(int(image[address + byte]))
    code = refusal(lambda: tile_store(case.tm, case.coords, mine, image, case.offset))
    if code:
        assert not mine.any()
        if code == "LA328":
            assert min(case.coords) < 0
        else:
            assert code == "LA329"
            assert any(len(values) > 1 for values in writes.values())
        return
    assert min(case.coords) >= 0
    assert all(len(values) == 1 for values in writes.values())
    assert np.array_equal(mine, wanted)


@settings(max_examples=200, deadline=None)
@given(cases(), st.integers(0, 400), st.integers(0, 4000))
def test_short_buffers_are_refused_exactly(case: Case, memory_size: int, image_size: int) -> None:
    size = SIZES[case.tm.dtype]
    memory = global_memory()[:memory_size].copy()
    image = np.full(image_size, 0xEE, np.uint8)
    ends = [source + size for source, _ in placed(case) if source is not None]
    fits_memory = max(ends, default=0) <= memory_size
    fits_image = case.offset + tensormap.footprint_bytes(case.tm) <= image_size
    code = refusal(lambda: tile_load(case.tm, case.coords, memory, image, case.offset))
    assert code == ("LA322" if not fits_memory else "" if fits_image else "LA323")
    assert not code or (image == 0xEE).all()


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(tensormap.SWIZZLES), st.lists(st.integers(0, 2**62), min_size=1, max_size=20))
def test_swizzles_xor_the_listed_bits(mode: str, addresses: list[int]) -> None:
    for address, image in zip(addresses, tensormap.apply_swizzle(mode, addresses).tolist(), strict=True):
        wanted = address
        for target, source in tensormap.swizzle_xor(mode):
            wanted ^= (address >> source & 1) << target
        assert image == wanted
