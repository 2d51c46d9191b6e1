"""The trap of units: a swizzle that CuTe prints over a pointer counts bytes, one in a layout counts elements."""

from __future__ import annotations

import pytest

import layoutalg as la
from layoutalg.cli import main
from layoutalg.notation.written import unit_hint


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("swizzle", [1, 2, 3])
def test_the_hint_names_the_swizzle_that_a_printout_means(bits, swizzle):
    printed = la.parse(f"Sw<{swizzle},4,3> o smem_ptr[{bits}b](unset) o (8,64):(64,1)")
    assert unit_hint(printed, bits) is None
    taken_literally = la.parse(f"Sw<{swizzle},4,3> o 0 o (8,64):(64,1)")
    hint = unit_hint(taken_literally, bits)
    if bits == 8:
        assert hint is None
        assert printed == taken_literally
    else:
        assert hint is not None
        assert hint.endswith(str(printed.stages[0][0]))
        assert printed.stages[0][0].recast_bytes(bits // 8) == la.Swizzle(swizzle, 4, 3, "byte")


@pytest.mark.parametrize("text", ["(4,8):(8,1)", "Sw<3,4,3>", "Sw<2,1,3> o 0 o (8,64):(64,1)", "5 + (4,8):(8,1)"])
def test_no_hint_where_nothing_else_was_meant(text):
    assert unit_hint(la.parse(text), 16) is None


def test_explain_shows_the_hint(capsys):
    assert main(["explain", "Sw<3,4,3> o 0 o (64,64):(64,1)"]) == 0
    assert "on 16-bit elements Sw<3,3,3>" in capsys.readouterr().out
    assert main(["explain", "Sw<3,4,3> o smem_ptr[16b](unset) o (64,64):(64,1)"]) == 0
    shown = capsys.readouterr().out
    assert "Sw<3,3,3> o 0 o (64,64):(64,1)" in shown
    assert "hint" not in shown


@pytest.mark.parametrize("text", ["(M,64):(64,1)", "(128,?{div=16}):(1,?)", "(4,8):(1@0,1@1)", "(M/4,4):(4,1)"])
def test_explain_takes_every_value_that_a_printout_gives(text, capsys):
    assert main(["explain", text]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("layout")
    if "?" in text:
        assert "n0 % 16 == 0" in shown
