"""Pictures say what the values say: every cell is read back and compared with the layout."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from judges.families import FAMILIES

import layoutalg as la
from layoutalg.cute import CuteLayout, Swizzle
from layoutalg.draw.views import is_distributed, owners
from layoutalg.proofs.swizzling import instruction_name
from layoutalg.targets.banks import bank_model
from layoutalg.targets.layouts import nvidia
from layoutalg.targets.nvidia import banks

SVG = "{http://www.w3.org/2000/svg}"
TITLE = re.compile(r"flat (-?\d+).*? -> (.*)$")


def titles(picture: str) -> list[str]:
    """What shows under the pointer, cell by cell; the picture must be well-formed."""
    return [node.text or "" for node in ET.fromstring(picture).iter(f"{SVG}title")]


def said(value: Any) -> str:
    """A value as a title ends."""
    if isinstance(value, tuple):
        return f"({','.join(map(str, value))})" if value else "()"
    return f"{value} = 0b{value:b}" if value >= 0 else str(value)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=25, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_cell_says_the_value_of_its_coordinate(family: str, data: st.DataObject) -> None:
    layout = data.draw(FAMILIES[family])
    found = dict(match.groups() for title in titles(la.draw.svg(layout, "grid")) if (match := TITLE.search(title)))
    shown = {int(index) for index in found} - {-1}
    assert shown == set(range(layout.size)) if layout.size <= 128 else len(shown) >= 128
    for index in shown:
        assert found[str(index)] == said(layout.at(index))


@settings(max_examples=40)
@given(
    st.sampled_from([(16, 8), (32, 16), (64, 32)]),
    st.sampled_from([(1, 1), (2, 1), (1, 2), (2, 2), (4, 1)]),
)
def test_owners_are_those_of_the_layout(shape: tuple[int, int], warps: tuple[int, int]) -> None:
    layout = nvidia.mma_accumulator(shape, warps)
    assert is_distributed(layout)
    grid, _ = owners(layout)
    seen = {}
    for index in range(layout.size):
        register, rest = index % layout.in_dims["register"], index // layout.in_dims["register"]
        lane, rest = rest % 32, rest // 32
        warp, block = rest % layout.in_dims["warp"], rest // layout.in_dims["warp"]
        at = layout(register=register, lane=lane, warp=warp, block=block)
        seen.setdefault((at["dim0"], at["dim1"]), []).append((block, lane + 32 * warp, register))
    assert {(r, c): sorted(held) for r, row in enumerate(grid) for c, held in enumerate(row) if held} == {
        place: sorted(held) for place, held in seen.items()
    }
    assert titles(la.draw.svg(layout))


@given(st.integers(0, 4), st.integers(0, 6), st.integers(-5, 5))
def test_swizzle_shows_which_chunk_lies_where(bits: int, base: int, shift: int) -> None:
    if abs(shift) < bits or base + bits + abs(shift) > 20:
        return
    swizzle = Swizzle(bits, base, shift)
    cells = [t for t in titles(la.draw.svg(swizzle)) if "hold chunk" in t]
    after = cells[len(cells) // 2 :]
    for place, title in enumerate(after):
        assert f"hold chunk {swizzle(place << base) >> base} " in title


@given(
    st.sampled_from([8, 16, 32, 64, 128]),
    st.lists(st.integers(0, 255), min_size=32, max_size=32),
)
def test_banks_name_every_word_once(bits: int, places: list[int]) -> None:
    size = bits // 8
    offsets = [place * size for place in places]
    try:
        turns = banks.wavefronts(offsets, bits)
    except la.LayoutError:
        return
    picture = la.draw.banks(offsets, bits)
    assert f"{turns} turn" in picture
    words = [int(word) for title in titles(picture) for word in re.findall(r"word (\d+) by", title)]
    groups = [phase.lanes for phase in bank_model("sm_90a", instruction_name("sm_90a", "load", bits)).phases(offsets)]
    expected = [len({(offsets[lane] + byte) // 4 for lane in lanes for byte in range(size)}) for lanes in groups]
    assert len(words) == sum(expected)


def test_matrix_marks_the_bits_that_flip() -> None:
    layout = la.LinearLayout.from_bases({"i": [(1,), (3,), (4,)]}, {"o": 8}, offset={"o": 2})
    marks = [title for title in titles(la.draw.svg(layout, "matrix")) if " flips " in title or " sets " in title]
    assert marks == ["i 1 flips o 1", "i 2 flips o 1", "i 2 flips o 2", "constant sets o 2", "i 4 flips o 4"]


def test_differences_are_outlined() -> None:
    one, other = CuteLayout((4, 4), (4, 1)), CuteLayout((4, 4), (1, 4))
    different = int((one.table() != other.table()).sum())
    picture = la.draw.difference(one, other)
    frames = [node for node in ET.fromstring(picture).iter(f"{SVG}rect") if node.get("class") == "w"]
    assert len(frames) == 2 * different
    assert "first difference at flat coordinate 1: 4 and 1" in picture


def test_a_plan_shows_every_chunk_of_its_tile() -> None:
    plan = la.tensormap(la.Tensor((96, 100), dtype="u8", stride=(112, 1)), (16, 64), "(16,64):(64,1)")
    picture = la.draw.svg(plan)
    chunks = re.findall(r"tile element \((\d+), (\d+)\)", picture)
    assert sorted((int(r), int(c)) for r, c in chunks) == [(r, c) for r in range(16) for c in range(0, 64, 16)]
    assert "out of bounds: fill" in picture


def test_what_is_drawn_cannot_execute() -> None:
    layout = la.LinearLayout.from_bases({"i": [(1,)]}, {"o": 2})
    for picture in (la.draw.svg(layout), la.draw.svg(la.parse("(2,2):(1,2)"))):
        kinds = {node.tag.removeprefix(SVG) for node in ET.fromstring(picture).iter()}
        assert kinds <= {"svg", "style", "defs", "pattern", "path", "rect", "text", "title", "g", "circle"}
        assert not re.search(r"\bon\w+=|href|<script", picture)


def test_notebooks_are_given_pictures() -> None:
    verdict = la.equivalent(CuteLayout(4, 1), CuteLayout(4, 2))
    for value in (CuteLayout(4), Swizzle(1, 0, 1), verdict, la.parse("F2[i=(1) -> o:2]")):
        bundle = value._repr_mimebundle_()
        assert ET.fromstring(bundle["image/svg+xml"]) is not None
        assert bundle["text/plain"] == str(value)
    huge = la.parse("Z[i:1099511627776=(1), j:3=(2) -> p]")
    assert "flat 127 " in huge._repr_mimebundle_()["image/svg+xml"] or "text/plain" in huge._repr_mimebundle_()


@pytest.mark.parametrize(("wrong", "code"), [(3, "LA560"), (None, "LA560"), (np.zeros(3), "LA802")])
def test_only_values_are_drawn(wrong: object, code: str) -> None:
    with pytest.raises(la.MalformedError, match=code):
        la.draw.svg(wrong)


def test_a_text_is_drawn_as_its_layout() -> None:
    assert la.draw.svg("(4,8):(1,4)") == la.draw.svg(la.parse("(4,8):(1,4)"))


def test_a_view_that_does_not_fit_is_refused() -> None:
    with pytest.raises(la.MalformedError, match=r"(?s)LA561.*'grid'"):
        la.draw.svg(CuteLayout(4), "matrix")


def test_verdicts_are_drawn_as_notebooks_show_them() -> None:
    tight = la.conversion("(32,2):(2,1)", "(32,2):(1,32)", 16, mechanism="shared", smem_bytes=1)
    for verdict in (tight, *(la.equivalent(CuteLayout(4, 1), CuteLayout(4, step)) for step in (1, 2))):
        assert la.draw.svg(verdict) == verdict._repr_mimebundle_()["image/svg+xml"]
        assert la.draw.text(verdict) == str(verdict)
