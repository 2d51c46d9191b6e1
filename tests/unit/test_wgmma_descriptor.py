"""Matrix descriptors: fields, bits and every refusal."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from layoutalg.ground.errors import MalformedError
from layoutalg.targets.nvidia.wgmma import MatrixDescriptor, decode

# (CUTLASS name, units of LBO and SBO for an f16 128 x 64 tile, swizzle, word without the address)
CUTLASS = [
    ("K_SW128", 1, 64, "128B", 0x4000_0040_0001_0000),
    ("K_SW64", 1, 32, "64B", 0x8000_0020_0001_0000),
    ("K_SW32", 1, 16, "32B", 0xC000_0010_0001_0000),
    ("K_INTER", 128, 8, "NONE", 0x0000_0008_0080_0000),
    ("MN_SW128", 64, 128, "128B", 0x4000_0080_0040_0000),
]


@pytest.mark.parametrize(("name", "leading", "stride", "swizzle", "word"), CUTLASS)
def test_words_by_hand(name, leading, stride, swizzle, word):
    assert MatrixDescriptor(0, 16 * leading, 16 * stride, 0, swizzle).encode() == word


@pytest.mark.parametrize("field", ["start_address_bytes", "leading_bytes", "stride_bytes"])
@pytest.mark.parametrize(
    ("value", "code", "words"),
    [
        (8, "LA351", "is 8 modulo 16"),
        (-16, "LA352", "outside 0..262128"),
        (1 << 18, "LA352", "= 262144"),
        (True, "LA350", "must be an integer, not True"),
        (16.0, "LA350", "must be an integer, not 16.0"),
        ("16", "LA350", "not '16'"),
        (None, "LA350", "not None"),
        (np.array([16, 32]), "LA350", "must be an integer"),
    ],
)
def test_unrepresentable_values_are_named(field, value, code, words):
    values = {"start_address_bytes": 0, "leading_bytes": 16, "stride_bytes": 16, field: value}
    with pytest.raises(MalformedError) as caught:
        MatrixDescriptor(**values)
    assert caught.value.diagnostic.code == code
    assert field in caught.value.diagnostic.what
    assert words in caught.value.diagnostic.because
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("value", [-1, 8])
def test_base_offset_range(value):
    with pytest.raises(MalformedError, match="LA353 base_offset does not fit its 3 bits"):
        MatrixDescriptor(0, 16, 16, value)


@pytest.mark.parametrize("value", ["128", "128b", "128B_ATOM_32B", 1, None, ["128B"]])
def test_unknown_swizzle(value):
    with pytest.raises(MalformedError, match="LA354"):
        MatrixDescriptor(0, 16, 16, 0, value)


def test_every_bit_is_a_field_or_reserved():
    reserved = {
        bit: f"{high}:{low}" for low, high in ((14, 15), (30, 31), (46, 48), (52, 61)) for bit in range(low, high + 1)
    }
    for bit in range(64):
        if bit in reserved:
            with pytest.raises(MalformedError, match=rf"LA356 reserved bits \[{reserved[bit]}\] are set"):
                decode(1 << bit)
        else:
            assert decode(1 << bit).encode() == 1 << bit


@pytest.mark.parametrize(("value", "code"), [(-1, "LA355"), (1 << 64, "LA355"), (1.0, "LA350"), (True, "LA350")])
def test_decode_refuses_what_is_no_word(value, code):
    with pytest.raises(MalformedError, match=code):
        decode(value)


def test_value_semantics():
    d = MatrixDescriptor(np.int64(32), np.uint32(16), 1024, np.uint8(3), "64B")
    assert type(d.start_address_bytes) is int
    assert type(d.base_offset) is int
    assert eval(repr(d)) == d
    assert pickle.loads(pickle.dumps(d)) == d
    assert len({d, MatrixDescriptor(32, 16, 1024, 3, "64B")}) == 1
    assert decode(np.uint64(d.encode())) == d
    with pytest.raises(FrozenInstanceError):
        d.base_offset = 0


def test_moved():
    d = MatrixDescriptor(32, 16, 1024, 3, "64B")
    assert d.moved(-32) == MatrixDescriptor(0, 16, 1024, 3, "64B")
    with pytest.raises(MalformedError, match="LA352"):
        d.moved(-48)
    with pytest.raises(MalformedError, match="LA351"):
        d.moved(2)
