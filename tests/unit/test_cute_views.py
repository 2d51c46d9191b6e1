"""Recasts, slices, partitions, coordinates, common layouts and coordinate layouts: fixed values and refusals."""

from __future__ import annotations

import time

import pytest

from layoutalg.cute import (
    Basis,
    ComposedLayout,
    CoordinateLayout,
    CuteLayout,
    E,
    Swizzle,
    append,
    ceil_div,
    compatible,
    composition,
    crd2crd,
    crd2idx,
    dice,
    domain_distribute,
    domain_offset,
    downcast,
    group,
    idx2crd,
    local_partition,
    local_tile,
    make_identity_layout,
    max_alignment,
    max_common_layout,
    max_common_vector,
    nullspace,
    recast,
    replace,
    select,
    shift,
    slice_and_offset,
    take,
    thread_value_partition,
    unflatten,
    upcast,
)
from layoutalg.cute import slice as keep
from layoutalg.ground.errors import AdmissibilityError, LayoutError, MalformedError, RepresentabilityError
from layoutalg.notation import parse


def read(text: str) -> CuteLayout:
    layout = parse(text)
    assert isinstance(layout, CuteLayout)
    return layout


@pytest.mark.parametrize(
    ("text", "factor", "expected"),
    [
        ("(8,4):(1,16)", 4, "(2,4):(1,4)"),
        ("(2,4):(4,1)", 2, "(2,2):(2,1)"),
        ("(2,4):(1,2)", 4, "(1,2):(1,1)"),
        ("(2,3,2):(1,2,6)", 12, "(1,1,1):(1,1,1)"),
        ("(4,2):(1,0)", 2, "(2,2):(1,0)"),
        ("(4,2):(1,-8)", 4, "(1,2):(1,-2)"),
        ("(0,2):(1,3)", 2, "(0,2):(0,0)"),
    ],
)
def test_upcast(text: str, factor: int, expected: str) -> None:
    assert str(upcast(read(text), factor)) == expected


@pytest.mark.parametrize(
    ("text", "factor", "detail"),
    [
        ("3:1", 2, "the mode 3:1 must fill 2 places of an element, but neither of 3 and 2 divides the other"),
        ("(3,2):(1,3)", 4, "stride 3"),
        ("4:2", 4, "no mode reaches offset 1 of the new element 0"),
        ("4:-1", 2, "a negative stride cannot be inside an element"),
        ("(2,2):(1,1)", 2, "a second mode has it"),
        ("4:0", 2, "offset 1"),
        ("(2,2,2):(1,8,3)", 2, "stride 3 is not a multiple of 2 and not part of an element"),
    ],
)
def test_upcast_refuses_elements_filled_in_part(text: str, factor: int, detail: str) -> None:
    with pytest.raises(RepresentabilityError, match="LA161") as caught:
        upcast(read(text), factor)
    if text != "(3,2):(1,3)":
        assert detail in str(caught.value)


def test_recasts() -> None:
    with pytest.raises(RepresentabilityError, match="LA162"):
        downcast(read("4:2"), 2)
    assert str(recast(read("(8,3):(1,8)"), 6, 8)) == "(6,3):(1,6)"
    for bad in (0, -1, 2.0, True):
        with pytest.raises(MalformedError, match="LA160"):
            upcast(read("4:1"), bad)  # type: ignore[arg-type]
    assert max_alignment(read("(4,2):(1,0)")) == 4
    assert max_alignment(read("1:0")) == 1
    with pytest.raises(AdmissibilityError, match="LA163"):
        max_alignment(read("0:1"))


def test_slices() -> None:
    layout = read("(4,(2,3)):(6,(3,1))")
    assert str(keep((1, None), layout)) == "((2,3)):((3,1))"
    assert str(keep((None, (None, 2)), layout)) == "(4,2):(6,3)"
    assert keep(None, layout) == layout
    assert str(keep((1, 2), layout)) == "():()"
    assert str(slice_and_offset((1, (None, 2)), layout)) == "8 + (2):(3)"
    assert dice((None, 1), layout) == read("((2,3)):((3,1))")
    with pytest.raises(MalformedError, match=r"LA156[\s\S]*\(1,2,_\) has 3 entries; \(4,\(2,3\)\) has 2 modes"):
        keep((1, 2, None), layout)
    with pytest.raises(AdmissibilityError) as caught:
        keep((4, None), layout)
    assert str(caught.value) == (
        "LA157 the coordinate lies outside the layout\n"
        "  in     slice((4,_), (4,(2,3)):(6,(3,1)))\n"
        "  since  4 is not in [0, 4), the extent of 4\n"
        "  at     coordinate=4, size=4"
    )
    for bad in (True, 1.0, "1", (1.0, None)):
        with pytest.raises(MalformedError):
            keep(bad, layout)  # type: ignore[arg-type]
    decayed = slice_and_offset((1, None), ComposedLayout(Swizzle(3, 4, 3), 0, read("(10,2):(2,1)")))
    assert str(decayed) == "Sw<3,4,3> o 2 o (2):(1)"


def test_offset_layouts() -> None:
    tile = shift(read("(4,2):(8,1)"), 16)
    assert (tile.shape, tile.size, tile.rank, str(tile[1]), len(list(tile))) == ((4, 2), 8, 2, "16 + 2:1", 2)
    assert tile.apply((3, 1)) == 41
    for bad in ((read("4:1"), 1.0), (read("4:1"), True), ("4:1", 1)):
        with pytest.raises(MalformedError, match="LA113"):
            shift(*bad)
    with pytest.raises(MalformedError, match="LA102"):
        shift(read("4:1"), 2**63 - 2)
    assert str(domain_offset((1, 2), read("(4,8):(8,1)"))) == "10 + (3,6):(8,1)"


def test_tiles_and_partitions() -> None:
    layout = read("(64,32):(1,64)")
    assert str(local_tile(layout, (16, 8), 6)) == "544 + (16,8):(1,64)"
    assert str(local_tile(layout, (16, 8), (1,))) == "16 + (16,8,4):(1,64,512)"
    assert str(local_tile(layout, (16, 4, 8), (1, 0, 2), keep=(1, None, 1))) == "1040 + (16,8):(1,64)"
    swizzled = ComposedLayout(Swizzle(3, 3, 3), 0, layout)
    assert str(local_tile(swizzled, (16, 8), (1, 2))) == "Sw<3,3,3> o 1040 o (16,8):(1,64)"
    with pytest.raises(MalformedError, match="LA176"):
        local_tile(layout, (16, 8), (1, 2, 3))
    with pytest.raises(MalformedError, match="LA176"):
        local_tile(layout, (16, 8), (1, 2), keep=(1, None, 1))
    with pytest.raises(AdmissibilityError, match="LA157"):
        local_tile(layout, (16, 8), (4, 0))
    with pytest.raises(AdmissibilityError, match="LA140"):
        local_tile(layout, (24, 8), (0, 0))
    assert str(local_partition(layout, read("(8,4):(4,1)"), 6)) == "129 + (8,8):(8,256)"
    assert str(local_partition(read("64:3"), read("8:1"), 5)) == "15 + (8):(24)"
    with pytest.raises(AdmissibilityError, match=r"LA177[\s\S]*never takes the value 32"):
        local_partition(layout, read("(8,4):(4,1)"), 32)
    with pytest.raises(AdmissibilityError, match="LA133"):
        local_partition(layout, read("(8,4):(1,0)"), 0)
    accumulator = read("((4,8),(2,2)):((32,1),(16,8))")
    assert str(thread_value_partition(read("(16,8):(8,1)"), accumulator, 5)) == "10 + ((2,2)):((1,64))"
    with pytest.raises(MalformedError, match="LA178"):
        thread_value_partition(layout, read("8:1"), 0)


def test_rearranging_modes() -> None:
    layout = read("(2,3,5,7):(1,2,6,30)")
    assert str(group(layout, 1, 3)) == "(2,(3,5),7):(1,(2,6),30)"
    assert str(select(layout, 2, 0)) == "(5,2):(6,1)"
    assert str(unflatten(layout, ((0, 0), (0, 0)))) == "((2,3),(5,7)):((1,2),(6,30))"
    assert str(append(read("4:1"), rank=3)) == "(4,1,1):(1,0,0)"
    swizzled = ComposedLayout(Swizzle(1, 0, 1), 4, layout)
    assert str(group(swizzled, 0, 2)) == "Sw<1,0,1> o 4 o ((2,3),5,7):((1,2),6,30)"
    for begin, end in ((2, 2), (-1, 2), (0, 5), (0, 1.0)):
        with pytest.raises(MalformedError, match="LA155"):
            group(layout, begin, end)  # type: ignore[arg-type]
        with pytest.raises(MalformedError, match="LA155"):
            take(layout, begin, end)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA155"):
        select(layout, 1, 1)
    with pytest.raises(MalformedError, match="LA107"):
        select(layout, 4)
    with pytest.raises(MalformedError, match="LA107"):
        replace(layout, 4, layout)
    with pytest.raises(MalformedError, match="LA155"):
        unflatten(layout, (0, 0))
    with pytest.raises(MalformedError, match="LA155"):
        append(layout, rank=3)


def test_coordinates_past_the_end() -> None:
    for index, shape in ((40, (4, 8)), (-1, (4, 8)), (0, (4, 0))):
        with pytest.raises(AdmissibilityError, match="LA105"):
            idx2crd(index, shape)
        with pytest.raises(AdmissibilityError, match="LA105"):
            crd2idx(index, shape, (8, 1))
    assert idx2crd(0, ()) == ()
    assert crd2idx((), ()) == 0
    assert crd2crd((3, 5), (4, 8), 32) == 23
    with pytest.raises(MalformedError, match="LA158"):
        crd2crd(3, 8, 9)
    with pytest.raises(MalformedError, match="LA103"):
        crd2idx(0, (-4, 8))
    with pytest.raises(MalformedError, match="LA104"):
        crd2idx((1, 2, 3), (4, 8))


def test_shapes() -> None:
    assert ceil_div((6, 4), 4) == (2, 4)
    assert ceil_div((6, 4, 3), (4, 3)) == (2, 2, 3)
    assert ceil_div(((4, 4), 5), 32) == ((1, 1), 3)
    assert compatible((6, 4), ((2, 3), 4))
    assert not compatible((6, 4), ((2, 2), 4))
    for shape, divisor in ((10, 0), (-1, 2), ((4,), (2, 2)), (4.0, 2)):
        with pytest.raises(MalformedError):
            ceil_div(shape, divisor)  # type: ignore[arg-type]


def test_common_layouts() -> None:
    assert str(max_common_layout(read("(4,8):(8,1)"), read("(4,4):(16,1)"))) == "4:4"
    assert str(max_common_layout(read("8:1"), read("(4,2):(1,8)"))) == "4:1"
    assert max_common_vector(read("4:2"), read("4:1")) == 1
    huge = CuteLayout((2**20, 2**20), (2**20, 1))
    assert max_common_vector(huge, CuteLayout((2**20, 2**10), (2**21, 1))) == 2**10
    with pytest.raises(AdmissibilityError, match="LA165"):
        max_common_layout(read("0:1"), read("4:1"))
    assert str(nullspace(read("(4,2,3):(0,1,0)"))) == "(4,3):(1,8)"
    with pytest.raises(AdmissibilityError, match="LA165"):
        nullspace(read("0:1"))
    assert str(domain_distribute((15, 14), 6)) == "(3,2):(1,15)"
    with pytest.raises(AdmissibilityError, match="LA167"):
        domain_distribute((15, 14), 4)
    with pytest.raises(MalformedError, match="LA166"):
        domain_distribute((15, 0), 4)


def test_basis_elements() -> None:
    assert str(2 * E(0) + E(1, 0) - E(0)) == "E0+E(1,0)"
    assert str(-E(1)) == "-E1"
    assert str(Basis()) == "0"
    assert E(0) - E(0) == Basis()
    assert eval(repr(3 * E(1, 2)), {"Basis": Basis}) == 3 * E(1, 2)
    for bad in ((((0,), 1.0),), ((0, 1),), (((-1,), 1),), [((0,), 1)], (((0,), True),)):
        with pytest.raises(MalformedError, match="LA170"):
            Basis(bad)  # type: ignore[arg-type]


def test_coordinate_layouts() -> None:
    identity = make_identity_layout((4, (2, 3)))
    assert str(identity) == "(4,(2,3)):(E0,(E(1,0),E(1,1)))"
    assert make_identity_layout(8)(5) == 5
    layout = CoordinateLayout((4, 8), (E(1), 0), (0, 0))
    assert layout(3, 7) == (0, 3)
    assert str(layout[0]) == "4:E1"
    for shape, stride, profile in (
        ((4, 8), (E(1),), None),
        ((4, 8), (E(1), 2), None),
        ((4, 8), (E(1), E(1, 0)), None),
        ((4, 8), (E(1), E(2)), (0, 0)),
        (4, (E(0),), None),
    ):
        with pytest.raises(MalformedError, match="LA170"):
            CoordinateLayout(shape, stride, profile)
    assert str(read("(4,8):(1,4)") @ CoordinateLayout((4, 2), (E(1), 2 * E(0)))) == "(4,2):(4,2)"
    assert str(composition(read("(4,8):(1,4)"), CoordinateLayout(3, E(0) + E(1)))) == "3:5"
    swizzled = ComposedLayout(Swizzle(1, 0, 1), 2, read("(4,8):(1,4)"))
    assert str(swizzled @ CoordinateLayout((8, 4), (E(1), E(0)))) == "Sw<1,0,1> o 2 o (8,4):(4,1)"
    with pytest.raises(MalformedError, match="LA171"):
        composition(read("(4,8):(1,4)"), CoordinateLayout(2, E(2)))
    with pytest.raises(AdmissibilityError, match="LA120"):
        composition(read("(4,8):(1,4)"), CoordinateLayout(5, E(0)))
    with pytest.raises(RepresentabilityError, match="LA172"):
        make_identity_layout((6, 4)) @ read("4:2")
    with pytest.raises(LayoutError, match="LA120"):
        make_identity_layout((6, 4)) @ read("25:1")


def test_large_domains_take_milliseconds() -> None:
    huge = CuteLayout((2**20, 2**20), (2**20, 1))
    start = time.process_time()
    assert str(upcast(huge, 8)) == "(1048576,131072):(131072,1)"
    assert str(recast(huge, 16, 32)) == "(1048576,524288):(524288,1)"
    assert max_alignment(huge) == 2**40
    assert max_alignment(CuteLayout((2**20, 2**20), (2**21, 1))) == 2**20
    assert local_tile(huge, (128, 64), (8191, 5))(127, 63) == huge(2**20 - 1, 383)
    assert local_partition(huge, read("(32,8):(8,1)"), 255)(0) == huge(31, 7)
    assert (make_identity_layout((2**20, 2**20)) @ CuteLayout((2**10, 2**20), (2**30, 2**10)))(5, 7) == (
        7 * 2**10,
        5 * 2**10,
    )
    assert str(nullspace(CuteLayout((2**20, 2**20), (0, 1)))) == "1048576:1"
    assert time.process_time() - start < 0.5
