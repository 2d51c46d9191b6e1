"""Packing registers by a fragment, element types by name, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from instruments import fragments
from instruments.fragment_checks import RANGES

from layoutalg.ground.errors import MalformedError
from layoutalg.targets.layouts.nvidia_instructions import ELEMENT_BITS, MMA, mma_fragment


@pytest.mark.parametrize("dtype", sorted(ELEMENT_BITS))
def test_small_integers_are_exact_in_every_type(dtype: str) -> None:
    low, high = RANGES.get(dtype, (-8, 8))
    values = np.arange(low, high + 1)
    assert fragments.decode(fragments.encode(values, dtype), dtype).tolist() == values.tolist()


@pytest.mark.parametrize(
    ("dtype", "raw", "value"),
    [
        ("e4m3", 0x7E, 448.0), ("e4m3", 0x01, 2.0**-9), ("e4m3", 0x88, -(2.0**-6)), ("e5m2", 0x7B, 57344.0),
        ("e5m2", 0x01, 2.0**-16), ("bf16", 0x3FC0, 1.5), ("tf32", 0xC0000000, -2.0), ("s8", 0x80, -128.0),
    ],
)  # fmt: skip
def test_known_codes(dtype: str, raw: int, value: float) -> None:
    assert fragments.decode(np.array([raw], dtype=np.uint64), dtype).tolist() == [value]


@pytest.mark.parametrize(("dtype", "value"), [("u8", -1), ("s8", 200), ("bf16", 257), ("f16", 2049), ("e4m3", 17)])
def test_integers_that_do_not_fit_are_refused(dtype: str, value: int) -> None:
    with pytest.raises(MalformedError, match="does not fit"):
        fragments.encode(np.array([value]), dtype)


@pytest.mark.parametrize("name", sorted(MMA))
def test_fragments_are_one_to_one_and_pack_by_the_formula_of_the_manual(name: str) -> None:
    shape = MMA[name]
    for operand, (rows, columns) in {
        "A": (shape.m, shape.k), "B": (shape.k, shape.n), "D": (shape.m, shape.n),
    }.items():  # fmt: skip
        fragment = mma_fragment(name, operand)
        bits = fragments.element_bits(name, operand)
        raw = np.arange(rows * columns, dtype=np.uint64).reshape(rows, columns) % (1 << min(bits, 63))
        words = fragments.pack(fragment, raw, bits)
        assert np.array_equal(fragments.unpack(fragment, words, bits), raw)
        held = np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(32, -1), axis=1, bitorder="little")
        elements = np.array([[int("".join(map(str, part[::-1])), 2) for part in row.reshape(-1, bits)] for row in held])
        width = 2 if operand == "D" else max(1, 32 // bits)
        for lane in range(32):
            q, g = lane % 4, lane // 4
            for v in range(elements.shape[1]):
                step, inner = v // width, width * q + v % width
                if operand == "B":
                    row, col = inner + 4 * width * step, g
                else:
                    halves = rows // 8
                    row, col = g + 8 * (step % halves), inner + 4 * width * (step // halves)
                assert int(elements[lane, v]) == int(raw[row, col])


def test_misuse_is_named() -> None:
    with pytest.raises(MalformedError, match="name must be one of"):
        mma_fragment("m16n8k15.f32.bf16", "A")
    with pytest.raises(MalformedError, match="operand must be"):
        mma_fragment("m16n8k16.f32.bf16", "E")
    for kind, matrices in (("ldmatrix", 3), ("stmatrix", True), ("movmatrix", 1)):
        with pytest.raises(MalformedError, match="matrices 1, 2 or 4"):
            fragments.matrix_move_kernel(kind, matrices)
    with pytest.raises(MalformedError, match="multiple of 8"):
        fragments.wgmma_register_kernel("bf16", 12, 0, 512)
