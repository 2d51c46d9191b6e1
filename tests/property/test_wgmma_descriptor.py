"""Descriptor bits and read addresses against independent formulas, one element and one bit at a time."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from layoutalg.ground.errors import MalformedError, TargetRuleError
from layoutalg.targets.nvidia import wgmma

units = st.integers(0, (1 << 14) - 1)
descriptors = st.builds(
    lambda start, leading, stride, base_offset, swizzle: wgmma.MatrixDescriptor(
        16 * start, 16 * leading, 16 * stride, base_offset, swizzle
    ),
    units,
    units,
    units,
    st.integers(0, 7),
    st.sampled_from(wgmma.SWIZZLES),
)


@given(descriptors)
def test_encoding_by_bit_strings(d):
    bits = "".join(
        [
            {"NONE": "00", "128B": "01", "64B": "10", "32B": "11"}[d.swizzle],
            "0" * 10,
            format(d.base_offset, "03b"),
            "000",
            format(d.stride_bytes >> 4, "014b"),
            "00",
            format(d.leading_bytes >> 4, "014b"),
            "00",
            format(d.start_address_bytes >> 4, "014b"),
        ]
    )
    assert len(bits) == 64
    assert d.encode() == int(bits, 2)
    assert wgmma.decode(d.encode()) == d


@given(st.integers(0, (1 << 64) - 1))
def test_decode_is_exact_or_refuses(word):
    reserved = sum(1 << bit for bit in (14, 15, 30, 31, 46, 47, 48, *range(52, 62)))
    if word & reserved:
        with pytest.raises(MalformedError, match="LA356"):
            wgmma.decode(word)
    assert wgmma.decode(word & ~reserved).encode() == word & ~reserved


def scalar_read(d, m, k, major):
    """The rule as the measurement states it, for one element."""
    w = {"NONE": 1, "32B": 2, "64B": 4, "128B": 8}[d.swizzle]
    leading, stride = d.leading_bytes, d.stride_bytes
    if major == "K" and w == 1:
        offset = (m % 8) * 16 + (m // 8) * stride + (k // 8) * leading + (k % 8) * 2
    elif major == "K":
        offset = (m % 8) * 16 * w + (m // 8) * stride + 2 * k
    elif w == 1:
        offset = (m % 8) * 2 + (m // 8) * stride + (k % 8) * 16 + (k // 8) * leading
    else:
        offset = (m % (8 * w)) * 2 + (m // (8 * w)) * leading + (k % 8) * 16 * w + (k // 8) * stride
    a = d.start_address_bytes + offset
    return a, a ^ ((a // 128 - d.base_offset) % w) * 16


small = st.integers(1, 600)


@settings(deadline=None)
@given(
    st.builds(
        lambda start, leading, stride, base_offset, swizzle: wgmma.MatrixDescriptor(
            16 * start, 16 * leading, 16 * stride, base_offset, swizzle
        ),
        units,
        small,
        small,
        st.integers(0, 7),
        st.sampled_from(wgmma.SWIZZLES),
    ),
    st.sampled_from(wgmma.N_VALUES),
    st.sampled_from(wgmma.MAJORS),
    st.randoms(use_true_random=False),
)
def test_reads_by_the_scalar_rule(d, rows, major, rng: random.Random):
    corners = [(0, 0), (rows - 1, 15), (rows - 1, 0), (0, 15)]
    if max(scalar_read(d, m, k, major)[0] for m in range(0, rows, 1) for k in (0, 7, 8, 15)) >= 1 << 18:
        with pytest.raises(TargetRuleError, match="beyond the 18 bits"):
            wgmma.operand_offsets(d, rows=rows, major=major)
        return
    read = wgmma.operand_offsets(d, rows=rows, major=major)
    assert read.dtype == np.int64
    assert int(read.min()) >= 0
    assert int(read.max()) < 1 << 18
    for m, k in corners + [(rng.randrange(rows), rng.randrange(16)) for _ in range(40)]:
        assert read[m, k] == scalar_read(d, m, k, major)[1]
