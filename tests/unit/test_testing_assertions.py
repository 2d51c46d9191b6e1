"""The assertions for other people's tests: they pass on a proof alone, and say what they found."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg.bridges.equal import Budget
from layoutalg.testing import (
    assert_admissible,
    assert_bijective,
    assert_conflict_free,
    assert_covers,
    assert_equivalent,
    assert_injective,
)

HUGE = la.CuteLayout(2**40)
FRAGMENT = "((4,8),(2,2,2)):((32,1),(16,8,128))"


class Foreign:
    """A layout of another library: a size and a call."""

    def __init__(self, pitch: int) -> None:
        self.pitch = pitch

    def size(self) -> int:
        return 32

    def __call__(self, index: int) -> int:
        return index % 4 * self.pitch + index // 4

    def __str__(self) -> str:
        return f"rows of {self.pitch}"


class Shaped:
    """Another one: a nested shape in the place of a size."""

    shape = (4, (2, 4))

    def __call__(self, index: int) -> int:
        return index % 4 * 8 + index // 4


@pytest.mark.parametrize(
    "other",
    [
        "(4,8):(8,1)",
        la.CuteLayout((4, 8), (8, 1)),
        la.convert.to_piecewise(la.parse("(4,8):(8,1)")),
        np.arange(32).reshape(4, 8).T.ravel(),
        np.arange(32).reshape(4, 8).T.ravel().tolist(),
        lambda i: i % 4 * 8 + i // 4,
        lambda i: [0, 8, 16, 24][i % 4] + i // 4,
        Foreign(8),
        Shaped(),
    ],
)
def test_what_is_equal_passes(other: Any) -> None:
    assert isinstance(assert_equivalent("(4,8):(8,1)", other), la.Proved)
    assert isinstance(assert_equivalent(other, "(4,8):(8,1)"), la.Proved)


@pytest.mark.parametrize(
    ("f", "g", "told"),
    [
        ("(4,8):(8,1)", "(4,8):(9,1)", ["f      (4,8):(8,1)", "coordinate 1 = (1,0): f is 8, g is 9", "24 of 32"]),
        ("(4,8):(8,1)", Foreign(9), ["g      rows of 9", "coordinate 1 = (1,0): f is 8, g is 9", "24 of 32"]),
        ([0, 1, 2], [0, 1, 3], ["coordinate 2: f is 2, g is 3", "in     1 of 3"]),
        ("4:1", "5:1", ["size of f: 4, size of g: 5"]),
        ([0, 1], "3:1", ["size of f: 2, size of g: 3"]),
        (la.IntegerLayout.from_strides({"i": 2}, (1,)), [[0, 1], [1, 0]], ["coordinate 0: f is 0, g is (0, 1)"]),
        (HUGE, la.CuteLayout((2**20, 2**20), (1, 2**20 + 1)), ["an unknown number of the 1099511627776 coordinates"]),
        ("{ [i] -> [i] : 0 <= i < 4 and i != 1 }", "{ [i] -> [i] : 0 <= i < 4 }", ["since  at: "]),
    ],
)
def test_what_differs_fails_with_the_first_witness(f: Any, g: Any, told: list[str]) -> None:
    with pytest.raises(AssertionError, match="the functions differ") as caught:
        assert_equivalent(f, g)
    for line in told:
        assert line in str(caught.value)


def test_wide_arrays_are_evaluated_at_once_and_rightly() -> None:
    calls = []

    def rows(index: Any) -> Any:
        calls.append(index)
        return index % 256 * 64 + index // 256

    assert_equivalent("(256,64):(64,1)", rows)
    assert len(calls) < 1000
    assert_equivalent("(256,64):(64,1)", lambda index: int(index) % 256 * 64 + int(index) // 256)
    with pytest.raises(AssertionError, match="coordinate 9000"):
        assert_equivalent(la.CuteLayout(2**14), lambda index: index + (index == 9000))


def test_what_is_not_decided_fails_and_says_so() -> None:
    cases: list[Callable[[], Any]] = [
        lambda: assert_equivalent(HUGE, lambda i: i),
        lambda: assert_equivalent("(4,8):(8,1)", Foreign(8), budget=Budget(table_points=31)),
        lambda: assert_covers(HUGE, 4),
        lambda: assert_equivalent("{ [i] -> [i] : 0 <= i < 4 and i != 1 }", "4:1"),
    ]
    for call in cases:
        with pytest.raises(AssertionError, match=r"^not decided w(hether|hich)") as caught:
            call()
        assert "neither proved nor refuted" in str(caught.value)


def test_values_once_all_or_some() -> None:
    assert assert_injective("(4,2):(1,5)") == la.Proved("table", {"points": 8})
    assert_bijective("Sw<2,0,2> o 0 o (4,4):(4,1)")
    assert_bijective(la.parse("a 4:2, b 2:1 -> t:8"))
    assert_covers("(4,2):(1,4)", 8)
    assert_covers("(4,2):(1,5)", [5, 6])
    assert assert_bijective(HUGE).engine == "isl"
    assert assert_injective(la.CuteLayout((2**20, 2**20), (1, 2**21))).engine == "isl"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: assert_injective("(4,2):(1,3)"), "coordinates 3 = (3,0) and 4 = (0,1): both are 3"),
        (lambda: assert_injective(la.CuteLayout((2**20, 2**20), (1, 2**19))), "f is not injective"),
        (lambda: assert_bijective("(4,2):(1,5)"), "coordinate 7 = (3,1): the value is 8"),
        (lambda: assert_bijective("(4,2):(1,3)"), "f is not injective"),
        (lambda: assert_bijective(la.CuteLayout((2**20, 2**20), (1, 2**21))), "since"),
        (lambda: assert_covers("(4,2):(1,5)", 8), "4, the first of 1 missing"),
        (lambda: assert_conflict_free(FRAGMENT, "(16,16):(16,1)"), "turns where"),
        (lambda: assert_admissible(((64, 64), None, "bf16"), (8, 8), "(8,8):(1,8)"), "INNER_CONTIGUOUS"),
        (lambda: assert_admissible("bf16", (64, 64), "(64,64):(65,1)", consumer="wgmma.A"), "LA370"),
    ],
)
def test_what_does_not_hold_fails(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(AssertionError, match=re.escape(told)):
        call()


def test_what_holds_returns_its_evidence() -> None:
    assert assert_conflict_free(FRAGMENT, "Sw<1,3,3> o 0 o (16,16):(16,1)", kind="ldmatrix").turns > 0
    shared = "Sw<3,3,3> o 0 o (64,64):(64,1)"
    assert assert_admissible(((128, 64), None, "bf16"), (64, 64), shared).tensor_map.swizzle == "128B"
    assert (
        assert_admissible(((128, 64), None, "bf16"), (64, 64), shared, consumer="tma.store").problem.direction
        == "store"
    )
    assert assert_admissible("bf16", (64, 64), shared, consumer="wgmma.B").major == "K"


def test_a_picture_is_saved_where_it_is_asked_for(tmp_path: Path) -> None:
    target = tmp_path / "deep" / "picture.svg"
    with pytest.raises(AssertionError, match=re.escape(str(target))):
        assert_equivalent("(4,8):(8,1)", Foreign(9), picture=target)
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<svg")
    assert "first difference at flat coordinate 1" in text


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: assert_equivalent(lambda i: i, lambda i: i), "must not both lack a size"),
        (lambda: assert_injective(lambda i: i), "must have a size"),
        (lambda: assert_equivalent("4:1", 3), "must be a layout, its text, a table or a callable"),
        (lambda: assert_equivalent("4:1", np.zeros((2, 2, 2), int)), "one-dimensional table"),
        (lambda: assert_equivalent("4:1", np.zeros(4)), "table of integers"),
        (lambda: assert_equivalent("4:1", "4:1", budget=3), "must be a Budget"),  # type: ignore[arg-type]
        (lambda: assert_admissible("bf16", consumer="ldmatrix"), "must be one of tma"),
    ],
)
def test_what_cannot_be_asked_is_an_error_and_no_failure(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(la.MalformedError, match=told) as caught:
        call()
    assert caught.value.diagnostic.code == "LA456"
