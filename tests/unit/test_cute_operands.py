"""Operands of the CuTe family that once answered for something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import layoutalg as la
from layoutalg import cute
from layoutalg.cute import ComposedLayout, CuteLayout, Morphism, Swizzle, make_identity_layout, shift
from layoutalg.cute.symbolic import SymbolicLayout
from layoutalg.ground.errors import LayoutError, MalformedError, RepresentabilityError

L = CuteLayout((4, 8), (8, 1))
S = (4, 8)
SWZ = ComposedLayout(Swizzle(2, 0, 2), 0, L)
OFF = shift(L, 5)
IDL = make_identity_layout(S)
SYM = SymbolicLayout(("M", "N"), ("N", 1))
LIN = la.LinearLayout.from_bases({"x": [(1,), (2,)]}, {"y": 4})
INTG = la.IntegerLayout.from_strides({"i": 4}, (3,))
PW = la.parse("{ [i] -> [2i] : 0 <= i < 4 }")
PAR = la.parse("[N] -> { [i] -> [2i] : 0 <= i < N }")
HIER = la.parse("register 2:1, lane 8:2 -> x:16")
FM = Morphism(S, (8, 4), (1, 0))
NM = Morphism((4, (2, 4)), ((2, 4), (4,)), (2, 0, 1))


def test_operands_that_answered_for_something_else() -> None:
    with pytest.raises(MalformedError, match=r"LA100 coarse is malformed\n.*its \.shape is one"):
        cute.compatible(L, L)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="must be an integer or a tuple"):
        cute.compatible(3, ("x",))  # type: ignore[arg-type]
    for value in (IDL, SYM):
        for refuses in (cute.nullspace, cute.make_layout_like, cute.complement):
            with pytest.raises(MalformedError, match="LA192"):
                refuses(value)  # type: ignore[operator]
    for refuses in (cute.complement, cute.make_layout):
        with pytest.raises(RepresentabilityError, match="LA136"):
            refuses(OFF)  # type: ignore[operator]
    for value in (IDL, SYM, LIN, INTG, PW, HIER, NM):
        with pytest.raises(MalformedError, match="LA192"):
            cute.max_alignment(value)  # type: ignore[arg-type]
    with pytest.raises(MalformedError, match="LA103"):
        cute.size(-3)


@pytest.mark.parametrize("value", [L, SWZ, OFF, IDL, SYM, LIN, INTG, PW, PAR, HIER, FM, NM, Swizzle(2, 0, 2)])
def test_then_refuses_what_does_not_compose(value: Any) -> None:
    for other in (None, "4:1", 2.5, [4], np.arange(4), object(), CuteLayout):
        with pytest.raises(LayoutError):
            value.then(other)
