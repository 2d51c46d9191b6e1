"""What CuTe's C++ and DSL print, through ``la.parse``: the values, the units, and where a wrong text goes wrong."""

from __future__ import annotations

import numpy as np
import pytest

import layoutalg as la
from layoutalg.cute import ComposedLayout, CoordinateLayout, CuteLayout, E, Swizzle
from layoutalg.cute.symbolic import Assumptions, SymbolicLayout
from layoutalg.interop import read_printout

ATOM = CuteLayout((8, 64), (64, 1))
BYTES = ComposedLayout(Swizzle(3, 3, 3), 0, ATOM)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(_128,_64):(_64,_1)", CuteLayout((128, 64), (64, 1))),
        ("(_8,(_2,4)):(_1,(_-8,16))", CuteLayout((8, (2, 4)), (1, (-8, 16)))),
        ("Int<128>:C<1>", CuteLayout(128, 1)),
        ("(4,8)", CuteLayout((4, 8))),
        ("(4,(2,2))", CuteLayout((4, (2, 2)))),
        ("Layout<Shape<_128,_64>,Stride<_64,_1>>", CuteLayout((128, 64), (64, 1))),
        ("Layout<Shape<Shape<_8,_4>,Int<3>>,Stride<Stride<_1,_8>,C<64>>>", CuteLayout(((8, 4), 3), ((1, 8), 64))),
        ("cute::Layout<cute::tuple<cute::C<8>, cute::C<4>>>", CuteLayout((8, 4))),
        ("S<3,4,3> o 0 o (8,64):(64,1)", ComposedLayout(Swizzle(3, 4, 3), 0, ATOM)),
        ("Sw<3,4,3> o smem_ptr[16b](unset) o (_8,_64):(_64,_1)", BYTES),
        ("ComposedLayout<Swizzle<3,4,3>,smem_ptr_flag_bits<16>,Layout<Shape<_8,_64>,Stride<_64,_1>>>", BYTES),
        ("Sw<3,4,3>_smem_ptr[16b](0x7f8800000400) o (_8,_64):(_64,_1)", BYTES),
        ("tCsA: Sw<3,4,3>_smem_ptr[16b](0x400) o\n\t(_8,_64):(_64,_1)", BYTES),
        ("Sw<3,4,3>_smem_ptr[16b](0x410) o (_8,_64):(_64,_1)", ComposedLayout(Swizzle(3, 3, 3), 8, ATOM)),
        ("Sw<3,4,3> o smem_ptr[8b](unset) o (_8,_64):(_64,_1)", ComposedLayout(Swizzle(3, 4, 3), 0, ATOM)),
        ("Sw<3,4,3> o smem_ptr[4b](unset) o (_8,_64):(_64,_1)", ComposedLayout(Swizzle(3, 5, 3), 0, ATOM)),
        ("tensor<ptr<bf16, smem, align<1024>, S<3,4,3>> o (8,64):(64,1)>", BYTES),
        ("gmem_ptr[16b](0x7f0) o (8,64):(64,1)", ATOM),
        ("ptr[32b](0x7feee1fffbe0) o (8,64):(64,1)", ATOM),
        ("tensor(raw_ptr(0x10: f32, generic, align<4>) o (8,64):(64,1), data=\n [[1,2])", ATOM),
        ('!cute.memref<f16, smem, align<16>, "(8,64):(64,1)">', ATOM),
        ('!cute.layout<"(8,64):(64,1)">', ATOM),
        ("(4,8):(1@0,1@1)", CoordinateLayout((4, 8), (E(0), E(1)))),
        ("(4,(2,3)):(_2@0@1,(_1@0,_0))", CoordinateLayout((4, (2, 3)), (2 * E(1, 0), (E(0), 0)))),
        ("ArithTuple(0,0) o ((_64,_8),4):((_1@0,_1@1),_64@0)", la.parse("((64,8),4):((E0,E1),64E0)")),
        ('!cute.coord_tensor<"(0,0)", "(4,8):(1@0,1@1)">', CoordinateLayout((4, 8), (E(0), E(1)))),
        ("(M,64):(64,1)", SymbolicLayout(("M", 64), (64, 1))),
        ("(C,H,W):(H*W,W,1)", SymbolicLayout(("C", "H", "W"), ("H*W", "W", 1))),
        ("(M,64)", SymbolicLayout(("M", 64))),
        ("(128,?{div=16}):(1,128)", SymbolicLayout((128, "n0"), (1, 128), ("n0 % 16 == 0",))),
        ("(?,4):(?{i64},1)", SymbolicLayout(("n0", 4), ("d0", 1), Assumptions((), ("d0",)))),
        ("(M/4,4):(4,1) where M % 4 == 0", SymbolicLayout(("M/4", 4), (4, 1), ("M % 4 == 0",))),
    ],
)
def test_printouts_are_read(text, value):
    assert la.parse(text) == value


@pytest.mark.parametrize("width", [8, 16, 32, 64])
@pytest.mark.parametrize("address", [0, 0x400, 0x410, 0x1230])
def test_a_swizzled_pointer_moves_bytes_of_its_address(width, address):
    layout = la.parse(f"Sw<3,4,3>_smem_ptr[{width}b]({address:#x}) o (_8,_64):(_64,_1)")
    size = width // 8
    swizzled = Swizzle(3, 4, 3).apply(address + size * ATOM.table())
    assert np.array_equal(size * layout.table() + address // 1024 * 1024, swizzled)


def test_what_stands_beside_the_layout_is_kept():
    found = read_printout("sA: Sw<3,4,3>_smem_ptr[16b](0x400) o (_8,_64):(_64,_1)")
    assert (found.layout, found.element_bits, found.space, found.address) == (BYTES, 16, "smem", 0x400)
    assert found.swizzle == Swizzle(3, 4, 3, "byte")
    found = read_printout("raw_ptr(0x10: bf16, gmem, align<16>) o (8,64):(64,1)")
    assert (found.element_bits, found.dtype, found.space, found.address) == (16, "bf16", "gmem", 16)
    assert read_printout("(8,64):(64,1)") == la.interop.Printout(ATOM)


@pytest.mark.parametrize(
    ("text", "place", "because"),
    [
        ("(_128,_64):(_64,", 16, "expected a stride"),
        ("Layout<Shape<_4,_8>,Stride<_8,_1>", 33, "to close Layout<"),
        ("Sw<3,4,3> o smem_ptr[16b](unset)", 32, "expected 'o' after the pointer"),
        ("smem_ptr[16](0x0) o 4:1", 8, "element width"),
        ("smem_ptr[16b](0x4", 13, "expected an address"),
        ("tensor<ptr<f16, smem> o 4:1", 27, "to close tensor"),
        ("raw_ptr(f16, smem) o 4:1", 8, "expected an address"),
        ("ArithTuple(0,4) o (4,8):(1@0,1@1)", 11, "at the origin"),
        ("S<3,4,3> o ? o (8,64):(64,1)", 0, "only with numbers"),
        ("(4,?):(1@0,1@1)", 8, "only with numbers"),
        ('!cute.layout<"(8,64):(64,1)"', 28, "to close !cute.layout<"),
        ("rubbish", 0, "expected a shape"),
    ],
)
def test_a_wrong_text_shows_the_place_and_the_forms(text, place, because):
    with pytest.raises(la.MalformedError) as caught:
        la.parse(text)
    found = caught.value.diagnostic
    assert because in found.because
    assert found.where[0].split("\n")[1] == " " * place + "^"
    assert found.source.startswith("read as CuTe's")
    assert "docs/notation.md" in found.source


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Sw<3,0,3> o smem_ptr[16b](unset) o (8,64):(64,1)", "whole elements of 16 bits"),
        ("Sw<3,4,3> o smem_ptr[6b](unset) o (8,64):(64,1)", "whole elements of 6 bits"),
    ],
)
def test_a_swizzle_inside_elements_is_refused(text, words):
    with pytest.raises(la.AdmissibilityError, match=words):
        la.parse(text)


def test_every_prefix_of_a_printout_is_read_or_refused():
    text = "tCsA: Sw<3,4,3>_smem_ptr[16b](0x7f8800000400) o ((_64,(_8,_2)),_2):((_1,(_64,_1024)),_512)"
    for stop in range(len(text)):
        with pytest.raises(la.LayoutError):
            la.parse(text[:stop]) if text[:stop].count("(") != text[:stop].count(")") else la.parse(text[:stop] + "!")


def test_an_element_type_whose_first_number_is_no_width_is_refused() -> None:
    """``e4m3`` has 8 bits, not 4: a swizzle of bytes must not be read with the wrong width."""
    good = la.parse("ptr<f8E4M3FN, smem, S<3,4,3>> o (8,128):(128,1)")
    assert good == la.parse("Sw<3,4,3> o 0 o (8,128):(128,1)")
    with pytest.raises(la.MalformedError, match="LA190"):
        la.parse("ptr<e4m3, smem, S<3,4,3>> o (8,128):(128,1)")
