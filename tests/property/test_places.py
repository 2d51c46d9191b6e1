"""``la.explain(layout, at=...)`` against the layout's own values, one point at a time."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from fuzz.dumps import COPY, MMA
from hypothesis import given, settings
from hypothesis import strategies as st

import layoutalg as la
from layoutalg.cli import main

EXTENTS = {"register": 2, "lane": 3, "warp": 1}


@st.composite
def registers(draw: st.DrawFn) -> la.LinearLayout:
    """Registers of a tile of 4 x 8: any columns, so that elements are held many times or never."""
    vector = st.tuples(st.integers(0, 3), st.integers(0, 7))
    bases = {name: draw(st.lists(vector, min_size=bits, max_size=bits)) for name, bits in EXTENTS.items()}
    start = (draw(st.integers(0, 3)), draw(st.integers(0, 7)))
    return la.LinearLayout.from_bases(bases, {"dim0": 4, "dim1": 8}, offset=start)


@settings(max_examples=60)
@given(registers(), st.integers(0, 3), st.integers(0, 7))
def test_registers_that_hold_an_element(layout: la.LinearLayout, row: int, column: int) -> None:
    told = la.explain(layout, at=(row, column))
    found: Any = told["at"]
    wanted = [
        {"warp": warp, "lane": lane, "register": register, "thread": 8 * warp + lane}
        for warp, lane, register in itertools.product(range(2), range(8), range(4))
        if layout(register=register, lane=lane, warp=warp) == {"dim0": row, "dim1": column}
    ]
    assert found == {"coordinate": [row, column], "places": wanted}
    assert told.facts[0][1][0].startswith(f"({row}, {column}): ")


@settings(max_examples=60)
@given(st.data())
def test_places_in_memory(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 9), st.integers(1, 9)))
    stride = data.draw(st.tuples(st.integers(0, 40), st.integers(0, 40)))
    at = tuple(data.draw(st.integers(0, extent - 1)) for extent in shape)
    dtype, bits = data.draw(st.sampled_from([("u8", 8), ("f16", 16), ("f32", 32)]))
    offset = la.CuteLayout(shape, stride)(*at)
    assert la.explain(la.CuteLayout(shape, stride), dtype, at=at)["at"] == {
        "coordinate": list(at), "offset": offset, "bit": offset * bits
    }  # fmt: skip


def test_padded_and_swizzled_memory() -> None:
    padded = "#ttg.padded_shared<[64:+4] {order = [1, 0], shape = [32, 64]}>"
    assert la.explain(padded, "f16", at=(13, 21))["at"]["offset"] == 13 * 68 + 21  # type: ignore[index]
    told = la.explain("Sw<3,3,3> o 0 o (64,64):(64,1)", "f16", at=(3, 17))
    assert told["at"]["offset"] == (3 * 64 + 17) ^ (3 << 3)  # type: ignore[index]


@settings(max_examples=8)
@given(st.integers(0, 31), st.integers(0, 31))
def test_tiled_copies_and_matrix_instructions(row: int, column: int) -> None:
    for text, at in ((MMA, (row, column % 16)), (COPY, (row, column % 16))):
        tiling: Any = la.notation.tiled.read_tiled(text)
        told = la.explain(text, at=at)
        facts = {name: value for name, value in told.data.items() if name.startswith("at_")}
        assert facts
        for name, value in facts.items():
            layout = tiling.layouts[name[3:]]
            flat = at[0] + tiling.tile[{"B": 1}.get(name[3:], 0)] * at[1]
            table = layout.table().reshape(layout[0].size, layout[1].size, order="F")
            holders = np.argwhere(table == flat).tolist()
            assert [[place["thread"], place["value"]] for place in value["places"]] == holders
            assert all(layout(thread, place) == flat for thread, place in holders[:4])


@pytest.mark.parametrize("at", [(64, 0), (1,), (1, 2, 3), "x", (-1, 0), (1.5, 0)])
def test_bad_coordinates_are_refused(at: Any) -> None:
    with pytest.raises(la.MalformedError, match=r"(?s)LA414.*at"):
        la.explain("(64,64):(64,1)", at=at)


def test_other_things_have_no_elements() -> None:
    with pytest.raises(la.MalformedError, match="must be None for a descriptor"):
        la.explain("0x4000008000400840", at=(0, 0))


@settings(max_examples=60)
@given(st.data())
def test_a_counterexample_is_the_point_where_its_values_are(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(st.integers(1, 5), st.tuples(st.integers(1, 4), st.integers(1, 4))))
    strides = [data.draw(st.tuples(st.integers(0, 9), st.tuples(*[st.integers(0, 9)] * 2))) for _ in range(2)]
    one, other = (la.CuteLayout(shape, stride) for stride in strides)
    found = la.equivalent(one, other)
    if isinstance(found, la.Refuted):
        assert isinstance(found.point, tuple)
        assert (one(*found.point), other(*found.point)) == (found.witness["f"], found.witness["g"])


@settings(max_examples=40)
@given(registers(), registers())
def test_a_counterexample_of_registers_is_named_by_axes(one: la.LinearLayout, other: la.LinearLayout) -> None:
    found = la.equivalent(one, other)
    if isinstance(found, la.Refuted):
        assert isinstance(found.point, dict)
        assert one(**found.point) != other(**found.point)
        packed = [values["dim0"] + 4 * values["dim1"] for values in (one(**found.point), other(**found.point))]
        assert packed == [found.witness["f"], found.witness["g"]]


def test_the_command_says_where_an_element_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "(64,64):(72,1)", "--at", "13,21", "--dtype", "f16"]) == 0
    assert capsys.readouterr().out.startswith("at              (13, 21): element 957, byte 1914 of 16-bit elements\n")
