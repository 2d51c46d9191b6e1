"""Divides, products, and tilings: fixed values and refusals."""

from __future__ import annotations

import time

import pytest

from layoutalg.cute import (
    ComposedLayout,
    CuteLayout,
    Swizzle,
    blocked_product,
    composition,
    flat_divide,
    logical_divide,
    logical_product,
    make_identity_layout,
    make_layout_like,
    make_ordered_layout,
    raked_product,
    tile_to_shape,
    tiled_divide,
    zipped_divide,
    zipped_product,
)
from layoutalg.ground.errors import AdmissibilityError, MalformedError, RepresentabilityError
from layoutalg.notation import parse


def read(text: str) -> CuteLayout:
    layout = parse(text)
    assert isinstance(layout, CuteLayout)
    return layout


@pytest.mark.parametrize(
    ("text", "tile", "expected"),
    [
        ("16:3", "4:1", "(4,4):(3,12)"),
        ("16:3", "4:4", "(4,4):(12,3)"),
        ("16:3", "(2,2):(4,1)", "((2,2),(2,2)):((12,3),(6,24))"),
        ("(4,2,3):(2,1,8)", "4:2", "((2,2),(2,3)):((4,1),(2,8))"),
        ("24:1", "(2,3):(0,4)", "((2,3),(4,2)):((0,4),(1,12))"),
        ("(6,8):(1,10)", "6:1", "(6,8):(1,10)"),
        ("(0,4):(1,2)", "4:1", "(4,0):(0,0)"),
    ],
)
def test_logical_divide(text: str, tile: str, expected: str) -> None:
    assert str(logical_divide(read(text), read(tile))) == expected


def test_divides_by_mode() -> None:
    layout = read("(8,(4,2),5):(1,(8,32),64)")
    assert str(logical_divide(layout, (4, (2, None)))) == "((4,2),((2,2),2),5):((1,4),((8,16),32),64)"
    assert str(zipped_divide(layout, (4, 8))) == "((4,8),(2,1,5)):((1,8),(4,0,64))"
    assert str(zipped_divide(layout, (4, None))) == "((4,1),(2,(4,2),5)):((1,0),(4,(8,32),64))"
    assert str(tiled_divide(layout, (4, None))) == "((4,1),2,(4,2),5):((1,0),4,(8,32),64)"
    assert str(flat_divide(layout, (4, None))) == "(4,1,2,(4,2),5):(1,0,4,(8,32),64)"
    assert logical_divide(layout, None) == layout


def test_a_tiler_that_does_not_divide() -> None:
    with pytest.raises(AdmissibilityError) as caught:
        logical_divide(read("(6,4):(1,10)"), (4, 4))
    assert str(caught.value) == (
        "LA140 the tiler does not divide the layout\n"
        "  in     logical_divide((6,4):(1,10), <4,4>)\n"
        "  since  4:1 does not tile [0, 6): element 2 of tile 1 is 6, which falls outside\n"
        "  at     coordinate=(2, 1), element=6, size=6"
    )
    with pytest.raises(AdmissibilityError, match="element 2 of tile 0 is 8, which falls outside"):
        logical_divide(read("6:1"), read("4:4"))


def test_divides_that_are_no_layout() -> None:
    with pytest.raises(RepresentabilityError) as caught:
        logical_divide(read("(6,4):(1,10)"), 4)
    assert str(caught.value).startswith(
        "LA142 the divided layout is not a CuTe layout\n"
        "  in     logical_divide((6,4):(1,10), 4)\n"
        "         composition((6,4):(1,10), (4,6):(1,4))\n"
    )
    with pytest.raises(AdmissibilityError, match="LA133"):
        logical_divide(read("24:1"), read("(2,2):(1,1)"))
    with pytest.raises(AdmissibilityError, match="LA134"):
        logical_divide(read("24:1"), read("(2,2):(2,3)"))
    with pytest.raises(AdmissibilityError, match="LA140"):
        logical_divide(read("24:1"), read("4:-1"))
    with pytest.raises(AdmissibilityError, match="LA131"):
        logical_divide(read("24:1"), 0)


@pytest.mark.parametrize("bad", ["4", 4.0, True, [4], (4, (2, "x")), -1, (1, 1, 1), CuteLayout])
def test_malformed_tilers(bad: object) -> None:
    for operation in (logical_divide, zipped_divide, tiled_divide, flat_divide):
        with pytest.raises(MalformedError, match="LA141"):
            operation(read("(8,4):(1,8)"), bad)  # type: ignore[arg-type]
    for multiply in (logical_product, zipped_product):
        with pytest.raises(MalformedError, match="LA141"):
            multiply(read("(8,4):(1,8)"), bad)  # type: ignore[arg-type]
    nested: object = 1
    for _ in range(70):
        nested = (nested,)
    with pytest.raises(MalformedError, match="may nest at most 64 deep"):
        logical_divide(read("(8,4):(1,8)"), nested)  # type: ignore[arg-type]


def test_a_tuple_needs_an_entry_for_each_mode() -> None:
    with pytest.raises(MalformedError, match="LA141"):
        composition(read("(8,4,2):(1,8,32)"), (4,))


@pytest.mark.parametrize(
    ("block", "tiler", "expected"),
    [
        ("4:1", "3:1", "(4,3):(1,4)"),
        ("(2,2):(4,1)", "6:1", "((2,2),(2,3)):((4,1),(2,8))"),
        ("(2,2):(4,1)", "(4,2):(2,1)", "((2,2),(4,2)):((4,1),(8,2))"),
        ("4:1", "(2,3):(0,2)", "(4,(2,3)):(1,(0,8))"),
        ("(2,4):(0,1)", "3:1", "((2,4),3):((0,1),4)"),
        ("4:1", "0:1", "(4,0):(1,0)"),
    ],
)
def test_logical_product(block: str, tiler: str, expected: str) -> None:
    assert str(logical_product(read(block), read(tiler))) == expected


def test_products_by_mode_and_ranks() -> None:
    assert str(logical_product(read("(2,5):(5,1)"), (3, None))) == "((2,3),5):((5,1),1)"
    assert str(logical_product(read("4:1"), 3)) == "(4,3):(1,4)"
    assert str(zipped_product(read("(4,8,3):(1,4,32)"), (2, 3))) == "((4,8),(2,3,3)):((1,4),(4,1,32))"
    assert str(raked_product(read("4:1"), read("(2,3):(3,1)"))) == "((2,4),(3,1)):((12,1),(4,0))"
    assert str(blocked_product(read("4:1"), read("(2,3):(3,1)"))) == "((4,2),(1,3)):((1,12),(0,4))"
    assert str(blocked_product(read("4:1"), 2)) == "((4,2)):((1,4))"


def test_products_that_are_refused() -> None:
    with pytest.raises(AdmissibilityError, match="LA120"):
        logical_product(read("4:1"), read("3:-1"))
    with pytest.raises(AdmissibilityError, match="LA133"):
        logical_product(read("(2,2):(1,1)"), 3)
    with pytest.raises(RepresentabilityError, match="LA151"):
        logical_product(read("2:2"), read("3:1"))
    with pytest.raises(AdmissibilityError, match="LA150"):
        logical_product(CuteLayout(2**40), CuteLayout(2**30))
    with pytest.raises(MalformedError, match="LA141"):
        blocked_product(read("4:1"), (2, 2))  # type: ignore[arg-type]


def test_tile_to_shape() -> None:
    tile = read("(8,64):(64,1)")
    assert str(tile_to_shape(tile, (128, 128))) == "(128,(64,2)):(64,(1,8192))"
    assert str(tile_to_shape(tile, (128, 128), (1, 0))) == "((8,16),(64,2)):((64,1024),(1,512))"
    assert str(tile_to_shape(tile, (16, 128, 3))) == "(16,(64,2),3):(64,(1,1024),2048)"
    assert str(tile_to_shape(read("4:1"), 12)) == "12:1"
    with pytest.raises(AdmissibilityError) as caught:
        tile_to_shape(tile, (100, 64))
    assert str(caught.value) == (
        "LA152 the tile does not divide the shape\n"
        "  in     tile_to_shape((8,64):(64,1), (100,64))\n"
        "  since  mode 0: 100 is not a multiple of 8; element 4 of tile 12 is 100, which falls outside\n"
        "  at     mode=0, element=100, extent=100, tile=8"
    )
    swizzled = tile_to_shape(ComposedLayout(Swizzle(3, 3, 3), 0, tile), (16, 128))
    assert str(swizzled) == "Sw<3,3,3> o 0 o (16,(64,2)):(64,(1,1024))"
    for shape in (64, (8,), (8, -64), (8, "x")):
        with pytest.raises(MalformedError):
            tile_to_shape(tile, shape)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA153"):
        tile_to_shape(tile, (16, 64), (0, 1, 2))
    with pytest.raises(AdmissibilityError, match="LA131"):
        tile_to_shape(read("0:1"), 4)


def test_compact_layouts_in_an_order() -> None:
    assert str(make_ordered_layout((3, 4, 5), (2, 0, 1))) == "(3,4,5):(20,1,4)"
    assert str(make_ordered_layout((3, (2, 2)), (1, (5, 4)))) == "(3,(2,2)):(1,(6,3))"
    assert str(make_ordered_layout((3, (2, 2)), 7)) == "(3,(2,2)):(1,(3,6))"
    assert str(make_ordered_layout((3, 1, 4), (0, 0, 1))) == "(3,1,4):(1,3,3)"
    with pytest.raises(AdmissibilityError, match="LA154"):
        make_ordered_layout((2, 2), (1, 1))
    with pytest.raises(MalformedError, match="LA153"):
        make_ordered_layout((2, 2), (1, 1, 1))
    with pytest.raises(MalformedError, match="LA103"):
        make_ordered_layout((2, -2), (0, 1))
    assert str(make_layout_like(read("(2,2,2,2):(0,2,4,1)"))) == "(2,2,2,2):(0,2,4,1)"
    assert str(make_layout_like(read("(2,3,4,5):(0,42,1,0)"))) == "(2,3,4,5):(0,4,1,0)"


def test_large_domains_take_milliseconds() -> None:
    huge = CuteLayout((2**20, 2**20), (2**20, 1))
    start = time.process_time()
    assert str(zipped_divide(huge, (2**7, 2**9))) == "((128,512),(8192,2048)):((1048576,1),(134217728,512))"
    assert str(logical_product(CuteLayout((2**10, 2**10), (2**10, 1)), CuteLayout((2**10, 2**10)))) == (
        "((1024,1024),(1024,1024)):((1024,1),(1048576,1073741824))"
    )
    assert tile_to_shape(CuteLayout((8, 64), (64, 1)), (2**20, 2**20)).size == 2**40
    assert zipped_divide(make_identity_layout((2**20, 2**20)), (128, 64))(8191, 5) == (127 + 640, 63)
    with pytest.raises(AdmissibilityError):
        logical_divide(huge, (3, 1))
    with pytest.raises(RepresentabilityError):
        logical_divide(CuteLayout((3 * 2**18, 2**20), (1, 2**21)), 2**20)
    assert time.process_time() - start < 0.5
