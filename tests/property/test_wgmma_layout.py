"""What descriptors, registers and metadata of wgmma denote, as layouts, against the tables of the same facts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.ground.errors import LayoutError, TargetRuleError
from layoutalg.piecewise import PiecewiseLayout
from layoutalg.targets.nvidia import wgmma

UNITS = st.integers(1, 400)
WIDTHS = st.sampled_from(["f16", "bf16", "tf32", "e4m3", "e5m2", "s8", "u8", "b1"])


@given(
    WIDTHS,
    st.sampled_from(wgmma.SWIZZLES),
    st.sampled_from(wgmma.INTEGER_N),
    st.booleans(),
    st.booleans(),
    st.tuples(UNITS, UNITS, UNITS, st.integers(0, 7)),
)
def test_a_descriptor_denotes_what_it_reads(dtype, swizzle, rows, transposed, sparse, fields):
    bits = wgmma.multiply(dtype).bits
    major = "MN" if transposed and bits == 16 else "K"
    start, leading, stride, offset = fields
    d = wgmma.MatrixDescriptor(16 * start, 16 * leading, 16 * stride, offset, swizzle)
    k = wgmma.instruction_k(bits, sparse and bits > 1)
    read = wgmma.operand_offsets(d, rows=rows, k=k, element_bits=bits, major=major)
    found = wgmma.layout(d, dtype, rows, k, major=major)
    elements = read * 8 // bits + (np.arange(k) % 8 if bits == 1 else 0)
    m, j = np.indices(read.shape)
    if isinstance(found, PiecewiseLayout):  # rows that end inside an MN-major span
        assert major == "MN"
        assert rows % (8 * wgmma.swizzle_rows(swizzle))
        assert found.in_dims == {"mn": rows, "k": k}
        assert np.array_equal(found.apply({"mn": m, "k": j})["offset"], elements)
        return
    assert np.array_equal(found.table().reshape(read.shape, order="F"), elements)
    assert found(int(m[-1, -1]), int(j[-1, -1])) == elements[-1, -1]
    if bits > 1:
        in_bytes = wgmma.layout(d, dtype, rows, k, major=major, unit="byte")
        assert np.array_equal(in_bytes.table().reshape(read.shape, order="F"), read)


@pytest.mark.parametrize("dtype", wgmma.OPERAND_BITS)
def test_registers_are_a_bijection_and_equal_their_table(dtype):
    bits = wgmma.OPERAND_BITS[dtype]
    table = wgmma.register_coordinates(bits)
    assert len(np.unique(table.reshape(-1, 2), axis=0)) == 64 * 256 // bits == table[..., 0].size
    linear = wgmma.register_layout(dtype)
    for thread in range(128):
        for value in range(table.shape[1]):
            place = linear(register=value, lane=thread % 32, warp=thread // 32)
            assert (place["row"], place["k"]) == tuple(table[thread, value])


@pytest.mark.parametrize("n", wgmma.FLOAT_N)
def test_the_accumulator_equals_its_table(n):
    table = wgmma.accumulator_coordinates(n)
    found = wgmma.accumulator_layout(n).table().reshape(n // 2, 128, order="F")
    assert np.array_equal(found.T, table[..., 0] * n + table[..., 1])


@pytest.mark.parametrize(("dtype", "selector"), [("f16", 0), ("bf16", 1), ("tf32", 0), ("tf32", 1), ("u8", 0)])
def test_metadata_tell_of_every_group_once(dtype, selector):
    bits = wgmma.OPERAND_BITS[dtype]
    table = wgmma.metadata_coordinates(bits, selector)
    groups = 16 if bits == 8 else 8
    heard = table[..., 0] >= 0
    places = np.where(heard, table[..., 0] * groups + table[..., 1], -1)
    assert sorted(places[heard]) == list(range(64 * groups))


def test_a_code_says_where_the_stored_elements_of_a_group_belong():
    """PTX: 0b0100 and 0b1110 for 32 bits; for others two increasing indices of two bits."""
    assert set(wgmma.SPARSE_CODES[32]) == {0b0100, 0b1110}
    assert sorted(wgmma.SPARSE_CODES[16]) == [0b0100, 0b1000, 0b1001, 0b1100, 0b1101, 0b1110]


def test_what_has_no_meaning_is_refused():
    d = wgmma.MatrixDescriptor(0, 16, 1024, 0, "128B")
    with pytest.raises(TargetRuleError) as caught:
        wgmma.layout(d, "e4m3", major="MN")
    assert caught.value.rule == "WGMMA_MAJOR"
    for given_, code in (
        ((d, "f64"), "LA810"),
        ((d, "f16", 12), "LA357"),
        ((d, "f16", 64, 17), "LA357"),
        ((wgmma.MatrixDescriptor(2**18 - 16, 16, 1024), "f16"), "LA357"),
        (("d", "f16"), "LA350"),
    ):
        with pytest.raises(LayoutError) as refused:
            wgmma.layout(*given_)
        assert refused.value.diagnostic.code == code
    with pytest.raises(LayoutError, match="LA814"):
        wgmma.layout(d, "b1", unit="byte")
    with pytest.raises(LayoutError, match="LA813"):
        wgmma.metadata_coordinates(8, 1)
    with pytest.raises(LayoutError, match="LA813"):
        wgmma.metadata_coordinates(1)
