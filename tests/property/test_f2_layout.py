"""Linear layouts against evaluation bit by bit."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from layoutalg.f2 import LinearLayout, image_of, kernel_of, parse_linear
from layoutalg.ground.errors import AdmissibilityError, MalformedError

NAMES = ("register", "lane", "warp", "x")
axes = st.permutations(NAMES).flatmap(
    lambda names: st.lists(st.integers(0, 3), max_size=3).map(lambda bits: tuple(zip(names, bits, strict=False)))
)


@st.composite
def layouts(draw: st.DrawFn, inputs: tuple[tuple[str, int], ...] | None = None) -> LinearLayout:
    ins = draw(axes) if inputs is None else inputs
    outs = draw(axes)
    top = (1 << sum(bits for _, bits in outs)) - 1
    count = sum(bits for _, bits in ins)
    columns = draw(st.lists(st.integers(0, top), min_size=count, max_size=count))
    return LinearLayout(ins, outs, tuple(columns), draw(st.integers(0, top)))


@st.composite
def invertible(draw: st.DrawFn) -> LinearLayout:
    """A product of elementary maps, so invertible by construction."""
    ins = draw(axes)
    count = sum(bits for _, bits in ins)
    columns = [1 << bit for bit in draw(st.permutations(range(count)))]
    if count > 1:
        for _ in range(draw(st.integers(0, 12))):
            a, b = draw(st.lists(st.integers(0, count - 1), min_size=2, max_size=2, unique=True))
            columns[a] ^= columns[b]
    return LinearLayout(ins, (("o", count),), tuple(columns), draw(st.integers(0, (1 << count) - 1)))


def evaluate(layout: LinearLayout, coords: dict[str, int]) -> dict[str, int]:
    """The definition, from the public bases and offset only."""
    answer = dict(layout.offset)
    for name, images in layout.bases.items():
        for bit, image in enumerate(images):
            if coords[name] >> bit & 1:
                for out, component in zip(answer, image, strict=True):
                    answer[out] ^= component
    return answer


def points(dims: dict[str, int]) -> list[dict[str, int]]:
    answer: list[dict[str, int]] = [{}]
    for name, size in dims.items():
        answer = [{**point, name: value} for value in range(size) for point in answer]
    return answer


def flat(point: dict[str, int], dims: dict[str, int]) -> int:
    value, weight = 0, 1
    for name, size in dims.items():
        value += weight * point[name]
        weight *= size
    return value


@given(layouts())
def test_every_evaluation_agrees_with_the_definition(layout: LinearLayout) -> None:
    table = layout.table().tolist()
    everywhere = points(layout.in_dims)
    assert layout.size == len(everywhere) == len(table)
    for index, point in enumerate(everywhere):
        wanted = evaluate(layout, point)
        assert layout(**point) == wanted
        assert table[index] == layout.at(index) == flat(wanted, layout.out_dims)
    if layout.in_dims:
        arrays = {name: np.array([point[name] for point in everywhere]) for name in layout.in_dims}
        for name, values in layout.apply(arrays).items():
            assert np.asarray(values).tolist() == [evaluate(layout, point)[name] for point in everywhere]
    shuffled = np.arange(layout.size)[::-1].reshape(1, -1)
    assert layout.apply(shuffled).tolist() == layout.table()[shuffled].tolist()
    assert layout.apply(layout.size - 1) == layout.at(layout.size - 1)


@given(layouts())
def test_a_layout_survives_text_repr_pickle_and_hash(layout: LinearLayout) -> None:
    assert parse_linear(str(layout)) == layout
    assert eval(repr(layout), {"LinearLayout": LinearLayout}) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert LinearLayout.from_bases(layout.bases, layout.out_dims, layout.offset) == layout
    assert hash(parse_linear(str(layout))) == hash(layout)


@given(st.data())
def test_composition_is_evaluation_in_sequence(data: st.DataObject) -> None:
    inner = data.draw(layouts())
    wider = [(name, bits + data.draw(st.integers(0, 1))) for name, bits in inner.out_axes]
    outer = data.draw(layouts(inputs=tuple(data.draw(st.permutations(wider)))))
    both = outer @ inner
    assert both == inner.then(outer)
    for point in points(inner.in_dims):
        assert both(**point) == outer(**inner(**point))


@given(invertible())
def test_inverse_is_two_sided(layout: LinearLayout) -> None:
    back = ~layout
    assert (back @ layout).table().tolist() == list(range(layout.size))
    assert (layout @ back).table().tolist() == list(range(layout.size))
    assert back.inverse() == layout


@given(layouts())
def test_rank_kernel_image_and_refused_inverses(layout: LinearLayout) -> None:
    table = layout.table().tolist()
    assert 1 << layout.rank == len(set(table))
    assert layout.is_injective == (len(set(table)) == layout.size)
    assert layout.is_surjective == (len(set(table)) == 1 << layout.out_bits)
    assert layout.is_invertible == (layout.is_injective and layout.is_surjective)
    for vector in kernel_of(layout).points:
        assert any(vector.values())
        assert layout(**vector) == layout.offset
    assert len(kernel_of(layout).points) == layout.in_bits - layout.rank
    assert image_of(layout).dimension == layout.rank
    if not layout.is_invertible:
        with pytest.raises(AdmissibilityError) as caught:
            layout.inverse()
        witness = caught.value.diagnostic.witness or {}
        if "kernel" in witness:
            assert layout(**witness["kernel"]) == layout.offset  # type: ignore[arg-type]
            assert any(witness["kernel"].values())  # type: ignore[attr-defined]
        else:
            assert flat(witness["missed"], layout.out_dims) not in table  # type: ignore[arg-type]


@given(st.text(alphabet="F2[]()i=o->:,^ 0123456789", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        layout = parse_linear("F2[" + text)
    except MalformedError:
        return
    assert parse_linear(str(layout)) == layout
