"""The ``convention`` keyword on the operations themselves, and swizzled operands of the tiling operations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from layoutalg.cute import (
    ComposedLayout,
    CuteLayout,
    Swizzle,
    append,
    blocked_product,
    complement,
    composition,
    cosize,
    dice,
    downcast,
    flat_product,
    logical_divide,
    logical_product,
    raked_product,
    recast,
    tiled_product,
    upcast,
    zipped_product,
)
from layoutalg.cute import slice as cut
from layoutalg.cute.conventions import Convention
from layoutalg.ground.errors import AdmissibilityError, LayoutError, MalformedError, RepresentabilityError

LAYOUT = CuteLayout((8, 4, 2), (1, 8, 32))
SWIZZLED = ComposedLayout(Swizzle(2, 2, 2), 0, CuteLayout((8, 8), (8, 1)))
PEERS: tuple[Convention, ...] = ("cute_cpp", "pycute")


@pytest.mark.parametrize("convention", PEERS)
def test_the_keyword_follows_the_peer(convention: Convention) -> None:
    kept = {"cute_cpp": "(4):(1)", "pycute": "(4,4,2):(1,8,32)"}[convention]
    wanted = {4: "4:1", CuteLayout(16, 8): "16:8", (4,): kept, (4, None, 2): "(4,4,2):(1,8,32)"}
    for tiler, text in wanted.items():
        assert str(composition(LAYOUT, tiler, convention=convention)) == text
    rest = complement(CuteLayout(4), (6, 4), convention=convention)
    assert str(rest) == {"cute_cpp": "8:4", "pycute": "6:4"}[convention]
    assert complement(CuteLayout(4), 24, convention=convention) == complement(CuteLayout(4), 24)
    assert complement(CuteLayout(4, 2), convention=convention) == complement(CuteLayout(4, 2))
    count = cosize(CuteLayout((4, 2), (-1, 7)), convention=convention)
    assert count == {"cute_cpp": 11, "pycute": 5}[convention]


def test_what_the_conventions_change() -> None:
    with pytest.raises(AdmissibilityError, match="LA120"):
        composition(LAYOUT, CuteLayout(8, 16))
    assert str(composition(LAYOUT, CuteLayout(8, 16), convention="cute_cpp")) == "8:16"
    assert str(composition(SWIZZLED, CuteLayout(16, 8), convention="pycute")) == "Sw<2,2,2> o 0 o 16:1"
    with pytest.raises(AdmissibilityError, match="LA148"):
        complement(CuteLayout(12), (9, 3))
    assert str(complement(CuteLayout(12), (9, 3), convention="pycute")) == "3:12"
    assert [cosize(CuteLayout(4, -1), convention=convention) for convention in ("strict", *PEERS)] == [4, 4, -2]
    assert cosize(SWIZZLED, convention="cute_cpp") == 64
    assert str(logical_product(CuteLayout(6), 3, convention="pycute")) == "(3,2):(1,3)"
    assert str(logical_product(CuteLayout(6), 3, convention="cute_cpp")) == "(6,3):(1,6)"
    for product in (zipped_product, tiled_product, flat_product, blocked_product, raked_product):
        found = product(CuteLayout((2, 2)), CuteLayout(3), convention="cute_cpp")
        assert found == product(CuteLayout((2, 2)), CuteLayout(3))


@pytest.mark.parametrize(
    "call",
    [
        lambda convention: composition(LAYOUT, 4, convention=convention),
        lambda convention: complement(LAYOUT, 4, convention=convention),
        lambda convention: cosize(LAYOUT, convention=convention),
        lambda convention: cosize(SWIZZLED, convention=convention),
        lambda convention: logical_product(LAYOUT, 4, convention=convention),
        lambda convention: blocked_product(LAYOUT, 4, convention=convention),
        lambda convention: upcast(SWIZZLED, 2, convention=convention),
        lambda convention: cut((None, 1), SWIZZLED, convention=convention),
    ],
)
@pytest.mark.parametrize("convention", ["cpp", None, [], 1])
def test_no_other_convention(call: Callable[[object], object], convention: object) -> None:
    with pytest.raises(MalformedError, match="LA144"):
        call(convention)


def test_swizzled_operands() -> None:
    assert str(append(SWIZZLED, CuteLayout(2, 64))) == "Sw<2,2,2> o 0 o (8,8,2):(8,1,64)"
    assert str(dice((1, None), SWIZZLED)) == "Sw<2,2,2> o 0 o (8):(8)"
    assert str(recast(SWIZZLED, 8, 16)) == "Sw<2,1,2> o 0 o (8,4):(4,1)"
    assert cut(None, SWIZZLED) == SWIZZLED
    bottom = blocked_product(SWIZZLED.base, CuteLayout((2, 3)))
    assert blocked_product(SWIZZLED, CuteLayout((2, 3))) == SWIZZLED.rebase(bottom)
    assert logical_product(SWIZZLED, CuteLayout(2))[0] == SWIZZLED
    with pytest.raises(AdmissibilityError, match="LA647"):
        upcast(SWIZZLED, 8)
    with pytest.raises(RepresentabilityError, match="LA161"):
        upcast(ComposedLayout(Swizzle(1, 4, 1), 0, CuteLayout(4, 2)), 4)
    with pytest.raises(RepresentabilityError, match="LA162"):
        downcast(ComposedLayout(Swizzle(1, 0, 1), 0, CuteLayout(4, 2)), 2)
    with pytest.raises(MalformedError, match="LA160"):
        upcast(SWIZZLED, True)


def test_repeated_calls_tell_equal_numbers_apart() -> None:
    assert logical_divide(LAYOUT, 1) == logical_divide(LAYOUT, CuteLayout(1, 1))
    for bad in (True, 1.0, "1"):
        with pytest.raises(LayoutError, match="LA141"):
            logical_divide(LAYOUT, bad)  # type: ignore[arg-type]
        with pytest.raises(LayoutError, match="LA141"):
            logical_product(LAYOUT, (bad,))  # type: ignore[arg-type]
