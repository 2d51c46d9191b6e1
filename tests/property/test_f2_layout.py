"""Linear layouts against evaluation bit by bit."""

from __future__ import annotations

import pickle

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
def test_a_layout_survives_text_repr_pickle_and_hash(layout: LinearLayout) -> None:
    assert parse_linear(str(layout)) == layout
    assert eval(repr(layout), {"LinearLayout": LinearLayout}) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert LinearLayout.from_bases(layout.bases, layout.out_dims, layout.offset) == layout
    assert hash(parse_linear(str(layout))) == hash(layout)


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
