"""Whether a layout is total, against enumeration: boxes, unions of boxes, holes and shifts."""

from __future__ import annotations

from itertools import product
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.ground.errors import AdmissibilityError, BudgetError, MalformedError
from layoutalg.piecewise import PiecewiseLayout, operations

SIDE = st.integers(0, 7)
CUTS = ["", " and (i + j) mod 3 != 1", " and i <= j", " and (i < 3 or i > 3)", " and 2*floor(i/2) = i"]


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(SIDE, SIDE, SIDE, SIDE), min_size=1, max_size=4), st.sampled_from(CUTS), st.booleans())
def test_total_means_a_box_from_the_origin(corners: list[tuple[int, int, int, int]], cut: str, wide: bool) -> None:
    scale = 2000 if wide else 1  # beyond what is listed: read off or asked
    parts = [
        f"[i, j] -> [i + j] : {scale * a} <= i < {scale * b} and {scale * c} <= j < {scale * d}{cut}"
        for a, b, c, d in corners
    ]
    layout = PiecewiseLayout(f"{{ {'; '.join(parts)} }}")
    if wide and cut:
        whole = None
    else:
        keep = {
            "": lambda i, j: True,  # noqa: ARG005
            CUTS[1]: lambda i, j: (i + j) % 3 != 1,
            CUTS[2]: lambda i, j: i <= j,
            CUTS[3]: lambda i, j: i != 3,  # noqa: ARG005
            CUTS[4]: lambda i, j: i % 2 == 0,  # noqa: ARG005
        }[cut]
        points = {(i, j) for a, b, c, d in corners for i, j in product(range(a, b), range(c, d)) if keep(i, j)}
        whole = bool(points) and len(points) == prod(max(line) + 1 for line in zip(*points, strict=True))
    try:
        total = layout.is_total
    except BudgetError:
        return
    if whole is not None:
        assert total == whole
    if total:
        extents = tuple(layout.in_dims.values())
        assert layout.size == prod(extents) == layout.domain.count()
        assert layout.domain.is_equal(
            type(layout.domain)(f"{{ [i, j] : 0 <= i < {extents[0]} and 0 <= j < {extents[1]} }}")
        )
    else:
        found = operations.extents(layout.value)
        assert isinstance(found, operations.NotABox)
        at = found.witness.get("at")
        assert at is None or not layout.contains(dict(zip(layout.axes, at, strict=True)))  # type: ignore[call-overload]
        with pytest.raises(MalformedError, match="LA221"):
            layout.size  # noqa: B018


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(
        ["{ [i] -> [2i, i] : 0 <= i < 5 }", "[N] -> { [i] -> [N - i, 3] : 0 <= i < N }", "{ [i] -> [0, i] : 1 = 0 }"]
    ),
    st.sampled_from([("y0", "y1"), ("i", "N"), ("given", "as"), ("y1", "y0"), ("o0", "o1"), ("offset", "row")]),
    st.sampled_from(["", "M > 3", "[M] -> { : M mod 4 = 1 }"]),
)
def test_the_text_holds_names_and_constraints(text: str, outputs: tuple[str, ...], given_: str) -> None:
    layout = PiecewiseLayout(text, outputs, given_)
    assert la.parse(str(layout)) == layout
    assert eval(repr(layout)) == layout
    assert layout.outputs == outputs


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.data())
def test_an_inverse_undoes_the_values_of_a_bijection_and_refuses_others(
    extents: list[int], data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(extents))))
    names = [f"x{k}" for k in range(len(extents))]
    terms, weight = [str(data.draw(st.sampled_from([0, 0, 0, 1])))], data.draw(st.sampled_from([1, 1, 1, 2]))
    for k in order:
        flip = data.draw(st.booleans())
        terms.append(f"{weight}*({f'{extents[k] - 1} - {names[k]}' if flip else names[k]})")
        weight *= data.draw(st.sampled_from([extents[k], extents[k], extents[k], max(1, extents[k] - 1)]))
    bounds = " and ".join(f"0 <= {name} < {extent}" for name, extent in zip(names, extents, strict=True))
    layout = PiecewiseLayout(f"{{ [{', '.join(names)}] -> [{' + '.join(terms)}] : {bounds} }}")
    values = layout.table().tolist()
    if sorted(values) == list(range(layout.size)):
        back = layout.inverse()
        assert [back.at(value) for value in values] == list(range(layout.size))
        assert [layout.at(back.at(index)) for index in range(layout.size)] == list(range(layout.size))  # type: ignore[arg-type]
        return
    with pytest.raises(AdmissibilityError, match="LA792") as caught:
        layout.inverse()
    witness = caught.value.diagnostic.witness or {}
    if "missed" in witness:
        assert witness["missed"] in set(range(layout.size)) - set(values)
    else:
        assert len({layout(**point)["y0"] for point in witness["points"]}) == 1  # type: ignore[attr-defined]
