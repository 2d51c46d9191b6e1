"""Swizzles and swizzled layouts: values, units, stacks and refusals."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError


def bitwise(bits: int, base: int, shift: int, value: int) -> int:
    """The definition, bit by bit: target bit t becomes itself XOR its source bit."""
    answer = value
    for position in range(bits):
        target = base + position + max(0, -shift)
        source = base + position + max(0, shift)
        answer ^= (value >> source & 1) << target
    return answer


@pytest.mark.parametrize(
    ("bits", "base", "shift"), [(3, 4, 3), (2, 0, 3), (1, 2, -1), (2, 1, -4), (0, 0, 0), (0, 5, 2)]
)
def test_values(bits: int, base: int, shift: int) -> None:
    swizzle = Swizzle(bits, base, shift)
    values = np.arange(-4096, 4096)
    expected = [bitwise(bits, base, shift, int(value)) for value in values]
    assert swizzle(values).tolist() == expected == [swizzle(int(value)) for value in values]
    assert np.array_equal(swizzle(swizzle(values)), values)
    assert np.array_equal(swizzle(values + swizzle.period), swizzle(values) + swizzle.period)
    smaller = [p for p in range(1, swizzle.period) if np.array_equal(swizzle(values + p), swizzle(values) + p)]
    assert smaller == []
    columns = swizzle.matrix_columns(12)
    assert columns == tuple(bitwise(bits, base, shift, 1 << position) for position in range(12))
    for value in (0, 1, 77, 4095):
        total = 0
        for position, column in enumerate(columns):
            total ^= column * (value >> position & 1)
        assert total == swizzle(value)


def test_known_128_byte_pattern() -> None:
    swizzle = Swizzle(3, 4, 3, "byte")
    assert [swizzle(128 * row) // 16 % 8 for row in range(8)] == list(range(8))
    assert str(swizzle) == "Sw<3,4,3,byte>"
    assert str(swizzle.recast_elements(2)) == "Sw<3,3,3>"
    assert str(swizzle.recast_elements(16)) == "Sw<3,0,3>"
    assert swizzle.recast_elements(2).recast_bytes(2) == swizzle


def test_recast_means_the_same_address() -> None:
    for shift in (3, -3):
        swizzle = Swizzle(2, 4, shift, "byte")
        for width in (1, 2, 4, 8, 16):
            elements = np.arange(2048)
            assert np.array_equal(swizzle(elements * width), swizzle.recast_elements(width)(elements) * width)


def test_recast_refuses_what_is_not_exact() -> None:
    swizzle = Swizzle(3, 4, 3, "byte")
    with pytest.raises(
        AdmissibilityError,
        match=r"LA111 [^\n]*\n  in     \(Sw<3,4,3,byte>\)\.recast_elements\(32\)\n  since  .*parts of elements",
    ):
        swizzle.recast_elements(32)
    with pytest.raises(AdmissibilityError, match="12 bytes is not a power of two"):
        swizzle.recast_elements(12)
    with pytest.raises(AdmissibilityError, match="already acts on element offsets"):
        Swizzle(3, 4, 3).recast_elements(2)
    with pytest.raises(AdmissibilityError, match="already acts on byte addresses"):
        swizzle.recast_bytes(2)
    with pytest.raises(MalformedError, match="element_bytes must be at least 1"):
        swizzle.recast_elements(0)
    assert Swizzle(0, 1, 0, "byte").recast_elements(8) == Swizzle(0, 0, 0)


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ((-1, 4, 3), "bits must be >= 0"),
        ((3, -1, 3), "base must be >= 0"),
        ((3, 4, 2), "shift must be at least bits = 3 in magnitude"),
        ((3, 4, -2), "shift must be at least bits = 3 in magnitude"),
        ((3, 57, 3), "must be at most 62"),
        ((3.0, 4, 3), "bits must be an integer"),
        ((3, True, 3), "base must be an integer"),
        ((3, 4, 3, "bit"), "unit must be 'element' or 'byte'"),
    ],
)
def test_malformed_swizzles_are_refused(fields: tuple[object, ...], rule: str) -> None:
    with pytest.raises(MalformedError, match="LA110") as caught:
        Swizzle(*fields)  # type: ignore[arg-type]
    assert rule in str(caught.value)


def test_values_must_be_integers() -> None:
    for bad in (1.5, True, "1", None):
        with pytest.raises(MalformedError):
            Swizzle(3, 4, 3)(bad)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA104"):
        Swizzle(3, 4, 3)(np.array([0.5]))


def test_composed_values() -> None:
    layout = ComposedLayout(Swizzle(3, 3, 3), 8, CuteLayout((8, 64), (64, 1)))
    expected = [bitwise(3, 3, 3, 8 + 64 * (i % 8) + i // 8) for i in range(512)]
    assert layout.table().tolist() == expected == [layout(i) for i in range(512)]
    assert layout.apply(np.arange(512)).tolist() == expected
    assert layout(3, 5) == layout((3, 5)) == expected[3 + 8 * 5]
    assert (layout.size, layout.shape, layout.rank, layout.depth) == (512, (8, 64), 2, 1)
    assert layout.cosize == 1 + max(expected) - min(expected)
    assert layout[1].table().tolist() == [expected[8 * j] for j in range(64)]
    assert [mode.size for mode in layout] == [8, 64]


def test_stacks() -> None:
    inner = ComposedLayout(Swizzle(2, 1, 3), 5, CuteLayout((8, 8), (8, 1)))
    stack = ComposedLayout(Swizzle(3, 0, -3), -7, inner)
    expected = [bitwise(3, 0, -3, bitwise(2, 1, 3, 5 + 8 * (i % 8) + i // 8) - 7) for i in range(64)]
    assert stack.table().tolist() == expected == [stack(i) for i in range(64)]
    assert str(stack) == "Sw<3,0,-3> o -7 o (Sw<2,1,3> o 5 o (8,8):(8,1))"
    assert stack.stages == ((Swizzle(3, 0, -3), -7), (Swizzle(2, 1, 3), 5))
    assert stack[0].table().tolist() == expected[:8]
    assert Swizzle(3, 0, -3) @ inner == inner.then(Swizzle(3, 0, -3)) == ComposedLayout(Swizzle(3, 0, -3), 0, inner)


def test_span_of_large_domains() -> None:
    base = CuteLayout((2**20, 2**20), (3, 2**22))
    layout = ComposedLayout(Swizzle(3, 0, 3), 1, base)
    high = 3 * (2**20 - 1) + 2**22 * (2**20 - 1)
    near = [x for x in range(high - 300, high + 1) if (x % 2**22) % 3 == 0]
    assert layout.value_range() == (0 ^ 1, max(bitwise(3, 0, 3, 1 + x) for x in near))
    with pytest.raises(BudgetError, match="LA114"):
        _ = ComposedLayout(Swizzle(3, 20, 3), 0, base).cosize
    assert ComposedLayout(Swizzle(3, 0, 3), 1, CuteLayout((0, 4))).cosize == 0


def test_value_semantics() -> None:
    stack = ComposedLayout(Swizzle(1, 0, 2), 4, ComposedLayout(Swizzle(2, 1, 3), 5, CuteLayout((8, 8))))
    names = {"ComposedLayout": ComposedLayout, "Swizzle": Swizzle, "CuteLayout": CuteLayout}
    assert eval(repr(stack), names) == stack
    assert eval(repr(Swizzle(3, 4, 3, "byte")), names) == Swizzle(3, 4, 3, "byte")
    assert pickle.loads(pickle.dumps(stack)) == copy.deepcopy(stack) == stack
    assert len({stack, copy.copy(stack)}) == 1
    assert Swizzle(3, 4, 3) != Swizzle(3, 4, 3, "byte")


def test_byte_swizzle_over_elements_is_refused() -> None:
    with pytest.raises(AdmissibilityError) as caught:
        ComposedLayout(Swizzle(3, 4, 3, "byte"), 0, CuteLayout((8, 64), (64, 1)))
    assert str(caught.value) == (
        "LA112 a swizzle of byte addresses cannot follow a layout of element offsets\n"
        "  in     Sw<3,4,3,byte> o 0 o (8,64):(64,1)\n"
        "  since  which element bits it moves depends on the element width; "
        "outer.recast_elements(element_bytes) fixes the width and gives the swizzle of element offsets"
    )


def test_malformed_composed_layouts_are_refused() -> None:
    layout = CuteLayout(4)
    for fields in ((layout, 0, layout), (Swizzle(1, 0, 1), 0.5, layout), (Swizzle(1, 0, 1), 0, 4)):
        with pytest.raises(MalformedError, match="LA113"):
            ComposedLayout(*fields)
    with pytest.raises(MalformedError, match="LA102"):
        ComposedLayout(Swizzle(1, 0, 1), 2**63 - 1, layout)
    deep = ComposedLayout(Swizzle(1, 0, 1), 0, layout)
    for _ in range(63):
        deep = ComposedLayout(Swizzle(1, 0, 1), 0, deep)
    with pytest.raises(MalformedError, match="must stack at most 64 swizzles"):
        ComposedLayout(Swizzle(1, 0, 1), 0, deep)
