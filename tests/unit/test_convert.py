"""Conversions: worked examples, refusals and their messages."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from layoutalg import convert
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.f2 import LinearLayout, parse_linear
from layoutalg.ground.errors import BudgetError, MalformedError, RepresentabilityError
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        (CuteLayout((2, 4), (12, 1)), "F2[i=(12)(1)(2) -> offset:16]"),
        (CuteLayout((2, 2), (0, 5)), "F2[i=(0)(5) -> offset:8]"),
        (CuteLayout(1, 0), "F2[i= -> offset:1]"),
        (CuteLayout((), ()), "F2[i= -> offset:1]"),
        (CuteLayout((1, 4), (7, 1)), "F2[i=(1)(2) -> offset:4]"),
        (ComposedLayout(Swizzle(0, 0, 0), 3, CuteLayout((2, 2), (-1, -2))), "F2[i=(1)(2) -> offset:4] ^ (3)"),
        (ComposedLayout(Swizzle(1, 0, 2), 0, CuteLayout((4, 2), (1, 4))), "F2[i=(1)(2)(5) -> offset:8]"),
        (ComposedLayout(Swizzle(1, 0, 1), 1, CuteLayout(2, 1)), "F2[i=(2) -> offset:4] ^ (1)"),
        (parse_linear("F2[a=(1,0), b=(0,3) -> x:2, y:4]"), "F2[i=(1)(6) -> offset:8]"),
        (PiecewiseLayout("{ [i] -> [i - 2*floor(i/2)] : 0 <= i < 4 }"), "F2[i=(1)(0) -> offset:2]"),
    ],
)
def test_to_linear(layout: Any, text: str) -> None:
    if text == "F2[i=(2) -> offset:4] ^ (1)":
        # 1 + 1 = 2 carries, but one bit never clashes with itself
        assert layout.table().tolist() == [1, 3]
    assert str(convert.to_linear(layout)) == text


@pytest.mark.parametrize(
    ("shape", "stride", "wrong"), [((2, 2), (1, 1), 3), ((4, 4), (1, 3), 5), (8, 3, 3), (16, 5, 5), ((4, 4), (2, 4), 6)]
)
def test_carries_that_others_convert_silently_are_refused(shape: Any, stride: Any, wrong: int) -> None:
    layout = CuteLayout(shape, stride)
    with pytest.raises(RepresentabilityError) as caught:
        convert.to_linear(layout)
    witness = caught.value.diagnostic.witness or {}
    assert witness["x"] ^ witness["y"] == wrong  # type: ignore[operator]
    assert witness["f(x^y)"] == layout(wrong) != witness["f(x)^f(y)^f(0)"]


def test_large_layouts_are_decided_without_enumeration() -> None:
    tile = ComposedLayout(Swizzle(3, 4, 3), 1 << 40, CuteLayout((1 << 30, 64), (64, 1)))
    linear = convert.to_linear(tile)
    for point in (0, 1, 12345678901, (1 << 36) - 1):
        assert linear.at(point) == tile(point)
    with pytest.raises(RepresentabilityError, match="LA230"):
        convert.to_linear(ComposedLayout(Swizzle(3, 4, 3), 32, CuteLayout((1 << 30, 64), (64, 1))))


def test_a_carry_that_the_outer_offset_takes_back() -> None:
    inside = ComposedLayout(Swizzle(0, 0, 0), 1, CuteLayout(4, 1))
    back = ComposedLayout(Swizzle(0, 0, 0), -1, inside)
    assert convert.to_linear(back).table().tolist() == [0, 1, 2, 3]
    far = Swizzle(1, 40, 2)  # moves no bit of these values, but keeps the offsets apart
    small = ComposedLayout(far, -1, ComposedLayout(far, 1, CuteLayout(4, 1)))
    assert convert.to_linear(small).table().tolist() == [0, 1, 2, 3]
    large = ComposedLayout(far, -1, ComposedLayout(far, 1, CuteLayout(1 << 30, 1)))
    with pytest.raises(BudgetError) as caught:
        convert.to_linear(large)
    assert caught.value.diagnostic.code == "LA233"


def test_negative_values_and_odd_sizes_are_refused() -> None:
    with pytest.raises(RepresentabilityError) as caught:
        convert.to_linear(CuteLayout((2, 2), (1, -2)))
    assert caught.value.diagnostic.code == "LA232"
    assert caught.value.diagnostic.witness == {"coordinate": 2, "value": -2}
    for layout in (CuteLayout(6), CuteLayout(0), CuteLayout((2, 3))):
        with pytest.raises(RepresentabilityError) as caught:
            convert.to_linear(layout)
        assert caught.value.diagnostic.witness == {"size": layout.size}


def test_the_message_of_a_refusal() -> None:
    with pytest.raises(RepresentabilityError) as caught:
        convert.to_linear(CuteLayout(8, 3))
    assert str(caught.value) == (
        "LA230 the layout is not affine over F2\n"
        "  in     to_linear(8:3)\n"
        "  since  f(3) = 9, but f(2) xor f(1) xor f(0) = 5; layoutalg.convert.to_piecewise represents it exactly\n"
        "  at     x=2, y=1, f(x^y)=9, f(x)^f(y)^f(0)=5"
    )


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("F2[i=(1)(2)(4) -> o:8]", "8:1"),
        ("F2[i= -> o:8]", "1:0"),
        ("F2[-> o:8] ^ (5)", "5 + 1:0"),
        ("F2[t=(4)(8), v=(1)(2) -> o:16]", "(4,4):(4,1)"),
        ("F2[t=(4)(1), v= -> o:8]", "((2,2),1):((4,1),0)"),
        ("F2[i=(1)(2) -> o:4] ^ (3)", "3 + 4:-1"),
        ("F2[i=(1)(2)(5) -> o:8]", "Sw<1,0,2> o 0 o 8:1"),
        ("F2[i=(5)(2) -> o:8] ^ (4)", "4 + (2,2):(-3,2)"),
    ],
)
def test_to_cute(text: str, answer: str) -> None:
    linear = parse_linear(text)
    found = convert.to_cute(linear)
    assert str(found) == answer
    assert found.table().tolist() == linear.table().tolist()


def test_the_128_byte_swizzle_comes_back_from_its_matrix() -> None:
    tile = ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout((64, 64), (1, 64)))
    assert str(convert.to_cute(convert.to_linear(tile))) == "Sw<3,3,3> o 0 o 4096:1"


def test_to_cute_refuses_what_needs_two_swizzles() -> None:
    linear = parse_linear("F2[i=(1)(3)(5) -> o:8]")
    found = convert.to_cute(parse_linear("F2[i=(3)(1) -> o:4]"))
    assert found.table().tolist() == [0, 3, 1, 2]
    with pytest.raises(RepresentabilityError) as caught:
        convert.to_cute(linear)
    assert caught.value.diagnostic.code == "LA235"
    assert caught.value.diagnostic.witness == {"x": 1, "y": 2, "f(x+y)": 2, "f(x)+f(y)-f(0)": 4, "bit": 0}
    with pytest.raises(RepresentabilityError, match="63 bits; the limit is 62"):
        convert.to_cute(LinearLayout.identity({"i": 1 << 63}))


def test_to_cute_of_other_families() -> None:
    plain = CuteLayout((4, 3), (3, 1))
    assert convert.to_cute(plain) is plain
    idle = ComposedLayout(Swizzle(1, 0, 4), 0, plain)
    assert convert.to_cute(idle) == plain
    real = ComposedLayout(Swizzle(1, 0, 1), 0, plain)
    assert convert.to_cute(real).table().tolist() == real.table().tolist()
    large = ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout((3, 1 << 30), (1, 3)))
    assert convert.to_cute(large) == large
    with pytest.raises(BudgetError):
        convert.to_cute(ComposedLayout(Swizzle(1, 0, 1), 0, large))
    assert convert.to_cute(PiecewiseLayout("{ [i, j] -> [10i + j] : 0 <= i < 3 and 0 <= j < 4 }")) == CuteLayout(
        (3, 4), (10, 1)
    )
    assert convert.to_cute(ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(0))).size == 0


@pytest.mark.parametrize(
    ("table", "answer"),
    [
        ([7], "7 + 1:0"),
        ([0], "1:0"),
        ([0, 0, 0], "3:0"),
        ([0, 2, 1, 3, 2, 4], "(2,3):(2,1)"),
        ([5, 4, 3], "5 + 3:-1"),
        ([0, 1, 3, 2], "Sw<1,0,1> o 0 o 4:1"),
        ([0, 1, 2, 3, 5, 4, 7, 6], "Sw<1,0,2> o 0 o 8:1"),
        ([0, 1, 3, 2, 5, 4, 6, 7], "F2[i=(1)(3)(5) -> offset:8]"),
        ([0, 1, 2, 4, 5, 6, 9, 8, 11], "Sw<1,0,3> o 0 o (3,3):(1,4)"),
    ],
)
def test_recognize(table: list[int], answer: str) -> None:
    found = convert.recognize(table)
    assert str(found) == answer
    assert found.table().tolist() == table


def test_recognize_survives_the_edge_of_64_bits() -> None:
    top = 2**62
    with pytest.raises(RepresentabilityError):
        convert.recognize([0, top, -2 * top])
    for table in ([0, -top, -2 * top], [top, -top], [-2 * top, 2 * top - 1]):
        with pytest.raises(RepresentabilityError, match=r"its only modes .* exceed the signed 64-bit range"):
            convert.recognize(table)
    with pytest.raises(RepresentabilityError, match=f"a strided layout would give {top + 7}; swizzles were not tried"):
        convert.recognize([-top - 1, 3, top])
    table = [1 - 2 * top, -top, -1]
    assert convert.recognize(table).table().tolist() == table


def test_recognize_names_the_first_violation() -> None:
    with pytest.raises(RepresentabilityError) as caught:
        convert.recognize([0, 1, 2, 3, 4, 5, 6, 9])
    assert caught.value.diagnostic.witness == {
        "coordinate": 7,
        "value": 9,
        "strided": 7,
        "coordinate over F2": 7,
        "affine over F2": 7,
    }


@pytest.mark.parametrize("bad", [[], [[1]], [1.0], [True], ["a"], [2**63], [[1], [1, 2]], 3, None])
def test_tables_must_be_tables(bad: Any) -> None:
    with pytest.raises(MalformedError):
        convert.recognize(bad)
    assert convert.recognize(np.array([0, 3], dtype=np.uint8)) == CuteLayout(2, 3)


@pytest.mark.parametrize("bridge", [convert.to_linear, convert.to_cute, convert.to_piecewise])
def test_operands_must_be_layouts(bridge: Any) -> None:
    for bad in (None, 3, object()):
        with pytest.raises(MalformedError) as caught:
            bridge(bad)
        assert caught.value.diagnostic.code == "LA234"


def test_to_piecewise() -> None:
    assert str(convert.to_piecewise(CuteLayout((3, 8), (8, 1)))) == (
        "{ [c0, c1] -> [(8c0 + c1)] : 0 <= c0 <= 2 and 0 <= c1 <= 7 } as offset"
    )
    tile = ComposedLayout(Swizzle(3, 4, 3), 0, CuteLayout((64, 64), (64, 1)))
    answer = convert.to_piecewise(tile)
    # rows: 2 bits of their own that are read, then whole; columns: 16 whole, then the bits written
    assert list(answer.in_dims.values()) == [2, 2, 2, 2, 4, 16, 2, 2]
    assert np.array_equal(answer.table(), tile.table())
    ragged = ComposedLayout(Swizzle(1, 0, 2), 1, CuteLayout((3, 5), (1, 3)))
    answer = convert.to_piecewise(ragged)
    assert answer.in_dims == {"c0": 3, "c1": 5}
    assert np.array_equal(answer.table(), ragged.table())
    assert convert.to_piecewise(answer) is answer
    with pytest.raises(RepresentabilityError):
        convert.to_piecewise(CuteLayout(0))
    two = PiecewiseLayout("{ [i] -> [i, i] : 0 <= i < 2 }")
    with pytest.raises(MalformedError, match="one output"):
        convert.to_linear(two)


def test_the_digits_of_a_ragged_swizzled_tile() -> None:
    # 96 rows of 64 elements: only the bits that the swizzle joins are digits of their own
    tile = ComposedLayout(Swizzle(3, 3, 3), 0, CuteLayout((96, (64, 5)), (64, (1, 6144))))
    answer = convert.to_piecewise(tile)
    assert list(answer.in_dims.values()) == [2, 2, 2, 12, 8, 2, 2, 2, 5]
    rows, columns = np.arange(96)[None, :], np.arange(64)[:, None]
    first = (rows * 64 + (columns ^ (rows % 8) * 8)).reshape(-1)
    assert np.array_equal(answer.table(), np.concatenate([first + 6144 * k for k in range(5)]))
    for odd in (ComposedLayout(Swizzle(2, 0, 2), 6, CuteLayout((4, 3), (1, 4))), CuteLayout((2, 2), (1, 1))):
        assert np.array_equal(convert.to_piecewise(odd).table(), odd.table())
    shifted = ComposedLayout(Swizzle(0, 0, 0), 5, CuteLayout((4, 8), (-1, 16)))
    assert (
        str(convert.to_piecewise(shifted))
        == "{ [c0, c1] -> [(5 - c0 + 16c1)] : 0 <= c0 <= 3 and 0 <= c1 <= 7 } as offset"
    )


def test_residues_of_one_piece_come_back() -> None:
    for stride, constant, modulus in ((4, 9, 16), (4, 8, 16), (6, 5, 15), (3, -1, 8), (5, 0, 7), (0, 0, 3)):
        layout = IntegerLayout.from_strides({"i": 20, "j": 3}, (stride, 1), constant, modulus=modulus)
        back = convert.to_integer(convert.to_piecewise(layout))
        assert back.table().tolist() == [(stride * i + j + constant) % modulus for j in range(3) for i in range(20)]
    pair = IntegerLayout((("i", 9),), (("p", 4), ("q", 0)), ((3,), (5,)), (1, 2))
    back = convert.to_integer(convert.to_piecewise(pair))
    assert back.table().tolist() == [[(3 * i + 1) % 4, 5 * i + 2] for i in range(9)]
    # these are no residues: 9 + 4 (i mod 4), and a slope beside the floor
    for slope, constant, step in ((4, 9, -16), (5, 0, -16), (1, 0, 8), (4, 3, -16), (4, -1, -16)):
        piece = PiecewiseLayout(f"{{ [i] -> [{slope}i + {constant} + {step}*floor(i/4)] : 0 <= i < 12 }}")
        expected = [slope * i + constant + step * (i // 4) for i in range(12)]
        assert piece.table().tolist() == expected
        for bridge in (convert.to_integer, convert.to_cute):
            try:
                assert bridge(piece).table().tolist() == expected  # type: ignore[attr-defined]
            except RepresentabilityError as error:
                at = error.diagnostic.witness["coordinate"]  # type: ignore[index]
                assert expected[at] == error.diagnostic.witness["value"]  # type: ignore[index]


def test_values_beyond_64_bits() -> None:
    top = 2**70
    strided = PiecewiseLayout(f"{{ [i, j] -> [{top}i + {2 * top}j] : 0 <= i < 2 and 0 <= j < 4 }}")
    pieces = PiecewiseLayout(f"{{ [i] -> [i] : 0 <= i < 3; [i] -> [{top} + i] : 3 <= i < 8 }}")
    assert convert.to_linear(strided).columns == (top, 2 * top, 4 * top)
    assert convert.to_integer(strided).at(7) == 7 * top
    for layout in (strided, pieces):
        with pytest.raises(RepresentabilityError, match=r"LA660|LA235"):
            convert.to_cute(layout)
    with pytest.raises(RepresentabilityError) as caught:
        convert.to_linear(pieces)
    assert caught.value.diagnostic.witness == {"x": 2, "y": 1, "f(x^y)": top + 3, "f(x)^f(y)^f(0)": 3}
    with pytest.raises(RepresentabilityError) as caught:
        convert.to_integer(pieces)
    assert caught.value.diagnostic.witness == {"coordinate": 3, "value": top + 3, "strided": 3}
    assert "moduli were not tried" in caught.value.diagnostic.because


@pytest.mark.parametrize(
    "table",
    [
        [np.int8(-3), 4, np.uint64(11)],
        np.array([-3, 4, 11], dtype=object),
        np.array([-3, 4, 11], dtype=">i2"),
        np.array([[-3, 0], [4, 0], [11, 0]])[:, 0],
        np.array([11, 4, -3])[::-1],
        np.ma.array([-3, 4, 11]),
        range(-3, 12, 7),
    ],
)
def test_tables_of_any_integer_type(table: Any) -> None:
    assert str(convert.recognize(table)) == "-3 + 3:7"


def test_unsigned_entries_keep_their_last_bits() -> None:
    wide = [np.uint64(2**60 + 1), np.int64(-1)]  # numpy would make floats of these
    assert convert.recognize(wide).table().tolist() == [2**60 + 1, -1]


@pytest.mark.parametrize(
    "table",
    [
        [True, 2],
        [np.True_, 2],
        [1, 2.0],
        [1, None],
        [0, 2**63],
        [-1, 2**64],
        np.array([0, 2**63], dtype=np.uint64),
        np.array([0, 2**70], dtype=object),
        np.array([True, False]),
        np.array([0.0, 1.0]),
        np.ma.array([1, 2, 3], mask=[False, True, False]),
        np.array([1, 2], dtype="m8[s]"),
        np.zeros((2, 2), dtype=int),
        "0123",
        {0: 1},
        [],
    ],
)
def test_other_tables_are_malformed(table: Any) -> None:
    with pytest.raises(MalformedError) as caught:
        convert.recognize(table)
    assert caught.value.diagnostic.code == "LA234"


@pytest.mark.parametrize("shape", [4.0, "4", [2, 2], True, (2, 3), (), -4])
def test_a_shape_must_fit_the_table(shape: Any) -> None:
    with pytest.raises(MalformedError) as caught:
        convert.recognize([0, 1, 2, 3], shape)
    assert caught.value.diagnostic.code in ("LA100", "LA234")
    assert str(convert.recognize([0, 1, 2, 3], np.int64(4))) == "4:1"  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [2**16, 3 * 2**14, 30030])
def test_one_late_wrong_entry_refutes_every_swizzle(size: int) -> None:
    table = np.arange(size)
    table[[size - 20, size - 19]] = table[[size - 19, size - 20]]
    with pytest.raises(RepresentabilityError, match="no swizzle helps") as caught:
        convert.recognize(table)
    witness = caught.value.diagnostic.witness or {}
    assert (witness["coordinate"], witness["value"], witness["strided"]) == (size - 20, size - 19, size - 20)
    swizzle = Swizzle(2, 1, 9)
    moved = swizzle(np.arange(size))
    found = convert.recognize(moved)
    assert np.array_equal(found.table(), moved)
