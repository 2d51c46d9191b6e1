"""Tables compose with layouts of every family and have one-sided inverses: against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.listed import ListedLayout, listed


def flat(value):
    """The values of a layout or an array at 0, 1, ..."""
    if isinstance(value, np.ndarray | list):
        return [int(entry) for entry in np.asarray(value).reshape(-1, order="F")]
    return [int(entry) for entry in np.asarray(value.table()).reshape(-1)]


def extents_of(rng, size):
    """Extents of a shape of that many elements."""
    found = []
    while size > 1:
        part = rng.choice([part for part in range(2, size + 1) if size % part == 0])
        found.append(part)
        size //= part
    return tuple(found) or (1,)


def layout_of(rng, size, below):
    """A layout of ``size`` points with values below ``below``, of some family, or None."""
    shape = extents_of(rng, size)
    strides = tuple(rng.randrange(max(1, below // size + 1)) if rng.random() < 0.3 else 0 for _ in shape)
    if rng.random() < 0.6 and below >= size:
        strides, step = [], 1
        for extent in shape:
            strides.append(step)
            step *= extent
    cute = la.CuteLayout(shape, tuple(strides))
    if max(flat(cute)) >= below:
        return None
    to = rng.choice([None, None, la.convert.to_integer, la.convert.to_piecewise, la.convert.to_linear])
    try:
        return cute if to is None else to(cute)
    except la.LayoutError:
        return cute


@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_compositions_are_those_of_enumeration(rng):
    outer_size, inner_size = rng.choice((4, 6, 8, 12, 16)), rng.choice((1, 2, 4, 6, 8))
    values = [rng.randrange(40) for _ in range(outer_size)]
    array = np.array(values).reshape(extents_of(rng, outer_size), order="F")
    outer = rng.choice([array, listed(array), array.tolist()])
    inner = layout_of(rng, inner_size, outer_size) or listed([rng.randrange(outer_size) for _ in range(inner_size)])
    wanted = [values[at] for at in flat(inner)]
    found = la.compose(outer, inner)
    assert isinstance(found, ListedLayout)
    assert flat(found) == wanted
    assert flat(la.compose(outer, inner, widen=True)) == wanted
    assert flat(listed(array) @ inner) == flat(listed(array).then(la.CuteLayout(64))) or flat(found) == wanted
    # the other way round: a layout after a table of its coordinates
    whole = layout_of(rng, outer_size, 64) or la.CuteLayout(outer_size, 3)
    points = np.array([rng.randrange(outer_size) for _ in range(12)]).reshape(3, 4)
    wanted = [flat(whole)[at] for at in flat(points)]
    after = la.compose(whole, points)
    assert after.extents == (3, 4)
    assert [[after(i, j) for j in range(4)] for i in range(3)] == np.array(wanted).reshape(3, 4, order="F").tolist()
    assert [after(at) for at in range(12)] == wanted
    assert flat(after) == wanted
    assert flat(la.compose(whole, points, widen=True)) == wanted
    assert flat(whole @ listed(points)) == wanted


@settings(max_examples=20, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_swizzles_compose_with_tables(rng):
    swizzle = la.Swizzle(rng.randrange(1, 3), rng.randrange(3), rng.choice((2, 3)))
    table = np.array([rng.randrange(200) for _ in range(64)]).reshape(8, 8)
    assert flat(la.compose(swizzle, table)) == [swizzle(value) for value in flat(table)]
    assert flat(la.compose(table, swizzle)) == [flat(table)[swizzle(at)] for at in range(64)]


@settings(max_examples=60, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_inverses_are_those_of_enumeration(rng):
    size = rng.choice((1, 2, 4, 6, 9, 12))
    values = rng.sample(range(size + rng.choice((0, 0, 5))), size)
    if rng.random() < 0.3:  # not injective
        values = [rng.randrange(size) for _ in range(size)]
    array = np.array(values).reshape(extents_of(rng, size), order="F")
    given = rng.choice([array, listed(array), array.tolist()])
    for widen in (False, True):
        left = flat(la.left_inverse(given, widen=widen))
        assert all(values[left[value]] == value for value in values)
        if len(set(values)) == size:
            assert [left[value] for value in values] == list(range(size))
        if 0 not in values:
            with pytest.raises(la.AdmissibilityError, match="LA131"):
                la.right_inverse(given, widen=widen)
            continue
        right = flat(la.right_inverse(given, widen=widen))
        assert [values[at] for at in right] == list(range(len(right)))
        if not widen:
            assert len(left) == max(values) + 1
            assert len(right) == next(value for value in range(size + 6) if value not in values)


@settings(max_examples=20, deadline=None)
@given(rng=st.randoms(use_true_random=False))
def test_a_table_is_divided_by_a_tile(rng):
    values = rng.sample(range(100), 24)
    tile = rng.choice([la.CuteLayout(4, 1), la.CuteLayout(3, 2), la.CuteLayout((2, 3), (1, 4)), la.CuteLayout(2, 12)])
    rest = la.cute.complement(tile, 24)
    wanted = [values[at] for at in flat(la.cute.make_layout(tile, rest))]
    found = la.logical_divide(np.array(values).reshape(4, 6, order="F"), tile)
    assert (flat(found), found.extents) == (wanted, (tile.size, rest.size))
    assert flat(la.logical_divide(values, tile, widen=True)) == wanted


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: la.compose([0, 1], la.CuteLayout(4)), "LA651"),
        (lambda: la.compose(la.CuteLayout(2), [[0, 5]]), "LA651"),
        (lambda: la.compose([0, 1], la.CuteLayout(4), widen=True), "LA651"),
        (lambda: la.compose([[0.5]], la.CuteLayout(1)), "LA802"),
        (lambda: la.compose(np.zeros((0, 2), int), la.CuteLayout(1)), "LA802"),
        (lambda: la.compose([0, 1], 2), "LA192"),
        (lambda: la.compose([0], la.CuteLayout(2**40, 0)), "LA653"),
        (lambda: la.left_inverse([0, 2**40]), "LA653"),
        (lambda: la.left_inverse(ListedLayout((2,), (-1, 0))), "LA649"),
        (lambda: la.right_inverse([1, 2]), "LA131"),
        (lambda: la.logical_divide([0, 1, 2, 3], [0, 1]), "LA652"),
        (lambda: la.cute.complement(listed([0, 1]), 4), "LA192"),
    ],
)
def test_what_a_table_does_not_do_is_refused(call, code):
    with pytest.raises(la.LayoutError, match=code):
        call()


def test_outputs_meet_the_dimensions_of_a_table_by_name_or_in_order():
    table = np.arange(12).reshape(3, 4) * 7 % 12
    named = la.LinearLayout.from_bases({"i": [(0, 1), (1, 0), (0, 2)]}, {"dim0": 2, "dim1": 4})
    points = [named.apply({"i": np.array([at])}) for at in range(8)]
    wanted = [int(table[int(point["dim0"][0]), int(point["dim1"][0])]) for point in points]
    assert flat(la.compose(table, named)) == wanted
    assert flat(la.compose(table, named, widen=True)) == wanted
