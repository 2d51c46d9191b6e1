"""What turns one family into another, at the edges: chunks of tables, swizzles as digits, residues that wrap."""

from __future__ import annotations

import pytest

import layoutalg as la
from layoutalg.bridges import digits, equal
from layoutalg.bridges.equal import equivalent
from layoutalg.bridges.normal import one_piece
from layoutalg.cute import ComposedLayout, CuteLayout, Swizzle
from layoutalg.ground.verdict import Refuted
from layoutalg.integer import IntegerLayout
from layoutalg.piecewise import PiecewiseLayout, operations
from layoutalg.piecewise.pieces import reach
from layoutalg.proofs.tensormap import TensorMapProblem


@pytest.mark.parametrize("shift", [-4, -2, 2, 3])
def test_the_bits_of_a_swizzle_are_those_that_it_changes(shift: int):
    swizzle = Swizzle(2, 1, shift)
    sources = digits.swizzle_sources(swizzle)
    for bit in range(8):
        changed = swizzle(1 << bit) ^ 1 << bit
        assert changed == sum(1 << target for target, source in sources.items() if source == bit)


@pytest.mark.parametrize("behind", [-1, 0, 1, 100])
def test_a_difference_in_a_later_chunk_is_named_by_its_own_coordinate(behind: int):
    """Two tables that differ at one place near the end of the first chunk."""
    size, place = 4 * equal.CHUNK, equal.CHUNK + behind
    f = la.ground.listed.ListedLayout((size,), tuple(range(size)))
    g = la.ground.listed.ListedLayout((size,), (*range(place), size, *range(place + 1, size)))
    verdict = equivalent(f, g, equal.Budget(table_points=size), _engines=("table",))
    assert isinstance(verdict, Refuted)
    assert dict(verdict.witness) == {"coordinate": place, "f": place, "g": size}


@pytest.mark.parametrize(("extent", "stride", "modulus"), [(12, 3, 9), (8, 3, 9), (10, 3, 9), (6, 2, 8), (16, 6, 8)])
def test_residues_that_wrap_are_those_of_every_point(extent: int, stride: int, modulus: int):
    layout = IntegerLayout.from_strides({"i": extent}, (stride,), 1, modulus=modulus)
    values = [(stride * i + 1) % modulus for i in range(extent)]
    assert layout.table().reshape(-1).tolist() == values
    listed = la.ground.listed.ListedLayout((extent,), tuple(values))
    assert equivalent(layout, listed)
    linear = CuteLayout(extent, stride)
    assert not equivalent(layout, ComposedLayout(Swizzle(0, 0, 0), 1, linear))


@pytest.mark.parametrize(("modulus", "fits"), [(4, True), (8, True), (16, True)])
def test_a_sum_of_residues_may_carry_out_of_the_top_bit(modulus: int, fits: bool):
    """Two strides of half the modulus are 0 together, as an exclusive or has it."""
    half = modulus // 2
    layout = IntegerLayout.from_strides({"i": 2, "j": 2}, (half, half), 1, modulus=modulus)
    linear = la.to_linear(layout) if hasattr(la, "to_linear") else la.convert.to_linear(layout)
    assert linear.table().reshape(-1).tolist() == [
        (half * i + half * j + 1) % modulus for j in range(2) for i in range(2)
    ]


def test_a_value_below_0_is_no_set_of_bits():
    for stride in (-1, -2):
        with pytest.raises(la.LayoutError, match="LA232"):
            la.convert.to_linear(CuteLayout(2, stride))


def test_a_residue_and_a_constant_are_no_residue_of_the_sum():
    """(i mod 4) + 1 is not (i + 1) mod 4; 2 (i mod 4) + 1 is (2 i + 1) mod 8, and 2 (i mod 4) + 2 is nothing such."""
    for text, found in (
        ("(i mod 4) + 1", None), ("2*(i mod 4) + 1", (2, 1, 8)), ("2*(i mod 4) + 2", None), ("(i mod 4)", (1, 0, 4)),
    ):  # fmt: skip
        made = one_piece(PiecewiseLayout(f"{{ [i] -> [{text}] : 0 <= i < 16 }}"))
        got = None if made is None else (made.matrix[0][0], made.offset[0], made.moduli[0])
        assert got == found, text


@pytest.mark.parametrize(
    ("domain", "found"),
    [
        ("0 <= i <= 2 or 3 <= i <= 5", (6,)), ("0 <= i <= 2 or 2 <= i <= 3 or i = 5", None),
        ("0 <= i <= 2 or 2 <= i <= 4", (5,)), ("0 <= i <= 2 or 4 <= i <= 5", None), ("0 <= i and 2*i <= 9", (5,)),
        ("0 <= i and -2*i + 9 >= 0", (5,)), ("1 <= i <= 4", None),
    ],
)  # fmt: skip
def test_a_domain_is_a_box_where_it_has_no_hole(domain: str, found: tuple[int, ...] | None):
    answer = operations.extents(PiecewiseLayout(f"{{ [i] -> [i] : {domain} }}").value)
    assert (answer if isinstance(answer, tuple) else None) == found


def test_numbers_between_floors_are_bounded_too():
    text = "{ [i] -> [1073741824*floor((1099511627776*i)/3)] : 0 <= i < 8 }"
    assert reach(PiecewiseLayout(text).value.pieces, (8,)) >= 2**30 * (2**40 * 7 // 3)


def test_modes_under_a_swizzle_keep_their_axes():
    layout = ComposedLayout(Swizzle(2, 1, 3), 0, CuteLayout((1, 2, 2, 2), (0, 4, 8, 1)))
    pieces = la.convert.to_piecewise(layout)
    assert [extent for _, extent in pieces.inputs] == [2, 2, 2]
    tensor = la.Tensor((1, 2, 2, 2), (8, 4, 2, 1), "f64")
    found, stated = (
        TensorMapProblem.of(tensor, (1, 2, 2, 2), one, arch="sm_90a", direction="load") for one in (pieces, layout)
    )
    assert (found.addresses() == stated.addresses()).all()
