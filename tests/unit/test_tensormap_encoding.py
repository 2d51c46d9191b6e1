"""The bytes of a map: the field table, single fields, and the words of every refusal to decode."""

import struct

import numpy as np
import pytest

from layoutalg.ground.errors import MalformedError
from layoutalg.targets.nvidia.tensormap import TensorMap, batch, decode, encode

TM = TensorMap(
    "bf16",
    (512, 1024),
    (1024,),
    (64, 64),
    swizzle="128B",
    l2_promotion="128B",
    base_address=0x7F0012345600,
)


def patched(raw: bytes, word: int, low: int, width: int, value: int) -> bytes:
    words = list(struct.unpack("<32I", raw))
    words[word] = words[word] & ~(((1 << width) - 1) << low) | value << low
    return struct.pack("<32I", *words)


def test_known_bytes() -> None:
    words = struct.unpack("<16Q", encode(TM))
    assert words[0] == TM.base_address
    low = 1 << 4 | 10 << 7 | 3 << 13 | 2 << 17
    assert words[1] == low | 64 << 32
    assert words[2:4] == (0, 0)
    assert words[4:6] == (511 | 1023 << 32, 0)
    assert words[6] == (63 << 24) << 32
    assert words[7] == 63
    assert words[8:] == (8192, 1024, 0, 0, 0, 0, 0, 0)
    assert decode(bytearray(encode(TM))) == decode(memoryview(encode(TM)), "sm_90") == TM


@pytest.mark.parametrize(
    ("word", "low", "width", "value", "field", "bits"),
    [
        (0, 0, 4, 1, "base_address[31:0]", "bits 31:0 of the map"),
        (1, 31, 1, 1, "base_address[63:32]", "bits 63:32 of the map"),
        (1, 26, 1, 1, "base_address[63:32]", "bits 63:32 of the map"),
        (2, 0, 1, 1, "kind", "bits 64:64 of the map"),
        (2, 1, 3, 1, "version", "word 2 bits 3:1 (bits 67:65 of the map) hold 1"),
        (2, 4, 3, 5, "rank", "word 2 bits 6:4 (bits 70:68 of the map) hold 5"),
        (2, 7, 4, 11, "dtype", "word 2 bits 10:7 (bits 74:71 of the map) hold 11"),
        (2, 16, 1, 1, "dtype.tf32", "bits 80:80 of the map) hold 1"),
        (2, 11, 2, 3, "interleave", "hold 3"),
        (2, 19, 2, 1, "swizzle_atom", "hold 1"),
        (2, 21, 1, 1, "allocation_class", "bits 85:85"),
        (2, 22, 1, 1, "swizzle_96B", "bits 86:86"),
        (2, 31, 1, 1, "reserved", "word 2 bits 31:23"),
        (4, 0, 32, 64, "strides_bytes[1][35:4]", "mode 2 is unused at rank 2 and must be 0"),
        (7, 4, 4, 1, "strides_bytes[1][39:36]", "mode 2 is unused"),
        (7, 16, 1, 1, "reserved", "word 7 bits 31:16"),
        (12, 0, 32, 1, "dims[4]", "mode 4 is unused at rank 2"),
        (13, 6, 3, 7, "element_strides[2]", "hold 7"),
        (13, 15, 1, 1, "reserved", "word 13 bits 23:15"),
        (13, 24, 8, 62, "box[0]", "hold 62 (0x3e); BOX_INNER_16B: box[0] = 63"),
        (13, 24, 8, 127, "box[0]", "SWIZZLE_INNER"),
        (14, 8, 8, 1, "box[2]", "mode 2 is unused"),
        (15, 9, 1, 1, "reserved", "word 15 bits 31:0"),
        (2, 11, 2, 1, "rank", "RANK: dims has 2 entries, allowed 3..5 with interleave 16B"),
        (31, 31, 1, 1, "reserved", "word 31"),
        (16, 0, 32, 8191, "box_bytes[31:0]", "hold 8191 (0x1fff); the other fields imply 8192"),
        (17, 0, 1, 1, "box_bytes[63:32]", "word 17 bits 31:0 (bits 575:544 of the map) hold 1"),
        (18, 0, 32, 16, "smem_alignment_bytes[31:0]", "hold 16 (0x10); the other fields imply 1024"),
        (19, 5, 1, 1, "smem_alignment_bytes[63:32]", "hold 32"),
        (2, 13, 2, 0, "smem_alignment_bytes[31:0]", "hold 1024 (0x400); the other fields imply 16"),
    ],
)
def test_decode_names_the_illegal_field(word: int, low: int, width: int, value: int, field: str, bits: str) -> None:
    with pytest.raises(MalformedError) as caught:
        decode(patched(encode(TM), word, low, width, value))
    assert caught.value.diagnostic.code in ("LA309", "LA310")
    assert caught.value.diagnostic.what == f"field {field} of the tensor map is illegal"
    assert bits in caught.value.diagnostic.because


def test_nan_fill_of_integers_is_refused() -> None:
    raw = encode(TensorMap("u16", (64,), (), (16,)))
    with pytest.raises(MalformedError, match="field oob_fill"):
        decode(patched(raw, 2, 15, 1, 1))


def test_wrong_type() -> None:
    for raw in ("00" * 128, None, [0] * 128, 128):
        with pytest.raises(MalformedError, match="LA308"):
            decode(raw)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA300"):
        encode(bytes(128))  # type: ignore[arg-type]


def test_rows_hold_what_maps_hold() -> None:
    row = batch.to_row(TM)
    assert len(row) == len(batch.COLUMNS) == 26
    assert batch.from_row(row) == TM == batch.from_row(np.array(row))
    with pytest.raises(MalformedError, match="at most 5 modes"):
        batch.to_row(TensorMap("u8", (16,) * 6, (16,) * 5, (16,) * 6))


@pytest.mark.parametrize(("column", "value"), [(0, 16), (1, 6), (1, -1), (22, 3), (23, 7), (24, 4), (25, 2)])
def test_rows_without_a_name_are_refused(column: int, value: int) -> None:
    row = batch.to_row(TM)
    row[column] = value
    with pytest.raises(MalformedError, match="LA311"):
        batch.from_row(row)
    assert not batch.verdicts([row])[0]
    assert not batch.encode_many([row]).any()


@pytest.mark.parametrize(
    "params",
    [
        np.zeros((3, 25), np.int64),
        np.zeros(26, np.int64),
        np.zeros((3, 26)),
        np.zeros((3, 26), np.bool_),
        np.full((1, 26), 2**63, np.uint64),
        [[1, 2], [3]],
        "params",
        [["a"] * 26],
    ],
)
def test_bad_arrays_are_refused(params: object) -> None:
    for call in (batch.verdicts, batch.encode_many):
        with pytest.raises(MalformedError, match="LA311"):
            call(params)  # type: ignore[arg-type]


def test_no_rows_and_extreme_rows() -> None:
    empty = np.zeros((0, 26), np.int64)
    assert batch.verdicts(empty).shape == (0,)
    assert batch.encode_many(empty).shape == (0, 16)
    for value in (np.iinfo(np.int64).min, np.iinfo(np.int64).max):
        assert not batch.verdicts(np.full((2, 26), value)).any()
