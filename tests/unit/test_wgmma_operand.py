"""Which byte is read: hand-worked places, refusals of what was not measured, shapes and fragments."""

from __future__ import annotations

import numpy as np
import pytest

from layoutalg.ground.errors import MalformedError, TargetRuleError
from layoutalg.targets.nvidia import wgmma
from layoutalg.targets.nvidia.wgmma import MatrixDescriptor, operand_offsets


@pytest.mark.parametrize(
    ("swizzle", "major", "where", "byte"),
    [
        ("NONE", "K", (9, 9), 16 + 1000 * 16 + 100 * 16 + 2),
        ("32B", "K", (9, 9), 16050 ^ 16),
        ("128B", "K", (9, 9), 16000 + 128 + 18 ^ (16128 >> 7) % 8 << 4),
        ("NONE", "MN", (9, 9), 2 + 1000 * 16 + 16 + 100 * 16),
        ("32B", "MN", (17, 9), 2 + 100 * 16 + 32 + 1000 * 16 ^ (17634 >> 7 & 1) << 4),
    ],
)
def test_places_by_hand(swizzle, major, where, byte):
    d = MatrixDescriptor(0, 1600, 16000, 0, swizzle)
    assert operand_offsets(d, rows=64, k=16, element_bits=16, major=major)[where] == byte


def test_canonical_k_major_128b_is_a_permutation_of_the_tile():
    read = operand_offsets(MatrixDescriptor(2048, 16, 1024, 0, "128B"))
    assert read.dtype == np.int64
    assert read.shape == (64, 16)
    assert np.unique(read).size == 1024
    assert (read[:, 1::2] == read[:, ::2] + 2).all()


def test_b_rows():
    d = MatrixDescriptor(0, 4096, 1024, 0, "128B")
    for rows in wgmma.N_VALUES:
        for major in wgmma.MAJORS:
            assert operand_offsets(d, rows=rows, major=major).shape == (rows, 16)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rows": 12}, "rows = 12"),
        ({"rows": 0}, "rows = 0"),
        ({"rows": 264}, "rows = 264"),
        ({"k": 8}, "k = 8"),
        ({"k": 24}, "k = 24"),
        ({"k": 64}, "k = 64"),
        ({"element_bits": 8, "k": 16}, "k = 16"),
        ({"element_bits": 1, "rows": 40}, "rows = 40"),
    ],
)
def test_what_was_not_measured_is_refused(options, words):
    with pytest.raises(TargetRuleError) as caught:
        operand_offsets(MatrixDescriptor(0, 16, 1024, 0, "128B"), **options)
    assert caught.value.rule == "NOT_MEASURED"
    assert caught.value.diagnostic.because.startswith(f"not measured: {words}")


def test_zero_strides_are_refused_only_where_they_are_read():
    operand_offsets(MatrixDescriptor(0, 0, 1024, 0, "128B"))
    operand_offsets(MatrixDescriptor(0, 0, 0, 0, "128B"), rows=8)
    with pytest.raises(TargetRuleError, match="stride_bytes = 0"):
        operand_offsets(MatrixDescriptor(0, 16, 0, 0, "128B"))
    with pytest.raises(TargetRuleError, match="leading_bytes = 0"):
        operand_offsets(MatrixDescriptor(0, 0, 128))


def test_addresses_beyond_18_bits_are_refused():
    operand_offsets(MatrixDescriptor((1 << 18) - 8096, 16, 1024, 0, "128B"))
    with pytest.raises(TargetRuleError, match="beyond the 18 bits"):
        operand_offsets(MatrixDescriptor((1 << 18) - 8080, 16, 1024, 0, "128B"))


@pytest.mark.parametrize("options", [{"rows": 64.0}, {"rows": True}, {"k": "16"}, {"element_bits": None}])
def test_types_are_checked(options):
    with pytest.raises(MalformedError, match="LA350"):
        operand_offsets(MatrixDescriptor(0, 16, 1024), **options)


def test_names_are_checked():
    with pytest.raises(MalformedError, match="LA358"):
        operand_offsets(MatrixDescriptor(0, 16, 1024), major="M")
    with pytest.raises(MalformedError, match="LA350"):
        operand_offsets(0x4000)
    with pytest.raises(MalformedError, match="LA360"):
        wgmma.instruction_rows("D")
    with pytest.raises(MalformedError, match="LA360"):
        wgmma.operand_evidence(["A"])


@pytest.mark.parametrize(
    ("rows", "major", "swizzle", "unread"),
    [
        (64, "K", "NONE", ()),
        (8, "K", "NONE", ("stride_bytes",)),
        (64, "K", "64B", ("leading_bytes",)),
        (8, "K", "64B", ("leading_bytes", "stride_bytes")),
        (64, "MN", "NONE", ()),
        (64, "MN", "128B", ("leading_bytes",)),
        (72, "MN", "128B", ()),
        (32, "MN", "32B", ()),
    ],
)
def test_unread_fields(rows, major, swizzle, unread):
    assert wgmma.unread_fields(rows, major, swizzle) == unread


def test_shapes():
    assert tuple(8 * i for i in range(1, 33)) == wgmma.N_VALUES
    assert wgmma.instruction_rows("A") == (64,)
    assert wgmma.operand_evidence("A") == "measured"
    assert wgmma.operand_evidence("B") == "measured"
    assert wgmma.multiply("bf16").accumulators == ("f32",)


@pytest.mark.parametrize("n", wgmma.N_VALUES)
def test_accumulators_are_a_bijection(n):
    at = wgmma.accumulator_coordinates(n)
    assert at.shape == (128, n // 2, 2)
    assert at.dtype == np.int64
    flat = np.sort((at[..., 0] * n + at[..., 1]).reshape(-1))
    assert np.array_equal(flat, np.arange(64 * n))


def test_accumulators_by_scalar_formula():
    at = wgmma.accumulator_coordinates(24)
    for t in range(128):
        q, g, w = t % 4, (t // 4) % 8, t // 32
        for v in range(12):
            assert tuple(at[t, v]) == (g + 16 * w + 8 * ((v // 2) % 2), 2 * q + v % 2 + 8 * (v // 4))


@pytest.mark.parametrize(("n", "code"), [(12, "LA359"), (0, "LA359"), (264, "LA359"), (8.0, "LA350"), (True, "LA350")])
def test_accumulators_refuse(n, code):
    with pytest.raises(MalformedError, match=code):
        wgmma.accumulator_coordinates(n)
