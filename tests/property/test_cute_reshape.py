"""Slices, regrouping, tiles, partitions, coordinates and orders against enumeration."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st
from strided_judge import layouts, shapes

from layoutalg.cute import (
    ComposedLayout,
    CuteLayout,
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
    group,
    idx2crd,
    local_partition,
    local_tile,
    make_identity_layout,
    make_layout_like,
    make_ordered_layout,
    prepend,
    product_each,
    replace,
    select,
    slice_and_offset,
    take,
    thread_value_partition,
    unflatten,
    zipped_divide,
)
from layoutalg.cute import filter as drop_zeros
from layoutalg.cute import slice as keep
from layoutalg.cute.inttuple import IntTuple, flatten
from layoutalg.ground.errors import AdmissibilityError, RepresentabilityError

QUICK = settings(max_examples=60, deadline=None)


def natural(flat: tuple[tuple[int, int], ...]) -> list[tuple[int, ...]]:
    return [point[::-1] for point in itertools.product(*[range(extent) for extent, _ in flat[::-1]])]


@st.composite
def sliced(draw: st.DrawFn, low: int = -9) -> tuple[CuteLayout, object]:
    layout = draw(layouts(low=low))

    def coordinate(part: CuteLayout) -> object:
        kind = draw(st.integers(0, 3))
        if kind == 0:
            return None
        if kind == 1 or isinstance(part.shape, int):
            return draw(st.integers(0, part.size - 1))
        return tuple([coordinate(mode) for mode in part])

    return layout, coordinate(layout)


def fixed(coord: object, layout: CuteLayout) -> list[list[int]]:
    """Per leaf of the layout the digits that agree with the coordinate."""
    if coord is None:
        return [list(range(extent)) for extent, _ in layout.flat]
    if isinstance(coord, tuple):
        return [digits for entry, mode in zip(coord, layout, strict=True) for digits in fixed(entry, mode)]
    assert isinstance(coord, int)
    answer = []
    for extent, _ in layout.flat:
        coord, digit = divmod(coord, extent)
        answer.append([digit])
    return answer


@given(sliced(), st.integers(0, 2), st.integers(-5, 5))
@settings(max_examples=120, deadline=None)
def test_slices_are_restricted_tables(case: tuple[CuteLayout, object], bits: int, offset: int) -> None:
    layout, coord = case
    digits = fixed(coord, layout)
    strides = [stride for _, stride in layout.flat]
    points = [point[::-1] for point in itertools.product(*digits[::-1])]
    expected = [sum(c * d for c, d in zip(point, strides, strict=True)) for point in points]
    result = slice_and_offset(coord, layout)  # type: ignore[call-overload]
    assert isinstance(result, ComposedLayout)
    assert result.table().tolist() == expected
    assert [result(index) for index in range(result.size)] == expected
    assert keep(coord, layout) == result.base  # type: ignore[arg-type]
    dropped = dice(coord, layout)  # type: ignore[arg-type]
    assert dropped.size * result.size == layout.size
    assert (
        eval(repr(result), {"ComposedLayout": ComposedLayout, "CuteLayout": CuteLayout, "Swizzle": Swizzle}) == result
    )
    swizzle = Swizzle(bits, 0, 2)
    moved = slice_and_offset(coord, ComposedLayout(swizzle, offset, layout))  # type: ignore[call-overload]
    assert moved.table().tolist() == [swizzle(offset + value) for value in expected]


@given(layouts(), st.data())
@QUICK
def test_regrouping_keeps_the_function(layout: CuteLayout, data: st.DataObject) -> None:
    values = layout.table().tolist()
    begin = data.draw(st.integers(0, layout.rank - 1))
    end = data.draw(st.integers(begin + 1, layout.rank))
    grouped = group(layout, begin, end)
    assert grouped.table().tolist() == values
    assert list(grouped[begin]) == list(layout)[begin:end] if isinstance(layout.shape, tuple) else True
    assert list(take(layout, begin, end)) == list(layout)[begin:end]
    chosen = data.draw(st.permutations(range(layout.rank)))[: data.draw(st.integers(1, layout.rank))]
    assert list(select(layout, *chosen)) == [layout[mode] for mode in chosen]
    extra = CuteLayout(2, 7)
    assert list(append(layout, extra)) == [*layout, extra]
    assert list(prepend(layout, extra)) == [extra, *layout]
    assert append(layout, rank=layout.rank + 2).table().tolist() == values
    assert list(replace(layout, begin, extra)) == [*list(layout)[:begin], extra, *list(layout)[begin + 1 :]]
    flat = CuteLayout(tuple(e for e, _ in layout.flat), tuple(d for _, d in layout.flat))
    assert unflatten(flat, layout.shape) == layout
    identity = make_identity_layout(layout.shape)
    assert [layout(c) for c in map(group(identity, begin, end), range(layout.size))] == values


@given(layouts(), st.data())
@QUICK
def test_domain_offset_reads_from_the_coordinate_on(layout: CuteLayout, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, layout.size - 1))
    result = domain_offset(idx2crd(start, layout.shape), layout)
    first = [digits[0] for digits in fixed(start, layout)]
    points = natural(result.base.flat)
    strides = [stride for _, stride in layout.flat]
    for index, point in enumerate(points):
        assert result(index) == sum((a + b) * d for a, b, d in zip(first, point, strides, strict=True))
        assert all(a + b < e for a, b, (e, _) in zip(first, point, layout.flat, strict=True))


@given(st.data())
@QUICK
def test_tiles_and_partitions_hold_every_element_once(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    tile = tuple(data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)))
    counts = tuple(data.draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)))
    extents = tuple(a * b for a, b in zip(tile, counts, strict=True))
    strides = tuple(data.draw(st.lists(st.integers(-9, 20), min_size=rank, max_size=rank)))
    layout = CuteLayout(extents, strides)
    everything = sorted(layout.table().tolist())
    found: list[int] = []
    for coord in natural(tuple((count, 0) for count in counts)):
        part = local_tile(layout, tile, coord)
        for index, point in enumerate(natural(tuple((extent, 0) for extent in tile))):
            assert part(index) == layout(*[a + b * t for a, b, t in zip(point, coord, tile, strict=True)])
        found += part.table().tolist()
    assert sorted(found) == everything
    order = tuple(data.draw(st.permutations(range(rank))))
    threads = make_ordered_layout(tile, order)
    found = []
    for thread in range(threads.size):
        share = local_partition(layout, threads, thread)
        point = next(p for p in natural(tuple((e, 0) for e in tile)) if threads(*p) == thread)
        for index, coord in enumerate(natural(tuple((count, 0) for count in counts))):
            assert share(index) == layout(*[a + b * t for a, b, t in zip(point, coord, tile, strict=True)])
        found += share.table().tolist()
    assert sorted(found) == everything
    swizzle = Swizzle(2, 0, 2)
    moved = local_tile(ComposedLayout(swizzle, 3, layout), tile, 0)
    assert moved.table().tolist() == [swizzle(3 + v) for v in local_tile(layout, tile, 0).table().tolist()]


@given(st.permutations(range(4)), st.integers(1, 3), st.integers(-9, 20), st.integers(-9, 20))
@QUICK
def test_thread_values_hold_every_element_once(order: list[int], cut: int, a: int, b: int) -> None:
    base = make_ordered_layout((2, 3, 2, 2), tuple(order))
    thread_value = CuteLayout(
        (flatten(base.shape)[:cut], flatten(base.shape)[cut:]), (flatten(base.stride)[:cut], flatten(base.stride)[cut:])
    )
    layout = CuteLayout((6, 4), (a, b))
    try:
        composition(layout, thread_value)
    except RepresentabilityError:
        layout = CuteLayout(24, a)
    found: list[int] = []
    for thread in range(thread_value[0].size):
        part = thread_value_partition(layout, thread_value, thread)
        assert [part(v) for v in range(part.size)] == [
            layout(thread_value(thread, v)) for v in range(thread_value[1].size)
        ]
        found += part.table().tolist()
    assert sorted(found) == sorted(layout.table().tolist())
    large = CuteLayout((24, 3), (a, b))
    part = thread_value_partition(large, thread_value, 1, tiler=(24,))
    count = thread_value[1].size
    assert [part(i) for i in range(part.size)] == [
        large(thread_value(1, i % count), i // count) for i in range(3 * count)
    ]


@given(layouts(least=0), st.integers(-3, 80))
@QUICK
def test_coordinates_and_indices(layout: CuteLayout, index: int) -> None:
    if not 0 <= index < layout.size:
        for operation in (idx2crd, crd2idx):
            try:
                operation(index, layout.shape)
            except AdmissibilityError as error:
                assert error.diagnostic.code == "LA105"
            else:
                raise AssertionError((index, layout.shape))
        return
    natural_coordinate = idx2crd(index, layout.shape)
    assert crd2idx(natural_coordinate, layout.shape) == index
    assert crd2idx(natural_coordinate, layout.shape, layout.stride) == layout(index)
    assert crd2idx(index, layout.shape, layout.stride) == layout(index)
    flat = flatten(layout.shape)
    assert crd2crd(natural_coordinate, layout.shape, flat) == flatten(natural_coordinate)
    assert crd2crd(flatten(natural_coordinate), flat, layout.shape) == natural_coordinate


@given(shapes(), st.integers(1, 30))
@QUICK
def test_shapes(shape: IntTuple, divisor: int) -> None:
    steps = flatten(ceil_div(shape, divisor))
    if isinstance(shape, int):
        assert steps[0] * divisor >= shape > (steps[0] - 1) * divisor
    assert compatible(product_each(shape), shape) or isinstance(shape, int)
    assert compatible(CuteLayout(shape).size, shape)
    size = CuteLayout(shape).size
    for count in range(1, 13):
        try:
            spread = domain_distribute(shape, count)
        except AdmissibilityError:
            assert size % count
            continue
        values = spread.table().tolist()
        assert len(values) == count
        assert values == sorted(set(values))
        assert values[-1] < size
        zipped_divide(CuteLayout(shape), spread)


@given(layouts(low=0), st.data())
@QUICK
def test_compact_layouts_in_an_order(layout: CuteLayout, data: st.DataObject) -> None:
    like = make_layout_like(layout)
    assert make_layout_like(like) == like
    values = drop_zeros(like).table().tolist()
    assert sorted(values) == list(range(len(values)))
    pairs = [(d, e) for (_, d), (_, e) in zip(layout.flat, like.flat, strict=True)]
    assert all((d == 0) == (e == 0) for d, e in pairs)
    big = [(d, e) for (extent, d), (_, e) in zip(layout.flat, like.flat, strict=True) if extent > 1]
    assert all((a[1] < b[1]) for a in big for b in big if a[0] < b[0])
    flat = flatten(layout.shape)
    order = tuple(data.draw(st.permutations(range(len(flat)))))
    ordered = make_ordered_layout(flat, order)
    assert sorted(ordered.table().tolist()) == list(range(ordered.size))
    current = 1
    for position in sorted(range(len(flat)), key=lambda mode: order[mode]):
        assert ordered.flat[position][1] == current
        current *= flat[position]
