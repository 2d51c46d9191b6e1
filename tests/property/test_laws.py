"""The laws of the algebra over the public strategies; enumeration is the judge."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

import layoutalg as la
from layoutalg import cute
from layoutalg.proofs.tensormap import check
from layoutalg.synth import InadmissibleError, synthesize_tensormap
from layoutalg.testing import strategies as ours


def refused(call):
    """Run an operation; a refusal is no counterexample."""
    try:
        return call()
    except la.LayoutError:
        assume(False)


@given(ours.cute_layouts())
def test_notation_and_pickle_round_trip(layout):
    assert la.parse(str(layout)) == layout
    assert eval(repr(layout), {"CuteLayout": la.CuteLayout}) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout


@given(ours.composed_layouts())
def test_composed_layouts_round_trip(layout):
    assert la.parse(str(layout)) == layout
    assert np.array_equal(layout.table(), layout.apply(np.arange(layout.size)))


@given(ours.cute_layouts())
def test_coalesce_keeps_the_function_and_is_idempotent(layout):
    flat = cute.coalesce(layout)
    assert np.array_equal(flat.table(), layout.table())
    assert flat.depth <= 1
    assert cute.coalesce(flat) == flat


@given(ours.cute_layouts(), ours.cute_layouts())
def test_coalesced_forms_are_equal_exactly_where_functions_are(one, two):
    same = one.size == two.size and np.array_equal(one.table(), two.table())
    assert (cute.coalesce(one) == cute.coalesce(two)) == same
    assert bool(la.equivalent(one, two)) == same


@given(ours.admissible_pairs())
def test_composition_is_composition_of_functions(pair):
    outer, inner = pair
    composed = refused(lambda: cute.composition(outer, inner))
    assert np.array_equal(composed.table(), outer.table()[inner.table()])
    assert composed == outer @ inner == inner.then(outer)


@given(ours.cute_layouts())
def test_identity_is_neutral(layout):
    identity = la.CuteLayout(layout.shape)
    assert np.array_equal(cute.composition(layout, identity).table(), layout.table())


@given(ours.cute_layouts(strides=st.integers(0, 40)), st.integers(1, 200))
def test_complement_disjoint_and_fills(layout, bound):
    rest = refused(lambda: cute.complement(layout, bound))
    seen = layout.table()[:, None] + rest.table()[None, :]
    kept = np.unique(layout.table()).size * rest.size
    assert np.unique(seen).size == kept
    assert set(range(bound)) <= set(seen.reshape(-1).tolist())
    assert np.all(np.diff(rest.table()) > 0)


@given(ours.cute_layouts())
def test_right_inverse(layout):
    inverse = refused(lambda: cute.right_inverse(layout))
    assert np.array_equal(layout.table()[inverse.table()], np.arange(inverse.size))


@given(ours.cute_layouts(strides=st.integers(0, 40)))
def test_left_inverse(layout):
    inverse = refused(lambda: cute.left_inverse(layout))
    back = inverse.apply(layout.table())
    assert np.array_equal(layout.apply(back), layout.table())


@given(ours.cute_layouts(strides=st.integers(0, 40)), st.integers(1, 12))
def test_logical_divide_covers_the_layout_tile_by_tile(layout, tile):
    divided = refused(lambda: cute.logical_divide(layout, tile))
    assert sorted(divided.table().tolist()) == sorted(layout.table().tolist())
    assert np.array_equal(divided.table()[:tile], layout.table()[:tile])


@given(ours.cute_layouts(strides=st.integers(0, 12)), ours.cute_layouts(max_leaves=2, strides=st.integers(0, 6)))
def test_logical_product_repeats_the_block(block, tiler):
    product = refused(lambda: cute.logical_product(block, tiler))
    first = product.table()[: block.size]
    assert np.array_equal(first, block.table())
    blocks = product.table().reshape(tiler.size, block.size)
    assert np.array_equal(blocks - blocks[:, :1], np.tile(first - first[0], (tiler.size, 1)))


@given(ours.swizzles(), st.integers(0, 2**16))
def test_a_swizzle_is_an_involution(swizzle, value):
    assert swizzle(swizzle(value)) == value


@given(ours.cute_layouts())
def test_every_bridge_is_the_same_function_or_refused(layout):
    linear = refused(lambda: la.convert.to_linear(layout))
    assert np.array_equal(linear.table(), layout.table())
    back = la.convert.to_cute(linear)
    assert np.array_equal(back.table(), layout.table())


@given(ours.linear_layouts())
def test_linear_layouts_round_trip(layout):
    assert la.parse(str(layout)) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout


@given(ours.linear_layouts(invertible=True))
def test_invertible_maps_invert(layout):
    table = layout.table()
    assert np.array_equal(layout.inverse().table()[table], np.arange(table.size))
    assert layout.rank == layout.in_bits


@given(ours.tensormap_problems())
def test_problems_are_planned_and_proved_or_refused_with_rules(document):
    try:
        plan = synthesize_tensormap(document, repair=False)
    except InadmissibleError as error:
        assert error.violations
    else:
        assert isinstance(check(plan), la.Proved)
