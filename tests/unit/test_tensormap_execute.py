"""Tile copies: single behaviours, and every refusal by name."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from layoutalg.ground.errors import MalformedError, TargetRuleError
from layoutalg.targets.nvidia import tensormap
from layoutalg.targets.nvidia.tensormap import TensorMap, tile_load, tile_store

Bytes = npt.NDArray[np.uint8]


def poison(size: int) -> Bytes:
    return np.full(size, 0xEE, np.uint8)


def ramp(size: int) -> Bytes:
    return np.arange(size, dtype=np.int64).astype(np.uint8)


def test_narrow_rows_keep_the_pitch_of_the_span() -> None:
    tm = TensorMap("u8", (16, 16), (16,), (16, 16), swizzle="128B")
    memory, image = ramp(256), poison(2048)
    assert tile_load(tm, (0, 0), memory, image) == 256
    for row in range(16):
        at = row * 128 + (row % 8) * 16
        assert np.array_equal(image[at : at + 16], memory[row * 16 : row * 16 + 16])
    assert (image != 0xEE).sum() == 255  # the value 0xEE itself occurs once in the ramp


def test_nothing_in_bounds_still_fills_everything() -> None:
    tm = TensorMap("f32", (16, 4), (64,), (8, 4), oob_fill="NAN")
    image = poison(256)
    assert tile_load(tm, (-8, 2), np.zeros(0, np.uint8), image) == 128
    assert (image[:128].view("<u2") == 0x7FF7).all()
    assert (image[128:] == 0xEE).all()
    assert tile_load(tm, (2**31 - 4, -(2**31)), np.zeros(0, np.uint8), image) == 128


def test_inner_element_stride_is_ignored_and_outer_steps() -> None:
    tm = TensorMap("u8", (16, 16), (16,), (16, 5), (8, 2))
    memory, image = ramp(256), poison(64)
    assert tile_load(tm, (0, 1), memory, image) == 48
    assert np.array_equal(image[:48].reshape(3, 16)[:, 0], [16, 48, 80])


def test_coordinates_up_to_the_last_signed_one() -> None:
    tm = TensorMap("u8", (16, 2**31), (0,), (16, 2))
    memory, image = ramp(16), poison(32)
    assert tile_load(tm, (0, 2**31 - 2), memory, image) == 32
    assert np.array_equal(image, np.tile(memory, 2))
    assert tile_load(tm, (0, 2**31 - 1), memory, image) == 32
    assert np.array_equal(image, [*memory, *[0] * 16])


def test_offsets_below_the_period_use_absolute_bits() -> None:
    tm = TensorMap("u8", (128, 8), (128,), (128, 8), swizzle="128B")
    memory, image = ramp(1024), poison(2048)
    tile_load(tm, (0, 0), memory, image, 384)
    assert np.array_equal(image[tensormap.apply_swizzle("128B", np.arange(384, 384 + 1024))], memory)


def test_tf32_rounds_to_nearest_even() -> None:
    words = [0x40000FFF, 0x40001000, 0x40003000, 0x40001001, 0xC0001001, 0xFFD30310, 0x8003EAF4, 0x3FFFF000]
    wanted = [0x40000000, 0x40000000, 0x40004000, 0x40002000, 0xC0002000, 0x7FFFE000, 0x8003E000, 0x40000000]
    memory = np.array(words, "<u4").view(np.uint8)
    image = poison(64)
    tile_load(TensorMap("tf32", (8,), (), (12,)), (0,), memory, image)
    assert image[:48].view("<u4").tolist() == [*wanted, 0, 0, 0, 0]
    tile_load(TensorMap("tf32", (8,), (), (12,), oob_fill="NAN"), (0,), memory, image)
    assert image[32:48].view("<u4").tolist() == [0x7FF77FF7] * 4


@pytest.mark.parametrize(
    ("dtype", "word", "arrives"),
    [
        ("tf32", 0x7FC00000, 0x7FFFE000),
        ("tf32", 0xFFC00001, 0x7FFFE000),
        ("tf32", 0x7F800000, 0x7F800000),
        ("tf32", 0xFF800000, 0xFF800000),
        ("tf32", 0x7F7FF000, 0x7F800000),
        ("tf32", 0x7F7FEFFF, 0x7F7FE000),
        ("tf32", 0x3F801000, 0x3F800000),
        ("tf32", 0x3F803000, 0x3F804000),
        ("tf32", 0x00001001, 0x00002000),
        ("tf32_ftz", 0x807FFFFF, 0x80800000),
        ("tf32_ftz", 0x7FC00000, 0x7FFFE000),
        ("f32_ftz", 0x00000001, 0x00000001),
        ("f32_ftz", 0xFF800001, 0xFF800001),
        ("f32", 0x7FC00001, 0x7FC00001),
    ],
)
def test_values_that_change_on_the_way(dtype: str, word: int, arrives: int) -> None:
    memory = np.full(4, word, "<u4").view(np.uint8)
    image = poison(16)
    assert tile_load(TensorMap(dtype, (4,), (), (4,)), (0,), memory, image) == 16
    assert (image.view("<u4") == arrives).all()


PLAIN: dict[str, Any] = {"dtype": "u16", "dims": (64, 8), "strides_bytes": (128,), "box": (64, 8), "swizzle": "128B"}


@pytest.mark.parametrize(
    ("changes", "arguments", "code", "rule"),
    [
        ({"box": (63, 8)}, {}, "LA320", "BOX_INNER_16B"),
        ({}, {"coords": (4, 0)}, "LA321", "BOX_ADDR"),
        ({}, {"memory": ramp(1023)}, "LA322", "MEMORY_RANGE"),
        ({"base_address": 16}, {}, "LA322", "MEMORY_RANGE"),
        ({"strides_bytes": ((1 << 40) - 16,)}, {}, "LA322", "MEMORY_RANGE"),
        ({}, {"image": poison(1023)}, "LA323", "SMEM_RANGE"),
        ({}, {"smem_offset_bytes": 1152}, "LA323", "SMEM_RANGE"),
        ({}, {"smem_offset_bytes": 64}, "LA324", "SMEM_ALIGN"),
        ({}, {"smem_offset_bytes": -128}, "LA324", "SMEM_ALIGN"),
        ({"dims": (64, 2**31 + 1), "strides_bytes": (0,)}, {}, "LA331", "DIM_EXECUTE"),
        ({}, {"coords": (0,)}, "LA326", None),
        ({}, {"coords": (0, 0, 0)}, "LA326", None),
        ({}, {"coords": (0, 2**31)}, "LA326", None),
        ({}, {"coords": (0, -(2**31) - 1)}, "LA326", None),
        ({}, {"coords": (0, 0.0)}, "LA326", None),
        ({}, {"coords": 0}, "LA326", None),
        ({}, {"memory": bytes(1024)}, "LA327", None),
        ({}, {"memory": np.zeros(1024, np.int8)}, "LA327", None),
        ({}, {"memory": np.zeros((2, 1024), np.uint8)}, "LA327", None),
        ({}, {"memory": np.zeros(4096, np.uint8)[::2]}, "LA327", None),
        ({}, {"image": np.zeros(4096, np.uint8)[::2]}, "LA327", None),
        ({}, {"smem_offset_bytes": 0.0}, "LA327", None),
    ],
)
@pytest.mark.parametrize("copy", [tile_load, tile_store])
def test_refusals(copy: Any, changes: dict[str, Any], arguments: dict[str, Any], code: str, rule: str | None) -> None:
    tm = TensorMap(**{**PLAIN, **changes})
    call = {"coords": (0,) * tm.rank, "memory": ramp(1024), "image": poison(2048), "smem_offset_bytes": 0, **arguments}
    before = [np.array(call[name], copy=True) for name in ("memory", "image") if isinstance(call[name], np.ndarray)]
    with pytest.raises((TargetRuleError, MalformedError)) as caught:
        copy(tm, **call)
    assert caught.value.diagnostic.code == code
    if rule is not None:
        assert isinstance(caught.value, TargetRuleError)
        assert caught.value.rule == rule
        assert rule in tensormap.RULES
    after = [call[name] for name in ("memory", "image") if isinstance(call[name], np.ndarray)]
    assert all(np.array_equal(x, y) for x, y in zip(before, after, strict=True))


def test_read_only_buffers() -> None:
    tm, memory, image = TensorMap(**PLAIN), ramp(1024), poison(1024)
    for buffer in (memory, image):
        buffer.flags.writeable = False
    with pytest.raises(MalformedError, match="image is read-only"):
        tile_load(tm, (0, 0), memory, image)
    with pytest.raises(MalformedError, match="memory is read-only"):
        tile_store(tm, (0, 0), memory, image)
    assert tile_load(tm, (0, 0), memory, poison(1024)) == 1024
    assert tile_store(tm, (0, 0), ramp(1024), image) == 1024


def test_broadcast_loads() -> None:
    tm = TensorMap("u8", (16, 4), (0,), (16, 4))
    memory, image = ramp(16), poison(64)
    tile_load(tm, (0, 0), memory, image)
    assert np.array_equal(image.reshape(4, 16), np.tile(memory, (4, 1)))


def test_stores_that_depend_on_an_order_are_refused() -> None:
    tm = TensorMap("u8", (16, 4), (0,), (16, 4))
    memory = np.zeros(16, np.uint8)
    with pytest.raises(TargetRuleError, match="LA329") as caught:
        tile_store(tm, (0, 0), memory, ramp(64))
    assert caught.value.rule == "STORE_OVERLAP"
    assert not memory.any()
    assert tile_store(tm, (0, 0), memory, np.tile(ramp(16), 4)) == 64
    assert np.array_equal(memory, ramp(16))


def test_stores_at_negative_coordinates_are_refused() -> None:
    tm = TensorMap("u8", (16, 4), (16,), (16, 4))
    memory, image = np.zeros(64, np.uint8), ramp(64)
    for coords in ((0, -1), (-16, 0)):
        with pytest.raises(TargetRuleError, match="LA328") as caught:
            tile_store(tm, coords, memory, image)
        assert caught.value.rule == "STORE"
    assert tile_store(tm, (0, 3), memory, image) == 64
    assert np.array_equal(memory, [*[0] * 48, *range(16)])


def test_stores_write_whole_chunks() -> None:
    tm = TensorMap("u8", (20, 2), (48,), (48, 2))
    memory, image = np.zeros(80, np.uint8), ramp(96) + np.uint8(1)
    assert tile_store(tm, (0, 0), memory, image) == 96
    assert np.array_equal(memory, [*range(1, 33), *[0] * 16, *range(49, 81)])
    with pytest.raises(TargetRuleError, match="LA322"):
        tile_store(tm, (0, 0), memory[:79], image)
    short = poison(96)
    assert tile_load(tm, (0, 0), memory[:68], short) == 96
    assert np.array_equal(short[:48], [*range(1, 21), *[0] * 28])
    before = memory.copy()
    assert tile_store(tm, (32, 0), memory, image) == 96
    assert np.array_equal(memory, before)


@pytest.mark.parametrize("dtype", ["tf32", "tf32_ftz", "f32_ftz"])
def test_stores_keep_the_bits_of_finite_values(dtype: str) -> None:
    tm = TensorMap(dtype, (4,), (), (4,))
    memory = np.zeros(16, np.uint8)
    words = np.array([0x40000001, 0x00000001, 0x807FFFFF, 0x7F7FFFFF], "<u4")
    tile_store(tm, (0,), memory, words.view(np.uint8))
    assert np.array_equal(memory.view("<u4"), words)
    with pytest.raises(TargetRuleError, match="LA325"):
        tile_store(tm, (0,), memory, np.full(4, 0x7F800000, "<u4").view(np.uint8))
    assert np.array_equal(memory.view("<u4"), words)


def test_fill_and_conversion() -> None:
    assert tensormap.fill_bytes("f64", "NAN").hex() == "f77f" * 4
    assert tensormap.fill_bytes("u64", "ZERO") == bytes(8)
    with pytest.raises(MalformedError, match="LA301"):
        tensormap.fill_bytes("u8", "NAN")
    with pytest.raises(MalformedError, match="LA301"):
        tensormap.load_convert("u4_align8", np.zeros(8, np.uint8))
    with pytest.raises(MalformedError, match="LA327"):
        tensormap.load_convert("tf32", np.zeros(6, np.uint8))
    with pytest.raises(TargetRuleError, match="LA328"):
        tensormap.tile_store(
            TensorMap("u8", (16,) * 3, (32,) * 2, (16, 1, 1), interleave="32B"), (0, -1, 0), ramp(1024), poison(2048)
        )
    with pytest.raises(MalformedError, match="LA302"):
        tensormap.transaction_bytes(TensorMap("u8", (16,) * 2, (16,), (16, 1), interleave="32B"))
