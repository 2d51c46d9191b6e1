"""Coordinate layouts against enumeration."""

from __future__ import annotations

import pickle

from hypothesis import given, settings
from hypothesis import strategies as st
from strided_judge import is_strided, layouts, shapes

from layoutalg import cute
from layoutalg.cute import (
    Basis,
    CoordinateLayout,
    CuteLayout,
    E,
    composition,
    idx2crd,
    make_identity_layout,
    right_inverse,
)
from layoutalg.cute.inttuple import IntTuple, flatten
from layoutalg.ground.errors import LayoutError, RepresentabilityError

QUICK = settings(max_examples=60, deadline=None)


@given(shapes(), st.data())
@QUICK
def test_identity_layouts(shape: IntTuple, data: st.DataObject) -> None:
    identity = make_identity_layout(shape)
    for index in range(identity.size):
        assert identity(index) == idx2crd(index, shape)
    assert right_inverse(identity).table().tolist() == list(range(identity.size))
    names = {"CoordinateLayout": CoordinateLayout, "Basis": Basis}
    assert eval(repr(identity), names) == identity == pickle.loads(pickle.dumps(identity))
    rows = identity.table().reshape(identity.size, -1)
    assert [tuple(row) for row in rows.tolist()] == [flatten(identity(i)) for i in range(identity.size)]
    leaves = [flatten(identity(i)) for i in range(identity.size)]
    assert [identity.at(i) for i in range(identity.size)] == [leaf[0] if len(leaf) == 1 else leaf for leaf in leaves]


@st.composite
def coordinate_layouts(draw: st.DrawFn) -> CoordinateLayout:
    rank = draw(st.integers(1, 4))
    extents = tuple(draw(st.lists(st.integers(1, 4), min_size=rank, max_size=rank)))
    strides = []
    for _ in range(rank):
        stride = draw(st.integers(0, 3)) * E(draw(st.integers(0, 1)))
        if draw(st.integers(0, 3)) == 0:
            stride = stride + draw(st.integers(-2, 2)) * E(draw(st.integers(0, 1)))
        strides.append(stride)
    return CoordinateLayout(extents, tuple(strides), (0, 0))


@given(coordinate_layouts(), st.data())
@settings(max_examples=120, deadline=None)
def test_coordinate_layout_after_a_layout(outer: CoordinateLayout, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 2))
    room = outer.size - 1
    modes = []
    for _ in range(rank):
        extent = data.draw(st.integers(1, 6))
        step = data.draw(st.integers(0, room // max(1, extent - 1))) if extent > 1 else 0
        room -= step * (extent - 1)
        modes.append((extent, step))
    inner = CuteLayout(tuple(m[0] for m in modes), tuple(m[1] for m in modes))
    truth = [outer(index) for index in inner.table().tolist()]
    numbers = [x + 1000 * y for x, y in outer.table()[inner.table()].tolist()]
    weight, total, exists = 1, [0], True
    for extent, _ in inner.flat:
        run = numbers[::weight][:extent]
        exists = exists and is_strided(run)
        total = [p + q for q in run for p in total]
        weight *= extent
    exists = exists and total == numbers
    try:
        result = outer @ inner
    except RepresentabilityError:
        assert not exists, (outer, inner)
    else:
        assert exists, (outer, inner)
        assert [result(index) for index in range(result.size)] == truth


@given(coordinate_layouts(), st.data())
@settings(max_examples=120, deadline=None)
def test_layout_at_coordinates(coordinates: CoordinateLayout, data: st.DataObject) -> None:
    table = coordinates.table()
    if table.min() < 0:
        return
    strides = data.draw(st.lists(st.integers(-4, 12), min_size=4, max_size=4))
    tops = [int(top) + 1 for top in table.max(axis=0)]
    low = [data.draw(st.sampled_from(list(range(1, top + 1)))) for top in tops]
    shape = tuple([(a, -(-top // a)) for a, top in zip(low, tops, strict=True)])
    layout = CuteLayout(shape, ((strides[0], strides[1]), (strides[2], strides[3])))
    truth = [layout(int(x), int(y)) for x, y in table.tolist()]
    weight, total, exists = 1, [0], True
    for extent in flatten(coordinates.shape):
        run = truth[::weight][:extent]
        exists = exists and is_strided(run)
        total = [p + q for q in run for p in total]
        weight *= extent
    exists = exists and total == truth
    try:
        result = composition(layout, coordinates)
    except RepresentabilityError:
        assert not exists, (layout, coordinates)
    else:
        assert exists == isinstance(result, CuteLayout), (layout, coordinates)  # else behind a swizzle
        assert result.table().tolist() == truth
        assert result == layout @ coordinates


def test_a_layout_read_at_coordinates_without_a_number_is_constant() -> None:
    nowhere = CoordinateLayout((4, 8), (0, 0), ())
    assert str(CuteLayout(()) @ nowhere) == "(4,8):(0,0)"
    assert (CuteLayout(()) @ nowhere).table().tolist() == [0] * 32


@given(coordinate_layouts())
@QUICK
def test_right_inverse_of_coordinates(layout: CoordinateLayout) -> None:
    back = right_inverse(layout)
    for x in range(back[0].size):
        for y in range(back[1].size):
            assert layout(back(x, y)) == (x, y)


@given(layouts(low=0), st.lists(st.integers(0, 6), min_size=1, max_size=3))
@QUICK
def test_reading_through_the_identity_changes_nothing(layout: CuteLayout, other: list[int]) -> None:
    result = composition(layout, make_identity_layout(layout.shape))
    assert result.table().tolist() == layout.table().tolist()
    inner = CuteLayout(tuple(other))
    try:
        expected = composition(layout, inner)
        through = make_identity_layout(layout.shape) @ inner  # may not exist where the layout is constant
    except LayoutError:
        return
    assert composition(layout, through).table().tolist() == expected.table().tolist()


def test_rearranging_coordinate_layouts_keeps_every_leaf() -> None:
    """A mode of extent 1 moves nothing, but its stride is a leaf like the others."""
    layout = CoordinateLayout((1, (8, 2)), (E(1, 1), (E(0) * 2, E(1, 0))), (0, (0, 0)))
    flat = cute.flatten(layout)
    assert flat == CoordinateLayout((1, 8, 2), (E(1, 1), E(0) * 2, E(1, 0)), (0, (0, 0)))
    assert cute.unflatten(flat, layout.shape) == layout
    assert cute.select(layout, 1, 0) == CoordinateLayout(((8, 2), 1), ((E(0) * 2, E(1, 0)), E(1, 1)), (0, (0, 0)))
    assert cute.take(layout, 0, 1) == CoordinateLayout((1,), (E(1, 1),), (0, (0, 0)))
    assert cute.group(layout, 0, 2)[0] == layout
