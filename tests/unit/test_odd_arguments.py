"""Odd arguments of public functions: what is said of them."""

from __future__ import annotations

from typing import Any

import pytest

import layoutalg as la
from layoutalg.ground.errors import Diagnostic, LayoutError

ONES = 65
FLAT = f"({','.join('1' * ONES)}):({','.join('0' * ONES)})"
LANES = [(1,), (2,), (4,), (8,), (16,)]
SOURCE = la.LinearLayout.from_bases({"lane": LANES}, {"x": 32})
TURNED = la.LinearLayout.from_bases({"lane": [LANES[1], LANES[0], *LANES[2:]]}, {"x": 32})


@pytest.mark.parametrize("tile", [64, (64.0, 256), ("64", 256), (0, 256)])
def test_the_tile_of_a_bit_operand_is_checked(tile: Any) -> None:
    with pytest.raises(la.MalformedError, match="LA376"):
        la.wgmma("A", "b1", tile, "(64,256):(256,1)")


def test_options_that_suggest_sets_itself_are_refused() -> None:
    with pytest.raises(la.MalformedError, match="direction"):
        la.suggest(((64, 64), None, "f16"), (32, 32), ["tma"], direction="store")


def test_explain_goes_on_behind_a_question_that_cannot_be_asked() -> None:
    assert "non-negative" in str(la.explain("(8,4):(5,-1)")["rows"])
    for dtype in ("b1", "fp4"):
        assert str(la.explain("(64,256):(256,1)", dtype)["as_a_tile"]).startswith("not asked for ")
    for many in (17, ONES):
        ones = f"({','.join('1' * many)}):({','.join('0' * many)})"
        assert la.explain(ones)["normal_form"] == "1:0"
    assert la.explain(la.Tensor(("M", "K"), dtype="bf16"))["pitches"] == ["2*K", "2"]


@pytest.mark.parametrize("consumer", ["tma", "ldmatrix.x4"])
def test_more_dimensions_than_an_array_has_are_refused(consumer: str) -> None:
    with pytest.raises(la.MalformedError, match="64 dimensions"):
        la.admissible(FLAT, consumer)
    with pytest.raises(la.MalformedError, match="64 dimensions"):
        la.padding((1,) * ONES, ["rows"])


def test_sizes_too_long_to_be_written_are_described() -> None:
    with pytest.raises(la.MalformedError, match="LA102"):
        la.parse(f"({','.join([str(2**62)] * 240)}):({','.join('1' * 240)})")


@pytest.mark.parametrize("char", ["\0", "\t", "\x1b", "\x9b", "\u202e", "\u2066", "\u200b", "\u2028"])
def test_control_characters_are_escaped_in_every_message(char: str) -> None:
    assert char not in str(Diagnostic("LA000", f"a{char}", (f"b{char}",), f"c{char}", {"d": f"e{char}"}))
    with pytest.raises(LayoutError) as caught:
        la.parse(f"[N] ->{char} {{ [i] -> [i] }} x")
    assert char not in str(caught.value)


@pytest.mark.parametrize(
    ("mechanism", "because"),
    [
        ("nothing", "the layouts differ"),
        ("registers", "lane 1 of warp 0 needs element 2, which no register of its thread holds"),
        ("cluster", "no element leaves its block"),
    ],
)
def test_a_mechanism_that_cannot_do_it_is_refused_with_the_reason(mechanism: str, because: str) -> None:
    with pytest.raises(la.InfeasibleError, match=f"(?s)LA934.*mechanism {mechanism}.*{because}"):
        la.conversion(SOURCE, TURNED, 32, mechanism=mechanism)


def test_a_mechanism_that_does_not_apply_is_the_one_that_is_named() -> None:
    found = la.conversion(SOURCE, TURNED, 32, mechanism="matrices")
    assert isinstance(found, la.Unknown)
    assert found.reason.startswith("matrices: ")
    assert la.conversion(SOURCE, SOURCE, 32, mechanism="nothing").mechanism == "nothing"
